"""Columns that the tool behind a released file left as they were: recognised however they are written, then the original's.

A measure of risk finds a record by equal values. A known column that was read back from fewer digits would equal nothing, and
the risk would look like 0. So a column that is not released either *is* the original one, written as
``sfumato.engine.written_values`` allows, and the table takes the original's own values, or the file is refused with
what differs. Where records are linked, values are compared record by record. Where they are not, each must be written
like one original value, and like one only. Released numbers that are original values written with fewer digits become
these too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sfumato.engine.errors import BadInput
from sfumato.engine.microdata import Microdata
from sfumato.engine.recipe import Recipe
from sfumato.engine.schema import Kind
from sfumato.engine.written_values import (
    LARGEST_ERROR,
    digits_and_decimals,
    nearest,
    originals_of,
    rounded_alike,
    same_numbers,
)

__all__ = ["with_original_values"]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
DAY, HOUR, MINUTE = 86_400, 3_600, 60
DIGITS_THAT_TELL = 1 - round(np.log10(LARGEST_ERROR))


def with_original_values(
    table: Microdata, places: Places | None, data: Microdata, recipe: Recipe, place: str, advice: str
) -> Microdata:
    """The released table (k,) with the original's values where it has them, written in whatever way.

    ``places`` (k,) are the original records, None where nobody knows them. ``advice`` ends a message on records that differ.
    Raises BadInput where a column is not released and yet not the original's.
    """
    columns: dict[str, pd.Series] = {}
    for variable in recipe.schema:
        name = variable.name
        if name in recipe.generalised or table.schema[name].kind is not variable.kind:
            continue
        ours, theirs = _comparable(data.frame[name], variable.kind), _comparable(table.frame[name], variable.kind)
        if name in recipe.released:
            if variable.kind is Kind.CONTINUOUS:
                columns[name] = pd.Series(_known_again(ours, theirs, places), name=name)
            continue
        try:
            if places is not None:
                _check_own(ours[places], theirs, variable.kind)
                columns[name] = data.frame[name].iloc[places].reset_index(drop=True)
            else:
                values = _of_somebody(ours, theirs, variable.kind)
                if variable.kind in (Kind.COUNT, Kind.CONTINUOUS):
                    columns[name] = pd.Series(values, name=name).astype(table.frame[name].dtype)
        except _Different as error:
            way_out = f'if it is, name "{name}" under [release] released; {advice}'
            raise BadInput(f"{place}: {name}", f"{error}, and it is not released; {way_out}") from None
    return replace(table, frame=table.frame.assign(**columns))


class _Different(Exception):
    """How a column that is not released differs from the original's, without a value of either."""


def _comparable(column: pd.Series, kind: Kind) -> Floats:
    """Values (n,) as numbers that are equal where the values are: codes of levels, seconds of dates; NaN where missing."""
    if kind.has_levels:
        numbers = column.cat.codes.to_numpy()
    elif kind is Kind.DATE:
        numbers = column.to_numpy(dtype="datetime64[s]").astype(np.int64)
    else:
        return np.asarray(column, dtype=np.float64)
    return np.where(column.isna(), np.nan, numbers.astype(np.float64))


def _check_own(ours: Floats, theirs: Floats, kind: Kind) -> None:
    """Raises _Different unless each value (k,) is its record's own, (k,)."""
    numeric = kind in (Kind.COUNT, Kind.CONTINUOUS)
    same = same_numbers(ours, theirs) if numeric else np.asarray((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    if not same.all():
        coarser = _coarser(ours, theirs, kind)
        found = f"{int((~same).sum()):,} of {len(theirs):,} records differ from the original"
        raise _Different(coarser or f"{found}{_by(ours[~same], theirs[~same], kind)}")


def _of_somebody(ours: Floats, theirs: Floats, kind: Kind) -> Floats:
    """The original value (k,) that each released one (k,) writes, of all the originals (n,). Raises _Different."""
    numeric = kind in (Kind.COUNT, Kind.CONTINUOUS)
    found, candidates = originals_of(ours, theirs) if numeric else (theirs, np.isin(theirs, ours).astype(np.int64))
    there = ~np.isnan(theirs)
    candidates = np.where(there, candidates, int(np.isnan(ours).any()))
    if unknown := int((candidates == 0).sum()):
        written = theirs[there] if (candidates[there] == 0).any() and not kind.has_levels else np.empty(0)
        coarser = _coarser(_nearest(ours, written, kind), written, kind) if len(written) else ""
        raise _Different(coarser or f"{unknown:,} of {len(theirs):,} records have a value that no original record has")
    if several := int((candidates > 1).sum()):
        raise _Different(
            f"{several:,} of {len(theirs):,} records could each be one of several original values, which are alike as far as "
            "their digits go"
        )
    return found


def _known_again(ours: Floats, theirs: Floats, places: Places | None) -> Floats:
    """Released numbers (k,): the record's own original value where that is written, else the nearest that is."""
    found, candidates = originals_of(ours, theirs)
    values = np.where(candidates > 0, found, theirs)
    return values if places is None else np.where(same_numbers(ours[places], theirs), ours[places], values)


def _nearest(ours: Floats, theirs: Floats, kind: Kind) -> Floats:
    """The original value, of all (n,), nearest to each released one (k,), none missing; of dates the day's first."""
    values = np.unique(ours[~np.isnan(ours)])
    if kind is Kind.DATE:
        return np.asarray(values[np.searchsorted(values // DAY, theirs // DAY).clip(max=len(values) - 1)])
    return nearest(values, theirs)


def _coarser(ours: Floats, theirs: Floats, kind: Kind) -> str:
    """How the released values (k,) are the original ones, (k,), written with less; empty where they are not."""
    if kind.has_levels or np.isnan(ours).any() or np.isnan(theirs).any():
        return ""
    if kind is Kind.DATE:
        parts = ((DAY, "holds dates without their time of day"), (MINUTE, "holds times without their seconds"))
        return next((words for unit, words in parts if (theirs == ours // unit * unit).all()), "")
    if not rounded_alike(ours, theirs).all():
        return ""
    (digits, decimals), (own_digits, own_decimals) = digits_and_decimals(theirs), digits_and_decimals(ours)
    if digits < DIGITS_THAT_TELL:
        return f"is written with {digits} digits, the original needs {min(own_digits, DIGITS_THAT_TELL)}"
    return f"is written with {max(decimals, 0)} decimals, too few for its small values, the original has {own_decimals}"


def _by(ours: Floats, theirs: Floats, kind: Kind) -> str:
    """By how much values that differ do, (k,) and (k,); empty where that has no meaning."""
    both = ~(np.isnan(ours) | np.isnan(theirs))
    ours, theirs = ours[both], theirs[both]
    if kind.has_levels or not len(ours):
        return ""
    gaps = np.abs(theirs - ours)
    if kind is Kind.DATE:
        same = len(ours) > 1 and len(np.unique(theirs - ours)) == 1
        return (
            f", all by {_duration(gaps[0])}, as in another time zone" if same else f" by up to {_duration(gaps.max())}"
        )
    present = ours != 0
    if not present.any():
        return ""
    percent = 100 * np.max(gaps[present] / np.abs(ours[present]))
    return f" by up to {percent:{'.2g' if percent < 99.5 else ',.0f'}} % of it"


def _duration(seconds: float) -> str:
    units = ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes"))
    size, unit = next(((size, unit) for size, unit in units if seconds >= size), (1, "seconds"))
    return f"{seconds / size:,.3g} {unit}"
