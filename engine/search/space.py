"""Space of the plans that a search may evaluate: levers, each with options of rising protection where that is known.

A plan is a choice of one option of every lever. Levers come from what the methods of a recipe declare
(``Param.search_values``), from the order of its synthesis steps, and from what the workspace adds, such as another
method for a variable. A lever that states a guarantee, such as k, is never turned below the plan's own.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..data.declaration import SearchValues, declared_params
from ..data.schema import Schema
from ..data.terms import parse_term
from ..errors import BadInput, near_miss_hint
from ..methods.registry import Method
from ..methods.release_form import DatasetsTable
from ..recipe.recipe import Recipe
from ..recipe.steps import MAKERS, RecipeStep

RecipeTable = dict[str, Any]
TableChange = Callable[[RecipeTable], None]
LeverChoice = tuple[int, ...]
"""The number of the option taken, by lever."""
LeverMove = tuple[int, int]
"""A lever by its number, and the way in which it is turned: 1 to the next option, -1 to the one before, 0 to any other."""
MovesByLimit = tuple[tuple[LeverMove, ...], ...]
"""By limit that a plan misses, that of the largest miss first, the moves which it asks for, the strongest first."""
LeverField = tuple[RecipeStep, str, SearchValues]
"""A step, a field of its parameters, and the values of its lever."""
ORDER_LEVER = "order of synthesis"
LONGEST_ORDER = 6
"""Steps of the longest synthesis whose steps are each tried as the first."""
PREDICTORS = "predictors"
UNCHANGED_TEXT = "unchanged"
MOST_POINTS = 4096
"""Points of the Sobol sequence at most: where few plans differ, fewer are found than asked for."""


@dataclass(frozen=True, slots=True)
class LeverOption:
    """An option of a lever.

    label: its short text
    change: what it changes in a recipe's table
    """

    label: str
    change: TableChange


@dataclass(frozen=True, slots=True)
class SearchLever:
    """A setting that a search may change.

    name: name of the lever
    options: its options
    now: number of the option that the plan has
    later_protects_more: whether a later option protects more; else options have no order
    setting: what advice calls it (``engine.methods.levers``)
    later_is_larger: whether a later option has a larger value of the setting
    variables: variables that the steps which it turns make; none where it concerns the whole release
    """

    name: str
    options: tuple[LeverOption, ...]
    now: int
    later_protects_more: bool = True
    setting: str = ""
    later_is_larger: bool = True
    variables: frozenset[str] = frozenset()


def declared_levers(
    recipe: Recipe, narrowed: Mapping[str, Sequence[Any]] | None = None, others: Sequence[RecipeStep] = ()
) -> list[SearchLever]:
    """Return the levers that the methods of the recipe's steps declare, one for all steps that share a method.

    narrowed: values to try by lever, see ``narrow_levers``
    others: steps that another lever may put into the plan

    The number of datasets ``m`` of a synthesis comes first. A guarantee that several methods state under one name is
    one lever. Raises BadInput.
    """
    found: list[SearchLever | None] = [_datasets_lever(recipe)] if recipe.synthesis else []
    for family in MAKERS:
        own = [*(recipe.synthesis if family == "synthesis" else recipe.anonymisation)]
        steps = [*own, *(step for step in others if step.method.family == family)]
        for fields in _fields_by_lever(steps, recipe):
            method, field, lever = fields[0][0].method, fields[0][1], fields[0][2]
            now = {getattr(step.spec, field) for step, _, _ in fields if step in own} or {
                getattr(step.spec, field) for step, _, _ in fields
            }
            methods = {step.method.key: step.method for step, _, _ in fields}
            variables = frozenset(name for step, _, _ in fields for name in step.targets)
            name = f"{method.name}.{field}" if len(methods) == 1 else field
            found.append(_parameter_lever(name, tuple(methods.values()), field, lever, now, variables))
    return narrow_levers([lever for lever in found if lever is not None], narrowed or {})


def _fields_by_lever(steps: Sequence[RecipeStep], recipe: Recipe) -> list[list[LeverField]]:
    """Group the fields of steps by lever: a field in all steps of a method, a guarantee in all steps that state it."""
    found: dict[tuple[str, str], list[LeverField]] = {}
    for step in steps:
        for info in step.method.spec.params():
            lever = info.param.search_values
            if lever is not None and _affects_step(lever, step, recipe):
                key = ("", info.name) if lever.is_guarantee else (step.method.key, info.name)
                found.setdefault(key, []).append((step, info.name, lever))
    return list(found.values())


def _affects_step(lever: SearchValues, step: RecipeStep, recipe: Recipe) -> bool:
    """Return whether the values of a lever change what a step makes."""
    schema = recipe.schema if step.table is None else step.table.schema
    return not lever.for_numbers_only or any(not schema[name].kind.has_levels for name in step.targets)


def _datasets_lever(recipe: Recipe) -> SearchLever:
    """Return the lever of the number of datasets."""
    own = next(info.param.search_values for info in declared_params(DatasetsTable) if info.name == "m")
    assert own is not None
    values = sorted({*own.values, recipe.m}, reverse=not own.larger_protects_more)

    def dataset_option(m: int) -> LeverOption:
        """Return the option of m datasets."""

        def set_datasets(table: RecipeTable) -> None:
            table.setdefault("release", {})["m"] = m

        return LeverOption(str(m), set_datasets)

    return SearchLever(
        "m",
        tuple(dataset_option(m) for m in values),
        values.index(recipe.m),
        setting="m",
        later_is_larger=own.larger_protects_more,
    )


def _parameter_lever(
    name: str,
    methods: Sequence[Method],
    field: str,
    declared: SearchValues,
    now: set[Any],
    variables: frozenset[str],
) -> SearchLever | None:
    """Return the lever of one parameter in all steps of some methods; None where there are fewer than two options, or a
    step does not use it.
    """
    if None in now:
        return None
    own = next(iter(now)) if len(now) == 1 else None
    values = [
        value
        for value in declared.values
        # Promises to people are not a search's to weaken.
        if not declared.is_guarantee or _keeps_promise(value, now, declared.larger_protects_more)
    ]
    if own is not None and own not in values:
        values = sorted([*values, own])
    if not declared.larger_protects_more:
        values.reverse()
    several = own is None
    names = {said for method in methods for said in (method.name, method.key)}

    def parameter_option(value: Any) -> LeverOption:
        """Return the option of a value of the parameter."""

        def set_parameter(table: RecipeTable) -> None:
            """Set the parameter in all steps of the methods."""
            for step in table.get(methods[0].family, ()):
                if step["method"] in names:
                    step[field] = value

        return LeverOption(_option_label(value), set_parameter)

    options = [parameter_option(value) for value in values]
    if several:
        options.insert(0, LeverOption("as in the plan", lambda _: None))
    if len(options) < 2:
        return None
    at = 0 if several else values.index(own)
    return SearchLever(name, tuple(options), at, declared.has_order, field, declared.larger_protects_more, variables)


def _keeps_promise(value: Any, now: set[Any], rising: bool) -> bool:
    """Return whether a value promises at least what every step promises now."""
    return all(value >= one if rising else value <= one for one in now)


def _option_label(value: Any) -> str:
    """Return the short text of an option's value."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:g}"


def order_lever(recipe: Recipe) -> SearchLever | None:
    """Return the lever of the order of synthesis: as in the plan, reversed, and each variable in turn as the first;
    None where there is no other order.
    """
    steps = recipe.synthesis
    # Steps of several variables, or without predictors, cannot take over predictors from each other; in units every
    # record follows from those before it.
    if (
        len(steps) < 2
        or recipe.form.units
        or any(step.method.joint or PREDICTORS not in _parameter_names(step.method) for step in steps)
    ):
        return None
    names, schema = [step.targets[0] for step in steps], recipe.schema
    places = list(range(len(steps)))
    orders = {"as in the plan": places, "reversed": places[::-1]}
    if 2 < len(steps) <= LONGEST_ORDER:
        orders |= {f"{names[at]} first": [at, *(one for one in places if one != at)] for at in places[1:]}

    def order_option(label: str, order: Sequence[int]) -> LeverOption:
        """Return the option of an order of the steps."""

        def set_order(table: RecipeTable) -> None:
            """Put the steps into this order, with the predictors that it allows."""
            tables = table.get("synthesis", [])
            # Another lever may have exchanged the steps for others.
            if [one.get("target") for one in tables] == names:
                table["synthesis"] = [_moved_step(tables, order, place, schema) for place in range(len(order))]

        return LeverOption(label, set_order)

    options = tuple(order_option(label, order) for label, order in orders.items())
    return SearchLever(ORDER_LEVER, options, 0, later_protects_more=False, setting="order", variables=frozenset(names))


def _parameter_names(method: Method) -> set[str]:
    """Return the names of a method's parameters."""
    return {info.name for info in method.spec.params()}


def _moved_step(tables: Sequence[RecipeTable], order: Sequence[int], place: int, schema: Schema) -> RecipeTable:
    """Return the table of the step at a place of an order, with the predictors that are synthesised by then."""
    at, target = order[place], str(tables[order[place]]["target"])
    later = {str(tables[one]["target"]) for one in order[place + 1 :]}
    kept = [text for text in _step_predictors(tables[at]) if not _predictor_variables(text, schema) & later]
    # Of two steps of which one predicted the other's variable, the one that comes first predicts the other now: a model
    # loses and gains no predictor but by the order.
    gained = [
        str(tables[one]["target"])
        for one in order[:place]
        if one > at and any(target in _predictor_variables(text, schema) for text in _step_predictors(tables[one]))
    ]
    return {**tables[at], PREDICTORS: [*kept, *gained]}


def _step_predictors(table: Mapping[str, Any]) -> list[str]:
    """Return the predictors of a step as the recipe writes them."""
    return list(table.get(PREDICTORS, ()))


def _predictor_variables(text: str, schema: Schema) -> frozenset[str]:
    """Return the variables in a predictor, which is a name or a term."""
    return frozenset({text} if text in schema else parse_term(text, schema, PREDICTORS).columns)


def narrow_levers(levers: Sequence[SearchLever], narrowed: Mapping[str, Sequence[Any]]) -> list[SearchLever]:
    """Return the levers, restricted to the values that a recipe lists by lever; a lever with one value left is dropped.

    Raises BadInput for an unknown lever or value.
    """
    return list(_iterate_narrowed(levers, narrowed))


def _iterate_narrowed(levers: Sequence[SearchLever], narrowed: Mapping[str, Sequence[Any]]) -> Iterator[SearchLever]:
    """Yield the restricted levers, see ``narrow_levers``."""
    names = [lever.name for lever in levers]
    for name in narrowed:
        if name not in names:
            hint = near_miss_hint(name, names) or f"; levers of this plan: {', '.join(names) or 'none'}"
            raise BadInput(f"search.levers.{name}", f"this plan has no such lever{hint}")
    for lever in levers:
        if lever.name not in narrowed:
            yield lever
            continue
        words = [_option_label(value) for value in narrowed[lever.name]]
        labels = [option.label for option in lever.options]
        for word in words:
            if word not in labels:
                raise BadInput(
                    f"search.levers.{lever.name}",
                    f"{word} is no value that a search tries; it tries {', '.join(labels)}",
                )
        kept = [option for at, option in enumerate(lever.options) if option.label in words or at == lever.now]
        if len(kept) > 1:
            yield replace(lever, options=tuple(kept), now=kept.index(lever.options[lever.now]))


def apply_choice(table: Mapping[str, Any], levers: Sequence[SearchLever], choice: LeverChoice) -> RecipeTable:
    """Return the recipe's table with the options of a choice applied."""
    found: RecipeTable = copy.deepcopy(dict(table))
    for lever, at in zip(levers, choice, strict=True):
        if at != lever.now:
            lever.options[at].change(found)
    return found


def canonical_choice(table: Mapping[str, Any], levers: Sequence[SearchLever], choice: LeverChoice) -> LeverChoice:
    """Return the choice without options that change nothing beside the others, such as leaves of trees in a plan
    without trees.

    Choices that make the same table become equal.
    """
    whole = _canonical_json(apply_choice(table, levers, choice))
    for at, lever in enumerate(levers):
        without = (*choice[:at], lever.now, *choice[at + 1 :])
        if choice[at] != lever.now and _canonical_json(apply_choice(table, levers, without)) == whole:
            choice = without
    return choice


def _canonical_json(table: Mapping[str, Any]) -> str:
    """Return a recipe's table as JSON, equal for equal tables."""
    return json.dumps(table, sort_keys=True, default=str)


def describe_choice(levers: Sequence[SearchLever], choice: LeverChoice) -> str:
    """Describe what a choice changes in the plan: ``cart.minbucket 40, m 3``; ``UNCHANGED_TEXT`` for nothing."""
    moved = [
        f"{lever.name} {lever.options[at].label}" for lever, at in zip(levers, choice, strict=True) if at != lever.now
    ]
    return ", ".join(moved) or UNCHANGED_TEXT


def spread_choices(
    levers: Sequence[SearchLever],
    count: int,
    seed: int,
    same: Callable[[LeverChoice], LeverChoice] = lambda choice: choice,
) -> list[LeverChoice]:
    """Return at most ``count`` different plans spread over the space by a scrambled Sobol sequence (Owen 1998).

    The unchanged plan and the most protective one come first. A space of no more plans is listed whole.

    same: function that returns the one choice that stands for all choices of the same plan
    """
    from scipy.stats import qmc

    now = tuple(lever.now for lever in levers)
    most = tuple(len(lever.options) - 1 if lever.later_protects_more else lever.now for lever in levers)
    found = list(dict.fromkeys([now, same(most)]))[:count]
    sizes = np.array([len(lever.options) for lever in levers])
    # As floats: the product of many levers overflows whole numbers.
    space = int(np.prod(sizes.astype(float))) if len(sizes) else 1
    if space <= count:
        every = (
            np.stack(np.unravel_index(np.arange(space), sizes), axis=1) if len(sizes) else np.zeros((1, 0), dtype=int)
        )
        return list(dict.fromkeys([*found, *(same(tuple(map(int, row))) for row in every)]))
    sequence = qmc.Sobol(len(levers), scramble=True, rng=np.random.default_rng(seed))
    for _ in range(MOST_POINTS // 64):
        for row in np.minimum((sequence.random(64) * sizes).astype(int), sizes - 1):
            if len(found) == count:
                return found
            if (choice := same(tuple(map(int, row)))) not in found:
                found.append(choice)
    return found


def neighbouring_choices(
    levers: Sequence[SearchLever], choice: LeverChoice, *, safer: bool, asks: MovesByLimit = ()
) -> Iterator[LeverChoice]:
    """Yield the plans around a choice; a plan may come twice.

    safer: whether moves that protect more come before those that protect less
    asks: moves by missed limit

    First come the strongest moves of all missed limits together, then each of their moves, then each lever one step
    away, or at another option where they have no order.
    """
    if len(asks) > 1:
        together = choice
        for own in asks:
            together = next(_turn_levers(levers, together, own[:1]), together)
        yield together
    way = 1 if safer else -1
    ways = [(at, lever.later_protects_more) for at, lever in enumerate(levers)]
    rest = [(at, by) for by in (way, 0, -way) for at, rising in ways if rising == (by != 0)]
    yield from _turn_levers(levers, choice, [*(move for own in asks for move in own), *rest])


def _turn_levers(levers: Sequence[SearchLever], choice: LeverChoice, by: Sequence[LeverMove]) -> Iterator[LeverChoice]:
    """Yield the choice that each of some moves leads to."""
    for at, way in by:
        size = len(levers[at].options)
        for to in (choice[at] + way,) if way else range(size):
            if 0 <= to < size and to != choice[at]:
                yield (*choice[:at], to, *choice[at + 1 :])
