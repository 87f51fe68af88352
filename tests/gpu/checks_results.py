"""GEMM results, every parameter, tensor maps, and loading from PTX alone."""

from __future__ import annotations

import ptx_kernels as kernels
from checking import backend, check, gemm, integers, poisoned, product, raises, torch

import runtime
from ptxgen.errors import AdvisoryError, ArgumentError, DriverError
from ptxgen.spec import Dim3


@check
def gemm_is_exact_on_integers() -> None:
    # a tile and a bit in every axis; one row; no depth; many tiles for each CTA; cluster; f16, f32
    for fields, dtype, out, shape in (
        ({}, "bfloat16", "bfloat16", (64, 64, 64)),
        ({}, "bfloat16", "bfloat16", (127, 136, 72)),
        ({}, "bfloat16", "bfloat16", (1, 8, 8)),
        ({}, "bfloat16", "bfloat16", (64, 64, 0)),
        ({"out_dtype": "f32"}, "bfloat16", "float32", (2048, 1024, 256)),
        ({"cluster": (2, 1)}, "bfloat16", "bfloat16", (300, 520, 200)),
        ({"cluster": (1, 2), "dtype": "f16"}, "float16", "float16", (300, 520, 200)),
    ):
        m, n, k = shape
        a, b = integers(m, k, dtype), integers(n, k, dtype)
        d = poisoned(m, n, out)
        runtime.launch(gemm(**fields), a=a, b=b, d=d)
        expected = product(a, b).to(d.dtype)
        assert torch().equal(d, expected), f"{fields} {shape}: {int((d != expected).sum())} wrong"


@check
def ops_gemm_equals_torch() -> None:
    a, w = integers(300, 200), integers(520, 200)
    assert torch().equal(runtime.ops.gemm(a, w.T), product(a, w).to(a.dtype))
    out = runtime.ops.gemm(a, integers(129, 200).T)  # 258 B of columns: padded rows
    assert out.shape == (300, 129)
    assert out.stride(0) % 8 == 0
    b = integers(200, 520)  # row-major, so with N contiguous
    assert torch().equal(runtime.ops.gemm(a, b), product(a, b.T).to(a.dtype))
    with raises(ArgumentError, "w.T"):
        runtime.ops.gemm(a, w)


@check
def ops_gemm_random_within_tolerance() -> None:
    t = torch()
    a, w = (t.randn(x, 512, device="cuda").bfloat16() for x in (384, 640))
    out = runtime.ops.gemm(a, w.T, out_dtype="f32")
    exact = product(a, w)
    assert float((out - exact).abs().max() / exact.abs().max()) < 1e-5


@check
def kernels_run_from_ptx_alone() -> None:
    t = torch()
    x, y = t.arange(32, device="cuda").float(), t.zeros(32, device="cuda")
    kernel = kernels.add_one(assembled=False)
    runtime.launch(kernel, x=x, y=y)
    assert t.equal(y, x + 1)
    assert backend().load(kernel, "cuda:0").registers > 0


@check
def setmaxnreg_survives_loading_ptx() -> None:
    # The driver's assembler must see the register count at entry, as ptxas does.
    kernel = gemm(tile=(128, 256, 64), stages=4)
    bare = kernels.PtxKernel(kernel.ptx, kernel.spec, Dim3(1), assembled=False)
    from_ptx = backend().load(bare, "cuda:0").registers
    from_cubin = backend().load(kernel, "cuda:0").registers
    assert from_ptx == from_cubin == 168, (from_ptx, from_cubin)


@check
def the_drivers_assembler_is_heard() -> None:
    out = torch().zeros(1, dtype=torch().int32, device="cuda")
    with raises(AdvisoryError, "setmaxnreg"):
        runtime.launch(kernels.dropped_setmaxnreg(), out=out)
    with raises(DriverError, "u33", "assembling bad"):
        runtime.launch(kernels.bad_ptx(), out=out)
