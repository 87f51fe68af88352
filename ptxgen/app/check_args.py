"""Launch arguments as they are typed: `x=f32[1000]:random` and what else `--arg` takes.

    n=1000   alpha=0.5                                       a number
    x=f32[1000]:random                                       an array, with what is in it
    x=data.npy   x=bf16[64,64]:data.npy                      an array from a file
    a=tmap(bf16[512,256],box=64x128,swizzle=128):random      a tensor map of an array
    p=bytes:0100000002000000                                 a structure, in hex

Every array has random numbers of its own, which depend on the seed and its name only.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ptxgen.errors import ArgumentError, Violation
from ptxgen.isa.dtypes import DType, dtype, from_numpy

FORMS = (
    "must be a number, DTYPE[SHAPE]:CONTENTS, FILE.npy, "
    "tmap(DTYPE[SHAPE],box=ROWSxCOLUMNS,...):CONTENTS or bytes:HEX"
)
EXAMPLE = "for example x=f32[1000]:random"
_ARRAY = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d,x ]*)\](?::(?P<contents>.+))?")
_MAP = re.compile(r"tmap\((?P<array>\w+\[[^\]]*\])(?P<options>(?:,\w+=[^,()]+)*)\)(?P<rest>:.+)?")
ALIGNMENT = 256  # bytes, as cudaMalloc gives
_SMALL = 8  # "ints" are -8..8, so that sums of products stay exact

Maker = Callable[[tuple[int, ...], DType, np.random.Generator], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One `--arg`: what the launch gets, and the array behind it, if there is one."""

    name: str
    value: object
    array: np.ndarray[Any, Any] | None = None


def parse_arguments(texts: Sequence[str], seed: int) -> tuple[Argument, ...]:
    """Every `--arg` in order. Raises ArgumentError with all that cannot be read."""
    found: list[Argument] = []
    broken: list[Violation] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            broken.append(
                Violation(field="--arg", got=text, rule="must be NAME=VALUE", fix=EXAMPLE)
            )
            continue
        try:
            found.append(_argument(name.strip(), value.strip(), seed))
        except ValueError as error:
            broken.append(Violation(field=name.strip(), got=value, rule=str(error), fix=EXAMPLE))
        except ArgumentError as error:
            broken += error.violations
    if broken:
        raise ArgumentError("arguments that cannot be read", broken)
    return tuple(found)


def _argument(name: str, text: str, seed: int) -> Argument:
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    if text.startswith("bytes:"):
        return Argument(name=name, value=bytes.fromhex(text.removeprefix("bytes:")))
    if match := _MAP.fullmatch(text):
        return _tensor_map(name, match, rng)
    if match := _ARRAY.fullmatch(text):
        array = _array(match, rng)
        return Argument(name=name, value=array, array=array)
    if text.endswith(".npy"):
        array = _aligned(_load(text))
        return Argument(name=name, value=array, array=array)
    return Argument(name=name, value=_number(text))


def _number(text: str) -> int | float:
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ValueError(FORMS) from None


def _tensor_map(name: str, match: re.Match[str], rng: np.random.Generator) -> Argument:
    from runtime.tensor_maps import tensor_map

    inner = _ARRAY.fullmatch(match["array"] + (match["rest"] or ""))
    if inner is None:
        raise ValueError(FORMS)
    options: dict[str, Any] = {}
    for item in filter(None, match["options"].split(",")):
        key, _, value = item.partition("=")
        if key not in _MAP_OPTIONS:
            raise ValueError(f"has no option {key!r}; there are {', '.join(_MAP_OPTIONS)}")
        options[key] = _MAP_OPTIONS[key](value)
    if "box" not in options:
        raise ValueError("needs box=ROWSxCOLUMNS, in elements, outermost first")
    array = _array(inner, rng)
    return Argument(name=name, value=tensor_map(array, **options), array=array)


def extents(text: str) -> tuple[int, ...]:
    """`4`, `4x2`, `4,2,1`: extents along x, y, z, or a shape. ValueError for anything else."""
    return tuple(int(part) for part in re.split("[x,]", text)) if text.strip() else ()


_MAP_OPTIONS: Mapping[str, Callable[[str], object]] = MappingProxyType(
    {
        "box": extents, "axes": extents, "swizzle": int, "l2": int, "fill": str, "dtype": str,
    }
)  # fmt: skip


# --- arrays --------------------------------------------------------------------------------------


def _array(match: re.Match[str], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    try:
        row = dtype(match["dtype"])
    except KeyError as error:
        raise ValueError(error.args[0]) from None
    shape = extents(match["shape"])
    contents = match["contents"] or "random"
    if contents.endswith(".npy"):
        return _aligned(_fitted(_load(contents), shape, row, contents))
    if contents not in CONTENTS:
        raise ValueError(f"contents must be {', '.join(CONTENTS)} or a .npy file")
    if contents == "nan" and not row.is_float:
        raise ValueError(f"{row.name} has no NaN; contents for integers: zeros, ones, arange, ints")
    return _aligned(np.ascontiguousarray(CONTENTS[contents](shape, row, rng)))


def _aligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy whose address is a multiple of what a GPU's allocator gives, in every run."""
    room = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    skip = -room.ctypes.data % ALIGNMENT
    place: np.ndarray[Any, Any] = room[skip : skip + array.nbytes].view(array.dtype)
    place = place.reshape(array.shape)
    place[...] = array
    return place


def _random(shape: tuple[int, ...], row: DType, rng: np.random.Generator) -> Any:
    """Standard normal floats; integers from the whole range of their type."""
    if row.is_float:
        return rng.standard_normal(shape).astype(row.np_dtype)
    limits = np.iinfo(row.np_dtype)
    return rng.integers(limits.min, limits.max, shape, row.np_dtype, endpoint=True)


def _ints(shape: tuple[int, ...], row: DType, rng: np.random.Generator) -> Any:
    low = 0 if row.kind == "uint" else -_SMALL
    return rng.integers(low, _SMALL, shape, endpoint=True).astype(row.np_dtype)


CONTENTS: Mapping[str, Maker] = MappingProxyType(
    {
        "random": _random,
        "ints": _ints,
        "zeros": lambda shape, row, rng: np.zeros(shape, row.np_dtype),
        "ones": lambda shape, row, rng: np.ones(shape).astype(row.np_dtype),
        "nan": lambda shape, row, rng: np.full(shape, np.nan).astype(row.np_dtype),
        "arange": lambda shape, row, rng: (
            np.arange(prod(shape)).reshape(shape).astype(row.np_dtype)
        ),
    }
)


def _load(name: str) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = np.load(Path(name), allow_pickle=False)
    return array


def _fitted(
    array: np.ndarray[Any, Any], shape: tuple[int, ...], row: DType, name: str
) -> np.ndarray[Any, Any]:
    """A loaded array as what was asked for; types that .npy has no name for come as raw bits."""
    if from_numpy(array.dtype) is None and array.dtype.itemsize == row.bytes:
        array = array.view(row.np_dtype)
    if array.shape != shape or array.dtype != row.np_dtype:
        raise ValueError(f"does not fit {name}, which holds {array.dtype} {list(array.shape)}")
    return np.ascontiguousarray(array)
