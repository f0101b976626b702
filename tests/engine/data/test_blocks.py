"""Blocks cover every row once, in order, and keep to their size."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data import blocks as module
from sfumato.engine.data.blocks import row_blocks
from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable


@given(rows=st.integers(0, 500), width=st.integers(1, 40), cells=st.integers(1, 200))
def test_blocks_cover_all_rows_once(rows: int, width: int, cells: int) -> None:
    blocks = list(row_blocks(rows, width, cells))
    assert [row for block in blocks for row in range(rows)[block]] == list(range(rows))
    assert all(1 <= block.stop - block.start <= max(1, cells // width) for block in blocks)
    assert len({block.stop - block.start for block in blocks[:-1]}) <= 1


def test_a_small_table_is_one_block() -> None:
    assert list(row_blocks(10_000, 100)) == [slice(0, 10_000)]
    assert len(list(row_blocks(10_000, 1_000))) == 3
    assert module.CELLS_PER_BLOCK == 4_000_000


def test_blocks_of_a_table_are_the_table() -> None:
    schema = Schema((Variable("town", Kind.CATEGORICAL), Variable("income", Kind.CONTINUOUS)))
    frame = pd.DataFrame({"town": ["York", "Bath", "Ayr", "Bath", "York"], "income": [1.5, 2.0, 4.0, 8.0, 16.0]})
    data = conform_to_schema(frame, schema).with_weights(np.array([1.0, 0.5, 0.0, 1.0, 1.0]))
    blocks = [data.select_rows(rows) for rows in row_blocks(len(data), 1, 2)]
    assert [len(block) for block in blocks] == [2, 2, 1]
    for name in schema.names:
        assert np.concatenate([block.numbers(name) for block in blocks]).tolist() == data.numbers(name).tolist()
    assert np.concatenate([block.effective_weights for block in blocks]).tolist() == data.effective_weights.tolist()
    whole = data.frame["income"].to_numpy()
    assert all(np.shares_memory(block.frame["income"].to_numpy(), whole) for block in blocks)
