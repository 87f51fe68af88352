"""wgmma (PTX ISA 9.7.15): one warpgroup, A and B in shared memory without swizzle or with.

Without swizzle an 8x16-byte core matrix is 128 contiguous bytes; core matrices lie K first, so the
leading offset is 128 and the stride offset 256 (of a sparse B, whose rows have 64 bytes, 512).
"""

from __future__ import annotations

from ptxgen.isa.forms.base import Axes, Axis, Form, Run, Version

_N = tuple(range(8, 257, 8))
_N_INT = (*range(8, 33, 8), *range(48, 257, 16))
_FP8 = ("e4m3", "e5m2")
_INT8 = ("s8", "u8")
_K = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}
_LEAST_N = 8
_SOME_N = (64, 256)
# Of each form, the types that are tried at every N.
_FIRST = (("f32", "f16"), ("f32", "bf16"), ("f32", "tf32"), ("f32", "e4m3"), ("s32", "s8"))
_A_BYTES = 64 * 32
_FLAGS = ("1, 1", "-1, 1", "1, -1", "-1, -1")


def _names(axes: Axes) -> dict[str, Axis]:
    """K, the registers of D, and what the inputs look like."""
    n, a = int(axes["n"]), str(axes["a"])
    b = str(axes.get("b", a))
    d = str(axes["d"])
    sparse = 2 if "selector" in axes else 1
    return {
        "b": b,
        "k": _K[a] * sparse,
        "nd": n // 4 if d == "f16" else n // 2,
        "reg": "f16x2" if d == "f16" else d,
        "d_values": f"small.{d}",
        "a_values": f"small.{a}",
        "metadata": "pairs_tf32" if a == "tf32" else "pairs",
        "a_desc": "%a_desc",
        "b_desc": "%b_desc",
        "flags": ", ".join(
            str(axes[name]) for name in ("scale", "transpose") if axes.get(name, "") != ""
        ),
    }


def _run(axes: Axes) -> Run:
    n, a = int(axes["n"]), str(axes["a"])
    sparse = "selector" in axes
    low, high = 128 >> 4, 256 >> 4
    b_high = 512 >> 4 if sparse else high
    return Run(
        threads=128,
        shared=_A_BYTES + n * (64 if sparse else 32),
        inputs=f"small.{a}",
        dump=False,
        scratch=("b32 %start", "b64 %a_desc, %b_desc", "pred %accumulate"),
        before=(
            "fence.proxy.async.shared::cta;",
            "bar.sync 0;",
            "and.b32 %start, %smem, 0x3ffff;",
            "shr.u32 %start, %start, 4;",
            f"or.b32 %start, %start, {low << 16:#x};",
            f"mov.b64 %a_desc, {{{{%start, {high}}}}};",
            f"add.u32 %start, %start, {_A_BYTES >> 4};",
            f"mov.b64 %b_desc, {{{{%start, {b_high}}}}};",
            "setp.ne.b32 %accumulate, 1, 0;",
            "wgmma.fence.sync.aligned;",
        ),
        after=("wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"),
    )


def _plain(axes: Axes) -> bool:
    """Flags at their defaults."""
    return (
        axes.get("scale", "1, 1") == "1, 1"
        and str(axes.get("transpose", "0")).strip("0, ") == ""
        and axes.get("d_scale", "%accumulate") == "%accumulate"
        and axes.get("sat", "") == ""
        and str(axes.get("b", axes["a"])) == str(axes["a"])
    )


def _cover(axes: Axes) -> bool:
    """Every flag and type at the least N, every type at some N, one type at every N."""
    if axes["n"] == _LEAST_N:
        return True
    first = (axes["d"], axes["a"]) in _FIRST
    return _plain(axes) and (first or axes["n"] in _SOME_N)


def _mixed(axes: Axes) -> bool:
    """Signed times unsigned is newer than either times itself, which is a form of its own."""
    return axes["a"] != axes["b"]


def _form(
    id: str,
    d: tuple[str, ...],
    a: tuple[str, ...],
    b: tuple[str, ...] = (),
    n: tuple[int, ...] = _N,
    scale: bool = True,
    transpose: tuple[str, ...] = (),
    sat: bool = False,
    rs: bool = False,
    sparse: tuple[int, ...] = (),
    ptx: Version | None = None,
) -> Form:
    """One family of types. `rs`: A in registers. `sparse`: the selectors of the metadata."""
    mode = ".sp" if sparse else ""
    a_text = "{a_regs}" if rs else "{a_desc}"
    sat_text = "{sat}" if sat else ""
    meta = ", {e}, {selector}" if sparse else ""
    tail = ", {flags}" if scale or transpose else ""
    axes: dict[str, tuple[Axis, ...]] = {"n": n, "d": d, "a": a}
    axes |= {"b": b} if b else {}
    axes |= {"sat": ("", ".satfinite")} if sat else {}
    axes |= {"selector": sparse} if sparse else {}
    axes |= {"d_scale": ("%accumulate", "0")}
    axes |= {"scale": _FLAGS} if scale else {}
    axes |= {"transpose": transpose} if transpose else {}
    sat_macro = " ~ sat" if sat else ""
    quals = f'"m64n" ~ n ~ "k" ~ k ~ "." ~ d ~ "." ~ a ~ "." ~ b{sat_macro}'
    left = "a_regs" if rs else "a_desc"
    flags = '", " ~ flags' if tail else '""'
    name, extra = ("mma_async_sp", "e, selector, ") if sparse else ("mma_async_at", "")
    reads = " ".join(
        [
            *(("a_regs:b32*4~{a_values}",) if rs else ()),
            *(("e:b32~{metadata}",) if sparse else ()),
        ]
    )
    return Form(
        id=id,
        text=f"wgmma.mma_async{mode}.sync.aligned.m64n{{n}}k{{k}}.{{d}}.{{a}}.{{b}}{sat_text} "
        f"{{acc}}, {a_text}, {{b_desc}}{meta}, {{d_scale}}{tail};",
        macro=f"wgmma.{name}({quals}, acc, {left}, b_desc, {extra}d_scale, {flags})",
        axes=axes,
        derive=_names,
        cover=_mixed if id.endswith(".mixed") else _cover,
        updates="acc:{reg}*{nd}~{d_values}",
        reads=reads,
        ptx=ptx or ((8, 2) if sparse else (8, 0)),
        target="sm_90a",
        run=_run,
    )


_SS, _RS = ("0, 0", "1, 0", "0, 1", "1, 1"), ("0", "1")

FORMS = (
    Form(
        id="wgmma.gemm",
        text="wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{a}.{a} "
        "{acc}, {a_desc}, {b_desc}, {d_scale}, 1, 1, 0, 0;",
        macro="wgmma.mma_async(n, a, acc, a_desc, b_desc, d_scale)",
        axes={
            "n": (8, 64, 128, 256),
            "d": ("f32",),
            "a": ("f16", "bf16"),
            "d_scale": ("1", "%accumulate"),
        },
        derive=_names,
        updates="acc:f32*{nd}~small.f32",
        ptx=(8, 0),
        target="sm_90a",
        run=_run,
    ),
    _form("wgmma.f16", ("f16", "f32"), ("f16",), transpose=_SS),
    _form("wgmma.bf16", ("f32",), ("bf16",), transpose=_SS),
    _form("wgmma.tf32", ("f32",), ("tf32",)),
    _form("wgmma.fp8", ("f16", "f32"), _FP8, _FP8),
    _form("wgmma.int8", ("s32",), _INT8, n=_N_INT, scale=False, sat=True),
    _form("wgmma.int8.mixed", ("s32",), _INT8, _INT8, n=(_LEAST_N, 64), scale=False, sat=True,
          ptx=(8, 4)),
    _form("wgmma.f16.rs", ("f16", "f32"), ("f16",), transpose=_RS, rs=True),
    _form("wgmma.bf16.rs", ("f32",), ("bf16",), transpose=_RS, rs=True),
    _form("wgmma.tf32.rs", ("f32",), ("tf32",), rs=True),
    _form("wgmma.fp8.rs", ("f16", "f32"), _FP8, _FP8, rs=True),
    _form("wgmma.int8.rs", ("s32",), _INT8, n=_N_INT, scale=False, sat=True, rs=True),
    _form("wgmma.int8.rs.mixed", ("s32",), _INT8, _INT8, n=(_LEAST_N, 64), scale=False, sat=True,
          rs=True, ptx=(8, 4)),
    _form("wgmma.sp.f16", ("f16", "f32"), ("f16",), transpose=_SS, sparse=(0, 1)),
    _form("wgmma.sp.bf16", ("f32",), ("bf16",), transpose=_SS, sparse=(0, 1)),
    _form("wgmma.sp.tf32", ("f32",), ("tf32",), sparse=(0, 1)),
    _form("wgmma.sp.fp8", ("f16", "f32"), _FP8, _FP8, sparse=(0,)),
    _form("wgmma.sp.int8", ("s32",), _INT8, n=_N_INT, scale=False, sat=True, sparse=(0,)),
    _form("wgmma.sp.int8.mixed", ("s32",), _INT8, _INT8, n=(_LEAST_N, 64), scale=False, sat=True,
          sparse=(0,), ptx=(8, 4)),
    _form("wgmma.sp.f16.rs", ("f16", "f32"), ("f16",), transpose=_RS, rs=True, sparse=(0, 1)),
    _form("wgmma.sp.bf16.rs", ("f32",), ("bf16",), transpose=_RS, rs=True, sparse=(0, 1)),
    _form("wgmma.sp.tf32.rs", ("f32",), ("tf32",), rs=True, sparse=(0, 1)),
    _form("wgmma.sp.fp8.rs", ("f16", "f32"), _FP8, _FP8, rs=True, sparse=(0,)),
    _form("wgmma.sp.int8.rs", ("s32",), _INT8, n=_N_INT, scale=False, sat=True, rs=True,
          sparse=(0,)),
    _form("wgmma.sp.int8.rs.mixed", ("s32",), _INT8, _INT8, n=(_LEAST_N, 64), scale=False, sat=True,
          rs=True, sparse=(0,), ptx=(8, 4)),
    Form(
        id="wgmma.fence",
        text="wgmma.fence.sync.aligned;",
        macro="wgmma.fence()",
        reads="x:b32",
        ptx=(8, 0),
        target="sm_90a",
        run=Run(threads=128),
    ),
    Form(
        id="wgmma.commit_group",
        text="wgmma.commit_group.sync.aligned;",
        macro="wgmma.commit_group()",
        reads="x:b32",
        ptx=(8, 0),
        target="sm_90a",
        run=Run(threads=128, after=("wgmma.wait_group.sync.aligned 0;",)),
    ),
    Form(
        id="wgmma.wait_group",
        text="wgmma.wait_group.sync.aligned {n};",
        macro="wgmma.wait_group(n)",
        axes={"n": (0, 1, 7)},
        reads="x:b32",
        ptx=(8, 0),
        target="sm_90a",
        run=Run(threads=128, before=("wgmma.commit_group.sync.aligned;",)),
    ),
    *(
        Form(
            id=f"wgmma.descriptor{'.advance' if advance else ''}",
            text=text,
            macro=f'wgmma.descriptor(d, low, "16", {advance})',
            writes="d:b64",
            reads="low:b32",
        )
        for advance, text in (
            (0, "mov.b64 {d}, {{{low}, 16}};"),
            (2, "{{\n.reg .b32 %moved;\nadd.u32 %moved, {low}, 2;\n"
             "mov.b64 {d}, {{%moved, 16}};\n}}"),
        )
    ),
)  # fmt: skip
