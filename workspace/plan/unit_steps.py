"""Drafts of two-stage synthesis: the tables of both stages, the terms that may predict each variable, and their order.

A step of units is drafted from a table of one row a unit, a step of records from all records with terms of the earlier
records of their unit (``sfumato.engine.recipe.unit_stages``), so that statistics choose between variables and terms
alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.engine.constraints.earlier_records import unit_table, with_unit_terms
from sfumato.engine.constraints.mining import quoted_column
from sfumato.engine.constraints.unit_terms import FOLLOWING, PLACE, SIZE, find_unit_terms, implied_variables
from sfumato.engine.data.microdata import Microdata, units_of
from sfumato.engine.data.schema import Schema
from sfumato.engine.methods.table_profile import TableProfile, profile_table

MAX_COUNTED_LEVELS = 6
"""Levels of a variable up to which the earlier records of each level are counted."""
PLAIN_NAME = re.compile(r"[^'\"`,()]+")
"""Names that a term can contain without quotes."""


@dataclass(frozen=True, eq=False)
class UnitStages:
    """The two stages of a draft for records that come in units.

    data: records, with the unit and the order of its records
    by_unit: variables of a unit, in the order of synthesis
    by_record: variables of a record, in the order of synthesis
    unit_profile: profile of the table of units, with ``size``
    record_profile: profile of the table of records, with terms
    later_profile: profile of its records that are not the first of their unit, where the terms have values
    """

    data: Microdata
    by_unit: tuple[str, ...]
    by_record: tuple[str, ...]
    unit_profile: TableProfile
    record_profile: TableProfile
    later_profile: TableProfile

    @classmethod
    def of_data(cls, data: Microdata, by_unit: Sequence[str], by_record: Sequence[str]) -> UnitStages:
        """Create the stages of records for variables in the order of synthesis."""
        own = data.schema
        size, place = implied_variables()
        units = unit_table(data, Schema((*(own[name] for name in by_unit), size)))
        texts = dict.fromkeys(text for name in by_record for text in _terms(data, name))
        if own.order:
            texts |= {f"previous({name}, 2)": None for name in by_record if f"previous({name})" in texts}
        terms = [term for text in texts for term in find_unit_terms(text, own, "synthesis")]
        variables = (*(own[name] for name in (*by_unit, *by_record)), *(term.declare(own) for term in terms))
        schema = Schema((*variables, size, place, own[str(own.unit)]), order=own.order)
        records = with_unit_terms(data, terms, schema)
        later = records.select_rows(np.flatnonzero(units_of(data).places > 1).tolist())
        profiles = (profile_table(one) for one in (units, records, later))
        return cls(data, tuple(by_unit), tuple(by_record), *profiles)

    @cached_property
    def order_follows_place(self) -> bool:
        """Return whether the variable that orders the records of a unit has one value at each place."""
        order = self.data.schema.order
        if order not in self.by_record:
            return False
        own, places = self.data.numbers(order), units_of(self.data).places
        at_place = np.full(int(places.max()) + 1, np.nan)
        at_place[places] = own
        return bool((at_place[places] == own).all())

    def predictors_of_unit(self, name: str) -> list[str]:
        """Return what may predict a variable of a unit: those before it; ``size`` comes last."""
        return list(self.by_unit if name == SIZE else self.by_unit[: self.by_unit.index(name)])

    def predictors_of_record(self, name: str) -> tuple[list[str], list[str]]:
        """Return what predicts each variable of a record, and what else may predict this one."""
        before = self.by_record[: self.by_record.index(name)]
        # The number of a record tells what its place tells.
        idle = (self.data.schema.order,) if self.order_follows_place else ()
        always = [text for text in (f"previous({name})", f"first({name})", PLACE, SIZE) if text in self.record_profile]
        lags = [text for text in (f"previous({name}, 2)",) if text in self.record_profile]
        terms = [text for one in self.by_record if one not in idle for text in _terms(self.data, one)]
        others = [*(one for one in before if one not in idle), *self.by_unit, *lags, *terms]
        return always, [text for text in dict.fromkeys(others) if text not in always]


def _terms(data: Microdata, name: str) -> Iterator[str]:
    """Yield the terms by which a variable of earlier records may predict another: its values, and counts of its levels."""
    yield FOLLOWING
    if not PLAIN_NAME.fullmatch(name) or data.missing_mask(name).all():
        return
    yield f"previous({name})"
    yield f"first({name})"
    if data.schema[name].kind.has_levels:
        levels = [str(level) for level in data.column(name).cat.categories]
        if 2 < len(levels) <= MAX_COUNTED_LEVELS:
            plain = (level for level in levels if PLAIN_NAME.fullmatch(level))
            yield from (f'count({quoted_column(name)} = "{level}")' for level in plain)
