"""Regressions of counts and levels with ``unit_effect``: members are as alike as in the data, and margins stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest, multivariate_normal, norm, poisson

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.posterior.poisson_lognormal import PredictedRates, chances_of_counts, draw_counts, draw_counts_at
from sfumato.engine.recipe.recipe import Recipe

SHARE = 0.5
LEVELS = ("none", "some", "much", "all")
VARIABLES: dict[str, Any] = {
    "home": {"kind": "count", "role": "unit"},
    "x": {"kind": "continuous"},
    "smokes": {"kind": "binary", "levels": ["no", "yes"]},
    "drinks": {"kind": "binary", "levels": ["no", "yes"]},
    "health": {"kind": "ordinal", "levels": list(LEVELS)},
    "region": {"kind": "categorical", "levels": ["north", "south"]},
    "visits": {"kind": "count", "bounds": [0, 60]},
}
BINARY = {"target": ["smokes", "drinks"], "method": "sequential_logistic", "predictors": ["x"]}
ORDINAL = {"target": "health", "method": "multinomial_logistic", "predictors": ["x"]}
YES_NO = {"target": "smokes", "method": "multinomial_logistic", "predictors": ["x"]}
COUNT = {"target": "visits", "method": "zero_inflated_truncated_poisson", "predictors": ["x"]}
STEPS = [BINARY, ORDINAL, YES_NO, COUNT]
NAMES = ["sequential", "ordinal", "multinomial", "counts"]


def chances_by_quadrature(eta: np.ndarray, zero: float, tau: float) -> np.ndarray:
    """The probability of a count up to 0, 1, ..., 60 of each log rate (n,): Gauss-Hermite over the record's effect."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(15)
    rate = np.exp(eta[:, None, None] + tau * nodes)
    upto = poisson.cdf(np.arange(61)[:, None], rate) / poisson.cdf(60, rate)
    return zero + (1 - zero) * (upto @ (weights / weights.sum()))


def homes(seed: int, units: int = 1200, share: float = SHARE, smallest: int = 1) -> pd.DataFrame:
    """Records with counts and levels at places that a home shares: Phi of normal numbers, each of its own variable."""
    rng = np.random.default_rng(seed)
    home = np.repeat(np.arange(units), rng.integers(smallest, 5, units) if smallest else np.ones(units, int))
    n = len(home)

    def places() -> Any:
        return norm.cdf(np.sqrt(share) * rng.normal(size=units)[home] + np.sqrt(1 - share) * rng.normal(size=n))

    table = pd.DataFrame({"home": home, "x": rng.normal(size=n)})
    x = table["x"].to_numpy()
    table["smokes"] = np.where(places() > 1 / (1 + np.exp(-0.8 - 0.8 * x)), "yes", "no")
    table["drinks"] = np.where(places() > 1 / (1 + np.exp(1.5 - 0.5 * x)), "yes", "no")
    weights = np.exp(np.outer(x, [0, 0.4, 0.8, 1.2]) + [0, 0.5, 0.2, -0.5])
    chance = (weights / weights.sum(axis=1, keepdims=True)).cumsum(axis=1)
    table["health"] = np.array(LEVELS)[np.minimum((places()[:, None] > chance).sum(axis=1), 3)]
    table["region"] = rng.choice(["north", "south"], n)
    upto = chances_by_quadrature(1.0 + 0.4 * x, 0.25, 0.5)
    table["visits"] = (places()[:, None] > upto).sum(axis=1)
    return table


def drawn(step: dict[str, Any], table: pd.DataFrame, **settings: Any) -> tuple[pd.DataFrame, Fit]:
    recipe = Recipe.from_table(
        {
            "variables": VARIABLES,
            "data": {"missing": "keep"},
            "release": {"m": 1, "seed": 1, "units": "kept"},
            "synthesis": [{**step, **settings}],
        }
    )
    data = conform_to_schema(table, recipe.schema, MissingPolicy.KEEP)
    fits = [fit_model(recipe, 0, data, key=PUBLIC)]
    return draw_dataset(recipe, 1, data, fits, key=PUBLIC).frame, fits[0]


def numbers(table: pd.DataFrame, name: str) -> np.ndarray:
    if name == "visits":
        return np.log1p(table[name].to_numpy(dtype=float))
    levels = list(LEVELS) if name == "health" else ["no", "yes"]
    return np.array([np.nan if pd.isna(one) else levels.index(one) for one in table[name]])


def likeness(table: pd.DataFrame, name: str) -> float:
    """The correlation of residuals of least squares over all pairs of records of a home."""
    y = numbers(table, name)
    x = np.column_stack([np.ones(len(table)), table["x"], table["x"] ** 2]).astype(float)
    residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    own = pd.DataFrame({"home": table["home"].to_numpy(), "r": residual}).reset_index()
    pairs = own.merge(own, on="home")
    pairs = pairs[pairs["index_x"] != pairs["index_y"]]
    return float(np.corrcoef(pairs["r_x"], pairs["r_y"])[0, 1])


def shares(fit: Fit) -> list[float]:
    return [float(fit.arrays[name][0]) for name in fit.arrays if name.endswith("unit_share")]


def targets(step: dict[str, Any]) -> list[str]:
    return step["target"] if isinstance(step["target"], list) else [step["target"]]


@pytest.mark.parametrize("step", STEPS, ids=NAMES)
def test_members_are_as_alike_as_they_are_and_without_it_they_are_not(step: dict[str, Any]) -> None:
    table = homes(1)
    found, fit = drawn(step, table, unit_effect=True)
    without, _ = drawn(step, table)
    for name in targets(step):
        print(name, shares(fit), likeness(table, name), likeness(found, name), likeness(without, name))
