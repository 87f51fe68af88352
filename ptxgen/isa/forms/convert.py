"""cvt (PTX ISA 9.7.9.21), cvt.pack, and conversions of addresses between state spaces."""

from __future__ import annotations

from ptxgen.isa.forms.base import Axes, Form

_INTS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
_FLOATS = ("f16", "f32", "f64")
_TO_INT = ("rni", "rzi", "rmi", "rpi")
_TO_FLOAT = ("rn", "rz", "rm", "rp")


def _registers(axes: Axes) -> dict[str, str]:
    """8-bit values live in 32-bit registers here, so that the extension is seen."""
    return {
        f"{name}_reg": "b32" if str(axes[name])[1:] == "8" else str(axes[name])
        for name in ("to", "of")
        if name in axes
    }


def _width(name: str) -> int:
    return int(name.lstrip("usbf"))


def _clamps(axes: Axes) -> bool:
    """`.sat` between integers is legal where the source has values that the result lacks."""
    to, of = str(axes["to"]), str(axes["of"])
    if to[0] == of[0]:
        return _width(to) < _width(of)
    return to[0] == "u" or _width(to) <= _width(of)


def _bf16_integer(axes: Axes) -> bool:
    """Between bf16 and integers there is neither `.sat` nor an 8-bit type."""
    if "bf16" not in (axes["to"], axes["of"]):
        return True
    return not axes["sat"] and "8" not in (str(axes["to"])[1:], str(axes["of"])[1:])


def _ftz(axes: Axes) -> bool:
    return not axes["ftz"] or "f32" in (axes["to"], axes["of"])


FORMS = (
    Form(
        id="cvt.int",
        text="cvt.{sat}{to}.{of} {d}, {a};",
        macro='convert.cvt(sat ~ to ~ "." ~ of, d, a)',
        axes={"sat": ("", "sat."), "to": _INTS, "of": _INTS},
        legal=lambda axes: not axes["sat"] or _clamps(axes),
        derive=_registers,
        writes="d:{to_reg}",
        reads="a:{of_reg}",
    ),
    Form(
        id="cvt.float_to_int",
        text="cvt.{round}.{ftz}{sat}{to}.{of} {d}, {a};",
        macro='convert.cvt(round ~ "." ~ ftz ~ sat ~ to ~ "." ~ of, d, a)',
        axes={
            "round": _TO_INT,
            "ftz": ("", "ftz."),
            "sat": ("", "sat."),
            "to": _INTS,
            "of": (*_FLOATS, "bf16"),
        },
        legal=lambda axes: _ftz(axes) and _bf16_integer(axes),
        cover=lambda axes: not axes["sat"] or axes["round"] == "rni",
        derive=_registers,
        writes="d:{to_reg}",
        reads="a:{of}~wide",
        newer={("of", "bf16"): ((7, 8), "sm_90")},
    ),
    Form(
        id="cvt.int_to_float",
        text="cvt.{round}.{sat}{to}.{of} {d}, {a};",
        macro='convert.cvt(round ~ "." ~ sat ~ to ~ "." ~ of, d, a)',
        axes={
            "round": _TO_FLOAT,
            "sat": ("", "sat."),
            "to": (*_FLOATS, "bf16"),
            "of": _INTS,
        },
        legal=_bf16_integer,
        cover=lambda axes: not axes["sat"] or axes["round"] == "rn",
        derive=_registers,
        writes="d:{to}",
        reads="a:{of_reg}",
        newer={("to", "bf16"): ((7, 8), "sm_90")},
    ),
    Form(
        id="cvt.float_narrow",
        text="cvt.{round}.{ftz}{sat}{to}.{of} {d}, {a};",
        macro='convert.cvt(round ~ "." ~ ftz ~ sat ~ to ~ "." ~ of, d, a)',
        axes={
            "round": _TO_FLOAT,
            "ftz": ("", "ftz."),
            "sat": ("", "sat."),
            "to": ("f16", "f32"),
            "of": ("f32", "f64"),
        },
        legal=lambda axes: _ftz(axes) and _width(str(axes["to"])) < _width(str(axes["of"])),
        writes="d:{to}",
        reads="a:{of}",
    ),
    Form(
        id="cvt.float_widen",
        text="cvt.{ftz}{sat}{to}.{of} {d}, {a};",
        macro='convert.cvt(ftz ~ sat ~ to ~ "." ~ of, d, a)',
        axes={
            "ftz": ("", "ftz."),
            "sat": ("", "sat."),
            "to": ("f32", "f64"),
            "of": ("f16", "f32"),
        },
        legal=lambda axes: _ftz(axes) and (axes["to"] == "f32" or axes["of"] != "f64"),
        writes="d:{to}",
        reads="a:{of}",
    ),
    Form(
        id="cvt.f32.bf16",
        text="cvt.f32.bf16 {d}, {a};",
        macro='convert.cvt("f32.bf16", d, a)',
        writes="d:f32",
        reads="a:bf16",
        ptx=(7, 1),
        target="sm_80",
    ),
    Form(
        id="cvt.bf16_widen",
        text="cvt.{to}.bf16 {d}, {a};",
        macro='convert.cvt(to ~ ".bf16", d, a)',
        axes={"to": ("ftz.f32", "f64")},
        derive=lambda axes: {"reg": "b32" if axes["to"] == "ftz.f32" else "b64"},
        writes="d:{reg}",
        reads="a:bf16",
        ptx=(7, 8),
        target="sm_90",
    ),
    Form(
        id="cvt.float_integral",
        text="cvt.{round}.{ftz}{sat}{to}.{to} {d}, {a};",
        macro='convert.cvt(round ~ "." ~ ftz ~ sat ~ to ~ "." ~ to, d, a)',
        axes={
            "round": _TO_INT,
            "ftz": ("", "ftz."),
            "sat": ("", "sat."),
            "to": _FLOATS,
        },
        legal=lambda axes: not axes["ftz"] or axes["to"] == "f32",
        writes="d:{to}",
        reads="a:{to}~wide",
    ),
    Form(
        id="cvt.to_half",
        text="cvt.{round}.{relu}{to}.f32 {d}, {a};",
        macro='convert.cvt(round ~ "." ~ relu ~ to ~ ".f32", d, a)',
        axes={
            "round": ("rn", "rz"),
            "relu": ("", "relu."),
            "to": ("f16", "bf16"),
        },
        cover=lambda axes: axes["to"] == "bf16" or bool(axes["relu"]),
        writes="d:{to}",
        reads="a:f32",
        ptx=(7, 0),
        target="sm_80",
    ),
    Form(
        id="cvt.to_half2",
        text="cvt.{round}.{relu}{sat}{to}.f32 {d}, {a}, {b};",
        macro='convert.cvt2(round ~ "." ~ relu ~ sat ~ to ~ ".f32", d, a, b)',
        axes={
            "round": ("rn", "rz"),
            "relu": ("", "relu."),
            "sat": ("", "satfinite."),
            "to": ("f16x2", "bf16x2"),
        },
        writes="d:{to}",
        reads="a:f32 b:f32",
        ptx=(7, 0),
        target="sm_80",
        newer={("sat", "satfinite."): ((8, 1), "sm_80")},
    ),
    Form(
        id="cvt.to_tf32",
        text="cvt.{round}.{relu}{sat}tf32.f32 {d}, {a};",
        macro='convert.cvt(round ~ "." ~ relu ~ sat ~ "tf32.f32", d, a)',
        axes={
            "round": ("rna", "rn", "rz"),
            "relu": ("", "relu."),
            "sat": ("", "satfinite."),
        },
        legal=lambda axes: not axes["relu"] if axes["round"] == "rna" else not axes["sat"],
        writes="d:b32",
        reads="a:f32",
        ptx=(7, 0),
        target="sm_80",
        newer={
            ("round", "rn"): ((7, 8), "sm_90"),
            ("round", "rz"): ((7, 8), "sm_90"),
            ("sat", "satfinite."): ((8, 1), "sm_80"),
        },
    ),
    Form(
        id="cvt.f32_to_fp8x2",
        text="cvt.rn.satfinite.{relu}{to}.f32 {d}, {a}, {b};",
        macro='convert.cvt2("rn.satfinite." ~ relu ~ to ~ ".f32", d, a, b)',
        axes={"relu": ("", "relu."), "to": ("e4m3x2", "e5m2x2")},
        writes="d:b16",
        reads="a:f32 b:f32",
        ptx=(8, 1),
        target="sm_89",
    ),
    Form(
        id="cvt.f16x2_to_fp8x2",
        text="cvt.rn.satfinite.{relu}{to}.f16x2 {d}, {a};",
        macro='convert.cvt("rn.satfinite." ~ relu ~ to ~ ".f16x2", d, a)',
        axes={"relu": ("", "relu."), "to": ("e4m3x2", "e5m2x2")},
        writes="d:b16",
        reads="a:f16x2",
        ptx=(8, 1),
        target="sm_89",
    ),
    Form(
        id="cvt.fp8x2_to_f16x2",
        text="cvt.rn.{relu}f16x2.{of} {d}, {a};",
        macro='convert.cvt("rn." ~ relu ~ "f16x2." ~ of, d, a)',
        axes={"relu": ("", "relu."), "of": ("e4m3x2", "e5m2x2")},
        writes="d:f16x2",
        reads="a:b16",
        ptx=(8, 1),
        target="sm_89",
    ),
    Form(
        id="cvt.pack",
        text="cvt.pack.sat.{to}.s32 {d}, {a}, {b};",
        macro='convert.cvt2("pack.sat." ~ to ~ ".s32", d, a, b)',
        axes={"to": ("u16", "s16")},
        writes="d:b32",
        reads="a:s32~wide b:s32~wide",
        ptx=(6, 5),
        target="sm_75",
    ),
    Form(
        id="cvt.pack8",
        text="cvt.pack.sat.{to}.s32.b32 {d}, {a}, {b}, {c};",
        macro='convert.cvt_pack("sat." ~ to ~ ".s32.b32", d, a, b, c)',
        axes={"to": ("u8", "s8")},
        writes="d:b32",
        reads="a:s32~wide b:s32~wide c:b32",
        ptx=(6, 5),
        target="sm_75",
    ),
)
