"""Every rule that a program can break: its code, why it exists, the cure, and the PTX ISA section.

This is the one table; findings take what they do not say themselves from here, and HAZARDS.md is
made from it. `when` says who finds it:

    always    every run on the emulator
    checked   runs with hazards=True: order, proxies, life times
    lint      reading the PTX, without running it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "advice"]
When: TypeAlias = Literal["always", "checked", "lint"]


@dataclass(frozen=True, slots=True)
class Rule:
    code: str
    when: When
    title: str  # what is wrong, in a few words
    reason: str
    cure: str
    isa: str
    severity: Severity = "error"


PROXY = "8.3 Proxies; 9.7.13.4 membar / fence"
MODEL = "8.10 Causality order"
WGMMA_ORDER = "9.7.16.2 Async proxy; 9.7.16.7 wgmma.fence, commit_group, wait_group"
BULK = "9.7.9.25 cp.async.bulk"
TENSOR = "9.7.9.27 cp.async.bulk.tensor"
MBARRIER = "9.7.13.15 mbarrier"
CLUSTER = "9.7.13.3 barrier.cluster; 5.1.7 Shared state space"
BARRIER = "9.7.13.1 bar, barrier"
WARP = "9.7.13 Parallel synchronization"
SPACES = "5.1 State spaces"

_PROXIES = (
    Rule("proxy-fence", "checked", "generic write, then async read or write, without a proxy fence",
         "a barrier orders the generic proxy only: TMA and wgmma read through the async proxy and "
         "may see what was there before",
         "fence.proxy.async.shared::cta in every writing thread, before the barrier", PROXY),
    Rule("proxy-fence-global", "checked", "global data written, then read by TMA, without a fence",
         "TMA reads global memory through the async proxy",
         "fence.proxy.async.global in every writing thread, before it signals", PROXY),
    Rule("proxy-fence-side", "checked", "the proxy fence is the reader's, not the writer's",
         "the ISA orders a fence anywhere between the two; hardware guides want it in the writer",
         "move fence.proxy.async into the writing threads, before the barrier", PROXY, "advice"),
    Rule("proxy-fence-read", "checked", "generic read, then async overwrite, without a proxy fence",
         "whether a read needs the fence before an async write is disputed; most kernels rely on "
         "the barrier alone", "fence.proxy.async.shared::cta after the reads, before the arrival",
         PROXY, "advice"),
)  # fmt: skip

_RACES = (
    Rule("race-shared", "checked", "unordered accesses to shared memory",
         "two warps touch the same bytes, one writes, and no barrier lies between",
         "bar.sync (or an mbarrier) between the two accesses", MODEL),
    Rule("race-global", "checked", "unordered accesses to global memory",
         "two warps touch the same bytes, one writes, and no synchronisation lies between",
         "an atomic with .acq_rel.gpu, or fences around a flag; or give each CTA its own part",
         MODEL),
    Rule("race-same-value", "checked", "warps that store one value to the same bytes, unordered",
         "formally a race, harmless where the stores are single accesses of equal value",
         "let one warp store, or put a barrier between", MODEL, "advice"),
    Rule("race-lanes", "checked", "lanes of one store write different values to the same bytes",
         "one of them stays, and nothing says which",
         "let one lane store (elect.sync, or a guard), or give each lane its own bytes", MODEL),
    Rule("race-atomic", "checked", "a plain load beside atomics on the same bytes",
         "formally a race; the usual start of a compare-and-swap loop",
         "ld.relaxed.gpu instead of the plain load", MODEL, "advice"),
    Rule("scope", "checked", "a release or acquire whose scope does not reach the other CTA",
         "a .cta release or acquire orders nothing for threads of another CTA",
         ".release.cluster on the arrival and .acquire.cluster on the wait (.gpu between clusters)",
         "8.5 Scope"),
    Rule("in-flight", "always", "memory touched while an asynchronous copy into it is pending",
         "the bytes are undefined until the copy has completed and its completion was waited for",
         "wait on the mbarrier of the copy before touching its destination", "8.9.1 Async ops"),
)  # fmt: skip

_COPIES = (
    Rule("copy-unwaited", "checked", "the destination of a copy touched before its mbarrier phase",
         "only a successful wait on the mbarrier says that the bytes have arrived",
         "mbarrier.try_wait.parity on the barrier of the copy, with the right parity, first",
         TENSOR),
    Rule("copy-late", "always", "a copy completes in a later phase than it was issued for",
         "the phase ended without its bytes: whoever waited has read too early",
         "make expect_tx equal to the bytes of all copies of the phase", MBARRIER),
    Rule("source-overwritten", "checked", "the source of a copy overwritten before it was read",
         "a bulk store reads shared memory later; only its own thread can wait for that",
         "cp.async.bulk.wait_group.read by the thread that issued the store, then a barrier",
         "9.7.9.25.3 cp.async.bulk.wait_group"),
    Rule("bulk-unwaited", "checked", "what a bulk store writes, read before it is complete",
         ".read groups say that the source was read, not that the destination was written",
         "cp.async.bulk.wait_group (without .read) by the issuing thread, then synchronise",
         "9.7.9.25.3 cp.async.bulk.wait_group"),
    Rule("uncommitted-group", "always", "a bulk wait while copies are in no group",
         "a wait covers committed groups only", "cp.async.bulk.commit_group before the wait",
         "9.7.9.25.3 cp.async.bulk.wait_group"),
    Rule("exit-with-bulk-store", "always", "a thread exits before its bulk stores were read",
         "shared memory is gone once the CTA has exited",
         "cp.async.bulk.commit_group, then cp.async.bulk.wait_group.read 0 before ret",
         "9.7.9.25.3 cp.async.bulk.wait_group"),
    Rule("exit-with-copy", "checked", "a CTA exits before copies into it have arrived",
         "the copy writes shared memory that belongs to somebody else by then",
         "wait for every phase that a copy was issued for", TENSOR),
    Rule("cp-async-unwaited", "checked", "the destination of cp.async touched before it was waited",
         "cp.async completes for its own thread at wait_group; others need a barrier after that",
         "cp.async.commit_group, cp.async.wait_group in the copying threads, then bar.sync",
         "9.7.9.25.1 cp.async"),
    Rule("cp-async-size", "always", "cp.async takes more bytes than it copies",
         "src-size beyond cp-size is undefined", "keep src-size within cp-size",
         "9.7.9.25.1 cp.async"),
    Rule("misaligned", "always", "an address or size that is not a multiple of what it must be",
         "accesses are aligned to their size, bulk copies to 16 bytes, tensor copies to 128",
         "align the address", SPACES),
    Rule("swizzle-atom", "always", "a swizzled tile that starts inside the pattern",
         "the swizzle uses absolute address bits: the pattern would start in its middle",
         "align the tile to 8 x the swizzle span", TENSOR),
    Rule("negative-coordinate", "always", "a tensor store that starts before the tensor",
         "the box of a store must not start before the tensor",
         "clip the box by other means, or shift the tensor's address", TENSOR),
    Rule("multicast-mask", "always", "a multicast mask with bits outside the cluster",
         "each bit names a CTA rank of the cluster", "use the bits of ranks that exist", TENSOR),
    Rule("mbarrier-cta", "always", "a copy that signals a barrier of another CTA than it writes",
         "destination and mbarrier are in one CTA", "signal a barrier of the receiver", TENSOR),
    Rule("tensor-map", "always", "a tensor map that does not describe an array of this launch",
         "TMA reads and writes what the map says", "encode the map for the array that is passed",
         TENSOR),
    Rule("tensor-map-address", "always", "a parameter offset where a generic address is needed",
         "mov gives the offset of a parameter, not its generic address",
         "cvta.param.u64 after mov.b64", TENSOR),
    Rule("tensor-map-fence", "checked", "a tensor map written by the kernel, used without a fence",
         "TMA reads maps through the tensormap proxy, which caches them",
         "fence.proxy.tensormap::generic.acquire on the map, after the writer's release",
         "9.7.9.28 tensormap.replace"),
)  # fmt: skip

_MBARRIERS = (
    Rule("mbarrier-uninitialised", "always", "an mbarrier used where none is",
         "every operation but init needs a live barrier",
         "mbarrier.init it first, and let the others wait until that is visible", MBARRIER),
    Rule("mbarrier-init-order", "checked", "an mbarrier used by a thread that cannot know its init",
         "init is an ordinary write: others see it after a barrier",
         "bar.sync (or a cluster barrier) between the init and the first use", MBARRIER),
    Rule("mbarrier-init-fence", "checked", "an mbarrier used from another CTA, its init unfenced",
         "fence.mbarrier_init makes inits visible to the cluster; a cluster barrier with .release "
         "does too, which not everybody relies on",
         "fence.mbarrier_init.release.cluster after the inits", MBARRIER, "advice"),
    Rule("mbarrier-init-proxy", "checked", "a copy signals an mbarrier whose init is not fenced",
         "init is a generic write, and a copy signals through the async proxy: a barrier alone "
         "orders the two for the generic proxy only",
         "fence.mbarrier_init.release.cluster (or fence.proxy.async) after the inits, then the "
         "barrier", MBARRIER, "advice"),
    Rule("mbarrier-reinit", "always", "init of a live mbarrier",
         "a live barrier must be invalidated before it is initialised again",
         "let one thread initialise it, or mbarrier.inval first", MBARRIER),
    Rule("mbarrier-count", "always", "an arrival count outside 1 .. 2^20 - 1",
         "the object has 20 bits for it", "count the arrivals of one phase", MBARRIER),
    Rule("mbarrier-tx", "always", "a tx-count outside +-(2^20 - 1)",
         "the tx-count has 20 bits and a sign", "use smaller transactions a phase", MBARRIER),
    Rule("mbarrier-tx-left", "always", "a CTA exits with bytes expected or delivered in excess",
         "expect_tx and the copies of a phase must agree to the byte",
         "make expect_tx equal to the bytes of all copies of the phase", MBARRIER),
    Rule("mbarrier-overrun", "always", "more arrivals than a phase expects",
         "the phase ends early, and the next one begins with arrivals of this one",
         "make the init count equal to the arrivals of one phase", MBARRIER),
    Rule("phase-overrun", "checked", "an arrival in a phase before anybody waited for the last one",
         "a waiter that is late cannot tell the phases apart: parity repeats",
         "wait for phase n before arriving in phase n + 1", MBARRIER),
    Rule("mbarrier-no-complete", "always", "arrivals with .noComplete that end the phase",
         "the program has promised that they do not", "leave out .noComplete", MBARRIER),
    Rule("mbarrier-access", "always", "ordinary access to a live mbarrier",
         "an mbarrier may only be touched by mbarrier instructions",
         "keep data and barriers apart, or mbarrier.inval first", MBARRIER),
    Rule("mbarrier-address", "always", "an mbarrier that is not in shared memory",
         "an mbarrier lives in shared memory", "pass a shared address", MBARRIER),
    Rule("remote-mbarrier", "always", "another CTA's mbarrier through a form for one's own",
         "only arrive, expect_tx and complete_tx may name another CTA's barrier, with "
         ".shared::cluster", "use the .shared::cluster form, or the own barrier", MBARRIER),
)  # fmt: skip

_WGMMA = (
    Rule("wgmma-in-flight", "always", "accumulators or A registers touched while wgmma has them",
         "they belong to wgmma until its group has completed",
         "wgmma.wait_group before the registers are read or written",
         "9.7.16.7.3 wgmma.wait_group"),
    Rule("wgmma-fence", "checked", "registers touched, then wgmma, without wgmma.fence",
         "wgmma reads registers asynchronously: the fence orders earlier accesses before it",
         "wgmma.fence.sync.aligned between the last access and the first wgmma",
         "9.7.16.7.1 wgmma.fence"),
    Rule("wgmma-shape", "checked", "wgmmas of different shape on one accumulator without a fence",
         "only wgmmas of the same shape are ordered on their accumulator by themselves",
         "wgmma.fence.sync.aligned between the two", "9.7.16.7.1 wgmma.fence"),
    Rule("stage-overwritten", "checked", "shared memory overwritten while it may still be read",
         "a stage is free once its readers are done and have said so: wgmma reads until its group "
         "has been waited for", "wgmma.wait_group before the arrival that frees the stage",
         WGMMA_ORDER),
    Rule("exit-with-wgmma", "checked", "a CTA exits with wgmma groups that nobody waited for",
         "wgmma still reads shared memory and writes registers",
         "wgmma.commit_group and wgmma.wait_group 0 before ret", WGMMA_ORDER),
    Rule("wgmma-mismatch", "always", "the warps of a warpgroup issue different wgmmas",
         "all threads of the warpgroup execute the same instruction with equal operands",
         "compute descriptors from values that are equal in the whole warpgroup", WGMMA_ORDER),
    Rule("wgmma-partial", "always", "wgmma by an incomplete warpgroup",
         "it takes all 128 threads of four consecutive warps, the first a multiple of 4",
         "let whole warpgroups reach it", WGMMA_ORDER),
    Rule("descriptor", "always", "a matrix descriptor that does not fit its tile",
         "the swizzle pattern uses absolute address bits",
         "place tiles on 1024, 512 or 256 bytes for 128-, 64-, 32-byte swizzle",
         "9.7.16.5.1 Shared memory matrix layout"),
    Rule("descriptor-swizzle", "checked", "a descriptor that reads a tile with another swizzle",
         "TMA permutes 16-byte units as its map says; wgmma undoes what its descriptor says",
         "use one swizzle for the tensor map and the descriptor",
         "9.7.16.5.1 Shared memory matrix layout"),
)  # fmt: skip

_BARRIERS = (
    Rule("named-barrier", "always", "participants that disagree on a named barrier",
         "all participants of one phase use the same id and count, and arrive once",
         "give every participant the same id and count", BARRIER),
    Rule("partial-warp", "always", "an .aligned instruction executed by part of a warp",
         ".aligned instructions are for the whole warp: the hardware may hang",
         "move it out of the divergent branch, or use the form without .aligned", WARP),
    Rule("absent-lanes", "always", "a member mask that does not match the lanes that are there",
         "all lanes of the member mask execute the instruction together",
         "leave the divergent branch first, or name only the lanes that are here", WARP),
    Rule("inactive-source", "always", "a shuffle from a lane that does not take part",
         "the value of a lane that is not there is undefined",
         "shuffle among the lanes of the member mask", WARP),
    Rule("lanes-differ", "always", "lanes that disagree on an operand that is one a warp",
         "the instruction takes one value for the whole warp",
         "compute the operand from values that are equal in all lanes", WARP),
    Rule("deadlock", "always", "nothing can run any more",
         "every thread waits for something that nobody will do",
         "see who waits for what; compare counts, bytes and parities", WARP),
    Rule("trap", "always", "the program executed trap",
         "the program stops itself where it finds an error", "see the program's own check",
         "9.7.19.6 trap"),
    Rule("grid-dependency", "checked", "global memory touched beside the grid before this one",
         "a programmatic launch starts before the grid in front of it has ended: what that one "
         "reads and writes is in use until griddepcontrol.wait",
         "griddepcontrol.wait before the first access to global memory, and a barrier if not every "
         "thread executes it", "9.7.13.13 griddepcontrol"),
)  # fmt: skip

_CLUSTERS = (
    Rule("cluster-barrier", "always", "arrive and wait of the cluster barrier do not alternate",
         "a thread arrives once a phase, and waits for the phase that it arrived at",
         "pair every barrier.cluster.arrive with one barrier.cluster.wait", CLUSTER),
    Rule("cluster-rank", "always", "a CTA rank outside the cluster",
         "ranks are 0 .. %cluster_nctarank - 1", "check the rank", "9.7.9.24 mapa"),
    Rule("cluster-start", "checked", "shared memory of a CTA that may not have started",
         "CTAs of a cluster start at different times",
         "barrier.cluster.arrive and .wait before the first access to another CTA", CLUSTER),
    Rule("cluster-exit", "checked", "shared memory of a CTA that may have exited",
         "distributed shared memory lives as long as its CTA",
         "barrier.cluster.arrive and .wait at the end of the kernel", CLUSTER),
    Rule("dead-peer", "always", "shared memory of a CTA that has exited or does not exist",
         "distributed shared memory lives as long as its CTA runs",
         "end the kernel with barrier.cluster.arrive and barrier.cluster.wait", CLUSTER),
    Rule("wrong-cta", "always", "a shared address of another CTA used as one's own",
         "the top byte of a shared address is the rank of its CTA",
         "use .shared::cluster for the memory of other CTAs", CLUSTER),
)  # fmt: skip

_MEMORY = (
    Rule("setmaxnreg", "always", "setmaxnreg.inc that lowers, or .dec that raises, the count",
         "inc must not lower and dec must not raise the count",
         "check the entry count (.maxnreg, or .reqntid with .minnctapersm)",
         "9.7.19.5 setmaxnreg"),
    Rule("setmaxnreg-warps", "always", "the warps of a warpgroup execute different setmaxnreg",
         "all warps of a warpgroup execute the same one",
         "branch on the warpgroup, not on the warp, on the way to setmaxnreg",
         "9.7.19.5 setmaxnreg"),
    Rule("setmaxnreg-order", "checked", "setmaxnreg again before the warpgroup has met",
         "all its warps must have executed the first before any executes the second",
         "bar.sync of the warpgroup's 128 threads between the two", "9.7.19.5 setmaxnreg"),
    Rule("out-of-bounds", "always", "an address outside every allocation",
         "the address is not inside the allocation", "check the index, or allocate more", SPACES),
    Rule("uninitialised-memory", "always", "shared or local memory read before it was written",
         "shared and local memory start undefined",
         "write it first, and synchronise with the writer", SPACES),
    Rule("uninitialised-register", "always", "a register used before it was written",
         "the value of a register is undefined until it is written",
         "write it on every path that leads here", "6.2 Registers"),
    Rule("read-only", "always", "a write to something that is read-only",
         "the array was passed as an input, or the space is constant", "pass a writable array",
         SPACES),
)  # fmt: skip

_LINT = (
    Rule("lint-cvta", "lint", "the address of a parameter used without cvta.param",
         "mov gives an offset in the parameter block; ptxas takes it for a global address",
         "cvta.param.u64 of the register, before it is used as an address", "9.7.9.21 cvta"),
    Rule("lint-special-name", "lint", "a register with the name of a special register",
         "mov.u32 %tid, %tid.x then no longer reads the special register",
         "give the register a name of its own", "10 Special registers"),
    Rule("lint-entry-registers", "lint", "setmaxnreg where the entry count is unknown",
         "ptxas ignores setmaxnreg unless it knows how many registers a thread starts with",
         ".minnctapersm with .reqntid (or .maxntid), or .maxnreg", "9.7.19.5 setmaxnreg"),
    Rule("lint-register-pool", "lint", "setmaxnreg values that do not fit the register file",
         "what inc asks for must have been released by dec, or it waits for ever",
         "lower the inc values, or raise the number of warps that dec", "9.7.19.5 setmaxnreg"),
    Rule("lint-version", "lint", "an instruction newer than the module's .version or .target",
         "ptxas refuses it, or an older one will", "raise .version or .target",
         "11.1 PTX module directives"),
    Rule("lint-commit", "lint", "asynchronous work that no group is ever committed for",
         "a wait covers committed groups only",
         "commit_group of the same kind after the last operation of the group", WGMMA_ORDER),
    Rule("lint-elect", "lint", "a leader chosen by lane number beside elect.sync",
         "elect.sync may choose any lane: whoever assumes lane 0 splits the work in two",
         "use the predicate of elect.sync everywhere, or %laneid everywhere", WARP, "advice"),
)  # fmt: skip

CHAPTERS: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "Proxies": _PROXIES,
        "Races": _RACES,
        "Asynchronous copies": _COPIES,
        "Mbarriers": _MBARRIERS,
        "wgmma": _WGMMA,
        "Barriers and warps": _BARRIERS,
        "Clusters": _CLUSTERS,
        "Registers and memory": _MEMORY,
        "Found by reading": _LINT,
    }
)
RULES: Mapping[str, Rule] = MappingProxyType(
    {rule.code: rule for rules in CHAPTERS.values() for rule in rules}
)
