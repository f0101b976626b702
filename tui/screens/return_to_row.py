"""Coming back to the row where the cursor was when the app ended, however it ended."""

from __future__ import annotations

from textual import on
from textual.timer import Timer

from sfumato.tui.widgets.grid import Grid

from .page import Page, Pane

__all__ = ["ReturnsToRow"]

REST_SECONDS = 0.3
"""The cursor is remembered once it has stood still for so long."""


class ReturnsToRow(Page):
    """A page of panes that remembers the cursor's row in the pane that is shown."""

    _resting: Timer | None = None

    @property
    def pane(self) -> Pane:
        """What is shown."""
        raise NotImplementedError

    @property
    def _grid(self) -> Grid | None:
        return next(iter(self.pane.query(Grid)), None)

    @property
    def row_here(self) -> str:
        """The row that is to be remembered; empty where there is none."""
        return self._grid.place if self._grid is not None and self._grid.count else ""

    def return_to_row(self) -> None:
        """Have the cursor go to the row that was remembered."""
        if self._grid is not None:
            self._grid.return_to(self.sfumato.state.row)

    @on(Grid.Highlighted)
    def _moved(self) -> None:
        if self._resting is not None:
            self._resting.stop()
        self._resting = self.set_timer(REST_SECONDS, self._remember_row)

    def _remember_row(self) -> None:
        if self.row_here:
            self.sfumato.remember(row=self.row_here)
