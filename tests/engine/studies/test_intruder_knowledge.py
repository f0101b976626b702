"""Identification by every subset of what an intruder may know, against loops over records, subsets and orders."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe

SCHEMA = schema_of(
    "region: categorical quasi_identifier",
    "age: count quasi_identifier",
    "since: date quasi_identifier",
    "pay: continuous sensitive",
)
RADIUS = {"pay": "5%", "since": 1}
Subset = tuple[str, ...]


def people(records: int, seed: int) -> Microdata:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "region": rng.choice(list("ab"), records),
            "age": rng.integers(20, 23, records),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 5, records), unit="D"),
            "pay": rng.choice([100.0, 104.0, 150.0], records),
        }
    )
    return conform_to_schema(frame, SCHEMA)


def shuffle_pay(data: Microdata, seed: int) -> Microdata:
    pay = data.column("pay").sample(frac=1, random_state=np.random.default_rng(seed)).reset_index(drop=True)
    return data.with_columns({"pay": pay}, "synthetic")


def copy_of(data: Microdata) -> Microdata:
    return Microdata(data.schema, data.frame, "synthetic")


def recipe(**table) -> Recipe:
    return Recipe.from_table(
        {
            "variables": {v.name: v.to_table() for v in SCHEMA},
            "release": {"m": 2, "released": ["pay"]},
            "study": [{"method": "studies.intruder_knowledge", "radius": RADIUS, **table}],
        }
    )


def study_rows(data: Microdata, releases: Sequence[Microdata], **table) -> list[Row]:
    return [row for row in execute_run(recipe(**table), data, releases, key=PUBLIC).rows if row.family == "studies"]


def subsets(rows: Sequence[Row], dataset: str, measure: str = "expected_match_risk") -> dict[Subset, float]:
    return {
        tuple(row.params["variables"]): float(row.value)  # type: ignore[arg-type]
        for row in rows
        if row.dataset == dataset and row.measure == measure
    }


def by_variable(rows: Sequence[Row], measure: str, dataset: str = "synthetic") -> dict[str, float]:
    return {row.target: float(row.value) for row in rows if row.measure == measure and row.dataset == dataset}  # type: ignore[arg-type]


def by_loops(data: Microdata, released: Microdata, names: Subset) -> tuple[Fraction, Fraction]:
    near = {
        "region": lambda a, b: a == b,
        "age": lambda a, b: a == b,
        "since": lambda a, b: abs((a - b).days) <= 1,
        "pay": lambda a, b: abs(a - b) <= 5 * a / 100,
    }
    expected, alone = Fraction(0), 0
    ours, theirs = data.frame.to_dict("records"), released.frame.to_dict("records")
    for i, a in enumerate(ours):
        candidates = [j for j, b in enumerate(theirs) if all(near[name](a[name], b[name]) for name in names)]
        expected += Fraction(1, len(candidates)) if i in candidates else 0
        alone += candidates == [i]
    return expected, Fraction(alone, len(ours))


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(2, 12))
def test_every_subset_is_what_loops_find_and_the_variables_are_what_all_orders_say(seed: int, records: int) -> None:
    data = people(records, seed)
    releases = [shuffle_pay(data, seed + 1), shuffle_pay(data, seed + 2)]
    rows = study_rows(data, releases)
    names = SCHEMA.names
    every = [subset for size in range(5) for subset in combinations(names, size)]
    expected = {}
    for dataset, tables in (("confidential", [data]), ("synthetic", releases)):
        told = {one: [by_loops(data, table, one) for table in tables] for one in every}
        for at, measure in enumerate(("expected_match_risk", "true_match_rate")):
            means = {one: float(sum(values[at] for values in pairs) / len(tables)) for one, pairs in told.items()}
            assert subsets(rows, dataset, measure) == pytest.approx(means)
            if not at:
                expected = means
    for name in names:
        steps = [
            expected[tuple(n for n in names if n in (*order[: order.index(name)], name))]
            - expected[tuple(n for n in names if n in order[: order.index(name)])]
            for order in permutations(names)
        ]
        others = tuple(n for n in names if n != name)
        assert by_variable(rows, "shapley_risk")[name] == pytest.approx(np.mean(steps))
        assert by_variable(rows, "added_risk")[name] == pytest.approx(expected[names] - expected[others])
        left = max(value for one, value in expected.items() if name not in one)
        assert by_variable(rows, "risk_without")[name] == pytest.approx(left)
        less = [
            expected[tuple(n for n in names if n in (*one, name))] < expected[one] - 1e-9
            for one in every
            if name not in one
        ]
        assert by_variable(rows, "lowering_share")[name] == pytest.approx(np.mean(less))
    largest = next(row for row in rows if row.measure == "largest_risk" and row.dataset == "synthetic")
    assert largest.value == pytest.approx(max(expected.values()))
    first = next(row for row in rows if row.measure == "coarsen_first" and row.dataset == "synthetic")
    assert first.value == pytest.approx(min(by_variable(rows, "risk_without").values()))
    assert first.target not in first.params["variables"]


def test_by_hand() -> None:
    """Four records of two regions and two ages: each is alone by both, half so by one, 1 of 4 by none."""
    frame = people(4, 1).frame.assign(region=list("aabb"), age=[20, 21, 20, 21], pay=100.0)
    data = conform_to_schema(frame, SCHEMA)
    rows = study_rows(data, [copy_of(data)] * 2, known=["region", "age"], synthesised=["pay"], radius={"pay": "5%"})
    assert subsets(rows, "synthetic") == subsets(rows, "confidential") == {
        (): 1, ("region",): 2, ("age",): 2, ("pay",): 1,
        ("region", "age"): 4, ("region", "pay"): 2, ("age", "pay"): 2, ("region", "age", "pay"): 4,
    }  # fmt: skip
    assert by_variable(rows, "shapley_risk") == pytest.approx({"region": 1.5, "age": 1.5, "pay": 0})
    assert by_variable(rows, "risk_without") == {"region": 2, "age": 2, "pay": 4}
    assert by_variable(rows, "lowering_share") == {"region": 0, "age": 0, "pay": 0}


def test_an_intruder_who_knows_less_may_find_more_and_the_study_says_who() -> None:
    """Pays of others lead away: kept variables alone find more than with them, and the largest risk is theirs."""
    frame = people(60, 3).frame.assign(age=np.arange(60), pay=np.arange(60) * 50.0 + 100)
    data = conform_to_schema(frame, SCHEMA)
    rows = study_rows(data, [shuffle_pay(data, 1), shuffle_pay(data, 2)])
    own = subsets(rows, "synthetic")
    assert own["region", "age", "since", "pay"] < 5 < own[("age",)] == pytest.approx(60)
    largest = next(row for row in rows if row.measure == "largest_risk" and row.dataset == "synthetic")
    assert (largest.value, largest.params["variables"], largest.baseline) == (60, ["age"], 60)
    first = next(row for row in rows if row.measure == "coarsen_first" and row.dataset == "synthetic")
    assert first.target == "age"
    assert by_variable(rows, "lowering_share")["pay"] > 0.5
    assert by_variable(rows, "lowering_share", "confidential") == dict.fromkeys(SCHEMA.names, 0.0), (
        "of the data themselves, knowing more finds more"
    )


def test_a_copy_scores_as_the_data_and_noise_as_a_guess() -> None:
    data = people(80, 5)
    rows = study_rows(data, [copy_of(data)] * 2)
    assert subsets(rows, "synthetic") == pytest.approx(subsets(rows, "confidential"))
    noise = subsets(
        study_rows(
            data, [shuffle_pay(data, seed) for seed in (1, 2)], known=["age"], synthesised=["pay"], radius={"pay": "5%"}
        ),
        "synthetic",
    )
    assert 0.2 < noise[("pay",)] < 3, "about one record is found by chance"
    assert noise[()] == pytest.approx(1)


def test_order_of_records_and_of_variables_and_two_uses_change_nothing() -> None:
    data, released = people(40, 7), shuffle_pay(people(40, 7), 8)
    turned = np.random.default_rng(1).permutation(40)
    other = [conform_to_schema(one.frame.iloc[turned].reset_index(drop=True), SCHEMA) for one in (data, released)]
    plain = study_rows(data, [released] * 2)
    for again in (
        study_rows(other[0], [copy_of(other[1])] * 2),
        study_rows(data, [released] * 2, known=["since", "region", "age"], synthesised=["pay"]),
    ):
        assert {frozenset(one): value for one, value in subsets(again, "synthetic").items()} == pytest.approx(
            {frozenset(one): value for one, value in subsets(plain, "synthetic").items()}
        )
        assert by_variable(again, "shapley_risk") == pytest.approx(by_variable(plain, "shapley_risk"))
    table = recipe().to_table()
    both = Recipe.from_table({**table, "study": [*table["study"], {**table["study"][0], "known": ["age", "since"]}]})
    rows = [row for row in execute_run(both, data, [released] * 2, key=PUBLIC).rows if row.draw is None]
    alone = [row for row in plain if row.draw is None]
    assert len({(row.dataset, row.series) for row in rows}) == len(rows)
    assert [row for row in rows if row.params["known"] == ["region", "age", "since"]] == alone


def test_thresholds_hold_the_largest_subset_to_their_limit() -> None:
    data = people(30, 2)
    table = recipe().to_table()
    value = "studies.intruder_knowledge.largest_risk"
    judged = Recipe.from_table({**table, "threshold": [{"value": value, "max": 1}, {"value": value, "max_ratio": 1}]})
    verdicts = execute_run(judged, data, [shuffle_pay(data, 3)] * 2, key=PUBLIC).verdicts
    assert [verdict.outcome for verdict in verdicts] == ["not met", "met"]


def test_what_cannot_be_computed_has_a_row_with_the_reason() -> None:
    data = people(30, 2)
    released = Microdata(SCHEMA, shuffle_pay(data, 3).frame, "synthetic", linked=False)
    rows = [row for row in study_rows(data, [released] * 2) if row.dataset == "synthetic"]
    assert {row.status for row in rows} == {"not computed"}
    assert all("which record is whose" in row.reason for row in rows)


def test_too_many_variables_are_refused_with_how_many_subsets_they_have() -> None:
    names = [f"v{i}" for i in range(13)]
    table = {
        "variables": {name: {"kind": "binary", "role": "quasi_identifier"} for name in names},
        "release": {"released": []},
        "study": [{"method": "studies.intruder_knowledge"}],
    }
    with pytest.raises(BadInput, match=r"^study\[0\].known: 13 variables have 8,192 subsets; name at most 12$"):
        Recipe.from_table(table)
