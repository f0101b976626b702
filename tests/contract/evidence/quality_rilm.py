"""What ``quality.rilm`` must answer, and what must become of it when its tables change."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from oracles import NUMERICAL, Answers, Case, class_of, factor, kept, range_lost, series, smallest
from relations import CLASSES, ONE

from evidence import Evidence


def breadth(rows: Sequence[Sequence[str]], values: set[str]) -> Fraction:
    """Size of the lowest node over these values: (values below it - 1) / (values - 1); of a flat tree's root 1."""
    for level in range(len(rows[0])):
        nodes = {row[level] for row in rows if row[0] in values}
        if len(nodes) == 1:
            below = sum(row[level] in nodes for row in rows)
            return Fraction(below - 1, len(rows) - 1) if len(rows) > 1 else Fraction(level > 0)
    raise AssertionError("a tree has one root")


def category_lost(case: Case, name: str, classes: Sequence[Sequence[int]]) -> Fraction | None:
    ours = ["(missing)" if value is None else value for value in case.confidential_values(name)]
    theirs = ["(missing)" if value is None else str(value) for value in case.released_values(name)]
    tree = case.spec.hierarchies.get(name)
    rows = [list(row) for row in tree.rows] if tree else [[value, "*"] for value in sorted(set(ours))]
    leaves = {row[0] for row in rows}
    if set(ours) - leaves:
        return None
    shown = dict(zip(kept(case), theirs, strict=True))
    total = Fraction(0)
    for members in classes:
        common = breadth(rows, {ours[row] for row in members})
        for row in members:
            below = {line[0] for line in rows if shown[row] in line}
            total += max(common, breadth(rows, below or leaves))
    return total / len(shown)


def rilm(case: Case) -> dict[str, Answers]:
    classes = class_of(case, case.spec.quasi_identifiers)
    found: dict[str, Answers] = {}
    for measure, lost in (("numerical", range_lost), ("categorical", category_lost)):
        names = [name for name in case.spec.variables if (case.kind(name) in NUMERICAL) == (measure == "numerical")]
        losses = {name: lost(case, name, classes) for name in names}
        values = {name: None if loss is None else factor(case) * (1 - loss) for name, loss in losses.items()}
        found[measure] = {series(name): value for name, value in values.items()}
        found[f"minimum_{measure}"] = {series(): smallest(case, values, excuse=False)} if names else {}
    return found


REGIONS = [["north", "not south", "*"], ["west", "not south", "*"], ["south", "south", "*"]]

EVIDENCE = Evidence(
    oracle=rilm,
    outputs=("numerical", "categorical", "minimum_numerical", "minimum_categorical"),
    tiny=[
        ("linked", {"quasi_identifiers": ["region", "days"], "variables": ["region", "days", "income", "sex"]}),
        ("generalised", {"hierarchies": {"region": REGIONS}}),
        ("micro_aggregated", {"variables": ["region", "visits"]}),
        ("suppressed", {"count_suppressed": True}),
    ],
    settings={"quasi_identifiers": ["region", "days"], "variables": ["region", "days"]},
    expected={
        "numerical": CLASSES,
        "categorical": ONE,
        "minimum_numerical": CLASSES,
        "minimum_categorical": ONE,
    },
)
