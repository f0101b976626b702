"""What differs between two plans, as recipes' tables: settings, steps that only one has, and the order of steps.

Steps are matched by what they are about, not by their place: those that are alike first, then those of the same variable, method
or value that differ in the fewest settings. Two tables without a difference are equal, and equal tables have none.
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
}
"""The sections that are lists of steps, and what a step of each is about."""
MOST_PAIRED = 200
"""Among more steps about the same thing, those are matched that stand in the same order."""


class _Nothing:
    """What stands for a setting that is not there; TOML has no such value."""

    def __repr__(self) -> str:
        return "left out"


NOTHING = _Nothing()


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. ``section`` is a table of the recipe; ``place`` the number of a step in it, in the plan that has it (the second,
    where both do), None outside steps; ``about`` what the step is about; ``key`` the setting, empty for a whole step.

    ``before`` and ``now`` are the values, ``NOTHING`` where a plan has none; of a ``moved`` section the steps in their order.
    """

    kind: Kind
    section: str
    place: int | None
    about: str
    key: str
    before: Any
    now: Any


def differences(before: Table, now: Table) -> tuple[Difference, ...]:
    """What the second plan has otherwise than the first, in the order of the second, then what it lacks."""
    sections = [*now, *(name for name in before if name not in now)]
    return tuple(one for name in sections for one in _of_section(name, before, now))


def _of_section(name: str, before: Table, now: Table) -> Iterator[Difference]:
    tables = before.get(name, []), now.get(name, [])
    if name in STEPS and all(map(_is_steps, tables)):
        yield from _of_steps(name, *tables)
        return
    yield from _of_settings(name, None, "", {name: before.get(name, NOTHING)}, {name: now.get(name, NOTHING)})


def _is_steps(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(step, Mapping) for step in value)


def _of_settings(section: str, place: int | None, about: str, before: Table, now: Table) -> Iterator[Difference]:
    first, second = dict(_flat(before)), dict(_flat(now))
    for path in [*second, *(path for path in first if path not in second)]:
        was, is_now = first.get(path, NOTHING), second.get(path, NOTHING)
        if not same(was, is_now):
            kind: Kind = "added" if was is NOTHING else "removed" if is_now is NOTHING else "changed"
            yield Difference(kind, section, place, about, _dotted(path[1:] if place is None else path), was, is_now)


def _flat(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The settings of a table by their paths; an inner table without any is one itself."""
    if isinstance(value, Mapping) and (value or not path):
        for key, inner in value.items():
            yield from _flat(inner, (*path, str(key)))
    elif value is not NOTHING:
        yield path, value


def _dotted(path: Path) -> str:
    return ".".join(f'"{key}"' if "." in key or not key else key for key in path)


def same(one: Any, other: Any) -> bool:
    """Whether two values mean the same in a recipe: numbers by their value, truth values apart from numbers."""
    return _meaning(one) == _meaning(other)


def _meaning(value: Any) -> Hashable:
    """What two values that mean the same have in common."""
    if isinstance(value, Mapping):
        return "table", frozenset((str(key), _meaning(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return "list", tuple(map(_meaning, value))
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:  # noqa: PLR0124  (not NaN)
        return "number", value
    return type(value).__name__, repr(value)


def _of_steps(section: str, before: Sequence[Table], now: Sequence[Table]) -> Iterator[Difference]:
    pairs = _pairs(section, before, now)
    for place, step in enumerate(now):
        about = about_step(section, step)
        if place in pairs:
            yield from _of_settings(section, place, about, before[pairs[place]], step)
        else:
            yield Difference("added", section, place, about, "", NOTHING, dict(step))
    gone = set(range(len(before))) - set(pairs.values())
    for place in sorted(gone):
        yield Difference(
            "removed", section, place, about_step(section, before[place]), "", dict(before[place]), NOTHING
        )
    order = [pairs[place] for place in sorted(pairs)]
    if order != sorted(order):
        names = {place: about_step(section, before[place]) for place in order}
        repeated = len(set(names.values())) < len(names)
        said = {place: f"{name} [{place}]" if repeated else name for place, name in names.items()}
        yield Difference("moved", section, None, "", "", [said[at] for at in sorted(order)], [said[at] for at in order])


def about_step(section: str, step: Table) -> str:
    """What a step is about: ``price``, ``risk.identification``."""
    parts = (step.get(key) for key in STEPS.get(section, ()))
    return " ".join(", ".join(map(str, part)) if isinstance(part, list) else str(part) for part in parts if part)


def _pairs(section: str, before: Sequence[Table], now: Sequence[Table]) -> dict[int, int]:
    """The place of the step that each step of the second plan was in the first, where it was there."""
    pairs: dict[int, int] = {}
    by_subject: dict[str, tuple[list[int], list[int]]] = {}
    for side, steps in enumerate((before, now)):
        for place, step in enumerate(steps):
            by_subject.setdefault(about_step(section, step), ([], []))[side].append(place)
    for old, new in by_subject.values():
        alike: dict[Hashable, deque[int]] = {}
        for at in old:
            alike.setdefault(_meaning(before[at]), deque()).append(at)
        for place in new:
            if same_ones := alike.get(_meaning(now[place])):
                pairs[place] = same_ones.popleft()
        taken = {pairs[place] for place in new if place in pairs}
        left, open_places = [at for at in old if at not in taken], [place for place in new if place not in pairs]
        if len(left) > MOST_PAIRED or len(open_places) > MOST_PAIRED:
            pairs.update(zip(open_places, left, strict=False))
            continue
        for place in open_places[: len(left)]:
            pairs[place] = min(left, key=partial(_apart, before, now[place]))
            left.remove(pairs[place])
    return pairs


def _apart(before: Sequence[Table], step: Table, at: int) -> int:
    """In how many settings a step differs from one of the first plan."""
    mine, theirs = dict(_flat(step)), dict(_flat(before[at]))
    return sum(not same(theirs.get(path, NOTHING), mine.get(path, NOTHING)) for path in {*theirs, *mine})
