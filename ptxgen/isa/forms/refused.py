"""Forms that assemble for sm_90a and that the emulator refuses, with the reason.

They have macros, so that a kernel for the hardware may use them.
"""

from __future__ import annotations

from ptxgen.isa.forms.base import Form, Run

_IM2COL = "im2col: the bits of its tensor map are unknown, so the boxes cannot be computed"
_B1 = "one-bit matrices: no kernel uses them"
_S4 = "4-bit integers have no matrix hardware on Hopper: ptxas calls a slow routine"
_WMMA = "wmma fragments have no documented layout; mma.sync has the same arithmetic with one"

FORMS = (
    Form(
        id="cp.async.bulk.tensor.load.im2col",
        text="cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col"
        ".mbarrier::complete_tx::bytes [%smem], [%tmap, {c}], [%bar], {offsets};",
        macro=(
            'tma.load_im2col(rank ~ "d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"'
            ', "%smem", "%tmap", c, "%bar", offsets)'
        ),
        axes={"rank": (3, 4, 5)},
        derive=lambda axes: {"shifts": int(axes["rank"]) - 2},
        reads="c:s32*{rank} offsets:b16*{shifts}",
        ptx=(8, 0),
        target="sm_90",
        run=Run(scratch=("b32 %bar",)),
        refused=_IM2COL,
    ),
    Form(
        id="cp.async.bulk.tensor.store.im2col",
        text="cp.async.bulk.tensor.{rank}d.global.shared::cta.im2col_no_offs.bulk_group "
        "[%tmap, {c}], [%smem];",
        macro=(
            'tma.store(rank ~ "d.global.shared::cta.im2col_no_offs.bulk_group", "%tmap", c, '
            '"%smem")'
        ),
        axes={"rank": (3, 4, 5)},
        reads="c:s32*{rank}",
        ptx=(8, 0),
        target="sm_90",
        refused=_IM2COL,
    ),
    Form(
        id="wgmma.b1",
        text="wgmma.mma_async.sync.aligned.m64n{n}k256.s32.b1.b1.and.popc "
        "{acc}, %a_desc, %b_desc, {d_scale};",
        macro=(
            'wgmma.mma_async_at("m64n" ~ n ~ "k256.s32.b1.b1.and.popc", acc, "%a_desc", '
            '"%b_desc", d_scale, "")'
        ),
        axes={"n": (8, 64, 256), "d_scale": (0, 1)},
        derive=lambda axes: {"nd": int(axes["n"]) // 2},
        updates="acc:s32*{nd}",
        ptx=(8, 0),
        target="sm_90a",
        run=Run(scratch=("b64 %a_desc, %b_desc",)),
        refused=_B1,
    ),
    Form(
        id="mma.b1",
        text="mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {d}, {a}, {b}, {c};",
        macro='mma.mma_sync("m16n8k256.row.col.s32.b1.b1.s32.and.popc", d, a, b, c)',
        writes="d:s32*4",
        reads="a:b32*4 b:b32*2 c:s32*4",
        ptx=(7, 1),
        target="sm_80",
        refused=_B1,
    ),
    Form(
        id="mma.int4",
        text="mma.sync.aligned.m16n8k64.row.col.s32.{type}.{type}.s32 {d}, {a}, {b}, {c};",
        macro=('mma.mma_sync("m16n8k64.row.col.s32." ~ type ~ "." ~ type ~ ".s32", d, a, b, c)'),
        axes={"type": ("s4", "u4")},
        writes="d:s32*4",
        reads="a:b32*4 b:b32*2 c:s32*4",
        ptx=(7, 0),
        target="sm_80",
        refused=_S4,
    ),
    Form(
        id="wmma.load",
        text="wmma.load.{side}.sync.aligned.row.m16n16k16.shared.f16 {d}, [%smem];",
        macro='mma.wmma_load(side ~ ".sync.aligned.row.m16n16k16.shared.f16", d, "%smem")',
        axes={"side": ("a", "b")},
        writes="d:b32*8",
        ptx=(6, 3),
        refused=_WMMA,
    ),
    Form(
        id="brx.idx",
        text="brx.idx {a}, $TARGETS;",
        macro='control.brx_idx(a, "$TARGETS")',
        reads="a:u32",
        run=Run(before=("$TARGETS: .branchtargets $PAST;",)),
        refused="a jump table: no kernel uses one; a chain of setp and bra does the same",
    ),
    Form(
        id="call.indirect",
        text="call ({d}), %function, ({a}), $PROTOTYPE;",
        macro='control.call_indirect(d, "%function", a, "$PROTOTYPE")',
        writes="d:b32",
        reads="a:b32",
        run=Run(
            scratch=("b64 %function",),
            before=("$PROTOTYPE: .callprototype (.reg .b32 _) _ (.reg .b32 _);",),
        ),
        refused="a call through a pointer: kernels inline or call by name",
    ),
    Form(
        id="tex",
        text="tex.2d.v4.f32.f32 {d}, [%texture, {c}];",
        macro='memory.tex("2d.v4.f32.f32", d, "%texture", c)',
        writes="d:f32*4",
        reads="c:f32*2",
        run=Run(scratch=("b64 %texture",)),
        refused="textures need filtering hardware that is not specified to the bit",
    ),
)
