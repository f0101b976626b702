"""The strongest intruder: how belief in the truth of records moved with a run's release, and how much each dataset adds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content

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
NOT_THERE = "This run kept no beliefs of an intruder."
HINT = "Left and right read a plot; the Records tab ranks the records."


class Beliefs(Dialog[None], OffersExport):
    """One measure of a run at a time: belief in the truth after against before, the share guessed right by datasets, and tables.

    All parts are in sight where there is room, else one at a time.
    """

    manual = "app strongest intruder"

    DEFAULT_CSS = """
    Beliefs #beliefs-parts { height: 1fr; layout: grid; grid-size: 2 2; grid-rows: 3fr 2fr; }
    Beliefs #beliefs-parts Scroll { column-span: 2; }
    Beliefs #beliefs-parts.-narrow { layout: vertical; }
    Beliefs #beliefs-use { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("next_pane", "part", "Next part", show=True),
        bind_act("picture", "measure", "Measure", show=True),
    ]
    AUTO_FOCUS = ""

    def __init__(self, run_id: int) -> None:
        super().__init__()
        self._run_id = run_id
        self._found: Sequence[MeasureBeliefs] = ()
        self._measure = self._part = 0

    def compose(self) -> ComposeResult:
        """The answer, of which use, the plots and tables, what the cursor reads, and the keys."""
        with Vertical(classes="whole"):
            yield FrameEdge(name="beliefs-answer")
            with FrameSides():
                yield Line(name="beliefs-use")
                with Container(id="beliefs-parts"):
                    yield Plot(id="beliefs-moved")
                    yield Plot(id="beliefs-first")
                    yield Scroll()
            yield FrameEdge(name="beliefs-reading", lower=True)
            yield KeyLine()

    def on_mount(self) -> None:
        self.reload()
        self._arrange()

    def read_query(self) -> Callable[[Workspace], Sequence[MeasureBeliefs]]:
        """What is believed by every measure that tells it."""
        run_id = self._run_id

        def query(workspace: Workspace) -> Sequence[MeasureBeliefs]:
            from sfumato.workspace.views.beliefs import belief_measures, read_beliefs

            return [read_beliefs(workspace, run_id, one) for one in belief_measures(workspace, run_id)]

        return query

    def show_answer(self, answer: Sequence[MeasureBeliefs]) -> None:
        self._found = answer
        self._show()
        self.refresh_bindings()

    def on_workspace_changed(self, _: WorkspaceChanged) -> None:
        self.reload()

    def on_resize(self) -> None:
        """Show as many parts as there is room for now."""
        self._arrange()

    @property
    def found(self) -> MeasureBeliefs | None:
        return self._found[self._measure % len(self._found)] if self._found else None

    @property
    def _parts(self) -> tuple[Plot | Scroll, ...]:
        return (*self.query(Plot), self.query_one(Scroll))

    def _arrange(self) -> None:
        narrow = self.app.size.width < NARROW
        self.query_one("#beliefs-parts").set_class(narrow, "-narrow")
        for place, part in enumerate(self._parts):
            part.display = not narrow or place == self._part
        self._parts[self._part].focus()

    def _show(self) -> None:
        found = self.found
        if found is None:
            self.query_one("#beliefs-answer", Line).set_text(NOT_THERE)
            return
        several = f"{self._measure % len(self._found) + 1}/{len(self._found)} " if len(self._found) > 1 else ""
        self.query_one("#beliefs-answer", Line).set_text(
            Content(f"Run {self._run_id}  {replace_unprintable(found.result_text)}")
        )
        self.query_one("#beliefs-use", Line).set_text(
            replace_unprintable(f"{found.title} {several}· {found.measure_text} · {found.attacked_text}")
        )
        moved, first = belief_figure(found).panels
        for plot, panel in zip(self.query(Plot), (moved, first), strict=True):
            plot.set_series(panel.series, title=panel.title, x_label=panel.x_label, y_label=panel.y_label)
        tables = "\n\n".join(format_table(one) for one in belief_tables(found))
        self.query_one(Scroll).show_text(Content(f"{tables}\n\n{certainty_text(found)}\n{ONLY_ATTACKED_RECORDS}"))
        self.query_one("#beliefs-reading", Line).set_text(f"{DIAGONAL_REMARK} {HINT}")

    @on(Plot.CursorMoved)
    def _read_cursor(self, event: Plot.CursorMoved) -> None:
        if self.found is not None and event.x is not None:
            moved = event.plot.id == "beliefs-moved"
            said = moved_reading(self.found, event.x) if moved else first_reading(self.found, event.x)
            self.query_one("#beliefs-reading", Line).set_text(said)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Another measure is offered where there is one."""
        return (len(self._found) > 1 if action == "measure" else True) and super().check_action(action, parameters)

    def action_part(self) -> None:
        """Go to the next part, which comes in sight where there is room for one only."""
        self._part = (self._part + 1) % len(self._parts)
        self._arrange()

    def action_measure(self) -> None:
        self._measure += 1
        self._show()

    def make_exportable(self) -> ScreenExport | None:
        """The probabilities of every record asked about, without values, and what is drawn."""
        found = self.found
        if found is None:
            return None
        return ScreenExport(f"run-{self._run_id}-beliefs", lambda: belief_rows(found), lambda: belief_figure(found))


def belief_rows(found: MeasureBeliefs) -> ExportTable:
    """A row for every record asked about: no values."""
    pairs = zip(found.record_numbers, found.prior, found.posterior, strict=True)
    return ("record", "before", "after"), [(int(n), float(before), float(after)) for n, before, after in pairs]


def moved_reading(found: MeasureBeliefs, x: float) -> str:
    """What became of the records whose truth was about as probable before."""
    there = np.abs(found.prior - x) <= PROBABILITY_STEP / 2 + 1e-9
    after = found.posterior[there]
    if not len(after):
        return f"no record whose truth had probability {number(x)} before"
    ends = (
        number(float(after[0])) if len(after) == 1 else f"{number(float(after.min()))} to {number(float(after.max()))}"
    )
    more = int((after > found.prior[there]).sum())
    return f"{count_noun(len(after), 'record')} of probability {number(x)} before: {ends} after, {more:,} more probable than before"


def first_reading(found: MeasureBeliefs, x: float) -> str:
    """Return the share guessed right by a number of datasets, and the share before."""
    row = found.right_by_first_datasets.get(round(x))
    if row is None:
        return HINT
    band = interval_text(row.lower, row.upper)
    return (
        f"by the first {count_noun(round(x), 'dataset')} {number(row.value)}{f' ({band})' if band else ''} are guessed right, "
        f"{number(found.right_before.value)} before"
    )
