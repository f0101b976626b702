"""Sample, screening and hold-out of tables with units: of a unit either all records are taken or none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.data_source import DataSource
from sfumato.workspace.ingest.files import SourceFile, read_file_microdata

KEY = bytes(range(32))
HOUSEHOLDS = Schema(
    (
        Variable("household", Kind.COUNT, Role.UNIT),
        Variable("region", Kind.CATEGORICAL, level="unit"),
        Variable("age", Kind.COUNT),
    )
)


def make_households(units: int = 120, seed: int = 1) -> pd.DataFrame:
    """Return the records, in random order, of households of 1 to 5 people."""
    rng = np.random.default_rng(seed)
    number = np.repeat(np.arange(units), rng.integers(1, 6, units))
    table = pd.DataFrame(
        {"household": number, "region": np.array(list("abc"))[number % 3], "age": np.arange(len(number))}
    )
    return table.sample(frac=1, random_state=seed).reset_index(drop=True)


def read_households(frame: pd.DataFrame, key: bytes = KEY, schema: Schema = HOUSEHOLDS, **data: Any) -> Microdata:
    """Return the households of a file as a recipe reads it."""
    source = SourceFile("households.csv", frame.to_csv(index=False).encode())
    return read_file_microdata(source, DataSource(**data), schema, 1, key=key)


def numbers_of(data: Microdata) -> set[float]:
    """Return the numbers of the households of a table."""
    return set(data.numbers("household").tolist())


def is_whole(data: Microdata, frame: pd.DataFrame) -> bool:
    """Return whether a table has all records of each of its households."""
    return len(data) == int(frame["household"].isin(numbers_of(data)).sum())


@pytest.mark.parametrize("key", [PUBLIC, KEY])
@pytest.mark.parametrize("share", [0.001, 0.2, 0.5, 0.99])
def test_whole_units_are_held_out(share: float, key: bytes) -> None:
    frame = make_households()
    found = read_households(frame, key, holdout=share)
    assert found.controls is not None
    assert numbers_of(found).isdisjoint(numbers_of(found.controls))
    assert len(found) + len(found.controls) == len(frame)
    assert len(numbers_of(found.controls)) == min(max(1, round(share * 120)), 119)


def test_a_hold_out_of_records_would_split_units() -> None:
    """The control: without the role, some household is on both sides."""
    as_records = Schema((Variable("household", Kind.COUNT), *HOUSEHOLDS.variables[2:]))
    found = read_households(make_households(), schema=as_records, holdout=0.2)
    assert found.controls is not None
    assert numbers_of(found) & numbers_of(found.controls)


@pytest.mark.parametrize("sample", [1, 7, 100, 200])
def test_whole_units_are_sampled(sample: int) -> None:
    frame = make_households()
    found = read_households(frame, sample=sample)
    assert is_whole(found, frame)
    assert max(1, sample - 4) <= len(found) <= max(sample, 5)


@pytest.mark.parametrize("asked", [{"sample": 3}, {"screen": 3}])
def test_a_unit_of_far_more_records_than_asked_for_is_refused_in_a_sentence(asked: dict[str, Any]) -> None:
    frame = make_households().iloc[:80].assign(household=1, region="a")
    frame.loc[frame.index[-1], "household"] = 2
    found = set()
    for number in range(20):
        try:
            found.add(len(read_households(frame, bytes([number]) * 32, **asked)))
        except BadInput as error:
            found.add(str(error).partition(";")[0])
    first = f"data.{next(iter(asked))}: units are taken whole, and the first one drawn has 79 records, where at most 3 records are asked for"
    assert found == {1, first}


def test_a_sample_has_units_of_all_sizes_as_often_as_the_file() -> None:
    frame = make_households(3_000)
    found = read_households(frame, sample=3_000)
    assert found.units is not None
    mean = frame.groupby("household").size().mean()
    assert abs(found.units.sizes.mean() - mean) < 5 * 1.42 / np.sqrt(len(found.units))


def test_whole_units_are_screened_with_controls_of_their_own() -> None:
    frame = make_households()
    members = read_households(frame, holdout=0.25)
    screened = read_households(frame, holdout=0.25, screen=150)
    assert screened.controls is not None
    both = numbers_of(screened) | numbers_of(screened.controls)
    assert numbers_of(screened).isdisjoint(numbers_of(screened.controls))
    assert both <= numbers_of(members)
    assert len(screened) + len(screened.controls) == int(frame["household"].isin(both).sum())


def test_a_column_that_splits_units_is_refused() -> None:
    frame = make_households().sort_values("household").reset_index(drop=True)
    whole = frame.assign(held=(frame["household"] % 4 == 0).astype(int))
    read_households(whole, holdout="held")
    split = whole.copy()
    many = split["household"].value_counts()
    for household in many.index[:3]:
        split.loc[split.index[split["household"] == household][0], "held"] ^= 1
    with pytest.raises(BadInput, match=r"not all records of 3 units"):
        read_households(split, holdout="held")


def test_a_variable_of_units_that_differs_within_some_is_an_error_that_counts_them() -> None:
    frame = make_households().sort_values("household").reset_index(drop=True)
    for household in frame["household"].value_counts().index[:2]:
        frame.loc[frame.index[frame["household"] == household][0], "region"] = "d"
    with pytest.raises(BadInput, match=r'"region" differs within 2 of 120 units') as caught:
        read_households(frame)
    assert caught.value.place == "variables.region.level"


def test_one_unit_cannot_be_held_out() -> None:
    frame = make_households().assign(household=1, region="a")
    with pytest.raises(BadInput, match="all records are of one unit"):
        read_households(frame, holdout=0.2)


@pytest.mark.parametrize("data", [{"holdout": 0.2}, {"sample": 60}, {"screen": 40, "holdout": 0.3}])
def test_with_one_record_a_unit_the_records_are_those_without_units(data: dict[str, Any]) -> None:
    frame = make_households().drop_duplicates("household")
    plain = Schema(HOUSEHOLDS.variables[2:])
    with_units, without = read_households(frame, **data), read_households(frame, schema=plain, **data)
    assert with_units.numbers("age").tolist() == without.numbers("age").tolist()


def test_people_without_a_number_are_units_of_their_own() -> None:
    frame = make_households()
    frame["household"] = frame["household"].astype("float64").where(frame["household"] > 9)
    found = read_households(frame, holdout=0.5, missing=MissingPolicy.KEEP)
    assert found.controls is not None
    assert found.n_units + found.controls.n_units == 110 + int(frame["household"].isna().sum())


def test_runs_of_a_missing_column_quote_no_value_of_a_file_without_a_header() -> None:
    schema = Schema((Variable("home", Kind.COUNT, Role.UNIT, runs_of=("Meier",)), Variable("age", Kind.COUNT)))
    source = SourceFile("people.csv", b"Meyer,17\nMeyer,18\nHuber,19\n")
    with pytest.raises(BadInput, match='no column "Meier"') as caught:
        read_file_microdata(source, DataSource(), schema, 1, key=KEY)
    assert "Meyer" not in caught.value.message


def test_one_unit_that_is_screened_is_not_split() -> None:
    """With the seeds at which one household alone is drawn, it would be on both sides."""
    frame = pd.DataFrame({"household": np.r_[np.zeros(300), np.repeat(np.arange(1, 61), 5)].astype(int)})
    source = SourceFile("people.csv", frame.assign(age=range(600)).to_csv(index=False).encode())
    schema = Schema((HOUSEHOLDS["household"], HOUSEHOLDS["age"]))
    refused = 0
    for seed in range(1, 40):
        try:
            found = read_file_microdata(source, DataSource(screen=9, holdout=0.3), schema, seed, key=KEY)
        except BadInput as error:
            refused += error.place == "data.screen"
            continue
        assert found.controls is not None
        assert numbers_of(found).isdisjoint(numbers_of(found.controls)), seed
    assert refused
