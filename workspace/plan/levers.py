"""Levers as changes of a plan: what may help where a limit is not met or the gate finds something.

An advice such as ``release fewer datasets (m)`` is applied to the plan's text. For people who can be found by columns
that a release keeps, the changes follow from the records: the rules that make a column coarser, its synthesis, and what
protects everybody at once. A change that would leave the plan as it is, or make it invalid, is no lever.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sfumato.engine.data.toml import read_toml
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.labels import method_and_output
from sfumato.engine.methods.levers import COARSER_KEYS, FEWER_DATASETS, Advice, Turn
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.wording import count_noun, join_names

from .change_parts import PartsOfChange, parts_of_change, parts_of_column_changes
from .edits import (
    StepPlace,
    changed_lines,
    insert_first_step,
    parse_plan,
    replace_sections,
    replace_step,
    step_targets,
)
from .hierarchies import QUASI_IDENTIFIER_ROLES
from .variables import change_variables

if TYPE_CHECKING:
    from sfumato.engine.adversary.kept_column_limits import KeptColumnLimits
    from sfumato.engine.adversary.kept_columns import KeptColumnChange
    from sfumato.engine.data.microdata import Microdata
    from sfumato.engine.recipe.thresholds import Verdict

    from ..policy.policy import Policy

Change = Callable[[Any], Any]
MAKERS = ("synthesis", "anonymisation")
FIRST_WIDTHS = {"count": 5, "date": 7}
"""First widths by kind of variable for a quasi-identifier that was not recoded: whole numbers of 5, days of a week."""
MOST_OF_COLUMNS = 5
"""Single changes of kept columns at most: those that protect most people."""
MOST_SETTINGS = 3
"""Settings that a lever names; the difference of the plans has all of them."""
MOST_NAMED = 3
"""Changes that a text names; of more it counts the rest."""
MOST_SYNTHESISED = 8
"""Columns to synthesise that a text names; of more it counts the rest."""
CODE = re.compile(r" \((?:\[[^)]*|[a-z_]+)\)")
"""Settings as a plan writes them, which a text names in brackets for whoever edits the plan."""
SETTING_WORDS: Mapping[str, str] = {
    "minbucket": "at least {} records in each",
    "k": "at least {} records in each",
    "m": "{} of them",
    "epsilon": "epsilon {}",
}
"""Changed settings in words; others go without saying."""

LARGER_LEAVES = Advice("use larger leaves in the trees (minbucket)", minbucket="more")
SMOOTHED = Advice("draw numbers near real ones instead of real ones (smoothing)", smoothing="on")
LARGER_CLASSES = Advice("use larger classes (k)", k="more")
COPYING: tuple[Advice, ...] = (LARGER_LEAVES, SMOOTHED)
FINDING_ADVICE: Mapping[str, tuple[Advice, ...]] = {
    "worst_records": (COARSER_KEYS, *COPYING, LARGER_CLASSES),
    "newly_certain": (*COPYING, FEWER_DATASETS),
    "guessed_beyond_prior": (*COPYING, FEWER_DATASETS),
    "risk_above_confidential": COPYING,
    "singling_out_excess": (*COPYING, COARSER_KEYS, FEWER_DATASETS),
    "linkability_excess": (*COPYING, COARSER_KEYS, FEWER_DATASETS),
    "inference_excess": (*COPYING, FEWER_DATASETS),
    "membership_excess": (*COPYING, FEWER_DATASETS),
    "membership_evidence": (*COPYING, FEWER_DATASETS),
    "own_values": COPYING,
    "memorised": COPYING,
    "equal_records": COPYING,
    "extremes": (SMOOTHED,),
    "agreed_values": (FEWER_DATASETS, *COPYING),
    "unanimous_classes": (LARGER_CLASSES,),
    "small_classes": (LARGER_CLASSES,),
    "intersections": (LARGER_CLASSES,),
    "joined_releases": (COARSER_KEYS,),
    "public_figures": (Advice("keep the figures of utility inside (public_figures)", public_figures="less"),),
}
"""What helps against a finding of the gate, by its check, the strongest first."""
COLUMN_CHECKS = ("kept_keys", "identifying_columns", "joined_releases")
"""Checks of people who are found by columns that a release keeps."""
LINKING_CHECKS = ("joined_releases",)
"""Checks of people who are found because their rows can be joined, over time or across releases."""
UNIT_CHECKS = ("kept_keys", "linkability_excess")
"""Checks of people who are found the more easily where it is seen which rows are of one person or household."""


def _double(value: Any) -> Any:
    return value * 2


def _halve(value: Any) -> Any:
    """Return half the value, of a whole number rounded up and at least 1."""
    # Counts of datasets, classes or draws below 1 are not valid.
    return max(1, -(-value // 2)) if isinstance(value, int) else value / 2


def _turn_on(_: Any) -> bool:
    return True


def _keep_value(value: Any) -> Any:
    """Return the value: for settings without an order of their values, a person has to decide."""
    return value


CHANGES: Mapping[Turn, Change] = {"more": _double, "less": _halve, "on": _turn_on, "other": _keep_value}


@dataclass(frozen=True)
class PlanLever:
    """Change of the plan that may fix what is wrong.

    text: what to change, in words
    toml: plan with the change; empty if a person has to decide how
    lines: difference of the plans
    parts: what changes, as data
    """

    text: str
    toml: str = ""
    lines: tuple[str, ...] = ()
    parts: PartsOfChange = ()


def parts_of_advice(advice: str) -> PartsOfChange:
    """Return what an advice changes; nothing for words that leave it to a person."""
    settings = advice.turns if isinstance(advice, Advice) else {}
    return parts_of_change([("settings", settings)]) if settings else ()


def change_words(text: str, lines: Sequence[str]) -> str:
    """Return a lever in plain words, with what it sets where that is little: ``release fewer datasets: 3 of them``."""
    plain = CODE.sub("", text)
    added = list(dict.fromkeys(line[2:] for line in lines if line.startswith("+")))
    if len(added) > MOST_SETTINGS or any(line.startswith("[") for line in added):
        return plain
    told = ", ".join(words for line in added for words in _words_of_setting(line) if words not in plain)
    return f"{plain}: {told}" if told else plain


def _words_of_setting(line: str) -> list[str]:
    """Return what a line of a plan sets, in words; nothing for what goes without saying."""
    try:
        (name, value), *_ = read_toml(line).items()
    except (BadInput, ValueError):  # a part of a longer text
        return []
    if name == "recode" and isinstance(value, dict):
        return [f"{one} in steps of {width}" for one, width in value.items() if isinstance(width, int | float)]
    return [SETTING_WORDS[name].format(value)] if name in SETTING_WORDS else []


def find_levers(verdict: Verdict, toml: str) -> list[PlanLever]:
    """Return the levers of a verdict that is not met, those with a setting in the plan first, the strongest first."""
    if verdict.outcome == "met":
        return []
    _, output = method_and_output(verdict.value)
    found = [_make_lever(text, verdict.target, toml) for text in output.label.levers]
    # The sort is stable, so the order by strength stays within both groups.
    return sorted(found, key=lambda one: not one.toml)


def find_finding_levers(check: str, toml: str) -> list[PlanLever]:
    """Return the levers of a finding of the gate that are settings of the plan, the strongest first."""
    found = [_make_lever(advice, "", toml) for advice in FINDING_ADVICE.get(check, ())]
    return [one for one in (*_linking_levers(check, toml), *found) if one.toml]


def _linking_levers(check: str, toml: str) -> list[PlanLever]:
    """Return the levers that keep the rows of one person in several releases, or over time, from being joined."""
    table = parse_plan(toml).table
    release = dict(table.get("release", {}))
    keys = [str(one) for one in release.get("surrogate_keys", ())]
    # Whoever sees which rows are of one person also knows all of them together.
    shows_units = any(table.get("variables", {}).get(one, {}).get("role") == "unit" for one in keys)
    if not keys or not (check in LINKING_CHECKS or (shows_units and check in UNIT_CHECKS)):
        return []
    text = f"leave out the surrogate key of {join_names(keys)}"
    kept = {key: value for key, value in release.items() if key not in ("surrogate_keys", "surrogate_scope")}
    parts = parts_of_change([("settings", ("surrogate_keys", "surrogate_scope"))])
    lever = _changed_lever(text, toml, replace_sections(toml, {"release": kept}), parts)
    return [] if lever is None else [lever]


def _make_lever(text: str, target: str, toml: str) -> PlanLever:
    """Return the lever of an advice: with the changed plan if the change is possible and valid, otherwise in words
    alone.
    """
    view = parse_plan(toml)
    if view.lines is None:
        return PlanLever(text)
    changed = toml
    for setting, turn in (text.turns if isinstance(text, Advice) else {}).items():
        changed = _change_setting(changed, setting, CHANGES[turn], target, view.table)
    return _changed_lever(text, toml, changed, parts_of_advice(text)) or PlanLever(text)


def _changed_lever(text: str, toml: str, changed: str, parts: PartsOfChange) -> PlanLever | None:
    """Return the lever of a changed plan; None where the change breaks the plan, or changes nothing in it."""
    view = parse_plan(changed)
    # A change that breaks the plan is left to the user.
    if view.problem or view.sha256 == parse_plan(toml).sha256:
        return None
    return PlanLever(text, changed, tuple(changed_lines(toml, changed)), parts)


def _change_setting(toml: str, setting: str, change: Change, target: str, table: Mapping[str, Any]) -> str:
    """Return the plan with one setting changed, in the release or in the steps that make the target."""
    release = dict(table.get("release", {}))
    if setting == "m":
        now = release.get("m")
        return replace_sections(toml, {"release": {**release, "m": change(now)}}) if isinstance(now, int) else toml
    if setting == "public_figures":
        return replace_sections(toml, {"release": {**release, "public_figures": "internal"}})
    if setting == "recode":
        return replace_sections(toml, {"release": _widen_recoding(table)})
    # Steps that do not have the setting are left unchanged, as for a lever of one method among several.
    for place, step in _matching_steps(table, target):
        if not _uses_setting(place, step, setting, table):
            continue
        value = step.get(setting, _default_setting(place, step, setting))
        if value is not None and (after := change(value)) != value:
            toml = replace_step(toml, place, {**step, setting: after})
    return toml


def _widen_recoding(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``[release]`` table with kept quasi-identifiers recoded in intervals twice as wide, or for the first
    time.

    Which levels to join is left to a person or a search.
    """
    release = dict(table.get("release", {}))
    made = {name for step in table.get("synthesis", []) for name in step_targets(step)}
    rules = dict(release.get("recode", {}))
    for name, said in table.get("variables", {}).items():
        # A variable that a step synthesises is not released as it is, so recoding it lowers no risk.
        known = said.get("role") in QUASI_IDENTIFIER_ROLES and name not in made
        if isinstance(rules.get(name), int | float):
            rules[name] = _double(rules[name])
        elif known and name not in rules and said.get("kind") in FIRST_WIDTHS and table.get("synthesis"):
            rules[name] = FIRST_WIDTHS[said["kind"]]
    return {**release, **({"recode": rules} if rules else {})}


def _matching_steps(table: Mapping[str, Any], target: str) -> Sequence[tuple[StepPlace, Mapping[str, Any]]]:
    """Return the synthesis and anonymisation steps; those of the ``target`` alone if there are any."""
    found = [(StepPlace(part, at), step) for part in MAKERS for at, step in enumerate(table.get(part, []))]
    return [(place, step) for place, step in found if step.get("target") == target] or found


def _uses_setting(place: StepPlace, step: Mapping[str, Any], setting: str, table: Mapping[str, Any]) -> bool:
    """Return whether a setting changes what a step makes: some count for numbers alone."""
    from sfumato.engine.methods.registry import method_of_step

    method = method_of_step(place.section, str(step.get("method")))
    info = next((one for one in method.spec.params() if one.name == setting), None) if method else None
    values = None if info is None else info.param.search_values
    if values is None or not values.for_numbers_only:
        return True
    kinds = (table.get("variables", {}).get(name, {}).get("kind") for name in step_targets(step))
    return any(kind in ("count", "continuous", "date") for kind in kinds)


def _default_setting(place: StepPlace, step: Mapping[str, Any], setting: str) -> Any:
    """Return the default of a setting that a step leaves out; None if its method has no such setting."""
    from sfumato.engine.methods.registry import method_by_key

    # The key of a method has its family, which steps of synthesis and anonymisation leave out.
    method = method_by_key(f"{place.section}.{step.get('method')}")
    info = next((one for one in method.spec.params() if one.name == setting), None) if method else None
    return None if info is None or info.is_required else info.default


def find_column_levers(toml: str, data: Microdata, policy: Policy) -> list[PlanLever]:
    """Return the levers for people who can be found by the columns that a synthesis keeps.

    toml: the plan
    data: the confidential records of its run, with their exact values
    policy: policy that decides which columns the audience is taken to know

    First comes what protects everybody, then the single changes that protect most people.
    """
    try:
        recipe = Recipe.from_toml(toml)
    except BadInput:
        return []
    return list(_KeptColumnLevers(toml, recipe, data.without_controls, policy).levers()) if recipe.synthesis else []


def find_named_column_levers(toml: str, data: Microdata, policy: Policy, names: Sequence[str]) -> list[PlanLever]:
    """Return the levers for people who are found by some kept columns with others, in the order of ``names``.

    The other arguments are as those of ``find_column_levers``.
    """
    try:
        recipe = Recipe.from_toml(toml)
    except BadInput:
        return []
    if not recipe.synthesis or not names:
        return []
    return list(_KeptColumnLevers(toml, recipe, data.without_controls, policy).levers_of(names))


@dataclass(frozen=True, eq=False)
class _KeptColumnLevers:
    """Changes of the columns that a synthesis keeps, as changes of its plan."""

    toml: str
    recipe: Recipe
    data: Microdata
    policy: Policy

    def levers(self) -> Iterator[PlanLever]:
        """Yield the levers, what protects everybody first."""
        if not self.names:
            return
        whole, singles = self._protecting_lever(), self._single_levers()
        if whole is not None and all(whole.toml != one.toml for one in singles):
            yield whole
        yield from singles
        yield from self._end_code_levers()
        yield from self._leaving_levers()

    @cached_property
    def shown_data(self) -> Microdata:
        """Return the records as the plan's own rules show them."""
        return self.recipe.recode_data(self.data)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the kept columns that the audience is taken to know."""
        from sfumato.engine.data.schema import Role

        from .protection import is_counted

        known = self.recipe.schema.names_by_role(Role.QUASI_IDENTIFIER)
        return tuple(
            v.name
            for v in self.recipe.schema
            if v.name not in self.recipe.released
            and is_counted(v.role)
            and self._audience.counts_column(v.name, known)
            and v.name in self.data.schema
        )

    @cached_property
    def _audience(self) -> Any:
        from .protection import DraftAudience

        return DraftAudience.from_policy(self.policy, None, self.recipe.to_table())

    @cached_property
    def _limits(self) -> KeptColumnLimits:
        """Return the limits of the audience; the smallest class of the policy where it has none."""
        from sfumato.engine.adversary.kept_column_limits import KeptColumnLimits

        limits: KeptColumnLimits = self._audience.limits.limits
        return KeptColumnLimits(self.policy.smallest_cell) if limits == KeptColumnLimits() else limits

    @cached_property
    def _ladders(self) -> tuple[int, dict[str, list[KeptColumnChange]]]:
        """Return how many people are unprotected, and every single change of a column."""
        from sfumato.engine.adversary.kept_columns import list_rule_ladders

        return list_rule_ladders(self.shown_data, self.names, self._limits)

    def _single_levers(self) -> list[PlanLever]:
        """Return the changes of one column that protect most people, the best first."""
        before, ladders = self._ladders
        if not before:
            return []
        found: list[tuple[int, int, PlanLever]] = []
        for changes in ladders.values():
            for change in _useful_steps(changes, before):
                if (lever := self._lever_of_change(change)) is not None:
                    found.append((change.n_unprotected, len(found), lever))
        return [lever for *_, lever in sorted(found, key=lambda one: one[:2])][:MOST_OF_COLUMNS]

    def _end_code_levers(self) -> list[PlanLever]:
        """Return the lever that shows the ends of one column of numbers as one value, for the column where it protects most."""
        from sfumato.engine.adversary.kept_columns import list_end_codes

        changes = list_end_codes(self.shown_data, self.names, self._limits)
        return [lever for one in changes[:1] if (lever := self._lever_of_change(one)) is not None]

    def _leaving_levers(self) -> list[PlanLever]:
        """Return the lever that leaves out one column, for the column whose absence protects most people."""
        before, ladders = self._ladders
        absent = [one for changes in ladders.values() for one in changes if one.rule is None]
        helping = sorted((one for one in absent if one.n_unprotected < before), key=lambda one: one.n_unprotected)
        # Leaving a column out may break the plan, such as a constraint on it.
        changed = (self._leaving_lever(one.variable) for one in helping)
        return list(filter(None, [next(filter(None, changed), None)]))

    def _leaving_lever(self, name: str) -> PlanLever | None:
        """Return the lever that leaves out a column; None where the plan breaks without it."""
        parts = parts_of_change([("leave out", (name,))])
        return _changed_lever(f"leave out {name}", self.toml, leave_out_column(self.toml, name), parts)

    def _lever_of_change(self, change: KeptColumnChange) -> PlanLever | None:
        """Return the lever of one change; None where the plan cannot have it."""
        if change.rule is None:
            return self._synthesis_lever(change.variable)
        recoded = self._recoded(self.toml, {change.variable: change.rule})
        return _changed_lever(_change_text(change), self.toml, recoded, parts_of_column_changes([change]))

    def _recoded(self, toml: str, rules: Mapping[str, Any]) -> str:
        """Return the plan with further rules of ``[release] recode``."""
        release = dict(parse_plan(toml).table.get("release", {}))
        written = {name: rule.written for name, rule in rules.items()}
        return replace_sections(toml, {"release": {**release, "recode": {**release.get("recode", {}), **written}}})

    def _synthesis_lever(self, name: str) -> PlanLever | None:
        """Return the lever that synthesises a column; None where no method offers a step for it."""
        changed = self._synthesised(self.toml, [name])
        parts = parts_of_change([("synthesise", (name,))])
        return None if changed is None else _changed_lever(f"synthesise {name}", self.toml, changed, parts)

    def _synthesised(self, toml: str, names: Sequence[str]) -> str | None:
        """Return the plan with steps of kept columns before its own; None where a column has none."""
        if self.recipe.form.units:
            return None  # a record follows from those of its unit before it, and another step would not
        for at, name in reversed(list(enumerate(names))):
            step = self._steps.get(name)
            if step is None:
                return None
            # Predictors are the columns that stay, and those synthesised before.
            stay = [one for one in self._steps if one not in names]
            toml = insert_first_step(toml, "synthesis", {**step, "predictors": [*stay, *names[:at]]})
        return _with_synthesised_lists(toml, names)

    @cached_property
    def _steps(self) -> Mapping[str, Mapping[str, Any]]:
        """Return a step for each kept column for which a method offers one."""
        from sfumato.engine.methods.table_profile import profile_table

        from .alternatives import steps_for_kept_variables

        steps = steps_for_kept_variables(self.recipe, profile_table(self.data))
        return {str(step["target"]): step for step in steps}

    def _protecting_lever(self) -> PlanLever | None:
        """Return the lever of all changes after which everybody is protected; None where there is no such plan."""
        from sfumato.engine.adversary.kept_columns import plan_protection

        plan = plan_protection(self.shown_data, self.names, self._limits)
        if len(plan.changes) < 2:
            return None
        changed = self._recoded(self.toml, plan.rules) if plan.rules else self.toml
        synthesised = self._synthesised(changed, plan.replaced) if plan.replaced else changed
        if synthesised is None:
            return None
        parts = parts_of_column_changes(plan.changes)
        return _changed_lever(_changes_text(plan.changes), self.toml, synthesised, parts)

    def levers_of(self, names: Sequence[str]) -> Iterator[PlanLever]:
        """Yield the levers that make some columns coarser, then those that synthesise them or leave them out."""
        named = [name for name in names if name in self.names]
        for name in named:
            rules = [one for one in self._ladders[1].get(name, ()) if one.rule is not None]
            # Neither the finest step of a ladder, which changes little, nor the coarsest, which leaves little.
            if rules and (lever := self._lever_of_change(rules[(len(rules) - 1) // 2])) is not None:
                yield lever
        for name in named:
            if (lever := self._synthesis_lever(name) or self._leaving_lever(name)) is not None:
                yield lever


def _useful_steps(changes: Sequence[KeptColumnChange], before: int) -> list[KeptColumnChange]:
    """Return of the changes of one column those worth trying: of its rules the one that protects most people and the finest
    that protects half as many, and its synthesis.
    """
    rules = [one for one in changes if one.rule is not None and one.n_unprotected < before]
    found = [one for one in changes if one.rule is None and one.n_unprotected < before]
    if rules:
        best = min(rules, key=lambda one: one.n_unprotected)
        half = next(one for one in rules if before - one.n_unprotected >= (before - best.n_unprotected) / 2)
        found = [half, *([best] if best != half else []), *found]
    return found


def _change_text(change: KeptColumnChange) -> str:
    """Return a change of a column in a few words: ``show age in steps of 5``."""
    # The same words as those of the finding that names the change.
    if change.rule is not None and change.rule.has_end_codes:
        return f"show {change.variable} {change.rule.ends_text}"
    return f"synthesise {change.variable}" if change.rule is None else change.description


def _first_names(names: Sequence[str]) -> list[str]:
    """Return the first names, and how many more there are."""
    more = len(names) - MOST_SYNTHESISED
    return [*names[:MOST_SYNTHESISED], f"{more} more"] if more > 0 else list(names)


def _changes_text(changes: Sequence[KeptColumnChange]) -> str:
    """Return changes of columns in words, those to synthesise first and together."""
    replaced = [one.variable for one in changes if one.rule is None]
    joined = [one.variable for one in changes if one.joins_rare_levels]
    texts = [f"synthesise {join_names(_first_names(replaced))}"] if replaced else []
    texts += [_change_text(one) for one in changes if one.rule is not None and not one.joins_rare_levels]
    more = len(texts) - MOST_NAMED
    texts = [*texts[:MOST_NAMED], count_noun(more, "more change")] if more > 0 else texts
    # Names in one list stand with one verb: several lists in a row read as one.
    return "; ".join([*texts, *([f"join rare levels of {join_names(_first_names(joined))}"] if joined else [])])


def leave_out_column(toml: str, name: str) -> str:
    """Return the plan without a kept column, in its variables and what its steps and measures name, and without limits on it.

    The plan may be broken by that: a constraint may be about the column.
    """
    for section in ("synthesis", "measure", "study"):
        for at, step in enumerate(parse_plan(toml).table.get(section, [])):
            changed = {key: _without_name(value, name) for key, value in step.items()}
            if changed != step:
                toml = replace_step(toml, StepPlace(section, at), changed)
    limits = parse_plan(toml).table.get("threshold", [])
    left = [one for one in limits if one.get("target") != name]
    if left != limits:
        toml = replace_sections(toml, {"threshold": left or None})
    release = dict(parse_plan(toml).table.get("release", {}))
    rules = {one: rule for one, rule in release.get("recode", {}).items() if one != name}
    if rules != release.get("recode", {}):
        toml = replace_sections(
            toml,
            {"release": {**release, "recode": rules} if rules else {k: v for k, v in release.items() if k != "recode"}},
        )
    return change_variables(toml, {name: None})


def _without_name(value: Any, name: str) -> Any:
    """Return a setting of a step without a variable in its list or table of variables."""
    if isinstance(value, list):
        return [one for one in value if one != name]
    if isinstance(value, dict):
        return {key: one for key, one in value.items() if key != name}
    return value


def _with_synthesised_lists(toml: str, names: Sequence[str]) -> str:
    """Return the plan with further names in the lists of synthesised variables that its measures and studies have."""
    table = parse_plan(toml).table
    for section in ("measure", "study"):
        for at, step in enumerate(table.get(section, [])):
            if isinstance(listed := step.get("synthesised"), list):
                more = [name for name in names if name not in listed]
                toml = replace_step(toml, StepPlace(section, at), {**step, "synthesised": [*listed, *more]})
    return toml
