"""Screens whose table or plot can be written to a file, or sent to the clipboard."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from sfumato.tui.app_protocol import host
from sfumato.tui.clipboard import send
from sfumato.tui.export import Exhibit, of_pages, save, tab_separated
from sfumato.tui.messages import JobDone
from sfumato.tui.widgets.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Exhibits", "grid_exhibit"]

NOTHING = "There is nothing here to write or to copy"


class Exhibits(Widget):
    """``e`` writes what is shown to a file, ``Y`` copies it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "export", "Write table or plot to a file", show=False, id="exhibit.export"),
        Binding("Y", "copy", "Copy the table", show=False, id="exhibit.copy"),
    ]

    def exhibit(self) -> Exhibit | None:
        """What is shown; None when that is nothing."""
        return None

    async def action_export(self) -> None:
        """Ask for a file, and write what is shown to it."""
        from .export import Export

        app, exhibit = host(self.app), self.exhibit()
        if exhibit is None:
            app.say(NOTHING)
            return

        def answered(path: Path | None) -> None:
            if path is not None:
                app.job(partial(save, exhibit, path))

        await app.open(Export(exhibit), answered)

    def action_copy(self) -> None:
        """Send the table that is shown, or the numbers of the plot, to the clipboard."""
        app, exhibit = host(self.app), self.exhibit()
        if exhibit is None:
            app.say(NOTHING)
            return
        app.job(partial(_copy, exhibit, app.directory, partial(app.call_from_thread, app.copy_to_clipboard)))


def _copy(exhibit: Exhibit, directory: Path, osc52: Callable[[str], None]) -> JobDone:
    return JobDone(send(tab_separated(exhibit.table()), directory, osc52))


def grid_exhibit(grid: Grid, name: str) -> Exhibit | None:
    """The table that a grid shows; None when it has no rows."""
    source = grid.source
    return None if source is None or not grid.count else Exhibit(name, partial(of_pages, source))
