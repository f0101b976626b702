"""What people read of a number: its name, its value with a unit, and a sentence. Screens, commands, reports and documents use these alone.

A name says what tells a number from others: the variable, what the row is about (kind, people, level), what the intruder knows, and the method
where several share the name. ``label_of`` says all of it. ``labels_of`` leaves out settings that are the same in a whole table, and
its names are unique within that table.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol, cast

from ..data.schema import SURVEY_SETTING
from ..wording import noun_of, number, percent, singular, spelled
from .outputs import Label, Output
from .registry import OWN, Method, method_called, output_called
from .spec import Spec, written

KNOWLEDGE = ("known", "keys", "quasi_identifiers")
"""Settings that list what an intruder knows; a row's own ``variables`` are those of one subset."""
SOME_PEOPLE = ("targets", "among", "external", "coverage", "people", "intruder", "records")
"""Parameters of which one says that a number is of some people, not of all confidential records."""
UNKNOWN = Output("", "", "none")


class Labelled(Protocol):
    """Whatever speaks of one series of numbers: a row, a verdict, a number of two runs."""

    @property
    def key(self) -> str:
        """``family.method.measure``."""
        ...

    @property
    def target(self) -> str: ...

    @property
    def level(self) -> float | None: ...

    @property
    def params(self) -> Mapping[str, Any] | None: ...


class Subject(NamedTuple):
    """What a name is made of, where there is no row or verdict at hand."""

    key: str
    target: str = ""
    level: float | None = None
    params: Mapping[str, Any] | None = None


def declared(key: str) -> tuple[Method | None, Output]:
    """The method and the output that a measure's key names; None and an empty output where this version does not have them."""
    output = output_called(key)
    return (None, UNKNOWN) if output is None else (method_called(key.rpartition(".")[0]), output)


def name_called(key: str) -> str:
    """The human name of a measure by its key: its label, else its meaning, else the words of its key."""
    method, output = declared(key)
    if method is None:
        name, _, measure = key.rpartition(".")
        return _words(f"{measure} ({name.partition('.')[2]})")
    name = output.label.name or f"{output.meaning[:1].upper()}{output.meaning[1:]}"
    return f"{name} ({method.title})" if output.label.shared or method.package != OWN else name


def label_of(row: Labelled) -> str:
    """The full name of a number, with its variable and every setting that its row has: ``Quantile (income; q 0.9)``."""
    method, _ = declared(row.key)
    own, settings = _parts(row, method)
    return _named(name_called(row.key), [*own, *(_setting(name, value) for name, value in settings.items())])


def labels_of(rows: Sequence[Labelled]) -> list[str]:
    """The names of the rows of one table, in their order; equal only where rows speak of the same series.

    A name has the settings in which the rows of its method differ, defaults too.
    """
    parts = [_parts(row, declared(row.key)[0]) for row in rows]
    varying = _varying(rows, [settings for _, settings in parts])
    names = []
    for row, (own, settings) in zip(rows, parts, strict=True):
        shown = {name: _part(settings.get(name, one.default), one) for name, one in varying[_method_key(row)].items()}
        names.append(_named(name_called(row.key), [*own, *(_setting(name, value) for name, value in shown.items())]))
    return _unique(rows, names)


def _unique(rows: Sequence[Labelled], names: Sequence[str]) -> list[str]:
    """The names; full ones where rows of several series would have one, and numbered where even these are equal."""
    series = [_series(row) for row in rows]
    bearers = _by_name(names, series)
    full = [label_of(row) if len(bearers[name]) > 1 else name for name, row in zip(names, rows, strict=True)]
    bearers = _by_name(full, series)
    return [
        name if len(bearers[name]) == 1 else f"{name}, {bearers[name][one]}"
        for name, one in zip(full, series, strict=True)
    ]


def _by_name(names: Sequence[str], series: Sequence[str]) -> dict[str, dict[str, int]]:
    """For every name the series that have it, numbered from 1 in their order."""
    found: dict[str, dict[str, int]] = {}
    for name, one in zip(names, series, strict=True):
        found.setdefault(name, {}).setdefault(one, len(found[name]) + 1)
    return found


def _series(row: Labelled) -> str:
    return json.dumps([row.key, row.target, row.level, row.params or {}], sort_keys=True, default=str)


def _method_key(row: Labelled) -> str:
    return row.key.rpartition(".")[0]


class Varying(NamedTuple):
    """A setting in which rows of a method differ: its default, and of one with a value for each variable those in which they do."""

    default: object
    places: frozenset[str]


def _varying(rows: Sequence[Labelled], settings: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Varying]]:
    """By method the settings in which its rows differ."""
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for row, own in zip(rows, settings, strict=True):
        tables.setdefault(_method_key(row), []).append(own)
    found = {}
    for key, used in tables.items():
        names = dict.fromkeys(name for one in used for name in one)
        varying = [name for name in names if any(one.get(name) != used[0].get(name) for one in used)]
        method = method_called(key) if varying else None
        defaults = {} if method is None else _declared(cast("Hashable", method.spec))[2]
        found[key] = {
            name: Varying(defaults.get(name), _differing([one.get(name) for one in used])) for name in varying
        }
    return found


def _differing(values: Sequence[object]) -> frozenset[str]:
    """The keys at which tables among some values differ."""
    tables = [value if isinstance(value, Mapping) else {} for value in values]
    keys = dict.fromkeys(key for one in tables for key in one)
    return frozenset(key for key in keys if any(one.get(key) != tables[0].get(key) for one in tables))


def _part(value: object, varying: Varying) -> object:
    """A setting, of a table what differs."""
    if not isinstance(value, Mapping):
        return value
    return {key: one for key, one in value.items() if key in varying.places} or value


@cache
def _declared(spec: Hashable) -> tuple[frozenset[str], frozenset[str], Mapping[str, Any]]:
    """The names of a step's settings, those that are lists, and the defaults of those that have one."""
    assert isinstance(spec, type)
    assert issubclass(spec, Spec)
    infos = list(spec.params())
    lists = frozenset(info.name for info in infos if isinstance(info.default, tuple))
    defaults = {info.name: written(info.default) for info in infos if not info.required}
    return frozenset({*(info.name for info in infos), SURVEY_SETTING}), lists, defaults


def own_params(method: Method | None, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parameters that tell a row of a method from others of its step: all but the step's own settings.

    A text under the name of a setting that is a list is the row's own, such as the kind of ``targets`` that it is about.
    """
    if method is None:
        return {}
    settings, lists, _ = _declared(cast("Hashable", method.spec))
    return {
        name: value
        for name, value in (params or {}).items()
        if name.removeprefix(f"{method.name}.") not in settings or (name in lists and isinstance(value, str))
    }


def _parts(row: Labelled, method: Method | None) -> tuple[list[str], dict[str, Any]]:
    """What a name always says: variable, level and what the row is about; and the settings of its step."""
    params = row.params or {}
    own = own_params(method, params) if method else params
    axis = method.study.axis if method else None
    count = method.study.split.count if method and method.study.split else ""
    always = {name: v for name, v in own.items() if name != count and (_is_short(v) or name == "variables")}
    words = [row.target, *(_setting(name, value, row) for name, value in always.items())]
    if row.level is not None:
        words.append(f"{axis.label if axis else 'level'} {number(row.level)}")
    rest = {name: value for name, value in params.items() if name not in always and name not in (count, SURVEY_SETTING)}
    if SURVEY_SETTING in params:
        rest[SURVEY_SETTING] = params[SURVEY_SETTING]
    return [one for one in words if one], rest


def _is_short(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _setting(name: str, value: object, row: Labelled | None = None) -> str:
    """A parameter in words: ``knows age, sex``, ``vulnerable people``, ``q 0.9``; empty where it has no value."""
    if name == "variables" and row is not None:
        return f"knows {spelled(value) or 'nothing'}"
    if value in (None, "", [], {}, ()):
        return ""
    if name == "radius" and isinstance(value, Mapping):
        return ", ".join(f"{key} within {spelled(one)}" for key, one in value.items())
    if name in KNOWLEDGE:
        return f"knows {spelled(value)}"
    if name in ("people", "guesses") and isinstance(value, str):
        return f"{value} {name}"
    if name == "intruder":
        return spelled(value)
    if name == "other":
        return f"with {spelled(value)}"
    if name in ("level", "condition"):
        return f"{'value' if name == 'level' else 'given'} {spelled(value)}"
    if name == "of" and row is not None:
        return f"of {name_called(f'{_method_key(row)}.{value}')}"
    return f"{_words(name, capital=False)} {spelled(value)}"


def _words(text: str, *, capital: bool = True) -> str:
    words = text.replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}" if capital else words


def _named(name: str, parts: Sequence[str]) -> str:
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
    """A value of a measure with its unit: ``88 of 20,190 people (0.44 %)``, ``44 %``, ``5 records``, ``0.13``.

    ``records`` is how many confidential records there are; people are counted where the measure is of all of them, so not where
    ``params`` of the row choose some. A share has more digits where it would seem to equal that ``beside`` it.
    """
    _, output = declared(key)
    unit = unit or output.unit
    people = output.label.counts == "people"
    chosen = {**dict(output.row_defaults), **(params or {})}
    some = any(chosen.get(name) not in (None, "", {}, []) for name in SOME_PEOPLE)
    whole = records if people and not some else None
    noun = noun_of(records)
    if unit == "share" and whole:
        return f"{_whole(value * whole)} of {whole:,} {noun} ({percent(value, beside)})"
    if unit == "records" and whole:
        return f"{_whole(value)} of {whole:,} {noun} ({percent(value / whole)})"
    if output.in_percent or unit == "share":
        return percent(value, beside) + (f" of the {noun}{' asked about' if some else ''}" if people else "")
    if people and unit == "records":
        return f"{number(value)} {singular(noun) if value == 1 else noun}"
    return f"{number(value)} {singular(unit) if value == 1 else unit}".strip()


def _whole(count: float) -> str:
    """A number of people: whole where it is, else its digits, since averages and expectations are not."""
    near = round(count)
    return f"{near:,}" if abs(count - near) < 1e-6 * max(1, abs(near)) else number(count)


class _Figures(dict[str, str]):
    """The figures of a sentence; a parameter that the row lacks is named by its own name."""

    def __missing__(self, name: str) -> str:
        return _words(name, capital=False)


def sentence_of(row: ValuedRow, records: int | None = None) -> str:
    """What a row says, in a sentence with its figures; why it has no value, where it has none. ``records`` as in ``quantity_of``."""
    method, output = declared(row.key)
    if row.value is None:
        return f"{label_of(row)} was not computed: {row.reason or 'the run has no such row'}."
    value = quantity_of(row.key, row.value, records, row.params, unit=row.unit)
    template = output.label.says
    if not template:
        return f"{label_of(row)}: {value}."
    fields = list(_fields(template))
    own = own_params(method, row.params)
    figures = {name: spelled(one) for name, one in (row.params or {}).items() if name in fields}
    figures |= {"value": value, "variable": row.target or "the variable"}
    text = template.format_map(_Figures(figures))
    said, _ = _parts(row, method)
    shown = {_setting(name, one, row) for name, one in own.items() if name in fields} | (
        {row.target} if "variable" in fields else set()
    )
    return _named(text.removesuffix("."), [part for part in said if part not in shown]) + "."


class ValuedRow(Labelled, Protocol):
    """A labelled number with its value, as a row of results has it."""

    @property
    def value(self) -> float | None: ...

    @property
    def unit(self) -> str: ...

    @property
    def reason(self) -> str: ...


def _fields(template: str) -> Iterator[str]:
    from string import Formatter

    return (field for _, field, _, _ in Formatter().parse(template) if field)


class Stored(Labelled, Protocol):
    """What is labelled and has a table for JSON."""

    def to_dict(self) -> dict[str, Any]: ...


def labelled_object(row: Stored) -> dict[str, Any]:
    """The table of a row or verdict as ``--json`` writes it: what is stored of it, and its full name as ``label``."""
    return {**row.to_dict(), "label": label_of(row)}


def label_called(key: str) -> Label:
    """What people read of a measure by its key; empty where nothing is declared."""
    return declared(key)[1].label
