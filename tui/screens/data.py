"""The variables of the project's data: what the plan says of each, and what its values look like."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.message import Message
from textual.worker import get_current_worker

from sfumato.engine.errors import Cancelled, EngineError
from sfumato.engine.schema import Kind, Role, Variable
from sfumato.tui.fields import Field
from sfumato.tui.messages import ErrorMessage
from sfumato.tui.widgets.grid import Grid, LiveGrid
from sfumato.tui.widgets.lines import Line
from sfumato.tui.widgets.plot import Plot
from sfumato.tui.widgets.sparkline import sparkline
from sfumato.workspace.errors import WorkspaceError
from sfumato.workspace.jobs.processes import call_in_process
from sfumato.workspace.plan.drafts import Draft, draft_of, save_draft
from sfumato.workspace.plots.series import Series
from sfumato.workspace.reporting.tables import Column, cells, fitted
from sfumato.workspace.reporting.words import mark, number, records_text, role_text
from sfumato.workspace.views.data_view import DataView, VariableLine, data_view_of, outline

from .form import Form
from .page import PlanPane

if TYPE_CHECKING:
    from sfumato.workspace.ingest.profiles import Profile
    from sfumato.workspace.store.workspace import Workspace

MOST_BARS = 60
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def variable_series(variable: Variable, profile: Profile) -> tuple[Series, dict[str, Any]]:
    """A bar a bin or level, of many levels the most frequent ones; and what names the places of the axis."""
    if not profile.levels:
        centres = [start + profile.width / 2 for start in profile.starts]
        return Series("records", centres, profile.counts, marker="bars"), {}
    order = range(len(profile.levels))
    if len(profile.levels) > MOST_BARS:
        order = sorted(order, key=lambda i: -profile.counts[i])[:MOST_BARS]  # type: ignore[assignment]
    names = [variable.labels.get(profile.levels[i], profile.levels[i]) if profile.counts[i] else "" for i in order]
    return Series("records", range(len(names)), [profile.counts[i] for i in order], marker="bars"), {"x_names": names}


def summary(line: VariableLine) -> tuple[str, str]:
    """What the picture cannot say: what is wrong, or how many values; quantiles or what was withheld."""
    profile = line.profile
    if profile is None:
        return (f"{mark('fail')} {line.problem}" if line.problem else "its values are being read"), ""
    withheld = f"{profile.withheld:,} bars of one or two records are not shown" if profile.withheld else ""
    counts = f"{line.variable.name}: {profile.records:,} records, {profile.distinct:,} different values"
    said = [f"{mark('fail')} {line.problem}"] if line.problem else [counts, withheld]
    return " · ".join(part for part in said if part), _quantiles(line.variable, profile)


def _quantiles(variable: Variable, profile: Profile) -> str:
    if not profile.quantiles:
        return ""
    dated = variable.kind is Kind.DATE
    shares = [f"{p * 100:.0f} % {_day(q) if dated else number(q)}" for p, q in profile.quantiles]
    moments = "" if dated else f" · mean {number(profile.mean)}, sd {number(profile.sd)}"
    return f"quantiles {'  '.join(shares)}{moments}"


def _day(days: float) -> str:
    return (EPOCH + timedelta(days=days)).strftime("%Y-%m-%d")


NONE = (
    "This project has no data yet. Press n in Runs to run a recipe, or in a shell: sfumato import FILE --project NAME"
)
SPARK = 16
COLUMNS = (
    Column("mark", "", 1),
    Column("name", "variable", 12),
    Column("kind", "kind", 11),
    Column("role", "role", 16),
    Column("missing", "missing", 7, "right"),
    Column("distinct", "values", 7, "right"),
    Column("histogram", "histogram", SPARK),
    Column("bounds", "bounds", 12),
    Column("title", "title", 24),
)
DROPS = ("title", "bounds", "distinct")


class VariableGrid(LiveGrid):
    """The variables."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "Edit", id="data.edit")]


class Data(PlanPane):
    """A table of variables, and a profile of the one under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "profile", "Profile", id="data.profile"),
    ]

    def __init__(self, project_id: int) -> None:
        super().__init__(project_id, "data")
        self._view: DataView | None = None
        self._draft: Draft | None = None

    def compose(self) -> ComposeResult:
        """What the data are, the variables, and the profile of one."""
        yield Line(name="data-head")
        with Container(id="data-body"):
            yield VariableGrid(empty="…")
            with Vertical(id="data-profile"):
                yield Plot(id="data-plot")
                yield Line(name="data-reading")
                yield Line(name="data-more")

    def take(self, answer: Draft | None) -> None:
        """Show what is known of the data, at first without their values."""
        draft = answer
        if draft is not None and draft == self._draft:
            return
        self._draft = draft
        if draft is None:
            self.query_one(VariableGrid).set_empty(NONE)
            self._take_view(None)
            return
        self.read(lambda workspace: outline(workspace, draft), self._take_view)
        if self.sfumato.alone:
            self._profile_apart()
        else:
            self.compute(partial(_view, self._project_id), self._take_view)

    @work(thread=True, exclusive=True, group="compute", exit_on_error=False)
    def _profile_apart(self) -> None:
        """Have the values read by another process: this one's keys and memory need not bear it."""
        worker = get_current_worker()
        message: Message
        try:
            view = call_in_process(
                data_view_of,
                self.sfumato.directory,
                self._project_id,
                what="reading the data",
                unwanted=lambda: worker.is_cancelled,
            )
            message = self.Answered(self._take_view, view)
        except Cancelled:
            return
        except (EngineError, WorkspaceError) as error:
            message = ErrorMessage(str(error))
        if not worker.is_cancelled:
            self.post_message(message)

    def _take_view(self, view: DataView | None) -> None:
        known = self._view
        if view is not None and known is not None and not view.read:
            if known.read and known.draft == view.draft:
                return
            view = view.keeping(known)
        self._view = view
        self._show()

    def on_resize(self) -> None:
        """Give the columns their new widths."""
        if self._view is not None:
            self.call_after_refresh(self._show)

    def _show(self) -> None:
        lines = self._view.lines if self._view else ()
        grid = self.query_one(VariableGrid)
        columns = fitted(COLUMNS, grid.size.width - 1, ("title", "name"), DROPS)
        rows = [cells(columns, _values(line)) for line in lines]
        grid.show(columns, rows, [line.variable.name for line in lines])
        self.query_one("#data-head", Line).say(_summary(self._view))
        self._draw()

    @property
    def here(self) -> VariableLine | None:
        """The variable under the cursor."""
        key = self.query_one(VariableGrid).key
        return next((line for line in (self._view.lines if self._view else ()) if line.variable.name == key), None)

    @on(Grid.Highlighted)
    @on(Grid.Opened)
    def _draw(self) -> None:
        here = self.here
        plot = self.query_one(Plot)
        if here is None or here.profile is None:
            plot.set_series([], empty=" ")
        else:
            series, labels = variable_series(here.variable, here.profile)
            plot.set_series([series], x_label=here.variable.title or here.variable.name, y_label="records", **labels)
        reading, more = summary(here) if here is not None else ("", "")
        self.query_one("#data-reading", Line).say(reading)
        self.query_one("#data-more", Line).say(more)

    @on(Plot.CursorMoved)
    def _read_bar(self, event: Plot.CursorMoved) -> None:
        event.stop()

    def take_focus(self) -> None:
        """The table takes the keys."""
        self.query_one(VariableGrid).focus()

    def action_profile(self) -> None:
        """Give the keys to the picture, or back to the table."""
        plot = self.query_one(Plot)
        (self.query_one(VariableGrid) if plot.has_focus else plot).focus()

    @on(Grid.Selected)
    async def _edit(self) -> None:
        here = self.here
        if here is None:
            return
        name = here.variable.name

        def answered(table: dict[str, Any] | None) -> None:
            if table is not None:
                self.compute(partial(_save, self._project_id, name, _plain(table)), self._saved)

        def check(table: dict[str, Any]) -> None:
            Variable.from_table(name, _plain(table), name)

        await self.sfumato.open(Form(f"Variable {name}", fields_of(here.variable), check), answered)

    def _saved(self, _: Draft) -> None:
        self.sfumato.refresh_page()
        self.load()


def _view(project_id: int, workspace: Workspace) -> DataView | None:
    from sfumato.workspace.views.data_view import data_view

    return data_view(workspace, project_id)


def _save(project_id: int, name: str, table: dict[str, Any], workspace: Workspace) -> Draft:
    from sfumato.workspace.plan.edits import with_variable

    draft = draft_of(workspace, project_id)
    assert draft is not None
    return save_draft(workspace, draft.saying(with_variable(draft.toml, name, table)))


def fields_of(variable: Variable) -> list[Field]:
    """The form of a variable."""
    table = variable.to_table()
    return [
        Field("kind", "the scale that it is measured on", value=table["kind"], choices=tuple(Kind)),
        Field("role", "known to an intruder, sensitive, an identifier, or neither", value=table["role"], choices=tuple(Role)),
        Field("bounds", "smallest and largest value allowed, such as 0, 365; .. leaves an end open", "list",
              [".." if end == "" else end for end in table.get("bounds", [])]),
        Field("levels", "the levels in their order: low, middle, high; left out, those that are found", "list", table.get("levels")),
        Field("labels", "what codes mean, such as 1 = yes, 2 = no", "table", table.get("labels")),
        Field("missing", "codes that stand for a missing value, such as -9, unknown", "list", table.get("missing")),
        Field("title", "what the variable is, in a few words", value=table.get("title")),
    ]  # fmt: skip


def _plain(table: dict[str, Any]) -> dict[str, Any]:
    """The table with open ends of bounds as recipes write them."""
    bounds = table.get("bounds")
    return table if bounds is None else {**table, "bounds": ["" if end == ".." else end for end in bounds]}


def _summary(view: DataView | None) -> str:
    if view is None:
        return ""
    wrong = sum(bool(line.problem) for line in view.lines)
    out = sum(not line.planned for line in view.lines)
    parts = [
        f"{view.dataset}: {records_text(view.records, view.dropped)}",
        "" if view.read else "their values are being read",
        f"{len(view.lines) - out} variables" + (f", {out} left out of the plan" if out else ""),
        f"{mark('fail')} {view.problem}" if view.problem else "",
        f"{mark('fail')} {wrong} of them {'does' if wrong == 1 else 'do'} not fit the plan" if wrong else "",
    ]
    return " · ".join(part for part in parts if part)


def _values(line: VariableLine) -> dict[str, object]:
    variable, profile = line.variable, line.profile
    return {
        "mark": mark("fail") if line.problem else "",
        "name": variable.name,
        "kind": variable.kind.value,
        "role": role_text(variable.role.value) if line.planned else "left out",
        "missing": None if line.missing is None else f"{line.missing:.1%}",
        "distinct": None if profile is None else f"{profile.distinct:,}",
        "histogram": sparkline(profile.counts, SPARK) if profile else "",
        "bounds": ""
        if variable.bounds is None
        else " .. ".join("" if end is None else number(end) for end in variable.bounds),
        "title": variable.title,
    }
