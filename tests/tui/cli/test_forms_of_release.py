"""A release in each form is scored by the recipe that made it, and by default goes out in the form that the data came in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from sfumato.workspace.ingest.file_formats import format_by_name
from sfumato.workspace.ingest.files import find_source, read_table
from sfumato.workspace.release.forms import writable_forms

pytestmark = pytest.mark.slow

Command = Callable[..., int]
RECIPE = """
title = "Wages"
[data]
file = "wages.sav"
missing = "keep"
[variables]
person = { kind = "categorical", role = "identifier" }
sex = { kind = "binary", role = "quasi_identifier", labels = { 1 = "woman", 2 = "=man" } }
region = { kind = "categorical", role = "quasi_identifier", labels = { 1 = "North", 2 = "South", 3 = "1" } }
day = { kind = "date" }
wage = { kind = "count", role = "sensitive", missing = [-9, -8], labels = { -9 = "refused", -8 = "not asked" } }
[release]
m = 2
seed = 4
[[synthesis]]
target = "region"
method = "cart"
predictors = ["sex"]
[[synthesis]]
target = "wage"
method = "cart"
predictors = ["sex", "region"]
[[measure]]
method = "utility.ecdf"
"""


def survey(path: Path, records: int = 120) -> None:
    """An SPSS file with a number of its own for each person, labels, dates, and two kinds of missing value."""
    rng = np.random.default_rng(2)
    wage = rng.integers(10, 60, records).astype(float)
    wage[:12], wage[12:20] = -9, -8
    frame = pd.DataFrame(
        {
            "person": [f"P{i}" for i in range(records)],
            "sex": rng.integers(1, 3, records).astype(float),
            "region": rng.integers(1, 4, records).astype(float),
            "day": (pd.Timestamp("2024-01-01") - pd.Timestamp("1582-10-14")).total_seconds()
            + 86_400.0 * rng.integers(0, 30, records),
            "wage": wage,
        }
    )
    pyreadstat.write_sav(
        frame,
        path,
        variable_value_labels={"sex": {1.0: "woman", 2.0: "=man"}, "wage": {-9.0: "refused", -8.0: "not asked"}},
        missing_ranges={"wage": [-9, -8]},
        variable_format={"day": "SDATE10"},
    )


@pytest.mark.usefixtures("in_process")
def test_a_release_in_every_form_is_scored_by_its_own_recipe(
    home: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    survey(home / "wages.sav")
    (home / "wages.toml").write_text(RECIPE, "utf-8")
    assert sfumato("run", "wages.toml", "--workspace", "ws", "--quiet", "--jobs", "1") == 0
    given: list[str] = []
    for form in writable_forms():
        assert (
            sfumato(
                "release", "1", "--workspace", "ws", "-o", form, "--reason", "released for a test", "--format", form
            )
            == 0
        )
        files = sorted((home / form / "public").glob(f"dataset-SYNTHETIC-*.{format_by_name(form).suffix}"))
        assert len(files) == 2
        given += ["--released", str(files[0])]
    options = ("--workspace", "scores", "--quiet", "--jobs", "1", "--json", "scores.json")
    assert sfumato("evaluate", "wages.toml", "--original", "wages.sav", *given, *options) == 0
    rows = json.loads((home / "scores.json").read_text("utf-8"))["rows"]
    scored = {
        draw: [(r["measure"], r["target"], r["value"]) for r in rows if r["draw"] == draw] for draw in range(1, 8)
    }
    assert scored[1]
    assert all(found == scored[1] for found in scored.values()), "in whatever form, it is the same release"
    assert sfumato("release", "1", "--workspace", "ws", "-o", "plain", "--reason", "released for a test") == 0
    released = read_table(find_source(str(home / "plain/public/dataset-SYNTHETIC-01.sav")))
    assert list(released.frame.columns) == ["sex", "region", "day", "wage"]
    # 8 people were not asked: fewer than the smallest cell, so that this kind is not named
    assert set(released.descriptions["wage"].missing) == {-9}
    assert released.descriptions["wage"].labels == {"-9": "refused"}
    assert released.descriptions["sex"].labels == {"1": "woman", "2": "=man"}
    assert released.frame["wage"].isin([-9, -8]).sum() > 0
    assert "refused" in (home / "plain/public/codebook.csv").read_text("utf-8")
    capsys.readouterr()


@pytest.mark.usefixtures("in_process")
def test_a_changed_file_is_not_taken_for_one_that_was_released(
    home: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    survey(home / "wages.sav")
    (home / "wages.toml").write_text(RECIPE, "utf-8")
    assert sfumato("run", "wages.toml", "--workspace", "ws", "--quiet", "--jobs", "1") == 0
    assert (
        sfumato("release", "1", "--workspace", "ws", "-o", "out", "--reason", "released for a test", "--format", "csv")
        == 0
    )
    file = home / "out/public/dataset-SYNTHETIC-01.csv"
    file.write_text(file.read_text("utf-8").rstrip("\n").rpartition("\n")[0] + "\n", "utf-8")
    given = ("--original", "wages.sav", "--released", str(file))
    assert sfumato("evaluate", "wages.toml", *given, "--workspace", "scores") == 2
    assert "sfumato: " in capsys.readouterr().err


NAMES = """
title = "Wages"
[data]
file = "wages.csv"
[variables]
"person no." = { kind = "categorical", role = "identifier" }
with = { kind = "categorical", role = "quasi_identifier" }
"monthly wage" = { kind = "count", role = "sensitive", title = "Wage in a month" }
monthly_wage = { kind = "count" }
[release]
m = 1
seed = 4
[[synthesis]]
target = "monthly wage"
method = "cart"
predictors = ["with"]
[[measure]]
method = "utility.ecdf"
"""


@pytest.mark.usefixtures("in_process")
def test_names_that_a_program_refuses_are_derived_and_found_again(
    home: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "person no.": [f"P{i}" for i in range(80)],
            "with": rng.choice(["tram", "bus", "car"], 80),
            "monthly wage": rng.integers(1000, 4000, 80),
            "monthly_wage": rng.integers(1, 7, 80),
        }
    )
    frame.to_csv(home / "wages.csv", index=False)
    (home / "wages.toml").write_text(NAMES, "utf-8")
    assert sfumato("run", "wages.toml", "--workspace", "ws", "--quiet", "--jobs", "1") == 0
    derived = {
        "spss": ["with_", "monthly_wage_2", "monthly_wage"],
        "stata": ["with_", "monthly_wage_2", "monthly_wage"],
        "sas-xpt": ["with", "monthly_wage_2", "monthly_wage"],
        "csv": ["with", "monthly wage", "monthly_wage"],
    }
    given: list[str] = []
    for form, names in derived.items():
        options = ("--workspace", "ws", "-o", form, "--reason", "released for a test", "--format", form)
        assert sfumato("release", "1", *options) == 0
        text = f"other names, as {form} needs them: "
        renamed = ", ".join(
            f"{name} ({other})" for name, other in zip(derived["csv"], names, strict=True) if name != other
        )
        assert (f"{text}{renamed}\n" if renamed else "left out, identifiers") in capsys.readouterr().out
        (file,) = (home / form / "public").glob("dataset-SYNTHETIC-*")
        given += ["--released", str(file)]
        book = pd.read_csv(home / form / "public/codebook.csv", keep_default_na=False)
        told = {line.variable: line.name_in_datasets or line.variable for line in book.itertuples()}
        assert list(told.items()) == list(zip(["with", "monthly wage", "monthly_wage"], names, strict=True))
        assert all(name in (home / form / "public/codebook-ddi.xml").read_text("utf-8") for name in names)
    released, about = pyreadstat.read_sav(next((home / "spss/public").glob("*.sav")))
    assert list(released.columns) == derived["spss"]
    assert about.column_names_to_labels == {"with_": "with", "monthly_wage_2": "Wage in a month", "monthly_wage": None}
    options = ("--workspace", "scores", "--quiet", "--jobs", "1", "--json", "scores.json")
    assert sfumato("evaluate", "wages.toml", "--original", "wages.csv", *given, *options) == 0
    rows = json.loads((home / "scores.json").read_text("utf-8"))["rows"]
    scored = [[(r["measure"], r["target"], r["value"]) for r in rows if r["draw"] == draw] for draw in range(1, 5)]
    assert scored[0]
    assert all(found == scored[0] for found in scored), "under whatever names, it is the same release"
    capsys.readouterr()
