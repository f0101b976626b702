"""What the screen of distributions shows: asked for as one value, computed in a thread."""

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
class Subject:
    """The data to show: a dataset, a run's release of it (``run`` None without one), and how many datasets."""

    dataset_id: int
    variables: tuple[Variable, ...]
    run: StoredRun | None
    draws: int

    @property
    def origin(self) -> str:
        """What the released data are called."""
        return "anonymised" if self.run is not None and self.run.recipe.anonymisation else "synthetic"


def subject_of(workspace: Workspace, project_id: int, run_id: int | None) -> Subject | None:
    """Return the data of a run, or without one of the project's plan; None without data."""
    from sfumato.workspace.plan.drafts import find_draft
    from sfumato.workspace.views.columns_beside import released_dataset_hashes

    run = None if run_id is None else find_run(workspace, run_id)
    draft = None if run is not None else find_draft(workspace, project_id)
    dataset_id = run.dataset_id if run is not None else draft.dataset_id if draft is not None else None
    if dataset_id is None:
        return None
    draws = 0 if run is None else len(released_dataset_hashes(workspace, run.id))
    return Subject(dataset_id, tuple(workspace.find_dataset(dataset_id).schema), run if draws else None, draws)


@dataclass
class ColumnCache:
    """The variables that were read last, so that another picture of them needs no reading."""

    columns: dict[str, VariableValues] = field(default_factory=dict)

    def read(self, workspace: Workspace, subject: Subject, names: Sequence[str]) -> list[VariableValues]:
        from sfumato.workspace.views.columns_beside import read_variable_values

        known = dict(self.columns)
        wanted = [name for name in dict.fromkeys(names) if name not in known]
        if wanted:
            known |= read_variable_values(workspace, subject.dataset_id, subject.run, wanted)
        kept = [name for name in known if name not in names][-SHELVED:]
        self.columns = {name: known[name] for name in (*kept, *dict.fromkeys(names))}
        return [known[name] for name in names]


@dataclass(frozen=True)
class DistributionQuery:
    """A picture of one variable or of two; ``log`` of the first by its logarithm, ``log_up`` of the other, or of the values.

    ``across`` and ``up`` say how a heat map is binned.
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
    """What was ``wanted`` (changed where there is no such picture), and one of three pictures with its variables."""

    wanted: DistributionQuery
    pictures: tuple[Picture, ...]
    columns: tuple[VariableValues, ...]
    found: MarginalFigure | JointDistribution | ScatterSample
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """``price by reviews, heat map``."""
        return f"{' by '.join(column.name for column in self.columns)}, {self.wanted.picture}"


def answer(workspace: Workspace, subject: Subject, shelf: ColumnCache, wanted: DistributionQuery) -> DistributionAnswer:
    """Compute a picture. Raises DamagedTable and NotFound."""
    names = [wanted.x] if wanted.y is None else [wanted.x, wanted.y]
    columns = shelf.read(workspace, subject, names)
    pictures = _pictures(columns)
    wanted = _possible(wanted, columns, pictures)
    notes = [
        f"{column.name}: {column.withheld_reason}"
        for column in columns
        if column.withheld_reason and subject.run is not None
    ]
    if wanted.picture == "heat map":
        both = joint_distribution(columns[0], columns[1], wanted.across, wanted.up, wanted.draws, subject.origin)
        return DistributionAnswer(wanted, pictures, tuple(columns), both, (*notes, *_outside(both)))
    if wanted.picture == "scatter":
        from sfumato.workspace.views.columns_beside import point_sampling_streams

        streams = point_sampling_streams(workspace, subject.dataset_id, subject.run)
        points = sample_scatter(
            columns[0], columns[1], wanted.draws, streams, subject.origin, log_x=wanted.log, log_y=wanted.log_up
        )
        return DistributionAnswer(wanted, pictures, tuple(columns), points, (*notes, points.note))
    one = draw_marginal(columns[0], wanted.picture, wanted.draws, subject.origin, log=wanted.log)
    return DistributionAnswer(wanted, pictures, (columns[0],), one, (*notes, *one.notes))


def _pictures(columns: Sequence[VariableValues]) -> tuple[Picture, ...]:
    if len(columns) == 1:
        return available_plots(columns[0])
    numbers = not any(column.levels for column in columns)
    return (*available_plots(columns[0]), "heat map", *(("scatter",) if numbers else ()))


def _possible(
    wanted: DistributionQuery, columns: Sequence[VariableValues], pictures: Sequence[Picture]
) -> DistributionQuery:
    """The same where it can be drawn, else the nearest that can: logarithms only of numbers some of which are above 0."""
    picture = wanted.picture if wanted.picture in pictures else pictures[0]
    logs = [can_log(column) for column in columns]
    log = wanted.log and logs[0]
    two = picture in TWO
    log_up = wanted.log_up and (logs[1] if two else picture in ("histogram", "density", "shares"))
    across = replace(wanted.across, log=log)
    return replace(wanted, picture=picture, log=log, log_up=log_up, across=across, up=replace(wanted.up, log=log_up))


def can_log(column: VariableValues) -> bool:
    """Whether a variable has values that a logarithmic axis can show."""
    return not column.levels and column.axis_unit == "number" and bool((column.confidential > 0).any())


def _outside(both: JointDistribution) -> list[str]:
    """Which share of the records no bin holds."""
    if max(both.outside_shares) < 1e-9:
        return []
    released = (
        f", {both.release_name.partition(',')[0]} {short_percent(both.outside_shares[1])}"
        if both.released is not None
        else ""
    )
    return [f"not in the picture: {CONFIDENTIAL} {short_percent(both.outside_shares[0])}{released}"]


def with_variable(wanted: DistributionQuery, name: str) -> DistributionQuery:
    """The same picture of another variable."""
    return replace(wanted, x=name, y=None if wanted.y == name else wanted.y)


def with_second(wanted: DistributionQuery, name: str | None) -> DistributionQuery:
    """Return a picture of the variable with another beside it, a heat map at first; of the variable alone where that is None."""
    if name is None:
        one = "histogram" if wanted.picture in TWO else wanted.picture
        return replace(wanted, y=None, picture=one, log_up=False)
    return replace(wanted, y=name, picture=wanted.picture if wanted.picture in TWO else "heat map", log_up=False)


def with_draws(wanted: DistributionQuery, draws: int, step: int) -> DistributionQuery:
    """All datasets as mean and band, each of them, then every single one of ``draws``."""
    ways: list[DatasetChoice] = ["band", "each", *range(draws)]
    return replace(wanted, draws=ways[(ways.index(wanted.draws) + step) % len(ways)])


def same_axes(one: DistributionAnswer, other: DistributionAnswer) -> bool:
    """Whether the place of a cursor and the range in view mean the same in two pictures."""
    return _axes(one.wanted) == _axes(other.wanted)


def _axes(wanted: DistributionQuery) -> tuple[object, ...]:
    two = wanted.picture in TWO
    return (wanted.x, wanted.log, wanted.picture if two else "one", *((wanted.y, wanted.log_up) if two else ()))


def point_series(found: ScatterSample) -> list[Series]:
    return [Series(one.name, one.x, one.y, marker="points") for one in found.series]


def heading(subject: Subject, shown: DistributionAnswer, *, log_shades: bool) -> str:
    """``run 3 · price by reviews · heat map 5/6 · 20 synthetic: mean · log scale``."""
    wanted = shown.wanted
    parts = [
        f"run {subject.run.id}" if subject.run is not None else "confidential data alone",
        " across, ".join(column.name for column in shown.columns) + (" up" if len(shown.columns) > 1 else ""),
        f"{wanted.picture} {shown.pictures.index(wanted.picture) + 1}/{len(shown.pictures)}",
        _dataset_words(subject, wanted),
        "log scale" if wanted.log else "",
        "other axis log" if wanted.log_up else "",
        "shades by logarithm" if log_shades and isinstance(shown.found, JointDistribution) else "",
    ]
    return " · ".join(part for part in parts if part)


def _dataset_words(subject: Subject, wanted: DistributionQuery) -> str:
    if not subject.draws:
        return ""
    if isinstance(wanted.draws, int) or wanted.picture == "scatter":
        return f"{subject.origin} {wanted.draws + 1 if isinstance(wanted.draws, int) else 1}/{subject.draws}"
    if wanted.picture == "heat map":
        return f"mean of {subject.draws} {subject.origin}"
    return f"{subject.draws} {subject.origin}: {'mean, least and greatest' if wanted.draws == 'band' else 'each, and mean'}"


def marginal_reading(found: MarginalFigure, x: float, readings: Sequence[SeriesReading]) -> str:
    """``price 100 .. 120: confidential 0.12 · synthetic, mean of 20 0.11 (0.10 .. 0.13)``."""
    panel = found.figure.panels[0]
    named = bool(panel.x_names) and 0 <= round(x) < len(panel.x_names)
    half = panel.bar_width / 2
    if named:
        at = panel.x_names[round(x)]
    elif found.figure.kind == "histogram":
        at = " .. ".join(unit_text(end, panel.x_unit) for end in (x - half, x + half))
    else:
        at = unit_text(x, panel.x_unit)
    seen = {reading.name: reading for reading in reversed(readings)}
    said = []
    for name in found.figure.series_names:
        reading = seen.get(name)
        if reading is not None and reading.value is not None:
            band = "" if reading.lower is None else f" ({number(reading.lower)} .. {number(reading.upper)})"
            said.append(f"{_short(name)} {number(reading.value)}{band}")
    return f"{panel.x_label} {at}: {' · '.join(said)}"


def _short(name: str) -> str:
    """``synthetic`` of ``synthetic, mean of 20``."""
    return name.partition(",")[0]


def cell_reading(shown: DistributionAnswer, found: JointDistribution, at: tuple[int, int]) -> str:
    """What the bins (across, up) at the cursor hold."""
    across, up = at
    own = found.confidential
    value = float(own.shares[up, across])
    records = round(value * shown.columns[0].confidential.size)
    parts = [f"{CONFIDENTIAL} {short_percent(value)} ({records:,})"]
    if found.released is not None and found.difference is not None:
        parts.append(f"{_short(found.release_name)} {short_percent(float(found.released.shares[up, across]))}")
        parts.append(f"{100 * float(found.difference.shares[up, across]):+.2g} points")
    x, y = shown.columns
    return f"{x.name} {own.x.bin_text(across)}, {y.name} {own.y.bin_text(up)}: {' · '.join(parts)}"


@dataclass(frozen=True, eq=False)
class Drilled:
    """The confidential records behind a bar or a cell: what they have in common, in words, and their numbers from 1."""

    said: str
    records: tuple[int, ...]


def drilled(shown: DistributionAnswer, x: float | None, at: tuple[int, int] | None) -> Drilled | None:
    """The records behind the bar at ``x`` of a histogram or of shares of levels, or in the cell ``at`` of a heat map.

    None where nothing of that kind is under the cursor.
    """
    found, columns = shown.found, shown.columns
    if isinstance(found, JointDistribution):
        if at is None:
            return None
        own, wanted = found.confidential, shown.wanted
        rows = records_in_cell(columns[0], columns[1], wanted.across, wanted.up, at)
        said = f"{columns[0].name} {own.x.bin_text(at[0])}, {columns[1].name} {own.y.bin_text(at[1])}"
        return Drilled(said, tuple((rows + 1).tolist()))
    if not isinstance(found, MarginalFigure) or shown.wanted.picture not in ("histogram", "shares") or x is None:
        return None
    bars = next((one.x for one in found.figure.panels[0].series if one.name == CONFIDENTIAL), None)
    if bars is None or not bars.size:
        return None
    rows = records_in_bar(columns[0], int(abs(bars - x).argmin()), log=shown.wanted.log)
    return Drilled(marginal_reading(found, x, ()).partition(": ")[0], tuple((rows + 1).tolist()))


def scatter_reading(shown: DistributionAnswer, found: ScatterSample, x: float, width: float) -> str:
    """How many points lie within half a ``width`` of ``x``, and where."""
    said = []
    for one in found.series:
        near = sorted(one.y[abs(one.x - x) <= width / 2].tolist())
        if near:
            low, middle, high = (unit_text(near[i], found.y_unit) for i in (0, len(near) // 2, -1))
            said.append(f"{one.name} {count_noun(len(near), 'point')}, {low} .. {high}, median {middle}")
    across, up = shown.columns
    return f"{across.name} {unit_text(x, found.x_unit)}: {up.name} of {' · '.join(said)}"


def exportable_of(shown: DistributionAnswer, run_id: int | None) -> ScreenExport:
    """The picture and its numbers as files that say they are confidential."""
    where = "" if run_id is None else f"run-{run_id}-"
    name = "-".join([*(column.name for column in shown.columns), shown.wanted.picture.replace(" ", "-")])
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
    return ScreenExport(f"confidential-{where}{safe}", lambda: shown_lines(shown), lambda: shown_figure(shown))


def shown_figure(shown: DistributionAnswer) -> Figure:
    found = shown.found
    title = f"CONFIDENTIAL: {shown.title}"
    caption = ". ".join(("Drawn from confidential records", *shown.notes))
    if isinstance(found, MarginalFigure):
        return Figure(title, found.figure.kind, _logged(found.figure.panels, log=shown.wanted.log_up), caption)
    names = [column.name for column in shown.columns]
    if isinstance(found, JointDistribution):
        return Figure(title, "heat", found.to_figure(title, names[0], names[1]).panels, caption)
    panel = Panel("", found.series, names[0], names[1], x_unit=found.x_unit, y_unit=found.y_unit)
    return Figure(title, "scatter", (panel,), caption)


def _logged(panels: Sequence[Panel], *, log: bool) -> tuple[Panel, ...]:
    return tuple(replace(panel, title="Confidential", log_y=log) for panel in panels)


def shown_lines(shown: DistributionAnswer) -> ExportTable:
    """The numbers of the picture, with all digits; logarithms are those of base 10."""
    found = shown.found
    if isinstance(found, JointDistribution):
        return _cell_lines(shown, found)
    series = found.figure.panels[0].series if isinstance(found, MarginalFigure) else found.series
    names = found.figure.panels[0].x_names if isinstance(found, MarginalFigure) else ()
    rows = [(*_draw_name(series, one), *point) for one in series for point in _points(one, names)]
    up = "share" if isinstance(found, MarginalFigure) else shown.columns[1].name
    return ("data", "dataset", shown.columns[0].name, up, "lower", "upper"), rows


def _draw_name(series: Sequence[Series], one: Series) -> tuple[str, int | None]:
    """The name of a series, and the number of a dataset's own line."""
    thin = [other for other in series if other.thin]
    return one.name, thin.index(one) + 1 if one.thin else None


def _points(one: Series, names: Sequence[str]) -> list[tuple[object, ...]]:
    ends = [[None] * one.x.size if bound is None else bound.tolist() for bound in (one.lower, one.upper)]
    at: Sequence[object] = [names[round(x)] for x in one.x.tolist()] if names else one.x.tolist()
    return list(zip(at, one.y.tolist(), *ends, strict=True))


def _cell_lines(shown: DistributionAnswer, found: JointDistribution) -> ExportTable:
    own, parts = found.confidential, (found.confidential, found.released, found.difference)
    rows: list[Sequence[object]] = []
    for up in range(len(own.y)):
        for across in range(len(own.x)):
            values = [None if one is None else float(one.shares[up, across]) for one in parts]
            if any(values):
                rows.append((*_ends(own.x, across), *_ends(own.y, up), *values))
    heads = [head for column in shown.columns for head in (f"{column.name}, from", f"{column.name}, below")]
    return (*heads, CONFIDENTIAL, found.release_name, "difference"), rows


def _ends(bins: AxisBins, i: int) -> Sequence[object]:
    return (bins.names[i], None) if bins.names else (float(bins.edges[i]), float(bins.edges[i + 1]))
