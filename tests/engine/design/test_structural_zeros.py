"""Conditions that no record fulfils: their grammar, and which levels and bins they mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.design.binning import BinningRule
from sfumato.engine.design.categories import categories_of_variable
from sfumato.engine.design.structural_zeros import StructuralZero
from sfumato.engine.errors import BadInput

BINS = {"age": "at 15, 18, 65", "income": "at 10, 20", "born": "3 equal width"}


def table() -> Microdata:
    frame = pd.DataFrame(
        {
            "married": pd.Categorical(["no", "yes", "was & is"], ["no", "yes", "was & is"]),
            "school": pd.Categorical(["low", None, "high"], ["low", "middle", "high"]),
            "age": [3.0, 40.0, 90.0],
            "income": [1.0, 15.0, np.nan],
            "born": pd.to_datetime(["2000-01-01", "1990-05-01", "1950-02-03"]),
        }
    )
    kinds = {"married": Kind.CATEGORICAL, "school": Kind.ORDINAL, "age": Kind.COUNT, "income": Kind.CONTINUOUS}
    levels: dict[str, Any] = {name: tuple(frame[name].cat.categories) for name in ("married", "school")}
    bounds = {"income": (0.0, 30.0)}
    variables = [
        Variable(name, kind, bounds=bounds.get(name), levels=levels.get(name, ())) for name, kind in kinds.items()
    ]
    return Microdata(Schema((*variables, Variable("born", Kind.DATE))), frame)


def meant(text: str, *, filled: bool = False) -> dict[str, list[int]]:
    """Of each variable that is not whole, the levels that the condition means."""
    data = table()
    categories = {
        name: categories_of_variable(data, name, BinningRule.parse(BINS[name]) if name in BINS else None)
        for name in data.frame.columns
    }
    sizes = {name: one.value_count if filled else one.size for name, one in categories.items()}
    mask, found, at = StructuralZero.parse(text).possible_levels(categories, sizes, data, "s.impossible[0]"), {}, 0
    for name, size in sizes.items():
        own, at = mask[at : at + size], at + size
        if not own.all():
            found[name] = np.flatnonzero(own).tolist()
    return found


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("married = yes", {"married": [1]}),
        ("married != yes", {"married": [0, 2]}),
        ("married = no | 'was & is'", {"married": [0, 2]}),
        ('"married" = "was & is" & age < 15', {"married": [2], "age": [0]}),
        ("age<15&married!=no", {"married": [1, 2], "age": [0]}),
        ("age <= 14", {"age": [0]}),
        ("age >= 15", {"age": [1, 2, 3]}),
        ("age > 64", {"age": [3]}),
        ("age >= 15 & age < 65", {"age": [1, 2]}),
        ("age < 15 & age >= 65", {"age": []}),
        ("income < 20", {"income": [0, 1]}),
        ("income >= 20", {"income": [2]}),
        ("school < high", {"school": [0, 1]}),
        ("school >= middle", {"school": [1, 2]}),
        ("school is missing", {"school": [3]}),
        ("income is present", {"income": [0, 1, 2]}),
        ("age is missing", {"age": []}),
    ],
)
def test_a_condition_means_these_levels(text: str, levels: dict[str, list[int]]) -> None:
    assert meant(text) == levels
    assert StructuralZero.parse(StructuralZero.parse(text).written) == StructuralZero.parse(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("married = maybe", 'no level "maybe"'),
        ("married < yes", "no order"),
        ("age < 16", "cut its bins at 16"),
        ("age = 16", "cut its bins at 16, 17"),
        ("age < old", "is a number"),
        ("income = 3", "use < or >="),
        ("income <= 20", "use <"),
        ("born < 2000", "is a date"),
        ("nothing = 1", "nothing"),
    ],
)
def test_a_condition_that_does_not_suit_its_variable_is_refused_at_its_place(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says) as refused:
        meant(text)
    assert refused.value.place.startswith("s.impossible[0]")


def test_nothing_is_missing_where_missing_values_are_filled() -> None:
    with pytest.raises(BadInput, match="none is left"):
        meant("income is missing", filled=True)
    assert meant("income is present", filled=True) == {}


@pytest.mark.parametrize(
    "text", ["", "married", "married = yes &", "& age < 3", "age < 3 | 4", "married = 'yes", 7, "__import__('os')"]
)
def test_what_is_no_condition_is_refused_with_the_form(text: object) -> None:
    with pytest.raises(ValueError, match=r"condition|variable|quote|several"):
        StructuralZero.parse(text)
