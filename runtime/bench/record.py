"""Records of measurements: one JSON object a line, each with where and how it was taken."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

_QUERY = ("name", "driver_version", "clocks.sm", "clocks.max.sm", "power.draw", "power.limit",
          "temperature.gpu")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Device, clocks and power as found (never changed), software, and the code's commit."""

    date: str
    device: str
    driver: str
    sm_clock_mhz: str
    sm_clock_max_mhz: str
    power_w: str
    power_limit_w: str
    temperature_c: str
    torch: str
    cuda: str
    commit: str
    inputs: str


def _smi() -> dict[str, str]:
    try:
        text = subprocess.run(
            ["nvidia-smi", f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=20, check=True,
        ).stdout.splitlines()[0]  # fmt: skip
    except (OSError, subprocess.SubprocessError, IndexError):
        return dict.fromkeys(_QUERY, "unknown")
    return dict(zip(_QUERY, (cell.strip() for cell in text.split(",")), strict=False))


def _commit() -> str:
    try:
        return subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"],
            capture_output=True, text=True, timeout=20, check=True, cwd=Path(__file__).parent,
        ).stdout.strip()  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def provenance(inputs: str, commit: str | None = None) -> Provenance:
    """What is known of this machine now; call it right after the measurement, while it is warm.

    `inputs` says what was multiplied; `commit` names the code where it travels without its history.
    """
    import torch

    smi = _smi()
    return Provenance(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        device=smi["name"],
        driver=smi["driver_version"],
        sm_clock_mhz=smi["clocks.sm"],
        sm_clock_max_mhz=smi["clocks.max.sm"],
        power_w=smi["power.draw"],
        power_limit_w=smi["power.limit"],
        temperature_c=smi["temperature.gpu"],
        torch=torch.__version__,
        cuda=str(torch.version.cuda),
        commit=commit or _commit(),
        inputs=inputs,
    )


def write(path: Path, rows: Iterable[Mapping[str, object]], origin: Provenance) -> None:
    """Replace the record at `path` by these rows, each with its provenance. All or nothing."""
    _replace(path, [{**row, **asdict(origin)} for row in rows])


def _replace(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    partial.replace(path)


def read(path: Path) -> list[dict[str, object]]:
    """The rows of a record."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


class Journal:
    """A record that grows row by row, so that a run which was stopped goes on where it was.

    A row is known by the values of its `key` fields; a later row replaces an earlier one of the
    same key. What stands in the file is kept, whoever wrote it: `close` only removes what was
    replaced. Each row carries its own provenance.
    """

    def __init__(self, path: Path, key: Sequence[str]) -> None:
        self.path = path
        self.key = tuple(key)
        self._rows: dict[tuple[object, ...], dict[str, object]] = {}
        for row in read(path) if path.is_file() else []:
            self._rows[self._key(row)] = row

    def _key(self, row: Mapping[str, object]) -> tuple[object, ...]:
        return tuple(row.get(name) for name in self.key)

    def find(self, **same: object) -> dict[str, object] | None:
        """The first row with these values in these fields, if there is one."""
        wanted = same.items()
        return next((r for r in self._rows.values() if wanted <= r.items()), None)

    def add(self, row: Mapping[str, object], origin: Provenance) -> dict[str, object]:
        """Append a row to the file at once."""
        whole = {**row, **asdict(origin)}
        self._rows[self._key(whole)] = whole
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(whole) + "\n")
        return whole

    @property
    def rows(self) -> list[dict[str, object]]:
        """One row a key, in the order in which keys first came."""
        return list(self._rows.values())

    def close(self) -> None:
        """Rewrite the file with one row a key."""
        _replace(self.path, self.rows)
