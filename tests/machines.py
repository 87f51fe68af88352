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


# Types that NumPy has from ml_dtypes and torch by itself: they cross as integers of their width.
CROSSING = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}


class TorchArrays:
    """torch tensors on the first GPU."""

    def put(self, x: np.ndarray) -> Any:
        import torch

        if bits := CROSSING.get(x.dtype.name):
            return torch.from_numpy(x.view(bits)).cuda().view(getattr(torch, x.dtype.name))
        return torch.from_numpy(x).cuda()

    def get(self, x: Any) -> np.ndarray:
        import torch

        name = str(x.dtype).removeprefix("torch.")
        if bits := CROSSING.get(name):
            return x.view(getattr(torch, bits)).cpu().numpy().view(getattr(ml_dtypes, name))
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
        close: float | None = None,
        updated: Mapping[str, np.ndarray] | None = None,
        views: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> dict[str, np.ndarray]:
        """Launch once a backend; the outputs of the first, which those of all others must equal.

        `outputs` maps names to (shape, dtype); they are poisoned before each run. `updated` are
        outputs that start with a value; they are copied, and returned too. `views` holds indices by
        name: the kernel gets that part of an array, and what is returned is all of it. `emulator`
        holds options of the emulator (schedule, mode, seed, sms), `options` those of
        `runtime.launch`.
        Sums of random floats differ between backends, since their order does: `close` is then the
        relative error (of norms) that is allowed instead of equal bits.
        """
        results = [
            self._run_on(
                name, kernel, inputs, outputs, updated or {}, views or {}, emulator or {}, options
            )
            for name in self.backends
        ]
        first = results[0]
        for name, other in zip(self.backends[1:], results[1:], strict=True):
            for output, value in first.items():
                what = f"{output}: {self.backends[0]} and {name}"
                if close is None:
                    assert_same_bits(value, other[output], what)
                else:
                    assert_near(value, other[output], close, what)
        return first

    def _run_on(
        self,
        backend: str,
        kernel: Any,
        inputs: Mapping[str, np.ndarray],
        outputs: Mapping[str, tuple[tuple[int, ...], Any]],
        updated: Mapping[str, np.ndarray],
        views: Mapping[str, Any],
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
        made |= {name: arrays.put(x.copy()) for name, x in updated.items()}
        given = {name: arrays.put(x) for name, x in inputs.items()}
        passed = {
            name: x[views[name]] if name in views else x for name, x in (given | made).items()
        }
        runtime.launch(kernel, **passed, backend=chosen, **options)
        runtime.wait(*made.values(), backend=chosen)
        return {name: arrays.get(x) for name, x in made.items()}


def assert_near(a: np.ndarray, b: np.ndarray, close: float, what: str) -> None:
    """Within a relative error of norms; infinities and NaN are where the other has them."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(x)
    assert np.array_equal(x[~finite], y[~finite], equal_nan=True), f"{what}: inf or NaN differ"
    x, y = x[finite], y[finite]
    error = np.linalg.norm(x - y) / max(float(np.linalg.norm(x)), np.finfo(np.float64).tiny)
    assert error <= close, f"{what}: relative error {error:.2e}, allowed {close:.0e}"


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
