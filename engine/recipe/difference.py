"""Differences between the tables of two recipes: settings, steps that only one has, and the order of steps.

Steps are matched by their subject, not by their place: equal ones first, then those of the same variable, method or
    value that differ in the fewest settings. Two tables without a difference are equal, and equal tables have none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

Kind = Literal["changed", "added", "removed", "moved"]
Table = Mapping[str, Any]
Path = tuple[str, ...]
STEPS = {
    "synthesis": ("target",),
    "anonymisation": ("method", "target"),
    "measure": ("method",),
    "study": ("method",),
    "threshold": ("value", "target"),
    "published": ("value", "target"),
    "table": ("name",),
}
"""The sections that are lists of steps, and what a step of each is about."""
MOST_PAIRED = 200
"""Among more steps about the same thing, those are matched that stand in the same order."""


class _AbsentSetting:
    """Marker of an absent setting."""

    def __repr__(self) -> str:
        return "left out"


# TOML has no value for an absent setting.
NOTHING = _AbsentSetting()


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """Difference between two plans.

    kind: changed, added, removed or moved
    section: table of the recipe
    place: number of a step in it, in the plan that has it (the second, where both do); None outside steps
    about: subject of the step
    key: the setting, empty for a whole step
    before, now: the values, ``NOTHING`` where a plan has none; of a ``moved`` section the steps in order
    """

    kind: Kind
    section: str
    place: int | None
    about: str
    key: str
    before: Any
    now: Any


def plan_differences(before: Table, now: Table) -> tuple[PlanDifference, ...]:
    """Return the differences from the first plan to the second, in the order of the second, then what the second lacks."""
    sections = [*now, *(name for name in before if name not in now)]
    return tuple(one for name in sections for one in _section_differences(name, before, now))


def _section_differences(name: str, before: Table, now: Table) -> Iterator[PlanDifference]:
    """Yield the differences of one section."""
    tables = before.get(name, []), now.get(name, [])
    if name in STEPS and all(map(_is_list_of_steps, tables)):
        yield from _step_differences(name, *tables)
        return
    yield from _setting_differences(name, None, "", {name: before.get(name, NOTHING)}, {name: now.get(name, NOTHING)})


def _is_list_of_steps(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(step, Mapping) for step in value)


def _setting_differences(
    section: str, place: int | None, about: str, before: Table, now: Table
) -> Iterator[PlanDifference]:
    """Yield the settings that differ between two tables."""
    first, second = dict(_flatten_settings(before)), dict(_flatten_settings(now))
    for path in [*second, *(path for path in first if path not in second)]:
        was, is_now = first.get(path, NOTHING), second.get(path, NOTHING)
        if not same_value(was, is_now):
            kind: Kind = "added" if was is NOTHING else "removed" if is_now is NOTHING else "changed"
            yield PlanDifference(
                kind, section, place, about, _dotted_path(path[1:] if place is None else path), was, is_now
            )


def _flatten_settings(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the settings of a table with their paths; an empty inner table is a setting itself."""
    if isinstance(value, Mapping) and (value or not path):
        for key, inner in value.items():
            yield from _flatten_settings(inner, (*path, str(key)))
    elif value is not NOTHING:
        yield path, value


def _dotted_path(path: Path) -> str:
    return ".".join(f'"{key}"' if "." in key or not key else key for key in path)


def same_value(one: Any, other: Any) -> bool:
    """Return whether two values mean the same in a recipe: numbers by value, but truth values are no numbers."""
    return _comparison_key(one) == _comparison_key(other)


def _comparison_key(value: Any) -> Hashable:
    """Return a hashable key that is equal for values with the same meaning."""
    if isinstance(value, Mapping):
        return "table", frozenset((str(key), _comparison_key(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return "list", tuple(map(_comparison_key, value))
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:  # noqa: PLR0124  (not NaN)
        return "number", value
    return type(value).__name__, repr(value)


def _step_differences(section: str, before: Sequence[Table], now: Sequence[Table]) -> Iterator[PlanDifference]:
    """Yield the added, removed, changed and moved steps of a section."""
    pairs = _pair_steps(section, before, now)
    for place, step in enumerate(now):
        about = step_subject(section, step)
        if place in pairs:
            yield from _setting_differences(section, place, about, before[pairs[place]], step)
        else:
            yield PlanDifference("added", section, place, about, "", NOTHING, dict(step))
    gone = set(range(len(before))) - set(pairs.values())
    for place in sorted(gone):
        yield PlanDifference(
            "removed", section, place, step_subject(section, before[place]), "", dict(before[place]), NOTHING
        )
    order = [pairs[place] for place in sorted(pairs)]
    if order != sorted(order):
        names = {place: step_subject(section, before[place]) for place in order}
        repeated = len(set(names.values())) < len(names)
        said = {place: f"{name} [{place}]" if repeated else name for place, name in names.items()}
        yield PlanDifference(
            "moved", section, None, "", "", [said[at] for at in sorted(order)], [said[at] for at in order]
        )


def step_subject(section: str, step: Table) -> str:
    """Return the subject of a step, such as ``price`` or ``risk.identification``."""
    parts = (step.get(key) for key in STEPS.get(section, ()))
    return " ".join(", ".join(map(str, part)) if isinstance(part, list) else str(part) for part in parts if part)


def _pair_steps(section: str, before: Sequence[Table], now: Sequence[Table]) -> dict[int, int]:
    """Return the place in the first plan of each matched step of the second."""
    pairs: dict[int, int] = {}
    by_subject: dict[str, tuple[list[int], list[int]]] = {}
    for side, steps in enumerate((before, now)):
        for place, step in enumerate(steps):
            by_subject.setdefault(step_subject(section, step), ([], []))[side].append(place)
    for old, new in by_subject.values():
        alike: dict[Hashable, deque[int]] = {}
        for at in old:
            alike.setdefault(_comparison_key(before[at]), deque()).append(at)
        for place in new:
            if same_ones := alike.get(_comparison_key(now[place])):
                pairs[place] = same_ones.popleft()
        taken = {pairs[place] for place in new if place in pairs}
        left, open_places = [at for at in old if at not in taken], [place for place in new if place not in pairs]
        # Comparing all pairs takes the square of their number.
        if len(left) > MOST_PAIRED or len(open_places) > MOST_PAIRED:
            pairs.update(zip(open_places, left, strict=False))
            continue
        for place in open_places[: len(left)]:
            pairs[place] = min(left, key=partial(_count_differing_settings, before, now[place]))
            left.remove(pairs[place])
    return pairs


def _count_differing_settings(before: Sequence[Table], step: Table, at: int) -> int:
    """Return the number of settings in which a step differs from one of the first plan."""
    mine, theirs = dict(_flatten_settings(step)), dict(_flatten_settings(before[at]))
    return sum(not same_value(theirs.get(path, NOTHING), mine.get(path, NOTHING)) for path in {*theirs, *mine})
