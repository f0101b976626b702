"""The propensity score of classification trees beside that of rpart, which synthpop uses, on releases of five kinds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from public_data import PUBLIC_DATA

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.methods.run import Run
from sfumato.engine.utility.propensity import PropensitySpec, propensity


def read(file: str, columns: list[str]) -> pd.DataFrame:
    if not (PUBLIC_DATA / file).exists():
        pytest.skip("public data are not here")
    return pd.read_csv(PUBLIC_DATA / file, skipinitialspace=True)[columns].head(5000)


def listings() -> pd.DataFrame:
    names = ["neighbourhood_group", "room_type", "number_of_reviews", "availability_365", "price"]
    return read("AB_NYC_2019.csv", names)


def people() -> pd.DataFrame:
    return read("adult.csv", ["workclass", "marital_status", "occupation", "age", "hours_per_week"])


def mixed(value: np.ndarray, steps: int) -> np.ndarray:
    """Whole numbers that look random and are the same in every program: value (n,) through a linear congruence, below ``steps``."""
    state = np.asarray(value, dtype=np.int64)
    for _ in range(3):
        state = (state * 1_103_515_245 + 12_345) % 2**31
    return (state >> 8) % steps


def numbers(data: pd.DataFrame) -> list[str]:
    return [name for name in data if pd.api.types.is_numeric_dtype(data[name])]


def resampled(data: pd.DataFrame) -> pd.DataFrame:
    """Whole records, drawn with replacement."""
    return data.iloc[mixed(np.arange(len(data)), len(data))].reset_index(drop=True)


def independent(data: pd.DataFrame) -> pd.DataFrame:
    """Every column drawn from its own values: what a tool of margins does."""
    rows = np.arange(len(data))
    return pd.DataFrame(
        {name: data[name].to_numpy()[mixed(rows + 7919 * k, len(data))] for k, name in enumerate(data, start=1)}
    )


def noisy(data: pd.DataFrame) -> pd.DataFrame:
    """Up to a fifth more or less on every number."""
    share = (mixed(np.arange(len(data)), 401) - 200) / 1000
    return data.assign(**{name: np.rint(data[name] * (1 + share)).astype(int) for name in numbers(data)})


def by_donors(data: pd.DataFrame) -> pd.DataFrame:
    """The last two numbers from donors of the same level of the second column: what a shallow tree does."""
    rows = np.arange(len(data))
    group = data[data.columns[1]].to_numpy()
    donor = np.empty(len(data), dtype=np.int64)
    for level in np.unique(group):
        inside = np.flatnonzero(group == level)
        donor[inside] = inside[mixed(rows[: len(inside)], len(inside))]
    return data.assign(**{name: data[name].to_numpy()[donor] for name in numbers(data)[-2:]})


def by_line(data: pd.DataFrame) -> pd.DataFrame:
    """The last number by its regression line on the one before, with noise: what a linear model does."""
    before, last = (data[name].to_numpy(float) for name in numbers(data)[-2:])
    slope = np.cov(before, last)[0, 1] / before.var(ddof=1)
    line = last.mean() + slope * (before - before.mean())
    noise = sum(mixed(np.arange(len(data)) + 104_729 * k, 1001) - 500 for k in range(1, 5)) / 577.4
    return data.assign(**{numbers(data)[-1]: np.rint(line + noise * (last - line).std()).astype(int)})


RELEASES = {make.__name__: make for make in (resampled, independent, noisy, by_donors, by_line)}

# library(rpart); t <- factor(rep(0:1, each = 5000)); d <- rbind(confidential, release), levels as factors;
# p <- predict(rpart(t ~ ., d, method = "class", control = rpart.control(minbucket = 5, cp = 1e-3)))[, 2]; mean((p - 0.5)^2)
OF_RPART = {
    ("listings", "resampled"): 0.0073795987874909312,
    ("listings", "independent"): 0.046724851495370104,
    ("listings", "noisy"): 0.081854788627551439,
    ("listings", "by_donors"): 0.029331108836763563,
    ("listings", "by_line"): 0.13302844088669274,
    ("people", "resampled"): 0.0041744857343109926,
    ("people", "independent"): 0.063468658933954133,
    ("people", "noisy"): 0.12975293536236837,
    ("people", "by_donors"): 0.014866114480200122,
    ("people", "by_line"): 0.13740210419370746,
}


def tree_pmse_of(confidential: pd.DataFrame, released: pd.DataFrame) -> float:
    """With the settings of synthpop."""
    kinds = {name: Kind.CONTINUOUS if name in numbers(confidential) else Kind.CATEGORICAL for name in confidential}
    schema = Schema(tuple(Variable(name, kind) for name, kind in kinds.items()))
    tables = conform_to_schema(confidential, schema), conform_to_schema(released, schema, origin="synthetic")
    spec = PropensitySpec(model="cart", minbucket=5, cp=1e-3, permutations=2)
    value = propensity(*tables, spec, Run(np.random.default_rng(1))).estimates[0].value
    assert value is not None
    return value


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("table", [listings, people])
def test_tree_propensity_on_releases_of_other_tools_is_that_of_rpart(
    table: Callable[[], pd.DataFrame], release: str
) -> None:
    """At synthpop's cp of 1e-3 no tree is a root alone, which would say that a classifier cannot tell the tables apart."""
    confidential = table()
    found = tree_pmse_of(confidential, RELEASES[release](confidential))
    assert found == pytest.approx(OF_RPART[table.__name__, release], rel=1e-9)
    assert found > 0.004


@pytest.mark.parametrize("table", [listings, people])
def test_negative_control_the_table_itself_is_not_told_apart(table: Callable[[], pd.DataFrame]) -> None:
    assert tree_pmse_of(table(), table()) == 0.0
