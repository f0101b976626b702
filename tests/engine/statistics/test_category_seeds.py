"""Records from which a sampler starts: confidential ones, in an order that says nothing of the file."""

from __future__ import annotations

import numpy as np
import pandas as pd

from sfumato.engine.microdata import Microdata, conform
from sfumato.engine.schema import Kind, Schema, Variable
from sfumato.engine.statistics.categories import categories_of, seeds_of

SCHEMA = Schema((Variable("region", Kind.CATEGORICAL), Variable("size", Kind.ORDINAL, levels=("s", "m", "l"))))
NAMES = SCHEMA.names


def people(order: np.ndarray) -> Microdata:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"region": rng.choice(list("abcd"), 300), "size": rng.choice(list("sml"), 300)})
    return conform(frame.iloc[order].reset_index(drop=True), SCHEMA)


def starts(data: Microdata, *, own: bool) -> list[list[int]]:
    categories = {name: categories_of(data, name, None) for name in NAMES}
    found = seeds_of(categories, NAMES, "confidential", data, 300, np.random.default_rng(2), own=own)
    return [codes.tolist() for codes in found.values()]


def test_the_order_of_the_file_does_not_decide_where_records_start() -> None:
    data, moved = people(np.arange(300)), people(np.random.default_rng(3).permutation(300))
    assert starts(data, own=False) == starts(moved, own=False)
    assert starts(data, own=True) != starts(moved, own=True), "the negative control: each record from its own"
    pairs = {tuple(pair) for pair in zip(*starts(data, own=True), strict=True)}
    assert {tuple(pair) for pair in zip(*starts(data, own=False), strict=True)} <= pairs, (
        "they are confidential records"
    )
