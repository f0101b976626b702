"""Local suppression through a recipe: which cells go, what stays, what the measure and the checks then count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import anonymise_data
from sfumato.engine.methods.registry import find_method
from sfumato.engine.methods.release_form import Anonymised
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe

VARIABLES: dict[str, Any] = {
    "city": {"kind": "categorical", "role": "quasi_identifier"},
    "size": {"kind": "ordinal", "role": "quasi_identifier", "levels": ["small", "large"]},
    "age": {"kind": "count", "role": "quasi_identifier"},
    "income": {"kind": "continuous", "role": "sensitive"},
}
KEYS = ["city", "size", "age"]


def example(n: int = 90, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "city": rng.choice(["foo", "bar", "test", "rare"], n, p=[0.5, 0.3, 0.18, 0.02]),
            "size": rng.choice(["small", "large"], n),
            "age": np.minimum(rng.geometric(0.5, n), 4),
            "income": np.round(rng.lognormal(3, 1, n), 2),
        }
    )


def recipe(*later: dict[str, Any], variables: dict[str, Any] | None = None, **step: Any) -> Recipe:
    steps = [{"method": "local_suppression", "k": 3, **step}, *later]
    return Recipe.from_table({"variables": variables or VARIABLES, "anonymisation": steps})


def anonymise_table(rows: pd.DataFrame, key: bytes = PUBLIC, **step: Any) -> Anonymised:
    plan = recipe(**step)
    return anonymise_data(plan, conform_to_schema(rows, plan.schema, MissingPolicy.KEEP), key=key)


def texts(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    return list(frame.astype("object").where(frame.notna(), "").astype("str").itertuples(index=False, name=None))


def shown(found: Anonymised) -> list[tuple[str, ...]]:
    return texts(found.data.frame[KEYS])


def note(found: Anonymised, name: str) -> float | None:
    return next(note.value for note in found.notes if note.name == name)


def anonymity(found: Anonymised, missing: str) -> dict[str, float | None]:
    method = find_method("risk.anonymity", "measure[0].method")
    spec = method.spec.from_table(
        {"missing": missing, "quasi_identifiers": KEYS, "sensitive": ["income"]}, "measure[0]"
    )
    answer = method.func(found.data, found.data, spec, Run(np.random.default_rng(1)))
    return {estimate.measure: estimate.value for estimate in answer.estimates}


def test_records_share_what_they_show_and_nothing_else_changes() -> None:
    rows = example()
    assert min(Counter(rows[KEYS].astype("str").itertuples(index=False, name=None)).values()) < 3
    found = anonymise_table(rows)
    assert min(Counter(shown(found)).values()) >= 3
    pd.testing.assert_series_equal(found.data.frame["income"], rows["income"])
    assert found.data.frame["age"].dtype == np.float64
    assert found.data.frame["size"].cat.ordered
    for name in KEYS:
        present = found.data.frame[name].notna()
        assert (
            found.data.frame[name][present].astype("str").str.removesuffix(".0").tolist()
            == rows[name][present].astype("str").tolist()
        )
    lost = int(found.data.frame[KEYS].isna().to_numpy().sum())
    assert 0 < lost == note(found, "suppressed_cells")
    assert note(found, "exposed_records") == 0


def test_the_measure_counts_each_meaning_of_a_missing_value() -> None:
    own, any_value = anonymise_table(example()), anonymise_table(example(), missing="anything")
    assert note(any_value, "suppressed_cells") < note(own, "suppressed_cells")  # type: ignore[operator]
    assert anonymity(own, "value")["k"] >= 3  # type: ignore[operator]
    assert anonymity(any_value, "anything")["k"] >= 3  # type: ignore[operator]
    assert anonymity(any_value, "value")["k"] < 3, "by the other meaning the table is not what it was made for"  # type: ignore[operator]
    assert anonymity(any_value, "anything")["classes"] is None
    assert note(any_value, "exposed_records") > 0, "who knows the deleted value excludes others"  # type: ignore[operator]


@pytest.mark.parametrize("missing", ["value", "anything"])
def test_the_same_records_in_another_order_lose_the_same_values(missing: str) -> None:
    rows = example()
    other = rows.sample(frac=1, random_state=3).reset_index(drop=True)
    first, second = anonymise_table(rows, missing=missing), anonymise_table(other, missing=missing)
    again = anonymise_table(rows, missing=missing)
    pd.testing.assert_frame_equal(first.data.frame, again.data.frame)

    assert sorted(texts(first.data.frame)) == sorted(texts(second.data.frame))
    keyed = [anonymise_table(rows, key=bytes([place]) * 32, missing=missing) for place in (1, 2)]
    assert sorted(shown(keyed[0])) == sorted(shown(keyed[1])), "a key changes who, not how much"


def test_weights_and_exceptions_of_variables_are_kept_to() -> None:
    even, dear, never = (
        anonymise_table(example()),
        anonymise_table(example(), importance={"city": 9}),
        anonymise_table(example(200), never_suppressed=["size"]),
    )
    assert dear.data.missing_mask("city").sum() <= even.data.missing_mask("city").sum()
    assert never.data.missing_mask("size").sum() == 0
    assert never.data.missing_mask("age").sum() > 0
    assert min(Counter(shown(never)).values()) >= 3


def test_levels_that_only_deleted_cells_had_are_gone() -> None:
    rows = example()
    rows.loc[0, "city"] = "the only one"
    found = anonymise_table(rows)
    assert "the only one" not in found.data.frame["city"].cat.categories


def test_values_that_are_missing_already_are_a_value_or_match_anything() -> None:
    rows = example()
    rows["age"] = rows["age"].where(np.arange(len(rows)) % 5 > 0)
    for missing in ("value", "anything"):
        found = anonymise_table(rows, missing=missing)
        assert anonymity(found, missing)["k"] >= 3  # type: ignore[operator]


def test_a_later_step_may_not_undo_it() -> None:
    plan = recipe({"method": "generalisation", "levels": {"city": 1}}, k=3)
    data = conform_to_schema(example(), plan.schema)
    with pytest.raises(BadInput, match="have no value"):
        anonymise_data(plan, data, key=PUBLIC)
    before = Recipe.from_table(
        {
            "variables": VARIABLES,
            "anonymisation": [
                {"method": "generalisation", "levels": {"age": 1}, "widths": {"age": [2]}},
                {"method": "local_suppression", "k": 4},
            ],
        }
    )
    found = anonymise_data(before, data, key=PUBLIC)
    assert min(Counter(shown(found)).values()) >= 4
    assert "[2, 4)" in set(found.data.frame["age"].dropna())


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"k": 500}, r"anonymisation\[0\]\.k: 90 records cannot make a class of 500"),
        ({"importance": {"income": 2}}, r"\[0\]\.importance\.income: \"income\" is no quasi-identifier"),
        ({"importance": {"city": 0}}, r"\[0\]\.importance"),
        ({"importance": {"city": float("nan")}}, r"\[0\]\.importance"),
        ({"never_suppressed": ["income"]}, r"\[0\]\.never_suppressed\[0\]: \"income\" is no quasi-identifier"),
        ({"never_suppressed": KEYS}, r"\[0\]\.never_suppressed: no quasi-identifier is left to suppress"),
        (
            {"never_suppressed": ["city"], "k": 9},
            r"never_suppressed: \d+ records? shares? values that are never deleted",
        ),
        ({"missing": "nothing"}, r"\[0\]\.missing"),
    ],
)
def test_what_cannot_be_done_is_said_at_its_place(step: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        checked(step)


def checked(step: dict[str, Any]) -> None:
    plan = recipe(**step)
    data = conform_to_schema(example(), plan.schema)
    check_steps(plan, data)
    anonymise_data(plan, data, key=PUBLIC)


def test_a_variable_that_would_lose_every_value_is_refused() -> None:
    rows = pd.DataFrame(
        {"city": ["foo", "bar", "test"], "size": ["small"] * 3, "age": [1] * 3, "income": [1.0, 2.0, 3.0]}
    )
    with pytest.raises(BadInput, match='"city" loses all its values; leave the variable out'):
        anonymise_table(rows)


@pytest.mark.slow
def test_the_published_table_leaves_numbers_untouched(public_data: Callable[[str], Path]) -> None:
    keys = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]
    numbers = ["age", "expend", "income", "savings"]
    raw = pd.read_csv(public_data("testdata.csv"))
    plan = recipe(
        variables={name: {"kind": "categorical", "role": "quasi_identifier"} for name in keys}
        | {name: {"kind": "continuous"} for name in numbers},
        missing="anything",
    )
    data: Microdata = conform_to_schema(raw, plan.schema)
    found = anonymise_data(plan, data, key=PUBLIC)
    pd.testing.assert_frame_equal(found.data.frame[numbers], data.frame[numbers])
    cells = note(found, "suppressed_cells")
    assert cells is not None
    assert cells <= 132
    assert note(found, "proven_fewest") == 1
