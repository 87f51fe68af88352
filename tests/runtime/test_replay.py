"""The command that a report of a hang names: it parses, and does on the emulator what hung."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from typer.testing import CliRunner, Result

from ptxgen import Kernel, kernel, load_ptx
from ptxgen.app.cli import app
from ptxgen.foreign import ForeignKernel
from ptxgen.templating import Rendered
from runtime.backend import BoundLaunch
from runtime.binding import bind, name_arguments
from runtime.replay import commands

pytestmark = pytest.mark.emu

BF16 = ml_dtypes.bfloat16


@pytest.fixture(autouse=True)
def dump(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PTXGEN_DUMP", str(tmp_path / "with a space"))
    return tmp_path / "with a space"


def bound(k: Kernel | ForeignKernel, grid: int | None = None, **values: object) -> BoundLaunch:
    """What a backend is given for a launch."""
    named = name_arguments(k.spec, (), values, {})
    return bind(k, named, grid=grid, backend="emulator").bound


def replayed(launch: BoundLaunch) -> Result:
    (command,) = commands(launch)
    program, *words = shlex.split(command)
    assert program == "ptxgen"
    return CliRunner().invoke(app, words)


def spoiled(k: Kernel, old: str, new: str) -> Kernel:
    assert old in k.ptx
    text = Rendered(k.ptx.replace(old, new), k.ptx.chains)
    return Kernel(replace(k.source, rendered=text))


def test_a_gemm_that_hangs_hangs_again() -> None:
    """16 bytes too many are announced: every consumer waits for them."""
    good = kernel("gemm", tile=(64, 64, 64), stages=2, cluster=(2, 1))
    bad = spoiled(good, "_, [%full_s], 16384;", "_, [%full_s], 16400;")
    a, b, d = (np.zeros(shape, BF16) for shape in ((128, 192), (64, 192), (128, 64)))
    result = replayed(bound(bad, a=a, b=b, d=d))
    assert result.exit_code == 1, result.output
    assert "error deadlock" in result.stdout
    clean = replayed(bound(good, a=a, b=b, d=d))
    assert clean.exit_code == 0, clean.output
    assert "pass: gemm_bf16_bf16_64x64x64_2s_2x1, grid 2x1x1" in clean.stdout


@pytest.mark.parametrize(
    "fields",
    [
        {"a_major": "mn", "b_major": "mn"},  # maps that walk the axes the other way round
        {"dtype": "tf32"},  # maps of another type than their array
        {"batched": 1, "out_dtype": "f32"},
        {"alpha": 1, "beta": 1, "bias": "row"},  # f32 scalars and pointers
        {"split_k": 2},
    ],
)
def test_every_kind_of_parameter_can_be_typed(fields: dict[str, object]) -> None:
    from ptxgen.app import reference

    k = kernel("gemm", tile=(64, 64), stages=2, cluster=(1, 1), **fields)
    problem = k.source.problem
    a, b = reference.inputs("integers", problem, 72, 80, 128, seed=0)
    given = reference.epilogue("integers", problem, 72, 80, seed=0)
    d = reference.poisoned(problem, 72, 80)
    result = replayed(bound(k, a=a, b=b, d=d, **given.arrays(), **given.scalars(problem)))
    assert result.exit_code == 0, result.output


FOREIGN = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .s32 n, .param .f32 f, .param .align 4 .b8 s[8])
{
    .reg .b64 %x; .reg .b32 %n, %s; .reg .f32 %f; .reg .pred %p;
    ld.param.u64 %x, [x]; ld.param.s32 %n, [n]; ld.param.f32 %f, [f]; ld.param.u32 %s, [s + 4];
    setp.eq.f32 %p, %f, 0f3FC00000; @!%p trap;
    setp.eq.s32 %p, %n, -7; @!%p trap;
    setp.eq.u32 %p, %s, 9; @!%p trap;
    st.global.u32 [%x], %n;
    ret;
}
"""


def test_scalars_arrive_as_they_were(dump: Path) -> None:
    """The kernel traps unless f is 1.5, n is -7, and the second word of s is 9."""
    k = load_ptx(FOREIGN, block=(32, 2))
    s = np.array([1, 9], np.uint32).tobytes()
    launch = bound(k, grid=3, x=np.zeros((2, 3), np.int32), n=-7, f=1.5, s=s)
    (command,) = commands(launch)
    words = shlex.split(command)
    assert [w for w in words if "=" in w] == [
        "x=s32[2,3]:ints", f"n={2**32 - 7}", "f=1.5", "s=bytes:0100000009000000",
    ]  # fmt: skip
    assert "--grid 3x1x1 --block 32x2x1" in command
    (file,) = dump.iterdir()
    assert file.read_text() == FOREIGN
    result = replayed(launch)
    assert result.exit_code == 0, result.output
    assert "pass: k, grid 3x1x1" in result.stdout


def test_a_folder_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PTXGEN_DUMP", str(tmp_path / "file"))
    k = load_ptx(FOREIGN, block=(32,))
    (text,) = commands(bound(k, grid=1, x=np.zeros(4, np.int32), n=1, f=1.0, s=bytes(8)))
    assert "could not be written" in text
    assert "PTXGEN_DUMP" in text


def test_a_launch_is_remembered_without_its_arrays() -> None:
    k = load_ptx(FOREIGN, block=(32,))
    launch = bound(k, grid=1, x=np.zeros(4, np.int32), n=1, f=1.0, s=bytes(8))
    kept = BoundLaunch(device=launch.device, steps=launch.steps, metas=launch.metas)
    assert kept.refs == {}
    assert list(commands(kept)) == list(commands(launch))
