"""PTX text to `ast.Module`: recursive descent over the token list.

    parse(source) ── module header ── items ──┬── variables
                                              └── functions ── statements ── operands

The parser knows the grammar, not the instructions: any mnemonic is accepted, and ptxas (or whoever
executes the program) says whether it exists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ptxgen.errors import PtxSyntaxError

from . import ast
from .expressions import PRECEDENCE, binary, number, unary
from .lexer import Lines, Token, tokenize

SPACES = frozenset({".reg", ".param", ".shared", ".global", ".const", ".local", ".tex"})
LINKAGE = frozenset({".visible", ".extern", ".weak", ".common"})
# Directives between a parameter list and the body, and how many numbers each may take.
PERFORMANCE = frozenset(
    {
        ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg", ".local_maxnreg",
        ".reqnctapercluster", ".explicitcluster", ".maxclusterrank", ".blocksareclusters",
        ".noreturn", ".abi_preserve", ".abi_preserve_control",
    }
)  # fmt: skip


def parse(source: str) -> ast.Module:
    """Parse a whole PTX module. Raises PtxSyntaxError naming the line and showing it."""
    return _Parser(source).module()


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = tokenize(source)
        self.lines = Lines(source)
        self.index = 0
        self.names: dict[str, ast.Name] = {}  # interned: most operands repeat

    # -- tokens --------------------------------------------------------------------------------

    def peek(self) -> Token:
        return self.tokens[self.index]

    def take(self) -> Token:
        token = self.tokens[self.index]
        if token.kind != "end":
            self.index += 1
        return token

    def fail(self, expected: str, token: Token | None = None) -> PtxSyntaxError:
        token = token or self.peek()
        got = "the end of the file" if token.kind == "end" else repr(token.text[:40])
        return self.lines.error(f"expected {expected}, got {got}", token.start)

    def accept(self, text: str) -> bool:
        if self.tokens[self.index].text == text:
            self.index += 1
            return True
        return False

    def expect(self, text: str, why: str) -> Token:
        token = self.tokens[self.index]
        if token.text != text:
            raise self.fail(f"{text!r} {why}", token)
        self.index += 1
        return token

    def word(self, what: str) -> str:
        token = self.take()
        if token.kind != "word":
            raise self.fail(what, token)
        return token.text

    def span_from(self, token: Token) -> ast.Span:
        return ast.Span(token.start, self.tokens[self.index - 1].end)

    def name(self, text: str) -> ast.Name:
        node = self.names.get(text)
        if node is None:
            node = self.names[text] = ast.Name(text)
        return node

    # -- module --------------------------------------------------------------------------------

    def module(self) -> ast.Module:
        self.expect(".version", "at the start of a PTX module")
        version = self._version(self.take())
        self.expect(".target", "after .version")
        target = [self.word("a target such as sm_90a")]
        while self.accept(","):
            target.append(self.word("a target"))
        address_size = 32
        if self.accept(".address_size"):
            address_size = self.integer("the address size")
        items: list[ast.Item] = []
        while self.peek().kind != "end":
            items.extend(self.item())
        return ast.Module(
            version=version,
            target=tuple(target),
            address_size=address_size,
            items=tuple(items),
            source=self.source,
        )

    def _version(self, token: Token) -> tuple[int, int]:
        major, dot, minor = token.text.partition(".")
        if token.kind != "number" or not dot or not (major + minor).isdigit():
            raise self.fail("a version such as 8.0", token)
        return int(major), int(minor)

    def item(self) -> list[ast.Item]:
        start = self.peek()
        if start.kind == "raw" or start.text in (".pragma", ".alias"):
            return [self.directive()]
        linkage = ""
        while self.peek().text in LINKAGE:
            linkage = self.take().text[1:]
        token = self.peek()
        if token.text in (".entry", ".func"):
            return [self.function(start, linkage)]
        if token.text in SPACES:
            return list(self.variables(start, linkage))
        raise self.fail("an .entry, a .func or a variable declaration", token)

    def directive(self) -> ast.Directive:
        start = self.take()
        if start.kind != "raw":
            while not self.accept(";"):
                if self.take().kind == "end":
                    raise self.fail("';' at the end of this directive", start)
        span = self.span_from(start)
        text = self.source[span.start : span.end].rstrip()
        return ast.Directive(text, self.lines.number(start.start), span)

    # -- functions -----------------------------------------------------------------------------

    def function(self, start: Token, linkage: str) -> ast.Function:
        kind: Literal["entry", "func"] = "entry" if self.take().text == ".entry" else "func"
        results: tuple[ast.Variable, ...] = ()
        if kind == "func" and self.peek().text == "(":
            results = self.parameters()
        name = self.word("a function name")
        params = self.parameters() if self.peek().text == "(" else ()
        directives: dict[str, tuple[int, ...]] = {}
        while self.peek().text in PERFORMANCE:
            key = self.take().text[1:]
            directives[key] = self._numbers()
        body: ast.Block | None = None
        if self.peek().kind in ("open", "vector"):
            body = self.block()
        else:
            self.expect(";", "or a body after the function header")
        return ast.Function(
            name=name,
            kind=kind,
            params=params,
            results=results,
            linkage=linkage,
            directives=directives,
            body=body,
            line=self.lines.number(start.start),
            span=self.span_from(start),
        )

    def _numbers(self) -> tuple[int, ...]:
        values: list[int] = []
        while self.peek().kind == "number":
            values.append(self.integer("a number"))
            self.accept(",")
        return tuple(values)

    def parameters(self) -> tuple[ast.Variable, ...]:
        self.expect("(", "to open a parameter list")
        params: list[ast.Variable] = []
        while not self.accept(")"):
            params.append(self.declaration(self.peek(), ""))
            if self.peek().text != ")":
                self.expect(",", "or ')' in a parameter list")
        return tuple(params)

    # -- variables -----------------------------------------------------------------------------

    def variables(self, start: Token, linkage: str) -> tuple[ast.Variable, ...]:
        """One declaration statement, which may declare several names, up to its `;`."""
        first = self.declaration(start, linkage)
        declared = [first]
        while self.accept(","):
            declared.append(self.declarator(start, first))
        self.expect(";", "at the end of a declaration")
        return tuple(declared)

    def declaration(self, start: Token, linkage: str) -> ast.Variable:
        space = self.take().text[1:]
        align, vector, pointer, type_ = 0, 1, "", ""
        while self.peek().kind == "dot":
            key = self.take().text[1:]
            if key == "align":
                align = self.integer("an alignment")
            elif key in ("v2", "v4", "v8"):
                vector = int(key[1:])
            elif key == "ptr":
                pointer, align = self._pointer(align)
            elif key == "attribute":
                self._skip_parentheses()
            elif key in ast.TYPE_BYTES:
                type_ = key
            else:
                raise self.fail("a PTX type", self.tokens[self.index - 1])
        if not type_:
            raise self.fail(f"a type in this .{space} declaration")
        template = ast.Variable(
            space=space,
            type=type_,
            name="",
            align=align or ast.TYPE_BYTES[type_] * vector,
            vector=vector,
            linkage=linkage,
            pointer=pointer,
        )
        return self.declarator(start, template)

    def _pointer(self, align: int) -> tuple[str, int]:
        """`.ptr{.space}{.align n}`: the alignment is that of the pointee, not of the parameter."""
        words = []
        while self.peek().kind == "dot":
            key = self.take().text
            words.append(f"{key} {self.integer('an alignment')}" if key == ".align" else key)
        return " ".join(words), align

    def _skip_parentheses(self) -> None:
        self.expect("(", "after .attribute")
        while not self.accept(")"):
            if self.take().kind == "end":
                raise self.fail("')'")

    def declarator(self, start: Token, like: ast.Variable) -> ast.Variable:
        name = self.word("a variable name")
        shape: list[int] = []
        while self.accept("["):
            shape.append(0 if self.peek().text == "]" else self.integer("an array extent"))
            self.expect("]", "after an array extent")
        initial = self.initializer() if self.accept("=") else ()
        if shape and shape[0] == 0 and initial:
            shape[0] = len(initial)
        return ast.Variable(
            space=like.space,
            type=like.type,
            name=name,
            shape=tuple(shape),
            align=like.align,
            vector=like.vector,
            linkage=like.linkage,
            initial=initial,
            pointer=like.pointer,
            line=self.lines.number(start.start),
            span=self.span_from(start),
        )

    def initializer(self) -> tuple[ast.Operand, ...]:
        """A scalar, or nested braces flattened."""
        if self.peek().kind == "vector":
            return self.vector().items
        if not self.accept("{"):
            return (self.initial_value(),)
        values: list[ast.Operand] = []
        while not self.accept("}"):
            values.extend(self.initializer())
            if self.peek().text != "}":
                self.expect(",", "or '}' in an initialiser")
        return tuple(values)

    def initial_value(self) -> ast.Operand:
        if self.peek().text == "generic":
            self.take()
            self.expect("(", "after generic")
            base = self.name(self.word("a variable name"))
            self.expect(")", "after generic(variable")
            return ast.Offset(base, self._offset(), generic=True)
        return self.operand()

    # -- statements ----------------------------------------------------------------------------

    def block(self) -> ast.Block:
        start = self.peek()
        if start.kind == "vector":
            raise self.fail("statements that end with ';' between '{' and '}'", start)
        self.expect("{", "to open a block")
        body: list[ast.Statement] = []
        while not self.accept("}"):
            if self.peek().kind == "end":
                opened = self.lines.number(start.start)
                raise self.fail(f"'}}' to close the block opened in line {opened}")
            self.statement(body.append)
        return ast.Block(tuple(body), self.lines.number(start.start), self.span_from(start))

    def statement(self, add: Callable[[ast.Statement], None]) -> None:
        token = self.tokens[self.index]
        if token.kind == "word" or token.text == "@":
            if self.tokens[self.index + 1].text == ":" and token.text != "@":
                self.index += 2
                add(ast.Label(token.text, self.lines.number(token.start), self.span_from(token)))
                if self.peek().text in (".branchtargets", ".calltargets", ".callprototype"):
                    add(self.directive())
            else:
                add(self.instruction(token))
        elif token.text == ".reg":
            add(self.registers(token))
        elif token.kind in ("open", "vector"):
            add(self.block())
        elif token.text in SPACES or token.text in LINKAGE:
            linkage = self.take().text[1:] if token.text in LINKAGE else ""
            for variable in self.variables(token, linkage):
                add(variable)
        elif token.kind == "raw" or token.text == ".pragma":
            add(self.directive())
        elif not self.accept(";"):
            raise self.fail("an instruction, a label, a declaration or '}'", token)

    def registers(self, start: Token) -> ast.Registers:
        self.take()
        vector, type_ = 1, ""
        while self.peek().kind == "dot":
            key = self.take().text[1:]
            if key in ("v2", "v4", "v8"):
                vector = int(key[1:])
            elif key in ast.TYPE_BYTES:
                type_ = key
            else:
                raise self.fail("a register type", self.tokens[self.index - 1])
        if not type_:
            raise self.fail("a register type")
        names: list[ast.RegisterName] = []
        while True:
            name = self.word("a register name")
            count = None
            if self.accept("<"):
                count = self.integer("a register count")
                self.expect(">", "after a register count")
            names.append(ast.RegisterName(name, count))
            if not self.accept(","):
                break
        self.expect(";", "or ',' after a register name")
        line = self.lines.number(start.start)
        return ast.Registers(type_, tuple(names), line, self.span_from(start), vector)

    def instruction(self, start: Token) -> ast.Instruction:
        guard: ast.Guard | None = None
        if self.accept("@"):
            negated = self.accept("!")
            guard = ast.Guard(self.word("a predicate register after '@'"), negated)
        mnemonic = self.word("an instruction")
        operands: list[ast.Operand] = []
        if not self.accept(";"):
            while True:
                operands.append(self.operand())
                if self.accept(";"):
                    break
                if not self.accept(","):
                    raise self.fail(f"',' or ';' in the operands of {mnemonic}")
        line = self.lines.number(start.start)
        return ast.Instruction(mnemonic, tuple(operands), guard, line, self.span_from(start))

    # -- operands ------------------------------------------------------------------------------

    def operand(self) -> ast.Operand:
        token = self.tokens[self.index]
        if token.kind == "word":
            self.index += 1
            following = self.tokens[self.index].text
            if following in (",", ";"):
                return self.name(token.text)
            if following == "|":
                self.index += 1
                return ast.Pair(self.name(token.text), self.name(self.word("a second register")))
            if following in ("+", "-"):
                return ast.Offset(self.name(token.text), self._offset())
            return self.name(token.text)
        if token.kind == "vector" or token.kind == "open":
            return self.vector()
        if token.text == "[":
            return self.address()
        if token.text == "!" and self.tokens[self.index + 1].kind == "word":
            self.index += 2
            return ast.Not(self.name(self.tokens[self.index - 1].text))
        if token.text == "(" and self._is_group():
            return self.group()
        return self.constant()

    def _is_group(self) -> bool:
        """A parenthesis opens a call's argument list unless it holds a constant expression."""
        following = self.tokens[self.index + 1]
        return following.kind in ("word", "vector") or following.text == ")"

    def group(self) -> ast.Group:
        self.expect("(", "to open an argument list")
        items: list[ast.Operand] = []
        while not self.accept(")"):
            items.append(self.operand())
            if self.peek().text != ")":
                self.expect(",", "or ')' in an argument list")
        return ast.Group(tuple(items))

    def vector(self) -> ast.Vector:
        token = self.take()
        if token.kind == "vector":
            words = [word.strip() for word in token.text[1:-1].split(",")]
            return ast.Vector(tuple(number(w) if w[0].isdigit() else self.name(w) for w in words))
        items: list[ast.Operand] = []
        while not self.accept("}"):
            items.append(self.operand())
            if self.peek().text != "}":
                self.expect(",", "or '}' in a vector")
        return ast.Vector(tuple(items))

    def address(self) -> ast.Address:
        self.expect("[", "to open an address")
        token = self.peek()
        base: ast.Name | ast.Immediate
        offset = 0
        if token.kind == "word":
            self.index += 1
            base = self.name(token.text)
            offset = self._offset()
        else:
            base = self.constant()
        coordinates = None
        if self.accept(","):
            coordinates = self.vector()
        self.expect("]", "to close an address")
        return ast.Address(base, offset, coordinates)

    def _offset(self) -> int:
        """`+ constant` or `- constant` after a base, or nothing."""
        if self.accept("+"):
            return self.integer("an offset")
        if self.peek().text == "-":
            return self.integer("an offset")
        return 0

    # -- constants -----------------------------------------------------------------------------

    def integer(self, what: str) -> int:
        start = self.peek()
        # A register count closes with '>', which must not be read as an operator.
        value = self._unary() if self.tokens[self.index + 1].text == ">" else self.constant()
        if value.kind != "int":
            raise self.fail(what, start)
        return value.value

    def constant(self, strength: int = 1) -> ast.Immediate:
        """A constant expression, by precedence climbing."""
        start = self.peek()
        left = self._unary()
        while True:
            operator = self.peek().text
            binding = PRECEDENCE.get(operator, 0)
            if binding < strength:
                return left
            self.take()
            right = self.constant(binding + 1)
            try:
                left = binary(operator, left, right)
            except ValueError as error:
                raise self.lines.error(str(error), start.start) from None

    def _unary(self) -> ast.Immediate:
        token = self.take()
        if token.kind == "number":
            try:
                return number(token.text)
            except ValueError:
                raise self.fail("a number", token) from None
        if token.text in ("-", "+", "~", "!"):
            try:
                return unary(token.text, self._unary())
            except ValueError as error:
                raise self.lines.error(str(error), token.start) from None
        if token.text == "(":
            value = self.constant()
            self.expect(")", "to close a constant expression")
            return value
        raise self.fail("an operand", token)
