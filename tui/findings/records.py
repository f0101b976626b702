"""Tab with the records at highest risk in a run's releases, and a dialog about one record: its candidates and what
drives its risk.

Values of records are shown only on request.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.wording import (
    agreeing_word,
    count_noun,
    format_percent,
    join_first_names,
    join_names,
    singular_noun,
)
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.session.export import ScreenExport
from sfumato.tui.terminal.glyphs import find_glyphs
from sfumato.tui.terminal.text import cut_text, fit_text
from sfumato.tui.widgets.facts import titled_facts, wrap_paragraphs, wrap_text
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import KeyLine, Line
from sfumato.tui.widgets.pages import ListPages, TableRow
from sfumato.tui.widgets.panel import FrameEdge, FrameSides
from sfumato.tui.widgets.tables import GridTable, TablePages, table_columns
from sfumato.workspace.reporting.records import column_legend, driver_text, record_cells, unit_column_facts
from sfumato.workspace.reporting.records import record_risk_columns as record_columns
from sfumato.workspace.reporting.tables import DisplayColumn
from sfumato.workspace.reporting.words import number, params_text, sign_for
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.gate_lines import cut_lines
from ..parts.page import OffersExport, RunPane, grid_exportable
from ..parts.revealing import RevealsValues
from ..parts.split import LEAST_HEIGHT_BELOW, DetailQuery, LaidOut, SplitView

if TYPE_CHECKING:
    from sfumato.engine.execution.record_risk import LeaveOneOutCandidates
    from sfumato.workspace.reporting.records import RecordLine
    from sfumato.workspace.store.workspace import Workspace
    from sfumato.workspace.views.records import MatchingCandidates, RecordMeasure, UnitMatch
    from sfumato.workspace.views.records import RankedRecords as OpenRecords


NAME, LEAST_NAME, WITHIN = 24, 8, 18
WITHOUT_HEADS = ("would match without it", "without it")
"""Headings of the number of records that would match without a variable, the longest first."""
VALUE = 14
MEMBERS = 14
"""Cells of the column of records where a unit has its number of records in it."""
SURENESS = ((1.0, "100 %"), (0.5, "50 to 100 %"), (0.2, "20 to 50 %"), (0.1, "10 to 20 %"), (0.0, "below 10 %"))
"""Least probabilities of the bars, falling, each with its words."""
MOST_HEAD = 3
"""Lines of the heading."""
ALONE_COLUMN = DisplayColumn("alone", "by one record", 13, "right", drop_order=2)
"""Column of units as long as none shows its records: how surely the most exposed of them is found alone."""
FOUND_BY_COLUMN = DisplayColumn("found_by", "found by", 16, grow_order=1, drop_order=1)
"""Column that says by what units are found, where not all are found by the same."""
LEAST_BAR = 8
"""Cells of the longest bar below which there are none."""
NOBODY = "No released record of this dataset matches all that is known; who ignores some of it may find one."
Values = Mapping[str, str | int | float]
MOST_MATCHING = 20
NO_MORE = "{} says no more of a single record than stands in the list"
DRIVEN = 50
"""Number of records for which the driver is computed ahead; for others it is computed when they are opened."""
NONE = "This run keeps no values of single records. Press d in Runs to make a plan of its recipe, and add a risk to its measures."


@dataclass(frozen=True, eq=False)
class CandidatePages:
    """Candidates of a record, the matching released records, as pages of a grid; values are read when a page is shown.

    directory: directory of the workspace
    run_id: the run
    candidates: the candidates
    names: variables whose values are shown; none if values are hidden
    """

    directory: Path
    run_id: int
    candidates: MatchingCandidates
    names: Sequence[str]

    @property
    def columns(self) -> Sequence[DisplayColumn]:
        """Return the columns: record number, whose record it is, and the values that are shown."""
        own = DisplayColumn("own", "whose", 16)
        return (
            DisplayColumn("row", "released record", 15, "right"),
            own,
            *(DisplayColumn(n, n, VALUE, "right") for n in self.names),
        )

    def count(self) -> int:
        """Return the number of candidates."""
        return len(self.candidates.matching)

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        """Return a page of candidates, with their values if these are shown."""
        numbers = self.candidates.matching[offset : offset + limit]
        values = self._read_values(numbers) if self.names else [{} for _ in numbers]
        return [
            (row, "the record's own" if row == self.candidates.record else "another's", *(own[n] for n in self.names))
            for row, own in zip(numbers, values, strict=True)
        ]

    def _read_values(self, numbers: Sequence[int]) -> Sequence[Values]:
        """Read the values of released records by number."""
        from sfumato.workspace.store.workspace import Workspace
        from sfumato.workspace.views.records import values_of_records

        with Workspace.open(self.directory) as workspace:
            return values_of_records(workspace, self.run_id, numbers, self.candidates.draw)


class RecordDialog(RevealsValues, OffersExport):
    """Dialog about one record, at first in the dataset in which its risk is highest. Values are hidden at first."""

    DEFAULT_CSS = """
    RecordDialog #record-why { height: auto; max-height: 50%; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("next", "dataset(1)", "Dataset", show=True),
        bind_act("previous", "dataset(-1)", "Previous dataset"),
        bind_act("reveal", "values", "Values", show=True),
    ]
    AUTO_FOCUS = "Grid"

    def __init__(self, records: OpenRecords, record: int) -> None:
        """Create the dialog about a record by its number."""
        super().__init__()
        self._records, self._record = records, record
        self._draw = records.draw
        self._found: MatchingCandidates | None = None
        self._own: Values | None = None

    def compose(self) -> ComposeResult:
        """Yield which record it is, why it is at risk, who matches it, and the keys."""
        with Vertical(classes="whole"):
            yield FrameEdge(name="record-head")
            with FrameSides():
                yield Static("…", id="record-why", markup=False)
                yield Grid(empty=NOBODY)
            yield FrameEdge(lower=True)
            yield KeyLine()

    def on_mount(self) -> None:
        self.read_values()

    def read_values(self) -> None:
        """Read the candidates of the record, with values if they are to be shown."""
        records, record, draw, with_values = self._records, self._record, self._draw, self.revealed

        def query(workspace: Workspace) -> tuple[MatchingCandidates, Values | None]:
            """Find the candidates in the chosen dataset or the riskiest one, and read the record's own values if they
            are shown.
            """
            from sfumato.workspace.views.records import find_candidates, riskiest_dataset, values_of_records

            chosen = riskiest_dataset(workspace, records.measure, record) if draw is None else draw
            found = find_candidates(workspace, records.run_id, records.measure, record, chosen)
            return found, values_of_records(workspace, records.run_id, [record])[0] if with_values else None

        self.compute(query, self._show_candidates)

    def _show_candidates(self, answer: tuple[MatchingCandidates, Values | None]) -> None:
        """Show the candidates, and the record's own values if they were read."""
        found, own = answer
        # Values that were read before the user hid them must not be shown.
        if (own is not None) != self.revealed:
            return
        self._found, self._own, self._draw = found, own, found.draw
        measure = self._records.measure
        head = f"record {self._record:,} of run {self._records.run_id} · {measure_title(measure.key)} · dataset {self._draw} of {len(measure.draw_hashes)}"
        self.query_one("#record-head", Line).set_text(head)
        self._show_record()

    def on_resize(self) -> None:
        """Lay the explanation out for the new width."""
        # The width of the dialog is known only after the layout.
        self.call_after_refresh(self._show_explanation)

    def _show_record(self) -> None:
        """Show the explanation and the table of candidates."""
        self._show_explanation()
        if self._found is not None:
            names = list(self._own) if self._own else []
            pages = CandidatePages(self.sfumato.directory, self._records.run_id, self._found, names)
            self.query_one(Grid).set_source(pages)

    def _show_explanation(self) -> None:
        """Write the explanation for the width of the terminal."""
        if self._found is not None:
            text = candidates_explanation(self._found, self._records.n_records, self._own, self.size.width - 2)
            self.query_one("#record-why", Static).update(text)

    def action_dataset(self, step: int) -> None:
        """Show another released dataset."""
        if self._draw is not None:
            draws = list(self._records.measure.draw_hashes)
            self._draw = draws[(draws.index(self._draw) + step) % len(draws)]
            self.read_values()

    def make_exportable(self) -> ScreenExport | None:
        """Return the candidates for export, with values only if they are shown."""
        return grid_exportable(self.query_one(Grid), f"run-{self._records.run_id}-record-{self._record}")

    @property
    def question(self) -> str:
        """Return the question that is asked before values are shown."""
        return f"Show the values of record {self._record:,} and of its candidates?"

    def forget_values(self) -> None:
        """Discard the record's own values and show the candidates without values."""
        self._own = None
        self._show_record()


def candidates_explanation(
    candidates: MatchingCandidates, records: int, own_values: Values | None, width: int
) -> Content:
    """Describe how many records match, whether the own record is among them, and what each known variable
    contributes.
    """
    matching = len(candidates.matching)
    among = {
        None: "their owners are unknown: no released record is linked to a person",
        True: "its own record is among them",
        False: "its own record is not among them",
    }[candidates.has_own_record]
    match = agreeing_word(matching, "matches", "match")
    said = f"{matching:,} of {records:,} released records {match}; {among}." if matching else NOBODY
    if candidates.ignored:
        said += (
            f" The intruder ignores {_names_text(candidates.ignored)}, which {agreeing_word(len(candidates.ignored), 'hides', 'hide')}"
            " this record from him."
        )
    driver = candidates.driver
    drives = (
        "No variable alone narrows them down: without any one of them there would be as many."
        if driver is None
        else f"Narrowed most by {replace_unprintable(driver.variable)}: without it {number(driver.without)} would match."
    )
    names = candidates.candidates_without.variables
    titles = [replace_unprintable(name) for name in names]
    nears = [
        radius if radius == "equal" else f"within {radius}"
        for radius in (candidates.match_radii[name] for name in names)
    ]
    counts = [f"{count:,.0f}" for count in candidates.candidates_without.without[0]]
    near_width = min(WITHIN, max(map(cell_len, ("must be", *nears))))
    # Names give way first: bins and counts are what explains the risk, and no number is cut.
    long, short = WITHOUT_HEADS
    heading = long if cell_len(long) + near_width + LEAST_NAME + 4 <= width else short
    count_width = max(map(cell_len, (heading, *counts)))
    name_width = max(LEAST_NAME, min(NAME, width - near_width - count_width - 4))
    heads = f"{fit_text('known variable', name_width)}  {fit_text('must be', near_width)}  {fit_text(heading, count_width, 'right')}"
    lines = [wrap_paragraphs([said, drives], width), Content("")]
    lines.append(Content.styled(cut_text(f"{heads}  {'its value' if own_values else ''}".rstrip(), width), "bold"))
    for name, title, near, count in zip(names, titles, nears, counts, strict=True):
        value = "" if own_values is None else replace_unprintable(str(own_values[name]))
        line = f"{fit_text(title, name_width)}  {fit_text(near, near_width)}  {fit_text(count, count_width, 'right')}  {value}"
        driving = driver is not None and driver.variable == name
        lines.append(Content.styled(cut_text(line.rstrip(), width), "bold" if driving else ""))
    return Content("\n").join(lines)


def candidates_detail(candidates: MatchingCandidates, datasets: int, records: int, width: int) -> Content:
    """Describe a record's candidates for the pane beside the list, with the first of their numbers."""
    head = Content.styled(
        cut_text(f"record {candidates.record:,} in dataset {candidates.draw} of {datasets}", width), "bold"
    )
    shown = [f"{row:,}" for row in candidates.matching[:MOST_MATCHING]]
    rows = f"Matching released records: {join_first_names(shown, MOST_MATCHING, total=len(candidates.matching))}"
    said = wrap_paragraphs([rows] if candidates.matching else [], width)
    sure = wrap_paragraphs([_probability_sentence(candidates, datasets)], width)
    whole = [head, candidates_explanation(candidates, records, None, width), Content(""), sure, said]
    return Content("\n").join(whole)


def _names_text(names: Sequence[str]) -> str:
    """Return names of variables in words."""
    return join_names([replace_unprintable(name) for name in names])


def _probability_sentence(candidates: MatchingCandidates, datasets: int) -> str:
    """Describe how the matches of one dataset make the probability of the list."""
    if candidates.has_own_record is None:
        return "Who owns them is unknown, so that there is no probability of finding the record."
    share = 1 / len(candidates.matching) if candidates.has_own_record else 0.0
    average = f" The list has the average over {count_noun(datasets, 'dataset')}." if datasets > 1 else ""
    return f"Who picks one of them is right with probability {format_percent(share)} in this dataset.{average}"


def unit_detail(found: UnitMatch | None, line: RecordLine, noun: str, width: int) -> Content:
    """Describe how a unit is found by all its records, for the pane beside the list."""
    one = singular_noun(noun)
    members = count_noun(line.members or 0, "record")
    head = Content.styled(cut_text(f"{one} {line.unit:,}: {members}", width), "bold")
    if found is None:
        said = [f"The probability of the {one} is that of its record that is most at risk, {line.record:,}."]
        return Content("\n").join([head, wrap_paragraphs(said, width)])
    ignored = f", and ignores {_names_text(found.ignored)}" if found.ignored else ""
    knows = f"An intruder who knows all {members} of this {one} compares {_names_text(found.used)}{ignored}."
    own = (
        f"its own rows are among them in {found.n_found} of {count_noun(found.n_datasets, 'dataset')}"
        if found.n_datasets > 1
        else f"its own rows are {'' if found.n_found else 'not '}among them"
    )
    is_one = found.candidates == 1
    average = " on average" if found.n_datasets > 1 else ""
    matches = (
        f"{number(found.candidates)} {one if is_one else noun} of the release {'matches' if is_one else 'match'}"
        f"{average}; {own}."
    )
    sure = f"Who picks one of them is right with probability {format_percent(found.probability)}."
    if line.probability > found.probability + 1e-9:
        sure += f" Its record {line.record:,} alone is found with probability {format_percent(line.probability)}, which the list has."
    texts = [knows, matches, sure, "", "enter lists its records, each with its own probability."]
    return Content("\n").join([head, wrap_paragraphs(texts, width)])


def found_by_text(match: UnitMatch) -> str:
    """Return by what a unit is found, and in how many datasets where not in all: ``region, sex in 3 of 5``."""
    some = f" in {match.n_found} of {match.n_datasets}" if match.n_found < match.n_datasets else ""
    return f"{', '.join(map(replace_unprintable, match.used))}{some}"


def sureness_lines(records: OpenRecords, width: int) -> list[Content]:
    """Return how many of the listed units, or records, are found how surely: a line with a bar for each probability."""
    counts = records.count_by_probability([least for least, _ in SURENESS])
    noun = "records" if records.units is None else records.units.noun
    heads = max(cell_len(said) for _, said in SURENESS)
    numbers = max(len(f"{count:,}") for count in counts)
    room, most = width - heads - numbers - 4, max(counts)
    if room < LEAST_BAR or not most:
        return []
    lines = [Content(""), Content.styled(cut_text(f"How surely these {noun} are found", width), "bold")]
    for (_, said), count in zip(SURENESS, counts, strict=True):
        bar = _bar_sign() * -(-room * count // most)
        lines.append(
            Content.assemble((fit_text(said, heads), "$text-muted"), f"  {count:>{numbers},}  ", (bar, "$primary"))
        )
    return lines


def found_sentence(records: OpenRecords, matches: Mapping[int, UnitMatch] = MappingProxyType({})) -> str:
    """Return how many people, or records, are found for certain; empty for a measure that does not find people.

    ``25 of 4,162 people are found for certain in all 5 datasets, each by lncoins and idp.`` What they are found by is
    said where ``matches``, by record, know it of all of them, and it is the same.
    """
    # Who is the only candidate is known of measures by which people are found; others guess values, or members.
    if records.ranking.risk.unique is None:
        return ""
    (certain, _), ranking, units = records.count_by_probability([1.0, 0.0]), records.ranking, records.units
    noun = "records" if units is None else units.noun
    listed = len(ranking) if units is None else int(units.is_unit.sum())
    everybody = records.n_records if units is None else units.n_units
    # Neither a list that ends before the first that is less than certain, nor an attack on some, tells how many more
    # there are.
    some = records.n_attacked < records.n_records
    least = "At least " if some or listed == certain < everybody else ""
    where = ""
    if records.draw is not None:
        where = f" in dataset {records.draw}"
    elif records.measure.combined_hash:
        where = " from all datasets together"
    elif records.n_datasets > 1:
        where = f" in all {records.n_datasets:,} datasets"
    by = _certainly_by(records, certain, matches)
    return f"{least}{certain:,} of {everybody:,} {noun} {'is' if certain == 1 else 'are'} found for certain{where}{by}."


def _certainly_by(records: OpenRecords, certain: int, matches: Mapping[int, UnitMatch]) -> str:
    """Return by what all units that are found for certain are found; empty where that differs, or is not known of all."""
    if not 0 < certain <= len(matches):
        return ""
    found = [matches.get(line.record) for line in records.fold(()).lines(0, certain)]
    # A unit may also be found by one of its records alone, of which the match of all says nothing.
    used = {one.used if one is not None and one.probability > 1 - 1e-9 else () for one in found}
    names = used.pop()
    return f", {'each ' if certain > 1 else ''}by {_names_text(names)}" if names and not used else ""


def _bar_sign() -> str:
    """Return the sign that bars of numbers are made of, lower than a line so that those below each other do not touch."""
    return "#" if find_glyphs().is_coarse else "▄"


def measure_title(key: str) -> str:
    """Return the title of a measure; its key if this version does not have it."""
    method = method_by_key(key)
    return key if method is None else method.title


def record_table(
    records: OpenRecords,
    drivers: Mapping[int, str],
    opened: Collection[int] = (),
    matches: Mapping[int, UnitMatch] = MappingProxyType({}),
) -> GridTable[RecordLine]:
    """Return the table with the columns that the measure fills; ``drivers`` are texts by record number, where known.

    Where records are in units of several each unit has a row, and those with the numbers in ``opened`` have their records
    below it. ``matches`` say how units are found, by record, where known.
    """
    found_by = {record: found_by_text(one) for record, one in matches.items()}
    prior = records.ranking.risk.prior is not None
    # What is known of single records alone has no column until a unit shows its own.
    lists_records = records.units is None or bool(opened)
    filled = {
        "unique": records.ranking.risk.unique is not None and lists_records,
        "own": records.ranking.confidential_risk is not None,
        "prior": prior,
        "ratio": prior,
        "driver": records.measure.is_matching and lists_records,
        "candidates": bool(records.measure.draw_hashes),
    }
    noun = "" if records.units is None else records.units.noun
    columns = [column for column in record_columns(records.measure.key, noun) if filled.get(column.name, True)]
    if noun and not filled["driver"] and records.measure.is_matching:
        columns += [ALONE_COLUMN, *([FOUND_BY_COLUMN] if len(set(found_by.values())) > 1 else [])]
    # The sign that a unit is folded stands behind its number of records.
    columns = [replace(one, width=MEMBERS) if noun and one.name == "record" else one for one in columns]

    def cells(line: RecordLine) -> dict[str, str]:
        """Return the cells of a line; a unit has no driver."""
        found = record_cells(line, "" if line.is_unit else drivers.get(line.record, ""))
        if line.is_unit:
            sign = sign_for("open" if line.unit in opened else "folded")
            found["record"] = f"{found['record']} {sign}"
        found["found_by"] = found_by.get(line.record, "") if line.is_unit else ""
        return found

    return GridTable(table_columns(columns), values=cells)


class RecordGrid(Grid):
    """Grid of records in which enter explains the risk of one."""

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("open", "select", "Why", show=True)]


class RecordsPane(RunPane, SplitView):
    """Tab with every record of a run's table by its risk.

    Enter shows the candidates for a record and the reasons, or the guesses at it.
    """

    least_list = 78
    beside_from = 118
    least_height_below = 24
    DEFAULT_CSS = "RecordsPane #records-head { height: auto; max-height: 3; padding: 0 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("picture", "measure", "Measure", show=True),
        bind_act("next", "dataset(1)", "Dataset", show=True),
        bind_act("previous", "dataset(-1)", "Previous dataset"),
    ]

    def __init__(self) -> None:
        """Create the tab, at first with the first measure over all datasets."""
        super().__init__(id="records")
        self._measure, self._draw = 0, 0
        self._measures: Sequence[RecordMeasure] = ()
        self._read: OpenRecords | None = None
        self._opened: frozenset[int] = frozenset()
        self._drivers: Mapping[int, str] = {}
        self._matches: Mapping[int, UnitMatch] = {}

    @property
    def _records(self) -> OpenRecords | None:
        """Return the records as they are listed: each unit in one row, but for those that were opened."""
        return None if self._read is None else self._read.fold(self._opened)

    def compose(self) -> ComposeResult:
        """Yield the heading and the grid, beside the explanation if there is room."""
        yield from self.compose_split(Static("", id="records-head", markup=False), RecordGrid(empty="…"))

    def show_by_measure(self, run_id: int, place: int, row: int | None = None) -> None:
        """Show the records of a run by the measure at ``place`` among its own, over all datasets; with ``row`` the cursor
        goes to that row.
        """
        # The tab may not have its run yet; `load_run` uses the request once it has.
        self._wanted, self._wanted_row = (run_id, place), row
        if self.line is not None and self.line.run.id == run_id:
            self.load_run()

    _wanted: tuple[int, int] | None = None
    _wanted_row: int | None = None

    def load_run(self) -> None:
        """Read the records of the run by the chosen measure and dataset."""
        if self.line is None:
            return
        run_id, measure, draw = self.line.run.id, self._measure, self._draw
        # The first measure of another run, over all its datasets.
        if self._read is not None and self._read.run_id != run_id:
            # Another run has other measures and datasets.
            measure = draw = self._measure = self._draw = 0
        if self._wanted is not None and self._wanted[0] == run_id:
            measure, draw = self._measure, self._draw = self._wanted[1], 0
            self._wanted = None

        def query(workspace: Workspace) -> tuple[Sequence[RecordMeasure], OpenRecords | None]:
            """Read the measures that have values of single records, and rank the records by the chosen one."""
            from sfumato.workspace.views.records import rank_records, record_measures

            measures = record_measures(workspace, run_id)
            if not measures:
                return (), None
            chosen = measures[measure % len(measures)]
            return measures, rank_records(workspace, run_id, chosen, draw if draw in chosen.draw_hashes else None)

        self.compute(query, partial(self._show_answer, run_id))

    def _show_answer(self, run_id: int, answer: tuple[Sequence[RecordMeasure], OpenRecords | None]) -> None:
        """Show the ranked records, then compute what drives the risk of the first of them."""
        if self.line is None or run_id != self.line.run.id:
            return
        self._measures, records = answer
        stays = _is_same_selection(records, self._read)
        self._read, self._drivers = records, self._drivers if stays else {}
        self._matches = self._matches if stays else {}
        self._opened = self._opened if stays else frozenset()
        self._show_records(keep_cursor=stays)
        row, self._wanted_row, grid = self._wanted_row, None, self.query_one(Grid)
        if row is not None and stays and grid.row_count:
            grid.cursor = row
        elif row is not None:
            grid.return_to(str(row))
        if records is not None and self.line.run.state.is_final and not (self._drivers or self._matches):
            # While a run continues its results change, so drivers would be computed in vain.
            self.compute(lambda workspace: _read_reasons(workspace, records), partial(self._set_reasons, records))

    def _set_reasons(self, records: OpenRecords, reasons: tuple[Mapping[int, str], Mapping[int, UnitMatch]]) -> None:
        """Store what drives the risks and by what units are found, and redraw, unless other records are shown by now."""
        if records is self._read and any(reasons):
            self._drivers, self._matches = reasons
            self._show_records(keep_cursor=True)

    def _show_records(self, *, keep_cursor: bool) -> None:
        """Show the records in the grid, or why there are none."""
        grid, records = self.query_one(Grid), self._records
        if records is None:
            self.query_one("#records-head", Static).update("")
            grid.show_pages(lambda _: ListPages((), ()), empty=self.empty_text("records", NONE))
            return
        table = record_table(records, self._drivers, self._opened, self._matches)
        grid.show_pages(partial(TablePages.from_width, table, records), keep_cursor=keep_cursor)
        self.query_one("#records-head", Static).update(self._heading_text(records))

    @on(Grid.RowHighlighted)
    @on(Grid.SourceOpened)
    def _show_open_word(self) -> None:
        """Show in the footer what enter does on the row under the cursor."""
        grid, records = self.query_one(Grid), self._records
        if records is not None and grid.row_count:
            (line,) = records.lines(grid.cursor, 1)
            grid.set_open_word(self._open_word_of(line, records.measure))

    def _open_word_of(self, line: RecordLine, measure: RecordMeasure) -> str:
        """Return what enter does on a line of records by a measure; empty if there is nothing more to show."""
        if line.is_unit:
            return "Hide records" if line.unit in self._opened else "List records"
        if measure.draw_hashes and measure.guesses_hash is not None:
            return "Guesses"
        return "Why" if not measure.draw_hashes or measure.is_matching else ""

    def detail_query(self) -> DetailQuery | None:
        """Return the query for the candidates of the record under the cursor and the reasons, without values."""
        records, grid = self._records, self.query_one(Grid)
        if records is None or not grid.row_count:
            return None
        (line,) = records.lines(grid.cursor, 1)
        measure, draw, record = records.measure, records.draw, line.record
        # An audit attacks shadow releases, so no released dataset has the record's candidates.
        if not measure.draw_hashes:  # of shadow releases, no dataset has it

            def read_audit(workspace: Workspace) -> LaidOut:
                """Read what gives the audited record away and lay it out."""
                from sfumato.workspace.reporting.audits import audited_record_facts
                from sfumato.workspace.views.audits import audit_levers, read_audited_record

                facts = audited_record_facts(read_audited_record(workspace, measure, record), audit_levers(measure))
                return partial(titled_facts, f"record {record:,}", facts)

            return record, self._read, read_audit
        if not measure.is_matching:
            return record, self._read, lambda _: partial(wrap_paragraphs, [NO_MORE.format(measure_title(measure.key))])
        if line.is_unit and records.units is not None:
            noun = records.units.noun

            def read_unit(workspace: Workspace) -> LaidOut:
                """Read how the unit is found by all its records and lay it out."""
                from sfumato.workspace.views.records import find_unit_match

                found = find_unit_match(workspace, records, record)
                return lambda width: _with_sureness(unit_detail(found, line, noun, width), records, width)

            return (line.unit, "unit"), self._read, read_unit

        def query(workspace: Workspace) -> LaidOut:
            """Find the candidates of the record in the chosen or riskiest dataset."""
            from sfumato.workspace.views.records import find_candidates, riskiest_dataset

            chosen = riskiest_dataset(workspace, measure, record) if draw is None else draw
            found = find_candidates(workspace, records.run_id, measure, record, chosen)
            datasets = len(measure.draw_hashes)
            return lambda width: _with_sureness(
                candidates_detail(found, datasets, records.n_records, width), records, width
            )

        return record, self._read, query

    def _heading_text(self, records: OpenRecords) -> Content:
        """Return the heading: how many are found for certain, then dim the measure, the datasets and the settings."""
        measure = records.measure
        place = f"{measure_title(measure.key)} {self._measures.index(measure) + 1}/{len(self._measures)}"
        together = (
            (f"all {len(measure.draw_hashes)} datasets" if measure.draw_hashes else "shadow releases")
            if measure.combined_hash
            else f"average over {count_noun(records.n_datasets, 'dataset')}"
        )
        over = together if records.draw is None else f"dataset {records.draw}"
        parts = [place, over, records.listing_text, params_text(measure.params)]
        found = found_sentence(records, self._matches)
        told = [part for part in parts if part]
        said = " · ".join(told)
        if not found:
            return Content(said)
        # A low terminal keeps its lines for the records and the explanation.
        width = max(20, self.list_width - 4)
        first = wrap_text(found, width)
        most = 1 if self.app.size.height < LEAST_HEIGHT_BELOW else max(1, MOST_HEAD - len(first))
        # Settings, then what the list is of, are left out before a text is cut; Plan has the settings.
        listed = (
            records.listing_text.partition(",")[0]
            if records.units is None
            else f"{records.units.n_units:,} {records.units.noun}"
        )
        forms = (" · ".join(one) for one in (told, told[:3], [place, over, listed], [place, over]))
        said = next((one for one in forms if len(wrap_text(one, width)) <= most), said)
        rest = cut_lines(wrap_text(said, width), most, width)
        return Content("\n").join([*map(Content, first), *(Content.styled(line, "$text-muted") for line in rest)])

    def command_words(self) -> tuple[str, ...]:
        """Return the command for the same records, by the same measure and dataset."""
        found = self._records
        if found is None:
            return ()
        draw = () if found.draw is None else ("--draw", str(found.draw))
        return ("records", str(found.run_id), "--measure", found.measure.place, *draw)

    def make_exportable(self) -> ScreenExport | None:
        """Return the ranked records for export."""
        return grid_exportable(self.query_one(Grid), self.export_file_name("records"))

    def take_focus(self) -> None:
        """Focus the grid."""
        self.query_one(Grid).focus()

    def action_measure(self) -> None:
        """Show the records by the next measure."""
        if self._measures:
            self._measure = (self._measure + 1) % len(self._measures)
            self.load_run()

    def action_dataset(self, step: int) -> None:
        """Show one dataset's numbers, the next one's, and at last the average again."""
        if self._records is not None:
            # Dataset 0 is all of them together; released datasets are numbered from 1.
            draws = [0, *self._records.measure.draw_hashes]
            at = draws.index(self._draw) if self._draw in draws else 0
            self._draw = draws[(at + step) % len(draws)]
            self.load_run()

    @on(Grid.RowSelected)
    async def _open_record(self, event: Grid.RowSelected) -> None:
        """Open the audit, the guesses or the candidates of the chosen record, or list the records of a unit."""
        if self._records is not None:
            (line,) = self._records.lines(event.index, 1)
            measure = self._records.measure
            if line.is_unit and line.unit is not None:
                self._opened ^= {line.unit}
                self._show_records(keep_cursor=True)
            elif not measure.draw_hashes:
                from ..parts.audited import AuditedTargetDialog

                await self.sfumato.open(AuditedTargetDialog(self._records.run_id, measure, line.record))
            elif measure.guesses_hash is not None:
                from .guesses import GuessesDialog

                await self.sfumato.open(GuessesDialog(self._records, line.record))
            elif measure.is_matching:
                await self.sfumato.open(RecordDialog(self._records, line.record))
            else:
                self.sfumato.say(NO_MORE.format(measure_title(measure.key)))


def _with_sureness(text: Content, records: OpenRecords, width: int) -> Content:
    """Return the explanation of a row with how surely all that are listed are found below it, and what columns mean."""
    key, risk = records.measure.key, records.ranking.risk
    if records.units is not None:
        facts = unit_column_facts(records.units.noun)
    else:
        legend = column_legend(
            key, unique=risk.unique is not None, own=records.ranking.confidential_risk is not None,
            drivers=records.measure.is_matching,
        )  # fmt: skip
        facts = [(name, said) for name, _, said in (line.partition(": ") for line in legend.splitlines())]
    meanings = titled_facts("What the columns mean", facts, width)
    return Content("\n").join([text, *sureness_lines(records, width), Content(""), meanings])


def _is_same_selection(one: OpenRecords | None, other: OpenRecords | None) -> bool:
    """Return whether both rankings are of the same run, measure and dataset."""
    if one is None or other is None:
        return False
    return (one.run_id, one.measure.position, one.draw) == (other.run_id, other.measure.position, other.draw)


def _read_reasons(workspace: Workspace, records: OpenRecords) -> tuple[Mapping[int, str], Mapping[int, UnitMatch]]:
    """Return texts about what drives the risk of the first records, and how the first units are found, by record."""
    from sfumato.workspace.views.records import find_risk_drivers, find_unit_matches

    if records.units is not None:
        heads = [line.record for line in records.fold(()).lines(0, DRIVEN) if line.is_unit]
        matches = find_unit_matches(workspace, records, heads) if records.measure.is_matching else {}
    else:
        matches = {}
    numbers = [line.record for line in records.lines(0, DRIVEN) if not line.is_unit]
    found: LeaveOneOutCandidates | None = find_risk_drivers(workspace, records, numbers)
    if found is None:
        return {}, matches
    return {number: driver_text(found.driver(r)) for r, number in enumerate(numbers)}, matches
