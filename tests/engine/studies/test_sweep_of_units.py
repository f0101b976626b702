"""The sweep of an unsure intruder by unit, against loops over households and against identification by unit."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from households import SCHEMA as CENSUS
from households import as_microdata, draw_households
from hypothesis import assume, given
from hypothesis import strategies as st
from unit_tables import summarise_matches

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Origin, Role, Schema, Variable
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.matching.intruder import constant_log_normal_noise, log_normal_noise, relative_noise
from sfumato.engine.methods.labels import quantity_of
from sfumato.engine.methods.registry import find_method
from sfumato.engine.methods.results import Estimate, Measure
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import PUBLIC, Randomness, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Threshold, judge_thresholds
from sfumato.engine.studies.intruder_uncertainty import REPLICATES, IntruderUncertaintySpec, intruder_uncertainty

SCHEMA = Schema(
    (
        Variable("household", Kind.COUNT, Role.UNIT),
        Variable("region", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=("n", "s"), level="unit"),
        Variable("sex", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=("f", "m")),
        Variable("age", Kind.COUNT, Role.QUASI_IDENTIFIER),
        Variable("illness", Kind.CATEGORICAL, Role.SENSITIVE, levels=("cold", "flu")),
        Variable("days", Kind.COUNT, Role.SENSITIVE),
    )
)
PLACE = {"household": 0, "region": 1, "sex": 2, "age": 3, "illness": 4, "days": 5}
Record = tuple[int, str, str, int, str, int]
IDENTIFIED = ("expected_match_risk", "true_match_rate", "false_match_rate", "unique_matches")
LARGEST = ("largest_expected_match_risk", "largest_true_match_rate")
Window = tuple[float, float]

people = st.tuples(
    st.integers(0, 4), st.sampled_from("fm"), st.integers(1, 9), st.sampled_from(("cold", "flu")), st.integers(0, 3)
)


def in_regions(rows: Sequence[tuple[int, str, int, str, int]]) -> list[Record]:
    """The region is that of the household."""
    return [(row[0], "ns"[row[0] % 2], *row[1:]) for row in rows]


def table(rows: Sequence[Record], origin: Origin = "synthetic", schema: Schema = SCHEMA) -> Microdata:
    columns = dict(zip(PLACE, zip(*rows, strict=True), strict=True))
    frame = pd.DataFrame(
        {
            name: pd.Categorical(values, schema[name].levels)
            if schema[name].kind is Kind.CATEGORICAL
            else np.array(values, dtype=np.int64)
            for name, values in columns.items()
        }
    )
    return Microdata(schema, frame, origin, linked=True)


def seeded_run(seed: int = 7) -> Run:
    return Run(Randomness(seed, PUBLIC).generator("study"))


def chosen(schema: Schema = SCHEMA, **settings: Any) -> IntruderUncertaintySpec:
    given = {"known": ["sex", "age"], "synthesised": ["illness"], "variable": "age", "replicates": 1, **settings}
    spec = IntruderUncertaintySpec.from_table(given, "study[0]").for_release(schema, ())
    spec.check_release(schema, (), "study[0]")
    return spec


def by_unit(measure: Measure | None) -> dict[str, float | None]:
    assert measure is not None
    return {
        one.measure: one.value
        for one in measure.estimates
        if one.params.get("by") == "unit" and one.measure != REPLICATES
    }


def by_record(measure: Measure | None) -> dict[str, float | None]:
    assert measure is not None
    return {one.measure: one.value for one in measure.estimates if not one.params and one.measure != REPLICATES}


def members_of(rows: Sequence[Record]) -> dict[int, list[int]]:
    """The records of each household."""
    found: dict[int, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        found[row[0]].append(place)
    return found


def matches_by_loops(
    own: Sequence[Record],
    drawn: Sequence[Record],
    exact: Sequence[str],
    near: Mapping[str, Sequence[Window]],
    ranks: Mapping[str, Sequence[float]],
    *,
    by_place: bool = False,
) -> list[tuple[int, bool]]:
    """Candidates of each household, and whether its own is among them.

    ``near`` has the window of each record's number, and ``ranks`` by what its members are put in order.
    """

    def told(row: Record) -> tuple[Any, ...]:
        return tuple(row[PLACE[name]] for name in exact)

    ours, theirs = members_of(own), members_of(drawn)
    by_rank = {u: sorted(rs, key=lambda i: (told(own[i]), *(ranks[n][i] for n in near))) for u, rs in ours.items()}
    by_value = {
        u: sorted(rs, key=lambda i: (told(drawn[i]), *(drawn[i][PLACE[n]] for n in near))) for u, rs in theirs.items()
    }
    if by_place and near:
        by_rank, by_value = ours, theirs

    def fits(one: list[int], other: list[int]) -> bool:
        return len(one) == len(other) and all(
            told(own[i]) == told(drawn[j])
            and all(near[name][i][0] <= drawn[j][PLACE[name]] <= near[name][i][1] for name in near)
            for i, j in zip(one, other, strict=True)
        )

    found = []
    for unit, one in by_rank.items():
        alike = [number for number, other in by_value.items() if fits(one, other)]
        found.append((len(alike), drawn[ours[unit][0]][0] in alike))
    return found


def risks(first: Sequence[tuple[int, bool]], every: Sequence[Sequence[tuple[int, bool]]]) -> dict[str, Any]:
    told = summarise_matches(first)
    largest = {f"largest_{name}": max(float(summarise_matches(one)[name] or 0) for one in every) for name in ("expected_match_risk", "true_match_rate")}  # fmt: skip
    return {name: None if value is None else pytest.approx(value) for name, value in {**told, **largest}.items()}


def beliefs_and_windows(
    model: str, ages: Sequence[int], level: float, radius: int | None
) -> tuple[list[float], list[list[Window]]]:
    """The believed ages, and the windows around each in which the intruder may look, the belief alone first."""
    noise = {"log_normal": log_normal_noise, "log_normal_constant": constant_log_normal_noise, "relative": relative_noise}[model]  # fmt: skip
    rng = seeded_run().rng.spawn(1)[0]
    believed = noise(np.array(ages, dtype=float), level, rng, True).tolist()

    def window(value: float, times: float) -> Window:
        if model == "relative":
            low, high = value * max(1 - times * level, 0), value * (1 + times * level)
        else:
            spread = min(times * level * (value if model == "log_normal" else 1), 700)
            low, high = value / math.exp(spread), value * math.exp(spread)
        return low - (radius or 0), high + (radius or 0)

    return believed, [[window(value, times) for value in believed] for times in (0, 0.5, 1, 2, 3)]


@pytest.mark.parametrize("model", ["log_normal", "log_normal_constant", "relative"])
@given(
    rows=st.lists(people, min_size=2, max_size=10),
    illness=st.lists(st.sampled_from(("cold", "flu")), min_size=10, max_size=10),
    level=st.sampled_from((0.05, 0.4)),
    radius=st.sampled_from((None, 1)),
    by_place=st.booleans(),
)
def test_noise_by_unit_is_that_of_households_compared_one_by_one(
    model: str, radius: int | None, by_place: bool, rows: list[Any], illness: list[str], level: float
) -> None:
    own = in_regions(rows)
    schema = Schema(SCHEMA.variables, order="age") if by_place else SCHEMA
    if by_place:
        own.sort(key=lambda row: row[PLACE["age"]])
    assume(len(members_of(own)) < len(own))
    drawn: list[Record] = [(*row[:4], one, row[5]) for row, one in zip(own, illness, strict=False)]
    spec = chosen(schema, model=model, levels=[level], radius={} if radius is None else {"age": radius})
    point = intruder_uncertainty(table(own, "confidential", schema), [table(drawn, schema=schema)], level, spec, seeded_run())  # fmt: skip
    believed, windows = beliefs_and_windows(model, [row[PLACE["age"]] for row in own], level, radius)

    def matched(other: Sequence[Record], exact: Sequence[str], near: Sequence[Window] | None) -> list[tuple[int, bool]]:
        if near is None:
            return matches_by_loops(own, other, exact, {}, {})
        # Without a radius a belief is compared like a level: as a composition, in no order.
        in_order = by_place and not (radius is None and near is windows[0])
        return matches_by_loops(own, other, exact, {"age": near}, {"age": believed}, by_place=in_order)

    for other, measure in ((own, point.confidential), (drawn, point.releases[0])):
        every = [matched(other, exact, near) for exact in (("sex", "illness"), ("sex",)) for near in (*windows, None)]
        assert by_unit(measure) == risks(every[0], every)


@given(
    rows=st.lists(people, min_size=2, max_size=10),
    rooms=st.lists(st.integers(1, 9), min_size=5, max_size=5),
    radius=st.sampled_from((None, 1)),
    by_place=st.booleans(),
)
def test_a_number_of_the_household_has_one_belief_for_all_members(
    rows: list[Any], rooms: list[int], radius: int | None, by_place: bool
) -> None:
    """The belief is that of the first record; days stand for the rooms of the home."""
    variables = tuple(replace(one, level="unit") if one.name == "days" else one for one in SCHEMA.variables)
    schema = Schema(variables, order="age" if by_place else "")
    own: list[Record] = [(*row[:5], rooms[row[0]]) for row in in_regions(rows)]
    own.sort(key=lambda row: row[PLACE["age"]])
    assume(len(members_of(own)) < len(own))
    settings = {"known": ["sex", "days"], "variable": "days", "radius": {} if radius is None else {"days": radius}}
    spec = chosen(schema, **settings, model="log_normal_constant", levels=[0.3])
    point = intruder_uncertainty(table(own, "confidential", schema), [], 0.3, spec, seeded_run())
    _, windows = beliefs_and_windows("log_normal_constant", [row[PLACE["days"]] for row in own], 0.3, radius)
    first = {unit: one[0] for unit, one in members_of(own).items()}
    every = []
    for exact in (("sex", "illness"), ("sex",)):
        for place, near in enumerate(windows):
            of_household = {"days": [near[first[row[0]]] for row in own]}
            ranks = {"days": [0.0] * len(own)}
            in_order = by_place and not (radius is None and place == 0)
            every.append(matches_by_loops(own, own, exact, of_household, ranks, by_place=in_order))
        every.append(matches_by_loops(own, own, exact, {}, {}))
    assert by_unit(point.confidential) == risks(every[0], every)


@given(
    rows=st.lists(people, min_size=2, max_size=10),
    days=st.lists(st.integers(0, 3), min_size=10, max_size=10),
    level=st.sampled_from((0.0, 0.4, 1.0)),
)
def test_unknown_by_unit_is_that_of_households_compared_one_by_one(
    rows: list[Any], days: list[int], level: float
) -> None:
    """The value is lacked of the households whose first record lacks it; days are matched within a radius."""
    own = in_regions(rows)
    assume(len(members_of(own)) < len(own))
    drawn: list[Record] = [(*row[:5], one) for row, one in zip(own, days, strict=False)]
    spec = chosen(model="unknown", levels=[level], radius={"days": 1}, synthesised=["days"])
    point = intruder_uncertainty(table(own, "confidential"), [table(drawn)], level, spec, seeded_run())
    lacking = seeded_run().rng.spawn(1)[0].random(len(own)) < level
    firsts = [one[0] for one in members_of(own).values()]
    near = {"days": [(row[5] - 1, row[5] + 1) for row in own]}
    ranks = {"days": [row[5] for row in own]}
    for other, measure in ((own, point.confidential), (drawn, point.releases[0])):
        told, ignoring = (
            [matches_by_loops(own, other, exact, within, ranks) for within in (near, {})]
            for exact in (("sex", "age"), ("sex",))
        )
        known = [
            [without[i] if lacking[first] else one[i] for i, first in enumerate(firsts)]
            for one, without in zip(told, ignoring, strict=True)
        ]
        assert by_unit(measure) == risks(known[0], [*known, *ignoring])


@pytest.mark.parametrize("variable", ["sex", "region"])
@given(
    rows=st.lists(people, min_size=2, max_size=10),
    illness=st.lists(st.sampled_from(("cold", "flu")), min_size=10, max_size=10),
)
def test_wrong_levels_by_unit_are_those_of_households_compared_one_by_one(
    variable: str, rows: list[Any], illness: list[str]
) -> None:
    """At level 1 each of two levels is taken for the other; at .5 a household has one region, right or wrong."""
    own = in_regions(rows)
    place, levels = PLACE[variable], sorted({row[PLACE[variable]] for row in own})
    assume(len(members_of(own)) < len(own) and len(levels) == 2)
    drawn: list[Record] = [(*row[:4], one, row[5]) for row, one in zip(own, illness, strict=False)]
    spec = chosen(model="misclassification", variable=variable, known=["region", "sex", "age"], levels=[0.5, 1.0])
    for level in spec.levels:
        rng = seeded_run().rng.spawn(1)[0]
        wrong = (rng.random(len(own)) < level).tolist()
        if variable == "region":
            first = {unit: one[0] for unit, one in members_of(own).items()}
            wrong = [wrong[first[row[0]]] for row in own]
        other_level = dict(zip(levels, reversed(levels), strict=True))
        believed = [(*row[:place], other_level[row[place]] if flip else row[place], *row[place + 1 :]) for row, flip in zip(own, wrong, strict=True)]  # fmt: skip
        point = intruder_uncertainty(table(own, "confidential"), [table(drawn)], level, spec, seeded_run())
        certain = [name for name in ("region", "sex", "age") if name != variable]
        for other, measure in ((own, point.confidential), (drawn, point.releases[0])):
            every = [
                matches_by_loops(believed, other, [*names, *more], {}, {})  # type: ignore[arg-type]
                for names in ([*certain, variable], certain)
                for more in (("illness",), ())
            ]
            assert by_unit(measure) == risks(every[0], every)


def random_rows(seed: int, n: int = 60, units: int = 25) -> list[Record]:
    rng = np.random.default_rng(seed)
    unit = rng.integers(0, units, n)
    return in_regions(
        [(int(u), str(rng.choice(["f", "m"])), int(rng.integers(1, 20)), str(rng.choice(["cold", "flu"])), int(rng.integers(0, 9))) for u in unit]
    )  # fmt: skip


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("radius", [{"days": 1}, {"age": 2, "days": 1}, {"age": "log 5%", "days": 1}])
def test_windows_counted_one_by_one_give_what_pairs_compared_at_once_give(
    radius: Mapping[str, Any], ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = Schema(SCHEMA.variables, order="age") if ordered else SCHEMA
    own = random_rows(3, 400, 250)
    days = np.random.default_rng(4).integers(0, 9, len(own)).tolist()
    drawn: list[Record] = [(*row[:5], one) for row, one in zip(own, days, strict=True)]
    settings = {"known": ["sex", "age"], "synthesised": ["days"], "radius": radius, "replicates": 2}
    spec = chosen(schema, **settings, model="log_normal", variable="age", levels=[0.1])
    data, released = table(own, "confidential", schema), table(drawn, schema=schema)

    def measured() -> list[dict[str, float | None]]:
        point = intruder_uncertainty(data, [released], 0.1, spec, seeded_run())
        return [by_unit(point.confidential), *map(by_unit, point.releases)]

    at_once = measured()
    assert at_once[0]["expected_match_risk"]
    monkeypatch.setattr("sfumato.engine.matching.unit_matching.MOST_KEPT_PAIRS", 0)
    assert measured() == at_once


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(
    ("model", "variable", "radius"),
    [
        ("log_normal", "age", {"days": 1}),
        ("relative", "age", {"age": 2, "days": 1}),
        ("log_relative", "age", {"age": "log 5%", "days": 1}),
        ("unknown", "age", {"days": 1}),
        ("unknown", "sex", {"days": 1}),
        ("misclassification", "region", {"age": 1, "days": 1}),
    ],
)
def test_level_zero_is_identification_by_unit(
    model: str, variable: str, radius: Mapping[str, Any], ordered: bool
) -> None:
    schema = Schema(SCHEMA.variables, order="age") if ordered else SCHEMA
    own = random_rows(1)
    days = np.random.default_rng(2).integers(0, 9, len(own)).tolist()
    drawn: list[Record] = [(*row[:5], one) for row, one in zip(own, days, strict=True)]
    settings = {"known": ["region", "sex", "age"], "synthesised": ["days"], "radius": radius}
    data, released = table(own, "confidential", schema), table(drawn, schema=schema)
    spec = chosen(schema, **settings, model=model, variable=variable, levels=[0.0])
    found = by_unit(intruder_uncertainty(data, [released], 0.0, spec, seeded_run()).releases[0])
    method = find_method("risk.identification", "")
    of_method = method.func(data, released, method.spec.from_table(settings, "").for_release(schema, ()), seeded_run())
    measured = {one.measure: one.value for one in of_method.estimates if one.params == {"by": "unit"}}
    assert {name: found[name] for name in IDENTIFIED} == {name: measured[name] for name in IDENTIFIED}
    assert all((found[name] or 0) <= (measured[name] or 0) for name in LARGEST)


def points_of(own: Sequence[Record], drawn: Sequence[Record], **settings: Any) -> tuple[Measure, Measure]:
    spec = chosen(**settings)
    point = intruder_uncertainty(table(own, "confidential"), [table(drawn)], spec.levels[0], spec, seeded_run())
    assert point.confidential is not None
    return point.confidential, point.releases[0]


@pytest.mark.parametrize("settings", [{"levels": [0.0]}, {"model": "unknown", "levels": [1.0]}])
def test_order_of_records_and_numbers_of_units_change_nothing(settings: dict[str, Any]) -> None:
    own, rng = random_rows(3), np.random.default_rng(5)
    drawn: list[Record] = [(*row[:4], str(rng.choice(["cold", "flu"])), int(rng.integers(0, 9))) for row in own]
    settings |= {"synthesised": ["illness", "days"], "radius": {"days": 1}}
    places, numbers = rng.permutation(len(own)), rng.permutation(100)
    first = points_of(own, drawn, **settings)
    moved = [[(int(numbers[rows[i][0]]), *rows[i][1:]) for i in places] for rows in (own, drawn)]
    for one, other in zip(first, points_of(*moved, **settings), strict=True):
        assert by_unit(one) == pytest.approx(by_unit(other))


@pytest.mark.parametrize(
    "settings",
    [
        {"levels": [0.3]},
        {"model": "log_normal_constant", "levels": [0.3], "radius": {"age": 2}},
        {"model": "unknown", "levels": [0.3]},
        {"model": "misclassification", "variable": "sex", "levels": [0.3]},
    ],
)
def test_one_record_a_unit_gives_by_unit_what_the_sweep_gives_by_record(settings: dict[str, Any]) -> None:
    """One unit has two records, of a sex that no other has, so that the others are found alone."""
    rng = np.random.default_rng(8)
    own = [
        (i, "ns"[i % 2], "fm"[i % 2], int(rng.integers(1, 9)), str(rng.choice(["cold", "flu"])), 0) for i in range(60)
    ]
    pair: list[Record] = [(60, "n", "f", 500, "flu", 0), (60, "n", "f", 500, "flu", 0)]
    drawn: list[Record] = [(*row[:4], str(rng.choice(["cold", "flu"])), 0) for row in own]
    with_pair = points_of([*own, *pair], [*drawn, *pair], **settings)
    for one, other in zip(with_pair, points_of(own, drawn, **settings), strict=True):
        assert by_unit(other) == {}
        found, records = by_unit(one), {name: value or 0.0 for name, value in by_record(other).items()}
        # The pair adds itself where its belief finds it, and is nobody else's candidate.
        for name, most in (("expected_match_risk", 1), ("true_match_rate", 60), ("unique_matches", 1)):
            more = (found[name] or 0) * (61 / 60 if most == 60 else 1) - records[name]
            assert min(abs(more), abs(more - 1 / most)) < 1e-9
        for name, most in (("largest_expected_match_risk", 1), ("largest_true_match_rate", 60)):
            more = (found[name] or 0) * (61 / 60 if most == 60 else 1) - records[name]
            assert -1e-9 < more < 1 / most + 1e-9


def test_households_copied_whole_are_found_and_fresh_ones_are_not() -> None:
    def measure(drawn: pd.DataFrame, level: float) -> tuple[dict[str, float | None], dict[str, float | None]]:
        released = replace_origin(as_microdata(drawn))
        settings = {
            "known": ["region", "sex", "age"],
            "variable": "age",
            "synthesised": ["relation"],
            "levels": [level],
        }
        spec = chosen(CENSUS, **settings, model="relative")
        point = intruder_uncertainty(as_microdata(own), [released], level, spec, seeded_run())
        return by_unit(point.releases[0]), by_record(point.releases[0])

    own = draw_households(np.random.default_rng(1), 300)
    sizes = own.groupby("household").size().to_numpy()
    # Other households of the same sizes, so that every household has a row of its own.
    fresh = draw_households(np.random.default_rng(2), 4000)
    theirs = fresh.groupby("household").size()
    taken: list[int] = []
    for size in sizes:
        taken.append(next(u for u in theirs.index[theirs == size] if u not in taken))
    others = pd.concat([fresh[fresh["household"] == unit].assign(household=i) for i, unit in enumerate(taken)])
    compositions = own.groupby("household").apply(
        lambda one: tuple(sorted(zip(one["region"], one["sex"], one["age"], one["relation"], strict=True)))
    )
    alone = (~compositions.duplicated(keep=False)).mean()
    for level in (0.0, 0.1):
        copied, of_records = measure(own, level)
        apart, _ = measure(others, level)
        assert level > 0 or copied["true_match_rate"] == pytest.approx(alone)
        assert (copied["largest_true_match_rate"] or 0) > (of_records["largest_true_match_rate"] or 0)
        assert (apart["largest_true_match_rate"] or 0) < 0.03
        assert (apart["largest_expected_match_risk"] or 0) < 0.03 * len(sizes)


def replace_origin(data: Microdata) -> Microdata:
    return Microdata(data.schema, data.frame, "synthetic", linked=True)


def test_a_release_without_numbers_of_units_has_no_value_by_unit_and_the_reason() -> None:
    rows = random_rows(4)
    data, released = table(rows, "confidential"), table(rows)
    emptied = Microdata(SCHEMA, released.frame.assign(household=np.nan), "synthetic", linked=True)
    point = intruder_uncertainty(data, [emptied], 0.0, chosen(levels=[0.0]), seeded_run())
    found = [one for one in point.releases[0].estimates if one.params.get("by") == "unit"]
    assert [one.measure for one in found] == [*IDENTIFIED, *LARGEST]
    assert all(one.value is None and "which of its records are of one unit" in one.reason for one in found)
    assert by_record(point.releases[0])["expected_match_risk"] is not None


STUDY = "studies.intruder_uncertainty"


def rows_of_run(data: Microdata, **study: Any) -> list[Row]:
    variables = {one.name: {"kind": str(one.kind), "role": str(one.role)} for one in CENSUS}
    recipe = Recipe.from_table(
        {
            "variables": variables,
            "release": {"m": 2, "seed": 3},
            "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["age"]}],
            "study": [
                {
                    "method": STUDY,
                    "variable": "age",
                    "known": ["sex", "age"],
                    "synthesised": ["income"],
                    "radius": {"income": "30%"},
                    "levels": [0.0, 0.1],
                    "replicates": 2,
                    **study,
                }
            ],
        }
    )
    return execute_run(recipe, as_microdata(data.frame, recipe.schema), key=bytes(32)).rows


@pytest.mark.slow
def test_a_limit_on_the_sweep_applies_to_records_and_to_units() -> None:
    data = as_microdata(draw_households(np.random.default_rng(6), 60))
    rows = rows_of_run(data)
    key = f"{STUDY}.largest_expected_match_risk"
    limit = Threshold(key, "max", 1.0, params={"by": "unit"})
    verdicts = judge_thresholds([limit], rows)
    assert [verdict.level for verdict in verdicts] == [0.0, 0.1]
    assert all(verdict.observed is not None and verdict.observed <= 60 for verdict in verdicts)
    assert {verdict.outcome for verdict in verdicts} <= {"not met", "undecided"}
    assert len(judge_thresholds([replace(limit, params={})], rows)) == 4
    units = [row for row in rows if row.key == key and row.params.get("by") == "unit" and row.draw is None]
    assert len(units) == 4
    assert {row.unit for row in units} == {"units"}
    assert all((row.upper or 0) <= 60 for row in units)
    assert quantity_of(key, 12.0, 90, {"by": "unit"}, unit="units") == "12 units"
    shares = [row for row in rows if row.measure == "dataset_share" and row.params.get("by") == "unit"]
    assert {row.params["of"] for row in shares} == {*IDENTIFIED, *LARGEST}


@pytest.mark.slow
def test_without_units_the_sweep_is_of_records_alone() -> None:
    frame = draw_households(np.random.default_rng(6), 60)
    alone = frame.drop_duplicates("household")
    rows = rows_of_run(as_microdata(alone))
    assert rows
    assert all("by" not in row.params and row.unit != "units" for row in rows)


def test_estimates_by_unit_come_after_those_by_record() -> None:
    own = random_rows(2)
    measure = points_of(own, own, levels=[0.1], replicates=2)[1]
    of: list[Estimate] = list(measure.estimates)
    first = next(i for i, one in enumerate(of) if one.params.get("by") == "unit")
    assert all(one.params.get("by") == "unit" for one in of[first:])
    assert not any(one.params.get("by") for one in of[:first])
