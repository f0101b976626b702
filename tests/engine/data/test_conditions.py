"""The language of conditions: what is read, what is refused, and that truth is Kleene's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prepared_tables import schema_of

from sfumato.engine.constraints.constraints import read_constraints
from sfumato.engine.constraints.evaluation import (
    PossibleValues,
    check_constraint_levels,
    count_compliance,
    evaluate_rule,
)
from sfumato.engine.data.conditions import LONGEST_CONDITION, parse_condition
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import BadInput

SCHEMA = schema_of(
    Variable("married", Kind.CATEGORICAL, levels=("no", "yes", "was & is")),
    Variable("partner", Kind.CATEGORICAL, levels=("no", "yes")),
    Variable("school", Kind.ORDINAL, levels=("low", "middle", "high")),
    "age: count",
    "hours-per-week: continuous",
    "wage: continuous",
    "rent: continuous",
    "income: continuous",
    "born: date",
    "wed: date",
    "person: categorical identifier",
)
ROWS = [
    ("yes", "yes", "low", 12, 40.0, 0.1, 0.2, 0.3, "2000-01-01", "1999-12-31", "a"),
    ("no", "yes", "middle", 12, 50.5, 0.2, 0.2, 0.4, "1990-01-01", "2000-01-01", "b"),
    ("was & is", "no", "high", 40, 10.0, 0.3, 0.3, 0.7, "1980-01-01", None, "c"),
    (None, "no", None, None, 20.0, None, 0.1, 0.5, "1970-01-01", "1980-01-01", "d"),
]


def table(schema: Schema = SCHEMA) -> Microdata:
    return conform_to_schema(pd.DataFrame(ROWS, columns=schema.names), schema, MissingPolicy.KEEP)


def truth_values(text: str) -> str:
    """T, F or ? for each of the four records."""
    (constraint,) = read_constraints({"c": text}, SCHEMA)
    found = evaluate_rule(constraint.rule, PossibleValues(table(), SCHEMA))
    assert not (found.holds & found.violated).any()
    return "".join("T" if yes else "F" if no else "?" for yes, no in zip(found.holds, found.violated, strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("married = 'yes' -> age >= 15", "FTT?"),
        ("married = yes -> age >= 15", "FTT?"),
        ("married = 'yes' and age < 15", "TFF?"),
        ("not (married = yes & age < 15)", "FTT?"),
        ("married = 'was & is' or age = 12", "TTT?"),
        ("married = no | 'was & is'", "FTT?"),
        ("married != no | yes", "FFT?"),
        ("married is missing", "FFFT"),
        ("married is present", "TTTF"),
        ("married is missing or age < 100", "TTTT"),
        ("school >= middle", "FTT?"),
        ("married = partner", "TFF?"),
        ("married != partner", "FTT?"),
        ("income = wage + rent", "TTF?"),
        ("income - wage - rent = 0", "TTF?"),
        ("wage + rent <= income", "TTT?"),
        ("income > 2 * wage", "TFT?"),
        ("-1 * income <= wage", "TTT?"),
        ("hours-per-week > 15", "TTFT"),
        ("hours-per-week>15", "TTFT"),
        ("`hours-per-week` > 15", "TTFT"),
        ("15 < hours-per-week", "TTFT"),
        ("born <= wed", "FT?T"),
        ("wed - born >= 3652", "FT?T"),
        ("wed - born >= 3653", "FF?F"),
        ("born >= '1985-01-01'", "TTFF"),
        ("born >= 1985-01-01", "TTFF"),
        ("age = 12 | 40", "TTT?"),
        ("age != 12 | 40", "FFF?"),
    ],
)
def test_a_rule_says_this_of_each_record(text: str, expected: str) -> None:
    assert truth_values(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no condition"),
        (7, "no condition"),
        ("married", "says nothing"),
        ("married = 'yes", "not closed"),
        ("(age = 3", "bracket"),
        ("age = 3)", "nothing is said"),
        ("age = 3 ->", "missing"),
        ("age < 3 | 4", "only = and !="),
        ("0 < age < 3", "two sides"),
        ("age == 3", '"=" says'),
        ("age is", "missing"),
        ("age + rent is missing", "one column"),
        ("x * age = 3", "number"),
        ("age ! 3", "means nothing"),
        ("__import__('os').system('ls')", "says nothing"),
        ("income = wage - rnt", 'did you mean "rent"'),
        ("income = wage+rent", "no column"),
        ("married < 'yes'", "no order"),
        ("married = 'yess'", 'did you mean "yes"'),
        ("income = wage + married", "levels"),
        ("born >= 1985", "compares a date"),
        ("born = wage", "compares a date"),
        ("born >= '1985-13-45'", "no date"),
        ("age = 'x'", "neither a number"),
        ("age - age = 0", "says nothing of a variable"),
        ("3 = 3", "says nothing of a variable"),
        ("age < 1e999", "too large"),
        ("person = 'a'", "identifier"),
        ("(" * 100 + "age = 3" + ")" * 100, "nested"),
        ("not " * 100 + "age = 3", "nested"),
        ("age = 3 or " * 400 + "age = 3", f"{LONGEST_CONDITION:,}"),
    ],
)
def test_what_is_no_rule_is_refused_at_its_place(text: object, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_constraints({"mine": text}, SCHEMA)
    assert refused.value.place == "constraints.mine"
    assert says in refused.value.message


def test_a_misspelt_level_is_refused_where_only_the_data_say_what_levels_there_are() -> None:
    schema = Schema(tuple(replace(v, levels=()) if v.name == "partner" else v for v in SCHEMA))
    schema = replace(schema, constraints=read_constraints({"c": "partner = 'yess' -> age >= 15"}, schema))
    with pytest.raises(BadInput, match=r'constraints\.c: "partner" has no level "yess"; did you mean "yes"'):
        check_constraint_levels(table(schema), schema)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"holds": "age > 1", "sourc": "data"}, "constraints.c.sourc"),
        ({"holds": "age > 1", "source": "me"}, "constraints.c.source"),
        ({"source": "data"}, "constraints.c"),
    ],
)
def test_a_table_of_a_rule_is_checked(value: object, place: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_constraints({"c": value}, SCHEMA)
    assert refused.value.place == place


def test_a_rule_is_written_as_it_was_read() -> None:
    table = {"a": "age >= 1", "b": {"holds": "born <= wed", "source": "data"}}
    assert {one.name: one.to_value() for one in read_constraints(table, SCHEMA)} == table


# truth by brute force: a record with missing values keeps to a rule for certain where every completion does

CELLS: Mapping[str, tuple[str, ...]] = {"a": ("x", "y"), "b": ("x", "y", "z")}
NUMBERS = {"u": (0, 1, 2), "v": (0, 1)}
SMALL = Schema(
    (
        *(Variable(name, Kind.CATEGORICAL, levels=levels) for name, levels in CELLS.items()),
        *(Variable(name, Kind.COUNT) for name in NUMBERS),
    )
)
Record = tuple[str | None, str | None, int | None, int | None]
ATOMS: dict[str, Callable[[Record], bool | None]] = {
    "a = 'x'": lambda r: None if r[0] is None else r[0] == "x",
    "b != 'z'": lambda r: None if r[1] is None else r[1] != "z",
    "a = b": lambda r: None if None in r[:2] else r[0] == r[1],
    "u >= 1": lambda r: None if r[2] is None else r[2] >= 1,
    "u = 2 * v": lambda r: None if r[2] is None or r[3] is None else r[2] == 2 * r[3],
    "v is missing": lambda r: r[3] is None,
}


def kleene_and(one: bool | None, other: bool | None) -> bool | None:
    return False if False in (one, other) else None if None in (one, other) else True


def kleene_not(one: bool | None) -> bool | None:
    return None if one is None else not one


@st.composite
def rules(draw: st.DrawFn) -> tuple[str, Callable[[Record], bool | None]]:
    """A rule as text, and what it means, written anew."""
    if draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from(list(ATOMS.items())))
    (left, means_left), (right, means_right) = draw(rules()), draw(rules())
    form = draw(st.sampled_from(["and", "or", "->", "not"]))
    if form == "not":
        return f"not ({left})", lambda r: kleene_not(means_left(r))
    if form == "and":
        return f"({left}) and ({right})", lambda r: kleene_and(means_left(r), means_right(r))
    if form == "or":
        return f"({left}) or ({right})", lambda r: kleene_not(
            kleene_and(kleene_not(means_left(r)), kleene_not(means_right(r)))
        )
    return f"({left}) -> ({right})", lambda r: kleene_not(kleene_and(means_left(r), kleene_not(means_right(r))))


RECORDS: list[Record] = list(
    itertools.product((*CELLS["a"], None), (*CELLS["b"], None), (*NUMBERS["u"], None), (*NUMBERS["v"], None))
)


@cache
def every_record() -> PossibleValues:
    return PossibleValues(
        conform_to_schema(pd.DataFrame(RECORDS, columns=SMALL.names), SMALL, MissingPolicy.KEEP), SMALL
    )


def holds_on_every_record(text: str, means: Callable[[Record], bool | None]) -> None:
    try:
        (constraint,) = read_constraints({"c": text}, SMALL)
    except BadInput as refused:
        assert "nested" in refused.message or "letters" in refused.message  # noqa: PT017
        return
    found = evaluate_rule(constraint.rule, every_record())
    expected = [means(record) for record in RECORDS]
    assert found.holds.tolist() == [one is True for one in expected]
    assert found.violated.tolist() == [one is False for one in expected]


@pytest.mark.slow
@given(rules())
@settings(max_examples=12)
def test_truth_is_kleenes_on_every_record_there_can_be(rule: tuple[str, Callable[[Record], bool | None]]) -> None:
    holds_on_every_record(*rule)


@pytest.mark.study
@given(rules())
def test_truth_of_many_more_rules_is_kleenes(rule: tuple[str, Callable[[Record], bool | None]]) -> None:
    holds_on_every_record(*rule)


def test_order_of_rows_and_spelling_of_numbers_change_nothing() -> None:
    schema = replace(SCHEMA, constraints=read_constraints({"t": "income = wage + rent", "m": "age >= 15"}, SCHEMA))
    data = table(schema)
    turned = Microdata(schema, data.frame.iloc[::-1].reset_index(drop=True))
    spelt = conform_to_schema(pd.DataFrame(ROWS, columns=schema.names).astype({"wage": str, "age": str}).replace({"wage": {"nan": None}, "age": {"nan": None}}), schema, MissingPolicy.KEEP)  # fmt: skip
    assert count_compliance(data, schema) == count_compliance(turned, schema) == count_compliance(spelt, schema)
    assert [(one.broken, one.unknown, one.records) for one in count_compliance(data, schema)] == [(1, 1, 4), (2, 1, 4)]


# generalised values: what a label may stand for


def generalised(labels: Mapping[str, list[str]], kinds: Mapping[str, Variable]) -> PossibleValues:
    before = Schema(tuple(kinds.values()))
    after = Schema(tuple(Variable(name, Kind.CATEGORICAL) for name in labels))
    frame = pd.DataFrame({name: pd.Categorical(own) for name, own in labels.items()})
    return PossibleValues(Microdata(after, frame, "anonymised", generalised=frozenset(labels)), before)


LABELS = {
    "age": ["15-29", "[0, 15)", "*", "[30, 80]", "(9, 29]"],
    "region": ["north", "{south, west}", "*", "{north, south}", "west"],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age >= 15", "TF?T?"),
        ("age < 30", "TT?FT"),
        ("age > 29", "FF?TF"),
        ("age != 50", "TT??T"),
        ("region = 'north'", "TF??F"),
        ("region = north | south -> age < 90", "TT?TT"),
    ],
)
def test_a_comparison_of_labels_is_known_where_it_is_for_all_that_they_may_stand_for(text: str, expected: str) -> None:
    kinds = {
        "age": Variable("age", Kind.COUNT),
        "region": Variable("region", Kind.CATEGORICAL, levels=("north", "south", "west")),
    }
    (constraint,) = read_constraints({"c": text}, Schema(tuple(kinds.values())))
    found = evaluate_rule(constraint.rule, generalised(LABELS, kinds))
    assert (
        "".join("T" if yes else "F" if no else "?" for yes, no in zip(found.holds, found.violated, strict=True))
        == expected
    )


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=8),
    st.sampled_from(["u <= v", "u + v <= 7", "u = v", "2 * u != v", "u >= 3 -> v >= 2"]),
)  # fmt: skip
def test_what_intervals_say_is_true_of_every_value_in_them(ends: list[tuple[int, int, int, int]], text: str) -> None:
    kinds = {name: Variable(name, Kind.COUNT) for name in "uv"}
    schema = Schema(tuple(kinds.values()))
    (constraint,) = read_constraints({"c": text}, schema)
    labels = {
        "u": [f"[{low}, {low + width}]" for low, width, _, _ in ends],
        "v": [f"[{low}, {low + width + 1})" for _, _, low, width in ends],
    }
    found = evaluate_rule(constraint.rule, generalised(labels, kinds))
    for i, (u, u_width, v, v_width) in enumerate(ends):
        inside = list(itertools.product(range(u, u + u_width + 1), range(v, v + v_width + 1)))
        exact = evaluate_rule(
            constraint.rule, PossibleValues(conform_to_schema(pd.DataFrame(inside, columns=["u", "v"]), schema), schema)
        )
        assert not found.holds[i] or exact.holds.all()
        assert not found.violated[i] or exact.violated.all()
        if u_width == v_width == 0:
            assert found.holds[i] == exact.holds[0]
            assert found.violated[i] == exact.violated[0]


def test_a_condition_is_read_the_same_whatever_stands_between_its_words() -> None:
    plain = parse_condition("income = wage + 2 * rent and not (age<15)")
    assert plain == parse_condition("  income=wage + 2 * rent   and not(age<15 )")


def test_sums_of_decimal_fractions_are_compared_up_to_rounding_and_no_more() -> None:
    schema = Schema(tuple(Variable(name, Kind.CONTINUOUS) for name in "abc"))
    (constraint,) = read_constraints({"c": "a = b + c"}, schema)
    rng = np.random.default_rng(1)
    b, c = np.round(rng.normal(0, 1e4, 2000), 2), np.round(rng.normal(0, 1e4, 2000), 2)
    near = pd.DataFrame({"a": np.round(b + c, 2), "b": b, "c": c})
    assert evaluate_rule(constraint.rule, PossibleValues(conform_to_schema(near, schema), schema)).holds.all()
    off = near.assign(a=near["a"] + 0.01)
    assert evaluate_rule(constraint.rule, PossibleValues(conform_to_schema(off, schema), schema)).violated.all()
