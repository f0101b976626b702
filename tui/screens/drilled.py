"""The confidential records behind a bar or a cell, with their values, shown after the same question as all values of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from sfumato.engine.wording import counted
from sfumato.tui.export import Exportable
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import KeyLine, Line
from sfumato.tui.widgets.pages import TableRow
from sfumato.workspace.reporting.tables import Column
from sfumato.workspace.visible_text import printable

from .dialogs import Confirm
from .page import Dialog, Exports, grid_exportable
from .revealing import CONSEQUENCE

if TYPE_CHECKING:
    from sfumato.tui.app_protocol import AppProtocol
    from sfumato.tui.distributions import Drilled

WIDTH = 14


@dataclass(frozen=True, eq=False)
class DrilledPages:
    """Records of a dataset by their numbers from 1 as a grid reads them; the values of a page are read when it is shown."""

    directory: Path
    dataset_id: int
    records: Sequence[int]
    names: Sequence[str]

    @property
    def columns(self) -> Sequence[Column]:
        """The number and every variable."""
        return (
            Column("record", "record", 8, "right"),
            *(Column(n, n, max(WIDTH, len(n)), "right") for n in self.names),
        )

    def count(self) -> int:
        """How many there are."""
        return len(self.records)

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        """A page of rows."""
        from sfumato.workspace.store.workspace import Workspace
        from sfumato.workspace.views.records import values_of_dataset

        numbers = self.records[offset : offset + limit]
        with Workspace.open(self.directory, read_only=True) as workspace:
            found: Sequence[Mapping[str, object]] = values_of_dataset(workspace, self.dataset_id, numbers)
        return [(number, *(own[name] for name in self.names)) for number, own in zip(numbers, found, strict=True)]


class DrilledRecords(Dialog[None], Exports):
    """The records; v hides them again, by closing."""

    manual = "app distributions"

    BINDINGS: ClassVar[list[BindingType]] = [Binding("v", "close", "Hide", id="drilled.hide")]
    AUTO_FOCUS = "Grid"

    def __init__(self, pages: DrilledPages, run_id: int | None, said: str) -> None:
        super().__init__()
        self._pages, self._run_id, self._said = pages, run_id, said

    def compose(self) -> ComposeResult:
        """What they have in common, the records, the keys."""
        with Vertical(classes="whole"):
            yield Line(name="drilled-head")
            yield Grid(empty="…")
            yield KeyLine()

    def on_mount(self) -> None:
        """Show them."""
        of = "confidential data" if self._run_id is None else f"confidential data of run {self._run_id}"
        records = counted(self._pages.count(), "record")
        self.query_one("#drilled-head", Line).say(f"{printable(self._said)} · {records} of the {of}")
        self.query_one(Grid).set_source(self._pages)

    def exportable(self) -> Exportable | None:
        """The records with their values."""
        where = "" if self._run_id is None else f"run-{self._run_id}-"
        return grid_exportable(self.query_one(Grid), f"confidential-{where}records")


async def open_drilled(app: AppProtocol, dataset_id: int, run_id: int | None, found: Drilled) -> None:
    """Ask, then show the records. Which records they are tells their values, so that not even their numbers come before."""
    from sfumato.workspace.store.workspace import Workspace

    with Workspace.open(app.directory, read_only=True) as workspace:
        names = workspace.dataset(dataset_id).schema.names
    pages = DrilledPages(app.directory, dataset_id, found.records, names)

    def answered(yes: bool | None) -> None:
        if yes:
            app.call_later(app.open, DrilledRecords(pages, run_id, found.said))

    many = len(found.records)
    question = f"Show {f'the {many:,} records' if many > 1 else 'the record'} with {printable(found.said)}?"
    await app.open(Confirm(question, CONSEQUENCE), answered)
