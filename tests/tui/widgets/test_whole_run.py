"""A run in full, as it stands beside the list of runs."""

from dataclasses import replace

import pytest

from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import RecordCount
from sfumato.tui.runs.run_detail import FullRunDetail
from sfumato.tui.runs.run_meters import MeterContext, choose_metered, meter_lines
from sfumato.workspace.views.run_detail import RunDetail, TaskPhase

DETAIL = RunDetail(7, "survey.csv", 90, 3, 1, False, None, (), (), ())
MATCH = "risk.identification.true_match_rate"


def verdict(outcome, observed, **params):
    return Verdict(MATCH, "", None, "max", 0.1, observed, None, outcome, "", params)


def detail_text(*verdicts, width=60):
    return (
        FullRunDetail(DETAIL, "state done", verdicts, (), {"risk.identification": {"radius": None}})
        .to_lines(width)
        .plain
    )


def test_verdicts_on_two_uses_of_a_measure_are_told_apart_and_failures_come_first():
    met = verdict("met", 0.01, radius={"income": "5%"})
    failed = verdict("not met", 0.3, radius={"income": "20%"})
    lines = detail_text(met, failed, width=90).splitlines()
    heading, first, second = lines[-3:]
    assert heading.split() == ["limit", "found", "allowed"]
    assert " ".join(first.split()) == "✗ Only match is the right one (income within 20%) 27 of 90 (30 %) ≤ 10 %"
    assert " ".join(second.split()) == "✓ Only match is the right one (income within 5%) 0.9 of 90 (1 %) ≤ 10 %"
    assert len({line.index("of 90") for line in (first, second)}) <= 2
    assert len(first.rstrip()) == len(second.rstrip()) == len(heading.rstrip())


def test_limits_that_are_all_met_take_one_line():
    text = detail_text(*[verdict("met", 0.01, radius={"income": f"{n}%"}) for n in range(12)], width=40)
    assert "✓ 12 of 12 limits met" in text
    assert "Only match" not in text


def test_a_number_without_a_value_of_the_release_has_a_dash_or_only_that_before():
    rows = [Row("risk", "identification", "true_match_rate", "", "confidential", None, None, 0.5)]
    for width in (70, 40, 22):
        text = FullRunDetail(DETAIL, "", (), rows, {}).to_lines(width).plain
        assert ": ," not in text
        assert "Only match" in " ".join(text.split())
        assert max(map(len, text.splitlines())) <= width
    assert text.splitlines()[-1].split()[-2:] == ["-", "45"] or "confidential data 45" in " ".join(text.split())


def test_meters_begin_with_what_is_not_met_and_count_people_before_records():
    by_unit = verdict("met", 0.02, by="unit")
    utility = Verdict("utility.propensity.pmse", "", None, "max", 0.01, 0.02, None, "not met")
    chosen = choose_metered([verdict("met", 0.09), by_unit, utility], 3)
    assert chosen == [utility, by_unit]
    first, second, time = meter_lines(chosen, MeterContext(90, RecordCount(50), time_text="2 s"), 92)
    assert first.plain.startswith("✗ Difference that a model finds (pMSE)")
    assert "├" in first.plain
    assert "1 of 50 (2 %)" in second.plain
    assert second.plain.rstrip().endswith("at most 10 %")
    assert "2 s" in time.plain
    assert first.plain.index("├") == second.plain.index("├")


@pytest.mark.parametrize("may_leave", [True, False])
def test_a_meter_is_green_only_where_the_gate_says_yes(may_leave):
    (line,) = meter_lines([verdict("met", 0.02)], MeterContext(90, may_leave=may_leave), 90)
    assert ("$success" in line.markup) is may_leave


@pytest.mark.parametrize("width", [20, 40, 60, 76, 92, 140])
def test_no_meter_is_wider_than_its_place(width):
    many = [verdict("not met", 0.3, by="unit"), Verdict("utility.ecdf.max_abs_difference", "a" * 40, None, "max", 0.1, 0.2, None, "not met")]  # fmt: skip
    lines = meter_lines(many, MeterContext(16_000, time_text="1 min 12 s"), width)
    assert max(len(line.plain.rstrip()) for line in lines) <= max(width, 36)


def test_no_line_is_wider_than_asked_and_none_is_cut():
    lines = detail_text(
        *[verdict("not met", 0.3, radius={f"expenditure_of_household_{n}": "20%"}) for n in range(9)], width=44
    )
    assert max(map(len, lines.splitlines())) <= 44
    assert "…" not in lines
    assert lines.count("✗") == 9


def test_a_phase_says_how_long_it_took_once_a_task_of_it_is_done_and_its_memory_apart():
    phases = (
        TaskPhase("fit", 2, 2, 19.3, 265_000_000),
        TaskPhase("draw", 10, 3, 4.0, 0),
        TaskPhase("study", 7, 0, 0.0, 0),
    )
    text = " ".join(FullRunDetail(replace(DETAIL, phases=phases), "", (), (), {}).to_lines(90).plain.split())
    assert "fit 2 in 19.3 s (265 MB), draw 3/10 in 4.0 s, study 0/7" in text
    assert "0.0 s" not in text
