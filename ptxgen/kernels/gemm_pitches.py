"""Arrays of matrices that a GEMM reads or writes by address, element by element, at any pitch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from ptxgen.errors import Violation
from ptxgen.isa.dtypes import dtype
from ptxgen.kernels.gemm_pointers import COPY_BYTES
from ptxgen.spec import ArrayMeta

Use = Literal["load", "store", "reduce"]
CURES: Mapping[Use, str] = {
    "load": "make the kernel with load=cp_async, cluster=1x1",
    "store": "make the kernel with store=direct",
}


def element_violations(name: str, meta: ArrayMeta, letters: tuple[str, ...]) -> Iterator[Violation]:
    """Rules on a matrix, or a batch of them, whose rows lie any number of elements apart.

    The last axis must be contiguous, addresses multiples of an element, and no two elements the
    same: where axes are sorted by stride, each stride steps over all that the ones before it reach.
    """
    size = dtype(meta.dtype).bytes
    walked = [
        (stride, extent, letter)
        for stride, extent, letter in zip(meta.strides, meta.shape, letters, strict=True)
        if extent > 1
    ]
    if not meta.size:
        return
    if meta.shape[-1] > 1 and meta.strides[-1] != size:
        why = "the kernel steps from column to column by one element"
        yield _apart(name, meta, letters[-1], size, why)
        return
    reach = size
    for stride, extent, letter in sorted(walked):
        if stride < reach or stride % size:
            yield Violation(
                field=f"{name}.strides[{letter}]", got=f"{stride} B",
                rule=f"must be a multiple of {size} B, and {reach} B or more",
                why="elements lie on multiples of their size, and each has a place of its own",
                fix="pass a contiguous copy",
            )  # fmt: skip
            return
        reach = (extent - 1) * stride + reach
    if meta.address % size:
        yield Violation(
            field=f"{name}.address", got=hex(meta.address), rule=f"must be a multiple of {size} B",
            why="elements lie on multiples of their size", fix="pass a copy",
        )  # fmt: skip


def _apart(name: str, meta: ArrayMeta, letter: str, size: int, why: str) -> Violation:
    return Violation(
        field=name, got=f"strides {meta.strides} bytes for shape {meta.shape}",
        rule=f"must be contiguous along {letter}: {size} bytes from one to the next",
        why=why, fix=f"pass a copy with contiguous {letter}",
    )  # fmt: skip


def copied_violations(name: str, meta: ArrayMeta, letters: tuple[str, ...]) -> Iterator[Violation]:
    """Rules on a matrix, or a batch of them, that threads copy 4 bytes at once along its rows."""
    size = dtype(meta.dtype).bytes
    if not meta.size:
        return
    if meta.shape[-1] > 1 and meta.strides[-1] != size:
        yield _apart(name, meta, letters[-1], size, "4 bytes are copied at once along a row")
        return
    for stride, extent, letter in zip(meta.strides[:-1], meta.shape, letters, strict=False):
        if extent > 1 and (stride < 0 or stride % COPY_BYTES):
            yield Violation(
                field=f"{name}.strides[{letter}]", got=f"{stride} B",
                rule=f"must be a multiple of {COPY_BYTES} B, and not negative",
                why="cp.async copies 4 bytes, from addresses that are multiples of 4",
                fix=f"pass a copy whose rows are padded to a multiple of {COPY_BYTES} B",
            )  # fmt: skip
    if meta.address % COPY_BYTES:
        yield Violation(
            field=f"{name}.address", got=hex(meta.address),
            rule=f"must be a multiple of {COPY_BYTES} B",
            why="cp.async copies 4 bytes, from addresses that are multiples of 4",
            fix="pass a copy",
        )  # fmt: skip


def with_cure(
    broken: Iterable[Violation], meta: ArrayMeta, letters: tuple[str, ...], use: Use = "store"
) -> Iterator[Violation]:
    """Rules that TMA has on a matrix: named with the config that has them not, if that takes it."""
    check = copied_violations if use == "load" else element_violations
    cured = not any(check("x", meta, letters))
    for violation in broken:
        other = f"{violation.fix}; or {CURES[use]}"
        yield replace(violation, fix=other) if cured else violation
