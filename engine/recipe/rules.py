"""Rules between sections of a recipe, one function each; a recipe is read first and checked afterwards.

Every rule raises BadInput that names the place in the file and a remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..constraints.binding import LevelComparison, bound_terms
from ..constraints.constraints import columns_of_constraint, schema_of_rule
from ..constraints.rejection_sampling import ConstraintPlan, check_redraws, plan_constraints, refuse_redrawn_models
from ..data.schema import Schema
from ..errors import BadInput
from ..methods.registry import registry
from ..methods.release_form import DatasetsTable, ReleaseForm
from .data_source import HOW_TO_HOLD_OUT, DataSource
from .steps import RecipeStep, anonymisation_spec, is_made_whole
from .unit_stages import UNITS, check_drawn_units, check_number_of_units, steps_of_stage


@dataclass(frozen=True, eq=False)
class RecipeSections:
    """Sections of a recipe as read, before they are compared with each other.

    datasets: number of datasets, and the variables of a release that is only scored
    form: form of released records
    released: variables that the release replaces
    is_stored: whether a run of the recipe is in a workspace
    """

    source: DataSource
    schema: Schema
    datasets: DatasetsTable
    form: ReleaseForm
    synthesis: tuple[RecipeStep, ...]
    anonymisation: tuple[RecipeStep, ...]
    measures: tuple[RecipeStep, ...]
    studies: tuple[RecipeStep, ...]
    released: tuple[str, ...]
    is_stored: bool = False

    @property
    def steps_about_release(self) -> tuple[RecipeStep, ...]:
        """Return the measures and studies."""
        return (*self.measures, *self.studies)

    @cached_property
    def constraint_plan(self) -> ConstraintPlan:
        """Return the assignment of constraints to synthesis steps."""
        return plan_constraints([step.targets for step in self.synthesis], self.schema)


def require_one_way_of_making(sections: RecipeSections) -> None:
    """Raise BadInput where a recipe both synthesises and anonymises."""
    if sections.synthesis and sections.anonymisation:
        raise BadInput("anonymisation[0]", "a recipe has [[synthesis]] or [[anonymisation]]; leave one out")


def require_own_number_of_records(sections: RecipeSections) -> None:
    """Raise BadInput where another number of records is requested although steps keep values of records."""
    form = sections.form
    check_number_of_units(sections.synthesis, form.units, form.number_of_units, form.records)
    if sections.form.records is not None and not is_made_whole(sections.synthesis, sections.schema):
        raise BadInput(
            "release.records",
            "only a step that makes every variable of the plan at once can release another number of records",
        )


def require_payable_public_figures(sections: RecipeSections) -> None:
    """Raise BadInput where public figures and privacy account do not suit each other."""
    place = "release.public_figures"
    account = any(step.method.synthesis.privacy.account for step in sections.synthesis)
    if sections.form.public_figures == "rounded" and account:
        raise BadInput(
            place,
            'a step keeps a privacy account, and rounding is no noise; set "paid" with public_figures_epsilon, or "internal"',
        )
    if sections.form.public_figures == "paid" and not account:
        raise BadInput(place, 'no step keeps a privacy account that could pay for noise; set "rounded", or "internal"')


def require_use_of_largest_unit(sections: RecipeSections) -> None:
    """Raise BadInput where records of a unit are bounded and no step counts or draws them up to that."""
    private = any(step.is_private for step in sections.synthesis)
    if sections.source.largest_unit is not None and not private and not sections.form.units:
        raise BadInput(
            "data.largest_unit", "no step has an epsilon or draws whole units, so it changes nothing; leave it out"
        )


def require_one_table_of_anonymisation(sections: RecipeSections) -> None:
    """Raise BadInput where [release] repeats or contradicts what anonymisation steps determine."""
    if sections.anonymisation and sections.datasets.released is not None:
        raise BadInput("release.released", "the anonymisation steps already say what is released; leave it out")
    if sections.anonymisation and sections.datasets.m not in (None, 1):
        raise BadInput("release.m", "an anonymised release is one table; leave m out")


def require_each_target_once(sections: RecipeSections) -> None:
    """Raise BadInput where two steps make the same variable."""
    targets = set[str]()
    for step in sections.synthesis:
        for name in step.targets:
            if name in targets:
                raise BadInput(f"{step.place}.target", f'"{name}" is synthesised twice')
            targets.add(name)


def require_predictors_made_before(sections: RecipeSections) -> None:
    """Raise BadInput where a parameter names a variable that its step or a later one makes."""
    if sections.form.units:
        # Variables of units are all drawn before any record.
        for by_unit in (True, False):
            own = [step for _, step in steps_of_stage(sections.synthesis, by_unit=by_unit)]
            _require_made_before(own, sections.schema)
    else:
        _require_made_before(sections.synthesis, sections.schema)


def _require_made_before(steps: Sequence[RecipeStep], schema: Schema) -> None:
    """Raise BadInput where a step names a variable that it makes, or one of these steps after it."""
    for position, step in enumerate(steps):
        # When the step draws, only the confidential values of later targets exist.
        later = [name for after in steps[position + 1 :] for name in after.targets]
        own = schema if step.table is None else step.table.schema
        for place, column, any_order in step.spec.referenced_columns(own, step.place):
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


UNIT_IN_STEP = '"{unit}" numbers units, so that a value stands for one of them; leave it out'
"""Why the number of the unit is neither predictor nor quasi-identifier."""


def refuse_unit_in_steps(sections: RecipeSections) -> None:
    """Raise BadInput where a step makes the number of the unit, or predicts or groups by it: it names a household."""
    unit = sections.schema.unit
    if unit is None:
        return
    for step in sections.synthesis:
        if unit in step.targets:
            raise BadInput(
                f"{step.place}.target",
                f'"{unit}" numbers units and says nothing of a record; leave it out, or set [release] units = "drawn", which gives them new numbers',
            )
        own = sections.schema if step.table is None else step.table.schema
        used = [place for place, column, _ in step.spec.referenced_columns(own, step.place) if column == unit]
        if used:
            raise BadInput(used[0], UNIT_IN_STEP.format(unit=unit))
    for step in sections.anonymisation:
        if unit in anonymisation_spec(step).keys(sections.schema):
            raise BadInput(f"{step.place}.quasi_identifiers", UNIT_IN_STEP.format(unit=unit))


def require_units_to_draw(sections: RecipeSections) -> None:
    """Raise BadInput where units are to be drawn or kept, and no step draws records, or a kept part names them."""
    if not sections.form.units:
        return
    if not sections.synthesis:
        raise BadInput(UNITS, "no step draws records; add [[synthesis]] steps, or leave it out")
    if sections.form.units == "drawn":
        check_drawn_units(sections.synthesis, sections.schema, sections.form.surrogate_keys, sections.form.until)


def require_units_for_rules(sections: RecipeSections) -> None:
    """Raise BadInput where steps draw records by themselves, and a rule is of whole units."""
    made = {name for step in sections.synthesis for name in step.targets}
    for one in sections.schema.constraints if not sections.form.units else ():
        if one.unit_terms and not made.isdisjoint(columns_of_constraint(one, sections.schema)):
            raise BadInput(
                f"constraints.{one.name}",
                f'{one.unit_terms[0]} is of a whole unit, and records are drawn by themselves; set units = "drawn" or '
                '"kept" under [release], or leave the rule out',
            )


def require_released_said_once(sections: RecipeSections) -> None:
    """Raise BadInput where [release] names variables although synthesis steps determine them."""
    if sections.datasets.released is not None and sections.synthesis:
        raise BadInput("release.released", "the synthesis steps already say what is released; leave it out")


def require_recode_of_kept_values(sections: RecipeSections) -> None:
    """Raise BadInput where recoding rules conflict with anonymisation or synthesis steps, or hide a level that a
    constraint names.
    """
    recode, schema = sections.form.recode, sections.schema
    if recode and sections.anonymisation:
        raise BadInput(
            "release.recode", "anonymisation steps make values coarser by hierarchies and widths; leave it out"
        )
    for name, rule in recode.items():
        if rule.is_of_numbers and name in _replaced(sections):
            what = "codes of the ends" if rule.has_end_codes else "steps"
            raise BadInput(
                f"release.recode.{name}",
                f'"{name}" is synthesised; {what} are of numbers that are kept, so leave it out',
            )
    for constraint in schema.constraints if recode else ():
        place = f"constraints.{constraint.name}"
        for bound in bound_terms(constraint.rule, schema_of_rule(constraint, schema), place):
            if not isinstance(bound, LevelComparison) or bound.column not in recode:
                continue
            shown = recode[bound.column].group_by_level
            if hidden := [level for level in bound.names if level in shown]:
                raise BadInput(
                    place,
                    f'level "{hidden[0]}" is released as "{shown[hidden[0]]}"; change the rule, or leave the level out of release.recode',
                )


def _replaced(sections: RecipeSections) -> tuple[str, ...]:
    """Return the targets of synthesis steps, or the released variables that a merely scored release names."""
    targets = tuple(name for step in sections.synthesis for name in step.targets)
    return targets or sections.datasets.released or ()


def require_makers_of_constraints(sections: RecipeSections) -> None:
    """Raise BadInput where a step would have to redraw records for a constraint and cannot."""
    check_redraws(sections.constraint_plan, sections.synthesis)


def require_measures_of_release(sections: RecipeSections) -> None:
    """Raise BadInput where a measure or study does not suit the released variables."""
    for step in sections.steps_about_release:
        step.spec.check_release(sections.schema, sections.released, step.place)


def require_holdout(sections: RecipeSections) -> None:
    """Raise BadInput where a measure needs control records and none are held out."""
    for step in sections.steps_about_release:
        if step.method.measurement.controls and sections.source.holdout is None:
            raise BadInput(
                f"{step.place}.method",
                f"{step.method.key} holds what an intruder finds against control records; {HOW_TO_HOLD_OUT}",
            )


def require_steps_to_refit(sections: RecipeSections) -> None:
    """Raise BadInput where a measure repeats the steps of a recipe that has none."""
    for step in sections.steps_about_release:
        if step.method.measurement.refits and not (sections.synthesis or sections.anonymisation):
            raise BadInput(
                f"{step.place}.method",
                f"{step.method.key} carries out the steps of the recipe again; add [[synthesis]] or [[anonymisation]] steps",
            )


def require_release_models(sections: RecipeSections) -> None:
    """Raise BadInput where a measure uses models of the release, and a step has none or there are no steps."""
    for step in sections.steps_about_release:
        if not step.method.uses_release_models:
            continue
        if sections.form.units:
            raise BadInput(
                f"{step.place}.method",
                f"{step.method.key} asks how probable single records are, and {UNITS} draws them from others of their unit; "
                "leave one of both out",
            )
        if not sections.synthesis:
            raise BadInput(
                f"{step.place}.method",
                f"{step.method.key} asks the models that made the release; add [[synthesis]] steps",
            )
        for made in sections.synthesis:
            if made.method.synthesis.release_model.make_model is None:
                able = [
                    method.name
                    for method in registry().values()
                    if method.synthesis.release_model.make_model is not None
                ]
                raise BadInput(
                    f"{step.place}.method",
                    f"{step.method.key} cannot ask {made.method.key} ({made.place}) how probable the release is; "
                    f"it can ask {', '.join(able)}",
                )
        refuse_redrawn_models(sections.constraint_plan, step.place, step.method.key)


def refuse_repeated_settings(sections: RecipeSections) -> None:
    """Raise BadInput where a list setting of a step has a repeated item."""
    # The first version allowed repeats, and its runs must stay readable.
    if sections.is_stored:
        return
    for step in (*sections.synthesis, *sections.anonymisation, *sections.steps_about_release):
        step.spec.check_repeats(step.place)


def refuse_repeated_steps(sections: RecipeSections) -> None:
    """Raise BadInput where a measure or study equals an earlier one."""
    if sections.is_stored:
        return
    steps = sections.steps_about_release
    # Its numbers would count twice in every average and interval. Completed settings are compared, since a default may
    # equal what another step states.
    full = [step.spec.for_release(sections.schema, sections.released) for step in steps]
    for i, step in enumerate(steps):
        for j, earlier in enumerate(steps[:i]):
            if step.method.key == earlier.method.key and full[i] == full[j]:
                raise BadInput(
                    step.place, f"is the same as {earlier.place}, {step.method.key}; change a setting or leave one out"
                )


RULES: Sequence[Callable[[RecipeSections], None]] = (
    require_one_way_of_making,
    require_own_number_of_records,
    require_payable_public_figures,
    require_use_of_largest_unit,
    require_one_table_of_anonymisation,
    require_each_target_once,
    refuse_unit_in_steps,
    require_units_to_draw,
    require_units_for_rules,
    require_predictors_made_before,
    require_released_said_once,
    require_recode_of_kept_values,
    require_makers_of_constraints,
    require_measures_of_release,
    require_holdout,
    require_steps_to_refit,
    require_release_models,
    refuse_repeated_settings,
    refuse_repeated_steps,
)
"""Rules for the steps that make a release, then for its measures."""


def check_sections(sections: RecipeSections) -> None:
    """Raise BadInput for the first rule that the sections break."""
    # Ordered, so that of two mistakes the one that explains the other is named.
    for rule in RULES:
        rule(sections)
