"""Rule by which a release shows coarser values of one variable: steps of numbers, codes for their ends, or levels joined
under one name.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .arrays import Floats
from .schema import Variable

ROUNDING = 1e-9
"""The share of a step by which a number may lie below its lower end and still belong to it: .3 is not below 3 times .1."""
RULE_FORMS = 'a width (5), codes for the ends ({ bottom = 18, top = 85 }), or groups of levels ({ other = ["4", "5"] })'
NUMBER_KEYS = ("width", "bottom", "top")
"""Keys of a rule of numbers that a recipe writes as a table."""


@dataclass(frozen=True)
class RecodeRule:
    """Recoding rule of one variable.

    width: width of the steps of numbers; None for levels, and for numbers without steps
    groups: levels that are shown by one name, by that name
    bottom, top: numbers below and above which all are shown as that number; None without
    """

    width: float | None = None
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bottom: float | None = None
    top: float | None = None

    @classmethod
    def parse(cls, value: object) -> RecodeRule:
        """Return the rule that a recipe writes as a number or a table of lists. Raises ValueError."""
        if isinstance(value, RecodeRule):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            if not math.isfinite(value) or value <= 0:
                raise ValueError(f"steps have a width above 0, not {value}")
            return cls(float(value))
        if not isinstance(value, Mapping) or not value:
            raise ValueError(f"{value!r} is no rule: write {RULE_FORMS}")
        if not any(isinstance(one, list | tuple) for one in value.values()) and set(value) <= {*NUMBER_KEYS}:
            return _read_number_rule(value)
        groups = {str(name): _read_members(str(name), members) for name, members in value.items()}
        _check_partition(groups)
        return cls(None, groups)

    @property
    def written(self) -> Any:
        """Return the value of the rule in a recipe, which ``parse`` reads back to an equal rule."""
        if self.groups:
            return {name: list(members) for name, members in self.groups.items()}
        if self.width is not None and not self.has_end_codes:
            return _written_number(self.width)
        numbers = {key: getattr(self, key) for key in NUMBER_KEYS}
        return {key: _written_number(number) for key, number in numbers.items() if number is not None}

    @property
    def is_of_numbers(self) -> bool:
        """Return whether the rule is of numbers or dates, not of levels."""
        return not self.groups

    @property
    def has_end_codes(self) -> bool:
        """Return whether the smallest or the largest numbers are shown as one."""
        return self.bottom is not None or self.top is not None

    @property
    def ends_text(self) -> str:
        """Return the codes for the ends in words: ``below 18 as 18, above 85 as 85``; empty without."""
        ends = (("below", self.bottom), ("above", self.top))
        return ", ".join(f"{word} {end:g} as {end:g}" for word, end in ends if end is not None)

    def __str__(self) -> str:
        """Return the rule in words."""
        if self.is_of_numbers:
            steps = "" if self.width is None else f"lower ends of steps of {self.width:g}"
            return ", ".join(filter(None, (self.ends_text, steps)))
        return "; ".join(f"{', '.join(members)} as {name}" for name, members in self.groups.items())

    def public_text(self, variable: Variable) -> str:
        """Return the text of the rule in public files."""
        if self.is_of_numbers or variable.levels:
            return str(self)
        # Levels that no recipe declares are those that records have, so joined ones are not named.
        return f"some levels as {', '.join(self.groups)}"

    @property
    def group_by_level(self) -> dict[str, str]:
        """Return the name that replaces each level in a group."""
        return {level: name for name, members in self.groups.items() for level in members}

    def recode_levels(self, levels: Sequence[str]) -> tuple[str, ...]:
        """Return the recoded levels, in order; a group takes the place of its first member."""
        shown = self.group_by_level
        return tuple(dict.fromkeys(shown.get(level, level) for level in levels))

    def levels_with_groups(self, levels: Sequence[str]) -> tuple[str, ...]:
        """Return these levels and the names of groups, each before its first member."""
        found: dict[str, None] = {}
        for level in levels:
            name = self.group_by_level.get(level, level)
            if name not in levels:
                found[name] = None
            found[level] = None
        return tuple(found)

    def recode_numbers(self, numbers: Floats) -> Floats:
        """Return each number as it is shown, (n,): the ends as their codes, then the lower end of its step; NaN stays."""
        shown = np.clip(numbers, self.bottom, self.top) if self.has_end_codes else numbers
        return np.asarray(shown if self.width is None else np.floor(shown / self.width + ROUNDING) * self.width)

    def recode_variable(self, variable: Variable) -> Variable:
        """Return the declaration of the variable after recoding."""
        if self.groups:
            return replace(
                variable,
                levels=self.recode_levels(variable.levels),
                labels={code: label for code, label in variable.labels.items() if self._is_ungrouped(code)},
            )
        if variable.bounds is None:
            return variable
        low, high = variable.bounds
        # Exact values lie in these bounds too.
        lowest = None if low is None else min(low, float(self.recode_numbers(np.array([low]))[0]))
        return replace(variable, bounds=(lowest, high))

    def _follows_from(self, earlier: RecodeRule) -> bool:
        """Return whether what this rule shows of a number follows from what an earlier rule of numbers shows of it."""
        if earlier.width is not None:
            steps = [one for one in (self.width, self.bottom, self.top) if one is not None]
            nested = self.width is not None and self.width >= earlier.width * (1 - ROUNDING)
            if not nested or not all(_is_multiple(one, earlier.width) for one in steps):
                return False
        # What an earlier end code hides, this rule must hide too.
        top_hides = earlier.top is None or (self.top is not None and self.top <= earlier.top)
        return top_hides and (earlier.bottom is None or (self.bottom is not None and self.bottom >= earlier.bottom))

    def _is_ungrouped(self, level: str) -> bool:
        return level not in self.group_by_level and level not in self.groups

    def remaining_after(self, earlier: RecodeRule | None, levels: Collection[str] = ()) -> RecodeRule | None:
        """Return the rule that turns values already recoded by ``earlier`` into the values that this rule makes of
        exact ones.

        ``levels`` are the levels of the earlier recoding. The result is None where ``earlier`` joined levels that this
        rule separates, or its steps do not nest.
        """
        if earlier is None or earlier == self:
            return self
        if self.is_of_numbers and earlier.is_of_numbers:
            return self if self._follows_from(earlier) else None
        if self.is_of_numbers or earlier.is_of_numbers:
            return None
        shown, own = dict(self.groups), self.group_by_level
        for name, members in earlier.groups.items():
            to = {own.get(level, level) for level in (*members, *([name] if name in levels else []))}
            if len(to) > 1:
                return None
            (target,) = to
            if name != target:
                shown[target] = tuple(dict.fromkeys((*shown.get(target, ()), name)))
        return RecodeRule(None, shown)


def _read_number_rule(value: Mapping[str, object]) -> RecodeRule:
    """Return the rule of numbers that a recipe writes as a table. Raises ValueError."""
    numbers: dict[str, float] = {}
    for key, one in value.items():
        if isinstance(one, bool) or not isinstance(one, int | float) or not math.isfinite(one):
            raise ValueError(f"{key} must be a number, not {one!r}")
        numbers[key] = float(one)
    width, bottom, top = (numbers.get(key) for key in NUMBER_KEYS)
    if width is not None and width <= 0:
        raise ValueError(f"steps have a width above 0, not {width:g}")
    if bottom is not None and top is not None and bottom >= top:
        raise ValueError(f"bottom must lie below top, but {bottom:g} does not lie below {top:g}")
    return RecodeRule(width, {}, bottom, top)


def _written_number(number: float) -> int | float:
    """Return a number as a recipe writes it."""
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def _is_multiple(number: float, of: float) -> bool:
    """Return whether a number is a whole multiple of another."""
    times = number / of
    return abs(times - round(times)) <= ROUNDING * max(abs(times), 1.0)


def _read_members(name: str, members: object) -> tuple[str, ...]:
    """Return the levels of a group as texts. Raises ValueError."""
    if not name.strip():
        raise ValueError("a group of levels needs a name")
    if not isinstance(members, list | tuple) or not members:
        raise ValueError(f'"{name}" must be a list of the levels that it stands for, such as ["4", "5"]')
    if any(isinstance(one, bool) or not isinstance(one, str | int | float) for one in members):
        raise ValueError(f'"{name}" must be a list of levels, which are texts')
    return tuple(str(int(one)) if isinstance(one, float) and one.is_integer() else str(one) for one in members)


def _check_partition(groups: Mapping[str, tuple[str, ...]]) -> None:
    """Raise ValueError where a level is in two groups, or the name of a group is in another."""
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
