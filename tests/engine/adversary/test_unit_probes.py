"""Probes of whole units, and the exchange of whole units, beside loops over the households."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from households import SCHEMA, as_microdata, code_columns, copy_households, draw_households, hold_out

from sfumato.engine.adversary.cells import cell_keys, count_sharing, row_keys
from sfumato.engine.adversary.coded import JointColumn, code_by_value
from sfumato.engine.adversary.exchanged_rows import exchange_rows
from sfumato.engine.adversary.membership_evidence import MembershipProbe, count_probe, weigh_evidence
from sfumato.engine.adversary.neighbours import nearest_neighbour_pairs
from sfumato.engine.adversary.people import ColumnSet, mark_cells
from sfumato.engine.adversary.row_shares import RowShares
from sfumato.engine.adversary.unit_probes import RARELY_TOGETHER, probe_units
from sfumato.engine.data.units import Units
from sfumato.engine.wording import singular_noun, unit_noun

NAMES = ("region", "relation", "sex", "education")


def probes(
    joint: pd.DataFrame, released: pd.DataFrame, names: tuple[str, ...], *, is_numbered: bool
) -> tuple[list[MembershipProbe], Units]:
    """Return the probes of a release by one set of columns, and the units of the joint table."""
    cells, theirs = (mark_cells(cell_keys(as_microdata(one), names), names) for one in (joint, released))
    units = Units.from_codes(pd.factorize(joint["household"])[0])
    of_release = Units.from_codes(pd.factorize(released["household"])[0]) if is_numbered else None
    rows = row_keys(cell_keys(as_microdata(joint), names), names)
    order, sets = np.argsort(rows), [ColumnSet(names, "them")]
    return probe_units(cells, units, [(theirs, of_release)], sets, rows, order, code_columns(joint, names)), units


def compositions(frame: pd.DataFrame, names: Sequence[str] = NAMES) -> dict[int, tuple[tuple[str, ...], ...]]:
    """Return the sorted records of each household."""
    rows = list(map(tuple, frame[list(names)].astype(str).to_numpy().tolist()))
    return {k: tuple(sorted(rows[at] for at in some)) for k, some in frame.groupby("household").indices.items()}


@pytest.mark.parametrize("is_numbered", [True, False])
def test_units_that_are_found_by_loops(is_numbered: bool) -> None:
    rng = np.random.default_rng(1)
    joint, released = draw_households(rng, 150), draw_households(rng, 120)
    looks, units = probes(joint, released, NAMES, is_numbered=is_numbered)
    mine, theirs = compositions(joint), compositions(released)
    times, of_release = Counter(mine.values()), set(theirs.values())
    rows = Counter(row for some in theirs.values() for row in some)
    alone = {k for k, some in mine.items() if times[some] == 1}
    found = {
        k for k in alone
        if (mine[k] in of_release if is_numbered else all(rows[row] >= n for row, n in Counter(mine[k]).items()))
    }  # fmt: skip
    assert 0 < len(found) < len(alone)
    number = joint["household"].to_numpy()
    for look in looks:
        if "rarest" in look.who:
            continue
        least = 0 if look.who.startswith("all") else int(look.who.split()[3])
        open_ended = least == 0 or look.who.endswith("or more")
        stratum = {k for k, some in mine.items() if len(some) == least or (open_ended and len(some) > least)}
        assert set(number[look.hits]) == found & stratum
        assert look.eligible is not None
        assert set(number[look.eligible]) == alone & stratum
        assert len(look.hits) == len(set(number[look.hits])), "one record of each"
    assert len(looks) >= 5
    assert len(units) == 150


def test_units_that_stand_one_record_after_the_other_are_found_by_loops() -> None:
    rng = np.random.default_rng(2)
    joint, released = draw_households(rng, 150), draw_households(rng, 120)
    # some of the data, each with its records in another order
    copied = joint[joint["household"] % 5 == 0].sample(frac=1, random_state=1).sort_values("household", kind="stable")
    released = pd.concat([released, copied.assign(household=lambda one: one["household"] + 1000)], ignore_index=True)
    cells, theirs = (mark_cells(cell_keys(as_microdata(one), NAMES), NAMES) for one in (joint, released))
    units = Units.from_codes(pd.factorize(joint["household"])[0])
    rows = row_keys(cell_keys(as_microdata(joint), NAMES), NAMES)
    sets = [ColumnSet(NAMES, "them")]
    looks = probe_units(
        cells, units, [(theirs, None)], sets, rows, np.argsort(rows), code_columns(joint, NAMES), [True]
    )
    mine, shown = compositions(joint), list(map(tuple, released[list(NAMES)].astype(str).to_numpy().tolist()))
    times = Counter(mine.values())
    windows = {tuple(sorted(shown[at : at + size])) for size in range(1, 7) for at in range(len(shown) - size + 1)}
    found = {k for k, some in mine.items() if times[some] == 1 and some in windows}
    whole = next(one for one in looks if one.who.startswith("all 150") and "one record after the other" in one.what)
    assert set(joint["household"].to_numpy()[whole.hits]) == found
    assert 0 < len(found) < sum(times[some] == 1 for some in mine.values())
    # rows in another order show no neighbours
    hidden = probe_units(
        cells, units, [(theirs, None)], sets, rows, np.argsort(rows), code_columns(joint, NAMES), [False]
    )
    assert not any("one record after the other" in one.what for one in hidden)


def test_units_with_the_rarest_records_together_are_those_that_chance_seldom_brings() -> None:
    """The number of each record is Poisson, with a Gamma mean from its smoothed share and the other households."""
    rng = np.random.default_rng(3)
    joint = draw_households(rng, 150)
    released = pd.concat([draw_households(rng, 90), joint[joint["household"] < 30]], ignore_index=True)
    names = (*NAMES, "age")
    looks, _ = probes(joint, released, names, is_numbered=False)
    mine, records = compositions(joint, names), len(joint)
    rows = Counter(row for some in mine.values() for row in some)
    row_of = list(map(tuple, joint[list(names)].astype(str).to_numpy().tolist()))
    smooth = RowShares(code_columns(joint, names), np.arange(records, dtype=np.uint64)).log_shares(names)
    share = dict(zip(row_of, np.exp(smooth), strict=True))
    chance = dict[int, float]()
    for k, some in mine.items():
        chance[k] = 1.0
        for row, times in Counter(some).items():
            shape = 3 + rows[row] - times
            mean = shape / (3 / (share[row] * len(released)) + records / len(released))
            chance[k] *= 1 - sum(np.exp(-mean) * mean**n / math.factorial(n) for n in range(times))
    alone = Counter(mine.values())
    expected = {k for k, some in mine.items() if len(some) > 1 and chance[k] <= 0.05 and alone[some] == 1}
    look = next(one for one in looks if one.who == RARELY_TOGETHER)
    assert look.eligible is not None
    assert look.eligible_weights is not None
    assert look.hit_weights is not None
    number = joint["household"].to_numpy()
    assert set(number[look.eligible]) == expected
    assert 0 < len(expected) < 150
    weights = dict(zip(look.eligible.tolist(), look.eligible_weights, strict=True))
    assert [weights[at] for at in look.hits.tolist()] == pytest.approx(list(look.hit_weights))
    for at, weight in weights.items():
        # that of the most powerful test of one copied unit in a hundred
        assert weight == pytest.approx(np.log(0.99 + 0.01 / chance[number[at]]) - np.log(0.99), abs=0.011)
    assert look.is_main


def test_counts_are_of_units_and_records_are_of_all_their_members() -> None:
    unit_of = np.array([0, 0, 1, 2, 2, 2, 3, 4, 4])
    look = MembershipProbe("all", "", np.array([3, 7]), np.array([0, 2, 3, 6, 7]), whole_units=True)
    found = count_probe(look, 6, 9, unit_of=unit_of)
    assert (found.n_members, found.n_eligible_members, found.n_controls, found.n_eligible_controls) == (1, 3, 1, 2)
    assert found.records.tolist() == [3, 4, 5]
    # Of rows those that are found are listed, and each unit counts once.
    rows = count_probe(MembershipProbe("all", "", np.array([0, 1, 4, 6])), 6, 9, unit_of=unit_of)
    assert (rows.n_members, rows.n_eligible_members, rows.n_controls, rows.n_eligible_controls) == (2, 3, 1, 2)
    assert rows.records.tolist() == [0, 1, 4]


def evidence_of_copies(share: float, seed: int) -> float:
    """Return p of the looks at whole units."""
    rng = np.random.default_rng(seed)
    data, controls = hold_out(draw_households(rng, 800), rng)
    released = copy_households(draw_households(rng, 400), data, share, rng)
    joint = pd.concat([data, controls], ignore_index=True)
    looks, units = probes(joint, released, (*NAMES, "age"), is_numbered=True)
    return weigh_evidence(looks, len(data), len(joint), 0.01, units.unit_of).p


def test_copied_households_are_found_and_honest_ones_at_the_level() -> None:
    assert max(evidence_of_copies(0.1, seed) for seed in range(5)) < 0.01
    assert np.mean([evidence_of_copies(0.0, seed) <= 0.05 for seed in range(60)]) < 0.13


def exchanged_p(seed: int, *, by_unit: bool, is_copied: bool = False) -> float:
    """Return p that drawn values are the records' own, in a release that draws a value of each household from its people."""
    rng = np.random.default_rng(seed)
    units = np.repeat(np.arange(200), 2)
    kept = rng.integers(0, 3, 400)
    # what the whole household keeps decides what is drawn of both, so that a row says something of the other
    own = (kept.reshape(-1, 2).sum(axis=1)[units] + 5 * (rng.random(200) < 0.3)[units]).astype(np.uint64)
    drawn = (kept.reshape(-1, 2).sum(axis=1)[units] + 5 * (rng.random(200) < 0.3)[units]).astype(np.uint64)
    column = code_by_value(JointColumn("x", own, [own if is_copied else drawn]))
    classes = kept.astype(np.uint64) + np.uint64(7)
    rows = classes * np.uint64(1_000_003) + own
    found = exchange_rows([column], classes, rows, 1, Units.from_codes(units) if by_unit else None)
    assert found is not None
    return found.p


def test_whole_units_are_exchanged_at_the_level() -> None:
    by_unit = np.array([exchanged_p(seed, by_unit=True) for seed in range(60)])
    assert np.mean(by_unit <= 0.05) < 0.13
    assert exchanged_p(1, by_unit=True, is_copied=True) < 0.01
    # The control: rows of equal kept values are not exchangeable where values follow from housemates.
    assert np.mean([exchanged_p(seed, by_unit=False) <= 0.05 for seed in range(20)]) > 0.9


def test_those_who_share_a_row_are_counted_by_unit() -> None:
    rng = np.random.default_rng(4)
    rows, codes = rng.integers(0, 12, 80).astype(np.uint64), rng.integers(0, 25, 80)
    units = Units.from_codes(codes)
    expected = [len({int(unit) for row, unit in zip(rows, codes, strict=True) if row == own}) for own in rows]
    assert count_sharing(rows, units).tolist() == expected
    assert count_sharing(rows, None).tolist() == [int((rows == own).sum()) for own in rows]


def test_a_housemate_is_no_nearest_other_person() -> None:
    frame = draw_households(np.random.default_rng(3), 80)
    data = as_microdata(frame)
    rows = row_keys(cell_keys(data, SCHEMA.non_identifiers), SCHEMA.non_identifiers)
    pairs = nearest_neighbour_pairs(data, ("region", "tenure"), rows)
    number = frame["household"].to_numpy()
    assert len(pairs.own) > 0
    assert not (number[pairs.own] == number[pairs.other]).any()


@pytest.mark.parametrize(
    ("label", "noun", "one"),
    [
        ("household", "households", "household"),
        ("household_id", "households", "household"),
        ("Number of the household", "households", "household"),
        ("patient", "patients", "patient"),
        ("person", "people", "person"),
        ("family", "families", "family"),
        ("hh", "units", "unit"),
        ("v17", "units", "unit"),
    ],
)
def test_nouns_of_units(label: str, noun: str, one: str) -> None:
    assert unit_noun(label) == noun
    assert singular_noun(noun) == one
