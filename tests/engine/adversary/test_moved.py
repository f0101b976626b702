"""One common change of numbers or dates is undone: who then stands in a release, by brute force, at its level, and with a leak."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.engine.adversary import moved
from sfumato.engine.adversary.coded import JointColumn
from sfumato.engine.adversary.membership_evidence import MembershipProbe, ProbeCounts, count_probe
from sfumato.engine.adversary.moved import probe_common_changes

Floats = NDArray[np.float64]
MEMBERS, RECORDS, ROWS = 420, 600, 420


def table(rng: np.random.Generator, n: int) -> tuple[Floats, Floats, NDArray[np.uint64]]:
    """Two amounts in whole units and a level of six."""
    return (
        np.round(rng.lognormal(10, 0.8, n)),
        np.round(rng.lognormal(9, 0.7, n)),
        rng.integers(0, 6, n).astype(np.uint64),
    )


def looked_at(
    own: tuple[Floats, Floats, NDArray[np.uint64]],
    made: tuple[Floats, Floats, NDArray[np.uint64]],
    dates: tuple[str, ...] = (),
) -> list[MembershipProbe]:
    one, other, levels = own
    columns = [
        JointColumn("income", levels, [made[2]], one, [made[0]]),
        JointColumn("spending", levels, [made[2]], other, [made[1]]),
    ]
    return probe_common_changes(columns, dates, levels, [made[2]])


def counts_of(looks: Sequence[MembershipProbe]) -> ProbeCounts:
    (look,) = looks
    return count_probe(look, MEMBERS, RECORDS)


def draw_multiplied_release(
    rng: np.random.Generator,
    own: tuple[Floats, Floats, NDArray[np.uint64]],
    copies: int,
    factor: float,
    digits: int = 12,
) -> tuple[Floats, Floats, NDArray[np.uint64]]:
    """Other people, and some members with both amounts multiplied."""
    made = table(rng, ROWS)
    some = rng.choice(MEMBERS, copies, replace=False)
    for at in (0, 1):
        made[at][:copies] = np.round(own[at][some] * factor, digits)
    made[2][:copies] = own[2][some]
    return made


def probabilities(copies: int, factor: float, digits: int = 12, repeats: int = 60) -> Floats:
    found = []
    for seed in range(repeats):
        rng = np.random.default_rng([seed, copies])
        own = table(rng, RECORDS)
        looks = looked_at(own, draw_multiplied_release(rng, own, copies, factor, digits))
        found.append(min((count_probe(one, MEMBERS, RECORDS).holdout_p for one in looks), default=1.0))
    return np.array(found)


@pytest.mark.parametrize("factor", [1.02, 0.01, 1.1])
@pytest.mark.parametrize("digits", [12, 2])
def test_members_whose_amounts_are_multiplied_are_found(factor: float, digits: int) -> None:
    rng = np.random.default_rng(3)
    own = table(rng, RECORDS)
    found = counts_of(looked_at(own, draw_multiplied_release(rng, own, 21, factor, digits)))
    assert found.n_members >= 21
    assert found.holdout_p < 0.01
    assert found.what == f"stand in the release once income and spending are divided by {factor:.4g}"


@pytest.mark.slow
def test_other_people_are_members_no_more_often_than_the_level_says_and_copies_are() -> None:
    assert np.mean(probabilities(0, 1.0, repeats=200) <= 0.05) <= 0.08
    assert np.mean(probabilities(21, 1.02) <= 0.01) > 0.95, "the control"


def test_what_is_found_is_what_a_search_by_hand_finds() -> None:
    rng = np.random.default_rng(8)
    own = table(rng, RECORDS)
    made = draw_multiplied_release(rng, own, 15, 1.25)
    by_hand = {
        i
        for i in range(RECORDS)
        for j in range(ROWS)
        if own[2][i] == made[2][j] and all(abs(made[at][j] / own[at][i] / 1.25 - 1) < 1e-6 for at in (0, 1))
    }
    found = counts_of(looked_at(own, made))
    assert set(found.records.tolist()) == {one for one in by_hand if one < MEMBERS}
    assert found.n_controls == sum(one >= MEMBERS for one in by_hand)


def test_dates_that_are_moved_by_the_same_days_are_found() -> None:
    rng = np.random.default_rng(4)
    own = table(rng, RECORDS)
    begin = rng.integers(10_000, 19_000, RECORDS).astype(float)
    stay = np.round(rng.exponential(400, RECORDS))
    dated = begin, begin + stay, own[2]
    fresh = rng.integers(10_000, 19_000, ROWS).astype(float)
    made = fresh, fresh + np.round(rng.exponential(400, ROWS)), rng.integers(0, 6, ROWS).astype(np.uint64)
    for at in (0, 1):
        made[at][:40] = dated[at][:40] + 17
    made[2][:40] = dated[2][:40]
    found = counts_of(looked_at(dated, made, ("income", "spending")))
    assert found.what == "stand in the release once income and spending are moved back by 17 days"
    assert set(range(40)) <= set(found.records.tolist())
    assert found.holdout_p < 0.01


def test_amounts_that_nobody_changed_are_left_to_others() -> None:
    rng = np.random.default_rng(5)
    own = table(rng, RECORDS)
    made = draw_multiplied_release(rng, own, 60, 1.0)
    assert all(len(one.hits) < 12 for one in looked_at(own, made))


def test_the_order_of_rows_changes_nothing() -> None:
    rng = np.random.default_rng(6)
    own = table(rng, RECORDS)
    made = draw_multiplied_release(rng, own, 21, 1.02)
    order = rng.permutation(ROWS)
    found, again = map(
        counts_of, (looked_at(own, made), looked_at(own, (made[0][order], made[1][order], made[2][order])))
    )
    assert (found.what, found.n_controls, found.records.tolist()) == (
        again.what,
        again.n_controls,
        again.records.tolist(),
    )


@pytest.mark.parametrize("empty", [0.0, np.nan, -5.0])
def test_columns_without_a_positive_number_say_nothing(empty: float) -> None:
    rng = np.random.default_rng(7)
    own, made = table(rng, RECORDS), table(rng, ROWS)
    made[0][:] = empty
    assert looked_at(own, made) == []


def test_ratios_that_everybody_has_say_nothing() -> None:
    rng = np.random.default_rng(9)
    one, _, levels = table(rng, RECORDS)
    theirs, _, of_rows = table(rng, ROWS)
    looks = looked_at((one, one * 2, levels), (theirs, theirs * 2, of_rows))
    assert all(count_probe(one, MEMBERS, RECORDS).holdout_p > 0.01 for one in looks)


def test_of_more_people_some_are_looked_at_who_are_chosen_by_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moved, "MOST_RECORDS", 300)
    rng = np.random.default_rng(10)
    own = table(rng, RECORDS)
    made = draw_multiplied_release(rng, own, 120, 1.02)
    found = counts_of(looked_at(own, made))
    assert found.n_eligible_members + found.n_eligible_controls in (300, 301)
    assert 40 < found.n_members < 85
    assert found.holdout_p < 0.01
    assert found.who.endswith("chosen by their values")


def test_amounts_written_in_single_precision_or_to_five_digits_are_found() -> None:
    rng = np.random.default_rng(12)
    own = table(rng, RECORDS)
    made = draw_multiplied_release(rng, own, 40, 1.02)
    single = [one.astype(np.float32).astype(np.float64) for one in made[:2]]
    five = [np.array([float(f"{number:.5g}") for number in one]) for one in made[:2]]
    for one, other in (single, five):
        found = counts_of(looked_at(own, (one, other, made[2])))
        assert found.n_members >= 40
        assert found.holdout_p < 0.01
