"""Which levers the limits that a plan misses ask for: those that turn what the measure's label advises, then those of the step that makes its variable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..methods.levers import Advice, Turn
from ..methods.registry import output_called
from ..recipe.thresholds import Verdict
from .space import Asks, Lever, Move

WAYS: dict[Turn, int] = {"more": 1, "less": -1, "on": 1, "other": 0}
UTILITY = ("utility", "quality")


def missed_by(verdict: Verdict) -> float:
    """How far a value misses its limit, between 0 and 1 by its distance in units of the limit; 1 where it was not computed, 0 where it meets it."""
    if verdict.margin is None:
        return 1.0
    if verdict.margin >= 0:
        return 0.0
    size = -verdict.margin / max(abs(verdict.limit), 1e-9)
    return size / (1 + size)


def guided_moves(levers: Sequence[Lever], verdicts: Sequence[Verdict]) -> Asks:
    """How to turn which levers where a release has these verdicts: by missed limit, that of the largest miss first, the strongest move first.

    Empty where every limit is met. Of two limits that ask for opposite ways of a lever the one of the larger miss is heard.
    """
    failing = sorted((one for one in verdicts if missed_by(one) > 0), key=lambda one: -missed_by(one))
    found: list[tuple[Move, ...]] = []
    for verdict in failing:
        heard = {move for own in found for move in own}
        moves = dict.fromkeys(_asked(levers, verdict))
        if own := tuple((at, by) for at, by in moves if (at, by) not in heard and (at, -by) not in heard):
            found.append(own)
    return tuple(found)


def _asked(levers: Sequence[Lever], verdict: Verdict) -> Iterator[Move]:
    """The moves that one limit asks for: what its label advises, then the levers of the step that makes its variable."""
    output = output_called(verdict.value)
    own = [at for at, lever in enumerate(levers) if not lever.variables or _makes(lever, verdict.target)]
    for advice in () if output is None else output.label.levers:
        for setting, turn in (advice.turns if isinstance(advice, Advice) else {}).items():
            for at in own:
                if levers[at].setting == setting:
                    yield at, WAYS[turn] * (1 if levers[at].upward else -1) if levers[at].rising else 0
    safer = -1 if verdict.value.partition(".")[0] in UTILITY else 1
    for at in own:
        if levers[at].variables and verdict.target:
            yield at, safer if levers[at].rising else 0


def _makes(lever: Lever, target: str) -> bool:
    """Whether the steps of a lever make the variable of a verdict, or any where it is about none."""
    return not target or target in lever.variables
