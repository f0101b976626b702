"""The house as it is meant to be built: layers, light imports, modules that say what they are about."""

from __future__ import annotations

import ast
import functools
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from house import LAYERS, ROOT, imports, modules, tree_of

MODULES = {layer: modules(ROOT, layer) for layer in LAYERS}
FILES = sorted(path for found in MODULES.values() for path in found.values())
DRAWING = {"textual", "click", "rich"}
DATABASES = {"sqlite3", "duckdb"}


def loaded_by(*modules: str) -> set[str]:
    """The packages and layers that are loaded after these modules were imported, in a process of its own."""
    own = "name.removeprefix('sfumato.').partition('.')[0]"
    script = f"import sys, {', '.join(modules)}; print(*{{{own} for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "forbidden"), [("engine", DATABASES | DRAWING | {"workspace", "tui"}), ("workspace", DRAWING | {"tui"})]
)
def test_importing_a_whole_layer_loads_nothing_of_the_layers_above(layer: str, forbidden: set[str]) -> None:
    loaded = loaded_by(*MODULES[layer])
    assert layer in loaded
    assert not loaded & forbidden


def test_the_command_line_loads_neither_the_toolkit_nor_the_numerical_libraries() -> None:
    pytest.importorskip("sfumato.tui.cli.main")
    loaded = loaded_by("sfumato.tui.cli.main")
    assert "click" in loaded
    assert not loaded & {"textual", "numpy", "pandas", "scipy", "duckdb", "pyarrow"}


@pytest.mark.slow
def test_no_file_of_the_command_line_loads_the_toolkit() -> None:
    loaded = loaded_by(*(name for name in MODULES["tui"] if name.startswith("sfumato.tui.cli.")))
    assert {"click", "numpy"} <= loaded
    assert "textual" not in loaded


@pytest.mark.slow
def test_slow_parts_of_scipy_are_loaded_when_they_are_needed() -> None:
    """Loading them took two fifths of the time that ``sfumato results`` needs to start, and only computations use them."""
    slow = tuple(f"scipy.{part}." for part in ("stats", "optimize", "interpolate", "spatial", "ndimage"))
    loads = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in FILES
        for node in tree_of(path).body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in (f"{getattr(node, 'module', None) or ''}.{alias.name}.".lstrip(".") for alias in node.names)
        if name.startswith(slow)
    ]
    assert not loads


def test_what_screens_read_loads_no_numerical_library() -> None:
    loaded = loaded_by(
        "sfumato.workspace.store.workspace", "sfumato.workspace.store.runs", "sfumato.workspace.views.results"
    )
    assert "sqlite3" in loaded
    assert not loaded & {"numpy", "pandas", "scipy", "duckdb", "pyarrow"}


def test_the_values_of_the_engine_load_no_numerical_library_until_they_compute() -> None:
    values = (
        "data.schema",
        "data.terms",
        "methods.spec",
        "methods.registry",
        "methods.results",
        "methods.rows",
        "recipe.thresholds",
        "execution.comparison",
        "recipe.published",
    )
    loaded = loaded_by(*(f"sfumato.engine.{name}" for name in values))
    assert "engine" in loaded
    assert not loaded & {"numpy", "pandas", "scipy"}


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


@pytest.mark.slow
def test_no_file_leads_to_itself_by_its_imports() -> None:
    files = {name: path for found in MODULES.values() for name, path in found.items()}
    graph = {name: imports(name, path, files.keys()) for name, path in files.items()}
    assert len(graph) > 150
    assert sum(map(len, graph.values())) > 1000
    assert circles_of(graph) == set()


def test_the_search_for_circles_finds_one() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"e"}}
    assert circles_of(graph) == {frozenset("abc"), frozenset("e")}


@pytest.mark.slow
def test_every_module_says_what_it_is_about() -> None:
    assert [path for path in FILES if not ast.get_docstring(tree_of(path))] == []


def test_the_check_of_imports_finds_one_that_is_forbidden() -> None:
    assert loaded_by("sqlite3", "textual") & (DATABASES | DRAWING) >= {"sqlite3", "textual"}


def test_no_module_takes_the_name_of_one_of_the_standard_library() -> None:
    assert not {"sfumato"} & set(sys.stdlib_module_names)


def privately_named(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@functools.cache
def private_names_of_textual() -> frozenset[str]:
    """Attributes that the classes of Textual have and say are theirs."""
    folder = Path(importlib.util.find_spec("textual").submodule_search_locations[0])  # type: ignore[union-attr,index]
    names: set[str] = set()
    for module in (
        "app",
        "screen",
        "widget",
        "dom",
        "message_pump",
        "scroll_view",
        "driver",
        "widgets/_input",
        "widgets/_text_area",
    ):
        for node in ast.walk(ast.parse((folder / f"{module}.py").read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                names.add(node.attr)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names.add(node.name)
    return frozenset(filter(privately_named, names))


def private_parts_used(tree: ast.Module, theirs: frozenset[str]) -> Iterator[str]:
    """Names of private parts of Textual and Rich that a file imports, reads of another object, or of what it inherits."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("textual", "rich"):
            yield from filter(privately_named, [*(node.module or "").split("."), *(alias.name for alias in node.names)])
        elif isinstance(node, ast.Import):
            parts = [alias.name.split(".") for alias in node.names]
            yield from (
                name for part in parts if part[0] in ("textual", "rich") for name in filter(privately_named, part)
            )
        elif isinstance(node, ast.ClassDef):
            yield from (part for part in inherited_parts(node, theirs) if part)
        elif (
            isinstance(node, ast.Attribute)
            and node.attr in theirs
            and ast.unparse(node.value) not in ("self", "cls", "os")
        ):
            yield node.attr


def inherited_parts(node: ast.ClassDef, theirs: frozenset[str]) -> Iterator[str]:
    """Private names of Textual that a class reads of itself and does not give a meaning of its own; handlers that it replaces."""
    inside = list(ast.walk(node))
    own = {child.name for child in inside if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))}
    own |= {child.attr for child in inside if isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store)}
    own |= {child.id for child in inside if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)}
    for child in inside:
        if isinstance(child, ast.Attribute) and ast.unparse(child.value) == "self" and child.attr in theirs - own:
            yield child.attr


@pytest.mark.slow
def test_only_the_rooms_of_the_terminal_know_private_parts_of_textual() -> None:
    theirs = private_names_of_textual()
    assert {"_display", "_styles_cache", "_compositor", "_keymap", "_on_key"} <= theirs
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in FILES
        if not path.is_relative_to(ROOT / "tui" / "terminal") and "tui" in path.parts and path.parent.name != "cli"
        for name in private_parts_used(tree_of(path), theirs)
    }
    assert found == set()


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("from textual._compositor import LayoutUpdate", "_compositor"),
        ("from textual.keys import _character_to_key", "_character_to_key"),
        ("import textual._styles_cache", "_styles_cache"),
        ("size = screen._compositor.size", "_compositor"),
        ("class Grid(Widget):\n    def on_mount(self): return self._styles_cache", "_styles_cache"),
        ("class Field(Input):\n    async def on_key(self, event): await super()._on_key(event)", "_on_key"),
    ],
)
def test_the_search_for_private_parts_finds_one(line: str, name: str) -> None:
    assert name in set(private_parts_used(ast.parse(line), private_names_of_textual()))


@pytest.mark.slow
def test_no_class_of_ours_gives_a_private_name_of_textual_another_meaning() -> None:
    """What a widget of ours calls its own must not be what Textual, which calls it too, takes for its own."""
    script = """
import ast, sys
from functools import cache
from pathlib import Path
import importlib, pkgutil
import sfumato.tui
from textual.dom import DOMNode
for info in pkgutil.walk_packages(sfumato.tui.__path__, "sfumato.tui."):
    importlib.import_module(info.name)
modules = [module for name, module in sys.modules.items() if name.startswith("sfumato.tui.")]
kinds = {value for module in modules for value in vars(module).values() if isinstance(value, type) and issubclass(value, DOMNode) and value.__module__.startswith("sfumato.tui.")}
@cache
def classes(module):
    found, waiting = {}, [("", ast.parse(Path(sys.modules[module].__file__).read_text("utf-8")))]
    while waiting:
        place, node = waiting.pop()
        for child in ast.iter_child_nodes(node):
            inside = place
            if isinstance(child, ast.ClassDef):
                found[place + child.name] = child
                inside = f"{place}{child.name}."
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inside = f"{place}{child.name}.<locals>."
            waiting.append((inside, child))
    return found
@cache
def named(kind):
    node = classes(kind.__module__)[kind.__qualname__]
    found = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name) and n.value.id == "self"}
    found |= {n.name for n in node.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))}
    return {name for name in found if name.startswith("_") and not name.startswith("__")}
for kind in kinds:
    if not kind.__module__.startswith("sfumato.tui.terminal"):
        theirs = [base for base in kind.__mro__ if base.__module__.startswith("textual.")]
        for name in named(kind) & set().union(*map(named, theirs)):
            print(f"{kind.__module__}.{kind.__name__}.{name}")
print("done")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.splitlines() == ["done"], done.stdout + done.stderr
