"""A run in full, as it stands beside the list of runs."""

from dataclasses import replace

from sfumato.engine.recipe.thresholds import Verdict
from sfumato.tui.runs.run_detail import FullRunDetail
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
    text = " ".join(detail_text(met, failed).split())
    assert "✗ Only match is the right one (income within 20%): 27 of 90 (30 %), at most 10 %" in text
    assert "✓ Only match is the right one (income within 5%): 0.9 of 90 (1 %), at most 10 %" in text
    assert text.index("✗") < text.index("✓")


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
