"""The records that an attack is tried on: a random sample of a table that does not depend on the order of its records."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from ..adversary.cells import cell_keys, row_keys
from ..data.arrays import Booleans, Integers
from ..data.microdata import Microdata


def drawn(data: Microdata, most: int, rng: np.random.Generator) -> Integers:
    """Rows of ``most`` records at random, or of all where there are no more: ascending by their values, which do not tell where they stand."""
    order = np.lexsort([data.numbers(name) for name in data.schema.names])
    if len(order) <= most:
        return np.asarray(order, dtype=np.int64)
    return np.asarray(order[np.sort(rng.choice(len(order), most, replace=False))], dtype=np.int64)


def of_rows(data: Microdata, rows: Integers) -> Microdata:
    return replace(data.without_controls, frame=data.frame.iloc[rows].reset_index(drop=True), weights=None)


def stream_aside(rng: np.random.Generator, number: int = 0) -> np.random.Generator:
    """Return a stream of its own, by its ``number``, which leaves what ``rng`` and its children draw as it is."""
    # a hash: nobody comes from this stream back to the one that it stands beside
    words = rng.bit_generator.seed_seq.generate_state(8).tobytes()
    said = hashlib.sha256(words + f"aside {number}".encode()).digest()
    return np.random.Generator(type(rng.bit_generator)(np.random.SeedSequence(int.from_bytes(said, "big"))))


def half_by_values(data: Microdata, rng: np.random.Generator) -> Booleans:
    """Return who of a table is in one half of it, drawn at random, (n,), whatever the order of its records and columns is."""
    names = data.schema.names
    order = np.argsort(row_keys(cell_keys(data, names), names), kind="stable")
    inside = np.zeros(len(data), dtype=np.bool_)
    inside[order] = first_half(len(data), rng)
    return inside


def first_half(number: int, rng: np.random.Generator) -> Booleans:
    """Return who of so many is in one half of them, drawn at random, (number,)."""
    inside = np.zeros(number, dtype=np.bool_)
    inside[rng.permutation(number)[: number // 2]] = True
    return inside
