"""`ptxgen check`: foreign PTX from the command line, its three verdicts and what they print."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import readme
from typer.testing import CliRunner, Result

from ptxgen.app.check_args import Argument, parse_arguments
from ptxgen.app.cli import app
from ptxgen.errors import ArgumentError

pytestmark = pytest.mark.emu

FOREIGN = Path(__file__).parents[1] / "foreign"
SUM = ("check", str(FOREIGN / "block_sum.ptx"), "--entry", "block_sum", "--grid", "4",
       "--block", "256", "--arg", "out=f32[4]:nan")  # fmt: skip
Run = Callable[..., Result]

# One warp waits for a barrier that nobody completes, in a kernel with parameter names of its own.
HANGS = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry waits(.param .u64 x)
{
    .shared .align 8 .b64 bar;
    .reg .pred %p;
    .reg .b32 %a;
    mov.u32 %a, bar;
    mbarrier.init.shared::cta.b64 [%a], 2;
    WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%a], 0;
    @!%p bra WAIT;
    ret;
}
"""


@pytest.fixture
def run() -> Run:
    return lambda *words: CliRunner().invoke(app, list(words))


def made(*texts: str, seed: int = 0) -> tuple[Argument, ...]:
    return parse_arguments(texts, seed)


def test_a_clean_run_shows_what_it_changed(run: Run) -> None:
    result = run(*SUM[:-2], "--arg", "x=f32[1000]:arange", *SUM[-2:], "--arg", "n=1000")
    assert result.exit_code == 0, result.output
    first, *rest = result.stdout.splitlines()
    assert first == "pass: block_sum, grid 4, block 256x1x1, cluster 1x1x1"
    sums = np.pad(np.arange(1000), (0, 24)).reshape(4, 256).sum(1)
    assert rest[-1].split() == ["out", "f32", "[4]", *map(str, sums)]


def test_a_finding_names_the_argument_the_line_and_the_cure(run: Run) -> None:
    words = (*SUM[:-2], "--arg", "x=f32[1000]", *SUM[-2:], "--arg", "n=1001")  # n is one too many
    result = run(*words)
    assert result.exit_code == 1
    assert "error out-of-bounds" in result.stdout
    assert "past the end of x\n" in result.stdout
    assert "ld.global.f32" in result.stdout
    assert "cure" in result.stdout
    answer = json.loads(run(*words, "--json").stdout)
    assert (answer["ok"], answer["verdict"]) == (False, "fail")
    (finding,) = answer["findings"]
    assert finding["code"] == "out-of-bounds"
    assert finding["ptx"][0].startswith("ld.global.f32")


def test_what_cannot_be_run_exits_with_2(run: Run) -> None:
    result = run("check", str(FOREIGN / "wmma_tile.ptx"), "--arg", "a=f16[16,16]",
                 "--arg", "b=f16[16,16]", "--arg", "d=f32[16,16]:nan")  # fmt: skip
    assert result.exit_code == 2
    assert result.stdout.startswith("unsupported: wmma_tile")
    assert "wmma.load.a.sync" in result.stdout.splitlines()[2]


def test_a_hang_is_a_finding(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "waits.ptx"
    path.write_text(HANGS)
    result = run("check", str(path), "--block", "1", "--arg", "x=0")
    assert result.exit_code == 1
    assert "error deadlock" in result.stdout
    assert "line 12" in result.stdout  # the try_wait


def test_a_tensor_map_and_a_saved_result(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    result = run("check", str(FOREIGN / "tma_copy.ptx"), "--grid", "2x2", "--block", "128",
                 "--arg", "a=tmap(f32[48,128],box=32x64):arange",
                 "--arg", "b=tmap(f32[48,128],box=32x64):nan", "--save", str(path))  # fmt: skip
    assert result.exit_code == 0, result.output
    with np.load(path) as saved:
        a, b = saved["a"], saved["b"]
    assert np.array_equal(b, np.arange(48 * 128, dtype=np.float32).reshape(48, 128) + 1)
    assert np.array_equal(a + 1, b)


def test_arguments_go_by_name_where_the_ptx_has_the_names(run: Run) -> None:
    words = ["check", str(FOREIGN / "block_sum.ptx"), "--grid", "4"]
    for argument in ("block_sum_param_2=1000", "block_sum_param_1=f32[4]:nan",
                     "block_sum_param_0=f32[1000]:ones"):  # fmt: skip
        words += ["--arg", argument]
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert "256 256 256 232" in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--arg", "n=1000"), "must be 3: block_sum_param_0"),  # two are missing
        (("--grid", "4xx"), "--grid"),
        (("--grid", "1x2x3x4"), "1 to 3 extents"),
        (("--block", "2048"), "1..1,024 threads"),
        (("--entry", "nothing"), "must name one of block_sum"),
        (("--arg", "n"), "NAME=VALUE"),
    ],
)
def test_what_is_typed_wrong_is_named(run: Run, words: tuple[str, ...], said: str) -> None:
    given = [f"--arg={a}" for a in ("x=f32[1000]", "out=f32[4]:nan", "n=1000")]
    given = [] if words == ("--arg", "n=1000") else given
    result = run("check", str(FOREIGN / "block_sum.ptx"), *given, *words)
    assert result.exit_code == 1
    assert said in result.stderr


SMALL = "gemm:tile=64x64x64,stages=2,cluster=1x1"  # compiles fast; two laps of the ring


def test_a_kernel_of_the_catalogue_passes_under_every_mode(run: Run) -> None:
    result = run("check", SMALL, "--seeds", "2")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"pass: {SMALL}, 6 schedules")  # 2 seeds x 3 modes


def test_mutants_are_killed_or_explained(run: Run) -> None:
    result = run("check", SMALL, "--mutate", "--sample", "12", "--json")
    assert result.exit_code == 0, result.output
    marks = json.loads(result.stdout)["mutants"]
    assert marks["survived"] == 0
    assert marks["killed"] >= 9
    assert all(m["by"] for m in marks["each"])  # the code that killed it, or the rule


def test_what_is_no_schedule_is_refused(run: Run) -> None:
    result = run("check", SMALL, "--replay", "soon:random:1")
    assert result.exit_code == 1
    assert "MODE:TURNS:SEED" in result.stderr


def test_the_example_of_the_readme_prints_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOREIGN.parents[1])
    ((code, shown),) = [pair for pair in readme.python_with_output() if "load_ptx" in pair[0]]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec("import numpy as np, ptxgen, runtime\nfrom pathlib import Path\n" + code, {})
    assert printed.getvalue() == shown


def test_contents_are_those_asked_for(tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", np.arange(6, dtype=ml_dtypes.bfloat16).reshape(2, 3))
    file = f"bf16[2,3]:{tmp_path}/b.npy"
    arrays = [a.array for a in made("a=s8[2,2]:arange", "b=" + file, "c=bf16[3]:nan", "d=e4m3[9]",
                                    "e=u64[2x2]:ones", "f=s32[50]:ints")]  # fmt: skip
    assert [(x.dtype.name, x.shape) for x in arrays if x is not None] == [
        ("int8", (2, 2)), ("bfloat16", (2, 3)), ("bfloat16", (3,)), ("float8_e4m3fn", (9,)),
        ("uint64", (2, 2)), ("int32", (50,)),
    ]  # fmt: skip
    assert np.array_equal(arrays[1].astype(int), [[0, 1, 2], [3, 4, 5]])
    assert np.isnan(arrays[2].astype(float)).all()
    assert abs(arrays[5]).max() <= 8


def test_random_contents_depend_on_seed_and_name_alone() -> None:
    (a,), (again, b), (other,) = (
        made("a=f32[9]"),
        made("a=f32[9]", "b=f32[9]"),
        made("a=f32[9]", seed=1),
    )
    assert np.array_equal(a.array, again.array)
    assert not np.array_equal(a.array, b.array)
    assert not np.array_equal(a.array, other.array)


@pytest.mark.parametrize(("text", "value"), [("7", 7), ("0x10", 16), ("-1", -1), ("0.5", 0.5)])
def test_numbers(text: str, value: float) -> None:
    (argument,) = made(f"n={text}")
    assert argument.value == value
    assert type(argument.value) is type(value)


def test_bytes_and_map_options() -> None:
    from runtime.tensor_maps import TensorMap

    raw, mapped = made(
        "p=bytes:0aff", "t=tmap(bf16[64,128],box=32x64,swizzle=128,l2=256,fill=nan):ones"
    )
    assert raw.value == b"\x0a\xff"
    assert isinstance(mapped.value, TensorMap)
    assert (mapped.value.box, mapped.value.swizzle, mapped.value.l2) == ((32, 64), 128, 256)
    assert mapped.value.array is mapped.array


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x=f3[4]", "unknown dtype 'f3'"),
        ("x=u32[4]:nan", "has no NaN"),
        ("x=f32[4]:fives", "contents must be random"),
        ("x=hello", "must be a number"),
        ("x=tmap(f32[8,8]):ones", "needs box="),
        ("x=tmap(f32[8,8],bux=8x8):ones", "no option 'bux'"),
        ("x=bytes:0g", "non-hexadecimal"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        made(text)
