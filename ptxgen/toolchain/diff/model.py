"""A comparison of two kernels' SASS, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

from ptxgen.toolchain.diagnostics import Resources
from ptxgen.toolchain.sass import Instruction, SassFunction
from ptxgen.view.base import Shown, View

Kind: TypeAlias = Literal["same", "changed", "moved", "added", "removed"]
KINDS: tuple[Kind, ...] = ("same", "changed", "moved", "added", "removed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two: a function, and what is known of it.

    `name` is what the reader calls it. `resources` and `dynamic_smem_bytes` are None where nobody
    said them (a listing has neither).
    """

    name: str
    function: SassFunction
    ptxas: str = ""
    cubin_sha256: str = ""
    resources: Resources | None = None
    dynamic_smem_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of the comparison. `a` is None for what was added, `b` for what was removed.

    A moved instruction has two lines: one with its `a` where it was, one with its `b` where it is.
    `note` says what changed, or where it moved.
    """

    kind: Kind
    a: Instruction | None = None
    b: Instruction | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionDiff:
    """One loop (without the loops inside it), or all code outside loops.

    `name` is its role ("MMA loop"), `inside` the roles of the loops around it, the outermost first,
    and `depth` the number of loops that its code is in.
    """

    name: str
    depth: int
    inside: tuple[str, ...] = ()
    lines: tuple[Line, ...]

    def count(self, kind: Kind) -> int:
        """Lines of a kind; a moved instruction counts once for each of its two lines."""
        return sum(line.kind == kind for line in self.lines)

    @property
    def equal(self) -> bool:
        return all(line.kind == "same" for line in self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpcodeRow:
    """How often an opcode stands in the two kernels."""

    category: str
    opcode: str
    a: int
    b: int

    @property
    def delta(self) -> int:
        return self.b - self.a


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRow:
    """One number of both kernels; None where it is not known."""

    name: str
    a: int | None
    b: int | None

    @property
    def delta(self) -> int | None:
        return None if self.a is None or self.b is None else self.b - self.a


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionDiff:
    """Two functions compared. `equal`: the same code but for addresses, labels and registers."""

    a: Side
    b: Side
    verdict: str
    regions: tuple[RegionDiff, ...]
    opcodes: tuple[OpcodeRow, ...]
    resources: tuple[ResourceRow, ...]

    @property
    def equal(self) -> bool:
        return all(region.equal for region in self.regions)

    def totals(self) -> Mapping[str, int]:
        """Lines by kind, over all regions."""
        return {kind: sum(region.count(kind) for region in self.regions) for kind in KINDS}

    def to_dict(self) -> dict[str, object]:
        return {
            "equal": self.equal,
            "verdict": self.verdict,
            "a": _side_dict(self.a),
            "b": _side_dict(self.b),
            "totals": self.totals(),
            "resources": [{**asdict(row), "delta": row.delta} for row in self.resources],
            "opcodes": [{**asdict(row), "delta": row.delta} for row in self.opcodes],
            "regions": [asdict(region) for region in self.regions],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff(Shown):
    """Two modules compared: functions in pairs, and the names of those without a partner.

    `text()` and `html()` show it; in a notebook it shows itself.
    """

    functions: tuple[FunctionDiff, ...]
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        return not self.only_a and not self.only_b and all(f.equal for f in self.functions)

    @property
    def verdict(self) -> str:
        """One line; of each function its own, where there are several."""
        parts = [
            f.verdict if len(self.functions) == 1 else f"{f.a.function.name}: {f.verdict}"
            for f in self.functions
        ]
        parts += [f"{name} is only in the first" for name in self.only_a]
        parts += [f"{name} is only in the second" for name in self.only_b]
        return "; ".join(parts)

    def view(self) -> View:
        """Verdict, resources, opcodes, and the code side by side."""
        from ptxgen.toolchain.diff.show import diff_view

        return diff_view(self)

    def to_dict(self) -> dict[str, object]:
        return {
            "equal": self.equal,
            "verdict": self.verdict,
            "functions": [f.to_dict() for f in self.functions],
            "only_a": list(self.only_a),
            "only_b": list(self.only_b),
        }


def _side_dict(side: Side) -> dict[str, object]:
    return {
        "name": side.name,
        "function": side.function.name,
        "ptxas": side.ptxas,
        "cubin_sha256": side.cubin_sha256,
        "resources": asdict(side.resources) if side.resources is not None else None,
        "dynamic_smem_bytes": side.dynamic_smem_bytes,
    }
