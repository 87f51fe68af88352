"""Atomics and reductions (PTX ISA 9.7.13.5 and 9.7.13.6)."""

from __future__ import annotations

from ptxgen.isa.forms.base import Axes, Form, Newer, Run

_SPACES = ("", "global.", "shared.", "shared::cta.")
_CTA: Newer = {("space", "shared::cta."): ((7, 8), "sm_70")}
_SCOPES = ("", "cta.", "cluster.", "gpu.", "sys.")
_CLUSTER: Newer = {("scope", "cluster."): ((7, 8), "sm_90")}
_INTEGER = {
    "add": ("u32", "s32", "u64", "f32", "f64"),
    "min": ("u32", "s32", "u64", "s64"),
    "max": ("u32", "s32", "u64", "s64"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
}
_EXCHANGE = {"exch": ("b32", "b64")}
_ALL_TYPES = ("b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
_HALVES = ("f16", "f16x2", "bf16", "bf16x2")


def _pairs(axes: Axes) -> bool:
    return axes["type"] in {**_INTEGER, **_EXCHANGE}[str(axes["op"])]


def _where(axes: Axes) -> dict[str, str]:
    """Floats are exact in cells of small numbers; integers are any bits."""
    space = str(axes.get("space", "global.")).rstrip(".")
    names = {"cell": space.removesuffix("::cta") or "generic"}
    if "vec" in axes:
        names["count"] = str(axes["vec"])[1:]
    return names


def _float_cells(axes: Axes) -> Run:
    type_ = str(axes["type"]).removesuffix("x2")
    return Run(inputs=f"small.{type_}" if "f" in type_ else "bytes")


def _own(op: str) -> Form:
    """atom returns the old value, red does not; otherwise they are one table."""
    table = {**_INTEGER, **_EXCHANGE} if op == "atom" else _INTEGER
    d = "{d}, " if op == "atom" else ""
    arguments = "d, a, b" if op == "atom" else "a, b"
    return Form(
        id=op,
        text=f"{op}.{{space}}{{op}}.{{type}} {d}[{{a}}], {{b}};",
        macro=f'atom.{op}(space ~ op ~ "." ~ type, {arguments})',
        axes={"space": _SPACES, "op": tuple(table), "type": _ALL_TYPES},
        legal=_pairs,
        derive=_where,
        writes="d:{type}" if op == "atom" else "",
        reads="a:@{cell} b:{type}~addend",
        newer=_CTA,
        run=_float_cells,
    )


def _ordered(op: str) -> Form:
    d = "{d}, " if op == "atom" else ""
    arguments = "d, a, b" if op == "atom" else "a, b"
    sems = ("", "relaxed.", "acquire.", "release.", "acq_rel.") if op == "atom" else (
        "", "relaxed.", "release.",
    )  # fmt: skip
    return Form(
        id=f"{op}.ordered",
        text=f"{op}.{{sem}}{{scope}}{{space}}{{op}}.{{type}} {d}[{{a}}], {{b}};",
        macro=f'atom.{op}(sem ~ scope ~ space ~ op ~ "." ~ type, {arguments})',
        axes={
            "sem": sems,
            "scope": _SCOPES,
            "space": ("global.", "shared."),
            "op": ("add", "or"),
            "type": ("u32", "b32"),
        },
        legal=_pairs,
        cover=lambda axes: bool(axes["scope"]),
        derive=_where,
        writes="d:{type}" if op == "atom" else "",
        reads="a:@{cell} b:{type}",
        newer=_CLUSTER,
    )


def _half(op: str) -> Form:
    d = "{d}, " if op == "atom" else ""
    arguments = "d, a, b" if op == "atom" else "a, b"
    return Form(
        id=f"{op}.half",
        text=f"{op}.{{space}}add.noftz.{{type}} {d}[{{a}}], {{b}};",
        macro=f'atom.{op}(space ~ "add.noftz." ~ type, {arguments})',
        axes={"space": _SPACES, "type": _HALVES},
        derive=_where,
        writes="d:{type}" if op == "atom" else "",
        reads="a:@{cell} b:{type}~addend",
        ptx=(6, 2),
        newer={
            **_CTA,
            ("type", "f16"): ((6, 3), "sm_70"),
            ("type", "bf16"): ((7, 8), "sm_90"),
            ("type", "bf16x2"): ((7, 8), "sm_90"),
        },
        run=_float_cells,
    )


def _vector(op: str) -> Form:
    d = "{d}, " if op == "atom" else ""
    arguments = "d, a, b" if op == "atom" else "a, b"
    return Form(
        id=f"{op}.vector",
        text=f"{op}.global.{{op}}{{noftz}}.{{vec}}.{{type}} {d}[{{a}}], {{b}};",
        macro=f'atom.{op}("global." ~ op ~ noftz ~ "." ~ vec ~ "." ~ type, {arguments})',
        axes={
            "op": ("add", "min", "max"),
            "noftz": ("", ".noftz"),
            "vec": ("v2", "v4", "v8"),
            "type": ("f32", *_HALVES),
        },
        legal=_vector_legal,
        derive=_where,
        writes="d:{type}*{count}" if op == "atom" else "",
        reads="a:@global b:{type}*{count}~addend",
        ptx=(8, 1),
        target="sm_90",
        run=_float_cells,
    )


def _vector_legal(axes: Axes) -> bool:
    type_, lanes = str(axes["type"]), int(str(axes["vec"])[1:])
    if type_ == "f32":
        return axes["op"] == "add" and not axes["noftz"] and lanes <= 4
    return bool(axes["noftz"]) and lanes <= (4 if type_.endswith("x2") else 8)


_CAS_DRAIN = "mov.b128 {{%low, %high}}, %old;"

FORMS = (
    _own("atom"),
    _own("red"),
    _ordered("atom"),
    _ordered("red"),
    _half("atom"),
    _half("red"),
    _vector("atom"),
    _vector("red"),
    Form(
        id="atom.cas",
        text="atom.{space}cas.{type} {d}, [{a}], {b}, {c};",
        macro='atom.cas(space ~ "cas." ~ type, d, a, b, c)',
        axes={"space": _SPACES, "type": ("b16", "b32", "b64")},
        derive=_where,
        writes="d:{type}",
        reads="a:@{cell} b:{type}~sparse c:{type}",
        newer={**_CTA, ("type", "b16"): ((6, 3), "sm_70")},
        run=Run(inputs="sparse.u64"),
    ),
    Form(
        id="atom.b128",
        text="atom.global.{op}.b128 %old, [{a}], {values};",
        macro='atom.b128("global." ~ op ~ ".b128", "%old", a, values)',
        axes={"op": ("exch", "cas")},
        derive=lambda axes: {"values": "%x" if axes["op"] == "exch" else "%x, %y"},
        reads="a:@global b:b64*2~sparse c:b64*2",
        ptx=(8, 3),
        target="sm_90",
        run=Run(
            scratch=("b128 %old, %x, %y",),
            before=("mov.b128 %x, {b};", "mov.b128 %y, {c};"),
            after=(_CAS_DRAIN,),
            sees="low:b64 high:b64",
            inputs="sparse.u64",
        ),
    ),
    Form(
        id="red.contended",
        text="red.{space}{op}.{type} [{a}], {b};",
        macro='atom.red(space ~ op ~ "." ~ type, a, b)',
        axes={"space": ("global.", "shared."), "op": tuple(_INTEGER), "type": _ALL_TYPES},
        legal=_pairs,
        cover=lambda axes: str(axes["type"])[0] != "f",
        derive=_where,
        reads="a:@{cell}~first b:{type}~few",
        run=Run(inputs="few"),
    ),
    Form(
        id="atom.shared::cluster",
        text="atom.shared::cluster.{op}.{type} {d}, [{a}], {b};",
        macro='atom.atom("shared::cluster." ~ op ~ "." ~ type, d, a, b)',
        axes={"op": ("add", "exch", "max"), "type": ("u32", "b32", "u64", "b64")},
        legal=_pairs,
        writes="d:{type}",
        reads="a:@shared b:{type}",
        ptx=(7, 8),
        target="sm_90",
        run=Run(
            cluster=2,
            before=(
                "barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;",
                "mov.u32 %peer, %cluster_ctarank;", "xor.b32 %peer, %peer, 1;",
                "mapa.shared::cluster.u32 {a}, {a}, %peer;",
            ),
            after=("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"),
            scratch=("b32 %peer",),
        ),
    ),
)  # fmt: skip
