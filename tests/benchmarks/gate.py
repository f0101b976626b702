"""Seconds that the gate's checks of tables take: python tests/benchmarks/gate.py [RECORDS [COLUMNS [DATASETS]]].

Half of the columns are kept; the others are drawn anew, numbers of sixteen digits and counts in turn.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pandas as pd

from sfumato.engine.data.microdata import Microdata, conform
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.disclosure.cells import cells_of, comparable
from sfumato.engine.disclosure.copies import equal_records, lone_values, near_records
from sfumato.engine.disclosure.pooled import recurring_records
from sfumato.engine.disclosure.tails import tails


def table(rng: np.random.Generator, records: int, schema: Schema) -> pd.DataFrame:
    """Independent columns."""
    draw = {
        Kind.CATEGORICAL: lambda: rng.choice(list("abcdefgh"), records),
        Kind.COUNT: lambda: rng.negative_binomial(1, 0.02, records),
        Kind.CONTINUOUS: lambda: rng.lognormal(8, 1, records),
    }
    return pd.DataFrame({variable.name: draw[variable.kind]() for variable in schema})


def main(records: int = 50_000, columns: int = 20, datasets: int = 20) -> None:
    """Print a line a check."""
    rng = np.random.default_rng(1)
    kinds = [Kind.CATEGORICAL, Kind.COUNT] * (columns // 4) + [Kind.CONTINUOUS, Kind.COUNT] * (
        columns - 2 * (columns // 4)
    )
    schema = Schema(tuple(Variable(f"v{i}", kind) for i, kind in enumerate(kinds[:columns])))
    kept, drawn = schema.names[: columns // 2], schema.names[columns // 2 :]
    data = conform(table(rng, records, schema), schema)
    made = [conform(table(rng, records, schema), schema) for _ in range(datasets)]
    releases = [Microdata(schema, one.frame.assign(**{n: data.frame[n] for n in kept})) for one in made]
    started = time.perf_counter()

    def said(what: str) -> None:
        nonlocal started
        print(f"{what:18} {time.perf_counter() - started:6.2f} s")
        started = time.perf_counter()

    own, cells = cells_of(data, schema.names), [cells_of(one, schema.names, data) for one in releases]
    said("cells")
    equal_records(data, own, cells, kept, drawn)
    said("equal_records")
    near_records(data, releases, own, cells, kept, drawn)
    said("near_records")
    for name in drawn:
        lone_values(own[name], [one[name] for one in cells])
    said("lone_values")
    for name in drawn:
        tails(comparable(data, name), (comparable(one, name, data) for one in releases), 10, (None, None))
    said("tails")
    recurring_records(data, own, cells, kept, drawn)
    said("recurring_records")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
