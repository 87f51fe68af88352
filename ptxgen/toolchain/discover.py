"""Where ptxas and nvdisasm are, and which one we use.

Searched in this order; the first usable one is the default:

    1. the knob             PTXGEN_PTXAS / PTXGEN_NVDISASM (must be usable: never skipped silently)
    2. the NVIDIA wheels    nvidia-cuda-nvcc, nvidia-cuda-nvdisasm: our declared dependencies, so
                            that everybody with the same lock file gets the same SASS
    3. cuda.pathfinder      conda environments and what else it knows
    4. CUDA_HOME, CUDA_PATH
    5. PATH
    6. /usr/local/cuda*     newest first

`all_ptxas()` lists every different version that was found, so that tests can hold each of them to
the same expectations.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ptxgen import env
from ptxgen.errors import ToolMissing

VERSION_TIMEOUT_S = 60.0  # a cold network file system can take seconds; a hang must still end
_SYSTEM_ROOT = Path("/usr/local")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One executable: where it is, what it says it is, and which search found it."""

    name: str
    path: Path
    version: tuple[int, ...]  # (13, 5, 37)
    build: str  # "cuda_13.5.r13.5/compiler.39125733_0"; tells two builds of one version apart
    source: str

    @property
    def version_text(self) -> str:
        return ".".join(map(str, self.version))

    def __str__(self) -> str:
        return f"{self.name} {self.version_text} ({self.path}, from {self.source})"

    def to_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "path": str(self.path),
            "version": self.version_text,
            "build": self.build,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recipe:
    """How one tool is looked for."""

    name: str
    knob: env.Knob[str | None]
    wheels: tuple[str, ...]


_RECIPES = {
    recipe.name: recipe
    for recipe in (
        _Recipe(
            name="ptxas",
            knob=env.PTXAS,
            wheels=("nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu13", "nvidia-cuda-nvcc-cu12"),
        ),
        _Recipe(
            name="nvdisasm",
            knob=env.NVDISASM,
            wheels=("nvidia-cuda-nvdisasm", "nvidia-cuda-nvdisasm-cu12"),
        ),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """One place that was looked at. `path` is None when the place itself does not exist."""

    source: str
    path: Path | None
    note: str = ""


def ptxas() -> Tool:
    """The assembler to use. Raises ToolMissing, which lists every place that was looked at."""
    return _default("ptxas")


def nvdisasm() -> Tool:
    """The disassembler to use. Raises ToolMissing, which lists every place that was looked at."""
    return _default("nvdisasm")


def all_ptxas() -> tuple[Tool, ...]:
    """Every different ptxas on this machine, the default first. Empty when there is none."""
    return find_all("ptxas")


def all_nvdisasm() -> tuple[Tool, ...]:
    """Every different nvdisasm on this machine, the default first. Empty when there is none."""
    return find_all("nvdisasm")


def find_all(name: str) -> tuple[Tool, ...]:
    """Every usable build of a tool, in search order; the same build at two paths counts once."""
    found: dict[tuple[tuple[int, ...], str], Tool] = {}
    for place in _places(_RECIPES[name]):
        tool, _ = _probe(name, place)
        if tool is not None:
            found.setdefault((tool.version, tool.build), tool)
    return tuple(found.values())


def tool_at(name: str, path: str | os.PathLike[str], *, source: str = "argument") -> Tool:
    """The tool at one path. Raises ToolMissing when it cannot be run."""
    tool, problem = _probe(name, _Place(source=source, path=Path(path)))
    if tool is None:
        raise ToolMissing(f"{name}: {path} (from {source}) cannot be used: {problem}")
    return tool


def _default(name: str) -> Tool:
    recipe = _RECIPES[name]
    chosen = recipe.knob.get()
    if chosen is not None:
        # Someone asked for this very tool: using another one in its place would be a lie.
        return tool_at(name, chosen, source=recipe.knob.name)
    looked: list[str] = []
    for place in _places(recipe):
        tool, problem = _probe(name, place)
        if tool is not None:
            return tool
        looked.append(f"  {place.source:<16} {place.path or place.note}: {problem}")
    raise ToolMissing(
        f"{name} was not found. Looked at:\n" + "\n".join(looked) + "\n"
        f"Cure: pip install {recipe.wheels[0]}, or set {recipe.knob.name} to its path."
    )


def _places(recipe: _Recipe) -> Iterator[_Place]:
    searches: tuple[Callable[[_Recipe], Iterator[_Place]], ...] = (
        _from_knob, _from_wheels, _from_pathfinder, _from_cuda_home, _from_path, _from_system,
    )  # fmt: skip
    for search in searches:
        yield from search(recipe)


def _from_knob(recipe: _Recipe) -> Iterator[_Place]:
    chosen = recipe.knob.get()
    if chosen is None:
        yield _Place(source=recipe.knob.name, path=None, note="(variable not set)")
    else:
        yield _Place(source=recipe.knob.name, path=Path(chosen))


def _from_wheels(recipe: _Recipe) -> Iterator[_Place]:
    for wheel in recipe.wheels:
        try:
            files = importlib.metadata.distribution(wheel).files or ()
        except importlib.metadata.PackageNotFoundError:
            yield _Place(source="wheel", path=None, note=f"{wheel} (not installed)")
            continue
        paths = [f for f in files if f.name == recipe.name and f.parent.name == "bin"]
        yield from (_Place(source="wheel", path=Path(str(f.locate()))) for f in paths)
        if not paths:
            yield _Place(source="wheel", path=None, note=f"{wheel} (installed, no {recipe.name})")


def _from_pathfinder(recipe: _Recipe) -> Iterator[_Place]:
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:  # older than 1.3, or not installed
        yield _Place(source="cuda.pathfinder", path=None, note="(has no search for tools)")
        return
    try:
        path = find_nvidia_binary_utility(recipe.name)
    except Exception as error:  # its own error types; a failing search is a place without the tool
        yield _Place(source="cuda.pathfinder", path=None, note=f"({error})")
        return
    if path is None:
        yield _Place(source="cuda.pathfinder", path=None, note="(knows none)")
    else:
        yield _Place(source="cuda.pathfinder", path=Path(path))


def _from_cuda_home(recipe: _Recipe) -> Iterator[_Place]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        root = os.environ.get(name)
        if root:
            yield _Place(source=name, path=Path(root) / "bin" / recipe.name)
        else:
            yield _Place(source=name, path=None, note="(variable not set)")


def _from_path(recipe: _Recipe) -> Iterator[_Place]:
    found = False
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = Path(folder) / recipe.name
        if folder and path.is_file():
            found = True
            yield _Place(source="PATH", path=path)
    if not found:
        yield _Place(source="PATH", path=None, note="(in none of its folders)")


def _from_system(recipe: _Recipe) -> Iterator[_Place]:
    roots = sorted(_SYSTEM_ROOT.glob("cuda*"), key=_numbers, reverse=True)
    for root in roots:
        yield _Place(source=str(_SYSTEM_ROOT / "cuda*"), path=root / "bin" / recipe.name)
    if not roots:
        yield _Place(source=str(_SYSTEM_ROOT / "cuda*"), path=None, note="(no such folder)")


def _numbers(path: Path) -> tuple[int, ...]:
    """Sort key: cuda-13.10 is newer than cuda-13.9; a plain `cuda` link comes last."""
    return tuple(int(n) for n in re.findall(r"\d+", path.name))


def _probe(name: str, place: _Place) -> tuple[Tool | None, str]:
    """The tool at a place, or None and why not."""
    if place.path is None:
        return None, "nothing there"
    path = place.path.absolute()
    try:
        stamp = path.stat().st_mtime_ns
    except OSError as error:
        return None, error.strerror or str(error)
    if not path.is_file():
        return None, "not a file"
    if not os.access(path, os.X_OK):
        return None, "not executable"
    version, build, problem = _read_version(name, path, stamp)
    if not version:
        return None, problem
    return Tool(name=name, path=path, version=version, build=build, source=place.source), ""


@lru_cache(maxsize=64)  # keyed by the file's time stamp too, so that an upgrade is seen
def _read_version(name: str, path: Path, stamp: int) -> tuple[tuple[int, ...], str, str]:
    """(version, build, "") as `--version` tells them, or ((), "", the problem)."""
    del stamp
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace",
            timeout=VERSION_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return (), "", f"--version failed: {error}"
    return parse_version(name, done.stdout + done.stderr, done.returncode)


def parse_version(name: str, text: str, exit_code: int = 0) -> tuple[tuple[int, ...], str, str]:
    """Read the output of `--version`: (version, build, "") or ((), "", the problem)."""
    version = re.search(r"\bV(\d+(?:\.\d+)+)", text)
    if exit_code != 0 or version is None or name not in text.lower():
        said = " ".join(text.split())[:120] or "nothing"
        return (), "", f"--version is not that of {name} (exit {exit_code}, said: {said})"
    build = re.search(r"^Build (\S+)", text, re.MULTILINE)
    return (
        tuple(int(n) for n in version.group(1).split(".")),
        build.group(1) if build else "",
        "",
    )
