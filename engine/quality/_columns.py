"""What the measures of numerical columns share: which columns, suppression, a row for each and the smallest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput, NotComputable
from ..microdata import Microdata
from ..partition.pairs import NUMBERS, Pairs, minimum, quasi_identifiers
from ..results import Estimate, Measure
from ..schema import Schema
from ..spec import Param, Spec

__all__ = ["ColumnsSpec", "measure_columns"]

Floats = NDArray[np.float64]
Score = Callable[[Floats, Floats], Sequence[float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnsSpec(Spec):
    """Columns to score, and whether suppressed records count against them."""

    variables: Annotated[
        tuple[str, ...],
        Param("columns to score; left out, the numerical quasi-identifiers", names="variables", kinds=NUMBERS),
    ] = ()
    count_suppressed: Annotated[bool, Param("multiply each value by the share of records that are not suppressed")] = (
        False
    )

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """With the numerical quasi-identifiers, when no column is named."""
        found = tuple(name for name in quasi_identifiers(schema, released) if schema[name].kind in NUMBERS)
        return replace(self, variables=self.variables or found)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """BadInput when no column is named and no quasi-identifier is numerical."""
        if not self.for_release(schema, released).variables:
            raise BadInput(place, f"no quasi-identifier is {', '.join(NUMBERS[:-1])} or {NUMBERS[-1]}; leave it out")


def measure_columns(
    original: Microdata,
    released: Microdata,
    spec: ColumnsSpec,
    names: Sequence[str],
    score: Score,
) -> Measure:
    """The rows of every column, and the smallest of the first measure named.

    ``score`` gets the original and the released values (k,) of the records that are not suppressed, without missing ones, and gives the values of
    the measures ``names`` in their order; it may raise NotComputable.
    """
    pairs = Pairs.of(original, released)
    factor = pairs.kept if spec.count_suppressed else 1.0
    estimates: list[Estimate] = []
    for name in spec.variables:
        estimates.extend(_column(pairs, name, names, score, factor))
    constant = [name for name in spec.variables if np.ptp(original.present(name)) == 0]
    columns = [estimate for estimate in estimates if estimate.measure == names[0]]
    return Measure((*estimates, minimum(f"minimum_{names[0]}", columns, constant)))


def _column(pairs: Pairs, name: str, names: Sequence[str], score: Score, factor: float) -> Iterator[Estimate]:
    try:
        values = score(*_present(*pairs.numbers(name)))
    except NotComputable as error:
        yield from (Estimate.not_computed(measure, error.reason, name) for measure in names)
        return
    yield from (Estimate(measure, factor * value, name) for measure, value in zip(names, values, strict=True))


def _present(original: Floats, released: Floats) -> tuple[Floats, Floats]:
    """The pairs of which neither is missing."""
    present = ~(np.isnan(original) | np.isnan(released))
    if present.sum() < 2:
        raise NotComputable("fewer than two records have both values")
    return original[present], released[present]
