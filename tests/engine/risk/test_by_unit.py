"""Measures by unit against loops over households, whose composition is the sorted list of their members."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tables import summarise_matches

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Origin, Role, Schema, Variable
from sfumato.engine.matching.intruder import IntruderKnowledge
from sfumato.engine.matching.unit_matching import UnitMatcher, _count_in_windows, find_best_unit_matches
from sfumato.engine.methods.labels import label_of, quantity_of
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.results import Estimate
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import Run
from sfumato.engine.recipe.thresholds import Threshold, judge_thresholds

SCHEMA = Schema(
    (
        Variable("household", Kind.COUNT, Role.UNIT),
        Variable("sex", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=("f", "m")),
        Variable("age", Kind.COUNT, Role.QUASI_IDENTIFIER),
        Variable("illness", Kind.CATEGORICAL, Role.SENSITIVE, levels=("cold", "flu", "none")),
    )
)
Record = tuple[int, str, int, str]
"""Number of the household, sex, age, illness."""
KEYS = slice(1, 3)
SIZES = {"1": (1, 1), "2": (2, 2), "3": (3, 3), "4 and more": (4, math.inf)}

records = st.lists(
    st.tuples(
        st.integers(0, 5), st.sampled_from(("f", "m")), st.integers(0, 1), st.sampled_from(("cold", "flu", "none"))
    ),
    min_size=2,
    max_size=14,
)


def table(rows: Sequence[Record], origin: Origin = "synthetic", *, linked: bool = False, **changed: Any) -> Microdata:
    household, sex, age, illness = zip(*rows, strict=True)
    frame = pd.DataFrame(
        {
            "household": np.array(household, dtype=np.int64),
            "sex": pd.Categorical(sex, ["f", "m"]),
            "age": np.array(age, dtype=np.int64),
            "illness": pd.Categorical(illness, ["cold", "flu", "none"]),
        }
    ).assign(**changed)
    return Microdata(SCHEMA, frame, origin, linked=linked)


def estimate_measure(key: str, own: Microdata, released: Microdata, **settings: Any) -> tuple[Estimate, ...]:
    method = registry()[key]
    spec = method.spec.from_table(settings, "step").for_release(SCHEMA, ())
    spec.check_release(SCHEMA, (), "step")
    return method.func(own, released, spec, Run(np.random.default_rng(1))).estimates


def by_unit(estimates: Sequence[Estimate]) -> dict[tuple[Any, ...], float | None]:
    """Values by output, target, size of the units ("" for all) and what else tells rows apart."""
    found = {}
    for one in estimates:
        if one.params.get("by") == "unit":
            rest = [value for name, value in one.params.items() if name not in ("by", "unit_size", "sensitive")]
            found[one.measure, one.target, one.params.get("unit_size", ""), *rest] = one.value
    return found


def households(rows: Sequence[Record], part: slice = KEYS) -> list[tuple[Any, ...]]:
    """The composition of each household in order of its number."""
    members: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        members[row[0]].append(row[part])
    return [tuple(sorted(members[number])) for number in sorted(members)]


PLACES = {"sex": 1, "age": 2, "illness": 3}


def compositions(rows: Sequence[Record], names: Sequence[str]) -> list[tuple[Any, ...]]:
    """The composition of each household on some variables, in order of its number."""
    members: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        members[row[0]].append(tuple(row[PLACES[name]] for name in names))
    return [tuple(sorted(members[number])) for number in sorted(members)]


SETS_OF_ALL = {
    "without numbers": [("sex", "illness")],
    "all but one": [("age", "illness"), ("sex", "age")],
}
"""Sets of sex, age and illness; the quasi-identifiers are all but illness, and (sex, illness) is without numbers."""


def strata(rows: Sequence[Record]) -> dict[str, tuple[float, float]]:
    """Sizes to be reported: all, and those that some household has."""
    sizes = [len(one) for one in households(rows)]
    return {"": (1, math.inf)} | {name: (a, b) for name, (a, b) in SIZES.items() if any(a <= s <= b for s in sizes)}


def has_units(rows: Sequence[Record]) -> bool:
    return len(households(rows)) < len(rows)


def share(found: Sequence[bool]) -> float | None:
    return sum(found) / len(found) if found else None


def compare(found: Mapping[tuple[Any, ...], float | None], expected: Mapping[tuple[Any, ...], float | None]) -> None:
    assert set(found) == set(expected)
    for key, value in expected.items():
        assert found[key] == (None if value is None else pytest.approx(value)), key


@given(records, records)
def test_uniqueness_by_unit_is_that_of_households_compared_one_by_one(own: list[Record], drawn: list[Record]) -> None:
    found = by_unit(estimate_measure("risk.uniqueness", table(own, "confidential"), table(drawn), sizes=[1, 2]))
    if not has_units(own):
        assert found == {}
        return
    ours, theirs = Counter(households(own)), Counter(households(drawn))
    expected: dict[tuple[Any, ...], float | None] = {}
    for name, (low, high) in strata(own).items():
        mine = [one for one in households(own) if low <= len(one) <= high]
        other = [one for one in households(drawn) if low <= len(one) <= high]
        expected["sample_uniques", "", name] = sum(theirs[one] == 1 for one in other)
        expected["population_uniques", "", name] = share([ours[one] == 1 for one in other])
        expected["replicated_uniques", "", name] = share([ours[one] == 1 == theirs[one] for one in mine])
        for size in (1, 2) if not name else ():
            expected["share_in_small_groups", "", name, size] = share([theirs[one] <= size for one in other])
    mine, other = compositions(own, ["sex"]), compositions(drawn, ["sex"])
    kind = "without numbers"
    expected["population_uniques", "", "", kind] = share([mine.count(one) == 1 for one in other])
    expected["replicated_uniques", "", "", kind] = share([mine.count(one) == 1 == other.count(one) for one in mine])
    compare(found, expected)


@given(records, records)
def test_copies_by_unit_are_households_that_equal_one(own: list[Record], drawn: list[Record]) -> None:
    estimates = estimate_measure("risk.exact_copies", table(own, "confidential"), table(drawn))
    found = by_unit(estimates)
    if not has_units(own):
        assert found == {}
        return
    whole = slice(1, 4)
    ours = Counter(households(own, whole))
    expected: dict[tuple[Any, ...], float | None] = {}
    for name, (low, high) in strata(own).items():
        other = [one for one in households(drawn, whole) if low <= len(one) <= high]
        expected["copies", "", name] = share([ours[one] >= 1 for one in other])
        expected["lone_copies", "", name] = share([ours[one] == 1 for one in other])
    for kind, sets in SETS_OF_ALL.items():
        beyond: dict[str, list[float]] = {"copies": [], "lone_copies": []}
        for names in sets:
            mine, other = compositions(own, names), compositions(drawn, names)
            for output, hits, among in (
                ("copies", [one in mine for one in other], [mine.count(one) > 1 for one in mine]),
                ("lone_copies", [mine.count(one) == 1 for one in other], [mine.count(one) == 2 for one in mine]),
            ):
                a, b = share(hits) or 0.0, share(among) or 0.0
                seen = Counter(Counter(mine).values())
                spread = seen[1] + 2 * seen[2] if output == "copies" else 4 * seen[2] + 6 * seen[3]
                error = math.sqrt(a * (1 - a) / len(hits) + spread / len(mine) ** 2)
                beyond[output].append(max(0.0, a - b - 3 * error))
        for output, values in beyond.items():
            expected[output, "", "", kind] = max(values)
    compare(found, expected)
    base = next(one for one in estimates if one.params == {"by": "unit"} and one.measure == "copies").baseline
    assert base == pytest.approx(share([ours[one] > 1 for one in households(own, whole)]))


def entropy_of(values: Sequence[Any]) -> float:
    counts = Counter(values).values()
    return math.exp(-sum(n / len(values) * math.log(n / len(values)) for n in counts))


def recursive_of(values: Sequence[Any]) -> float | None:
    counts = sorted(Counter(values).values(), reverse=True)
    return counts[0] / sum(counts[1:]) if len(counts) > 1 else None


@given(records)
def test_anonymity_by_unit_is_that_of_households_compared_one_by_one(rows: list[Record]) -> None:
    data = table(rows, "confidential")
    found = by_unit(estimate_measure("risk.anonymity", data, data))
    if not has_units(rows):
        assert found == {}
        return
    numbers, composition = sorted({row[0] for row in rows}), households(rows)
    of = dict(zip(numbers, composition, strict=True))
    whole = dict(zip(numbers, households(rows, slice(3, 4)), strict=True))
    times = Counter(composition)
    in_class: dict[Any, set[int]] = defaultdict(set)
    for row in rows:
        in_class[row[KEYS]].add(row[0])
    table_shares = {one: sum(row[3] == one for row in rows) / len(rows) for one in ("cold", "flu", "none")}
    expected: dict[tuple[Any, ...], float | None] = {
        ("k", "", "", "in a class of records"): min(map(len, in_class.values()))
    }
    for name, (low, high) in strata(rows).items():
        chosen = [one for one in times if low <= len(one) <= high]
        expected["k", "", name] = min(times[one] for one in chosen)
        if name:
            continue
        expected["classes", "", name] = len(chosen)
        groups, distances = [], []
        for one in chosen:
            groups.append([whole[number] for number in numbers if of[number] == one])
            for key in set(one):
                members = [row[3] for row in rows if of[row[0]] == one and row[KEYS] == key]
                groups.append(members)
                shares = Counter(members)
                distances.append(sum(abs(shares[x] / len(members) - q) for x, q in table_shares.items()) / 2)
        expected["l_distinct", "illness", name] = expected["p", "", name] = min(len(set(one)) for one in groups)
        expected["l_entropy", "illness", name] = min(map(entropy_of, groups))
        ratios = [recursive_of(one) for one in groups]
        expected["c_recursive", "illness", name] = None if None in ratios else max(r for r in ratios if r is not None)
        expected["t", "illness", name] = max(distances)
    compare(found, expected)


@given(records)
def test_anonymity_by_unit_does_not_improve_with_knowledge(rows: list[Record]) -> None:
    data = table(rows, "confidential")
    less, more = (
        by_unit(estimate_measure("risk.anonymity", data, data, quasi_identifiers=names))
        for names in (["sex"], ["sex", "age"])
    )
    for key in less:
        one, other = less[key], more[key]
        if key[0] in ("k", "p", "l_distinct", "l_entropy"):
            assert one is not None
            assert other is not None
            assert other <= one + 1e-9, key
        elif key[0] == "t":
            assert one is not None
            assert other is not None
            assert other >= one - 1e-9, key


def test_a_class_of_five_records_of_one_household_is_k_1_by_unit() -> None:
    data = table([(7, "f", 30, "flu")] * 5 + [(8, "m", 40, "cold"), (9, "m", 40, "flu")], "confidential")
    estimates = estimate_measure("risk.anonymity", data, data)
    assert next(one.value for one in estimates if one.measure == "k" and not one.params) == 2
    found = by_unit(estimates)
    assert found["k", "", "", "in a class of records"] == 1
    assert found["k", "", ""] == 1


def test_records_of_several_households_are_k_1_where_no_two_households_are_alike() -> None:
    rows = [(1, "f", 30, "flu"), (1, "m", 30, "flu"), (2, "f", 30, "cold"), (2, "m", 40, "cold"), (3, "m", 30, "flu"), (3, "m", 40, "flu")]  # fmt: skip
    data = table(rows, "confidential")
    estimates = estimate_measure("risk.anonymity", data, data)
    assert next(one.value for one in estimates if one.measure == "k" and not one.params) == 2
    found = by_unit(estimates)
    assert found["k", "", "", "in a class of records"] == 2
    assert found["k", "", ""] == 1


KEYS_OF_MEASURES = (
    "risk.uniqueness",
    "risk.exact_copies",
    "risk.anonymity",
    "risk.special_uniques",
    "risk.population_uniqueness",
)
NEEDED = {"risk.population_uniqueness": {"fraction": 0.5}}


def shuffled(rows: Sequence[Record], rng: np.random.Generator) -> list[Record]:
    """The same households with other numbers, their records in another order."""
    numbers = rng.permutation(100)
    return [(int(numbers[rows[i][0]]), *rows[i][1:]) for i in rng.permutation(len(rows))]


def random_rows(seed: int, n: int = 60) -> list[Record]:
    rng = np.random.default_rng(seed)
    return [
        (int(rng.integers(n // 3)), str(rng.choice(["f", "m"])), int(rng.integers(3)), str(rng.choice(["cold", "flu"])))
        for _ in range(n)
    ]


@pytest.mark.parametrize("key", KEYS_OF_MEASURES)
def test_order_of_records_and_numbers_of_units_change_nothing(key: str) -> None:
    own, drawn, rng = random_rows(1), random_rows(2), np.random.default_rng(3)
    settings = NEEDED.get(key, {})
    first = estimate_measure(key, table(own, "confidential"), table(drawn), **settings)
    second = estimate_measure(key, table(shuffled(own, rng), "confidential"), table(shuffled(drawn, rng)), **settings)
    assert by_unit(second) == pytest.approx(by_unit(first))


@pytest.mark.parametrize("key", KEYS_OF_MEASURES)
def test_one_record_a_unit_gives_the_estimates_of_a_table_without_units(key: str) -> None:
    own = [(i, *row[1:]) for i, row in enumerate(random_rows(1))]
    drawn = [(i, *row[1:]) for i, row in enumerate(random_rows(2))]
    found = estimate_measure(key, table(own, "confidential"), table(drawn), **NEEDED.get(key, {}))
    assert not by_unit(found)
    one_less = SCHEMA.select_variables(SCHEMA.names[1:])
    alone = [Microdata(one_less, table(rows).frame.drop(columns="household"), origin, linked=False) for rows, origin in ((own, "confidential"), (drawn, "synthetic"))]  # fmt: skip
    assert estimate_measure(key, *alone, **NEEDED.get(key, {})) == found


@pytest.mark.parametrize("key", KEYS_OF_MEASURES)
def test_a_release_without_numbers_of_units_is_not_computed_by_unit(key: str) -> None:
    own, drawn = random_rows(1), random_rows(2)
    released = table(drawn, household=np.full(len(drawn), np.nan))
    estimates = estimate_measure(key, table(own, "confidential"), released, **NEEDED.get(key, {}))
    found = [one for one in estimates if one.params.get("by") == "unit"]
    assert found
    assert all(one.value is None and "of one unit" in one.reason for one in found)


def test_households_copied_whole_show_by_unit_and_hide_by_record() -> None:
    def rows_of(seed: int) -> list[Record]:
        rng = np.random.default_rng(seed)
        return [
            (home, str(rng.choice(["f", "m"])), int(rng.integers(12)), str(rng.choice(["cold", "flu", "none"])))
            for home in range(600)
            for _ in range(3)
        ]

    own, fresh = rows_of(1), rows_of(2)
    copied = [(1000 + row[0], *row[1:]) for row in own if row[0] < 30] + [row for row in fresh if row[0] >= 30]

    def excess(drawn: Sequence[Record], wanted: Callable[[Estimate], bool]) -> float:
        found = [
            one
            for one in estimate_measure("risk.exact_copies", table(own, "confidential"), table(drawn))
            if wanted(one)
        ]
        (copies,) = [one for one in found if one.measure == "copies"]
        assert copies.value is not None
        assert copies.baseline is not None
        return copies.value - copies.baseline

    for drawn, least, most in ((fresh, -0.01, 0.01), (copied, 0.045, 0.055)):
        assert least <= excess(drawn, lambda one: one.params == {"by": "unit"}) <= most
        assert abs(excess(drawn, lambda one: not one.params)) < 0.01


def test_households_copied_but_for_a_number_show_without_it() -> None:
    """With ages of their own no household equals another; illness and sex are copied for one in five."""

    def rows_of(seed: int) -> list[Record]:
        rng = np.random.default_rng(seed)
        return [
            (home, str(rng.choice(["f", "m"])), int(rng.integers(10**6)), str(rng.choice(["cold", "flu", "none"])))
            for home in range(1500)
            for _ in range(20)
        ]

    own, fresh, other = rows_of(1), rows_of(2), rows_of(3)
    copied = [(row[0], row[1], new[2], row[3]) if row[0] < 300 else new for row, new in zip(own, other, strict=True)]
    whole, shares = ("copies", "", ""), {}
    for name, drawn in (("fresh", fresh), ("copied", copied)):
        found = by_unit(estimate_measure("risk.exact_copies", table(own, "confidential"), table(drawn)))
        assert found[whole] == 0
        shares[name] = found["copies", "", "", "without numbers"]
    print(f"copies of households without numbers beyond chance: {shares}; of all columns 0")
    assert shares["fresh"] == 0
    assert shares["copied"] is not None
    assert 0.05 < shares["copied"] <= 0.2 + 1e-9
    # and so do the households that are unique in both tables
    found = {
        name: by_unit(estimate_measure("risk.uniqueness", table(own, "confidential"), table(drawn), keys=list(PLACES)))
        for name, drawn in (("fresh", fresh), ("copied", copied))
    }
    assert all(one["replicated_uniques", "", ""] == 0 for one in found.values())
    low, high = (found[name]["replicated_uniques", "", "", "without numbers"] or 0 for name in ("fresh", "copied"))
    assert high > low + 0.05


def test_a_limit_applies_to_the_sets_of_columns_too() -> None:
    rows = [row(0.0), row(0.0, by="unit"), row(0.3, by="unit", columns="without numbers")]
    judged = judge_thresholds([Threshold("risk.identification.true_match_rate", "max", 0.05)], rows)
    assert [(one.observed, one.outcome) for one in judged] == [(0.0, "met")] * 2 + [(0.3, "not met")]
    assert "columns without numbers" in label_of(rows[2])


def aligned(rows: Sequence[Record], names: Sequence[str], radius: Mapping[str, int], *, by_place: bool) -> list[Any]:
    """Each household's members, (exact values, numbers with a radius), in the order in which they are compared."""
    place = {"sex": 1, "age": 2, "illness": 3}
    members: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        exact = tuple(row[place[name]] for name in names if name not in radius)
        members[row[0]].append((exact, tuple(row[place[name]] for name in names if name in radius)))
    ordered = (members[number] for number in dict.fromkeys(row[0] for row in rows))
    if by_place and any(name in radius for name in names):
        return list(ordered)
    return [sorted(one) for one in ordered]


def matches_by_loops(
    own: Sequence[Record], drawn: Sequence[Record], names: Sequence[str], radius: Mapping[str, int], by_place: bool
) -> list[tuple[int, bool]]:
    """Candidates of each household, and whether its own is among them; row i of the release is that of record i."""
    ours, theirs = (aligned(rows, names, radius, by_place=by_place) for rows in (own, drawn))
    within = [radius[name] for name in ("age",) if name in names and name in radius]
    numbers_of_drawn = list(dict.fromkeys(row[0] for row in drawn))
    own_number = [
        drawn[next(i for i, row in enumerate(own) if row[0] == n)][0] for n in dict.fromkeys(r[0] for r in own)
    ]

    def fits(one: list[Any], other: list[Any]) -> bool:
        return len(one) == len(other) and all(
            a == b and all(abs(x - y) <= r for x, y, r in zip(m, n, within, strict=True))
            for (a, m), (b, n) in zip(one, other, strict=True)
        )

    found = []
    for one, number in zip(ours, own_number, strict=True):
        chosen = [other for other, each in zip(numbers_of_drawn, theirs, strict=True) if fits(one, each)]
        found.append((len(chosen), number in chosen))
    return found


@pytest.mark.parametrize("by_place", [False, True])
@pytest.mark.parametrize("radius", [{}, {"age": 1}])
@given(rows=records, again=st.lists(st.tuples(st.sampled_from("fm"), st.integers(0, 3)), min_size=14, max_size=14))
def test_identification_by_unit_is_that_of_households_compared_one_by_one(
    by_place: bool, radius: dict[str, int], rows: list[Record], again: list[tuple[str, int]]
) -> None:
    own = [(row[0], row[1], 2 * row[2], row[3]) for row in rows]
    drawn = [(row[0], sex, age, row[3]) for row, (sex, age) in zip(own, again, strict=False)]
    ordered = Schema(SCHEMA.variables, order="age")
    data, released = table(own, "confidential"), table(drawn, linked=True)
    if by_place:  # members come in the order of their age
        own.sort(key=lambda row: row[2])
        drawn = sorted(drawn, key=lambda row: row[2])
        data, released = (
            Microdata(ordered, table(x).frame, o, linked=True) for x, o in ((own, "confidential"), (drawn, "synthetic"))
        )
    names = ("sex", "age", "illness")
    settings = {"known": ["illness"], "synthesised": ["sex", "age"], "radius": radius}
    found = by_unit(estimate_measure("risk.identification", data, released, **settings))
    if not has_units(own):
        assert found == {}
        return
    matches = matches_by_loops(own, drawn, names, radius, by_place)
    numbers = list(dict.fromkeys(row[0] for row in own))
    size = Counter(row[0] for row in own)
    expected: dict[tuple[Any, ...], float | None] = {}
    for name, (low, high) in strata(own).items():
        some = [one for one, number in zip(matches, numbers, strict=True) if low <= size[number] <= high]
        expected |= {(output, "", name): value for output, value in summarise_matches(some).items()}
    every = [
        summarise_matches(
            matches_by_loops(own, drawn, [name for name in names if mask >> names.index(name) & 1], radius, by_place)
        )
        for mask in range(8)
    ]
    for output in ("expected_match_risk", "true_match_rate"):
        expected[f"largest_{output}", "", ""] = max(float(one[output] or 0) for one in every)
    compare(found, expected)


def test_a_household_is_found_whose_members_alone_are_not() -> None:
    """Every member has a double in another household, no household has one."""
    rows = [(1, "f", 0, "flu"), (1, "m", 0, "flu"), (2, "f", 0, "flu"), (2, "f", 1, "flu"), (3, "m", 0, "flu"), (3, "f", 1, "flu")]  # fmt: skip
    own = table(rows, "confidential")
    estimates = estimate_measure(
        "risk.identification", own, table(rows, linked=True), known=["sex", "age"], synthesised=["illness"]
    )
    of_records = {one.measure: one.value for one in estimates if not one.params}
    assert of_records["true_match_rate"] == 0
    assert by_unit(estimates)["true_match_rate", "", ""] == 1
    # members are not independent: the product over members would say 1 - (1 - 1/2)(1 - 1/2)
    assert by_unit(estimates)["expected_match_risk", "", ""] == 3


def test_identification_of_sampled_targets_counts_their_units() -> None:
    rows = random_rows(5)
    own, drawn = table(rows, "confidential"), table(rows, linked=True)
    estimates = estimate_measure(
        "risk.identification",
        own,
        drawn,
        known=["sex", "age"],
        synthesised=["illness"],
        among={"sex": ["f"]},
        targets=9,
    )
    rows_by_unit = [one for one in estimates if one.params == {"by": "unit"}]
    assert all("target units" in one.reason for one in rows_by_unit)
    rate = next(one for one in rows_by_unit if one.measure == "true_match_rate")
    assert rate.lower is not None
    assert rate.upper is not None
    assert rate.value is not None
    assert rate.lower <= rate.value <= rate.upper


def test_order_and_numbers_change_nothing_in_identification_by_unit() -> None:
    own, rng = random_rows(1), np.random.default_rng(4)
    drawn = [(row[0], str(rng.choice(["f", "m"])), row[2], row[3]) for row in own]
    places, numbers = rng.permutation(len(own)), rng.permutation(100)
    settings = {"known": ["age"], "synthesised": ["sex", "illness"], "radius": {"age": 1}}
    first = estimate_measure("risk.identification", table(own, "confidential"), table(drawn, linked=True), **settings)
    moved = [[(int(numbers[rows[i][0]]), *rows[i][1:]) for i in places] for rows in (own, drawn)]
    second = estimate_measure(
        "risk.identification", table(moved[0], "confidential"), table(moved[1], linked=True), **settings
    )
    assert by_unit(second) == pytest.approx(by_unit(first))


def test_a_file_of_the_intruder_is_matched_by_record_alone() -> None:
    rows = random_rows(5)
    estimates = estimate_measure(
        "risk.identification", table(rows, "confidential"), table(rows, linked=True), known=["sex"], synthesised=["age"], coverage=0.5
    )  # fmt: skip
    told = {one.params["intruder"] for one in estimates if one.params.get("by") == "unit" and one.value is not None}
    assert told == {"knows the confidential values"}
    assert any("one by one" in one.reason for one in estimates if one.params.get("by") == "unit" and one.value is None)


def minimal_sets(rows: Sequence[Record]) -> dict[int, list[tuple[str, ...]]]:
    """The sets of keys on which each household is unique while it is not on a subset, by its place."""
    place = {"sex": 1, "age": 2, "illness": 3}
    found: dict[int, list[tuple[str, ...]]] = defaultdict(list)
    for chosen in (["sex"], ["age"], ["illness"], ["sex", "age"], ["sex", "illness"], ["age", "illness"], [*place]):
        members: dict[int, list[Any]] = defaultdict(list)
        for row in rows:
            members[row[0]].append(tuple(row[place[name]] for name in chosen))
        composition = [tuple(sorted(members[number])) for number in dict.fromkeys(row[0] for row in rows)]
        times = Counter(composition)
        for at, one in enumerate(composition):
            if times[one] == 1 and not any(set(other) < set(chosen) for other in found[at]):
                found[at].append(tuple(chosen))
    return found


@given(records)
def test_special_uniques_by_unit_are_found_by_every_set(rows: list[Record]) -> None:
    data = table(rows, "confidential")
    found = by_unit(estimate_measure("risk.special_uniques", data, data, keys=["sex", "age", "illness"]))
    if not has_units(rows):
        assert found == {}
        return
    sets, size = minimal_sets(rows), Counter(row[0] for row in rows)
    sizes = [size[number] for number in dict.fromkeys(row[0] for row in rows)]
    for name, (low, high) in strata(rows).items():
        count = sum(bool(sets[at]) for at, one in enumerate(sizes) if low <= one <= high)
        assert found["special_uniques", "", name] == count
    for width in (1, 2, 3):
        times = sum(len(one) == width for each in sets.values() for one in each)
        assert found["minimal_uniques", "", "", width] == times
    points = {1: 2 * 1, 2: 1, 3: 1}  # prod_{i = k}^{2} (3 - i)
    scores = [sum(points[len(one)] for one in sets[at]) for at in range(len(sizes))]
    assert found["mean_score", "", ""] == pytest.approx(sum(scores) / len(sizes))
    assert found["largest_score", "", ""] == max(scores)
    for key in ("sex", "age", "illness"):
        part = sum(points[len(one)] for each in sets.values() for one in each if key in one)
        share_of_key = found["attribute_contribution", key, ""]
        assert share_of_key == (pytest.approx(part / sum(scores)) if sum(scores) else None)


def test_population_uniqueness_by_unit_is_that_of_a_table_of_compositions() -> None:
    """A table with one record a household, its composition as the only key, has the same class sizes."""
    rng = np.random.default_rng(8)
    rows = [
        (home, str(rng.choice(["f", "m"])), int(rng.integers(4)), "flu")
        for home in range(300)
        for _ in range(1 + home % 2)
    ]
    data = table(rows, "confidential")
    found = by_unit(estimate_measure("risk.population_uniqueness", data, data, keys=["sex", "age"], fraction=0.2))
    codes = pd.factorize(pd.Series([str(one) for one in households(rows)]))[0]
    schema = Schema((Variable("composition", Kind.COUNT, Role.QUASI_IDENTIFIER),))
    for size in ("", "1", "2"):
        some = [i for i, one in enumerate(households(rows)) if size in ("", str(len(one)))]
        alone = Microdata(schema, pd.DataFrame({"composition": codes[some].astype(np.int64)}))
        method = registry()["risk.population_uniqueness"]
        spec = method.spec.from_table({"keys": ["composition"], "fraction": 0.2}, "step")
        expected = {one.measure: one.value for one in method.func(alone, alone, spec, Run(rng)).estimates}
        for name in ("pitman_uniques", "zayatz_uniques"):
            assert found[name, "", size] == pytest.approx(expected[name]), (name, size)
    assert found["expected_uniques", "", ""] is None
    assert found["zayatz_uniques", "", ""]


def row(value: float, **params: Any) -> Row:
    return Row(
        "risk", "identification", "true_match_rate", "", "synthetic", None, None, value, value, value, params=params
    )


def values_and_outcomes(**table_of_threshold: Any) -> list[tuple[float | None, str]]:
    """What a threshold says of a release whose units are found more often than its records."""
    rows = [row(0.02), row(0.3, by="unit"), row(0.9, by="unit", unit_size="3")]
    threshold = Threshold("risk.identification.true_match_rate", "max", 0.05, **table_of_threshold)
    return [(one.observed, one.outcome) for one in judge_thresholds([threshold], rows)]


def test_the_worse_of_records_and_units_decides_a_threshold() -> None:
    assert values_and_outcomes() == [(0.02, "met"), (0.3, "not met")]
    assert values_and_outcomes(params={"by": "record"}) == [(0.02, "met")]
    assert values_and_outcomes(params={"by": "unit"}) == [(0.3, "not met")]
    assert values_and_outcomes(params={"unit_size": "3"}) == [(0.9, "not met")]


def test_a_limit_on_units_is_not_met_by_a_number_of_records() -> None:
    key = "studies.intruder_uncertainty.true_match_rate"
    of_records = Row("studies", "intruder_uncertainty", "true_match_rate", "", "synthetic", None, 0.1, 0.0)
    (verdict,) = judge_thresholds([Threshold(key, "max", 0.05, params={"by": "unit"})], [of_records])
    assert (verdict.outcome, verdict.observed) == ("not computed", None)
    assert "counts records" in verdict.reason


def test_rows_by_unit_are_told_in_units() -> None:
    assert label_of(row(0.3, by="unit")).endswith("(by unit)")
    assert label_of(row(0.3, by="unit", unit_size="3")).endswith("(by unit; units of 3 records)")
    key = "risk.identification.expected_match_risk"
    assert quantity_of(key, 12.0, 9257, {"by": "unit"}, unit="units") == "12 units"
    assert quantity_of(key, 1.0, 9257, {"by": "unit"}, unit="units") == "1 unit"
    assert quantity_of("risk.identification.true_match_rate", 0.25, 9257, {"by": "unit"}) == "25 % of the units"
    assert quantity_of("risk.anonymity.k", 1.0, 9257, {"by": "unit"}) == "1 unit"
    assert quantity_of(key, 12.0, 9257) == "12 of 9,257 people (0.13 %)"


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from((0, 1, 2, None)), st.sampled_from((0, 3, None))), min_size=3, max_size=10),
    st.lists(st.tuples(st.sampled_from((0, 1, 2, None)), st.sampled_from((0, 3, None))), min_size=10, max_size=10),
)  # fmt: skip
def test_missing_numbers_match_missing_ones_alone(own: list[Any], again: list[Any]) -> None:
    """Two windows a record, so that units of two or more are counted by pairs, and some numbers are missing."""
    schema = Schema(
        (Variable("household", Kind.COUNT, Role.UNIT), Variable("a", Kind.COUNT), Variable("b", Kind.COUNT))
    )
    drawn = [(row[0], *values) for row, values in zip(own, again, strict=False)]
    if len({row[0] for row in own}) == len(own) or any({row[i] for row in rows} <= {None} for rows in (own, drawn) for i in (1, 2)):  # fmt: skip
        return

    def data(rows: list[Any], origin: Origin) -> Microdata:
        columns = dict(zip(("household", "a", "b"), zip(*rows, strict=True), strict=True))
        numbers = {name: np.array([np.nan if v is None else v for v in values]) for name, values in columns.items()}
        return Microdata(schema, pd.DataFrame(numbers).astype({"household": np.int64}), origin, linked=True)

    method = registry()["risk.identification"]
    spec = method.spec.from_table({"known": ["a", "b"], "radius": {"a": 1, "b": 0}}, "step").for_release(schema, ())
    found = by_unit(method.func(data(own, "confidential"), data(drawn, "synthetic"), spec, Run(np.random.default_rng(1))).estimates)  # fmt: skip

    def members(rows: list[Any]) -> list[list[Any]]:
        ordered: dict[int, list[Any]] = defaultdict(list)
        for row in rows:
            ordered[row[0]].append(tuple(math.inf if value is None else value for value in row[1:]))
        return [sorted(one) for one in ordered.values()]

    def fits(one: list[Any], other: list[Any]) -> bool:
        return len(one) == len(other) and all(
            x == y or abs(x - y) <= r
            for m, n in zip(one, other, strict=True)
            for x, y, r in zip(m, n, (1, 0), strict=True)
        )

    ours, theirs = members(own), members(drawn)
    matches = [(sum(fits(one, each) for each in theirs), fits(one, theirs[at])) for at, one in enumerate(ours)]
    for output, value in summarise_matches(matches).items():
        assert found[output, "", ""] == (None if value is None else pytest.approx(value)), output


@given(seed=st.integers(0, 50))
def test_of_many_variables_the_search_finds_no_more_than_all_subsets_and_no_less_than_all_variables(seed: int) -> None:
    own, rng = random_rows(seed, 40), np.random.default_rng(seed)
    drawn = [(row[0], str(rng.choice(["f", "m"])), row[2], str(rng.choice(["cold", "flu"]))) for row in own]
    confidential, released = table(own, "confidential"), table(drawn, linked=True)
    ours, theirs = confidential.units, released.units
    assert ours is not None
    assert theirs is not None
    names = ("sex", "age", "illness")
    keys = IntruderKnowledge.from_variables(confidential, names, {}).keys_by_variable(released)
    matcher = UnitMatcher(keys, ours, theirs, by_place=False, own=theirs.unit_of[ours.first_records])
    everyone = np.arange(len(ours))
    searched, exhaustive = (find_best_unit_matches(matcher, everyone, most) for most in (2, 12))
    whole = matcher.match(names, everyone)
    value = float(np.sum(1 / whole.candidates[whole.hit]))
    assert value - 1e-9 <= searched[0].value <= exhaustive[0].value + 1e-9


@given(seed=st.integers(0, 40), sides=st.integers(3, 6), missing=st.booleans())
def test_boxes_of_units_are_counted_alike_by_pairs_and_by_intervals(seed: int, sides: int, *, missing: bool) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 12, (60, sides)).astype(float)
    if missing:
        values[rng.random(values.shape) < 0.1] = np.nan
    lower, upper = values - rng.integers(0, 6, values.shape), values + rng.integers(0, 6, values.shape)
    group = rng.integers(0, 2, 60)
    by_loops = [
        sum(group[u] == group[v] and bool(((lower[u] <= values[v]) & (values[v] <= upper[u])).all()) for v in range(60))
        for u in range(60)
    ]
    for pairs_a_node in (0, 10**9):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("sfumato.engine.matching.unit_matching.PAIRS_A_NODE", pairs_a_node)
            assert _count_in_windows(group, lower, upper, group, values).tolist() == by_loops
