"""What the summary of a run says of models that break their rules."""

from __future__ import annotations

from sfumato.engine.methods.results import Diagnostic
from sfumato.workspace.reporting.diagnostics import broken_rule_lines

SHIFT = "at most 0.5"


def test_the_worst_parameter_of_each_broken_rule_is_named() -> None:
    found = [
        Diagnostic("prior_shift", "age", 2.0, SHIFT, passed=False, target="income"),
        Diagnostic("prior_shift", "region", 17.7, SHIFT, passed=False, target="income"),
        Diagnostic("prior_weight", "age", 0.1, SHIFT, passed=True, target="income"),
        Diagnostic("effective_sample_size", "alpha", 120.0, "at least 400", passed=False, target="days"),
        Diagnostic("effective_sample_size", "beta", 90.0, "at least 400", passed=False, target="days"),
        Diagnostic("autocorrelation_time", "alpha", 50.0, target="days"),
    ]
    assert broken_rule_lines(found) == [
        "income: prior_shift of region is 17.7, at most 0.5, and 1 more",
        "days: effective_sample_size of beta is 90, at least 400, and 1 more",
    ]


def test_models_that_keep_their_rules_need_no_line() -> None:
    assert broken_rule_lines([Diagnostic("prior_shift", "age", 0.1, SHIFT, passed=True, target="income")]) == []
