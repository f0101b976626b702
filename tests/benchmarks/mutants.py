"""Which faults the tests see: python tests/benchmarks/mutants.py [--mutants 300] [--seed 1] [--rooms engine/matching ...] [--slow].

Each mutant is the checkout with one change at random: a number (one more, or twice), a comparison (its bound in or out, or the opposite),
an arithmetic sign, or a factor left out. The tests of its room run on a copy, those that share its module's name first, up to the first
that fails. A mutant that no test fails on has survived; a few of these compute the same as before.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("engine/adversary", "engine/matching", "engine/risk", "workspace/gate")
TESTS = {
    "engine/adversary": ("tests/engine/adversary", "tests/engine/risk", "tests/workspace/gate"),
    "engine/matching": ("tests/engine/matching", "tests/engine/risk"),
    "engine/risk": ("tests/engine/risk", "tests/contract"),
    "workspace/gate": ("tests/workspace/gate", "tests/workspace/release"),
}
"""Folders of tests that use a room, the nearest first."""
COMPARISONS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}


@dataclass(frozen=True)
class Mutant:
    """One change of a file: ``old`` on line ``line`` (from 1) between columns ``start`` and ``end`` becomes ``new``."""

    path: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def apply(self, root: Path) -> None:
        place = root / self.path
        lines = place.read_text("utf-8").splitlines(keepends=True)
        text = lines[self.line - 1].encode()
        lines[self.line - 1] = (text[: self.start] + self.new.encode() + text[self.end :]).decode()
        place.write_text("".join(lines), "utf-8")


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield the changes of a file that stand on one line, outside annotations and declarations of methods."""
    text = path.read_text("utf-8")
    lines = [line.encode() for line in text.splitlines()]
    name = str(path.relative_to(ROOT))

    def cut(line: int, start: int, end: int) -> str:
        return lines[line - 1][start:end].decode()

    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.lineno == node.end_lineno:
            old = cut(node.lineno, node.col_offset, node.end_col_offset or 0)
            new = str(node.value + 1) if isinstance(node.value, int) else str(2 * node.value or 1.0)
            yield Mutant(name, node.lineno, node.col_offset, node.end_col_offset or 0, old, new)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
            yield from between(name, node.left, node.comparators[0], COMPARISONS[type(node.ops[0])], cut)
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            yield from between(name, node.left, node.right, ARITHMETIC[type(node.op)], cut)


def between(name: str, left: ast.expr, right: ast.expr, new: str, cut: object) -> Iterator[Mutant]:
    """Yield the change of the sign between two operands, where both stand on one line without brackets between them."""
    line, start, end = left.end_lineno or 0, left.end_col_offset or 0, right.col_offset
    if line == right.lineno:
        old = cut(line, start, end)  # type: ignore[operator]
        if not set(old) & set("()[]"):
            yield Mutant(name, line, start, end, old, f" {new} ")


def test_files(mutant: Mutant, root: Path) -> list[list[str]]:
    """Return the tests to run, one list after the other: files of the module's name, then each folder."""
    room = next(room for room in TESTS if mutant.path.startswith(room))
    stem = Path(mutant.path).stem.strip("_")
    named = [
        str(path.relative_to(root))
        for folder in TESTS[room]
        for path in root.joinpath(folder).rglob(f"test_*{stem}*.py")
    ]
    return [files for files in (named, *([folder] for folder in TESTS[room])) if files]


def is_killed(mutant: Mutant, root: Path, marks: str) -> str:
    """Return the tests that see a mutant; empty where none does."""
    environment = os.environ | {"PYTHONPATH": str(root / ".ci" / "names"), "OPENBLAS_NUM_THREADS": "1"}
    for files in test_files(mutant, root):
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", marks, *files]
        try:
            done = subprocess.run(command, cwd=root, env=environment, capture_output=True, check=False, timeout=900)
        except subprocess.TimeoutExpired:
            return f"{files[0]} (no end)"
        if done.returncode not in (0, 5):  # 5: no test was collected
            return files[0]
    return ""


def main() -> None:
    """Try the mutants and print one line each, then the share that was seen in each room."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), choices=ROOMS)
    parser.add_argument("--slow", action="store_true", help="run slow tests too")
    options = parser.parse_args()
    marks = "quick or slow" if options.slow else "quick"
    found = [
        mutant
        for room in options.rooms
        for path in sorted(ROOT.joinpath(room).rglob("*.py"))
        for mutant in mutants_of(path)
    ]
    tried = random.Random(options.seed).sample(found, min(options.mutants, len(found)))
    seen: Counter[str] = Counter()
    every: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        root = Path(scratch) / "checkout"
        shutil.copytree(
            ROOT,
            root,
            symlinks=True,
            ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", ".mypy_cache", ".hypothesis"),
        )
        for number, mutant in enumerate(tried, 1):
            whole = (root / mutant.path).read_text("utf-8")
            mutant.apply(root)
            by = is_killed(mutant, root, marks)
            (root / mutant.path).write_text(whole, "utf-8")
            room = next(room for room in TESTS if mutant.path.startswith(room))
            every[room] += 1
            seen[room] += bool(by)
            print(
                f"{number:4} {'seen' if by else 'SURVIVED':8} {mutant.path}:{mutant.line} {mutant.old.strip()!r} -> {mutant.new.strip()!r}  {by}",
                flush=True,
            )
    for room in every:
        print(f"{room:18} {seen[room]:4} of {every[room]:4} seen, {seen[room] / every[room]:.0%}")
    print(f"{'all':18} {seen.total():4} of {every.total():4} seen, {seen.total() / every.total():.0%}")


if __name__ == "__main__":
    main()
