"""Sequential logistic regressions against statsmodels, the closed form of saturated models, and what order 1 and 2 keep."""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from scipy.special import expit

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.design.sequential_regressions import SequentialRegression, sequential_regressions
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.synthesis import sequential_logistic as model
from sfumato.engine.synthesis.sequential_logistic import SequentialLogisticSpec

TARGETS = ("y1", "y2", "y3", "y4")
SCHEMA = Schema(tuple(Variable(name, Kind.BINARY, levels=("0", "1")) for name in TARGETS))


def table(rows: np.ndarray, schema: Schema = SCHEMA) -> Microdata:
    columns = {n: pd.Categorical.from_codes(rows[:, i].astype(int), ["0", "1"]) for i, n in enumerate(schema.names)}
    return Microdata(schema, pd.DataFrame(columns))


def records(n: int, seed: int) -> np.ndarray:
    """Four variables that depend on one another, with a three-way interaction in the last."""
    rng = np.random.default_rng(seed)
    y1 = rng.random(n) < 0.4
    y2 = rng.random(n) < expit(-0.5 + y1)
    y3 = rng.random(n) < expit(0.3 - y1 + y2)
    y4 = rng.random(n) < expit(-0.3 + y1 - y2 + 1.0 * (y1 * y3) + 1.5 * (y1 & y2 & y3))
    return np.column_stack([y1, y2, y3, y4]).astype(float)


def paper_table(seed: int) -> np.ndarray:
    """§3: 999 records over fifteen combinations of four binary variables, and one that is (0, 0, 0, 0)."""
    cells = np.append(np.random.default_rng(seed).integers(1, 16, 999), 0)
    return np.column_stack([(cells >> (3 - i)) & 1 for i in range(4)]).astype(float)


def models_of(
    data: Microdata, targets: tuple[str, ...], spec: SequentialLogisticSpec, weights: np.ndarray | None = None
) -> tuple[SequentialRegression, ...]:
    return sequential_regressions(data, targets, spec.predictors, spec.order, weights)


def fit_regression(data: Microdata, spec: SequentialLogisticSpec, draws: int = 5, seed: int = 1) -> model.Fit:
    return model.sequential_logistic(data, data.schema.names, spec, Run(np.random.default_rng(seed)), draws)


DESIGNS = {
    1: ([], [0], [0, 1], [0, 1, 2]),
    2: ([], [0], [0, 1, (0, 1)], [0, 1, 2, (0, 1), (0, 2), (1, 2)]),
}
"""The terms of steps 2 to 4 of the paper, written out: N3WI is order 2, N2WI order 1."""


@pytest.mark.parametrize("order", [1, 2])
def test_maximum_and_covariance_are_those_of_statsmodels_on_the_terms_of_the_paper(order: int) -> None:
    rows = paper_table(3)
    models = models_of(table(rows), TARGETS, SequentialLogisticSpec(order=order))
    assert [one.target for one in models] == ["y2", "y3", "y4"]
    for one, terms in zip(models, DESIGNS[order][1:], strict=True):
        columns = [rows[:, t] if isinstance(t, int) else rows[:, t[0]] * rows[:, t[1]] for t in terms]
        theirs = sm.Logit(rows[:, TARGETS.index(one.target)], sm.add_constant(np.column_stack(columns)))
        expected, ours = theirs.fit(disp=0, tol=1e-14, maxiter=100), one.fit("none")
        assert ours.coefficients == pytest.approx(expected.params, abs=1e-8)
        assert ours.covariance == pytest.approx(expected.cov_params(), abs=1e-8)
        assert ours.errors == pytest.approx(expected.bse, abs=1e-8)


@pytest.mark.slow
def test_weights_of_records_are_those_of_statsmodels_and_a_weight_of_two_is_a_record_twice() -> None:
    rows, rng = records(300, 5), np.random.default_rng(6)
    weights = rng.random(300) + 0.1
    one = models_of(table(rows), TARGETS, SequentialLogisticSpec(), weights)[-1].fit("none")
    x = sm.add_constant(rows[:, :3])
    theirs = sm.GLM(rows[:, 3], x, family=sm.families.Binomial(), var_weights=weights).fit(tol=1e-14)
    assert one.coefficients == pytest.approx(theirs.params, abs=1e-8)
    assert one.covariance == pytest.approx(theirs.cov_params(), abs=1e-8)
    whole = rng.integers(0, 3, 300)
    for prior in ("none", "jeffreys"):
        weighted = models_of(table(rows), TARGETS, SequentialLogisticSpec(order=2), whole.astype(float))
        repeated = models_of(table(np.repeat(rows, whole, axis=0)), TARGETS, SequentialLogisticSpec(order=2))
        for a, b in zip(weighted, repeated, strict=True):
            assert a.fit(prior).coefficients == pytest.approx(b.fit(prior).coefficients, abs=1e-8)
            assert a.fit(prior).covariance == pytest.approx(b.fit(prior).covariance, abs=1e-8)


def test_drawn_coefficients_have_the_moments_of_the_paper_and_a_wrong_covariance_is_noticed() -> None:
    data, spec = table(records(200, 7)), SequentialLogisticSpec(order=2)
    fit = fit_regression(data, spec, draws=4000)
    one = models_of(data, TARGETS, spec)[-1].fit("none")
    drawn = fit.arrays["y4.coefficients"]
    assert drawn.shape == (4000, 7)
    root = np.linalg.cholesky(np.linalg.inv(one.covariance))
    standard = (drawn - one.coefficients) @ root
    squared = (standard**2).sum(axis=1)
    assert stats.kstest(squared, "chi2", (7,)).pvalue > 1e-3
    independent = ((drawn - one.coefficients) / one.errors) ** 2
    assert stats.kstest(independent.sum(axis=1), "chi2", (7,)).pvalue < 1e-6, "the negative control"
    shares = fit.arrays["y1.share"]
    ones = data.numbers("y1").sum()
    assert stats.kstest(shares, "beta", (ones + 1, 200 - ones + 1)).pvalue > 1e-3


def shares(rows: np.ndarray) -> np.ndarray:
    return np.bincount((rows @ [8, 4, 2, 1]).astype(int), minlength=16) / len(rows)


def fit_and_draw(data: Microdata, spec: SequentialLogisticSpec, count: int) -> np.ndarray:
    fit, empty = fit_regression(data, spec), Microdata(data.schema, data.frame.iloc[:0], "synthetic")
    made = model.joint_draw(fit, spec, TARGETS, data, empty, 0, count, np.random.default_rng(2))
    return np.column_stack([made[name] for name in TARGETS])


@pytest.mark.slow
def test_datasets_have_the_probabilities_of_equation_5() -> None:
    data, spec = table(records(2000, 8)), SequentialLogisticSpec(order=2, parameters="mle")
    fit, expected = fit_regression(data, spec), np.empty(16)
    b = [None, *(fit.arrays[f"y{j}.coefficients"][0] for j in (2, 3, 4))]
    for k, (y1, y2, y3, y4) in enumerate(product((0, 1), repeat=4)):
        p = [float(fit.arrays["y1.share"][0]), expit(b[1] @ [1, y1]), expit(b[2] @ [1, y1, y2, y1 * y2])]
        p.append(expit(b[3] @ [1, y1, y2, y3, y1 * y2, y1 * y3, y2 * y3]))
        expected[k] = np.prod([q if y else 1 - q for q, y in zip(p, (y1, y2, y3, y4), strict=True)])
    found = shares(fit_and_draw(data, spec, 100_000))
    assert stats.chisquare(found * 1e5, expected * 1e5).pvalue > 1e-4
    assert stats.chisquare(found * 1e5, shares(data_rows(data)) * 1e5).pvalue < 1e-6, "a three-way interaction is lost"


def data_rows(data: Microdata) -> np.ndarray:
    return np.column_stack([data.numbers(name) for name in TARGETS])


@pytest.mark.slow
def test_order_two_keeps_pairs_and_order_one_loses_them_in_the_last_variable() -> None:
    """Cross moments of y4 with the products of two others: the score of the maximum keeps them where they are terms."""
    data = table(records(4000, 9))
    products = {}
    for order in (1, 2):
        rows = fit_and_draw(data, SequentialLogisticSpec(order=order, parameters="mle"), 200_000)
        products[order] = (rows[:, 3] * rows[:, 0] * rows[:, 2]).mean()
    own = data_rows(data)
    kept = (own[:, 3] * own[:, 0] * own[:, 2]).mean()
    assert products[2] == pytest.approx(kept, abs=0.004)
    assert abs(products[1] - kept) > 0.01


def separated() -> Microdata:
    """Of the 20 records with y1 = 1 none has y2 = 1."""
    rows = np.zeros((60, 2))
    rows[:20, 0] = 1
    rows[30:45, 1] = 1
    return table(rows, Schema(SCHEMA.variables[:2]))


def test_separated_levels_are_refused_with_what_to_write_and_jeffreys_has_the_closed_form() -> None:
    data = separated()
    with pytest.raises(BadInput, match=r'separates its two levels.*prior = "jeffreys"') as caught:
        model.check_data(data, ("y1", "y2"), SequentialLogisticSpec(), "synthesis[0]")
    assert caught.value.place == "synthesis[0].target[1]"
    spec = SequentialLogisticSpec(prior="jeffreys")
    model.check_data(data, ("y1", "y2"), spec, "synthesis[0]")
    found = models_of(data, ("y1", "y2"), spec)[0].fit("jeffreys")
    p0, p1 = 15.5 / 41, 0.5 / 21
    assert found.coefficients == pytest.approx([np.log(p0 / (1 - p0)), np.log(p1 / (1 - p1)) - np.log(p0 / (1 - p0))])
    v0, v1 = 1 / (40 * p0 * (1 - p0)), 1 / (20 * p1 * (1 - p1))
    assert found.covariance == pytest.approx(np.array([[v0, -v0], [-v0, v0 + v1]]))


def test_without_separation_the_default_is_the_plain_maximum_and_jeffreys_is_near_it() -> None:
    models = models_of(table(records(4000, 4)), TARGETS, SequentialLogisticSpec())
    for one in models:
        plain, jeffreys = one.fit("none"), one.fit("jeffreys")
        assert np.abs(plain.coefficients - jeffreys.coefficients).max() < 0.02
        assert (plain.coefficients != jeffreys.coefficients).all()


def test_a_product_that_no_record_has_is_left_out_and_a_copy_of_a_variable_is_refused() -> None:
    rows = records(400, 11)
    rows = rows[(rows[:, 0] + rows[:, 1]) < 2]
    data = table(rows)
    spec = SequentialLogisticSpec(order=2, prior="jeffreys")
    model.check_data(data, TARGETS, spec, "synthesis[0]")
    last = models_of(data, TARGETS, spec)[-1]
    assert last.left_out == ("y1=1:y2=1",)
    assert set(fit_and_draw(data, spec, 500).ravel()) == {0.0, 1.0}
    rows[:, 1] = rows[:, 0]
    with pytest.raises(BadInput, match='"y2=1", which "y3" is regressed on, is determined by the terms before it'):
        model.check_data(table(rows), TARGETS, spec, "synthesis[0]")


PARTIAL = {
    "title": "partial",
    "variables": {name: {"kind": "binary", "levels": ["0", "1"]} for name in TARGETS},
    "release": {"m": 2},
    "synthesis": [{"target": ["y3", "y4"], "method": "sequential_logistic", "order": 2, "predictors": ["y1", "y2"]}],
}


@pytest.mark.slow
def test_partial_synthesis_keeps_the_predictors_and_uses_steps_3_and_4() -> None:
    """§4 of the paper: y1 and y2 stay, y3 and y4 have the regressions of the full synthesis."""
    data, recipe = table(records(600, 12)), Recipe.from_table(PARTIAL)
    check_steps(recipe, data)
    outcome = execute_run(recipe, data, key=PUBLIC)
    for released in outcome.releases:
        assert released.frame[["y1", "y2"]].equals(data.frame[["y1", "y2"]])
        assert not released.frame[["y3", "y4"]].equals(data.frame[["y3", "y4"]])
    full = models_of(data, TARGETS, SequentialLogisticSpec(order=2))[1:]
    kept = models_of(data, ("y3", "y4"), SequentialLogisticSpec(order=2, predictors=("y1", "y2")))
    for a, b in zip(full, kept, strict=True):
        assert a.names == b.names
        assert a.fit("none").coefficients == pytest.approx(b.fit("none").coefficients, abs=1e-10)


def test_the_order_of_the_records_changes_no_coefficient() -> None:
    rows = records(500, 13)
    one = fit_regression(table(rows), SequentialLogisticSpec(order=2))
    other = fit_regression(table(rows[np.random.default_rng(1).permutation(500)]), SequentialLogisticSpec(order=2))
    for name, array in one.arrays.items():
        assert np.array_equal(array, other.arrays[name]), name


@pytest.mark.slow
def test_a_million_records_take_seconds() -> None:
    data = table(records(1_000_000, 14))
    start = time.process_time()
    fit_and_draw(data, SequentialLogisticSpec(order=2), 1_000_000)
    assert time.process_time() - start < 10
