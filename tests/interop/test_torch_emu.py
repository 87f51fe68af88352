"""ops.gemm as an operator of torch, on CPU tensors and the emulator: compiled, traced, refused.

Everything runs with fullgraph=True: a break of the graph is an error. The compiler's back end is
"aot_eager", which goes through fake tensors and functionalisation and needs no C++ compiler.
"""

from __future__ import annotations

from typing import Any

import pytest

from ptxgen.configs.gemm import GemmConfig
from ptxgen.errors import ArgumentError
from runtime.ops import gemm

pytestmark = pytest.mark.emu

torch = pytest.importorskip("torch", reason="torch is not installed")

CONFIG = GemmConfig(tile=(64, 64, 64), stages=2, cluster=(1, 1))


@pytest.fixture(autouse=True)
def fresh_compiler() -> None:
    torch._dynamo.reset()


def compiled(function: Any, **more: Any) -> Any:
    return torch.compile(function, fullgraph=True, backend="aot_eager", **more)


def operands(m: int, n: int, k: int) -> tuple[Any, Any]:
    """Small integers: every product and sum is exact."""
    make = torch.Generator().manual_seed(m * n + k)
    return tuple(torch.randint(-2, 3, (x, k), generator=make).bfloat16() for x in (m, n))


def exact(a: Any, w: Any) -> Any:
    return (a.double() @ w.double().T).bfloat16()


def test_a_compiled_function_multiplies() -> None:
    a, w = operands(40, 24, 64)
    layer = compiled(lambda a, w: torch.relu(gemm(a * 2, w.T)) + 1)
    assert torch.equal(layer(a, w), torch.relu(exact(a * 2, w)) + 1)


def test_one_graph_serves_all_sizes() -> None:
    """Sizes are symbols. A result with padded rows (129 columns) is not contiguous: one more."""
    import torch._dynamo.testing

    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    layer = torch.compile(
        lambda a, w: gemm(a, w.T) + 1, fullgraph=True, backend=counter, dynamic=True
    )
    for m, n, graphs in ((40, 24, 1), (50, 32, 1), (72, 136, 1), (33, 129, 2), (34, 131, 2)):
        a, w = operands(m, n, 72)
        assert torch.equal(layer(a, w), exact(a, w) + 1)
        assert counter.frame_count == graphs, (m, n)


def test_config_and_type_of_the_result() -> None:
    a, w = operands(70, 72, 64)
    out = compiled(lambda a, w: gemm(a, w.T, config=CONFIG, out_dtype="f32"))(a, w)
    assert out.dtype == torch.float32
    assert torch.equal(out.double(), a.double() @ w.double().T)


def test_into_a_given_result() -> None:
    a, w = operands(40, 24, 64)
    out = torch.full((40, 24), float("nan"), dtype=torch.bfloat16)

    def work(a: Any, w: Any, out: Any) -> Any:
        gemm(a, w.T, out=out)
        return out * 2  # functionalisation must order this behind the write

    assert torch.equal(compiled(work)(a, w, out), exact(a, w) * 2)
    assert torch.equal(out, exact(a, w))


@pytest.mark.parametrize("n", [24, 129, 0], ids=["whole rows", "padded rows", "empty"])
def test_the_fake_kernel_tells_the_truth(n: int) -> None:
    """torch's own checks: schema, shapes, strides and types of fake against real results."""
    from runtime.ops import gemm_torch

    a, w = operands(40, n, 64)
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(gemm_torch.OPERATORS.gemm.default, (a, w.T), test_utils=tests)


def test_what_is_wrong_is_said_while_tracing() -> None:
    a, w = operands(40, 24, 64)
    with pytest.raises(Exception, match=r"K=64 in a \[40, 64\], 24 in b.*pass w\.T"):
        compiled(lambda a, w: gemm(a, w))(a, w)
    with pytest.raises(Exception, match=r"out=f64  must be one of"):
        compiled(lambda a, w: gemm(a, w.T, out_dtype="f64"))(a, w)


def test_a_gradient_is_never_lost_silently() -> None:
    a, w = operands(40, 24, 64)
    weight = torch.nn.Parameter(w)
    out = gemm(a, weight.T)
    assert out.requires_grad
    with pytest.raises(ArgumentError, match=r"no backward yet.*\n.*\n.*\n.*torch\.no_grad"):
        out.sum().backward()
    with pytest.raises(ArgumentError, match=r"out=.*asks for a gradient"):
        gemm(a, weight.T, out=torch.empty(40, 24, dtype=torch.bfloat16))
    with pytest.raises(ArgumentError, match="stream=int"):
        gemm(a, weight.T, stream=0)
    with torch.no_grad():
        assert not gemm(a, weight.T).requires_grad
