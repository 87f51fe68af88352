"""Kernel references: NAME[:key=value,...], read, printed, and refused with the cure."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptxgen
from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_shape import Gemm
from ptxgen.errors import ConfigError, KernelReferenceError
from ptxgen.kernels import gemm, registry

pytestmark = pytest.mark.unit

problems = st.builds(
    GemmProblem,
    dtype=st.sampled_from(["bf16", "f16"]),
    out_dtype=st.sampled_from(["auto", "bf16", "f16", "f32"]),
    a_major=st.sampled_from(["k", "mn"]),
    batched=st.sampled_from([0, 1]),
)
configs = st.builds(
    GemmConfig,
    tile=st.sampled_from([(64, 16), (128, 256), (192, 128, 64), (64, 80, 128)]),
    stages=st.sampled_from(["max", 2, 3]),
    cluster=st.sampled_from([(1, 1), (1, 2)]),
    wait_depth=st.sampled_from([0, 1]),
)


@given(problems, configs)
@settings(max_examples=25)
def test_a_printed_reference_reads_as_the_same_kernel(
    problem: GemmProblem, config: GemmConfig
) -> None:
    source = gemm.build(Gemm(problem, config))
    name, values = registry.parse_reference(registry.reference(source))
    again = registry.build(name, values)
    assert (again.problem, again.config) == (problem, config)
    assert again.rendered == source.rendered


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("gemm", "gemm"),
        ("gemm:", "gemm"),
        ("gemm:tile=128x256,stages=4", "gemm"),  # what is at its default is not printed
        ("gemm:out_dtype=same,batched=0", "gemm"),
        ("gemm:tile=128x256x64", "gemm:tile=128x256x64"),  # the same kernel, more said
        (" gemm : stages = max , tile=64X64x64 ", "gemm:tile=64x64x64,stages=max"),
        ("gemm:dtype=float16,out_dtype=fp32,stages=2", "gemm:dtype=f16,out_dtype=f32,stages=2"),
    ],
)
def test_spellings(text: str, printed: str) -> None:
    assert ptxgen.kernel_from(text).reference == printed


@pytest.mark.parametrize(
    "fields",
    [
        {"tile": (64, 128, 64), "cluster": (1, 2)},
        {"tile": [64, 128, 64], "cluster": [1, 2]},
        {"tile": "64x128x64", "cluster": "1x2"},
    ],
    ids=["tuples", "lists", "text"],
)
def test_python_values_and_text_name_the_same_kernel(fields: dict[str, object]) -> None:
    assert ptxgen.kernel("gemm", **fields).reference == "gemm:tile=64x128x64,cluster=1x2"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gem", ["no kernel 'gem'", "kernels: gemm"]),
        ("", ["no kernel ''"]),
        ("gemm:stage=4", ["no field 'stage'", "did you mean stages?", "wait_depth"]),
        ("gemm:colour=red", ["no field 'colour'", "Fields: dtype"]),
        ("gemm:tile", ["'tile' is not key=value", "gemm:tile=128x256x64,stages=4"]),
        ("gemm:tile=", ["is not key=value"]),
        ("gemm:=4", ["is not key=value"]),
        ("gemm:stages=3,stages=4", ["stages is given twice"]),
        ("gemm:tile=128", ["tile=128", "2 or 3 positive integers joined by x", "legal: M"]),
        ("gemm:tile=128x-8x64", ["2 or 3 positive integers"]),
        ("gemm:tile=1²8x64x64", ["2 or 3 positive integers"]),
        ("gemm:a_major=n", ["want k or mn"]),
        ("gemm:stages=many", ["an integer or max"]),
        ("gemm:stages=4.0", ["an integer or max"]),
        ("gemm:dtype=fp4", ["unknown dtype 'fp4'", "legal: bf16, f16, tf32"]),
    ],
)
def test_what_cannot_be_read_says_how_it_is_written(text: str, words: list[str]) -> None:
    with pytest.raises(KernelReferenceError) as caught:
        ptxgen.kernel_from(text)
    for word in words:
        assert word in str(caught.value)


def test_a_type_that_exists_but_does_not_fit_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="must be one of bf16, f16, tf32"):
        ptxgen.kernel_from("gemm:dtype=f64")


@pytest.mark.parametrize("value", [True, None, 4.0, (4, 4)])
def test_python_values_of_the_wrong_type(value: object) -> None:
    with pytest.raises(KernelReferenceError, match="stages="):
        ptxgen.kernel("gemm", stages=value)
