"""How long Mondrian takes: on Adult, on tables that grow to five million records, and beside a recursive program.

    python tests/benchmarks/mondrian.py [--largest 5000000]

Prints medians of several runs. Seconds are of the partition alone (quasi-identifiers already ranked), of ranking them, and of
the whole method on Adult, output included.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from public_data import PUBLIC_DATA

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.execution.tasks import anonymise_data
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.partition.partitioning import QuasiIdentifierRanks, mondrian_classes
from sfumato.engine.recipe.recipe import Recipe

KEYS = ("age", "workclass", "education", "marital_status", "occupation", "race", "sex", "native_country")
SIZES = (50_000, 150_000, 500_000, 1_500_000, 5_000_000)


def seconds(work: Callable[[], Any], times: int = 3) -> float:
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def adult() -> None:
    variables: dict[str, Any] = {name: {"kind": "categorical", "role": "quasi_identifier"} for name in KEYS}
    variables["age"] = {"kind": "count", "role": "quasi_identifier"}
    raw = pd.read_csv(PUBLIC_DATA / "adult.csv", usecols=list(KEYS), keep_default_na=False)
    print(f"Adult, {len(raw):,} records, {len(KEYS)} quasi-identifiers, the whole method")
    print(f"{'k':>4} {'cuts':8} {'output':17} {'classes':>8} {'seconds':>8}")
    for step in (
        {"k": 5}, {"k": 5, "output": "generalised"}, {"k": 5, "cuts": "relaxed"}, {"k": 100}, {"k": 5, "max_suppressed": 0.01}
    ):  # fmt: skip
        recipe = Recipe.from_table({"variables": variables, "anonymisation": [{"method": "mondrian", **step}]})
        data = conform_to_schema(raw, recipe.schema)
        found = anonymise_data(recipe, data, key=PUBLIC)
        took = seconds(lambda recipe=recipe, data=data: anonymise_data(recipe, data, key=PUBLIC), 5)
        cuts, output = step.get("cuts", "strict"), step.get("output", "micro_aggregated")
        print(f"{step['k']:>4} {cuts:8} {output:17} {found.class_keys.max() + 1:>8,} {took:8.3f}")


def simulated(n: int) -> list[np.ndarray]:
    """Eight quasi-identifiers like those of Adult, one of them continuous."""
    rng = np.random.default_rng(n)
    levels = (8, 16, 7, 15, 5, 2)
    plain = [rng.choice(count, n, p=rng.dirichlet(np.ones(count))) for count in levels]
    return [rng.normal(size=n), rng.integers(17, 91, n), *plain]


def growth(largest: int) -> None:
    print("\nSimulated, 8 quasi-identifiers, one continuous, k = 5; growth is the exponent between two sizes,")
    print("n log n has about 1.07")
    print(f"{'records':>10} {'ranking':>8} {'partition':>10} {'classes':>10} {'growth':>7} {'ns/(n log2 n)':>14}")
    before: tuple[int, float] | None = None
    for n in (size for size in SIZES if size <= largest):
        columns = simulated(n)
        started = time.perf_counter()
        dimensions = [QuasiIdentifierRanks.from_numbers(column.astype(np.float64)) for column in columns]
        ranking = time.perf_counter() - started
        took = seconds(lambda dimensions=dimensions: mondrian_classes(dimensions, 5), 3 if n < 1_000_000 else 1)
        classes = int(mondrian_classes(dimensions, 5).max()) + 1 if n < 1_000_000 else 0
        exponent = math.log(took / before[1]) / math.log(n / before[0]) if before else math.nan
        print(
            f"{n:>10,} {ranking:8.2f} {took:10.3f} {classes or '':>10} {exponent:7.2f} {took / (n * math.log2(n)) * 1e9:14.1f}"
        )
        before = n, took


def recursive(columns: Sequence[np.ndarray], k: int) -> int:
    """The same strict cuts, one partition at a time with NumPy; returns the number of classes."""
    ranked = [np.unique(column, return_inverse=True) for column in columns]
    spans = [values[-1] - values[0] for values, _ in ranked]
    stack, classes = [np.arange(len(columns[0]))], 0
    while stack:
        rows = stack.pop()
        widths = [np.ptp(column[rows]) / span if span else 0 for column, span in zip(columns, spans, strict=True)]
        for d in np.argsort(-np.array(widths), kind="stable"):
            values = columns[d][rows]
            median = np.partition(values, (len(rows) - 1) // 2)[(len(rows) - 1) // 2]
            below, up_to = int((values < median).sum()), int((values <= median).sum())
            left = values <= median if abs(2 * up_to - len(rows)) <= abs(2 * below - len(rows)) else values < median
            if k <= left.sum() <= len(rows) - k:
                stack += [rows[left], rows[~left]]
                break
        else:
            classes += 1
    return classes


def beside_recursive() -> None:
    print("\nBeside a recursive program with NumPy, simulated, k = 5")
    print(f"{'records':>10} {'recursive':>10} {'by levels':>10} {'ratio':>6} {'classes':>8} {'classes':>8}")
    for n in (50_000, 150_000):
        columns = [column.astype(np.float64) for column in simulated(n)]
        dimensions = [QuasiIdentifierRanks.from_numbers(column) for column in columns]
        slow = seconds(lambda columns=columns: recursive(columns, 5), 1)
        fast = seconds(lambda dimensions=dimensions: mondrian_classes(dimensions, 5))
        found = recursive(columns, 5), int(mondrian_classes(dimensions, 5).max()) + 1
        print(f"{n:>10,} {slow:10.2f} {fast:10.3f} {slow / fast:6.0f} {found[0]:>8,} {found[1]:>8,}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="records of the largest simulated table")
    chosen = parser.parse_args()
    if (PUBLIC_DATA / "adult.csv").is_file():
        adult()
    growth(chosen.largest)
    beside_recursive()
