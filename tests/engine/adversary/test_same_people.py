"""Whether two tables are of the same people: by columns that identify, against brute force, and never by chance."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from households import SCHEMA, as_microdata, draw_households
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.adversary.cells import cell_keys, row_keys
from sfumato.engine.adversary.same_people import (
    LARGEST_CHANCE,
    LEAST_DENSITY,
    agree_at_numbers,
    common_column_sets,
    compare_identifiers,
    compare_record_rows,
    density_of_identifier,
    identifies_most,
    is_enumerated,
    is_enumeration,
    numbers_people,
)
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Schema, Variable

Rows = list[tuple[int, int]]
TABLES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=14)


def keys(rows: Rows) -> np.ndarray:
    schema = Schema((Variable("a", Kind.COUNT), Variable("b", Kind.COUNT)))
    data = conform_to_schema(pd.DataFrame(rows, columns=["a", "b"]), schema)
    return row_keys(cell_keys(data, ("a", "b")), ("a", "b"))


@pytest.mark.slow
@given(TABLES, TABLES)
def test_the_overlap_is_what_counting_finds(ours: Rows, theirs: Rows) -> None:
    found = compare_record_rows(("a", "b"), keys(ours), keys(theirs))
    mine, others = Counter(ours), Counter(theirs)
    assert found.only_in_first.tolist() == [i for i, row in enumerate(ours) if others[row] < mine[row]]
    assert found.n_only_in_second == sum(mine[row] < others[row] for row in theirs)
    assert found.n_unique_in_first == sum(count == 1 for count in mine.values())
    assert found.n_common == sum(mine[row] == others[row] == 1 for row in mine)
    assert identifies_most(keys(ours)) is (2 * found.n_unique_in_first > len(ours))
    back = compare_record_rows(("a", "b"), keys(theirs), keys(ours))
    assert (back.n_common, back.n_unique_in_first, back.n_unique_in_second) == (
        found.n_common,
        found.n_unique_in_second,
        found.n_unique_in_first,
    )
    assert back.are_same is found.are_same, "in whatever order the tables are compared"
    assert compare_record_rows(("a", "b"), keys(ours[::-1]), keys(theirs)).are_same is found.are_same


@pytest.mark.slow
@given(TABLES, TABLES)
def test_an_identifier_counts_people_however_many_records_they_have(ours: Rows, theirs: Rows) -> None:
    found = compare_identifiers(("a", "b"), keys(ours), keys(theirs))
    assert found.n_common == len(set(ours) & set(theirs))
    assert (found.n_unique_in_first, found.n_unique_in_second) == (len(set(ours)), len(set(theirs)))
    assert found.only_in_first.tolist() == [i for i, row in enumerate(ours) if row not in theirs]
    assert found.are_same is (2 * found.n_common > min(len(set(ours)), len(set(theirs))))


def draw_people(count: int, cells: int, rng: np.random.Generator, skew: float) -> np.ndarray:
    """People of a population whose values are of so many cells, of which some are larger."""
    chances = np.arange(1, cells + 1) ** -skew
    return rng.choice(cells, count, p=chances / chances.sum()).astype(np.uint64)


@pytest.mark.parametrize("skew", [0.0, 0.3, 0.8])
@pytest.mark.parametrize(("here", "there"), [(30, 30), (400, 400), (100, 2_000)])
def test_other_people_of_one_population_are_never_the_same(skew: float, here: int, there: int) -> None:
    """Whatever the number of cells is: exactly one of other people has a record's values with probability 1/e at most."""
    rng, wrong, largest = np.random.default_rng(1), 0, 0.0
    for cells in np.geomspace(10, 10 * there, 12).astype(int):
        for _ in range(25):
            ours, theirs = draw_people(here, cells, rng, skew), draw_people(there, cells, rng, skew)
            found = compare_record_rows(("a",), ours, theirs)
            wrong += found.are_same
            if found.n_unique_in_first >= 50:
                largest = max(largest, found.share_of_first)
    assert wrong == 0
    assert largest < LARGEST_CHANCE + 0.2


def test_a_small_table_within_a_large_one_is_of_the_same_people() -> None:
    everybody = np.arange(10_000, dtype=np.uint64)
    found = compare_record_rows(("a",), everybody[:60], everybody)
    assert found.are_same
    assert (found.share_of_first, found.share_of_second) == (1.0, 60 / 10_000)
    assert not compare_record_rows(("a",), everybody[:60], everybody[40:]).are_same, "20 of 60"
    assert not compare_record_rows(("a",), everybody[:5], everybody).are_same, "too few to tell from chance"


def column(values: list[object], kind: Kind) -> Microdata:
    return conform_to_schema(pd.DataFrame({"a": values}), Schema((Variable("a", kind),)))


def test_numbers_of_rows_identify_nobody() -> None:
    rng = np.random.default_rng(3)
    assert is_enumeration(rng.permutation(np.arange(1.0, 101)))
    assert is_enumeration(np.arange(0, 700.0, 7)), "every week"
    assert is_enumeration(np.sort(rng.choice(2_000, 1_200, replace=False)).astype(float)), "without a hold-out"
    assert not is_enumeration(rng.choice(100_000, 1_000, replace=False).astype(float))
    assert not is_enumeration(rng.integers(18, 90, 300).astype(float))
    assert not is_enumeration(rng.lognormal(10, 0.5, 300))
    assert is_enumerated(column([f"P{i:03}" for i in range(200)], Kind.CATEGORICAL), "a")
    assert is_enumerated(column([f"{i}" for i in range(200)], Kind.CATEGORICAL), "a")
    assert not is_enumerated(column([f"{i:08x}" for i in rng.choice(2**31, 200)], Kind.CATEGORICAL), "a")
    assert not is_enumerated(column(["f", "m"] * 20, Kind.CATEGORICAL), "a")


def test_all_columns_come_first_and_few_sets_are_tried_of_large_tables() -> None:
    few = list(common_column_sets(("id", "year", "pay"), {"pay"}, {"id"}, 1_000))
    assert few[:3] == [("id", "year", "pay"), ("id", "year"), ("id",)]
    assert len(few) == len(set(few)) == 7
    names = tuple("abcdefghij")
    many = list(common_column_sets(names, {"j"}, {"a", "b", "c", "d"}, 1_000))
    assert many[0] == names
    assert ("a", "b", "c") in many
    assert ("b", "d") in many
    assert list(common_column_sets(names, {"j"}, {"a", "b", "c", "d"}, 20_000_000)) == many[:3]


def test_runs_are_numbered_alike_in_all_files() -> None:
    unit = Variable("unit", Kind.COUNT, Role.UNIT, runs_of=("a",))
    data = Microdata(Schema((unit,)), pd.DataFrame({"unit": np.repeat(np.arange(1, 51), 3)}), "confidential")
    assert is_enumerated(data, "unit")
    assert not is_enumerated(replace(data, schema=Schema((replace(unit, runs_of=()),))), "unit")


def numbered_census(seed: int, *, is_sorted: bool) -> pd.DataFrame:
    """Households of one population, numbered 1, 2, ... in the order of their file."""
    frame = draw_households(np.random.default_rng([seed, 31]), 300)
    if is_sorted:
        frame = frame.sort_values(["region", "tenure"], kind="stable")
    return frame.assign(household=1 + pd.factorize(frame["household"])[0]).reset_index(drop=True)


def agree(one: pd.DataFrame, other: pd.DataFrame, besides: tuple[str, ...] = ()) -> bool:
    """Whether what stands beside the numbers of households agrees."""
    names = [name for name in SCHEMA.names if name not in besides]
    mine, theirs = (cell_keys(as_microdata(frame), names) for frame in (one, other))
    columns = [[cells[name] for name in names if name != "household"] for cells in (mine, theirs)]
    return agree_at_numbers(mine["household"], theirs["household"], *columns)


@pytest.mark.parametrize("is_sorted", [False, True])
def test_other_households_with_the_same_numbers_are_others(is_sorted: bool) -> None:
    """Of 40 pairs of files of one population none is taken for the same; sorted by region, equal numbers are of one region."""
    tables = [numbered_census(seed, is_sorted=is_sorted) for seed in range(80)]
    found = [agree(one, other) for one, other in zip(tables[::2], tables[1::2], strict=True)]
    assert sum(found) == 0
    overlaps = [
        compare_identifiers(
            ("household",), *(cell_keys(as_microdata(one), ("household",))["household"] for one in tables[k : k + 2])
        )
        for k in (0, 2)
    ]
    assert all(one.are_same for one in overlaps), "by the numbers alone they would all be"


@pytest.mark.parametrize("is_sorted", [False, True])
def test_the_same_households_are_known_again_by_what_stands_beside_their_numbers(is_sorted: bool) -> None:
    """A year later: everybody is older and earns something else, a quarter has left, and records come in another order."""
    rng = np.random.default_rng(5)
    for seed in range(20):
        frame = numbered_census(seed, is_sorted=is_sorted)
        left = rng.choice(frame["household"].unique(), 75, replace=False)
        later = frame[~frame["household"].isin(left)].sample(frac=1, random_state=seed)
        later = later.assign(age=later["age"] + 1, income=rng.integers(0, 3000, len(later)))
        assert agree(frame, later)
        assert agree(later, frame, besides=("age", "income", "education"))


def test_numbers_of_units_are_those_of_any_file() -> None:
    def numbers(values: object, kind: Kind = Kind.COUNT) -> Microdata:
        schema = Schema((Variable("unit", kind, Role.UNIT),))
        return conform_to_schema(pd.DataFrame({"unit": values}), schema)

    rng = np.random.default_rng(1)
    assert numbers_people(numbers(np.repeat(np.arange(1, 51), 3)), "unit")
    assert numbers_people(numbers([f"H{i:03}" for i in range(60) for _ in range(2)], Kind.CATEGORICAL), "unit")
    drawn = np.repeat(rng.choice(10**9, 300, replace=False), 2)
    assert not numbers_people(numbers(drawn), "unit")
    assert density_of_identifier(numbers(drawn), "unit") < LEAST_DENSITY
    assert not density_of_identifier(numbers([f"{i:08x}" for i in drawn], Kind.CATEGORICAL), "unit")
    # areas of 100 places, of which ten are taken: no enumeration, and still those of any other file
    places = np.repeat(np.add.outer(100 * np.arange(30), np.arange(10)).ravel(), 2)
    assert not numbers_people(numbers(places), "unit")
    assert density_of_identifier(numbers(places), "unit") > LEAST_DENSITY
