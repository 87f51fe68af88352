"""How copies go wrong in practice: byte counts, alignment, fences that do not run, waits that do
not wait, too many issuers; and programs next to them that are right."""

from __future__ import annotations

import pytest
from hazard_runs import COPY, TENSOR_LOAD, check, codes, init, one, program, wait

pytestmark = pytest.mark.emu

X = (".param .u64 x", ("--arg", "x=u32[256]:arange"))
MAP = ".param .align 64 .b8 map[128]"
LOAD_X = "ld.param.u64 %x, [x];"
LOAD_MAP = "mov.b64 %map, map; cvta.param.u64 %map, %map;"
EXPECT = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], {};"


def loading(expect: str, *copies: str, then: str = "ld.shared.u32 %word, [%mine];") -> str:
    """Thread 0 announces and copies, everybody waits and reads."""
    body = "\n".join(copies)
    return f"""{LOAD_X} {init(1)}
    @%other bra READY;
    {expect}
    {body}
    READY:
    {wait(0)}
    {then}
    """


def copies(*sizes: int) -> tuple[str, ...]:
    at = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(
        f"{COPY} [%tile+{a}], [%x+{a}], {n}, [%full];" for a, n in zip(at, sizes, strict=True)
    )


@pytest.mark.parametrize(
    ("expected", "sizes", "found"),
    [
        (1024, (256, 256, 256, 256), set()),  # a tile in four boxes
        (256, (256, 256, 256, 256), {"copy-late", "in-flight", "exit-with-copy"}),  # one of four
        (2048, (1024,), {"deadlock"}),  # twice what comes
        (1040, (1024,), {"deadlock"}),
    ],
)  # fmt: skip
def test_bytes_that_are_announced(expected: int, sizes: tuple[int, ...], found: set[str]) -> None:
    ptx = program(loading(EXPECT.format(expected), *copies(*sizes)), X[0])
    said = codes("bytes", ptx, X[1])
    assert said <= found
    assert bool(said) == bool(found)


def test_bytes_that_nobody_announced() -> None:
    arrive = "mbarrier.arrive.shared::cta.b64 _, [%full];"
    ptx = program(loading(arrive, *copies(1024)), X[0])
    assert codes("silent", ptx, X[1]) == {"copy-unwaited", "in-flight"}
    assert check("silent", ptx, X[1]).verdict == "fail"


def test_a_stuck_wait_says_what_it_misses() -> None:
    """The barrier, its phase, what was expected and what came; and who waits where."""
    ptx = program(loading(EXPECT.format(1040), *copies(1024)), X[0])
    found = one(check("stuck", ptx, X[1]))
    text = f"{found.message} {found.reason}"
    for part in ("phase 0", "expected 1,040", "delivered 1,024", "warp 0 at PTX line"):
        assert part in text


@pytest.mark.parametrize(("bytes_", "good"), [(1024, True), (512, False)])
def test_bytes_outside_the_tensor_count(bytes_: int, good: bool) -> None:
    """Half of the box lies below the tensor: its fill is written, and counted, all the same."""
    ptx = program(
        f"""{LOAD_MAP} {init(1)}
        @%other bra READY;
        {EXPECT.format(bytes_)}
        {TENSOR_LOAD} [%tile], [%map, {{0, 4}}], [%full];
        READY:
        {wait(0)}
        """,
        MAP,
    )
    found = check("outside", ptx, ("--arg", "map=tmap(u32[8,32],box=8x32):ones"))
    assert (found.verdict == "pass") == good


@pytest.mark.parametrize(
    ("at", "shape", "words"),
    [
        (64, "u32[8,32],box=8x32", "128 bytes"),  # the second stage of a ring of 64-byte stages
        (48, "u32[8,32],box=8x32", "128 bytes"),
        (16, "u32[8,32],box=8x32,swizzle=128", "128 bytes"),
        (512, "u32[8,32],box=8x32,swizzle=128", "1024"),  # where the pattern has come half way
    ],
)
def test_a_tile_that_starts_anywhere(at: int, shape: str, words: str) -> None:
    ptx = program(
        f"""{LOAD_MAP} {init(1)}
        @%other bra READY;
        {EXPECT.format(1024)}
        {TENSOR_LOAD} [%tile+{at}], [%map, {{0, 0}}], [%full];
        READY:
        {wait(0)}
        """,
        MAP,
    )
    found = one(check("anywhere", ptx, ("--arg", f"map=tmap({shape}):ones")))
    assert found.code in ("misaligned", "swizzle-atom")
    assert words in found.message
    assert hex(0x400 + at) in found.message  # the window's first KB belongs to the system


@pytest.mark.parametrize("bytes_", [8, 252])
def test_the_tail_of_a_row_in_bulk(bytes_: int) -> None:
    ptx = program(loading(EXPECT.format(bytes_), *copies(bytes_)), X[0])
    found = one(check("tail", ptx, X[1]))
    assert found.code == "misaligned"
    assert "size" in found.message
    assert "tail" in found.cure


@pytest.mark.parametrize(("parity", "found"), [(0, set()), (1, {"in-flight", "deadlock"})])
def test_a_wait_with_the_wrong_parity_does_not_wait(parity: int, found: set[str]) -> None:
    body = loading(EXPECT.format(1024), *copies(1024)).replace("[%full], 0;", f"[%full], {parity};")
    said = codes("parity", program(body, X[0]), X[1])
    assert said <= found
    assert bool(said) == bool(found)


@pytest.mark.parametrize("kind", ["try_wait", "test_wait"])
def test_a_wait_whose_result_nobody_looks_at(kind: str) -> None:
    """try_wait, too, may return before the phase has ended: its time limit is the system's."""
    body = loading(EXPECT.format(1024), *copies(1024)).replace("@!%done bra WAIT;", "")
    ptx = program(body.replace("try_wait", kind), X[0])
    assert codes("ignored", ptx, X[1]) & {"copy-unwaited", "in-flight"}


def test_copies_issued_by_every_lane() -> None:
    """32 copies where one was announced: elect is missing."""
    body = loading(EXPECT.format(1024), *copies(1024)).replace("@%other bra READY;", "")
    assert check("lanes", program(body, X[0]), X[1]).verdict == "fail"
    once = body.replace("mbarrier.arrive", "@!%other mbarrier.arrive")
    found = check("lanes", program(once, X[0]), X[1])
    assert found.verdict == "fail"


@pytest.mark.parametrize("threads", [1, 16, 31, 32, 33])
def test_elect_in_warps_that_are_not_full(threads: int) -> None:
    """One lane of each warp is elected, whatever lanes there are; the copy is issued once."""
    body = loading(EXPECT.format(1024), *copies(1024)).replace(
        "@%other bra READY;",
        "setp.ne.u32 %p, %warp, 0; @%p bra READY;\nelect.sync _|%p, 0xffffffff; @!%p bra READY;",
    )
    assert check("elect", program(body, X[0], threads=threads), X[1]).verdict == "pass"


def test_elect_where_lanes_have_gone() -> None:
    body = "@%other bra GONE;\nelect.sync _|%p, 0xffffffff;\nGONE:"
    assert one(check("elect", program(body))).code == "absent-lanes"


STORE = """ld.param.u64 %x, [x];
{before}
{fence_before} bar.sync 0;
@%other bra DONE;
{fence_after}
cp.async.bulk.global.shared::cta.bulk_group [%x+512], [%tile], 256;
{last}
cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
DONE:
"""
FENCE = "fence.proxy.async.shared::cta;"


def storing(**parts: str) -> str:
    empty = dict.fromkeys(("before", "fence_before", "fence_after", "last"), "")
    return program(STORE.format_map(empty | parts), X[0], threads=64)


def test_a_fence_in_a_loop_that_runs_zero_times() -> None:
    """The only fence stands in the loop over tiles; a problem without tiles skips it."""
    loop = f"""st.shared.u32 [%mine], %thread;
    mov.u32 %n, {{}};
    LOOP: setp.eq.u32 %p, %n, 0; @%p bra PAST;
    st.shared.u32 [%mine], %n; {FENCE} sub.u32 %n, %n, 1; bra LOOP;
    PAST:"""
    assert codes("trips", storing(before=loop.format(2)), X[1]) == set()
    assert codes("trips", storing(before=loop.format(0)), X[1]) == {"proxy-fence"}


def test_a_fence_after_the_store() -> None:
    write = "st.shared.u32 [%mine], %thread;"
    assert codes("late", storing(before=write, last=FENCE), X[1]) == {"proxy-fence"}
    assert codes("late", storing(before=write + FENCE), X[1]) == set()


@pytest.mark.parametrize("write", [
    "st.shared.u32 [%mine], %thread;",
    f"st.shared.u32 [%mine], 0; {FENCE} atom.shared.exch.b32 %word, [%mine], %thread;",
    "cp.async.ca.shared.global [%mine], [%x], 4; cp.async.commit_group; cp.async.wait_group 0;",
])  # fmt: skip
def test_every_generic_write_needs_the_fence(write: str) -> None:
    assert codes("write", storing(before=write), X[1]) == {"proxy-fence"}
    assert codes("write", storing(before=write + FENCE), X[1]) == set()


@pytest.mark.parametrize(("fence", "found"), [(FENCE, set()), ("", {"proxy-fence-read"})])
def test_reads_before_a_stage_is_filled_again_are_advice(fence: str, found: set[str]) -> None:
    """Consumers read a stage with ld.shared and release it; the producer fills it again."""
    body = f"""{LOAD_X} {init(1)}
    @!%other mbarrier.init.shared::cta.b64 [%empty], 64; bar.sync 0;
    @%other bra READ;
    {EXPECT.format(256)} {COPY} [%tile], [%x], 256, [%full];
    READ: {wait(0)}
    ld.shared.u32 %word, [%mine]; {fence}
    mbarrier.arrive.shared::cta.b64 _, [%empty];
    @%other bra LAST;
    {wait(0, "%empty", "FREE")}
    {EXPECT.format(256)} {COPY} [%tile], [%x], 256, [%full];
    LAST: {wait(1, "%full", "AGAIN")}
    """
    found_now = check("reads", program(body, X[0], threads=64), X[1])
    assert found_now.verdict == "pass"
    assert {f.code for f in found_now.advice} == found


@pytest.mark.parametrize(
    ("waiter", "found"),
    [(0, set()), (32, {"source-overwritten", "exit-with-bulk-store"})],
)
def test_groups_are_waited_for_by_who_committed_them(waiter: int, found: set[str]) -> None:
    """Another thread's wait covers its own groups only: none."""
    body = f"""{LOAD_X}
    st.shared.u32 [%mine], %thread; {FENCE} bar.sync 0;
    @%other bra WAITING;
    cp.async.bulk.global.shared::cta.bulk_group [%x], [%tile], 256;
    cp.async.bulk.commit_group;
    WAITING: setp.ne.u32 %p, %thread, {waiter};
    @%p bra WAITED;
    cp.async.bulk.wait_group.read 0;
    WAITED: bar.sync 0;
    st.shared.u32 [%mine], 0;"""
    said = codes("waiter", program(body, X[0], threads=64), X[1])
    assert said <= found
    assert bool(said) == bool(found)


@pytest.mark.parametrize(
    ("kind", "fence", "found"),
    [
        ("acquire.cluster", "", set()),
        ("relaxed.cluster", "fence.acq_rel.cluster;", set()),
        ("relaxed.cluster", "", {"copy-unwaited", "race-shared"}),
    ],
)
def test_a_relaxed_wait_needs_a_fence(kind: str, fence: str, found: set[str]) -> None:
    """What other threads wrote before they arrived is there after an acquire only."""
    body = f"""{init(64)}
    st.shared.u32 [%mine], %thread;
    mbarrier.arrive.shared::cta.b64 _, [%full];
    {wait(0).replace("acquire.cluster", kind)} {fence}
    xor.b32 %mine, %mine, 128; ld.shared.u32 %word, [%mine];"""
    ptx = program(body, threads=64).replace(".version 8.3", ".version 8.6")
    said = codes("relaxed", ptx)
    assert said <= found
    assert bool(said) == bool(found)
