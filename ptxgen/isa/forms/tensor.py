"""Copies of boxes described by a tensor map (PTX ISA 9.7.9.25.5), and work on maps (9.7.9.26).

One thread issues. The box lies at %smem, the mbarrier behind it at %smem + 4096. The innermost
coordinate counts in steps of 16 bytes (`~coordinate.N`, N elements): a box that starts between them
ends the kernel with an illegal instruction.
"""

from __future__ import annotations

from ptxgen.isa.forms.base import Axes, Axis, Form, Run, TensorImage

_BOX_AT_MOST = 4096
_MEET = ("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;")
# Image and box of each rank, outermost axis first. Neither divides the other, so that boxes cross
# the upper edges; coordinates are small and may be negative, so that they cross the lower ones.
_SHAPES: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {
    1: ((50,), (16,)),
    2: ((11, 36), (8, 16)),
    3: ((5, 7, 20), (3, 4, 16)),
    4: ((3, 4, 5, 20), (2, 3, 2, 16)),
    5: ((3, 3, 4, 3, 20), (2, 2, 3, 2, 8)),
}
_BYTES = {
    "u8": 1, "f16": 2, "bf16": 2, "u16": 2, "u32": 4, "s32": 4, "f32": 4, "u64": 8, "s64": 8,
    "f64": 8,
}  # fmt: skip


def _image(rank: int, dtype: str = "u32", swizzle: int = 0, use: str = "load") -> TensorImage:
    shape, box = _SHAPES[rank]
    width = max(1, 4 // _BYTES[dtype])  # keep the bytes of a row
    narrow = 2 if _BYTES[dtype] == 8 else 1
    inner = swizzle // _BYTES[dtype] if swizzle else box[-1] * width // narrow
    row = max(shape[-1] * width // narrow, inner + 16 // _BYTES[dtype])
    return TensorImage(
        dtype=dtype,
        shape=(*shape[:-1], row),
        box=(*box[:-1], inner),
        swizzle=swizzle,
        use=use,  # type: ignore[arg-type]
    )


def box_bytes(image: TensorImage) -> int:
    """The bytes that a copy of one box signals."""
    total = _BYTES[image.dtype]
    for extent in image.box:
        total *= extent
    return total


def _load(axes: Axes) -> Run:
    image = _image(int(axes["rank"]), str(axes.get("dtype", "u32")), int(axes.get("swizzle", 0)))
    return _load_run(image)


def _load_run(image: TensorImage, cluster: int = 1, guard: str = "%lane0") -> Run:
    meet = _MEET if cluster > 1 else ("bar.sync 0;",)
    mask = (
        "mov.b16 %mask, 3;",
        "mov.u32 %rank, %cluster_ctarank;",
        "setp.eq.and.u32 %first, %rank, 0, %lane0;",
    )
    return Run(
        cluster=cluster,
        shared=_BOX_AT_MOST + 128,
        tensor=image,
        scratch=(
            "b32 %bar", "b64 %policy", "pred %done",
            *(("b16 %mask", "b32 %rank", "pred %first") if cluster > 1 else ()),
        ),
        before=(
            "createpolicy.fractional.L2::evict_first.b64 %policy, 1.0;",
            "fence.proxy.async;",
            f"add.u32 %bar, %smem, {_BOX_AT_MOST};",
            "@%lane0 mbarrier.init.shared.b64 [%bar], 1;",
            "fence.mbarrier_init.release.cluster;",
            f"@%lane0 mbarrier.arrive.expect_tx.shared.b64 _, [%bar], {box_bytes(image)};",
            *(mask if cluster > 1 else ()),
            *meet,
        ),
        after=(
            "$WAIT:",
            "mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0;",
            "@!%done bra $WAIT;",
            "bar.sync 0;",
            "@%lane0 mbarrier.inval.shared.b64 [%bar];",
            "@%lane0 st.shared.b64 [%bar], 0;",
            *(meet if cluster > 1 else ()),
        ),
        guard=guard,
    )  # fmt: skip


def _store(axes: Axes) -> Run:
    use = "reduce" if "op" in axes else "store"
    dtype = str(axes.get("dtype", "u32"))
    image = _image(int(axes["rank"]), dtype, int(axes.get("swizzle", 0)), use)
    return Run(
        shared=_BOX_AT_MOST,
        inputs=f"small.{dtype}" if "f" in dtype else "bytes",
        tensor=image,
        dump=False,
        scratch=("b64 %policy",),
        before=(
            "createpolicy.fractional.L2::evict_first.b64 %policy, 1.0;",
            "fence.proxy.async;",
            "bar.sync 0;",
        ),
        after=("cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;", "bar.sync 0;"),
        guard="%lane0",
    )


def _names(axes: Axes) -> dict[str, Axis]:
    """The operand of a cache hint, and how many elements make 16 bytes."""
    return {
        "policy": ", %policy" if axes.get("hint") else "",
        "step": 16 // _BYTES[str(axes.get("dtype", "u32"))],
    }


_RANKS = tuple(_SHAPES)
_SM90 = "sm_90"
_REDUCTIONS = {
    "add": ("u32", "s32", "u64", "f32", "f16", "bf16"),
    "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("u32", "u64"),
    "or": ("u32", "u64"),
    "xor": ("u32", "u64"),
}

_COPIES = (
    Form(
        id="cp.async.bulk.tensor.load",
        text="cp.async.bulk.tensor.{rank}d.{dst}.global{tile}.mbarrier::complete_tx::bytes{hint} "
        "[%smem], [%tmap, {c}], [%bar]{policy};",
        macro=(
            'tma.load(rank ~ "d." ~ dst ~ ".global" ~ tile ~ ".mbarrier::complete_tx::bytes" '
            '~ hint, "%smem", "%tmap", c, "%bar", policy)'
        ),
        axes={
            "rank": _RANKS,
            "dst": ("shared::cluster", "shared::cta"),
            "tile": ("", ".tile"),
            "hint": ("", ".L2::cache_hint"),
        },
        derive=_names,
        reads="c:s32*{rank}~coordinate.{step}",
        ptx=(8, 0),
        target=_SM90,
        newer={("dst", "shared::cta"): ((8, 6), _SM90)},
        run=_load,
    ),
    Form(
        id="cp.async.bulk.tensor.load.dtype",
        text="cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%smem], [%tmap, {c}], [%bar];",
        macro=(
            'tma.load(rank ~ "d.shared::cluster.global.mbarrier::complete_tx::bytes", "%smem", '
            '"%tmap", c, "%bar")'
        ),
        axes={
            "rank": (2, 3),
            "dtype": tuple(_BYTES),
            "swizzle": (0, 32, 64, 128),
        },
        derive=_names,
        reads="c:s32*{rank}~coordinate.{step}",
        ptx=(8, 0),
        target=_SM90,
        run=_load,
    ),
    Form(
        id="cp.async.bulk.tensor.load_2d",
        text="cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%smem], [%tmap, {{{x}, {y}}}], [%bar];",
        macro='tma.load_2d("%smem", "%tmap", x, y, "%bar")',
        axes={"rank": (2,)},
        derive=_names,
        reads="x:s32~coordinate.{step} y:s32~coordinate",
        ptx=(8, 0),
        target=_SM90,
        run=_load,
    ),
    Form(
        id="cp.async.bulk.tensor.load.multicast",
        text="cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster{hint} [%smem], [%tmap, {c}], [%bar], %mask{policy};",
        macro=(
            'tma.load(rank ~ "d.shared::cluster.global.mbarrier::complete_tx::bytes'
            '.multicast::cluster" ~ hint, "%smem", "%tmap", c, "%bar", ", %mask" ~ policy)'
        ),
        axes={"rank": _RANKS, "hint": ("", ".L2::cache_hint")},
        derive=_names,
        reads="c:s32*{rank}~coordinate.{step}",
        ptx=(8, 0),
        target=_SM90,
        run=lambda axes: _load_run(_image(int(axes["rank"])), cluster=2, guard="%first"),
    ),
    Form(
        id="cp.async.bulk.tensor.load_2d_multicast",
        text="cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%smem], [%tmap, {{{x}, {y}}}], [%bar], %mask;",
        macro='tma.load_2d_multicast("%smem", "%tmap", x, y, "%bar", "%mask")',
        derive=_names,
        reads="x:s32~coordinate.{step} y:s32~coordinate",
        ptx=(8, 0),
        target=_SM90,
        run=_load_run(_image(2), cluster=2, guard="%first"),
    ),
    Form(
        id="cp.async.bulk.tensor.store",
        text="cp.async.bulk.tensor.{rank}d.global.shared::cta{tile}.bulk_group{hint} "
        "[%tmap, {c}], [%smem]{policy};",
        macro=(
            'tma.store(rank ~ "d.global.shared::cta" ~ tile ~ ".bulk_group" ~ hint, "%tmap", c, '
            '"%smem", policy)'
        ),
        axes={"rank": _RANKS, "tile": ("", ".tile"), "hint": ("", ".L2::cache_hint")},
        derive=_names,
        reads="c:s32*{rank}~corner.{step}",
        ptx=(8, 0),
        target=_SM90,
        run=_store,
    ),
    Form(
        id="cp.async.bulk.tensor.store.swizzle",
        text="cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group [%tmap, {c}], [%smem];",
        macro='tma.store(rank ~ "d.global.shared::cta.bulk_group", "%tmap", c, "%smem")',
        axes={"rank": (2, 3), "swizzle": (32, 64, 128)},
        derive=_names,
        reads="c:s32*{rank}~corner.{step}",
        ptx=(8, 0),
        target=_SM90,
        run=_store,
    ),
    Form(
        id="cp.async.bulk.tensor.store_2d",
        text="cp.async.bulk.tensor.2d.global.shared::cta.bulk_group "
        "[%tmap, {{{x}, {y}}}], [%smem];",
        macro='tma.store_2d("%tmap", x, y, "%smem")',
        axes={"rank": (2,)},
        derive=_names,
        reads="x:s32~corner.{step} y:s32~corner",
        ptx=(8, 0),
        target=_SM90,
        run=_store,
    ),
    Form(
        id="cp.reduce.async.bulk.tensor",
        text="cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}{tile}.bulk_group{hint} "
        "[%tmap, {c}], [%smem]{policy};",
        macro=(
            'tma.reduce(rank ~ "d.global.shared::cta." ~ op ~ tile ~ ".bulk_group" ~ hint, '
            '"%tmap", c, "%smem", policy)'
        ),
        axes={
            "rank": _RANKS,
            "op": tuple(_REDUCTIONS),
            "tile": ("", ".tile"),
            "hint": ("", ".L2::cache_hint"),
        },
        cover=lambda axes: not (axes["tile"] or axes["hint"]) or axes["op"] == "add",
        derive=_names,
        reads="c:s32*{rank}~corner.{step}",
        ptx=(8, 0),
        target=_SM90,
        run=_store,
    ),
    Form(
        id="cp.reduce.async.bulk.tensor.dtype",
        text="cp.reduce.async.bulk.tensor.2d.global.shared::cta.{op}.bulk_group "
        "[%tmap, {c}], [%smem];",
        macro='tma.reduce("2d.global.shared::cta." ~ op ~ ".bulk_group", "%tmap", c, "%smem")',
        axes={"rank": (2,), "op": tuple(_REDUCTIONS), "dtype": tuple(_BYTES)},
        cover=lambda axes: axes["dtype"] in _REDUCTIONS[str(axes["op"])],
        derive=_names,
        reads="c:s32*2~corner.{step}",
        ptx=(8, 0),
        target=_SM90,
        run=_store,
    ),
    Form(
        id="cp.async.bulk.prefetch.tensor",
        text="cp.async.bulk.prefetch.tensor.{rank}d.L2.global{tile}{hint} [%tmap, {c}]{policy};",
        macro='tma.prefetch(rank ~ "d.L2.global" ~ tile ~ hint, "%tmap", c, policy)',
        axes={"rank": _RANKS, "tile": ("", ".tile"), "hint": ("", ".L2::cache_hint")},
        derive=_names,
        reads="c:s32*{rank}~coordinate.{step}",
        ptx=(8, 0),
        target=_SM90,
        semantic="runs",
        run=lambda axes: Run(
            tensor=_image(int(axes["rank"])),
            scratch=("b64 %policy",),
            before=("createpolicy.fractional.L2::evict_first.b64 %policy, 1.0;",),
            guard="%lane0",
        ),
    ),
    Form(
        id="prefetch.tensormap",
        text="prefetch.tensormap [%tmap];",
        macro='tensormap.prefetch("", "%tmap")',
        reads="x:b32",
        ptx=(8, 0),
        target=_SM90,
        semantic="runs",
        run=Run(tensor=_image(2)),
    ),
    Form(
        id="prefetch.param.tensormap",
        text="prefetch.param.tensormap [case_map];",
        macro='tensormap.prefetch("param.", "case_map")',
        reads="x:b32",
        ptx=(8, 0),
        target=_SM90,
        semantic="runs",
        run=Run(tensor=_image(2)),
    ),
)

_FIELDS = {"box_dim": "b32", "global_dim": "b32", "element_stride": "b32", "global_stride": "b64"}
_ENUM_MAX = {"elemtype": 12, "interleave_layout": 2, "swizzle_mode": 3, "fill_mode": 1}
_MAP = Run(threads=32, shared=512, guard="%lane0", after=("bar.sync 0;",))

_MAPS = (
    Form(
        id="tensormap.replace.whole",
        text="tensormap.replace.tile.{field}.shared::cta.b1024.{type} [%smem], {v};",
        macro='tensormap.replace(field ~ ".shared::cta.b1024." ~ type, "%smem", v)',
        axes={"field": ("global_address", "rank"), "type": ("b64", "b32")},
        legal=lambda axes: (axes["field"] == "rank") == (axes["type"] == "b32"),
        reads="v:{type}~map",
        ptx=(8, 3),
        target="sm_90a",
        run=_MAP,
    ),
    Form(
        id="tensormap.replace.axis",
        text="tensormap.replace.tile.{field}.shared::cta.b1024.{type} [%smem], {axis}, {v};",
        macro='tensormap.replace_axis(field ~ ".shared::cta.b1024." ~ type, "%smem", axis, v)',
        axes={"field": tuple(_FIELDS), "axis": (0, 1, 2, 3, 4)},
        cover=lambda axes: axes["field"] != "global_stride" or axes["axis"] != 4,
        derive=lambda axes: {"type": _FIELDS[str(axes["field"])]},
        reads="v:{type}~map",
        ptx=(8, 3),
        target="sm_90a",
        run=_MAP,
    ),
    Form(
        id="tensormap.replace.enum",
        text="tensormap.replace.tile.{field}.shared::cta.b1024.b32 [%smem], {value};",
        macro='tensormap.replace(field ~ ".shared::cta.b1024.b32", "%smem", value)',
        axes={"field": tuple(_ENUM_MAX), "value": tuple(range(13))},
        legal=lambda axes: int(axes["value"]) <= _ENUM_MAX[str(axes["field"])],
        reads="x:b32",
        ptx=(8, 3),
        target="sm_90a",
        run=_MAP,
    ),
    Form(
        id="tensormap.replace.global",
        text="tensormap.replace.tile.{field}.global.b1024.{type} [%gmem], {v};",
        macro='tensormap.replace(field ~ ".global.b1024." ~ type, "%gmem", v)',
        axes={"field": ("global_address", "rank"), "type": ("b64", "b32")},
        legal=lambda axes: (axes["field"] == "rank") == (axes["type"] == "b32"),
        reads="v:{type}~map a:@global",
        ptx=(8, 3),
        target="sm_90a",
        run=Run(guard="%lane0"),
    ),
    Form(
        id="tensormap.cp_fenceproxy",
        text="tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{scope}"
        ".sync.aligned [%gmem], [%smem], 128;",
        macro='tensormap.cp_fenceproxy(scope, "%gmem", "%smem")',
        axes={"scope": ("cta", "cluster", "gpu", "sys")},
        reads="a:@global",
        ptx=(8, 3),
        target=_SM90,
        run=Run(shared=512),
    ),
    Form(
        id="fence.proxy.tensormap.release",
        text="fence.proxy.tensormap::generic.release.{scope};",
        macro='tensormap.fence_release(scope)',
        axes={"scope": ("cta", "cluster", "gpu", "sys")},
        reads="x:b32",
        ptx=(8, 3),
        target=_SM90,
    ),
    Form(
        id="fence.proxy.tensormap.acquire",
        text="fence.proxy.tensormap::generic.acquire.{scope} [%gmem], 128;",
        macro='tensormap.fence_acquire(scope, "%gmem")',
        axes={"scope": ("cta", "cluster", "gpu", "sys")},
        reads="a:@global",
        ptx=(8, 3),
        target=_SM90,
    ),
)  # fmt: skip

FORMS = (*_COPIES, *_MAPS)
