"""What an intruder finds who knows some of the variables only: every subset of them at once, and what each variable adds.

Of p variables there are 2^p subsets; subset ``mask`` holds variable i where bit i of it is set. Candidates of a subset come from those of the
subset without its last variable: groups are split once for each subset, and no key is read twice.

The Shapley value of a variable is what it adds to the subsets of the others, averaged over the orders in which an intruder may come to know them (Shapley
1953): over all variables it sums to what knowing them all finds beyond knowing nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..arrays import Floats, Integers
from .matching import Exact, Matcher, Within, expected_match_risk, true_match_rate


def subset_risks(keys: Sequence[Exact | Within], shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Expected match risk and true match rate of each subset of p keys, (2^p,) and (2^p,), of ``shape`` confidential and released records."""
    expected, rate = np.zeros((2, 1 << len(keys)))
    order = sorted(
        range(len(keys)), key=lambda i: isinstance(keys[i], Within)
    )  # groups are split before windows are asked

    def walk(place: int, matcher: Matcher, windows: tuple[Within, ...], mask: int) -> None:
        if place == len(order):
            matches = matcher.match(windows)
            expected[mask], rate[mask] = expected_match_risk(matches), true_match_rate(matches)
            return
        key, with_it = keys[order[place]], mask | 1 << order[place]
        walk(place + 1, matcher, windows, mask)
        if isinstance(key, Exact):
            walk(place + 1, matcher.refined(key), windows, with_it)
        else:
            walk(place + 1, matcher, (*windows, key), with_it)

    walk(0, Matcher.of((), shape), (), 0)
    return expected, rate


def members(mask: int, names: Sequence[str]) -> list[str]:
    """The variables of a subset."""
    return [name for i, name in enumerate(names) if mask >> i & 1]


def without(variable: int, variables: int) -> Integers:
    """The subsets that lack a variable, ascending: (2^(p - 1),)."""
    masks = np.arange(1 << variables)
    return np.asarray(masks[masks >> variable & 1 == 0])


def added(values: Floats, variable: int) -> Floats:
    """What a variable adds to each subset that lacks it, (..., 2^(p - 1)), of values (..., 2^p)."""
    lacking = without(variable, _variables(values))
    return np.asarray(values[..., lacking | 1 << variable] - values[..., lacking])


def shapley(values: Floats, variable: int) -> Floats:
    """The Shapley value of a variable, (...), of values (..., 2^p)."""
    p = _variables(values)
    sizes = np.bitwise_count(without(variable, p).astype(np.uint64)).astype(np.int64)
    weights = np.array([1 / (p * math.comb(p - 1, size)) for size in range(p)])
    return np.asarray(added(values, variable) @ weights[sizes])


def _variables(values: Floats) -> int:
    return int(values.shape[-1]).bit_length() - 1
