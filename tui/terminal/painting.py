"""Screens and widgets that are painted no more often, and through no more steps, than their picture needs.

Textual styles a screen that opens for no particular width and again for the terminal's, lays it out when it resumes and
again when it learns its size, and repaints all of it for every layout. It puts each line of a widget through steps for
borders, padding, tint and opacity, which take longer than drawing it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, TypeVar

import textual.screen
from textual import events
from textual.color import Color
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from .parts import PAINT_PERIOD, RAW_LINES, SHARED_STYLES, SINGLE_PAINT, is_on

ScreenResult = TypeVar("ScreenResult")
PAINT_SECONDS = 1 / 120
"""Least time between two pictures: half of Textual's, for keys that cause two pictures."""


class SinglePaintScreen(Screen[ScreenResult]):
    """Screen that is styled, laid out and painted once when it opens."""

    def set_size_classes(self, size: Size) -> None:
        """Set the classes for a terminal of this size, before there are any styles."""
        breaks = (size.width, self.app.HORIZONTAL_BREAKPOINTS), (size.height, self.app.VERTICAL_BREAKPOINTS)
        for cells, names in breaks:
            found = [name for least, name in sorted(names or []) if cells >= least]
            self.add_class(*found[-1:], update=False)

    def _on_screen_resume(self, event: events.ScreenResume) -> None:
        """Keep the styles of what has just been mounted."""
        if is_on(SINGLE_PAINT):
            event.refresh_styles = event.refresh_styles and bool(self._compositor.size)

    def _on_screen_suspend(self) -> None:
        """Drop the repaint that this screen still waits for when another one opens."""
        super()._on_screen_suspend()
        if is_on(SINGLE_PAINT):
            # The first picture of the screen above has this one in it; Textual would paint it once more.
            self._repaint_required = False

    def _screen_resized(self, size: Size, *others: Any) -> None:
        """Lay the screen out unless it has this size already, as a screen has when another one opens above."""
        if not is_on(SINGLE_PAINT) or self is self.app.screen or size != self._compositor.size:
            super()._screen_resized(size, *others)

    def _compositor_refresh(self) -> None:
        """Paint what has changed, or wait until the app has ended its batch of changes."""
        if is_on(SINGLE_PAINT) and self.app._batch_count:
            # Textual would draw the picture, forget what has changed and drop the picture. As this screen repaints only
            # what has changed, a part that nothing changes later would then stay blank.
            self.set_timer(PAINT_SECONDS, self._compositor_refresh)
        else:
            super()._compositor_refresh()

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> SinglePaintScreen[ScreenResult]:
        """Repaint all of the screen, or after a new layout only what has moved."""
        if layout and not regions and not recompose and is_on(SINGLE_PAINT):
            self.clear_cached_dimensions()
            repaint = False
        super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
        return self


class Backdrop(Widget):
    """Widget that is background alone, almost covered by its children."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return blank lines in the colour of the background."""
        strip = Strip.blank(crop.width, self.rich_style)
        # This replaces Textual's rendering, which would apply the filters, such as the one for terminals without
        # colours.
        for line_filter in self.get_line_filters():
            strip = strip.apply_filter(line_filter, self.background_colors[1])
        return [strip] * crop.height


def draw_raw_lines(widget: Widget) -> None:
    """Show the lines of a widget as it draws them; it must draw all its cells and have no border or padding."""
    if is_on(RAW_LINES):
        widget._styles_cache = _raw_lines_type()(widget.render_line)


@cache
def _raw_lines_type() -> Callable[[Callable[[int], Strip]], Any]:
    """Return a subclass of Textual's cache of a widget's lines that takes them as they are drawn."""
    # The class is private, so the subclass is created only if this part is on.
    from textual._styles_cache import StylesCache

    class RawLines(StylesCache):
        """Cache of lines without borders, padding, tint and opacity."""

        def __init__(self, draw: Callable[[int], Strip]) -> None:
            """Create the cache with the function that draws a line."""
            super().__init__()
            self._draw = draw

        def render_line(self, styles: Any, y: int, *_: Any, **__: Any) -> Strip:
            """Return a line as it is drawn."""
            return self._draw(y)

    return RawLines


def share_styles() -> None:
    """Cache the styles of two backgrounds by their colours alone."""
    if not is_on(SHARED_STYLES):
        return
    from textual._styles_cache import StylesCache

    # Textual's cache has the widget's store of drawn lines in its key, and so keeps the lines of the last 1,024 removed
    # widgets: 25 MB.
    made = getattr(StylesCache.get_inner_outer, "__wrapped__", None)
    if made is None:  # it is shared already
        return
    shared = lru_cache(1024)(partial(made, StylesCache))

    def get_inner_outer(cls: object, base_background: Color, background: Color) -> Any:
        """Return the styles for two backgrounds."""
        return shared(base_background, background)

    vars_of_styles: Any = StylesCache
    vars_of_styles.get_inner_outer = get_inner_outer


def double_paint_rate() -> None:
    """Make Textual paint twice as often."""
    if is_on(PAINT_PERIOD):
        vars(textual.screen)["UPDATE_PERIOD"] = PAINT_SECONDS
