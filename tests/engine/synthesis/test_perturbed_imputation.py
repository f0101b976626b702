"""Perturbed multiple imputation: its privacy whatever the models say, its draws, and the models against another solver's."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.design.categories import categories_of_variable
from sfumato.engine.design.seed_pools import SeedPool
from sfumato.engine.methods.run import Run
from sfumato.engine.synthesis import perturbed_imputation as pmi
from sfumato.engine.synthesis.perturbed_imputation import PerturbedImputationSpec

SIZES = {"a": 2, "b": 3, "c": 2}
NAMES = tuple(SIZES)


def data_of(rows: Any) -> Microdata:
    schema = Schema(tuple(Variable(n, Kind.CATEGORICAL, levels=tuple(map(str, range(s)))) for n, s in SIZES.items()))
    table = np.asarray(rows)
    columns = {n: pd.Categorical.from_codes(table[:, i], list(schema[n].levels)) for i, n in enumerate(NAMES)}
    return Microdata(schema, pd.DataFrame(columns))


def dependent(records: int, seed: int) -> Microdata:
    rng = np.random.default_rng(seed)
    b = rng.integers(3, size=records)
    a = (rng.random(records) < np.array([0.1, 0.5, 0.9])[b]).astype(int)
    c = np.where(rng.random(records) < 0.8, a, 1 - a)
    return data_of(np.column_stack([a, b, c]))


def distribution(data: Microdata, spec: PerturbedImputationSpec) -> np.ndarray:
    """Log probability of every record from every seed, (12, 12), from the models' probabilities."""
    fit = pmi.perturbed_imputation(data, NAMES, spec, Run(np.random.default_rng(1)), 1)
    categories = {n: categories_of_variable(data, n, None) for n in NAMES}
    cells = list(itertools.product(*(range(s) for s in SIZES.values())))
    pairs = list(itertools.product(cells, cells))
    state = {n: np.array([seed[i] for seed, _ in pairs]) for i, n in enumerate(NAMES)}
    found = np.zeros(len(pairs))
    for i, n in enumerate(NAMES):
        own = np.array([drawn[i] for _, drawn in pairs])
        share = pmi.uniform_share(spec.epsilon, len(NAMES), SIZES[n])
        chance = (1 - share) * pmi.category_probabilities(fit.arrays, n, state, categories) + share / SIZES[n]
        found += np.log(chance[np.arange(len(pairs)), own])
        state[n] = own
    return found.reshape(12, 12)


TABLES: Mapping[str, Any] = {
    "one": [(0, 0, 0)] * 30,
    "other": [(1, 2, 1)] * 30,
    "mixed": [(0, 1, 0)] * 15 + [(1, 0, 1)] * 15,
    "crossed": [(0, 1, 1)] * 15 + [(1, 2, 0)] * 15,
}


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 8.0])
def test_no_two_tables_are_told_apart_by_more_than_epsilon(epsilon: float) -> None:
    spec = PerturbedImputationSpec(epsilon=epsilon, strengths=1, folds=2)
    found = [distribution(data_of(rows), spec) for rows in TABLES.values()]
    worst = max(float(np.abs(a - b).max()) for a, b in itertools.combinations(found, 2))
    assert worst <= epsilon + 1e-9
    assert worst > 0.5 * epsilon, "a bound that is nowhere near would show nothing"


def test_with_less_noise_tables_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    true = pmi.virtual_records
    monkeypatch.setattr(pmi, "virtual_records", lambda *given: true(*given) / 4)
    spec = PerturbedImputationSpec(epsilon=2.0, strengths=1, folds=2)
    found = [distribution(data_of(rows), spec) for rows in TABLES.values()]
    assert max(float(np.abs(a - b).max()) for a, b in itertools.combinations(found, 2)) > 2.0


def test_the_models_are_those_of_another_solver_and_what_is_drawn_is_theirs() -> None:
    data = dependent(900, 3)
    spec = PerturbedImputationSpec(epsilon=4.0, strengths=1, folds=2, mixing=0.0)
    fit = pmi.perturbed_imputation(data, NAMES, spec, Run(np.random.default_rng(1)), 1)
    codes = np.column_stack([data.numbers(n) for n in NAMES]).astype(int)
    design = np.hstack([np.eye(2)[codes[:, 0]], np.eye(2)[codes[:, 2]]])
    model = LogisticRegression(solver="lbfgs", C=pmi.STRONGEST, tol=1e-9, max_iter=5000).fit(design, codes[:, 1])
    categories = {n: categories_of_variable(data, n, None) for n in NAMES}
    own = pmi.category_probabilities(fit.arrays, "b", {n: codes[:, i] for i, n in enumerate(NAMES)}, categories)
    assert np.abs(own - model.predict_proba(design)).max() < 0.01
    chance = np.exp(distribution(data, spec)).mean(axis=0)
    made = pmi.joint_draw(fit, spec, NAMES, data, data, 0, 40_000, np.random.default_rng(6))
    cells = sum(np.asarray(made[n], dtype=np.int64) * w for n, w in zip(NAMES, (6, 2, 1), strict=True))
    counts = np.bincount(cells, minlength=12)
    assert stats.chisquare(counts, chance * len(cells)).pvalue > 1e-4
    assert stats.chisquare(np.roll(counts, 1), chance * len(cells)).pvalue < 1e-9, "the negative control"


@pytest.mark.slow
def test_without_epsilon_it_is_multiple_imputation() -> None:
    data = dependent(3000, 4)
    spec = PerturbedImputationSpec(strengths=4, folds=3, seeds=SeedPool(kind="confidential"))
    fit = pmi.perturbed_imputation(data, NAMES, spec, Run(np.random.default_rng(1)), 1)
    made = pmi.joint_draw(fit, spec, NAMES, data, data, 0, 20_000, np.random.default_rng(6))
    for level in range(3):
        share = data.numbers("a")[data.numbers("b") == level].mean()
        assert np.asarray(made["a"])[np.asarray(made["b"]) == level].mean() == pytest.approx(share, abs=0.06)
    reason = pmi.account(data, NAMES, spec, 100, 1).estimates()[0].reason
    assert "no epsilon" in reason
