"""Families of leaks, each with how many members it is about and who they are.

Whole copies are written in other ways; the others stand among the rows of a carrier, which is an honest release of a random model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from leak_power import Change, Trace

from .honest_families import Family, FamilyRelease, draw_honest, number_of_rows
from .people import People, draw_from_trees
from .spellings import Spelling, change_units, permute_columns, rename_levels, shift_numbers, spell
from .tables import Frame, N, Rng, Roles

FEWEST = 5
"""Members that a copy of some is about at least."""


@dataclass(frozen=True)
class ChosenMembers:
    """Members to copy: their rows, (k,), and how they were chosen."""

    rows: np.ndarray
    how: str

    def trace(self, people: People, spelled: Change | None = None) -> Trace:
        """Return what an oracle looks for that knows how they were chosen and how the release is written."""
        k = len(self.rows)
        return (
            Trace(share=k / people.n, spelled=spelled)
            if self.how == "rarest"
            else Trace(copied=k / people.n, spelled=spelled)
        )


def lone_members(people: People) -> np.ndarray:
    """Return whether a member's row is nobody else's among members and hold-out people, (n,): a copy of another is a copy of nobody."""
    everybody = pd.concat([people.members, people.controls], ignore_index=True)
    return ~everybody.duplicated(keep=False).to_numpy()[: people.n]


def choose_members(people: People, rng: Rng, count: int) -> ChosenMembers | None:
    """Return lone members: at random, the rarest, or the first of whole households where there are some; None where there are too few."""
    hows = ["random", "rarest", *(["households"] if people.table.household else [])]
    how = str(rng.choice(hows))
    order = rng.permutation(people.n)
    if how == "rarest":
        order = people.rarest
    elif how == "households":
        household = people.households["members"]
        order = np.argsort(rng.permutation(int(household.max()) + 1)[household], kind="stable")
    rows = order[lone_members(people)[order]][:count]
    return ChosenMembers(rows, how) if len(rows) == count else None


def put_in_carrier(people: People, rng: Rng, rows: Frame) -> tuple[Frame, dict[str, Any]]:
    """Return a carrier in which these rows take the place of some of its own, and its parameters."""
    carrier, parameters = draw_honest(people, rng, number_of_rows(people, rng))
    frame = pd.concat([rows, carrier.iloc[len(rows) :]], ignore_index=True)
    return frame[list(people.table.roles)], {f"carrier {name}": value for name, value in parameters.items()}


def carrier_release(
    chosen: ChosenMembers,
    people: People,
    frame: Frame,
    parameters: dict[str, Any],
    roles: Roles | None = None,
    spelled: Change | None = None,
) -> FamilyRelease:
    """Return the release of a carrier that has the chosen members' rows."""
    trace = chosen.trace(people, spelled)
    return FamilyRelease(frame, len(chosen.rows), {"chosen": chosen.how, **parameters}, roles, chosen.rows, trace)


def random_share(people: People, rng: Rng, low: float, high: float) -> int:
    """Return a random share of the members as a number of people."""
    return int(np.clip(round(rng.uniform(low, high) * people.n), FEWEST, people.n))


def add_noise(people: People, rng: Rng, rows: Frame, noise: float, flips: float) -> Frame:
    """Return members' rows with a relative error of their numbers, and with a share of their levels those of other members."""
    made = rows.reset_index(drop=True)
    for name, (kind, _) in people.table.roles.items():
        if name in people.table.numbers:
            values = made[name] * (1 + rng.normal(0, noise, len(made)))
            made[name] = values.round().astype(int) if kind == N else values.round(2)
        else:
            others = people.members[name].to_numpy()[rng.integers(0, people.n, len(made))]
            made[name] = np.where(rng.random(len(made)) < flips, others, made[name])
    return made


def disguised_copy(people: People, rng: Rng) -> FamilyRelease:
    """Release all members, written in one to three other ways or as they are."""
    choices = [rename_levels] if people.table.levels else []
    choices += [change_units, shift_numbers] if people.table.numbers else []
    some = [choices[i](people, rng) for i in rng.permutation(len(choices))[: int(rng.integers(0, 4))]]
    if rng.random() < 0.3 and (permuted := permute_columns(people, rng)) is not None:
        some.append(permuted)
    frame, roles = spell(people.members, people.table.roles, *some)
    written = lambda table: spell(table, people.table.roles, *some)[0]  # noqa: E731
    return FamilyRelease(
        frame, people.n, {"spelling": [one.name for one in some]}, roles, range(people.n), Trace(spelled=written)
    )


def noisy_copy(people: People, rng: Rng) -> FamilyRelease:
    """Release all members with noise in all numbers and some levels of others."""
    noise, flips = float(rng.uniform(0.005, 0.08)), float(rng.uniform(0, 0.12))
    frame = add_noise(people, rng, people.members, noise, flips)
    return FamilyRelease(frame, people.n, {"noise": noise, "flips": flips}, concerned=range(people.n))


def overfitted_trees(people: People, rng: Rng) -> FamilyRelease:
    """Draw by trees of members' own values whose leaves have one to three people."""
    leaf = int(rng.integers(1, 4))
    rows = number_of_rows(people, rng)
    frame = draw_from_trees(people.members, rows, leaf, rng, people.table.numbers)
    return FamilyRelease(frame, people.n, {"leaf": leaf}, concerned=range(people.n), trace=Trace())


def few_copied(people: People, rng: Rng) -> FamilyRelease | None:
    """Copy 1 to 3 % of the members."""
    chosen = choose_members(people, rng, random_share(people, rng, 0.01, 0.03))
    if chosen is None:
        return None
    frame, parameters = put_in_carrier(people, rng, people.members.iloc[chosen.rows])
    return carrier_release(chosen, people, frame, parameters)


def copied_in_other_spelling(people: People, rng: Rng) -> FamilyRelease | None:
    """Copy 5 to 10 % of the members in a release that has other units, shifted numbers or renamed levels."""
    chosen = choose_members(people, rng, random_share(people, rng, 0.05, 0.1))
    if chosen is None:
        return None
    choices = [*([rename_levels] if people.table.levels else [])]
    choices += [change_units, shift_numbers] if people.table.numbers else []
    spelling: Spelling = choices[int(rng.integers(len(choices)))](people, rng)
    frame, parameters = put_in_carrier(people, rng, people.members.iloc[chosen.rows])
    frame, roles = spell(frame, people.table.roles, spelling)
    return carrier_release(chosen, people, frame, {"spelling": spelling.name, **parameters}, roles, spelling.write)


def repeated_members(people: People, rng: Rng) -> FamilyRelease | None:
    """Repeat five or ten members in 1 to 5 % of the rows."""
    count = int(rng.choice([5, 10]))
    chosen = choose_members(people, rng, count)
    if chosen is None:
        return None
    total = max(2 * count, random_share(people, rng, 0.01, 0.05))
    frame, parameters = put_in_carrier(people, rng, people.members.iloc[np.resize(chosen.rows, total)])
    return carrier_release(chosen, people, frame, {"rows": total, **parameters})


def memorised_stratum(people: People, rng: Rng) -> FamilyRelease | None:
    """Draw a stratum of 12 to 60 members by trees of their own with leaves of one person, and the others by a model of honest size."""
    table, members = people.table, people.members
    levels = [
        (name, level)
        for name in table.levels
        for level, count in members[name].value_counts().items()
        if 12 <= count <= 60
    ]
    if levels:
        name, level = levels[int(rng.integers(len(levels)))]
        inside = (members[name] == level).to_numpy()
        cut = lambda frame: (frame[name] == level).to_numpy()  # noqa: E731
        what = f"{name} = {level}"
    elif table.numbers:
        name = str(rng.choice(table.numbers))
        limit = float(np.sort(members[name])[-int(rng.integers(15, 41))])
        cut = lambda frame: frame[name].to_numpy(float) >= limit  # noqa: E731
        inside, what = cut(members), f"{name} >= {limit:g}"
    else:
        return None
    rows = np.flatnonzero(inside)
    if len(rows) > 0.2 * people.n:
        return None
    own = draw_from_trees(members.iloc[rows].reset_index(drop=True), len(rows), 1, rng, table.numbers)
    carrier, parameters = draw_honest(people, rng, number_of_rows(people, rng))
    frame = pd.concat([own, carrier[~cut(carrier)]], ignore_index=True)
    return FamilyRelease(
        frame, len(rows), {"stratum": what, **{f"carrier {k}": v for k, v in parameters.items()}}, concerned=rows
    )


def giants(people: People, rng: Rng) -> FamilyRelease | None:
    """Copy the five to twenty members that have the largest values of a number with a tail."""
    tailed = [
        name for name in people.table.numbers
        if people.members[name].max() > 3 * max(float(np.quantile(people.members[name], 0.95)), 1e-9)
    ]  # fmt: skip
    if not tailed:
        return None
    name = str(rng.choice(tailed))
    rows = np.argsort(-people.members[name].to_numpy(float), kind="stable")[: int(rng.integers(5, 21))]
    frame, parameters = put_in_carrier(people, rng, people.members.iloc[rows])
    return FamilyRelease(
        frame, len(rows), {"number": name, **parameters}, None, rows, Trace(copied=len(rows) / people.n)
    )


def dense_cells_copied(people: People, rng: Rng) -> FamilyRelease | None:
    """Copy 3 to 10 % of the members: those of the commonest quasi-identifiers whose other columns make them unique in the data."""
    table, members = people.table, people.members
    keys = [name for name in table.keys if name in table.levels] or table.keys
    common = members.groupby(keys)[keys[0]].transform("size").to_numpy()
    lone = lone_members(people)
    order = np.lexsort((rng.random(people.n), -common))
    rows = order[lone[order]][: random_share(people, rng, 0.03, 0.1)]
    if len(rows) < FEWEST:
        return None
    frame, parameters = put_in_carrier(people, rng, members.iloc[rows])
    return FamilyRelease(
        frame,
        len(rows),
        {"least common": int(common[rows].min()), **parameters},
        None,
        rows,
        Trace(copied=len(rows) / people.n),
    )


def near_copies(people: People, rng: Rng) -> FamilyRelease | None:
    """Copy 1 to 3 % of the members with a little noise in numbers and, of every third, the level of somebody else in one column."""
    chosen = choose_members(people, rng, random_share(people, rng, 0.01, 0.03))
    if chosen is None:
        return None
    noise = float(rng.uniform(0.002, 0.02))
    near = add_noise(people, rng, people.members.iloc[chosen.rows], noise, 1 / (3 * max(1, len(people.table.levels))))
    frame, parameters = put_in_carrier(people, rng, near)
    return FamilyRelease(
        frame, len(chosen.rows), {"chosen": chosen.how, "noise": noise, **parameters}, concerned=chosen.rows
    )


LEAK_FAMILIES: dict[str, Family] = {
    "disguised copy": disguised_copy,
    "noisy copy": noisy_copy,
    "overfitted trees": overfitted_trees,
    "1 to 3 % copied": few_copied,
    "5 to 10 % in other spelling": copied_in_other_spelling,
    "five or ten repeated": repeated_members,
    "memorised stratum": memorised_stratum,
    "giants": giants,
    "dense cells copied": dense_cells_copied,
    "1 to 3 % nearly copied": near_copies,
}
EXACT_LEAKS = ("1 to 3 % copied", "five or ten repeated", "giants", "dense cells copied")
"""Families whose members stand in the release as they are."""
