"""Plot widget: series against x, a cursor that reads them all, and zoom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.widgets.canvas import CharacterPicture
from sfumato.tui.widgets.frame import AxisView, ChartStyle, nearest_stop, next_stop
from sfumato.workspace.plots.axes import AxisUnit, Limits
from sfumato.workspace.plots.series import Series, SeriesReading, point_positions, x_limits, y_limits

from ..terminal.glyphs import find_glyphs
from .chart import DrawnChart, add_cursor, draw_chart, series_colours, series_readings
from .frame import PlotLabels
from .inks import InkStyles, choose_palette, colour_system, has_sixteen_colours, tints_stand_out

WAITING = "…"
"""Text until there are series."""


class Plot(Widget, can_focus=True):
    """Widget that draws ``Series``; only the rows that change are sent to the terminal."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"plot--axis", "plot--strong", "plot--cursor"}
    DEFAULT_CSS = """
    Plot {
        height: 1fr;
        & > .plot--axis { color: $text-muted; }
        & > .plot--strong { text-style: bold; }
        & > .plot--cursor { text-style: bold reverse; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("left", "step(-1)", "Cursor left"),
        bind_act("right", "step(1)", "Cursor right"),
        bind_act("far_left", "step(-10)", "Cursor far left"),
        bind_act("far_right", "step(10)", "Cursor far right"),
        bind_act("first", "ends(0)", "First value"),
        bind_act("last", "ends(-1)", "Last value"),
        bind_act("zoom_in", "zoom(0.5)"),
        bind_act("zoom_out", "zoom(2)"),
        bind_act("zoom_in_up", "zoom_up(0.5)"),
        bind_act("zoom_out_up", "zoom_up(2)"),
        bind_act("up", "pan(1)", "Scroll up"),
        bind_act("down", "pan(-1)", "Scroll down"),
        bind_act("zoom_all", "reset"),
    ]

    has_dotted_bounds: ClassVar[bool] = False
    """Whether the ends of intervals are dotted lines; otherwise their area is shaded."""
    first_colour: ClassVar[int] = 0
    """Index in the palette of the first series' colour."""

    @dataclass
    class CursorMoved(Message):
        """Message that the cursor of ``plot`` came to ``x``, with the series' readings there; None if it was
        removed.
        """

        plot: Plot
        x: float | None
        readings: tuple[SeriesReading, ...]

        @property
        def control(self) -> Plot:
            """Return the plot, for ``@on`` with a selector."""
            return self.plot

    @dataclass
    class ViewChanged(Message):
        """Message that the user moved or zoomed: the ranges in view, that of y None if it follows the values."""

        plot: Plot
        x_range: Limits | None
        y_range: Limits | None

        @property
        def control(self) -> Plot:
            """Return the plot, for ``@on`` with a selector."""
            return self.plot

    def __init__(
        self,
        series: Sequence[Series] = (),
        *,
        glyphs: str | None = None,
        name: str | None = None,
        id: str | None = None,  # noqa: A002  (Textual's name)
        classes: str | None = None,
    ) -> None:
        """Create the widget.

        ``glyphs`` is braille, block or ascii, by default SFUMATO_GLYPHS. Raises ValueError for another.
        """
        super().__init__(name=name, id=id, classes=classes)
        self._glyphs = find_glyphs(glyphs)
        self._labels = PlotLabels()
        self._y_range: Limits | None = None
        self._y_seen: Limits | None = None
        self._view: AxisView | None = None
        self._cursor: float | None = None
        self._chart: DrawnChart | None = None
        self._picture: CharacterPicture | None = None
        self._inks: InkStyles | None = None
        self._series: tuple[Series, ...] = ()
        self.set_series(series, empty=WAITING)

    @property
    def cursor_x(self) -> float | None:
        """Return the x of the cursor; None without one."""
        return self._cursor

    @property
    def x_range(self) -> Limits | None:
        """Return the range of x in view; None if there is nothing to draw."""
        return self._view.visible if self._view else None

    def set_series(
        self,
        series: Sequence[Series],
        *,
        x_label: str = "",
        y_label: str = "",
        title: str = "",
        x_names: Sequence[str] = (),
        x_range: Limits | None = None,
        y_range: Limits | None = None,
        log_y: bool = False,
        x_unit: AxisUnit = "number",
        y_unit: AxisUnit = "number",
        keep_view: bool = False,
        empty: str = "",
        reads_in_legend: bool = True,
        name_of_zero: str = "",
    ) -> None:
        """Show other series; zoom and cursor are reset unless ``keep_view``.

        x_names: names of x = 0, 1, 2, …
        x_range: the whole range; by default what the series need
        y_range: fixed range of y; by default it follows what is in view
        log_y: whether y is logarithmic, without values that are not above 0
        x_unit, y_unit, empty, reads_in_legend, name_of_zero: as in ``PlotLabels``
        """
        if series_colours(series) != series_colours(self._series):
            self._inks = self._picture = None
        self._series, self._stops = tuple(series), point_positions(series)
        labels = PlotLabels(
            title, x_label, y_label, tuple(x_names), log_y, x_unit, y_unit, empty, reads_in_legend, name_of_zero
        )
        # A range of y chosen for another measure or scale means nothing here.
        if not keep_view or (y_label, log_y) != (self._labels.y_label, self._labels.log_y):
            self._y_seen = None
        self._labels, self._y_range = labels, y_range
        whole, seen = x_range or x_limits(series), self.x_range
        if not keep_view:
            self._cursor = seen = None
        self._view = None if whole is None else AxisView(whole, whole)
        if self._view and seen:
            self._view = self._view.start_at(seen[0], seen[1] - seen[0])
        self._redraw()

    @property
    def cursor_readings(self) -> tuple[SeriesReading, ...]:
        """Return the series' readings at the cursor; empty without one."""
        # Readings need the layout, which is not known before the first painting.
        if self._chart is None:
            self._compose_picture()
        frame = self._chart.frame if self._chart else None
        return () if frame is None or self._cursor is None else series_readings(frame, self._series, self._cursor)

    def set_cursor(self, x: float | None) -> None:
        """Put the cursor at ``x`` without a message."""
        self._cursor = x
        self._repaint_changes()

    def move_cursor(self, x: float | None) -> None:
        """Put the cursor at ``x`` and bring it into view; None removes it."""
        self._cursor = x
        if self._view and x is not None:
            self._set_x_view(self._view.bring_into_view(x))
        self._repaint_changes()
        self.post_message(self.CursorMoved(self, x, self.cursor_readings))

    def action_step(self, cells: int) -> None:
        """Move the cursor to the next value at least ``cells`` cells away; the first step puts it at the middle."""
        frame = self._chart.frame if self._chart else None
        if frame is None or self._view is None:
            return
        if self._cursor is None:
            self.move_cursor(nearest_stop(self._stops, sum(self._view.visible) / 2))
        else:
            self.move_cursor(next_stop(self._stops, frame, self._cursor, cells))

    def action_ends(self, end: int) -> None:
        """Move the cursor to the first value (0) or the last (-1)."""
        if self._stops.size:
            self.move_cursor(float(self._stops[end]))

    def action_zoom(self, factor: float) -> None:
        """Make the range in view ``factor`` times as wide; the cursor (or the middle) stays where it is."""
        if self._view:
            centre = sum(self._view.visible) / 2 if self._cursor is None else self._cursor
            self._set_x_view(self._view.zoom(factor, centre))
            self._repaint_changes()
            self._announce_view()

    def action_zoom_up(self, factor: float) -> None:
        """Make the range of y ``factor`` times as high about the first series' value at the cursor, or the middle."""
        view = self._y_view()
        if view is not None:
            said = None if self._cursor is None or not self._series else self._series[0].read_at(self._cursor).value
            at = math.nan if said is None else self._scale_y(said)
            centre = at if view.visible[0] <= at <= view.visible[1] else sum(view.visible) / 2
            self._set_y_view(view.zoom(factor, centre))

    def action_pan(self, step: int) -> None:
        """Move the range of y up or down by a quarter of its height."""
        view = self._y_view()
        if view is not None:
            self._set_y_view(view.shift(step / 4))

    def action_reset(self) -> None:
        """Show the whole range, without a cursor."""
        if self._view:
            self._set_x_view(AxisView(self._view.whole, self._view.whole))
            self._y_seen = self._chart = None
            self.move_cursor(None)
            self._announce_view()

    def show_ranges(self, x_range: Limits | None, y_range: Limits | None) -> None:
        """Show these ranges without a message; the range of y follows the values if it is None."""
        if self._view and x_range:
            self._view = self._view.start_at(x_range[0], x_range[1] - x_range[0])
        self._y_seen = y_range
        self._redraw()

    def _scale_y(self, y: float) -> float:
        """Return y on the scale of the axis, its decimal logarithm if that is logarithmic; NaN if it has none."""
        return y if not self._labels.log_y else math.log10(y) if y > 0 else math.nan

    def _y_view(self) -> AxisView | None:
        """Return the range of y in view, in decades on a logarithmic axis; the whole is what the values need."""
        frame, x = self._chart.frame if self._chart else None, self.x_range
        if frame is None or x is None:
            return None
        whole = (
            self._y_range
            or y_limits(self._series, x, log=self._labels.log_y)
            or (frame.y_scale.low, frame.y_scale.high)
        )
        seen = self._y_seen or whole
        low, high, first, last = (self._scale_y(end) for end in (*whole, *seen))
        return AxisView((min(low, first), max(high, last)), (first, last))

    def _set_y_view(self, view: AxisView) -> None:
        """Show a range of y and post it."""
        ends = tuple(10.0**end if self._labels.log_y else end for end in view.visible)
        self._y_seen = (ends[0], ends[1]) if view.is_zoomed else None
        self._redraw()
        self._announce_view()

    def _announce_view(self) -> None:
        """Post the ranges in view."""
        self.post_message(self.ViewChanged(self, self.x_range, self._y_seen))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the value nearest to the click."""
        frame = self._chart.frame if self._chart else None
        at = event.get_content_offset(self)
        if frame is None or at is None or not 0 <= at.x - frame.left < frame.columns:
            return
        x = frame.x_scale.to_data((at.x - frame.left + 0.5) * self._glyphs.dots_across - 0.5)
        self.move_cursor(nearest_stop(self._stops, x))

    def notify_style_update(self) -> None:
        """Discard what depends on colours when the theme changes."""
        self._inks = self._chart = self._picture = None
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        """Return row ``y`` of the picture as a strip with a segment for each run."""
        if self._picture is None or (self._picture.width, self._picture.height) != self.size:
            self._chart = None
            self._picture = self._compose_picture()
        inks = self._inks = self._inks or self._make_inks()
        if y >= self._picture.height:
            return Strip.blank(self.size.width, self.rich_style)
        runs = self._picture.ink_runs(y)
        return Strip([Segment(text, inks.style_of(ink, fill)) for text, ink, fill in runs], self._picture.width)

    def _set_x_view(self, view: AxisView) -> None:
        """Show a range of x."""
        if view != self._view:
            self._view, self._chart = view, None

    def _redraw(self) -> None:
        """Draw the chart again, and repaint the rows that differ."""
        self._chart = None
        self._repaint_changes()

    def _repaint_changes(self) -> None:
        """Repaint the rows in which the new picture differs from the present one."""
        old = self._picture
        if old is None or (old.width, old.height) != self.size:
            self._picture = None
            self.refresh()
            return
        self._picture = self._compose_picture()
        rows = self._picture.changed_rows(old).tolist()
        if rows:
            self.refresh(*(Region(0, row, old.width, 1) for row in rows))

    def _compose_picture(self) -> CharacterPicture:
        """Return the picture with the cursor."""
        # The chart without a cursor is kept: a step of the cursor changes few cells of it.
        if self._chart is None:
            seen = self._view.visible if self._view else None
            self._chart = draw_chart(
                self._series, self.size, self._labels, self._chart_style(), seen, self._y_seen or self._y_range
            )
        if self._cursor is None:
            return self._chart.picture
        return add_cursor(self._chart, self._series, self._labels, self._cursor)

    def _chart_style(self) -> ChartStyle:
        """Return the style for the terminal's colours: bands as tints only if these are visible."""
        if self.has_dotted_bounds:
            return ChartStyle(self._glyphs, not self.app.no_color, "bounds")
        shows = tints_stand_out(
            self._series_styles(), self.rich_style.bgcolor, colour_system(self.app.console.color_system)
        )
        colour = not self.app.no_color
        return ChartStyle(self._glyphs, colour, "background" if colour and shows else "dots")

    def _series_styles(self) -> list[Style]:
        """Return the style of each series in the theme's colours."""
        system = colour_system(self.app.console.color_system)
        sixteen = has_sixteen_colours(system, self.app.native_ansi_color)
        known = choose_palette(self.app.current_theme.dark, sixteen)
        turned = [*known[self.first_colour :], *known[: self.first_colour]]
        return [Style.parse(one) for one in series_colours(self._series, turned)]

    def _make_inks(self) -> InkStyles:
        """Return the styles of all inks."""
        parts = ("plot--axis", "plot--strong", "plot--cursor")
        plain = [self.rich_style, *(self.get_component_rich_style(part) for part in parts)]
        return InkStyles(plain, self._series_styles())
