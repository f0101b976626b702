"""The recipe that draws each variable of a public table by a tree from those before it, for benchmarks."""

from __future__ import annotations

from typing import Any

import pandas as pd
from public_data import PUBLIC_DATA

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.recipe.recipe import Recipe

FEW_VALUES = 8
"""Numbers of at most so many different values are levels."""


def recipe_of_trees(table: str, **sections: Any) -> tuple[Recipe, Microdata]:
    """Return the recipe, with further ``sections``, and the table of the public data that it is for."""
    frame = pd.read_csv(PUBLIC_DATA / f"{table}.csv", skipinitialspace=True)
    names, numbers = list(frame), set(frame.select_dtypes("number"))
    recipe = Recipe.from_table(
        {
            "data": {"missing": "keep"},
            "variables": {
                name: {"kind": "count" if name in numbers and frame[name].nunique() > FEW_VALUES else "categorical"}
                for name in names
            },
            "release": {"m": 1, "seed": 1},
            "synthesis": [
                {"target": name, "method": "cart", "predictors": names[:place]} for place, name in enumerate(names)
            ],
            **sections,
        }
    )
    return recipe, conform_to_schema(frame, recipe.schema, MissingPolicy.KEEP)
