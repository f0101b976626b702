"""Rules found in a table: those that are there, hardly any where nothing is, and by which chance."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.engine.constraints.evaluation import violations
from sfumato.engine.constraints.mining import (
    RATE,
    _log_no_overlap,
    log_chance_of_equality,
    log_chance_of_order,
    mine_constraints,
    quoted_column,
    round_outward,
)
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable

KINDS = {
    "married": Kind.CATEGORICAL,
    "relation": Kind.CATEGORICAL,
    "age": Kind.COUNT,
    "wage": Kind.CONTINUOUS,
    "rent-paid": Kind.CONTINUOUS,
    "income": Kind.CONTINUOUS,
    "born": Kind.DATE,
    "wed": Kind.DATE,
    "job": Kind.CATEGORICAL,
    "noise": Kind.CONTINUOUS,
}
SCHEMA = Schema(tuple(Variable(name, kind) for name, kind in KINDS.items()))


def ruled(n: int = 500, seed: int = 5) -> pd.DataFrame:
    """Records with a rule of each kind."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 90, n)
    married = np.where((age >= 16) & (rng.random(n) < 0.6), "yes", "no")
    relation = np.where(married == "yes", rng.choice(["husband", "wife"], n), rng.choice(["child", "alone"], n))
    wage, rent = np.round(rng.gamma(2, 900, n), 2), np.round(rng.gamma(1, 200, n), 2)
    wage[age < 14] = 0
    born = pd.Timestamp("2020-06-01") - pd.to_timedelta(age * 365, unit="D")
    job = np.where(age < 18, None, rng.choice(["clerk", "smith", "nurse's aide"], n))
    return pd.DataFrame(
        {
            "married": married,
            "relation": relation,
            "age": age,
            "wage": wage,
            "rent-paid": rent,
            "income": np.round(wage + rent, 2),
            "born": born,
            "wed": born + pd.to_timedelta(rng.integers(0, 15000, n), unit="D"),
            "job": job,
            "noise": rng.normal(size=n),
        }
    )


def texts(frame: pd.DataFrame, schema: Schema = SCHEMA) -> list[str]:
    return [one.constraint.text for one in mine_constraints(conform_to_schema(frame, schema, MissingPolicy.KEEP))]


def test_rules_that_are_there_are_found_sums_and_orders_first() -> None:
    found = texts(ruled())
    assert found[0] == "income = wage + rent-paid"
    assert {"born <= wed", "rent-paid <= income", "married = 'yes' -> age >= 16"} <= set(found)
    assert {"job is present -> age >= 18", "wage != 0 -> age >= 14"} <= set(found)
    assert "married = 'no' -> relation = 'alone' | 'child'" in found
    assert not [text for text in found if "noise" in text]


def test_every_suggestion_is_read_back_held_by_all_records_and_says_by_how_many() -> None:
    data = conform_to_schema(ruled(), SCHEMA, MissingPolicy.KEEP)
    found = mine_constraints(data)
    assert len({one.constraint.name for one in found}) == len(found) > 10
    for one in found:
        assert one.constraint.source == "data"
        assert not violations(one.constraint, data, SCHEMA).any()
        assert 0 < one.support <= len(data)
    support = {one.constraint.text: one.support for one in found}
    assert support["married = 'yes' -> age >= 16"] == int((data.frame["married"] == "yes").sum())


def test_one_record_that_breaks_a_rule_takes_it_away() -> None:
    frame = ruled()
    frame.loc[3, "income"] += 0.01
    frame.loc[4, ["age", "married"]] = [2, "yes"]
    found = texts(frame)
    assert "income = wage + rent-paid" not in found
    assert "married = 'yes' -> age >= 16" not in found


@pytest.mark.slow
def test_order_of_rows_and_columns_change_nothing() -> None:
    frame = ruled()
    turned = frame.sample(frac=1, random_state=1).reset_index(drop=True)
    assert texts(turned) == texts(frame)
    assert texts(frame.drop(columns="noise"), Schema(SCHEMA.variables[:-1]))[:5] == texts(frame)[:5]


def test_identifiers_are_left_out_and_odd_names_and_levels_written_so_that_they_are_read() -> None:
    rng = np.random.default_rng(1)
    own = rng.choice(["a & b", "it's", "or"], 300)
    frame = pd.DataFrame({"my col=1": own, "or": np.where(own == "or", "x", "y"), "person": own})
    schema = Schema((Variable("my col=1", Kind.CATEGORICAL), Variable("or", Kind.CATEGORICAL), Variable("person", Kind.CATEGORICAL, Role.IDENTIFIER)))  # fmt: skip
    found = mine_constraints(conform_to_schema(frame, schema))
    assert found
    assert not [one for one in found if "person" in one.constraint.text]
    assert all("`or`" in one.constraint.text and "`my col=1`" in one.constraint.text for one in found)


@pytest.mark.parametrize(
    ("name", "written"),
    [("age", "age"), ("hours-per-week", "hours-per-week"), ("a b", "`a b`"), ("not", "`not`"), ("3d", "`3d`"), ("a+b", "`a+b`"), ("x -> y", "`x -> y`"), ("Größe", "Größe")],
)  # fmt: skip
def test_names_of_columns_are_written_as_conditions_read_them(name: str, written: str) -> None:
    assert quoted_column(name) == written


def independent(n: int, rng: np.random.Generator) -> Microdata:
    """A table whose columns have nothing to do with each other, full of rare levels, zeros and gaps."""
    frame = pd.DataFrame(
        {
            "a": rng.choice(list("xyzw"), n, p=[0.7, 0.2, 0.08, 0.02]),
            "b": rng.choice(list("pqrst"), n, p=[0.5, 0.3, 0.1, 0.07, 0.03]),
            "c": rng.poisson(0.1, n),
            "d": rng.poisson(2, n),
            "e": np.round(rng.normal(size=n), 1),
            "f": rng.exponential(10, n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "b"] = None
    kinds = [Kind.CATEGORICAL] * 2 + [Kind.COUNT] * 2 + [Kind.CONTINUOUS] * 2
    schema = Schema(tuple(Variable(name, kind) for name, kind in zip(frame, kinds, strict=True)))
    return conform_to_schema(frame, schema, MissingPolicy.KEEP)


@pytest.mark.slow
def test_independent_columns_hardly_suggest_anything() -> None:
    rng = np.random.default_rng(7)
    tables = 60
    wrong = sum(bool(mine_constraints(independent(int(rng.choice([40, 120, 300])), rng))) for _ in range(tables))
    assert wrong <= stats.binom.ppf(0.9999, tables, RATE)
    # negative control: without the bound on chance, what happens to hold would be suggested of nearly every table
    data = independent(120, rng)
    crossed = pd.crosstab(data.frame["a"], data.frame["b"])
    assert (crossed == 0).to_numpy().any()


# the probabilities, by dealing the values in every way there is


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.data())
def test_the_chance_of_an_order_is_the_share_of_the_ways_to_deal(a: list[int], more: st.DataObject) -> None:
    b = more.draw(st.lists(st.integers(0, 4), min_size=len(a), max_size=len(a)))
    ways = [all(x <= y for x, y in zip(a, dealt, strict=True)) for dealt in itertools.permutations(b)]
    share = math.exp(log_chance_of_order(np.array(a, dtype=float), np.array(b, dtype=float)))
    assert share == pytest.approx(sum(ways) / len(ways), abs=1e-12)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=6))
def test_the_chance_of_an_equality_is_the_share_of_the_ways_to_deal(a: list[int]) -> None:
    ways = [list(dealt) == a for dealt in itertools.permutations(a)]
    assert math.exp(log_chance_of_equality(np.array(a, dtype=float))) == pytest.approx(sum(ways) / len(ways))


@given(st.integers(1, 8), st.data())
def test_the_chance_that_two_events_never_meet_is_hypergeometric(n: int, more: st.DataObject) -> None:
    k, of = more.draw(st.integers(0, n)), more.draw(st.integers(0, n))
    ways = [not set(some) & set(range(k)) for some in itertools.combinations(range(n), of)]
    assert math.exp(float(_log_no_overlap(n, k, of))) == pytest.approx(sum(ways) / len(ways), abs=1e-12)


@pytest.mark.parametrize(
    ("number", "kind", "low", "high"),
    [
        (52.35, Kind.CONTINUOUS, 52.0, 53.0),
        (1689.97, Kind.CONTINUOUS, 1600.0, 1700.0),
        (-0.1234, Kind.CONTINUOUS, -0.13, -0.12),
        (0.0, Kind.CONTINUOUS, 0.0, 0.0),
        (15, Kind.COUNT, 15, 15),
        (7, Kind.COUNT, 7, 7),
        (41310, Kind.COUNT, 41000, 42000),
        (41000, Kind.COUNT, 41000, 41000),
        (31.0, Kind.DATE, 31.0, 31.0),
        (40.0, Kind.DATE, 31.0, 59.0),
    ],
)
def test_bounds_are_rounded_outwards_so_that_they_are_nobodys_value(
    number: float, kind: Kind, low: float, high: float
) -> None:
    variable = Variable("x", kind)
    assert (round_outward(number, variable, down=True), round_outward(number, variable, down=False)) == (low, high)


def test_a_bound_counts_all_cuts_that_might_have_been_told() -> None:
    """Over ways to deal a group, the chance of its bound is at most p with a probability of at most p."""
    values, size = np.array([0.0, 1, 1, 2, 3, 4, 5]), 3
    chances = []
    for group in itertools.combinations(range(len(values)), size):
        below = int((values < values[list(group)].min()).sum())
        chances.append(math.exp(float(_log_no_overlap(len(values), below, size))))
    for p in sorted(set(chances)):
        assert np.mean(np.array(chances) <= p + 1e-12) <= p + 1e-12
