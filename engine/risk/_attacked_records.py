"""Random samples of the attacked records that do not depend on the order of a table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ..adversary.cells import cell_keys, row_keys
from ..data.arrays import Booleans, Integers
from ..data.microdata import Microdata


def order_by_values(data: Microdata, names: Iterable[str]) -> Integers:
    """Return the rows of the records (n,) in the order of their values of some variables."""
    # Neither the order of the variables nor that of levels must choose who is attacked: variables go by name, and levels
    # only tell records apart that agree in all numbers. The last key of lexsort is its first.
    keys = sorted(names, key=lambda name: (not data.schema[name].kind.has_levels, name))
    return np.asarray(np.lexsort([data.numbers(name) for name in keys]), dtype=np.int64)


def draw_rows(data: Microdata, most: int, rng: np.random.Generator) -> Integers:
    """Draw the rows of at most ``most`` random records, in the order of the records' values."""
    order = order_by_values(data, data.schema.names)
    if len(order) <= most:
        return np.asarray(order, dtype=np.int64)
    return np.asarray(order[np.sort(rng.choice(len(order), most, replace=False))], dtype=np.int64)


def select_rows(data: Microdata, rows: Integers) -> Microdata:
    """Return the table of some rows, without weights and controls."""
    return replace(data.without_controls, frame=data.frame.iloc[rows].reset_index(drop=True), weights=None)


def independent_stream(rng: np.random.Generator, number: int = 0) -> np.random.Generator:
    """Return a random generator of its own, by ``number``, without changing what ``rng`` and its children draw."""
    # A hash, so that this stream does not reveal the one that it is derived from.
    words = rng.bit_generator.seed_seq.generate_state(8).tobytes()
    said = hashlib.sha256(words + f"aside {number}".encode()).digest()
    return np.random.Generator(type(rng.bit_generator)(np.random.SeedSequence(int.from_bytes(said, "big"))))


def draw_half_by_values(data: Microdata, rng: np.random.Generator) -> Booleans:
    """Draw a random half of the records and return its mask, (n,), whatever the order of records and columns."""
    names = data.schema.names
    order = np.argsort(row_keys(cell_keys(data, names), names), kind="stable")
    inside = np.zeros(len(data), dtype=np.bool_)
    inside[order] = draw_half(len(data), rng)
    return inside


def draw_half(number: int, rng: np.random.Generator) -> Booleans:
    """Draw a random half of ``number`` items and return its mask, (number,)."""
    inside = np.zeros(number, dtype=np.bool_)
    inside[rng.permutation(number)[: number // 2]] = True
    return inside
