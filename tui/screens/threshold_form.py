"""The form of a threshold: its value from the list of what the plan measures, its limit held against direction and range as it is typed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.engine.methods.outputs import Output
from sfumato.engine.methods.registry import Method, registry
from sfumato.engine.methods.spec import written
from sfumato.engine.recipe.threshold_warnings import beyond_range, natural_bound, never_fails, output_of, wrong_side
from sfumato.engine.recipe.thresholds import BOUNDS
from sfumato.workspace.reporting.words import DIRECTIONS

from ..fields import Field, shown_value
from ..offers import Offer
from .form import Remark, Texts

MEASURING = ("synthesis", "measure", "study")


def _steps(table: Mapping[str, Any]) -> list[tuple[Method, Mapping[str, Any]]]:
    """The steps of a plan that measure something, each with its method; steps of synthesis may leave the family out."""
    steps = [step for section in MEASURING for step in table.get(section, [])]
    named = [
        (name if "." in name else f"synthesis.{name}", step) for step in steps for name in [str(step.get("method", ""))]
    ]
    return [(registry()[key], step) for key, step in named if key in registry()]


def measured_offers(table: Mapping[str, Any]) -> tuple[Offer, ...]:
    """What a plan measures, each with its method, unit and direction, and what it means."""
    found = {
        f"{method.key}.{output.name}": Offer(f"{method.key}.{output.name}", _beside(method, output), output.meaning)
        for method, _ in _steps(table)
        for output in method.results
    }
    return tuple(found.values())


def _beside(method: Method, output: Output) -> str:
    return " · ".join(filter(None, (DIRECTIONS[output.goal], output.unit, method.title)))


def threshold_fields(step: Mapping[str, Any], table: Mapping[str, Any]) -> list[Field]:
    """The form of a threshold, its value one of those that the plan measures; the side of its limit that of the value's direction."""
    offers = measured_offers(table)
    value = step.get("value", offers[0].value if offers else None)
    bound = next((name for name in BOUNDS if name in step), None)
    return [
        Field("value", "what is held against the limit", value=step.get("value"), default=offers[0].value if offers else None,
              offers=offers),
        Field("bound", "at most, at least, or at most so many times the confidential data's own value",
              value=bound or _natural(str(value)), choices=BOUNDS),
        Field("limit", "the number that must not be passed", "value", step.get(bound) if bound else None, beside=True),
        Field("target", "only for this variable; left out, for all", value=step.get("target"), words=tuple(table.get("variables", {}))),
        Field("level", "only at this level of a study; left out, at all", "value", step.get("level"), offers=_levels(table)),
        Field("params", "only for the step of these settings, such as model = cart; left out, for every one", "table",
              step.get("params"), offers=_settings(table)),
    ]  # fmt: skip


def _natural(value: str) -> str:
    output = output_of(value)
    return natural_bound(output) if output else BOUNDS[0]


def _levels(table: Mapping[str, Any]) -> tuple[Offer, ...]:
    """The levels that the plan's studies are computed at, each with its study."""
    found: dict[str, Offer] = {}
    for method, step in _steps(table):
        given = {key: value for key, value in step.items() if key not in ("method", "target")}
        try:
            grid = method.spec.from_table(given, "").grid() if method.family == "studies" else ()
        except BadInput:
            continue
        for level in grid:
            found.setdefault(shown_value(level), Offer(shown_value(level), method.title))
    return tuple(found.values())


def _settings(table: Mapping[str, Any]) -> tuple[Offer, ...]:
    """The settings that steps have otherwise than by default, each with its method."""
    found: dict[str, Offer] = {}
    for method, step in _steps(table):
        defaults = {info.name: None if info.required else written(info.default) for info in method.spec.params()}
        for key, value in step.items():
            if key in defaults and value != defaults[key] and isinstance(value, (str, int, float)):
                pair = shown_value({key: value})
                found.setdefault(pair, Offer(pair, method.title))
    return tuple(found.values())


def threshold_table(answers: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's table of what the form answered."""
    offers = measured_offers(table)
    value = answers.get("value", offers[0].value if offers else "")
    rest = {key: answers[key] for key in ("target", "level", "params") if key in answers}
    limit = {answers["bound"]: answers["limit"]} if "limit" in answers else {}
    return {"value": value, **rest, **limit}


def check_limit(step: Mapping[str, Any]) -> None:
    """BadInput at ``limit`` where a threshold has none, or one that no value can be at."""
    bound = next((name for name in BOUNDS if name in step), None)
    if bound is None:
        raise BadInput("limit", "Enter a limit")
    limit, output = step[bound], output_of(str(step.get("value", "")))
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        raise BadInput("limit", f"{limit!r} is not a number")
    if output is not None and (problem := beyond_range(output, bound, limit)):
        raise BadInput("limit", problem)


def limit_remark(texts: Texts, otherwise: str) -> Remark:
    """What stands below the limit: direction, unit and range; or what speaks against the side or the limit that is typed.

    ``otherwise`` is the value that an empty field means.
    """
    output = output_of(texts["value"].strip() or otherwise)
    bound = next((name for name in BOUNDS if name == texts["bound"]), None)
    if output is None or bound is None:
        return Remark()
    hint = " · ".join(filter(None, (DIRECTIONS[output.goal], output.unit, output.range_words)))
    problem = wrong_side(output, bound)
    with suppress(ValueError):
        problem = problem or never_fails(output, bound, float(texts["limit"]))
    return Remark(hint, problem)


def follow_value(name: str, texts: Texts) -> Texts:
    """The side of the limit goes with the direction of a value that was changed."""
    return {"bound": _natural(texts["value"].strip())} if name == "value" and output_of(texts["value"].strip()) else {}
