"""Time and memory of the cluster measure, and u_c of releases by trees. Run as a script; prints tables.

    python tests/benchmarks/cluster.py

Listings of AB_NYC_2019.csv of the public data (SFUMATO_DATA, else ../shared/data), released by trees. scipy's average
linkage of the same rows is timed to 10,000 rows (it needs 3.2 GB at 20,000), fastcluster's where it is installed.
Published u_c of 10,000 listings by trees: 4.47e-6 (Guo & Hu table 7).
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from public_data import PUBLIC_DATA
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.run import PUBLIC, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.utility.cluster import ClusterSpec, _make_points, cluster

KNOWN = ["room_type", "neighbourhood_group", "number_of_reviews"]
VARIABLES = {
    "room_type": {"kind": "categorical"},
    "neighbourhood_group": {"kind": "categorical"},
    "number_of_reviews": {"kind": "count"},
    "availability_365": {"kind": "count"},
    "price": {"kind": "continuous"},
}


def tables(n: int, m: int = 1) -> tuple[Microdata, list[Microdata]]:
    """n listings and m releases of them."""
    recipe = Recipe.from_table(
        {
            "variables": VARIABLES,
            "release": {"m": m, "seed": 2020},
            "synthesis": [
                {"target": "availability_365", "method": "cart", "predictors": KNOWN},
                {"target": "price", "method": "cart", "predictors": [*KNOWN, "availability_365"]},
            ],
        }
    )
    frame = pd.read_csv(PUBLIC_DATA / "AB_NYC_2019.csv").query("price > 0")
    data = conform_to_schema(frame.sample(n, random_state=1), recipe.schema)
    fits = [fit_model(recipe, k, data, key=PUBLIC) for k in range(2)]
    return data, [draw_dataset(recipe, draw, data, fits, key=PUBLIC) for draw in range(1, m + 1)]


def sfumato_clustering(n: int) -> Callable[[], object]:
    data, (release,) = tables(n)
    return lambda: cluster(data, release, ClusterSpec(limit=10**6), Run(np.random.default_rng(1)))


def scipy_clustering(n: int) -> Callable[[], object]:
    data, (release,) = tables(n)
    points = _make_points(data, release, data.schema.names, "standard")
    return lambda: linkage(pdist(points), "average")


def fastcluster_clustering(n: int) -> Callable[[], object]:
    import fastcluster

    data, (release,) = tables(n)
    points = _make_points(data, release, data.schema.names, "standard")
    return lambda: fastcluster.linkage(pdist(points), "average", preserve_input=False)


def measure_cost(prepare: Callable[[int], Callable[[], object]], n: int) -> str:
    """Seconds and gigabytes, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        try:
            seconds, peak = pool.apply(_run, (prepare, n))
        except ImportError:
            return f"{'absent':>10} {'':>8}"
    return f"{seconds:>10.2f} {peak:>8.2f}"


def _run(prepare: Callable[[int], Callable[[], object]], n: int) -> tuple[float, float]:
    work = prepare(n)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def main() -> None:
    methods = {"this": sfumato_clustering, "fastcluster": fastcluster_clustering, "scipy": scipy_clustering}
    print(f"{'rows':>7}" + "".join(f"{name + ' s':>15} {'GB':>5}" for name in methods))
    for n in (2_500, 5_000, 10_000):
        parts = [measure_cost(prepare, n) if n < 10_000 or name != "scipy" else "" for name, prepare in methods.items()]
        print(f"{2 * n:>7,}" + "".join(f"{part:>21}" for part in parts), flush=True)
    data, releases = tables(10_000, 20)
    estimates = [
        cluster(data, release, ClusterSpec(), Run(np.random.default_rng(1))).estimates[0] for release in releases
    ]
    values = [estimate.value for estimate in estimates if estimate.value is not None]
    print(
        f"\nu_c of 20 releases by trees: mean {np.mean(values):.3g}, from {min(values):.3g} to {max(values):.3g}; published 4.47e-06"
    )
    print(f"mean over random labels: {estimates[0].baseline:.3g}")


if __name__ == "__main__":
    main()
