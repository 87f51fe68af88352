"""Rendering files: ours, a user's own beside ours, and what happens when there is none."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import ptxgen
from ptxgen.errors import TemplateError
from ptxgen.templating import Rendered

pytestmark = pytest.mark.unit

USERS_KERNEL = """\
# import "lib/sync.ptx.j2" as sync
# import "mine.ptx.j2" as mine
${ sync.bar(id, 128) }
${ mine.twice("%a") }
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's folder outside of this project."""
    (tmp_path / "mine.ptx.j2").write_text("# macro twice(r)\nadd.u32 ${r}, ${r}, ${r};\n# endmacro")
    (tmp_path / "kernel.ptx.j2").write_text(USERS_KERNEL)
    return tmp_path


@pytest.mark.parametrize("as_text", [True, False], ids=["str", "Path"])
def test_a_users_template_imports_ours_and_its_own(project: Path, as_text: bool) -> None:
    path = project / "kernel.ptx.j2"
    text = ptxgen.render(str(path) if as_text else path, id=2)
    assert isinstance(text, Rendered)
    assert text == "bar.sync 2, 128;\nadd.u32 %a, %a, %a;\n"
    assert text.locate(2) == "mine.ptx.j2:2, called from kernel.ptx.j2:4"


def test_a_relative_path(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    assert ptxgen.render("kernel.ptx.j2", id=2).startswith("bar.sync 2, 128;")


def test_a_changed_file_is_read_again(project: Path) -> None:
    path = project / "kernel.ptx.j2"
    ptxgen.render(path, id=2)
    path.write_text("ret ${id};\n")
    assert ptxgen.render(path, id=2) == "ret 2;\n"


def test_our_kernels_do_not_depend_on_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the same name beside the user must not become our GEMM."""
    want = ptxgen.kernel("gemm").ptx
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "gemm.ptx.j2").write_text("ret;\n")
    monkeypatch.chdir(tmp_path)
    assert ptxgen.kernel("gemm").ptx == want
    assert ptxgen.render("kernels/gemm.ptx.j2") == "ret;\n"  # but here the user's file was named


def test_a_file_of_ours_by_name() -> None:
    with pytest.raises(TemplateError, match=r"kernels/gemm\.ptx\.j2:\d+: undefined name 'entry'"):
        ptxgen.render("kernels/gemm.ptx.j2")


@pytest.mark.parametrize("path", ["nope.ptx.j2", "kernels", "/nowhere/k.ptx.j2"])
def test_a_missing_file_says_where_it_was_looked_for(path: str) -> None:
    with pytest.raises(TemplateError, match="neither a file nor a name under ptx_templates/"):
        ptxgen.render(path)


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "k.ptx.j2").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TemplateError, match=r"k\.ptx\.j2: 'utf-8' codec"):
        ptxgen.render(tmp_path / "k.ptx.j2")


def test_numbers_may_not_be_missing_or_misspelt(project: Path) -> None:
    with pytest.raises(TemplateError, match=r"undefined name 'id'; names given: idx"):
        ptxgen.render(project / "kernel.ptx.j2", idx=2)


def test_threads_render_texts_of_one_name() -> None:
    """Facts about a text are its own, though every text may have the same name."""
    failures: list[object] = []

    def work(n: int) -> None:
        for _ in range(50):
            if ptxgen.render_text(f"ret ${{ a{n} }};", **{f"a{n}": n}) != f"ret {n};\n":
                failures.append(n)

    def guarded(n: int) -> None:
        try:
            work(n)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_filters_spell_numbers() -> None:
    text = ptxgen.render_text(
        '${ 64 | hex } ${ 64 | hex(4) } ${ x | f32 } ${ 196608 | comma }|${ "a" | pad(3) }|'
        '${ reg_list("r", 2, 3) } ${ reg_list("r", 0, 2, 4) }',
        x=-2.0,
    )
    assert text == "0x40 0x0040 0fc0000000 196,608|a  |{%r2, %r3, %r4} {%r0, %r4}\n"
