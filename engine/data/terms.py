"""Predictor terms, parsed by a closed grammar, so that text from a recipe is never evaluated.

    term   := factor | factor ":" factor
    factor := column | ("log" | "log1p" | "sqrt" | "square" | "code") "(" column ")"

``code`` applies to a column with levels and gives one column of numbers in place of indicators (``level_numbers``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import BadInput
from ..wording import count_noun
from .schema import Schema

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
        """Return whether it enters a design as indicators of all levels but the first."""
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
    """Return the parsed term, its columns checked against the schema. Raises BadInput at ``place``."""
    call = _CALL.fullmatch(text)
    # A column may be named like a term, such as "a:b" or "log(x)".
    if text in schema or (call and call["column"].strip() in schema):
        return PredictorTerm((_parse_factor(text, schema, place),))
    pieces = text.split(":")
    if len(pieces) > 2:
        raise BadInput(place, f'"{text}" has more than two factors; a term is a column, a function of one, or a:b')
    return PredictorTerm(tuple(_parse_factor(piece.strip(), schema, place) for piece in pieces))


def _parse_factor(text: str, schema: Schema, place: str) -> TermFactor:
    """Return the parsed factor. Raises BadInput where it is no column and no function of one."""
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


def level_numbers(levels: Iterable[object]) -> NDArray[np.float64]:
    """Return the number of each level: its value where all levels are numbers, else its rank from 1."""
    import numpy as np

    texts = [str(level) for level in levels]
    if all(_NUMBER.fullmatch(text) for text in texts):
        return np.array([float(text) for text in texts])
    return np.arange(1.0, len(texts) + 1)


def check_domain(factor: TermFactor, numbers: NDArray[np.float64], place: str = "") -> None:
    """Raise BadInput where a function of a column is undefined for some of its values (n,)."""
    require_domain(factor, count_outside(factor, numbers), place)


def count_outside(factor: TermFactor, numbers: NDArray[np.float64]) -> int:
    """Count the values (n,) of a column for which a function of it is undefined."""
    if factor.function not in _DOMAIN:
        return 0
    edge, closed, _ = _DOMAIN[factor.function]
    return int((numbers < edge).sum() if closed else (numbers <= edge).sum())


def require_domain(factor: TermFactor, outside: int, place: str = "") -> None:
    """Raise BadInput where a function of a column is undefined for some values, ``outside`` of them."""
    if outside:
        edge, closed, instead = _DOMAIN[factor.function or ""]
        side = "below" if closed else "at or below"
        raise BadInput(
            place or str(factor),
            f"{factor} is undefined for {count_noun(outside, 'record')} {side} {edge:g}; use {instead}",
        )
