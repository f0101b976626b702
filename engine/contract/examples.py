"""Examples for the contract's tests: a small table with every kind of variable, releases of it, and a recipe for a
method.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Iterable, Mapping
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest

from ..data.microdata import Microdata, conform_to_schema
from ..data.schema import Kind, Role, Schema, Variable
from ..errors import BadInput
from ..methods.protocols import FAMILIES, MEASURES
from ..methods.registry import Method
from ..methods.results import Estimate, Measure
from ..methods.run import Run
from ..methods.spec import ParamInfo
from ..recipe.checks import check_steps
from ..recipe.recipe import Recipe

RECORDS = 120
SYNTHESISED = ("days", "income")
DRAWS = 3

MODEL = {
    "method": "dirichlet_multinomial",
    "target": list(SYNTHESISED),
    "predictors": ["region"],
    "bins": {"days": "3 equal width", "income": "4 equal count"},
}
"""What makes the release where a measure asks for its models."""

SETTINGS: dict[str, dict[str, Any]] = {}
"""What a table cannot be derived for from the declared parameters, by method key: from the file ``sfumato_examples``."""

every_method = pytest.mark.sfumato_contract(*FAMILIES)
every_synthesis = pytest.mark.sfumato_contract("synthesis")
every_anonymisation = pytest.mark.sfumato_contract("anonymisation")
every_measure = pytest.mark.sfumato_contract(*MEASURES, whole=False)
every_whole_measure = pytest.mark.sfumato_contract(*MEASURES, whole=True)
every_study = pytest.mark.sfumato_contract("studies")

SCHEMA = Schema(
    (
        Variable("region", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=("north", "south", "west")),
        Variable("sex", Kind.BINARY, Role.QUASI_IDENTIFIER),
        Variable("size", Kind.ORDINAL, Role.QUASI_IDENTIFIER, levels=("small", "medium", "large")),
        Variable("visits", Kind.COUNT, Role.QUASI_IDENTIFIER),
        Variable("days", Kind.COUNT, Role.SENSITIVE, bounds=(0, 30)),
        Variable("income", Kind.CONTINUOUS, Role.SENSITIVE, bounds=(0, None)),
        Variable("illness", Kind.BINARY, Role.SENSITIVE),
        Variable("joined", Kind.DATE),
        Variable("number", Kind.COUNT, Role.IDENTIFIER),
    )
)
LACKING = ("region", "size", "visits", "days", "income", "illness", "joined")


@functools.cache
def _example_table(seed: int = 11) -> Microdata:
    """Return the examples' table; another seed gives other records of the same population."""
    rng = np.random.default_rng(seed)
    region = rng.choice(["north", "south", "west"], RECORDS, p=[0.5, 0.3, 0.2])
    visits = rng.poisson(3, RECORDS)
    days = np.where(rng.random(RECORDS) < 0.3, 0, np.minimum(rng.poisson(np.exp(1 + 0.2 * visits)), 30))
    raw = pd.DataFrame(
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
    return conform_to_schema(raw, SCHEMA)


def confidential_table() -> Microdata:
    """Return the examples' table, for tests that make other tables from its records."""
    return _example_table()


def example_data_for(method: Method, data: Microdata) -> Microdata:
    """Return the confidential records as a run gives them to a method, with control records where it needs some."""
    if not method.measurement.controls:
        return data
    # Other records of the same population, as hold-out records are.
    controls = _example_table(13)
    return data.with_controls(Microdata(data.schema, controls.frame[list(data.schema.names)]))


@pytest.fixture
def confidential() -> Microdata:
    """Return a copy of the examples' table, so that a method that changes it changes no other test."""
    return copy_table(_example_table())


def copy_table(data: Microdata) -> Microdata:
    """Return a table with a frame of its own."""
    return dataclasses.replace(data, frame=data.frame.copy())


@pytest.fixture
def releases(confidential: Microdata) -> list[Microdata]:
    """Return two releases with values of the synthesised variables near the confidential ones."""
    return released_tables(confidential)


def released_tables(confidential: Microdata) -> list[Microdata]:
    """Return two releases of a table, with values of the synthesised variables near its own."""
    rng = np.random.default_rng(12)
    found = []
    for _ in range(2):
        days = np.clip(confidential.column("days") + rng.integers(-2, 3, RECORDS), 0, 30)
        income = confidential.column("income") * np.exp(0.1 * rng.normal(size=RECORDS))
        found.append(confidential.with_columns({"days": days, "income": income}, "synthetic"))
    return found


def example_target(method: Method, schema: Schema, kind: Kind | None = None) -> str:
    """Return the variable on which a synthesis method is tried, of this kind or one that the method makes."""
    kinds = (kind,) if kind else method.synthesis.targets or tuple(Kind)
    suitable = [v for v in schema if v.kind in kinds and not v.role.is_identifier]
    # A sensitive one if there is one: that is what methods are for.
    return sorted(suitable, key=lambda v: v.role is not Role.SENSITIVE)[0].name


def suitable_value(info: ParamInfo, schema: Schema) -> Any:
    """Return a value for a parameter that names variables or terms or is required; None where none can be derived."""
    variables = [v.name for v in schema if not info.param.kinds or v.kind in info.param.kinds]
    origin, arguments = typing.get_origin(info.type), get_args(info.type)
    if info.param.names == "terms":
        return ["region", "log1p(visits)"]
    if info.param.names == "variables" and isinstance(origin, type) and issubclass(origin, Mapping):
        # A radius may be a share; other settings by variable are numbers.
        share = "5%" if hasattr(arguments[1], "parse") else arguments[1](1)
        return {name: share for name in SYNTHESISED if name in variables}
    if not info.is_required:
        return None
    if info.param.names == "variables":
        known = [name for name in variables if schema[name].role is Role.QUASI_IDENTIFIER] or variables
        return known[:1] if origin is tuple else known[-1]
    if info.choices:
        return info.choices[0]
    number = next((limit for limit in (info.param.ge, info.param.le) if limit is not None), 1)
    scalars = {float: float(number), int: int(number), bool: True}
    if origin is tuple and arguments[0] in scalars:
        return [scalars[arguments[0]]]
    return scalars.get(info.type)


def example_step_table(method: Method, schema: Schema) -> dict[str, Any]:
    """Return the recipe's table of a step of the method that suits the examples' table."""
    given = SETTINGS.get(method.key, {})
    table = {info.name: suitable_value(info, schema) for info in method.spec.params() if info.name not in given}
    for info in method.spec.params():
        if info.is_required and table.get(info.name, given.get(info.name)) is None:
            pytest.fail(
                f'{method.key}: no value can be derived for "{info.name}"; give one in the file that sfumato_examples names'
            )
    return {key: value for key, value in {**table, **given}.items() if value not in (None, {})}


def example_recipe(method: Method, schema: Schema, kind: Kind | None = None) -> Recipe:
    """Return a recipe with one step of the method; ``kind`` is the kind of a synthesis step's target."""
    table: dict[str, Any] = {
        "title": method.title,
        "variables": {variable.name: variable.to_table() for variable in schema},
        "release": {"m": DRAWS, "released": list(SYNTHESISED)},
    }
    step = {"method": method.key, **example_step_table(method, schema)}
    if method.family == "synthesis":
        table["release"] = {"m": DRAWS}
        target = example_target(method, schema, kind)
        if "predictors" in step:
            # Also in a term such as log1p(visits).
            step["predictors"] = [term for term in step["predictors"] if target not in term]
        table["synthesis"] = [{"target": target, **step}]
    elif method.family == "anonymisation":
        table["release"] = {}
        table["anonymisation"] = [step]
        table["variables"] = {v.name: v.to_table() for v in schema if not v.role.is_identifier}
    elif method.family == "studies":
        table["study"] = [step]
    else:
        table["measure"] = [step]
        if method.measurement.controls:
            table["data"] = {"holdout": 0.5}
        if method.uses_weights:
            table["release"] = {"m": DRAWS}
            table["synthesis"] = [dict(MODEL)]
    return Recipe.from_table(table)


def example_spec(method: Method, schema: Schema, kind: Kind | None = None) -> Any:
    """Return the parameters of the example's step as a run gives them to the method."""
    recipe = example_recipe(method, schema, kind)
    step = (*recipe.synthesis, *recipe.anonymisation, *recipe.measures, *recipe.studies)[0]
    return step.spec.for_release(schema, SYNTHESISED)


def example_run(seed: int = 1, pool: Any = map) -> Run:
    """Return the random numbers and the pool that a run gives to a method."""
    return Run(np.random.default_rng(seed), pool)


def comparable_results(measure: Measure) -> Any:
    """Return all results of a measure in a form that can be compared with ==."""
    arrays = {
        # NaN is not equal to itself.
        name: [None if pd.isna(value) else value for value in array.tolist()]
        for name, array in measure.per_record.items()
    }
    return [dataclasses.astuple(estimate) for estimate in measure.estimates], arrays


def assert_sound(method: Method, estimates: Iterable[Estimate]) -> None:
    """Assert that estimates are declared, finite and inside their interval and range, and give a reason where there is
    no value.
    """
    found = list(estimates)
    assert found, "no estimate at all"
    for estimate in found:
        low, high = method.output(estimate.measure).range
        if estimate.value is None:
            assert estimate.reason
            continue
        for number in (estimate.value, estimate.lower, estimate.upper, estimate.baseline):
            assert number is None or np.isfinite(number), estimate
        assert estimate.lower is None or estimate.lower <= estimate.value
        assert estimate.upper is None or estimate.value <= estimate.upper
        for number in (estimate.value, estimate.lower, estimate.upper):
            assert number is None or low is None or number >= low - 1e-12, estimate
            assert number is None or high is None or number <= high + 1e-12, estimate
    series = [(e.measure, e.target, repr(sorted(e.params.items(), key=str))) for e in found]
    # Two rows of one series could not be told apart in reports and thresholds.
    assert len(set(series)) == len(series), "two estimates with the same measure, target and parameters"


def without_identifiers(data: Microdata) -> Microdata:
    """Return the table without identifiers."""
    schema = Schema(tuple(v for v in data.schema if not v.role.is_identifier))
    return Microdata(schema, data.frame[list(schema.names)])


def with_missing(data: Microdata, seed: int) -> Microdata:
    """Return the table with about one value in eight missing in most columns."""
    rng = np.random.default_rng(seed)
    columns = {name: data.column(name).mask(rng.random(len(data)) < 0.12) for name in LACKING}
    return data.with_columns(columns, data.origin)


def refuses_missing(method: Method, data: Microdata) -> bool:
    """Return whether the checks of the method's recipe refuse missing values."""
    try:
        check_steps(example_recipe(method, data.schema), data)
    except BadInput as error:
        # Any other complaint is a failure.
        if "records have no " not in error.message:
            raise
        return True
    return False
