"""Passes of a measure that asks questions of two tables, each with sums over the blocks of one of them.

A pass computes the next sums of all questions that are not answered yet, so that there are as many passes as the longest
question asks for, whatever their number. In memory is one block.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from ..data.block_sums import (
    BlockWork,
    JoinSummands,
    KnownSums,
    Summands,
    SummedTable,
    SumNotKnownError,
    TableInMemory,
)
from ..data.table_blocks import OneBlock
from ..errors import NotComputable
from .passes import Finished, NextPass, Partial, measure_blocks
from .spec import Spec

if TYPE_CHECKING:
    from ..data.microdata import Microdata
    from ..data.schema import Schema
    from .results import Measure

S = TypeVar("S", bound=Spec)
Questions = Mapping[Hashable, "Question"]
OURS, THEIRS = 0, 1
"""Places of the confidential and of the released table."""


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


class _OpenSums(NamedTuple):
    """Sums that a question needs next: its table and key, and what computes and joins them."""

    table: int
    key: Hashable
    work: BlockWork
    join: JoinSummands


@dataclass(frozen=True)
class _AskedState:
    """What the passes know.

    spec: parameters
    heads: both tables without records
    n_blocks: number of blocks
    questions: by key, of each table
    known: sums of a question in the order in which it asks for them, by its table and key
    answers: answers by key, of each table
    open: sums that the pass computes
    """

    spec: Any
    heads: tuple[Microdata, Microdata]
    n_blocks: int
    questions: Questions
    known: Mapping[tuple[int, Hashable], tuple[Summands, ...]] = field(default_factory=dict)
    answers: tuple[Mapping[Hashable, Any], Mapping[Hashable, Any]] = field(default_factory=lambda: ({}, {}))
    open: tuple[_OpenSums, ...] = ()


@dataclass(frozen=True)
class AskedPasses(Generic[S]):
    """Passes of a measure that asks the same questions of both tables; of the confidential one alone where it is both.

    suits: whether the measure with some parameters can be computed in passes
    questions: questions by key, given the confidential table without records, and a sample of the table that is asked
    sample_of: sample of either table, given the confidential one and it, where records are not independent; such tables
        are in memory
    measure: measure of both tables without records and the answers by key, of each; those of one table are both where it
        is the confidential one
    """

    suits: Callable[[S, Schema], bool]
    questions: Callable[[Microdata, S, Any], Questions]
    sample_of: Callable[[Microdata, Microdata], Any]
    measure: Callable[[Microdata, Microdata, S, Mapping[Any, Any], Mapping[Any, Any]], Measure]

    def start(self, confidential: Microdata, released: Microdata, spec: S, n_blocks: int) -> NextPass:
        state = _AskedState(spec, (confidential, released), n_blocks, self.questions(confidential, spec, None))
        found = self._go_on(state)
        assert isinstance(found, NextPass)
        return found

    def measure_tables(self, confidential: Microdata, released: Microdata, spec: S) -> Measure:
        """Return the measure of tables in memory."""
        if self.suits(spec, confidential.schema):
            return measure_blocks(self, OneBlock(confidential), OneBlock(released), spec)
        answers = []
        for data in (confidential, released):
            questions = self.questions(confidential, spec, self.sample_of(confidential, data))
            answers.append({key: one.answer_or_reason(TableInMemory(data)) for key, one in questions.items()})
        return self.measure(confidential, released, spec, answers[OURS], answers[THEIRS])

    def block(self, state: _AskedState, confidential: Microdata, released: Microdata) -> Partial:
        tables = (confidential, released)
        return {
            f"{i}.{j}": one
            for i, asked in enumerate(state.open)
            for j, one in enumerate(asked.work(tables[asked.table]))
        }

    def merge(self, state: _AskedState, partials: Sequence[Partial]) -> NextPass | Finished[Measure]:
        found: list[list[list[Any]]] = [[[] for _ in partials] for _ in state.open]
        for number, part in enumerate(partials):
            for name, values in part.items():
                found[int(name.split(".")[0])][number].append(values)
        known = dict(state.known)
        for asked, parts in zip(state.open, found, strict=True):
            of = asked.table, asked.key
            known[of] = (*known.get(of, ()), asked.join([tuple(part) for part in parts]))
        return self._go_on(replace(state, known=known))

    def _go_on(self, state: _AskedState) -> NextPass | Finished[Measure]:
        """Answer what can be answered, and return the pass for what cannot, or the measure."""
        tables = (OURS,) if state.heads[THEIRS].origin == "confidential" else (OURS, THEIRS)
        answers, still = [dict(one) for one in state.answers], list[_OpenSums]()
        for table in tables:
            for key, question in state.questions.items():
                if key in answers[table]:
                    continue
                sums = KnownSums(state.heads[table], state.n_blocks, state.known.get((table, key), ()))
                try:
                    answers[table][key] = question.answer_or_reason(sums)
                except SumNotKnownError as more:
                    still.append(_OpenSums(table, key, more.work, more.join))
        if not still:
            own = answers[OURS], answers[tables[-1]]
            return Finished(self.measure(*state.heads, state.spec, *own))
        passed = max(len(known) for known in state.known.values()) if state.known else 0
        names = tuple(dict.fromkeys(name for one in still for name in state.questions[one.key].columns))
        state = replace(state, answers=(answers[OURS], answers[THEIRS]), open=tuple(still))
        return NextPass(state, names, f"estimates, sum {passed + 1}")
