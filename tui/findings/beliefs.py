"""Dialog about the strongest intruder: belief in the true records before and after the release, and by number of
datasets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.widgets import Static

from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.session.export import ExportTable, ScreenExport
from sfumato.tui.session.messages import WorkspaceChanged
from sfumato.tui.widgets.lines import KeyLine, Line, Scroll
from sfumato.tui.widgets.panel import FrameEdge, FrameSides
from sfumato.tui.widgets.plot import Plot
from sfumato.workspace.plots.beliefs import PROBABILITY_STEP
from sfumato.workspace.reporting.beliefs import (
    DIAGONAL_REMARK,
    ONLY_ATTACKED_RECORDS,
    belief_figure,
    belief_tables,
    certainty_text,
)
from sfumato.workspace.reporting.tables import format_table
from sfumato.workspace.reporting.words import interval_text, number
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.page import Dialog, OffersExport

if TYPE_CHECKING:
    from sfumato.workspace.reporting.beliefs import MeasureBeliefs
    from sfumato.workspace.store.workspace import Workspace

NARROW = 100
MARGIN, GAP = 6, 4
"""Cells that the tables cannot use, and those between two of them."""
NOT_THERE = "This run kept no beliefs of an intruder."
HINT = "Left and right read a plot; the Records tab ranks the records."


class BeliefsDialog(Dialog[None], OffersExport):
    """Dialog about an intruder's beliefs by one measure of a run at a time.

    It shows the posterior belief in the truth against the prior, the share guessed right by number of datasets, and
    tables. All parts are shown if there is room, otherwise one at a time.
    """

    manual = "app strongest intruder"

    DEFAULT_CSS = """
    BeliefsDialog #beliefs-parts { height: 1fr; layout: grid; grid-size: 2 2; grid-rows: 3fr 2fr; }
    BeliefsDialog #beliefs-parts Scroll { column-span: 2; }
    BeliefsDialog #beliefs-parts.-narrow { layout: vertical; }
    BeliefsDialog #beliefs-finding { padding: 0 1; height: auto; max-height: 2; }
    BeliefsDialog #beliefs-use { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("next_pane", "part", "Next part", show=True),
        bind_act("picture", "measure", "Measure", show=True),
    ]
    AUTO_FOCUS = ""

    def __init__(self, run_id: int) -> None:
        """Create the dialog about a run."""
        super().__init__()
        self._run_id = run_id
        self._found: Sequence[MeasureBeliefs] = ()
        self._measure = self._part = 0

    def compose(self) -> ComposeResult:
        """Yield the answer, the use of the measure, plots and tables, the text at the cursor, and the keys."""
        with Vertical(classes="whole"):
            yield FrameEdge(name="beliefs-answer")
            with FrameSides():
                yield Static("", id="beliefs-finding", markup=False)
                yield Line(name="beliefs-use")
                with Container(id="beliefs-parts"):
                    yield Plot(id="beliefs-moved")
                    yield Plot(id="beliefs-first")
                    yield Scroll()
            yield FrameEdge(name="beliefs-reading", lower=True)
            yield KeyLine()

    def on_mount(self) -> None:
        """Read the beliefs, and arrange the parts for the width of the terminal."""
        self.reload()
        self._arrange_parts()

    def read_query(self) -> Callable[[Workspace], Sequence[MeasureBeliefs]]:
        """Return the query for the beliefs by every measure that has them."""
        run_id = self._run_id

        def query(workspace: Workspace) -> Sequence[MeasureBeliefs]:
            """Read the beliefs by each measure of the run that has them."""
            from sfumato.workspace.views.beliefs import belief_measures, read_beliefs

            return [read_beliefs(workspace, run_id, one) for one in belief_measures(workspace, run_id)]

        return query

    def show_answer(self, answer: Sequence[MeasureBeliefs]) -> None:
        """Show the beliefs by the first measure."""
        self._found = answer
        self._show_measure()
        self.refresh_bindings()

    def on_workspace_changed(self, _: WorkspaceChanged) -> None:
        """Read the beliefs again when the workspace has changed."""
        self.reload()

    def on_resize(self) -> None:
        """Show as many parts as there is room for."""
        self._arrange_parts()

    @property
    def current_measure(self) -> MeasureBeliefs | None:
        """Return the beliefs by the shown measure; None if the run has none."""
        return self._found[self._measure % len(self._found)] if self._found else None

    @property
    def _parts(self) -> tuple[Plot | Scroll, ...]:
        """Return the two plots and the tables."""
        return (*self.query(Plot), self.query_one(Scroll))

    def _arrange_parts(self) -> None:
        """Show all parts in a wide terminal, one in a narrow one, and focus the current part."""
        narrow = self.app.size.width < NARROW
        self.query_one("#beliefs-parts").set_class(narrow, "-narrow")
        # Hidden parts keep their contents, so that a resize needs no reading.
        for place, part in enumerate(self._parts):
            part.display = not narrow or place == self._part
        self._parts[self._part].focus()

    def _show_measure(self) -> None:
        """Draw the beliefs by the current measure, and write its tables."""
        found = self.current_measure
        if found is None:
            self.query_one("#beliefs-answer", Line).set_text(NOT_THERE)
            return
        several = f"{self._measure % len(self._found) + 1}/{len(self._found)} " if len(self._found) > 1 else ""
        self.query_one("#beliefs-answer", Line).set_text(
            Content(f"Run {self._run_id}: what does the strongest intruder learn?")
        )
        self.query_one("#beliefs-finding", Static).update(Content(replace_unprintable(found.finding_text)))
        self.query_one("#beliefs-use", Line).set_text(
            replace_unprintable(f"{several}{found.result_text} · {found.measure_text}")
        )
        moved, first = belief_figure(found).panels
        for plot, panel in zip(self.query(Plot), (moved, first), strict=True):
            plot.set_series(panel.series, title=panel.title, x_label=panel.x_label, y_label=panel.y_label)
        tables = [format_table(one) for one in belief_tables(found)]
        text = tables_beside(tables, self.app.size.width - MARGIN)
        self.query_one(Scroll).show_text(Content(f"{text}\n\n{certainty_text(found)}\n{ONLY_ATTACKED_RECORDS}"))
        self.query_one("#beliefs-reading", Line).set_text(f"{DIAGONAL_REMARK} {HINT}")

    @on(Plot.CursorMoved)
    def _read_cursor(self, event: Plot.CursorMoved) -> None:
        """Show the values at the cursor of a plot."""
        if self.current_measure is not None and event.x is not None:
            moved = event.plot.id == "beliefs-moved"
            said = (
                belief_change_text(self.current_measure, event.x)
                if moved
                else guess_share_text(self.current_measure, event.x)
            )
            self.query_one("#beliefs-reading", Line).set_text(said)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable switching the measure if there are several."""
        return (len(self._found) > 1 if action == "measure" else True) and super().check_action(action, parameters)

    def action_part(self) -> None:
        """Go to the next part."""
        self._part = (self._part + 1) % len(self._parts)
        self._arrange_parts()

    def action_measure(self) -> None:
        """Show the next measure."""
        self._measure += 1
        self._show_measure()

    def make_exportable(self) -> ScreenExport | None:
        """Return the probabilities of each attacked record, without values, and the figure."""
        found = self.current_measure
        if found is None:
            return None
        # The bound results of one measure are exported even if another one is shown by the time of writing.
        return ScreenExport(f"run-{self._run_id}-beliefs", lambda: belief_rows(found), lambda: belief_figure(found))


def tables_beside(tables: Sequence[str], width: int) -> str:
    """Return tables beside each other, as many as fit in ``width`` cells, the others below them."""
    rows: list[list[str]] = []
    for table in tables:
        lines = table.split("\n")
        taken = max(map(cell_len, rows[-1]), default=0) if rows else 0
        if not rows or taken + GAP + max(map(cell_len, lines)) > width:
            rows.append(lines)
            continue
        height = max(len(lines), len(rows[-1]))
        left, right = ([*part, *[""] * (height - len(part))] for part in (rows[-1], lines))
        rows[-1] = [
            f"{one}{' ' * (taken + GAP - cell_len(one))}{other}".rstrip()
            for one, other in zip(left, right, strict=True)
        ]
    return "\n\n".join("\n".join(lines) for lines in rows)


def belief_rows(beliefs: MeasureBeliefs) -> ExportTable:
    """Return a row for each attacked record: number and belief in its truth before and after, without values."""
    pairs = zip(beliefs.record_numbers, beliefs.prior, beliefs.posterior, strict=True)
    return ("record", "before", "after"), [(int(n), float(before), float(after)) for n, before, after in pairs]


def belief_change_text(beliefs: MeasureBeliefs, x: float) -> str:
    """Describe how belief changed for the records with about this prior belief in the truth."""
    # Priors are drawn at multiples of PROBABILITY_STEP; 1e-9 keeps those whose difference is half a step but for
    # rounding.
    there = np.abs(beliefs.prior - x) <= PROBABILITY_STEP / 2 + 1e-9
    after = beliefs.posterior[there]
    if not len(after):
        return f"no record whose truth had probability {number(x)} before"
    ends = (
        number(float(after[0])) if len(after) == 1 else f"{number(float(after.min()))} to {number(float(after.max()))}"
    )
    more = int((after > beliefs.prior[there]).sum())
    return f"{count_noun(len(after), 'record')} of probability {number(x)} before: {ends} after, {more:,} more probable than before"


def guess_share_text(beliefs: MeasureBeliefs, x: float) -> str:
    """Describe the share guessed right with that many datasets, and the share before."""
    # Between whole numbers of datasets nothing was computed, so the nearest one is read.
    row = beliefs.right_by_first_datasets.get(round(x))
    if row is None:
        return HINT
    band = interval_text(row.lower, row.upper)
    return (
        f"by the first {count_noun(round(x), 'dataset')} {number(row.value)}{f' ({band})' if band else ''} are guessed right, "
        f"{number(beliefs.right_before.value)} before"
    )
