"""Dialogs that explain a number from the declaration of its method and from its row of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message

from sfumato.engine.methods.rows import Row
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.widgets.facts import fact_lines, titled_facts
from sfumato.tui.widgets.lines import Scroll
from sfumato.tui.widgets.panel import DialogBox
from sfumato.workspace.reporting.comparison import (
    compared_limits_text,
    confidential_values_text,
    difference_heading,
    difference_interval_text,
    difference_outcome,
    difference_text,
)
from sfumato.workspace.reporting.explanation import (
    MeasureDescription,
    definition_facts,
    describe_measure,
    explanation_facts,
    explanation_title,
    measures_whole_release,
    name_of_counted,
    nonempty_facts,
    settings_facts,
)
from sfumato.workspace.reporting.words import (
    NO_SETTINGS,
    SettingsByMethod,
    interval_text,
    method_key_of_measure,
    observed_text,
    outcome_text,
    params_text,
    unit_interval_text,
    value_text,
)
from sfumato.workspace.visible_text import replace_unprintable

from .page import Dialog
from .variable_titles import title_variable

if TYPE_CHECKING:
    from sfumato.engine.execution.comparison import ComparedNumber, ComparedVerdict, RunValue
    from sfumato.workspace.reporting.explanation import ExplainedNumber
    from sfumato.workspace.reporting.numbers import NumberLine
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.views.records import RecordMeasure

    from .split import LaidOut

NO_TITLES: Mapping[str, str] = {}


class NumberExplanation(Dialog[Any]):
    """Dialog that explains a number by its key, such as ``risk.identification.true_match_rate``.

    It shows what the number's method declares, and the facts that ``facts_of`` returns for it.
    """

    AUTO_FOCUS = "Scroll"

    @dataclass
    class MeaningFound(Message):
        """Message with the description of the number."""

        meaning: MeasureDescription

    def __init__(self, key: str, facts_of: Callable[[MeasureDescription], Sequence[tuple[str, str]]]) -> None:
        """Create the dialog; the declaration is looked up later."""
        super().__init__()
        self._key, self._facts_of = key, facts_of
        self._meaning = MeasureDescription("…", "…", "", "…")

    def compose(self) -> ComposeResult:
        """Yield the box for the facts."""
        with DialogBox("…", self.keys_text, tall=True):
            yield Scroll()

    @property
    def keys_text(self) -> str:
        """Return the help on the keys for the edge of the frame."""
        return "q closes"

    def on_mount(self) -> None:
        self._find_meaning()

    def manual_topics(self) -> Sequence[str]:
        return (self._key,)

    @work(thread=True, exit_on_error=False)
    def _find_meaning(self) -> None:
        """Look the number up in a thread."""
        # The registry imports all methods with their numerical libraries, which would hold up the keys.
        self.post_message(self.MeaningFound(describe_measure(self._key)))

    @on(MeaningFound)
    def _show_meaning(self, event: MeaningFound) -> None:
        """Show the name of the number and the facts about it."""
        self._meaning = event.meaning
        self.query_one(DialogBox).set_title(replace_unprintable(event.meaning.name))
        self._draw_facts()

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw_facts)

    def _draw_facts(self) -> None:
        """Lay the facts out, without the scrollbar's column if they need one."""
        pane = self.query_one(Scroll)
        # The bar of an earlier layout is part of this width: whether it stays depends on the lines, and they on the width.
        size, facts = pane.size, self._facts_of(self._meaning)
        lines = fact_lines(facts, size.width)
        if len(lines) > size.height:
            lines = fact_lines(facts, size.width - pane.styles.scrollbar_size_vertical)
        pane.show_text(Content("\n").join(lines))


class ResultExplanation(NumberExplanation):
    """Dialog that explains one row of the results, with its verdicts and companions."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("open", "people", "Who is at risk", show=True),
        bind_act("next", "people"),  # where enter takes a lever
    ]

    def __init__(
        self, found: ExplainedNumber, titles: Mapping[str, str] | None = None, run_id: int | None = None
    ) -> None:
        """Create the dialog about a number.

        found: the number
        titles: titles of variables, by name
        run_id: run whose audited people can be opened
        """
        super().__init__(found.row.key, partial(number_facts, found, titles=titles or {}))
        self._row, self._of_run = found.row, run_id if found.audited_records else None

    @property
    def keys_text(self) -> str:
        return "q closes" if self._of_run is None else "enter people recognised, q closes"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the key for audited people if the number has some."""
        return self._of_run is not None if action == "people" else super().check_action(action, parameters)

    def action_people(self) -> None:
        """Open the target of the audit that is easiest to recognise."""
        run_id, row = self._of_run, self._row
        assert run_id is not None

        def query(workspace: Workspace) -> RecordMeasure | None:
            """Find the audit that the row is of."""
            from sfumato.workspace.views.audits import audit_of_row

            return audit_of_row(workspace, run_id, row)

        self.compute(query, self._open_audit)

    async def _open_audit(self, measure: RecordMeasure | None) -> None:
        """Open the audit, if there is one."""
        from .audited import AuditedTargetDialog

        if measure is not None and self._of_run is not None:
            await self.sfumato.open(AuditedTargetDialog(self._of_run, measure))


def number_facts(
    found: ExplainedNumber, meaning: MeasureDescription, titles: Mapping[str, str] = NO_TITLES
) -> list[tuple[str, str]]:
    """Return all facts about a row as (name, text): the most important first, then definition, source, settings and
    key.
    """
    row = found.row
    # Results of synthesis, such as a privacy budget, are of all datasets together, and so are attacks on all of them.
    is_whole = row.family == "synthesis" or measures_whole_release(row.key)
    together = "all released datasets together" if is_whole else "average over the released datasets"
    draws = together if row.draw is None else f"released dataset {row.draw}"
    of = "the confidential data themselves" if row.dataset == "confidential" else f"{row.dataset} data, {draws}"
    settings = [
        ("measured on", of),
        *settings_facts(row, meaning.defaults, titles),
    ]
    return [
        *explanation_facts(found),
        *definition_facts(
            replace(meaning, meaning=name_of_counted(meaning.meaning, row, found.n_records)),
            title_variable(row.target, titles),
            row.level,
            settings,
            found.folded,
        ),
    ]


def explain_row(
    workspace: Workspace,
    run_id: int,
    row: Row,
    titles: Mapping[str, str],
    line: NumberLine | None = None,
    apart: SettingsByMethod = NO_SETTINGS,
) -> LaidOut:
    """Return the explanation of a row of a run, and of what is folded into its line, as a function of the width in cells."""
    from sfumato.workspace.views.explained_numbers import read_explained_number

    found = read_explained_number(workspace, run_id, row, line, apart)
    return partial(titled_facts, explanation_title(row.key), number_facts(found, describe_measure(row.key), titles))


def compared_facts(
    row: ComparedNumber, runs: tuple[int, int], apart: SettingsByMethod, meaning: MeasureDescription
) -> list[tuple[str, str]]:
    """Return all facts about a number of two runs as (name, text)."""
    band = difference_interval_text(row)
    sides = [(run, side) for run, side in zip(runs, (row.first, row.second), strict=True) if side is not None]
    difference = "" if row.difference is None else difference_text(row) + (f" ({band}, 95 %)" if band else "")
    said = [
        *((f"run {run}", side.reason if side.value is None else _side_text(row, side)) for run, side in sides),
        (difference_heading(runs), difference),
        ("better", difference_outcome(row, runs)),
        ("confidential", confidential_values_text(row)),
        ("reason", row.reason),
        ("settings", params_text(row.params, apart.get(method_key_of_measure(row.key), {}))),
    ]
    return [*nonempty_facts(said), *definition_facts(meaning, row.target, row.level)]


def compared_verdict_facts(
    verdict: ComparedVerdict, runs: tuple[int, int], apart: SettingsByMethod, meaning: MeasureDescription
) -> list[tuple[str, str]]:
    """Return all facts about the verdicts of two runs on a number as (name, text)."""
    sides = zip(runs, (verdict.first, verdict.second), strict=True)
    said = [
        ("limit", compared_limits_text(verdict)),
        *(
            (
                f"run {run}",
                f"{outcome_text(side.outcome)}, {observed_text(side)}" if side else "no threshold",
            )
            for run, side in sides
        ),
        ("settings", params_text(verdict.params or {}, apart.get(method_key_of_measure(verdict.value), {}))),
    ]
    return [*nonempty_facts(said), *definition_facts(meaning, verdict.target, verdict.level)]


def _side_text(row: ComparedNumber, side: RunValue) -> str:
    """Return a value of a run with its unit and its interval."""
    band = interval_text(side.lower, side.upper)
    if row.unit == "share" and band and side.lower is not None:
        band = unit_interval_text(side.lower, side.upper, in_percent=True)
    return value_text(row.key, side.value, None, row.params, unit=row.unit) + (f", {band}" if band else "")
