"""Warnings about thresholds that are probably mistakes: on the wrong side, beyond the range of the measure, or
impossible to fail.

A recipe may have them, since its owner decides; whoever sets or runs one is warned.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..methods.outputs import Output
from .thresholds import INSTEAD, Bound, Threshold, threshold_output

MOST_PER_CENT = 100.0


def natural_bound(output: Output) -> Bound:
    """Return the side of the usual limit: "min" where more is better, else "max", also where 1 is best."""
    return "min" if output.goal == "high" else "max"


def wrong_side_warning(output: Output, bound: Bound) -> str:
    """Return a warning where a limit on this side would fail good values and pass bad ones; empty otherwise."""
    natural = natural_bound(output)
    if output.goal in ("none", "one") or (bound == "min") == (natural == "min"):
        return ""
    better = "higher" if output.goal == "high" else "lower"
    return f"{better} is better: did you mean {natural}?"


def beyond_range_warning(output: Output, bound: Bound, limit: float) -> str:
    """Return a warning where no value can reach this limit; empty where one can."""
    low, high = output.range
    if bound == "max_ratio":
        positive = low is not None and low >= 0
        return "a ratio of values that are never negative is at least 0" if positive and limit < 0 else ""
    if bound == "max_increase":
        return _beyond_difference_warning(output, limit)
    if (low is None or limit >= low) and (high is None or limit <= high):
        return ""
    # A share may have been meant in per cent.
    meant = limit / MOST_PER_CENT
    asked = f": {meant:g}?" if (low, high) == (0.0, 1.0) and 1 < limit <= MOST_PER_CENT else f", not {limit:g}"
    between = output.range_words if low is None or high is None else f"between {low:g} and {high:g}"
    return f"{_value_noun(output)} is {between}{asked}"


def _beyond_difference_warning(output: Output, limit: float) -> str:
    """Return a warning where no two values differ by this limit; empty where some can."""
    low, high = output.range
    if low is None or high is None or abs(limit) <= high - low:
        return ""
    asked = f": {limit / MOST_PER_CENT:g}?" if (low, high) == (0.0, 1.0) and 1 < limit <= MOST_PER_CENT else ""
    return f"two values between {low:g} and {high:g} differ by at most {high - low:g}{asked}"


def never_computed_warning(output: Output, bound: Bound) -> str:
    """Return a warning where a ratio of possibly negative values would not be computed; empty otherwise."""
    low = output.range[0]
    if bound == "max_ratio" and (low is None or low < 0):
        return f"a ratio says nothing of a value that may be negative, and is not computed; {INSTEAD}"
    return ""


def never_fails_warning(output: Output, bound: Bound, limit: float) -> str:
    """Return a warning where every value satisfies a limit at the end of the range; empty otherwise."""
    low, high = output.range
    if bound == "max_increase" and low is not None and high is not None and limit == high - low:
        return f"two values between {low:g} and {high:g} never differ by more: it never fails"
    if bound == "max" and high is not None and limit == high:
        return f"{_value_noun(output)} is never above {high:g}: it never fails"
    if bound == "min" and low is not None and limit == low:
        return f"{_value_noun(output)} is never below {low:g}: it never fails"
    return ""


def _value_noun(output: Output) -> str:
    return "a share" if output.unit == "share" else "this value"


def threshold_warnings(thresholds: Sequence[Threshold]) -> tuple[str, ...]:
    """Return the warnings about a recipe's thresholds with their places: ``threshold[1].max: higher is better ...``."""
    said = []
    for index, one in enumerate(thresholds):
        output = threshold_output(one.value)
        if output is None:
            continue
        problems = (
            wrong_side_warning(output, one.bound),
            beyond_range_warning(output, one.bound, one.limit),
            never_fails_warning(output, one.bound, one.limit),
            never_computed_warning(output, one.bound),
        )
        said += [f"threshold[{index}].{one.bound}: {problem}" for problem in problems if problem]
    return tuple(said)
