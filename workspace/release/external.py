"""Released tables that another tool made: what their values are, which records were suppressed, and whose each record is.

Values of generalised variables are labels: intervals (``[20, 30)``, ``20-29``, ``<20``), groups (``{a, b}``), nodes of a
tree, ``*``. A ``*`` hides one cell, which is then generalised to the root. A record is suppressed where nothing is left that
could tell whose it is or that the release has changed: all its quasi-identifiers and all released variables are ``*``.
Record i of a table is that of original record i, unless an identifier links them, or the recipe says that they are shuffled.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sfumato.engine.anonymisation._partition import numbers_of_labels
from sfumato.engine.errors import BadInput
from sfumato.engine.microdata import Microdata, conform
from sfumato.engine.partition.equivalence_classes import equivalence_classes
from sfumato.engine.partition.hierarchies import ROOT, outside_of
from sfumato.engine.partition.pairs import quasi_identifiers
from sfumato.engine.recipe import Recipe
from sfumato.engine.schema import MissingPolicy, Schema

from ..ingest.files import Source, find_source, read_frame
from .unchanged import with_original_values

__all__ = ["read_given"]

SUPPRESSED = ROOT
Places = NDArray[np.intp]
Flags = NDArray[np.bool_]
UNPAIRED = (
    'keep the records in the original\'s order, name an identifier that both files have, [release] link = "id", or say '
    'order = "shuffled" there: what compares record with record is then not computed'
)
UNWRITTEN = (
    "write its values in full, or keep the records in the original's order, or name an identifier that both files have, "
    '[release] link = "id"'
)


def read_given(file: str, recipe: Recipe, data: Microdata) -> tuple[Source, Microdata]:
    """A released file as the recipe's ``[release]`` describes it, its records in the order of the original ``data``.

    Where records are linked and some were suppressed it has the class of each original record. Raises BadInput.
    """
    source = find_source(file, place="--released")
    place = f"--released {source.name}"
    try:
        frame, suppressed = _read(source, recipe, data)
        kept = frame[~suppressed]
        if not len(kept):
            raise BadInput(
                "release.generalised",
                f'every record is suppressed: all quasi-identifiers and released variables are "{SUPPRESSED}"',
            )
        table = conform(kept, _with_levels(recipe, data), _policy_of(recipe), recipe.origin)
    except BadInput as error:
        raise BadInput(f"{place}: {error.place}", f"{error.message}{_hint(error, recipe)}") from None
    table = replace(table, generalised=recipe.generalised, linked=recipe.linked)
    if recipe.linked:
        return source, _paired(table, suppressed, data, recipe, place)
    return source, with_original_values(table, None, data, recipe, place, UNWRITTEN)


def _read(source: Source, recipe: Recipe, data: Microdata) -> tuple[pd.DataFrame, Flags]:
    """The file's frame with labels as text, and which of its records (n,) are suppressed."""
    frame = read_frame(source, _with_levels(recipe, data))
    if not len(frame):
        raise BadInput("data.file", f'"{source.name}" has no records')
    labels = [name for name in recipe.generalised if name in frame.columns]
    frame = frame.assign(**{name: _labels(frame[name], recipe) for name in labels})
    return frame, _suppressed(frame, recipe)


def _suppressed(frame: pd.DataFrame, recipe: Recipe) -> Flags:
    """Which records (n,) have all their quasi-identifiers and released variables hidden; none unless the recipe says that
    values are labels or class means.
    """
    names = {*quasi_identifiers(recipe.schema, recipe.released), *recipe.released} & set(frame.columns)
    if not recipe.form.changed or not names:
        return np.zeros(len(frame), dtype=np.bool_)
    hidden = np.array([_hidden(frame[name], name, recipe) for name in sorted(names)])
    return np.asarray(hidden.all(axis=0))


def _hidden(values: pd.Series, name: str, recipe: Recipe) -> Flags:
    """Which cells (n,) show nothing: stars, and empty ones where missing is not a value."""
    if pd.api.types.is_numeric_dtype(values.dtype) and not values.hasnans:
        return np.zeros(len(values), dtype=np.bool_)
    shown = values if name in recipe.generalised else _labels(values, recipe)
    return np.asarray(shown.astype("object").eq(SUPPRESSED).fillna(value=False), dtype=np.bool_)


def _labels(values: pd.Series, recipe: Recipe) -> pd.Series:
    """Labels without blanks around them. Nothing but stars is one; so is an empty cell, where missing is not a value."""
    if pd.api.types.is_numeric_dtype(values.dtype) and not values.hasnans:
        return values
    text = values.astype("object").map(lambda v: v.strip() if isinstance(v, str) else v, na_action="ignore")
    text = text.map(lambda v: SUPPRESSED if isinstance(v, str) and re.fullmatch(r"\*+", v) else v, na_action="ignore")
    return text if _policy_of(recipe) is MissingPolicy.KEEP else text.where(text.notna() & (text != ""), SUPPRESSED)


def _policy_of(recipe: Recipe) -> MissingPolicy:
    """Released files may have missing values where the original may; records must not leave, which would undo the pairing."""
    return MissingPolicy.KEEP if recipe.data.missing is MissingPolicy.KEEP else MissingPolicy.REFUSE


def _with_levels(recipe: Recipe, data: Microdata) -> Schema:
    """The released schema with the original's levels written out, so that both tables code them alike."""
    return Schema(
        tuple(
            replace(variable, levels=tuple(data.column(variable.name).cat.categories))
            if variable.kind.has_levels and variable.name not in recipe.generalised
            else variable
            for variable in recipe.released_schema
        )
    )


def _hint(error: BadInput, recipe: Recipe) -> str:
    """How values of another form are declared, where some do not fit the kind of a released variable."""
    name = error.place.removeprefix("variables.").partition(".")[0]
    fits = "no value" in error.message or "write " in error.message or not error.place.startswith("variables.")
    if fits or name not in recipe.released or name in recipe.form.changed:
        return ""
    return (
        f'; where they are intervals, groups or "*", say [release] generalised = ["{name}"], where they are class means, '
        f'micro_aggregated = ["{name}"]'
    )


def _paired(table: Microdata, suppressed: Flags, data: Microdata, recipe: Recipe, place: str) -> Microdata:
    """The table in the original's order, with the classes where records are suppressed. Raises BadInput."""
    places = _linked(table, data, recipe, place) if recipe.form.link else _in_order(suppressed, data, place)
    order = np.argsort(places, kind="stable")
    table = replace(table, frame=table.frame.iloc[order].reset_index(drop=True))
    _check_labels(table, places[order], data, recipe, place)
    table = with_original_values(table, places[order], data, recipe, place, UNPAIRED)
    if len(table) == len(data):
        return table
    names = quasi_identifiers(recipe.schema, recipe.released)
    classes = np.full(len(data), -1, dtype=np.int64)
    classes[places[order]] = equivalence_classes([table.frame[name] for name in names], len(table))
    return replace(table, classes=classes)


def _in_order(suppressed: Flags, data: Microdata, place: str) -> Places:
    """The original record of each that is not suppressed, (k,), where the file keeps the original's order."""
    if len(suppressed) != len(data):
        left_out = f" after {data.dropped:,} with missing values were left out" if data.dropped else ""
        raise BadInput(
            place,
            f"{len(suppressed):,} records, the original has {len(data):,}{left_out}; record i of a release must be record "
            f"i of the original, so filter, sample and leave out alike in both; {UNPAIRED}",
        )
    return np.flatnonzero(~suppressed)


def _linked(table: Microdata, data: Microdata, recipe: Recipe, place: str) -> Places:
    """The original record that has each released one's identifier, (k,)."""
    link = recipe.form.link
    ours, theirs = data.numbers(link), table.numbers(link)
    for numbers, which in ((ours, "--original"), (theirs, place)):
        if repeated := len(numbers) - len(np.unique(numbers)):
            raise BadInput(f"{which}: {link}", f"{repeated:,} records repeat an identifier, so it links nothing")
    order = np.argsort(ours)
    found = np.minimum(np.searchsorted(ours[order], theirs), len(ours) - 1)
    if strange := int((ours[order][found] != theirs).sum()):
        raise BadInput(
            f"{place}: {link}", f"{strange:,} of {len(theirs):,} records have an identifier of no original record"
        )
    return order[found]


def _check_labels(table: Microdata, places: Places, data: Microdata, recipe: Recipe, place: str) -> None:
    """BadInput unless intervals and groups contain the values of the original records at ``places`` (k,)."""
    for variable in recipe.schema:
        name = variable.name
        if name not in recipe.generalised:
            continue
        levels = tuple(data.column(name).cat.categories) if variable.kind.has_levels else ()
        labels = table.frame[name].astype("object").to_numpy()
        outside = int(outside_of(labels, numbers_of_labels(data, name)[places], variable.kind, levels).sum())
        if outside:
            words = f"{outside:,} of {len(table):,} records do not contain the original value"
            raise BadInput(f"{place}: {name}", f"{words}; {UNPAIRED}")
