"""Released tables that another tool made: reading, suppressed records, and matching with the original.

Values of generalised variables are labels: intervals (``[20, 30)``, ``20-29``, ``<20``), groups (``{a, b}``), nodes of
a tree, ``*``. A ``*`` hides one cell, which is then generalised to the root. A record is suppressed where all its
quasi-identifiers and all released variables are ``*``. Record i of a table is that of original record i, unless an
identifier links them, or the recipe says that they are shuffled. A column that is not released must be the original
one, written as ``sfumato.engine.data.spelling`` allows: then the table takes the original's own values; else the file
is refused with what differs.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sfumato.engine.anonymisation._partition import numbers_as_labelled
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.data.spelling import (
    LARGEST_ERROR,
    denote_same_number,
    digits_and_decimals,
    equal_when_rounded,
    nearest_values,
    unround_to_originals,
)
from sfumato.engine.data.units import code_unit_numbers
from sfumato.engine.errors import BadInput
from sfumato.engine.partition.equivalence_classes import equivalence_classes
from sfumato.engine.partition.hierarchies import ROOT, lies_outside_label
from sfumato.engine.partition.pairs import compared_quasi_identifiers
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.recipe.unit_stages import with_made_units
from sfumato.engine.wording import agreeing_word, count_noun

from ..ingest.file_formats import recognise_format
from ..ingest.files import read_table
from ..ingest.raw_tables import RawTable
from ..ingest.sources import SourceFile
from ..visible_text import plain_cell
from .forms import DatasetForm
from .tables import names_of_levels, written_column_names

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
Floats = NDArray[np.float64]


def replace_labels_by_codes(frame: pd.DataFrame, schema: Schema, place: str = "variables") -> pd.DataFrame:
    """Return a released table with codes in place of the labels of listed levels, and heads without apostrophes.

    ``schema`` lists all levels of the confidential data. Raises BadInput where a text may be a code or the label of
    another.
    """
    # A written release has an apostrophe before what a spreadsheet would take for a formula.
    heads = {plain_cell(name): name for name in schema.names if plain_cell(name) != name}
    frame = frame.rename(columns={head: name for head, name in heads.items() if name not in frame.columns})
    columns = {v.name: v for v in schema if v.levels and v.name in frame.columns}
    found = {name: _map_labels_to_codes(frame[name], variable, f"{place}.{name}") for name, variable in columns.items()}
    return frame.assign(**found)


def _codes_by_text(variable: Variable) -> dict[str, set[str]]:
    """Return the codes that each text which a release may write for a level can mean."""
    called = names_of_levels(variable, variable.levels)
    found: dict[str, set[str]] = {}
    for code in variable.levels:
        # A label that several codes have is written without a code where only one of them was released.
        names = {called.get(code, code), variable.labels.get(code) or code}
        for text in names | set(map(plain_cell, names)):
            found.setdefault(text, set()).add(code)
    return found


def _map_labels_to_codes(values: pd.Series, variable: Variable, place: str) -> pd.Series:
    """Return a column with codes in place of labels. Raises BadInput where a text can be both."""
    if pd.api.types.is_numeric_dtype(values.dtype):
        return values
    texts = values.astype("object")
    there, codes, called = set(map(str, texts.dropna().unique())), set(variable.levels), _codes_by_text(variable)
    as_labels = there <= called.keys()
    if there <= codes and not (as_labels and any(called[text] != {text} for text in there)):
        return values
    meant = {text: called[text] for text in there if text in called and (as_labels or text not in codes)}
    if there <= codes or any(len(found) > 1 for found in meant.values()):
        raise BadInput(
            place, "its levels may be codes, or labels that several codes have; write codes in place of labels"
        )
    return texts.map(lambda text: next(iter(meant.get(str(text), {text}))), na_action="ignore")


def read_external(source: SourceFile, recipe: Recipe, data: Microdata) -> Microdata:
    """Read a released file as the recipe's ``[release]`` describes it, with its records in the original's order.

    Where records are linked and some were suppressed it has the class of each original record. Raises BadInput.
    """
    place = f"--released {source.name}"
    try:
        frame, suppressed = _read_with_labels(source, recipe, data)
        kept = frame[~suppressed]
        if not len(kept):
            raise BadInput(
                "release.generalised",
                f'every record is suppressed: all quasi-identifiers and released variables are "{SUPPRESSED}"',
            )
        schema = _schema_with_levels(recipe, data)
        unit = schema.unit
        if unit is not None:
            has_keys = unit in kept.columns and not _are_numbers_of_original(kept[unit], schema[unit])
            if unit not in kept.columns or (has_keys and recipe.linked):
                # public files have it as a key at most, and linked records have the unit of the original's
                schema = schema.select_variables([name for name in schema.names if name != unit])
            elif has_keys:
                kept, schema = _number_units_anew(kept, unit), with_made_units(schema)
        table = conform_to_schema(kept, schema, _missing_policy(recipe), recipe.origin)
    except BadInput as error:
        raise BadInput(f"{place}: {error.place}", f"{error.message}{_form_hint(error, recipe)}") from None
    table = replace(table, generalised=recipe.generalised, linked=recipe.linked)
    if recipe.linked:
        return _pair_with_original(table, suppressed, data, recipe, place)
    return restore_original_values(table, None, data, recipe, place, UNWRITTEN)


def _are_numbers_of_original(values: pd.Series, unit: Variable) -> bool:
    """Return whether a file numbers units as the original does, and not by surrogate keys."""
    if unit.kind.has_levels:
        return set(map(str, values.dropna().unique())) <= set(unit.levels)
    return pd.api.types.is_numeric_dtype(values.dtype)


def _number_units_anew(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the frame with numbers from 1 in place of what names the units: a key tells only which rows are of one."""
    codes = code_unit_numbers(frame[name])
    return frame.assign(**{name: pd.Series(codes + 1, index=frame.index).where(codes >= 0)})


def _read_with_labels(source: SourceFile, recipe: Recipe, data: Microdata) -> tuple[pd.DataFrame, Flags]:
    """Return the file's frame with labels as text, and a mask (n,) of its suppressed records."""
    schema = _schema_with_levels(recipe, data)
    raw = read_table(source, schema)
    frame = raw.frame.rename(columns=_restored_names(raw, recognise_format(source.head).name, schema))
    frame = replace_labels_by_codes(frame, schema)
    if not len(frame):
        raise BadInput("data.file", f'"{source.name}" has no records')
    labels = [name for name in recipe.generalised if name in frame.columns]
    frame = frame.assign(**{name: _clean_labels(frame[name], recipe) for name in labels})
    return frame, _find_suppressed(frame, recipe)


def _restored_names(raw: RawTable, form: DatasetForm, schema: Schema) -> dict[str, str]:
    """Return the variable of each column of a released file that has another name, since its program refuses the own."""
    found = {}
    for name, written in written_column_names(form, schema.non_identifiers).items():
        about = raw.descriptions.get(written)
        # the title keeps a column of another variable, whose name is derived too, from being taken for this one
        title = schema[name].title or name
        # a program may have room for a part of it only
        if name != written and name not in raw.names and about is not None and title.startswith(about.title or "\n"):
            found[written] = name
    return found


def _find_suppressed(frame: pd.DataFrame, recipe: Recipe) -> Flags:
    """Return a mask (n,) of the records whose quasi-identifiers and released variables are all hidden."""
    names = {*compared_quasi_identifiers(recipe.schema, recipe.released), *recipe.released} & set(frame.columns)
    # Only where the recipe says that values are labels or class means: else a star is a value.
    if not recipe.form.changed_variables or not names:
        return np.zeros(len(frame), dtype=np.bool_)
    hidden = np.array([_find_hidden_cells(frame[name], name, recipe) for name in sorted(names)])
    return np.asarray(hidden.all(axis=0))


def _find_hidden_cells(values: pd.Series, name: str, recipe: Recipe) -> Flags:
    """Return a mask (n,) of the cells that show nothing: stars, and empty ones where missing is not a value."""
    if pd.api.types.is_numeric_dtype(values.dtype) and not values.hasnans:
        return np.zeros(len(values), dtype=np.bool_)
    shown = values if name in recipe.generalised else _clean_labels(values, recipe)
    return np.asarray(shown.astype("object").eq(SUPPRESSED).fillna(value=False), dtype=np.bool_)


def _clean_labels(values: pd.Series, recipe: Recipe) -> pd.Series:
    """Return labels without blanks around them.

    Several stars, or an empty cell where missing is not a value, become one star.
    """
    if pd.api.types.is_numeric_dtype(values.dtype) and not values.hasnans:
        return values
    text = values.astype("object").map(lambda v: v.strip() if isinstance(v, str) else v, na_action="ignore")
    text = text.map(lambda v: SUPPRESSED if isinstance(v, str) and re.fullmatch(r"\*+", v) else v, na_action="ignore")
    return (
        text if _missing_policy(recipe) is MissingPolicy.KEEP else text.where(text.notna() & (text != ""), SUPPRESSED)
    )


def _missing_policy(recipe: Recipe) -> MissingPolicy:
    """Return the policy for missing values of released files: kept where the original may have them, else refused."""
    # Leaving records out would undo the pairing with the original's records.
    return MissingPolicy.KEEP if recipe.data.missing is MissingPolicy.KEEP else MissingPolicy.REFUSE


def _schema_with_levels(recipe: Recipe, data: Microdata) -> Schema:
    """Return the released schema with the original's levels written out."""
    return Schema(
        tuple(
            # Both tables must code their levels alike to be compared.
            replace(variable, levels=tuple(data.column(variable.name).cat.categories))
            if variable.kind.has_levels and variable.name not in recipe.generalised
            else variable
            for variable in recipe.released_schema
        )
    )


def _form_hint(error: BadInput, recipe: Recipe) -> str:
    """Return how to declare values of another form, where values do not fit a released variable's kind.

    Empty where they fit.
    """
    name = error.place.removeprefix("variables.").partition(".")[0]
    fits = "no value" in error.message or "write " in error.message or not error.place.startswith("variables.")
    if fits or name not in recipe.released or name in recipe.form.changed_variables:
        return ""
    return (
        f'; where they are intervals, groups or "*", say [release] generalised = ["{name}"], where they are class means, '
        f'micro_aggregated = ["{name}"]'
    )


def _pair_with_original(table: Microdata, suppressed: Flags, data: Microdata, recipe: Recipe, place: str) -> Microdata:
    """Return the table in the original's order, with the classes of records where some are suppressed. Raises BadInput.

    .
    """
    places = (
        _places_by_identifier(table, data, recipe, place)
        if recipe.form.link
        else _places_by_order(suppressed, data, place)
    )
    order = np.argsort(places, kind="stable")
    table = replace(table, frame=table.frame.iloc[order].reset_index(drop=True))
    _check_labels(table, places[order], data, recipe, place)
    table = restore_original_values(table, places[order], data, recipe, place, UNPAIRED)
    if len(table) == len(data):
        return table
    names = compared_quasi_identifiers(recipe.schema, recipe.released)
    # -1 marks original records that were suppressed and so are in no class.
    classes = np.full(len(data), -1, dtype=np.int64)
    classes[places[order]] = equivalence_classes([table.frame[name] for name in names], len(table))
    return replace(table, classes=classes)


def _places_by_order(suppressed: Flags, data: Microdata, place: str) -> Places:
    """Return the positions of the original records that are not suppressed, (k,), for a file in the original's order.

    .
    """
    if len(suppressed) != len(data):
        left_out = f" after {data.dropped:,} with missing values were left out" if data.dropped else ""
        raise BadInput(
            place,
            f"{count_noun(len(suppressed), 'record')}, the original has {len(data):,}{left_out}; record i of a release must be record "
            f"i of the original, so filter, sample and leave out alike in both; {UNPAIRED}",
        )
    return np.flatnonzero(~suppressed)


def _places_by_identifier(table: Microdata, data: Microdata, recipe: Recipe, place: str) -> Places:
    """Return the position of the original record with the same identifier as each released one, (k,). Raises BadInput.

    .
    """
    link = recipe.form.link
    ours, theirs = data.numbers(link), table.numbers(link)
    for numbers, which in ((ours, "--original"), (theirs, place)):
        if repeated := len(numbers) - len(np.unique(numbers)):
            raise BadInput(
                f"{which}: {link}",
                f"{count_noun(repeated, 'record')} {agreeing_word(repeated, 'repeats', 'repeat')} an identifier, so it links nothing",
            )
    order = np.argsort(ours)
    # An identifier above all of ours would be found behind the last.
    found = np.minimum(np.searchsorted(ours[order], theirs), len(ours) - 1)
    if strange := int((ours[order][found] != theirs).sum()):
        raise BadInput(
            f"{place}: {link}", f"{strange:,} of {len(theirs):,} records have an identifier of no original record"
        )
    return order[found]


def _check_labels(table: Microdata, places: Places, data: Microdata, recipe: Recipe, place: str) -> None:
    """Raise BadInput unless intervals and groups contain the values of the original records at ``places``, (k,)."""
    for variable in recipe.schema:
        name = variable.name
        if name not in recipe.generalised:
            continue
        levels = tuple(data.column(name).cat.categories) if variable.kind.has_levels else ()
        labels = table.frame[name].astype("object").to_numpy()
        outside = int(lies_outside_label(labels, numbers_as_labelled(data, name)[places], variable.kind, levels).sum())
        if outside:
            words = f"{outside:,} of {len(table):,} records do not contain the original value"
            raise BadInput(f"{place}: {name}", f"{words}; {UNPAIRED}")


DAY, HOUR, MINUTE = 86_400, 3_600, 60
DIGITS_THAT_TELL = 1 - round(np.log10(LARGEST_ERROR))


def restore_original_values(
    table: Microdata, places: Places | None, data: Microdata, recipe: Recipe, place: str, advice: str
) -> Microdata:
    """Return the released table (k records) with the original's own values wherever the file writes these.

    ``places`` (k,) are the positions of the original records, None where unknown. ``advice`` ends a message on records
    that differ. Raises BadInput where a column is not released and yet not the original's.
    """
    # A measure of risk finds a record by equal values. A known column that was read back from fewer digits would equal
    # nothing, and the risk would look like 0.
    columns: dict[str, pd.Series] = {}
    schema = table.schema
    for variable in recipe.schema:
        name = variable.name
        if name not in table.schema:
            # the number of a unit, which only a file whose records are linked says again
            schema = _schema_with_levels(recipe, data)
            own = data.frame[name]
            columns[name] = (
                own.iloc[:0].reindex(range(len(table))) if places is None else own.iloc[places].reset_index(drop=True)
            )
            continue
        if name in recipe.generalised or table.schema[name].kind is not variable.kind:
            continue
        if variable.role is Role.UNIT and places is None:
            continue  # new numbers, or keys: they tell which rows are of one unit and nothing else
        ours, theirs = (
            _as_comparable_numbers(data.frame[name], variable.kind),
            _as_comparable_numbers(table.frame[name], variable.kind),
        )
        if name in recipe.released:
            if variable.kind is Kind.CONTINUOUS:
                columns[name] = pd.Series(_restore_released_numbers(ours, theirs, places), name=name)
            continue
        try:
            if places is not None:
                _check_same_values(ours[places], theirs, variable.kind)
                columns[name] = data.frame[name].iloc[places].reset_index(drop=True)
            else:
                values = _match_to_any_record(ours, theirs, variable.kind)
                if variable.kind in (Kind.COUNT, Kind.CONTINUOUS):
                    columns[name] = pd.Series(values, name=name).astype(table.frame[name].dtype)
        except _ColumnMismatch as error:
            way_out = f'if it is, name "{name}" under [release] released; {advice}'
            raise BadInput(f"{place}: {name}", f"{error}, and it is not released; {way_out}") from None
    return replace(table, schema=schema, frame=table.frame.assign(**columns)[list(schema.names)])


class _ColumnMismatch(Exception):
    """Difference of an unreleased column from the original's; the message quotes no value of either."""


def _as_comparable_numbers(column: pd.Series, kind: Kind) -> Floats:
    """Return values (n,) as numbers that are equal where the values are: codes of levels, seconds of dates.

    NaN where missing.
    """
    if kind.has_levels:
        numbers = column.cat.codes.to_numpy()
    elif kind is Kind.DATE:
        numbers = column.to_numpy(dtype="datetime64[s]").astype(np.int64)
    else:
        return np.asarray(column, dtype=np.float64)
    return np.where(column.isna(), np.nan, numbers.astype(np.float64))


def _check_same_values(ours: Floats, theirs: Floats, kind: Kind) -> None:
    """Raise _ColumnMismatch unless each value (k,) equals that of its own record, (k,)."""
    numeric = kind in (Kind.COUNT, Kind.CONTINUOUS)
    same = (
        denote_same_number(ours, theirs)
        if numeric
        else np.asarray((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    )
    if not same.all():
        coarser = _coarser_text(ours, theirs, kind)
        found = f"{int((~same).sum()):,} of {len(theirs):,} records differ from the original"
        raise _ColumnMismatch(coarser or f"{found}{_difference_text(ours[~same], theirs[~same], kind)}")


def _match_to_any_record(ours: Floats, theirs: Floats, kind: Kind) -> Floats:
    """Return the original value that each released one denotes, (k,), from all the originals, (n,).

    Raises _ColumnMismatch where none or several do.
    """
    numeric = kind in (Kind.COUNT, Kind.CONTINUOUS)
    found, candidates = (
        unround_to_originals(ours, theirs) if numeric else (theirs, np.isin(theirs, ours).astype(np.int64))
    )
    there = ~np.isnan(theirs)
    candidates = np.where(there, candidates, int(np.isnan(ours).any()))
    if unknown := int((candidates == 0).sum()):
        written = theirs[there] if (candidates[there] == 0).any() and not kind.has_levels else np.empty(0)
        coarser = _coarser_text(_nearest_original(ours, written, kind), written, kind) if len(written) else ""
        raise _ColumnMismatch(
            coarser or f"{unknown:,} of {len(theirs):,} records have a value that no original record has"
        )
    if several := int((candidates > 1).sum()):
        raise _ColumnMismatch(
            f"{several:,} of {len(theirs):,} records could each be one of several original values, which are alike as far as "
            "their digits go"
        )
    return found


def _restore_released_numbers(ours: Floats, theirs: Floats, places: Places | None) -> Floats:
    """Return released numbers (k,): the record's own original value where the file writes that, else the nearest."""
    found, candidates = unround_to_originals(ours, theirs)
    values = np.where(candidates > 0, found, theirs)
    return values if places is None else np.where(denote_same_number(ours[places], theirs), ours[places], values)


def _nearest_original(ours: Floats, theirs: Floats, kind: Kind) -> Floats:
    """Return the original value nearest to each released one, (k,), none missing; for dates the first of the day."""
    values = np.unique(ours[~np.isnan(ours)])
    if kind is Kind.DATE:
        return np.asarray(values[np.searchsorted(values // DAY, theirs // DAY).clip(max=len(values) - 1)])
    return nearest_values(values, theirs)


def _coarser_text(ours: Floats, theirs: Floats, kind: Kind) -> str:
    """Return, in words, how the released values (k,) are the original ones with less precision.

    Empty where they are not.
    """
    if kind.has_levels or np.isnan(ours).any() or np.isnan(theirs).any():
        return ""
    if kind is Kind.DATE:
        parts = ((DAY, "holds dates without their time of day"), (MINUTE, "holds times without their seconds"))
        return next((words for unit, words in parts if (theirs == ours // unit * unit).all()), "")
    if not equal_when_rounded(ours, theirs).all():
        return ""
    (digits, decimals), (own_digits, own_decimals) = digits_and_decimals(theirs), digits_and_decimals(ours)
    if digits < DIGITS_THAT_TELL:
        return f"is written with {digits} digits, the original needs {min(own_digits, DIGITS_THAT_TELL)}"
    return f"is written with {max(decimals, 0)} decimals, too few for its small values, the original has {own_decimals}"


def _difference_text(ours: Floats, theirs: Floats, kind: Kind) -> str:
    """Return, in words, by how much differing values, (k,) and (k,), differ; empty where that has no meaning."""
    both = ~(np.isnan(ours) | np.isnan(theirs))
    ours, theirs = ours[both], theirs[both]
    if kind.has_levels or not len(ours):
        return ""
    gaps = np.abs(theirs - ours)
    if kind is Kind.DATE:
        # One constant shift of all dates is typical of a time zone.
        same = len(ours) > 1 and len(np.unique(theirs - ours)) == 1
        return (
            f", all by {_duration_text(gaps[0])}, as in another time zone"
            if same
            else f" by up to {_duration_text(gaps.max())}"
        )
    present = ours != 0
    if not present.any():
        return ""
    percent = 100 * np.max(gaps[present] / np.abs(ours[present]))
    return f" by up to {percent:{'.2g' if percent < 99.5 else ',.0f'}} % of it"


def _duration_text(seconds: float) -> str:
    """Return a duration in its largest unit, in words."""
    units = ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes"))
    size, unit = next(((size, unit) for size, unit in units if seconds >= size), (1, "seconds"))
    return f"{seconds / size:,.3g} {unit}"
