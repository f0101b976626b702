"""Global recoding: every value of a quasi-identifier is replaced by its node at one level of its generalisation tree.

Samarati & Sweeney (1998), §3. Trees of categories are given as rows, trees of numbers as widths of intervals at multiples of
the width. Recoding makes no promise of its own on the size of classes: ``anonymisation.suppression`` after it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from ..data.microdata import Microdata
from ..data.schema import Schema, Variable
from ..errors import BadInput
from ..methods.intruder import QuasiIdentifiers
from ..methods.registry import anonymisation_method
from ..methods.release_form import AnonymisationSpec, Anonymised, Hierarchies, generalised_variable
from ..methods.run import Run
from ..methods.spec import Param
from ..partition.equivalence_classes import equivalence_classes
from ._partition import anonymised_table, check_hierarchies, notes_of, require_complete
from ._recoding import Widths, check_setting_names, check_tree_levels, check_widths, recode_column


def check_data(data: Microdata, target: str, spec: GeneralisationSpec, place: str) -> None:
    """Raise BadInput for missing values in recoded variables, or a tree that lacks a value of the data."""
    require_complete(data, spec.changed(data.schema), place)
    check_hierarchies(data, spec.hierarchies, spec.keys(data.schema), place)


@dataclass(frozen=True, kw_only=True, slots=True)
class GeneralisationSpec(AnonymisationSpec):
    """Levels to which quasi-identifiers are recoded, and their trees."""

    quasi_identifiers: QuasiIdentifiers = ()
    levels: Annotated[
        Mapping[str, int],
        Param("level of the tree by variable: 0 keeps values, the highest is the root", ge=0, names="variables"),
    ] = field(default_factory=dict)
    hierarchies: Hierarchies = field(default_factory=dict)
    widths: Widths = field(default_factory=dict)

    def changed(self, schema: Schema) -> tuple[str, ...]:
        """Return the quasi-identifiers that are recoded to a level above 0."""
        return tuple(name for name in self.keys(schema) if self.levels.get(name, 0) > 0)

    def generalised(self, schema: Schema) -> frozenset[str]:
        return frozenset(self.changed(schema))

    def released_variable(self, variable: Variable) -> Variable:
        return generalised_variable(variable)

    def check(self, schema: Schema, place: str) -> None:
        """Raise BadInput where trees, widths and levels do not fit the quasi-identifiers and each other."""
        AnonymisationSpec.check(self, schema, place)
        self.check_keys(schema, place)
        if not self.changed(schema):
            raise BadInput(f"{place}.levels", "nothing is recoded; give levels, such as { age = 1 }")
        given = {"levels": self.levels, "widths": self.widths, "hierarchies": self.hierarchies}
        check_setting_names(given, self.keys(schema), place)
        check_tree_levels(self.levels, self, schema, f"{place}.levels")
        check_widths(self, place)


@anonymisation_method(
    "Global recoding",
    spec=GeneralisationSpec,
    source="Samarati & Sweeney (1998), §3; Sweeney (2002)",
    check=check_data,
)
def generalisation(data: Microdata, spec: GeneralisationSpec, run: Run) -> Anonymised:
    """Recode the values of every record to nodes; records that agree on all quasi-identifiers are a class."""
    check_data(data, "", spec, "anonymisation")
    columns = {name: recode_column(data, name, spec.levels[name], spec) for name in spec.changed(data.schema)}
    keys = [columns.get(name, data.frame[name]) for name in spec.keys(data.schema)]
    classes = equivalence_classes(keys, len(data))
    return anonymised_table(data, spec, classes, columns, notes_of(classes))
