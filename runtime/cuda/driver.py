"""The CUDA driver, through cuda.bindings: imported when first used, its answers as exceptions."""

from __future__ import annotations

from functools import cache
from typing import Any

from ptxgen.errors import DriverError

_LOST = (
    "this process can no longer use the GPU; run the same arguments with backend='emulator' in "
    "a new one, which names the line"
)
CURES = {
    "CUDA_ERROR_NO_DEVICE": "run on the emulator (backend='emulator'), or check nvidia-smi and "
    "CUDA_VISIBLE_DEVICES",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "install a driver that matches the kernel module",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "assemble with ptxas (the driver loads newer cubins than "
    "PTX), lower .version, or update the driver",
    "CUDA_ERROR_INVALID_PTX": "see the log of the driver's assembler above",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "the kernel is built for another architecture than this GPU",
    "CUDA_ERROR_INVALID_SOURCE": "the file is no cubin or PTX: clear the cache directory",
    "CUDA_ERROR_OUT_OF_MEMORY": "free memory on the GPU (torch.cuda.empty_cache() returns cached "
    "blocks)",
    "CUDA_ERROR_INVALID_HANDLE": "the stream or kernel belongs to another or a reset context: pass "
    "a stream of the arrays' GPU",
    "CUDA_ERROR_INVALID_CONTEXT": "no context is current in this thread: touch the GPU first",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED": "the context was reset: make new arrays and launch again",
    "CUDA_ERROR_INVALID_CLUSTER_SIZE": "use a smaller cluster; the GPU has no such group free",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "use fewer threads, registers or less shared memory",
    "CUDA_ERROR_ILLEGAL_ADDRESS": f"a kernel touched memory outside its arrays\n{_LOST}",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": f"often a bad tensor map or descriptor\n{_LOST}",
    "CUDA_ERROR_MISALIGNED_ADDRESS": f"an access was not a multiple of its size\n{_LOST}",
    "CUDA_ERROR_LAUNCH_FAILED": f"a kernel stopped with an exception\n{_LOST}",
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": "launch the kernel once before the capture begins",
    "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT": "use a stream other than the legacy default one while "
    "another is captured",
    "CUDA_ERROR_STREAM_CAPTURE_ISOLATION": "order the streams inside the capture, or prepare the "
    "launch before it",
}


@cache
def api() -> Any:
    """cuda.bindings.driver, initialised. DriverError where there is no driver or no GPU."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise DriverError(
            f"cuda.bindings cannot be imported: {error}\n    install cuda-python 13, or use "
            "backend='emulator'"
        ) from error
    try:
        answer = driver.cuInit(0)
    except (
        Exception
    ) as error:  # the loader has its own error types, and they moved between releases
        raise DriverError(
            f"no CUDA driver was found: {error}\n    install the NVIDIA driver, or use "
            "backend='emulator'"
        ) from error
    check(answer, "initialising the CUDA driver", driver=driver)
    return driver


def check(answer: tuple[Any, ...], doing: str, *, driver: Any = None, detail: str = "") -> Any:
    """The values of a driver call: nothing, the only one, or all of them.

    Any code but CUDA_SUCCESS raises DriverError with its name, what was being done, and a cure.
    """
    code, *values = answer
    if code:
        raise error_of(code, doing, driver=driver, detail=detail)
    return values[0] if len(values) == 1 else tuple(values) if values else None


def error_of(code: Any, doing: str, *, driver: Any = None, detail: str = "") -> DriverError:
    """The exception for a driver code. `code.name` is the name in cuda.h."""
    driver = driver or api()
    name = getattr(code, "name", str(code))
    _, text = driver.cuGetErrorString(code)
    words = text.decode() if isinstance(text, bytes) else ""
    lines = [f"{doing}: {name} ({words})" if words else f"{doing}: {name}"]
    lines += [f"    {line}" for line in (detail, CURES.get(name, "")) for line in line.splitlines()]
    return DriverError("\n".join(lines), code=name)


def driver_version() -> tuple[int, int]:
    """The CUDA version that the driver supports, e.g. (13, 0)."""
    version = check(api().cuDriverGetVersion(), "asking for the driver version")
    return version // 1000, version % 1000 // 10
