"""Level of the whole evidence over honest releases of twelve populations: pytest -m study tests/engine/adversary/test_membership_level.py.

``SFUMATO_HONEST`` is the number of releases of each population (20 unless it is set; 167 make 2,000). The figures are printed with -s.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest, kstest

from sfumato.engine.adversary.evidence import CONTENT_LEVEL
from sfumato.engine.adversary.membership_evidence import weigh_evidence

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from honest_populations import POPULATIONS, Population, all_looks, honest_datasets

pytestmark = pytest.mark.study
RELEASES = int(os.environ.get("SFUMATO_HONEST", "20"))


def p_values(population: Population, seed: int, *, by_unit: bool = True) -> tuple[float, float, float]:
    """Return p of all evidence, of the labels alone, and of rows alone, for an honest release."""
    rng = np.random.default_rng([seed, *population.name.encode()])
    members, controls = population.sizes
    joint, units = population.people(rng, members, controls)
    looks, rows = all_looks(joint, members, honest_datasets(population, rng, members))
    evidence = weigh_evidence(looks, members, members + controls, CONTENT_LEVEL, units if by_unit else None, rows)
    return evidence.p, evidence.p_by_labels, 1.0 if rows is None else rows.p


def test_honest_releases_of_twelve_populations_are_found_at_the_level() -> None:
    found = []
    for population in POPULATIONS:
        some = np.array([p_values(population, seed) for seed in range(RELEASES)])
        labels = some[:, 1]
        print(
            f"{population.name:26} at most .01: {np.mean(some[:, 0] <= 0.01):.3f}, by labels alone {np.mean(labels <= 0.01):.3f}, "
            f"at most .05 {np.mean(labels <= 0.05):.3f}, median {np.median(labels):.2f}"
        )
        found.append(some)
    p, labels, rows = np.concatenate(found).T
    for what, count in (
        ("all evidence, at .01", np.sum(p <= CONTENT_LEVEL)),
        ("labels alone, at .01", np.sum(labels <= CONTENT_LEVEL)),
        ("labels alone, at .05", np.sum(labels <= 0.05)),
        ("rows alone, at .05", np.sum(rows <= 0.05)),
    ):
        low, high = binomtest(int(count), len(p)).proportion_ci(method="exact")
        print(f"{what}: {count} of {len(p)}, {count / len(p):.4f} ({low:.4f} to {high:.4f})")
    # A release in which no look finds anybody has p = 1.
    spoken = labels[labels < 1]
    print(
        f"uniform: Kolmogorov p {kstest(labels, 'uniform').pvalue:.3f}, of {len(spoken)} below 1 {kstest(spoken, 'uniform').pvalue:.3f}"
    )
    print("tenths of the labels' p: " + " ".join(f"{one:.3f}" for one in np.histogram(labels, 10, (0, 1))[0] / len(p)))
    assert binomtest(int(np.sum(p <= CONTENT_LEVEL)), len(p), CONTENT_LEVEL, alternative="greater").pvalue > 0.001
    assert binomtest(int(np.sum(labels <= CONTENT_LEVEL)), len(p), CONTENT_LEVEL).pvalue > 0.001
    assert binomtest(int(np.sum(rows <= 0.05)), len(p), 0.05, alternative="greater").pvalue > 0.001
    assert kstest(labels, "uniform", alternative="greater").pvalue > 0.001, (
        "never more small values than of a uniform one"
    )


def test_labels_permuted_by_row_where_people_come_in_households_fail() -> None:
    """The negative control."""
    households = [one for one in POPULATIONS if one.household > 1]
    p = np.array([p_values(one, seed, by_unit=False)[1] for one in households for seed in range(max(40, RELEASES))])
    print(f"by row, at .01: {np.mean(p <= CONTENT_LEVEL):.3f} of {len(p)}")
    assert binomtest(int(np.sum(p <= CONTENT_LEVEL)), len(p), CONTENT_LEVEL, alternative="greater").pvalue < 0.001
