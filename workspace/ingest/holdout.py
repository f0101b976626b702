"""Control records, which no release is made of, so that attacks on a release can be compared with attacks on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.engine.methods.run import Randomness
from sfumato.engine.recipe.data_source import DataSource
from sfumato.engine.wording import count_noun

from .raw_tables import RawTable
from .whole_units import check_units_not_split, choose_share_of_units, choose_units_of_records

HOLDOUT_KEY = "data.holdout"
CONTROL_FLAG_WORDS = (("0", "1"), ("no", "yes"), ("false", "true"), ("training", "control"))
"""Pairs of values of the hold-out column, in any case: the record is used for releases, the record is a control."""


def add_holdout_column(schema: Schema, data: DataSource) -> Schema:
    """Return the schema of the variables to read, with the column that marks controls where there is one."""
    if not isinstance(data.holdout, str):
        return schema
    return replace(schema, variables=(*schema, Variable(data.holdout, Kind.CATEGORICAL)), constraints=())


def check_holdout_column(raw: RawTable, schema: Schema, data: DataSource) -> None:
    """Raise BadInput where the column that marks control records is missing, or has no value for some record.

    The message quotes no value, and no other name of the file unless the file has the variables' names.
    """
    if not isinstance(data.holdout, str):
        return
    names = raw.names
    if data.holdout not in names:
        # in a file without a header the names are a record's values and must not be quoted
        near = near_miss_hint(data.holdout, names) if set(schema.names) <= set(names) else ""
        raise BadInput(
            HOLDOUT_KEY,
            f'the file has no column "{data.holdout}"{near}; name one that says which records are controls, or a share',
        )
    if names.count(data.holdout) > 1:
        raise BadInput(
            HOLDOUT_KEY,
            f'the file has {count_noun(names.count(data.holdout), "column")} "{data.holdout}"; rename all but one',
        )
    ((_, values),) = raw.iterate_columns([data.holdout])
    if lacking := int(values.isna().sum()):
        raise BadInput(
            HOLDOUT_KEY,
            f'{lacking:,} of {raw.records:,} records have no "{data.holdout}"; {_holdout_column_rule(data.holdout)}',
        )


def _holdout_column_rule(column: str) -> str:
    """Return the sentence that states which values the hold-out column may have."""
    pairs = ", ".join(" or ".join(pair) for pair in CONTROL_FLAG_WORDS)
    return f'"{column}" must say of each record whether it is a control: {pairs}'


def split_off_controls(
    everything: Microdata, schema: Schema, sha256: str, data: DataSource, seed: int, key: bytes
) -> Microdata:
    """Return the records for releases, with the held-out records as their ``controls``; both in file order.

    Each part is conformed as if the file had no other records. A share is drawn by seed and key, of the units where the
    table has some: a person held out for one year must not be in the data for another. Raises BadInput.
    """
    if isinstance(data.holdout, str):
        flags = _flags_from_column(everything, data.holdout)
        check_units_not_split(everything.units, flags, data.holdout, HOLDOUT_KEY)
    else:
        flags = _draw_holdout_flags(everything, sha256, data, seed, key)
    training = _conform_subset(everything, schema, ~flags, data)
    try:
        controls = _conform_subset(everything, schema, flags, data)
    except BadInput as error:
        raise BadInput(HOLDOUT_KEY, f"control records: {error}") from None
    return training.with_controls(controls)


def draw_screening_records(members: Microdata, sha256: str, data: DataSource, seed: int, key: bytes) -> Microdata:
    """Draw ``data.screen`` of the records for releases, by which a search screens plans.

    Where the file has controls, some of the drawn records become the controls, in the same share. The file's own
    controls are not returned. Raises BadInput where there are too few records.
    """
    assert data.screen is not None
    if data.screen > len(members):
        raise BadInput(
            "data.screen", f"{data.screen:,} of {count_noun(len(members), 'record')} cannot be looked at; ask for fewer"
        )
    # bound to file, filter and sizes, so that two draws are equal or independent
    streams = Randomness(seed, key, (sha256, data.where, f"{data.screen} of {len(members)} screened") if key else ())
    units = members.units
    if units is None:
        chosen = np.zeros(len(members), dtype=np.bool_)
        chosen[streams.generator("screen").choice(len(members), data.screen, replace=False)] = True
    else:
        chosen = choose_units_of_records(units, data.screen, streams.generator("screen", "units"), "data.screen")
    # a search must not see the controls, by which its finalists are judged
    few = _conform_subset(members.without_controls, members.schema, chosen, data)
    if members.controls is None:
        return few
    share = len(members.controls) / (len(members) + len(members.controls))
    if few.units is not None:
        if len(few.units) < 2:
            raise BadInput(
                "data.screen",
                "all records drawn to look at are of one unit, so that none can be held out; ask for more",
            )
        flags = choose_share_of_units(few.units, share, streams.generator("screen", "holdout", "units"))
    else:
        # at least one record on either side
        size = min(max(1, round(share * len(few))), len(few) - 1)
        flags = np.zeros(len(few), dtype=np.bool_)
        flags[streams.generator("screen", "holdout").choice(len(few), size, replace=False)] = True
    training, controls = (_conform_subset(few, members.schema, some, data) for some in (~flags, flags))
    return training.with_controls(controls)


def _conform_subset(everything: Microdata, schema: Schema, flags: NDArray[np.bool_], data: DataSource) -> Microdata:
    """Return the marked records, conformed as if the file had no others."""
    # conformed on its own, since levels that only the other part has would tell of its records
    found = conform_to_schema(everything.frame[flags].reset_index(drop=True), schema, data.missing, everything.origin)
    kinds = None if everything.kinds is None else everything.kinds[flags].reset_index(drop=True)
    return replace(
        found,
        dropped=everything.dropped,
        file_records=everything.file_records,
        missing_counts=everything.missing_counts,
        kinds=kinds,
        affected_group=everything.affected_group,
    )


def _flags_from_column(everything: Microdata, column: str) -> NDArray[np.bool_]:
    """Mark the controls (n,) by the hold-out column. Raises BadInput for other values than the known pairs."""
    said = everything.column(column).astype("str").str.strip().str.lower()
    found = set(said.unique())
    pair: Sequence[str] | None = next((pair for pair in CONTROL_FLAG_WORDS if found <= set(pair)), None)
    if pair is None:
        raise BadInput(HOLDOUT_KEY, _holdout_column_rule(column))
    flags = (said == pair[1]).to_numpy(dtype=np.bool_)
    if flags.all() or not flags.any():
        only = "a control" if flags.all() else "no control"
        raise BadInput(
            HOLDOUT_KEY, f'by "{column}" each of the {count_noun(len(flags), "record")} is {only}; there must be both'
        )
    return flags


def _draw_holdout_flags(
    everything: Microdata, sha256: str, data: DataSource, seed: int, key: bytes
) -> NDArray[np.bool_]:
    """Draw the controls (n,), a share of the records. Raises BadInput where none would be left for a release."""
    assert isinstance(data.holdout, int | float)
    records = len(everything)
    size = max(1, round(data.holdout * records))
    if size >= records:
        raise BadInput(
            HOLDOUT_KEY,
            f"{data.holdout:g} of {records:,} records leaves none to make a release of; hold out a smaller share",
        )
    # bound to the file, the filter, the sample and the sizes, so that two draws are equal or independent
    sample = "all" if data.sample is None else f"{data.sample} sampled"
    streams = Randomness(seed, key, (sha256, data.where, sample, f"{size} of {records} held out") if key else ())
    if everything.units is not None:
        if len(everything.units) < 2:
            raise BadInput(
                HOLDOUT_KEY, "all records are of one unit, so that none can be held out; leave the hold-out out"
            )
        return choose_share_of_units(everything.units, data.holdout, streams.generator("holdout", "units"))
    flags = np.zeros(records, dtype=np.bool_)
    flags[streams.generator("holdout").choice(records, size, replace=False)] = True
    return flags
