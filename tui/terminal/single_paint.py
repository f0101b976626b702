"""How a screen comes: styled, laid out and painted once.

Textual 8.2 does each several times: it styles a screen for no particular width and again for the terminal's, lays it out when
it resumes and again when it learns its size, and repaints all of it for every layout. Rests on parts of it that are not
public: ``Screen._get_breakpoint_classes``, ``_on_screen_resume``, ``_screen_resized`` and ``_compositor``.
"""

from __future__ import annotations

from typing import TypeVar

from textual import events
from textual.geometry import Region, Size
from textual.screen import Screen

__all__ = ["Arriving"]

ScreenResult = TypeVar("ScreenResult")


class Arriving(Screen[ScreenResult]):
    """A screen that does nothing twice while it comes."""

    def fit(self, width: int) -> None:
        """Take the class for a terminal of ``width`` cells, before there are any styles."""
        self.add_class(*self._get_breakpoint_classes(width, self.app.HORIZONTAL_BREAKPOINTS or []), update=False)

    def _on_screen_resume(self, event: events.ScreenResume) -> None:
        """What has just been mounted has its styles."""
        event.refresh_styles = event.refresh_styles and bool(self._compositor.size)

    def _screen_resized(self, size: Size) -> None:
        """Lay out what is not laid out for this size: the screens below are, when another screen comes."""
        if self is self.app.screen or size != self._compositor.size:
            super()._screen_resized(size)

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Arriving[ScreenResult]:
        """Repaint all, or after a new layout what that has moved."""
        if layout and not regions and not recompose:
            self.clear_cached_dimensions()
            repaint = False
        super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
        return self
