"""Structural zeros: combinations of values that cannot occur, as a recipe writes them.

They are conjunctions of terms on single variables, in the language of ``sfumato.engine.data.conditions``:

    "age < 15 & marital_status != Never-married"
    "relationship = Husband & sex = Female"
    "age < 15 & occupation is present"

A number is compared with whole bins, so the bins need a cut at each limit. A missing value fulfils only ``is missing``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Booleans
from ..data.conditions import (
    CONDITION_FORM,
    Condition,
    ConditionConjunction,
    PresenceTest,
    SumComparison,
    list_terms,
    parse_condition,
)
from ..data.microdata import Microdata
from ..data.schema import Kind
from ..errors import BadInput
from .categories import VariableCategories

_COMPARED = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


@dataclass(frozen=True, slots=True)
class StructuralZeroTerm:
    """Condition on one variable: a ``sign`` with ``values``, or ``is missing`` or ``is present`` without any."""

    column: str
    sign: str
    values: tuple[str, ...]

    @classmethod
    def from_condition(cls, term: Condition) -> StructuralZeroTerm:
        """Create the term from a part of a condition. Raises ValueError where it is about several variables."""
        if isinstance(term, PresenceTest):
            return cls(term.column, "is present" if term.is_present else "is missing", ())
        if not isinstance(term, SumComparison):
            raise ValueError(
                f'combinations that cannot be are terms of one variable each, joined by "&": write {CONDITION_FORM}'
            )
        sides = (term.left, *term.right)
        if any(len(side) > 1 or side[0].has_coefficient or side[0].coefficient != 1 for side in sides):
            raise ValueError(f'"{term.text}" has a sum: combinations that cannot be are terms of one variable each')
        column, *values = (side[0].atom.text for side in sides)
        return cls(column, term.sign, tuple(values))

    def fulfilling_levels(self, categories: VariableCategories, data: Microdata, size: int, place: str) -> Booleans:
        """Mark which of the ``size`` categories of its variable fulfil it, (size,). Raises BadInput."""
        present = np.arange(size) < categories.value_count
        if not self.values:
            if self.sign == "is missing" and size == categories.value_count and categories.has_missing:
                raise BadInput(place, f'missing values of "{self.column}" are filled: none is left')
            return present if self.sign == "is present" else ~present
        found = (
            self._fulfilling_bins(categories, place)
            if len(categories.edges)
            else self._fulfilling_names(categories, data, place)
        )
        return np.append(found, np.zeros(size - len(found), dtype=np.bool_))

    def _fulfilling_names(self, categories: VariableCategories, data: Microdata, place: str) -> Booleans:
        """Mark the levels that fulfil it, of a variable with levels. Raises BadInput."""
        names = [str(level) for level in data.column(self.column).cat.categories]
        for value in self.values:
            if value not in names:
                raise BadInput(place, f'"{self.column}" has no level "{value}"')
        at = np.arange(len(names))
        if self.sign in ("=", "!="):
            return np.isin(at, [names.index(value) for value in self.values], invert=self.sign == "!=")
        if categories.variable.kind is not Kind.ORDINAL:
            raise BadInput(place, f'the levels of "{self.column}" have no order: use = or !=')
        return np.asarray(_COMPARED[self.sign](at, names.index(self.values[0])))

    def _fulfilling_bins(self, categories: VariableCategories, place: str) -> Booleans:
        """Mark the bins all of whose numbers fulfil it. Raises BadInput where only some numbers of a bin do."""
        if categories.variable.kind is Kind.DATE:
            raise BadInput(place, f'"{self.column}" is a date, which conditions do not compare')
        try:
            numbers = [float(value) for value in self.values]
        except ValueError:
            raise BadInput(place, f'"{self.column}" is a number: compare it with one') from None
        edges = categories.edges
        if categories.is_integer:  # a whole number is at most v where it is below v + 1
            first, past = np.ceil(edges[:-1]), np.append(np.ceil(edges[1:-1]), np.floor(edges[-1]) + 1)
        else:
            first, past = edges[:-1], edges[1:]
        if self.sign in ("=", "!="):
            if not categories.is_integer:
                raise BadInput(place, f'"{self.column}" has any number: use < or >= and a cut of its bins')
            inside = np.any(
                [_bins_between(first, past, value, value + 1, self.column, place) for value in numbers], axis=0
            )
            return np.asarray(inside if self.sign == "=" else ~inside)
        (value,) = numbers
        if self.sign in ("<=", ">"):
            if not categories.is_integer:
                other = "<" if self.sign == "<=" else ">="
                raise BadInput(place, f'bins of "{self.column}" hold their lower end: use {other}')
            value = np.floor(value) + 1
        below = _bins_between(first, past, -np.inf, value, self.column, place)
        return below if self.sign in ("<", "<=") else np.asarray(~below)


def _bins_between(
    first: NDArray[np.float64], past: NDArray[np.float64], low: float, high: float, name: str, place: str
) -> Booleans:
    """Mark the bins between low and high. Raises BadInput where a bin is partly inside."""
    inside = (first >= low) & (past <= high)
    if (~inside & (past > low) & (first < high)).any():
        cuts = ", ".join(f"{end:g}" for end in (low, high) if np.isfinite(end))
        raise BadInput(place, f'a bin of "{name}" holds numbers that are meant and others: cut its bins at {cuts}')
    return np.asarray(inside)


@dataclass(frozen=True, slots=True)
class StructuralZero:
    """Condition that no record fulfils: the conjunction of its ``terms``."""

    terms: tuple[StructuralZeroTerm, ...]
    text: str

    @classmethod
    def parse(cls, value: object) -> StructuralZero:
        """Parse the condition from a recipe's text. Raises ValueError; the message shows the form."""
        if isinstance(value, StructuralZero):
            return value
        if not isinstance(value, str):
            raise ValueError(f"{value!r} is no condition: write {CONDITION_FORM}")
        condition = parse_condition(value)
        parts = condition.parts if isinstance(condition, ConditionConjunction) else (condition,)
        return cls(
            tuple(map(StructuralZeroTerm.from_condition, parts)),
            " & ".join(term.text for term in list_terms(condition)),
        )

    @property
    def written(self) -> str:
        """Return the form that a recipe carries."""
        return self.text

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(term.column for term in self.terms)

    def possible_levels(
        self, categories: Mapping[str, VariableCategories], sizes: Mapping[str, int], data: Microdata, place: str
    ) -> Booleans:
        """Mark the categories of all variables, side by side (D,), that a record may have that fulfils the condition.

        Raises BadInput.
        """
        masks = {name: np.ones(size, dtype=np.bool_) for name, size in sizes.items()}
        for term in self.terms:
            if term.column not in categories:
                data.schema.require_variable(term.column, place)
                raise BadInput(place, f'"{term.column}" is neither a target nor a predictor of this step')
            masks[term.column] &= term.fulfilling_levels(categories[term.column], data, sizes[term.column], place)
        return np.concatenate([masks[name] for name in sizes])
