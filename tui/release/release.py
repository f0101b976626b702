"""Screen to release a run in three steps: the gate's findings with their justifications, the contents, and a question.

Findings that block can be justified if the policy lets this account waive them. Afterwards the screen shows what was
released, when and by whom.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

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
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.keys.own_keys import current_key
from sfumato.tui.session.gate_answers import ExaminedRun
from sfumato.tui.widgets.panel import SECOND, DialogBox, FrameEdge, FrameRule, FrameSides, TabEdge
from sfumato.workspace.release.forms import DatasetForm, form_for_file, writable_forms
from sfumato.workspace.reporting.findings import (
    finding_sections,
    finding_text,
    is_open,
    state_text,
)
from sfumato.workspace.reporting.harm import not_applying_text, passes_text
from sfumato.workspace.reporting.tables import COLUMN_GAP, DisplayColumn, grid_width
from sfumato.workspace.reporting.words import sign_for
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.answer_panel import TITLE_NEEDS, answer_title, shorter_answer_titles
from ..parts.dialogs import ConfirmDialog
from ..parts.gate_lines import EXAMINING, INKS, answer_lines
from ..parts.harm_lines import finding_row_cells
from ..parts.page import CallInProcess, Dialog
from ..parts.split import SIDES, TwoPanes
from ..parts.tables import TableScreen
from ..parts.verdict_board import board_text
from ..session.messages import ErrorMessage
from ..session.release_texts import (
    STAYS,
    brief_contents_facts,
    confirmation_facts,
    confirmation_groups,
    contents_and_place_facts,
    public_files_facts,
    release_files_facts,
    signature_facts,
    steps_before_release,
)
from ..terminal.text import fit_text
from ..widgets.entries import EntryField, FilterField, PathSuggester
from ..widgets.facts import fact_lines, run_in_lines, wrap_text
from ..widgets.grid import HEADER, LiveGrid
from ..widgets.lines import KeyLine, Line, OverflowScroll, Scroll, TabLine
from ..widgets.tables import GridTable, table_columns

if TYPE_CHECKING:
    from sfumato.workspace.gate.answer import ReleaseAnswer
    from sfumato.workspace.gate.contents import ReleasePlan
    from sfumato.workspace.gate.gate import Finding
    from sfumato.workspace.reporting.ledger import PopulationLedger
    from sfumato.workspace.service.release import PastRelease, WrittenRelease
    from sfumato.workspace.store.workspace import Workspace

    Opened = tuple[ReleasePlan, Sequence[PastRelease], DatasetForm]

FINDING_COLUMN = DisplayColumn("what", "what", 30, grow_order=1)
FOUND_COLUMN = DisplayColumn("found", "found", 14, "right")
FINDING_COLUMNS = (
    DisplayColumn("state", "state", 11),
    FINDING_COLUMN,
    FOUND_COLUMN,
    DisplayColumn("limit", "limit", 17, drop_order=1),
)
"""Columns as in Findings: the state in a word, the title of a check, what was found, and its limit."""
LEAST_FOUND = 12
"""Least width of the column of what was found in cells."""
SECTIONS = re.compile(r" \(\[+\w+\]+[^()]*\)")
"""Where a change stands in the recipe, which the places of the app lead to without its name."""
APPROVED_AS_REQUESTED = "The release is approved as requested; to waive more, request it again"
GateRow: TypeAlias = "Finding | FoldedRow"
JUSTIFY_HINT = "Justify the release as a whole here, or each finding in step 1. The audit log keeps the reasons."
UNEXAMINED = "The gate could not look at the tables: nothing can be released"
NO_THRESHOLDS = "The recipe sets no thresholds: nothing has been judged."
CONFIRM_KEYS = "enter in a field asks to release, tab goes to the next field, esc leaves"
ASK = "Ask to release"
"""What enter does in a field of the last step."""
STILL_EXAMINING = "Justification; the gate is still looking"
REASON_PLACE = "a reason in words; the audit log keeps it"
FOLDERS = "Written to {}: its folder public/ leaves the building, its folder internal/ stays."
STEPS = {"findings": "1 Findings", "leaves": "2 What leaves", "confirm": "3 Confirm"}
"""Steps of a release in their order, with their titles."""
FRAME_LINES = 8
"""Lines of the screen that are neither above the list nor findings: title, places, edges, rule, head of the list, keys."""
EDGES = 5
"""Lines of the screen outside the frame, with those of its edges."""
BETWEEN_PARTS = 2
"""Lines of a part below the findings besides its facts: a blank one and its title."""
BELOW_FINDINGS = 2
"""Blank lines between the findings and what leaves, which is read after them."""
BRIEF_LINES = 2
"""Lines of the answer in a low terminal, which has no room for the steps."""
LOW = 20
"""Lines of a terminal below which the steps are left out on the first page: the second and third have them."""
AIRY = 30
"""Lines of a terminal from which parts of a page have blank lines between them."""
FINDINGS = "Findings"
TODO = "Before it may leave"
"""Heading of the steps before a release."""
QUIET = "$text-muted"
"""Ink of what is read after the findings."""
STEP_WEIGHTS = {"block": "bold", "done": QUIET}
"""Style of the text of a step by its state: what blocks is the heaviest, what is done the lightest."""
STEP_SIGNS = {"block": "block", "warn": "warn", "not checked": "not checked", "open": "queued", "done": "done"}
"""The sign of each step before a release, as ``sign_for`` knows it."""
LOW_EXPLANATION = 12
"""Lines of an explanation below which its headings have no lines of their own, and there are no blank ones."""
LEAST_EXPLANATION, EASY_EXPLANATION = 3, 6
"""Lines of the explanation below a list that needs all others, with the rule above it; and from which a blank line above
the list takes none that it needs.
"""
EXPLANATION_MIN_WIDTH = 116
"""Width of a terminal from which a finding is explained beside the list."""
LIST_MIN_WIDTH, EXPLANATION_PERCENT = 78, 40
"""Cells that the list keeps for status, finding and value, and the share of the width of the explanation beside it."""


@dataclass(frozen=True)
class FoldedRow:
    """Row that stands for the findings that pass or do not apply; ``enter`` unfolds them."""

    text: str
    check: str = "passes"


def _findings_table(looked: ExaminedRun | None, width: int) -> GridTable[GateRow]:
    """Return the table of the findings in ``width`` cells, with waived ones marked, and without columns that are empty."""

    def values(one: GateRow) -> Mapping[str, object]:
        """Return the cells of a finding or of the folded row."""
        if isinstance(one, FoldedRow) or looked is None:
            text = one.text if isinstance(one, FoldedRow) else ""
            return {"state": sign_for("into"), "what": text, "found": "", "limit": ""}
        waived, people = one.check in looked.waived_checks, int(looked.release_answer.records)
        return finding_row_cells(one, is_waived=waived, people=people)

    cells = [values(one) for one in looked.lead_findings if is_open(one)] if looked is not None else []

    def longest(name: str) -> int:
        """Return the cells that the longest cell of a column needs."""
        return max((cell_len(str(one[name])) for one in cells), default=0)

    columns = [one for one in FINDING_COLUMNS if one.name not in ("found", "limit") or longest(one.name)]
    found = replace(FOUND_COLUMN, width=max(LEAST_FOUND, longest("found")))
    columns = [found if one is FOUND_COLUMN else one for one in columns]
    others = grid_width([one for one in columns if one.name in ("state", "found")]) + COLUMN_GAP
    # A whole title says more than a limit, which the explanation has too.
    what = replace(FINDING_COLUMN, width=max(FINDING_COLUMN.width, min(longest("what"), width - others)))
    columns = [what if one is FINDING_COLUMN else one for one in columns]
    return GridTable(table_columns(columns), lambda one: one.check, values)


def justification_problem(reason: str, what: str) -> str:
    """Return why a reason is not a valid justification of ``what``; empty if it is."""
    from sfumato.workspace.policy.justification import checked_justification

    try:
        checked_justification(reason, what)
    except BadInput as error:
        return str(error)
    return ""


class TextDialog(Dialog[Any]):
    """Dialog with paragraphs of text below a title."""

    AUTO_FOCUS = "Scroll"

    def __init__(self, title: str, text: Sequence[str]) -> None:
        """Create the dialog with a title and its paragraphs."""
        super().__init__()
        self._box_title, self._text = title, list(text)

    def compose(self) -> ComposeResult:
        """Yield the box for the text."""
        with DialogBox(self._box_title, "q closes", tall=True):
            yield Scroll()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_text)

    def _show_text(self) -> None:
        """Write the text for the width of the dialog."""
        pane = self.query_one(Scroll)
        width = max(20, pane.scrollable_content_region.width)
        paragraphs = [[Content(line) for line in wrap(text, width)] for text in self._text]
        lines = [line for paragraph in paragraphs for line in (*paragraph, Content(""))]
        pane.show_text(Content("\n").join(lines))


class FindingDialog(TextDialog):
    """Dialog about one finding, with the reason for its waiver if it has one."""

    def __init__(self, finding: Finding, waived: str = "", witnesses: Sequence[Finding] = ()) -> None:
        """Create the dialog about a finding."""
        own = [f'Waived here: "{replace_unprintable(waived)}"'] if waived else []
        title = f"{finding.title[:1].upper()}{finding.title[1:]}"
        super().__init__(title, [*(SECTIONS.sub("", text) for text in finding_text(finding, witnesses)), *own])


class LedgerDialog(TextDialog):
    """Dialog with what was spent of the privacy budget of the people of a project."""

    def __init__(self, ledger: PopulationLedger) -> None:
        """Create the dialog about a ledger."""
        from sfumato.workspace.reporting.ledger import charge_sentences, ledger_sentences

        lines = [*ledger_sentences(ledger), *charge_sentences(ledger)]
        super().__init__("Privacy ledger", [replace_unprintable(line) for line in lines])


def check_other_people(in_use: frozenset[str], table: dict[str, Any]) -> None:
    """Raise BadInput unless a form gives other people a new name and says in words who was asked."""
    from sfumato.workspace.policy.justification import checked_full_justification
    from sfumato.workspace.service.population import check_new_population

    check_new_population(table.get("population", ""), in_use, "population")
    checked_full_justification(str(table.get("reason", "")), "reason")


REASON, DIRECTORY, WAIVER = "release-reason", "release-directory", "release-waiver"


class FindingGrid(LiveGrid):
    """Grid of findings in which enter justifies or explains one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("open", "select", "Justify or explain", show=True),
        bind_act("add", "waive", "Justify"),
    ]

    class WaiverRequested(Message):
        """Message that the user wants to waive the finding under the cursor."""

    def action_waive(self) -> None:
        """Request to waive the finding under the cursor."""
        self.post_message(self.WaiverRequested())


class Explanation(OverflowScroll):
    """Explanation of the finding under the cursor."""

    DEFAULT_CLASSES = SECOND
    pane_title = "Explanation"


class AgreedContents(OverflowScroll):
    """What leaves, who can be found by it, and to where."""


class ReleaseScreen(TableScreen["GateRow"], Dialog[str]):
    """Screen on which a finished run is released, in three steps: findings with their justifications, contents, and a
    question.

    It returns the place to go to, if the user chose another one.
    """

    manual = "release waive a finding"
    id_prefix = "release"

    DEFAULT_CSS = """
    ReleaseScreen Input { margin: 0 1; }
    ReleaseScreen Label { margin: 0 1; color: $text-muted; }
    ReleaseScreen .step { height: 1fr; display: none; }
    ReleaseScreen .step.here { display: block; }
    ReleaseScreen #gate-answer { padding: 0 1; height: auto; }
    ReleaseScreen #findings-body { height: 1fr; }
    ReleaseScreen #findings-list { height: 2fr; }
    ReleaseScreen FindingGrid { height: 1fr; }
    ReleaseScreen #release-below { height: auto; padding: 0 1; display: none; }
    ReleaseScreen #findings-body.beside { layout: horizontal; }
    ReleaseScreen .beside #findings-list { height: 1fr; width: 1fr; }
    ReleaseScreen Explanation { scrollbar-gutter: stable; }
    ReleaseScreen .beside Explanation { padding: 0 0 0 1; }
    ReleaseScreen #release-headline { padding: 0 1; text-style: bold; }
    ReleaseScreen AgreedContents { height: 1fr; margin: 1 0 0 0; padding: 0 1; scrollbar-gutter: stable; }
    ReleaseScreen .airy #gate-answer { padding: 1; }
    ReleaseScreen .airy #release-headline { padding: 1; }
    ReleaseScreen .airy #directory-label { margin: 1 1 0 1; }
    ReleaseScreen #step-confirm Label { width: 100%; color: $foreground; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(bind_act(name, f"leave_for('{name}')") for name in ("data", "plan", "runs", "findings", "projects")),
        bind_act("release", "first_step", "The first step"),
        bind_act("next_tab", "step(1)", "Next step", show=True),
        bind_act("previous_tab", "step(-1)", "Previous step"),
        bind_act("release_run", "write", "Release", show=True),
        bind_act("open", "go_on", "Next step", show=True),
        bind_act("back", "close", "Leave", show=True),
        bind_act("request", "request", "Request"),
        bind_act("answer", "answer", "Answer"),
        bind_act("format", "form", "Format"),
        bind_act("ledger", "ledger", "Privacy ledger"),
        bind_act("others", "others", "Other people"),
        bind_act("next_pane", "app.focus_next", "Next field", show=True),
    ]
    AUTO_FOCUS = "FindingGrid"

    needs_engine = True

    def __init__(
        self, run_id: int, places: Mapping[str, str], where: Callable[[ReleaseAnswer | None], Content]
    ) -> None:
        """Create the screen for a run.

        places: titles of the project's places by name
        where: function that returns the title line with the gate's answer, None before there is one
        """
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
        """Yield the run, the steps, and the keys."""
        with Vertical(classes="whole"):
            yield Line(name="where")
            yield TabLine(self._places)
            yield TabEdge()
            with FrameSides():
                with Vertical(id="step-findings", classes="step here"):
                    yield Static("", id="gate-answer", markup=False)
                    yield FrameRule(name="findings-rule", text=FINDINGS)
                    with TwoPanes("findings-body", EXPLANATION_MIN_WIDTH):
                        with Vertical(id="findings-list"):
                            yield FindingGrid(empty="")
                            yield Static("", id="release-below", markup=False)
                        yield Explanation()
                    yield Label("", id="waiver-label", markup=False)
                    yield FilterField(placeholder="Reason for waiving (kept in the audit log)", id=WAIVER)
                with Vertical(id="step-leaves", classes="step"):
                    yield Scroll()
                with Vertical(id="step-confirm", classes="step"):
                    yield Static("", id="release-headline", markup=False)
                    yield Label(STILL_EXAMINING, id="reason-label", markup=False)
                    yield EntryField(placeholder=REASON_PLACE, id=REASON, open_word=ASK)
                    yield Label("Output folder", id="directory-label", markup=False)
                    yield EntryField(
                        placeholder="new or empty; → completes", suggester=PathSuggester(), id=DIRECTORY, open_word=ASK
                    )
                    yield AgreedContents()
            yield FrameEdge(name="release-head", lower=True)
            yield KeyLine()

    def on_mount(self) -> None:
        """Show the title and the first step; the base class's own handler runs as well."""
        self.query_one("#where", Line).set_text(self._where(None))
        self.query_one(TabLine).active = "release"
        self._show_waiver_field(None)
        for name, text in self.sfumato.gate_memory.typed_texts(self._run_id).items():
            self.query_one(f"#{name}", Input).value = text
        self.go_to_step("findings")

    def go_to_step(self, step: str) -> None:
        """Show a step and focus it."""
        self._step = step
        for name in STEPS:
            self.query_one(f"#step-{name}").set_class(name == step, "here")
        self._show_frame_text()
        self._show_head()
        self.refresh_bindings()
        first = {"findings": "FindingGrid", "leaves": "#step-leaves Scroll", "confirm": f"#{DIRECTORY}"}[step]
        self.query_one(first).focus()

    def action_step(self, step: int) -> None:
        """Go to the next step, or the previous one."""
        names = list(STEPS)
        at = names.index(self._step) + step
        if 0 <= at < len(names):
            self.go_to_step(names[at])

    def action_go_on(self) -> None:
        """Go to the next step, and in the last one to the field for the folder."""
        if self._step == list(STEPS)[-1]:
            self.query_one(f"#{DIRECTORY}").focus()
        else:
            self.action_step(1)

    @property
    def open_word(self) -> str:
        """Return what enter does in the present step outside lists and fields, as the footer says it."""
        return "To the folder" if self._step == list(STEPS)[-1] else "Next step"

    def in_footer(self, action: str) -> bool:
        """Return whether the footer shows an action: those of fields where there are some, each act with one key."""
        if action == "app.focus_next":
            return self._step == list(STEPS)[-1]
        return action != "step(1)" or self._step == next(iter(STEPS))

    def action_first_step(self) -> None:
        """Go to the first step: the key of a place that is shown already."""
        self.go_to_step(next(iter(STEPS)))

    @on(TabLine.TabChosen)
    def _choose_place(self, event: TabLine.TabChosen) -> None:
        """Go to the clicked place."""
        if event.name != "release":
            self.action_leave_for(event.name)

    @on(TabLine.PageEntered)
    def _enter_step(self) -> None:
        """Go from the line of places to the step that is shown."""
        self.go_to_step(self._step)

    def action_leave_for(self, place: str) -> None:
        """Go to another place of the project."""
        self._leave_unless_writing(place)

    @on(TabEdge.EdgeTabChosen)
    def _choose_step(self, event: TabEdge.EdgeTabChosen) -> None:
        """Go to the clicked step."""
        self.go_to_step(event.name)

    def _show_head(self) -> None:
        """Show what is released; in the last step the keys."""
        # The fields of this step take letters as text, so only these keys work.
        if self._step == "confirm":
            self._show_head_text(CONFIRM_KEYS)
        elif self._plan is not None:
            self._show_head_text(
                f"Release of run {self._plan.run.id} {replace_unprintable(self._plan.run.title)}{_form_text(self._plan, self._form)}"
            )

    def _show_frame_text(self) -> None:
        """Show the same answer as Findings in the frame, and the steps."""
        answer = None if self._looked is None else self._looked.release_answer
        title = Content.styled("Release", "bold") if answer is None else answer_title(answer)
        shorter = () if answer is None else shorter_answer_titles(answer)
        self.query_one(TabEdge).show_tabs(title, STEPS, self._step, whole=True, shorter=shorter)

    @property
    def current_finding(self) -> Finding | None:
        """Return the finding under the cursor; None on the folded row."""
        here = self.current_row
        return None if isinstance(here, FoldedRow) else here

    def manual_topics(self) -> Sequence[str]:
        """Return the check under the cursor and the gate as topics of the manual."""
        chosen = self.current_finding if self._step == "findings" else None
        return (*(() if chosen is None else (f"release {chosen.check}",)), "release gate")

    def show_row_text(self) -> None:
        """Show the explanation of the current finding: what was found, why it matters, and how to fix it."""
        here, scroll = self.current_finding, self.query_one(Explanation)
        width = max(20, scroll.scrollable_content_region.width - 1)
        lines: list[Content] = []
        if here is not None and (looked := self._looked) is not None:
            reason = looked.waiver_reasons.get(here.check, "")
            sections = [("Waived", [f'"{replace_unprintable(reason)}"'])] if reason else []
            head = f"{state_text(here)}: {replace_unprintable(here.title)}"
            lines = [Content.styled(line, INKS[here.status] or "bold") for line in wrap(head, width)]
            for heading, paragraphs in [*sections, *finding_sections(here, looked.witness_findings(here.check))]:
                lines += [Content(""), Content.styled(heading, "$primary bold")]
                lines += [Content(line) for text in paragraphs for line in wrap_text(SECTIONS.sub("", text), width)]
            if scroll.size.height < LOW_EXPLANATION:
                # The list above says which finding it is, and blank lines would push what to do out of view.
                lines = [
                    line
                    for heading, paragraphs in [*sections, *finding_sections(here, looked.witness_findings(here.check))]
                    for line in run_in_lines(heading, SECTIONS.sub("", " ".join(paragraphs)), width)
                ]
        elif isinstance(self.current_row, FoldedRow):
            text = "These checks pass, or do not apply to this kind of release. Press enter to show or hide them."
            lines = [Content(line) for line in wrap(text, width)]
        scroll.show_text(Content("\n").join(lines))

    def open_word_of(self, row: GateRow) -> str | None:
        """Return what ``enter`` does on a row: fold what passes, justify what blocks, explain the others."""
        if isinstance(row, FoldedRow):
            return "Fold" if self._is_unfolded else "Unfold"
        return "Justify" if row.status == "block" else "Explain"

    async def open_row(self, row: GateRow) -> None:
        """Justify a finding that blocks; explain another; show or hide those that pass."""
        if isinstance(row, FoldedRow):
            self._is_unfolded = not self._is_unfolded
            self._show_steps()
        elif row.status == "block":
            self._ask_waiver()
        else:
            witnesses = () if self._looked is None else self._looked.witness_findings(row.check)
            await self.sfumato.open(FindingDialog(row, witnesses=witnesses))

    @on(FindingGrid.WaiverRequested)
    def _ask_waiver(self) -> None:
        """Ask for the reason why the finding under the cursor is waived, or show why it cannot be."""
        from sfumato.workspace.audit import user
        from sfumato.workspace.gate.gate import waiver_obstacle

        here, looked = self.current_finding, self._looked
        if isinstance(self.current_row, FoldedRow):
            self.sfumato.say("What passes does not block this release")
        if here is None or looked is None:
            return
        refused = APPROVED_AS_REQUESTED if looked.examination.approval else waiver_obstacle(here, looked.policy, user())
        if refused:
            self.sfumato.say(refused)
        else:
            self._show_waiver_field(here)

    def _show_waiver_field(self, finding: Finding | None) -> None:
        """Show the field for the justification of a finding; hide it for None."""
        self._asked = finding
        label, field = self.query_one("#waiver-label", Label), self.query_one(f"#{WAIVER}", FilterField)
        label.display = field.display = finding is not None
        field.open_word = "Waive"
        if finding is None:
            if field.has_focus:
                self.query_one(FindingGrid).focus()
            return
        label.update(f"Why may it leave in spite of {finding.title}?")
        field.value = "" if self._looked is None else self._looked.waiver_reasons.get(finding.check, "")
        field.focus()

    @on(FilterField.FilterCancelled)
    def _hide_waiver_field(self) -> None:
        """Hide the field for the justification."""
        self._show_waiver_field(None)

    def _set_waiver(self, finding: Finding, reason: str) -> None:
        """Waive a finding for a reason; without one remove its waiver."""
        looked, check = self._looked, finding.check
        if looked is None:
            return
        title = f"{finding.title[:1].upper()}{finding.title[1:]}"
        waive = dict(looked.waiver_reasons)
        if not reason and waive.pop(check, None) is not None:
            self.sfumato.say(f"{title} is waived no longer")
        elif wrong := justification_problem(reason, title):
            self.sfumato.say(wrong)
        else:
            waive[check] = reason
            self.sfumato.say(f"{title} is waived when the release is written")
        self._show_examination(replace(looked, waiver_reasons=waive))

    def read_query(self) -> Callable[[Workspace], Opened]:
        """Return the query for the contents of the release, and for earlier releases."""
        self._show_head_text(f"Release of run {self._run_id}")
        run_id = self._run_id

        def query(workspace: Workspace) -> Opened:
            """Plan the release, and read the earlier ones."""
            from sfumato.workspace.gate.contents import plan_release
            from sfumato.workspace.service.release import past_releases

            plan = plan_release(workspace, run_id)
            return (
                plan,
                past_releases(workspace, run_id),
                form_for_file(workspace.find_dataset(plan.run.dataset_id).name),
            )

        return query

    def _show_head_text(self, text: str) -> None:
        """Set the text of the lower edge."""
        self.query_one("#release-head", Line).set_text(text)

    def show_answer(self, answer: Opened) -> None:
        """Show the contents, and examine the release; the datasets have the format of the confidential file first."""
        # Later readings must not undo the format that the user has chosen.
        if self._plan is None:
            self._form = answer[2]
        self._plan, self._past = answer[:2]
        self._show_steps()
        plan, form, run_id = self._plan, self._form, self._run_id
        directory, memory = self.sfumato.directory, self.sfumato.gate_memory

        def ask(call: CallInProcess) -> ExaminedRun:
            """Examine the release in another process, and add the second person's answer."""
            from sfumato.workspace.store.workspace import Workspace

            examined = memory.examine(directory, run_id, call)
            with Workspace.open(directory, read_only=True) as workspace:
                return _with_approval(workspace, plan, form, examined)

        self.compute_in_processes(ask, self._show_examination)

    def _show_examination(self, looked: ExaminedRun) -> None:
        """Show the findings and waivers, and keep them for the other places."""
        self._looked = looked
        # A check that is waived here is shown as waived in Findings too.
        self.sfumato.gate_memory.store_examination(looked)
        self.query_one("#where", Line).set_text(self._where(looked.release_answer))
        self.query_one("#reason-label", Label).update(looked.reason_hint)
        self.refresh_bindings()
        self._show_steps()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable asking a second person if the policy requires one."""
        if action in ("request", "answer") and (self._looked is None or not self._looked.policy.second_person):
            return False
        return super().check_action(action, parameters)

    async def action_request(self) -> None:
        """Ask, then write the request for another account to answer; first go to the reason if it is empty."""
        looked, reason = self._looked, self.query_one(f"#{REASON}", Input).value.strip()
        if looked is None or self._writing:
            return
        if not reason:
            self._focus_field(REASON, "Write why the data are to be released, for whoever approves it")
        elif wrong := justification_problem(reason, "The request"):
            self._focus_field(REASON, wrong)
        else:
            question = ConfirmDialog(
                f"Ask another account for the release of run {self._run_id}?",
                f"The request goes to {replace_unprintable(looked.policy.approvals)}, and this is recorded in the audit log. "
                "An answer to an earlier request holds no longer.",
            )
            await self.sfumato.open(question, lambda yes: self._write_request(looked, reason) if yes else None)

    def _write_request(self, looked: ExaminedRun, reason: str) -> None:
        """Write the request in a thread."""
        run_id, waive, form = self._run_id, dict(looked.waiver_reasons), self._form

        def query(workspace: Workspace) -> Path:
            """Write the request and return its file."""
            from sfumato.workspace.release.approval import request_release

            return request_release(workspace, run_id, reason, waive, form)

        self._writing = True
        self._show_head_text(f"Asking for the release of run {run_id} …")
        self.compute(query, self._report_request)

    def _report_request(self, request: Path) -> None:
        """Report where the request is."""
        self._writing = False
        self.sfumato.say(f"Asked for; another account answers with: sfumato approve {request} --reason TEXT")
        self.reload()

    def action_answer(self) -> None:
        """Look for the answer of the other account."""
        self._look_for_answer(self._show_answer)

    def _look_for_answer(self, show: Callable[[ExaminedRun], None]) -> None:
        """Read the answer of the other account, and pass the examination with it to ``show``."""
        looked, plan, form = self._looked, self._plan, self._form
        if looked is not None and plan is not None and not self._writing:
            self.compute(lambda workspace: _with_approval(workspace, plan, form, looked), show)

    def _show_answer(self, looked: ExaminedRun) -> None:
        """Report the answer of the other account and show it."""
        self.sfumato.say(replace_unprintable(approval_text(looked)))
        self._show_examination(looked)

    def on_resize(self) -> None:
        """Show the explanation of a finding if there is room for it, and break lines at its width."""
        for panes in self.query(TwoPanes):
            panes.arrange_panes()
        is_beside = self.size.width >= EXPLANATION_MIN_WIDTH
        # The list begins at the rule, and the explanation beside it.
        self.query_one("#findings-rule", FrameRule).display = is_beside
        self.query_one(Explanation).styles.width = self._explanation_width if is_beside else None
        for step in self.query(".step"):
            step.set_class(self.size.height >= AIRY, "airy")
        self._show_steps()
        self.call_after_refresh(self.show_row_text)
        # A scrolling text knows its width once it is laid out.
        self.call_after_refresh(self._show_what_is_agreed)

    def _show_steps(self) -> None:
        """Show all steps in their present state."""
        if self._plan is None:
            return
        self._show_head()
        width = max(40, self.size.width - 6)
        overview = release_overview(self._plan, self._looked, self._past, self._form, width, self._done)
        if self.size.height >= AIRY and len(overview) < self.size.height - EDGES:
            overview.insert(0, Content(""))
        self.query_one("#step-leaves Scroll", Scroll).show_text(Content("\n").join(overview))
        self._show_frame_text()
        self._show_what_is_agreed()
        self._show_contents_below()
        answer = self.query_one("#gate-answer", Static)
        if (looked := self._looked) is None:
            answer.update(Content.styled(self._state, "bold"))
            self.grid.set_empty_text("")
            self.show_rows(_findings_table(None, self._list_width), [])
            return
        above = self._lines_above(looked, max(40, self.size.width - 4))
        leads = looked.lead_findings
        open_findings, closed = [one for one in leads if is_open(one)], [one for one in leads if not is_open(one)]
        rows: list[GateRow] = [*open_findings]
        if closed:
            folded = " · ".join(filter(None, (passes_text(closed, ()), not_applying_text(closed))))
            rows += [FoldedRow(folded), *(closed if self._is_unfolded else [])]
        self.show_rows(_findings_table(looked, self._list_width), rows)
        room = self.size.height - EDGES - len(above) - HEADER - len(rows)
        if above and self.size.height < AIRY and room > EASY_EXPLANATION:
            above.append(Content(""))
        answer.update(Content("\n").join(above))
        lines_above = len(above) + 2 * (self.size.height >= AIRY)
        self._show_contents_below(len(rows), lines_above)
        self._give_rows_to_explanation(len(rows), lines_above)
        self.query_one("#release-headline", Static).update(self._question_headline(looked))

    def _give_rows_to_explanation(self, rows: int, above: int) -> None:
        """Give the explanation below a short list the lines that the list does not need; ``above`` are those above it."""
        body, listed = self.query_one("#findings-body"), self.query_one("#findings-list")
        is_beside = self.size.width >= EXPLANATION_MIN_WIDTH
        left = self.size.height - EDGES - above
        # A list that is too long keeps all lines but the fewest in which an explanation says how to fix it.
        listed.styles.height = None if is_beside else min(rows + HEADER, max(HEADER + 1, left - LEAST_EXPLANATION))
        body.refresh(layout=True)

    @on(Input.Changed, f"#{DIRECTORY}")
    def _show_what_is_agreed(self) -> None:
        """Show what leaves, who can be found by it, and to where, below the fields of the last step."""
        if self._plan is None:
            return
        answer = None if self._looked is None else self._looked.release_answer
        folder = self.query_one(f"#{DIRECTORY}", Input).value.strip()
        groups = confirmation_groups(self._plan, self._form, answer, folder)
        apart = [("", "")] if self.size.height >= AIRY else []
        facts = [fact for place, group in enumerate(groups) for fact in (*(apart if place else []), *group)]
        agreed = self.query_one(AgreedContents)
        width = max(40, agreed.scrollable_content_region.width or self.size.width - 8)
        lines = [
            *fact_lines(facts, width),
            Content(""),
            Content.styled(TODO, "bold"),
            # The fields of this step take letters as text, so that no key of another step works here.
            *self._todo_lines(width, lambda _: ""),
        ]
        agreed.show_text(Content("\n").join(lines))

    def _lines_above(self, looked: ExaminedRun, width: int) -> list[Content]:
        """Return what stands above the list: the steps before the release may leave.

        The answer stands in the title of the frame, and with it only where that has no room, or there is none for the
        steps.
        """
        is_low, is_titled = self.size.height < LOW, self.size.width < TITLE_NEEDS
        most = BRIEF_LINES if is_low or is_titled else 0
        answer = answer_lines(looked.release_answer, width, most, titled=is_titled)[:most] if most else []
        return answer if is_low else [Content.styled(TODO, "bold"), *self._todo_lines(width), *answer]

    def _show_contents_below(self, rows: int = 0, above: int = 0) -> None:
        """Show what leaves below the findings, where they leave at least as much room below them as it needs.

        rows: lines of the list
        above: lines above it
        """
        below, plan, grid = self.query_one("#release-below", Static), self._plan, self.query_one(FindingGrid)
        if plan is None:
            return
        parts = [
            ("What leaves", brief_contents_facts(plan, self._form, self._looked, self._past)),
            ("The files", release_files_facts(plan, self._form)),
        ]
        room, lines = self.size.height - FRAME_LINES - BELOW_FINDINGS - above - rows, list[Content]()
        for title, facts in parts:
            part = [line.plain for line in fact_lines(facts, self._list_width)]
            if facts and len(lines) + BETWEEN_PARTS + len(part) <= room:
                lines += [Content("")] * bool(lines)
                lines += [Content.styled(title, f"{QUIET} bold"), *(Content.styled(one, QUIET) for one in part)]
        below.display = self.size.width >= EXPLANATION_MIN_WIDTH and bool(lines)
        # What leaves follows the last finding, and not the lower edge.
        grid.styles.height = rows + HEADER + BELOW_FINDINGS if below.display else "1fr"
        below.update(Content("\n").join(lines))

    def _todo_lines(self, width: int, key_of: Callable[[str], str] | None = None) -> list[Content]:
        """Return what has to be done before the release may leave: each step with its sign, its key and what to do."""
        if self._looked is None:
            return [Content(EXAMINING)]
        return step_lines(self._looked, width, key_of or self._key_of)

    def _key_of(self, act: str) -> str:
        """Return the key of an act as it is now."""
        return current_key(self.app, act)

    @property
    def _list_width(self) -> int:
        """Return the width in cells for text in the column of the list."""
        width = self.size.width - 4
        return width if self.size.width < EXPLANATION_MIN_WIDTH else width - self._explanation_width

    @property
    def _explanation_width(self) -> int:
        """Return the width in cells of the explanation beside the list, which keeps those that it needs."""
        both = self.size.width - SIDES
        return min(both * EXPLANATION_PERCENT // 100, both - LIST_MIN_WIDTH)

    def _question_headline(self, looked: ExaminedRun) -> str:
        """Return the headline of the question, with waived and remaining blocks."""
        waived = len(looked.waived_leads)
        return release_headline(self._run_id, waived, len(looked.blocking_leads) - waived)

    def action_form(self) -> None:
        """Write the datasets in the next format."""
        known = writable_forms()
        self._form = known[(known.index(self._form) + 1) % len(known)]
        self._show_steps()
        if self._looked is not None and self._looked.policy.second_person:  # an approval is for one form
            self._look_for_answer(self._show_examination)

    def action_ledger(self) -> None:
        """Show what was spent of the privacy budget of these people."""
        if self._plan is None:
            return
        project_id = self._plan.run.project_id

        def query(workspace: Workspace) -> PopulationLedger:
            """Read the ledger."""
            from sfumato.workspace.service.population import ledger_of_project

            return ledger_of_project(workspace, project_id)

        self.compute(query, self._show_ledger)

    async def _show_ledger(self, ledger: PopulationLedger) -> None:
        """Show a ledger in a dialog."""
        await self.sfumato.open(LedgerDialog(ledger))

    def action_others(self) -> None:
        """Ask for a name and a reason, and state that other people were asked."""
        if self._plan is None:
            return

        def query(workspace: Workspace) -> frozenset[str]:
            """Read the names that are in use."""
            from sfumato.workspace.service.population import population_names_in_use

            return population_names_in_use(workspace.connection)

        self.compute(query, partial(self._ask_for_other_people, self._plan.run.project_id))

    async def _ask_for_other_people(self, project_id: int, in_use: frozenset[str]) -> None:
        """Open the form for a new population of a project."""
        from ..parts.fields import FormField
        from ..parts.form import Form

        fields = [
            FormField("population", "a new name; the ledger of these people begins with the whole budget"),
            FormField("reason", "who was asked, and when; the audit log keeps it"),
        ]
        check = partial(check_other_people, in_use)
        await self.sfumato.open(
            Form("Other people were asked", fields, check, topic="release population"),
            partial(self._state_other_people, project_id),
        )

    def _state_other_people(self, project_id: int, table: dict[str, Any] | None) -> None:
        """State it in a thread, and examine the release again."""
        if table is None:
            return
        name, reason = table["population"], table["reason"]

        def query(workspace: Workspace) -> str:
            """Enter the statement and return the name of the project."""
            from sfumato.workspace.service.population import begin_population

            begin_population(workspace, project_id, name, reason)
            row = workspace.connection.execute("SELECT name FROM project WHERE id = ?", (project_id,)).fetchone()
            return str(row[0])

        def report(project: str) -> None:
            """Report the statement with the command that equals it, and examine the release again."""
            self.sfumato.note_command(("population", project, "--others", name, "--reason", reason))
            self.sfumato.say(f"Run {self._run_id} is charged to {replace_unprintable(name)} from now on")
            self._looked = None
            self.reload()

        self.compute(query, report)

    def action_close(self) -> None:
        """Close the screen, unless the release is being written."""
        self._leave_unless_writing(None)

    def _leave_unless_writing(self, place: str | None) -> None:
        """Close the screen with a place, unless the release is being written; what was typed is there again later."""
        if self._writing:
            self.sfumato.say("The release is being written")
        else:
            typed = {name: self.query_one(f"#{name}", Input).value for name in (REASON, DIRECTORY)}
            self.sfumato.gate_memory.keep_typed_texts(self._run_id, {} if self._done else typed)
            self.dismiss(place)

    @on(Input.Submitted)
    async def _handle_submit(self, event: Input.Submitted) -> None:
        """Handle enter in a field: waive a finding, request approval, or write the release."""
        looked = self._looked
        if event.input.id == WAIVER:
            if self._asked is not None:
                self._set_waiver(self._asked, event.value.strip())
            self._show_waiver_field(None)
        elif event.input.id == REASON and looked is not None and looked.policy.second_person and looked.why_unapproved:
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
        if looked.why_unapproved or (alone and looked.why_no_reason_helps):
            self.sfumato.say(replace_unprintable(looked.why_unapproved or looked.why_no_reason_helps))
        elif alone and looked.unwaived_findings and not reason:
            self._focus_field(REASON, JUSTIFY_HINT)
        elif reason and (wrong := justification_problem(reason, "The release")):
            self._focus_field(REASON, wrong)
        elif not directory:
            self._focus_field(DIRECTORY, "Name the directory to write the release to")
        else:
            answer = looked.release_answer
            goes = dict(confirmation_facts(self._plan, self._form, answer, directory))
            question = ConfirmDialog(
                f"{self._question_headline(looked)}?",
                f"Leaves: {goes['leaves']}.\n\nWho can be found: {goes['who can be found']}\n\nGoes {goes['goes']}. "
                "This is recorded in the audit log.",
                "Release",
            )
            await self.sfumato.open(question, lambda yes: self._write_release(directory, reason) if yes else None)

    def _focus_field(self, field: str, text: str) -> None:
        """Go to a field of the last step, and show a message."""
        self.go_to_step("confirm")
        self.query_one(f"#{field}", Input).focus()
        self.sfumato.say(text)

    def _write_release(self, directory: str, reason: str) -> None:
        """Write the release in a thread, and store the equivalent command."""
        run_id, form = self._run_id, self._form
        # A copy: the reasons may be edited while the thread writes.
        waive = {} if self._looked is None else dict(self._looked.waiver_reasons)
        waived = (word for check, why in waive.items() for word in ("--waive", f"{check}={why}"))
        said = ("--reason", reason) if reason else ()
        # The command is copied into scripts, which may run in another directory.
        where = str(Path(directory).expanduser().absolute())
        self._command = ("release", str(run_id), "-o", where, *said, *waived, "--format", form)

        def query(workspace: Workspace) -> WrittenRelease:
            """Write the release. Raises NotReleased."""
            from sfumato.workspace.errors import NotReleased
            from sfumato.workspace.service.release import write_run_release

            try:
                return write_run_release(workspace, run_id, Path(directory), form, reason, waive)
            except OSError as error:
                raise NotReleased(f"The release cannot be written: {error.strerror}") from None

        self._writing = True
        self._show_head_text(f"Writing the release of run {run_id} …")
        self.compute(query, self._show_written_release)

    @on(ErrorMessage)
    def _show_failure(self) -> None:
        """Show that the gate could not examine the tables, or that writing failed."""
        self._writing = False
        self._state = UNEXAMINED
        self._show_steps()

    def _show_written_release(self, done: WrittenRelease) -> None:
        """Report the written release and show its folders."""
        self._writing = False
        self.sfumato.note_command(self._command)
        self.sfumato.say(f"Run {self._run_id} released to {done.directory}: {count_noun(len(done.files), 'file')}")
        self._done = done.directory
        self.go_to_step("leaves")
        self.reload()


def _with_approval(workspace: Workspace, plan: ReleasePlan, form: DatasetForm, looked: ExaminedRun) -> ExaminedRun:
    """Return the examination with the second person's answer so far, if the policy requires one."""
    from sfumato.workspace.release.approval import approve_or_explain

    if not looked.policy.second_person:
        return looked
    # The approval adds the waivers of both persons, so those of an earlier answer are dropped first.
    bare = replace(looked.examination, waivers=(), approval=None)
    examination, open_for = approve_or_explain(workspace, plan, looked.policy, bare, form)
    return replace(looked, examination=examination, why_unapproved=open_for)


def approval_text(looked: ExaminedRun) -> str:
    """Return the state of the second person's approval."""
    approval = looked.examination.approval
    if approval is None:
        return f"A second person: {looked.why_unapproved} (? has Request and Answer)"
    return f'A second person: {approval.approved_by} approved it: "{approval.approval_reason}"'


def release_headline(run_id: int, waived: int, left: int) -> str:
    """Return the headline, such as ``Release run 7 with 2 blocks waived by ana``."""
    from sfumato.workspace.audit import user

    parts = [f"{count_noun(waived, 'block')} waived by {user()}"] if waived else []
    parts += [f"{count_noun(left, 'block')} not waived"] if left else []
    return replace_unprintable(f"Release run {run_id}" + (f" with {' and '.join(parts)}" if parts else ""))


def release_overview(
    plan: ReleasePlan,
    looked: ExaminedRun | None,
    past: Sequence[PastRelease],
    form: DatasetForm,
    width: int,
    written_to: Path | None = None,
) -> list[Content]:
    """Return earlier releases, contents, who signs, the verdicts and the files, in lines of at most ``width`` cells.

    Whom one can find stands in the first step and the last, so that it is not repeated here.
    """
    lines = (
        []
        if written_to is None
        else [Content(line) for line in wrap(FOLDERS.format(replace_unprintable(str(written_to))), width)]
    )
    if past:
        lines += [Content.styled("Released", "bold")]
        lines += [
            Content(line) for one in past for line in wrap(_past_release_text(one), width, subsequent_indent="  ")
        ]
    answer = None if looked is None else looked.release_answer
    lines += [Content("")] * bool(lines) + [Content.styled("What leaves, and to whom", "bold")]
    lines += fact_lines([*contents_and_place_facts(plan, form, answer), ("stays", STAYS)], width)
    lines += [Content(""), *_approval_lines(looked, width), Content.styled("Limits of the plan", "bold")]
    lines += [board_text(plan.verdicts, width) if plan.verdicts else Content(NO_THRESHOLDS)]
    for title, facts in (
        ("Who signs", [] if looked is None else signature_facts(looked, past)),
        # What stays is named above.
        ("The files that leave", public_files_facts(plan, form)),
    ):
        lines += [Content(""), Content.styled(title, "bold"), *fact_lines(facts, width)] if facts else []
    return lines


def step_lines(looked: ExaminedRun, width: int, key_of: Callable[[str], str]) -> list[Content]:
    """Return the steps before a release may leave in lines of ``width`` cells: sign, key and what to do.

    A step that is open has the ink of its state, so that it is seen first; ``key_of`` returns the key of an act.
    """
    steps = steps_before_release(looked)
    keys = [key_of(one.act) if one.act else "" for one in steps]
    room = max(map(cell_len, keys), default=0)
    lines = []
    for one, key in zip(steps, keys, strict=True):
        ink = INKS.get(one.status, "$text-muted" if one.status == "done" else "bold")
        start = room + 4 if room else 2
        for place, line in enumerate(wrap(replace_unprintable(one.text), max(20, width - start))):
            head: list[tuple[str, str]] = [(" " * start, "")]
            if not place:
                named = [(f"{fit_text(key, room)}  ", "$accent bold")] if room else []
                head = [(f"{sign_for(STEP_SIGNS[one.status])} ", ink), *named]
            lines.append(Content.assemble(*head, (line, STEP_WEIGHTS.get(one.status, ""))))
    return lines


def _approval_lines(looked: ExaminedRun | None, width: int) -> list[Content]:
    """Return the state of a second person's approval, and a blank line; none where the policy asks for nobody."""
    if looked is None or not looked.policy.second_person:
        return []
    style = "$warning bold" if looked.why_unapproved else ""
    said = wrap(replace_unprintable(approval_text(looked)), width)
    return [*(Content.styled(line, style) for line in said), Content("")]


def _form_text(plan: ReleasePlan, form: DatasetForm) -> str:
    """Return the format of the datasets behind a dot; empty for tables alone, which are CSV files."""
    return "" if plan.has_tables_alone else f" · datasets as {form}"


def _past_release_text(past: PastRelease) -> str:
    """Return an earlier release in a line."""
    reason = f', because "{replace_unprintable(past.reason)}"' if past.reason else ""
    return f"{past.time[:16].replace('T', ' ')} UTC by {past.user}, as {past.form}{reason}; manifest {past.manifest_sha256[:12]}"
