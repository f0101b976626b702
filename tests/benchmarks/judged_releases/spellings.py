"""Other ways to write a release: levels renamed, numbers in other units, shifted or rounded, columns under each other's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .people import People
from .tables import Frame, N, Rng, Roles, X


@dataclass(frozen=True)
class Spelling:
    """How a release is written.

    name: what is done, with its numbers
    write: writes a frame so
    is_continuous: whether counts become numbers that need not be whole
    """

    name: str
    write: Callable[[Frame], Frame]
    is_continuous: bool = False


def as_continuous(roles: Roles) -> dict[str, tuple[str, str]]:
    """Return the roles with every count a continuous variable, so that any number may be released."""
    return {name: (X if kind == N else kind, role) for name, (kind, role) in roles.items()}


def all_levels(people: People, name: str) -> np.ndarray:
    """Return the levels that anybody has."""
    groups = (people.members, people.controls, people.fitted, people.fresh)
    return np.unique(np.concatenate([one[name] for one in groups]).astype(str))


def rename_levels(people: People, rng: Rng) -> Spelling:
    """Permute the levels of every column, or give them new names."""
    is_new = bool(rng.random() < 0.5)
    names = {}
    for name in people.table.levels:
        levels = all_levels(people, name)
        order = rng.permutation(len(levels))
        names[name] = {
            one: f"{name}-{at}" if is_new else str(levels[at]) for one, at in zip(levels, order, strict=True)
        }

    def write(frame: Frame) -> Frame:
        return frame.assign(**{name: frame[name].astype(str).map(one) for name, one in names.items()})

    return Spelling("levels renamed" if is_new else "levels permuted", write)


def change_units(people: People, rng: Rng) -> Spelling:
    """Multiply every number by a factor of its column."""
    factors = {name: float(f"{np.exp(rng.normal(0, 1.5)):.3g}") for name in people.table.numbers}

    def write(frame: Frame) -> Frame:
        return frame.assign(**{name: (frame[name] * one).round(6) for name, one in factors.items()})

    return Spelling("other units " + " ".join(f"{one:g}" for one in factors.values()), write, True)


def shift_numbers(people: People, rng: Rng) -> Spelling:
    """Add to every number a part of its spread."""
    spread = {name: float(people.members[name].std()) or 1.0 for name in people.table.numbers}
    shifts = {name: round(float(rng.normal(0, 1)) * one, 1) for name, one in spread.items()}

    def write(frame: Frame) -> Frame:
        return frame.assign(**{name: (frame[name] + one).round(6) for name, one in shifts.items()})

    return Spelling("shifted by " + " ".join(f"{one:g}" for one in shifts.values()), write, True)


def round_numbers(people: People, rng: Rng) -> Spelling:
    """Round every number to one or two digits, or to a multiple of a tenth to a half of its spread."""
    digits = int(rng.integers(0, 3))
    unit = {
        name: float(f"{people.members[name].std() * rng.uniform(0.1, 0.5):.1g}") or 1.0 for name in people.table.numbers
    }

    def write(frame: Frame) -> Frame:
        made = frame.copy()
        for name in people.table.numbers:
            values = frame[name].to_numpy(float)
            if digits:
                size = 10.0 ** (np.floor(np.log10(np.maximum(np.abs(values), 1e-9))) - digits + 1)
            else:
                size = np.full(len(values), unit[name])
            made[name] = np.round(np.round(values / size) * size, 6)
            if people.table.roles[name][0] == N:
                made[name] = made[name].round().astype(int)
        return made

    return Spelling(f"rounded to {digits} digits" if digits else "rounded to parts of the spread", write)


def permute_columns(people: People, rng: Rng) -> Spelling | None:
    """Write the values of numbers under each other's names, and those of levels; None where there is nothing to permute."""
    numbers, levels = list(people.table.numbers), list(people.table.levels)
    if len(numbers) < 2 and len(levels) < 2:
        return None
    source = {}
    for names in (numbers, levels):
        source.update(zip(np.array(names, dtype=object)[rng.permutation(len(names))], np.roll(names, 1), strict=True))

    def write(frame: Frame) -> Frame:
        return frame.assign(**{name: frame[str(other)].to_numpy() for name, other in source.items()})

    return Spelling("columns permuted", write, True)


def spell(frame: Frame, roles: Roles, *spellings: Spelling) -> tuple[Frame, Roles]:
    """Return a frame written so, and the roles that it then needs."""
    for one in spellings:
        frame = one.write(frame)
    return frame, as_continuous(roles) if any(one.is_continuous for one in spellings) else roles
