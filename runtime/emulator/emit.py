"""Python source for basic blocks.

Each block becomes one function of a path (the lanes of a warp that run together), in two variants:
all 32 lanes active, or a subset given by `p.m`. Inside:

    S           uniform registers, Python integers (unsigned bit patterns), one list a path
    P H U W     rows of 32 lanes by width; J I X E F D are the same rows as signed or float
    K0, K1 ...  constants that are not integers
    p, C        the path and its CTA

The source holds integers and names of this module only, never a name from the PTX: it reaches exec.
A vector result is written with `where=` when lanes are off; the value itself is computed for all.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxgen.errors import PtxSyntaxError

from . import isa
from .analysis import EXIT, Analysis, Block, is_warp_index
from .operands import Imm, Mem, Negated, Op, Program, Reg, Sink, Special, Symbol, Two, Value, Vec
from .values import BITS_CODE, CODE_BITS, CODE_DTYPE, float_bits

SIGNED = frozenset("JIX")
FLOATS = {"E": "f16", "F": "f32", "D": "f64"}
# Uniform special registers as expressions of the CTA `C` and the path `p`.
SPECIAL_EXPRESSIONS = {
    **{
        f"%{name}.{axis}": f"C.{name}[{i}]"
        for name in ("ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid",
                     "cluster_nctaid")
        for i, axis in enumerate("xyz")
    },
    "%cluster_ctarank": "C.rank", "%cluster_nctarank": "C.cluster_size",
    "%is_explicit_cluster": "C.explicit_cluster", "%warpid": "p.w.index", "%nwarpid": "C.nwarps",
    "%smid": "C.smid", "%nsmid": "C.nsmid", "%gridid": "1", "WARP_SZ": "32",
    "%dynamic_smem_size": "C.dynamic_smem", "%total_smem_size": "C.total_smem - 0x400",
    "%aggr_smem_size": "C.total_smem", "%clock64": "p.clock()", "%globaltimer": "p.clock()",
    "%clock": "p.clock() & 0xFFFFFFFF", "%globaltimer_lo": "p.clock() & 0xFFFFFFFF",
    "%clock_hi": "p.clock() >> 32", "%globaltimer_hi": "p.clock() >> 32",
    # What the H200 gives (mov.reserved_smem in tests/golden/isa).
    "%reserved_smem_offset_begin": "0", "%reserved_smem_offset_end": "0x120",
    "%reserved_smem_offset_cap": "0x400", "%reserved_smem_offset_0": "0",
    "%reserved_smem_offset_1": "0",
}  # fmt: skip
VECTOR_SPECIALS = {
    "%tid.x": "p.w.tid[0]", "%tid.y": "p.w.tid[1]", "%tid.z": "p.w.tid[2]", "%laneid": "LANES",
    **{f"%lanemask_{c}": f"LANEMASK_{c.upper()}" for c in ("eq", "le", "lt", "ge", "gt")},
}  # fmt: skip


class Emitter:
    """Emits the ops of one program. `slots[r]` is the row (or the index in S) of register r."""

    def __init__(self, program: Program, analysis: Analysis, slots: list[int]) -> None:
        self.program = program
        self.analysis = analysis
        self.slots = slots
        self.constants: list[object] = []
        self._constant_index: dict[object, int] = {}
        self.lines: list[str] = []
        self.indent = 1
        self.mask: str | None = None
        self.full = True
        self.temporaries = 0
        self.current: Op | None = None
        self.any_lane = False  # the op gives the same result from any lane's operands

    # -- blocks --------------------------------------------------------------------------------

    def block(self, block: Block, full: bool) -> str:
        """The source of `def block(p)` for one variant."""
        self.lines, self.indent, self.full, self.temporaries = [], 1, full, 0
        self.mask = None if full else "m"
        ops = self.program.ops[block.start : block.end]
        for op in ops:
            self.op(op)
        last = ops[-1]
        if last.opcode == "bra":
            self._branch(last, block)
        elif last.opcode in ("ret", "exit"):
            self._leave(last, block)
        else:
            self.line(f"return {block.next[0]}")
        body = "\n".join(self.lines)
        bound = [f" {code}=p.w.{code}" for code in "PHJEUIFWXD" if f"{code}[" in body]
        if "S[" in body:
            bound.append(" S=p.S")
        if "T[" in body:
            bound.append(" T=p.w.T")
        if "C." in body:
            bound.append(" C=p.C")
        if not full:
            bound.append(" m=p.m")
        return "def block(p):\n" + "\n".join([*bound, body]) + "\n"

    def op(self, op: Op) -> None:
        """One instruction, under its guard."""
        row = isa.row(op)
        self.current = op
        if op.opcode in ("bra", "ret", "exit"):
            self._check_initialised(op)
            return
        outer_mask, outer_indent = self.mask, self.indent
        if op.guard is not None:
            self._enter_guard(op, row.pure)
        self._check_initialised(op)
        self.any_lane = is_warp_index(op, self.analysis.thread_x)
        before = len(self.lines)
        row.emit(self, op)
        if self.indent > outer_indent and len(self.lines) == before:
            self.line("pass")
        self.any_lane = False
        self._track_initialised(op, row.pure)
        self.mask, self.indent = outer_mask, outer_indent

    def _enter_guard(self, op: Op, pure: bool) -> None:
        assert op.guard is not None
        reg, negated = op.guard
        if self.uniform(reg):
            self.line(f"if {'not ' if negated else ''}S[{self.slots[reg.id]}]:")
            self.indent += 1
            return
        row = f"P[{self.slots[reg.id]}]"
        condition = f"~{row}" if negated else row
        name = self.temporary(condition if self.full else f"{condition} & m")
        if not pure:
            self.line(f"if count_nonzero({name}):")
            self.indent += 1
        self.mask = name
        if "aligned" in op.quals or op.opcode == "bar":
            self.line(f"whole_warp(p, {name}, {op.line})")
        elif op.opcode == "barrier" and not op.has("arrive"):
            self.line(f"whole_warp(p, {name}, {op.line})")

    def _branch(self, op: Op, block: Block) -> None:
        if op.guard is None:
            self.line(f"return {block.next[0]}")
            return
        taken, falls = block.next
        reg, negated = op.guard
        if self.uniform(reg):
            if negated:
                taken, falls = falls, taken
            self.line(f"return {taken} if S[{self.slots[reg.id]}] else {falls}")
            return
        row = f"P[{self.slots[reg.id]}]"
        meet = self.analysis.post[block.index]
        self.line(f"return p.branch({'~' if negated else ''}{row}, {taken}, {falls}, {meet})")

    def _leave(self, op: Op, block: Block) -> None:
        if op.guard is None:
            self.line(f"return {EXIT}")
            return
        _, falls = block.next
        reg, negated = op.guard
        if self.uniform(reg):
            row = f"S[{self.slots[reg.id]}]"
            first, second = (falls, EXIT) if negated else (EXIT, falls)
            self.line(f"return {first} if {row} else {second}")
            return
        row = f"{'~' if negated else ''}P[{self.slots[reg.id]}]"
        self.line(f"return p.branch({row}, {EXIT}, {falls}, {EXIT})")

    # -- uninitialised registers ---------------------------------------------------------------

    def _doubtful(self, registers: Sequence[int]) -> list[int]:
        return [r for r in dict.fromkeys(registers) if (self.analysis.doubtful >> r) & 1]

    def _check_initialised(self, op: Op) -> None:
        """Side effects, addresses and branches must not depend on registers never written."""
        row = isa.row(op)
        reads = [] if row.pure else isa.uses(op)
        if op.guard is not None and row.pure:
            reads = [op.guard[0].id]
        for r in self._doubtful(reads):
            lanes = "p.mask" if op.guard and r == op.guard[0].id else self.mask_bits()
            self.line(f"if {lanes} & ~T[{r}]: p.uninitialised({r}, {op.line})")

    def _track_initialised(self, op: Op, pure: bool) -> None:
        lanes = self.mask_bits()
        sources = self._doubtful(isa.uses(op)) if pure else []
        for r in self._doubtful(isa.definitions(op)):
            known = " & ".join([lanes, *(f"T[{s}]" for s in sources)])
            self.line(f"T[{r}] = T[{r}] & ~{lanes} | {known}")

    # -- lines and names -----------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append(" " * self.indent + text)

    def temporary(self, expression: str) -> str:
        """A new local variable holding the value of an expression."""
        self.temporaries += 1
        name = f"t{self.temporaries}"
        self.line(f"{name} = {expression}")
        return name

    def constant(self, value: object, key: object = None) -> str:
        """The name of a constant. Equal keys share one."""
        key = id(value) if key is None else key
        index = self._constant_index.get(key)
        if index is None:
            index = self._constant_index[key] = len(self.constants)
            self.constants.append(value)
        return f"K{index}"

    def mask_argument(self) -> str:
        """The active lanes as an argument of a runtime call: a bool array, or None for all 32."""
        return self.mask or "None"

    def mask_bits(self) -> str:
        """The active lanes as an integer expression."""
        if self.mask is None:
            return "0xFFFFFFFF"
        return "p.mask" if self.mask == "m" else f"lane_bits({self.mask})"

    # -- reading operands ----------------------------------------------------------------------

    def uniform(self, value: Value) -> bool:
        """Whether a value is one Python integer in generated code."""
        if isinstance(value, Reg):
            return self.analysis.uniform[value.id]
        if isinstance(value, Negated):
            return self.analysis.uniform[value.reg.id]
        if isinstance(value, Special):
            return isa.is_special_uniform(value)
        if isinstance(value, Mem):
            return self.uniform(value.base)
        if isinstance(value, Vec):
            return all(self.uniform(i) for i in value.items)
        if isinstance(value, Two):
            return self.uniform(value.first) and self.uniform(value.second)
        return True

    def scalar(self, value: Value, bits: int = 32, signed: bool = False) -> str:
        """An integer expression: the value's low `bits` bits, as unsigned or two's complement."""
        if isinstance(value, Imm):
            pattern = value.value & ((1 << bits) - 1)
            half = 1 << (bits - 1)
            return str((pattern ^ half) - half if signed else pattern)
        if isinstance(value, Reg):
            if self.analysis.uniform[value.id]:
                text = f"S[{self.slots[value.id]}]"
            else:
                assert self.any_lane, value
                text = f"int({BITS_CODE[value.bits]}[{self.slots[value.id]}][p.first])"
            if value.bits > bits:
                text = f"({text} & {(1 << bits) - 1})"
        elif isinstance(value, Negated):
            return f"(not S[{self.slots[value.reg.id]}])"
        elif isinstance(value, Special):
            if value.name in VECTOR_SPECIALS and self.any_lane:
                text = f"int({VECTOR_SPECIALS[value.name]}[p.first])"
            elif value.name in SPECIAL_EXPRESSIONS:
                text = f"({SPECIAL_EXPRESSIONS[value.name]})"
            else:
                raise AssertionError(f"no expression for {value.name}")
        elif isinstance(value, Symbol):
            text = self.symbol(value)
        else:
            raise AssertionError(f"not a scalar: {value}")
        if signed:
            half = 1 << (bits - 1)
            return f"(({text} ^ {half}) - {half})"
        return text

    def symbol(self, value: Symbol) -> str:
        """The address of a variable in its own state space."""
        if value.space == "shared":
            return f"(C.shared_base + {value.offset})"
        if value.space == "global":
            return f"(C.globals_base + {value.offset})"
        return str(value.offset)

    def vector(self, value: Value, code: str, array: bool = False) -> str:
        """A NumPy operand of this code: a row, or (unless `array`) a number that broadcasts."""
        if isinstance(value, Reg) and not self.analysis.uniform[value.id]:
            if value.bits != CODE_BITS[code]:
                raise PtxSyntaxError(
                    f"{self.program.registers[value.id]} has {value.bits} bits where the "
                    f"instruction takes {CODE_BITS[code]}"
                )
            return f"{code}[{self.slots[value.id]}]"
        if isinstance(value, Negated) and not self.uniform(value):
            return f"(~P[{self.slots[value.reg.id]}])"
        if isinstance(value, Special) and not isa.is_special_uniform(value):
            if value.name not in VECTOR_SPECIALS:
                raise PtxSyntaxError(f"{value.name} is not declared and is no special register")
            row = VECTOR_SPECIALS[value.name]
            return row if code == "U" else f"{row}.view(DT_{code})"
        text = self._number(value, code)
        return f"full_{code}({text})" if array else text

    def _number(self, value: Value, code: str) -> str:
        bits = CODE_BITS[code]
        if code in FLOATS:
            if isinstance(value, Imm):
                pattern = float_bits(value.value, value.kind, FLOATS[code])
                number = CODE_DTYPE[BITS_CODE[bits]].type(pattern).view(CODE_DTYPE[code])
                return self.constant(number, (code, pattern))
            return f"from_bits_{code}({self.scalar(value, bits)})"
        if code == "P":
            return f"bool({self.scalar(value, 1)})"
        return self.scalar(value, bits, signed=code in SIGNED)

    def vectors(self, values: Sequence[Value], code: str) -> list[str]:
        """Several NumPy operands, at least one of them an array."""
        numbers = all(self.uniform(v) for v in values)
        return [self.vector(v, code, array=numbers and i == 0) for i, v in enumerate(values)]

    def bits_row(self, value: Value, bits: int) -> str:
        """An array with the value's bit pattern in every lane."""
        return self.vector(value, BITS_CODE[bits], array=True)

    def address(self, mem: Mem, bits: int) -> tuple[str, bool]:
        """An address expression and whether it is one integer. Offsets wrap at `bits`."""
        base = mem.base
        if self.uniform(base):
            text = self.scalar(base, bits)
            if mem.offset:
                text = f"({text} + {mem.offset} & {(1 << bits) - 1})"
            return text, True
        assert isinstance(base, Reg)
        code = BITS_CODE[base.bits]
        text = self.vector(base, code)
        if base.bits != bits:
            text = f"{text}.astype(DT_{BITS_CODE[bits]})"
        if mem.offset:
            text = f"({text} + {mem.offset & ((1 << bits) - 1)})"
        return text, False

    # -- writing destinations ------------------------------------------------------------------

    def set_scalar(self, dst: Value, expression: str) -> None:
        """Write an integer to a destination, uniform or not."""
        if isinstance(dst, Sink):
            self.line(expression)
        elif isinstance(dst, Reg) and self.analysis.uniform[dst.id]:
            self.line(f"S[{self.slots[dst.id]}] = {expression}")
        else:
            assert isinstance(dst, Reg)
            code = BITS_CODE[dst.bits]
            self.assign(dst, f"full_{code}({expression})", code)

    def assign(self, dst: Value, expression: str, code: str) -> None:
        """Write an array of this code to a vector destination."""
        if isinstance(dst, Sink):
            return
        assert isinstance(dst, Reg), dst
        target = f"{code}[{self.slots[dst.id]}]"
        if self.analysis.uniform[dst.id]:
            raise AssertionError("a vector result needs a vector destination")
        if dst.bits != CODE_BITS[code]:
            raise PtxSyntaxError(
                f"{self.program.registers[dst.id]} has {dst.bits} bits where the instruction "
                f"gives {CODE_BITS[code]}"
            )
        where = f", where={self.mask}" if self.mask else ""
        self.line(f"copyto({target}, {expression}{where})")

    def apply(self, ufunc: str, dst: Value, code: str, arguments: Sequence[str]) -> None:
        """`dst = ufunc(arguments)` straight into the destination row."""
        if isinstance(dst, Sink):
            return
        assert isinstance(dst, Reg)
        assert not self.analysis.uniform[dst.id]
        if dst.bits != CODE_BITS[code]:
            raise PtxSyntaxError(
                f"{self.program.registers[dst.id]} has {dst.bits} bits where the instruction "
                f"gives {CODE_BITS[code]}"
            )
        target = f"{code}[{self.slots[dst.id]}]"
        tail = f"out={target}, where={self.mask}" if self.mask else f"out={target}"
        self.line(f"{ufunc}({', '.join(arguments)}, {tail})")


def flatten(value: Value) -> tuple[Value, ...]:
    """The registers of a vector operand, or the operand itself."""
    if isinstance(value, Vec):
        return value.items
    if isinstance(value, Two):
        return (value.first, value.second)
    return (value,)
