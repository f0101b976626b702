"""Times of the propensity score and of interval overlap for 20 released datasets. Run as a script; prints a table.

    python tests/benchmarks/propensity.py

Uses AB_NYC_2019.csv of the public data (SFUMATO_DATA, else ../shared/data). The released tables draw the price anew from a
regression of its logarithm and the available days from those of listings of the same room type.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from public_data import PUBLIC_DATA
from threadpoolctl import threadpool_limits

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.methods.results import Measure
from sfumato.engine.methods.run import Run
from sfumato.engine.utility.interval_overlap import IntervalOverlapSpec, interval_overlap
from sfumato.engine.utility.propensity import PropensitySpec, propensity

SCHEMA = Schema(
    (
        Variable("room_type", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER),
        Variable("neighbourhood_group", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER),
        Variable("number_of_reviews", Kind.COUNT, Role.QUASI_IDENTIFIER),
        Variable("availability_365", Kind.COUNT, Role.SENSITIVE),
        Variable("price", Kind.CONTINUOUS, Role.SENSITIVE),
    )
)
DATASETS = 20
ESTIMANDS = {
    "means": ["availability_365", "price"],
    "quantiles": ["availability_365", "price"],
    "models": ["log(price) ~ neighbourhood_group + room_type + number_of_reviews + availability_365"],
}


def listings(n: int) -> Microdata:
    frame = pd.read_csv(PUBLIC_DATA / "AB_NYC_2019.csv").query("price > 0")
    return conform_to_schema(frame.sample(n, replace=n > len(frame), random_state=1), SCHEMA)


def draw_released_dataset(data: Microdata, seed: int) -> Microdata:
    rng = np.random.default_rng(seed)
    groups = data.frame.groupby("room_type", observed=True)
    log_price = np.log(data.column("price"))
    centre = groups["price"].transform(lambda price: np.log(price).mean())
    price = np.exp(centre + (log_price - centre).std() * rng.normal(size=len(data)))
    days = groups["availability_365"].transform(lambda column: rng.choice(column, len(column)))
    return data.with_columns({"price": price, "availability_365": days}, "synthetic")


def line(name: str, n: int, measure: Callable[[Microdata], Measure], tables: list[Microdata]) -> str:
    start = time.perf_counter()
    found = [measure(table) for table in tables]
    seconds = time.perf_counter() - start
    ratio = [e.value for e in found[0].estimates if e.measure == "s_pmse"]
    return f"{name:20} {n:>8,} {len(tables):>9} {seconds:>10.2f} {ratio[0] if ratio else float('nan'):>10.2f}"


def report(n: int) -> None:
    run = Run(np.random.default_rng(0))
    data = listings(n)
    tables = [draw_released_dataset(data, seed) for seed in range(DATASETS)]
    for table in ({}, {"model": "logit_interactions"}, {"model": "cart"}, {"model": "cart", "minbucket": 5}):
        spec = PropensitySpec.from_table(table, "")
        name = " ".join(map(str, table.values())) or "logit"
        print(line(name, n, partial(propensity, data, spec=spec, run=run), tables))
    overlap = IntervalOverlapSpec.from_table(ESTIMANDS, "")
    print(line("interval overlap", n, partial(interval_overlap, data, spec=overlap, run=run), tables))


def main() -> None:
    print(f"{'':20} {'records':>8} {'datasets':>9} {'seconds':>10} {'s_pmse':>10}")
    for n in (10_000, 50_000):
        report(n)


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main()
