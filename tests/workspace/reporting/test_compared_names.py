"""Rows of two runs side by side have names of their own, however little room there is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.execution.comparison import ComparedNumber, ComparedVerdict
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.workspace.reporting.comparison import comparison_table, shortened_row_names, verdict_counts_text
from sfumato.workspace.reporting.tables import format_table

RISK = "risk.identification.true_match_rate"
SWEEP = "studies.intruder_uncertainty.expected_match_risk"
ROOMS = (30, 33, 44, 60, 90, 140)


def row(key=RISK, target="", level=None, **params):
    return ComparedNumber(key, target, params, level, "", "low", None, None)


def verdict(bound="max", limit=0.5, **params):
    own = Verdict(RISK, "", bound, limit, 0.1, "met", 0.4, "", None, params)
    return ComparedVerdict(RISK, "", None, bound, params, own, own)


CASES = {
    "radii": [row(radius={"income": "5%"}), row(radius={"income": "20%"})],
    "one radius of two": [row(radius={"income": "5%", "visits": 1}), row(radius={"income": "5%", "visits": 2})],
    "a radius and none": [row(radius={"income": "5%"}), row()],
    "what is known": [row(known=["age", "sex"]), row(known=["age", "sex", "region"])],
    "models of noise": [
        row(SWEEP, level=level, variable="visits", model=model)
        for model in ("log_normal", "log_normal_constant")
        for level in (0.0, 0.1, 0.15)
    ],
    "quantiles": [row("utility.summary.quantile", "household_expenditure", q=q) for q in (0.25, 0.5, 0.75)],
    "variables": [row("utility.ecdf.max_abs_difference", target) for target in ("income", "expenditure_on_food", "x")],
    "variables that begin alike": [
        row("utility.ecdf.max_abs_difference", f"expenditure_of_household_{end}") for end in ("food", "rent")
    ],
    "limits of one number": [verdict("max"), verdict("min")],
    "thresholds of two uses": [verdict(radius={"income": "5%"}), verdict(radius={"income": "9%"})],
}


@pytest.mark.parametrize("rows", CASES.values(), ids=CASES)
@pytest.mark.parametrize("room", ROOMS)
def test_no_two_rows_have_one_name(rows, room):
    names = shortened_row_names(room, rows, {})
    assert len(set(names)) == len(rows)
    assert max(map(len, names)) <= room


def test_rows_that_need_no_more_have_their_human_names_alone():
    rows = [row(radius={"income": "5%"}), row("utility.ecdf.max_abs_difference", "income")]
    assert shortened_row_names(60, rows, {}) == [
        "People found for certain",
        "Largest gap between distributions (income)",
    ]
    assert shortened_row_names(25, rows, {}) == ["People found for certain", "Largest gap bet… (income)"]


def test_a_shortened_name_says_what_another_that_begins_alike_does_not():
    rows = [row("quality.nmi_v1.minimum_nmi"), row("quality.nmi_v2.minimum_nmi")]
    assert shortened_row_names(25, rows, {}) == ["Least inf…original values", "Least inf…released values"]


def test_only_what_differs_is_said():
    rows = [
        row(radius={"income": "5%", "visits": 1}, known=["a"]),
        row(radius={"income": "20%", "visits": 1}, known=["a"]),
    ]
    assert shortened_row_names(90, rows, {}) == [
        "People found for certain (income within 5%)",
        "People found for certain (income within 20%)",
    ]


def test_the_same_number_twice_has_one_name():
    """The negative control: where nothing differs nothing is made up."""
    assert len(set(shortened_row_names(60, [row(q=0.5), row(q=0.5)], {}))) == 1


SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "q": st.sampled_from([0.25, 0.5]),
        "model": st.sampled_from(["logit", "cart"]),
        "radius": st.dictionaries(st.sampled_from(["income", "age"]), st.sampled_from(["5%", "1"]), min_size=1),
        "known": st.lists(st.sampled_from(["age", "sex"]), min_size=1, max_size=2, unique=True),
    },
)


@given(
    st.lists(
        st.tuples(st.sampled_from(["", "income", "visits"]), st.sampled_from([None, 0.0, 0.1]), SETTINGS),
        min_size=2, max_size=8, unique_by=repr,
    )
)  # fmt: skip
def test_series_that_differ_have_names_that_differ(found):
    rows = [row(RISK, target, level, **settings) for target, level, settings in found]
    names = shortened_row_names(140, rows, {})
    assert len(set(names)) == len(rows)


def test_what_tells_a_row_from_others_stands_beside_why_it_has_no_interval():
    rows = [replace(row(SWEEP, of=of), reason="it has no interval") for of in ("emr", "tmr")]
    shown = format_table(comparison_table("Studies", rows, (1, 2)))
    assert "of emr; it has no interval" in shown
    assert "of tmr; it has no interval" in shown


def test_verdicts_are_tallied_by_whether_the_runs_agree():
    same = verdict()
    other = replace(same, second=replace(same.second, outcome="not met"))
    alone = replace(same, first=None)
    assert verdict_counts_text([same]) == "1 threshold: 1 has the same verdict in both runs"
    told = verdict_counts_text([same, same, other, alone])
    assert told == "4 thresholds: 2 have the same verdict in both runs, 1 has another in each, 1 is of one run only"
    assert verdict_counts_text([]) == "Neither run has thresholds"
