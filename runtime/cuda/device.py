"""GPUs and contexts: which GPU, is it one we can run on, and making its context current.

A thread's current context is used if it belongs to the wanted GPU, whoever made it. Otherwise the
primary context (that of torch, CuPy, JAX and the CUDA runtime) is retained, and made current: for
good in a thread that has none, as the CUDA runtime does; else only for the time of one call.
Contexts are told apart by the driver's own id, which no later context gets again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ptxgen.errors import ArgumentError, DriverError, LaunchError, Violation
from runtime.cuda.driver import api, check

CAPABILITY = (9, 0)


class Device:
    """One GPU. Made by `Devices`; `name`, `sms` and `capability` are what the driver says."""

    def __init__(self, ordinal: int) -> None:
        driver = api()
        self.ordinal = ordinal
        self._device = check(driver.cuDeviceGet(ordinal), f"opening cuda:{ordinal}")
        raw = check(driver.cuDeviceGetName(128, self._device), "asking for the GPU's name")
        self.name: str = raw.split(b"\0")[0].decode()
        self.capability = (
            self.attribute("COMPUTE_CAPABILITY_MAJOR"),
            self.attribute("COMPUTE_CAPABILITY_MINOR"),
        )
        self.sms = self.attribute("MULTIPROCESSOR_COUNT")
        self.smem_per_cta_bytes = self.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        self._primary: Any = None
        self._lock = threading.Lock()

    def __str__(self) -> str:
        return f"cuda:{self.ordinal} ({self.name})"

    def attribute(self, name: str) -> int:
        """A CU_DEVICE_ATTRIBUTE_* by its suffix."""
        driver = api()
        which = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        value: int = check(driver.cuDeviceGetAttribute(which, self._device), f"asking for {name}")
        return value

    def require_hopper(self) -> None:
        """LaunchError unless the GPU has compute capability 9.0."""
        if self.capability != CAPABILITY:
            major, minor = self.capability
            raise LaunchError(
                f"{self} has compute capability {major}.{minor}; kernels here need 9.0 "
                "(H100, H200, GH200)\n"
                "    they are sm_90a code (wgmma, setmaxnreg), which no other GPU runs, older or "
                "newer\n"
                "    use backend='emulator', or choose a Hopper GPU with CUDA_VISIBLE_DEVICES"
            )

    @contextmanager
    def current(self) -> Iterator[int]:
        """Makes a context of this GPU current inside the block, and gives its id."""
        driver = api()
        present = check(driver.cuCtxGetCurrent(), "asking for the current context")
        alive = bool(int(present))
        if alive and self._is_ours():
            code, number = driver.cuCtxGetId(None)
            if not code:
                yield int(number)
                return
            alive = False  # the primary context was reset under this thread
        primary = self._retained()
        if not alive:
            check(driver.cuCtxSetCurrent(primary), f"making {self} current")
            yield self._context_id()
            return
        check(driver.cuCtxPushCurrent(primary), f"making {self} current")
        try:
            yield self._context_id()
        finally:
            check(driver.cuCtxPopCurrent(), "restoring the current context")

    def _is_ours(self) -> bool:
        code, device = api().cuCtxGetDevice()
        return not code and int(device) == int(self._device)

    def _context_id(self) -> int:
        value: int = check(api().cuCtxGetId(None), "asking for the context's id")
        return value

    def _retained(self) -> Any:
        """The primary context, retained once, and again after somebody has reset it."""
        driver = api()
        with self._lock:
            state = check(
                driver.cuDevicePrimaryCtxGetState(self._device), "asking for the primary context"
            )
            if self._primary is None or not state[1]:
                self._primary = check(
                    driver.cuDevicePrimaryCtxRetain(self._device), f"retaining {self}"
                )
            return self._primary


class Devices:
    """The GPUs of this process by ordinal, each opened once."""

    def __init__(self) -> None:
        self._open: dict[int, Device] = {}
        self._lock = threading.Lock()

    def get(self, ordinal: int) -> Device:
        """The GPU, or a LaunchError that says how many there are."""
        with self._lock:
            if ordinal not in self._open:
                count = self.count()
                if not 0 <= ordinal < count:
                    raise LaunchError(
                        f"there is no cuda:{ordinal}; this process sees {count} GPUs\n"
                        "    check CUDA_VISIBLE_DEVICES"
                    )
                self._open[ordinal] = Device(ordinal)
            return self._open[ordinal]

    def count(self) -> int:
        value: int = check(api().cuDeviceGetCount(), "counting GPUs")
        return value

    def named(self, device: str) -> Device:
        """The GPU called "cuda:N"."""
        return self.get(int(device.removeprefix("cuda:")))

    def current_ordinal(self) -> int:
        """The GPU of the current context, or 0 where there is none."""
        code, context = api().cuCtxGetCurrent()
        if code or not int(context):
            return 0
        code, device = api().cuCtxGetDevice()
        return 0 if code else int(device)


def ordinal_of_pointer(name: str, address: int) -> int:
    """The GPU that owns a device address of argument `name`. ArgumentError for host addresses."""
    driver = api()
    which = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    try:
        return int(
            check(driver.cuPointerGetAttribute(which, address), "asking for a pointer's GPU")
        )
    except DriverError as error:
        raise ArgumentError(
            f"argument {name!r} cannot be used",
            [
                Violation(
                    field=name,
                    got=f"address 0x{address:x}",
                    rule="must be memory of a CUDA device",
                    why=f"the driver does not know it ({error.code})",
                    fix="check that the array is alive and was made in this process",
                )
            ],
        ) from None
