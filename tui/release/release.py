"""A run's release: what would go out, the verdicts on it, where to, and why when something speaks against it.

It has three steps: what the gate found, one line a check, each block with its justification, where the policy lets this account waive;
what leaves; and the question. Afterwards it says what was released, when and by whom.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Label, Static

from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind
from sfumato.tui.session.gate_answers import SHORT_ANSWERS, ExaminedRun
from sfumato.tui.widgets.panel import SECOND, Box, Edge, Sides, TabEdge
from sfumato.workspace.release.forms import DatasetForm, form_for_file, writable_forms
from sfumato.workspace.reporting.findings import (
    COLUMNS,
    counts_text,
    finding_cells,
    finding_text,
    folded_text,
    is_open,
    judged_cells,
)
from sfumato.workspace.reporting.tables import Column
from sfumato.workspace.reporting.words import mark
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.dialogs import Confirm
from ..parts.gate_lines import EXAMINING, answer_lines, most_answer_lines, titled_with_witnesses
from ..parts.page import Beside, Dialog
from ..parts.split import TwoPanes
from ..parts.tables import TableScreen
from ..parts.verdict_board import board
from ..session.messages import ErrorMessage
from ..widgets.entries import Entry, Filter, PathName
from ..widgets.grid import LiveGrid
from ..widgets.lines import KeyLine, Line, Scroll, TabLine
from ..widgets.tables import Table, columns_of

if TYPE_CHECKING:
    from sfumato.workspace.gate.contents import ReleasePlan
    from sfumato.workspace.gate.gate import Finding
    from sfumato.workspace.service.release import PastRelease, WrittenRelease
    from sfumato.workspace.store.workspace import Workspace

    Opened = tuple[ReleasePlan, Sequence[PastRelease], DatasetForm]

NAMED = Column("title", "finding", 30, grows=1)
SHOWN = {
    "status": Column("status", "state", 16),
    "title": NAMED,
    "check": Column("check", "check", 23, spare=1),
    "held": Column("held", "compared", 8, "right"),
    "limit": Column("limit", "limit", 15, "right"),
    "people": Column("people", "people", 8, "right", spare=2),
}
"""Columns as the app has them: what a check looks for in words, and before all other numbers the one that is held against the limit, both in
their unit.
"""
APPROVED = "The release is approved as it was asked for; to waive more, ask for it anew"
GateRow: TypeAlias = "Finding | FoldedRow"
WHY = "Justify the release as a whole here, or each finding in step 1. The audit log keeps the reasons."
UNEXAMINED = "The gate could not look at the tables: nothing can be released"
NO_THRESHOLDS = "The recipe sets no thresholds: nothing has been judged."
BESIDE_COUNT = 50
"""Cells of the frame's upper edge that are not for what the place counts: its name and its steps."""
CONFIRM_KEYS = "enter asks to release, tab goes to the next field, esc leaves"
LOOKING = "reason; the gate is still looking"
FOLDERS = "Written to {}: its folder public/ leaves the building, its folder internal/ stays."
STEPS = {"findings": "1 Findings", "leaves": "2 What leaves", "confirm": "3 Confirm"}
"""The steps of a release, in their order."""
EXPLAINED_FROM = 116
"""Columns of a terminal from which on a finding is explained beside the list: 76 for status, finding, value and limit, 38 for it."""


@dataclass(frozen=True)
class FoldedRow:
    """The row that stands for the findings that pass or do not apply; ``enter`` there unfolds them."""

    text: str
    check: str = "passes"


def _table(waived: Container[str], witnesses: Callable[[str], Sequence[Finding]]) -> Table[GateRow]:
    """The findings, those of the checks that are ``waived`` said to be so, each with the number of its witnesses."""
    names = [column.name for column in COLUMNS]

    def values(one: GateRow) -> Mapping[str, object]:
        if isinstance(one, FoldedRow):
            return {**dict.fromkeys(names, ""), "status": mark("into"), "title": one.text}
        cells = zip(names, finding_cells(one, waived=one.check in waived), strict=True)
        title = titled_with_witnesses(one, witnesses(one.check))
        judged = judged_cells(one)
        # A check that was not made has nothing to compare with its limit.
        return {**dict(cells), **judged, "limit": judged["limit"] if judged["held"] else "", "title": title}

    columns = [SHOWN.get(column.name, replace(column, grows=0)) for column in COLUMNS]
    return Table(columns_of(columns), lambda one: one.check, values)


def no_justification(reason: str, what: str) -> str:
    """Why a reason is no justification of ``what``; empty where it is one."""
    from sfumato.workspace.policy.justification import checked_justification

    try:
        checked_justification(reason, what)
    except BadInput as error:
        return str(error)
    return ""


class Explained(Dialog[None]):
    """One finding in words, and the reason for which it is waived where there is one."""

    AUTO_FOCUS = "Scroll"

    def __init__(self, finding: Finding, waived: str = "", witnesses: Sequence[Finding] = ()) -> None:
        super().__init__()
        self._finding = finding
        self._text = [
            *finding_text(finding, witnesses),
            *([f'Waived here: "{replace_unprintable(waived)}"'] if waived else []),
        ]

    def compose(self) -> ComposeResult:
        with Box(self._finding.check, "q closes", tall=True):
            yield Scroll()

    def on_resize(self) -> None:
        self.call_after_refresh(self._lay_out)

    def _lay_out(self) -> None:
        pane = self.query_one(Scroll)
        width = max(20, pane.scrollable_content_region.width)
        paragraphs = [[Content(line) for line in wrap(text, width)] for text in self._text]
        lines = [line for paragraph in paragraphs for line in (*paragraph, Content(""))]
        pane.show(Content("\n").join(lines))


REASON, DIRECTORY, WAIVER = "release-reason", "release-directory", "release-waiver"


class FindingGrid(LiveGrid):
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("open", "select", "Justify or explain", show=True),
        bind("add", "waive", "Waive", show=True),
    ]

    class WaiverAsked(Message):
        """The user wants to waive the finding under the cursor."""

    def action_waive(self) -> None:
        self.post_message(self.WaiverAsked())


class Explanation(Scroll):
    """The finding under the cursor in words."""

    DEFAULT_CLASSES = SECOND
    pane_title = "Explanation"


class ReleaseScreen(TableScreen["GateRow"], Dialog[str]):
    """The place where a run that is done is released, in three steps: findings with their justifications, what leaves, and a question.

    Answers the place to go to, where it is left for another one.
    """

    manual = "release waive a finding"
    called = "release"

    DEFAULT_CSS = """
    ReleaseScreen Input { margin: 0 1; }
    ReleaseScreen Label { margin: 0 1; color: $text-muted; }
    ReleaseScreen .step { height: 1fr; display: none; }
    ReleaseScreen .step.here { display: block; }
    ReleaseScreen #gate-answer { padding: 0 1; height: auto; }
    ReleaseScreen #findings-body { height: 1fr; }
    ReleaseScreen #findings-list { height: 2fr; }
    ReleaseScreen FindingGrid { height: 1fr; }
    ReleaseScreen #findings-body.beside { layout: horizontal; }
    ReleaseScreen .beside #findings-list { height: 1fr; width: 1fr; min-width: 76; }
    ReleaseScreen Explanation { scrollbar-gutter: stable; }
    ReleaseScreen .beside Explanation { width: 30%; min-width: 38; padding: 0 0 0 1; }
    ReleaseScreen #release-text { height: 1fr; color: $text-muted; }
    ReleaseScreen #release-headline { padding: 1; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(bind(name, f"leave_for('{name}')") for name in ("data", "plan", "runs", "findings")),
        bind("release", "next_step", "Next step, then the first again"),
        bind("next", "step(1)", "Next step", show=True),
        bind("previous", "step(-1)", "Previous step"),
        bind("release_run", "write", "Release", show=True),
        bind("open", "step(1)", "Next step"),
        bind("request", "request", "Request"),
        bind("answer", "answer", "Answer"),
        bind("format", "form", "Format"),
        bind("next_pane", "app.focus_next", "Next field"),
    ]
    AUTO_FOCUS = "FindingGrid"

    computes = True

    def __init__(self, run_id: int, places: Mapping[str, str], where: Content | str = "") -> None:
        """``places`` are titles by name of the project, ``where`` its title line."""
        super().__init__()
        self._run_id, self._places, self._where = run_id, places, where
        self._form: DatasetForm = "csv"
        self._plan: ReleasePlan | None = None
        self._past: Sequence[PastRelease] = ()
        self._looked: ExaminedRun | None = None
        self._state = EXAMINING
        self._writing = False
        self._step = "findings"
        self._is_unfolded = False
        self._asked: Finding | None = None
        self._done: Path | None = None
        self._command: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        """The run, the steps, and the keys."""
        with Vertical(classes="whole"):
            yield Line(name="where")
            yield TabLine(self._places)
            yield TabEdge()
            with Sides():
                with Vertical(id="step-findings", classes="step here"):
                    with TwoPanes("findings-body", EXPLAINED_FROM):
                        with Vertical(id="findings-list"):
                            yield Static("", id="gate-answer", markup=False)
                            yield FindingGrid(empty="")
                        yield Explanation()
                    yield Label("", id="waiver-label", markup=False)
                    yield Filter(placeholder="Reason for waiving (kept in the audit log)", id=WAIVER)
                with Vertical(id="step-leaves", classes="step"):
                    yield Scroll()
                with Vertical(id="step-confirm", classes="step"):
                    yield Static("", id="release-headline", markup=False)
                    yield Label("Justification of the release", markup=False)
                    yield Entry(placeholder=LOOKING, id=REASON)
                    yield Label("Output folder", markup=False)
                    yield Entry(placeholder="new or empty; → completes", suggester=PathName(), id=DIRECTORY)
            yield Edge(name="release-head", lower=True)
            yield KeyLine()

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#where", Line).say(self._where)
        self.query_one(TabLine).active = "release"
        self._show_waiver(None)
        self.go_to("findings")

    def go_to(self, step: str) -> None:
        """Show a step and give it the keys."""
        self._step = step
        for name in STEPS:
            self.query_one(f"#step-{name}").set_class(name == step, "here")
        self._say_frame()
        self._say_head()
        first = {"findings": "FindingGrid", "leaves": "#step-leaves Scroll", "confirm": f"#{DIRECTORY}"}[step]
        self.query_one(first).focus()

    def action_step(self, step: int) -> None:
        """Go to the next step, or the previous one."""
        names = list(STEPS)
        at = names.index(self._step) + step
        if 0 <= at < len(names):
            self.go_to(names[at])

    def action_next_step(self) -> None:
        """What the key of a place does where it is shown already: go to the next of its views."""
        names = list(STEPS)
        self.go_to(names[(names.index(self._step) + 1) % len(names)])

    @on(TabLine.Chosen)
    def _choose_place(self, event: TabLine.Chosen) -> None:
        if event.name != "release":
            self.action_leave_for(event.name)

    def action_leave_for(self, place: str) -> None:
        """Go to another place of the project."""
        self._leave(place)

    @on(TabEdge.Chosen)
    def _choose_step(self, event: TabEdge.Chosen) -> None:
        self.go_to(event.name)

    def _say_head(self) -> None:
        """What is released; in the last step the keys, which its fields would take for text."""
        if self._step == "confirm":
            self._say(CONFIRM_KEYS)
        elif self._plan is not None:
            self._say(
                f"Release of run {self._plan.run.id} {replace_unprintable(self._plan.run.title)} · datasets as {self._form}"
            )

    def _say_frame(self) -> None:
        """``Release: may not leave · 2 block, 3 to be judged · 1 waived``."""
        said = ""
        if (looked := self._looked) is not None:
            answer = SHORT_ANSWERS[looked.answer.may_leave]
            counts = counts_text([one for one in looked.leads if one.status in ("block", "warn")])
            waived = f"{len(looked.waived_leads)} waived" if looked.waived_leads else ""
            shorter = (" · ".join(filter(None, parts)) for parts in ([answer, counts, waived], [answer, waived]))
            room = (self._list_width if self._step == "findings" else self.size.width) - BESIDE_COUNT
            said = f": {next((text for text in shorter if cell_len(text) <= room), answer)}"
        self.query_one(TabEdge).show(f"Release{said}", STEPS, self._step)

    @property
    def finding_here(self) -> Finding | None:
        """The finding under the cursor; None on the row that stands for others."""
        here = self.here
        return None if isinstance(here, FoldedRow) else here

    def manual_topics(self) -> Sequence[str]:
        chosen = self.finding_here if self._step == "findings" else None
        return (*(() if chosen is None else (f"release {chosen.check}",)), "release gate")

    def say_reading(self) -> None:
        """What was found, why it matters, and how to fix it."""
        here, scroll = self.finding_here, self.query_one(Explanation)
        width = max(20, scroll.scrollable_content_region.width)
        texts: list[str] = []
        if here is not None and (looked := self._looked) is not None:
            reason = looked.waive.get(here.check, "")
            texts = [
                *finding_text(here, looked.witnesses(here.check)),
                *([f'Waived: "{replace_unprintable(reason)}"'] if reason else []),
            ]
        elif isinstance(self.here, FoldedRow):
            texts = ["These checks pass, or do not apply to this kind of release. Press enter to show or hide them."]
        scroll.show(Content("\n").join(Content(line) for text in texts for line in wrap(text, width)))

    async def chosen(self, row: GateRow) -> None:
        """Justify a finding that blocks; explain another; show or hide what passes."""
        if isinstance(row, FoldedRow):
            self._is_unfolded = not self._is_unfolded
            self._show()
        elif row.status == "block":
            self._ask_waiver()
        else:
            witnesses = () if self._looked is None else self._looked.witnesses(row.check)
            await self.sfumato.open(Explained(row, witnesses=witnesses))

    @on(FindingGrid.WaiverAsked)
    def _ask_waiver(self) -> None:
        """Ask for the reason why the finding under the cursor is waived, or say why it cannot be."""
        from sfumato.workspace.audit import user
        from sfumato.workspace.gate.gate import waiver_obstacle

        here, looked = self.finding_here, self._looked
        if isinstance(self.here, FoldedRow):
            self.sfumato.say("What passes does not block this release")
        if here is None or looked is None:
            return
        refused = APPROVED if looked.examination.approval else waiver_obstacle(here, looked.policy, user())
        if refused:
            self.sfumato.say(refused)
        else:
            self._show_waiver(here)

    def _show_waiver(self, finding: Finding | None) -> None:
        """The field for the justification of a finding; out of sight for None."""
        self._asked = finding
        label, field = self.query_one("#waiver-label", Label), self.query_one(f"#{WAIVER}", Filter)
        label.display = field.display = finding is not None
        if finding is None:
            if field.has_focus:
                self.query_one(FindingGrid).focus()
            return
        label.update(f"Justification for {finding.check}: {finding.title}")
        field.value = "" if self._looked is None else self._looked.waive.get(finding.check, "")
        field.focus()

    @on(Filter.Left)
    def _leave_waiver(self) -> None:
        self._show_waiver(None)

    def _keep(self, check: str, reason: str) -> None:
        """Waive a check for a reason; without one it is waived no longer."""
        looked = self._looked
        if looked is None:
            return
        waive = dict(looked.waive)
        if not reason and waive.pop(check, None) is not None:
            self.sfumato.say(f"{check} is waived no longer")
        elif wrong := no_justification(reason, check):
            self.sfumato.say(wrong)
        else:
            waive[check] = reason
            self.sfumato.say(f"{check} is waived when the release is written")
        self._examined(replace(looked, waive=waive))

    def read_query(self) -> Callable[[Workspace], Opened]:
        """What would go out, and what went out before."""
        self._say(f"Release of run {self._run_id}")
        run_id = self._run_id

        def query(workspace: Workspace) -> Opened:
            from sfumato.workspace.gate.contents import plan_release
            from sfumato.workspace.service.release import past_releases

            plan = plan_release(workspace, run_id)
            return plan, past_releases(workspace, run_id), form_for_file(workspace.dataset(plan.run.dataset_id).name)

        return query

    def _say(self, text: str) -> None:
        self.query_one("#release-head", Line).say(text)

    def take(self, answer: Opened) -> None:
        """Show it; the datasets go out in the form that the confidential file came in."""
        if self._plan is None:
            self._form = answer[2]
        self._plan, self._past = answer[:2]
        self._show()
        plan, form, run_id = self._plan, self._form, self._run_id
        directory, memory = self.sfumato.directory, self.sfumato.gate_memory

        def ask(call: Beside) -> ExaminedRun:
            from sfumato.workspace.store.workspace import Workspace

            examined = memory.examine(directory, run_id, call)
            with Workspace.open(directory, read_only=True) as workspace:
                return _with_answer(workspace, plan, form, examined)

        self.call_beside(ask, self._examined)

    def _examined(self, looked: ExaminedRun) -> None:
        """Show what was found or waived, and keep it for the other places."""
        self._looked = looked
        self.sfumato.gate_memory.keep(looked)
        self.query_one(f"#{REASON}", Input).placeholder = looked.reason_hint
        self.refresh_bindings()
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A second person is asked where the policy says so."""
        if action in ("request", "answer") and (self._looked is None or not self._looked.policy.second_person):
            return False
        return super().check_action(action, parameters)

    async def action_request(self) -> None:
        """Ask, then write the request for another account to answer; first go to the reason where there is none."""
        looked, reason = self._looked, self.query_one(f"#{REASON}", Input).value.strip()
        if looked is None or self._writing:
            return
        if not reason:
            self._ask_for(REASON, "Write why the data are to be released, for whoever approves it")
        elif wrong := no_justification(reason, "The request"):
            self._ask_for(REASON, wrong)
        else:
            question = Confirm(
                f"Ask another account for the release of run {self._run_id}?",
                f"The request goes to {replace_unprintable(looked.policy.approvals)}, and this is recorded in the audit log. "
                "An answer to an earlier request holds no longer.",
            )
            await self.sfumato.open(question, lambda yes: self._request(looked, reason) if yes else None)

    def _request(self, looked: ExaminedRun, reason: str) -> None:
        run_id, waive, form = self._run_id, dict(looked.waive), self._form

        def query(workspace: Workspace) -> Path:
            from sfumato.workspace.release.approval import request_release

            return request_release(workspace, run_id, reason, waive, form)

        self._writing = True
        self._say(f"Asking for the release of run {run_id} …")
        self.compute(query, self._requested)

    def _requested(self, request: Path) -> None:
        self._writing = False
        self.sfumato.say(f"Asked for; another account answers with: sfumato approve {request} --reason TEXT")
        self.reload()

    def action_answer(self) -> None:
        """Look for the answer of the other account."""
        self._look_for_answer(self._answered)

    def _look_for_answer(self, show: Callable[[ExaminedRun], None]) -> None:
        looked, plan, form = self._looked, self._plan, self._form
        if looked is not None and plan is not None and not self._writing:
            self.compute(lambda workspace: _with_answer(workspace, plan, form, looked), show)

    def _answered(self, looked: ExaminedRun) -> None:
        self.sfumato.say(replace_unprintable(answer_text(looked)))
        self._examined(looked)

    def on_resize(self) -> None:
        """Have the explanation of a finding where there is room for it, and lines of its width."""
        for panes in self.query(TwoPanes):
            panes.lay_out()
        self._show()
        self.call_after_refresh(self.say_reading)

    def _show(self) -> None:
        if self._plan is None:
            return
        self._say_head()
        width = max(40, self.size.width - 6)
        self.query_one("#step-leaves Scroll", Scroll).show(
            Content("\n").join(release_text(self._plan, self._looked, self._past, self._form, width, self._done))
        )
        self._say_frame()
        answer = self.query_one("#gate-answer", Static)
        if (looked := self._looked) is None:
            answer.update(Content.styled(self._state, "bold"))
            self.grid.set_empty("")
            self.show_rows(_table((), lambda _: ()), [])
            return
        answer.update(
            Content("\n").join(answer_lines(looked.answer, self._list_width, most_answer_lines(self.size.height)))
        )
        leads = looked.leads
        open_findings, closed = [one for one in leads if is_open(one)], [one for one in leads if not is_open(one)]
        rows: list[GateRow] = [*open_findings]
        if closed:
            rows += [FoldedRow(folded_text(closed)), *(closed if self._is_unfolded else [])]
        self.show_rows(_table(looked.waived_checks, looked.witnesses), rows)
        self.query_one("#release-headline", Static).update(self._headline(looked))

    @property
    def _list_width(self) -> int:
        """Cells for a line of text above the list, as the style sheet of this screen leaves them."""
        width = self.size.width - 4
        return width if self.size.width < EXPLAINED_FROM else width - max(38, (width + 2) * 30 // 100)

    def _headline(self, looked: ExaminedRun) -> str:
        waived = len(looked.waived_leads)
        return headline(self._run_id, waived, len(looked.blocking_leads) - waived)

    def action_form(self) -> None:
        """Write the datasets in the next of the forms."""
        known = writable_forms()
        self._form = known[(known.index(self._form) + 1) % len(known)]
        self._show()
        if self._looked is not None and self._looked.policy.second_person:  # an approval is for one form
            self._look_for_answer(self._examined)

    def action_close(self) -> None:
        self._leave(None)

    def _leave(self, place: str | None) -> None:
        """Leave, but not while the release is being written."""
        if self._writing:
            self.sfumato.say("The release is being written")
        else:
            self.dismiss(place)

    @on(Input.Submitted)
    async def _submitted(self, event: Input.Submitted) -> None:
        """What the field is for: the reason of a request asks, all else writes."""
        looked = self._looked
        if event.input.id == WAIVER:
            if self._asked is not None:
                self._keep(self._asked.check, event.value.strip())
            self._show_waiver(None)
        elif event.input.id == REASON and looked is not None and looked.policy.second_person and looked.unapproved:
            await self.action_request()
        else:
            await self.action_write()

    async def action_write(self) -> None:
        """Ask, then write the release; first go to a field that has to be filled in."""
        if self._plan is None or self._writing:
            return
        looked = self._looked
        if looked is None:
            self.sfumato.say(self._state)
            return
        reason, directory = (self.query_one(f"#{name}", Input).value.strip() for name in (REASON, DIRECTORY))
        alone = not looked.policy.second_person
        if looked.unapproved or (alone and looked.why_no_reason_helps):
            self.sfumato.say(replace_unprintable(looked.unapproved or looked.why_no_reason_helps))
        elif alone and looked.left and not reason:
            self._ask_for(REASON, WHY)
        elif reason and (wrong := no_justification(reason, "The release")):
            self._ask_for(REASON, wrong)
        elif not directory:
            self._ask_for(DIRECTORY, "Name the directory to write the release to")
        else:
            question = Confirm(
                f"{self._headline(looked)} to {directory}?",
                "This is recorded in the audit log.",
                "Release",
            )
            await self.sfumato.open(question, lambda yes: self._write(directory, reason) if yes else None)

    def _ask_for(self, field: str, text: str) -> None:
        self.go_to("confirm")
        self.query_one(f"#{field}", Input).focus()
        self.sfumato.say(text)

    def _write(self, directory: str, reason: str) -> None:
        run_id, form = self._run_id, self._form
        waive = {} if self._looked is None else dict(self._looked.waive)
        waived = (word for check, why in waive.items() for word in ("--waive", f"{check}={why}"))
        said = ("--reason", reason) if reason else ()
        where = str(Path(directory).expanduser().absolute())
        self._command = ("release", str(run_id), "-o", where, *said, *waived, "--format", form)

        def query(workspace: Workspace) -> WrittenRelease:
            from sfumato.workspace.errors import NotReleased
            from sfumato.workspace.service.release import write_run_release

            try:
                return write_run_release(workspace, run_id, Path(directory), form, reason, waive)
            except OSError as error:
                raise NotReleased(f"The release cannot be written: {error.strerror}") from None

        self._writing = True
        self._say(f"Writing the release of run {run_id} …")
        self.compute(query, self._finish)

    @on(ErrorMessage)
    def _fail(self) -> None:
        self._writing = False
        self._state = UNEXAMINED
        self._show()

    def _finish(self, done: WrittenRelease) -> None:
        self._writing = False
        self.sfumato.note_command(self._command)
        self.sfumato.say(f"Run {self._run_id} released to {done.directory}: {count_noun(len(done.files), 'file')}")
        self._done = done.directory
        self.go_to("leaves")
        self.reload()


def _with_answer(workspace: Workspace, plan: ReleasePlan, form: DatasetForm, looked: ExaminedRun) -> ExaminedRun:
    """With what the second person has answered by now, where the policy asks for one."""
    from sfumato.workspace.release.approval import approve_or_explain

    if not looked.policy.second_person:
        return looked
    bare = replace(looked.examination, waivers=(), approval=None)
    examination, open_for = approve_or_explain(workspace, plan, looked.policy, bare, form)
    return replace(looked, examination=examination, unapproved=open_for)


def answer_text(looked: ExaminedRun) -> str:
    """How the second person's approval stands."""
    approval = looked.examination.approval
    if approval is None:
        return f"A second person: {looked.unapproved} (? has Request and Answer)"
    return f'A second person: {approval.approved_by} approved it: "{approval.approval_reason}"'


def headline(run_id: int, waived: int, left: int) -> str:
    """``Release run 7 with 2 blocks waived by ana``."""
    from sfumato.workspace.audit import user

    parts = [f"{count_noun(waived, 'block')} waived by {user()}"] if waived else []
    parts += [f"{count_noun(left, 'block')} not waived"] if left else []
    return replace_unprintable(f"Release run {run_id}" + (f" with {' and '.join(parts)}" if parts else ""))


def release_text(
    plan: ReleasePlan,
    looked: ExaminedRun | None,
    past: Sequence[PastRelease],
    form: DatasetForm,
    width: int,
    done: Path | None = None,
) -> list[Content]:
    """The verdicts, what the gate found, what goes out, and what went out before, in lines of at most ``width`` cells."""
    lines = (
        [] if done is None else [Content(line) for line in wrap(FOLDERS.format(replace_unprintable(str(done))), width)]
    )
    if past:
        lines += [Content.styled("Released", "bold")]
        lines += [Content(line) for one in past for line in wrap(_past_text(one), width, subsequent_indent="  ")]
    lines += [Content("")] * bool(lines) + [Content.styled("What leaves", "bold")]
    for name, text in _contents(plan, form):
        lines += [Content(line) for line in wrap(f"{name}: {replace_unprintable(text)}", width, subsequent_indent="  ")]
    lines += [Content(""), *_gate_text(looked, width), Content("")]
    lines += [board(plan.verdicts, width) if plan.verdicts else Content(NO_THRESHOLDS)]
    return lines


def _gate_text(looked: ExaminedRun | None, width: int) -> list[Content]:
    if looked is None:
        return [Content(EXAMINING)]
    leads, waived_checks = looked.leads, looked.waived_checks
    lines = [Content.styled(f"The gate: {counts_text(leads)} (step 1 explains)", "bold")]
    for one in leads:
        if is_open(one):
            waived = one.check in waived_checks
            said = (
                f"{'waived' if waived else mark(one.status)} {one.title} ({one.check}): {replace_unprintable(one.said)}"
            )
            style = "$error bold" if one.status == "block" and not waived else ""
            lines += [Content.styled(line, style) for line in wrap(said, width, subsequent_indent="  ")]
    if looked.policy.second_person:
        style = "$warning bold" if looked.unapproved else ""
        lines += [Content.styled(line, style) for line in wrap(replace_unprintable(answer_text(looked)), width)]
    elif looked.left:
        lines += [
            Content.styled(line, "$warning bold")
            for line in wrap(replace_unprintable(looked.why_no_reason_helps or WHY), width)
        ]
    return lines


def _contents(plan: ReleasePlan, form: DatasetForm) -> list[tuple[str, str]]:
    parts = [
        ("datasets", f"{plan.datasets} of {plan.records:,} records, {plan.row_order_text}"),
        ("replaced", ", ".join(plan.replaced)),
        ("as they are in the confidential data", ", ".join(plan.unchanged_variables)),
        ("coarser by a public rule", ", ".join(plan.recoded_variables)),
        ("left out, identifiers", ", ".join(plan.left_out)),
        ("public/", f"datasets as {form}, codebook, manifest: this leaves the building"),
        ("internal/", "report, recipe, results, examination, manifest: as confidential as the data"),
    ]
    return [(name, text) for name, text in parts if text]


def _past_text(past: PastRelease) -> str:
    reason = f', because "{replace_unprintable(past.reason)}"' if past.reason else ""
    return f"{past.time[:16].replace('T', ' ')} UTC by {past.user}, as {past.form}{reason}; manifest {past.manifest_sha256[:12]}"
