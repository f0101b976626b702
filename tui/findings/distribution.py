"""Dialog with distributions of one variable or two: the confidential data beside the released data.

The confidential records behind a bar or a cell are shown only after the user confirms.
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
    DistributionSubject,
    answer_query,
    answer_rows,
    cell_values_text,
    change_second,
    change_variable,
    export_answer,
    find_subject,
    has_same_axes,
    heading_text,
    marginal_text,
    next_datasets,
    point_series,
    records_behind,
    scatter_text,
)

if TYPE_CHECKING:
    from ..session.app_protocol import AppProtocol
    from .distributions import RecordsBehindCell


WIDTH = 14
NONE = "This project has no data yet."
HINT = "arrows move · + - zoom, 0 all · } second variable · enter records · ? keys"
MAPS = 4
"""Ways to arrange maps: all three, or one of them."""
UNIT = (0.0, 1.0)
EVERYWHERE = (float("-inf"), float("inf"))


@dataclass(frozen=True, eq=False)
class RecordsBehindPages:
    """Records of a dataset as pages of a grid; the values of a page are read when it is shown.

    directory: directory of the workspace
    dataset_id: the dataset
    records: numbers of the records, from 1
    names: variables to show
    """

    directory: Path
    dataset_id: int
    records: Sequence[int]
    names: Sequence[str]

    @property
    def columns(self) -> Sequence[DisplayColumn]:
        """Return the record number, then a column for each variable."""
        return (
            DisplayColumn("record", "record", 8, "right"),
            *(DisplayColumn(n, n, max(WIDTH, len(n)), "right") for n in self.names),
        )

    def count(self) -> int:
        """Return the number of records."""
        return len(self.records)

    def rows(self, offset: int, limit: int) -> Sequence[TableRow]:
        """Read the values of a page of records."""
        from sfumato.workspace.store.workspace import Workspace
        from sfumato.workspace.views.records import values_of_dataset

        numbers = self.records[offset : offset + limit]
        with Workspace.open(self.directory, read_only=True) as workspace:
            found: Sequence[Mapping[str, object]] = values_of_dataset(workspace, self.dataset_id, numbers)
        return [(number, *(own[name] for name in self.names)) for number, own in zip(numbers, found, strict=True)]


class RecordsBehindDialog(Dialog[None], OffersExport):
    """Dialog with the confidential records behind a bar or a cell; v hides them by closing it."""

    manual = "app distributions"

    BINDINGS: ClassVar[list[BindingType]] = [bind_act("reveal", "close", "Hide", show=True)]
    AUTO_FOCUS = "Grid"

    def __init__(self, pages: RecordsBehindPages, run_id: int | None, said: str) -> None:
        """Create the dialog; ``said`` describes what the records have in common."""
        super().__init__()
        self._pages, self._run_id, self._said = pages, run_id, said

    def compose(self) -> ComposeResult:
        """Yield what the records have in common, the records, and the keys."""
        with Vertical(classes="whole"):
            yield FrameEdge(name="drilled-head")
            with FrameSides():
                yield Grid(empty="…")
            yield FrameEdge(lower=True)
            yield KeyLine()

    def on_mount(self) -> None:
        """Show the heading and the records."""
        of = "confidential data" if self._run_id is None else f"confidential data of run {self._run_id}"
        records = count_noun(self._pages.count(), "record")
        self.query_one("#drilled-head", Line).set_text(f"{replace_unprintable(self._said)} · {records} of the {of}")
        self.query_one(Grid).set_source(self._pages)

    def make_exportable(self) -> ScreenExport | None:
        """Return the records for export, in a file that is named confidential."""
        where = "" if self._run_id is None else f"run-{self._run_id}-"
        return grid_exportable(self.query_one(Grid), f"confidential-{where}records")


def _number_cell(place: int, row: Sequence[object]) -> object:
    """Return the cell at this place of a row, a float as short text."""
    return number(value) if isinstance(value := row[place], float) else value


async def open_records_behind(app: AppProtocol, dataset_id: int, run_id: int | None, found: RecordsBehindCell) -> None:
    """Show the records behind a bar or cell, after the user confirms."""
    from sfumato.workspace.store.workspace import Workspace

    # Only names of variables are read here; values are read when a page is shown.
    with Workspace.open(app.directory, read_only=True) as workspace:
        names = workspace.find_dataset(dataset_id).schema.names
    # Which records they are reveals their values, so not even their numbers are shown before the question.
    pages = RecordsBehindPages(app.directory, dataset_id, found.records, names)

    def open_confirmed(yes: bool | None) -> None:
        """Open the dialog if the user has confirmed."""
        if yes:
            app.call_later(app.open, RecordsBehindDialog(pages, run_id, found.description))

    many = len(found.records)
    question = (
        f"Show {f'the {many:,} records' if many > 1 else 'the record'} with {replace_unprintable(found.description)}?"
    )
    await app.open(ConfirmDialog(question, CONSEQUENCE, "Show"), open_confirmed)


LABEL_ROOM, AROUND = 10, 4
PLOT, SIDE, MAP, NUMBERS = (f"distribution-{part}" for part in ("plot", "side", "map", "numbers"))


class SidePlot(Plot, can_focus=False):
    """Plot of the released points; its view follows that of the confidential ones."""

    first_colour = 1


class DistributionsDialog(Dialog[None], OffersExport):
    """Dialog with distributions of one variable or two, read with a cursor."""

    manual = "app distributions"

    DEFAULT_CSS = """
    DistributionsDialog #distribution-body, DistributionsDialog #distribution-plots { height: 1fr; }
    DistributionsDialog #distribution-plots > * { width: 1fr; }
    DistributionsDialog #distribution-notes { color: $text-muted; }
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
    class SubjectFound(Message):
        """Message that the data were found; ``subject`` is None if there are none."""

        subject: DistributionSubject | None

    @dataclass
    class DistributionReady(Message):
        """Message with a computed picture."""

        answer: DistributionAnswer

    def __init__(self, project_id: int, run_id: int | None, variable: str | None = None) -> None:
        """Create the dialog; ``variable`` is shown first, if the data have it."""
        super().__init__()
        self._project_id, self._run_id, self._first = project_id, run_id, variable
        self._subject: DistributionSubject | None = None
        self._shelf = ColumnCache()
        self._wanted: DistributionQuery | None = None
        self._shown: DistributionAnswer | None = None
        self._map, self._over = 0, False
        self._log_shades = False
        self._view = HeatView()
        self._centre: tuple[float, float] | None = None

    def compose(self) -> ComposeResult:
        """Yield the title, the picture or its numbers, the text at the cursor, what is left out, and the keys."""
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
        """Find the data in a thread."""
        self.query_one(SidePlot).display = False
        project_id, run_id = self._project_id, self._run_id
        self.compute(lambda workspace: find_subject(workspace, project_id, run_id), self.SubjectFound)

    @on(SubjectFound)
    def _take_subject(self, event: SubjectFound) -> None:
        """Request a histogram of the first variable, or say that there are no data."""
        subject = self._subject = event.subject
        if subject is None:
            self.query_one("#distribution-head", Line).set_text(NONE)
            return
        likely = (self._first, *(subject.run.recipe.released if subject.run else ()))
        self._request_picture(
            DistributionQuery(
                next((name for name in likely if name in self._variable_names), self._variable_names[0]),
                None,
                "histogram",
            )
        )

    def _request_picture(self, wanted: DistributionQuery, *, keep_place: bool = True) -> None:
        """Compute a picture in a thread; a later call discards the answer of an earlier one."""
        subject, shelf = self._subject, self._shelf
        if subject is None:
            return
        self._centre = self._cursor_place() if keep_place else None
        # A heat map is binned for the room it has: more bins than cells could not be seen.
        room = lay_out_panes((self.size.width, self.size.height - AROUND), self._map_count, LABEL_ROOM)
        columns, rows = most_bins(room)
        across, up = (
            BinWindow(columns, self._view.visible_range("across")),
            BinWindow(rows, self._view.visible_range("up")),
        )
        asked = self._wanted = replace(wanted, across=across, up=up)
        self.compute(lambda workspace: answer_query(workspace, subject, shelf, asked), self.DistributionReady)

    def _request_new_axes(self, wanted: DistributionQuery) -> None:
        """Compute a picture on other axes."""
        self._view = HeatView()
        self._request_picture(wanted, keep_place=False)

    @property
    def _map_count(self) -> int:
        """Return the number of heat maps in view: 3 if a release is compared and all are shown, otherwise 1."""
        return 3 if self._map == 0 and self._subject is not None and self._subject.n_datasets else 1

    @property
    def _variable_names(self) -> list[str]:
        """Return the names of the variables."""
        return [variable.name for variable in self._subject.variables] if self._subject else []

    @property
    def _shown_joint(self) -> JointDistribution | None:
        """Return the joint distribution if a heat map is shown, otherwise None."""
        found = self._shown.figure_data if self._shown is not None else None
        return found if isinstance(found, JointDistribution) else None

    def on_resize(self) -> None:
        """Bin a heat map to the new size."""
        if self._shown_joint is not None and self._wanted is not None:
            self._request_picture(self._wanted)

    @on(DistributionReady)
    def _show_answer(self, event: DistributionReady) -> None:
        """Show a computed picture, and keep the cursor and the view if its axes are those of the previous one."""
        before, shown = self._shown, event.answer
        # A picture that was not possible was replaced; later steps start from the one that is shown.
        self._shown, self._wanted = shown, shown.final_query
        same = before is not None and has_same_axes(before, shown)
        if isinstance(shown.figure_data, JointDistribution):
            self._show_map(shown, shown.figure_data, same=same)
        elif isinstance(shown.figure_data, ScatterSample):
            self._show_points(shown, shown.figure_data, same=same)
        else:
            self._show_marginal(shown, shown.figure_data, same=same)
        assert self._subject is not None
        self.query_one("#distribution-head", Line).set_text(
            heading_text(self._subject, shown, log_shades=self._log_shades)
        )
        self.query_one("#distribution-notes", Line).set_text(" · ".join(shown.notes))
        if self.query_one(ContentSwitcher).current == NUMBERS:
            self._fill_numbers()
        else:
            self._switch_view(PLOT if self._shown_joint is None else MAP)

    def _switch_view(self, name: str) -> None:
        """Show the picture or the numbers, and focus them."""
        self.query_one(ContentSwitcher).current = "distribution-plots" if name == PLOT else name
        if self.app.screen is self:
            self.query_one(f"#{name}").focus()

    def _show_marginal(self, shown: DistributionAnswer, found: MarginalFigure, *, same: bool) -> None:
        """Draw the distribution of one variable."""
        panel = found.figure.panels[0]
        self.query_one(SidePlot).display = False
        self.query_one(f"#{PLOT}", Plot).set_series(
            found.figure.drawn_series(panel), x_label=panel.x_label, y_label=panel.y_label, x_names=panel.x_names,
            x_unit=panel.x_unit, y_range=UNIT if shown.final_query.picture == "ecdf" else None, log_y=shown.final_query.log_up,
            keep_view=same,
        )  # fmt: skip
        self._read_plot()

    def _show_points(self, shown: DistributionAnswer, found: ScatterSample, *, same: bool) -> None:
        """Draw clouds of points, the confidential and the released beside or over each other."""
        series, side = point_series(found), self.query_one(SidePlot)
        over = self._over or len(series) == 1
        side.display = not over
        # Both plots have the limits of all points; with limits of their own the clouds could not be compared.
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
        """Draw the heat maps."""
        self._view = self._view.with_whole_ranges(found)
        panes = joint_panes(found, None if self._map_count == 3 else self._map or 1, log=self._log_shades)
        widget, own = self.query_one(HeatMap), found.confidential
        widget.show_panes(panes, (shown.columns[0].name, shown.columns[1].name), keep_cursor=same)
        # The bins may be others than before, so the cursor goes to the bin nearest to the old bin's centre.
        if same and self._centre is not None:
            widget.put_cursor((nearest_bin(own.x, self._centre[0]), nearest_bin(own.y, self._centre[1])))
        self._read_cell()

    def _fill_numbers(self) -> None:
        """Fill the table with the numbers of the picture."""
        if self._shown is not None:
            heads, rows = answer_rows(self._shown)
            columns: list[TableColumn[Sequence[object]]] = [
                TableColumn(f"c{i}", head, max(12, min(28, len(head) + 1)), "right", cell=partial(_number_cell, i))
                for i, head in enumerate(heads)
            ]
            self.query_one(LiveGrid).show_table(GridTable(columns), list(rows))

    @on(Plot.CursorMoved)
    def _plot_moved(self, event: Plot.CursorMoved) -> None:
        """Move the cursor of the other plot along, and show the values at it."""
        event.stop()
        if not isinstance(event.plot, SidePlot):
            self.query_one(SidePlot).set_cursor(event.x)
            self._read_plot()

    @on(Plot.ViewChanged)
    def _plot_viewed(self, event: Plot.ViewChanged) -> None:
        """Show the same range in the other plot."""
        if not isinstance(event.plot, SidePlot):
            self.query_one(SidePlot).show_ranges(event.x_range, event.y_range)

    def _read_plot(self) -> None:
        """Show the values at the cursor of the plot."""
        plot, shown, text = self.query_one(f"#{PLOT}", Plot), self._shown, HINT
        x, seen = plot.cursor_x, plot.x_range
        if shown is not None and x is not None and seen is not None:
            if isinstance(shown.figure_data, ScatterSample):
                text = scatter_text(shown, shown.figure_data, x, (seen[1] - seen[0]) / max(1, plot.size.width - 8))
            elif isinstance(shown.figure_data, MarginalFigure):
                text = marginal_text(shown.figure_data, x, plot.cursor_readings)
        self.query_one("#distribution-reading", Line).set_text(text)

    @on(HeatMap.HeatCursorMoved)
    def _read_cell(self) -> None:
        """Show the shares in the bin under the cursor of the heat map."""
        shown, found, at = self._shown, self._shown_joint, self.query_one(HeatMap).cursor_bin
        text = HINT if shown is None or found is None or at is None else cell_values_text(shown, found, at)
        self.query_one("#distribution-reading", Line).set_text(text)

    @on(HeatMap.ZoomRequested)
    def _zoom_map(self, event: HeatMap.ZoomRequested) -> None:
        """Zoom the heat map around the cursor; without factors show all of it."""
        if self._wanted is not None:
            place = self._cursor_place()
            self._view = HeatView() if event.factors is None else self._view.zoom(event.factors, place)
            self._request_picture(self._wanted)

    def _cursor_place(self) -> tuple[float, float] | None:
        """Return the centre of the bin under the cursor of a heat map, in the units of its axes."""
        found, at = self._shown_joint, self.query_one(HeatMap).cursor_bin
        if found is None or at is None:
            return None
        return bin_centre(found.confidential.x, at[0]), bin_centre(found.confidential.y, at[1])

    def command_words(self) -> tuple[str, ...]:
        """Return the command for the figures of the run, this one among them."""
        return () if self._run_id is None else ("figures", str(self._run_id))

    def make_exportable(self) -> ScreenExport | None:
        """Return the picture and its numbers for export."""
        if self._shown is None:
            return None
        drawn = self.query_one(ContentSwitcher).current != NUMBERS
        # The proposed file has the format of what is shown: a plot or its numbers.
        return replace(export_answer(self._shown, self._run_id), is_plot_shown=drawn)

    def action_picture(self, step: int) -> None:
        """Show the next picture of the same variables or the previous one."""
        if self._shown is not None and self._wanted is not None:
            pictures = self._shown.pictures
            # The requested picture may be impossible for these variables; then the one that is shown instead counts.
            known = self._wanted.picture in pictures
            place = pictures.index(self._wanted.picture if known else self._shown.final_query.picture) + step
            self._request_picture(replace(self._wanted, picture=pictures[place % len(pictures)]))

    def action_variable(self, step: int) -> None:
        """Show the next variable or the previous one."""
        if self._wanted is not None:
            names = self._variable_names
            place = names.index(self._wanted.x) + step
            self._request_new_axes(change_variable(self._wanted, names[place % len(names)]))

    def action_second(self, step: int) -> None:
        """Show the next second variable; after the last, none."""
        if self._wanted is not None:
            # None among the choices lets the same key remove the second variable.
            others = [None, *(name for name in self._variable_names if name != self._wanted.x)]
            place = others.index(self._wanted.y) + step
            self._request_new_axes(change_second(self._wanted, others[place % len(others)]))

    async def action_choose(self, which: str) -> None:
        """Let the user choose the first variable or the second from a list."""
        wanted = self._wanted
        if wanted is None:
            return
        names = self._variable_names if which == "x" else [name for name in self._variable_names if name != wanted.x]
        choices = [*([] if which == "x" else ["none"]), *names]

        def show_chosen(place: int | None) -> None:
            """Show the variable at this place of the list."""
            if place is not None:
                name = None if which == "y" and place == 0 else choices[place]
                self._request_new_axes(
                    change_second(wanted, name) if which == "y" else change_variable(wanted, choices[place])
                )

        at = choices.index(wanted.x) if which == "x" else choices.index(wanted.y) if wanted.y else 0
        title = "Variable" if which == "x" else "Second variable"
        await self.sfumato.open(ChoiceDialog(title, len(choices), choices.__getitem__, at), show_chosen)

    def action_dataset(self, step: int) -> None:
        """Show all datasets as mean and band, each of them, or the next one alone."""
        if self._wanted is not None and self._subject is not None and self._subject.n_datasets:
            self._request_picture(next_datasets(self._wanted, self._subject.n_datasets, step))

    def action_log(self, which: str) -> None:
        """Switch the logarithmic scale of one axis on or off."""
        if self._wanted is not None:
            log, log_up = self._wanted.log, self._wanted.log_up
            turned = (not log, log_up) if which == "log" else (log, not log_up)
            self._request_new_axes(replace(self._wanted, log=turned[0], log_up=turned[1]))

    async def action_records(self) -> None:
        """Ask, then show the records behind the bar or the cell under the cursor."""
        shown, subject = self._shown, self._subject
        if shown is None or subject is None:
            return
        found = records_behind(shown, self.query_one(f"#{PLOT}", Plot).cursor_x, self.query_one(HeatMap).cursor_bin)
        if found is None:
            self.sfumato.say("Bars and cells of heat maps open their records: m changes the picture")
        elif not found.records:
            self.sfumato.say(f"No confidential record has {found.description}")
        else:
            await open_records_behind(self.sfumato, subject.dataset_id, self._run_id, found)

    def action_shades(self) -> None:
        """Switch between shades by the logarithm and by the square root of the shares."""
        self._log_shades = not self._log_shades
        if self._wanted is not None:
            self._request_picture(self._wanted)

    def action_arrange(self) -> None:
        """Switch between clouds of points over and beside each other; or show the next map alone, or all."""
        if self._wanted is None or self._shown is None:
            return
        if self._shown_joint is not None:
            self._map = (self._map + 1) % MAPS
        else:
            self._over = not self._over
        self._request_picture(self._wanted)

    def action_numbers(self) -> None:
        """Switch between the picture and its numbers."""
        if self.query_one(ContentSwitcher).current == NUMBERS:
            self._switch_view(PLOT if self._shown_joint is None else MAP)
        else:
            self._fill_numbers()
            self._switch_view(NUMBERS)
