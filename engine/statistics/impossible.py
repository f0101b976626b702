"""Combinations of values that cannot be, as a recipe writes them: structural zeros.

condition := term ("&" term)*
term      := column sign values | column "is missing" | column "is present"
sign      := "=" | "!=" | "<" | "<=" | ">" | ">="
values    := value ("|" value)*                   more than one for "=" and "!=" alone

    "age < 15 & marital_status != Never-married"
    "relationship = Husband & sex = Female"
    "age < 15 & occupation is present"

A value or a column with ``&``, ``|`` or a sign in it stands in quotes. A number is compared with whole bins: the bins need a cut where the condition
has one. A value that is missing fulfils no term but ``is missing``. Text from a recipe is compared, never evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput
from ..microdata import Microdata
from ..schema import Kind
from .categories import Categories

Mask = NDArray[np.bool_]

_QUOTED = r"'[^']*'|\"[^\"]*\""
_TERM = re.compile(
    rf"\s*(?P<column>{_QUOTED}|[^'\"]+?)\s*(?:(?P<sign>!=|<=|>=|=|<|>)\s*(?P<values>.+?)|\s(?P<state>is missing|is present))\s*"
)
_FORM = '"age < 15 & marital_status != Never-married", with =, !=, <, <=, >, >=, "is missing" or "is present"'


@dataclass(frozen=True, slots=True)
class ImpossibleTerm:
    """What a condition says of one variable: a ``sign`` and ``values``, or ``is missing`` and ``is present`` and none."""

    column: str
    sign: str
    values: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> ImpossibleTerm:
        """From its text. Raises ValueError."""
        found = _TERM.fullmatch(text)
        if found is None:
            raise ValueError(f'"{text.strip()}" says nothing of a variable: write conditions such as {_FORM}')
        column = _unquoted(found["column"])
        if found["state"]:
            return cls(column, found["state"], ())
        values = tuple(_unquoted(value) for value in _pieces(found["values"], "|"))
        if len(values) > 1 and found["sign"] not in ("=", "!="):
            raise ValueError(f'"{text.strip()}" compares with several values: only = and != do')
        return cls(column, found["sign"], values)

    def levels(self, categories: Categories, data: Microdata, size: int, place: str) -> Mask:
        """Which of the ``size`` levels of its variable fulfil it, (size,). Raises BadInput."""
        present = np.arange(size) < categories.present
        if not self.values:
            if self.sign == "is missing" and size == categories.present and categories.gaps:
                raise BadInput(place, f'missing values of "{self.column}" are filled: none is left')
            return present if self.sign == "is present" else ~present
        found = self._numbers(categories, place) if len(categories.edges) else self._names(categories, data, place)
        return np.append(found, np.zeros(size - len(found), dtype=np.bool_))

    def _names(self, categories: Categories, data: Microdata, place: str) -> Mask:
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

    def _numbers(self, categories: Categories, place: str) -> Mask:
        """Of the bins those whose every number fulfils it; BadInput where a bin has others too."""
        if categories.variable.kind is Kind.DATE:
            raise BadInput(place, f'"{self.column}" is a date, which conditions do not compare')
        try:
            numbers = [float(value) for value in self.values]
        except ValueError:
            raise BadInput(place, f'"{self.column}" is a number: compare it with one') from None
        edges = categories.edges
        if categories.whole:  # a whole number is at most v where it is below v + 1
            first, past = np.ceil(edges[:-1]), np.append(np.ceil(edges[1:-1]), np.floor(edges[-1]) + 1)
        else:
            first, past = edges[:-1], edges[1:]
        if self.sign in ("=", "!="):
            if not categories.whole:
                raise BadInput(place, f'"{self.column}" has any number: use < or >= and a cut of its bins')
            inside = np.any([_within(first, past, value, value + 1, self.column, place) for value in numbers], axis=0)
            return np.asarray(inside if self.sign == "=" else ~inside)
        (value,) = numbers
        if self.sign in ("<=", ">"):
            if not categories.whole:
                other = "<" if self.sign == "<=" else ">="
                raise BadInput(place, f'bins of "{self.column}" hold their lower end: use {other}')
            value = np.floor(value) + 1
        below = _within(first, past, -np.inf, value, self.column, place)
        return below if self.sign in ("<", "<=") else np.asarray(~below)


_COMPARED = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def _within(
    first: NDArray[np.float64], past: NDArray[np.float64], low: float, high: float, name: str, place: str
) -> Mask:
    """Which bins lie between low and high; BadInput where one lies on both sides."""
    inside = (first >= low) & (past <= high)
    if (~inside & (past > low) & (first < high)).any():
        cuts = ", ".join(f"{end:g}" for end in (low, high) if np.isfinite(end))
        raise BadInput(place, f'a bin of "{name}" holds numbers that are meant and others: cut its bins at {cuts}')
    return np.asarray(inside)


@dataclass(frozen=True, slots=True)
class Impossible:
    """A condition that no record fulfils: all its ``terms`` together."""

    terms: tuple[ImpossibleTerm, ...]
    text: str

    @classmethod
    def parse(cls, value: object) -> Impossible:
        """From a recipe's text. Raises ValueError; the message shows the form."""
        if isinstance(value, Impossible):
            return value
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{value!r} is no condition: write {_FORM}")
        terms = tuple(ImpossibleTerm.parse(piece) for piece in _pieces(value, "&"))
        return cls(terms, " & ".join(piece.strip() for piece in _pieces(value, "&")))

    @property
    def written(self) -> str:
        """The form that a recipe carries."""
        return self.text

    def levels(
        self, categories: Mapping[str, Categories], sizes: Mapping[str, int], data: Microdata, place: str
    ) -> Mask:
        """Which levels of all variables, side by side (D,), may be part of a record that fulfils it. Raises BadInput."""
        masks = {name: np.ones(size, dtype=np.bool_) for name, size in sizes.items()}
        for term in self.terms:
            if term.column not in categories:
                data.schema.require(term.column, place)
                raise BadInput(place, f'"{term.column}" is neither a target nor a predictor of this step')
            masks[term.column] &= term.levels(categories[term.column], data, sizes[term.column], place)
        return np.concatenate([masks[name] for name in sizes])


def _pieces(text: str, sign: str) -> list[str]:
    """The text cut at a sign that stands outside quotes. Raises ValueError at a quote that is not closed."""
    if not re.fullmatch(rf"(?:[^'\"]|{_QUOTED})*", text):
        raise ValueError(f"{text!r} has a quote that is not closed")
    inside = re.findall(rf"(?:[^{sign}'\"]|{_QUOTED})+", text)
    if len(inside) != 1 + len(re.sub(_QUOTED, "", text).split(sign)) - 1 or not all(map(str.strip, inside)):
        raise ValueError(f'{text!r} has nothing beside a "{sign}": write conditions such as {_FORM}')
    return inside


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0] else text
