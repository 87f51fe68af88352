"""What the scripts of this folder share: launching a small kernel on either backend, and reporting.

A script is one question to the hardware. It has an `observe(lab)` that runs kernels and returns
named arrays, and a `finding(seen)` that says in one sentence, and in numbers, what they mean.
`main` prints that as a line of JSON. With a GPU the observations of the GPU count, and those of the
emulator are compared with them; without one the emulator answers.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

import ptxgen  # noqa: E402
import runtime  # noqa: E402
from ptxgen.errors import PtxgenError  # noqa: E402
from runtime.backend import BACKENDS  # noqa: E402
from runtime.emulator.backend import EmulatorBackend  # noqa: E402

WAIT_S = 8.0  # a launch that takes longer has hung
Array = np.ndarray
Seen = Mapping[str, Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A question. `emulated` says whether the emulator can answer it, too."""

    id: str
    question: str
    emulated: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """A tensor-map argument: an array, and how a box is cut from it (see runtime.tensor_map)."""

    array: Array
    box: tuple[int, ...]
    swizzle: int = 0
    dtype: str | None = None


class DeviceMemory:
    """A copy of a host array on the GPU. `view` gives arrays inside it."""

    def __init__(self, host: Array) -> None:
        from runtime.cuda.driver import api, check

        self.host, self._driver, self._check = host, api(), check
        self.address = int(check(self._driver.cuMemAlloc(host.nbytes), "allocating"))
        check(self._driver.cuMemcpyHtoD(self.address, host.ctypes.data, host.nbytes), "copying in")

    def view(self, array: Array) -> DeviceArray:
        return DeviceArray(self, array, self.address + array.ctypes.data - self.host.ctypes.data)

    def fetch(self) -> None:
        host = self.host
        self._check(
            self._driver.cuMemcpyDtoH(host.ctypes.data, self.address, host.nbytes), "copying back"
        )
        self._check(self._driver.cuMemFree(self.address), "freeing")


class DeviceArray:
    """The part of a DeviceMemory that corresponds to a view of the host array."""

    def __init__(self, memory: DeviceMemory, array: Array, address: int) -> None:
        self.memory = memory
        self.__cuda_array_interface__ = {
            "shape": array.shape, "strides": array.strides, "typestr": array.dtype.str,
            "data": (address, False), "version": 3,
        }  # fmt: skip


class Lab:
    """Runs kernels on one backend, "cuda" or "emulator"."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self._emulator = EmulatorBackend(sums="hardware")
        if backend == "cuda":
            self._context = BACKENDS.get("cuda").context("cuda:0")  # type: ignore[attr-defined]
            self._context.__enter__()

    def run(
        self, kernel: Any, /, *, grid: tuple[int, int, int] = (1, 1, 1), **args: object
    ) -> None:
        """Launch and wait. Arrays hold the results afterwards; views of one array share memory."""
        if self.backend == "emulator":
            passed = {name: self._map(x) if isinstance(x, Map) else x for name, x in args.items()}
            runtime.launch(kernel, args=passed, grid=grid, backend=self._emulator)
            return
        placed: dict[int, DeviceMemory] = {}

        def place(array: Array) -> DeviceArray:
            root = array
            while isinstance(root.base, np.ndarray):
                root = root.base
            if id(root) not in placed:
                placed[id(root)] = DeviceMemory(root)
            return placed[id(root)].view(array)

        passed = {}
        for name, x in args.items():
            if isinstance(x, Map):
                passed[name] = self._map(x, place(x.array))
            else:
                passed[name] = place(x) if isinstance(x, np.ndarray) else x
        runtime.launch(kernel, args=passed, grid=grid, backend="cuda")
        first = next(x for x in passed.values() if isinstance(x, DeviceArray))
        runtime.wait(first, timeout_s=WAIT_S)
        for memory in placed.values():
            memory.fetch()

    @staticmethod
    def _map(x: Map, array: object = None) -> object:
        # What a store writes behind a row is what some of these scripts ask.
        image = runtime.padded(x.array if array is None else array)
        return runtime.tensor_map(image, box=x.box, swizzle=x.swizzle, dtype=x.dtype)


def kernel(template: str, *, smem: int = 0, **numbers: object) -> Any:
    """A kernel from a template of this folder: block and cluster are those of its directives."""
    return ptxgen.load_ptx(ptxgen.render(HERE / f"{template}.ptx.j2", **numbers), smem=smem)


def aligned_bytes(size: int, fill: int = 0, align: int = 256) -> Array:
    """A host array of bytes whose address is a multiple of `align`."""
    memory = np.full(size + align, fill, np.uint8)
    skip = -memory.ctypes.data % align
    return memory[skip : skip + size]


# --- reporting -----------------------------------------------------------------------------------


def say(fact: Fact, finding: str, numbers: object, **more: object) -> None:
    """One line of the record."""
    line = {"fact": fact.id, "question": fact.question, "finding": finding, "numbers": numbers}
    print(json.dumps({**line, **more}, default=lambda number: number.item()), flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a process ended: `code` is None where it had to be killed."""

    code: int | None
    out: str
    err: str


def run_guarded(command: Sequence[str], limit_s: float) -> Ended:
    """Run a process that may hang, in a group of its own; one that cannot be killed is left."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=limit_s)
        return Ended(code=process.returncode, out=out, err=err)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    try:
        out, err = process.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        out, err = "", "(still there after SIGKILL)"
    return Ended(code=None, out=out, err=err)


def leave(work: Callable[[], None]) -> None:
    """Do the work and end the process at once: a lost context may not end by itself."""
    code = 0
    try:
        work()
    except Exception:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def has_gpu() -> bool:
    try:
        from runtime.cuda.driver import api

        api()
    except PtxgenError:
        return False
    return True


def main(
    fact: Fact, observe: Callable[[Lab], Seen], finding: Callable[[Seen], tuple[str, object]]
) -> None:
    """Answer the question on the command line; `--raw FOLDER` keeps the observations."""
    leave(lambda: _answer(fact, observe, finding))


def _answer(
    fact: Fact, observe: Callable[[Lab], Seen], finding: Callable[[Seen], tuple[str, object]]
) -> None:
    parser = argparse.ArgumentParser(description=fact.question)
    parser.add_argument("--raw", type=Path, help="folder for the observed arrays, as .npz")
    parser.add_argument("--backend", choices=("cuda", "emulator"), help="default: a GPU if any")
    options = parser.parse_args()
    backend = options.backend or ("cuda" if has_gpu() else "emulator")
    if backend == "emulator" and not fact.emulated:
        say(fact, "not asked: only a GPU can answer", {}, backend="none")
        return
    try:
        seen = observe(Lab(backend))
    except PtxgenError as error:
        if backend == "cuda":
            raise
        say(fact, f"the emulator refuses: {str(error).splitlines()[0]}", {}, backend=backend)
        return
    if options.raw and backend == "cuda":
        options.raw.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(options.raw / f"{fact.id}.npz", **seen)
    words, numbers = finding(seen)
    more: dict[str, object] = {"backend": backend, "digests": digests(seen)}
    if backend == "cuda" and fact.emulated:
        more["emulator"] = compare(observe, seen)
    say(fact, words, numbers, **more)


def compare(observe: Callable[[Lab], Seen], seen: Seen) -> str:
    """Whether the emulator observes the same bits."""
    try:
        emulated = observe(Lab("emulator"))
    except PtxgenError as error:
        return f"refuses: {str(error).splitlines()[0]}"
    different = [
        f"{name}: {int((bits(array) != bits(emulated[name])).sum())} of {array.size}"
        for name, array in seen.items()
        if not np.array_equal(bits(array), bits(emulated[name]))
    ]
    return "agrees" if not different else "differs in " + "; ".join(different)


def digests(seen: Seen) -> dict[str, str]:
    """What was observed, bit for bit, in few characters."""
    return {
        name: hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
        for name, array in seen.items()
    }


def bits(array: Array) -> Array:
    """An array as unsigned integers of its own width, so that NaN equals NaN."""
    plain = np.ascontiguousarray(array)
    return plain.view(f"u{plain.dtype.itemsize}")
