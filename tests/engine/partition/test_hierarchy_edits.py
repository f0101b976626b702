"""Edits of a tree: whatever is done in any order, it is a whole tree of the same values, and only what was asked for changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.partition.hierarchies import Hierarchy, flat_hierarchy
from sfumato.engine.partition.hierarchy_edits import (
    HierarchyNode,
    dissolve_node,
    group_nodes,
    list_nodes,
    move_nodes,
    rename_node,
)

WORK = flat_hierarchy(["Private", "State-gov", "Local-gov", "Federal-gov", "Self-emp", "Without-pay"])


def node(tree: Hierarchy, label: str) -> HierarchyNode:
    return next(one for one in list_nodes(tree) if one.label == label)


def nodes(tree: Hierarchy, *labels: str) -> list[HierarchyNode]:
    return [node(tree, label) for label in labels]


def drawing(tree: Hierarchy) -> list[str]:
    return ["  " * one.depth + one.label for one in list_nodes(tree)]


def government() -> Hierarchy:
    return group_nodes(WORK, nodes(WORK, "State-gov", "Local-gov", "Federal-gov"), "government")


def test_marked_values_are_joined_under_a_new_node() -> None:
    tree = government()
    assert drawing(tree) == [
        "*", "  Private", "  government", "    State-gov", "    Local-gov", "    Federal-gov", "  Self-emp", "  Without-pay",
    ]  # fmt: skip
    assert tree.rows[1] == ("State-gov", "government", "*")
    assert tree.rows[0] == ("Private", "Private", "*")


def test_a_second_group_uses_the_room_that_is_there_and_a_group_of_groups_adds_a_level() -> None:
    tree = government()
    tree = group_nodes(tree, nodes(tree, "Private", "Self-emp"), "market")
    assert tree.height == 2
    tree = group_nodes(tree, nodes(tree, "government", "market"), "paid")
    assert tree.height == 3
    assert tree.rows[0] == ("Private", "market", "paid", "*")
    assert tree.rows[5] == ("Without-pay", "Without-pay", "Without-pay", "*")
    tree = group_nodes(tree, nodes(tree, "State-gov", "Local-gov"), "regional")
    assert tree.rows[1] == ("State-gov", "regional", "government", "paid", "*")
    assert tree.rows[3][1:] == ("Federal-gov", "government", "paid", "*")


def test_a_node_is_moved_renamed_and_dissolved() -> None:
    tree = government()
    tree = move_nodes(tree, nodes(tree, "Self-emp"), node(tree, "government"))
    assert tree.rows[4] == ("Self-emp", "government", "*")
    tree = rename_node(tree, node(tree, "government"), "G")
    assert tree.rows[4] == ("Self-emp", "G", "*")
    tree = dissolve_node(tree, node(tree, "G"))
    assert drawing(tree) == drawing(WORK)
    assert tree.height == 1, "the level that repeats the values is gone"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda tree: group_nodes(tree, [], "x"), "no node is marked"),
        (lambda tree: group_nodes(tree, nodes(tree, "Private"), "government"), "called alike"),
        (lambda tree: group_nodes(tree, nodes(tree, "Private"), " "), "needs a name"),
        (lambda tree: group_nodes(tree, nodes(tree, "*"), "all"), "nothing above it"),
        (lambda tree: group_nodes(tree, nodes(tree, "State-gov", "government"), "x"), "lies too high"),
        (lambda tree: move_nodes(tree, nodes(tree, "Private"), node(tree, "Self-emp")), "is a value"),
        (lambda tree: move_nodes(tree, nodes(tree, "government"), node(tree, "government")), "lies too high"),
        (lambda tree: move_nodes(tree, nodes(tree, "*"), node(tree, "government")), "lies too high"),
        (lambda tree: rename_node(tree, node(tree, "Private"), "x"), "a value keeps its name"),
        (lambda tree: rename_node(tree, node(tree, "government"), "Private"), "called alike"),
        (lambda tree: dissolve_node(tree, node(tree, "*")), "the root stays"),
        (lambda tree: dissolve_node(tree, node(tree, "Private")), "cannot be taken out"),
    ],
)
def test_what_makes_no_tree_is_refused(edit: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        edit(government())  # type: ignore[operator]


def test_sizes_stay_with_their_nodes() -> None:
    tree = Hierarchy.parse(
        {"rows": [["a", "x", "*"], ["b", "x", "*"], ["c", "c", "*"]], "sizes": {"x": 0.25, "*": 1.0}}
    )
    assert rename_node(tree, node(tree, "x"), "y").sizes == {"y": 0.25, "*": 1.0}
    assert dissolve_node(tree, node(tree, "x")).sizes == {"*": 1.0}


EDITS = st.lists(
    st.tuples(st.sampled_from(["group", "move", "rename", "dissolve"]), st.lists(st.integers(0, 30), min_size=1, max_size=4)),
    max_size=12,
)  # fmt: skip


@pytest.mark.slow
@given(st.integers(1, 9), EDITS)
def test_any_edits_in_any_order_leave_a_tree_of_the_same_values(
    values: int, edits: list[tuple[str, list[int]]]
) -> None:
    """The parts below every node by brute force; every label names one set of values."""
    tree = flat_hierarchy([f"v{i}" for i in range(values)])
    for number, (edit, places) in enumerate(edits):
        listed = list_nodes(tree)
        picked = [listed[place % len(listed)] for place in dict.fromkeys(place % len(listed) for place in places)]
        before = tree
        try:
            if edit == "group":
                tree = group_nodes(tree, picked, f"n{number}")
                assert set(node(tree, f"n{number}").rows) == {row for one in picked for row in one.rows}
            elif edit == "move":
                tree = move_nodes(tree, picked[1:], picked[0])
                assert set(node(tree, picked[0].label).rows) >= {row for one in picked[1:] for row in one.rows}
            elif edit == "rename":
                tree = rename_node(tree, picked[0], f"n{number}")
                assert node(tree, f"n{number}").rows == picked[0].rows
            else:
                tree = dissolve_node(tree, picked[0])
                assert picked[0].label not in {one.label for one in list_nodes(tree)}
        except ValueError:
            assert tree is before
        assert tree.values == before.values
        found = list_nodes(tree)
        labels = [one.label for one in found]
        assert len(set(labels)) == len(labels)
        for one in found:
            assert {row for row, nodes_up in enumerate(tree.rows) if one.label in nodes_up} == set(one.rows)
        assert sorted(row for one in found if one.is_value for row in one.rows) == list(range(values))
