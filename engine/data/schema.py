"""Schema of a table: the kind, role, bounds, levels and labels of each variable."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from ..errors import BadInput, near_miss_hint
from ..wording import unit_noun
from .conditions import RecordConstraint
from .date_forms import DateForm, is_program_format
from .declaration import Param, Section, declared_params, field_texts, join_place
from .intervals import SHARE, Range

EPOCH = dt.date(1970, 1, 1)
Origin = Literal["confidential", "synthetic", "anonymised"]
"""What a table is."""
SURVEY_SETTING = "survey"
"""The parameter of a row that says by which survey design it was weighted."""


class Kind(StrEnum):
    """Measurement scale of a variable.

    Categorical, ordinal and binary variables are matched and modelled by their levels.
    """

    CATEGORICAL = "categorical"
    ORDINAL = "ordinal"
    BINARY = "binary"
    COUNT = "count"
    CONTINUOUS = "continuous"
    DATE = "date"

    @property
    def has_levels(self) -> bool:
        """Return whether values are levels rather than numbers or dates."""
        return self in (Kind.CATEGORICAL, Kind.ORDINAL, Kind.BINARY)


class Role(StrEnum):
    """Role of a variable in the release: quasi-identifier, sensitive, identifier, number of a unit, survey weight, or none
    of these.

    A unit is who is protected where several records describe one: a household, a patient, a person over waves.
    """

    QUASI_IDENTIFIER = "quasi_identifier"
    SENSITIVE = "sensitive"
    IDENTIFIER = "identifier"
    UNIT = "unit"
    WEIGHT = "weight"
    OTHER = "other"

    @property
    def is_identifier(self) -> bool:
        """Return whether values name a record or its unit, so that they are never released unchanged."""
        return self in (Role.IDENTIFIER, Role.UNIT)

    @classmethod
    def _missing_(cls, value: object) -> Role | None:
        """Return the quasi-identifier for "known", the word of earlier recipes."""
        return cls.QUASI_IDENTIFIER if value == "known" else None


class DesignPart(StrEnum):
    """Part of a survey design that a variable describes, whatever its role (``sfumato.engine.design.survey``)."""

    STRATA = "strata"
    CLUSTERS = "clusters"
    POPULATION = "population"


class MissingPolicy(StrEnum):
    """Treatment of missing values, for every method.

    ``refuse``: the file must have none. ``drop``: records with one are removed. ``keep``: missing is a value of its
    own, which is synthesised, equals itself and nothing else in matching, and distinguishes records in the measures of
    utility. Statistics of a single variable use the values present and report how many are missing; methods that need a
    number of every record refuse the variable.
    """

    REFUSE = "refuse"
    DROP = "drop"
    KEEP = "keep"


class DayBound(float):
    """Bound of a date, in days since 1970."""

    __slots__ = ()

    @classmethod
    def from_date(cls, day: dt.date) -> DayBound:
        """Create the bound at a day."""
        return cls((day - EPOCH).days)


def _parse_bound(value: object) -> float | None:
    """Return the bound as a number, of a date in days since 1970; None for an empty string. Raises ValueError."""
    if value == "":
        return None
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return DayBound.from_date(value)
    if isinstance(value, str):
        try:
            return DayBound.from_date(dt.date.fromisoformat(value))
        except ValueError:
            pass
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a number; an empty string leaves an end open")
    return float(value)


def _parse_level(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _parse_missing_code(value: object) -> str | float:
    """Return a code that is a text or a number. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value != value:  # noqa: PLR0124
        raise ValueError(f"{value!r} is neither text nor a number; empty cells are missing without being listed")
    return value


@dataclass(frozen=True, slots=True)
class Variable(Section):
    """Declaration of one column.

    name: name of the column
    kind: its measurement scale
    role: its role for an intruder
    bounds: smallest and largest value allowed, both inclusive; of dates the first and the last day, since 1970
    levels: levels, in the order of an ordinal variable
    labels: meanings of codes
    missing: codes that stand for a missing value
    title: short description
    design: part of a survey design that it describes
    may_be_missing: whether a value may be missing, even if none is in these data
    level: "unit" where all records of a unit have the same value; empty otherwise
    runs_of: of a variable that numbers units and is no column of the file, the columns that stay the same while the file's
        records of one unit follow each other; empty for columns
    format: form in which the file writes its dates (``date_forms``), and a released text file too; empty for ISO 8601.
        Or the format in which SPSS, Stata or SAS shows dates, times or months, which a release for these programs keeps
    """

    unwritten: ClassVar[tuple[str, ...]] = ("name",)
    example: ClassVar[str] = '{ kind = "count", role = "quasi_identifier" }'

    name: str
    kind: Annotated[Kind, Param("the scale that it is measured on")]
    role: Annotated[
        Role,
        Param(
            "known to an intruder, sensitive, an identifier, the number of the unit (household, patient) of a record, the "
            "survey weight, or none of these",
            always_written=True,
        ),
    ] = Role.OTHER
    bounds: Annotated[
        tuple[float | None, float | None] | None,
        Param("smallest and largest value or day allowed; an empty string leaves an end open", parse=_parse_bound),
    ] = None
    levels: Annotated[
        tuple[str, ...],
        Param(
            "the levels in their order: low, middle, high; left out, those that are found",
            parse=_parse_level,
            unique=True,
        ),
    ] = ()
    labels: Annotated[Mapping[str, str], Param("what codes mean, such as 1 = yes, 2 = no", parse=str)] = field(
        default_factory=dict
    )
    missing: Annotated[
        tuple[str | float, ...],
        Param("codes that stand for a missing value, such as -9, unknown", parse=_parse_missing_code),
    ] = ()
    title: Annotated[str, Param("what the variable is, in a few words", parse=str)] = ""
    design: Annotated[
        DesignPart | None,
        Param(
            "of a survey with weights: strata, clusters, or population, the clusters of its stratum in the population"
        ),
    ] = None
    may_be_missing: Annotated[
        bool, Param("whether a value may be missing, in these data or not; a privacy account asks for it")
    ] = False
    level: Annotated[
        Literal["", "unit"],
        Param('"unit" where all records of a unit have the same value, such as the region of a household'),
    ] = ""
    runs_of: Annotated[
        tuple[str, ...],
        Param(
            "of a unit that the file does not number: the columns that stay the same while its records follow each other in the file",
            unique=True,
        ),
    ] = ()
    format: Annotated[
        str,
        Param(
            "how its dates are written, if not 2019-07-31: dd.mm.yyyy; or a format of SPSS, Stata, SAS: TIME8, %tm, DATE9.",
            parse=str,
        ),
    ] = ""

    @property
    def lower(self) -> float | None:
        """Return the smallest value allowed, if any; 0 for counts by default."""
        if self.bounds is None or self.bounds[0] is None:
            return 0.0 if self.kind is Kind.COUNT else None
        return self.bounds[0]

    @property
    def upper(self) -> float | None:
        """Return the largest value allowed, if any."""
        return None if self.bounds is None else self.bounds[1]

    @classmethod
    def from_table(cls, name: str, table: object, place: str) -> Variable:
        """Create the variable that ``{ kind = ..., role = ... }`` of a recipe describes. Raises BadInput."""
        return cls.read_section(table, place, name=name)

    def check_fields(self, place: str) -> None:
        """Raise BadInput where levels or bounds do not suit the kind."""
        self.check_repeats(place)
        if self.runs_of and self.role is not Role.UNIT:
            raise BadInput(
                f"{place}.runs_of", f'runs of records number units, this is the role {self.role}; write role = "unit"'
            )
        if self.level and self.role.is_identifier:
            raise BadInput(f"{place}.level", f"this is the role {self.role}; a level is of other variables")
        if self.bounds is not None:
            _check_bounds(self.bounds, self.kind, f"{place}.bounds")
        if self.levels and not self.kind.has_levels:
            raise BadInput(
                f"{place}.levels",
                f"only categorical, ordinal and binary variables have levels, this one is {self.kind}",
            )
        if self.kind is Kind.BINARY and len(self.levels) > 2:
            raise BadInput(
                f"{place}.levels",
                f'a binary variable has 2 levels, not {len(self.levels)}; use kind = "categorical"',
            )
        if self.format:
            _check_format(self.format, self.kind, f"{place}.format")

    @property
    def date_form(self) -> DateForm | None:
        """Return the form in which its dates are written; None for ISO 8601 and for other variables."""
        if not self.format or self.kind is not Kind.DATE or is_program_format(self.format):
            return None
        return DateForm.parse(self.format)

    def _bound_as_written(self, end: float) -> str | float:
        """Return a bound as the recipe writes it."""
        return format_day(end) if self.kind is Kind.DATE else _whole_as_integer(end)

    def format_bound(self, end: float) -> str:
        """Return a bound as text: 120, 2019-07-31."""
        return format_day(end) if self.kind is Kind.DATE else f"{end:g}"

    def to_table(self) -> dict[str, Any]:
        """Return the recipe's table, which ``from_table`` reads back to an equal variable."""
        table = Section.to_table(self)
        if self.bounds is not None:
            table["bounds"] = ["" if end is None else self._bound_as_written(end) for end in self.bounds]
        return table


def format_day(days: float) -> str:
    """Return the date of a number of days since 1970, as 2019-07-31."""
    return (EPOCH + dt.timedelta(days=math.floor(days))).isoformat()


def _whole_as_integer(number: float) -> int | float:
    return int(number) if float(number).is_integer() else float(number)


def _check_bounds(bounds: tuple[float | None, float | None], kind: Kind, place: str) -> None:
    """Raise BadInput where bounds do not suit the kind, or each other."""
    if kind not in (Kind.COUNT, Kind.CONTINUOUS, Kind.DATE):
        raise BadInput(place, f"only counts, continuous variables and dates have bounds, this one is {kind}")
    days = [isinstance(end, DayBound) for end in bounds if end is not None]
    if kind is Kind.DATE and not all(days):
        raise BadInput(place, 'bounds of dates are written ["1900-01-01", "2019-07-31"]')
    if kind is not Kind.DATE and any(days):
        raise BadInput(place, f"a date is no bound of a variable that is {kind}; write numbers")
    if len(bounds) != 2:  # a list of another length is read as it stands
        raise BadInput(place, "must be two numbers, [smallest, largest]; an empty string leaves an end open")
    low, high = bounds
    if low is not None and high is not None and low > high:
        ends = (format_day(low), format_day(high)) if kind is Kind.DATE else (f"{low:g}", f"{high:g}")
        raise BadInput(place, f"the smallest value allowed, {ends[0]}, is above the largest, {ends[1]}")
    if kind is Kind.COUNT and low is not None and low < 0:
        raise BadInput(place, f"a count cannot be {low:g}; start at 0")


def _check_format(text: str, kind: Kind, place: str) -> None:
    """Raise BadInput where a format is no form of a date, or the variable is no date."""
    if is_program_format(text):
        return
    if kind is not Kind.DATE:
        raise BadInput(place, f"only dates have one, this variable is {kind}; leave it out")
    try:
        DateForm.parse(text)
    except ValueError as error:
        raise BadInput(place, str(error)) from None


class UnitDeclaration(NamedTuple):
    """What a recipe says of units of several records: the variable that numbers them, their order and their bound."""

    number: str | None
    order: str
    largest: int | None


@dataclass(frozen=True, slots=True)
class Schema:
    """Variables of a table, in order, found by name.

    variables: the variables
    constraints: rules that the records satisfy by the recipe; schemas that differ in these alone are equal
    order: the variable by which the records of a unit are ordered; empty for their order in the file. Schemas that
        differ in it alone are equal
    largest_unit: most records of a unit that a step with a privacy account counts; None where nothing bounds them.
        Schemas that differ in it alone are equal
    place: the variable that says which of its unit's records a row is, where a step with a privacy account counts a unit
        at most once at each; empty elsewhere
    """

    variables: tuple[Variable, ...]
    constraints: tuple[RecordConstraint, ...] = field(default=(), compare=False)
    order: str = field(default="", compare=False)
    largest_unit: int | None = field(default=None, compare=False)
    place: str = field(default="", compare=False)

    def __getitem__(self, name: str) -> Variable:
        """Return the variable of this name. Raises KeyError."""
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

    @property
    def non_identifiers(self) -> tuple[str, ...]:
        """Return the names of all variables except identifiers and the number of the unit."""
        return tuple(variable.name for variable in self.variables if not variable.role.is_identifier)

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Return the names of the identifiers, with that of the number of the unit."""
        return tuple(variable.name for variable in self.variables if variable.role.is_identifier)

    @property
    def unit(self) -> str | None:
        """Return the name of the variable that numbers the units; None where every record is a unit."""
        return next(iter(self.names_by_role(Role.UNIT)), None)

    @property
    def unit_noun(self) -> str:
        """Return what the units are, in the plural, by the title or the name of the variable that numbers them."""
        return "" if self.unit is None else unit_noun(self[self.unit].title or self.unit)

    @property
    def unit_declaration(self) -> UnitDeclaration:
        """Return what is declared of units."""
        return UnitDeclaration(self.unit, self.order, self.largest_unit)

    @property
    def unit_records(self) -> int:
        """Return the most records of a unit that a step with a privacy account counts; 1 where nothing is said of them."""
        return self.largest_unit or 1

    @property
    def unit_level(self) -> tuple[str, ...]:
        """Return the names of the variables that are equal in all records of a unit."""
        return tuple(variable.name for variable in self.variables if variable.level == "unit")

    def select_variables(self, names: Collection[str]) -> Schema:
        """Return the schema of the variables with these names, in the order of this one, without the constraints."""
        return Schema(
            tuple(variable for variable in self.variables if variable.name in names),
            order=self.order if self.order in names else "",
            largest_unit=self.largest_unit,
            place=self.place if self.place in names else "",
        )

    def names_by_role(self, role: Role) -> tuple[str, ...]:
        """Return the names of the variables of this role."""
        return tuple(variable.name for variable in self.variables if variable.role is role)

    def require_variable(self, name: str, place: str) -> Variable:
        """Return the variable of this name. Raises BadInput at ``place``, which suggests a similar name."""
        if name not in self:
            raise BadInput(
                place, f'no column "{name}"{near_miss_hint(name, self.names) or "; columns: " + ", ".join(self.names)}'
            )
        return self[name]


def check_units(schema: Schema) -> None:
    """Raise BadInput where several variables number units, or variables of units are declared without one that does."""
    numbers = schema.names_by_role(Role.UNIT)
    if len(numbers) > 1:
        raise BadInput(
            f"variables.{numbers[1]}.role",
            f'"{numbers[0]}" is the unit already; a table has one unit, so give this variable another role',
        )
    if numbers and schema[numbers[0]].kind not in (Kind.CATEGORICAL, Kind.COUNT):
        raise BadInput(f"variables.{numbers[0]}.kind", 'a variable that numbers units is "categorical" or a "count"')
    for name in schema.unit_level if not numbers else ():
        raise BadInput(
            f"variables.{name}.level",
            'no variable has the role "unit"; give it to the one that numbers the units, or leave this out',
        )


def check_variable_names(section: Section, schema: Schema, place: str) -> None:
    """Raise BadInput where a field names a variable that the schema lacks, or one of a wrong kind."""
    for info in declared_params(type(section)):
        if info.param.names != "variables":
            continue
        for where, text in field_texts(getattr(section, info.name), join_place(place, info.name)):
            kind = schema.require_variable(text, where).kind
            if info.param.kinds and kind not in info.param.kinds:
                raise BadInput(where, f'"{text}" is {kind}; this needs {" or ".join(info.param.kinds)}')


def compared_variables(schema: Schema, released: Collection[str], kinds: Collection[Kind]) -> tuple[str, ...]:
    """Return the released variables of these kinds, or by default the sensitive ones.

    These are replaced by all variables of the kinds except identifiers where there are no sensitive ones. The result is
    empty where no variable is of these kinds.
    """
    # Never the survey weight, which is not an answer of a person.
    suitable = [v for v in schema if v.kind in kinds and not v.role.is_identifier and v.role is not Role.WEIGHT]
    if released:
        return tuple(v.name for v in suitable if v.name in released)
    sensitive = tuple(v.name for v in suitable if v.role is Role.SENSITIVE)
    return sensitive or tuple(v.name for v in suitable)


def value_range(variable: Variable) -> Range:
    """Return the range of a variable's values, and so of its mean and quantiles; a binary variable is 0 or 1."""
    return SHARE if variable.kind is Kind.BINARY else (variable.lower, variable.upper)
