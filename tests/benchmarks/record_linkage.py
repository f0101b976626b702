"""Times record linkage, and what it learns from, by records: ``python tests/benchmarks/record_linkage.py [RECORDS]...``.

Each size is linked in one block, where all pairs are compared, and in blocks of about 50 records. ``SFUMATO_SPLINK`` names a
Python with splink (``tests/engine/matching/test_splink.py``), which then learns from the same pairs beside it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.matching.blocks import ComparisonBlocks, order_by_values, take_evenly
from sfumato.engine.matching.comparisons import compare_variables
from sfumato.engine.matching.match_weights import MAX_TRAINING_PAIRS, PatternCounts, learn_weights
from sfumato.engine.matching.radius import Radius
from sfumato.engine.methods.run import Run
from sfumato.engine.risk.record_linkage import RecordLinkageSpec, record_linkage

CATEGORIES, NUMBERS = ("a", "b"), ("x", "y")
SIZES = (1_000, 5_000, 100_000, 1_000_000)
TOGETHER = 50
"""Records of a block, about."""


def tables(records: int, blocks: int) -> tuple[Microdata, Microdata]:
    """Two levels' and two numbers' worth of people, and the same with a fifth of the levels and a tenth of a deviation changed."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({name: rng.integers(0, 5 + 4 * k, records).astype(str) for k, name in enumerate(CATEGORIES)})
    noise = rows.copy()
    for name in CATEGORIES:
        noise[name] = np.where(rng.random(records) < 0.2, rng.permutation(rows[name]), rows[name])
    for name in NUMBERS:
        rows[name] = rng.normal(size=records)
        noise[name] = rows[name] + 0.1 * rng.normal(size=records)
    rows["zip"] = noise["zip"] = rng.integers(0, blocks, records)
    kinds = [(name, Kind.CATEGORICAL) for name in CATEGORIES] + [(name, Kind.CONTINUOUS) for name in NUMBERS]
    schema = Schema(
        (*(Variable(name, kind) for name, kind in kinds), Variable("zip", Kind.COUNT, Role.QUASI_IDENTIFIER))
    )
    ours, theirs = conform_to_schema(rows, schema), conform_to_schema(noise, schema)
    return ours, Microdata(schema, theirs.frame, "synthetic")


@dataclass(frozen=True)
class Times:
    """Seconds of processor to count patterns, to learn from them and for the whole; bytes a record beyond the tables."""

    counting: float
    learning: float
    whole: float
    memory: float
    linked: float


def measure_times(records: int, blocks: int) -> Times:
    """One size, in a process of its own."""
    ours, theirs = tables(records, blocks)
    spec = RecordLinkageSpec(radius={name: Radius(0.1) for name in NUMBERS}).for_release(
        ours.schema, CATEGORIES + NUMBERS
    )
    before, start = _peak(), time.process_time()
    found = record_linkage(ours, theirs, spec, Run(np.random.default_rng(0)))
    whole, memory = time.process_time() - start, (_peak() - before) / records
    both = (records, records)
    blocked = ComparisonBlocks.from_keys(compare_variables(ours, theirs, spec.blocks, {}, spec.near), both)
    comparisons = compare_variables(ours, theirs, CATEGORIES + NUMBERS, spec.radius, spec.near)
    pairs = int(blocked.released_counts[blocked.confidential_blocks].sum())
    among = take_evenly(order_by_values(blocked, comparisons), max(records * MAX_TRAINING_PAIRS // pairs, 1))
    start = time.process_time()
    counts = PatternCounts.from_records(comparisons, blocked, among)
    counting, start = time.process_time() - start, time.process_time()
    learn_weights(comparisons, blocked, counts)
    learning = time.process_time() - start
    if os.environ.get("SFUMATO_SPLINK"):
        sys.path.insert(0, str(Path(__file__).parents[1] / "engine/matching"))
        from test_splink import by_splink

        print(f"  splink: {by_splink(os.environ['SFUMATO_SPLINK'], (comparisons, blocked, counts))[1]:.2f} s")
    linked = next(e.value for e in found.estimates if e.measure == "linked_share")
    return Times(counting, learning, whole, memory, linked or 0.0)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(sizes: list[int]) -> None:
    """Print a line for each size and arrangement."""
    for records in sizes:
        for blocks in (1, max(records // TOGETHER, 1)):
            command = [sys.executable, __file__, "--one", str(records), str(blocks)]
            print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        records, blocks = map(int, sys.argv[2:])
        took = measure_times(records, blocks)
        print(
            f"{records:,} records in {blocks:,} blocks: counting patterns {took.counting:.2f} s, learning {took.learning:.4f} s, "
            f"whole {took.whole:.1f} s of processor; {took.memory:,.0f} bytes a record beyond the tables; {took.linked:.3f} linked"
        )
    else:
        main([int(one) for one in sys.argv[1:]] or list(SIZES))
