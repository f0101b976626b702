"""Dialog that compares two runs: every number of their releases, their verdicts, and results of only one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.widgets.facts import titled_facts, wrap_paragraphs
from sfumato.tui.widgets.grid import LiveGrid
from sfumato.tui.widgets.lines import Line
from sfumato.tui.widgets.tables import Cells, Columns, GridTable, table_columns
from sfumato.workspace.reporting.comparison import (
    SINGLE_RUN_COLUMNS,
    brief_difference_outcome,
    compared_number_cells,
    compared_number_columns,
    compared_verdict_cells,
    compared_verdict_columns,
    confidential_values_text,
    difference_heading,
    difference_outcome,
    outcome_counts_text,
    shortened_row_names,
    single_run_cells,
    verdict_counts_text,
)
from sfumato.workspace.reporting.explanation import MeasureDescription, describe_measure, explanation_title
from sfumato.workspace.reporting.recipe_difference import difference_sentence, difference_table
from sfumato.workspace.reporting.tables import DisplayColumn, fit_columns
from sfumato.workspace.reporting.words import interval_text, method_key_of_measure, number, params_text

from ..parts.explain import NumberExplanation, compared_facts, compared_verdict_facts
from ..parts.page import OffersExport
from ..parts.split import DetailQuery, SplitView
from ..parts.tables import TableDialog

if TYPE_CHECKING:
    from sfumato.engine.execution.comparison import ComparedNumber
    from sfumato.workspace.reporting.words import SettingsByMethod
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.views.comparison import RunComparison

VIEWS = ("numbers", "verdicts", "only one run", "plans")
WORDS_FROM = 90
"""Width in cells from which each row names the better run in words."""
NONE = "There is nothing of this kind. Press m for another view."
ViewTable = tuple[GridTable[int], int]
"""Table whose rows are indices, and the number of rows."""


class CompareGrid(LiveGrid):
    """Grid with the numbers or verdicts of both runs."""

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("open", "select", "Explain", show=True)]


class ComparisonDialog(TableDialog[int, None], OffersExport, SplitView):
    """Dialog that compares two runs, one view at a time; rows are identified by their index."""

    id_prefix = export_file = "compare"
    least_list = 78
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("picture", "view", "Numbers, verdicts, only one run, plans", show=True),
        bind_act("any_data", "any_data", "Compare all the same", show=True),
    ]
    needs_engine = True

    def __init__(self, first: int, second: int) -> None:
        """Create the dialog for two runs."""
        super().__init__()
        self._runs = first, second
        self._view, self._shown = VIEWS[0], ""
        self._found: RunComparison | None = None
        self._refused = self._any_data = False

    def compose_above_table(self) -> Iterator[Widget]:
        """Yield the line with the name of the view and its counts."""
        yield Line(name="compare-tally")

    def make_grid(self) -> CompareGrid:
        """Return the grid of the comparison."""
        return CompareGrid(empty="…")

    def read_query(self) -> Callable[[Workspace], RunComparison | tuple[str, str]]:
        """Return the query for the comparison, or for how the data of the runs differ."""
        runs, any_data = self._runs, self._any_data

        def query(workspace: Workspace) -> RunComparison | tuple[str, str]:
            """Compare the runs, or describe their different data."""
            from sfumato.workspace.errors import DifferentData
            from sfumato.workspace.views.comparison import compare_runs

            try:
                return compare_runs(workspace, *runs, any_data=any_data)
            except DifferentData as error:
                return error.described

        return query

    def show_answer(self, answer: RunComparison | tuple[str, str]) -> None:
        """Show the comparison, or why the runs are not compared."""
        # Numbers of different data differ for reasons other than the plan, so the user must ask for it.
        self._refused = isinstance(answer, tuple)
        self.refresh_bindings()
        if isinstance(answer, tuple):
            self._show_line(
                "compare-head",
                "The runs are on different data. Compare anyway with ? or ctrl+p: Compare runs of different data.",
            )
            self._show_line("compare-tally", answer[0])
            self._show_line("compare-reading", answer[1])
        else:
            self._found = answer
            self._show_view()

    def command_words(self) -> tuple[str, ...]:
        """Return the command for the same comparison."""
        return ("compare", *map(str, self._runs), *(["--any-data"] if self._any_data else []))

    @property
    def export_name(self) -> str:
        """Return the name of the exported file."""
        first, second = self._runs
        return f"runs-{first}-{second}-{self._view.replace(' ', '-')}"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable comparing different data on request, and the views of a comparison."""
        if action == "any_data":
            return self._refused
        return self._found is not None or action != "view"

    def action_any_data(self) -> None:
        """Compare runs on different data."""
        self._any_data = True
        self.reload()

    def action_view(self) -> None:
        """Show the next view: numbers, verdicts, results of one run, differences between the plans."""
        self._view = VIEWS[(VIEWS.index(self._view) + 1) % len(VIEWS)]
        self._show_view()

    def _show_view(self) -> None:
        """Show the current view, with the cursor on the first row of another view."""
        found = self._found
        if found is None:
            return
        on_data = "on the same data" if found.is_same_data else "on DIFFERENT data"
        self._show_line("compare-head", f"{_runs_title(found)}, {on_data}, {plan_difference_text(found)}")
        self._show_line("compare-tally", f"[{self._view}] {_TALLIES.get(self._view, _numbers_tally)(found)}")
        view, (table, count) = self._view, _VIEWS[self._view](found)
        self.grid.set_empty_text(NONE)
        # Keys have the view, so that a row of the previous view is not taken for one of this.
        first = None if view == self._shown else (view, 0)
        self.show_rows(replace(table, key=lambda place: (view, place)), range(count), first)
        self._shown = view

    def _show_line(self, line: str, text: str) -> None:
        """Set the text of a line."""
        self.query_one(f"#{line}", Line).set_text(text)

    async def open_row(self, row: int) -> None:
        """Explain the number or threshold of a row, with all facts about both runs."""
        explained = self._explanation_of_row(row)
        if explained is not None:
            await self.sfumato.open(NumberExplanation(*explained))
        elif self._found is not None:
            self.sfumato.say(difference_sentence(self._found.plan_differences[row]))

    def _explanation_of_row(
        self, index: int
    ) -> tuple[str, Callable[[MeasureDescription], Sequence[tuple[str, str]]]] | None:
        """Return the key of the number in a row, and the facts of both runs about it; None in the view of plans."""
        found, runs = self._found, self._runs
        if found is None or self._view == VIEWS[3]:
            return None
        if self._view == VIEWS[1]:
            judged = found.verdicts[index]
            return judged.value, partial(compared_verdict_facts, judged, runs, found.varying_settings)
        row = (
            found.shared_rows
            if self._view == VIEWS[0]
            else [one for place in (0, 1) for one in found.rows_of_one_run(place)]
        )[index]
        return row.key, partial(compared_facts, row, runs, found.varying_settings)

    def manual_topics(self) -> Sequence[str]:
        """Return the measure under the cursor and the command that compares, as topics of the manual."""
        explained = None if self.current_row is None else self._explanation_of_row(self.current_row)
        return (*(() if explained is None else (explained[0],)), "commands sfumato compare")

    def detail_of_row(self, row: int) -> DetailQuery | None:
        """Return the query for the meaning of the number and the facts of both runs, or for a difference
        of the plans.
        """
        found, view, explained = self._found, self._view, self._explanation_of_row(row)
        if found is None:
            return None
        if explained is None:
            return row, view, lambda _: partial(wrap_paragraphs, [difference_sentence(found.plan_differences[row])])
        key, facts_of = explained
        return row, view, lambda _: partial(titled_facts, explanation_title(key), facts_of(describe_measure(key)))

    def describe_row(self, row: int) -> str:
        """Return the part of a row that the table has no room for."""
        found = self._found
        if found is not None and self._view == "numbers":
            return number_comparison_text(found.shared_rows[row], self._runs, found.varying_settings)
        return difference_sentence(found.plan_differences[row]) if found is not None and self._view == "plans" else ""


def plan_difference_text(found: RunComparison) -> str:
    """Return the number of differences of the plans: ``the plans differ in 3 places``."""
    return (
        f"the plans differ in {count_noun(len(found.plan_differences), 'place')}"
        if found.plan_differences
        else "the plans are the same"
    )


def _runs_title(found: RunComparison) -> str:
    """Return the titles of both runs: ``run 3 Airbnb beside run 5 Airbnb CART``; a common title only once."""
    (first, title), (second, other) = ((run.id, run.label) for run in found.runs)
    return f"run {first}{'' if title == other else f' {title}'} beside run {second} {other}"


def number_comparison_text(row: ComparedNumber, runs: tuple[int, int], apart: SettingsByMethod) -> str:
    """Return one number in full: ``> run 5 better · run 5 - run 3: -0.01 (-0.02 ..

    -0.003) · confidential 0.6 · price ±5%``.
    """
    band = interval_text(row.lower, row.upper)
    parts = [difference_outcome(row, runs)]
    if row.difference:
        parts.append(f"{difference_heading(runs)}: {number(row.difference)}" + (f" ({band})" if band else ""))
    own = confidential_values_text(row)
    parts += [f"confidential {own}"] if own else []
    parts += [
        text for text in (row.reason, params_text(row.params, apart.get(method_key_of_measure(row.key), {}))) if text
    ]
    return " · ".join(parts)


def _numbers_tally(found: RunComparison) -> str:
    """Return the counts of better, worse and equal numbers."""
    return outcome_counts_text(found.shared_rows, found.run_numbers)


def _single_run_tally(found: RunComparison) -> str:
    """Return the number of results of only one run, for each run."""
    return ", ".join(
        f"{count_noun(len(found.rows_of_one_run(place)), 'number')} of run {run}"
        for place, run in enumerate(found.run_numbers)
    )


def _cells_table(
    columns: Sequence[DisplayColumn],
    rows: Sequence[Sequence[object]],
    names: Callable[[int], Sequence[str]] | None = None,
) -> ViewTable:
    """Return a table of finished cells; ``names`` returns the names of all rows for the first column's width."""
    heads = [column.name for column in columns]

    def fit(columns: Columns[int], width: int) -> Columns[int]:
        """Fit the columns, then shorten the names to the first column."""
        first, *others = fit_columns(columns, width)
        named = None if names is None else names(first.width)
        # Names are shortened together, so that no two become equal.
        return (first if named is None else replace(first, cell=lambda place: named[place]), *others)

    def values(place: int) -> Cells:
        """Return the cells of the row at this index."""
        return dict(zip(heads, rows[place], strict=True))

    return GridTable(table_columns(columns), values=values, column_fitter=fit), len(rows)


def _numbers_view(found: RunComparison) -> ViewTable:
    """Return the table of numbers; a narrow one has the better run in brief, and no differences."""
    rows = [compared_number_cells(row, found.run_numbers) for row in found.shared_rows]
    table, count = _cells_table(
        compared_number_columns(found.run_numbers),
        rows,
        lambda width: shortened_row_names(width, found.shared_rows, found.varying_settings),
    )

    def fit(columns: Columns[int], width: int) -> Columns[int]:
        """Fit the columns; below ``WORDS_FROM`` cells optional ones are dropped and outcomes shortened."""
        if width < WORDS_FROM:
            brief = [brief_difference_outcome(row, found.run_numbers) for row in found.shared_rows]
            better = max([len("better"), *map(len, brief)])
            kept = [column for column in columns if not column.drop_order]
            columns = [*kept[:-1], replace(kept[-1], width=better, cell=lambda place: brief[place])]
        return table.column_fitter(columns, width)

    return replace(table, column_fitter=fit), count


def _verdicts_view(found: RunComparison) -> ViewTable:
    """Return the table of verdicts of both runs."""
    rows = [compared_verdict_cells(verdict) for verdict in found.verdicts]
    return _cells_table(
        compared_verdict_columns(found.run_numbers),
        rows,
        lambda width: shortened_row_names(width, found.verdicts, found.varying_settings),
    )


def _single_run_view(found: RunComparison) -> ViewTable:
    """Return the table of results of only one run."""
    places = enumerate(found.run_numbers)
    rows = [
        single_run_cells(row, place, run, found.varying_settings)
        for place, run in places
        for row in found.rows_of_one_run(place)
    ]
    return _cells_table(SINGLE_RUN_COLUMNS, rows)


def _plans_view(found: RunComparison) -> ViewTable:
    """Return the table of differences between the plans."""
    table = difference_table(found.plan_differences, found.run_labels)
    return _cells_table(table.columns, table.rows)


_TALLIES: dict[str, Callable[[RunComparison], str]] = {
    "verdicts": lambda found: verdict_counts_text(found.verdicts),
    "only one run": _single_run_tally,
    "plans": plan_difference_text,
}
_VIEWS = {"numbers": _numbers_view, "verdicts": _verdicts_view, "only one run": _single_run_view, "plans": _plans_view}
