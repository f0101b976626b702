"""Two runs side by side: every number of their releases, their verdicts, and what only one of them has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from sfumato.engine.wording import counted
from sfumato.tui.export import Exportable
from sfumato.tui.widgets.facts import facts_in, lines_in
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import KeyLine, Line
from sfumato.tui.widgets.pages import ListPages
from sfumato.workspace.reporting.comparison import (
    ONLY,
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
from sfumato.workspace.reporting.recipe_difference import difference_table, sentence
from sfumato.workspace.reporting.tables import Column, fitted, on_columns
from sfumato.workspace.reporting.words import interval, method_of, number, params_text

from .explain import ExplainNumber, Meaning, compared_facts, judged_facts, meaning_of
from .page import Dialog, Exports, grid_exportable
from .split import DetailQuery, Split

if TYPE_CHECKING:
    from sfumato.engine.execution.comparison import Compared
    from sfumato.workspace.reporting.words import Apart
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.views.comparison import RunComparison

Lines = Sequence[Sequence[object]]
VIEWS = ("numbers", "verdicts", "only one run", "plans")
NONE = "There is nothing of this kind. Press t for another view."


class CompareGrid(Grid):
    """The numbers or verdicts of both runs."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "Explain", id="compare.explain")]


class Compare(Dialog[None], Exports, Split):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "view", "Numbers, verdicts, only one run, plans", id="compare.view"),
        Binding("a", "any_data", "Compare all the same", id="compare.any_data"),
    ]
    AUTO_FOCUS = "Grid"

    computes = True

    def __init__(self, first: int, second: int) -> None:
        super().__init__()
        self._runs = first, second
        self._view, self._shown = VIEWS[0], ""
        self._pages: ListPages | None = None
        self._found: RunComparison | None = None
        self._refused = self._any_data = False

    def compose(self) -> ComposeResult:
        """What is compared, what is shown, the table, what the cursor reads, and the keys."""
        with Vertical(classes="whole"):
            yield Line(name="compare-head")
            yield Line(name="compare-tally")
            yield from self.compose_split(CompareGrid(empty="…"), Line(name="compare-reading"))
            yield KeyLine()

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
            self._say("compare-head", "The runs are on different data. Press a to compare them all the same.")
            self._say("compare-tally", answer[0])
            self._say("compare-reading", answer[1])
        else:
            self._found = answer
            self._show()

    def command_words(self) -> tuple[str, ...]:
        return ("compare", *map(str, self._runs), *(["--any-data"] if self._any_data else []))

    def exportable(self) -> Exportable | None:
        first, second = self._runs
        return grid_exportable(self.query_one(Grid), f"runs-{first}-{second}-{self._view.replace(' ', '-')}")

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

    def on_resize(self) -> None:
        """Give the columns their new widths."""
        self._show()

    def _show(self) -> None:
        found = self._found
        if found is None:
            return
        on_data = "on the same data" if found.same_data else "on DIFFERENT data"
        self._say("compare-head", f"{_titles(found)}, {on_data}, {plans_text(found)}")
        self._say("compare-tally", f"[{self._view}] {_TALLIES.get(self._view, _tally)(found)}")
        columns, rows = _VIEWS[self._view](found, self.list_width - 1)
        grid = self.query_one(Grid)
        same = self._view == self._shown
        self._pages = ListPages(columns, rows)
        grid.set_source(self._pages, empty=NONE, keep_cursor=same)
        self._shown = self._view
        self._read(grid.cursor if same else 0)

    def _say(self, line: str, text: str) -> None:
        self.query_one(f"#{line}", Line).say(text)

    @on(Grid.Highlighted)
    def _move(self, event: Grid.Highlighted) -> None:
        self._read(event.index)

    @on(Grid.Selected)
    async def _explain(self, event: Grid.Selected) -> None:
        """Say what the number or threshold under the cursor means, and all that both runs say of it."""
        explained = self._explained(event.index)
        if explained is not None:
            await self.sfumato.open(ExplainNumber(*explained))
        elif self._found is not None and self._is_open:
            self.sfumato.say(sentence(self._found.plans[event.index]))

    @property
    def _is_open(self) -> bool:
        """Whether the rows of the view are those that the cursor is on: until they have come it stands on the view before."""
        return self._pages is not None and self.query_one(Grid).source is self._pages

    def _explained(self, index: int) -> tuple[str, Callable[[Meaning], Sequence[tuple[str, str]]]] | None:
        """The key of the number in a row, and what both runs say of it; None in the view of plans."""
        found, runs = self._found, self._runs
        if found is None or self._view == VIEWS[3] or not self._is_open:
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
        grid = self.query_one(Grid)
        explained = self._explained(grid.cursor) if grid.count else None
        return (*(() if explained is None else (explained[0],)), "commands sfumato compare")

    def detail_query(self) -> DetailQuery | None:
        """The row under the cursor: what the number means, and all that both runs say of it; of the plans, how they differ there."""
        found, grid, view = self._found, self.query_one(Grid), self._view
        if found is None or not self._is_open or not grid.count:
            return None
        index = grid.cursor
        explained = self._explained(index)
        if explained is None:
            return index, view, lambda _: partial(lines_in, [sentence(found.plans[index])])
        key, facts_of = explained
        return index, view, lambda _: partial(facts_in, key, facts_of(meaning_of(key)))

    def _read(self, index: int) -> None:
        """Say all about the row under the cursor that the table has no room for."""
        found = self._found
        text = ""
        if found is not None and self._view == "numbers" and index < len(found.shared):
            text = reading(found.shared[index], self._runs, found.apart)
        elif found is not None and self._view == "plans" and index < len(found.plans):
            text = sentence(found.plans[index])
        self._say("compare-reading", text)


def plans_text(found: RunComparison) -> str:
    """``plans differ in 3 settings``: how far the two plans are apart."""
    return f"the plans differ in {counted(len(found.plans), 'place')}" if found.plans else "the plans are the same"


def _titles(found: RunComparison) -> str:
    """``run 3 Airbnb beside run 5 Airbnb CART``; a title that both have is said once."""
    (first, title), (second, other) = ((run.id, run.called) for run in found.runs)
    return f"run {first}{'' if title == other else f' {title}'} beside run {second} {other}"


def reading(row: Compared, runs: tuple[int, int], apart: Apart) -> str:
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
        f"{counted(len(found.only(place)), 'number')} of run {run}" for place, run in enumerate(found.numbers)
    )


def _numbers(found: RunComparison, width: int) -> tuple[Sequence[Column], Lines]:
    columns = fitted(number_columns(found.numbers), width)
    names = names_in(columns[0].width, found.shared, found.apart)
    rows = [number_cells(row, found.numbers, name) for row, name in zip(found.shared, names, strict=True)]
    return columns, on_columns(number_columns(found.numbers), columns, rows)


def _verdicts(found: RunComparison, width: int) -> tuple[Sequence[Column], Lines]:
    columns = fitted(verdict_columns(found.numbers), width)
    names = names_in(columns[0].width, found.verdicts, found.apart)
    rows = [verdict_cells(verdict, name) for verdict, name in zip(found.verdicts, names, strict=True)]
    return columns, on_columns(verdict_columns(found.numbers), columns, rows)


def _only(found: RunComparison, width: int) -> tuple[Sequence[Column], Lines]:
    places = enumerate(found.numbers)
    return fitted(ONLY, width), [
        only_cells(row, place, run, found.apart) for place, run in places for row in found.only(place)
    ]


def _plans(found: RunComparison, width: int) -> tuple[Sequence[Column], Lines]:
    table = difference_table(found.plans, found.names)
    columns = fitted(table.columns, width)
    return columns, on_columns(table.columns, columns, table.rows)


_TALLIES: dict[str, Callable[[RunComparison], str]] = {
    "verdicts": lambda found: verdict_tally(found.verdicts),
    "only one run": _tally_of_one,
    "plans": plans_text,
}
_VIEWS = {"numbers": _numbers, "verdicts": _verdicts, "only one run": _only, "plans": _plans}
