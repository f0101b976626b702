"""Tables at the edge, for every registered method: a finite number or an explanation, never another error or a warning."""

from __future__ import annotations

import functools
import importlib.util
import math
import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from own_methods import METHODS
from prepared_tables import schema_of

from sfumato.engine.contract.examples import SETTINGS, example_recipe
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Variable
from sfumato.engine.errors import BadInput, NotConverged
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.registry import Method, registry
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe

pytestmark = pytest.mark.slow

N = 60
SCHEMA = schema_of(
    "region: categorical quasi_identifier",
    "sex: binary quasi_identifier",
    Variable("size", Kind.ORDINAL, Role.QUASI_IDENTIFIER, levels=("small", "medium", "large")),
    "visits: count quasi_identifier",
    Variable("days", Kind.COUNT, Role.SENSITIVE, bounds=(0, None)),
    "income: continuous sensitive",
    "illness: binary sensitive",
    "joined: date",
)


def plain(n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(21)
    visits = rng.poisson(3, n)
    return pd.DataFrame(
        {
            "region": np.resize(["north", "south", "west"], n),
            "sex": rng.choice(["0", "1"], n),
            "size": rng.choice(["small", "medium", "large"], n),
            "visits": visits,
            "days": rng.poisson(2 + visits),
            "income": np.exp(4 + 0.3 * rng.normal(size=n)),
            "illness": rng.choice(["0", "1"], n),
            "joined": pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D"),
        }
    )


def with_columns(**columns: Any) -> Callable[[], pd.DataFrame]:
    return lambda: plain().assign(
        **{name: value(plain()) if callable(value) else value for name, value in columns.items()}
    )


def one_present(name: str) -> Callable[[], pd.DataFrame]:
    return with_columns(**{name: lambda frame: frame[name].astype("object").where(np.arange(N) == 7, None)})


def heavy(frame: pd.DataFrame) -> Any:
    return np.abs(np.random.default_rng(2).standard_cauchy(N)) * 1e3


def nearly_collinear(frame: pd.DataFrame) -> Any:
    """Net beside gross pay in cents: 0.7 of it but for a few cents."""
    return np.round(0.7 * frame["visits"] * 1e9 + np.random.default_rng(3).normal(size=N))


EDGES: dict[str, Callable[[], pd.DataFrame]] = {
    "one record": functools.partial(plain, 1),
    "two records": functools.partial(plain, 2),
    "three records": functools.partial(plain, 3),
    "constants": with_columns(region="north", sex="1", size="small", visits=2, days=3, income=5.0, illness="0",
                              join_sign=pd.Timestamp("2020-01-01")),
    "constant targets": with_columns(days=0, income=1.5, illness="1"),
    "perfect separation": with_columns(illness=lambda f: np.where(f["visits"] > 3, "1", "0"), income=lambda f: f["visits"] * 100.0 + 1),
    "gross and net pay in cents": with_columns(visits=lambda f: f["visits"] * 1_000_000_000 + 7, income=nearly_collinear),
    "heavy tails": with_columns(income=heavy),
    "values of 1e160": with_columns(income=lambda f: f["income"] * 1e160),
    "values of 1e-200": with_columns(income=lambda f: f["income"] * 1e-200),
    "only one income present": one_present("income"),
    "only one region present": one_present("region"),
    "one level": with_columns(region="north", sex="1"),
    "fifty levels": with_columns(region=lambda f: [f"place {i % 50}" for i in range(N)]),
    "huge counts": with_columns(visits=lambda f: f["visits"] * 10**14, days=lambda f: f["days"] * 10**13),
    "dates far away": with_columns(join_sign=lambda f: np.where(f.index % 2 == 0, "0001-01-01", "9999-12-31")),
    "zeros but for one": with_columns(days=lambda f: np.where(f.index == 3, 4, 0)),
}  # fmt: skip

ROOM = 3 * 2**30


@pytest.fixture(autouse=True)
def limited_memory() -> Iterator[None]:
    """A table of sixty records needs no gigabytes: asking for them is a MemoryError, not the end of the machine."""
    pages = Path("/proc/self/statm")
    own = int(pages.read_text().split()[0]) * resource.getpagesize() if pages.exists() else 0
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (own + ROOM, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


SLOW = ("synthesis.ctgan", "studies.calibration", "studies.minimisation", "synthesis.zero_inflated_truncated_poisson")


DEAR = (
    "risk.attribute_inference",
    "risk.linkability",
    "risk.record_audit",
    "risk.singling_out",
    "studies.risk_utility",
)
"""Methods that make many releases or guess at every variable: of the edges that are like others, among the studies."""
LIKE_OTHERS = {
    "two records": "three records",
    "constant targets": "constants",
    "one level": "constants",
    "gross and net pay in cents": "perfect separation",
    "values of 1e160": "huge counts",
    "values of 1e-200": "heavy tails",
    "dates far away": "huge counts",
    "only one region present": "only one income present",
    "zeros but for one": "constants",
}


def tables(edge: str) -> tuple[Microdata, list[Microdata]]:
    """Copies of the table and of two releases, for one method alone."""
    data, releases = made_tables(edge)
    return own_copy(data), [own_copy(release) for release in releases]


def own_copy(data: Microdata) -> Microdata:
    """The same table in a frame of its own."""
    return replace(data, frame=data.frame.copy(deep=True))


@functools.cache
def made_tables(edge: str) -> tuple[Microdata, list[Microdata]]:
    """The table, and two releases: its synthesised values dealt to other records, and its incomes changed by a trifle."""
    data = conform_to_schema(EDGES[edge](), SCHEMA, MissingPolicy.KEEP)
    dealt = data.frame[["days", "income"]].sample(frac=1, random_state=1).reset_index(drop=True)
    trifle = data.frame["income"] * (1 + 4e-10 * np.random.default_rng(5).normal(size=len(data)))
    releases = [
        data.with_columns({"days": dealt["days"], "income": dealt["income"]}, "synthetic"),
        data.with_columns({"income": trifle}, "synthetic"),
    ]
    return data, releases


def recipe_for(method: Method, edge: str) -> Recipe:
    """The contract's recipe, whose trees of regions suit the tables that have these regions."""
    recipe = example_recipe(method, SCHEMA)
    if "hierarchies" not in SETTINGS.get(method.key, {}):
        return recipe
    table = recipe.to_table()
    step = table[method.family][0]
    step.pop("hierarchies")
    if edge != "fifty levels":
        return recipe
    return Recipe.from_table(table)


def assert_explained(method: Method, rows: list[Row]) -> None:
    for row in rows:
        if row.value is None:
            assert row.reason, row
        for number in (row.value, row.lower, row.upper, row.baseline):
            assert number is None or math.isfinite(number), row
        assert row.reason != "the result is not a finite number", row


def tried(method: Method, edge: str) -> str:
    """What a run comes to: ``computed``, or the explanation of why not."""
    data, releases = tables(edge)
    recipe = recipe_for(method, edge)
    made = bool(recipe.synthesis or recipe.anonymisation)
    data = data.with_controls(data) if method.measurement.controls else data
    try:
        check_steps(recipe, data)
        outcome = execute_run(recipe, data, [] if made else releases, key=PUBLIC)
    except (BadInput, NotConverged) as error:
        return str(error)
    assert_explained(method, list(outcome.rows))
    for released in outcome.releases if made else ():
        for name in set(released.schema.names) - released.generalised:
            kept = released.frame[name]
            assert kept.isna().sum() == 0 or data.frame[name].isna().any() or released.schema[name].may_be_missing, name
            if not released.schema[name].kind.has_levels and released.schema[name].kind is not Kind.DATE:
                assert np.isfinite(kept.dropna().to_numpy(dtype=float)).all(), name
    return "computed"


def params() -> list[Any]:
    found = []
    for param in METHODS:
        if param.id == "synthesis.ctgan" and importlib.util.find_spec("ctgan") is None:
            continue
        for edge in EDGES:
            is_long = param.id in SLOW or (param.id in DEAR and edge in LIKE_OTHERS)
            marks = [pytest.mark.study] if is_long else []
            found.append(pytest.param(param.values[0], edge, id=f"{param.id}-{edge}", marks=marks))
    return found


@pytest.mark.parametrize(("method", "edge"), params())
def test_edge_table_gives_a_number_or_an_explanation(method: Method, edge: str) -> None:
    assert len(tried(method, edge)) > 7


def test_the_plain_table_is_computed_by_every_method() -> None:
    """So that what the edge tables are refused for is the edge."""
    for param in METHODS:
        if param.id not in SLOW:
            recipe = example_recipe(param.values[0], SCHEMA)
            check_steps(recipe, conform_to_schema(plain(), SCHEMA))


def crashing(*_: Any) -> Any:
    raise ValueError("array must not contain infs or NaNs")


def warning(*_: Any) -> Any:
    return np.float64(1) / np.float64(0)


@pytest.mark.parametrize("broken", [crashing, warning])
def test_a_method_that_crashes_or_warns_at_an_edge_is_caught(broken: Callable[..., Any], monkeypatch: Any) -> None:
    method = replace(registry()["quality.pearson"], func=broken)
    recipe = recipe_for(method, "one record")
    step = replace(recipe.measures[0], method=method)
    monkeypatch.setattr(sys.modules[__name__], "recipe_for", lambda *_: replace(recipe, measures=(step,)))
    with pytest.raises((ValueError, RuntimeWarning)):
        tried(method, "one record")
