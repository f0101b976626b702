"""Command lines equivalent to what was done in the app: quoted for a shell and complete with the workspace."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.engine.wording import count_noun
from sfumato.workspace.jobs.settings import dask_address, memory_setting

Words = tuple[str, ...]
"""A command without ``sfumato`` and ``--workspace``: ``("run", "survey.toml", "--alone")``."""
THEN = ("&&",)
"""Between two commands of which the second needs the first."""
MOST_REMEMBERED = 200
"""Number of remembered acts; one more removes the oldest."""


def command_text(directory: Path, words: Sequence[str]) -> str:
    """Return the command as a user types it in a shell."""
    commands: list[list[str]] = [[]]
    for word in words:
        # Both commands get the workspace.
        if (word,) == THEN:
            commands.append([])
        else:
            commands[-1].append(word)
    return " && ".join(
        shlex.join(["sfumato", *command, "--workspace", str(directory.absolute())]) for command in commands
    )


def whole_path(file: str) -> str:
    """Return the absolute path of an existing file; other text, such as the name of a shipped recipe, unchanged."""
    path = Path(file).expanduser()
    return str(path.absolute()) if path.exists() else file


def reading_options(format_settings: Mapping[str, Any] | None) -> Words:
    """Return the options of ``import`` for the settings of a file's format."""
    words: list[str] = []
    for key, value in (format_settings or {}).items():
        option = f"--{key.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(option if value else f"--no-{key}")
        elif isinstance(value, (list, tuple)):
            words += [f"{option}={one}" for one in value]
        elif value not in ("", None):
            words.append(f"{option}={value}")
    return tuple(words)


def computing_options() -> Words:
    """Return the options of the commands that start runs: where runs are computed and with how much memory."""
    address, memory = dask_address(), memory_setting()
    return (*(("--dask", address) if address else ()), *(("--memory", memory) if memory else ()))


def change_text(lines: Sequence[str]) -> str:
    """Return an edit on one line: the changed line, or the number of lines."""
    added, removed = ([line[2:] for line in lines if line[0] == sign] for sign in "+-")
    if len(added) == 1 and len(removed) <= 1:
        return f"{added[0]}" + (f"   (was {removed[0]})" if removed else "   (new)")
    if len(removed) == 1 and not added:
        return f"without {removed[0]}"
    return f"{count_noun(len(added), 'line')} in, {len(removed)} out" if lines else ""
