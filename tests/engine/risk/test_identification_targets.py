"""Identification of some of the records: those that a condition describes, or so many drawn at random."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.record_risk import average_record_risk
from sfumato.engine.execution.tasks import execute_run, measure_dataset
from sfumato.engine.methods.results import Measure
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.risk.identification import IdentificationSpec, _effective_cases, check_data, identification

SCHEMA = schema_of(
    "region: categorical quasi_identifier",
    "age: count quasi_identifier",
    "since: date quasi_identifier",
    "income: continuous sensitive",
)
KEY = b"k" * 32


def people(records: int, seed: int = 1, origin="confidential") -> Microdata:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "region": rng.choice(list("abc"), records),
            "age": rng.integers(20, 26, records),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 4, records), unit="D"),
            "income": rng.choice([100.0, 104.0, 150.0], records),
        }
    )
    return conform_to_schema(frame, SCHEMA, origin=origin)


def shuffle_age_and_income(data: Microdata, seed: int) -> Microdata:
    """A release: incomes and ages of others, where the rest stays."""
    rng = np.random.default_rng(seed)
    columns = {
        name: data.column(name).sample(frac=1, random_state=rng).reset_index(drop=True) for name in ("age", "income")
    }
    return data.with_columns(columns, "synthetic")


def measure_release(data: Microdata, released: Microdata, run: Run | None = None, **table) -> Measure:
    spec = IdentificationSpec.from_table({"radius": {"income": "5%", "since": 1, "age": 1}, **table}, "measure[0]")
    spec.check_release(SCHEMA, ("age", "income"), "measure[0]")
    check_data(data, "", spec, "measure[0]")
    return identification(
        data, released, spec.for_release(SCHEMA, ("age", "income")), run or Run(np.random.default_rng(0))
    )


def by_loops(data: Microdata, released: Microdata, wanted) -> tuple[list, dict[str, float | None]]:
    """Levels equal, known and synthesised numbers and dates within their radii, record by record."""
    ours, theirs = data.frame, released.frame
    found = []
    for i in filter(wanted, range(len(ours))):
        a = ours.loc[i]
        candidates = [
            j
            for j in range(len(theirs))
            if theirs.region[j] == a.region
            and abs(theirs.age[j] - a.age) <= 1
            and abs((theirs.since[j] - a.since).days) <= 1
            and abs(theirs.income[j] - a.income) <= 5 * a.income / 100
        ]
        found.append((len(candidates), i in candidates))
    unique = [hit for c, hit in found if c == 1]
    return found, {
        "expected_match_risk": sum(1 / c for c, hit in found if hit),
        "true_match_rate": sum(unique) / len(found),
        "false_match_rate": 1 - sum(unique) / len(unique) if unique else None,
        "unique_matches": len(unique),
    }


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.integers(0, 10_000),
    st.integers(2, 14),
    st.sampled_from(
        [{}, {"age": ["20-22"]}, {"age": ["23", ">=25"], "region": ["a", "b"]}, {"since": ["[2020-01-02, 2020-01-03]"]}]
    ),
)
def test_any_mix_of_levels_numbers_and_dates_is_what_loops_find_of_the_targets(seed, records, among) -> None:
    data = people(records, seed)
    released = shuffle_age_and_income(data, seed + 1)
    frame = data.frame

    def wanted(i: int) -> bool:
        age, region = frame.age[i], frame.region[i]
        return all(
            {
                "age": age <= 22 if among.get("age") == ["20-22"] else age in (23, 25),
                "region": region in ("a", "b"),
                "since": frame.since[i].day in (2, 3),
            }[name]
            for name in among
        )  # fmt: skip

    chosen = [i for i in range(records) if wanted(i)]
    known = set(frame.region)
    if not chosen or ("region" in among and not {"a", "b"} <= known):
        with pytest.raises(BadInput, match=r"measure\[0\].among"):
            measure_release(data, released, among=among)
        return
    found, summaries = by_loops(data, released, wanted)
    measure = measure_release(data, released, among=among)
    found_by_all = {e.measure: e.value for e in measure.estimates if not e.measure.startswith("largest_")}
    assert found_by_all == {name: value if value is None else pytest.approx(value) for name, value in summaries.items()}
    candidates = measure.per_record["candidates"]
    assert [int(c) for c in candidates[chosen]] == [c for c, _ in found]
    assert not among or np.isnan(np.delete(candidates, chosen)).all()
    assert len(average_record_risk([measure.per_record]).ranking()) == len(chosen), (
        "record-level results are of the targets alone"
    )


def test_shares_are_over_the_targets_and_say_so() -> None:
    data = people(60)
    measure = measure_release(data, data, targets=10)
    assert {e.reason.split("; ")[-1] for e in measure.estimates} == {"of 10 target records"}
    asked = ~np.isnan(measure.per_record["candidates"])
    assert asked.sum() == 10
    alone = (measure.per_record["candidates"] == 1) & asked
    assert next(e.value for e in measure.estimates if e.measure == "true_match_rate") == alone.sum() / 10


@pytest.mark.parametrize("drawn", [1, 2, 4, 6])
def test_means_over_every_choice_of_targets_vary_as_those_of_so_many_independent_records(drawn: int) -> None:
    values = np.array([0, 0, 1, 0.5, 1, 0, 0.25])
    means = [values[list(some)].mean() for some in combinations(range(7), drawn)]
    assert np.var(means) == pytest.approx(np.var(values) / _effective_cases(drawn, 7))
    assert _effective_cases(7, 7) == math.inf


def recipe(**table) -> Recipe:
    step = {"method": "risk.identification", "radius": {"income": "5%"}, **table}
    return Recipe.from_table(
        {
            "variables": {v.name: v.to_table() for v in SCHEMA},
            "release": {"m": 3, "released": ["income"]},
            "measure": [step, {**step, "targets": 7}, {**step, "targets": 7, "among": {"region": ["a"]}}],
        }
    )


def test_all_datasets_and_the_confidential_data_have_the_same_targets_and_uses_stay_apart() -> None:
    data = people(50)
    of = recipe(targets=5)
    asked = {
        (item, draw): np.flatnonzero(
            ~np.isnan(
                measure_dataset(of, item, data, shuffle_age_and_income(data, 2), draw, key=KEY)[0].per_record[
                    "candidates"
                ]
            )
        ).tolist()
        for item in (0, 1)
        for draw in (None, 1, 2)
    }
    assert asked[0, None] == asked[0, 1] == asked[0, 2]
    assert asked[1, None] == asked[1, 1] != asked[0, 1][:7]
    rows = execute_run(of, data, [shuffle_age_and_income(data, seed) for seed in (2, 3, 4)], key=KEY).rows
    averages = [
        row for row in rows if row.draw is None and row.dataset == "synthetic" and row.measure == "true_match_rate"
    ]
    assert len(averages) == 3
    assert [row.params.get("targets") for row in averages] == [5, 7, 7]
    assert [row.baseline is None for row in averages] == [False] * 3


def test_who_is_drawn_hangs_on_the_key_and_not_on_the_order_of_the_file() -> None:
    rng = np.random.default_rng(3)
    frame = people(40).frame.assign(income=np.arange(40) * 10.0 + 5)
    data = conform_to_schema(frame, SCHEMA)
    turned = rng.permutation(40)
    other = conform_to_schema(frame.iloc[turned].reset_index(drop=True), SCHEMA)
    of = recipe(targets=9)

    def targets(table: Microdata, key: bytes) -> set[float]:
        measure = measure_dataset(of, 0, table, table, None, key=key)[0]
        return set(table.frame.income[~np.isnan(measure.per_record["candidates"])])

    assert targets(data, PUBLIC) == targets(other, PUBLIC)
    assert targets(data, KEY) != targets(data, b"j" * 32)
    assert len(targets(data, KEY)) == 9


@pytest.mark.parametrize(
    ("table", "place", "message"),
    [
        ({"targets": 99}, "targets", "99 are more than the 30 records"),
        ({"among": {"region": ["z"]}}, "among.region[0]", 'no level "z"'),
        ({"among": {"region": []}}, "among.region", "names no value"),
        ({"among": {"age": ["old"]}}, "among.age[0]", '"old" is no interval of "age"; write one value'),
        ({"among": {"since": ["20-29"]}}, "among.since[0]", "2020-01-01"),
        ({"among": {"age": [">90"]}}, "among", "no record matches"),
        ({"targets": 0}, "targets", "at least 1"),
    ],
)
def test_targets_that_are_none_are_refused_with_the_place(table, place: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        measure_release(people(30), people(30), **table)
    assert caught.value.place == f"measure[0].{place}"


def test_the_spelling_of_a_level_and_of_a_number_changes_nothing() -> None:
    schema = Schema(
        (Variable("code", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER), Variable("age", Kind.COUNT, Role.QUASI_IDENTIFIER))
    )
    data = conform_to_schema(pd.DataFrame({"code": ["1", "2", "2"], "age": [1, 2, 3]}), schema)
    for among in ({"code": ["2"]}, {"code": ["2.0"]}, {"age": ["[2,3]"]}, {"age": ["2", "3.0"]}):
        spec = IdentificationSpec.from_table({"among": among}, "m").for_release(schema, ())
        assert np.isnan(identification(data, data, spec, Run(np.random.default_rng(0))).per_record["hit"]).tolist() == [
            True,
            False,
            False,
        ]
