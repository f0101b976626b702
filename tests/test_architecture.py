"""The house as it is meant to be built: layers, light imports, short files, documented names."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("engine", "workspace", "tui")
FILES = sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))
LONGEST_FILE = 450
DRAWING = {"textual", "click", "rich"}
DATABASES = {"sqlite3", "duckdb"}


def modules_of(layer: str) -> list[str]:
    relative = [path.relative_to(ROOT).with_suffix("") for path in FILES if path.is_relative_to(ROOT / layer)]
    return [".".join(("sfumato", *path.parts)).removesuffix(".__init__") for path in relative]


def loaded_by(*modules: str) -> set[str]:
    """The packages and layers that are loaded after these modules were imported, in a process of its own."""
    own = "name.removeprefix('sfumato.').partition('.')[0]"
    script = f"import sys, {', '.join(modules)}; print(*{{{own} for name in sys.modules}})"
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
    ("layer", "forbidden"), [("engine", DATABASES | DRAWING | {"workspace", "tui"}), ("workspace", DRAWING | {"tui"})]
)
def test_importing_a_whole_layer_loads_nothing_of_the_layers_above(layer: str, forbidden: set[str]) -> None:
    loaded = loaded_by(*modules_of(layer))
    assert layer in loaded
    assert not loaded & forbidden


def test_the_command_line_loads_neither_the_toolkit_nor_the_numerical_libraries() -> None:
    pytest.importorskip("sfumato.tui.cli.main")
    loaded = loaded_by("sfumato.tui.cli.main")
    assert "click" in loaded
    assert not loaded & {"textual", "numpy", "pandas", "scipy", "duckdb", "pyarrow"}


def test_no_file_of_the_command_line_loads_the_toolkit() -> None:
    loaded = loaded_by(*(name for name in modules_of("tui") if name.startswith("sfumato.tui.cli.")))
    assert {"click", "numpy"} <= loaded
    assert "textual" not in loaded


def test_what_screens_read_loads_no_numerical_library() -> None:
    loaded = loaded_by(
        "sfumato.workspace.views.queries", "sfumato.workspace.views.results", "sfumato.workspace.views.runs"
    )
    assert "sqlite3" in loaded
    assert not loaded & {"numpy", "pandas", "scipy", "duckdb", "pyarrow"}


def test_the_values_of_the_engine_load_no_numerical_library_until_they_compute() -> None:
    values = (
        "schema",
        "terms",
        "spec",
        "methods",
        "results",
        "traces",
        "rows",
        "thresholds",
        "comparison",
        "published",
    )
    loaded = loaded_by(*(f"sfumato.engine.{name}" for name in values))
    assert "engine" in loaded
    assert not loaded & {"numpy", "pandas", "scipy"}


CIRCLES = {  # what is left of them; one that is gone is struck out here
    ("sfumato.engine.posterior.local_density", "sfumato.engine.posterior.zero_inflated_poisson"),
    ("sfumato.tui.screens.exhibiting", "sfumato.tui.screens.export", "sfumato.tui.screens.page"),
    ("sfumato.workspace.jobs.dask_pool", "sfumato.workspace.jobs.pool"),
}


def imports_of(path: Path, known: set[str]) -> set[str]:
    """The modules of ``known`` that a file names in its imports, wherever in it they stand."""
    parts = ("sfumato", *path.relative_to(ROOT).with_suffix("").parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            base = [*(parts[: -node.level] if node.level else ()), *(node.module.split(".") if node.module else ())]
            for alias in node.names:
                child = ".".join([*base, alias.name])
                found.add(child if child in known else ".".join(base))
    return found & known


def circles_of(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The sets of modules each of which leads to all others of its set."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        waiting, seen = [start], set()
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[start] = seen
    return {
        frozenset({one} | {other for other in seen if one in reached[other]})
        for one, seen in reached.items()
        if one in seen
    }


def test_files_that_import_each_other_are_known_and_no_more_come() -> None:
    known = {name for layer in LAYERS for name in modules_of(layer)}
    graph = {
        ".".join(("sfumato", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): imports_of(
            path, known
        )
        for path in FILES
    }
    assert len(graph) > 300
    assert sum(map(len, graph.values())) > 1000
    assert circles_of(graph) == {frozenset(circle) for circle in CIRCLES}


def test_the_search_for_circles_finds_one() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"e"}}
    assert circles_of(graph) == {frozenset("abc"), frozenset("e")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_short_and_everything_public_in_it_is_documented(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= LONGEST_FILE
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "the module says what it is for"
    contract = path.parent.name == "contract"  # its tests are named sentences
    silent = [node.name for node in public(tree) if not documented(node)]
    assert [name for name in silent if not (contract and name.startswith("test_"))] == []


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
    assert not {"sfumato"} & set(sys.stdlib_module_names)
