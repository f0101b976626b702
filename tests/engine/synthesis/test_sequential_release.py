"""How an intruder weighs a release of sequential logistic regressions, against statsmodels and plain integration."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy.special import betaln

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.release_models import IntruderGuesses
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.synthesis import sequential_logistic as release_module
from sfumato.engine.synthesis.sequential_logistic import SequentialLogisticRelease

NAMES = ("a", "b", "c")
CELLS = np.array(list(product((0, 1), repeat=3)))
Floats = NDArray[np.float64]


def recipe(order: int, parameters: str, m: int = 1, **measure: Any) -> Recipe:
    return Recipe.from_table(
        {
            "title": "three",
            "variables": {name: {"kind": "binary", "levels": ["0", "1"]} for name in NAMES},
            "release": {"m": m},
            "synthesis": [
                {"method": "sequential_logistic", "target": list(NAMES), "order": order, "parameters": parameters}
            ],
            "measure": [{"method": "risk.bayesian_posterior", "guesses": "all", "prior": "uniform", **measure}],
        }
    )


def microdata(of: Recipe, rows: NDArray[np.int64], origin: str = "confidential") -> Microdata:
    frame = pd.DataFrame(rows.astype(str), columns=list(NAMES))
    return Microdata(of.schema, conform_to_schema(frame, of.schema).frame, origin)  # type: ignore[arg-type]


def draw_binary_rows(n: int, seed: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    a = rng.random(n) < 0.4
    b = rng.random(n) < np.where(a, 0.7, 0.3)
    c = rng.random(n) < np.where(a & b, 0.8, np.where(a | b, 0.5, 0.2))
    return np.column_stack([a, b, c]).astype(np.int64)


def model(of: Recipe, data: Microdata, releases: Sequence[Microdata]) -> SequentialLogisticRelease:
    step = of.synthesis[0]
    assert step.method.synthesis.release_model.make_model is not None
    found = step.method.synthesis.release_model.make_model(
        data, step.targets, step.spec, releases, Run(np.random.default_rng(1))
    )
    assert isinstance(found, SequentialLogisticRelease)
    return found


def columns(rows: NDArray[np.int64], target: int, order: int) -> Floats:
    before = [rows[:, j] for j in range(target)]
    products = [x * y for j, x in enumerate(before) for y in before[j + 1 :]] if order == 2 else []
    return np.column_stack([np.ones(len(rows)), *before, *products]).astype(float)


def by_hand(data: NDArray[np.int64], release: NDArray[np.int64], order: int, parameters: str) -> float:
    """log p(Z | D): statsmodels' fits, and of the integrals the mean over many draws from the normal distribution."""
    ones, zeros = data[:, 0].sum(), (1 - data[:, 0]).sum()
    z1, z0 = release[:, 0].sum(), (1 - release[:, 0]).sum()
    if parameters == "mle":
        total = z1 * np.log(ones / len(data)) + z0 * np.log(zeros / len(data))
    else:
        total = betaln(ones + 1 + z1, zeros + 1 + z0) - betaln(ones + 1, zeros + 1)
    rng = np.random.default_rng(2)
    for target in (1, 2):
        fit = sm.Logit(data[:, target], columns(data, target, order)).fit(disp=0)
        x, y = columns(release, target, order), release[:, target]
        beta = fit.params[None, :]
        if parameters == "drawn":
            noise = rng.standard_normal((50_000, len(fit.params)))
            beta = fit.params + np.concatenate([noise, -noise]) @ np.linalg.cholesky(fit.cov_params()).T
        distinct, counts = np.unique(np.column_stack([x, y]), axis=0, return_counts=True)
        eta = beta @ distinct[:, :-1].T
        logs = (distinct[:, -1] * eta - np.logaddexp(0, eta)) @ counts
        total += np.log(np.exp(logs - logs.max()).mean()) + logs.max()
    return float(total)


@pytest.mark.slow
@pytest.mark.parametrize("parameters", ["mle", "drawn"])
@pytest.mark.parametrize("order", [1, 2])
def test_likelihoods_are_those_of_fits_by_another_library(order: int, parameters: str) -> None:
    of = recipe(order, parameters)
    rows, z = draw_binary_rows(40, 3), draw_binary_rows(40, 4)
    found = model(of, microdata(of, rows), [microdata(of, z, "synthetic")])
    records = np.array([0, 7, 20] if parameters == "mle" else [7])
    values = {name: np.broadcast_to(CELLS[:, j], (len(records), 8)).astype(float) for j, name in enumerate(NAMES)}
    weighed = found.plausibility_of(IntruderGuesses(records, values)).likelihood[..., 0]
    for r, record in enumerate(records):
        expected = []
        for cell in CELLS:
            changed = rows.copy()
            changed[record] = cell
            expected.append(by_hand(changed, z, order, parameters))
        tolerance = 1e-6 if parameters == "mle" else 0.02
        differences = weighed[r] - np.array(expected)
        assert np.ptp(differences) < tolerance
        if parameters == "mle":
            assert differences == pytest.approx(0, abs=1e-6)
        else:
            assert differences == pytest.approx(0, abs=0.05)


def test_the_oracle_tells_another_order_apart() -> None:
    rows, z = draw_binary_rows(40, 3), draw_binary_rows(40, 4)
    assert abs(by_hand(rows, z, 1, "mle") - by_hand(rows, z, 2, "mle")) > 0.02


@pytest.mark.slow
def test_one_newton_step_is_near_a_fit_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    of = recipe(2, "drawn")
    rows, z = draw_binary_rows(500, 5), draw_binary_rows(500, 6)
    data, release = microdata(of, rows), microdata(of, z, "synthetic")
    records = np.arange(40)
    guesses = IntruderGuesses(
        records, {n: np.broadcast_to(CELLS[:, j], (40, 8)).astype(float) for j, n in enumerate(NAMES)}
    )
    anew = model(of, data, [release]).plausibility_of(guesses).likelihood[..., 0]
    found = model(of, data, [release])
    stepped = release_module.replace(found, max_refits=0).plausibility_of(guesses).likelihood[..., 0]
    difference = (stepped - stepped[:, :1]) - (anew - anew[:, :1])
    assert 0 < np.abs(difference).max() < 0.05
    assert np.abs(anew - anew[:, :1]).max() > 0.2  # what is told apart is larger


def test_the_prediction_is_that_of_all_other_records() -> None:
    of = recipe(1, "mle")
    rows = draw_binary_rows(60, 8)
    found = model(of, microdata(of, rows), [microdata(of, draw_binary_rows(60, 9), "synthetic")])
    values = {name: CELLS[None, :, j].astype(float) for j, name in enumerate(NAMES)}
    prior = found.plausibility_of(IntruderGuesses(np.array([11]), values)).prior[0]
    others = np.delete(rows, 11, axis=0)
    expected = np.zeros(8)
    for target in range(3):
        if target == 0:
            p = np.full(8, others[:, 0].mean())
        else:
            p = sm.Logit(others[:, target], columns(others, target, 1)).fit(disp=0).predict(columns(CELLS, target, 1))
        expected += np.log(np.where(CELLS[:, target] == 1, p, 1 - p))
    assert prior == pytest.approx(expected, abs=0.01)
    assert np.exp(prior).sum() == pytest.approx(1, abs=0.01)


@pytest.mark.slow
def test_a_run_tells_the_error_of_its_step() -> None:
    of = recipe(2, "drawn", m=2, refits=8, blocks=2, records=24)
    found = execute_run(of, microdata(of, draw_binary_rows(120, 1)), key=PUBLIC)
    rows = {row.measure: row for row in found.rows if row.draw is None and row.method == "bayesian_posterior"}
    assert rows["step_error"].value is not None
    assert rows["step_error"].value < 0.05
    assert "of 8 records" in rows["step_error"].reason
    assert rows["posterior_risk"].value is not None
