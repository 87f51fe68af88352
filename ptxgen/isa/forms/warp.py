"""Warp-level exchange (PTX ISA 9.7.9.6, 9.7.13.7 to 9.7.13.14)."""

from __future__ import annotations

from ptxgen.isa.forms.base import Form, Run

_ALL = "0xffffffff"

FORMS = (
    Form(
        id="shfl.sync",
        text="shfl.sync.{mode}.b32 {d}|{p}, {a}, {b}, {c}, 0xffffffff;",
        macro='warp.shfl_test(mode, d, p, a, b, c, "0xffffffff")',
        axes={
            "mode": ("up", "down", "bfly", "idx"),
            "c": ("0x1f", "0x0", "0x181f", "0x1c00", "0x1803"),
        },
        writes="d:b32 p:pred",
        reads="a:b32 b:u32~lane",
    ),
    Form(
        id="shfl.sync.plain",
        text="shfl.sync.{mode}.b32 {d}, {a}, {b}, {c}, 0xffffffff;",
        macro='warp.shfl(mode, d, a, b, c, "0xffffffff")',
        axes={"mode": ("up", "down", "bfly", "idx"), "b": (0, 1, 16), "c": ("0x1f", "0x0")},
        writes="d:b32",
        reads="a:b32",
    ),
    Form(
        id="vote.sync",
        text="vote.sync.{mode}.pred {q}, {p}, 0xffffffff;",
        macro='warp.vote(mode ~ ".pred", q, p, "0xffffffff")',
        axes={"mode": ("all", "any", "uni")},
        writes="q:pred",
        reads="p:pred",
    ),
    Form(
        id="vote.sync.ballot",
        text="vote.sync.ballot.b32 {d}, {p}, 0xffffffff;",
        macro='warp.vote("ballot.b32", d, p, "0xffffffff")',
        writes="d:b32",
        reads="p:pred",
    ),
    Form(
        id="match.any.sync",
        text="match.any.sync.{type} {d}, {a}, 0xffffffff;",
        macro='warp.match("any", type, d, a, "0xffffffff")',
        axes={"type": ("b32", "b64")},
        writes="d:b32",
        reads="a:{type}~few",
    ),
    Form(
        id="match.all.sync",
        text="match.all.sync.{type} {d}|{p}, {a}, 0xffffffff;",
        macro='warp.match_all(type, d, p, a, "0xffffffff")',
        axes={"type": ("b32", "b64"), "same": (0, 1)},
        writes="d:b32 p:pred",
        reads="a:{type}~few",
        run=lambda axes: Run(
            before=("mov.{type} {a}, 7;",) if axes["same"] else (),
        ),
    ),
    Form(
        id="redux.sync",
        text="redux.sync.{op}.{type} {d}, {a}, 0xffffffff;",
        macro='warp.redux(op ~ "." ~ type, d, a, "0xffffffff")',
        axes={
            "op": ("add", "min", "max", "and", "or", "xor"),
            "type": ("u32", "s32", "b32"),
        },
        legal=lambda axes: (axes["type"] == "b32") == (axes["op"] in ("and", "or", "xor")),
        writes="d:{type}",
        reads="a:{type}",
        ptx=(7, 0),
        target="sm_80",
    ),
    Form(
        id="activemask",
        text="activemask.b32 {d};",
        macro="warp.activemask(d)",
        writes="d:b32",
        ptx=(6, 2),
    ),
    Form(
        id="elect.sync",
        text="elect.sync {d}|{p}, 0xffffffff;",
        macro='warp.elect(d, p, "0xffffffff")',
        writes="d:b32 p:pred",
        ptx=(8, 0),
        target="sm_90",
    ),
    Form(
        id="elect.sync.pred",
        text="elect.sync _|{p}, 0xffffffff;",
        macro="thread.elect(p)",
        writes="p:pred",
        ptx=(8, 0),
        target="sm_90",
    ),
    Form(
        id="bar.warp.sync",
        text="bar.warp.sync {mask};",
        macro="warp.sync(mask)",
        axes={"mask": (_ALL,)},
        reads="x:b32",
        run=Run(
            shared=512,
            scratch=("b32 %mine, %yours",),
            before=(
                "mad.lo.u32 %mine, %thread, 4, %smem;",
                "xor.b32 %yours, %mine, 64;",
                "st.shared.b32 [%mine], {x};",
            ),
            after=("ld.shared.b32 %seen, [%yours];",),
            sees="seen:b32",
        ),
    ),
)
