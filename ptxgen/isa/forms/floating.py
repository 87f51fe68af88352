"""f32 and f64 arithmetic (PTX ISA 9.7.3)."""

from __future__ import annotations

from ptxgen.isa.forms.base import Axes, Bound, Form, always

ROUNDINGS = ("rn", "rz", "rm", "rp")
# Errors that the PTX ISA states, and what they are here. Two units in the last place where it says
# so (9.7.3.8 div, 9.7.3.21 ex2), or where its relative error comes to that: 2^-23 of sqrt
# (9.7.3.15), 2^-22.9 of rsqrt (9.7.3.16).
_RECIPROCAL = Bound(ulp=1)  # 9.7.3.13
_ANGLE = Bound(ulp=1, absolute=2**-20.5)  # 9.7.3.18 and 19, within +-2 pi
_LOGARITHM = Bound(ulp=1, absolute=2**-22, relative=2**-22)  # 9.7.3.20: absolute within (0.5, 2)
_TANH = Bound(ulp=1, relative=2**-11)  # 9.7.3.22
# 9.7.3.14 and 17 state no error. One unit of the upper word, all that there is, holds on the H200.
_HIGH_WORD = Bound(ulp=1 << 32)


def _single(axes: Axes) -> bool:
    """`.ftz` and `.sat` are for f32."""
    return axes["type"] == "f32" or not (axes.get("ftz") or axes.get("sat"))


def _arithmetic(op: str, sources: str, mods: tuple[str, ...] = ("ftz", "sat")) -> Form:
    """An operation with a rounding mode, spelled `op.round.ftz.sat.type`."""
    listed = ", ".join(f"{{{name}}}" for name in ("d", *sources))
    quals = "{round}." + "".join(f"{{{mod}}}" for mod in mods) + "{type}"
    parts = ' ~ "." ~ '.join(["round", " ~ ".join((*mods, "type"))])
    return Form(
        id=f"{op}.float",
        text=f"{op}.{quals} {listed};",
        macro=f"math.{op}({parts}, {', '.join(('d', *sources))})",
        axes={
            "round": ROUNDINGS,
            **{mod: ("", f"{mod}.") for mod in mods},
            "type": ("f32", "f64"),
        },
        legal=_single,
        writes="d:{type}",
        reads=" ".join(f"{name}:{{type}}" for name in sources),
    )


def _min_max(op: str) -> Form:
    return Form(
        id=f"{op}.float",
        text=f"{op}.{{ftz}}{{nan}}{{xor}}{{type}} {{d}}, {{a}}, {{b}};",
        macro=f"math.{op}(ftz ~ nan ~ xor ~ type, d, a, b)",
        axes={
            "ftz": ("", "ftz."),
            "nan": ("", "NaN."),
            "xor": ("", "xorsign.abs."),
            "type": ("f32", "f64"),
        },
        legal=lambda axes: axes["type"] == "f32" or not (axes["ftz"] or axes["nan"] or axes["xor"]),
        writes="d:{type}",
        reads="a:{type} b:{type}",
        newer={("nan", "NaN."): ((7, 0), "sm_80"), ("xor", "xorsign.abs."): ((7, 2), "sm_86")},
    )


def _unary(op: str) -> Form:
    return Form(
        id=f"{op}.float",
        text=f"{op}.{{ftz}}{{type}} {{d}}, {{a}};",
        macro=f"math.{op}(ftz ~ type, d, a)",
        axes={"ftz": ("", "ftz."), "type": ("f32", "f64")},
        legal=_single,
        writes="d:{type}",
        reads="a:{type}",
    )


def _approximate(op: str, domain: str, bound: Bound = Bound()) -> Form:  # noqa: B008 (frozen)
    return Form(
        id=f"{op}.approx",
        text=f"{op}.approx.{{ftz}}f32 {{d}}, {{a}};",
        macro=f'math.{op}("approx." ~ ftz ~ "f32", d, a)',
        axes={"ftz": ("", "ftz.")},
        writes="d:f32",
        reads=f"a:f32~{domain}",
        semantic="ulp",
        bound=bound,
    )


def _rounded_unary(op: str) -> Form:
    """ptxas also takes rcp.ftz.f64, which the PTX ISA does not have; it is not tried."""
    return Form(
        id=f"{op}.float",
        text=f"{op}.{{round}}.{{ftz}}{{type}} {{d}}, {{a}};",
        macro=f'math.{op}(round ~ "." ~ ftz ~ type, d, a)',
        axes={"round": ROUNDINGS, "ftz": ("", "ftz."), "type": ("f32", "f64")},
        legal=_single if op == "sqrt" else always,
        cover=_single,
        writes="d:{type}",
        reads="a:{type}",
    )


FORMS = (
    *(_arithmetic(op, "ab") for op in ("add", "sub", "mul")),
    _arithmetic("fma", "abc"),
    _arithmetic("mad", "abc"),
    _arithmetic("div", "ab", ("ftz",)),
    *(
        Form(
            id=f"{op}.float.default",
            text=f"{op}.{{type}} {{d}}, {{a}}, {{b}};",
            macro=f"math.{op}(type, d, a, b)",
            axes={"type": ("f32", "f64")},
            writes="d:{type}",
            reads="a:{type} b:{type}",
        )
        for op in ("add", "sub", "mul")
    ),
    Form(
        id="div.approx",
        text="div.{mode}.{ftz}f32 {d}, {a}, {b};",
        macro='math.div(mode ~ "." ~ ftz ~ "f32", d, a, b)',
        axes={"mode": ("approx", "full"), "ftz": ("", "ftz.")},
        writes="d:f32",
        reads="a:f32~moderate b:f32~moderate",
        semantic="ulp",
    ),
    _rounded_unary("rcp"),
    _rounded_unary("sqrt"),
    _approximate("rcp", "moderate", _RECIPROCAL),
    _approximate("sqrt", "positive"),
    _approximate("rsqrt", "positive"),
    _approximate("sin", "angle", _ANGLE),
    _approximate("cos", "angle", _ANGLE),
    _approximate("lg2", "positive", _LOGARITHM),
    _approximate("ex2", "exponent"),
    Form(
        id="tanh.approx",
        text="tanh.approx.f32 {d}, {a};",
        macro='math.tanh("approx.f32", d, a)',
        writes="d:f32",
        reads="a:f32~angle",
        ptx=(7, 0),
        target="sm_75",
        semantic="ulp",
        bound=_TANH,
    ),
    Form(
        id="rcp.approx.f64",
        text="rcp.approx.ftz.f64 {d}, {a};",
        macro='math.rcp("approx.ftz.f64", d, a)',
        writes="d:f64",
        reads="a:f64~moderate",
        semantic="ulp",
        bound=_HIGH_WORD,
    ),
    Form(
        id="rsqrt.approx.f64",
        text="rsqrt.approx.{ftz}f64 {d}, {a};",
        macro='math.rsqrt("approx." ~ ftz ~ "f64", d, a)',
        axes={"ftz": ("", "ftz.")},
        writes="d:f64",
        reads="a:f64~positive",
        semantic="ulp",
        bound=lambda axes: _HIGH_WORD if axes["ftz"] else Bound(),
    ),
    _min_max("min"),
    _min_max("max"),
    _unary("neg"),
    _unary("abs"),
    Form(
        id="copysign",
        text="copysign.{type} {d}, {a}, {b};",
        macro="math.copysign(type, d, a, b)",
        axes={"type": ("f32", "f64")},
        writes="d:{type}",
        reads="a:{type} b:{type}",
    ),
    Form(
        id="testp",
        text="testp.{op}.{type} {p}, {a};",
        macro='math.testp(op ~ "." ~ type, p, a)',
        axes={
            "op": ("finite", "infinite", "number", "notanumber", "normal", "subnormal"),
            "type": ("f32", "f64"),
        },
        writes="p:pred",
        reads="a:{type}",
    ),
)
