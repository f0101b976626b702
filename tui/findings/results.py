"""Tab with the results of a run: its numbers, filtered, sorted and explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from rich.cells import cell_len
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Input
from textual.worker import get_current_worker

from sfumato.engine.data.toml import read_toml
from sfumato.engine.methods.labels import is_of_units, measure_name
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun, count_of_noun, record_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.parts.variable_titles import variable_titles
from sfumato.tui.session.export import ExportTable, ScreenExport, table_of_records
from sfumato.tui.widgets.entries import FilterField
from sfumato.tui.widgets.facts import wrap_paragraphs
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import Line
from sfumato.tui.widgets.pages import PageSource, RowHeading
from sfumato.tui.widgets.tables import Columns, GridTable, TableColumn, TablePages, table_columns
from sfumato.workspace.reporting.evidence import evidence_lines
from sfumato.workspace.reporting.numbers import (
    AS_IN_THE_DATA,
    FAMILIES,
    GOAL_MARKS,
    NUMBER_COLUMNS,
    NumberLine,
    cell_forms,
    families_text,
    good_word,
    line_cells,
    line_subject,
    titled_name,
)
from sfumato.workspace.reporting.results import ROW_COLUMNS, row_cells
from sfumato.workspace.reporting.tables import COLUMN_GAP, fit_columns
from sfumato.workspace.reporting.words import (
    NO_SETTINGS,
    SettingsByMethod,
    shorten_names,
    sign_for,
    varying_settings_of_recipe,
)
from sfumato.workspace.store.runs import count_records_and_units, find_run, recipe_text_of
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.number_lines import ShownLine, SortedNumberLines
from sfumato.workspace.views.results import (
    FAILURES,
    SORTS,
    ResultSelection,
    has_averages,
    read_account_and_risks,
    read_selected_rows,
    read_verdicts,
)

from ..parts.explain import ResultExplanation, explain_row
from ..parts.page import RunPane, run_progress
from ..parts.split import DetailQuery, LaidOut, SplitView

if TYPE_CHECKING:
    from sfumato.workspace.reporting.explanation import ExplainedNumber

SORTED_COLUMN = {"measure": "measure", "target": "of"}
EMPTY = "The run has no results yet."
SPARE = {"baseline": 1, "interval": 2}
"""Columns that are dropped if the width is too small, the lowest number first."""
PEOPLE_WIDTH = 106
"""Width of the list in cells from which people are counted in all columns; below they are shares."""
WIDE_WIDTH = 150
"""Width from which they are counted with their share."""


NARROW_WIDTH = 90
"""Width below which the column of goals has a sign alone, so that names are whole."""


class Room(Enum):
    """How much the cells of numbers say: a number of people, with their total, or with their share too."""

    NARROW = 0
    PEOPLE = 1
    WIDE = 2


WIDENED: Sequence[tuple[int, Mapping[str, int]]] = (
    (WIDE_WIDTH, {"name": 9, "confidential": 19, "release": 18, "limit": 14}),
    (PEOPLE_WIDTH, {"name": 9, "confidential": 1, "release": 7, "limit": 1}),
    (NARROW_WIDTH, {"name": 10}),
    (0, {"name": 3, "good": -3, "limit": -1}),
)
"""Cells that columns of numbers gain in a list of at least these widths; a column below 0 gives them to the name."""
ONWARD = "→"
"""Sign of the last column in view of a narrow list: others stand to the right."""
SIDES_OF_LINE = 2
"""Cells of the list that a line above it cannot use."""
PERSON = "by person"
"""Words of a number of people where a person has several records; a folded line of it says nothing else."""
SHORT_HEAD, LONG_HEAD = "data", "confidential"
"""Heads of the values of the confidential data, where there is little room and where there is more."""
FORMED = ("confidential", "release", "interval", "limit")
"""Columns whose cells have the longest form that fits: ``379 of 3,411 (11.11 %)``, ``379 of 3,411``, ``11.11 %``."""
MANY = 5_000
"""Number of rows from which the other orders are sorted ahead; fewer rows are sorted when an order is asked for."""


@dataclass(frozen=True)
class ResultLine:
    """Row of a single dataset for the table.

    row: the row
    outcome: outcome of its verdict; empty without one
    distinct_settings: settings that differ between uses of its method
    names: names of all numbers of the run's methods, from which a shortened name must differ
    """

    row: Row
    outcome: str
    distinct_settings: SettingsByMethod
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class NumberEntry:
    """Number for the table, with those that are folded into its line, or a heading.

    shown: the number, or the heading
    records: number of confidential records
    distinct_settings, names: as those of ``ResultLine``
    """

    shown: ShownLine
    records: int
    distinct_settings: SettingsByMethod
    names: tuple[str, ...] = ()

    @property
    def number(self) -> NumberLine:
        """Return the number."""
        assert self.shown.line is not None
        return self.shown.line

    @property
    def heading(self) -> RowHeading | None:
        """Return the heading; None for a number."""
        return None if self.shown.line is not None else RowHeading(self.shown.heading, self.shown.is_minor)


@dataclass(frozen=True)
class _SelectionSource:
    """Base of what a selection has as a source of pages; every call opens a connection of its own."""

    directory: Path
    selection: ResultSelection
    orders: SortedNumberLines

    def __len__(self) -> int:
        """Return the number of lines of the selection."""
        # Pages are read in threads, and a connection of SQLite belongs to the thread that opened it.
        with Workspace.open(self.directory, read_only=True) as workspace:
            return self.count(workspace)

    def count(self, workspace: Workspace) -> int:
        """Return the number of lines of the selection."""
        raise NotImplementedError


@dataclass(frozen=True)
class SelectedNumbers(_SelectionSource):
    """Numbers of a selection as a source of pages."""

    def __len__(self) -> int:
        """Return the number of lines with their headings."""
        with Workspace.open(self.directory, read_only=True) as workspace:
            return self.orders.count_shown(workspace, self.selection)

    def count(self, workspace: Workspace) -> int:
        return self.orders.count(workspace, self.selection)

    def lines(self, offset: int, limit: int) -> Sequence[NumberEntry]:
        """Read a page of numbers with their verdicts and headings."""
        with Workspace.open(self.directory, read_only=True) as workspace:
            found = self.orders.read_shown(workspace, self.selection, offset, limit)
            run = find_run(workspace, self.selection.run_id)
            records = count_records_and_units(workspace, run)
        apart, names = varying_settings_of_recipe(run.recipe_toml), names_in_recipe(run.recipe_toml)
        return [NumberEntry(one, records, apart, names) for one in found]

    def read_line(self, workspace: Workspace, index: int) -> NumberLine | None:
        """Read one line with all that is folded into it; return None if it no longer exists."""
        found = self.orders.read_shown(workspace, self.selection, index, 1)
        return found[0].line if found else None


@dataclass(frozen=True)
class SelectedResults(_SelectionSource):
    """Rows of single datasets of a selection as a source of pages."""

    def count(self, workspace: Workspace) -> int:
        return len(self.orders.ids.row_ids(workspace, self.selection))

    def lines(self, offset: int, limit: int) -> Sequence[ResultLine]:
        """Read a page of rows with the outcomes of their verdicts."""
        with Workspace.open(self.directory, read_only=True) as workspace:
            rows = self.orders.ids.read_rows(workspace, self.selection, offset, limit)
            outcomes = self.orders.ids.outcome_by_series(workspace, self.selection.run_id)
            toml = recipe_text_of(workspace, self.selection.run_id)
        apart, names = varying_settings_of_recipe(toml), names_in_recipe(toml)
        return [ResultLine(row, outcomes.get(row.series, "") if _is_judged(row) else "", apart, names) for row in rows]

    def read_line(self, workspace: Workspace, index: int) -> NumberLine | None:
        """Read one row with all its fields; return None if it no longer exists."""
        rows = self.orders.ids.read_rows(workspace, self.selection, index, 1)
        return NumberLine(None, rows[0]) if rows else None


def _is_judged(row: Row) -> bool:
    """Return whether verdicts can be about a row: not if it is of the confidential data or of a single dataset."""
    # Thresholds are about the average over the released datasets.
    return row.draw is None and row.dataset != "confidential"


SIGN = TableColumn[ResultLine]("sign", "", 1, cell=lambda line: sign_for(line.outcome) if line.outcome else "")
"""Column with the sign of the row's verdict: failed, not computed, met."""


def _results_table(selection: ResultSelection, explained_beside: Callable[[], bool]) -> GridTable[ResultLine]:
    """Return the table of single rows; ``explained_beside`` returns whether the explanation stands beside it."""
    return GridTable(
        (SIGN, *table_columns(ROW_COLUMNS)),
        values=lambda line: row_cells(line.row, line.distinct_settings),
        column_fitter=partial(_fit_results_columns, selection.sort, explained_beside),
    )


def _numbers_table(
    selection: ResultSelection, explained_beside: Callable[[], bool], *, has_limits: bool
) -> GridTable[NumberEntry]:
    """Return the table of numbers; ``explained_beside`` returns whether the explanation is in view too."""
    return GridTable(
        table_columns(one for one in NUMBER_COLUMNS if has_limits or one.name != "limit"),
        values=lambda line: line_cells(line.number, line.records, line.distinct_settings),
        column_fitter=partial(_fit_number_columns, selection, explained_beside),
        heading=lambda line: line.heading,
    )


class ResultGrid(Grid):
    """Grid of results in which enter explains a row; it scrolls sideways without a scrollbar, which would cost a row."""

    # A limit of the plan that is met says nothing of the gate, whose answer alone is green.
    DEFAULT_CSS = """
    ResultGrid { scrollbar-size-horizontal: 0; }
    ResultGrid > .grid--good { color: $foreground; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [bind_act("open", "select", "Explain", show=True)]


class ResultsPane(RunPane, SplitView):
    """Tab with a line for each measure and variable, failures first; keys show one family, every setting, the datasets'
    own rows, and sort by other columns.
    """

    command_name = "results"
    least_list = 78
    full_list = 118
    beside_from = 150
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("table", "picture", "Distributions", show=True),
        bind_act("filter", "filter", "Filter", show=True),
        bind_act("sort", "sort", show=True),
        bind_act("only", "family", "Family", show=True),
        bind_act("picture", "unfold", "Every setting", show=True),
        bind_act("datasets", "draws", "Datasets", show=True),
    ]

    @dataclass
    class ResultSelected(Message):
        """Message with the number that was chosen."""

        number: ExplainedNumber | None

    @dataclass
    class PictureRequested(Message):
        """Message that the user wants to see the distribution of the row's variable; None if the row is about none."""

        variable: str | None

    @dataclass
    class ResultsHeading(Message):
        """Message with what stands above the rows.

        selection: the selection
        count: number of rows
        counts: number of lines by family, of all families
        has_averages: whether they are averages yet
        evidence: lines about epsilon with its evidence
        verdicts: verdicts of the run
        records: number of confidential records
        """

        selection: ResultSelection
        count: int
        counts: Mapping[str, int]
        has_averages: bool
        evidence: Sequence[str]
        verdicts: Sequence[Verdict]
        records: int

    def compose(self) -> ComposeResult:
        """Yield the heading, the families, epsilon with its evidence, the table, and the filter."""
        yield from self.compose_split(Line(name="results-head"), Line(name="results-families"), ResultGrid(empty="…"))
        yield FilterField(placeholder="words that must occur; !word must not", id="filter")

    def on_mount(self) -> None:
        """Hide the filter."""
        field = self.query_one(FilterField)
        field.value = self.sfumato.state.filter
        field.display = False

    def command_words(self) -> tuple[str, ...]:
        """Return the command for the same numbers, with the single datasets if they are shown."""
        words = super().command_words()
        # The command has to print the same rows as the screen.
        state = self.sfumato.state
        shown = ["--draws"] if state.draws else ["--all"] if state.unfolded else []
        return (*words, *shown) if words else words

    @property
    def wanted_selection(self) -> ResultSelection | None:
        """Return the rows to show: of this run, with the filter and order that the user chose last."""
        state = self.sfumato.state
        if self.line is None:
            return None
        return ResultSelection(
            self.line.run.id, state.draws, state.filter, state.sort, state.family, state.unfolded and not state.draws
        )

    def load_run(self) -> None:
        """Show the selection in the table; the cursor keeps its place while a run continues."""
        selection = self.wanted_selection
        if selection is None:
            return
        # Sorted row ids are kept as long as the results are the same, so that a page needs no sorting.
        if run_progress(self.line) != self._ordered:
            self._ordered, self._orders = run_progress(self.line), SortedNumberLines()
        orders = self._orders
        same = selection.run_id == self._open_run()
        found: SelectedNumbers | SelectedResults
        pages: Callable[[int], PageSource]
        if selection.with_draws:
            found = rows = SelectedResults(self.sfumato.directory, selection, orders)
            pages = partial(TablePages.from_width, _results_table(selection, lambda: self.is_split), rows)
        else:
            found = numbers = SelectedNumbers(self.sfumato.directory, selection, orders)
            limits = self.line is not None and has_thresholds(self.line.run.recipe_toml)
            table = _numbers_table(selection, lambda: self.is_split, has_limits=limits)
            pages = partial(TablePages.from_width, table, numbers)
        self.query_one(Grid).show_pages(pages, empty=self._empty_rows_text(selection), keep_cursor=same)
        self._opened = found
        self.read(
            lambda workspace: (
                found.count(workspace),
                orders.line_ids(workspace, replace(selection, with_draws=False)).counts,
                has_averages(workspace, selection.run_id),
                evidence_lines(read_account_and_risks(workspace, selection.run_id)),
                read_verdicts(workspace, selection.run_id),
                count_records_and_units(workspace, find_run(workspace, selection.run_id)),
            ),
            lambda found: self.ResultsHeading(selection, *found),
        )

    def _empty_rows_text(self, selection: ResultSelection) -> str:
        """Return what to show where the selection has no rows."""
        if selection.filter_text:
            return f'No row has "{selection.filter_text}". Press / for another filter.'
        if selection.family:
            return f"The run has no numbers of {selection.family}. Press f for another family."
        return EMPTY

    _opened: SelectedNumbers | SelectedResults | None = None
    _orders = SortedNumberLines()
    _ordered: tuple[object, ...] | None = None

    def _open_run(self) -> int | None:
        """Return the run whose results are in the table; None before the first."""
        return None if self._opened is None else self._opened.selection.run_id

    @on(ResultsHeading)
    def _show_heading(self, event: ResultsHeading) -> None:
        """Show the heading, the families, the lines of evidence and the number of rows."""
        selection = event.selection
        noun, kind = "number", "averages over the datasets"
        if selection.with_draws:
            noun, kind = "row", "all rows"
        elif selection.unfolded:
            kind = "every setting"
        if not event.has_averages:
            kind = "rows so far; averages come when the run has ended" + (
                "" if selection.with_draws else " (b shows all)"
            )
        filtered = [f"filter: {selection.filter_text}"] if selection.filter_text else []
        # The frame has the number of all numbers.
        counted = [count_noun(event.count, noun)] if filtered or selection.with_draws or selection.unfolded else []
        parts = [*counted, *filtered, kind, order_text(selection.sort, event.verdicts)]
        room = self.list_width - SIDES_OF_LINE
        told = " · ".join([*parts, goal_legend()])
        # Only the narrow list has signs without a head.
        is_told = self.list_width < NARROW_WIDTH and not selection.with_draws and cell_len(told) <= room
        self.query_one("#results-head", Line).set_text(told if is_told else " · ".join(parts))
        self._counts = event.counts
        total = sum(event.counts.values())
        numbers = f"{event.counts.get(selection.family, 0):,} of {total:,} numbers"
        self.set_heading_count(numbers if selection.family else count_noun(total, "number"))
        families, counted_of = families_text(event.counts, selection.family), _noun_text(event.records)
        tried = [f"{families}; counts are of {one}" for one in (counted_of, counted_of.partition(", or ")[0])]
        lines = [next((one for one in tried if cell_len(one) <= room), families), *event.evidence]
        below = self.query_one("#results-families", Line)
        below.styles.height = len(lines)
        below.set_text("\n".join(lines))
        # Many rows take a while to sort; those of a run that continues would change again.
        if event.count >= MANY and self.line is not None and self.line.run.state.is_final:
            self._prepare_orders(selection, self._orders)

    @work(thread=True, exclusive=True, group="orders", exit_on_error=False)
    def _prepare_orders(self, selection: ResultSelection, orders: SortedNumberLines) -> None:
        """Sort the rows in the other orders before the user chooses one."""
        worker = get_current_worker()
        with Workspace.open(self.sfumato.directory, read_only=True) as workspace:
            orders.ids.sort_ahead(workspace, selection.sorted_rows, lambda: worker.is_cancelled)

    def make_exportable(self) -> ScreenExport | None:
        """Return the rows of the selection with all fields and digits, and those of them that are public."""
        selection, directory = self.wanted_selection, self.sfumato.directory
        if selection is None or not self.query_one(Grid).row_count:
            return None

        def lines() -> ExportTable:
            """Read all rows of the selection."""
            with Workspace.open(directory, read_only=True) as workspace:
                return table_of_records(Row, read_selected_rows(workspace, selection, 0, -1))

        run_id = selection.run_id

        def public() -> ExportTable:
            """Read the rows that the public report of the release has."""
            from sfumato.workspace.release.report import check_charged, read_public_release

            with Workspace.open(directory, read_only=True) as workspace:
                check_charged(workspace, run_id)
                return table_of_records(Row, read_public_release(workspace, run_id).figure_rows)

        return ScreenExport(self.export_file_name("results"), lines, public=public)

    def manual_topics(self) -> Sequence[str]:
        """Return the measure under the cursor as a topic of the manual."""
        opened, grid = self._opened, self.query_one(Grid)
        if opened is None or not grid.row_count:
            return ()
        # The table has only the human name of the measure, so the row is read; that is quick, as its order is sorted
        # already.
        with Workspace.open(opened.directory, read_only=True) as workspace:
            line = opened.read_line(workspace, grid.cursor)
        return () if line is None else (line.row.key,)

    def take_focus(self) -> None:
        self.query_one(Grid).focus()

    def action_draws(self) -> None:
        """Add the rows of single datasets, or remove them."""
        self._change_selection(draws=not self.sfumato.state.draws)

    def action_unfold(self) -> None:
        """Give each setting of a measure a line of its own, or fold them."""
        self._change_selection(unfolded=not self.sfumato.state.unfolded, draws=False)

    def action_family(self) -> None:
        """Show the numbers of the next family, or of all."""
        counts = self._counts
        names = ["", *(one for one in FAMILIES if counts.get(one))]
        family = self.sfumato.state.family
        at = names.index(family) if family in names else 0
        self._change_selection(family=names[(at + 1) % len(names)])

    _counts: Mapping[str, int] = MappingProxyType({})

    def action_picture(self) -> None:
        """Read the row under the cursor and request a picture of its variable."""
        opened, index = self._opened, self.query_one(Grid).cursor
        if opened is None:
            self.post_message(self.PictureRequested(None))
            return

        def read_variable(workspace: Workspace) -> str | None:
            """Return the variable of the row under the cursor; None if it is about none."""
            line = opened.read_line(workspace, index)
            return None if line is None else line.row.target or str(line.row.params.get("variable", "")) or None

        self.read(read_variable, self.PictureRequested)

    def action_sort(self) -> None:
        """Sort the rows by the next column."""
        names = list(SORTS)
        self._change_selection(sort=names[(names.index(self.sfumato.state.sort) + 1) % len(names)])

    def _change_selection(self, **changes: object) -> None:
        """Remember a changed selection and show it."""
        self.sfumato.remember(**changes)
        # Without an opened selection the cursor starts at the first row.
        self._opened = None
        self.load_run()

    def action_filter(self) -> None:
        """Show the field for words that rows must contain."""
        field = self.query_one(FilterField)
        field.display = True
        field.focus()

    @on(Input.Submitted)
    def _apply_filter(self, event: Input.Submitted) -> None:
        """Filter by the words typed, and return to the table."""
        if event.value.strip() != self.sfumato.state.filter:
            self._change_selection(filter=event.value.strip())
        self._leave_filter()

    @property
    def filter_words(self) -> str:
        """Return the words that the rows have."""
        return self.sfumato.state.filter

    def filter_rows(self, words: str) -> None:
        """Show the rows that have these words."""
        self._change_selection(filter=words)
        self._leave_filter()

    @on(FilterField.FilterCancelled)
    def _leave_filter(self) -> None:
        """Hide the field and return to the table."""
        field = self.query_one(FilterField)
        self.take_focus()
        field.display = False
        field.value = self.sfumato.state.filter

    @on(Grid.RowSelected)
    def _read_chosen(self, event: Grid.RowSelected) -> None:
        """Read the row that was chosen with all its fields, and explain it."""
        if (opened := self._opened) is not None:
            index, run_id, apart = event.index, opened.selection.run_id, self._distinct_settings

            def query(workspace: Workspace) -> ExplainedNumber | None:
                """Read the number with its verdicts and companions."""
                from sfumato.workspace.views.explained_numbers import read_explained_number

                line = opened.read_line(workspace, index)
                return None if line is None else read_explained_number(workspace, run_id, line.row, line, apart)

            self.read(query, self.ResultSelected)

    def detail_query(self) -> DetailQuery | None:
        """Return the identity of the row under the cursor and the query that explains it; None without rows."""
        opened, grid = self._opened, self.query_one(Grid)
        if opened is None or self.line is None or not grid.row_count:
            return None
        index, run_id, toml = grid.cursor, self.line.run.id, self.line.run.recipe_toml

        def query(workspace: Workspace) -> LaidOut:
            """Read and explain the row under the cursor."""
            line = opened.read_line(workspace, index)
            if line is None:
                return partial(wrap_paragraphs, [])
            apart = varying_settings_of_recipe(toml)
            return explain_row(workspace, run_id, line.row, variable_titles(toml), line, apart)

        return (opened.selection, index), opened.orders, query

    @property
    def _distinct_settings(self) -> SettingsByMethod:
        """Return the settings in which uses of a method differ within the run."""
        return NO_SETTINGS if self.line is None else varying_settings_of_recipe(self.line.run.recipe_toml)

    @on(ResultSelected)
    async def _open_explanation(self, event: ResultSelected) -> None:
        """Open the explanation of the chosen number."""
        if event.number is not None and self.line is not None:
            await self.sfumato.open(
                ResultExplanation(event.number, variable_titles(self.line.run.recipe_toml), self.line.run.id)
            )


def _noun_text(records: int) -> str:
    """Return what numbers of people are counted among: ``4,162 people, or 16,171 person-years``."""
    said = count_of_noun(records, record_noun(records))
    units = getattr(records, "units", None)
    return said if units is None else f"{count_of_noun(units, record_noun(units))}, or {said}"


def order_text(sort: str, verdicts: Sequence[Verdict]) -> str:
    """Return the order in words: ``failures first (2 of 5 not met)``, ``by measure``."""
    if sort != FAILURES:
        return f"by {sort}"
    unmet = sum(one.outcome != "met" for one in verdicts)
    if verdicts and not unmet:
        return f"by measure; {'the limit is' if len(verdicts) == 1 else f'all {len(verdicts)} limits are'} met"
    return f"failures first ({unmet} of {len(verdicts)} not met)" if verdicts else "by measure, no limits"


def _fit_number_columns(
    selection: ResultSelection, explained_beside: Callable[[], bool], columns: Columns[NumberEntry], width: int
) -> Columns[NumberEntry]:
    """Fit the columns of the table of numbers into the width.

    Where there is room, values count people. Columns that do not fit are left out if the explanation beside the list has
    them; otherwise the table scrolls sideways to them.
    """
    marked = _mark_sorted(
        columns, {"measure": "name", "target": "name", "value": "release"}.get(selection.sort, selection.sort)
    )
    wider = next((more for least, more in WIDENED if width >= least), {})
    room = Room.WIDE if width >= WIDE_WIDTH else Room.PEOPLE if width >= PEOPLE_WIDTH else Room.NARROW
    marked = [replace(c, width=c.width + wider.get(c.name, 0)) for c in marked]
    widths = {c.name: c.width for c in marked if c.name in FORMED}
    marked = [replace(c, cell=partial(_fitting_cell, c.name, widths, room)) if c.name in FORMED else c for c in marked]
    if width < NARROW_WIDTH:
        marked = [replace(c, title="", cell=_goal_sign) if c.name == "good" else c for c in marked]
    marked = [
        replace(c, title=c.title.replace(SHORT_HEAD, LONG_HEAD))
        if c.name == "confidential" and c.width >= len(LONG_HEAD)
        else c
        for c in marked
    ]
    # How many numbers a line folds is said by their explanation: a name that is whole says more here.
    told = [c for c in marked if c.name != "others"] if explained_beside() and width < WIDE_WIDTH else marked
    kept = fit_columns(told, width)
    if not explained_beside():
        kept = (*kept, *(c for c in marked if c.name not in {one.name for one in kept}))
    if width < NARROW_WIDTH:
        kept = tuple(replace(c, title=f"{c.title} {ONWARD}") if c.name == "limit" else c for c in kept)
    named = next(column.width for column in kept if column.name == "name")
    spare = next(column.width for column in kept if column.name == "confidential") + COLUMN_GAP
    return tuple(replace(c, cell=partial(_number_name, named, spare)) if c.name == "name" else c for c in kept)


def goal_legend() -> str:
    """Return what the signs of a narrow list are: ``goal ↓↑=``."""
    return f"goal {''.join(map(sign_for, GOAL_MARKS.values()))}="


def _fitting_cell(name: str, widths: Mapping[str, int], room: Room, line: NumberEntry) -> str:
    """Return a cell of a number in the longest of its forms that fits into its column, else the shortest.

    The confidential value never repeats how many are counted. In a narrow table values and limit count people where all
    of them fit; otherwise they are shares, so that cells beside each other never differ in what they say.
    """
    cells = line_cells(line.number, line.records, line.distinct_settings)
    forms = cell_forms(line.number, name, cells[name], line.records)
    if name == "interval" or room is Room.WIDE:
        tried = forms
    elif room is Room.PEOPLE:
        tried = forms[2:] if name == "confidential" else forms[1:]
    else:
        counted = {
            one: cell_forms(line.number, one, cells[one], line.records)[1 if one == "limit" else 2]
            for one in FORMED
            if one in widths and one != "interval"
        }
        fits = all(cell_len(text) <= widths[one] for one, text in counted.items())
        tried = (counted[name],) if fits else forms[3:]
    return next((one for one in tried if len(one) <= widths[name]), forms[-1])


def _goal_sign(line: NumberEntry) -> str:
    """Return which values of a number are good in one sign: ``=`` for those as in the data."""
    word = good_word(line.number)
    return "=" if word == AS_IN_THE_DATA else word


def _list_subject(line: NumberEntry) -> str:
    """Return what a number is about.

    A folded line in front of which people are counted does not say so, as its name does. One in front of which their
    records are counted does.
    """
    number = line.number
    subject = line_subject(number, line.distinct_settings, line.records)
    if not any(is_of_units(one.row.params) for one in number.members):
        return subject
    parts = subject.split("; ") if subject else []
    if not is_of_units(number.row.params):
        return "; ".join(["by record", *parts])
    return "; ".join(one for one in parts if one != PERSON)


def _number_name(room: int, spare: int, line: NumberEntry) -> str:
    """Return the name of a number in ``room`` cells, with the sign of a fold; ``spare`` more where no cell follows.

    Below its title a line is indented, and says only what distinguishes it. A name that fits without the sign is whole.
    """
    number, apart = line.number, line.distinct_settings
    lead, fold = "  " if line.shown.is_titled else "", sign_for("folded") if number.members else ""
    if line.shown.is_titled:
        is_of_people = bool(number.members) and is_of_units(number.row.params)
        subject = _list_subject(line) if is_of_people else line_subject(number, apart, line.records)
        return f"{lead}{titled_name(number, subject)} {fold}".rstrip()
    room += (0 if number.confidential is not None else spare) - len(fold)
    name, subject = measure_name(number.row.key), _list_subject(line)
    if subject and cell_len(f"{name}, {subject}") > room and _is_told_elsewhere(number):
        subject = ""
    whole = f"{name}, {subject}" if subject else name
    if cell_len(whole) == room + len(fold):
        return whole
    if cell_len(whole) > room:
        room -= bool(fold)
        name = shortened_among(tuple(dict.fromkeys((*line.names, name))), max(12, room - cell_len(subject) - 2))[name]
        whole = f"{name}, {subject}" if subject else name
    return f"{whole}{' ' if fold and cell_len(whole) < room else ''}{fold}"


def _is_told_elsewhere(number: NumberLine) -> bool:
    """Return whether a line may leave out what it is about: a fold of settings alone, which its explanation lists."""
    return bool(number.members) and not number.row.target and not any(is_of_units(m.row.params) for m in number.members)


def _mark_sorted(columns: Columns[Any], chosen: str) -> list[TableColumn[Any]]:
    """Return the columns, the one that the rows are sorted by with a mark."""
    return [
        replace(c, title=f"{c.title} <", width=max(c.width, len(c.title) + 2)) if c.name == chosen else c
        for c in columns
    ]


def _fit_results_columns(
    sort: str, explained_beside: Callable[[], bool], columns: Columns[ResultLine], width: int
) -> Columns[ResultLine]:
    """Fit the columns into the width.

    Those of ``SPARE`` are left out if the explanation beside the list has them; otherwise the table scrolls sideways to
    them.
    """
    chosen = SORTED_COLUMN.get(sort, sort)
    marked = _mark_sorted(columns, chosen)
    wide = [replace(c, width=c.width + 12) if width > 150 and c.name == "of" else c for c in marked]
    wide = [replace(c, drop_order=SPARE.get(c.name, 0)) for c in wide if width > 150 or c.name != "status"]
    kept = fit_columns(wide, width)
    if not explained_beside():
        kept = (*kept, *(c for c in wide if c.name not in {one.name for one in kept}))
    # Measures are shortened to the width that is left for them, so that names of the table still differ.
    room = next(column.width for column in kept if column.name == "measure")
    return tuple(replace(c, cell=lambda line: shortened_name(room, line)) if c.name == "measure" else c for c in kept)


def shortened_name(width: int, line: ResultLine) -> str:
    """Return the name of a number in ``width`` cells, different from that of any other number of the run's methods."""
    name = measure_name(line.row.key)
    return shortened_among(tuple(dict.fromkeys((*line.names, name))), width)[name]


@lru_cache(maxsize=64)
def shortened_among(names: tuple[str, ...], width: int) -> Mapping[str, str]:
    return shorten_names(names, width)


@lru_cache(maxsize=16)
def has_thresholds(toml: str) -> bool:
    """Return whether a recipe has thresholds."""
    return bool(read_toml(toml).get("threshold"))


def has_tables(toml: str) -> bool:
    """Return whether a recipe prints tables."""
    return bool(read_toml(toml).get("table"))


@lru_cache(maxsize=16)
def names_in_recipe(toml: str) -> tuple[str, ...]:
    """Return the human names of all numbers that a recipe's methods may give."""
    table = read_toml(toml)
    steps = [*table.get("synthesis", []), *table.get("measure", []), *table.get("study", [])]
    methods = [method_by_key(key) for key in dict.fromkeys(str(step.get("method")) for step in steps)]
    keys = (f"{method.key}.{output.name}" for method in methods if method for output in method.outputs)
    return tuple(dict.fromkeys(map(measure_name, keys)))
