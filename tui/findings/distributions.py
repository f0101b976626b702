"""Queries and answers of the dialog of distributions, computed in a thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from sfumato.engine.data.schema import Variable
from sfumato.engine.wording import count_noun
from sfumato.tui.session.export import ExportTable, ScreenExport
from sfumato.workspace.plots.axes import unit_text
from sfumato.workspace.plots.column import VariableValues
from sfumato.workspace.plots.figure import CONFIDENTIAL, AxisBins, Figure, Panel, short_percent
from sfumato.workspace.plots.joint import (
    BinWindow,
    JointDistribution,
    ScatterSample,
    joint_distribution,
    records_in_cell,
    sample_scatter,
)
from sfumato.workspace.plots.marginal import (
    DatasetChoice,
    MarginalFigure,
    available_plots,
    draw_marginal,
    records_in_bar,
)
from sfumato.workspace.plots.marginal import MarginalPlot as OneVariable
from sfumato.workspace.plots.series import Series, SeriesReading
from sfumato.workspace.reporting.words import number
from sfumato.workspace.store.runs import StoredRun, find_run

if TYPE_CHECKING:
    from sfumato.workspace.store.workspace import Workspace


Picture = OneVariable | Literal["heat map", "scatter"]
TWO = ("heat map", "scatter")
SHELVED = 6


@dataclass(frozen=True)
class DistributionSubject:
    """Data whose distributions are shown.

    dataset_id: the confidential dataset
    variables: its variables
    run: run whose release is compared; None if there is none
    n_datasets: number of released datasets
    """

    dataset_id: int
    variables: tuple[Variable, ...]
    run: StoredRun | None
    n_datasets: int

    @property
    def release_kind(self) -> str:
        """Return the word for the released data: anonymised or synthetic."""
        return "anonymised" if self.run is not None and self.run.recipe.anonymisation else "synthetic"


def find_subject(workspace: Workspace, project_id: int, run_id: int | None) -> DistributionSubject | None:
    """Return the data of a run, or without one of the project's plan; None if there are none."""
    from sfumato.workspace.plan.drafts import find_draft
    from sfumato.workspace.views.columns_beside import released_dataset_hashes

    run = None if run_id is None else find_run(workspace, run_id)
    draft = None if run is not None else find_draft(workspace, project_id)
    dataset_id = run.dataset_id if run is not None else draft.dataset_id if draft is not None else None
    if dataset_id is None:
        return None
    draws = 0 if run is None else len(released_dataset_hashes(workspace, run.id))
    # A run that has not drawn a dataset yet has nothing to compare.
    return DistributionSubject(
        dataset_id, tuple(workspace.find_dataset(dataset_id).schema), run if draws else None, draws
    )


@dataclass
class ColumnCache:
    """Cache of the variables that were read last, so that another picture of them needs no reading."""

    columns: dict[str, VariableValues] = field(default_factory=dict)

    def read_columns(
        self, workspace: Workspace, subject: DistributionSubject, names: Sequence[str]
    ) -> list[VariableValues]:
        """Return the values of the variables, read if they are not in the cache."""
        from sfumato.workspace.views.columns_beside import read_variable_values

        known = dict(self.columns)
        wanted = [name for name in dict.fromkeys(names) if name not in known]
        if wanted:
            known |= read_variable_values(workspace, subject.dataset_id, subject.run, wanted)
        # The ones just asked for go last, so that the longest unused are dropped first.
        kept = [name for name in known if name not in names][-SHELVED:]
        self.columns = {name: known[name] for name in (*kept, *dict.fromkeys(names))}
        return [known[name] for name in names]


@dataclass(frozen=True)
class DistributionQuery:
    """Picture of one variable or of two that the user requests.

    x, y: names of the variables; y is None for one variable
    picture: kind of picture
    draws: datasets that are drawn
    log, log_up: whether the first axis, or the other one, is logarithmic
    across, up: how a heat map is binned
    """

    x: str
    y: str | None
    picture: Picture
    draws: DatasetChoice = "band"
    log: bool = False
    log_up: bool = False
    across: BinWindow = field(default_factory=lambda: BinWindow(20))
    up: BinWindow = field(default_factory=lambda: BinWindow(12))


@dataclass(frozen=True, eq=False)
class DistributionAnswer:
    """Computed picture of one variable or two.

    final_query: the query, changed where its picture is not possible
    pictures: possible pictures
    columns: values of the variables
    figure_data: what is drawn
    notes: remarks on what is left out
    """

    final_query: DistributionQuery
    pictures: tuple[Picture, ...]
    columns: tuple[VariableValues, ...]
    figure_data: MarginalFigure | JointDistribution | ScatterSample
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """Return the names and the picture: ``price by reviews, heat map``."""
        return f"{' by '.join(column.name for column in self.columns)}, {self.final_query.picture}"


def answer_query(
    workspace: Workspace, subject: DistributionSubject, cache: ColumnCache, query: DistributionQuery
) -> DistributionAnswer:
    """Compute a picture. Raises DamagedTable and NotFound."""
    names = [query.x] if query.y is None else [query.x, query.y]
    columns = cache.read_columns(workspace, subject, names)
    pictures = _possible_pictures(columns)
    query = _nearest_possible_query(query, columns, pictures)
    notes = [
        f"{column.name}: {column.withheld_reason}"
        for column in columns
        if column.withheld_reason and subject.run is not None
    ]
    if query.picture == "heat map":
        both = joint_distribution(columns[0], columns[1], query.across, query.up, query.draws, subject.release_kind)
        return DistributionAnswer(query, pictures, tuple(columns), both, (*notes, *_outside_note(both)))
    if query.picture == "scatter":
        from sfumato.workspace.views.columns_beside import point_sampling_streams

        streams = point_sampling_streams(workspace, subject.dataset_id, subject.run)
        points = sample_scatter(
            columns[0], columns[1], query.draws, streams, subject.release_kind, log_x=query.log, log_y=query.log_up
        )
        return DistributionAnswer(query, pictures, tuple(columns), points, (*notes, points.note))
    one = draw_marginal(columns[0], query.picture, query.draws, subject.release_kind, log=query.log)
    return DistributionAnswer(query, pictures, (columns[0],), one, (*notes, *one.notes))


def _possible_pictures(columns: Sequence[VariableValues]) -> tuple[Picture, ...]:
    """Return the pictures that are possible for the variables."""
    if len(columns) == 1:
        return available_plots(columns[0])
    numbers = not any(column.levels for column in columns)
    return (*available_plots(columns[0]), "heat map", *(("scatter",) if numbers else ()))


def _nearest_possible_query(
    query: DistributionQuery, columns: Sequence[VariableValues], pictures: Sequence[Picture]
) -> DistributionQuery:
    """Return the query if it can be drawn, otherwise the nearest that can.

    Logarithms need numbers some of which are above 0.
    """
    picture = query.picture if query.picture in pictures else pictures[0]
    logs = [can_be_logarithmic(column) for column in columns]
    log = query.log and logs[0]
    two = picture in TWO
    # Bars and densities have values from 0 up, which a logarithm spreads; a scatter plot and a heat map use the
    # variable's own.
    log_up = query.log_up and (logs[1] if two else picture in ("histogram", "density", "shares"))
    across = replace(query.across, log=log)
    return replace(query, picture=picture, log=log, log_up=log_up, across=across, up=replace(query.up, log=log_up))


def can_be_logarithmic(column: VariableValues) -> bool:
    """Return whether a variable has values that a logarithmic axis can show."""
    return not column.levels and column.axis_unit == "number" and bool((column.confidential > 0).any())


def _outside_note(both: JointDistribution) -> list[str]:
    """Return the note on the share of records outside all bins; empty if the share is 0."""
    # Shares add up to 1 only within rounding.
    if max(both.outside_shares) < 1e-9:
        return []
    released = (
        f", {both.release_name.partition(',')[0]} {short_percent(both.outside_shares[1])}"
        if both.released is not None
        else ""
    )
    return [f"not in the picture: {CONFIDENTIAL} {short_percent(both.outside_shares[0])}{released}"]


def change_variable(query: DistributionQuery, name: str) -> DistributionQuery:
    """Return the query for the same picture of another variable."""
    return replace(query, x=name, y=None if query.y == name else query.y)


def change_second(query: DistributionQuery, name: str | None) -> DistributionQuery:
    """Return the query with another second variable, at first a heat map; without one if it is None."""
    if name is None:
        one = "histogram" if query.picture in TWO else query.picture
        return replace(query, y=None, picture=one, log_up=False)
    return replace(query, y=name, picture=query.picture if query.picture in TWO else "heat map", log_up=False)


def next_datasets(query: DistributionQuery, n_datasets: int, step: int) -> DistributionQuery:
    """Return the query for the next choice of datasets: mean and band, each of them, then single ones."""
    # An integer is one dataset alone.
    ways: list[DatasetChoice] = ["band", "each", *range(n_datasets)]
    return replace(query, draws=ways[(ways.index(query.draws) + step) % len(ways)])


def has_same_axes(first: DistributionAnswer, second: DistributionAnswer) -> bool:
    """Return whether the cursor's place and the range in view mean the same in two pictures."""
    return _axes_key(first.final_query) == _axes_key(second.final_query)


def _axes_key(wanted: DistributionQuery) -> tuple[object, ...]:
    """Return what decides the axes of a picture: variables, scales, and the kind if it is of two variables."""
    two = wanted.picture in TWO
    return (wanted.x, wanted.log, wanted.picture if two else "one", *((wanted.y, wanted.log_up) if two else ()))


def point_series(found: ScatterSample) -> list[Series]:
    """Return the series of a scatter plot as points."""
    return [Series(one.name, one.x, one.y, marker="points") for one in found.series]


def heading_text(subject: DistributionSubject, shown: DistributionAnswer, *, log_shades: bool) -> str:
    """Return the heading, such as ``run 3 · price by reviews · heat map 5/6 · 20 synthetic: mean · log scale``."""
    wanted = shown.final_query
    parts = [
        f"run {subject.run.id}" if subject.run is not None else "confidential data alone",
        " across, ".join(column.name for column in shown.columns) + (" up" if len(shown.columns) > 1 else ""),
        f"{wanted.picture} {shown.pictures.index(wanted.picture) + 1}/{len(shown.pictures)}",
        _dataset_words(subject, wanted),
        "log scale" if wanted.log else "",
        "other axis log" if wanted.log_up else "",
        "shades by logarithm" if log_shades and isinstance(shown.figure_data, JointDistribution) else "",
    ]
    return " · ".join(part for part in parts if part)


def _dataset_words(subject: DistributionSubject, wanted: DistributionQuery) -> str:
    """Return which released datasets are drawn; empty without a release."""
    if not subject.n_datasets:
        return ""
    if isinstance(wanted.draws, int) or wanted.picture == "scatter":
        return f"{subject.release_kind} {wanted.draws + 1 if isinstance(wanted.draws, int) else 1}/{subject.n_datasets}"
    if wanted.picture == "heat map":
        return f"mean of {subject.n_datasets} {subject.release_kind}"
    return f"{subject.n_datasets} {subject.release_kind}: {'mean, least and greatest' if wanted.draws == 'band' else 'each, and mean'}"


def marginal_text(distribution: MarginalFigure, x: float, readings: Sequence[SeriesReading]) -> str:
    """Return the values at ``x``: ``price 100 ..

    120: confidential 0.12 · synthetic, mean of 20 0.11 (0.10 .. 0.13)``.
    """
    panel = distribution.figure.panels[0]
    named = bool(panel.x_names) and 0 <= round(x) < len(panel.x_names)
    half = panel.bar_width / 2
    if named:
        at = panel.x_names[round(x)]
    elif distribution.figure.kind == "histogram":
        at = " .. ".join(unit_text(end, panel.x_unit) for end in (x - half, x + half))
    else:
        at = unit_text(x, panel.x_unit)
    # Several series can have one name; the first of them is the one to read, so it is put in last.
    seen = {reading.name: reading for reading in reversed(readings)}
    said = []
    for name in distribution.figure.series_names:
        reading = seen.get(name)
        if reading is not None and reading.value is not None:
            band = "" if reading.lower is None else f" ({number(reading.lower)} .. {number(reading.upper)})"
            said.append(f"{_before_comma(name)} {number(reading.value)}{band}")
    return f"{panel.x_label} {at}: {' · '.join(said)}"


def _before_comma(name: str) -> str:
    """Return the part of a name before the comma: ``synthetic`` of ``synthetic, mean of 20``."""
    return name.partition(",")[0]


def cell_values_text(shown: DistributionAnswer, found: JointDistribution, at: tuple[int, int]) -> str:
    """Return the shares in the bins (across, up) at the cursor."""
    across, up = at
    own = found.confidential
    value = float(own.shares[up, across])
    records = round(value * shown.columns[0].confidential.size)
    parts = [f"{CONFIDENTIAL} {short_percent(value)} ({records:,})"]
    if found.released is not None and found.difference is not None:
        parts.append(f"{_before_comma(found.release_name)} {short_percent(float(found.released.shares[up, across]))}")
        parts.append(f"{100 * float(found.difference.shares[up, across]):+.2g} points")
    x, y = shown.columns
    return f"{x.name} {own.x.bin_text(across)}, {y.name} {own.y.bin_text(up)}: {' · '.join(parts)}"


@dataclass(frozen=True, eq=False)
class RecordsBehindCell:
    """Confidential records behind a bar or a cell.

    description: what they have in common, in words
    records: their numbers, from 1
    """

    description: str
    records: tuple[int, ...]


def records_behind(shown: DistributionAnswer, x: float | None, at: tuple[int, int] | None) -> RecordsBehindCell | None:
    """Return the records behind the bar at ``x``, or in the cell ``at`` of a heat map.

    Bars are those of a histogram or of shares of levels. None if nothing of that kind is under the cursor.
    """
    found, columns = shown.figure_data, shown.columns
    if isinstance(found, JointDistribution):
        if at is None:
            return None
        own, wanted = found.confidential, shown.final_query
        rows = records_in_cell(columns[0], columns[1], wanted.across, wanted.up, at)
        said = f"{columns[0].name} {own.x.bin_text(at[0])}, {columns[1].name} {own.y.bin_text(at[1])}"
        # Records are numbered from 1, rows from 0.
        return RecordsBehindCell(said, tuple((rows + 1).tolist()))
    if not isinstance(found, MarginalFigure) or shown.final_query.picture not in ("histogram", "shares") or x is None:
        return None
    bars = next((one.x for one in found.figure.panels[0].series if one.name == CONFIDENTIAL), None)
    if bars is None or not bars.size:
        return None
    rows = records_in_bar(columns[0], int(abs(bars - x).argmin()), log=shown.final_query.log)
    return RecordsBehindCell(marginal_text(found, x, ()).partition(": ")[0], tuple((rows + 1).tolist()))


def scatter_text(shown: DistributionAnswer, points: ScatterSample, x: float, width: float) -> str:
    """Describe the points of each series within half a ``width`` of ``x``: number, range and median."""
    said = []
    for one in points.series:
        near = sorted(one.y[abs(one.x - x) <= width / 2].tolist())
        if near:
            low, middle, high = (unit_text(near[i], points.y_unit) for i in (0, len(near) // 2, -1))
            said.append(f"{one.name} {count_noun(len(near), 'point')}, {low} .. {high}, median {middle}")
    across, up = shown.columns
    return f"{across.name} {unit_text(x, points.x_unit)}: {up.name} of {' · '.join(said)}"


def export_answer(shown: DistributionAnswer, run_id: int | None) -> ScreenExport:
    """Return the picture and its numbers as files that are marked as confidential."""
    where = "" if run_id is None else f"run-{run_id}-"
    name = "-".join([*(column.name for column in shown.columns), shown.final_query.picture.replace(" ", "-")])
    # Names of variables come from files and may have slashes or worse.
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
    return ScreenExport(f"confidential-{where}{safe}", lambda: answer_rows(shown), lambda: answer_figure(shown))


def answer_figure(shown: DistributionAnswer) -> Figure:
    """Return the picture as a figure for a file, marked as confidential."""
    found = shown.figure_data
    title = f"CONFIDENTIAL: {shown.title}"
    caption = ". ".join(("Drawn from confidential records", *shown.notes))
    if isinstance(found, MarginalFigure):
        return Figure(
            title, found.figure.kind, _mark_confidential(found.figure.panels, log=shown.final_query.log_up), caption
        )
    names = [column.name for column in shown.columns]
    if isinstance(found, JointDistribution):
        return Figure(title, "heat", found.to_figure(title, names[0], names[1]).panels, caption)
    panel = Panel("", found.series, names[0], names[1], x_unit=found.x_unit, y_unit=found.y_unit)
    return Figure(title, "scatter", (panel,), caption)


def _mark_confidential(panels: Sequence[Panel], *, log: bool) -> tuple[Panel, ...]:
    """Return the panels with the title Confidential."""
    return tuple(replace(panel, title="Confidential", log_y=log) for panel in panels)


def answer_rows(shown: DistributionAnswer) -> ExportTable:
    """Return the numbers of the picture, with all digits; logarithms are those of base 10."""
    found = shown.figure_data
    if isinstance(found, JointDistribution):
        return _cell_rows(shown, found)
    series = found.figure.panels[0].series if isinstance(found, MarginalFigure) else found.series
    names = found.figure.panels[0].x_names if isinstance(found, MarginalFigure) else ()
    rows = [(*_series_labels(series, one), *point) for one in series for point in _point_rows(one, names)]
    up = "share" if isinstance(found, MarginalFigure) else shown.columns[1].name
    return ("data", "dataset", shown.columns[0].name, up, "lower", "upper"), rows


def _series_labels(series: Sequence[Series], one: Series) -> tuple[str, int | None]:
    """Return the name of a series, and the number of the dataset if it has a line of its own."""
    thin = [other for other in series if other.thin]
    return one.name, thin.index(one) + 1 if one.thin else None


def _point_rows(one: Series, names: Sequence[str]) -> list[tuple[object, ...]]:
    """Return x, y and the ends of the interval for each point; x is the level's name where levels have names."""
    ends = [[None] * one.x.size if bound is None else bound.tolist() for bound in (one.lower, one.upper)]
    at: Sequence[object] = [names[round(x)] for x in one.x.tolist()] if names else one.x.tolist()
    return list(zip(at, one.y.tolist(), *ends, strict=True))


def _cell_rows(shown: DistributionAnswer, found: JointDistribution) -> ExportTable:
    """Return a row for each bin in which something lies: its ends, and the shares of records."""
    own, parts = found.confidential, (found.confidential, found.released, found.difference)
    rows: list[Sequence[object]] = []
    for up in range(len(own.y)):
        for across in range(len(own.x)):
            values = [None if one is None else float(one.shares[up, across]) for one in parts]
            # Empty bins of a fine grid would be most of the file.
            if any(values):
                rows.append((*_bin_ends(own.x, across), *_bin_ends(own.y, up), *values))
    heads = [head for column in shown.columns for head in (f"{column.name}, from", f"{column.name}, below")]
    return (*heads, CONFIDENTIAL, found.release_name, "difference"), rows


def _bin_ends(bins: AxisBins, i: int) -> Sequence[object]:
    """Return the ends of a bin; its name and None for a level."""
    return (bins.names[i], None) if bins.names else (float(bins.edges[i]), float(bins.edges[i + 1]))
