"""Forms to edit a plan: the fields of a step and of the settings, and the choice of a step to add.

The form of a threshold offers the values that the plan measures, and checks the limit against direction and range.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING
from enum import StrEnum
from typing import Any, Literal

from sfumato.engine.constraints.unit_terms import FOLLOWING, OF_NUMBERS, PLACE, SIZE
from sfumato.engine.data.schema import Kind, Role
from sfumato.engine.data.terms import FUNCTIONS, LEVEL_CODE
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.outputs import Output
from sfumato.engine.methods.registry import Method, find_method, method_by_key, registry
from sfumato.engine.methods.spec import ParamInfo, to_plain_value
from sfumato.engine.recipe.older_units import older_unit_settings
from sfumato.engine.recipe.recipe import Recipe, recipe_params
from sfumato.engine.recipe.threshold_warnings import (
    beyond_range_warning,
    natural_bound,
    never_computed_warning,
    never_fails_warning,
    wrong_side_warning,
)
from sfumato.engine.recipe.thresholds import BOUNDS, threshold_output
from sfumato.workspace.plan.edits import PlanView, StepPlace, replace_sections, replace_step
from sfumato.workspace.reporting.words import DIRECTION_TEXTS
from sfumato.workspace.store.workspace import Workspace

from ..parts.fields import FieldKind, FormField, inline_text, value_text
from ..parts.form import FieldRemark, Form, Texts
from ..parts.offers import OfferedValue
from ..parts.pick_list import PickList

TERMS_OF_EVERY_UNIT = {
    SIZE: "records of the unit",
    PLACE: "place of the record within its unit",
    FOLLOWING: "records of the unit that follow",
}
MEANINGS = {
    "first": "of the unit's first record",
    "previous": "of the unit's record before",
    "least": "least of the unit's earlier records",
    "largest": "largest of the unit's earlier records",
    "mean": "mean of the unit's earlier records",
}
MEASURING_SECTIONS = ("synthesis", "measure", "study")
DATA_KEYS = ("file", "where", "sample", "holdout", "missing")
EditPlan = Callable[[Callable[[str], str], str | None], None]
FormAndHandler = tuple[Form, Callable[[dict[str, Any] | None], None]]
IN_SHORT = ("synthesis", "anonymisation")


def _measuring_steps(table: Mapping[str, Any]) -> list[tuple[Method, Mapping[str, Any]]]:
    """Return the steps of a plan that measure something, each with its method."""
    steps = [step for section in MEASURING_SECTIONS for step in table.get(section, [])]
    named = [
        # Steps of synthesis may leave the family out of the method's key.
        (name if "." in name else f"synthesis.{name}", step)
        for step in steps
        for name in [str(step.get("method", ""))]
    ]
    return [(method, step) for key, step in named if (method := method_by_key(key)) is not None]


def measured_offers(table: Mapping[str, Any]) -> tuple[OfferedValue, ...]:
    """Return the values that a plan measures, each with its method, unit, direction and meaning."""
    found = {
        f"{method.key}.{output.name}": OfferedValue(
            f"{method.key}.{output.name}", _offer_details(method, output), output.meaning
        )
        for method, _ in _measuring_steps(table)
        for output in method.result_outputs
    }
    return tuple(found.values())


def _offer_details(method: Method, output: Output) -> str:
    """Return direction, unit and method of a measured value."""
    return " · ".join(filter(None, (DIRECTION_TEXTS[output.goal], output.unit, method.title)))


def threshold_fields(step: Mapping[str, Any], table: Mapping[str, Any]) -> list[FormField]:
    """Return the fields of a threshold: a measured value, and the bound that fits its direction."""
    offers = measured_offers(table)
    value = step.get("value", offers[0].value if offers else None)
    bound = next((name for name in BOUNDS if name in step), None)
    return [
        FormField("value", "value that is compared with the limit", value=step.get("value"), default=offers[0].value if offers else None,
              offers=offers),
        FormField("bound", "at most, at least, or relative to the confidential data's own value: times it (max_ratio) or above it (max_increase)",
              value=bound or _natural_bound_of(str(value)), choices=BOUNDS),
        FormField("limit", "the number that must not be passed", "value", step.get(bound) if bound else None, has_remark_line=True),
        FormField("target", "only for this variable; left out, for all", value=step.get("target"), words=tuple(table.get("variables", {}))),
        FormField("level", "only at this level of a study; left out, at all", "value", step.get("level"), offers=_level_offers(table)),
        FormField("params", "only for the step of these settings, such as model = cart; left out, for every one", "table",
              step.get("params"), offers=_setting_offers(table)),
    ]  # fmt: skip


def _natural_bound_of(value: str) -> str:
    """Return the bound that fits the direction of a value."""
    output = threshold_output(value)
    return natural_bound(output) if output else BOUNDS[0]


def _level_offers(table: Mapping[str, Any]) -> tuple[OfferedValue, ...]:
    """Return the levels at which the plan's studies are computed, each with its study."""
    found: dict[str, OfferedValue] = {}
    for method, step in _measuring_steps(table):
        given = {key: value for key, value in step.items() if key not in ("method", "target")}
        try:
            grid = method.spec.from_table(given, "").grid() if method.family == "studies" else ()
        # A step that is not valid has no levels; its own form reports the problem.
        except BadInput:
            continue
        for level in grid:
            # Studies may share levels; each is offered once.
            found.setdefault(value_text(level), OfferedValue(value_text(level), method.title))
    return tuple(found.values())


def _setting_offers(table: Mapping[str, Any]) -> tuple[OfferedValue, ...]:
    """Return the settings of steps that differ from the default, each with its method."""
    found: dict[str, OfferedValue] = {}
    for method, step in _measuring_steps(table):
        defaults = {
            info.name: None if info.is_required else to_plain_value(info.default) for info in method.spec.params()
        }
        for key, value in step.items():
            if key in defaults and value != defaults[key] and isinstance(value, (str, int, float)):
                pair = value_text({key: value})
                found.setdefault(pair, OfferedValue(pair, method.title))
    return tuple(found.values())


def threshold_table(answers: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recipe's table of a threshold for the answers of the form."""
    offers = measured_offers(table)
    value = answers.get("value", offers[0].value if offers else "")
    rest = {key: answers[key] for key in ("target", "level", "params") if key in answers}
    limit = {answers["bound"]: answers["limit"]} if "limit" in answers else {}
    return {"value": value, **rest, **limit}


def check_limit(step: Mapping[str, Any]) -> None:
    """Raise BadInput at ``limit`` if a threshold has none, or one outside the value's range."""
    bound = next((name for name in BOUNDS if name in step), None)
    if bound is None:
        raise BadInput("limit", "Enter a limit")
    limit, output = step[bound], threshold_output(str(step.get("value", "")))
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        raise BadInput("limit", f"{limit!r} is not a number")
    if output is not None and (problem := beyond_range_warning(output, bound, limit)):
        raise BadInput("limit", problem)


def limit_remark(texts: Texts, otherwise: str) -> FieldRemark:
    """Return the remark below the limit: direction, unit and range; or a warning about the typed bound or limit.

    ``otherwise`` is the value that an empty field stands for.
    """
    output = threshold_output(texts["value"].strip() or otherwise)
    bound = next((name for name in BOUNDS if name == texts["bound"]), None)
    if output is None or bound is None:
        return FieldRemark()
    hint = " · ".join(filter(None, (DIRECTION_TEXTS[output.goal], output.unit, output.range_words)))
    problem = wrong_side_warning(output, bound) or never_computed_warning(output, bound)
    with suppress(ValueError):
        problem = problem or never_fails_warning(output, bound, float(texts["limit"]))
    return FieldRemark(hint, problem)


def bound_after_value_change(name: str, texts: Texts) -> Texts:
    """Return the bound that fits the direction of a changed value."""
    return (
        {"bound": _natural_bound_of(texts["value"].strip())}
        if name == "value" and threshold_output(texts["value"].strip())
        else {}
    )


WITH_LEVELS = tuple(kind.value for kind in Kind if kind.has_levels)


def section_of_method(method: Method) -> str:
    """Return the section of a recipe for a method."""
    return {"synthesis": "synthesis", "anonymisation": "anonymisation", "studies": "study"}.get(
        method.family, "measure"
    )


def method_of_step(place: StepPlace, step: Mapping[str, Any]) -> Method:
    """Return the method that a step names. Raises BadInput."""
    name = str(step.get("method", ""))
    for key in (f"{place.section}.{name}", name):
        if (method := method_by_key(key)) is not None:
            return method
    raise BadInput(f"{place}.method", f'no method "{name}"; correct it in the TOML, or add the step again')


def has_extra_cost(method: Method, step: Mapping[str, Any]) -> bool:
    """Return whether a step costs more than time: it has a privacy account, or affects more than its dataset."""
    asked = any(info.param.changes_no_data and step.get(info.name) for info in method.spec.params())
    return method.synthesis.privacy.account is not None or asked


def step_fields(
    method: Method,
    step: Mapping[str, Any],
    variables: Mapping[str, Any] | Sequence[str],
    unit_terms: Mapping[str, Any] | None = None,
) -> list[FormField]:
    """Return a field for each parameter, after the target of a synthesis step.

    ``variables`` are the plan's, each with its table; ``unit_terms`` may stand beside them in the fields of a synthesis.
    """
    tables = variables if isinstance(variables, Mapping) else {name: {} for name in variables}
    several = method.joint
    what = "the variables to synthesise, in this order" if several else "the variable to synthesise"
    target = FormField(
        "target", what, "list" if several else "text", step.get("target"), offers=column_offers(tables, ())
    )
    head = [target] if method.family == "synthesis" else []
    if method.family == "synthesis":
        tables = {**tables, **(unit_terms or {})}
    return head + [parameter_field(info, step.get(info.name), tables) for info in method.spec.params()]


def column_offers(tables: Mapping[str, Any], kinds: Sequence[str]) -> tuple[OfferedValue, ...]:
    """Return the variables, of these kinds if any are given, each with its kind, role and title."""
    described = {name: table if isinstance(table, Mapping) else {} for name, table in tables.items()}
    return tuple(
        OfferedValue(name, " · ".join(str(table[key]) for key in ("kind", "role", "title") if table.get(key)))
        for name, table in described.items()
        if not kinds or table.get("kind", kinds[0]) in kinds
    )


def _term_offers(columns: Sequence[OfferedValue]) -> tuple[OfferedValue, ...]:
    """Return the columns, then the functions of numbers, and the code of columns with levels."""
    levelled = {offer.value: offer.note.partition(" ")[0] in WITH_LEVELS for offer in columns}
    made = [(name, offer) for name in FUNCTIONS for offer in columns if levelled[offer.value] == (name == LEVEL_CODE)]
    return (*columns, *(OfferedValue(f"{name}({offer.value})", offer.note) for name, offer in made))


def parameter_field(info: ParamInfo, value: object, tables: Mapping[str, Any]) -> FormField:
    """Return the field for a parameter with the value in the recipe."""
    kind, choices = field_kind(info.type)
    columns = column_offers(tables, info.param.kinds) if info.param.names else ()
    offers = _term_offers(columns) if info.param.names == "terms" else columns
    words = () if offers else getattr(info.type, "words", ())
    asked = "; must be given" if info.is_required else ""
    limits = f"; {info.param.limits_text}" if info.param.limits_text else ""
    default = None if info.default is MISSING else to_plain_value(info.default)
    # A list or table in a field for one value has to be typed as TOML.
    given = inline_text(value) if kind == "value" else value
    joined = ":" if info.param.names == "terms" else ""
    return FormField(
        info.name,
        f"{info.param.help}{limits}{asked}",
        kind,
        given,
        default,
        choices,
        words,
        offers=offers,
        join_sign=joined,
    )


def field_kind(declared: Any) -> tuple[FieldKind, tuple[str, ...]]:
    """Return how a value of a declared type is typed, and the words to choose from."""
    origin, args = typing.get_origin(declared), typing.get_args(declared)
    if origin in (typing.Union, types.UnionType):
        # An optional parameter is a union with None; the other type decides.
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
    """Return the recipe's table of a step for the answers of a form."""
    if section != "threshold":
        head = {"target": answers["target"]} if "target" in answers and section == "synthesis" else {}
        rest = {key: value for key, value in answers.items() if key not in head}
        return {**head, "method": method, **rest}
    return threshold_table(answers, table)


def check_step(toml: str, place: StepPlace, step: Mapping[str, Any]) -> None:
    """Raise BadInput if a step is invalid at its place; problems elsewhere in the plan are ignored."""
    if place.section == "threshold":
        check_limit(step)
    try:
        Recipe.from_toml(replace_step(toml, place, step))
    except BadInput as error:
        if error.place.startswith(str(place)):
            raise BadInput(error.place.removeprefix(str(place)).lstrip("."), error.message) from None
    else:
        return
    # The recipe stopped at a problem elsewhere, so the step's own settings are checked by themselves.
    if place.section != "threshold":
        given = {key: value for key, value in step.items() if key not in ("method", "target")}
        method_of_step(place, step).spec.from_table(given, "")


def _data_keys(table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of ``[data]`` in the form."""
    units = ("order", "largest_unit") if _has_units(table) else ()
    return (*DATA_KEYS, *units)


def _release_keys(table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of ``[release]`` in the form."""
    # Redraws apply only with constraints, public rules for kept variables only in a synthesis.
    constrained = ("redraws", "unmet") if table.get("constraints") else ()
    synthesis = ("recode",) if table.get("synthesis") else ()
    # Units are drawn only where a variable numbers them.
    units = ("units", "until", "number_of_units") if synthesis and _has_units(table) else ()
    return ("m", "seed", "records", "epsilon", *synthesis, *units, *constrained)


def _has_units(table: Mapping[str, Any]) -> bool:
    """Return whether a variable of the plan numbers units."""
    return any(isinstance(own, Mapping) and own.get("role") == Role.UNIT for own in table.get("variables", {}).values())


def unit_term_offers(table: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the terms of a unit's earlier records that the steps of a plan may name, each with its kind and meaning.

    There are none unless the plan draws or keeps units.
    """
    release = table.get("release", {})
    if not release.get("units"):
        return {}
    # Where units drop out, their size follows from their records.
    every = {PLACE: TERMS_OF_EVERY_UNIT[PLACE]} if release.get("until") else TERMS_OF_EVERY_UNIT
    found = {name: {"kind": "count", "title": about} for name, about in every.items()}
    found[PLACE]["kind"] = "ordinal"
    for name, own in table.get("variables", {}).items():
        kind = own.get("kind", "") if isinstance(own, Mapping) else ""
        if not kind or own.get("level") == "unit" or Role(own.get("role", Role.OTHER)).is_identifier:
            continue
        functions = ["first", "previous", *([] if kind in WITH_LEVELS else OF_NUMBERS)]
        found |= {f"{function}({name})": {"kind": kind, "title": MEANINGS[function]} for function in functions}
    return found


def settings_fields(table: Mapping[str, Any]) -> list[FormField]:
    """Return the fields of title, data and release."""
    asked = (("", ("title",)), ("data", _data_keys(table)), ("release", _release_keys(table)))
    fields = []
    for section, keys in asked:
        declared = {info.name: info for info in recipe_params(section or "recipe")}
        given = table.get(section, {}) if section else table
        fields += [parameter_field(declared[key], given.get(key), table.get("variables", {})) for key in keys]
    return fields


def settings_sections(answers: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections of ``settings_fields`` for the answers; their other keys are kept."""

    def section(name: str, keys: Sequence[str]) -> dict[str, Any] | None:
        """Return a section with the answered keys; None if it would be empty."""
        kept = {key: value for key, value in table.get(name, {}).items() if key not in keys}
        return {**kept, **{key: answers[key] for key in keys if key in answers}} or None

    return {
        "title": answers.get("title"),
        "data": section("data", _data_keys(table)),
        "release": section("release", _release_keys(table)),
    }


def check_settings(toml: str, sections: Mapping[str, Any]) -> None:
    """Raise BadInput if title, data or release are invalid."""
    try:
        Recipe.from_toml(replace_sections(toml, sections))
    except BadInput as error:
        if error.place.partition(".")[0] in ("title", "data", "release"):
            raise


def new_step(view: PlanView, key: str) -> tuple[StepPlace, Mapping[str, Any]]:
    """Return the place of a new step with this method, and its first table."""
    if key in ("threshold", "table"):
        return StepPlace(key, len(view.table.get(key, []))), {}
    method = find_method(key, "method")
    section = section_of_method(method)
    name = method.name if section in IN_SHORT else key
    return StepPlace(section, len(view.table.get(section, []))), {"method": name}


def step_form(view: PlanView, place: StepPlace, step: Mapping[str, Any], edit: EditPlan) -> FormAndHandler:
    """Return the form of a step, and the function that puts its answer into the plan."""
    name = str(step.get("method", ""))
    variables = view.table.get("variables", {})
    try:
        if place.section == "threshold":
            title, fields, topic = "Threshold", threshold_fields(step, view.table), "recipe threshold"
        else:
            method = method_of_step(place, step)
            title, fields = (
                f"{method.title} ({method.key})",
                step_fields(method, step, variables, unit_term_offers(view.table)),
            )
            topic = method.key
    except BadInput as error:
        # A method that this version does not have leaves a form without fields, which only reports the problem.
        title, fields, topic = error.message, [], f"recipe {place.section}"

    def table_from_answers(answers: Mapping[str, Any]) -> dict[str, Any]:
        """Return the recipe's table for the answers, with what the step says of units in an older spelling."""
        return {**step_table(place.section, name, answers, view.table), **older_unit_settings(step)}

    def check(answers: dict[str, Any]) -> None:
        """Raise BadInput if the step is invalid."""
        check_step(view.toml, place, table_from_answers(answers))

    def apply_step(answers: dict[str, Any] | None) -> None:
        """Put the step into the plan."""
        if answers is not None and fields:
            edit(lambda toml: replace_step(toml, place, table_from_answers(answers)), str(place))

    if place.section != "threshold":
        return Form(title, fields, check, topic=topic), apply_step
    first = next((offer.value for offer in measured_offers(view.table)), "")
    # The value of a new threshold was chosen from a list, so the limit is what is missing.
    start = "limit" if step.get("value") and not {*BOUNDS} & {*step} else ""
    form = Form(
        title,
        fields,
        check,
        remark=lambda texts: limit_remark(texts, first),
        follow=bound_after_value_change,
        start=start,
        topic=topic,
    )
    return form, apply_step


def settings_form(view: PlanView, edit: EditPlan) -> FormAndHandler:
    """Return the form of title, data and release, and the function that puts its answer into the plan."""

    def check(answers: dict[str, Any]) -> None:
        """Raise BadInput if the settings are invalid."""
        check_settings(view.toml, settings_sections(answers, view.table))

    def apply_settings(answers: dict[str, Any] | None) -> None:
        """Put the settings into the plan."""
        if answers is not None:
            edit(lambda toml: replace_sections(toml, settings_sections(answers, view.table)), None)

    return Form("Data and release", settings_fields(view.table), check, topic="recipe"), apply_settings


class AddStepDialog(PickList):
    """List of steps to add; it returns a method's key, ``threshold`` or ``table``."""

    def __init__(self) -> None:
        super().__init__("Add a step")

    def read_query(self) -> Callable[[Workspace], list[OfferedValue]]:
        """Return the query for the steps."""
        return _step_offers

    def show_answer(self, answer: list[OfferedValue]) -> None:
        """List the steps."""
        self.set_offers(answer)


def _step_offers(_: Workspace) -> list[OfferedValue]:
    """Return all methods, the threshold and the table as entries of the list."""
    found = [OfferedValue(method.key, method.title) for method in registry().values()]
    return [
        *found,
        OfferedValue("threshold", "A limit that a measure must keep"),
        OfferedValue("table", "A table to protect and print: counts or sums"),
    ]


def threshold_value_list(view: PlanView) -> PickList:
    """Return the list of values for a new threshold."""
    return PickList("What the limit is for", measured_offers(view.table))
