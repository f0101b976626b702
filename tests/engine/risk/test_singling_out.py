"""Singling out: tables of four rows, every record counted again, and calibration where nothing leaks."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_tables import schema_of
from scipy.sparse import csr_array

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.results import Estimate
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.risk.singling_out import (
    AT_LEAST,
    AT_MOST,
    EQUAL,
    MISSING,
    PredicateSet,
    SinglingOutSpec,
    _hypergeometric_chance,
    _PredicateCounts,
    multivariate_predicates,
    singling_out,
    tables_as_floats,
    univariate_predicates,
)

SMALL = Schema((Variable("age", Kind.COUNT), Variable("sex", Kind.BINARY, levels=("f", "m"))))
PEOPLE = schema_of(
    Variable("area", Kind.CATEGORICAL, levels=tuple("abcdefgh")),
    Variable("sex", Kind.BINARY, levels=("0", "1")),
    "age: count",
    "income: continuous",
)


def small(ages: list[int | None], sexes: str) -> Microdata:
    return conform_to_schema(pd.DataFrame({"age": ages, "sex": list(sexes)}), SMALL, MissingPolicy.KEEP)


def people(records: int, rng: np.random.Generator) -> Microdata:
    age = rng.integers(18, 90, records)
    return conform_to_schema(
        pd.DataFrame(
            {
                "area": rng.choice(list("abcdefgh"), records, p=np.array([30, 20, 15, 12, 10, 8, 4, 1]) / 100),
                "sex": rng.choice(["0", "1"], records),
                "age": age,
                "income": np.round(np.exp(7 + 0.01 * age + 0.5 * rng.normal(size=records)), -1),
            }
        ),
        PEOPLE,
    )


def attack(
    data: Microdata, controls: Microdata, released: Microdata, seed: int = 1, **spec: Any
) -> dict[tuple[str, str, str], Estimate]:
    """The estimates by kind, measure and variable."""
    full = SinglingOutSpec(**spec).for_release(data.schema, ())
    found = singling_out(
        data.with_controls(controls),
        Microdata(released.schema, released.frame, "synthetic"),
        full,
        Run(np.random.default_rng(seed)),
    )
    return {(one.params["kind"], one.measure, one.target): one for one in found.estimates}


def values(found: dict[tuple[str, str, str], Estimate], kind: str) -> dict[str, Any]:
    return {measure: one.value for (own, measure, target), one in found.items() if own == kind and not target}


FOUR = small([20, 30, 40, 50], "fmfm")
OTHERS = small([20, 31, 41, 55], "ffmm")


def test_a_copy_of_four_rows_is_risk_1() -> None:
    """Predicates: four ages, at most 20, at least 50; no sex is one record's alone. Of the controls 20, at most 20, and at least 50 single one out."""
    found = values(attack(FOUR, OTHERS, FOUR), "univariate")
    assert (found["guesses"], found["attack_success"], found["excess_risk"]) == (6, 1.0, 1.0)
    assert found["control_success"] == pytest.approx(3 / 6)


def test_several_variables_of_four_rows() -> None:
    """Median 35: (<= 20, f), (<= 30, m), (>= 40, f), (>= 50, m) each hold of one record; of the controls of one, none, none (41 is m), one."""
    found = values(attack(FOUR, OTHERS, FOUR, clauses=2), "multivariate")
    assert (found["guesses"], found["attack_success"], found["excess_risk"]) == (4, 1.0, 1.0)
    assert found["control_success"] == pytest.approx(2 / 4)


def test_half_a_copy_of_four_rows() -> None:
    """20 and 30 are right, 41 and 51 are nobody's; at most 20 is right, at least 51 nobody's: 3 of 6, of the controls 20, 41, <= 20 and >= 51."""
    found = values(attack(FOUR, OTHERS, small([20, 30, 41, 51], "fmfm")), "univariate")
    assert found["attack_success"] == pytest.approx(3 / 6)
    assert found["control_success"] == pytest.approx(4 / 6)
    assert found["excess_risk"] == pytest.approx((3 / 6 - 4 / 6) / (1 - 4 / 6))


def test_a_lone_missing_value_singles_out() -> None:
    data, others = small([None, 30, 30, 30], "fmfm"), small([None, None, 30, 31], "fmfm")
    found = values(attack(data, others, data), "univariate")
    assert (found["guesses"], found["attack_success"], found["control_success"]) == (1, 1.0, 0.0)


def test_nothing_to_single_out_by_says_so() -> None:
    same = small([30] * 4, "ffff")
    found = attack(same, OTHERS, same)
    for (_, measure, _), one in found.items():
        assert (one.value, one.reason) == ((0.0, one.reason) if measure == "guesses" else (None, one.reason))
        assert "no predicate" in one.reason or measure == "baseline_success"


def test_controls_who_are_all_singled_out_leave_nothing_to_add() -> None:
    found = attack(FOUR, FOUR, FOUR)
    assert values(found, "univariate")["control_success"] == 1.0
    excess = found["univariate", "excess_risk", ""]
    assert excess.value is None
    assert "nothing left" in excess.reason


def test_a_variable_that_rules_is_named_and_has_only_its_share() -> None:
    rng = np.random.default_rng(1)
    data, others = people(300, rng), people(300, rng)
    found = attack(data, others, data, most=200, by_variable=True)
    assert found["univariate", "guesses", "income"].value == 50
    assert found["univariate", "guesses", ""].value <= 60
    assert "descriptions are by income" in found["univariate", "attack_success", ""].reason
    assert found["univariate", "attack_success", "sex"].reason == "no value of it is one released record's alone"
    assert "predicates are of" not in found["multivariate", "attack_success", ""].reason


def test_a_release_of_labels_is_attacked_by_the_rest() -> None:
    data = small([20, 30, 40, 50], "fmmm")
    released = Microdata(SMALL, data.frame, "anonymised", generalised=frozenset({"age"}))
    spec = SinglingOutSpec().for_release(SMALL, ())
    found = singling_out(data.with_controls(OTHERS), released, spec, Run(np.random.default_rng(1)))
    assert {one.params["kind"] for one in found.estimates} == {"univariate"}
    assert "only of sex" in found.estimates[0].reason
    both = Microdata(SMALL, data.frame, "anonymised", generalised=frozenset({"age", "sex"}))
    with pytest.raises(NotComputable, match="every variable is generalised"):
        singling_out(data.with_controls(OTHERS), both, spec, Run(np.random.default_rng(1)))


def test_levels_mean_the_same_in_whatever_order_tables_list_them() -> None:
    area = Schema((Variable("area", Kind.CATEGORICAL),))
    data, others, released = (
        conform_to_schema(pd.DataFrame({"area": list(text)}), area) for text in ("aabz", "bbcz", "zcaa")
    )
    found = values(attack(data, others, released), "univariate")
    assert (found["guesses"], found["attack_success"], found["control_success"]) == (2, 0.5, 1.0)


NUMBER = st.one_of(st.nothing(), st.integers(0, 4))
TABLE = st.lists(st.tuples(NUMBER, st.sampled_from("fm")), min_size=2, max_size=7)


def microdata(rows: list[tuple[Any, str]]) -> Microdata:
    frame = pd.DataFrame({"age": np.array([np.nan if a is None else a for a, _ in rows], dtype=float)})
    frame["sex"] = pd.Categorical([s for _, s in rows], ["f", "m"])
    return Microdata(SMALL, frame)


def holds(clauses: list[tuple[int, int, float]], record: tuple[float, ...]) -> bool:
    for variable, operation, value in clauses:
        own = record[variable]
        if not {
            EQUAL: own == value,
            AT_MOST: own <= value,
            AT_LEAST: own >= value,
            MISSING: np.isnan(own),
        }[operation]:
            return False
    return True


def clauses_of(predicates: PredicateSet) -> list[list[tuple[int, int, float]]]:
    return [
        [(int(v), int(o), float(x)) for v, o, x in zip(*parts, strict=True)]
        for parts in zip(predicates.variable, predicates.operation, predicates.value, strict=True)
    ]


@pytest.mark.slow
@settings(deadline=None)
@given(TABLE, TABLE, TABLE)
def test_predicates_hold_of_one_released_record_and_are_counted_right(ours: Any, theirs: Any, shown: Any) -> None:
    data, controls, released = tables_as_floats([microdata(rows) for rows in (ours, theirs, shown)], ("age", "sex"))
    ordered = np.array([True, False])
    for made in (
        univariate_predicates(released, ordered, 1000, np.random.default_rng(1)),
        multivariate_predicates(released, ordered, 2, 1000, 10_000, np.random.default_rng(1)),
    ):
        said = clauses_of(made)
        assert len({str(one) for one in said}) == len(said)
        for clauses in said:
            assert sum(holds(clauses, record) for record in released) == 1
        for table in (data, controls):
            counts, which, record = made.count_and_match(table, 3)
            brute = [[i for i, own in enumerate(table) if holds(clauses, own)] for clauses in said]
            assert counts.tolist() == [len(found) for found in brute]
            pairs = sorted((p, i) for p, found in enumerate(brute) if len(found) <= 3 for i in found)
            assert sorted(zip(which.tolist(), record.tolist(), strict=True)) == pairs


def clerks(records: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A table in which about one description of three variables in 150 fits exactly one record."""
    (table,) = tables_as_floats([people(records, np.random.default_rng(seed))], PEOPLE.names)
    table[:, 3] = np.rint(table[:, 3] / 200)
    table[:, 2] = np.rint(table[:, 2] / 10)
    return table, np.array([False, False, True, True])


def test_predicates_are_sought_until_there_are_as_many_as_wanted() -> None:
    """The first 500 tries find a few of 50; what they find stays, and the same numbers draw the same predicates."""
    table, ordered = clerks(4_000, 3)
    found = multivariate_predicates(table, ordered, 3, 50, 500, np.random.default_rng(1))
    few = multivariate_predicates(table, ordered, 3, 1, 500, np.random.default_rng(1))
    assert (len(few), len(found)) == (1, 50)
    assert len({str(one) for one in clauses_of(found)}) == 50
    assert all(sum(holds(one, record) for record in table) == 1 for one in clauses_of(found))
    again = multivariate_predicates(table, ordered, 3, 50, 500, np.random.default_rng(1))
    assert clauses_of(again) == clauses_of(found)


def test_all_predicates_are_found_where_there_are_fewer_than_wanted() -> None:
    table, ordered = clerks(1_000, 4)
    sought = multivariate_predicates(table, ordered, 3, 2_000, 100, np.random.default_rng(1))
    every = multivariate_predicates(table, ordered, 3, 2_000, 4_000, np.random.default_rng(1))
    assert len(every) < 2_000
    assert {str(one) for one in clauses_of(sought)} == {str(one) for one in clauses_of(every)}


def test_the_search_ends_at_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4,000 candidates 1,000 are tried: some are found, not all."""
    table, ordered = clerks(1_000, 4)
    every = multivariate_predicates(table, ordered, 3, 2_000, 4_000, np.random.default_rng(1))
    monkeypatch.setattr("sfumato.engine.risk.singling_out.MOST_TRIES", 1_000)
    tries = []
    counted = PredicateSet.is_singling_out
    monkeypatch.setattr(
        PredicateSet, "is_singling_out", lambda self, records: (tries.append(len(self)), counted(self, records))[1]
    )
    some = multivariate_predicates(table, ordered, 3, 2_000, 100, np.random.default_rng(1))
    assert 0 < len(some) < len(every)
    assert sum(tries) <= 1_000


@pytest.mark.parametrize("records", [1, 40, 700, 3_000])
def test_predicates_are_left_once_they_hold_of_two_records(records: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that hold of exactly one are the same as where all records are counted; piece by piece, of many pieces, in blocks of few predicates."""
    monkeypatch.setattr("sfumato.engine.risk.singling_out.CELLS", 4_000)
    monkeypatch.setattr("sfumato.engine.risk.singling_out.FEWEST", 10)
    rng = np.random.default_rng(records)
    (table,) = tables_as_floats([people(records, rng)], PEOPLE.names)
    ordered = np.array([False, False, True, True])
    variable = np.argsort(rng.random((2_000, 4)), axis=1)[:, :3]
    value = table[rng.integers(0, records, 2_000)[:, None], variable]
    operation = np.where(ordered[variable], rng.choice([AT_LEAST, AT_MOST], variable.shape), EQUAL)
    tried = PredicateSet(variable, operation, value)
    counts, _, _ = tried.count_and_match(table, 0)
    found = tried.is_singling_out(table)
    assert np.array_equal(found, counts == 1)
    assert found.any()
    assert records == 1 or (counts > 1).any()


@pytest.mark.parametrize(("n", "n_c"), [(6, 3), (3, 6), (5, 5), (7, 1)])
def test_the_control_is_the_average_over_every_way_to_put_controls_in(n: int, n_c: int) -> None:
    """n / n' times the chance that a predicate singles out one of n' controls among n - n' people, by all choices of both."""
    same = min(n, n_c)
    for of_people in range(n + 1):
        for of_controls in range(n_c + 1):
            tried = _PredicateCounts(n, n_c, np.array([of_people]), np.array([of_controls]), None)  # type: ignore[arg-type]
            hits = [
                len([i for i in inside if i < of_controls]) == 1 and not [i for i in stay if i < of_people]
                for inside in combinations(range(n_c), same)
                for stay in combinations(range(n), n - same)
            ]
            found = tried._control_terms(tried.people_counts, tried.control_counts)
            assert found == pytest.approx(np.mean(hits))


def test_it_is_as_probable_as_of_people_whatever_is_held_out() -> None:
    """Sum over binomial counts of both: exactly n p (1 - p)^(n - 1), what a predicate of weight p singles out among n."""
    from scipy.stats import binom

    for n, n_c, p in ((40, 10, 0.03), (10, 40, 0.1), (25, 25, 0.02)):
        k, c = np.meshgrid(np.arange(n + 1), np.arange(n_c + 1), indexing="ij")
        chance = binom.pmf(k, n, p) * binom.pmf(c, n_c, p)
        tried = _PredicateCounts(n, n_c, k, c, None)  # type: ignore[arg-type]
        found = n / min(n, n_c) * (chance * tried._control_terms(k, c)).sum()
        assert found == pytest.approx(n * p * (1 - p) ** (n - 1))


def predicates_of_one_record(
    of_members: int, of_controls: int, predicates: int = 100, people: int = 50
) -> _PredicateCounts:
    """Predicates that hold of one record each, so many of a member and so many of a control; the others of nobody."""
    rows = np.arange(of_members + of_controls)
    records = np.r_[np.arange(of_members), people + np.arange(of_controls)]
    held = csr_array((np.ones(len(rows), dtype=np.int32), (rows, records)), shape=(predicates, 2 * people))
    counts = (np.asarray(held[:, part].sum(axis=1)).astype(np.int64) for part in (slice(people), slice(people, None)))
    return _PredicateCounts(people, people, *counts, held)


@pytest.mark.parametrize(("of_members", "p"), [(30, (0.2, 0.8)), (45, (0.0, 0.05)), (15, (0.95, 1.0))])
def test_the_release_adds_what_it_singles_out_of_members_beyond_controls_and_random_values(
    of_members: int, p: tuple[float, float]
) -> None:
    """Of 100 predicates 30 single out a control, and of 100 with random values 10 a member and 10 a control."""
    release, without = predicates_of_one_record(of_members, 30), predicates_of_one_record(10, 10)
    every = np.ones(100, dtype=np.bool_)
    found = release.attack_result(every, ~every, np.random.default_rng(3), without).added_success
    assert found is not None
    assert (found.members, found.controls) == (pytest.approx(of_members / 100 - 0.1), pytest.approx(0.2))
    assert found.p_value is not None
    assert p[0] <= found.p_value <= p[1]


def test_chosen_is_hypergeometric() -> None:
    assert _hypergeometric_chance(4, np.array([0, 1, 2, 3, 4]), 2, 1) == pytest.approx([0, 1 / 2, 2 / 3, 1 / 2, 0])
    assert _hypergeometric_chance(4, np.array([0, 1, 2, 3, 4]), 2, 0) == pytest.approx([1, 1 / 2, 1 / 6, 0, 0])
    assert _hypergeometric_chance(4, np.array([0, 1, 4]), 4, 1) == pytest.approx([0, 1, 0])


def test_neither_the_order_of_records_nor_of_variables_changes_anything() -> None:
    rng = np.random.default_rng(2)
    data, others, released = people(120, rng), people(60, rng), people(120, rng)
    plain = attack(data, others, released, most=50)
    turned = [
        Microdata(
            Schema(PEOPLE.variables[::-1]), table.frame.iloc[rng.permutation(len(table)), ::-1].reset_index(drop=True)
        )
        for table in (data, others, released)
    ]
    assert {key: (one.value, one.lower) for key, one in attack(*turned, most=50).items()} == {
        key: (one.value, one.lower) for key, one in plain.items()
    }


def test_a_recipe_without_controls_or_with_one_variable_twice_is_refused() -> None:
    table: dict[str, Any] = {
        "data": {"holdout": 0.5},
        "variables": {"age": {"kind": "count"}, "id": {"kind": "count", "role": "identifier"}},
        "release": {"released": ["age"]},
        "measure": [{"method": "risk.singling_out"}],
    }
    assert Recipe.from_table(table).measures[0].spec.for_release(Recipe.from_table(table).schema, ()).variables == (
        "age",
    )  # type: ignore[attr-defined]
    with pytest.raises(BadInput, match=r"measure\[0\].method: .* add holdout"):
        Recipe.from_table({**table, "data": {}})
    with pytest.raises(BadInput, match=r"measure\[0\].variables\[1\]: .* twice"):
        Recipe.from_table({**table, "measure": [{"method": "risk.singling_out", "variables": ["age", "age"]}]})
    for clauses in (1, 21):
        with pytest.raises(BadInput, match=r"clauses: .* at least 2 and at most 20"):
            Recipe.from_table({**table, "measure": [{"method": "risk.singling_out", "clauses": clauses}]})
    for clauses in (2, 20):
        Recipe.from_table({**table, "measure": [{"method": "risk.singling_out", "clauses": clauses}]})
    with pytest.raises(BadInput, match=r"measure\[0\].variables: there is no variable"):
        Recipe.from_table(
            {
                **table,
                "variables": {"id": {"kind": "count", "role": Role.IDENTIFIER.value}},
                "release": {"released": []},
            }
        )


@pytest.mark.slow
def test_a_run_has_the_attack_beside_the_data_themselves() -> None:
    rng = np.random.default_rng(5)
    recipe = Recipe.from_table(
        {
            "data": {"holdout": 0.5},
            "variables": {v.name: v.to_table() for v in PEOPLE},
            "release": {"m": 2, "seed": 1},
            "synthesis": [{"target": "income", "method": "cart", "predictors": ["area", "age"]}],
            "measure": [{"method": "risk.singling_out", "most": 100}],
            "threshold": [{"value": "risk.singling_out.excess_risk", "max": 0.2}],
        }
    )
    found = execute_run(recipe, people(150, rng).with_controls(people(150, rng)), key=PUBLIC)
    rows = {
        (row.dataset, row.params["kind"], row.draw): row
        for row in found.rows
        if row.measure == "excess_risk" and "people" not in row.params
    }
    assert rows["confidential", "multivariate", None].value == 1.0
    average = rows["synthetic", "multivariate", None]
    assert average.lower <= average.value <= average.upper  # type: ignore[operator]
    ends = [rows["synthetic", "multivariate", draw].upper for draw in (1, 2)]
    assert average.upper == pytest.approx(np.mean(ends))  # type: ignore[arg-type]
    assert len(found.verdicts) == 3  # of both kinds of predicate, and of the vulnerable


def mostly_copied(data: Microdata, drawn: Microdata) -> Microdata:
    """Three quarters of the release are the people themselves."""
    copied = 3 * len(data) // 4
    return Microdata(
        PEOPLE, pd.concat([data.frame.head(copied), drawn.frame.tail(len(drawn) - copied)], ignore_index=True)
    )


def test_partial_copies_are_found_out() -> None:
    rng = np.random.default_rng(3)
    data, others, drawn = people(600, rng), people(400, rng), people(600, rng)
    leaking = mostly_copied(data, drawn)
    excess = attack(data, others, leaking, most=400)["multivariate", "excess_risk", ""]
    assert excess.lower > 0  # type: ignore[operator]


@pytest.mark.study
@pytest.mark.parametrize(("n", "n_c"), [(500, 500), (800, 200), (150, 450)])
def test_where_nothing_leaks_the_interval_covers_0(n: int, n_c: int, capsys: pytest.CaptureFixture[str]) -> None:
    """1,500 releases drawn without the data: of 200 one share in five would be outside by chance. Intervals of half the width, and 50 releases
    that leak, must fail.
    """
    covers: dict[str, list[bool]] = {}
    for simulation in range(1500):
        rng = np.random.default_rng([7, simulation])
        data, others, released = people(n, rng), people(n_c, rng), people(n, rng)
        leaking = mostly_copied(data, released)
        for what, table in (("drawn", released), ("leaking", leaking))[: 2 if simulation < 50 else 1]:
            for (kind, measure, _), one in attack(data, others, table, simulation, most=400).items():
                if measure == "excess_risk":
                    covers.setdefault(f"{kind}, {what}", []).append(one.lower <= 0 <= one.upper)  # type: ignore[operator]
                    half = [(end + one.value) / 2 for end in (one.lower, one.upper)]  # type: ignore[operator]
                    covers.setdefault(f"{kind}, {what}, half", []).append(half[0] <= 0 <= half[1])
    shares = {what: float(np.mean(found)) for what, found in covers.items()}
    with capsys.disabled():
        print(f"\nsingling out, {n} people, {n_c} controls: the interval covers 0 in", shares)
    for kind in ("univariate", "multivariate"):
        assert 0.93 <= shares[f"{kind}, drawn"] <= 0.97
        assert shares[f"{kind}, drawn, half"] < 0.8
        assert shares[f"{kind}, leaking"] < 0.5
