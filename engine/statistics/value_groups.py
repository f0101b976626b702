"""Groups of about as many numbers each, of a table that is asked for sums.

Numbers are counted by their leading bits, and where too many share these, by those that follow. The counts are whole
numbers, and the groups depend on the numbers alone: not on blocks, nor on the order of the records.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.block_sums import Summands, SummedTable
from ..data.microdata import Microdata

_FIRST = 16
_MORE = 8
_MOST = 56
"""Bits by which numbers are told apart at most: those that differ by less than a part in 10^13 are in one group."""
_EVEN = 8
"""In how many parts a group is divided at least, so that groups are about as large."""
_ALL = 64
_SIGN = np.uint64(1 << 63)
_ValueKeys = NDArray[np.uint64]


def group_ends(name: str, groups: int, table: SummedTable) -> Floats:
    """Return the ends of at most ``groups`` groups of the present numbers of a variable, ascending, (g,).

    A group has the numbers up to its end, and above the end before. One with a frequent number may have many more records
    than others.
    """
    (counts,) = table.ask_sums(partial(_count_first_bits, name))
    cells = np.flatnonzero(counts)
    low, counts = cells.astype(np.uint64) << np.uint64(_ALL - _FIRST), counts[cells]
    last = low + np.uint64((1 << _ALL - _FIRST) - 1)
    total = int(counts.sum())
    for bits in range(_FIRST + _MORE, _MOST + 1, _MORE):
        # Only cells that have just been divided can have too many.
        large = counts * groups * _EVEN > total
        if not large.any():
            break
        (found,) = table.ask_sums(partial(_count_next_bits, name, low[large], bits))
        row, cell = np.nonzero(found)
        own = low[large][row] + (cell.astype(np.uint64) << np.uint64(_ALL - bits))
        ends = own + np.uint64((1 << _ALL - bits) - 1)
        low, last = np.concatenate([low[~large], own]), np.concatenate([last[~large], ends])
        counts = np.concatenate([counts[~large], found[row, cell]])
        order = np.argsort(low)
        low, last, counts = low[order], last[order], counts[order]
    group = (np.cumsum(counts) - 1) * groups // max(total, 1)
    return _numbers_of_keys(last[np.append(group[1:] != group[:-1], True)] if len(group) else last)


def _keys_of_numbers(numbers: Floats) -> _ValueKeys:
    """Return whole numbers in the order of numbers (n,) that are not missing."""
    # -0.0 + 0.0 is 0.0: equal numbers have equal bits.
    bits = (numbers + 0.0).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _numbers_of_keys(keys: _ValueKeys) -> Floats:
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)


def _count_first_bits(name: str, data: Microdata) -> Summands:
    keys = _keys_of_numbers(data.present_numbers(name)) >> np.uint64(_ALL - _FIRST)
    return (np.bincount(keys.astype(np.int64), minlength=1 << _FIRST),)


def _count_next_bits(name: str, low: _ValueKeys, bits: int, data: Microdata) -> Summands:
    """Count the numbers of a block in cells that begin at ``low`` (k,), by the last ``_MORE`` of some bits, (k, 2^8)."""
    keys = _keys_of_numbers(data.present_numbers(name)) >> np.uint64(_ALL - bits)
    cell = keys >> np.uint64(_MORE)
    wanted = low >> np.uint64(_ALL - bits + _MORE)
    place: Integers = np.minimum(np.searchsorted(wanted, cell), len(wanted) - 1)
    inside = wanted[place] == cell
    own = (place[inside] << _MORE) + (keys[inside] & np.uint64((1 << _MORE) - 1)).astype(np.int64)
    return (np.bincount(own, minlength=len(wanted) << _MORE).reshape(len(wanted), -1),)
