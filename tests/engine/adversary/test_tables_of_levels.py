"""Tables of levels alone: honest ones keep their level, beside kept keys and in five datasets; copies of all and of the rarest people are found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from sfumato.engine.adversary.cells import cell_keys
from sfumato.engine.adversary.coded import JointColumn, code_by_value, log_value_shares, order_rarest_first
from sfumato.engine.adversary.copies import measure_equal_records
from sfumato.engine.adversary.evidence import CONTENT_LEVEL
from sfumato.engine.adversary.likeness import MemorisationShare
from sfumato.engine.adversary.membership_evidence import MembershipProbe, weigh_evidence
from sfumato.engine.adversary.people import find_people_in_release, list_column_sets, mark_cells
from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable

KEYS, DRAWN = ("sex", "race", "marriage", "moved", "school"), ("language", "abroad", "disabled", "insured")
NAMES = (*KEYS, *DRAWN)
SCHEMA = Schema(tuple(Variable(name, Kind.CATEGORICAL) for name in NAMES))
MEMBERS, CONTROLS = 800, 200
TABLES = [pytest.param(20, marks=pytest.mark.slow), pytest.param(200, marks=pytest.mark.study)]
BLOCKS = 0.2
"""The share beyond chance from which on kept keys with drawn values block (``INFERRED`` of the gate)."""


def people(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """People of rare and of frequent levels, whose answers follow from their keys by a logistic model."""
    sex, moved = rng.integers(0, 2, n), np.minimum(rng.geometric(0.8, n), 3) - 1
    race, marriage = np.minimum(rng.geometric(0.6, n), 6) - 1, np.minimum(rng.geometric(0.5, n), 5) - 1
    school = np.clip(np.round(rng.normal(6 - marriage / 2, 2.5, n)), 0, 11).astype(int)
    bias = np.stack([race - 2.5, race - 2 - moved, marriage / 2 - 2.5, school / 4 + sex - 1.5])
    answers = (rng.random((4, n)) < 1 / (1 + np.exp(-bias))).astype(int)
    columns = dict(zip(NAMES, (sex, race, marriage, moved, school, *answers), strict=True))
    return pd.DataFrame({name: [f"{name[0]}{v}" for v in values] for name, values in columns.items()})


def by_regression(of: pd.DataFrame, keys: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The keys of some people, and answers drawn from logistic regressions that are fitted to others."""
    made = keys[list(KEYS)].copy()
    known = list(KEYS)
    for name in DRAWN:
        x = pd.get_dummies(pd.concat([of[known], made[known]])).to_numpy(float)
        model = LogisticRegression(C=10, max_iter=200).fit(x[: len(of)], of[name])
        share = model.predict_proba(x[len(of) :])[:, 1]
        made[name] = model.classes_[(rng.random(len(made)) < share).astype(int)]
        known.append(name)
    return made


def equal_beside_keys(own: pd.DataFrame, made: pd.DataFrame) -> MemorisationShare:
    data = conform_to_schema(own.reset_index(drop=True), SCHEMA)
    return measure_equal_records(
        data, cell_keys(data, NAMES), [cell_keys(conform_to_schema(made, SCHEMA), NAMES, data)], KEYS, DRAWN
    )


@pytest.mark.parametrize("tables", TABLES)
@pytest.mark.parametrize("of", ["the members", "other people"])
def test_regressions_beside_kept_keys_equal_records_by_chance(of: str, tables: int) -> None:
    rng, found = np.random.default_rng(41), list[MemorisationShare]()
    for _ in range(tables):
        own, others = people(rng, MEMBERS), people(rng, MEMBERS)
        found.append(equal_beside_keys(own, by_regression(own if of == "the members" else others, own, rng)))
    excess = np.array([one.excess for one in found])
    print(
        f"{of}: value - baseline {np.mean([one.value - one.baseline for one in found]):+.4f}, baseline "
        f"{np.mean([one.baseline for one in found]):.3f}; beyond chance {np.mean(excess > 0):.3f}, blocked {np.mean(excess > BLOCKS):.3f}"
    )
    assert np.mean(excess > BLOCKS) <= 0.01
    assert np.mean(excess > 0) <= (0.15 if of == "other people" else 0.35), (
        "records that were fitted are a little nearer"
    )


@pytest.mark.slow
def test_a_copy_beside_kept_keys_is_one_and_half_a_copy_blocks() -> None:
    """The negative control."""
    rng = np.random.default_rng(42)
    own = people(rng, MEMBERS)
    assert equal_beside_keys(own, own.copy()).excess == 1
    half = by_regression(people(rng, MEMBERS), own, rng)
    half.loc[: MEMBERS // 2, list(DRAWN)] = own.loc[: MEMBERS // 2, list(DRAWN)]
    assert equal_beside_keys(own, half).excess > BLOCKS


def look(own: pd.DataFrame, releases: Sequence[pd.DataFrame]) -> tuple[MembershipProbe, ...]:
    """Who of a joint table, members first, stands in some datasets."""
    data = conform_to_schema(own.reset_index(drop=True), SCHEMA)
    cells = cell_keys(data, NAMES)
    made = [cell_keys(conform_to_schema(one.reset_index(drop=True), SCHEMA), NAMES, data) for one in releases]
    coded = [code_by_value(JointColumn(name, cells[name], [one[name] for one in made])) for name in NAMES]
    mine = mark_cells(cells, NAMES)
    rows = np.sum(list(mine.values()), axis=0, dtype=np.uint64)
    theirs = [mark_cells(one, NAMES) for one in made]
    return find_people_in_release(
        mine, theirs, list_column_sets(NAMES, (), KEYS, DRAWN), order_rarest_first(log_value_shares(coded), rows)
    ).probes


def p(looks: Sequence[MembershipProbe]) -> float:
    return weigh_evidence(looks, MEMBERS, MEMBERS + CONTROLS, CONTENT_LEVEL).p


def rarest_of(own: pd.DataFrame, k: int) -> pd.DataFrame:
    score = sum(np.log(own[:MEMBERS][name].map(own[name].value_counts())) for name in NAMES)
    return own.iloc[np.argsort(score.to_numpy(), kind="stable")[:k]]


@pytest.mark.slow
@pytest.mark.parametrize("exchanged", [False, True])
def test_rare_people_spread_over_five_datasets_are_seen_by_the_hold_out_alone(exchanged: bool) -> None:
    """Exchanged: the hold-out people are those of whom copies are there."""
    rng = np.random.default_rng(44)
    own, rare = people(rng, MEMBERS + CONTROLS), 50
    copied = rarest_of(own, rare)
    datasets = [pd.concat([copied[i * 10 : (i + 1) * 10], people(rng, MEMBERS - 10)]) for i in range(5)]
    if exchanged:
        inside = np.isin(np.arange(len(own)), copied.index)
        others = np.flatnonzero(~inside)
        own = own.iloc[np.concatenate([others[:MEMBERS], np.flatnonzero(inside), others[MEMBERS:]])]
    assert (p(look(own, datasets)) > CONTENT_LEVEL) is exchanged


@pytest.mark.parametrize("tables", TABLES)
def test_of_honest_datasets_at_most_the_level_is_found(tables: int) -> None:
    """Five datasets of other people; the rarest members' own rows in one of them as control."""
    rng, found, leaky = np.random.default_rng(45), [], []
    for at in range(tables):
        own = people(rng, MEMBERS + CONTROLS)
        datasets = [people(rng, MEMBERS) for _ in range(5)]
        found.append(p(look(own, datasets)))
        if at < 10:
            leaky.append(p(look(own, [pd.concat([rarest_of(own, 60), one[60:]]) for one in datasets[:1]])))
    print(
        f"at most {CONTENT_LEVEL}: {np.mean(np.array(found) <= CONTENT_LEVEL):.3f}, at most .05: {np.mean(np.array(found) <= 0.05):.3f}"
    )
    assert np.mean(np.array(found) <= CONTENT_LEVEL) <= binom.ppf(0.99, tables, CONTENT_LEVEL) / tables
    assert np.mean(np.array(found) <= 0.05) <= binom.ppf(0.99, tables, 0.05) / tables
    assert np.mean(np.array(leaky) <= CONTENT_LEVEL) >= 0.9, "the negative control"
