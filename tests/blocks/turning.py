"""The kernel of pingpong.ptx.j2, and what the turns of two consumers are defined to be."""

from __future__ import annotations

from typing import Any

import numpy as np
from block_kernel import BlockKernel, block_kernel
from machines import POISON, Runner

from ptxgen.kernels.gemm_schedule import Turns
from ptxgen.spec import PointerParam, ScalarParam

UNTOUCHED = int.from_bytes(bytes([POISON] * 4), "little")
PARAMS = (
    *(
        PointerParam(name=name, arg=name, dtype="u32", access="write")
        for name in ("by", "seen", "began", "ended")
    ),
    PointerParam(name="tickets", arg="tickets", dtype="u32", access="read_write"),
    ScalarParam(name="tiles", ptx_type="u32"),
    ScalarParam(name="k_tiles", ptx_type="u32"),
)  # fmt: skip


def turns_of(stages: int, ctas: int) -> BlockKernel:
    turns = Turns(taken=True, barrier=3, threads=256)
    return block_kernel("pingpong", PARAMS, block=256, grid=ctas, turns=turns, stages=stages)


def assert_turns(
    kernel: Any, runner: Runner, *, stages: int, tiles: int, k: int, ctas: int, **emulator: Any
) -> None:
    """CTA c has the tiles c, c + ctas, ...; the j-th is consumer j % 2's, and begins when the one
    before has seen its last stage. Its k stages are the CTA's stages j k, j k + 1, ..."""
    got = runner.run(
        kernel, {},
        {name: ((tiles,), np.uint32) for name in ("by", "began", "ended")}
        | {"seen": ((tiles, max(k, 1)), np.uint32)},
        updated={"tickets": np.zeros(ctas, np.uint32)},
        args={"tiles": tiles, "k_tiles": k}, emulator=emulator,
    )  # fmt: skip
    of_cta = np.arange(tiles) // ctas
    assert (got["by"] == of_cta % 2).all()
    if not k:
        assert (got["seen"] == UNTOUCHED).all()  # nobody waits for a stage, nor for a turn
        return
    stage = of_cta[:, None] * k + np.arange(k)
    assert (got["seen"] == 2 * (stage % stages) + stage // stages % 2).all()
    assert (got["began"] == 2 * of_cta).all()
    assert (got["ended"] == 2 * of_cta + 1).all()
