"""What a notebook is given for everything that can be looked at: text, and HTML in its theme."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cells import representations

import ptxgen
import runtime
from ptxgen.layout.access import access
from ptxgen.layout.smem_desc import SmemDesc
from ptxgen.layout.swizzle import SWIZZLES
from ptxgen.models.calculators import calculator
from ptxgen.spec import ArrayMeta, DeviceLimits
from ptxgen.toolchain.paths import check_paths
from ptxgen.toolchain.sassmap import sass_map

SMALL = "gemm:tile=64x64x64,stages=3,cluster=1x1"


@pytest.fixture(scope="module")
def k() -> ptxgen.Kernel:
    return ptxgen.kernel_from(SMALL)


def plan(k: ptxgen.Kernel) -> Any:
    def matrix(rows: int, columns: int) -> ArrayMeta:
        return ArrayMeta(shape=(rows, columns), strides=(2 * columns, 2), dtype="bf16", address=256)

    arrays = {"a": matrix(64, 64), "b": matrix(64, 64), "d": matrix(64, 64)}
    return k.plan(arrays, {}, DeviceLimits(name="H200", sms=132, ctas=132))


def tensor_map(_: ptxgen.Kernel) -> Any:
    return runtime.tensor_map(np.zeros((64, 64), ml_dtypes.bfloat16), box=(8, 64), swizzle=128)


# What it is, where it comes from, and words that its page must hold.
PURE: dict[str, tuple[Callable[[ptxgen.Kernel], Any], str]] = {
    "kernel": (lambda k: k, "contract"),
    "PTX": (lambda k: k.ptx, "kernels/gemm.ptx.j2:"),
    "foreign kernel": (lambda k: ptxgen.load_ptx(k.ptx), "tmap_a"),
    "spec": (lambda k: k.spec, "tensor map, box 64x64, swizzle 128"),
    "plan": (plan, "grid, in CTAs"),
    "shared memory": (lambda k: k.source.smem, "ring of A tiles"),
    "swizzle": (lambda k: SWIZZLES[64], "<svg"),
    "descriptor": (lambda k: SmemDesc(sbo=1024), "<svg"),
    "tensor map": (tensor_map, "driver dim"),
    "access": (lambda k: access("tid*32"), "32-way"),
    "record": (lambda k: calculator("feed").run({}), "tensor"),
    "sweep": (lambda k: calculator("feed").run({"n": [8, 16]}), "bound"),
}
ASSEMBLED: dict[str, tuple[Callable[[ptxgen.Kernel], Any], str]] = {
    "report": (lambda k: k.report(), "time of a stage"),
    "cubin": (lambda k: k.assembly, "ptxas"),
    "verify": (lambda k: k.verify(), "checks hold"),
    "SASS": (lambda k: k.sass, "HGMMA"),
    "diff": (lambda k: k.diff(k), "same"),
    "paths": (lambda k: check_paths(k.sass, k.ptx)[0], "wgmma"),
    "SASS map": (lambda k: sass_map(k.cubin, ptx=k.ptx), "schedule"),
}


def check(value: Any, words: str) -> None:
    bundle = representations(value)
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"].strip()
    assert "\x1b" not in bundle["text/plain"]
    html = bundle["text/html"]
    assert words in html
    assert '<div class="pg-view">' in html, "it follows the notebook's theme"
    assert "<script" not in html
    for tag in ("div", "table", "span", "svg", "details", "pre"):
        assert html.count(f"<{tag}>") + html.count(f"<{tag} ") == html.count(f"</{tag}>"), tag


@pytest.mark.unit
@pytest.mark.parametrize("name", PURE)
def test_without_tools(k: ptxgen.Kernel, name: str) -> None:
    make, words = PURE[name]
    check(make(k), words)


@pytest.mark.asm
@pytest.mark.parametrize("name", ASSEMBLED)
def test_what_ptxas_made(k: ptxgen.Kernel, name: str) -> None:
    make, words = ASSEMBLED[name]
    check(make(k), words)


@pytest.mark.asm
def test_a_broken_promise_says_why(k: ptxgen.Kernel) -> None:
    report = k.check_sass()
    bad = replace(report.rows[0], ok=False, why="it <matters>")
    html = replace(report, rows=(bad, *report.rows[1:])).html()
    assert "1 of" in html
    assert "why: it &lt;matters&gt;" in html


@pytest.mark.emu
def test_a_run(k: ptxgen.Kernel) -> None:
    a = np.ones((64, 64), ml_dtypes.bfloat16)
    d = np.zeros((64, 64), ml_dtypes.bfloat16)
    runtime.launch(k, a=a, b=a, d=d)
    check(runtime.wait(d), "tma load bytes")


@pytest.mark.unit
def test_a_kernel_is_short_in_a_terminal(k: ptxgen.Kernel) -> None:
    """In IPython a kernel is one line, as in messages; its text is asked for."""
    assert representations(k)["text/plain"] == str(k) == repr(k) == f"<Kernel {k.reference}>"
    assert representations(k.ptx)["text/plain"] == k.ptx
    assert k.text().count("\n") < 80


@pytest.mark.unit
def test_themes() -> None:
    """How three notebooks say that they are dark is known; a page of its own follows the reader."""
    html = representations(SWIZZLES[128])["text/html"]
    for sign in ("[data-jp-theme-light=false]", ".vscode-dark", "html[theme=dark]"):
        assert sign in html
