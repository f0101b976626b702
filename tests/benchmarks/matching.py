"""Times of the matching join and of what is built on it. Run as a script; prints a table of medians.

    python tests/benchmarks/matching.py

Uses AB_NYC_2019.csv of the public data (SFUMATO_DATA, else ../shared/data): rows drawn with replacement beyond its
own size, prices spread so that they are distinct. Synthetic tables permute the two sensitive columns.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from public_data import PUBLIC_DATA

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.matching.matching import ExactKey
from sfumato.engine.methods.run import Run
from sfumato.engine.risk.attribute import AttributeSpec, attribute
from sfumato.engine.risk.identification import IdentificationSpec, identification
from sfumato.engine.studies.intruder_knowledge import subset_risks
from sfumato.engine.studies.intruder_uncertainty import IntruderUncertaintySpec, intruder_uncertainty

SCHEMA = Schema(
    (
        Variable("room_type", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER),
        Variable("neighbourhood_group", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER),
        Variable("number_of_reviews", Kind.COUNT, Role.QUASI_IDENTIFIER),
        Variable("availability_365", Kind.COUNT, Role.SENSITIVE),
        Variable("price", Kind.CONTINUOUS, Role.SENSITIVE),
    )
)
RELEASED = ("availability_365", "price")
RADIUS = {"availability_365": 5, "price": "5%"}
RUN = Run(np.random.default_rng(0))


def listings(n: int) -> Microdata:
    frame = pd.read_csv(PUBLIC_DATA / "AB_NYC_2019.csv").query("price > 0")
    rows = frame.sample(n, replace=n > len(frame), random_state=1)
    if n > len(frame):
        rows["price"] *= np.random.default_rng(0).uniform(0.98, 1.02, n)
    return conform_to_schema(rows, SCHEMA)


def permuted(data: Microdata, seed: int) -> Microdata:
    order = np.random.default_rng(seed).permutation(len(data))
    columns = {name: data.column(name).iloc[order].reset_index(drop=True) for name in RELEASED}
    return data.with_columns(columns, "synthetic")


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def naive(data: Microdata, released: Microdata, records: int) -> None:
    """The double loop, its inner loop vectorised, for the first records."""
    known = [(data.numbers(name), released.numbers(name)) for name in SCHEMA.names]
    for i in range(records):
        same = np.logical_and.reduce([b == a[i] for a, b in known[:3]])
        (days, released_days), (price, released_price) = known[3:]
        near = (abs(released_days - days[i]) <= 5) & (abs(released_price - price[i]) <= 5 * price[i] / 100)
        np.count_nonzero(same & near)


def row(data: Microdata, identified: IdentificationSpec, learnt: AttributeSpec) -> str:
    n, released = len(data), permuted(data, 1)
    repeats = 5 if n <= 100_000 else 3
    this = seconds(lambda: identification(data, released, identified, RUN), repeats)
    other = seconds(lambda: attribute(data, released, learnt, RUN), repeats)
    loop = seconds(lambda: naive(data, released, 50), 3) / 50 * n
    return f"{n:>9,} {this:>17.4f} {other:>12.4f} {this / n * 1e6:>12.2f} {loop / this:>13,.0f}"


def main() -> None:
    identified = IdentificationSpec.from_table({"radius": RADIUS}, "").for_release(SCHEMA, RELEASED)
    learnt = AttributeSpec.from_table({"radius": RADIUS}, "").for_release(SCHEMA, RELEASED)
    print(f"{'n':>9} {'identification s':>17} {'attribute s':>12} {'us a record':>12} {'naive / this':>13}")
    for n in (10_000, 30_000, 100_000, 300_000, 1_000_000):
        print(row(listings(n), identified, learnt))

    data = listings(10_000)
    releases = [permuted(data, seed) for seed in range(20)]
    twenty = seconds(lambda: [identification(data, released, identified, RUN) for released in releases])
    print(f"\nidentification of 20 datasets of 10,000: {twenty:.3f} s")
    for model, more in (("log_normal", {}), ("log_relative", {"number_of_reviews": "log 5%"})):
        once, five = (sweep_seconds(data, releases, model, {**RADIUS, **more}, replicates) for replicates in (1, 5))
        print(f"{model}: 16 levels x (20 + 1) datasets of 10,000, both risks: {once:.2f} s, 5 replicates {five:.2f} s")
    for variables in (8, 10, 12):
        keys = of_levels(10_000, variables)
        took = seconds(lambda keys=keys: subset_risks(keys, (10_000, 10_000)), 1)
        print(f"every subset of {variables} variables of levels, one dataset of 10,000: {took:.2f} s")


def of_levels(n: int, variables: int) -> list[ExactKey]:
    """Variables of 2 to 6 levels, of records that are their own release."""
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, rng.integers(2, 7), n) for _ in range(variables)]
    return [ExactKey(column, column) for column in columns]


def sweep_seconds(
    data: Microdata, releases: list[Microdata], model: str, radius: dict[str, object], replicates: int
) -> float:
    table = {"variable": "number_of_reviews", "model": model, "levels": [s / 100 for s in range(16)], "radius": radius}
    study = IntruderUncertaintySpec.from_table({**table, "replicates": replicates}, "").for_release(SCHEMA, RELEASED)

    def sweep() -> None:
        for level in study.grid():
            intruder_uncertainty(data, releases, level, study, RUN)

    return seconds(sweep, 1)


if __name__ == "__main__":
    main()
