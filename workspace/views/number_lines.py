"""Lines of the table of numbers, sorted and folded by row ids, and read a page at a time."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from threading import Lock

from sfumato.engine.recipe.thresholds import Verdict

from ..reporting.numbers import (
    ArrangedLines,
    NumberLine,
    arrange_lines,
    fold_number_lines,
    leading_measure,
    number_lines,
)
from ..reporting.words import UNMET_OUTCOMES
from ..store.workspace import Workspace
from .results import (
    FAILURES,
    SHARE_OF_BAND,
    ResultSelection,
    SortedResultIds,
    has_averages,
    read_judged_series,
    read_rows_by_id,
    read_verdicts,
)

MOST_FOLDED = 500
"""Number of series of one fold that are read and listed; a fold of more says how many it has."""


@dataclass(frozen=True)
class FoldedSeries:
    """Series of a run's averages by row, and the folds that they belong to.

    series_by_row: index of the series of a row, by the row's id
    rows_by_series: ids of the rows of each series
    fold_by_series: index of the fold of each series
    key_by_fold: key of the measure of each fold
    unmet: series whose limits are not met
    """

    series_by_row: Mapping[int, int]
    rows_by_series: Sequence[array[int]]
    fold_by_series: Sequence[int]
    key_by_fold: Sequence[str]
    unmet: Set[int] = frozenset()

    def family_of(self, series: int) -> str:
        """Return the family of a series."""
        return self.key_by_fold[self.fold_by_series[series]].partition(".")[0]


def read_folded_series(workspace: Workspace, run_id: int) -> FoldedSeries:
    """Read which averages of a run are of one series, and which series are folded into one line."""
    # the rows from which averages were formed are of the same series
    kind = "=" if has_averages(workspace, run_id) else "<>"
    query = f"""SELECT result.id, result.family, result.method, result.measure, result.target, result.params, result.level
                FROM result JOIN task ON task.id = result.task_id
                WHERE result.run_id = ? AND result.draw IS NULL AND task.kind {kind} 'combine'
                ORDER BY result.task_id, result.id"""
    series_by_row: dict[int, int] = {}
    rows_by_series: list[array[int]] = []
    fold_by_series: list[int] = []
    series: dict[tuple[object, ...], int] = {}
    folds: dict[tuple[str, str, str, str], int] = {}
    for number, family, method, measure, target, params, level in workspace.connection.execute(query, (run_id,)):
        place = family, method, measure, target, params, level
        at = series.get(place)
        if at is None:
            at = series[place] = len(series)
            rows_by_series.append(array("q"))
            fold = family, method, leading_measure(family, measure), target
            fold_by_series.append(folds.setdefault(fold, len(folds)))
        rows_by_series[at].append(number)
        series_by_row[number] = at
    judged = read_judged_series(workspace, run_id)
    missed = [series.get(one.database_key) for one in judged if one.outcome in UNMET_OUTCOMES]
    unmet = {one for one in missed if one is not None}
    keys = [f"{family}.{method}.{measure}" for family, method, measure, _ in folds]
    return FoldedSeries(series_by_row, rows_by_series, fold_by_series, keys, unmet)


def count_number_lines(workspace: Workspace, run_id: int) -> int:
    """Count the lines of the table of a run's numbers, with the numbers of their settings folded."""
    kind = "=" if has_averages(workspace, run_id) else "<>"
    query = f"""SELECT DISTINCT result.family, result.method, result.measure, result.target
                FROM result JOIN task ON task.id = result.task_id
                WHERE result.run_id = ? AND result.draw IS NULL AND task.kind {kind} 'combine' AND NOT ({SHARE_OF_BAND})"""
    found = workspace.connection.execute(query, (run_id,))
    return len(
        {(family, method, leading_measure(family, measure), target) for family, method, measure, target in found}
    )


HEADED_SORTS = (FAILURES, "measure")
"""Orders in which lines stand below headings."""


@dataclass(frozen=True, slots=True)
class ShownLine:
    """Row of the table of numbers: a line, or a heading.

    line: the line; None for a heading
    heading: the heading
    is_minor: whether the heading is a title below another
    is_titled: whether the line stands below its title
    """

    line: NumberLine | None
    heading: str = ""
    is_minor: bool = False
    is_titled: bool = False


@dataclass(frozen=True)
class LineIds:
    """Lines of a selection as ids of rows.

    lines: for each line the series that it has, or the row where rows of single datasets are listed
    counts: number of lines by family, of all families
    arranged: the lines as they are shown, below headings where the order has some
    """

    lines: Sequence[array[int]]
    counts: Mapping[str, int]
    arranged: ArrangedLines


@dataclass
class SortedNumberLines:
    """Cache of the lines of recent selections of a run, safe for several threads; valid until the run proceeds.

    ids: sorted ids of rows
    """

    ids: SortedResultIds = field(default_factory=SortedResultIds)
    _folded: FoldedSeries | None = None
    _verdicts: Sequence[Verdict] | None = None
    _lines: dict[ResultSelection, LineIds] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def line_ids(self, workspace: Workspace, selection: ResultSelection) -> LineIds:
        """Return the lines of a selection, in its order."""
        with self._lock:
            if selection not in self._lines:
                self._lines[selection] = self._find_lines(workspace, selection)
            return self._lines[selection]

    def _find_lines(self, workspace: Workspace, selection: ResultSelection) -> LineIds:
        """Group the sorted rows of a selection into its lines."""
        rows = self.ids.row_ids(workspace, selection.sorted_rows)
        if self._folded is None:
            self._folded = read_folded_series(workspace, selection.run_id)
        folded = self._folded
        lines: dict[int, dict[int, None]] = {}
        for number in rows:
            series = folded.series_by_row.get(number)
            if series is not None:
                line = series if selection.unfolded else folded.fold_by_series[series]
                lines.setdefault(line, {}).setdefault(series)
        families = [folded.family_of(next(iter(own))) for own in lines.values()]
        kept = [
            array("q", own)
            for own, family in zip(lines.values(), families, strict=True)
            if selection.family in ("", family)
        ]
        return LineIds(kept, Counter(families), self._arrange(selection, folded, kept))

    @staticmethod
    def _arrange(selection: ResultSelection, folded: FoldedSeries, lines: Sequence[array[int]]) -> ArrangedLines:
        """Return lines as they are shown."""
        if selection.sort not in HEADED_SORTS:
            # an order by another column would be torn apart by headings
            return ArrangedLines(array("q", range(len(lines))), [], bytearray(len(lines)))
        failures_first = selection.sort == FAILURES
        unmet = {at for at, own in enumerate(lines) if failures_first and not folded.unmet.isdisjoint(own)}
        return arrange_lines([folded.key_by_fold[folded.fold_by_series[own[0]]] for own in lines], unmet)

    def count_shown(self, workspace: Workspace, selection: ResultSelection) -> int:
        """Return the number of lines and headings of a selection."""
        return len(self.line_ids(workspace, selection).arranged.places)

    def read_shown(self, workspace: Workspace, selection: ResultSelection, offset: int, limit: int) -> list[ShownLine]:
        """Read the lines and headings of a selection from ``offset`` on, at most ``limit``."""
        found = self.line_ids(workspace, selection)
        places = found.arranged.places[offset : offset + limit]
        lines = iter(self._read_places(workspace, selection, [found.lines[one] for one in places if one >= 0]))
        titled = found.arranged.is_titled[offset : offset + limit]
        return [
            ShownLine(next(lines), is_titled=bool(below))
            if place >= 0
            else ShownLine(None, *found.arranged.headings[-1 - place])
            for place, below in zip(places, titled, strict=True)
        ]

    def count(self, workspace: Workspace, selection: ResultSelection) -> int:
        """Return the number of lines of a selection."""
        return len(self.line_ids(workspace, selection).lines)

    def read_lines(self, workspace: Workspace, selection: ResultSelection, offset: int, limit: int) -> list[NumberLine]:
        """Read the lines of a selection from ``offset`` on, at most ``limit``."""
        return self._read_places(
            workspace, selection, self.line_ids(workspace, selection).lines[offset : offset + limit]
        )

    def _read_places(
        self, workspace: Workspace, selection: ResultSelection, found: Sequence[array[int]]
    ) -> list[NumberLine]:
        """Read the lines of these series."""
        folded, verdicts = self._folded, self.verdicts(workspace, selection.run_id)
        assert folded is not None
        wanted = [number for line in found for series in line[:MOST_FOLDED] for number in folded.rows_by_series[series]]
        lines = number_lines(read_rows_by_id(workspace, wanted), verdicts)
        return lines if selection.unfolded else fold_number_lines(lines)

    def verdicts(self, workspace: Workspace, run_id: int) -> Sequence[Verdict]:
        """Return the verdicts of the run."""
        if self._verdicts is None:
            self._verdicts = read_verdicts(workspace, run_id)
        return self._verdicts
