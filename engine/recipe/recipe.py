"""The whole plan as one value: data, variables, synthesis or anonymisation, measures, studies, thresholds. TOML in and out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import tomli_w

from ..constraints.constraints import ConstraintTable, OneOf, bound_terms, read_constraints
from ..constraints.rejection_sampling import ConstraintPlan, check_makers, check_synthesis_order, plan_constraints
from ..data.declaration import Param, ParamInfo, Section, declared, keys_of
from ..data.microdata import Microdata
from ..data.recoding import recoded
from ..data.schema import Origin, Role, Schema, Variable, check_names
from ..data.toml import read_toml, section_of, tables_of
from ..design.survey import check_declared, settings_of
from ..errors import BadInput
from ..methods.registry import Method, find, method_called, method_of_step, registry
from ..methods.release_form import AnonymisationSpec, Datasets, ReleaseForm
from ..methods.rows import may_be_of
from ..methods.spec import Spec, StudySpec
from .data_source import HOW_TO_HOLD_OUT, DataSource
from .published import Published, read_published
from .search_table import SearchTable
from .text_format import TextFormat
from .thresholds import Threshold, ThresholdTable
from .weights import Weighting

SECTIONS: Mapping[str, tuple[type[Section], ...]] = {
    "data": (DataSource,), "weights": (Weighting,), "variables": (Variable,), "release": (Datasets, ReleaseForm),
    "synthesis": (), "anonymisation": (), "measure": (), "study": (), "threshold": (ThresholdTable,), "published": (Published,),
    "constraints": (ConstraintTable,), "search": (SearchTable,),
}  # fmt: skip
"""The sections of a recipe, each with what declares its keys; those of steps are their methods'."""
MAKERS = ("synthesis", "anonymisation")
AS_A_METHOD = {"synthesis": "cart", "anonymisation": "mondrian", "studies": "studies.intruder_uncertainty"}
"""A method of a family as a step names it, for whoever has named none."""


def _recipe_name(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{value!r} must be the name of a recipe")
    return value


@dataclass(frozen=True, slots=True)
class Heading(Section):
    """What stands above the sections of a recipe."""

    title: Annotated[str, Param("what the run is called")] = ""
    label: Annotated[str, Param("what it is called beside its companions")] = ""
    description: Annotated[str, Param("what it is for")] = ""
    companions: Annotated[
        tuple[str, ...],
        Param("recipes to carry out on the same data", parse=_recipe_name, unique=True),
    ] = ()


def recipe_params(section: str) -> tuple[ParamInfo, ...]:
    """What declares the keys of a section, such as ``release`` or ``data.format``; ``recipe`` is the top level. Raises LookupError."""
    declaring = {"recipe": (Heading,), "data.format": (TextFormat,), **SECTIONS}[section]
    if not declaring:
        raise LookupError(section)
    return tuple(info for one in declaring for info in declared(one))


def recipe_keys(section: str) -> tuple[str, ...]:
    """The keys of a section. Raises LookupError for one that declares none."""
    return (*(info.name for info in recipe_params(section)), *(SECTIONS if section == "recipe" else ()))


@dataclass(frozen=True)
class Step:
    """One use of a method: its place in the recipe, the method, its parameters, and the variables a synthesis makes."""

    place: str
    method: Method
    spec: Spec
    targets: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """What a synthesis makes, in words."""
        return ", ".join(self.targets)

    def to_table(self) -> dict[str, Any]:
        """The recipe's table of this step."""
        of: str | list[str] = list(self.targets) if self.method.joint else self.target
        head: dict[str, Any] = {"target": of} if of else {}
        name = self.method.name if self.method.family in MAKERS else self.method.key
        return {**head, "method": name, **self.spec.to_table()}


@dataclass(frozen=True)
class Recipe:
    """A validated plan. ``m`` datasets are released, each with the ``released`` variables replaced.

    Synthesis steps make m datasets, anonymisation steps one, each on the table that the one before left.

    ``companions`` name recipes to carry out on the same data; ``label`` is what this one is called beside them.
    ``weights`` says by which earlier run single records have less influence; the weights themselves are no part of a recipe.
    """

    title: str
    data: DataSource
    schema: Schema
    m: int
    seed: int
    released: tuple[str, ...]
    synthesis: tuple[Step, ...] = ()
    measures: tuple[Step, ...] = ()
    studies: tuple[Step, ...] = ()
    thresholds: tuple[Threshold, ...] = ()
    description: str = ""
    label: str = ""
    companions: tuple[str, ...] = ()
    published: tuple[Published, ...] = ()
    anonymisation: tuple[Step, ...] = ()
    form: ReleaseForm = field(default_factory=ReleaseForm)
    weights: Weighting | None = None
    search: SearchTable | None = None

    @classmethod
    def from_toml(cls, text: str, *, stored: bool = False) -> Recipe:
        """The recipe that a TOML text writes. Raises BadInput that names the path in the file.

        ``stored`` says that a run of it lies in a workspace: the first version let steps stand in it twice.
        """
        return cls.from_table(read_toml(text), stored=stored)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], *, stored: bool = False) -> Recipe:
        """The recipe of a table as TOML or JSON reads it. Raises BadInput."""
        heading = Heading.read_section(table, "", others=tuple(SECTIONS))
        schema = _schema(table)
        schema = replace(schema, constraints=read_constraints(section_of(table, "constraints"), schema))
        source = DataSource.from_table(section_of(table, "data"))
        source.check_variables(schema)
        release = section_of(table, "release")
        datasets = Datasets.read_section(release, "release", others=keys_of(ReleaseForm))
        check_names(datasets, schema, "release")
        synthesis = tuple(_synthesis_step(t, i, schema) for i, t in enumerate(tables_of(table, "synthesis")))
        anonymisation = _anonymisation_steps(tables_of(table, "anonymisation"), schema)
        if synthesis and anonymisation:
            raise BadInput("anonymisation[0]", "a recipe has [[synthesis]] or [[anonymisation]]; leave one out")
        units = {name for step in synthesis for name in step.spec.units}
        form = ReleaseForm.from_table(release, schema, made=bool(synthesis or anonymisation), units=units)
        if form.records is not None and not _made_whole(synthesis, schema):
            raise BadInput(
                "release.records",
                "only a step that makes every variable of the plan at once can release another number of records",
            )
        _check_public_figures(form, synthesis)
        released = _anonymised_variables(datasets, anonymisation, schema) or _released(datasets, synthesis, schema)
        _check_recode_beside(form, released, anonymisation, schema)
        keeping = plan_constraints([step.targets for step in synthesis], schema)
        check_makers(keeping, synthesis)
        released = (*released, *(name for name in form.changed if name not in released))
        measures = tuple(
            _step(t, f"measure[{i}]", ("utility", "risk", "quality"), schema, ())
            for i, t in enumerate(_measures(table, schema))
        )
        studies = tuple(
            _of_recipe(_step(t, f"study[{i}]", ("studies",), schema, measures), synthesis)
            for i, t in enumerate(tables_of(table, "study"))
        )
        for step in (*measures, *studies):
            step.spec.check_release(schema, released, step.place)
            if step.method.measurement.controls and source.holdout is None:
                raise BadInput(
                    f"{step.place}.method",
                    f"{step.method.key} holds what an intruder finds against control records; {HOW_TO_HOLD_OUT}",
                )
            if step.method.measurement.refits and not (synthesis or anonymisation):
                raise BadInput(
                    f"{step.place}.method",
                    f"{step.method.key} carries out the steps of the recipe again; add [[synthesis]] or [[anonymisation]] steps",
                )
            if step.method.uses_release_models:
                _require_models(step, synthesis)
                check_synthesis_order(keeping, step.place, step.method.key)
        if not stored:
            for step in (*synthesis, *anonymisation, *measures, *studies):
                step.spec.check_repeats(step.place)
            _refuse_twice((*measures, *studies), schema, released)
        counted = (*(step for step in synthesis if step.method.outputs), *measures, *studies)
        judged = [(step.method, _settings_of(step, schema, released)) for step in counted]
        thresholds = tuple(
            Threshold.from_table(t, f"threshold[{i}]", judged, schema)
            for i, t in enumerate(tables_of(table, "threshold"))
        )
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
            read_published(tables_of(table, "published"), [s.method for s in (*measures, *studies)], schema),
            anonymisation,
            form,
            Weighting.from_table(
                section_of(table, "weights"), [(step.place, step.method) for step in synthesis], schema
            ),
            SearchTable.from_table(section_of(table, "search")),
        )

    def to_table(self) -> dict[str, Any]:
        """The table that ``from_table`` reads back to an equal recipe."""
        scored = self.released if self.released and not self.makes_release else None
        release = Datasets(self.m, self.seed, scored).to_table() | self.form.to_table(made=self.makes_release)
        table: dict[str, Any] = {
            **Heading(self.title, self.label, self.description, self.companions).to_table(),
            "data": self.data.to_table(),
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
        }
        return {key: value for key, value in table.items() if value not in ("", [], {})}

    def settings(self, step: Step) -> dict[str, Any]:
        """What the rows of one of its measures or studies say of how they were made."""
        return _settings_of(step, self.schema, self.released)

    def step_of(self, key: str, params: Mapping[str, Any]) -> Step | None:
        """The measure, study or account that made a row of method ``key``: of those that agree with it the one that says most.

        Rows that the first version stored say less. They are of the step that agrees most; None where two agree as much.
        """
        own = [(step, settings) for step, settings in self._settings if step.method.key == key]
        agreeing = [(step, settings) for step, settings in own if may_be_of(step.method, params, settings)]
        if agreeing:
            return max(agreeing, key=lambda one: len(one[1]))[0]
        said = [sum(params.get(name) == value for name, value in settings.items()) for _, settings in own]
        return own[said.index(max(said))][0] if said and said.count(max(said)) == 1 else None

    @cached_property
    def _settings(self) -> tuple[tuple[Step, dict[str, Any]], ...]:
        kept = (step for step in self.synthesis if step.method.outputs)
        return tuple((step, self.settings(step)) for step in (*self.measures, *self.studies, *kept))

    @cached_property
    def keeping(self) -> ConstraintPlan:
        """Which synthesis step keeps which constraint."""
        return plan_constraints([step.targets for step in self.synthesis], self.schema)

    @property
    def packages(self) -> tuple[str, ...]:
        """The distributions that its methods come from, each once."""
        steps = (*self.synthesis, *self.anonymisation, *self.measures, *self.studies)
        return tuple(dict.fromkeys(step.method.package for step in steps))

    @property
    def makes_release(self) -> bool:
        """Whether it has steps that make a release; if not, it scores what another tool made."""
        return bool(self.synthesis or self.anonymisation)

    @property
    def origin(self) -> Origin:
        """What the released datasets are."""
        return "anonymised" if self.anonymisation or self.form.changed else "synthetic"

    @property
    def linked(self) -> bool:
        """Whether it is known whose record a released one is: of a release that is only scored, the recipe says.

        Records of which one joint step has made every variable are nobody's.
        """
        if self.makes_release:
            return not _made_whole(self.synthesis, self.schema)
        return bool(self.form.link) or self.form.order == "original"

    @property
    def released_schema(self) -> Schema:
        """The schema of the released datasets: that of the confidential data, but for anonymisation."""
        return _schema_after(self.anonymisation, self.form.released_schema(self.schema))

    def recoded(self, data: Microdata) -> Microdata:
        """Confidential records as whoever applies the public rules of the release to them sees them."""
        return recoded(data, self.form.recode)

    @property
    def public_rules(self) -> dict[str, str]:
        """By variable the rule that makes it coarser, as public files tell it."""
        return {name: rule.in_public(self.schema[name]) for name, rule in self.form.recode.items()}

    @property
    def generalised(self) -> frozenset[str]:
        """The variables that the release shows as labels of intervals or of tree nodes."""
        found = frozenset(self.form.generalised)
        for i, step in enumerate(self.anonymisation):
            found |= _parameters(step).generalised(_schema_after(self.anonymisation[:i], self.schema))
        return found

    def to_toml(self) -> str:
        return tomli_w.dumps(self.to_table())

    @property
    def sha256(self) -> str:
        """A fingerprint of everything the recipe says, whatever its layout."""
        return hashlib.sha256(json.dumps(self.to_table(), sort_keys=True).encode()).hexdigest()


def _check_public_figures(form: ReleaseForm, synthesis: Sequence[Step]) -> None:
    """Raise BadInput for figures that a privacy account would have to pay for and does not, or cannot since there is none."""
    place, account = "release.public_figures", any(step.method.synthesis.account for step in synthesis)
    if form.public_figures == "rounded" and account:
        raise BadInput(
            place,
            'a step keeps a privacy account, and rounding is no noise; set "paid" with public_figures_epsilon, or "internal"',
        )
    if form.public_figures == "paid" and not account:
        raise BadInput(place, 'no step keeps a privacy account that could pay for noise; set "rounded", or "internal"')


def _check_recode_beside(
    form: ReleaseForm, released: Sequence[str], anonymisation: Sequence[Step], schema: Schema
) -> None:
    """BadInput where rules stand beside steps that make values coarser themselves, or hide a level that a constraint is about."""
    if form.recode and anonymisation:
        raise BadInput(
            "release.recode", "anonymisation steps make values coarser by hierarchies and widths; leave it out"
        )
    for name, rule in form.recode.items():
        if rule.width is not None and name in released:
            raise BadInput(
                f"release.recode.{name}",
                f'"{name}" is synthesised; steps are of numbers that are kept, so leave it out',
            )
    for constraint in schema.constraints if form.recode else ():
        place = f"constraints.{constraint.name}"
        for bound in bound_terms(constraint.rule, schema, place):
            if not isinstance(bound, OneOf) or bound.column not in form.recode:
                continue
            shown = form.recode[bound.column].targets
            if hidden := [level for level in bound.names if level in shown]:
                raise BadInput(
                    place,
                    f'level "{hidden[0]}" is released as "{shown[hidden[0]]}"; change the rule, or leave the level out of release.recode',
                )


def _schema(table: Mapping[str, Any]) -> Schema:
    variables = section_of(table, "variables")
    if not variables:
        raise BadInput("variables", 'name at least one column, such as price = { kind = "continuous" }')
    schema = Schema(tuple(Variable.from_table(name, item, f"variables.{name}") for name, item in variables.items()))
    check_declared(schema)
    return schema


def _settings_of(step: Step, schema: Schema, released: tuple[str, ...]) -> dict[str, Any]:
    return {**step.spec.settings(schema, released), **settings_of(step.method, schema)}


def _step(
    table: Mapping[str, Any], place: str, families: tuple[str, ...], schema: Schema, measures: Sequence[Step]
) -> Step:
    if "method" not in table:
        raise BadInput(
            place, f'needs a method, such as method = "{AS_A_METHOD.get(families[0], "risk.identification")}"'
        )
    found = find(str(table["method"]), f"{place}.method", families)
    rest = {key: value for key, value in table.items() if key != "method"}
    spec = found.spec.from_table({**_inherited(found, rest, measures), **rest}, place)
    spec.check(schema, place)
    return Step(place, found, spec)


def _measures(table: Mapping[str, Any], schema: Schema) -> list[Mapping[str, Any]]:
    """The recipe's measures, and after them those that a recipe with constraints has unasked."""
    given = tables_of(table, "measure")
    if not schema.constraints:
        return list(given)
    asked = {str(one.get("method")) for one in given}
    return [*given, *({"method": key} for key, own in registry().items() if own.spec.implied and key not in asked)]


def _require_models(step: Step, synthesis: Sequence[Step]) -> None:
    """BadInput where a measure asks for the models of the release, and a step has none or there are no steps."""
    if not synthesis:
        raise BadInput(
            f"{step.place}.method", f"{step.method.key} asks the models that made the release; add [[synthesis]] steps"
        )
    for made in synthesis:
        if made.method.synthesis.release_model is None:
            able = [found.name for found in registry().values() if found.synthesis.release_model is not None]
            raise BadInput(
                f"{step.place}.method",
                f"{step.method.key} cannot ask {made.method.key} ({made.place}) how probable the release is; "
                f"it can ask {', '.join(able)}",
            )


def _of_recipe(study: Step, synthesis: Sequence[Step]) -> Step:
    assert isinstance(study.spec, StudySpec)
    made = [(step.method.key, step.targets, step.spec) for step in synthesis]
    return replace(study, spec=study.spec.of_recipe(made))


def _refuse_twice(steps: Sequence[Step], schema: Schema, released: tuple[str, ...]) -> None:
    """BadInput where a step says what one before it says: its numbers would count twice in every average and interval."""
    full = [step.spec.for_release(schema, released) for step in steps]
    for i, step in enumerate(steps):
        for j, earlier in enumerate(steps[:i]):
            if step.method.key == earlier.method.key and full[i] == full[j]:
                raise BadInput(
                    step.place, f"is the same as {earlier.place}, {step.method.key}; change a setting or leave one out"
                )


def _inherited(found: Method, given: Mapping[str, Any], measures: Sequence[Step]) -> dict[str, Any]:
    values = {}
    for info in found.spec.params():
        lenders = [step for step in measures if step.method.key == info.param.inherit]
        if lenders and info.name not in given:
            values[info.name] = lenders[0].spec.to_full_table()[info.name]
    return values


def _synthesis_step(table: Mapping[str, Any], index: int, schema: Schema) -> Step:
    place = f"synthesis[{index}]"
    given = table.get("target")
    names = [name for name in (given if isinstance(given, list) else [given]) if isinstance(name, str)]
    if not names or (isinstance(given, list) and len(names) < len(given)):
        found = method_of_step("synthesis", str(table.get("method", "")))
        several = 'the variables to synthesise, such as target = ["age", "sex"]'
        one = 'the variable to synthesise, such as target = "price"'
        raise BadInput(place, f"needs a target, {several if found is not None and found.joint else one}")
    rest = {key: value for key, value in table.items() if key != "target"}
    step = _step(_with_family(rest, "synthesis"), place, ("synthesis",), schema, ())
    if isinstance(given, list) and not step.method.joint:
        raise BadInput(
            f"{place}.target", f'{step.method.name} makes one variable a step; give each its own, target = "{names[0]}"'
        )
    for i, name in enumerate(names):
        at = f"{place}.target[{i}]" if isinstance(given, list) else f"{place}.target"
        kind = schema.require(name, at).kind
        if step.method.synthesis.targets and kind not in step.method.synthesis.targets:
            raise BadInput(
                at,
                f'{step.method.name} produces {" or ".join(step.method.synthesis.targets)} variables; "{name}" is {kind}',
            )
    return Step(place, step.method, step.spec, tuple(names))


def _with_family(table: Mapping[str, Any], family: str) -> Mapping[str, Any]:
    name = str(table.get("method", ""))
    return table if method_called(f"{family}.{name}") is None else {**table, "method": f"{family}.{name}"}


def _anonymisation_steps(tables: Sequence[Mapping[str, Any]], schema: Schema) -> tuple[Step, ...]:
    steps: tuple[Step, ...] = ()
    for name in schema.of_role(Role.IDENTIFIER) if tables else ():
        raise BadInput(f"variables.{name}.role", "an identifier undoes the anonymity; leave the column out")
    for i, table in enumerate(tables):
        after = _schema_after(steps, schema)
        family = "anonymisation"
        steps = (*steps, _step(_with_family(table, family), f"{family}[{i}]", (family,), after, ()))
    return steps


def _parameters(step: Step) -> AnonymisationSpec:
    assert isinstance(step.spec, AnonymisationSpec)
    return step.spec


def _schema_after(steps: Sequence[Step], schema: Schema) -> Schema:
    for step in steps:
        schema = _parameters(step).released_schema(schema)
    return schema


def _anonymised_variables(datasets: Datasets, steps: Sequence[Step], schema: Schema) -> tuple[str, ...]:
    """The variables that the steps change, in the schema's order; empty without steps."""
    if steps and datasets.released is not None:
        raise BadInput("release.released", "the anonymisation steps already say what is released; leave it out")
    if steps and datasets.m not in (None, 1):
        raise BadInput("release.m", "an anonymised release is one table; leave m out")
    changed = {
        name for i, step in enumerate(steps) for name in _parameters(step).changed(_schema_after(steps[:i], schema))
    }
    return tuple(name for name in schema.names if name in changed)


def _released(datasets: Datasets, synthesis: Sequence[Step], schema: Schema) -> tuple[str, ...]:
    targets: tuple[str, ...] = ()
    for step in synthesis:
        for name in step.targets:
            if name in targets:
                raise BadInput(f"{step.place}.target", f'"{name}" is synthesised twice')
            targets = (*targets, name)
    for position, step in enumerate(synthesis):
        _check_order(step, [name for later in synthesis[position + 1 :] for name in later.targets], schema)
    if datasets.released is None:
        return targets
    if targets:
        raise BadInput("release.released", "the synthesis steps already say what is released; leave it out")
    return datasets.released


def _made_whole(synthesis: Sequence[Step], schema: Schema) -> bool:
    """Whether one joint step makes every variable that a record has, identifiers aside."""
    named = set(schema.but_identifiers)
    return len(synthesis) == 1 and synthesis[0].method.joint and named <= set(synthesis[0].targets)


def _check_order(step: Step, later: Sequence[str], schema: Schema) -> None:
    """BadInput where a parameter names a variable that this step or a later one makes: only its confidential value is there."""
    for place, column, any_order in step.spec.columns_named(schema, step.place):
        if any_order:
            continue
        if column in step.targets:
            raise BadInput(place, f'"{column}" would be drawn from its own confidential value; leave it out')
        if column in later:
            raise BadInput(
                place,
                f'"{column}" is synthesised by a later step, so its confidential value would be used; '
                "put that step first, or leave it out",
            )
