"""A computing process keeps the tables it reads, as long as they are small together."""

from __future__ import annotations

import numpy as np
import pandas as pd

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.workspace.jobs.run_task import MAX_CACHED_TABLES, TableCache

SCHEMA = Schema((Variable("x", Kind.CONTINUOUS),))


class Reader:
    """Tables of so many bytes, and which were read."""

    def __init__(self, most: int) -> None:
        self.kept = TableCache(most)
        self.read: list[str] = []
        self.table = self.kept.cached(self._table)

    def _table(self, name: str, size: int) -> Microdata:
        self.read.append(name)
        return Microdata(SCHEMA, pd.DataFrame({"x": np.zeros(size // 8)}))


def test_a_table_is_read_once_while_there_is_room() -> None:
    of = Reader(1000)
    for name in "abcabc":
        of.table(name, 240)
        of.kept.trim()
    assert of.read == ["a", "b", "c"]


def test_those_not_used_for_longest_go_first_and_the_last_stays_whatever_its_size() -> None:
    of = Reader(1000)
    of.table("a", 480)
    of.table("b", 480)
    of.table("a", 480)
    of.table("c", 480)
    of.kept.trim()
    of.table("a", 480)
    assert of.read == ["a", "b", "c"]
    of.table("large", 8000)
    of.kept.trim()
    assert len(of.kept) == 1
    of.table("large", 8000)
    of.table("b", 480)
    assert of.read == ["a", "b", "c", "large", "b"]


def test_tables_of_other_arguments_are_others() -> None:
    of = Reader(10_000)
    assert len(of.table("a", 80).frame) == 10
    assert len(of.table("a", 160).frame) == 20


def test_of_the_smallest_tables_no_more_than_some_are_kept() -> None:
    of = Reader(10**9)
    for name in range(3 * MAX_CACHED_TABLES):
        of.table(str(name), 8)
    of.kept.trim()
    assert len(of.kept) == MAX_CACHED_TABLES
