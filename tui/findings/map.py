"""Tab with the risk-utility map: every run of the project as a point, on any two of its measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import ContentSwitcher, Static

from sfumato.engine.methods.labels import SeriesIdentity, label_of, measure_name
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.keys.own_keys import current_key
from sfumato.tui.parts.dialogs import ChoiceDialog
from sfumato.tui.parts.page import RunPane
from sfumato.tui.session.export import ExportTable, ScreenExport
from sfumato.tui.widgets.facts import wrap_text
from sfumato.tui.widgets.grid import Grid, LiveGrid
from sfumato.tui.widgets.lines import Line
from sfumato.tui.widgets.plot import Plot
from sfumato.tui.widgets.tables import GridTable, TableColumn
from sfumato.workspace.plots.series import Series
from sfumato.workspace.reporting.words import DIRECTION_TEXTS, interval_text, limit_text, number, sign_for
from sfumato.workspace.store.runs import RunSummary
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_verdicts
from sfumato.workspace.views.risk_utility import (
    MapAxis,
    MapPoint,
    RiskUtilityMap,
    computing_parameters,
    finished_run_ids,
    read_risk_utility_map,
)

from . import behind
from .map_bars import run_bars, with_blank_between

if TYPE_CHECKING:
    from sfumato.workspace.plots.figure import Figure


Limit = tuple[str, float]
"""Direction of a threshold, ``max`` or ``min``, and its value."""
NONE = "No run of this project is done and has two numbers to place it by."
ONE_RUN = (
    "One run alone compares with nothing. {} opens the plan: {} there runs it with a change, {} searches. Each run is then "
    "a point: risk across, utility up."
)
MOST_BARRED = 2
"""Most runs of a project whose numbers are bars below the plot: so few points leave it empty."""
LEAST_PLOT = 15
"""Lines of the plot with its heading, its axes and the reading, which bars leave."""
MOST_NAMED = 4
"""Most runs of a project that are named below the plot; of more the cursor names those that it is at."""


def axis_limits(verdicts: Sequence[Verdict], axis: MapAxis, own_value: float | None) -> list[Limit]:
    """Return the limits that thresholds set on an axis's number.

    Ratios and increases are relative to ``own_value``: the value of the confidential data, or before the release.
    """
    found = []
    for one in verdicts:
        # A threshold without a target holds for every target.
        same = (one.value, one.level) == (axis.key, axis.level) and one.target in ("", axis.target)
        if not same or (
            one.params and computing_parameters(one.value.rpartition(".")[0], one.params) != dict(axis.settings)
        ):
            continue
        if one.bound in ("max", "min"):
            found.append((one.bound, one.limit))
        # A ratio to a value of 0 or below sets no limit.
        elif own_value is not None and (own_value > 0 or one.bound == "max_increase"):
            found.append(("max", one.limit * own_value if one.bound == "max_ratio" else one.limit + own_value))
    return list(dict.fromkeys(found))


def bound_text(limit: Limit) -> str:
    """Return a limit in words: ``at most 0.02``."""
    return limit_text(*limit)


def map_limit_series(limits: tuple[Sequence[Limit], Sequence[Limit]], points: Sequence[MapPoint]) -> list[Series]:
    """Return lines at the limits of both axes, as long as the picture needs; limits far from all runs are left out."""
    if not points:
        return []
    spans = [[p.x.value for p in points], [p.y.value for p in points]]
    # A limit farther away than the runs' spread would press them into a corner; the heading names it instead.
    near = [[one for one in side if _is_near_values(one[1], span)] for side, span in zip(limits, spans, strict=True)]
    (left, right), (low, high) = (
        _padded_range([*span, *(limit for _, limit in side)]) for span, side in zip(spans, near, strict=True)
    )
    upright = [Series(f"x limit {bound_text(one)}", [one[1]] * 2, [low, high]) for one in near[0]]
    return [*upright, *(Series(f"y limit {bound_text(one)}", [left, right], [one[1]] * 2) for one in near[1])]


def _is_near_values(limit: float, values: Sequence[float]) -> bool:
    """Return whether a limit lies within twice the values' spread of them."""
    low, high = _padded_range(values)
    return low - 2 * (high - low) <= limit <= high + 2 * (high - low)


def _padded_range(values: Sequence[float]) -> tuple[float, float]:
    """Return the least and the greatest value, with some room on both sides if they are equal."""
    low, high = min(values), max(values)
    # Equal values, such as of a single run, still need a line with a length.
    room = 0.0 if high > low else abs(low) / 2 or 1.0
    return low - room, high + room


def runs_table(here: int | None) -> GridTable[MapPoint]:
    """Return the table of the runs' numbers, with the run ``here`` marked."""
    return GridTable(
        (
            TableColumn("mark", "", 1, cell=lambda one: sign_for("into") if one.run_id == here else ""),
            TableColumn("run", "run", 4, "right", cell=lambda one: one.run_id),
            TableColumn("title", "title", 20, drop_order=3, grow_order=1, cell=lambda one: one.title),
            TableColumn("x", "across", 10, "right", cell=lambda one: number(one.x.value)),
            TableColumn(
                "x_interval", "interval", 20, drop_order=2, cell=lambda one: interval_text(one.x.lower, one.x.upper)
            ),
            TableColumn("y", "up", 10, "right", cell=lambda one: number(one.y.value)),
            TableColumn(
                "y_interval", "interval", 20, drop_order=1, cell=lambda one: interval_text(one.y.lower, one.y.upper)
            ),
            TableColumn("efficient", "", 15, cell=lambda one: "".join(_mark_words(one))),
        ),
        key=lambda one: one.run_id,
    )


EFFICIENT, OTHERS = "not dominated", "dominated"


class MapPlot(Plot):
    """Plot of the map, in which enter opens the run under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("open", "open", "Open", show=True)]

    class RunOpened(Message):
        """Message that the user wants to open the run under the cursor."""

    def action_open(self) -> None:
        """Request the run under the cursor."""
        self.post_message(self.RunOpened())


class MapNumbers(LiveGrid):
    """Table of the map's numbers, in which enter opens a run."""

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("open", "select", "Open", show=True)]


class MapPane(RunPane):
    """Tab with the runs by two measures, drawn or in a table; enter opens a run.

    Few runs are named below the plot with their numbers, and with a single one what a second is made by.
    """

    DEFAULT_CSS = """
    MapPane ContentSwitcher { height: 1fr; }
    MapPane #map-runs { height: auto; padding: 0 1; display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("list", "choose('x')", "Across", show=True),
        bind_act("upward", "choose('y')", "Up", show=True),
        bind_act("table", "numbers", "Numbers", show=True),
        bind_act("behind", "behind('x')", "What stands behind the number across"),
        bind_act("behind_up", "behind('y')", "What stands behind the number up"),
        bind_act("confidential", "confidential"),
    ]

    @dataclass
    class MapRunChosen(Message):
        """Message with the run that the user chose for the tabs."""

        run_id: int

    def __init__(self) -> None:
        """Create the tab, without a project."""
        super().__init__(id="map")
        self._project_id: int | None = None
        self._done: tuple[int, ...] = ()
        self._found: RiskUtilityMap | None = None
        self._points: Sequence[MapPoint] = ()
        self._own = True
        self._limits: Sequence[Verdict] = ()
        self._limits_of: int | None = None

    def compose(self) -> ComposeResult:
        """Yield the axes, the plot or its numbers, and the text at the cursor."""
        yield Line(name="map-head")
        with ContentSwitcher(initial="map-plot"):
            yield MapPlot(id="map-plot")
            yield MapNumbers(empty="…", id="map-numbers")
        yield Static("", id="map-runs", markup=False)
        yield Line(name="map-reading")

    def show_run(self, line: RunSummary | None) -> None:
        """Show the project of this run, with the run's thresholds."""
        self.line = line
        if line is None:
            return
        project_id, run_id = line.run.project_id, line.run.id
        # The map is read again only if another run is done since: it takes all rows of all runs.
        seen = self._done if (self._project_id, self._limits_of) == (project_id, run_id) else None
        self._limits_of = run_id

        def query(workspace: Workspace) -> tuple[tuple[int, ...], RiskUtilityMap, Sequence[Verdict]] | None:
            """Read the map and the run's verdicts; None if no run is done since the last reading."""
            done = finished_run_ids(workspace, project_id)
            if done == seen:
                return None
            return done, read_risk_utility_map(workspace, project_id), read_verdicts(workspace, run_id)

        self.read(query, partial(self._show_map, project_id))

    def _show_map(
        self, project_id: int, answer: tuple[tuple[int, ...], RiskUtilityMap, Sequence[Verdict]] | None
    ) -> None:
        """Draw the map, unless no run has been done since."""
        if answer is not None:
            same = project_id == self._project_id
            self._project_id, (self._done, self._found, self._limits) = project_id, answer
            self._draw_map(keep_view=same)

    @property
    def shown_axes(self) -> tuple[MapAxis, MapAxis] | None:
        """Return the measures across and up: those chosen last if the project has them, otherwise a risk and a utility
        that most runs have.
        """
        if self._found is None or not self._found.axes:
            return None
        known = {axis.ident: axis for axis in self._found.axes}
        state, (x, y) = self.sfumato.state, self._found.most_shared_axes
        # Another project may not have measured the remembered numbers, or not both of one run.
        chosen = known.get(state.across, x), known.get(state.up, y)
        return chosen if self._found.points_on(*chosen) else (x, y)

    def _draw_map(self, *, keep_view: bool = False) -> None:
        """Draw the map and fill the table; ``keep_view`` keeps the range in view."""
        plot, axes = self.query_one(Plot), self.shown_axes
        if self._found is None or axes is None:
            self._points = ()
            plot.set_series([], empty=" ")
            self.query_one("#map-head", Line).set_text(NONE)
            self._show_few_runs()
            return
        x, y = axes
        self._points = self._found.points_on(x, y)
        series = [
            *map_point_series(self._points),
            *(confidential_series(self._found, x, y, self._points) if self._own else ()),
            *map_limit_series(self.shown_limits, self._points),
        ]
        plot.set_series(
            series,
            x_label=measure_name(x.key),
            y_label=f"{axis_name(y)}, {DIRECTION_TEXTS[y.goal]}",
            keep_view=keep_view,
        )
        self.query_one("#map-head", Line).set_text(self._heading_text(x, y))
        self.query_one(LiveGrid).show_table(runs_table(self.line.run.id if self.line else None), self._points)
        self._show_few_runs()
        self._show_reading(plot.cursor_x)

    def on_resize(self) -> None:
        """Break the lines on few runs for the new width."""
        self._show_few_runs()

    def _show_few_runs(self) -> None:
        """Name few runs with their numbers below the plot, and say what a single run needs for a comparison."""
        named, axes = self.query_one("#map-runs", Static), self.shown_axes
        lines = [] if self._found is None or axes is None else few_runs_lines(self._found, *axes)
        if self._found is not None and len(self._found.run_titles) < 2:
            keys = [current_key(self.app, act) for act in ("plan", "run", "search")]
            lines.append(ONE_RUN.format(*keys))
        width = max(20, self.size.width - 2)
        broken = [Content(part) for line in lines for part in wrap_text(line, width, next_lines="  ")]
        if len(broken) > self.size.height // 3:
            broken = []
        room = self.size.height - len(broken) - LEAST_PLOT
        bars: list[Content] = []
        if self._found is not None and axes is not None and len(self._found.run_titles) <= MOST_BARRED:
            bars = run_bars(self._found, axes, width, room, axis_name)
        named.display = bool(broken or bars)
        named.update(Content("\n").join(with_blank_between([broken, bars])))

    @property
    def shown_limits(self) -> tuple[Sequence[Limit], Sequence[Limit]]:
        """Return the limits of the shown run, on the number across and on the one up."""
        found, axes, run_id = self._found, self.shown_axes, self._limits_of
        if found is None or axes is None or run_id is None:
            return (), ()
        x, y = (axis_limits(self._limits, axis, found.reference_value(axis, run_id)) for axis in axes)
        return x, y

    def _heading_text(self, x: MapAxis, y: MapAxis) -> str:
        """Return the heading: number of runs, values of the confidential data, limits and directions."""
        assert self._found is not None
        left_out = len(self._found.run_titles) - len(self._points)
        own = [
            number(self._found.confidential_values.get(axis.ident))
            if axis.ident in self._found.confidential_values
            else ""
            for axis in (x, y)
        ]
        parts = [
            f"{count_noun(len(self._points), 'run')}",
            f"{left_out} without one of the numbers" if left_out else "",
        ]
        parts += [
            f"confidential data {name} {value}" for name, value in zip(("across", "up"), own, strict=True) if value
        ]
        drawn = {one.name for one in map_limit_series(self.shown_limits, self._points)}
        parts += [
            # A limit must not seem to be missing because its line is too far away.
            said if said in drawn else f"{said} (beyond the picture)"
            for way, limits in zip(("x", "y"), self.shown_limits, strict=True)
            for said in (f"{way} limit {bound_text(one)}" for one in limits)
        ]
        parts.append(f"across {axis_name(x)}, {DIRECTION_TEXTS[x.goal]}")
        if "none" in (x.goal, y.goal):
            parts.append("none marked: a number here has no better direction")
        return " · ".join(part for part in parts if part)

    @on(Plot.CursorMoved)
    def _show_reading_at(self, event: Plot.CursorMoved) -> None:
        """Show the runs at the cursor."""
        self._show_reading(event.x)

    def _runs_near(self, x: float | None) -> list[MapPoint]:
        """Return the runs nearest to the cursor's x; of several at one place those that no other dominates first."""
        if x is None or not self._points:
            return []
        nearest = min(abs(point.x.value - x) for point in self._points)
        found = [point for point in self._points if abs(point.x.value - x) <= nearest]
        return sorted(found, key=lambda point: point.is_efficient is not True)

    def _show_reading(self, x: float | None) -> None:
        """Show the runs at this x, or the keys if there are none."""
        found = self._runs_near(x)
        text = (
            "   ".join(point_text(point) for point in found)
            if found
            else "left and right move the cursor, enter opens the run, + - zoom, 0 shows all"
        )
        self.query_one("#map-reading", Line).set_text(text)

    def take_focus(self) -> None:
        """Focus the plot or the table."""
        self.query_one(f"#{self.query_one(ContentSwitcher).current}").focus()

    def make_exportable(self) -> ScreenExport | None:
        """Return the runs on the two axes for export, drawn and with all digits."""
        points, axes, limits = self._points, self.shown_axes, self.shown_limits
        if not points or axes is None:
            return None
        return ScreenExport(
            "risk-utility-map",
            lambda: map_rows(points, *axes),
            lambda: map_figure(points, *axes, limits),
            is_plot_shown=self.query_one(ContentSwitcher).current == "map-plot",
        )

    async def action_choose(self, which: str) -> None:
        """Let the user choose the measure across or up from a list."""
        axes = self.shown_axes
        if self._found is None or axes is None:
            return
        known = self._found.axes
        at = known.index(axes[which == "y"])

        def set_axis(place: int | None) -> None:
            """Show the measure at this place of the list on the axis."""
            if place is not None:
                self.sfumato.remember(**{"across" if which == "x" else "up": known[place].ident})
                self._draw_map()

        def axis_text(place: int) -> str:
            """Return the text of a measure in the list."""
            return f"{axis_name(known[place])}, {DIRECTION_TEXTS[known[place].goal]} · {known[place].key}"

        await self.sfumato.open(ChoiceDialog("Across" if which == "x" else "Up", len(known), axis_text, at), set_axis)

    def action_confidential(self) -> None:
        """Switch the confidential data's own values on or off."""
        self._own = not self._own
        self._draw_map()

    def action_numbers(self) -> None:
        """Switch between the plot and the table of runs."""
        switcher = self.query_one(ContentSwitcher)
        switcher.current = "map-numbers" if switcher.current == "map-plot" else "map-plot"
        self.take_focus()

    def action_behind(self, which: str) -> None:
        """Show the records or values behind a number of the run under the cursor."""
        axes, found = self.shown_axes, self._current_point
        if axes is None or found is None:
            self.sfumato.say("Move the cursor to a run first, with left and right, or up and down among the numbers")
        else:
            self.post_message(behind.BasisRequested(found.run_id, axes[which == "y"]))

    @property
    def _current_point(self) -> MapPoint | None:
        """Return the run under the cursor, of the plot or of the table; None if there is none."""
        if self.query_one(ContentSwitcher).current == "map-plot":
            return next(iter(self._runs_near(self.query_one(Plot).cursor_x)), None)
        place = self.query_one(LiveGrid).cursor
        return self._points[place] if place < len(self._points) else None

    @on(MapPlot.RunOpened)
    def _open_point(self) -> None:
        """Open the run under the cursor of the plot."""
        found = self._current_point
        if found is not None:
            self.post_message(self.MapRunChosen(found.run_id))
        else:
            self.sfumato.say("Move the cursor to a run with left and right, then press enter")

    @on(Grid.RowSelected)
    def _open_row(self, event: Grid.RowSelected) -> None:
        """Open the run in the chosen row of the table."""
        self.post_message(self.MapRunChosen(self.query_one(LiveGrid).row_with_key(event.row[-1]).run_id))


def few_runs_lines(found: RiskUtilityMap, x: MapAxis, y: MapAxis) -> list[str]:
    """Return a line for each run with its name and its numbers, where there are few runs; none where there are many."""
    if len(found.run_titles) > MOST_NAMED:
        return []
    points = {point.run_id: point for point in found.points_on(x, y)}
    lines = []
    for run_id, title in found.run_titles.items():
        if run_id in points:
            lines.append(point_text(points[run_id]))
            continue
        lacks = [axis_name(axis) for axis in (x, y) if run_id not in found.coordinates.get(axis.ident, {})]
        lines.append(f"run {run_id} {title}: not on the map, it did not measure {' and '.join(lacks)}")
    return lines


def axis_name(axis: MapAxis) -> str:
    """Return the name of an axis with the settings in which uses of its method differ.

    Example: ``People found for certain (income; S 0.1)``.
    """
    # Settings with a short value are shown even if all uses agree in them.
    varying = {name: axis.settings.get(name, default) for name, default in axis.varying_settings.items()}
    short = {name: value for name, value in axis.settings.items() if isinstance(value, (str, int, float))}
    return label_of(SeriesIdentity(axis.key, axis.target, axis.level, {**varying, **short}))


def map_point_series(points: Sequence[MapPoint]) -> list[Series]:
    """Return the runs as series: those that no other run dominates, and the others."""
    # A measure without a better direction dominates nothing: those runs are marked neither way.
    parts = ((EFFICIENT, [p for p in points if p.is_efficient]), (OTHERS, [p for p in points if p.is_efficient is False]),
             ("runs", [p for p in points if p.is_efficient is None]))  # fmt: skip
    return [
        Series(name, [p.x.value for p in chosen], [p.y.value for p in chosen], marker="points")
        for name, chosen in parts
        if chosen
    ]


def confidential_series(runs_map: RiskUtilityMap, x: MapAxis, y: MapAxis, points: Sequence[MapPoint]) -> list[Series]:
    """Return the confidential data: a point if both numbers are known, otherwise a line at the one that is known."""
    own = [runs_map.confidential_values.get(axis.ident) for axis in (x, y)]
    if not points or own == [None, None]:
        return []
    if own[0] is not None and own[1] is not None:
        return [Series("confidential data", [own[0]], [own[1]], marker="points")]
    across, up = ([p.x.value for p in points], [p.y.value for p in points])
    ends = (
        ([own[0]] * 2, [min(up), max(up)]) if own[0] is not None else ([min(across), max(across)], [own[1] or 0.0] * 2)
    )
    return [Series("confidential data", *ends)]


def point_text(point: MapPoint) -> str:
    """Return a run's values: ``run 3 Airbnb: 0.0181 (0.0093 .. 0.0269) across, 0.93 up, not dominated``."""
    parts = []
    for place, way in ((point.x, "across"), (point.y, "up")):
        band = interval_text(place.lower, place.upper)
        parts.append(f"{number(place.value)}" + (f" ({band})" if band else "") + f" {way}")
    return f"run {point.run_id} {point.title}: {', '.join([*parts, *_mark_words(point)])}"


def _mark_words(point: MapPoint) -> list[str]:
    """Return whether a run is dominated as a list of one word; empty if a measure has no better direction."""
    return [] if point.is_efficient is None else [EFFICIENT if point.is_efficient else OTHERS]


def map_rows(points: Sequence[MapPoint], x: MapAxis, y: MapAxis) -> ExportTable:
    """Return a row for each run with both measures and their intervals."""
    sides = [f"{name}{end}" for name in (axis_name(x), axis_name(y)) for end in ("", ", lower", ", upper")]
    rows = [
        (p.run_id, p.title, p.x.value, p.x.lower, p.x.upper, p.y.value, p.y.lower, p.y.upper, "".join(_mark_words(p)))
        for p in points
    ]
    return ("run", "title", *sides, "efficient"), rows


def map_figure(
    points: Sequence[MapPoint], x: MapAxis, y: MapAxis, limits: tuple[Sequence[Limit], Sequence[Limit]] = ((), ())
) -> Figure:
    """Return the runs and the thresholds as a figure for a file."""
    from sfumato.workspace.plots.figure import Figure, Panel

    across, up = (f"{axis_name(axis)}, {DIRECTION_TEXTS[axis.goal]}" for axis in (x, y))
    lines = (replace(one, marker="line") for one in map_limit_series(limits, points))
    return Figure("Risk-utility map", "map", (Panel("Runs", (*map_point_series(points), *lines), across, up),))
