"""Both sides of a GEMM case on one GPU: inputs, our launches, the peer's calls, and a check.

Peers are torch's own functions, which call cuBLAS: `torch.matmul`, with TF32 allowed for tf32,
`torch._scaled_mm` for fp8 (fast accumulation, as ours) and `torch._int_mm` for int8.
"""

from __future__ import annotations

import sys
from functools import cached_property
from typing import Any

import runtime
from ptxgen.api import Kernel
from ptxgen.isa.dtypes import dtype as dtype_row
from runtime.bench.gemm_cases import Case
from runtime.bench.timer import Run, rotation

PEERS = {
    "bf16": "torch.matmul", "f16": "torch.matmul", "tf32": "torch.matmul, allow_tf32",
    "e4m3": "torch._scaled_mm", "s8": "torch._int_mm",
}  # fmt: skip
MOST_ERROR = 5e-3  # relative, of a result: rounding to bf16 alone makes 1.7e-3
MORE_THAN_PEER = 1.5  # fp8 sums lose bits in the tensor core, in the peer's kernel as well
SCALES = (0.5, 0.25)  # of A and B, where tensors are scaled: powers of two, exact


class WrongResult(Exception):
    """What was computed is not the product, so there is nothing to time."""


class Arena:
    """Input sets that together exceed the L2, and one output for each side.

    Inputs are random normal, of int8 with a deviation of 32. `b` is [N, K] with the strides of the
    case's order, as our kernels take it.
    """

    def __init__(self, case: Case, *, seed: int = 0, most_sets: int | None = None) -> None:
        import torch

        self.case = case
        self.problem = case.problem
        size = self.problem.a.bits // 8 * case.k * (case.m + case.n)
        l2 = torch.cuda.get_device_properties(0).L2_cache_size
        self.sets = min(rotation(size, l2), most_sets or sys.maxsize)
        torch.manual_seed(seed)
        p = self.problem
        self.a = [self._operand(case.m, p.a_major) for _ in range(self.sets)]
        self.b = [self._operand(case.n, p.b_major) for _ in range(self.sets)]
        out = getattr(torch, dtype_row(p.output.name).numpy)
        self.ours = torch.empty(case.m, case.n, device="cuda", dtype=out)
        self.theirs = torch.empty_like(self.ours)
        self._scales = [torch.full((), scale, device="cuda") for scale in SCALES]

    def _operand(self, extent: int, major: str) -> Any:
        """One [extent, K] operand; MN-major ones are the transpose of a row-major array."""
        import torch

        shape = (extent, self.case.k) if major == "k" else (self.case.k, extent)
        kind = getattr(torch, dtype_row(self.problem.a.storage).numpy)
        if self.problem.a.bits == 8:
            x = torch.randn(shape, device="cuda", dtype=torch.float32)
            x = x.to(kind) if kind.is_floating_point else (32 * x).round().clamp(-128, 127).to(kind)
        else:
            x = torch.randn(shape, device="cuda", dtype=kind)
        return x if major == "k" else x.T

    @property
    def scalars(self) -> dict[str, float]:
        """Launch arguments beside the arrays."""
        return {"alpha": SCALES[0] * SCALES[1]} if self.problem.alpha else {}

    def run(self, kernel: Kernel) -> Run:
        """Our side: a function that launches `kernel` on one input set."""
        launches = [
            runtime.prepare(kernel, args={"a": a, "b": b, "d": self.ours} | self.scalars)
            for a, b in zip(self.a, self.b, strict=True)
        ]
        return lambda i: launches[i]()

    def peer(self) -> Run:
        """The other side: torch on one input set."""
        import torch

        a, b, out = self.a, [x.T for x in self.b], self.theirs
        if self.case.dtype == "s8":
            return lambda i: torch._int_mm(a[i], b[i], out=out)
        if self.problem.a.bits == 8:
            scale_a, scale_b = self._scales
            return lambda i: torch._scaled_mm(
                a[i], b[i], scale_a=scale_a, scale_b=scale_b, out_dtype=out.dtype,
                use_fast_accum=True, out=out,
            )  # fmt: skip
        torch.backends.cuda.matmul.allow_tf32 = self.case.dtype == "tf32"
        return lambda i: torch.matmul(a[i], b[i], out=out)

    def poison(self) -> None:
        """Fill our output with what no product leaves: NaN, or the smallest integer."""
        import torch

        floating = self.ours.dtype.is_floating_point
        self.ours.fill_(float("nan") if floating else torch.iinfo(self.ours.dtype).min)

    def check(self, run: Run, peer: Run | None = None) -> tuple[float, float]:
        """Relative errors of our and the peer's result on input set 0; WrongResult if ours is bad.

        Against f32 accumulation of the same inputs; integers against f64, where they must be equal.
        """
        import torch

        self.poison()
        run(0)
        reference = self._reference
        ours = _error(self.ours, reference)
        theirs = 0.0
        if peer is not None:
            peer(0)
            theirs = _error(self.theirs, reference)
        torch.cuda.synchronize()
        exact = not self.ours.dtype.is_floating_point
        most = 0.0 if exact else max(MOST_ERROR, MORE_THAN_PEER * theirs)
        if not ours <= most:  # also where it is NaN
            raise WrongResult(f"{self.case.name}: relative error {ours:.2e}, at most {most:.2e}")
        return ours, theirs

    @cached_property
    def _reference(self) -> Any:
        """The exact product of input set 0, near enough."""
        import torch

        allowed = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = False
        exact = torch.float32 if self.ours.dtype.is_floating_point else torch.float64
        product = self.a[0].to(exact) @ self.b[0].to(exact).T
        torch.backends.cuda.matmul.allow_tf32 = allowed
        return product * self.scalars.get("alpha", 1.0)


def _error(found: Any, reference: Any) -> float:
    return float((found.to(reference.dtype) - reference).norm() / reference.norm())
