"""Facts by name, and paragraphs, in lines of so many cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import wrap

from rich.cells import cell_len
from textual.content import Content

from sfumato.tui.terminal.text import cut, fit
from sfumato.workspace.visible_text import replace_unprintable

NAME = 14
MOST_OF_NAME = 20
"""Cells for the names of facts: all stand as far to the right as the longest needs."""
LEAST = 20
"""Cells for what a fact says, however narrow the place is."""
ONE_COLUMN = 48
"""In fewer cells the text of a fact starts behind its name and goes on below it, so that it has the whole width."""
INDENT = "  "
_UNITS = re.compile(r"(?<=\d) (?=[%×])")


def wrapped(text: str, width: int, first: str = "", next_lines: str = "") -> list[str]:
    """Printable lines of ``width`` cells, the first and the others indented so; a number and its ``%`` or ``×`` stay together."""
    whole = _UNITS.sub("\u00a0", replace_unprintable(text))
    lines = wrap(whole, width, initial_indent=first, subsequent_indent=next_lines)
    return [line.replace("\u00a0", " ") for line in lines]


def lines_in(texts: Sequence[str], width: int) -> Content:
    """Paragraphs in lines of ``width`` cells."""
    return Content("\n").join(Content(line) for text in texts for line in wrapped(text, max(LEAST, width)) or [""])


def facts_in(title: str, facts: Sequence[tuple[str, str]], width: int) -> Content:
    """A title, then facts by name, in lines of ``width`` cells."""
    titles = [Content.styled(line, "bold") for line in wrapped(title, max(LEAST, width))]
    return Content("\n").join([*titles, *fact_lines(facts, width)])


def fact_lines(facts: Sequence[tuple[str, str]], width: int) -> list[Content]:
    """The lines of facts, each named where it starts; in a column of their own where there is room for one."""
    if width < ONE_COLUMN:
        return [line for name, text in facts for line in run_in(name, text, width)]
    named = min(MOST_OF_NAME, max([NAME, *(len(replace_unprintable(name)) for name, _ in facts)]))
    return [
        Content.assemble((fit("" if place else name, named), "$primary"), " ", line)
        for name, text in facts
        for place, line in enumerate(wrapped(text, max(LEAST, width - named - 1)))
    ]


def run_in(name: str, text: str, width: int, style: str = "") -> list[Content]:
    """``name  text`` in lines of ``width`` cells, the next ones indented; without a name all of them."""
    name = cut(name, MOST_OF_NAME)
    first = " " * (cell_len(name) + len(INDENT)) if name else INDENT
    lines = wrapped(text, max(LEAST, width), first, INDENT)
    return [
        Content.assemble((name, "$primary"), INDENT, (line[len(first) :], style))
        if name and not place
        else Content.styled(line, style)
        for place, line in enumerate(lines)
    ]
