"""The Dirichlet-multinomial synthesiser against its closed forms, and the Bayesian bootstrap against its moments."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.methods.run import Run
from sfumato.engine.synthesis import dirichlet_multinomial as model
from sfumato.engine.synthesis import marginal_bootstrap as bootstrap
from sfumato.engine.synthesis.dirichlet_multinomial import DirichletMultinomialSpec
from sfumato.engine.synthesis.marginal_bootstrap import MarginalBootstrapSpec

ROWS = ((0, 0, 0), (0, 0, 0), (0, 1, 2), (1, 1, 1), (1, 0, 0), (1, 0, 1), (1, 0, 2))
SIZES = {"g": 2, "a": 2, "b": 3}


def data_of(rows: tuple[tuple[int, ...], ...]) -> Microdata:
    schema = Schema(tuple(Variable(n, Kind.CATEGORICAL, levels=tuple(map(str, range(s)))) for n, s in SIZES.items()))
    columns = {
        n: pd.Categorical.from_codes([row[i] for row in rows], list(schema[n].levels)) for i, n in enumerate(SIZES)
    }
    return Microdata(schema, pd.DataFrame(columns))


def pairs_of_draws(spec: DirichletMultinomialSpec, times: int) -> np.ndarray:
    """The first two cells of each of many datasets, (times, 2)."""
    data = data_of(ROWS)
    targets = ("g", "a", "b")
    fit = model.dirichlet_multinomial(data, targets, spec, Run(np.random.default_rng(1)), 1)
    rng = np.random.default_rng(2)
    found = np.empty((times, 2), dtype=np.int64)
    for t in range(times):
        made = model.joint_draw(fit, spec, targets, data, data, 0, 2, rng)
        found[t] = sum(np.asarray(made[n]) * w for n, w in zip(targets, (6, 3, 1), strict=True))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("a", [0.2, 1.5])
def test_two_records_have_the_probabilities_of_the_model(a: float) -> None:
    found = pairs_of_draws(DirichletMultinomialSpec(concentration=a), 6000)
    counts = np.bincount([6 * g + 3 * x + y for g, x, y in ROWS], minlength=12) + a
    whole = counts.sum()
    joint = np.outer(counts, counts) + np.diag(counts)
    expected = joint / (whole * (whole + 1))
    seen = np.zeros((12, 12))
    np.add.at(seen, (found[:, 0], found[:, 1]), 1)
    one = np.bincount(found[:, 0], minlength=12)
    assert stats.chisquare(one, counts / whole * len(found)).pvalue > 1e-4
    same = int((found[:, 0] == found[:, 1]).sum())
    assert stats.binomtest(same, len(found), float(np.trace(expected))).pvalue > 1e-4
    independent = float(((counts / whole) ** 2).sum())
    assert stats.binomtest(same, len(found), independent).pvalue < 1e-3, "theta is drawn: records are alike more often"


@pytest.mark.slow
def test_given_a_kept_variable_each_group_has_its_own_probabilities() -> None:
    data, spec = data_of(ROWS), DirichletMultinomialSpec(concentration=0.5, predictors=("g",))
    fit = model.dirichlet_multinomial(data, ("a", "b"), spec, Run(np.random.default_rng(1)), 1)
    rng, counts = np.random.default_rng(4), np.zeros((2, 6))
    for _ in range(3000):
        made = model.joint_draw(fit, spec, ("a", "b"), data, data, 0, len(data), rng)
        cells = np.asarray(made["a"], dtype=np.int64) * 3 + np.asarray(made["b"], dtype=np.int64)
        counts[0, cells[0]] += 1
        counts[1, cells[3]] += 1
    for g in (0, 1):
        own = np.bincount([3 * x + y for of, x, y in ROWS if of == g], minlength=6) + 0.5
        assert stats.chisquare(counts[g], own / own.sum() * counts[g].sum()).pvalue > 1e-4
        other = np.bincount([3 * x + y for of, x, y in ROWS if of != g], minlength=6) + 0.5
        assert stats.chisquare(counts[g], other / other.sum() * counts[g].sum()).pvalue < 1e-6, "the negative control"


def test_cells_that_no_record_has_are_drawn_from_a_table_that_is_never_listed() -> None:
    space, rng = 10**15, np.random.default_rng(3)
    fit = model.Fit(
        {"groups": np.array([0]), "starts": np.array([0, 2]), "cells": np.array([5, 9]), "counts": np.array([3, 4])}
    )
    cells = model.draw_cells_by_group(fit, np.zeros(20_000, dtype=np.int64), 1e-14, space, rng)
    fresh = cells[~np.isin(cells, [5, 9])]
    assert len(fresh) > 100
    assert fresh.min() >= 0
    assert fresh.max() < space
    assert 1 < len(np.unique(fresh)) < len(fresh) / 5, "a mass of 10 on the rest: cells come again"


@pytest.mark.slow
def test_the_bootstrap_has_the_moments_of_rubins() -> None:
    rng = np.random.default_rng(8)
    schema = Schema((Variable("x", Kind.CONTINUOUS), Variable("y", Kind.CONTINUOUS)))
    x = rng.gamma(2.0, size=50)
    data = Microdata(schema, pd.DataFrame({"x": x, "y": x}))
    spec = MarginalBootstrapSpec()
    fit = bootstrap.marginal_bootstrap(data, ("x", "y"), spec, Run(rng), 1)
    means, together = [], []
    for _ in range(400):
        made = bootstrap.joint_draw(fit, spec, ("x", "y"), data, data, 0, 4000, rng)
        means.append(made["x"].mean())
        together.append(np.corrcoef(made["x"], made["y"])[0, 1])
        assert set(made["x"]) <= set(x)
    assert np.mean(means) == pytest.approx(x.mean(), abs=4 * np.std(means) / 20)
    assert np.var(means) == pytest.approx(x.var() / 51 + x.var() / 4000, rel=0.3)
    assert abs(np.mean(together)) < 0.01, "nothing of how they go together is left"


@pytest.mark.slow
def test_a_group_that_no_confidential_record_is_in_is_drawn_by_the_prior() -> None:
    """Where a predictor was made anew its values may meet as nobody's do: such a record is drawn like no other group's."""
    data = data_of(((0, 0, 0), (0, 0, 0), (1, 1, 2), (1, 1, 2)))
    spec = DirichletMultinomialSpec(concentration=1e-9, predictors=("g", "a"))
    fit = model.dirichlet_multinomial(data, ("b",), spec, Run(np.random.default_rng(1)), 1)
    released = data_of(((0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0)))
    rng = np.random.default_rng(2)
    seen = np.array([model.joint_draw(fit, spec, ("b",), data, released, 0, 4, rng)["b"] for _ in range(300)])
    assert set(seen[:, 0]) == {0}
    assert set(seen[:, 3]) == {2}
    for unseen in (1, 2):
        assert stats.chisquare(np.bincount(seen[:, unseen].astype(int), minlength=3)).pvalue > 1e-4
