"""Names of people that repeat are asked about; names of rows without a name are left out; codes have names that say so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.schema import Kind
from sfumato.workspace.ingest.columns import ColumnProfile
from sfumato.workspace.ingest.identifiers import is_named_as_code
from sfumato.workspace.service.importing import ImportSelection, preview_file

RNG = np.random.default_rng(8)
N = 400


def columns_of(folder: Path, table: pd.DataFrame, *, index: bool = False) -> dict[str, ColumnProfile]:
    path = folder / "table.csv"
    table.to_csv(path, index=index)
    return {c.variable.name: c for c in preview_file(str(path), {}, ImportSelection()).columns}


PEOPLE = {
    "doctors": [f"{given} {family}" for given in ("Maria", "Björn", "Sven", "Nils") for family in ("Abel", "Ek", "Dahl")],
    "family first": [f"{family}, {given}" for given in ("Anna", "Aoife", "Paul", "Zofia") for family in ("Roth", "Wu", "Li")],
    "capitals": ["ODELLI LUCIA", "ERRA NICOLA", "FONZI PAOLO", *(f"{family} SRL" for family in "ABCDEFGHIJ")],
    "titles": [f"Mrs {family}" for family in ("Abel", "Ek", "Dahl", "Roth", "Wu", "Li", "Ito", "Oh", "Yi", "Bo")],
}  # fmt: skip
OTHERS = {
    "states": ["Bayern", "Hessen", "Sachsen", "Berlin", "Bremen", "Hamburg", "Saarland", "Thüringen", "San Marino", "Wien", "Tirol"],
    "saints": ["San Jose", *(f"San {place}" for place in ("Diego", "Mateo", "Remo", "Marino", "Rafael", "Bernardino", "Benito", "Clemente", "Dimas", "Gabriel"))],
    "jobs": ["nurse", "baker", "cook", "driver", "clerk", "farmer", "miner", "judge", "smith", "actor", "tailor"],
    "sentences": [f"the patient said that Maria and John had come at {hour} in the evening" for hour in range(12)],
}  # fmt: skip


@pytest.mark.parametrize("names", PEOPLE.values(), ids=PEOPLE)
def test_names_of_people_that_repeat_are_asked_about(tmp_path: Path, names: list[str]) -> None:
    found = columns_of(tmp_path, pd.DataFrame({"seen_by": RNG.choice(names, N), "n": RNG.integers(0, 90, N)}))[
        "seen_by"
    ]
    assert "--leave-out seen_by" in found.question


@pytest.mark.parametrize("names", OTHERS.values(), ids=OTHERS)
def test_names_of_places_and_of_jobs_are_not(tmp_path: Path, names: list[str]) -> None:
    found = columns_of(tmp_path, pd.DataFrame({"where": RNG.choice(names, N), "n": RNG.integers(0, 90, N)}))["where"]
    assert not found.question


def test_a_first_column_without_a_name_in_which_all_differ_names_the_rows(tmp_path: Path) -> None:
    """However far apart their numbers lie: a table that was drawn from a larger one keeps its row names."""
    numbers = np.sort(RNG.choice(10**6, N, replace=False))
    table = pd.DataFrame({"pay": np.exp(RNG.normal(8, 1, N)).round(2), "sex": RNG.choice(["f", "m"], N)}, numbers)
    assert not columns_of(tmp_path, table, index=True)["column_1"].is_included
    few = table.head(8)
    assert not columns_of(tmp_path, few, index=True)["column_1"].is_included
    levels = table.set_axis(numbers // 10**5)
    assert columns_of(tmp_path, levels, index=True)["column_1"].is_included
    decimals = table.set_axis(numbers + 0.5)
    assert columns_of(tmp_path, decimals, index=True)["column_1"].is_included


def test_a_first_column_of_a_file_without_a_line_of_names_is_judged_as_any_other(tmp_path: Path) -> None:
    path = tmp_path / "bare.csv"
    pay = np.unique(np.exp(RNG.normal(8, 1, 2 * N)).astype(int))
    path.write_text("".join(f"{value},{value % 7},x\n" for value in RNG.permutation(pay)[:N]))
    found = preview_file(str(path), {}, ImportSelection()).columns[0]
    assert (found.variable.name, found.is_included) == ("column_1", True)


def test_numbers_in_ascending_order_of_which_all_differ_are_asked_about(tmp_path: Path) -> None:
    numbers = np.sort(RNG.choice(10**6, N, replace=False))
    table = pd.DataFrame({"age": RNG.integers(18, 90, N), "pidnum": numbers, "pay": RNG.permutation(numbers)})
    found = columns_of(tmp_path, table)
    assert "--leave-out pidnum" in found["pidnum"].question
    assert not found["pay"].question


@pytest.mark.parametrize("name", ["Postal Code", "cowcode2", "supply_category", "state", "Codice Comune", "class"])
def test_numbers_of_several_lengths_are_codes_where_the_name_says_so(tmp_path: Path, name: str) -> None:
    assert is_named_as_code(name)
    table = pd.DataFrame({"age": RNG.integers(18, 90, N), name: RNG.permutation(np.arange(2, 2 * N))[:N] // 5})
    found = columns_of(tmp_path, table)[name]
    assert (found.variable.kind, f"--as {name}=count" in found.question) == (Kind.CATEGORICAL, True)


@pytest.mark.parametrize("name", ["county population", "class size", "region sales", "decoded", "stated", "classic"])
def test_words_around_such_names_say_nothing(name: str) -> None:
    assert not is_named_as_code(name)


@pytest.mark.parametrize("kind", ["texts", "numbers"])
def test_numbers_of_people_that_repeat_often_are_asked_about(tmp_path: Path, kind: str) -> None:
    people = [f"p{i:02}" for i in range(30)] if kind == "texts" else list(range(100, 130))
    table = pd.DataFrame({"id": RNG.choice(people, 3_000), "visits": RNG.integers(0, 60, 3_000)})
    found = columns_of(tmp_path, table)
    assert "--leave-out id" in found["id"].question
    assert not found["visits"].question


def test_texts_that_make_levels_of_numbers_are_asked_about(tmp_path: Path) -> None:
    """Below the limit of a measurement stands the limit, in more records than signs of no value have."""
    values = [f"{value:.3f}" if value > 0.05 else f"<{limit}" for value, limit in zip(RNG.gamma(1, 0.1, N), RNG.choice([0.05, 0.051], N), strict=True)]  # fmt: skip
    found = columns_of(tmp_path, pd.DataFrame({"lead": values, "age": RNG.integers(18, 90, N)}))["lead"]
    assert found.variable.kind is Kind.CATEGORICAL
    assert '2 values such as "<0.05"' in found.question
    assert "--missing" in found.question
