"""Two runs side by side: every number of their releases, their verdicts, and what only one of them has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind
from sfumato.tui.widgets.facts import facts_in, lines_in
from sfumato.tui.widgets.grid import LiveGrid
from sfumato.tui.widgets.lines import Line
from sfumato.tui.widgets.tables import Cells, Columns, Table, columns_of
from sfumato.workspace.reporting.comparison import (
    ONLY,
    brief_outcome,
    confidential_text,
    difference_text,
    names_in,
    number_cells,
    number_columns,
    only_cells,
    outcome,
    tally,
    verdict_cells,
    verdict_columns,
    verdict_tally,
)
from sfumato.workspace.reporting.explanation import Meaning, meaning_of, title_called
from sfumato.workspace.reporting.recipe_difference import difference_table, sentence
from sfumato.workspace.reporting.tables import Column, fitted
from sfumato.workspace.reporting.words import interval, method_of, number, params_text

from ..parts.explain import ExplainNumber, compared_facts, judged_facts
from ..parts.page import Exports
from ..parts.split import DetailQuery, Split
from ..parts.tables import TableDialog

if TYPE_CHECKING:
    from sfumato.engine.execution.comparison import ComparedNumber
    from sfumato.workspace.reporting.words import Apart
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.views.comparison import RunComparison

VIEWS = ("numbers", "verdicts", "only one run", "plans")
WORDS_FROM = 90
"""Cells from which on each row says in words which run is better."""
NONE = "There is nothing of this kind. Press m for another view."
Shown = tuple[Table[int], int]
"""A table of places, and how many there are."""


class CompareGrid(LiveGrid):
    """The numbers or verdicts of both runs."""

    BINDINGS: ClassVar[list[BindingType]] = [bind("open", "select", "Explain", show=True)]


class Compare(TableDialog[int, None], Exports, Split):
    """Two runs, one kind of what they have at a time; its rows are known by their place."""

    called = exports = "compare"
    least_list = 78
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("picture", "view", "Numbers, verdicts, only one run, plans", show=True),
        bind("any_data", "any_data", "Compare all the same", show=True),
    ]
    computes = True

    def __init__(self, first: int, second: int) -> None:
        super().__init__()
        self._runs = first, second
        self._view, self._shown = VIEWS[0], ""
        self._found: RunComparison | None = None
        self._refused = self._any_data = False

    def above(self) -> Iterator[Widget]:
        """What is shown."""
        yield Line(name="compare-tally")

    def make_grid(self) -> CompareGrid:
        return CompareGrid(empty="…")

    def read_query(self) -> Callable[[Workspace], RunComparison | tuple[str, str]]:
        """The comparison, or on which different data the runs are."""
        runs, any_data = self._runs, self._any_data

        def query(workspace: Workspace) -> RunComparison | tuple[str, str]:
            from sfumato.workspace.errors import DifferentData
            from sfumato.workspace.views.comparison import compare_runs

            try:
                return compare_runs(workspace, *runs, any_data=any_data)
            except DifferentData as error:
                return error.described

        return query

    def take(self, answer: RunComparison | tuple[str, str]) -> None:
        self._refused = isinstance(answer, tuple)
        self.refresh_bindings()
        if isinstance(answer, tuple):
            self._say(
                "compare-head",
                "The runs are on different data. Compare anyway with ? or ctrl+p: Compare runs of different data.",
            )
            self._say("compare-tally", answer[0])
            self._say("compare-reading", answer[1])
        else:
            self._found = answer
            self._show()

    def command_words(self) -> tuple[str, ...]:
        return ("compare", *map(str, self._runs), *(["--any-data"] if self._any_data else []))

    @property
    def export_name(self) -> str:
        first, second = self._runs
        return f"runs-{first}-{second}-{self._view.replace(' ', '-')}"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Runs on different data are compared on request only."""
        if action == "any_data":
            return self._refused
        return self._found is not None or action != "view"

    def action_any_data(self) -> None:
        """Compare runs on different data."""
        self._any_data = True
        self.reload()

    def action_view(self) -> None:
        """Show the next of numbers, verdicts, what only one run has, and what differs between the plans."""
        self._view = VIEWS[(VIEWS.index(self._view) + 1) % len(VIEWS)]
        self._show()

    def _show(self) -> None:
        found = self._found
        if found is None:
            return
        on_data = "on the same data" if found.same_data else "on DIFFERENT data"
        self._say("compare-head", f"{_titles(found)}, {on_data}, {plans_text(found)}")
        self._say("compare-tally", f"[{self._view}] {_TALLIES.get(self._view, _tally)(found)}")
        view, (table, count) = self._view, _VIEWS[self._view](found)
        self.grid.set_empty(NONE)
        first = None if view == self._shown else (view, 0)
        self.show_rows(replace(table, key=lambda place: (view, place)), range(count), first)
        self._shown = view

    def _say(self, line: str, text: str) -> None:
        self.query_one(f"#{line}", Line).say(text)

    async def chosen(self, row: int) -> None:
        """Say what the number or threshold means, and all that both runs say of it."""
        explained = self._explained(row)
        if explained is not None:
            await self.sfumato.open(ExplainNumber(*explained))
        elif self._found is not None:
            self.sfumato.say(sentence(self._found.plans[row]))

    def _explained(self, index: int) -> tuple[str, Callable[[Meaning], Sequence[tuple[str, str]]]] | None:
        """The key of the number in a row, and what both runs say of it; None in the view of plans."""
        found, runs = self._found, self._runs
        if found is None or self._view == VIEWS[3]:
            return None
        if self._view == VIEWS[1]:
            judged = found.verdicts[index]
            return judged.value, partial(judged_facts, judged, runs, found.apart)
        row = (found.shared if self._view == VIEWS[0] else [one for place in (0, 1) for one in found.only(place)])[
            index
        ]
        return row.key, partial(compared_facts, row, runs, found.apart)

    def manual_topics(self) -> Sequence[str]:
        """The measure under the cursor, else the command that compares."""
        explained = None if self.here is None else self._explained(self.here)
        return (*(() if explained is None else (explained[0],)), "commands sfumato compare")

    def detail(self, row: int) -> DetailQuery | None:
        """What the number means, and all that both runs say of it; of the plans, how they differ there."""
        found, view, explained = self._found, self._view, self._explained(row)
        if found is None:
            return None
        if explained is None:
            return row, view, lambda _: partial(lines_in, [sentence(found.plans[row])])
        key, facts_of = explained
        return row, view, lambda _: partial(facts_in, title_called(key), facts_of(meaning_of(key)))

    def reading(self, row: int) -> str:
        """All about the row that the table has no room for."""
        found = self._found
        if found is not None and self._view == "numbers":
            return reading(found.shared[row], self._runs, found.apart)
        return sentence(found.plans[row]) if found is not None and self._view == "plans" else ""


def plans_text(found: RunComparison) -> str:
    """``plans differ in 3 settings``: how far the two plans are apart."""
    return f"the plans differ in {count_noun(len(found.plans), 'place')}" if found.plans else "the plans are the same"


def _titles(found: RunComparison) -> str:
    """``run 3 Airbnb beside run 5 Airbnb CART``; a title that both have is said once."""
    (first, title), (second, other) = ((run.id, run.called) for run in found.runs)
    return f"run {first}{'' if title == other else f' {title}'} beside run {second} {other}"


def reading(row: ComparedNumber, runs: tuple[int, int], apart: Apart) -> str:
    """One number in full: ``> run 5 better · run 5 - run 3: -0.01 (-0.02 .. -0.003) · confidential 0.6 · price ±5%``."""
    band = interval(row.lower, row.upper)
    parts = [outcome(row, runs)]
    if row.difference:
        parts.append(f"{difference_text(runs)}: {number(row.difference)}" + (f" ({band})" if band else ""))
    own = confidential_text(row)
    parts += [f"confidential {own}"] if own else []
    parts += [text for text in (row.reason, params_text(row.params, apart.get(method_of(row.key), {}))) if text]
    return " · ".join(parts)


def _tally(found: RunComparison) -> str:
    return tally(found.shared, found.numbers)


def _tally_of_one(found: RunComparison) -> str:
    return ", ".join(
        f"{count_noun(len(found.only(place)), 'number')} of run {run}" for place, run in enumerate(found.numbers)
    )


def _table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[object]],
    names: Callable[[int], Sequence[str]] | None = None,
) -> Shown:
    """Rows of cells by their place; ``names`` are as long as the first column is wide."""
    heads = [column.name for column in columns]

    def fit(columns: Columns[int], width: int) -> Columns[int]:
        first, *others = fitted(columns, width)
        named = None if names is None else names(first.width)
        return (first if named is None else replace(first, cell=lambda place: named[place]), *others)

    def values(place: int) -> Cells:
        return dict(zip(heads, rows[place], strict=True))

    return Table(columns_of(columns), values=values, fit=fit), len(rows)


def _numbers(found: RunComparison) -> Shown:
    """The numbers; where there is little room who is better is said in brief, and the reading alone has the difference: names need the room."""
    rows = [number_cells(row, found.numbers) for row in found.shared]
    table, count = _table(number_columns(found.numbers), rows, lambda width: names_in(width, found.shared, found.apart))

    def fit(columns: Columns[int], width: int) -> Columns[int]:
        if width < WORDS_FROM:
            brief = [brief_outcome(row, found.numbers) for row in found.shared]
            better = max([len("better"), *map(len, brief)])
            kept = [column for column in columns if not column.spare]
            columns = [*kept[:-1], replace(kept[-1], width=better, cell=lambda place: brief[place])]
        return table.fit(columns, width)

    return replace(table, fit=fit), count


def _verdicts(found: RunComparison) -> Shown:
    rows = [verdict_cells(verdict) for verdict in found.verdicts]
    return _table(verdict_columns(found.numbers), rows, lambda width: names_in(width, found.verdicts, found.apart))


def _only(found: RunComparison) -> Shown:
    places = enumerate(found.numbers)
    rows = [only_cells(row, place, run, found.apart) for place, run in places for row in found.only(place)]
    return _table(ONLY, rows)


def _plans(found: RunComparison) -> Shown:
    table = difference_table(found.plans, found.names)
    return _table(table.columns, table.rows)


_TALLIES: dict[str, Callable[[RunComparison], str]] = {
    "verdicts": lambda found: verdict_tally(found.verdicts),
    "only one run": _tally_of_one,
    "plans": plans_text,
}
_VIEWS = {"numbers": _numbers, "verdicts": _verdicts, "only one run": _only, "plans": _plans}
