"""A run in full, as it stands beside the list of runs."""

from sfumato.engine.thresholds import Verdict
from sfumato.tui.widgets.run_detail import WholeRun
from sfumato.workspace.views.run_detail import RunDetail

DETAIL = RunDetail(7, "survey.csv", 90, 3, 1, False, None, (), (), ())
MATCH = "risk.identification.true_match_rate"


def verdict(outcome, observed, **params):
    return Verdict(MATCH, "", None, "max", 0.1, observed, None, outcome, "", params)


def said(*verdicts, width=60):
    return WholeRun(DETAIL, "state done", verdicts, (), {"risk.identification": {"radius": None}}).lines(width).plain


def test_verdicts_on_two_uses_of_a_measure_are_told_apart_and_failures_come_first():
    met = verdict("pass", 0.01, radius={"income": "5%"})
    failed = verdict("fail", 0.3, radius={"income": "20%"})
    text = " ".join(said(met, failed).split())
    assert f"✗ {MATCH} (income ±20%): 0.3" in text
    assert f"✓ {MATCH} (income ±5%): 0.01" in text
    assert text.index("✗") < text.index("✓")


def test_no_line_is_wider_than_asked_and_none_is_cut():
    lines = said(*[verdict("fail", 0.3, radius={f"expenditure_of_household_{n}": "20%"}) for n in range(9)], width=44)
    assert max(map(len, lines.splitlines())) <= 44
    assert "…" not in lines
    assert lines.count("✗") == 9
