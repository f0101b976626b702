"""Predictor terms: a closed grammar, so that text from a recipe is never evaluated.

term   := factor | factor ":" factor
factor := column | ("log" | "log1p" | "sqrt" | "square" | "code") "(" column ")"

``code`` is of a column with levels: one column of numbers in place of indicators (``level_numbers``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import BadInput
from ..wording import count_noun
from .schema import Schema

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .microdata import Microdata

LEVEL_CODE = "code"
FUNCTIONS = ("log", "log1p", "sqrt", "square", LEVEL_CODE)
"""By the names that NumPy has for them, and the one of levels."""
_DOMAIN = {"log": (0.0, False, "log1p"), "log1p": (-1.0, False, "the column itself"), "sqrt": (0.0, True, "square")}
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?")
_CALL = re.compile(r"(?P<function>[A-Za-z0-9_]+)\((?P<column>.+)\)")


@dataclass(frozen=True, slots=True)
class TermFactor:
    """Factor of a term: a column, a function of a numeric column, or the code of a column with levels."""

    column: str
    function: str | None = None

    def __str__(self) -> str:
        return f"{self.function}({self.column})" if self.function else self.column

    def has_indicators(self, schema: Schema) -> bool:
        """Return whether it enters a design as an indicator of each level but the first."""
        return self.function != LEVEL_CODE and schema[self.column].kind.has_levels


@dataclass(frozen=True, slots=True)
class PredictorTerm:
    """Predictor term: one factor, or the product of several."""

    factors: tuple[TermFactor, ...]

    def __str__(self) -> str:
        return ":".join(map(str, self.factors))

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that the term reads."""
        return tuple(factor.column for factor in self.factors)


def parse_term(text: str, schema: Schema, place: str) -> PredictorTerm:
    """Parse the term that ``text`` writes, its columns checked against the schema. Raises BadInput at ``place``."""
    call = _CALL.fullmatch(text)
    if text in schema or (call and call["column"].strip() in schema):
        return PredictorTerm((_parse_factor(text, schema, place),))
    pieces = text.split(":")
    if len(pieces) > 2:
        raise BadInput(place, f'"{text}" has more than two factors; a term is a column, a function of one, or a:b')
    return PredictorTerm(tuple(_parse_factor(piece.strip(), schema, place) for piece in pieces))


def _parse_factor(text: str, schema: Schema, place: str) -> TermFactor:
    if text in schema:
        return TermFactor(text)
    call = _CALL.fullmatch(text)
    if call is None:
        if re.fullmatch(r"[\w .\-]+", text):
            schema.require_variable(text, place)
        raise BadInput(
            place, f'"{text}" is not a term; use a column, {", ".join(f"{f}(column)" for f in FUNCTIONS)}, or a:b'
        )
    function, column = call["function"], call["column"].strip()
    if function not in FUNCTIONS:
        raise BadInput(place, f'no function "{function}"; a term may use {", ".join(FUNCTIONS)}')
    has_levels = schema.require_variable(column, place).kind.has_levels
    if function == LEVEL_CODE and not has_levels:
        raise BadInput(place, f'{function}({column}): "{column}" has numbers, not levels; use the column itself')
    if function != LEVEL_CODE and has_levels:
        raise BadInput(place, f'{function}({column}): "{column}" has levels, not numbers; use the column itself')
    return TermFactor(column, function)


@dataclass(frozen=True)
class TermDesign:
    """Design matrix of an intercept and terms, with the levels fixed by the confidential data.

    Columns with levels enter as treatment-coded indicators (the first level is the reference), or by ``code`` as a number; dates as days.

    terms: the terms
    schema: schema of the confidential data
    names: names of the columns of the matrix, (K,)
    """

    terms: tuple[PredictorTerm, ...]
    schema: Schema
    names: tuple[str, ...]

    @classmethod
    def from_terms(cls, terms: Sequence[PredictorTerm], data: Microdata) -> TermDesign:
        """Build the design of these terms on this table."""
        names = ["intercept"]
        for term in terms:
            labels = [""]
            for factor in term.factors:
                labels = [f"{a}:{b}" if a else b for a in labels for b in _design_column_names(factor, data)]
            names.extend(labels)
        return cls(tuple(terms), data.schema, tuple(names))

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the variables that the terms read, each once, in their order."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.columns))

    def check_domains(self, data: Microdata) -> None:
        """Raise BadInput where a function of a column is undefined for some records of ``data``."""
        for factor in (factor for term in self.terms for factor in term.factors if factor.function):
            check_domain(factor, data.numbers(factor.column))

    def build_matrix(self, data: Microdata) -> NDArray[np.float64]:
        """Return the matrix (n, K) for the records of ``data``, which may be synthetic; NaN where a value is missing.

        Raises BadInput outside a function's domain.
        """
        import numpy as np

        columns = [np.ones((len(data), 1))]
        for term in self.terms:
            block = np.ones((len(data), 1))
            for factor in term.factors:
                values = _design_columns(factor, data)
                block = (block[:, :, None] * values[:, None, :]).reshape(len(data), -1)
            columns.append(block)
        return np.hstack(columns)


def _design_column_names(factor: TermFactor, data: Microdata) -> list[str]:
    if not factor.has_indicators(data.schema):
        return [str(factor)]
    return [f"{factor.column}={level}" for level in data.column(factor.column).cat.categories[1:]]


def _design_columns(factor: TermFactor, data: Microdata) -> NDArray[np.float64]:
    import numpy as np

    numbers = data.numbers(factor.column)
    if factor.has_indicators(data.schema):
        levels = len(data.column(factor.column).cat.categories)
        indicators = np.equal(numbers[:, None], np.arange(1, levels)).astype(np.float64)
        indicators[np.isnan(numbers)] = np.nan
        return indicators
    check_domain(factor, numbers)
    return factor_numbers(factor, data)[:, None]


def factor_numbers(factor: TermFactor, data: Microdata) -> NDArray[np.float64]:
    """Return the column of a factor without indicators, or the function of it, (n,); inside that function's domain."""
    import numpy as np

    numbers = data.numbers(factor.column)
    if factor.function is None:
        return numbers
    if factor.function != LEVEL_CODE:
        return np.asarray(getattr(np, factor.function)(numbers))
    levels = np.append(level_numbers(data.column(factor.column).cat.categories), np.nan)
    return np.asarray(levels[np.where(np.isnan(numbers), -1, numbers).astype(np.int64)])


def level_numbers(levels: Iterable[object]) -> NDArray[np.float64]:
    """Return the code of each level: the number that it is, where all levels are numbers, else its place, from 1."""
    import numpy as np

    texts = [str(level) for level in levels]
    if all(_NUMBER.fullmatch(text) for text in texts):
        return np.array([float(text) for text in texts])
    return np.arange(1.0, len(texts) + 1)


def check_domain(factor: TermFactor, numbers: NDArray[np.float64], place: str = "") -> None:
    """Raise BadInput when a function of a column is undefined for some of its values, (n,)."""
    if factor.function not in _DOMAIN:
        return
    edge, closed, instead = _DOMAIN[factor.function]
    outside = int((numbers < edge).sum() if closed else (numbers <= edge).sum())
    if outside:
        side = "below" if closed else "at or below"
        raise BadInput(
            place or str(factor),
            f"{factor} is undefined for {count_noun(outside, 'record')} {side} {edge:g}; use {instead}",
        )
