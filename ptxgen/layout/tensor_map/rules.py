"""The rules of cuTensorMapEncodeTiled, one function each, in words a person can act on.

They were fitted to the answers of a driver (CUDA 13.0 on an H200) and agree with every one of the
recorded 2,000; where the documentation says something else, the driver's answer counts:

* a box may exceed its tensor, and an inner box may be narrower than the swizzle span;
* 32-byte interleave takes any swizzle;
* `box[inner] * size` must be a multiple of 16 bytes in every interleave mode;
* strides need no order among themselves.

CUDA driver API: "Tensor Map Object Managment", cuTensorMapEncodeTiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from ptxgen.errors import TensorMapError, Violation
from ptxgen.isa.arch import SMEM_PER_CTA_BYTES, TENSOR_MAP_BOX_MAX
from ptxgen.layout.rounding import align_up
from ptxgen.layout.tensor_map.spec import (
    FILLS,
    INTERLEAVES,
    PITCH_BYTES,
    PROMOTIONS,
    RANK_MAX,
    SWIZZLE_SPANS,
    TensorMapSpec,
    find_map_type,
    unsupported,
)

EXTENT_MAX = 1 << 32
STRIDE_LIMIT = 1 << 40
ELEMENT_STRIDE_MAX = 8
INTERLEAVED_RANK_MIN = 3
_CHOICES = MappingProxyType(
    {
        "interleave": INTERLEAVES,
        "swizzle": SWIZZLE_SPANS,
        "l2": PROMOTIONS,
        "fill": FILLS,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """A spec with the words that messages use for it."""

    spec: TensorMapSpec
    name: str
    axis_names: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.spec.dtype} {list(self.spec.shape)}"

    def axis(self, axis: int) -> str:
        """How messages call an axis: its name, or its number in NumPy order."""
        return self.axis_names[axis] if self.axis_names else f"axis {axis}"

    def at(self, what: str, axis: int) -> str:
        return f"{self.name}.{what}[{axis}]"


_Rule: TypeAlias = Callable[[_Subject], Iterator[Violation]]


def _dtype(s: _Subject) -> Iterator[Violation]:
    if find_map_type(s.spec.dtype) is None:
        yield unsupported(s.spec.dtype, f"{s.name}.dtype")


def _modes(s: _Subject) -> Iterator[Violation]:
    for field, legal in _CHOICES.items():
        value = getattr(s.spec, field)
        if value not in legal:
            yield Violation(
                field=f"{s.name}.{field}",
                got=str(value),
                rule=f"must be one of {', '.join(map(str, legal))}",
            )


def _rank(s: _Subject) -> Iterator[Violation]:
    rank = s.spec.rank
    if not 1 <= rank <= RANK_MAX:
        yield Violation(
            field=f"{s.name}.ndim",
            got=str(rank),
            rule=f"must be 1..{RANK_MAX}",
            fix="merge axes that are contiguous with each other" if rank else "reshape to (1,)",
        )
    for field in ("strides", "box", "element_strides"):
        entries = len(getattr(s.spec, field))
        if entries != rank:
            yield Violation(
                field=f"{s.name}.{field}",
                got=f"{entries} entries",
                rule=f"must have {rank}, one for each axis of {s.title}",
            )


def _interleaved_rank(s: _Subject) -> Iterator[Violation]:
    if s.spec.interleave and s.spec.rank < INTERLEAVED_RANK_MIN:
        yield Violation(
            field=f"{s.name}.ndim",
            got=str(s.spec.rank),
            rule=f"must be at least {INTERLEAVED_RANK_MIN} with interleave {s.spec.interleave}",
            why="the layout is [..., channel slice, ..., slice bytes]",
            fix="use interleave 0, or add axes of extent 1",
        )


def _address(s: _Subject) -> Iterator[Violation]:
    address, unit = s.spec.address, s.spec.pitch_bytes
    if address % unit:
        yield Violation(
            field=f"{s.name}.address",
            got=f"0x{address:x}",
            rule=f"must be a multiple of {unit} B (it is {address % unit} B past one)",
            why="the copy engine reads global memory in 16-byte units",
            fix=f"start the view {unit - address % unit} B later or {address % unit} B earlier, "
            "or pass a copy",
        )
    elif not 0 <= address < 1 << 64:
        yield Violation(field=f"{s.name}.address", got=hex(address), rule="must have 64 bits")


def _extents(s: _Subject) -> Iterator[Violation]:
    for axis, extent in enumerate(s.spec.shape):
        if not 1 <= extent <= EXTENT_MAX:
            yield Violation(
                field=s.at("shape", axis),
                got=f"{extent:,}",
                rule=f"must be 1..{EXTENT_MAX:,}",
                fix="an empty array needs no tensor map: skip the launch, or the copies"
                if extent <= 0
                else f"split the array along {s.axis(axis)}",
            )


def _inner_stride(s: _Subject) -> Iterator[Violation]:
    es, stride, axis = s.spec.element.bytes, s.spec.strides[-1], s.spec.rank - 1
    if stride != es:
        yield Violation(
            field=s.at("strides", axis),
            got=f"{stride:,} B",
            rule=f"the innermost axis must be contiguous: {es} B for {s.spec.dtype}",
            why="a tensor map stores no stride for its innermost axis",
            fix="make another axis innermost (operand order), or pass a contiguous copy",
        )


def _strides(s: _Subject) -> Iterator[Violation]:
    unit = s.spec.pitch_bytes
    for axis, stride in enumerate(s.spec.strides[:-1]):
        if stride < 0 or stride >= STRIDE_LIMIT:
            yield Violation(
                field=s.at("strides", axis),
                got=f"{stride:,} B",
                rule=f"must be 0..{STRIDE_LIMIT - unit:,} B (below 2^40)",
                fix="pass an array with ascending addresses, or split it",
            )
        elif stride % unit:
            yield Violation(
                field=s.at("strides", axis),
                got=f"{stride:,} B",
                rule=f"the {_pitch_word(s, axis)} of {_elements(s, stride)} must be a multiple "
                f"of {unit} B",
                why="the copy engine finds rows in 16-byte units",
                fix=_next_pitch(s, axis, align_up(stride, unit)),
            )


def _pitch_word(s: _Subject, axis: int) -> str:
    return "row pitch" if axis == s.spec.rank - 2 else "pitch"


def _elements(s: _Subject, stride: int) -> str:
    es = s.spec.element.bytes
    return f"{stride // es:,} elements" if stride % es == 0 else f"{stride / es:,.2f} elements"


def _next_pitch(s: _Subject, axis: int, pitch: int) -> str:
    """The cure of a bad stride: a legal pitch, and a legal extent where rows are dense."""
    shape, strides, es = s.spec.shape, s.spec.strides, s.spec.element.bytes
    inner, dense = strides[axis + 1], strides[axis] == shape[axis + 1] * strides[axis + 1]
    if dense and inner % s.spec.pitch_bytes and axis < s.spec.rank - 2:
        return f"it follows from the pitch of {s.axis(axis + 1)}"
    padded = f"pad to a pitch of {pitch:,} B ({_elements(s, pitch)})"
    if dense and inner == es:
        return f"next legal {s.axis(axis + 1)} is {pitch // es:,}; or {padded}"
    return padded


def _box(s: _Subject) -> Iterator[Violation]:
    for axis, extent in enumerate(s.spec.box):
        if not 1 <= extent <= TENSOR_MAP_BOX_MAX:
            copies = align_up(max(extent, 1), TENSOR_MAP_BOX_MAX) // TENSOR_MAP_BOX_MAX
            yield Violation(
                field=s.at("box", axis),
                got=str(extent),
                rule=f"must be 1..{TENSOR_MAP_BOX_MAX} elements",
                fix=f"make {copies} copies of at most {TENSOR_MAP_BOX_MAX} along {s.axis(axis)} "
                "and expect the bytes of all of them"
                if extent > 0
                else "use at least 1",
            )


def _element_strides(s: _Subject) -> Iterator[Violation]:
    for axis, step in enumerate(s.spec.element_strides):
        if not 1 <= step <= ELEMENT_STRIDE_MAX:
            yield Violation(
                field=s.at("element_strides", axis),
                got=str(step),
                rule=f"must be 1..{ELEMENT_STRIDE_MAX}",
                fix="give the step to the array's stride instead",
            )


def _box_row(s: _Subject) -> Iterator[Violation]:
    es, axis = s.spec.element.bytes, s.spec.rank - 1
    row = s.spec.box[-1] * es
    if row % PITCH_BYTES:
        yield Violation(
            field=s.at("box", axis),
            got=str(s.spec.box[-1]),
            rule=f"a box row of {row:,} B must be a multiple of {PITCH_BYTES} B",
            why="shared memory is written in 16-byte chunks",
            fix=f"next legal inner box is {align_up(row, PITCH_BYTES) // es} elements",
        )


def _box_span(s: _Subject) -> Iterator[Violation]:
    es, axis, span = s.spec.element.bytes, s.spec.rank - 1, s.spec.swizzle
    row = s.spec.box[-1] * es
    if s.spec.interleave == 0 and span and row > span:
        yield Violation(
            field=s.at("box", axis),
            got=str(s.spec.box[-1]),
            rule=f"a box row of {row:,} B must fit the swizzle span of {span} B",
            why="the swizzle permutes chunks inside one span",
            fix=f"use an inner box of at most {span // es} elements and more copies, "
            "or a wider swizzle",
        )


def _box_size(s: _Subject) -> Iterator[Violation]:
    if any(step < 1 for step in s.spec.element_strides):
        return  # that rule speaks for itself; there is no size to judge
    size = s.spec.encoded_box_bytes
    if size > SMEM_PER_CTA_BYTES:
        yield Violation(
            field=f"{s.name}.box",
            got=str(list(s.spec.box)),
            rule=f"a box of {size:,} B must fit shared memory, {SMEM_PER_CTA_BYTES:,} B",
            fix="make several copies of a smaller box",
        )


def _nan_fill(s: _Subject) -> Iterator[Violation]:
    if s.spec.fill == "nan" and not s.spec.element.is_float:
        yield Violation(
            field=f"{s.name}.fill",
            got="nan",
            rule=f"needs a float type, and {s.spec.dtype} travels as {s.spec.element.name}",
            why="integers have no NaN; out-of-bounds elements can be 0 or NaN only",
            fix='use fill="zero" and mask after the load',
        )


# Rules that make the others meaningful come first: if one of these breaks, the rest do not run.
_SHAPE_RULES: Mapping[str, _Rule] = MappingProxyType(
    {"dtype": _dtype, "mode": _modes, "rank": _rank}
)
_VALUE_RULES: Mapping[str, _Rule] = MappingProxyType(
    {
        "interleaved rank": _interleaved_rank,
        "address": _address,
        "extent": _extents,
        "inner stride": _inner_stride,
        "stride": _strides,
        "box extent": _box,
        "element stride": _element_strides,
        "box row": _box_row,
        "box span": _box_span,
        "box size": _box_size,
        "nan fill": _nan_fill,
    }
)
RULES: tuple[str, ...] = (*_SHAPE_RULES, *_VALUE_RULES)


def broken_rules(
    spec: TensorMapSpec, *, name: str = "tensor", axis_names: tuple[str, ...] = ()
) -> tuple[tuple[str, Violation], ...]:
    """Every broken rule with its name from `RULES`."""
    subject = _Subject(spec=spec, name=name, axis_names=axis_names)
    for rules in (_SHAPE_RULES, _VALUE_RULES):
        broken = tuple((rule, v) for rule, check in rules.items() for v in check(subject))
        if broken:
            return broken
    return ()


def violations(
    spec: TensorMapSpec, *, name: str = "tensor", axis_names: tuple[str, ...] = ()
) -> tuple[Violation, ...]:
    """Every rule that the map breaks; empty means that the driver accepts it.

    `name` is what messages call the array; `axis_names` (one a map axis) what they call its axes.
    """
    return tuple(v for _, v in broken_rules(spec, name=name, axis_names=axis_names))


def check(
    spec: TensorMapSpec, *, name: str = "tensor", axis_names: tuple[str, ...] = ()
) -> TensorMapSpec:
    """The spec itself if it is legal. Raises TensorMapError with every broken rule otherwise."""
    broken = broken_rules(spec, name=name, axis_names=axis_names)
    if broken:
        rules = len({rule for rule, _ in broken})
        raise TensorMapError(
            f"no tensor map can describe {name}, {spec.dtype} {list(spec.shape)} "
            f"({rules} of {len(RULES)} rules broken)",
            (v for _, v in broken),
        )
    return spec
