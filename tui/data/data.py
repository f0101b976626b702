"""The sheet: every column of the project's file, whether and as what the plan takes it in, and what its values look like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message

from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind
from sfumato.tui.keys.own_keys import key_for
from sfumato.tui.widgets.grid import Grid
from sfumato.tui.widgets.lines import Line
from sfumato.tui.widgets.marks import MarkedGrid
from sfumato.tui.widgets.panel import SECOND
from sfumato.tui.widgets.plot import Plot
from sfumato.tui.widgets.tables import Cells, Table
from sfumato.workspace.plan.drafts import draft_of
from sfumato.workspace.plan.variables import with_variables
from sfumato.workspace.reporting.words import role_text
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.data_view import DataView, FoundColumn, VariableLine, outline

from ..parts.sifted import Sifted
from ..parts.split import TwoPanes
from ..parts.tables import TableScreen
from ..plan.drafting import DraftForm, DraftsPlan, asked_wanted
from ..plan.plan_history import NOTHING_TO_REDO, NOTHING_TO_UNDO, PlanHistory
from .sheet import COLUMNS, reading_of, row_values, sheet_columns, sheet_summary, sifted_fields, variable_series
from .sheet_values import ReadsValues

if TYPE_CHECKING:
    from sfumato.workspace.plan.hierarchies import OpenHierarchy

NONE = (
    "This project has no data yet. Press n in Runs to run a recipe, or in a shell: sfumato import FILE --project NAME"
)
ROLED = frozenset({Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.IDENTIFIER, Role.WEIGHT})
GIVEN_ROLES = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.IDENTIFIER, Role.WEIGHT, Role.OTHER)


PROFILE_FROM = 110
"""Columns of a terminal from which on the profile stands beside the variables: 70 for name, role, kind, missing and histogram, 38 for it."""


class Profile(Vertical):
    """The values of the variable under the cursor."""

    DEFAULT_CLASSES = SECOND
    pane_title = "Profile"


class VariableGrid(MarkedGrid):
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("open", "select", "Edit", show=True),
        bind("draft", "draft", "Draft", show=True),
    ]

    @dataclass
    class DraftAsked(Message):
        pass

    def action_draft(self) -> None:
        self.post_message(self.DraftAsked())


@dataclass(frozen=True)
class _Row:
    """What the sheet says of a column, in cells and in the words that are looked for, and what it was made of."""

    line: VariableLine
    found: FoundColumn | None
    cells: Cells
    words: Cells


class Data(TableScreen[VariableLine], Sifted, ReadsValues, DraftsPlan):
    """A table of variables, and a profile of the one under the cursor. Each act is one edit of the plan, which u takes back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("role", "choose_role", "Role", show=True),
        *(bind(role.value, f"role('{role.value}')") for role in GIVEN_ROLES),
        bind("exclude", "in_or_out", show=True),
        bind("kind", "kind"),
        bind("codes", "codes"),
        bind("hierarchy", "hierarchy"),
        bind("undo", "undo"),
        bind("redo", "redo"),
        bind("profile", "profile"),
    ]

    exports = "variables"

    def __init__(self, project_id: int) -> None:
        super().__init__(project_id, "data")
        self._rows: dict[str, _Row] = {}
        self._ask_when_read = self._asks_all = False
        self.forget_values()

    def compose(self) -> ComposeResult:
        """What the data are, the variables, and the profile of one."""
        yield Line(name="data-head")
        with TwoPanes("data-body", PROFILE_FROM):
            yield VariableGrid(empty="…")
            with Profile(id="data-profile"):
                yield Plot(id="data-plot")
                yield Line(name="data-reading")
                yield Line(name="data-more")
        yield from self.compose_sift()

    def read_query(self) -> Callable[[Workspace], DataView | None]:
        """The stored plan and what the database says of its data; None for a project without."""
        return partial(_outline, self._project_id)

    def take(self, answer: DataView | None) -> None:
        """Show the columns, unless an edit is under way."""
        if answer is None:
            self.grid.set_empty(NONE)
            self._view = None
            self._show()
            return
        if self._view is None or self._view.stored != answer.stored:
            self.forget_values()
        history = self.read_plan(answer.draft)
        if history is not None or self._view is None or self._view.stored != answer.stored:
            self._history = history or self._history
            self._view = DataView.of(self._history.now if self._history else answer.draft, answer.stored)
            self._show()

    @property
    def export_name(self) -> str:
        return self.named(self.exports)

    def on_resize(self) -> None:
        """Have the profile where there is room for it, and read the values of what a larger window shows."""
        self.query_one(TwoPanes).lay_out()
        if self._view is not None:
            self.call_after_refresh(self.read_soon)

    @property
    def grid(self) -> VariableGrid:
        return self.query_one(VariableGrid)

    def _show(self) -> None:
        lines = self._view.lines if self._view else ()
        longest = max((len(line.variable.name) for line in lines), default=0)
        self.show_rows(
            Table(
                COLUMNS,
                key=lambda line: line.variable.name,
                values=lambda line: self._row(line).cells,
                words=lambda line: self._row(line).words,
                fit=lambda _, width: sheet_columns(width, longest),
            ),
            lines,
        )
        self._say()
        self._draw()

    def _row(self, line: VariableLine) -> _Row:
        """A row of the sheet, made anew only where it says something else."""
        found, known = self.found_of(line), self._rows.get(line.variable.name)
        if known is None or (known.line, known.found) != (line, found):
            known = _Row(line, found, row_values(line, found), sifted_fields(line))
            self._rows[line.variable.name] = known
        return known

    def _say(self) -> None:
        grid, said = self.grid, ""
        if self._view is not None:
            said = sheet_summary(self._view, self._found, len(grid.marked), grid.hidden_marks)
            planned = sum(line.planned for line in self._view.lines)
            self.count(f"{planned} of {count_noun(len(self._view.lines), 'variable')} included")
        self.query_one("#data-head", Line).say(said)

    def values_read(self) -> None:
        self._show()

    def sifted(self) -> None:
        self._say()

    @on(MarkedGrid.Marked)
    def _marks(self) -> None:
        self._say()

    @on(Grid.Highlighted)
    @on(Grid.Opened)
    def _draw(self) -> None:
        here, plot = self.here, self.query_one(Plot)
        found = None if here is None else self.found_of(here)
        if here is None or found is None or found.profile is None:
            plot.set_series([], empty=" ")
        else:
            series, labels = variable_series(here.variable, found.profile)
            plot.set_series([series], x_label=here.variable.title or here.variable.name, y_label="records", **labels)
        reading, more = reading_of(here, found) if here is not None else ("", "")
        self.query_one("#data-reading", Line).say(reading)
        self.query_one("#data-more", Line).say(more)
        self.read_soon()

    @on(Plot.CursorMoved)
    def _read_bar(self, event: Plot.CursorMoved) -> None:
        event.stop()

    def action_profile(self) -> None:
        """Give the keys to the picture, or back to the table."""
        plot = self.query_one(Plot)
        (self.grid if plot.has_focus else plot).focus()

    def _chosen(self) -> list[VariableLine]:
        """The columns that an act is for: the marked ones, else the one under the cursor."""
        chosen = set(self.grid.chosen)
        return [line for line in (self._view.lines if self._view else ()) if line.variable.name in chosen]

    def _planned(self) -> list[VariableLine]:
        """Those of them that the plan takes in: no act but ``x`` takes in a column, an identifier least of all."""
        chosen = self._chosen()
        planned = [line for line in chosen if line.planned]
        if chosen and not planned:
            one = chosen[0].variable.name if len(chosen) == 1 else "These columns"
            self.sfumato.say(
                f"{one} {'is' if len(chosen) == 1 else 'are'} excluded; press {key_for(self.app, 'exclude')} to include",
                "warning",
            )
        return planned

    def _change(self, changes: Mapping[str, Mapping[str, Any] | None], what: str = "") -> None:
        """Describe these columns so in the plan, None leaves one out; after ``what`` was done to marked ones, say so, and their marks go."""
        history, view, grid = self._history, self._view, self.grid
        if history is None or view is None or not changes:
            return
        try:
            toml = with_variables(history.now.toml, changes, tuple(view.stored.columns))
        except BadInput as error:
            self.sfumato.say(str(error), severity="error")
            return
        if what and grid.marked:
            passed = len(grid.marked) - len(changes)
            passed_over = f"; {passed} excluded stay unchanged" if passed else ""
            names = next(iter(changes)) if len(changes) == 1 else f"{count_noun(len(changes), 'variable')}"
            self.sfumato.say(f"{what}: {names}{passed_over}. {key_for(self.app, 'undo')} undoes")
            grid.set_marks(())
        self._put(history.edited(history.now.saying(toml)))

    def _put(self, history: PlanHistory) -> None:
        """Make a plan the one that is shown, and store it."""
        if history is self._history or self._view is None:
            return
        self._history = history
        self._view = DataView.of(history.now, self._view.stored, self._view)
        self._show()
        self.read_values()
        self.store_plan()

    def action_role(self, role: str) -> None:
        tables = {line.variable.name: {**line.variable.to_table(), "role": role} for line in self._planned()}
        self._change(tables, role_text(role))

    def action_in_or_out(self) -> None:
        """Leave the columns out of the plan; take them in where all of them are out."""
        chosen = self._chosen()
        planned = [line.variable.name for line in chosen if line.planned]
        if planned:
            self._change(dict.fromkeys(planned), "excluded")
        else:
            self._change({line.variable.name: line.variable.to_table() for line in chosen}, "included")

    def ask_roles(self) -> None:
        """Ask for the role of every variable as soon as they are listed, unless some have one."""
        self._ask_when_read = True

    @on(Grid.Opened)
    def _ask_first(self) -> None:
        if self._ask_when_read and self.here is not None:
            self._ask_when_read = False
            if not self._has_roles and self.display and self.screen.is_current:  # nobody has gone elsewhere meanwhile
                self.call_later(self.action_choose_role)

    async def draft_next(self) -> None:
        """Offer a draft: every variable has been asked about."""
        self._asks_all = False
        if self._has_roles:
            await self._ask_draft()

    @property
    def _has_roles(self) -> bool:
        return any(line.variable.role in ROLED for line in (self._view.lines if self._view else ()))

    async def action_choose_role(self) -> None:
        """Ask for a role, and give it to the marked variables; without marks to the one under the cursor, then to the next, and so on."""
        from .variable_forms import EXCLUDE, NEXT, choose_role

        lines, several = self._chosen(), bool(self.grid.marked)
        if not lines:
            return
        if self.grid.cursor == 0:
            self._asks_all = not several

        def answered(role: str | None) -> None:
            if role is None:
                self._asks_all = False
                return
            if role == EXCLUDE:
                self._change({line.variable.name: None for line in lines if line.planned}, "excluded")
            elif role != NEXT:
                self.action_role(role)
            if not several and self.grid.cursor + 1 < self.grid.count:
                self.grid.cursor += 1
                self.call_later(self.action_choose_role)
            elif self._asks_all:
                self.call_later(self.draft_next)

        now = lines[0].variable.role.value if lines[0].planned else EXCLUDE
        await self.sfumato.open(choose_role(_names(lines), now, several=several), answered)

    async def action_kind(self) -> None:
        """Ask for a kind, and give it to the variables."""
        from sfumato.workspace.plan.variables import of_kind

        from .variable_forms import choose_kind

        lines = self._planned()
        if not lines:
            return

        def answered(kind: Kind | None) -> None:
            if kind is None:
                return
            try:
                self._change({line.variable.name: of_kind(line.variable, kind) for line in lines}, kind.value)
            except BadInput as error:
                self.sfumato.say(str(error), severity="error")

        await self.sfumato.open(choose_kind(_names(lines), lines[0].variable.kind), answered)

    async def action_codes(self) -> None:
        """Ask for the missing codes of the variables."""
        from .variable_forms import codes_form, with_codes

        variables = [line.variable for line in self._planned()]
        if not variables:
            return

        def answered(table: dict[str, Any] | None) -> None:
            if table is not None:
                self._change({one.name: with_codes(one, table) for one in variables}, "missing codes")

        await self.sfumato.open(codes_form(variables), answered)

    async def action_hierarchy(self) -> None:
        """Edit the tree or the intervals of the quasi-identifier under the cursor."""
        from ..plan.hierarchy import edit_hierarchy, saved_text

        def save(opened: OpenHierarchy) -> None:
            if (history := self._history) is not None:
                now, changed = history.now, saved_text(opened)
                self.compute(lambda _: now.saying(changed(now.toml)), lambda draft: self._put(history.edited(draft)))

        here, history = self.here, self._history
        if here is not None and history is not None:
            await edit_hierarchy(self, history.now, None, here.variable.name, save)

    async def chosen(self, row: VariableLine) -> None:
        """Edit the variable."""
        from .variable_forms import variable_form, with_open_ends

        name = row.variable.name

        def answered(table: dict[str, Any] | None) -> None:
            if table is not None:
                self._change({name: with_open_ends(table)})

        found = self.found_of(row)
        form = variable_form(row.variable, row.planned, found.profile if found else None)
        await self.sfumato.open(form, answered)

    @on(VariableGrid.DraftAsked)
    async def _ask_draft(self) -> None:
        """Ask what a plan is wanted for, and have it drafted."""
        history, view = self._history, self._view
        if history is None or view is None:
            return

        def answered(table: dict[str, Any] | None) -> None:
            if table is not None:
                self.draft_apart(asked_wanted(table), history.now.toml)

        variables = [line.variable for line in view.lines if line.planned]
        await self.sfumato.open(DraftForm(variables, history.now.toml, view.stored.records), answered)

    def action_undo(self) -> None:
        if self._history is not None and self._history.past:
            self._put(self._history.undone())
        else:
            self.sfumato.say(NOTHING_TO_UNDO)

    def action_redo(self) -> None:
        if self._history is not None and self._history.future:
            self._put(self._history.redone())
        else:
            self.sfumato.say(NOTHING_TO_REDO)


def _names(lines: Sequence[VariableLine]) -> str:
    return lines[0].variable.name if len(lines) == 1 else f"{count_noun(len(lines), 'variable')}"


def _outline(project_id: int, workspace: Workspace) -> DataView | None:
    draft = draft_of(workspace, project_id)
    return None if draft is None else outline(workspace, draft)
