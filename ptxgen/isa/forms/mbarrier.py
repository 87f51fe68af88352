"""mbarrier (PTX ISA 9.7.13.15). Every thread has a barrier of its own, in its shared cell."""

from __future__ import annotations

from ptxgen.isa.forms.base import Axes, Form, Newer, Run

_SEM = ("", "release.cta.", "release.cluster.", "relaxed.cta.", "relaxed.cluster.")
_LOCAL = ("", "shared.", "shared::cta.")
_V80 = ((8, 0), "sm_80")
_V80_SM90 = ((8, 0), "sm_90")
_V86_SM90 = ((8, 6), "sm_90")
_NEWER: Newer = {
    ("sem", "release.cta."): _V80,
    ("sem", "release.cluster."): _V80_SM90,
    ("sem", "relaxed.cta."): _V86_SM90,
    ("sem", "relaxed.cluster."): _V86_SM90,
}
_CTA: Newer = {("space", "shared::cta."): ((7, 8), "sm_80")}
_TX = 16


def _cell(axes: Axes) -> dict[str, str]:
    space = str(axes.get("space", "shared.")).rstrip(".")
    return {
        "cell": "shared" if space else "generic_shared",
        "state": "%state",
        "result": str(axes.get("result", "%state")),
    }


def _peer_cell(axes: Axes) -> dict[str, str]:
    return {"m": "%there"}


_MEET = ("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;")
_THERE = (
    "mov.u32 %peer, %cluster_ctarank;",
    "xor.b32 %peer, %peer, 1;",
    "mapa.shared::cluster.u32 %there, {here}, %peer;",
)


def _own(axes: Axes) -> tuple[str, ...]:
    """The shared address %own of the barrier, which the form may name by a generic address."""
    if axes.get("space") == "":
        return ("cvta.to.shared.u64 %ignored, {m};", "cvt.u32.u64 %own, %ignored;")
    return ("mov.b32 %own, {m};",)


def _arrival(axes: Axes) -> Run:
    """Two arrivals complete the phase: the tested one and a plain one. A noComplete one must not
    complete it, which the plain arrival after it does."""
    count = 2 if str(axes.get("count", "")) == ", 2" else 1
    tx = "tx" in axes
    wait = "mbarrier.test_wait.parity.shared.b64"
    reads_state = axes.get("result", "%state") == "%state"
    return Run(
        scratch=("b64 %state, %ignored", "b32 %own"),
        before=(*_own(axes), f"mbarrier.init.shared.b64 [%own], {count + 1};"),
        after=(
            *(("mbarrier.pending_count.b64 %pending, %state;",) if reads_state else ()),
            f"{wait} %first, [%own], 0;",
            "mbarrier.arrive.shared.b64 %ignored, [%own];",
            f"{wait} %second, [%own], 0;",
            *((f"mbarrier.complete_tx.shared.b64 [%own], {_TX};",) if tx else ()),
            f"{wait} %third, [%own], 0;",
        ),
        sees="pending:u32 first:pred second:pred third:pred",
        dump=False,
        inputs="",
    )


def _remote(count: int, tx: bool) -> Run:
    """The barrier of the same thread in the other CTA of a cluster of two."""
    wait = "mbarrier.test_wait.parity.shared.b64"
    return Run(
        cluster=2,
        scratch=("b32 %peer, %there", "b64 %ignored"),
        before=(
            f"mbarrier.init.shared.b64 [{{here}}], {count + 1};",
            "fence.mbarrier_init.release.cluster;",
            *_THERE,
            *_MEET,
        ),
        after=(
            *_MEET,
            f"{wait} %first, [{{here}}], 0;",
            "mbarrier.arrive.shared.b64 %ignored, [{here}];",
            f"{wait} %second, [{{here}}], 0;",
            *((f"mbarrier.complete_tx.shared.b64 [{{here}}], {_TX};",) if tx else ()),
            f"{wait} %third, [{{here}}], 0;",
            *_MEET,
        ),
        sees="first:pred second:pred third:pred",
        dump=False,
        inputs="",
    )


def _arrive(op: str) -> Form:
    """arrive and arrive_drop on an own barrier, with and without a count and a result."""
    return Form(
        id=f"mbarrier.{op}",
        text=f"mbarrier.{op}.{{sem}}{{space}}b64 {{result}}, [{{m}}]{{count}};",
        macro=f'mbarrier.{op}_at(sem ~ space ~ "b64", result, m, count)',
        axes={"sem": _SEM, "space": _LOCAL, "count": ("", ", 2"), "result": ("%state", "_")},
        derive=_cell,
        reads="m:@{cell}",
        ptx=(7, 0),
        target="sm_80",
        newer={
            **_NEWER,
            **_CTA,
            ("count", ", 2"): ((7, 8), "sm_90"),
            **({("result", "_"): ((7, 1), "sm_80")} if op == "arrive" else {}),
        },
        run=_arrival,
    )


def _arrive_expect(op: str) -> Form:
    return Form(
        id=f"mbarrier.{op}.expect_tx",
        text=f"mbarrier.{op}.expect_tx.{{sem}}{{space}}b64 {{result}}, [{{m}}], {{tx}};",
        macro=f'mbarrier.{op}_at("expect_tx." ~ sem ~ space ~ "b64", result, m, ", " ~ tx)',
        axes={"sem": _SEM, "space": _LOCAL, "result": ("%state", "_"), "tx": (_TX,)},
        derive=_cell,
        reads="m:@{cell}",
        ptx=(8, 0),
        target="sm_90",
        newer=_NEWER,
        run=_arrival,
    )


def _arrive_remote(op: str) -> Form:
    return Form(
        id=f"mbarrier.{op}.remote",
        text=f"mbarrier.{op}.{{sem}}shared::cluster.b64 _, [{{m}}]{{count}};",
        macro=f'mbarrier.{op}_at(sem ~ "shared::cluster.b64", "_", m, count)',
        axes={"sem": _SEM, "count": ("", ", 2")},
        derive=_peer_cell,
        reads="here:@shared",
        ptx=(8, 0),
        target="sm_90",
        newer=_NEWER,
        run=lambda axes: _remote(2 if axes["count"] else 1, False),
    )


def _tx(op: str) -> Form:
    """The transaction count goes up by expect_tx and down by complete_tx; here both, in that order
    or the other, and an arrival in between."""
    other = "complete_tx" if op == "expect_tx" else "expect_tx"
    wait = "mbarrier.test_wait.parity.shared.b64"
    first = () if op == "expect_tx" else (f"mbarrier.{other}.shared.b64 [{{m}}], {_TX};",)
    last = (f"mbarrier.{other}.shared.b64 [{{m}}], {_TX};",) if op == "expect_tx" else ()
    return Form(
        id=f"mbarrier.{op}",
        text=f"mbarrier.{op}.{{sem}}{{space}}b64 [{{m}}], {{tx}};",
        macro=f'mbarrier.{op}(sem ~ space ~ "b64", m, tx)',
        axes={
            "sem": ("", "relaxed.cta.", "relaxed.cluster."),
            "space": ("shared.", "shared::cta."),
            "tx": (_TX,),
        },
        reads="m:@shared",
        ptx=(8, 0),
        target="sm_90",
        run=Run(
            scratch=("b64 %ignored",),
            before=("mbarrier.init.shared.b64 [{m}], 1;", *first),
            after=(
                "mbarrier.arrive.shared.b64 %ignored, [{m}];",
                f"{wait} %first, [{{m}}], 0;",
                *last,
                f"{wait} %second, [{{m}}], 0;",
            ),
            sees="first:pred second:pred",
            dump=False,
            inputs="",
        ),
    )


def _test(op: str, by: str) -> Form:
    """A wait on a phase that has completed (parity 0, or its state), or not (parity 1)."""
    parity = "parity." if by == "parity" else ""
    hint = ("", ", 1000") if op == "try_wait" else ("",)
    values = (("0", "1") if op == "test_wait" else ("0",)) if parity else ("%state",)
    return Form(
        id=f"mbarrier.{op}.{by}",
        text=f"mbarrier.{op}.{parity}{{sem}}{{space}}b64 {{p}}, [{{m}}], {{phase}}{{hint}};",
        macro=f'mbarrier.{op}("{parity}" ~ sem ~ space ~ "b64", p, m, phase ~ hint)',
        axes={
            "sem": ("", "acquire.cta.", "acquire.cluster.", "relaxed.cta.", "relaxed.cluster."),
            "space": ("shared.", "shared::cta."),
            "phase": values,
            "hint": hint,
        },
        writes="p:pred",
        reads="m:@shared",
        ptx={"test_wait": (7, 1) if parity else (7, 0), "try_wait": (7, 8)}[op],
        target={"test_wait": "sm_80", "try_wait": "sm_90"}[op],
        newer={
            **_CTA,
            ("sem", "acquire.cta."): _V80,
            ("sem", "acquire.cluster."): _V80_SM90,
            ("sem", "relaxed.cta."): _V86_SM90,
            ("sem", "relaxed.cluster."): _V86_SM90,
        },
        run=Run(
            scratch=("b64 %state",),
            before=(
                "mbarrier.init.shared.b64 [{m}], 1;",
                "mbarrier.arrive.shared.b64 %state, [{m}];",
            ),
            dump=False,
            inputs="",
        ),
    )


_WAIT = ("$WAIT:", "mbarrier.try_wait.parity.shared.b64 %done, [{m}], 0;", "@!%done bra $WAIT;")

FORMS = (
    Form(
        id="mbarrier.init",
        text="mbarrier.init.{space}b64 [{m}], {count};",
        macro='mbarrier.init_at(space ~ "b64", m, count)',
        axes={"space": ("shared.", "shared::cta."), "count": (1, 2)},
        reads="m:@shared",
        ptx=(7, 0),
        target="sm_80",
        newer=_CTA,
        run=Run(
            scratch=("b64 %state",),
            after=(
                "mbarrier.arrive.shared.b64 %state, [{m}];",
                "mbarrier.pending_count.b64 %pending, %state;",
                "mbarrier.test_wait.shared.b64 %done, [{m}], %state;",
            ),
            sees="pending:u32 done:pred",
            dump=False,
            inputs="",
        ),
    ),
    Form(
        id="mbarrier.inval",
        text="mbarrier.inval.{space}b64 [{m}];",
        macro='mbarrier.inval(space ~ "b64", m)',
        axes={"space": ("shared.", "shared::cta.")},
        reads="m:@shared x:b64",
        ptx=(7, 0),
        target="sm_80",
        newer=_CTA,
        run=Run(
            before=("mbarrier.init.shared.b64 [{m}], 1;",),
            after=("st.shared.b64 [{m}], {x};",),
            inputs="bytes",
        ),
    ),
    _arrive("arrive"),
    _arrive("arrive_drop"),
    _arrive_expect("arrive"),
    _arrive_expect("arrive_drop"),
    _arrive_remote("arrive"),
    _arrive_remote("arrive_drop"),
    *(
        Form(
            id=f"mbarrier.{op}.noComplete",
            text=f"mbarrier.{op}.noComplete.{{sem}}{{space}}b64 %state, [{{m}}], {{count}};",
            macro=(
                f'mbarrier.{op}_at("noComplete." ~ sem ~ space ~ "b64", "%state", m, ", " ~ count)'
            ),
            axes={"sem": ("", "release.cta."), "space": _LOCAL, "count": (1,)},
            derive=_cell,
            reads="m:@{cell}",
            ptx=(7, 0),
            target="sm_80",
            newer={**_NEWER, **_CTA},
            run=_arrival,
        )
        for op in ("arrive", "arrive_drop")
    ),
    *(
        Form(
            id=f"mbarrier.{op}.expect_tx.remote",
            text=f"mbarrier.{op}.expect_tx.{{sem}}shared::cluster.b64 _, [{{m}}], {{tx}};",
            macro=(
                f'mbarrier.{op}_at("expect_tx." ~ sem ~ "shared::cluster.b64", "_", m, ", " ~ tx)'
            ),
            axes={"sem": _SEM, "tx": (_TX,)},
            derive=_peer_cell,
            reads="here:@shared",
            ptx=(8, 0),
            target="sm_90",
            newer=_NEWER,
            run=_remote(1, True),
        )
        for op in ("arrive", "arrive_drop")
    ),
    _tx("expect_tx"),
    _tx("complete_tx"),
    Form(
        id="mbarrier.expect_tx.remote",
        text="mbarrier.expect_tx.{sem}shared::cluster.b64 [{m}], {tx};",
        macro='mbarrier.expect_tx(sem ~ "shared::cluster.b64", m, tx)',
        axes={"sem": ("", "relaxed.cta.", "relaxed.cluster."), "tx": (_TX,)},
        derive=_peer_cell,
        reads="here:@shared",
        ptx=(8, 0),
        target="sm_90",
        run=_remote(0, True),
    ),
    *(_test(op, by) for op in ("test_wait", "try_wait") for by in ("state", "parity")),
    Form(
        id="mbarrier.wait_parity",
        text="{{\n.reg .pred %complete;\n$WAIT:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 %complete, [{m}], 0;\n@!%complete bra $WAIT;\n}}",
        macro="mbarrier.wait_parity(m, 0)",
        reads="m:@shared",
        ptx=(7, 8),
        target="sm_90",
        run=Run(
            scratch=("b64 %state",),
            before=(
                "mbarrier.init.shared.b64 [{m}], 1;",
                "mbarrier.arrive.shared.b64 %state, [{m}];",
            ),
            dump=False,
            inputs="",
        ),
    ),
    Form(
        id="mbarrier.pending_count",
        text="mbarrier.pending_count.b64 {d}, %state;",
        macro='mbarrier.pending_count(d, "%state")',
        writes="d:u32",
        reads="m:@shared",
        ptx=(7, 0),
        target="sm_80",
        run=Run(
            scratch=("b64 %state",),
            before=(
                "mbarrier.init.shared.b64 [{m}], 5;",
                "mbarrier.arrive.shared.b64 %state, [{m}];",
            ),
            dump=False,
            inputs="",
        ),
    ),
    Form(
        id="cp.async.mbarrier.arrive",
        text="cp.async.mbarrier.arrive.{noinc}{space}b64 [{m}];",
        macro='cp_async.mbarrier_arrive(noinc ~ space ~ "b64", m)',
        axes={"noinc": ("", "noinc."), "space": ("shared.", "shared::cta.")},
        reads="m:@shared a:@global",
        ptx=(7, 0),
        target="sm_80",
        newer=_CTA,
        run=lambda axes: Run(
            scratch=("b32 %there", "b64 %ignored"),
            before=(
                "mbarrier.init.shared.b64 [{m}], 1;",
                "add.u32 %there, {m}, 16;",
                "cp.async.ca.shared.global [%there], [{a}], 16;",
            ),
            after=(
                *(() if axes["noinc"] else ("mbarrier.arrive.shared.b64 %ignored, [{m}];",)),
                *_WAIT,
                "ld.shared.v2.b64 {{%low, %high}}, [%there];",
            ),
            sees="done:pred low:b64 high:b64",
            dump=False,
            inputs="bytes",
        ),
    ),
)
