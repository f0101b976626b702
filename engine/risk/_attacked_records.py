"""Random samples of the attacked records that do not depend on the order of a table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ..adversary.cells import cell_keys, row_keys, unit_keys
from ..adversary.permuted import UnitsOfBoth
from ..data.arrays import Booleans, Integers
from ..data.microdata import Microdata
from ..data.units import code_unit_numbers


def order_by_values(data: Microdata, names: Iterable[str]) -> Integers:
    """Return the rows of the records (n,) in the order of their values of some variables."""
    # Neither the order of the variables nor that of levels must choose who is attacked: variables go by name, and levels
    # only tell records apart that agree in all numbers. The last key of lexsort is its first.
    keys = sorted(names, key=lambda name: (not data.schema[name].kind.has_levels, name))
    return np.asarray(np.lexsort([data.numbers(name) for name in keys]), dtype=np.int64)


def number_units(data: Microdata) -> Integers | None:
    """Return the number of each record's unit, (n,), in an order of the units' values; None where each record is one.

    Neither the order of records nor the numbers of units in the file change it, but for units with equal values.
    """
    units = data.units
    if units is None:
        return None
    names = data.schema.non_identifiers
    order = np.argsort(unit_keys(row_keys(cell_keys(data, names), names, len(data)), units), kind="stable")
    number = np.empty(len(units), dtype=np.int64)
    number[order] = np.arange(len(units))
    return np.asarray(number[units.unit_of])


def units_of_both(data: Microdata, own: Integers, controls: Microdata, others: Integers) -> UnitsOfBoth | None:
    """Return the units of some rows of the data and of some of the controls, as ``exact_p_value`` takes them.

    None where each record is a unit, and where records of one are on both sides.
    """
    numbers = number_units(data), number_units(controls)
    if numbers[0] is None and numbers[1] is None:
        return None
    name = data.schema.unit
    assert name is not None
    parts = [one.frame[name].astype(object) for one in (data, controls)]
    codes = code_unit_numbers(pd.concat(parts, ignore_index=True))
    known = codes >= 0
    members = np.arange(len(codes)) < len(data)
    if np.isin(codes[known & ~members], codes[known & members]).any():
        return None
    of_data, of_controls = (
        np.arange(len(table)) if number is None else number
        for table, number in zip((data, controls), numbers, strict=True)
    )
    return UnitsOfBoth(of_data[own], of_controls[others])


def draw_rows(data: Microdata, most: int, rng: np.random.Generator) -> Integers:
    """Draw the rows of at most ``most`` random records, in the order of the records' values.

    Where several records describe a unit, all or none of it are drawn, at least one unit.
    """
    order = order_by_values(data, data.schema.names)
    if len(order) <= most:
        return np.asarray(order, dtype=np.int64)
    unit_of = number_units(data)
    if unit_of is not None:
        sizes = np.bincount(unit_of)
        drawn = rng.permutation(len(sizes))
        taken = max(1, int(np.searchsorted(np.cumsum(sizes[drawn]), most, side="right")))
        return np.asarray(order[np.isin(unit_of[order], drawn[:taken])], dtype=np.int64)
    return np.asarray(order[np.sort(rng.choice(len(order), most, replace=False))], dtype=np.int64)


def select_rows(data: Microdata, rows: Integers) -> Microdata:
    """Return the table of some rows, without weights and controls."""
    return replace(data.without_controls, frame=data.frame.iloc[rows].reset_index(drop=True), weights=None)


def join_rows(data: Microdata, own: Integers, controls: Microdata, others: Integers) -> Microdata:
    """Return one table of some rows of the data, then some of the controls, without weights."""
    parts = [select_rows(data, own), select_rows(controls, others)]
    return replace(parts[0], frame=_concatenate_frames([part.frame for part in parts]))


def _concatenate_frames(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of frames with equal columns one after another; a column of levels has the levels of all."""
    return pd.DataFrame(
        {
            name: pd.api.types.union_categoricals([frame[name] for frame in frames])
            if all(isinstance(frame[name].dtype, pd.CategoricalDtype) for frame in frames)
            else pd.concat([frame[name] for frame in frames], ignore_index=True)
            for name in frames[0].columns
        },
        copy=False,
    )


def independent_stream(rng: np.random.Generator, number: int = 0) -> np.random.Generator:
    """Return a random generator of its own, by ``number``, without changing what ``rng`` and its children draw."""
    # A hash, so that this stream does not reveal the one that it is derived from.
    words = rng.bit_generator.seed_seq.generate_state(8).tobytes()
    said = hashlib.sha256(words + f"aside {number}".encode()).digest()
    return np.random.Generator(type(rng.bit_generator)(np.random.SeedSequence(int.from_bytes(said, "big"))))


def draw_half_by_values(data: Microdata, rng: np.random.Generator) -> Booleans:
    """Draw a random half of the records and return its mask, (n,), whatever the order of records and columns.

    Where several records describe a unit, it is a half of the units.
    """
    unit_of = number_units(data)
    if unit_of is not None:
        return np.asarray(draw_half(int(unit_of.max()) + 1, rng)[unit_of])
    names = data.schema.names
    order = np.argsort(row_keys(cell_keys(data, names), names), kind="stable")
    inside = np.zeros(len(data), dtype=np.bool_)
    inside[order] = draw_half(len(data), rng)
    return inside


@dataclass(frozen=True, eq=False)
class OtherPeople:
    """Records of other people that stand in place of the release: two random halves of the data and of the controls.

    halves: both halves, each of members and controls
    uses_second: whether the second half stands in place of the release for each attacked record of the data, (q,), and
        of the controls, (c,): that without the record
    """

    halves: tuple[Microdata, Microdata]
    uses_second: tuple[Booleans, Booleans]

    @classmethod
    def draw(
        cls, data: Microdata, own: Integers, controls: Microdata, others: Integers, rng: np.random.Generator
    ) -> OtherPeople:
        """Draw the halves for the attacked rows of the data, (q,), and of the controls, (c,)."""
        # Relatives of a person, whom no unit may name, are as often in a half for members as for controls. In a half
        # of controls alone only controls would have relatives: these would be easier to guess without the release, and
        # the difference would pass for a disclosure.
        first = draw_half_by_values(data, rng), draw_half_by_values(controls, rng)
        halves = [
            join_rows(data, np.flatnonzero(first[0] == which), controls, np.flatnonzero(first[1] == which))
            for which in (True, False)
        ]
        return cls((halves[0], halves[1]), (first[0][own], first[1][others]))


def draw_half_of_units(number: int, unit_of: Integers | None, rng: np.random.Generator) -> Booleans:
    """Draw a random half of ``number`` items, or of their units (number,) where given, and return its mask."""
    if unit_of is None:
        return draw_half(number, rng)
    units, place = np.unique(unit_of, return_inverse=True)
    return np.asarray(draw_half(len(units), rng)[place])


def draw_half(number: int, rng: np.random.Generator) -> Booleans:
    """Draw a random half of ``number`` items and return its mask, (number,)."""
    inside = np.zeros(number, dtype=np.bool_)
    inside[rng.permutation(number)[: number // 2]] = True
    return inside
