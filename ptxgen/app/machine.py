"""What this machine has: Python packages, tools, driver, GPUs. Looks; changes nothing."""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import dataclass

from ptxgen.errors import PtxgenError

DISTRIBUTION = "ptxgen"
# Read from the installed distribution where there is one; a bare checkout has none.
PACKAGES = (
    "cuda-python", "cuda-bindings", "cuda-core", "cuda-pathfinder", "numpy", "jinja2", "ml_dtypes",
    "nvidia-cuda-nvcc", "nvidia-cuda-nvdisasm", "typer", "rich",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU that the driver shows to this process."""

    ordinal: int
    name: str
    capability: tuple[int, int]
    sms: int

    @property
    def usable(self) -> bool:
        """Whether sm_90a code runs on it."""
        return self.capability == (9, 0)

    def __str__(self) -> str:
        major, minor = self.capability
        return (
            f"cuda:{self.ordinal}  {self.name}, compute capability {major}.{minor}, {self.sms} SMs"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The CUDA driver: the version it supports and its GPUs, or why there is none."""

    version: tuple[int, int] | None
    gpus: tuple[Gpu, ...] = ()
    problem: str = ""

    @property
    def usable_gpu(self) -> Gpu | None:
        return next((gpu for gpu in self.gpus if gpu.usable), None)


def packages() -> dict[str, str | None]:
    """Versions of the packages that we depend on, None where one is missing."""
    return {name: _version(name) for name in (DISTRIBUTION, *PACKAGES)}


def driver() -> Driver:
    """The driver and its GPUs. Never raises: what is wrong becomes `problem`."""
    from runtime.cuda.device import Devices
    from runtime.cuda.driver import driver_version

    try:
        version = driver_version()
        devices = Devices()
        gpus = tuple(_gpu(devices.get(ordinal)) for ordinal in range(devices.count()))
    except PtxgenError as error:
        return Driver(version=None, problem=_first_lines(error))
    return Driver(version=version, gpus=gpus)


def _gpu(device: object) -> Gpu:
    names = ("ordinal", "name", "capability", "sms")
    return Gpu(**{name: getattr(device, name) for name in names})


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _first_lines(error: Exception) -> str:
    """An error's message on one line."""
    return re.sub(r"\s*\n\s*", "; ", str(error).strip())
