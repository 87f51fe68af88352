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
    tests = ("test_schema", "test_autograd_registration", "test_faketensor",
             "test_aot_dispatch_dynamic")  # fmt: skip
    torch.library.opcheck(gemm_torch.OPERATORS.gemm.default, (a, w.T), test_utils=tests)


def test_what_is_wrong_is_said_while_tracing() -> None:
    a, w = operands(40, 24, 64)
    with pytest.raises(Exception, match=r"K=64 in a \[40, 64\], 24 in b.*pass w\.T"):
        compiled(lambda a, w: gemm(a, w))(a, w)
    with pytest.raises(Exception, match=r"out=f64  must be one of"):
        compiled(lambda a, w: gemm(a, w.T, out_dtype="f64"))(a, w)


def whole(*shape: int) -> Any:
    """Small integers in bf16, the same for a shape: every product and sum is exact."""
    make = torch.Generator().manual_seed(sum(shape))
    return torch.randint(-2, 3, shape, generator=make).bfloat16()


def gradients_of(multiply: Any, *leaves: Any, d: Any = None) -> list[Any]:
    """Gradients of leaves, of the sum of what `multiply` gives, or by a given dD."""
    own = [leaf.detach().clone().requires_grad_() for leaf in leaves]
    out = multiply(*own)
    out.backward(torch.ones_like(out) if d is None else d.to(out.dtype))
    return [leaf.grad for leaf in own]


# 131 columns: no legal pitch, so D is padded, and dD must be copied
@pytest.mark.parametrize("n", [24, 131])
@pytest.mark.parametrize(
    ("a_shape", "a_view", "b_shape", "b_view"),
    [
        ("mk", False, "nk", True), ("mk", False, "kn", False), ("km", True, "nk", True),
        ("km", True, "kn", False),
    ],
    ids=["TN", "TT", "NN", "NT"],
)  # fmt: skip
def test_gradients_in_every_operand_order(a_shape, a_view, b_shape, b_view, n) -> None:
    size = {"m": 40, "n": n, "k": 64}
    if n == 131 and not b_view:
        pytest.skip("a row-major B of 131 columns has no pitch that TMA reads, forward either")
    x = whole(*(size[letter] for letter in a_shape))
    y = whole(*(size[letter] for letter in b_shape))
    d = whole(40, n)

    def multiply(product: Any) -> Any:
        return lambda x, y: product(x.T if a_view else x, y.T if b_view else y)

    ours = gradients_of(multiply(gemm), x, y, d=d)
    theirs = gradients_of(multiply(torch.matmul), x.double(), y.double(), d=d)
    for mine, exactly in zip(ours, theirs, strict=True):
        assert torch.equal(mine, exactly.bfloat16())
        assert mine.is_contiguous()  # in the memory order of the leaf: nothing is transposed later


def test_gradients_of_a_batch() -> None:
    x, y = whole(3, 40, 64), whole(3, 64, 24)
    ours = gradients_of(gemm, x, y)  # dD of a sum is broadcast: it is copied
    theirs = gradients_of(torch.matmul, x.double(), y.double())
    assert all(torch.equal(a, b.bfloat16()) for a, b in zip(ours, theirs, strict=True))


def test_gradients_of_a_wider_result_are_rounded_to_the_operands() -> None:
    x, y = whole(40, 64), whole(64, 24)
    ours = gradients_of(lambda a, b: gemm(a, b, out_dtype="f32"), x, y)
    assert [gradient.dtype for gradient in ours] == [torch.bfloat16] * 2
    theirs = gradients_of(torch.matmul, x.double(), y.double())
    assert all(torch.equal(a, b.bfloat16()) for a, b in zip(ours, theirs, strict=True))


def test_only_what_is_asked_for_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    from runtime.ops import gemm_backward

    made = []
    real = gemm_backward._product
    monkeypatch.setattr(gemm_backward, "_product", lambda *args: made.append(1) or real(*args))
    x, y = whole(40, 64), whole(64, 24).requires_grad_()
    gemm(x, y).sum().backward()
    assert (x.grad, made) == (None, [1])


def test_gradients_in_a_compiled_function() -> None:
    x, y = whole(40, 64), whole(24, 64)
    layer = compiled(lambda x, y: gemm(x, y.T) * 2)
    theirs = gradients_of(lambda x, y: x @ y.T * 2, x.double(), y.double())
    ours = gradients_of(layer, x, y)
    assert all(torch.equal(a, b.bfloat16()) for a, b in zip(ours, theirs, strict=True))


def test_tf32_has_gradients_where_copies_are_allowed() -> None:
    x, y = whole(40, 64).float(), whole(24, 64).float()
    with pytest.raises(ArgumentError, match=r"transpose=None  must be 'copy'"):
        gradients_of(lambda x, y: gemm(x, y.T, precision="tf32"), x, y)
    ours = gradients_of(lambda x, y: gemm(x, y.T, precision="tf32", transpose="copy"), x, y)
    theirs = gradients_of(lambda x, y: x @ y.T, x.double(), y.double())
    assert all(torch.equal(a.double(), b) for a, b in zip(ours, theirs, strict=True))


def test_a_gradient_that_cannot_be_is_refused_at_once() -> None:
    a, w = operands(40, 24, 64)
    weight = torch.nn.Parameter(w)
    with pytest.raises(ArgumentError, match=r"out=.*asks for a gradient"):
        gemm(a, weight.T, out=torch.empty(40, 24, dtype=torch.bfloat16))
    with pytest.raises(ArgumentError, match="stream=int"):
        gemm(a, weight.T, stream=0)
    small = torch.nn.Parameter(w.to(torch.float8_e4m3fn))
    with pytest.raises(ArgumentError, match=r"b=e4m3, and its gradient is asked for"):
        gemm(a.to(torch.float8_e4m3fn), small.T)
    with torch.no_grad():
        assert not gemm(a, weight.T).requires_grad
