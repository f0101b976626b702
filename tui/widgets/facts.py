"""Facts by name, and paragraphs, in lines of so many cells."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from textual.content import Content

from sfumato.tui.widgets.text import cut, fit
from sfumato.workspace.visible_text import printable

NAME = 14
MOST_OF_NAME = 20
"""Cells for the names of facts: all stand as far to the right as the longest needs."""
LEAST = 20
"""Cells for what a fact says, however narrow the place is."""


def lines_in(texts: Sequence[str], width: int) -> Content:
    """Paragraphs in lines of ``width`` cells."""
    return Content("\n").join(
        Content(line) for text in texts for line in wrap(printable(text), max(LEAST, width)) or [""]
    )


def facts_in(title: str, facts: Sequence[tuple[str, str]], width: int) -> Content:
    """A title, then facts by name, in lines of ``width`` cells."""
    return Content("\n").join([Content.styled(cut(printable(title), width), "bold"), *fact_lines(facts, width)])


def fact_lines(facts: Sequence[tuple[str, str]], width: int) -> list[Content]:
    """The lines of facts, each named where it starts."""
    named = min(MOST_OF_NAME, max([NAME, *(len(printable(name)) for name, _ in facts)]))
    return [
        Content.assemble((fit("" if place else name, named), "$primary"), " ", line)
        for name, text in facts
        for place, line in enumerate(wrap(printable(text), max(LEAST, width - named - 1)))
    ]
