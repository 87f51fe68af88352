"""Logic, shifts and bit fields (PTX ISA 9.7.8 and parts of 9.7.1), predicates, moves."""

from __future__ import annotations

from ptxgen.isa.forms.base import Form, Run

_B = ("b16", "b32", "b64")
_INT = ("u32", "s32", "u64", "s64")

FORMS = (
    *(
        Form(
            id=op,
            text=f"{op}.{{type}} {{d}}, {{a}}, {{b}};",
            macro=f"bits.{op}(type, d, a, b)",
            axes={"type": (*_B, "pred")},
            writes="d:{type}",
            reads="a:{type} b:{type}",
        )
        for op in ("and", "or", "xor")
    ),
    Form(
        id="not",
        text="not.{type} {d}, {a};",
        macro="bits.not(type, d, a)",
        axes={"type": (*_B, "pred")},
        writes="d:{type}",
        reads="a:{type}",
    ),
    Form(
        id="cnot",
        text="cnot.{type} {d}, {a};",
        macro="bits.cnot(type, d, a)",
        axes={"type": _B},
        writes="d:{type}",
        reads="a:{type}~sparse",
    ),
    Form(
        id="lop3",
        text="lop3.b32 {d}, {a}, {b}, {c}, {table};",
        macro="bits.lop3(d, a, b, c, table)",
        axes={"table": ("0x00", "0x1e", "0x80", "0x96", "0xca", "0xd8", "0xe8", "0xfe", "0xff")},
        writes="d:b32",
        reads="a:b32 b:b32 c:b32",
    ),
    Form(
        id="lop3.pred",
        text="lop3.{join}.b32 {d}|{p}, {a}, {b}, {c}, {table}, {q};",
        macro="bits.lop3_test(join, d, p, a, b, c, table, q)",
        axes={"join": ("or", "and"), "table": ("0x80", "0x96")},
        writes="d:b32 p:pred",
        reads="a:b32~sparse b:b32 c:b32 q:pred",
        ptx=(8, 2),
    ),
    Form(
        id="shl",
        text="shl.{type} {d}, {a}, {b};",
        macro="bits.shl(type, d, a, b)",
        axes={"type": _B},
        writes="d:{type}",
        reads="a:{type} b:u32~shift",
    ),
    Form(
        id="shr",
        text="shr.{type} {d}, {a}, {b};",
        macro="bits.shr(type, d, a, b)",
        axes={"type": (*_B, "u16", "s16", *_INT)},
        writes="d:{type}",
        reads="a:{type} b:u32~shift",
    ),
    Form(
        id="shf",
        text="shf.{side}.{mode}.b32 {d}, {a}, {b}, {c};",
        macro='bits.shf(side ~ "." ~ mode, d, a, b, c)',
        axes={"side": ("l", "r"), "mode": ("clamp", "wrap")},
        writes="d:b32",
        reads="a:b32 b:b32 c:u32~shift",
    ),
    Form(
        id="bfe",
        text="bfe.{type} {d}, {a}, {b}, {c};",
        macro="bits.bfe(type, d, a, b, c)",
        axes={"type": _INT},
        writes="d:{type}",
        reads="a:{type} b:u32~shift c:u32~shift",
    ),
    Form(
        id="bfi",
        text="bfi.{type} {d}, {a}, {b}, {c}, {length};",
        macro="bits.bfi(type, d, a, b, c, length)",
        axes={"type": ("b32", "b64")},
        writes="d:{type}",
        reads="a:{type} b:{type} c:u32~shift length:u32~shift",
    ),
    Form(
        id="bfind",
        text="bfind.{amount}{type} {d}, {a};",
        macro="bits.bfind(amount ~ type, d, a)",
        axes={"amount": ("", "shiftamt."), "type": _INT},
        writes="d:u32",
        reads="a:{type}~ramp",
    ),
    Form(
        id="brev",
        text="brev.{type} {d}, {a};",
        macro="bits.brev(type, d, a)",
        axes={"type": ("b32", "b64")},
        writes="d:{type}",
        reads="a:{type}",
    ),
    *(
        Form(
            id=op,
            text=f"{op}.{{type}} {{d}}, {{a}};",
            macro=f"bits.{op}(type, d, a)",
            axes={"type": ("b32", "b64")},
            writes="d:u32",
            reads="a:{type}~ramp",
        )
        for op in ("clz", "popc")
    ),
    Form(
        id="fns",
        text="fns.b32 {d}, {mask}, {base}, {offset};",
        macro="bits.fns(d, mask, base, offset)",
        writes="d:b32",
        reads="mask:b32 base:b32~lane offset:s32~small_int",
    ),
    Form(
        id="szext",
        text="szext.{mode}.{type} {d}, {a}, {b};",
        macro='bits.szext(mode ~ "." ~ type, d, a, b)',
        axes={"mode": ("clamp", "wrap"), "type": ("u32", "s32")},
        writes="d:{type}",
        reads="a:{type} b:u32~shift",
        ptx=(7, 6),
    ),
    Form(
        id="bmsk",
        text="bmsk.{mode}.b32 {d}, {a}, {b};",
        macro="bits.bmsk(mode, d, a, b)",
        axes={"mode": ("clamp", "wrap")},
        writes="d:b32",
        reads="a:u32~shift b:u32~shift",
        ptx=(7, 6),
    ),
    Form(
        id="prmt",
        text="prmt.b32{mode} {d}, {a}, {b}, {c};",
        macro="bits.prmt(d, a, b, c, mode)",
        axes={"mode": ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16")},
        writes="d:b32",
        reads="a:b32 b:b32 c:b32",
    ),
    Form(
        id="mov",
        text="mov.{type} {d}, {a};",
        macro="bits.mov(type, d, a)",
        axes={"type": (*_B, "u16", "s16", *_INT, "f32", "f64", "pred")},
        writes="d:{type}",
        reads="a:{type}",
    ),
    Form(
        id="mov.pack",
        text="mov.{type} {d}, {a};",
        macro="bits.mov(type, d, a)",
        axes={"type": ("b32", "b64"), "parts": (2, 4)},
        derive=lambda axes: {"part": f"b{int(str(axes['type'])[1:]) // int(axes['parts'])}"},
        writes="d:{type}",
        reads="a:{part}*{parts}",
    ),
    Form(
        id="mov.unpack",
        text="mov.{type} {d}, {a};",
        macro="bits.mov(type, d, a)",
        axes={"type": ("b32", "b64"), "parts": (2, 4)},
        derive=lambda axes: {"part": f"b{int(str(axes['type'])[1:]) // int(axes['parts'])}"},
        writes="d:{part}*{parts}",
        reads="a:{type}",
    ),
    Form(
        id="mov.b128",
        text="mov.b128 {whole}, {a};",
        macro='bits.mov("b128", whole, a)',
        derive=lambda axes: {"whole": "%whole"},
        reads="a:b64*2",
        run=Run(
            scratch=("b128 %whole",),
            after=("mov.b128 {{%low, %high}}, %whole;",),
            sees="low:b64 high:b64",
        ),
        ptx=(8, 3),
    ),
)
