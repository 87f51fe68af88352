"""What the checks of the CUDA runtime share: their registry, inputs, expected errors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ptxgen import api
from runtime.backend import BACKENDS

HERE = Path(__file__).parent
CHECKS: dict[str, Callable[[], None]] = {}
SECOND = 1_000_000_000  # ns
CONFIG = {"tile": (64, 64, 64), "stages": 3, "cluster": (1, 1)}


class Skip(Exception):
    """This machine cannot answer; the text says why."""


def check(function: Callable[[], None]) -> Callable[[], None]:
    """Registers a claim: a function that raises when it does not hold."""
    CHECKS[function.__name__] = function
    return function


@contextmanager
def raises(error: type[Exception], *words: str) -> Iterator[None]:
    """Expects the error, with all the words in its message."""
    message = None
    try:
        yield
    except error as caught:
        message = str(caught)
    assert message is not None, f"nothing was raised; expected {error.__name__}"
    missing = [word for word in words if word not in message]
    assert not missing, f"the message lacks {missing}:\n{message}"


def torch() -> Any:
    import torch

    if not torch.cuda.is_available():
        raise Skip("torch sees no GPU")
    return torch


def cupy() -> Any:
    try:
        import cupy
    except ImportError as error:
        raise Skip(f"CuPy is not installed: {error}") from None
    return cupy


def backend() -> Any:
    return BACKENDS.get("cuda")


def integers(rows: int, columns: int, dtype: str = "bfloat16") -> Any:
    """Small integers: products and sums are exact in every type used here."""
    t = torch()
    return t.randint(-2, 3, (rows, columns), device="cuda").to(getattr(t, dtype))


def poisoned(rows: int, columns: int, dtype: str = "bfloat16") -> Any:
    t = torch()
    return t.full((rows, columns), float("nan"), dtype=getattr(t, dtype), device="cuda")


def product(a: Any, b: Any) -> Any:
    return a.double() @ b.double().T


def gemm(**fields: object) -> api.Kernel:
    return api.kernel("gemm", **{**CONFIG, **fields})


def in_a_new_process(code: str) -> str:
    """Runs code that may break its context. Gives what it printed."""
    prelude = f"import sys; sys.path[:0] = {[str(HERE.parents[1]), str(HERE)]!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", prelude + code], capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}"
    return done.stdout
