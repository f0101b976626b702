"""Classes split and merged: the steps alone against all groupings of a small table enumerated, and from a start that sweeps do not leave."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy.special import gammaln

from sfumato.engine.posterior import multinomial_mixture as split_merge
from sfumato.engine.posterior.distinct_rows import DistinctRows
from sfumato.engine.posterior.multinomial_mixture import (
    ClassAllocation,
    ClassMembers,
    MixtureParameters,
    log_allocation_prior,
    log_class_likelihood,
    propose_split,
    propose_split_or_merge,
)

LEVELS = (2, 3)
CODES = [np.array([0, 0, 1, 1]), np.array([0, 0, 2, 0])]
ALPHA, SIZE = 0.7, 3


def log_probability(z: tuple[int, ...], concentration: float = 1.0) -> float:
    """Log p(z, x | alpha) as it is defined, class by class and record by record."""
    found, records = 0.0, [z.count(k) for k in range(SIZE)]
    for k in range(SIZE - 1):
        after = sum(records[k + 1 :])
        found += (
            np.log(ALPHA) + gammaln(1 + records[k]) + gammaln(ALPHA + after) - gammaln(1 + ALPHA + records[k] + after)
        )
    for k, (codes, size) in itertools.product(range(SIZE), zip(CODES, LEVELS, strict=True)):
        seen = np.zeros(size)
        for record in np.flatnonzero(np.array(z) == k):
            found += np.log((concentration + seen[codes[record]]) / (concentration * size + seen.sum()))
            seen[codes[record]] += 1
    return float(found)


def key(records: np.ndarray, levels: np.ndarray) -> tuple[int, ...]:
    return (*records.astype(int).tolist(), *levels.astype(int).ravel().tolist())


def allocated(rows: DistinctRows, z: tuple[int, ...]) -> ClassAllocation:
    return ClassAllocation.from_assignments(rows, rows.place, np.array(z), None, SIZE)


def test_the_log_probabilities_are_those_of_their_definition() -> None:
    rows = DistinctRows.from_codes(CODES, LEVELS, 4)
    for z in itertools.product(range(SIZE), repeat=4):
        now = allocated(rows, z)
        found = log_allocation_prior(now.records, ALPHA) + sum(
            log_class_likelihood(own, rows.level_starts, 1.0) for own in now.levels
        )
        assert found == pytest.approx(log_probability(z))


@pytest.mark.study
def test_steps_alone_visit_every_grouping_as_often_as_its_probability_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """All 81 groupings of four records in three classes; rows of two records are split as well."""
    monkeypatch.setattr(split_merge, "STEPS", 2)
    rows, rng = DistinctRows.from_codes(CODES, LEVELS, 4), np.random.default_rng(5)
    expected: Counter[tuple[int, ...]] = Counter()
    for z in itertools.product(range(SIZE), repeat=4):
        now = allocated(rows, z)
        expected[key(now.records, now.levels)] += np.exp(log_probability(z))
    total, times = sum(expected.values()), 40_000
    z, seen, accepted = np.zeros(4, dtype=np.int64), Counter[tuple[int, ...]](), 0
    for _ in range(times):
        now = allocated(rows, tuple(z.tolist()))
        records, levels, moved = propose_split_or_merge(
            rows, ClassMembers(rows.place, z, None), now.records, now.levels, 1.0, ALPHA, rng
        )
        accepted += moved
        seen[key(records, levels)] += 1
        if moved:
            z = grouping(records, levels, rng)
    assert accepted > times / 20
    assert set(seen) <= set(expected)
    distance = sum(abs(seen[one] / times - weight / total) for one, weight in expected.items()) / 2
    assert distance < 0.04
    uniform = sum(abs(seen[one] / times - 1 / len(expected)) for one in expected) / 2
    assert uniform > 0.2, "the negative control"


ALIKE: dict[tuple[int, ...], list[tuple[int, ...]]] = {}


def grouping(records: np.ndarray, levels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One of the groupings with these counts, each as likely as the others: alike records are exchanged."""
    rows = DistinctRows.from_codes(CODES, LEVELS, 4)
    if not ALIKE:
        for z in itertools.product(range(SIZE), repeat=4):
            now = allocated(rows, z)
            ALIKE.setdefault(key(now.records, now.levels), []).append(z)
    fits = ALIKE[key(records, levels)]
    return np.array(fits[rng.integers(len(fits))])


def test_parts_do_not_hang_on_how_records_are_split_now_and_their_chances_sum_to_one() -> None:
    rows = DistinctRows.from_codes(CODES, LEVELS, 4)
    counts = rows.counts.astype(float)
    which, first, second = propose_split(rows, counts, 1.0, np.random.default_rng(1))
    assert which.tolist() == list(range(len(counts)))
    assert np.exp(first) + np.exp(second) == pytest.approx(1.0)


@pytest.mark.slow
def test_two_groups_that_began_as_one_are_found_in_few_steps() -> None:
    """One class is split into the two that made the records, and these are not merged again."""
    rng = np.random.default_rng(3)
    z = rng.integers(2, size=600)
    codes = [np.where(rng.random(600) < 0.1, 1 - z, z) for _ in range(6)]
    rows = DistinctRows.from_codes(codes, (2,) * 6, 600)
    where = np.zeros(len(rows.counts), dtype=np.int64)
    now = ClassAllocation.from_assignments(rows, np.arange(len(where)), where, rows.counts.astype(float), 8)
    members = ClassMembers(np.arange(len(where)), where, rows.counts.astype(float))
    split = next(
        step
        for step in range(60)
        if (found := propose_split_or_merge(rows, members, now.records, now.levels, 1.0, 0.5, rng))[2]
    )
    assert split < 30
    assert np.sort(found[0])[-2:].min() > 250
    assert found[1].sum() == now.levels.sum()
    parameters = MixtureParameters(np.log(np.full(8, 1 / 8)), np.log(np.full((8, 12), 0.5)), 1.0)
    assert ClassAllocation.from_parameters(rows, parameters, rng)[0].members is not None
