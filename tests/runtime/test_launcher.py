"""What every launch checks, and what it hands to a backend."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from dlpack_producer import Producer
from recording import Kernel, RecordingBackend

import runtime
from ptxgen.errors import ArgumentError, LaunchError, TensorMapError
from ptxgen.layout import tensor_map as layout
from ptxgen.spec import Dim3, PointerParam, ScalarParam, TensorMapParam, Workspace
from runtime import backend as backends
from runtime.checks import param_bytes

pytestmark = pytest.mark.unit


@pytest.fixture
def recorder() -> RecordingBackend:
    return RecordingBackend()


def pointer(name: str, **changes: object) -> PointerParam:
    return PointerParam(name=f"p_{name}", arg=name, dtype="f32", **changes)  # type: ignore[arg-type]


def tmap(name: str, use: str = "load") -> TensorMapParam:
    return TensorMapParam(
        name=f"tmap_{name}", arg=name, dtype="bf16", axes=(0, 1), box=(64, 64), swizzle=128,
        use=use,  # type: ignore[arg-type]
    )  # fmt: skip


def scalar(name: str, ptx_type: str = "u32") -> ScalarParam:
    return ScalarParam(name=name, ptx_type=ptx_type)


def f32(count: int = 8) -> np.ndarray:
    return np.zeros(count, np.float32)


def bf16(rows: int = 64, columns: int = 64) -> np.ndarray:
    return np.zeros((rows, columns), ml_dtypes.bfloat16)


def fields(error: ArgumentError) -> set[str]:
    return {v.field for v in error.violations}


def test_parameters_are_packed_in_order(recorder):
    kernel = Kernel((tmap("a"), scalar("n", "u64"), pointer("x"), scalar("s", "f32")),
                    scalars={"n": 2**40})  # fmt: skip
    a, x = bf16(96, 72), f32()
    runtime.launch(kernel, a=a, x=x, s=0.5, backend=recorder)
    (seen,) = recorder.seen
    spec = layout.decode(seen.params[0])
    assert (spec.shape, spec.strides, spec.box) == ((96, 72), (144, 2), (64, 64))
    assert spec.address == a.ctypes.data
    assert seen.params[1:] == (
        (2**40).to_bytes(8, "little"), x.ctypes.data.to_bytes(8, "little"),
        np.float32(0.5).tobytes(),
    )  # fmt: skip
    assert seen.step.grid == Dim3(4)
    assert set(seen.refs) == {"a", "x"}


def test_positional_named_and_args_mean_the_same(recorder):
    kernel = Kernel((pointer("x"), scalar("stream"), pointer("kernel")))
    x, y = f32(), f32()
    runtime.launch(kernel, x, 3, y, backend=recorder)
    # "stream" is a keyword of launch itself, so it must go through args; "kernel" need not
    runtime.launch(kernel, args={"stream": 3}, x=x, kernel=y, backend=recorder)
    first, second = recorder.seen
    assert first.params == second.params


@pytest.mark.parametrize(
    ("positional", "named", "broken"),
    [
        ((), {}, {"x", "y"}),
        ((f32(),), {"x": f32(), "y": f32()}, {"x"}),
        ((), {"x": f32(), "y": f32(), "z": 1, "w": 2}, {"z", "w"}),
        ((f32(), f32(), 1, 2), {}, {"k"}),
        ((), {"x": None, "y": f32()}, {"x"}),
    ],
)
def test_names_that_are_missing_doubled_or_unknown(recorder, positional, named, broken):
    kernel = Kernel((pointer("x"), pointer("y"), scalar("s")), scalars={"s": 1})
    with pytest.raises(ArgumentError) as caught:
        runtime.launch(kernel, *positional, **named, backend=recorder)
    assert fields(caught.value) == broken
    assert not recorder.seen


def test_all_violations_of_all_kinds_at_once(recorder):
    kernel = Kernel(
        (pointer("x", access="write"), pointer("y"), pointer("z", access="write"), tmap("a")),
    )
    frozen = f32()
    frozen.flags.writeable = False
    with pytest.raises(ArgumentError) as caught:
        runtime.launch(
            kernel, x=frozen, y=f32().astype(np.int32), z=np.broadcast_to(f32(1), 8),
            a=bf16().astype(np.float16), backend=recorder,
        )  # fmt: skip
    text = str(caught.value)
    assert fields(caught.value) == {"x", "y", "z", "a"}
    assert "read-only" in text
    assert "must be f32" in text
    assert "stride 0" in text


def test_dlpack_read_only_output(recorder):
    kernel = Kernel((pointer("x", access="write"),))
    x = Producer(f32(), dtype=(2, 32, 1), read_only=True)
    with pytest.raises(ArgumentError, match="read-only"):
        runtime.launch(kernel, x=x, backend=recorder)


@pytest.mark.parametrize("part", ["same", "shifted", "interleaved"])
def test_output_over_input(recorder, part):
    kernel = Kernel((pointer("x"), pointer("y", access="write")))
    base = np.zeros((4, 16), np.float32)
    x, y, legal = {
        "same": (base, base, False),
        "shifted": (base[:3], base[1:], False),
        "interleaved": (base[:, :8], base[:, 8:], True),
    }[part]
    if legal:
        runtime.launch(kernel, x=x, y=y, backend=recorder)
        return
    with pytest.raises(ArgumentError, match="must not overlap x"):
        runtime.launch(kernel, x=x, y=y, backend=recorder)


def test_two_outputs_and_inputs_that_may_be_shared(recorder):
    kernel = Kernel(
        (pointer("x"), pointer("y"), pointer("u", access="write"), pointer("v", access="write"))
    )
    x, out = f32(), f32()
    runtime.launch(kernel, x=x, y=x, u=out, v=f32(), backend=recorder)  # inputs may be one array
    with pytest.raises(ArgumentError) as caught:
        runtime.launch(kernel, x=x, y=x, u=out, v=out, backend=recorder)
    assert fields(caught.value) == {"u"}  # the pair is named once


def test_pointer_alignment(recorder):
    base = np.zeros(64, np.float32)
    skip = -base.ctypes.data // 4 % 4  # elements until a 16-byte boundary
    aligned = base[skip : skip + 8]
    runtime.launch(Kernel((pointer("x"),)), x=aligned, backend=recorder)
    with pytest.raises(ArgumentError, match=r"\(mod 16 = 4\)"):
        runtime.launch(Kernel((pointer("x"),)), x=base[skip + 1 : skip + 9], backend=recorder)
    runtime.launch(Kernel((pointer("x", align=4),)), x=base[skip + 1 :], backend=recorder)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bf16(64, 100)[:, :99], "200"),  # pitch 200 B
        (lambda: bf16(64, 128)[:, ::2], "stride"),
        (lambda: bf16(64, 128)[:, 1:65], "address"),
        (lambda: np.broadcast_to(bf16(1, 64), (64, 64)), "0 B"),
        (lambda: bf16(64, 64)[::-1], "stride"),
    ],
    ids=["pitch", "inner stride", "offset view", "broadcast", "negative"],
)
def test_what_no_tensor_map_describes(recorder, make, words):
    with pytest.raises(TensorMapError, match=words) as caught:
        runtime.launch(Kernel((tmap("a"),)), a=make(), backend=recorder)
    assert all(v.field.startswith("a") for v in caught.value.violations)


def test_an_empty_array_has_a_map_of_zeros(recorder):
    runtime.launch(Kernel((tmap("a"),)), a=bf16(64, 0), backend=recorder)
    assert recorder.seen[0].params == (bytes(128),)


@pytest.mark.parametrize(
    ("grid", "cluster", "words"),
    [
        ((1, 65_536), Dim3(), "grid.y=65,536"),
        ((1, 1, 65_536), Dim3(), "grid.z=65,536"),
        (2**31, Dim3(), "grid.x=2,147,483,648"),
        (-1, Dim3(), "grid.x=-1"),
        (33, Dim3(2), "grid.x=33 CTAs .*cluster.x=2"),
        ((2, 3), Dim3(2, 2), "grid.y=3 CTAs"),
    ],
)
def test_grids_that_no_launch_has(recorder, grid, cluster, words):
    kernel = Kernel((pointer("x"),), cluster=cluster)
    with pytest.raises(ArgumentError, match=words):
        runtime.launch(kernel, x=f32(), grid=grid, backend=recorder)


def test_grids_that_are_launched(recorder):
    kernel = Kernel((pointer("x"),))
    for grid, seen in ((7, Dim3(7)), ((2, 3), Dim3(2, 3)), ((2**31 - 1, 65_535, 65_535),) * 2):
        runtime.launch(kernel, x=f32(), grid=grid, backend=recorder)
        assert recorder.seen[-1].step.grid == seen
    count = len(recorder.seen)
    runtime.launch(kernel, x=f32(), grid=(5, 0), backend=recorder)  # nothing to run
    assert len(recorder.seen) == count
    with pytest.raises(ArgumentError, match="plan of one launch"):
        runtime.launch(Kernel((pointer("x"),), steps=2), x=f32(), grid=1, backend=recorder)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"block": Dim3(1_025)}, "block"),
        ({"block": Dim3(1, 1, 65)}, "block"),
        ({"cluster": Dim3(17), "grid": Dim3(17)}, "cluster"),
    ],
)
def test_specs_that_no_gpu_runs(recorder, changes, field):
    with pytest.raises(ArgumentError) as caught:
        runtime.launch(Kernel((pointer("x"),), **changes), x=f32(), backend=recorder)
    assert fields(caught.value) == {field}


def test_parameter_bytes(recorder):
    # 33 maps are 4,224 B: too much before PTX 8.1, which raised the limit to 32,764 B
    maps = tuple(tmap(f"a{i}") for i in range(33))
    arrays = {f"a{i}": bf16() for i in range(33)}
    with pytest.raises(ArgumentError, match=r"4,224 B in 33 parameters.*4,096"):
        runtime.launch(Kernel(maps), **arrays, backend=recorder)
    runtime.launch(Kernel(maps, version=(8, 1)), **arrays, backend=recorder)
    # each at a multiple of its alignment: u64 at 0, map at 64, u32 at 192
    spec = Kernel((scalar("n", "u64"), tmap("a"), scalar("m"))).spec
    assert param_bytes(spec) == 196


def test_scalars_missing_from_both_sides(recorder):
    kernel = Kernel((pointer("x"), scalar("n"), scalar("s", "f32")))
    with pytest.raises(ArgumentError) as caught:
        runtime.launch(kernel, x=f32(), n=2.5, backend=recorder)
    assert fields(caught.value) == {"n", "s"}


def test_workspaces_belong_to_the_runtime(recorder):
    kernel = Kernel(
        (pointer("x"), pointer("scratch", workspace=True)),
        workspaces=(Workspace(name="scratch", bytes=64),),
    )
    assert kernel.spec.arguments() == ("x",)
    runtime.launch(kernel, x=f32(), backend=recorder)
    (seen,) = recorder.seen
    address = int.from_bytes(seen.params[1], "little")
    assert address == seen.refs["scratch"].meta.address
    with pytest.raises(LaunchError, match="asks for no workspace"):
        runtime.launch(Kernel(kernel.params), x=f32(), backend=recorder)


def test_prepare_runs_nothing_until_it_is_called(recorder):
    prepared = runtime.prepare(Kernel((pointer("x"),)), x=f32(), backend=recorder)
    assert not recorder.seen
    prepared()
    prepared(None)
    assert len(recorder.seen) == 2


def test_a_plan_without_steps_launches_nothing(recorder):
    runtime.launch(Kernel((pointer("x"),), steps=0), x=f32(), backend=recorder)
    assert not recorder.seen


def test_debug_says_what_was_chosen(recorder, monkeypatch, capsys):
    monkeypatch.setenv("PTXGEN_DEBUG", "2")
    runtime.launch(Kernel((pointer("x"),)), x=f32(), backend=recorder)
    said = capsys.readouterr().err
    assert "recording cpu: k: grid 4x1x1 CTAs" in said
    assert "4 CTAs fit" in said


# --- who runs it ---------------------------------------------------------------------------------


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.delenv("PTXGEN_BACKEND", raising=False)
    registry = backends.BackendRegistry(
        {name: lambda name=name: RecordingBackend(name) for name in ("cuda", "emulator")}
    )
    monkeypatch.setattr(backends, "BACKENDS", registry)
    return registry


def test_the_choice_of_a_backend(registry, monkeypatch, recorder):
    assert backends.choose(None, []).name == "emulator"
    assert backends.choose(None, ["cpu"]).name == "emulator"
    assert backends.choose(None, ["cpu", "cuda:1"]).name == "cuda"
    monkeypatch.setenv("PTXGEN_BACKEND", "emulator")
    assert backends.choose(None, ["cuda:1"]).name == "emulator"
    assert backends.choose("cuda", ["cpu"]).name == "cuda"
    assert backends.choose(recorder, ["cpu"]) is recorder
    assert backends.choose("cuda", []) is backends.choose("cuda", [])
    with pytest.raises(ArgumentError, match="must be one of 'cuda', 'emulator'"):
        backends.choose("gpu", [])


def test_without_a_driver_the_cuda_backend_says_so():
    bindings = pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")
    try:
        bindings.cuInit(0)
    except Exception:
        with pytest.raises(LaunchError, match="backend='emulator'"):
            runtime.launch(Kernel((pointer("x"),)), x=f32(), backend="cuda")
    else:
        pytest.skip("this machine has a CUDA driver")
