"""The dial in words: what is known and how surely, whom that finds against which limit, and what to coarsen first."""

from dataclasses import replace

import pytest

from sfumato.engine.matching.radius import Radius
from sfumato.engine.methods.rows import Row
from sfumato.engine.studies._knowledge_counts import KnowledgeCounts
from sfumato.engine.wording import RecordCount
from sfumato.workspace.reporting.intruder_dial import (
    DialLimits,
    DialNumbers,
    DialVariable,
    IntruderDial,
)
from sfumato.workspace.reporting.words import row_value_text

SEX, AGE, PAY = (
    DialVariable("sex", True),
    DialVariable("age", True, (0.0, 1.0, 2.0)),
    DialVariable("pay", False, (0.0,), "5%"),
)
COUNTS = KnowledgeCounts(
    expected=(1, 2, 40, 60, 5, 6, 70, 80), certain=(0, 0, 20, 44, 0, 0, 30, 50), few=(0, 4, 88, 90, 0, 4, 88, 90)
)
LESS = KnowledgeCounts(
    expected=(1, 2, 20, 30, 5, 6, 40, 50), certain=(0, 0, 1, 2, 0, 0, 3, 4), few=(0, 4, 8, 9, 0, 4, 8, 9)
)

LIMITS = DialLimits(certain=10.0)


def make_dial(limits=LIMITS, counts=COUNTS, **numbers):
    given = {"others": (), "number": 200, "noun": "people", "reason": "", **numbers}
    return IntruderDial.from_numbers(DialNumbers(3, (SEX, AGE, PAY), limits=limits, counts=counts, **given))


def test_it_begins_with_what_the_plan_says_that_he_knows():
    dial = make_dial()
    assert dial.known == {"sex", "age"}
    assert dial.knowledge_text() == "sex and age"
    assert dial.sentences() == [
        "The intruder knows sex and age.",
        "Found for certain, one match: 44 of 200 people (22 %); the plan allows at most 10 people (5 %).",
        "Found on average, with luck: 60 of 200 people (30 %).",
        "Can be found, small group: 90 of 200 people (45 %).",
        "For this intruder change age first: without it no people are found for certain.",
    ]


def test_a_variable_is_turned_and_turned_back():
    dial = make_dial()
    more = dial.toggle_variable("pay")
    assert more.knowledge_text() == "sex, age and pay ± 5 %"
    assert [line.value for line in more.lines()] == [50, 80, 90]
    assert more.toggle_variable("pay") == dial


def test_less_certainty_is_counted_where_the_numbers_are_there():
    dial = make_dial().shift_reach("age", 1)
    assert dial.wanted_reaches == (("age", 1.0),)
    assert dial.lines() == []
    assert dial.coarsen_text() == ""
    assert dial.missing_reaches("age") == [(("age", 1.0),), (("age", 2.0),)]
    told = IntruderDial(dial.numbers, dial.known, dial.reaches, {(("age", 1.0),): LESS})
    assert [line.value for line in told.lines()] == [2, 30, 9]
    assert told.toggle_variable("age").wanted_reaches == (), "how surely something is known that is not known"
    assert told.shift_reach("age", -1) == IntruderDial(dial.numbers, dial.known, {}, told.unsure)
    assert told.shift_reach("age", -1).shift_reach("age", -1).reaches == {}
    assert told.shift_reach("age", 1).shift_reach("age", 1).reaches == {"age": 2.0}


@pytest.mark.parametrize(
    ("limits", "name", "allowed"),
    [
        (DialLimits(certain=50.0, few=0.0, smallest_group=11), "few", "the policy allows none"),
        (DialLimits(certain=50.0, expected=59.0), "expected", "the plan allows at most 59 people (29.5 %)"),
        (DialLimits(certain=50.0), "certain", "the plan allows at most 50 people (25 %)"),
        (DialLimits(), "certain", ""),
    ],
)
def test_the_number_that_is_above_its_limit_decides(limits, name, allowed):
    line = make_dial(limits).main_line
    assert (line.name, line.limit_text) == (name, allowed)
    assert line.is_above == (name != "certain")


def test_groups_are_named_by_the_size_below_which_they_are_small():
    titles = [line.title for line in make_dial(DialLimits(few=0.0, smallest_group=11)).lines()]
    assert titles[-1] == "can be found, group under 11"


def test_one_person_is_found_and_where_no_variable_helps_it_says_so():
    one = KnowledgeCounts((1,) * 8, (0, 0, 1, 2, 0, 0, 1, 2), ())
    assert (
        make_dial(counts=one).coarsen_text()
        == "For this intruder change age first: without it no people are found for certain."
    )
    left = KnowledgeCounts((1,) * 8, (0, 1, 1, 2, 0, 1, 1, 2), ())
    assert (
        make_dial(counts=left).coarsen_text()
        == "For this intruder change sex first: without it at most 1 person is found for certain."
    )
    same = KnowledgeCounts((1,) * 8, (2,) * 8, ())
    assert make_dial(counts=same).coarsen_text() == "No single variable lowers this number: coarsen two of them."


def test_what_cannot_be_counted_says_why():
    dial = make_dial(counts=None, reason="the release is shuffled")
    assert dial.sentences() == ["Not counted: the release is shuffled."]
    assert dial.to_table()["found"] == {}


def test_as_a_table_it_has_all_numbers_with_their_limits():
    found = make_dial().to_table()
    assert found["known"] == ["sex", "age"]
    assert found["found"] == {"certain": 44, "expected": 60, "few": 90}
    assert found["limits"]["certain"] == 10.0
    assert found["coarsen_first"] == {"variable": "age", "then": 0}


def test_a_drawn_number_has_the_window_that_finds_most_and_says_where_ignoring_it_is_as_good():
    drawn = DialVariable("pay", False, (0.0, 2.0), "5%", windows=2)
    windows = ((("pay", Radius(1.0)),), (("pay", Radius.parse("5%")),))
    best = KnowledgeCounts(
        (1, 2, 40, 60, 5, 6, 70, 80), (0, 0, 20, 44, 0, 0, 30, 50), (), windows, (0,) * 8, (0,) * 7 + (1,)
    )
    numbers = DialNumbers(3, (SEX, AGE, drawn), (), 200, "people", LIMITS, COUNTS)
    asked = IntruderDial.from_numbers(numbers).toggle_variable("pay")
    assert asked.variable_text(drawn) == "pay", "one unit: the plan's match is no uncertainty"
    assert asked.window_text(drawn) == "pay is drawn: matched within 5 % as the plan says."
    wider = asked.shift_reach("pay", 1)
    assert wider.wanted_reaches == (("pay", 2.0),), "more is never less"
    assert wider.variable_text(drawn) == "pay ± 2"
    assert wider.shift_reach("pay", 1) == wider, "the widest"
    assert wider.shift_reach("pay", -1) == asked
    assert asked.shift_reach("pay", -1) == asked, "the narrowest"
    dial = asked.set_reach("pay", 0.0)
    assert dial.wanted_reaches == (("pay", 0.0),), "known surely, which is not as the plan says"
    assert dial.variable_text(drawn) == "pay"
    assert dial.window_text(drawn) == "", "not counted yet"
    counted = replace(dial, unsure={dial.wanted_reaches: best})
    assert counted.window_text(drawn) == "With pay known exactly he finds most at ± 5 %."
    assert "With pay known exactly he finds most at ± 5 %." in counted.sentences()
    assert counted.to_table()["best_windows"] == {"pay": "5%"}
    same = replace(best, certain=(0, 0, 20, 44, 0, 0, 30, 44))
    ignored = replace(dial, unsure={dial.wanted_reaches: same})
    assert ignored.window_text(drawn) == "With pay known exactly he finds as many without it."
    assert ignored.to_table()["best_windows"] == {"pay": None}
    assert asked.shift_reach("pay", 1).shift_reach("pay", -1).wanted_reaches == ()
    assert dial.shift_reach("pay", -1).knowledge_text() == "sex, age and pay"


def test_plain_text_says_of_what_the_release_has_only_artificial_values():
    drawn = DialVariable("pay", True, is_drawn=True)
    numbers = DialNumbers(3, (SEX, AGE, drawn), (), 200, "people", LIMITS, COUNTS)
    dial = IntruderDial.from_numbers(numbers)
    assert "Of pay the release has only artificial values." in dial.sentences()
    assert not any("artificial" in one for one in dial.toggle_variable("pay").sentences()), "he does not know it"


def test_windows_of_too_many_variables_are_not_counted_and_it_says_so():
    names = ("pay", "bonus", "rent")
    drawn = tuple(DialVariable(one, True, (0.0, 2.0), "5%", windows=5) for one in names)
    numbers = DialNumbers(3, drawn, (), 200, "people", LIMITS, COUNTS, most_windows=64)
    dial = IntruderDial.from_numbers(numbers).set_reach("pay", 0.0).set_reach("bonus", 2.0)
    assert dial.uncounted_reason == ""
    dial = dial.set_reach("rent", 0.0)
    why = "pay, bonus and rent have too many windows to try together; leave one of them as the plan says"
    assert dial.sentences()[1:] == [f"Not counted: {why}."]
    assert dial.to_table()["reason"] == why
    assert dial.toggle_variable("rent").uncounted_reason == ""


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (44.0, "44 of 200 people (22 %)"),
        (10.8, "10.8 of 200 people (5.4 %)"),
        (0.3, "0.3 of 200 people (0.15 %)"),
        (44.0 + 1e-12, "44 of 200 people (22 %)"),
    ],
)
def test_people_have_the_digits_of_the_table_of_numbers(value, said):
    assert make_dial(DialLimits()).people_text(value) == said
    row = Row("risk", "identification", "expected_match_risk", "", "synthetic", None, None, value, unit="records")
    assert row_value_text(row, RecordCount(200)) == said.replace(" people", "")


@pytest.mark.parametrize(
    ("limit", "value", "number", "share"),
    [
        (41.62, 18.0, "41 people", "20.81 %"),
        (41.62, 41.3, "41.62 people", "20.81 %"),
        (0.1 * 3 * 10, 0.0, "3 people", "1.5 %"),
        (1.9, 0.0, "1 person", "0.95 %"),
        (0.8, 0.5, "0.8 people", "0.4 %"),
    ],
)
def test_a_limit_in_people_is_a_whole_number_with_its_share(limit, value, number, share):
    counts = KnowledgeCounts((value,) * 8, (value,) * 8, ())
    people = f"at most {number} ({share})"
    assert make_dial(DialLimits(certain=limit), counts).main_line.limit_texts == (
        f"the plan allows {people}", f"plan: {people}", people, f"at most {number.split()[0]} ({share})",
    )  # fmt: skip


def test_a_limit_of_nobody_is_no_number():
    assert make_dial(DialLimits(certain=0.0)).main_line.limit_texts == ("the plan allows none", "none allowed")


def test_what_a_change_does_is_said_against_the_plan_s_intruder():
    dial = make_dial(DialLimits(certain=45.0))
    assert dial.change_text() == ""
    assert (
        dial.toggle_variable("pay").change_text()
        == "With pay ± 5 % he finds 50 people for certain, not 44, above the limit."
    )
    both = dial.toggle_variable("age").toggle_variable("pay")
    assert both.change_text().startswith("Without age and with pay ± 5 % he finds ")
    same = make_dial(LIMITS, KnowledgeCounts((44,) * 8, (44,) * 8, ())).toggle_variable("sex")
    assert same.change_text() == "Without sex he still finds 44 people for certain, above the limit."
