"""What anonymisation by cutting the space of the quasi-identifiers shares: parameters, checks and output."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import BadInput
from ..microdata import Microdata
from ..partition.partitioning import mondrian_classes
from ..partition.sensitive_values import Limits, Sensitive
from ..schema import Role, Schema, Variable
from ..spec import Param
from ._base import AnonymisationSpec, Anonymised, Hierarchies, QuasiIdentifiers, as_generalised, as_micro_aggregated
from ._output import (
    anonymised_table,
    check_hierarchies,
    class_intervals,
    class_values,
    dimension_of,
    notes_of,
    require_complete,
    require_records,
)

__all__ = ["PartitionSpec", "check_partition", "partitioned"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PartitionSpec(AnonymisationSpec):
    """Class size, quasi-identifiers, cuts and output."""

    quasi_identifiers: QuasiIdentifiers = ()
    k: Annotated[int, Param("fewest records in a class", ge=2)] = 5
    cuts: Annotated[
        Literal["strict", "relaxed"], Param("keep records of equal value together, or part them to halve a class")
    ] = "strict"
    output: Annotated[
        Literal["micro_aggregated", "generalised"],
        Param("what a class shows: means, medians and modes, or intervals and tree nodes"),
    ] = "micro_aggregated"
    hierarchies: Hierarchies = field(default_factory=dict)
    max_suppressed: Annotated[
        float, Param("share of the records that may be left out where that lets a strict class be cut", ge=0, lt=1)
    ] = 0.0
    sensitive: Annotated[
        tuple[str, ...],
        Param("variables that must vary inside a class; those of role sensitive if empty", names="variables"),
    ] = ()

    @property
    def limits(self) -> Limits:
        """Classes of k records."""
        return Limits(k=self.k)

    @property
    def constrains(self) -> bool:
        """Whether anything is asked of the sensitive variables."""
        return self.limits.on_values

    def generalised(self, schema: Schema) -> frozenset[str]:
        """The quasi-identifiers, if intervals and nodes are the output."""
        return frozenset(self.keys(schema) if self.output == "generalised" else ())

    def released_variable(self, variable: Variable) -> Variable:
        """Labels, or numbers that need not be whole."""
        return as_generalised(variable) if self.output == "generalised" else as_micro_aggregated(variable)

    def constrained(self, schema: Schema) -> tuple[str, ...]:
        """The sensitive variables that limit the cuts."""
        return (self.sensitive or schema.of_role(Role.SENSITIVE)) if self.constrains else ()

    def check(self, schema: Schema, place: str) -> None:
        """BadInput where quasi-identifiers and sensitive variables do not fit the schema or each other."""
        AnonymisationSpec.check(self, schema, place)
        self.check_keys(schema, place)
        where = f"{place}.sensitive"
        if self.constrains and not self.constrained(schema):
            raise BadInput(where, 'no variable is sensitive; name some, or give variables the role "sensitive"')
        for name in self.sensitive or self.constrained(schema):
            if name in self.keys(schema):
                raise BadInput(where, f'"{name}" is a quasi-identifier too; leave it out of one')
        if self.max_suppressed and self.cuts == "relaxed":
            raise BadInput(f"{place}.max_suppressed", "relaxed cuts never need suppression; leave it out")


def check_partition(data: Microdata, spec: PartitionSpec, place: str) -> None:
    """BadInput when there are fewer than k records, values are missing, or a tree lacks a value of the data."""
    require_records(data, spec.k, place)
    require_complete(data, spec.keys(data.schema), place)
    check_hierarchies(data, spec.hierarchies, spec.keys(data.schema), place)


def partitioned(data: Microdata, spec: PartitionSpec) -> Anonymised:
    """The table in classes that keep to the limits, as the released table measures them, with what each shows."""
    dimensions = [dimension_of(data, name, spec.hierarchies.get(name)) for name in spec.keys(data.schema)]
    sensitive = [Sensitive.of(data, name) for name in spec.constrained(data.schema)]
    most = int(spec.max_suppressed * len(data))
    rule = spec.limits.rule(sensitive) if sensitive else None
    classes = mondrian_classes(dimensions, spec.k, relaxed=spec.cuts == "relaxed", rule=rule, most_suppressed=most)
    return anonymised_table(data, spec, classes, _shown(data, spec, classes), notes_of(classes, spec.k, most))


def _shown(data: Microdata, spec: PartitionSpec, classes: NDArray[np.int64]) -> dict[str, pd.Series]:
    kept = Microdata(data.schema, data.frame[classes >= 0], data.origin)
    own = classes[classes >= 0]
    if spec.output == "micro_aggregated":
        return {name: class_values(kept, name, own) for name in spec.keys(data.schema)}
    trees = spec.hierarchies
    return {name: class_intervals(kept, name, own, trees.get(name)) for name in spec.keys(data.schema)}
