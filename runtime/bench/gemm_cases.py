"""The products that the GEMM family is measured on, as one table: no GPU and no framework here.

A case names types, operand order, extents and scaling; its problem follows. Orders are spelled as
BLAS does, whose matrices are column-major, one letter an operand:

    order   A [M, K]    B [K, N]
    TN      K-major     K-major      a @ w.T of row-major a [M, K] and w [N, K]
    NN      MN-major    K-major
    NT      MN-major    MN-major
    TT      K-major     MN-major     a @ b of row-major a [M, K] and b [K, N]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ptxgen.configs.gemm import GemmProblem

ORDERS = {"TN": ("k", "k"), "NN": ("mn", "k"), "NT": ("mn", "mn"), "TT": ("k", "mn")}
Extents = tuple[int, int, int]

SQUARE: tuple[Extents, ...] = (
    (2048, 2048, 2048), (4096, 4096, 4096), (6144, 6144, 6144), (8192, 8192, 8192),
    (16384, 8192, 2048), (4096, 7168, 2048),
)  # fmt: skip
SHORT_K: tuple[Extents, ...] = ((16384, 8192, 512),)
ODD: tuple[Extents, ...] = ((4096, 4104, 4096), (5000, 3000, 2104), (8192, 7168, 2112))
SMALL_M: tuple[Extents, ...] = (
    (1, 8192, 8192), (16, 8192, 8192), (64, 8192, 8192), (128, 8192, 8192),
    (128, 7168, 16384), (64, 2112, 7168),
)  # fmt: skip
ORDERED: tuple[Extents, ...] = ((4096, 4096, 4096), (8192, 8192, 8192), (4096, 4104, 4096))
FP8: tuple[Extents, ...] = ((4096, 4096, 4096), (8192, 8192, 8192), (4096, 7168, 16384))
LARGE: Extents = (8192, 8192, 8192)
# The ratio that each group is held to: torch's time / our time.
LEAST = {
    "square": 1.0, "small_m": 1.0, "tf32": 1.0, "int8": 1.0, "short_k": 0.97, "odd": 0.97,
    "order": 0.97, "fp8": 0.98, "sustained": 1.03,
}  # fmt: skip
DENSE = {"square": SQUARE, "short_k": SHORT_K, "odd": ODD, "small_m": SMALL_M}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One product to measure: D[m, n] with depth k."""

    group: str
    dtype: str
    m: int
    n: int
    k: int
    order: str = "TN"
    scaling: str = "none"  # none, per_tensor, row_wise

    @property
    def problem(self) -> GemmProblem:
        """What our kernel computes."""
        a_major, b_major = ORDERS[self.order]
        return GemmProblem(
            dtype=self.dtype, a_major=a_major, b_major=b_major,
            alpha=int(self.scaling == "per_tensor"),
            scales="row" if self.scaling == "row_wise" else "none",
        )  # fmt: skip

    @property
    def extents(self) -> Extents:
        return self.m, self.n, self.k

    @property
    def flop(self) -> int:
        """Operations of the product, a multiplication and an addition each two."""
        return 2 * self.m * self.n * self.k

    @property
    def name(self) -> str:
        """Unique among the cases; what `chosen` looks words up in."""
        scaling = "" if self.scaling == "none" else f"/{self.scaling}"
        return f"{self.group}/{self.dtype}/{self.order}/{self.m}x{self.n}x{self.k}{scaling}"


def cases() -> tuple[Case, ...]:
    """Every case of the published table, the sustained one last."""
    return tuple(_cases())


def _cases() -> Iterator[Case]:
    for dtype in ("bf16", "f16"):
        for group, shapes in DENSE.items():
            yield from _of(group, dtype, shapes)
    for order in ("NN", "NT", "TT"):
        yield from _of("order", "bf16", ORDERED, order=order)
    yield from _of("fp8", "e4m3", FP8, scaling="per_tensor")
    yield from _of("fp8", "e4m3", FP8, scaling="row_wise")
    yield from _of("tf32", "tf32", (LARGE,))
    yield from _of("int8", "s8", (LARGE,))
    yield from _of("sustained", "bf16", (LARGE,))


def _of(
    group: str, dtype: str, shapes: Iterable[Extents], order: str = "TN", scaling: str = "none"
) -> Iterator[Case]:
    for m, n, k in shapes:
        yield Case(group=group, dtype=dtype, m=m, n=n, k=k, order=order, scaling=scaling)


def chosen(found: Iterable[Case], words: Iterable[str]) -> tuple[Case, ...]:
    """The cases whose name holds one of the words, all without any; ValueError where none does."""
    words, found = tuple(words), tuple(found)
    kept = tuple(c for c in found if not words or any(word in c.name for word in words))
    if not kept:
        names = ", ".join(c.name for c in found)
        raise ValueError(f"no case has {' or '.join(words)} in its name; there are: {names}")
    return kept
