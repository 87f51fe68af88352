"""Winners that were measured: which config was fastest for a class of products, on which chip.

Two products are of one class where every candidate cuts them into the same tiles and steps: M in
the same block of 64 (of 8, up to 64 rows), N in the same block of 32, K in the same step of 64
elements of 16 bits; types of equal size and kind, orders and batches equal. What wins for one of
them wins for all.

    ptxgen/configs/gemm_h200.json          ships with the package
    PTXGEN_CACHE_DIR/tuned/gemm.json       what `ptxgen tune` found here; it counts first

Both files hold `{"winners": [{"class": ..., "config": ..., "us": ..., ...}, ...]}`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import Any

from ptxgen import env
from ptxgen.configs.base import from_text
from ptxgen.configs.gemm import GemmConfig, GemmProblem
from ptxgen.errors import CacheError

SHIPPED = Path(__file__).with_name("gemm_h200.json")
ROWS, FEW_ROWS, COLUMNS, STEP_BYTES = 64, 8, 32, 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """One measurement: the fastest config of a product, and what the model had picked.

    `product` is the class that it stands for, `m`, `n`, `k` what was run. Times in microseconds.
    """

    product: str
    m: int
    n: int
    k: int
    config: str  # as `to_text` spells it
    us: float
    model: str  # what the model alone would have picked
    model_us: float
    device: str
    sms: int
    date: str
    commit: str

    def parsed(self) -> GemmConfig:
        """The config. Raises KernelReferenceError where this version has no such field."""
        return parsed(self.config)


def parsed(config: str) -> GemmConfig:
    """A config from its text in a record."""
    return from_text(GemmConfig, dict(item.split("=", 1) for item in config.split(",") if item))


def class_of(problem: GemmProblem, m: int, n: int, k: int, batches: int = 1) -> str:
    """The class of a product, e.g. "16-bit>2 k,k 64x2112x7168": the largest product in it."""
    block = FEW_ROWS if m <= ROWS else ROWS
    step = STEP_BYTES * 8 // problem.a.bits
    extents = (ceil(m / block) * block, ceil(n / COLUMNS) * COLUMNS, ceil(k / step) * step)
    kind = "int" if problem.accumulator == "s32" else "bit"
    count = f" x{batches}" if problem.batched else ""
    return (
        f"{problem.a.bits}-{kind}>{problem.output.bytes} {problem.a_major},{problem.b_major} "
        f"{'x'.join(map(str, extents))}{count}"
    )


class Tables:
    """Winners by class, read from files when first asked for. The first file that knows one counts.

    Safe for threads. Raises CacheError for a file that cannot be read as a table.
    """

    def __init__(self) -> None:
        self._read: dict[Path, Mapping[tuple[str, int], Winner]] = {}
        self._lock = threading.Lock()

    def find(self, product: str, sms: int) -> Winner | None:
        """The winner of a class on a chip with that many SMs."""
        for path in (user_table(), SHIPPED):
            found = self._table(path).get((product, sms))
            if found is not None:
                return found
        return None

    def _table(self, path: Path) -> Mapping[tuple[str, int], Winner]:
        with self._lock:
            if path not in self._read:
                self._read[path] = {(w.product, w.sms): w for w in read(path)}
            return self._read[path]

    def forget(self) -> None:
        """Read the files anew when next asked."""
        with self._lock:
            self._read.clear()


TABLES = Tables()


def user_table() -> Path:
    """Where this machine keeps what it tuned."""
    return env.CACHE_DIR.get() / "tuned" / "gemm.json"


def read(path: Path) -> tuple[Winner, ...]:
    """The winners of a file; none where there is no file. Raises CacheError for anything else."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    try:
        rows: list[dict[str, Any]] = json.loads(text)["winners"]
        return tuple(Winner(**row) for row in rows)
    except (ValueError, KeyError, TypeError) as error:
        raise CacheError(
            f"{path}: not a table of tuned configs ({error})\n"
            "Cure: delete it, and run `ptxgen tune` again."
        ) from None


def write(path: Path, winners: Iterable[Winner]) -> None:
    """Add winners to a file, each in place of an older one of its class and chip."""
    kept = {(w.product, w.sms): w for w in (*read(path), *winners)}
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = ",\n".join(json.dumps(asdict(kept[key])) for key in sorted(kept))
    partial = path.with_suffix(".partial")
    partial.write_text(f'{{"winners": [\n{rows}\n]}}\n', encoding="utf-8")
    partial.replace(path)
    TABLES.forget()
