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
GROUPS = {
    "synthesis": "Draw",
    "anonymisation": "Recode and hide",
    "measure": "Measure",
    "study": "Study",
    "table": "Tables",
    "threshold": "Limits",
}
"""Heading of the steps of each section in the list."""
ALL_VARIABLES = "all variables"
READS = "reads "
DATA_AND_RELEASE = "Data and release"
"""Name of the settings of a plan that are no step."""


def step_cells(section: str, words: StepDescription, step: Mapping[str, Any]) -> dict[str, str]:
    """Return the cells of a step in the list. A drawn variable has its method, what it is drawn from and the settings
    in columns of their own; of other steps all stands in the first cell.
    """
    if section != "synthesis" or "method" not in step:
        said = step_sentence(section, words, step)
        whole = f"{DATA_AND_RELEASE}: {said.removeprefix(READS)}".removesuffix(": ") if section == "settings" else said
        return {"step": whole, "method": "", "from": "", "settings": ""}
    # It loads methods, which takes the app longer than to start.
    from sfumato.engine.methods.labels import short_method_title

    target, given, others = _draw_parts(words)
    return {
        "step": target or ALL_VARIABLES,
        "method": short_method_title(section, str(step["method"])) or words.name,
        "from": given,
        "settings": "; ".join(others),
    }


def step_sentence(section: str, words: StepDescription, step: Mapping[str, Any], title: str = "") -> str:
    """Return what a step does in a line: ``draws income by Classification and regression trees, given age, sex``.

    title: title of the variable that a step draws
    """
    if section == "settings":
        return "; ".join(filter(None, (f"{READS}{words.name}" if words.name else "", words.settings)))
    if section != "synthesis" or "method" not in step:
        return ": ".join(filter(None, (words.name, words.settings)))
    target, given, others = _draw_parts(words)
    said = f"{target} ({title})" if target and title else target or "the variables"
    draws = f"draws {said} by {words.name}" + (f", given {given}" if given else "")
    return "; ".join([draws, *others])


def _draw_parts(words: StepDescription) -> tuple[str, str, list[str]]:
    """Return the variables that a step draws, what they are drawn from, and its other settings."""
    facts = dict(words.facts)
    target, given = facts.get("replaces", ""), facts.get("predictors", "")
    # The settings begin with the target and hold the predictors.
    others = [one for one in words.settings.split("; ") if one not in ("", target, f"predictors {given}")]
    return target, given, others


def step_reason(section: str, step: Mapping[str, Any]) -> str:
    """Return why a plan has a step; empty for the settings and for methods of an unknown family."""
    family = str(step.get("method", "")).partition(".")[0] if section == "measure" else section
    return REASONS.get(family, "")
