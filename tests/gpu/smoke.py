"""All checks of the CUDA runtime without pytest, each on its own, a line for each.

PYTHONPATH=. python tests/gpu/smoke.py [name ...]
"""

from __future__ import annotations

import sys
import time
import traceback

import checks_arguments  # noqa: F401  (importing registers the checks)
import checks_interop  # noqa: F401
import checks_launches  # noqa: F401
import checks_results  # noqa: F401
import checks_streams  # noqa: F401
from checking import CHECKS, Skip, backend

from ptxgen.errors import PtxgenError
from runtime.cuda.driver import driver_version


def about() -> str:
    """The machine, in a line."""
    import cuda.bindings

    device = backend().devices.get(0)
    version = getattr(cuda.bindings, "__version__", "unknown")
    return (
        f"{device}, {device.sms} SMs, capability {device.capability}, driver for CUDA "
        f"{driver_version()}, cuda.bindings {version}, Python {sys.version.split()[0]}"
    )


def main(names: list[str]) -> int:
    """Run the checks that are named (default: all). 1 if any fails."""
    failed = []
    for name, function in CHECKS.items():
        if names and name not in names:
            continue
        start = time.perf_counter()
        try:
            function()
            verdict = "ok"
        except Skip as reason:
            verdict = f"skipped: {reason}"
        except Exception:
            failed.append(name)
            verdict = f"FAILED\n{traceback.format_exc()}"
        print(f"{name:<52} {time.perf_counter() - start:7.2f} s  {verdict}", flush=True)
    print(f"{len(failed)} failed: {' '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        print(about())
    except PtxgenError as error:
        sys.exit(f"no GPU to check: {error}")
    sys.exit(main(sys.argv[1:]))
