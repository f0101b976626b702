"""What a variable is: its kind, the role it plays for an intruder, its bounds, levels and labels, and which are compared."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeVar

from ..errors import BadInput, suggestion
from .conditions import Constraint
from .intervals import SHARE, Range

Word = TypeVar("Word", bound=StrEnum)

Origin = Literal["confidential", "synthetic", "anonymised"]
"""What a table is."""


class Kind(StrEnum):
    """Measurement scale. Categorical, ordinal and binary variables are matched and modelled by their levels."""

    CATEGORICAL = "categorical"
    ORDINAL = "ordinal"
    BINARY = "binary"
    COUNT = "count"
    CONTINUOUS = "continuous"
    DATE = "date"

    @property
    def has_levels(self) -> bool:
        """Whether values are levels rather than numbers or dates."""
        return self in (Kind.CATEGORICAL, Kind.ORDINAL, Kind.BINARY)


class Role(StrEnum):
    """What the variable is in the release: known to an intruder, sensitive, an identifier, the survey weight, or none of these.

    A quasi-identifier is read under its older word ``known`` too.
    """

    QUASI_IDENTIFIER = "quasi_identifier"
    SENSITIVE = "sensitive"
    IDENTIFIER = "identifier"
    WEIGHT = "weight"
    OTHER = "other"

    @classmethod
    def _missing_(cls, value: object) -> Role | None:
        return cls.QUASI_IDENTIFIER if value == "known" else None


class DesignPart(StrEnum):
    """What a variable says of how a survey's records were drawn, whatever its role: see ``sfumato.engine.design.survey``."""

    STRATA = "strata"
    CLUSTERS = "clusters"
    POPULATION = "population"


SURVEY_SETTING = "survey"
"""The parameter of a row that says by which survey design it was weighted."""


class MissingPolicy(StrEnum):
    """What a missing value means to every method.

    ``refuse``: the file must have none. ``drop``: records with one leave. ``keep``: missing is a value of its own, which is
    synthesised, equals itself and nothing else in matching, and tells records apart in the measures of utility; statistics
    of a single variable are of the values present and say how many are missing; what needs a number of every record
    refuses the variable.
    """

    REFUSE = "refuse"
    DROP = "drop"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Variable:
    """One column. ``bounds`` are inclusive; ``levels`` fix the order of an ordinal variable; ``missing`` lists codes.

    ``may_be_missing`` declares that a value may be missing, whether or not one of these data is.
    """

    name: str
    kind: Kind
    role: Role = Role.OTHER
    bounds: tuple[float | None, float | None] | None = None
    levels: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str | float, ...] = ()
    title: str = ""
    design: DesignPart | None = None
    may_be_missing: bool = False

    @property
    def lower(self) -> float | None:
        """The smallest value allowed, if any; counts start at 0."""
        if self.bounds is None or self.bounds[0] is None:
            return 0.0 if self.kind is Kind.COUNT else None
        return self.bounds[0]

    @property
    def upper(self) -> float | None:
        """The largest value allowed, if any."""
        return None if self.bounds is None else self.bounds[1]

    @classmethod
    def from_table(cls, name: str, table: object, place: str) -> Variable:
        """The variable that ``{ kind = ..., role = ... }`` of a recipe describes. Raises BadInput."""
        if not isinstance(table, Mapping):
            raise BadInput(place, 'must be a table such as { kind = "count", role = "quasi_identifier" }')
        allowed = ("kind", "role", "bounds", "levels", "labels", "missing", "title", "design", "may_be_missing")
        for key in table:
            if key not in allowed:
                raise BadInput(f"{place}.{key}", f"unknown key{suggestion(key, allowed)}; known: {', '.join(allowed)}")
        if "kind" not in table:
            raise BadInput(place, f"needs a kind: one of {', '.join(Kind)}")
        kind = _one_of(Kind, table["kind"], f"{place}.kind")
        role = _one_of(Role, table.get("role", Role.OTHER), f"{place}.role")
        return cls(
            name,
            kind,
            role,
            _bounds(table.get("bounds"), kind, f"{place}.bounds"),
            _levels(table.get("levels", ()), kind, f"{place}.levels"),
            _labels(table.get("labels", {}), f"{place}.labels"),
            _missing(table.get("missing", ()), f"{place}.missing"),
            str(table.get("title", "")),
            _one_of(DesignPart, table["design"], f"{place}.design") if "design" in table else None,
            _flag(table.get("may_be_missing", False), f"{place}.may_be_missing"),
        )

    def to_table(self) -> dict[str, Any]:
        """The recipe table that ``from_table`` reads back to an equal variable."""
        table: dict[str, Any] = {"kind": self.kind.value, "role": self.role.value}
        if self.bounds is not None:
            low, high = self.bounds
            table["bounds"] = [_plain(low) if low is not None else "", _plain(high) if high is not None else ""]
        if self.levels:
            table["levels"] = list(self.levels)
        if self.labels:
            table["labels"] = dict(self.labels)
        if self.missing:
            table["missing"] = list(self.missing)
        if self.title:
            table["title"] = self.title
        if self.design is not None:
            table["design"] = self.design.value
        if self.may_be_missing:
            table["may_be_missing"] = True
        return table


def _plain(number: float) -> int | float:
    return int(number) if float(number).is_integer() else float(number)


def _one_of(enum: type[Word], word: object, place: str) -> Word:
    try:
        return enum(str(word))
    except ValueError:
        raise BadInput(place, f'"{word}" is none of {", ".join(enum)}{suggestion(str(word), list(enum))}') from None


def _list(value: object, place: str) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    raise BadInput(place, "must be a list")


def _levels(value: object, kind: Kind, place: str) -> tuple[str, ...]:
    levels = tuple(_level(item) for item in _list(value, place))
    if levels and not kind.has_levels:
        raise BadInput(place, f"only categorical, ordinal and binary variables have levels, this one is {kind}")
    for level in levels:
        if levels.count(level) > 1:
            raise BadInput(place, f'"{level}" is listed {levels.count(level)} times')
    if kind is Kind.BINARY and len(levels) > 2:
        raise BadInput(place, f'a binary variable has 2 levels, not {len(levels)}; use kind = "categorical"')
    return levels


def _level(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _missing(value: object, place: str) -> tuple[str | float, ...]:
    codes = _list(value, place)
    for code in codes:
        if isinstance(code, bool) or not isinstance(code, (str, int, float)) or code != code:  # noqa: PLR0124
            raise BadInput(
                place, f"{code!r} is neither text nor a number; empty cells are missing without being listed"
            )
    return tuple(codes)


def _flag(value: object, place: str) -> bool:
    if not isinstance(value, bool):
        raise BadInput(place, f"{value!r} must be true or false")
    return value


def _labels(value: object, place: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise BadInput(place, 'must be a table such as { "1" = "yes", "2" = "no" }')
    return {str(code): str(label) for code, label in value.items()}


def _bounds(value: object, kind: Kind, place: str) -> tuple[float | None, float | None] | None:
    if value is None:
        return None
    if kind not in (Kind.COUNT, Kind.CONTINUOUS):
        raise BadInput(place, f"only count and continuous variables have bounds, this one is {kind}")
    ends = _list(value, place)
    if len(ends) != 2:
        raise BadInput(place, "must be two numbers, [smallest, largest]; an empty string leaves an end open")
    for end in ends:
        if end != "" and (isinstance(end, bool) or not isinstance(end, (int, float)) or not math.isfinite(end)):
            raise BadInput(place, f"{end!r} is not a number; an empty string leaves an end open")
    low, high = (None if end == "" else float(end) for end in ends)
    if low is not None and high is not None and low > high:
        raise BadInput(place, f"the smallest value allowed, {low:g}, is above the largest, {high:g}")
    if kind is Kind.COUNT and low is not None and low < 0:
        raise BadInput(place, f"a count cannot be {low:g}; start at 0")
    return low, high


@dataclass(frozen=True, slots=True)
class Schema:
    """The variables of a table, in order, found by name, and the ``constraints`` that a recipe says its records keep to.

    Tables of the same variables have equal schemas, whatever is said of their records.
    """

    variables: tuple[Variable, ...]
    constraints: tuple[Constraint, ...] = field(default=(), compare=False)

    def __getitem__(self, name: str) -> Variable:
        for variable in self.variables:
            if variable.name == name:
                return variable
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(variable.name == name for variable in self.variables)

    def __iter__(self) -> Iterator[Variable]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(variable.name for variable in self.variables)

    def only(self, names: Collection[str]) -> Schema:
        """The variables of these names, in the order that they have here, without the constraints."""
        return Schema(tuple(variable for variable in self.variables if variable.name in names))

    def of_role(self, role: Role) -> tuple[str, ...]:
        """Names of the variables that play this role."""
        return tuple(variable.name for variable in self.variables if variable.role is role)

    def require(self, name: str, place: str) -> Variable:
        """The variable called ``name``; BadInput at ``place`` names the near miss."""
        if name not in self:
            raise BadInput(
                place, f'no column "{name}"{suggestion(name, self.names) or "; columns: " + ", ".join(self.names)}'
            )
        return self[name]


def compared_variables(schema: Schema, released: Collection[str], kinds: Collection[Kind]) -> tuple[str, ...]:
    """The released variables of these kinds; where none is said to be released, the sensitive ones.

    Where there are no sensitive ones either, all but the identifiers. Never the survey weight, which is no answer of anybody.
    Empty when nothing is of these kinds.
    """
    suitable = [v for v in schema if v.kind in kinds and v.role not in (Role.IDENTIFIER, Role.WEIGHT)]
    if released:
        return tuple(v.name for v in suitable if v.name in released)
    sensitive = tuple(v.name for v in suitable if v.role is Role.SENSITIVE)
    return sensitive or tuple(v.name for v in suitable)


def range_of_values(variable: Variable) -> Range:
    """The smallest and largest value that it can have, and so its mean and its quantiles; a binary variable is 0 or 1."""
    return SHARE if variable.kind is Kind.BINARY else (variable.lower, variable.upper)
