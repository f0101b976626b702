"""Numbers as lines of one table: which series are folded, which of them stands in front, and how values read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sfumato.engine.methods.labels import measure_name
from sfumato.engine.methods.outputs import ATTACK_PARTS
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import RecordCount
from sfumato.workspace.reporting.measured import result_tables
from sfumato.workspace.reporting.numbers import (
    UNMET_SECTION,
    arrange_lines,
    cell_forms,
    families_text,
    fold_number_lines,
    leading_measure,
    line_cells,
    line_sentence,
    line_subject,
    member_facts,
    number_lines,
    section_title,
    shared_limit,
    split_title,
    titled_name,
)
from sfumato.workspace.reporting.results import TableContext
from sfumato.workspace.reporting.tables import format_table
from sfumato.workspace.reporting.words import power_of_ten_text


def row(key: str, value: float | None, dataset: str = "synthetic", target: str = "", **params: Any) -> Row:
    family, method, measure = key.split(".")
    output = registry()[f"{family}.{method}"].output(measure)
    status = "computed" if value is not None else "not computed"
    level = params.pop("level_", None)
    return Row(
        family, method, measure, target, dataset, None, level, value, unit=output.unit, status=status, params=params
    )  # type: ignore[arg-type]


def verdict(of: Row, outcome: str, limit: float = 0.05) -> Verdict:
    return Verdict(of.key, of.target, of.level, "max", limit, of.value, None, outcome, "", dict(of.params))  # type: ignore[arg-type]


RATE = "risk.identification.true_match_rate"
QUANTILE = "utility.summary.quantile"


def test_a_series_is_one_line_of_both_data() -> None:
    (line,) = number_lines([row(RATE, 0.4, "confidential"), row(RATE, 0.1)])
    assert line.confidential is not None
    assert line.release is not None
    cells = line_cells(line, 3411)
    assert cells["measure"] == "People found for certain"
    assert cells["confidential"] == "1,364 of 3,411 (40 %)"
    assert cells["release"] == "341.1 of 3,411 (10 %)"


def test_settings_of_a_measure_and_variable_are_folded_and_listed() -> None:
    rows = [
        row(QUANTILE, value, target=target, q=q)
        for target in ("age", "pay")
        for q, value in ((0.25, 30.0), (0.5, 41.0))
    ]
    folded = fold_number_lines(number_lines(rows))
    assert [line.row.target for line in folded] == ["age", "pay"]
    assert [line.number_of_others for line in folded] == [1, 1]
    assert [text for _, text in member_facts(folded[0])] == ["age; q 0.25: 30", "age; q 0.5: 41"]
    assert line_cells(folded[0])["others"] == "1 more"


def test_the_parts_of_an_attack_are_one_line_with_the_excess_in_front() -> None:
    rows = [row(f"risk.linkability.{part}", 0.1) for part in ATTACK_PARTS if part != "excess_p_value"]
    (line,) = fold_number_lines(number_lines(rows))
    assert line.row.measure == "excess_risk"
    assert len(member_facts(line)) == len(rows)
    assert any(text.startswith("Linkage: number of guesses") for _, text in member_facts(line))
    assert leading_measure("utility", "attack_success") == "attack_success"


def test_the_worst_verdict_stands_in_front_and_gives_its_sign() -> None:
    """Nothing is greener folded than unfolded."""
    rows = [row(RATE, 0.01), row(RATE, 0.02, by="unit"), row(RATE, 0.4, by="unit", unit_size="1")]
    found = [verdict(rows[0], "met"), verdict(rows[1], "not met", 0.015)]
    (line,) = fold_number_lines(number_lines(rows, found))
    assert line.row.params == {"by": "unit"}
    assert line.worst_outcome == "not met"
    assert line_cells(line)["sign"] == "✗"
    assert line_cells(line)["limit"] == "at most 1.5 %"


def test_people_stand_before_their_records_and_all_of_them_before_some() -> None:
    rows = [row(RATE, 0.01), row(RATE, 0.02, by="unit"), row(RATE, 0.4, by="unit", size="2")]
    (line,) = fold_number_lines(number_lines(rows))
    assert line.row.params == {"by": "unit"}
    counted = RecordCount(16_171, "person-years", RecordCount(4_162, "people"))
    assert line_cells(line, counted)["release"] == "83.24 of 4,162 people (2 %)"
    assert line_cells(line, RecordCount(16_171, "person-years"))["release"] == "2 %"
    (apart,) = fold_number_lines(number_lines(rows[:1]))
    assert line_cells(apart, counted)["release"] == "161.7 of 16,171 (1 %)"


def test_without_a_verdict_the_worst_number_stands_in_front() -> None:
    kinds = [
        row("risk.singling_out.excess_risk", value, kind=kind)
        for kind, value in (("univariate", 0.1), ("multivariate", 0.3))
    ]
    (worst,) = fold_number_lines(number_lines(kinds))
    assert worst.row.params["kind"] == "multivariate"
    far = [
        row(QUANTILE, value, dataset, "pay", q=q)
        for q, own, made in ((0.25, 10.0, 10.0), (0.9, 20.0, 30.0))
        for dataset, value in (("confidential", own), ("synthetic", made))
    ]
    (furthest,) = fold_number_lines(number_lines(far))
    assert furthest.row.params == {"q": 0.9}


def test_a_number_without_a_value_is_not_in_front_of_one_with_a_value() -> None:
    (line,) = fold_number_lines(number_lines([row(RATE, None), row(RATE, 0.1, by="unit")]))
    assert line.row.value == 0.1


def test_a_verdict_without_settings_is_about_the_first_row_alone() -> None:
    rows = [row(QUANTILE, 1.0, target="pay", q=0.25), row(QUANTILE, 2.0, target="pay", q=0.5)]
    first, second = number_lines(rows, [replace(verdict(rows[0], "not met"), params=None)])
    assert first.verdict is not None
    assert second.verdict is None


@pytest.mark.parametrize(
    ("key", "value", "whole", "brief"),
    [
        (RATE, 0.1111, "379 of 3,411 (11.11 %)", "11.11 %"),
        ("risk.identification.expected_match_risk", 5.333, "5.333 of 3,411 (0.16 %)", "5.333"),
        ("utility.summary.share", 0.5, "50 %", "50 %"),
        ("utility.propensity.pmse", 0.0123, "0.0123", "0.0123"),
        (RATE, None, "not computed", "unknown"),
    ],
)
def test_a_value_has_the_same_digits_in_few_cells(key: str, value: float | None, whole: str, brief: str) -> None:
    exact = 379 / 3411 if value == 0.1111 else value
    (line,) = number_lines([row(key, exact)])
    assert line_cells(line, 3411)["release"] == whole
    assert cell_forms(line, "release", whole)[-1] == brief


def test_an_interval_has_the_unit_of_its_value() -> None:
    (line,) = number_lines([replace(row(RATE, 0.1), lower=0.08, upper=0.125)])
    assert line_cells(line, 1000)["interval"] == "80 .. 125", "people, as its value counts them"
    assert line_cells(line)["interval"] == "8 .. 12.5 %"
    (exact,) = number_lines([replace(row(RATE, 0.1), lower=0.1, upper=0.1)])
    assert line_cells(exact, 1000)["interval"] == ""


def test_the_families_are_counted_and_the_shown_one_is_marked() -> None:
    counts = {"utility": 31, "risk": 33}
    assert families_text(counts, "") == "[all 64] · risk 33 · utility 31"
    assert families_text(counts, "risk") == "all 64 · [risk 33] · utility 31"


def test_a_line_that_is_read_aloud_names_its_values_and_its_limit() -> None:
    rows = [row(RATE, 0.4, "confidential"), row(RATE, 0.1), row(RATE, 0.1, by="unit")]
    (line,) = fold_number_lines(number_lines(rows, [verdict(rows[1], "not met")]))
    assert line_sentence(line, 1000) == (
        "People found for certain: release 100 of 1,000 (10 %), confidential 400 of 1,000 (40 %), not met, "
        "at most 5 %; 1 more setting."
    )


def test_the_printed_table_has_the_same_cells_folded_or_not() -> None:
    rows = [row(QUANTILE, value, target="pay", q=q) for q, value in ((0.25, 30.0), (0.5, 41.0))]
    ((folded, _),) = result_tables(rows, TableContext(folded=True))
    ((whole, _),) = result_tables(rows)
    assert len(folded.rows) == 1
    assert len(whole.rows) == 2
    assert "1 more" in format_table(folded)
    assert "pay; q 0.5" in format_table(whole)


def test_no_name_of_a_number_says_pmse_or_excess_without_words() -> None:
    """Names are understood without the literature: what is in brackets only helps those who know it."""
    for method in registry().values():
        for output in method.outputs:
            name = measure_name(f"{method.key}.{output.name}").partition(" (")[0]
            assert "propensity" not in name.lower()
            assert "cumulative" not in name.lower()
            assert not name.endswith(": excess risk")


def test_lines_of_a_measure_can_be_told_apart() -> None:
    rows = [
        row(RATE, 0.1),
        row(RATE, 0.1, by="unit"),
        row(RATE, 0.1, by="unit", unit_size="2"),
        row("studies.intruder_uncertainty.true_match_rate", 0.1, level_=0.01),
        row("studies.intruder_uncertainty.true_match_rate", 0.1, level_=0.02),
    ]
    names = [(measure_name(line.row.key), line_subject(line)) for line in number_lines(rows)]
    assert len(set(names)) == len(names)
    assert "uncertainty 0.01" in names[3][1]


def test_lines_stand_below_the_question_that_they_answer_and_those_of_one_title_together() -> None:
    keys = ["utility.summary.mean", RATE, "utility.summary.sd", "utility.summary.mean", "risk.linkability.excess_risk"]
    found = arrange_lines(keys, unmet={1})
    shown = [found.headings[-1 - place] if place < 0 else place for place in found.places]
    assert shown == [
        (UNMET_SECTION, False), 1,
        ("Can people be found?", False), 4,
        ("Does the release still look like the data?", False), ("Mean", True), 0, 3, 2,
    ]  # fmt: skip
    assert [place for place, titled in zip(found.places, found.is_titled, strict=True) if titled] == [0, 3]


def test_every_measure_has_a_question_that_it_answers() -> None:
    for key, method in registry().items():
        for output in method.outputs:
            assert section_title(f"{key}.{output.name}")


def test_below_its_title_a_line_says_what_distinguishes_it() -> None:
    (mean,) = number_lines([row("utility.summary.mean", 3.0, target="income")])
    assert titled_name(mean, line_subject(mean)) == "income"
    (attack,) = number_lines([row("risk.attribute_inference.attack_success", 0.5, target="income")])
    assert titled_name(attack, line_subject(attack)) == "for people in the data, income"
    (whole,) = number_lines([row("risk.attribute.risk", 0.1)])
    assert titled_name(whole, line_subject(whole)) == "all records"


def test_the_limit_of_a_ratio_is_said_in_the_unit_of_the_measure_where_cells_are_few() -> None:
    risk = "risk.identification.expected_match_risk"
    rows = [row(risk, 2296.0, "confidential"), row(risk, 6.9)]
    ratio = replace(verdict(rows[1], "met", 0.2), bound="max_ratio")
    (line,) = number_lines(rows, [ratio])
    cell = line_cells(line)["limit"]
    assert cell == "at most 20 % of the confidential value"
    assert cell_forms(line, "limit", cell) == (cell, "≤ 20 % of raw data", "≤ 459"), "people are whole"
    assert shared_limit(line, 16_171) == "at most 459 (2.84 %)"
    assert shared_limit(line) == "at most 459"


@pytest.mark.parametrize(("value", "said"), [(0.005, "at most 1 % (41)"), (0.00995, "at most 1 % (41.62)")])
def test_a_limit_on_people_is_a_whole_number_that_allows_no_more(value: float, said: str) -> None:
    # 41.41 of 4,162 people are within 41.62, and would not be within 41
    (line,) = number_lines([row(RATE, value)], [replace(verdict(row(RATE, value), "met", 0.01), bound="max")])
    cell = line_cells(line, 4162)["limit"]
    assert cell_forms(line, "limit", cell, 4162)[0] == said


def test_a_line_says_which_values_are_good() -> None:
    said = {}
    for key in (RATE, "risk.identification.false_match_rate", "utility.propensity.s_pmse", "utility.summary.mean"):
        (line,) = number_lines([row(key, 0.5, "confidential"), row(key, 0.5)])
        said[key.rpartition(".")[2]] = line_cells(line)["good"]
    assert said == {"true_match_rate": "↓", "false_match_rate": "↑", "s_pmse": "1", "mean": "same"}


def test_a_count_of_units_keeps_its_number_where_its_noun_has_no_room() -> None:
    expected = "risk.identification.expected_match_risk"
    (line,) = number_lines([row(expected, 2707.0, "confidential", by="unit"), row(expected, None, by="unit")])
    cells = line_cells(line, 16_171)
    assert cell_forms(line, "confidential", cells["confidential"])[-2:] == ("2,707 units", "2,707")
    assert cell_forms(line, "release", cells["release"])[-1] == "unknown"


def test_an_interval_with_few_digits_holds_the_whole_one() -> None:
    (line,) = number_lines([replace(row("utility.propensity.pmse", 0.000231), lower=0.00014562, upper=0.00038931)])
    cell = line_cells(line)["interval"]
    assert cell_forms(line, "interval", cell) == (
        "0.0001456 .. 0.0003893", "0.000145 .. 0.00039", "0.00014 .. 0.00039", "1.4e-4 .. 3.9e-4",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "digits", "short"),
    [
        ("-0.000092 %", 2, "-9.2e-5 %"), ("-0.000092 %", 1, "-9e-5 %"), ("0.00000049", 2, "4.9e-7"),
        ("0.0001 .. 0.02", 2, "1e-4 .. 0.02"), ("0.01 %", 2, "0.01 %"), ("1,000.0001", 2, "1,000.0001"), ("0", 2, "0"),
    ],
)  # fmt: skip
def test_a_small_number_keeps_sign_and_size_where_it_has_little_room(text: str, digits: int, short: str) -> None:
    assert power_of_ten_text(text, digits) == short


def test_the_ends_of_an_interval_have_no_other_digits_where_there_is_less_room() -> None:
    """A small number has two digits in full, so the narrow column has the same ones."""
    small = replace(row("utility.ecdf.mean_squared_difference", 0.000016), lower=0.00001268, upper=0.00001953)
    line = number_lines([small])[0]
    cell = line_cells(line)["interval"]
    assert cell == "0.000013 .. 0.00002"
    assert cell_forms(line, "interval", cell) == (cell, cell, cell, "1.3e-5 .. 2e-5"), "a power of ten cuts none"
    wide = number_lines([replace(small, value=1.5, lower=1.2346, upper=2.3451)])[0]
    assert cell_forms(wide, "interval", line_cells(wide)["interval"]) == (
        "1.235 .. 2.345", "1.23 .. 2.35", "1.2 .. 2.4",
    )  # fmt: skip


def test_numbers_of_two_intruders_stand_below_titles_that_tell_them_apart() -> None:
    best, whole = "risk.identification.largest_expected_match_risk", "risk.identification.expected_match_risk"
    names = ["People found on average", "People found for certain"]
    assert split_title(best) == ("Intruder who picks what to compare", names[0])
    assert split_title(whole) == ("Intruder who compares all he knows", names[0])
    arranged = arrange_lines([best, "risk.identification.largest_true_match_rate", whole, RATE])
    assert [one for one, is_minor in arranged.headings if is_minor] == [split_title(best)[0], split_title(whole)[0]]
    assert [titled_name(one, line_subject(one)) for one in number_lines([row(whole, 1.0), row(RATE, 0.1)])] == names
