"""Ask the hardware every question of this folder, and record the answers.

    PYTHONPATH=. python examples/microbench/run_all.py --out examples/results/microbench.jsonl

Each script runs in a process of its own, so that a fault or a hang is an answer, too. Scripts that
measure time run alone; the rest share the GPU. `--raw FOLDER` keeps what was observed, as arrays.
With `--only`, what the record says of other scripts stays.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from lab import run_guarded

HERE = Path(__file__).parent
LIMIT_S = 45.0  # of a script; launches inside are given up after 8 s
TOGETHER = ("tma_store_extent", "tma_transaction_bytes", "tma_element_strides",
            "tma_coordinates", "tensor_map_verdicts", "tf32_operands", "descriptor_roles",
            "descriptor_base_offset", "sparse_metadata", "accumulation", "accumulation_forms",
            "float_rules", "occupancy")  # fmt: skip
ALONE = (
    "latency",
    "tma_latency",
    "l2_feed",
    "wgmma_ceiling",
    "try_wait",
    "register_pool",
)  # the last may hang
LIMITS = {"register_pool": 150.0, "tma_coordinates": 150.0, "accumulation_forms": 120.0}
Row = dict[str, object]


def ask(script: str, options: Sequence[str]) -> list[Row]:
    """The lines that a script says; one more where it did not end well."""
    start = time.perf_counter()
    ended = run_guarded(
        [sys.executable, str(HERE / f"{script}.py"), *options], LIMITS.get(script, LIMIT_S)
    )
    rows: list[Row] = [json.loads(x) for x in ended.out.splitlines() if x.startswith("{")]
    if ended.code != 0:
        how = "hangs" if ended.code is None else f"ends with {ended.code}"
        rows.append(
            {
                "fact": script,
                "finding": f"{how}: {_last(ended.err)}",
                "error": _relative(ended.err[-2000:]),
            }
        )
    seconds = round(time.perf_counter() - start, 2)
    return [
        {**row, "script": f"examples/microbench/{script}.py", "seconds": seconds} for row in rows
    ]


def _relative(text: str) -> str:
    """A traceback without the folder of this checkout."""
    return text.replace(f"{HERE.parents[1]}/", "")


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "Error" in line), lines[-1] if lines else "no words")


def machine() -> Row:
    """Which GPU and driver; "none" where there is neither."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        text = subprocess.run(
            command, capture_output=True, text=True, timeout=20, check=True
        ).stdout
        device, driver = (cell.strip() for cell in text.splitlines()[0].split(","))
    except (OSError, subprocess.SubprocessError, IndexError):
        device = driver = "none"
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return {"device": device, "driver": driver, "date": date}


def write(path: Path, rows: Iterable[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    order = [f"examples/microbench/{script}.py" for script in (*TOGETHER, *ALONE)]
    rows = sorted(rows, key=lambda row: order.index(str(row["script"])))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def others(path: Path, scripts: Iterable[str]) -> list[Row]:
    """The rows of a record that are not of these scripts."""
    mine = {f"examples/microbench/{script}.py" for script in scripts}
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [row for row in map(json.loads, lines) if row["script"] not in mine]


def compared(row: Row) -> Row:
    """A row of the record with what the emulator of this checkout observes, by digests."""
    there = row.get("digests")
    if not isinstance(there, dict):
        return row
    fresh = ask(Path(str(row["script"])).stem, ["--backend", "emulator"])
    here = fresh[-1].get("digests")
    if fresh[-1].get("backend") == "none":
        return row
    if not isinstance(here, dict):
        return {**row, "emulator": str(fresh[-1]["finding"]).removeprefix("the emulator ")}
    different = [name for name in there if there[name] != here.get(name)]
    return {**row, "emulator": f"differs in {'; '.join(different)}" if different else "agrees"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=HERE.parent / "results" / "microbench.jsonl")
    parser.add_argument("--raw", type=Path, help="default: raw beside --out")
    parser.add_argument("--only", nargs="+", choices=[*TOGETHER, *ALONE])
    parser.add_argument("--backend", choices=("cuda", "emulator"), help="default: a GPU if any")
    parser.add_argument(
        "--compare", action="store_true",
        help="ask the emulator alone, and say where it differs from the record; needs no GPU",
    )  # fmt: skip
    options = parser.parse_args()
    if options.compare:
        lines = options.out.read_text(encoding="utf-8").splitlines()
        write(options.out, [compared(json.loads(line)) for line in lines])
        return
    passed = ["--raw", str(options.raw or options.out.parent / "raw")]
    passed += ["--backend", options.backend] if options.backend else []
    wanted = set(options.only or (*TOGETHER, *ALONE))
    where = machine()
    rows = others(options.out, wanted) if options.only else []

    def add(answers: Iterable[list[Row]]) -> None:
        for answer in answers:
            for row in answer:
                rows.append({**row, **where})
                print(f"{row['fact']}: {str(row['finding'])[:300]}", flush=True)
            write(options.out, rows)  # what is known is kept, whatever comes next

    with ThreadPoolExecutor(4) as pool:
        add(pool.map(lambda script: ask(script, passed), [s for s in TOGETHER if s in wanted]))
    add(ask(script, passed) for script in ALONE if script in wanted)


if __name__ == "__main__":
    main()
