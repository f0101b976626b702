"""Log-linear models compared with Poisson regressions of statsmodels: coefficients and their standard errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from statsmodels.formula.api import glm
from statsmodels.genmod.families import Poisson

from sfumato.engine.margins.log_linear import LogLinearModel, Order

FORMULAS = {1: "n ~ a + b + c", 2: "n ~ (a + b + c) ** 2"}


def counts(*, whole: bool) -> np.ndarray:
    """Return a table without empty cells; of weighted records its cells are not whole."""
    rng = np.random.default_rng(21)
    table = rng.poisson(9.0, (3, 2, 4)).astype(float) + 1
    return table if whole else table * rng.uniform(0.5, 2, table.shape)


def poisson_regression(table: np.ndarray, order: Order) -> object:
    cells = pd.DataFrame(np.indices(table.shape).reshape(3, -1).T, columns=list("abc")).astype("category")
    return glm(FORMULAS[order], cells.assign(n=table.ravel()), family=Poisson()).fit(tol=1e-14)


def coefficients_and_errors(table: np.ndarray, order: Order, design: np.ndarray) -> np.ndarray:
    """Return (K, 2): a coefficient is a contrast of the log means, whose variance by the delta method ``project`` gives."""
    model = LogLinearModel.from_table(table, order)
    contrasts = np.linalg.pinv(design)
    values = contrasts @ np.log(model.fitted_means.ravel())
    slopes = [model.project(contrast.reshape(table.shape) / model.fitted_means) for contrast in contrasts]
    return np.column_stack([values, [np.sqrt(np.sum(model.fitted_means * slope**2)) for slope in slopes]])


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("order", [1, 2])
def test_coefficients_and_errors_are_those_of_statsmodels(order: Order, whole: bool) -> None:
    table = counts(whole=whole)
    theirs = poisson_regression(table, order)
    expected = np.column_stack([theirs.params, theirs.bse])  # type: ignore[attr-defined]
    found = coefficients_and_errors(table, order, theirs.model.exog)  # type: ignore[attr-defined]
    assert found[:, 0] == pytest.approx(expected[:, 0], rel=1e-6, abs=1e-8)
    assert found[:, 1] == pytest.approx(expected[:, 1], rel=1e-8)


def test_a_model_without_interactions_has_other_coefficients() -> None:
    """The control: the test above tells models apart."""
    table = counts(whole=True)
    theirs = poisson_regression(table, 2)
    found = coefficients_and_errors(table, 1, theirs.model.exog)  # type: ignore[attr-defined]
    assert found[:, 0] != pytest.approx(theirs.params.to_numpy(), rel=1e-2)  # type: ignore[attr-defined]
