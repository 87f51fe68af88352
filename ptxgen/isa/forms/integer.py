"""Integer arithmetic (PTX ISA 9.7.1) and extended precision (9.7.2)."""

from __future__ import annotations

from ptxgen.isa.forms.base import Axes, Form, Newer, Run

INTS = ("u16", "s16", "u32", "s32", "u64", "s64")
_V80_SM90 = ((8, 0), "sm_90")
_PACKED: Newer = {("type", "u16x2"): _V80_SM90, ("type", "s16x2"): _V80_SM90}


def _sat(axes: Axes) -> bool:
    return not axes["sat"] or axes["type"] == "s32"


def _relu(axes: Axes) -> bool:
    return not axes["relu"] or axes["type"] in ("s32", "s16x2")


def _wide(axes: Axes) -> dict[str, str]:
    kind, bits = str(axes["type"])[0], int(str(axes["type"])[1:])
    return {"out": f"{kind}{bits * 2}"}


def _two(op: str) -> Form:
    """add and sub: `.sat` for s32 only, packed pairs for add."""
    packed = ("u16x2", "s16x2") if op == "add" else ()
    return Form(
        id=f"{op}.int",
        text=f"{op}.{{sat}}{{type}} {{d}}, {{a}}, {{b}};",
        macro=f"math.{op}(sat ~ type, d, a, b)",
        axes={"type": (*INTS, *packed), "sat": ("", "sat.")},
        legal=_sat,
        writes="d:{type}",
        reads="a:{type} b:{type}",
        newer=_PACKED if packed else {},
    )


def _min_max(op: str) -> Form:
    return Form(
        id=f"{op}.int",
        text=f"{op}.{{relu}}{{type}} {{d}}, {{a}}, {{b}};",
        macro=f"math.{op}(relu ~ type, d, a, b)",
        axes={"type": (*INTS, "u16x2", "s16x2"), "relu": ("", "relu.")},
        legal=_relu,
        writes="d:{type}",
        reads="a:{type} b:{type}",
        newer={**_PACKED, ("relu", "relu."): _V80_SM90},
    )


FORMS = (
    _two("add"),
    _two("sub"),
    Form(
        id="mul.int",
        text="mul.{part}.{type} {d}, {a}, {b};",
        macro='math.mul(part ~ "." ~ type, d, a, b)',
        axes={"part": ("lo", "hi"), "type": INTS},
        writes="d:{type}",
        reads="a:{type} b:{type}",
    ),
    Form(
        id="mul.wide",
        text="mul.wide.{type} {d}, {a}, {b};",
        macro='math.mul("wide." ~ type, d, a, b)',
        axes={"type": INTS[:4]},
        derive=_wide,
        writes="d:{out}",
        reads="a:{type} b:{type}",
    ),
    Form(
        id="mad.int",
        text="mad.{part}.{sat}{type} {d}, {a}, {b}, {c};",
        macro='math.mad(part ~ "." ~ sat ~ type, d, a, b, c)',
        axes={"part": ("lo", "hi"), "sat": ("", "sat."), "type": INTS},
        legal=lambda axes: not axes["sat"] or (axes["part"], axes["type"]) == ("hi", "s32"),
        writes="d:{type}",
        reads="a:{type} b:{type} c:{type}",
    ),
    Form(
        id="mad.wide",
        text="mad.wide.{type} {d}, {a}, {b}, {c};",
        macro='math.mad("wide." ~ type, d, a, b, c)',
        axes={"type": INTS[:4]},
        derive=_wide,
        writes="d:{out}",
        reads="a:{type} b:{type} c:{out}",
    ),
    Form(
        id="mul24",
        text="mul24.{part}.{type} {d}, {a}, {b};",
        macro='math.mul24(part ~ "." ~ type, d, a, b)',
        axes={"part": ("lo", "hi"), "type": ("u32", "s32")},
        writes="d:{type}",
        reads="a:{type} b:{type}",
    ),
    Form(
        id="mad24",
        text="mad24.{part}.{sat}{type} {d}, {a}, {b}, {c};",
        macro='math.mad24(part ~ "." ~ sat ~ type, d, a, b, c)',
        axes={"part": ("lo", "hi"), "sat": ("", "sat."), "type": ("u32", "s32")},
        legal=lambda axes: not axes["sat"] or (axes["part"], axes["type"]) == ("hi", "s32"),
        writes="d:{type}",
        reads="a:{type} b:{type} c:{type}",
    ),
    *(
        Form(
            id=f"{op}.int",
            text=f"{op}.{{type}} {{d}}, {{a}}, {{b}};",
            macro=f"math.{op}(type, d, a, b)",
            axes={"type": INTS},
            writes="d:{type}",
            reads="a:{type} b:{type}~divisor",
        )
        for op in ("div", "rem")
    ),
    *(
        Form(
            id=f"{op}.int",
            text=f"{op}.{{type}} {{d}}, {{a}};",
            macro=f"math.{op}(type, d, a)",
            axes={"type": ("s16", "s32", "s64")},
            writes="d:{type}",
            reads="a:{type}",
        )
        for op in ("neg", "abs")
    ),
    _min_max("min"),
    _min_max("max"),
    Form(
        id="sad",
        text="sad.{type} {d}, {a}, {b}, {c};",
        macro="math.sad(type, d, a, b, c)",
        axes={"type": INTS},
        writes="d:{type}",
        reads="a:{type} b:{type} c:{type}",
    ),
    Form(
        id="dp4a",
        text="dp4a.{left}.{right} {d}, {a}, {b}, {c};",
        macro='math.dp4a(left ~ "." ~ right, d, a, b, c)',
        axes={"left": ("u32", "s32"), "right": ("u32", "s32")},
        writes="d:u32",
        reads="a:b32 b:b32 c:u32",
    ),
    Form(
        id="dp2a",
        text="dp2a.{part}.{left}.{right} {d}, {a}, {b}, {c};",
        macro='math.dp2a(part ~ "." ~ left ~ "." ~ right, d, a, b, c)',
        axes={"part": ("lo", "hi"), "left": ("u32", "s32"), "right": ("u32", "s32")},
        writes="d:u32",
        reads="a:b32 b:b32 c:u32",
    ),
    Form(
        id="video",
        text="v{op}.{to}.{left}.{right}{sat} {d}, {a}, {b};",
        macro='math.video("v" ~ op, to ~ "." ~ left ~ "." ~ right ~ sat, d, a, b)',
        axes={
            "op": ("add", "sub", "absdiff", "min", "max"),
            **{axis: ("u32", "s32") for axis in ("to", "left", "right")},
            "sat": ("", ".sat"),
        },
        writes="d:u32",
        reads="a:b32 b:b32",
    ),
    *(
        Form(
            id=f"{op}.cc",
            text=f"{op}.cc.{{type}} {{d}}, {{a}}, {{b}};",
            macro=f'math.{op}("cc." ~ type, d, a, b)',
            axes={"type": ("u32", "s32", "u64", "s64")},
            writes="d:{type}",
            reads="a:{type} b:{type}",
            run=Run(after=(f"{op}c.u32 %carry, 0, 0;",), sees="carry:u32"),
        )
        for op in ("add", "sub")
    ),
    *(
        Form(
            id=f"{op}c",
            text=f"{op}c.{{cc}}{{type}} {{d}}, {{a}}, {{b}};",
            macro=f"math.{op}c(cc ~ type, d, a, b)",
            axes={"cc": ("", "cc."), "type": ("u32", "s32", "u64", "s64")},
            writes="d:{type}",
            reads="a:{type} b:{type} x:u32",
            run=Run(
                scratch=("b32 %ignored",),
                before=(f"{op}.cc.u32 %ignored, {{x}}, 0x80000000;",),
                after=("addc.u32 %carry, 0, 0;",),
                sees="carry:u32",
            ),
        )
        for op in ("add", "sub")
    ),
    Form(
        id="mad.cc",
        text="mad.{part}.cc.{type} {d}, {a}, {b}, {c};",
        macro='math.mad(part ~ ".cc." ~ type, d, a, b, c)',
        axes={"part": ("lo", "hi"), "type": ("u32", "s32", "u64", "s64")},
        writes="d:{type}",
        reads="a:{type} b:{type} c:{type}",
        run=Run(after=("addc.u32 %carry, 0, 0;",), sees="carry:u32"),
    ),
    Form(
        id="madc",
        text="madc.{part}.{cc}{type} {d}, {a}, {b}, {c};",
        macro='math.madc(part ~ "." ~ cc ~ type, d, a, b, c)',
        axes={"part": ("lo", "hi"), "cc": ("", "cc."), "type": ("u32", "s32", "u64", "s64")},
        writes="d:{type}",
        reads="a:{type} b:{type} c:{type} x:u32",
        run=Run(
            scratch=("b32 %ignored",),
            before=("add.cc.u32 %ignored, {x}, 0x80000000;",),
            after=("addc.u32 %carry, 0, 0;",),
            sees="carry:u32",
        ),
    ),
)
