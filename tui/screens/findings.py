"""What the gate found on a run, one line a check; ``enter`` or ``x`` explains one, with record numbers and what would mend it.

``w`` waives the one under the cursor for a reason, where the policy lets this account.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from sfumato.engine.errors import BadInput
from sfumato.tui.widgets.entries import Entry
from sfumato.tui.widgets.grid import Grid, LiveGrid
from sfumato.tui.widgets.lines import KeyLine, Line, Scroll
from sfumato.workspace.reporting.findings import COLUMNS, by_status, counts_text, finding_cells, finding_text
from sfumato.workspace.reporting.tables import fitted, on_columns
from sfumato.workspace.visible_text import printable

from .page import Dialog

if TYPE_CHECKING:
    from sfumato.workspace.policy.policy import Policy
    from sfumato.workspace.release.gate import Examination, Finding

APPROVED = "The release is approved as it was asked for; to waive more, ask for it anew"


class Findings(Dialog[dict[str, str]]):
    """The findings of an examination, the worst first; answers the reason by check that is waived here, ``waive`` and more."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "explain", "Explain", id="findings.explain"),
        Binding("w", "waive", "Waive", id="findings.waive"),
    ]
    AUTO_FOCUS = "LiveGrid"

    def __init__(self, examination: Examination, policy: Policy, waive: Mapping[str, str]) -> None:
        super().__init__()
        self._examination, self._policy, self._waive = examination, policy, dict(waive)
        self._findings = by_status(examination.findings)

    def compose(self) -> ComposeResult:
        """How many are what, the table, and the keys."""
        with Vertical(classes="whole"):
            yield Line(name="findings-head")
            yield LiveGrid()
            yield KeyLine()

    def on_mount(self) -> None:
        """Nothing is read: what is shown was given."""

    def on_resize(self) -> None:
        """Lay the columns out anew."""
        self._show()

    def _show(self) -> None:
        from sfumato.workspace.audit import user

        examination = self._examination.waived_by(user(), self._waive)
        left = {one.check for one in examination.unwaived}
        waived = {one.check for one in examination.blocking} - left
        counts = f"{counts_text(self._findings)}{f'; {len(waived)} waived' if waived else ''}"
        self.query_one("#findings-head", Line).say(f"Run {examination.run_id}: {counts}")
        columns = fitted(COLUMNS, self.size.width - 2)
        cells = [finding_cells(one, waived=one.check in waived) for one in self._findings]
        rows = on_columns(COLUMNS, columns, cells)
        self.query_one(LiveGrid).show(columns, rows, [one.check for one in self._findings])

    @property
    def _chosen(self) -> Finding | None:
        """The finding under the cursor."""
        key = self.query_one(LiveGrid).key
        return next((one for one in self._findings if one.check == key), None)

    def manual_topics(self) -> Sequence[str]:
        """The check under the cursor."""
        chosen = self._chosen
        return (*(() if chosen is None else (f"release {chosen.check}",)), "release gate")

    @on(Grid.Selected)
    async def action_explain(self) -> None:
        """Explain the finding under the cursor."""
        chosen = self._chosen
        if chosen is not None:
            await self.sfumato.open(Explained(chosen, self._waive.get(chosen.check, "")))

    async def action_waive(self) -> None:
        """Ask why the finding under the cursor is let pass, or say why it cannot be."""
        from sfumato.workspace.audit import user
        from sfumato.workspace.release.gate import why_not_waived

        chosen = self._chosen
        if chosen is None:
            return
        refused = APPROVED if self._examination.approval else why_not_waived(chosen, self._policy, user())
        if refused:
            self.sfumato.say(refused)
        else:
            question = WaiverReason(chosen, self._waive.get(chosen.check, ""))
            await self.sfumato.open(question, partial(self._keep, chosen.check))

    def _keep(self, check: str, reason: str | None) -> None:
        if reason is None:
            return
        if not reason and self._waive.pop(check, None) is not None:
            self.sfumato.say(f"{check} is waived no longer")
        elif wrong := no_justification(reason, check):
            self.sfumato.say(wrong)
        else:
            self._waive[check] = reason
            self.sfumato.say(f"{check} is waived when the release is written")
        self._show()

    def action_close(self) -> None:
        """Close with what is waived."""
        self.dismiss(self._waive)


def no_justification(reason: str, what: str) -> str:
    """Why a reason is no justification of ``what``; empty where it is one."""
    from sfumato.workspace.justification import checked_justification

    try:
        checked_justification(reason, what)
    except BadInput as error:
        return str(error)
    return ""


class WaiverReason(Dialog[str]):
    """Answers why a finding is let pass; nothing takes the waiver back."""

    AUTO_FOCUS = "Input"

    def __init__(self, finding: Finding, reason: str) -> None:
        super().__init__()
        self._finding, self._reason = finding, reason

    def compose(self) -> ComposeResult:
        """What blocks, and a field for the reason."""
        with Vertical(classes="dialog"):
            title = f"Waive {self._finding.check}   (enter keeps the reason, escape closes)"
            yield Static(title, classes="dialog-title", markup=False)
            yield Static(f"{printable(self._finding.said)}.\n", markup=False)
            yield Entry(self._reason, placeholder="why it is let pass; kept in the audit log", id="waiver-reason")

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class Explained(Dialog[None]):
    """One finding in words, and the reason for which it is waived where there is one."""

    AUTO_FOCUS = "Scroll"

    def __init__(self, finding: Finding, waived: str = "") -> None:
        super().__init__()
        self._finding = finding
        self._text = [*finding_text(finding), *([f'Waived here: "{printable(waived)}"'] if waived else [])]

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
        paragraphs = [[Content(line) for line in wrap(text, width)] for text in self._text]
        lines = [line for paragraph in paragraphs for line in (*paragraph, Content(""))]
        pane.show(Content("\n").join(lines))
