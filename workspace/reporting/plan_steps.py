"""The steps of a plan in words: methods and limited numbers by their names, settings whole, and what a step is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.engine.methods.labels import KNOWLEDGE, measure_name, method_and_output
from sfumato.engine.methods.registry import method_of_step
from sfumato.engine.methods.spec import to_plain_value
from sfumato.engine.recipe.thresholds import BOUNDS

from .words import limit_text, role_text

Facts = list[tuple[str, str]]
HEADED = ("method", "target", "value")
ROLES = ("quasi_identifier", "sensitive", "identifier", "weight")
RELEASE = ("m", "seed", "records", "epsilon", "redraws", "unmet")
DATA = ("where", "sample", "holdout")


@dataclass(frozen=True)
class StepWords:
    """A step: what it is called, what it is of, its settings in a line, and all that there is to say of it by name."""

    name: str
    settings: str
    facts: Facts


def step_words(section: str, step: Mapping[str, Any], table: Mapping[str, Any]) -> StepWords:
    """A step of the plan ``table``, as far as it can be read."""
    return _limit_words(step) if section == "threshold" else _method_words(section, step, table)


def _method_words(section: str, step: Mapping[str, Any], table: Mapping[str, Any]) -> StepWords:
    name = str(step.get("method", ""))
    method = method_of_step(section, name)
    target = value_text(step.get("target"))
    given = {key: value for key, value in step.items() if key not in HEADED}
    line = "; ".join(filter(None, [target, *settings_text(given)]))
    facts: Facts = [("replaces", target), *((spaced(key), value_text(value)) for key, value in given.items())]
    if method is not None:
        results = {f"{method.key}.{one.name}" for one in method.result_outputs}
        defaults = {
            info.name: to_plain_value(info.default)
            for info in method.spec.params()
            if not info.is_required and info.name not in given
        }
        people = dict(roles_words(table)).get(role_text(ROLES[0]), "")
        facts += [
            (spaced(name), f"{people} (all quasi-identifiers)")
            for name in KNOWLEDGE
            if defaults.get(name) == [] and people
        ]
        facts += [
            ("defaults", "; ".join(settings_text(defaults))),
            (
                "measures",
                "; ".join(dict.fromkeys(measure_name(f"{method.key}.{one.name}") for one in method.result_outputs)),
            ),
            *(("limit", limit) for limit in _limits(results, table)),
            ("source", method.source),
            ("key", method.key),
        ]
    return StepWords(method.title if method else name, line, _said(facts))


def _limits(results: set[str], table: Mapping[str, Any]) -> list[str]:
    """The limits of a plan on what a method measures."""
    words = [_limit_words(one) for one in _steps(table, "threshold") if str(one.get("value")) in results]
    return [f"{one.name}: {one.settings}" for one in words]


def _limit_words(step: Mapping[str, Any]) -> StepWords:
    """What a threshold limits and its limit; as they are written where they cannot be read."""
    value = step.get("value")
    bound = next(
        (one for one in BOUNDS if isinstance(step.get(one), int | float) and not isinstance(step[one], bool)), None
    )
    params = _section(step.get("params"))
    rest = {key: one for key, one in step.items() if key not in (*HEADED, bound) and not (params and key == "params")}
    rest |= {str(key): one for key, one in params.items()}
    named = isinstance(value, str) and bound is not None and not any(one in rest for one in BOUNDS)
    limit = limit_text(bound, step[bound], str(value)) if named and bound is not None else ""
    if not limit:
        rest = {key: one for key, one in step.items() if key not in HEADED}
    target = value_text(step.get("target"))
    line = "; ".join(filter(None, [limit, target, *settings_text(rest)]))
    facts: Facts = [
        ("limit", limit),
        ("variable", target),
        *((spaced(key), value_text(one)) for key, one in rest.items()),
    ]
    if isinstance(value, str):
        method, output = method_and_output(value)
        facts += [
            ("good is", output.label.good),
            ("if not met", output.label.fails),
            ("what to change", "; ".join(map(str, output.label.levers))),
            ("definition", output.meaning),
            ("measured by", method.title if method else ""),
            ("key", value),
        ]
    name = measure_name(value) if isinstance(value, str) and named else value_text(value)
    return StepWords(name, line, _said(facts))


def plan_head_words(table: Mapping[str, Any]) -> StepWords:
    """The title, the data and the release of a plan."""
    data, release, weights = (_section(table.get(name)) for name in ("data", "release", "weights"))
    told = {key: release[key] for key in RELEASE if key in release}
    if "holdout" in data:
        told["holdout"] = data["holdout"]
    said = settings_text(told)
    if weights:
        said.append(f"weights of run {value_text(weights.get('run'))}")
    facts: Facts = [
        ("title", value_text(table.get("title"))),
        ("file", value_text(data.get("file"))),
        *((spaced(key), value_text(data[key])) for key in DATA if key in data),
        ("release", "; ".join(settings_text(release))),
        ("weights", "; ".join(settings_text(weights))),
        *roles_words(table),
    ]
    return StepWords(value_text(data.get("file")), "; ".join(said), _said(facts))


def roles_words(table: Mapping[str, Any]) -> Facts:
    """The variables of a plan by role, those that are no variable's concern last."""
    found: dict[str, list[str]] = {role_text(role): [] for role in ROLES}
    for name, one in _section(table.get("variables")).items():
        role = str(one.get("role", "other")) if isinstance(one, Mapping) else "other"
        found.setdefault(role_text(role), []).append(str(name))
    return [(role, ", ".join(names)) for role, names in found.items() if names]


def plan_facts(table: Mapping[str, Any], *, limits: bool = True) -> Facts:
    """A plan in few words: its data and release, its variables by role, every step by its name, and its ``limits``."""
    head = plan_head_words(table)
    facts: Facts = [("data", head.name), ("release", head.settings)]
    facts += [("" if at else "variables", f"{role}: {names}") for at, (role, names) in enumerate(roles_words(table))]
    for section in ("synthesis", "anonymisation"):
        steps = [step_words(section, one, table) for one in _steps(table, section)]
        facts += [
            (section if not at else "", f"{one.name}: {one.settings}".removesuffix(": "))
            for at, one in enumerate(steps)
        ]
    for section, name in (("measure", "measures"), ("study", "studies")):
        facts.append((name, "; ".join(step_words(section, one, table).name for one in _steps(table, section))))
    limited = [_limit_words(one) for one in _steps(table, "threshold")] if limits else []
    facts += [("" if at else "limits", f"{one.name}: {one.settings}") for at, one in enumerate(limited)]
    return _said(facts)


def _steps(table: Mapping[str, Any], section: str) -> Sequence[Mapping[str, Any]]:
    found = table.get(section)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _section(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _said(facts: Facts) -> Facts:
    return [(name, text) for name, text in facts if text]


def settings_text(settings: Mapping[str, Any]) -> list[str]:
    """Settings in words: ``predictors age, sex``, ``smoothing yes``; those that are empty are left out."""
    texts = ((spaced(key), value_text(value)) for key, value in settings.items())
    return [f"{name} {text}" for name, text in texts if text]


def spaced(name: str) -> str:
    return name.replace("_", " ")


def value_text(value: object) -> str:
    """A value with every digit: ``yes``, ``age, sex``, ``price 5%``; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {value_text(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(
            f"({value_text(item)})" if isinstance(item, (list, tuple)) else value_text(item) for item in value
        )
    return str(value)
