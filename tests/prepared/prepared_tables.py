"""Schemas and small confidential tables that several test modules use."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.gower import GowerDistance

HOUSEHOLD_PLAN: dict[str, Any] = {
    "title": "Household survey",
    "variables": {
        "region": {"kind": "categorical", "role": "quasi_identifier"},
        "visits": {"kind": "count", "role": "quasi_identifier"},
        "income": {"kind": "continuous", "role": "sensitive", "bounds": [0, 100_000]},
    },
    "release": {"m": 3, "seed": 7},
    "synthesis": [
        {"target": "income", "method": "linear_regression", "transform": "log", "predictors": ["region", "visits"]}
    ],
    "measure": [
        {"method": "utility.ecdf"},
        {"method": "utility.summary"},
        {"method": "risk.identification", "radius": {"income": "5%"}},
    ],
    "study": [
        {
            "method": "studies.intruder_uncertainty",
            "variable": "visits",
            "model": "log_normal",
            "levels": [0.0, 0.1, 0.2],
        }
    ],
    "threshold": [
        {"value": "risk.identification.true_match_rate", "max": 0.9},
        {"value": "risk.identification.expected_match_risk", "max_ratio": 1e-9},
        {"value": "utility.ecdf.max_abs_difference", "target": "visits", "max": 0.5},
    ],
}
"""A recipe for ``household_survey`` with two thresholds that are met and one that is not, and a study."""

SMALL_RECIPE: dict[str, Any] = {
    "title": "Small study",
    "variables": {
        "region": {"kind": "categorical", "role": "quasi_identifier", "levels": ["north", "south", "west"]},
        "age": {"kind": "count", "role": "quasi_identifier"},
        "visits": {"kind": "count", "role": "sensitive", "bounds": [0, 60]},
        "income": {"kind": "continuous", "role": "sensitive"},
    },
    # 80 people keep their quasi-identifiers: nobody but an enclave may have that, and tests of files and documents are not about it
    "release": {"m": 3, "seed": 7, "audience": "enclave"},
    "synthesis": [
        {"target": "visits", "method": "linear_regression", "predictors": ["region", "age"]},
        {"target": "income", "method": "linear_regression", "predictors": ["region", "age", "visits"]},
    ],
    "measure": [
        {"method": "utility.ecdf"},
        {"method": "risk.identification", "radius": {"income": "5%", "visits": 2}},
    ],
    "threshold": [{"value": "risk.identification.true_match_rate", "max": 0.5}],
}
"""A recipe for ``small_records`` with two regressions, two measures and a threshold that is met."""


def schema_of(*variables: str | Variable) -> Schema:
    """Return the schema of variables that are written as ``name: kind role``, or as a Variable where they have more."""
    return Schema(tuple(_written_variable(one) if isinstance(one, str) else one for one in variables))


def _written_variable(text: str) -> Variable:
    name, description = text.split(": ")
    kind, *roles = description.split()
    return Variable(name, Kind(kind), *map(Role, roles))


def variables_of(*variables: str) -> dict[str, dict[str, str]]:
    """Return the variables of a recipe's table, each written as ``name: kind role`` or ``name: kind``."""
    described = (one.split(": ") for one in variables)
    return {name: dict(zip(("kind", "role"), text.split(), strict=False)) for name, text in described}


def household_survey(regions: tuple[str, str] = ("north", "south")) -> pd.DataFrame:
    """Return 90 households of two regions: visits to a doctor, and an income that grows a little with them."""
    rng = np.random.default_rng(20)
    visits = rng.poisson(4, 90)
    income = np.exp(rng.normal(7 + 0.05 * visits, 0.4, 90))
    return pd.DataFrame({"region": rng.choice(regions, 90), "visits": visits, "income": income})


MIXED_DISTANCE = GowerDistance(
    ("a", "b", "c"), 50, {"a": {"x": 0, "y": 1}}, {"b": np.arange(50.0), "c": np.arange(50.0)}
)
"""Distance of records with a variable of two levels and two of 50 ranks each."""


def mixed_places(n: int, seed: int) -> np.ndarray:
    """Draw n records as the mixed distance reads them, with ties and missing values, (n, 3)."""
    rng = np.random.default_rng(seed)
    drawn = np.column_stack([rng.integers(-2, 2, n), rng.integers(0, 101, n), rng.integers(0, 21, n) * 5]).astype(float)
    drawn[rng.random(n) < 0.1, 1] = -1
    return drawn


@functools.cache
def small_records() -> Microdata:
    """Return 80 simulated records that suit ``SMALL_RECIPE``, made once: who changes them takes a copy."""
    rng = np.random.default_rng(20)
    age = rng.integers(18, 90, 80)
    frame = pd.DataFrame(
        {
            "region": rng.choice(["north", "south", "west"], 80),
            "age": age,
            "visits": rng.poisson(3 + age / 20),
            "income": np.exp(rng.normal(7, 0.4, 80)),
        }
    )
    return conform_to_schema(frame, Recipe.from_table(SMALL_RECIPE).schema)
