"""SASS as data: instructions, functions, and the questions that one asks of them.

Opcode patterns, the same everywhere (`opcode_regex`):

    HGMMA               any HGMMA, whatever follows
    HGMMA.64x256x16     that shape; further modifiers may follow
    UTMALDG.2D$         exactly this: no further modifier
    UTMALDG.*.MULTICAST a star stands for one modifier
    LDL|STL             either
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache

from ptxgen.view import Folded, Heading, Row, Shown, Stack, Table, View
from ptxgen.view.base import TEXT_COLUMNS
from ptxgen.view.lexical import sass as sass_code

# Opcode (up to the first dot) -> group. What is in no row is "alu": integer, float, conversion,
# moves, predicates. A trailing star matches any ending.
CATEGORIES: tuple[tuple[str, str], ...] = (
    ("tensor", "HGMMA QGMMA IGMMA BGMMA HMMA IMMA DMMA BMMA QMMA"),
    ("tma", "UTMA* UBLK*"),
    ("mbarrier", "SYNCS"),
    (
        "sync",
        "BAR WARPSYNC WARPGROUP WARPGROUPSET UCGABAR_ARV UCGABAR_WAIT MEMBAR FENCE DEPBAR "
        "LDGDEPBAR ERRBAR CGAERRBAR ACQBULK PREEXIT NANOSLEEP CCTL USETMAXREG",
    ),
    (
        "memory",
        "LD LDG LDS LDL LDSM LDC LDGSTS ULDC ST STG STS STL STSM STAS ATOM ATOMG ATOMS RED REDG "
        "REDAS",
    ),
    ("warp", "SHFL VOTE VOTEU ELECT MATCH REDUX R2UR"),
    (
        "control",
        "BRA BRX* JMP JMX* CALL RET EXIT BSSY BSYNC BREAK BMOV YIELD KILL BPT LEPC NOP",
    ),
)
CATEGORY_NAMES = (*(name for name, _ in CATEGORIES), "alu")

# Warpgroup-wide tensor instructions: the asynchronous ones of wgmma.
GMMA = "HGMMA|QGMMA|IGMMA|BGMMA"

_OPEN_LINES = 60  # a longer listing is folded away on a page
_SHOWN_OPCODES = 8  # of a category
_HEX = re.compile(r"0x[0-9a-fA-F]+$")
_BRANCHES = frozenset({"BRA", "JMP", "BSSY", "CALL", "WARPSYNC"})


@lru_cache(maxsize=1024)
def opcode_regex(pattern: str) -> re.Pattern[str]:
    """The regular expression of an opcode pattern (see the top of this file)."""
    alternatives = []
    for part in pattern.split("|"):
        body = re.escape(part.removesuffix("$")).replace(r"\*", r"[^.]*")
        alternatives.append(body + ("" if part.endswith("$") else r"(?:\..*)?"))
    return re.compile("|".join(alternatives))


@lru_cache(maxsize=1024)
def category(opcode: str) -> str:
    """The group of an opcode, one of CATEGORY_NAMES."""
    base = opcode.split(".", 1)[0]
    for name, members in CATEGORIES:
        if any(opcode_regex(member).fullmatch(base) for member in members.split()):
            return name
    return "alu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One SASS instruction. `address` is its byte offset in the function.

    `predicate` has its at sign ("@!P0") or is empty; `line` is the PTX line (from 1) where known.
    """

    address: int
    opcode: str
    operands: str = ""
    predicate: str = ""
    function: str = ""
    line: int | None = None

    @property
    def base(self) -> str:
        """The opcode without modifiers: HGMMA."""
        return self.opcode.split(".", 1)[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        return tuple(self.opcode.split(".")[1:])

    @property
    def operand_list(self) -> tuple[str, ...]:
        """Operands split at the commas between them (`desc[UR4][R2.64]` is one)."""
        return tuple(part.strip() for part in self.operands.split(",")) if self.operands else ()

    @property
    def target(self) -> int | None:
        """The address that this instruction may continue at, other than the next one."""
        if self.base not in _BRANCHES:
            return None
        found = _HEX.search(self.operands)
        return int(found.group(), 16) if found else None

    def matches(self, pattern: str) -> bool:
        return opcode_regex(pattern).fullmatch(self.opcode) is not None

    def __str__(self) -> str:
        where = f"  // PTX line {self.line}" if self.line is not None else ""
        operands = ", ".join(self.operand_list)
        text = f"{self.predicate:>5} {self.opcode} {operands}".rstrip()
        return f"/*{self.address:04x}*/ {text:<72}{where}".rstrip()


def count(instructions: Iterable[Instruction], pattern: str) -> int:
    """How many instructions match an opcode pattern."""
    return sum(i.matches(pattern) for i in instructions)


def mix(instructions: Iterable[Instruction]) -> Mapping[str, Mapping[str, int]]:
    """Opcode histogram by category: {"tensor": {"HGMMA.64x256x16.F32.BF16": 16}, ...}.

    Categories come in the order of CATEGORY_NAMES, opcodes by falling count.
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in CATEGORY_NAMES}
    for instruction in instructions:
        counts[category(instruction.opcode)][instruction.opcode] += 1
    return {name: dict(c.most_common()) for name, c in counts.items() if c}


def mix_table(instructions: Iterable[Instruction]) -> str:
    """The histogram as text, one line an opcode."""
    lines = []
    for name, opcodes in mix(instructions).items():
        lines.append(f"{name} {sum(opcodes.values())}")
        lines += [f"  {n:>5}  {opcode}" for opcode, n in opcodes.items()]
    return "\n".join(lines)


def mix_view(kinds: Mapping[str, Mapping[str, int]]) -> Table:
    """What `mix` gives as a table, one row a category: the most frequent opcodes of each."""

    def most(counts: Mapping[str, int]) -> str:
        shown = [f"{n} {opcode}" for opcode, n in counts.items()][:_SHOWN_OPCODES]
        rest = sum(counts.values()) - sum(list(counts.values())[:_SHOWN_OPCODES])
        return ", ".join([*shown, *([f"{rest} others"] if rest else [])])

    rows = (Row((kind, str(sum(n.values())), most(n))) for kind, n in kinds.items())
    return Table(columns=("", "", ""), rows=tuple(rows), left=frozenset({0, 2}))


@dataclass(frozen=True, slots=True, kw_only=True)
class SassFunction(Shown):
    """One kernel. `instructions` has everything; `code` leaves out the padding at its end."""

    name: str
    instructions: tuple[Instruction, ...]

    @property
    def code(self) -> tuple[Instruction, ...]:
        """Instructions without the tail that no warp reaches: a branch to itself, then NOPs."""
        end = len(self.instructions)
        while end and self.instructions[end - 1].opcode == "NOP":
            end -= 1
        last = self.instructions[end - 1] if end else None
        if last is not None and last.opcode == "BRA" and last.target == last.address:
            end -= 1
        return self.instructions[:end]

    @property
    def registers_named(self) -> int:
        """One more than the highest general register that an operand names.

        A lower bound of what the code touches: R24 of a 128-bit store or of a wgmma stands for
        R24 and those behind it. ptxas's own number is `Resources.registers`.
        """
        names = (m for i in self.code for m in re.findall(r"\bR(\d+)\b", i.operands))
        return max((int(n) + 1 for n in names), default=0)

    def view(self) -> View:
        """The instruction mix, and the listing folded below it; text is the listing."""
        lines = str(self).splitlines()
        words = f"{len(self.code):,} instructions"
        listing = Folded(words=words, inner=sass_code(lines), opened=len(lines) <= _OPEN_LINES)
        return Stack((Heading(words=self.name), mix_view(mix(self.code)), listing))

    def text(self, *, width: int = TEXT_COLUMNS, color: bool = False) -> str:
        return sass_code(str(self).splitlines()).text(width=width, color=color)

    def __str__(self) -> str:
        targets = {i.target for i in self.code}
        lines = [f"{self.name}:"]
        for instruction in self.code:
            if instruction.address in targets:
                lines.append(f"L_{instruction.address:04x}:")
            lines.append(f"  {instruction}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sass(Shown):
    """The disassembly of one cubin. `ptxas` and `nvdisasm` are the versions of the two tools."""

    functions: tuple[SassFunction, ...]
    cubin_sha256: str = ""
    ptxas: str = ""
    nvdisasm: str = ""

    def function(self, name: str | None = None) -> SassFunction:
        """The named function, or the only one. Raises KeyError with the names that there are."""
        found = [f for f in self.functions if name is None or f.name == name]
        if len(found) != 1:
            names = ", ".join(f.name for f in self.functions) or "none"
            raise KeyError(f"function {name or '(the only one)'}: the cubin has: {names}")
        return found[0]

    def view(self) -> View:
        return Stack(tuple(function.view() for function in self.functions))

    def text(self, *, width: int = TEXT_COLUMNS, color: bool = False) -> str:
        return "\n\n".join(f.text(width=width, color=color) for f in self.functions)

    def to_dict(self) -> dict[str, object]:
        return {
            "cubin_sha256": self.cubin_sha256,
            "ptxas": self.ptxas,
            "nvdisasm": self.nvdisasm,
            "functions": [
                {
                    "name": f.name,
                    "mix": mix(f.code),
                    "instructions": [asdict(i) for i in f.code],
                }
                for f in self.functions
            ],
        }

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.functions))
