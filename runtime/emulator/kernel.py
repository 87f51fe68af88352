"""A compiled entry: the program, what is known of it, and a Python function a basic block.

    parse ─▶ lower ─▶ split webs ─▶ analyse ─▶ place registers ─▶ emit every block ─▶ compile

Emitting every block at once is what finds unsupported instructions before anything runs; turning
the source into code waits until a block is reached, since most masked variants never are.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

from ptxgen.errors import PtxSyntaxError
from ptxgen.ptx import ast, parse
from ptxgen.spec import Dim3

from . import (
    access_forms,
    alu_bits,
    alu_int,
    atomics,
    barriers,
    bulk,
    control,
    convert,
    map_forms,
    matrix,
    mbarrier_forms,
    mma,
    register_pool,
    warp,
    wgmma,
)  # fmt: skip
from .analysis import Analysis, analyse, basic_blocks
from .emit import Emitter
from .isa import matrix_registers, registers_of
from .namespace import NAMESPACE
from .operands import Op, Program, Vec
from .program import lower
from .state import Path, RegisterFile
from .values import BITS_CODE
from .webs import split_webs

BlockFunction: TypeAlias = Callable[[Path], int]
# Importing these fills the opcode table.
OPCODE_MODULES = (
    access_forms, alu_bits, alu_int, atomics, barriers, bulk, control, convert, map_forms, matrix,
    mbarrier_forms, mma, register_pool, warp, wgmma,
)  # fmt: skip


class Kernel:
    """One entry, compiled for one block shape. Shared by threads: running it changes nothing here
    but the functions that are compiled on first use and the pool of register files."""

    def __init__(self, module: ast.Module, entry: str | None, block: Dim3) -> None:
        self.program: Program = lower(module, entry)
        split_webs(self.program, basic_blocks(self.program))
        self.analysis: Analysis = analyse(self.program, block)
        self.doubtful = [
            r for r in range(len(self.program.bits)) if (self.analysis.doubtful >> r) & 1
        ]
        self.rows: dict[str, int] = {"P": 0, "H": 0, "U": 0, "W": 0}
        self.scalars = 0
        self.slots = self._place()
        # For each wgmma: rows that its block touches since the last fence, and if there is one.
        self.touched_before: dict[int, tuple[int, bool]] = {}
        # For each block: rows that stay touched, and rows that it touches, at its end.
        self.dirt: list[tuple[int, int] | None] = []
        self.touch = self._touches()
        self._emitter = Emitter(self.program, self.analysis, self.slots)
        self._sources: dict[tuple[int, bool], str] = {}
        count = len(self.analysis.blocks)
        for i in range(count):
            self._sources[i, True] = self._emit(i, True)
        self.full: list[BlockFunction] = [self._stub(i, True) for i in range(count)]
        self.masked: list[BlockFunction] = [self._stub(i, False) for i in range(count)]
        self._lock = threading.RLock()
        self._files: list[RegisterFile] = []

    # -- registers -----------------------------------------------------------------------------

    def _place(self) -> list[int]:
        """The row (or the index among the uniform ones) of every register.

        Accumulators of a wgmma get consecutive rows, so that a tile is written back in one copy.
        """
        slots = [-1] * len(self.program.bits)
        order: list[int] = []
        for op in self.program.ops:
            if op.opcode == "wgmma" and op.operands and isinstance(op.operands[0], Vec):
                order += registers_of(op.operands[0])
        for r in dict.fromkeys([*order, *range(len(slots))]):
            if self.analysis.uniform[r]:
                slots[r] = self.scalars
                self.scalars += 1
            else:
                code = BITS_CODE[self.program.bits[r]]
                slots[r] = self.rows[code]
                self.rows[code] += 1
        return slots

    def _rows_of(self, op: Op) -> int:
        rows = 0
        guard = [op.guard[0].id] if op.guard else []
        for r in [r for o in op.operands for r in registers_of(o)] + guard:
            if not self.analysis.uniform[r] and self.program.bits[r] == 32:
                rows |= 1 << self.slots[r]
        return rows

    def _touches(self) -> list[int]:
        """For each block, the wgmma registers that its other instructions touch, as rows."""
        matrix_rows = 0
        for op in self.program.ops:
            for r in matrix_registers(op):
                matrix_rows |= 1 << self.slots[r]
        touches = []
        for b in self.analysis.blocks:
            rows = since = 0
            fenced = False
            for op in self.program.ops[b.start : b.end]:
                if op.opcode != "wgmma":
                    rows |= (found := self._rows_of(op))
                    since |= found & matrix_rows
                elif op.quals[0] == "fence":
                    since, fenced = 0, True
                elif op.quals[0] == "mma_async":
                    self.touched_before[op.index] = (since, fenced)
            touches.append(rows & matrix_rows)
            self.dirt.append((0 if fenced else -1, since) if fenced or since else None)
        return touches

    def register_at(self, code: str, row: int) -> str:
        """The PTX name of the register in a row of a class, for messages."""
        for r, slot in enumerate(self.slots):
            same = BITS_CODE[self.program.bits[r]] == code and not self.analysis.uniform[r]
            if slot == row and same:
                return self.program.registers[r]
        return f"row {row}"

    def line_touching(self, block: int, row: int) -> int:
        """The PTX line in a block that touches a row of class U."""
        b = self.analysis.blocks[block]
        for op in self.program.ops[b.start : b.end]:
            if op.opcode != "wgmma" and (self._rows_of(op) >> row) & 1:
                return op.line
        return 0

    def line(self, block: int) -> int:
        """The PTX line where a block starts."""
        if not 0 <= block < len(self.analysis.blocks):
            return 0
        return self.program.ops[self.analysis.blocks[block].start].line

    # -- code ----------------------------------------------------------------------------------

    def _emit(self, index: int, full: bool) -> str:
        block = self.analysis.blocks[index]
        try:
            return self._emitter.block(block, full)
        except PtxSyntaxError as error:
            if error.line is not None:
                raise
            line = self._emitter.current.line if self._emitter.current else 0
            raise PtxSyntaxError(str(error), line=line) from None

    def _stub(self, index: int, full: bool) -> BlockFunction:
        """Compiles its block when it is first called, and puts the result in its own place."""

        def first_call(p: Path) -> int:
            with self._lock:
                function = self._compile(index, full)
                (self.full if full else self.masked)[index] = function
            return function(p)

        return first_call

    def _compile(self, index: int, full: bool) -> BlockFunction:
        source = self._sources.get((index, full)) or self._emit(index, full)
        names: dict[str, Any] = dict(NAMESPACE)
        names.update((f"K{i}", value) for i, value in enumerate(self._emitter.constants))
        exec(compile(source, f"<block {index}>", "exec"), names)
        function: BlockFunction = names["block"]
        return function

    def source(self, index: int, full: bool = True) -> str:
        """The generated Python of a block (for debugging and tests)."""
        return self._emit(index, full)

    # -- register files ------------------------------------------------------------------------

    def take_file(self) -> RegisterFile:
        """A register file for a warpgroup, poisoned."""
        with self._lock:
            file = self._files.pop() if self._files else None
        if file is None:
            return RegisterFile(self.rows)
        file.poison()
        return file

    def give_file(self, file: RegisterFile) -> None:
        with self._lock:
            self._files.append(file)


class KernelCache:
    """Compiled kernels by PTX text, entry and block shape. Thread-safe."""

    def __init__(self, capacity: int = 256) -> None:
        self._lock = threading.Lock()
        self._capacity = capacity
        self._kernels: dict[tuple[bytes, str | None, Dim3], Kernel] = {}
        self._modules: dict[bytes, ast.Module] = {}

    def module(self, source: str) -> ast.Module:
        """The parsed module of a PTX text."""
        key = hashlib.sha256(source.encode()).digest()
        with self._lock:
            module = self._modules.get(key)
        if module is None:
            module = parse(source)
            with self._lock:
                self._trim(self._modules)
                self._modules[key] = module
        return module

    def get(self, module: ast.Module, entry: str | None, block: Dim3) -> Kernel:
        """The compiled entry. Compiling raises UnsupportedPtx for what cannot be executed."""
        key = (hashlib.sha256(module.source.encode()).digest(), entry, block)
        with self._lock:
            kernel = self._kernels.get(key)
        if kernel is None:
            kernel = Kernel(module, entry, block)
            with self._lock:
                self._trim(self._kernels)
                self._kernels[key] = kernel
        return kernel

    def _trim(self, cache: dict[Any, Any]) -> None:
        while len(cache) >= self._capacity:
            del cache[next(iter(cache))]
