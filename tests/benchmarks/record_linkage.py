"""Times record linkage where nothing is kept, so that all pairs are compared: ``python tests/benchmarks/record_linkage.py [RECORDS]``."""

from __future__ import annotations

import sys
import time

import numpy as np
import pandas as pd

from sfumato.engine.matching.radius import Radius
from sfumato.engine.microdata import Microdata, conform
from sfumato.engine.risk.record_linkage import RecordLinkageSpec, record_linkage
from sfumato.engine.run import Run
from sfumato.engine.schema import Kind, Schema, Variable

CATEGORIES, NUMBERS = ("a", "b"), ("x", "y")


def tables(records: int) -> tuple[Microdata, Microdata]:
    """Two levels' and two numbers' worth of people, and the same with a fifth of the levels and a tenth of a deviation changed."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({name: rng.integers(0, 5 + 4 * k, records).astype(str) for k, name in enumerate(CATEGORIES)})
    noise = rows.copy()
    for name in CATEGORIES:
        noise[name] = np.where(rng.random(records) < 0.2, rng.permutation(rows[name]), rows[name])
    for name in NUMBERS:
        rows[name] = rng.normal(size=records)
        noise[name] = rows[name] + 0.1 * rng.normal(size=records)
    kinds = [(name, Kind.CATEGORICAL) for name in CATEGORIES] + [(name, Kind.CONTINUOUS) for name in NUMBERS]
    schema = Schema(tuple(Variable(name, kind) for name, kind in kinds))
    ours, theirs = conform(rows, schema), conform(noise, schema)
    return ours, Microdata(schema, theirs.frame, "synthetic")


def main(records: int = 5_000) -> None:
    """Print what is linked and how long it took."""
    ours, theirs = tables(records)
    spec = RecordLinkageSpec(radius={name: Radius(0.1) for name in NUMBERS})
    start, processor = time.perf_counter(), time.process_time()
    found = record_linkage(
        ours, theirs, spec.for_release(ours.schema, ours.schema.names), Run(np.random.default_rng(0))
    )
    shares = {e.measure: e.value for e in found.estimates if e.measure.startswith("linked")}
    print(f"{records:,} x {records:,}: {shares}")
    print(f"{time.perf_counter() - start:.1f} s, {time.process_time() - processor:.1f} s of a processor")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
