"""Global recoding to the best levels: of all levels that keep to the limits those that lose least, found exactly.

Samarati & Sweeney (1998); Sweeney (2002); the search is ``sfumato.engine.partition.lattice``. Records of classes that break the limits are
suppressed. Every quasi-identifier becomes a label, at level 0 the value itself, since the recipe alone does not say its level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from ..data.microdata import Microdata
from ..data.schema import Role, Schema, Variable
from ..errors import BadInput
from ..methods.intruder import QuasiIdentifiers
from ..methods.registry import anonymisation_method
from ..methods.release_form import AnonymisationSpec, Anonymised, Hierarchies, as_generalised
from ..methods.results import Diagnostic
from ..methods.run import Progress, Run
from ..methods.spec import Param
from ..partition.equivalence_classes import Limits, Sensitive
from ..partition.lattice import MOST_NODES, Ladder, Objective, best_levels, classes_at
from ._partition import (
    DiversityKind,
    LeastDiversity,
    MostDistance,
    RecursiveBound,
    VaryingVariables,
    anonymised_table,
    check_diverse,
    check_diversity,
    check_hierarchies,
    check_sensitive,
    kept_rows,
    limits_of,
    notes_of,
    require_complete,
    require_records,
)
from ._recoding import Widths, check_levels, check_named, check_widths, height, recoded, tree_with_rows


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimalRecodingSpec(AnonymisationSpec):
    """What classes must have, what is lost least, and between which levels."""

    quasi_identifiers: QuasiIdentifiers = ()
    k: Annotated[int, Param("fewest records in a class", ge=2)] = 5
    objective: Annotated[
        Objective,
        Param("what is smallest: mean class size, squared class sizes, mean size of nodes, or lost bits"),
    ] = "ncp"
    max_suppressed: Annotated[float, Param("largest share of suppressed records", ge=0, lt=1)] = 0.0
    hierarchies: Hierarchies = field(default_factory=dict)
    widths: Widths = field(default_factory=dict)
    lowest: Annotated[
        Mapping[str, int], Param("lowest level by variable; default: 0, the values", ge=0, names="variables")
    ] = field(default_factory=dict)
    highest: Annotated[
        Mapping[str, int], Param("highest level by variable; default: the root", ge=0, names="variables")
    ] = field(default_factory=dict)
    l: LeastDiversity = 1.0  # noqa: E741
    diversity: DiversityKind = "distinct"
    c: RecursiveBound = None
    t: MostDistance = 1.0
    sensitive: VaryingVariables = ()

    @property
    def limits(self) -> Limits:
        return limits_of(self)

    def constrained(self, schema: Schema) -> tuple[str, ...]:
        """The sensitive variables that limit the levels."""
        return (self.sensitive or schema.of_role(Role.SENSITIVE)) if self.limits.on_values else ()

    def generalised(self, schema: Schema) -> frozenset[str]:
        return frozenset(self.keys(schema))

    def released_variable(self, variable: Variable) -> Variable:
        return as_generalised(variable)

    def ends(self, schema: Schema) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The lowest and the highest level of each quasi-identifier."""
        keys = self.keys(schema)
        highest = tuple(self.highest.get(name, height(self, name, schema)) for name in keys)
        return tuple(self.lowest.get(name, 0) for name in keys), highest

    def check(self, schema: Schema, place: str) -> None:
        """BadInput where trees, widths and levels do not fit the quasi-identifiers and each other, or the lattice is too large."""
        AnonymisationSpec.check(self, schema, place)
        self.check_keys(schema, place)
        keys = self.keys(schema)
        given = {
            "widths": self.widths,
            "hierarchies": self.hierarchies,
            "lowest": self.lowest,
            "highest": self.highest,
        }
        check_named(given, keys, place)
        check_levels(self.lowest, self, schema, f"{place}.lowest")
        check_levels(self.highest, self, schema, f"{place}.highest")
        check_widths(self, place)
        for name, low, high in zip(keys, *self.ends(schema), strict=True):
            if low > high:
                raise BadInput(f"{place}.lowest.{name}", f"{low} is above the highest level, {high}; lower it")
        nodes = math.prod(high - low + 1 for low, high in zip(*self.ends(schema), strict=True))
        if nodes > MOST_NODES:
            raise BadInput(
                f"{place}.quasi_identifiers",
                f"there are {nodes:,} combinations of levels, at most {MOST_NODES:,} are searched; set lowest or highest "
                "levels, or name fewer variables",
            )
        check_diversity(self, place)
        sensitive = self.sensitive or self.constrained(schema)
        check_sensitive(sensitive, keys, f"{place}.sensitive", constrains=self.limits.on_values)


def check(data: Microdata, target: str, spec: OptimalRecodingSpec, place: str) -> None:
    """BadInput when there are too few records, values are missing, a tree lacks a value, or the whole table is not diverse."""
    require_records(data, spec.k, place)
    require_complete(data, spec.keys(data.schema), place)
    check_hierarchies(data, spec.hierarchies, spec.keys(data.schema), place)
    check_diverse(data, spec, place)


@anonymisation_method(
    "Optimal global recoding",
    spec=OptimalRecodingSpec,
    source="Samarati & Sweeney (1998); LeFevre, DeWitt & Ramakrishnan (2006); Bayardo & Agrawal (2005); Xu et al. (2006); de Waal & "
    "Willenborg (1999)",
    check=check,
)
def optimal_recoding(data: Microdata, spec: OptimalRecodingSpec, run: Run) -> Anonymised:
    """Nodes of the best levels in place of values, without the records of classes that break the limits.

    Of equally good levels those of the smallest sum are taken, then those that are lowest in the first quasi-identifiers. Raises
    BadInput when no levels keep to the limits with as few suppressed records as asked.
    """
    check(data, "", spec, "anonymisation")
    keys = spec.keys(data.schema)
    ladders = [Ladder.of(*tree_with_rows(data, name, spec)) for name in keys]
    sensitive = [Sensitive.of(data, name) for name in spec.constrained(data.schema)]
    most = int(spec.max_suppressed * len(data))
    lowest, highest = spec.ends(data.schema)

    def report(done: int, total: int) -> None:
        run.report(Progress(done, total, "combinations of levels"))

    found = best_levels(
        ladders,
        spec.limits,
        spec.objective,
        most_suppressed=most,
        sensitive=sensitive,
        lowest=lowest,
        highest=highest,
        report=report,
    )
    if not found.nodes:
        raise BadInput(
            "anonymisation.max_suppressed",
            f"no levels keep to the limits with at most {most:,} of {len(data):,} records suppressed; allow more, or higher levels",
        )
    node = min(found.nodes, key=lambda levels: (sum(levels), levels))
    classes = classes_at(ladders, node, spec.limits, sensitive)
    columns = {
        name: kept_rows(recoded(data, name, level, spec).to_frame(name), classes)[name]
        .reset_index(drop=True)
        .cat.remove_unused_categories()
        for name, level in zip(keys, node, strict=True)
    }
    notes = (
        *notes_of(classes, spec.k, most),
        Diagnostic("objective", "release", found.value),
        Diagnostic("equally_good", "release", float(len(found.nodes))),
        Diagnostic("checked_nodes", "release", float(found.checked)),
        Diagnostic("nodes", "release", float(found.checked + found.below + found.beyond)),
        *(Diagnostic("level", name, float(level)) for name, level in zip(keys, node, strict=True)),
    )
    return anonymised_table(data, spec, classes, columns, notes)
