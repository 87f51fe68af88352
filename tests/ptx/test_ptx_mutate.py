"""Mutants of PTX: every kind that there should be, each one change, each still PTX."""

from __future__ import annotations

import pytest

from ptxgen.ptx import parse
from ptxgen.ptx.mutate import Mutant, mutants

pytestmark = pytest.mark.unit

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n"


def of(body: str) -> list[Mutant]:
    return list(mutants(f"{HEAD}{body}\n}}\n"))


# Instruction -> what is made of it: kind, and the text that takes its place.
CASES = {
    "fence.proxy.async.shared::cta;": {"drop fence": ""},
    "membar.gl;": {"drop fence": ""},
    "wgmma.fence.sync.aligned;": {"drop wgmma.fence": ""},
    "wgmma.commit_group.sync.aligned;": {"drop commit": ""},
    "wgmma.wait_group.sync.aligned 1;": {
        "drop wait": "", "wait depth + 1": "wgmma.wait_group.sync.aligned 2;",
    },
    "@%p cp.async.bulk.wait_group.read 0;": {
        "drop wait": "", "wait depth + 1": "@%p cp.async.bulk.wait_group.read 1;",
    },
    "cp.async.wait_all;": {"drop wait": ""},
    "bar.sync 1, 64;": {
        "drop barrier": "", "barrier count + 32": "bar.sync 1, 96;",
        "barrier count - 32": "bar.sync 1, 32;",
    },
    "mbarrier.init.shared::cta.b64 [%r], 2;": {
        "drop init": "", "count + 1": "mbarrier.init.shared::cta.b64 [%r], 3;",
        "count - 1": "mbarrier.init.shared::cta.b64 [%r], 1;",
    },
    "mbarrier.init.shared::cta.b64 [%r], %n;": {
        "drop init": "",
        "count + 1": "{ .reg .b32 %off; add.u32 %off, %n, 1; "
                     "mbarrier.init.shared::cta.b64 [%r], %off; }",
        "count - 1": "{ .reg .b32 %off; add.u32 %off, %n, -1; "
                     "mbarrier.init.shared::cta.b64 [%r], %off; }",
    },
    "mbarrier.arrive.shared::cta.b64 _, [%r];": {"drop arrive": ""},
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r], 64;": {
        "drop arrive": "",
        "expect_tx + 16": "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r], 80;",
        "expect_tx - 16": "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r], 48;",
        "drop expect_tx": "mbarrier.arrive.shared::cta.b64 _, [%r];",
    },
    "mbarrier.try_wait.parity.shared::cta.b64 %p, [%r], %q;": {
        "drop mbarrier wait": "setp.eq.u32 %p, 0, 0;",
        "flip parity": "{ .reg .b32 %flipped; xor.b32 %flipped, %q, 1; "
                       "mbarrier.try_wait.parity.shared::cta.b64 %p, [%r], %flipped; }",
    },
    "elect.sync _|%p, 0xffffffff;": {"drop elect": "setp.eq.u32 %p, 0, 0;"},
    "setmaxnreg.dec.sync.aligned.u32 40;": {
        "drop setmaxnreg": "", "setmaxnreg +8": "setmaxnreg.dec.sync.aligned.u32 48;",
        "setmaxnreg -8": "setmaxnreg.dec.sync.aligned.u32 32;",
    },
    "mov.b32 %d, 0x40000040;": {  # 128-byte swizzle, 1,024 bytes between groups of 8 rows
        "descriptor swizzle": "mov.b32 %d, 2147483712;",
        "descriptor stride": "mov.b32 %d, 1073741952;",
    },
    "or.b32 %d, %d, 0x1000000;": {"descriptor leading stride": "or.b32 %d, %d, 33554432;"},
    "or.b32 %d, %d, 0x10000;": {},  # 1: nothing reads it
    "xor.b32 %a, %lane, 32;": {"swizzle bit": "xor.b32 %a, %lane, 48;"},
    "xor.b32 %parity, %parity, 1;": {},
    "barrier.cluster.arrive.aligned;": {"drop cluster arrive": ""},
    "barrier.cluster.wait.aligned;": {"drop cluster wait": ""},
    "griddepcontrol.wait;": {"drop grid wait": ""},
    "griddepcontrol.launch_dependents;": {},  # costs time only
    "add.u32 %a, %b, %c;": {},
}  # fmt: skip


@pytest.mark.parametrize("instruction", CASES)
def test_what_is_made_of_an_instruction(instruction: str) -> None:
    found = of(instruction)
    line = HEAD.count("\n") + 1
    assert {m.operator: m.source for m in found} == {
        name: f"{HEAD}{now}\n}}\n" for name, now in CASES[instruction].items()
    }
    for mutant in found:
        parse(mutant.source)
        assert mutant.line == line
        assert mutant.now


COPY = (
    "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
    " [%s], [%map, {%x}], [%bar], MASK;"
)


def test_masks_lose_and_gain_a_cta() -> None:
    """0b0110 becomes 0b0100 and 0b0111; a mask in a register is computed on the spot."""
    lost, added = of(COPY.replace("MASK", "6"))
    assert (lost.source.rpartition(", ")[2][0], added.source.rpartition(", ")[2][0]) == ("4", "7")
    lost, added = of(COPY.replace("MASK", "%mask"))
    assert "sub.u16 %off, %mask, 1; and.b16 %off, %off, %mask;" in lost.source
    assert "add.u16 %off, %mask, 1; or.b16 %off, %off, %mask;" in added.source


def test_a_release_moves_before_the_wait_with_what_it_needs() -> None:
    wait = "wgmma.wait_group.sync.aligned 0;"
    body = f"{wait}\nadd.u32 %r, %e, 8;\n@%p mbarrier.arrive.shared::cta.b64 _, [%r];"
    (moved,) = [m for m in of(body) if m.operator == "release before wait"]
    code = " ".join(moved.source[len(HEAD) :].split())
    assert code == f"add.u32 %r, %e, 8; @%p mbarrier.arrive.shared::cta.b64 _, [%r]; {wait} }}"


def test_a_cluster_barrier_goes_as_a_whole_too() -> None:
    both = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;"
    (whole,) = [m for m in of(both) if m.operator == "drop cluster barrier"]
    assert "barrier.cluster" not in whole.source
