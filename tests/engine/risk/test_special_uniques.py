"""Special uniques by hand, against all subsets by brute force, published scores, and what a false answer would look like."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.risk.special_uniques import (
    SpecialUniquesSpec,
    _dis_by_record,
    find_minimal_uniques,
    special_uniques,
)

RUN = Run(np.random.default_rng(0))


def table(rows: pd.DataFrame, missing: MissingPolicy = MissingPolicy.REFUSE) -> Microdata:
    return conform_to_schema(
        rows, Schema(tuple(Variable(str(n), Kind.CATEGORICAL, Role.QUASI_IDENTIFIER) for n in rows)), missing
    )


def measure_release(data: Microdata, released: Microdata | None = None, **spec: Any) -> Any:
    return special_uniques(data, released or data, SpecialUniquesSpec(keys=data.schema.names, **spec), RUN)


def values(measure: Any) -> dict[tuple[str, str, Any], float | None]:
    return {(e.measure, e.target, e.params.get("size", e.params.get("level"))): e.value for e in measure.estimates}


FOUR = pd.DataFrame({"sex": list("mmff"), "job": list("aabb"), "town": list("xyxx")})
"""Record 1 is the only one of town y: {town}. Record 0 is the only man of x, and the only a of x: {sex, town}, {job, town}."""


def test_four_records_by_hand() -> None:
    found = measure_release(table(FOUR), sampling_fraction=0.1)
    # A = M = 3: a set of one key counts (3 - 1)(3 - 2) = 2, one of two 1
    assert found.per_record["score"].tolist() == [2, 2, 0, 0]
    assert found.per_record["agreeing"].tolist() == [1, 1, 2, 2]
    answers = values(found)
    assert answers["special_uniques", "", None] == 2
    assert [answers["minimal_uniques", "", size] for size in (1, 2, 3)] == [1, 2, 0]
    assert answers["mean_score", "", None] == 1
    assert answers["largest_score", "", None] == 2
    # two uniques, one pair of two records: 2 x 0.1 / (2 x 0.1 + 2 x 0.9)
    assert answers["dis", "", None] == pytest.approx(0.1)
    assert found.per_record["dis"] == pytest.approx([0.1, 0.1, 0, 0]), "equal scores have the file's own"
    assert answers["attribute_contribution", "town", None] == 1
    assert answers["attribute_contribution", "sex", None] == 0.25
    assert answers["level_contribution", "town", "y"] == 0.5
    assert answers["level_contribution", "sex", "f"] == 0


def test_scores_are_those_of_the_guideline_and_the_book() -> None:
    """Scores of the examples that sdcMicro's tests call those of the guideline and of the book (tests/testthat/test_suda2.R)."""
    guide = pd.DataFrame(
        {
            "residence": ["Urban"] * 4 + ["Rural"] + ["Urban"] * 5,
            "gender": list("FFFMFMFMFF"),
            "education": ["SI", "SI", "PI", "SC", "SC", "SC", "PC", "PS", "SI", "SI"],
            "labour": ["E", "E", "N", "E", "U", "E", "N", "U", "N", "N"],
        }
    )
    assert measure_release(table(guide)).per_record["score"].tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    book = pd.DataFrame(
        {
            "age": ["20s"] * 7 + ["60s"],
            "gender": list("mmmmfffm"),
            "income": ["+", "+"] + ["-"] * 6,
            "education": ["h"] * 4 + ["u", "h", "i", "u"],
        }
    )
    assert measure_release(table(book)).per_record["score"].tolist()[4:] == [4, 2, 6, 8]


def test_contributions_are_those_of_sdcmicro_where_it_counts_every_set() -> None:
    """Three records, a = 2 1 1, b = 0 3 0: {a} of the first, {b} and {c} of the second, {a, b} and {a, c} of the third."""
    rows = pd.DataFrame({"a": list("211"), "b": list("030"), "c": list("060")})
    found = measure_release(table(rows))
    assert found.per_record["score"].tolist() == [2, 4, 2]
    answers = values(found)
    shares = [answers["attribute_contribution", name, None] for name in "abc"]
    assert shares == [0.5, 0.375, 0.375], "50, 37.5 and 37.5 in its tests"


def by_brute_force(codes: np.ndarray[Any, Any], largest: int) -> set[tuple[int, tuple[int, ...]]]:
    """Every set of columns, every record: unique there, and on no part of the set."""
    n, width = codes.shape
    found: set[tuple[int, tuple[int, ...]]] = set()
    for size in range(1, largest + 1):
        for chosen in combinations(range(width), size):
            for i in range(n):
                alone = all(any(codes[i, j] != codes[o, j] for j in chosen) for o in range(n) if o != i)
                if alone and not any((i, part) in found for k in range(1, size) for part in combinations(chosen, k)):
                    found.add((i, chosen))
    return found


@st.composite
def coded_tables(draw: st.DrawFn) -> tuple[Any, int]:
    width = draw(st.integers(1, 5))
    rows = draw(st.lists(st.tuples(*[st.integers(0, draw(st.integers(0, 3)))] * width), min_size=1, max_size=14))
    return np.array(rows, dtype=np.int64), draw(st.integers(1, width))


@pytest.mark.slow
@given(coded_tables())
def test_the_search_finds_what_all_subsets_say(case: tuple[Any, int]) -> None:
    codes, largest = case
    found = [(int(i), chosen) for chosen, rows in find_minimal_uniques(codes, largest) for i in rows]
    assert len(found) == len(set(found))
    assert set(found) == by_brute_force(codes, largest)


def test_a_search_that_forgot_to_look_at_parts_would_be_noticed() -> None:
    codes = np.array([[0, 0], [1, 0], [1, 0]])
    assert by_brute_force(codes, 2) == {(0, (0,))}, "not {0, 1} as well"


def test_the_order_of_records_and_keys_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({name: rng.choice(list("abcd"), 200) for name in "pqrst"})
    order = rng.permutation(200)
    first = measure_release(table(rows), sampling_fraction=0.2)
    again = measure_release(table(rows.iloc[order].reset_index(drop=True)), sampling_fraction=0.2)
    for name in ("agreeing", "score", "dis"):
        assert np.array_equal(first.per_record[name][order], again.per_record[name]), name
    assert values(measure_release(table(rows[list("tsrqp")]), sampling_fraction=0.2)) == values(first)


def test_a_missing_value_is_a_value() -> None:
    rows = FOUR.assign(town=["x", None, "x", "x"])
    found = measure_release(table(rows, MissingPolicy.KEEP))
    assert found.per_record["score"].tolist() == [2, 2, 0, 0]
    assert values(found)["level_contribution", "town", "missing value"] == 0.5


def test_nobody_is_special_where_everybody_has_a_twin() -> None:
    found = measure_release(table(pd.concat([FOUR, FOUR], ignore_index=True)))
    assert values(found)["special_uniques", "", None] == 0
    assert not found.per_record["score"].any()
    assert not found.per_record["dis"].any()
    reasons = {e.measure: e.reason for e in found.estimates if e.value is None}
    assert reasons["dis"] == "no record is unique by all keys"
    assert reasons["attribute_contribution"] == "no record has a minimal sample unique"


def test_a_bound_on_the_size_says_whom_it_passes_over() -> None:
    rows = pd.DataFrame({"a": list("0011"), "b": list("0101")})
    answers = {e.measure: e for e in measure_release(table(rows), largest=1).estimates}
    assert answers["special_uniques"].value == 0
    assert answers["special_uniques"].reason == "4 more records are unique, but by no set of 1 keys or fewer"
    assert values(measure_release(table(rows)))["special_uniques", "", None] == 4


def test_without_a_fraction_a_unique_is_a_person() -> None:
    found = measure_release(table(FOUR))
    assert values(found)["dis", "", None] == 1
    assert found.per_record["dis"].tolist() == [1, 1, 0, 0]


def test_a_larger_score_has_a_larger_dis_about_that_of_the_file() -> None:
    rng = np.random.default_rng(5)
    rows = pd.DataFrame({name: rng.choice(list("abcde"), 300) for name in "pqrs"})
    found = measure_release(table(rows), sampling_fraction=0.05)
    score, dis = found.per_record["score"], found.per_record["dis"]
    order = np.argsort(score, kind="stable")
    assert (np.diff(dis[order]) >= 0).all()
    assert dis[score > 0].min() < values(found)["dis", "", None] < dis.max()


def test_sixteen_keys_of_many_records_are_refused_before_they_are_searched() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(NotComputable, match="name fewer keys or a smaller size"):
        list(find_minimal_uniques(rng.integers(0, 9, (20, 19)), 19))
    assert list(find_minimal_uniques(rng.integers(0, 9, (20, 19)), 1)) is not None


PLAN: dict[str, Any] = {
    "variables": {name: {"kind": "categorical", "role": "quasi_identifier"} for name in FOUR},
    "measure": [{"method": "risk.special_uniques"}, {"method": "risk.special_uniques", "largest": 1}],
}


def test_a_release_is_scored_by_its_own_records_beside_the_confidential_ones_and_two_uses_stay_apart() -> None:
    plan = Recipe.from_table(PLAN)
    twins = FOUR.assign(town="x")
    rows = execute_run(
        plan,
        conform_to_schema(FOUR, plan.schema),
        [conform_to_schema(twins, plan.schema, origin="synthetic")],
        key=PUBLIC,
    ).rows
    found = {
        (r.dataset, r.params.get("largest")): (r.value, r.baseline)
        for r in rows
        if r.measure == "special_uniques" and r.draw is None
    }
    assert found["confidential", None][0] == 2
    assert found["confidential", 1][0] == 1
    assert found["synthetic", None] == (0, 2)
    assert found["synthetic", 1] == (0, 1)


@pytest.mark.parametrize(
    ("changed", "place", "said"),
    [
        ({"keys": ["sex", "sex"]}, "measure[0].keys[1]", '"sex" is listed twice'),
        ({"keys": ["sexx"]}, "measure[0].keys[0]", 'did you mean "sex"'),
        ({"sampling_fraction": 0.0}, "measure[0].sampling_fraction", "above 0"),
        ({"largest": 0}, "measure[0].largest", "at least 1"),
    ],
)
def test_bad_input_names_the_place(changed: dict[str, Any], place: str, said: str) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        Recipe.from_table({**PLAN, "measure": [{"method": "risk.special_uniques", **changed}]})
    assert caught.value.place == place


@pytest.mark.parametrize(("keys", "power"), [(3, 1.25), (8, 1.0), (12, 0.8)])
def test_odds_of_a_right_match_go_by_a_power_of_the_score_that_falls_with_the_number_of_keys(
    keys: int, power: float
) -> None:
    """1 + (8 - keys) / 20, as SUDA2 has it; equal scores have the odds of the file."""
    dis = _dis_by_record(np.array([4.0, 1.0, 0.0]), 0.1, keys)
    odds = dis[:2] / (1 - dis[:2])
    assert odds[0] / odds[1] == pytest.approx(4**power)
    assert dis[2] == 0
    assert _dis_by_record(np.full(5, 3.0), 0.1, keys) == pytest.approx(0.1)
