"""The PTX front end: what the parser accepts, what the tree keeps, what the errors say."""

from __future__ import annotations

import time

import pytest

from ptxgen.errors import PtxSyntaxError
from ptxgen.ptx import ast, edit, parameters, parse, print_module, signature
from ptxgen.spec import Dim3

pytestmark = pytest.mark.unit

HEADER = ".version 8.0\n.target sm_90a\n.address_size 64\n"


def body(text: str) -> tuple[ast.Statement, ...]:
    """The statements of a one-entry module whose body is `text`."""
    function = parse(f"{HEADER}.visible .entry k()\n{{\n{text}\n}}\n").entry()
    assert function.body is not None
    return function.body.body


def one(text: str) -> ast.Instruction:
    (statement,) = body(text)
    assert isinstance(statement, ast.Instruction)
    return statement


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("12", 12, "int"),
        ("0x1F", 31, "int"),
        ("0X1fU", 31, "int"),
        ("017", 15, "int"),  # a leading zero is octal
        ("0b101", 5, "int"),
        ("7U", 7, "int"),
        ("-1", -1, "int"),
        ("~0", -1, "int"),
        ("4*8", 32, "int"),
        ("4+2*8", 20, "int"),  # precedence
        ("(4+2)*8", 48, "int"),
        ("-7/2", -3, "int"),  # C rounds towards zero
        ("1<<4|1", 17, "int"),
        ("0f3F800000", 0x3F800000, "f32"),
        ("-0f3F800000", 0xBF800000, "f32"),
        ("0d3FF0000000000000", 0x3FF0000000000000, "f64"),
        ("1.5", 0x3FF8000000000000, "f64"),  # decimal floats are double precision
        ("2e3", 0x409F400000000000, "f64"),
    ],
)
def test_immediates(text: str, value: int, kind: str) -> None:
    immediate = one(f"mov.b64 %a, {text};").operands[1]
    assert isinstance(immediate, ast.Immediate)
    assert (immediate.value, immediate.kind) == (value, kind)


def test_operand_forms() -> None:
    text = (
        "@!%p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%d], [%t, {%x, 4}], [%m+8], !%q, %a|%b, _, {%c, %e}, sym-4;"
    )
    node = one(text)
    assert node.guard == ast.Guard("%p", negated=True)
    assert node.opcode == "cp"
    assert node.qualifiers[-1] == "mbarrier::complete_tx::bytes"
    x, four = ast.Name("%x"), ast.Immediate(4, "int", "4")
    assert node.operands == (
        ast.Address(ast.Name("%d")),
        ast.Address(ast.Name("%t"), 0, ast.Vector((x, four))),
        ast.Address(ast.Name("%m"), 8),
        ast.Not(ast.Name("%q")),
        ast.Pair(ast.Name("%a"), ast.Name("%b")),
        ast.Name("_"),
        ast.Vector((ast.Name("%c"), ast.Name("%e"))),
        ast.Offset(ast.Name("sym"), -4),
    )


def test_call_groups_are_told_from_constants() -> None:
    call = one("call.uni (%r), f, (%a, 3);")
    assert call.operands == (
        ast.Group((ast.Name("%r"),)),
        ast.Name("f"),
        ast.Group((ast.Name("%a"), ast.Immediate(3, "int", "3"))),
    )
    assert one("mov.u32 %r, (3);").operands[1] == ast.Immediate(3, "int", "3")


def test_registers_labels_scopes_and_comments() -> None:
    statements = body(
        ".reg .b32 %r<3>, %x; // two declarators\n"
        "{ .reg .pred p;\n$L: /* a\n comment */ bra $L; }\nret;"
    )
    registers, scope, ret = statements
    assert isinstance(registers, ast.Registers)
    assert [n for d in registers.names for n in d.expand()] == ["%r0", "%r1", "%r2", "%x"]
    assert isinstance(scope, ast.Block)
    assert isinstance(scope.body[1], ast.Label)
    assert [s.line for s in scope.body] == [7, 8, 9]
    assert isinstance(ret, ast.Instruction)
    assert ret.line == 10


def test_variables_and_initialisers() -> None:
    module = parse(
        HEADER
        + ".extern .shared .align 1024 .b8 smem[];\n"
        + ".global .align 4 .b8 table[2][2] = {{1, 2}, {3, -4}};\n"
        + ".const .f32 one = 0f3F800000, two = 0f40000000;\n"
        + ".global .u64 p = generic(table)+2;\n"
        + ".shared .v4 .f32 quads[8];\n"
    )
    smem, table, one_, two, p, quads = module.variables
    assert (smem.linkage, smem.align, smem.shape, smem.size) == ("extern", 1024, (0,), 0)
    assert [v.value for v in table.initial if isinstance(v, ast.Immediate)] == [1, 2, 3, -4]
    assert (one_.space, two.name, two.size) == ("const", "two", 4)
    assert p.initial == (ast.Offset(ast.Name("table"), 2, generic=True),)
    assert (quads.size, quads.align) == (128, 16)


def test_signature() -> None:
    module = parse(
        HEADER + ".visible .entry gemm(.param .align 64 .b8 tmap_a[128],"
        " .param .u64 .ptr .global .align 16 d, .param .u32 n)\n"
        ".reqntid 384\n.minnctapersm 1\n.reqnctapercluster 2, 1, 1\n.explicitcluster\n{ ret; }\n"
    )
    sig = signature(module)
    assert (sig.entry, sig.target, sig.ptx_version) == ("gemm", "sm_90a", (8, 0))
    assert (sig.block, sig.cluster, sig.max_threads) == (Dim3(384), Dim3(2), 384)
    assert [(p.name, p.type, p.align, p.size) for p in sig.params] == [
        ("tmap_a", "b8", 64, 128),
        ("d", "u64", 8, 8),
        ("n", "u32", 4, 4),
    ]
    assert [p.is_tensor_map for p in sig.params] == [True, False, False]
    assert [p.pointer for p in sig.params] == [False, True, False]
    assert module.entry().directives["explicitcluster"] == ()


def test_parameters_of_an_entry_alone() -> None:
    """Nothing but the list is read: not what is commented out, nor what follows."""
    text = (
        HEADER + "// the .entry k(.param .u32 old)\n.visible .entry k2() { ret; }\n"
        ".visible .entry k (\n  .param .u64 a, // first (of 2)\n  /* ) */ .param .b8 m[64 + 64]\n)"
        "{ this is no PTX"
    )
    assert [(p.name, p.size) for p in parameters(text, "k")] == [("a", 8), ("m", 128)]
    assert parameters(text, "k2") == ()
    assert parameters(HEADER + ".entry bare\n{ ret; }\n", "bare") == ()
    with pytest.raises(KeyError, match="no entry k3"):
        parameters(text, "k3")
    with pytest.raises(PtxSyntaxError, match="never closed"):
        parameters(HEADER + ".entry k(.param .u64 a { ret; }", "k")


def test_debug_directives_are_kept() -> None:
    module = parse(
        HEADER
        + '.file 1 "a.cu"\n.visible .entry k() {\n.loc 1 2 3\n.pragma "nounroll";\nret;\n}\n'
        + ".section .debug_str\n{\n.b8 1\n}\n"
    )
    assert [i.text.split()[0] for i in module.items if isinstance(i, ast.Directive)] == [
        ".file",
        ".section",
    ]
    assert print_module(parse(print_module(module))) == print_module(module)


def test_print_then_parse_is_stable() -> None:
    source = (
        HEADER
        + ".func (.param .b32 r) f(.param .b32 a) { ret; }\n"
        + ".visible .entry k(.param .align 64 .b8 t[128], .param .u32 n)\n.maxntid 256\n{\n"
        + ".reg .v2 .f32 %v;\n.reg .b32 %r<40>;\n.shared .align 8 .b64 bar[4];\n"
        + "$A: @%p bra.uni $A; wgmma.x {"
        + ", ".join(f"%r{i}" for i in range(40))
        + "}, %d, -1;\n{ st.shared.v2.f32 [%r1-16], {%r2, 0f00000000}; }\n}\n"
    )
    printed = print_module(parse(source))
    assert print_module(parse(printed)) == printed
    before, after = parse(source).entry(), parse(printed).entry()
    assert [str(i) for i in before.instructions()] == [str(i) for i in after.instructions()]
    assert before.params == tuple(
        type(p)(**{**{k: getattr(p, k) for k in p.__slots__}, "line": q.line, "span": q.span})
        for p, q in zip(after.params, before.params, strict=True)
    )


def test_edits_leave_every_other_line_alone() -> None:
    source = f"{HEADER}.visible .entry k()\n{{\n  mov.u32 %a,\n    1; // one\n  ret;\n}}\n"
    module = parse(source)
    mov, _ = module.entry().instructions()
    cut = edit.remove(module, [mov])
    assert cut == source.replace("mov.u32 %a,\n    1;", "\n")
    (ret,) = parse(cut).entry().instructions()
    assert ret.line == 8
    assert "mov.u32 %a, 2;" in edit.replace(module, {mov.span: "mov.u32 %a, 2;"})
    with pytest.raises(ValueError, match="overlaps"):
        edit.replace(module, {mov.span: "", ast.Span(mov.span.start + 1, mov.span.end): ""})


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("mov.u32 %a, %b", 6, "expected ',' or ';' in the operands of mov.u32"),
        ("mov.u32 %a, ;", 6, "expected an operand"),
        ("mov.u32 %a, 1/0;", 6, "division by zero"),
        ("ret;\n?", 7, "expected an instruction, a label, a declaration"),
        (".reg .b33 %a;", 6, "expected a register type"),
        ("ld.u32 %a, [%b;", 6, "expected ']' to close an address"),
        ("{ ret;", 8, "to close the block opened in line 5"),
        ("/* never closed", 6, "never closed"),
        ("mov.u32 %a, \x01;", 6, "does not start a PTX token"),
    ],
)
def test_syntax_errors_name_and_show_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(PtxSyntaxError, match=r"PTX line \d+") as caught:
        body(text)
    assert message in str(caught.value)
    assert caught.value.line is not None
    assert abs(caught.value.line - line) <= 1  # the error may be seen at the next token


def test_unknown_entry_lists_the_entries() -> None:
    module = parse(HEADER + ".entry a() { ret; }\n.entry b() { ret; }\n")
    with pytest.raises(KeyError, match="a, b"):
        module.entry("c")
    with pytest.raises(KeyError, match="must be named"):
        module.entry()


def test_a_long_kernel_parses_quickly() -> None:
    """1,500 lines, a third of them wgmma with 64 accumulators: about 60 ms of a 200 ms budget.

    Processor time, since the other core of a test machine runs tests, too.
    """
    wgmma = "wgmma.mma {" + ",".join(f"%f{i}" for i in range(64)) + "}, %d, %e, %p, 1, 1, 0, 0;"
    lines = [
        wgmma if i % 3 == 0 else "ld.shared.v4.f32 {%a, %b, %c, %d}, [%r1+16];" for i in range(1500)
    ]
    best = min(_seconds("\n".join(lines)) for _ in range(5))
    assert best < 0.2


def _seconds(text: str) -> float:
    start = time.process_time()
    body(text)
    return time.process_time() - start
