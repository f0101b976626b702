"""Dialog about one target of an audit: the features that give this person away in shadow releases, and what to change.

It shows names and weights of features, no values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.widgets.facts import fact_lines
from sfumato.tui.widgets.lines import Scroll

from .page import Dialog

if TYPE_CHECKING:
    from sfumato.workspace.reporting.audits import AuditedRecord
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.views.records import RecordMeasure

    Found = tuple[list[AuditedRecord], tuple[str, ...]]


class AuditedTargetDialog(Dialog[None]):
    """Dialog about one target of an audit; keys lead to the previous and next target.

    It shows the AUC with its interval, the features that give the target away, by weight, and the levers.
    """

    AUTO_FOCUS = "Scroll"
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("previous", "step(-1)", "Person before", show=True),
        bind_act("next", "step(1)", "Next person", show=True),
    ]

    def __init__(self, run_id: int, measure: RecordMeasure, record: int | None = None) -> None:
        """Create the dialog about ``record``, numbered from 1; by default about the target that is easiest to
        recognise.
        """
        super().__init__()
        self._run_id, self._measure, self._record = run_id, measure, record
        self._targets: list[AuditedRecord] = []
        self._levers: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        """Yield the title and the text."""
        with Vertical(classes="dialog tall"):
            yield Static("…", id="audited-title", classes="dialog-title", markup=False)
            yield Scroll()

    def on_mount(self) -> None:
        """Read the targets of the audit and the levers."""
        measure, record = self._measure, self._record

        def query(workspace: Workspace) -> Found:
            """Read the targets and the levers."""
            from sfumato.workspace.views.audits import audit_levers, read_audited_record, read_audited_records

            if record is not None:
                read_audited_record(workspace, measure, record)  # NotFound where it was not asked about
            return read_audited_records(workspace, measure), audit_levers(measure)

        self.compute(query, self._show_targets)

    def _show_targets(self, found: Found) -> None:
        """Store the targets and draw the first or the requested one."""
        self._targets, self._levers = found
        self._draw_target()

    def action_step(self, by: int) -> None:
        """Show the target that many places further in the order of risk."""
        if self._targets:
            self._record = self._targets[(self._target_index + by) % len(self._targets)].record
            self._draw_target()

    @property
    def _target_index(self) -> int:
        """Return the index of the shown target in the order of risk."""
        return next((place for place, one in enumerate(self._targets) if one.record == self._record), 0)

    def on_resize(self) -> None:
        """Redraw the title and the facts about the audited target at the new width."""
        # The width of the text is known only after the layout.
        self.call_after_refresh(self._draw_target)

    def _draw_target(self) -> None:
        """Write the title and the facts about the shown target."""
        from sfumato.workspace.reporting.audits import audited_record_facts

        if not self._targets:
            return
        one, pane = self._targets[self._target_index], self.query_one(Scroll)
        of = f"{self._target_index + 1} of {len(self._targets)} targets"
        head = f"{one.title} of run {self._run_id} · {of} · {self._measure.key}   (q closes)"
        self.query_one("#audited-title", Static).update(head)
        facts = audited_record_facts(one, self._levers)
        pane.show_text(Content("\n").join(fact_lines(facts, pane.scrollable_content_region.width)))

    def manual_topics(self) -> tuple[str, ...]:
        return (self._measure.key,)
