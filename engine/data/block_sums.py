"""Sums over the blocks of a table, for a computation that asks for them one after another.

In memory they are computed when they are asked for. Of a table that is read in passes the computation is carried out
again after each pass, with the sums that are known so far in the order in which it asks: the first that is not known ends
it, and is what the next pass computes.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .arrays import Floats
from .microdata import Microdata
from .row_buckets import BucketRows

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")
Summands = tuple[Any, ...]
"""What is computed from one block: arrays or numbers."""
BlockWork = Callable[..., Summands]
"""Computes summands from a block."""
JoinSummands = Callable[[Sequence[Summands]], Summands]
"""Joins the summands of blocks, which are in their order."""


def add_sums(parts: Sequence[Summands]) -> Summands:
    """Add sums one after the other, in their order."""
    return tuple(reduce(lambda one, other: one + other, summands) for summands in zip(*parts, strict=True))


@dataclass(frozen=True)
class JoinByKey:
    """Joins the summands of several computations, each by its own way."""

    joins: Mapping[Any, JoinSummands]

    def __call__(self, parts: Sequence[Summands]) -> Summands:
        """Return what is joined, by key."""
        return ({key: join([part[0][key] for part in parts]) for key, join in self.joins.items()},)


def keep_parts(parts: Sequence[Summands]) -> Summands:
    """Return the summands of all blocks beside each other, as tuples."""
    return tuple(zip(*parts, strict=True))


def is_folded(join: JoinSummands) -> bool:
    """Return whether summands may be joined one after another as they come, with the same answer."""
    return all(map(is_folded, join.joins.values())) if isinstance(join, JoinByKey) else join is add_sums


class WorkOfBuckets(NamedTuple):
    """What is computed from rows that are brought together in buckets.

    number: number of buckets
    work: computes summands from the rows of a bucket, by name
    """

    number: int
    work: Callable[[Mapping[str, BucketRows]], Summands]


class SumNotKnownError(Exception):
    """A computation asks for sums over the blocks of a table that no pass has computed yet."""

    def __init__(
        self,
        work: Callable[..., Any],
        join: JoinSummands,
        names: Sequence[str] | None,
        buckets: WorkOfBuckets | None = None,
    ) -> None:
        """Keep what computes the summands of a block, or its rows of ``buckets``, what joins them, and the variables that
        it reads.
        """
        super().__init__(str(work))
        self.work, self.join, self.names, self.buckets = work, join, names, buckets


class SummedTable(Protocol):
    """Table of which a computation asks for sums over its blocks."""

    @property
    def head(self) -> Microdata:
        """Return the table without its records, or with them."""

    @property
    def n_blocks(self) -> int: ...

    def ask_sums(
        self, work: BlockWork, join: JoinSummands = add_sums, names: Sequence[str] | None = None, /
    ) -> Summands:
        """Return what the work computes from each block, joined in the order of the blocks.

        ``names`` are the variables that it reads, where it does not need all that the computation reads.
        """


@dataclass(frozen=True, eq=False)
class TableInMemory:
    """Table in memory, which is one block."""

    head: Microdata
    n_blocks: int = 1

    def ask_sums(self, work: BlockWork, join: JoinSummands = add_sums, names: Sequence[str] | None = None) -> Summands:
        """Return what the work computes."""
        return join([work(self.head)])


@dataclass
class KnownSums:
    """Table that is read in passes, without its records, of which some sums are ``known`` in the order of the questions."""

    head: Microdata
    n_blocks: int
    known: Sequence[Summands]
    _asked: int = field(default=0, init=False)

    def ask_sums(self, work: BlockWork, join: JoinSummands = add_sums, names: Sequence[str] | None = None) -> Summands:
        """Return the next known sums. Raises SumNotKnownError."""
        return self._next_known(SumNotKnownError(work, join, names))

    def ask_buckets(
        self, rows_of: Callable[..., Mapping[str, Floats]], buckets: WorkOfBuckets, names: Sequence[str]
    ) -> Summands:
        """Return what is computed from each bucket, as ``keep_parts`` joins it. Raises SumNotKnownError.

        ``rows_of`` returns the rows of a block by name, (n, width), whose first column is the bucket of each. ``names`` are
        the variables that it reads.
        """
        return self._next_known(SumNotKnownError(rows_of, keep_parts, names, buckets))

    def _next_known(self, asked: SumNotKnownError) -> Summands:
        self._asked += 1
        if self._asked > len(self.known):
            raise asked
        return self.known[self._asked - 1]


def ask_together(
    table: SummedTable, computations: Mapping[Key, Callable[[SummedTable], Answer]], done: dict[Key, Answer]
) -> dict[Key, Answer]:
    """Return the answers of computations on a table that are carried out side by side: the next sums of all are asked
    for together, so that there are as many passes as the longest one needs.

    Answers are added to ``done``; those that are there already are not computed again.
    """
    known: dict[Key, list[Summands]] = {key: [] for key in computations if key not in done}
    while True:
        asked: dict[Key, SumNotKnownError] = {}
        for key in [one for one in known if one not in done]:
            try:
                done[key] = computations[key](KnownSums(table.head, table.n_blocks, known[key]))
            except SumNotKnownError as more:
                asked[key] = more
        if not asked:
            return done
        joins = JoinByKey({key: one.join for key, one in asked.items()})
        (found,) = table.ask_sums(partial(_summands_by_key, asked), joins)
        for key in asked:
            known[key].append(found[key])


def _summands_by_key(asked: Mapping[Key, SumNotKnownError], *tables: Microdata) -> Summands:
    return ({key: one.work(*tables) for key, one in asked.items()},)


def arrays_of_summands(summands: Summands) -> dict[str, NDArray[Any]]:
    """Return tuples, lists and dictionaries of arrays and numbers as named arrays; ``form`` says how they are put together."""
    leaves: list[NDArray[Any]] = []

    def form_of(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(map(form_of, value))
        if isinstance(value, dict):
            return {key: form_of(one) for key, one in value.items()}
        leaves.append(np.asarray(value))
        return len(leaves) - 1

    form = repr(form_of(summands))
    return {"form": np.array(form), **{str(i): leaf for i, leaf in enumerate(leaves)}}


def summands_of_arrays(found: Mapping[str, NDArray[Any]]) -> Any:
    """Return what ``arrays_of_summands`` was given; numbers come back as numbers."""

    def value_of(form: Any) -> Any:
        if isinstance(form, tuple | list):
            return type(form)(map(value_of, form))
        if isinstance(form, dict):
            return {key: value_of(one) for key, one in form.items()}
        leaf = found[str(form)]
        return leaf.item() if leaf.ndim == 0 else leaf

    return value_of(literal_eval(str(found["form"])))
