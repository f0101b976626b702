"""Intruder who has a file with errors and gaps, about some of the people and perhaps others outside the data.

    external = "register.csv"          # a CSV table beside the recipe, with a column for each variable that it has
    key = "person"                     # the identifier that links the file to the data
    coverage = 0.6                     # or a simulated file: this share of the people,
    errors = { MAR = 0.05 }            # and a share of the values of a variable replaced by another record's

The key distinguishes right matches from wrong ones; records are never matched by it. An empty cell is unknown to the
intruder and agrees with any value. A record of the file that is not in the data has no right match. A simulated file
has only people in the data, unlike a real one, and so errs on the safe side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Integers
from ..data.microdata import Microdata, conform_to_schema
from ..data.recoding import recode_data
from ..data.schema import Kind, MissingPolicy, Schema, Variable
from ..data.spelling import spell_as_whole
from ..errors import BadInput
from ..statistics.csv_lines import TableLines, is_list_of_lines
from ..wording import agreeing_word, count_noun
from .intruder import IntruderKnowledge, MatchTolerance, require_equal_values, window_with_unknown
from .matching import ExactKey, WindowKey
from .targets import sort_rows_by_value

FILE_NOUN = "the intruder's file"


@dataclass(frozen=True)
class IntruderFile(TableLines):
    """Lines of the intruder's CSV table, the header first."""

    noun = FILE_NOUN

    @classmethod
    def parse(cls, value: object) -> IntruderFile:
        """Read the lines of a CSV table from a recipe. Raises ValueError."""
        if isinstance(value, IntruderFile):
            return value
        if isinstance(value, str):
            raise ValueError(f'"{value}" is no table; a file is read from the folder of a recipe\'s file')
        if not is_list_of_lines(value):
            raise ValueError("must be a CSV file beside the recipe, or the lines of one")
        found = cls(tuple(value))
        found.check_lines()
        return found

    @property
    def written(self) -> list[str]:
        """Return the lines from which ``parse`` restores an equal file."""
        return list(self.lines)

    @property
    def told(self) -> str:
        """Return the size of the file and the start of its hash, for the rows of a result."""
        # No more than distinguishes it from another file.
        return f"{count_noun(self.records, 'record')}, SHA-256 {self.sha256[:16]}"

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(self.cells[0])

    def link_to_data(self, data: Microdata, names: Sequence[str], key: str, place: str) -> IntruderRecords:
        """Return the file's records with these variables, linked to the data by the key.

        Raises BadInput at ``place.external`` or ``place.key``.
        """
        heads, *rows = self.cells
        frame = pd.DataFrame(rows, columns=heads, dtype=object).replace(r"^\s*$", None, regex=True)
        found = {name: _file_column(frame, data, name, f"{place}.external") for name in names}
        schema = Schema(tuple(one.schema[name] for name, one in found.items()))
        file = Microdata(schema, pd.DataFrame({name: one.frame[name] for name, one in found.items()}))
        return IntruderRecords(file, _own_records_by_key(frame, data, key, place), gaps_unknown=True)


@dataclass(frozen=True, eq=False)
class IntruderRecords:
    """E records as the intruder has them, linked to the data.

    file: the records as a table
    own_record: record of the data of each, -1 for people outside the data, (E,)
    gaps_unknown: whether a missing value is unknown to the intruder; else the intruder knows it to be missing
    """

    file: Microdata
    own_record: Integers
    gaps_unknown: bool = False

    def __len__(self) -> int:
        return len(self.file)

    def keys_by_variable(
        self, released: Microdata, names: Sequence[str], radius: Mapping[str, MatchTolerance]
    ) -> dict[str, ExactKey | WindowKey]:
        """Return the key or window of each variable by name.

        Raises NotComputable like ``IntruderKnowledge.keys_and_windows``.
        """
        gaps = [name for name in names if self.gaps_unknown and self.file.missing_mask(name).any()]
        keys = IntruderKnowledge.from_variables(
            self.file, (name for name in names if name not in gaps), radius
        ).keys_by_variable(released)
        for name in gaps:
            near = radius.get(name)
            if near is None:
                require_equal_values(self.file, released, name)
            keys[name] = window_with_unknown(self.file, name, near, self.file.missing_mask(name))(released)
        return {name: keys[name] for name in names}


def simulate_file(
    data: Microdata,
    targets: NDArray[np.intp],
    coverage: float,
    errors: Mapping[str, float],
    rng: np.random.Generator,
) -> IntruderRecords:
    """Simulate a file with a share of the targets (N,) and a share of wrong values, taken from other records.

    The file has at least one record.
    """
    size = max(1, round(coverage * len(targets)))
    # Draws depend on the values of the data and not on the order of the file.
    ordered = sort_rows_by_value(data, targets)
    own = ordered[np.sort(rng.choice(len(ordered), size, replace=False))]
    everyone = sort_rows_by_value(data, np.arange(len(data)))
    place = np.empty(len(data), dtype=np.int64)
    place[everyone] = np.arange(len(data))
    columns = {}
    for name in sorted(errors):
        wrong = rng.choice(size, round(errors[name] * size), replace=False)
        source = own.copy()
        if len(data) > 1:
            step = rng.integers(1, len(data), len(wrong))
            source[wrong] = everyone[(place[own[wrong]] + step) % len(data)]
        columns[name] = data.frame[name].iloc[source].reset_index(drop=True)
    frame = data.frame.iloc[own].reset_index(drop=True).assign(**columns)
    return IntruderRecords(Microdata(data.schema, frame), own.astype(np.int64))


def _file_column(frame: pd.DataFrame, data: Microdata, name: str, place: str) -> Microdata:
    """Return one variable of the file, recoded like the data. Raises BadInput."""
    variable = replace(data.schema[name], bounds=None)
    if name not in frame:
        raise BadInput(place, f'{FILE_NOUN} has no column "{name}", which the intruder is to know')
    texts, rule = frame[name], data.recoding.get(name)
    if variable.kind.has_levels:
        if rule is not None:
            shown = {spell_as_whole(level): group for level, group in rule.group_by_level.items()}
            texts = texts.map(lambda text: None if text is None else shown.get(spell_as_whole(text.strip()), text))
        variable, texts = _add_file_levels(texts, data, variable, place)
    try:
        found = conform_to_schema(pd.DataFrame({name: texts}), Schema((variable,)), MissingPolicy.KEEP, place=place)
        return found if rule is None or not rule.is_of_numbers else recode_data(found, {name: rule})
    except BadInput as error:
        raise BadInput(error.place, f"of {FILE_NOUN}: {error.message}") from None


def _add_file_levels(texts: pd.Series, data: Microdata, variable: Variable, place: str) -> tuple[Variable, pd.Series]:
    """Return the variable with the file's own levels added, and the texts spelled like the data."""
    levels = [str(level) for level in data.column(variable.name).cat.categories]
    spelt = {spell_as_whole(level): level for level in levels}
    known = texts.map(lambda text: None if text is None else spelt.get(spell_as_whole(text.strip()), text.strip()))
    present = known.dropna()
    strange = sorted(set(present) - set(levels) - {str(code) for code in variable.missing})
    wrong = int(present.isin(strange).sum())
    if 2 * wrong > len(present):
        raise BadInput(
            f"{place}.{variable.name}",
            f"{wrong:,} of {len(present):,} values of {FILE_NOUN} are not levels of the data, so they match no record; write them as the data do",
        )
    # A third level makes a binary variable categorical.
    kind = Kind.CATEGORICAL if strange and variable.kind is Kind.BINARY else variable.kind
    return replace(variable, kind=kind, levels=(*levels, *strange)), known


def _own_records_by_key(frame: pd.DataFrame, data: Microdata, key: str, place: str) -> Integers:
    """Return the record of the data with each record's key, -1 for none.

    Raises BadInput if a key is missing or not unique, or none is in both tables.
    """
    if key not in frame:
        raise BadInput(f"{place}.key", f'{FILE_NOUN} has no column "{key}"')
    numeric = not data.schema[key].kind.has_levels
    ours = pd.Index(data.numbers(key) if numeric else data.column(key).astype(object).map(spell_as_whole, "ignore"))
    if numeric:
        theirs = pd.Index(_file_column(frame, data, key, f"{place}.key").numbers(key))
    else:
        theirs = pd.Index(frame[key].map(lambda text: None if text is None else spell_as_whole(text.strip())))
    for index, whose in ((ours, "the data"), (theirs, FILE_NOUN)):
        if lacking := int(np.count_nonzero(index.isna())):
            raise BadInput(
                f"{place}.key",
                f'{count_noun(lacking, "record")} of {whose} {agreeing_word(lacking, "has", "have")} no "{key}"',
            )
        if again := int(np.count_nonzero(index.duplicated(keep=False))):
            raise BadInput(
                f"{place}.key",
                f'{count_noun(again, "record")} of {whose} {agreeing_word(again, "shares its", "share their")} "{key}" with another',
            )
    found = ours.get_indexer(theirs)
    if (found < 0).all():
        raise BadInput(
            f"{place}.key", f'no record of {FILE_NOUN} has a "{key}" of the data, so that no match could be right'
        )
    return np.asarray(found, dtype=np.int64)
