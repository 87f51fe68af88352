"""ptxgen: hand-written PTX for NVIDIA Hopper, generated, checked, and run.

    import ptxgen
    k = ptxgen.kernel("gemm", dtype="bf16", tile=(128, 256, 64), stages=4, cluster=(2, 1))
    print(k.ptx); print(k.report()); k.verify()

Importing this needs no driver and no GPU, and loads nothing heavy until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ptxgen.api import Kernel, kernel, kernel_from, render, render_text
    from ptxgen.foreign import ForeignKernel, load_ptx

_FOREIGN = ("ForeignKernel", "load_ptx")
__all__ = ["ForeignKernel", "Kernel", "kernel", "kernel_from", "load_ptx", "render", "render_text"]


def __getattr__(name: str) -> Any:
    if name in _FOREIGN:
        from ptxgen import foreign

        return getattr(foreign, name)
    if name in __all__:
        from ptxgen import api

        return getattr(api, name)
    raise AttributeError(f"module 'ptxgen' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
