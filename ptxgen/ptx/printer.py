"""`ast.Module` to PTX in one canonical form: four spaces a level, one statement a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import ast

INDENT = "    "
NAMES_PER_LINE = 16  # registers of a long vector operand


def print_module(module: ast.Module) -> str:
    """The whole module. Parsing it gives the same tree, but for spans, lines and spellings."""
    major, minor = module.version
    lines = [
        f".version {major}.{minor}",
        f".target {', '.join(module.target)}",
        f".address_size {module.address_size}",
    ]
    for item in module.items:
        lines.append("")
        lines.extend(_item(item))
    return "\n".join(lines) + "\n"


def _item(item: ast.Item) -> Iterator[str]:
    if isinstance(item, ast.Directive):
        yield item.text
    elif isinstance(item, ast.Variable):
        yield f"{variable(item)};"
    else:
        yield from _function(item)


def _function(function: ast.Function) -> Iterator[str]:
    linkage = f".{function.linkage} " if function.linkage else ""
    results = f"({', '.join(map(variable, function.results))}) " if function.results else ""
    head = f"{linkage}.{function.kind} {results}{function.name}("
    if function.params:
        yield head
        last = len(function.params) - 1
        for i, param in enumerate(function.params):
            yield f"{INDENT}{variable(param)}{'' if i == last else ','}"
        yield ")"
    else:
        yield head + ")"
    for key, numbers in function.directives.items():
        yield f".{key} {', '.join(map(str, numbers))}".rstrip()
    if function.body is None:
        yield ";"
    else:
        yield from _block(function.body, "")


def _block(block: ast.Block, indent: str) -> Iterator[str]:
    yield f"{indent}{{"
    for statement in block.body:
        if isinstance(statement, ast.Block):
            yield from _block(statement, indent + INDENT)
        elif isinstance(statement, ast.Label):
            yield f"{indent}{statement.name}:"
        else:
            yield from (f"{indent}{INDENT}{line}" for line in _statement(statement))
    yield f"{indent}}}"


def _statement(
    statement: ast.Instruction | ast.Registers | ast.Variable | ast.Directive,
) -> Sequence[str]:
    if isinstance(statement, ast.Instruction):
        return instruction(statement).split("\n")
    if isinstance(statement, ast.Registers):
        vector = f" .v{statement.vector}" if statement.vector > 1 else ""
        names = ", ".join(
            n.name if n.count is None else f"{n.name}<{n.count}>" for n in statement.names
        )
        return [f".reg{vector} .{statement.type} {names};"]
    if isinstance(statement, ast.Variable):
        return [f"{variable(statement)};"]
    return [statement.text]


def instruction(node: ast.Instruction) -> str:
    """One instruction; a vector of more than 16 names is wrapped, so the result may have lines."""
    guard = f"{node.guard} " if node.guard else ""
    operands = ", ".join(_operand(o) for o in node.operands)
    return f"{guard}{node.mnemonic} {operands}".rstrip() + ";"


def _operand(operand: ast.Operand) -> str:
    if not isinstance(operand, ast.Vector) or len(operand.items) <= NAMES_PER_LINE:
        return str(operand)
    items = [str(i) for i in operand.items]
    rows = [", ".join(items[i : i + NAMES_PER_LINE]) for i in range(0, len(items), NAMES_PER_LINE)]
    return "{" + f",\n{INDENT}".join(rows) + "}"


def variable(node: ast.Variable) -> str:
    """A declaration without its semicolon."""
    words = [f".{node.linkage}"] if node.linkage else []
    words.append(f".{node.space}")
    if node.space == "param" or node.space == "reg":
        natural = node.element_bytes
        if node.align != natural and not node.pointer:
            words.append(f".align {node.align}")
    else:
        words.append(f".align {node.align}")
    if node.vector > 1:
        words.append(f".v{node.vector}")
    words.append(f".{node.type}")
    if node.pointer or node.space == "param":
        words.extend([f".ptr {node.pointer}"] if node.pointer else [])
    extents = "".join(f"[{n}]" if n else "[]" for n in node.shape)
    text = f"{' '.join(words)} {node.name}{extents}"
    if node.initial:
        values = ", ".join(map(str, node.initial))
        text += f" = {{{values}}}" if node.shape else f" = {values}"
    return text
