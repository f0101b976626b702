"""The page of findings: the answer of the gate, what it found, and every threshold with what was observed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message

from sfumato.engine.recipe.outcomes import WORST_FIRST
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.tui.keys.acts import bind
from sfumato.tui.parts.gate_lines import EXAMINING
from sfumato.tui.parts.variable_titles import variable_titles
from sfumato.tui.parts.verdict_board import GateLines, VerdictBoard, limits_text, sort_by_group
from sfumato.tui.session.export import ScreenExport, table_of_records
from sfumato.tui.session.gate_answers import SHORT_ANSWERS, ExaminedRun
from sfumato.tui.widgets.facts import titled_facts, wrap_paragraphs
from sfumato.workspace.reporting.findings import finding_counts_text, finding_text, is_open
from sfumato.workspace.store.runs import RunState, RunSummary, count_confidential_records, find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_verdicts, row_of_verdict

from ..parts.page import CallInProcess, RunPane
from ..parts.split import DetailQuery, LaidOut, SplitView
from .trial import Trial

if TYPE_CHECKING:
    from sfumato.workspace.gate.gate import Finding
    from sfumato.workspace.reporting.explanation import ExplainedNumber

    from .lever_changes import Lever

MARGIN = 3
"""Cells of the list that are not for its lines: a blank either side, the scrollbar."""
NONE = "This run has no limits of its own."
UNEXAMINED = "The gate could not examine the tables, so nothing can be released: {}"
BESIDE_COUNT = 66
"""Cells of the frame's upper edge that are not for what the page counts: the name of the place and its tabs."""


@dataclass(frozen=True)
class Judged:
    """The verdicts of a run by group, the worst first, how many confidential records it has, and how many numbers without a verdict."""

    run_id: int
    verdicts: list[Verdict]
    records: int
    others: int


def _judged(run_id: int, workspace: Workspace) -> Judged:
    """Read them, and have the methods loaded that name them, away from the keys."""
    from sfumato.engine.methods.labels import labels_of

    verdicts = sorted(read_verdicts(workspace, run_id), key=lambda one: WORST_FIRST.index(one.outcome))
    labels_of(verdicts)
    records = count_confidential_records(workspace, find_run(workspace, run_id))
    query = "SELECT count(*) FROM result WHERE run_id = ? AND draw IS NULL AND dataset != 'confidential'"
    (numbers,) = workspace.connection.execute(query, (run_id,)).fetchone()
    return Judged(
        run_id,
        sort_by_group(verdicts),
        records,
        max(0, numbers - len({(one.value, one.target, one.level) for one in verdicts})),
    )


class Verdicts(RunPane, SplitView):
    """The board of one run; ``enter`` explains a finding or a verdict, ``T`` tries other limits."""

    command_name = "results"
    full_list = 108
    BINDINGS: ClassVar[list[BindingType]] = [bind("try", "try", show=True)]

    class GateAnswered(Message):
        """The gate has answered for the run, or answers otherwise than before."""

    @dataclass
    class Pulled(Message):
        """The user wants the plan changed by this lever."""

        lever: Lever

    def __init__(self) -> None:
        super().__init__(id="verdicts")
        self._verdicts: list[Verdict] = []
        self._records: int | None = None
        self._others = 0
        self._is_read = False
        self._examined: ExaminedRun | None = None
        self._examining: int | None = None
        self._why_unexamined = ""

    def compose(self) -> ComposeResult:
        yield from self.compose_split(VerdictBoard())

    def read_query(self) -> Callable[[Workspace], Judged] | None:
        """The verdicts of the run, and how many records it has."""
        if self.line is None:
            return None
        return partial(_judged, self.line.run.id)

    def show_answer(self, answer: Judged) -> None:
        """Show them, unless another run is shown by now."""
        if self.line is not None and answer.run_id == self.line.run.id:
            self._verdicts, self._records, self._is_read = answer.verdicts, answer.records, True
            self._others = answer.others
            self._show()

    def show_run(self, line: RunSummary | None) -> None:
        """Show this run, and ask whether what is known of the gate's answer still holds."""
        if self.line is None or line is None or line.run.id != self.line.run.id:
            self._examined, self._why_unexamined = None, ""
        super().show_run(line)
        self._ask_gate()

    def _ask_gate(self) -> None:
        """Have the release of the run examined beside the app, unless an examination that holds is at hand."""
        if self.line is None or self.line.run.state is not RunState.DONE:
            self._examining = None
            return
        run_id = self.line.run.id
        if self._examining == run_id:
            return
        self._examining = run_id
        directory, memory = self.sfumato.directory, self.sfumato.gate_memory
        take = partial(self._take_examined, run_id)

        def ask(call: CallInProcess) -> ExaminedRun:
            return memory.examine(directory, run_id, call)

        def refuse(text: str) -> Message:
            return self.AnswerReceived(take, text)

        self.compute_in_processes(ask, take, group="gate", refuse=refuse)

    def _take_examined(self, run_id: int, found: ExaminedRun | str) -> None:
        """Show what the gate answers, or why it could not examine the run."""
        if self.line is None or run_id != self.line.run.id:
            return
        self._examining = None
        if isinstance(found, str):
            changed, self._examined, self._why_unexamined = self._examined is not None, None, found
        else:
            changed, self._examined, self._why_unexamined = found is not self._examined, found, ""
        self._show()
        if changed:
            self.post_message(self.GateAnswered())

    @property
    def _gate_lines(self) -> GateLines:
        """What the board shows of the gate."""
        if self.line is None or self.line.run.state is not RunState.DONE:
            return GateLines()
        if (known := self._examined) is None:
            return GateLines(text=UNEXAMINED.format(self._why_unexamined) if self._why_unexamined else EXAMINING)
        leads = known.lead_findings
        witnesses = {one.check: known.witness_findings(one.check) for one in leads}
        return GateLines(known.release_answer, leads, witnesses, known.waived_checks)

    def _counts(self) -> str:
        """``may not leave · 1 blocks, 3 to be judged · 2 of 10 limits not met``, or as much of it as there is room for.

        Nothing before the run is done.
        """
        if self.line is None or self.line.run.state is not RunState.DONE or not self._is_read:
            return ""
        if self._examined is None:
            gate = ["not examined" if self._why_unexamined else "the gate examines"]
        else:
            open_findings = [one for one in self._gate_lines.findings if is_open(one) and one.status != "not checked"]
            gate = [SHORT_ANSWERS[self._examined.release_answer.may_leave], finding_counts_text(open_findings)]
        limits = limits_text(self._verdicts)
        shorter = (" · ".join(filter(None, parts)) for parts in ([*gate, limits], [gate[0], limits], [gate[0]]))
        room = self.list_width - BESIDE_COUNT
        return next((text for text in shorter if cell_len(text) <= room), gate[0])

    def in_footer(self, action: str) -> bool:
        """Other limits can be tried where there are verdicts."""
        return action != "try" or bool(self._verdicts)

    async def action_try(self) -> None:
        """See what other limits would give, without a new run."""
        if self._verdicts and self.line is not None:
            await self.sfumato.open(Trial(self.line.run.id, self.line.run.project_id))
        else:
            self.sfumato.say("There are no verdicts to try other limits on")

    def on_resize(self) -> None:
        self._show()

    @on(VerdictBoard.BoardCursorMoved)
    def _moved(self) -> None:
        self.follow_cursor()

    def detail_query(self) -> DetailQuery | None:
        """The finding or the verdict under the cursor, and the number that it speaks of, explained."""
        board = self.query_one(VerdictBoard)
        if self.line is None:
            return None
        run_id, toml = self.line.run.id, self.line.run.recipe_toml
        if (finding := board.chosen_finding) is not None:
            texts = self._texts_of(finding)
            return (run_id, finding.check), finding, lambda _: partial(wrap_paragraphs, texts)
        verdict = board.chosen_verdict
        if verdict is None:
            return None

        def query(workspace: Workspace) -> LaidOut:
            from sfumato.workspace.reporting.explanation import explanation_title, verdict_text

            from ..parts.explain import explain_row

            row = row_of_verdict(workspace, run_id, verdict)
            if row is None:
                return partial(titled_facts, explanation_title(verdict.value), [("verdict", verdict_text(verdict))])
            return explain_row(workspace, run_id, row, variable_titles(toml))

        return (run_id, self._verdicts.index(verdict)), verdict, query

    def _texts_of(self, finding: Finding) -> list[str]:
        """A finding with its witnesses in paragraphs."""
        witnesses = self._gate_lines.witnesses.get(finding.check, ())
        return [text for paragraph in finding_text(finding, witnesses) for text in (paragraph, "")]

    @on(VerdictBoard.FindingSelected)
    async def _explain_finding(self, event: VerdictBoard.FindingSelected) -> None:
        """Explain a finding as the place Release does."""
        from ..release.release import FindingDialog

        known = self._examined
        witnesses = self._gate_lines.witnesses.get(event.finding.check, ())
        reason = "" if known is None else known.waiver_reasons.get(event.finding.check, "")
        await self.sfumato.open(FindingDialog(event.finding, reason, witnesses))

    @on(VerdictBoard.VerdictSelected)
    def _look_up(self, event: VerdictBoard.VerdictSelected) -> None:
        """Read the number of a verdict, and how to fix it where it is not met."""
        if self.line is None:
            return
        run_id, project_id, verdict = self.line.run.id, self.line.run.project_id, event.verdict

        def query(workspace: Workspace) -> tuple[ExplainedNumber, Sequence[Lever]] | None:
            from sfumato.workspace.plan.drafts import find_draft

            from ..parts.explain import read_number
            from .lever_changes import levers_for

            row, draft = row_of_verdict(workspace, run_id, verdict), find_draft(workspace, project_id)
            if row is None:
                return None
            return read_number(workspace, run_id, row), levers_for(verdict, draft.toml) if draft else ()

        self.read(query, self._explain)

    async def _explain(self, answer: tuple[ExplainedNumber, Sequence[Lever]] | None) -> None:
        if answer is None:
            self.sfumato.say("The run has no row of results for this threshold; its reason stands on the board")
            return
        from ..parts.explain import ResultExplanation
        from .levers import ExplainVerdict

        found, levers = answer
        titles, run_id = (variable_titles(self.line.run.recipe_toml), self.line.run.id) if self.line else (None, None)
        if not levers:
            await self.sfumato.open(ResultExplanation(found, titles, run_id))
            return

        def answered(lever: Lever | None) -> None:
            if lever is not None:
                self.post_message(self.Pulled(lever))

        await self.sfumato.open(ExplainVerdict(found, titles, levers, run_id), answered)

    def _show(self) -> None:
        shown = self.query_one(VerdictBoard)
        none = self.empty_text("verdicts", NONE) if self._is_read else "…"
        gate = self._gate_lines
        self.set_heading_count(self._counts())
        if self._is_read and (self._verdicts or self._others or gate.answer is not None):
            width = max(40, self.list_width - MARGIN)
            shown.show_board(self._verdicts, width, self._records, self._others, none, self.is_split, gate)
        else:
            shown.show_message("\n\n".join(filter(None, (gate.text, none))))

    def make_exportable(self) -> ScreenExport | None:
        """The verdicts with all their digits."""
        verdicts = self._verdicts
        return ScreenExport(self.named("verdicts"), lambda: table_of_records(Verdict, verdicts)) if verdicts else None

    def manual_topics(self) -> Sequence[str]:
        """The check or the measure under the cursor."""
        board = self.query_one(VerdictBoard)
        if board.chosen_finding is not None:
            return f"release {board.chosen_finding.check}", "release gate"
        verdict = board.chosen_verdict
        return () if verdict is None else (verdict.value,)

    def take_focus(self) -> None:
        self.query_one(VerdictBoard).focus()
