"""One parameter of a fitted model: how its chains went, or its weighted draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Footer

from sfumato.tui.export import Exportable, Lines
from sfumato.tui.widgets.lines import Line
from sfumato.tui.widgets.plot import Plot
from sfumato.workspace.plots.axes import Limits
from sfumato.workspace.plots.series import Series
from sfumato.workspace.reporting.diagnostics import ALL, ParameterLine, known_text
from sfumato.workspace.reporting.words import number

from .page import Dialog, Exports

if TYPE_CHECKING:
    from sfumato.workspace.plots.figure import Figure
    from sfumato.workspace.store.artefacts import ModelTrace

KEYS = {"trace": "t", "ranks": "r", "density": "d", "autocorrelation": "a", "weights": "w"}
EVERYTHING = "every chain"
MOST_POINTS = 50


class Parameter(Dialog[None], Exports):
    """Opens on the trace of chains, or on the density of weighted draws. What it shows is as confidential as the data."""

    manual = "app diagnostics"

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"plot('{plot}')", plot.capitalize(), id=f"parameter.{plot}") for plot, key in KEYS.items()),
        Binding("c", "only(1)", "Chain", id="parameter.next_chain"),
        Binding("C", "only(-1)", "Chain before", show=False, id="parameter.previous_chain"),
        Binding("right_square_bracket", "parameter(1)", "Next", key_display="]", id="parameter.next"),
        Binding("left_square_bracket", "parameter(-1)", "Parameter before", show=False, id="parameter.previous"),
    ]
    AUTO_FOCUS = "Plot"

    def __init__(self, run_id: int, model: ModelTrace, lines: Mapping[str, ParameterLine], at: int) -> None:
        """``at`` is the place of the parameter in the model's trace; ``lines`` have the statistics by parameter."""
        super().__init__()
        from sfumato.workspace.plots.traces import plots_of

        self._run_id, self._model, self._lines, self._at = run_id, model, lines, at
        self._names: Sequence[str] = getattr(model.trace, "parameters", ())
        self._plots = plots_of(model.trace)
        self._shown = self._plots[0]
        self._only: int | None = None

    def compose(self) -> ComposeResult:
        """What is drawn, the drawing, what the cursor reads, and the keys."""
        with Vertical(classes="whole"):
            yield Line(name="parameter-head")
            yield Plot()
            yield Line(name="parameter-reading")
            yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Draw."""
        self._draw()

    @property
    def _parts(self) -> Sequence[str]:
        from sfumato.workspace.plots.traces import parts_of

        return parts_of(self._model.trace, self._shown)

    def _figure(self) -> Figure:
        from sfumato.workspace.plots.traces import trace_figure

        assert self._model.trace is not None
        name = f"{self._model.target} {self._names[self._at]}"
        return trace_figure(self._model.trace, self._shown, self._at, name, self._only)

    def _draw(self, *, keep_view: bool = False) -> None:
        figure = self._figure()
        panel, parts = figure.panels[0], self._parts
        plot = self.query_one(Plot)
        series = figure_series(figure, plot.x_range if keep_view else None, bands=self._only is not None)
        plot.set_series(series, x_label=panel.x_label, y_label=panel.y_label, keep_view=keep_view)
        words = [figure.title, f"{self._at + 1} of {len(self._names)}"]
        if parts:
            words.append(EVERYTHING if self._only is None else f"only {parts[self._only]}")
        self.query_one("#parameter-head", Line).say(" · ".join(words))
        self._say()

    def _say(self) -> None:
        """What is known of the parameter, or of its whole model."""
        own, whole = self._lines.get(self._names[self._at]), self._lines.get(ALL)
        self.query_one("#parameter-reading", Line).say(known_text(own, whole))

    @on(Plot.Viewed)
    def _see_more(self) -> None:
        """Draw what is left out of long chains once the view is close enough."""
        self._draw(keep_view=True)

    @on(Plot.CursorMoved)
    def _moved(self, event: Plot.CursorMoved) -> None:
        if event.x is None:
            self._say()
            return
        read = [f"{one.name} {number(one.value)}" for one in event.readings if one.value is not None]
        self.query_one("#parameter-reading", Line).say("   ".join([number(event.x), *read]))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what there is of this model is offered."""
        if action == "plot":
            return parameters[0] in self._plots
        return bool(self._parts) if action == "only" else super().check_action(action, parameters)

    def action_plot(self, plot: str) -> None:
        """Show another plot of the parameter."""
        self._shown, self._only = plot, None
        self._draw()
        self.refresh_bindings()

    def action_only(self, step: int) -> None:
        """Show the next chain, or group of chains, alone; after the last one all together."""
        parts = len(self._parts)
        at = (-1 if self._only is None else self._only) + 1 + step
        self._only = None if at % (parts + 1) == 0 else at % (parts + 1) - 1
        self._draw()

    def action_parameter(self, step: int) -> None:
        """Show the next parameter."""
        self._at = (self._at + step) % len(self._names)
        self._draw()

    def exportable(self) -> Exportable:
        """The plot, and its numbers."""
        figure = self._figure()
        name = "".join(c if c.isalnum() else "-" for c in self._names[self._at]).strip("-")
        file = f"run-{self._run_id}-{self._model.target}-{name}-{self._shown}-confidential"
        return Exportable(file, partial(figure_lines, figure), lambda: figure)


def figure_series(figure: Figure, seen: Limits | None = None, *, bands: bool = False) -> list[Series]:
    """The series of a figure's first panel as the terminal draws them.

    ``bands`` are drawn as lines, so that they cover nothing. Of a long chain every k-th step is drawn, so that about
    ``MOST_POINTS`` are in view: chains that go up and down at every dot would fill the plot, and take long to send.
    """
    found = [(one, _drawn(one.x, seen) if figure.kind == "sweep" else slice(None)) for one in figure.panels[0].series]
    bounds = [
        Series(one.name, one.x[at], bound[at], marker=figure.marker, thin=True)
        for one, at in found
        for bound in (one.lower, one.upper)
        if bands and bound is not None
    ]
    return [*(Series(one.name, one.x[at], one.y[at], marker=figure.marker) for one, at in found), *bounds]


def _drawn(x: NDArray[np.float64], seen: Limits | None) -> NDArray[np.intp]:
    """Which points of a line to draw: evenly spaced over all, closer together in what is ``seen``, and the last."""
    inside = np.flatnonzero((x >= seen[0]) & (x <= seen[1])) if seen else np.empty(0, dtype=np.intp)
    steps = [part[:: max(1, part.size // MOST_POINTS)] for part in (np.arange(x.size), inside)]
    return np.unique(np.concatenate([*steps, [x.size - 1]])).astype(np.intp)


def figure_lines(figure: Figure) -> Lines:
    """A line for every point of a figure's first panel."""
    panel = figure.panels[0]
    heads = ["series", panel.x_label or "x", panel.y_label or "y", "lower", "upper"]
    return heads, (row for one in panel.series for row in _points(one))


def _points(one: Series) -> Iterator[Sequence[object]]:
    ends = [[None] * one.x.size if bound is None else bound.tolist() for bound in (one.lower, one.upper)]
    for x, y, low, high in zip(one.x.tolist(), one.y.tolist(), *ends, strict=True):
        yield one.name, x, y, low, high
