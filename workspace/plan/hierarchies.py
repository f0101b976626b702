"""Hierarchy of a quasi-identifier while it is edited: a tree of values, or intervals, with the records below each node."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.engine.methods.registry import method_by_key
from sfumato.engine.partition.generated_hierarchies import HierarchyProposal, propose_hierarchies
from sfumato.engine.partition.hierarchies import ROUNDING, Hierarchy, flat_hierarchy, interval_hierarchy
from sfumato.engine.partition.hierarchy_edits import HierarchyNode, list_nodes
from sfumato.engine.partition.hierarchy_files import parse_hierarchy_rows
from sfumato.engine.recipe.data_source import DataSource

from ..ingest.files import find_source, read_file_microdata
from ..policy.policy import read_policy_of_workspace
from ..recipes import find_recipe
from ..store.workspace import Workspace
from .drafts import PlanDraft
from .edits import StepPlace, replace_step
from .recipe_files import read_recipe_files

HierarchySetting = Literal["hierarchies", "widths"]
"""Setting of a step with its hierarchies: trees of values, or widths of intervals."""
HIERARCHY_SECTION = "anonymisation"
MAX_NODES = 5_000
NOT_A_TREE = (
    "is no tree: a line for each value, once, with as many nodes as the others have, the last of them one root for all"
)
QUASI_IDENTIFIER_ROLES = ("quasi_identifier", "known")
MAX_PROPOSED_LEAVES = 60
"""A tree of more values is proposed where it is edited, not in a draft."""


@dataclass(frozen=True, slots=True)
class HierarchyNodeLine:
    """Node of a hierarchy with the values and records below it.

    node: the node
    values: number of distinct values
    records: number of records, None where that is hidden
    is_few: hidden because fewer than the policy's smallest cell, not because another node would be disclosed
    """

    node: HierarchyNode
    values: int
    records: int | None
    is_few: bool = False


@dataclass(frozen=True)
class EditedHierarchy:
    """Hierarchy of a variable while it is edited, with the data of the variable.

    place: place of its step
    variable: the variable
    setting: table of the step that contains it
    tree: tree of values, if it is one
    widths: widths of intervals
    counts: records of each value, for a variable with levels
    numbers: values of any other variable, (n,)
    proposals: proposed hierarchies
    smallest: number below which no number of records is shown
    level: level that is released, if one is
    origin: how the hierarchy was made
    learnt: what a proposal reveals of the records
    """

    place: StepPlace
    variable: Variable
    setting: HierarchySetting
    tree: Hierarchy | None
    widths: tuple[float, ...]
    counts: Mapping[str, int]
    numbers: NDArray[np.float64]
    proposals: tuple[HierarchyProposal, ...]
    smallest: int
    level: int | None = None
    origin: str = ""
    learnt: str = ""

    def with_tree(self, tree: Hierarchy) -> EditedHierarchy:
        """Return the same with another tree."""
        return replace(self, tree=tree, origin="as you edit it", learnt="")

    def with_widths(self, widths: Sequence[float]) -> EditedHierarchy:
        """Return the same with other widths of intervals. Raises ValueError where one width does not divide the next."""
        interval_hierarchy(np.zeros(1), widths)
        return replace(self, widths=tuple(widths), origin="widths as you say", learnt="")

    def with_proposal(self, proposal: HierarchyProposal) -> EditedHierarchy:
        """Return the same with the tree and the widths of a proposal."""
        return replace(
            self, tree=proposal.tree, widths=proposal.widths, origin=proposal.description, learnt=proposal.learnt_facts
        )

    @property
    def as_tree(self) -> Hierarchy:
        """Return the tree of the values in the data; of intervals too, down to every single number."""
        if self.setting == "hierarchies":
            return self.tree or flat_hierarchy(list(self.counts) or ["*"])
        return interval_hierarchy(np.unique(self.numbers), self.widths, dates=self.variable.kind is Kind.DATE)[0]

    def shown_records(self, line: HierarchyNodeLine) -> str:
        """Return a line's number of records for display."""
        return f"{line.records:,}" if line.records is not None else f"<{self.smallest}" if line.is_few else "hidden"

    @property
    def missing_values(self) -> tuple[str, ...]:
        """Return the values in the data that the tree lacks."""
        known = set(self.tree.values) if self.tree is not None else set(self.counts)
        return tuple(value for value, count in self.counts.items() if count and value not in known)

    @property
    def recipe_value(self) -> Any:
        """Return the value that a recipe has for the variable in ``setting``; None where it needs none."""
        if self.setting == "hierarchies":
            return None if self.tree is None else _tree_for_recipe(self.tree)
        return [int(width) if float(width).is_integer() else width for width in self.widths] or None

    def node_lines(self) -> list[HierarchyNodeLine]:
        """List the nodes from the root down, each before those below it; for intervals those of every width.

        Raises ValueError where there are too many.
        """
        if self.setting == "hierarchies":
            tree = self.as_tree
            own = np.array([self.counts.get(value, 0) for value in tree.values])
            return _hide_small_counts(list_nodes(tree), own, np.ones(len(own), dtype=np.int64), self.smallest)
        if not self.widths:
            node = HierarchyNode("*", 1, 1, (0,), 0)
            return _hide_small_counts(
                [node], np.array([len(self.numbers)]), np.array([len(np.unique(self.numbers))]), self.smallest
            )
        narrowest = self.widths[0]
        distinct, count = np.unique(self.numbers, return_counts=True)
        starts, first = np.unique(np.floor(distinct / narrowest + ROUNDING) * narrowest, return_inverse=True)
        if len(starts) > MAX_NODES:
            raise ValueError(f"{len(starts):,} intervals are too many to show; take wider ones")
        tree, _ = interval_hierarchy(starts, self.widths, dates=self.variable.kind is Kind.DATE)
        records = np.bincount(first, weights=count, minlength=len(starts)).astype(np.int64)
        # The leaves of this tree are starts of the narrowest intervals, not values, so they are no lines.
        nodes = [node for node in list_nodes(tree) if not node.is_value]
        return _hide_small_counts(nodes, records, np.bincount(first, minlength=len(starts)), self.smallest)


def _tree_for_recipe(tree: Hierarchy) -> Any:
    """Return the tree as recipes write it, without node sizes where these follow from the tree."""
    try:
        usual = Hierarchy(tree.rows)
    except ValueError:  # a root over one value needs a size
        return tree.written
    return usual.written if np.array_equal(usual.node_sizes, tree.node_sizes) else tree.written


def _hide_small_counts(
    nodes: Sequence[HierarchyNode], records: NDArray[np.int64], values: NDArray[np.int64], smallest: int
) -> list[HierarchyNodeLine]:
    """Return the lines of nodes with numbers of records below ``smallest`` hidden.

    ``records`` and ``values`` are numbers by leaf, (n_leaves,). Numbers from which a hidden one could be computed are
    hidden too.
    """
    totals = [int(records[list(node.rows)].sum()) for node in nodes]
    below = _children_of_nodes(nodes)
    few = {at for at, total in enumerate(totals) if 0 < total < smallest}
    hidden = set(few)
    for children in below.values():  # from the root down, so that what is hidden above is known
        # A single hidden child follows from the parent and the other children by subtraction: a second one is hidden.
        mine = [at for at in children if at in hidden]
        open_ones = sorted((at for at in children if at not in hidden and totals[at]), key=lambda at: totals[at])
        if len(mine) == 1 and open_ones:
            hidden.add(open_ones[0])
    for at, children in below.items():
        if at in hidden and children and not any(child in hidden for child in children):
            # The children of a hidden node add up to it, so one of them must be hidden.
            hidden.add(min(children, key=lambda child: totals[child]))
    return [
        HierarchyNodeLine(node, int(values[list(node.rows)].sum()), None if at in hidden else totals[at], at in few)
        for at, node in enumerate(nodes)
    ]


def _children_of_nodes(nodes: Sequence[HierarchyNode]) -> dict[int, list[int]]:
    """Return the positions of the child nodes of each node, from the root down."""
    below: dict[int, list[int]] = {at: [] for at in range(len(nodes))}
    path: list[int] = []
    for at, node in enumerate(nodes):
        path = path[: node.depth]
        if path:
            below[path[-1]].append(at)
        path.append(at)
    return below


def proposed_hierarchies(data: Microdata, known: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return proposed tables ``hierarchies`` and ``widths`` for the quasi-identifiers that can be generalised in steps."""
    found: dict[str, dict[str, Any]] = {"hierarchies": {}, "widths": {}}
    for name in known:
        # No class of a hierarchy covers a missing value.
        if data.missing_mask(name).any() or not len(data):
            continue
        kind = data.schema[name].kind
        if kind.has_levels and (kind is Kind.BINARY or data.frame[name].nunique() > MAX_PROPOSED_LEAVES):
            continue
        first = propose_hierarchies(data, name)[0]
        # A tree of height 1 has nothing between a value and the root: to suppress it, no tree is needed.
        if first.tree is None or first.tree.height > 1:
            for setting, by_name in first.recipe_settings(name).items():
                found[setting] |= by_name
    return found


def generalised_variables(table: Mapping[str, Any]) -> list[tuple[StepPlace, str, HierarchySetting]]:
    """List the quasi-identifiers that steps of a plan generalise along a hierarchy, each with its step and its setting."""
    variables = table.get("variables", {})
    found: list[tuple[StepPlace, str, HierarchySetting]] = []
    for index, step in enumerate(table.get(HIERARCHY_SECTION, [])):
        name = str(step.get("method", ""))
        method = method_by_key(name if "." in name else f"{HIERARCHY_SECTION}.{name}")
        known = {info.name for info in method.spec.params()} if method else set()
        by_role = [one for one, said in variables.items() if said.get("role") in QUASI_IDENTIFIER_ROLES]
        for variable in step.get("quasi_identifiers") or by_role:
            kind = variables.get(variable, {}).get("kind", "")
            holds: HierarchySetting = (
                "hierarchies" if kind in [one.value for one in Kind if one.has_levels] else "widths"
            )
            if holds in known:
                found.append((StepPlace(HIERARCHY_SECTION, index), str(variable), holds))
    return found


def open_hierarchy(workspace: Workspace, draft: PlanDraft, place: StepPlace, name: str) -> EditedHierarchy:
    """Open the hierarchy of a variable in a step of a plan, with the stored records. Raises BadInput and NotFound."""
    table = read_toml(draft.toml)
    dataset = workspace.find_dataset(draft.dataset_id)
    variable = Variable.from_table(name, table["variables"][name], f"variables.{name}")
    stored = workspace.read_stored_dataset(dataset)
    data = conform_to_schema(stored.frame[[name]], Schema((variable,)), MissingPolicy.KEEP)
    step = table[place.section][place.index]
    holds: HierarchySetting = "hierarchies" if variable.kind.has_levels else "widths"
    return hierarchy_of_step(
        data, name, step, place, holds, read_policy_of_workspace(workspace.directory).smallest_cell
    )


def hierarchy_of_step(
    data: Microdata, name: str, step: Mapping[str, Any], place: StepPlace, setting: HierarchySetting, smallest: int
) -> EditedHierarchy:
    """Return the hierarchy that a step has for a variable, else the first proposal. Raises BadInput."""
    variable = data.schema[name]
    counts: dict[str, int] = {}
    if setting == "hierarchies":
        counts = dict.fromkeys(variable.levels, 0)
        counts |= {str(value): int(count) for value, count in data.frame[name].value_counts(sort=False).items()}
    numbers = np.empty(0) if setting == "hierarchies" else data.present_numbers(name)
    level = dict(step.get("levels") or {}).get(name)
    offered = propose_hierarchies(data, name)
    opened = EditedHierarchy(
        place,
        variable,
        setting,
        None,
        (),
        counts,
        numbers,
        offered,
        smallest,
        level if isinstance(level, int) else None,
    )
    given = dict(step.get(setting) or {}).get(name)
    where = f"{place}.{setting}.{name}"
    if given is None:
        return opened.with_proposal(offered[0])
    if isinstance(given, str):
        raise BadInput(where, f'"{given}" is a file; give the tree as rows, and it can be edited here')
    try:
        if setting == "hierarchies":
            return replace(opened, tree=Hierarchy.parse(given), origin="as the plan says")
        return replace(opened.with_widths([float(width) for width in given]), origin="as the plan says")
    except (ValueError, TypeError) as error:
        raise BadInput(where, str(error)) from None


def hierarchy_of_recipe(
    recipe_name: str, data_file: str | None, name: str, tree: str | None, smallest: int, key: bytes, *, propose: bool
) -> EditedHierarchy:
    """Return the hierarchy of a variable in the first step of a recipe that has one, else the first proposal.

    ``tree`` is the text of a file with a tree to use instead. Raises BadInput.
    """
    file = find_recipe(recipe_name)
    table = read_recipe_files(file.table, file.data_directory)
    variable = table.get("variables", {}).get(name)
    if not isinstance(variable, Mapping):
        named = ", ".join(table.get("variables", {}))
        raise BadInput(
            "VARIABLE", f'the recipe has no "{name}"{near_miss_hint(name, table.get("variables", {}))}; it has {named}'
        )
    schema = Schema(
        tuple(Variable.from_table(one, said, f"variables.{one}") for one, said in table["variables"].items())
    )
    described, data_of = schema[name], DataSource.from_table(table.get("data", {}))
    source = find_source(data_file, place="--data") if data_file else find_source(data_of.file, file.data_directory)
    seed = table.get("release", {}).get("seed", 1)
    data = read_file_microdata(source, data_of, schema, seed if isinstance(seed, int) else 1, key=key)
    held = next(
        ((place, table[place.section][place.index]) for place, one, _ in generalised_variables(table) if one == name),
        None,
    )
    place, step = held or (StepPlace(HIERARCHY_SECTION, 0), {})
    holds: HierarchySetting = "hierarchies" if described.kind.has_levels else "widths"
    if propose or tree is not None:
        step = {one: said for one, said in step.items() if one != holds}
    opened = hierarchy_of_step(data, name, step, place, holds, smallest)
    if tree is None:
        return opened
    if holds == "widths":
        raise BadInput("--from", f'"{name}" is {described.kind}, whose intervals have widths and no tree')
    try:
        rows = parse_hierarchy_rows(tree)
    except (ValueError, csv.Error) as error:
        raise BadInput("--from", str(error)) from None
    try:
        return replace(opened, tree=Hierarchy(rows), origin="as the file says", learnt="")
    except ValueError:  # its words quote values of the file, which may be another than was meant
        raise BadInput("--from", NOT_A_TREE) from None


def replace_hierarchy(toml: str, opened: EditedHierarchy) -> str:
    """Return a plan's text with the edited hierarchy in its step."""
    table = read_toml(toml)
    place, name = opened.place, opened.variable.name
    step = dict(table[place.section][place.index])
    held = {key: value for key, value in dict(step.get(opened.setting) or {}).items() if key != name}
    if opened.recipe_value is not None:
        held[name] = opened.recipe_value
    step = {key: value for key, value in step.items() if key != opened.setting} | (
        {opened.setting: held} if held else {}
    )
    return replace_step(toml, place, step)
