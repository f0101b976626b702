"""The forms that a plan is edited with: the fields of a step, of its settings, and the choice of a step to add.

The form of a threshold: its value from the list of what the plan measures, its limit held against direction and range as it is typed.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING
from enum import StrEnum
from typing import Any, Literal

from sfumato.engine.data.schema import Kind
from sfumato.engine.data.terms import FUNCTIONS, LEVEL_CODE
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.outputs import Output
from sfumato.engine.methods.registry import Method, find_method, method_by_key, registry
from sfumato.engine.methods.spec import ParamInfo, to_plain_value
from sfumato.engine.recipe.recipe import Recipe, recipe_params
from sfumato.engine.recipe.threshold_warnings import (
    beyond_range_warning,
    natural_bound,
    never_computed_warning,
    never_fails_warning,
    wrong_side_warning,
)
from sfumato.engine.recipe.thresholds import BOUNDS, threshold_output
from sfumato.workspace.plan.edits import PlanView, StepPlace, with_sections, with_step
from sfumato.workspace.reporting.words import DIRECTIONS
from sfumato.workspace.store.workspace import Workspace

from ..parts.fields import Field, FieldKind, inline, shown_value
from ..parts.form import Form, Remark, Texts
from ..parts.offers import Offer
from ..parts.pick_list import PickList

MEASURING = ("synthesis", "measure", "study")
DATA_KEYS = ("file", "where", "sample", "holdout", "missing")
Edit = Callable[[Callable[[str], str], str | None], None]
Opened = tuple[Form, Callable[[dict[str, Any] | None], None]]
IN_SHORT = ("synthesis", "anonymisation")


def _steps(table: Mapping[str, Any]) -> list[tuple[Method, Mapping[str, Any]]]:
    """The steps of a plan that measure something, each with its method; steps of synthesis may leave the family out."""
    steps = [step for section in MEASURING for step in table.get(section, [])]
    named = [
        (name if "." in name else f"synthesis.{name}", step) for step in steps for name in [str(step.get("method", ""))]
    ]
    return [(method, step) for key, step in named if (method := method_by_key(key)) is not None]


def measured_offers(table: Mapping[str, Any]) -> tuple[Offer, ...]:
    """What a plan measures, each with its method, unit and direction, and what it means."""
    found = {
        f"{method.key}.{output.name}": Offer(f"{method.key}.{output.name}", _beside(method, output), output.meaning)
        for method, _ in _steps(table)
        for output in method.result_outputs
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
        Field("bound", "at most, at least, or at most so many times (max_ratio) or so much above (max_increase) the confidential data's own value",
              value=bound or _natural(str(value)), choices=BOUNDS),
        Field("limit", "the number that must not be passed", "value", step.get(bound) if bound else None, beside=True),
        Field("target", "only for this variable; left out, for all", value=step.get("target"), words=tuple(table.get("variables", {}))),
        Field("level", "only at this level of a study; left out, at all", "value", step.get("level"), offers=_levels(table)),
        Field("params", "only for the step of these settings, such as model = cart; left out, for every one", "table",
              step.get("params"), offers=_settings(table)),
    ]  # fmt: skip


def _natural(value: str) -> str:
    output = threshold_output(value)
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
        defaults = {
            info.name: None if info.is_required else to_plain_value(info.default) for info in method.spec.params()
        }
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
    limit, output = step[bound], threshold_output(str(step.get("value", "")))
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        raise BadInput("limit", f"{limit!r} is not a number")
    if output is not None and (problem := beyond_range_warning(output, bound, limit)):
        raise BadInput("limit", problem)


def limit_remark(texts: Texts, otherwise: str) -> Remark:
    """What stands below the limit: direction, unit and range; or what speaks against the side or the limit that is typed.

    ``otherwise`` is the value that an empty field means.
    """
    output = threshold_output(texts["value"].strip() or otherwise)
    bound = next((name for name in BOUNDS if name == texts["bound"]), None)
    if output is None or bound is None:
        return Remark()
    hint = " · ".join(filter(None, (DIRECTIONS[output.goal], output.unit, output.range_words)))
    problem = wrong_side_warning(output, bound) or never_computed_warning(output, bound)
    with suppress(ValueError):
        problem = problem or never_fails_warning(output, bound, float(texts["limit"]))
    return Remark(hint, problem)


def follow_value(name: str, texts: Texts) -> Texts:
    """The side of the limit goes with the direction of a value that was changed."""
    return (
        {"bound": _natural(texts["value"].strip())}
        if name == "value" and threshold_output(texts["value"].strip())
        else {}
    )


WITH_LEVELS = tuple(kind.value for kind in Kind if kind.has_levels)


def section_of(method: Method) -> str:
    """The list of a recipe that takes a method."""
    return {"synthesis": "synthesis", "anonymisation": "anonymisation", "studies": "study"}.get(
        method.family, "measure"
    )


def method_of(place: StepPlace, step: Mapping[str, Any]) -> Method:
    """The method that a step names. Raises BadInput."""
    name = str(step.get("method", ""))
    for key in (f"{place.section}.{name}", name):
        if (method := method_by_key(key)) is not None:
            return method
    raise BadInput(f"{place}.method", f'no method "{name}"; correct it in the TOML, or add the step anew')


def costs_more(method: Method, step: Mapping[str, Any]) -> bool:
    """Whether a run says before it is begun what the step costs beside time: it keeps a privacy account, or leaves more than its dataset."""
    asked = any(info.param.changes_no_data and step.get(info.name) for info in method.spec.params())
    return method.synthesis.account is not None or asked


def step_fields(method: Method, step: Mapping[str, Any], variables: Mapping[str, Any] | Sequence[str]) -> list[Field]:
    """A field a parameter; before them the target of a synthesis step. ``variables`` are the plan's, each with its table."""
    tables = variables if isinstance(variables, Mapping) else {name: {} for name in variables}
    several = method.joint
    what = "the variables to synthesise, in this order" if several else "the variable to synthesise"
    target = Field("target", what, "list" if several else "text", step.get("target"), offers=_columns(tables, ()))
    head = [target] if method.family == "synthesis" else []
    return head + [_field(info, step.get(info.name), tables) for info in method.spec.params()]


def _columns(tables: Mapping[str, Any], kinds: Sequence[str]) -> tuple[Offer, ...]:
    """The variables, of these kinds where some are said, each with its kind, role and title."""
    described = {name: table if isinstance(table, Mapping) else {} for name, table in tables.items()}
    return tuple(
        Offer(name, " · ".join(str(table[key]) for key in ("kind", "role", "title") if table.get(key)))
        for name, table in described.items()
        if not kinds or table.get("kind", kinds[0]) in kinds
    )


def _terms(columns: Sequence[Offer]) -> tuple[Offer, ...]:
    """Columns, then the functions of numbers, and the code of columns with levels."""
    levelled = {offer.value: offer.words.partition(" ")[0] in WITH_LEVELS for offer in columns}
    made = [(name, offer) for name in FUNCTIONS for offer in columns if levelled[offer.value] == (name == LEVEL_CODE)]
    return (*columns, *(Offer(f"{name}({offer.value})", offer.words) for name, offer in made))


def _field(info: ParamInfo, value: object, tables: Mapping[str, Any]) -> Field:
    kind, choices = field_kind(info.type)
    columns = _columns(tables, info.param.kinds) if info.param.names else ()
    offers = _terms(columns) if info.param.names == "terms" else columns
    words = () if offers else getattr(info.type, "words", ())
    asked = "; must be given" if info.is_required else ""
    limits = f"; {info.param.limits_text}" if info.param.limits_text else ""
    default = None if info.default is MISSING else to_plain_value(info.default)
    given = inline(value) if kind == "value" else value
    joined = ":" if info.param.names == "terms" else ""
    return Field(
        info.name,
        f"{info.param.help}{limits}{asked}",
        kind,
        given,
        default,
        choices,
        words,
        offers=offers,
        joined=joined,
    )


def field_kind(declared: Any) -> tuple[FieldKind, tuple[str, ...]]:
    """How a value of a declared type is typed, and the words that it may be."""
    origin, args = typing.get_origin(declared), typing.get_args(declared)
    if origin in (typing.Union, types.UnionType):
        return field_kind(next(arg for arg in args if arg is not type(None)))
    if origin is Literal:
        return "text", tuple(map(str, args))
    if isinstance(declared, type) and issubclass(declared, StrEnum):
        return "text", tuple(declared)
    if declared is bool:
        return "value", ("false", "true")
    if origin is tuple:
        return "list", ()
    if origin is not None and issubclass(origin, Mapping):
        return "table", ()
    return ("text" if declared is str else "value"), ()


def step_table(section: str, method: str, answers: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's table of what a form answered."""
    if section != "threshold":
        head = {"target": answers["target"]} if "target" in answers and section == "synthesis" else {}
        rest = {key: value for key, value in answers.items() if key not in head}
        return {**head, "method": method, **rest}
    return threshold_table(answers, table)


def check_step(toml: str, place: StepPlace, step: Mapping[str, Any]) -> None:
    """BadInput when a step cannot stand at its place; what is wrong elsewhere in the plan is no matter here."""
    if place.section == "threshold":
        check_limit(step)
    try:
        Recipe.from_toml(with_step(toml, place, step))
    except BadInput as error:
        if error.place.startswith(str(place)):
            raise BadInput(error.place.removeprefix(str(place)).lstrip("."), error.message) from None
    else:
        return
    if place.section != "threshold":
        given = {key: value for key, value in step.items() if key not in ("method", "target")}
        method_of(place, step).spec.from_table(given, "")


def _release_keys(table: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of ``[release]`` that the form has; redraws only where a plan has constraints, public rules where it synthesises."""
    constrained = ("redraws", "unmet") if table.get("constraints") else ()
    return ("m", "seed", "records", "epsilon", *(("recode",) if table.get("synthesis") else ()), *constrained)


def settings_fields(table: Mapping[str, Any]) -> list[Field]:
    """The form of title, data and release; with how records that break a constraint are treated, where the plan has any."""
    asked = (("", ("title",)), ("data", DATA_KEYS), ("release", _release_keys(table)))
    fields = []
    for section, keys in asked:
        declared = {info.name: info for info in recipe_params(section or "recipe")}
        given = table.get(section, {}) if section else table
        fields += [_field(declared[key], given.get(key), table.get("variables", {})) for key in keys]
    return fields


def settings_sections(answers: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """The sections of a recipe that ``settings_fields`` speak of, as answered; other keys of theirs are kept."""

    def section(name: str, keys: Sequence[str]) -> dict[str, Any] | None:
        kept = {key: value for key, value in table.get(name, {}).items() if key not in keys}
        return {**kept, **{key: answers[key] for key in keys if key in answers}} or None

    return {
        "title": answers.get("title"),
        "data": section("data", DATA_KEYS),
        "release": section("release", _release_keys(table)),
    }


def check_settings(toml: str, sections: Mapping[str, Any]) -> None:
    """BadInput when title, data or release cannot be so."""
    try:
        Recipe.from_toml(with_sections(toml, sections))
    except BadInput as error:
        if error.place.partition(".")[0] in ("title", "data", "release"):
            raise


def new_step(view: PlanView, key: str) -> tuple[StepPlace, Mapping[str, Any]]:
    """Where a step with this method goes, and what it says at first."""
    if key == "threshold":
        return StepPlace("threshold", len(view.table.get("threshold", []))), {}
    method = find_method(key, "method")
    section = section_of(method)
    name = method.name if section in IN_SHORT else key
    return StepPlace(section, len(view.table.get(section, []))), {"method": name}


def step_form(view: PlanView, place: StepPlace, step: Mapping[str, Any], edit: Edit) -> Opened:
    name = str(step.get("method", ""))
    variables = view.table.get("variables", {})
    try:
        if place.section == "threshold":
            title, fields, topic = "Threshold", threshold_fields(step, view.table), "recipe threshold"
        else:
            method = method_of(place, step)
            title, fields = f"{method.title} ({method.key})", step_fields(method, step, variables)
            topic = method.key
    except BadInput as error:
        title, fields, topic = error.message, [], f"recipe {place.section}"

    def made(answers: Mapping[str, Any]) -> dict[str, Any]:
        return step_table(place.section, name, answers, view.table)

    def check(answers: dict[str, Any]) -> None:
        check_step(view.toml, place, made(answers))

    def answered(answers: dict[str, Any] | None) -> None:
        if answers is not None and fields:
            edit(lambda toml: with_step(toml, place, made(answers)), str(place))

    if place.section != "threshold":
        return Form(title, fields, check, topic=topic), answered
    first = next((offer.value for offer in measured_offers(view.table)), "")
    start = "limit" if step.get("value") and not {*BOUNDS} & {*step} else ""
    form = Form(
        title,
        fields,
        check,
        remark=lambda texts: limit_remark(texts, first),
        follow=follow_value,
        start=start,
        topic=topic,
    )
    return form, answered


def settings_form(view: PlanView, edit: Edit) -> Opened:
    """The form of title, data and release."""

    def check(answers: dict[str, Any]) -> None:
        check_settings(view.toml, settings_sections(answers, view.table))

    def answered(answers: dict[str, Any] | None) -> None:
        if answers is not None:
            edit(lambda toml: with_sections(toml, settings_sections(answers, view.table)), None)

    return Form("Data and release", settings_fields(view.table), check, topic="recipe"), answered


class AddStep(PickList):
    """Answers a method's key, or ``threshold``."""

    def __init__(self) -> None:
        super().__init__("Add a step")

    def read_query(self) -> Callable[[Workspace], list[Offer]]:
        return _methods

    def take(self, answer: list[Offer]) -> None:
        self.offer(answer)


def _methods(_: Workspace) -> list[Offer]:
    found = [Offer(method.key, method.title) for method in registry().values()]
    return [*found, Offer("threshold", "A limit that a measure must keep")]


def value_list(view: PlanView) -> PickList:
    """What a new threshold may be of."""
    return PickList("What the limit is for", measured_offers(view.table))
