"""The data quality measures on the paper's example, on edge cases, and through a recipe's thresholds."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.registry import find_method
from sfumato.engine.methods.results import Estimate
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.quality.pearson import nonnegative_correlation
from sfumato.engine.recipe.recipe import Recipe

SCHEMA = schema_of(
    "n_accept: continuous quasi_identifier",
    "n_reject: continuous quasi_identifier",
    "city: categorical quasi_identifier",
)


def table(accept: list[float], reject: list[float], city: list[str], origin: Any = "confidential") -> Microdata:
    raw = pd.DataFrame({"n_accept": accept, "n_reject": reject, "city": city})
    return conform_to_schema(raw, SCHEMA, origin=origin)


# The non-suppressed records of the paper's Figure 1, and a city that one class had to generalise.
ORIGINAL = table([1, 1, 2, 2], [1, 2, 1, 1], ["foo", "bar", "test", "test"])
ANONYMISED = table([1, 1, 2, 2], [1.5, 1.5, 1, 1], ["foobar", "foobar", "test", "test"], "anonymised")

TREE = {
    "rows": [["foo", "foobar", "*"], ["bar", "foobar", "*"], ["test", "*", "*"]],
    "sizes": {"foobar": 10, "*": 100},
}


def estimates_by_target(
    key: str, original: Microdata, released: Microdata, **table: Any
) -> dict[tuple[str, str], Estimate]:
    found = find_method(f"quality.{key}", "")
    spec = found.spec.from_table(table, "measure[0]")
    spec.check(original.schema, "measure[0]")
    chosen = spec.for_release(original.schema, ())
    measure = found.func(original, released, chosen, Run(np.random.default_rng(1)))
    return {(estimate.measure, estimate.target): estimate for estimate in measure.estimates}


def values(key: str, original: Microdata, released: Microdata, **table: Any) -> dict[tuple[str, str], float | None]:
    return {name: found.value for name, found in estimates_by_target(key, original, released, **table).items()}


def test_correlation_of_the_papers_example() -> None:
    found = values("pearson", ORIGINAL, ANONYMISED)
    assert found["rho", "n_accept"] == pytest.approx(1)
    assert found["rho", "n_reject"] == pytest.approx(0.58, abs=0.005)
    assert found["minimum_rho", ""] == found["rho", "n_reject"]


def test_information_loss_of_the_papers_example() -> None:
    found = values("rilm", ORIGINAL, ANONYMISED, hierarchies={"city": TREE})
    assert found["numerical", "n_accept"] == 1
    assert found["numerical", "n_reject"] == 0.5
    assert found["minimum_numerical", ""] == 0.5
    assert found["categorical", "city"] == pytest.approx(1 - (2 * 0.1 + 2 * 0) / 4)
    assert values("rilm", ORIGINAL, ANONYMISED)["categorical", "city"] == 0.5, "flat: foobar is the root"


def test_the_dataset_level_loss_is_the_sum_of_the_columns() -> None:
    found = values("ilm", ORIGINAL, ANONYMISED)
    assert found == {("ilm", ""): 0.5, ("one_minus_ilm", ""): 0.5}


def test_a_value_that_the_tree_lacks_is_said_and_spoils_the_minimum() -> None:
    found = estimates_by_target("rilm", ORIGINAL, ANONYMISED, hierarchies={"city": [["foo", "*"], ["bar", "*"]]})
    assert "not in the tree" in found["categorical", "city"].reason
    assert found["minimum_categorical", ""].value is None


def test_nothing_changed_is_perfect_and_shuffled_is_not() -> None:
    rng = np.random.default_rng(3)
    numbers = np.arange(400.0)
    cities = [str(number) for number in rng.integers(3, size=400)]
    original = table(list(numbers), list(rng.normal(size=400)), cities)
    shuffled = table(list(rng.permutation(numbers)), list(rng.normal(size=400)), cities)
    for key, measure, target in (
        ("pearson", "rho", "n_accept"),
        ("nmi_v1", "nmi", "n_accept"),
        ("nmi_v2", "nmi", "n_accept"),
    ):
        kept, lost = values(key, original, original), values(key, original, shuffled)
        assert (kept[measure, target] or 0) > 0.94
        assert (lost[measure, target] or 0) < 0.85
    assert values("rilm", original, original)["minimum_numerical", ""] == 1
    assert values("non_suppressed", original, original) == {("share", ""): 1, ("file_share", ""): 1}


def test_version_1_penalises_what_is_lost_and_version_2_what_is_added() -> None:
    rng = np.random.default_rng(4)
    fine = rng.integers(100, size=3000).astype(float)
    coarse, city = np.floor(fine / 10), ["x"] * 3000
    first, second = table(list(fine), list(coarse), city), table(list(coarse), list(fine), city)
    one, two = (values(f"nmi_v{version}", first, second) for version in (1, 2))
    assert (one["unscaled", "n_accept"] or 0) < 0.6
    assert (two["unscaled", "n_accept"] or 0) > 0.9
    assert (one["unscaled", "n_reject"] or 0) > 0.9
    assert (two["unscaled", "n_reject"] or 0) < 0.6


def test_a_constant_column_is_not_computed_and_spoils_the_minimum_only_where_it_was_lost() -> None:
    flat = table([1, 2, 3, 4], [7, 7, 7, 7], ["x", "x", "y", "y"])
    merged = table([2.5, 2.5, 2.5, 2.5], [7, 7, 7, 7], ["x", "x", "y", "y"])
    for key, measure in (("pearson", "rho"), ("nmi_v2", "nmi")):
        kept, lost = estimates_by_target(key, flat, flat), estimates_by_target(key, flat, merged)
        assert kept[measure, "n_reject"].value is None
        assert "all the same" in kept[measure, "n_reject"].reason
        assert kept[f"minimum_{measure}", ""].value == kept[measure, "n_accept"].value
        assert lost[f"minimum_{measure}", ""].value is None
        assert "n_accept" in lost[f"minimum_{measure}", ""].reason
    assert values("rilm", flat, merged)["numerical", "n_reject"] == 1


def test_a_release_that_lost_records_is_not_compared() -> None:
    fewer = table([1], [1], ["foo"])
    for key in ("pearson", "rilm", "ilm", "nmi_v1", "nmi_v2"):
        with pytest.raises(NotComputable, match="does not say which"):
            estimates_by_target(key, ORIGINAL, fewer)
        with pytest.raises(NotComputable, match="does not say which"):
            estimates_by_target(key, ORIGINAL, dataclasses.replace(ORIGINAL, linked=False))
    left = 1 / len(ORIGINAL)
    assert values("non_suppressed", ORIGINAL, fewer) == {("share", ""): left, ("file_share", ""): left}
    with pytest.raises(NotComputable, match="more than the 1 of the original"):
        estimates_by_target("non_suppressed", fewer, ORIGINAL)


def test_suppressed_records_are_left_out_and_counted_where_asked() -> None:
    original = table([1, 1, 2, 2, 11], [1, 2, 1, 1, 1], ["foo", "bar", "test", "test", "test"])
    released = dataclasses.replace(ANONYMISED, classes=np.array([0, 0, 1, 1, -1]))
    assert values("non_suppressed", original, released) == {("share", ""): 0.8, ("file_share", ""): 0.8}
    plain, counted = (values("rilm", original, released, count_suppressed=count) for count in (False, True))
    assert plain["numerical", "n_accept"] == 1
    assert plain["numerical", "n_reject"] == 0.5
    assert counted["numerical", "n_reject"] == pytest.approx(1 - (2 * 1 + 2 * 0 + 1 * 1) / 5)
    assert counted["categorical", "city"] == pytest.approx(0.8 * 0.5)
    rho_plain, rho_counted = (values("pearson", original, released, count_suppressed=count) for count in (False, True))
    assert rho_plain["rho", "n_reject"] == pytest.approx(0.58, abs=0.005)
    assert rho_counted["rho", "n_accept"] == pytest.approx(0.8)


def test_missing_values_are_ignored_in_numbers_and_are_a_category_of_their_own() -> None:
    schema = schema_of("n_accept: continuous quasi_identifier", "city: categorical quasi_identifier")
    raw = pd.DataFrame({"n_accept": [1.0, 2, 4, None, 9], "city": ["foo", "foo", None, None, "bar"]})
    original = conform_to_schema(raw, schema, MissingPolicy.KEEP)
    released = original.with_columns({"n_accept": pd.Series([1.0, 2, 3, 5, None])}, "anonymised")
    assert values("pearson", original, released)["rho", "n_accept"] == pytest.approx(
        np.corrcoef([1, 2, 4], [1, 2, 3])[0, 1]
    )
    found = values("rilm", original, dataclasses.replace(original, classes=np.array([0, 0, 1, 1, 1])))
    assert found["numerical", "n_accept"] == pytest.approx(1 - (2 * 1 / 8 + 2 * 5 / 8) / 4)
    assert found["categorical", "city"] == pytest.approx(2 / 5)


def test_binary_columns_are_zeros_and_ones() -> None:
    schema = Schema((Variable("ill", Kind.BINARY, Role.QUASI_IDENTIFIER, levels=("no", "yes")),))
    after = Schema((Variable("ill", Kind.CONTINUOUS, Role.QUASI_IDENTIFIER),))
    original = conform_to_schema(pd.DataFrame({"ill": ["no", "no", "yes", "yes"]}), schema)
    averaged = conform_to_schema(pd.DataFrame({"ill": [0, 0.5, 0.5, 1.0]}), after, origin="anonymised")
    assert values("pearson", original, averaged)["rho", "ill"] == pytest.approx(
        np.corrcoef([0, 0, 1, 1], [0, 0.5, 0.5, 1])[0, 1]
    )
    reordered = conform_to_schema(
        pd.DataFrame({"ill": ["no", "no", "yes", "yes"]}),
        Schema((Variable("ill", Kind.BINARY, Role.QUASI_IDENTIFIER, levels=("yes", "no")),)),
    )
    assert values("pearson", original, reordered)["rho", "ill"] == pytest.approx(1)


def test_intervals_have_no_correlation() -> None:
    schema = Schema((Variable("n_accept", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER), *tuple(SCHEMA)[1:]))
    raw = pd.DataFrame({"n_accept": ["[1, 2]"] * 4, "n_reject": [1, 2, 1, 1], "city": ["foo", "bar", "test", "test"]})
    found = estimates_by_target("pearson", ORIGINAL, conform_to_schema(raw, schema, origin="anonymised"))
    assert "intervals" in found["rho", "n_accept"].reason


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=2, max_size=30))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_rho_is_numpys_correlation_floored(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, dtype=float).T
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        with pytest.raises(NotComputable):
            nonnegative_correlation(x, y)
        return
    assert nonnegative_correlation(x, y) == pytest.approx(max(0, np.corrcoef(x, y)[0, 1]), abs=1e-9)


def test_rho_survives_huge_and_tiny_values() -> None:
    x = np.array([1e-300, 2e-300, 4e-300])
    assert nonnegative_correlation(x, 1e300 * np.array([1.0, 2, 4])) == pytest.approx(1)
    assert nonnegative_correlation(x + 0, -x) == 0


@pytest.mark.parametrize(
    ("key", "settings_", "place"),
    [
        ("rilm", {"hierarchies": {"n_accept": [["1", "*"], ["2", "*"]]}}, "hierarchies.n_accept"),
        ("rilm", {"hierarchies": {"town": [["foo", "*"], ["bar", "*"]]}}, "hierarchies.town"),
        ("rilm", {"hierarchies": {"city": [["foo", "x"], ["bar", "y"]]}}, "hierarchies.city"),
        ("pearson", {"variables": ["city"]}, "variables"),
        ("nmi_v1", {"samples": 0}, "samples"),
    ],
)
def test_settings_that_do_not_suit_are_named(key: str, settings_: dict[str, Any], place: str) -> None:
    with pytest.raises(BadInput, match=place):
        estimates_by_target(key, ORIGINAL, ANONYMISED, **settings_)


def test_thresholds_say_whether_the_release_meets_minimum_data_quality() -> None:
    recipe = Recipe.from_table(
        {
            "variables": {variable.name: variable.to_table() for variable in SCHEMA},
            "release": {"released": ["n_accept", "n_reject"]},
            "measure": [
                {"method": "quality.pearson"},
                {"method": "quality.rilm"},
                {"method": "quality.non_suppressed"},
            ],
            "threshold": [
                {"value": "quality.pearson.minimum_rho", "min": 0.90},
                {"value": "quality.pearson.rho", "target": "n_accept", "min": 0.90},
                {"value": "quality.rilm.minimum_categorical", "min": 0.90},
                {"value": "quality.non_suppressed.share", "min": 0.99},
            ],
        }
    )
    outcome = execute_run(recipe, ORIGINAL, [ANONYMISED], key=PUBLIC)
    assert [verdict.outcome for verdict in outcome.verdicts] == ["not met", "met", "not met", "met"]
