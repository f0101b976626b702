"""Where every unit has one record, the number of units is one of records: each shipped recipe gives the same release, byte for byte.

The recipes as they ship, on all their records, are compared by tests/benchmarks/units_of_one_record.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from one_record_a_unit import differences, files_of, mask_what_differs, release_with_numbers, roles_of

from sfumato.workspace.recipes import find_recipe, shipped_recipes

FEW = ["release.m=1", "data.sample=300"]
QUICK = ("adult", "anes96", "ce")
"""Recipes of seconds; the others are studies."""
WHOLE = ("adult-calibration", "randhie")
"""Recipes that need all records: one asks for samples of 40,000, a regression of the other does not converge on few."""


def compared(name: str, folder: Path, public_data: Callable[[str], Path]) -> tuple[Path, Path]:
    """Return the releases of a recipe on few records, with numbers as an identifier and as units."""
    file = str(find_recipe(name).table["data"]["file"])
    path = "" if file.startswith("statsmodels:") else str(public_data(file))
    settings = FEW[:1] if name in WHOLE else FEW
    one, other = (release_with_numbers(name, role, folder, path, settings) for role in roles_of(name))
    return one, other


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_a_quick_recipe_gives_the_same_bytes(name: str, tmp_path: Path, public_data: Callable[[str], Path]) -> None:
    one, other = compared(name, tmp_path, public_data)
    assert list(differences(one, other)) == []
    assert {"internal/results.json", "internal/report.html", "public/dataset-SYNTHETIC-01.csv"} <= {*files_of(one)}


@pytest.mark.study
@pytest.mark.parametrize("name", sorted({recipe.name for recipe in shipped_recipes()} - set(QUICK)))
def test_a_recipe_gives_the_same_bytes(name: str, tmp_path: Path, public_data: Callable[[str], Path]) -> None:
    assert list(differences(*compared(name, tmp_path, public_data))) == []


@pytest.mark.slow
def test_two_records_a_unit_give_others(tmp_path: Path) -> None:
    """The control: what the comparison leaves out hides neither other datasets nor other numbers."""
    one = release_with_numbers("anes96", "identifier", tmp_path, settings=FEW)
    two = release_with_numbers("anes96", "unit", tmp_path, settings=FEW, records=2)
    found = "\n".join(differences(one, two))
    assert "public/dataset-SYNTHETIC-01.csv" in found
    assert "internal/results.json" in found


def test_what_is_left_out_of_the_comparison_is_no_number_of_a_result() -> None:
    rng = np.random.default_rng(1)
    text = "\n".join(f' "value": {value}, "unit": "identifier"' for value in rng.normal(size=50)).encode()
    assert mask_what_differs(text) == text
