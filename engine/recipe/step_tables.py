"""Tables that steps are fitted to where units are drawn in stages (``sfumato.engine.recipe.unit_stages``)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..constraints.earlier_records import drop_out_column, unit_table, with_unit_terms
from ..constraints.unit_terms import UnitTerm
from ..data.microdata import Microdata
from ..data.schema import Schema


@dataclass(frozen=True, slots=True)
class StepTable:
    """Table that a step is fitted to and draws from: one row a unit, or one a record with terms of earlier ones.

    schema: its variables
    by_unit: whether a row is a unit
    terms: terms that the step names
    until: implied yes/no variable of drop-out; empty without one
    """

    schema: Schema
    by_unit: bool
    terms: tuple[UnitTerm, ...] = ()
    until: str = ""

    def of_data(self, confidential: Microdata, place: str) -> Microdata:
        """Return the confidential data as this table, for the step at ``place``.

        The number of the unit cannot be read: no model can follow a unit to its other records. That records are of one
        unit is known (``Microdata.units``), so that people are counted.
        """
        if self.by_unit:
            found = unit_table(confidential, self.schema)
        else:
            number = confidential.schema[str(confidential.schema.unit)]
            schema = replace(self.schema, variables=(*self.schema.variables, number))
            found = with_unit_terms(confidential, self.terms, schema)
            if self.until:
                found = replace(
                    found, frame=found.frame.assign(**{self.until: drop_out_column(confidential, self.until)})
                )
        return replace(found, withheld=dict.fromkeys(confidential.schema.identifiers, place))
