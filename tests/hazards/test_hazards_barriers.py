"""How barriers go wrong in practice: counts that are not those who come, barriers that are made
again, roles that skip an arrival, register pools that are too small."""

from __future__ import annotations

import pytest
from hazard_runs import COPY, check, codes, init, one, program, wait

pytestmark = pytest.mark.emu

X = (".param .u64 x", ("--arg", "x=u32[256]:arange"))
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [{}];"


def ring(full: int, empty: int, *, produce: str = "@!%other ", release: str = "") -> str:
    """A producer warp and four consumer warps, three laps of one stage."""
    return program(
        f"""ld.param.u64 %x, [x];
        @!%other mbarrier.init.shared::cta.b64 [%full], {full};
        @!%other mbarrier.init.shared::cta.b64 [%empty], {empty};
        fence.mbarrier_init.release.cluster; bar.sync 0;
        mov.u32 %n, 0;
        setp.ne.u32 %p, %warp, 4; @%p bra CONSUME;
        and.b32 %word, %thread, 31; setp.ne.u32 %other, %word, 0;
        PRODUCE:
        setp.eq.u32 %p, %n, 0; @%p bra FIRST;
        sub.u32 %word, %n, 1; and.b32 %word, %word, 1;
        {wait(0, "%empty", "FREE").replace(", 0;", ", %word;")}
        FIRST:
        {produce}mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 512;
        @!%other {COPY} [%tile], [%x], 512, [%full];
        add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 3; @%p bra PRODUCE; bra DONE;
        CONSUME:
        and.b32 %word, %n, 1;
        {wait(0, "%full", "FILLED").replace(", 0;", ", %word;")}
        ld.shared.u32 %word, [%mine]; fence.proxy.async.shared::cta;
        {release}{ARRIVE.format("%empty")}
        add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 3; @%p bra CONSUME;
        DONE: bar.sync 0;""",
        X[0], threads=160,
    )  # fmt: skip


LEADER = "and.b32 %word, %thread, 31; setp.ne.u32 %p, %word, 0; bar.warp.sync -1; @!%p "


@pytest.mark.parametrize(
    ("full", "empty", "release", "found"),
    [
        (1, 128, "", set()),
        (1, 4, LEADER, set()),  # one arrival a warp
        (1, 1, "", {"mbarrier-overrun"}),  # 128 threads release, one was counted
        (1, 128, LEADER, {"deadlock"}),  # and the other way round
        (32, 128, "", {"deadlock"}),  # one thread announces, 32 were counted
    ],
)
def test_counts_are_those_who_arrive(full: int, empty: int, release: str, found: set[str]) -> None:
    assert codes("ring", ring(full, empty, release=release), X[1]) == found


def test_an_overrun_names_both_numbers() -> None:
    text = one(check("ring", ring(1, 1), X[1])).message
    assert "of 1 arrivals" in text
    assert "more arrivals than the phase expects" in text


def test_two_producers_in_one_phase() -> None:
    """Eight loads on six barriers: two share one, and its phase has an arrival too many."""
    second = "@!%other mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 512;\n" * 2
    body = f"{init(1)}\n{second}{wait(0)}"
    assert codes("shared", program(body)) <= {"mbarrier-overrun", "phase-overrun", "deadlock"}
    assert check("shared", program(body)).verdict == "fail"


def test_init_in_the_loop() -> None:
    """A persistent kernel that makes its barriers for every tile."""
    body = """mov.u32 %n, 0;
    TILE:
    @!%other mbarrier.init.shared::cta.b64 [%full], 32; {inval}
    bar.sync 0; mbarrier.arrive.shared::cta.b64 _, [%full];
    {wait}
    bar.sync 0; {end}
    add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 2; @%p bra TILE;"""
    good = "@!%other mbarrier.inval.shared::cta.b64 [%full]; bar.sync 0;"
    for end, found in (("", {"mbarrier-reinit"}), (good, set())):
        ptx = program(body.format(wait=wait(0), end=end, inval=""))
        assert codes("again", ptx) == found


def test_two_barriers_at_one_address() -> None:
    ptx = program(f"{init(1)} @!%other mbarrier.init.shared::cta.b64 [%full], 1;")
    assert one(check("twice", ptx)).code == "mbarrier-reinit"


@pytest.mark.parametrize("over", ["st.shared.u32 [%full], 0;", "ld.shared.u32 %word, [%full];"])
def test_data_over_a_live_barrier(over: str) -> None:
    ptx = program(f"{init(1)} @!%other {over}")
    found = one(check("over", ptx))
    assert found.code == "mbarrier-access"
    assert "0x1400" in found.bytes_  # where the barrier lies: after the tile, above the first KB


def test_a_copy_over_a_live_barrier() -> None:
    body = f"""ld.param.u64 %x, [x]; {init(1)}
    @%other bra READY;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 1024;
    {COPY} [%tile+3584], [%x], 1024, [%full];
    READY: {wait(0)}"""
    found = one(check("over", program(body, X[0]), X[1]))
    assert found.code == "mbarrier-access"


@pytest.mark.parametrize(
    ("threads", "who", "count", "found"),
    [
        (96, 96, 96, set()),
        (96, 64, 64, set()),  # two of the warps
        (96, 96, 64, {"named-barrier", "deadlock"}),  # three come, two were counted: one is left
        (96, 64, 96, {"deadlock"}),
        (96, 96, 128, {"named-barrier"}),  # more than there are
        (96, 96, 48, {"named-barrier"}),  # no whole warps
    ],
)
def test_named_barrier_counts(threads: int, who: int, count: int, found: set[str]) -> None:
    body = f"setp.ge.u32 %p, %thread, {who}; @%p bra DONE;\nbar.sync 1, {count};\nDONE:"
    said = codes("named", program(body, threads=threads))
    assert said <= found
    assert bool(said) == bool(found)


@pytest.mark.parametrize(("tiles", "found"), [(1, set()), (0, {"deadlock"})])
def test_a_role_without_tiles_skips_its_arrival(tiles: int, found: set[str]) -> None:
    """The epilogue waits for the producer on barrier 1; a producer without a tile never comes."""
    body = f"""mov.u32 %n, {tiles};
    setp.eq.u32 %p, %warp, 0; @%p bra PRODUCE;
    bar.sync 1, 64; bra DONE;
    PRODUCE: setp.eq.u32 %p, %n, 0; @%p bra DONE;
    bar.arrive 1, 64;
    DONE:"""
    assert codes("tiles", program(body, threads=64)) == found


def test_barrier_0_inside_a_role() -> None:
    """bar.sync 0 counts all threads of the CTA: inside one role it waits for ever, or meets the
    others' next one."""
    body = """setp.eq.u32 %p, %warp, 0; @%p bra PRODUCE;
    bra DONE;
    PRODUCE: bar.sync 0;
    DONE: bar.sync 0, 64;"""
    assert codes("role", program(body, threads=64)) <= {"named-barrier", "deadlock"}
    assert check("role", program(body, threads=64)).verdict == "fail"


def test_a_deadlock_says_where_everybody_is() -> None:
    """Every warp with its line and what it waits for: barrier, phase, arrivals and bytes."""
    body = f"""{init(2)}
    setp.eq.u32 %p, %warp, 0; @%p bra OTHER;
    {wait(0)} bra DONE;
    OTHER: {ARRIVE.format("%full").replace("mbarrier", "@!%other mbarrier")} bar.sync 1, 64;
    DONE:"""
    found = one(check("stuck", program(body, threads=64)))
    assert found.code == "deadlock"
    for part in (
        "warp 0 at PTX line",
        "named barrier 1: 32 of 64 threads arrived",
        "warp 1 at PTX line",
        "waits for parity 0 of mbarrier",
        "1 of 2 arrivals pending",
    ):
        assert part in found.reason  # fmt: skip


# -- setmaxnreg ------------------------------------------------------------------------------------

ROLES = """
setp.lt.u32 %p, %thread, 128; @%p bra PRODUCE;
setp.lt.u32 %p, %thread, 256; @%p bra FIRST;
setmaxnreg.inc.sync.aligned.u32 {last}; bra DONE;
FIRST: setmaxnreg.inc.sync.aligned.u32 {first}; bra DONE;
PRODUCE: {dec}
DONE:
"""


def roles(dec: int, first: int, last: int, threads: int = 384) -> str:
    text = f"setmaxnreg.dec.sync.aligned.u32 {dec};" if dec else ""
    ptx = program(ROLES.format(dec=text, first=first, last=last), threads=threads)
    return ptx.replace(f".reqntid {threads}", f".reqntid {threads}\n.minnctapersm 1")


@pytest.mark.parametrize(
    ("dec", "first", "last", "found"),
    [
        (24, 240, 240, set()),  # 504 of 504, as 3 x 168
        (40, 232, 232, set()),
        (24, 232, 232, set()),  # 488: less than there is
        (40, 240, 240, {"deadlock"}),  # 520: the second waits for ever
        (0, 232, 232, {"deadlock", "lint-register-pool"}),  # nobody gives back
    ],
)
def test_the_register_pool(dec: int, first: int, last: int, found: set[str]) -> None:
    said = codes("pool", roles(dec, first, last))
    assert said <= found
    assert bool(said) == bool(found)


def test_a_pool_that_is_too_small_names_the_numbers() -> None:
    found = one(check("pool", roles(40, 240, 240)))
    for part in ("setmaxnreg.inc needs", "pool has", "entry 168 a thread"):
        assert part in found.reason


def test_four_warpgroups_do_not_get_240_each() -> None:
    ptx = roles(24, 240, 240, threads=512)
    found = one(check("pool", ptx))
    assert found.code in ("lint-register-pool", "deadlock")


def test_bar_red_among_bar_sync() -> None:
    body = """setp.eq.u32 %p, %warp, 0; @!%p bra SYNC;
    barrier.cta.red.popc.u32 %word, 1, 64, %other; bra DONE;
    SYNC: {}
    DONE:"""
    good = "barrier.cta.red.popc.u32 %word, 1, 64, %other;"
    for text, found in ((good, set()), ("bar.sync 1, 64;", {"named-barrier"})):
        ptx = program(body.format(text), threads=64)
        assert codes("red", ptx.replace("cta.red", "red")) == found
