"""Unique people in a release, by set of columns: probes and tests of rows are what loops over tuples of values count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from sfumato.engine.adversary.coded import JointColumn
from sfumato.engine.adversary.people import (
    MOST_LEFT_OUT,
    LevelGroup,
    PeopleInRelease,
    find_people_in_release,
    list_column_sets,
    list_level_groups,
    mark_cells,
    rarity_strata,
)

NAMES = ("a", "b", "c")
PEOPLE, ROWS = 150, 130
Table = Mapping[str, np.ndarray]


def draw(rng: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
    return {name: rng.geometric(0.3, rows).astype(np.uint64) for name in NAMES}


def tuples(table: Table, names: Sequence[str]) -> list[tuple[int, ...]]:
    return list(zip(*(table[name].tolist() for name in names), strict=True))


def find(
    own: Table, releases: Sequence[Table], order: np.ndarray, groups: Sequence[LevelGroup] = ()
) -> PeopleInRelease:
    subsets = list_column_sets(NAMES, (), NAMES[:2], NAMES[2:])
    return find_people_in_release(
        mark_cells(own, NAMES), [mark_cells(one, NAMES) for one in releases], subsets, order, groups
    )


def unique_people(own: Table, names: Sequence[str]) -> set[int]:
    rows = tuples(own, names)
    return {i for i, row in enumerate(rows) if rows.count(row) == 1}


def with_repeats(own: Table, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw a dataset in which the people 0 to 5 stand 1, 2, 3, 5, 10 and 20 times."""
    made, again = draw(rng, ROWS), np.repeat(np.arange(6), (1, 2, 3, 5, 10, 20))
    return {name: np.concatenate([made[name], own[name][again]]) for name in NAMES}


@pytest.mark.parametrize(("datasets", "most"), [(1, None), (2, 2), (3, 2), (4, 2), (5, 3)])
def test_probes_of_unique_people_are_what_loops_find(datasets: int, most: int | None) -> None:
    rng = np.random.default_rng(datasets)
    own = draw(rng, PEOPLE)
    for name in NAMES:
        own[name][:6] = np.arange(100, 106)
    releases = [with_repeats(own, rng), *(draw(rng, ROWS) for _ in range(datasets - 1))]
    order = rng.permutation(PEOPLE)
    group = np.flatnonzero(own["a"] == 2)
    found = find(own, releases, order, [LevelGroup("of a group", group)])
    expected = set()
    for one in list_column_sets(NAMES, (), NAMES[:2], NAMES[2:]):
        rows, lone = tuples(own, one.names), unique_people(own, one.names)
        if not lone:
            continue
        counted = [Counter(tuples(made, one.names)) for made in releases]
        times = {i: [count[rows[i]] for count in counted] for i in lone}
        what = f"who are alone with their values in {one.label}"

        def probe(who: str, how: str, hits: set[int], eligible: set[int], copies: bool) -> tuple[object, ...]:
            return who, how, frozenset(hits), frozenset(eligible), copies, False

        there = {i for i in lone if max(times[i])}
        for who, size in rarity_strata(PEOPLE):
            rarest = set(order[:size].tolist())
            expected.add(probe(who, f"{what} stand in the release", there & rarest, lone & rarest, True))
        for k in (2, 3, 5, 10, 20, 50):
            if often := {i for i in lone if max(times[i]) >= k}:
                how = f"{what} stand in {k} rows of a dataset or more"
                expected.add(probe(f"all {PEOPLE} people", how, often, lone, False))
        if most is not None:
            again = {i for i in lone if sum(n > 0 for n in times[i]) >= most}
            how = f"{what} stand in {most} of the datasets or more"
            expected.add(probe(f"all {PEOPLE} people", how, again, lone, False))
        if len(one.names) == len(NAMES):
            some = set(group.tolist())
            how = f"{what} stand in the release"
            expected.add(probe("the people of a group", how, there & some, lone & some, True))
    shown = [
        (p.who, p.what, frozenset(p.hits.tolist()), frozenset((() if p.eligible is None else p.eligible).tolist()), p.shows_copies, p.is_main)
        for p in found.probes
    ]  # fmt: skip
    assert set(shown) == expected
    assert len(shown) == len(expected)
    assert any("20 rows" in str(p[1]) for p in expected)


def test_rows_on_some_columns_are_held_against_all_pairs_of_both_tables() -> None:
    rng = np.random.default_rng(7)
    own, releases = draw(rng, PEOPLE), [draw(rng, ROWS) for _ in range(3)]
    found = find(own, releases, rng.permutation(PEOPLE))
    expected = []
    for one in list_column_sets(NAMES, (), NAMES[:2], NAMES[2:]):
        if len(one.names) == len(NAMES):
            continue
        rows, lone = tuples(own, one.names), unique_people(own, one.names)
        for made in releases:
            count = Counter(tuples(made, one.names))
            met = sorted(i for i in lone if count[rows[i]] == 1)
            pairs = sum(n == 2 for n in (*Counter(rows).values(), *count.values()))
            expected += [(one.label, "some columns", met, pairs)] if lone else []
    assert [(t.what, t.kind, t.records.tolist(), t.n_pairs) for t in found.row_tests] == expected
    assert sum(len(met) > 1 < pairs for _, _, met, pairs in expected) > 4


def test_a_table_without_unique_people_has_no_probe() -> None:
    own = {name: np.repeat(np.arange(20, dtype=np.uint64), 2) for name in NAMES}
    found = find(own, [own], np.arange(40))
    assert (found.probes, found.row_tests) == ((), ())


def test_the_strata_of_rarity_are_fixed_numbers_shares_and_all() -> None:
    def sizes(records: int) -> list[int]:
        return [size for _, size in rarity_strata(records)]

    assert sizes(10_000) == [25, 60, 100, 200, 500, 1_000, 2_000, 5_000, 10_000]
    assert sizes(1_000) == [20, 25, 50, 60, 100, 200, 500, 1_000], "nobody looks at the ten rarest"
    assert sizes(100) == [20, 25, 50, 100], "60 are more than half"
    assert sizes(50) == [25, 50]
    assert sizes(30) == [30]
    assert rarity_strata(1_500)[0][0] == "the 25 rarest people"
    assert rarity_strata(1_500)[-1][0] == "all 1,500 people"


def test_a_group_of_a_level_has_twelve_people_or_more_and_a_fifth_of_them_at_most() -> None:
    def groups(*sizes: int, numbers: bool = False) -> list[tuple[str, list[int]]]:
        values = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)
        column = JointColumn("job", values, [values], values.astype(float) if numbers else None)
        return [(one.label, one.records.tolist()) for one in list_level_groups([column])]

    label = "with one value of job"
    assert groups(11, 12, 20, 21, 36) == [(label, list(range(11, 23))), (label, list(range(23, 43)))]
    assert groups(12, 88, numbers=True) == []


def names_of(found: Sequence[object]) -> list[str]:
    return ["".join(one.names) for one in found]  # type: ignore[attr-defined]


def test_the_sets_of_columns_are_those_that_their_description_lists() -> None:
    found = list_column_sets("abcxyz", "xyz", "ab", "cx")
    assert names_of(found) == [
        "abcxyz",
        "bcxyz", "acxyz", "abxyz", "abcyz", "abcxz", "abcxy",
        "abc", "bc", "ac", "ab",
        "xyz",
        "abcz", "abcy", "abcx", "abx",
        "cx",
    ]  # fmt: skip
    assert found[12].label == "all columns but x and y"
    keyed = list_column_sets("abcx", "x", "ab", "cx")
    assert names_of(keyed) == ["abcx", "bcx", "acx", "abx", "abc", "bc", "ac", "ab", "cx"]
    large = list_column_sets("abcxyz", "xyz", "ax", "cy", 200_001)
    assert names_of(large) == [
        "abcxyz", "bcxyz", "acxyz", "abxyz", "abcyz", "abcxz", "abcxy", "abc", "xyz", "ax", "axc", "axy", "cy",
    ]  # fmt: skip
    assert len(list_column_sets("abcxyz", "xyz", "ax", "cy", 200_000)) > len(large)


def test_few_columns_have_few_sets_and_a_single_column_has_one() -> None:
    assert names_of(list_column_sets("ax", "x", "a", "x")) == ["ax"]
    assert names_of(list_column_sets("a", "", "a", "")) == ["a"]
    assert names_of(list_column_sets("axy", "xy", "", "a")) == ["axy", "xy", "ay", "ax"]
    assert names_of(list_column_sets("abc", "", "", "")) == ["abc", "bc", "ac", "ab"]


def test_pairs_of_the_first_ten_numbers_are_left_out() -> None:
    names = [f"n{i}" for i in range(14)]
    found = list_column_sets(names, names, (), ())
    out = [set(names) - set(one.names) for one in found]
    left = {frozenset(one) for one in out if len(one) == 2}
    assert len(left) == MOST_LEFT_OUT * (MOST_LEFT_OUT - 1) // 2 == 45
    assert set().union(*left) == set(names[:MOST_LEFT_OUT])
