"""Seed pools: the initial records of samplers that draw each record in turn.

    seeds = "uniform"          # any categories, each as likely as the others
    seeds = "confidential"     # confidential records: outside the proof
    seeds = "pool.csv"         # records of a public file beside the recipe: a CSV table with a column a target

Park & Ghosh §3.1 pick each seed "from a predefined pool". A pool that is independent of the confidential data costs no
privacy. The lines of a public file become part of the recipe, so that a run can be repeated without the file, and its
commitment covers them. A file is refused where it is evidently the confidential table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pandas as pd

from ..data.arrays import Integers
from ..data.microdata import Microdata, conform_to_schema, schema_with_levels
from ..data.rows import distinct_rows
from ..data.schema import MissingPolicy, Schema
from ..errors import BadInput
from ..methods.privacy import UncoveredUse
from ..methods.spec import Param
from ..statistics.csv_lines import TableLines, is_list_of_lines
from ..wording import count_noun
from .categories import VariableCategories

SeedKind = Literal["uniform", "confidential", "public"]
WORDS: tuple[SeedKind, ...] = ("uniform", "confidential")


@dataclass(frozen=True)
class SeedPool(TableLines):
    """Pool of initial records; the ``lines`` of a public file begin with the names of the columns."""

    kind: SeedKind = "uniform"

    noun = "the seed pool"
    words = WORDS
    """What a recipe may say that is no file."""

    @classmethod
    def parse(cls, value: object) -> SeedPool:
        """Read a pool from a recipe: a word, or the lines of a CSV table. Raises ValueError."""
        if isinstance(value, SeedPool):
            return value
        if isinstance(value, str):
            kind = next((word for word in WORDS if word == value), None)
            if kind is None:
                raise ValueError(
                    f'"{value}" is neither "uniform" nor "confidential"; a public file of seeds is read from the folder of a '
                    "recipe's file"
                )
            return cls(kind=kind)
        if not is_list_of_lines(value):
            raise ValueError('must be "uniform", "confidential", or a public file: a CSV table with a column a target')
        pool = cls(tuple(value), "public")
        pool.check_lines()
        return pool

    @property
    def written(self) -> str | list[str]:
        """Return the value of the pool in a recipe, which ``parse`` reads back to an equal pool."""
        return list(self.lines) if self.kind == "public" else self.kind

    @property
    def told(self) -> str:
        """Return what result rows say of the pool: its kind, or size and hash of a public file."""
        return (
            f"public, {count_noun(self.records, 'record')}, SHA-256 {self.sha256}"
            if self.kind == "public"
            else self.kind
        )

    def to_table(self, data: Microdata, names: Sequence[str], place: str) -> Microdata:
        """Return the records of a public file with these variables of the confidential data, (records,).

        Raises BadInput at ``place``.
        """
        heads, *rows = self.cells
        for name in names:
            if name not in heads:
                raise BadInput(place, f'the seed pool has no column "{name}"; it needs one of every target')
        frame = pd.DataFrame(rows, columns=heads, dtype=object).replace("", None)
        try:
            # With the levels of the data codes agree.
            schema = Schema(tuple(schema_with_levels(data)[name] for name in names))
            found = conform_to_schema(frame, schema, MissingPolicy.KEEP, place=place)
        except BadInput as error:
            raise BadInput(error.place, f"of the seed pool {error.message}") from None
        for name in names:
            if found.missing_mask(name).any() and not data.may_have_missing(name):
                raise BadInput(
                    f"{place}.{name}", f'records of the seed pool have no "{name}", which every record of the data has'
                )
        return found


UNIFORM = SeedPool()

SeedPoolParam = Annotated[
    SeedPool,
    Param(
        "where a record starts: uniform, at random categories; confidential, at a confidential record; or the name of a public CSV file beside the recipe"
    ),
]


def check_seeds(data: Microdata, targets: Sequence[str], seeds: SeedPool, place: str) -> None:
    """Raise BadInput at ``place`` where records of a public file do not suit the schema, or are those of the
    confidential data.
    """
    # Checked here, not by the account: an account that looked at the records would reveal them, so it takes the
    # recipe's word that the file is public.
    if seeds.kind == "public" and _is_confidential_table(data, seeds.to_table(data, targets, place), targets):
        raise BadInput(
            place,
            "the seed pool is not public: half of its records or more are records of the confidential data; name another file, or "
            'write seeds = "confidential", which no epsilon covers',
        )


def uncovered_seeds(seeds: SeedPool) -> tuple[UncoveredUse, ...]:
    """Return the use of the confidential data by the seeds that a proof does not cover, if any."""
    if seeds.kind == "confidential":
        public = "each record was drawn starting from a record of the confidential data"
        return (UncoveredUse("records start as confidential records", public),)
    return ()


def _is_confidential_table(data: Microdata, pool: Microdata, targets: Sequence[str]) -> bool:
    """Return whether a pool is the confidential table, or at least half of it equals confidential records that are
    unique.
    """
    both = [np.concatenate([np.nan_to_num(one.numbers(n), nan=np.inf) for one in (data, pool)]) for n in targets]
    cells = distinct_rows(both, len(both[0])).combination_of
    own, drawn = (np.bincount(part, minlength=cells.max() + 1) for part in (cells[: len(data)], cells[len(data) :]))
    # Of an independent sample at most 37 % do so in the long run, whatever the distribution: k records in cells of one
    # mean, e^-1.
    return bool((own == drawn).all()) or 2 * int(drawn[own == 1].sum()) >= len(pool)


def draw_seeds(
    categories: Mapping[str, VariableCategories],
    targets: Sequence[str],
    seeds: SeedPool,
    data: Microdata,
    count: int,
    rng: np.random.Generator,
    *,
    own: bool = False,
) -> dict[str, Integers]:
    """Draw the initial categories of ``count`` records, codes (count,) by target.

    With ``own``, each record starts at its own confidential record.
    """
    if seeds.kind == "uniform":
        return {name: rng.integers(categories[name].size, size=count) for name in targets}
    if seeds.kind == "public":
        pool = seeds.to_table(data, targets, "seeds")
        rows = rng.integers(len(pool), size=count)
        return {name: categories[name].category_codes(pool)[rows] for name in targets}
    found = {name: categories[name].category_codes(data) for name in targets}
    # sorted, so that no random number points to a place in the file
    rows = np.arange(count) if own else np.lexsort(tuple(found.values()))[rng.integers(len(data), size=count)]
    return {name: codes[rows] for name, codes in found.items()}
