"""Loading kernels: a cubin from ptxas, or the driver's own assembler where there is no ptxas.

Neither nvJitLink nor the driver's linker is used: both compile relocatable code and so drop
setmaxnreg silently. What is loaded is cached by content for each context and never unloaded behind
the user's back, since a CUDA graph may hold a kernel long after its last launch.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import uuid
import warnings
from dataclasses import dataclass, field
from typing import Any

from ptxgen import env
from ptxgen.errors import AdvisoryError, LaunchError, ToolMissing
from ptxgen.isa import arch
from ptxgen.ptx import parameters
from ptxgen.spec import DeviceLimits, KernelSpec, Launchable
from ptxgen.toolchain.assemble import AdvisoryWarning
from ptxgen.toolchain.diagnostics import parse_log
from runtime.backend import Loaded
from runtime.checks import require_parameters
from runtime.cuda.attributes import launch_config
from runtime.cuda.device import Device
from runtime.cuda.driver import api, check, driver_version
from runtime.cuda.order import relaxed_capture
from runtime.module import PerKernel

LOG_BYTES = 64 * 1024


@dataclass(eq=False)
class Function:
    """A kernel in one context. `smem_bytes` is the dynamic shared memory that it has opted in to:
    a high-water mark, never lowered, raised under the lock."""

    handle: Any  # CUfunction
    registers: int
    static_smem_bytes: int
    threads_max: int
    smem_bytes: int = 0
    cluster: int = 1
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)


class Modules:
    """Loaded kernels: by (context id, content, entry), and by kernel object in front of that."""

    def __init__(self) -> None:
        self._functions: dict[tuple[int, str, str], Function] = {}
        self._loaded: PerKernel[dict[int, Loaded]] = PerKernel(dict)
        self._lock = threading.Lock()

    def load(self, kernel: Launchable, device: Device, context: int, capturing: bool) -> Loaded:
        """The kernel, ready in the current context (whose id is `context`)."""
        known = self._loaded.of(kernel)
        if context not in known:
            if capturing:
                raise LaunchError(
                    f"{kernel.spec.entry} is not loaded yet, and loading is illegal while its "
                    "stream is being captured\n"
                    "    launch it once, or prepare it, before the capture begins"
                )
            with relaxed_capture():  # another thread may be capturing its own stream
                known[context] = self._load(kernel, device, context)
        return known[context]

    def _load(self, kernel: Launchable, device: Device, context: int) -> Loaded:
        device.require_hopper()
        spec = kernel.spec
        require_parameters(spec, _declared(kernel))
        image, is_ptx = _image(kernel)
        key = (context, hashlib.sha256(image).hexdigest(), spec.entry)
        with self._lock:
            if key not in self._functions:
                self._functions[key] = _function(image, is_ptx, spec, device)
            function = self._functions[key]
        _opt_in(function, spec, device)
        return Loaded(
            spec=spec,
            device=f"cuda:{device.ordinal}",
            limits=_limits(function, spec, device),
            handle=function.handle,
            registers=function.registers,
            static_smem_bytes=function.static_smem_bytes,
            ptx=kernel.ptx,
        )


def _declared(kernel: Launchable) -> list[tuple[str, int]]:
    """Name and bytes of every parameter that the entry declares."""
    try:
        return [(p.name, p.size) for p in parameters(kernel.ptx, kernel.spec.entry)]
    except KeyError as missing:
        raise LaunchError(f"cannot be launched: {missing.args[0]} in the PTX") from None


def _image(kernel: Launchable) -> tuple[bytes, bool]:
    """The cubin; or the PTX, and True, where there is no ptxas."""
    try:
        return kernel.cubin, False
    except ToolMissing as missing:
        if env.DEBUG.get() >= 1:
            print(
                f"no ptxas, so the driver assembles {kernel.spec.entry}: {missing}", file=sys.stderr
            )
        return kernel.ptx.encode() + b"\0", True


def _function(image: bytes, is_ptx: bool, spec: KernelSpec, device: Device) -> Function:
    driver = api()
    module = _load_ptx(image, spec) if is_ptx else _load_cubin(image, spec, device)
    handle = check(
        driver.cuModuleGetFunction(module, spec.entry.encode()), f"finding entry {spec.entry}"
    )
    # Loading may be lazy: done here, so that the first launch can be part of a capture.
    check(driver.cuFuncLoad(handle), f"loading {spec.entry} on {device}")

    def attribute(name: str) -> int:
        which = getattr(driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        value: int = check(driver.cuFuncGetAttribute(which, handle), f"{spec.entry}: {name}")
        return value

    return Function(
        handle=handle,
        registers=attribute("NUM_REGS"),
        static_smem_bytes=attribute("SHARED_SIZE_BYTES"),
        threads_max=attribute("MAX_THREADS_PER_BLOCK"),
    )


def _load_cubin(image: bytes, spec: KernelSpec, device: Device) -> Any:
    detail = f"{len(image):,} B for {spec.target}"
    return check(
        api().cuModuleLoadData(image),
        f"loading the cubin of {spec.entry} on {device}",
        detail=detail,
    )


def _load_ptx(image: bytes, spec: KernelSpec) -> Any:
    """PTX through the driver's assembler. Its remarks count as ptxas's do."""
    driver = api()
    # The driver's cache answers without remarks: a text that it has not seen is assembled.
    image = image.rstrip(b"\0") + f"\n// {uuid.uuid4().hex}\n".encode() + b"\0"
    option = driver.CUjit_option
    info, errors = bytearray(LOG_BYTES), bytearray(LOG_BYTES)
    options: list[tuple[Any, Any]] = [
        (option.CU_JIT_INFO_LOG_BUFFER, info),
        (option.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, LOG_BYTES),
        (option.CU_JIT_ERROR_LOG_BUFFER, errors),
        (option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, LOG_BYTES),
        (option.CU_JIT_LOG_VERBOSE, 1),
    ]
    answer = driver.cuModuleLoadDataEx(
        image, len(options), [o for o, _ in options], [v for _, v in options]
    )
    major, minor = driver_version()
    detail = (
        f"PTX {spec.ptx_version[0]}.{spec.ptx_version[1]} for {spec.target}, driver for CUDA "
        f"{major}.{minor}\n{_text(errors)}"
    )
    module = check(answer, f"assembling {spec.entry} in the driver", detail=detail)
    _judge(_text(info), spec)
    return module


def _text(log: bytearray) -> str:
    return log.split(b"\0", 1)[0].decode(errors="replace")


def _judge(log: str, spec: KernelSpec) -> None:
    """Remarks that cost speed are errors, or warnings with PTXGEN_ADVISORIES=warn."""
    # The driver leaves out the program's name that ptxas begins each line with.
    lines = [x if x.startswith(("ptxas", " ")) else f"ptxas {x}" for x in log.splitlines()]
    losses = parse_log("\n".join(lines)).losses
    if not losses:
        return
    text = "\n".join([f"{spec.entry}: the driver's assembler gave something up", *losses])
    if env.ADVISORIES.get() == "error":
        raise AdvisoryError(f"{text}\n(PTXGEN_ADVISORIES=warn goes on)", log=log)
    warnings.warn(text, AdvisoryWarning, stacklevel=2)


def _opt_in(function: Function, spec: KernelSpec, device: Device) -> None:
    """Raise the function's limits to what this spec needs, and refuse what the GPU cannot give."""
    driver = api()
    total = function.static_smem_bytes + spec.smem_bytes
    if total > device.smem_per_cta_bytes:
        raise LaunchError(
            f"{spec.entry} needs {total:,} B of shared memory ({spec.smem_bytes:,} dynamic + "
            f"{function.static_smem_bytes:,} static); {device} gives a CTA at most "
            f"{device.smem_per_cta_bytes:,} B\n    use fewer stages or a smaller tile"
        )
    if spec.block.size > function.threads_max:
        raise LaunchError(
            f"{spec.entry}: block {spec.block} has {spec.block.size:,} threads, but its code "
            f"allows {function.threads_max:,} with {function.registers} registers each\n"
            "    make .reqntid and the block agree"
        )
    names = driver.CUfunction_attribute
    with function.lock:
        if spec.smem_bytes > function.smem_bytes:
            which = names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            check(
                driver.cuFuncSetAttribute(function.handle, which, spec.smem_bytes),
                f"{spec.entry}: asking for {spec.smem_bytes:,} B of dynamic shared memory",
            )
            function.smem_bytes = spec.smem_bytes
        if spec.cluster.size > max(function.cluster, arch.CLUSTER_PORTABLE):
            which = names.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            check(
                driver.cuFuncSetAttribute(function.handle, which, 1),
                f"{spec.entry}: asking for a cluster of {spec.cluster.size}",
            )
            function.cluster = spec.cluster.size


def _limits(function: Function, spec: KernelSpec, device: Device) -> DeviceLimits:
    """How many CTAs of the kernel fit at once. LaunchError when not one cluster does."""
    driver = api()
    if spec.cluster.size > 1:
        config = launch_config(spec, spec.cluster, stream=0, pdl=False)
        clusters = check(
            driver.cuOccupancyMaxActiveClusters(function.handle, config),
            f"{spec.entry}: asking how many clusters fit",
        )
        ctas = clusters * spec.cluster.size
    else:
        per_sm = check(
            driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                function.handle, spec.block.size, spec.smem_bytes
            ),
            f"{spec.entry}: asking how many CTAs fit",
        )
        ctas = per_sm * device.sms
    if ctas == 0:
        raise LaunchError(
            f"{spec.entry}: 0 clusters fit on {device}: cluster={spec.cluster}, "
            f"smem={spec.smem_bytes + function.static_smem_bytes:,} B, threads={spec.block.size}, "
            f"registers={function.registers} a thread\n"
            "    use a smaller cluster or tile; other work on the GPU does not matter here"
        )
    return DeviceLimits(name=device.name, sms=device.sms, ctas=ctas)
