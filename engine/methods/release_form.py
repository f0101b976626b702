"""What becomes of variables and records in a release: by anonymisation, or as ``[release]`` says of a table made elsewhere.

    [release]
    title = "Visits to doctors, 2020"     # what the public files call the data
    order = "original"                    # rows stay in the order of the confidential records
    records = 1000                        # of each dataset, where one step makes every variable
    epsilon = 10.0                        # the most that a run may cost
    redraws = 50                          # how often a record that breaks a constraint is drawn anew
    unmet = "fail"                        # what becomes of the run where some still do; "keep" leaves them in
    link = "person"                       # an identifier that says whose row a released one is
    generalised = ["age", "postcode"]     # values are labels: intervals, groups of categories, nodes of a tree, *
    micro_aggregated = ["smokes"]         # values are class means: numbers, not counts or levels

The last three are for tables that another tool made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..data.schema import Kind, Role, Schema, Variable
from ..data.toml import whole_number
from ..errors import BadInput
from ..partition.equivalence_classes import Limits
from ..partition.hierarchies import Hierarchy
from .results import Diagnostic
from .spec import Param, Spec

if TYPE_CHECKING:
    from ..data.microdata import Microdata


@dataclass(frozen=True, eq=False)
class Anonymised:
    """An anonymised table of what is left of n records, and where each of them went.

    ``data`` has the records that were not suppressed, in their order. ``classes`` (n,): the equivalence class of each
    record, from 0, and -1 where it was suppressed. ``notes`` say how it went.
    """

    data: Microdata
    classes: NDArray[np.int64]
    notes: tuple[Diagnostic, ...] = ()

    @property
    def suppressed(self) -> NDArray[np.bool_]:
        """Which of the n records were left out."""
        return self.classes < 0


Hierarchies = Annotated[
    Mapping[str, Hierarchy],
    Param(
        "generalisation trees by variable: rows of a value and its nodes up to the root; flat without one",
        names="variables",
        kinds=(Kind.CATEGORICAL, Kind.ORDINAL, Kind.BINARY),
    ),
]


class AnonymisationSpec(Spec):
    """Base of the parameters of anonymisation methods: every one has ``quasi_identifiers``."""

    __slots__ = ()

    quasi_identifiers: tuple[str, ...]

    def keys(self, schema: Schema) -> tuple[str, ...]:
        """The quasi-identifiers: those that are named, else the variables of role known."""
        return self.quasi_identifiers or schema.of_role(Role.QUASI_IDENTIFIER)

    def released_variable(self, variable: Variable) -> Variable:
        """What a quasi-identifier is in the anonymised table."""
        return variable

    def changed(self, schema: Schema) -> tuple[str, ...]:
        """The variables whose values the release changes."""
        return self.keys(schema)

    def generalised(self, schema: Schema) -> frozenset[str]:
        """The variables whose values become labels of intervals or of tree nodes."""
        return frozenset()

    def released_schema(self, schema: Schema) -> Schema:
        """The schema of the anonymised table."""
        keys = self.changed(schema)
        return Schema(tuple(self.released_variable(v) if v.name in keys else v for v in schema))

    @property
    def limits(self) -> Limits:
        """What every equivalence class of the released table must have; nothing by default."""
        return Limits()

    def constrained(self, schema: Schema) -> tuple[str, ...]:
        """The sensitive variables that the limits are about."""
        return ()

    def check_keys(self, schema: Schema, place: str) -> None:
        """BadInput when there is no quasi-identifier."""
        if not self.keys(schema):
            raise BadInput(
                f"{place}.quasi_identifiers",
                'no variable is a quasi-identifier; name some, or give variables the role "quasi_identifier"',
            )


def as_generalised(variable: Variable) -> Variable:
    """The variable whose values are labels: categorical, with levels that only the data have."""
    return Variable(variable.name, Kind.CATEGORICAL, variable.role, title=variable.title)


def as_micro_aggregated(variable: Variable) -> Variable:
    """The variable whose values are class means, medians or modes: a mean of counts is no count.

    A binary variable is 0 and 1, its mean the share of the second level, "interpreted probabilistically" (Measuring Data
    Quality for Project Lighthouse §3.1).
    """
    if variable.kind is Kind.COUNT:
        return replace(variable, kind=Kind.CONTINUOUS, bounds=(variable.lower, variable.upper), missing=())
    if variable.kind is Kind.BINARY:
        return Variable(variable.name, Kind.CONTINUOUS, variable.role, (0.0, 1.0), title=variable.title)
    return variable


MOST_RECORDS = 100_000_000
REDRAWS, MOST_REDRAWS = 50, 10_000
Order = Literal["original", "shuffled"]
Unmet = Literal["fail", "keep"]
KEYS = ("title", "order", "records", "epsilon", "link", "generalised", "micro_aggregated", "redraws", "unmet")


@dataclass(frozen=True, slots=True)
class ReleaseForm:
    """``order`` of the rows; ``link``, the identifier that pairs records, empty without one; what the values are.

    ``records`` is how many a dataset has, None for as many as the confidential data; ``epsilon`` the most that a run may cost.
    ``title`` is what the public files call the data; the recipe's own title stays inside. ``redraws`` and ``unmet`` are of constraints (``sfumato.engine.constraints.rejection_sampling``).
    """

    order: Order = "shuffled"
    link: str = ""
    generalised: tuple[str, ...] = ()
    micro_aggregated: tuple[str, ...] = ()
    records: int | None = None
    epsilon: float | None = None
    title: str = ""
    redraws: int = REDRAWS
    unmet: Unmet = "fail"

    @classmethod
    def from_table(cls, release: Mapping[str, Any], schema: Schema, *, made: bool) -> ReleaseForm:
        """The form that ``[release]`` asks for. Raises BadInput.

        A release that the recipe itself has ``made`` is shuffled unless it says otherwise, and its steps say what becomes
        of values; one that is only scored has the original's order.
        """
        default: Order = "shuffled" if made else "original"
        order = release.get("order", default)
        if order not in get_args(Order):
            raise BadInput("release.order", f'"{order}" is none of {", ".join(get_args(Order))}')
        labels, means = (_variables(release, key, schema) for key in ("generalised", "micro_aggregated"))
        for key, names in (("generalised", labels), ("micro_aggregated", means)):
            if names and made:
                raise BadInput(f"release.{key}", "the recipe's steps say what becomes of values; leave it out")
        for i, name in enumerate(means):
            if name in labels:
                raise BadInput(f"release.micro_aggregated[{i}]", f'"{name}" is generalised too; leave it out of one')
        title = release.get("title", "")
        if not isinstance(title, str):
            raise BadInput("release.title", f"{title!r} must be text")
        link, records, epsilon = _link(release, schema), _records(release, schema), _epsilon(release)
        if (unmet := release.get("unmet", "fail")) not in get_args(Unmet):
            raise BadInput("release.unmet", f'"{unmet}" is none of {", ".join(get_args(Unmet))}')
        redraws = whole_number(release, "redraws", "release", REDRAWS, 0)
        if redraws > MOST_REDRAWS:
            raise BadInput("release.redraws", f"{redraws:,} must be at most {MOST_REDRAWS:,}")
        return cls(order, link, labels, means, records, epsilon, title, redraws, unmet)

    def to_table(self, *, made: bool) -> dict[str, Any]:
        """The keys of ``[release]`` that are not at their default."""
        table: dict[str, Any] = {} if self.order == ("shuffled" if made else "original") else {"order": self.order}
        lists = {"generalised": list(self.generalised), "micro_aggregated": list(self.micro_aggregated)}
        given = {"title": self.title, "records": self.records, "epsilon": self.epsilon, "link": self.link, **lists}
        table |= {key: value for key, value in given.items() if value}
        own = {"redraws": (self.redraws, REDRAWS), "unmet": (self.unmet, "fail")}
        return {**table, **{key: value for key, (value, default) in own.items() if value != default}}

    @property
    def changed(self) -> tuple[str, ...]:
        """The variables that it says are labels or class means."""
        return (*self.generalised, *self.micro_aggregated)

    def released_schema(self, schema: Schema) -> Schema:
        """The schema of tables of this form."""
        changes = {name: as_generalised(schema[name]) for name in self.generalised}
        changes |= {name: as_micro_aggregated(schema[name]) for name in self.micro_aggregated}
        return Schema(tuple(changes.get(variable.name, variable) for variable in schema))


def _variables(release: Mapping[str, Any], key: str, schema: Schema) -> tuple[str, ...]:
    names: Sequence[Any] = release.get(key, [])
    if not isinstance(names, list):
        raise BadInput(f"release.{key}", 'must be a list of columns, such as ["age"]')
    for i, name in enumerate(names):
        schema.require(str(name), f"release.{key}[{i}]")
        if name in names[:i]:
            raise BadInput(f"release.{key}[{i}]", f'"{name}" is listed twice')
    return tuple(map(str, names))


def _epsilon(release: Mapping[str, Any]) -> float | None:
    epsilon = release.get("epsilon")
    if epsilon is None:
        return None
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 < epsilon < math.inf:
        raise BadInput("release.epsilon", f"{epsilon!r} must be a number above 0")
    return float(epsilon)


def _records(release: Mapping[str, Any], schema: Schema) -> int | None:
    records = release.get("records")
    if records is None:
        return None
    if not isinstance(records, int) or isinstance(records, bool) or not 1 <= records <= MOST_RECORDS:
        raise BadInput(
            "release.records", f"{records!r} must be a whole number, at least 1 and at most {MOST_RECORDS:,}"
        )
    for name in schema.of_role(Role.IDENTIFIER):
        raise BadInput(f"variables.{name}.role", "records that are made anew have no identifier; leave the column out")
    return records


def _link(release: Mapping[str, Any], schema: Schema) -> str:
    name = str(release.get("link", ""))
    if name and schema.require(name, "release.link").role is not Role.IDENTIFIER:
        raise BadInput("release.link", f'"{name}" links records, so it must have the role "identifier"')
    return name
