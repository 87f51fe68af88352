"""Tuning: the fastest config of each class of products, measured here and kept in a table.

`ptxgen tune gemm` is this on the command line. The picker reads the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ptxgen import env
from ptxgen.configs.base import to_text
from ptxgen.configs.gemm import GemmConfig
from ptxgen.configs.gemm_candidates import candidates
from ptxgen.configs.gemm_pick import by_model
from ptxgen.configs.gemm_shape import Gemm
from ptxgen.configs.gemm_table import Winner, class_of, parsed, read, write
from ptxgen.configs.gemm_time import Work
from ptxgen.errors import ArgumentError, Violation
from runtime.bench.gemm_arena import PEERS
from runtime.bench.gemm_cases import ORDERS, Case
from runtime.bench.gemm_search import build, promising, reference, search
from runtime.bench.record import provenance

TIE = 0.005  # relative: times that are no difference
HEADLINE = "ptxgen tune: cannot measure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What one search found: the winner of a class, and how fast torch's own function was."""

    winner: Winner
    peer_us: float
    tried: int

    @property
    def gain(self) -> float:
        """Time of what the model had picked / time of the winner."""
        return self.winner.model_us / self.winner.us

    @property
    def ratio(self) -> float:
        """Time of torch / time of the winner."""
        return self.peer_us / self.winner.us


def parse_shapes(text: str, dtype: str = "bf16", order: str = "TN") -> tuple[Case, ...]:
    """Cases from lines like `4096x7168x2048`, `64x2112x7168 e4m3` or `4096x4096x4096 bf16 NN`.

    What a line leaves out is `dtype` and `order`; `#` starts a comment. Raises ArgumentError with
    every line that cannot be read.
    """
    found, broken = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        extents = words[0].lower().split("x")
        if len(extents) != 3 or not all(x.isdecimal() and int(x) for x in extents):
            broken.append(_line(number, line, "must begin with MxNxK, three positive integers"))
        elif len(words) > 3:
            broken.append(_line(number, line, "must be MxNxK, a type, an order, and no more"))
        elif (words[1:2] or [dtype])[0] not in PEERS:
            broken.append(_line(number, line, f"the type must be one of {', '.join(PEERS)}"))
        elif (words[2:] or [order])[0] not in ORDERS:
            broken.append(_line(number, line, f"the order must be one of {', '.join(ORDERS)}"))
        else:
            m, n, k = map(int, extents)
            found.append(
                Case(
                    group="tune", dtype=(words[1:2] or [dtype])[0], m=m, n=n, k=k,
                    order=(words[2:] or [order])[0],
                )
            )  # fmt: skip
    if broken:
        raise ArgumentError("ptxgen tune: shapes cannot be read", broken)
    return tuple(found)


def _line(number: int, line: str, rule: str) -> Violation:
    return Violation(field=f"line {number}", got=repr(line), rule=rule)


def require_clock(backend: str | None) -> int:
    """The SMs of the GPU that will be measured on. Raises ArgumentError where nothing can be."""
    if (backend or env.BACKEND.get()) == "emulator":
        raise _refused(
            "backend", "emulator", "must be cuda",
            "the emulator runs instructions in an order, not in time: it has no clock to tune by",
            "run it on a machine with a Hopper GPU; `ptxgen inspect gemm --m .. --n .. --k ..` "
            "says here what the model would pick, and why",
        )  # fmt: skip
    from runtime.cuda.device import Devices

    device = Devices().get(0)
    device.require_hopper()
    try:
        import torch  # noqa: F401
    except ImportError:
        raise _refused(
            "torch", "not installed", "must be there",
            "its allocator, graphs and events make the inputs and the clock, its product is the "
            "reference", "pip install torch",
        ) from None  # fmt: skip
    return device.sms


def _refused(field: str, got: str, rule: str, why: str, fix: str) -> ArgumentError:
    return ArgumentError(HEADLINE, [Violation(field=field, got=got, rule=rule, why=why, fix=fix)])


def untuned(cases: Iterable[Case], table: Path, sms: int) -> tuple[Case, ...]:
    """One case of each class that the table does not have."""
    known = {w.product for w in read(table) if w.sms == sms}
    first: dict[str, Case] = {}
    for case in cases:
        first.setdefault(class_of(case.problem, *case.extents), case)
    return tuple(case for product, case in first.items() if product not in known)


def configs(case: Case, sms: int) -> tuple[GemmConfig, ...]:
    """What is tried for one product."""
    return promising(
        case.problem, candidates(case.problem, case.m, case.n, sms), *case.extents, sms
    )


def kernels(cases: Iterable[Case], sms: int) -> tuple[str, ...]:
    """References of all kernels that these searches need, each once."""
    found = (reference(c.problem, config) for c in cases for config in configs(c, sms))
    return tuple(dict.fromkeys(found))


def assemble(references: Iterable[str]) -> Iterator[str]:
    """Build them in processes of their own; yields each when it is in the cache."""
    yield from build(references)


def coolest(case: Case, us: Mapping[str, float], sms: int) -> str:
    """The fastest config; of those within `TIE` of it, the one that reads least from L2.

    It draws the least power: at 8192^3, 256x200 and 128x192 in turns tie in bursts, and at the
    power limit 256x200 is 4% faster.
    """

    def read(text: str) -> float:
        return Work.of(Gemm(case.problem, parsed(text)), *case.extents, sms, 1).read

    least = min(us.values())
    return min((text for text, time in us.items() if time <= least * (1 + TIE)), key=read)


def tune(case: Case, table: Path, sms: int, commit: str | None = None) -> Tuned:
    """Search one product on the current device, and write the winner into the table.

    Every kernel is checked against float32 (integers: exactly) before it is timed. Raises
    WrongResult if one is wrong.
    """
    model = by_model(case.problem, *case.extents, sms=sms)[0].config
    found = search(case, configs(case, sms), always=[model])
    origin = provenance("random normal", commit)
    best = coolest(case, found.us, sms)
    winner = Winner(
        product=class_of(case.problem, *case.extents), m=case.m, n=case.n, k=case.k,
        config=best, us=found.us[best], model=to_text(model),
        model_us=found.us[to_text(model)], device=origin.device, sms=sms, date=origin.date,
        commit=origin.commit,
    )  # fmt: skip
    write(table, [winner])
    assert found.peer_us is not None
    return Tuned(winner=winner, peer_us=found.peer_us, tried=found.tried)
