"""Descriptors read back: the 64 bits of a wgmma descriptor, the 128 bytes of a tensor map."""

from __future__ import annotations

import re

from ptxgen.errors import ConfigError, Violation
from ptxgen.isa.arch import TENSOR_MAP_BYTES
from ptxgen.layout.smem_desc import CORE_ROWS, SmemDesc
from ptxgen.layout.tensor_map.bits import decode
from ptxgen.layout.tensor_map.spec import TensorMapSpec
from ptxgen.view import Cell, Grid, Row, Stack, Table, View

DESC_BITS = 64
# (name, first bit, last bit) of the five fields, from bit 0.
FIELDS = (
    ("start", 0, 13),
    ("lbo", 16, 29),
    ("sbo", 32, 45),
    ("base", 49, 51),
    ("layout", 62, 63),
)
_USED = sum((1 << last + 1) - (1 << first) for _, first, last in FIELDS)
# Tensor-core descriptors of compute capability 10.0 keep a constant 1 in bits 46-48.
_VERSION_BIT = 46


def desc_view(bits: int) -> View:
    """A 64-bit wgmma descriptor: its bits as a strip, each field in words, and what looks wrong.

    Raises ConfigError where `bits` is no 64-bit number.
    """
    if not 0 <= bits < 1 << DESC_BITS:
        raise ConfigError(
            "not a wgmma matrix descriptor",
            [Violation(field="bits", got=hex(bits), rule="must be 0 .. 2^64 - 1")],
        )
    return Stack.of(desc_strip(bits), desc_table(bits))


def desc_strip(bits: int) -> Grid:
    """The 64 bits from the highest to the lowest, fields in hues, gaps muted."""
    names: list[Cell] = []
    values: list[Cell] = []
    labels: list[str] = []
    end = DESC_BITS
    for hue, (name, first, last) in reversed(list(enumerate(FIELDS))):
        if end > last + 1:
            names.append(Cell(tone="muted"))
            values.append(Cell(label=_gap(bits, last + 1, end - 1), tone="muted"))
            labels.append(_range(last + 1, end - 1))
        value = _field(bits, first, last)
        names.append(Cell(label=name, tone=hue, tip=f"bits {first}-{last}"))
        values.append(Cell(label=f"{value:#x}", tone=hue, tip=f"bits {first}-{last}"))
        labels.append(_range(first, last))
        end = first
    return Grid(
        title=f"wgmma matrix descriptor 0x{bits:016x}",
        rows=(tuple(names), tuple(values)),
        row_labels=("field", "value"),
        corner="bits",
        column_labels=tuple(labels),
    )


def desc_table(bits: int) -> Table:
    """Each field with its value in bytes and what it means for either major order."""
    desc = SmemDesc.decode(bits)
    meaning = _meanings(desc)
    values = {
        "start": f"{desc.start:#07x}",
        "lbo": f"{desc.lbo:,} B",
        "sbo": f"{desc.sbo:,} B",
        "base": str(desc.base_offset),
        "layout": str(desc.swizzle),
    }
    return Table(
        columns=("bits", "field", "raw", "value", "meaning"),
        left=frozenset({0, 1, 4}),
        rows=tuple(
            Row(
                (
                    _range(first, last),
                    name,
                    f"{_field(bits, first, last):#x}",
                    values[name],
                    meaning[name],
                )
            )
            for name, first, last in FIELDS
        ),
        notes=tuple(desc_remarks(bits)),
    )


def desc_remarks(bits: int) -> list[str]:
    """What is unusual about a descriptor: stray bits, an unaligned start, an unused stride."""
    desc = SmemDesc.decode(bits)
    remarks = []
    stray = [i for i in range(DESC_BITS) if bits >> i & 1 and not _USED >> i & 1]
    if stray:
        hint = (
            " (bits 46-48 hold a version in tcgen05 descriptors, which wgmma does not take)"
            if _VERSION_BIT in stray
            else ""
        )
        bits_set = "bit" if len(stray) == 1 else "bits"
        remarks.append(f"{bits_set} {', '.join(map(str, stray))} set outside every field{hint}")
    if desc.start % desc.swizzle.atom_bytes and not desc.base_offset:
        remarks.append(
            f"start is {desc.start % desc.swizzle.atom_bytes} B into a {desc.swizzle.atom_bytes} B "
            "atom: right for a later k step of a tile that is itself aligned, wrong for its first"
        )
    if desc.base_offset:
        remarks.append("base offset: the swizzle pattern itself starts off its atom boundary")
    tight = desc.swizzle.atom_bytes
    if desc.swizzle.span and desc.sbo != tight:
        remarks.append(f"sbo is not the tight {tight:,} B: groups of 8 rows do not touch")
    return remarks


def _meanings(desc: SmemDesc) -> dict[str, str]:
    span = desc.swizzle.span
    rows = f"{CORE_ROWS} rows of {desc.swizzle.row_bytes} B"
    if span:
        lbo = "K-major: not used; MN-major: from one span of mn to the next"
        sbo = f"K-major: from 8 rows to the next 8 ({rows}); MN-major: from 8 k to the next 8"
    else:
        lbo = "K-major: from one 16-byte chunk of k to the next; MN-major: from 8 k to the next 8"
        sbo = "K-major: from 8 rows to the next 8; MN-major: from one 16-byte chunk to the next"
    return {
        "start": "address in shared memory, low 18 bits, in units of 16 B",
        "lbo": lbo,
        "sbo": sbo,
        "base": "base offset: (start of the swizzle pattern >> 7) & 7; 0 for aligned tiles",
        "layout": "0 none, 1 128B, 2 64B, 3 32B; must be the swizzle that TMA wrote with",
    }


def _field(bits: int, first: int, last: int) -> int:
    return bits >> first & (1 << last - first + 1) - 1


def _gap(bits: int, first: int, last: int) -> str:
    value = _field(bits, first, last)
    return f"{value:#x}" if value else ""


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{last}-{first}"


# -- tensor maps -----------------------------------------------------------------------------------


def tensor_map_bytes(text: str) -> bytes:
    """The 128 bytes written in hex, with or without 0x, spaces, commas and line breaks.

    Raises ConfigError that counts the digits found.
    """
    digits = re.sub(r"0x|[\s,:_]", "", text.strip(), flags=re.IGNORECASE)
    if len(digits) != 2 * TENSOR_MAP_BYTES or re.search(r"[^0-9a-fA-F]", digits):
        strange = "".join(sorted(set(re.findall(r"[^0-9a-fA-F]", digits))))
        raise ConfigError(
            "not the bytes of a tensor map",
            [
                Violation(
                    field="hex",
                    got=f"{len(digits)} digits" + (f" with {strange!r}" if strange else ""),
                    rule=f"must be {2 * TENSOR_MAP_BYTES} hex digits ({TENSOR_MAP_BYTES} bytes)",
                    fix="print them with bytes(tensor_map).hex()",
                )
            ],
        )
    return bytes.fromhex(digits)


def tensor_map_view(spec: TensorMapSpec) -> View:
    """A tensor map in both orders of its axes, and what one copy with it moves."""
    outer = spec.rank - 1
    axes = Table(
        title=f"tensor map: {spec.dtype} at 0x{spec.address:x}",
        columns=("axis", "driver dim", "extent", "stride B", "box", "step"),
        rows=tuple(
            Row(
                (
                    str(axis),
                    str(outer - axis),
                    f"{spec.shape[axis]:,}",
                    f"{spec.strides[axis]:,}",
                    str(spec.box[axis]),
                    str(spec.element_strides[axis]),
                )
            )
            for axis in range(spec.rank)
        ),
        notes=("axes in NumPy order, outermost first; the driver counts from the innermost",),
    )
    modes = Table(
        columns=("mode", "value", "meaning"),
        left=frozenset({0, 1, 2}),
        rows=(
            Row(("swizzle", f"{spec.swizzle or 'none'}", "bytes; the wgmma descriptor must agree")),
            Row(("interleave", f"{spec.interleave or 'none'}", "bytes")),
            Row(("L2 promotion", f"{spec.l2 or 'none'}", "bytes fetched into L2 at least")),
            Row(("fill", spec.fill, "what elements out of bounds read as")),
            Row(
                (
                    "box bytes",
                    f"{spec.box_bytes:,}",
                    "what one copy writes and mbarrier expect_tx must count, bounds or not",
                )
            ),
        ),
    )
    return Stack.of(axes, modes)


def tensor_map_of_hex(text: str) -> TensorMapSpec:
    """The map in 128 bytes of hex. Raises ConfigError or TensorMapError."""
    return decode(tensor_map_bytes(text))
