"""The house as it is meant to be built: layers, light imports, short files, documented names."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("engine", "workspace", "tui")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
LONGEST_FILE = 450
DRAWING = {"textual", "click", "rich"}
DATABASES = {"sqlite3", "duckdb"}


def modules_of(package: str) -> list[str]:
    relative = [path.relative_to(ROOT).with_suffix("") for path in FILES if path.is_relative_to(ROOT / package)]
    return [".".join(path.parts).removesuffix(".__init__") for path in relative]


def loaded_by(*modules: str) -> set[str]:
    """The top-level modules that are loaded after these were imported, in a process of its own."""
    script = f"import sys, {', '.join(modules)}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_the_layers_and_families_keep_apart() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    if not linter.is_file():
        pytest.skip("import-linter is not installed")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "forbidden"), [("engine", DATABASES | DRAWING | {"workspace", "tui"}), ("workspace", DRAWING | {"tui"})]
)
def test_importing_a_whole_package_loads_nothing_of_the_layers_above(package: str, forbidden: set[str]) -> None:
    loaded = loaded_by(*modules_of(package))
    assert package in loaded
    assert not loaded & forbidden


def test_the_command_line_loads_neither_the_toolkit_nor_the_numerical_libraries() -> None:
    pytest.importorskip("tui.cli")
    loaded = loaded_by("tui.cli")
    assert "click" in loaded
    assert not loaded & {"textual", "numpy", "pandas", "scipy", "duckdb", "pyarrow"}


def test_what_screens_read_loads_no_numerical_library() -> None:
    loaded = loaded_by("workspace.queries", "workspace.findings", "workspace.views")
    assert "sqlite3" in loaded
    assert not loaded & {"numpy", "pandas", "scipy", "duckdb", "pyarrow"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_short_and_everything_public_in_it_is_documented(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= LONGEST_FILE
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "the module says what it is for"
    assert [node.name for node in public(tree) if not documented(node)] == []


Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def public(node: ast.Module | ast.ClassDef) -> Iterator[Named]:
    """Functions, classes and methods whose names do not begin with an underscore."""
    for child in node.body:
        if isinstance(child, Named) and not child.name.startswith("_"):
            yield child
            if isinstance(child, ast.ClassDef):
                yield from public(child)


def documented(node: Named) -> bool:
    overload = any("overload" in ast.unparse(decorator) for decorator in node.decorator_list)
    return overload or ast.get_docstring(node) is not None


def test_the_check_of_docstrings_finds_one_that_is_missing() -> None:
    tree = ast.parse(
        'class Shown:\n    """Said."""\n    def silent(self): ...\n    def _own(self): ...\ndef bare(): ...\n'
    )
    assert [node.name for node in public(tree) if not documented(node)] == ["silent", "bare"]


def test_the_check_of_imports_finds_one_that_is_forbidden() -> None:
    assert loaded_by("sqlite3", "textual") & (DATABASES | DRAWING) >= {"sqlite3", "textual"}


def test_no_module_takes_the_name_of_one_of_the_standard_library() -> None:
    assert not set(PACKAGES) & set(sys.stdlib_module_names)
