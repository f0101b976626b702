"""Dates as an office writes them, from the import to the release: drawn as dates, within bounds, few of them real."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("in_process")]

Command = Callable[..., int]
N = 800
FORMS = {"born": "%d.%m.%Y", "admitted": "%m/%d/%Y %I:%M %p", "seen": "%Y%m%d"}
BORN = """
[[synthesis]]
target = "born"
method = "cart"
predictors = ["sex"]
"""
STEPS = """
smoothing = true
[[synthesis]]
target = "admitted"
method = "cart"
predictors = ["sex", "born"]
smoothing = true
[[synthesis]]
target = "seen"
method = "cart"
predictors = ["admitted"]
smoothing = true
"""


@pytest.fixture
def patients(home: Path) -> pd.DataFrame:
    """Dates of birth that are nearly all different, and admissions of which a third were put on the first of January."""
    rng = np.random.default_rng(7)
    born = pd.Timestamp("1925-01-01") + pd.to_timedelta(rng.integers(0, 30_000, N), unit="D")
    admitted = pd.Series(pd.Timestamp("2018-01-01") + pd.to_timedelta(rng.integers(0, 1500 * 1440, N), unit="m"))
    heaped = rng.random(N) < 1 / 3
    admitted = admitted.mask(heaped, pd.to_datetime(admitted.dt.year.astype(str) + "-01-01"))
    table = pd.DataFrame({"born": born, "admitted": admitted, "seen": admitted.dt.normalize() + pd.Timedelta(days=30)})
    written = pd.DataFrame({name: table[name].dt.strftime(form) for name, form in FORMS.items()})
    written["admitted"] = table["admitted"].map(lambda t: f"{t.month}/{t.day}/{t.year} {t.hour % 12 or 12}:{t:%M %p}")
    written.assign(sex=rng.choice(list("FM"), N)).to_csv("patients.csv", index=False)
    return table


def release_dates(sfumato: Command, home: Path, steps: str, *options: str) -> pd.DataFrame:
    """The cells of the released dataset, as text."""
    assert sfumato("import", "patients.csv", "--workspace", "ws", "--recipe", "r.toml", *options) == 0
    text = (home / "r.toml").read_text("utf-8").replace("m = 5", "m = 1")
    text = text.replace('format = "dd.mm.yyyy"', 'format = "dd.mm.yyyy", bounds = ["1925-01-01", "2007-12-31"]')
    (home / "r.toml").write_text(text + BORN + steps, "utf-8")
    assert sfumato("run", "r.toml", "--workspace", "ws", "--quiet", "--jobs", "1") == 0
    assert sfumato("release", "1", "--workspace", "ws", "-o", "out", "--reason", "a trial of dates here") == 0
    return pd.read_csv("out/public/dataset-SYNTHETIC-01.csv", dtype=str)


def test_drawn_dates_are_dates_within_bounds_and_mostly_those_of_nobody(
    patients: pd.DataFrame, home: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    found = release_dates(sfumato, home, STEPS)
    dates = {name: pd.to_datetime(found[name], format=form) for name, form in FORMS.items()}
    # in the file's own form, of which strptime takes other zeros too
    assert found["born"].str.fullmatch(r"\d\d\.\d\d\.\d{4}").all()
    assert found["admitted"].str.fullmatch(r"[1-9]\d?/[1-9]\d?/\d{4} [1-9]\d?:\d\d [AP]M").all()
    assert found["seen"].str.fullmatch(r"\d{8}").all()
    assert dates["born"].between("1925-01-01", "2007-12-31").all()
    assert dates["born"].isin(patients["born"]).mean() < 0.1
    # what many records have, the first of a year, keeps its share; the other admissions are nobody's
    heaped = patients["admitted"].dt.strftime("%m%d%H%M") == "01010000"
    drawn = dates["admitted"].dt.strftime("%m%d%H%M") == "01010000"
    assert abs(drawn.mean() - heaped.mean()) < 0.06
    assert dates["admitted"][~drawn].isin(patients["admitted"]).mean() < 0.1
    assert "dates are written dd.mm.yyyy" in (home / "out/public/croissant.json").read_text("utf-8")
    assert 'formatname="dd.mm.yyyy"' in (home / "out/public/codebook-ddi.xml").read_text("utf-8")
    capsys.readouterr()


def test_as_levels_every_date_would_be_that_of_a_person(
    patients: pd.DataFrame, home: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """The negative control: what came out when dates of offices were read as levels."""
    found = release_dates(sfumato, home, "", "--as", "born=categorical")
    assert pd.to_datetime(found["born"], format=FORMS["born"]).isin(patients["born"]).all()
    capsys.readouterr()


def test_bounds_of_dates_are_days(home: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]) -> None:
    days = pd.date_range("2020-01-01", periods=60)
    pd.DataFrame({"day": days.strftime("%d.%m.%Y"), "x": range(60)}).to_csv("days.csv", index=False)
    recipe = """
[data]
file = "days.csv"
[variables]
day = { kind = "date", format = "dd.mm.yyyy", bounds = ["2020-01-02", 2020-02-29] }
[[synthesis]]
target = "day"
method = "cart"
"""
    (home / "days.toml").write_text(recipe, "utf-8")
    assert sfumato("run", "days.toml", "--workspace", "ws", "--quiet", "--jobs", "1") == 2
    assert "1 record is below 2020-01-02; widen the bounds" in capsys.readouterr().err
