"""Dialog with the pairs of variables whose joint distribution a release from tables keeps, and the distance of each
pair.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical

from sfumato.tui.session.export import ExportTable, ScreenExport
from sfumato.tui.widgets.lines import KeyLine, Scroll
from sfumato.tui.widgets.panel import FrameEdge, FrameSides
from sfumato.workspace.reporting.pairs import triangle_text

from ..parts.page import Dialog, OffersExport

if TYPE_CHECKING:
    from sfumato.workspace.plots.figure import Figure
    from sfumato.workspace.reporting.pairs import VariablePairs
    from sfumato.workspace.store.workspace import Workspace

BORDERS = 6
"""Cells of the dialog's width that the text cannot use."""


class KeptPairs(Dialog[None], OffersExport):
    """Dialog with a triangle of pairs of variables, then the pairs with the largest distances."""

    manual = "app pairs that are kept"
    AUTO_FOCUS = "Scroll"

    def __init__(self, run_id: int) -> None:
        """Create the dialog about a run."""
        super().__init__()
        self._run_id = run_id
        self._found: tuple[VariablePairs, Figure | None] | None = None

    def compose(self) -> ComposeResult:
        """Yield the number of kept pairs, the triangle, and the keys."""
        with Vertical(classes="whole"):
            yield FrameEdge(name="pairs-answer")
            with FrameSides():
                yield Scroll()
            yield KeyLine()

    def read_query(self) -> Callable[[Workspace], tuple[VariablePairs, Figure | None]]:
        """Return the query for the pairs of the run."""
        run_id = self._run_id

        def query(workspace: Workspace) -> tuple[VariablePairs, Figure | None]:
            """Read the pairs and their figure."""
            from sfumato.workspace.views.pairs import read_variable_pairs

            return read_variable_pairs(workspace, run_id)

        return query

    def show_answer(self, answer: tuple[VariablePairs, Figure | None]) -> None:
        """Show the pairs."""
        self._found = answer
        self._show_triangle()
        self.refresh_bindings()

    def on_resize(self) -> None:
        """Show numbers where there is room for them now."""
        self._show_triangle()

    def _show_triangle(self) -> None:
        """Write the triangle for the width of the terminal."""
        if self._found is not None:
            found = self._found[0]
            self.query_one("#pairs-answer", FrameEdge).set_text(f"Run {self._run_id}  {found.shared_tables_text}")
            self.query_one(Scroll).show_text(triangle_text(found, self.app.size.width - BORDERS))

    def make_exportable(self) -> ScreenExport | None:
        """Return every pair with its distance and whether it is kept, and the triangle as a figure."""
        if self._found is None:
            return None
        found, figure = self._found
        return ScreenExport(
            f"run-{self._run_id}-pairs", lambda: pair_rows(found), None if figure is None else lambda: figure
        )


def pair_rows(pairs: VariablePairs) -> ExportTable:
    """Return a row for each pair: its variables, whether it is kept, and its distance."""
    rows = [
        (a, b, frozenset((a, b)) in pairs.kept_pairs, pairs.distances.get(frozenset((a, b))))
        for a, b in pairs.all_pairs
    ]
    return ("variable", "other", "kept", "apart"), rows
