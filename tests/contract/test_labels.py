"""Names and sentences of our own numbers: every one has them, they say all that tells numbers from each other, and their figures are right."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_methods import METHODS

from sfumato.engine.contract.every_method import label_problems
from sfumato.engine.methods.labels import label_of, labels_of, measure_name, quantity_of, sentence_of, subject_of
from sfumato.engine.methods.outputs import Label, Output
from sfumato.engine.methods.registry import OWN, Method, registry
from sfumato.engine.methods.rows import Row
from sfumato.engine.wording import format_percent


def row(key: str, value: float | None = 0.5, target: str = "", level: float | None = None, **params: Any) -> Row:
    family, method, measure = key.split(".")
    unit = registry()[f"{family}.{method}"].output(measure).unit if f"{family}.{method}" in registry() else ""
    return Row(family, method, measure, target, "synthetic", None, level, value, unit=unit, params=params)


@pytest.mark.parametrize("method", METHODS)
def test_every_result_has_a_label(method: Method) -> None:
    assert [output.name for output in method.result_outputs if output.label == Label()] == []


def test_no_two_results_of_different_methods_have_one_name() -> None:
    own = [(found, output) for found in registry().values() if found.package == OWN for output in found.result_outputs]
    times: dict[str, int] = {}
    for _, output in own:
        times[output.label.name] = times.get(output.label.name, 0) + 1
    assert [output.label.name for _, output in own if output.label.shared != (times[output.label.name] > 1)] == []
    full = [measure_name(f"{found.key}.{output.name}") for found, output in own]
    assert len(set(full)) == len(full)


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"name": ""}, "a name of 1 to 45 characters"),
        ({"name": "x" * 46}, "a name of 1 to 45 characters"),
        ({"name": "true_match_rate"}, "words, not keys"),
        ({"says": "Nothing is said of the value."}, "a sentence with {value}"),
        ({"says": "It is {value}"}, "says ends in a full stop"),
        ({"good": " ".join(["word"] * 26) + "."}, "at most 25 words in good"),
        ({"fails": ""}, "what is good, what failing means, and levers"),
        ({"levers": ()}, "what is good, what failing means, and levers"),
        ({"good": "See risk.identification."}, "words, not keys"),
    ],
)
def test_a_label_that_people_cannot_read_is_found(change: dict[str, Any], missing: str) -> None:
    method = registry()["risk.identification"]
    output = method.output("true_match_rate")
    wrong = dataclasses.replace(output, label=dataclasses.replace(output.label, **change))
    assert label_problems(dataclasses.replace(method, outputs=(wrong,))) == [f"true_match_rate: {missing}"]


def test_the_figures_of_a_sentence_are_those_of_its_row() -> None:
    rate = row("risk.identification.true_match_rate", 88 / 20190)
    assert (
        sentence_of(rate, 20190)
        == "For 88 of 20,190 people (0.44 %), exactly one released record matches what the intruder knows, and it is theirs."
    )
    assert sentence_of(rate) == (
        "For 0.44 % of the people, exactly one released record matches what the intruder knows, and it is theirs."
    )
    expected = row("risk.identification.expected_match_risk", 12.5)
    assert sentence_of(expected, 1000) == (
        "An intruder who picks one of the matching released records at random picks the right one for 12.5 of 1,000 people (1.25 %) on average."
    )
    assert sentence_of(row("utility.summary.quantile", 41.0, "age", q=0.9)) == (
        "90 % of the records have 41 or less of age, its 0.9 quantile."
    )
    assert sentence_of(row("risk.linkability.excess_risk", 0.017, people="vulnerable")) == (
        "On a scale from success on outsiders (0 %) to always right (100 %), the linkage attack on people in the data reaches "
        "1.7 % (people easiest to find)."
    )


def test_people_are_not_counted_where_only_some_were_asked_about() -> None:
    key = "risk.identification.true_match_rate"
    assert quantity_of(key, 0.1, 1000) == "100 of 1,000 people (10 %)"
    for params in ({"targets": 50}, {"among": {"age": ["65+"]}}, {"external": "file"}):
        assert quantity_of(key, 0.1, 1000, params) == "10 % of the people asked about"
    assert quantity_of(key, 0.1, 1000, {"known": ["age"]}) == "100 of 1,000 people (10 %)"


def test_a_value_that_was_not_computed_says_why() -> None:
    missing = dataclasses.replace(
        row("utility.summary.mean", None, "age"), status="not computed", reason="no record has a value"
    )
    assert sentence_of(missing) == "Mean (age) was not computed: no record has a value."


def test_a_full_name_has_variable_kind_people_and_knowledge() -> None:
    assert label_of(row("risk.identification.true_match_rate", known=["age", "sex"])) == (
        "People found for certain (knows age, sex)"
    )
    assert label_of(
        row("risk.attribute_inference.excess_risk", 0.1, "income", people="vulnerable", guesses="confident")
    ) == ("Attribute inference: more than for outsiders (income; people easiest to find; confident guesses)")
    assert label_of(row("utility.summary.quantile", 41.0, "age", q=0.9)) == "Quantile (age; q 0.9)"
    assert label_of(row("studies.intruder_uncertainty.true_match_rate", 0.1, level=0.2)) == (
        "People found for certain, by uncertainty (uncertainty 0.2)"
    )


def test_a_name_that_methods_share_names_the_method() -> None:
    gibbs, imputation = (
        row(f"synthesis.{name}.epsilon_release") for name in ("perturbed_gibbs", "perturbed_imputation")
    )
    assert registry()[gibbs.method_key].title in label_of(gibbs)
    assert label_of(gibbs) != label_of(imputation)


def test_a_method_of_another_package_is_named_by_meaning_and_title() -> None:
    own = registry()["risk.exact_copies"]
    other = dataclasses.replace(
        own, package="other", outputs=(Output("few", "people with few matches", "low", "share"),)
    )
    found = own.outputs
    assert found
    with pytest.MonkeyPatch.context() as patch:
        for module in ("labels", "registry"):
            patch.setattr(f"sfumato.engine.methods.{module}.method_by_key", lambda key: other)
        assert measure_name("risk.other.few") == f"People with few matches ({own.title})"


def test_a_number_of_a_method_that_is_gone_is_named_by_its_words() -> None:
    assert label_of(row("risk.gone_method.some_rate", target="age")) == "Some rate (gone method) (age)"


def test_short_names_say_settings_only_where_rows_differ_in_them() -> None:
    rate = "risk.identification.true_match_rate"
    assert labels_of([row(rate, known=["age", "sex"])]) == ["People found for certain"]
    assert labels_of([row(rate, known=["age", "sex"]), row(rate, known=["age"])]) == [
        "People found for certain (knows age, sex)",
        "People found for certain (knows age)",
    ]
    assert labels_of([row("utility.propensity.pmse"), row("utility.propensity.pmse", model="cart")]) == [
        "Difference that a model finds (pMSE) (model logit)",
        "Difference that a model finds (pMSE) (model cart)",
    ]


def test_of_a_setting_by_variable_only_what_differs_is_said() -> None:
    key = "risk.identification.expected_match_risk"
    assert labels_of([row(key, radius={"age": 1, "income": "5%"}), row(key, radius={"age": 1, "income": "9%"})]) == [
        "People found on average (income within 5%)",
        "People found on average (income within 9%)",
    ]


PARAMS = st.dictionaries(
    st.sampled_from(["known", "radius", "people", "q", "note"]),
    st.one_of(st.sampled_from(["a", "b", 1, 2, 0.5]), st.lists(st.sampled_from(["x", "y"]), max_size=2)),
    max_size=3,
)


@given(
    st.lists(
        st.tuples(st.sampled_from(["true_match_rate", "unique_matches"]), st.sampled_from(["", "age"]), PARAMS),
        max_size=6,
    )
)
def test_short_names_are_equal_only_for_the_same_series(drawn: list[tuple[str, str, dict[str, Any]]]) -> None:
    rows = [row(f"risk.identification.{name}", target=target, **params) for name, target, params in drawn]
    names = labels_of(rows)
    for name, one in zip(names, rows, strict=True):
        assert one.target in name
    assert len(set(names)) == len({one.series for one in rows})


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_share_in_per_cent_never_seems_to_be_another(value: float, beside: float) -> None:
    text = format_percent(value, beside)
    assert text.endswith(" %")
    shown = float(text.removesuffix(" %"))
    assert abs(shown - 100 * value) <= max(0.005, 0.05 * 100 * value)
    if abs(value - beside) > 1e-10:
        assert text != format_percent(beside, value)
    if 1e-10 < value < 1 - 1e-10:
        assert shown not in (0, 100)


@pytest.mark.parametrize(("value", "said"), [(0.03, "more"), (-0.03, "less")])
def test_a_difference_in_either_direction_is_said_by_its_size(value: float, said: str) -> None:
    sentence = sentence_of(row("risk.linkability.added_risk", value))
    assert sentence == (
        f"With people in the data the release adds 3 % {said} than with outsiders, as a share of the guesses about outsiders that fail with it."
    )


def test_a_share_of_members_found_states_the_false_alarms() -> None:
    found = dataclasses.replace(row("risk.membership_inference.family_tpr", 0.016), baseline=0.0079)
    assert sentence_of(found) == (
        "The best of several attackers finds 1.6 % of the people in the data, while he takes 0.79 % of the outsiders for "
        "them, wrongly."
    )


def test_of_a_coefficient_its_term_comes_before_its_model() -> None:
    params = {"estimand": "coefficient", "model": "logit: vote ~ age", "term": "age"}
    assert subject_of(row("utility.interval_overlap.estimate", 0.1, "vote", **params)) == (
        "vote; coefficient of age; logit: vote ~ age"
    )
    mean = row("utility.interval_overlap.estimate", 0.1, "pay", estimand="mean")
    assert subject_of(mean) == "pay; mean"
