"""Clusters and distributed shared memory (PTX ISA 9.7.9.22 to 24, 9.7.13.4, 9.7.9.12)."""

from __future__ import annotations

from ptxgen.isa.forms.base import Axes, Form, Run

_MEET = ("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;")
_PEER = ("mov.u32 %peer, %cluster_ctarank;", "xor.b32 %peer, %peer, 1;")
_LOOK = (
    "mapa.shared::cluster.u32 %there, {s}, %peer;",
    "ld.shared::cluster.b32 %seen, [%there];",
)


def _asynchronous(expected: int) -> Run:
    """The value lands at +16 of the peer's cell and signals its barrier at +56."""
    return Run(
        cluster=2,
        scratch=("b32 %bar, %peer, %there, %bar_there", "pred %done", "b64 %low, %high"),
        before=(
            "add.u32 %bar, {s}, 56;",
            "mbarrier.init.shared.b64 [%bar], 1;",
            "fence.mbarrier_init.release.cluster;",
            "fence.proxy.async;",
            f"mbarrier.arrive.expect_tx.shared.b64 _, [%bar], {expected};",
            *_PEER,
            "add.u32 %there, {s}, 16;",
            "mapa.shared::cluster.u32 %there, %there, %peer;",
            "mapa.shared::cluster.u32 %bar_there, %bar, %peer;",
            *_MEET,
        ),
        after=(
            "$WAIT:",
            "mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0;",
            "@!%done bra $WAIT;",
            "ld.shared.v2.b64 {{%low, %high}}, [{s} + 16];",
            *_MEET,
        ),
        sees="low:b64 high:b64",
        dump=False,
    )


def _vector(axes: Axes) -> dict[str, str]:
    count = {"": "", "v2.": "*2", "v4.": "*4"}[str(axes["vec"])]
    return {"shape": count}


def _store_bytes(axes: Axes) -> int:
    lanes = {"": 1, "v2.": 2, "v4.": 4}[str(axes["vec"])]
    return lanes * int(str(axes["type"])[1:]) // 8


_RED = {
    "add": ("u32", "s32", "u64"), "min": ("u32", "s32"), "max": ("u32", "s32"),
    "inc": ("u32",), "dec": ("u32",), "and": ("b32",), "or": ("b32",), "xor": ("b32",),
}  # fmt: skip

FORMS = (
    Form(
        id="mapa.shared",
        text="mapa.shared::cluster.u32 {d}, {s}, {rank};",
        macro="cluster.mapa(d, s, rank)",
        axes={"rank": (0, 1)},
        writes="d:u32",
        reads="s:@shared",
        ptx=(7, 8),
        target="sm_90",
        run=Run(cluster=2, dump=False),
    ),
    Form(
        id="mapa.generic",
        text="mapa.u64 {d}, {s}, {rank};",
        macro='cluster.mapa_at("u64", d, s, rank)',
        axes={"rank": (0, 1)},
        writes="d:u64",
        reads="s:@generic_shared",
        ptx=(7, 8),
        target="sm_90",
        semantic="runs",
        run=Run(cluster=2, dump=False),
    ),
    Form(
        id="getctarank",
        text="getctarank.{space}{type} {d}, {s};",
        macro="cluster.getctarank(space ~ type, d, s)",
        axes={"space": ("", "shared::cluster."), "type": ("u32", "u64")},
        derive=lambda axes: {"cell": "shared" if axes["space"] else "generic_shared"},
        legal=lambda axes: (axes["type"] == "u32") == bool(axes["space"]),
        writes="d:u32",
        reads="s:@{cell}",
        ptx=(7, 8),
        target="sm_90",
        run=Run(cluster=2, dump=False),
    ),
    Form(
        id="barrier.cluster.arrive",
        text="barrier.cluster.arrive{sem}{aligned};",
        macro="cluster.arrive(sem ~ aligned)",
        axes={"sem": ("", ".release", ".relaxed"), "aligned": ("", ".aligned")},
        reads="s:@shared",
        ptx=(7, 8),
        target="sm_90",
        newer={("sem", ".release"): ((8, 0), "sm_90"), ("sem", ".relaxed"): ((8, 0), "sm_90")},
        run=Run(
            cluster=2,
            scratch=("b32 %peer, %there",),
            before=("fence.acq_rel.cluster;",),
            after=("barrier.cluster.wait;", *_PEER, *_LOOK, *_MEET),
            sees="seen:b32",
        ),
    ),
    Form(
        id="barrier.cluster.wait",
        text="barrier.cluster.wait{sem}{aligned};",
        macro="cluster.wait(sem ~ aligned)",
        axes={"sem": ("", ".acquire"), "aligned": ("", ".aligned")},
        reads="s:@shared",
        ptx=(7, 8),
        target="sm_90",
        newer={("sem", ".acquire"): ((8, 0), "sm_90")},
        run=Run(
            cluster=2,
            scratch=("b32 %peer, %there",),
            before=("barrier.cluster.arrive;",),
            after=(*_PEER, *_LOOK, *_MEET),
            sees="seen:b32",
        ),
    ),
    *(
        Form(
            id=f"barrier.cluster{'.aligned' if aligned else ''}",
            text=f"barrier.cluster.arrive{aligned};\nbarrier.cluster.wait{aligned};",
            macro=f"cluster.barrier{aligned.replace('.', '_')}()",
            reads="s:@shared",
            ptx=(7, 8),
            target="sm_90",
            run=Run(
                cluster=2,
                scratch=("b32 %peer, %there",),
                after=(*_PEER, *_LOOK, *_MEET),
                sees="seen:b32",
            ),
        )
        for aligned in ("", ".aligned")
    ),
    Form(
        id="st.shared::cluster",
        text="st.shared::cluster.{type} [%there], {v};",
        macro='memory.st("shared::cluster." ~ type, "%there", v)',
        axes={"type": ("b16", "b32", "f32", "b64")},
        reads="s:@shared v:{type}",
        ptx=(7, 8),
        target="sm_90",
        run=Run(
            cluster=2,
            scratch=("b32 %peer, %there",),
            before=(*_PEER, "mapa.shared::cluster.u32 %there, {s}, %peer;", *_MEET),
            after=_MEET,
        ),
    ),
    Form(
        id="st.async",
        text="st.async.{weak}shared::cluster.mbarrier::complete_tx::bytes.{vec}{type} "
        "[%there], {v}, [%bar_there];",
        macro=(
            'cluster.st_async(weak ~ "shared::cluster.mbarrier::complete_tx::bytes." ~ vec ~ '
            'type, "%there", v, "%bar_there")'
        ),
        axes={
            "weak": ("", "weak."),
            "vec": ("", "v2.", "v4."),
            "type": ("b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64"),
        },
        legal=lambda axes: _store_bytes(axes) <= 16,
        derive=_vector,
        reads="s:@shared v:{type}{shape}",
        ptx=(8, 1),
        target="sm_90",
        run=lambda axes: _asynchronous(_store_bytes(axes)),
    ),
    Form(
        id="red.async",
        text="red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{op}.{type} "
        "[%there], {v}, [%bar_there];",
        macro=(
            'cluster.red_async("relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." '
            '~ op ~ "." ~ type, "%there", v, "%bar_there")'
        ),
        axes={"op": tuple(_RED), "type": ("u32", "s32", "u64", "b32")},
        legal=lambda axes: axes["type"] in _RED[str(axes["op"])],
        reads="s:@shared v:{type}",
        ptx=(8, 1),
        target="sm_90",
        run=lambda axes: _asynchronous(int(str(axes["type"])[1:]) // 8),
    ),
    *(
        Form(
            id=f"setmaxnreg.{way}",
            text=f"setmaxnreg.{way}.sync.aligned.u32 {{count}};",
            macro=f"regs.{way}(count)",
            axes={"count": counts},
            reads="x:b32",
            ptx=(8, 0),
            target="sm_90a",
            semantic="runs",
            run=Run(
                threads=128,
                directives=(".maxnreg 64",),
                before=("setmaxnreg.dec.sync.aligned.u32 32;", "bar.sync 0;")
                if way == "inc"
                else (),
                after=("bar.sync 0;",),
            ),
        )
        for way, counts in (("inc", (40, 64)), ("dec", (24, 40)))
    ),
)
