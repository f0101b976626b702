"""Contract of synthesis methods with a privacy account: equal claims and equal possible releases for neighbouring
tables.

Two tables are neighbours where one has a record more, or another record in one place; where records come in units, also
where one has a unit more. A claim that holds for one and
not for the other reveals which of them the confidential data are. So does a level, a missing value, a number or a dtype
that only one of them can release. A table that breaks what the recipe declares may be refused: no message of a refusal
is released.

``neighbour_differences`` works for any recipe. Tests of Sfumato's own recipes call it too.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ..data.microdata import Microdata, conform_to_schema
from ..data.schema import Kind, MissingPolicy, Schema, Variable
from ..design.binning import BinningRule
from ..errors import BadInput
from ..execution.tasks import account_rows, draw_dataset, fit_model
from ..methods.privacy import PrivacyAccount
from ..methods.registry import Method
from ..methods.run import PUBLIC
from ..recipe.budget import TrustedPackages, privacy_accounts
from ..recipe.checks import check_steps
from ..recipe.recipe import Recipe
from .examples import example_step_table

# Secret as far as claims go, and fixed, so that a failure can be repeated.
KEY = bytes(range(32))
RECORDS = 16
"""Of a table before a record is added, changed or left out."""
DRAWN = 400
MUCH_NOISE = 0.01
"""An epsilon at which nearly every value is noise, so that a few hundred records show all that may be released."""
FIFTHS = 5
UNIT_SIZES = [1, 2, 4, *(1,) * (RECORDS - 4)]
"""Numbers of records of the units of a table, where a recipe declares units."""

every_private_synthesis = pytest.mark.sfumato_contract("synthesis", private=True)
MOST_TARGETS = 3


@dataclass(frozen=True)
class NeighbourTable:
    """A table and how it was changed.

    what: the change, in words
    frame: the table
    fits: whether the recipe declares everything in it, so that it must not be refused
    drawn: whether a release is drawn from it, to see what that may contain
    """

    what: str
    frame: pd.DataFrame
    fits: bool
    drawn: bool = False


@dataclass(frozen=True)
class RunClaim:
    """The claims of a run about its privacy before anything is drawn.

    numbers: measure, target, value and status of each row of the accounts
    reasons: reasons for the maker of the release
    public: reasons for the public
    """

    numbers: tuple[Any, ...]
    reasons: tuple[str, ...]
    public: tuple[str, ...]

    @property
    def covered(self) -> bool:
        """Return whether there is an epsilon for the whole release."""
        return bool(self.numbers) and not self.public


def claim_of_run(recipe: Recipe, data: Microdata, key: bytes = KEY) -> RunClaim:
    """Return the privacy claims of all steps of a recipe on these data."""
    # The tests try what a package claims, so that they take it at its word.
    trusted = TrustedPackages({step.method.package: "" for step in recipe.synthesis})
    accounts = [account for _, account in privacy_accounts(recipe, data, secret=bool(key), trusted_packages=trusted)]
    rows = [
        row
        for item in range(len(recipe.synthesis))
        for row in account_rows(recipe, item, data, key=key, trusted_packages=trusted)
    ]
    # The noise grows with the number of records where the recipe does not give one: then nothing is claimed of it.
    kept = [row for row in rows if recipe.form.records is not None or row.measure != "epsilon_noise"]
    reasons, public = [row.reason for row in kept], []
    for account in accounts:
        if isinstance(account, PrivacyAccount):
            reasons += [one.message for one in account.uncovered]
            public += [one.public for one in account.uncovered]
        else:
            public.append(account.reason)
    numbers = tuple((row.measure, row.target, row.value, row.status) for row in kept)
    return RunClaim(numbers, tuple(reasons), tuple(public))


def release_domain(recipe: Recipe, data: Microdata) -> tuple[Any, ...]:
    """Return what a release may contain: its number of records and, by variable, dtype, levels or fifths of the range,
    and missing values.
    """
    table = recipe.to_table()
    release = {"m": 1, "seed": 1, **({} if recipe.form.records is None else {"records": DRAWN})}
    # With much noise a few hundred records show everything that may be released.
    steps = [{**step, "epsilon": MUCH_NOISE} for step in table["synthesis"]]
    kept: dict[str, Any] = {name: own for name, own in table.items() if name in ("data", "variables", "constraints")}
    noisy = Recipe.from_table({**kept, "synthesis": steps, "release": release})
    try:
        fits = [fit_model(noisy, item, data, key=KEY) for item in range(len(steps))]
    except BadInput as error:  # noise has left nothing to release: of neighbours that must be equally so
        return ("nothing", str(error))
    released = draw_dataset(noisy, 1, data, fits, key=KEY)
    return (len(released), *(_column_domain(released, variable) for variable in released.schema))


def _column_domain(released: Microdata, variable: Variable) -> tuple[Any, ...]:
    """Return the name, the dtype, the levels or fifths, and the missingness of a released column."""
    column, numbers = released.frame[variable.name], released.present_numbers(variable.name)
    if variable.kind.has_levels:
        shown: set[Any] = {str(level) for level in column.dropna().unique()}
    else:
        low, high = _assumed_range(variable)
        places = np.floor((numbers - low) / max(high - low, 1) * FIFTHS).astype(int)
        shown = {int(place) for place in np.minimum(places, FIFTHS - 1)}
    return variable.name, str(column.dtype), tuple(sorted(shown)), bool(column.isna().any())


def _assumed_range(variable: Variable) -> tuple[float, float]:
    """Return the declared range of a variable, or one for tests."""
    low = variable.lower if variable.lower is not None else 0.0
    return low, variable.upper if variable.upper is not None else low + 60.0


def _random_values(variable: Variable, rng: np.random.Generator, count: int) -> list[Any]:
    """Draw values that a variable may have."""
    if variable.kind.has_levels:
        return [str(one) for one in rng.choice(list(variable.levels) or ["a", "b"], count)]
    if variable.kind is Kind.DATE:
        return [f"2020-01-{day:02}" for day in rng.integers(1, 28, count)]
    low, high = _assumed_range(variable)
    whole = variable.kind is Kind.COUNT
    return [
        float(one) for one in (rng.integers(int(low), int(high) + 1, count) if whole else rng.uniform(low, high, count))
    ]


def _unusual_values(variable: Variable) -> Iterator[tuple[str, Any, bool]]:
    """Yield rare values of a variable: their description, the value, and whether the recipe declares it."""
    if variable.kind.has_levels:
        if variable.levels:
            yield "the last level", variable.levels[-1], True
        yield "a new level", "never met before", False
    elif variable.kind is Kind.DATE:
        yield "a date far away", "1900-01-01", False
    else:
        low, high = _assumed_range(variable)
        declared = variable.lower is not None and variable.upper is not None
        yield "the smallest value", low, declared
        yield "the largest value", high, declared
        yield "an extreme value", high + 1e4, False


def neighbour_tables(recipe: Recipe, seed: int) -> Iterator[NeighbourTable]:
    """Yield a table that suits the recipe and its neighbours, then tables with one value throughout a variable and
    their neighbours.
    """
    rng = np.random.default_rng(seed)
    schema = recipe.schema
    keeps = recipe.data.missing is not MissingPolicy.REFUSE
    # The last level and missing values occur nowhere else, so that a record is alone with them.
    common = {v.name: _without_last_level(v) for v in schema}
    base = pd.DataFrame({v.name: pd.Series(_random_values(common[v.name], rng, RECORDS), dtype=object) for v in schema})
    unit = schema.unit
    if unit is not None:
        base[unit] = pd.Series(np.repeat(np.arange(1.0, RECORDS), UNIT_SIZES)[:RECORDS], dtype=object)
    yield NeighbourTable("a table", base, True, drawn=True)
    more = pd.DataFrame({v.name: pd.Series(_random_values(v, rng, 1), dtype=object) for v in schema})
    yield NeighbourTable("a record more", pd.concat([base, more], ignore_index=True), True)
    yield NeighbourTable("the same record once more", pd.concat([base, base.tail(1)], ignore_index=True), True)
    yield NeighbourTable("a record less", base.iloc[1:].reset_index(drop=True), True, drawn=True)
    if unit is not None:
        yield from _tables_with_other_units(base, unit, rng, schema)
    for variable in schema:
        name = variable.name
        if name == unit:
            continue
        declared = recipe.data.missing is not MissingPolicy.KEEP or variable.may_be_missing
        yield NeighbourTable(f"{name}: a missing value", _with_value(base, name, 3, None), keeps and declared)
        without = pd.concat([base, _with_value(more, name, 0, None)], ignore_index=True)
        yield NeighbourTable(f"{name}: a record more without a value", without, keeps and declared, drawn=True)
        for what, value, fits in _unusual_values(variable):
            yield NeighbourTable(
                f"{name}: {what}", _with_value(base, name, 5, value), fits, drawn=variable.kind.has_levels
            )
        values = base[name].tolist()
        alike = base.assign(**{name: pd.Series(values[:1] * RECORDS, dtype=object)})
        yield NeighbourTable(f"{name}: one value", alike, _has_declared_values(variable), drawn=True)
        other = _with_value(alike, name, 0, next((one for one in values if one != values[0]), values[0]))
        yield NeighbourTable(f"{name}: one value and another", other, _has_declared_values(variable))


def _tables_with_other_units(
    base: pd.DataFrame, unit: str, rng: np.random.Generator, schema: Schema
) -> Iterator[NeighbourTable]:
    """Yield tables with a unit more, of several sizes, and with one less."""
    for size in (1, 2, 5):
        more = {v.name: pd.Series(_random_values(v, rng, size), dtype=object) for v in schema}
        more[unit] = pd.Series([99.0] * size, dtype=object)
        added = pd.concat([base, pd.DataFrame(more)], ignore_index=True)
        yield NeighbourTable(f"a unit of {size} more", added, True, drawn=size > 1)
    yield NeighbourTable("a unit less", base[base[unit] != 3.0].reset_index(drop=True), True, drawn=True)
    yield NeighbourTable("a record without a number", _with_value(base, unit, 4, None), False)


def _with_value(frame: pd.DataFrame, name: str, row: int, value: Any) -> pd.DataFrame:
    """Return the table with another value in one cell."""
    values = frame[name].tolist()
    values[row] = value
    return frame.assign(**{name: pd.Series(values, dtype=object)})


def _has_declared_values(variable: Variable) -> bool:
    """Return whether the recipe declares which values a variable may have."""
    return bool(variable.levels) or None not in (variable.lower, variable.upper)


def _without_last_level(variable: Variable) -> Variable:
    """Return the variable without its last level."""
    levels = variable.levels[:-1] if len(variable.levels) > 1 else variable.levels
    return Variable(variable.name, variable.kind, bounds=variable.bounds, levels=levels)


def neighbour_differences(recipe: Recipe, seed: int = 1) -> list[str]:
    """Describe what differs between a table of a recipe and its neighbours; empty where nothing does.

    Claims are compared for all tables, possible releases and refusals where an epsilon is claimed.
    """
    found: list[str] = []
    first: tuple[RunClaim, tuple[Any, ...]] | None = None
    for table in neighbour_tables(recipe, seed):
        try:
            data = conform_to_schema(table.frame, recipe.schema, recipe.data.missing)
            check_steps(recipe, data)
        except BadInput as error:
            if table.fits and (first is None or first[0].covered):
                found.append(f"{table.what}: refused, though the recipe declares all of it: {error}")
            continue
        claim = claim_of_run(recipe, data)
        domain = release_domain(recipe, data) if claim.covered and table.drawn else ()
        first = first or (claim, domain)
        if claim != first[0]:
            found.append(f"{table.what}: {claim} in place of {first[0]}")
        elif domain and domain != first[1]:
            found.append(f"{table.what}: releases {domain} in place of {first[1]}")
        # Noise that anybody can draw again protects nobody: a public key must leave no claim.
        void = claim_of_run(recipe, data, PUBLIC)
        if void.covered or any(value is not None for _, _, value, _ in void.numbers):
            found.append(f"{table.what}: a public key leaves the claim {void.numbers}")
    if first is None:
        found.append("every table was refused")
    return found


DECLARED = Schema(
    (
        Variable("region", Kind.CATEGORICAL, levels=("north", "south", "west")),
        Variable("visits", Kind.COUNT, bounds=(0, 30)),
        Variable("size", Kind.ORDINAL, levels=("small", "medium", "large")),
        Variable("income", Kind.CONTINUOUS, bounds=(0, 5000)),
        Variable("sex", Kind.BINARY, levels=("0", "1")),
    )
)
"""A schema that declares all of a release. Recipes have the first variables of kinds that a method makes."""


def private_table(method: Method) -> dict[str, Any]:
    """Return the table of a recipe in which the method makes the whole release at an epsilon of 1, as far as its
    parameters allow.
    """
    kinds = method.synthesis.targets or tuple(Kind)
    names = [v.name for v in DECLARED if v.kind in kinds]
    targets = names[: MOST_TARGETS if method.joint else 1]
    step: dict[str, Any] = example_step_table(method, DECLARED)
    for info in method.spec.params():
        value = step.get(info.name)
        if info.param.names == "variables" and isinstance(value, Mapping):
            step[info.name] = _setting_of_targets(value, typing.get_args(info.type), targets)
        elif info.param.names in ("variables", "terms") and info.name in step and not info.is_required:
            del step[info.name]
    step |= {"method": method.key, "target": targets if method.joint else targets[0], "epsilon": 1.0}
    release = {"m": 2, "seed": 1, **({"records": 50} if method.joint else {})}
    variables = {v.name: v.to_table() for v in DECLARED if v.name in targets}
    return {"variables": variables, "synthesis": [step], "release": release}


def _setting_of_targets(value: Mapping[str, Any], types: Sequence[Any], targets: Sequence[str]) -> dict[str, Any]:
    """Return a setting by variable, restricted to the targets."""
    if BinningRule in types:
        # The recipe gives these bins whole: bins of equal count would follow the data.
        return {n: "6 equal width" for n in targets if not DECLARED[n].kind.has_levels}
    return {name: one for name, one in value.items() if name in targets}


NONE = slice(0)
VARIANTS: dict[str, dict[str, Any]] = {
    "all declared": {},
    "incomplete records leave, of a sample": {"data": {"missing": "drop", "sample": 10}},
    "missing values declared": {"data": {"missing": "keep"}, "flags": slice(None)},
    "missing values of one declared": {"data": {"missing": "keep"}, "flags": slice(1)},
    "missing values not declared": {"data": {"missing": "keep"}},
    "no levels or bounds of the first": {"without": slice(1)},
    "no levels or bounds of the last": {"without": slice(-1, None), "data": {"missing": "keep"}, "flags": slice(None)},
    "as many records as there are": {"records": False},
    "units with a bound": {"data": {"largest_unit": 2}, "unit": True},
    "units without a bound": {"unit": True},
}
"""Recipes that declare less and less about possible releases, by the change that ``vary_recipe`` makes to a table."""


def vary_recipe(
    table: Mapping[str, Any],
    data: Mapping[str, Any] | None = None,
    flags: slice = NONE,
    without: slice = NONE,
    *,
    records: bool = True,
    unit: bool = False,
) -> Recipe:
    """Return the recipe of a table that declares more or less.

    data: table ``[data]``
    flags: variables that may be missing
    without: variables that declare neither levels nor bounds
    records: whether the number of released records is declared
    unit: whether a variable numbers units of several records
    """
    every = list(table["variables"])
    variables = {}
    for name, own in table["variables"].items():
        kept = {
            key: value for key, value in own.items() if name not in every[without] or key not in ("levels", "bounds")
        }
        variables[name] = {**kept, **({"may_be_missing": True} if name in every[flags] else {})}
    if unit:
        variables["household"] = {"kind": "count", "role": "unit"}
    release = {key: value for key, value in table["release"].items() if records or key != "records"}
    return Recipe.from_table({**table, "variables": variables, "release": release, "data": dict(data or {})})


@pytest.mark.slow
@pytest.mark.parametrize("what", VARIANTS)
@every_private_synthesis
def test_neighbouring_tables_have_one_claim_and_one_domain(method: Method, what: str) -> None:
    assert neighbour_differences(vary_recipe(private_table(method), **VARIANTS[what])) == []
