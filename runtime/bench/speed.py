"""README's tables of speed, written from the records: nothing in them is typed by hand.

python -m runtime.bench.speed      rewrites what stands between the two marks in README.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from ptxgen.configs.base import from_text, options
from ptxgen.configs.gemm import GemmConfig
from ptxgen.configs.gemm_pick import pick
from ptxgen.kernels.registry import parse_reference
from runtime.bench import gemm_host
from runtime.bench.gemm_cases import cases
from runtime.bench.gemm_regret import Regret
from runtime.bench.record import read

ROOT = Path(__file__).parents[2]
BEGIN, END = "<!-- speed: written by runtime.bench.speed -->", "<!-- end of speed -->"
SIXTEEN_BIT = ("square", "short_k", "odd", "small_m")
RESULTS = ROOT / "examples" / "results"
NAMES = {
    "order": "operand order {order}", "fp8": "fp8, scale a tensor", "tf32": "tf32", "int8": "int8",
}  # fmt: skip

# Fields of a case, and what a row calls them.
FIELDS = {name: name for name in ("dtype", "order", "m", "n", "k", "scaling")} | {"group": "case"}

Row = Mapping[str, object]


def number(row: Row, name: str) -> float:
    """A number of a row."""
    return float(str(row[name]))


def section(rows: Sequence[Row], host: Sequence[Row], searched: Sequence[Row]) -> str:
    """What stands between the marks: from the records of contests, of host time, of searches."""
    dense = [r for r in rows if r["case"] in SIXTEEN_BIT]
    others = [r for r in rows if r["case"] in NAMES]
    parts = [
        _origin(rows),
        "\n".join(_dense(dense)),
        "\n".join(_others(others)),
        "\n".join(_summary(rows, dense)),
        _picked(rows),
        "\n".join(f"- {gemm_host.line(row)}" for row in host),
        _regret(searched),
    ]
    return "\n\n".join(part for part in parts if part)


def _origin(rows: Sequence[Row]) -> str:
    def all_of(name: str) -> str:
        return ", ".join(sorted({str(row[name]) for row in rows}))

    days = sorted({str(row["date"])[:10] for row in rows})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return (
        f"{all_of('device')}, driver {all_of('driver')}, torch {all_of('torch')}, ptxas "
        f"{all_of('ptxas')}, {when}."
    )


def _extents(row: Row) -> str:
    return f"{row['m']} x {row['n']} x {row['k']}"


def _dense(rows: Sequence[Row]) -> Iterator[str]:
    columns = "TFLOP/s | ratio | control | rested"
    yield f"| m x n x k | bf16, {columns} | f16, {columns} |"
    yield "|---" * 9 + "|"
    by_type = {(row["dtype"], _extents(row)): row for row in rows}
    for extents in dict.fromkeys(_extents(row) for row in rows):
        cells = [_cells(by_type.get((dtype, extents))) for dtype in ("bf16", "f16")]
        yield f"| {extents} | {' | '.join(cells)} |"


def _cells(row: Row | None) -> str:
    if row is None:
        return " | | | "
    return (
        f"{number(row, 'ours_tflops'):.0f} | {number(row, 'ratio'):.3f} | "
        f"{number(row, 'control'):.3f} | {number(row, 'rested'):.3f}"
    )


def _others(rows: Sequence[Row]) -> Iterator[str]:
    if rows:
        yield "| | m x n x k | against | TFLOP/s | ratio | control | rested |"
        yield "|---" * 7 + "|"
    for row in rows:
        name = NAMES[str(row["case"])].format(**row)
        scaling = "scale a row" if row["scaling"] == "row_wise" else "scale a tensor"
        name = name.replace("scale a tensor", scaling)
        yield f"| {name} | {_extents(row)} | `{row['peer']}` | {_cells(row)} |"


def _summary(rows: Sequence[Row], dense: Sequence[Row]) -> Iterator[str]:
    ratios = [number(row, "ratio") for row in dense]
    even = sum(ratio >= 1 for ratio in ratios)
    yield (
        f"The geometric mean of the {len(ratios)} ratios of the 16-bit table is "
        f"{geometric_mean(ratios):.3f}; {even} of them are at least 1, the least is "
        f"{min(ratios):.3f}. Rested, the mean is "
        f"{geometric_mean([number(row, 'rested') for row in dense]):.3f}, and the least "
        f"{min(number(row, 'rested') for row in dense):.3f}."
    )
    for row in rows:
        if row["case"] == "sustained":
            tflops, ceiling = number(row, "ours_tflops"), _ceiling()
            yield (
                f"With {_extents(row)} in {row['dtype']} back to back for seconds, where the power "
                f"limit decides, the ratio is {number(row, 'ratio'):.3f} ({tflops:.0f} TFLOP/s, "
                f"{tflops / ceiling:.2f} of the {ceiling:.0f} that wgmma alone sustains: "
                "`examples/microbench/wgmma_ceiling.py`)."
            )


def _ceiling() -> float:
    """TFLOP/s of wgmma on random data that lies in shared memory, at the power limit."""
    rows = read(RESULTS / "microbench.jsonl")
    numbers: Any = next(row["numbers"] for row in rows if row["fact"] == "wgmma_ceiling")
    return float(numbers["TFLOP/s, second second"])


def _picked(rows: Sequence[Row]) -> str:
    """How many rows ran with what would be picked now; the others are of an earlier picker."""
    same = 0
    for row in rows:
        case = next(c for c in cases() if all(getattr(c, k) == row[v] for k, v in FIELDS.items()))
        fields = parse_reference(str(row["config"]))[1]
        kept = {name: text for name, text in fields.items() if name in options(GemmConfig)}
        same += from_text(GemmConfig, kept) == pick(case.problem, *case.extents)
    return f"{same} of these {len(rows)} rows ran with the config that is picked today."


def _regret(searched: Sequence[Row]) -> str:
    held_out = [row for row in searched if row["case"] == "held_out"]
    return (
        "What the picker loses against the fastest of all promising configs, on random shapes that "
        f"no rate was fitted to (`python examples/regret.py`): {Regret.of(held_out)}"
    )


def sections_of(root: Path = ROOT) -> str:
    """The section that the records of this checkout ask for."""
    results = root / "examples" / "results"
    names = ("gemm.jsonl", "gemm_host.jsonl", "regret.jsonl")
    return section(*(read(results / name) for name in names))


def main() -> None:
    """Rewrite README.md."""
    path = ROOT / "README.md"
    before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"README.md has no {BEGIN} ... {END}")
    path.write_text(f"{before}{BEGIN}\n\n{sections_of()}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
