"""nvdisasm on cubins of every ptxas of this machine."""

from __future__ import annotations

import random
import re
import subprocess
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ptxgen.errors import ToolchainError
from ptxgen.toolchain.assemble import assemble
from ptxgen.toolchain.cache import Store
from ptxgen.toolchain.disassemble import disassemble
from ptxgen.toolchain.discover import Tool, tool_at
from ptxgen.toolchain.dump import DumpWarning
from ptxgen.toolchain.lineinfo import line_tables
from ptxgen.toolchain.sass import count

pytestmark = pytest.mark.asm


def listing(cubin: bytes, tool: Tool, folder: Path) -> dict[str, list[tuple[int, int | None, str]]]:
    """nvdisasm's own text: (address, PTX line, opcode) of every instruction, by function."""
    path = folder / "k.cubin"
    path.write_bytes(cubin)
    text = subprocess.run(
        [tool.path, "-c", "-gp", path], capture_output=True, text=True, check=True
    ).stdout
    functions: dict[str, list[tuple[int, int | None, str]]] = {}
    line: int | None = None
    for row in text.splitlines():
        if found := re.match(r"\.text\.(\S+):", row):
            rows = functions.setdefault(found[1], [])
            line = None
        elif found := re.search(r"//## File .*, line (\d+)$", row):
            line = int(found[1])
        elif found := re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+ )?([A-Z0-9][\w.]*)", row):
            rows.append((int(found[1], 16), line, found[2]))
    return functions


@pytest.mark.parametrize("name", ["wgmma_ring", "two_entries"])
def test_agrees_with_the_listing(
    assembler: Tool, disassembler: Tool, store: Store, data: Path, tmp_path: Path, name: str
) -> None:
    """Addresses, opcodes and PTX lines are those of nvdisasm's own text."""
    cubin = assemble((data / f"{name}.ptx").read_text(), ptxas=assembler, store=store)
    sass = disassemble(cubin, nvdisasm=disassembler, store=store)
    want = listing(cubin.bytes, disassembler, tmp_path)
    got = {f.name: [(i.address, i.line, i.opcode) for i in f.instructions] for f in sass.functions}
    # Padding has no line in the text; in the table it counts to the row before.
    for function, rows in want.items():
        assert [(a, o) for a, _, o in got[function]] == [(a, o) for a, _, o in rows]
        lines = {a: n for a, n, _ in got[function]}
        assert [lines[a] for a, n, _ in rows if n is not None] == [n for _, n, _ in rows if n]
    assert got.keys() == want.keys()
    assert sass.ptxas == assembler.version_text
    assert sass.nvdisasm == disassembler.version_text
    assert sass.cubin_sha256 == cubin.sha256


def test_lines_point_at_the_instruction(
    assembler: Tool, disassembler: Tool, store: Store, ring_ptx: str
) -> None:
    sass = disassemble(
        assemble(ring_ptx, ptxas=assembler, store=store), nvdisasm=disassembler, store=store
    )
    ptx = ring_ptx.splitlines()
    for opcode, text in [
        ("USETMAXREG.DEALLOC", "setmaxnreg.dec"), ("ELECT", "elect.sync"),
        ("WARPGROUP.ARRIVE", "wgmma.fence"), ("WARPGROUP.DEPBAR", "wgmma.wait_group"),
        ("UTMALDG.2D$", "[%a_smem], [%tmap_a,"),  # the last line of that statement
        ("STG.E.128", "st.global.v4"),
    ]:  # fmt: skip
        found = [i for i in sass.function().code if i.matches(opcode)]
        assert found
        assert all(i.line is not None and text in ptx[i.line - 1] for i in found)


def test_parsed_once(assembler: Tool, disassembler: Tool, store: Store, ring_ptx: str) -> None:
    cubin = assemble(ring_ptx, ptxas=assembler, store=store)
    first = disassemble(cubin, nvdisasm=disassembler, store=store)
    assert disassemble(cubin.bytes, nvdisasm=disassembler, store=store) is first


def test_listing_is_kept_on_disk(
    disassembler: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, assembler: Tool
) -> None:
    ptx = ".version 8.0\n.target sm_90a\n.address_size 64\n.entry kept() { ret; }\n"
    cubin = assemble(ptx, ptxas=assembler, store=Store(None))
    first = disassemble(cubin, nvdisasm=disassembler, store=Store(tmp_path))
    monkeypatch.setattr("ptxgen.toolchain.disassemble._parsed", OrderedDict())
    gone = replace(disassembler, path=tmp_path / "gone")  # would fail if it were run
    assert disassemble(cubin, nvdisasm=gone, store=Store(tmp_path)) == first


def test_dump(
    disassembler: Tool, assembler: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new" / "dump"
    monkeypatch.setenv("PTXGEN_DUMP", str(folder))
    ptx = ".version 8.0\n.target sm_90a\n.address_size 64\n.entry shown() { bar.sync 0; ret; }\n"
    cubin = assemble(ptx, ptxas=assembler, store=Store(None))
    sass = disassemble(cubin, nvdisasm=disassembler, store=Store(None))
    stem = folder / f"shown-{cubin.sha256[:12]}"
    assert stem.with_suffix(".ptx").read_text() == ptx
    assert stem.with_suffix(".cubin").read_bytes() == cubin.bytes
    assert stem.with_suffix(".log").read_text() == cubin.log
    assert stem.with_suffix(".sass").read_text() == str(sass)
    assert len(list(folder.iterdir())) == 4


def test_dump_folder_that_cannot_be_written(
    assembler: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PTXGEN_DUMP", str(tmp_path / "file"))
    ptx = ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k() { ret; }\n"
    with pytest.warns(DumpWarning, match="PTXGEN_DUMP"):
        assert assemble(ptx, ptxas=assembler, store=Store(None)).bytes


def test_what_is_no_cubin(disassembler: Tool, store: Store) -> None:
    with pytest.raises(ToolchainError, match="made by an unknown tool") as caught:
        disassemble(b"not a cubin at all", nvdisasm=disassembler, store=store)
    assert str(disassembler.path) in str(caught.value)
    assert "PTXGEN_NVDISASM" in str(caught.value)


def test_disassembler_older_than_the_cubin(
    assembler: Tool, store: Store, ring_ptx: str, fake_tool: Callable[..., Path]
) -> None:
    old = tool_at(
        "nvdisasm",
        fake_tool(
            name="nvdisasm", version="11.8.0", body="echo 'nvdisasm fatal: bad ABI' >&2; exit 255"
        ),
    )
    cubin = assemble(ring_ptx, ptxas=assembler, store=store)
    with pytest.raises(ToolchainError, match="at least as new as the ptxas") as caught:
        disassemble(cubin, nvdisasm=old, store=Store(None))
    for text in ("nvdisasm 11.8.0", f"V{assembler.version_text}", "bad ABI"):
        assert text in str(caught.value)


def test_cubin_without_lines(assembler: Tool, disassembler: Tool, tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.entry bare() { bar.sync 0; ret; }\n"
    )
    subprocess.run(
        [assembler.path, "-arch=sm_90a", "k.ptx", "-o", "k.cubin"], cwd=tmp_path, check=True
    )
    sass = disassemble(
        (tmp_path / "k.cubin").read_bytes(), nvdisasm=disassembler, store=Store(None)
    )
    assert count(sass.function("bare").code, "BAR") == 1
    assert {i.line for i in sass.function().code} == {None}


def test_damaged_line_tables_do_no_harm(assembler: Tool, store: Store, ring_ptx: str) -> None:
    whole = assemble(ring_ptx, ptxas=assembler, store=store).bytes
    assert set(line_tables(whole)) == {"wgmma_ring"}
    source = random.Random(1)  # fixed, so that a failure repeats
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(20):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        line_tables(bytes(damaged[: source.randrange(len(damaged))]))
        line_tables(bytes(damaged))
