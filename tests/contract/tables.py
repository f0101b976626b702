"""Small tables that oracles, relations and edge cases work on: hypothesis draws tiny ones, a seed makes larger ones."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.data.schema import Kind, Origin, Role, Variable

SYNTHESISED = ("days", "income")

# Eight variables, all kinds and roles but the identifier, and the few values that tiny tables have of each.
SCHEMA = schema_of(
    Variable("region", Kind.CATEGORICAL, Role.QUASI_IDENTIFIER, levels=("north", "south", "west")),
    Variable("sex", Kind.BINARY, Role.QUASI_IDENTIFIER, levels=("0", "1")),
    Variable("size", Kind.ORDINAL, levels=("small", "medium", "large")),
    "visits: count quasi_identifier",
    "days: count sensitive",
    "income: continuous sensitive",
    Variable("illness", Kind.BINARY, Role.SENSITIVE, levels=("no", "yes")),
    "joined: date",
)
VALUES: dict[str, list[Any]] = {
    "region": ["north", "south", "west"],
    "sex": ["0", "1"],
    "size": ["small", "medium", "large"],
    "visits": [0, 1, 2, 5],
    "days": [0, 1, 3, 4, 9],
    "income": [10.0, 10.5, 11.0, 20.25, 40.0],
    "illness": ["no", "yes"],
    "joined": [datetime.datetime(2020, 1, day) for day in (1, 2, 15)],
}
Record = tuple[Any, ...]


def microdata(records: Sequence[Record], origin: Origin = "confidential", *, linked: bool = True) -> Microdata:
    """A table of these records, one value a variable of ``SCHEMA`` in its order; None is missing."""
    columns = {
        variable.name: column_of([record[place] for record in records], variable)
        for place, variable in enumerate(SCHEMA)
    }
    return Microdata(SCHEMA, pd.DataFrame(columns), origin, linked=linked)


def column_of(values: Sequence[Any], variable: Variable) -> pd.Series:
    """A column as ``sfumato.engine.data.microdata.conform_to_schema`` makes it, a hundred times as fast."""
    if variable.kind.has_levels:
        codes, levels = coding(variable.levels, variable.kind is Kind.ORDINAL)
        return pd.Series(pd.Categorical.from_codes([codes.get(value, -1) for value in values], dtype=levels))
    if variable.kind is Kind.DATE:
        return pd.Series(np.array(values, dtype="datetime64[s]"))
    numbers = np.array(values, dtype=np.float64)
    return pd.Series(numbers.astype(np.int64) if variable.kind is Kind.COUNT and None not in values else numbers)


@functools.cache
def coding(levels: tuple[str, ...], ordered: bool) -> tuple[dict[str, int], pd.CategoricalDtype]:
    """The code of each level, and the dtype of its variable."""
    return {level: code for code, level in enumerate(levels)}, pd.CategoricalDtype(list(levels), ordered)


def records(smallest: int, largest: int, *, missing: bool = False) -> st.SearchStrategy[list[Record]]:
    """Records of few different values; the first has all of them where others may lack some."""
    whole = st.tuples(*(st.sampled_from(values) for values in VALUES.values()))
    if not missing:
        return st.lists(whole, min_size=smallest, max_size=largest)
    some = st.tuples(*(st.sampled_from([*values, None]) for values in VALUES.values()))
    return st.tuples(whole, st.lists(some, min_size=smallest - 1, max_size=largest - 1)).map(lambda p: [p[0], *p[1]])


RADIUS = {"days": 1, "income": "5%"}
"""How near the numbers of a guess must be, where a measure asks for it."""


def resynthesised(confidential: Sequence[Record], drawn: Sequence[Record]) -> list[Record]:
    """The confidential records with the synthesised values of the drawn ones."""
    places = [SCHEMA.names.index(name) for name in SYNTHESISED]
    return [
        tuple(other if place in places else own for place, (own, other) in enumerate(zip(ours, theirs, strict=True)))
        for ours, theirs in zip(confidential, drawn, strict=True)
    ]


def larger(n: int, seed: int) -> list[Record]:
    """Records whose numbers hardly ever repeat and of which nothing separates two tables."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        visits = int(rng.poisson(3))
        found.append(
            (
                str(rng.choice(VALUES["region"])),
                str(rng.choice(VALUES["sex"])),
                str(rng.choice(VALUES["size"])),
                visits,
                int(rng.poisson(4 + visits)),
                float(np.exp(3 + 0.1 * visits + 0.5 * rng.normal())),
                str(rng.choice(VALUES["illness"], p=[0.6, 0.4])),
                datetime.datetime(2020, 1, 1) + datetime.timedelta(days=int(rng.integers(400))),
            )
        )
    return found
