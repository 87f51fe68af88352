"""The little of ELF that a cubin needs: sections by name, strings, the symbol table."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

_SHT_SYMTAB = 2
SYMBOL_BYTES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section header. Offsets and sizes are in bytes of the file."""

    kind: int
    offset: int
    size: int
    link_offset: int  # file offset of the section that sh_link names; a symbol table's strings

    @property
    def end(self) -> int:
        return self.offset + self.size


def sections_of(elf: bytes) -> dict[str, Section]:
    """Section headers of a 64-bit little-endian ELF file, by name; empty for any other file."""
    if elf[:6] != b"\x7fELF\x02\x01":
        return {}
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    entry_size, count, names_at = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + i * entry_size) for i in range(count)]
    strings = headers[names_at][4]
    return {
        string_at(elf, strings + h[0]): Section(
            kind=h[1], offset=h[4], size=h[5], link_offset=headers[h[6]][4]
        )
        for h in headers
    }


def string_at(data: bytes, offset: int) -> str:
    """The zero-terminated string at an offset."""
    return data[offset : data.index(b"\0", offset)].decode("utf-8", "replace")


def symbol_table(sections: Mapping[str, Section]) -> Section | None:
    """The section that holds the symbols."""
    return next((s for s in sections.values() if s.kind == _SHT_SYMTAB), None)


def symbol_name(elf: bytes, symbols: Section, index: int) -> str:
    """The name of a symbol by its number in the table."""
    (name,) = struct.unpack_from("<I", elf, symbols.offset + SYMBOL_BYTES * index)
    return string_at(elf, symbols.link_offset + name)
