"""The recipe: a whole plan as one value (data, variables, synthesis or anonymisation, measures, studies, thresholds),
read from and written to TOML.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import tomli_w

from ..constraints.constraints import ConstraintTable, read_constraints
from ..constraints.rejection_sampling import ConstraintPlan, plan_constraints
from ..data.declaration import Param, ParamInfo, Section, declared_keys, declared_params
from ..data.microdata import Microdata
from ..data.recoding import recode_data
from ..data.schema import Origin, Schema, Variable, check_units, check_variable_names
from ..data.toml import get_table, get_tables, read_toml
from ..design.survey import check_survey_variables
from ..errors import BadInput
from ..methods.registry import registry
from ..methods.release_form import DatasetsTable, ReleaseForm
from ..methods.rows import may_come_from_step
from ..methods.table_numbers import TABLE_NUMBERS
from .data_source import DataSource
from .older_units import read_older_units
from .population import PopulationStatement
from .published import PublishedFigure, read_published_figures
from .rules import RecipeSections, check_sections
from .search_table import SearchTable
from .steps import (
    RecipeStep,
    anonymisation_spec,
    complete_stored_table,
    is_made_whole,
    read_anonymisation_steps,
    read_step,
    schema_after,
    settings_of_step,
    with_synthesis,
)
from .table_sections import PlannedTable, TableProtection, read_planned_tables
from .text_format import TextFormat
from .threshold_warnings import threshold_warnings
from .thresholds import Threshold, ThresholdTable
from .unit_stages import read_synthesis_steps, with_made_units
from .weights import RecordWeighting

SECTIONS: Mapping[str, tuple[type[Section], ...]] = {
    "data": (DataSource,), "population": (PopulationStatement,), "weights": (RecordWeighting,), "variables": (Variable,), "release": (DatasetsTable, ReleaseForm),
    "synthesis": (), "anonymisation": (), "measure": (), "study": (), "threshold": (ThresholdTable,), "published": (PublishedFigure,),
    "constraints": (ConstraintTable,), "search": (SearchTable,), "table": (PlannedTable,), "tables": (TableProtection,),
}  # fmt: skip
"""The sections of a recipe, each with what declares its keys; those of steps are their methods'."""


def _parse_recipe_name(value: object) -> str:
    """Return the name. Raises ValueError where it is empty or no text."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{value!r} must be the name of a recipe")
    return value


@dataclass(frozen=True, slots=True)
class RecipeHeading(Section):
    """Keys of a recipe above its sections."""

    title: Annotated[str, Param("what the run is called")] = ""
    label: Annotated[str, Param("what it is called beside its companions")] = ""
    description: Annotated[str, Param("what it is for")] = ""
    companions: Annotated[
        tuple[str, ...],
        Param("recipes to carry out on the same data", parse=_parse_recipe_name, unique=True),
    ] = ()


def recipe_params(section: str) -> tuple[ParamInfo, ...]:
    """Return the declared keys of a section, such as ``release`` or ``data.format``; ``recipe`` is the top level.

    Raises LookupError.
    """
    declaring = {"recipe": (RecipeHeading,), "data.format": (TextFormat,), **SECTIONS}[section]
    if not declaring:
        raise LookupError(section)
    return tuple(info for one in declaring for info in declared_params(one))


def recipe_keys(section: str) -> tuple[str, ...]:
    """Return the keys of a section. Raises LookupError for a section without declared keys."""
    return (*(info.name for info in recipe_params(section)), *(SECTIONS if section == "recipe" else ()))


@dataclass(frozen=True)
class Recipe:
    """Validated plan of a release of ``m`` datasets, in each of which the ``released`` variables are replaced.

    Synthesis steps make m datasets, anonymisation steps one, each on the table that the previous one left.
    ``companions`` are names of recipes to carry out on the same data; ``label`` names this one among them. ``weights``
    names the earlier run by which records have less influence; the weights themselves are not part of a recipe.
    ``older_spellings`` are sentences that say today's spelling of what its text spells in an older way.
    """

    title: str
    data: DataSource
    schema: Schema
    m: int
    seed: int
    released: tuple[str, ...]
    synthesis: tuple[RecipeStep, ...] = ()
    measures: tuple[RecipeStep, ...] = ()
    studies: tuple[RecipeStep, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    description: str = ""
    label: str = ""
    companions: tuple[str, ...] = ()
    published: tuple[PublishedFigure, ...] = ()
    anonymisation: tuple[RecipeStep, ...] = ()
    form: ReleaseForm = field(default_factory=ReleaseForm)
    weights: RecordWeighting | None = None
    search: SearchTable | None = None
    population: PopulationStatement | None = None
    tables: tuple[PlannedTable, ...] = ()
    table_protection: TableProtection | None = None
    older_spellings: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def from_toml(cls, text: str, *, stored: bool = False) -> Recipe:
        """Create the recipe of a TOML text. Raises BadInput that names the place in the file.

        ``stored`` tells that a run of it is in a workspace.
        """
        return cls.from_table(read_toml(text), stored=stored)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], *, stored: bool = False) -> Recipe:
        """Create the recipe of a table from TOML or JSON. Raises BadInput."""
        table, older_spellings = read_older_units(complete_stored_table(table) if stored else table)
        heading = RecipeHeading.read_section(table, "", others=tuple(SECTIONS))
        schema = _read_schema(table)
        schema = replace(schema, constraints=read_constraints(get_table(table, "constraints"), schema))
        source = DataSource.from_table(get_table(table, "data"))
        source.check_variables(schema)
        schema = replace(schema, order=source.order, largest_unit=source.largest_unit)
        release = get_table(table, "release")
        datasets = DatasetsTable.read_section(release, "release", others=declared_keys(ReleaseForm))
        check_variable_names(datasets, schema, "release")
        synthesis = read_synthesis_steps(get_tables(table, "synthesis"), schema, release)
        anonymisation = read_anonymisation_steps(get_tables(table, "anonymisation"), schema)
        form = ReleaseForm.from_table(release, schema, made=bool(synthesis or anonymisation))
        released = _released_variables(datasets, form, synthesis, anonymisation, schema)
        measures = tuple(
            read_step(t, f"measure[{i}]", ("utility", "risk", "quality"), schema, ())
            for i, t in enumerate(_measure_tables(table, schema))
        )
        studies = tuple(
            with_synthesis(read_step(t, f"study[{i}]", ("studies",), schema, measures), synthesis)
            for i, t in enumerate(get_tables(table, "study"))
        )
        check_sections(
            RecipeSections(
                source, schema, datasets, form, synthesis, anonymisation, measures, studies, released, is_stored=stored
            )
        )
        counted = (*(step for step in synthesis if step.method.outputs), *measures, *studies)
        judged = [(step.method, settings_of_step(step, schema, released)) for step in counted]
        if table.get("table"):
            judged.append((TABLE_NUMBERS, {}))
        thresholds = tuple(
            Threshold.from_table(t, f"threshold[{i}]", judged, schema)
            for i, t in enumerate(get_tables(table, "threshold"))
        )
        tables = read_planned_tables(get_tables(table, "table"), schema)
        return cls(
            heading.title,
            source,
            schema,
            datasets.m or (20 if synthesis else 1),
            datasets.seed,
            released,
            synthesis,
            measures,
            studies,
            thresholds,
            heading.description,
            heading.label,
            heading.companions,
            read_published_figures(get_tables(table, "published"), [s.method for s in (*measures, *studies)], schema),
            anonymisation,
            form,
            RecordWeighting.from_table(
                get_table(table, "weights"), [(step.place, step.method) for step in synthesis], schema
            ),
            SearchTable.from_table(get_table(table, "search")),
            PopulationStatement.from_table(get_table(table, "population"), schema),
            tables,
            TableProtection.from_table(get_table(table, "tables"), tables, schema),
            older_spellings,
        )

    def to_table(self) -> dict[str, Any]:
        """Return the recipe's table, which ``from_table`` reads back to an equal recipe."""
        scored = self.released if self.released and not self.makes_release else None
        release = DatasetsTable(self.m, self.seed, scored).to_table() | self.form.to_table(made=self.makes_release)
        table: dict[str, Any] = {
            **RecipeHeading(self.title, self.label, self.description, self.companions).to_table(),
            "data": self.data.to_table(),
            "population": {} if self.population is None else self.population.to_table(),
            "weights": {} if self.weights is None else self.weights.to_table(),
            "variables": {variable.name: variable.to_table() for variable in self.schema},
            "release": release,
            "synthesis": [step.to_table() for step in self.synthesis],
            "anonymisation": [step.to_table() for step in self.anonymisation],
            "measure": [step.to_table() for step in self.measures],
            "study": [step.to_table() for step in self.studies],
            "threshold": [threshold.to_table() for threshold in self.thresholds],
            "published": [figure.to_table() for figure in self.published],
            "constraints": {one.name: one.to_value() for one in self.schema.constraints},
            "search": {} if self.search is None else self.search.to_table(),
            "table": [one.to_table() for one in self.tables],
            "tables": {} if self.table_protection is None else self.table_protection.to_table(),
        }
        return {key: value for key, value in table.items() if value not in ("", [], {})}

    def settings(self, step: RecipeStep) -> dict[str, Any]:
        """Return the settings that the rows of one of its measures or studies state."""
        return settings_of_step(step, self.schema, self.released)

    def step_of_row(self, key: str, params: Mapping[str, Any]) -> RecipeStep | None:
        """Return the measure, study or account that made a row of method ``key``; None where that is ambiguous."""
        own = [(step, settings) for step, settings in self._settings_by_step if step.method.key == key]
        agreeing = [(step, settings) for step, settings in own if may_come_from_step(step.method, params, settings)]
        if agreeing:
            # A step with default settings agrees with the rows of others too, so the one with most settings made the
            # row.
            return max(agreeing, key=lambda one: len(one[1]))[0]
        # Rows stored by the first version state fewer settings: they belong to the step that agrees most.
        said = [sum(params.get(name) == value for name, value in settings.items()) for _, settings in own]
        return own[said.index(max(said))][0] if said and said.count(max(said)) == 1 else None

    @cached_property
    def _settings_by_step(self) -> tuple[tuple[RecipeStep, dict[str, Any]], ...]:
        kept = (step for step in self.synthesis if step.method.outputs)
        return tuple((step, self.settings(step)) for step in (*self.measures, *self.studies, *kept))

    @cached_property
    def constraint_plan(self) -> ConstraintPlan:
        """Return the assignment of constraints to synthesis steps."""
        return plan_constraints([step.targets for step in self.synthesis], self.schema)

    @property
    def packages(self) -> tuple[str, ...]:
        """Return the distinct distributions of its methods."""
        steps = (*self.synthesis, *self.anonymisation, *self.measures, *self.studies)
        return tuple(dict.fromkeys(step.method.package for step in steps))

    @property
    def makes_release(self) -> bool:
        """Return whether it has steps that make a release; otherwise it scores existing files."""
        return bool(self.synthesis or self.anonymisation)

    @property
    def has_tables_alone(self) -> bool:
        """Return whether a run of it makes tables and no dataset."""
        return bool(self.tables) and not self.makes_release

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the remarks for whoever runs it: limits that can hardly be meant, what rules of tables leave open, and
        older spellings.
        """
        rules = () if self.table_protection is None else self.table_protection.rules.warnings
        return (*threshold_warnings(self.thresholds), *rules, *self.older_spellings)

    @property
    def origin(self) -> Origin:
        """Return the origin of the released datasets: anonymised or synthetic."""
        return "anonymised" if self.anonymisation or self.form.changed_variables else "synthetic"

    @property
    def linked(self) -> bool:
        """Return whether it is known which confidential record each released record corresponds to."""
        if self.makes_release:
            # Records whose every variable one joint step synthesised correspond to no real person.
            return self.form.units != "drawn" and not is_made_whole(self.synthesis, self.schema)
        return bool(self.form.link) or self.form.order == "original"

    @property
    def released_schema(self) -> Schema:
        """Return the schema of the released datasets: that of the confidential data, but for anonymisation."""
        schema = schema_after(self.anonymisation, self.form.released_schema(self.schema))
        schema = with_made_units(schema) if self.form.units == "drawn" else schema
        return replace(schema, order=self.schema.order if self.schema.order in schema else "")

    def recode_data(self, data: Microdata) -> Microdata:
        """Return confidential records with the public rules of the release applied."""
        return recode_data(data.with_units(self.schema.unit_declaration), self.form.recode)

    @property
    def renumbered_units(self) -> tuple[str, ...]:
        """Return the variable that numbers the units where the release makes new ones; empty elsewhere."""
        return (str(self.schema.unit),) if self.form.units == "drawn" else ()

    @property
    def public_rules(self) -> dict[str, str]:
        """Return the recoding rules by variable, as public files state them."""
        return {name: rule.public_text(self.schema[name]) for name, rule in self.form.recode.items()}

    @property
    def generalised(self) -> frozenset[str]:
        """Return the variables that the release shows as labels of intervals or tree nodes."""
        found = frozenset(self.form.generalised)
        for i, step in enumerate(self.anonymisation):
            found |= anonymisation_spec(step).generalised(schema_after(self.anonymisation[:i], self.schema))
        return found

    def to_toml(self) -> str:
        return tomli_w.dumps(self.to_table())

    @property
    def sha256(self) -> str:
        """Return a hash of the recipe's content, whatever its layout."""
        return hashlib.sha256(json.dumps(self.to_table(), sort_keys=True).encode()).hexdigest()


def _read_schema(table: Mapping[str, Any]) -> Schema:
    """Return the schema of the recipe's variables. Raises BadInput."""
    variables = get_table(table, "variables")
    if not variables:
        raise BadInput("variables", 'name at least one column, such as price = { kind = "continuous" }')
    schema = Schema(tuple(Variable.from_table(name, item, f"variables.{name}") for name, item in variables.items()))
    check_survey_variables(schema)
    check_units(schema)
    return schema


def _measure_tables(table: Mapping[str, Any], schema: Schema) -> list[Mapping[str, Any]]:
    """Return the recipe's measures, followed by those that a recipe with constraints always has."""
    given = get_tables(table, "measure")
    if not schema.constraints:
        return list(given)
    asked = {str(one.get("method")) for one in given}
    return [*given, *({"method": key} for key, own in registry().items() if own.spec.implied and key not in asked)]


def _released_variables(
    datasets: DatasetsTable,
    form: ReleaseForm,
    synthesis: Sequence[RecipeStep],
    anonymisation: Sequence[RecipeStep],
    schema: Schema,
) -> tuple[str, ...]:
    """Return the variables that the release replaces: those of the steps or of [release], then those that it changes."""
    changed = {
        name
        for i, step in enumerate(anonymisation)
        for name in anonymisation_spec(step).changed(schema_after(anonymisation[:i], schema))
    }
    # the size of a unit is no variable of the release
    targets = tuple(name for step in synthesis for name in step.targets if name in schema)
    replaced = tuple(name for name in schema.names if name in changed) or targets or datasets.released or ()
    return (*replaced, *(name for name in form.changed_variables if name not in replaced))
