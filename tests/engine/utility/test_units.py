"""Units of both tables against loops, closed forms, and samples of which it is known how alike they are."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.constraints.constraints import read_constraints
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Origin, Role, Schema, Variable
from sfumato.engine.data.units import Units
from sfumato.engine.errors import NotComputable
from sfumato.engine.methods.run import Run
from sfumato.engine.statistics.unit_effects import intraclass_correlation
from sfumato.engine.utility.units import (
    UnitsSpec,
    expected_total_variation,
    total_variation,
    units,
)

VARIABLES = (
    Variable("person", Kind.COUNT, Role.UNIT),
    Variable("wave", Kind.COUNT),
    Variable("job", Kind.CATEGORICAL, levels=("none", "part", "full")),
    Variable("income", Kind.CONTINUOUS),
)
PANEL = Schema(VARIABLES, order="wave")
Row = tuple[int, int, str, float]
JOBS = ("none", "part", "full")


def table(rows: Sequence[Row], origin: Origin = "synthetic", schema: Schema = PANEL, **changed: Any) -> Microdata:
    person, wave, job, income = zip(*rows, strict=True)
    frame = pd.DataFrame(
        {
            "person": np.array(person, dtype=np.int64),
            "wave": np.array(wave, dtype=np.int64),
            "job": pd.Categorical(job, list(JOBS)),
            "income": np.array(income, dtype=np.float64),
        }
    ).assign(**changed)
    return Microdata(schema, frame, origin, linked=False)


Found = dict[tuple[str, str, str], Any]


def compare_units(own: Sequence[Row], drawn: Sequence[Row], schema: Schema = PANEL) -> Found:
    data, released = table(own, "confidential", schema), table(drawn, schema=schema)
    spec = UnitsSpec(types=("job",), numbers=("income",)).for_release(schema, ())
    found = units(data, released, spec, Run(np.random.default_rng(0))).estimates
    return {(one.measure, one.target, one.params.get("kind", "")): one for one in found}


def panel(seed: int, people: int, stay: float = 0.8, again: int = 0) -> list[Row]:
    """People over at most four waves: jobs are kept with this probability, incomes correlate by .8 with the last."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(people):
        job, level = int(rng.integers(3)), float(rng.normal())
        for wave in range(1, 5):
            rows.append((person + again, wave, JOBS[job], level))
            if rng.random() < 0.2:
                break
            job = job if rng.random() < stay else int(rng.integers(3))
            level = 0.8 * level + 0.6 * float(rng.normal())
    return rows


def shuffled(rows: Sequence[Row], seed: int) -> list[Row]:
    """The same people with other numbers and in another order."""
    rng = np.random.default_rng(seed)
    number = rng.permutation(max(row[0] for row in rows) + 1)
    return [(int(number[rows[i][0]]), *rows[i][1:]) for i in rng.permutation(len(rows))]


codes = st.lists(st.integers(0, 3), min_size=1, max_size=5)


@given(codes, codes)
def test_the_baseline_is_the_mean_over_all_splits_of_the_pooled_units(ours: list[int], theirs: list[int]) -> None:
    pooled = ours + theirs
    everyone = set(range(len(pooled)))
    found = [
        total_variation(
            np.array([pooled[i] for i in chosen]), np.array([pooled[i] for i in sorted(everyone - set(chosen))])
        )
        for chosen in itertools.combinations(range(len(pooled)), len(ours))
    ]
    assert expected_total_variation(np.array(ours), np.array(theirs)) == pytest.approx(np.mean(found))


def test_the_baseline_of_many_units_in_a_cell_is_that_of_a_normal_count() -> None:
    rng = np.random.default_rng(1)
    ours, theirs = rng.integers(4, size=20_000), rng.integers(4, size=30_000)
    pooled = np.concatenate([ours, theirs])
    found = []
    for _ in range(300):
        rng.shuffle(pooled)
        found.append(total_variation(pooled[:20_000], pooled[20_000:]))
    assert expected_total_variation(ours, theirs) == pytest.approx(np.mean(found), rel=0.05)


def test_intraclass_correlation_is_that_of_the_analysis_of_variance() -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(40, size=150)
    values = rng.normal(size=40)[codes] + rng.normal(size=150)
    frame = pd.DataFrame({"unit": codes, "value": values})
    anova = sm.stats.anova_lm(sm.formula.ols("value ~ C(unit)", frame).fit())
    between, within = anova["mean_sq"]
    sizes = frame.groupby("unit").size()
    size = (len(frame) - (sizes**2).sum() / len(frame)) / (len(sizes) - 1)
    expected = (between - within) / (between + (size - 1) * within)
    assert intraclass_correlation(values, Units.from_codes(codes)) == pytest.approx(expected)
    # pairs (a, b) of equal size: the correlation over both orders, but for the degrees of freedom
    pairs = Units.from_codes(np.repeat(np.arange(30_000), 2))
    values = np.repeat(rng.normal(size=30_000), 2) + 0.5 * rng.normal(size=60_000)
    both = np.concatenate([values.reshape(-1, 2), values.reshape(-1, 2)[:, ::-1]])
    assert intraclass_correlation(values, pairs) == pytest.approx(np.corrcoef(both.T)[0, 1], abs=1e-4)
    values[::3] = np.nan
    assert intraclass_correlation(values, pairs) == pytest.approx(0.8, abs=0.02)


def test_records_without_variation_or_company_have_no_intraclass_correlation() -> None:
    for values, codes in (([1.0, 1.0, 1.0], [0, 0, 1]), ([1.0, 2.0, 3.0], [0, 1, 2]), ([1.0, 2.0], [0, 0])):
        with pytest.raises(NotComputable):
            intraclass_correlation(np.array(values), Units.from_codes(np.array(codes)))


rows_of_people = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 3), st.sampled_from(JOBS), st.integers(0, 5).map(float)),
    min_size=3,
    max_size=12,
    unique_by=lambda row: row[:2],
).filter(lambda rows: len({row[0] for row in rows}) < len(rows))


def histories(rows: Sequence[Row]) -> list[list[Row]]:
    return [
        sorted((row for row in rows if row[0] == number), key=lambda row: row[1])
        for number in dict.fromkeys(row[0] for row in rows)
    ]


def distance(ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    one, two = Counter(ours), Counter(theirs)
    return sum(abs(one[key] / len(ours) - two[key] / len(theirs)) for key in {*one, *two}) / 2


def correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < 2 or any(len({pair[place] for pair in pairs}) == 1 for place in (0, 1)):
        return None
    return float(np.corrcoef(np.array(pairs).T)[0, 1])


@given(rows_of_people, rows_of_people)
def test_every_output_is_what_loops_over_people_count(own: list[Row], drawn: list[Row]) -> None:
    found = compare_units(own, drawn)
    ours, theirs = histories(own), histories(drawn)

    def expect(measure: str, target: str, tell: Any) -> None:
        assert found[measure, target, ""].value == pytest.approx(
            distance([tell(h) for h in ours], [tell(h) for h in theirs])
        )

    expect("size_distance", "", len)
    expect("type_distance", "job", lambda history: tuple(sorted(row[2] for row in history)))
    expect("trajectory_distance", "job", lambda history: tuple(row[2] for row in history))
    expect("entry_distance", "wave", lambda history: history[0][1])
    expect("exit_distance", "wave", lambda history: history[-1][1])
    moves, other = (
        [(a[2], b[2]) for history in each for a, b in itertools.pairwise(history)] for each in (ours, theirs)
    )
    apart = chance = 0.0
    for job in JOBS:
        mine, hers = ([b for a, b in each if a == job] for each in (moves, other))
        if mine:
            apart += len(mine) / len(moves) * (distance(mine, hers) if hers else 1.0)
            codes = np.array([JOBS.index(one) for one in [*mine, *hers]])
            expected = expected_total_variation(codes[: len(mine)], codes[len(mine) :]) if hers else 1.0
            chance += len(mine) / len(moves) * expected
    row = found["transition_distance", "job", ""]
    assert row.value == pytest.approx(apart)
    assert row.baseline is None if not moves else row.baseline == pytest.approx(chance)
    for kind, step in (("lag 1", 1), ("lag 2", 2)):
        pairs, others = (
            [(h[i][3], h[i + step][3]) for h in each for i in range(len(h) - step)] for each in (ours, theirs)
        )
        own_value, value = correlation(pairs), correlation(others)
        row = found["correlation", "income", kind]
        if own_value is None or value is None:
            assert row.value is None
        else:
            assert (row.value, row.baseline) == (pytest.approx(value), pytest.approx(own_value))
            assert found["correlation_difference", "income", kind].value == pytest.approx(abs(value - own_value))
    first = [(h[0][3], h[1][3]) for h in theirs if len(h) > 1]
    value = found["correlation", "income", "first and second record"].value
    assert value is None or value == pytest.approx(correlation(first))


def test_a_copy_is_at_distance_0_in_any_order_and_numbering() -> None:
    rows = panel(1, 200)
    for drawn in (rows, shuffled(rows, 2)):
        for (measure, _, _), one in compare_units(rows, drawn).items():
            assert one.value == pytest.approx(one.baseline if measure == "correlation" else 0, abs=1e-12), measure


def test_a_fresh_sample_is_as_far_as_its_baseline_and_rows_drawn_one_by_one_are_not() -> None:
    own, rng = panel(1, 1500), np.random.default_rng(3)
    fresh, waves = panel(2, 1500, again=10_000), [row[2:] for row in own]
    alone = [(*row[:2], *waves[i]) for row, i in zip(own, rng.permutation(len(own)), strict=True)]
    good, bad = compare_units(own, fresh), compare_units(own, alone)
    for key in (("type_distance", "job", ""), ("trajectory_distance", "job", "")):
        assert good[key].value < 1.5 * good[key].baseline
        assert bad[key].value > 3 * bad[key].baseline
    assert good["exit_distance", "wave", ""].value < 3 * good["exit_distance", "wave", ""].baseline
    assert good["transition_distance", "job", ""].value < 0.03
    assert good["transition_distance", "job", ""].value < 2 * good["transition_distance", "job", ""].baseline
    assert bad["transition_distance", "job", ""].value > 0.3
    assert bad["transition_distance", "job", ""].value > 3 * bad["transition_distance", "job", ""].baseline
    for kind, true in (("within units", 0.6), ("first and second record", 0.8), ("lag 1", 0.8), ("lag 2", 0.64)):
        row = good["correlation", "income", kind]
        assert row.value == pytest.approx(true, abs=0.12 if kind == "within units" else 0.06)
        assert good["correlation_difference", "income", kind].value < 0.06
        assert bad["correlation_difference", "income", kind].value > 0.4


def test_without_an_order_nothing_is_said_of_time() -> None:
    found = compare_units(panel(1, 50), panel(2, 50), Schema(VARIABLES))
    assert {measure for measure, _, _ in found} == {"size_distance", "type_distance", "correlation", "correlation_difference"}  # fmt: skip
    assert {kind for measure, _, kind in found if measure == "correlation"} == {"within units", "first and second record"}  # fmt: skip


def test_units_with_a_record_that_breaks_a_rule_are_counted_once() -> None:
    rules = read_constraints({"paid": "job = 'none' -> income <= 1"}, Schema(VARIABLES))
    schema = Schema(VARIABLES, constraints=rules)
    own = [(1, 1, "none", 0.0), (1, 2, "full", 3.0), (2, 1, "full", 3.0)]
    drawn = [(1, 1, "none", 2.0), (1, 2, "none", 3.0), (2, 1, "none", 0.0), (3, 1, "full", 9.0)]
    row = compare_units(own, drawn, schema)["broken_units", "paid", ""]
    assert (row.value, row.baseline) == (pytest.approx(1 / 3), 0.0)


def test_the_reason_is_told_where_there_are_no_units() -> None:
    rows = panel(1, 20)
    spec, run = UnitsSpec(types=("job",)), Run(np.random.default_rng(0))
    unnumbered = units(table(rows, "confidential"), table(rows, person=np.full(len(rows), np.nan)), spec, run)
    assert all("which of its records are of one unit" in one.reason for one in unnumbered.estimates)
    alone = [(i, *row[1:]) for i, row in enumerate(rows)]
    without = units(table(alone, "confidential"), table(rows), spec, run)
    assert all('role "unit"' in one.reason for one in without.estimates)
    whole = units(table(rows, "confidential"), table(rows), spec, run).estimates
    assert {(one.measure, one.target) for one in whole} == {(one.measure, one.target) for one in without.estimates}
    each = compare_units(rows, alone)  # a release whose units have one record each is compared
    assert each["size_distance", "", ""].value == pytest.approx(
        1 - sum(len(h) == 1 for h in histories(rows)) / len(histories(rows))
    )
    assert math.isfinite(each["type_distance", "job", ""].value)


def test_released_variables_that_vary_within_units_are_compared_by_default() -> None:
    schema = Schema(
        (*VARIABLES, Variable("region", Kind.CATEGORICAL, level="unit"), Variable("weight", Kind.CONTINUOUS, Role.WEIGHT)),
        order="wave",
    )  # fmt: skip
    spec = UnitsSpec().for_release(schema, ("wave", "job", "income", "region", "weight"))
    assert (spec.types, spec.numbers) == (("job",), ("income",))
    assert UnitsSpec(types=("region",)).for_release(schema, ()).types == ("region",)
