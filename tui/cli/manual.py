"""Command ``sfumato help``: a page of the manual, a section of one, or a search for sections."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from .completion import complete_topics
from .options import JSON, check_writable, write_object
from .speech import echo, print_paged

if TYPE_CHECKING:
    from sfumato.workspace.manual import ManualEntry

PIPE_WIDTH = 100
UNDERLINES = {"title": "=", "heading": "-"}


@click.command("help")
@click.argument("topic", nargs=-1, shell_complete=complete_topics)
@click.option("--find", is_flag=True, help="List the sections that answer the words best.")
@JSON
def manual(topic: tuple[str, ...], json_file: str | None, *, find: bool) -> None:
    """Show the manual, or search it.

    TOPIC is a page, a command, a method or a key: sfumato help audit verify. Without TOPIC it lists the
    pages. A long page opens in your pager; q leaves it.
    """
    words = " ".join(topic)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH
    check_writable(json_file)
    if json_file is not None:
        write_object(manual_object(words, find=find), json_file)
    if json_file == "-":
        return
    if find:
        echo(search_hits_text(words, width))
    elif words:
        print_paged(manual_topic_text(words, width))
    else:
        echo(manual_contents_text(width))


def manual_object(words: str, *, find: bool) -> dict[str, Any]:
    """Return what ``sfumato help`` shows as an object: the sections found, a page, or the list of pages.

    Raises BadInput.
    """
    from sfumato.workspace.manual import DEVELOPER_TOPICS, TOPICS, page_summary
    from sfumato.workspace.manual.search import search_manual

    from ..manual.manual_text import strip_markdown

    if find:
        return {
            "sections": [
                {
                    "page": hit.section.page,
                    "title": hit.section.title,
                    "lines": [strip_markdown(line) for line in hit.lines],
                    "without": list(hit.missing_words),
                    "help": hit.section.help_path,
                }
                for hit in search_manual(words)
            ]
        }
    if words:
        return {"topic": words, "text": manual_topic_text(words, PIPE_WIDTH)}
    pages = {"pages": TOPICS, "for_developers": DEVELOPER_TOPICS}
    return {
        name: [{"page": topic, "about": strip_markdown(page_summary(topic))} for topic in topics]
        for name, topics in pages.items()
    }


def manual_contents_text(width: int) -> str:
    """Return the list of the manual's pages with what each is about."""
    from sfumato.workspace.manual import DEVELOPER_TOPICS, TOPICS, page_summary
    from sfumato.workspace.reporting.tables import format_table, table_from_titles

    from ..manual.manual_text import strip_markdown

    found = format_table(
        table_from_titles(
            ("page", "what it is about"), [[topic, strip_markdown(page_summary(topic))] for topic in TOPICS]
        ),
        width,
    )
    return (
        f"{found}\n\n"
        f"for developers:  sfumato help {DEVELOPER_TOPICS[0]}\n"
        "sfumato help PAGE, COMMAND, METHOD or KEY shows it: sfumato help audit verify\n"
        "sfumato help --find WORDS searches all pages:       sfumato help --find waive a finding"
    )


def search_hits_text(words: str, width: int) -> str:
    """Return the sections that match the words best: page, heading, missing words and best lines. Raises BadInput."""
    import textwrap

    from sfumato.workspace.manual.search import search_manual

    from ..manual.manual_text import strip_markdown

    hits = search_manual(words)
    parts = []
    for hit in hits:
        lines = [
            textwrap.fill(
                strip_markdown(line),
                min(width, PIPE_WIDTH),
                initial_indent="    ",
                subsequent_indent="    ",
                max_lines=3,
            )
            for line in hit.lines
        ]
        lacks = f" (without: {', '.join(hit.missing_words)})" if hit.missing_words else ""
        parts.append("\n".join([f"{hit.section.page}: {hit.section.title}{lacks}", *lines]))
    return "\n\n".join([*parts, f"To read the first: sfumato help {hits[0].section.help_path}"])


def manual_topic_text(topic: str, width: int) -> str:
    """Return a page or section, and the names of both where a command is called like a page. Raises BadInput."""
    from sfumato.engine.errors import BadInput
    from sfumato.engine.methods.protocols import method_keys
    from sfumato.workspace.manual import find_entry

    try:
        entry = find_entry(topic)
    except BadInput:
        if topic not in method_keys():
            raise
        from .catalogue import method_page

        return method_page(topic)  # of a package whose methods the manual cannot know
    return "\n".join(_entry_lines(entry, width))


def _entry_lines(entry: ManualEntry, width: int) -> list[str]:
    """Return the lines of an entry of the manual, with underlined headings and the paths of others of that name."""
    from ..manual.manual_text import page_lines

    lines: list[str] = []
    for line in page_lines(entry.markdown, width):
        lines.append(line.text)
        if line.kind in UNDERLINES:
            lines.append(UNDERLINES[line.kind] * len(line.text))
    part_of = "" if entry.section is None else entry.section.help_path if entry.term else entry.page
    more = [path for path in (part_of, *entry.other_paths) if path]
    return [*lines, *[""] * bool(more), *(f"See also: sfumato help {path}" for path in more)]
