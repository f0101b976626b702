"""An attack in words: what is done, when it succeeds, with whom, and whether chance explains it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import RecordCount
from sfumato.workspace.reporting.explanation import (
    ExplainedNumber,
    definition_facts,
    describe_measure,
    explanation_facts,
    name_of_counted,
    settings_facts,
)


def part(measure: str, value: float, ends: tuple[float, float] | None = None, unit: str = "share") -> Row:
    lower, upper = ends or (None, None)
    baseline = 0.0 if measure.endswith("_risk") else None
    return Row(
        "risk", "linkability", measure, "", "synthetic", None, None, value, lower, upper, baseline=baseline, unit=unit
    )


def words(row: Row, *others: Row) -> str:
    parts = {one.measure: one for one in (row, *others)}
    facts = dict(explanation_facts(ExplainedNumber(row, n_records=1000, parts=parts)))
    return f"{facts['in words']} {facts['here']}"


def test_an_attack_says_what_is_done_when_it_succeeds_and_with_whom() -> None:
    told = words(
        part("excess_risk", 0.02, (0.01, 0.03), ""),
        part("attack_success", 0.05),
        part("control_success", 0.03),
        part("guesses", 500, unit="guesses"),
    )
    for said in (
        "An intruder has two lists of the same people",
        "He succeeds with a person whose two entries lead to the same record.",
        "Outsiders are people outside the data, of whom no release was made.",
        "reaches 2 %.",
        "Of 500 people in the data he is right about 25 (5 %). Of as many outsiders he is right about 15 (3 %).",
        "This is more than chance explains: the whole interval lies above 0 %.",
    ):
        assert said in told


@pytest.mark.parametrize(
    ("measure", "own", "others"),
    [
        ("added_risk", "attack_success", "control_success"),
        ("largest_added_risk", "best_attack_with_release", "best_control_with_release"),
    ],
)
def test_what_a_release_adds_says_its_four_success_rates_in_people(measure: str, own: str, others: str) -> None:
    parts = (
        part(own, 0.05),
        part("attack_without_release", 0.04),
        part("baseline_success", 0.5),  # a naive guess, which is another number
        part(others, 0.03),
        part("control_without_release", 0.036),
        part("guesses", 500, unit="guesses"),
    )
    told = words(part(measure, 0.0165, (0.01, 0.03), ""), *parts)
    assert "Without the release he looks up the record of an outsider that is nearest to each entry." in told
    assert (
        "Of 500 people in the data he is right about 25 (5 %) with the release and 20 (4 %) without it, 5 more." in told
    )
    assert (
        "Of as many outsiders he is right about 15 (3 %) with the release and 18 (3.6 %) without it, 3 fewer." in told
    )
    without_one = [one for one in parts if one.measure != "control_without_release"]
    assert "Of 500 people" not in words(part(measure, 0.0165, (0.01, 0.03), ""), *without_one)
    # why a loss about outsiders raises what is due to being in the data
    assert "the difference alone comes from being in it" in told
    assert "the difference alone" not in words(part("excess_risk", 0.02, (-0.01, 0.03), ""))


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((-0.01, 0.02), "Chance alone explains it; the true value is at most 2 % (95 % interval)."),
        ((-0.6, 0.77), "Too few guesses to tell: the true value may be as high as 77 %."),
        ((-0.03, -0.01), "No more is found about people in the data than about outsiders."),
        (None, "reaches -0.0012 %."),
    ],
)
def test_an_interval_of_a_difference_is_told_in_words(ends: tuple[float, float] | None, said: str) -> None:
    assert words(part("excess_risk", -0.000012, ends, "")).endswith(f"{said} No limit is set for it.")


def test_people_are_counted_in_every_part_of_an_explanation() -> None:
    rows = [
        Row("risk", "identification", "true_match_rate", "", "synthetic", draw, None, 0.01, 0.005, 0.02, unit="share")
        for draw in (None, 1, 2)
    ]
    facts = dict(explanation_facts(ExplainedNumber(rows[0], rows, n_records=1000)))
    assert facts["how sure"] == "95 % interval 5 .. 20, over the released datasets; 10 in each of the 2 datasets"


def test_the_definition_stands_before_what_is_folded_and_settings_are_in_words() -> None:
    meaning = describe_measure("risk.identification.true_match_rate")
    params = {"known": ["age"], "synthesised": ["sex", "age"], "radius": {"pay": "5%"}}
    row = Row("risk", "identification", "true_match_rate", "", "synthetic", None, None, 0.1, None, None, params=params)
    settings = settings_facts(row, {"coverage": 1}, {"age": "years of age"})
    facts = definition_facts(meaning, "", None, settings, [("related numbers", "by unit: 3")])
    names = [name for name, _ in facts]
    assert (
        names.index("definition") < names.index("in the field") < names.index("related numbers") < names.index("source")
    )
    found = dict(facts)
    assert found["in the field"] == "true match rate (TMR), re-identification with certainty"
    assert found["what he knows"] == "age: years of age; sex"
    assert dict(explanation_facts(ExplainedNumber(row)))["intruder knows"] == "age, sex"
    # who guesses values matches by the known variables alone
    guessing = replace(row, family="studies", method="intruder_uncertainty", measure="attribute_risk")
    assert dict(explanation_facts(ExplainedNumber(guessing)))["intruder knows"] == "age"
    assert dict(settings_facts(guessing, {}))["what he knows"] == "age"
    assert found["match within"] == "pay 5%"
    assert found["left at default"] == "share in his file 1"


def test_a_number_of_all_datasets_together_is_no_average() -> None:
    rows = [
        Row("risk", "membership_inference", "auc", "", "synthetic", draw, None, value, 0.4, 0.6, unit="share")
        for draw, value in ((None, 0.5), (1, 0.54), (2, 0.55))
    ]
    facts = dict(explanation_facts(ExplainedNumber(rows[0], rows, n_records=1000)))
    assert facts["how sure"] == (
        "95 % interval 40 .. 60 %, from all released datasets together; from single datasets alone: 54 %, 55 %"
    )


@pytest.mark.parametrize(("own", "is_said"), [(0.015, True), (0.2, False)])
def test_an_attack_that_cannot_tell_the_release_from_the_data_says_so(own: float, is_said: bool) -> None:
    row = part("excess_risk", 0.0, (-0.01, 0.02), "")
    unprotected = replace(row, dataset="confidential", value=own, draw=None)
    told = dict(explanation_facts(ExplainedNumber(row, [row, unprotected])))["here"]
    assert ("does not show that the release protects" in told) is is_said


def test_units_have_their_noun_where_it_is_known() -> None:
    row = Row(
        "risk", "identification", "true_match_rate", "", "synthetic", None, None, 0.01, None, None,
        unit="share", params={"by": "unit"},
    )  # fmt: skip
    people = RecordCount(16_000, "person-years", RecordCount(4_000, "people"))
    assert dict(explanation_facts(ExplainedNumber(row, [row], n_records=people)))["in words"] == (
        "For 40 of 4,000 people (1 %), exactly one released person matches what the intruder knows, and it is theirs."
    )


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (
            (4.5, 5.5),
            ". The value of the data is in the interval of the release, 4.5 .. 5.5, so that the luck of drawing values may "
            "explain it",
        ),
        (
            (4.9, 5.1),
            ". The value of the data is outside the interval of the release, 4.9 .. 5.1, so that the models shift it, not the "
            "luck of drawing values",
        ),
        (
            (4.7501, 5.1),
            ". The value of the data is at the very end of the interval of the release, 4.75 .. 5.1: it is open whether "
            "the luck of drawing values explains it",
        ),
        ((None, None), ""),
    ],
)
def test_a_statistic_says_how_far_it_is_from_that_of_the_data(
    ends: tuple[float | None, float | None], said: str
) -> None:
    row = Row("utility", "summary", "mean", "pay", "synthetic", None, None, 5.0, *ends, baseline=4.75)
    own = replace(row, dataset="confidential", value=4.75)
    here = dict(explanation_facts(ExplainedNumber(row, [row, own])))["here"]
    assert here == f"The release has 5, the data have 4.75: 0.25 more (5.26 % of it){said}."


def test_the_difference_of_two_shares_is_that_of_the_shown_ones() -> None:
    row = Row("utility", "summary", "share", "sex", "synthetic", None, None, 0.07884, 0.07, 0.08, 0.07766, unit="share")
    own = replace(row, dataset="confidential", value=0.07766)
    here = dict(explanation_facts(ExplainedNumber(row, [row, own])))["here"]
    assert here.startswith("The release has 7.88 %, the data have 7.77 %: 0.11 points more. ")
    near = replace(own, value=0.07884001)
    told = dict(explanation_facts(ExplainedNumber(replace(row, baseline=near.value), [row, near])))["here"]
    assert told.startswith("The release and the data both have 7.88 %, to the digits shown. ")


@pytest.mark.parametrize(
    ("released", "said"),
    [(0.51, "this difference is smaller and hardly matters"), (0.54, "this difference is larger and may matter")],
)
def test_a_share_says_which_difference_matters(released: float, said: str) -> None:
    # two samples of 10,000 of a share of a half differ by 1.96 sqrt(2 / 10,000) / 2 = 1.39 points in 19 of 20 cases
    row = Row("utility", "summary", "share", "sex", "synthetic", None, None, released, None, None, 0.5, unit="share")
    own = replace(row, dataset="confidential", value=0.5)
    facts = dict(explanation_facts(ExplainedNumber(row, [row, own], n_records=10_000)))
    chance = "By chance alone another sample as large as the data would be up to about 1.39 points away (95 %); "
    assert f"{chance}{said}" in facts["here"]
    assert facts["bad is"] == "more than about 1.39 points away from 50 %: users may then conclude something else"


def test_a_mean_says_which_difference_matters_where_its_spread_is_known() -> None:
    row = Row("utility", "summary", "mean", "pay", "synthetic", None, None, 5.0, None, None, baseline=4.75)
    own = replace(row, dataset="confidential", value=4.75)
    found = ExplainedNumber(row, [row, own], n_records=800, spread=10.0)
    # 1.96 * sqrt(2 / 800) * 10
    assert "up to about 0.98 away (95 %); this difference is smaller" in dict(explanation_facts(found))["here"]
    unknown = dict(explanation_facts(replace(found, spread=None)))
    assert "another sample" not in unknown["here"]
    assert unknown["bad is"].endswith("“Difference as a multiple of chance (S-pMSE)” has a yardstick")


@pytest.mark.parametrize(
    ("value", "ends", "here", "bad"),
    [
        (
            4.7,
            (4.0, 5.5),
            "between 4 and 5.5 (95 %); the release does too: this hardly matters.",
            "below 4 or above 5.5",
        ),
        (5.7, (4.0, 5.5), "between 4 and 5.5 (95 %); the release has not: this may matter.", "below 4 or above 5.5"),
        (
            4.9,
            (4.0, 6.0),
            "up to about 1 away (95 %); this difference is smaller and hardly matters.",
            "more than about 1",
        ),
        (4.9, (5.0, 5.0), "have 5 too (95 %); this difference is larger and may matter.", "another value than 5"),
    ],
)
def test_a_quantile_says_between_what_another_sample_has_it(
    value: float, ends: tuple[float, float], here: str, bad: str
) -> None:
    row = Row(
        "utility", "summary", "quantile", "pay", "synthetic", None, None, value, None, None, 5.0, params={"q": 0.5}
    )
    own = replace(row, dataset="confidential", value=5.0)
    facts = dict(explanation_facts(ExplainedNumber(row, [row, own], n_records=900, resampled=ends)))
    assert facts["here"].endswith(here)
    assert facts["bad is"].startswith(bad)
    assert facts["in words"].startswith("50 % of the records have ")
    elsewhere = ExplainedNumber(row, [row, own], n_records=900, resampled=(7.0, 8.0))
    assert "another sample" not in dict(explanation_facts(elsewhere))["here"], "the data were recoded before"


def test_a_difference_that_hardly_matters_does_not_say_what_makes_it() -> None:
    row = Row("utility", "summary", "mean", "pay", "synthetic", None, None, 5.0, 4.9, 5.1, baseline=4.75)
    own = replace(row, dataset="confidential", value=4.75)
    found = ExplainedNumber(row, [row, own], n_records=800, spread=10.0)
    assert "the models shift it" not in dict(explanation_facts(found))["here"]
    assert "the models shift it" in dict(explanation_facts(replace(found, spread=1.0)))["here"]


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        ("mean", "pay is a logarithm: the typical amount behind it (geometric mean) is 1.01 % higher than in the data"),
        ("quantile", "pay is a logarithm: the amount behind it is 1.01 % higher than in the data"),
        ("share_of_zeros", None),
    ],
)
def test_a_statistic_of_a_logarithm_is_told_in_per_cent(measure: str, said: str | None) -> None:
    row = Row("utility", "summary", measure, "pay", "synthetic", None, None, 5.01, None, None, baseline=5.0)
    own = replace(row, dataset="confidential", value=5.0)
    found = ExplainedNumber(row, [row, own], logarithm="log of the pay")
    assert dict(explanation_facts(found)).get("in per cent") == said
    assert "in per cent" not in dict(explanation_facts(replace(found, logarithm="")))


@pytest.mark.parametrize(
    ("term", "said"),
    [
        (
            "log1p(size)",
            "with 10 % more size, the odds of vote are 1.92 % higher in the release, and 0.95 % lower in the data",
        ),
        ("age", "with 1 more of age, the odds of vote are 22.14 % higher in the release, and 9.52 % lower in the data"),
        ("intercept", None),
        ("age:sex", None),
    ],
)
def test_a_coefficient_of_a_logit_is_told_in_per_cent(term: str, said: str | None) -> None:
    params = {"estimand": "coefficient", "model": "logit: vote ~ age + log1p(size)", "term": term}
    row = Row(
        "utility", "interval_overlap", "estimate", "vote", "synthetic", None, None, 0.2, None, None, -0.1, params=params
    )
    own = replace(row, dataset="confidential", value=-0.1)
    assert dict(explanation_facts(ExplainedNumber(row, [row, own]))).get("in per cent") == said
    linear = replace(row, params={**params, "model": "linear: vote ~ age"})
    assert "in per cent" not in dict(explanation_facts(ExplainedNumber(linear, [linear, own])))


def test_a_guess_without_a_yardstick_stands_beside_what_other_records_disclose() -> None:
    row = Row("studies", "intruder_uncertainty", "attribute_risk", "", "synthetic", None, 0.1, 80.0, unit="records")
    other = Row("risk", "attribute", "risk_excluding_self", "", "confidential", None, None, 100.0, unit="records")
    said = dict(explanation_facts(ExplainedNumber(row, [row], n_records=1000, others_reveal=other)))["here"]
    assert said.startswith(
        "For comparison: other records alone disclose 100 of 1,000 (10 %) to an intruder who uses all"
    )
    alone = replace(row, family="risk", method="attribute", measure="largest_risk", target="pay", level=None)
    told = dict(explanation_facts(ExplainedNumber(alone, [alone], n_records=1000)))["here"]
    assert told.startswith(
        "How many of these guesses other records alone make right was not measured for pay by itself."
    )


def test_what_is_guessed_is_apart_from_what_is_known() -> None:
    params = {"known": ["age"], "sensitive": ["pay"], "radius": {"age": "2", "pay": "10%", "size": "1"}}
    row = Row("studies", "intruder_uncertainty", "attribute_risk", "", "synthetic", None, 0.1, 80.0, params=params)
    told = dict(settings_facts(row, {}))
    assert told["match within"] == "age 2"
    assert told["guess within"] == "pay 10%"
    assert told["others within"] == "size 1"


def test_words_of_records_and_units_are_those_of_the_run() -> None:
    people = RecordCount(16_000, "person-years", RecordCount(4_000, "people"))
    row = Row("risk", "membership_inference", "auc", "", "synthetic", None, None, 0.5, 0.4, 0.6, unit="share",
              reason="250 units in the data and 254 outside it are compared", params={"of": "units"})  # fmt: skip
    sure = dict(explanation_facts(ExplainedNumber(row, [row], n_records=people)))["how sure"]
    assert "250 people in the data and 254 outside it are compared; shares of the two are compared" in sure
    meaning = "chance that a record of the data is found, of all records; of units as wholes"
    assert name_of_counted(meaning, row, people) == (
        "chance that a person of the data is found, of all people; of people as wholes"
    )
    assert "of all person-years" in name_of_counted(meaning, replace(row, params={}), people)
    same = replace(row, reason="250 records in the data and 250 outside it are compared")
    assert "need not be equal" not in dict(explanation_facts(ExplainedNumber(same, [same])))["how sure"]


def test_a_study_says_how_unsure_the_intruder_is() -> None:
    row = Row(
        "studies", "intruder_uncertainty", "true_match_rate", "", "synthetic", None, 0.0, 0.1, None, None,
        unit="share", params={"variable": "pay"},
    )  # fmt: skip
    for level, said in (
        (0.0, "0: he knows pay exactly; the other levels of the study stand at the end"),
        (0.05, "0.05 in what he knows of pay; 0 is exact"),
    ):
        facts = dict(explanation_facts(ExplainedNumber(replace(row, level=level))))
        assert facts["uncertainty"] == said


def test_a_level_of_uncertainty_has_an_example() -> None:
    row = Row(
        "studies", "intruder_uncertainty", "true_match_rate", "", "synthetic", None, 0.03, 0.1, None, None,
        unit="share", params={"variable": "pay", "model": "log_normal"},
    )  # fmt: skip
    said = dict(explanation_facts(ExplainedNumber(row)))["uncertainty"]
    # exp(1.96 * 0.03) is 1.06, and exp(1.96 * 0.3) 1.8
    assert "he mostly (95 %) believes of a true 1 between 0.94 and 1.06, and of 10 between 5.55 and 18" in said


@pytest.mark.parametrize(
    ("value", "ends", "said"),
    [
        (80, (70, 90), "fewer than"),
        (95, (85, 105), "about"),
        (150, (140, 160), "more than"),
        (100, (None, None), "about"),
    ],
)
def test_what_is_disclosed_stands_beside_what_other_records_disclose(
    value: float, ends: tuple[float | None, float | None], said: str
) -> None:
    row = Row("risk", "attribute", "risk", "", "synthetic", None, None, value, *ends, unit="records")
    other = replace(row, measure="risk_excluding_self", dataset="confidential", value=100.0, lower=None, upper=None)
    facts = dict(explanation_facts(ExplainedNumber(row, [row], n_records=1000, yardstick=other)))
    anyway = "the 100 of 1,000 (10 %) that other records disclose anyway"
    assert facts["here"] == f"{said[:1].upper()}{said[1:]} {anyway}. No limit is set for it."


def test_of_people_with_several_records_the_others_are_their_own_too() -> None:
    row = Row("risk", "attribute", "risk", "", "synthetic", None, None, 80.0, 70.0, 90.0, unit="records")
    other = replace(row, measure="risk_excluding_self", dataset="confidential", value=100.0)
    years = RecordCount(1000, "person-years", RecordCount(300, "people"))
    said = dict(explanation_facts(ExplainedNumber(row, [row], n_records=years, yardstick=other)))["here"]
    assert "that other records disclose anyway, a person's own others among them." in said


def test_a_risk_says_how_much_lower_it_is_than_without_protection() -> None:
    row = Row("risk", "identification", "true_match_rate", "", "synthetic", None, None, 0.01, None, None, unit="share")
    for own, said in (
        (0.4, "97.5 % lower than for the same data released unprotected"),
        (0.01, "Not lower than for the same data released unprotected"),
    ):
        facts = dict(explanation_facts(ExplainedNumber(row, [row, replace(row, dataset="confidential", value=own)])))
        assert facts["here"] == f"{said}. No limit is set for it."


@pytest.mark.parametrize(
    ("value", "ends", "said"),
    [
        (0.01, (0.005, 0.015), "Good: below 2 % (a fresh sample of the same size)."),
        (
            0.02,
            (0.015, 0.025),
            "Good: no different from 2 % (a fresh sample of the same size), as far as the interval can tell.",
        ),
        (0.05, (0.04, 0.06), "2.5 times 2 % (a fresh sample of the same size)."),
    ],
)
def test_a_gap_stands_beside_that_of_a_fresh_sample(value: float, ends: tuple[float, float], said: str) -> None:
    row = Row("utility", "ecdf", "max_abs_difference", "pay", "synthetic", None, None, value, *ends, baseline=0.02)
    assert dict(explanation_facts(ExplainedNumber(row, [row])))["here"] == f"{said} No limit is set for it."


def risk(value: float) -> Row:
    return Row(
        "risk", "identification", "true_match_rate", "", "synthetic", None, None, value, None, None, unit="share"
    )


def gap(value: float) -> Row:
    return Row(
        "utility", "ecdf", "max_abs_difference", "pay", "synthetic", None, None, value, None, None, baseline=0.02
    )


@pytest.mark.parametrize(
    ("row", "own", "said"),
    [
        (part("excess_risk", 0.02, (-0.01, 0.03)), None, "an interval that lies above 0 % as a whole: then people"),
        (risk(0.01), 0.4, "40 % or more: then the release protects no better than the data themselves"),
        (risk(0.4), 0.4, ""),
        (gap(0.01), None, "far above 2 % (a fresh sample of the same size)"),
        (Row("utility", "summary", "mean", "pay", "synthetic", None, None, 12.0, None, None), 10.0, "so far from 10 that users"),
        (Row("risk", "membership_inference", "auc", "", "synthetic", None, None, 0.5, 0.4, 0.6), None,
         "an interval that lies above 50 % as a whole"),
    ],
)  # fmt: skip
def test_a_number_without_a_limit_says_what_would_be_bad(row: Row, own: float | None, said: str) -> None:
    series = [row] if own is None else [row, replace(row, dataset="confidential", value=own)]
    told = dict(explanation_facts(ExplainedNumber(row, series)))
    assert told.get("bad is", "")[: len(said)] == said
    assert bool(told.get("bad is")) is bool(said)


def test_a_limit_is_what_would_be_bad() -> None:
    limit = Verdict(risk(0.01).key, "", None, "max", 0.02, 0.01, 0.01, "met", "", None)
    row = risk(0.01)
    own = replace(row, dataset="confidential", value=0.4)
    assert "bad is" not in dict(explanation_facts(ExplainedNumber(row, [row, own], [limit])))


def test_averages_of_an_attack_are_not_said_to_give_its_number() -> None:
    rows = [part("excess_risk", 0.02, (0.01, 0.03), ""), part("attack_success", 0.05), part("control_success", 0.03)]
    rows += [part("guesses", 500, unit="guesses")]
    parts, single = (
        {one.measure: one for one in rows},
        [replace(rows[0], draw=draw, value=draw / 100) for draw in (1, 3)],
    )
    said = "the counts above are averages over them too, and do not give the number exactly"
    for series, is_said in (([rows[0], *single], True), ([rows[0], single[0]], False)):
        told = dict(explanation_facts(ExplainedNumber(rows[0], series, n_records=1000, parts=parts)))
        assert (said in told["how sure"]) is is_said


def test_what_an_attack_finds_beyond_chance_is_not_always_due_to_the_release() -> None:
    found = part("excess_risk", 0.0254, (0.0084, 0.0533), "")
    for ends, is_said in (((-0.0107, 0.0451), True), ((0.005, 0.03), False)):
        added = part("added_risk", 0.0172, ends, "")
        told = words(found, added)
        assert "This is more than chance explains: the whole interval lies above 0 %." in told
        assert ("what it adds to an attack without it, 1.72 %" in told) is is_said


@pytest.mark.parametrize(("value", "said"), [(0.748, "Not below 5 %: chance alone may explain what was found, which does not show that there is no leak. "),
                                             (0.012, "Below 5 %: chance alone rarely gives as much. ")])  # fmt: skip
def test_a_p_value_says_what_it_means(value: float, said: str) -> None:
    row = Row("risk", "membership_inference", "p_value", "", "synthetic", None, None, value, None, None)
    meaning = "A p-value is how often chance alone would give at least as much if the release revealed nothing."
    assert dict(explanation_facts(ExplainedNumber(row, [row])))["here"] == said + meaning


def test_the_chance_of_a_finding_states_the_finding_and_the_members_found_state_the_chance() -> None:
    area, chance, share = (
        Row("risk", "membership_inference", name, "", "synthetic", None, None, value, *ends, baseline=base)
        for name, value, ends, base in (
            ("family_auc", 0.529, (0.47, 0.58), 0.5),
            ("p_value", 0.254, (None, None), None),
            ("family_tpr", 0.0233, (0.0107, 0.05), 0.008),
        )
    )
    told = words(chance, area)
    assert told.startswith(
        "Of a person in the data and one outside, the best of several attackers picks the right one in 52.9 %"
    )
    assert "would still do as well or better with probability 25.4 %" in told
    told = words(share, chance)
    assert "do as well or better with probability 25.4 %: chance alone may explain it." in told
    assert " times 0.8 % (false alarms" in told


def test_a_yardstick_says_what_the_release_discloses() -> None:
    row = Row(
        "risk", "attribute", "risk_excluding_self", "", "confidential", None, None, 100.0, None, None, unit="records"
    )
    released = replace(row, measure="risk", dataset="synthetic", value=80.0)
    facts = dict(explanation_facts(ExplainedNumber(row, [row], n_records=1000, yardstick=released)))
    assert facts["here"] == "The release discloses 80 of 1,000 (8 %) (Sensitive values disclosed)."
    assert facts["how sure"] == "exact for these data"


def test_members_of_an_attack_on_membership_are_taken_for_members() -> None:
    rows = [
        Row("risk", "membership_inference", measure, "", "synthetic", None, None, value, low, high, baseline=base)
        for measure, value, low, high, base in (
            ("excess_risk", 0.0254, 0.0084, 0.0533, 0.0),
            ("attack_success", 0.0341, None, None, None),
            ("control_success", 0.009, None, None, None),
            ("guesses", 1000.0, None, None, None),
        )
    ]
    said = "Of 1,000 people in the data he recognises 34.1 (3.41 %). Of as many outsiders he wrongly takes for people in the data 9 (0.9 %)."
    assert said in words(*rows)


def test_a_number_whose_best_choice_is_limited_says_where_the_limit_is() -> None:
    row = risk(0.2)
    series = [row, replace(row, dataset="confidential", value=0.4)]
    assert dict(explanation_facts(ExplainedNumber(row, series)))["here"].endswith("No limit is set for it.")
    told = dict(explanation_facts(ExplainedNumber(row, series, limited_number="People found, best variables")))["here"]
    assert told.endswith("No limit is set for it; the plan limits “People found, best variables”.")


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (ExplainedNumber(gap(0.01)), ""),
        (ExplainedNumber(gap(0.05)), "to lower it"),
        (ExplainedNumber(risk(0.01)), "to lower it"),
        (ExplainedNumber(risk(0.01), limited_number="best", limited_outcome="met"), ""),
        (ExplainedNumber(risk(0.01), limited_number="best", limited_outcome="not met"), "to lower it"),
        (ExplainedNumber(part("excess_risk", 0.02, (-0.01, 0.03))), ""),
        (ExplainedNumber(part("excess_risk", 0.02, (0.01, 0.03))), "what to change"),
        (ExplainedNumber(Row("risk", "membership_inference", "auc", "", "synthetic", None, None, 0.6, 0.55, 0.65)),
         "what to change"),
        (ExplainedNumber(Row("utility", "interval_overlap", "overlap", "", "synthetic", None, None, 0.6, None, None)),
         "to raise it"),
    ],
)  # fmt: skip
def test_what_is_good_has_nothing_to_change(found: ExplainedNumber, name: str) -> None:
    names = {"what to change", "to lower it", "to raise it"}
    assert names & set(dict(explanation_facts(found))) == ({name} if name else set())


def test_the_weakest_attacker_who_is_noticed_stands_beside_the_one_found() -> None:
    least, area = (
        Row("risk", "membership_inference", name, "", "synthetic", None, None, value, *ends)
        for name, value, ends in (("detectable_auc", 0.6, (None, None)), ("family_auc", 0.52, (0.46, 0.57)))
    )
    for ends, said in (
        ((0.46, 0.57), "chance explains: no leak was noticed, and one below 60 %"),
        ((0.51, 0.6), "he is noticed"),
    ):
        parts = {"family_auc": replace(area, lower=ends[0], upper=ends[1])}
        assert said in dict(explanation_facts(ExplainedNumber(least, parts=parts)))["here"]
