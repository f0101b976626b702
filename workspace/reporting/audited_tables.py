"""What printed tables give away of the cells that they hide, as an answer, sentences, tables and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from sfumato.engine.wording import agreeing_word, count_noun, format_number

from ..visible_text import replace_unprintable
from .tables import DisplayTable, table_from_titles

Answer = Literal["no", "to be judged", "yes"]
READER_WORDS = {
    "printed": "it is printed elsewhere",
    "empty": "all cells below it are 0",
    "outside": "everybody",
    "zeros": "who sees which cells are 0",
    "contributor": "who is alone in",
    "percent": "within p %",
    "undecided": "not found out",
}
NOT_COVERED = (
    "Not examined: groups all of whose people lie in one cell, what earlier tables of the same people print, and what "
    "readers know from elsewhere."
)
MOST_LINES = 20
"""Cells that a text names; JSON has all."""


@dataclass(frozen=True, slots=True)
class FoundCell:
    """A hidden cell that is not shown to be safe.

    file, line: where it stands
    cell: its labels
    reason: who finds it out, or why it is not safe: a key of ``READER_WORDS``
    is_primary: whether it is hidden for its own sake, None where the file does not say
    beside: the cell by which it is found, for a contributor, or the line that prints it; empty otherwise
    lowest, highest: between which values it lies
    """

    file: str
    line: int
    cell: str
    reason: str
    is_primary: bool | None
    beside: str
    lowest: float
    highest: float

    @property
    def reason_words(self) -> str:
        """Return who finds it out."""
        return f"{READER_WORDS[self.reason]}{f' {self.beside}' if self.beside else ''}"


@dataclass(frozen=True, slots=True)
class ChangedCell:
    """A cell that two releases do not print alike.

    cell: its labels
    kind: "changed" by few, or printed in one release and hidden in the other: "hidden now", "hidden before"
    earlier, later: file and line of each
    difference: later value less the earlier one, None where one is hidden
    """

    cell: str
    kind: Literal["changed", "hidden now", "hidden before"]
    earlier: str
    later: str
    difference: float | None


@dataclass(frozen=True, slots=True)
class AuditedTables:
    """What an audit of files of tables found.

    files: names of the files
    cells, hidden, primary: number of different cells, of hidden ones, and of those that are hidden for their own sake;
        the last is None where the files do not say
    found: hidden cells that are not shown to be safe
    printed_few: printed numbers of people below the threshold
    threshold: fewest people of a safe cell; 0 where none was said
    p_percent: None where it was not asked
    zeros_shown: whether readers of zeros were looked at
    contributors: number of cells with one contributor that were looked at, None where the files do not say
    contributors_in_full: whether they were looked at by programs too
    changes: cells that two releases do not print alike, None where only one was given
    remarks: how the files were read
    """

    files: tuple[str, ...]
    cells: int
    hidden: int
    primary: int | None
    found: tuple[FoundCell, ...]
    printed_few: int
    threshold: int
    p_percent: float | None
    zeros_shown: bool
    contributors: int | None
    contributors_in_full: bool
    changes: tuple[ChangedCell, ...] | None
    remarks: tuple[str, ...]

    @property
    def deciding_cells(self) -> tuple[FoundCell, ...]:
        """Return the found cells that decide: those hidden for their own sake, where the files say so."""
        return tuple(one for one in self.found if one.is_primary is not False)

    @property
    def answer(self) -> Answer:
        """Return whether the tables may leave."""
        if any(one.reason != "undecided" for one in self.deciding_cells) or (self.threshold and self.printed_few):
            return "no"
        return "to be judged" if self.deciding_cells or self.printed_few or self.changes else "yes"

    @property
    def headline(self) -> str:
        """Return the question with its answer and what decides."""
        following = sum(one.reason not in ("percent", "undecided") for one in self.deciding_cells)
        near = sum(one.reason == "percent" for one in self.deciding_cells)
        unknown = sum(one.reason == "undecided" for one in self.deciding_cells)
        parts = list[str]()
        if following:
            parts.append(
                f"{count_noun(following, 'hidden cell')} {agreeing_word(following, 'follows', 'follow')} exactly"
            )
        if near:
            parts.append(
                f"{count_noun(near, 'hidden cell')} {agreeing_word(near, 'lies', 'lie')} within {self.p_percent:g} %"
            )
        if self.printed_few:
            few = f"fewer than {self.threshold}" if self.threshold else "1 or 2"
            parts.append(
                f"{count_noun(self.printed_few, 'cell')} of {few} people {agreeing_word(self.printed_few, 'is', 'are')} printed"
            )
        if unknown:
            parts.append(
                f"of {count_noun(unknown, 'hidden cell')} it was not found out whether {agreeing_word(unknown, 'it follows', 'they follow')}"
            )
        if self.changes and self.answer == "to be judged":
            number = len(self.changes)
            parts.append(f"{count_noun(number, 'cell')} {agreeing_word(number, 'tells', 'tell')} two releases apart")
        claim = "; ".join(parts) or f"none of {count_noun(self.hidden, 'hidden cell')} follows"
        return (
            f"May {agreeing_word(len(self.files), 'this table', 'these tables')} leave? {self.answer.upper()}: {claim}"
        )

    def to_dict(self, *, values: bool) -> dict[str, Any]:
        """Return everything for JSON, with values of hidden cells where they are wanted."""
        left_out = () if values else ("lowest", "highest")
        return {
            "disclosure": "internal",
            "may_leave": self.answer,
            "sentence": self.headline,
            "files": list(self.files),
            "cells": self.cells,
            "hidden": self.hidden,
            "primary": self.primary,
            "found": [{k: v for k, v in asdict(one).items() if k not in left_out} for one in self.found],
            "printed_few": self.printed_few,
            "threshold": self.threshold,
            "p_percent": self.p_percent,
            "zeros_shown": self.zeros_shown,
            "contributors": self.contributors,
            "contributors_in_full": self.contributors_in_full,
            "changes": None if self.changes is None else [asdict(one) for one in self.changes],
            "remarks": list(self.remarks),
            "not_covered": NOT_COVERED,
        }


def audited_tables_sentences(found: AuditedTables) -> list[str]:
    """Return what was looked at, in sentences."""
    primary = "" if found.primary is None else f", {found.primary:,} of them for their own sake"
    lines = [
        f"{count_noun(len(found.files), 'file')}, {count_noun(found.cells, 'different cell')}, "
        f"{found.hidden:,} hidden{primary}."
    ]
    readers = ["everybody"] + (["those who see which cells are 0"] if found.zeros_shown else [])
    if found.contributors:
        how = "" if found.contributors_in_full else " (by sums alone, as the files do not show their values)"
        readers.append(f"those who are alone in {count_noun(found.contributors, 'hidden cell')}{how}")
    lines.append(f"Readers: {'; '.join(readers)}.")
    if found.contributors is None:
        lines.append(
            "The files do not say how many contribute to a cell: what a contributor finds out was not looked at."
        )
    if found.p_percent is None:
        lines.append("How near a hidden value can be guessed was not looked at: say --p-percent P.")
    lines += found.remarks
    return [replace_unprintable(line) for line in lines]


def found_cells_table(found: Sequence[FoundCell], *, values: bool) -> DisplayTable:
    """Return a table of hidden cells that are not shown to be safe."""
    titles = ["file", "line", "cell", "found out by", *(["from", "to"] if values else [])]
    rows = [
        [
            replace_unprintable(one.file), str(one.line), replace_unprintable(one.cell), replace_unprintable(one.reason_words),
            *([format_number(one.lowest), format_number(one.highest)] if values else []),
        ]
        for one in found[:MOST_LINES]
    ]  # fmt: skip
    return table_from_titles(tuple(titles), rows)


def changed_cells_table(changes: Sequence[ChangedCell]) -> DisplayTable:
    """Return a table of cells that two releases do not print alike."""
    rows = [
        [
            replace_unprintable(one.cell), one.kind, "" if one.difference is None else f"{one.difference:+,g}",
            replace_unprintable(one.earlier), replace_unprintable(one.later),
        ]
        for one in changes[:MOST_LINES]
    ]  # fmt: skip
    return table_from_titles(("cell", "what", "difference", "earlier", "later"), rows)


def left_out_sentence(number: int) -> str:
    """Return how many cells a text does not name; empty for none."""
    return f"{count_noun(number - MOST_LINES, 'more cell')}: --json has all" if number > MOST_LINES else ""
