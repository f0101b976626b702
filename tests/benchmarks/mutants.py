"""Which faults the tests see: python tests/benchmarks/mutants.py [--mutants 300] [--seed 1] [--rooms engine/matching ...] [--numbers 3 17 ...].

Each mutant is the checkout with one change at random: a number (one more, or twice), a comparison (its bound in or out, or the opposite),
or an arithmetic sign. The tests run on a copy in three stages, each up to the first test that fails: those nearest to the module (quick
ones first), the room's quick ones, and the room's slow ones. Each stage has a limit of time. A mutant that no test fails on has survived;
a few of these compute the same as before. A test that fails without the mutant too is left out.

Every mutant is a fork of a process that has loaded the libraries but nothing of the house.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("engine/adversary", "engine/matching", "engine/risk", "workspace/gate")
TESTS = {
    "engine/adversary": ("tests/engine/adversary", "tests/engine/risk", "tests/workspace/gate"),
    "engine/matching": ("tests/engine/matching", "tests/engine/risk"),
    "engine/risk": ("tests/engine/risk", "tests/contract"),
    "workspace/gate": ("tests/workspace/gate", "tests/workspace/release"),
}
"""Folders of tests that use a room, the nearest first."""
FURTHER = ("tests/attacks", "tests/engine", "tests/contract", "tests/workspace")
"""Folders in which further tests import a module of these rooms."""
NEAR_FILES = 8
"""Test modules that the first stage runs at most."""
STAGES = ("near", "quick", "slow")
LIMITS = {"near": 45.0, "quick": 60.0, "slow": 90.0}
"""Seconds after which a stage starts no further test."""
NO_END = 240.0
"""Seconds after its limit at which a stage is taken to have no end."""
LIBRARIES = (
    "numpy", "pandas", "scipy.stats", "scipy.optimize", "scipy.sparse", "scipy.spatial", "scipy.cluster.hierarchy",
    "sklearn.tree", "sklearn.ensemble", "sklearn.linear_model", "sklearn.model_selection", "statsmodels.api", "emcee",
    "pyarrow.parquet", "duckdb", "openpyxl", "loky", "tomlkit", "sqlite3", "asyncio", "difflib",
)  # fmt: skip
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

    @property
    def room(self) -> str:
        return next(room for room in ROOMS if self.path.startswith(room))

    def mutated(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        line = lines[self.line - 1].encode()
        lines[self.line - 1] = (line[: self.start] + self.new.encode() + line[self.end :]).decode()
        return "".join(lines)


def list_mutants(path: Path) -> Iterator[Mutant]:
    """Yield the changes of a file that stand on one line."""
    text = path.read_text("utf-8")
    lines = [line.encode() for line in text.splitlines()]
    name = str(path.relative_to(ROOT))

    def source_text(line: int, start: int, end: int) -> str:
        return lines[line - 1][start:end].decode()

    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.lineno == node.end_lineno:
            old = source_text(node.lineno, node.col_offset, node.end_col_offset or 0)
            new = str(node.value + 1) if isinstance(node.value, int) else str(2 * node.value or 1.0)
            yield Mutant(name, node.lineno, node.col_offset, node.end_col_offset or 0, old, new)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
            new = COMPARISONS[type(node.ops[0])]
            yield from operator_mutants(name, node.left, node.comparators[0], new, source_text)
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            yield from operator_mutants(name, node.left, node.right, ARITHMETIC[type(node.op)], source_text)


def operator_mutants(
    name: str, left: ast.expr, right: ast.expr, new: str, source_text: Callable[[int, int, int], str]
) -> Iterator[Mutant]:
    """Yield the change of the sign between two operands, where both stand on one line without brackets between them."""
    line, start, end = left.end_lineno or 0, left.end_col_offset or 0, right.col_offset
    if line == right.lineno:
        old = source_text(line, start, end)
        if not set(old) & set("()[]"):
            yield Mutant(name, line, start, end, old, f" {new} ")


def is_imported(module: str, text: str) -> bool:
    """Whether a file imports a module, named by its path: ``from sfumato.engine.risk.linkability``, ``from ._ties`` and the like."""
    package, _, stem = module.removesuffix(".py").replace("/", ".").rpartition(".")
    return (
        re.search(
            rf"\bsfumato\.{re.escape(package)}(\.{stem}\b|[\w.]* import [^\n]*\b{stem}\b)|from \.{stem} import|from \. import [^\n]*\b{stem}\b",
            text,
        )
        is not None
    )


def nearest_tests(path: str, root: Path) -> list[str]:
    """Return the test modules nearest to a module: those with its name, then those that import it or what imports it."""
    room = next(room for room in ROOMS if path.startswith(room))
    stem = Path(path).stem.strip("_")
    folders = dict.fromkeys([*TESTS[room], *FURTHER])
    files = list(dict.fromkeys(file for folder in folders for file in sorted(root.joinpath(folder).rglob("test_*.py"))))
    texts = {file: file.read_text("utf-8") for file in files}
    near = dict.fromkeys(file for file in files if stem in file.stem)
    near |= dict.fromkeys(file for file, text in texts.items() if is_imported(path, text))
    users = [
        str(file.relative_to(root))
        for file in sorted(root.joinpath(room).glob("*.py"))
        if is_imported(path, file.read_text("utf-8"))
    ]
    for user in users:
        if len(near) < NEAR_FILES:
            near |= dict.fromkeys(file for file in files if Path(user).stem.strip("_") in file.stem)
            near |= dict.fromkeys(file for file, text in texts.items() if is_imported(user, text))
    return [str(file.relative_to(root)) for file in near][:NEAR_FILES]


@dataclass(eq=False)
class FirstFailure:
    """Plugin of pytest: the quick tests come first, no test starts after the limit, and the first that fails is written to a file."""

    report: Path
    left_out: frozenset[str]
    limit: float
    start: float = field(default_factory=time.monotonic)
    seen: bool = False

    def write(self, node: str) -> None:
        if not self.seen:
            self.seen = True
            self.report.write_text(json.dumps(node), "utf-8")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid not in self.left_out),
            key=lambda item: item.get_closest_marker("quick") is None,
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.write(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.write(report.nodeid)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if time.monotonic() - self.start > self.limit:
            pytest.exit("limit", returncode=0)


class Checkout:
    """A copy of the checkout, on which tests run in forks of this process."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.root = scratch / "checkout"
        left_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".mypy_cache", ".hypothesis", ".ruff_cache")
        shutil.copytree(ROOT, self.root, symlinks=True, ignore=left_out)
        self.sound: set[str] = set()
        self.broken: set[str] = set()
        """Tests that pass, and that fail, without a mutant."""

    def write(self, path: str, text: str) -> None:
        """Write a module and forget what Python compiled of it: a change within a second keeps its time and may keep its size."""
        place = self.root / path
        place.write_text(text, "utf-8")
        for compiled in place.parent.joinpath("__pycache__").glob(f"{place.stem}.*"):
            compiled.unlink()

    def run(self, targets: list[str], marks: str, limit: float) -> str:
        """Return the first test of some files that fails; empty where none does."""
        report, temporary = self.scratch / "report.json", self.scratch / "tmp"
        report.unlink(missing_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        child = os.fork()
        if child == 0:
            self._run_in_child(targets, marks, limit, report, temporary)
        end = time.monotonic() + limit + NO_END
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < end:
            time.sleep(0.05)
        with_end = ended[0] != 0
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # the child leads a group of its own, with what its tests have started
        if not with_end:
            os.waitpid(child, 0)
            return f"{targets[0]} (no end)"
        if report.is_file():
            return str(json.loads(report.read_text("utf-8"))) or targets[0]
        code = os.waitstatus_to_exitcode(ended[1])
        return "" if code in (0, 5) else f"{targets[0]} (pytest ended with {code})"  # 5: no test was collected

    def _run_in_child(self, targets: list[str], marks: str, limit: float, report: Path, temporary: Path) -> None:
        code = 70
        try:
            os.setsid()
            quiet = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(quiet, stream)
            os.chdir(self.root)
            os.environ["TMPDIR"] = str(temporary)
            tempfile.tempdir = None
            plugin: Any = FirstFailure(report, frozenset(self.broken), limit)
            arguments = ["-x", "-q", "-p", "no:cacheprovider", f"--rootdir={self.root}", "-m", marks, *targets]
            code = int(pytest.main(arguments, plugins=[plugin]))
        finally:
            os._exit(code)

    def first_failure(self, mutant: Mutant, targets: list[str], marks: str, limit: float) -> str:
        """Return the first test that fails on a mutant and passes without it; empty where none does."""
        whole = self.root.joinpath(mutant.path).read_text("utf-8")
        while True:
            self.write(mutant.path, mutant.mutated(whole))
            try:
                node = self.run(targets, marks, limit)
            finally:
                self.write(mutant.path, whole)
            if not node or node.endswith("(no end)") or node in self.sound:
                return node
            without = self.run([node] if "::" in node else targets, marks, limit if "::" in node else 0)
            if not without:
                self.sound |= {node} if "::" in node else set()
                return node
            if node in self.broken or "::" not in node:  # files that cannot be collected stop every mutant
                raise SystemExit(f"{node} fails without a mutant: {without}")
            self.broken.add(node)
            print(f"     left out, for it fails without a mutant: {node}", flush=True)

    def killer(self, mutant: Mutant, stages: list[str]) -> tuple[str, str]:
        """Return the stage and the test that sees a mutant; both empty where none does."""
        for stage in stages:
            targets = nearest_tests(mutant.path, self.root) if stage == "near" else list(TESTS[mutant.room])
            marks = {"near": "quick or slow", "quick": "quick", "slow": "slow"}[stage]
            if targets and (node := self.first_failure(mutant, targets, marks, LIMITS[stage])):
                return stage, node
        return "", ""


def load_libraries(root: Path) -> None:
    """Load what every fork needs, and name the copy as the place of the house."""
    sys.path[:] = [str(root / ".ci" / "names"), *(path for path in sys.path if not path.endswith(".ci/names"))]
    os.environ |= {"PYTHONPATH": str(root / ".ci" / "names"), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    for name in LIBRARIES:
        importlib.import_module(name)
    loaded = [name for name in sys.modules if name.startswith("sfumato.")]
    assert not loaded, loaded


def main() -> None:
    """Try the mutants and print one line each, then the share that was seen in each room."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), choices=ROOMS)
    parser.add_argument("--numbers", nargs="+", type=int, help="of the sample, these mutants alone")
    parser.add_argument("--stages", nargs="+", default=list(STAGES), choices=STAGES)
    options = parser.parse_args()
    possible = [
        mutant
        for room in options.rooms
        for path in sorted(ROOT.joinpath(room).rglob("*.py"))
        for mutant in list_mutants(path)
    ]
    sample = random.Random(options.seed).sample(possible, min(options.mutants, len(possible)))
    seen: Counter[str] = Counter()
    every: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        checkout = Checkout(Path(scratch))
        load_libraries(checkout.root)
        for number, mutant in enumerate(sample, 1):
            if options.numbers and number not in options.numbers:
                continue
            start = time.monotonic()
            stage, node = checkout.killer(mutant, options.stages)
            every[mutant.room] += 1
            seen[mutant.room] += bool(node)
            change = f"{mutant.old.strip()!r} -> {mutant.new.strip()!r}"
            print(
                f"{number:4} {f'seen {stage}' if node else 'SURVIVED':10} {time.monotonic() - start:4.0f} s  "
                f"{mutant.path}:{mutant.line}:{mutant.start} {change}  {node}",
                flush=True,
            )
    for room in every:
        print(f"{room:18} {seen[room]:4} of {every[room]:4} seen, {seen[room] / every[room]:.0%}")
    print(f"{'all':18} {seen.total():4} of {every.total():4} seen, {seen.total() / every.total():.0%}")


if __name__ == "__main__":
    main()
