"""Tables for record linkage: people, people who resemble each other, releases with some values of others, and what is compared of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.matching.blocks import ComparisonBlocks
from sfumato.engine.matching.comparisons import VariableComparison, compare_variables
from sfumato.engine.matching.radius import Radius

KINDS = {"age": Kind.COUNT, "pay": Kind.CONTINUOUS, "hours_per_week": Kind.COUNT}
NEAR: dict[str, Any] = {"age": 1, "pay": "5%"}


def people(rng: np.random.Generator, n: int, blocks: int) -> pd.DataFrame:
    """Independent variables, in blocks of one ``zip``."""
    return pd.DataFrame(
        {
            "zip": rng.integers(0, blocks, n).astype(str),
            "job": rng.choice([*"abcde"], n, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
            "pet": rng.choice([*"xyz"], n, p=[0.6, 0.3, 0.1]),
            "age": rng.integers(0, 90, n),
            "pay": np.round(rng.lognormal(7, 0.5, n), 2),
        }
    )


def alike(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Six variables that mostly show one hidden level, so that different people agree in many at once."""
    hidden = rng.integers(0, 6, n)
    columns = {f"k{k}": np.where(rng.random(n) < 0.7, hidden, rng.integers(0, 6, n)).astype(str) for k in range(6)}
    return pd.DataFrame(columns)


def flipped(rng: np.random.Generator, rows: pd.DataFrame, share: float) -> pd.DataFrame:
    """A share of each variable's values are those of other records; blocks stay."""
    return rows.assign(
        **{
            name: np.where(rng.random(len(rows)) < share, rng.permutation(rows[name].to_numpy()), rows[name])
            for name in rows
            if name != "zip"
        }
    )


def prepared(
    rows: pd.DataFrame, released: pd.DataFrame, radius: dict[str, Any]
) -> tuple[tuple[VariableComparison, ...], ComparisonBlocks]:
    """The comparisons of all variables but ``zip``, by which pairs are blocked where it is there."""
    both = pd.concat([rows, released])
    schema = Schema(
        tuple(
            Variable(name, KINDS[name])
            if name in KINDS
            else Variable(name, Kind.CATEGORICAL, levels=tuple(sorted(map(str, both[name].dropna().unique()))))
            for name in map(str, rows)
        )
    )
    ours, theirs = (conform_to_schema(one, schema, MissingPolicy.KEEP) for one in (rows, released))
    names = [name for name in map(str, rows) if name != "zip"]
    comparisons = compare_variables(ours, theirs, names, {name: Radius.parse(one) for name, one in radius.items()}, 3.0)
    kept = compare_variables(ours, theirs, ["zip"] if "zip" in rows else [], {}, 3.0)
    return comparisons, ComparisonBlocks.from_keys(kept, (len(rows), len(released)))
