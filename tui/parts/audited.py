"""What gives single people away in shadow releases, and what to change. Feature names and weights, no values."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from sfumato.tui.keys.acts import bind
from sfumato.tui.widgets.facts import fact_lines
from sfumato.tui.widgets.lines import Scroll

from .page import Dialog

if TYPE_CHECKING:
    from sfumato.workspace.reporting.audits import AuditedRecord
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.views.records import RecordMeasure

    Found = tuple[list[AuditedRecord], tuple[str, ...]]


class Audited(Dialog[None]):
    """One target of an audit: its AUC with the interval, the features that give it away by weight, and the levers; those beside it by their keys."""

    AUTO_FOCUS = "Scroll"
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("previous", "step(-1)", "Person before", show=True),
        bind("next", "step(1)", "Next person", show=True),
    ]

    def __init__(self, run_id: int, measure: RecordMeasure, record: int | None = None) -> None:
        """The ``record``, from 1; without one the target that stands out most."""
        super().__init__()
        self._run_id, self._measure, self._record = run_id, measure, record
        self._targets: list[AuditedRecord] = []
        self._levers: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall"):
            yield Static("…", id="audited-title", classes="dialog-title", markup=False)
            yield Scroll()

    def on_mount(self) -> None:
        measure, record = self._measure, self._record

        def query(workspace: Workspace) -> Found:
            from sfumato.workspace.views.audits import audited, audited_record, levers_of

            if record is not None:
                audited_record(workspace, measure, record)  # NotFound where it was not asked about
            return audited(workspace, measure), levers_of(measure)

        self.compute(query, self._take)

    def _take(self, found: Found) -> None:
        self._targets, self._levers = found
        self._lay_out()

    def action_step(self, by: int) -> None:
        """The target so many places further in the order of risk."""
        if self._targets:
            self._record = self._targets[(self._place + by) % len(self._targets)].record
            self._lay_out()

    @property
    def _place(self) -> int:
        return next((place for place, one in enumerate(self._targets) if one.record == self._record), 0)

    def on_resize(self) -> None:
        self.call_after_refresh(self._lay_out)

    def _lay_out(self) -> None:
        from sfumato.workspace.reporting.audits import why_facts

        if not self._targets:
            return
        one, pane = self._targets[self._place], self.query_one(Scroll)
        of = f"{self._place + 1} of {len(self._targets)} targets"
        head = f"record {one.record:,} of run {self._run_id} · {of} · {self._measure.key}   (q closes)"
        self.query_one("#audited-title", Static).update(head)
        facts = why_facts(one, self._levers)
        pane.show(Content("\n").join(fact_lines(facts, pane.scrollable_content_region.width)))

    def manual_topics(self) -> tuple[str, ...]:
        return (self._measure.key,)
