"""`load_ptx`: what the signature says, what directives allow, and how launches bind to it."""

from __future__ import annotations

import numpy as np
import pytest
from launching import CASES, source

import ptxgen
import runtime
from ptxgen.errors import ArgumentError, PtxSyntaxError, UnsupportedPtx
from ptxgen.foreign import ForeignKernel, source_name
from ptxgen.ptx import parse
from ptxgen.ptx.pointers import written
from ptxgen.spec import ArrayMeta, DeviceLimits, Dim3, PointerParam, ScalarParam, TensorMapParam
from runtime.packing import pack, scalar_bytes

pytestmark = pytest.mark.unit

HEAD = ".version 8.0\n.target {target}\n.address_size 64\n"
# Stores n in x[tid]; the fields are what the tests vary.
FILL = """.visible .entry {name}(.param .u64 x, .param .u32 n)
{directives}
{{
    .reg .b32 %n, %t;
    .reg .b64 %x;
    ld.param.u64 %x, [x];
    ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %x, %t, 4, %x;
    st.global.u32 [%x], %n;
    ret;
}}
"""


def fill(name: str = "fill", directives: str = "", target: str = "sm_90a") -> str:
    return HEAD.format(target=target) + FILL.format(name=name, directives=directives)


def load_error(text: str, **options: object) -> str:
    with pytest.raises(ArgumentError) as caught:
        ptxgen.load_ptx(text, **options)  # type: ignore[arg-type]
    return str(caught.value)


# --- the signature -------------------------------------------------------------------------------


def test_the_spec_is_what_the_entry_declares() -> None:
    k = ptxgen.load_ptx(source("stencil"), block=(16, 16), smem=1296)
    x, y, g = k.spec.params
    assert isinstance(x, PointerParam)
    assert isinstance(y, PointerParam)
    assert isinstance(g, ScalarParam)
    assert (x.access, y.access, g.ptx_type) == ("read", "read_write", "b8[16]")
    assert (k.spec.entry, k.spec.block, k.spec.smem_bytes) == ("stencil", Dim3(16, 16), 1296)
    assert (k.spec.target, k.spec.ptx_version) == ("sm_90a", (9, 0))
    assert k.ptx is not None
    assert k.ptx == source("stencil")
    maps = ptxgen.load_ptx(source("tma_copy")).spec.params
    assert [isinstance(p, TensorMapParam) and p.access for p in maps] == ["read", "read_write"]


def test_block_and_cluster_come_from_the_directives_or_are_the_defaults() -> None:
    assert ptxgen.load_ptx(fill()).spec.block == (256, 1, 1)
    assert ptxgen.load_ptx(fill(directives=".reqntid 32, 2")).spec.block == (32, 2, 1)
    assert ptxgen.load_ptx(fill(directives=".maxntid 512")).spec.block == (256, 1, 1)
    assert ptxgen.load_ptx(source("cluster_sum")).spec.cluster == (4, 1, 1)


@pytest.mark.parametrize(
    ("directives", "options", "said"),
    [
        (".reqntid 128", {"block": (256, 1, 1)}, "must be 128x1x1: the entry says .reqntid"),
        (".maxntid 64, 2", {"block": (129, 1, 1)}, "at most 128: the entry says .maxntid"),
        (".maxntid 64", {}, "at most 64"),  # the default block has 256 threads
        (".explicitcluster\n.reqnctapercluster 2", {"cluster": (4,)}, ".reqnctapercluster"),
        ("", {"smem": 232_449}, "0..232,448 B"),
        ("", {"entry": "fil"}, "must name one of fill"),
    ],
)
def test_what_the_entry_does_not_allow_is_refused(
    directives: str, options: dict[str, object], said: str
) -> None:
    assert said in load_error(fill(directives=directives), **options)


@pytest.mark.parametrize("target", ["sm_100a", "sm_90f", "sm_103", "sm_80a", "compute_90"])
def test_targets_that_are_not_hopper(target: str) -> None:
    if target == "sm_90f":  # a family target of this very number runs
        assert ptxgen.load_ptx(fill(target=target)).spec.target == target
    else:
        assert f"target={target}" in load_error(fill(target=target))


def test_older_targets_run() -> None:
    assert ptxgen.load_ptx(fill(target="sm_75")).spec.target == "sm_75"


def test_one_of_several_entries_must_be_named() -> None:
    text = fill("first") + FILL.format(name="_ZN5space4copyEPfi", directives=".reqntid 64")
    assert "must name one of first, _ZN5space4copyEPfi" in load_error(text)
    assert ptxgen.load_ptx(text, "first").spec.entry == "first"
    for name in ("copy", "_ZN5space4copyEPfi"):
        assert ptxgen.load_ptx(text, name).spec.block == (64, 1, 1)
    twice = text + FILL.format(name="_Z4copyPfi", directives="")
    assert "must name one of" in load_error(twice, entry="copy")  # two kernels have this name


@pytest.mark.parametrize(
    ("symbol", "name"),
    [("plain", "plain"), ("_Z4copyPfi", "copy"), ("_ZN2ns5inner3addEv", "add"), ("_Zq", "_Zq")],
)
def test_names_of_cpp(symbol: str, name: str) -> None:
    assert source_name(symbol) == name


def test_what_is_no_ptx_and_what_has_no_entry() -> None:
    with pytest.raises(PtxSyntaxError, match="line 1"):
        ptxgen.load_ptx("int main() {}")
    assert "no entries" in load_error(HEAD.format(target="sm_90"))


def test_textures_cannot_be_passed() -> None:
    text = fill().replace(".param .u32 n", ".param .texref n")
    with pytest.raises(UnsupportedPtx, match=r"parameter n is a \.texref"):
        ptxgen.load_ptx(text)


def test_a_rendered_template_keeps_its_source_map() -> None:
    rendered = ptxgen.render_text(fill().replace("4, %x", "${width}, %x"), "mine.ptx.j2", width=4)
    k = ptxgen.load_ptx(rendered, block=(32, 1, 1))
    line = k.ptx.splitlines().index("    mad.wide.u32 %x, %t, 4, %x;") + 1
    assert "mine.ptx.j2" in str(k.ptx.locate(line))  # type: ignore[attr-defined]


# --- which arrays are written --------------------------------------------------------------------


def test_only_arrays_that_a_case_changes_count_as_written() -> None:
    """Over all programs: whatever is in `expected` is written, and inputs are not."""
    rng = np.random.default_rng(0)
    for name, make in CASES.items():
        case = make(rng)
        module = parse(source(name))
        params = [p.name for p in module.entry().params]
        stored = written(module.entry())
        for param, argument in zip(params, case.arguments, strict=True):
            if argument in case.expected:
                assert param in stored, (name, argument)
        inputs = {"x", "a", "b", "keys", "code", "which", "words", "weight", "bias", "scale", "in"}
        inplace = {"switch_dense": "x"}.get(name)
        for param, argument in zip(params, case.arguments, strict=True):
            if argument in inputs - {inplace} and isinstance(case.arguments[argument], np.ndarray):
                assert param not in stored, (name, argument)


@pytest.mark.parametrize(
    "body",
    [
        "st.global.u32 [%x], 1;",
        "red.global.add.u32 [%x], 1;",
        "atom.global.add.u32 %n, [%x], 1;",
        "add.s64 %y, %x, 8; mov.u64 %x, 0; st.global.u32 [%y+4], 1;",
        "st.local.u64 [buffer], %x;",  # it leaves our sight
        "call f, (%x);",
        "selp.b64 %y, %y, %x, %p; st.global.u32 [%y], 1;",
        "cp.async.bulk.global.shared::cta.bulk_group [%x], [%n], 16;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%x], [%n], 16;",
    ],
)
def test_a_write_is_seen(body: str) -> None:
    assert "x" in written(parse(_with(body)).entry("k"))


@pytest.mark.parametrize(
    "body",
    [
        "ld.global.u32 %n, [%x+8]; st.global.u32 [other], %n;",
        "ld.global.u64 %y, [%x]; st.global.u32 [%y], 1;",  # what is stored in x is not x
        "prefetch.global.L2 [%x];",
        "cp.async.ca.shared.global [%n], [%x], 16;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%n], [%x], 16, [%n];",
        "cp.async.bulk.prefetch.L2.global [%x], 16;",
    ],
)
def test_a_read_is_no_write(body: str) -> None:
    assert written(parse(_with(body)).entry("k")) == set()


def _with(body: str) -> str:
    declared = ".reg .b64 %x, %y; .reg .b32 %n; .reg .pred %p; .local .b64 buffer;"
    load = "ld.param.u64 %x, [x]; cvta.to.global.u64 %x, %x;"
    return (
        HEAD.format(target="sm_90a")
        + ".global .u32 other;\n.func f(.reg .b64 q) { ret; }\n"
        + f".visible .entry k(.param .u64 x)\n{{\n{declared}\n{load}\n{body}\nret;\n}}\n"
    )


# --- binding -------------------------------------------------------------------------------------


def bind_error(k: ForeignKernel, *values: object, **options: object) -> str:
    with pytest.raises(ArgumentError) as caught:
        runtime.launch(k, *values, backend="emulator", **options)  # type: ignore[arg-type]
    return str(caught.value)


def test_arrays_and_numbers_bind_in_order_or_by_name() -> None:
    k = ptxgen.load_ptx(fill(), block=(8, 1, 1))
    first, second = np.zeros(8, np.uint32), np.zeros(8, np.int32)
    runtime.launch(k, first, 7, grid=1, backend="emulator")
    runtime.launch(k, n=-1, x=second, grid=(1, 1, 1), backend="emulator")  # signs are ours
    assert (first == 7).all()
    assert (second == -1).all()


def test_the_grid_must_be_given() -> None:
    k = ptxgen.load_ptx(fill(), block=(8, 1, 1))
    assert "pass grid=(x, y, z)" in bind_error(k, np.zeros(8, np.uint32), 7)


def test_a_read_only_array_is_refused_only_where_it_is_written() -> None:
    out = np.zeros(8, np.uint32)
    out.flags.writeable = False
    k = ptxgen.load_ptx(fill(), block=(8, 1, 1))
    assert "must be writable" in bind_error(k, out, 7, grid=1)
    x = np.ones(256, np.float32)
    x.flags.writeable = False
    total = np.zeros(1, np.float32)
    runtime.launch(ptxgen.load_ptx(source("block_sum")), x, total, 256, grid=1, backend="emulator")
    assert total == 256


def test_an_array_may_be_passed_twice() -> None:
    """What foreign programs do with arrays that overlap is their own affair."""
    x = np.arange(100, dtype=np.float32)
    k = ptxgen.load_ptx(source("grid_stride"), block=(64, 1, 1))
    runtime.launch(k, 2.0, x, x, 100, grid=1, backend="emulator")  # y = 2 x + y
    assert np.array_equal(x, 3 * np.arange(100, dtype=np.float32))


def test_what_does_not_fit_a_parameter_is_named() -> None:
    k = ptxgen.load_ptx(fill(), block=(8, 1, 1))
    x = np.zeros(8, np.uint32)
    assert "n=1.5 (float)" in bind_error(k, x, 1.5, grid=1)
    assert "n=4294967296" in bind_error(k, x, 2**32, grid=1)
    assert "n=nothing" in bind_error(k, x, grid=1)
    assert "x=nothing" in bind_error(k, n=1, grid=1)
    assert "grid.x" in bind_error(ptxgen.load_ptx(source("cluster_sum")), x, x, 8, grid=6)


def test_a_tensor_map_keeps_its_array_until_it_is_launched() -> None:
    x = np.zeros((48, 128), np.float32)
    mapped = runtime.tensor_map(x, box=(32, 32), swizzle=128)
    assert mapped.array is x
    assert int.from_bytes(bytes(mapped)[:8], "little") == x.ctypes.data
    k = ptxgen.load_ptx(source("tma_copy"), block=(128, 1, 1))
    assert "pass tma_copy_param_0=runtime.tensor_map(" in bind_error(k, x, mapped, grid=1)
    wide = runtime.tensor_map(x, box=(32, 64), swizzle=128)  # 64 floats are more than 128 B
    assert "swizzle span" in bind_error(k, mapped, wide, grid=1)


def test_a_kernel_of_ours_passes_through() -> None:
    k = ptxgen.load_ptx(fill(), block=(8, 1, 1))
    meta = ArrayMeta(shape=(8,), strides=(4,), dtype="u32")
    plan = k.plan({"x": meta}, {}, DeviceLimits(name="any", sms=1, ctas=1))
    assert plan.open_grid
    assert [step.entry for step in plan.steps] == ["fill"]


@pytest.mark.parametrize(
    ("value", "size"),
    [(b"\1\2\3", 3), (np.float16(1.5), 2), (np.array([1, 2], np.float16), 4), (bytearray(12), 12)],
)
def test_aggregates_are_bytes(value: object, size: int) -> None:
    param = ScalarParam(name="s", ptx_type=f"b8[{size}]")
    raw = value if isinstance(value, bytes | bytearray) else value.tobytes()  # type: ignore[attr-defined]
    assert pack(param, value) == bytes(raw)
    assert scalar_bytes(param.ptx_type) == size
    with pytest.raises(ArgumentError, match=rf"holds {size + 1} bytes"):
        pack(ScalarParam(name="s", ptx_type=f"b8[{size + 1}]"), value)
