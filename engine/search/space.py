"""The plans that a search may look at: levers, each with options of rising protection where that is known.

A plan is a choice of one option of every lever. Levers come from what the methods of a recipe declare (``Param.lever``) and from what
the workspace adds, such as another method for a variable. A lever that states a guarantee, such as k, is never turned below the plan's own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.declaration import LeverValues, declared
from ..errors import BadInput, suggestion
from ..methods.registry import Method
from ..methods.release_form import Datasets
from ..recipe.recipe import MAKERS, Recipe, Step

Table = dict[str, Any]
Change = Callable[[Table], None]
Choice = tuple[int, ...]
"""The number of the option taken, by lever."""


@dataclass(frozen=True, slots=True)
class Option:
    """What a lever can be turned to: a short text, and what it changes in a recipe's table."""

    label: str
    change: Change


@dataclass(frozen=True, slots=True)
class Lever:
    """A setting that a search may change. ``now`` is the option that the plan has; ``rising``: a later option protects more."""

    name: str
    options: tuple[Option, ...]
    now: int
    rising: bool = True


def declared_levers(recipe: Recipe, narrowed: Mapping[str, Sequence[Any]]) -> list[Lever]:
    """The levers that the methods of the recipe's steps declare, one for all steps that share a method; ``m`` of a synthesis first.

    ``narrowed`` gives values in place of the declared ones by the lever's name, none to leave it alone. Raises BadInput for a name or a value
    that there is not.
    """
    found: list[Lever | None] = [_of_m(recipe)] if recipe.synthesis else []
    for family in MAKERS:
        steps = recipe.synthesis if family == "synthesis" else recipe.anonymisation
        for method in {step.method.key: step.method for step in steps}.values():
            for info in method.spec.params():
                lever = info.param.lever
                own = [step for step in steps if step.method.key == method.key and _concerns(lever, step, recipe)]
                if lever is not None and own:
                    now = {getattr(step.spec, info.name) for step in own}
                    found.append(_lever(method, info.name, lever, now))
    return list(_narrowed([lever for lever in found if lever is not None], narrowed))


def _concerns(lever: LeverValues | None, step: Step, recipe: Recipe) -> bool:
    """Whether the values of a lever make a difference to what a step makes."""
    return lever is None or not lever.numbers or any(not recipe.schema[name].kind.has_levels for name in step.targets)


def _of_m(recipe: Recipe) -> Lever:
    own = next(info.param.lever for info in declared(Datasets) if info.name == "m")
    assert own is not None
    values = sorted({*own.values, recipe.m}, reverse=not own.rising)

    def option(m: int) -> Option:
        def change(table: Table) -> None:
            table.setdefault("release", {})["m"] = m

        return Option(str(m), change)

    return Lever("m", tuple(option(m) for m in values), values.index(recipe.m))


def _lever(method: Method, field: str, declared: LeverValues, now: set[Any]) -> Lever | None:
    """The lever of one parameter of a method in all steps that use it; None where its plan has no room, or a step does not use the parameter."""
    if None in now:
        return None
    own = next(iter(now)) if len(now) == 1 else None
    values = [value for value in declared.values if not declared.guarantee or _at_least(value, now, declared.rising)]
    if own is not None and own not in values:
        values = sorted([*values, own])
    if not declared.rising:
        values.reverse()
    several = own is None

    def option(value: Any) -> Option:
        def change(table: Table) -> None:
            for step in table.get(method.family, ()):
                if step["method"] in (method.name, method.key):
                    step[field] = value

        return Option(_word(value), change)

    options = [option(value) for value in values]
    if several:
        options.insert(0, Option("as in the plan", lambda _: None))
    if len(options) < 2:
        return None
    return Lever(f"{method.name}.{field}", tuple(options), 0 if several else values.index(own))


def _at_least(value: Any, now: set[Any], rising: bool) -> bool:
    """Whether a value promises at least what every step promises."""
    return all(value >= one if rising else value <= one for one in now)


def _word(value: Any) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else f"{value:g}"


def _narrowed(levers: Sequence[Lever], narrowed: Mapping[str, Sequence[Any]]) -> Iterator[Lever]:
    names = [lever.name for lever in levers]
    for name in narrowed:
        if name not in names:
            hint = suggestion(name, names) or f"; levers of this plan: {', '.join(names) or 'none'}"
            raise BadInput(f"search.levers.{name}", f"this plan has no such lever{hint}")
    for lever in levers:
        if lever.name not in narrowed:
            yield lever
            continue
        words = [_word(value) for value in narrowed[lever.name]]
        labels = [option.label for option in lever.options]
        for word in words:
            if word not in labels:
                raise BadInput(
                    f"search.levers.{lever.name}",
                    f"{word} is no value that a search tries; it tries {', '.join(labels)}",
                )
        kept = [option for at, option in enumerate(lever.options) if option.label in words or at == lever.now]
        if len(kept) > 1:
            yield Lever(lever.name, tuple(kept), kept.index(lever.options[lever.now]), lever.rising)


def changed(table: Mapping[str, Any], levers: Sequence[Lever], choice: Choice) -> Table:
    """The recipe's table with the options of a choice; levers that stay where they are change nothing."""
    found: Table = copy.deepcopy(dict(table))
    for lever, at in zip(levers, choice, strict=True):
        if at != lever.now:
            lever.options[at].change(found)
    return found


def described(levers: Sequence[Lever], choice: Choice) -> str:
    """What a choice changes in the plan, such as ``cart.minbucket 40, m 3``; ``unchanged`` where nothing."""
    moved = [
        f"{lever.name} {lever.options[at].label}" for lever, at in zip(levers, choice, strict=True) if at != lever.now
    ]
    return ", ".join(moved) or "unchanged"


def screened(levers: Sequence[Lever], count: int, seed: int) -> list[Choice]:
    """At most ``count`` different plans spread over the space by a scrambled Sobol sequence (Owen 1998): the plan as it is, the most
    protective one, then the sequence. All plans where there are no more.
    """
    from scipy.stats import qmc

    now = tuple(lever.now for lever in levers)
    most = tuple(len(lever.options) - 1 if lever.rising else lever.now for lever in levers)
    found = list(dict.fromkeys([now, most]))[:count]
    sizes = np.array([len(lever.options) for lever in levers])
    space = int(np.prod(sizes.astype(float))) if len(sizes) else 1
    if space <= count:
        every = (
            np.stack(np.unravel_index(np.arange(space), sizes), axis=1) if len(sizes) else np.zeros((1, 0), dtype=int)
        )
        return list(dict.fromkeys([*found, *(tuple(map(int, row)) for row in every)]))
    sequence = qmc.Sobol(len(levers), scramble=True, rng=np.random.default_rng(seed))
    while len(found) < count:
        points = np.minimum((sequence.random(64) * sizes).astype(int), sizes - 1)
        found = list(dict.fromkeys([*found, *(tuple(map(int, row)) for row in points)]))[:count]
    return found


def moves(levers: Sequence[Lever], choice: Choice, *, safer: bool) -> Iterator[Choice]:
    """The plans one step of one lever away: those that protect more first where ``safer``, else those that protect less first."""
    first = 1 if safer else -1
    for by in (first, -first):
        for at, lever in enumerate(levers):
            to = choice[at] + by
            if 0 <= to < len(lever.options):
                yield (*choice[:at], to, *choice[at + 1 :])
