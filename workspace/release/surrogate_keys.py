"""Columns of a release that join its rows: surrogate keys in place of identifiers, and new numbers of drawn units.

A surrogate key is an HMAC of the identifier's value with the workspace's secret key. It is equal in every release that
has it in the same scope, and unrelated to the order of the records. Without the key nobody can compute it, not even
from a list of all identifiers, which would undo a plain hash (Article 29 Working Party, Opinion 05/2014, section 4.1).
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engine.data.schema import Kind, Variable
from sfumato.engine.methods.release_form import ReleaseForm
from sfumato.engine.recipe.recipe import Recipe

from ..errors import NotReleased

KEY_BYTES = 10
"""Bytes of a key: 80 bits, so that two of 10^7 people have the same key with probability 4e-11."""
KEY_TEXT = KEY_BYTES * 8 // 5
"""Letters and digits of a key."""
TITLE = "surrogate key: joins the released tables that have it"
NUMBER_TITLE = "new number of the unit, equal in all its records"


def surrogate_key_variable(name: str) -> Variable:
    """Return the declaration of a column of surrogate keys."""
    return Variable(name, Kind.CATEGORICAL, title=TITLE)


def key_variables(recipe: Recipe) -> tuple[Variable, ...]:
    """Return the declarations of the columns that join rows: surrogate keys, and the number of drawn units."""
    keys = map(surrogate_key_variable, recipe.form.surrogate_keys)
    made = (Variable(name, Kind.COUNT, title=NUMBER_TITLE) for name in recipe.renumbered_units)
    return (*keys, *made)


def key_columns(table: pa.Table, recipe: Recipe, key: bytes) -> Mapping[str, pd.Series]:
    """Return the columns of a stored table (n rows) that join rows, by name, (n,).

    ``key`` is the workspace's. Raises NotReleased where it is public and surrogate keys are requested.
    """
    made = {name: table.column(name).to_pandas() for name in recipe.renumbered_units}
    return {**surrogate_key_columns(table, recipe.form, key), **made}


@dataclass(frozen=True)
class KeysByPart:
    """Columns that join the rows of a long table, as numbers of 64 bits while its rows are shuffled.

    A surrogate key of 80 bits is two of them: its first eight bytes, and the others, -1 where there is no key.

    recipe: the recipe of the run
    key: the workspace's
    """

    recipe: Recipe
    key: bytes = field(repr=False)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Return the declarations of the columns."""
        return key_variables(self.recipe)

    def add_numbers(self, frame: pd.DataFrame, part: pa.Table) -> pd.DataFrame:
        """Return some rows with the numbers of their surrogate keys before them. Raises NotReleased."""
        found: dict[str, NDArray[np.int64]] = {}
        for name, texts in surrogate_key_columns(part, self.recipe.form, self.key).items():
            found |= dict(zip(_names_of_numbers(name), _numbers_of_keys(texts), strict=True))
        return pd.concat([pd.DataFrame(found, index=frame.index), frame], axis=1) if found else frame

    def restore_texts(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return some rows with the surrogate keys in place of their numbers."""
        found: dict[str, pd.Series] = {}
        for name in self.recipe.form.surrogate_keys:
            numbers = [frame[one].to_numpy() for one in _names_of_numbers(name)]
            # a type of its own, so that a block without any key is one of texts too
            found[name] = pd.Series(_keys_of_numbers(*numbers), index=frame.index, dtype="str")
        others = frame.iloc[:, 2 * len(found) :]
        return pd.concat([pd.DataFrame(found, index=frame.index), others], axis=1) if found else frame


def _names_of_numbers(name: str) -> tuple[str, str]:
    """Return the names of the numbers of a surrogate key, which no variable has."""
    return f"{name}\0first", f"{name}\0last"


def _numbers_of_keys(texts: pd.Series) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of surrogate keys (n,), None where there is none."""
    found = np.zeros(len(texts), dtype=np.int64), np.full(len(texts), -1, dtype=np.int64)
    there = texts.notna().to_numpy()
    content = base64.b32decode("".join(texts[there]).upper())
    rows = np.frombuffer(content, dtype=[("first", ">i8"), ("last", ">u2")])
    found[0][there], found[1][there] = rows["first"], rows["last"]
    return found


def _keys_of_numbers(first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return the surrogate keys of numbers (n,)."""
    there = last >= 0
    rows = np.empty(int(there.sum()), dtype=[("first", ">i8"), ("last", ">u2")])
    rows["first"], rows["last"] = first[there], last[there]
    texts = base64.b32encode(rows.tobytes()).decode().lower()
    found = np.full(len(first), None, dtype=object)
    found[there] = [texts[at : at + KEY_TEXT] for at in range(0, len(texts), KEY_TEXT)]
    return found


def surrogate_key_columns(table: pa.Table, form: ReleaseForm, key: bytes) -> Mapping[str, pd.Series]:
    """Return the surrogate keys of a stored table (n rows) by name of the identifier, (n,); None where it is missing.

    ``key`` is the workspace's. Raises NotReleased where it is public and keys are requested.
    """
    if form.surrogate_keys and not key:
        raise NotReleased(
            "the workspace's key is public, so anybody could compute the surrogate keys; make the run in a workspace with a key of its own"
        )
    return {
        name: _hash_identifiers(table.column(name), name, form.surrogate_scope, key) for name in form.surrogate_keys
    }


def _hash_identifiers(column: pa.ChunkedArray, name: str, scope: str, key: bytes) -> pd.Series:
    """Return the key of each value of an identifier; equal values have equal keys."""
    # Two steps, so that no name, scope and value run together into the same bytes as others.
    column_key = hmac.digest(key, b"sfumato surrogate key " + repr((scope, name)).encode(), "sha256")
    values = column.to_pandas()
    codes, distinct = pd.factorize(values)
    keys = np.array([_key_text(hmac.digest(column_key, _value_text(v).encode(), "sha256")) for v in distinct], object)
    found = np.full(len(values), None, dtype=object)
    found[codes >= 0] = keys[codes[codes >= 0]]
    return pd.Series(found, dtype="object")


def _key_text(digest: bytes) -> str:
    """Return the first bytes of a digest as 16 letters and digits."""
    return base64.b32encode(digest[:KEY_BYTES]).decode().lower()


def _value_text(value: object) -> str:
    """Return an identifier as text; the whole number 7 is the same person as a stored 7.0."""
    # Not folded as the ledger folds identifiers to recognise people: 007 and 7, or ab and AB, may be two persons here.
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
