"""Scores are honest: what counts as killed, what as equivalent, and what as neither."""

from __future__ import annotations

import pytest

from ptxgen.app.equivalence import judge, pool_sum
from ptxgen.app.mutation import sampled, score
from ptxgen.app.subjects import CatalogueSubject
from ptxgen.app.sweep import schedules
from ptxgen.errors import HazardError
from ptxgen.ptx.mutate import Mutant, mutants
from runtime.emulator.report import RegisterUse

pytestmark = pytest.mark.asm

SMALL = "gemm:tile=128x64,cluster=1x1"
FITS = RegisterUse(168, (40,) * 4 + (232,) * 8, (1,) * 12)


@pytest.fixture(scope="module")
def subject() -> CatalogueSubject:
    return CatalogueSubject(SMALL)


def changed(subject: CatalogueSubject, old: str, new: str, operator: str = "setmaxnreg") -> Mutant:
    assert old in subject.ptx
    source = subject.ptx.replace(old, new, 1)
    return Mutant(operator=operator, line=1, was=old, now=new, source=source)


def test_a_pool_sum_names_all_numbers() -> None:
    assert pool_sum(FITS) == (
        "128 x 40 + 256 x 232 = 64,512 registers of the 64,512 that 384 threads have at entry, "
        "168 each"
    )


@pytest.mark.parametrize(
    "use",
    [
        RegisterUse(168, (48,) * 4 + (232,) * 8, (1,) * 12),  # 1,024 too many
        RegisterUse(168, (40,) * 4 + (232,) * 8, (2,) + (1,) * 11),  # order could matter
    ],
)
def test_no_rule_covers_what_may_wait(subject: CatalogueSubject, use: RegisterUse) -> None:
    mutant = changed(subject, "setmaxnreg.dec.sync.aligned.u32 40;", "")
    assert judge(subject.ptx, mutant, [FITS, use]).fate == "survived"
    assert judge(subject.ptx, mutant, []).fate == "survived"


def test_what_ptxas_refuses_or_gives_up_is_killed(subject: CatalogueSubject) -> None:
    inc = "setmaxnreg.inc.sync.aligned.u32 232;"
    refused = changed(subject, inc, "setmaxnreg.inc.sync.aligned.u32 236;")
    assert judge(subject.ptx, refused, [FITS]).by == "ptxas refuses it"
    large = CatalogueSubject("gemm")  # 128 accumulators a thread: 136 registers are too few
    tight = changed(large, inc, "setmaxnreg.inc.sync.aligned.u32 136;")
    assert judge(large.ptx, tight, [FITS]).by == "ptxas: C7507"


def test_other_survivors_have_no_excuse(subject: CatalogueSubject) -> None:
    fence = changed(subject, "fence.proxy.async.shared::cta;", "", "drop fence")
    assert judge(subject.ptx, fence, [FITS]).fate == "survived"


def test_a_harmless_change_survives_without_a_rule(subject: CatalogueSubject) -> None:
    """A label less is no fault: nobody notices, and nobody claims to know why."""
    same = changed(subject, "griddepcontrol.launch_dependents;", "", "drop launch_dependents")
    marks = score(subject, [same], schedules(1))
    assert [v.fate for v in marks.verdicts] == ["survived"]
    assert marks.percent == marks.raw_percent == 0.0


def test_advice_counts_and_is_marked(subject: CatalogueSubject) -> None:
    fence = changed(subject, "fence.mbarrier_init.release.cluster;", "", "drop fence")
    (verdict,) = score(subject, [fence], schedules(1)).verdicts
    assert (verdict.fate, verdict.by, verdict.advice) == (
        "killed", "mbarrier-init-proxy (advice)", True,
    )  # fmt: skip


def test_what_is_not_executed_is_not_noticed(subject: CatalogueSubject) -> None:
    wait = "griddepcontrol.wait;"
    foreign = changed(subject, wait, f"{wait} fence.proxy.nothing;", "odd")
    (verdict,) = score(subject, [foreign], schedules(1)).verdicts
    assert verdict.fate == "survived"
    assert verdict.by


def test_a_program_that_fails_has_no_score(subject: CatalogueSubject) -> None:
    class Broken(CatalogueSubject):
        @property
        def ptx(self) -> str:
            return subject.ptx.replace("griddepcontrol.wait;", "")

    with pytest.raises(HazardError, match="grid-dependency"):
        score(Broken(SMALL), [], schedules(1))


def test_epilogues_get_their_arguments() -> None:
    """A launch that is refused is no finding: it is raised."""
    reference = "gemm:tile=128x64,cluster=1x1,alpha=1,beta=1,bias=row,activation=relu"
    kernel = CatalogueSubject(reference)
    assert score(kernel, [], schedules(1)).percent == 100.0


def test_samples_are_fixed_and_spread() -> None:
    all_of_them = tuple(range(100))
    assert sampled(all_of_them, 4) == (0, 25, 50, 75)  # type: ignore[comparison-overlap,arg-type]
    assert sampled(all_of_them, 0) == all_of_them  # type: ignore[comparison-overlap,arg-type]


def test_mutants_of_every_kind_assemble(subject: CatalogueSubject) -> None:
    """What ptxas would refuse is no way of breaking a program."""
    from ptxgen.toolchain.assemble import assemble

    wide = CatalogueSubject("gemm:tile=128x64,cluster=2x2,a_major=mn,b_major=mn")
    kinds = {m.operator: m for m in mutants(wide.ptx, wide.entry)}
    assert len(kinds) >= 30
    for mutant in kinds.values():
        assemble(mutant.source)
