"""The forms that a plan is edited with: the fields of a step, of its settings, and the choice of a step to add."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from typing import Any, ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from sfumato.engine.errors import BadInput
from sfumato.engine.methods import Method, registry
from sfumato.engine.recipe import Recipe
from sfumato.engine.schema import MissingPolicy
from sfumato.engine.spec import ParamInfo, written
from sfumato.engine.thresholds import BOUNDS
from sfumato.tui.widgets.entries import Entry
from sfumato.workspace.plan.edits import PlanView, StepPlace, with_sections, with_step
from sfumato.workspace.store.workspace import Workspace

from ..fields import Field, FieldKind, inline
from .form import Form
from .page import Dialog

TERMS = ("log", "log1p", "sqrt", "square")


def section_of(method: Method) -> str:
    """The list of a recipe that takes a method."""
    return {"synthesis": "synthesis", "anonymisation": "anonymisation", "studies": "study"}.get(
        method.family, "measure"
    )


def method_of(place: StepPlace, step: Mapping[str, Any]) -> Method:
    """The method that a step names. Raises BadInput."""
    name = str(step.get("method", ""))
    for key in (f"{place.section}.{name}", name):
        if key in registry():
            return registry()[key]
    raise BadInput(f"{place}.method", f'no method "{name}"; correct it in the TOML, or add the step anew')


def step_fields(method: Method, step: Mapping[str, Any], names: Sequence[str]) -> list[Field]:
    """A field a parameter; before them the target of a synthesis step. ``names`` are the plan's variables."""
    several = method.joint
    what = "the variables to synthesise, in this order" if several else "the variable to synthesise"
    target = Field("target", what, "list" if several else "text", step.get("target"), words=tuple(names))
    head = [target] if method.family == "synthesis" else []
    return head + [_field(info, step.get(info.name), tuple(names)) for info in method.spec.params()]


def _field(info: ParamInfo, value: object, names: tuple[str, ...]) -> Field:
    kind, choices = _shape(info.type)
    words = {"variables": names, "terms": (*names, *TERMS)}.get(info.param.names or "", ()) or getattr(
        info.type, "words", ()
    )
    asked = "; must be given" if info.required else ""
    limits = f"; {info.param.limits}" if info.param.limits else ""
    default = None if info.default is MISSING else written(info.default)
    given = inline(value) if kind == "value" else value
    return Field(info.name, f"{info.param.help}{limits}{asked}", kind, given, default, choices, words)


def _shape(declared: Any) -> tuple[FieldKind, tuple[str, ...]]:
    origin, args = typing.get_origin(declared), typing.get_args(declared)
    if origin in (typing.Union, types.UnionType):
        return _shape(next(arg for arg in args if arg is not type(None)))
    if origin is Literal:
        return "text", tuple(map(str, args))
    if declared is bool:
        return "value", ("false", "true")
    if origin is tuple:
        return "list", ()
    if origin is not None and issubclass(origin, Mapping):
        return "table", ()
    return ("text" if declared is str else "value"), ()


def threshold_fields(step: Mapping[str, Any], table: Mapping[str, Any]) -> list[Field]:
    """The form of a threshold, its value one of those that the plan measures."""
    bound = next((name for name in BOUNDS if name in step), None)
    values = _measured(table)
    choices = values if values and step.get("value", values[0]) in values else ()
    return [
        Field("value", "what is held against the limit", value=step.get("value"), default=values[0] if values else None,
              choices=choices, words=values),
        Field("bound", "at most, at least, or at most so many times the confidential data's own value", value=bound or "max", choices=BOUNDS),
        Field("limit", "the number that must not be passed", "value", step.get(bound) if bound else None),
        Field("target", "only for this variable; left out, for all", value=step.get("target"), words=tuple(table.get("variables", {}))),
        Field("level", "only at this level of a study; left out, at all", "value", step.get("level")),
        Field("params", "only for the step of these settings, such as model = cart; left out, for every one", "table",
              step.get("params")),
    ]  # fmt: skip


def _key(method: str) -> str:
    """A method's key; steps of synthesis may leave the family out."""
    return method if "." in method else f"synthesis.{method}"


def _measured(table: Mapping[str, Any]) -> tuple[str, ...]:
    steps = [*table.get("synthesis", []), *table.get("measure", []), *table.get("study", [])]
    found = [registry()[key] for step in steps if (key := _key(str(step.get("method", "")))) in registry()]
    return tuple(dict.fromkeys(f"{method.key}.{output.name}" for method in found for output in method.results))


def step_table(section: str, method: str, answers: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's table of what a form answered."""
    if section != "threshold":
        head = {"target": answers["target"]} if "target" in answers and section == "synthesis" else {}
        rest = {key: value for key, value in answers.items() if key not in head}
        return {**head, "method": method, **rest}
    values = _measured(table)
    value = answers.get("value", values[0] if values else "")
    rest = {key: answers[key] for key in ("target", "level", "params") if key in answers}
    limit = {answers["bound"]: answers["limit"]} if "limit" in answers else {}
    return {"value": value, **rest, **limit}


def check_step(toml: str, place: StepPlace, step: Mapping[str, Any]) -> None:
    """BadInput when a step cannot stand at its place; what is wrong elsewhere in the plan is no matter here."""
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


def settings_fields(table: Mapping[str, Any]) -> list[Field]:
    """The form of what is no step: title, data and release."""
    data, release = table.get("data", {}), table.get("release", {})
    return [
        Field("title", "what the run is called", value=table.get("title")),
        Field("file", "the confidential file", value=data.get("file")),
        Field("where", "which records, a DuckDB expression such as price > 0", value=data.get("where")),
        Field("sample", "how many records, chosen by the seed; left out, all", "value", data.get("sample")),
        Field("holdout", "control records, of which no release is made: a share such as 0.2, or the column that says which; left out, none",
              "value", data.get("holdout")),
        Field("missing", "what becomes of records with a missing value", value=data.get("missing"), default="refuse",
              choices=tuple(MissingPolicy)),
        Field("m", "datasets to release; at least 1", "value", release.get("m")),
        Field("seed", "of all randomness; at least 0", "value", release.get("seed"), 1),
        Field("records", "of each dataset, where one step makes every variable; left out, as many as there are", "value",
              release.get("records")),
        Field("epsilon", "budget: the most that the run may cost, where a step keeps a privacy account; left out, none", "value",
              release.get("epsilon")),
    ]  # fmt: skip


def settings_sections(answers: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """The sections of a recipe that ``settings_fields`` speak of, as answered; other keys of theirs are kept."""

    def section(name: str, keys: Sequence[str]) -> dict[str, Any] | None:
        kept = {key: value for key, value in table.get(name, {}).items() if key not in keys}
        return {**kept, **{key: answers[key] for key in keys if key in answers}} or None

    data, release = (
        section("data", ("file", "where", "sample", "holdout", "missing")),
        section("release", ("m", "seed", "records", "epsilon")),
    )
    return {"title": answers.get("title"), "data": data, "release": release}


def check_settings(toml: str, sections: Mapping[str, Any]) -> None:
    """BadInput when title, data or release cannot be so."""
    try:
        Recipe.from_toml(with_sections(toml, sections))
    except BadInput as error:
        if error.place.partition(".")[0] in ("title", "data", "release"):
            raise


Edit = Callable[[Callable[[str], str], str | None], None]
Opened = tuple[Form, Callable[[dict[str, Any] | None], None]]
IN_SHORT = ("synthesis", "anonymisation")


def new_step(view: PlanView, key: str) -> tuple[StepPlace, Mapping[str, Any]]:
    """Where a step with this method goes, and what it says at first."""
    if key == "threshold":
        return StepPlace("threshold", len(view.table.get("threshold", []))), {}
    method = registry()[key]
    section = section_of(method)
    name = method.name if section in IN_SHORT else key
    return StepPlace(section, len(view.table.get(section, []))), {"method": name}


def step_form(view: PlanView, place: StepPlace, step: Mapping[str, Any], edit: Edit) -> Opened:
    """The form of one step."""
    name = str(step.get("method", ""))
    names = list(view.table.get("variables", {}))
    try:
        if place.section == "threshold":
            title, fields = "Threshold", threshold_fields(step, view.table)
        else:
            method = method_of(place, step)
            title, fields = f"{method.title} ({method.key})", step_fields(method, step, names)
    except BadInput as error:
        title, fields = error.message, []

    def made(answers: Mapping[str, Any]) -> dict[str, Any]:
        return step_table(place.section, name, answers, view.table)

    def check(answers: dict[str, Any]) -> None:
        check_step(view.toml, place, made(answers))

    def answered(answers: dict[str, Any] | None) -> None:
        if answers is not None and fields:
            edit(lambda toml: with_step(toml, place, made(answers)), str(place))

    return Form(title, fields, check), answered


def settings_form(view: PlanView, edit: Edit) -> Opened:
    """The form of title, data and release."""

    def check(answers: dict[str, Any]) -> None:
        check_settings(view.toml, settings_sections(answers, view.table))

    def answered(answers: dict[str, Any] | None) -> None:
        if answers is not None:
            edit(lambda toml: with_sections(toml, settings_sections(answers, view.table)), None)

    return Form("Data and release", settings_fields(view.table), check), answered


class AddStep(Dialog[str]):
    """Answers a method's key, or ``threshold``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "focused.cursor_down", "Down", show=False, id="add_step.down"),
        Binding("k", "focused.cursor_up", "Up", show=False, id="add_step.up"),
        Binding("slash", "search", "Search", key_display="/", id="add_step.search"),
    ]
    AUTO_FOCUS = "OptionList"

    def __init__(self) -> None:
        super().__init__()
        self._methods: list[tuple[str, str]] = []

    def compose(self) -> ComposeResult:
        """The methods, and a field to search them."""
        with Vertical(classes="dialog tall"):
            yield Static("Add a step   (enter chooses, / searches, q closes)", classes="dialog-title", markup=False)
            yield OptionList(compact=True, markup=False)
            yield Entry(placeholder="search")

    def read_query(self) -> Callable[[Workspace], list[tuple[str, str]]]:
        """Key and title of every method."""
        return _methods

    def take(self, answer: list[tuple[str, str]]) -> None:
        """Offer them."""
        self._methods = answer
        self._list()

    @on(Input.Changed)
    def _list(self) -> None:
        sought = self.query_one(Input).value.strip().lower()
        found = [(key, title) for key, title in self._methods if sought in f"{key} {title}".lower()]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([Option(f"{key:<42} {title}", id=key) for key, title in found])
        options.highlighted = 0 if found else None

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(str(event.option_id))

    @on(Input.Submitted)
    def _submit(self) -> None:
        chosen = self.query_one(OptionList).highlighted_option
        if chosen is not None:
            self.dismiss(str(chosen.id))

    def action_search(self) -> None:
        """Type a part of a method's name."""
        self.query_one(Input).focus()


def _methods(_: Workspace) -> list[tuple[str, str]]:
    found = [(method.key, method.title) for method in registry().values()]
    return [*found, ("threshold", "A limit that a measure must keep")]
