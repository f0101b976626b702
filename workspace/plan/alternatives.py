"""Offers of other steps for a plan, and the levers by which a search applies them.

Offered are: other methods for each synthesised variable, a step for each kept variable, one step of a joint method for
all of them, public rules that coarsen quasi-identifiers, and other anonymisations with what they leave to local
suppression. Methods offer them as they offer the steps of a draft (``engine.methods.drafting``). Offers follow from the
records, so a search stores them as it begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.engine.adversary.kept_columns import join_neighbouring_levels, join_rare_levels, plan_protection
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.recoding_rules import RecodeRule
from sfumato.engine.data.schema import Kind, Role, Variable
from sfumato.engine.design.binning import BinningRule
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.drafting import Case, Offer
from sfumato.engine.methods.registry import Method, method_by_key, method_of_step
from sfumato.engine.methods.table_profile import TableProfile, profile_table
from sfumato.engine.partition.generated_hierarchies import propose_hierarchies
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.steps import RecipeStep
from sfumato.engine.recipe.weights import risk_by_known_variables
from sfumato.engine.search.space import (
    PREDICTORS,
    LeverOption,
    RecipeTable,
    SearchLever,
    declared_levers,
    narrow_levers,
    order_lever,
)
from sfumato.engine.wording import join_first_names

from ..policy.policy import Policy
from .drafting import ranked_offers
from .edits import step_targets
from .hierarchies import proposed_hierarchies
from .protection import DraftAudience, is_counted

ADDED_LEVER = "synthesise besides"
"""Name of the lever that synthesises kept variables too, the most informative first."""
METHOD_LEVER = "method of {}"
ANONYMISATION = "anonymisation"
JOINT_LEVER = "joint synthesis"
"""Name of the lever that replaces the plan's steps by one step of a joint method."""
BINS = "bins"
RECODE = "recode"
"""The key of the offer to make quasi-identifiers coarser: by variable rules of ``[release] recode``, the finest first."""
COARSENING_LEVER = "coarsening of {}"
PROTECTION_LEVER = "kept columns"
"""Name of the lever that coarsens kept columns and synthesises others until the audience may have the rest."""
AS_PLANNED = "as in the plan"
MAX_WIDTHS = 3
MIN_UNIQUE_SHARE = 0.01
"""Share of people with unique quasi-identifiers from which on some have to be hidden."""
RARE_LEVEL_PEOPLE = 10
"""People: the gate's rare level, where no policy says otherwise."""
RARE_LEVEL_MULTIPLES = (1, 5)
"""Multiples of the rare level: a level with this number of people is common enough to stay."""
WEIGHTS_LEVER = "weights of records at risk"
WEIGHT_STRENGTHS = (0.5, 1.0)
"""Weight that a unique record loses."""
BIN_MULTIPLES = {AS_PLANNED: 1, "half as many": 2, "a quarter": 4}
"""Settings of the lever of bins, with the number of bins that are joined."""
KEPT_SECTIONS = ("data", "population", "variables", "release")
GUARANTEES = ("k", "l", "t")


def offered_steps(recipe: Recipe, data: Microdata, rare: int = RARE_LEVEL_PEOPLE) -> tuple[RecipeTable, ...]:
    """List what methods offer for a plan on these data, each as a table.

    A table is a synthesis step of one variable, ``{"joint synthesis": step}``, ``{"anonymisation": [steps]}``, or
    ``{"recode": rules}``: rules by which quasi-identifiers become coarser, with levels of fewer than ``rare`` people
    joined.
    """
    seen = profile_table(data)
    if recipe.synthesis:
        together = ({JOINT_LEVER: step} for step in _joint_steps(recipe, seen, data))
        rules = _coarser_quasi_identifiers(recipe, data, rare)
        coarser = ({RECODE: rules},) if rules else ()
        if recipe.form.units:
            # Other steps would lose what a record takes from those before it.
            return coarser
        return (
            *steps_for_kept_variables(recipe, seen),
            *_steps_by_other_methods(recipe, seen, data),
            *together,
            *coarser,
        )
    return tuple({ANONYMISATION: steps} for steps in _other_anonymisations(recipe, seen, data))


def offered_protection(recipe: Recipe, data: Microdata, policy: Policy) -> tuple[RecipeTable, ...]:
    """Return the changes with which the audience may have the columns that a synthesis keeps, as one table in a tuple.

    The table is ``{"kept columns": {"recode": ..., "steps": ...}}``. The tuple is empty where the audience may have the
    columns unchanged, or where a column cannot be synthesised.
    """
    if not recipe.synthesis or recipe.form.units:
        return ()
    audience = DraftAudience.from_policy(policy, None, recipe.to_table())
    counting = [
        v.name for v in recipe.schema if v.name not in recipe.released and is_counted(v.role)
        and audience.counts_column(v.name, recipe.schema.names_by_role(Role.QUASI_IDENTIFIER))
    ]  # fmt: skip
    holdout = recipe.data.holdout if isinstance(recipe.data.holdout, float) else 0.0
    limits = audience.limits.limits.limits_before_removal(holdout)
    plan = plan_protection(recipe.recode_data(data.without_controls), counting, limits)
    steps = [step for step in steps_for_kept_variables(recipe, profile_table(data)) if step["target"] in plan.replaced]
    if not plan.changes or len(steps) < len(plan.replaced):
        return ()
    return ({PROTECTION_LEVER: {RECODE: {name: rule.written for name, rule in plan.rules.items()}, "steps": steps}},)


def _protection_lever(offered: Mapping[str, Any]) -> SearchLever:
    """Return the lever of ``offered_protection``: the kept columns unchanged, or as the audience may have them."""
    steps, rules = offered["steps"], offered[RECODE]
    names = [str(step["target"]) for step in steps]

    def change(table: RecipeTable) -> None:
        """Synthesise and recode the kept columns in a recipe's table."""
        made = {name for step in table.get("synthesis", ()) for name in step_targets(step)}
        # Another lever may synthesise some of these columns already.
        left = [(at, step) for at, step in enumerate(steps) if step["target"] not in made]
        drawn = [{**step, PREDICTORS: [name for name in names[:at] if name not in made]} for at, step in left]
        table["synthesis"] = [*drawn, *table.get("synthesis", ())]
        form = table.get("release", {})
        # A rule that the plan has already stays: the search may have turned it further.
        own = {name: rule for name, rule in rules.items() if name not in form.get(RECODE, {}) and name not in made}
        if own:
            table["release"] = {**form, RECODE: {**form.get(RECODE, {}), **own}}
        _remove_unusable_weights(table)

    return SearchLever(
        PROTECTION_LEVER, (LeverOption(AS_PLANNED, _keep_plan), LeverOption("as the audience may have them", change)), 0
    )


def build_levers(recipe: Recipe, offered: Sequence[Mapping[str, Any]]) -> list[SearchLever]:
    """Build the levers of a plan with what methods offered for it.

    Raises BadInput where the plan's ``[search]`` narrows them to values that they do not have.
    """
    made = {name for step in recipe.synthesis for name in step.targets}
    besides = [one for one in offered if "target" in one and one["target"] not in made]
    others = [one for one in offered if one.get("target") in made]
    anonymisations = [one[ANONYMISATION] for one in offered if ANONYMISATION in one]
    narrowed = {} if recipe.search is None else recipe.search.levers
    joint = [
        one[JOINT_LEVER]
        for one in offered
        # A slow joint method would use up the search's time: it is tried only where the recipe names the lever.
        if JOINT_LEVER in one and (JOINT_LEVER in narrowed or not _is_slow_step(one[JOINT_LEVER]))
    ]
    alone = [[one] for one in (*others, *joint)]
    steps = [
        *_parse_offered_steps(recipe, "synthesis", alone),
        *_parse_offered_steps(recipe, ANONYMISATION, anonymisations),
    ]
    found: list[SearchLever | None] = [
        *(_method_lever(step, others) for step in recipe.synthesis),
        order_lever(recipe),
        _added_variables_lever(besides) if besides else None,
        *(_protection_lever(one[PROTECTION_LEVER]) for one in offered if PROTECTION_LEVER in one),
        _anonymisation_lever(anonymisations) if anonymisations else None,
        _joint_lever(joint) if joint else None,
        _bins_lever(recipe, joint),
        *(_recoding_lever(recipe, name, rules) for one in offered for name, rules in one.get(RECODE, {}).items()),
        *declared_levers(recipe, others=steps),
        _weights_lever(recipe, [*recipe.synthesis, *steps]),
    ]
    return narrow_levers([lever for lever in found if lever is not None], narrowed)


def _parse_offered_steps(
    recipe: Recipe, section: str, plans: Sequence[Sequence[Mapping[str, Any]]]
) -> list[RecipeStep]:
    """Parse the steps of offered plans of one section."""
    found: list[RecipeStep] = []
    for tables in plans:
        own = Recipe.from_table({**_table_without_steps(recipe), section: list(tables)})
        found += own.synthesis if section == "synthesis" else own.anonymisation
    return found


def _table_without_steps(recipe: Recipe) -> RecipeTable:
    """Return the recipe's tables ``data``, ``variables`` and ``release``."""
    return {key: value for key, value in recipe.to_table().items() if key in KEPT_SECTIONS}


def _draft_case(recipe: Recipe, profile: TableProfile, **more: Any) -> Case:
    """Return the case that methods are asked about for a plan; ``more`` sets further fields."""
    known, sensitive = (recipe.schema.names_by_role(role) for role in (Role.QUASI_IDENTIFIER, Role.SENSITIVE))
    want: Any = "synthesis" if recipe.synthesis else "anonymisation"
    return Case(want, profile.with_schema(recipe.schema), known, sensitive, recipe.released, m=recipe.m, **more)


def steps_for_kept_variables(recipe: Recipe, profile: TableProfile) -> tuple[RecipeTable, ...]:
    """Return a step for each variable that the plan keeps, by the most suited method, most distinct values first."""
    kept = [
        v.name
        for v in recipe.schema
        if v.name not in recipe.released and v.role not in (Role.IDENTIFIER, Role.UNIT, Role.WEIGHT)
    ]
    case = replace(_draft_case(recipe, profile), known=(), sensitive=(), released=tuple(kept))
    steps = [_best_step(replace(case, target=profile[name])) for name in kept]
    found = [step for step in steps if step is not None]
    return tuple(sorted(found, key=lambda step: (-profile[step["target"]].distinct, step["target"])))


def _best_step(case: Case) -> RecipeTable | None:
    """Return a step for the case's target by the most suited method that takes predictors; None where none offers one.

    Its predictors are left to the lever that adds the step.
    """
    assert case.target is not None
    for method, offer in ranked_offers(case, "synthesis", case.target.variable.kind):
        if PREDICTORS in {info.name for info in method.spec.params()}:
            return {"method": method.name, "target": case.target.name, **offer.settings}
    return None


def _steps_by_other_methods(recipe: Recipe, profile: TableProfile, data: Microdata) -> Iterator[RecipeTable]:
    """Yield a step by each other method for every variable with a step of its own, with the same predictors.

    Steps that the data do not allow are left out.
    """
    for step in recipe.synthesis:
        if step.method.joint:
            continue
        (name,) = step.targets
        named = {one.column: None for one in step.spec.referenced_columns(recipe.schema, step.place)}
        case = _draft_case(recipe, profile, target=profile[name], predictors=tuple(one for one in named if one != name))
        for method, offer in ranked_offers(case, "synthesis", recipe.schema[name].kind):
            table = {"method": method.name, "target": name, **offer.settings}
            if method.key != step.method.key and _is_accepted(
                {**_table_without_steps(recipe), "synthesis": [table]}, data
            ):
                yield table


def _joint_steps(recipe: Recipe, profile: TableProfile, data: Microdata) -> Iterator[RecipeTable]:
    """Yield one step of each joint method, for the variables that the plan's steps make, else for every variable.

    Nothing is yielded for plans that have a joint step already, or survey weights or a design.
    """
    if any(step.method.joint for step in recipe.synthesis) or any(_belongs_to_survey_design(v) for v in recipe.schema):
        return
    case = replace(_draft_case(recipe, profile), target=None)
    # Records that are synthesised whole belong to no real person, so a limit on the risk of single people could not be
    # computed for them.
    single = any(_is_per_record_measure(one.value) for one in recipe.thresholds)
    offered: set[str] = set()
    for released in (case.released, *([] if single else [case.compared_variables])):
        for method, offer in ranked_offers(replace(case, released=released), "synthesis", joint=True):
            table = {"method": method.name, "target": list(released), **offer.settings}
            if method.key not in offered and _is_accepted({**_table_without_steps(recipe), "synthesis": [table]}, data):
                offered.add(method.key)
                yield table


def _belongs_to_survey_design(variable: Variable) -> bool:
    """Return whether a variable is a survey weight or part of a survey's design."""
    return variable.role is Role.WEIGHT or variable.design is not None


def _is_per_record_measure(value: str) -> bool:
    """Return whether a limit is on a measure that has a value for each record."""
    method = method_by_key(value.rpartition(".")[0])
    return method is not None and bool(method.measurement.per_record)


def _is_accepted(table: RecipeTable, data: Microdata) -> bool:
    """Return whether a recipe's table is valid on the data."""
    try:
        check_steps(Recipe.from_table(table), data)
    except BadInput:
        return False
    return True


def _other_anonymisations(recipe: Recipe, profile: TableProfile, data: Microdata) -> Iterator[list[RecipeTable]]:
    """Yield the steps of other anonymisations that guarantee what the plan's last step does.

    Steps by one method come first, then pairs of an unfinished anonymisation and a step that finishes it.
    """
    last = recipe.anonymisation[-1]
    asked = {name: getattr(last.spec, name) for name in GUARANTEES if hasattr(last.spec, name)}
    if "k" not in asked or hasattr(last.spec, "p"):
        return
    wanted = {"k": asked["k"], "l": _none_unless_above_1(asked.get("l")), "t": _none_unless_below_1(asked.get("t"))}
    known = last.spec.keys(recipe.schema) if hasattr(last.spec, "keys") else ()
    case = replace(_draft_case(recipe, profile, **wanted, **proposed_hierarchies(data, known)), known=tuple(known))
    offers = ranked_offers(case, ANONYMISATION)
    own = [step.method.key for step in recipe.anonymisation]
    for one in _anonymisation_plans(offers):
        names = [f"{ANONYMISATION}.{table['method']}" for table in one]
        if names != own and _is_accepted({**_table_without_steps(recipe), ANONYMISATION: one}, data):
            yield one


def _none_unless_above_1(value: float | None) -> float | None:
    """Return the value if it is above 1, the trivial l of l-diversity, else None."""
    return value if value is not None and value > 1 else None


def _none_unless_below_1(value: float | None) -> float | None:
    """Return the value if it is below 1, the trivial t of t-closeness, else None."""
    return value if value is not None and value < 1 else None


def _anonymisation_plans(offers: Sequence[tuple[Method, Offer]]) -> Iterator[list[RecipeTable]]:
    """Yield each offered step alone, then each unfinished one followed by each step that finishes it."""
    for method, offer in sorted(offers, key=lambda one: one[1].finishes):
        yield [{"method": method.name, **offer.settings}]
    for method, offer in offers:
        for after, finishing in offers:
            if offer.unfinished and finishing.finishes:
                yield [
                    {"method": method.name, **offer.settings, **offer.unfinished},
                    {"method": after.name, **finishing.settings},
                ]


def _added_variables_lever(besides: Sequence[Mapping[str, Any]]) -> SearchLever:
    """Return the lever of additional synthesis: none of the kept variables, the first one, two, half of them, or all."""
    counts = sorted(count for count in {0, 1, 2, -(-len(besides) // 2), len(besides)} if count <= len(besides))
    names = [str(step["target"]) for step in besides]

    def option(count: int) -> LeverOption:
        """Return the option of a lever that synthesises the first ``count`` kept variables."""

        def change(table: RecipeTable) -> None:
            """Add their steps before those of the plan."""
            # Predictors are the variables that stay, and those synthesised before: never one that is synthesised later.
            steps = [{**step, PREDICTORS: [*names[count:], *names[:at]]} for at, step in enumerate(besides[:count])]
            table["synthesis"] = [*steps, *table.get("synthesis", ())]
            _remove_unusable_weights(table)

        return LeverOption(join_first_names(names[:count], 2) or "nothing", change)

    return SearchLever(ADDED_LEVER, tuple(option(count) for count in counts), 0, setting="kept", later_is_larger=False)


def _method_lever(step: RecipeStep, others: Sequence[Mapping[str, Any]]) -> SearchLever | None:
    """Return the lever of other methods for the variable of a step; None where no other is offered."""
    own = [one for one in others if one["target"] in step.targets]
    if not own:
        return None
    (name,) = step.targets

    def option(given: Mapping[str, Any]) -> LeverOption:
        """Return the option of a lever that replaces the step by the one step ``given``."""

        def change(table: RecipeTable) -> None:
            table["synthesis"] = [dict(given) if one.get("target") == name else one for one in table["synthesis"]]
            _remove_unusable_weights(table)

        return LeverOption(str(given["method"]), change)

    options = (LeverOption(step.method.name, _keep_plan), *(option(one) for one in own))
    return SearchLever(
        METHOD_LEVER.format(name), options, 0, later_protects_more=False, setting="method", variables=frozenset({name})
    )


def _is_slow_step(step: Mapping[str, Any]) -> bool:
    """Return whether a step's method takes many times as long as others."""
    method = method_of_step("synthesis", str(step["method"]))
    return method is not None and method.spec.slow


def _joint_lever(steps: Sequence[Mapping[str, Any]]) -> SearchLever:
    """Return the lever that replaces all steps of a synthesis by one step of a joint method."""

    def option(given: Mapping[str, Any]) -> LeverOption:
        """Return the option that replaces all steps by ``given``."""

        def change(table: RecipeTable) -> None:
            """Replace the steps of a recipe's table by one that synthesises the same variables."""
            made = [str(name) for one in table.get("synthesis", ()) for name in step_targets(one)]
            step = dict(given)
            if PREDICTORS in given:
                # Another lever may have changed which variables are synthesised since the step was offered.
                every = [*step_targets(given), *given[PREDICTORS]]
                step |= {"target": made, PREDICTORS: [name for name in every if name not in made]}
            table["synthesis"] = [step]
            _remove_unusable_weights(table)

        return LeverOption(str(given["method"]), change)

    options = (LeverOption(AS_PLANNED, _keep_plan), *(option(step) for step in steps))
    return SearchLever(JOINT_LEVER, options, 0, later_protects_more=False, setting="method")


def _bins_lever(recipe: Recipe, joint: Sequence[Mapping[str, Any]]) -> SearchLever | None:
    """Return the lever of wider bins for the numbers that steps synthesise in bins; None where none does."""
    if not any(one.get(BINS) for one in (*joint, *(step.to_table() for step in recipe.synthesis))):
        return None

    def option(label: str, times: int) -> LeverOption:
        """Return the option that joins ``times`` bins into one."""

        def change(table: RecipeTable) -> None:
            """Make the bins of all steps wider."""
            for step in table.get("synthesis", ()):
                if BINS in step:
                    step[BINS] = {
                        name: BinningRule.parse(rule).with_coarser_bins(times).written
                        for name, rule in step[BINS].items()
                    }

        return LeverOption(label, change)

    return SearchLever(BINS, tuple(option(label, times) for label, times in BIN_MULTIPLES.items()), 0, setting=BINS)


def _coarser_quasi_identifiers(recipe: Recipe, data: Microdata, rare: int) -> RecipeTable:
    """Return, by quasi-identifier, the rules that make it coarser, the finest first.

    For numbers these are steps, for levels groups of those that few people have. Empty where hardly anybody is unique.
    """
    found: RecipeTable = {}
    known = recipe.schema.names_by_role(Role.QUASI_IDENTIFIER)
    # Rules would protect no one here, and each lever leaves a search fewer looks for all others. They are learnt from
    # the records, and public once a plan with them is released.
    if not known or (risk_by_known_variables(data, known) == 1).mean() < MIN_UNIQUE_SHARE:
        return found
    for name in known:
        variable = recipe.schema[name]
        if variable.kind is Kind.BINARY or variable.design is not None or not len(data.frame[name].dropna()):
            continue
        if variable.kind.has_levels:
            column = data.frame[name].cat.remove_unused_categories().cat
            counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.categories))
            join = join_neighbouring_levels if variable.kind is Kind.ORDINAL else join_rare_levels
            rules: list[Any] = [
                join(list(map(str, column.categories)), counts, times * rare) for times in RARE_LEVEL_MULTIPLES
            ]
        else:
            # Steps of width 1 leave whole numbers and dates as they are.
            least = 2 if variable.kind is not Kind.CONTINUOUS else 0
            rules = [width for width in propose_hierarchies(data, name)[0].widths if width >= least][:MAX_WIDTHS]
        if rules := [one for at, one in enumerate(rules) if one and one not in rules[:at]]:
            found[name] = [RecodeRule.parse(one).written for one in rules]
    return found


def _recoding_lever(recipe: Recipe, name: str, rules: Sequence[Any]) -> SearchLever | None:
    """Return the lever of the recoding rules of one variable; None where no rule is possible."""
    now = recipe.form.recode.get(name)
    possible = [RecodeRule.parse(rule) for rule in rules]
    if now is not None:
        possible = [
            # Only what is coarser than the plan's rule: a search must not undo it.
            rule
            for rule in possible
            if now.is_of_numbers and rule != now and rule.remaining_after(now) is not None
        ]
    if not possible:
        return None

    def option(rule: RecodeRule) -> LeverOption:
        """Return the option that recodes the variable by ``rule``."""

        def change(table: RecipeTable) -> None:
            """Add the rule to a recipe's table."""
            made = {one for step in table.get("synthesis", ()) for one in step_targets(step)}
            # Steps of a synthesised variable would change nothing: its own step has bins.
            if not rule.is_of_numbers or name not in made:
                form = table.get("release", {})
                table["release"] = {**form, RECODE: {**form.get(RECODE, {}), name: rule.written}}

        groups = (f"{len(members)} levels as {group}" for group, members in rule.groups.items())
        text = "; ".join(groups) or (str(rule) if rule.has_end_codes else f"{rule.width:g}")
        return LeverOption(text, change)

    options = (LeverOption(AS_PLANNED, _keep_plan), *(option(rule) for rule in possible))
    return SearchLever(COARSENING_LEVER.format(name), options, 0, setting=RECODE)


def _weights_lever(recipe: Recipe, possible: Sequence[RecipeStep]) -> SearchLever | None:
    """Return the lever of less influence for records with rare quasi-identifiers.

    None where no plan could weight records so. It is None too where the risks of an earlier run weight them.
    """
    given = recipe.weights
    known = list(recipe.schema.names_by_role(Role.QUASI_IDENTIFIER) if given is None else given.known)
    able = {name for step in possible if step.method.synthesis.weighted for name in step.targets}
    if not known or not {n for step in recipe.synthesis for n in step.targets} <= able:
        return None
    own = 0.0 if given is None else given.strength

    def option(strength: float) -> LeverOption:
        """Return the option that weights records with ``strength``."""

        def change(table: RecipeTable) -> None:
            """Replace the weights of a recipe's table."""
            table.pop("weights", None)
            if strength:
                table["weights"] = {"known": known, "strength": strength}
                _remove_unusable_weights(table)

        return LeverOption(f"strength {strength:g}" if strength else "all alike", change)

    strengths = sorted({0.0, *WEIGHT_STRENGTHS, own})
    return SearchLever(WEIGHTS_LEVER, tuple(map(option, strengths)), strengths.index(own), setting="weights")


def _remove_unusable_weights(table: RecipeTable) -> None:
    """Remove the weights by quasi-identifiers from a plan with a step that cannot weight records."""
    methods = [method_of_step("synthesis", str(step["method"])) for step in table["synthesis"]]
    if table.get("weights", {}).get("known") and not all(one is not None and one.synthesis.weighted for one in methods):
        del table["weights"]


def _keep_plan(table: RecipeTable) -> None:
    """Leave the plan unchanged: the first option of every lever."""


def _anonymisation_lever(plans: Sequence[Sequence[Mapping[str, Any]]]) -> SearchLever:
    """Return the lever that replaces the anonymisation's steps by those of another one."""

    def option(steps: Sequence[Mapping[str, Any]]) -> LeverOption:
        """Return the option that replaces the anonymisation by ``steps``."""

        def change(table: RecipeTable) -> None:
            table[ANONYMISATION] = [dict(step) for step in steps]

        return LeverOption(", then ".join(str(step["method"]) for step in steps), change)

    options: tuple[LeverOption, ...] = (LeverOption(AS_PLANNED, _keep_plan), *(option(steps) for steps in plans))
    return SearchLever(ANONYMISATION, options, 0, later_protects_more=False, setting="method")
