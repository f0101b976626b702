"""Computations in passes over the blocks of a table, which never need the whole of it.

A pass computes a partial answer of each block and merges them in the order of the blocks, so that the result is the same
whoever computed which block, and when. The merged answer is the state of the next pass, or the end. A table in memory is
one block: a method that works in passes has no other way to compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from .spec import Spec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..data.microdata import Microdata
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
class NextPass:
    """Next pass over a table.

    state: what blocks and their merging need, such as what the passes before found
    names: variables that it reads, None for all
    what: what it does, in words, for the progress
    """

    state: Any
    names: tuple[str, ...] | None = None
    what: str = ""


class FitPasses(Protocol[S_contra]):
    """Passes of a synthesis method of one target."""

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


def run_passes(
    first: NextPass,
    tables: Sequence[TableBlocks],
    block: Callable[..., Partial],
    merge: Callable[[Any, Sequence[Partial]], NextPass | Finished[Any]],
    report: Callable[[Progress], None] = lambda _: None,
) -> Any:
    """Carry out passes until they are finished, and return their answer.

    ``tables`` have equally many blocks, and ``block`` gets one of each.
    """
    current: NextPass | Finished[Any] = first
    while isinstance(current, NextPass):
        partials = list(_iterate_partials(current, tables, block, report))
        current = merge(current.state, partials)
    return current.answer


def measure_blocks(
    passes: MeasurePasses[Any],
    confidential: TableBlocks,
    released: TableBlocks,
    spec: Any,
    report: Callable[[Progress], None] = lambda _: None,
) -> Measure:
    """Return a measure of two tables, which are read in the same blocks of records. Raises NotComputable."""
    first = passes.start(confidential.head, released.head, spec, confidential.n_blocks)
    answer: Measure = run_passes(first, [confidential, released], passes.block, passes.merge, report)
    return answer


def _iterate_partials(
    current: NextPass, tables: Sequence[TableBlocks], block: Callable[..., Partial], report: Callable[[Progress], None]
) -> Iterator[Partial]:
    """Yield the partial answer of each block of one pass, in the order of the blocks."""
    from .run import Progress

    total = tables[0].n_blocks
    blocks = zip(*(table.iterate_blocks(current.names) for table in tables), strict=True)
    for done, some in enumerate(blocks, start=1):
        yield block(current.state, *some)
        report(Progress(done, total, current.what))
