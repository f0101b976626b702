"""What is computed of columns outside memory, in blocks of a few rows, is bit for bit what is computed of them in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from array_places import CountingPlace
from numpy.typing import NDArray
from prepared_tables import schema_of

from sfumato.engine.adversary import exchanged_rows
from sfumato.engine.adversary.cells import (
    cell_keys,
    comparable_numbers,
    count_occurrences,
    distinct_key_counts,
    find_positions,
    row_keys,
    run_starts_and_lengths,
)
from sfumato.engine.adversary.coded import JointColumn, code_by_value, midrank_shares, pool_rare_levels
from sfumato.engine.adversary.copies import measure_equal_records
from sfumato.engine.adversary.exchanged_rows import exchange_rows
from sfumato.engine.adversary.kept_columns import CombinationSizes
from sfumato.engine.adversary.nearest_records import LevelGroupSearch, find_nearest_by_block
from sfumato.engine.adversary.people import sum_marked_cells
from sfumato.engine.adversary.same_people import is_enumerated
from sfumato.engine.adversary.tails import measure_released_tails
from sfumato.engine.data import long_arrays, sorting
from sfumato.engine.data.long_arrays import (
    compress_column,
    is_long,
    join_columns,
    long_blocks,
    marked_rows,
    new_column,
    placing_long_arrays,
    running_sums,
    sample_column,
    take_rows,
)
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.rows import distinct_codes, distinct_rows
from sfumato.engine.data.sorting import (
    count_by_value,
    count_whole_numbers,
    numbers_at_ranks,
    sort_with_order,
    sorted_search,
    sorted_unique,
    sorted_values,
)
from sfumato.engine.statistics.smoothing import common_step

pytestmark = pytest.mark.quick
N, BLOCK = 400, 23
RNG = np.random.default_rng(8)
RNG_ROWS = np.random.default_rng(9).integers(-N, N, N)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> CountingPlace:
    # what is done for many numbers is done for these
    monkeypatch.setattr(long_arrays, "PIECE_BYTES", 500)
    monkeypatch.setattr(sorting, "MANY_TO_SORT", 30)
    monkeypatch.setattr(sorting, "SAMPLE", 25)
    monkeypatch.setattr(sorting, "DIFFERENT", 8)
    monkeypatch.setattr(sorting, "FEW_TO_SEARCH", 5)
    return CountingPlace()


def in_blocks(place: CountingPlace, compute: Callable[[], Any]) -> Any:
    before = place.arrays
    with placing_long_arrays(place, BLOCK):
        found = compute()
    assert place.arrays > before, "the columns lay in their place"
    with placing_long_arrays(place, BLOCK, threads=3):
        assert_same(compute(), found)
    return found


def assert_same(one: Any, other: Any) -> None:
    if isinstance(one, tuple | list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.tobytes() == np.ascontiguousarray(other).tobytes()
    else:
        assert one == other


def with_missing(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.where(RNG.random(len(values)) < 0.1, np.nan, values)


NUMBERS: dict[str, NDArray[Any]] = {
    "keys": RNG.integers(0, 2**64, N, dtype=np.uint64),
    "few keys": RNG.integers(0, 2**64, 4, dtype=np.uint64)[RNG.integers(0, 4, N)],
    "one key": np.full(N, 2**63 + 5, dtype=np.uint64),
    "few, then many keys": np.append(np.full(N, 7, dtype=np.uint64), RNG.integers(0, 2**64, 90, dtype=np.uint64)),
    "a key that many have": np.where(RNG.random(N) < 0.5, 2**40, RNG.integers(0, 2**50, N)).astype(np.uint64),
    "codes": RNG.integers(-(2**63), 2**63 - 1, N),
    "short codes": RNG.integers(-3, 9, N).astype(np.int32),
    "whole": RNG.poisson(9, N).astype(np.float64),
    "whole, missing": with_missing(RNG.poisson(9, N) - 4.0),
    "whole but the last": np.append(np.arange(N - 1.0), 0.5),
    "wide": np.round(RNG.lognormal(20, 3, N)),
    "signed": RNG.normal(0, 1e3, N),
    "signed, missing": with_missing(RNG.normal(-1e6, 1, N).round(1)),
    "cents": RNG.integers(0, 10_000, N) / 100,
    "all but missing": np.where(np.arange(N) == 300, 1.5, np.nan),
    "missing": np.full(N, np.nan),
    "zeros of both signs": np.where(RNG.random(N) < 0.5, -0.0, RNG.integers(-1, 2, N) / 2),
    "infinite": np.where(RNG.random(N) < 0.1, np.inf, RNG.normal(size=N)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_sorted_numbered_and_found_as_in_memory(place: CountingPlace, name: str) -> None:
    values = NUMBERS[name]
    needles = np.append(values[::3], values[:50])

    def answers() -> list[Any]:
        present = values[~np.isnan(values)] if values.dtype.kind == "f" else values
        codes = distinct_codes(values)
        return [
            *sort_with_order(values), sorted_values(values), codes.codes, codes.counts, codes.repeats,
            sorted_unique(present), sorted_search(np.sort(values), needles), sorted_search(np.sort(values), needles, "right"),
            count_whole_numbers(values),
        ]  # fmt: skip

    expected = answers()
    assert_same(expected, in_blocks(place, answers))
    # equal zeros may differ in their sign
    np.testing.assert_array_equal(
        in_blocks(place, lambda: distinct_codes(values).values), distinct_codes(values).values
    )
    found = in_blocks(
        place, lambda: count_by_value(values[some] for some in long_blocks(len(running_sums(values < 3))))
    )
    present = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if len(present) == len(values):
        assert_same(found, np.unique(values, return_counts=True))


def test_numbers_on_both_sides_of_0_go_into_ranges_no_longer_than_a_block() -> None:
    values = np.random.default_rng(3).normal(50, 10, 200_000)
    values[0] = -5.0
    place = CountingPlace()
    with placing_long_arrays(place, 20_000):
        bits = sorting._BucketScale.from_blocks([values])
        largest = np.bincount(bits.bucket_of(values)).max()
        found = sorting._ValueRanges.from_values(values)
    assert largest > 10_000, "the control: the bits alone put them into few buckets"
    assert max(one.stop - one.start for one in found.ranges) <= 20_000 + 200
    assert sum(one.stop - one.start for one in found.ranges) == len(values)


@pytest.mark.parametrize("name", [one for one in NUMBERS if NUMBERS[one].dtype == np.uint64])
def test_keys_are_counted_and_found_as_in_memory(place: CountingPlace, name: str) -> None:
    keys, others = NUMBERS[name], np.append(NUMBERS[name][5:80], np.arange(40, dtype=np.uint64))

    def answers() -> list[Any]:
        return [
            count_occurrences(keys, keys), count_occurrences(keys, others), count_occurrences(others, keys),
            *distinct_key_counts(keys), *run_starts_and_lengths(sorted_values(keys)),
            find_positions(np.unique(others), keys), sum_marked_cells({"a": keys, "b": keys[::-1]}, ["a", "b"], len(keys)),
        ]  # fmt: skip

    assert_same(answers(), in_blocks(place, answers))


@pytest.mark.parametrize("name", [one for one in NUMBERS if not np.isnan(NUMBERS[one].astype(float)).any()])
def test_numbers_at_ranks_are_those_in_memory(place: CountingPlace, name: str) -> None:
    values, ranks = NUMBERS[name], [0, 1, 57, 200, len(NUMBERS[name]) - 1]
    with placing_long_arrays(place, BLOCK):
        found = numbers_at_ranks(values, ranks)
    np.testing.assert_array_equal(found, np.sort(values)[ranks])
    np.testing.assert_array_equal(numbers_at_ranks(values, ranks), np.sort(values)[ranks])


def test_columns_are_selected_added_and_joined_as_in_memory(place: CountingPlace) -> None:
    values, kept = RNG.normal(size=N), RNG.random(N) < 0.3

    def answers() -> list[Any]:
        joined = join_columns([values, values[:7], values[:60]])
        return [compress_column(values, kept), marked_rows(kept), running_sums(kept), take_rows(values, np.arange(N)[::-1]), take_rows(values, RNG_ROWS), joined]  # fmt: skip

    expected = [values[kept], np.flatnonzero(kept), np.cumsum(kept), values[::-1], values[RNG_ROWS], np.concatenate([values, values[:7], values[:60]])]  # fmt: skip
    assert_same(expected, in_blocks(place, answers))
    assert_same(expected, answers())


@pytest.mark.parametrize("step", [1, 7, BLOCK, 100, 3 * N])
def test_a_sample_of_a_column_is_that_in_memory(place: CountingPlace, step: int) -> None:
    values = RNG.normal(size=N)
    with placing_long_arrays(place, BLOCK):
        found = sample_column(values, step)
    np.testing.assert_array_equal(found, values[::step])
    assert not np.shares_memory(found, values), "no value of a page is looked at later"


def test_only_long_columns_are_placed_and_only_while_the_block_lasts(place: CountingPlace) -> None:
    with placing_long_arrays(place, BLOCK):
        assert not is_long(BLOCK)
        new_column(BLOCK, np.int64)
        assert not place.arrays
        assert is_long(BLOCK + 1)
        assert [len(range(N)[some]) for some in long_blocks(N)][:2] == [BLOCK, BLOCK]
        assert place.released
    assert not is_long(N)
    assert [one.stop for one in long_blocks(N)] == [N]


def test_a_place_without_room_leaves_columns_in_memory(place: CountingPlace) -> None:
    def full(rows: int, kind: object) -> NDArray[Any]:
        raise OSError(28, "No space left on device")

    place.new_array = full  # type: ignore[method-assign]
    values = NUMBERS["signed"]
    with placing_long_arrays(place, BLOCK):
        assert_same(sort_with_order(values), [np.argsort(values, kind="stable"), np.sort(values)])


def people(seed: int) -> Microdata:
    rng = np.random.default_rng(seed)
    region = rng.integers(-1, 4, N)
    frame = pd.DataFrame(
        {
            "region": pd.Categorical.from_codes(region, pd.Index(["n", "e", "s", "w"])),
            "age": np.where(rng.random(N) < 0.05, np.nan, rng.integers(20, 30, N)),
            "number": np.arange(N),
            "income": rng.lognormal(3, 1, N).round(2),
            "visits": rng.poisson(2, N),
        }
    )
    return Microdata(
        schema_of("region: categorical", "age: count", "number: count", "income: continuous", "visits: count"), frame
    )


@pytest.mark.parametrize("kept", [(), ("region",), ("region", "age"), ("age", "income"), ("region", "age", "income")])
def test_equal_records_and_combinations_are_those_in_memory(place: CountingPlace, kept: tuple[str, ...]) -> None:
    data, names = people(1), ("region", "age", "income", "visits")
    drawn = tuple(name for name in names if name not in kept)
    own_rows = people(2).frame.assign(**{name: data.frame[name] for name in kept})
    released = [
        Microdata(data.schema, own_rows),
        Microdata(data.schema, own_rows.iloc[::-1].reset_index(drop=True)),
        data,
    ]

    def answers() -> list[Any]:
        cells = cell_keys(data, names)
        sizes = CombinationSizes.from_cells(cells, kept, N)
        found = list[Any]()
        for some in (released[:1], released[:2], released):
            one = measure_equal_records(data, cells, [cell_keys(other, names, data) for other in some], kept, drawn)
            found += [one.value, one.baseline, one.noise, one.records]
        return [
            *found, *cells.values(), row_keys(cells, names), sizes.sizes, sizes.records_below(3), *sizes.classes_by_size,
            sizes.expected_reidentifications, sizes.population_reidentifications(0.2), sizes.n_unique,
        ]  # fmt: skip

    assert_same(answers(), in_blocks(place, answers))


@pytest.mark.parametrize("most", [20, 1_000_000])
def test_own_values_and_codes_are_those_in_memory(
    place: CountingPlace, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(exchanged_rows, "MOST_CELLS", most)
    data, other = people(1), people(2)
    rng = np.random.default_rng(3)
    same = rng.random(N) < 0.4

    def answers() -> list[Any]:
        columns = []
        for name in ("income", "visits", "region"):
            own, drawn = cell_keys(data, (name,))[name], cell_keys(other, (name,), data)[name]
            if name == "region":
                columns.append(pool_rare_levels(name, own, [np.where(same, own, drawn)]))
                continue
            numbers = [comparable_numbers(one, name) for one in (data, other)]
            given = np.where(same, *numbers)
            columns.append(JointColumn(name, own, [np.where(same, own, drawn)], numbers[0], [given]))
        coded = [code_by_value(one) for one in columns]
        kept = row_keys(cell_keys(data, ("region", "age")), ("region", "age"))
        evidence = exchange_rows(coded, kept, kept + columns[0].own, 1)
        assert evidence is not None
        found = [evidence.p, evidence.n_people, evidence.n_found, evidence.n_expected, evidence.records]
        for one in coded:
            found += [one.codes, *one.released_codes, one.counts, one.surprisal, *one.released_rank_shares]
        return [*found, midrank_shares(data.numbers("age")), midrank_shares(data.numbers("income"))]

    assert_same(answers(), in_blocks(place, answers))


def test_nearest_records_tails_and_enumerations_are_those_in_memory(place: CountingPlace) -> None:
    data, other = people(1), people(2)

    def answers() -> list[Any]:
        found: list[Any] = [is_enumerated(data, name) for name in data.schema.names]
        found += [common_step(NUMBERS[name]) for name in ("cents", "whole", "signed")]
        for name in ("age", "income", "visits", "number"):
            own, theirs = (comparable_numbers(one, name) for one in (data, other))
            for bounds in ((None, None), (20.0, 29.0)):
                tails = measure_released_tails(own, [theirs, own[:90]], 3, bounds)
                found += [tails.ends, tails.records, tails.memorisation.value, tails.memorisation.baseline]
        columns = [(data.numbers("visits"), True), (midrank_shares(data.numbers("income")), False)]
        search = LevelGroupSearch.from_columns(columns, N)
        found += [search.nearest_records(i) for i in range(0, N, 7)]
        combinations = distinct_rows([data.numbers("age"), data.numbers("visits"), data.numbers("income")], N)
        few = distinct_rows([data.numbers("age"), data.numbers("visits")], N)
        return [*found, combinations.first, combinations.combination_of, few.first, few.combination_of]

    expected = answers()
    assert True in expected[:5]
    assert_same(expected, in_blocks(place, answers))


@pytest.mark.parametrize("few", [3, 200])
def test_nearest_records_by_block_are_some_of_the_nearest(place: CountingPlace, few: int) -> None:
    data, most = people(1), 5
    levels, numbers = np.floor(data.numbers("visits") * few / N), midrank_shares(data.numbers("income"))
    keys, chosen = row_keys(cell_keys(data, data.schema.names), data.schema.names), np.arange(0, N, 7)
    for columns in ([(levels, True), (numbers, False)], [(levels, True)], [(numbers, False)], []):
        search = LevelGroupSearch.from_columns(columns, N)
        with placing_long_arrays(place, BLOCK):
            found = find_nearest_by_block(columns, chosen, keys, most)
            again = find_nearest_by_block([(v[::-1], has) for v, has in columns], N - 1 - chosen, keys[::-1], most)
        for i, nearest, other in zip(chosen, found, again, strict=True):
            every = search.nearest_records(int(i))
            assert set(nearest) <= set(every)
            assert len(nearest) == min(most, len(every))
            # the order of the table changes nothing
            np.testing.assert_array_equal(np.sort(keys[nearest]), np.sort(keys[::-1][other]))


def test_blocks_that_are_not_joined_give_other_answers(place: CountingPlace) -> None:
    """The control: counts within blocks are no counts."""
    keys = NUMBERS["few keys"]
    with placing_long_arrays(place, BLOCK):
        apart = np.concatenate([count_occurrences(keys[some], keys[some]) for some in long_blocks(N)])
        whole = count_occurrences(keys, keys)
    assert not np.array_equal(apart, whole)
