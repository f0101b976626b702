"""The exact search of a lattice beside brute force, on Adult with hand-made hierarchies. Run as a script; prints a table.

    python tests/benchmarks/lattice.py [--k 5] [--suppressed 0.02]

Needs adult.csv and adult_hierarchies in ../shared/data or where SFUMATO_DATA says.

4,860 nodes, 48,842 records with 27,347 different combinations of eight quasi-identifiers. Brute force counts every node: it takes the different
combinations with their records (not the records), numbers classes by one whole number in mixed radix and pandas' hash, and adds up with
``bincount``. Both are timed by processor seconds, the search by the median of five; reading and coding the table counts for neither.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import statistics
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from sfumato.engine.partition.equivalence_classes import Limits
from sfumato.engine.partition.hierarchies import Hierarchy
from sfumato.engine.partition.lattice import GeneralisationLevels, Objective, OptimalNodes, find_best_levels

KEYS = ("age", "workclass", "education", "marital_status", "occupation", "race", "sex", "native_country")
OBJECTIVES: tuple[Objective, ...] = ("average_class_size", "discernibility", "ncp", "entropy")


def ladders(folder: Path) -> list[GeneralisationLevels]:
    """The quasi-identifiers of Adult with their trees."""
    table = pd.read_csv(folder / "adult.csv", usecols=list(KEYS), keep_default_na=False).astype("str").replace("", "?")
    found = []
    for key in KEYS:
        with (folder / "adult_hierarchies" / f"{key}.csv").open() as file:
            tree = Hierarchy(tuple(tuple(row) for row in csv.reader(file, delimiter=";") if row))
        levels, codes = np.unique(table[key].to_numpy(dtype=object), return_inverse=True)
        found.append(GeneralisationLevels.from_hierarchy(tree, tree.rows_of_values(list(levels))[codes]))
    return found


def brute_force(
    of: list[GeneralisationLevels], objective: Objective, k: int, most: int
) -> tuple[float, tuple[tuple[int, ...], ...]]:
    """The least value and all nodes that have it: every node is counted. Written for itself, without the engine's search."""
    values, records = np.unique(np.column_stack([one.codes for one in of]), axis=0, return_counts=True)
    n, d = int(records.sum()), len(of)
    share = [np.bincount(one.codes, minlength=one.nodes.shape[1]) for one in of]
    shared = [
        [np.bincount(nodes, weights=own)[nodes] for nodes in one.nodes] for one, own in zip(of, share, strict=True)
    ]
    digits = [[nodes[values[:, j]] for nodes in one.nodes] for j, one in enumerate(of)]
    answers = []
    for node in product(*(range(one.n_levels) for one in of)):
        key = np.zeros(len(records), dtype=np.int64)
        for j, level in enumerate(node):
            key = key * (of[j].nodes[level].max() + 1) + digits[j][level]
        group, _ = pd.factorize(key)
        sizes = np.bincount(group, weights=records)
        small = sizes < k
        suppressed = sizes[small].sum()
        if suppressed > most or small.all():
            continue
        if objective == "average_class_size":
            value = (n - suppressed) / (~small).sum()
        elif objective == "discernibility":
            value = (sizes[~small] ** 2).sum() + suppressed * n
        else:
            gone, total = small[group], 0.0
            for j, level in enumerate(node):
                own = values[:, j]
                lost = of[j].sizes[level] if objective == "ncp" else np.log2(shared[j][level] / share[j])
                whole = 1.0 if objective == "ncp" else np.log2(n / share[j])[own]
                total += float(np.where(gone, whole, lost[own]) @ records)
            value = total / (n * d)
        answers.append((float(value), node))
    least = min((value for value, _ in answers), default=math.inf)
    return least, tuple(node for value, node in answers if math.isclose(value, least, rel_tol=1e-9))


def searched(
    of: list[GeneralisationLevels], objective: Objective, k: int, most: int, times: int = 1
) -> tuple[OptimalNodes, float]:
    """What the search finds, and its seconds of processor time: the median of so many searches."""
    seconds = []
    for _ in range(times):
        start = time.process_time()
        found = find_best_levels(of, Limits(k=k), objective, most_suppressed=most)
        seconds.append(time.process_time() - start)
    return found, statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--suppressed", type=float, default=0.02)
    asked = parser.parse_args()
    of = ladders(Path(os.environ.get("SFUMATO_DATA", "../shared/data")))
    most = int(asked.suppressed * len(of[0].codes))
    nodes = math.prod(one.n_levels for one in of)
    print(f"k = {asked.k}, at most {most:,} records suppressed, {nodes:,} nodes")
    head = ("value", "best", "same", "checked", "below", "beyond", "s", "brute s", "ratio")
    print(f"{'objective':<20}{head[0]:>18}{head[1]:>6}{head[2]:>6}" + "".join(f"{one:>9}" for one in head[3:]))
    for objective in OBJECTIVES:
        start = time.process_time()
        value, best = brute_force(of, objective, asked.k, most)
        seconds = time.process_time() - start
        found, took = searched(of, objective, asked.k, most, times=5)
        same = math.isclose(value, found.value, rel_tol=1e-9) and best == found.nodes
        print(
            f"{objective:<20}{found.value:>18.6f}{len(found.nodes):>6}{'yes' if same else 'NO':>6}{found.n_checked:>9,}{found.n_below_infeasible:>9,}"
            f"{found.n_excluded:>9,}{took:>9.2f}{seconds:>9.2f}{seconds / took:>9.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
