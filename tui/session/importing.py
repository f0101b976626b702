"""Import of a file in a process of its own, and remarks on how its columns were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.errors import BadInput
from sfumato.workspace.errors import StrangeFile
from sfumato.workspace.ingest.columns import ColumnProfile
from sfumato.workspace.ingest.dialects import SettingReason, detect_text_format
from sfumato.workspace.ingest.files import text_head
from sfumato.workspace.ingest.limits import READ_SECONDS
from sfumato.workspace.jobs.processes import call_in_process
from sfumato.workspace.service.importing import (
    EVERYTHING,
    FilePreview,
    ImportOrQuestions,
    ImportResult,
    ImportSelection,
    import_file,
    import_or_ask,
    preview_file,
    preview_first_rows,
)
from sfumato.workspace.visible_text import replace_unprintable

LEAVE_OUT = "leave out"
"""Answer for a column that does not enter the project."""


def column_remarks(columns: Sequence[ColumnProfile]) -> list[str]:
    """Return what is open about columns and why some are left out, a line each, with the option that decides."""
    open_questions = [column for column in columns if column.is_included and column.question]
    out = [column for column in columns if not column.is_included]
    lines = [replace_unprintable(f"? {column.variable.name}: {column.question}") for column in open_questions]
    lines += [
        replace_unprintable(f"{column.variable.name}: left out; {', '.join(column.exclusion_reasons)}")
        for column in out
    ]
    if any(column.variable.role is Role.IDENTIFIER for column in out):
        lines.append("--keep COLUMN brings in one that is no identifier")
    return lines


def import_in_process(
    directory: Path,
    file: str,
    project: str,
    format_settings: Mapping[str, Any],
    selection: ImportSelection,
    with_rows: bool = False,
) -> ImportResult:
    """Import a file in a process of its own, within a time limit; ``with_rows`` as for ``import_file``.

    Raises BadInput and WorkspaceError; then nothing was stored.
    """
    return call_in_process(
        import_file,
        directory,
        file,
        project,
        format_settings,
        selection,
        with_rows,
        what=f'the import of "{file}"',
        seconds=READ_SECONDS,
    )


def preview_in_process(
    file: str,
    format_settings: Mapping[str, Any] | None = None,
    selection: ImportSelection = EVERYTHING,
    *,
    with_rows: bool = True,
) -> FilePreview:
    """Read how a file would be imported in a process of its own, with its first rows if wanted. Raises BadInput."""
    read = preview_first_rows if with_rows else preview_file
    # With a limit of time: a file may make its reader hang or crash.
    return call_in_process(
        read, file, format_settings, selection, what=f'the reading of "{file}"', seconds=READ_SECONDS
    )


def proposed_answer(column: ColumnProfile) -> str:
    """Return how a column is read unless its owner says otherwise, such as ``count`` or ``date:dd.mm.yyyy``."""
    form = column.variable.format
    if column.variable.role is Role.UNIT:
        return Role.UNIT.value
    return f"{column.variable.kind}:{form}" if form else str(column.variable.kind)


def plain_question(column: ColumnProfile) -> str:
    """Return what is open about a column, with answers in place of options of the command line."""
    name = column.variable.name
    text = column.question.replace(f"--as {name}=", "").replace(f"--leave-out {name}", LEAVE_OUT)
    return replace_unprintable(text.replace(f", or --keep {name} to have them", ", or keep the proposal to have them"))


def selection_from_answers(preview: FilePreview, answers: Mapping[str, Any]) -> ImportSelection:
    """Return the selection by answers of columns; an answer that was proposed changes nothing."""
    kinds, leave_out = list[str](), list[str]()
    for column in preview.asked_columns:
        name = column.variable.name
        answer = str(answers.get(name, "") or proposed_answer(column)).strip()
        if answer == LEAVE_OUT:
            leave_out.append(name)
        elif answer != proposed_answer(column):
            kinds.append(f"{name}={answer}")
    return ImportSelection(kinds=tuple(kinds), leave_out=tuple(leave_out))


def check_answer(preview: FilePreview, name: str, answer: str) -> str:
    """Return the answer for a column. Raises BadInput at the column where it is no kind."""
    try:
        selection_from_answers(preview, {name: answer}).select_columns(preview.columns)
    except BadInput:
        raise BadInput(
            name,
            f'"{answer}" is no kind: {", ".join(Kind)}, {Role.UNIT} of several records, a form such as date:dd.mm.yyyy, or {LEAVE_OUT}',
        ) from None
    return answer


def import_or_ask_in_process(
    directory: Path, file: str, project: str, format_settings: Mapping[str, Any] | None = None
) -> ImportOrQuestions:
    """Import a file in a process of its own, unless a column has a question.

    Raises BadInput and WorkspaceError; then nothing was stored.
    """
    return call_in_process(
        import_or_ask, directory, file, project, format_settings, what=f'the import of "{file}"', seconds=READ_SECONDS
    )


def find_fixed_widths(file: str) -> SettingReason | None:
    """Return the doubt that a text file has columns of fixed widths, with those that it shows; None for other files.

    Raises BadInput.
    """
    try:
        head = text_head(Path(file))
    except (OSError, StrangeFile):
        # a sheet of a workbook after a colon, or a file that the import refuses by its own message
        return None
    if not head.strip() or b"\0" in head[:2]:
        return None
    found = detect_text_format(head)
    doubts = (one for one in found.doubtful_settings if one.key == "widths")
    return next(doubts, None) if found.format.delimiter == " " else None
