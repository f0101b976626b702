"""Public data to attack, and releases of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from attacked import HOUSEHOLDS, LISTINGS, Release, Released, compute_release

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.recipe.recipe import Recipe


@pytest.fixture
def releasing(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Compute a recipe in a new workspace with a key, and release it."""

    def make(recipe: Recipe, data: Microdata, key: bytes) -> Released:
        return compute_release(recipe, data, key, tmp_path_factory.mktemp("attacked"))

    return make


@pytest.fixture
def ce(public_data: Callable[[str], Path]) -> pd.DataFrame:
    """The 994 households of ce.csv."""
    return pd.read_csv(public_data("ce.csv"))[list(HOUSEHOLDS)]


@pytest.fixture
def all_listings(public_data: Callable[[str], Path]) -> pd.DataFrame:
    """Airbnb's listings with a price, shuffled."""
    found = pd.read_csv(public_data("AB_NYC_2019.csv")).query("price > 0").sample(frac=1, random_state=1)
    return found[list(LISTINGS)].reset_index(drop=True)


@pytest.fixture
def listings(all_listings: pd.DataFrame) -> pd.DataFrame:
    """Four thousand of them."""
    return all_listings.head(4000)
