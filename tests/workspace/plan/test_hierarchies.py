"""The hierarchy of a variable beside its records: what is told of them, what the plan says of it, and the command that shows it."""

from __future__ import annotations

import tomllib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.partition.hierarchies import Hierarchy
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.plan.edits import StepPlace
from sfumato.workspace.plan.hierarchies import (
    EditedHierarchy,
    generalised_variables,
    hierarchy_of_step,
    replace_hierarchy,
)

PLACE = StepPlace("anonymisation", 0)
PLAN = """
[data]
file = "people.csv"

[variables]
age = { kind = "count", role = "known" }           # the old word
work = { kind = "categorical", role = "quasi_identifier" }
pay = { kind = "continuous", role = "sensitive" }

[[anonymisation]]                                  # coarser
method = "generalisation"
levels = { age = 1, work = 1 }
"""


def of_values(counts: dict[str, int], rows: list[list[str]] | None = None, smallest: int = 10) -> EditedHierarchy:
    values = [value for value, count in counts.items() for _ in range(count)]
    data = Microdata(Schema((Variable("work", Kind.CATEGORICAL),)), pd.DataFrame({"work": pd.Categorical(values)}))
    step = {} if rows is None else {"hierarchies": {"work": rows}}
    return hierarchy_of_step(data, "work", step, PLACE, "hierarchies", smallest)


@pytest.mark.slow
@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(2, 12), st.integers(1, 4))
def test_no_number_below_the_policy_s_is_told_or_follows_from_its_sisters(
    records: list[int], smallest: int, groups: int
) -> None:
    """Brute force: below no node is exactly one number left out whose value the others and the node's own give."""
    counts = {f"v{i}": count for i, count in enumerate(records)}
    rows = [[value, f"g{i % groups}", "*"] for i, value in enumerate(counts)]
    try:
        Hierarchy.parse(rows)
    except ValueError:
        return
    lines = of_values(counts, rows, smallest).node_lines()
    for at, line in enumerate(lines):
        true = sum(counts[rows[row][0]] for row in line.node.rows)
        assert line.records in (None, true)
        assert line.records is None or line.records >= smallest
        assert line.is_few == (true < smallest)
        below = []
        for other in lines[at + 1 :]:
            if other.node.depth <= line.node.depth:
                break
            if other.node.depth == line.node.depth + 1:
                below.append(other)
        if line.records is not None and len(below) > 1:
            assert sum(child.records is None for child in below) != 1


def test_records_of_a_node_are_those_of_its_values() -> None:
    found = {
        line.node.label: line
        for line in of_values(
            {"a": 20, "b": 30, "c": 50}, [["a", "x", "*"], ["b", "x", "*"], ["c", "c", "*"]]
        ).node_lines()
    }
    assert (found["x"].records, found["x"].values) == (50, 2)
    assert (found["*"].records, found["c"].records) == (100, 50)


@pytest.mark.slow
@given(
    st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=60), st.sampled_from([(5.0,), (5.0, 20.0), (0.5, 1.0, 10.0)])
)
def test_intervals_count_every_record_once_at_each_width(numbers: list[float], widths: tuple[float, ...]) -> None:
    data = Microdata(Schema((Variable("pay", Kind.CONTINUOUS),)), pd.DataFrame({"pay": np.array(numbers)}))
    opened = hierarchy_of_step(data, "pay", {"widths": {"pay": list(widths)}}, PLACE, "widths", 1)
    lines = opened.node_lines()
    for depth in range(len(widths) + 1):
        assert sum(
            line.records or 0 for line in lines if line.node.low <= len(widths) + 1 - depth <= line.node.high
        ) == len(numbers)
    assert lines[0].values == len(set(numbers))


def test_a_value_without_a_place_is_named() -> None:
    assert of_values({"a": 20, "b": 30}, [["a", "*"], ["x", "*"]]).missing_values == ("b",)


@pytest.mark.parametrize(
    ("step", "place", "message"),
    [
        ({"hierarchies": {"work": "work.csv"}}, "anonymisation[0].hierarchies.work", "is a file"),
        ({"hierarchies": {"work": [["a"]]}}, "anonymisation[0].hierarchies.work", "as many levels"),
    ],
)
def test_what_cannot_be_edited_names_its_place(step: dict[str, object], place: str, message: str) -> None:
    data = Microdata(Schema((Variable("work", Kind.CATEGORICAL),)), pd.DataFrame({"work": pd.Categorical(["a", "b"])}))
    with pytest.raises(BadInput) as caught:
        hierarchy_of_step(data, "work", step, PLACE, "hierarchies", 10)
    assert caught.value.place == place
    assert message in caught.value.message


def test_the_quasi_identifiers_of_a_plan_by_either_word() -> None:
    found = generalised_variables(tomllib.loads(PLAN))
    assert [(str(place), name, holds) for place, name, holds in found] == [
        ("anonymisation[0]", "age", "widths"),
        ("anonymisation[0]", "work", "hierarchies"),
    ]
    mondrian = generalised_variables(
        tomllib.loads(PLAN.replace("generalisation", "mondrian").replace("levels", "# levels"))
    )
    assert [name for _, name, _ in mondrian] == ["work"], "numbers are cut where the classes lie"


def test_what_is_saved_is_what_a_recipe_reads_and_comments_stay() -> None:
    opened = of_values({"a": 20, "b": 30, "c": 50}, [["a", "x", "*"], ["b", "x", "*"], ["c", "c", "*"]])
    text = replace_hierarchy(PLAN, opened)
    assert "# the old word" in text
    assert "# coarser" in text
    recipe = Recipe.from_toml(text)
    assert recipe.anonymisation[0].spec.to_table()["hierarchies"]["work"] == [
        ["a", "x", "*"],
        ["b", "x", "*"],
        ["c", "c", "*"],
    ]
    again = replace_hierarchy(text, opened)
    assert tomllib.loads(again) == tomllib.loads(text)
