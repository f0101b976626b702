"""Computations in passes over the blocks of a table, which never need the whole of it.

A pass computes a partial answer of each block and merges them in the order of the blocks, so that the result is the same
whoever computed which block, and when. The merged answer is the state of the next pass, or the end. A table in memory is
one block: a method that works in passes has no other way to compute.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from .spec import Spec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..data.microdata import Microdata
    from ..data.row_buckets import BucketRows, OpenFile, RowBuckets
    from ..data.schema import Schema
    from ..data.table_blocks import TableBlocks
    from .results import Fit, Measure
    from .run import Progress, Run

Answer = TypeVar("Answer")
S_contra = TypeVar("S_contra", bound=Spec, contravariant=True)
Partial = Mapping[str, "NDArray[Any]"]
"""Partial answer of one block: named arrays, whose size does not grow with the table."""


@dataclass(frozen=True, slots=True)
class Finished(Generic[Answer]):
    """End of the passes, with their answer."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class IntoBuckets:
    """Buckets of rows by hash, for what needs all records of a key together.

    The partial answer of a block is then rows: arrays by name, (n, width), whose first column is the bucket of each. They
    go to a file. ``partial_of`` gets the state and the rows of one bucket by name, with the number of the block in place
    of the bucket, and returns its partial answer; those of the buckets are merged in their order.

    number: number of buckets
    keeps: name under which values of single records are kept, "" for none; ``partial_of`` may return them beside its
        answer as ``values``, (n, 2 + v): the number of the block of each record, its place there, and the values
    """

    number: int
    partial_of: Callable[[Any, Mapping[str, BucketRows]], Partial]
    keeps: str = ""


@dataclass(frozen=True, slots=True)
class NextPass:
    """Next pass over a table.

    state: what blocks and their merging need, such as what the passes before found
    names: variables that it reads, None for all
    what: what it does, in words, for the progress
    buckets: buckets of its rows, None where each block has a partial answer of its own
    fold: joins two partial answers as they come, in their order, where that gives what joining all at the end does; then
        one is merged
    """

    state: Any
    names: tuple[str, ...] | None = None
    what: str = ""
    buckets: IntoBuckets | None = None
    fold: Callable[[Partial, Partial], Partial] | None = None


class FitPasses(Protocol[S_contra]):
    """Passes of a synthesis method of one target.

    Passes with an attribute ``checks_data`` that is true raise BadInput wherever the method's own check of the data does,
    so that a long table is checked by them. An attribute ``needs`` says in words with what settings and variables they
    work.
    """

    def suits(self, spec: S_contra, schema: Schema, /) -> bool:
        """Return whether a step with these parameters can be fitted in passes."""

    def start(self, head: Microdata, target: str, spec: S_contra, n_blocks: int, /) -> NextPass:
        """Return the first pass. ``head`` is the table without records, which is read in ``n_blocks`` blocks."""

    def block(self, state: Any, data: Microdata, /) -> Partial:
        """Return the partial answer of a block."""

    def merge(self, state: Any, partials: Sequence[Partial], /) -> NextPass | Finished[Any]:
        """Merge the partial answers in the order of the blocks."""

    def fit(self, answer: Any, head: Microdata, target: str, spec: S_contra, run: Run, draws: int, /) -> Fit:
        """Return the fit that follows from the answer of the passes, as ``SynthesisMethod`` does."""


class JointFitPasses(Protocol[S_contra]):
    """Passes of a synthesis method of several targets, like ``FitPasses``."""

    def suits(self, spec: S_contra, schema: Schema, /) -> bool: ...

    def start(self, head: Microdata, targets: tuple[str, ...], spec: S_contra, n_blocks: int, /) -> NextPass: ...

    def block(self, state: Any, data: Microdata, /) -> Partial: ...

    def merge(self, state: Any, partials: Sequence[Partial], /) -> NextPass | Finished[Any]: ...

    def fit(
        self, answer: Any, head: Microdata, targets: tuple[str, ...], spec: S_contra, run: Run, draws: int, /
    ) -> Fit: ...


class MeasurePasses(Protocol[S_contra]):
    """Passes of a measure of one released dataset, which is as long as the confidential table and read in blocks of the
    same records.
    """

    def suits(self, spec: S_contra, schema: Schema, /) -> bool:
        """Return whether the measure with these parameters can be computed in passes."""

    def start(self, confidential: Microdata, released: Microdata, spec: S_contra, n_blocks: int, /) -> NextPass:
        """Return the first pass. Both tables are given without records."""

    def block(self, state: Any, confidential: Microdata, released: Microdata, /) -> Partial:
        """Return the partial answer of a block of both tables."""

    def merge(self, state: Any, partials: Sequence[Partial], /) -> NextPass | Finished[Measure]:
        """Merge the partial answers in the order of the blocks."""


class PartialStore(Protocol):
    """Partial answers of blocks that outlive whoever computed them, and that others see.

    A computation that was interrupted goes on where it ended, and several may compute blocks of one pass: an answer is the
    same whoever computed it.
    """

    def begin_pass(self, *, shared: bool) -> None:
        """Begin the next pass; the blocks of one that is not ``shared`` are never asked for."""

    def block_order(self, n_blocks: int) -> Sequence[int]:
        """Return the order in which to look for blocks without an answer."""

    def find_partial(self, number: int) -> Partial | None:
        """Return the answer of a block of this pass; None where nobody has kept it."""

    def put_partial(self, number: int, found: Partial) -> None:
        """Keep the answer of a block of this pass."""


@dataclass(eq=False)
class PassRunner:
    """What carries out passes over tables.

    tables: tables of equally many blocks; a block is one of each
    block, merge: those of the passes
    report: told of each block
    open_file: opens a file for the rows of buckets, by default in memory
    store: keeps the answers of blocks, None where nobody else needs them; rows of buckets are never kept
    kept: values of single records by name, in buckets that are blocks
    threads: number of blocks computed at a time, without reports, where ``store`` is None and no row goes to a bucket
    """

    tables: Sequence[TableBlocks]
    block: Callable[..., Partial]
    merge: Callable[[Any, Sequence[Partial]], NextPass | Finished[Any]]
    report: Callable[[Progress], None] = lambda _: None
    open_file: OpenFile = io.BytesIO
    store: PartialStore | None = None
    kept: dict[str, RowBuckets] = field(default_factory=dict)
    threads: int = 1

    def carry_out(self, first: NextPass) -> Any:
        """Carry out passes until they are finished, and return their answer."""
        current: NextPass | Finished[Any] = first
        while isinstance(current, NextPass):
            partials = self._partials_of(current)
            current = self.merge(
                current.state, list(partials) if current.fold is None else [reduce(current.fold, partials)]
            )
        return current.answer

    def iterate_values(self, columns: Mapping[str, Mapping[str, type]]) -> Iterator[Mapping[str, NDArray[Any]]]:
        """Yield the kept values of single records block by block, (n,) each, by name and type under each kept name."""
        for number in range(self.tables[0].n_blocks):
            found: dict[str, NDArray[Any]] = {}
            for kept, types in columns.items():
                rows = self.kept[kept].read_bucket(number).read_rows()
                values = rows[rows[:, 0].argsort(kind="stable")].T[1:]
                # What was kept in case it is asked for comes last.
                found |= {name: one.astype(of) for (name, of), one in zip(types.items(), values, strict=False)}
            yield found

    def _partials_of(self, current: NextPass) -> Iterator[Partial]:
        """Yield the partial answers of one pass, in the order of the blocks or buckets."""
        buckets = current.buckets
        total = self.tables[0].n_blocks + (0 if buckets is None else buckets.number)
        if self.store is not None:
            self.store.begin_pass(shared=buckets is None)
        if buckets is None:
            if self.threads > 1 and self.store is None:
                from ..data.arrays import map_ahead

                yield from map_ahead(partial(self._answer_of_block, current), range(total), self.threads)
            else:
                found = self._answers_of_blocks if self.store is None else self._stored_answers_of_blocks
                yield from found(current, total)
            return
        held: dict[str, RowBuckets] = {}
        try:
            answers = self._answers_of_blocks(current, total)
            for number in range(self.tables[0].n_blocks):
                self._put_rows(held, number, next(answers))
            yield from self._answers_of_buckets(current, buckets, held, total)
        finally:
            for rows in held.values():
                rows.close()

    def _answers_of_blocks(self, current: NextPass, total: int) -> Iterator[Partial]:
        """Yield what the pass makes of each block, in their order."""
        from .run import Progress

        next_blocks = self._open_blocks(current.names)
        for done in range(1, self.tables[0].n_blocks + 1):
            # Nothing of a block is kept while the next one is read; zip and enumerate keep what they gave last.
            yield self.block(current.state, *next_blocks())
            self.report(Progress(done, total, current.what))

    def _open_blocks(
        self, names: Sequence[str] | None, numbers: Collection[int] | None = None
    ) -> Callable[[], list[Microdata]]:
        """Return a function that reads the next block of each table; one that is there twice is read once."""
        chosen = () if numbers is None else (numbers,)
        different = {id(table): table for table in self.tables}
        opened = {key: iter(table.iterate_blocks(names, *chosen)) for key, table in different.items()}

        def next_blocks() -> list[Microdata]:
            found = {key: next(blocks) for key, blocks in opened.items()}
            return [found[id(table)] for table in self.tables]

        return next_blocks

    def _stored_answers_of_blocks(self, current: NextPass, total: int) -> Iterator[Partial]:
        """Yield what the pass makes of each block, in their order; only what nobody has computed is computed."""
        from .run import Progress

        assert self.store is not None
        answers: dict[int, Partial] = {}
        for done, number in enumerate(self.store.block_order(self.tables[0].n_blocks), start=1):
            found = self._stored_answer(current, number)
            if current.fold is None:
                answers[number] = found
            self.report(Progress(done, total, current.what))
        for number in range(self.tables[0].n_blocks):
            # What is joined as it comes is read again, so that one answer at a time is in memory.
            yield answers[number] if number in answers else self._stored_answer(current, number)

    def _stored_answer(self, current: NextPass, number: int) -> Partial:
        """Return what the pass makes of a block, computed where nobody has."""
        assert self.store is not None
        found = self.store.find_partial(number)
        if found is None:
            found = self._answer_of_block(current, number)
            self.store.put_partial(number, found)
        return found

    def _answer_of_block(self, current: NextPass, number: int) -> Partial:
        """Return what the pass makes of one block, which is read for it alone."""
        return self.block(current.state, *self._open_blocks(current.names, [number])())

    def _put_rows(self, held: dict[str, RowBuckets], number: int, found: Partial) -> None:
        """Put the rows of a block into their buckets."""
        from ..data.row_buckets import RowBuckets

        for name, rows in found.items():
            if name not in held:
                held[name] = RowBuckets(self.open_file)
            held[name].put_stacked(rows[:, 0].astype(int), rows, first=float(number))

    def _answers_of_buckets(
        self, current: NextPass, buckets: IntoBuckets, held: Mapping[str, RowBuckets], total: int
    ) -> Iterator[Partial]:
        """Yield the partial answer of each bucket, in their order, and keep values of single records."""
        from ..data.row_buckets import RowBuckets
        from .run import Progress

        for number in range(buckets.number):
            own = {name: rows.read_bucket(number) for name, rows in held.items()}
            answer = dict(buckets.partial_of(current.state, own))
            # As long as the table, so that it goes to a file or nowhere.
            values = answer.pop("values", None)
            if buckets.keeps and values is not None:
                if buckets.keeps not in self.kept:
                    self.kept[buckets.keeps] = RowBuckets(self.open_file)
                self.kept[buckets.keeps].put_stacked(values[:, 0].astype(int), values[:, 1:])
            yield answer
            self.report(Progress(total - buckets.number + number + 1, total, current.what))


def run_passes(
    first: NextPass,
    tables: Sequence[TableBlocks],
    block: Callable[..., Partial],
    merge: Callable[[Any, Sequence[Partial]], NextPass | Finished[Any]],
    report: Callable[[Progress], None] = lambda _: None,
    store: PartialStore | None = None,
    open_file: OpenFile = io.BytesIO,
    threads: int = 1,
) -> Any:
    """Carry out passes until they are finished, and return their answer.

    ``tables`` have equally many blocks, and ``block`` gets one of each. ``store`` keeps the answers of blocks, and
    ``open_file`` opens a file for rows that are put into buckets, by default in memory. Without a store ``threads`` compute
    blocks.
    """
    return PassRunner(tables, block, merge, report, open_file, store, threads=threads).carry_out(first)


def measure_blocks(
    passes: MeasurePasses[Any],
    confidential: TableBlocks,
    released: TableBlocks,
    spec: Any,
    report: Callable[[Progress], None] = lambda _: None,
    open_file: OpenFile = io.BytesIO,
    store: PartialStore | None = None,
) -> Measure:
    """Return a measure of two tables, which are read in the same blocks of records. Raises NotComputable.

    ``open_file`` opens a file for rows that are put into buckets, by default in memory. Values of single records are read
    from such files too, which the caller closes. ``store`` keeps the answers of blocks.
    """
    runner = PassRunner([confidential, released], passes.block, passes.merge, report, open_file, store)
    answer: Measure = runner.carry_out(passes.start(confidential.head, released.head, spec, confidential.n_blocks))
    kept = answer.record_columns
    return replace(answer, record_blocks=partial(runner.iterate_values, kept)) if kept else answer
