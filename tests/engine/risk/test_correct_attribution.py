"""Correct attribution by hand, against synthpop's tables by loops, of copies, of what is independent, and of what would mislead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_tables import variables_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.design.binning import BinningRule
from sfumato.engine.errors import BadInput, NotComputable
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.results import Estimate, Measure
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.risk.correct_attribution import CorrectAttributionSpec, correct_attribution

RUN = Run(np.random.default_rng(0))


def table(rows: pd.DataFrame, schema: Schema | None = None, origin: Any = "confidential") -> Microdata:
    roles = {name: Role.SENSITIVE if str(name).startswith("ill") else Role.QUASI_IDENTIFIER for name in rows}
    schema = schema or Schema(
        tuple(
            Variable(str(n), Kind.CATEGORICAL, roles[n], levels=tuple(sorted({*rows[n].dropna(), *"xy"}))) for n in rows
        )
    )
    return conform_to_schema(rows, schema, MissingPolicy.KEEP, origin)


def measure_release(rows: pd.DataFrame, released: pd.DataFrame | None = None, **spec: Any) -> Measure:
    both = rows if released is None else pd.concat([rows, released])
    schema = table(both).schema
    chosen = CorrectAttributionSpec(**spec).for_release(schema, ())
    own = table(rows, schema)
    return correct_attribution(own, own if released is None else table(released, schema, "synthetic"), chosen, RUN)


def by_name(found: Measure, target: str = "ill") -> dict[str, Estimate]:
    return {e.measure: e for e in found.estimates if e.target in (target, "")}


def values(found: Measure, target: str = "ill") -> dict[str, float | None]:
    return {name: e.value for name, e in by_name(found, target).items()}


def by_all_keys(found: Measure) -> dict[str, float | None]:
    """What is attributed by all keys, without the largest over the keys that an intruder may choose."""
    return {name: value for name, value in values(found).items() if not name.startswith("largest_")}


FOUR = pd.DataFrame({"zip": list("aabc"), "ill": list("xyxx")})


def test_four_records_by_hand() -> None:
    """Released: a x twice, b y, d x. The records with zip a meet two, both x; that of b meets y; that of c nobody."""
    released = pd.DataFrame({"zip": list("aabd"), "ill": list("xxyx")})
    found = measure_release(FOUR, released)
    assert found.per_record["matched"].tolist() == [2, 2, 1, 0]
    assert found.per_record["attributed"].tolist() == [1, 0, 0, 0]
    answers = by_name(found)
    assert by_all_keys(found) == {
        "cap": 1,
        "dcap": 0.25,
        "tcap": pytest.approx((0.5 + 0.5 + 0) / 3),
        "disco": 0.25,
        "disco_beyond": 0.25,
        "shared_keys": 0.75,
    }
    assert answers["dcap"].baseline == pytest.approx((0.75 + 0.25 + 0.75) / 4), (
        "of the margin 3/4 x, 1/4 y; nobody has c"
    )
    assert answers["disco"].baseline == pytest.approx((0.75**2 + 0.25**2 + 0.75) / 4)
    # a: both x with 9/10, both y with 1/10, half of its records each way; b: x with 3/4, which its record is
    assert answers["tcap"].baseline == pytest.approx((2 * 0.5 + 0.75) / 3)


def test_the_confidential_data_are_scored_against_themselves() -> None:
    found = measure_release(FOUR)
    assert by_all_keys(found) == {
        "cap": pytest.approx(3 / 4),
        "dcap": pytest.approx((0.5 + 0.5 + 1 + 1) / 4),
        "tcap": 1,
        "disco": 0.5,
        "disco_beyond": 0.5,
        "shared_keys": 1,
    }
    assert by_name(found)["dcap"].baseline == pytest.approx(0.75**2 + 0.25**2), "the univariate baseline"
    assert by_name(found)["dcap"].lower is None


def people(n: int, seed: int, levels: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    key = rng.integers(0, 6, (n, 3))
    ill = (key.sum(axis=1) + (rng.random(n) < 0.3) * rng.integers(0, 9, n)) % levels
    return pd.DataFrame({**{f"k{j}": key[:, j].astype(str) for j in range(3)}, "ill": ill.astype(str)})


def test_a_copy_is_a_copy_and_is_right_where_the_keys_determine_the_target() -> None:
    rows = people(300, 1)
    own, copy = values(measure_release(rows)), values(measure_release(rows, rows))
    assert own == copy
    determined = rows.assign(ill=[("x" if a == b else "y") for a, b in zip(rows["k0"], rows["k1"], strict=True)])
    found = measure_release(determined, determined, obvious=1.0)
    for name in ("cap", "dcap", "tcap", "disco", "disco_beyond", "shared_keys"):
        assert values(found)[name] == 1, name
    assert (found.per_record["attributed"] == 1).all()


def by_loops(rows: pd.DataFrame, released: pd.DataFrame) -> dict[str, float]:
    """synthpop's formulas (vignette "disclosure", Appendices 1 and 2), value by value."""
    keys = [name for name in rows if name != "ill"]
    ours, theirs = (list(zip(*(t[k] for k in keys), strict=True)) for t in (rows, released))
    d, s = Counter(zip(ours, rows["ill"], strict=True)), Counter(zip(theirs, released["ill"], strict=True))
    dq, sq = Counter(ours), Counter(theirs)
    certain = [(q, t) for q, t in s if s[q, t] == sq[q]]
    met = [(q, t) for q, t in certain if dq[q]]
    return {
        "dcap": sum(d[q, t] * s[q, t] / sq[q] for q, t in s) / len(rows),
        "cap": sum(s[q, t] ** 2 / sq[q] for q, t in s) / len(released),
        "disco": sum(d[pair] for pair in certain) / len(rows),
        "shared_keys": sum(dq[q] for q in sq) / len(rows),
        "tcap": sum(sq[q] * d[q, t] / dq[q] for q, t in met) / sum(sq[q] for q, _ in met),
    }


@pytest.mark.parametrize("seed", range(4))
def test_it_is_synthpops_sums_over_the_tables(seed: int) -> None:
    rows, released = people(150, seed), people(180, seed + 50)
    found = values(measure_release(rows, released))
    for name, expected in by_loops(rows, released).items():
        assert found[name] == pytest.approx(expected, abs=1e-12), name


def covered(rng: np.random.Generator, rows: pd.DataFrame, dependent: float = 0.0) -> Mapping[str, bool]:
    """Whether each interval of one release holds its baseline; the target is the margin's, a share of it the record's own."""
    pick = rng.integers(0, len(rows), len(rows))
    released = rows.iloc[pick].reset_index(drop=True)
    drawn = rows["ill"].to_numpy()[rng.integers(0, len(rows), len(rows))]
    released["ill"] = np.where(rng.random(len(rows)) < dependent, released["ill"], drawn)
    found = by_name(measure_release(rows, released, obvious=0.8))
    return {
        name: e.lower <= e.baseline <= e.upper  # type: ignore[operator]
        for name, e in found.items()
        if name in ("dcap", "tcap", "disco", "disco_beyond")
    }


@pytest.mark.study
def test_an_independent_release_is_at_the_baseline_and_one_that_leaks_is_not() -> None:
    """95 % intervals hold the baseline in 93 to 97 % of 1,000 releases; where three in ten values are true, hardly ever."""
    rows, rng = people(400, 7), np.random.default_rng(11)
    held = pd.DataFrame([covered(rng, rows) for _ in range(1000)]).mean()
    assert held.between(0.93, 0.97).all(), held
    leaking = pd.DataFrame([covered(rng, rows, 0.3) for _ in range(50)]).mean()
    assert leaking["dcap"] < 0.1
    assert leaking["tcap"] < 0.1
    assert leaking["disco"] < 0.3


def test_what_the_margin_or_one_key_gives_away_is_left_out_and_said() -> None:
    """Six children are single by their age, one pair of a zip and an age is alone in a value that nothing else tells."""
    rows = pd.DataFrame(
        {
            "age": ["c"] * 6 + ["g"] * 4,
            "zip": list("abcdef") + list("abcd"),
            "ill": ["x"] * 6 + ["x", "y", "y", "x"],
        }
    )
    found = by_name(measure_release(rows, rows))
    assert found["disco"].value == 1
    assert found["disco_beyond"].value == pytest.approx(0.4)
    assert found["disco_beyond"].reason == "6 records are left out: the margin or a single key gives their value away"
    everybody = rows.assign(ill=["x"] * 9 + ["y"])
    assert values(measure_release(everybody, everybody, obvious=0.85))["disco_beyond"] == pytest.approx(0.1)


def test_a_lone_record_is_no_rule_that_would_excuse_itself() -> None:
    """Each key has a value of its own: it determines the target wholly, and nobody could know that."""
    rows = pd.DataFrame({"zip": list("abcdefgh"), "ill": list("xyxyxyxy")})
    assert values(measure_release(rows, rows))["disco_beyond"] == 1
    four = pd.concat([rows] * 4, ignore_index=True)
    assert values(measure_release(four, four))["disco_beyond"] == 1
    assert values(measure_release(four, four, obvious_records=4))["disco_beyond"] == 0


def test_the_order_of_rows_changes_nothing() -> None:
    rows, released = people(200, 3), people(250, 4)
    order = np.random.default_rng(1).permutation(200)
    first = measure_release(rows, released)
    again = measure_release(rows.iloc[order].reset_index(drop=True), released.iloc[::-1].reset_index(drop=True))
    for name, e in by_name(first).items():
        other = by_name(again)[name]
        assert (other.value, other.baseline, other.lower) == (
            pytest.approx(e.value, abs=1e-12),
            pytest.approx(e.baseline, abs=1e-12),
            pytest.approx(e.lower, abs=1e-12),
        )
    for name in ("matched", "attributed"):
        assert np.array_equal(first.per_record[name][order], again.per_record[name])


def test_a_missing_value_is_a_value_of_key_and_target() -> None:
    rows = FOUR.assign(zip=[None, None, "b", "c"], ill=["x", None, "x", "x"])
    released = pd.DataFrame({"zip": [None, "b", "d"], "ill": [None, None, "x"]})
    found = measure_release(rows, released)
    assert found.per_record["attributed"].tolist() == [0, 1, 0, 0]
    assert values(found)["disco"] == 0.25


def test_nothing_shared_is_no_attack_rather_than_a_number() -> None:
    found = measure_release(FOUR, FOUR.assign(zip=list("pqrs")))
    assert by_all_keys(found) == {"cap": 1, "dcap": 0, "tcap": None, "disco": 0, "disco_beyond": 0, "shared_keys": 0}
    assert by_name(found)["tcap"].reason == "no keys that both tables have are released with one value alone"


def test_of_several_targets_each_has_its_rows_and_a_record_its_largest_share() -> None:
    rows = FOUR.assign(illness=list("xxyy"))
    found = measure_release(rows, rows)
    assert values(found)["dcap"] == 0.75
    assert values(found, "illness")["dcap"] == 1
    assert found.per_record["attributed"].tolist() == [1, 1, 1, 1]


DORIG = {
    "capital_gain": 22.55,
    "capital_loss": 30.61,
    "education": 3.71,
    "fnlwgt": 2.70,
    "hours_per_week": 4.36,
    "marital_status": 8.23,
    "native_country": 17.09,
    "relationship": 5.17,
    "workclass": 14.27,
}
"""Percent of the records of Adult that age, occupation, race and sex disclose: synthpop 1.9-2, vignette "disclosure", Table 1, "No excl", orig.
Its income is missing in a third of the records, ours is not."""


@pytest.mark.slow
def test_the_confidential_adults_are_disclosed_as_synthpop_prints_it(public_data: Callable[[str], Path]) -> None:
    keys = ["age", "occupation", "race", "sex"]
    rows = pd.read_csv(public_data("adult.csv"), skipinitialspace=True, na_values="?", usecols=[*keys, *DORIG])
    text = rows.astype("string").astype(object).where(rows.notna(), None)
    schema = Schema(tuple(Variable(name, Kind.CATEGORICAL) for name in text))
    data = conform_to_schema(text, schema, MissingPolicy.KEEP)
    found = correct_attribution(data, data, CorrectAttributionSpec(keys=tuple(keys), sensitive=tuple(DORIG)), RUN)
    disclosed = {e.target: round(100 * e.value, 2) for e in found.estimates if e.measure == "disco" and e.value}
    assert disclosed == DORIG


VARIABLES: dict[str, Any] = variables_of(
    "zip: categorical quasi_identifier",
    "age: count quasi_identifier",
    "ill: categorical sensitive",
    "pay: continuous sensitive",
)


def recipe(*measures: dict[str, Any]) -> Recipe:
    return Recipe.from_table(
        {
            "variables": VARIABLES,
            "release": {"released": ["ill", "pay"]},
            "measure": [{"method": "risk.correct_attribution", **measure} for measure in measures],
        }
    )


def test_two_uses_of_one_recipe_stay_apart() -> None:
    rows = FOUR.assign(age=[1, 2, 3, 4], pay=[1.0, 2.0, 3.0, 4.0])
    plan = recipe({"sensitive": ["ill"], "keys": ["zip"]}, {"sensitive": ["ill"], "keys": ["zip", "age"]})
    data = conform_to_schema(rows, plan.schema)
    made = execute_run(plan, data, [conform_to_schema(rows, plan.schema, origin="synthetic")], key=PUBLIC).rows
    found = {
        tuple(r.params["keys"]): r.value
        for r in made
        if (r.measure, r.dataset) == ("disco", "synthetic") and r.draw is None
    }
    assert found == {("zip",): 0.5, ("zip", "age"): 1}


def heaped(n: int, seed: int) -> pd.DataFrame:
    """Incomes in hundreds, that zip codes share, and a few exact amounts that nobody shares."""
    rng = np.random.default_rng(seed)
    zip_code = rng.integers(0, 80, n)
    pay = 100.0 * (zip_code % 4 + rng.integers(1, 4, n))
    exact = rng.random(n) < 0.1
    return pd.DataFrame({"zip": zip_code.astype(str), "pay": np.where(exact, np.round(rng.uniform(1, 900, n), 3), pay)})


PAY = Schema(
    (
        Variable("zip", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=tuple(sorted(map(str, range(80))))),
        Variable("pay", Kind.CONTINUOUS, Role.SENSITIVE),
    )
)


def measured_pay(rows: pd.DataFrame, released: pd.DataFrame, **spec: Any) -> dict[str, Estimate]:
    chosen = CorrectAttributionSpec(**spec).for_release(PAY, ("pay",))
    chosen.check_release(PAY, ("pay",), "measure[0]")
    return by_name(
        correct_attribution(
            conform_to_schema(rows, PAY), conform_to_schema(released, PAY, origin="synthetic"), chosen, RUN
        ),
        "pay",
    )


def test_heaped_incomes_need_no_bins() -> None:
    rows = heaped(200, 1)
    released = rows.assign(pay=heaped(200, 2)["pay"])
    found = measured_pay(rows, released)
    for name, expected in by_loops(
        rows.rename(columns={"pay": "ill"}), released.rename(columns={"pay": "ill"})
    ).items():
        assert found[name].value == pytest.approx(expected, abs=1e-12), name
    alone = int((rows["pay"].map(rows["pay"].value_counts()) == 1).sum())
    assert 5 < alone < 40
    assert found["dcap"].reason.startswith(f"{alone} of 200 records have a value that no other record has")
    assert found["dcap"].value > 0.1  # type: ignore[operator]
    shared = pd.concat([rows, rows], ignore_index=True)
    assert measured_pay(shared, shared)["dcap"].reason == ""


def test_a_target_of_which_no_value_repeats_is_not_computed() -> None:
    """Values drawn from a density: 0 would say that nothing is attributed, where nothing could be looked at."""
    rows = heaped(200, 1)
    drawn = rows.assign(pay=rows["pay"] * np.exp(np.random.default_rng(3).normal(0, 0.01, 200)))
    found = measured_pay(rows, drawn)
    for name in ("cap", "dcap", "tcap", "disco", "disco_beyond"):
        assert found[name].value is None
        assert found[name].reason == (
            'no released value of "pay" equals a confidential one; give it bins: pay = "10 equal count"'
        )
    assert found["shared_keys"].value == 1
    binned = measured_pay(rows, drawn, bins={"pay": BinningRule.parse("10 equal count")})
    assert binned["dcap"].value is not None
    with pytest.raises(NotComputable, match='no released value of "pay" equals'):
        measured_pay(rows, drawn, keys=("pay",), sensitive=("zip",))


@pytest.mark.parametrize(
    ("measure", "place", "said"),
    [
        ({"keys": ["zip", "ill"], "sensitive": ["ill"]}, "measure[0].sensitive", '"ill" is among the keys'),
        ({"sensitive": ["ill", "ill"]}, "measure[0].sensitive[1]", '"ill" is listed twice'),
        ({"sensitive": ["ill"], "obvious": 0.0}, "measure[0].obvious", "above 0"),
        ({"sensitive": ["ill"], "bins": {"pay": "width 5"}}, "measure[0].bins.pay", "not used here"),
    ],
)
def test_bad_input_names_the_place(measure: dict[str, Any], place: str, said: str) -> None:
    with pytest.raises(BadInput, match=said) as caught:
        recipe(measure)
    assert caught.value.place == place


def test_an_intruder_ignores_a_key_that_nobody_shares() -> None:
    """By hand: no zip code is shared; without it two records of three x to one y, right for .75^2 + .25^2 of the people."""
    found = by_name(measure_release(FOUR, FOUR.assign(zip=list("pqrs"))), "ill")
    assert found["dcap"].value == 0
    assert found["largest_dcap"].value == pytest.approx(0.75**2 + 0.25**2)
    assert "ignores zip" in found["largest_dcap"].reason
