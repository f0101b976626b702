"""Linkability of copies, of other people, of shuffled releases, and what is refused; the oracle of the contract links by loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.results import Estimate, Measure
from sfumato.engine.methods.run import Run
from sfumato.engine.risk._best_strategy import kept_variables
from sfumato.engine.risk.linkability import LinkabilitySpec, linkability

SCHEMA = schema_of(
    Variable("zip", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=tuple("abcdef")),
    "age: continuous quasi_identifier",
    Variable("ill", Kind.CATEGORICAL, Role.SENSITIVE, levels=tuple("xyz")),
    "pay: continuous sensitive",
)


def table(rows: pd.DataFrame, origin: Any = "confidential") -> Microdata:
    return conform_to_schema(rows, SCHEMA, MissingPolicy.KEEP, origin)


def people(n: int, rng: np.random.Generator) -> pd.DataFrame:
    age = rng.normal(50, 10, n)
    pay = np.exp(3 + age / 50 + 0.5 * rng.normal(size=n))
    return pd.DataFrame({"zip": rng.choice(list("abc"), n), "age": age, "ill": rng.choice(list("xy"), n), "pay": pay})


def attacked(own: pd.DataFrame, others: pd.DataFrame, shown: pd.DataFrame, seed: int = 0, **settings: Any) -> Measure:
    spec = LinkabilitySpec(**settings).for_release(SCHEMA, ())
    data = table(own).with_controls(table(others))
    return linkability(data, table(shown, "synthetic"), spec, Run(np.random.default_rng(seed)))


def answers(found: Measure, **params: str) -> dict[str, Estimate]:
    return {e.measure: e for e in found.estimates if e.params == params}


def test_a_shuffled_copy_links_everybody() -> None:
    rng = np.random.default_rng(1)
    own, others = people(200, rng), people(150, rng)
    found = attacked(own, others, own.sample(frac=1, random_state=2).reset_index(drop=True))
    for params in ({}, {"people": "vulnerable"}):
        got = answers(found, **params)
        assert (got["attack_success"].value, got["excess_risk"].value) == (1, 1)
        assert got["excess_risk"].lower > 0.8  # type: ignore[operator]
        assert got["baseline_success"].value == pytest.approx(1 / 200)


def test_a_few_rare_people_are_linked_among_the_vulnerable_alone() -> None:
    rng = np.random.default_rng(3)
    own, others, fresh = (people(1000, rng) for _ in range(3))
    for one in (own, others):
        one.loc[:19, "zip"], one.loc[:19, "age"] = "d", rng.uniform(80, 100, 20)
        one.loc[:19, "pay"] *= 10
    fresh.iloc[:20] = own.iloc[:20]
    found = attacked(own, others, fresh, records=400)
    every, vulnerable = answers(found), answers(found, people="vulnerable")
    assert every["excess_risk"].value < 0.05  # type: ignore[operator]
    assert vulnerable["excess_risk"].lower > 0.05  # type: ignore[operator]


@pytest.mark.parametrize("times", [pytest.param(12, marks=pytest.mark.slow), pytest.param(40, marks=pytest.mark.study)])
def test_other_people_are_linked_as_often_as_controls(times: int) -> None:
    """The interval of the excess holds 0 in most of the simulations, for one neighbour and for several.

    That it is rarely above 0 for one neighbour is shown by forty in ``test_added_risk.py``.
    """
    held = []
    for seed in range(times):
        rng = np.random.default_rng(seed)
        own, others, fresh = (people(300, rng) for _ in range(3))
        found = attacked(own, others, fresh, seed, neighbours=1 + seed % 3)
        judged = ("excess_risk", "largest_excess_risk")
        held += [e.lower <= 0 <= e.upper for e in found.estimates if e.measure in judged]  # type: ignore[operator]
    assert 0.88 <= np.mean(held) <= 1


def misled(seed: int, n: int = 300) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """People, controls, and a release that keeps age and pay and deals town and illness anew."""
    rng = np.random.default_rng(seed)
    own, others = people(n, rng), people(n, rng)
    shown = own.assign(zip=rng.permutation(own.zip), ill=rng.permutation(own.ill))
    return own, others, shown


@pytest.mark.slow
def test_an_intruder_who_ignores_what_was_dealt_anew_links_everybody() -> None:
    own, others, shown = misled(7)
    for release in (shown, shown.sample(frac=1, random_state=8).reset_index(drop=True)):
        got = answers(attacked(own, others, release))
        assert got["excess_risk"].upper < 0.5  # type: ignore[operator]
        assert got["largest_excess_risk"].value == 1
        assert got["largest_excess_risk"].lower > 0.9  # type: ignore[operator]
        assert got["largest_excess_risk"].reason == "the best intruder compares age, pay; ignores zip, ill"


def test_who_ignores_variables_gains_nothing_of_a_release_of_other_people() -> None:
    """The control: the same strategies against a release that owes nothing to the people."""
    own, others, _shown = misled(7)
    fresh = people(300, np.random.default_rng(9))
    got = answers(attacked(own, others, fresh))["largest_excess_risk"]
    assert got.lower <= 0 <= got.upper  # type: ignore[operator]
    assert got.upper < 0.1  # type: ignore[operator]


def test_whoever_learns_a_variable_that_was_dealt_anew_links_no_fewer() -> None:
    own, others, shown = misled(10)
    less = answers(attacked(own, others, shown, known=("age",), other=("pay",)))["largest_excess_risk"]
    more = answers(attacked(own, others, shown, known=("age", "zip"), other=("pay", "ill")))
    assert more["largest_excess_risk"].value == less.value == 1
    assert more["excess_risk"].value < 0.5  # type: ignore[operator]


def test_kept_columns_are_found_beside_one_that_was_dealt_anew_whatever_the_order() -> None:
    own, _, shown = misled(11)
    mixed = shown.sample(frac=1, random_state=12).reset_index(drop=True)
    for release in (shown, mixed):
        for names in (SCHEMA.names, SCHEMA.names[::-1]):
            assert kept_variables(table(own), table(release, "synthetic"), names) == {"age", "pay"}
    assert kept_variables(table(own), table(shown.head(50), "synthetic"), SCHEMA.names) == set()


@pytest.mark.slow
def test_the_order_of_the_records_changes_nothing() -> None:
    rng = np.random.default_rng(5)
    tables = [people(120, rng) for _ in range(3)]
    mixed = [one.sample(frac=1, random_state=6).reset_index(drop=True) for one in tables]
    before, after = (attacked(*some, records=50, vulnerable=20) for some in (tables, mixed))
    assert before.estimates == after.estimates


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"known": ("zip",), "other": ("zip", "pay")}, '"zip" is among the known variables'),
        ({"known": SCHEMA.names}, "nothing is known from the other place"),
        ({"other": SCHEMA.names}, "nothing is known from the first place"),
    ],
)
def test_what_does_not_suit_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        LinkabilitySpec(**settings).check_release(SCHEMA, (), "measure[0]")
