"""Distributions: the confidential data beside what was released of them, one variable or two at a time.

The confidential records behind a bar or a cell, with their values, shown after the same question as all values of records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import ContentSwitcher

from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.workspace.plots.joint import BinWindow, JointDistribution, ScatterSample
from sfumato.workspace.plots.marginal import MarginalFigure
from sfumato.workspace.plots.series import x_limits, y_limits
from sfumato.workspace.reporting.tables import DisplayColumn
from sfumato.workspace.reporting.words import number
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.dialogs import ChoiceDialog, ConfirmDialog
from ..parts.page import Dialog, OffersExport, grid_exportable
from ..parts.revealing import CONSEQUENCE
from ..session.export import ScreenExport
from ..widgets.grid import Grid, LiveGrid
from ..widgets.heat import HeatView, bin_centre, joint_panes, lay_out_panes, most_bins, nearest_bin
from ..widgets.heatmap import HeatMap
from ..widgets.lines import KeyLine, Line
from ..widgets.pages import TableRow
from ..widgets.panel import FrameEdge, FrameSides
from ..widgets.plot import Plot
from ..widgets.tables import GridTable, TableColumn
from .distributions import (
    ColumnCache,
    DistributionAnswer,
    DistributionQuery,
    Subject,
    answer,
    cell_reading,
    drilled,
    exportable_of,
    heading,
    marginal_reading,
    point_series,
    same_axes,
    scatter_reading,
    shown_lines,
    subject_of,
    with_draws,
    with_second,
    with_variable,
)

if TYPE_CHECKING:
    from ..session.app_protocol import AppProtocol
    from .distributions import Drilled


WIDTH = 14
NONE = "This project has no data yet."
HINT = "arrows move · + - zoom, 0 all · } second variable · enter records · ? keys"
MAPS = 4
"""Ways to arrange maps: all three, or one of them."""
UNIT = (0.0, 1.0)
EVERYWHERE = (float("-inf"), float("inf"))


@dataclass(frozen=True, eq=False)
class DrilledPages:
    """Records of a dataset by their numbers from 1 as a grid reads them; the values of a page are read when it is shown."""

    directory: Path
    dataset_id: int
    records: Sequence[int]
    names: Sequence[str]

    @property
    def columns(self) -> Sequence[DisplayColumn]:
        return (
            DisplayColumn("record", "record", 8, "right"),
            *(DisplayColumn(n, n, max(WIDTH, len(n)), "right") for n in self.names),
        )

    def count(self) -> int:
        return len(self.records)

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        from sfumato.workspace.store.workspace import Workspace
        from sfumato.workspace.views.records import values_of_dataset

        numbers = self.records[offset : offset + limit]
        with Workspace.open(self.directory, read_only=True) as workspace:
            found: Sequence[Mapping[str, object]] = values_of_dataset(workspace, self.dataset_id, numbers)
        return [(number, *(own[name] for name in self.names)) for number, own in zip(numbers, found, strict=True)]


class DrilledRecords(Dialog[None], OffersExport):
    """The records; v hides them again, by closing."""

    manual = "app distributions"

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("reveal", "close", "Hide", show=True)]
    AUTO_FOCUS = "Grid"

    def __init__(self, pages: DrilledPages, run_id: int | None, said: str) -> None:
        super().__init__()
        self._pages, self._run_id, self._said = pages, run_id, said

    def compose(self) -> ComposeResult:
        """What they have in common, the records, the keys."""
        with Vertical(classes="whole"):
            yield FrameEdge(name="drilled-head")
            with FrameSides():
                yield Grid(empty="…")
            yield FrameEdge(lower=True)
            yield KeyLine()

    def on_mount(self) -> None:
        of = "confidential data" if self._run_id is None else f"confidential data of run {self._run_id}"
        records = count_noun(self._pages.count(), "record")
        self.query_one("#drilled-head", Line).set_text(f"{replace_unprintable(self._said)} · {records} of the {of}")
        self.query_one(Grid).set_source(self._pages)

    def make_exportable(self) -> ScreenExport | None:
        where = "" if self._run_id is None else f"run-{self._run_id}-"
        return grid_exportable(self.query_one(Grid), f"confidential-{where}records")


def _number_cell(place: int, row: Sequence[object]) -> object:
    return number(value) if isinstance(value := row[place], float) else value


async def open_drilled(app: AppProtocol, dataset_id: int, run_id: int | None, found: Drilled) -> None:
    """Ask, then show the records. Which records they are tells their values, so that not even their numbers come before."""
    from sfumato.workspace.store.workspace import Workspace

    with Workspace.open(app.directory, read_only=True) as workspace:
        names = workspace.find_dataset(dataset_id).schema.names
    pages = DrilledPages(app.directory, dataset_id, found.records, names)

    def answered(yes: bool | None) -> None:
        if yes:
            app.call_later(app.open, DrilledRecords(pages, run_id, found.said))

    many = len(found.records)
    question = f"Show {f'the {many:,} records' if many > 1 else 'the record'} with {replace_unprintable(found.said)}?"
    await app.open(ConfirmDialog(question, CONSEQUENCE, "Show"), answered)


LABEL_ROOM, AROUND = 10, 4
PLOT, SIDE, MAP, NUMBERS = (f"distribution-{part}" for part in ("plot", "side", "map", "numbers"))


class SidePlot(Plot, can_focus=False):
    """The plot of the released points, which moves with that of the confidential ones."""

    first_colour = 1


class Distributions(Dialog[None], OffersExport):
    """Keys choose the variables, the picture and the datasets; a cursor reads values."""

    manual = "app distributions"

    DEFAULT_CSS = """
    Distributions #distribution-body, Distributions #distribution-plots { height: 1fr; }
    Distributions #distribution-plots > * { width: 1fr; }
    Distributions #distribution-notes { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("picture", "picture(1)", "Picture", show=True),
        bind_act("previous_picture", "picture(-1)", "Previous picture"),
        bind_act("next", "variable(1)", "Variable", show=True),
        bind_act("previous", "variable(-1)", "Previous variable"),
        bind_act("next_other", "second(1)", "Second", show=True),
        bind_act("previous_other", "second(-1)", "Previous second"),
        bind_act("datasets", "dataset(1)", "Datasets", show=True),
        bind_act("previous_datasets", "dataset(-1)", "Previous datasets"),
        bind_act("list", "choose('x')", "Choose the variable"),
        bind_act("upward", "choose('y')", "Choose the second variable"),
        bind_act("log_scale", "log('log')", "Log scale", show=True),
        bind_act("log_scale_other", "log('log_up')", "Log scale of the second, or of shares"),
        bind_act("shades", "shades", "Shades by logarithm"),
        bind_act("arrange", "arrange", "Beside or over each other; one map or all"),
        bind_act("open", "records", "Records of the bar or cell"),
        bind_act("table", "numbers", "Numbers"),
        bind_act("keys", "app.keys", "Help", show=True),
    ]
    AUTO_FOCUS = f"#{PLOT}"

    @dataclass
    class Opened(Message):
        """Message with the data that were found; None without data."""

        subject: Subject | None

    @dataclass
    class Arrived(Message):
        shown: DistributionAnswer

    def __init__(self, project_id: int, run_id: int | None, variable: str | None = None) -> None:
        super().__init__()
        self._project_id, self._run_id, self._first = project_id, run_id, variable
        self._subject: Subject | None = None
        self._shelf = ColumnCache()
        self._wanted: DistributionQuery | None = None
        self._shown: DistributionAnswer | None = None
        self._map, self._over = 0, False
        self._log_shades = False
        self._view = HeatView()
        self._centre: tuple[float, float] | None = None

    def compose(self) -> ComposeResult:
        """What is shown, the picture or its numbers, what the cursor reads, what is left out, and the keys."""
        with Vertical(classes="whole"):
            yield FrameEdge(name="distribution-head")
            with FrameSides():
                with ContentSwitcher(initial="distribution-plots", id="distribution-body"):
                    with Horizontal(id="distribution-plots"):
                        yield Plot(id=PLOT)
                        yield SidePlot(id=SIDE)
                    yield HeatMap(id=MAP)
                    yield LiveGrid(empty="There are no numbers", id=NUMBERS)
                yield Line(name="distribution-reading")
            yield FrameEdge(name="distribution-notes", lower=True)
            yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(SidePlot).display = False
        project_id, run_id = self._project_id, self._run_id
        self.compute(lambda workspace: subject_of(workspace, project_id, run_id), self.Opened)

    @on(Opened)
    def _take_subject(self, event: Opened) -> None:
        subject = self._subject = event.subject
        if subject is None:
            self.query_one("#distribution-head", Line).set_text(NONE)
            return
        likely = (self._first, *(subject.run.recipe.released if subject.run else ()))
        self._ask(
            DistributionQuery(next((name for name in likely if name in self._names), self._names[0]), None, "histogram")
        )

    def _ask(self, wanted: DistributionQuery, *, keep_place: bool = True) -> None:
        """Have a picture computed; a later call makes an earlier answer void."""
        subject, shelf = self._subject, self._shelf
        if subject is None:
            return
        self._centre = self._cursor_place() if keep_place else None
        room = lay_out_panes((self.size.width, self.size.height - AROUND), self._map_count, LABEL_ROOM)
        columns, rows = most_bins(room)
        across, up = (
            BinWindow(columns, self._view.visible_range("across")),
            BinWindow(rows, self._view.visible_range("up")),
        )
        asked = self._wanted = replace(wanted, across=across, up=up)
        self.compute(lambda workspace: answer(workspace, subject, shelf, asked), self.Arrived)

    def _ask_afresh(self, wanted: DistributionQuery) -> None:
        """Have a picture on other axes computed."""
        self._view = HeatView()
        self._ask(wanted, keep_place=False)

    @property
    def _map_count(self) -> int:
        return 3 if self._map == 0 and self._subject is not None and self._subject.draws else 1

    @property
    def _names(self) -> list[str]:
        return [variable.name for variable in self._subject.variables] if self._subject else []

    @property
    def _joint(self) -> JointDistribution | None:
        found = self._shown.found if self._shown is not None else None
        return found if isinstance(found, JointDistribution) else None

    def on_resize(self) -> None:
        """Bin a heat map to the new size."""
        if self._joint is not None and self._wanted is not None:
            self._ask(self._wanted)

    @on(Arrived)
    def _take(self, event: Arrived) -> None:
        before, shown = self._shown, event.shown
        self._shown, self._wanted = shown, shown.wanted
        same = before is not None and same_axes(before, shown)
        if isinstance(shown.found, JointDistribution):
            self._show_map(shown, shown.found, same=same)
        elif isinstance(shown.found, ScatterSample):
            self._show_points(shown, shown.found, same=same)
        else:
            self._show_marginal(shown, shown.found, same=same)
        assert self._subject is not None
        self.query_one("#distribution-head", Line).set_text(heading(self._subject, shown, log_shades=self._log_shades))
        self.query_one("#distribution-notes", Line).set_text(" · ".join(shown.notes))
        if self.query_one(ContentSwitcher).current == NUMBERS:
            self._fill_numbers()
        else:
            self._switch(PLOT if self._joint is None else MAP)

    def _switch(self, name: str) -> None:
        """Show the picture or the numbers, and give them the keys."""
        self.query_one(ContentSwitcher).current = "distribution-plots" if name == PLOT else name
        if self.app.screen is self:
            self.query_one(f"#{name}").focus()

    def _show_marginal(self, shown: DistributionAnswer, found: MarginalFigure, *, same: bool) -> None:
        panel = found.figure.panels[0]
        self.query_one(SidePlot).display = False
        self.query_one(f"#{PLOT}", Plot).set_series(
            found.figure.drawn_series(panel), x_label=panel.x_label, y_label=panel.y_label, x_names=panel.x_names,
            x_unit=panel.x_unit, y_range=UNIT if shown.wanted.picture == "ecdf" else None, log_y=shown.wanted.log_up,
            keep_view=same,
        )  # fmt: skip
        self._read_plot()

    def _show_points(self, shown: DistributionAnswer, found: ScatterSample, *, same: bool) -> None:
        series, side = point_series(found), self.query_one(SidePlot)
        over = self._over or len(series) == 1
        side.display = not over
        x, y = x_limits(series), y_limits(series, EVERYWHERE)
        names = [column.name for column in shown.columns]
        parts = [series] if over else [series[:1], series[1:]]
        for plot, part in zip((self.query_one(f"#{PLOT}", Plot), side), parts, strict=False):
            plot.set_series(
                part, x_label=names[0], y_label=names[1], x_range=x, y_range=y, x_unit=found.x_unit,
                y_unit=found.y_unit, keep_view=same,
            )  # fmt: skip
        self._read_plot()

    def _show_map(self, shown: DistributionAnswer, found: JointDistribution, *, same: bool) -> None:
        self._view = self._view.with_whole_ranges(found)
        panes = joint_panes(found, None if self._map_count == 3 else self._map or 1, log=self._log_shades)
        widget, own = self.query_one(HeatMap), found.confidential
        widget.show_panes(panes, (shown.columns[0].name, shown.columns[1].name), keep_cursor=same)
        if same and self._centre is not None:
            widget.put_cursor((nearest_bin(own.x, self._centre[0]), nearest_bin(own.y, self._centre[1])))
        self._read_cell()

    def _fill_numbers(self) -> None:
        if self._shown is not None:
            heads, rows = shown_lines(self._shown)
            columns: list[TableColumn[Sequence[object]]] = [
                TableColumn(f"c{i}", head, max(12, min(28, len(head) + 1)), "right", cell=partial(_number_cell, i))
                for i, head in enumerate(heads)
            ]
            self.query_one(LiveGrid).show_table(GridTable(columns), list(rows))

    @on(Plot.CursorMoved)
    def _plot_moved(self, event: Plot.CursorMoved) -> None:
        event.stop()
        if not isinstance(event.plot, SidePlot):
            self.query_one(SidePlot).set_cursor(event.x)
            self._read_plot()

    @on(Plot.ViewChanged)
    def _plot_viewed(self, event: Plot.ViewChanged) -> None:
        if not isinstance(event.plot, SidePlot):
            self.query_one(SidePlot).show_ranges(event.x_range, event.y_range)

    def _read_plot(self) -> None:
        plot, shown, text = self.query_one(f"#{PLOT}", Plot), self._shown, HINT
        x, seen = plot.cursor_x, plot.x_range
        if shown is not None and x is not None and seen is not None:
            if isinstance(shown.found, ScatterSample):
                text = scatter_reading(shown, shown.found, x, (seen[1] - seen[0]) / max(1, plot.size.width - 8))
            elif isinstance(shown.found, MarginalFigure):
                text = marginal_reading(shown.found, x, plot.cursor_readings)
        self.query_one("#distribution-reading", Line).set_text(text)

    @on(HeatMap.HeatCursorMoved)
    def _read_cell(self) -> None:
        shown, found, at = self._shown, self._joint, self.query_one(HeatMap).cursor_bin
        text = HINT if shown is None or found is None or at is None else cell_reading(shown, found, at)
        self.query_one("#distribution-reading", Line).set_text(text)

    @on(HeatMap.ZoomRequested)
    def _zoom(self, event: HeatMap.ZoomRequested) -> None:
        if self._wanted is not None:
            place = self._cursor_place()
            self._view = HeatView() if event.factors is None else self._view.zoom(event.factors, place)
            self._ask(self._wanted)

    def _cursor_place(self) -> tuple[float, float] | None:
        """The middle of the bin under the cursor of a heat map, in the units of its axes."""
        found, at = self._joint, self.query_one(HeatMap).cursor_bin
        if found is None or at is None:
            return None
        return bin_centre(found.confidential.x, at[0]), bin_centre(found.confidential.y, at[1])

    def command_words(self) -> tuple[str, ...]:
        """The figures of the run, this one among them."""
        return () if self._run_id is None else ("figures", str(self._run_id))

    def make_exportable(self) -> ScreenExport | None:
        if self._shown is None:
            return None
        drawn = self.query_one(ContentSwitcher).current != NUMBERS
        return replace(exportable_of(self._shown, self._run_id), is_plot_shown=drawn)

    def action_picture(self, step: int) -> None:
        if self._shown is not None and self._wanted is not None:
            pictures = self._shown.pictures
            known = self._wanted.picture in pictures
            place = pictures.index(self._wanted.picture if known else self._shown.wanted.picture) + step
            self._ask(replace(self._wanted, picture=pictures[place % len(pictures)]))

    def action_variable(self, step: int) -> None:
        if self._wanted is not None:
            names = self._names
            place = names.index(self._wanted.x) + step
            self._ask_afresh(with_variable(self._wanted, names[place % len(names)]))

    def action_second(self, step: int) -> None:
        """Show the next variable beside the first; after the last, none."""
        if self._wanted is not None:
            others = [None, *(name for name in self._names if name != self._wanted.x)]
            place = others.index(self._wanted.y) + step
            self._ask_afresh(with_second(self._wanted, others[place % len(others)]))

    async def action_choose(self, which: str) -> None:
        wanted = self._wanted
        if wanted is None:
            return
        names = self._names if which == "x" else [name for name in self._names if name != wanted.x]
        choices = [*([] if which == "x" else ["none"]), *names]

        def answered(place: int | None) -> None:
            if place is not None:
                name = None if which == "y" and place == 0 else choices[place]
                self._ask_afresh(with_second(wanted, name) if which == "y" else with_variable(wanted, choices[place]))

        at = choices.index(wanted.x) if which == "x" else choices.index(wanted.y) if wanted.y else 0
        title = "Variable" if which == "x" else "Second variable"
        await self.sfumato.open(ChoiceDialog(title, len(choices), choices.__getitem__, at), answered)

    def action_dataset(self, step: int) -> None:
        """Show all datasets as mean and band, each of them, or the next one alone."""
        if self._wanted is not None and self._subject is not None and self._subject.draws:
            self._ask(with_draws(self._wanted, self._subject.draws, step))

    def action_log(self, which: str) -> None:
        if self._wanted is not None:
            log, log_up = self._wanted.log, self._wanted.log_up
            turned = (not log, log_up) if which == "log" else (log, not log_up)
            self._ask_afresh(replace(self._wanted, log=turned[0], log_up=turned[1]))

    async def action_records(self) -> None:
        """Ask, then show the records behind the bar or the cell under the cursor."""
        shown, subject = self._shown, self._subject
        if shown is None or subject is None:
            return
        found = drilled(shown, self.query_one(f"#{PLOT}", Plot).cursor_x, self.query_one(HeatMap).cursor_bin)
        if found is None:
            self.sfumato.say("Bars and cells of heat maps open their records: m changes the picture")
        elif not found.records:
            self.sfumato.say(f"No confidential record has {found.said}")
        else:
            await open_drilled(self.sfumato, subject.dataset_id, self._run_id, found)

    def action_shades(self) -> None:
        """Shade a heat map by the logarithm of the shares, or by their square root."""
        self._log_shades = not self._log_shades
        if self._wanted is not None:
            self._ask(self._wanted)

    def action_arrange(self) -> None:
        """Put clouds of points over each other, or beside; show one of the maps, or all."""
        if self._wanted is None or self._shown is None:
            return
        if self._joint is not None:
            self._map = (self._map + 1) % MAPS
        else:
            self._over = not self._over
        self._ask(self._wanted)

    def action_numbers(self) -> None:
        """Show the numbers in place of the picture, or the picture again."""
        if self.query_one(ContentSwitcher).current == NUMBERS:
            self._switch(PLOT if self._joint is None else MAP)
        else:
            self._fill_numbers()
            self._switch(NUMBERS)
