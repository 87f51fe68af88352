"""Bulk copies without a tensor map (PTX ISA 9.7.9.25.4). Each thread copies its own cell.

A shared cell holds the source at +0, the destination at +32 and the thread's mbarrier at +56.
"""

from __future__ import annotations

from ptxgen.isa.forms.base import Axes, Form, Run

_POLICY = "createpolicy.fractional.L2::evict_first.b64 %policy, 1.0;"
_MEET = ("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;")
_SIZE = 16
_SCRATCH = ("b32 %dst, %bar, %peer, %dst_there, %bar_there", "b64 %policy, %ignored")
_OPEN = (
    _POLICY,
    "add.u32 %dst, {s}, 32;",
    "add.u32 %bar, {s}, 56;",
    "mbarrier.init.shared.b64 [%bar], 1;",
    "fence.mbarrier_init.release.cluster;",
    "fence.proxy.async;",
    f"mbarrier.arrive.expect_tx.shared.b64 _, [%bar], {_SIZE};",
)
_CLOSE = (
    "$WAIT:",
    "mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0;",
    "@!%done bra $WAIT;",
    "ld.shared.v2.b64 {{%low, %high}}, [%dst];",
)
_SEES = "done:pred low:b64 high:b64"
_HERE = Run(scratch=_SCRATCH, before=_OPEN, after=_CLOSE, sees=_SEES, dump=False)
_THERE = Run(
    cluster=2,
    scratch=_SCRATCH,
    before=(
        *_OPEN,
        "mov.u32 %peer, %cluster_ctarank;",
        "xor.b32 %peer, %peer, 1;",
        "mapa.shared::cluster.u32 %dst_there, %dst, %peer;",
        "mapa.shared::cluster.u32 %bar_there, %bar, %peer;",
        *_MEET,
    ),
    after=(*_CLOSE, *_MEET),
    sees=_SEES,
    dump=False,
)
_GROUP = Run(
    scratch=("b64 %policy",),
    before=(_POLICY, "fence.proxy.async;"),
    after=("cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;"),
)

_SMEM_REDUCTIONS = {
    "add": ("u32", "s32", "u64"), "min": ("u32", "s32"), "max": ("u32", "s32"),
    "inc": ("u32",), "dec": ("u32",), "and": ("b32",), "or": ("b32",), "xor": ("b32",),
}  # fmt: skip
_GMEM_REDUCTIONS = {
    "add": ("u32", "s32", "u64", "f32", "f64"),
    "add.noftz": ("f16", "bf16"),
    "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "inc": ("u32",), "dec": ("u32",),
    "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"),
}  # fmt: skip
_REDUCED = ("u32", "s32", "u64", "s64", "f16", "bf16", "f32", "f64", "b32", "b64")


def _hinted(axes: Axes) -> dict[str, str]:
    hint = str(axes["hint"])
    return {"policy": ", %policy" if hint else ""}


def _cells(axes: Axes) -> Run:
    type_ = str(axes["type"])
    return Run(
        scratch=_GROUP.scratch,
        before=_GROUP.before,
        after=_GROUP.after,
        inputs=f"small.{type_}" if "f" in type_ else "bytes",
    )


FORMS = (
    Form(
        id="cp.async.bulk.load",
        text="cp.async.bulk.{dst}.global.mbarrier::complete_tx::bytes{hint} "
        "[%dst], [{a}], {size}, [%bar]{policy};",
        macro=(
            'bulk.load(dst ~ ".global.mbarrier::complete_tx::bytes" ~ hint, '
            '"%dst", a, size, "%bar", policy)'
        ),
        axes={
            "dst": ("shared::cluster", "shared::cta"),
            "hint": ("", ".L2::cache_hint"),
            "size": (_SIZE,),
        },
        derive=_hinted,
        reads="s:@shared a:@global",
        newer={("dst", "shared::cta"): ((8, 6), "sm_90")},
        run=_HERE,
        ptx=(8, 0),
        target="sm_90",
    ),
    Form(
        id="cp.async.bulk.load.multicast",
        text="cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster{hint} [%dst], [{a}], {size}, [%bar], %mask{policy};",
        macro=(
            'bulk.load("shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster" '
            '~ hint, "%dst", a, size, "%bar", ", %mask" ~ policy)'
        ),
        axes={"hint": ("", ".L2::cache_hint"), "size": (_SIZE,)},
        derive=_hinted,
        reads="s:@shared a:@global",
        ptx=(8, 0),
        target="sm_90",
        run=Run(
            cluster=2,
            scratch=(*_SCRATCH, "b16 %mask", "pred %first"),
            before=(
                *_OPEN,
                "mov.b16 %mask, 3;",
                "mov.u32 %peer, %cluster_ctarank;",
                "setp.eq.u32 %first, %peer, 0;",
                *_MEET,
            ),
            after=(*_CLOSE, *_MEET),
            guard="%first",
            sees=_SEES,
            dump=False,
        ),
    ),
    Form(
        id="cp.async.bulk.peer",
        text="cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
        "[%dst_there], [{s}], {size}, [%bar_there];",
        macro=(
            'bulk.load("shared::cluster.shared::cta.mbarrier::complete_tx::bytes", '
            '"%dst_there", s, size, "%bar_there", "")'
        ),
        axes={"size": (_SIZE,)},
        reads="s:@shared",
        run=_THERE,
        ptx=(8, 0),
        target="sm_90",
    ),
    Form(
        id="cp.async.bulk.store",
        text="cp.async.bulk.global.shared::cta.bulk_group{hint} [{a}], [{s}], {size}{policy};",
        macro='bulk.store("global.shared::cta.bulk_group" ~ hint, a, s, size, policy)',
        axes={"hint": ("", ".L2::cache_hint"), "size": (16, 32, 64)},
        derive=_hinted,
        reads="s:@shared a:@global",
        run=_GROUP,
        ptx=(8, 0),
        target="sm_90",
    ),
    Form(
        id="cp.async.bulk.prefetch",
        text="cp.async.bulk.prefetch.L2.global{hint} [{a}], {size}{policy};",
        macro='bulk.prefetch("L2.global" ~ hint, a, size, policy)',
        axes={"hint": ("", ".L2::cache_hint"), "size": (16, 64)},
        derive=_hinted,
        reads="a:@global",
        semantic="runs",
        run=Run(scratch=("b64 %policy",), before=(_POLICY,)),
        ptx=(8, 0),
        target="sm_90",
    ),
    Form(
        id="cp.reduce.async.bulk.peer",
        text="cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes."
        "{op}.{type} [%dst_there], [{s}], {size}, [%bar_there];",
        macro=(
            'bulk.reduce("shared::cluster.shared::cta.mbarrier::complete_tx::bytes." ~ op ~ "." '
            '~ type, "%dst_there", s, size, ", [%bar_there]")'
        ),
        axes={"op": tuple(_SMEM_REDUCTIONS), "type": _REDUCED, "size": (_SIZE,)},
        legal=lambda axes: axes["type"] in _SMEM_REDUCTIONS[str(axes["op"])],
        reads="s:@shared",
        run=_THERE,
        ptx=(8, 0),
        target="sm_90",
    ),
    Form(
        id="cp.reduce.async.bulk.store",
        text="cp.reduce.async.bulk.global.shared::cta.bulk_group{hint}.{op}.{type} "
        "[{a}], [{s}], {size}{policy};",
        macro=(
            'bulk.reduce("global.shared::cta.bulk_group" ~ hint ~ "." ~ op ~ "." ~ type, '
            "a, s, size, policy)"
        ),
        axes={
            "hint": ("", ".L2::cache_hint"),
            "op": tuple(_GMEM_REDUCTIONS),
            "type": _REDUCED,
            "size": (32,),
        },
        legal=lambda axes: axes["type"] in _GMEM_REDUCTIONS[str(axes["op"])],
        cover=lambda axes: not axes["hint"] or axes["op"] == "add",
        derive=_hinted,
        reads="s:@shared a:@global",
        run=_cells,
        ptx=(8, 0),
        target="sm_90",
    ),
    Form(
        id="cp.async.bulk.commit_group",
        text="cp.async.bulk.commit_group;",
        macro="tma.commit_group()",
        reads="s:@shared a:@global",
        run=Run(
            before=(
                "fence.proxy.async;",
                "cp.async.bulk.global.shared::cta.bulk_group [{a}], [{s}], 16;",
            ),
            after=("cp.async.bulk.wait_group 0;",),
        ),
        ptx=(8, 0),
        target="sm_90",
    ),
    Form(
        id="cp.async.bulk.wait_group",
        text="cp.async.bulk.wait_group{read} {n};",
        macro="tma.wait_group(n, read)",
        axes={"read": ("", ".read"), "n": (0, 1, 4)},
        reads="s:@shared a:@global",
        run=Run(
            before=(
                "fence.proxy.async;",
                "cp.async.bulk.global.shared::cta.bulk_group [{a}], [{s}], 16;",
                "cp.async.bulk.commit_group;",
            ),
            after=("cp.async.bulk.wait_group 0;",),
        ),
        ptx=(8, 0),
        target="sm_90",
    ),
    Form(
        id="cp.async.bulk.wait_group_read",
        text="cp.async.bulk.wait_group.read {n};",
        macro="tma.wait_group_read(n)",
        axes={"n": (0, 1)},
        reads="x:b32",
        run=Run(after=("cp.async.bulk.wait_group 0;",)),
        ptx=(8, 0),
        target="sm_90",
    ),
)
