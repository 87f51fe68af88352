"""What reaches the driver and what is refused before it."""

from __future__ import annotations

import numpy as np
import ptx_kernels as kernels
from checking import Skip, backend, check, gemm, integers, poisoned, raises, torch

import runtime
from ptxgen.errors import ArgumentError, LaunchError
from ptxgen.layout import tensor_map as layout
from ptxgen.spec import Dim3, TensorMapParam
from runtime.buffers import borrow


@check
def every_parameter_arrives() -> None:
    t = torch()
    a, b = integers(96, 64), integers(80, 64)
    out = t.zeros(288, dtype=t.uint8, device="cuda")
    kernel = kernels.parameters()
    values = {"c": 201, "f": -1.5, "h": 65_535, "n": 2**40 + 3, "s": np.float16(1.5), "i": -7}
    runtime.launch(kernel, a=a, b=b, out=out, **values)
    got = out.cpu().numpy().tobytes()
    assert got[0] == 201
    assert np.frombuffer(got, np.float32, 1, 4)[0] == -1.5
    assert np.frombuffer(got, np.uint16, 1, 136)[0] == 65_535
    assert np.frombuffer(got, np.uint64, 1, 272)[0] == 2**40 + 3
    assert np.frombuffer(got, np.float16, 1, 280)[0] == 1.5
    assert np.frombuffer(got, np.int32, 1, 284)[0] == -7
    maps = [p for p in kernel.spec.params if isinstance(p, TensorMapParam)]
    for param, array, at in zip(maps, (a, b), (8, 144), strict=True):
        ours = layout.encode(layout.from_array(borrow(param.arg, array).meta, param))
        assert got[at : at + 128] == ours, f"{param.name}: not the bytes of our encoder"


@check
def our_tensor_maps_are_the_drivers() -> None:
    # Padding, every swizzle, three axes, a permuted walk, NaN fill: byte for byte.
    t = torch()
    base = t.zeros(6, 40, 128, dtype=t.bfloat16, device="cuda")
    for view, axes, box, swizzle, fill in (
        (base[0], (0, 1), (32, 64), 128, "zero"),
        (base[0][:, :72], (0, 1), (8, 32), 64, "nan"),
        (base[1][::2], (0, 1), (8, 16), 32, "zero"),
        (base, (0, 1, 2), (2, 8, 8), 0, "zero"),
        (base, (1, 0, 2), (8, 2, 64), 128, "zero"),
        (base[:, :1], (0, 1, 2), (1, 1, 8), 0, "zero"),
    ):
        param = TensorMapParam(
            name="x", arg="x", dtype="bf16", axes=axes, box=box, swizzle=swizzle, fill=fill
        )  # type: ignore[arg-type]
        ref = borrow("x", view)
        theirs = backend().tensor_map(ref, param)
        assert theirs == layout.encode(layout.from_array(ref.meta, param)), (axes, box, swizzle)


@check
def clusters_of_all_sizes() -> None:
    t = torch()
    for size in (1, 2, 4, 8, 16):
        kernel = kernels.cluster_ranks(size)
        out = t.zeros(2 * size, dtype=t.int32, device="cuda")
        runtime.launch(kernel, out=out)
        assert out.tolist() == [100 * size + rank for rank in range(size)] * 2, size
        limits = backend().load(kernel, "cuda:0").limits
        assert limits.ctas % size == 0
        assert limits.ctas >= limits.sms // 2, limits
    with raises(ArgumentError, "multiple of cluster.x=4"):
        runtime.launch(kernels.cluster_ranks(4), out=out, grid=6)


@check
def dynamic_smem_opt_in() -> None:
    # Around 48 KiB with a static byte: the default limit counts both. Then up, down, up.
    out = torch().zeros(1, dtype=torch().int32, device="cuda")
    for size in (49_151, 49_152, 49_153, 65_536, 4, 65_536, 200_000):
        out.zero_()
        runtime.launch(kernels.touch_smem(size), out=out)
        assert out.item() == 12, size
    with raises(LaunchError, "232,448"):
        runtime.launch(kernels.touch_smem(232_448), out=out)


@check
def no_cluster_fits() -> None:
    kernel = kernels.cluster_ranks(16)
    spec = kernels._spec("cluster_ranks", *kernel.spec.params, cluster=Dim3(16), smem_bytes=232_448)
    out = torch().zeros(32, dtype=torch().int32, device="cuda")
    try:
        runtime.launch(kernels.PtxKernel(kernel.ptx, spec, Dim3(16)), out=out)
    except LaunchError as error:
        message = str(error)
    else:
        raise Skip("16 CTAs of 227 KiB do fit one GPC here")
    for words in ("0 clusters fit", "16x1x1", "232,448"):
        assert words in message, message


@check
def bad_arguments_are_named() -> None:
    t = torch()
    a, b, d = integers(128, 64), integers(64, 64), poisoned(128, 64)
    good = {"a": a, "b": b, "d": d}
    kernel = gemm()
    base = integers(128, 136)
    for change, words in (
        ({"a": a.cpu()}, ("a=an array in host memory", "cuda:0")),
        ({"a": np.zeros((128, 64), np.float32)}, ("host memory",)),
        ({"a": a.half()}, ("a=f16", "must be bf16")),
        ({"b": integers(64, 72)}, ("K of b",)),
        ({"a": base[:, 1:65]}, ("2 B past one",)),
        ({"a": base[:, :128:2]}, ("contiguous",)),
        ({"a": integers(64, 128).T}, ("contiguous K", "a_major=mn")),
        ({"a": integers(128, 100)[:, :64]}, ("200",)),
        ({"d": t.empty(128, 129, dtype=t.bfloat16, device="cuda")}, ("N of d",)),
        ({"d": a}, ("must not overlap a",)),
        ({"d": t.empty(1, dtype=t.bfloat16, device="cuda").expand(128, 64)}, ("0 B",)),
    ):
        with raises(ArgumentError, *words):
            runtime.launch(kernel, **{**good, **change})
    runtime.launch(kernel, **good)


@check
def a_host_array_goes_to_the_emulator() -> None:
    # the choice alone: the cuda backend, asked for by name, refuses it with the cure
    x = np.zeros(32, np.float32)
    with raises(ArgumentError, "host memory", "emulator"):
        runtime.launch(kernels.add_one(), x=x, y=x.copy(), backend="cuda")
