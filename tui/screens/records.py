"""The records most at risk in the releases of a run, by one measure, over all datasets or in one. No values are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message

from sfumato.tui.export import Exhibit
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.line import Line
from sfumato.tui.widgets.pages import TableRow
from sfumato.workspace.reporting.records import COLUMNS, driver_text, record_cells
from sfumato.workspace.reporting.tables import Column, cells, fitted
from sfumato.workspace.reporting.words import params_text

from .exhibiting import grid_exhibit
from .page import Pane
from .record import Record
from .threads import Computes

if TYPE_CHECKING:
    from sfumato.engine.record_risk import LeaveOneOut
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.views.records import RecordMeasure
    from sfumato.workspace.views.records import Records as OpenRecords

__all__ = ["Records"]

DRIVEN = 50
"""For how many records the driver is worked out; the others have it when they are opened."""
NONE = "This run keeps no values of single records. Press s in Runs to run its recipe again, with a risk among its measures."


@dataclass(frozen=True, eq=False)
class RecordPages:
    """The records as a grid reads them, most at risk first; drivers by record number, as far as they are known."""

    records: OpenRecords
    columns: Sequence[Column]
    drivers: Mapping[int, str]

    def count(self) -> int:
        """All of them."""
        return len(self.records)

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        """A page of rows."""
        lines = self.records.lines(offset, limit)
        return [cells(self.columns, record_cells(line, self.drivers.get(line.record, ""))) for line in lines]


class RecordGrid(Grid):
    """The records."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "Why", id="records.why")]


class Records(Pane, Computes):
    """Every record of a run's table by its risk; enter shows who would be taken for it, and why."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "measure", "Measure", id="records.measure"),
        Binding("right_square_bracket", "dataset(1)", "Dataset", key_display="]", id="records.next_dataset"),
        Binding("left_square_bracket", "dataset(-1)", "Dataset before", show=False, id="records.previous_dataset"),
    ]

    @dataclass
    class Arrived(Message):
        """The records were read; None where the run keeps none."""

        run_id: int
        measures: Sequence[RecordMeasure]
        records: OpenRecords | None

    @dataclass
    class Driven(Message):
        """The drivers of the first records were worked out."""

        records: OpenRecords
        drivers: Mapping[int, str]

    def __init__(self) -> None:
        super().__init__(id="records")
        self._measure, self._draw = 0, 0
        self._measures: Sequence[RecordMeasure] = ()
        self._records: OpenRecords | None = None
        self._drivers: Mapping[int, str] = {}
        self._pages: RecordPages | None = None

    def compose(self) -> ComposeResult:
        """What is shown, and the table."""
        yield Line(name="records-head")
        yield RecordGrid(empty="…")

    def load(self) -> None:
        """Read the records of the run."""
        if self.line is None:
            return
        run_id, measure, draw = self.line.run.id, self._measure, self._draw
        if self._records is not None and self._records.run_id != run_id:
            measure = draw = self._measure = self._draw = 0

        def query(workspace: Workspace) -> tuple[Sequence[RecordMeasure], OpenRecords | None]:
            from sfumato.workspace.views.records import open_records, record_measures

            measures = record_measures(workspace, run_id)
            if not measures:
                return (), None
            chosen = measures[measure % len(measures)]
            return measures, open_records(workspace, run_id, chosen, draw if draw in chosen.draws else None)

        self.compute(query, lambda found: self.Arrived(run_id, *found))

    @on(Arrived)
    def _take(self, event: Arrived) -> None:
        if self.line is None or event.run_id != self.line.run.id:
            return
        records, self._measures = event.records, event.measures
        stays = _same(records, self._records)
        self._records, self._drivers = records, self._drivers if stays else {}
        self._show(keep_cursor=stays)
        if records is not None and self.line.run.state.ended:
            self.compute(lambda workspace: _drivers(workspace, records), lambda found: self.Driven(records, found))

    @on(Driven)
    def _drive(self, event: Driven) -> None:
        if event.records is self._records:
            self._drivers = event.drivers
            self._show(keep_cursor=True)

    def on_resize(self) -> None:
        """Give the columns their new widths."""
        if self._pages is not None and self._columns() != self._pages.columns:
            self._show(keep_cursor=True)

    def _columns(self) -> Sequence[Column]:
        """The columns that the measure fills and the width allows."""
        records = self._records
        unfilled = {"unique": records and records.risk.unique is None, "own": records and records.own is None}
        filled = [column for column in COLUMNS if not unfilled.get(column.name)]
        return fitted(filled, self.size.width - 1)

    def _show(self, *, keep_cursor: bool) -> None:
        grid, records = self.query_one(Grid), self._records
        if records is None:
            self._pages = None
            self.query_one(Line).say("")
            grid.set_source(_Nothing(), empty=NONE)
            return
        self._pages = RecordPages(records, self._columns(), self._drivers)
        grid.set_source(self._pages, keep_cursor=keep_cursor)
        self.query_one(Line).say(self._heading(records))

    def _heading(self, records: OpenRecords) -> str:
        measure = records.measure
        place = f"{measure.key} {self._measures.index(measure) + 1}/{len(self._measures)}"
        over = f"average over {records.risk.datasets} datasets" if records.draw is None else f"dataset {records.draw}"
        parts = [place, over, f"{len(records):,} records, most at risk first", params_text(measure.params)]
        return " · ".join(part for part in parts if part)

    def exhibit(self) -> Exhibit | None:
        """The table of records."""
        return grid_exhibit(self.query_one(Grid), self.named("records"))

    def take_focus(self) -> None:
        """The table takes the keys."""
        self.query_one(Grid).focus()

    def action_measure(self) -> None:
        """Show the records by the next measure."""
        if self._measures:
            self._measure = (self._measure + 1) % len(self._measures)
            self.load()

    def action_dataset(self, step: int) -> None:
        """Show one dataset's numbers, the next one's, and at last the average again."""
        if self._records is not None:
            draws = [0, *self._records.measure.draws]
            at = draws.index(self._draw) if self._draw in draws else 0
            self._draw = draws[(at + step) % len(draws)]
            self.load()

    @on(Grid.Selected)
    async def _open(self, event: Grid.Selected) -> None:
        if self._records is not None:
            (line,) = self._records.lines(event.index, 1)
            await self.sfumato.open(Record(self._records, line.record))


class _Nothing:
    """A table without rows or columns."""

    columns: Sequence[Column] = ()

    def count(self) -> int:
        return 0

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        return ()


def _same(one: OpenRecords | None, other: OpenRecords | None) -> bool:
    """Whether both are of the same run, measure and dataset."""
    if one is None or other is None:
        return False
    return (one.run_id, one.measure.item, one.draw) == (other.run_id, other.measure.item, other.draw)


def _drivers(workspace: Workspace, records: OpenRecords) -> Mapping[int, str]:
    """The drivers of the first records, by number."""
    from sfumato.workspace.views.records import drivers

    numbers = [line.record for line in records.lines(0, DRIVEN)]
    found: LeaveOneOut = drivers(workspace, records, numbers)
    return {number: driver_text(found.driver(r)) for r, number in enumerate(numbers)}
