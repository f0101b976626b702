"""Tab with the convergence of every parameter of a run's models and with all statistics, and a dialog about one
parameter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import ContentSwitcher, Static

from sfumato.engine.methods.results import Diagnostic
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.keys.own_keys import current_key
from sfumato.workspace.plots.axes import Limits
from sfumato.workspace.plots.series import Series
from sfumato.workspace.reporting.diagnostics import (
    ALL_PARAMETERS,
    COLUMN_MEANINGS,
    EARLIER_VERSION,
    NO_CHECK,
    PARAMETER_COLUMNS,
    QUESTION,
    RUN_AGAIN,
    STATISTIC_COLUMNS,
    ConvergenceLine,
    ParameterConvergence,
    SparklineValues,
    convergence_by_parameter,
    convergence_cells,
    convergence_lines,
    convergence_summary,
    fit_answer,
    fit_facts,
    fit_meaning,
    fold_passed_parameters,
    missing_check_text,
    one_leaf_targets,
    parameter_or_model_text,
    statistic_cells,
    statistics_summary,
)
from sfumato.workspace.reporting.tables import fit_columns, grid_value
from sfumato.workspace.reporting.words import number, sign_for
from sfumato.workspace.views.results import read_diagnostics

from ..parts.page import Dialog, OffersExport, RunPane
from ..session.export import ExportTable, ScreenExport, table_of_records
from ..widgets.facts import wrap_text
from ..widgets.grid import HEADER, Grid, LiveGrid
from ..widgets.lines import KeyLine, Line
from ..widgets.panel import FrameEdge, FrameSides
from ..widgets.plot import Plot
from ..widgets.sparkline import trend_line
from ..widgets.tables import Columns, GridTable, TableColumn, table_columns
from .drawn_values import DrawnValues, drawn_value_lines, read_drawn_values
from .fits import model_lines

if TYPE_CHECKING:
    from sfumato.workspace.plots.figure import Figure
    from sfumato.workspace.store.artefacts import ModelTrace
    from sfumato.workspace.store.workspace import Workspace


PLOTS = ("trace", "ranks", "density", "autocorrelation", "weights")
EVERYTHING = "every chain"
MOST_POINTS = 50
EMPTY = "No model has been fitted in this run yet."
NONE_BROKEN = "No statistic breaks its rule. Press f to see all."
NO_SAMPLER = "No model has a sampler. Statistics (?) shows what is known of the fits."
NONE_FLAGGED = "No parameter is outside a limit. Press f to see all."
HINT = "left and right move the cursor"
TRACE = (6, 18)
"""Cells of the line that a parameter's trace is drawn in, on a narrow terminal and on a wide one."""
FROM_ZERO = {"effective_sample_size", "acceptance", "autocorrelation_time", "pareto_k"}
"""Statistics that are read from 0 up, and so drawn as bars; the others are points."""
BROKEN = "rule broken"
CHAIN_SHAPE, DENSITY_SHAPE = "trace", "density"
"""Titles of the column of pictures: a chain by step, or how the weighted draws are distributed."""


class ParameterDialog(Dialog[None], OffersExport):
    """Dialog about one parameter of a model, at first the trace of its chains or the density of its weighted draws.

    What it shows is as confidential as the data.
    """

    manual = "app diagnostics"

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("picture", "picture(1)", "Plot", show=True),
        bind_act("previous_picture", "picture(-1)", "Previous plot"),
        *(bind_act(plot, f"plot('{plot}')") for plot in PLOTS),
        bind_act("next_other", "only(1)", "Chain", show=True),
        bind_act("previous_other", "only(-1)", "Previous chain"),
        bind_act("next", "parameter(1)", "Parameter", show=True),
        bind_act("previous", "parameter(-1)", "Previous parameter"),
    ]
    AUTO_FOCUS = "Plot"

    def __init__(self, run_id: int, model: ModelTrace, lines: Mapping[str, ParameterConvergence], at: int) -> None:
        """Open on a parameter.

        at: place of the parameter in the model's trace
        lines: statistics by parameter
        """
        super().__init__()
        from sfumato.workspace.plots.traces import plot_names

        self._run_id, self._model, self._lines, self._at = run_id, model, lines, at
        # A run of an earlier version, or a model without a sampler, has no trace with parameters.
        self._names: Sequence[str] = getattr(model.trace, "parameters", ())
        self._plots = plot_names(model.trace)
        self._shown = self._plots[0]
        self._only: int | None = None

    def compose(self) -> ComposeResult:
        """Yield what is drawn, the plot, the text at the cursor, and the keys."""
        with Vertical(classes="whole"):
            yield FrameEdge(name="parameter-head")
            with FrameSides():
                yield Plot()
            yield FrameEdge(name="parameter-reading", lower=True)
            yield KeyLine()

    def on_mount(self) -> None:
        """Draw the first plot."""
        self._draw_plot()

    @property
    def _part_names(self) -> Sequence[str]:
        """Return the names of the chains, or groups of chains, that the shown plot can show alone."""
        from sfumato.workspace.plots.traces import plot_part_names

        return plot_part_names(self._model.trace, self._shown)

    def _make_figure(self) -> Figure:
        """Return the figure of the shown parameter and plot."""
        from sfumato.workspace.plots.traces import trace_figure

        assert self._model.trace is not None
        name = f"{self._model.target} {self._names[self._at]}"
        return trace_figure(self._model.trace, self._shown, self._at, name, self._only)

    def _draw_plot(self, *, keep_view: bool = False) -> None:
        """Draw the plot and its heading; ``keep_view`` keeps the range in view."""
        figure = self._make_figure()
        panel, parts = figure.panels[0], self._part_names
        plot = self.query_one(Plot)
        series = figure_series(figure, plot.x_range if keep_view else None, bands=self._only is not None)
        plot.set_series(series, x_label=panel.x_label, y_label=panel.y_label, keep_view=keep_view)
        words = [figure.title, f"{self._at + 1} of {len(self._names)}"]
        if parts:
            words.append(EVERYTHING if self._only is None else f"only {parts[self._only]}")
        self.query_one("#parameter-head", Line).set_text(" · ".join(words))
        self._show_statistics()

    def _show_statistics(self) -> None:
        """Show what is known of the parameter, or of its whole model."""
        own, whole = self._lines.get(self._names[self._at]), self._lines.get(ALL_PARAMETERS)
        self.query_one("#parameter-reading", Line).set_text(parameter_or_model_text(own, whole))

    @on(Plot.ViewChanged)
    def _draw_zoomed(self) -> None:
        """Draw the points that were left out of long chains once the view is close enough."""
        self._draw_plot(keep_view=True)

    @on(Plot.CursorMoved)
    def _show_readings(self, event: Plot.CursorMoved) -> None:
        """Show the values at the cursor of the plot."""
        if event.x is None:
            self._show_statistics()
            return
        read = [f"{one.name} {number(one.value)}" for one in event.readings if one.value is not None]
        self.query_one("#parameter-reading", Line).set_text("   ".join([number(event.x), *read]))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable only the plots and chains that the model has."""
        if action == "plot":
            return parameters[0] in self._plots
        return bool(self._part_names) if action == "only" else super().check_action(action, parameters)

    def action_picture(self, step: int) -> None:
        """Show the next plot of the parameter, or the previous one."""
        self.action_plot(self._plots[(self._plots.index(self._shown) + step) % len(self._plots)])

    def action_plot(self, plot: str) -> None:
        """Show another plot of the parameter."""
        self._shown, self._only = plot, None
        self._draw_plot()
        self.refresh_bindings()

    def action_only(self, step: int) -> None:
        """Show the next chain, or group of chains, alone; after the last one all together."""
        parts = len(self._part_names)
        # Place -1 is all chains together, the place before the first; the number of places is therefore one more than
        # of chains.
        at = (-1 if self._only is None else self._only) + 1 + step
        self._only = None if at % (parts + 1) == 0 else at % (parts + 1) - 1
        self._draw_plot()

    def action_parameter(self, step: int) -> None:
        """Show the next parameter of the model or the previous one."""
        self._at = (self._at + step) % len(self._names)
        self._draw_plot()

    def make_exportable(self) -> ScreenExport:
        """Return the values and the figure of the shown plot, marked as confidential."""
        figure = self._make_figure()
        name = "".join(c if c.isalnum() else "-" for c in self._names[self._at]).strip("-")
        file = f"run-{self._run_id}-{self._model.target}-{name}-{self._shown}-confidential"
        return ScreenExport(file, partial(figure_lines, figure), lambda: figure)


def figure_series(figure: Figure, seen: Limits | None = None, *, bands: bool = False) -> list[Series]:
    """Return the series of a figure's first panel for the terminal.

    ``bands`` are drawn as lines. Of a long chain about ``MOST_POINTS`` steps are drawn in the range that is in view.
    """
    # A chain that goes up and down at every dot would fill the plot, and take long to send over a slow line.
    found = [
        (one, _points_to_draw(one.x, seen) if figure.kind == "sweep" else slice(None))
        for one in figure.panels[0].series
    ]
    # A filled band would cover the other series.
    bounds = [
        Series(one.name, one.x[at], bound[at], marker=figure.marker, thin=True)
        for one, at in found
        for bound in (one.lower, one.upper)
        if bands and bound is not None
    ]
    return [*(Series(one.name, one.x[at], one.y[at], marker=figure.marker) for one, at in found), *bounds]


def _points_to_draw(x: NDArray[np.float64], seen: Limits | None) -> NDArray[np.intp]:
    """Return the indices of points to draw: evenly spaced over all, closer together in ``seen``, and the last."""
    inside = np.flatnonzero((x >= seen[0]) & (x <= seen[1])) if seen else np.empty(0, dtype=np.intp)
    steps = [part[:: max(1, part.size // MOST_POINTS)] for part in (np.arange(x.size), inside)]
    # The last step always belongs to the points, so that the end of the chain is where the axis ends.
    return np.unique(np.concatenate([*steps, [x.size - 1]])).astype(np.intp)


def figure_lines(figure: Figure) -> ExportTable:
    """Return a row for each point of a figure's first panel."""
    panel = figure.panels[0]
    heads = ["series", panel.x_label or "x", panel.y_label or "y", "lower", "upper"]
    return heads, (row for one in panel.series for row in _series_points(one))


def _series_points(one: Series) -> Iterator[Sequence[object]]:
    """Yield the series' name, x, y and the ends of the interval for each point."""
    ends = [[None] * one.x.size if bound is None else bound.tolist() for bound in (one.lower, one.upper)]
    for x, y, low, high in zip(one.x.tolist(), one.y.tolist(), *ends, strict=True):
        yield one.name, x, y, low, high


@dataclass(frozen=True)
class TracedModels:
    """Models of a run with their traces.

    models: models by their variable
    shapes: values of each parameter's trace for the line in the table
    shape_title: what these are
    """

    models: Mapping[str, ModelTrace] = field(default_factory=dict)
    shapes: SparklineValues = field(default_factory=dict)
    shape_title: str = CHAIN_SHAPE

    @property
    def missing_reasons(self) -> Mapping[str, str]:
        """Return why a trace is missing, for the models without one."""
        found = {target: _missing_reason(model) for target, model in self.models.items()}
        return {target: why for target, why in found.items() if why}

    def parameter_names(self, target: str) -> tuple[str, ...]:
        """Return the parameters of a model's trace; none if it has no trace."""
        model = self.models.get(target)
        found: tuple[str, ...] = getattr(model and model.trace, "parameters", ())
        return found


def _missing_reason(model: ModelTrace) -> str:
    """Return why a model has no trace; empty if it has one."""
    return EARLIER_VERSION if model.trace is None else getattr(model.trace, "reason", "")


def read_traces(workspace: Workspace, run_id: int) -> TracedModels:
    """Read the traces of a run. Raises NotFound and DamagedTable."""
    from sfumato.engine.methods.results import ChainTrace, ImportanceTrace
    from sfumato.workspace.plots.traces import sparkline_values
    from sfumato.workspace.store.artefacts import read_traces

    models = {model.target: model for model in read_traces(workspace, run_id)}
    shapes = {
        # The last trace is of the log posterior, which stands for all parameters of the model.
        (target, ALL_PARAMETERS if name == model.trace.parameters[-1] else name): sparkline_values(model.trace, j)
        for target, model in models.items()
        if isinstance(model.trace, ChainTrace | ImportanceTrace)
        for j, name in enumerate(model.trace.parameters)
    }
    has_chains = any(isinstance(model.trace, ChainTrace) for model in models.values())
    return TracedModels(models, shapes, CHAIN_SHAPE if has_chains or not shapes else DENSITY_SHAPE)


PARAMETER_OR_FIT = "parameter, or fit"
"""Title of the column of parameters where models without a sampler have what is known of their fits in it."""
MOST_NAME = 30
"""Most cells that are kept for the name of a parameter."""
SOME, FAILED, ALL = "some", "failed", "all"
"""What is shown: all but folded parameters, only what breaks a limit or a rule, or everything."""
STATISTICS = ("r_hat", "bulk", "tail", "sampler")
"""Columns of statistics, which only some samplers have."""
READING = 1
"""Lines of the text at the cursor."""
LEAST_FITS = 4
"""Lines from which the model at the cursor is described below the table."""
PARAMETERS, TABLE, PLOT = "diagnostics-parameters", "diagnostics-table", "diagnostics-plot"


def _add_shape_column(
    title: str, drop_order: int, columns: Columns[ConvergenceLine], width: int
) -> Columns[ConvergenceLine]:
    """Insert the column of traces or densities before the last column, and fit all into the width."""
    room = max(TRACE[width >= 99], len(title))
    shape = TableColumn[ConvergenceLine](
        "shape", title, room, drop_order=drop_order, cell=lambda line: trend_line(line.sparkline, room)
    )
    return fit_columns((*columns[:-1], shape, columns[-1]), width)


def _widen_name_columns(columns: Columns[Diagnostic], width: int) -> Columns[Diagnostic]:
    """Widen the columns of variable and parameter in a wide terminal, and fit all into the width."""
    more = 8 if width >= 100 else 0
    wide = [replace(one, width=one.width + more) if one.name in ("target", "name") else one for one in columns]
    return fit_columns(wide, width)


def _shown_cells(line: ConvergenceLine) -> Mapping[str, object]:
    """Return the cells of a line; that a model has nothing to check is dim."""
    cells: dict[str, object] = dict(convergence_cells(line))
    if cells.get("verdict") == NO_CHECK:
        cells["verdict"] = f"– {NO_CHECK}"
    return cells


def parameter_table(lines: Sequence[ConvergenceLine], shape: str) -> GridTable[ConvergenceLine]:
    """Return the table of parameters without the statistics that none of the ``lines`` has; ``shape`` is what is drawn."""
    cells = [convergence_cells(line) for line in lines]
    longest = max((cell_len(line.convergence.parameter) for line in lines), default=0)
    fit = max((cell_len(line.fit_text) for line in lines), default=0)
    of_parameters = [
        row for row, line in zip(cells, lines, strict=True) if line.convergence.parameter != ALL_PARAMETERS
    ]
    columns = []
    for one in PARAMETER_COLUMNS:
        if one.name == "parameter":
            title = PARAMETER_OR_FIT if fit else one.title
            columns.append(replace(one, title=title, width=max(one.width, min(MOST_NAME, longest), fit)))
        elif one.name not in STATISTICS or any(row[one.name] for row in of_parameters):
            columns.append(one)
        elif any(row[one.name] for row in cells):
            # What only whole models have stands below the table too, so that it yields to names.
            columns.append(replace(one, drop_order=one.drop_order or 2))
    return GridTable(
        table_columns(columns),
        lambda line: line.parameter_key,
        _shown_cells,
        # What is known of a fit is said nowhere else, unlike the shape of the draws.
        column_fitter=partial(_add_shape_column, shape, 3 if fit else 0),
    )


def unsampled_table(lines: Sequence[ConvergenceLine]) -> GridTable[ConvergenceLine]:
    """Return the table that is shown if no model of a run has a sampler, with what is to be minded if there is anything.

    What is known of the fits stands in it, or else why they are not checked.
    """
    known, why = "what is known of the fit", "why it is not checked"
    told = [bool(line.fit_text) for line in lines]
    title = known if all(told) else f"{known}, or {why}" if any(told) else why
    columns = [
        TableColumn[ConvergenceLine]("target", "model of", 12, cell=lambda line: line.convergence.target),
        TableColumn[ConvergenceLine](
            "why", title, 40, grow_order=1, cell=lambda line: line.fit_text or line.missing_reason
        ),
    ]
    if any(line.concern for line in lines):
        columns.append(TableColumn("concern", "verdict", 13, cell=lambda line: line.concern or ""))
    return GridTable(columns, lambda line: line.parameter_key)


STATISTIC_TABLE: GridTable[Diagnostic] = GridTable(
    table_columns(STATISTIC_COLUMNS), values=statistic_cells, column_fitter=_widen_name_columns
)


class ParameterGrid(LiveGrid):
    """Table of parameters, one of which can be opened. A check that passes is not green: the gate's answer alone is."""

    DEFAULT_CSS = "ParameterGrid > .grid--good { color: $foreground; }"
    BINDINGS: ClassVar[list[BindingType]] = [bind_act("open", "select", "Draws", show=True)]


class DiagnosticsPane(RunPane):
    """Tab with the parameters of one run's models, all or those outside a limit; or every statistic, in a table or
    drawn.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("statistics", "statistics", "Statistics", show=True),
        bind_act("table", "plot", "Plot", show=True),
        bind_act("picture", "statistic(1)", "Statistic", show=True),
        bind_act("previous_picture", "statistic(-1)", "Previous statistic"),
        bind_act("only", "failed", "Failed only", show=True),
    ]

    DEFAULT_CSS = """
    DiagnosticsPane #diagnostics-fits { height: 1fr; padding: 0 1; display: none; }
    DiagnosticsPane #diagnostics-head { height: auto; max-height: 3; padding: 0 1; }
    DiagnosticsPane #diagnostics-matters { height: auto; max-height: 3; padding: 0 1; display: none; }
    """

    def __init__(self) -> None:
        """Create the tab, without a run."""
        super().__init__(id="diagnostics")
        self._lines: Sequence[Diagnostic] = ()
        self._parameters: Sequence[ConvergenceLine] = ()
        self._table: GridTable[ConvergenceLine] | None = None
        self._traced = TracedModels()
        self._traced_run: int | None = None
        self._shown = SOME
        self._folds = False
        self._answer, self._summary = ("", "", ""), ""
        self._statistic = ""
        self._drawn: dict[str, DrawnValues] = {}

    def compose(self) -> ComposeResult:
        """Yield a line of summary, the parameters or all statistics, and the text at the cursor."""
        yield Static("", id="diagnostics-head", markup=False)
        yield Static("", id="diagnostics-matters", markup=False)
        with ContentSwitcher(initial=PARAMETERS):
            yield ParameterGrid(empty="…", id=PARAMETERS)
            yield LiveGrid(empty="…", id=TABLE)
            yield Plot(id=PLOT)
        with Vertical(id="diagnostics-fits"):
            yield Static("", markup=False)
        yield Line(name="diagnostics-reading")

    def load_run(self) -> None:
        """Read the statistics, and then the traces, which take longer."""
        if self.line is None:
            return
        run_id = self.line.run.id
        # Traces of the previous run must not be drawn beside statistics of this one.
        if run_id != self._traced_run:
            self._traced, self._drawn = TracedModels(), {}
        # The statistics come first: a trace is long, and the tab would be empty while it is read.
        self.read(lambda workspace: read_diagnostics(workspace, run_id), partial(self._show_statistics, run_id))
        self.compute(lambda workspace: read_traces(workspace, run_id), partial(self._take_traces, run_id))

    def _show_statistics(self, run_id: int, lines: Sequence[Diagnostic]) -> None:
        """Show the statistics with failed ones first, unless another run is shown by now."""
        if self.line is not None and run_id == self.line.run.id:
            # Broken rules come first; a statistic without a rule counts as not broken.
            self._lines = sorted(lines, key=lambda line: line.passed is not False)
            self._show_views()

    def _take_traces(self, run_id: int, traced: TracedModels) -> None:
        """Show the traces, unless another run is shown by now."""
        if self.line is not None and run_id == self.line.run.id:
            self._traced, self._traced_run = traced, run_id
            self._show_parameters()

    @property
    def shown_view(self) -> str:
        """Return which of the parameters, the table and the plot is shown."""
        return str(self.query_one(ContentSwitcher).current)

    def _show_views(self) -> None:
        """Fill the tables and the plot."""
        self._show_parameters()
        grid = self.query_one(f"#{TABLE}", LiveGrid)
        grid.set_empty_text(NONE_BROKEN if self._is_failed and self._lines else EMPTY)
        grid.show_table(STATISTIC_TABLE, self.shown_statistics)
        self._draw_statistic()

    def _show_parameters(self) -> None:
        """Fill the table of parameters, with or without their traces."""
        found = convergence_lines(self._lines, self._traced.missing_reasons, self._traced.shapes)
        folded = fold_passed_parameters(found)
        self._answer = fit_answer(found, self._lines, self._traced.missing_reasons)
        self._summary = convergence_summary(found, self._traced.missing_reasons)
        self._folds = len(folded) < len(found)
        shown = {SOME: folded, FAILED: [line for line in found if line.has_failed], ALL: found}
        grid = self.query_one(ParameterGrid)
        # Trees are read after the statistics: the cursor stays on the first line, whichever that is by then.
        stays_first = not self._parameters or grid.row_key == self._parameters[0].parameter_key
        self._parameters = lines = shown[self._shown]
        grid.set_empty_text((NONE_FLAGGED if self._is_failed else NO_SAMPLER) if self._lines else EMPTY)
        sampled = any(line.convergence.parameter for line in lines)
        table = parameter_table(lines, self._traced.shape_title) if sampled or not lines else unsampled_table(lines)
        self._table = table
        grid.show_table(table, lines, lines[0].parameter_key if lines and stays_first else None)
        self._show_summary()
        self._show_reading()

    def _show_summary(self) -> None:
        """Show whether the models fit and what to do, or the summary of the statistics."""
        head, todo = self.query_one("#diagnostics-head", Static), self.query_one("#diagnostics-matters", Static)
        todo.display = self.shown_view == PARAMETERS and bool(self._lines) and bool(self._answer[1])
        if not todo.display:
            said = statistics_summary(self._lines)
            head.update(" · ".join(part for part in (said, "failed only" if self._is_failed else "") if part))
            return
        state, answer, do = self._answer
        sign = f"{sign_for(state)} " if state else ""
        ink = {"fail": "$error bold", "warn": "$warning bold"}.get(state, "$foreground bold")
        # The answer has the ink of its state, and not the reasons after it.
        brief, stop, why = answer.partition(". ")
        asked = Content.assemble(
            (f"{QUESTION} ", "$text-muted"), (f"{sign}{brief}{stop.strip()}", ink), (f"{stop[1:]}{why}", "$foreground")
        )
        only = "outside a limit only · " if self._is_failed else ""
        is_of_steps = state in ("fail", "warn") and do != RUN_AGAIN
        place = f" Set in Plan ({current_key(self.app, 'plan')})." if is_of_steps else ""
        advice = Content.assemble((f"{only}What to do: ", "$text-muted"), (f"{do}{place}", "$foreground"))
        key = current_key(self.app, "only")
        more = f" · {key} twice shows every parameter" if self._folds and self._shown == SOME else ""
        head.update(self._with_more(asked, f"  {self._summary}" if self._summary else ""))
        todo.update(self._with_more(advice, more))

    def _with_more(self, text: Content, more: str) -> Content:
        """Return a text with what is said after it, if that takes no line more."""
        width = max(1, self.size.width - 2)
        longer = Content.assemble(text, (more, "$text-muted"))
        fits = len(wrap_text(longer.plain, width)) == len(wrap_text(text.plain, width))
        return longer if fits else text

    @property
    def _is_failed(self) -> bool:
        """Return whether only what breaks a limit or a rule is shown."""
        return self._shown == FAILED

    def in_footer(self, action: str) -> bool:
        """Return whether the footer shows an action: draws only where a model has some."""
        return action != "select" or any(line.convergence.parameter for line in self._parameters)

    def on_resize(self) -> None:
        """Tell as much as there is room for now."""
        self._show_summary()
        self._show_fits()

    def _show_fits(self) -> None:
        """Show the model at the cursor below the table, where there is room."""
        told, switcher = self.query_one("#diagnostics-fits"), self.query_one(ContentSwitcher)
        # The table of samplers may be wider than a narrow place, and has a bar that scrolls then.
        is_wide = any(line.convergence.parameter for line in self._parameters)
        rows = len(self._parameters) + HEADER + is_wide
        width = max(20, self.size.width - 2)
        meanings = self._column_meanings(width)
        heads = (self.query_one(f"#{name}", Static) for name in ("diagnostics-head", "diagnostics-matters"))
        above = sum(len(wrap_text(str(one.content), width)) for one in heads)
        room = self.size.height - above - READING - rows - (not is_wide)
        line = self._current_line
        told.display = line is not None and not self._is_failed and self.shown_view == PARAMETERS and room >= LEAST_FITS
        switcher.styles.height = rows if told.display else "1fr"
        if told.display and line is not None:
            text = self._model_text(line, width, room - len(meanings))
            told.query_one(Static).update(Content("\n").join([*([] if is_wide else [Content("")]), *meanings, *text]))

    def _column_meanings(self, width: int) -> list[Content]:
        """Return what the columns in view have that their titles do not say, with a blank line below it."""
        columns = self._table.columns_in(self._parameters, width + 2) if self._table is not None else ()
        names = [one.title if one.name == "shape" else one.name for one in columns]
        said = " · ".join(COLUMN_MEANINGS[one] for one in names if one in COLUMN_MEANINGS)
        lines = [Content.styled(line, "$text-muted") for line in wrap_text(said, width)] if said else []
        return [*lines, Content("")] if lines else []

    def _model_text(self, line: ConvergenceLine, width: int, room: int) -> list[Content]:
        """Return what is known of the model of a line, and below it the values that were drawn from it."""
        target = line.convergence.target
        predictors = ", ".join(self._predictors_of(target))
        if predictors and target in one_leaf_targets(self._lines):
            predictors += "; the tree splits on none of them"
        facts = [
            ("fit", "" if line.fit_text else dict(fit_facts(self._lines_of(target))).get(target, "")),
            ("what it means", fit_meaning(self._lines, target)),
            ("predictors", predictors),
        ]
        more = f"and more: Statistics, by {current_key(self.app, 'statistics')}"
        known = [fact for fact in facts if fact[1]]
        text = model_lines(self._lines, target, known, self._traced.shapes, width, room, more)
        if target not in self._drawn:
            self._read_drawn(target)
        values = self._drawn.get(target)
        drawn = drawn_value_lines(values, width, room - len(text) - 1) if values else []
        return [*text, *([Content("")] if text and drawn else []), *drawn]

    def _lines_of(self, target: str) -> list[Diagnostic]:
        """Return the statistics of the model of a variable."""
        return [line for line in self._lines if line.target == target]

    def _predictors_of(self, target: str) -> Sequence[str]:
        """Return the variables that a variable is drawn from; none where its step names none."""
        steps = () if self.line is None else self.line.run.recipe.synthesis
        specs = [step.spec for step in steps if step.target == target]
        return getattr(specs[0], "predictors", None) or () if specs else ()

    def _read_drawn(self, target: str) -> None:
        """Read the values of a variable in the data and in the release."""
        if self.line is not None and self._traced_run == self.line.run.id:
            run = self.line.run
            self._drawn[target], predictors = {}, self._predictors_of(target)
            self.compute(
                lambda workspace: read_drawn_values(workspace, run, target, predictors),
                partial(self._take_drawn, run.id, target),
            )

    def _take_drawn(self, run_id: int, target: str, values: DrawnValues) -> None:
        """Show the values of a variable, unless another run is shown by now."""
        if self.line is not None and run_id == self.line.run.id:
            self._drawn[target] = values
            self._show_fits()

    @property
    def shown_statistics(self) -> Sequence[Diagnostic]:
        """Return all statistics, or those that break their rule."""
        return [line for line in self._lines if line.passed is False] if self._is_failed else self._lines

    @property
    def drawn_statistic(self) -> Sequence[Diagnostic]:
        """Return the values of the statistic that is drawn, one a parameter."""
        found = group_by_statistic(self.shown_statistics)
        return found.get(self._statistic) or next(iter(found.values()), ())

    def _draw_statistic(self) -> None:
        """Draw the values of one statistic."""
        lines, plot = self.drawn_statistic, self.query_one(Plot)
        names = [statistic_text(line) for line in lines]
        plot.set_series(
            statistic_series(lines), y_label=lines[0].name if lines else "", x_label="parameter", x_names=names
        )
        self._show_reading()

    @on(Grid.SourceOpened, f"#{PARAMETERS}")
    def _update_keys(self) -> None:
        """Update the keys, since rows to open have appeared or gone."""
        self.refresh_bindings()

    @on(Plot.CursorMoved)
    @on(Grid.RowHighlighted)
    def _show_reading(self) -> None:
        """Show the text about the parameter at the cursor."""
        texts = {PARAMETERS: self._parameter_text, PLOT: self._statistic_text}
        self.query_one("#diagnostics-reading", Line).set_text(
            texts[self.shown_view]() if self.shown_view in texts else ""
        )
        if self.shown_view == PARAMETERS:
            self._show_fits()

    def _parameter_text(self) -> str:
        """Return the text about the parameter under the cursor, and say in the footer what enter does there."""
        line = self._current_line
        if line is not None:
            has_draws = bool(self._traced.parameter_names(line.convergence.target))
            self.query_one(ParameterGrid).set_open_word("Draws" if has_draws else "Why no draws")
        if line is None:
            return ""
        target = line.convergence.target
        if line.missing_reason:
            return missing_check_text(line)
        parameter = line.convergence.parameter
        named = target if parameter == ALL_PARAMETERS else f"{target} {parameter}"
        concern = "" if line.concern is None else f"{grid_value(line.concern)} · "
        return f"{named} · {concern}{parameter_or_model_text(line.convergence, self._lines_of_model(target).get(ALL_PARAMETERS))}"

    @property
    def _current_line(self) -> ConvergenceLine | None:
        """Return the row of the parameter under the cursor; None if the table is empty."""
        found: ConvergenceLine | None = self.query_one(ParameterGrid).current_row
        return found

    def _statistic_text(self) -> str:
        """Return the text about the statistic's value under the cursor of the plot."""
        x = self.query_one(Plot).cursor_x
        if x is None or not 0 <= round(x) < len(self.drawn_statistic):
            return HINT
        line = self.drawn_statistic[round(x)]
        parts = [
            statistic_text(line),
            f"{line.name} {number(line.value)}",
            line.rule,
            str(grid_value(statistic_cells(line)["passed"])),
        ]
        return " · ".join(part for part in parts if part)

    @on(Grid.RowSelected, f"#{PARAMETERS}")
    async def _open_parameter(self) -> None:
        """Show the chains, or the weighted draws, of the parameter under the cursor."""
        line = self._current_line
        if line is None or self.line is None:
            return
        target = line.convergence.target
        names = self._traced.parameter_names(target)
        if not names:
            read = self._traced_run == self.line.run.id
            self.sfumato.say(
                missing_check_text(line)
                if line.missing_reason
                else EARLIER_VERSION
                if read
                else "The traces are still being read"
            )
            return
        # A row about the whole model opens the last trace.
        at = names.index(line.convergence.parameter) if line.convergence.parameter in names else len(names) - 1
        await self.sfumato.open(
            ParameterDialog(self.line.run.id, self._traced.models[target], self._lines_of_model(target), at)
        )

    def _lines_of_model(self, target: str) -> Mapping[str, ParameterConvergence]:
        """Return the statistics of a model by parameter."""
        return {line.parameter: line for line in convergence_by_parameter(self._lines) if line.target == target}

    def action_statistics(self) -> None:
        """Switch between the parameters and all statistics."""
        self._switch_view(TABLE if self.shown_view == PARAMETERS else PARAMETERS)

    def action_plot(self) -> None:
        """Switch between a plot of one statistic and the table of all."""
        self._switch_view(TABLE if self.shown_view == PLOT else PLOT)

    def _switch_view(self, view: str) -> None:
        """Show the parameters, the table or the plot, and focus it."""
        self.query_one(ContentSwitcher).current = view
        self._show_summary()
        self._show_fits()
        self._show_reading()
        self.take_focus()
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable another statistic if one is drawn."""
        if action == "statistic":
            return self.is_mounted and self.shown_view == PLOT
        return super().check_action(action, parameters)

    def action_statistic(self, step: int) -> None:
        """Draw the next statistic or the previous one."""
        # The filter may have removed the drawn statistic; the first remaining one is drawn then.
        names = list(group_by_statistic(self.shown_statistics))
        if names:
            at = names.index(self.drawn_statistic[0].name)
            self._statistic = names[(at + step) % len(names)]
            self._draw_statistic()

    def action_failed(self) -> None:
        """Show what failed, then all, then all but folded parameters."""
        after = {SOME: FAILED, FAILED: ALL if self._folds else SOME, ALL: SOME}
        self._shown = after[self._shown]
        self._show_views()

    def make_exportable(self) -> ScreenExport | None:
        """Return the shown parameters, or the statistics with all digits, and the plot if it is shown."""
        found = [line.convergence for line in self._parameters if not line.missing_reason]
        if self.shown_view == PARAMETERS and found:
            return ScreenExport(
                self.export_file_name("convergence"), lambda: table_of_records(ParameterConvergence, found)
            )
        lines, drawn = self.shown_statistics, self.drawn_statistic
        if not lines:
            return None
        figure = partial(statistic_figure, drawn) if self.shown_view == PLOT else None
        return ScreenExport(
            self.export_file_name("diagnostics"), lambda: table_of_records(Diagnostic, lines, "target"), figure
        )

    def take_focus(self) -> None:
        """Focus the shown view."""
        self.query_one(f"#{self.shown_view}").focus()


def group_by_statistic(lines: Sequence[Diagnostic]) -> Mapping[str, list[Diagnostic]]:
    """Group the rows by the name of their statistic, those that have a rule first."""
    found: dict[str, list[Diagnostic]] = {}
    # Sorting is stable, so statistics with and without a rule both keep their order.
    for line in sorted(lines, key=lambda line: not line.rule):
        found.setdefault(line.name, []).append(line)
    return found


def statistic_text(line: Diagnostic) -> str:
    """Return the model's variable and the parameter: ``income sigma``."""
    return f"{line.target} {line.parameter}"


def rule_limit(rule: str) -> float | None:
    """Return the number in a rule such as ``at most 1.01``; None without a number."""
    # Rules are texts of methods, such as "at most 1,000": the comma groups thousands.
    found = re.search(r"-?\d[\d.]*(?:e[+-]?\d+)?", rule.replace(",", ""))
    return float(found.group()) if found else None


def statistic_series(lines: Sequence[Diagnostic]) -> list[Series]:
    """Return the values at x = 0, 1, 2, …, those that break their rule once more as marks, and a line at the limit."""
    if not lines:
        return []
    name, values = lines[0].name, [_value_or_nan(line) for line in lines]
    places = list(range(len(lines)))
    series = [Series(name, places, values, marker="bars" if name in FROM_ZERO else "points")]
    broken = [i for i in places if lines[i].passed is False]
    if broken:
        series.append(Series(BROKEN, broken, [values[i] for i in broken], marker="points"))
    rule = next((line.rule for line in lines if line.rule), "")
    limit = rule_limit(rule)
    if limit is not None:
        # With one value the line would have no length.
        ends = [0.0, len(lines) - 1.0] if len(lines) > 1 else [-0.5, 0.5]
        series.append(Series(rule, ends, [limit, limit], marker="line"))
    return series


def _value_or_nan(line: Diagnostic) -> float:
    """Return the value of a statistic, NaN if it is missing."""
    return math.nan if line.value is None else line.value


def statistic_figure(lines: Sequence[Diagnostic]) -> Figure:
    """Return the statistic as a figure for a file."""
    from sfumato.workspace.plots.figure import Figure, Panel

    name = lines[0].name
    rule = next((line.rule for line in lines if line.rule), "")
    broken = [statistic_text(line) for line in lines if line.passed is False]
    note = ", ".join(part for part in (rule, f"broken by {', '.join(broken)}" if broken else "") if part)
    series = (Series(name, range(len(lines)), [_value_or_nan(line) for line in lines]),)
    names = tuple(statistic_text(line) for line in lines)
    return Figure(f"Diagnostics: {name}", "intervals", (Panel(name, series, x_names=names, note=note),))
