"""Families of honest releases: no record is made from fewer people than a model of honest size needs.

A release is fresh people, or drawn by one of ``MODELS`` that was fitted to members or to others. Each family has random parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from leak_power import Trace

from .models import MODELS, CodedTable, code_table
from .people import People, draw_from_trees
from .spellings import Spelling, change_units, rename_levels, round_numbers, spell
from .tables import Frame, Rng, Roles

MOST_ROWS = 8_000
EXACT = ("margins", "copula", "trees")
"""Models that may draw values that only one of the people has; nobody minds where these are others."""
SMALLEST_STRATUM = 80


@dataclass(frozen=True)
class FamilyRelease:
    """A release that a family made.

    frame: its rows; their order may say whose they are, until they are shuffled
    people: how many members a leak is about; 0 of an honest release
    parameters: what was drawn for it, in words and numbers
    roles: roles of its columns where they are not the table's
    concerned: rows of these members, (people,); empty for honest releases
    trace: what an oracle looks for that knows the kind of the leak, where rows are copied as they are or in another spelling
    """

    frame: Frame
    people: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    roles: Roles | None = None
    concerned: Sequence[int] | np.ndarray = ()
    trace: Trace | None = None


Family = Callable[[People, Rng], FamilyRelease | None]
"""Makes a release of people; None where their table has not what it needs."""


def number_of_rows(people: People, rng: Rng) -> int:
    """Return as many rows as members for half of all releases, else .7 to 1.4 times as many."""
    return people.n if rng.random() < 0.5 else round(people.n * rng.uniform(0.7, 1.4))


def draw_honest(
    people: People, rng: Rng, rows: int, kind: str = "", of: str = "", size: int = 0, part: Frame | None = None
) -> tuple[Frame, dict[str, Any]]:
    """Return rows of a model and its parameters; what is not said is drawn.

    kind: one of ``MODELS``
    of: ``members`` or ``others``, to whom it is fitted
    size: people of a leaf, of a cell or of a class
    part: the people it is fitted to, where these are not all
    """
    kind = kind or str(rng.choice(list(MODELS)))
    of = of or str(rng.choice(["members", "others"]))
    size = size or int(rng.integers(20, 101))
    is_exact = of == "others" and kind in EXACT and rng.random() < 0.5
    least = 1 if is_exact else int(rng.integers(15, 41))
    fitted = part if part is not None else (people.members if of == "members" else people.fitted)
    coded = code_table(fitted, people.fitted, people.table, least)
    frame = coded.decode(MODELS[kind](coded, rows, rng, size), rng, people.table.roles)
    return frame, {"model": kind, "of": of, "size": size, "least": least}


def fresh_people(people: People, rng: Rng) -> FamilyRelease:
    """Release other people as they are."""
    rows = min(number_of_rows(people, rng), len(people.fresh))
    return FamilyRelease(people.fresh.iloc[:rows].reset_index(drop=True), parameters={"model": "none", "of": "others"})


def model_family(kind: str, of: str = "") -> Family:
    """Return the family of one model."""

    def make(people: People, rng: Rng) -> FamilyRelease:
        frame, parameters = draw_honest(people, rng, number_of_rows(people, rng), kind, of)
        return FamilyRelease(frame, parameters=parameters)

    return make


def size_family(low: float, high: float) -> Family:
    """Return the family of releases that have so many times as many rows as there are members."""

    def make(people: People, rng: Rng) -> FamilyRelease:
        times = float(np.exp(rng.uniform(np.log(low), np.log(high))))
        rows = min(round(people.n * times), MOST_ROWS)
        of = str(rng.choice(["members", "others"]))
        # A leaf of 20 members that is drawn from a hundred times shows all of them: it has as many people more as rows are drawn.
        size = round(int(rng.integers(20, 101)) * (max(1.0, rows / people.n) if of == "members" else 1.0))
        frame, parameters = draw_honest(people, rng, rows, of=of, size=size)
        return FamilyRelease(frame, parameters={**parameters, "times": round(times, 2)})

    return make


def spelling_family(choose: Callable[[People, Rng], Spelling], needs: str) -> Family:
    """Return the family of releases of any model that are written in another way, of tables that have ``numbers`` or ``levels``."""

    def make(people: People, rng: Rng) -> FamilyRelease | None:
        if not getattr(people.table, needs):
            return None
        frame, parameters = draw_honest(people, rng, number_of_rows(people, rng))
        spelling = choose(people, rng)
        frame, roles = spell(frame, people.table.roles, spelling)
        return FamilyRelease(frame, parameters={**parameters, "spelling": spelling.name}, roles=roles)

    return make


def strata_with_models(people: People, rng: Rng) -> FamilyRelease:
    """Draw each of two to five strata by a model of its own; a level of few people goes with the others."""
    of = str(rng.choice(["members", "others"]))
    fitted = people.members if of == "members" else people.fitted
    strata = choose_strata(fitted, people, rng)
    parts, models = [], []
    for stratum in np.unique(strata):
        own = fitted[strata == stratum]
        rows = max(1, round(people.n * len(own) / len(fitted)))
        frame, parameters = draw_honest(people, rng, rows, of=of, size=int(rng.integers(20, 41)), part=own)
        parts.append(frame)
        models.append(parameters["model"])
    return FamilyRelease(pd.concat(parts, ignore_index=True), parameters={"of": of, "models": models})


def choose_strata(fitted: Frame, people: People, rng: Rng) -> np.ndarray:
    """Return the number of the stratum of each person, (n,): levels of a random column that enough people have, or halves by a number."""
    for name in rng.permutation(list(people.table.levels)):
        codes = pd.factorize(fitted[name], sort=True)[0]
        large = np.flatnonzero(np.bincount(codes) >= SMALLEST_STRATUM)
        rest = ~np.isin(codes, large)
        if 2 <= len(large) <= 5:
            # Levels that few people have go with the largest stratum.
            codes[rest] = np.bincount(codes).argmax()
            return codes
    values = fitted[list(fitted)[int(rng.integers(fitted.shape[1]))]]
    codes = values.to_numpy(float) if values.name in people.table.numbers else pd.factorize(values, sort=True)[0]
    return (codes > np.median(codes)).astype(int)


def households(people: People, rng: Rng) -> FamilyRelease | None:
    """Release people in households with equal columns: fresh ones, or drawn by trees of households and of people in them."""
    table = people.table
    if not table.household:
        return None
    if rng.random() < 0.3:
        return FamilyRelease(people.fresh, parameters={"model": "none", "of": "others"})
    of = str(rng.choice(["members", "others"]))
    group = "members" if of == "members" else "fitted"
    fitted, household = getattr(people, group), people.households[group]
    shared = list(table.shared)
    coded = code_table(fitted, people.fitted, table, 40)
    number = pd.factorize(household)[0]
    first = np.flatnonzero(np.diff(number, prepend=-1))
    sizes = np.bincount(number)
    size = int(rng.integers(20, 41))
    homes = coded.codes[shared].iloc[first].reset_index(drop=True).assign(people=sizes)
    count = max(1, round(people.n / float(sizes.mean())))
    drawn = draw_from_trees(homes, count, size, rng, {*coded.numbers, "people"})
    values = decode_part(coded, drawn[shared], people, rng)
    at = np.repeat(np.arange(count), drawn["people"].to_numpy(int))
    own = [name for name in fitted if name not in shared]
    persons = draw_from_trees(
        coded.codes[[*shared, *own]].assign(people=sizes[number])[["people", *shared, *own]],
        len(at), size, rng, {*coded.numbers, "people"},
        given=drawn[["people", *shared]].iloc[at].reset_index(drop=True),
    )  # fmt: skip
    frame = pd.concat([values.iloc[at].reset_index(drop=True), decode_part(coded, persons[own], people, rng)], axis=1)
    return FamilyRelease(frame[list(fitted)], parameters={"model": "trees of households", "of": of, "size": size})


def decode_part(coded: CodedTable, codes: Frame, people: People, rng: Rng) -> Frame:
    """Return values for the codes of some columns."""
    return coded.decode(codes, rng, people.table.roles)


HONEST_FAMILIES: dict[str, Family] = {
    "fresh people": fresh_people,
    "independent margins": model_family("margins"),
    "copula": model_family("copula"),
    "Bayesian network": model_family("network"),
    "trees of others": model_family("trees", "others"),
    "trees of members": model_family("trees", "members"),
    "latent classes": model_family("latent classes"),
    "much larger": size_family(2.5, 10),
    "much smaller": size_family(0.3, 0.6),
    "rounded": spelling_family(round_numbers, "numbers"),
    "levels renamed": spelling_family(rename_levels, "levels"),
    "other units": spelling_family(change_units, "numbers"),
    "strata with models": strata_with_models,
    "households": households,
}
