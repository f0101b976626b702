"""A run in full, as it stands beside the list of runs."""

from dataclasses import replace

import pytest

from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.engine.wording import RecordCount
from sfumato.tui.parts.gauges import draw_gauge
from sfumato.tui.runs.run_detail import FullRunDetail, RunBrief, brief_run_text
from sfumato.tui.runs.run_meters import GAUGES, MeterContext, choose_metered, meter_lines, other_metered
from sfumato.tui.runs.run_tasks import NamedTask, task_lines, tasks_to_name
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.store.runs import TaskRow
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
    assert " ".join(first.split()) == "✗ People found for certain (income within 20%) 27 of 90 (30 %) ≤ 10 %"
    assert " ".join(second.split()) == "✓ People found for certain (income within 5%) 0.9 of 90 (1 %) ≤ 10 %"
    assert len({line.index("of 90") for line in (first, second)}) <= 2
    assert len(first.rstrip()) == len(second.rstrip()) == len(heading.rstrip())


def test_limits_that_are_all_met_take_one_line():
    text = detail_text(*[verdict("met", 0.01, radius={"income": f"{n}%"}) for n in range(12)], width=40)
    assert "✓ 12 of 12 limits met" in text
    assert "for certain" not in text


def test_a_number_without_a_value_of_the_release_has_a_dash_or_only_that_before():
    rows = [Row("risk", "identification", "true_match_rate", "", "confidential", None, None, 0.5)]
    for width in (70, 40, 22):
        text = FullRunDetail(DETAIL, "", (), rows, {}).to_lines(width).plain
        assert ": ," not in text
        assert "for certain" in " ".join(text.split())
        assert max(map(len, text.splitlines())) <= width
    assert text.splitlines()[-1].split()[-2:] == ["-", "45"] or "confidential data 45" in " ".join(text.split())


def test_meters_begin_with_what_is_not_met_and_count_people_before_records():
    by_unit = verdict("met", 0.02, by="unit")
    utility = Verdict("utility.propensity.pmse", "", None, "max", 0.01, 0.02, None, "not met")
    chosen = choose_metered([verdict("met", 0.09), by_unit, utility], 3)
    assert chosen == [utility, by_unit]
    first, second = meter_lines(chosen, MeterContext(90, RecordCount(50), time_text="2 s"), 92)
    assert first.plain.startswith("✗ Difference that a model finds (pMSE)")
    assert "├" in first.plain
    assert "1 of 50 (2 %)" in second.plain
    assert second.plain.rstrip().endswith("at most 10 %")
    assert first.plain.index("├") == second.plain.index("├")


def test_what_limits_are_not_shown_is_said_and_the_time_stands_apart():
    verdicts = [verdict("met", 0.01, by="unit"), verdict("met", 0.02), verdict("met", 0.03, radius={"income": "5%"})]
    lines = {
        room: brief_run_text(
            RunBrief(DETAIL, None, (), verdicts),
            [],
            90,
            room,
            context=MeterContext(90, time_text="2 s", place_key="4"),
            beside=True,
        ).plain.splitlines()
        for room in (2, 3, 9, 30)
    }
    assert lines[9][0] == "Limits          3 of 3 met; 2 more limits in Findings (4)"
    assert lines[30][-2:] == ["", "Time            2 s"]
    assert lines[9] == lines[30][:2], "in few lines the header of the page has the time"
    assert lines[3] == lines[9][:2], "no blank line without the time below it"
    whole = brief_run_text(RunBrief(DETAIL, None, (), verdicts[:1]), [], 90, 9, beside=True).plain
    assert whole.splitlines()[0] == "Limits          1 of 1 met", "where all are shown nothing is said of others"


def test_numbers_of_people_stand_for_those_of_their_records():
    detail = replace(DETAIL, records=RecordCount(90, "person-years", RecordCount(40, "people")))

    def row(family, method, measure, value, **params):
        return Row(family, method, measure, "", "synthetic", None, None, value, params=params)

    rows = [
        row("risk", "identification", "expected_match_risk", 9.0),
        row("risk", "identification", "expected_match_risk", 4.0, by="unit"),
        row("risk", "attribute", "risk", 7.0),
    ]
    lines = FullRunDetail(detail, "state done", (), rows, {}, (("state", "done"),), "4").to_lines(40).plain.splitlines()
    listed = [line.split() for line in lines]
    assert "Can people be found?  of 40 people" in lines
    assert ["number", "release", "share"] in listed
    assert ["on", "average", "4", "10", "%"] in listed
    assert "9" not in [word for words in listed for word in words], "people stand for their records"
    assert ["of", "90", "person-years", "release", "share"] in listed, "what counts records says so"
    at = lines.index("Are sensitive values learnt?")
    assert lines[at - 1] == "", "a blank line is between two questions"
    assert len({line.rindex("%") for line in lines if line.endswith("%")}) == 1, "shares stand below each other"
    assert lines[-1] == "More: Numbers, in Findings (4)"
    assert {line.index(word) for line in lines for word in ("done", "survey.csv") if word in line} == {10}


def test_a_long_name_of_a_meter_goes_on_below_and_is_never_cut():
    ratio = Verdict("risk.identification.largest_expected_match_risk", "", None, "max_ratio", 0.2, 0.0298, None, "met")
    for width in (76, 60):
        first, *rest = (line.plain.rstrip() for line in meter_lines([ratio], MeterContext(90), width))
        assert "…" not in first
        assert "2.98 % of raw data" in first
        assert "of raw data" not in first.partition("of raw data")[2], "of what it is a ratio is said once"
        name = " ".join([first.partition("├")[0].partition("2.98")[0][2:].strip(), *map(str.strip, rest)]).strip()
        assert name == "People found on average, best variables"


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


PHASES = (
    TaskPhase("fit", 2, 2, 20.0, 265_000_000),
    TaskPhase("draw", 10, 5, 60.0, 0),
    TaskPhase("study", 4, 0, 0.0, 0),
)


def test_bars_of_a_run_that_goes_on_are_what_is_done_and_those_of_an_ended_one_the_time():
    said, fit, draw, study, now = [
        line.plain for line in task_lines(PHASES, [NamedTask("drawing dataset 6", None)], 16, 90, 9)
    ]
    assert said.startswith("Tasks           7 of 16 done; bars: share done")
    assert [line.count("━") for line in (fit, draw, study)] == [24, 12, 0]
    assert "5 of 10" in draw
    assert now == "Now             drawing dataset 6"
    ended = [replace(one, n_done=one.n_tasks) for one in PHASES[:2]]
    said, fit, draw, longest = [
        line.plain for line in task_lines(ended, [NamedTask("drawing dataset 2", 9.0)], 16, 90, 9)
    ]
    assert said.startswith("Tasks           12 done, 1 min of computing; bars: share of the time")
    assert [line.count("━") for line in (fit, draw)] == [6, 18]
    assert longest == "Longest tasks   9.0 s  drawing dataset 2"


@pytest.mark.parametrize("width", [24, 40, 60, 94])
def test_no_line_of_tasks_is_wider_than_its_place_and_none_is_told_in_two_lines(width):
    named = [NamedTask("measuring Membership inference of a rather long name, all datasets", 7.0)]
    assert max(len(line.plain) for line in task_lines(PHASES, named, 16, width, 20)) <= max(width, 54)
    assert task_lines(PHASES, named, 16, width, 2) == []
    assert len(task_lines(PHASES, named, 16, width, 3)) == 3


def test_a_task_without_room_loses_its_last_words_and_is_not_cut():
    named = [NamedTask("studying Uncertainty of the intruder's knowledge, points 3 to 4", 29.1)]
    *_, last = task_lines(PHASES, named, 16, 78, 5)
    assert last.plain.endswith("studying Uncertainty of the intruder's knowledge")
    assert "…" not in last.plain


def test_tasks_of_the_same_words_are_one_and_those_computed_now_come_alone():
    recipe = Recipe.from_toml(find_recipe("randhie").text)
    ended = [TaskRow(n, f"measure/0/{n}", "measure", "done", 1, 0, 0, "", 2.0, None, "", None) for n in (1, 2)]
    whole = [TaskRow(n, f"measure/0/block/{n}", "measure", "done", 1, 0, 0, "", 1.5, None, "", None) for n in (3, 4)]
    first, *_ = tasks_to_name([*ended, *whole], recipe)
    assert first.text.endswith("all datasets, 2 tasks")
    assert first.seconds == 3.0
    running = replace(ended[0], key="study/0/2-3", state="running")
    assert [one.text for one in tasks_to_name([*whole, running], recipe)] == [
        "studying Uncertainty of the intruder's knowledge, points 3 to 4"
    ]


def test_a_number_has_a_line_for_each_variable_and_not_for_each_setting():
    rows = [
        Row(
            "risk", "identification", "true_match_rate", "", "release", None, None, value, params={"radius": {"age": n}}
        )
        for n, value in ((1, 0.5), (2, 0.7), (3, 0.9))
    ]
    text = FullRunDetail(DETAIL, "", (), rows, {}).to_lines(56).plain
    assert text.count("People found for certain") == 1
    assert FullRunDetail(DETAIL, "", (), rows, {}).to_lines(100).plain.count("People found for certain") == 3


def test_a_gauge_can_be_read_or_is_left_out():
    """Gauges of 5 and 7 cells were blank beside their numbers."""
    assert all("■" in draw_gauge(verdict("met", 0.09), "", width).plain for width in GAUGES if width)
    assert GAUGES[-1] == 0


def test_lines_that_are_left_show_other_limits_each_variable_once():
    gap = "utility.ecdf.max_abs_difference"
    shown = [replace(verdict("met", 0.01), value=gap, target=name) for name in ("age", "pay", "pay", "town")]
    chosen = choose_metered(shown, 3)
    assert len(chosen) == 1
    more = other_metered(shown, chosen, 9)
    assert sorted(one.target for one in (*chosen, *more)) == ["age", "pay", "town"]
    assert other_metered(shown, chosen, 0) == []
