"""Tables that steps are fitted to where units are drawn in stages (``sfumato.engine.recipe.unit_stages``)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..constraints.earlier_records import PlaceLevels, drop_out_column, unit_table, with_unit_terms
from ..constraints.unit_terms import PLACE, SIZE, UnitTerm
from ..data.microdata import Microdata, units_of
from ..data.schema import Schema


@dataclass(frozen=True, slots=True)
class StepTable:
    """Table that a step is fitted to and draws from: one row a unit, or one a record with terms of earlier ones.

    schema: its variables
    by_unit: whether a row is a unit
    terms: terms that the step names
    until: implied yes/no variable of drop-out; empty without one
    most: most records of a unit, where sizes and places are levels from 1 to it whatever the data have; None elsewhere
    """

    schema: Schema
    by_unit: bool
    terms: tuple[UnitTerm, ...] = ()
    until: str = ""
    most: int | None = None

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
        if self.most is not None:
            found = self._with_public_levels(found, confidential)
        return replace(found, withheld=dict.fromkeys(confidential.schema.identifiers, place))

    def _with_public_levels(self, table: Microdata, confidential: Microdata) -> Microdata:
        """Return the table with sizes and places as levels that are the same for all data."""
        assert self.most is not None
        units, levels = units_of(confidential), PlaceLevels(self.most)
        columns = {SIZE: units.sizes} if self.by_unit else {SIZE: units.sizes[units.unit_of], PLACE: units.places}
        made = {name: levels.column(numbers).set_axis(table.frame.index) for name, numbers in columns.items()}
        return replace(table, frame=table.frame.assign(**made))
