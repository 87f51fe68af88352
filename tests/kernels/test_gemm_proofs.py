"""The proof kernels: clean under 5 x 3 schedules, and no mutant of a fixed sample goes unnoticed.

`make prove` does the same with 50 x 3 schedules and every mutant, and writes PROOFS.md.
"""

from __future__ import annotations

import pytest

from ptxgen.app.prove import Options, Task, prove
from ptxgen.app.subjects import CatalogueSubject
from ptxgen.kernels.gemm_proof import PROOFS

pytestmark = pytest.mark.emu

CI = Options(seeds=5, mutant_seeds=1, sample=25)


@pytest.mark.parametrize("reference", PROOFS)
def test_a_kernel_is_clean_and_its_mutants_are_noticed(reference: str) -> None:
    """Three mutants of each kernel are harmless (they hand over fewer registers); the evenly spread
    sample of 25 may hold them all."""
    proof = prove(Task(name=reference), CI)
    assert (proof.verdict, proof.findings, proof.advice) == ("pass", (), ())
    assert (proof.runs, proof.mutants) == (15, 25)
    assert [x for x in proof.left if x.fate == "survived"] == []
    assert proof.killed >= 22


@pytest.mark.parametrize("reference", PROOFS)
def test_the_problem_wraps_everything(reference: str) -> None:
    """More K blocks than stages, and two tiles for each CTA that is there."""
    subject = CatalogueSubject(reference)
    config, shape = subject.kernel.source.resolved, subject.shape
    (tile_m, tile_n, tile_k), stages = config.tile, config.stages
    if config.swap_ab:
        tile_m, tile_n = tile_n, tile_m
    assert isinstance(stages, int)
    assert shape.k // tile_k // config.split_k == stages + 2
    tiles = (shape.m // tile_m) * (shape.n // tile_n) * config.split_k
    assert tiles == 2 * shape.sms
