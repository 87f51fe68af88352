"""Our rules and encoder against a driver's recorded answers.

The file is JSON lines. The first is a header; each other line is one question and its answer:

    {"base": ADDRESS, "fields": [...], "driver": 13000}
    [[dtype, rank, addr_offset, dims, strides_bytes, box, elem_strides,
      interleave, swizzle, l2, oob], accepted, the 128 bytes in hex | the error's name]

dims and the lists after it are in the driver's order (innermost first) and modes are the enum
values of cuda.h, since that is what the driver was asked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa.arch import TENSOR_MAP_BYTES
from ptxgen.layout.tensor_map.bits import encode
from ptxgen.layout.tensor_map.rules import RULES, broken_rules
from ptxgen.layout.tensor_map.spec import (
    FILLS,
    INTERLEAVES,
    MAP_TYPES,
    PROMOTIONS,
    SWIZZLE_SPANS,
    TensorMapSpec,
)

_FIELDS = (
    "dtype", "rank", "addr_offset", "dims", "strides_bytes", "box", "elem_strides",
    "interleave", "swizzle", "l2", "oob",
)  # fmt: skip
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """One line where we and the driver differ."""

    line: int
    kind: str  # "we refuse" | "we accept" | "bytes differ"
    detail: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind}: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The outcome over one file. `ok` if every answer and every byte agree."""

    path: str
    driver: int
    accepted: int  # by the driver
    refused: int
    reasons: Mapping[str, int] = field(default_factory=dict)  # rule -> refused rows that break it
    disagreements: tuple[Disagreement, ...] = ()

    @property
    def rows(self) -> int:
        return self.accepted + self.refused

    @property
    def ok(self) -> bool:
        return self.rows > 0 and not self.disagreements

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "path": self.path,
            "driver": self.driver,
            "rows": self.rows,
            "accepted": self.accepted,
            "refused": self.refused,
            "ok": self.ok,
            "reasons": dict(self.reasons),
            "disagreements": [
                {"line": d.line, "kind": d.kind, "detail": d.detail} for d in self.disagreements
            ],
        }

    def __str__(self) -> str:
        major, minor = self.driver // 1000, self.driver % 1000 // 10
        agreed = self.rows - len(self.disagreements)
        lines = [
            f"{self.path}: {self.rows:,} questions to a CUDA {major}.{minor} driver, "
            f"{self.accepted:,} accepted, {self.refused:,} refused",
            f"{agreed:,} of {self.rows:,} agree"
            + (" (answer, and all 128 bytes of each map)" if self.ok else ""),
        ]
        if self.reasons:
            lines.append("rules that the refused rows break (a row may break several):")
            lines += [f"  {count:5,}  {rule}" for rule, count in self.reasons.items()]
        return "\n".join(lines + [str(d) for d in self.disagreements])


def compare_with_driver(path: str | Path) -> Comparison:
    """Asks our rules and encoder every question in the file and compares the answers.

    Raises ArgumentError naming the file and line for a row that cannot be read.
    """
    recording = _read(Path(path))
    reasons: Counter[str] = Counter()
    found: list[Disagreement] = []
    for row in recording.rows:
        broken = broken_rules(row.spec)
        if row.answer is None:
            reasons.update({rule for rule, _ in broken})
            if not broken:
                found.append(_differs(row, "we accept", row.spec.describe()))
        elif broken:
            found.append(
                _differs(row, "we refuse", "; ".join(f"{rule}: {v}" for rule, v in broken))
            )
        elif (ours := encode(row.spec)) != row.answer:
            found.append(_differs(row, "bytes differ", _first_difference(ours, row.answer)))
    accepted = sum(row.answer is not None for row in recording.rows)
    return Comparison(
        path=str(path),
        driver=recording.driver,
        accepted=accepted,
        refused=len(recording.rows) - accepted,
        reasons={rule: reasons[rule] for rule in RULES if reasons[rule]},
        disagreements=tuple(found),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    line: int
    spec: TensorMapSpec
    answer: bytes | None  # None: the driver refused


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recording:
    driver: int
    rows: tuple[_Row, ...]


def _differs(row: _Row, kind: str, detail: str) -> Disagreement:
    return Disagreement(line=row.line, kind=kind, detail=detail)


def _first_difference(ours: bytes, theirs: bytes) -> str:
    at = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b) & ~3
    word = slice(at, at + 4)
    return f"bytes at 0x{at:02x} are {ours[word].hex()}, the driver has {theirs[word].hex()}"


def _read(path: Path) -> _Recording:
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(str(path), "", str(error)) from None
    if not lines:
        raise _unreadable(str(path), "line 1", "the file is empty")
    rows: list[_Row] = []
    base = driver = 0
    for number, text in enumerate(lines, start=1):
        try:
            data = json.loads(text)
            if number == 1:
                base, driver = _header(data)
            else:
                rows.append(_row(number, data, base))
        except (ValueError, TypeError, KeyError) as error:
            raise _unreadable(str(path), f"line {number}", str(error)) from None
    return _Recording(driver=driver, rows=tuple(rows))


def _header(data: Any) -> tuple[int, int]:
    if not isinstance(data, dict) or not {"base", "fields", "driver"} <= data.keys():
        raise ValueError("the first line must be an object with base, fields and driver")
    if tuple(data["fields"]) != _FIELDS:
        raise ValueError(f"fields are {data['fields']}, expected {list(_FIELDS)}")
    return _int("base", data["base"]), _int("driver", data["driver"])


def _row(number: int, data: Any, base: int) -> _Row:
    if not isinstance(data, list) or len(data) != 3:
        raise ValueError("must be [question, accepted, answer]")
    question, accepted, answer = data
    if not isinstance(question, list) or len(question) != len(_FIELDS):
        raise ValueError(f"the question must have {len(_FIELDS)} fields: {', '.join(_FIELDS)}")
    if not isinstance(accepted, bool) or not isinstance(answer, str):
        raise ValueError("the answer must be true and 128 bytes in hex, or false and an error name")
    spec = _spec(dict(zip(_FIELDS, question, strict=True)), base)
    if not accepted:
        return _Row(line=number, spec=spec, answer=None)
    try:
        encoded = bytes.fromhex(answer)
    except ValueError:
        encoded = b""
    if len(encoded) != TENSOR_MAP_BYTES:
        raise ValueError(f"the answer must be {TENSOR_MAP_BYTES} bytes in hex")
    return _Row(line=number, spec=spec, answer=encoded)


def _spec(question: Mapping[str, Any], base: int) -> TensorMapSpec:
    """The question in NumPy order, with the innermost stride that the driver does not ask for."""
    if question["dtype"] not in MAP_TYPES:
        raise ValueError(f"unknown dtype {question['dtype']!r}; known: {', '.join(MAP_TYPES)}")
    rank = _int("rank", question["rank"])
    lists = {
        name: _ints(name, question[name], rank - (name == "strides_bytes"))
        for name in ("dims", "strides_bytes", "box", "elem_strides")
    }
    return TensorMapSpec(
        dtype=question["dtype"],
        address=base + _int("addr_offset", question["addr_offset"]),
        shape=lists["dims"],
        strides=(*lists["strides_bytes"], MAP_TYPES[question["dtype"]].bytes),
        box=lists["box"],
        element_strides=lists["elem_strides"],
        interleave=_mode(question, "interleave", INTERLEAVES),
        swizzle=_mode(question, "swizzle", SWIZZLE_SPANS),
        l2=_mode(question, "l2", PROMOTIONS),
        fill=_mode(question, "oob", FILLS),
    )


def _int(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    return value


def _ints(name: str, value: Any, count: int) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) != count:
        raise ValueError(f"{name} must be a list of {count} integers, got {value!r}")
    return tuple(_int(name, v) for v in reversed(value))


def _mode(question: Mapping[str, Any], name: str, values: tuple[T, ...]) -> T:
    code = _int(name, question[name])
    if not 0 <= code < len(values):
        raise ValueError(f"{name} must be 0..{len(values) - 1}, got {code}")
    return values[code]


def _unreadable(path: str, where: str, reason: str) -> ArgumentError:
    return ArgumentError(
        "the recorded driver answers cannot be read",
        [
            Violation(
                field=path,
                got=where or "unreadable",
                rule=reason,
                fix="each line after the header is [question, accepted, 128 bytes in hex]",
            )
        ],
    )
