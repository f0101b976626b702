"""Two releases of one workspace: does their difference show the one value in which their data differ?

The attack uses no random number of ours. Where two runs have the same noise, it cancels, and what is left is exact: so it was
with one key and one seed for all runs of a workspace, and so it is with a public key.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from attacked import HOUSEHOLDS, KEY, LISTINGS, STOLEN, recipe_of
from attackers import Outside, correction, design, register_of
from scipy.stats import mannwhitneyu

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC, Randomness
from sfumato.engine.recipe.recipe import Recipe

M = 5
PERSONS = 8
FACTOR = 1.5


def edition(recipe: Recipe, data: Microdata, key: bytes) -> Outside:
    """What a run releases; the attack sorts its rows, so that their order is all one."""
    released = tuple(one.frame for one in execute_run(recipe, data, key=key).releases)
    return Outside(recipe, released, register_of(data, recipe))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ce.csv", "Airbnb"])
def test_a_corrected_value_is_not_found_from_two_editions(
    name: str, ce: pd.DataFrame, listings: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One value of the file was corrected, the recipe computed again and released again.

    The baseline: both editions with keys of their own, as from two workspaces.
    """
    known = ("UrbanRural", "Race", "Expenditure") if name == "ce.csv" else ("room_type", "neighbourhood_group", "price")
    frame = ce if name == "ce.csv" else listings.head(1500)
    recipe = recipe_of({k: v for k, v in (HOUSEHOLDS | LISTINGS).items() if k in known}, M, **LINEAR)
    keys = {UNBOUND: (KEY, KEY), PUBLIC_KEY: (PUBLIC, PUBLIC), SAME: (KEY, KEY), OTHER: (KEY, STOLEN)}
    errors: dict[str, list[float]] = {said: [] for said in keys}
    before = conform_to_schema(frame, recipe.schema)
    for said, (key, later) in keys.items():
        with monkeypatch.context() as patch:
            if said == UNBOUND:
                patch.setattr("sfumato.engine.execution.tasks.synthesis_streams", bound_to_nothing)
            one = edition(recipe, before, key)
            for person in range(0, len(frame), len(frame) // PERSONS + 1):
                factor = np.where(frame.index == person, FACTOR, 1.0)
                corrected = conform_to_schema(frame.assign(**{known[-1]: frame[known[-1]] * factor}), recipe.schema)
                truth = -np.log(FACTOR) * design(one)[person]
                found = correction(one, edition(recipe, corrected, later))
                errors[said].append(float(np.max(np.abs(found - truth))))
    print(
        f"\na corrected value, {name}, {len(errors[SAME])} persons: its logarithm by {np.log(FACTOR):.3f}, found with errors of"
    )
    for said, own in errors.items():
        print(f"  {said:<34} {min(own):.4f} to {max(own):.4f}")
    for said in (PUBLIC_KEY, UNBOUND):
        assert max(errors[said]) < 0.05 * np.log(FACTOR), "the negative controls: who it was, and by how much"
    assert min(errors[SAME]) > 2 * np.log(FACTOR), "nothing: errors exceed what was to be found"
    assert smaller(errors[SAME], errors[OTHER]) > 1e-3
    assert smaller(errors[PUBLIC_KEY], errors[OTHER]) < 1e-3, "the negative control"


def smaller(found: list[float], baseline: list[float]) -> float:
    """The p-value of a test whether errors are smaller than without the attack (Mann & Whitney 1947)."""
    return float(mannwhitneyu(found, baseline, alternative="less").pvalue)


LINEAR = {"method": "linear_regression", "transform": "log"}
PUBLIC_KEY, UNBOUND = "public key", "one key, streams not bound to data"
SAME, OTHER = "one key, as it is", "a key for each edition"


def bound_to_nothing(recipe: Recipe, confidential: Microdata, key: bytes) -> Randomness:
    """Keyed streams of seed and path alone."""
    return Randomness(recipe.seed, key)
