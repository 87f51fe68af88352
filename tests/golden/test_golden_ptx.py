"""The PTX of a few kernels, kept as files: what changed in it is seen in a review.

`make golden` rewrites the files and prints what changed: instructions that came, went or moved to
another count, directives, and comments.
"""

from __future__ import annotations

import difflib
from collections import Counter
from pathlib import Path

import pytest

import ptxgen
from ptxgen.ptx import parse, signature

pytestmark = pytest.mark.unit

FOLDER = Path(__file__).parent
# One of each kind: the default, with everything on; the smallest, with a cluster of one; K split
# and swapped, with partial sums and a transposed store; a batch of fp8 in the largest cluster; two
# consumers that take turns; clusters that share out tiles.
KERNELS = {
    "gemm/default.ptx": "gemm",
    "gemm/small_f32.ptx": "gemm:tile=64x64x64,out_dtype=f32,stages=2,cluster=1x1,wait_depth=0",
    "gemm/split_swapped.ptx": "gemm:tile=64x16,split_k=2,swap_ab=1,stages=2,cluster=1x1",
    "gemm/fp8_scaled.ptx": "gemm:dtype=e4m3,scales=row,amax=1,out_scale=1,out_dtype=e4m3,"
    "accumulate=promoted,wait_depth=0,tile=64x32,cluster=1x1,stages=2",
    "gemm/gated.ptx": "gemm:gated=1,activation=silu,tile=64x32,cluster=1x1,stages=2",
    "quantize/row.ptx": "quantize",
    "gemm/pingpong.ptx": "gemm:schedule=pingpong,tile=64x64,stages=3",
    "gemm/stream_k.ptx": "gemm:schedule=stream_k,tile=64x64,stages=3",
    "gemm/fp8_batched.ptx": "gemm:dtype=e4m3,out_dtype=e5m2,batched=1,tile=64x64,cluster=2x2",
}


def instructions(ptx: str) -> list[str]:
    return [str(instruction) for instruction in parse(ptx).entry().instructions()]


def semantic_diff(old: str, new: str) -> str:
    """What a machine would notice of a change, then what a reader would."""
    rows: list[str] = []
    before, after = signature(parse(old)), signature(parse(new))
    if before != after:
        rows += [f"signature  was {before}", f"           is  {after}"]
    counts, now = (Counter(i.split(" ")[0] for i in instructions(text)) for text in (old, new))
    for name in sorted(counts | now):
        if counts[name] != now[name]:
            rows.append(f"{counts[name]:4} -> {now[name]:4}  {name}")
    if instructions(old) != instructions(new):
        rows += [
            line
            for line in difflib.unified_diff(instructions(old), instructions(new), lineterm="", n=0)
            if not line.startswith(("---", "+++", "@@"))
        ][:40]
    if not rows and old != new:
        changed = [
            line for line in difflib.ndiff(old.splitlines(), new.splitlines()) if line[0] in "+-"
        ]
        rows = ["the same instructions; comments or layout:", *changed[:40]]
    return "\n".join(rows)


@pytest.mark.parametrize("name", KERNELS)
def test_golden_ptx(name: str, request: pytest.FixtureRequest) -> None:
    path = FOLDER / name
    new = str(ptxgen.kernel_from(KERNELS[name]).ptx)
    old = path.read_text(encoding="utf-8") if path.is_file() else ""
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(new, encoding="utf-8")
        if old and old != new:
            with request.config.pluginmanager.getplugin(
                "capturemanager"
            ).global_and_fixture_disabled():
                print(f"\n{name} ({KERNELS[name]})\n{semantic_diff(old, new)}")
        return
    assert old, f"{path} is missing: run `make golden`"
    if old != new:
        pytest.fail(f"{name} changed; if it should: `make golden`\n{semantic_diff(old, new)}")


def test_no_golden_file_is_left_over() -> None:
    found = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.ptx")}
    assert found == set(KERNELS)


def test_the_diff_tells_machine_from_reader() -> None:
    old = str(ptxgen.kernel_from("gemm:tile=64x64x64,stages=2").ptx)
    deeper = str(ptxgen.kernel_from("gemm:tile=64x64x64,stages=3").ptx)
    assert semantic_diff(old, old) == ""
    assert "mbarrier.init.shared::cta.b64" in semantic_diff(old, deeper)
    assert semantic_diff(old, old.replace("everybody", "all")).startswith("the same instructions")
    assert "signature" in semantic_diff(old, old.replace(".reqntid 256", ".reqntid 384"))
