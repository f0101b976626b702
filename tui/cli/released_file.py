"""``sfumato evaluate --released FILE`` without the confidential file: what one anonymised file shows by itself."""

from __future__ import annotations

from collections.abc import Sequence

from .options import table_text, write_object
from .speech import echo


def show_released_file(
    file: str,
    recipe: str,
    known: Sequence[str],
    sensitive: Sequence[str],
    limits: tuple[int | None, float | None, float | None],
    json_file: str | None,
    *,
    quiet: bool,
) -> int:
    """Print what one file shows; return 0 where every limit (k, l, t) is met, else 1."""
    from sfumato.workspace.ingest.limits import READ_SECONDS
    from sfumato.workspace.jobs.processes import call_in_process
    from sfumato.workspace.reporting.released_file import (
        UNSEEN,
        AnonymityLimits,
        known_columns_table,
        limits_table,
        released_file_text,
        sensitive_columns_table,
    )
    from sfumato.workspace.service.released_file import evaluate_released_file

    view = call_in_process(
        evaluate_released_file,
        file,
        tuple(known),
        tuple(sensitive),
        AnonymityLimits(*limits),
        recipe,
        what=f'the reading of "{file}"',
        seconds=READ_SECONDS,
    )
    write_object(view.to_dict(), json_file, private=True)
    if json_file != "-" and not quiet:
        parts = [released_file_text(view), table_text(known_columns_table(view))]
        parts += [table_text(sensitive_columns_table(view))] if view.found.sensitive else []
        parts += [table_text(limits_table(view))] if view.verdicts else []
        echo("\n\n".join([*parts, UNSEEN]))
    return 0 if view.are_limits_met else 1
