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
from sfumato.tui.parts.variable_titles import titles_of
from sfumato.tui.parts.verdict_board import GateLines, VerdictBoard, grouped, limits_text
from sfumato.tui.session.export import Exportable, lines_of
from sfumato.tui.session.gate_answers import SHORT_ANSWERS, ExaminedRun
from sfumato.tui.widgets.facts import facts_in, lines_in
from sfumato.workspace.reporting.findings import counts_text, finding_text, is_open
from sfumato.workspace.store.runs import RunLine, RunState, find_run, records_of
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import judged_row, verdicts_of

from ..parts.page import Beside, Pane
from ..parts.split import DetailQuery, LaidOut, Split
from .trial import Trial

if TYPE_CHECKING:
    from sfumato.workspace.gate.gate import Finding
    from sfumato.workspace.reporting.explanation import FoundNumber

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

    verdicts = sorted(verdicts_of(workspace, run_id), key=lambda one: WORST_FIRST.index(one.outcome))
    labels_of(verdicts)
    records = records_of(workspace, find_run(workspace, run_id))
    query = "SELECT count(*) FROM result WHERE run_id = ? AND draw IS NULL AND dataset != 'confidential'"
    (numbers,) = workspace.connection.execute(query, (run_id,)).fetchone()
    return Judged(
        run_id,
        grouped(verdicts),
        records,
        max(0, numbers - len({(one.value, one.target, one.level) for one in verdicts})),
    )


class Verdicts(Pane, Split):
    """The board of one run; ``enter`` explains a finding or a verdict, ``T`` tries other limits."""

    shown_by = "results"
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

    def take(self, answer: Judged) -> None:
        """Show them, unless another run is shown by now."""
        if self.line is not None and answer.run_id == self.line.run.id:
            self._verdicts, self._records, self._is_read = answer.verdicts, answer.records, True
            self._others = answer.others
            self._show()

    def show(self, line: RunLine | None) -> None:
        """Show this run, and ask whether what is known of the gate's answer still holds."""
        if self.line is None or line is None or line.run.id != self.line.run.id:
            self._examined, self._why_unexamined = None, ""
        super().show(line)
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

        def ask(call: Beside) -> ExaminedRun:
            return memory.examine(directory, run_id, call)

        def refuse(text: str) -> Message:
            return self.Answered(take, text)

        self.call_beside(ask, take, group="gate", refuse=refuse)

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
        leads = known.leads
        witnesses = {one.check: known.witnesses(one.check) for one in leads}
        return GateLines(known.answer, leads, witnesses, known.waived_checks)

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
            gate = [SHORT_ANSWERS[self._examined.answer.may_leave], counts_text(open_findings)]
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

    @on(VerdictBoard.Moved)
    def _moved(self) -> None:
        self.follow()

    def detail_query(self) -> DetailQuery | None:
        """The finding or the verdict under the cursor, and the number that it speaks of, explained."""
        board = self.query_one(VerdictBoard)
        if self.line is None:
            return None
        run_id, toml = self.line.run.id, self.line.run.recipe_toml
        if (finding := board.chosen_finding) is not None:
            texts = self._texts_of(finding)
            return (run_id, finding.check), finding, lambda _: partial(lines_in, texts)
        verdict = board.chosen
        if verdict is None:
            return None

        def query(workspace: Workspace) -> LaidOut:
            from sfumato.workspace.reporting.explanation import title_called, verdict_text

            from ..parts.explain import explained

            row = judged_row(workspace, run_id, verdict)
            if row is None:
                return partial(facts_in, title_called(verdict.value), [("verdict", verdict_text(verdict))])
            return explained(workspace, run_id, row, titles_of(toml))

        return (run_id, self._verdicts.index(verdict)), verdict, query

    def _texts_of(self, finding: Finding) -> list[str]:
        """A finding with its witnesses in paragraphs."""
        witnesses = self._gate_lines.witnesses.get(finding.check, ())
        return [text for paragraph in finding_text(finding, witnesses) for text in (paragraph, "")]

    @on(VerdictBoard.FindingAsked)
    async def _explain_finding(self, event: VerdictBoard.FindingAsked) -> None:
        """Explain a finding as the place Release does."""
        from ..release.release import Explained

        known = self._examined
        witnesses = self._gate_lines.witnesses.get(event.finding.check, ())
        reason = "" if known is None else known.waive.get(event.finding.check, "")
        await self.sfumato.open(Explained(event.finding, reason, witnesses))

    @on(VerdictBoard.Asked)
    def _look_up(self, event: VerdictBoard.Asked) -> None:
        """Read the number of a verdict, and how to fix it where it is not met."""
        if self.line is None:
            return
        run_id, project_id, verdict = self.line.run.id, self.line.run.project_id, event.verdict

        def query(workspace: Workspace) -> tuple[FoundNumber, Sequence[Lever]] | None:
            from sfumato.workspace.plan.drafts import draft_of

            from ..parts.explain import read_number
            from .lever_changes import levers_for

            row, draft = judged_row(workspace, run_id, verdict), draft_of(workspace, project_id)
            if row is None:
                return None
            return read_number(workspace, run_id, row), levers_for(verdict, draft.toml) if draft else ()

        self.read(query, self._explain)

    async def _explain(self, answer: tuple[FoundNumber, Sequence[Lever]] | None) -> None:
        if answer is None:
            self.sfumato.say("The run has no row of results for this threshold; its reason stands on the board")
            return
        from ..parts.explain import Explain
        from .levers import ExplainVerdict

        found, levers = answer
        titles, run_id = (titles_of(self.line.run.recipe_toml), self.line.run.id) if self.line else (None, None)
        if not levers:
            await self.sfumato.open(Explain(found, titles, run_id))
            return

        def answered(lever: Lever | None) -> None:
            if lever is not None:
                self.post_message(self.Pulled(lever))

        await self.sfumato.open(ExplainVerdict(found, titles, levers, run_id), answered)

    def _show(self) -> None:
        shown = self.query_one(VerdictBoard)
        none = self.why_none("verdicts", NONE) if self._is_read else "…"
        gate = self._gate_lines
        self.count(self._counts())
        if self._is_read and (self._verdicts or self._others or gate.answer is not None):
            width = max(40, self.list_width - MARGIN)
            shown.lay_out(self._verdicts, width, self._records, self._others, none, self.is_split, gate)
        else:
            shown.clear("\n\n".join(filter(None, (gate.text, none))))

    def exportable(self) -> Exportable | None:
        """The verdicts with all their digits."""
        verdicts = self._verdicts
        return Exportable(self.named("verdicts"), lambda: lines_of(Verdict, verdicts)) if verdicts else None

    def manual_topics(self) -> Sequence[str]:
        """The check or the measure under the cursor."""
        board = self.query_one(VerdictBoard)
        if board.chosen_finding is not None:
            return f"release {board.chosen_finding.check}", "release gate"
        verdict = board.chosen
        return () if verdict is None else (verdict.value,)

    def take_focus(self) -> None:
        self.query_one(VerdictBoard).focus()
