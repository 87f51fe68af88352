"""From the PTX tree to a program: names resolved, scopes flattened, calls inlined, memory laid out.

    ast.Module ──lower()──▶ Program
        registers   every register of every scope, numbered
        ops         a flat list of instructions; branch targets are indices into it
        variables   offsets in the shared window, local frame, parameter block, constant bank

Nothing here executes, and nothing here knows what an opcode means beyond `bra`, `call` and `ret`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.errors import PtxSyntaxError, UnsupportedPtx
from ptxgen.ptx import ast

from .operands import (
    Data,
    Imm,
    Mem,
    Negated,
    Op,
    Program,
    Reg,
    Segment,
    Sink,
    Special,
    Symbol,
    Target,
    Two,
    Value,
    Vec,
)  # fmt: skip
from .space import SMEM_RESERVED_BYTES, align_up
from .values import float_bits

REGISTER_BITS = {
    "pred": 1, "b8": 16, "u8": 16, "s8": 16, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16,
    "b32": 32, "u32": 32, "s32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32,
    "b64": 64, "u64": 64, "s64": 64, "f64": 64,
}  # fmt: skip


class _Scope:
    """Names of one `{ }`: registers, variables and labels, looked up from the inside out."""

    def __init__(self, parent: _Scope | None) -> None:
        self.parent = parent
        self.names: dict[str, Value] = {}
        self.labels: dict[str, int] = {}

    def find(self, name: str) -> Value | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    def find_label(self, name: str) -> int | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.parent
        return None


@dataclass(slots=True)
class _Pending:
    """An op whose branch target is not known yet."""

    index: int
    label: str
    scope: _Scope
    line: int


def lower(module: ast.Module, entry: str | None) -> Program:
    """Lower one entry of a module. Raises PtxSyntaxError for a name that nothing declares."""
    return _Lowering(module, module.entry(entry)).run()


class _Lowering:
    def __init__(self, module: ast.Module, function: ast.Function) -> None:
        self.module = module
        self.function = function
        self.functions = {f.name: f for f in module.functions if f.body is not None}
        self.registers: list[str] = []
        self.bits: list[int] = []
        self.ops: list[Op] = []
        self.pending: list[_Pending] = []
        self.shared = Segment(SMEM_RESERVED_BYTES)
        self.local, self.globals, self.consts = Segment(), Segment(), Segment()
        self.variables: list[tuple[ast.Variable, int]] = []  # those that may have initialisers
        self.statics: dict[ast.Span, Symbol] = {}  # shared variables declared inside functions
        self.dynamic: list[tuple[_Scope, ast.Variable]] = []
        self.dynamic_offset = 0
        self.calls: list[str] = []

    def run(self) -> Program:
        top = _Scope(None)
        for variable in self.module.variables:
            self.declare(variable, top)
        self.static_shared()
        self.dynamic_offset = align_up(
            self.shared.size, max((v.align for _, v in self.dynamic), default=16)
        )
        for scope, variable in self.dynamic:
            scope.names[variable.name] = Symbol("shared", self.dynamic_offset)
        self.initialise(top)
        params, size = self.parameters(top)
        assert self.function.body is not None
        self.block(self.function.body, top, None)
        self.emit("ret", (), None, self.function.line)  # falling off the end returns
        self.resolve()
        return Program(
            entry=self.function.name,
            registers=self.registers,
            bits=self.bits,
            ops=self.ops,
            params=params,
            param_bytes=size,
            shared=self.shared,
            dynamic_offset=self.dynamic_offset,
            local=self.local,
            globals=self.globals,
            consts=self.consts,
            directives=self.function.directives,
        )

    # -- memory --------------------------------------------------------------------------------

    def parameters(self, scope: _Scope) -> tuple[dict[str, tuple[int, int]], int]:
        block = Segment()
        params = {}
        for p in self.function.params:
            offset = block.place(p.size, p.align)
            params[p.name] = (offset, p.size)
            scope.names[p.name] = Symbol("param", offset)
        return params, block.size

    def static_shared(self) -> None:
        """Place the shared variables of function bodies, so that dynamic memory follows them."""
        bodies = [f.body for f in self.module.functions if f.body and f.kind == "func"]
        assert self.function.body is not None
        pending: list[ast.Block] = [self.function.body, *bodies]
        while pending:
            for s in pending.pop().body:
                if isinstance(s, ast.Block):
                    pending.append(s)
                elif isinstance(s, ast.Variable) and s.space == "shared" and not _is_dynamic(s):
                    self.statics[s.span] = Symbol("shared", self.shared.place(s.size, s.align))

    def declare(self, v: ast.Variable, scope: _Scope) -> None:
        if _is_dynamic(v):
            self.dynamic.append((scope, v))
            return
        if v.space == "tex":
            raise UnsupportedPtx(f".tex variable {v.name}: textures are not executed", line=v.line)
        segments = {
            "shared": self.shared, "local": self.local, "param": self.local,
            "global": self.globals, "const": self.consts,
        }  # fmt: skip
        space = "local" if v.space == "param" else v.space  # arguments of a call live in the frame
        offset = segments[v.space].place(v.size, v.align)
        scope.names[v.name] = Symbol(space, offset)
        if v.space in ("global", "const"):
            self.variables.append((v, offset))

    def initialise(self, scope: _Scope) -> None:
        """Encode initialisers once every variable has its address."""
        for v, offset in self.variables:
            segment = self.globals if v.space == "global" else self.consts
            width = ast.TYPE_BYTES[v.type]
            raw, links = bytearray(v.size), []
            for i, item in enumerate(v.initial):
                at = i * width
                if isinstance(item, ast.Immediate):
                    value = _constant(item, v.type)
                    raw[at : at + width] = (value & ((1 << 8 * width) - 1)).to_bytes(
                        width, "little"
                    )
                    continue
                base = item.base if isinstance(item, ast.Offset) else item
                symbol = scope.find(base.text) if isinstance(base, ast.Name) else None
                if not isinstance(symbol, Symbol):
                    raise PtxSyntaxError(f"{v.name}: unknown initialiser {item}", line=v.line)
                shift = item.offset if isinstance(item, ast.Offset) else 0
                generic = isinstance(item, ast.Offset) and item.generic
                links.append((at, Symbol(symbol.space, symbol.offset + shift), generic))
            segment.data.append(Data(offset, bytes(raw), tuple(links)))

    # -- statements ----------------------------------------------------------------------------

    def block(self, block: ast.Block, parent: _Scope, returns: str | None) -> None:
        """Lower a block. `returns` is the label that `ret` jumps to inside an inlined call."""
        scope = _Scope(parent)
        for s in block.body:
            if isinstance(s, ast.Registers):
                self.declare_registers(s, scope)
            elif isinstance(s, ast.Variable):
                self.declare_inner(s, scope)
        for s in block.body:
            if isinstance(s, ast.Instruction):
                self.instruction(s, scope, returns)
            elif isinstance(s, ast.Label):
                if s.name in scope.labels:
                    raise PtxSyntaxError(f"label {s.name} is defined twice here", line=s.line)
                scope.labels[s.name] = len(self.ops)
            elif isinstance(s, ast.Block):
                self.block(s, scope, returns)

    def declare_inner(self, v: ast.Variable, scope: _Scope) -> None:
        if _is_dynamic(v):
            scope.names[v.name] = Symbol("shared", align_up(self.dynamic_offset, v.align))
        elif v.space == "shared":
            scope.names[v.name] = self.statics[v.span]
        elif v.space in ("global", "const"):
            raise UnsupportedPtx(
                f".{v.space} variable {v.name} inside a function: declare it at module scope",
                line=v.line,
            )
        else:
            self.declare(v, scope)

    def declare_registers(self, s: ast.Registers, scope: _Scope) -> None:
        pairs = s.type == "b128"  # kept as two of 64 bits
        if s.vector > 1 or not (pairs or s.type in REGISTER_BITS):
            kind = f".v{s.vector} .{s.type}" if s.vector > 1 else f".{s.type}"
            raise UnsupportedPtx(f"registers of type {kind} are not executed", line=s.line)
        for declarator in s.names:
            for name in declarator.expand():
                if name in scope.names:
                    raise PtxSyntaxError(f"{name} is declared twice in this scope", line=s.line)
                if pairs:
                    halves = (self.register(f"{name}.{half}", 64) for half in ("low", "high"))
                    scope.names[name] = Vec(tuple(halves))
                else:
                    scope.names[name] = self.register(name, REGISTER_BITS[s.type])

    def register(self, name: str, bits: int) -> Reg:
        self.registers.append(name)
        self.bits.append(bits)
        return Reg(len(self.bits) - 1, bits)

    def emit(
        self,
        mnemonic: str,
        operands: tuple[Value, ...],
        guard: tuple[Reg, bool] | None,
        line: int,
    ) -> None:
        opcode, *quals = mnemonic.split(".")
        self.ops.append(Op(len(self.ops), mnemonic, opcode, tuple(quals), operands, guard, line))

    def instruction(self, node: ast.Instruction, scope: _Scope, returns: str | None) -> None:
        guard: tuple[Reg, bool] | None = None
        if node.guard is not None:
            reg = scope.find(node.guard.register)
            if not isinstance(reg, Reg) or reg.bits != 1:
                raise PtxSyntaxError(
                    f"guard {node.guard.register} is not a predicate register", line=node.line
                )
            guard = (reg, node.guard.negated)
        if node.opcode == "call":
            self.call(node, scope, guard)
            return
        if node.opcode == "brx":
            raise UnsupportedPtx(
                f"{node.mnemonic} is not executed by the emulator: branch tables",
                line=node.line,
                opcode="brx",
            )
        if node.opcode == "bra":
            (label,) = node.operands
            self.branch(node.mnemonic, str(label), scope, guard, node.line)
            return
        if node.opcode == "ret" and returns is not None:
            self.branch("bra", returns, scope, guard, node.line)
            return
        operands = tuple(self.value(o, scope, node.line) for o in node.operands)
        self.emit(node.mnemonic, operands, guard, node.line)

    def branch(
        self,
        mnemonic: str,
        label: str,
        scope: _Scope,
        guard: tuple[Reg, bool] | None,
        line: int,
    ) -> None:
        self.pending.append(_Pending(len(self.ops), label, scope, line))
        self.emit(mnemonic, (Target(-1),), guard, line)

    def resolve(self) -> None:
        for p in self.pending:
            target = p.scope.find_label(p.label)
            if target is None:
                raise PtxSyntaxError(f"no label {p.label} in this scope", line=p.line)
            op = self.ops[p.index]
            self.ops[p.index] = Op(
                op.index, op.mnemonic, op.opcode, op.quals, (Target(target),), op.guard, op.line
            )

    # -- calls ---------------------------------------------------------------------------------

    def call(self, node: ast.Instruction, scope: _Scope, guard: tuple[Reg, bool] | None) -> None:
        """Inline a direct call: formal parameters become names for the caller's storage."""
        groups = [o for o in node.operands if isinstance(o, ast.Group)]
        names = [o for o in node.operands if isinstance(o, ast.Name)]
        callee = self.functions.get(names[0].text) if names else None
        if callee is None or callee.body is None:
            raise UnsupportedPtx(
                "calls are executed only for functions defined in this module, called by name",
                line=node.line,
                opcode="call",
            )
        if callee.name in self.calls:
            raise UnsupportedPtx(f"{callee.name} is recursive", line=node.line, opcode="call")
        first_is_result = bool(node.operands) and isinstance(node.operands[0], ast.Group)
        results = groups[0].items if first_is_result else ()
        arguments = groups[-1].items if len(groups) > int(first_is_result) else ()
        inner = _Scope(scope)
        after = f"call {len(self.ops)} ends"
        if guard is not None:
            self.branch("bra", after, scope, (guard[0], not guard[1]), node.line)
        copies = self._bind(callee.results, results, inner, scope, node.line)
        for formal, actual in self._bind(callee.params, arguments, inner, scope, node.line):
            self.emit(f"mov.b{formal.bits}", (formal, actual), None, node.line)
        self.calls.append(callee.name)
        self.block(callee.body, inner, after)
        self.calls.pop()
        scope.labels[after] = len(self.ops)
        for formal, actual in copies:
            self.emit(f"mov.b{formal.bits}", (actual, formal), None, node.line)

    def _bind(
        self,
        formals: tuple[ast.Variable, ...],
        actuals: tuple[ast.Operand, ...],
        inner: _Scope,
        scope: _Scope,
        line: int,
    ) -> list[tuple[Reg, Value]]:
        if len(formals) != len(actuals):
            raise PtxSyntaxError(
                f"the call passes {len(actuals)} values where {len(formals)} are declared",
                line=line,
            )
        copies: list[tuple[Reg, Value]] = []
        for formal, operand in zip(formals, actuals, strict=True):
            actual = self.value(operand, scope, line)
            if formal.space == "reg":
                reg = self.register(formal.name, REGISTER_BITS[formal.type])
                inner.names[formal.name] = reg
                copies.append((reg, actual))
            elif isinstance(actual, Symbol):
                inner.names[formal.name] = actual
            else:
                slot = Symbol("local", self.local.place(formal.size, formal.align))
                inner.names[formal.name] = slot
                self.emit(f"st.local.{formal.type}", (Mem(slot), actual), None, line)
        return copies

    # -- operands ------------------------------------------------------------------------------

    def value(self, operand: ast.Operand, scope: _Scope, line: int) -> Value:
        if isinstance(operand, ast.Name):
            return self.name(operand.text, scope, line)
        if isinstance(operand, ast.Immediate):
            return Imm(operand.value, operand.kind)
        if isinstance(operand, ast.Vector):
            return Vec(tuple(self.value(i, scope, line) for i in operand.items))
        if isinstance(operand, ast.Address):
            base = self.value(operand.base, scope, line)
            if not isinstance(base, Reg | Imm | Symbol):
                raise PtxSyntaxError(f"{operand} is not an address", line=line)
            items = operand.coordinates.items if operand.coordinates else ()
            return Mem(base, operand.offset, tuple(self.value(i, scope, line) for i in items))
        if isinstance(operand, ast.Offset):
            symbol = self.name(operand.base.text, scope, line)
            if not isinstance(symbol, Symbol):
                raise PtxSyntaxError(f"{operand} is not the address of a variable", line=line)
            return Symbol(symbol.space, symbol.offset + operand.offset)
        if isinstance(operand, ast.Not):
            reg = self.name(operand.operand.text, scope, line)
            if not isinstance(reg, Reg):
                raise PtxSyntaxError(f"{operand} is not a predicate register", line=line)
            return Negated(reg)
        if isinstance(operand, ast.Pair):
            first = self.name(operand.first.text, scope, line)
            return Two(first, self.name(operand.second.text, scope, line))
        raise PtxSyntaxError(f"unexpected operand {operand}", line=line)

    def name(self, text: str, scope: _Scope, line: int) -> Value:
        if text == "_":
            return Sink()
        found = scope.find(text)
        if found is not None:
            return found
        base, dot, _ = text.partition(".")
        if dot and isinstance(scope.find(base), Reg):
            raise PtxSyntaxError(
                f"{text} is read as a part of register {base}: give the register another name",
                line=line,
            )
        if text.startswith("%") or text == "WARP_SZ":
            return Special(text)
        raise PtxSyntaxError(f"{text} is not declared", line=line)


def _is_dynamic(v: ast.Variable) -> bool:
    """Shared memory whose size the launch gives."""
    return v.space == "shared" and (v.linkage == "extern" or 0 in v.shape)


def _constant(value: ast.Immediate, type_: str) -> int:
    """The bits of an initialiser of this type: decimal floats are written as doubles."""
    if type_ in ("f32", "f16", "bf16") or (type_ == "f64" and value.kind == "int"):
        return float_bits(value.value, value.kind, type_)
    return value.value
