"""Best strategy of an attack, chosen on one half of the people and judged on the other.

An intruder who may ignore some known variables has several strategies, and the largest success of many is large by chance. So people
and controls
are divided into halves at random. The strategy with the largest excess on one half is judged on the other half, and the reverse. No guess
counts that had a part in its own choice, so that the excess is without bias, and its interval is that of a single attack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ..adversary.permuted import exact_p_value
from ..data.arrays import Booleans, Floats, Integers
from ..data.microdata import Microdata
from ..data.rows import distinct_rows
from ..matching.strategies import VALUE_TOLERANCE, IntruderStrategy, Subset
from ..methods.outputs import Label, Output, Question, RiskOutput
from ..methods.results import Estimate
from ._attack import (
    DETECTABLE_ADDED,
    LARGEST_ADDED,
    LARGEST_EXCESS,
    AddedSuccess,
    AttackResult,
    SuccessRate,
    residual_output,
    residual_risk,
)
from ._attacked_records import draw_half

MAX_STRATEGIES = 16
"""Strategies that are tried, at most."""


def largest_excess_outputs(attack: str, questions: tuple[Question, ...], levers: tuple[str, ...]) -> tuple[Output, ...]:
    """Return the outputs of the intruder who ignores what misleads, beside the ``attack_outputs`` of an ``attack``."""
    return (
        residual_output(
            LARGEST_EXCESS,
            "excess risk by the variables that the intruder does best to use, chosen on other people",
            short="largest excess",
            detectable="detectable_excess",
            risk=RiskOutput(questions=questions, never_falls_with_knowledge=True),
            label=Label(
                f"{attack.capitalize()}: excess, best intruder",
                f"An intruder who ignores what misleads the {attack} attack gains {{value}} of the remaining risk for people in the data.",
                "Good is 0 %: members are as safe as people outside the data.",
                "The best choice of variables discloses more about the release's own people than about others.",
                levers,
                counts="share",
                baseline="as safe as people outside the data",
            ),
        ),
        residual_output(
            LARGEST_ADDED,
            "added risk by the variables that the intruder does best to use, chosen on other people",
            short="largest added",
            detectable=DETECTABLE_ADDED,
            risk=RiskOutput(gate_reference="chance", questions=questions),
            label=Label(
                f"{attack.capitalize()}: added, best intruder",
                f"By the release, the best {attack} attack gains {{value}} of the remaining risk for members beyond others.",
                "Good is 0 %: the release adds no more for members than for people outside the data.",
                "The best choice of variables discloses more about the release's own people than about others.",
                levers,
                counts="share",
                baseline="no more for members than for others",
            ),
        ),
    )


def is_every_subset_tried(variables: int) -> bool:
    """Return whether all subsets of this number of known variables are few enough to try."""
    return 1 << variables <= MAX_STRATEGIES


def subsets_to_try(sides: Sequence[Sequence[str]]) -> list[Subset]:
    """Return which of the variables that the intruder may ignore are used: at most ``MAX_STRATEGIES`` subsets, all of the variables first.

    ``sides`` are these variables by the place that they are known from. Up to 4 of them every subset is tried. Of more these are tried:
    all, none, all of
    one side, all but one, and single ones.
    """
    names = [name for side in sides for name in side]
    if is_every_subset_tried(len(names)):
        masks = sorted(range(1 << len(names)), key=lambda mask: -mask.bit_count())
        return [frozenset(name for bit, name in enumerate(names) if mask >> bit & 1) for mask in masks]
    every = frozenset(names)
    some = [every, frozenset[str](), *map(frozenset, sides), *(every - {name} for name in names)]
    return list(dict.fromkeys([*some, *(frozenset((name,)) for name in names)]))[:MAX_STRATEGIES]


def kept_variables(confidential: Microdata, released: Microdata, names: Sequence[str]) -> Subset:
    """Return the variables whose values together are the same in both tables, in whatever order their records are: what the release keeps.

    A variable that was shuffled has the same values by itself, so the largest set is taken of those that start at one variable and add
    others.
    """
    if len(confidential) != len(released):
        return frozenset()
    codes = {name: codes for name in names if (codes := _codes_if_equal(confidential, released, name)) is not None}
    best: list[str] = []
    for first in codes:
        chosen = list[str]()
        both = np.zeros(2 * len(released), dtype=np.int64)
        for name in (first, *(one for one in codes if one != first)):
            joint = distinct_rows([both, codes[name]], len(both)).combination_of
            if _has_equal_halves(joint):
                chosen, both = [*chosen, name], joint
        best = max(best, chosen, key=len)
        if len(best) == len(codes):
            break
    return frozenset(best)


def _codes_if_equal(confidential: Microdata, released: Microdata, name: str) -> Integers | None:
    """Return codes of a variable in both tables, one after the other, (2n,); None where their values are not the same."""
    columns = [data.frame[name].astype("str" if data.schema[name].kind.has_levels else "object") for data in (confidential, released)]  # fmt: skip
    codes = pd.factorize(pd.concat(columns, ignore_index=True), use_na_sentinel=False)[0].astype(np.int64)
    return codes if _has_equal_halves(codes) else None


def _has_equal_halves(codes: Integers) -> bool:
    """Return whether each code, (2n,), is as frequent in the first half as in the second."""
    width, n = int(codes.max(initial=0)) + 1, len(codes) // 2
    return bool((np.bincount(codes[:n], minlength=width) == np.bincount(codes[n:], minlength=width)).all())


@dataclass(frozen=True, eq=False)
class CrossFittedChances:
    """Chances of people (q,) and of controls (c,) by the strategy that is best for the other half.

    own: chance that the guess about each person is right, (q,)
    controls: that chance for each control, (c,)
    chosen: strategy that is used for the first half of the people, and for the second one
    first_half: who of the people (q,) and of the controls (c,) is in the first half
    """

    own: Floats
    controls: Floats
    chosen: tuple[int, int]
    first_half: tuple[Booleans, Booleans]


def cross_fit_strategies(own: Floats, controls: Floats, rng: np.random.Generator) -> CrossFittedChances:
    """Return each person's chance by the strategy that is best on the half without that person.

    Args:
        own: the chance that the guess about a person of the data is right, by strategy, (s, q).
        controls: that chance for control records, (s, c).
        rng: divides both into halves.

    Of strategies that are equally good the first is taken. With fewer than two people or controls there are no halves, and the first strategy is taken.
    """
    if len(own) == 1 or min(own.shape[1], controls.shape[1]) < 2:
        everybody = np.ones(own.shape[1], dtype=np.bool_), np.ones(controls.shape[1], dtype=np.bool_)
        return CrossFittedChances(own[0], controls[0], (0, 0), everybody)
    parts = [draw_half(values.shape[1], rng) for values in (own, controls)]
    chosen = tuple(
        _best_strategy_index(own[:, inside[0]], controls[:, inside[1]]) for inside in (parts, [~one for one in parts])
    )
    met = (chosen[1], chosen[0])  # whoever is in the first half meets the strategy that the second half chose
    halves = parts[0], parts[1]
    return CrossFittedChances(*_chances_by_half(own, controls, halves, met), met, halves)


def _chances_by_half(
    own: Floats, controls: Floats, first_half: tuple[Booleans, Booleans], chosen: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Return the chances of people (q,) and of controls (c,) by the strategy that each half meets, of those by every strategy, (s, q) and (s, c)."""
    sides = zip((own, controls), first_half, strict=True)
    people, others = (np.where(inside, values[chosen[0]], values[chosen[1]]) for values, inside in sides)
    return people, others


def _best_strategy_index(own: Floats, controls: Floats) -> int:
    """Return the strategy with the largest excess; of those with the same excess the first."""
    success, control = own.mean(axis=1), np.minimum(controls.mean(axis=1), 1.0)
    excess = [residual_risk(a, c) if c < 1 else -np.inf for a, c in zip(success, control, strict=True)]
    return int(np.flatnonzero(np.asarray(excess) >= max(excess) - VALUE_TOLERANCE)[0])


def largest_excess_estimates(
    own: Floats,
    controls: Floats,
    strategies: Sequence[IntruderStrategy],
    rng: np.random.Generator,
    *,
    n_strategies: int,
    without: tuple[Floats, Floats],
    target: str = "",
    params: Mapping[str, Any],
) -> tuple[Estimate, Estimate]:
    """Return the outputs of ``largest_excess_outputs`` from the chances of people, (s, q), and of controls, (s, c), by ``strategies``.

    Args:
        own: chances of people to be guessed right with the release.
        controls: those chances for controls.
        strategies: what is used by each of the s strategies.
        rng: divides people and controls into halves.
        n_strategies: how many strategies there are, tried or not: the reason says when they are more.
        without: the chances of people (q,) and of controls (c,) without the release, by all that is known: how easy each is to guess
            anyway.
        target: the variable that the estimates are about; empty for none.
        params: what distinguishes the estimates from others.
    """
    best = cross_fit_strategies(own, controls, rng)
    result = AttackResult(
        SuccessRate(float(np.sum(best.own)), len(best.own)),
        None,
        SuccessRate(float(np.sum(best.controls)), len(best.controls)),
        p_value=exact_p_value(best.own, best.controls, rng),
    )
    tried = f" ({len(own)} of {n_strategies:,} choices are tried)" if len(own) < n_strategies else ""
    excess = result.excess_estimate(target, _strategies_text(strategies, best) + tried, dict(params))
    # the strategy of which the release adds most may be another one than that of the largest excess
    stream = rng.spawn(1)[0]
    gained = cross_fit_strategies(own - without[0], controls - without[1], stream)
    met = _chances_by_half(own, controls, gained.first_half, gained.chosen)
    added = AttackResult(
        SuccessRate(float(np.sum(met[0])), len(met[0])),
        None,
        SuccessRate(float(np.sum(met[1])), len(met[1])),
        added_success=AddedSuccess.from_differences(gained.own, gained.controls, stream),
    ).added_risk_estimate(target, _strategies_text(strategies, gained) + tried, dict(params))
    return replace(excess, measure=LARGEST_EXCESS), replace(added, measure=LARGEST_ADDED)


def _strategies_text(strategies: Sequence[IntruderStrategy], best: CrossFittedChances) -> str:
    one, two = (strategies[at] for at in best.chosen)
    return one.description if one == two else f"{one.description}; of the other half {two.description}"
