"""Numbers of people whom an intruder finds who may know any of some variables, some of them only roughly.

Who may know a set of variables chooses which of them to use (``sfumato.engine.matching.strategies``), so that the number
of a set is the largest over its subsets, dataset by dataset, as in ``risk.identification``: more knowledge never finds
fewer. A kept variable that is known within ``u`` is matched within a window of ``u`` around the confidential value, which
holds the own record. A wider window holds more records, so that the narrowest is the best, and less certainty never
finds more.

A drawn value misses the true one by chance: a narrow window misses the own record, and a wide one holds many others. Who
knows a drawn variable within ``u`` uses the window of at least ``u`` that finds most people, the same against everybody,
dataset by dataset (``best_window_counts``).

Bit i of a mask is set where variable i is known. Of p variables there are 2^p sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from ..adversary.kept_column_limits import KeptColumnLimits
from ..data.arrays import Floats
from ..data.microdata import Microdata
from ..errors import NotComputable
from ..matching.intruder import IntruderKnowledge
from ..matching.matching import ExactKey, WindowKey
from ..matching.radius import Radius
from ..matching.strategies import BestStrategy, MatchKey, MatchTargets, find_best_matches
from ..matching.unit_matching import UnitMatcher, find_best_unit_matches, own_units
from .intruder_knowledge import match_subsets, subset_risks, subset_risks_of_units

Windows = tuple[tuple[str, Radius], ...]
"""How near is a match for some drawn variables, by name."""


def largest_of_subsets(values: Floats) -> Floats:
    """Return for each set of p variables the largest value of its subsets, (2^p,), given the value of each set."""
    largest = np.array(values, dtype=np.float64)
    size = 1
    while size < len(largest):
        # The sets that differ in one variable stand in pairs, that with it second.
        pairs = largest.reshape(-1, 2, size)
        np.maximum(pairs[:, 1], pairs[:, 0], out=pairs[:, 1])
        size *= 2
    return largest


@dataclass(frozen=True)
class KnowledgeCounts:
    """People found by who may know each set of p variables: means over the released datasets, (2^p,) each.

    expected: people found on average by picking one of the matching records at random
    certain: people whose record is the only match
    few: people whom the limits on kept columns leave unprotected; empty without limits or kept columns
    windows: the windows that were tried; empty where the plan says how near is a match
    best_expected, best_certain: place in ``windows`` of those that find most people over all datasets, (2^p,) each
    """

    expected: tuple[float, ...]
    certain: tuple[float, ...]
    few: tuple[float, ...] = ()
    windows: tuple[Windows, ...] = ()
    best_expected: tuple[int, ...] = ()
    best_certain: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class KnownVariables:
    """Variables that an intruder may know, and how their values match.

    names: the p variables that he may know or not
    others: variables that he knows in any case, of which the best strategy of the full knowledge is used
    radius: tolerance of a match by variable; equality without one
    kept: variables that count as kept columns
    limits: limits on the people alone in kept columns; None without
    """

    names: tuple[str, ...]
    others: tuple[str, ...] = ()
    radius: Mapping[str, Radius] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    limits: KeptColumnLimits | None = None


def _keys_by_variable(
    confidential: Microdata,
    released: Microdata,
    names: Sequence[str],
    radius: Mapping[str, Radius],
    within: Mapping[str, float],
) -> dict[str, MatchKey]:
    """Return the key of each variable, those in ``within`` as windows of at least that half width.

    Raises NotComputable where records are not matched one to one.
    """
    tolerances = {name: radius[name] for name in names if name in radius}
    keys = IntruderKnowledge.from_variables(confidential, names, tolerances).keys_by_variable(released)
    rough = {name: Radius(within[name]) for name in names if within.get(name, 0.0) > 0}
    for name, key in IntruderKnowledge.from_variables(confidential, rough, rough).keys_by_variable(released).items():
        assert isinstance(key, WindowKey)
        keys[name] = _widened_window(keys[name], key)
    return keys


def _widened_window(key: MatchKey, rough: WindowKey) -> WindowKey:
    """Return the window that holds all that a key or a rough window holds."""
    if isinstance(key, ExactKey):
        return rough
    return WindowKey(np.fmin(key.lower, rough.lower), np.fmax(key.upper, rough.upper), rough.released)


def count_found_people(
    confidential: Microdata, released: Microdata, known: KnownVariables, within: Mapping[str, float], *, by_unit: bool
) -> KnowledgeCounts:
    """Count the people, or units, whom who may know each set of the variables finds in one dataset.

    within: half widths of what is known of numeric variables; the others are known as ``known`` says

    Raises NotComputable where records are not matched one to one, or units are not numbered.
    """
    keys = _keys_by_variable(confidential, released, (*known.names, *known.others), known.radius, within)
    own, shape = [keys[name] for name in known.names], (len(confidential), len(released))
    best: tuple[BestStrategy, BestStrategy]
    if by_unit:
        if confidential.units is None:
            raise NotComputable("every record is a unit of its own")
        ours, theirs = confidential.units, released.require_units()
        by_place = bool(confidential.schema.order)
        matcher = UnitMatcher(keys, ours, theirs, by_place=by_place, own=own_units(ours, theirs))
        best, number = find_best_unit_matches(matcher, np.arange(len(ours))), len(ours)
    else:
        rows = np.arange(len(confidential))
        targets = MatchTargets(rows, np.where(rows < len(released), rows, -1))
        best, number = find_best_matches(keys, shape, targets), len(confidential)
    # What he knows in any case he uses as the best strategy of the full knowledge does, which is then among these.
    used = [tuple(name for name in known.others if name in one.strategy.used) for one in best]
    risks: dict[tuple[str, ...], tuple[Floats, Floats]] = {}
    for names in dict.fromkeys(used):
        always = [keys[name] for name in names]
        risks[names] = (
            subset_risks_of_units(own, confidential, released, always) if by_unit else subset_risks(own, shape, always)
        )
    expected, certain = (largest_of_subsets(risks[names][place]) for place, names in enumerate(used))
    few = [] if by_unit else _count_unprotected(confidential, released, known, within)
    return KnowledgeCounts(tuple(expected.tolist()), tuple((certain * number).tolist()), tuple(few))


def _count_unprotected(
    confidential: Microdata, released: Microdata, known: KnownVariables, within: Mapping[str, float]
) -> list[float]:
    """Count the people whom the limits on kept columns leave unprotected from who knows each set, (2^p,)."""
    if known.limits is None or not known.kept:
        return []
    names = [name for name in (*known.names, *known.others) if name in known.kept]
    # The kept values are read as they are: how near a match is to a drawn value is another question.
    keys = _keys_by_variable(confidential, released, names, {}, within)
    places = [place for place, name in enumerate(known.names) if name in known.kept]
    turned = [keys[known.names[place]] for place in places]
    always = [keys[name] for name in known.others if name in known.kept]
    counts = np.zeros(1 << len(places))
    for mask, matches in match_subsets(turned, (len(confidential), len(released)), always):
        counts[mask] = known.limits.count_unprotected_records(matches.candidates)
    # The columns that the release draws anew protect nobody, and find nobody by this rule.
    masks = np.arange(1 << len(known.names))
    among_kept = np.zeros_like(masks)
    for order, place in enumerate(places):
        among_kept |= (masks >> place & 1) << order
    return [float(value) for value in largest_of_subsets(counts)[among_kept]]


def count_in_windows(
    confidential: Microdata,
    released: Microdata,
    known: KnownVariables,
    within: Mapping[str, float],
    windows: Sequence[Windows],
    *,
    by_unit: bool,
) -> list[KnowledgeCounts]:
    """Count as ``count_found_people`` in one dataset, for each of some windows of drawn variables."""
    found: list[KnowledgeCounts] = []
    for one in windows:
        # Kept columns are read as they are, so that the windows of drawn ones leave the small groups unchanged.
        limits = None if found else known.limits
        there = replace(known, radius={**known.radius, **dict(one)}, limits=limits)
        counts = count_found_people(confidential, released, there, within, by_unit=by_unit)
        found.append(replace(counts, few=found[0].few) if found else counts)
    return found


def combine_windows(*choices: tuple[str, Sequence[Radius]]) -> tuple[Windows, ...]:
    """Return every choice of one window a variable, given each variable with its windows, narrow ones first."""
    names = [name for name, _ in choices]
    return tuple(tuple(zip(names, one, strict=True)) for one in product(*(radii for _, radii in choices)))


def best_window_counts(counts: Sequence[Sequence[KnowledgeCounts]], windows: Sequence[Windows]) -> KnowledgeCounts:
    """Return the means over datasets of what the best window of each finds, given the counts by dataset and window."""
    means, best = {}, {}
    for name in ("expected", "certain"):
        values = np.array([[getattr(one, name) for one in of_dataset] for of_dataset in counts])
        means[name] = tuple(values.max(axis=1).mean(axis=0).tolist())
        best[name] = tuple(values.mean(axis=0).argmax(axis=0).tolist())
    few = mean_counts([of_dataset[0] for of_dataset in counts]).few
    return KnowledgeCounts(means["expected"], means["certain"], few, tuple(windows), best["expected"], best["certain"])


def mean_counts(counts: Sequence[KnowledgeCounts]) -> KnowledgeCounts:
    """Return the means of the counts of several datasets."""
    parts = [
        tuple(np.mean([getattr(one, name) for one in counts], axis=0).tolist())
        for name in ("expected", "certain", "few")
    ]
    return KnowledgeCounts(*parts)
