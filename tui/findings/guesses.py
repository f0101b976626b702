"""What an intruder believes of one record: the most likely guesses, after the release and before. Values only on request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.widgets.tables import GridTable, TableColumn
from sfumato.workspace.reporting.beliefs import ranked_guess_table, record_belief_lines
from sfumato.workspace.reporting.words import number
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.page import OffersExport
from ..parts.revealing import RevealsValues
from ..parts.tables import TableDialog

if TYPE_CHECKING:
    from sfumato.workspace.reporting.beliefs import RecordGuesses
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.views.records import RankedRecords as OpenRecords

RANK, SHARE, VERDICT, VALUE = 5, 10, 11, 14


class Guesses(TableDialog[Sequence[Any], None], RevealsValues, OffersExport):
    """The guesses at a record, the most likely first; the values of guesses and record are hidden until the user says otherwise."""

    DEFAULT_CSS = """
    Guesses #guesses-why { height: auto; max-height: 50%; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [bind_act("reveal", "values", "Values", show=True)]
    id_prefix = export_file = "guesses"

    def __init__(self, records: OpenRecords, record: int) -> None:
        super().__init__()
        self._records, self._record = records, record

    @property
    def export_name(self) -> str:
        return f"run-{self._records.run_id}-guesses-{self._record}"

    def compose_above_table(self) -> Iterator[Widget]:
        """What is believed of the record."""
        yield Static("…", id="guesses-why", markup=False)

    def compose_below_table(self) -> Iterator[Widget]:
        yield from ()

    @property
    def question(self) -> str:
        """Return the question to confirm before values are shown."""
        return f"Show the values of record {self._record:,} and of the guesses at it?"

    def on_mount(self) -> None:
        self.read_values()

    def read_values(self) -> None:
        """Read the guesses, with values where they are to be shown."""
        records, record, shown = self._records, self._record, self.revealed

        def query(workspace: Workspace) -> RecordGuesses:
            from sfumato.workspace.views.beliefs import read_record_guesses

            return read_record_guesses(workspace, records.run_id, records.measure, record, with_values=shown)

        self.compute(query, partial(self._take, shown))

    def _take(self, shown: bool, found: RecordGuesses) -> None:
        if shown != self.revealed:
            return
        measure = self._records.measure
        self.set_head(
            f"record {found.record:,} of run {self._records.run_id} · {measure.key} · all {len(measure.draw_hashes)} datasets"
        )
        self.query_one("#guesses-why", Static).update(explanation(found))
        made = ranked_guess_table(found)
        widths = (RANK, SHARE, SHARE, 15, VERDICT)
        named = [*widths, *(VALUE for _ in made.columns[len(widths) :])]
        columns = [
            TableColumn(f"{place}", replace_unprintable(column.title), width, column.align, cell=partial(_cell, place))
            for place, (column, width) in enumerate(zip(made.columns, named, strict=True))
        ]
        self.show_rows(GridTable(columns), made.rows)

    def forget_values(self) -> None:
        """What was read goes, and with it what is shown."""
        self.query_one("#guesses-why", Static).update("…")
        self.grid.forget_rows()


def _cell(place: int, row: Sequence[Any]) -> str:
    return replace_unprintable(str(row[place]))


def explanation(found: RecordGuesses) -> Content:
    """What is believed of the record, how much of belief the guesses below have, and its values where they are asked for."""
    share = sum(one.posterior for one in found.guesses)
    listed = f"The {len(found.guesses)} most likely guesses, which have {number(share)} of all belief:"
    own = [
        f"{replace_unprintable(name)} {replace_unprintable(str(value))}"
        for name, value in (found.true_values or {}).items()
    ]
    lines = [*record_belief_lines(found), *([f"The record: {' · '.join(own)}."] if own else []), "", listed]
    return Content("\n".join(lines))
