"""Level of the whole evidence over honest releases of twelve populations: pytest -m study tests/engine/disclosure/test_membership_level.py.

``SFUMATO_HONEST`` is the number of releases of each population (20 unless it is set; 167 make 2,000). The figures are printed with -s.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest, kstest

from sfumato.engine.disclosure.evidence import INDEPENDENCE_LEVEL, LEVEL, PERMUTATION_LEVEL
from sfumato.engine.disclosure.independent_rows import strongest_coincidence
from sfumato.engine.disclosure.membership_evidence import weigh_evidence

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from honest_populations import POPULATIONS, Population, all_looks, honest_datasets

pytestmark = pytest.mark.study
RELEASES = int(os.environ.get("SFUMATO_HONEST", "20"))


def p_values(population: Population, seed: int, *, by_unit: bool = True) -> tuple[float, float]:
    """Return p of all looks together, and of the coincidences of rows, for an honest release."""
    rng = np.random.default_rng([seed, *population.name.encode()])
    members, controls = population.sizes
    joint, units = population.people(rng, members, controls)
    looks, coincidences = all_looks(joint, members, honest_datasets(population, rng, members))
    evidence = weigh_evidence(looks, members, members + controls, PERMUTATION_LEVEL, units if by_unit else None)
    alone = strongest_coincidence(coincidences, members, members + controls)
    return evidence.p, 1.0 if alone is None else alone.p


def test_honest_releases_of_twelve_populations_are_found_at_the_level_and_rows_of_households_above_it() -> None:
    together, alone = list[float](), list[float]()
    for population in POPULATIONS:
        found = [p_values(population, seed) for seed in range(RELEASES)]
        p = np.array([one for one, _ in found])
        print(
            f"{population.name:26} at most .01: {np.mean(p <= 0.01):.3f}, at most .05: {np.mean(p <= 0.05):.3f}, median {np.median(p):.2f}"
        )
        together += [one for one, _ in found]
        alone += [one for _, one in found]
    p, q = np.array(together), np.array(alone)
    for what, count in (
        ("all looks, at .01", np.sum(p <= LEVEL)),
        ("all looks, at .05", np.sum(p <= 0.05)),
        ("coincidences of rows, at their part of the level", np.sum(q <= INDEPENDENCE_LEVEL)),
        ("the gate, at .01", np.sum((p <= PERMUTATION_LEVEL) | (q <= INDEPENDENCE_LEVEL))),
    ):
        low, high = binomtest(int(count), len(p)).proportion_ci(method="exact")
        print(f"{what}: {count} of {len(p)}, {count / len(p):.4f} ({low:.4f} to {high:.4f})")
    print(f"uniform: Kolmogorov p {kstest(p, 'uniform').pvalue:.3f}")
    assert binomtest(int(np.sum(p <= LEVEL)), len(p), LEVEL).pvalue > 0.001
    assert (
        binomtest(int(np.sum(q <= INDEPENDENCE_LEVEL)), len(p), INDEPENDENCE_LEVEL, alternative="greater").pvalue
        > 0.001
    )
    assert kstest(p, "uniform", alternative="greater").pvalue > 0.001, "never more small values than of a uniform one"


def test_labels_permuted_by_row_where_people_come_in_households_fail() -> None:
    """The negative control."""
    households = [one for one in POPULATIONS if one.household > 1]
    p = np.array([p_values(one, seed, by_unit=False)[0] for one in households for seed in range(max(40, RELEASES))])
    print(f"by row, at .01: {np.mean(p <= LEVEL):.3f} of {len(p)}")
    assert binomtest(int(np.sum(p <= LEVEL)), len(p), LEVEL, alternative="greater").pvalue < 0.001
