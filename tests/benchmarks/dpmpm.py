"""The mixture of products of multinomials: seconds of processor time a run of sweeps, and what grows with what.

    python tests/benchmarks/dpmpm.py [SWEEPS]

Prints a line for each number of records and of variables: distinct rows, seconds, the exponent of growth from the line before, and how many times
longer a sweep takes that draws the class of one record after another.
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np

from sfumato.engine.methods.run import ignore_progress
from sfumato.engine.posterior.distinct_rows import Codes, DistinctRows
from sfumato.engine.posterior.multinomial_mixture import (
    ClassAllocation,
    MixtureParameters,
    MixturePrior,
    sample_mixture,
)

PRIOR = MixturePrior(classes=40, concentration=1.0, shape=0.25, rate=0.25)
LEVELS = (3, 2, 4, 5, 2, 3, 6, 2, 3, 4)
SLOWLY = 500
"""Records of the naive sweep, whose time is that of so many times more."""


def simulated(records: int, levels: tuple[int, ...]) -> list[Codes]:
    """Codes of records of eight classes."""
    rng = np.random.default_rng(1)
    z = rng.choice(8, size=records, p=rng.dirichlet(np.full(8, 3.0)))
    found = []
    for size in levels:
        upto = np.cumsum(rng.dirichlet(np.full(size, 0.7), size=8), axis=1)
        found.append((upto[z] <= rng.random(records)[:, None]).sum(axis=1).clip(0, size - 1))
    return found


def naive(codes: list[Codes], levels: tuple[int, ...], now: MixtureParameters, rng: np.random.Generator) -> None:
    """One sweep over the classes of all records, record after record."""
    starts = np.concatenate([[0], np.cumsum(levels)])
    weights, phi = np.exp(now.log_weights), np.exp(now.log_levels)
    counts = np.zeros_like(phi)
    for i in range(len(codes[0])):
        chances = weights.copy()
        for j, own in enumerate(codes):
            chances *= phi[:, starts[j] + own[i]]
        k = rng.choice(len(weights), p=chances / chances.sum())
        for j, own in enumerate(codes):
            counts[k, starts[j] + own[i]] += 1


def main() -> None:
    """Print the table."""
    sweeps = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print(f"records variables distinct rows   {sweeps:,} sweeps  growth  naive ratio")
    for levels in (LEVELS[:5], LEVELS):
        before: tuple[int, float] | None = None
        for records in (1_000, 10_000, 100_000):
            codes = simulated(records, levels)
            rows, rng = DistinctRows.from_codes(codes, levels, records), np.random.default_rng(2)
            start = time.process_time()
            sampled = sample_mixture(
                rows, PRIOR, 1, rng, ignore_progress, sweeps=sweeps, burn_in=sweeps // 2, thin=1, chains=1
            )
            spent = time.process_time() - start
            now = sampled.kept[0]
            start = time.process_time()
            naive([own[:SLOWLY] for own in codes], levels, now, rng)
            slow = (time.process_time() - start) * records / SLOWLY
            start = time.process_time()
            for _ in range(10):
                ClassAllocation.from_parameters(rows, now, rng)
            ratio = slow / ((time.process_time() - start) / 10)
            growth = f"{math.log(spent / before[1]) / math.log(records / before[0]):.2f}" if before else ""
            before = (records, spent)
            print(
                f"{records:>7,} {len(levels):>9} {len(rows.counts):>13,} {spent:>12.2f} s {growth:>7} {ratio:>12.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
