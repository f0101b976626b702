"""Weights of single records: what they are, what they do to releases, and what the strongest intruder makes of a weighted one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from sfumato.engine.data.microdata import Microdata, MissingPolicy, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.errors import BadInput, EngineError
from sfumato.engine.execution.tasks import (
    draw_dataset,
    execute_run,
    fit_model,
    gather_blocks,
    measure_block,
    measurement_streams,
    synthesis_streams,
)
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.results import WholeReleaseMeasure
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.posterior.bayesian_linear_regression import LinearPosterior
from sfumato.engine.posterior.zero_inflated_poisson import ZeroInflatedPoisson
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.weights import WEIGHTS_KNOWN, RecordWeighting, risk_by_known_variables, weights_by_risk

KEY = bytes(range(32))
Small = Callable[..., Recipe]
Row = tuple[str, ...]
TABLE = {"run": 3, "measure": "risk.identification", "strength": 0.5}


def recipe(m: int = 2, a: float = 1.0, kept: Sequence[str] = (), **measure: Any) -> Recipe:
    names = ("a", "b")
    step = {"method": "dirichlet_multinomial", "target": list(names), "concentration": a, "predictors": list(kept)}
    levels = {"kind": "categorical", "levels": ["0", "1"]}
    return Recipe.from_table(
        {
            "variables": dict.fromkeys((*kept, *names), levels),
            "release": {"m": m},
            "synthesis": [step],
            "measure": [{"method": "risk.bayesian_posterior", "guesses": "all", "blocks": 2, **measure}],
        }
    )


def table(of: Recipe, rows: Sequence[Row], origin: str = "confidential") -> Microdata:
    frame = pd.DataFrame(list(rows), columns=list(of.schema.names))
    return Microdata(of.schema, conform_to_schema(frame, of.schema).frame, origin)  # type: ignore[arg-type]


def weighed(of: Recipe, data: Microdata, releases: Sequence[Microdata]) -> WholeReleaseMeasure:
    parts = [measure_block(of, 0, block, data, releases, key=PUBLIC) for block in of.measures[0].spec.grid()]
    return gather_blocks(of, 0, data, releases, parts)[0]


def datasets(of: Recipe, data: Microdata, key: bytes = PUBLIC) -> list[bytes]:
    fits = [fit_model(of, k, data, key=key) for k in range(len(of.synthesis))]
    made = [draw_dataset(of, draw, data, fits, key=key).frame for draw in range(1, of.m + 1)]
    return [frame.to_csv().encode() for frame in made]


def test_weights_fall_with_the_risk() -> None:
    risk = np.array([0.0, 0.25, 1.0, np.nan])
    assert weights_by_risk(risk, 1.0).tolist() == [1.0, 0.75, 0.0, 1.0]
    assert weights_by_risk(risk, 0.5).tolist() == [1.0, 0.875, 0.5, 1.0]


@pytest.mark.parametrize("weights", [[1.0] * 79, [1.0] * 79 + [1.1], [1.0] * 79 + [-0.1], [np.nan] * 80, [0.0] * 80])
def test_what_is_no_weight_is_refused(small_data: Microdata, weights: list[float]) -> None:
    with pytest.raises(EngineError, match="from 0 to 1"):
        small_data.with_weights(np.array(weights))


@pytest.mark.parametrize("key", [PUBLIC, KEY])
def test_weights_that_are_all_1_give_the_same_bytes(small_recipe: Small, small_data: Microdata, key: bytes) -> None:
    plain = small_recipe()
    repaired = small_recipe(weights=TABLE)
    ones = np.ones(len(small_data))
    assert datasets(repaired, small_data.with_weights(ones), key) == datasets(plain, small_data, key)
    ones[3] = 0.5
    assert datasets(repaired, small_data.with_weights(ones), key) != datasets(plain, small_data, key)


def test_a_release_does_not_depend_on_a_record_of_weight_0(small_recipe: Small, small_data: Microdata) -> None:
    """Through all steps, the record's values predictors of a later one among them; with half a weight it does."""
    of = small_recipe(weights=TABLE)
    frame = small_data.frame.copy()
    frame.loc[5, "visits"] = 60 - frame.loc[5, "visits"]
    frame.loc[5, "income"] *= 10
    changed = Microdata(small_data.schema, frame)
    for weight, same in ((0.0, True), (0.5, False)):
        weights = np.where(np.arange(len(small_data)) == 5, weight, 1.0)
        first, second = (datasets(of, one.with_weights(weights)) for one in (small_data, changed))
        assert (first == second) == same


def test_a_table_drawn_given_another_does_not_depend_on_a_record_of_weight_0() -> None:
    """Its value in the first is nobody else's, and a group of its own in the second."""
    level = {"kind": "categorical", "levels": ["0", "1", "2"]}
    step = {"method": "dirichlet_multinomial", "concentration": 0.5}
    of = Recipe.from_table(
        {
            "variables": {"a": level, "b": level},
            "release": {"m": 2},
            "synthesis": [{**step, "target": ["a"]}, {**step, "target": ["b"], "predictors": ["a"]}],
        }
    )
    rows = [("0", "0"), ("0", "1"), ("1", "0")] * 8
    both = [table(of, [*rows, own]) for own in (("2", "2"), ("1", "1"))]
    for weight, same in ((0.0, True), (0.5, False)):
        weights = np.append(np.ones(24), weight)
        first, second = (datasets(of, one.with_weights(weights)) for one in both)
        assert (first == second) == same


def test_streams_are_bound_to_weights_where_they_make_datasets(small_recipe: Small, small_data: Microdata) -> None:
    half = small_data.with_weights(np.where(np.arange(len(small_data)) == 5, 0.5, 1.0))
    of = small_recipe()

    def number(streams: Any) -> int:
        return int(streams.generator("x").integers(2**63))

    assert number(synthesis_streams(of, half, KEY)) != number(synthesis_streams(of, small_data, KEY))
    assert number(measurement_streams(of, half, KEY)) == number(measurement_streams(of, small_data, KEY))


def test_where_weights_come_from_is_part_of_the_recipe(small_recipe: Small) -> None:
    of = small_recipe(weights=TABLE)
    assert of.weights == RecordWeighting(3, "risk.identification", 0.5)
    assert Recipe.from_toml(of.to_toml()) == of
    assert of.sha256 != small_recipe().sha256
    assert str(of.weights) == "records at risk in run 3 by risk.identification have less influence (strength 0.5)"


@pytest.mark.parametrize(
    ("sections", "place"),
    [
        ({"weights": {"strength": 0.5}}, "weights.run: must be given: the run whose records"),
        ({"weights": {"run": 0}}, "weights.run"),
        ({"weights": {"run": 3, "strength": 0}}, "weights.strength"),
        ({"weights": {"run": 3, "strength": 1.5}}, "weights.strength"),
        ({"weights": {"run": 3, "strength": True}}, "weights.strength"),
        ({"weights": {"run": 3, "share": 1}}, "weights.share"),
        ({"weights": {"run": 3, "known": ["region"]}}, "weights.run: the risk comes from known"),
        (
            {"weights": {"measure": "risk.uniqueness", "known": ["region"]}},
            "weights.measure: the risk comes from known",
        ),
        ({"weights": {"known": ["regoin"]}}, r'weights.known\[0\]: .*"regoin"'),
        (
            {"weights": {"run": 3}, "synthesis": [], "release": {"released": ["income"]}},
            "weights: they are the influence",
        ),
        (
            {"weights": {"run": 3}, "synthesis": [{"target": "income", "method": "marginal_bootstrap"}]},
            r"synthesis\[0\].method: synthesis.marginal_bootstrap cannot give single records less influence; use .*cart, ",
        ),
    ],
)
def test_a_recipe_that_cannot_weigh_is_refused(small_recipe: Small, sections: dict[str, Any], place: str) -> None:
    with pytest.raises(BadInput, match=place):
        small_recipe(**{"measure": [], "threshold": [], **sections})


def test_the_risk_of_known_values_is_one_over_the_records_that_share_them() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 24, 60).astype(float),
            "region": rng.choice(["n", "s", None], 60),
            "income": rng.random(60),
        }
    )
    frame.loc[::7, "age"] = np.nan
    kinds = {"age": Kind.COUNT, "region": Kind.CATEGORICAL, "income": Kind.CONTINUOUS}
    schema = Schema(tuple(Variable(name, kind) for name, kind in kinds.items()))
    data = conform_to_schema(frame, schema, MissingPolicy.KEEP)
    keys = [(str(one.age), str(one.region)) for one in data.frame.itertuples()]
    assert risk_by_known_variables(data, ["age", "region"]).tolist() == [1 / keys.count(key) for key in keys]
    assert risk_by_known_variables(data, ["income"]).tolist() == [1.0] * 60


def test_no_method_that_weighs_records_claims_an_epsilon() -> None:
    """Weights read the confidential data: noise whose cost is accounted for would not hide what they say."""
    weighted = [method for method in registry().values() if method.family == "synthesis" and method.synthesis.weighted]
    assert weighted
    assert not [method.key for method in weighted if method.synthesis.privacy.account is not None]


def test_what_carries_values_past_the_weights_is_refused(small_recipe: Small, small_data: Microdata) -> None:
    half = small_data.with_weights(np.full(len(small_data), 0.5))
    for step, place in (
        ({"method": "zero_inflated_truncated_poisson", "target": "visits", "random_effect": "record"}, "random_effect"),
        ({"method": "dirichlet_multinomial", "target": ["visits"], "bins": {"visits": "4 equal count"}}, "bins.visits"),
        ({"method": "dirichlet_multinomial", "target": ["income"], "bins": {"income": "width 500"}}, "bins.income"),
        (
            {"method": "dirichlet_multinomial", "target": ["visits"], "bins": {"visits": "width 5"}, "inside": "donor"},
            "inside",
        ),
    ):
        (made,) = small_recipe(synthesis=[step], weights=TABLE, measure=[], threshold=[]).synthesis
        with pytest.raises(BadInput, match=place):
            made.method.check_data(half, made.targets, made.spec, made.place)


def test_records_that_say_too_little_in_all_are_refused(small_recipe: Small, small_data: Microdata) -> None:
    with pytest.raises(BadInput, match="4 records, by their weights, cannot determine 4 coefficients"):
        fit_model(small_recipe(), 0, small_data.with_weights(np.full(len(small_data), 0.05)), key=PUBLIC)


@pytest.mark.parametrize("prior", ["from_records", "from_records_scaled"])
def test_the_linear_posterior_is_the_weighted_one(prior: str) -> None:
    """Against the unnormalised posterior itself, likelihoods to the power of the weights, at any two points."""
    rng = np.random.default_rng(1)
    x = np.column_stack([np.ones(30), rng.normal(size=30)])
    y, w = x @ [1.0, 2.0] + rng.normal(size=30), rng.random(30)
    posterior = getattr(LinearPosterior, prior)(y, x, 2.0, 1.0, weights=w)
    middle, unit = 0.0, 1.0
    if prior == "from_records_scaled":
        middle = np.average(y, weights=w)
        unit = float(np.sqrt(np.average((y - middle) ** 2, weights=w)))
        mean = np.average(x[:, 1], weights=w)
        x = np.column_stack([x[:, 0], (x[:, 1] - mean) / np.sqrt(np.average((x[:, 1] - mean) ** 2, weights=w))])
        y = (y - middle) / unit
    sigmas = np.array([0.6, 1.1])
    marginal = []
    for sigma in sigmas:  # the coefficients integrated out: y is normal with covariance X S X' + sigma^2 / w
        covariance = 4.0 * x @ x.T + np.diag(sigma**2 / w)
        log = -0.5 * (np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y))
        log += 0.5 * np.sum(np.log(sigma**2 / w)) - w.sum() * np.log(sigma)  # powers of densities, not densities
        marginal.append(log + np.log(sigma) - np.log1p(sigma**2))
    found = posterior.log_sigma_density(np.log(sigmas))
    assert found[1] - found[0] == pytest.approx(marginal[1] - marginal[0], rel=1e-9)
    unweighted = getattr(LinearPosterior, prior)(y, x, 2.0, 1.0).log_sigma_density(np.log(sigmas))
    assert unweighted[1] - unweighted[0] != pytest.approx(marginal[1] - marginal[0], rel=1e-3)


def test_the_zero_inflated_posterior_is_the_weighted_one() -> None:
    """Weights 2 and 3 are records that stand twice and three times; a half is half of a log likelihood."""
    rng = np.random.default_rng(2)
    x = np.column_stack([np.ones(12), rng.integers(0, 2, 12)])
    y, copies = rng.poisson(2, 12), rng.integers(1, 4, 12)
    theta = np.array([0.5, 0.2, -1.0, 0.3, -0.5])
    each = ZeroInflatedPoisson.from_design(np.repeat(y, copies), np.repeat(x, copies, axis=0), 9)
    by_weight = ZeroInflatedPoisson.from_design(y, x, 9, weights=copies.astype(float))
    assert by_weight.derivatives(theta)[0] == pytest.approx(each.derivatives(theta)[0], rel=1e-12)
    half = ZeroInflatedPoisson.from_design(y, x, 9, weights=np.full(12, 0.5))
    plain = ZeroInflatedPoisson.from_design(y, x, 9)
    prior = float(plain.log_prior(theta))
    assert half.derivatives(theta)[0] - prior == pytest.approx((plain.derivatives(theta)[0] - prior) / 2, rel=1e-12)


def log_of_release(release: Sequence[Row], data: Sequence[Row], weights: Sequence[float], kept: int, a: float) -> float:
    """Log p(release | data) by the Gamma functions of the weighted counts themselves."""
    found = 0.0
    for group in {row[:kept] for row in release}:
        cells = [(*group, *cell) for cell in product("01", repeat=len(data[0]) - kept)]
        alpha = [a + math.fsum(w for row, w in zip(data, weights, strict=True) if row == cell) for cell in cells]
        drawn = [sum(row == cell for row in release) for cell in cells]
        found += float(gammaln(sum(alpha)) - gammaln(sum(alpha) + sum(drawn)))
        found += sum(float(gammaln(p + z) - gammaln(p)) for p, z in zip(alpha, drawn, strict=True))
    return found


def brute_force(
    data: Sequence[Row], weights: Sequence[float], releases: Sequence[Sequence[Row]], kept: int, a: float, prior: str
) -> list[float]:
    """The posterior of each record's truth: all guesses, each with the record's weight, beliefs before at full weight."""
    found = []
    for i, own in enumerate(data):
        logs = {}
        for guess in product("01", repeat=len(own) - kept):
            row = (*own[:kept], *guess)
            changed = [*data[:i], row, *data[i + 1 :]]
            logs[row] = sum(log_of_release(z, changed, weights, kept, a) for z in releases)
            if prior == "model":
                others = [other for j, other in enumerate(data) if j != i]
                logs[row] += log_of_release([row], others, [1.0] * len(others), kept, a)
        top = max(logs.values())
        found.append(math.exp(logs[own] - top) / math.fsum(math.exp(log - top) for log in logs.values()))
    return found


rows_of = lambda wide, size: st.lists(st.tuples(*[st.sampled_from("01")] * wide), min_size=size, max_size=size)  # noqa: E731


@pytest.mark.slow
@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    rows_of(3, 5),
    st.lists(rows_of(2, 5), min_size=1, max_size=2),
    st.lists(st.sampled_from([0.0, 0.05, 0.5, 0.9, 1.0]), min_size=5, max_size=5).filter(any),
    st.sampled_from([1.0, 1 / 3, 1e-4]),
    st.sampled_from(["uniform", "model"]),
    st.sampled_from([0, 1]),
)
def test_every_posterior_of_a_weighted_release_is_the_sum_over_all_guesses(
    rows: list[Row], drawn: list[list[Row]], weights: list[float], a: float, prior: str, kept: int
) -> None:
    data = [row if kept else row[1:] for row in rows]
    releases = [
        [(*row[:kept], *own) for row, own in zip(rows, release, strict=True)] if kept else release for release in drawn
    ]
    of = recipe(len(releases), a, ("k",)[:kept], prior=prior)
    confidential = table(of, data).with_weights(np.array(weights))
    found = weighed(of, confidential, [table(of, release, "synthetic") for release in releases])
    expected = brute_force(data, weights, releases, kept, a, prior)
    assert found.whole.per_record["probability"] == pytest.approx(expected, rel=1e-7, abs=1e-9)


def test_the_oracle_tells_another_weight_apart() -> None:
    data, release = [("0", "0"), ("0", "1"), ("1", "1")], [("0", "0"), ("0", "0"), ("1", "1")]
    of = recipe(1, prior="uniform")
    found = weighed(of, table(of, data).with_weights(np.array([0.2, 1.0, 1.0])), [table(of, release, "synthetic")])
    wrong = brute_force(data, [1.0, 1.0, 1.0], [release], 0, 1.0, "uniform")
    assert found.whole.per_record["probability"] != pytest.approx(wrong, rel=1e-3)


def test_a_release_says_nothing_of_a_record_of_weight_0() -> None:
    """The posterior is the prior; with any weight it is not. The reader is told what the intruder is taken to know."""
    rows = [("0", "0")] * 3 + [("0", "1")] * 4 + [("1", "0")]
    of = recipe(3, 0.1)
    for weight, same in ((0.0, True), (0.5, False)):
        data = table(of, rows).with_weights(np.array([*[1.0] * 7, weight]))
        fits = [fit_model(of, 0, data, key=PUBLIC)]
        found = weighed(of, data, [draw_dataset(of, draw, data, fits, key=PUBLIC) for draw in (1, 2, 3)])
        own = found.whole.per_record
        assert (abs(own["probability"][-1] - own["prior"][-1]) < 1e-12) == same
        assert WEIGHTS_KNOWN in found.whole.estimates[0].reason


def test_a_model_that_cannot_be_asked_says_so() -> None:
    """Rather than give the number of a release that other weights made."""
    levels = {"kind": "binary", "levels": ["0", "1"]}
    of = Recipe.from_table(
        {
            "variables": {"a": levels, "b": levels},
            "release": {"m": 1},
            "synthesis": [{"method": "dirichlet_multinomial", "target": ["a", "b"]}],
            "measure": [{"method": "risk.bayesian_posterior", "blocks": 1}],
        }
    )
    (step,) = of.synthesis
    unweighted = replace(step.method.synthesis.release_model, is_weighted=False)
    method = replace(step.method, synthesis=replace(step.method.synthesis, release_model=unweighted))
    of = replace(of, synthesis=(replace(step, method=method),))
    rng = np.random.default_rng(3)
    rows = [(str(p), str(q)) for p, q in rng.integers(0, 2, (20, 2))]
    found = execute_run(of, table(of, rows).with_weights(np.full(20, 0.5)), key=PUBLIC)
    own = [row for row in found.rows if row.measure == "posterior_risk"]
    assert [row.status for row in own] == ["not computed"]
    assert "less influence" in own[0].reason


NAMES = [f"v{i}" for i in range(6)]


def a_table(of: Recipe, rng: np.random.Generator) -> Microdata:
    """Four hundred records of two classes in six variables of three levels, of which many are alone in their cell."""
    common, of_class = np.array([0.75, 0.2, 0.05]), rng.integers(0, 2, 400)
    columns = {
        name: np.where(of_class == 1, rng.choice(3, 400, p=common), rng.choice(3, 400, p=common[[1, 0, 2]])).astype(str)
        for name in NAMES
    }
    return conform_to_schema(pd.DataFrame(columns), of.schema)


def outcome(of: Recipe, data: Microdata) -> tuple[np.ndarray, WholeReleaseMeasure]:
    """R, the share of records nearly certain, the mean posterior of the truth, PR, and what pairs of variables lose; and the records."""
    fits = [fit_model(of, 0, data, key=KEY)]
    releases = [draw_dataset(of, draw, data, fits, key=KEY) for draw in range(1, of.m + 1)]
    found = weighed(of, data, releases)
    said = {e.measure: e.value for e in found.whole.estimates if not e.params}
    loss = [
        np.abs(pairs(data, *two) - pairs(release, *two)).sum() / 2
        for release in releases
        for two in combinations(NAMES, 2)
    ]
    names = ("posterior_risk", "nearly_certain", "posterior_of_truth", "prior_risk")
    return np.array([*(said[name] for name in names), np.mean(loss)], dtype=float), found


def pairs(data: Microdata, one: str, other: str) -> np.ndarray:
    return np.bincount((data.numbers(one) * 3 + data.numbers(other)).astype(int), minlength=9) / len(data)


@pytest.mark.study
def test_risk_falls_where_it_was_and_little_is_lost() -> None:
    """Against less influence of all records, which loses much more for as few that are given away; weights at random protect nobody."""
    level = {"kind": "categorical", "levels": ["0", "1", "2"]}
    means: dict[str, Any] = {}
    for seed in range(4):
        of = Recipe.from_table(
            {
                "variables": dict.fromkeys(NAMES, level),
                "release": {"m": 5, "seed": seed},
                "synthesis": [{"method": "dirichlet_multinomial", "target": NAMES, "concentration": 0.01}],
                "measure": [{"method": "risk.bayesian_posterior", "blocks": 1}],
            }
        )
        rng = np.random.default_rng(seed)
        data = a_table(of, rng)
        before, found = outcome(of, data)
        risk = found.whole.per_record["probability"].astype(float)
        weights = weights_by_risk(risk, 1.0)
        for name, own in (
            ("half", weights_by_risk(risk, 0.5)),
            ("whole", weights),
            ("all", np.full(400, 0.5)),
            ("random", rng.permutation(weights)),
        ):
            means.setdefault(name, []).append(outcome(of, data.with_weights(own))[0])
        means.setdefault("before", []).append(before)
    before, half, whole, everyone, random = (
        np.mean(means[name], axis=0) for name in ("before", "half", "whole", "all", "random")
    )
    assert whole[0] < half[0] < before[0]
    assert whole[1] < half[1] < before[1]
    assert whole[1] < 0.7 * before[1]
    assert whole[2] < 0.8 * before[2]
    assert whole[3] == half[3] == everyone[3] == before[3], "what is believed before hangs on no weight"
    assert whole[1] < everyone[1] + 0.005
    assert whole[4] - before[4] < (everyone[4] - before[4]) / 2
    assert random[1] > 1.2 * whole[1]
    assert random[2] > 1.1 * whole[2]
