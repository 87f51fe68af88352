"""The proof kernels: clean under 5 x 3 schedules, and no mutant of a fixed sample goes unnoticed.

`make prove` does the same with 50 x 3 schedules and every mutant, and writes PROOFS.md.
"""

from __future__ import annotations

import pytest

from ptxgen.app.prove import Options, Task, prove
from ptxgen.app.subjects import CatalogueSubject
from ptxgen.kernels import gemm_proof
from ptxgen.kernels.proofs import PROOFS
from ptxgen.kernels.registry import FAMILIES

pytestmark = pytest.mark.emu

CI = Options(seeds=5, mutant_seeds=1, sample=25)
# Copies of 4 bytes and less are many instructions: a launch takes three times as long as others do.
SLOW = Options(seeds=5, mutant_seeds=1, sample=10)


# Rows that ldmatrix has read are overwritten by TMA behind a barrier alone, as most kernels do it.
DISPUTED = ("proxy-fence-read",)


@pytest.mark.parametrize("reference", PROOFS)
def test_a_kernel_is_clean_and_its_mutants_are_noticed(reference: str) -> None:
    """Three mutants of each kernel are harmless (they hand over fewer registers); the evenly spread
    sample may hold them all."""
    options = SLOW if "load=" in reference else CI
    proof = prove(Task(name=reference), options)
    disputed = DISPUTED if "a_source=registers" in reference else ()
    assert (proof.verdict, proof.findings, proof.advice) == ("pass", (), disputed)
    assert proof.runs == 15
    assert [x for x in proof.left if x.fate == "survived"] == []
    assert 1 <= proof.mutants <= options.sample
    assert proof.killed >= proof.mutants - 3


def test_every_family_has_a_proof_kernel() -> None:
    assert {reference.partition(":")[0] for reference in PROOFS} == set(FAMILIES)


@pytest.mark.parametrize("reference", gemm_proof.PROOFS)
def test_the_problem_wraps_everything(reference: str) -> None:
    """More K blocks than stages, and two tiles for each CTA that is there (two for each consumer
    where they take turns, three for two CTAs where they share the last)."""
    subject = CatalogueSubject(reference)
    source, shape = subject.kernel.source, subject.shape
    config = source.resolved
    (tile_m, tile_n, tile_k), stages = config.tile, config.stages
    if config.swap_ab:
        tile_m, tile_n = tile_n, tile_m
    tile_n //= source.problem.halves
    assert isinstance(stages, int)
    assert shape.k // tile_k // config.split_k == stages + 2
    tiles = (shape.m // tile_m) * (shape.n // tile_n) * config.split_k
    a_cta = {"pingpong": 4, "stream_k": 1.5}.get(config.schedule, 2)
    assert tiles == a_cta * shape.sms
