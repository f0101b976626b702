from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from ecdf_of_arrays import ecdf_difference
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_tables import schema_of
from scipy.stats import cramervonmises_2samp, ks_2samp

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.run import Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.utility.ecdf import EcdfSpec, ecdf

few_values = st.lists(st.integers(0, 5).map(float), min_size=1, max_size=12)
many_values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12)


def direct(confidential: np.ndarray, released: np.ndarray, *, distinct: bool = False) -> tuple[float, float]:
    """Both differences by their definition, point by point over the pooled values, or over the distinct ones."""
    points = [*confidential, *released]
    gaps = [np.mean(confidential <= z) - np.mean(released <= z) for z in (sorted(set(points)) if distinct else points)]
    return max(abs(gap) for gap in gaps), sum(gap**2 for gap in gaps) / len(gaps)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(confidential=few_values | many_values, released=few_values | many_values)
def test_differences_are_those_of_the_definition(confidential: list[float], released: list[float]) -> None:
    c, s = np.array(confidential), np.array(released)
    for distinct in (False, True):
        found = ecdf_difference(c, s, distinct=distinct)
        assert (found.max_abs, found.mean_squared) == pytest.approx(direct(c, s, distinct=distinct), abs=1e-12)


@pytest.mark.parametrize(("n", "m", "values"), [(50, 80, 1000), (200, 30, 5), (7, 9, 2)])
def test_maximum_is_the_kolmogorov_smirnov_statistic(n: int, m: int, values: int) -> None:
    rng = np.random.default_rng(n)
    c, s = rng.integers(0, values, n), rng.integers(0, values + 1, m)
    theirs = ks_2samp(c, s, method="asymp").statistic
    assert ecdf_difference(c.astype(float), s.astype(float)).max_abs == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize(
    ("confidential", "released"),
    [([1, 1, 2, 3], [1, 4]), ([0, 0, 0], [0, 1, 1]), ([5], [7]), ([1, 2, 3, 4], [5, 6, 7]), ([2, 2], [2, 2])],
)
def test_expected_mean_square_is_the_mean_over_every_split_of_the_pooled_values(
    confidential: list[float], released: list[float], distinct: bool
) -> None:
    pooled = np.array([*confidential, *released], dtype=float)
    splits = [
        direct(pooled[list(chosen)], np.delete(pooled, list(chosen)), distinct=distinct)[1]
        for chosen in combinations(range(len(pooled)), len(confidential))
    ]
    found = ecdf_difference(np.array(confidential, dtype=float), np.array(released, dtype=float), distinct=distinct)
    assert found.expected_mean_squared == pytest.approx(np.mean(splits), abs=1e-14)


def test_mean_square_is_the_cramer_von_mises_statistic_of_continuous_values() -> None:
    rng = np.random.default_rng(1)
    c, s = rng.normal(size=60), rng.normal(0.3, 1, 45)
    found = ecdf_difference(c, s)
    theirs = cramervonmises_2samp(c, s).statistic
    assert found.mean_squared == pytest.approx(theirs * (60 + 45) / (60 * 45), rel=1e-9)
    assert found.expected_mean_squared == pytest.approx((60 + 45 + 1) / (6 * 60 * 45), rel=1e-9)


def test_baselines_are_the_means_over_samples_of_one_distribution() -> None:
    rng = np.random.default_rng(2)
    found = [ecdf_difference(rng.normal(size=900), rng.normal(size=600)) for _ in range(600)]
    assert np.mean([f.max_abs for f in found]) == pytest.approx(found[0].expected_max_abs, rel=0.05)
    assert np.mean([f.mean_squared for f in found]) == pytest.approx(found[0].expected_mean_squared, rel=0.12)
    shifted = [ecdf_difference(rng.normal(size=900), rng.normal(0.1, 1, 600)) for _ in range(100)]
    assert np.mean([f.max_abs for f in shifted]) > 1.3 * shifted[0].expected_max_abs
    assert np.mean([f.mean_squared for f in shifted]) > 1.5 * shifted[0].expected_mean_squared


def mixed() -> Microdata:
    schema = schema_of(
        "group: categorical sensitive",
        Variable("size", Kind.ORDINAL, levels=("small", "large")),
        "days: count sensitive",
        "number: count identifier",
    )
    frame = pd.DataFrame({"group": ["a", "b", "a"], "size": ["small"] * 3, "days": [1, 2, 3], "number": [1, 2, 3]})
    return conform_to_schema(frame, schema)


@pytest.mark.parametrize(
    ("released", "expected"),
    [((), ("days",)), (("size", "days"), ("size", "days")), (("size", "group"), ("size",)), (("group",), ())],
)
def test_compares_the_released_variables_that_have_an_order(
    released: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert EcdfSpec().for_release(mixed().schema, released).variables == expected


def test_named_variables_come_first() -> None:
    data = mixed()
    measure = ecdf(data, data, EcdfSpec(variables=("size",)), Run(np.random.default_rng(1)))
    assert [(e.measure, e.target, e.value) for e in measure.estimates] == [
        ("max_abs_difference", "size", 0.0),
        ("mean_squared_difference", "size", 0.0),
    ]


@pytest.mark.parametrize(
    ("released", "step", "place"),
    [(["group"], {}, "measure[0]"), (["days"], {"variables": ["group"]}, "measure[0].variables[0]")],
)
def test_a_recipe_without_an_order_is_refused(released: list[str], step: dict[str, object], place: str) -> None:
    table = {
        "variables": {variable.name: variable.to_table() for variable in mixed().schema},
        "release": {"released": released},
        "measure": [{"method": "utility.ecdf", **step}],
    }
    with pytest.raises(BadInput) as caught:
        Recipe.from_table(table)
    assert caught.value.place == place


@given(
    st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12),
    st.lists(st.sampled_from([-0.0, 0.0, 0.5, 1.0, 1e300]), min_size=1, max_size=12),
)
def test_records_counted_table_by_table_are_weights_of_one(ours: list[float], theirs: list[float]) -> None:
    """Bit for bit, ties within and between the tables among them."""
    here, there = np.array(ours), np.array(theirs)
    weights = np.ones(len(here)), np.ones(len(there))
    assert ecdf_difference(here, there) == ecdf_difference(here, there, weights=weights)
