"""Where to write a table or a plot."""

from __future__ import annotations

from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static

from sfumato.tui.export import Exhibit, NotExported, check_path
from sfumato.tui.widgets.completion import PathName
from sfumato.tui.widgets.entry import Entry

from .page import Dialog

KINDS = {".csv": ".csv          the numbers", ".svg": ".svg or .png  the plot"}


class Export(Dialog[Path]):
    """Answers a file that is not there yet, in a directory that is."""

    AUTO_FOCUS = "Input"

    def __init__(self, exhibit: Exhibit) -> None:
        super().__init__()
        self._exhibit = exhibit

    def compose(self) -> ComposeResult:
        """What can be written, the file's name, and what is wrong with it."""
        kinds = "\n".join(KINDS[suffix] for suffix in self._exhibit.suffixes if suffix in KINDS)
        with Vertical(classes="dialog"):
            yield Static("Write to a file   (enter writes, escape closes)", classes="dialog-title", markup=False)
            yield Static(f"{kinds}\n", markup=False)
            name = f"{self._exhibit.name}{self._exhibit.suffixes[-2 if self._exhibit.figure else 0]}"
            yield Entry(str(Path.cwd() / name), suggester=PathName(), id="export-path")
            yield Static("", id="export-wrong", markup=False)

    @on(Input.Changed)
    def _forget(self) -> None:
        self.query_one("#export-wrong", Static).update("")

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        try:
            self.dismiss(check_path(self._exhibit, event.value))
        except NotExported as error:
            self.query_one("#export-wrong", Static).update(str(error))
