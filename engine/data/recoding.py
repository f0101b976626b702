"""Global recoding: the public rules by which a release shows coarser values than the confidential data have.

    [release.recode]
    age = 5                          # numbers by the lower end of steps of 5: 37 is shown as 35; of dates, steps of so many days
    Race = { other = ["4", "5"] }    # these levels by one name, new or of a level that joins them

Steps begin at 0, of dates at 1970-01-01. A rule is part of the release: whoever has the release applies it to what she knows. So what an intruder knows of
the people is seen through it (``recoded``), or a coarse value held against the exact one would look rare and unmatched, and a
risk would be too low. What a release is worth is held against the exact values (``beside``), or the loss would not be seen.

How it could mislead: a rule that joins the levels which few people have tells by itself that few have them. How it could be abused: steps so narrow, or
groups so small, that nobody is hidden change little, and no number then says otherwise. What it costs: the values between the ends of a step.
Source: Hundepool et al. (2012), Statistical Disclosure Control, section 3.2.3.1 (global recoding).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from ..errors import BadInput, suggestion
from .arrays import Floats
from .microdata import Microdata, as_column
from .schema import Kind, Schema, Variable

ROUNDING = 1e-9
"""The share of a step by which a number may lie below its lower end and still belong to it: .3 is not below 3 times .1."""
FORMS = 'a width (5), or groups of levels ({ other = ["4", "5"] })'


@dataclass(frozen=True)
class Recode:
    """The rule of one variable: a ``width`` of steps, or ``groups`` of levels by the name of each."""

    width: float | None = None
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def parse(cls, value: object) -> Recode:
        """The rule that a recipe writes as a number or a table of lists. Raises ValueError."""
        if isinstance(value, Recode):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            if not math.isfinite(value) or value <= 0:
                raise ValueError(f"steps have a width above 0, not {value}")
            return cls(float(value))
        if not isinstance(value, Mapping) or not value:
            raise ValueError(f"{value!r} is no rule: write {FORMS}")
        groups = {str(name): _members(str(name), members) for name, members in value.items()}
        _check_partition(groups)
        return cls(None, groups)

    @property
    def written(self) -> Any:
        """What ``parse`` reads back to an equal rule."""
        if self.width is None:
            return {name: list(members) for name, members in self.groups.items()}
        return int(self.width) if self.width.is_integer() and self.width < 1e15 else self.width

    def __str__(self) -> str:
        if self.width is not None:
            return f"lower ends of steps of {self.width:g}"
        return "; ".join(f"{', '.join(members)} as {name}" for name, members in self.groups.items())

    @property
    def targets(self) -> dict[str, str]:
        """By level that is shown by another name, that name."""
        return {level: name for name, members in self.groups.items() for level in members}

    def levels(self, levels: Sequence[str]) -> tuple[str, ...]:
        """What is left of these levels, in their order; a group stands where its first member stood."""
        shown = self.targets
        return tuple(dict.fromkeys(shown.get(level, level) for level in levels))

    def all_levels(self, levels: Sequence[str]) -> tuple[str, ...]:
        """These levels with the names of groups besides, each before its first member."""
        found: dict[str, None] = {}
        for level in levels:
            name = self.targets.get(level, level)
            if name not in levels:
                found[name] = None
            found[level] = None
        return tuple(found)

    def of_numbers(self, numbers: Floats) -> Floats:
        """Numbers (n,) as they are shown; NaN stays."""
        assert self.width is not None
        return np.asarray(np.floor(numbers / self.width + ROUNDING) * self.width)

    def of_variable(self, variable: Variable) -> Variable:
        """The variable as it is released."""
        if self.width is None:
            return replace(
                variable,
                levels=self.levels(variable.levels),
                labels={code: label for code, label in variable.labels.items() if self._alone(code)},
            )
        if variable.bounds is None:
            return variable
        low, high = variable.bounds
        return replace(variable, bounds=(None if low is None else float(self.of_numbers(np.array([low]))[0]), high))

    def _alone(self, level: str) -> bool:
        return level not in self.targets and level not in self.groups

    def after(self, earlier: Recode | None, levels: Collection[str] = ()) -> Recode | None:
        """What makes of values that ``earlier`` recoded those that this rule makes of the exact ones, of these ``levels``; None where nothing does."""
        if earlier is None or earlier == self:
            return self
        if self.width is not None and earlier.width is not None:
            times = self.width / earlier.width
            return self if round(times) >= 1 and abs(times - round(times)) <= ROUNDING * times else None
        if self.width is not None or earlier.width is not None:
            return None
        shown, own = dict(self.groups), self.targets
        for name, members in earlier.groups.items():
            to = {own.get(level, level) for level in (*members, *([name] if name in levels else []))}
            if len(to) > 1:
                return None
            (target,) = to
            if name != target:
                shown[target] = tuple(dict.fromkeys((*shown.get(target, ()), name)))
        return Recode(None, shown)


Rules = Mapping[str, Recode]
"""Rules by variable."""


def _members(name: str, members: object) -> tuple[str, ...]:
    if not name.strip():
        raise ValueError("a group of levels needs a name")
    if not isinstance(members, list | tuple) or not members:
        raise ValueError(f'"{name}" must be a list of the levels that it stands for, such as ["4", "5"]')
    if any(isinstance(one, bool) or not isinstance(one, str | int | float) for one in members):
        raise ValueError(f'"{name}" must be a list of levels, which are texts')
    return tuple(str(int(one)) if isinstance(one, float) and one.is_integer() else str(one) for one in members)


def _check_partition(groups: Mapping[str, tuple[str, ...]]) -> None:
    """Raises ValueError where a level would have two names, or a name would be recoded itself."""
    of: dict[str, str] = {}
    for name, members in groups.items():
        for level in members:
            if level in of:
                where = f'twice in "{name}"' if of[level] == name else f'in "{of[level]}" and in "{name}"'
                raise ValueError(f'level "{level}" is {where}; each level has one group')
            of[level] = name
    for name in groups:
        if of.get(name, name) != name:
            raise ValueError(f'"{name}" is a group, and a level of "{of[name]}"; give the group another name')


def check_rules(rules: Rules, schema: Schema, place: str) -> None:
    """BadInput where a rule does not suit its variable."""
    for name, rule in rules.items():
        where, variable = f"{place}.{name}", schema[name]
        if variable.kind.has_levels != (rule.width is None):
            needs = 'groups of levels, such as { other = ["4", "5"] }' if rule.width else "a width, such as 5"
            raise BadInput(where, f'"{name}" is {variable.kind}; give {needs}')
        if variable.kind is Kind.BINARY:
            raise BadInput(where, f'"{name}" has two levels, and one would be left; leave the variable out')
        if rule.width is not None and variable.kind is not Kind.CONTINUOUS and not rule.width.is_integer():
            words = "whole days" if variable.kind is Kind.DATE else "whole numbers"
            raise BadInput(where, f'"{name}" is {variable.kind}; its steps are {words}, not {rule.width:g}')
        if variable.levels:
            _check_levels(rule, variable, variable.levels, where)


def _check_levels(rule: Recode, variable: Variable, levels: Sequence[str], place: str) -> None:
    for group, members in rule.groups.items():
        for at, level in enumerate(members):
            if level not in levels:
                hint = suggestion(level, levels) if variable.levels else ""
                raise BadInput(f"{place}.{group}[{at}]", f'"{variable.name}" has no level "{level}"{hint}')
        if variable.kind is Kind.ORDINAL:
            places = sorted(levels.index(one) for one in {*members, *({group} & set(levels))})
            if places[-1] - places[0] >= len(places):
                raise BadInput(
                    f"{place}.{group}",
                    "the levels of an ordinal variable are joined with those beside them; leave out none between",
                )


def check_rules_on(rules: Rules, data: Microdata, place: str) -> None:
    """BadInput where a rule names a level that neither the data nor their control records have."""
    for name, rule in rules.items():
        variable = data.schema[name]
        if variable.kind.has_levels and not variable.levels:
            tables = [data] if data.controls is None else [data, data.controls]
            levels = dict.fromkeys(str(level) for one in tables for level in one.frame[name].cat.categories)
            _check_levels(rule, variable, list(levels), f"{place}.{name}")


def recoded_schema(schema: Schema, rules: Rules) -> Schema:
    """The schema of recoded records."""
    if not rules:
        return schema
    own = tuple(rules[v.name].of_variable(v) if v.name in rules else v for v in schema)
    return Schema(own, schema.constraints)


_MADE: WeakKeyDictionary[Microdata, tuple[Rules, Microdata]] = WeakKeyDictionary()


def recoded(data: Microdata, rules: Rules) -> Microdata:
    """Records and their controls as the rules show them; rules of variables that are not there, or were recoded before, change nothing."""
    own = {name: rule for name, rule in rules.items() if name in data.schema and name not in data.recoding}
    if not own:
        return data
    made = _MADE.get(data)
    if made is None or made[0] != own:
        made = _MADE[data] = (own, _recoded(data, own))
    return made[1]


def _recoded(data: Microdata, rules: Rules) -> Microdata:
    columns = {name: _column(data, name, rule) for name, rule in rules.items()}
    schema = recoded_schema(data.schema, rules)
    found = replace(
        data,
        schema=schema,
        frame=data.frame.assign(**columns),
        controls=None,
        recoding={**data.recoding, **rules},
    )
    return found if data.controls is None else found.with_controls(_recoded(data.controls, rules))


def _column(data: Microdata, name: str, rule: Recode) -> pd.Series:
    values = data.frame[name]
    if rule.width is not None:
        return as_column(rule.of_numbers(data.numbers(name)), data, replace(data.schema[name], bounds=None), name)
    levels = [str(level) for level in values.cat.categories]
    left, shown = rule.levels(levels), rule.targets
    place = {level: i for i, level in enumerate(left)}
    codes = np.array([*(place[shown.get(level, level)] for level in levels), -1])[values.cat.codes.to_numpy()]
    dtype = pd.CategoricalDtype(list(left), ordered=values.cat.ordered)
    return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype), index=values.index, name=name)


def beside(exact: Microdata, released: Microdata, rules: Rules) -> tuple[Microdata, Microdata]:
    """Exact records and recoded ones whose level codes mean the same: levels of both, the names of groups before their members."""
    joined = {name: rule for name, rule in rules.items() if name in exact.schema}
    if not joined:
        return exact, released
    ours, theirs, variables = {}, {}, []
    for variable in exact.schema:
        rule = joined.get(variable.name)
        if rule is None:
            variables.append(variable)
            continue
        variables.append(replace(variable, bounds=rule.of_variable(variable).bounds))
        if rule.width is None:
            own, other = exact.frame[variable.name], released.frame[variable.name]
            levels = rule.all_levels([str(level) for level in own.cat.categories])
            levels = (*levels, *(one for one in map(str, other.cat.categories) if one not in levels))
            ours[variable.name], theirs[variable.name] = (one.cat.set_categories(levels) for one in (own, other))
            variables[-1] = replace(variable, levels=levels if variable.levels else ())
    schema = Schema(tuple(variables), exact.schema.constraints)
    return (
        replace(exact, schema=schema, frame=exact.frame.assign(**ours)),
        replace(released, schema=schema, frame=released.frame.assign(**theirs)),
    )
