"""Functions of studies that anonymise tables of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..data.microdata import Microdata
from ..data.schema import Role, Schema
from ..errors import BadInput
from ..methods.registry import Method, find_method
from ..methods.results import Estimate, Measure, StudyPoint
from ..methods.run import Run
from ..wording import agreeing_word, count_noun

if TYPE_CHECKING:
    from ..methods.release_form import AnonymisationSpec


OWN_TABLES = "the study makes tables of its own from the confidential data; its numbers stand with those"


def find_anonymiser(
    key: str, schema: Schema, quasi_identifiers: Sequence[str], k: int, options: Mapping[str, Any], place: str
) -> tuple[Method, AnonymisationSpec]:
    """Return the anonymisation method of this key and its parameters. Raises BadInput at ``place``.

    Class means are exact, as the papers of the studies have them.
    """
    found = find_method(key, f"{place}.anonymisation", ("anonymisation",))
    if "means" in {info.name for info in found.spec.params()}:
        options = {"means": "exact", **options}
    spec: AnonymisationSpec = found.spec.from_table(  # type: ignore[assignment]
        {"quasi_identifiers": list(quasi_identifiers), "k": k, **options}, place
    )
    spec.check(schema, place)
    return found, spec


def select_schema(schema: Schema, names: Sequence[str] = ()) -> Schema:
    """Return the schema of these variables, or by default of all except identifiers, which an anonymised table cannot
    have.
    """
    return Schema(tuple(v for v in schema if (v.name in names if names else not v.role.is_identifier)))


def require_present(data: Microdata, names: Sequence[str], place: str) -> None:
    """Raise BadInput where a quasi-identifier or one of the variables has missing values, which cannot be tested or
    averaged.
    """
    for name in dict.fromkeys((*names, *data.schema.names_by_role(Role.QUASI_IDENTIFIER))):
        if missing := int(data.missing_mask(name).sum()):
            raise BadInput(
                place,
                f'{count_noun(missing, "record")} {agreeing_word(missing, "has", "have")} no value of "{name}"; say missing = "keep" and complete_cases = ["{name}"] under [data] to drop them',
            )


def anonymise_sample(data: Microdata, by: tuple[Method, AnonymisationSpec], run: Run) -> Microdata:
    """Return the anonymised table of ``data`` with the class of each of its records."""
    method, spec = by
    made = method.anonymise(data, spec, run)
    return replace(made.data, origin="anonymised", classes=made.class_keys, generalised=spec.generalised(data.schema))


def quality_scores(
    key: str, original: Microdata, released: Microdata, table: Mapping[str, Any], run: Run
) -> dict[tuple[str, str], float | None]:
    """Return the values of a data quality method by measure and column; None where one cannot be computed."""
    found = find_method(key, "", ("quality",))
    spec = found.spec.from_table(table, key).for_release(original.schema, ())
    return {(one.measure, one.target): one.value for one in found.measure(original, released, spec, run).estimates}


def point_of_own_tables(found: Sequence[Estimate], releases: Sequence[Microdata]) -> StudyPoint:
    """Return the point of a study that uses no release: its estimates, and one row for every release that says so."""
    instead = Measure((Estimate.not_computed(found[0].measure, OWN_TABLES),)) if found else Measure(())
    return StudyPoint(Measure(tuple(found)), tuple(instead for _ in releases))
