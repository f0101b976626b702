"""Which epsilon keeps a measure within its limit, from its mean over datasets at each epsilon and the interval of that.

A point keeps to the limit where the whole 95 % interval does. Of what is kept (distances) the answer is the least epsilon from which
on all points do, of what is given away (errors of an attack, copies) the largest up to which all do. The points are so gone through from the safe end, and
the first that cannot be told to keep the limit ends it: however many points there are, an answer reaches past the first point whose
true mean is beyond the limit one time in forty at most (fixed-sequence testing; Maurer, Hothorn & Lehmacher 1995).

Without an interval, of one dataset at each epsilon, chance cannot be told from epsilon, and there is no answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from ..methods.results import Goal
from ..methods.rows import Row

Answer = Literal["least_epsilon", "largest_epsilon"]
State = Literal["within", "unclear", "beyond"]
NO_EPSILON = "no epsilon of the study keeps it within the limit"
ONE_DATASET = "one dataset at each epsilon cannot tell chance from epsilon: give the study replicates, 5 or more"
NO_DIRECTION = "more of them is neither better nor worse, noise makes more too: it has no limit to keep"


def answers(rows: Sequence[Row], asked: Mapping[str, Answer], goals: Mapping[str, Goal]) -> list[Row]:
    """Of each curve and measure with a limit, the epsilon that keeps to it. ``asked`` says which, by measure."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.params.get("limit") is not None:
            found.setdefault((row.measure, str(sorted(row.params.items(), key=str))), []).append(row)
    return [_answer(series, asked[measure], goals[measure]) for (measure, _), series in found.items()]


def _answer(rows: Sequence[Row], asked: Answer, goal: Goal) -> Row:
    like = replace(
        rows[0],
        measure=asked,
        level=None,
        value=None,
        lower=None,
        upper=None,
        baseline=None,
        unit="",
        status="not computed",
        params={**rows[0].params, "of": rows[0].measure},
    )
    if goal == "none":
        return replace(like, reason=NO_DIRECTION)
    computed = [row for row in rows if row.value is not None]
    if not computed:
        return replace(like, reason=rows[0].reason)
    if any(row.lower is None or row.upper is None for row in computed):
        return replace(like, reason=ONE_DATASET)
    limit = float(rows[0].params["limit"])
    points = sorted((row.level or 0.0, state_of(row, limit, goal)) for row in rows)
    value, remark = told(points, asked)
    if value is None:
        return replace(like, reason=remark or NO_EPSILON)
    return replace(like, value=value, status="computed", reason=remark)


def state_of(row: Row, limit: float, goal: Goal) -> State:
    """Whether a point keeps to the limit: with its whole interval, with none of it, or neither can be told."""
    if row.value is None or row.lower is None or row.upper is None:
        return "beyond"
    best, worst = (row.lower, row.upper) if goal == "low" else (-row.upper, -row.lower)
    limit = limit if goal == "low" else -limit
    return "within" if worst <= limit else "beyond" if best > limit else "unclear"


def told(points: Sequence[tuple[float, State]], asked: Answer) -> tuple[float | None, str]:
    """The answer of points, ascending, and what it leaves out: points beyond it that keep to the limit all the same."""
    onward = points[::-1] if asked == "least_epsilon" else points
    kept = 0
    while kept < len(onward) and onward[kept][1] == "within":
        kept += 1
    value = onward[kept - 1][0] if kept else None
    if kept == len(onward):
        return value, ""
    said = [f"at {onward[kept][0]:g} it cannot be told from the limit"] if onward[kept][1] == "unclear" else []
    again = sorted(level for level, state in onward[kept:] if state == "within")
    if again:
        listed = ", ".join(f"{level:g}" for level in again)
        # of what is kept a larger epsilon breaks the limit again; of what is given away a larger one is within it again
        said.append(f"at {listed} it is within{' too' if kept else ''}, but not at {onward[kept][0]:g}")
    return value, "; ".join(said)
