"""Tab with the answer of the gate, its findings, and every threshold with the observed value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.widget import Widget

from sfumato.engine.errors import BadInput
from sfumato.engine.recipe.outcomes import WORST_FIRST
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.parts.answer_panel import AnswerPanel, answer_title, shorter_answer_titles
from sfumato.tui.parts.gate_lines import EXAMINING
from sfumato.tui.parts.harm_lines import fit_harm_counts
from sfumato.tui.parts.variable_titles import variable_titles
from sfumato.tui.parts.verdict_board import AMPLE, GateLines, VerdictBoard, sort_by_group
from sfumato.tui.session.export import ScreenExport, table_of_records
from sfumato.tui.session.gate_answers import ExaminedRun
from sfumato.tui.widgets.facts import titled_facts, wrap_paragraphs
from sfumato.tui.widgets.panel import FrameRule
from sfumato.workspace.reporting.findings import finding_text
from sfumato.workspace.reporting.harm import harm_counts_text
from sfumato.workspace.store.runs import RunState, RunSummary, count_records_and_units, find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.number_lines import count_number_lines
from sfumato.workspace.views.results import read_verdicts, row_of_verdict

from ..parts.page import CallInProcess, RunPane
from ..parts.split import FRAME, DetailQuery, LaidOut, SplitView
from .dial import LOW, DialPane, Place
from .lever_pane import LeverList, LeverPane, post_lever
from .people_at_risk import PeopleAtRisk, PeopleMostAtRisk, read_people_at_risk
from .results import has_tables
from .trial import LimitTrial

if TYPE_CHECKING:
    from sfumato.workspace.gate.gate import Finding
    from sfumato.workspace.reporting.explanation import ExplainedNumber
    from sfumato.workspace.service.run_levers import RunLever, RunLevers

    ExplainedVerdict = tuple[ExplainedNumber, RunLevers | None]
    """A verdict's number, and its levers; None where the recipe of the run cannot be read."""

SIDES = 2
"""Cells of a terminal's width that the frame takes."""
AROUND_TITLE = 5
"""Cells of a rule that its title cannot use."""
LEAST_RULED = 12
"""Height of a terminal in lines from which a rule stands above the list."""
MARGIN = 3
"""Cells of the list that its lines cannot use: a blank on either side and the scrollbar."""
ROWS_OF_PEOPLE, FEWEST_PEOPLE = 2, 4
"""Lines of the list of people besides those of people, and people from which it stands below the findings."""
PARTS_OF_COLUMN, LEVERS_PERCENT, LEAST_OF_LEVERS = 4, 40, 4
"""Share of the column beside the list that people have, that of the levers, and lines that these have at least."""
NONE = "The plan of this run sets no limits."
FOCUSED_STEPS: Mapping[type[Widget], str] = {
    DialPane: "next: {mark} ticks what he knows; {zoom_in} {zoom_out} how surely; {open} opens the studies",
    PeopleAtRisk: "next: {open} shows the records of the one under the cursor",
    LeverList: "next: {open} changes the plan by this lever",
}
"""What the keys do in the parts of the page besides its list, with acts in braces."""
CELLS_FOLLOW = "kept_tables"
"""Check of the gate whose findings are cells of tables."""
LINES_ABOVE_DIAL = 8
"""Lines of the answer above the dial in a low terminal, where its sentences are whole in these."""
LINES_BESIDE_DIAL = 3
"""Lines of the answer beside the dial that is turned in a low terminal."""
UNEXAMINED = "The gate could not examine the tables, so nothing can be released: {}"


@dataclass(frozen=True)
class RunVerdicts:
    """Verdicts of a run.

    run_id: the run
    verdicts: verdicts by group, the worst first
    n_records: number of confidential records
    n_numbers: number of lines of its numbers
    """

    run_id: int
    verdicts: list[Verdict]
    n_records: int
    n_numbers: int


def _read_verdicts(run_id: int, workspace: Workspace) -> RunVerdicts:
    """Read the verdicts of a run, the worst of each group first."""
    from sfumato.engine.methods.labels import labels_of

    verdicts = sorted(read_verdicts(workspace, run_id), key=lambda one: WORST_FIRST.index(one.outcome))
    # Labels import the methods, which takes long, so they are loaded in the thread before the screen needs them.
    labels_of(verdicts)
    records = count_records_and_units(workspace, find_run(workspace, run_id))
    return RunVerdicts(run_id, sort_by_group(verdicts), records, count_number_lines(workspace, run_id))


class VerdictsPane(RunPane, SplitView):
    """Tab with the board of one run; ``enter`` explains a finding or a verdict, ``T`` tries other limits."""

    command_name = "results"
    full_list = 104
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("mark", "dial('turn')", "What the intruder knows", show=True),
        bind_act("try", "try", show=True),
        bind_act("zoom_in", "dial('reach(1)')", "Intruder less sure"),
        bind_act("zoom_out", "dial('reach(-1)')", "Intruder surer"),
    ]

    class GateAnswerChanged(Message):
        """Message that the gate's answer for the run has changed."""

    @dataclass
    class TableCellRequested(Message):
        """Message that the user wants to see the cell of a table that a finding names.

        text: the finding
        """

        text: str

    def __init__(self) -> None:
        """Create the tab, without a run."""
        super().__init__(id="verdicts")
        self._verdicts: list[Verdict] = []
        self._records: int | None = None
        self._numbers = 0
        self._is_read = False
        self._examined: ExaminedRun | None = None
        self._examining: int | None = None
        self._why_unexamined = ""
        self._shown_change = ""
        self._people: PeopleMostAtRisk | None = None

    def compose(self) -> ComposeResult:
        yield AnswerPanel()
        yield Place(DialPane(), id="dial-place")
        yield FrameRule(name="list-rule")
        yield from self.compose_split(
            VerdictBoard(),
            PeopleAtRisk("below-list"),
            below_detail=[PeopleAtRisk("beside-list"), Place(LeverPane(), id="levers-place")],
        )

    def read_query(self) -> Callable[[Workspace], RunVerdicts] | None:
        """Return the query for the verdicts of the run and its number of records."""
        if self.line is None:
            return None
        return partial(_read_verdicts, self.line.run.id)

    def show_answer(self, answer: RunVerdicts) -> None:
        """Show the verdicts, unless another run is shown by now."""
        if self.line is not None and answer.run_id == self.line.run.id:
            self._verdicts, self._records, self._is_read = answer.verdicts, answer.n_records, True
            self._numbers = answer.n_numbers
            self._show_board()
            self._read_people()

    def _read_people(self) -> None:
        """Read who is most at risk, where there is room to show it and it is not known."""
        if self.line is None or self.line.run.state is not RunState.DONE or not self.is_split:
            return
        if self._people is None or self._people.run_id != self.line.run.id:
            directory, run_id = self.sfumato.directory, self.line.run.id

            def read_people(call: CallInProcess) -> PeopleMostAtRisk:
                """Read them in another process."""
                return call(read_people_at_risk, directory, run_id, what="the people most at risk")

            # A table that cannot be read is reported by the gate; this list is then left out.
            self.compute_in_processes(read_people, self._show_people, group="people", refuse=lambda _: None)

    def _show_people(self, found: PeopleMostAtRisk) -> None:
        """Show who is most at risk, unless another run is shown by now."""
        if self.line is not None and found.run_id == self.line.run.id:
            self._people = found
            self._show_board()

    def show_run(self, line: RunSummary | None) -> None:
        """Show this run, and ask whether the known answer of the gate is still valid."""
        if self.line is None or line is None or line.run.id != self.line.run.id:
            self._examined, self._why_unexamined, self._people = None, "", None
        super().show_run(line)
        self.query_one(DialPane).show_run(line)
        self._show_levers()
        self._ask_gate()

    def _ask_gate(self) -> None:
        """Examine the release of the run in another process, unless a valid examination is known."""
        if self.line is None or self.line.run.state is not RunState.DONE:
            self._examining = None
            return
        run_id = self.line.run.id
        # An examination of this run is under way; a second one would only take time.
        if self._examining == run_id:
            return
        self._examining = run_id
        directory, memory = self.sfumato.directory, self.sfumato.gate_memory
        take = partial(self._show_gate_answer, run_id)

        def examine_run(call: CallInProcess) -> ExaminedRun:
            """Examine the run, or take the known examination if nothing has changed since."""
            return memory.examine(directory, run_id, call)

        def report_problem(text: str) -> Message:
            """Return an error as the answer, so that the board shows it in its place."""
            return self.AnswerReceived(take, text)

        self.compute_in_processes(examine_run, take, group="gate", refuse=report_problem)

    def _show_gate_answer(self, run_id: int, found: ExaminedRun | str) -> None:
        """Show the gate's answer, or why it could not examine the run."""
        if self.line is None or run_id != self.line.run.id:
            return
        self._examining, why_before = None, self._why_unexamined
        if isinstance(found, str):
            changed, self._examined, self._why_unexamined = self._examined is not None, None, found
        else:
            changed, self._examined, self._why_unexamined = found is not self._examined, found, ""
        self._show_board()
        self._show_gate_on_dial()
        self._show_levers()
        # The page reads the run again then, and asks again: only for what is new.
        if changed or self._why_unexamined != why_before:
            self.post_message(self.GateAnswerChanged())

    def _show_levers(self) -> None:
        """Show what to change where the gate has answered for this run."""
        from sfumato.workspace.service.run_levers import finding_aims

        known = self._examined
        if self.line is None or known is None:
            self.query_one(LeverPane).show_run_levers(None)
            return
        self.query_one(LeverPane).show_run_levers(
            self.line.run.id, finding_aims(known.lead_findings, known.waived_checks)
        )

    def _show_gate_on_dial(self) -> None:
        """Tell the dial what the gate answers: nothing on it is green before."""
        known = self._examined
        self.query_one(DialPane).show_gate(None if known is None else known.release_answer)

    @on(LeverList.TrialsAdvanced)
    def _show_tried_change(self) -> None:
        """Say in the answer what the trials show of the change that it advises."""
        answer = self._gate_lines.answer
        if answer is not None and self.query_one(LeverPane).change_text(answer) != self._shown_change:
            self._show_board()

    @on(DialPane.DialFocused)
    @on(DialPane.DialCounted)
    def _make_room_for_dial(self) -> None:
        """Show fewer lines of the answer once there is a dial, and while it is turned, where there are few."""
        if self.app.size.height < LOW:
            self._show_board()

    @on(DialPane.DialLeft)
    def _leave_dial(self) -> None:
        """Return from the dial to the board."""
        self.take_focus()

    async def action_dial(self, action: str) -> None:
        """Go to the dial and do there what a key does."""
        dial = self.query_one(DialPane)
        if dial.dial is None and not dial.is_counting:
            self.sfumato.say("The dial has no numbers for this run")
            return
        if dial.dial is None:
            dial.focus()
            dial.keep_act(action)
            return
        dial.focus()
        await dial.run_action(action)

    @property
    def is_examining(self) -> bool:
        """Return whether the gate has not answered yet."""
        return self._examined is None and not self._why_unexamined

    @property
    def _gate_lines(self) -> GateLines:
        """Return what the board shows of the gate."""
        if self.line is None or self.line.run.state is not RunState.DONE:
            return GateLines()
        # Until the gate has answered the board says so, and nothing on it is green.
        if (known := self._examined) is None:
            return GateLines(text=UNEXAMINED.format(self._why_unexamined) if self._why_unexamined else EXAMINING)
        leads = known.lead_findings
        witnesses = {one.check: known.witness_findings(one.check) for one in leads}
        return GateLines(known.release_answer, leads, witnesses, known.waived_checks)

    def _heading_counts(self) -> str:
        """Return the text for the frame in place of an answer; empty where there is one or the run is not done."""
        if self.line is None or self.line.run.state is not RunState.DONE or not self._is_read:
            return ""
        if self._examined is None:
            return "not examined" if self._why_unexamined else "the gate examines"
        return ""

    def _list_title(self) -> str:
        """Return the counts above the list, the least harmful left out where there is no room."""
        if self.line is None or self.line.run.state is not RunState.DONE or not self._is_read:
            return ""
        gate = self._gate_lines
        return fit_harm_counts(
            harm_counts_text(gate.findings, self._verdicts, gate.waived), self.list_width - AROUND_TITLE
        )

    def in_footer(self, action: str) -> bool:
        """Return whether a key stands in the footer: other limits can be tried only if there are verdicts, and what an
        intruder knows only if it is counted.
        """
        dial = self.query_one(DialPane)
        if action == "dial":
            return dial.dial is not None or dial.is_counting
        return action != "try" or bool(self._verdicts)

    async def action_try(self) -> None:
        """Try other limits, without a new run."""
        if self._verdicts and self.line is not None:
            await self.sfumato.open(LimitTrial(self.line.run.id, self.line.run.project_id))
        else:
            self.sfumato.say("There are no verdicts to try other limits on")

    def on_resize(self) -> None:
        self._show_board()
        self._read_people()

    @on(VerdictBoard.BoardCursorMoved)
    def _follow_board(self) -> None:
        """Show the details of the row under the cursor, and what its list leaves room for."""
        self._place_people()
        self.follow_cursor()

    def detail_query(self) -> DetailQuery | None:
        """Return the query for the finding or verdict under the cursor, with its number explained."""
        board = self.query_one(VerdictBoard)
        if self.line is None:
            return None
        run_id, toml = self.line.run.id, self.line.run.recipe_toml
        if (finding := board.chosen_finding) is not None:
            texts = self._finding_paragraphs(finding)
            return (run_id, finding.check), finding, lambda _: partial(wrap_paragraphs, texts)
        verdict = board.chosen_verdict
        if (fold := board.chosen_fold) is not None:
            return (run_id, fold), board.fold_paragraphs, lambda _: partial(wrap_paragraphs, board.fold_paragraphs)
        if verdict is None:
            return None

        def query(workspace: Workspace) -> LaidOut:
            """Read and explain the number of the verdict."""
            from sfumato.workspace.reporting.explanation import explanation_title, verdict_text

            from ..parts.explain import explain_row

            row = row_of_verdict(workspace, run_id, verdict)
            if row is None:
                return partial(titled_facts, explanation_title(verdict.value), [("verdict", verdict_text(verdict))])
            return explain_row(workspace, run_id, row, variable_titles(toml))

        return (run_id, self._verdicts.index(verdict)), verdict, query

    def _finding_paragraphs(self, finding: Finding) -> list[str]:
        """Return a finding with its witnesses in paragraphs."""
        witnesses = self._gate_lines.witnesses.get(finding.check, ())
        texts: list[str] = []
        for text in finding_text(finding, witnesses, with_keys=False):
            # What changes would do is a list, without blank lines in it.
            texts += [text] if text in finding.effects else [text, ""]
        return texts

    @on(VerdictBoard.FindingSelected)
    async def _explain_finding(self, event: VerdictBoard.FindingSelected) -> None:
        """Open the dialog about a finding: the same as in the place Release, with levers if it has some.

        A finding of cells opens the tab with the tables instead, at the cell that it names.
        """
        from ..release.release import FindingDialog

        known, finding = self._examined, event.finding
        names_cells = finding.check == CELLS_FOLLOW and finding.status != "pass"
        if names_cells and self.line is not None and has_tables(self.line.run.recipe_toml):
            self.post_message(self.TableCellRequested(finding.message))
            return
        witnesses = self._gate_lines.witnesses.get(finding.check, ())
        reason = "" if known is None else known.waiver_reasons.get(finding.check, "")
        found, levers = self.query_one(LeverPane).levers_of_check(finding.check)
        if found is None or not levers:
            await self.sfumato.open(FindingDialog(finding, reason, witnesses))
            return
        from .lever_dialogs import FindingExplanation

        explanation = FindingExplanation(finding, reason, witnesses, found, levers)
        await self.sfumato.open(explanation, partial(self._request_lever, found))

    def _request_lever(self, found: RunLevers, lever: RunLever | None) -> None:
        """Request the change of the run's recipe by the chosen lever."""
        if lever is not None:
            post_lever(self, found, lever)

    @on(VerdictBoard.VerdictSelected)
    def _read_verdict_number(self, event: VerdictBoard.VerdictSelected) -> None:
        """Read the number of a verdict, and its levers if it is not met."""
        if self.line is None:
            return
        run_id, verdict = self.line.run.id, event.verdict

        def query(workspace: Workspace) -> ExplainedVerdict | None:
            """Read the number with its explanation and the levers; None if there is no such row."""
            from sfumato.workspace.service.run_levers import levers_of_verdict
            from sfumato.workspace.views.explained_numbers import read_explained_number

            row = row_of_verdict(workspace, run_id, verdict)
            if row is None:
                return None
            try:
                levers = levers_of_verdict(workspace, run_id, verdict)
            except BadInput:  # of an earlier version, whose recipe this one cannot read
                levers = None
            return read_explained_number(workspace, run_id, row), levers

        self.read(query, self._open_explanation)

    async def _open_explanation(self, answer: ExplainedVerdict | None) -> None:
        """Open the explanation of a verdict's number, with levers if it has some."""
        if answer is None:
            self.sfumato.say("The run has no row of results for this threshold; its reason stands on the board")
            return
        found, levers = answer
        titles, run_id = (variable_titles(self.line.run.recipe_toml), self.line.run.id) if self.line else (None, None)
        if levers is None or not levers.levers or run_id is None:
            from ..parts.explain import ResultExplanation

            await self.sfumato.open(ResultExplanation(found, titles, run_id))
            return
        from .lever_dialogs import VerdictExplanation

        explanation = VerdictExplanation(found, titles, levers, run_id)
        await self.sfumato.open(explanation, partial(self._request_lever, levers))

    def _show_board(self) -> None:
        """Show the board, or the reason why there are no verdicts."""
        shown = self.query_one(VerdictBoard)
        gate = self._gate_lines
        # Above the findings of the gate stands already that the plan sets no limits.
        none = "" if gate.answer is not None and gate.findings else self.empty_text("verdicts", NONE)
        none = none if self._is_read else "…"
        self.set_heading_count(self._heading_counts())
        if gate.answer is None:
            self.set_frame_title(None)
        else:
            self.set_frame_title(answer_title(gate.answer), shorter_answer_titles(gate.answer))
        width = max(1, self.app.size.width - SIDES - MARGIN)
        # In a low terminal the dial needs the lines while somebody turns it.
        is_turning = self.query_one(DialPane).has_focus and self.app.size.height < LOW
        most = LINES_BESIDE_DIAL if is_turning else AMPLE
        answer = gate.answer
        if answer is not None:
            self._shown_change = self.query_one(LeverPane).change_text(answer)
            answer = replace(answer, change=self._shown_change)
        # Beside a dial of two numbers the list keeps a third of a low terminal.
        dial = self.query_one(DialPane)
        wanted = LINES_ABOVE_DIAL if dial.dial is not None and self.app.size.height < LOW else 0
        self.query_one(AnswerPanel).show_answer(answer, gate.text if self._is_read else "", width, most, wanted)
        rule = self.query_one(FrameRule)
        rule.set_text(self._list_title())
        # In a very low terminal the list needs the line.
        rule.display = self.app.size.height >= LEAST_RULED
        if self._is_read and (self._verdicts or self._numbers or gate.answer is not None):
            width = max(40, self.list_width - MARGIN)
            shown.show_board(self._verdicts, width, self._records, self._numbers, none, gate)
        else:
            shown.show_message(none)
        self._place_people()

    def _place_people(self) -> None:
        """Show the people most at risk below the list where it leaves them room, else beside it, and limit the levers."""
        board = self.query_one(VerdictBoard)
        height = board.parent.size.height if isinstance(board.parent, Widget) else 0
        left = height - board.count_needed_lines() - ROWS_OF_PEOPLE
        is_below = self.is_split and left >= min(FEWEST_PEOPLE, len(self._people.people) if self._people else 0)
        side = max(1, self.app.size.width - SIDES - self.list_width - FRAME)
        places = {
            "below-list": (self.list_width - MARGIN, left if is_below else 0),
            "beside-list": (side, 0 if is_below or not self.is_split else height // PARTS_OF_COLUMN - 1),
        }
        for one in self.query(PeopleAtRisk):
            one.show_people(self._people, *next(place for name, place in places.items() if one.has_class(name)))
        if height:
            self.query_one(LeverPane).limit_height(max(LEAST_OF_LEVERS, height * LEVERS_PERCENT // 100))

    def make_exportable(self) -> ScreenExport | None:
        """Return the verdicts with all their digits."""
        verdicts = self._verdicts
        return (
            ScreenExport(self.export_file_name("verdicts"), lambda: table_of_records(Verdict, verdicts))
            if verdicts
            else None
        )

    def manual_topics(self) -> Sequence[str]:
        """Return the check or the measure under the cursor."""
        board = self.query_one(VerdictBoard)
        if board.chosen_finding is not None:
            return f"release {board.chosen_finding.check}", "release gate"
        verdict = board.chosen_verdict
        return () if verdict is None else (verdict.value,)

    def focused_step(self) -> str:
        """Return what the keys do in the part that has them, as the footer says it."""
        return next(
            (step for kind, step in FOCUSED_STEPS.items() if any(one.has_focus for one in self.query(kind))),
            super().focused_step(),
        )

    def row_step(self) -> str:
        """Return what enter does on the line of the board under the cursor."""
        return self.query_one(VerdictBoard).open_step

    def take_focus(self) -> None:
        self.query_one(VerdictBoard).focus()
