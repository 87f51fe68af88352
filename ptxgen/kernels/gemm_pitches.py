"""Arrays of matrices that a GEMM reads or writes by address, element by element, at any pitch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from ptxgen.errors import Violation
from ptxgen.isa.dtypes import dtype
from ptxgen.kernels.gemm_pointers import COPY_BYTES
from ptxgen.spec import ArrayMeta

# What makes a kernel take other arrays, by how it then loads A and B, or stores D.
CURES: Mapping[str, str] = {
    "cp_async": "make the kernel with load=cp_async, cluster=1x1",
    "ld": "make the kernel with load=ld, cluster=1x1",
    "direct": "make the kernel with store=direct",
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


def copied_violations(
    name: str, meta: ArrayMeta, letters: tuple[str, ...], unit: int
) -> Iterator[Violation]:
    """Rules on a matrix, or a batch of them, that threads copy along its rows, in units of bytes.

    Rows may be the same, or share elements: nothing is written there.
    """
    size = dtype(meta.dtype).bytes
    if not meta.size:
        return
    if meta.shape[-1] > 1 and meta.strides[-1] != size:
        yield _apart(name, meta, letters[-1], size, "a thread copies 4 bytes of a row")
        return
    why, padded = "elements lie on multiples of their size", "a contiguous copy"
    if unit > size:
        why = f"cp.async copies {unit} bytes, from addresses that are multiples of {unit}"
        padded = f"a copy whose rows are padded to a multiple of {unit} B"
    for stride, extent, letter in zip(meta.strides[:-1], meta.shape, letters, strict=False):
        if extent > 1 and (stride < 0 or stride % unit):
            yield Violation(
                field=f"{name}.strides[{letter}]", got=f"{stride} B",
                rule=f"must be a multiple of {unit} B, and not negative", why=why,
                fix=f"pass {padded}",
            )  # fmt: skip
    if meta.address % unit:
        yield Violation(
            field=f"{name}.address", got=hex(meta.address), rule=f"must be a multiple of {unit} B",
            why=why, fix="pass a copy",
        )  # fmt: skip


def load_cure(operands: Iterable[tuple[ArrayMeta, tuple[str, ...]]]) -> str:
    """The cheapest load with which a kernel takes all of these, or nothing: it has but one."""
    operands = tuple(operands)
    for load, least in (("cp_async", COPY_BYTES), ("ld", 1)):
        if not any(
            any(copied_violations("x", meta, letters, max(least, dtype(meta.dtype).bytes)))
            for meta, letters in operands
        ):
            return CURES[load]
    return ""


def store_cure(meta: ArrayMeta, letters: tuple[str, ...]) -> str:
    """The store with which a kernel takes an array that TMA does not, or nothing."""
    return "" if any(element_violations("x", meta, letters)) else CURES["direct"]


def with_cure(broken: Iterable[Violation], find: Callable[[], str]) -> Iterator[Violation]:
    """Rules of one kernel: named with the config that has them not, if `find` knows one."""
    broken = tuple(broken)
    cure = find() if broken else ""
    for violation in broken:
        yield replace(violation, fix=f"{violation.fix}; or {cure}") if cure else violation
