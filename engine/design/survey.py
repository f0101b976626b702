"""Survey design of a table: the variable with the survey weights, and those that describe how the records were sampled.

    weight = { kind = "continuous", role = "weight" }
    region = { kind = "categorical", role = "quasi_identifier", design = "strata" }
    school = { kind = "categorical", design = "clusters" }
    schools = { kind = "count", design = "population" }      # clusters of the record's stratum in the population

A survey weight is the number of people in the population that a record represents. It is unrelated to the weights of
``sfumato.engine.recipe.weights``, the influence of records on the models of a release. Measures that declare
``survey_weighted`` are about the population, by the weights and design of each table itself, as an analyst of the
release would use them; all others are about the records.

Survey weights can identify records, since they are computed from strata, response classes and population totals (de
Waal & Willenborg 1997), and a release that changes such variables but not the weights is biased (Mitra & Reiter 2006).
So a plan may synthesise the weight like any variable, after those that it is computed from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.rows import distinct_codes
from ..data.schema import SURVEY_SETTING, DesignPart, Kind, Role, Schema
from ..errors import BadInput, NotComputable
from ..methods.results import Measure
from ..wording import agreeing_word, count_noun

if TYPE_CHECKING:
    from ..data.microdata import Microdata
    from ..methods.registry import Method
    from .survey_estimation import SurveySample

INFORMATION = ("utility", "quality")
"""The families whose measures may speak of the population."""
UNWEIGHTED = "unweighted: of the records, not of the population"
"""What is said of a measure of information that has no weighted form, where there is a weight."""


@dataclass(frozen=True)
class SurveyDesign:
    """Variables of the survey design, by name; empty without a design."""

    weight: str
    strata: str = ""
    clusters: str = ""
    population: str = ""

    @classmethod
    def from_schema(cls, schema: Schema) -> SurveyDesign | None:
        """Return the design that the schema's variables declare; None without a weight."""
        weights = schema.names_by_role(Role.WEIGHT)
        return cls(weights[0], **{v.design.value: v.name for v in schema if v.design}) if weights else None

    @cached_property
    def variable_by_part(self) -> dict[str, str]:
        """Return the variable of each part of the design: ``{"weight": "pw", "strata": "region"}``."""
        own = {"weight": self.weight, **{part.value: getattr(self, part.value) for part in DesignPart}}
        return {part: name for part, name in own.items() if name}

    def __str__(self) -> str:
        return ", ".join(f"{part} {name}" for part, name in self.variable_by_part.items())

    def weights_of(self, data: Microdata) -> Floats:
        """Return the weight of each record, (n,).

        Raises NotComputable where a weight is missing, infinite or not above 0.
        """
        weights = data.numbers(self.weight)
        if wrong := int((~(weights > 0) | ~np.isfinite(weights)).sum()):
            raise NotComputable(
                f'{count_noun(wrong, "record")} {agreeing_word(wrong, "has", "have")} no weight above 0 in "{self.weight}"'
            )
        return weights

    def sample_of(self, data: Microdata) -> SurveySample:
        """Return the weights with strata, clusters and population of each record.

        Without clusters those are the units of several records, if there are any. Raises NotComputable where the table lacks one of them.
        """
        from .survey_estimation import SurveySample  # SciPy's functions, which most runs have no use for

        codes = {
            part: self._value_codes(data, name)
            for part, name in self.variable_by_part.items()
            if part in ("strata", "clusters")
        }
        if data.units is not None:
            codes.setdefault("clusters", data.units.unit_of)
        population = None
        if self.population:
            population = data.numbers(self.population)
            if np.isnan(population).any():
                raise NotComputable(f'records have no value of "{self.population}", the clusters of the population')
        return SurveySample.from_codes(self.weights_of(data), codes.get("strata"), codes.get("clusters"), population)

    @staticmethod
    def _value_codes(data: Microdata, name: str) -> Integers:
        """Return codes from 0 of a variable of the design, (n,). Raises NotComputable where a value is missing."""
        values = data.numbers(name)
        if np.isnan(values).any():
            raise NotComputable(f'records have no value of "{name}", which the design needs')
        return distinct_codes(values).codes.astype(np.int64)


def sample_of_records(confidential: Microdata, data: Microdata) -> SurveySample | None:
    """Return the sample by which estimates on ``data`` have their errors; None where records are independent.

    It is the survey design of the confidential data where they have one, else their units. Raises NotComputable where the
    table lacks a part of the design.
    """
    design = SurveyDesign.from_schema(confidential.schema)
    return sample_by_units(confidential, data) if design is None else design.sample_of(data)


def sample_by_units(confidential: Microdata, data: Microdata) -> SurveySample | None:
    """Return the records of ``data`` with the units as clusters of equal weight; None where every record is a unit.

    Where the confidential records have units and ``data`` has none, each record is a cluster.
    """
    from .survey_estimation import SurveySample  # SciPy's functions, which most runs have no use for

    if confidential.units is None:
        return None
    return SurveySample.from_codes(np.ones(len(data)), clusters=None if data.units is None else data.units.unit_of)


def units_remark(confidential: Microdata, data: Microdata) -> str:
    """Return what the errors of estimates on ``data`` take for independent, in words; empty where it is records."""
    if confidential.units is None:
        return ""
    if data.units is None:
        return "standard errors by record, since the release does not say which of its records are of one unit"
    return "standard errors by unit, since records of a unit are not independent"


def check_survey_variables(schema: Schema) -> None:
    """Raise BadInput where the schema declares a weight or a part of the design twice, a part without a weight, or one
    of a wrong kind.
    """
    weights = schema.names_by_role(Role.WEIGHT)
    parts = (("design", [variable.name for variable in schema if variable.design is part]) for part in DesignPart)
    for place, found in (("role", weights), *parts):
        for name in found[1:]:
            raise BadInput(f"variables.{name}.{place}", f'"{found[0]}" is that already; a table has one')
    for variable in schema:
        place = f"variables.{variable.name}"
        numeric = variable.kind in (Kind.COUNT, Kind.CONTINUOUS)
        if variable.role is Role.WEIGHT and not numeric:
            raise BadInput(f"{place}.kind", f"a survey weight is a count or continuous, this one is {variable.kind}")
        if variable.design and (variable.role is Role.WEIGHT or variable.role.is_identifier):
            raise BadInput(f"{place}.design", f"this is the role {variable.role}; a design names other variables")
        if variable.design and not weights:
            raise BadInput(f"{place}.design", 'needs a survey weight; give the variable that is it role = "weight"')
        if variable.design is DesignPart.POPULATION and not numeric:
            raise BadInput(
                f"{place}.kind", f"a number of clusters is a count or continuous, this one is {variable.kind}"
            )


def check_survey_weights(data: Microdata) -> None:
    """Raise BadInput where a confidential record has no weight above 0, or the design gives no variance."""
    design = SurveyDesign.from_schema(data.schema)
    if design is None:
        return
    place, weights = f"variables.{design.weight}", data.numbers(design.weight)
    for wrong, said in (
        (np.isnan(weights), "no survey weight; leave them out with [data] where"),
        (weights == 0, "the survey weight 0, so they represent no people; exclude them with [data] where"),
        (weights < 0, "a survey weight below 0; is it the weight?"),
    ):
        if count := int(wrong.sum()):
            raise BadInput(place, f"{count_noun(count, 'record')} {agreeing_word(count, 'has', 'have')} {said}")
    try:
        design.sample_of(data).require_variance()
    except NotComputable as error:
        raise BadInput(
            f"variables.{design.population or design.clusters or design.strata or design.weight}", error.reason
        ) from None


def survey_settings(method: Method, schema: Schema) -> dict[str, str]:
    """Return the survey design that a method's rows report beside the settings of their step."""
    design = SurveyDesign.from_schema(schema) if method.measurement.survey_weighted else None
    return {} if design is None else {SURVEY_SETTING: str(design)}


def is_unweighted(method: Method, schema: Schema) -> bool:
    """Return whether a measure of information is about the records although the schema has a survey weight."""
    # Risks count records and persons in the release, whatever they represent, so they are never called unweighted.
    return (
        method.family in INFORMATION
        and not method.measurement.survey_weighted
        and SurveyDesign.from_schema(schema) is not None
    )


def add_unweighted_remark(method: Method, measure: Measure, schema: Schema) -> Measure:
    """Add ``UNWEIGHTED`` to the reason of each value of an unweighted measure."""
    if not is_unweighted(method, schema):
        return measure
    estimates = (
        one if one.value is None else replace(one, reason="; ".join(filter(None, (one.reason, UNWEIGHTED))))
        for one in measure.estimates
    )
    return replace(measure, estimates=tuple(estimates))
