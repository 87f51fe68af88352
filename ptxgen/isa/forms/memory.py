"""Loads, stores and prefetches (PTX ISA 9.7.9.8 to 9.7.9.20)."""

from __future__ import annotations

from ptxgen.isa.forms.base import Axes, Form, Newer, Run

_TYPES = ("b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64",
          "f32", "f64")  # fmt: skip
_SPACES = ("", "global.", "shared.", "shared::cta.", "local.")
_CTA: Newer = {("space", "shared::cta."): ((7, 8), "sm_70")}
_SCOPES = ("cta", "cluster", "gpu", "sys")
_CLUSTER: Newer = {("scope", "cluster"): ((7, 8), "sm_90")}
_VECTORS = {"v2": 2, "v4": 4}
_POLICY = ("createpolicy.fractional.L2::evict_last.b64 %policy, 1.0;",)


def _where(axes: Axes) -> dict[str, str]:
    """The address space of the cell, and a register wide enough to show an extension."""
    space = str(axes.get("space", "global.")).rstrip(".")
    type_ = str(axes.get("type", "b32"))
    names = {
        "cell": space.removesuffix("::cta") or "generic",
        "reg": "b32" if type_.endswith("8") else type_,
    }
    if "vec" in axes:
        names["count"] = str(_VECTORS[str(axes["vec"])])
    return names


def _fits(axes: Axes) -> bool:
    """A vector has at most 128 bits."""
    return _VECTORS[str(axes["vec"])] * int(str(axes["type"])[1:]) <= 128


def _ordered(axes: Axes) -> bool:
    return str(axes["space"]) in ("", "global.", "shared.", "shared::cta.")


def _evictions(axes: Axes) -> bool:
    return not axes["cop"] or not axes["evict"]


_CONST_TABLE = (
    ".const .align 16 .b32 const_table[16] = {{0x01234567, 0x89abcdef, 0xf0e1d2c3, 0xb4a59687, "
    "1, 2, 3, 4, 0xffffffff, 0x80000000, 0x7fffffff, 0xdeadbeef, 5, 6, 7, 8}};",
)
_GLOBAL_TABLE = tuple(line.replace("const", "global", 1) for line in (
    _CONST_TABLE[0].replace("const_table", "global_table"),
))  # fmt: skip

FORMS = (
    Form(
        id="ld",
        text="ld.{space}{type} {d}, [{a}];",
        macro="memory.ld(space ~ type, d, a)",
        axes={"space": _SPACES, "type": _TYPES},
        derive=_where,
        writes="d:{reg}",
        reads="a:@{cell}",
        newer=_CTA,
    ),
    Form(
        id="ld.vector",
        text="ld.{space}{vec}.{type} {d}, [{a}];",
        macro='memory.ld(space ~ vec ~ "." ~ type, d, a)',
        axes={"space": _SPACES, "vec": ("v2", "v4"), "type": _TYPES},
        legal=_fits,
        derive=_where,
        writes="d:{reg}*{count}",
        reads="a:@{cell}",
        newer=_CTA,
    ),
    Form(
        id="ld.cache",
        text="ld.global.{cop}{evict}{prefetch}{type} {d}, [{a}];",
        macro='memory.ld("global." ~ cop ~ evict ~ prefetch ~ type, d, a)',
        axes={
            "cop": ("", "ca.", "cg.", "cs.", "lu.", "cv."),
            "evict": (
                "",
                "L1::evict_normal.",
                "L1::evict_unchanged.",
                "L1::evict_first.",
                "L1::evict_last.",
                "L1::no_allocate.",
            ),
            "prefetch": ("L2::64B.", "L2::128B.", "L2::256B."),
            "type": ("b32",),
        },
        legal=_evictions,
        writes="d:b32",
        reads="a:@global",
        ptx=(7, 4),
        target="sm_75",
        newer={("prefetch", "L2::256B."): ((7, 4), "sm_80")},
    ),
    Form(
        id="ld.nc",
        text="ld.global.{cop}nc.{evict}{type} {d}, [{a}];",
        macro='memory.ld("global." ~ cop ~ "nc." ~ evict ~ type, d, a)',
        axes={
            "cop": ("", "ca.", "cg.", "cs."),
            "evict": ("", "L1::no_allocate.", "L1::evict_last."),
            "type": ("b8", "u16", "s32", "f32", "b64"),
        },
        legal=_evictions,
        derive=_where,
        writes="d:{reg}",
        reads="a:@global",
        newer={
            ("evict", "L1::no_allocate."): ((7, 4), "sm_70"),
            ("evict", "L1::evict_last."): ((7, 4), "sm_70"),
        },
    ),
    Form(
        id="ld.nc.vector",
        text="ld.global.nc.{vec}.{type} {d}, [{a}];",
        macro='memory.ld("global.nc." ~ vec ~ "." ~ type, d, a)',
        axes={"vec": ("v2", "v4"), "type": ("u8", "b16", "f32", "b64")},
        legal=_fits,
        derive=_where,
        writes="d:{reg}*{count}",
        reads="a:@global",
    ),
    Form(
        id="ld.policy",
        text="ld.global.L2::cache_hint.{type} {d}, [{a}], %policy;",
        macro='memory.ld_hint("global.L2::cache_hint." ~ type, d, a, "%policy")',
        axes={"type": ("b32", "f32", "b64")},
        writes="d:{type}",
        reads="a:@global",
        ptx=(7, 4),
        target="sm_80",
        run=Run(scratch=("b64 %policy",), before=_POLICY),
    ),
    Form(
        id="ld.ordered",
        text="ld.{sem}.{scope}.{space}{type} {d}, [{a}];",
        macro='memory.ld(sem ~ "." ~ scope ~ "." ~ space ~ type, d, a)',
        axes={
            "sem": ("relaxed", "acquire"),
            "scope": _SCOPES,
            "space": _SPACES,
            "type": ("b32", "u64", "f32"),
        },
        legal=_ordered,
        derive=_where,
        writes="d:{reg}",
        reads="a:@{cell}",
        newer={**_CTA, **_CLUSTER},
    ),
    Form(
        id="ld.volatile",
        text="ld.volatile.{space}{type} {d}, [{a}];",
        macro='memory.ld("volatile." ~ space ~ type, d, a)',
        axes={"space": _SPACES[:-1], "type": ("b8", "u32", "f64")},
        derive=_where,
        writes="d:{reg}",
        reads="a:@{cell}",
        newer=_CTA,
    ),
    Form(
        id="ld.mmio",
        text="ld.mmio.relaxed.sys.global.u32 {d}, [{a}];",
        macro='memory.ld("mmio.relaxed.sys.global.u32", d, a)',
        writes="d:u32",
        reads="a:@global",
        ptx=(8, 2),
    ),
    Form(
        id="ldu",
        text="ldu.global.{vec}{type} {d}, [{a}];",
        macro='memory.ldu("global." ~ vec ~ type, d, a)',
        axes={"vec": ("", "v2.", "v4."), "type": ("u8", "s16", "b32", "f32", "u64")},
        legal=lambda axes: axes["vec"] != "v4." or axes["type"] != "u64",
        derive=lambda axes: {
            "reg": "b32" if axes["type"] == "u8" else axes["type"],
            "count": f"*{str(axes['vec'])[1]}" if axes["vec"] else "",
        },
        writes="d:{reg}{count}",
        reads="a:@global~first",
    ),
    Form(
        id="ld.b128",
        text="ld.global.b128 %whole, [{a}];",
        macro='memory.ld("global.b128", "%whole", a)',
        reads="a:@global",
        ptx=(8, 3),
        run=Run(
            scratch=("b128 %whole",),
            after=("mov.b128 {{%low, %high}}, %whole;",),
            sees="low:b64 high:b64",
        ),
    ),
    Form(
        id="ld.const",
        text="ld.const.{type} {d}, [const_table + {offset}];",
        macro='memory.ld("const." ~ type, d, "const_table + " ~ offset)',
        axes={"type": ("u8", "s16", "b32", "f32", "u64"), "offset": (0, 8, 40)},
        derive=_where,
        writes="d:{reg}",
        run=Run(globals=_CONST_TABLE),
    ),
    Form(
        id="ld.global.symbol",
        text="ld.global.{type} {d}, [global_table + {offset}];",
        macro='memory.ld("global." ~ type, d, "global_table + " ~ offset)',
        axes={"type": ("u8", "s16", "b32", "f32", "u64"), "offset": (0, 8, 40)},
        derive=_where,
        writes="d:{reg}",
        run=Run(globals=_GLOBAL_TABLE),
    ),
    Form(
        id="ld.param",
        text="ld.param.{type} {d}, [case_in];",
        macro='memory.ld("param." ~ type, d, "case_in")',
        axes={"type": ("b64", "u64", "s64")},
        writes="d:b64",
        semantic="runs",
        run=Run(after=("ld.global.b32 %seen, [{d}];",), sees="seen:b32"),
    ),
    Form(
        id="ld.shared::cluster",
        text="ld.shared::cluster.{type} {d}, [{a}];",
        macro='memory.ld("shared::cluster." ~ type, d, a)',
        axes={"type": ("u8", "b32", "f32", "u64")},
        derive=_where,
        writes="d:{reg}",
        reads="a:@shared",
        ptx=(7, 8),
        target="sm_90",
        run=Run(
            cluster=2,
            before=(
                "barrier.cluster.arrive.aligned;",
                "barrier.cluster.wait.aligned;",
                "mov.u32 %peer, %cluster_ctarank;",
                "xor.b32 %peer, %peer, 1;",
                "mapa.shared::cluster.u32 {a}, {a}, %peer;",
            ),
            after=("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"),
            scratch=("b32 %peer",),
        ),
    ),
    Form(
        id="st",
        text="st.{space}{type} [{a}], {b};",
        macro="memory.st(space ~ type, a, b)",
        axes={"space": _SPACES, "type": _TYPES},
        derive=_where,
        reads="a:@{cell} b:{reg}",
        newer=_CTA,
    ),
    Form(
        id="st.vector",
        text="st.{space}{vec}.{type} [{a}], {b};",
        macro='memory.st(space ~ vec ~ "." ~ type, a, b)',
        axes={"space": _SPACES, "vec": ("v2", "v4"), "type": _TYPES},
        legal=_fits,
        derive=_where,
        reads="a:@{cell} b:{reg}*{count}",
        newer=_CTA,
    ),
    Form(
        id="st.cache",
        text="st.global.{cop}{evict}b32 [{a}], {b};",
        macro='memory.st("global." ~ cop ~ evict ~ "b32", a, b)',
        axes={
            "cop": ("", "wb.", "cg.", "cs.", "wt."),
            "evict": ("", "L1::evict_last.", "L1::no_allocate."),
        },
        legal=_evictions,
        reads="a:@global b:b32",
        newer={
            ("evict", "L1::no_allocate."): ((7, 4), "sm_70"),
            ("evict", "L1::evict_last."): ((7, 4), "sm_70"),
        },
    ),
    Form(
        id="st.policy",
        text="st.global.L2::cache_hint.{type} [{a}], {b}, %policy;",
        macro='memory.st_hint("global.L2::cache_hint." ~ type, a, b, "%policy")',
        axes={"type": ("b32", "f32", "b64")},
        reads="a:@global b:{type}",
        ptx=(7, 4),
        target="sm_80",
        run=Run(scratch=("b64 %policy",), before=_POLICY),
    ),
    Form(
        id="st.ordered",
        text="st.{sem}.{scope}.{space}{type} [{a}], {b};",
        macro='memory.st(sem ~ "." ~ scope ~ "." ~ space ~ type, a, b)',
        axes={
            "sem": ("relaxed", "release"),
            "scope": _SCOPES,
            "space": _SPACES,
            "type": ("b32", "u64", "f32"),
        },
        legal=_ordered,
        derive=_where,
        reads="a:@{cell} b:{reg}",
        newer={**_CTA, **_CLUSTER},
    ),
    Form(
        id="st.volatile",
        text="st.volatile.{space}{type} [{a}], {b};",
        macro='memory.st("volatile." ~ space ~ type, a, b)',
        axes={"space": _SPACES[:-1], "type": ("b8", "u32", "f64")},
        derive=_where,
        reads="a:@{cell} b:{reg}",
        newer=_CTA,
    ),
    Form(
        id="st.mmio",
        text="st.mmio.relaxed.sys.global.u32 [{a}], {b};",
        macro='memory.st("mmio.relaxed.sys.global.u32", a, b)',
        reads="a:@global b:u32",
        ptx=(8, 2),
    ),
    Form(
        id="st.b128",
        text="st.global.b128 [{a}], %whole;",
        macro='memory.st("global.b128", a, "%whole")',
        reads="a:@global b:b64*2",
        ptx=(8, 3),
        run=Run(scratch=("b128 %whole",), before=("mov.b128 %whole, {b};",)),
    ),
    Form(
        id="prefetch",
        text="prefetch.{space}{level} [{a}];",
        macro="memory.prefetch(space ~ level, a)",
        axes={
            "space": ("", "global.", "local."),
            "level": ("L1", "L2", "L2::evict_last", "L2::evict_normal"),
        },
        legal=lambda axes: "::" not in str(axes["level"]) or axes["space"] != "local.",
        derive=_where,
        reads="a:@{cell}",
        newer={
            ("level", "L2::evict_last"): ((7, 4), "sm_80"),
            ("level", "L2::evict_normal"): ((7, 4), "sm_80"),
        },
        semantic="runs",
    ),
    Form(
        id="prefetchu",
        text="prefetchu.L1 [{a}];",
        macro="memory.prefetchu(a)",
        reads="a:@generic",
        semantic="runs",
    ),
    Form(
        id="applypriority",
        text="applypriority.{space}L2::evict_normal [{a}], 128;",
        macro='memory.applypriority(space ~ "L2::evict_normal", a, 128)',
        axes={"space": ("", "global.")},
        reads="a:@global~line",
        ptx=(7, 4),
        target="sm_80",
        semantic="runs",
    ),
    Form(
        id="discard",
        text="discard.{space}L2 [{a}], 128;",
        macro='memory.discard(space ~ "L2", a, 128)',
        axes={"space": ("", "global.")},
        reads="a:@global~line",
        ptx=(7, 4),
        target="sm_80",
        semantic="runs",
    ),
    Form(
        id="createpolicy.fractional",
        text="createpolicy.fractional.L2::{first}.{second}b64 {d}, {fraction};",
        macro='memory.createpolicy("fractional.L2::" ~ first ~ "." ~ second ~ "b64", d, fraction)',
        axes={
            "first": ("evict_last", "evict_normal", "evict_first", "evict_unchanged"),
            "second": ("", "L2::evict_first.", "L2::evict_unchanged."),
            "fraction": ("1.0", "0.5"),
        },
        writes="d:b64",
        ptx=(7, 4),
        target="sm_80",
        cover=lambda axes: axes["fraction"] == "1.0" or not axes["second"],
        semantic="runs",
    ),
    Form(
        id="createpolicy.range",
        text="createpolicy.range.global.L2::{first}.L2::evict_unchanged.b64 {d}, [{a}], 64, 128;",
        macro=(
            'memory.createpolicy_range("range.global.L2::" ~ first ~ ".L2::evict_unchanged.b64", '
            "d, a, 64, 128)"
        ),
        axes={"first": ("evict_last", "evict_normal", "evict_first")},
        writes="d:b64",
        reads="a:@global",
        ptx=(7, 4),
        target="sm_80",
        semantic="runs",
    ),
    Form(
        id="createpolicy.cvt",
        text="createpolicy.cvt.L2.b64 {d}, {a};",
        macro='memory.createpolicy("cvt.L2.b64", d, a)',
        writes="d:b64",
        reads="a:b64",
        ptx=(7, 4),
        target="sm_80",
        semantic="runs",
    ),
    Form(
        id="cvta",
        text="cvta.{to}{space}.u64 {d}, {a};",
        macro='convert.cvta(to ~ space ~ ".u64", d, a)',
        axes={"to": ("", "to."), "space": ("global", "shared", "local", "const")},
        writes="d:b64",
        reads="a:u64",
        semantic="runs",
    ),
    Form(
        id="isspacep",
        text="isspacep.{space} {p}, {a};",
        macro="convert.isspacep(space, p, a)",
        axes={"space": ("global", "shared", "shared::cta", "shared::cluster", "local", "const")},
        writes="p:pred",
        reads="a:@generic",
        newer={
            ("space", "shared::cta"): ((7, 8), "sm_70"),
            ("space", "shared::cluster"): ((7, 8), "sm_90"),
        },
    ),
)
