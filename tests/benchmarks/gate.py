"""Seconds that the gate's checks of tables take: python tests/benchmarks/gate.py [RECORDS [COLUMNS [DATASETS]]].

Half of the columns are kept; the others are drawn anew, numbers of sixteen digits and counts in turn.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pandas as pd

from sfumato.engine.adversary.agreement import reproduced
from sfumato.engine.adversary.cells import cells_of, comparable, rows_of
from sfumato.engine.adversary.coded import Column, as_they_are, rarest_first, rarity
from sfumato.engine.adversary.copies import equal_records
from sfumato.engine.adversary.evidence import EVIDENCE_LEVEL
from sfumato.engine.adversary.independent_rows import find_whole_rows, strongest_rows
from sfumato.engine.adversary.membership_evidence import weigh_evidence
from sfumato.engine.adversary.moved import moved_together
from sfumato.engine.adversary.neighbours import nearest_pairs
from sfumato.engine.adversary.people import family, groups_by_level, marked, standing
from sfumato.engine.adversary.renamed import by_company, other_names
from sfumato.engine.adversary.respelled import exchanged_back, rescaled_back
from sfumato.engine.adversary.tails import tails
from sfumato.engine.data.arrays import side_by_side
from sfumato.engine.data.microdata import Microdata, conform
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
    data = conform(table(rng, records, schema), schema)
    made = [conform(table(rng, records, schema), schema) for _ in range(datasets)]
    releases = [Microdata(schema, one.frame.assign(**{n: data.frame[n] for n in kept})) for one in made]
    print(f"{'':18} processor  clock")
    begun = started = (time.process_time(), time.perf_counter())

    def said(what: str, since: tuple[float, float] | None = None) -> None:
        nonlocal started
        now = (time.process_time(), time.perf_counter())
        processor, clock = (after - before for after, before in zip(now, since or started, strict=True))
        print(f"{what:18} {processor:7.2f} s {clock:6.2f} s")
        started = now

    own, cells = cells_of(data, schema.names), [cells_of(one, schema.names, data) for one in releases]
    said("cells")
    pairs = nearest_pairs(data, kept, rows_of(own, (*kept, *drawn)))
    said("nearest_pairs")
    equal_records(data, own, cells, kept, drawn, pairs)
    said("equal_records")
    for name in drawn:
        tails(comparable(data, name), (comparable(one, name, data) for one in releases), 10, (None, None))
    said("tails")
    judge_people(data, made[:1], drawn)
    said("people")
    said("all", begun)


def judge_people(data: Microdata, made: list[Microdata], names: tuple[str, ...]) -> None:
    """Whether four fifths of the records are found more often than the others, all of them drawn anew."""
    own, cells = cells_of(data, names), [cells_of(one, names, data) for one in made]
    columns = [Column(name, own[name], [one[name] for one in cells], *_numbers(data, made, name)) for name in names]
    coded, marks = side_by_side(as_they_are, columns), marked(own, names)
    rows = np.sum(list(marks.values()), axis=0, dtype=np.uint64)
    order = rarest_first(rarity(coded), rows)
    numbers = [one.name for one in columns if one.numbers is not None]
    sets, members = family(names, numbers, names[:2], names[2:4], len(data)), len(data) * 4 // 5
    found = standing(marks, [marked(one, names) for one in cells], sets, order, groups_by_level(columns))
    looks = list(found.looks)
    for some in (coded, by_company(columns)):
        looks += reproduced(some, order, rows, "")
    levels = [name for name in names if name not in numbers]
    keys = [rows_of(some, levels, len(data)) for some in (own, *cells)]
    looks += moved_together([one for one in columns if one.numbers is not None], set(), keys[0], keys[1:])
    in_place = [rescaled_back(one) for one in exchanged_back(columns)]
    respelled = {"in other units": in_place} if any(map(other_names, columns, in_place)) else {}
    alone = strongest_rows([*find_whole_rows(columns, coded, respelled), *found.rows])
    weigh_evidence(looks, members, len(data), EVIDENCE_LEVEL, rows=alone)


def _numbers(data: Microdata, made: list[Microdata], name: str) -> tuple[np.ndarray | None, list[np.ndarray]]:
    if data.schema[name].kind is Kind.CATEGORICAL:
        return None, []
    return comparable(data, name), [comparable(one, name, data) for one in made]


if __name__ == "__main__":
    with reused_memory():
        main(*map(int, sys.argv[1:]))
