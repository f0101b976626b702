"""Labels of numbers for people: name, value with unit, and sentence.

Screens, commands, reports and documents use these alone. A name contains what distinguishes a number from others: the
variable, the subject of the row (kind, people, level), the intruder's knowledge, and the method where several share the
name. ``label_of`` has all of it. ``labels_of`` omits settings that are equal in a whole table, and its names are unique
within that table.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol, cast

from ..data.schema import SURVEY_SETTING
from ..wording import format_number, format_percent, format_setting, record_noun, singular_noun
from .outputs import Label, Output
from .registry import OWN, Method, method_by_key, method_of_step, output_by_key
from .rows import UNIT_SIZE
from .spec import Spec, to_plain_value

KNOWLEDGE = ("known", "keys", "quasi_identifiers")
"""Settings that list what an intruder knows; a row's own ``variables`` are those of one subset."""
SOME_PEOPLE = ("targets", "among", "external", "coverage", "people", "intruder", "records", UNIT_SIZE)
"""Parameters of which one says that a number is of some people, not of all confidential records."""
KINDS_OF_PREDICATES = {"univariate": "by one variable", "multivariate": "by several variables"}
"""What the descriptions of a singling-out attack are of, in words."""
BY_UNIT, WHOLE_UNITS, UNITS_OF_SIZE = "by unit", "whole units", "units of "
"""What a number says that counts units, where it is not known what these are."""
UNKNOWN = Output("", "", "none")
SHORT_TITLES: Mapping[str, str] = {
    "synthesis.cart": "trees (CART)",
    "synthesis.ctgan": "CTGAN",
    "synthesis.dirichlet_multinomial": "Dirichlet-multinomial",
    "synthesis.dpmpm": "DPMPM",
    "synthesis.linear_regression": "linear regression",
    "synthesis.marginal_bootstrap": "bootstrap",
    "synthesis.margins": "protected margins",
    "synthesis.multinomial_logistic": "multinomial logit",
    "synthesis.perturbed_gibbs": "perturbed Gibbs",
    "synthesis.perturbed_imputation": "perturbed imputation",
    "synthesis.sequential_logistic": "logistic",
    "synthesis.zero_inflated_truncated_poisson": "zero-inflated Poisson",
}
"""Short names of methods that draw values, by key, where a title has too little room."""


class LabelledNumber(Protocol):
    """Anything that identifies one series of numbers: a row, a verdict, or a number compared between two runs."""

    @property
    def key(self) -> str:
        """Return ``family.method.measure``."""
        ...

    @property
    def target(self) -> str: ...

    @property
    def level(self) -> float | None: ...

    @property
    def params(self) -> Mapping[str, Any] | None: ...


class SeriesIdentity(NamedTuple):
    """Key, target, level and parameters that identify a series where no row or verdict is at hand."""

    key: str
    target: str = ""
    level: float | None = None
    params: Mapping[str, Any] | None = None


def short_method_title(section: str, name: str) -> str:
    """Return the short name of the method of a step, for a narrow column; empty for a method without one."""
    method = method_of_step(section, name)
    return "" if method is None else SHORT_TITLES.get(method.key, method.title)


def method_and_output(key: str) -> tuple[Method | None, Output]:
    """Return the method and the output of a measure's key; None and an empty output where this version lacks them."""
    output = output_by_key(key)
    return (None, UNKNOWN) if output is None else (method_by_key(key.rpartition(".")[0]), output)


def measure_name(key: str) -> str:
    """Return the display name of a measure: its label, else its meaning, else the words of its key."""
    method, output = method_and_output(key)
    if method is None:
        name, _, measure = key.rpartition(".")
        return _key_as_words(f"{measure} ({name.partition('.')[2]})")
    # A plugin may use the name of a measure of ours, so its method is named too.
    name = output.label.name or f"{output.meaning[:1].upper()}{output.meaning[1:]}"
    return f"{name} ({method.title})" if output.label.shared or method.package != OWN else name


def label_of(row: LabelledNumber) -> str:
    """Return the full name of a number, with its variable and every setting of its row: ``Quantile (income; q 0.9)``."""
    method, _ = method_and_output(row.key)
    own, settings = _name_parts(row, method)
    return _name_with_parts(
        measure_name(row.key), [*own, *(_setting_text(name, value) for name, value in settings.items())]
    )


def subject_of(row: LabelledNumber, records: int | None = None) -> str:
    """Return what a number is about beside its measure, in words: ``income; q 0.9``, ``by household``; empty for all records.

    ``records`` as in ``quantity_of``: it may know what the units are.
    """
    return "; ".join(_name_units(part, records) for part in _name_parts(row, method_and_output(row.key)[0])[0])


def _name_units(text: str, records: int | None) -> str:
    """Return words about units with their noun, where the number of confidential ``records`` knows it."""
    units = getattr(records, "units", None)
    if units is None:
        return text
    noun = singular_noun(record_noun(units))
    if text in (BY_UNIT, WHOLE_UNITS):
        return f"by {noun}"
    return text.replace(UNITS_OF_SIZE, f"{record_noun(units)} with ")


def labels_of(rows: Sequence[LabelledNumber]) -> list[str]:
    """Return the names of the rows of one table, in their order; equal only where rows are of the same series.

    A name has the settings in which the rows of its method differ, defaults too.
    """
    # Settings that all rows of a method share would only repeat the table's context in every name.
    parts = [_name_parts(row, method_and_output(row.key)[0]) for row in rows]
    varying = _varying_settings(rows, [settings for _, settings in parts])
    names = []
    for row, (own, settings) in zip(rows, parts, strict=True):
        shown = {
            name: _varying_part(settings.get(name, one.default), one) for name, one in varying[_method_key(row)].items()
        }
        names.append(
            _name_with_parts(
                measure_name(row.key), [*own, *(_setting_text(name, value) for name, value in shown.items())]
            )
        )
    return _make_unique(rows, names)


def _make_unique(rows: Sequence[LabelledNumber], names: Sequence[str]) -> list[str]:
    """Make names unique: full names where rows of several series would share one, numbered where even these are equal."""
    series = [_series_key(row) for row in rows]
    bearers = _number_series_by_name(names, series)
    # Even full names can be equal, so the rest is numbered.
    full = [label_of(row) if len(bearers[name]) > 1 else name for name, row in zip(names, rows, strict=True)]
    bearers = _number_series_by_name(full, series)
    return [
        name if len(bearers[name]) == 1 else f"{name}, {bearers[name][one]}"
        for name, one in zip(full, series, strict=True)
    ]


def _number_series_by_name(names: Sequence[str], series: Sequence[str]) -> dict[str, dict[str, int]]:
    """Assign numbers to the series that share a name from 1, in their order, by name."""
    found: dict[str, dict[str, int]] = {}
    for name, one in zip(names, series, strict=True):
        found.setdefault(name, {}).setdefault(one, len(found[name]) + 1)
    return found


def _series_key(row: LabelledNumber) -> str:
    return json.dumps([row.key, row.target, row.level, row.params or {}], sort_keys=True, default=str)


def _method_key(row: LabelledNumber) -> str:
    return row.key.rpartition(".")[0]


class VaryingSetting(NamedTuple):
    """Setting in which rows of a method differ.

    default: its default value
    places: variables in which rows differ, of a setting with a value for each variable
    """

    default: object
    places: frozenset[str]


def _varying_settings(
    rows: Sequence[LabelledNumber], settings: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, VaryingSetting]]:
    """Return the settings in which the rows of each method differ, by method key and name."""
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for row, own in zip(rows, settings, strict=True):
        tables.setdefault(_method_key(row), []).append(own)
    found = {}
    for key, used in tables.items():
        names = dict.fromkeys(name for one in used for name in one)
        varying = [name for name in names if any(one.get(name) != used[0].get(name) for one in used)]
        # A row lacks settings at their default, so the default fills its name where other rows vary.
        method = method_by_key(key) if varying else None
        defaults = {} if method is None else _settings_of_spec(cast("Hashable", method.spec))[2]
        found[key] = {
            name: VaryingSetting(defaults.get(name), _differing_keys([one.get(name) for one in used]))
            for name in varying
        }
    return found


def _differing_keys(values: Sequence[object]) -> frozenset[str]:
    """Return the keys whose values differ among several mappings."""
    tables = [value if isinstance(value, Mapping) else {} for value in values]
    keys = dict.fromkeys(key for one in tables for key in one)
    return frozenset(key for key in keys if any(one.get(key) != tables[0].get(key) for one in tables))


def _varying_part(value: object, varying: VaryingSetting) -> object:
    """Return the value of a setting; of a mapping only the keys that vary."""
    if not isinstance(value, Mapping):
        return value
    return {key: one for key, one in value.items() if key in varying.places} or value


@cache
def _settings_of_spec(spec: Hashable) -> tuple[frozenset[str], frozenset[str], Mapping[str, Any]]:
    """Return the names of a step's settings, the names of those that are lists, and the defaults."""
    assert isinstance(spec, type)
    assert issubclass(spec, Spec)
    infos = list(spec.params())
    lists = frozenset(info.name for info in infos if isinstance(info.default, tuple))
    defaults = {info.name: to_plain_value(info.default) for info in infos if not info.is_required}
    return frozenset({*(info.name for info in infos), SURVEY_SETTING}), lists, defaults


def own_params(method: Method | None, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the parameters that distinguish a row from others of its step, without the step's own settings.

    A text under the name of a list setting is the row's own, such as the kind of ``targets`` that it is about.
    """
    if method is None:
        return {}
    settings, lists, _ = _settings_of_spec(cast("Hashable", method.spec))
    return {
        name: value
        for name, value in (params or {}).items()
        if name.removeprefix(f"{method.name}.") not in settings or (name in lists and isinstance(value, str))
    }


def _name_parts(row: LabelledNumber, method: Method | None) -> tuple[list[str], dict[str, Any]]:
    """Return the words that are always part of a name (variable, level, subject of the row), and the settings of its
    step.
    """
    params = row.params or {}
    own = own_params(method, params) if method else params
    axis = method.study.axis if method else None
    # A count is shown with its column; it does not distinguish rows.
    count = method.study.split.count if method and method.study.split else ""
    always = {name: v for name, v in own.items() if name != count and (_is_text_or_number(v) or name == "variables")}
    # Of a coefficient its term comes before its model, which is long: a list cuts the end.
    if "term" in always and "estimand" in always:
        always = {**always, "estimand": f"{always['estimand']} of {always['term']}"}
        named = [name for name in always if name != "term"]
    else:
        named = list(always)
    words = [row.target, *(_setting_text(name, always[name], row) for name in named)]
    if row.level is not None:
        words.append(f"{axis.label if axis else 'level'} {format_number(row.level)}")
    rest = {name: value for name, value in params.items() if name not in always and name not in (count, SURVEY_SETTING)}
    if SURVEY_SETTING in params:
        rest[SURVEY_SETTING] = params[SURVEY_SETTING]
    return [one for one in words if one], rest


def level_meaning(key: str, params: Mapping[str, Any]) -> str:
    """Return what a level of a study means in the model of its row: ``error as a share of the value``; empty where unsaid."""
    method, _ = method_and_output(key)
    axis = method.study.axis if method else None
    return dict(axis.units).get(str(params.get("model")), "") if axis else ""


def level_example(key: str, params: Mapping[str, Any], level: float) -> str:
    """Return an example of a level of a study in the model of its row, in words; empty where its method has none."""
    method, _ = method_and_output(key)
    axis = method.study.axis if method else None
    return axis.example(str(params.get("model")), level) if axis and axis.example else ""


def _is_text_or_number(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _setting_text(name: str, value: object, row: LabelledNumber | None = None) -> str:
    """Return a parameter in words: ``knows age, sex``, ``vulnerable people``, ``q 0.9``; empty where it has no value."""
    if name == "variables" and row is not None:
        return f"knows {format_setting(value) or 'nothing'}"
    if value in (None, "", [], {}, ()):
        return ""
    if name == "radius" and isinstance(value, Mapping):
        return ", ".join(f"{key} within {format_setting(one)}" for key, one in value.items())
    if name in KNOWLEDGE:
        return f"knows {format_setting(value)}"
    if name == "people" and value == "vulnerable":
        return "people easiest to find"
    if name in ("people", "guesses") and isinstance(value, str):
        return f"{value} {name}"
    if name == "kind" and value in KINDS_OF_PREDICATES:
        return KINDS_OF_PREDICATES[str(value)]
    if name == "intruder":
        return format_setting(value)
    if name == UNIT_SIZE:
        return f"{UNITS_OF_SIZE}{value} record{'' if value == '1' else 's'}"
    if name == "other":
        return f"with {format_setting(value)}"
    if name == "estimand" or (name == "model" and "~" in str(value)):
        return format_setting(value)
    if name in ("level", "condition"):
        return f"{'value' if name == 'level' else 'given'} {format_setting(value)}"
    if name == "of" and value == "units":
        return WHOLE_UNITS
    if name == "of" and row is not None:
        return f"of {measure_name(f'{_method_key(row)}.{value}')}"
    return f"{_key_as_words(name, capital=False)} {format_setting(value)}"


def _key_as_words(text: str, *, capital: bool = True) -> str:
    words = text.replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}" if capital else words


def _name_with_parts(name: str, parts: Sequence[str]) -> str:
    said = "; ".join(part for part in parts if part)
    return f"{name} ({said})" if said else name


def quantity_of(
    key: str,
    value: float,
    records: int | None = None,
    params: Mapping[str, Any] | None = None,
    *,
    unit: str = "",
    beside: float | None = None,
) -> str:
    """Return a value of a measure with its unit: ``88 of 20,190 people (0.44 %)``, ``44 %``, ``5 records``, ``0.13``.

    ``records`` is the number of confidential records; its own ``units`` are counted where ``params`` of the row say so.
    People are counted only where the measure is of all of them, so not where ``params`` select some. A share has more
    digits where it would otherwise look equal to ``beside``.
    """
    _, output = method_and_output(key)
    unit = unit or output.unit
    people = output.label.counts == "people"
    chosen = {**dict(output.row_defaults), **(params or {})}
    some = any(chosen.get(name) not in (None, "", {}, []) for name in SOME_PEOPLE)
    by_unit = is_of_units(chosen)
    if by_unit and unit == "records":
        unit = "units"
    counted = getattr(records, "units", None) if by_unit else records
    whole = counted if people and not some else None
    noun = "units" if by_unit and counted is None else record_noun(counted)
    if unit == "share" and whole:
        return f"{_people_count_text(value * whole)} of {whole:,} {noun} ({format_percent(value, beside)})"
    if unit in ("records", "units") and whole:
        return f"{_people_count_text(value)} of {whole:,} {noun} ({format_percent(value / whole)})"
    if output.in_percent or unit == "share":
        return format_percent(value, beside) + (f" of the {noun}{' asked about' if some else ''}" if people else "")
    if people and unit in ("records", "units"):
        return f"{format_number(value)} {singular_noun(noun) if value == 1 else noun}"
    return f"{format_number(value)} {singular_noun(unit) if value == 1 else unit}".strip()


def is_of_units(params: Mapping[str, Any]) -> bool:
    """Return whether a row with these parameters counts units, such as households, and not their records."""
    return params.get("by") == "unit" or params.get("of") == "units"


def _people_count_text(count: float) -> str:
    """Return a number of people as text; averages and expectations keep their decimals."""
    near = round(count)
    return f"{near:,}" if abs(count - near) < 1e-6 * max(1, abs(near)) else format_number(count)


class _SentenceFigures(dict[str, str]):
    """Figures of a sentence by placeholder; a parameter that the row lacks is named by its own name."""

    def __missing__(self, name: str) -> str:
        return "the sensitive values" if name == "sensitive" else _key_as_words(name, capital=False)


def sentence_of(row: ValuedRow, records: int | None = None) -> str:
    """Return a row as a sentence with its figures, or the reason why it has no value.

    ``records`` as in ``quantity_of``.
    """
    method, output = method_and_output(row.key)
    if row.value is None:
        return f"{label_of(row)} was not computed: {row.reason or 'the run has no such row'}."
    template = output.label.says
    # a difference in either direction is more or less by its size
    size = abs(row.value) if "{more}" in template else row.value
    value = quantity_of(row.key, size, records, row.params, unit=row.unit)
    if (units := getattr(records, "units", None)) is not None and is_of_units(row.params or {}):
        # Who matches a unit is a unit, by all its records.
        for verb in ("released", "matching"):
            template = template.replace(f"{verb} record", f"{verb} {singular_noun(record_noun(units))}")
    if not template:
        return f"{label_of(row)}: {value}."
    fields = list(_placeholder_names(template))
    own = own_params(method, row.params)
    figures = {name: format_setting(one) for name, one in (row.params or {}).items() if name in fields}
    # a study has the variable that it varies as a parameter
    studied = (row.params or {}).get("variable", "the variable")
    figures |= {"value": value, "variable": row.target or str(studied)}
    figures["more"] = "less" if row.value < 0 else "more"
    if "baseline" in fields:
        figures["baseline"] = (
            "some" if row.baseline is None else quantity_of(row.key, row.baseline, records, row.params, unit=row.unit)
        )
    if "part" in fields:
        figures["part"] = format_percent(float((row.params or {}).get("q", 0.5)))
    if "root" in fields:
        # a mean of squares says little to anyone; its root is in the unit of what is squared
        figures["root"] = format_percent(math.sqrt(max(0.0, row.value)))
    # A row may lack a parameter that the sentence names.
    text = template.format_map(_SentenceFigures(figures))
    said, _ = _name_parts(row, method)
    shown = {_setting_text(name, one, row) for name, one in own.items() if name in fields} | (
        {row.target} if "variable" in fields else set()
    )
    rest = [_name_units(part, records) for part in said if part not in shown]
    # A sentence that counts units by their noun need not say that it does.
    rest = [one for one in rest if getattr(records, "units", None) is None or one != _name_units(BY_UNIT, records)]
    return _name_with_parts(text.removesuffix("."), rest) + "."


class ValuedRow(LabelledNumber, Protocol):
    """Labelled number with its value, as a row of results has it."""

    @property
    def value(self) -> float | None: ...

    @property
    def baseline(self) -> float | None: ...

    @property
    def unit(self) -> str: ...

    @property
    def reason(self) -> str: ...


def _placeholder_names(template: str) -> Iterator[str]:
    """Return the names in braces of a template."""
    from string import Formatter

    return (field for _, field, _, _ in Formatter().parse(template) if field)


class StoredNumber(LabelledNumber, Protocol):
    """Labelled number that has a table for JSON."""

    def to_dict(self) -> dict[str, Any]: ...


def to_labelled_json(row: StoredNumber) -> dict[str, Any]:
    """Return the stored table of a row or verdict with its full name as ``label``, as ``--json`` writes it."""
    return {**row.to_dict(), "label": label_of(row)}


def label_by_key(key: str) -> Label:
    """Return the label of a measure by its key; empty where none is declared."""
    return method_and_output(key)[1].label
