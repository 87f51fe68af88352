"""Memory that the backend owns (workspaces) and the copies that it makes."""

from __future__ import annotations

import threading
from itertools import product
from typing import Any

from ptxgen.errors import ArgumentError, LaunchError, Violation
from ptxgen.isa.dtypes import dtype
from ptxgen.spec import ArrayMeta, Workspace
from runtime.backend import ArrayRef, StreamRef
from runtime.cuda.driver import api, check
from runtime.cuda.order import is_capturing, relaxed_capture

_ALIGN = 256  # of every allocation of the driver


class Workspaces:
    """Scratch memory: one growing buffer a (context, stream, name).

    Launches on one stream run one after the other, so they can share it. A buffer that was outgrown
    stays, since prepared launches and graphs may use it; sizes double, so that at most as much
    again is held.
    """

    def __init__(self) -> None:
        self._buffers: dict[tuple[int, int, str, str], tuple[int, int]] = {}
        self._lock = threading.Lock()

    def get(self, spec: Workspace, context: int, stream: StreamRef) -> ArrayRef:
        """The buffer, at least `spec.bytes` long. The context must be current."""
        if spec.align > _ALIGN:
            raise LaunchError(
                f"workspace {spec.name} wants {spec.align} B alignment; the driver gives {_ALIGN}"
            )
        key = (context, stream.handle, spec.name, spec.init)
        with self._lock:
            address, size = self._buffers.get(key, (0, 0))
            if size < spec.bytes:
                size = max(spec.bytes, 2 * size)
                address = _allocate(spec, size, stream)
                self._buffers[key] = address, size
        meta = ArrayMeta(
            shape=(size,), strides=(1,), dtype="u8", address=address, device=stream.device
        )
        return ArrayRef(meta=meta, owner=self, framework="workspace")


def _allocate(spec: Workspace, size: int, stream: StreamRef) -> int:
    if is_capturing(stream.handle):
        raise LaunchError(
            f"workspace {spec.name} of {size:,} B is not allocated yet, and allocating is illegal "
            "while the stream is being captured\n"
            "    launch once on this stream before the capture begins"
        )
    driver = api()
    with relaxed_capture():  # another thread may be capturing its own stream
        address = check(driver.cuMemAlloc(size), f"allocating workspace {spec.name}, {size:,} B")
    if spec.init == "zero_once":
        handle = driver.CUstream(stream.handle)
        check(driver.cuMemsetD8Async(address, 0, size, handle), f"clearing workspace {spec.name}")
    return int(address)


def copy(dst: ArrayMeta, src: ArrayMeta, stream: int) -> None:
    """Copy `src` to `dst`: same shape and dtype, any strides with a contiguous innermost axis.

    Any direction between host and GPU. One driver call for contiguous arrays, else one for every
    matrix of the last two axes.
    """
    _require_copyable(dst, src)
    if src.size == 0:
        return
    driver = api()
    handle = driver.CUstream(stream)
    itemsize = dtype(src.dtype).bytes
    if _contiguous(dst, itemsize) and _contiguous(src, itemsize):
        answer = driver.cuMemcpyAsync(dst.address, src.address, src.size * itemsize, handle)
        check(answer, f"copying {src.size * itemsize:,} B")
        return
    rows, columns = (1, 1, *src.shape)[-2:]
    for index in product(*map(range, src.shape[:-2])):
        request = driver.CUDA_MEMCPY2D()
        request.srcMemoryType = request.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_UNIFIED
        request.srcDevice, request.srcPitch = _matrix(src, index, columns * itemsize)
        request.dstDevice, request.dstPitch = _matrix(dst, index, columns * itemsize)
        request.WidthInBytes, request.Height = columns * itemsize, rows
        check(driver.cuMemcpy2DAsync(request, handle), f"copying {rows} rows of {columns} elements")


def _require_copyable(dst: ArrayMeta, src: ArrayMeta) -> None:
    itemsize = dtype(src.dtype).bytes
    broken = []
    if (dst.shape, dst.dtype) != (src.shape, src.dtype):
        broken.append(
            Violation(
                field="dst",
                got=f"{dst.dtype} {list(dst.shape)}",
                rule=f"must be {src.dtype} {list(src.shape)}, as the source",
            )
        )
    for name, meta in (("dst", dst), ("src", src)):
        inner = meta.strides[-1] if meta.shape and meta.shape[-1] > 1 else itemsize
        if inner != itemsize or any(s < 0 for s in meta.strides):
            broken.append(
                Violation(
                    field=name,
                    got=f"strides {list(meta.strides)} B",
                    rule=f"must be positive, with {itemsize} B on the innermost axis",
                    fix="copy with the array's own framework",
                )
            )
    if broken:
        raise ArgumentError("these arrays cannot be copied", broken)


def _contiguous(meta: ArrayMeta, itemsize: int) -> bool:
    step = itemsize
    for extent, stride in zip(reversed(meta.shape), reversed(meta.strides), strict=True):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True


def _matrix(meta: ArrayMeta, index: tuple[int, ...], row_bytes: int) -> tuple[Any, int]:
    """Address and pitch of the last two axes at `index` of the others."""
    offset = sum(i * s for i, s in zip(index, meta.strides, strict=False))
    single_row = len(meta.shape) < 2 or meta.shape[-2] == 1
    return meta.address + offset, row_bytes if single_row else meta.strides[-2]
