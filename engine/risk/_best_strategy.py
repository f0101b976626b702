"""Best strategy of an attack, chosen on one half of the people and evaluated on the other.

An intruder who may ignore some known variables has several strategies, and the largest success of many is large by
chance. So people and controls are divided into random halves. The strategy with the largest excess on one half is
evaluated on the other, and vice versa. No guess takes part in its own choice, so that the excess is unbiased and its
interval is that of a single attack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ..adversary.permuted import UnitsOfBoth, exact_p_value
from ..data.arrays import Booleans, Floats, Integers
from ..data.intervals import SHARE
from ..data.microdata import Microdata
from ..data.rows import distinct_rows
from ..matching.strategies import VALUE_TOLERANCE, IntruderStrategy, Subset
from ..methods.outputs import BEST_PARTS, Label, Output, Question, RiskOutput
from ..methods.results import Estimate
from ._attack import (
    DETECTABLE_ADDED,
    LARGEST_ADDED,
    LARGEST_EXCESS,
    NO_GUESS,
    OUTSIDERS,
    AddedSuccess,
    AttackResult,
    SuccessRate,
    residual_output,
    residual_risk,
)
from ._attacked_records import draw_half_of_units

MAX_STRATEGIES = 16
"""Largest number of strategies that are tried."""


def largest_excess_outputs(
    attack: str, questions: tuple[Question, ...], levers: tuple[str, ...], scene: str = "", without: str = ""
) -> tuple[Output, ...]:
    """Return the declarations of the largest excess and added risk, beside the ``attack_outputs`` of an ``attack``.

    ``scene`` and ``without`` as there. The success rates behind the largest added risk are outputs too.
    """
    scene = f"{scene} He uses only the variables that help him, as tried on other people. {OUTSIDERS}".strip()
    return (
        residual_output(
            LARGEST_EXCESS,
            "excess risk by the variables that the intruder does best to use, chosen on other people",
            short="largest excess",
            detectable="detectable_excess",
            risk=RiskOutput(questions=questions, never_falls_with_knowledge=True),
            label=Label(
                f"Best {attack}: more than outsiders",
                f"On a scale from outsiders (0 %) to always right (100 %), the {attack} attack by its best variables reaches {{value}} on people inside.",
                "Good is 0 % or below: people in the data are as safe as outsiders.",
                "The best choice of variables discloses more about people in the data than about outsiders.",
                levers,
                counts="share",
                baseline="as safe as outsiders",
                scene=scene,
                term="largest excess risk, over the intruder's choice of variables",
            ),
        ),
        residual_output(
            LARGEST_ADDED,
            "added risk by the variables that the intruder does best to use, chosen on other people: "
            "((attack - attack without the release) - (control - control without it)) / (1 - control)",
            short="largest added",
            detectable=DETECTABLE_ADDED,
            risk=RiskOutput(gate_reference="chance", questions=questions),
            label=Label(
                f"Best {attack}: added by release",
                "With people in the data the release adds {value} {more} than with outsiders, as a share of the guesses about outsiders that fail with it.",
                "Good is 0 % or below: the release then helps no more with people in the data than with outsiders.",
                "The best choice of variables discloses more about people in the data than about outsiders.",
                levers,
                counts="share",
                baseline="the release tells no more about people in the data than about outsiders",
                scene=f"{scene} {without}".strip(),
                term="largest added risk, over the intruder's choice of variables",
            ),
        ),
        *(
            _rate_of_best(attack, scene, name, adds_most=measure == LARGEST_ADDED, outsiders=outsiders)
            for measure, names in BEST_PARTS.items()
            for name, outsiders in zip(names, (False, True), strict=True)
        ),
    )


def _rate_of_best(attack: str, scene: str, name: str, *, adds_most: bool, outsiders: bool) -> Output:
    """Return the declaration of a success rate of the best choice of variables, for people in the data or ``outsiders``."""
    whom, of = ("outsiders", "control records") if outsiders else ("people in the data", "the records of the data")
    title = f"{attack.capitalize()} adding most" if adds_most else f"Best {attack}"
    chosen = "of which the release adds most" if adds_most else "that help most"
    return Output(
        name,
        f"share of right guesses about {of}, by the variables {chosen}, chosen on other people",
        "none",
        "share",
        range=SHARE,
        short=name.replace("_", " "),
        estimated=True,
        label=Label(
            f"{title}: {'outsiders' if outsiders else 'people'}",
            f"By the variables {chosen}, {{value}} of the guesses about {whom} are right.",
            scene=scene,
        ),
    )


def is_every_subset_tried(variables: int) -> bool:
    """Return whether all subsets of this number of known variables are few enough to try."""
    return 1 << variables <= MAX_STRATEGIES


def subsets_to_try(sides: Sequence[Sequence[str]]) -> list[Subset]:
    """Return at most ``MAX_STRATEGIES`` subsets of the variables that the intruder may ignore, the full set first.

    ``sides`` are these variables by source. Up to 4 variables, all subsets are returned; otherwise all, none, all of
    one side, all but one, and single variables.
    """
    # The first of equally good subsets is taken: the order of the variables must not choose it.
    names = sorted(name for side in sides for name in side)
    if is_every_subset_tried(len(names)):
        masks = sorted(range(1 << len(names)), key=lambda mask: -mask.bit_count())
        return [frozenset(name for bit, name in enumerate(names) if mask >> bit & 1) for mask in masks]
    every = frozenset(names)
    some = [every, frozenset[str](), *map(frozenset, sides), *(every - {name} for name in names)]
    return list(dict.fromkeys([*some, *(frozenset((name,)) for name in names)]))[:MAX_STRATEGIES]


def kept_variables(confidential: Microdata, released: Microdata, names: Sequence[str]) -> Subset:
    """Return the variables whose joint values are the same in both tables, in any order of records."""
    if len(confidential) != len(released):
        return frozenset()
    codes = {name: codes for name in names if (codes := _codes_if_equal(confidential, released, name)) is not None}
    best: list[str] = []
    # A shuffled variable alone has the same values too, so the largest of the sets grown from each variable is taken.
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
    """Return the codes of a variable in both tables, concatenated, (2n,); None if the values differ."""
    columns = [data.frame[name].astype("str" if data.schema[name].kind.has_levels else "object") for data in (confidential, released)]  # fmt: skip
    codes = pd.factorize(pd.concat(columns, ignore_index=True), use_na_sentinel=False)[0].astype(np.int64)
    return codes if _has_equal_halves(codes) else None


def _has_equal_halves(codes: Integers) -> bool:
    """Return whether each code, (2n,), is equally frequent in both halves."""
    width, n = int(codes.max(initial=0)) + 1, len(codes) // 2
    return bool((np.bincount(codes[:n], minlength=width) == np.bincount(codes[n:], minlength=width)).all())


@dataclass(frozen=True, eq=False)
class CrossFittedChances:
    """Probabilities of a right guess with the strategy that is best on the other half.

    own: probability for each person, (q,)
    controls: probability for each control, (c,)
    chosen: strategies applied to the first and to the second half
    first_half: masks of the people, (q,), and controls, (c,), in the first half
    """

    own: Floats
    controls: Floats
    chosen: tuple[int, int]
    first_half: tuple[Booleans, Booleans]


def cross_fit_strategies(
    own: Floats, controls: Floats, rng: np.random.Generator, units: UnitsOfBoth | None = None
) -> CrossFittedChances:
    """Return each person's probability of a right guess with the strategy that is best on the other half.

    Of equally good strategies the first is chosen. The first is also used if a group has fewer than two members.

    Args:
        own: probability of a right guess about each person by strategy, (s, q).
        controls: the same for control records, (s, c).
        rng: divides both into halves.
        units: units of both, which stay whole.
    """
    if len(own) == 1 or min(own.shape[1], controls.shape[1]) < 2:
        everybody = np.ones(own.shape[1], dtype=np.bool_), np.ones(controls.shape[1], dtype=np.bool_)
        return CrossFittedChances(own[0], controls[0], (0, 0), everybody)
    of_both = (None, None) if units is None else (units.own, units.others)
    parts = [
        draw_half_of_units(values.shape[1], unit_of, rng)
        for values, unit_of in zip((own, controls), of_both, strict=True)
    ]
    # A side of one unit has an empty half.
    if not all(0 < one.sum() < len(one) for one in parts):
        everybody = np.ones(own.shape[1], dtype=np.bool_), np.ones(controls.shape[1], dtype=np.bool_)
        return CrossFittedChances(own[0], controls[0], (0, 0), everybody)
    chosen = tuple(
        _best_strategy_index(own[:, inside[0]], controls[:, inside[1]]) for inside in (parts, [~one for one in parts])
    )
    met = (chosen[1], chosen[0])  # whoever is in the first half meets the strategy that the second half chose
    halves = parts[0], parts[1]
    return CrossFittedChances(*_chances_by_half(own, controls, halves, met), met, halves)


def _chances_by_half(
    own: Floats, controls: Floats, first_half: tuple[Booleans, Booleans], chosen: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Return the probabilities of people (q,) and controls (c,) with the strategies ``chosen`` for each half."""
    sides = zip((own, controls), first_half, strict=True)
    people, others = (np.where(inside, values[chosen[0]], values[chosen[1]]) for values, inside in sides)
    return people, others


def _best_strategy_index(own: Floats, controls: Floats) -> int:
    """Return the first strategy with the largest excess."""
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
    units: UnitsOfBoth | None = None,
) -> tuple[Estimate, ...]:
    """Return the estimates of ``largest_excess_outputs``.

    Args:
        own: probability of a right guess about each person by strategy, (s, q).
        controls: the same for controls, (s, c).
        strategies: the s strategies.
        rng: divides people and controls into halves.
        n_strategies: number of possible strategies; the reason says if not all are tried.
        without: probabilities for people (q,) and controls (c,) without the release, with all known variables.
        target: guessed variable; empty for none.
        params: parameters of the estimates.
        units: units of both, where several records describe one.
    """
    best = cross_fit_strategies(own, controls, rng, units)
    of_own, of_controls = (None, None) if units is None else (units.own, units.others)
    result = AttackResult(
        SuccessRate.from_chances(best.own, of_own),
        None,
        SuccessRate.from_chances(best.controls, of_controls),
        p_value=exact_p_value(best.own, best.controls, rng, units=units),
    )
    tried = f" ({len(own)} of {n_strategies:,} choices are tried)" if len(own) < n_strategies else ""
    excess = result.excess_estimate(target, _strategies_text(strategies, best) + tried, dict(params))
    # the strategy of which the release adds most may be another one than that of the largest excess
    stream = rng.spawn(1)[0]
    gained = cross_fit_strategies(own - without[0], controls - without[1], stream, units)
    met = _chances_by_half(own, controls, gained.first_half, gained.chosen)
    rates = SuccessRate.from_chances(met[0], of_own), SuccessRate.from_chances(met[1], of_controls)
    said = _strategies_text(strategies, gained) + tried
    added = AttackResult(
        rates[0], None, rates[1],
        added_success=AddedSuccess.from_differences(gained.own, gained.controls, stream, units),
    ).added_risk_estimate(target, said, dict(params))  # fmt: skip
    found = [replace(excess, measure=LARGEST_EXCESS), replace(added, measure=LARGEST_ADDED)]
    for measure, sides, words in (
        (LARGEST_EXCESS, (result.attack, result.control), excess.reason),
        (LARGEST_ADDED, rates, said),
    ):
        for name, rate in zip(BEST_PARTS[measure], sides, strict=True):
            if not rate.guesses:
                found.append(Estimate.not_computed(name, NO_GUESS, target, **params))
            else:
                found.append(Estimate(name, rate.value, target, *rate.interval, reason=words, params=dict(params)))
    return tuple(found)


def _strategies_text(strategies: Sequence[IntruderStrategy], best: CrossFittedChances) -> str:
    """Return a description of the chosen strategies."""
    one, two = (strategies[at] for at in best.chosen)
    return one.description if one == two else f"{one.description}; with the other half of the people {two.description}"
