"""A small table with every kind of variable, and a release of it, for any method to work on."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.errors import NotInstalled
from sfumato.engine.microdata import Microdata, conform
from sfumato.engine.schema import Kind, Role, Schema, Variable


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """A method whose extra is not installed is tried where it is."""
    try:
        return (yield)
    except NotInstalled as missing:
        pytest.skip(str(missing))


RECORDS = 120
SYNTHESISED = ("days", "income")

SCHEMA = Schema(
    (
        Variable("region", Kind.CATEGORICAL, Role.KNOWN, levels=("north", "south", "west")),
        Variable("sex", Kind.BINARY, Role.KNOWN),
        Variable("size", Kind.ORDINAL, Role.KNOWN, levels=("small", "medium", "large")),
        Variable("visits", Kind.COUNT, Role.KNOWN),
        Variable("days", Kind.COUNT, Role.SENSITIVE, bounds=(0, 30)),
        Variable("income", Kind.CONTINUOUS, Role.SENSITIVE, bounds=(0, None)),
        Variable("illness", Kind.BINARY, Role.SENSITIVE),
        Variable("joined", Kind.DATE),
        Variable("number", Kind.COUNT, Role.IDENTIFIER),
    )
)


def _raw() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    region = rng.choice(["north", "south", "west"], RECORDS, p=[0.5, 0.3, 0.2])
    visits = rng.poisson(3, RECORDS)
    days = np.where(rng.random(RECORDS) < 0.3, 0, np.minimum(rng.poisson(np.exp(1 + 0.2 * visits)), 30))
    return pd.DataFrame(
        {
            "region": region,
            "sex": rng.choice(["0", "1"], RECORDS),
            "size": rng.choice(["small", "medium", "large"], RECORDS),
            "visits": visits,
            "days": days,
            "income": np.round(np.exp(4 + 0.3 * (region == "north") + 0.02 * days + 0.4 * rng.normal(size=RECORDS)), 2),
            "illness": rng.choice(["0", "1"], RECORDS, p=[0.8, 0.2]),
            "joined": pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 700, RECORDS), unit="D"),
            "number": np.arange(RECORDS),
        }
    )


@pytest.fixture
def confidential() -> Microdata:
    return conform(_raw(), SCHEMA)


@pytest.fixture
def releases(confidential: Microdata) -> list[Microdata]:
    """Two releases that replace the synthesised variables by values near the confidential ones."""
    rng = np.random.default_rng(12)
    found = []
    for _ in range(2):
        days = np.clip(confidential.column("days") + rng.integers(-2, 3, RECORDS), 0, 30)
        income = confidential.column("income") * np.exp(0.1 * rng.normal(size=RECORDS))
        found.append(confidential.with_columns({"days": days, "income": income}, "synthetic"))
    return found
