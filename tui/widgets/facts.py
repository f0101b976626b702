"""Lay out named facts and paragraphs in lines of a given width."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import wrap

from rich.cells import cell_len
from textual.content import Content

from sfumato.tui.terminal.text import cut_text, fit_text
from sfumato.workspace.visible_text import replace_unprintable

NAME = 14
MOST_OF_NAME = 20
"""Least and greatest width of the column of names in cells; it is as wide as the longest name needs."""
LEAST = 20
"""Least width of a fact's text in cells, however narrow the place is."""
ONE_COLUMN = 48
"""Width below which the text of a fact starts behind its name and continues below it, so that it has the
whole width.
"""
INDENT = "  "
_UNITS = re.compile(r"(?<=\d) (?=[%×])")
_FILES = re.compile(r"\S+\.\w+")


def wrap_text(text: str, width: int, first: str = "", next_lines: str = "") -> list[str]:
    """Wrap a text into printable lines of ``width`` cells, with these indents; a number keeps its ``%`` or ``×``, and the
    name of a file its hyphens.

    A place that is not laid out yet may have no width: its lines have one cell then, and are wrapped again once it has.
    """
    # A number must not be parted from its unit, so the blank between them does not break.
    whole = _UNITS.sub("\u00a0", replace_unprintable(text))
    whole = _FILES.sub(lambda name: name[0].replace("-", "\u2011"), whole)
    lines = wrap(whole, max(1, width), initial_indent=first, subsequent_indent=next_lines)
    return [line.replace("\u00a0", " ").replace("\u2011", "-") for line in lines]


def wrap_paragraphs(texts: Sequence[str], width: int) -> Content:
    """Return paragraphs in lines of ``width`` cells."""
    return Content("\n").join(Content(line) for text in texts for line in wrap_text(text, max(LEAST, width)) or [""])


def titled_facts(
    title: str, facts: Sequence[tuple[str, str]], width: int, most_of_name: int = MOST_OF_NAME, *, is_airy: bool = False
) -> Content:
    """Return a title, then facts by name, in lines of ``width`` cells.

    ``is_airy`` puts blank lines between facts whose names have no column of their own, which read like one text else.
    """
    titles = [Content.styled(line, "bold") for line in wrap_text(title, max(LEAST, width))]
    if is_airy and width < ONE_COLUMN:
        apart = [(Content(""), *run_in_lines(*fact, width)) for fact in facts]
        return Content("\n").join([*titles, *(line for lines in apart for line in lines)])
    return Content("\n").join([*titles, *fact_lines(facts, width, most_of_name)])


def fact_lines(
    facts: Sequence[tuple[str, str]], width: int, most_of_name: int = MOST_OF_NAME, *, least_of_name: int = NAME
) -> list[Content]:
    """Return the lines of facts, each with its name; names have a column of their own if there is room.

    A fact without name and text is a blank line. The column has ``least_of_name`` cells at least, so that it stands in
    line with that of other facts.
    """
    if width < ONE_COLUMN:
        return [line for name, text in facts for line in run_in_lines(name, text, width)]
    longest = max((len(replace_unprintable(name)) for name, _ in facts), default=0)
    # Two blanks part the longest name from its text.
    named = max(least_of_name, min(most_of_name, longest) + 1)
    return [
        Content.assemble((fit_text("" if place else cut_text(name, most_of_name), named), "$primary"), " ", line)
        for name, text in facts
        for place, line in enumerate(wrap_text(text, max(LEAST, width - named - 1)) or [""] * (not name))
    ]


def run_in_lines(name: str, text: str, width: int, style: str = "") -> list[Content]:
    """Return ``name  text`` in lines of ``width`` cells, the next ones indented; without a name all of them."""
    name = cut_text(name, MOST_OF_NAME)
    first = " " * (cell_len(name) + len(INDENT)) if name else INDENT
    lines = wrap_text(text, max(LEAST, width), first, INDENT)
    return [
        Content.assemble((name, "$primary"), INDENT, (line[len(first) :], style))
        if name and not place
        else Content.styled(line, style)
        for place, line in enumerate(lines)
    ]
