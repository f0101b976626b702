"""Columns of a release that join its rows: surrogate keys in place of identifiers, and new numbers of drawn units.

A surrogate key is an HMAC of the identifier's value with the workspace's secret key. It is equal in every release that
has it in the same scope, and unrelated to the order of the records. Without the key nobody can compute it, not even
from a list of all identifiers, which would undo a plain hash (Article 29 Working Party, Opinion 05/2014, section 4.1).
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyarrow as pa

from sfumato.engine.data.schema import Kind, Variable
from sfumato.engine.methods.release_form import ReleaseForm
from sfumato.engine.recipe.recipe import Recipe

from ..errors import NotReleased

KEY_BYTES = 10
"""Bytes of a key: 80 bits, so that two of 10^7 people have the same key with probability 4e-11."""
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
