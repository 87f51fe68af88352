"""How an instruction is scheduled: the control bits of its 128-bit encoding.

Since Volta every instruction carries, in bits 105 to 125, what older chips found out by hardware:

    105..108  stall        cycles until the warp may issue its next instruction
    109       no_yield     0 asks the scheduler to prefer another warp
    110..112  write        scoreboard raised until the result is written     (7: none)
    113..115  read         scoreboard raised until the operands are read     (7: none)
    116..121  waits        scoreboards SB0..SB5 that must be down before issue
    122..125  reuse        operands kept in the register cache

The layout is not published; it is the one that the assemblers of the community use, and it agrees
with every dependency in the code that we looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

_NONE = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The scheduling of one instruction. Scoreboards are numbered 0 to 5; None is none."""

    stall: int
    yields: bool
    write: int | None
    read: int | None
    waits: tuple[int, ...]
    reuse: int

    def __str__(self) -> str:
        """Fixed columns: waits, read, write, yield, stall; e.g. `B-1---- R- W2 Y S04`."""
        waits = "".join(str(n) if n in self.waits else "-" for n in range(6))
        read = "-" if self.read is None else str(self.read)
        write = "-" if self.write is None else str(self.write)
        return f"B{waits} R{read} W{write} {'Y' if self.yields else '-'} S{self.stall:02}"


def decode(encoding: int) -> Control:
    """The control bits of a 128-bit instruction (Volta and later)."""

    def bits(low: int, width: int) -> int:
        return encoding >> low & (1 << width) - 1

    def scoreboard(low: int) -> int | None:
        number = bits(low, 3)
        return None if number == _NONE else number

    mask = bits(116, 6)
    return Control(
        stall=bits(105, 4),
        yields=not bits(109, 1),
        write=scoreboard(110),
        read=scoreboard(113),
        waits=tuple(n for n in range(6) if mask >> n & 1),
        reuse=bits(122, 4),
    )
