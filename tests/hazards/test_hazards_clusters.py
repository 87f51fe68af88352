"""How clusters go wrong in practice: multicast to a CTA that is not ready, barriers of other CTAs,
CTAs of a cluster that do not agree on the number of tiles."""

from __future__ import annotations

import pytest
from hazard_runs import COPY, check, codes, one, program, wait

pytestmark = pytest.mark.emu

X = (".param .u64 x", ("--grid", "2", "--arg", "x=u32[256]:arange"))
MULTICAST = f"{COPY}.multicast::cluster"
EXPECT = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 512;"
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
INITS = "fence.mbarrier_init.release.cluster;"


def multicast(*, peers: bool = True, laps: int = 2, second: int = 2, ready: str = MEET) -> str:
    """CTA 0 sends a tile to both, `laps` times; both read it and release it.

    The release goes to CTA 0 (of both CTAs, or with `peers` False of CTA 0 alone). CTA 1 takes
    part in `second` laps.
    """
    count = 64 if peers else 32
    guard = "" if peers else "setp.eq.u32 %p, %rank, 0; @%p "
    body = f"""ld.param.u64 %x, [x];
    @!%other mbarrier.init.shared::cta.b64 [%full], 1;
    @!%other mbarrier.init.shared::cta.b64 [%empty], {count};
    {INITS} {ready}
    mov.u32 %n, 0;
    mov.u32 %last, {laps};
    setp.eq.u32 %p, %rank, 1; @%p mov.u32 %last, {second};
    LAP:
    and.b32 %word, %n, 1; xor.b32 %was, %word, 1;
    @%other bra READ;
    {EXPECT}
    setp.ne.u32 %p, %rank, 0; @%p bra READ;
    setp.eq.u32 %p, %n, 0; @%p bra SEND;
    {wait(0, "%empty", "FREE").replace(", 0;", ", %was;")}
    SEND: {MULTICAST} [%tile], [%x], 512, [%full], 3;
    READ:
    {wait(0, "%full", "FILLED").replace(", 0;", ", %word;")}
    ld.shared.u32 %got, [%mine]; fence.proxy.async.shared::cta;
    mapa.shared::cluster.u32 %peer, %empty, 0;
    {guard}mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%peer];
    add.u32 %n, %n, 1; setp.lt.u32 %p, %n, %last; @%p bra LAP;
    {MEET}"""
    return program(".reg .b32 %last, %was, %got;\n" + body, X[0], cluster=2)


def test_a_multicast_ring_that_is_right() -> None:
    assert codes("ring", multicast(), X[1]) == set()


def test_the_leader_waits_for_its_own_slot_only() -> None:
    """Then the peer's tile is overwritten while it is read, or before."""
    said = codes("own", multicast(peers=False), X[1])
    assert said
    assert said <= {"stage-overwritten", "in-flight", "copy-late", "copy-unwaited", "phase-overrun"}


@pytest.mark.parametrize(("laps", "second"), [(3, 2), (2, 3)])
def test_ctas_that_disagree_on_the_number_of_tiles(laps: int, second: int) -> None:
    """A cluster that spans two groups of tiles with different K."""
    assert check("laps", multicast(laps=laps, second=second), X[1]).verdict == "fail"
    assert "cluster-start" not in codes("laps", multicast(laps=laps, second=second), X[1])


def test_the_peer_may_not_be_ready() -> None:
    """Without the cluster barrier nothing says that the peer has made its mbarrier."""
    said = codes("ready", multicast(ready="bar.sync 0;"), X[1])
    assert said
    assert said <= {"mbarrier-uninitialised", "cluster-start", "mbarrier-init-order"}


ARRIVALS = """@!%other mbarrier.init.shared::cta.b64 [%full], 32;
{fence} {meet}
xor.b32 %peer, %rank, 1; mapa.shared::cluster.u32 %peer, {what}, %peer;
{use}
{wait}
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
"""
REMOTE = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%peer];"


def arrivals(*, fence: str = INITS, meet: str = MEET, use: str = REMOTE, what: str = "%full",
             waiting: str = wait(0)) -> str:  # fmt: skip
    text = ARRIVALS.format(fence=fence, meet=meet, use=use, wait=waiting, what=what)
    return program(text, cluster=2)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, set()),
        ({"fence": ""}, {"mbarrier-init-fence"}),
        ({"meet": "bar.sync 0;"}, {"mbarrier-uninitialised", "cluster-start"}),
        ({"meet": MEET.replace("arrive.", "arrive.relaxed.")}, set()),  # the fence suffices
        ({"meet": MEET.replace("arrive.", "arrive.relaxed."), "fence": ""},
         {"mbarrier-init-order"}),
    ],
)  # fmt: skip
def test_inits_that_a_peer_must_see(changes: dict[str, str], found: set[str]) -> None:
    said = codes("init", arrivals(**changes), ("--grid", "2"))
    assert said <= found
    assert bool(said) == bool(found)


@pytest.mark.parametrize(
    "use",
    [
        REMOTE.replace("shared::cluster", "shared::cta"),
        "mbarrier.arrive.release.cluster.shared.b64 _, [%peer];",
        wait(0, "%peer", "REMOTE"),
        "@!%other mbarrier.inval.shared::cta.b64 [%peer];",
        "@!%other mbarrier.init.shared::cta.b64 [%peer], 1;",
    ],
)
def test_local_forms_on_a_barrier_of_another_cta(use: str) -> None:
    found = one(check("remote", arrivals(use=use), ("--grid", "2")))
    assert found.code == "remote-mbarrier"
    assert "shared::cluster" in found.cure


def test_an_arrival_that_only_its_own_cta_may_see() -> None:
    """.release.cta on the way to another CTA orders nothing there."""
    body = """@!%other mbarrier.init.shared::cta.b64 [%full], 32;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    setp.ne.u32 %p, %rank, 0; @%p bra READ;
    mapa.shared::cluster.u32 %peer, %mine, 1; st.shared::cluster.u32 [%peer], %thread;
    mapa.shared::cluster.u32 %peer, %full, 1;
    mbarrier.arrive.release.{scope}.shared::cluster.b64 _, [%peer];
    bra DONE;
    READ: {wait}
    ld.shared.u32 %word, [%mine];
    DONE: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"""  # fmt: skip
    for scope, found in (("cluster", set()), ("cta", {"scope"})):
        ptx = program(body.format(scope=scope, wait=wait(0)), cluster=2)
        assert codes("scope", ptx, ("--grid", "2")) == found
