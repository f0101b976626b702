"""Few small whole numbers: counts fall from 0 or 1 on, codes need not; a name or a title may say which it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.schema import Kind
from sfumato.workspace.ingest.columns import profile_columns
from sfumato.workspace.ingest.few_numbers import says_quantity
from sfumato.workspace.ingest.raw_tables import ColumnDescription, RawTable
from sfumato.workspace.service.importing import ImportSelection, preview_file

N = 3_000


def read_as(name: str, values: np.ndarray, title: str = "") -> tuple[Kind, str]:
    """Return how an import reads a column of numbers: its kind, and its question."""
    raw = RawTable.from_frame(pd.DataFrame({name: values}), {name: ColumnDescription(title=title)})
    (column,) = profile_columns(raw)
    return column.variable.kind, column.question


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mean", [1.0, 3.0])
def test_a_geometric_count_is_a_number_whatever_its_name(seed: int, mean: float) -> None:
    values = np.minimum(np.random.default_rng(seed).geometric(1 / (1 + mean), N), 18)
    assert read_as("v7", values - 1) == (Kind.COUNT, "")


@pytest.mark.parametrize("seed", range(20))
def test_codes_of_levels_of_any_frequency_stay_levels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for k in (3, 5, 7, 9):
        frequencies = rng.permutation(rng.dirichlet(np.full(k, 3.0)))
        frequencies[[0, -1]] = frequencies[[-1, 0]] if frequencies[0] > frequencies[-1] else frequencies[[0, -1]]
        assert read_as("v7", rng.choice(k, N, p=frequencies) + 1) == (Kind.CATEGORICAL, "")


def test_four_levels_from_0_that_fall_are_asked_about_and_stay_levels() -> None:
    kind, question = read_as("v7", np.repeat([0, 1, 2, 3], [1500, 800, 500, 200]))
    assert kind is Kind.CATEGORICAL
    assert "--as v7=count" in question


def test_numbers_of_many_values_that_do_not_number_levels_are_asked_about() -> None:
    kind, question = read_as("v7", np.random.default_rng(0).integers(40, 55, N))
    assert (kind, "--as v7=count" in question) == (Kind.CATEGORICAL, True)
    assert read_as("v7", np.random.default_rng(0).integers(1, 16, N)) == (Kind.CATEGORICAL, "")


@pytest.mark.parametrize(("name", "title"), [
    ("AGE", "AGE AT ENTRY"), ("age80", ""), ("v7", "mother's education, years"), ("v7", "No of cigarettes a day"),
    ("quantity", ""), ("number_of_teeth", ""), ("v7", "Number of teeth"),
])  # fmt: skip
def test_a_name_or_a_title_says_that_numbers_are_counted(name: str, title: str) -> None:
    assert says_quantity(name, title)
    assert read_as(name, np.random.default_rng(0).integers(30, 42, N), title) == (Kind.COUNT, "")


@pytest.mark.parametrize(("name", "title"), [
    ("agegroup", ""), ("age group", ""), ("v7", "Age in classes"), ("years_cat", ""), ("dayofwk", ""), ("page", ""),
    ("room_number", ""), ("v7", "number of children (grouped: code)"), ("region", "region of birth"),
])  # fmt: skip
def test_a_grouped_quantity_and_other_words_are_none(name: str, title: str) -> None:
    assert not says_quantity(name, title)
    assert read_as(name, np.random.default_rng(0).integers(1, 6, N), title)[0] is Kind.CATEGORICAL


def test_the_answer_is_the_same_in_a_long_file(tmp_path: Path) -> None:
    """A long column is examined by its distinct values."""
    rng, path = np.random.default_rng(3), tmp_path / "long.csv"
    table = {"v1": np.minimum(rng.geometric(0.4, 70_000), 15) - 1, "v2": rng.integers(1, 6, 70_000)}
    pd.DataFrame(table).to_csv(path, index=False)
    kinds = {c.variable.name: c.variable.kind for c in preview_file(str(path), {}, ImportSelection()).columns}
    assert kinds == {"v1": Kind.COUNT, "v2": Kind.CATEGORICAL}


def test_numbers_below_0_are_no_counts() -> None:
    assert read_as("score", np.random.default_rng(1).integers(-3, 4, N)) == (Kind.CONTINUOUS, "")
