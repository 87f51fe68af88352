"""Special registers (PTX ISA 10): those with a known value, and those that are only readable."""

from __future__ import annotations

from ptxgen.isa.forms.base import Form, Run

_AXES3 = tuple(f"{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz")
_LANES = ("laneid", *(f"lanemask_{c}" for c in ("eq", "le", "lt", "ge", "gt")))
_CLUSTER = tuple(
    f"{name}.{axis}"
    for name in ("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
    for axis in "xyz"
)

FORMS = (
    Form(
        id="mov.special",
        text="mov.u32 {d}, %{register};",
        macro='thread.special("u32", d, register)',
        axes={"register": (*_AXES3, *_LANES)},
        writes="d:u32",
        run=Run(threads=64),
    ),
    Form(
        id="mov.warp_size",
        text="mov.u32 {d}, WARP_SZ;",
        macro='bits.mov("u32", d, "WARP_SZ")',
        writes="d:u32",
    ),
    Form(
        id="mov.cluster",
        text="mov.u32 {d}, %{register};",
        macro='thread.special("u32", d, register)',
        axes={"register": (*_CLUSTER, "cluster_ctarank", "cluster_nctarank")},
        writes="d:u32",
        ptx=(7, 8),
        target="sm_90",
        run=Run(cluster=2),
    ),
    Form(
        id="mov.explicit_cluster",
        text="mov.pred {p}, %is_explicit_cluster;",
        macro='thread.special("pred", p, "is_explicit_cluster")',
        writes="p:pred",
        ptx=(7, 8),
        target="sm_90",
        run=Run(cluster=2),
    ),
    Form(
        id="mov.smem_size",
        text="mov.u32 {d}, %{register};",
        macro='thread.special("u32", d, register)',
        axes={"register": ("dynamic_smem_size", "total_smem_size", "aggr_smem_size")},
        writes="d:u32",
        newer={("register", "aggr_smem_size"): ((8, 1), "sm_90")},
    ),
    Form(
        id="mov.reserved_smem",
        text="mov.b32 {d}, %reserved_smem_offset_{which};",
        macro='thread.special("b32", d, "reserved_smem_offset_" ~ which)',
        axes={"which": ("begin", "end", "cap", "0", "1")},
        writes="d:b32",
        ptx=(7, 6),
        target="sm_80",
    ),
    Form(
        id="mov.machine",
        text="mov.u32 {d}, %{register};",
        macro='thread.special("u32", d, register)',
        axes={
            "register": (
                "smid", "nsmid", "warpid", "nwarpid", "clock", "clock_hi", "globaltimer_lo",
                "globaltimer_hi",
            ),
        },
        writes="d:u32",
        semantic="runs",
    ),
    Form(
        id="mov.machine64",
        text="mov.u64 {d}, %{register};",
        macro='thread.special("u64", d, register)',
        axes={"register": ("clock64", "globaltimer", "gridid")},
        writes="d:u64",
        semantic="runs",
    ),
    Form(
        id="mov.symbol",
        text="mov.{type} {d}, {symbol};",
        macro="bits.mov(type, d, symbol)",
        axes={"type": ("u32", "u64", "b32", "b64")},
        derive=lambda axes: {"symbol": "symbol_table"},
        writes="d:{type}",
        semantic="runs",
        run=Run(globals=(".shared .align 16 .b8 symbol_table[64];",)),
    ),
)  # fmt: skip
