"""Tab with the studies of a run, one at a time: answers, curves with bands and limits, as plots or numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import ContentSwitcher, Static

from sfumato.engine.recipe.thresholds import Verdict
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.keys.own_keys import current_key
from sfumato.tui.parts.variable_titles import variable_titles
from sfumato.tui.session.export import ScreenExport
from sfumato.tui.session.messages import WorkspaceChanged
from sfumato.tui.widgets.facts import wrap_text
from sfumato.tui.widgets.grid import LiveGrid
from sfumato.tui.widgets.lines import KeyLine, Line, Scroll
from sfumato.tui.widgets.panel import FrameEdge, FrameSides
from sfumato.tui.widgets.plot import Plot
from sfumato.tui.widgets.tables import keyed_table, table_columns
from sfumato.workspace.plots.axes import AxisUnit
from sfumato.workspace.plots.figure import Panel
from sfumato.workspace.plots.series import Series, point_positions
from sfumato.workspace.store.runs import RunState, RunSummary, count_records_and_units, find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_verdicts
from sfumato.workspace.views.studies import StudyCurve, StudyResult, read_studies, read_study_curves
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.page import Dialog, OffersExport, RunPane
from .behind import ExplainsPoint
from .dial import DialPane, Place
from .dial_curves import LEAST_LINES, DialCurves
from .study_answers import (
    LimitView,
    PlaneView,
    axis_slider,
    make_study_view,
    place_text,
    spread_text,
    suggested_place,
    tables_text,
)
from .study_lattice import LatticeView
from .study_views import CurveView, StudyView, group_by_study, range_from_zero

NONE = "No study in the plan of this run; {plan} and {add} add one. Found by what he knows:"
HINT = "left and right move the cursor, + - zoom, 0 shows all"
PLOT, NUMBERS, PLANES = "study-plot", "study-numbers", "study-planes"
NARROW = 100
ROOM_FOR_BOTH = 19
"""Lines from which on a plot and its numbers are shown together."""
MOST_FINDING_LINES, LOW_FINDING_LINES, LOW = 3, 2, 30
"""Most lines of a finding, those in a low terminal, and lines of a terminal below which it is one."""
AROUND_QUESTION = 4
"""Cells of a terminal's width that a question cannot use: the frame, and a blank on either side."""
LEAST_PLOT, PLOT_SHARE = 14, 0.65
"""Lines, and share of them, that a plot keeps where its numbers stand below it."""
ROOM_FOR_LEVEL = 11
"""Lines from which on a plot has the numbers of the level at its cursor below it."""
LEVEL_LINES = 2
"""Lines of the head of the numbers and of one level."""
WHOLE_LOW_PLOT = 14
"""Lines that a plot has in a low terminal before its numbers have more lines than the head and one level."""


def whole_sentences(text: Content, width: int, most: int) -> Content:
    """Return a text without the last sentences that do not fit into ``most`` lines of ``width`` cells."""
    ends = [match.start() + 1 for match in re.finditer(r"\.(?= )", text.plain)]
    for end in (len(text), *reversed(ends)):
        if len(wrap_text(text.plain[:end], width)) <= most:
            return text[:end]
    return text


def _bold_first_sentence(text: str) -> Content:
    """Return what a study found, its first sentence, which answers the question, in the largest weight."""
    first = re.match(r".*?\.(?= |$)", text)
    end = len(text) if first is None else first.end()
    return Content.assemble((text[:end], "bold"), text[end:])


def series_on_axis(panel: Panel) -> tuple[Sequence[Series], AxisUnit]:
    """Return a panel's series for a plot, with logarithms of x if its axis is logarithmic, and the unit of x."""
    if not panel.log_x:
        return panel.series, panel.x_unit
    return [replace(one, x=np.log10(one.x)) for one in panel.series], "log10"


class PlanePlot(Plot, can_focus=False):
    """Plot of a plane, whose keys move along the axis instead."""


class AnswerTables(Scroll):
    """Tables of the answers of a study and of its curves, without the columns that do not fit."""

    _told: tuple[StudyResult, str] | None = None

    def show_answers(self, study: StudyResult, shown: str) -> None:
        """Show the answers of a study, with the shown curve marked."""
        self._told = study, shown
        self._fit_tables()

    def on_resize(self) -> None:
        """Show as many columns as there is room for now."""
        self._fit_tables()

    def _fit_tables(self) -> None:
        """Write the tables for the width of the widget."""
        if self._told is not None:
            self.show_text(tables_text(*self._told, self.size.width - self.styles.scrollbar_size_vertical))


class StudyPlanes(Container, can_focus=True):
    """Planes of a study and its answers, all in view if there is room, otherwise one at a time."""

    DEFAULT_CSS = """
    StudyPlanes { height: 1fr; layout: grid; grid-size: 2 2; }
    StudyPlanes.-narrow { layout: vertical; }
    """

    def __init__(self, planes: int) -> None:
        """Create as many plots as the study with most planes needs, and the tables."""
        super().__init__(id=PLANES)
        self._parts: Sequence[Plot | Vertical] = (*(PlanePlot() for _ in range(planes)), Vertical(AnswerTables()))
        self._part = 0

    def compose(self) -> ComposeResult:
        yield from self._parts

    def on_mount(self) -> None:
        """Show as many parts as there is room for."""
        self.show_parts()

    def on_resize(self) -> None:
        """Show as many parts as there is room for, and keep the focus within them."""
        held = self.has_focus_within
        self.show_parts()
        if held:
            self.take_focus()

    def show_parts(self, step: int = 0) -> None:
        """Show all parts, or in a narrow terminal the part ``step`` places further."""
        narrow = self.app.size.width < NARROW
        self._part = (self._part + step) % len(self._parts)
        self.set_class(narrow, "-narrow")
        for place, part in enumerate(self._parts):
            part.display = not narrow or place == self._part

    def take_focus(self) -> None:
        """Focus the tables, to be scrolled, if they are in view; otherwise the whole widget."""
        (self.query_one(Scroll) if self._parts[-1].display else self).focus()

    def draw_planes(self, view: PlaneView, picture: int, at: int) -> None:
        """Draw every plane with a mark at its place on the axis, and write the tables."""
        plots = [part for part in self._parts if isinstance(part, Plot)]
        spare = [Panel("", ())] * len(plots)
        # A study may have fewer planes than the one for which the plots were mounted.
        for plot, one in zip(plots, [*view.plane_panels(picture, at), *spare], strict=False):
            unit = series_on_axis(one)[1]
            plot.set_series(
                series_on_axis(one)[0], title=one.title, x_label=one.x_label, y_label=one.y_label, x_unit=unit
            )
        self.query_one(AnswerTables).show_answers(view.study, view.pictures[picture])


class StudyPlot(Plot):
    """Plot of a study: its intervals are narrow, and shaded cells would fall apart into blocks."""

    has_dotted_bounds = True


class StudyBody(ContentSwitcher):
    """Plot and numbers of a study, together where there is room, else the current one; or its planes."""

    _rows = _level_lines = 0
    tells_level = False
    """Whether the numbers have a row for each level of a plot."""
    DEFAULT_CSS = """
    StudyBody { height: 1fr; }
    StudyBody Plot { height: 2fr; }
    StudyBody LiveGrid { height: 1fr; }
    """

    def watch_current(self, old: str | None, new: str | None) -> None:
        """Show the new part, and what goes with it."""
        super().watch_current(old, new)
        self.arrange_parts()

    def on_resize(self) -> None:
        """Show as much as there is room for now."""
        self.arrange_parts()

    def arrange_parts(self, rows: int | None = None) -> None:
        """Show the plot and below it its numbers where both have room; ``rows`` is how many these are from now on."""
        self._rows = self._rows if rows is None else rows
        plot, grid = self.query_one(f"#{PLOT}", Plot), self.query_one(f"#{NUMBERS}", LiveGrid)
        is_pair, height = self.is_pair, self.size.height
        has_level = not is_pair and self.tells_level and self.current == PLOT and height >= ROOM_FOR_LEVEL
        for part in (plot, grid):
            part.display = part.id == self.current or is_pair or (has_level and part is grid)
        # The head of the grid, its rows, and the bar that scrolls them sideways.
        wanted = min(self._rows + 2, height - max(LEAST_PLOT, round(PLOT_SHARE * height)))
        few = self._level_lines = max(LEVEL_LINES, min(self._rows + 1, height - WHOLE_LOW_PLOT))
        grid.styles.height = wanted if is_pair else few if has_level else "1fr"

    @property
    def has_one_level(self) -> bool:
        """Return whether the numbers below a plot are those of the level at its cursor."""
        grid = self.query_one(f"#{NUMBERS}", LiveGrid)
        return self.current == PLOT and not self.is_pair and grid.display and self._level_lines == LEVEL_LINES

    @property
    def is_pair(self) -> bool:
        """Return whether a plot and its numbers are shown together, all of them."""
        return self.current in (PLOT, NUMBERS) and self.size.height >= ROOM_FOR_BOTH


class StudiesPane(ExplainsPoint, RunPane):
    """Tab with one picture of one study at a time.

    ``first`` leaves out studies without answers. It is "planes" or "limits": the kind of study that is shown first, if
    there is one.
    """

    DEFAULT_CSS = """
    StudiesPane #study-question { color: $text-muted; }
    StudiesPane #study-finding { padding: 0 1; height: auto; max-height: 3; }
    StudiesPane #study-head { color: $text-muted; }
    StudiesPane #study-slider { color: $primary; }
    """
    command_name = "figures"
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("picture", "measure(1)", "Measure", show=True),
        bind_act("previous_picture", "measure(-1)", "Previous measure"),
        bind_act("next", "study(1)", "Study", show=True),
        bind_act("previous", "study(-1)", "Previous study"),
        bind_act("log_scale", "log", "Log scale", show=True),
        bind_act("table", "numbers", "Numbers", show=True),
        bind_act("right", "place(1)", "Level", show=True),
        bind_act("left", "place(-1)", "Lower threshold"),
        bind_act("suggested", "suggested", "Suggested", show=True),
        bind_act("next_pane", "part", "Next plot", show=True),
        bind_act("mark", "know", "Known or not", show=True),
    ]

    @dataclass
    class StudiesReady(Message):
        """Message with the studies of a run and the curves of other runs to draw with them.

        run_id: the run
        curves: curves of its studies
        studies: its studies with answers
        over: curves of other runs, by run
        unit_noun: what the units of the run are, in the plural
        records: number of its confidential records
        titles: titles of its variables, by name
        verdicts: verdicts on the limits of its plan
        """

        run_id: int
        curves: Sequence[StudyCurve]
        studies: Sequence[StudyResult]
        over: Mapping[int, Sequence[StudyCurve]]
        unit_noun: str = ""
        records: int | None = None
        titles: Mapping[str, str] = field(default_factory=dict)
        verdicts: Sequence[Verdict] = ()

    def __init__(self, first: str = "") -> None:
        """Create the tab."""
        super().__init__(id="sweep")
        self._first = first
        self._views: Sequence[StudyView] = ()
        self._study = self._picture = self._place = 0
        self._listed: int | None = None
        self._drawn_run: int | None = None
        self._marked: tuple[int, ...] = ()
        self._over: Mapping[int, Sequence[StudyCurve]] = {}
        self._axis: tuple[str, AxisUnit] = "", "number"
        self._wants_lattice = False
        self._log: bool | None = None

    def compose(self) -> ComposeResult:
        """Yield the question, what was found, the measure, its plot and numbers, the axis of the planes, and the text
        at the cursor.
        """
        yield Line(name="study-question")
        yield Static("", id="study-finding", markup=False)
        yield Line(name="study-head")
        yield Place(DialPane(leads_to_studies=False), id="study-dial")
        yield DialCurves()
        with StudyBody(initial=PLOT):
            yield StudyPlot(id=PLOT)
            yield LiveGrid(empty="…", id=NUMBERS)
        yield Line(name="study-slider")
        yield Line(name="study-reading")

    def on_mount(self) -> None:
        """Hide the lines that not every study has."""
        for name in ("#study-question", "#study-finding", "#study-slider", "#study-dial"):
            self.query_one(name).display = False

    def load_run(self) -> None:
        """Read the studies of the run, and the curves of the marked runs."""
        if self.line is not None:
            run_id, marked, answering = self.line.run.id, self._marked, bool(self._first)

            def query(workspace: Workspace) -> StudiesPane.StudiesReady:
                """Read the curves and studies."""
                own = [] if answering else read_study_curves(workspace, run_id)
                # The shown run may be marked too; its curves would be drawn twice.
                over = {other: read_study_curves(workspace, other) for other in marked if other != run_id}
                run = find_run(workspace, run_id)
                return self.StudiesReady(
                    run_id,
                    own,
                    read_studies(workspace, run_id),
                    over,
                    run.recipe.schema.unit_noun,
                    count_records_and_units(workspace, run),
                    variable_titles(run.recipe_toml),
                    read_verdicts(workspace, run_id),
                )

            self.read(query, lambda found: found)

    def overlay_runs(self, run_ids: tuple[int, ...]) -> None:
        """Draw the releases of these runs too, from the next time that the studies are shown."""
        # Without a run the tab reads again as soon as it is shown.
        self._marked, self.line = run_ids, None

    @on(StudiesReady)
    async def _show_studies(self, event: StudiesReady) -> None:
        """Show the studies, unless another run is shown by now."""
        if self.line is None or event.run_id != self.line.run.id:
            return
        drawn = [
            CurveView(measures, event.over, event.unit_noun, event.records, event.titles, event.verdicts)
            for measures in group_by_study(event.curves)
        ]
        answered = [make_study_view(study, event.records, event.titles) for study in event.studies]
        self._views, self._over = [*drawn, *answered], event.over
        same = event.run_id == self._drawn_run
        if not same:
            kinds = [isinstance(view, PlaneView) == (self._first == "planes") for view in self._views]
            self._study, self._picture = kinds.index(True) if self._first and True in kinds else 0, 0
            self._set_suggested_place()
        await self._mount_planes()
        self._draw_study(keep_view=same)
        self._choose_lattice()
        if not same and self._first:
            self.take_focus()
        self._drawn_run = event.run_id

    async def _mount_planes(self) -> None:
        """Mount the planes when a study first has some."""
        most = max(
            (len(view.study.method.study.planes) for view in self._views if isinstance(view, PlaneView)), default=0
        )
        if most and not self.query(StudyPlanes):
            planes = StudyPlanes(most)
            planes.display = False
            await self.query_one(ContentSwitcher).mount(planes)

    @property
    def current_view(self) -> StudyView | None:
        """Return the view of the shown study; None without a study."""
        return self._views[self._study % len(self._views)] if self._views else None

    @property
    def lattice_view(self) -> LatticeView | None:
        """Return the view of the shown study if it is of subsets of variables, otherwise None."""
        return self.current_view if isinstance(self.current_view, LatticeView) else None

    @property
    def plane_view(self) -> PlaneView | None:
        """Return the view of the shown study if it has planes, otherwise None."""
        return self.current_view if isinstance(self.current_view, PlaneView) else None

    @property
    def _is_logarithmic(self) -> bool:
        """Return whether the axis is logarithmic: as chosen here or before, else as the picture suggests."""
        view = self.current_view
        if view is None or not view.is_logarithmic:
            return False
        suggested = self._log is None and view.suggests_log(self._picture)
        return self.sfumato.state.log or suggested

    def _draw_study(self, *, keep_view: bool = False) -> None:
        """Draw the shown study, or say why there is none; ``keep_view`` keeps the range in view."""
        view, head = self.current_view, self.query_one("#study-head", Line)
        self.query_one("#study-slider").display = self.plane_view is not None
        self._show_study_answer()
        self._show_dial()
        if view is None:
            keys = {name: current_key(self.app, act) for name, act in (("plan", "plan"), ("add", "add"))}
            none, *error = self.empty_text("studies", NONE.format(**keys)).split("\n")
            self.query_one(f"#{PLOT}", Plot).set_series([], empty=error[0] if error else " ")
            head.set_text(none)
            # The numbers of the run that was shown before must not stand below that.
            self.query_one(LiveGrid).forget_rows()
            self.query_one(StudyBody).arrange_parts(0)
            self.query_one("#study-reading", Line).set_text("")
            return
        head.set_text(self._heading_text(view))
        switcher = self.query_one(ContentSwitcher)
        if self.plane_view is not None:
            switcher.current = PLANES
            self._draw_planes(self.plane_view)
            return
        if switcher.current == PLANES:
            switcher.current = PLOT
            self.take_focus()
        self._switch_to_list(switcher)
        plot, drawn = self.query_one(f"#{PLOT}", Plot), view.panel_at(self._picture)
        log = self._is_logarithmic
        if isinstance(view, LimitView):
            drawn = replace(drawn, series=tuple(view.plot_series(self._picture)))
        if isinstance(view, CurveView):
            drawn = replace(drawn, series=tuple(view.plot_series(self._picture)))
        series, unit = series_on_axis(drawn)
        # A range makes sense only on the axis on which it was chosen.
        keep_view = keep_view and self._axis == (drawn.x_label, unit)
        self._axis = drawn.x_label, unit
        # One axis for all curves, from 0 unless it is logarithmic, so that a small change looks small.
        whole = range_from_zero(series) if isinstance(view, CurveView) and not log else None
        # The line above the plot names what is drawn.
        plot.set_series(
            series, x_label=drawn.x_label, y_range=whole, log_y=log, x_unit=unit, keep_view=keep_view,
            reads_in_legend=not isinstance(view, CurveView | LimitView),
            name_of_zero=view.name_of_zero if isinstance(view, CurveView) else "",
        )  # fmt: skip
        positions = point_positions(series) if isinstance(view, CurveView) else np.empty(0)
        opens = plot.cursor_x is None and not keep_view and positions.size > 0
        if opens:
            # The legend has the values of the first level without a key, and the hint says how to move on.
            plot.set_cursor(float(positions[0]))
        self._fill_numbers()
        self.query_one(StudyBody).arrange_parts()
        self._show_reading(None if opens else plot.cursor_x)

    def _switch_to_list(self, switcher: ContentSwitcher) -> None:
        """Show a study of known variables as a list first, other studies as a plot."""
        here = self._study if self.lattice_view is not None else None
        # The user may switch from list to plot; only another study resets the choice.
        if here != self._listed:
            switcher.current = PLOT if here is None else NUMBERS
            self._listed = here
            if self.has_focus_within:
                self.take_focus()

    def _draw_planes(self, view: PlaneView) -> None:
        """Draw the planes with the place on the axis, and describe the place."""
        name, at = view.pictures[self._picture], self._place
        self.query_one(StudyPlanes).draw_planes(view, self._picture, at)
        self.query_one("#study-slider", Line).set_text(axis_slider(view.study, name, at, max(20, self.size.width - 24)))
        told = place_text(view.study, name, at).split(" · ")
        # What does not fit is left out whole; the axis and the tables have it.
        fits = [
            one for n in range(len(told), 0, -1) if cell_len(one := " · ".join(told[:n])) <= max(1, self.size.width - 2)
        ]
        self.query_one("#study-reading", Line).set_text(fits[0] if fits else told[0])

    def _show_study_answer(self) -> None:
        """Show the question of the study, and what its numbers say."""
        view, question, finding = (
            self.current_view,
            self.query_one("#study-question", Line),
            self.query_one("#study-finding", Static),
        )
        question.display = view is not None
        answer = (
            None
            if view is None
            else view.picture_answer(self._picture) or _bold_first_sentence(view.finding_text(self._picture))
        )
        finding.display = bool(answer)
        if view is not None and answer is not None:
            place = (
                f"   study {self._study % len(self._views) + 1} of {len(self._views)}" if len(self._views) > 1 else ""
            )
            settings = f"   {replace_unprintable(view.settings_text)}" if view.settings_text else ""
            asked, briefly = replace_unprintable(view.question), replace_unprintable(view.short_question)
            # Settings are left out from the last one on before the name of the study is cut.
            parts = settings.split(", ")
            told = [place + ", ".join(parts[:kept]) for kept in range(len(parts), -1, -1)]
            forms = [(asked, told[0])] + [(briefly, one) for one in told] + [(briefly, "")]
            room = max(1, self.app.size.width - AROUND_QUESTION)
            shown = next((one for one in forms if cell_len(one[0] + one[1]) <= room), forms[-1])
            question.set_text(Content.assemble(shown[0], (shown[1], "$text-muted")))
            # In a low terminal the table, which has the values, needs the line.
            is_low = isinstance(view, CurveView) and self.app.size.height < LOW
            finding.update(whole_sentences(answer, room, LOW_FINDING_LINES if is_low else MOST_FINDING_LINES))

    def _show_dial(self) -> None:
        """Show the intruder's dial where the run has no study."""
        needed = not self._views and self.line is not None and self.line.run.state is RunState.DONE
        self.query_one("#study-dial").display = needed
        self.query_one(ContentSwitcher).display = not needed
        self.query_one(DialCurves).display = False
        if needed:
            had_focus = self.has_focus_within
            self.query_one(DialPane).show_run(self.line)
            self._draw_dial()
            if had_focus:
                self.take_focus()

    @on(DialPane.DialChanged)
    def _draw_dial(self) -> None:
        """Draw whom the intruder finds below the dial, where it stands in place of studies."""
        pane, curves = self.query_one(DialPane), self.query_one(DialCurves)
        dial, variable = pane.dial, pane.variable
        is_drawn = self.query_one("#study-dial").display and dial is not None and variable is not None
        curves.display = is_drawn and self.size.height - pane.size.height >= LEAST_LINES
        if curves.display and dial is not None and variable is not None:
            curves.draw_dial(dial, variable)

    def show_lattice(self) -> None:
        """Show the study of every subset first, now or once the studies are read; others if there is none."""
        self._wants_lattice = True
        self._choose_lattice()

    def _choose_lattice(self) -> None:
        """Choose the study of every subset if it is wanted and there."""
        places = [at for at, view in enumerate(self._views) if isinstance(view, LatticeView)]
        if self._wants_lattice and self._views:
            self._wants_lattice = False
            if places:
                self._study, self._picture = places[0], 0
                self._draw_study()

    def _heading_text(self, view: StudyView) -> str:
        """Return the heading: picture, scale and runs drawn with it."""
        plane, several = self.plane_view, len(view.pictures) > 1
        picture = view.picture_title(self._picture)
        parts = [f"{picture} ({self._picture + 1} of {len(view.pictures)})" if several else picture]
        if plane is not None:
            parts.append(spread_text(plane.study, view.pictures[self._picture]))
        if view.is_logarithmic:
            parts.append("log scale, which has no 0" if self._is_logarithmic else "linear scale from 0")
        if isinstance(view, CurveView) and self._over:
            laid = len(view.shown_curves(self._picture)) - len(view.measures[self._picture])
            parts.append(f"{laid} of {len(self._over)} marked runs laid over it")
        if isinstance(view, CurveView):
            used = cell_len(" · ".join(parts)) + 3
            parts.append(view.level_meaning(self.app.size.width - AROUND_QUESTION - used))
        return " · ".join(filter(None, parts))

    def _fill_numbers(self) -> None:
        """Fill the table with the numbers of the picture."""
        if self.current_view is not None and self.plane_view is None:
            view, body = self.current_view, self.query_one(StudyBody)
            curves = view if isinstance(view, CurveView) else None
            has_room = curves is not None and body.is_pair
            found = (curves.every_measure_table if curves and has_room else view.study_table)(self._picture)
            rows = list(zip(found.keys, found.rows, strict=True))
            want = found.cursor_key if curves is None else self._level_at_cursor(curves)
            self.query_one(LiveGrid).show_table(keyed_table(table_columns(found.columns)), rows, want)
            body.tells_level = isinstance(view, CurveView | LimitView)
            body.arrange_parts(len(rows))

    def _level_at_cursor(self, view: CurveView) -> float | None:
        """Return the level nearest to the cursor of the plot; None without a cursor."""
        x = self.query_one(f"#{PLOT}", Plot).cursor_x
        if x is None:
            return None
        at = 10.0**x if view.panel_at(self._picture).log_x else x
        levels = {level for curve in view.measures[self._picture] for level in curve.levels}
        return min(levels, key=lambda level: abs(level - at), default=None)

    @on(Plot.CursorMoved, f"#{PLOT}")
    def _show_reading_at(self, event: Plot.CursorMoved) -> None:
        """Show the values at the cursor, and their row."""
        self._show_reading(event.x)
        if isinstance(self.current_view, CurveView):
            self._fill_numbers()

    def _show_reading(self, x: float | None) -> None:
        """Show the values at the cursor, in their own unit whatever the scale."""
        if self.lattice_view is not None:
            x = 0.0
        elif x is not None and self.current_view is not None:
            # On a logarithmic axis the plot's x is the logarithm of the value.
            x = 10.0**x if self.current_view.panel_at(self._picture).log_x else x
        text = HINT if x is None or self.current_view is None else self.current_view.reading_at(self._picture, x)
        if isinstance(self.current_view, CurveView) and self.query_one(StudyBody).has_one_level and not self._over:
            # The row below the plot has the values already.
            text = f"{HINT}, {current_key(self.app, 'table')} all levels"
        self.query_one("#study-reading", Line).set_text(text)

    def on_resize(self) -> None:
        """Give the axis of the planes its new width, or the numbers as many rows as there is room for."""
        if self.plane_view is not None:
            self._draw_planes(self.plane_view)
        elif isinstance(self.current_view, CurveView):
            # The sentences above the plot and the label of its axis take the room that there is.
            self.call_after_refresh(self._draw_study, keep_view=True)

    def make_exportable(self) -> ScreenExport | None:
        """Return the shown picture as a figure and its numbers with all digits."""
        view, picture = self.current_view, self._picture
        if view is None:
            return None
        log = self._is_logarithmic
        name = view.pictures[picture] if view.answer_content is None else "answer"
        drawn = self.query_one(ContentSwitcher).current != NUMBERS
        return ScreenExport(
            self.export_file_name(name),
            lambda: view.export_rows(picture),
            lambda: view.make_figure(picture, log=log),
            is_plot_shown=drawn,
        )

    def take_focus(self) -> None:
        """Focus the shown plot, numbers or planes, or the dial in their place."""
        if self.query_one("#study-dial").display:
            self.query_one(DialPane).focus()
            return
        current = self.query_one(ContentSwitcher).current
        if current == PLANES:
            self.query_one(StudyPlanes).take_focus()
        else:
            self.query_one(f"#{current}").focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the keys that the study has a use for."""
        planes = self.plane_view is not None
        # A key that comes before the studies are read must not be lost.
        dialled = self.is_mounted and self.query_one("#study-dial").display
        offered = {
            "place": planes,
            "suggested": planes,
            "part": planes and self.size.width < NARROW,
            "numbers": not planes and not dialled,
            "measure": not dialled,
            "study": not dialled,
            "know": self.lattice_view is not None,
            "log": not dialled and (self.current_view is None or self.current_view.is_logarithmic),
        }
        return offered.get(action, True) and super().check_action(action, parameters)

    def action_measure(self, step: int) -> None:
        """Show the next picture of the study or the previous one."""
        if self.current_view is not None:
            self._picture = (self._picture + step) % len(self.current_view.pictures)
            self._draw_study(keep_view=True)

    def action_study(self, step: int) -> None:
        """Show the next study or the previous one, with the same measure if its curves have it."""
        if self.current_view is not None:
            name = self.current_view.pictures[self._picture]
            self._study = (self._study + step) % len(self._views)
            names = list(self.current_view.pictures)
            # Only measures along a curve have the same meaning in another study.
            self._picture = names.index(name) if name in names and isinstance(self.current_view, CurveView) else 0
            self._set_suggested_place()
            self._draw_study()
            self.refresh_bindings()
            self.take_focus()

    def action_log(self) -> None:
        """Switch between a logarithmic and a linear axis."""
        self._log = not self._is_logarithmic
        self.sfumato.remember(log=self._log)
        self._draw_study(keep_view=True)

    def action_numbers(self) -> None:
        """Switch between the plot and the numbers."""
        switcher = self.query_one(ContentSwitcher)
        switcher.current = NUMBERS if switcher.current == PLOT else PLOT
        self.take_focus()

    def action_know(self) -> None:
        """Switch whether the variable under the cursor is known."""
        lattice, place = self.lattice_view, self.query_one(LiveGrid).row_key
        if lattice is not None and isinstance(place, float):
            at = self._study % len(self._views)
            self._views = [*self._views[:at], lattice.toggle_variable(place), *self._views[at + 1 :]]
            self._draw_study(keep_view=True)

    def action_place(self, step: int) -> None:
        """Move along the axis by a point."""
        if self.plane_view is not None:
            self._place = min(max(self._place + step, 0), len(self.plane_view.study.points) - 1)
            self._draw_planes(self.plane_view)

    def action_suggested(self) -> None:
        """Go to the first point that is not below the suggested one; without a suggestion to the middle."""
        self._set_suggested_place()
        self._draw_study()

    def _set_suggested_place(self) -> None:
        """Set the place on the axis to the suggested one."""
        if self.plane_view is not None:
            self._place = suggested_place(self.plane_view.study, self.plane_view.pictures[self._picture])

    def action_part(self) -> None:
        """Show the next part if there is room for one only."""
        self.query_one(StudyPlanes).show_parts(1)
        self.take_focus()


class StudyDialog(Dialog[None], OffersExport):
    """Dialog above the tabs with the studies of a run that have answers."""

    def __init__(self, line: RunSummary, first: str) -> None:
        """Create the dialog about a run; ``first`` is the kind of study to show first."""
        super().__init__()
        self._line, self._studies = line, StudiesPane(first)

    def compose(self) -> ComposeResult:
        """Yield the studies and the keys."""
        with Vertical(classes="whole"):
            yield FrameEdge(text=f"Studies of run {self._line.run.id}")
            with FrameSides():
                yield self._studies
            yield FrameEdge(lower=True)
            yield KeyLine()

    def on_mount(self) -> None:
        self._studies.show_run(self._line)

    @on(WorkspaceChanged)
    def _reload_studies(self) -> None:
        """Read the studies again when the workspace has changed."""
        self._studies.load_run()

    def make_exportable(self) -> ScreenExport | None:
        return self._studies.make_exportable()
