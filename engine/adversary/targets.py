"""Targets of an attack: random people, or the most vulnerable people, with controls chosen by the same rule.

Vulnerability follows from the confidential data alone. Three scores are larger for people who are easier to
distinguish:

    distance    mean distance to the 5 nearest other records, Gower on ranks (Meeus, Guépin, Creţu & de Montjoye 2023,
                Achilles' heels)
    uniqueness  minimal sample uniques of up to 3 variables, weighted by size as in SUDA (Elliot, Manning & Ford 2002),
                on levels and binned numbers
    rarity      minus the sum of the log shares of the person's values, with binned numbers

Each is computed from all variables and from the quasi-identifiers alone, since people who are rare among all variables
are seldom rare in the few that an intruder knows. A person's score is the largest of the six rank shares. A control is
scored as if it replaced the record of median rarity, and vulnerable controls reach the score of the least vulnerable
target.

Scores depend on the values of the records and not on their order. Of more than ``MOST_SCORED`` records, those with the
lowest hashes are scored, by rarity alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Annotated, Literal

import numpy as np

from ..data.arrays import Booleans, Floats, Integers
from ..data.microdata import Microdata
from ..data.rows import distinct_codes
from ..data.schema import Role, Schema
from ..methods.spec import Param
from ..statistics.gower import Singles, SubsetGowerDistances
from .cells import cell_keys, row_keys
from .nearest_records import NearestRecords

TargetKind = Literal["random", "vulnerable"]
TargetKinds = Annotated[
    tuple[TargetKind, ...],
    Param(
        "kinds of targets, each with rows of its own: random, vulnerable; default: both", unique=True, filters_rows=True
    ),
]
VulnerableTargets = Annotated[
    float | None,
    Param(
        "number of vulnerable targets, or their share of the records where below 1; default: 5 %, at least 50 and at most 500",
        gt=0,
    ),
]
BOTH_TARGET_KINDS: tuple[TargetKind, ...] = ("random", "vulnerable")
NEIGHBOURS = 5
SET_SIZE = 3
BINS = 20
MOST_SCORED = 50_000
"""Largest number of scored records; of more, those with the lowest hashes."""
MOST_NEIGHBOURS = 10_000
"""Largest number of records in the search for neighbours."""
MOST_IN_SETS = 20
"""Largest number of variables in sets; of more, those with most effective values."""
SHARE, LEAST, LARGEST = 0.05, 50, 500
"""Default share of most vulnerable people, with smallest and largest number."""
DENSE = 1 << 22
_KEPT = 4


@dataclass(frozen=True, eq=False)
class VulnerabilityScores:
    """Vulnerability of each person and each control, in [0, 1].

    people: scores of the n records, NaN if not scored, (n,)
    controls: scores of the controls, (c,)
    """

    people: Floats
    controls: Floats

    def select_most_vulnerable(self, number: int) -> tuple[Integers, Integers]:
        """Return the rows of the most vulnerable people and of the controls that reach their score.

        These are ``number`` people and all that tie with the last of them.
        """
        scored = np.sort(self.people[~np.isnan(self.people)])
        if not len(scored) or number < 1:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        least = scored[-min(number, len(scored))]
        return np.flatnonzero(self.people >= least), np.flatnonzero(self.controls >= least)


def vulnerable_target_count(requested: float | None, records: int) -> int:
    """Return the number of vulnerable targets among ``records``; a request below 1 is a share, None the default."""
    if requested is None:
        return min(records, max(LEAST, min(LARGEST, round(SHARE * records))))
    return min(records, max(1, round(requested * records) if requested < 1 else round(requested)))


def distinguishing_variables(schema: Schema) -> tuple[str, ...]:
    """Return the variables that distinguish people, all but identifiers, sorted by name."""
    return tuple(sorted(schema.non_identifiers))


_VULNERABILITY_CACHE: OrderedDict[tuple[str, str, tuple[str, ...], tuple[str, ...]], VulnerabilityScores] = (
    OrderedDict()
)


def score_vulnerability(people: Microdata, controls: Microdata, names: Sequence[str] = ()) -> VulnerabilityScores:
    """Score the vulnerability of people and controls by the named variables, by default all but identifiers."""
    names = tuple(sorted(names)) or distinguishing_variables(people.schema)
    keys = tuple(name for name in names if people.schema[name].role is Role.QUASI_IDENTIFIER)
    key = people.without_controls.sha256, controls.sha256, names, keys
    # Every attack on the same tables needs the same scores.
    if key not in _VULNERABILITY_CACHE:
        each = [_score_by_variables(people, controls, names, some) for some in dict.fromkeys((names, keys)) if some]
        _VULNERABILITY_CACHE[key] = VulnerabilityScores(
            *(np.max([getattr(one, side) for one in each], axis=0) for side in ("people", "controls"))
        )
        while len(_VULNERABILITY_CACHE) > _KEPT:
            _VULNERABILITY_CACHE.popitem(last=False)
    _VULNERABILITY_CACHE.move_to_end(key)
    return _VULNERABILITY_CACHE[key]


def _score_by_variables(
    people: Microdata, controls: Microdata, names: tuple[str, ...], scored: tuple[str, ...]
) -> VulnerabilityScores:
    """Score people and controls by the variables ``scored``; the records are selected by the hash of ``names``."""
    order = np.argsort(row_keys(cell_keys(people, names), names, len(people)), kind="stable")
    asked = order[:MOST_SCORED]
    table = _ScoredTable.from_data(people, controls, scored, asked)
    scores = [table.rarity_scores()]
    if len(people) <= MOST_SCORED:
        scores += [table.distance_scores(), table.uniqueness_scores()]
    own = np.full(len(people), np.nan)
    own[asked] = np.max([_rank_among_others(mine, mine, own=1) for mine, _ in scores], axis=0)
    others = np.max(
        [_rank_among_others(theirs, np.delete(mine, table.replaced_person), own=0) for mine, theirs in scores], axis=0
    )
    return VulnerabilityScores(own, others)


def _rank_among_others(asked: Floats, among: Floats, own: int) -> Floats:
    """Return the share of ``among`` (k,) below each of ``asked`` (q,), ties counting half.

    ``own`` is 1 if each value is itself in ``among``, else 0.
    """
    if len(among) <= own:
        return np.full(len(asked), 0.5)
    held = np.sort(among)
    below, reached = (np.searchsorted(held, asked, side) for side in ("left", "right"))
    return np.asarray((below + reached - own) / (2 * (len(held) - own)))


@dataclass(frozen=True, eq=False)
class _ScoredTable:
    """Scored people in the order of their hashes, and controls.

    distances: distances by the scored variables
    people: positions of the people, (n, d)
    controls: positions of the controls, (c, d)
    people_bins: binned values of the people as codes from 0, (n, d)
    control_bins: binned values of the controls, (c, d)
    log_frequencies: sum of the log shares of a person's binned values, (n,)
    replaced_person: person whose place a control takes
    """

    distances: SubsetGowerDistances
    people: Singles
    controls: Singles
    people_bins: Integers
    control_bins: Integers
    log_frequencies: Floats
    replaced_person: int

    @classmethod
    def from_data(cls, people: Microdata, controls: Microdata, names: tuple[str, ...], asked: Integers) -> _ScoredTable:
        """Bin the values of the people ``asked`` and of the controls."""
        distances = SubsetGowerDistances.from_tables([people, controls], names)
        own, others = (distances.gower.record_places(data) for data in (people, controls))
        own = own[asked]
        values = np.concatenate([own, others])
        coarse = [
            _bin_values(column, bool(levelled)) for column, levelled in zip(values.T, distances.levelled, strict=True)
        ]
        codes = np.stack(coarse, axis=1)
        mine, theirs = codes[: len(own)], codes[len(own) :]
        # Rounded, so that equal people tie whatever the order of the variables.
        frequent = np.round(np.sum([np.log(np.bincount(one)[one] / len(own)) for one in mine.T], axis=0), 9)
        order = np.lexsort((own[:, ~distances.levelled].sum(axis=1), frequent))
        return cls(
            distances,
            distances.round_places(own),
            distances.round_places(others),
            mine,
            theirs,
            frequent,
            int(order[len(order) // 2]),
        )

    def distance_scores(self) -> tuple[Floats, Floats]:
        """Return the mean distances of people and controls to their nearest others, (n,) and (c,)."""
        among = self.people[:MOST_NEIGHBOURS]
        left = np.delete(among, self.replaced_person, axis=0) if self.replaced_person < len(among) else among[1:]
        own = _mean_distance_to_nearest(self.distances, self.people, among, own=len(among))
        return own, _mean_distance_to_nearest(self.distances, self.controls, left, own=0)

    def rarity_scores(self) -> tuple[Floats, Floats]:
        """Return the rarity of people and controls, (n,) and (c,)."""
        n = len(self.people_bins)
        others = np.zeros(len(self.control_bins))
        for mine, theirs in zip(self.people_bins.T, self.control_bins.T, strict=True):
            counts = np.bincount(mine, minlength=max(mine.max(initial=0), theirs.max(initial=0)) + 1)
            others -= np.log((counts[theirs] + 1 - (theirs == mine[self.replaced_person])) / n)
        return -self.log_frequencies, np.round(others, 9)

    def uniqueness_scores(self) -> tuple[Floats, Floats]:
        """Return the SUDA scores of people and controls from sets of up to ``SET_SIZE`` variables, (n,) and (c,)."""
        some = self._most_identifying_variables()
        d = len(some)
        most = min(SET_SIZE, d)
        unique: dict[tuple[int, ...], tuple[Booleans, Booleans]] = {}
        score = np.zeros(len(self.people_bins)), np.zeros(len(self.control_bins))
        for size in range(1, most + 1):
            weight = prod(d - i for i in range(size, min(SET_SIZE, d - 1) + 1))
            for chosen in combinations(range(d), size):
                found = self._are_unique([some[k] for k in chosen])
                if size < most:
                    unique[chosen] = found
                for side in (0, 1):
                    minimal = found[side].copy()
                    for part in combinations(chosen, size - 1) if size > 1 else ():
                        minimal &= ~unique[part][side]
                    np.add(score[side], weight * minimal, out=score[side])
        return score

    def _most_identifying_variables(self) -> Integers:
        """Return at most ``MOST_IN_SETS`` variables with the largest effective numbers of values."""
        if self.people_bins.shape[1] <= MOST_IN_SETS:
            return np.arange(self.people_bins.shape[1])
        alike = [(np.bincount(column) ** 2.0).sum() for column in self.people_bins.T]
        return np.sort(np.argsort(alike, kind="stable")[:MOST_IN_SETS])

    def _are_unique(self, chosen: Sequence[int]) -> tuple[Booleans, Booleans]:
        """Return masks of the people who are unique on some variables, (n,), and of such controls, (c,)."""
        mine, theirs = self.people_bins[:, chosen[0]], self.control_bins[:, chosen[0]]
        for k in chosen[1:]:
            size = 1 + int(max(self.people_bins[:, k].max(initial=0), self.control_bins[:, k].max(initial=0)))
            mine, theirs = mine * size + self.people_bins[:, k], theirs * size + self.control_bins[:, k]
            # Renumbered before the mixed-radix codes overflow or the counts fill memory.
            if max(mine.max(initial=0), theirs.max(initial=0)) >= DENSE:
                both = np.unique(np.concatenate([mine, theirs]), return_inverse=True)[1]
                mine, theirs = both[: len(mine)], both[len(mine) :]
        counts = np.bincount(mine, minlength=int(max(mine.max(initial=0), theirs.max(initial=0))) + 1)
        return counts[mine] == 1, counts[theirs] - (theirs == mine[self.replaced_person]) == 0


def _mean_distance_to_nearest(distances: SubsetGowerDistances, asked: Singles, among: Singles, own: int) -> Floats:
    """Return the mean distance of each query (q, d) to its ``NEIGHBOURS`` nearest others of (r, d), (q,).

    The first ``own`` of the queries are the first of ``among`` and not their own neighbours.
    """
    if not len(asked) or not len(among):
        return np.zeros(len(asked))
    near = NearestRecords.from_rounded_places(distances, asked, among, NEIGHBOURS + 1)
    apart = near.k_distances[near.searched.combination_of]
    found = np.empty(len(asked))
    # A record among the others is the first of its own nearest, at distance 0.
    found[:own], found[own:] = (_row_means(part) for part in (apart[:own, 1:], apart[own:, :NEIGHBOURS]))
    return found


def _row_means(values: Floats) -> Floats:
    """Return the mean of each row of (n, k), (n,); 0 without columns."""
    return np.asarray(values.sum(axis=1) / max(values.shape[1], 1))


def _bin_values(values: Floats, levelled: bool) -> Integers:
    """Return values (n,) as codes from 0; more than ``BINS`` distinct numbers are put in bins of about equal count."""
    different = distinct_codes(values)
    if levelled or len(different.values) <= BINS:
        return different.codes.astype(np.int64)
    present = np.sort(values[values >= 0])
    cuts = np.unique(present[np.arange(1, BINS) * len(present) // BINS])
    return np.asarray(np.where(values < 0, 0, 1 + np.searchsorted(cuts, values, "right")), dtype=np.int64)


def draw_rows(rows: Integers, data: Microdata, most: int, rng: np.random.Generator) -> Integers:
    """Draw at most ``most`` of the rows at random, in the order of their values."""
    names = distinguishing_variables(data.schema)
    some = data.select_rows(list(map(int, rows)))
    order = rows[np.argsort(row_keys(cell_keys(some, names), names, len(rows)), kind="stable")]
    if len(order) <= most:
        return order
    return np.asarray(order[np.sort(rng.choice(len(order), most, replace=False))])


def draw_vulnerable_rows(
    people: Microdata, controls: Microdata, requested: float | None, most: int, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """Draw at most ``most`` of the most vulnerable people and of equally vulnerable controls."""
    own, others = score_vulnerability(people, controls).select_most_vulnerable(
        vulnerable_target_count(requested, len(people))
    )
    return draw_rows(own, people, most, rng), draw_rows(others, controls, most, rng)
