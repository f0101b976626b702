"""What a number means: from the declaration of its method, and from its row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message

from sfumato.engine.methods.rows import Row
from sfumato.tui.keys.acts import bind
from sfumato.tui.widgets.facts import fact_lines, facts_in
from sfumato.tui.widgets.lines import Scroll
from sfumato.tui.widgets.panel import Box
from sfumato.workspace.reporting.comparison import confidential_text, difference_text, limits_text, outcome
from sfumato.workspace.reporting.explanation import Meaning, definition, explanation, given, meaning_of, title_called
from sfumato.workspace.reporting.words import (
    Apart,
    full_params,
    interval,
    method_of,
    number,
    observed_text,
    outcome_text,
    params_text,
    use_text,
)
from sfumato.workspace.visible_text import replace_unprintable

from .page import Dialog
from .variable_titles import titled

if TYPE_CHECKING:
    from sfumato.engine.execution.comparison import ComparedNumber, ComparedVerdict, RunValue
    from sfumato.workspace.reporting.explanation import FoundNumber
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.views.records import RecordMeasure

    from .split import LaidOut

NO_TITLES: Mapping[str, str] = {}


class ExplainNumber(Dialog[Any]):
    """A number by its key, such as ``risk.identification.true_match_rate``, explained: what its method says, and ``facts_of`` it."""

    AUTO_FOCUS = "Scroll"

    @dataclass
    class Understood(Message):
        meaning: Meaning

    def __init__(self, key: str, facts_of: Callable[[Meaning], Sequence[tuple[str, str]]]) -> None:
        super().__init__()
        self._key, self._facts_of = key, facts_of
        self._meaning = Meaning("…", "…", "", "…")

    def compose(self) -> ComposeResult:
        with Box("…", self.keys_said, tall=True):
            yield Scroll()

    @property
    def keys_said(self) -> str:
        """The keys that the dialog takes, in its edge."""
        return "q closes"

    def on_mount(self) -> None:
        self._look_up()

    def manual_topics(self) -> Sequence[str]:
        return (self._key,)

    @work(thread=True, exit_on_error=False)
    def _look_up(self) -> None:
        """The registry imports every method with its numerical libraries; that must not hold up the keys."""
        self.post_message(self.Understood(meaning_of(self._key)))

    @on(Understood)
    def _understand(self, event: Understood) -> None:
        self._meaning = event.meaning
        self.query_one(Box).say(replace_unprintable(event.meaning.name))
        self._lay_out()

    def on_resize(self) -> None:
        self.call_after_refresh(self._lay_out)

    def _lay_out(self) -> None:
        pane = self.query_one(Scroll)
        region, facts = pane.scrollable_content_region, self._facts_of(self._meaning)
        lines = fact_lines(facts, region.width)
        if len(lines) > pane.size.height:
            lines = fact_lines(facts, region.width - pane.styles.scrollbar_size_vertical)
        pane.show(Content("\n").join(lines))


class Explain(ExplainNumber):
    """One row of the results, explained with what stands beside it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("open", "people", "Who is given away", show=True),
        bind("next", "people"),  # where enter takes a lever
    ]

    def __init__(self, found: FoundNumber, titles: Mapping[str, str] | None = None, run_id: int | None = None) -> None:
        """``titles`` are those of variables, by name; ``run_id`` is the run whose audited people can be looked at."""
        super().__init__(found.row.key, partial(facts, found, titles=titles or {}))
        self._row, self._of_run = found.row, run_id if found.targets else None

    @property
    def keys_said(self) -> str:
        return "q closes" if self._of_run is None else "enter who is given away, q closes"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._of_run is not None if action == "people" else super().check_action(action, parameters)

    def action_people(self) -> None:
        """The target of the audit that stands out most, and by keys the others."""
        run_id, row = self._of_run, self._row
        assert run_id is not None

        def query(workspace: Workspace) -> RecordMeasure | None:
            from sfumato.workspace.views.audits import audit_beside

            return audit_beside(workspace, run_id, row)

        self.compute(query, self._show_people)

    async def _show_people(self, measure: RecordMeasure | None) -> None:
        from .audited import Audited

        if measure is not None and self._of_run is not None:
            await self.sfumato.open(Audited(self._of_run, measure))


def facts(found: FoundNumber, meaning: Meaning, titles: Mapping[str, str] = NO_TITLES) -> list[tuple[str, str]]:
    """Every fact about a row that there is, by name: what people ask first, then definition, source, settings and key."""
    row = found.row
    together = "all released datasets together" if row.family == "synthesis" else "average over the released datasets"
    draws = together if row.draw is None else f"released dataset {row.draw}"
    of = "the confidential data themselves" if row.dataset == "confidential" else f"{row.dataset} data, {draws}"
    settings = [
        ("measured on", of),
        *full_params(row.params),
        ("defaults", use_text({}, {k: v for k, v in meaning.defaults.items() if k not in row.params})),
    ]
    return [*explanation(found), *definition(meaning, titled(row.target, titles), row.level, settings)]


def read_number(workspace: Workspace, run_id: int, row: Row) -> FoundNumber:
    """A row of a run with what stands beside it."""
    from sfumato.workspace.reporting.explanation import FoundNumber
    from sfumato.workspace.store.runs import find_run, records_of
    from sfumato.workspace.views.audits import targets_beside
    from sfumato.workspace.views.results import rows_beside, verdicts_on

    records = records_of(workspace, find_run(workspace, run_id))
    beside, verdicts = rows_beside(workspace, run_id, row), verdicts_on(workspace, run_id, row)
    return FoundNumber(row, beside, verdicts, records, targets_beside(workspace, run_id, row))


def explained(workspace: Workspace, run_id: int, row: Row, titles: Mapping[str, str]) -> LaidOut:
    """A row of a run with what stands beside it, and what it means."""
    found = read_number(workspace, run_id, row)
    return partial(facts_in, title_called(row.key), facts(found, meaning_of(row.key), titles))


def compared_facts(row: ComparedNumber, runs: tuple[int, int], apart: Apart, meaning: Meaning) -> list[tuple[str, str]]:
    """Every fact about a number of two runs that there is, by name."""
    band = interval(row.lower, row.upper)
    sides = [(run, side) for run, side in zip(runs, (row.first, row.second), strict=True) if side is not None]
    difference = "" if row.difference is None else f"{number(row.difference)}" + (f" ({band}, 95 %)" if band else "")
    said = [
        *((f"run {run}", side.reason if side.value is None else _value(side, row.unit)) for run, side in sides),
        (difference_text(runs), difference),
        ("better", outcome(row, runs)),
        ("confidential", confidential_text(row)),
        ("reason", row.reason),
        ("settings", params_text(row.params, apart.get(method_of(row.key), {}))),
    ]
    return [*given(said), *definition(meaning, row.target, row.level)]


def judged_facts(
    verdict: ComparedVerdict, runs: tuple[int, int], apart: Apart, meaning: Meaning
) -> list[tuple[str, str]]:
    """Every fact about the verdicts of two runs on a number that there is, by name."""
    sides = zip(runs, (verdict.first, verdict.second), strict=True)
    said = [
        ("limit", limits_text(verdict)),
        *(
            (
                f"run {run}",
                f"{outcome_text(side.outcome)}, {observed_text(side)}" if side else "no threshold",
            )
            for run, side in sides
        ),
        ("settings", params_text(verdict.params or {}, apart.get(method_of(verdict.value), {}))),
    ]
    return [*given(said), *definition(meaning, verdict.target, verdict.level)]


def _value(side: RunValue, unit: str) -> str:
    band = interval(side.lower, side.upper)
    return f"{number(side.value)} {unit}".strip() + (f", {band}" if band else "")
