"""Records from which a sampler starts: random ones, confidential ones, or those of a public file, which cost nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.design.binning import BinningRule
from sfumato.engine.design.categories import categories_of_variable
from sfumato.engine.design.seed_pools import (
    UNIFORM,
    SeedPool,
    check_seeds,
    draw_seeds,
    uncovered_seeds,
)
from sfumato.engine.errors import BadInput
from sfumato.engine.statistics.csv_lines import MAX_TABLE_RECORDS

SCHEMA = Schema((Variable("region", Kind.CATEGORICAL), Variable("size", Kind.ORDINAL, levels=("s", "m", "l"))))
NAMES = SCHEMA.names


def people(order: np.ndarray) -> Microdata:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"region": rng.choice(list("abcd"), 300), "size": rng.choice(list("sml"), 300)})
    return conform_to_schema(frame.iloc[order].reset_index(drop=True), SCHEMA)


def starts(data: Microdata, *, own: bool) -> list[list[int]]:
    categories = {name: categories_of_variable(data, name, None) for name in NAMES}
    found = draw_seeds(categories, NAMES, SeedPool(kind="confidential"), data, 300, np.random.default_rng(2), own=own)
    return [codes.tolist() for codes in found.values()]


def test_the_order_of_the_file_does_not_decide_where_records_start() -> None:
    data, moved = people(np.arange(300)), people(np.random.default_rng(3).permutation(300))
    assert starts(data, own=False) == starts(moved, own=False)
    assert starts(data, own=True) != starts(moved, own=True), "the negative control: each record from its own"
    pairs = {tuple(pair) for pair in zip(*starts(data, own=True), strict=True)}
    assert {tuple(pair) for pair in zip(*starts(data, own=False), strict=True)} <= pairs, (
        "they are confidential records"
    )


POOL = ["size,region,unused", "s,a,1", "m,a,2", "l,d,3", "l,d,4"]


def test_a_public_file_is_read_written_and_hashed_as_it_lies_there() -> None:
    text = "".join(f"{line}\n" for line in POOL)
    pool = SeedPool.from_text(text)
    assert SeedPool.parse(pool.written) == pool
    assert (pool.records, pool.sha256) == (4, hashlib.sha256(text.encode()).hexdigest())
    assert pool.told == f"public, 4 records, SHA-256 {pool.sha256}"
    assert SeedPool.from_text(text.replace("\n", "\r\n")) == pool
    assert [SeedPool.parse(word).written for word in SeedPool.words] == ["uniform", "confidential"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("unifrom", 'neither "uniform" nor "confidential"'),
        (7, "or a public file"),
        ([["a"]], "or a public file"),
        ([], "has no records"),
        (["size,region"], "has no records"),
        (["size,size", "s,s"], "each its own"),
        (["size,", "s,a"], "must have names"),
        (["size,region", "s,a", "s"], "line 3 of the seed pool has 1 cells, its first line 2"),
        (["size;region", "s;a,b"], "line 2 of the seed pool has 2 cells"),
        (["size,region", '"s,a'], "not a table with commas"),
        (["size", *["s"] * (MAX_TABLE_RECORDS + 1)], "more than 10,000 records"),
        (["size", "s" * 600_000], "or 512 KiB"),
    ],
)
def test_what_is_no_pool_is_refused_in_one_sentence(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SeedPool.parse(value)


def test_records_start_at_those_of_the_file_each_as_likely_whatever_the_data_are() -> None:
    data, other = people(np.arange(300)), people(np.arange(100, 300))
    pool = SeedPool(tuple(POOL), "public")
    found = []
    for one in (data, other):
        categories = {name: categories_of_variable(one, name, None) for name in NAMES}
        found.append(draw_seeds(categories, NAMES, pool, one, 8000, np.random.default_rng(2), own=True))
    assert all((found[0][name] == found[1][name]).all() for name in NAMES)
    pairs = list(zip(*(found[0][name].tolist() for name in NAMES), strict=True))
    counts = [pairs.count(pair) for pair in ((0, 0), (0, 1), (3, 2))]
    assert sum(counts) == 8000
    assert stats.chisquare(counts, [2000, 2000, 4000]).pvalue > 1e-4
    assert stats.chisquare(counts, [8000 / 3] * 3).pvalue < 1e-9, "the negative control"


NUMBERS = Schema((Variable("age", Kind.COUNT, bounds=(0, 99)), Variable("sex", Kind.BINARY, levels=("1", "2"))))


def numbered(ages: Sequence[int | None]) -> Microdata:
    frame = pd.DataFrame({"age": ages, "sex": ["1", "2"] * (len(ages) // 2)})
    return conform_to_schema(frame, NUMBERS)


def test_the_spelling_of_numbers_changes_nothing() -> None:
    data = numbered([20, 30, 40, 70])
    categories = {
        "age": categories_of_variable(data, "age", BinningRule.parse("at 30, 60")),
        "sex": categories_of_variable(data, "sex", None),
    }
    drawn = [
        draw_seeds(categories, ("age", "sex"), SeedPool(lines, "public"), data, 50, np.random.default_rng(1))
        for lines in (("age,sex", "29,1", "60,2"), ("sex,age", "1.0,29.0", "2,6e1"))
    ]
    assert all((drawn[0][name] == drawn[1][name]).all() for name in ("age", "sex"))
    assert set(drawn[0]["age"].tolist()) == {0, 2}


@pytest.mark.parametrize(
    ("lines", "place", "message"),
    [
        (("age", "20"), "synthesis[0].seeds", 'no column "sex"; it needs one of every target'),
        (
            ("age,sex", "20,1", "30,9"),
            "synthesis[0].seeds.sex.levels",
            "of the seed pool 1 record has a level that is not",
        ),
        (("age,sex", "120,1"), "synthesis[0].seeds.age.bounds", "of the seed pool 1 record is above 99"),
        (("age,sex", "old,1"), "synthesis[0].seeds.age", "of the seed pool 1 record is not a number"),
        (("age,sex", ",1", "20,2"), "synthesis[0].seeds.age", 'no "age", which every record of the data has'),
    ],
)
def test_records_that_cannot_be_ones_of_the_data_are_refused_at_their_place(
    lines: tuple[str, ...], place: str, message: str
) -> None:
    with pytest.raises(BadInput) as caught:
        check_seeds(numbered([20, 30, 40, 70]), ("age", "sex"), SeedPool(lines, "public"), "synthesis[0].seeds")
    assert caught.value.place == place
    assert message in caught.value.message
    assert not any(value in str(caught.value) for value in ("120", "old", '"9"'))


def wide(seed: int, records: int = 200) -> Microdata:
    """Records of a sparse table: nearly every one is alone of its kind."""
    rng = np.random.default_rng(seed)
    schema = Schema(tuple(Variable(name, Kind.COUNT, bounds=(0, 999)) for name in ("x", "y")))
    return conform_to_schema(pd.DataFrame({name: rng.integers(0, 1000, records) for name in ("x", "y")}), schema)


def lines_of(frame: pd.DataFrame) -> tuple[str, ...]:
    return tuple(frame.to_csv(index=False).splitlines())


def is_refused(data: Microdata, pool: pd.DataFrame) -> bool:
    """Whether a public file with these records is refused; any other complaint is a failure."""
    try:
        check_seeds(data, data.schema.names, SeedPool(lines_of(pool), "public"), "synthesis[0].seeds")
    except BadInput as error:
        if str(error).startswith("synthesis[0].seeds: the seed pool is not public"):
            return True
        raise
    return False


def test_the_account_follows_from_where_seeds_come_from_and_not_from_the_records() -> None:
    assert [len(uncovered_seeds(pool)) for pool in (UNIFORM, SeedPool(kind="confidential"))] == [0, 1]
    assert uncovered_seeds(SeedPool(lines_of(wide(2).frame), "public")) == ()


def test_a_pool_of_confidential_records_is_refused_whatever_it_is_called() -> None:
    data = wide(1)
    assert not is_refused(data, wide(2).frame)
    shuffled = data.frame.sample(frac=1, random_state=3)
    assert is_refused(data, shuffled), "the table itself, in another order"
    assert is_refused(data, shuffled.head(20)), "a sample of it"
    assert is_refused(data, pd.concat([shuffled.head(20), wide(4, 20).frame])), "half of it"
    fewer = pd.concat([shuffled.head(10), wide(4, 20).frame])
    assert not is_refused(data, fewer), "people of both, as a public sample may have"


def test_a_dense_table_is_refused_where_the_pool_is_the_whole_of_it() -> None:
    data = people(np.arange(300))
    assert is_refused(data, data.frame)
    assert not is_refused(data, data.frame.head(150))


@pytest.mark.slow
def test_an_independent_sample_is_never_taken_for_the_data() -> None:
    """Where a cell of the table has one record on average most independent records hit one that is alone: 37 % of them."""
    schema = Schema((Variable("x", Kind.COUNT, bounds=(0, 999)),))
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        data, pool = (conform_to_schema(pd.DataFrame({"x": rng.integers(0, 1000, 1000)}), schema) for _ in range(2))
        alone = data.frame["x"].value_counts()
        shares.append(pool.frame["x"].map(alone).eq(1).mean())
        assert not is_refused(data, pool.frame)
    assert np.mean(shares) == pytest.approx(np.exp(-1), abs=0.02)
