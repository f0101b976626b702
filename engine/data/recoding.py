"""Global recoding: the public rules by which a release shows coarser values than the confidential data have.

    [release.recode]
    age = 5                          # numbers by the lower end of steps of 5: 37 is shown as 35; of dates, steps in days
    pay = { bottom = 0, top = 9000 } # numbers above 9000 as 9000; may have a width too
    Race = { other = ["4", "5"] }    # these levels by one name, new or of a level that joins them

Steps begin at 0, of dates at 1970-01-01. A rule is part of the release, so an intruder applies it to known values too
(``recode_data``). Utility compares the release with the exact values (``align_levels``), so that it shows the loss.
Source: Hundepool et al. (2012), Statistical Disclosure Control, section 3.2.3.1.

Limits: a rule that joins levels of few people reveals by itself that few have them, and steps or groups that are too
    small protect little; the measured risks show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from ..errors import BadInput, near_miss_hint
from .microdata import Microdata, to_column
from .recoding_rules import RecodeRule
from .schema import Kind, Schema, Variable

RecodeRules = Mapping[str, RecodeRule]
"""Rules by variable."""


def check_recode_rules(rules: RecodeRules, schema: Schema, place: str) -> None:
    """Raise BadInput where a rule does not suit its variable."""
    for name, rule in rules.items():
        where, variable = f"{place}.{name}", schema[name]
        if variable.kind.has_levels == rule.is_of_numbers:
            needs = 'groups of levels, such as { other = ["4", "5"] }' if rule.is_of_numbers else "a width, such as 5"
            raise BadInput(where, f'"{name}" is {variable.kind}; give {needs}')
        if variable.kind is Kind.BINARY:
            raise BadInput(where, f'"{name}" has two levels, and one would be left; leave the variable out')
        if rule.has_end_codes and variable.kind is Kind.DATE:
            raise BadInput(where, f'"{name}" is {variable.kind}; dates have steps, and no bottom or top')
        numbers = [one for one in (rule.width, rule.bottom, rule.top) if one is not None]
        if variable.kind is not Kind.CONTINUOUS and (wrong := [one for one in numbers if not one.is_integer()]):
            words = "whole days" if variable.kind is Kind.DATE else "whole numbers"
            what = "its steps are" if wrong[0] == rule.width else "its codes are"
            raise BadInput(where, f'"{name}" is {variable.kind}; {what} {words}, not {wrong[0]:g}')
        if variable.levels:
            _check_group_levels(rule, variable, variable.levels, where)


def _check_group_levels(rule: RecodeRule, variable: Variable, levels: Sequence[str], place: str) -> None:
    """Raise BadInput where a group names an unknown level, or joins ordinal levels that are not neighbours."""
    for group, members in rule.groups.items():
        for at, level in enumerate(members):
            if level not in levels:
                hint = near_miss_hint(level, levels) if variable.levels else ""
                raise BadInput(f"{place}.{group}[{at}]", f'"{variable.name}" has no level "{level}"{hint}')
        if variable.kind is Kind.ORDINAL:
            places = sorted(levels.index(one) for one in {*members, *({group} & set(levels))})
            if places[-1] - places[0] >= len(places):
                raise BadInput(
                    f"{place}.{group}",
                    "the levels of an ordinal variable are joined with those beside them; leave out none between",
                )


def check_rule_levels(rules: RecodeRules, data: Microdata, place: str) -> None:
    """Raise BadInput where a rule names a level that neither the data nor their control records have."""
    for name, rule in rules.items():
        variable = data.schema[name]
        if variable.kind.has_levels and not variable.levels:
            tables = [data] if data.controls is None else [data, data.controls]
            levels = dict.fromkeys(str(level) for one in tables for level in one.frame[name].cat.categories)
            _check_group_levels(rule, variable, list(levels), f"{place}.{name}")


def recode_schema(schema: Schema, rules: RecodeRules) -> Schema:
    """Return the schema of recoded records."""
    if not rules:
        return schema
    own = tuple(rules[v.name].recode_variable(v) if v.name in rules else v for v in schema)
    return replace(schema, variables=own)


_RECODED_CACHE: WeakKeyDictionary[Microdata, tuple[RecodeRules, Microdata]] = WeakKeyDictionary()


def recode_data(data: Microdata, rules: RecodeRules) -> Microdata:
    """Return records and their controls as the rules show them.

    Rules of absent variables, or of those recoded before, have no effect.
    """
    own = {name: rule for name, rule in rules.items() if name in data.schema and name not in data.recoding}
    if not own:
        return data
    # An intruder's knowledge is recoded because a coarse value compared with an exact one would look rare and
    # unmatched, and a risk would be too low. Cached, since every task of risk recodes the same data.
    made = _RECODED_CACHE.get(data)
    if made is None or made[0] != own:
        made = _RECODED_CACHE[data] = (own, _recode_uncached(data, own))
    return made[1]


def _recode_uncached(data: Microdata, rules: RecodeRules) -> Microdata:
    """Return the records and their controls with the rules applied."""
    columns = {name: _recode_column(data, name, rule) for name, rule in rules.items()}
    schema = recode_schema(data.schema, rules)
    found = replace(
        data,
        schema=schema,
        frame=data.frame.assign(**columns),
        controls=None,
        recoding={**data.recoding, **rules},
    )
    return found if data.controls is None else found.with_controls(_recode_uncached(data.controls, rules))


def _recode_column(data: Microdata, name: str, rule: RecodeRule) -> pd.Series:
    """Return one column as a rule shows it."""
    values = data.frame[name]
    if rule.is_of_numbers:
        return to_column(rule.recode_numbers(data.numbers(name)), data, replace(data.schema[name], bounds=None), name)
    levels = [str(level) for level in values.cat.categories]
    left, shown = rule.recode_levels(levels), rule.group_by_level
    place = {level: i for i, level in enumerate(left)}
    codes = np.array([*(place[shown.get(level, level)] for level in levels), -1])[values.cat.codes.to_numpy()]
    dtype = pd.CategoricalDtype(list(left), ordered=values.cat.ordered)
    return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype), index=values.index, name=name)


def align_levels(exact: Microdata, released: Microdata, rules: RecodeRules) -> tuple[Microdata, Microdata]:
    """Return exact and recoded records with common level codes: the levels of both, the names of groups before their
    members.
    """
    known = {name: rule for name, rule in rules.items() if name in exact.schema and name in released.schema}
    levels: dict[str, tuple[str, ...]] = {}
    for name, rule in known.items():
        if not rule.is_of_numbers:
            own, other = (list(map(str, one.frame[name].cat.categories)) for one in (exact, released))
            levels[name] = tuple(dict.fromkeys((*rule.levels_with_groups(own), *other)))
    return _with_levels_and_bounds(exact, known, levels), _with_levels_and_bounds(released, known, levels)


def _with_levels_and_bounds(data: Microdata, rules: RecodeRules, levels: Mapping[str, tuple[str, ...]]) -> Microdata:
    """Return a table with these levels, and with bounds that include exact and recoded values."""
    if not rules:
        return data
    columns = {name: data.frame[name].cat.set_categories(list(own)) for name, own in levels.items()}

    def describe_variable(variable: Variable) -> Variable:
        """Return the declaration of a variable with its new levels or bounds."""
        if variable.name in levels:
            return replace(variable, levels=levels[variable.name] if variable.levels else ())
        return rules[variable.name].recode_variable(variable) if variable.name in rules else variable

    schema = replace(data.schema, variables=tuple(map(describe_variable, data.schema)))
    return replace(data, schema=schema, frame=data.frame.assign(**columns))
