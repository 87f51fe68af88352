"""Comparison, selection and predicates (PTX ISA 9.7.6, 9.7.7)."""

from __future__ import annotations

from ptxgen.isa.forms.base import Axes, Form

_INTS = ("u16", "s16", "u32", "s32", "u64", "s64")
_BITS = ("b16", "b32", "b64")
_FLOATS = ("f32", "f64")
_ORDERED = ("eq", "ne", "lt", "le", "gt", "ge")
_UNSIGNED = ("lo", "ls", "hi", "hs")
_UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
_ALL = (*_ORDERED, *_UNSIGNED, *_UNORDERED)
_TYPES = (*_BITS, *_INTS, *_FLOATS)


def _comparable(axes: Axes) -> bool:
    op, type_ = str(axes["op"]), str(axes["type"])
    if axes.get("ftz") and type_ != "f32":
        return False
    if type_[0] == "b":
        return op in ("eq", "ne")
    if type_[0] == "f":
        return op not in _UNSIGNED
    return op not in _UNORDERED and (op not in _UNSIGNED or type_[0] == "u")


def _half(axes: Axes) -> bool:
    return not axes["ftz"] or str(axes["type"])[0] == "f"


FORMS = (
    Form(
        id="setp",
        text="setp.{op}.{ftz}{type} {p}, {a}, {b};",
        macro='compare.setp(op ~ "." ~ ftz ~ type, p, a, b)',
        axes={"op": _ALL, "ftz": ("", "ftz."), "type": _TYPES},
        legal=_comparable,
        writes="p:pred",
        reads="a:{type}~near b:{type}~near",
    ),
    Form(
        id="setp.join",
        text="setp.{op}.{join}.{type} {p}|{q}, {a}, {b}, {c};",
        macro='compare.setp_join(op ~ "." ~ join ~ "." ~ type, p, q, a, b, c)',
        axes={
            "op": ("eq", "lt", "geu"),
            "join": ("and", "or", "xor"),
            "type": ("b32", "s32", "u64", "f32"),
        },
        legal=_comparable,
        writes="p:pred q:pred",
        reads="a:{type}~near b:{type}~near c:pred",
    ),
    Form(
        id="setp.half",
        text="setp.{op}.{ftz}{type} {p}, {a}, {b};",
        macro='compare.setp(op ~ "." ~ ftz ~ type, p, a, b)',
        axes={"op": (*_ORDERED, *_UNORDERED), "ftz": ("", "ftz."), "type": ("f16", "bf16")},
        legal=_half,
        writes="p:pred",
        reads="a:{type}~near b:{type}~near",
        newer={("type", "bf16"): ((7, 8), "sm_90")},
    ),
    Form(
        id="setp.half2",
        text="setp.{op}.{ftz}{type} {p}|{q}, {a}, {b};",
        macro='compare.setp2(op ~ "." ~ ftz ~ type, p, q, a, b)',
        axes={"op": (*_ORDERED, *_UNORDERED), "ftz": ("", "ftz."), "type": ("f16x2", "bf16x2")},
        legal=_half,
        writes="p:pred q:pred",
        reads="a:{type}~near b:{type}~near",
        newer={("type", "bf16x2"): ((7, 8), "sm_90")},
    ),
    Form(
        id="set",
        text="set.{op}.{out}.{type} {d}, {a}, {b};",
        macro='compare.set(op ~ "." ~ out ~ "." ~ type, d, a, b)',
        axes={"op": ("eq", "lt", "geu", "hs"), "out": ("u32", "s32", "f32"), "type": _TYPES},
        legal=_comparable,
        writes="d:{out}",
        reads="a:{type}~near b:{type}~near",
    ),
    Form(
        id="set.half2",
        text="set.{op}.{out}.{type} {d}, {a}, {b};",
        macro='compare.set(op ~ "." ~ out ~ "." ~ type, d, a, b)',
        axes={"op": ("eq", "lt", "geu"), "out": ("same", "u32"), "type": ("f16x2", "bf16x2")},
        derive=lambda axes: {"out": axes["type"] if axes["out"] == "same" else axes["out"]},
        writes="d:{type}",
        reads="a:{type}~near b:{type}~near",
        newer={("out", "u32"): ((6, 5), "sm_70"), ("type", "bf16x2"): ((7, 8), "sm_90")},
    ),
    Form(
        id="selp",
        text="selp.{type} {d}, {a}, {b}, {p};",
        macro="compare.selp(type, d, a, b, p)",
        axes={"type": _TYPES},
        writes="d:{type}",
        reads="a:{type} b:{type} p:pred",
    ),
    Form(
        id="slct",
        text="slct.{ftz}{type}.{by} {d}, {a}, {b}, {c};",
        macro='compare.slct(ftz ~ type ~ "." ~ by, d, a, b, c)',
        axes={"ftz": ("", "ftz."), "type": _TYPES, "by": ("s32", "f32")},
        legal=lambda axes: not axes["ftz"] or axes["by"] == "f32",
        writes="d:{type}",
        reads="a:{type} b:{type} c:{by}",
    ),
)
