"""The hierarchy of one quasi-identifier as a tree, edited by keys, with the records of every node."""

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
from sfumato.tui.keys.acts import bind
from sfumato.tui.parts.fields import Field
from sfumato.tui.parts.offers import Offer
from sfumato.tui.widgets.grid import Grid, LiveGrid
from sfumato.tui.widgets.lines import KeyLine, Line
from sfumato.tui.widgets.panel import Edge, Sides
from sfumato.tui.widgets.tables import Columns, Table, TableColumn
from sfumato.workspace.plan.drafts import Draft
from sfumato.workspace.reporting.tables import fitted
from sfumato.workspace.reporting.words import mark
from sfumato.workspace.visible_text import replace_unprintable

from ..parts.form import Form
from ..parts.page import Dialog, PlanPane
from ..parts.pick_list import PickList
from ..parts.tables import TableScreen

if TYPE_CHECKING:
    from sfumato.engine.partition.hierarchies import Hierarchy as Tree
    from sfumato.engine.partition.hierarchy_edits import HierarchyNode
    from sfumato.workspace.plan.hierarchies import OpenHierarchy, TreeLine

NODE, BESIDE = 30, 40
"""Cells of the columns beside the nodes."""
NONE_TO_EDIT = "No step of the plan takes a hierarchy: a adds one of anonymisation, whose quasi-identifiers have a tree or intervals each"
LEAVE = "Not saved yet: enter saves, q again discards the changes"
Save = Callable[["OpenHierarchy"], None]


class Hierarchy(TableScreen["TreeLine"], Dialog["OpenHierarchy"]):
    """Answers the hierarchy as it is to be saved. Each edit can be taken back."""

    manual = "app hierarchy"

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("open", "save", "Save", show=True, priority=True),
        bind("save", "save", "Save", priority=True),
        bind("mark", "mark", show=True),
        bind("new", "group", "Group", show=True),
        bind("add", "move", "Move here", show=True),
        bind("rename", "rename", "Rename", show=True),
        bind("delete", "dissolve", "Dissolve", show=True),
        bind("widths", "widths", "Widths", show=True),
        bind("propose", "propose", "Propose", show=True),
        bind("undo", "undo", show=True),
    ]
    AUTO_FOCUS = "LiveGrid"

    def __init__(self, opened: OpenHierarchy) -> None:
        super().__init__()
        self._now = self._saved = opened
        self._past: list[OpenHierarchy] = []
        self._lines: list[TreeLine] = []
        self._marked: list[str] = []
        self._proposal = 0
        self._warned = False

    def compose(self) -> ComposeResult:
        """What the hierarchy is, its nodes, what it shows of the records, and the keys."""
        with Vertical(classes="whole"):
            yield Edge(name="hierarchy-head")
            with Sides():
                yield LiveGrid(empty="It has no nodes.")
                yield Static("", id="hierarchy-said", markup=False)
            yield Edge(lower=True)
            yield KeyLine()

    def on_mount(self) -> None:
        self._show()

    def _show(self, want: str | None = None) -> None:
        try:
            self._lines = self._now.lines()
        except ValueError as error:
            self._lines = []
            self.sfumato.say(str(error), severity="error")
        keys = [_key(line.node) for line in self._lines]
        self._marked = [key for key in self._marked if key in keys]
        self.show_rows(self._table, self._lines, want)
        self._say()
        self.refresh_bindings()

    @property
    def _table(self) -> Table[TreeLine]:
        """The nodes of the hierarchy as it is now, no wider than the longest of them needs."""
        level, marked, told = self._now.level, set(self._marked), self._now.records_told
        longest = max((2 * line.node.depth + len(line.node.label) for line in self._lines), default=0)
        columns: list[TableColumn[TreeLine]] = [
            TableColumn("mark", "", 1, cell=lambda line: mark("pass") if _key(line.node) in marked else ""),
            TableColumn("node", "node", NODE, grows=1, cell=_node_cell),
            TableColumn("values", "values", 7, "right", spare=1, cell=lambda line: f"{line.values:,}"),
            TableColumn("records", "records", 8, "right", cell=told),
        ]
        if level is not None:
            columns.append(TableColumn("released", "released", 8, cell=partial(_released_cell, level)))
        return Table(columns, lambda line: _key(line.node), fit=partial(_in_need, max(longest, NODE) + BESIDE))

    def _say(self) -> None:
        opened = self._now
        height = 0 if not self._lines else self._lines[0].node.high
        released = "" if opened.level is None else f"level {opened.level} is released"
        parts = [
            f"{opened.variable.name}, {opened.place}",
            count_noun(height, "level") + " above the values",
            released,
        ]
        if lacking := opened.lacking:
            parts.append(
                f"{mark('fail')} {count_noun(len(lacking), 'value')} of the data not in the tree: Propose (?) makes another"
            )
        self.query_one("#hierarchy-head", Line).say(replace_unprintable(" · ".join(filter(None, parts))))
        marked = f"{len(self._marked)} marked · " if self._marked else ""
        self.query_one("#hierarchy-said", Static).update(
            replace_unprintable(marked + "; ".join(filter(None, (opened.said, opened.learnt))))
        )

    @property
    def _here(self) -> HierarchyNode | None:
        return None if self.here is None else self.here.node

    @property
    def _chosen(self) -> list[HierarchyNode]:
        """The marked nodes in their order; without any the one under the cursor."""
        marked = [line.node for line in self._lines if _key(line.node) in self._marked]
        return marked or ([self._here] if self._here is not None else [])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Trees are edited node by node, intervals by their widths."""
        if action in ("mark", "group", "move", "rename", "dissolve"):
            return self._now.holds == "hierarchies"
        if action == "widths":
            return self._now.holds == "widths"
        if action == "undo":
            return bool(self._past)
        return super().check_action(action, parameters)

    def action_mark(self) -> None:
        """Mark the node, or take its mark away, and go on to the next."""
        here, grid = self._here, self.query_one(LiveGrid)
        if here is None:
            return
        key = _key(here)
        self._marked = [one for one in self._marked if one != key] if key in self._marked else [*self._marked, key]
        at = min(grid.cursor + 1, len(self._lines) - 1)
        self._show(_key(self._lines[at].node))

    def _edit(self, change: Callable[[], Tree]) -> None:
        """Do an edit of the tree, or say why it cannot be."""
        try:
            tree = change()
        except ValueError as error:
            self.sfumato.say(str(error), severity="warning")
            return
        self._put(self._now.with_tree(tree))

    def _put(self, opened: OpenHierarchy) -> None:
        self._past.append(self._now)
        self._now, self._marked, self._warned = opened, [], False
        self._show()

    async def action_group(self) -> None:
        """Put the marked nodes below a new one."""
        from sfumato.engine.partition.hierarchy_edits import group_nodes

        tree, nodes = self._now.tree, self._chosen
        if tree is not None and nodes:
            what = f"New node over {replace_unprintable(', '.join(node.label for node in nodes[:4]))}{' …' if len(nodes) > 4 else ''}"
            await self._ask_name(what, "", partial(group_nodes, tree, nodes))

    async def action_rename(self) -> None:
        from sfumato.engine.partition.hierarchy_edits import rename_node

        tree, here = self._now.tree, self._here
        if tree is None or here is None:
            return
        if here.is_value:
            self._edit(partial(rename_node, tree, here, ""))
        else:
            await self._ask_name(
                f"Rename {replace_unprintable(here.label)}", here.label, partial(rename_node, tree, here)
            )

    async def _ask_name(self, title: str, now: str, change: Callable[[str], Tree]) -> None:
        def check(table: Mapping[str, Any]) -> None:
            _refuse(lambda: change(str(table.get("name", ""))), "name")

        def answered(table: dict[str, Any] | None) -> None:
            if table is not None:
                self._edit(lambda: change(str(table.get("name", ""))))

        field = Field("name", "what a released value is called that is one of these", value=now)
        await self.sfumato.open(Form(title, [field], check), answered)

    def action_move(self) -> None:
        """Put the marked nodes below the one under the cursor."""
        from sfumato.engine.partition.hierarchy_edits import move_nodes

        tree, here = self._now.tree, self._here
        if tree is not None and here is not None:
            nodes = [node for node in self._chosen if _key(node) in self._marked]
            self._edit(partial(move_nodes, tree, nodes, here))

    def action_dissolve(self) -> None:
        """Take the node out; what lay below it lies below the one above."""
        from sfumato.engine.partition.hierarchy_edits import dissolve_node

        tree, here = self._now.tree, self._here
        if tree is not None and here is not None:
            self._edit(partial(dissolve_node, tree, here))

    async def action_widths(self) -> None:
        """Give the widths of the intervals."""

        def widths(table: Mapping[str, Any]) -> list[float]:
            return [float(width) for width in table.get("widths", [])]

        def check(table: Mapping[str, Any]) -> None:
            _refuse(lambda: _positive(widths(table)), "widths")
            _refuse(lambda: self._now.with_widths(widths(table)).lines(), "widths")

        def answered(table: dict[str, Any] | None) -> None:
            if table is not None:
                self._put(self._now.with_widths(widths(table)))

        what = (
            "of the intervals at each level, each a multiple of the one before; of dates in days; none: the root alone"
        )
        field = Field("widths", what, "list", self._now.written)
        await self.sfumato.open(
            Form(f"Widths of {replace_unprintable(self._now.variable.name)}", [field], check), answered
        )

    def action_propose(self) -> None:
        """Begin anew with what is proposed; again: with the next proposal."""
        offered = self._now.proposals
        if self._now.said == offered[self._proposal].description:
            self._proposal = (self._proposal + 1) % len(offered)
        self._put(self._now.proposed(offered[self._proposal]))
        self.sfumato.say(f"Proposal {self._proposal + 1} of {len(offered)}: {offered[self._proposal].description}")

    def action_undo(self) -> None:
        if self._past:
            self._now = self._past.pop()
            self._show()

    @on(Grid.Selected)
    def action_save(self) -> None:
        self.dismiss(self._now)

    def action_close(self) -> None:
        """Leave it as it was; what was edited only at the second time."""
        if self._now is not self._saved and not self._warned:
            self._warned = True
            self.sfumato.say(LEAVE, severity="warning")
            return
        self.dismiss(None)


def _node_cell(line: TreeLine) -> str:
    return "  " * line.node.depth + replace_unprintable(line.node.label)


def _released_cell(level: int, line: TreeLine) -> str:
    return mark("pass") if line.node.low <= level <= line.node.high else ""


def _in_need(most: int, columns: Columns[TreeLine], width: int) -> Columns[TreeLine]:
    return fitted(columns, min(width, most))


def _key(node: HierarchyNode) -> str:
    return f"{node.low}:{node.rows[0]}:{node.label}"


def _refuse(attempt: Callable[[], object], place: str) -> None:
    """BadInput at ``place`` where an attempt is refused."""
    from sfumato.engine.errors import BadInput

    try:
        attempt()
    except (ValueError, TypeError) as error:
        raise BadInput(place, str(error)) from None


def _positive(widths: Sequence[float]) -> None:
    if any(width <= 0 for width in widths):
        raise ValueError("a width is above 0")


def saved_text(opened: OpenHierarchy) -> Callable[[str], str]:
    """What becomes of a plan's text with the hierarchy in it. The text is rewritten in a thread."""

    def change(toml: str) -> str:
        from sfumato.workspace.plan.hierarchies import with_hierarchy

        return with_hierarchy(toml, opened)

    return change


async def edit_hierarchy(pane: PlanPane, draft: Draft, table: Mapping[str, Any] | None, at: str, save: Save) -> None:
    """Ask which quasi-identifier, where there are several, and open its hierarchy.

    ``at`` is the step or the variable under the cursor; ``table`` is what the draft says, where that is known.
    """
    from sfumato.engine.data.toml import read_toml
    from sfumato.workspace.plan.hierarchies import open_hierarchy, with_hierarchies

    app = pane.sfumato
    everywhere = with_hierarchies(read_toml(draft.toml) if table is None else table)
    found = [one for one in everywhere if at in (str(one[0]), one[1])] or everywhere
    if not found:
        app.say(NONE_TO_EDIT, severity="warning")
        return

    def answered(opened: OpenHierarchy | None) -> None:
        if opened is not None:
            save(opened)

    async def show(opened: OpenHierarchy) -> None:
        await app.open(Hierarchy(opened), answered)

    def chosen(names: tuple[str, ...] | None) -> None:
        if names:
            place, name, _ = next(one for one in found if one[1] == names[0])
            pane.compute(lambda workspace: open_hierarchy(workspace, draft, place, name), show)

    if len(found) == 1:
        chosen((found[0][1],))
        return
    kinds = {"hierarchies": "tree of its values", "widths": "intervals"}
    offers = [Offer(name, f"{kinds[holds]}, {place}") for place, name, holds in found]
    await app.open(PickList("Whose hierarchy", offers), chosen)
