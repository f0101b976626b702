"""What a newcomer has to find the way in: python tests/benchmarks/house.py [--root DIRECTORY].

Of engine and workspace the rooms (folders, and files beside them), floors (the longest way down), arrows (rooms that import others) and rooms that
import each other. Of the whole the files, lines, share of lines that import, and functions that one place names alone. Of a small
recipe, from its text to its verdict, the files whose functions are called, and the calls from one file to another.
"""

from __future__ import annotations

import argparse
import ast
import functools
import os
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Set as AbstractSet
from pathlib import Path
from statistics import median

LAYERS = ("engine", "workspace", "tui")
ROOT = Path(__file__).parents[2]
WALK = """
import functools, os, sys
from pathlib import Path
root = str(Path(sys.argv[1]).resolve()) + os.sep
OURS = tuple(root + one + os.sep for one in ("engine", "workspace", "tui"))
FUNCTION = 1
files, crossings = set(), 0

@functools.cache
def path_in_layers(name):
    real = os.path.realpath(name)
    return real if real.startswith(OURS) else ""

def look(frame, event, _):
    global crossings
    if event == "call" and frame.f_code.co_flags & FUNCTION and (name := path_in_layers(frame.f_code.co_filename)):
        files.add(name)
        above = frame.f_back and path_in_layers(frame.f_back.f_code.co_filename)
        crossings += bool(above) and above != name

import numpy as np, pandas as pd
from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_verdicts
rng = np.random.default_rng(1)
frame = pd.DataFrame({"region": rng.choice(["n", "s"], 80), "age": rng.integers(18, 90, 80), "visits": rng.poisson(4, 80)})
workspace = Workspace.create(Path(sys.argv[3]) / "w", b"k" * 32)
sys.setprofile(look)
recipe = Recipe.from_toml(sys.argv[2])
run = enter_run(workspace, recipe, SourceFile("visits.csv", b"visits"), conform_to_schema(frame, recipe.schema))
run_worker(workspace.directory, idle=0)
assert [verdict.outcome for verdict in read_verdicts(workspace, run)]
sys.setprofile(None)
print(len(files), crossings)
"""

RECIPE = """
[variables]
region = { kind = "categorical", role = "quasi_identifier" }
age = { kind = "count", role = "quasi_identifier" }
visits = { kind = "count", role = "sensitive" }
[release]
m = 1
[[synthesis]]
target = "visits"
method = "linear_regression"
predictors = ["region", "age"]
[[measure]]
method = "risk.identification"
radius = { visits = 1 }
[[threshold]]
value = "risk.identification.true_match_rate"
max = 0.5
"""


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """A file as Python reads it; several figures look at each."""
    return ast.parse(path.read_text("utf-8"))


def modules(root: Path, layer: str) -> dict[str, Path]:
    """The files of a layer by the names that they are imported by."""
    found = {}
    for path in sorted((root / layer).rglob("*.py")):
        parts = ("sfumato", *path.relative_to(root).with_suffix("").parts)
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imports(name: str, path: Path, known: AbstractSet[str]) -> AbstractSet[str]:
    """The modules of ``known`` that a file names, wherever in it they stand."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            whole = [*base, *(node.module or "").split(".")] if node.module else base
            for alias in node.names:
                child = ".".join([*whole, alias.name])
                found.add(child if child in known else ".".join(whole))
    return found & known


def graph(root: Path, layer: str) -> dict[str, set[str]]:
    """Each room with those that it imports."""
    known = modules(root, layer)
    rooms = {name: name.split(".")[2] for name in known if name.count(".") >= 2}
    found: dict[str, set[str]] = {room: set() for room in rooms.values()}
    for name, room in rooms.items():
        found[room] |= {rooms[one] for one in imports(name, known[name], known.keys()) if one in rooms} - {room}
    return found


def floors(rooms: dict[str, set[str]]) -> int:
    """Rooms on the longest way down; 0 where there is a circle."""
    height: dict[str, int] = {}
    while len(height) < len(rooms):
        ready = [room for room, below in rooms.items() if room not in height and below <= height.keys()]
        if not ready:
            return 0
        height |= {room: 1 + max((height[one] for one in rooms[room]), default=0) for room in ready}
    return max(height.values())


def lines_of(path: Path) -> tuple[int, int]:
    """Lines, and how many of them import."""
    spent = 0
    for node in ast.walk(tree_of(path)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            spent += (node.end_lineno or node.lineno) - node.lineno + 1
    return path.read_text("utf-8").count("\n"), spent


def names_in(path: Path) -> list[str]:
    with path.open("rb") as file:
        return [one.string for one in tokenize.tokenize(file.readline) if one.type == tokenize.NAME]


def main() -> None:
    """Print a line each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")
    root = parser.parse_args().root
    print(f"{'':10} rooms floors arrows each other")
    for layer in LAYERS[:2]:
        rooms = graph(root, layer)
        each = sum(one < other and one in rooms[other] for one, below in rooms.items() for other in below)
        arrows = sum(map(len, rooms.values()))
        print(f"{layer:10} {len(rooms):5} {floors(rooms) or 'circle':>6} {arrows:6} {each:10}")
    paths = [path for layer in LAYERS for path in modules(root, layer).values()]
    counts = list(map(lines_of, paths))
    total, spent = (sum(column) for column in zip(*counts, strict=True))
    print(f"{len(paths)} files, {total:,} lines, median {median(n for n, _ in counts):.0f}; {spent / total:.1%} import")
    defined = Counter(
        node.name for path in paths for node in ast.walk(tree_of(path)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )  # fmt: skip
    named = Counter(name for path in paths for name in names_in(path))
    plain = [name for name, times in defined.items() if times == 1 and not re.match("__|on_|action_|watch_", name)]
    with tempfile.TemporaryDirectory() as folder:
        walked = subprocess.run(
            [sys.executable, "-c", WALK, str(root), RECIPE, folder], check=True, capture_output=True, text=True,
            env=os.environ | {"PYTHONPATH": str(root / ".ci" / "names")},
        )  # fmt: skip
    files, crossings = map(int, walked.stdout.split())
    print(f"recipe text to verdict: {files} files, {crossings:,} calls from one to another")
    print(
        f"{sum(defined.values()):,} functions; of {len(plain):,} with a name of their own {sum(named[one] == 2 for one in plain):,} are named in one other place"
    )


if __name__ == "__main__":
    main()
