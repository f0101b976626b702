"""Moves of levers towards the limits that a plan misses: what the measure's label advises, then the step that makes its
variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..methods.levers import Advice, Turn
from ..methods.registry import output_by_key
from ..recipe.thresholds import Verdict
from .space import LeverMove, MovesByLimit, SearchLever

DIRECTION_OF_TURN: dict[Turn, int] = {"more": 1, "less": -1, "on": 1, "other": 0}
UTILITY_FAMILIES = ("utility", "quality")


def relative_miss(verdict: Verdict) -> float:
    """Return by how much a value misses its limit, as a share between 0 (met) and 1 (not computed).

    The distance d in units of the limit becomes d / (1 + d).
    """
    if verdict.margin is None:
        return 1.0
    if verdict.margin >= 0:
        return 0.0
    size = -verdict.margin / max(abs(verdict.limit), 1e-9)
    return size / (1 + size)


def guided_moves(levers: Sequence[SearchLever], verdicts: Sequence[Verdict]) -> MovesByLimit:
    """Return the moves of levers that may meet the missed limits, by limit, with the largest miss first and its
    strongest move first.

    Empty where every limit is met.
    """
    failing = sorted((one for one in verdicts if relative_miss(one) > 0), key=lambda one: -relative_miss(one))
    found: list[tuple[LeverMove, ...]] = []
    for verdict in failing:
        # Of two limits that ask for opposite moves of a lever the one of the larger miss decides.
        heard = {move for own in found for move in own}
        moves = dict.fromkeys(_moves_for_verdict(levers, verdict))
        if own := tuple((at, by) for at, by in moves if (at, by) not in heard and (at, -by) not in heard):
            found.append(own)
    return tuple(found)


def _moves_for_verdict(levers: Sequence[SearchLever], verdict: Verdict) -> Iterator[LeverMove]:
    """Yield the moves for one limit: what its label advises, then the levers of the step that makes its variable."""
    output = output_by_key(verdict.value)
    own = [at for at, lever in enumerate(levers) if not lever.variables or _makes_target(lever, verdict.target)]
    for advice in () if output is None else output.label.levers:
        for setting, turn in (advice.turns if isinstance(advice, Advice) else {}).items():
            for at in own:
                if levers[at].setting == setting:
                    yield (
                        at,
                        DIRECTION_OF_TURN[turn] * (1 if levers[at].later_is_larger else -1)
                        if levers[at].later_protects_more
                        else 0,
                    )
    # Where utility is missed, less protection is what may help.
    safer = -1 if verdict.value.partition(".")[0] in UTILITY_FAMILIES else 1
    for at in own:
        if levers[at].variables and verdict.target:
            yield at, safer if levers[at].later_protects_more else 0


def _makes_target(lever: SearchLever, target: str) -> bool:
    """Return whether the steps of a lever make the variable of a verdict; True for a verdict on no variable."""
    return not target or target in lever.variables
