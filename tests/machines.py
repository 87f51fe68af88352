"""Where a test's kernels run: one body for the emulator, a GPU, or both, bit for bit.

`--backend emulator|cuda|both` chooses. A test hands NumPy arrays to `Runner.run` and gets the
outputs back as NumPy arrays, whatever framework held them in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import ml_dtypes
import numpy as np

BACKENDS = {"emulator": ("emulator",), "cuda": ("cuda",), "both": ("emulator", "cuda")}
POISON = 0xA5  # every byte of an output before the run: a forgotten element cannot look right


class Arrays(Protocol):
    """How one backend's arrays are made and read."""

    def put(self, x: np.ndarray) -> Any: ...
    def get(self, x: Any) -> np.ndarray: ...


class HostArrays:
    """NumPy arrays are used as they are."""

    def put(self, x: np.ndarray) -> Any:
        return x

    def get(self, x: Any) -> np.ndarray:
        return np.asarray(x)


class TorchArrays:
    """torch tensors on the first GPU. bf16 crosses as its bits: NumPy has no such type."""

    def put(self, x: np.ndarray) -> Any:
        import torch

        if x.dtype == ml_dtypes.bfloat16:
            return torch.from_numpy(x.view(np.int16)).cuda().view(torch.bfloat16)
        return torch.from_numpy(x).cuda()

    def get(self, x: Any) -> np.ndarray:
        import torch

        if x.dtype == torch.bfloat16:
            return x.view(torch.int16).cpu().numpy().view(ml_dtypes.bfloat16)
        return x.cpu().numpy()


ARRAYS: Mapping[str, Arrays] = {"emulator": HostArrays(), "cuda": TorchArrays()}


def poisoned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array whose bytes are all `POISON`."""
    out = np.empty(shape, dtype)
    out.view(np.uint8)[...] = POISON
    return out


class Runner:
    """Runs kernels on every backend of this test session and holds the results together."""

    def __init__(self, backend: str) -> None:
        self.backends = BACKENDS[backend]

    def run(
        self,
        kernel: Any,
        inputs: Mapping[str, np.ndarray],
        outputs: Mapping[str, tuple[tuple[int, ...], Any]],
        *,
        emulator: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> dict[str, np.ndarray]:
        """Launch once a backend; the outputs of the first, which those of all others must equal.

        `outputs` maps names to (shape, dtype); they are poisoned before each run. `emulator` holds
        options of the emulator (schedule, mode, seed, sms), `options` those of `runtime.launch`.
        """
        results = [
            self._run_on(name, kernel, inputs, outputs, emulator or {}, options)
            for name in self.backends
        ]
        first = results[0]
        for name, other in zip(self.backends[1:], results[1:], strict=True):
            for output, value in first.items():
                assert_same_bits(value, other[output], f"{output}: {self.backends[0]} and {name}")
        return first

    def _run_on(
        self,
        backend: str,
        kernel: Any,
        inputs: Mapping[str, np.ndarray],
        outputs: Mapping[str, tuple[tuple[int, ...], Any]],
        emulator: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> dict[str, np.ndarray]:
        import runtime

        arrays = ARRAYS[backend]
        chosen: Any = backend
        if emulator and backend == "emulator":
            from runtime.emulator.backend import EmulatorBackend

            chosen = EmulatorBackend(**emulator)
        made = {name: arrays.put(poisoned(*meta)) for name, meta in outputs.items()}
        given = {name: arrays.put(x) for name, x in inputs.items()}
        runtime.launch(kernel, **given, **made, backend=chosen, **options)
        runtime.wait(*made.values(), backend=chosen)
        return {name: arrays.get(x) for name, x in made.items()}


def assert_same_bits(a: np.ndarray, b: np.ndarray, what: str) -> None:
    """Equal bit for bit, or an error that names the first element that differs."""
    bits = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[a.dtype.itemsize]
    differ = np.argwhere(a.view(bits) != b.view(bits))
    if len(differ):
        where = tuple(int(i) for i in differ[0])
        raise AssertionError(
            f"{what}: {len(differ)} of {a.size} elements differ, "
            f"first at {where}: {a[where]!r} and {b[where]!r}"
        )
