"""Which start coordinates of a box a tensor copy takes, and which end the kernel.

Each probe runs in a process of its own, since one that faults loses the context.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from lab import Fact, Lab, Map, aligned_bytes, has_gpu, leave, run_guarded, say
from tma_probe import load, store

import ptxgen
from ptxgen.errors import PtxgenError

FACT = Fact(id="tma_coordinates", question="Where may the box of a tensor copy start?")
ROWS, PITCH = 16, 128  # bytes of a row
BOX_ROWS, BOX_BYTES = 8, 64
LIMIT_S = 20.0
Probe = tuple[str, int, int, int]  # load, store or prefetch; bytes an element; x; y

INNER: Sequence[Probe] = tuple(
    (what, size, x, 0)
    for what, sizes in (("load", (1, 2, 4, 8)), ("store", (2, 4)), ("prefetch", (4,)))
    for size in sizes
    for x in (1, 8 // size, 16 // size, 24 // size, -16 // size)
    if not (what == "store" and x < 0) and not (x == 1 and size == 8)
)
OUTER: Sequence[Probe] = tuple(
    (what, 4, x, y)
    for what in ("load", "store")
    for x, y in ((0, 1), (0, ROWS), (PITCH // 4, 0), (1 << 20, 1 << 20), (0, -3), (-4, 0))
)
PREFETCH = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry prefetch(
.param .align 64 .b8 tmap[128], .param .u64 memory, .param .s32 x, .param .s32 y
)
.reqntid 1, 1, 1
{
.reg .s32 %x, %y;
.reg .b64 %tmap;
ld.param.s32 %x, [x];
ld.param.s32 %y, [y];
mov.b64 %tmap, tmap;
cvta.param.u64 %tmap, %tmap;
cp.async.bulk.prefetch.tensor.2d.L2.global [%tmap, {%x, %y}];
ret;
}
"""


def perform(probe: Probe, backend: str) -> None:
    """One copy; it raises where the hardware, or the emulator, does not take it."""
    what, size, x, y = probe
    memory = aligned_bytes(ROWS * PITCH)
    tensor = memory.reshape(ROWS, PITCH).view(f"u{size}")
    tmap = Map(array=tensor, box=(BOX_ROWS, BOX_BYTES // size))
    lab = Lab(backend)
    if what == "load":
        load(lab, tmap, x, y, bytes_=BOX_ROWS * BOX_BYTES)
    elif what == "store":
        image = np.full(BOX_ROWS * BOX_BYTES, 0x11, np.uint8)
        store(lab, tmap, image, memory, x, y)
    else:
        lab.run(ptxgen.load_ptx(PREFETCH), tmap=tmap, memory=memory, x=x, y=y)


def emulate(probe: Probe) -> str:
    try:
        perform(probe, "emulator")
    except PtxgenError:
        return "fails"
    return "runs"


def ask(probe: Probe) -> str:
    """What the GPU does."""
    command = [sys.executable, __file__, "--probe", ",".join(map(str, probe))]
    done = run_guarded(command, LIMIT_S)
    if done.code is None:
        return "hangs"
    if done.code == 0:
        return "runs"
    errors = [line for line in done.err.splitlines() if "Error" in line]
    words = " ".join(errors or done.err.splitlines()[-1:])
    return next((w.strip("(:") for w in words.split() if w.startswith("CUDA_ERROR")), "fails")


def finding(verdicts: dict[Probe, str]) -> str:
    """One sentence about the innermost axis, and what is odd elsewhere."""
    inner = [(probe[1] * probe[2] % 16 == 0, verdicts[probe]) for probe in INNER]
    aligned = [how for is_aligned, how in inner if is_aligned]
    others = [how for is_aligned, how in inner if not is_aligned]
    faults = sorted(set(others) - {"runs"})
    outer = [f"{_name(p)}: {verdicts[p]}" for p in OUTER]
    return (
        f"an innermost coordinate of whole 16-byte steps: {aligned.count('runs')} of "
        f"{len(aligned)} run; between them: {others.count('runs')} of {len(others)} run, the rest "
        f"ends with {' or '.join(faults) or 'nothing'}; of 4-byte elements, boxes outside a tensor "
        f"of {ROWS} x {PITCH // 4}: {', '.join(outer)}"
    )


def _name(probe: Probe) -> str:
    what, _, x, y = probe
    return f"{what} at ({x}, {y})"


def main() -> None:
    parser = argparse.ArgumentParser(description=FACT.question)
    parser.add_argument("--probe")
    parser.add_argument("--backend", choices=("cuda", "emulator"))
    parser.add_argument("--raw", help="accepted and unused: there is nothing to keep")
    options = parser.parse_args()
    backend = options.backend or ("cuda" if has_gpu() else "emulator")
    if options.probe:
        what, *numbers = options.probe.split(",")
        size, x, y = map(int, numbers)
        perform((what, size, x, y), "cuda")
        return
    probes = list(dict.fromkeys([*INNER, *OUTER]))
    with ThreadPoolExecutor(4) as pool:
        asked = pool.map(ask if backend == "cuda" else emulate, probes)
        verdicts = dict(zip(probes, asked, strict=True))
    emulated = {probe: emulate(probe) for probe in probes} if backend == "cuda" else verdicts
    different = [_name(p) for p in probes if (verdicts[p] == "runs") != (emulated[p] == "runs")]
    numbers_ = {f"{_name(p)} of {p[1]} B": verdicts[p] for p in probes}
    agrees = "agrees" if not different else f"differs in {'; '.join(different)}"
    more = {"emulator": agrees} if backend == "cuda" else {}
    say(FACT, finding(verdicts), numbers_, backend=backend, **more)


if __name__ == "__main__":
    leave(main)
