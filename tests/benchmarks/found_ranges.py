"""Ranges found by noise: python tests/benchmarks/found_ranges.py [FILES].

Of 300 files (or FILES a row) of normal, lognormal and heaped numbers, 500 to 30,000 records and epsilon .5 to 5, with two
numbers whose ranges the recipe leaves open, each row prints

    hidden     files in which noise hides the range, and the fit stops
    cut        mean share of the people beyond the ends, of the other files
    mean in    share of the files whose interval of ``noisy_mean`` has the mean of the population
    width      median width of that interval, in standard deviations of the population
    cut ~, mean in ~   the same by the rule before: sums of cells from the far end, the interval of the middles of bins
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from sfumato.engine.data.arrays import Floats
from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.design import noisy_categories
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.margins import private_domain
from sfumato.engine.margins.private_domain import DeclaredRange, NoisyCells, RangeTail, count_noisy_cells
from sfumato.engine.margins.zcdp import sigma_of_rho
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.synthesis import margins

KEY = bytes(range(32))
RECORDS, EPSILONS = (500, 3_000, 30_000), (0.5, 1.0, 2.0, 5.0)
FILES = 9


@dataclass(frozen=True)
class Population:
    """Numbers of people: their distribution, their mean and their standard deviation."""

    draw: Callable[[np.random.Generator, int], Floats]
    is_whole: bool

    @property
    def moments(self) -> tuple[float, float]:
        values = self.draw(np.random.default_rng(0), 2_000_000)
        return float(values.mean()), float(values.std())


POPULATIONS = {
    "normal": Population(lambda rng, n: rng.normal(50, 12, n), is_whole=False),
    "lognormal": Population(lambda rng, n: rng.lognormal(8, 0.8, n), is_whole=False),
    "heaped": Population(
        lambda rng, n: np.where(rng.random(n) < 0.6, 5.0, 1.0) * rng.integers(4, 16, n), is_whole=True
    ),
}


def cells_from_the_far_end(
    values: Floats, declared: DeclaredRange, rho: float, rng: np.random.Generator, needs_cuts: bool = True
) -> NoisyCells | None:
    """The rule of earlier versions, as the control: an end lies where the sum of all cells beyond it exceeds its noise."""
    rho = rho / 2
    edges = private_domain._power_edges(declared.is_whole)
    noisy = private_domain._count_in_cells(values, edges) + rng.normal(0.0, sigma_of_rho(rho), len(edges) - 1)
    full = np.flatnonzero(noisy > -sigma_of_rho(rho) * float(ndtri(0.01 / len(noisy))))
    if not len(full):
        return None
    edges = private_domain._cell_edges(float(edges[full[0]]), float(edges[full[-1] + 1]), declared.is_whole)
    noisy = private_domain._count_in_cells(values, edges) + rng.normal(0.0, sigma_of_rho(rho), len(edges) - 1)

    def first_full(counts: Floats) -> int:
        far = -float(ndtri(0.01 / len(counts))) * sigma_of_rho(rho) * np.sqrt(np.arange(1, len(counts) + 1))
        over = np.flatnonzero(np.cumsum(counts) > far)
        return int(over[0]) if len(over) else len(counts)

    first, last = first_full(noisy), len(noisy) - first_full(noisy[::-1])
    if first >= last:
        first, last = 0, len(noisy)
    tails = (RangeTail(0.0, float(edges[first])), RangeTail(0.0, float(edges[last])))
    ascending = private_domain._make_ascending(np.cumsum(noisy[first:last]))
    return NoisyCells(edges[first : last + 1], ascending, tails)


@dataclass(frozen=True)
class RangeResult:
    """One file: the share of its people beyond the ends, and the interval of its mean."""

    cut: float
    lower: float
    upper: float


def result_of_file(
    population: Population,
    records: int,
    epsilon: float,
    seed: int,
    rule: Callable[..., NoisyCells | None] = count_noisy_cells,
) -> RangeResult | None:
    """Release a file of two numbers by noisy margins; None where noise hides a range."""
    kind = "count" if population.is_whole else "continuous"
    plan = Recipe.from_table(
        {
            "variables": {
                "x": {"kind": kind},
                "y": {"kind": "continuous"},
                "z": {"kind": "categorical", "levels": ["a", "b"]},
            },
            "synthesis": [
                {
                    "method": "margins",
                    "target": ["x", "y", "z"],
                    "bins": {"x": "10 equal count", "y": "10 equal count"},
                    "selection": "mst",
                    "epsilon": epsilon,
                }
            ],
            "release": {"m": 1, "seed": seed + 1, "records": 100},
        }
    )
    rng = np.random.default_rng([seed, records])
    values = population.draw(rng, records)
    frame = pd.DataFrame(
        {"x": values, "y": rng.uniform(100, 200, records), "z": np.where(rng.random(records) < 0.5, "a", "b")}
    )
    data = conform_to_schema(frame, plan.schema, plan.data.missing)
    ends: list[tuple[float, float]] = []

    def note_and_count_cells(*given: object, **named: object) -> NoisyCells | None:
        cells = rule(*given, **named)
        if cells is not None:
            ends.append((float(cells.edges[0]), float(cells.edges[-1])))
        return cells

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noisy_categories, "count_noisy_cells", note_and_count_cells)
        patch.setattr(margins, "SOFT_STEPS", 0)
        if rule is not count_noisy_cells:
            # The interval of earlier versions: that of the middles of the bins.
            patch.setattr(margins, "_widen_to_found_range", lambda mean, *_: mean)
        try:
            rows = execute_run(plan, data, key=KEY).rows
        except BadInput:
            return None
    (mean,) = [row for row in rows if row.measure == "noisy_mean" and row.target == "x"]
    low, high = ends[0]
    assert mean.lower is not None
    assert mean.upper is not None
    return RangeResult(float(np.mean((values < low) | (values > high))), mean.lower, mean.upper)


def rows_of_table(files: int) -> Iterator[str]:
    yield f"{'numbers':10}{'records':>8}{'epsilon':>8}{'hidden':>8}{'cut':>7}{'mean in':>9}{'width':>7}{'cut ~':>8}{'mean in ~':>11}"
    for name, population in POPULATIONS.items():
        mean, spread = population.moments
        for records in RECORDS:
            for epsilon in EPSILONS:
                shown = []
                for rule in (count_noisy_cells, cells_from_the_far_end):
                    results = [result_of_file(population, records, epsilon, seed, rule) for seed in range(files)]
                    shown.append([one for one in results if one is not None])
                ours, before = shown
                hidden = files - len(ours)
                if not ours or not before:
                    yield f"{name:10}{records:8,}{epsilon:8g}{hidden:8d}{'-':>7}{'-':>9}{'-':>7}{'-':>8}{'-':>11}"
                    continue
                covered = [np.mean([one.lower <= mean <= one.upper for one in some]) for some in (ours, before)]
                width = np.median([one.upper - one.lower for one in ours]) / spread
                cut = [100 * np.mean([one.cut for one in some]) for some in (ours, before)]
                yield (
                    f"{name:10}{records:8,}{epsilon:8g}{hidden:8d}{cut[0]:6.1f}%{100 * covered[0]:8.0f}%{width:7.2f}"
                    f"{cut[1]:7.1f}%{100 * covered[1]:10.0f}%"
                )


if __name__ == "__main__":
    for line in rows_of_table(int(sys.argv[1]) if len(sys.argv) > 1 else FILES):
        print(line, flush=True)
