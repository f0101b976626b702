"""What anonymisation methods share: their result, and how parameters say which variables the release changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray

from ..errors import BadInput
from ..partition.hierarchies import Hierarchy
from ..partition.sensitive_values import Limits
from ..results import Diagnostic
from ..schema import Kind, Role, Schema, Variable
from ..spec import Param, Spec

if TYPE_CHECKING:
    from ..microdata import Microdata

__all__ = [
    "AnonymisationSpec",
    "Anonymised",
    "Hierarchies",
    "QuasiIdentifiers",
    "as_generalised",
    "as_micro_aggregated",
]


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


QuasiIdentifiers = Annotated[
    tuple[str, ...],
    Param("variables that may tell who a record is; those of role known if empty", names="variables"),
]
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
        return self.quasi_identifiers or schema.of_role(Role.KNOWN)

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
        """BadInput when there is no quasi-identifier, or one is named twice."""
        keys = self.keys(schema)
        where = f"{place}.quasi_identifiers"
        if not keys:
            raise BadInput(where, 'no variable is a quasi-identifier; name some, or give variables the role "known"')
        for i, name in enumerate(keys):
            if name in keys[:i]:
                raise BadInput(f"{where}[{i}]", f'"{name}" is listed twice')


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
