"""What wgmma multiplies: one row for each input type (PTX ISA 9.7.15.5, `wgmma.mma_async`).

One wgmma consumes 32 bytes of K, whatever the type. B (and A, unless it is in registers) comes from
shared memory; only 16-bit types may be transposed (MN-major).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

WGMMA_M = 64  # rows of one wgmma
WGMMA_K_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class WgmmaInput:
    """An input type of wgmma.

    `storage` is the dtype of the array in memory. `accumulators` are the legal types of D, the
    usual one first. `partners` are the types that the other operand may have. `scales` says whether
    the instruction takes the +-1 immediates, `transposes` whether it takes the transpose bits.
    """

    name: str
    storage: str
    bits: int
    accumulators: tuple[str, ...]
    partners: tuple[str, ...]
    scales: bool
    transposes: bool
    sass: str  # opcode
    sass_input: str  # modifier that names the input type

    @property
    def k(self) -> int:
        """Elements of K that one wgmma consumes."""
        return WGMMA_K_BYTES * 8 // self.bits

    def legal_n(self, n: int) -> bool:
        """N is 8..256 in steps of 8; for integers 8, 16, 24, 32, then steps of 16."""
        step = 16 if "s32" in self.accumulators and n > 32 else 8
        return 8 <= n <= 256 and n % step == 0


_FP8 = ("e4m3", "e5m2")
_INT8 = ("s8", "u8")

WGMMA_INPUTS: Mapping[str, WgmmaInput] = MappingProxyType(
    {
        row.name: row
        for row in (
            WgmmaInput(name="bf16", storage="bf16", bits=16, accumulators=("f32",),
                       partners=("bf16",), scales=True, transposes=True, sass="HGMMA",
                       sass_input=".BF16"),
            WgmmaInput(name="f16", storage="f16", bits=16, accumulators=("f32", "f16"),
                       partners=("f16",), scales=True, transposes=True, sass="HGMMA",
                       sass_input=""),
            WgmmaInput(name="tf32", storage="f32", bits=32, accumulators=("f32",),
                       partners=("tf32",), scales=True, transposes=False, sass="HGMMA",
                       sass_input=".TF32"),
            *(WgmmaInput(name=name, storage=name, bits=8, accumulators=("f32", "f16"),
                         partners=_FP8, scales=True, transposes=False, sass="QGMMA",
                         sass_input=f".{name.upper()}") for name in _FP8),
            *(WgmmaInput(name=name, storage=name, bits=8, accumulators=("s32",),
                         partners=_INT8, scales=False, transposes=False, sass="IGMMA",
                         sass_input=f".{name.upper()}") for name in _INT8),
        )
    }
)  # fmt: skip


def sass_opcode(a: str, b: str, accumulator: str, n: int) -> str:
    """The SASS opcode of a wgmma: HGMMA.64x256x16.F32.BF16, QGMMA.64x128x32.F32.E4M3.E5M2."""
    left, right = WGMMA_INPUTS[a], WGMMA_INPUTS[b]
    head = f"{left.sass}.64x{n}x{left.k}"
    if left.sass == "HGMMA":
        return f"{head}.{accumulator.upper()}{left.sass_input}"
    if left.sass == "QGMMA":
        return f"{head}.{accumulator.upper()}{left.sass_input}{right.sass_input}"
    return f"{head}{left.sass_input}{right.sass_input}"
