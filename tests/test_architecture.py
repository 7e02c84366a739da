"""The rules of CONTRIBUTING.md that a program can check."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("gpudb", "tpch", "tests")
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 800
PARAMETERS_MAX = 6
FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "managers", "manager", "misc"}
TEXT_SUFFIXES = {".py", ".md", ".toml", ".sql", ".slt", ".yml", ".txt", ""}

SOLE_IMPORTERS = {
    "numba": ("gpudb/jit.py",),
    "kvikio": ("gpudb/storage/file.py",),
    "sqlglot": ("gpudb/optimizer/parser/", "gpudb/optimizer/binder/"),
    "asyncio": ("gpudb/wire/server.py",),
    "uvloop": ("gpudb/wire/server.py",),
    "apsw": ("gpudb/catalog/",),
    "torch.distributed": ("gpudb/exec/distributed.py", "gpudb/exec/exchange.py", "gpudb/ml/"),
    "torch": (
        "gpudb/column.py", "gpudb/kernels/", "gpudb/exec/", "gpudb/storage/", "gpudb/ml/",
        "gpudb/database.py", "gpudb/embedded_values.py", "gpudb/commands/",
    ),
}  # fmt: skip
"""Which modules of gpudb may import a library; a folder ends in a slash."""

REGISTERING = {
    "gpudb/exec/functions": "from gpudb.exec import functions; functions.load()",
    "gpudb/commands": "from gpudb import commands; commands.load()",
    "gpudb/catalog/types": "import gpudb.catalog.types",
    "gpudb/optimizer/rules": "import gpudb.optimizer.rules",
}
"""Packages whose __init__ lists the modules that register something, and what loads them."""


def python_files(*packages: str) -> list[Path]:
    return sorted(path for name in packages or PACKAGES for path in (ROOT / name).rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """The modules that a file imports, wherever in it."""
    return frozenset(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (item.name for item in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{item.name}" for item in node.names)


def test_functions_are_short() -> None:
    long = [
        f"{relative(path)}:{node.lineno} {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for path in python_files()
        for node in functions(path)
        if node.end_lineno and node.end_lineno - node.lineno >= FUNCTION_LINES_MAX
    ]
    assert long == []


def test_files_are_short() -> None:
    counts = {relative(path): path.read_text("utf-8").count("\n") for path in python_files()}
    assert {name: count for name, count in counts.items() if count > FILE_LINES_MAX} == {}


def test_functions_have_few_parameters() -> None:
    """Six positional ones at most; click commands take what their options are, and numba's loops
    in kernels have no keyword-only ones.
    """
    many = [
        f"{relative(path)}:{node.lineno} {node.name}"
        for path in python_files("gpudb")
        for node in functions(path)
        if len([a for a in (*node.args.posonlyargs, *node.args.args) if a.arg != "self"])
        > PARAMETERS_MAX
        and not relative(path).startswith("gpudb/kernels/")
        and not any("command" in ast.dump(item) for item in node.decorator_list)
    ]
    assert many == []


def test_names_say_something() -> None:
    bad = [
        relative(path)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.stem in FORBIDDEN_NAMES and "__pycache__" not in path.parts
    ]
    assert bad == []


def test_open_work_has_an_issue() -> None:
    mark = re.compile(r"#.*\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))")
    found = [
        f"{relative(path)}:{number}"
        for path in python_files("gpudb", "tpch")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if mark.search(line)
    ]
    assert found == []


def test_modules_begin_alike() -> None:
    """A docstring, and annotations that are not evaluated."""
    bad = []
    for path in python_files():
        module = parsed(path)
        if not module.body:
            continue
        has_future = any(
            isinstance(node, ast.ImportFrom) and node.module == "__future__"
            for node in module.body
        )
        needs_future = len(module.body) > 1
        if ast.get_docstring(module) is None or (needs_future and not has_future):
            bad.append(relative(path))
    assert bad == []


@pytest.mark.parametrize("library", SOLE_IMPORTERS)
def test_who_imports(library: str) -> None:
    allowed = SOLE_IMPORTERS[library]
    bad = [
        relative(path)
        for path in python_files("gpudb")
        if any(name == library or name.startswith(library + ".") for name in imports(path))
        and not relative(path).startswith(allowed)
    ]
    assert bad == []


def test_only_settings_reads_the_environment() -> None:
    bad = []
    for path in python_files("gpudb"):
        names = {
            node.attr
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "os"
        }
        if names & {"environ", "getenv", "putenv"} and relative(path) != "gpudb/settings.py":
            bad.append(relative(path))
    assert bad == []


def test_broad_except_only_at_the_borders() -> None:
    """``except Exception`` re-raises, except in modules that are a border."""
    borders = ("gpudb/session.py", "gpudb/embedded.py", "gpudb/wire/", "gpudb/exec/", "gpudb/ml/")
    bad = [
        f"{relative(path)}:{node.lineno}"
        for path in python_files("gpudb")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in ("Exception", "BaseException"))
        and not relative(path).startswith(borders)
        and not any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
    ]
    assert bad == []


@pytest.mark.parametrize("package", REGISTERING)
def test_registering_packages_load_their_modules(package: str) -> None:
    """A module that the list in __init__ forgets, and that no listed one needs, is dead."""
    loaded = run_python(f"{REGISTERING[package]}; import sys; print(*sys.modules)").split()
    dotted = package.replace("/", ".")
    found = {f"{dotted}.{path.stem}" for path in (ROOT / package).glob("[!_]*.py")}
    assert found - set(loaded) == set()


def run_python(program: str) -> str:
    """What a program prints in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return done.stdout.strip()


def test_importing_the_package_is_light() -> None:
    """gpudb, its command line and gpudb.wire load without torch and numba."""
    found = run_python(
        "import sys, gpudb, gpudb.__main__, gpudb.wire.protocol, gpudb.wire.backend;"
        "print([name for name in ('torch', 'numba') if name in sys.modules])"
    )
    assert found == "[]"


def test_texts_speak_of_the_project_alone() -> None:
    """No absolute path of somebody's machine, nothing beside the repository."""
    words = re.compile(r"/(?:work|home|root|Users)/|\.\./shared")
    allowed = {"Makefile", "tests/test_architecture.py"}
    folders = ("gpudb", "tpch", "tests", "docs", ".ci")
    files = [path for name in folders for path in (ROOT / name).rglob("*") if path.is_file()]
    files += [path for path in ROOT.iterdir() if path.is_file()]
    bad = [
        relative(path)
        for path in files
        if path.suffix in TEXT_SUFFIXES
        and "__pycache__" not in path.parts
        and path.name != ".git"
        and relative(path) not in allowed
        and words.search(path.read_text("utf-8", errors="replace"))
    ]
    assert bad == []


def test_makefile_has_the_promised_targets() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))
    assert targets >= {
        "setup", "serve", "demo", "test", "test-all", "suites", "lint", "format", "golden",
        "bench", "docs", "clean",
    }  # fmt: skip


def test_configurations_name_settings_that_exist() -> None:
    from gpudb import settings

    for path in (ROOT / "tests" / "configs").glob("*.toml"):
        for name, value in tomllib.loads(path.read_text("utf-8")).get("settings", {}).items():
            settings.canonical(settings.find(name), str(value))
