"""The kernel of one case: its PTX, its launch, its inputs, and what counts as its result."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import values

from ptxgen.isa.dtypes import dtype as dtype_row
from ptxgen.isa.forms import Case, Form, Operand
from ptxgen.isa.forms.base import CELL_BYTES, parse_operands
from ptxgen.spec import (
    ArrayMeta,
    DeviceLimits,
    Dim3,
    KernelSpec,
    LaunchPlan,
    PointerParam,
    Scalar,
    Step,
    TensorMapParam,
)
from ptxgen.templating import render

TEMPLATE = Path(__file__).parent / "harness" / "cases.ptx.j2"
TARGET = "sm_90a"
POISON = 0xA5
_SLOT = 8  # bytes a thread of one register
_MARK = "//// "


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A register and where its values lie, in bytes from a thread's own place."""

    register: str
    type: str
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A register that gets the address of a cell: base + (thread & mask) * step."""

    register: str
    space: str
    step: int
    mask: str


class CaseKernel:
    """What the template needs of a case, and how it is launched. `entry` is unique in a module."""

    def __init__(self, case: Case, entry: str) -> None:
        self.case, self.entry, self.id = case, entry, case.id
        run = case.run
        self.run = run
        self.threads, self.cluster = run.threads, run.cluster
        self.total = run.threads * run.cluster
        self.cell = CELL_BYTES
        spaces = {o.space for o in case.operands if o.space}
        self.local = "local" in spaces
        step = 16 * self.threads
        cells = CELL_BYTES * self.threads if spaces & {"shared", "generic_shared"} else 0
        self.shared = -(-max(run.shared, cells) // step) * step
        self.filled = self.shared if run.inputs else 0
        self.dumped = self.shared if run.dump else 0
        self.has_map = run.tensor is not None
        self.directives = run.directives
        self._registers(case)
        self._memory(case)

    def _registers(self, case: Case) -> None:
        plain = [o for o in case.operands if not o.space]
        reads = [o for o in plain if o.role in ("read", "update")]
        writes = [o for o in plain if o.role in ("write", "update")]
        self.seen = [
            *writes, *parse_operands(self.run.sees.format_map(case.names), "write")
        ]  # fmt: skip
        self.read_operands = reads
        self.inputs = self._slots(reads)
        self.outputs = self._slots(self.seen)
        declared = [*case.operands, *(o for o in self.seen if o not in writes)]
        groups: dict[str, list[str]] = {}
        for operand in declared:
            groups.setdefault(_kind(operand), []).extend(operand.registers)
        self.declarations = [f".reg .{k} {', '.join(names)};" for k, names in groups.items()]
        taken = {name for names in groups.values() for name in names}
        for text in self.run.scratch:
            kind, _, names = text.partition(" ")
            free = [n for n in names.split(", ") if n not in taken]
            self.declarations += [f".reg .{kind} {', '.join(free)};"] if free else []
        zeroed = self.seen if self.run.guard else self.seen[len(writes) :]
        zeroed = [o for o in zeroed if o.role != "update"]
        self.zeros = [_zero(o, r) for o in zeroed for r in o.registers if o.bits != 8]

    def _slots(self, operands: Sequence[Operand]) -> list[Slot]:
        named = [(o, r) for o in operands for r in o.registers]
        return [
            Slot(register=r, type=_kind(o), at=i * _SLOT * self.total)
            for i, (o, r) in enumerate(named)
        ]

    def _memory(self, case: Case) -> None:
        self.addresses = [
            Address(
                register=f"%{o.name}",
                space=o.space,
                step=0 if o.domain == "first" else CELL_BYTES,
                mask="0xfffffffe" if o.domain == "line" else "0xffffffff",
            )
            for o in case.operands
            if o.space
        ]
        cells = CELL_BYTES * self.total
        self.shared_in_at = _SLOT * self.total * len(self.inputs)
        self.local_in_at = self.shared_in_at + self.shared * self.cluster
        self.in_bytes = self.local_in_at + (cells if self.local else 0)
        self.gmem_at = -(-_SLOT * self.total * len(self.outputs) // 128) * 128
        self.shared_out_at = self.gmem_at + cells
        self.local_out_at = self.shared_out_at + (self.shared * self.cluster if self.dumped else 0)
        self.out_bytes = self.local_out_at + (cells if self.local else 0)

    @property
    def body(self) -> list[str]:
        """Before, the instruction, after."""
        names = self.case.names
        guard = f"@{self.run.guard} " if self.run.guard else ""
        return [
            *(line.format_map(names) for line in self.run.before),
            *(guard + self.case.text).split("\n"),
            *(line.format_map(names) for line in self.run.after),
        ]

    @property
    def globals(self) -> list[str]:
        return [line.format_map(self.case.names) for line in self.run.globals]

    @cached_property
    def spec(self) -> KernelSpec:
        params: tuple[PointerParam | TensorMapParam, ...] = (
            PointerParam(name="case_in", arg="inputs", dtype="u8"),
            PointerParam(
                name="case_out", arg="outputs", dtype="u8", access="read_write", align=128
            ),
        )
        image = self.run.tensor
        if image is not None:
            rank = len(image.shape)
            params += (
                TensorMapParam(
                    name="case_map", arg="image", dtype=image.dtype, axes=tuple(range(rank)),
                    box=image.box, swizzle=image.swizzle, use=image.use,
                ),
            )  # fmt: skip
        return KernelSpec(
            entry=self.entry,
            params=params,
            block=Dim3(self.threads),
            cluster=Dim3(self.cluster),
            target=TARGET,
            ptx_version=max(self.case.ptx, (8, 0)),
        )

    # --- inputs and results ----------------------------------------------------------------------

    def arrays(self, seed: int) -> dict[str, np.ndarray]:
        """The launch arguments: inputs, poisoned outputs, and the image of a tensor map."""
        case, run = self.case, self.run
        rows = [
            values.patterns(
                values.generator(case.id, seed, o.name), o.type, o.domain,
                (len(o.registers), self.total),
            ).astype(np.uint64)
            for o in self.read_operands
        ]  # fmt: skip
        parts = [row.view(np.uint8).reshape(-1) for row in rows]
        for name, size in (
            ("shared", self.shared * self.cluster),
            ("local", self.in_bytes - self.local_in_at),
        ):
            parts.append(values.memory(values.generator(case.id, seed, name), run.inputs, size))
        inputs = np.concatenate(parts) if parts else np.zeros(0, np.uint8)
        outputs = _aligned(self.out_bytes)
        outputs[:] = POISON
        cells = slice(self.gmem_at, self.shared_out_at)
        outputs[cells] = values.memory(
            values.generator(case.id, seed, "global"), run.inputs, cells.stop - cells.start
        )
        found = _aligned(max(len(inputs), 16))
        found[: len(inputs)] = inputs
        arrays = {"inputs": found, "outputs": outputs}
        if run.tensor is not None:
            row = dtype_row(run.tensor.dtype)
            count = int(np.prod(run.tensor.shape))
            domain = f"small.{run.tensor.dtype}" if row.is_float else "bytes"
            size = -(-count * row.bytes // 8) * 8
            image = _aligned(size)
            image[:] = values.memory(values.generator(case.id, seed, "image"), domain, size)
            arrays["image"] = (
                image[: count * row.bytes].view(row.np_dtype).reshape(run.tensor.shape)
            )
        return arrays

    def result(self, arrays: Mapping[str, np.ndarray]) -> bytes:
        """Every byte that the case may have changed."""
        parts = [arrays["outputs"].tobytes()]
        if self.run.tensor is not None and self.run.tensor.use != "load":
            parts.append(arrays["image"].tobytes())
        return b"".join(parts)

    def registers(self, result: bytes) -> np.ndarray:
        """The result registers: [register, thread] u64 slots."""
        count = len(self.outputs) * self.total * _SLOT
        return np.frombuffer(result[:count], np.uint64).reshape(len(self.outputs), self.total)


def digest(result: bytes) -> str:
    return hashlib.sha256(result).hexdigest()[:16]


def kernels(form: Form) -> list[CaseKernel]:
    """The kernels of all cases of a form."""
    stem = "".join(c if c.isalnum() else "_" for c in form.id)
    return [CaseKernel(case, f"{stem}_{i}") for i, case in enumerate(form.cases())]


def entries(cases: Sequence[CaseKernel]) -> dict[str, str]:
    """Case id -> the text of its entry, without a module header."""
    text = str(render(TEMPLATE, {"cases": list(cases)}))
    pieces = text.split(_MARK)[1:]
    return {case.id: piece.split("\n", 1)[1] for case, piece in zip(cases, pieces, strict=True)}


def module(cases: Sequence[CaseKernel], texts: Mapping[str, str]) -> str:
    """One module that holds all these kernels."""
    ptx = max(case.spec.ptx_version for case in cases)
    head = [f".version {ptx[0]}.{ptx[1]}", f".target {TARGET}", ".address_size 64"]
    shared = dict.fromkeys(line for case in cases for line in case.globals)
    return "\n".join([*head, *shared, *(texts[case.id] for case in cases)])


class Launchable:
    """A case in a module, as the runtime wants a kernel."""

    def __init__(self, kernel: CaseKernel, ptx: str, cubin: bytes = b"") -> None:
        self.kernel, self.ptx, self.cubin = kernel, ptx, cubin
        self.spec = kernel.spec

    def plan(
        self, args: Mapping[str, ArrayMeta], scalars: Mapping[str, Scalar], device: DeviceLimits
    ) -> LaunchPlan:
        step = Step(entry=self.spec.entry, grid=Dim3(self.kernel.cluster), scalars={})
        return LaunchPlan(steps=(step,))


def _kind(operand: Operand) -> str:
    return "pred" if operand.bits == 1 else f"b{operand.bits}"


def _zero(operand: Operand, register: str) -> str:
    if operand.bits == 1:
        return f"setp.ne.u32 {register}, 0, 0;"
    return f"mov.b{operand.bits} {register}, 0;"


def _aligned(size: int, align: int = 128) -> np.ndarray:
    """Zeroed bytes at an aligned address."""
    raw = np.zeros(size + align, np.uint8)
    start = -raw.ctypes.data % align
    return raw[start : start + size]
