"""What may be expected of an output when both tables change in a known way (``evidence`` says what of which).

A rule gets the answers before and after, and raises AssertionError where they do not go together.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from oracles import Answers, Series
from tables import SCHEMA, SYNTHESISED, larger, microdata, resynthesised

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Schema

Rule = Callable[[Answers, Answers], None]
RECORDS = 60
UNIT = 1000.0
RENAMED = {"north": "Zürich", "south": "Bern", "west": "Aarau"}


def same(before: Answers, after: Answers) -> None:
    """Every series has the value it had, or has none still."""
    times(1.0)(before, after)


def times(by: float, only: str | None = None) -> Rule:
    """Every series, or those of one variable, is so many times what it was."""

    def rule(before: Answers, after: Answers) -> None:
        assert set(before) == set(after)
        for key, value in before.items():
            factor = by if only in (None, key[0]) else 1.0
            if value is None:
                assert after[key] is None, key
            else:
                assert after[key] == pytest.approx(factor * value, rel=1e-6, abs=1e-9), key

    return rule


def each(holds: Callable[[float | None, float | None], bool]) -> Rule:
    """A condition on every pair of values, before and after."""

    def rule(before: Answers, after: Answers) -> None:
        assert set(before) == set(after)
        for key in before:
            assert holds(before[key], after[key]), (key, before[key], after[key])

    return rule


def equals(number: float) -> Rule:
    return each(lambda _, after: after is not None and math.isclose(after, number, rel_tol=1e-9, abs_tol=1e-9))


def at_least(number: float) -> Rule:
    return each(lambda _, after: after is not None and after >= number)


def at_most(number: float) -> Rule:
    return each(lambda _, after: after is not None and after <= number)


def free(reason: str) -> Rule:
    """Nothing follows, for a reason that is written down."""
    assert reason
    return lambda before, after: None


def of_all_guesses(rule: Rule) -> Rule:
    """The rule on what speaks of all guesses: which are the most confident hangs on how many records are asked."""
    return lambda before, after: rule(*({key: v for key, v in one.items() if not key[1]} for one in (before, after)))


lower = each(lambda before, after: before is not None and after is not None and after < before)
higher = each(lambda before, after: before is not None and after is not None and after > before)
apart = each(lambda before, after: before is not None and after is not None and abs(after) > abs(before) + 1e-3)
not_higher = each(lambda before, after: before is not None and after is not None and after <= before + 1e-9)
not_lower = each(lambda before, after: before is not None and after is not None and after >= before - 1e-9)
not_computed = each(lambda _, after: after is None)


def at_most_share(share: float) -> Rule:
    return each(lambda before, after: before is not None and after is not None and after <= share * before)


@dataclass(frozen=True)
class Expected:
    """What becomes of an output.

    ``rows``, ``columns``, ``levels``, ``unit``, ``doubled``: the same pair of tables with records, columns or levels in another
    order (the latter renamed too), a continuous variable in a unit a thousand times smaller, every record twice.
    ``copy``: the confidential table released as it is; before is the row of the confidential data where there is one.
    ``permuted``, ``noise``: the synthesised values dealt to other records, or replaced by noise far away; before is the copy.
    """

    doubled: Rule
    copy: Rule
    permuted: Rule
    noise: Rule
    rows: Rule = same
    columns: Rule = same
    levels: Rule = same
    unit: Rule = same


NOT_SYNTHESISED = same
JOINT = free("the marginal distributions are kept, how records lie together is not")
OWN_TABLE = free("it speaks of the released table's own records: noise tells them apart")
BY_CLASSES = free("a release without classes of its own has those of records alike in it: noise makes them small")
OWN = free("the study makes tables of its own and looks at no release; its rows say so")

POWER = Expected(
    doubled=free("more records find less"),
    copy=same,
    permuted=free("it goes with the controls"),
    noise=free("it goes with the controls"),
)
DEALT = Expected(*[free("people and controls are dealt anew, and equal differences in random order")] * 8)
IDENTIFIED = {
    "expected_match_risk": Expected(doubled=same, copy=same, permuted=at_most_share(0.25), noise=equals(0)),
    "true_match_rate": Expected(doubled=equals(0), copy=same, permuted=at_most_share(0.25), noise=equals(0)),
    "false_match_rate": Expected(doubled=not_computed, copy=same, permuted=higher, noise=not_computed),
    "unique_matches": Expected(doubled=equals(0), copy=same, permuted=lower, noise=equals(0)),
}
# Who ignores what is dealt or drawn still finds by what is kept.
LARGEST_IDENTIFIED = {
    "largest_expected_match_risk": Expected(
        doubled=same, copy=same, permuted=not_higher, noise=each(lambda before, after: 0 < after <= before)
    ),
    "largest_true_match_rate": Expected(doubled=equals(0), copy=same, permuted=not_higher, noise=not_higher),
}
LARGEST_LEARNT = Expected(doubled=times(2), copy=same, permuted=not_higher, noise=equals(0))
LEARNT = Expected(doubled=times(2), copy=same, permuted=at_most_share(0.5), noise=equals(0))
NEIGHBOURS = free("every record has a neighbour at distance 0")
NMI = Expected(doubled=NEIGHBOURS, copy=at_least(0.5), permuted=lower, noise=lower)
CLASSES = Expected(doubled=same, copy=equals(1), permuted=BY_CLASSES, noise=BY_CLASSES)
ONE = Expected(doubled=same, copy=equals(1), permuted=equals(1), noise=equals(1))


TOGETHER = Expected(*[free("what all datasets and replicates together say; a single dataset has no such row")] * 8)
WEIGHED = Expected(*[free("only tables with a survey weight have it: test_survey_weights")] * 8)
OF_UNITS = Expected(*[free("only tables with units have it: tests/engine/utility/test_units.py")] * 8)
ALONE = Expected(*[free("only the confidential data have it: releases have no row of it")] * 8)


@dataclass(frozen=True)
class Tables:
    """A confidential table and its release."""

    confidential: Microdata
    released: Microdata


def small_pair() -> Tables:
    """Sixty records of which three lack a value, and a release near to them: tables of the caller's own."""
    return mapped(_small_pair(), pd.DataFrame.copy)


@functools.cache
def _small_pair() -> Tables:
    whole = larger(RECORDS, 5)
    place = SCHEMA.names.index("illness")
    ours = [(*r[:place], None, *r[place + 1 :]) if i < 3 else r for i, r in enumerate(whole)]
    days, income = (SCHEMA.names.index(name) for name in SYNTHESISED)
    drawn = [
        tuple(v + i % 2 if at == days else v * 1.03 ** (i % 3) if at == income else v for at, v in enumerate(r))
        for i, r in enumerate(whole)
    ]
    confidential = microdata(ours).with_controls(microdata(larger(RECORDS, 6)))
    return Tables(confidential, microdata(resynthesised(ours, drawn), "synthetic"))


def mapped(pair: Tables, change: Callable[[pd.DataFrame], pd.DataFrame], schema: Schema = SCHEMA) -> Tables:
    """Both tables, and the control records, changed alike."""
    ours, theirs = (
        replace(data.without_controls, frame=change(data.frame), schema=schema)
        for data in (pair.confidential, pair.released)
    )
    if (controls := pair.confidential.controls) is not None:
        ours = ours.with_controls(replace(controls, frame=change(controls.frame), schema=schema))
    return Tables(ours, theirs)


def rows(pair: Tables) -> Tables:
    order = np.random.default_rng(1).permutation(RECORDS)
    return mapped(pair, lambda frame: frame.iloc[order].reset_index(drop=True))


def columns(pair: Tables) -> Tables:
    names = list(SCHEMA.names[::-1])
    return mapped(pair, lambda frame: frame[names], Schema(tuple(SCHEMA[name] for name in names)))


def levels(pair: Tables) -> Tables:
    renamed = replace(SCHEMA["region"], levels=tuple(RENAMED.values())[::-1])
    schema = Schema(tuple(renamed if v.name == "region" else v for v in SCHEMA))
    return mapped(
        pair,
        lambda frame: frame.assign(
            region=frame["region"].cat.rename_categories(RENAMED).cat.reorder_categories(list(renamed.levels))
        ),
        schema,
    )


def unit(pair: Tables) -> Tables:
    return mapped(pair, lambda frame: frame.assign(income=frame["income"] * UNIT))


def doubled(pair: Tables) -> Tables:
    return mapped(pair, lambda frame: pd.concat([frame, frame], ignore_index=True))


def copy(pair: Tables) -> Tables:
    return Tables(pair.confidential, replace(pair.confidential.without_controls, origin="synthetic"))


def permuted(pair: Tables) -> Tables:
    dealt = pair.confidential.frame[list(SYNTHESISED)].sample(frac=1, random_state=3).reset_index(drop=True)
    return Tables(pair.confidential, pair.confidential.with_columns({n: dealt[n] for n in SYNTHESISED}, "synthetic"))


def noise(pair: Tables) -> Tables:
    rng = np.random.default_rng(4)
    drawn = {"days": rng.integers(500, 2000, RECORDS), "income": rng.uniform(1e3, 1e4, RECORDS)}
    return Tables(
        pair.confidential, pair.confidential.with_columns({n: pd.Series(v) for n, v in drawn.items()}, "synthetic")
    )


RELATIONS: dict[str, Callable[[Tables], Tables]] = {
    found.__name__: found for found in (rows, columns, levels, unit, doubled, copy, permuted, noise)
}


def key_after(relation: str, key: Series) -> Series:
    """The series' name in the changed tables."""
    if relation != "levels":
        return key
    return key[0], tuple((name, RENAMED.get(value, value)) for name, value in key[1])
