"""Published figures beside what runs found: one table for every source that the recipes quote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from .published import Published, figure_beside
from .rows import Row

__all__ = ["Cell", "Findings", "Line", "SourceTable", "ratio", "source_tables"]

CONFIDENTIAL = "confidential"
MISSING = "the run has no such row"
Series = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """What one run brings: its name in the tables, the figures its recipe quotes, and its rows."""

    name: str
    published: Sequence[Published]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Cell:
    """A run's own value and the published one; None where there is none."""

    ours: float | None = None
    published: float | None = None

    @property
    def ratio(self) -> float | None:
        """Ours as a multiple of the published."""
        return ratio(self.ours, self.published)


@dataclass(frozen=True, slots=True)
class Line:
    """One number of the source: what it is, and a cell for the confidential data and for every run's release."""

    value: str
    target: str
    level: float | None
    cells: tuple[Cell, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """The figures of one source; ``columns`` name the cells of every line, the confidential data first."""

    source: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]


def ratio(ours: float | None, published: float | None) -> float | None:
    """Ours as a multiple of the published; None where either is missing or the published one is 0."""
    return None if ours is None or not published else ours / published


def source_tables(runs: Sequence[Findings]) -> tuple[SourceTable, ...]:
    """A table for every source in the order in which the runs quote them, its lines in the order of its figures."""
    columns = (CONFIDENTIAL, *(run.name for run in runs))
    averages = [Findings(run.name, run.published, [row for row in run.rows if row.draw is None]) for run in runs]
    sources = dict.fromkeys(figure.source for run in runs for figure in run.published)
    return tuple(SourceTable(source, columns, tuple(_lines(_of_source(source, averages)))) for source in sources)


def _of_source(source: str, runs: Sequence[Findings]) -> list[Findings]:
    return [Findings(run.name, [one for one in run.published if one.source == source], run.rows) for run in runs]


def _lines(runs: Sequence[Findings]) -> Iterator[Line]:
    rows = [{(_side(row), row.series): row for row in run.rows} for run in runs]
    for series in _matched(runs):
        own = [found[CONFIDENTIAL, series] for found in rows if (CONFIDENTIAL, series) in found]
        quoted = [figure for run in runs for figure in run.published if figure.dataset == CONFIDENTIAL]
        cells = [_cell(own[0] if own else None, quoted)]
        cells += [_cell(found.get(("", series)), run.published) for run, found in zip(runs, rows, strict=True)]
        same = [row for found in rows for (_, key), row in found.items() if key == series]
        note = next((row.reason for row in same if row.value is None), "")
        yield Line(same[0].key, same[0].target, same[0].level, tuple(cells), same[0].params, note)
    yield from _unmatched(runs)


def _side(row: Row) -> str:
    return CONFIDENTIAL if row.dataset == CONFIDENTIAL else ""


def _matched(runs: Sequence[Findings]) -> Iterator[Series]:
    """The series that some figure belongs beside, each once: the first of every figure in their order, then the second."""
    found = [
        [row.series for row in _rows_for(figure, run, runs) if figure.matches(row)]
        for run in runs
        for figure in run.published
    ]
    yield from dict.fromkeys(series for each in zip_longest(*found) for series in each if series is not None)


def _rows_for(figure: Published, run: Findings, runs: Sequence[Findings]) -> Iterator[Row]:
    """The rows a run's figure may belong beside: its own, and of the confidential data, which all share, any run's."""
    yield from (row for each in runs if each is run or figure.dataset == CONFIDENTIAL for row in each.rows)


def _cell(row: Row | None, published: Sequence[Published]) -> Cell:
    return Cell() if row is None else Cell(row.value, figure_beside(row, published))


def _unmatched(runs: Sequence[Findings]) -> Iterator[Line]:
    """A line for every figure that no row is there for."""
    for place, run in enumerate(runs, start=1):
        for figure in run.published:
            if not any(map(figure.matches, _rows_for(figure, run, runs))):
                cells = [Cell()] * (len(runs) + 1)
                cells[0 if figure.dataset == CONFIDENTIAL else place] = Cell(None, figure.figure)
                yield Line(figure.value, figure.target, figure.level, tuple(cells), figure.params, MISSING)
