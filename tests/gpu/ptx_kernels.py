"""Small hand-written kernels for the checks of the CUDA runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ptxgen.errors import ToolMissing
from ptxgen.spec import (
    ArrayMeta,
    DeviceLimits,
    Dim3,
    KernelSpec,
    LaunchPlan,
    PointerParam,
    ScalarParam,
    Step,
    TensorMapParam,
)
from ptxgen.toolchain.assemble import assemble

HEADER = ".version 8.0\n.target sm_90a\n.address_size 64\n"


@dataclass
class PtxKernel:
    """PTX with a spec and a one-step plan. `assembled=False`: as if there were no ptxas."""

    ptx: str
    spec: KernelSpec
    grid: Dim3
    scalars: Mapping[str, Any] = field(default_factory=dict)
    assembled: bool = True

    @cached_property
    def cubin(self) -> bytes:
        if not self.assembled:
            raise ToolMissing("told to have no ptxas")
        return assemble(self.ptx).bytes

    def plan(
        self, args: Mapping[str, ArrayMeta], scalars: Mapping[str, Any], device: DeviceLimits
    ) -> LaunchPlan:
        return LaunchPlan(
            steps=(Step(entry=self.spec.entry, grid=self.grid, scalars=self.scalars),)
        )


def _spec(entry: str, *params: Any, **changes: Any) -> KernelSpec:
    return KernelSpec(entry=entry, params=params, **{"block": Dim3(32), **changes})


def _pointer(name: str, dtype: str, access: str = "write", align: int = 16) -> PointerParam:
    return PointerParam(name=f"p_{name}", arg=name, dtype=dtype, access=access, align=align)  # type: ignore[arg-type]


def parameters() -> PtxKernel:
    """Writes every parameter's bytes, in order, to out: two maps and scalars of all widths.

    u8 at 0, f32 at 4, map at 8, u16 at 136, map at 144, u64 at 272, b16 at 280, s32 at 284 of out.
    """
    reads = [("u8", "c", 0), ("u32", "f", 4)]
    reads += [("u64", f"tmap_a+{8 * i}", 8 + 8 * i) for i in range(16)]
    reads += [("u16", "h", 136)]
    reads += [("u64", f"tmap_b+{8 * i}", 144 + 8 * i) for i in range(16)]
    reads += [("u64", "n", 272), ("u16", "s", 280), ("u32", "i", 284)]
    register = {"u8": "%h", "u16": "%h", "u32": "%r", "u64": "%d"}
    body = "\n".join(
        f"  ld.param.{t} {register[t]}, [{source}];  st.global.{t} [%out+{at}], {register[t]};"
        for t, source, at in reads
    )
    ptx = f"""{HEADER}
.visible .entry parameters(
  .param .u8 c, .param .f32 f, .param .align 64 .b8 tmap_a[128], .param .u16 h,
  .param .align 64 .b8 tmap_b[128], .param .u64 n, .param .b16 s, .param .u64 p_out, .param .s32 i)
.reqntid 1
{{
  .reg .b16 %h; .reg .b32 %r; .reg .b64 %d, %out;
  ld.param.u64 %out, [p_out];
{body}
  ret;
}}
"""
    boxes = {"dtype": "bf16", "axes": (0, 1), "box": (64, 64), "swizzle": 128}
    spec = _spec(
        "parameters",
        ScalarParam(name="c", ptx_type="u8"),
        ScalarParam(name="f", ptx_type="f32"),
        TensorMapParam(name="tmap_a", arg="a", **boxes),
        ScalarParam(name="h", ptx_type="u16"),
        TensorMapParam(name="tmap_b", arg="b", **{**boxes, "box": (8, 32), "swizzle": 64}),
        ScalarParam(name="n", ptx_type="u64"),
        ScalarParam(name="s", ptx_type="b16"),
        _pointer("out", "u8"),
        ScalarParam(name="i", ptx_type="s32"),
        block=Dim3(1),
    )
    return PtxKernel(ptx, spec, Dim3(1))


def add_one(assembled: bool = True) -> PtxKernel:
    """y[i] = x[i] + 1 for 32 floats."""
    ptx = f"""{HEADER}
.visible .entry add_one(.param .u64 p_x, .param .u64 p_y)
.reqntid 32
{{
  .reg .b32 %t; .reg .f32 %f; .reg .b64 %x, %y, %o;
  ld.param.u64 %x, [p_x];
  ld.param.u64 %y, [p_y];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %o, %t, 4;
  add.u64 %x, %x, %o;
  add.u64 %y, %y, %o;
  ld.global.f32 %f, [%x];
  add.f32 %f, %f, 0f3F800000;
  st.global.f32 [%y], %f;
  ret;
}}
"""
    spec = _spec("add_one", _pointer("x", "f32", "read"), _pointer("y", "f32"))
    return PtxKernel(ptx, spec, Dim3(1), assembled=assembled)


def wait_for_flag() -> PtxKernel:
    """Spins until flag[0] is not zero, at most `ns` nanoseconds; then out[0] = flag[0]."""
    ptx = f"""{HEADER}
.visible .entry wait_for_flag(.param .u64 p_flag, .param .u64 p_out, .param .u64 ns)
.reqntid 1
{{
  .reg .pred %done; .reg .b32 %v; .reg .b64 %flag, %out, %start, %now, %limit;
  ld.param.u64 %flag, [p_flag];
  ld.param.u64 %out, [p_out];
  ld.param.u64 %limit, [ns];
  mov.u64 %start, %globaltimer;
SPIN:
  ld.relaxed.sys.global.u32 %v, [%flag];
  setp.ne.u32 %done, %v, 0;
  @%done bra DONE;
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %start;
  setp.lt.u64 %done, %now, %limit;
  @%done bra SPIN;
DONE:
  st.global.u32 [%out], %v;
  ret;
}}
"""
    spec = _spec(
        "wait_for_flag",
        _pointer("flag", "s32", "read"),
        _pointer("out", "s32"),
        ScalarParam(name="ns", ptx_type="u64"),
        block=Dim3(1),
    )
    return PtxKernel(ptx, spec, Dim3(1))


def cluster_ranks(size: int, clusters: int = 2) -> PtxKernel:
    """out[cta] = rank in cluster + 100 * cluster size."""
    ptx = f"""{HEADER}
.visible .entry cluster_ranks(.param .u64 p_out)
.reqntid 32
{{
  .reg .b32 %r, %n, %c; .reg .b64 %out, %o;
  ld.param.u64 %out, [p_out];
  mov.u32 %r, %cluster_ctarank;
  mov.u32 %n, %cluster_nctarank;
  mad.lo.u32 %r, %n, 100, %r;
  mov.u32 %c, %ctaid.x;
  mul.wide.u32 %o, %c, 4;
  add.u64 %out, %out, %o;
  st.global.u32 [%out], %r;
  ret;
}}
"""
    spec = _spec("cluster_ranks", _pointer("out", "s32"), cluster=Dim3(size))
    return PtxKernel(ptx, spec, Dim3(size * clusters))


def touch_smem(bytes_: int, static: int = 1) -> PtxKernel:
    """Writes the last dynamic byte and a static one, and returns both: out = 7 + 5."""
    ptx = f"""{HEADER}
.extern .shared .align 16 .b8 dynamic[];
.visible .entry touch_smem(.param .u64 p_out, .param .u32 last)
.reqntid 32
{{
  .shared .align 1 .b8 fixed[{static}];
  .reg .b16 %a, %b; .reg .b32 %at, %last, %r; .reg .b64 %out;
  ld.param.u64 %out, [p_out];
  ld.param.u32 %last, [last];
  mov.u32 %at, dynamic;
  add.u32 %at, %at, %last;
  mov.u16 %a, 7;
  st.shared.u8 [%at], %a;
  mov.u16 %b, 5;
  st.shared.u8 [fixed], %b;
  bar.sync 0;
  ld.shared.u8 %a, [%at];
  ld.shared.u8 %b, [fixed];
  add.u16 %a, %a, %b;
  cvt.u32.u16 %r, %a;
  st.global.u32 [%out], %r;
  ret;
}}
"""
    spec = _spec(
        "touch_smem", _pointer("out", "s32"), ScalarParam(name="last", ptx_type="u32"),
        smem_bytes=bytes_,
    )  # fmt: skip
    return PtxKernel(ptx, spec, Dim3(1), scalars={"last": bytes_ - 1})


def dropped_setmaxnreg() -> PtxKernel:
    """setmaxnreg without a register count at entry: the assembler drops it and says so."""
    ptx = f"""{HEADER}
.visible .entry dropped(.param .u64 p_out)
{{
  .reg .b64 %out; .reg .b32 %r;
  setmaxnreg.dec.sync.aligned.u32 24;
  ld.param.u64 %out, [p_out];
  mov.u32 %r, 1;
  st.global.u32 [%out], %r;
  ret;
}}
"""
    return PtxKernel(ptx, _spec("dropped", _pointer("out", "s32")), Dim3(1), assembled=False)


def bad_ptx() -> PtxKernel:
    """Does not assemble."""
    ptx = f"{HEADER}.visible .entry bad(.param .u64 p_out)\n{{\n  mov.u33 %r, 1;\n}}\n"
    return PtxKernel(ptx, _spec("bad", _pointer("out", "s32")), Dim3(1), assembled=False)
