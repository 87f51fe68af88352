"""Data types: one row each, read by every layer (templates, tensor maps, DLPack, NumPy, emulator).

Canonical names are PTX's own (bf16, f16, f32, e4m3, s8, ...). Common spellings are accepted where a
person types a name and resolved here once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class DType:
    """One data type.

    `numpy` is the NumPy or ml_dtypes type name. `dlpack` is (type code, bits) of DLPack 1.0.
    `map_name` is the CUtensorMapDataType suffix of cuda.h that TMA moves it as (fp8 and int8 travel
    as UINT8), or None where a tensor map has no such type. `ptx_bits` is the untyped PTX register
    type of the same width, `ptx_load` the type of a `ld`/`st` of one element.
    """

    name: str
    bits: int
    kind: str  # "float" | "int" | "uint"
    numpy: str
    dlpack: tuple[int, int]
    map_name: str | None
    ptx_load: str
    aliases: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def np_dtype(self) -> np.dtype:
        """The NumPy dtype (an ml_dtypes extension type for bf16 and fp8)."""
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, self.numpy, None) or self.numpy)


_ROWS = (
    DType(name="bf16", bits=16, kind="float", numpy="bfloat16", dlpack=(4, 16), map_name="BFLOAT16",
          ptx_load="b16", aliases=("bfloat16",)),
    DType(name="f16", bits=16, kind="float", numpy="float16", dlpack=(2, 16), map_name="FLOAT16",
          ptx_load="b16", aliases=("fp16", "float16", "half")),
    DType(name="f32", bits=32, kind="float", numpy="float32", dlpack=(2, 32), map_name="FLOAT32",
          ptx_load="f32", aliases=("fp32", "float32", "float")),
    DType(name="f64", bits=64, kind="float", numpy="float64", dlpack=(2, 64), map_name="FLOAT64",
          ptx_load="f64", aliases=("fp64", "float64", "double")),
    DType(name="e4m3", bits=8, kind="float", numpy="float8_e4m3fn", dlpack=(10, 8),
          map_name="UINT8", ptx_load="b8", aliases=("float8_e4m3fn", "fp8_e4m3")),
    DType(name="e5m2", bits=8, kind="float", numpy="float8_e5m2", dlpack=(12, 8), map_name="UINT8",
          ptx_load="b8", aliases=("float8_e5m2", "fp8_e5m2")),
    DType(name="s8", bits=8, kind="int", numpy="int8", dlpack=(0, 8), map_name="UINT8",
          ptx_load="s8", aliases=("int8",)),
    DType(name="u8", bits=8, kind="uint", numpy="uint8", dlpack=(1, 8), map_name="UINT8",
          ptx_load="u8", aliases=("uint8",)),
    DType(name="s16", bits=16, kind="int", numpy="int16", dlpack=(0, 16), map_name="UINT16",
          ptx_load="s16", aliases=("int16",)),
    DType(name="u16", bits=16, kind="uint", numpy="uint16", dlpack=(1, 16), map_name="UINT16",
          ptx_load="u16", aliases=("uint16",)),
    DType(name="s32", bits=32, kind="int", numpy="int32", dlpack=(0, 32), map_name="INT32",
          ptx_load="s32", aliases=("int32", "int")),
    DType(name="u32", bits=32, kind="uint", numpy="uint32", dlpack=(1, 32), map_name="UINT32",
          ptx_load="u32", aliases=("uint32",)),
    DType(name="s64", bits=64, kind="int", numpy="int64", dlpack=(0, 64), map_name="INT64",
          ptx_load="s64", aliases=("int64",)),
    DType(name="u64", bits=64, kind="uint", numpy="uint64", dlpack=(1, 64), map_name="UINT64",
          ptx_load="u64", aliases=("uint64",)),
)  # fmt: skip

DTYPES: Mapping[str, DType] = MappingProxyType({row.name: row for row in _ROWS})
_BY_SPELLING = {s: row for row in _ROWS for s in (row.name, row.numpy, *row.aliases)}
_BY_DLPACK = {row.dlpack: row for row in _ROWS}


def dtype(name: str) -> DType:
    """The row for any accepted spelling. Raises KeyError with the legal names."""
    try:
        return _BY_SPELLING[name]
    except KeyError:
        raise KeyError(f"unknown dtype {name!r}; known: {', '.join(DTYPES)}") from None


def from_numpy(np_dtype: np.dtype) -> DType | None:
    """The row of a NumPy or ml_dtypes dtype, or None."""
    return _BY_SPELLING.get(np_dtype.name)


def from_dlpack(code: int, bits: int, lanes: int = 1) -> DType | None:
    """The row of a DLPack (code, bits, lanes) triple, or None."""
    return _BY_DLPACK.get((code, bits)) if lanes == 1 else None
