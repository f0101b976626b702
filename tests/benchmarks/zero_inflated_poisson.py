"""Times of the zero-inflated Poisson posterior and its samplers on 10,000 listings. Run as a script; prints medians.

    python tests/benchmarks/zero_inflated_poisson.py

Uses AB_NYC_2019.csv of the public data (SFUMATO_DATA, else ../shared/data). One thread of linear algebra, as in a worker.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from public_data import PUBLIC_DATA
from threadpoolctl import threadpool_limits

from sfumato.engine.methods.results import Trace
from sfumato.engine.methods.run import Progress
from sfumato.engine.posterior.ensemble import (
    bulk_effective_sample_size,
    chain_trace,
    rank_normalised_split_r_hat,
    sample_emcee,
    tail_effective_sample_size,
)
from sfumato.engine.posterior.laplace import find_mode, sample_laplace
from sfumato.engine.posterior.poisson_lognormal import PredictedRates, draw_counts
from sfumato.engine.posterior.zero_inflated_poisson import ZeroInflatedPoisson
from sfumato.workspace.store.artefacts import write_trace
from sfumato.workspace.store.tables import TableStore

BOUND = 365


def listings(n: int) -> tuple[np.ndarray, np.ndarray]:
    frame = pd.read_csv(PUBLIC_DATA / "AB_NYC_2019.csv").query("price > 0").sample(n, random_state=1)
    factors = [frame["room_type"], frame["neighbourhood_group"]]
    indicators = [(f == level).to_numpy(float) for f in factors for level in sorted(f.unique())[1:]]
    x = np.column_stack([np.ones(n), *indicators, np.log1p(frame["number_of_reviews"])])
    return frame["availability_365"].to_numpy(), x


def silent(progress: Progress) -> None:
    pass


def seconds(work: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def heights(theta: np.ndarray) -> np.ndarray:
    return -0.5 * np.sum(theta**2, axis=2)


def look(theta: np.ndarray) -> list[float]:
    chains = [np.ascontiguousarray(theta[156:, :, i].T) for i in range(theta.shape[2])]
    statistics_of = (rank_normalised_split_r_hat, bulk_effective_sample_size, tail_effective_sample_size)
    return [statistic(chain) for chain in chains for statistic in statistics_of]


def stored(trace: Trace | None) -> int:
    assert trace is not None
    with tempfile.TemporaryDirectory() as directory:
        tables = TableStore(Path(directory))
        return tables.path_of(write_trace(tables, trace)).stat().st_size


def counts(n: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Counts with this share of zeros, and a design of an indicator and two numbers that never repeat."""
    rng = np.random.default_rng(1)
    x = np.column_stack([np.ones(n), rng.integers(0, 2, n), rng.normal(size=(n, 2))])
    above = rng.choice(n, max(round(n * (1 - share)), 1), replace=False)
    rates = np.exp(x[above] @ [2.0, 0.4, 0.3, 0.3] + rng.normal(0, 0.8, above.size))
    y = np.zeros(n)
    y[above] = np.clip(rng.poisson(rates), 1, BOUND)
    return y, x


def shares_of_zeros() -> None:
    """Processor seconds of a fit by ``laplace`` for 20 draws, 9 parameters."""
    print(f"{'zeros':>8} {'records':>8} {'seconds':>8} {'k-hat':>6}")
    for n, share in ((10_000, 0.5), (10_000, 0.99), (10_000, 0.999), (10_000, 0.9999), (50_000, 0.999)):
        y, x = counts(n, share)
        start = time.process_time()
        model = ZeroInflatedPoisson.from_design(y, x, BOUND)
        posterior = sample_laplace(model, 20, np.random.default_rng(1), silent)
        shape = next(found.value for found in posterior.diagnostics if found.name == "pareto_k")
        print(f"{share:>8.2%} {n:>8,} {time.process_time() - start:>8.1f} {shape:>6.2f}")


def main() -> None:
    y, x = listings(10_000)
    model = ZeroInflatedPoisson.from_design(y, x, BOUND)
    mode = find_mode(model)
    near = model.density_around(mode.theta, mode.covariance)
    thetas = np.random.default_rng(0).multivariate_normal(mode.theta, mode.covariance, 500)
    theta, names = thetas[:20], model.names
    rows: list[tuple[str, Callable[[], object], int, int]] = [
        ("collapse the records", lambda: ZeroInflatedPoisson.from_design(y, x, BOUND), 1, 5),
        ("density, gradient and Hessian", lambda: model.derivatives(mode.theta), 1, 9),
        ("mode", lambda: find_mode(model), 1, 5),
        ("prepare the local density", lambda: model.density_around(mode.theta, mode.covariance), 1, 5),
        ("local density, each theta", lambda: near(thetas), 500, 5),
        ("laplace, 20 draws", lambda: sample_laplace(model, 20, np.random.default_rng(1), silent), 1, 5),
        ("emcee, 20 draws", lambda: sample_emcee(model, 20, np.random.default_rng(1), silent), 1, 3),
        (
            "20 vectors of new effects",
            lambda: [
                draw_counts(PredictedRates.from_theta(t, x.dot), BOUND, "new", np.random.default_rng(1)) for t in theta
            ],
            1,
            5,
        ),
        (
            "20 vectors of the records' effects",
            lambda: [
                draw_counts(PredictedRates.from_theta(t, x.dot), BOUND, "record", np.random.default_rng(1), y)
                for t in theta
            ],
            1,
            5,
        ),
    ]
    theta_of_chains = np.random.default_rng(2).normal(size=(784, 40, 17))
    rows.append(
        ("the trace of 784 steps", lambda: chain_trace(theta_of_chains, heights(theta_of_chains), names, 156), 1, 5)
    )
    rows.append(("one look at convergence", lambda: look(theta_of_chains), 1, 5))
    print(f"{y.size} records, {model.y.size} distinct pairs, {mode.theta.size} parameters")
    for what, work, pieces, repeats in rows:
        print(f"{what:<36} {1000 * seconds(work, repeats) / pieces:>10.2f} ms")
    for sample in (sample_laplace, sample_emcee):
        print(
            f"{sample.__name__ + ', trace stored':<36} {stored(sample(model, 20, np.random.default_rng(1), silent).trace):>10,} bytes"
        )


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main()
        shares_of_zeros()
