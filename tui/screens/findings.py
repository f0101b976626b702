"""What the gate found on a run, one line a check; ``enter`` or ``x`` explains one, with record numbers and what would mend it."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from sfumato.tui.widgets.grid import Grid, LiveGrid
from sfumato.tui.widgets.lines import KeyLine, Line, Scroll
from sfumato.workspace.reporting.findings import COLUMNS, by_status, counts_text, finding_cells, finding_text
from sfumato.workspace.reporting.tables import fitted, on_columns

from .page import Dialog

if TYPE_CHECKING:
    from sfumato.workspace.release.gate import Finding


class Findings(Dialog[None]):
    """The findings of an examination, the worst first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "explain", "Explain", id="findings.explain"),
    ]
    AUTO_FOCUS = "LiveGrid"

    def __init__(self, run_id: int, findings: Sequence[Finding]) -> None:
        super().__init__()
        self._run_id = run_id
        self._findings = by_status(findings)

    def compose(self) -> ComposeResult:
        """How many are what, the table, and the keys."""
        with Vertical(classes="whole"):
            yield Line(name="findings-head")
            yield LiveGrid()
            yield KeyLine()

    def on_mount(self) -> None:
        """Show them."""
        self.query_one("#findings-head", Line).say(f"Run {self._run_id}: {counts_text(self._findings)}")

    def on_resize(self) -> None:
        """Lay the columns out anew."""
        columns = fitted(COLUMNS, self.size.width - 2)
        rows = on_columns(COLUMNS, columns, map(finding_cells, self._findings))
        self.query_one(LiveGrid).show(columns, rows, [one.check for one in self._findings])

    @on(Grid.Selected)
    async def action_explain(self) -> None:
        """Explain the finding under the cursor."""
        key = self.query_one(LiveGrid).key
        chosen = next((one for one in self._findings if one.check == key), None)
        if chosen is not None:
            await self.sfumato.open(Explained(chosen))


class Explained(Dialog[None]):
    """One finding in words."""

    AUTO_FOCUS = "Scroll"

    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self._finding = finding

    def compose(self) -> ComposeResult:
        """A title and text that scrolls."""
        with Vertical(classes="dialog tall"):
            yield Static(f"{self._finding.check}   (q closes)", classes="dialog-title", markup=False)
            yield Scroll()

    def on_resize(self) -> None:
        """Break the lines anew."""
        self.call_after_refresh(self._lay_out)

    def _lay_out(self) -> None:
        pane = self.query_one(Scroll)
        width = max(20, pane.scrollable_content_region.width)
        paragraphs = [[Content(line) for line in wrap(text, width)] for text in finding_text(self._finding)]
        lines = [line for paragraph in paragraphs for line in (*paragraph, Content(""))]
        pane.show(Content("\n").join(lines))
