"""Texts that break the type of a column: signs of offices for no value, and the star of a suppressed cell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.schema import Kind
from sfumato.workspace.ingest.columns import ColumnProfile
from sfumato.workspace.service.importing import ImportSelection, import_file, preview_file

N = 300


def profile_cells(folder: Path, cells: list[str], selection: ImportSelection | None = None) -> ColumnProfile:
    """Return how a column of these cells would be read, beside one of levels."""
    path = folder / "office.csv"
    rows = [f"{cell},{'ab'[i % 2]}" for i, cell in enumerate(cells)]
    path.write_text("\n".join(["rate,part", *rows, ""]), "utf-8")
    return preview_file(str(path), {}, selection or ImportSelection()).columns[0]


def numbers_with(signs: list[str], share: float, *, decimals: int = 1) -> list[str]:
    """Draw numbers of which a share is one of the signs."""
    rng = np.random.default_rng(len(signs))
    cells = [f"{value:.{decimals}f}" for value in rng.gamma(4, 20, N)]
    for place in rng.choice(N, round(share * N), replace=False):
        cells[place] = signs[place % len(signs)]
    return cells


@pytest.mark.parametrize(
    "signs",
    [[":"], [".."], ["c", "x"], ["<5"], ["*", ":", "..", "<5", "c"], ["nicht erhoben"], ["(s)", "z"]],
    ids=" ".join,
)
@pytest.mark.parametrize("decimals", [0, 1])
def test_a_few_short_texts_among_numbers_are_asked_about_and_the_rest_are_numbers(
    tmp_path: Path, signs: list[str], decimals: int
) -> None:
    found = profile_cells(tmp_path, numbers_with(signs, 0.08, decimals=decimals))
    assert found.variable.kind is (Kind.CONTINUOUS if decimals else Kind.COUNT)
    assert set(found.signs) == set(signs) == set(found.variable.missing)
    assert found.missing == 24
    assert "--as rate=categorical" in found.question
    assert all(f'"{sign}"' in found.question for sign in signs)


def test_the_owner_may_say_that_the_signs_are_levels(tmp_path: Path) -> None:
    cells = numbers_with([":", "<5"], 0.1)
    found = profile_cells(tmp_path, cells, ImportSelection(kinds=("rate=categorical",)))
    assert (found.variable.kind, found.variable.missing, found.question) == (Kind.CATEGORICAL, (), "")


def test_an_import_stores_the_numbers_and_which_sign_stood_where_there_was_none(tmp_path: Path) -> None:
    cells = numbers_with([":", "<5"], 0.1)
    profile_cells(tmp_path, cells)
    result = import_file(tmp_path / "ws", str(tmp_path / "office.csv"), "")
    assert 'missing = ["' in result.recipe
    (stored,) = (tmp_path / "ws").rglob("*.parquet")
    kept = pd.to_numeric(pd.Series(cells), errors="coerce").dropna()
    assert sorted(pd.read_parquet(stored)["rate"].dropna()) == pytest.approx(sorted(kept))


LEVELS = {
    "levels of words and numbers": ["1", "2", "3", "many"] * 75,
    "half are words": ["12.5", "none"] * 150,
    "many different words": [f"{i}.5" if i % 10 else f"note {i}" for i in range(N)],
    "long words": [f"{i}.5" if i % 10 else "no answer was given by the household" for i in range(N)],
    "codes with zeros": [f"0{i}" if i % 10 else "x" for i in range(N)],
    "dates": [f"2024-01-{1 + i % 28:02d}" for i in range(N)],
}


@pytest.mark.parametrize("cells", LEVELS.values(), ids=LEVELS)
def test_texts_that_do_not_break_a_type_stay_levels(tmp_path: Path, cells: list[str]) -> None:
    assert not profile_cells(tmp_path, cells).signs


def test_a_star_among_levels_is_a_suppressed_cell_and_asked_about(tmp_path: Path) -> None:
    found = profile_cells(tmp_path, ["*", "<50", ">=50", "<50", ">=50"] * 40)
    assert found.variable.missing == ("*",)
    assert found.missing == 40
    assert '"*" is taken for a missing value;' in found.question
    assert profile_cells(tmp_path, ["**", "<50", ">=50"] * 40).variable.missing == ()


def test_a_long_column_is_read_by_its_distinct_texts_alike(tmp_path: Path) -> None:
    few, many = numbers_with([":"], 0.1), numbers_with([":"], 0.1) * 300
    short, long = profile_cells(tmp_path, few), profile_cells(tmp_path, many)
    assert short.signs == long.signs == (":",)
    assert long.missing == 300 * short.missing
    assert short.variable == long.variable
