"""Every rule of a GEMM config: at its limit, one step beyond, and whether its cure cures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gemm_limits import LIMITS
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import ptxgen
from ptxgen.configs import slabs
from ptxgen.configs.base import from_text, options, spell
from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_rules import RULES
from ptxgen.configs.gemm_shape import Gemm
from ptxgen.errors import ConfigError, Violation
from ptxgen.isa.arch import SMEM_PER_CTA_BYTES
from ptxgen.layout.swizzle import largest_swizzle

pytestmark = pytest.mark.unit


def gemm(**fields: Any) -> Gemm:
    """A GEMM without a cluster unless told, so that no other rule comes into play."""
    problem = {name: fields.pop(name) for name in options(GemmProblem) if name in fields}
    return Gemm(GemmProblem(**problem), GemmConfig(**{"cluster": (1, 1), **fields}))


def broken(g: Gemm) -> dict[str, Violation]:
    """Violations by the field that they name."""
    return {v.field: v for v in g.check()}


@pytest.mark.parametrize("name", LIMITS)
def test_at_the_limit_and_beyond(name: str) -> None:
    at, beyond, field, words = LIMITS[name]
    assert gemm(**at).check() == ()
    violations = broken(gemm(**beyond))
    assert list(violations) == [field]
    for word in words:
        assert word in str(violations[field])


def test_every_rule_has_a_row() -> None:
    """Each rule of the table is broken by some row above, and every rule says what it is."""
    caught = {
        rule.name
        for _, beyond, _, _ in LIMITS.values()
        for rule in RULES
        if all(_holds(need, gemm(**beyond)) for need in rule.needs)
        and list(rule.check(gemm(**beyond)))
    }
    assert caught == {rule.name for rule in RULES}
    assert all(rule.text for rule in RULES)


def _holds(name: str, g: Gemm) -> bool:
    rule = next(rule for rule in RULES if rule.name == name)
    return all(_holds(need, g) for need in rule.needs) and not list(rule.check(g))


def test_needs_are_earlier_rules() -> None:
    seen: set[str] = set()
    for rule in RULES:
        assert set(rule.needs) <= seen
        seen.add(rule.name)


def test_all_violations_at_once() -> None:
    """Rules that need nothing of each other are all reported, in one error."""
    with pytest.raises(ConfigError) as caught:
        ptxgen.kernel("gemm", dtype="f32", tile=(100, 300, 60), cluster=(3, 1), stages=0,
                      consumers=7, wait_depth=5)  # fmt: skip
    fields = [v.field for v in caught.value.violations]
    assert fields == [
        "dtype", "tile_m", "tile_n", "cluster", "consumers", "wait_depth", "stages",
    ]  # fmt: skip
    assert f"7 of {len(RULES)} rules broken" in str(caught.value)


def test_sums_are_reported_beside_single_fields() -> None:
    """A bad wait depth does not hide that the accumulators do not fit."""
    g = gemm(tile=(256, 256, 64), wait_depth=3)
    assert set(broken(g)) == {"wait_depth", "consumer_registers"}


def test_the_message_as_a_whole() -> None:
    with pytest.raises(ConfigError) as caught:
        ptxgen.kernel("gemm", stages=5)
    assert str(caught.value) == (
        f"gemm config cannot run on sm_90a (1 of {len(RULES)} rules broken)\n"
        "  stages=5  needs 278,608 B of shared memory, the limit is 232,448 B\n"
        "      5 x (A 16,384 + B 32,768) + 4 x 8,192 D slabs + 5 x (full 8 + empty 8)\n"
        "      use stages<=4, or tile_n<=192"
    )


# ------------------------------------------------------------------ derived fields


@pytest.mark.parametrize(
    ("tile_m", "consumers"), [(64, 1), (128, 2), (192, 3), (256, 2), (320, 1), (384, 3)]
)
def test_consumers_are_derived(tile_m: int, consumers: int) -> None:
    """As many as share the 64-row blocks evenly."""
    assert gemm(tile=(tile_m, 64, 64)).consumers == consumers


@pytest.mark.parametrize("tile", [(64, 8, 64), (64, 64, 64), (128, 256, 64), (256, 128, 128)])
@pytest.mark.parametrize("out_dtype", ["auto", "f32"])
def test_max_stages_is_the_most_that_fits(tile: tuple[int, int, int], out_dtype: str) -> None:
    g = gemm(tile=tile, stages="max", out_dtype=out_dtype)
    assert g.check() == ()
    assert g.smem.total <= SMEM_PER_CTA_BYTES < g.smem_with(g.stages + 1).total
    assert g.resolved().stages == g.stages
    assert gemm(tile=tile, stages=g.stages + 1, out_dtype=out_dtype).check() != ()


@pytest.mark.parametrize(
    ("tile_n", "out_dtype", "store_n", "box_n", "swizzle"),
    [
        (256, "bf16", 64, 64, 128),  # whole 128-byte spans
        (256, "f32", 64, 32, 128),  # half as many columns a span
        (96, "bf16", 32, 32, 64),
        (72, "bf16", 72, 72, 0),  # nine 16-byte chunks: an odd number needs no swizzle
        (72, "f32", 24, 8, 32),
        (8, "bf16", 8, 8, 0),
        (200, "bf16", 40, 40, 0),
        (184, "bf16", 184, 184, 0),  # 23 chunks: nothing between one and all of them divides it
        (112, "bf16", 56, 56, 0),  # 14 chunks: half of them, not boxes of 32 bytes
        (88, "f32", 88, 8, 32),
    ],
)
def test_store_shape(tile_n: int, out_dtype: str, store_n: int, box_n: int, swizzle: int) -> None:
    g = gemm(tile=(64, tile_n, 64), out_dtype=out_dtype)
    assert (g.store_n, g.store_box[1], g.store_swizzle.span) == (store_n, box_n, swizzle)


@pytest.mark.parametrize("element_bytes", [1, 2, 4])
@pytest.mark.parametrize("columns", range(16, 257, 16))
def test_rows_of_a_slab_meet_no_bank_twice(columns: int, element_bytes: int) -> None:
    """Eight rows, 16 bytes each, of every slab and every chunk of a row: 128 bytes, all banks."""
    for width in slabs.legal(columns, element_bytes):
        box = slabs.box_columns(width, element_bytes)
        assert width % box == 0
        row_bytes = box * element_bytes
        swizzle = largest_swizzle(row_bytes)
        for chunk in range(row_bytes // 16):
            at = swizzle.apply(np.arange(8) * row_bytes + 16 * chunk)
            assert len(set(at % 128)) == 8


@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("tile_k", [64, 128])
def test_expected_bytes_are_those_of_the_boxes(cluster: tuple[int, int], tile_k: int) -> None:
    """A whole stage of A and B, whoever loads which part of it."""
    g = gemm(tile=(128, 256, tile_k), stages=2, cluster=cluster)
    assert g.barriers.tx_bytes == g.a.bytes + g.b.bytes == (128 + 256) * tile_k * 2


# ------------------------------------------------------------------ cures cure

PARSERS = {
    name: field.metadata["parse"]
    for kind in (GemmProblem, GemmConfig)
    for name, field in options(kind).items()
}
SUGGESTION = re.compile(r"(\w+)(<=|=)(\d+(?:x\d+|\.\.\d+)?|[a-z]\w*)")


def suggestions(violation: Violation) -> Iterator[dict[str, Any]]:
    """Every value that a fix names, as a field of the config; tile_n is a part of tile."""
    for name, _, text in SUGGESTION.findall(violation.fix):
        for value in text.split("..") if ".." in text else [text]:
            yield {name: value}


def applied(g: Gemm, change: dict[str, Any]) -> Gemm:
    ((name, text),) = change.items()
    if name.startswith("tile_"):
        tile = list(g.config.tile)
        tile["mnk".index(name[-1])] = int(text)
        # A slab that was chosen for another width is for the person to choose again.
        config = replace(g.config, tile=tuple(tile), store_n=0, store_slabs=0)
    elif name in options(GemmProblem):
        return Gemm(replace(g.problem, **{name: PARSERS[name](text)}), g.config)
    else:
        config = replace(g.config, **{name: PARSERS[name](text)})
    return Gemm(g.problem, config)


extents = st.tuples(
    st.one_of(st.sampled_from([64, 128, 192, 256, 320, 384]), st.integers(0, 500)),
    st.one_of(st.integers(1, 32).map(lambda n: 8 * n), st.integers(0, 300)),
    st.one_of(st.sampled_from([64, 128, 192, 256]), st.integers(0, 300)),
)
extents = st.one_of(extents, extents.map(lambda tile: tile[:2]))
configs = st.builds(
    GemmConfig,
    tile=extents,
    stages=st.one_of(st.just("max"), st.integers(-1, 12)),
    cluster=st.one_of(
        st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2)]),
        st.tuples(st.integers(0, 3), st.integers(0, 3)),
    ),
    split_k=st.sampled_from([1, 1, 1, 2, 4, 8, 3]),
    swap_ab=st.sampled_from([0, 0, 1, 2]),
    consumers=st.integers(-1, 4),
    wait_depth=st.integers(-1, 2),
    load=st.sampled_from(["tma", "tma", "cp_async", "ld"]),
    store=st.sampled_from(["tma", "tma", "direct"]),
    store_n=st.sampled_from([0, 0, 0, -8, 8, 24, 64, 96, 128]),
    store_slabs=st.sampled_from([0, 0, 0, -1, 1, 2, 3, 4]),
    schedule=st.sampled_from(["cooperative", "cooperative", "pingpong", "stream_k"]),
    a_source=st.sampled_from(["smem", "smem", "registers"]),
    l2_promotion=st.sampled_from([128, 0, 256, 32, -1]),
)
problems = st.builds(
    GemmProblem,
    dtype=st.sampled_from(["bf16", "f16", "f16", "tf32", "e4m3", "e5m2", "s8", "u8", "f32"]),
    b_dtype=st.sampled_from(["same", "same", "e4m3", "u8"]),
    acc_dtype=st.sampled_from(["auto", "auto", "f32", "f16", "s32"]),
    out_dtype=st.sampled_from(["auto", "auto", "bf16", "f16", "f32", "e4m3", "s32", "s8"]),
    a_major=st.sampled_from(["k", "k", "mn"]),
    b_major=st.sampled_from(["k", "k", "mn"]),
    batched=st.sampled_from([0, 0, 1, 2]),
)


@given(problems, configs)
@settings(max_examples=300)
def test_a_config_is_legal_or_every_named_cure_cures_its_rule(
    problem: GemmProblem, config: GemmConfig
) -> None:
    g = Gemm(problem, config)
    violations = g.check()
    if not violations:
        assert g.smem.fits()
        assert g.registers.violations() == ()
        assert g.stages > config.wait_depth
        assert g.resolved() == Gemm(problem, g.resolved()).resolved()
        return
    for rule in RULES:
        for violation in rule.check(g) if all(_holds(n, g) for n in rule.needs) else ():
            assert violation in violations
            for change in suggestions(violation):
                cured = applied(g, change)
                assert not [v for v in rule.check(cured) if v.field == violation.field], change


@given(configs)
@settings(max_examples=100)
def test_references_spell_configs(config: GemmConfig) -> None:
    """Text of a field reads back as the same value."""
    assume(min(*config.tile, *config.cluster) >= 0)
    texts = {name: spell(getattr(config, name)) for name in options(GemmConfig)}
    assert from_text(GemmConfig, texts) == config
