"""Evaluation of one released file in a process of its own, and the command that does the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .command_lines import Words, whole_path

if TYPE_CHECKING:
    from sfumato.workspace.reporting.released_file import AnonymityLimits, ReleasedFileView


def released_columns_in_process(file: str) -> dict[str, tuple[str, ...]]:
    """Return the columns of a released file, each with its first values. Raises BadInput."""
    from sfumato.workspace.ingest.limits import READ_SECONDS
    from sfumato.workspace.jobs.processes import call_in_process
    from sfumato.workspace.service.released_file import released_file_columns

    # A process can be ended where a file makes its reader hang; a thread cannot.
    return call_in_process(released_file_columns, file, what=f'the reading of "{file}"', seconds=READ_SECONDS)


def evaluate_in_process(
    file: str, known: Sequence[str], sensitive: Sequence[str], limits: AnonymityLimits, recipe: str = ""
) -> ReleasedFileView:
    """Evaluate one released file, within a time limit. Raises BadInput."""
    from sfumato.workspace.ingest.limits import READ_SECONDS
    from sfumato.workspace.jobs.processes import call_in_process
    from sfumato.workspace.service.released_file import evaluate_released_file

    return call_in_process(
        evaluate_released_file,
        file,
        tuple(known),
        tuple(sensitive),
        limits,
        recipe,
        what=f'the reading of "{file}"',
        seconds=READ_SECONDS,
    )


def released_file_words(view: ReleasedFileView) -> Words:
    """Return the words of the command that shows the same as a view."""
    known = [word for one in view.found.known for word in ("--known", _quoted_name(one.name))]
    sensitive = [word for one in view.found.sensitive for word in ("--sensitive", _quoted_name(one.name))]
    limits = (("-k", view.limits.k), ("-l", view.limits.l), ("-t", view.limits.t))
    options = [word for option, value in limits if value is not None for word in (option, f"{value:g}")]
    return ("evaluate", "--released", whole_path(view.file), *known, *sensitive, *options)


def _quoted_name(name: str) -> str:
    """Return a name as an option takes it: in quotes where it has a comma or quotes."""
    return f'"{name.replace(chr(34), chr(34) * 2)}"' if "," in name or '"' in name else name
