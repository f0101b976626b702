"""Maxima of a multinomial logit with one record changed, against fits anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.engine.statistics.multinomial_logit import fit_multinomial_logit, logit_log_probabilities
from sfumato.engine.synthesis._changed_multinomial import (
    MultinomialChange,
    changed_coefficients,
    class_column_sums,
    log_denominators,
)

CLASSES = np.arange(5)
ONES = np.ones(300)


def records(n: int = 300, seed: int = 3) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Three columns, the last an indicator that separates a class: one record of it alone has it."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.normal(size=n), rng.integers(0, 2, n)])
    y = (rng.random(n) * 5 * (0.7 + 0.3 * (x[:, 1] > 0))).astype(np.int64)
    x[y == 4, 2] = 0.0
    x[np.flatnonzero(y == 4)[0], 2] = 1.0
    return x, y


def maximised(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """The log-likelihood with the penalty 0.1, which the intercept has not."""
    likelihood = logit_log_probabilities(x, b)[np.arange(len(y)), y].sum()
    return float(likelihood - 0.05 * (b[:, 1:] ** 2).sum())


def changes(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> list[MultinomialChange]:
    alone = int(np.flatnonzero(y == 4)[0])
    to = [(0, x[0], 3), (1, x[1] + [0, 2.0, 0], int(y[1])), (2, x[7], 4), (alone, x[alone], 0), (5, x[5], int(y[5]))]
    return [MultinomialChange(row, np.asarray(own), place) for row, own, place in to]


def test_each_change_ends_near_the_maximum_of_a_fit_anew_whatever_others_are_asked_with_it() -> None:
    x, y = records()
    model = fit_multinomial_logit(x, y, CLASSES, 0.1)
    asked = changes(x, y)
    found = list(changed_coefficients(model, x, y, ONES, asked))
    for change, b in zip(asked, found, strict=True):
        rows, classes = x.copy(), y.copy()
        rows[change.row], classes[change.row] = change.x, change.place
        most = maximised(rows, classes, fit_multinomial_logit(rows, classes, CLASSES, 0.1).coefficients)
        left = most - maximised(rows, classes, b)
        assert -1e-9 < left < 0.005
        if change.row != 5:  # the fit itself would not do
            assert most - maximised(rows, classes, model.coefficients) > 5 * max(left, 1e-4)
        (by_itself,) = changed_coefficients(model, x, y, ONES, [change])
        assert by_itself == pytest.approx(b, abs=1e-10)
    assert np.array_equal(found[4], model.coefficients)  # what changes nothing moves nothing


def test_records_that_are_asked_about_stay_as_they_were() -> None:
    x, y = records()
    before = x.copy(), y.copy()
    list(changed_coefficients(fit_multinomial_logit(x, y, CLASSES, 0.1), x, y, ONES, changes(x, y)))
    assert np.array_equal(x, before[0])
    assert np.array_equal(y, before[1])


def test_sums_give_the_log_likelihood_of_the_records() -> None:
    x, y = records()
    b = np.random.default_rng(1).normal(size=(5, 3)) * 300  # exponentials of such scores overflow
    direct = logit_log_probabilities(x, b)[np.arange(len(y)), y].sum()
    assert (class_column_sums(x, y, 5) * b).sum() - log_denominators(x, b).sum() == pytest.approx(direct)
