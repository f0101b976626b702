"""A number explained: its verdict with the state first, and what the number is."""

from __future__ import annotations

from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.thresholds import Verdict
from sfumato.workspace.reporting.explanation import definition_facts, describe_measure, verdict_line, verdict_text
from sfumato.workspace.reporting.words import all_parameters

KEY = "risk.identification.true_match_rate"


def verdict(**more: object) -> Verdict:
    given = {
        "value": KEY,
        "target": "",
        "level": None,
        "bound": "max",
        "limit": 0.01,
        "observed": 0.0044,
        "margin": 0.0056,
    }
    return Verdict(**{**given, "outcome": "met", **more})  # type: ignore[arg-type]


def test_a_verdict_is_one_line_state_name_value_limit() -> None:
    said = "88 of 20,000 (0.44 %), at most 1 %, 0.56 points inside the limit"
    assert verdict_line(verdict(), "People found for certain", 20_000) == f"met: People found for certain, {said}"
    assert verdict_text(verdict(), 20_000).endswith(f"met: {said}")


def test_what_was_not_computed_says_why_and_no_value() -> None:
    one = verdict(observed=None, margin=None, outcome="not computed", reason="no record matches")
    assert verdict_line(one, "People found for certain") == (
        "not computed: People found for certain, at most 1 %; no record matches"
    )


def test_a_definition_names_the_method_its_source_settings_and_key() -> None:
    row = Row(
        "risk", "identification", "true_match_rate", "", "synthetic", None, None, 0.0044, params={"known": ["age"]}
    )
    facts = definition_facts(describe_measure(row.key), row.target, row.level, list(all_parameters(row.params)))
    names = [name for name, _ in facts]
    assert names[0] == "definition"
    assert names[-1] == "key"
    assert ("known", "age") in facts
    assert ("method", "Identification risk") in facts
    assert all(text for _, text in facts)
    gone = Row("risk", "no_such_method", "share", "", "synthetic", None, None, 0.1)
    assert ("method", "a method that this version does not have") in definition_facts(
        describe_measure(gone.key), "", None
    )
