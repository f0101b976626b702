"""Recoding to the best levels through a recipe: what leaves, which limits hold, and what is refused."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import anonymise_data
from sfumato.engine.methods.release_form import Anonymised
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe

VARIABLES: dict[str, Any] = variables_of(
    "city: categorical quasi_identifier",
    "age: count quasi_identifier",
    "joined: date quasi_identifier",
    "illness: categorical sensitive",
)
KEYS = ["city", "age", "joined"]
TREE = [["foo", "north", "*"], ["bar", "north", "*"], ["test", "south", "*"], ["rare", "south", "*"]]
STEP: dict[str, Any] = {
    "method": "optimal_recoding",
    "k": 4,
    "hierarchies": {"city": TREE},
    "widths": {"age": [5, 20], "joined": [30]},
}


def example(n: int = 150, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "city": rng.choice(["foo", "bar", "test", "rare"], n, p=[0.4, 0.3, 0.25, 0.05]),
            "age": rng.integers(20, 60, n),
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 60, n), unit="D"),
            "illness": rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]),
        }
    )


def recipe(*later: dict[str, Any], **step: Any) -> Recipe:
    return Recipe.from_table({"variables": VARIABLES, "anonymisation": [{**STEP, **step}, *later]})


def read(plan: Recipe, rows: pd.DataFrame | None = None) -> Microdata:
    return conform_to_schema(example() if rows is None else rows, plan.schema)


def anonymise_table(rows: pd.DataFrame | None = None, **step: Any) -> Anonymised:
    plan = recipe(**step)
    data = read(plan, rows)
    check_steps(plan, data)
    return anonymise_data(plan, data, key=PUBLIC)


def sizes(found: Anonymised) -> list[int]:
    return list(Counter(found.data.frame[KEYS].astype("str").itertuples(index=False, name=None)).values())


def note(found: Anonymised, name: str, parameter: str = "release") -> float | None:
    return next(n.value for n in found.notes if n.name == name and n.parameter.startswith(parameter))


@pytest.mark.parametrize("objective", ["average_class_size", "discernibility", "ncp", "entropy"])
def test_the_table_that_leaves_keeps_to_k_and_to_the_limit_of_suppression(objective: str) -> None:
    found = anonymise_table(objective=objective, max_suppressed=0.1)
    assert min(sizes(found)) >= 4
    assert found.suppressed.sum() <= 15
    assert all(one.passed is not False for one in found.notes)
    kept = example()[~found.suppressed].reset_index(drop=True)
    assert found.data.frame["illness"].astype("str").tolist() == kept["illness"].tolist()
    assert found.data.generalised <= set(KEYS)


@pytest.mark.slow
def test_no_plan_of_recoding_and_suppression_loses_less() -> None:
    """Each combination of levels as an ordinary plan, recoding before suppression: none has more classes in proportion to its records."""
    found = anonymise_table(objective="average_class_size", max_suppressed=0.1)
    ours = len(found.data) / len(sizes(found))
    best = np.inf
    for city, age, joined in product(range(3), range(4), range(3)):
        levels = {name: level for name, level in zip(KEYS, (city, age, joined), strict=True) if level}
        if not levels:
            continue
        steps = [
            {"method": "generalisation", "levels": levels, "hierarchies": {"city": TREE}, "widths": STEP["widths"]},
            {"method": "suppression", "k": 4, "max_suppressed": 0.1},
        ]
        plan = Recipe.from_table({"variables": VARIABLES, "anonymisation": steps})
        try:
            other = anonymise_data(plan, read(plan), key=PUBLIC)
        except BadInput:
            continue
        best = min(best, len(other.data) / len(sizes(other)))
    assert ours == pytest.approx(best)


def test_records_that_break_the_limit_can_be_kept_and_local_suppression_protects_them() -> None:
    step = {"below": "keep", "max_suppressed": 0.1}
    alone = anonymise_table(**step)
    assert not alone.suppressed.any()
    assert min(sizes(alone)) < 4
    suppressed = anonymise_table(max_suppressed=0.1)
    assert all(note(alone, "level", name) == note(suppressed, "level", name) for name in KEYS)
    plan = recipe({"method": "local_suppression", "k": 4}, **step)
    both = anonymise_data(plan, read(plan), key=PUBLIC)
    assert len(both.data) == len(example())
    assert min(sizes(both)) >= 4
    deleted = both.data.frame[KEYS].isna().to_numpy().sum()
    assert 0 < deleted <= 3 * sum(one for one in sizes(alone) if one < 4)


def test_limits_on_sensitive_values_hold_in_the_released_table() -> None:
    found = anonymise_table(l=2, max_suppressed=0.1)
    assert found.data.frame.groupby(KEYS, observed=True)["illness"].nunique().min() >= 2
    assert note(found, "nodes") == 3 * 4 * 3
    close = anonymise_table(t=0.25, max_suppressed=0.1)
    whole = close.data.frame["illness"].value_counts(normalize=True)
    for _, part in close.data.frame.groupby(KEYS, observed=True):
        shares = part["illness"].value_counts(normalize=True)
        assert abs(shares.sub(whole, fill_value=0)).sum() / 2 <= 0.25 + 1e-9


def test_the_order_of_the_records_means_nothing() -> None:
    rows = example()
    other = rows.sample(frac=1, random_state=2).reset_index(drop=True)
    first, second = (
        sorted(anonymise_table(table, max_suppressed=0.05).data.frame.astype("str").itertuples(index=False, name=None))
        for table in (rows, other)
    )
    assert first == second


def test_levels_stay_between_the_lowest_and_the_highest() -> None:
    found = anonymise_table(lowest={"age": 1}, highest={"joined": 1, "age": 2}, max_suppressed=0.2)
    assert 1 <= note(found, "level", "age") <= 2  # type: ignore[operator]
    assert note(found, "level", "joined") <= 1  # type: ignore[operator]
    as_they_are = anonymise_table(k=2, highest={"city": 0}, lowest={"age": 3, "joined": 2})
    assert set(as_they_are.data.frame["city"]) <= {row[0] for row in TREE}
    dates = anonymise_table(rows=pd.concat([example(3)] * 2, ignore_index=True), k=2)
    assert note(dates, "level", "joined") == 0
    assert dates.data.frame["joined"].astype("str").str.fullmatch(r"2020-\d\d-\d\d").all()


def test_local_suppression_after_it_is_kept_to_its_own_limit() -> None:
    plan = recipe({"method": "local_suppression", "k": 8}, max_suppressed=0.05)
    found = anonymise_data(plan, read(plan), key=PUBLIC)
    shown = found.data.frame[KEYS]
    rows = shown.astype("object").where(shown.notna(), "").astype("str").itertuples(index=False, name=None)
    assert min(Counter(rows).values()) >= 8


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"k": 500}, r"\[0\]\.k: 150 records cannot make a class of 500"),
        ({"highest": {"age": 4}}, r"\[0\]\.highest\.age: 4 is above the root, which is level 3"),
        ({"lowest": {"age": 2}, "highest": {"age": 1}}, r"\[0\]\.lowest\.age: 2 is above the highest level, 1"),
        ({"lowest": {"illness": 1}}, r"\[0\]\.lowest\.illness: \"illness\" is no quasi-identifier"),
        ({"widths": {"age": [5, 7]}}, r"\[0\]\.widths\.age: each width"),
        (
            {"highest": dict.fromkeys(KEYS, 0)},
            r"max_suppressed: no levels keep to the limits with at most 0 of 150 records",
        ),
        ({"l": 2, "sensitive": ["age"]}, r'\[0\]\.sensitive: "age" is a quasi-identifier too'),
        ({"l": 4}, r'\[0\]\.l: "illness" is not 4-diverse \(distinct\) even in the whole table'),
        ({"l": 2, "c": 2}, r"\[0\]\.c: belongs to recursive diversity"),
        ({"max_suppressed": 1}, r"\[0\]\.max_suppressed"),
        ({"objective": "beauty"}, r"\[0\]\.objective"),
    ],
)
def test_what_cannot_be_done_is_said_at_its_place(step: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        anonymise_table(**step)


def test_a_lattice_that_is_too_large_is_refused_before_anything_is_counted() -> None:
    widths = {"age": [2.0**i for i in range(400)], "joined": [2.0**i for i in range(400)]}
    with pytest.raises(BadInput, match=r"quasi_identifiers: there are 484,812 combinations of levels, at most 100,000"):
        recipe(widths=widths)


def test_missing_values_are_refused() -> None:
    rows = example()
    rows["age"] = rows["age"].where(np.arange(len(rows)) % 5 > 0)
    plan = recipe()
    data = conform_to_schema(rows, plan.schema, MissingPolicy.KEEP)
    with pytest.raises(BadInput, match='have no value of "age"'):
        anonymise_data(plan, data, key=PUBLIC)
