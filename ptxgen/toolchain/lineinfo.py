"""Which PTX line each SASS instruction comes from, read from the cubin itself.

With -lineinfo ptxas writes a section .nv_debug_line_sass: an ordinary DWARF 2 line-number program
(DWARF 2 standard, section 6.2) whose "source file" is the PTX text. Every sequence in it opens with
a relocated DW_LNE_set_address, and the relocation's symbol is the function. nvdisasm's JSON does
not carry these lines, and a second run of nvdisasm for its text would cost half a second a kernel.

ptxas gives some instructions (HGMMA among them) no row of their own; they count to the row before.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ptxgen.toolchain.elf import Section, sections_of, string_at, symbol_table

_LINES, _RELOCATIONS = ".nv_debug_line_sass", ".rela.nv_debug_line_sass"
_TEXT = ".nv_debug_ptx_txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineTable:
    """One function: rows of (first byte address, PTX line), by rising address."""

    rows: tuple[tuple[int, int], ...]

    def line_at(self, address: int) -> int | None:
        """The PTX line (from 1) of the instruction at a byte offset in the function."""
        at = bisect_right(self.rows, (address, 1 << 62)) - 1
        return self.rows[at][1] or None if at >= 0 else None


def line_tables(cubin: bytes) -> Mapping[str, LineTable]:
    """Line tables by function. Empty when the cubin has none or is no ELF file of this kind."""
    try:
        sections = sections_of(cubin)
        program = sections.get(_LINES)
        if program is None:
            return {}
        names = _relocated_names(cubin, sections)
        rows: dict[str, dict[int, int]] = {}
        for sequence, address, line in _rows(cubin[program.offset : program.end], names):
            # DWARF: a later row for the same address replaces the earlier one.
            rows.setdefault(sequence, {})[address] = line
    except (struct.error, IndexError, ValueError, ArithmeticError):  # damaged
        return {}
    return {name: LineTable(rows=tuple(sorted(table.items()))) for name, table in rows.items()}


def _relocated_names(elf: bytes, sections: Mapping[str, Section]) -> dict[int, str]:
    """Offset in the line program -> name of the function whose address belongs there."""
    relocations = sections.get(_RELOCATIONS)
    symbols = symbol_table(sections)
    if relocations is None or symbols is None:
        return {}
    names: dict[int, str] = {}
    for at in range(relocations.offset, relocations.end, 24):
        offset, info, _ = struct.unpack_from("<QQq", elf, at)
        (name,) = struct.unpack_from("<I", elf, symbols.offset + 24 * (info >> 32))
        names[offset] = string_at(elf, symbols.link_offset + name)
    return names


def embedded_ptx(cubin: bytes) -> str | None:
    """The PTX that -lineinfo keeps inside a cubin, its line numbers those of the line tables.

    Comments that stand alone on a line are gone from it. None when the cubin holds no PTX.
    """
    try:
        section = sections_of(cubin).get(_TEXT)
    except (struct.error, IndexError, ValueError):  # damaged
        return None
    if section is None:
        return None
    text = cubin[section.offset : section.end].decode("utf-8", "replace").replace("\0", "\n")
    return text if ".version" in text else None  # else compressed: not a text


@dataclass(slots=True)
class _Cursor:
    data: bytes
    at: int

    def unsigned(self, size: int) -> int:
        value = int.from_bytes(self.data[self.at : self.at + size], "little")
        self.at += size
        return value

    def leb(self, *, signed: bool = False) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value


@dataclass(slots=True)
class _Machine:
    """Registers of the line-number machine that matter here."""

    function: str = ""
    address: int = 0
    line: int = 1


def _rows(section: bytes, names: Mapping[int, str]) -> Iterator[tuple[str, int, int]]:
    """Run every line program of the section: (function, address, line)."""
    at = 0
    while at + 4 <= len(section):
        (length,) = struct.unpack_from("<I", section, at)
        yield from _program(section, at + 4, at + 4 + length, names)
        at += 4 + length


def _program(
    section: bytes, start: int, end: int, names: Mapping[int, str]
) -> Iterator[tuple[str, int, int]]:
    version, header_length = struct.unpack_from("<HI", section, start)
    if version not in (2, 3):
        return
    step, _, line_base, line_range, opcode_base = struct.unpack_from("<BBbBB", section, start + 6)
    argument_counts = section[start + 11 : start + 11 + opcode_base - 1]
    cursor = _Cursor(section, start + 6 + header_length)
    state = _Machine()
    while cursor.at < end:
        opcode = cursor.unsigned(1)
        if opcode >= opcode_base:  # special: advance both, then a row
            state.address += (opcode - opcode_base) // line_range * step
            state.line += line_base + (opcode - opcode_base) % line_range
            yield state.function, state.address, state.line
        elif opcode == 0:
            _extended(cursor, state, names)
        elif opcode == 1:  # DW_LNS_copy
            yield state.function, state.address, state.line
        elif opcode == 2:  # DW_LNS_advance_pc
            state.address += cursor.leb() * step
        elif opcode == 3:  # DW_LNS_advance_line
            state.line += cursor.leb(signed=True)
        elif opcode == 8:  # DW_LNS_const_add_pc
            state.address += (255 - opcode_base) // line_range * step
        elif opcode == 9:  # DW_LNS_fixed_advance_pc
            state.address += cursor.unsigned(2)
        else:
            for _ in range(argument_counts[opcode - 1]):
                cursor.leb()


def _extended(cursor: _Cursor, state: _Machine, names: Mapping[int, str]) -> None:
    length = cursor.leb()
    end = cursor.at + length
    code = cursor.unsigned(1)
    if code == 1:  # DW_LNE_end_sequence
        state.function, state.address, state.line = "", 0, 1
    elif code == 2:  # DW_LNE_set_address
        state.function = names.get(cursor.at, "")
        state.address = cursor.unsigned(length - 1)
    cursor.at = end
