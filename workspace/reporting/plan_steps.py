"""Steps of a plan in words: names of methods and limited numbers, settings, and facts about each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.engine.methods.labels import KNOWLEDGE, measure_name, method_and_output
from sfumato.engine.methods.registry import method_of_step
from sfumato.engine.methods.spec import to_plain_value
from sfumato.engine.recipe.thresholds import BOUNDS
from sfumato.engine.wording import count_noun, count_records, format_percent

from .words import limit_text, role_text

Facts = list[tuple[str, str]]
HEADLINE_KEYS = ("method", "target", "value")
ROLES = ("quasi_identifier", "sensitive", "identifier", "unit", "weight")
"""Roles of variables that are listed first, in this order."""
RELEASE = ("m", "seed", "records", "epsilon", "redraws", "unmet")
DATA = ("where", "sample", "holdout")
DATA_NAMES = {"holdout": "kept back"}
"""Names of settings of the data in words, where the setting's own is none."""
FULL_NAMES = {"cp": "complexity (cp)", "minbucket": "smallest leaf (minbucket)"}
"""Names of settings with a word for what they are, where the setting's own is an abbreviation."""

SPELLED: Mapping[str, Mapping[str, str]] = {
    "people": {"random": "people drawn at random", "vulnerable": "people easiest to find"},
    "guesses": {"all": "every guess counts"},
    "of": {"units": "of whole units", "records": "of single records"},
}
"""Values of settings in words, where name and value say little."""


@dataclass(frozen=True)
class StepDescription:
    """Description of a step of a plan: its name, its settings in a line, and facts as pairs of a name and a text.

    meanings: what its other settings mean, which have their defaults
    """

    name: str
    settings: str
    facts: Facts
    meanings: Facts = field(default_factory=list)


def describe_step(section: str, step: Mapping[str, Any], table: Mapping[str, Any]) -> StepDescription:
    """Describe a step of the plan ``table``. A plan may be incomplete; what cannot be read is left out."""
    if section == "table":
        return _describe_table(step, table)
    return _describe_threshold(step) if section == "threshold" else _describe_method_step(section, step, table)


def _describe_table(step: Mapping[str, Any], table: Mapping[str, Any]) -> StepDescription:
    """Describe a table to print: its variables, what it adds up, and the rules of all tables."""
    by = exact_value_text(step.get("by"))
    adds = exact_value_text(step.get("value")) or "number of records"
    given = {key: value for key, value in step.items() if key not in ("name", "by", "value")}
    rules = {key: value for key, value in _as_table(table.get("tables")).items() if key != "fixed"}
    fixed = _as_table(table.get("tables")).get("fixed")
    decided = len(fixed) if isinstance(fixed, list) else 0
    facts: Facts = [
        ("adds up", adds),
        ("by", by),
        *((name_with_spaces(key), exact_value_text(value)) for key, value in given.items()),
        ("rules", "; ".join(settings_phrases(rules))),
        ("decided cells", str(decided) if decided else ""),
    ]
    line = "; ".join(filter(None, [f"{adds} by {by}" if by else adds, *settings_phrases(rules)]))
    return StepDescription(exact_value_text(step.get("name")), line, _nonempty_facts(facts))


def _describe_method_step(section: str, step: Mapping[str, Any], table: Mapping[str, Any]) -> StepDescription:
    """Describe a step that uses a method: its settings, defaults, measures and limits."""
    name = str(step.get("method", ""))
    method = method_of_step(section, name)
    target = exact_value_text(step.get("target"))
    given = {key: value for key, value in step.items() if key not in HEADLINE_KEYS}
    line = "; ".join(filter(None, [target, *settings_phrases(given)]))
    helps = {} if method is None else {info.name: info.param.help for info in method.spec.params()}
    facts: Facts = [
        ("replaces", target),
        *((name_with_spaces(key), _explained_value(value, helps.get(key, ""))) for key, value in given.items()),
    ]
    meanings: Facts = []
    if method is not None:
        results = {f"{method.key}.{one.name}" for one in method.result_outputs}
        defaults = {
            info.name: to_plain_value(info.default)
            for info in method.spec.params()
            if not info.is_required and info.name not in given
        }
        # an empty list of known variables stands for all quasi-identifiers
        people = dict(role_facts(table)).get(role_text(ROLES[0]), "")
        facts += [
            (name_with_spaces(name), f"{people} (all quasi-identifiers)")
            for name in KNOWLEDGE
            if defaults.get(name) == [] and people
        ]
        facts += [
            ("defaults", "; ".join(settings_phrases(defaults, in_words=False))),
            (
                "measures",
                "; ".join(dict.fromkeys(measure_name(f"{method.key}.{one.name}") for one in method.result_outputs)),
            ),
            *(("limit", limit) for limit in _limits_on_results(results, table)),
            ("source", method.source),
            ("key", method.key),
        ]
        meanings = [(name_with_spaces(key), helps[key]) for key, value in defaults.items() if exact_value_text(value)]
    return StepDescription(method.title if method else name, line, _nonempty_facts(facts), _nonempty_facts(meanings))


def _explained_value(value: object, meaning: str) -> str:
    """Return a number, or yes or no, with what the setting means; other values as they are."""
    text = exact_value_text(value)
    return f"{text}: {meaning}" if meaning and isinstance(value, bool | int | float) else text


def _limits_on_results(results: set[str], table: Mapping[str, Any]) -> list[str]:
    """Return the limits of a plan on the numbers that a method measures."""
    words = [
        _describe_threshold(one) for one in _steps_of_section(table, "threshold") if str(one.get("value")) in results
    ]
    return [f"{one.name}: {one.settings}" for one in words]


def _describe_threshold(step: Mapping[str, Any]) -> StepDescription:
    """Describe a threshold by its number and limit; unchanged where it cannot be read."""
    value = step.get("value")
    bound = next(
        # a bool is an int to isinstance, but no limit
        (one for one in BOUNDS if isinstance(step.get(one), int | float) and not isinstance(step[one], bool)),
        None,
    )
    params = _as_table(step.get("params"))
    rest = {
        key: one for key, one in step.items() if key not in (*HEADLINE_KEYS, bound) and not (params and key == "params")
    }
    rest |= {str(key): one for key, one in params.items()}
    # a threshold with two limits cannot be read, and is shown as it was written
    named = isinstance(value, str) and bound is not None and not any(one in rest for one in BOUNDS)
    limit = limit_text(bound, step[bound], str(value)) if named and bound is not None else ""
    if not limit:
        rest = {key: one for key, one in step.items() if key not in HEADLINE_KEYS}
    target = exact_value_text(step.get("target"))
    line = "; ".join(filter(None, [limit, target, *settings_phrases(rest)]))
    facts: Facts = [
        ("limit", limit),
        ("variable", target),
        *((name_with_spaces(key), exact_value_text(one)) for key, one in rest.items()),
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
    name = measure_name(value) if isinstance(value, str) and named else exact_value_text(value)
    return StepDescription(name, line, _nonempty_facts(facts))


def describe_plan_head(table: Mapping[str, Any]) -> StepDescription:
    """Describe the title, the data and the release of a plan."""
    data, release, weights = (_as_table(table.get(name)) for name in ("data", "release", "weights"))
    told = {key: release[key] for key in RELEASE if key in release}
    if "holdout" in data:
        told["holdout"] = data["holdout"]
    said = settings_phrases(told)
    if weights:
        said.append(f"weights of run {exact_value_text(weights.get('run'))}")
    facts: Facts = [
        ("title", exact_value_text(table.get("title"))),
        ("file", exact_value_text(data.get("file"))),
        *((DATA_NAMES.get(key, key), _data_text(key, data[key])) for key in DATA if key in data),
        ("release", "; ".join(settings_phrases(release))),
        ("weights", "; ".join(settings_phrases(weights))),
        *role_facts(table),
    ]
    return StepDescription(exact_value_text(data.get("file")), "; ".join(said), _nonempty_facts(facts))


def _data_text(key: str, value: object) -> str:
    """Return a setting of the data as text: a share that is kept back in per cent."""
    is_share = key == "holdout" and isinstance(value, int | float)
    return f"{format_percent(value)} of the records" if is_share else exact_value_text(value)  # type: ignore[arg-type]


def role_facts(table: Mapping[str, Any]) -> Facts:
    """Return the variables of a plan by role; variables of other roles come last."""
    found: dict[str, list[str]] = {role_text(role): [] for role in ROLES}
    for name, one in _as_table(table.get("variables")).items():
        role = str(one.get("role", "other")) if isinstance(one, Mapping) else "other"
        found.setdefault(role_text(role), []).append(str(name))
    return [(role, ", ".join(names)) for role, names in found.items() if names]


def plan_facts(table: Mapping[str, Any], *, limits: bool = True) -> Facts:
    """Return the facts of a plan: its data, release, variables by role and steps, and its limits if ``limits``."""
    head = describe_plan_head(table)
    facts: Facts = [("data", head.name), ("release", head.settings)]
    facts += [("" if at else "variables", f"{role}: {names}") for at, (role, names) in enumerate(role_facts(table))]
    for section in ("synthesis", "anonymisation"):
        steps = [describe_step(section, one, table) for one in _steps_of_section(table, section)]
        facts += [
            (section if not at else "", f"{one.name}: {one.settings}".removesuffix(": "))
            for at, one in enumerate(steps)
        ]
    for section, name in (("measure", "measures"), ("study", "studies")):
        facts.append(
            (name, "; ".join(describe_step(section, one, table).name for one in _steps_of_section(table, section)))
        )
    facts.append(("tables", "; ".join(_describe_table(one, table).name for one in _steps_of_section(table, "table"))))
    limited = [_describe_threshold(one) for one in _steps_of_section(table, "threshold")] if limits else []
    facts += [("" if at else "limits", f"{one.name}: {one.settings}") for at, one in enumerate(limited)]
    return _nonempty_facts(facts)


def _steps_of_section(table: Mapping[str, Any], section: str) -> Sequence[Mapping[str, Any]]:
    """Return the steps of a section that are tables; none where it is not a list."""
    found = table.get(section)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _as_table(value: object) -> Mapping[str, Any]:
    """Return a value that is a table, otherwise an empty table."""
    return value if isinstance(value, Mapping) else {}


def _nonempty_facts(facts: Facts) -> Facts:
    """Return the facts that have a text."""
    return [(name, text) for name, text in facts if text]


def settings_phrases(settings: Mapping[str, Any], *, in_words: bool = True) -> list[str]:
    """Return settings as phrases: ``predictors age, sex``, ``smoothing yes``, ``5 datasets``; empty ones are left out.

    Not ``in_words``, each has its own name, under which its meaning is told.
    """
    return [
        _setting_phrase(key, value)
        if in_words
        else f"{FULL_NAMES.get(key, name_with_spaces(key))} {exact_value_text(value)}"
        for key, value in settings.items()
        if exact_value_text(value)
    ]


def _setting_phrase(key: str, value: object) -> str:
    """Return a setting as a phrase, in words where its name is none."""
    text = exact_value_text(value)
    if key == "m" and isinstance(value, int):
        return count_noun(value, "dataset")
    if key == "holdout" and isinstance(value, int | float):
        return f"{format_percent(value)} kept back"
    if key == "minbucket" and isinstance(value, int):
        return f"leaves of at least {count_records(value)}"
    if key == "radius":
        return f"a match within {text}"
    if key == "records" and isinstance(value, int):
        return count_records(value)
    if key in SPELLED:
        return SPELLED[key].get(text, f"{text} {name_with_spaces(key)}")
    return f"{name_with_spaces(key)} {text}"


def name_with_spaces(name: str) -> str:
    """Return a name with blanks for underscores."""
    return name.replace("_", " ")


def exact_value_text(value: object) -> str:
    """Return a value as text, with every digit: ``yes``, ``age, sex``, ``price 5%``; empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {exact_value_text(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(
            f"({exact_value_text(item)})" if isinstance(item, (list, tuple)) else exact_value_text(item)
            for item in value
        )
    return str(value)
