"""Editor for the hierarchy of one quasi-identifier as a tree, with the number of records of every node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Static

from sfumato.engine.wording import count_noun
from sfumato.tui.keys.acts import bind_act
from sfumato.tui.parts.fields import FormField
from sfumato.tui.parts.offers import OfferedValue
from sfumato.tui.widgets.grid import Grid, LiveGrid
from sfumato.tui.widgets.lines import KeyLine, Line
from sfumato.tui.widgets.panel import FrameEdge, FrameSides
from sfumato.tui.widgets.tables import Columns, GridTable, TableColumn
from sfumato.workspace.plan.drafts import PlanDraft
from sfumato.workspace.reporting.tables import fit_columns
from sfumato.workspace.reporting.words import sign_for
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.form import Form
from ..parts.page import Dialog, PlanPane
from ..parts.pick_list import PickList
from ..parts.tables import TableScreen

if TYPE_CHECKING:
    from sfumato.engine.partition.hierarchies import Hierarchy as Tree
    from sfumato.engine.partition.hierarchy_edits import HierarchyNode
    from sfumato.workspace.plan.hierarchies import EditedHierarchy, HierarchyNodeLine

NODE, RECORDS_WIDTH = 30, 40
"""Width of the column of nodes, and of the columns next to it, in cells."""
NONE_TO_EDIT = "No step of the plan takes a hierarchy: a adds one of anonymisation, whose quasi-identifiers have a tree or intervals each"
UNSAVED_WARNING = "Not saved yet: enter saves, q again discards the changes"
SaveHierarchy = Callable[["EditedHierarchy"], None]


class HierarchyEditor(TableScreen["HierarchyNodeLine"], Dialog["EditedHierarchy"]):
    """Editor of a hierarchy; it returns the hierarchy to save. Each edit can be undone."""

    manual = "app hierarchy"

    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("open", "save", "Save", show=True, priority=True),
        bind_act("save", "save", "Save", priority=True),
        bind_act("mark", "mark", show=True),
        bind_act("new", "group", "Group", show=True),
        bind_act("add", "move", "Move here", show=True),
        bind_act("rename", "rename", "Rename", show=True),
        bind_act("delete", "dissolve", "Dissolve", show=True),
        bind_act("widths", "widths", "Widths", show=True),
        bind_act("propose", "propose", "Propose", show=True),
        bind_act("undo", "undo", show=True),
    ]
    AUTO_FOCUS = "LiveGrid"

    def __init__(self, opened: EditedHierarchy) -> None:
        """Create the editor for a hierarchy of the plan."""
        super().__init__()
        self._now = self._saved = opened
        self._past: list[EditedHierarchy] = []
        self._lines: list[HierarchyNodeLine] = []
        self._marked: list[str] = []
        self._proposal = 0
        self._warned = False

    def compose(self) -> ComposeResult:
        """Yield the description of the hierarchy, its nodes, the number of marked ones, and the keys."""
        with Vertical(classes="whole"):
            yield FrameEdge(name="hierarchy-head")
            with FrameSides():
                yield LiveGrid(empty="It has no nodes.")
                yield Static("", id="hierarchy-said", markup=False)
            yield FrameEdge(lower=True)
            yield KeyLine()

    def on_mount(self) -> None:
        """Show the nodes."""
        self._show_nodes()

    def _show_nodes(self, want: str | None = None) -> None:
        """Show the nodes with the cursor on the key ``want``, or why the hierarchy is invalid."""
        try:
            self._lines = self._now.node_lines()
        except ValueError as error:
            self._lines = []
            self.sfumato.say(str(error), severity="error")
        keys = [_node_key(line.node) for line in self._lines]
        # An edit may have removed marked nodes.
        self._marked = [key for key in self._marked if key in keys]
        self.show_rows(self._node_table, self._lines, want)
        self._show_description()
        self.refresh_bindings()

    @property
    def _node_table(self) -> GridTable[HierarchyNodeLine]:
        """Return the table of the present nodes, no wider than the longest of them needs."""
        level, marked, told = self._now.level, set(self._marked), self._now.shown_records
        longest = max((2 * line.node.depth + len(line.node.label) for line in self._lines), default=0)
        columns: list[TableColumn[HierarchyNodeLine]] = [
            TableColumn("mark", "", 1, cell=lambda line: sign_for("pass") if _node_key(line.node) in marked else ""),
            TableColumn("node", "node", NODE, grow_order=1, cell=_node_cell),
            TableColumn("values", "values", 7, "right", drop_order=1, cell=lambda line: f"{line.values:,}"),
            TableColumn("records", "records", 8, "right", cell=told),
        ]
        if level is not None:
            columns.append(TableColumn("released", "released", 8, cell=partial(_released_cell, level)))
        return GridTable(
            columns,
            lambda line: _node_key(line.node),
            column_fitter=partial(_fit_to_longest, max(longest, NODE) + RECORDS_WIDTH),
        )

    def _show_description(self) -> None:
        """Show the variable, its levels, values without a node, and what the hierarchy reveals."""
        opened = self._now
        height = 0 if not self._lines else self._lines[0].node.high
        released = "" if opened.level is None else f"level {opened.level} is released"
        parts = [
            f"{opened.variable.name}, {opened.place}",
            count_noun(height, "level") + " above the values",
            released,
        ]
        if lacking := opened.missing_values:
            parts.append(
                f"{sign_for('fail')} {count_noun(len(lacking), 'value')} of the data not in the tree: Propose (?) makes another"
            )
        self.query_one("#hierarchy-head", Line).set_text(replace_unprintable(" · ".join(filter(None, parts))))
        marked = f"{len(self._marked)} marked · " if self._marked else ""
        self.query_one("#hierarchy-said", Static).update(
            replace_unprintable(marked + "; ".join(filter(None, (opened.origin, opened.learnt))))
        )

    @property
    def _current_node(self) -> HierarchyNode | None:
        """Return the node under the cursor; None in an empty tree."""
        return None if self.current_row is None else self.current_row.node

    @property
    def _selected_nodes(self) -> list[HierarchyNode]:
        """Return the marked nodes in their order; without any the one under the cursor."""
        marked = [line.node for line in self._lines if _node_key(line.node) in self._marked]
        return marked or ([self._current_node] if self._current_node is not None else [])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable editing nodes of a tree, and widths of intervals."""
        if action in ("mark", "group", "move", "rename", "dissolve"):
            return self._now.setting == "hierarchies"
        if action == "widths":
            return self._now.setting == "widths"
        if action == "undo":
            return bool(self._past)
        return super().check_action(action, parameters)

    def action_mark(self) -> None:
        """Mark or unmark the node, and move to the next."""
        here, grid = self._current_node, self.query_one(LiveGrid)
        if here is None:
            return
        key = _node_key(here)
        self._marked = [one for one in self._marked if one != key] if key in self._marked else [*self._marked, key]
        at = min(grid.cursor + 1, len(self._lines) - 1)
        self._show_nodes(_node_key(self._lines[at].node))

    def _edit_tree(self, change: Callable[[], Tree]) -> None:
        """Apply an edit of the tree, or show why it is impossible."""
        try:
            tree = change()
        except ValueError as error:
            self.sfumato.say(str(error), severity="warning")
            return
        self._set_hierarchy(self._now.with_tree(tree))

    def _set_hierarchy(self, opened: EditedHierarchy) -> None:
        """Show an edited hierarchy, so that it can be undone."""
        self._past.append(self._now)
        self._now, self._marked, self._warned = opened, [], False
        self._show_nodes()

    async def action_group(self) -> None:
        """Ask for the name of a new node above the selected ones."""
        from sfumato.engine.partition.hierarchy_edits import group_nodes

        tree, nodes = self._now.tree, self._selected_nodes
        if tree is not None and nodes:
            what = f"New node over {replace_unprintable(', '.join(node.label for node in nodes[:4]))}{' …' if len(nodes) > 4 else ''}"
            await self._ask_name(what, "", partial(group_nodes, tree, nodes))

    async def action_rename(self) -> None:
        """Ask for another name of the node; a value gets its own name back."""
        from sfumato.engine.partition.hierarchy_edits import rename_node

        tree, here = self._now.tree, self._current_node
        if tree is None or here is None:
            return
        if here.is_value:
            self._edit_tree(partial(rename_node, tree, here, ""))
        else:
            await self._ask_name(
                f"Rename {replace_unprintable(here.label)}", here.label, partial(rename_node, tree, here)
            )

    async def _ask_name(self, title: str, now: str, change: Callable[[str], Tree]) -> None:
        """Ask for a name, and apply a change of the tree with it."""

        def check(table: Mapping[str, Any]) -> None:
            """Raise BadInput if the name is not possible."""
            _raise_bad_input(lambda: change(str(table.get("name", ""))), "name")

        def apply_name(table: dict[str, Any] | None) -> None:
            """Apply the change with the typed name."""
            if table is not None:
                self._edit_tree(lambda: change(str(table.get("name", ""))))

        field = FormField("name", "what a released value is called that is one of these", value=now)
        await self.sfumato.open(Form(title, [field], check), apply_name)

    def action_move(self) -> None:
        """Put the marked nodes below the one under the cursor."""
        from sfumato.engine.partition.hierarchy_edits import move_nodes

        tree, here = self._now.tree, self._current_node
        if tree is not None and here is not None:
            nodes = [node for node in self._selected_nodes if _node_key(node) in self._marked]
            self._edit_tree(partial(move_nodes, tree, nodes, here))

    def action_dissolve(self) -> None:
        """Remove the node; its children become children of its parent."""
        from sfumato.engine.partition.hierarchy_edits import dissolve_node

        tree, here = self._now.tree, self._current_node
        if tree is not None and here is not None:
            self._edit_tree(partial(dissolve_node, tree, here))

    async def action_widths(self) -> None:
        """Ask for the widths of the intervals."""

        def widths(table: Mapping[str, Any]) -> list[float]:
            """Return the widths in the answers of the form."""
            return [float(width) for width in table.get("widths", [])]

        def check(table: Mapping[str, Any]) -> None:
            """Raise BadInput if the widths are not possible."""
            _raise_bad_input(lambda: _check_positive(widths(table)), "widths")
            _raise_bad_input(lambda: self._now.with_widths(widths(table)).node_lines(), "widths")

        def apply_widths(table: dict[str, Any] | None) -> None:
            """Apply the typed widths."""
            if table is not None:
                self._set_hierarchy(self._now.with_widths(widths(table)))

        what = (
            "of the intervals at each level, each a multiple of the one before; of dates in days; none: the root alone"
        )
        field = FormField("widths", what, "list", self._now.recipe_value)
        await self.sfumato.open(
            Form(f"Widths of {replace_unprintable(self._now.variable.name)}", [field], check), apply_widths
        )

    def action_propose(self) -> None:
        """Start again from the proposed hierarchy; the next time from the next proposal."""
        offered = self._now.proposals
        # An edited hierarchy first returns to its proposal; only an unchanged one goes on to the next.
        if self._now.origin == offered[self._proposal].description:
            self._proposal = (self._proposal + 1) % len(offered)
        self._set_hierarchy(self._now.with_proposal(offered[self._proposal]))
        self.sfumato.say(f"Proposal {self._proposal + 1} of {len(offered)}: {offered[self._proposal].description}")

    def action_undo(self) -> None:
        """Undo the last edit."""
        if self._past:
            self._now = self._past.pop()
            self._show_nodes()

    @on(Grid.RowSelected)
    def action_save(self) -> None:
        self.dismiss(self._now)

    def action_close(self) -> None:
        """Close without saving; after edits only at the second time."""
        if self._now is not self._saved and not self._warned:
            self._warned = True
            self.sfumato.say(UNSAVED_WARNING, severity="warning")
            return
        self.dismiss(None)


def _node_cell(line: HierarchyNodeLine) -> str:
    """Return a node's label, indented by its depth."""
    return "  " * line.node.depth + replace_unprintable(line.node.label)


def _released_cell(level: int, line: HierarchyNodeLine) -> str:
    """Return the sign of a node on the released level."""
    # A label that stands at several levels with the same values below it is one node.
    return sign_for("pass") if line.node.low <= level <= line.node.high else ""


def _fit_to_longest(most: int, columns: Columns[HierarchyNodeLine], width: int) -> Columns[HierarchyNodeLine]:
    """Fit the columns into the width, at most ``most`` cells."""
    # In a wide terminal the numbers would stand far from their nodes.
    return fit_columns(columns, min(width, most))


def _node_key(node: HierarchyNode) -> str:
    """Return a key of a node that no other node has."""
    # Labels may repeat between levels, and children of different nodes may have the same label.
    return f"{node.low}:{node.rows[0]}:{node.label}"


def _raise_bad_input(attempt: Callable[[], object], place: str) -> None:
    """Raise BadInput at ``place`` if the attempt fails."""
    from sfumato.engine.errors import BadInput

    try:
        attempt()
    except (ValueError, TypeError) as error:
        raise BadInput(place, str(error)) from None


def _check_positive(widths: Sequence[float]) -> None:
    """Raise ValueError unless all widths are above 0."""
    if any(width <= 0 for width in widths):
        raise ValueError("a width is above 0")


def hierarchy_edit(opened: EditedHierarchy) -> Callable[[str], str]:
    """Return the function that puts the hierarchy into a plan's text."""

    def change(toml: str) -> str:
        """Return the text with the hierarchy; called in a thread."""
        from sfumato.workspace.plan.hierarchies import replace_hierarchy

        return replace_hierarchy(toml, opened)

    return change


async def edit_hierarchy(
    pane: PlanPane, draft: PlanDraft, table: Mapping[str, Any] | None, at: str, save: SaveHierarchy
) -> None:
    """Ask for the quasi-identifier, if there are several, and open its hierarchy.

    at: step or variable under the cursor
    table: the draft as a table, if known
    save: function that stores the edited hierarchy
    """
    from sfumato.engine.data.toml import read_toml
    from sfumato.workspace.plan.hierarchies import generalised_variables, open_hierarchy

    app = pane.sfumato
    everywhere = generalised_variables(read_toml(draft.toml) if table is None else table)
    found = [one for one in everywhere if at in (str(one[0]), one[1])] or everywhere
    if not found:
        app.say(NONE_TO_EDIT, severity="warning")
        return

    def save_if_edited(opened: EditedHierarchy | None) -> None:
        """Save the hierarchy unless the editor was cancelled."""
        if opened is not None:
            save(opened)

    async def show(opened: EditedHierarchy) -> None:
        """Open the editor."""
        await app.open(HierarchyEditor(opened), save_if_edited)

    def open_chosen_hierarchy(names: tuple[str, ...] | None) -> None:
        """Read and open the hierarchy of the chosen variable."""
        if names:
            place, name, _ = next(one for one in found if one[1] == names[0])
            pane.compute(lambda workspace: open_hierarchy(workspace, draft, place, name), show)

    if len(found) == 1:
        open_chosen_hierarchy((found[0][1],))
        return
    kinds = {"hierarchies": "tree of its values", "widths": "intervals"}
    offers = [OfferedValue(name, f"{kinds[holds]}, {place}") for place, name, holds in found]
    await app.open(PickList("Whose hierarchy", offers), open_chosen_hierarchy)
