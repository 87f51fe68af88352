"""Small PTX kernels on the emulator: wrap a body, pass arrays, get the report."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from ptxgen.layout.tensor_map import TensorMapSpec, encode
from ptxgen.spec import Dim3
from runtime.emulator.machine import Machine
from runtime.emulator.memory import GlobalMemory
from runtime.emulator.report import Report

BF16 = np.dtype(ml_dtypes.bfloat16)
MAP = ".align 64 .b8 {}[128]"
SMEM = ".extern .shared .align 1024 .b8 smem[];"
REGISTERS = (
    ".reg .pred %p<16>; .reg .b16 %h<32>; .reg .b32 %r<64>; .reg .b64 %rd<64>;"
    " .reg .f32 %f<64>; .reg .f64 %fd<32>;"
)


def module(
    body: str,
    params: Sequence[str] = (),
    *,
    head: str = "",
    directives: str = "",
    version: str = "8.0",
) -> str:
    """A module with one entry `k`. `params` are declarations such as ".u64 x"."""
    declared = ", ".join(f".param {p}" for p in params)
    return (
        f".version {version}\n.target sm_90a\n.address_size 64\n{head}\n"
        f".visible .entry k({declared})\n{directives}\n{{\n{REGISTERS}\n{body}\n}}\n"
    )


def run(
    source: str,
    arrays: Mapping[str, np.ndarray] | None = None,
    scalars: Mapping[str, bytes] | None = None,
    *,
    grid: Any = 1,
    block: Any = 32,
    cluster: Any = None,
    smem: int = 0,
    machine: Machine | None = None,
) -> Report:
    """Launch the only entry of a module. Arrays go to 64-bit pointer parameters of their names."""
    memory = GlobalMemory()
    params = {
        name: struct.pack("<Q", memory.add(array, name)) for name, array in (arrays or {}).items()
    }
    params.update(scalars or {})
    return (machine or Machine()).launch(
        source,
        grid=_dim3(grid),
        block=_dim3(block),
        cluster=None if cluster is None else _dim3(cluster),
        smem_bytes=smem,
        params=params,
        memory=memory,
    )


def _dim3(x: Any) -> Dim3:
    return x if isinstance(x, Dim3) else Dim3(x)


def u32(value: int) -> bytes:
    return struct.pack("<I", value & 0xFFFFFFFF)


def tensor_map(
    memory: GlobalMemory, x: np.ndarray, box: tuple[int, ...], **options: object
) -> bytes:
    names = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "uint8": "u8", "int32": "s32"}
    spec = TensorMapSpec(
        dtype=names[x.dtype.name], address=memory.add(x), shape=x.shape, strides=x.strides, box=box
    )
    return encode(replace(spec, **options))  # type: ignore[arg-type]


def swizzled(offset: np.ndarray, swizzle: int) -> np.ndarray:
    """The definition: 16-byte chunk bits XORed with row bits."""
    mask = {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]
    return offset ^ (((offset >> 7) & mask) << 4)


def image_of(box: np.ndarray, swizzle: int) -> np.ndarray:
    """The bytes of shared memory that a box makes, as a tile on a 1024-byte boundary."""
    raw = np.frombuffer(box.tobytes(), np.uint8)
    image = np.zeros(len(raw), np.uint8)
    image[swizzled(np.arange(len(raw)), swizzle)] = raw
    return image


def clipped(
    x: np.ndarray, start: tuple[int, ...], box: tuple[int, ...], fill: object
) -> np.ndarray:
    out = np.full(box, fill, x.dtype)
    for index in np.ndindex(*box):
        at = tuple(s + i for s, i in zip(start, index, strict=True))
        if all(0 <= a < n for a, n in zip(at, x.shape, strict=True)):
            out[index] = x[at]
    return out


REGISTER = {16: "%h", 32: "%r", 64: "%rd"}


def _body(text: str, out: int, ins: tuple[int, ...], wrap: str, uniform: bool) -> str:
    """Load the operands of a lane (or of lane 0), run the text, store the result."""
    names = {"D": f"{REGISTER[out]}20"}
    lines = ["mov.u32 %r50, %tid.x;", "mov.u32 %r51, 0;" if uniform else "mov.u32 %r51, %r50;"]
    for i, bits in enumerate(ins):
        names["ABCE"[i]] = f"{REGISTER[bits]}{21 + i}"
        lines += [
            f"ld.param.u64 %rd50, [x{i}]; mad.wide.u32 %rd50, %r51, {bits // 8}, %rd50;",
            f"ld.global.b{bits} {names['ABCE'[i]]}, [%rd50];",
        ]
    for key, name in names.items():
        text = text.replace(f" {key}", f" {name}").replace(f"{{{key}", f"{{{name}")
    lines += [f"mov.b{out} {names['D']}, 0;", wrap.replace("BODY", text)]
    lines += [
        f"ld.param.u64 %rd51, [d]; mad.wide.u32 %rd51, %r50, {out // 8}, %rd51;",
        f"st.global.b{out} [%rd51], {names['D']};",
    ]
    return "\n".join(lines)


def evaluate(text: str, out: int, ins: tuple[int, ...], inputs: list[np.ndarray], wrap: str,
         uniform: bool) -> list[int]:  # fmt: skip
    params = [f".u64 x{i}" for i in range(len(ins))] + [".u64 d"]
    """One instruction (or a few) in 32 threads: operands A, B, C, E, result D, all as bits.

    `wrap` holds BODY where the text goes; `uniform` takes every operand from element 0.
    """
    result = np.zeros(32, f"u{out // 8}")
    arrays = {f"x{i}": x for i, x in enumerate(inputs)} | {"d": result}
    run(module(_body(text, out, ins, wrap, uniform), params), arrays)
    return [int(v) for v in result]
