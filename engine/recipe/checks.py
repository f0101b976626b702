"""Checks of the confidential data against recipe and methods, before anything is computed or stored.

Each raises BadInput at the place that has to be corrected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..constraints.earlier_records import DropOut
from ..constraints.evaluation import check_constraint_levels
from ..constraints.unit_terms import SIZE
from ..data.arrays import BLOCK_THREADS, Floats
from ..data.microdata import Microdata, units_of
from ..data.recoding import check_rule_levels
from ..data.table_blocks import TableBlocks
from ..data.terms import check_domain, parse_term
from ..design.design_matrix import Design
from ..design.design_triangle import design_triangle
from ..design.survey import INFORMATION, check_survey_weights
from ..errors import BadInput
from ..methods.passes import run_passes
from ..methods.privacy import PrivacyAccount
from ..methods.registry import OWN
from ..statistics.columns import independent_columns
from ..wording import agreeing_word, count_noun
from .budget import NO_PACKAGES, TrustedPackages, check_budget
from .declared_tables import check_fixed_cells, declare_tables
from .recipe import Recipe
from .steps import RecipeStep
from .unit_stages import UNTIL


def require_complete(data: Microdata, target: str, terms: Sequence[str], place: str) -> None:
    """Raise BadInput at ``place.target`` or ``place.predictors[j]`` where records lack the target or a column of term
    j.
    """
    columns = [(f"{place}.target", target)]
    for j, text in enumerate(terms):
        where = f"{place}.predictors[{j}]"
        columns += [(where, name) for name in parse_term(text, data.schema, where).columns]
    for where, name in columns:
        if lacking := int(data.missing_mask(name).sum()):
            raise BadInput(
                where,
                f'{count_noun(lacking, "record")} {agreeing_word(lacking, "has", "have")} no "{name}"; these models need every value: use cart, or missing = "drop"',
            )


def require_varying(data: Microdata, name: str, place: str) -> None:
    """Raise BadInput at ``place`` where all records have the same value of this variable."""
    numbers = data.numbers(name)
    if (numbers == numbers[0]).all():
        raise BadInput(place, f'every value of "{name}" is the same; leave it out')


def require_full_rank(data: Microdata, terms: Sequence[str], place: str, triangle: Floats | None = None) -> None:
    """Raise BadInput at ``place[j]`` where the intercept and the terms before determine a column of term j.

    ``triangle`` (K, K) is that of the terms' design, where it is known. Weights are ignored.
    """
    parsed = [parse_term(text, data.schema, f"{place}[{j}]") for j, text in enumerate(terms)]
    design = Design.from_terms(parsed, data)
    if triangle is None:
        triangle = design_triangle(design, replace(data, weights=None))
    independent = independent_columns(triangle)
    if independent.all():
        return
    column = int(np.flatnonzero(~independent)[0])
    j = int(np.searchsorted(np.cumsum(design.widths), column))
    raise BadInput(
        f"{place}[{j}]",
        f'"{terms[j]}" is aliased: the intercept and the terms before it determine a column of it, or no record has '
        "one of its levels; leave it out",
    )


def check_steps(recipe: Recipe, data: Microdata, trusted_packages: TrustedPackages = NO_PACKAGES) -> None:
    """Raise BadInput at the step's place (``synthesis[1].predictors[2]``) where a step cannot be carried out on these
    data.

    Every step passes its method's own check; targets and predictors of synthesis steps must vary, and functions of
    columns must be defined; every record needs its survey weight; the run must keep to its privacy budget.
    """
    check_tables(recipe, data)
    check_survey_weights(data.without_controls)
    if recipe.data.screen is None:  # few records may lack a level that few have
        check_rule_levels(recipe.form.recode, data, "release.recode")
    exact, data = data, recipe.recode_data(data)
    own = data.without_controls
    _check_unit_numbers(recipe, own)
    for step in recipe.synthesis:
        table = step.fitted_table(own)
        # To refuse a constant target of a step with a privacy account would reveal something of the records.
        for name in step.targets if step.method.synthesis.privacy.account is None else ():
            if table is own or name != SIZE:  # all units may have as many records
                require_varying(table, name, f"{step.place}.target")
        _check_predictors(step, table)
    if recipe.form.until in recipe.schema:
        _check_drop_out(own, recipe.form.until)
    asked = tuple(
        name for step in recipe.synthesis if step.method.synthesis.release_model.make_model for name in step.targets
    )
    # Later anonymisation steps work on a table that does not exist yet.
    for step in recipe.synthesis:
        step.method.check_data(step.fitted_table(own), step.targets, step.spec, step.place)
    for step in (*recipe.anonymisation[:1], *recipe.measures, *recipe.studies):
        targets = asked if step.method.measures_whole_release else step.targets
        # As tables_to_compare: utility is measured by exact values, risk by recoded ones.
        seen = exact if step.method.family in INFORMATION else data
        step.method.check_data(
            seen if step.method.measurement.controls else seen.without_controls, targets, step.spec, step.place
        )
    check_constraint_levels(data, recipe.schema)
    check_budget(recipe, data.without_controls, trusted_packages)


def check_steps_of_blocks(recipe: Recipe, blocks: TableBlocks) -> bool:
    """Return whether a table that is read in blocks passes ``check_steps``; False where only the whole table can tell.

    The recipe's steps work in passes on plain records (``sfumato.engine.execution.in_passes``), with no private step. A
    method's check then asks for what every record has, such as a value, or for what some have, such as another one: a
    table has both where each of its blocks has. Methods whose passes check the data are carried out.
    """
    varying: dict[str, Floats | None] = {}
    passing = [step for step in recipe.synthesis if getattr(step.method.synthesis.fit_passes, "checks_data", False)]
    try:
        for block in blocks.iterate_blocks():
            for step in recipe.synthesis:
                _note_varying(varying, step, block)
                _check_terms(step, block)
                if step not in passing:
                    step.method.check_data(block, step.targets, step.spec, step.place)
            for measure in recipe.measures:
                measure.method.check_data(block, measure.targets, measure.spec, measure.place)
        for step in passing:
            passes = step.method.synthesis.fit_passes
            assert passes is not None
            targets = step.method.targets_of_passes(step.targets)
            first = passes.start(blocks.head, targets, step.spec, blocks.n_blocks)
            run_passes(first, [blocks], passes.block, passes.merge, threads=BLOCK_THREADS)
    except BadInput:
        return False
    return all(first is None for first in varying.values())


def _note_varying(varying: dict[str, Floats | None], step: RecipeStep, block: Microdata) -> None:
    """Note of each variable that must vary the first value of the table, None once another one was found."""
    names = [
        *step.targets,
        *(name for _, name, any_order in step.spec.referenced_columns(block.schema, step.place) if not any_order),
    ]
    for name in dict.fromkeys(names):
        numbers = block.numbers(name)
        first = varying.setdefault(name, numbers[:1])
        if first is not None and not (numbers == first).all():
            varying[name] = None


def check_tables(recipe: Recipe, data: Microdata) -> None:
    """Raise BadInput where a table of the recipe cannot be made of these data, or where a recipe of tables alone measures
    datasets.
    """
    if not recipe.tables:
        return
    if recipe.has_tables_alone and (steps := (*recipe.measures, *recipe.studies)):
        raise BadInput(
            steps[0].place,
            "measures datasets, and this recipe makes none: it has tables alone, whose numbers every run has; leave it out",
        )
    private = next((step for step in recipe.synthesis if _keeps_account(recipe, step, data)), None)
    if private is not None:
        raise BadInput(
            "table[0]",
            f"printed sums are exact and have no epsilon, which {private.place} keeps an account of; print the tables in a "
            "recipe of their own",
        )
    declared = declare_tables(data.without_controls.with_units(recipe.schema.unit_declaration), recipe.tables)
    if recipe.table_protection is not None:
        check_fixed_cells(declared, recipe.table_protection)


def _keeps_account(recipe: Recipe, step: RecipeStep, data: Microdata) -> bool:
    """Return whether a step keeps a privacy account with its settings: rounded margins keep none, noisy ones do."""
    account = step.method.synthesis.privacy.account
    if account is None or step.method.package != OWN:
        return account is not None
    records = len(data) if recipe.form.records is None else recipe.form.records
    counted = step.fitted_table(recipe.recode_data(data))
    return isinstance(account(counted, step.targets, step.spec, records, recipe.m), PrivacyAccount)


def _check_drop_out(data: Microdata, name: str) -> None:
    """Raise BadInput where the yes/no variable of drop-out does not mark the last records of units."""
    units = units_of(data)
    wrong = (data.numbers(name) == 1) != DropOut.of_data(data).mark_records(data)
    if broken := len(np.unique(units.unit_of[wrong])):
        raise BadInput(
            UNTIL,
            f'"{name}" must be the second level in the last record of a unit that drops out, and nowhere else; '
            f"{count_noun(broken, 'unit')} {agreeing_word(broken, 'differs', 'differ')}: correct the file, or name a "
            "variable that it does not have, which is then made",
        )


def _check_unit_numbers(recipe: Recipe, data: Microdata) -> None:
    """Raise BadInput where a private step bounds the records of units, and records have no number of one."""
    unit = recipe.schema.unit
    if unit is None or recipe.data.largest_unit is None or not any(step.is_private for step in recipe.synthesis):
        return
    if lacking := int(data.missing_mask(unit).sum()):
        raise BadInput(
            f"variables.{unit}",
            f'{count_noun(lacking, "record")} {agreeing_word(lacking, "has", "have")} no "{unit}", so nothing bounds how many of '
            'them one unit has; fill the gaps, or leave such records out with missing = "drop" under [data]',
        )


def _check_predictors(step: RecipeStep, data: Microdata) -> None:
    """Raise BadInput where a predictor is constant, or outside the domain of its function."""
    # As of a target: to refuse a constant one would reveal something of the records.
    is_private = step.table is not None and step.is_private
    for place, column, any_order in step.spec.referenced_columns(data.schema, step.place):
        if not any_order and not is_private:
            require_varying(data, column, place)
    _check_terms(step, data)


def _check_terms(step: RecipeStep, data: Microdata) -> None:
    """Raise BadInput where a predictor is outside the domain of its function."""
    for place, text in step.spec.predictor_terms(step.place):
        for factor in parse_term(text, data.schema, place).factors:
            check_domain(factor, data.numbers(factor.column), place)
