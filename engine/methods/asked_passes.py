"""Passes of a computation that asks for sums over the blocks of its tables (``sfumato.engine.data.block_sums``).

After each pass it is carried out again with the sums that are known; the first that is not is what the next pass
computes. A measure that puts the same questions to both tables is written as if all records were at hand. In memory is
one block.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..data.block_sums import (
    BlockWork,
    JoinSummands,
    KnownSums,
    Summands,
    SummedTable,
    SumNotKnownError,
    TableInMemory,
    WorkOfBuckets,
    add_sums,
    arrays_of_summands,
    ask_together,
    is_folded,
    summands_of_arrays,
)
from ..data.table_blocks import OneBlock
from ..errors import NotComputable
from .passes import Finished, IntoBuckets, NextPass, Partial, measure_blocks
from .spec import Spec

if TYPE_CHECKING:
    from ..data.microdata import Microdata
    from ..data.row_buckets import BucketRows
    from ..data.schema import Schema
    from .results import Measure

S = TypeVar("S", bound=Spec)
Questions = Mapping[Hashable, "Question"]
OURS, THEIRS = 0, 1
"""Places of the confidential and of the released table."""


@dataclass(frozen=True)
class AskedState:
    """What passes of a computation know.

    compute: the computation, given a table that is asked for sums
    sums: the sums that are known
    names: variables that it reads
    what: what it computes, in words
    work, join: what the pass computes of each block, and how that is joined
    buckets: what it computes of rows in buckets, if ``work`` returns such
    """

    compute: Callable[[KnownSums], Any]
    sums: KnownSums
    names: tuple[str, ...]
    what: str
    work: Callable[..., Any] | None = None
    join: JoinSummands = add_sums
    buckets: WorkOfBuckets | None = None

    def next_pass(self) -> NextPass | Finished[Any]:
        """Return the pass that the computation needs next, or its answer."""
        table = KnownSums(self.sums.head, self.sums.n_blocks, self.sums.known)
        try:
            return Finished(self.compute(table))
        except SumNotKnownError as more:
            what = f"{self.what}, sum {len(table.known) + 1}"
            state = replace(self, work=more.work, join=more.join, buckets=more.buckets)
            names = self.names if more.names is None else tuple(more.names)
            buckets = None if more.buckets is None else IntoBuckets(more.buckets.number, AskedState.sums_of_bucket)
            return NextPass(state, names, what, buckets, state.join_sums if is_folded(more.join) else None)

    def sums_of_block(self, *tables: Microdata) -> Partial:
        """Return what the pass computes of a block, or the rows of a block that go to buckets."""
        assert self.work is not None
        found = self.work(*tables)
        return self._to_partial(found) if self.buckets is None else dict(found)

    def sums_of_bucket(self, rows: Mapping[str, BucketRows]) -> Partial:
        """Return what the pass computes of a bucket."""
        assert self.buckets is not None
        return self._to_partial(self.buckets.work(rows))

    def merge_sums(self, partials: Sequence[Partial]) -> NextPass | Finished[Any]:
        """Return what comes after a pass, given what it computed of each block."""
        joined = self.join([self._from_partial(one) for one in partials])
        return replace(self, sums=replace(self.sums, known=(*self.sums.known, joined))).next_pass()

    def join_sums(self, one: Partial, other: Partial) -> Partial:
        """Return what the pass computed of blocks that follow each other, joined."""
        return self._to_partial(self.join([self._from_partial(one), self._from_partial(other)]))

    def _to_partial(self, summands: Summands) -> Partial:
        """Return summands as named arrays; as they are where one block is all there is."""
        if self.sums.n_blocks > 1:
            return arrays_of_summands(summands)
        whole: Any = summands
        return {"whole": whole}

    def _from_partial(self, found: Partial) -> Summands:
        whole: Any = found["whole"] if "whole" in found else summands_of_arrays(found)
        return tuple(whole)


class SummedPasses:
    """Passes of a computation on tables that are asked for sums together."""

    def suits(self, spec: Any, schema: Schema) -> bool:
        """Return whether it can be computed in passes with these parameters: with any."""
        return True

    @staticmethod
    def first_pass(
        compute: Callable[[KnownSums], Any], head: Microdata, n_blocks: int, names: Sequence[str], what: str
    ) -> NextPass:
        """Return the first pass of a computation that asks for sums of some variables."""
        first = AskedState(compute, KnownSums(head, n_blocks, ()), tuple(names), what).next_pass()
        assert isinstance(first, NextPass)
        return first

    def block(self, state: AskedState, *tables: Microdata) -> Partial:
        return state.sums_of_block(*tables)

    def merge(self, state: AskedState, partials: Sequence[Partial]) -> NextPass | Finished[Any]:
        return state.merge_sums(partials)


@dataclass(frozen=True)
class Question:
    """A question about a table.

    columns: variables that it reads
    answer: answers it; may raise NotComputable, which is the answer then
    """

    columns: tuple[str, ...]
    answer: Callable[[SummedTable], Any]

    def answer_or_reason(self, table: SummedTable) -> Any:
        """Return the answer, or the NotComputable that it raises. Raises SumNotKnownError."""
        try:
            return self.answer(table)
        except NotComputable as error:
            return error


@dataclass(frozen=True)
class _OneOfTwo:
    """One of two tables that are asked together."""

    both: SummedTable
    head: Microdata
    place: int

    @property
    def n_blocks(self) -> int:
        return self.both.n_blocks

    def ask_sums(self, work: BlockWork, join: JoinSummands = add_sums, names: Sequence[str] | None = None) -> Summands:
        return self.both.ask_sums(partial(_work_on_one, work, self.place), join, names)


def _work_on_one(work: BlockWork, place: int, *tables: Microdata) -> Summands:
    return work(tables[place])


@dataclass(frozen=True)
class AskedPasses(SummedPasses, Generic[S]):
    """Passes of a measure that asks the same questions of both tables; of the confidential one alone where it is both.

    suits: whether the measure with some parameters can be computed in passes
    questions: questions by key, given the confidential table without records, and a sample of the table that is asked
    sample_of: sample of either table, given the confidential one and it, where records are not independent; such tables
        are in memory
    measure: measure of both tables without records and the answers by key, of each; those of one table are both where it
        is the confidential one
    """

    suits: Callable[[S, Schema], bool] = field()  # type: ignore[assignment]
    questions: Callable[[Microdata, S, Any], Questions]
    sample_of: Callable[[Microdata, Microdata], Any]
    measure: Callable[[Microdata, Microdata, S, Mapping[Any, Any], Mapping[Any, Any]], Measure]

    def measure_tables(self, confidential: Microdata, released: Microdata, spec: S) -> Measure:
        """Return the measure of tables in memory."""
        if self.suits(spec, confidential.schema):
            return measure_blocks(self, OneBlock(confidential), OneBlock(released), spec)
        answers = []
        for data in (confidential, released):
            questions = self.questions(confidential, spec, self.sample_of(confidential, data))
            answers.append({key: one.answer_or_reason(TableInMemory(data)) for key, one in questions.items()})
        return self.measure(confidential, released, spec, answers[OURS], answers[THEIRS])

    def start(self, confidential: Microdata, released: Microdata, spec: S, n_blocks: int) -> NextPass:
        questions = self.questions(confidential, spec, None)
        compute = partial(self._measure_of_sums, (confidential, released), spec, questions, {})
        names = tuple(dict.fromkeys(name for one in questions.values() for name in one.columns))
        return self.first_pass(compute, confidential, n_blocks, names, "estimates")

    def _measure_of_sums(
        self,
        heads: tuple[Microdata, Microdata],
        spec: S,
        questions: Questions,
        done: dict[tuple[int, Hashable], Any],
        both: SummedTable,
    ) -> Measure:
        """Return the measure; ``done`` are answers by table and key that are known, to which more are added."""
        places = (OURS,) if heads[THEIRS].origin == "confidential" else (OURS, THEIRS)
        computations = {
            (place, key): partial(_answer_of_one, one, heads[place], place)
            for place in places
            for key, one in questions.items()
        }
        answers = ask_together(both, computations, done)
        ours, theirs = ({key: answers[place, key] for key in questions} for place in (OURS, places[-1]))
        return self.measure(*heads, spec, ours, theirs)


def _answer_of_one(question: Question, head: Microdata, place: int, both: SummedTable) -> Any:
    return question.answer_or_reason(_OneOfTwo(both, head, place))
