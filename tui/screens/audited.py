"""What gives one person away in shadow releases, and what to change. Feature names and weights, no values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from sfumato.tui.widgets.facts import fact_lines
from sfumato.tui.widgets.lines import Scroll

from .page import Dialog

if TYPE_CHECKING:
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.views.records import Records as OpenRecords


class Audited(Dialog[None]):
    """One target of an audit: its AUC with the interval, the features that give it away by weight, and the levers."""

    AUTO_FOCUS = "Scroll"

    def __init__(self, records: OpenRecords, record: int) -> None:
        super().__init__()
        self._records, self._record = records, record
        self._facts: list[tuple[str, str]] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall"):
            head = f"record {self._record:,} of run {self._records.run_id} · {self._records.measure.key}   (q closes)"
            yield Static(head, classes="dialog-title", markup=False)
            yield Scroll()

    def on_mount(self) -> None:
        measure, record = self._records.measure, self._record

        def query(workspace: Workspace) -> list[tuple[str, str]]:
            from sfumato.workspace.reporting.audits import why_facts
            from sfumato.workspace.views.audits import audited_record, levers_of

            return why_facts(audited_record(workspace, measure, record), levers_of(measure))

        self.compute(query, self._take)

    def _take(self, facts: list[tuple[str, str]]) -> None:
        self._facts = facts
        self._lay_out()

    def on_resize(self) -> None:
        self.call_after_refresh(self._lay_out)

    def _lay_out(self) -> None:
        pane = self.query_one(Scroll)
        pane.show(Content("\n").join(fact_lines(self._facts, pane.scrollable_content_region.width)))

    def manual_topics(self) -> tuple[str, ...]:
        return (self._records.measure.key,)
