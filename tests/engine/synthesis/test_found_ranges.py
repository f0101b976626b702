"""Ranges that noise finds: few people lie beyond them, and the interval of the mean has room for those."""

from __future__ import annotations

import numpy as np
import pytest
from found_ranges import POPULATIONS, cells_from_the_far_end, result_of_file

from sfumato.engine.margins.private_domain import count_noisy_cells

FILES = 20


@pytest.mark.slow
@pytest.mark.parametrize("name", list(POPULATIONS))
def test_of_3000_people_at_epsilon_1_at_most_2_percent_are_cut_off_and_the_mean_is_covered(name: str) -> None:
    population = POPULATIONS[name]
    mean, spread = population.moments
    results = {}
    for rule in (count_noisy_cells, cells_from_the_far_end):
        found = [result_of_file(population, 3_000, 1.0, seed, rule) for seed in range(FILES)]
        assert None not in found
        results[rule] = [one for one in found if one is not None]
    ours, before = results.values()
    assert np.mean([one.cut for one in ours]) <= 0.02
    assert np.mean([one.lower <= mean <= one.upper for one in ours]) >= 0.93
    assert np.median([one.upper - one.lower for one in ours]) < 4 * spread
    assert np.mean([one.cut for one in before]) > 0.2, "the control: the rule of earlier versions"
    assert np.mean([one.lower <= mean <= one.upper for one in before]) < 0.8, "the control: its interval"
