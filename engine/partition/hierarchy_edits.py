"""Edits of a generalisation tree: nodes are grouped under a new one, moved, renamed or dissolved.

A label that stands at several levels with the same values below it is one node. Every edit returns another whole tree,
or raises ValueError with the reason: no two nodes of a tree may have one name, or a released label would not say which
it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .hierarchies import Hierarchy

Rows = list[list[str]]


@dataclass(frozen=True, slots=True)
class HierarchyNode:
    """A node and where it stands in a tree.

    label: name of the node
    low, high: lowest and highest level at which it stands
    rows: places in the tree of the values below it
    depth: number of nodes above it
    """

    label: str
    low: int
    high: int
    rows: tuple[int, ...]
    depth: int

    @property
    def is_value(self) -> bool:
        """Return whether it is one of the values, with nothing below it."""
        return self.low == 0


def list_nodes(tree: Hierarchy) -> list[HierarchyNode]:
    """List the nodes from the root down, each before those below it, in the order of the rows: (nodes,)."""
    found: list[HierarchyNode] = []
    _add_nodes(tree, tree.height, tuple(range(len(tree.rows))), 0, found)
    return found


def _add_nodes(tree: Hierarchy, high: int, rows: tuple[int, ...], depth: int, found: list[HierarchyNode]) -> None:
    """Append the node at a level over these rows, and all nodes below it."""
    label, low = tree.rows[rows[0]][high], high
    # A label repeated downwards, over the same values, is one node.
    while low > 0 and {tree.rows[row][low - 1] for row in rows} == {label}:
        low -= 1
    found.append(HierarchyNode(label, low, high, rows, depth))
    if low > 0:
        below: dict[str, list[int]] = {}
        for row in rows:
            below.setdefault(tree.rows[row][low - 1], []).append(row)
        for part in below.values():
            _add_nodes(tree, low - 1, tuple(part), depth + 1, found)


def group_nodes(tree: Hierarchy, nodes: Sequence[HierarchyNode], name: str) -> Hierarchy:
    """Return the tree with these nodes below a new one, which lies where the first of them lay."""
    if not nodes:
        raise ValueError("no node is marked; space marks one")
    _check_new_name(tree, name)
    first = nodes[0]
    if first.high == tree.height:
        raise ValueError("the root has nothing above it")
    parent, base = first.high + 1, max(node.low for node in nodes)
    if base >= parent:
        raise ValueError(f'"{_highest_node(nodes).label}" lies too high for that; take nodes below the same one')
    rows = [list(row) for row in tree.rows]
    above = tree.rows[first.rows[0]][parent:]
    # There is no level between these nodes and the one above: one is added to the whole tree, since all rows have one
    # length.
    if base + 1 >= parent:
        rows = [[*row[:parent], row[parent - 1], *row[parent:]] for row in rows]
        parent += 1
    for node in nodes:
        for row in node.rows:
            own = [node.label] * (base + 1 - node.low)
            rows[row] = [*rows[row][: node.low], *own, *[name] * (parent - base - 1), *above]
    return _rebuild_tree(rows, tree)


def move_nodes(tree: Hierarchy, nodes: Sequence[HierarchyNode], target: HierarchyNode) -> Hierarchy:
    """Return the tree with these nodes directly below another one."""
    if not nodes:
        raise ValueError("no node is marked; space marks one")
    if target.is_value:
        raise ValueError(f'"{target.label}" is a value and has nothing below it; group them instead')
    rows = [list(row) for row in tree.rows]
    for node in nodes:
        if node.low >= target.low:
            raise ValueError(f'"{node.label}" lies too high to go below "{target.label}"')
        for row in node.rows:
            above = tree.rows[target.rows[0]][target.low :]
            rows[row] = [*rows[row][: node.low], *[node.label] * (target.low - node.low), *above]
    return _rebuild_tree(rows, tree)


def rename_node(tree: Hierarchy, node: HierarchyNode, name: str) -> Hierarchy:
    """Return the tree with another name for a node. A value keeps its name, which is that of the data."""
    if node.is_value:
        raise ValueError("a value keeps its name, which the records have")
    if name == node.label:
        return tree
    _check_new_name(tree, name)
    rows = [list(row) for row in tree.rows]
    for row in node.rows:
        rows[row][node.low : node.high + 1] = [name] * (node.high + 1 - node.low)
    return _rebuild_tree(rows, tree, {node.label: name})


def dissolve_node(tree: Hierarchy, node: HierarchyNode) -> Hierarchy:
    """Return the tree without a node; the nodes below it then lie below the one above it."""
    if node.is_value:
        raise ValueError("a value cannot be taken out, since records have it")
    if node.high == tree.height:
        raise ValueError("the root stays, since everything must have one node in common")
    rows = [list(row) for row in tree.rows]
    for row in node.rows:
        rows[row][node.low : node.high + 1] = [rows[row][node.low - 1]] * (node.high + 1 - node.low)
    return _rebuild_tree(rows, tree)


def _highest_node(nodes: Sequence[HierarchyNode]) -> HierarchyNode:
    return max(nodes, key=lambda node: node.low)


def _check_new_name(tree: Hierarchy, name: str) -> None:
    """Raise ValueError if a name is empty or taken by a node."""
    if not name.strip():
        raise ValueError("a node needs a name")
    if any(name in row for row in tree.rows):
        raise ValueError(f'a node is called "{name}" already; no two may be called alike')


def _rebuild_tree(rows: Rows, before: Hierarchy, names: dict[str, str] | None = None) -> Hierarchy:
    """Build the tree of edited rows; levels that only repeat the one below are dropped.

    Nodes keep their sizes if these still fit.
    """
    columns = [list(column) for column in zip(*rows, strict=True)]
    kept = [columns[0], *(above for below, above in pairwise(columns[:-1]) if above != below), columns[-1]]
    written = tuple(tuple(row) for row in zip(*kept, strict=True))
    labels = {label for row in written for label in row}
    called = {(names or {}).get(label, label): size for label, size in before.sizes.items()}
    sizes = {label: size for label, size in called.items() if label in labels}
    try:
        return Hierarchy(written, sizes)
    except ValueError:
        # Sizes that fall towards the root would make an allowed edit fail; the default sizes always fit.
        return Hierarchy(written)
