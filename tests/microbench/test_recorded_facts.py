"""The emulator observes what the H200 did, bit for bit: digests of whole arrays, and verdicts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from ptxgen.layout.tensor_map import TensorMapSpec, encode
from runtime.emulator.backend import EmulatorBackend
from runtime.emulator.tensor_map import decode

pytestmark = pytest.mark.emu

EQUAL = (
    "tma_store_extent", "tma_transaction_bytes", "tf32_operands", "descriptor_roles",
    "sparse_metadata", "accumulation", "accumulation_forms", "float_rules",
)  # fmt: skip
# Approximations: their bounds are held by the ISA table.
APPROXIMATE = {"rsqrt.approx.f32", "tanh.approx.f32", "sin.approx.f32"}


@pytest.mark.parametrize("fact", EQUAL)
def test_the_emulator_observes_the_same_bits(script, record, fact: str) -> None:
    lab = script("lab")
    seen = script(fact).observe(lab.Lab("emulator"))
    there = record[fact]["digests"]
    here = lab.digests(seen)
    assert there
    different = {name for name in there if there[name] != here[name]}
    assert different <= APPROXIMATE, different


def test_the_emulator_takes_the_same_coordinates(script, record) -> None:
    """What runs on the H200 runs here, and what ends there with an illegal instruction is found."""
    probes = script("tma_coordinates")
    there = record["tma_coordinates"]["numbers"]
    assert record["tma_coordinates"]["backend"] == "cuda"
    asked = [*probes.INNER, *probes.OUTER]
    here = {f"{probes._name(p)} of {p[1]} B": probes.emulate(p) == "runs" for p in asked}
    assert here == {name: verdict == "runs" for name, verdict in there.items()}
    assert {True, False} == set(here.values())


def test_element_strides_count_as_recorded(script, record) -> None:
    """Rounded up, and those of the innermost axis ignored."""
    asked = script("tma_element_strides")
    there = record["tma_element_strides"]["numbers"]
    assert len(there) == len(asked.STRIDES)
    for strides in asked.STRIDES:
        spec = TensorMapSpec(
            dtype="u32", address=0, shape=(asked.ROWS, asked.COLUMNS), box=asked.BOX,
            strides=(4 * asked.COLUMNS, 4), element_strides=strides,
        )  # fmt: skip
        counted = there[f"element strides {strides}"]["counted"]
        assert spec.box_bytes == counted
        assert decode(encode(spec)).box_bytes == counted


@pytest.mark.parametrize("swizzle", [128, 64, 32])
def test_base_offsets_move_the_pattern(script, record, swizzle: int) -> None:
    """All 64 starts and base offsets. A start inside the pattern without a base offset is refused
    here; there the H200 is known to take the bits of the address."""
    asked, lab = script("descriptor_base_offset"), script("lab")
    emulator = lab.Lab("emulator")
    offset = asked.linear(swizzle, False, 16, 8 * swizzle)
    maps = np.zeros((8, 8, 64, 16), np.int32)
    for late, base in product(range(8), range(8)):
        start = asked.START + asked.STEP * late
        if base == 0 and late:
            address = start + offset
            maps[late, base] = address ^ (address >> 3 & asked.MASKS[swizzle])
            continue
        desc = asked.SmemDesc(
            start=start, sbo=8 * swizzle, base_offset=base, swizzle=asked.SWIZZLES[swizzle]
        )
        maps[late, base] = asked.read_map(emulator, desc, mn_major=False)
    name = f"swizzle.{swizzle}"
    assert lab.digests({name: maps})[name] == record["descriptor_base_offset"]["digests"][name]


def test_exact_sums_are_another_mode(script) -> None:
    """The default rounds an exact sum once; the recorded bits need the hardware's adder."""
    accumulation, lab = script("accumulation"), script("lab")
    op = accumulation.form("bf16.f32", n=accumulation.N)
    operands = accumulation.random(op)
    a, b, c = (np.asarray(x, np.float64) for x in operands)
    exact = lab.Lab("emulator")
    exact._emulator = EmulatorBackend(sums="exact")
    got = accumulation.product(exact, op, *operands)
    want = (a @ b.T + c).astype(np.float32)
    np.testing.assert_array_equal(got, want)
    hardware = accumulation.product(lab.Lab("emulator"), op, *operands)
    off = np.abs(hardware.astype(np.float64) - (a @ b.T + c))
    assert (hardware != want).mean() > 0.2, "truncation shows in a third of all sums"
    largest = np.abs(a[:, None] * b[None]).max(axis=2).clip(np.abs(c))
    assert (off <= 18 * 2.0**-24 * np.maximum(largest, np.abs(want))).all()
