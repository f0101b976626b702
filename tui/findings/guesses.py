"""Dialog with an intruder's most likely guesses at one record, after the release and before; values only on request."""

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


class GuessesDialog(TableDialog[Sequence[Any], None], RevealsValues, OffersExport):
    """Dialog with the guesses at a record, the most likely first.

    The values of guesses and record are hidden until the user asks for them.
    """

    DEFAULT_CSS = """
    GuessesDialog #guesses-why { height: auto; max-height: 50%; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [bind_act("reveal", "values", "Values", show=True)]
    id_prefix = export_file = "guesses"

    def __init__(self, records: OpenRecords, record: int) -> None:
        """Create the dialog about a record by its number."""
        super().__init__()
        self._records, self._record = records, record

    @property
    def export_name(self) -> str:
        """Return the name of the file for export."""
        return f"run-{self._records.run_id}-guesses-{self._record}"

    def compose_above_table(self) -> Iterator[Widget]:
        """Yield the text about the intruder's belief in the record."""
        yield Static("…", id="guesses-why", markup=False)

    def compose_below_table(self) -> Iterator[Widget]:
        """Yield nothing: the table has all the room."""
        yield from ()

    @property
    def question(self) -> str:
        """Return the question that is asked before values are shown."""
        return f"Show the values of record {self._record:,} and of the guesses at it?"

    def on_mount(self) -> None:
        self.read_values()

    def read_values(self) -> None:
        """Read the guesses, with values if they are to be shown."""
        records, record, shown = self._records, self._record, self.revealed

        def query(workspace: Workspace) -> RecordGuesses:
            """Read the guesses by the measure."""
            from sfumato.workspace.views.beliefs import read_record_guesses

            return read_record_guesses(workspace, records.run_id, records.measure, record, with_values=shown)

        self.compute(query, partial(self._show_guesses, shown))

    def _show_guesses(self, shown: bool, found: RecordGuesses) -> None:
        """Show the guesses, unless values have been hidden or shown since they were read."""
        # An answer with values that comes after they were hidden must not be shown.
        if shown != self.revealed:
            return
        measure = self._records.measure
        self.set_head(
            f"record {found.record:,} of run {self._records.run_id} · {measure.key} · all {len(measure.draw_hashes)} datasets"
        )
        self.query_one("#guesses-why", Static).update(belief_explanation(found))
        # Without values the table has only the columns of ranks and probabilities.
        made = ranked_guess_table(found)
        widths = (RANK, SHARE, SHARE, 15, VERDICT)
        named = [*widths, *(VALUE for _ in made.columns[len(widths) :])]
        columns = [
            TableColumn(
                f"{place}", replace_unprintable(column.title), width, column.align, cell=partial(_cell_text, place)
            )
            for place, (column, width) in enumerate(zip(made.columns, named, strict=True))
        ]
        self.show_rows(GridTable(columns), made.rows)

    def forget_values(self) -> None:
        """Discard what was read and what is shown."""
        self.query_one("#guesses-why", Static).update("…")
        self.grid.forget_rows()


def _cell_text(place: int, row: Sequence[Any]) -> str:
    """Return the cell at this place of a row as printable text."""
    return replace_unprintable(str(row[place]))


def belief_explanation(guesses: RecordGuesses) -> Content:
    """Describe the belief in the record, the share of belief in the guesses below, and its values if they were read."""
    share = sum(one.posterior for one in guesses.guesses)
    listed = f"The {len(guesses.guesses)} most likely guesses, which have {number(share)} of all belief:"
    own = [
        f"{replace_unprintable(name)} {replace_unprintable(str(value))}"
        for name, value in (guesses.true_values or {}).items()
    ]
    lines = [*record_belief_lines(guesses), *([f"The record: {' · '.join(own)}."] if own else []), "", listed]
    return Content("\n".join(lines))
