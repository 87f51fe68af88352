"""The questions to the hardware: their kernels assemble, the emulator answers them as modelled, and
what a script concludes from known observations is right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ptxgen.layout.fragments import wgmma_d
from ptxgen.layout.smem_desc import k_major

FOLDER = Path(__file__).parents[2] / "examples" / "microbench"
PLAIN = ("tma_store_extent", "tma_transaction_bytes", "tf32_operands", "descriptor_roles")


@pytest.mark.emu
def test_every_answer_is_recorded_and_the_emulator_gives_the_modelled_ones(tmp_path: Path) -> None:
    """`latency` is what only a GPU can tell; a start inside a pattern is refused."""
    out = tmp_path / "record.jsonl"
    asked = [*PLAIN, "descriptor_base_offset", "latency"]
    subprocess.run(
        [sys.executable, str(FOLDER / "run_all.py"), "--out", str(out), "--backend", "emulator",
         "--only", *asked],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    rows = {row["fact"]: row for row in map(json.loads, out.read_text("utf-8").splitlines())}
    assert sorted(rows) == sorted(asked)
    assert "at most 15 bytes" in rows["tma_store_extent"]["finding"]
    assert rows["tma_transaction_bytes"]["finding"].startswith("10 of 10 boxes count their full")
    assert "truncated" in rows["tf32_operands"]["finding"]
    assert rows["descriptor_roles"]["finding"].startswith("18 of 18")
    assert "refuses" in rows["descriptor_base_offset"]["finding"]
    assert rows["latency"]["backend"] == "none"


@pytest.mark.asm
@pytest.mark.parametrize("counts", [(24, 232, 232), (24, 240, 248)])
def test_the_pool_is_entered_with_168_registers(script, counts: tuple[int, int, int]) -> None:
    """All the sums that the script names are against 3 x 168."""
    report = script("lab").kernel("register_pool", counts=list(counts)).assembly.report
    assert not report.losses
    assert "168 registers" in str(report)


@pytest.mark.asm
def test_kernels_that_only_a_gpu_runs_assemble(script) -> None:
    lab, latency, waits = script("lab"), script("latency"), script("try_wait")
    kernels = [
        lab.kernel("latency", hops=latency.HOPS, ways=list(latency.WAYS.values())),
        lab.kernel("try_wait", hints=list(waits.HINTS), repeats=waits.REPEATS),
        script("l2_feed").text(rounds=2),
        script("wgmma_ceiling").text(rounds=2),
    ]
    assert [k.assembly.report.losses for k in kernels] == [()] * 4


@pytest.mark.unit
def test_a_base_offset_rule_is_recognised(script) -> None:
    """Maps made by one rule are explained by that rule, and not by the swizzle of the address."""
    base_offset = script("descriptor_base_offset")
    seen = {}
    for swizzle in base_offset.SWIZZLED:
        offset = base_offset.linear(swizzle, False, 16, 8 * swizzle)
        late, base = np.arange(8)[:, None, None, None], np.arange(8)[None, :, None, None]
        address = base_offset.START + 128 * late + offset
        bits = (address - 128 * base) >> 3 & base_offset.MASKS[swizzle]
        seen[f"swizzle.{swizzle}"] = address ^ bits
    words, numbers = base_offset.finding(seen)
    assert "swizzle 128: of address - 128 base;" in words
    (counts,) = (v for k, v in numbers["swizzle 128"].items() if "explained" in k)
    assert counts["address"] == 8, "equal only where the base offset is 0"


@pytest.mark.unit
def test_a_model_of_sums_is_found_again(script) -> None:
    """Data made by a hypothesis: it, or one that cannot be told from it, explains all of them."""
    sums = script("sum_model")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 600, 32)).astype(np.float16).astype(np.float64)
    c = rng.standard_normal(600).astype(np.float32)
    made = sums.Model(fraction=13, group=32)
    d = sums.evaluate(made, a, b, c, np.float32).astype(np.float32)
    share, found = sums.best(a, b, c, d)[0]
    assert share == 1.0
    assert (found.fraction, found.group, found.cut) == (13, 32, "zero")


@pytest.mark.unit
def test_facts_leave_the_rest_of_the_document_alone(script) -> None:
    facts = script("facts")
    row = {"fact": "x", "question": "Why?", "finding": "42", "script": "a/x.py",
           "device": "H200", "driver": "580", "date": "2026-01-01T00:00:00"}  # fmt: skip
    once = facts.placed("# Facts\n\nby hand\n", facts.render([row]))
    assert once.startswith("# Facts\n\nby hand\n")
    assert "### x" in once
    again = facts.placed(once + "\nafter\n", facts.render([{**row, "finding": "43"}]))
    assert "43." in again
    assert "42." not in again
    assert again.endswith("\nafter\n")
    with pytest.raises(ValueError, match="without"):
        facts.placed(facts.BEGIN, "")


@pytest.mark.emu
def test_the_ceiling_multiplies_and_begins_its_sums_anew(script) -> None:
    """Twice the same round: twice the sums, and once where they begin anew."""
    ceiling = script("wgmma_ceiling")
    ceiling.SMS = 1
    lab = script("lab").Lab("emulator")
    stages, rows, groups = ceiling.STAGES, 64, 2
    memory = ceiling.operands().view(ml_dtypes.bfloat16).reshape(stages, -1).astype(np.float64)
    m, n, k = np.arange(groups * rows), np.arange(8), np.arange(64)
    at = k_major("bf16", 128, mn=256, k=64).address
    a = memory[:, at(m[:, None], k) // 2]  # of the warpgroup, then of the other one
    b = memory[:, ceiling.A_BYTES // 2 + at(n[:, None], k) // 2]
    product = np.einsum("smk,snk->mn", a, b)
    thread = np.arange(groups * 128)
    row, column = wgmma_d(thread % 128, np.zeros(1, int))
    expected = product[row + rows * (thread // 128), column]
    for depth, times in ((8192, 2), (ceiling.K_ROUND, 1)):
        ceiling.DEPTH = depth
        sums = ceiling.observe(lab, rounds=1)["sums"][0]
        np.testing.assert_allclose(sums, times * expected, rtol=1e-4, atol=1e-3)
