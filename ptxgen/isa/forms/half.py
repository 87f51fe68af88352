"""f16 and bf16 arithmetic, one or two at a time (PTX ISA 9.7.4)."""

from __future__ import annotations

from ptxgen.isa.forms.base import OLDEST, Axes, Bound, Form, Newer

F16 = ("f16", "f16x2")
BF16 = ("bf16", "bf16x2")
_BF16_SM80: Newer = {("type", t): ((7, 0), "sm_80") for t in BF16}
_BF16_SM90: Newer = {("type", t): ((7, 8), "sm_90") for t in BF16}

# Errors that the PTX ISA states: relative ones of ex2 (9.7.4.10), absolute ones of tanh (9.7.4.9).
_EXPONENTIAL = {"f16": Bound(ulp=1, relative=2**-9.9), "bf16": Bound(ulp=1, relative=2**-7)}
_TANH = {"f16": Bound(ulp=1, absolute=2**-10.987), "bf16": Bound(ulp=1, absolute=2**-8)}


def _mods(axes: Axes) -> bool:
    """bf16 has neither .ftz nor .sat; .relu excludes .sat."""
    if str(axes["type"]).startswith("bf16") and (axes.get("ftz") or axes.get("sat")):
        return False
    return not (axes.get("relu") and axes.get("sat"))


def _binary(op: str) -> Form:
    return Form(
        id=f"{op}.half",
        text=f"{op}.{{round}}{{ftz}}{{sat}}{{type}} {{d}}, {{a}}, {{b}};",
        macro=f"math.{op}(round ~ ftz ~ sat ~ type, d, a, b)",
        axes={
            "round": ("", "rn."),
            "ftz": ("", "ftz."),
            "sat": ("", "sat."),
            "type": (*F16, *BF16),
        },
        legal=_mods,
        writes="d:{type}",
        reads="a:{type} b:{type}",
        newer=_BF16_SM90,
    )


def _min_max(op: str) -> Form:
    return Form(
        id=f"{op}.half",
        text=f"{op}.{{ftz}}{{nan}}{{xor}}{{type}} {{d}}, {{a}}, {{b}};",
        macro=f"math.{op}(ftz ~ nan ~ xor ~ type, d, a, b)",
        axes={
            "ftz": ("", "ftz."),
            "nan": ("", "NaN."),
            "xor": ("", "xorsign.abs."),
            "type": (*F16, *BF16),
        },
        legal=_mods,
        writes="d:{type}",
        reads="a:{type} b:{type}",
        ptx=(7, 0),
        target="sm_80",
        newer={("xor", "xorsign.abs."): ((7, 2), "sm_86")},
    )


FORMS = (
    *(_binary(op) for op in ("add", "sub", "mul")),
    Form(
        id="fma.half",
        text="fma.rn.{ftz}{sat}{relu}{type} {d}, {a}, {b}, {c};",
        macro='math.fma("rn." ~ ftz ~ sat ~ relu ~ type, d, a, b, c)',
        axes={
            "ftz": ("", "ftz."),
            "sat": ("", "sat."),
            "relu": ("", "relu."),
            "type": (*F16, *BF16),
        },
        legal=_mods,
        writes="d:{type}",
        reads="a:{type} b:{type} c:{type}",
        newer={**_BF16_SM80, ("relu", "relu."): ((7, 0), "sm_80")},
    ),
    Form(
        id="fma.oob",
        text="fma.rn.oob.{relu}{type} {d}, {a}, {b}, {c};",
        macro='math.fma("rn.oob." ~ relu ~ type, d, a, b, c)',
        axes={"relu": ("", "relu."), "type": (*F16, *BF16)},
        writes="d:{type}",
        reads="a:{type}~oob b:{type}~oob c:{type}~oob",
        ptx=(8, 1),
        target="sm_90",
    ),
    _min_max("min"),
    _min_max("max"),
    *(
        Form(
            id=f"{op}.half",
            text=f"{op}.{{ftz}}{{type}} {{d}}, {{a}};",
            macro=f"math.{op}(ftz ~ type, d, a)",
            axes={"ftz": ("", "ftz."), "type": (*F16, *BF16)},
            legal=_mods,
            writes="d:{type}",
            reads="a:{type}",
            ptx=least,
            newer=_BF16_SM80,
        )
        for op, least in (("neg", OLDEST), ("abs", (6, 5)))
    ),
    Form(
        id="ex2.half",
        text="ex2.approx.{ftz}{type} {d}, {a};",
        macro='math.ex2("approx." ~ ftz ~ type, d, a)',
        axes={"ftz": ("", "ftz."), "type": (*F16, *BF16)},
        legal=lambda axes: bool(axes["ftz"]) == str(axes["type"]).startswith("bf16"),
        writes="d:{type}",
        reads="a:{type}~exponent",
        ptx=(7, 0),
        target="sm_75",
        newer=_BF16_SM90,
        semantic="ulp",
        bound=lambda axes: _EXPONENTIAL[str(axes["type"]).removesuffix("x2")],
    ),
    Form(
        id="tanh.half",
        text="tanh.approx.{type} {d}, {a};",
        macro='math.tanh("approx." ~ type, d, a)',
        axes={"type": (*F16, *BF16)},
        writes="d:{type}",
        reads="a:{type}~angle",
        ptx=(7, 0),
        target="sm_75",
        newer=_BF16_SM90,
        semantic="ulp",
        bound=lambda axes: _TANH[str(axes["type"]).removesuffix("x2")],
    ),
)
