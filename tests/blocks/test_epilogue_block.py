"""The epilogue block: accumulators reach every element of D once, for all types and box widths."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from block_kernel import BlockKernel, block_kernel
from machines import Runner

from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_shape import Gemm
from ptxgen.isa.dtypes import dtype
from ptxgen.kernels.gemm_store import store
from ptxgen.spec import PointerParam, ScalarParam, TensorMapParam

pytestmark = pytest.mark.emu


def epilogue(g: Gemm, grid: int) -> BlockKernel:
    """One consumer's epilogue of a GEMM, on accumulators that are loaded instead of summed."""
    pieces = [
        # four registers cover 8 columns of rows g and g + 8
        SimpleNamespace(acc=block * g.tile_n // 2 + 4 * eight + 2 * half,
                        row=64 * block + 8 * half, column=8 * eight)
        for block in range(g.rows // 64) for eight in range(g.tile_n // 8) for half in range(2)
    ]  # fmt: skip
    tmap_d = TensorMapParam(
        name="tmap_d", arg="d", dtype=g.problem.output.name, axes=(0, 1), use="store",
        box=g.store_box, swizzle=g.store_swizzle.span,
    )  # fmt: skip
    params = (
        tmap_d,
        PointerParam(name="c", arg="c", dtype="f32"),
        ScalarParam(name="m_tiles", ptx_type="u32"),
        ScalarParam(name="pitch", ptx_type="u32"),
    )
    return block_kernel(
        "epilogue", params, block=128, grid=grid, smem_bytes=g.store_slabs * g.slab_bytes,
        store=store(g), accumulators=g.accumulators, rows=g.rows, columns=g.tile_n,
        pieces=pieces,
    )  # fmt: skip


def one_consumer(tile_n: int, out: str, rows: int = 64, **fields: Any) -> Gemm:
    config = GemmConfig(tile=(rows, tile_n, 64), stages=2, cluster=(1, 1), consumers=1, **fields)
    return Gemm(GemmProblem(dtype="bf16", out_dtype=out), config).require()


CASES = [
    # box widths 8, 16, 32, 64 of 16-bit D: swizzle none, 32, 64, 128; 8, 16, 32 of f32
    *(pytest.param(one_consumer(n, out), id=f"{out}-{n}")
      for out in ("bf16", "f16", "f32") for n in (8, 16, 32, 64, 24, 96, 256)),
    pytest.param(one_consumer(64, "bf16", rows=128), id="bf16-two row blocks"),
    pytest.param(one_consumer(64, "f32", rows=128), id="f32-two row blocks"),
    # one slab a tile; as many slabs as a tile has; a ring of three
    pytest.param(one_consumer(128, "bf16", store_n=128), id="one slab"),
    pytest.param(one_consumer(256, "bf16", store_slabs=4), id="four slabs"),
    pytest.param(one_consumer(96, "f32", store_n=32, store_slabs=3), id="three slabs"),
    # boxes as wide as the slab, of 7, 5 and 25 chunks of 16 bytes: nothing is swizzled
    *(pytest.param(one_consumer(56, out), id=f"{out}-56") for out in ("bf16", "f16")),
    pytest.param(one_consumer(200, "bf16", rows=128, store_n=40, store_slabs=5), id="five of 40"),
    pytest.param(one_consumer(200, "f16", store_n=200), id="one of 200"),
]  # fmt: skip


@pytest.mark.parametrize("g", CASES)
def test_every_element_arrives_once(g: Gemm, runner: Runner, rng: np.random.Generator) -> None:
    """Three tiles down, two across, D a little smaller: the ring of slabs wraps, TMA clips."""
    tiles, grid = 3, 2
    m, n = tiles * g.rows, grid * g.tile_n
    kernel = epilogue(g, grid)
    c = rng.permuted(np.resize(np.arange(-256, 257, dtype=np.float32), m * n)).reshape(m, n)
    element = dtype(g.problem.output.name)
    clip_m, clip_n = m - 5, n - (8 if g.tile_n > 8 else 0)
    d = runner.run(
        kernel, {"c": c}, {"d": ((clip_m, clip_n), element.np_dtype)},
        args={"m_tiles": tiles, "pitch": n},
        emulator={"mode": "latest"},  # reads the slabs as late as it may: reuse would show
    )["d"]  # fmt: skip
    assert np.array_equal(d.astype(np.float32), c[:clip_m, :clip_n])


@pytest.mark.parametrize("out", ["bf16", "f16", "f32"])
def test_rounding_is_to_nearest_even(out: str, runner: Runner) -> None:
    """Ties, overflow of f16, signed zeros, NaN: one rounding, as NumPy does it."""
    g = one_consumer(8, out)
    c = np.zeros((64, 8), np.float32)
    c[0] = [1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-11, 65519.0, 65520.0, -0.0, np.inf, np.nan]
    c[1] = [1e-7, 6e-8, 2.0**-25, 1e38, -1e38, 3.0, 257.0, 259.0]
    element = dtype(out).np_dtype
    kernel = epilogue(g, 1)
    scalars = {"m_tiles": 1, "pitch": 8}
    d = runner.run(kernel, {"c": c}, {"d": ((64, 8), element)}, args=scalars)["d"]
    with np.errstate(over="ignore"):
        want = c.astype(element)
    finite = ~np.isnan(c)
    assert np.array_equal(d[finite].tobytes(), want[finite].tobytes())
    assert np.isnan(d.astype(np.float32))[~finite].all()
