"""The order of a long released file depends on its rows and on chance, and every order is as likely as any other."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from sfumato.workspace.release import shuffled_blocks
from sfumato.workspace.release.shuffled_blocks import CellCode, shuffle_blocks

pytestmark = pytest.mark.quick
Cells = NDArray[np.int64]


def few_rows(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    monkeypatch.setattr(shuffled_blocks, "BUCKET_CELLS", cells)


def shuffled(blocks: Iterable[Cells], rows: int, seed: int) -> Cells:
    return np.concatenate(list(shuffle_blocks(blocks, rows, np.random.default_rng(seed), BytesIO)))


def as_tuples(cells: Cells) -> list[tuple[int, ...]]:
    return [tuple(row) for row in cells.tolist()]


def chi_square_p(counts: Sequence[int]) -> float:
    """The probability of counts as unequal as these where all are equally likely."""
    expected = sum(counts) / len(counts)
    return float(chi2.sf(sum((one - expected) ** 2 for one in counts) / expected, len(counts) - 1))


def orders_found(times: int, shuffle: Callable[[int], Iterable[int]], items: int) -> list[int]:
    found = Counter(tuple(shuffle(seed)) for seed in range(times))
    assert math.factorial(items) >= len(found)
    return [found[one] for one in itertools.permutations(range(items))]


def test_every_order_is_as_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    few_rows(monkeypatch, 2)  # three buckets of two rows, of one column
    rows = np.arange(5, dtype=np.int64)[:, None]
    times = 12_000

    def shuffle(seed: int) -> list[int]:
        return [int(one) for one in shuffled([rows[:3], rows[3:]], 5, seed)[:, 0]]

    assert chi_square_p(orders_found(times, shuffle, 5)) > 1e-3

    def leave_in_buckets(seed: int) -> list[int]:
        """A careless shuffle: the rows of a bucket are permuted, and stay in the bucket of their values."""
        rng = np.random.default_rng(seed)
        return [*map(int, rng.permutation(3)), *map(int, 3 + rng.permutation(2))]

    def swap_with_any(seed: int) -> list[int]:
        """The well-known wrong one: each row is exchanged with any other."""
        rng, order = np.random.default_rng(seed), list(range(5))
        for at in range(5):
            other = int(rng.integers(5))
            order[at], order[other] = order[other], order[at]
        return order

    for careless in (leave_in_buckets, swap_with_any):
        assert chi_square_p(orders_found(times, careless, 5)) < 1e-12, "the negative control"


def test_neither_order_nor_blocks_of_the_rows_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    few_rows(monkeypatch, 60)
    rng = np.random.default_rng(1)
    rows = rng.integers(-5, 5, (300, 3))
    first = shuffled([rows], 300, 7)
    assert sorted(as_tuples(first)) == sorted(as_tuples(rows))
    for seed, size in ((1, 300), (2, 40), (3, 1), (4, 299)):
        others = rows[np.random.default_rng(seed).permutation(300)]
        blocks = [others[at : at + size] for at in range(0, 300, size)]
        assert np.array_equal(shuffled(blocks, 300, 7), first)
    assert not np.array_equal(shuffled([rows], 300, 8), first)


def test_threads_give_the_order_that_one_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    few_rows(monkeypatch, 200)
    rows = np.random.default_rng(3).integers(0, 9, size=(2000, 2))
    rows[:900] = 4  # a bucket with too many equal rows is sorted piece by piece
    alone = shuffled([rows], 2000, seed=7)
    monkeypatch.setattr(shuffled_blocks, "MANY_ROWS", 0)
    np.testing.assert_array_equal(shuffled([rows], 2000, seed=7), alone)


def test_the_place_of_a_row_does_not_tell_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    few_rows(monkeypatch, 200)
    parts = [np.arange(1_000 * at, 1_000 * (at + 1), dtype=np.int64)[:, None] for at in range(5)]

    def tied(order: NDArray[np.int64]) -> float:
        """The probability that part of origin and tenth of the file are as related as here by chance."""
        counts = np.zeros((5, 10))
        np.add.at(counts, (order // 1_000, np.arange(5_000) // 500), 1)
        expected = 5_000 / 50
        return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), 4 * 9))

    places = [shuffled(parts, 5_000, seed)[:, 0] for seed in range(20)]
    assert min(map(tied, places)) > 1e-4
    assert tied(np.concatenate([np.random.default_rng(1).permutation(one[:, 0]) for one in parts])) < 1e-12
    # nor do neighbours of the confidential table stay near each other
    near = [np.abs(np.diff(np.argsort(one))).mean() for one in places]
    assert abs(np.mean(near) - 5_000 / 3) < 25
    assert np.abs(np.diff(np.arange(5_000))).mean() == 1, "the negative control"


@pytest.mark.parametrize("equal", [0, 5_000])
def test_many_equal_rows_are_sorted_once(monkeypatch: pytest.MonkeyPatch, equal: int) -> None:
    few_rows(monkeypatch, 200)
    rng = np.random.default_rng(2)
    rows = np.concatenate([np.full((equal, 2), 3), rng.integers(0, 9, (900, 2))])
    first = shuffled(np.array_split(rows, 7), len(rows), 4)
    assert sorted(as_tuples(first)) == sorted(as_tuples(rows))
    assert np.array_equal(shuffled(np.array_split(rows[::-1], 3), len(rows), 4), first)
    if equal:
        spread = np.flatnonzero((first == 3).all(axis=1))
        assert abs(spread.mean() - len(rows) / 2) < len(rows) / 50


def test_rows_of_one_hash_are_told_apart_by_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    few_rows(monkeypatch, 60)
    monkeypatch.setattr(
        shuffled_blocks, "_hash_of_rows", lambda cells: (cells[:, 0] % 3).astype(np.uint64) * np.uint64(0)
    )
    rows = np.random.default_rng(3).integers(0, 99, (200, 2))
    first = shuffled([rows], 200, 1)
    assert np.array_equal(shuffled([rows[::-1]], 200, 1), first)
    assert sorted(as_tuples(first)) == sorted(as_tuples(rows))


def test_files_are_closed_whatever_happens() -> None:
    opened: list[BytesIO] = []

    def open_file() -> BytesIO:
        opened.append(BytesIO())
        return opened[-1]

    rng = np.random.default_rng(1)
    list(shuffle_blocks([np.zeros((5, 1), dtype=np.int64)], 5, rng, open_file))

    def fail_after_a_block() -> Iterator[Cells]:
        yield np.zeros((5, 1), dtype=np.int64)
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        list(shuffle_blocks(fail_after_a_block(), 10, rng, open_file))
    some = shuffle_blocks([np.zeros((5, 1), dtype=np.int64)], 5, rng, open_file)
    next(some)
    some.close()  # type: ignore[attr-defined]
    assert len(opened) == 6
    assert all(one.closed for one in opened)


def test_no_rows_give_none() -> None:
    assert not list(shuffle_blocks([], 0, np.random.default_rng(1), BytesIO))
    assert not list(shuffle_blocks([np.zeros((0, 3), dtype=np.int64)], 0, np.random.default_rng(1), BytesIO))


def test_cells_keep_every_bit() -> None:
    frame = pd.DataFrame(
        {
            "c": pd.Categorical.from_codes([0, -1, 1, 0], ["b", "a"]),
            "o": pd.Categorical.from_codes([1, 1, -1, 0], [3, 1], ordered=True),
            "x": [0.1, -0.0, np.nan, np.inf],
            "n": np.array([-1, 2**62, 0, -(2**63)]),
            "d": np.array(["2020-02-29T12:00", "NaT", "1969-12-31", "0001-01-01"], dtype="datetime64[s]"),
        }
    )
    assert CellCode.has_code(frame)
    code = CellCode(frame.iloc[:0])
    cells = shuffled([code.encode_rows(frame)], 4, 1)
    found = code.decode_rows(cells).sort_values(["n"]).reset_index(drop=True)
    expected = frame.sort_values(["n"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    assert np.array_equal(np.signbit(found["x"]), np.signbit(expected["x"]))
    assert not CellCode.has_code(pd.DataFrame({"t": ["text"]}))
    assert not CellCode.has_code(pd.DataFrame({"d": pd.to_datetime(["2020-01-01"], utc=True)}))


def test_two_kinds_of_missing_numbers_are_one() -> None:
    bits = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000], dtype=np.uint64)
    cells = CellCode(pd.DataFrame({"x": [0.0]})).encode_rows(pd.DataFrame({"x": bits.view(np.float64)}))
    assert len(np.unique(cells)) == 1
