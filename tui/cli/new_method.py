"""Command ``sfumato new-method``: a package with a method, or a method in the checkout that this program runs from."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from sfumato import engine
from sfumato.engine.contract.own_skeletons import example_entry, manual_entry, own_skeleton
from sfumato.engine.contract.skeletons import make_skeleton

_TOP = Path(engine.__file__).resolve().parents[1]
_METHODS = Path("workspace/manual/methods.md")
_EXAMPLES = Path("tests/contract/examples.toml")
_RATES = Path("engine/methods/measured_rates.py")
_RATES_SCRIPT = "tests/benchmarks/task_rates.py"
_NO_RATE_AFTER = 300
"""Seconds after which a method whose tasks are measured counts as one that hangs."""


def is_own_checkout(directory: Path) -> bool:
    """Return whether a directory is the checkout that this program runs from: sources, with the tests beside them."""
    return directory.resolve() == _TOP and (_TOP / _RATES_SCRIPT).is_file()


def write_package(key: str, directory: Path) -> list[str]:
    """Write a package with a new method, and return its paths. Raises BadInput and UsageError."""
    files = make_skeleton(key)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise click.UsageError(f'"{directory}" is not empty; name a new directory')
    _write(files, directory)
    return list(files)


def write_own_method(key: str) -> list[str]:
    """Add a new method to the checkout; return the paths that were written or changed. Raises BadInput and UsageError."""
    files = own_skeleton(key)
    taken = [path for path in files if (_TOP / path).exists()]
    if taken:
        raise click.UsageError(f'"{taken[0]}" is there already; choose another name or delete it')
    changed = {str(_METHODS): _with_entry((_TOP / _METHODS).read_text("utf-8"), key)}
    if example := example_entry(key):
        changed[str(_EXAMPLES)] = f"{(_TOP / _EXAMPLES).read_text('utf-8')}\n{example}"
    _write({**files, **changed}, _TOP)
    # Each in a process of its own: this one has listed the methods already.
    _run_python("-m", "ruff", "check", "--quiet", "--fix-only", "--select", "I,F401", *files)
    _run_python("-m", "ruff", "format", "--quiet", *files)
    _run_python("-m", "sfumato.tui.cli.manual_blocks", "--write")
    _run_python(
        _RATES_SCRIPT, "--method", key, "--seconds", "0.5", "--write"
    )  # the method is to be replaced, and measured again
    return [*files, *changed, str(_RATES)]


def _write(files: Mapping[str, str], directory: Path) -> None:
    """Write files by their paths below a directory."""
    for path, text in files.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def _with_entry(manual: str, key: str) -> str:
    """Return the page of methods with the entry of a new one, in the order of names within its family."""
    family = key.partition(".")[0]
    marks = [
        found
        for found in re.finditer(r"<!-- generated: method (\S+) -->\n", manual)
        if found[1].startswith(f"{family}.")
    ]
    later = next((found.start() for found in marks if found[1] > key), None)
    if later is None:  # after the last of the family: before the next heading of a chapter, or at the end
        chapter = re.compile(r"^## ", re.MULTILINE).search(manual, marks[-1].end())
        later = chapter.start() if chapter else len(manual)
        manual = manual if chapter else f"{manual.rstrip()}\n\n"
        later = later if chapter else len(manual)
    return f"{manual[:later]}{manual_entry(key)}{manual[later:]}".rstrip() + "\n"


def _run_python(*words: str) -> None:
    """Run a Python program in the checkout. Raises UsageError with what it printed where it fails."""
    try:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=_TOP,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(_import_places())},
            capture_output=True,
            text=True,
            check=False,
            timeout=_NO_RATE_AFTER,
        )
    except subprocess.TimeoutExpired as error:
        raise click.UsageError(f"{' '.join(words)} took more than {_NO_RATE_AFTER} seconds") from error
    if done.returncode:
        raise click.UsageError(f"{' '.join(words)} failed: {(done.stderr or done.stdout).strip()[-500:]}")


def _import_places() -> Iterable[str]:
    """Yield the folders in which the packages are found under their names, before those of the caller."""
    yield str(_TOP / ".ci" / "names")
    if given := os.environ.get("PYTHONPATH"):
        yield given
