"""The machine: runs a grid of a compiled kernel, cluster by cluster.

A cluster's warps take turns; a path runs until it waits, exits or has had its share. Clusters run
one after another. When nothing can go on, the next cluster is admitted (as many CTAs as there are
SMs), so that programs whose CTAs wait for each other run too. When nothing can go on even then: a
deadlock. The loop itself is in `run`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Literal, TypeAlias

import numpy as np

from ptxgen.errors import EmulatorError, LaunchError
from ptxgen.ptx import ast
from ptxgen.spec import Dim3

from .kernel import Kernel, KernelCache
from .memory import GlobalMemory
from .queue import MODES, Mode
from .report import Report
from .run import Run

Schedule: TypeAlias = Literal["round_robin", "random", "priority"]
SCHEDULES: tuple[Schedule, ...] = ("round_robin", "random", "priority")
SLICE_BLOCKS = 512  # basic blocks that a path may run before the next one has its turn
SPIN_BLOCKS = 64  # the longest loop that is recognised as spinning
SMEM_PER_CTA_BYTES = 232_448

CACHE = KernelCache()


class Machine:
    """Runs launches. `sms` bounds the CTAs that are resident together.

    `schedule` orders warps: "round_robin", or by `seed` "random" or "priority" (one warp as far as
    it gets, with a few changes). `mode` says when asynchronous work happens (see `queue`).
    `hazards` checks the order of all accesses (see `watch`). `max_blocks` bounds the basic blocks
    of one launch. Equal options give equal runs, failures included.
    """

    def __init__(
        self,
        *,
        sms: int = 4,
        schedule: Schedule = "round_robin",
        seed: int = 0,
        mode: Mode = "eager",
        hazards: bool = False,
        max_blocks: int = 50_000_000,
        cache: KernelCache = CACHE,
    ) -> None:
        if mode not in MODES or schedule not in SCHEDULES or sms < 1:
            raise ValueError(f"no such machine: mode {mode!r}, schedule {schedule!r}, sms {sms}")
        self.sms = sms
        self.schedule = schedule
        self.seed = seed
        self.mode: Mode = mode
        self.hazards = hazards
        self.max_blocks = max_blocks
        self.cache = cache

    def compile(self, module: ast.Module | str, entry: str | None, block: Dim3) -> Kernel:
        """Compile an entry (cached). UnsupportedPtx names the instruction that cannot be run."""
        if isinstance(module, str):
            module = self.cache.module(module)
        return self.cache.get(module, entry, block)

    def launch(
        self,
        module: ast.Module | str,
        entry: str | None = None,
        *,
        grid: Dim3,
        block: Dim3,
        cluster: Dim3 | None = None,
        smem_bytes: int = 0,
        params: Mapping[str, bytes],
        memory: GlobalMemory,
        pdl: bool = False,
    ) -> Report:
        """Run one grid to its end.

        `grid` counts CTAs. `params` holds the bytes of every `.param` by name. `pdl`: programmatic
        launch, beside the grid before. Raises LaunchError
        for a launch that the entry does not allow, HazardError, Deadlock or UnsupportedPtx for
        what the program does.
        """
        kernel = self.compile(module, entry, block)
        return self.run(
            kernel, grid=grid, block=block, cluster=cluster, smem_bytes=smem_bytes, params=params,
            memory=memory, pdl=pdl,
        )  # fmt: skip

    def run(
        self,
        kernel: Kernel,
        *,
        grid: Dim3,
        block: Dim3,
        cluster: Dim3 | None = None,
        smem_bytes: int = 0,
        params: Mapping[str, bytes],
        memory: GlobalMemory,
        pdl: bool = False,
    ) -> Report:
        """As `launch`, for an entry that is compiled. `pdl`: programmatic launch, beside the grid
        before; whether the kernel waits for that one is checked with the other hazards."""
        start = time.perf_counter()
        shape = _checked_shape(kernel, grid, block, cluster, smem_bytes)
        run = Run(self, kernel, grid, block, shape, smem_bytes, memory)
        if pdl and run.watch is not None:
            run.watch.overlap()
        run.load(params)
        try:
            with np.errstate(all="ignore"):
                run.run()
        except EmulatorError as error:
            error.add_note(f"replay: {self.options()}")
            raise
        executed: Counter[str] = Counter()
        for b, count in zip(kernel.analysis.blocks, run.counts, strict=True):
            if count:
                for op in kernel.program.ops[b.start : b.end]:
                    executed[op.mnemonic] += count
        return Report(
            backend="emulator",
            entry=kernel.program.entry,
            elapsed_s=time.perf_counter() - start,
            ctas=grid.size,
            executed=executed,
            events=run.events,
            advice=tuple(run.watch.advice.values()) if run.watch is not None else (),
            registers=tuple(run.registers),
        )

    def options(self) -> str:
        """What it takes to see the same run again, as options of the command line."""
        words = f"--mode {self.mode} --schedule {self.schedule} --seed {self.seed}"
        return f"{words} --hazards" if self.hazards else words


def _checked_shape(
    kernel: Kernel, grid: Dim3, block: Dim3, cluster: Dim3 | None, smem_bytes: int
) -> Dim3:
    """The cluster shape. LaunchError lists what the entry's directives do not allow."""
    directives = kernel.program.directives
    required = directives.get("reqnctapercluster")
    wanted = Dim3(*(*required, 1, 1, 1)[:3]) if required else None
    shape = cluster or wanted or Dim3()
    problems = []
    if wanted is not None and cluster is not None and cluster != wanted:
        problems.append(f"cluster {cluster}, but .reqnctapercluster says {wanted}")
    reqntid = directives.get("reqntid")
    if reqntid and Dim3(*(*reqntid, 1, 1, 1)[:3]) != block:
        problems.append(f"block {block}, but .reqntid says {Dim3(*(*reqntid, 1, 1, 1)[:3])}")
    maxntid = directives.get("maxntid")
    if maxntid and block.size > int(np.prod(maxntid)):
        problems.append(f"block {block} has more threads than .maxntid {maxntid}")
    if not 1 <= block.size <= 1024:
        problems.append(f"block {block} has {block.size} threads; 1 to 1,024 are possible")
    if any(g % c for g, c in zip(grid, shape, strict=True)) or min(grid) < 1:
        problems.append(f"grid {grid} is not a multiple of the cluster {shape}")
    if shape.size > 16:
        problems.append(f"cluster {shape} has more than 16 CTAs")
    total = kernel.program.dynamic_offset - 0x400 + smem_bytes
    if total > SMEM_PER_CTA_BYTES:
        problems.append(f"{total:,} bytes of shared memory; the limit is {SMEM_PER_CTA_BYTES:,}")
    if problems:
        raise LaunchError(f"{kernel.program.entry} cannot be launched: " + "; ".join(problems))
    return shape
