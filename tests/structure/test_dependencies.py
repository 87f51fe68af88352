"""Who may import whom: the layers as one table, held against every import statement.

Imports inside functions count like the others; only those under `if TYPE_CHECKING` do not, since
nothing runs them.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]

# The bottom: plain data and errors, and how they look.
SEAM = ("ptxgen.errors", "ptxgen.env", "ptxgen.spec", "ptxgen.view")
MODELLED = (*SEAM, "ptxgen.isa", "ptxgen.layout", "ptxgen.models")
GENERATED = (*MODELLED, "ptxgen.configs", "ptxgen.templating", "ptxgen.ptx", "ptxgen.kernels")
CORE = (  # what everything under runtime may use of the generator: never kernels or configs
    *SEAM, "ptxgen.isa", "ptxgen.layout.tensor_map", "ptxgen.ptx", "ptxgen.toolchain", "runtime",
)  # fmt: skip
TOP = ("ptxgen", "runtime")  # everything

# Package -> what its modules may import besides the package itself, the standard library and
# `THIRD_PARTY`. The longest name that fits a module is its row.
LAYERS: Mapping[str, tuple[str, ...]] = {
    "ptxgen.errors": (),
    "ptxgen.view": (),  # how tables, grids, code and drawings look
    "ptxgen.spec": ("ptxgen.view",),
    "ptxgen.env": ("ptxgen.errors",),
    "ptxgen.isa": SEAM,
    "ptxgen.layout": (*SEAM, "ptxgen.isa"),
    "ptxgen.ptx": (*SEAM, "ptxgen.isa"),
    "ptxgen.toolchain": (*SEAM, "ptxgen.isa", "ptxgen.view"),
    "ptxgen.models": (*SEAM, "ptxgen.isa", "ptxgen.layout"),
    "ptxgen.configs": MODELLED,
    "ptxgen.templating": (*SEAM, "ptxgen.isa"),  # it gets numbers, never configs
    "ptxgen.kernels": (*GENERATED, "ptxgen.toolchain.verify"),
    "ptxgen.debug": (*GENERATED, "ptxgen.toolchain"),
    "ptxgen.report": (*GENERATED, "ptxgen.toolchain"),
    "ptxgen.api": (*GENERATED, "ptxgen.toolchain", "ptxgen.debug", "ptxgen.report"),
    "ptxgen.foreign": (*SEAM, "ptxgen.isa", "ptxgen.ptx", "ptxgen.toolchain"),
    "ptxgen": ("ptxgen.api", "ptxgen.foreign", "ptxgen.app"),  # __init__ and __main__
    "ptxgen.app": TOP,
    "runtime": CORE,
    "runtime.cuda": CORE,
    "runtime.emulator": (*SEAM, "ptxgen.isa", "ptxgen.ptx", "runtime"),  # reads layouts by itself
    # the seam between the core, which encodes tensor maps, and the machine, which decodes them
    "runtime.emulator.backend": (*SEAM, "ptxgen.isa", "runtime"),
    "runtime.ops": TOP,
    "runtime.bench": TOP,
}
# What a rule above would allow, and another reason forbids: two implementations that tests compare,
# backends that know nothing of each other, and tops that nothing stands on.
FORBIDDEN: Mapping[str, tuple[str, ...]] = {
    "runtime": ("runtime.ops.", "runtime.bench", "ptxgen.app", "ptxgen.kernels", "ptxgen.configs"),
    "runtime.cuda": ("runtime.emulator", "runtime.ops", "runtime.bench"),
    "runtime.emulator": ("runtime.cuda", "runtime.ops", "runtime.bench", "runtime.tensor_maps"),
}

# Third-party package -> the only places that may import it.
THIRD_PARTY: Mapping[str, tuple[str, ...]] = {
    "numpy": (
        "ptxgen.isa", "ptxgen.view", "ptxgen.layout", "ptxgen.models", "ptxgen.app", "runtime",
    ),
    "ml_dtypes": ("ptxgen.isa", "runtime"),
    "jinja2": ("ptxgen.templating",),
    "cuda": ("runtime.cuda", "runtime.bench", "ptxgen.toolchain.discover"),  # cuda.pathfinder there
    "typer": ("ptxgen.app",),
    "rich": ("ptxgen.app",),
    "matplotlib": ("ptxgen.view", "ptxgen.layout", "ptxgen.models", "ptxgen.app", "runtime.bench"),
    "torch": ("runtime", "ptxgen.app"),
    "cupy": ("runtime", "ptxgen.app"),
    "jax": ("runtime", "ptxgen.app"),
    "IPython": ("ptxgen.view", "ptxgen.app"),
}  # fmt: skip
INSIDE_FUNCTIONS = ("matplotlib", "torch", "cupy", "jax", "IPython")  # optional or heavy


def modules() -> Iterator[tuple[str, Path]]:
    for top in ("ptxgen", "runtime"):
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(module: str, path: Path) -> Iterator[tuple[str, int, bool]]:
    """(imported module, line, whether at module level) of every import that can run."""

    def walk(node: ast.AST, top: bool) -> Iterator[tuple[str, int, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Import):
                yield from ((alias.name, child.lineno, top) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                yield from ((name, child.lineno, top) for name in _from(module, path, child))
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from walk(child, top and not function)

    yield from walk(ast.parse(path.read_text(encoding="utf-8")), True)


def _from(module: str, path: Path, node: ast.ImportFrom) -> Iterator[str]:
    """The modules that `from X import a, b` loads: X.a where that is a module, else X."""
    base = node.module or ""
    if node.level:
        package = module.split(".") if path.stem == "__init__" else module.split(".")[:-1]
        base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [base])])
    for alias in node.names:
        inner = ROOT.joinpath(*base.split("."), alias.name)
        is_module = inner.is_dir() or inner.with_suffix(".py").is_file()
        yield f"{base}.{alias.name}" if is_module else base


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package.rstrip(".") + ".")


def row(module: str) -> str:
    return max((name for name in LAYERS if within(module, name)), key=len)


def broken(module: str, path: Path) -> Iterator[str]:
    layer = row(module)
    for target, line, top in imports(module, path):
        head = target.split(".")[0]
        where = f"{path.relative_to(ROOT)}:{line} imports {target}"
        if head in ("ptxgen", "runtime"):
            allowed = row(target) == layer or any(within(target, name) for name in LAYERS[layer])
            if not allowed or any(within(target, name) for name in FORBIDDEN.get(layer, ())):
                yield where
        elif head not in sys.stdlib_module_names:
            if not any(within(module, place) for place in THIRD_PARTY.get(head, ())):
                yield where
            elif top and head in INSIDE_FUNCTIONS:
                yield f"{where} at module level"


def test_every_import_points_downwards() -> None:
    assert [text for module, path in modules() for text in broken(module, path)] == []


@pytest.mark.parametrize(
    ("module", "statement"),
    [
        ("ptxgen.layout.swizzle", "from ptxgen.ptx import parse"),  # siblings
        ("ptxgen.layout.swizzle", "def f():\n    import ptxgen.toolchain.cache"),  # lazily too
        ("ptxgen.templating.render", "from ptxgen.configs.gemm import Gemm"),
        ("ptxgen.configs.gemm", "from ptxgen import templating"),
        ("ptxgen.kernels.gemm", "from ptxgen.toolchain.assemble import assemble"),
        ("ptxgen.toolchain.sass", "from ptxgen import api"),
        ("runtime.launcher", "from ptxgen.kernels import registry"),
        ("runtime.launcher", "from ptxgen.layout import swizzle"),
        ("runtime.launcher", "from cuda.bindings import driver"),
        ("runtime.emulator.tma", "from ptxgen.layout import tensor_map"),
        ("runtime.emulator.tma", "from ..tensor_maps import encode"),
        ("runtime.emulator.tma", "from ..cuda import driver"),
        ("ptxgen.kernels.gemm", "import jinja2"),
        ("runtime.buffers", "import torch"),
        ("ptxgen.app.cli", "import left_pad"),
    ],
)
def test_the_table_refuses(module: str, statement: str, tmp_path: Path) -> None:
    """The test above can fail: each line is one that a layer must not have."""
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    real = Path.read_text

    def patched(self: Path, *args: object, **kwargs: object) -> str:
        return statement if self == path else real(self, *args, **kwargs)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_text", patched)
        assert len(list(broken(module, path))) == 1


# ------------------------------------------------------------------ what an import costs

HEAVY = ("cuda", "jinja2", "ml_dtypes", "numpy", "typer", "rich", "torch", "jax", "matplotlib")
REPORT = (
    f"; import sys; heavy = sorted(set({HEAVY}) & set(sys.modules))"
    "; sys.exit(f'loads {heavy}' if heavy else 0)"
)


def fresh_python(code: str) -> None:
    """Run code in an interpreter of its own; what it exits with must be nothing."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "statement",
    [
        "import ptxgen, runtime",
        "import ptxgen.errors, ptxgen.spec, ptxgen.env, runtime.backend",
        "import ptxgen, runtime; dir(ptxgen), dir(runtime), ptxgen.__version__",
    ],
)
def test_imports_are_light(statement: str) -> None:
    fresh_python(statement + REPORT)


def test_a_heavy_import_is_seen() -> None:
    with pytest.raises(AssertionError, match=r"loads .*numpy"):
        fresh_python("import ptxgen.isa.dtypes" + REPORT)


def test_the_generator_never_touches_cuda() -> None:
    """A kernel's text, spec and config come without the bindings ever being imported."""
    fresh_python(
        "import sys, ptxgen, runtime; k = ptxgen.kernel('gemm'); k.ptx; k.spec; "
        "bad = [m for m in sys.modules if m.startswith(('cuda.b', 'cuda.core', 'runtime.cuda'))]; "
        "sys.exit(str(bad) if bad else 0)"
    )
