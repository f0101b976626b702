"""The forms that a plan is edited with, each with what to do once it is filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sfumato.engine.errors import BadInput
from sfumato.engine.methods import registry
from sfumato.tui.step_form import (
    check_settings,
    check_step,
    method_of,
    section_of,
    settings_fields,
    settings_sections,
    step_fields,
    step_table,
    threshold_fields,
)
from sfumato.workspace.plan.edits import Place, with_sections, with_step
from sfumato.workspace.plan.steps import PlanView

from .form import Form

__all__ = ["new_step", "settings_form", "step_form"]

Edit = Callable[[Callable[[str], str], str | None], None]
Opened = tuple[Form, Callable[[dict[str, Any] | None], None]]
IN_SHORT = ("synthesis", "anonymisation")


def new_step(view: PlanView, key: str) -> tuple[Place, Mapping[str, Any]]:
    """Where a step with this method goes, and what it says at first."""
    if key == "threshold":
        return Place("threshold", len(view.table.get("threshold", []))), {}
    method = registry()[key]
    section = section_of(method)
    name = method.name if section in IN_SHORT else key
    return Place(section, len(view.table.get(section, []))), {"method": name}


def step_form(view: PlanView, place: Place, step: Mapping[str, Any], edit: Edit) -> Opened:
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
