"""The command lines that equal what was done in the app, or what it shows: quoted for a shell, and complete with the workspace."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.engine.wording import count_noun
from sfumato.workspace.jobs.settings import dask_address, memory_given

Words = tuple[str, ...]
"""A command without ``sfumato`` and ``--workspace``: ``("run", "survey.toml", "--alone")``."""
THEN = ("&&",)
"""Between two commands of which the second needs the first."""
REMEMBERED = 200
"""So many acts are remembered; with one more the first goes."""


def command_text(directory: Path, words: Sequence[str]) -> str:
    """The command as it is typed: what is asked of a command that begins with ``THEN`` in between is asked of both."""
    commands: list[list[str]] = [[]]
    for word in words:
        if (word,) == THEN:
            commands.append([])
        else:
            commands[-1].append(word)
    return " && ".join(
        shlex.join(["sfumato", *command, "--workspace", str(directory.absolute())]) for command in commands
    )


def whole_path(file: str) -> str:
    """A file by its whole path, so that the command works elsewhere too; the name of what is no file as it is."""
    path = Path(file).expanduser()
    return str(path.absolute()) if path.exists() else file


def reading_options(said: Mapping[str, Any] | None) -> Words:
    """What was said of how a file is read as options of ``import``."""
    words: list[str] = []
    for key, value in (said or {}).items():
        option = f"--{key.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(option if value else f"--no-{key}")
        elif isinstance(value, (list, tuple)):
            words += [f"{option}={one}" for one in value]
        elif value not in ("", None):
            words.append(f"{option}={value}")
    return tuple(words)


def computing_options() -> Words:
    """Where runs are computed, as options of the commands that start them."""
    address, memory = dask_address(), memory_given()
    return (*(("--dask", address) if address else ()), *(("--memory", memory) if memory else ()))


def changed_lines(before: str, after: str) -> list[str]:
    """The lines of a recipe that an edit took out and put in: ``- minbucket = 50``, ``+ minbucket = 5``."""
    compared = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [f"{line[0]} {line[1:].strip()}" for line in list(compared)[2:] if line[0] in "+-" and line[1:].strip()]


def change_text(lines: Sequence[str]) -> str:
    """An edit in one line: the line that it made in place of another, or how many lines."""
    added, removed = ([line[2:] for line in lines if line[0] == sign] for sign in "+-")
    if len(added) == 1 and len(removed) <= 1:
        return f"{added[0]}" + (f"   (was {removed[0]})" if removed else "   (new)")
    if len(removed) == 1 and not added:
        return f"without {removed[0]}"
    return f"{count_noun(len(added), 'line')} in, {len(removed)} out" if lines else ""
