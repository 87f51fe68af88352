"""What a cubin says of its own functions: registers, stack, static shared memory, barriers.

ptxas prints these when it makes a cubin. For a cubin that someone else made they are read from its
.nv.info sections: records of (format, attribute, size or value), as `cuobjdump -elf` names them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from ptxgen.isa.arch import SMEM_RESERVED_BYTES
from ptxgen.toolchain.diagnostics import Resources
from ptxgen.toolchain.elf import Section, sections_of, symbol_name, symbol_table

_SIZED = 4  # the record's format: a size, then that many bytes; other formats hold 16 bits inline
_FRAME_SIZE, _MIN_STACK_SIZE, _REGCOUNT = 0x11, 0x12, 0x2F  # EIATTR_*, one (symbol, value) each
_NUM_BARRIERS = 0x4C


def resources_of(cubin: bytes) -> Mapping[str, Resources]:
    """Resources by function, every function taken for an entry; empty for a file that is no cubin.

    Bytes of spills are not in a cubin: those two numbers stay 0 (count LDL and STL instead).
    """
    try:
        return _read(cubin)
    except (struct.error, IndexError, ValueError):  # damaged
        return {}


def _read(cubin: bytes) -> Mapping[str, Resources]:
    sections = sections_of(cubin)
    symbols = symbol_table(sections)
    names = [n.removeprefix(".text.") for n in sections if n.startswith(".text.")]
    numbers: dict[str, dict[int, int]] = {name: {} for name in names}
    module = sections.get(".nv.info")
    if module is not None and symbols is not None:
        for attribute, payload in _records(cubin, module):
            if attribute in (_FRAME_SIZE, _MIN_STACK_SIZE, _REGCOUNT) and len(payload) == 8:
                index, value = struct.unpack("<II", payload)
                numbers.setdefault(symbol_name(cubin, symbols, index), {})[attribute] = value
    return {
        name: Resources(
            function=name,
            entry=True,
            registers=numbers[name].get(_REGCOUNT, 0),
            stack_bytes=numbers[name].get(_FRAME_SIZE, 0),
            cumulative_stack_bytes=numbers[name].get(_MIN_STACK_SIZE, 0),
            smem_bytes=_static_smem(sections.get(f".nv.shared.{name}")),
            barriers=_barriers(cubin, sections.get(f".nv.info.{name}")),
        )
        for name in names
    }


def _static_smem(section: Section | None) -> int:
    """The kernel's own; the section also counts what the system keeps at its start."""
    return max(0, section.size - SMEM_RESERVED_BYTES) if section is not None else 0


def _barriers(cubin: bytes, section: Section | None) -> int:
    if section is None:
        return 0
    found = (p[0] for attribute, p in _records(cubin, section) if attribute == _NUM_BARRIERS)
    return next(found, 0)


def _records(cubin: bytes, section: Section) -> Iterator[tuple[int, bytes]]:
    """(attribute, its bytes) of each record."""
    at = section.offset
    while at + 4 <= section.end:
        kind, attribute, size = struct.unpack_from("<BBH", cubin, at)
        if kind == _SIZED:
            yield attribute, cubin[at + 4 : at + 4 + size]
            at += 4 + size
        else:
            yield attribute, cubin[at + 2 : at + 4]
            at += 4
