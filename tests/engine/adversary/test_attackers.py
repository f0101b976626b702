"""Scores of the family of attackers: distances, likelihoods and agreement by loops over people and records."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.special import logsumexp

from sfumato.engine.adversary.attackers import AttackerFamily, draw_variable_halves
from sfumato.engine.statistics.gower import UNIT, GowerDistance

NAMES = ("job", "x", "y")
LEVELLED = np.array([True, False, False])
RECORDS = 128
"""A power of two, so that no place is rounded."""
GOWER = GowerDistance(NAMES, RECORDS, {"job": {str(k): k for k in range(4)}}, {"x": np.zeros(0), "y": np.zeros(0)})


def places(rng: np.random.Generator, rows: int) -> np.ndarray:
    return np.column_stack([rng.integers(0, 3, rows), rng.integers(0, 2 * RECORDS, (rows, 2))]).astype(float)


def distance(one: np.ndarray, other: np.ndarray, chosen: np.ndarray) -> float:
    each = [float(one[0] != other[0]), *(abs(one[k] - other[k]) / (2 * RECORDS) for k in (1, 2))]
    return sum(d for d, inside in zip(each, chosen, strict=True) if inside)


def distances(some: np.ndarray, others: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    return np.array([[distance(one, other, chosen) for other in others] for one in some])


@pytest.mark.parametrize("datasets", [1, 3])
def test_scores_are_what_loops_over_people_and_records_compute(datasets: int) -> None:
    rng = np.random.default_rng(datasets)
    own, reference = places(rng, 12), places(rng, 40)
    releases = [np.concatenate([own[:4], places(rng, 10 + 9 * at)]) for at in range(datasets)]
    releases[-1][3:] = reference[: len(releases[-1]) - 3]
    density = rng.normal(size=(1 + datasets, 12, 2))
    halves = draw_variable_halves(3, rng)
    family = AttackerFamily.from_halves(LEVELLED, NAMES, halves)
    found = family.membership_scores(GOWER, own, releases, reference, density)
    everything = np.ones(3, dtype=bool)
    within = np.sort(distances(reference, reference, everything), axis=1)[:, 1]
    width = max(float(within.mean()), 0.01)
    tables = [np.concatenate(releases), *releases]
    for at, shown in enumerate(tables):
        column = 0
        elsewhere = {}
        for chosen in family.distance_sets:
            nearest = distances(own, shown, chosen).min(axis=1)
            elsewhere[column] = distances(own, reference, chosen).min(axis=1) - nearest
            assert found[at, :, column] == pytest.approx(-nearest * UNIT)
            column += 1
        for expected in elsewhere.values():
            assert found[at, :, column] == pytest.approx(expected * UNIT)
            column += 1
        assert found[at, :, column] == pytest.approx(1e6 * density[at, :, 0] + density[at, :, 1])
        apart = np.sort(distances(own, shown, everything), axis=1)
        kernel = logsumexp(-distances(shown, reference, everything) / width, axis=1)
        order = np.argsort(distances(own, shown, everything), axis=1, kind="stable")
        k = min(10, len(releases[0]))
        assert len({round(v, 9) for v in apart[0]}) > k
        gain = [
            sum(math.log1p(math.exp(-apart[i, r] / width - kernel[order[i, r]])) for r in range(k)) for i in range(12)
        ]
        is_tied = np.isclose(apart[:, k - 1], apart[:, k])  # which of equally near records count is a matter of order
        assert found[at, ~is_tied, column + 1] == pytest.approx(np.array(gain)[~is_tied], rel=1e-3)
        assert is_tied.sum() < 6
        column += 2
        for chosen in family.agreement_sets:
            counts = [
                [sum(bool((row[chosen] == one[chosen]).all()) for row in rows) for one in own]
                for rows in (shown, reference)
            ]
            ratio = np.log((np.array(counts[0]) + 0.5) / (len(shown) + 1))
            ratio -= np.log((np.array(counts[1]) + 0.5) / (len(reference) + 1))
            assert found[at, :, column] == pytest.approx(ratio)
            column += 1
        assert column == len(family.names)
    alone = family.scores_without_release(GOWER, own, reference)
    for column, chosen in enumerate(family.distance_sets):
        assert alone[:, column] == pytest.approx(distances(own, reference, chosen).min(axis=1) * UNIT)


def test_attackers_use_all_variables_each_kind_halves_and_all_but_one() -> None:
    halves = np.array([[True, True, False]])
    family = AttackerFamily.from_halves(LEVELLED, NAMES, halves)
    assert family.distance_sets.astype(int).tolist() == [[1, 1, 1], [1, 0, 0], [0, 1, 1], [1, 1, 0]]
    assert family.agreement_sets.astype(int).tolist() == [[1, 1, 1], [1, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert len(family.names) == 4 + 4 + 2 + 5
    assert family.names[-3:] == ("agreement in all but job", "agreement in all but x", "agreement in all but y")
    numbers = AttackerFamily.from_halves(np.zeros(1, dtype=bool), ("x",), np.zeros((0, 1), dtype=bool))
    assert (len(numbers.distance_sets), len(numbers.agreement_sets)) == (1, 1)
    two = AttackerFamily.from_halves(np.ones(2, dtype=bool), ("a", "b"), np.zeros((0, 2), dtype=bool))
    assert two.agreement_sets.astype(int).tolist() == [[1, 1], [0, 1], [1, 0]]
    for variables, more in ((30, 30), (31, 0)):
        names = [f"v{k}" for k in range(variables)]
        wide = AttackerFamily.from_halves(np.ones(variables, dtype=bool), names, np.zeros((0, variables), dtype=bool))
        assert len(wide.agreement_sets) == 1 + more


@pytest.mark.parametrize("variables", [1, 2, 3, 4, 5, 9])
def test_halves_are_distinct_sets_of_half_of_the_variables(variables: int) -> None:
    drawn = draw_variable_halves(variables, np.random.default_rng(1))
    size = (variables + 1) // 2
    every = len(list(combinations(range(variables), size)))
    assert drawn.shape == (0 if variables < 3 else min(8, every), variables)
    assert (drawn.sum(axis=1) == size).all()
    assert len({tuple(row) for row in drawn.tolist()}) == len(drawn)
