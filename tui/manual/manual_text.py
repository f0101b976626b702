"""Lay a page of the manual out as lines of text that fit a width, for the command line and for the app."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from sfumato.workspace.reporting.tables import format_table, table_from_titles

LONGEST_LINE = 100
"""Greatest width of a paragraph in characters, however wide the terminal is."""
_LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
_ITEM = re.compile(r"( *)(-|\d+\.) (.*)")


@dataclass(frozen=True, slots=True)
class PageLine:
    """Line of a page.

    text: its text
    kind: ``title``, ``heading``, ``code`` or ``text``
    """

    text: str
    kind: str = "text"


def strip_markdown(markdown: str) -> str:
    """Return the text without its markup; a link to another page becomes the command that opens it."""
    without = _LINK.sub(_link_text, markdown)
    return re.sub(r"\*\*([^*]+)\*\*", r"\1", without).replace("`", "").replace("\\|", "|")


def _link_text(found: re.Match[str]) -> str:
    """Return the words of a link, with the command for a page of the manual."""
    words, to = found.groups()
    page = to.partition("#")[0]
    return f"{words} (sfumato help {page[:-3]})" if page.endswith(".md") and "/" not in page else words


def page_lines(markdown: str, width: int) -> list[PageLine]:
    """Return the lines of a page, with its words in at most ``width`` characters; code keeps its lines."""
    lines: list[PageLine] = []
    listed = False
    for block in _split_blocks(markdown):
        follows, listed = listed, _ITEM.fullmatch(block[0]) is not None
        # Items of a list follow each other without an empty line.
        if lines and not (follows and listed):
            lines.append(PageLine(""))
        lines += _lay_out_block(block, width)
    return lines


def _split_blocks(markdown: str) -> Iterator[list[str]]:
    """Yield the lines of each heading, paragraph, list item, table and piece of code."""
    block: list[str] = []
    fenced = False
    # The empty line at the end closes the last block.
    for line in [*markdown.splitlines(), ""]:
        if line.startswith("```"):
            fenced = not fenced
            if not fenced:
                yield [*block, "```"]
                block = []
            elif block:
                yield block
                block = []
        if fenced:
            block.append(line)
            continue
        alone = line.startswith(("#", "<!--", "!", "```")) or not line.strip()
        if block and (alone or _ITEM.fullmatch(line) or line.startswith("|") != block[0].startswith("|")):
            yield block
            block = []
        if not alone:
            block.append(line)
        elif line.startswith("#"):
            yield [line]


def _lay_out_block(block: list[str], width: int) -> Iterator[PageLine]:
    """Yield the lines of a block for a width."""
    first = block[0]
    if first.startswith("#"):
        level = len(first) - len(first.lstrip("#"))
        kind = "title" if level == 1 else "heading"
        yield from (PageLine(line, kind) for line in textwrap.wrap(strip_markdown(first.lstrip("# ")), width))
    elif first.startswith("```"):
        yield from (PageLine(f"    {line}", "code") for line in block[1:-1])
    elif first.startswith("|"):
        head, _, *rows = [
            [strip_markdown(cell).strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])] for line in block
        ]
        yield from map(PageLine, format_table(table_from_titles(head, rows), width).splitlines())
    else:
        item = _ITEM.fullmatch(first)
        indent = " " * (len(item[1]) + len(item[2]) + 1) if item else ""
        words = strip_markdown(" ".join(line.strip() for line in block))
        room = min(width, LONGEST_LINE)
        yield from map(
            PageLine,
            textwrap.wrap(
                words, room, initial_indent=item[1] if item else "", subsequent_indent=indent, break_on_hyphens=False
            ),
        )
