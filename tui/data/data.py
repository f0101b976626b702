"""Tab Data: every column of the project's file, its settings in the plan, and its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.keys.own_keys import current_key
from sfumato.tui.terminal.painting import Backdrop
from sfumato.tui.widgets.grid import HEADER, Grid
from sfumato.tui.widgets.lines import Line, is_same_text
from sfumato.tui.widgets.marks import MarkedGrid
from sfumato.tui.widgets.panel import SECOND
from sfumato.tui.widgets.plot import Plot
from sfumato.tui.widgets.tables import Cells, GridTable
from sfumato.workspace.plan.drafts import find_draft
from sfumato.workspace.plan.variables import change_variables
from sfumato.workspace.reporting.words import role_text
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.data_view import DataView, ProfiledColumn, VariableLine, read_data_view

from ..parts.page import CallInProcess
from ..parts.sifted import FilteredList
from ..parts.split import SIDES, TwoPanes
from ..parts.tables import TableScreen
from ..plan.drafting import DraftForm, DraftsPlan, draft_request_from_answers
from ..plan.plan_history import NOTHING_TO_REDO, NOTHING_TO_UNDO, PlanHistory
from .level_bars import LevelBars, level_bar_lines
from .sheet import (
    COLUMNS,
    aligned_quantiles,
    column_problem,
    filter_fields,
    profile_texts,
    row_values,
    sheet_columns,
    sheet_summary,
    variable_series,
    whole_clauses,
    whole_items,
    whole_sheet_width,
)
from .sheet_values import ReadsValues
from .variable_facts import variable_content

if TYPE_CHECKING:
    from sfumato.workspace.plan.hierarchies import EditedHierarchy
    from sfumato.workspace.reporting.plan_steps import Facts

NONE = (
    "This project has no data yet. Press n in Runs to run a recipe, or in a shell: sfumato import FILE --project NAME"
)
DRAFT_ROLES = frozenset({Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.IDENTIFIER, Role.WEIGHT})
NOT_TELLING = frozenset({Role.UNIT, Role.IDENTIFIER, Role.WEIGHT})
"""Roles whose values are not looked at first."""
LEAST_FACTS, MARGIN = 3, 1
"""Lines that the list must leave for the facts about a variable, and blank lines above them."""
BELOW_LEVELS = 4
"""Lines of the profile below the bars of levels."""
GIVEN_ROLES = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.IDENTIFIER, Role.WEIGHT, Role.OTHER)


PROFILE_MIN_WIDTH = 110
"""Width of a terminal from which the profile stands beside the variables: 70 for name, role, kind, missing and
histogram, 38 for it.
"""
LEAST_PROFILE_WIDTH = 36
"""Cells of the profile beside the list where titles need all others."""
AROUND_LIST = 8
"""Lines of a terminal outside the list and its facts: title, places, frame, summary, values and keys."""
TALL = 30
"""Lines of a terminal from which there is room for facts below most lists."""


class ProfilePane(Vertical):
    """Pane with the values of the variable under the cursor."""

    DEFAULT_CLASSES = SECOND
    pane_title = "Profile"


class VariableList(Vertical, Backdrop):
    """Grid of variables, with the facts about one below it."""


class VariableGrid(MarkedGrid):
    """Grid of variables in which enter edits one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("open", "select", "Edit", show=True),
        bind_act("draft", "draft", "Draft", show=True),
    ]

    @dataclass
    class DraftRequested(Message):
        """Message that the user wants a draft of the plan."""

    def action_draft(self) -> None:
        """Request a draft of the plan."""
        self.post_message(self.DraftRequested())


@dataclass(frozen=True)
class _SheetRow:
    """Row of the sheet.

    line: the variable and its settings in the plan
    found: profile of its values; None before they are read
    cells: cells of the row
    words: texts that filters search
    """

    line: VariableLine
    found: ProfiledColumn | None
    cells: Cells
    words: Cells


class DataTab(TableScreen[VariableLine], FilteredList, ReadsValues, DraftsPlan):
    """Tab with a table of variables, and a profile of the one under the cursor.

    Each act is one edit of the plan, which u undoes.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("role", "choose_role", "Role", show=True),
        *(bind_act(role.value, f"role('{role.value}')") for role in GIVEN_ROLES),
        bind_act("exclude", "in_or_out", show=True),
        bind_act("kind", "kind"),
        bind_act("codes", "codes"),
        bind_act("hierarchy", "hierarchy"),
        bind_act("undo", "undo"),
        bind_act("redo", "redo"),
        bind_act("profile", "profile"),
    ]

    export_file = "variables"

    def __init__(self, project_id: int) -> None:
        """Create the tab of a project."""
        super().__init__(project_id, "data")
        self._rows: dict[str, _SheetRow] = {}
        self._plans: tuple[str, Mapping[str, Facts], Facts] = "", {}, []
        self._began = False
        self._longest_title = 0
        self._ask_when_read = self._asks_all = False
        self.forget_values()

    def compose(self) -> ComposeResult:
        """Yield a summary of the data, the variables, and the profile of one."""
        yield Line(name="data-head")
        with TwoPanes("data-body", PROFILE_MIN_WIDTH):
            with VariableList(id="data-list"):
                yield VariableGrid(empty="…")
                yield Static("", id="data-facts", markup=False)
            with ProfilePane(id="data-profile"):
                yield Plot(id="data-plot")
                yield LevelBars()
                yield Line(name="data-reading")
                yield Line(name="data-more")
        yield from self.compose_filter()

    def read_query(self) -> Callable[[Workspace], DataView | None]:
        """Return the query for the stored plan and the database's description of its data; None for a project without
        data.
        """
        return partial(_read_data_view, self._project_id)

    def show_answer(self, answer: DataView | None) -> None:
        """Show the columns, unless an edit is in progress."""
        if answer is None:
            self.grid.set_empty_text(NONE)
            self._view = None
            self._show_sheet()
            return
        if self._view is None or self._view.stored != answer.stored:
            self.forget_values()
        # A plan that was read before an edit was stored would undo the edit on the screen.
        history = self.history_with_read_plan(answer.draft)
        if history is not None or self._view is None or self._view.stored != answer.stored:
            self._history = history or self._history
            self._view = DataView.from_draft(self._history.now if self._history else answer.draft, answer.stored)
            self._show_sheet()

    @property
    def export_name(self) -> str:
        """Return the name of the exported file."""
        return self.export_file_name(self.export_file)

    def on_resize(self) -> None:
        """Show the profile if there is room for it, and read the values of newly visible columns."""
        self.query_one(TwoPanes).arrange_panes()
        self._share_width()
        self.call_after_refresh(self._show_facts)
        self.call_after_refresh(self._draw_levels)
        if self._view is not None:
            self.call_after_refresh(self.read_soon)

    def _share_width(self) -> None:
        """Give the list two thirds of the width, and more where a title would be cut beside a wide picture."""
        whole = self.app.size.width - SIDES
        wanted = min(whole_sheet_width(self._longest_title) + 1, whole - LEAST_PROFILE_WIDTH)
        width = max(whole * 2 // 3, wanted) if self._is_profile_beside else "1fr"
        self.query_one("#data-list", VariableList).styles.width = width

    @property
    def grid(self) -> VariableGrid:
        """Return the grid of variables."""
        return self.query_one(VariableGrid)

    def _show_sheet(self) -> None:
        """Show the variables, the summary and the profile."""
        lines = self._view.lines if self._view else ()
        longest = max((len(line.variable.name) for line in lines), default=0)
        titled = any(line.variable.title for line in lines)
        longest_title = max((cell_len(line.variable.title) for line in lines), default=0)
        lacking = any(self._has_missing(line) for line in lines)
        faulty = any(column_problem(line, self.found_column(line)) for line in lines)
        self._longest_title = longest_title
        self._share_width()
        # A number of units or an identifier has no distribution worth a look.
        telling = (line.variable.name for line in lines if line.is_planned and line.variable.role not in NOT_TELLING)
        first = None if self._began else next(telling, None)
        self._began = self._began or bool(lines)
        self.show_rows(
            GridTable(
                COLUMNS,
                key=lambda line: line.variable.name,
                values=lambda line: self._sheet_row(line).cells,
                search_texts=lambda line: self._sheet_row(line).words,
                column_fitter=lambda _, width: sheet_columns(
                    width,
                    longest,
                    titled=titled,
                    lacking=lacking,
                    faulty=faulty,
                    longest_title=longest_title,
                    is_told_below=self._tells_kind_below(len(lines)),
                ),
            ),
            lines,
            first,
        )
        self._describe_plan()
        self._show_summary()
        self._draw_profile()

    def _tells_kind_below(self, n_rows: int) -> bool:
        """Return whether facts about a variable, its kind among them, have room below a list of so many rows."""
        height = self.app.size.height
        return height >= TALL or height - AROUND_LIST - HEADER - n_rows - MARGIN >= LEAST_FACTS

    def _has_missing(self, line: VariableLine) -> bool:
        """Return whether a variable is known to have missing values."""
        found = self.found_column(line)
        missing = line.missing if found is None or found.missing is None else found.missing
        return bool(missing)

    def _sheet_row(self, line: VariableLine) -> _SheetRow:
        """Return a row of the sheet, built again only if it has changed."""
        found, known = self.found_column(line), self._rows.get(line.variable.name)
        # A row has a histogram and a list of levels, which are built for changed rows only.
        if known is None or (known.line, known.found) != (line, found):
            known = _SheetRow(line, found, row_values(line, found), filter_fields(line))
            self._rows[line.variable.name] = known
        return known

    def _show_summary(self) -> None:
        """Show the summary and the number of included variables."""
        grid, said = self.grid, ""
        if self._view is not None:
            said = sheet_summary(self._view, self._found, len(grid.marked_keys), grid.hidden_marks)
            planned = sum(line.is_planned for line in self._view.lines)
            self.set_heading_count(f"{planned} of {count_noun(len(self._view.lines), 'variable')} included")
        self.query_one("#data-head", Line).set_text(said)

    def show_read_values(self) -> None:
        """Show the values that were read."""
        self._show_sheet()

    def show_filter_result(self) -> None:
        """Show the summary of the filtered rows."""
        self._show_summary()

    @on(MarkedGrid.MarksChanged)
    def _update_marks(self) -> None:
        """Show the number of marked rows."""
        self._show_summary()

    @on(Grid.RowHighlighted)
    @on(Grid.SourceOpened)
    def _draw_profile(self) -> None:
        """Draw the values of the variable under the cursor, and read values that have come into view."""
        here, plot = self.current_row, self.query_one(Plot)
        found = None if here is None else self.found_column(here)
        if here is None or found is None or found.profile is None:
            plot.set_series([], empty=" ")
        else:
            series, labels = variable_series(here.variable, found.profile)
            plot.set_series([series], x_label=here.variable.name, y_label="records", **labels)
        self._draw_levels()
        reading, more = profile_texts(here, found) if here is not None else ("", "")
        # Below the list a line holds what is whole; beside it the pane has more lines.
        room = None if self._is_profile_beside else self.app.size.width - SIDES - 2
        self.query_one("#data-reading", Line).set_text(whole_clauses(reading, room))
        # The picture beside the list says how often each level is.
        is_drawn = self._is_profile_beside and found is not None and found.profile is not None and found.profile.levels
        more = "" if is_drawn else whole_items(more, self.app.size.width - SIDES - 2)
        told = aligned_quantiles(more) if self._is_profile_beside else more
        self.query_one("#data-more", Line).set_text(told)
        self._show_facts()
        self.read_soon()

    def _draw_levels(self) -> None:
        """Draw the levels of the variable under the cursor beside the list, where they have names, in place of the plot."""
        plot, bars, here = self.query_one(Plot), self.query_one(LevelBars), self.current_row
        found = None if here is None else self.found_column(here)
        profile = None if found is None else found.profile
        shown = self._is_profile_beside and profile is not None and bool(profile.levels)
        if shown != bars.display:
            had_focus = plot.has_focus or bars.has_focus
            bars.display, plot.display = shown, not shown
            if had_focus:
                (bars if shown else plot).focus()
        size = self.query_one(ProfilePane).content_size
        if shown and here is not None and profile is not None and size.height > BELOW_LEVELS:
            lines = level_bar_lines(here.variable, profile, size.width - MARGIN, size.height - BELOW_LEVELS)
            text = Content("\n").join(lines)
            if not is_same_text(bars.content, text):
                bars.update(text)

    def _describe_plan(self) -> None:
        """Describe in a thread what the plan does to each variable, unless that is known."""
        toml = self._history.now.toml if self._history is not None else ""
        if toml == self._plans[0]:
            return
        self._plans = toml, *self._plans[1:]

        def describe(_: CallInProcess) -> tuple[str, Mapping[str, Facts], Facts]:
            """Describe the plan; an unreadable one has no facts."""
            # It loads methods, which takes the app longer than to start.
            from sfumato.workspace.reporting.variable_plans import describe_variable_plans, treatment_lines

            try:
                table = read_toml(toml)
            except BadInput:
                return toml, {}, []
            plans = describe_variable_plans(table)
            return toml, {name: plan.facts for name, plan in plans.items()}, treatment_lines(plans)

        self.compute_in_processes(describe, self._take_plan_facts, group="plan-facts")

    def _take_plan_facts(self, answer: tuple[str, Mapping[str, Facts], Facts]) -> None:
        """Show what the plan does to the variable, unless the plan has changed since."""
        if answer[0] == self._plans[0]:
            self._plans = answer
            self._show_facts()

    @property
    def _is_profile_beside(self) -> bool:
        """Return whether the picture of the values stands beside the list."""
        return self.app.size.width >= PROFILE_MIN_WIDTH

    def _show_facts(self) -> None:
        """Show the facts about the variable under the cursor in the lines that the list leaves."""
        shown, here = self.query_one("#data-facts", Static), self.current_row
        space = self.query_one("#data-list", VariableList).size
        needed = len(self.grid.row_keys) + HEADER
        room = space.height - needed - MARGIN
        fits = here is not None and room >= LEAST_FACTS
        # The facts begin below the rows; without room for them the rows have all lines.
        self.grid.styles.height = needed if fits else "1fr"
        if fits and here is not None:
            plan = self._plans[1].get(here.variable.name, [])
            width = max(20, space.width - 2)
            text = variable_content(
                here,
                self.found_column(here),
                plan,
                self._plans[2],
                width,
                room,
                has_bars=not self._is_profile_beside,
                counts=self._bar_counts() if self._is_profile_beside else None,
            )
            if not is_same_text(shown.content, text):
                shown.update(text, layout=not shown.display)
        shown.display = fits

    def _bar_counts(self) -> dict[str, Sequence[int]]:
        """Return the number of records in each bar of the listed variables whose values tell something."""
        listed = set(self.grid.row_keys)
        lines = [line for line in (self._view.lines if self._view else ()) if line.variable.role not in NOT_TELLING]
        lines = [line for line in lines if line.variable.name in listed]
        found = ((line.variable.name, self.found_column(line)) for line in lines)
        return {name: one.profile.counts for name, one in found if one is not None and one.profile is not None}

    @on(Plot.CursorMoved)
    def _show_bar_reading(self, event: Plot.CursorMoved) -> None:
        """Stop the message: the profile shows no readings."""
        event.stop()

    def action_profile(self) -> None:
        """Focus the picture, or the table again."""
        plot, bars = self.query_one(Plot), self.query_one(LevelBars)
        picture = bars if bars.display else plot
        (self.grid if picture.has_focus else picture).focus()

    def _selected_lines(self) -> list[VariableLine]:
        """Return the columns that an act applies to: the marked ones, otherwise the one under the cursor."""
        chosen = set(self.grid.chosen_keys)
        return [line for line in (self._view.lines if self._view else ()) if line.variable.name in chosen]

    def _selected_planned_lines(self) -> list[VariableLine]:
        """Return the selected columns that are in the plan, with a warning if there are none."""
        chosen = self._selected_lines()
        planned = [line for line in chosen if line.is_planned]
        # Only x includes a column: setting a role must not bring an excluded identifier back.
        if chosen and not planned:
            one = chosen[0].variable.name if len(chosen) == 1 else "These columns"
            self.sfumato.say(
                f"{one} {'is' if len(chosen) == 1 else 'are'} excluded; press {current_key(self.app, 'exclude')} to include",
                "warning",
            )
        return planned

    def _change_variables(self, changes: Mapping[str, Mapping[str, Any] | None], what: str = "") -> None:
        """Change these columns in the plan; None excludes one.

        With ``what``, the name of the change, changed marked columns are reported and unmarked.
        """
        history, view, grid = self._history, self._view, self.grid
        if history is None or view is None or not changes:
            return
        try:
            # The columns of the file keep their order in the plan when one is included again.
            toml = change_variables(history.now.toml, changes, tuple(view.stored.columns))
        except BadInput as error:
            self.sfumato.say(str(error), severity="error")
            return
        if what and grid.marked_keys:
            passed = len(grid.marked_keys) - len(changes)
            passed_over = f"; {passed} excluded stay unchanged" if passed else ""
            names = next(iter(changes)) if len(changes) == 1 else f"{count_noun(len(changes), 'variable')}"
            self.sfumato.say(f"{what}: {names}{passed_over}. {current_key(self.app, 'undo')} undoes")
            grid.set_marks(())
        self._set_plan(history.after_edit(history.now.with_text(toml)))

    def _set_plan(self, history: PlanHistory) -> None:
        """Show a plan, and store it."""
        if history is self._history or self._view is None:
            return
        self._history = history
        self._view = DataView.from_draft(history.now, self._view.stored, self._view)
        self._show_sheet()
        self.read_values()
        self.store_plan()

    def action_role(self, role: str) -> None:
        """Give the selected variables a role."""
        self._give_role(role, self._selected_planned_lines())

    def _give_role(self, role: str, lines: Sequence[VariableLine]) -> None:
        """Give variables a role."""
        tables = {line.variable.name: {**line.variable.to_table(), "role": role} for line in lines}
        self._change_variables(tables, role_text(role))

    def action_in_or_out(self) -> None:
        """Exclude the selected columns from the plan; include them if all of them are excluded."""
        chosen = self._selected_lines()
        planned = [line.variable.name for line in chosen if line.is_planned]
        if planned:
            self._change_variables(dict.fromkeys(planned), "excluded")
        else:
            self._change_variables({line.variable.name: line.variable.to_table() for line in chosen}, "included")

    def ask_roles(self) -> None:
        """Ask for the role of every variable once they are listed, unless some have one."""
        self._ask_when_read = True

    @on(Grid.SourceOpened)
    def _ask_first_role(self) -> None:
        """Ask for the role of the first variable after an import."""
        if self._ask_when_read and self.current_row is not None:
            self._ask_when_read = False
            if not self._has_roles and self.display and self.screen.is_current:  # nobody has gone elsewhere meanwhile
                # A column that is left out needs no role.
                self._go_to_line(self._lines_to_ask_from(0))
                self.call_later(self.action_choose_role)

    def _lines_to_ask_from(self, place: int) -> list[VariableLine]:
        """Return the included variables that are shown from a row on, without a number of units: it has its role."""
        lines = self._view.lines if self._view else ()
        asked = {line.variable.name: line for line in lines if line.is_planned and line.variable.role is not Role.UNIT}
        return [asked[str(name)] for name in self.grid.row_keys[place:] if name in asked]

    def _go_to_line(self, lines: Sequence[VariableLine]) -> None:
        """Move the cursor to the first of these variables; it stays if there is none."""
        if lines:
            self.grid.cursor = self.grid.row_keys.index(lines[0].variable.name)

    async def offer_draft(self) -> None:
        """Offer a draft, since every variable has been asked about."""
        self._asks_all = False
        if self._has_roles:
            await self._ask_draft()

    @property
    def _has_roles(self) -> bool:
        """Return whether an included variable has a role that a draft uses."""
        # A column that was left out at import may have the role of an identifier, which nobody has been asked about.
        lines = self._view.lines if self._view else ()
        return any(line.is_planned and line.variable.role in DRAFT_ROLES for line in lines)

    async def action_choose_role(self) -> None:
        """Ask for a role and give it to the marked variables; without marks to the one under the cursor, then to the
        next that is included, and so on, or to all of them at once.
        """
        from .variable_forms import EXCLUDE, NEXT, RoleAnswer, choose_role

        lines, several = self._selected_lines(), bool(self.grid.marked_keys)
        if not lines:
            return
        if len(self._lines_to_ask_from(0)) == len(self._lines_to_ask_from(self.grid.cursor)):
            # Only a walk from the first variable to the last ends with the offer of a draft.
            self._asks_all = not several

        def apply_role(answer: RoleAnswer | None) -> None:
            """Give the role, then ask for that of the next variable."""
            if answer is None:
                self._asks_all = False
                return
            below = [] if several else self._lines_to_ask_from(self.grid.cursor + 1)
            rest = below if answer.is_for_rest else []
            if answer.role == EXCLUDE:
                chosen = [line for line in (*lines, *rest) if line.is_planned]
                self._change_variables({line.variable.name: None for line in chosen}, "excluded")
            elif answer.role != NEXT:
                self._give_role(answer.role, [*self._selected_planned_lines(), *rest])
            if below and not rest:
                self._go_to_line(below)
                self.call_later(self.action_choose_role)
            elif self._asks_all:
                self.call_later(self.offer_draft)

        now = lines[0].variable.role.value if lines[0].is_planned else EXCLUDE
        await self.sfumato.open(choose_role(_names_or_count(lines), now, several=several), apply_role)

    async def action_kind(self) -> None:
        """Ask for a kind, and give it to the selected variables."""
        from sfumato.workspace.plan.variables import change_kind

        from .variable_forms import choose_kind

        lines = self._selected_planned_lines()
        if not lines:
            return

        def apply_kind(kind: Kind | None) -> None:
            """Give the kind to the variables."""
            if kind is None:
                return
            try:
                self._change_variables(
                    {line.variable.name: change_kind(line.variable, kind) for line in lines}, kind.value
                )
            except BadInput as error:
                self.sfumato.say(str(error), severity="error")

        await self.sfumato.open(choose_kind(_names_or_count(lines), lines[0].variable.kind), apply_kind)

    async def action_codes(self) -> None:
        """Ask for the missing codes of the selected variables."""
        from .variable_forms import missing_codes_form, with_missing_codes

        variables = [line.variable for line in self._selected_planned_lines()]
        if not variables:
            return

        def apply_codes(table: dict[str, Any] | None) -> None:
            """Give the missing codes to the variables."""
            if table is not None:
                self._change_variables({one.name: with_missing_codes(one, table) for one in variables}, "missing codes")

        await self.sfumato.open(missing_codes_form(variables), apply_codes)

    async def action_hierarchy(self) -> None:
        """Edit the hierarchy of the quasi-identifier under the cursor."""
        from ..plan.hierarchy import edit_hierarchy, hierarchy_edit

        def save(opened: EditedHierarchy) -> None:
            """Put the hierarchy into the plan."""
            if (history := self._history) is not None:
                now, changed = history.now, hierarchy_edit(opened)
                self.compute(
                    lambda _: now.with_text(changed(now.toml)), lambda draft: self._set_plan(history.after_edit(draft))
                )

        here, history = self.current_row, self._history
        if here is not None and history is not None:
            await edit_hierarchy(self, history.now, None, here.variable.name, save)

    async def open_row(self, row: VariableLine) -> None:
        """Edit all settings of a variable."""
        from .variable_forms import variable_form, with_open_ends

        name = row.variable.name

        def apply_variable(table: dict[str, Any] | None) -> None:
            """Put the settings into the plan."""
            if table is not None:
                self._change_variables({name: with_open_ends(table)})

        found = self.found_column(row)
        form = variable_form(row.variable, row.is_planned, found.profile if found else None)
        await self.sfumato.open(form, apply_variable)

    @on(VariableGrid.DraftRequested)
    async def _ask_draft(self) -> None:
        """Ask for the goal of a plan, and draft it."""
        history, view = self._history, self._view
        if history is None or view is None:
            return

        def start_draft(table: dict[str, Any] | None) -> None:
            """Draft the plan for the answers."""
            if table is not None:
                self.draft_in_process(draft_request_from_answers(table), history.now.toml)

        variables = [line.variable for line in view.lines if line.is_planned]
        await self.sfumato.open(DraftForm(variables, history.now.toml, view.stored.records), start_draft)

    def action_undo(self) -> None:
        """Undo the last edit of the plan."""
        if self._history is not None and self._history.past:
            self._set_plan(self._history.after_undo())
        else:
            self.sfumato.say(NOTHING_TO_UNDO)

    def action_redo(self) -> None:
        """Apply the undone edit again."""
        if self._history is not None and self._history.future:
            self._set_plan(self._history.after_redo())
        else:
            self.sfumato.say(NOTHING_TO_REDO)


def _names_or_count(lines: Sequence[VariableLine]) -> str:
    """Return the name of a single variable, or the number of several."""
    return lines[0].variable.name if len(lines) == 1 else f"{count_noun(len(lines), 'variable')}"


def _read_data_view(project_id: int, workspace: Workspace) -> DataView | None:
    """Read the plan and its data; return None for a project without data."""
    draft = find_draft(workspace, project_id)
    return None if draft is None else read_data_view(workspace, draft)
