"""Control records of a file: which they are, and that nothing else of the table depends on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.contract.examples import SCHEMA, _example_table
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.data_source import DataSource
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.files import SourceFile, read_file_microdata

PEOPLE = Schema((Variable("area", Kind.CATEGORICAL), Variable("age", Kind.COUNT)))
KEY = bytes(range(32))


def file_of(frame: pd.DataFrame) -> SourceFile:
    return SourceFile("people.csv", frame.to_csv(index=False).encode())


def people(records: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame({"area": rng.choice(list("abc"), records), "age": np.arange(records)})


def read(frame: pd.DataFrame, key: bytes = PUBLIC, seed: int = 1, schema: Schema = PEOPLE, **data: Any) -> Microdata:
    return read_file_microdata(file_of(frame), DataSource(**data), schema, seed, key=key)


def controls_of(data: Microdata) -> Microdata:
    assert data.controls is not None
    return data.controls


def ages(data: Microdata) -> list[float]:
    return data.numbers("age").tolist()


@pytest.mark.parametrize(("share", "held"), [(0.2, 40), (0.5, 100), (0.001, 1), (0.994, 199)])
@pytest.mark.parametrize("key", [PUBLIC, KEY])
def test_a_share_is_held_out(share: float, held: int, key: bytes) -> None:
    found = read(people(), key, holdout=share)
    assert (len(found), len(controls_of(found))) == (200 - held, held)
    assert sorted(ages(found) + ages(controls_of(found))) == list(range(200))
    assert ages(found) == sorted(ages(found))
    assert ages(controls_of(found)) == sorted(ages(controls_of(found)))


def test_a_share_is_of_the_sample_which_is_the_one_without_it() -> None:
    found, sample = (read(people(), KEY, sample=50, **own) for own in ({"holdout": 0.2}, {}))
    assert (len(found), len(controls_of(found))) == (40, 10)
    assert sorted(ages(found) + ages(controls_of(found))) == ages(sample)


@pytest.mark.slow
def test_which_they_are_hangs_on_key_seed_file_filter_and_share() -> None:
    """A keyed choice is the same or independent; the seed alone gives much the same ones for another share."""
    table = people(800)
    one = set(ages(controls_of(read(table, KEY, holdout=0.5))))
    assert one == set(ages(controls_of(read(table, KEY, holdout=0.5))))
    other_file = table.assign(age=table["age"].where(table["age"] > 0, 5_000))
    for other in (
        read(table, KEY[::-1], holdout=0.5), read(table, KEY, 2, holdout=0.5), read(table, KEY, holdout=0.501),
        read(table, KEY, holdout=0.5, where="age >= 0"), read(other_file, KEY, holdout=0.5), read(table, holdout=0.5),
    ):  # fmt: skip
        both = len(one & set(ages(controls_of(other))))
        assert abs(both - 200) < 4 * np.sqrt(800 / 16)


@pytest.mark.parametrize(
    "words", [("0", "1"), ("no", "Yes"), ("false", "TRUE"), ("training", "Control"), (False, True), (0, 1), (0.0, 1.0)]
)
def test_a_column_says_which_they_are(words: tuple[Any, Any]) -> None:
    table = people().assign(kept_out=np.where(np.arange(200) % 4 == 0, words[1], words[0]))
    found = read(table, holdout="kept_out")
    assert ages(controls_of(found)) == list(range(0, 200, 4))
    assert len(found) == 150
    assert found.schema == controls_of(found).schema == PEOPLE
    sample = read(table, KEY, sample=60, holdout="kept_out")
    assert all(age % 4 == 0 for age in ages(controls_of(sample)))
    assert len(sample) + len(controls_of(sample)) == 60


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (None, 'no column "kept_out"'),
        ([*["0"] * 199, "zqxj"], "must say of each record whether it is a control"),
        ([*["0"] * 199, "yes"], "must say of each record whether it is a control"),
        ([*["0"] * 150, *["1"] * 49, None], "1 of 200 records have no"),
        (["0"] * 200, "each of the 200 records is no control"),
        (["control"] * 200, "each of the 200 records is a control"),
    ],
)
def test_a_column_that_does_not_say_it_is_refused(column: list[Any] | None, said: str) -> None:
    table = people() if column is None else people().assign(kept_out=column)
    with pytest.raises(BadInput) as caught:
        read(table, holdout="kept_out", missing=MissingPolicy.DROP)
    assert caught.value.place == "data.holdout"
    assert said in caught.value.message
    assert "zqxj" not in caught.value.message


def test_a_share_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^data.holdout: 0.9 of 4 records leaves none"):
        read(people(4), holdout=0.9)


def test_records_with_missing_values_leave_on_both_sides() -> None:
    table = people().assign(kept_out=np.arange(200) % 2)
    table.loc[:9, "area"] = None
    found = read(table, holdout="kept_out", missing=MissingPolicy.DROP)
    assert (len(found), len(controls_of(found)), found.dropped) == (95, 95, 10)
    kept = read(table, holdout="kept_out", missing=MissingPolicy.KEEP)
    assert (int(kept.missing_mask("area").sum()), int(controls_of(kept).missing_mask("area").sum())) == (5, 5)


def test_records_read_once_are_read_the_same_again() -> None:
    """Both parts are conformed anew, as if the file had no other records."""
    data = _example_table()
    pd.testing.assert_frame_equal(conform_to_schema(data.frame, SCHEMA).frame, data.frame)
    lacking = data.frame.mask(np.random.default_rng(1).random(data.frame.shape) < 0.1)
    once = conform_to_schema(lacking, SCHEMA, MissingPolicy.KEEP)
    pd.testing.assert_frame_equal(conform_to_schema(once.frame, SCHEMA, MissingPolicy.KEEP).frame, once.frame)


RECIPE = Recipe.from_table(
    {
        "variables": {"area": {"kind": "categorical"}, "age": {"kind": "count"}},
        "release": {"m": 1, "seed": 3},
        "synthesis": [
            {"target": "area", "method": "cart", "predictors": []},
            {"target": "age", "method": "cart", "predictors": ["area"]},
        ],
    }
)


def made_beside(controls: list[tuple[str, int]]) -> tuple[str, Microdata]:
    """The hash of the training records that stand in a file with these controls, and a release that is made of them."""
    training = pd.DataFrame({"area": ["1.0", "2.0", "10.0", "2.0"] * 6, "age": np.arange(24), "held": "0"})
    others = pd.DataFrame(controls, columns=["area", "age"]).assign(held="1")
    data = read(pd.concat([others, training]), holdout="held")
    assert len(controls_of(data)) == len(controls)
    return data.sha256, execute_run(RECIPE, data, key=KEY).releases[0]


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "1.0", "7", "zz", "Ä"]), st.integers(0, 10**9)), min_size=1, max_size=12
    )
)
def test_no_release_depends_on_a_control(controls: list[tuple[str, int]]) -> None:
    """Neither values, levels, their order nor their spelling: 1.0 and 2.0 are 1 and 2 unless another level is no number."""
    first, second = made_beside([("1.0", 3)]), made_beside(controls)
    assert first[0] == second[0]
    pd.testing.assert_frame_equal(first[1].frame, second[1].frame)
    assert list(second[1].frame["area"].cat.categories) == ["1", "2", "10"]
