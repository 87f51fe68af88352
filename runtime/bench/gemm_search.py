"""The fastest config of a GEMM by measuring: build in parallel, check each, then time in turns.

`build` assembles what is missing from the cache in processes of its own. `search` takes one product
through three stages: every kernel must be right, every one gets a look, the close ones get rounds.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache

from ptxgen.api import Kernel, kernel_from
from ptxgen.configs.base import to_text
from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.configs.gemm_time import score
from runtime.bench.gemm_arena import Arena
from runtime.bench.gemm_cases import Case
from runtime.bench.timer import tournament

PEER = "peer"
MOST_SETS = 16  # input sets; small products stay in L2 with them
HOPELESS = 1.8  # times the best prediction: not run at all
KEPT = 1.5  # times the best: what is slower is left out of a result


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search measured, in microseconds of one call, by the text of the config.

    `us` are medians of rounds in turns, `looks` single looks at those that were not close, up to
    `KEPT` times the best. `tried` counts all that ran.
    """

    case: Case
    us: Mapping[str, float]
    looks: Mapping[str, float]
    peer_us: float | None
    tried: int

    @property
    def best(self) -> str:
        """The config that was fastest."""
        return min(self.us, key=lambda text: self.us[text])


def reference(problem: GemmProblem, config: GemmConfig) -> str:
    """The kernel reference of a problem with a config."""
    return "gemm:" + ",".join(filter(None, (to_text(problem), to_text(config))))


def build(references: Iterable[str], workers: int | None = None) -> Iterator[str]:
    """Assemble kernels into the cache, in processes; yields each reference when it is there.

    Processes start afresh, since a CUDA context does not survive a fork. Raises what the build of
    a kernel raises.
    """
    todo = list(dict.fromkeys(references))
    count = min(workers or os.cpu_count() or 1, max(len(todo) // 4, 1))
    if count == 1:
        for text in todo:
            yield _assemble(text)
        return
    with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(_assemble, text) for text in todo]):
            yield done.result()


def _assemble(text: str) -> str:
    _ = kernel_from(text).assembly
    return text


@lru_cache(maxsize=2048)
def kernel_of(problem: GemmProblem, config: GemmConfig) -> Kernel:
    """The kernel, one object however many shapes use it."""
    return kernel_from(reference(problem, config))


def promising(
    problem: GemmProblem, configs: Iterable[GemmConfig], m: int, n: int, k: int, sms: int = 132
) -> tuple[GemmConfig, ...]:
    """Those that the model does not find `HOPELESS` times slower than its best."""
    predicted = {config: score(problem, config, m, n, k, sms).us for config in configs}
    most = HOPELESS * min(predicted.values())
    return tuple(config for config, us in predicted.items() if us <= most)


def search(
    case: Case,
    configs: Iterable[GemmConfig],
    *,
    always: Iterable[GemmConfig] = (),
    peer: bool = True,
    rounds: int = 7,
    seconds: float = 5e-4,
) -> Found:
    """Measure one product with every config on the current CUDA device.

    Args:
        case: types, order and extents.
        configs: what is tried.
        always: configs that get rounds however slow they look, such as the picked one.
        peer: whether the case's torch function runs along.
        rounds: how often the close ones are timed, in turns.
        seconds: least duration of one timing.

    Raises:
        WrongResult: a kernel computed something else than the product.
    """
    arena = Arena(case, most_sets=MOST_SETS)
    runs = {}
    always = tuple(always)
    for config in dict.fromkeys((*always, *configs)):
        run = arena.run(kernel_of(arena.problem, config))
        arena.check(run)
        runs[to_text(config)] = run
    tried = len(runs)
    if peer:
        runs[PEER] = arena.peer()
        for i in range(arena.sets):
            runs[PEER](i)
    names = [*map(to_text, always), *([PEER] if peer else [])]
    samples, looks = tournament(runs, always=names, sets=arena.sets, rounds=rounds, seconds=seconds)
    us = {name: round(sample.median * 1e6, 3) for name, sample in samples.items()}
    peer_us = us.pop(PEER, None)
    most = KEPT * min(us.values())
    return Found(
        case=case, us=us, peer_us=peer_us, tried=tried,
        looks={
            name: round(look * 1e6, 3)
            for name, look in looks.items()
            if name not in us and name != PEER and look * 1e6 <= most
        },
    )  # fmt: skip
