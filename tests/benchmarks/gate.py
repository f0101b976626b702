"""Seconds that the gate's checks of tables take: python tests/benchmarks/gate.py [RECORDS [COLUMNS [DATASETS]]].

Half of the columns are kept; the others are drawn anew, numbers of sixteen digits and counts in turn.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pandas as pd

from sfumato.engine.adversary.agreement import find_reproduced_people
from sfumato.engine.adversary.cells import cell_keys, comparable_numbers, row_keys
from sfumato.engine.adversary.coded import JointColumn, code_by_value, log_value_shares, order_rarest_first
from sfumato.engine.adversary.copies import measure_equal_records
from sfumato.engine.adversary.evidence import EVIDENCE_LEVEL
from sfumato.engine.adversary.independent_rows import find_whole_rows, strongest_row_evidence
from sfumato.engine.adversary.membership_evidence import weigh_evidence
from sfumato.engine.adversary.moved import probe_common_changes
from sfumato.engine.adversary.neighbours import nearest_neighbour_pairs
from sfumato.engine.adversary.people import find_people_in_release, list_column_sets, list_level_groups, mark_cells
from sfumato.engine.adversary.renamed import code_by_cooccurrence, has_other_names
from sfumato.engine.adversary.respelled import undo_column_exchange, undo_rescaling
from sfumato.engine.adversary.tails import measure_released_tails
from sfumato.engine.data.arrays import map_on_threads
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.workspace.process import reused_memory


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
    data = conform_to_schema(table(rng, records, schema), schema)
    made = [conform_to_schema(table(rng, records, schema), schema) for _ in range(datasets)]
    releases = [Microdata(schema, one.frame.assign(**{n: data.frame[n] for n in kept})) for one in made]
    print(f"{'':18} processor  clock")
    begun = started = (time.process_time(), time.perf_counter())

    def print_time(what: str, since: tuple[float, float] | None = None) -> None:
        nonlocal started
        now = (time.process_time(), time.perf_counter())
        processor, clock = (after - before for after, before in zip(now, since or started, strict=True))
        print(f"{what:18} {processor:7.2f} s {clock:6.2f} s")
        started = now

    own, cells = cell_keys(data, schema.names), [cell_keys(one, schema.names, data) for one in releases]
    print_time("cells")
    pairs = nearest_neighbour_pairs(data, kept, row_keys(own, (*kept, *drawn)))
    print_time("nearest_pairs")
    measure_equal_records(data, own, cells, kept, drawn, pairs)
    print_time("equal_records")
    for name in drawn:
        measure_released_tails(
            comparable_numbers(data, name), (comparable_numbers(one, name, data) for one in releases), 10, (None, None)
        )
    print_time("tails")
    judge_people(data, made[:1], drawn)
    print_time("people")
    print_time("all", begun)


def judge_people(data: Microdata, made: list[Microdata], names: tuple[str, ...]) -> None:
    """Whether four fifths of the records are found more often than the others, all of them drawn anew."""
    own, cells = cell_keys(data, names), [cell_keys(one, names, data) for one in made]
    columns = [
        JointColumn(name, own[name], [one[name] for one in cells], *_numbers(data, made, name)) for name in names
    ]
    coded, marks = map_on_threads(code_by_value, columns), mark_cells(own, names)
    rows = np.sum(list(marks.values()), axis=0, dtype=np.uint64)
    order = order_rarest_first(log_value_shares(coded), rows)
    numbers = [one.name for one in columns if one.numbers is not None]
    sets, members = list_column_sets(names, numbers, names[:2], names[2:4], len(data)), len(data) * 4 // 5
    found = find_people_in_release(
        marks, [mark_cells(one, names) for one in cells], sets, order, list_level_groups(columns)
    )
    looks = list(found.probes)
    for some in (coded, code_by_cooccurrence(columns)):
        looks += find_reproduced_people(some, order, rows, "")
    levels = [name for name in names if name not in numbers]
    keys = [row_keys(some, levels, len(data)) for some in (own, *cells)]
    looks += probe_common_changes([one for one in columns if one.numbers is not None], set(), keys[0], keys[1:])
    in_place = [undo_rescaling(one) for one in undo_column_exchange(columns)]
    respelled = {"in other units": in_place} if any(map(has_other_names, columns, in_place)) else {}
    alone = strongest_row_evidence([*find_whole_rows(columns, coded, respelled), *found.row_tests])
    weigh_evidence(looks, members, len(data), EVIDENCE_LEVEL, rows=alone)


def _numbers(data: Microdata, made: list[Microdata], name: str) -> tuple[np.ndarray | None, list[np.ndarray]]:
    if data.schema[name].kind is Kind.CATEGORICAL:
        return None, []
    return comparable_numbers(data, name), [comparable_numbers(one, name, data) for one in made]


if __name__ == "__main__":
    with reused_memory():
        main(*map(int, sys.argv[1:]))
