"""Barriers and fences of a CTA (PTX ISA 9.7.13.1 to 9.7.13.4)."""

from __future__ import annotations

from ptxgen.isa.forms.base import Form, Newer, Run

_CTA: Newer = {("cta", "cta."): ((7, 8), "sm_70")}
# Each thread writes a word, waits, and reads the word of a thread of the other warp.
_EXCHANGE = Run(
    threads=64,
    shared=1024,
    scratch=("b32 %mine, %yours",),
    before=(
        "mad.lo.u32 %mine, %thread, 4, %smem;",
        "xor.b32 %yours, %mine, 128;",
        "st.shared.b32 [%mine], {x};",
    ),
    after=("ld.shared.b32 %seen, [%yours];",),
    sees="seen:b32",
)


def _exchange(after: tuple[str, ...] = (), before: tuple[str, ...] = (), guard: str = "") -> Run:
    return Run(
        guard=guard,
        threads=_EXCHANGE.threads,
        shared=_EXCHANGE.shared,
        scratch=(*_EXCHANGE.scratch, "pred %arrives, %waits"),
        before=(*_EXCHANGE.before, *before),
        after=(*after, *_EXCHANGE.after),
        sees=_EXCHANGE.sees,
    )


# Warp 0 arrives and goes on, warp 1 waits for it.
_HAND_OVER = _exchange(
    before=("setp.lt.u32 %arrives, %thread, 32;", "setp.ge.u32 %waits, %thread, 32;"),
    after=("@%waits bar.sync 1, 64;", "bar.sync 0;"),
    guard="%arrives",
)


def _reduction(family: str) -> Form:
    """`barrier` has an unaligned form; `bar` is always aligned."""
    aligned = ("", "aligned.") if family == "barrier" else ("",)
    return Form(
        id=f"{family}.red",
        text=f"{family}.{{cta}}red.{{op}}.{{aligned}}{{type}} {{d}}, 0{{threads}}, {{p}};",
        macro=(f'sync.{family}_red(cta ~ "red." ~ op ~ "." ~ aligned ~ type, d, "0" ~ threads, p)'),
        axes={
            "cta": ("", "cta."),
            "op": ("popc", "and", "or"),
            "aligned": aligned,
            "threads": ("", ", 64"),
        },
        derive=lambda axes: {"type": "u32" if axes["op"] == "popc" else "pred"},
        writes="d:{type}",
        reads="p:pred",
        newer=_CTA,
        run=Run(threads=64),
    )


FORMS = (
    Form(
        id="bar.sync",
        text="bar.{cta}sync {id}{threads};",
        macro="sync.bar_sync(cta, id ~ threads)",
        axes={"cta": ("", "cta."), "id": (0, 1, 15), "threads": ("", ", 64")},
        reads="x:b32",
        newer=_CTA,
        run=_EXCHANGE,
    ),
    Form(
        id="barrier.sync",
        text="barrier.{cta}sync{aligned} {id}{threads};",
        macro="sync.barrier_sync(cta, aligned, id ~ threads)",
        axes={
            "cta": ("", "cta."),
            "aligned": ("", ".aligned"),
            "id": (0, 15),
            "threads": ("", ", 64"),
        },
        reads="x:b32",
        newer=_CTA,
        run=_EXCHANGE,
    ),
    Form(
        id="bar.arrive",
        text="bar.{cta}arrive 1, {threads};",
        macro="sync.bar_arrive(cta, 1, threads)",
        axes={"cta": ("", "cta."), "threads": (64,)},
        reads="x:b32",
        newer=_CTA,
        run=_HAND_OVER,
    ),
    Form(
        id="barrier.arrive",
        text="barrier.{cta}arrive{aligned} 1, {threads};",
        macro="sync.barrier_arrive(cta, aligned, 1, threads)",
        axes={"cta": ("", "cta."), "aligned": ("", ".aligned"), "threads": (64,)},
        reads="x:b32",
        newer=_CTA,
        run=_HAND_OVER,
    ),
    _reduction("bar"),
    _reduction("barrier"),
    Form(
        id="fence",
        text="fence.{sem}.{scope};",
        macro='sync.fence(sem ~ "." ~ scope)',
        axes={
            "sem": ("sc", "acq_rel", "acquire", "release"),
            "scope": ("cta", "cluster", "gpu", "sys"),
        },
        reads="x:b32",
        newer={
            ("scope", "cluster"): ((7, 8), "sm_90"),
            ("sem", "acquire"): ((8, 6), "sm_90"),
            ("sem", "release"): ((8, 6), "sm_90"),
        },
        run=_exchange(after=("bar.sync 0;",)),
    ),
    Form(
        id="membar",
        text="membar.{level};",
        macro="sync.membar(level)",
        axes={"level": ("cta", "gl", "sys")},
        reads="x:b32",
        run=_exchange(after=("bar.sync 0;",)),
    ),
    Form(
        id="fence.proxy.alias",
        text="fence.proxy.alias;",
        macro='sync.fence_proxy("alias")',
        reads="x:b32",
        ptx=(7, 5),
        run=_exchange(after=("bar.sync 0;",)),
    ),
    Form(
        id="fence.proxy.async",
        text="fence.proxy.async{space};",
        macro='sync.fence_proxy("async" ~ space)',
        axes={"space": ("", ".global", ".shared::cta", ".shared::cluster")},
        reads="x:b32",
        ptx=(8, 0),
        target="sm_90",
        run=_exchange(after=("bar.sync 0;",)),
    ),
    Form(
        id="fence.proxy.async.cta",
        text="fence.proxy.async.shared::cta;",
        macro="sync.fence_proxy_async()",
        reads="x:b32",
        ptx=(8, 0),
        target="sm_90",
        run=_exchange(after=("bar.sync 0;",)),
    ),
    Form(
        id="fence.proxy.async::generic",
        text="fence.proxy.async::generic.{sem}::{space}.cluster;",
        macro='sync.fence_proxy("async::generic." ~ sem ~ "::" ~ space ~ ".cluster")',
        axes={
            "sem": ("acquire.sync_restrict", "release.sync_restrict"),
            "space": ("shared::cluster", "shared::cta"),
        },
        legal=lambda axes: (
            (axes["space"] == "shared::cluster") == (axes["sem"] == "acquire.sync_restrict")
        ),
        reads="x:b32",
        ptx=(8, 6),
        target="sm_90",
        run=_exchange(after=("bar.sync 0;",)),
    ),
    Form(
        id="fence.sync_restrict",
        text="fence.{sem}::{space}.cluster;",
        macro='sync.fence(sem ~ "::" ~ space ~ ".cluster")',
        axes={
            "sem": ("acquire.sync_restrict", "release.sync_restrict"),
            "space": ("shared::cluster", "shared::cta"),
        },
        legal=lambda axes: (
            (axes["space"] == "shared::cluster") == (axes["sem"] == "acquire.sync_restrict")
        ),
        reads="x:b32",
        ptx=(8, 6),
        target="sm_90",
        run=_exchange(after=("bar.sync 0;",)),
    ),
    Form(
        id="fence.mbarrier_init",
        text="fence.mbarrier_init.release.cluster;",
        macro="cluster.fence_mbarrier_init()",
        reads="x:b32",
        ptx=(8, 0),
        target="sm_90",
        run=_exchange(after=("bar.sync 0;",)),
    ),
)
