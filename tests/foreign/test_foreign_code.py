"""The emulator's generated Python holds no name from the PTX: foreign text reaches `exec`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from launching import CASES, case_of, source

from ptxgen.errors import UnsupportedPtx
from ptxgen.foreign import load_ptx
from ptxgen.ptx import ast, parse
from runtime.emulator.machine import Machine

pytestmark = pytest.mark.emu

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
# Names that Python, NumPy or the generated code itself could take for something else.
ODD = ("__import__", "os$system", "exec_", "lambda_", "True_", "p_C_S", "copyto_", "K0_", "_t1")


def code(text: str, block: tuple[int, ...] | None) -> list[str]:
    """The generated functions of every block, in both variants."""
    k = load_ptx(text, block=block)
    kernel = Machine().compile(k.ptx, k.spec.entry, k.spec.block)
    return [kernel.source(i, full) for i in range(len(kernel.full)) for full in (True, False)]


def declared(module: ast.Module) -> tuple[set[str], set[str]]:
    """Functions, parameters, variables, registers and labels; and the stems of `%r<8>`."""
    names: set[str] = set()
    stems: set[str] = set()
    for item in module.items:
        if isinstance(item, ast.Variable):
            names.add(item.name)
        elif isinstance(item, ast.Function):
            names |= {item.name, *(v.name for v in (*item.params, *item.results))}
            for s in _inside(item.body) if item.body else ():
                if isinstance(s, ast.Registers):
                    names |= {n.name for n in s.names if n.count is None}
                    stems |= {n.name for n in s.names if n.count is not None}
                else:
                    names.add(s.name)
    return names, stems


def renamed(text: str) -> str:
    """The same program with other names, but for the `.` after a special register's."""
    names, stems = declared(parse(text))

    def other(match: re.Match[str]) -> str:
        word, stem = match[0], match[0].rstrip("0123456789")
        if word in names:
            return f"odd_{len(word)}_{word.strip('%$')}"
        return f"%odd_{stem[1:]}_{word[len(stem) :]}" if {word, stem} & stems else word

    return re.sub(r"(?<![\w.$%])[A-Za-z_$%][\w$]*", other, text)


def _inside(block: ast.Block) -> Iterator[ast.Registers | ast.Variable | ast.Label]:
    for s in block.body:
        if isinstance(s, ast.Block):
            yield from _inside(s)
        elif isinstance(s, (ast.Registers, ast.Variable, ast.Label)):
            yield s


@pytest.mark.parametrize("name", CASES)
def test_code_of_a_program_does_not_depend_on_its_names(name: str) -> None:
    """With every name replaced, the generated functions stay the same, letter by letter."""
    text, block = source(name), case_of(name).block
    other = renamed(text)
    names, stems = declared(parse(other))
    assert len(names) > 4
    assert all(n.lstrip("%").startswith("odd_") for n in names | stems)
    assert code(other, block) == code(text, block)


def test_code_of_odd_names_holds_none_of_them() -> None:
    a, b, c, d, e, f, g, h, i = ODD
    text = (
        f"{HEAD}.global .u32 {h}[4];\n"
        f".func (.reg .b32 {i}) {a}(.reg .b32 {b}) {{ mov.u32 {i}, {b}; ret; }}\n"
        f".visible .entry {c}(.param .u64 {d})\n{{\n"
        f".reg .b32 {e}; .reg .pred %{f}; .reg .b64 {b}; .shared .align 4 .b32 {g}[32];\n"
        f"ld.param.u64 {b}, [{d}]; mov.u32 {e}, %tid.x; st.shared.u32 [{g}], {e};\n"
        f"{a}: setp.lt.u32 %{f}, {e}, 5; @%{f} add.u32 {e}, {e}, 3; @%{f} bra {a};\n"
        f"call ({e}), {a}, ({e}); st.global.u32 [{b}], {e}; st.global.u32 [{h}], {e}; ret;\n}}\n"
    )
    assert declared(parse(text))[0] == {*ODD, f"%{f}"} - {f}
    words = {word for source_ in code(text, (32,)) for word in re.findall(r"[\w$]+", source_)}
    assert len(words) > 20
    assert words & {*ODD} == set()


# What is refused, with its line and its reason. A jump table is what other compilers make of a
# switch; nvcc makes branches of it.
REFUSED = {
    "brx.idx": "{ .reg .b32 %i; mov.u32 %i, 0;\nTABLE: .branchtargets A, B;\n"
    "brx.idx %i, TABLE;\nA: ret;\nB: ret; }",
    "call": "{ .reg .b64 %f; mov.u64 %f, 0;\nP: .callprototype ()_ ();\n\ncall %f, P; }",
    "vprintf": "{ .reg .b32 %i;\n\n\ncall (%i), vprintf, (%i); }",
    "tex": "{ .reg .f32 %a, %b; .reg .b64 %t;\n\n\ntex.1d.v4.f32.f32 {%a,%a,%a,%a}, [%t, {%b}]; }",
    "wgmma": "{ .reg .b32 %d;\n\n\nwgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc %d; }",
    "fancy": "{ .reg .b32 %d;\n\n\nfancy.new.u32 %d, %d; }",  # no such instruction
}


@pytest.mark.parametrize("opcode", REFUSED)
def test_what_is_refused_is_named_with_its_line(opcode: str) -> None:
    text = f"{HEAD}.visible .entry k()\n{REFUSED[opcode]}\n"
    k = load_ptx(text)
    with pytest.raises(UnsupportedPtx) as caught:
        Machine().compile(k.ptx, "k", k.spec.block)
    line = next(
        i
        for i, t in enumerate(text.splitlines(), 1)
        if re.search(r"brx|call |tex\.|wgmma|fancy", t)
    )
    assert caught.value.line == line
    assert f"PTX line {line}: " in str(caught.value)


def test_the_old_wmma_interface_is_refused() -> None:
    k = load_ptx(source("wmma_tile"))
    with pytest.raises(UnsupportedPtx, match=r"PTX line 33: wmma\.load\.a"):
        Machine().compile(k.ptx, k.spec.entry, k.spec.block)
