"""Small PTX kernels on the emulator: wrap a body, pass arrays, get the report."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ptxgen.spec import Dim3
from runtime.emulator.machine import Machine
from runtime.emulator.memory import GlobalMemory
from runtime.emulator.report import Report

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
