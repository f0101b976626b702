"""A step of a plan as a sentence: what it does to which variable, and why it is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.workspace.reporting.plan_steps import StepDescription

REASONS = {
    "synthesis": "the values as they were recorded are not released; the measures tell what the drawn ones still show",
    "anonymisation": "coarser or hidden values tell fewer people apart; the measures tell what they still show",
    "risk": "it tells what somebody can learn about a person from the release",
    "utility": "it tells how far results from the release are from those of the confidential data",
    "quality": "it tells how good the released data are by themselves",
    "study": "it tells how a number moves if the intruder knows more, or the plan is another",
    "threshold": "a run says whether it is met, and the gate counts what is not",
}
"""Why a plan has a step, by its section; of measures by their family."""


def step_sentence(section: str, words: StepDescription, step: Mapping[str, Any]) -> str:
    """Return what a step does in a line: ``draws income by Classification and regression trees, given age, sex``."""
    if section == "settings":
        return "; ".join(filter(None, (f"reads {words.name}" if words.name else "", words.settings)))
    if section != "synthesis" or "method" not in step:
        return ": ".join(filter(None, (words.name, words.settings)))
    facts = dict(words.facts)
    target, given = facts.get("replaces", ""), facts.get("predictors", "")
    # The settings begin with the target and hold the predictors, which the sentence has already.
    others = [one for one in words.settings.split("; ") if one not in ("", target, f"predictors {given}")]
    draws = f"draws {target or 'the variables'} by {words.name}" + (f", given {given}" if given else "")
    return "; ".join([draws, *others])


def step_reason(section: str, step: Mapping[str, Any]) -> str:
    """Return why a plan has a step; empty for the settings and for methods of an unknown family."""
    family = str(step.get("method", "")).partition(".")[0] if section == "measure" else section
    return REASONS.get(family, "")
