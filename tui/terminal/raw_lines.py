"""Widgets that draw every cell of theirs, or none, and have no border or padding.

Textual 8.2 puts each line through steps for borders, padding, tint and opacity, which take longer than drawing it. Rests on
a part of it that is not public: ``Widget._styles_cache``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual._styles_cache import StylesCache
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

__all__ = ["Backdrop", "BareLines"]


class BareLines(StylesCache):
    """Keeps the lines that ``draw`` gives until they are to be drawn anew."""

    def __init__(self, draw: Callable[[int], Strip]) -> None:
        super().__init__()
        self._draw = draw

    def render_line(self, styles: Any, y: int, *_: Any, **__: Any) -> Strip:
        """Line ``y`` as it was drawn."""
        return self._draw(y)


class Backdrop(Widget):
    """What is only background, all but covered by what lies in it."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """One line for all."""
        strip = Strip.blank(crop.width, self.rich_style)
        for line_filter in self.get_line_filters():
            strip = strip.apply_filter(line_filter, self.background_colors[1])
        return [strip] * crop.height
