"""Matrix loads and stores, and mma.sync (PTX ISA 9.7.14)."""

from __future__ import annotations

from collections.abc import Mapping

from ptxgen.isa.forms.base import Axes, Form, Version

_FP8 = ("e4m3", "e5m2")
_INT8 = ("s8", "u8")

# Of each shape and kind of operands: registers of d and c, a, b.
_DENSE: Mapping[tuple[str, str], tuple[int, int, int]] = {
    ("m16n8k8", "f16"): (2, 2, 1), ("m16n8k16", "f16"): (2, 4, 2),
    ("m16n8k8", "f32.f16"): (4, 2, 1), ("m16n8k16", "f32.f16"): (4, 4, 2),
    ("m16n8k8", "bf16"): (4, 2, 1), ("m16n8k16", "bf16"): (4, 4, 2),
    ("m16n8k4", "tf32"): (4, 2, 1), ("m16n8k8", "tf32"): (4, 4, 2),
    ("m8n8k16", "int8"): (2, 1, 1), ("m16n8k16", "int8"): (4, 2, 1),
    ("m16n8k32", "int8"): (4, 4, 2),
    ("m16n8k16", "fp8"): (4, 2, 1), ("m16n8k32", "fp8"): (4, 4, 2),
    ("m16n8k16", "fp8.f16"): (2, 2, 1), ("m16n8k32", "fp8.f16"): (2, 4, 2),
    ("m8n8k4", "f64"): (2, 1, 1), ("m16n8k4", "f64"): (4, 2, 1),
    ("m16n8k8", "f64"): (4, 4, 2), ("m16n8k16", "f64"): (4, 8, 4),
}  # fmt: skip


def _mma(
    id: str,
    shapes: tuple[str, ...],
    kind: str,
    types: str,
    axes: Mapping[str, tuple[str, ...]],
    acc: str,
    source: str,
    ptx: Version,
    target: str,
    newer: Mapping[tuple[str, str | int], tuple[Version, str]] | None = None,
    sat: bool = False,
) -> Form:
    """One kind of operands. `types` is the type list with holes for the axes a and b."""

    def counts(axes: Axes) -> dict[str, str | int]:
        d, a, b = _DENSE[str(axes["shape"]), kind]
        return {"nd": d, "na": a, "nb": b, "left_values": f"small.{axes.get('left', source)}",
                "right_values": f"small.{axes.get('right', source)}"}  # fmt: skip

    width = "b64" if source == "f64" else "b32"
    sat_axis = {"sat": ("", ".satfinite")} if sat else {}
    sat_text = "{sat}" if sat else ""
    sat_macro = " ~ sat" if sat else ""
    pieces = types.replace("{left}", '" ~ left ~ "').replace("{right}", '" ~ right ~ "')
    return Form(
        id=id,
        text=f"mma.sync.aligned.{{shape}}.row.col{sat_text}.{types} {{d}}, {{a}}, {{b}}, {{c}};",
        macro=f'mma.mma_sync(shape ~ ".row.col"{sat_macro} ~ ".{pieces}", d, a, b, c)',
        axes={"shape": shapes, **axes, **sat_axis},
        derive=counts,
        writes=f"d:{acc}*{{nd}}",
        reads=f"a:{width}*{{na}}~{{left_values}} b:{width}*{{nb}}~{{right_values}} "
        f"c:{acc}*{{nd}}~small.{acc.removesuffix('x2')}",
        ptx=ptx,
        target=target,
        newer=newer or {},
    )


_SPARSE: Mapping[tuple[str, str], tuple[int, int, int]] = {
    ("m16n8k16", "f16"): (4, 2, 2), ("m16n8k32", "f16"): (4, 4, 4),
    ("m16n8k16", "bf16"): (4, 2, 2), ("m16n8k32", "bf16"): (4, 4, 4),
    ("m16n8k8", "tf32"): (4, 2, 2), ("m16n8k16", "tf32"): (4, 4, 4),
    ("m16n8k32", "s8"): (4, 2, 2), ("m16n8k64", "s8"): (4, 4, 4),
    ("m16n8k32", "u8"): (4, 2, 2), ("m16n8k64", "u8"): (4, 4, 4),
    ("m16n8k64", "e4m3"): (4, 4, 4), ("m16n8k64", "e5m2"): (4, 4, 4),
}  # fmt: skip
_SELECTORS = {
    ("m16n8k16", "f16"): 4, ("m16n8k16", "bf16"): 4, ("m16n8k32", "f16"): 2,
    ("m16n8k32", "bf16"): 2, ("m16n8k8", "tf32"): 4, ("m16n8k16", "tf32"): 2,
    ("m16n8k32", "s8"): 2, ("m16n8k32", "u8"): 2,
}  # fmt: skip


def _sparse_legal(axes: Axes) -> bool:
    return (str(axes["shape"]), str(axes["type"])) in _SPARSE


def _sparse_cover(axes: Axes) -> bool:
    """ptxas takes more selectors than the PTX ISA has; only those that it has are tried."""
    key = str(axes["shape"]), str(axes["type"])
    return int(axes["selector"]) < _SELECTORS.get(key, 1)


def _sparse_counts(axes: Axes) -> dict[str, str | int]:
    type_ = str(axes["type"])
    d, a, b = _SPARSE.get((str(axes["shape"]), type_), (4, 4, 4))
    acc = "s32" if type_ in _INT8 else "f32"
    return {"nd": d, "na": a, "nb": b, "acc": acc, "values": f"small.{type_}",
            "metadata": "pairs_tf32" if type_ == "tf32" else "pairs"}  # fmt: skip


def _sparse(id: str, mode: str, types: tuple[str, ...], ptx: Version, target: str) -> Form:
    return Form(
        id=id,
        text=f"mma.{mode}.sync.aligned.{{shape}}.row.col.{{acc}}.{{type}}.{{type}}.{{acc}} "
        "{d}, {a}, {b}, {c}, {e}, {selector};",
        macro=(
            f'mma.mma_sp("{mode}", shape ~ ".row.col." ~ acc ~ "." ~ type ~ "." ~ type ~ "." '
            "~ acc, d, a, b, c, e, selector)"
        ),
        axes={
            "shape": ("m16n8k8", "m16n8k16", "m16n8k32", "m16n8k64"),
            "type": types,
            "selector": (0, 1, 2, 3),
        },
        legal=_sparse_legal,
        cover=_sparse_cover,
        derive=_sparse_counts,
        writes="d:{acc}*{nd}",
        reads="a:b32*{na}~{values} b:b32*{nb}~{values} c:{acc}*{nd}~small.{acc} e:b32~{metadata}",
        ptx=ptx,
        target=target,
    )


_FP8_AXES = {"left": _FP8, "right": _FP8}
_INT8_AXES = {"left": _INT8, "right": _INT8}

FORMS = (
    Form(
        id="ldmatrix",
        text="ldmatrix.sync.aligned.m8n8.x{n}{trans}.{space}.b16 {d}, [{a}];",
        macro='memory.ldmatrix("m8n8.x" ~ n ~ trans ~ "." ~ space ~ ".b16", d, a)',
        axes={"n": (1, 2, 4), "trans": ("", ".trans"), "space": ("shared", "shared::cta")},
        writes="d:b32*{n}",
        reads="a:@shared",
        ptx=(6, 5),
        target="sm_75",
        newer={("space", "shared::cta"): ((7, 8), "sm_75")},
    ),
    Form(
        id="stmatrix",
        text="stmatrix.sync.aligned.m8n8.x{n}{trans}.{space}.b16 [{a}], {b};",
        macro='memory.stmatrix("m8n8.x" ~ n ~ trans ~ "." ~ space ~ ".b16", a, b)',
        axes={"n": (1, 2, 4), "trans": ("", ".trans"), "space": ("shared", "shared::cta")},
        reads="a:@shared b:b32*{n}",
        ptx=(7, 8),
        target="sm_90",
    ),
    Form(
        id="stmatrix.x4",
        text="stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [{a}], {{{b0}, {b1}, {b2}, {b3}}};",
        macro="memory.stmatrix_x4(a, b0, b1, b2, b3)",
        reads="a:@shared b0:b32 b1:b32 b2:b32 b3:b32",
        ptx=(7, 8),
        target="sm_90",
    ),
    Form(
        id="stmatrix.x2",
        text="stmatrix.sync.aligned.m8n8.x2.shared::cta.b16 [{a}], {{{b0}, {b1}}};",
        macro="memory.stmatrix_x2(a, b0, b1)",
        reads="a:@shared b0:b32 b1:b32",
        ptx=(7, 8),
        target="sm_90",
    ),
    Form(
        id="movmatrix",
        text="movmatrix.sync.aligned.m8n8.trans.b16 {d}, {a};",
        macro="memory.movmatrix(d, a)",
        writes="d:b32",
        reads="a:b32",
        ptx=(7, 8),
        target="sm_75",
    ),
    Form(
        id="mma.m8n8k4",
        text="mma.sync.aligned.m8n8k4.{left}.{right}.f32.f16.f16.f32 {d}, {a}, {b}, {c};",
        macro='mma.mma_sync("m8n8k4." ~ left ~ "." ~ right ~ ".f32.f16.f16.f32", d, a, b, c)',
        axes={"left": ("row", "col"), "right": ("row", "col")},
        writes="d:f32*8",
        reads="a:b32*2~small.f16 b:b32*2~small.f16 c:f32*8~small.f32",
        ptx=(6, 4),
    ),
    _mma("mma.f16", ("m16n8k8", "m16n8k16"), "f16", "f16.f16.f16.f16", {}, "f16x2", "f16",
         (6, 5), "sm_75", {("shape", "m16n8k16"): ((7, 0), "sm_80")}),
    _mma("mma.f16.f32", ("m16n8k8", "m16n8k16"), "f32.f16", "f32.f16.f16.f32", {}, "f32", "f16",
         (6, 5), "sm_75", {("shape", "m16n8k16"): ((7, 0), "sm_80")}),
    _mma("mma.bf16", ("m16n8k8", "m16n8k16"), "bf16", "f32.bf16.bf16.f32", {}, "f32", "bf16",
         (7, 0), "sm_80"),
    _mma("mma.tf32", ("m16n8k4", "m16n8k8"), "tf32", "f32.tf32.tf32.f32", {}, "f32", "tf32",
         (7, 0), "sm_80"),
    _mma("mma.int8", ("m8n8k16", "m16n8k16", "m16n8k32"), "int8", "s32.{left}.{right}.s32",
         _INT8_AXES, "s32", "s8", (6, 5), "sm_75",
         {("shape", "m16n8k16"): ((7, 0), "sm_80"), ("shape", "m16n8k32"): ((7, 0), "sm_80")},
         sat=True),
    _mma("mma.fp8", ("m16n8k16", "m16n8k32"), "fp8", "f32.{left}.{right}.f32", _FP8_AXES, "f32",
         "e4m3", (8, 4), "sm_89", {("shape", "m16n8k16"): ((8, 7), "sm_89")}),
    _mma("mma.fp8.f16", ("m16n8k16", "m16n8k32"), "fp8.f16", "f16.{left}.{right}.f16", _FP8_AXES,
         "f16x2", "e4m3", (8, 7), "sm_89"),
    _mma("mma.f64", ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"), "f64", "f64.f64.f64.f64", {},
         "f64", "f64", (7, 0), "sm_80",
         {("shape", s): ((7, 8), "sm_90") for s in ("m16n8k4", "m16n8k8", "m16n8k16")}),
    _sparse("mma.sp::ordered_metadata", "sp::ordered_metadata",
            ("f16", "bf16", "tf32", "s8", "u8"), (8, 5), "sm_80"),
    _sparse("mma.sp", "sp", ("f16", "bf16", "tf32", "s8", "u8"), (7, 1), "sm_80"),
    _sparse("mma.sp.fp8", "sp", _FP8, (8, 4), "sm_89"),
)  # fmt: skip
