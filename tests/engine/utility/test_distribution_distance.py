from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.results import Estimate
from sfumato.engine.methods.run import Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.utility.distribution_distance import DistributionDistanceSpec, distribution_distance

SCHEMA = Schema(
    (
        Variable("zip", Kind.CATEGORICAL, levels=("a", "b", "c")),
        Variable("sex", Kind.BINARY, levels=("f", "m")),
        Variable("age", Kind.COUNT),
    )
)


def table(zips: str, sexes: str, ages: list[float | None], origin: str = "synthetic") -> Microdata:
    frame = pd.DataFrame({"zip": [z if z != "-" else None for z in zips], "sex": list(sexes), "age": ages})
    return conform_to_schema(frame, SCHEMA, MissingPolicy.KEEP, origin)  # type: ignore[arg-type]


def estimates_by_target(
    confidential: Microdata, released: Microdata, **given: object
) -> dict[tuple[str, str, object], Estimate]:
    spec = DistributionDistanceSpec.from_table(given, "measure[0]")
    run = Run(np.random.default_rng(1))
    found = distribution_distance(confidential, released, spec, run).estimates
    return {(e.measure, e.target, e.params.get("condition")): e for e in found}


OURS = table("aabb", "fmff", [1, 2, 3, 40], "confidential")


def test_distances_by_hand() -> None:
    theirs = table("aaab", "ffff", [1, 1, 1, 1])
    found = estimates_by_target(OURS, theirs, variables=["zip", "sex"], given=["zip"])
    assert found["marginal", "zip", None].value == pytest.approx((3 / 4 - 1 / 2) ** 2 + (1 / 4 - 1 / 2) ** 2)
    assert found["marginal", "sex", None].value == pytest.approx(2 * (1 / 4) ** 2)
    # among a: f 1 of 2 and 3 of 3; among b: all f
    assert found["conditional", "sex", "zip"].value == pytest.approx(2 * (1 / 2) ** 2)
    assert ("conditional", "zip", "zip") not in found


def test_levels_count_alike_however_few_records_have_them() -> None:
    """The paper sums over the levels without weights: one record of a hundred counts as much as the others."""
    ours = table("a" * 99 + "b", "f" * 100, [1] * 100, "confidential")
    theirs = table("a" * 99 + "b", "f" * 99 + "m", [1] * 100)
    found = estimates_by_target(ours, theirs, variables=["sex"], given=["zip"])
    assert found["conditional", "sex", "zip"].value == pytest.approx(2.0)
    assert found["marginal", "sex", None].value == pytest.approx(2 * 0.01**2)


@pytest.mark.parametrize(
    ("zips", "value", "reason"), [("aaaa", 2.125, "1 of 2"), ("ccbb", 4.0, "2 of 3"), ("cccc", 6.0, "3 of 3")]
)
def test_a_level_of_one_table_alone_counts_two_and_is_said(zips: str, value: float, reason: str) -> None:
    found = estimates_by_target(OURS, table(zips, "fmff", [1, 2, 3, 40]), variables=["sex"], given=["zip"])
    estimate = found["conditional", "sex", "zip"]
    assert estimate.value == pytest.approx(value)
    assert estimate.reason == f'{reason} levels of "zip" are in one table alone: each counts 2'
    assert estimate.baseline is None


@pytest.mark.slow
def test_to_leave_a_level_out_is_never_better_than_to_have_it() -> None:
    """Whatever the records of a rare level say, a release without them is at least as far away."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        sexes = "".join(rng.choice(["f", "m"], 30))
        ours = table("a" * 25 + "b" * 5, sexes, [1] * 30, "confidential")
        theirs = table("a" * 25 + "b" * 5, "".join(rng.choice(["f", "m"], 30)), [1] * 30)
        without = Microdata(theirs.schema, theirs.frame.head(25), "synthetic")
        having, lacking = (
            estimates_by_target(ours, t, variables=["sex"], given=["zip"])["conditional", "sex", "zip"]
            for t in (theirs, without)
        )
        assert having.value is not None
        assert lacking.value is not None
        assert having.value <= lacking.value


def test_a_missing_value_is_a_value_of_its_own() -> None:
    ours = table("aab-", "ffmm", [1, None, 3, 4], "confidential")
    found = estimates_by_target(ours, table("aabb", "ffmm", [1, 2, 3, 4]), variables=["zip", "age"], given=["zip"])
    assert found["marginal", "zip", None].value == pytest.approx(2 * (1 / 4) ** 2)
    assert found["conditional", "age", "zip"].reason.endswith(
        '1 of 3 levels of "zip" are in one table alone: each counts 2'
    )
    same = estimates_by_target(ours, ours, variables=["zip", "age"], given=["zip"])
    assert [e.value for e in same.values()] == [0, 0, 0]


def test_bins_are_the_recipes_or_said_to_be_learned() -> None:
    theirs = table("aabb", "fmff", [1, 2, 30, 40])
    found = estimates_by_target(OURS, theirs, variables=["age"], bins={"age": "at 18, 65"})
    assert found["marginal", "age", None].value == pytest.approx(2 * (1 / 4) ** 2)
    assert found["marginal", "age", None].reason == ""
    for rule in ("2 equal width", "2 equal count"):
        found = estimates_by_target(OURS, theirs, variables=["age"], bins={"age": rule})
        assert found["marginal", "age", None].reason == f'"age" in {rule} bins of the confidential values'
    assert "10 equal count" in estimates_by_target(OURS, theirs, variables=["age"])["marginal", "age", None].reason


def test_a_release_of_another_size_in_another_order_is_measured_alike() -> None:
    rng = np.random.default_rng(3)
    theirs = table("aaabbbccab", "fmfmfmfmfm", [1, 5, 2, 8, 3, 40, 4, 4, 2, 1])
    order = rng.permutation(10)
    shuffled = Microdata(SCHEMA, theirs.frame.iloc[order].reset_index(drop=True), "synthetic", linked=False)
    twice = Microdata(SCHEMA, pd.concat([theirs.frame, theirs.frame], ignore_index=True), "synthetic", linked=False)
    first, second, third = (
        {key: e.value for key, e in estimates_by_target(OURS, t, variables=["zip", "age"], given=["sex"]).items()}
        for t in (theirs, shuffled, twice)
    )
    assert first == second == pytest.approx(third)


def test_levels_that_the_release_lacks_or_lists_otherwise_are_told_by_their_names() -> None:
    theirs = table("bbcc", "fmff", [1, 2, 3, 40])
    other = theirs.frame["zip"].cat.set_categories(["c", "b"])
    found = estimates_by_target(OURS, theirs.with_columns({"zip": other}, "synthetic"), variables=["zip"])
    assert found["marginal", "zip", None].value == pytest.approx(0.5**2 + 0.5**2)


@pytest.mark.slow
def test_the_baseline_is_the_mean_over_samples_of_one_distribution() -> None:
    rng = np.random.default_rng(4)

    def sample(n: int, share: float = 0.2) -> Microdata:
        ages = rng.poisson(5, n).tolist()
        zips = "".join(rng.choice(list("abc"), n, p=[share, 0.5, 0.5 - share]))
        return table(zips, "".join(rng.choice(["f", "m"], n)), ages, "confidential")

    ours = [sample(120) for _ in range(150)]
    found = [estimates_by_target(a, sample(80), variables=["zip", "age"], given=["sex"]) for a in ours]
    for key in found[0]:
        values, expected = ([getattr(one[key], what) for one in found] for what in ("value", "baseline"))
        assert np.mean(values) == pytest.approx(np.mean(expected), rel=0.15), key
    moved = [estimates_by_target(a, sample(80, 0.35), variables=["zip"]) for a in ours]
    apart = np.mean([one["marginal", "zip", None].value for one in moved])
    assert apart > 2 * np.mean([one["marginal", "zip", None].baseline for one in moved])


def test_a_bin_of_a_variable_that_is_not_compared_is_refused() -> None:
    variables = {v.name: v.to_table() for v in SCHEMA}
    measure = {"method": "utility.distribution_distance", "variables": ["zip"], "bins": {"age": "width 5"}}
    with pytest.raises(BadInput, match=r'^measure\[0\]\.bins\.age: "age" is not used here'):
        Recipe.from_table({"variables": variables, "release": {"released": ["zip"]}, "measure": [measure]})


def test_a_recipe_names_variable_and_condition_in_each_row() -> None:
    measure = {"method": "utility.distribution_distance", "variables": ["zip", "age"], "given": ["sex", "zip"],
               "bins": {"age": [18, 65]}}  # fmt: skip
    recipe = Recipe.from_table(
        {"variables": {v.name: v.to_table() for v in SCHEMA}, "release": {"released": ["zip"]}, "measure": [measure]}
    )
    assert Recipe.from_toml(recipe.to_toml()) == recipe
    rows = execute_run(recipe, OURS, [table("aabb", "fmff", [1, 2, 3, 40])], key=b"").rows
    found = {(row.measure, row.target, row.params.get("condition")) for row in rows if row.draw is None}
    assert ("conditional", "age", "zip") in found
    assert len(rows) == 2 * len(found) == 2 * 5
    assert all(row.params["bins"] == {"age": "at 18, 65"} for row in rows)
