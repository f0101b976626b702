"""Whole households that come back: small leaves give members away, large ones hardly more than strangers.

An intruder knows region, tenure, relation, sex and age of everybody in a household of three or more, and looks for the
same household in the release. Controls are households of another sample.
"""

from __future__ import annotations

import census
import numpy as np
import pandas as pd
import pytest

from sfumato.engine.adversary.cells import unit_keys
from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.units import Units
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe

KNOWN = ["region", "tenure", "relation", "sex", "age"]
HOUSEHOLDS = 20_000


def large_households(table: pd.DataFrame) -> set[int]:
    """The keys of the households of three or more people."""
    units = Units.from_codes(table["household"].to_numpy())
    rows = table[KNOWN].astype(str).agg("|".join, axis=1)
    keys = unit_keys(pd.util.hash_pandas_object(rows, index=False).to_numpy(), units)
    return set(keys[units.sizes > 2].tolist())


@pytest.mark.slow
def test_small_leaves_copy_households() -> None:
    table = census.draw_census(HOUSEHOLDS, 1)
    members, controls = large_households(table), large_households(census.draw_census(HOUSEHOLDS, 2))
    excess = {}
    for leaf in (5, 37):
        recipe = Recipe.from_table(census.census_recipe(leaf))
        data = conform_to_schema(table, recipe.schema)
        fits = [fit_model(recipe, item, data, key=PUBLIC) for item in range(len(recipe.synthesis))]
        released = large_households(draw_dataset(recipe, 1, data, fits, key=PUBLIC).frame)
        shares = [len(known & released) / len(known) for known in (members, controls)]
        error = np.sqrt(sum(share / len(known) for share, known in zip(shares, (members, controls), strict=True)))
        excess[leaf] = (shares[0] - shares[1]) / error
    assert excess[5] > 4
    assert excess[37] < 2
