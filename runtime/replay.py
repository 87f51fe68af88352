"""A launch as a `ptxgen check` command, so that a hang on a GPU can be looked at on the emulator.

The command names a file with the PTX, the shape of the launch, and every `.param` by its own name:
scalars by value, arrays and tensor maps by type, shape and box. Contents are made up; a launch that
hangs because of them is replayed by naming a .npy file instead.
"""

from __future__ import annotations

import re
import shlex
import struct
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from ptxgen import env
from ptxgen.spec import ArrayMeta, PointerParam, ScalarParam, TensorMapParam, Workspace
from runtime.backend import BoundLaunch, BoundStep

FOLDER = "hangs"  # under PTXGEN_CACHE_DIR, where PTXGEN_DUMP names no other
_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


def commands(bound: BoundLaunch) -> Iterator[str]:
    """One command a step. Writes the PTX of each; where that fails, says so instead."""
    for step in bound.steps:
        try:
            yield command(step, bound.metas, save(step))
        except OSError as error:
            yield (
                f"(the PTX could not be written: {error}; "
                f"set {env.DUMP.name} to a folder that can be written)"
            )


def save(step: BoundStep) -> Path:
    """Write the PTX of a step; the same text goes to the same file. OSError if it cannot be."""
    text = step.loaded.ptx
    folder = env.DUMP.get() or env.CACHE_DIR.get() / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    entry = re.sub(r"[^A-Za-z0-9_.$-]", "_", step.step.entry)[:100]
    path = folder / f"{entry}-{sha256(text.encode()).hexdigest()[:12]}.ptx"
    path.write_text(text, encoding="utf-8")
    return path


def command(step: BoundStep, metas: Mapping[str, ArrayMeta], file: Path) -> str:
    """What to type into a shell."""
    spec = step.loaded.spec
    words = ["ptxgen", "check", str(file), "--entry", spec.entry, "--grid", str(step.step.grid)]
    words += ["--block", str(spec.block), "--cluster", str(spec.cluster)]
    if spec.smem_bytes:
        words += ["--smem", str(spec.smem_bytes)]
    for param, value in zip(spec.params, step.params, strict=True):
        if isinstance(param, TensorMapParam):
            text = _map(param, metas[param.arg])
        elif isinstance(param, PointerParam):
            text = _pointer(param, value, metas)
        else:
            assert isinstance(value, bytes)
            text = _scalar(param, value)
        words += ["--arg", f"{param.name}={text}"]
    return shlex.join(words)


def _in_memory(meta: ArrayMeta) -> tuple[tuple[int, ...], str]:
    """The axes of an array, the outermost in memory first, and its type and shape in that order."""
    axes = tuple(sorted(range(len(meta.shape)), key=lambda axis: -abs(meta.strides[axis])))
    return axes, f"{meta.dtype}[{','.join(str(meta.shape[axis]) for axis in axes)}]"


def _map(param: TensorMapParam, meta: ArrayMeta) -> str:
    axes, array = _in_memory(meta)
    walked = tuple(axes.index(axis) for axis in param.axes)
    options = {"box": "x".join(map(str, param.box))}
    if walked != tuple(range(len(axes))):
        options["axes"] = "x".join(map(str, walked))
    if param.dtype != meta.dtype:
        options["dtype"] = param.dtype
    options |= {"swizzle": str(param.swizzle), "l2": str(param.l2), "fill": param.fill}
    text = ",".join(f"{key}={value}" for key, value in options.items())
    return f"tmap({array},{text}):{_contents(param.access)}"


def _pointer(param: PointerParam, value: bytes | Workspace, metas: Mapping[str, ArrayMeta]) -> str:
    if isinstance(value, Workspace):
        return f"u8[{value.bytes}]:zeros"
    return f"{_in_memory(metas[param.arg])[1]}:{_contents(param.access)}"


def _contents(access: str) -> str:
    return "zeros" if access == "write" else "ints"


def _scalar(param: ScalarParam, value: bytes) -> str:
    if code := _FLOATS.get(param.ptx_type):
        return repr(struct.unpack(code, value)[0])
    if "[" in param.ptx_type:
        return f"bytes:{value.hex()}"
    return str(int.from_bytes(value, "little", signed=param.ptx_type.startswith("s")))
