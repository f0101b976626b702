"""People who stand in a release are found, people of the same population are not; order, names and spelling change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.adversary.agreement import find_reproduced_people
from sfumato.engine.adversary.cells import cell_keys, comparable_numbers, row_keys
from sfumato.engine.adversary.coded import JointColumn, code_by_value, log_value_shares, order_rarest_first
from sfumato.engine.adversary.copies import count_members_with_released_row
from sfumato.engine.adversary.disguise import find_disguise, functional_dependence
from sfumato.engine.adversary.evidence import CONTENT_LEVEL, EVIDENCE_LEVEL, holdout_probability
from sfumato.engine.adversary.independent_rows import find_whole_rows, strongest_row_evidence
from sfumato.engine.adversary.membership_evidence import (
    MembershipEvidence,
    MembershipProbe,
    ProbeCounts,
    count_probe,
    weigh_evidence,
)
from sfumato.engine.adversary.people import (
    ColumnSet,
    PeopleInRelease,
    _column_set_probes,
    find_people_in_release,
    list_column_sets,
    mark_cells,
)
from sfumato.engine.adversary.renamed import code_by_cooccurrence
from sfumato.engine.adversary.single_values import probe_extreme_values, probe_unique_values
from sfumato.engine.adversary.unanimous import find_homogeneous_classes, nearest_members
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable

SCHEMA = Schema(
    (
        Variable("region", Kind.CATEGORICAL),
        Variable("job", Kind.CATEGORICAL),
        Variable("visits", Kind.COUNT),
        Variable("income", Kind.CONTINUOUS),
    )
)
NAMES = SCHEMA.names
NUMBERS = ("visits", "income")
MEMBERS, CONTROLS = 400, 100


def people(seed: int, n: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    region = rng.geometric(0.3, n) % 9
    return pd.DataFrame(
        {
            "region": [f"r{i}" for i in region],
            "job": [f"j{i}" for i in (region + rng.geometric(0.3, n)) % 12],
            "visits": rng.poisson(2 + region),
            "income": np.round(np.exp(rng.normal(7 + 0.1 * region, 0.5, n)), -1),
        }
    )


MINE, OTHERS = people(1, MEMBERS + CONTROLS), people(2, 4 * MEMBERS)


def table(frame: pd.DataFrame) -> Microdata:
    return conform_to_schema(frame.reset_index(drop=True), SCHEMA)


def columns(mine: pd.DataFrame, releases: Sequence[pd.DataFrame]) -> list[JointColumn]:
    own, made = table(mine), [table(one) for one in releases]
    cells, theirs = cell_keys(own, NAMES), [cell_keys(one, NAMES, own) for one in made]
    return [
        JointColumn(
            name,
            cells[name],
            [one[name] for one in theirs],
            comparable_numbers(own, name) if name in NUMBERS else None,
            [comparable_numbers(one, name, own) for one in made] if name in NUMBERS else (),
        )
        for name in NAMES
    ]


def rows(found: Sequence[JointColumn]) -> np.ndarray:
    return np.sum(list(mark_cells({one.name: one.own for one in found}, NAMES).values()), axis=0, dtype=np.uint64)


def order_of(found: Sequence[JointColumn]) -> np.ndarray:
    return order_rarest_first(log_value_shares([code_by_value(one) for one in found]), rows(found))


def look(mine: pd.DataFrame, *releases: pd.DataFrame) -> PeopleInRelease:
    found = columns(mine, releases)
    own = mark_cells({one.name: one.own for one in found}, NAMES)
    made = [mark_cells({one.name: one.released[i] for one in found}, NAMES) for i in range(len(releases))]
    return find_people_in_release(own, made, list_column_sets(NAMES, NUMBERS, NAMES[:2], NAMES[2:]), order_of(found))


def stand(mine: pd.DataFrame, *releases: pd.DataFrame) -> Sequence[MembershipProbe]:
    return look(mine, *releases).probes


def near(mine: pd.DataFrame, *releases: pd.DataFrame, recoded: bool = False) -> list[MembershipProbe]:
    found = columns(mine, releases)
    coded = code_by_cooccurrence(found) if recoded else [code_by_value(one) for one in found]
    return find_reproduced_people(coded, order_of(found), rows(found), "by value")


def weigh(looks: Sequence[MembershipProbe]) -> MembershipEvidence:
    return weigh_evidence(looks, MEMBERS, MEMBERS + CONTROLS, CONTENT_LEVEL)


def p(looks: Sequence[MembershipProbe]) -> float:
    return weigh(looks).p


@given(st.integers(1, 6), st.integers(1, 4), st.data())
def test_the_probability_of_the_members_found_is_that_of_all_ways_to_hold_out(
    n: int, c: int, data: st.DataObject
) -> None:
    shown = data.draw(st.integers(0, n + c))
    of_members = data.draw(st.integers(max(0, shown - c), min(n, shown)))
    seen = [sum(i < shown for i in members) >= of_members for members in combinations(range(n + c), n)]
    assert holdout_probability(of_members, n, shown - of_members, c) == pytest.approx(np.mean(seen))


@pytest.mark.slow
def test_whole_copies_of_ten_people_are_found_and_ten_others_are_not() -> None:
    """No hold-out of a fifth shows ten people: it holds none of them with probability .11. Rows alone do, and the hold-out agrees."""
    incomes = np.random.default_rng(7).permutation(np.arange(1000, 9000, dtype=float))
    mine = MINE.assign(income=incomes[: len(MINE)])
    others = fresh().assign(income=incomes[len(MINE) :][:MEMBERS])
    copied = pd.concat([mine[:10], others[10:]])
    found = weigh_with_rows(mine, copied)
    assert found.p <= EVIDENCE_LEVEL
    assert found.p_by_labels > EVIDENCE_LEVEL
    assert found.strongest_counts is not None
    assert weigh_with_rows(mine, others).p > EVIDENCE_LEVEL
    swapped = pd.concat([mine[10:], mine[:10]])
    assert weigh_with_rows(swapped, copied).p > EVIDENCE_LEVEL, "rows of hold-out people are no finding"


def weigh_with_rows(mine: pd.DataFrame, released: pd.DataFrame) -> MembershipEvidence:
    some = columns(mine, (released,))
    rows_alone = strongest_row_evidence(find_whole_rows(some, [code_by_value(one) for one in some]))
    return weigh_evidence(stand(mine, released), MEMBERS, MEMBERS + CONTROLS, EVIDENCE_LEVEL, rows=rows_alone)


def fresh(seed: int = 0) -> pd.DataFrame:
    return OTHERS.sample(MEMBERS, random_state=seed)


def with_copies(count: int) -> pd.DataFrame:
    return pd.concat([MINE[:count], fresh()[count:]])


def test_people_of_the_same_population_are_no_finding_and_forty_copied_ones_are() -> None:
    assert p(stand(MINE, fresh())) > CONTENT_LEVEL
    found = weigh(stand(MINE, with_copies(40)))
    assert found.p <= 0.001
    assert found.strongest_counts is not None
    assert found.strongest_counts.n_controls <= 2
    assert len(set(range(40)) & set(found.strongest_counts.records.tolist())) >= 30


def test_controls_that_are_copied_in_place_of_members_are_no_finding() -> None:
    """The negative control: the same release, with the hold-out's labels on the copied records."""
    swapped = pd.concat([MINE[CONTROLS:], MINE[:CONTROLS]])
    assert p(stand(swapped, with_copies(CONTROLS))) > CONTENT_LEVEL
    assert p(near(swapped, with_copies(CONTROLS))) > CONTENT_LEVEL


@pytest.mark.slow
def test_of_releases_without_a_leak_at_most_the_level_is_found() -> None:
    drawn = np.random.default_rng(3)
    both = pd.concat([MINE, OTHERS], ignore_index=True)
    least = []
    for _ in range(120):
        some = both.iloc[drawn.permutation(len(both))]
        mine, made = some[: MEMBERS + CONTROLS], some[MEMBERS + CONTROLS :][:MEMBERS]
        least.append(p([*stand(mine, made), *near(mine, made)]))
    assert np.mean(np.array(least) <= 0.05) <= 0.1
    assert np.mean(np.array(least) <= CONTENT_LEVEL) <= 0.04


@pytest.mark.slow
def test_order_and_names_change_nothing() -> None:
    release = with_copies(40)
    shuffled = release.sample(frac=1, random_state=5)
    mine = pd.concat([MINE[:MEMBERS].sample(frac=1, random_state=6), MINE[MEMBERS:].sample(frac=1, random_state=7)])
    for found in (stand, near):
        ours, theirs = weigh(found(MINE, release)), weigh(found(mine, shuffled))
        assert ours.strongest_counts is not None
        assert theirs.strongest_counts is not None
        assert (ours.p, ours.n_permutations, ours.n_objecting) == (theirs.p, theirs.n_permutations, theirs.n_objecting)
        assert (ours.strongest_counts.n_members, ours.strongest_counts.what) == (
            theirs.strongest_counts.n_members,
            theirs.strongest_counts.what,
        )


def test_noise_and_swapped_cells_hide_nobody() -> None:
    rng = np.random.default_rng(4)
    copied = MINE[:MEMBERS].assign(income=lambda one: one["income"] * (1 + rng.normal(0, 0.03, MEMBERS)))
    flipped = rng.random(MEMBERS) < 0.2
    copied["job"] = np.where(flipped, copied["job"].to_numpy()[rng.permutation(MEMBERS)], copied["job"])
    assert p(near(MINE, copied)) <= 0.001
    assert p(near(MINE, fresh())) > CONTENT_LEVEL


def test_a_monotone_or_one_to_one_recoding_hides_nobody() -> None:
    levels = sorted(set(MINE["job"]) | set(OTHERS["job"]))
    other = dict(zip(levels, reversed(levels), strict=True))

    def recoded(one: pd.DataFrame) -> pd.DataFrame:
        return one.assign(income=np.sqrt(one["income"]), visits=one["visits"] * 2 + 1, job=one["job"].map(other))

    assert p(near(MINE, recoded(MINE[:MEMBERS]), recoded=True)) <= 0.001
    assert p(near(MINE, recoded(fresh()), recoded=True)) > CONTENT_LEVEL


def test_each_two_of_three_levels_are_looked_at_together() -> None:
    sets = {frozenset(one.names) for one in list_column_sets("abcd", "d", "ab", "c")}
    assert {frozenset(two) for two in combinations("abc", 2)} <= sets
    assert frozenset("ad") not in sets


def test_common_rows_that_a_model_draws_too_often_are_no_copies_of_members() -> None:
    rng = np.random.default_rng(11)

    def of(frame: pd.DataFrame, names: Sequence[str] = NAMES[:2]) -> np.ndarray:
        return row_keys(cell_keys(table(frame), names), names)

    common = OTHERS.groupby(["region", "job"], sort=False).filter(lambda one: len(one) >= 12)
    concentrated = common.iloc[rng.integers(0, len(common), MEMBERS)]
    assert np.isin(of(concentrated), of(MINE[:MEMBERS])).mean() > np.isin(of(fresh()), of(MINE[:MEMBERS])).mean()
    assert count_members_with_released_row(of(MINE), MEMBERS, [of(concentrated)]).holdout_p > 0.05
    copy = count_members_with_released_row(of(MINE, NAMES), MEMBERS, [of(MINE[:MEMBERS], NAMES)])
    assert (copy.n_members, copy.holdout_p < 1e-4) == (MEMBERS, True)


def test_lone_and_extreme_values_are_held_against_those_of_controls() -> None:
    def values(release: pd.DataFrame, what: str) -> ProbeCounts:
        one = next(one for one in columns(MINE, [release]) if one.name == "income")
        assert one.numbers is not None
        if what == "lone":
            found = probe_unique_values("income", one.own, one.released)
        else:
            found = probe_extreme_values("income", one.own, one.numbers, MEMBERS, one.released, 40, ())
        return count_probe(found, MEMBERS, MEMBERS + CONTROLS)

    for what in ("lone", "extreme"):
        copied, honest = values(MINE[:MEMBERS], what), values(fresh(), what)
        assert copied.n_members == copied.n_eligible_members
        assert copied.holdout_p < 0.01 < honest.holdout_p


def test_heaped_values_are_no_extremes() -> None:
    heaped = MINE.assign(income=np.where(MINE["income"] > 1500, 9999.0, MINE["income"]))
    one = next(one for one in columns(heaped, [heaped[:MEMBERS]]) if one.name == "income")
    assert one.numbers is not None
    found = probe_extreme_values("income", one.own, one.numbers, MEMBERS, one.released, 10, ())
    assert (heaped["income"].iloc[found.hits] < 9999).all()


@pytest.mark.parametrize(
    ("of", "function"),
    [("income", np.sqrt), ("income", lambda v: -3 * v + 1), ("job", lambda v: v.map(hash)), ("visits", lambda v: v.map(str) + "x")],
)  # fmt: skip
def test_a_function_of_a_column_says_the_column(of: str, function: object) -> None:
    written = function(MINE[of])  # type: ignore[operator]
    kind = Kind.CONTINUOUS if np.issubdtype(np.asarray(written).dtype, np.floating) else Kind.CATEGORICAL
    other = conform_to_schema(pd.DataFrame({"code": written}), Schema((Variable("code", kind),)))
    own = table(MINE)
    numbers = other.numbers("code") if kind is Kind.CONTINUOUS else None
    secret = own.numbers(of) if of in NUMBERS else None
    seen = find_disguise("code", of, cell_keys(other, ("code",))["code"], cell_keys(own, (of,))[of], numbers, secret)
    assert seen is not None
    assert len(seen.records) > 0.9 * len(MINE)


def test_related_and_unique_columns_are_no_disguise() -> None:
    own, cells = table(MINE), cell_keys(table(MINE), NAMES)
    for name, of in (("region", "job"), ("job", "region"), ("visits", "job"), ("income", "visits")):
        numbers, secret = (own.numbers(one) if one in NUMBERS else None for one in (name, of))
        assert find_disguise(name, of, cells[name], cells[of], numbers, secret) is None
    rng = np.random.default_rng(1)
    first, second = (rng.permutation(500).astype(np.uint64) for _ in range(2))
    assert find_disguise("a", "b", first, second, first.astype(float), second.astype(float)) is None


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_what_follows_from_a_column_is_what_counting_finds(pairs: list[tuple[int, int]]) -> None:
    cells, secret = (np.array(part, dtype=np.uint64) for part in zip(*pairs, strict=True))
    groups: dict[int, list[int]] = {}
    for a, b in pairs:
        groups.setdefault(a, []).append(b)
    large = [one for one in groups.values() if len(one) > 1]
    most = sum(max(one.count(b) for b in one) for one in large if max(one.count(b) for b in one) > 1)
    # of values equally frequent in a group all count as its most frequent
    share = functional_dependence(cells, secret)[0]
    total = sum(map(len, large))
    assert share >= (most / total if total else 0.0) - 1e-12


@pytest.mark.parametrize(("datasets", "least"), [(2, 2), (3, 2), (4, 2), (5, 3), (7, 4)])
def test_who_stands_in_half_of_the_datasets_is_a_probe(datasets: int, least: int) -> None:
    """Person k stands in the first k of the datasets, once in each."""
    lone = np.arange(datasets + 1)
    times = [(lone > at).astype(np.int64) for at in range(datasets)]
    looks = _column_set_probes(
        ColumnSet(("age", "sex"), "all columns"), [("all people", len(lone))], lone, times, lone[::-1].copy()
    )
    some, half = looks
    assert sorted(some.hits.tolist()) == list(range(datasets)), "all but the one who stands in none"
    assert half.what.endswith(f"stand in {least} of the datasets or more")
    assert some.columns == half.columns == ("age", "sex"), "what is compared is named"
    assert sorted(datasets - half.hits) == list(range(least, datasets + 1))
    assert half.eligible is not None
    assert sorted(half.eligible.tolist()) == lone.tolist()


def test_classes_of_one_value_count_beyond_what_holds_of_people_like_them() -> None:
    classes = np.repeat(np.arange(20), 5)
    values = np.repeat(np.arange(20) % 7, 5).astype(np.uint64)
    controls = np.arange(20) % 7
    taught = find_homogeneous_classes(classes, values, np.arange(20), controls.astype(np.uint64))
    assert (taught.n_people, taught.baseline, taught.excess) == (100, 1.0, 0.0)
    other = find_homogeneous_classes(classes, values, np.arange(20), ((controls + 1) % 7).astype(np.uint64))
    assert (other.n_people, other.baseline, other.excess) == (100, 0.0, 1.0)
    mixed = values.copy()
    mixed[::5] += np.uint64(1)
    assert find_homogeneous_classes(classes, mixed).n_people == 0


def test_the_nearest_member_is_the_one_that_loops_find() -> None:
    rng = np.random.default_rng(8)
    age, sex = rng.random(30), rng.integers(0, 2, 30).astype(float)
    found = nearest_members([(age, False), (sex, True)], 20)
    slow = [min(range(20), key=lambda j, i=i: abs(age[i] - age[j]) + (sex[i] != sex[j])) for i in range(20, 30)]
    assert found.tolist() == slow


@pytest.mark.parametrize(("members", "work", "asked"), [(1, 3, 3), (1, 2, 2), (2, 5, 2), (4, 2, 1)])
def test_so_many_controls_are_compared_as_there_is_time_for_and_one_at_least(
    members: int, work: int, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.engine.adversary.unanimous.MOST_WORK", work)
    levels = np.zeros(members + 3)
    assert len(nearest_members([(levels, True)], members)) == asked
