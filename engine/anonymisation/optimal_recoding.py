"""Global recoding to optimal levels: of all levels that keep to the limits those that lose least, found exactly.

Samarati & Sweeney (1998); Sweeney (2002); the search is ``sfumato.engine.partition.lattice``. Records of classes that
break the limits are suppressed; with ``below = "keep"`` they stay, and a later step protects them, such as
``anonymisation.local_suppression``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from ..data.microdata import Microdata
from ..data.schema import Role, Schema, Variable
from ..errors import BadInput
from ..methods.drafting import ALTERNATIVE, Case, DeclinedOffer, Offer, drafts, suggest_hierarchies
from ..methods.intruder import QuasiIdentifiers
from ..methods.registry import anonymisation_method
from ..methods.release_form import AnonymisationSpec, Anonymised, Hierarchies, generalised_variable
from ..methods.results import Diagnostic
from ..methods.run import Progress, Run
from ..methods.spec import Param, SearchValues
from ..partition.equivalence_classes import Limits, SensitiveColumn
from ..partition.hierarchies import Hierarchy
from ..partition.lattice import MOST_NODES, GeneralisationLevels, Objective, classes_at_node, find_best_levels
from ..wording import count_noun
from ._partition import (
    ClassSize,
    DiversityKind,
    LeastDiversity,
    MostDistance,
    RecursiveBound,
    VaryingVariables,
    anonymised_table,
    check_diversity,
    check_hierarchies,
    check_sensitive,
    check_table_is_diverse,
    diversity_limits,
    draft_diversity,
    kept_rows,
    notes_of,
    require_complete,
    require_records,
)
from ._recoding import (
    Widths,
    check_setting_names,
    check_tree_levels,
    check_widths,
    recode_column,
    tree_height,
    tree_with_rows,
)

FEWEST_SUPPRESSED = 0.01
"""Share of the records that a drafted recoding may suppress, so that single odd records do not coarsen all others."""
MOST_UNFINISHED = 0.05
"""Share of the records that it leaves to a step of local suppression."""


def check_data(data: Microdata, target: str, spec: OptimalRecodingSpec, place: str) -> None:
    """Raise BadInput for too few records, missing values, a tree that lacks a value, or a table that is not diverse as
    a whole.
    """
    require_records(data, spec.k, place)
    require_complete(data, spec.keys(data.schema), place)
    check_hierarchies(data, spec.hierarchies, spec.keys(data.schema), place)
    check_table_is_diverse(data, spec, place)


def _count_tree_levels(case: Case, name: str) -> int:
    """Return the number of levels of a quasi-identifier by the trees and widths of a case."""
    if name in case.hierarchies:
        return Hierarchy.parse(case.hierarchies[name]).height + 1
    return len(case.widths.get(name, ())) + 2


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimalRecodingSpec(AnonymisationSpec):
    """Limits of the classes, objective of the search, and range of levels."""

    quasi_identifiers: QuasiIdentifiers = ()
    k: ClassSize = 5
    objective: Annotated[
        Objective,
        Param(
            "what is smallest: mean class size, squared class sizes, mean size of nodes, or lost bits",
            search_values=SearchValues(("average_class_size", "discernibility", "ncp", "entropy"), has_order=False),
        ),
    ] = "ncp"
    max_suppressed: Annotated[
        float,
        Param(
            "largest share of the records in classes that break the limits",
            ge=0,
            lt=1,
            search_values=SearchValues((0.0, 0.01, 0.02, 0.05, 0.1), larger_protects_more=False),
        ),
    ] = 0.0
    below: Annotated[
        Literal["suppress", "keep"],
        Param("whether these records are suppressed, or kept for a later step to protect"),
    ] = "suppress"
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
    def search_limits(self) -> Limits:
        """Return the limits to which the levels are searched."""
        return diversity_limits(self)

    @property
    def limits(self) -> Limits:
        """Return the limits that the released table keeps; none where records that break them are kept."""
        return self.search_limits if self.below == "suppress" else Limits()

    def constrained(self, schema: Schema) -> tuple[str, ...]:
        """Return the sensitive variables that limit the levels."""
        return (self.sensitive or schema.names_by_role(Role.SENSITIVE)) if self.search_limits.on_values else ()

    def generalised(self, schema: Schema) -> frozenset[str]:
        """Return all quasi-identifiers."""
        # Also at level 0, where labels are the values: the recipe alone does not say which level is found.
        return frozenset(self.keys(schema))

    def released_variable(self, variable: Variable) -> Variable:
        return generalised_variable(variable)

    def level_range(self, schema: Schema) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the lowest and the highest level of each quasi-identifier."""
        keys = self.keys(schema)
        highest = tuple(self.highest.get(name, tree_height(self, name, schema)) for name in keys)
        return tuple(self.lowest.get(name, 0) for name in keys), highest

    def check(self, schema: Schema, place: str) -> None:
        """Raise BadInput where trees, widths and levels do not fit the quasi-identifiers and each other, or the lattice
        is too large.
        """
        AnonymisationSpec.check(self, schema, place)
        self.check_keys(schema, place)
        keys = self.keys(schema)
        given = {
            "widths": self.widths,
            "hierarchies": self.hierarchies,
            "lowest": self.lowest,
            "highest": self.highest,
        }
        check_setting_names(given, keys, place)
        check_tree_levels(self.lowest, self, schema, f"{place}.lowest")
        check_tree_levels(self.highest, self, schema, f"{place}.highest")
        check_widths(self, place)
        for name, low, high in zip(keys, *self.level_range(schema), strict=True):
            if low > high:
                raise BadInput(f"{place}.lowest.{name}", f"{low} is above the highest level, {high}; lower it")
        nodes = math.prod(high - low + 1 for low, high in zip(*self.level_range(schema), strict=True))
        if nodes > MOST_NODES:
            raise BadInput(
                f"{place}.quasi_identifiers",
                f"there are {nodes:,} combinations of levels, at most {MOST_NODES:,} are searched; set lowest or highest "
                "levels, or name fewer variables",
            )
        check_diversity(self, place)
        sensitive = self.sensitive or self.constrained(schema)
        check_sensitive(sensitive, keys, f"{place}.sensitive", constrains=self.search_limits.on_values)


def _draft_offer(case: Case) -> Offer | DeclinedOffer | None:
    """Offer the optimal levels for classes of k records, with l values or a distance t where they are requested."""
    if case.want != "anonymisation" or not case.known or (case.p is not None and case.l is None and case.t is None):
        return None
    if case.table.records < case.k:
        return DeclinedOffer(f"{count_noun(case.table.records, 'record')} cannot make a class of {case.k:,}")
    nodes = math.prod(_count_tree_levels(case, name) for name in case.known)
    if nodes > MOST_NODES:
        return DeclinedOffer(
            f"there are {nodes:,} combinations of levels, more than the {MOST_NODES:,} that are searched"
        )
    of_values, reasons, missed = draft_diversity(case)
    settings = {"quasi_identifiers": list(case.known), "k": case.k, "max_suppressed": FEWEST_SUPPRESSED, **of_values}
    if case.widths:
        settings["widths"] = dict(case.widths)
    why = "; ".join(
        (
            f"each value gives way to its group in all records (k = {case.k}, as asked)",
            *reasons,
            "the groups lose least",
        )
    )
    trees, said = suggest_hierarchies(case)
    unfinished = {} if of_values else {"below": "keep", "max_suppressed": MOST_UNFINISHED}
    return Offer(f"{why}{said}", settings | trees, ALTERNATIVE, missed=missed, unfinished=unfinished)


@anonymisation_method(
    "Optimal global recoding",
    spec=OptimalRecodingSpec,
    source="Samarati & Sweeney (1998); LeFevre, DeWitt & Ramakrishnan (2006); Bayardo & Agrawal (2005); Xu et al. (2006); de Waal & "
    "Willenborg (1999)",
    check=check_data,
)
@drafts(_draft_offer)
def optimal_recoding(data: Microdata, spec: OptimalRecodingSpec, run: Run) -> Anonymised:
    """Recode values to nodes at the optimal levels, and suppress records of classes that break the limits unless they
    are kept.

    Raises BadInput when no levels keep to the limits with as few suppressed records as requested.
    """
    check_data(data, "", spec, "anonymisation")
    keys = spec.keys(data.schema)
    ladders = [GeneralisationLevels.from_hierarchy(*tree_with_rows(data, name, spec)) for name in keys]
    sensitive = [SensitiveColumn.from_microdata(data, name) for name in spec.constrained(data.schema)]
    most = int(spec.max_suppressed * len(data))
    lowest, highest = spec.level_range(data.schema)

    def report(done: int, total: int) -> None:
        """Report the combinations of levels that are decided."""
        run.report(Progress(done, total, "combinations of levels"))

    found = find_best_levels(
        ladders,
        spec.search_limits,
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
    # Of equally good levels those of the smallest sum, then those lowest in the first quasi-identifiers: one answer on
    # every machine.
    node = min(found.nodes, key=lambda levels: (sum(levels), levels))
    # ``spec.limits`` has none where records below the limits are kept: then no class is suppressed.
    classes = classes_at_node(ladders, node, spec.limits, sensitive if spec.limits.on_values else ())
    columns = {
        name: kept_rows(recode_column(data, name, level, spec).to_frame(name), classes)[name]
        .reset_index(drop=True)
        # A label that only suppressed records had would show that there were such records.
        .cat.remove_unused_categories()
        for name, level in zip(keys, node, strict=True)
    }
    notes = (
        *(notes_of(classes, spec.k, most) if spec.below == "suppress" else notes_of(classes)),
        Diagnostic("objective", "release", found.value),
        Diagnostic("equally_good", "release", float(len(found.nodes))),
        Diagnostic("checked_nodes", "release", float(found.n_checked)),
        Diagnostic("nodes", "release", float(found.n_checked + found.n_below_infeasible + found.n_excluded)),
        *(Diagnostic("level", name, float(level)) for name, level in zip(keys, node, strict=True)),
    )
    return anonymised_table(data, spec, classes, columns, notes)
