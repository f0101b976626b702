"""Which faults the tests see: python tests/benchmarks/mutants.py [--mutants 300] [--seed 1] [--rooms engine/matching ...] [--numbers 3 17 ...].

Each mutant is the checkout with one change at random: a number (one more, or twice), a comparison (its bound in or out, or the opposite),
or an arithmetic sign. The tests run on a copy in three stages, each up to the first test that fails: the quick ones nearest to the
module, the room's other quick ones, and the slow ones, the nearest first. Each stage has a limit of time. A mutant that no test fails on has survived;
a few of these compute the same as before. A test that fails without the mutant too is left out.

All tests are collected once. Each mutant is a fork of that process, in which the code of the changed function is exchanged; a mutant of
what is computed when a module is loaded has a process of its own.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import importlib
import inspect
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

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


class Checkout:
    """A copy of the checkout, on which mutants are tried."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.root = scratch / "checkout"
        left_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".mypy_cache", ".hypothesis", ".ruff_cache")
        shutil.copytree(ROOT, self.root, symlinks=True, ignore=left_out)

    def write(self, path: str, text: str) -> None:
        """Write a module and forget what Python compiled of it: a change within a second keeps its time and may keep its size."""
        place = self.root / path
        place.write_text(text, "utf-8")
        for compiled in place.parent.joinpath("__pycache__").glob(f"{place.stem}.*"):
            compiled.unlink()

    @contextlib.contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """Have the mutant in the module's file, where the processes that tests start read it."""
        whole = self.root.joinpath(mutant.path).read_text("utf-8")
        self.write(mutant.path, mutant.mutated(whole))
        try:
            yield
        finally:
            self.write(mutant.path, whole)

    def fork(self, work: Callable[[], str], seconds: float) -> str:
        """Return what ``work`` returns in a fork of this process: the first test that fails, or nothing; ``NO_END`` seconds late it is killed."""
        report, temporary = self.scratch / f"report-{os.getpid()}", self.scratch / f"tmp-{os.getpid()}"
        report.unlink(missing_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                quiet = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(quiet, stream)
                os.environ["TMPDIR"], tempfile.tempdir = str(temporary), None
                report.write_text(work(), "utf-8")
            finally:
                os._exit(0)
        end = time.monotonic() + seconds + NO_END
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return "(no end)"
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what its tests have started and left
        return report.read_text("utf-8") if report.is_file() else "(the process ended)"


def outer_functions(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """Return the functions of a module and of its classes, by name and line, without those inside of functions."""
    found: dict[tuple[str, int], CodeType] = {}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_flags & inspect.CO_NEWLOCALS:
                found[inner.co_qualname, inner.co_firstlineno] = inner
            else:  # the body of a class
                found |= outer_functions(inner)
    return found


def changed_functions(before: str, after: str, name: str) -> dict[tuple[str, int], CodeType] | None:
    """Return the functions in which two texts of a module differ; None if they differ outside of functions."""
    tree = ast.parse(after)
    first, second = (outer_functions(compile(text, name, "exec")) for text in (before, after))
    changed = {key: code for key, code in second.items() if code != first.get(key)}

    def dump_module_level(text: ast.Module) -> str:
        """Return what is computed when the module is loaded: all but the bodies of functions."""
        for node in ast.walk(text):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                node.body = [ast.Pass()]
        return ast.dump(text)

    return changed if changed and dump_module_level(ast.parse(before)) == dump_module_level(tree) else None


class Session:
    """Plugin of pytest: all tests are collected once, and each mutant is tried in a fork that changes the code of its functions.

    A mutant of what is computed when its module is loaded is tried in a process of its own.
    """

    def __init__(
        self, checkout: Checkout, near: dict[str, list[str]], tried: list[tuple[int, Mutant]], stages: list[str]
    ) -> None:
        self.checkout, self.near, self.tried, self.stages = checkout, near, tried, stages
        self.items: list[pytest.Item] = []
        self.functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        self.sound: set[str] = set()
        self.broken: set[str] = set()
        """Tests that pass, and that fail, without a mutant."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try the mutants in place of the tests."""
        capture: Any = session.config.pluginmanager.getplugin("capturemanager")
        capture.suspend_global_capture(in_=True)
        self.items = session.items
        self.index_functions()
        seen: Counter[str] = Counter()
        every: Counter[str] = Counter()
        print(f"{len(self.items)} tests, {len(self.tried)} mutants", flush=True)
        for number, mutant in self.tried:
            start = time.monotonic()
            found = self.killer(mutant, self.stages)
            stage, node = (
                try_anew(self.checkout, mutant, self.near[mutant.path], self.stages) if found is None else found
            )
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
        print(f"{'all':18} {seen.total():4} of {every.total():4} seen, {seen.total() / every.total():.0%}", flush=True)
        return True

    def index_functions(self) -> None:
        """Note the functions of the house by file, name and line."""
        gc.unfreeze()
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and thing.__module__ and thing.__module__.startswith("sfumato."):
                code = thing.__code__
                place = str(Path(code.co_filename).resolve())
                self.functions.setdefault((place, code.co_qualname, code.co_firstlineno), []).append(thing)
        gc.freeze()

    def find_failing_test(self, items: list[pytest.Item], limit: float) -> str:
        """Return the first of some tests that fails; empty where none does before the limit."""
        end = time.monotonic() + limit
        for item, following in zip(items, [*items[1:], None], strict=True):
            if time.monotonic() > end:
                return ""
            if any(report.failed for report in runtestprotocol(item, nextitem=following, log=False)):
                return item.nodeid
        return ""

    def staged(self, stage: str, mutant: Mutant) -> list[pytest.Item]:
        """Return the tests of a stage in their order."""
        near = {name: at for at, name in enumerate(self.near[mutant.path])}

        def place(item: pytest.Item) -> str:
            return item.nodeid.partition("::")[0]

        def is_quick(item: pytest.Item) -> bool:
            return item.get_closest_marker("quick") is not None

        items = [item for item in self.items if item.nodeid not in self.broken and is_quick(item) != (stage == "slow")]
        folders = TESTS[mutant.room]
        nearest = sorted((item for item in items if place(item) in near), key=lambda item: near[place(item)])
        others = [item for item in items if place(item) not in near and place(item).startswith(folders)]
        others.sort(key=lambda item: next(at for at, name in enumerate(folders) if place(item).startswith(name)))
        return {"near": nearest, "quick": others, "slow": nearest + others}[stage]

    def killer(self, mutant: Mutant, stages: list[str]) -> tuple[str, str] | None:
        """Return the stage and the test that sees a mutant, both empty where none does; None if its module has to be loaded anew."""
        place = self.checkout.root / mutant.path
        before = place.read_text("utf-8")
        changed = changed_functions(before, mutant.mutated(before), str(place))
        if changed is None:
            return None
        targets = [(f, code) for key, code in changed.items() for f in self.functions.get((str(place), *key), [])]
        if not targets:
            return None

        def with_mutant(items: list[pytest.Item], limit: float) -> str:
            for function, code in targets:
                function.__code__ = code
            return self.find_failing_test(items, limit)

        for stage in stages:
            while items := self.staged(stage, mutant):
                with self.checkout.mutated(mutant):
                    node = self.checkout.fork(partial(with_mutant, items, LIMITS[stage]), LIMITS[stage])
                if not node:
                    break
                if node in self.sound or node.startswith("("):
                    return stage, node
                alone = [item for item in self.items if item.nodeid == node]
                if not self.checkout.fork(partial(self.find_failing_test, alone, NO_END), NO_END):
                    self.sound.add(node)
                    return stage, node
                self.broken.add(node)
                print(f"     left out, for it fails without a mutant: {node}", flush=True)
        return "", ""


def try_anew(checkout: Checkout, mutant: Mutant, targets: list[str], stages: list[str]) -> tuple[str, str]:
    """Try a mutant in a process of its own, for what is computed when its module is loaded: on the nearest tests, then on the room's."""
    for stage in stages:
        places = list(TESTS[mutant.room]) if stage == "quick" else targets
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *places]
        marks = "slow" if stage == "slow" else "quick"
        with checkout.mutated(mutant):
            try:
                done = subprocess.run(
                    [*command, "-m", marks], cwd=checkout.root, capture_output=True, check=False, text=True,
                    timeout=LIMITS["near"] + NO_END,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                continue
        if done.returncode not in (0, 5):  # 5: no test was collected
            failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
            return stage, failed[1] if failed else f"(pytest ended with {done.returncode})"
    return "", ""


def load_libraries(root: Path) -> None:
    """Load what the tests need, and name the copy as the place of the house."""
    sys.path[:] = [str(root / ".ci" / "names"), *(path for path in sys.path if not path.endswith(".ci/names"))]
    os.environ |= {"PYTHONPATH": str(root / ".ci" / "names"), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    for name in LIBRARIES:
        importlib.import_module(name)


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
    tried = [(at, one) for at, one in enumerate(sample, 1) if not options.numbers or at in options.numbers]
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        checkout = Checkout(Path(scratch))
        load_libraries(checkout.root)
        os.chdir(checkout.root)
        near = {path: nearest_tests(path, checkout.root) for path in {mutant.path for _, mutant in tried}}
        folders = {folder for _, mutant in tried for folder in TESTS[mutant.room]}
        if options.stages == ["near"]:
            folders = set()
        files = {name for names in near.values() for name in names if not name.startswith(tuple(folders))}
        session = Session(checkout, near, tried, options.stages)
        marks = "quick or slow" if "slow" in options.stages else "quick"
        arguments = [
            "-q",
            "-p",
            "no:cacheprovider",
            f"--rootdir={checkout.root}",
            "-m",
            marks,
            *sorted(folders | files),
        ]
        pytest.main(arguments, plugins=[session])


if __name__ == "__main__":
    main()
