"""Matches in the own row and in rows of others with the same kept values: by brute force, and on releases with and without a leak."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matched_records import match_records

from sfumato.engine.data.microdata import Microdata, Origin
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.errors import NotComputable
from sfumato.engine.execution.wrong_matches import MOST, WrongMatches, count_wrong_matches
from sfumato.engine.matching.intruder import IntruderKnowledge
from sfumato.engine.matching.radius import Radius
from sfumato.engine.matching.strategies import MatchTargets, find_best_matches

SCHEMA = Schema((Variable("place", Kind.COUNT, Role.QUASI_IDENTIFIER), Variable("pay", Kind.COUNT, Role.SENSITIVE)))
NAMES = ("place", "pay")


def table(place: Any, pay: Any, origin: Origin = "confidential") -> Microdata:
    return Microdata(SCHEMA, pd.DataFrame({"place": np.asarray(place), "pay": np.asarray(pay)}), origin)


def count_pay_matches(place: Any, pay: Any, drawn: list[Any], radius: int = 0, order: Any = None) -> WrongMatches:
    """People of ``place`` and ``pay``, and datasets in which ``pay`` is ``drawn``."""
    own = table(place, pay)
    releases = [table(place, one, "synthetic") for one in drawn]
    near = {"pay": Radius.parse(radius)} if radius else {}
    candidates = [
        match_records(*IntruderKnowledge.from_variables(own, NAMES, near).keys_and_windows(one)).candidates.astype(
            float
        )
        for one in releases
    ]
    by = np.arange(len(own)) if order is None else order
    return count_wrong_matches(
        own, releases, NAMES, near, groups=np.asarray(place), order=by, candidates=candidates, beyond=0.9
    )


SMALL = st.lists(st.tuples(st.integers(0, 3), *[st.integers(0, 1)] * 3), min_size=1, max_size=9)


@pytest.mark.slow
@given(SMALL)
@settings(max_examples=200)
def test_every_exchange_by_hand(people: list[tuple[int, int, int, int]]) -> None:
    """In groups of at most five all moves of all groups are tried, and each time the people who are found are counted."""
    place, pay, *drawn = (np.array(column) for column in zip(*people, strict=True))
    groups = [np.flatnonzero(place == one) for one in np.unique(place)]
    if max(map(len, groups)) > MOST or not any(len(group) > 1 for group in groups):
        return
    counts = []
    for moves in product(*(range(len(group)) for group in groups)):
        rows = np.arange(len(place))
        for group, move in zip(groups, moves, strict=True):
            rows[group] = np.roll(group, -move)
        sure = np.zeros(len(place))
        for one in drawn:
            matching = (place[:, None] == place) & (pay[:, None] == one)
            sure += np.where(pay == one[rows], 1 / np.maximum(matching.sum(1), 1), 0)
        shared = np.isin(place, [place[group[0]] for group in groups if len(group) > 1])
        counts.append(int(((sure / 2 > 0.9) & shared).sum()))
    found = count_pay_matches(place, pay, drawn)
    assert found.own == counts[0]
    assert found.wrong == pytest.approx(np.mean(counts))
    assert found.p_value == pytest.approx(np.mean(np.array(counts) >= counts[0]))


def honest(rng: np.random.Generator, n: int = 4000, levels: int = 2, m: int = 5) -> tuple[Any, Any, list[Any]]:
    """Many small groups; pay follows the place, and is drawn m times from the same distribution as it came from."""
    place = rng.integers(0, n // 2, n)
    usual = np.random.default_rng(1).integers(0, levels, n // 2)[place]
    draw = lambda: np.where(rng.random(n) < 0.2, usual, rng.integers(0, levels, n))  # noqa: E731
    return place, draw(), [draw() for _ in range(m)]


@pytest.mark.slow
def test_people_who_are_found_by_chance_are_no_more_than_wrong_ones() -> None:
    rng = np.random.default_rng(2)
    found = [count_pay_matches(*honest(rng, m=3)) for _ in range(200)]
    p_values = np.array([one.p_value for one in found])
    assert np.mean([one.own for one in found]) > 3, "there is something to be found by chance"
    assert np.mean([one.own for one in found]) == pytest.approx(np.mean([one.wrong for one in found]), rel=0.1)
    assert (p_values <= 0.05).mean() <= 0.09
    assert (p_values <= 0.01).mean() <= 0.03
    assert (p_values <= 0.5).mean() > 0.3, "it is a test, and not a bound that is never reached"


@pytest.mark.parametrize(("share", "levels"), [(0.01, 12), (0.2, 12), (0.3, 2), (1.0, 2)])
def test_people_whose_values_are_copied_are(share: float, levels: int) -> None:
    rng = np.random.default_rng(3)
    place, pay, drawn = honest(rng, levels=levels)
    copied = rng.choice(len(pay), int(share * len(pay)), replace=False)
    for one in drawn:
        one[copied] = pay[copied]
    assert count_pay_matches(place, pay, drawn).p_value < 1e-3


def test_the_order_of_records_and_the_names_of_groups_change_nothing() -> None:
    rng = np.random.default_rng(4)
    place, pay, drawn = honest(rng, n=600)
    order = rng.permutation(600)
    mixed = rng.permutation(600)
    own = count_pay_matches(place, pay, drawn, order=mixed)
    others = count_pay_matches((9999 - place)[order], pay[order], [one[order] for one in drawn], order=mixed[order])
    assert (own.own, own.wrong, own.p_value) == pytest.approx((others.own, others.wrong, others.p_value))


def test_numbers_within_a_radius_are_found_too_and_nobody_is_where_all_are_alone() -> None:
    rng = np.random.default_rng(5)
    place = np.repeat(np.arange(200), 2)
    pay = rng.integers(1000, 9000, 400)
    near = [pay + rng.integers(-3, 4, 400) for _ in range(5)]
    far = [rng.integers(1000, 9000, 400) for _ in range(5)]
    assert count_pay_matches(place, pay, near, radius=5).p_value < 1e-6
    assert count_pay_matches(place, pay, far, radius=5).p_value == 1
    assert count_pay_matches(np.arange(400), pay, near, radius=5) == WrongMatches(0, 0.0, 1.0)


@pytest.mark.parametrize("places", [1, 2, 40])
def test_a_copy_is_found_in_groups_of_any_size_and_strangers_in_none(places: int) -> None:
    """People of a fully synthetic table are one group. A group that moved as a whole would have few exchanges, and a copy would pass as chance."""
    rng = np.random.default_rng(6)
    place, pay = rng.integers(0, places, 600), rng.permutation(600)
    copied = [np.where(rng.random(600) < 0.02, pay, 10_000 + pay)] * 3
    assert count_pay_matches(place, pay, copied).p_value < 1e-3
    assert count_pay_matches(place, pay, [rng.permutation(600) for _ in range(3)]).p_value > 0.05


def test_who_is_found_by_a_choice_of_variables_is_held_against_wrong_rows_by_the_same_choice() -> None:
    """Pairs of people; pay is drawn wrongly for all, a third variable keeps who is who: all that is known finds nobody, the choice everybody."""
    schema = Schema((*SCHEMA, Variable("mark", Kind.COUNT, Role.SENSITIVE)))
    n = 40
    place, pay, mark = np.arange(n) // 2, np.arange(n) % 3, np.arange(n) % 2

    def rows(pay: Any, mark: Any, origin: Origin = "confidential") -> Microdata:
        return Microdata(schema, pd.DataFrame({"place": place, "pay": pay, "mark": mark}), origin)

    own, names = rows(pay, mark), ("place", "pay", "mark")
    by_chance = np.where(place < 11, mark, 1 - mark)  # right in 11 of 20 pairs, exchanged in the others
    for shown, own_found, least, most in ((mark, n, 0, 0.001), (by_chance, 22, 0.3, 0.5)):
        release = rows((pay + 1) % 3, shown, "synthetic")
        keys = IntruderKnowledge.from_variables(own, names, {}).keys_by_variable(release)
        best = find_best_matches(keys, (n, n), MatchTargets(np.arange(n), np.arange(n)))[0]
        plain = match_records(
            *IntruderKnowledge.from_variables(own, names, {}).keys_and_windows(release)
        ).candidates.astype(float)
        found = count_wrong_matches(
            own, [release, release], names, {}, groups=place, order=np.arange(n), candidates=[plain, plain], beyond=0.9,
            best_candidates=[best.result.candidates.astype(float)] * 2,
        )  # fmt: skip
        assert best.strategy.ignored == ("pay",)
        assert found.own == own_found
        assert least <= found.p_value <= most


def test_another_choice_than_the_measure_s_is_refused() -> None:
    own = table([0, 0, 1, 1], [0, 1, 0, 1])
    release = table([0, 0, 1, 1], [1, 0, 1, 0], "synthetic")
    with pytest.raises(NotComputable, match="another choice"):
        count_wrong_matches(
            own, [release], NAMES, {}, groups=np.array([0, 0, 1, 1]), order=np.arange(4), candidates=[np.ones(4)],
            beyond=0.9, best_candidates=[np.ones(4)],
        )  # fmt: skip
