"""Permutation test of membership: whether what a release shows about people depends on who is in the data.

A probe finds some people of the joint table of members and hold-out people in a release, without using who is which. If
the release is independent of membership, every assignment of the labels is equally likely, whatever the population and
the model (Fisher 1935). All probes are combined into one statistic, which is compared with its values under permuted
labels. The level holds for the whole family of probes, however they overlap.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.bits import mix_bits
from .evidence import holdout_probability
from .independent_rows import OTHER_WEIGHT, RowEvidence

MOST_DRAWS = 1999
ENOUGH_EXCEEDANCES = 20
"""Most permutations, and exceedances that stop them early (Besag & Clifford 1991): honest releases need few."""
DRAWS_AT_ONCE = 40
DRAWS_FOR_POWER = 400
"""Number of permutations for the smallest detectable number of people."""
COPY_SCORE_VARIANCE = 2.0
"""Assumed extra variance of a probe's score if people are copied."""
MOST_ELIGIBLE = 2_000
"""Number of eligible people above which their labels vary too little to condition on."""
SMALLEST_SHARE_FOUND = 0.05
LEAST_REACH = 1.28
"""Probes whose largest possible score is below this are left out."""
OBJECTION_SCORE = 2.326
"""Score at which a probe objects: an honest release reaches it for about one probe in a hundred."""
POWER = 0.8
LIMIT_CONFIDENCE = 0.9
"""Confidence level of the limit of expected members."""
ALL_PEOPLE = "all people"
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class MembershipProbe:
    """Set of people that one search finds in a release.

    who, what: whom it searches for and how, in words
    hits: rows of the joint table that it finds, (h,)
    eligible: rows that it could find, including the hits, (e,); None if all rows count
    shows_copies: whether it finds every eligible person whose record is copied whole
    is_main: whether it counts as much as all other probes together; must not depend on the labels
    whole_units: whether each row stands for all records of its unit, of which no other is listed
    hit_weights: weight of each of the hits, (h,), and of the eligible rows, (e,), if whole units are listed; None if each
        counts once
    columns: names of the columns that it compares; empty if it does not compare values for equality
    """

    who: str
    what: str
    hits: Integers
    eligible: Integers | None = None
    shows_copies: bool = False
    is_main: bool = False
    whole_units: bool = False
    hit_weights: Floats | None = None
    eligible_weights: Floats | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ProbeCounts:
    """Numbers of members and hold-out people that a probe finds and could find; of units where these are exchanged.

    who, what: whom it searches for and how, in words
    n_members: number of members found
    n_eligible_members: number of members that could be found
    n_controls: number of hold-out people found
    n_eligible_controls: number of hold-out people that could be found
    score: standardised number of members among those found
    records: rows of the members found, ascending, (n_members,) where no units are counted
    columns: names of the columns that are compared; empty if no values are compared for equality
    """

    who: str
    what: str
    n_members: int
    n_eligible_members: int
    n_controls: int
    n_eligible_controls: int
    score: float
    records: Integers
    columns: tuple[str, ...] = ()

    @property
    def holdout_p(self) -> float:
        """Return the p-value of Fisher's exact test for this number of members among all found."""
        return holdout_probability(self.n_members, self.n_eligible_members, self.n_controls, self.n_eligible_controls)

    @property
    def expected_members(self) -> float:
        """Return the number of members that would be found at the rate of the hold-out people."""
        return self.n_controls * self.n_eligible_members / self.n_eligible_controls if self.n_eligible_controls else 0.0

    @property
    def excess_members(self) -> float:
        """Return the number of members found beyond the expected number, at least 0."""
        return max(0.0, self.n_members - self.expected_members)

    @cached_property
    def expected_members_limit(self) -> float:
        """Return the upper 90 % limit of the number of members found at the rate of the hold-out people."""
        from scipy.stats import beta

        if self.n_controls >= self.n_eligible_controls:
            return float(self.n_eligible_members)
        return self.n_eligible_members * float(
            beta.ppf(LIMIT_CONFIDENCE, self.n_controls + 1, self.n_eligible_controls - self.n_controls)
        )

    @property
    def certain_share_of_found(self) -> float:
        """Return the share of the members found who exceed the limit of the expected number."""
        return max(0.0, self.n_members - self.expected_members_limit) / self.n_members if self.n_members else 0.0

    def certain_share_of_people(self, n_people: int) -> float:
        """Return the members found beyond the limit of the expected number, as a share of ``n_people``."""
        return max(0.0, self.n_members - self.expected_members_limit) / n_people if n_people else 0.0


@dataclass(frozen=True, eq=False)
class MembershipEvidence:
    """Combined result of all probes.

    p: p-value of all evidence, labels and rows
    p_by_labels: p-value of the permutation test alone
    n_probes: number of probes that could show anything
    n_objecting: number of probes with a significant score of their own
    strongest_counts: counts of the probe with the largest score; None if no probe could show anything
    combined_counts: counts of everybody found by an objecting probe; None if fewer than two object
    fewest_detectable: smallest number of wholly copied people found with 80 % power; None if no number is
    n_permutations: number of permutations
    """

    p: float
    p_by_labels: float
    n_probes: int
    n_objecting: int
    strongest_counts: ProbeCounts | None
    combined_counts: ProbeCounts | None
    fewest_detectable: int | None
    n_permutations: int


def weigh_evidence(
    looks: Sequence[MembershipProbe],
    members: int,
    records: int,
    level: float,
    units: Integers | None = None,
    rows: RowEvidence | None = None,
) -> MembershipEvidence:
    """Test whether what all probes find depends on who is a member.

    Parameters ---------- looks : sequence of MembershipProbe
        All probes of a release.
    members, records : int
        Numbers of members and of all records in the joint table, which lists members first.
    level : float
        Significance level, for the number of detectable people.
    units : array of int, optional
        Unit of each record, (N,), if whole units were held out. Units are then permuted and counted in place of
        records.
    rows : RowEvidence, optional
        Evidence without the labels, which weights the level.

    Notes ----- The statistic is the average over the probes of the likelihood ratio of a normal score with variance 1 +
    ``COPY_SCORE_VARIANCE`` to one with variance 1 (Chan & Walther 2013, Statistica Sinica 23, for averages in place of
    maxima). ``tests/benchmarks/membership_power.py`` compares it with other combinations. p is exact for any statistic:
    ties count against significance.
    """
    # Weight and extra probe are fixed before the labels are used, so the test keeps its level.
    if rows is not None and rows.is_notable:
        found = MembershipProbe(ALL_PEOPLE, f"are found by {rows.test.what}", rows.test.records, is_main=True)
        looks = [*looks, found]
    matrix = ProbeMatrix(looks, members, records, units)
    weight = OTHER_WEIGHT if rows is None else rows.level_weight
    if not matrix.looks or members in (0, records):
        return MembershipEvidence(1.0, 1.0, 0, 0, None, None, None, 0)
    test = SequentialPermutationTest(float(combine_probe_scores(matrix.observed[None, :], matrix.look_weights)[0]))
    permuted = list[Floats]()
    while not test.is_decided:
        permuted.append(matrix.draw_permuted_scores(min(DRAWS_AT_ONCE, test.draws_left)))
        test.add_statistics(combine_probe_scores(permuted[-1], matrix.look_weights))
    objecting = np.flatnonzero(matrix.observed >= OBJECTION_SCORE)
    together = None
    if len(objecting) > 1:
        together = _count_combined([matrix.looks[at] for at in objecting], matrix)
    if test.draws < DRAWS_FOR_POWER:
        permuted.append(matrix.draw_permuted_scores(DRAWS_FOR_POWER - test.draws))
    detectable = _fewest_detectable(looks, matrix, np.concatenate(permuted), level * OTHER_WEIGHT)
    strongest = _count_strongest(matrix, int(np.argmax(matrix.observed)))
    p = min(1.0, test.p / weight)
    return MembershipEvidence(p, test.p, len(matrix.looks), len(objecting), strongest, together, detectable, test.draws)


@dataclass(eq=False)
class SequentialPermutationTest:
    """Permutation test that stops once enough permuted statistics reach the observed one (Besag & Clifford 1991).

    observed: observed statistic
    draws: number of permutations so far
    exceedances: number of them at least as large; ties count
    p: p-value, valid once the test is decided
    """

    observed: float
    draws: int = 0
    exceedances: int = 0
    p: float = 1.0

    @property
    def is_decided(self) -> bool:
        """Return whether no further permutation is needed."""
        return self.exceedances >= ENOUGH_EXCEEDANCES or self.draws >= MOST_DRAWS

    @property
    def draws_left(self) -> int:
        """Return the largest number of further permutations."""
        return MOST_DRAWS - self.draws

    def add_statistics(self, statistics: Floats) -> None:
        """Add permuted statistics, (d,), and update the p-value."""
        as_large = np.flatnonzero(statistics >= self.observed - ROUNDING)
        needed = ENOUGH_EXCEEDANCES - self.exceedances
        if len(as_large) >= needed:
            # The draw at which the last one needed fell decides, not the end of its batch.
            self.p = ENOUGH_EXCEEDANCES / (self.draws + int(as_large[needed - 1]) + 1)
        self.draws, self.exceedances = self.draws + len(statistics), self.exceedances + len(as_large)
        if self.exceedances < ENOUGH_EXCEEDANCES:
            self.p = (1 + self.exceedances) / (1 + self.draws)


def combine_probe_scores(scores: Floats, weights: Floats | None = None) -> Floats:
    """Return the log of the average likelihood ratio over probes for each row of scores, (draws, probes): (draws,)."""
    return np.asarray(_log_ratio_sum(scores, weights) - np.log(scores.shape[1] if weights is None else weights.sum()))


def _log_ratio_sum(scores: Floats, weights: Floats | None = None) -> Floats:
    """Return the log of the summed likelihood ratios for each row of scores, (draws, probes): (draws,)."""
    # Only more members than expected speak for a leak.
    ratios = np.square(np.maximum(scores, 0)) * (COPY_SCORE_VARIANCE / (2 * (1 + COPY_SCORE_VARIANCE)))
    # SciPy's logsumexp takes three times as long, and this is most of the time of a test.
    largest = ratios.max(axis=1, initial=0.0)
    shares = np.exp(ratios - largest[:, None])
    return np.asarray(largest + np.log((shares if weights is None else shares * weights).sum(axis=1)))


def _count_strongest(matrix: ProbeMatrix, at: int) -> ProbeCounts:
    """Count the people whom the probe at a position finds."""
    return count_probe(matrix.looks[at], matrix.members, matrix.records, float(matrix.observed[at]), matrix.item_of)


def count_probe(
    probe: MembershipProbe, members: int, records: int, score: float = 0.0, unit_of: Integers | None = None
) -> ProbeCounts:
    """Count the members and hold-out people whom a probe finds; units, numbered from 0, where these are given (N,)."""
    could = np.arange(records) if probe.eligible is None else probe.eligible
    if unit_of is not None:
        return _count_units(probe, could, members, unit_of, score)
    of_members, found = int((could < members).sum()), np.sort(probe.hits[probe.hits < members])
    controls = len(probe.hits) - len(found)
    return ProbeCounts(
        probe.who, probe.what, len(found), of_members, controls, len(could) - of_members, score, found, probe.columns
    )


def _count_units(probe: MembershipProbe, could: Integers, members: int, unit_of: Integers, score: float) -> ProbeCounts:
    """Count the units of members and of hold-out people of which a probe finds a record; ``could`` are the eligible rows."""
    is_member = np.zeros(int(unit_of.max(initial=-1)) + 1, dtype=np.bool_)
    is_member[unit_of[:members]] = True
    found, eligible = (np.unique(unit_of[rows]) for rows in (probe.hits, could))
    own = found[is_member[found]]
    records = np.flatnonzero(np.isin(unit_of, own)) if probe.whole_units else np.sort(probe.hits[probe.hits < members])
    of_members = int(is_member[eligible].sum())
    return ProbeCounts(
        probe.who,
        probe.what,
        len(own),
        of_members,
        len(found) - len(own),
        len(eligible) - of_members,
        score,
        records,
        probe.columns,
    )


def _count_combined(looks: Sequence[MembershipProbe], matrix: ProbeMatrix) -> ProbeCounts:
    """Count the people whom any of several probes finds."""
    hits = np.unique(np.concatenate([look.hits for look in looks]))
    could = [look.eligible for look in looks]
    known = [one for one in could if one is not None]
    eligible = np.unique(np.concatenate(known)) if len(known) == len(could) else None
    whole = matrix.item_of is not None and all(look.whole_units for look in looks)
    probe = MembershipProbe(ALL_PEOPLE, "", hits, eligible, whole_units=whole)
    return count_probe(probe, matrix.members, matrix.records, unit_of=matrix.item_of)


def _fewest_detectable(
    looks: Sequence[MembershipProbe], matrix: ProbeMatrix, permuted: Floats, level: float
) -> int | None:
    """Return the fewest members found with 80 % power if their records are copied whole; None if no number is."""
    kept = {_content_key(look): at for at, look in enumerate(matrix.looks)}
    different = {_content_key(_with_useful_eligible(look)): look for look in looks if look.shows_copies}
    chance = matrix.member_items / max(1, matrix.items)
    of_copies = [_weights_of_copies(look, matrix) for look in different.values()]
    found, added, added_squares = np.array(of_copies).reshape(-1, 3).T
    # A probe that found no one is not in the matrix; its score is that of the copies alone.
    noise = np.zeros((len(permuted), len(different)))
    for at, key in enumerate(different):
        if key in kept:
            noise[:, at] = permuted[:, kept[key]]
    is_other = np.ones(permuted.shape[1], dtype=np.bool_)
    is_other[[kept[key] for key in different if key in kept]] = False
    others, other_weights = permuted[:, is_other], matrix.look_weights[is_other]
    weights = np.array([matrix.weight_of_look(look) for look in different.values()])
    # Copies change no score of the other probes: their part of every statistic is the same.
    of_others = _log_ratio_sum(others, other_weights) if others.shape[1] else np.full(len(others), -np.inf)
    rng = np.random.default_rng(len(permuted))
    spread = np.sqrt(chance * (1 - chance))

    def statistics_with_copies(copied: int, members_among: Floats) -> Floats:
        """Return the statistics with ``copied`` copied people, of whom ``members_among`` (draws,) are members."""
        # A copy adds the member to each probe that shows copies and could find the member.
        total = np.maximum(found + copied * added_squares, ROUNDING)
        beyond = (members_among - copied * chance)[:, None] * added
        scores = (noise * np.sqrt(found) * spread + beyond) / (np.sqrt(total) * spread)
        return np.asarray(np.logaddexp(_log_ratio_sum(scores, weights), of_others))

    def power_with_copies(copied: int) -> float:
        """Return the share of draws in which ``copied`` copied members are significant."""
        # Copies are found by many looks at once, so that permuted statistics vary more than those of an honest release.
        by_chance = rng.hypergeometric(copied, matrix.items - copied, matrix.member_items, len(noise))
        critical = np.quantile(statistics_with_copies(copied, by_chance.astype(np.float64)), 1 - level, method="higher")
        return float((statistics_with_copies(copied, np.full(len(noise), float(copied))) > critical).mean())

    if not different:
        return None
    low, high = 0, 1
    while power_with_copies(high) < POWER:
        low, high = high, 2 * high
        if high > matrix.member_items:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if power_with_copies(middle) < POWER else (low, middle)
    return high


def _weights_of_copies(look: MembershipProbe, matrix: ProbeMatrix) -> tuple[float, float, float]:
    """Return the squared weights of those whom a probe finds, and what a copied item adds to its weights and squares."""
    if look.hit_weights is not None and look.eligible_weights is not None:
        squares = float(np.square(look.hit_weights).sum())
        more = float(look.eligible_weights.sum() - look.hit_weights.sum())
        return squares, more / matrix.items, (float(np.square(look.eligible_weights).sum()) - squares) / matrix.items
    found = matrix.count_items(look.hits)
    could = matrix.items if look.eligible is None else matrix.count_items(look.eligible)
    added = max(could - found, 0) / matrix.items
    return float(found), added, added


def _content_key(look: MembershipProbe) -> tuple[int, ...]:
    """Return a hash of the records that a probe finds and could find, and whether they have weights."""
    sets = [one for one in (look.hits, look.eligible) if one is not None]
    found = [
        # Sums of mixed keys: copies of the lists would fill memory.
        value
        for one in sets
        for value in (len(one), int(mix_bits(one.astype(np.uint64) + np.uint64(1)).sum()))
    ]
    return (*found, -1) if look.hit_weights is not None else tuple(found)


class ProbeMatrix:
    """Probes as weights of people or whole units whose labels are permuted.

    looks: probes that can show something, in an order that depends neither on rows nor on column names
    look_weights: weight of each probe, (probes,)
    weights: weight of an item of each group in each probe, (probes, groups)
    sizes: number of items in each group, which the same probes find, (groups,); the first group is found by none
    observed: scores of the probes under the true labels, (probes,)
    item_of: item of each record, from 0, (N,), where items are units; None where they are records
    """

    def __init__(
        self, looks: Sequence[MembershipProbe], members: int, records: int, units: Integers | None = None
    ) -> None:
        """Select the useful probes and prepare their permutation."""
        self.members, self.records = members, records
        item_of = None if units is None else np.unique(units, return_inverse=True)[1]
        # Labels that differ within a unit show that rows were held out one by one: then rows are what may be exchanged.
        if item_of is not None and np.isin(item_of[members:], item_of[:members]).any():
            item_of = None
        self.item_of = item_of
        self.items = records if item_of is None else int(item_of.max()) + 1
        self.member_items = members if item_of is None else len(np.unique(item_of[:members]))
        looks = _in_canonical_order([_with_useful_eligible(one) for one in looks], records)
        share = self.member_items / max(1, self.items)
        moments = np.array([_weight_moments(look, item_of) for look in looks]).reshape(len(looks), 3)
        sums, squares, reach = moments.T
        variance = (squares / max(1, self.items) - np.square(sums / max(1, self.items))) * (
            self.member_items * (self.items - self.member_items) / max(1, self.items - 1)
        )
        deviations = np.sqrt(np.maximum(variance, 0.0))
        useful = (deviations > ROUNDING) & (reach - sums * share >= LEAST_REACH * deviations)
        self.looks = tuple(look for look, is_useful in zip(looks, useful, strict=True) if is_useful)
        self.look_weights = np.array([self.weight_of_look(look) for look in self.looks])
        self._means, self._deviations = (sums * share)[useful], deviations[useful]
        self._group_items(item_of)

    def _group_items(self, item_of: Integers | None) -> None:
        """Group the items that the same probes find, so that their labels are drawn together."""
        keys = np.zeros(self.items, dtype=np.uint64)
        for at, look in enumerate(self.looks):
            for part, (records, _) in enumerate(_weighted_records(look)):
                key = mix_bits(np.array([2 * at + part + 1], dtype=np.uint64))[0]
                if item_of is None:
                    keys[records] += key
                else:
                    np.add.at(keys, item_of[records], key)
        active = np.flatnonzero(keys)
        self.group_keys, first, group, sizes = np.unique(
            keys[active], return_index=True, return_inverse=True, return_counts=True
        )
        self.sizes = np.append(self.items - len(active), sizes)
        group_of = np.zeros(self.items, dtype=np.int64)
        group_of[active] = group + 1
        stands_for_group = np.zeros(self.items, dtype=np.bool_)
        stands_for_group[active[first]] = True
        rows, columns, values = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        for at, look in enumerate(self.looks):
            for records, weight in _weighted_records(look):
                all_items = records if item_of is None else item_of[records]
                items = all_items[stands_for_group[all_items]]
                rows.append(np.full(len(items), at))
                columns.append(group_of[items])
                values.append(np.broadcast_to(weight, len(records))[stands_for_group[all_items]])
        from scipy.sparse import coo_matrix, csr_matrix

        entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        shape = (len(self.looks), len(self.sizes))
        self.weights = csr_matrix(coo_matrix(entries, shape=shape))
        limited = [
            (at, len(look.eligible), len(look.hits))
            for at, look in enumerate(self.looks)
            # Weights of several records of a unit add up, so that they are not those of so many equal items.
            if look.eligible is not None and (item_of is None or look.whole_units)
        ]
        self._limited = np.array([at for at, _, _ in limited], dtype=np.int64)
        self._could, self._found = (np.array([one[part] for one in limited], dtype=np.float64) for part in (1, 2))
        # Whoever of the eligible people has a weight, be it that of somebody found or not, counts once.
        self._eligible = (self.weights[self._limited] != 0).astype(np.float64)
        member_items = np.arange(self.members) if item_of is None else np.unique(item_of[: self.members])
        counts = np.bincount(group_of[member_items], minlength=len(self.sizes))
        self.observed = self.standardised_scores(counts[None, :])[0]

    def weight_of_look(self, look: MembershipProbe) -> float:
        """Return the weight of a probe: 1, or the number of the others if it is a main one."""
        return float(max(1, sum(not one.is_main for one in self.looks))) if look.is_main else 1.0

    def count_items(self, records: Integers) -> int:
        """Return the number of items of distinct records (k,)."""
        return len(records) if self.item_of is None else len(np.unique(self.item_of[records]))

    def standardised_scores(self, counts: Integers) -> Floats:
        """Return the standardised scores of the probes, (draws, probes).

        ``counts`` are the numbers of member items by group, (draws, groups).
        """
        items = counts.T.astype(np.float64)
        scores = np.asarray((np.asarray(self.weights @ items).T - self._means) / self._deviations)
        if len(self._limited):
            scores[:, self._limited] *= self._deviations[self._limited] / self._conditional_deviations(items)
        return scores

    def _conditional_deviations(self, items: Floats) -> Floats:
        """Return standard deviations given the number of members among the eligible, (draws, probes)."""
        # How many of the eligible people were held out says nothing of the release, so that a test of one look would be
        # given it too (Fisher 1935).
        could, found = self._could, self._found
        members = np.asarray(self._eligible @ items).T
        variance = found * (could - found) / (could - 1) * (members / could) * (1 - members / could)
        return np.where(variance > ROUNDING, np.sqrt(np.maximum(variance, ROUNDING)), np.inf)

    @cached_property
    def _generator(self) -> np.random.Generator:
        """Return a random generator seeded by what the probes find, independent of the order of records."""
        content = np.concatenate([self.group_keys, self.sizes.astype(np.uint64)])
        about = (self.records, self.members, self.items, self.member_items)
        digest = hashlib.blake2b(content.tobytes() + repr(about).encode(), digest_size=16).digest()
        return np.random.default_rng(int.from_bytes(digest, "big"))

    def draw_permuted_scores(self, n_draws: int) -> Floats:
        """Return the scores of the probes under permuted labels, (n_draws, probes)."""
        rng, sizes, others = self._generator, self.sizes[1:], int(self.sizes[0])
        people = int(sizes.sum())
        counts = np.zeros((n_draws, len(self.sizes)), dtype=np.int64)
        if len(sizes) * 4 < people:
            groups = np.append(sizes, others)
            drawn = rng.multivariate_hypergeometric(groups, self.member_items, size=n_draws, method="marginals")
            counts[:, 1:] = drawn[:, :-1]
        elif people:
            # Where most groups are single people, a permutation of these is faster than a draw a group.
            chosen = rng.hypergeometric(people, others, self.member_items, size=n_draws)
            places = rng.permuted(np.tile(np.arange(people, dtype=np.int32), (n_draws, 1)), axis=1)
            starts = np.append(0, np.cumsum(sizes)[:-1])
            counts[:, 1:] = np.add.reduceat((places < chosen[:, None]).astype(np.int64), starts, axis=1)
        return self.standardised_scores(counts)


def _with_useful_eligible(look: MembershipProbe) -> MembershipProbe:
    """Return the probe without its eligible rows if these are too many to matter, or have weights."""
    eligible = look.eligible
    few = eligible is not None and len(eligible) <= MOST_ELIGIBLE and look.hit_weights is None
    if eligible is None or (few and len(look.hits) >= SMALLEST_SHARE_FOUND * len(eligible)):
        return look
    return replace(look, eligible=None)


def _weighted_records(look: MembershipProbe) -> list[tuple[Integers, Floats | float]]:
    """Return the records of a probe with their weights: their own or 1 for hits, minus the share found for eligible rows."""
    if look.hit_weights is not None:
        return [(look.hits, look.hit_weights)]
    if look.eligible is None:
        return [(look.hits, 1.0)]
    return [(look.hits, 1.0), (look.eligible, -len(look.hits) / len(look.eligible))]


def _weight_moments(look: MembershipProbe, item_of: Integers | None) -> tuple[float, float, float]:
    """Return the sum of the items' weights, of their squares, and of the positive ones."""
    found = len(look.hits)
    if item_of is None and look.hit_weights is None:
        if look.eligible is None:
            return float(found), float(found), float(found)
        could = len(look.eligible)
        share = found / could
        return 0.0, found * (1 - share) ** 2 + (could - found) * share**2, found * (1 - share)
    if look.hit_weights is not None:
        weights = look.hit_weights
    else:
        assert item_of is not None
        weights = np.zeros(int(item_of.max()) + 1)
        for records, weight in _weighted_records(look):
            np.add.at(weights, item_of[records], weight)
    return float(weights.sum()), float(np.square(weights).sum()), float(np.maximum(weights, 0).sum())


def _in_canonical_order(looks: Sequence[MembershipProbe], records: int) -> list[MembershipProbe]:
    """Return the distinct probes, sorted by how many people they find and how many probes find these."""
    different: dict[tuple[int, ...], MembershipProbe] = {}
    for look in looks:
        if len(look.hits):
            same = different.setdefault(_content_key(look), look)
            if look.is_main and not same.is_main:
                different[_content_key(look)] = replace(same, is_main=True)
    times = np.zeros(records, dtype=np.int64)
    for look in different.values():
        times[look.hits] += 1

    def sort_key(look: MembershipProbe) -> tuple[int, int, int, int, float]:
        """Return the numbers by which a probe is sorted."""
        eligible = records if look.eligible is None else len(look.eligible)
        found = times[look.hits]
        weights = 0.0 if look.hit_weights is None else float(np.sort(look.hit_weights).sum())
        return len(look.hits), eligible, int(found.sum()), int(np.square(found).sum()), weights

    return sorted(different.values(), key=sort_key)
