"""Arrays, compilers and graphs of others: torch.compile, CUDA graphs, CuPy, JAX, the notebook."""

from __future__ import annotations

import gc
import runpy
from typing import Any

import ptx_kernels as kernels
from checking import HERE, Skip, check, cupy, gemm, integers, poisoned, product, raises, torch

import runtime
from ptxgen.errors import ArgumentError


@check
def torch_compile_traces_through_ops_gemm() -> None:
    t = torch()
    a, w = integers(300, 200), integers(520, 200)
    for options in ({}, {"mode": "reduce-overhead"}, {"dynamic": True}):
        t._dynamo.reset()
        layer = t.compile(
            lambda a, w: t.relu(runtime.ops.gemm(a * 2, w.T)) + 1, fullgraph=True, **options
        )
        for _ in range(3):  # "reduce-overhead": warm up, capture, replay
            out = layer(a, w)
            assert t.equal(out, t.relu(product(a * 2, w).to(a.dtype)) + 1), options
    narrow = integers(129, 200)  # rows of the result are padded
    assert t.equal(layer(a, narrow), t.relu(product(a * 2, narrow).to(a.dtype)) + 1)


@check
def gradients_are_those_of_torch() -> None:
    t = torch()
    for compiled in (False, True):
        a, w = integers(300, 200).requires_grad_(), integers(520, 200).requires_grad_()
        x, y = (v.detach().double().requires_grad_() for v in (a, w))
        d = integers(300, 520)
        layer = lambda a, w: runtime.ops.gemm(a, w.T)  # noqa: E731
        if compiled:  # the compiler traces both directions
            t._dynamo.reset()
            layer = t.compile(layer, fullgraph=True)
        layer(a, w).backward(d)
        (x @ y.T).backward(d.double())
        for ours, exact in ((a, x), (w, y)):
            assert t.equal(ours.grad, exact.grad.to(a.dtype))
    with raises(ArgumentError, "must be 'copy'"):
        runtime.ops.gemm(x.float(), y.float().T, precision="tf32")


@check
def ops_gemm_inside_a_graph() -> None:
    # The result comes from the graph's own pool, and lives as long as the graph.
    t = torch()
    a, w = integers(300, 200), integers(520, 200)
    runtime.ops.gemm(a, w.T)  # loaded before the capture
    graph = t.cuda.CUDAGraph()
    with t.cuda.graph(graph):
        out = runtime.ops.gemm(a, w.T)
    for _ in range(2):
        a.copy_(integers(300, 200))
        graph.replay()
        t.cuda.synchronize()
        assert t.equal(out, product(a, w).to(a.dtype))


@check
def a_prepared_launch_keeps_its_buffers_alive_in_a_graph() -> None:
    t = torch()
    kernel = gemm()

    def capture() -> tuple[Any, Any, Any, Any]:
        a, b, d = integers(128, 64), integers(64, 64), poisoned(128, 64)
        prepared = runtime.prepare(kernel, a=a, b=b, d=d)
        prepared()
        graph = t.cuda.CUDAGraph()
        with t.cuda.graph(graph):
            prepared()
        return graph, prepared, product(a, b).to(d.dtype), d

    graph, prepared, expected, d = capture()
    gc.collect()
    scraps = [t.zeros(128, 64, dtype=t.bfloat16, device="cuda") for _ in range(64)]
    d.fill_(float("nan"))
    graph.replay()
    t.cuda.synchronize()
    assert t.equal(d, expected), "an input's memory was given away while the graph needs it"
    del scraps, prepared


@check
def cupy_arrays() -> None:
    cp = cupy()
    rng = cp.random.default_rng(0)
    a, w = (rng.integers(-2, 3, (x, 128)).astype(cp.float16) for x in (96, 64))
    for _ in range(2):
        out = runtime.ops.gemm(a, w.T)
        assert isinstance(out, cp.ndarray)
        assert bool((out == (a.astype(cp.float64) @ w.astype(cp.float64).T)).all())
    x, y = cp.ones(32, cp.float32), cp.zeros(32, cp.float32)
    kernel = kernels.add_one()
    side = cp.cuda.Stream(non_blocking=True)
    for _ in range(2):
        with side:
            y.fill(0)
            runtime.launch(kernel, x=x, y=y)
            side.synchronize()
        assert float(y.sum()) == 64
    with side:
        side.begin_capture()
        runtime.launch(kernel, x=x, y=y)
        graph = side.end_capture()
    y.fill(0)
    cp.cuda.Device().synchronize()
    graph.launch(side)
    side.synchronize()
    assert float(y.sum()) == 64


@check
def jax_arrays() -> None:
    try:
        import jax
    except ImportError as error:
        raise Skip(f"JAX is not installed: {error}") from None
    if jax.default_backend() != "gpu":
        raise Skip("JAX has no GPU here")
    a, w = jax.numpy.ones((96, 128), "bfloat16"), jax.numpy.ones((64, 128), "bfloat16")
    from jax.experimental.layout import Format, Layout

    # JAX keeps a transpose row-major unless it is told otherwise.
    b = jax.device_put(w.T, Format(Layout(major_to_minor=(1, 0)), w.sharding))
    out = runtime.ops.gemm(a, b)
    assert isinstance(out, jax.Array)
    assert bool((out == 128).all())


@check
def jax_on_the_cpu_goes_to_the_emulator() -> None:
    try:
        import jax
    except ImportError as error:
        raise Skip(f"JAX is not installed: {error}") from None
    with jax.default_device(jax.devices("cpu")[0]):
        a, w = jax.numpy.ones((8, 64), "bfloat16"), jax.numpy.ones((16, 64), "bfloat16")
    d = integers(8, 16).cpu()
    runtime.launch(gemm(), a=a, b=w, d=d)
    assert bool((d == 64).all())


@check
def the_tour_runs() -> None:
    # Every cell, with arrays on the GPU.
    runner = runpy.run_path(str(HERE.parent / "notebook" / "cells.py"))
    ran = runner["run_notebook"](HERE.parents[1] / "examples" / "notebooks" / "tour.ipynb")
    assert ran.names["where"] == "cuda", ran.names["where"]
