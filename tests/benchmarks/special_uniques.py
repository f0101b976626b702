"""Times of the search for minimal sample uniques on Adult, beside all subsets with pandas. Run as a script; prints a table of medians.

    python tests/benchmarks/special_uniques.py

Uses adult.csv of the public data (SFUMATO_DATA, else ../shared/data): its first records, and eight keys, ages as they are. All subsets
by grouping are what a plain program does: sdcMicro and suda of PyPI count so or by items.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
from public_data import PUBLIC_DATA

from sfumato.engine.risk.special_uniques import find_minimal_uniques

KEYS = ["age", "workclass", "education", "marital-status", "occupation", "relationship", "race", "sex"]
Codes = np.ndarray[tuple[int, int], np.dtype[np.int64]]


def adult(records: int) -> Codes:
    """The keys of the first records as codes, (n, 8)."""
    rows = pd.read_csv(PUBLIC_DATA / "adult.csv", skipinitialspace=True)[:records]
    names = {name.replace("_", "-").replace(".", "-"): name for name in rows}
    return np.stack([pd.factorize(rows[names[key]], use_na_sentinel=False)[0] for key in KEYS], axis=1).astype(np.int64)


def counted(codes: Codes, largest: int) -> int:
    """How many minimal sample uniques the search finds."""
    return sum(len(rows) for _, rows in find_minimal_uniques(codes, largest))


def all_subsets(codes: Codes, largest: int) -> int:
    """The same, by grouping all records by every set of keys."""
    frame, found = pd.DataFrame(codes), 0
    unique: dict[tuple[int, ...], np.ndarray[tuple[int], np.dtype[np.bool_]]] = {}
    for size in range(1, largest + 1):
        for chosen in combinations(range(codes.shape[1]), size):
            alone = ~frame.duplicated(list(chosen), keep=False).to_numpy()
            parts = [unique[part] for part in combinations(chosen, size - 1)] if size > 1 else []
            found += int((alone & ~np.logical_or.reduce(parts)).sum()) if parts else int(alone.sum())
            unique[chosen] = alone
    return found


def seconds(call: Callable[[], int]) -> tuple[float, int]:
    """The median of five, and the answer."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        answer = call()
        times.append(time.perf_counter() - start)
    return statistics.median(times), answer


if __name__ == "__main__":
    print(f"{'records':>8} {'sets up to':>10} {'uniques':>9} {'search':>9} {'all subsets':>12}")
    for records, largest in ((10_000, 3), (10_000, 8), (20_000, 8), (30_000, 8)):
        codes = adult(records)
        ours, found = seconds(partial(counted, codes, largest))
        plain, expected = seconds(partial(all_subsets, codes, largest))
        assert found == expected
        print(f"{len(codes):>8,} {largest:>10} {found:>9,} {ours:>7.2f} s {plain:>10.2f} s")
