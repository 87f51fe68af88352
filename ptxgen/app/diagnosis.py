"""`ptxgen doctor`: what this machine has, and which parts of the project work on it.

Abilities are tried, not guessed from versions: a small kernel is rendered, assembled, verified, and
run on the emulator and on a GPU where there is one.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ptxgen import env
from ptxgen.app import machine
from ptxgen.app.output import Answer
from ptxgen.errors import PtxgenError
from ptxgen.toolchain import discover
from ptxgen.toolchain.discover import Tool

PROBE = "gemm:tile=64x64x64,stages=2,cluster=1x1"  # the smallest kernel of the catalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class Ability:
    """One thing that the project can do: whether it does it here, the evidence, and a cure.

    Without one that is `core` the exit code is 1.
    """

    name: str
    works: bool
    detail: str
    cure: str = ""
    core: bool = True


def examine() -> Answer:
    """Look at everything, try everything."""
    driver = machine.driver()
    packages = machine.packages()
    tools = _tools()
    cache = _cache()
    abilities = tuple(_abilities(driver))
    knobs = {k.name: os.environ[k.name] for k in env.KNOBS if k.name in os.environ}
    ok = all(ability.works for ability in abilities if ability.core)
    data: dict[str, object] = {
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "platform": platform.platform(),
        "packages": packages,
        "tools": [tool.to_dict() for tool in tools],
        "driver": {**asdict(driver), "gpus": [asdict(gpu) for gpu in driver.gpus]},
        "cache": cache,
        "knobs": knobs,
        "abilities": [asdict(ability) for ability in abilities],
    }
    view = Group(
        *_section(
            "python", [(platform.python_version(), f"{sys.executable} on {platform.platform()}")]
        ),
        *_section("packages", [(n, v or _absent(n)) for n, v in packages.items()]),
        *_section(
            "tools",
            [(f"{t.name} {t.version_text}", f"{t.path}  (from {t.source})") for t in tools]
            or [("none", "neither ptxas nor nvdisasm was found")],
        ),
        *_section("driver", _driver_rows(driver)),
        *_section("cache", [(str(cache["path"]), str(cache["state"]))]),
        *_section("environment", list(knobs.items()) or [("PTXGEN_...", "no variable is set")]),
        *_ability_views(abilities),
    )
    return Answer(data=data, view=view, ok=ok)


# ---------------------------------------------------------------------------- what is here


def _tools() -> list[Tool]:
    return [tool for name in ("ptxas", "nvdisasm") for tool in discover.find_all(name)]


def _absent(package: str) -> str:
    own = package == machine.DISTRIBUTION
    return "not installed; this is a checkout" if own else "not installed"


def _cache() -> dict[str, object]:
    """The cache folder, and whether it can be written."""
    folder = env.CACHE_DIR.get()
    existing = next(p for p in (folder, *folder.parents) if p.exists())
    entries = [p.stat().st_size for p in folder.glob("*/*/*.entry")]
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        state = f"cannot be written; set {env.CACHE_DIR.name} to a folder that can"
    else:
        state = f"{len(entries):,} entries, {sum(entries):,} B"
    return {"path": folder, "state": state, "entries": len(entries), "bytes": sum(entries)}


def _driver_rows(driver: machine.Driver) -> list[tuple[str, str]]:
    if driver.version is None:
        return [("none", driver.problem)]
    rows = [("CUDA {}.{}".format(*driver.version), "what the driver supports")]
    for gpu in driver.gpus:
        where, _, what = str(gpu).partition("  ")
        rows.append((where, what if gpu.usable else f"{what}: not usable, sm_90a code needs 9.0"))
    return rows if driver.gpus else [*rows, ("no GPU", "the driver shows none to this process")]


# ---------------------------------------------------------------------------- what works


def _abilities(driver: machine.Driver) -> Iterator[Ability]:
    yield _tried("emit", _emit, "pip install jinja2 ml_dtypes")
    yield _tried("assemble", _assemble, "pip install nvidia-cuda-nvcc, or set PTXGEN_PTXAS")
    yield _tried("verify", _verify, "pip install nvidia-cuda-nvdisasm, or set PTXGEN_NVDISASM")
    yield _tried("emulator", lambda: _run("emulator"), "pip install numpy ml_dtypes")
    if driver.usable_gpu is None:
        yield Ability(
            name="cuda", works=False, core=False,
            detail="no GPU of compute capability 9.0 (see driver above)",
            cure="a machine with an H100, H200 or GH200 and its driver; all else works without",
        )  # fmt: skip
    else:
        yield _tried("cuda", lambda: _run("cuda"), "see the message above", core=False)


def _tried(name: str, work: Callable[[], str], cure: str, *, core: bool = True) -> Ability:
    """Run `work`; whatever it raises is the answer, since finding faults is our business here."""
    try:
        return Ability(name=name, works=True, detail=work(), core=core)
    except PtxgenError as error:
        detail = str(error)
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
    return Ability(name=name, works=False, detail=detail, cure=cure, core=core)


def _emit() -> str:
    from ptxgen.api import kernel_from

    return f"{PROBE}: {kernel_from(PROBE).ptx.count(chr(10)):,} lines of PTX"


def _assemble() -> str:
    from ptxgen.api import kernel_from
    from ptxgen.toolchain.assemble import assemble, require_clean
    from ptxgen.toolchain.cache import Store

    versions = []
    for tool in discover.all_ptxas() or (discover.ptxas(),):
        cubin = require_clean(assemble(kernel_from(PROBE).ptx, ptxas=tool, store=Store(None)))
        versions.append(f"{cubin.ptxas} ({len(cubin.bytes):,} B)")
    return "cubins by ptxas " + ", ".join(versions)


def _verify() -> str:
    from ptxgen.api import kernel_from

    return str(kernel_from(PROBE).verify()).splitlines()[0]


def _run(backend: str) -> str:
    from ptxgen.api import kernel_from
    from ptxgen.app.trial import attempt

    trial = attempt(
        kernel_from(PROBE), 64, 64, 128, backend=backend, seed=0, inputs="integers"
    )  # two stages of K
    if not trial.comparison.ok:
        raise PtxgenError(f"{PROBE} on {backend}: {trial.comparison.verdict()}")
    return f"{PROBE} on 64 x 64 x 128: {trial.comparison.verdict()}"


# ---------------------------------------------------------------------------- drawing


def _section(title: str, rows: list[tuple[str, str]]) -> tuple[RenderableType, ...]:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, text in rows:
        table.add_row(f"  {name}", text)
    return Text(title, style="bold cyan"), table


def _ability_views(abilities: tuple[Ability, ...]) -> tuple[RenderableType, ...]:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("  works", "what", "evidence, or what is missing and how to get it"):
        table.add_column(column)
    for ability in abilities:
        mark = ("  yes", "green") if ability.works else ("  no", "bold red")
        text = ability.detail if ability.works else f"{ability.detail}\ncure: {ability.cure}"
        table.add_row(Text(*mark), Text(ability.name, style="bold"), text)
    return Text("what works here", style="bold cyan"), table
