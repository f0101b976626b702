"""Sums over the blocks of a table, for a computation that asks for them one after another.

In memory they are computed when they are asked for. Of a table that is read in passes the computation is carried out
again after each pass, with the sums that are known so far in the order in which it asks: the first that is not known ends
it, and is what the next pass computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Protocol

from .microdata import Microdata

Summands = tuple[Any, ...]
"""What is computed from one block: arrays or numbers."""
BlockWork = Callable[..., Summands]
"""Computes summands from a block."""
JoinSummands = Callable[[Sequence[Summands]], Summands]
"""Joins the summands of blocks, which are in their order."""


def add_sums(parts: Sequence[Summands]) -> Summands:
    """Add sums one after the other, in their order."""
    return tuple(reduce(lambda one, other: one + other, summands) for summands in zip(*parts, strict=True))


class SumNotKnownError(Exception):
    """A computation asks for sums over the blocks of a table that no pass has computed yet."""

    def __init__(self, work: BlockWork, join: JoinSummands) -> None:
        """Keep what computes the summands, and what joins them."""
        super().__init__(str(work))
        self.work, self.join = work, join


class SummedTable(Protocol):
    """Table of which a computation asks for sums over its blocks."""

    @property
    def head(self) -> Microdata:
        """Return the table without its records, or with them."""

    @property
    def n_blocks(self) -> int: ...

    def ask_sums(self, work: BlockWork, join: JoinSummands = add_sums, /) -> Summands:
        """Return what the work computes from each block, joined in the order of the blocks."""


@dataclass(frozen=True, eq=False)
class TableInMemory:
    """Table in memory, which is one block."""

    head: Microdata
    n_blocks: int = 1

    def ask_sums(self, work: BlockWork, join: JoinSummands = add_sums) -> Summands:
        """Return what the work computes."""
        return join([work(self.head)])


@dataclass
class KnownSums:
    """Table that is read in passes, without its records, of which some sums are ``known`` in the order of the questions."""

    head: Microdata
    n_blocks: int
    known: Sequence[Summands]
    _asked: int = field(default=0, init=False)

    def ask_sums(self, work: BlockWork, join: JoinSummands = add_sums) -> Summands:
        """Return the next known sums. Raises SumNotKnownError."""
        self._asked += 1
        if self._asked > len(self.known):
            raise SumNotKnownError(work, join)
        return self.known[self._asked - 1]
