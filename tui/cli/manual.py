"""``sfumato help``: a page of the manual, a section of one, or the sections that hold some words."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import click

from .completion import topics
from .speech import echo, page

if TYPE_CHECKING:
    from sfumato.workspace.manual import Entry

PIPE_WIDTH = 100
UNDERLINES = {"title": "=", "heading": "-"}


@click.command("help")
@click.argument("topic", nargs=-1, shell_complete=topics)
@click.option("--find", is_flag=True, help="List the sections that answer the words best.")
def manual(topic: tuple[str, ...], *, find: bool) -> None:
    """Show the manual, or search it.

    TOPIC is a page, a command, a method or a key: sfumato help audit verify. Without TOPIC it lists the
    pages. A long page opens in your pager; q leaves it.
    """
    words = " ".join(topic)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH
    if find:
        echo(hits_text(words, width))
    elif words:
        page(topic_text(words, width))
    else:
        echo(contents_text(width))


def contents_text(width: int) -> str:
    from sfumato.workspace.manual import DEVELOPER_TOPICS, TOPICS, summary
    from sfumato.workspace.reporting.tables import table, text

    from ..manual.manual_text import plain

    found = text(table(("page", "what it is about"), [[topic, plain(summary(topic))] for topic in TOPICS]), width)
    return (
        f"{found}\n\n"
        f"for developers:  sfumato help {DEVELOPER_TOPICS[0]}\n"
        "sfumato help PAGE, COMMAND, METHOD or KEY shows it: sfumato help audit verify\n"
        "sfumato help --find WORDS searches all pages:       sfumato help --find waive a finding"
    )


def hits_text(words: str, width: int) -> str:
    """The sections that answer the words best: page, heading, the words that it lacks, best lines. Raises BadInput."""
    import textwrap

    from sfumato.workspace.manual.search import find

    from ..manual.manual_text import plain

    hits = find(words)
    parts = []
    for hit in hits:
        lines = [
            textwrap.fill(
                plain(line), min(width, PIPE_WIDTH), initial_indent="    ", subsequent_indent="    ", max_lines=3
            )
            for line in hit.lines
        ]
        lacks = f" (without: {', '.join(hit.lacks)})" if hit.lacks else ""
        parts.append("\n".join([f"{hit.section.page}: {hit.section.title}{lacks}", *lines]))
    return "\n\n".join([*parts, f"To read the first: sfumato help {hits[0].section.path}"])


def topic_text(topic: str, width: int) -> str:
    """A page or section, and the names of both where a command is called like a page. Raises BadInput."""
    from sfumato.engine.errors import BadInput
    from sfumato.engine.methods.protocols import method_keys
    from sfumato.workspace.manual import look_up

    try:
        entry = look_up(topic)
    except BadInput:
        if topic not in method_keys():
            raise
        from .catalogue import method_page

        return method_page(topic)  # of a package whose methods the manual cannot know
    return "\n".join(_lines(entry, width))


def _lines(entry: Entry, width: int) -> list[str]:
    from ..manual.manual_text import page_lines

    lines: list[str] = []
    for line in page_lines(entry.text, width):
        lines.append(line.text)
        if line.kind in UNDERLINES:
            lines.append(UNDERLINES[line.kind] * len(line.text))
    part_of = "" if entry.section is None else entry.section.path if entry.term else entry.page
    more = [path for path in (part_of, *entry.also) if path]
    return [*lines, *[""] * bool(more), *(f"See also: sfumato help {path}" for path in more)]
