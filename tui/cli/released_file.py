"""``sfumato evaluate --released FILE`` without the confidential file: what one anonymised file shows by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .options import table_text, write_object
from .outputs import internal_remark
from .speech import echo


def show_released_file(
    file: str,
    recipe: str,
    known: Sequence[str],
    sensitive: Sequence[str],
    limits: tuple[int | None, float | None, float | None],
    json_file: str | None,
    page: tuple[Path | None, bool],
    *,
    quiet: bool,
) -> int:
    """Print what one file shows; return 0 where every limit (k, l, t) is met, else 1.

    ``page`` is a file for the page about it, if one is wanted, and whether that replaces a file that is there.
    """
    from sfumato.engine.wording import count_noun
    from sfumato.workspace.reporting.released_file import (
        UNSEEN,
        AnonymityLimits,
        limits_sentence,
        released_file_sentences,
        released_file_tables,
    )
    from sfumato.workspace.service.released_file import check_page_path, write_released_file_page

    from ..session.released_file import evaluate_in_process

    path, force = page
    if path is not None:
        check_page_path(path, force=force)
    view = evaluate_in_process(file, known, sensitive, AnonymityLimits(*limits), recipe)
    write_object(view.to_dict(), json_file, private=True)
    if json_file != "-" and not quiet:
        tables = map(table_text, released_file_tables(view))
        echo("\n\n".join(["\n".join([*released_file_sentences(view), limits_sentence(view)]), *tables, UNSEEN]))
    if path is not None:
        size = write_released_file_page(view, path, force=force)
        if json_file != "-" and not quiet:
            echo(f"\npage written to {path} ({count_noun(size, 'byte')}){internal_remark(public=False)}")
    return 0 if view.are_limits_met else 1
