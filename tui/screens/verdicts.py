"""The verdict board: every threshold with what was observed, and whether it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message

from sfumato.engine.recipe.outcomes import WORST_FIRST
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.tui.acts import bind
from sfumato.tui.export import Exportable, lines_of
from sfumato.tui.variable_titles import titles_of
from sfumato.tui.widgets.facts import facts_in
from sfumato.tui.widgets.verdict_board import VerdictBoard, grouped
from sfumato.workspace.store.runs import RunState, find_run, records_of
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import judged_row, verdicts_of

from .page import Pane
from .split import DetailQuery, LaidOut, Split
from .trial import Trial

if TYPE_CHECKING:
    from sfumato.tui.levers import Lever
    from sfumato.workspace.reporting.explanation import FoundNumber

MARGIN = 3
"""Cells of the list that are not for its lines: a blank either side, the scrollbar."""
NONE = "This run has no limits, so nothing is judged."


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
    """The board of one run; ``enter`` explains a verdict, ``T`` tries other limits."""

    shown_by = "results"
    full_list = 108
    BINDINGS: ClassVar[list[BindingType]] = [bind("try", "try", show=True)]

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
            self.count(self._counts(answer.verdicts))
            self._show()

    def _counts(self, verdicts: Sequence[Verdict]) -> str:
        """``1 of 6 not met``; nothing before the run is done."""
        unmet, total = sum(one.outcome != "met" for one in verdicts), len(verdicts)
        if not total:
            return "no limits" if self.line is not None and self.line.run.state is RunState.DONE else ""
        return f"{unmet} of {total} not met" if unmet else f"all {total} met"

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
        """The verdict under the cursor, and the number that it speaks of, explained."""
        verdict = self.query_one(VerdictBoard).chosen
        if verdict is None or self.line is None:
            return None
        run_id, toml = self.line.run.id, self.line.run.recipe_toml

        def query(workspace: Workspace) -> LaidOut:
            from sfumato.workspace.reporting.explanation import title_called, verdict_text

            from .explain import explained

            row = judged_row(workspace, run_id, verdict)
            if row is None:
                return partial(facts_in, title_called(verdict.value), [("verdict", verdict_text(verdict))])
            return explained(workspace, run_id, row, titles_of(toml))

        return (run_id, self._verdicts.index(verdict)), verdict, query

    @on(VerdictBoard.Asked)
    def _look_up(self, event: VerdictBoard.Asked) -> None:
        """Read the number of a verdict, and how to fix it where it is not met."""
        if self.line is None:
            return
        run_id, project_id, verdict = self.line.run.id, self.line.run.project_id, event.verdict

        def query(workspace: Workspace) -> tuple[FoundNumber, Sequence[Lever]] | None:
            from sfumato.tui.levers import levers_for
            from sfumato.workspace.plan.drafts import draft_of

            from .explain import read_number

            row, draft = judged_row(workspace, run_id, verdict), draft_of(workspace, project_id)
            if row is None:
                return None
            return read_number(workspace, run_id, row), levers_for(verdict, draft.toml) if draft else ()

        self.read(query, self._explain)

    async def _explain(self, answer: tuple[FoundNumber, Sequence[Lever]] | None) -> None:
        if answer is None:
            self.sfumato.say("The run has no row of results for this threshold; its reason stands on the board")
            return
        from .explain import Explain
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
        if self._verdicts or (self._others and self._is_read):
            width = max(40, self.list_width - MARGIN)
            shown.lay_out(self._verdicts, width, self._records, self._others, none, self.is_split)
        else:
            shown.clear(none)

    def exportable(self) -> Exportable | None:
        """The verdicts with all their digits."""
        verdicts = self._verdicts
        return Exportable(self.named("verdicts"), lambda: lines_of(Verdict, verdicts)) if verdicts else None

    def manual_topics(self) -> Sequence[str]:
        """The measure of the verdict under the cursor."""
        verdict = self.query_one(VerdictBoard).chosen
        return () if verdict is None else (verdict.value,)

    def take_focus(self) -> None:
        self.query_one(VerdictBoard).focus()
