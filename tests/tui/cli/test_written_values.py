"""``sfumato evaluate`` on a release whose known columns are written with fewer digits, or without their time of day."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

Command = Callable[..., int]
RECIPE = """
[variables]
weight = { kind = "continuous", role = "quasi_identifier" }
born = { kind = "date", role = "quasi_identifier" }
pay = { kind = "continuous", role = "sensitive" }

[release]
released = ["pay"]

[[measure]]
method = "risk.identification"
known = ["KNOWN"]
radius = { pay = "5%" }

[[threshold]]
value = "risk.identification.expected_match_risk"
max = 10
"""


pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture
def people(home: Path) -> pd.DataFrame:
    """300 people, each alone with their weight and with the second of their birth."""
    rng = np.random.default_rng(3)
    born = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.choice(10**9, 300, replace=False), unit="s")
    people = pd.DataFrame({"weight": rng.lognormal(4, 0.2, 300), "born": born, "pay": rng.lognormal(7, 0.5, 300)})
    people.to_csv("people.csv", index=False)
    return people


def evaluate(sfumato: Command, released: pd.DataFrame, known: str) -> tuple[int, float | None]:
    """The exit status, and the expected match risk of the release."""
    Path("recipe.toml").write_text(RECIPE.replace("KNOWN", known))
    released.to_csv("released.csv", index=False)
    status = sfumato("evaluate", "recipe.toml", "--original", "people.csv", "--released", "released.csv",
                     "--workspace", "w", "--jobs", "1", "--json", "out.json", "--quiet")  # fmt: skip
    if status == 2:
        return status, None
    rows = json.loads(Path("out.json").read_text())["rows"]
    (found,) = [r["value"] for r in rows if r["measure"] == "expected_match_risk" and r["dataset"] == "synthetic"
                and r["draw"] is None]  # fmt: skip
    return status, found


@pytest.mark.slow
@pytest.mark.parametrize("digits", [17, 15, 12, 9])
def test_a_verdict_does_not_depend_on_the_digits_of_a_known_column(
    people: pd.DataFrame, sfumato: Command, digits: int
) -> None:
    """With 12 digits nobody was found, and the release passed as safe."""
    released = people.assign(weight=people["weight"].map(lambda x: f"{x:.{digits}g}"))
    assert evaluate(sfumato, released, "weight") == (1, 300)


def test_a_known_column_that_was_rounded_is_refused_with_how_it_differs(
    people: pd.DataFrame, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    released = people.assign(weight=people["weight"].round(1))
    assert evaluate(sfumato, released, "weight") == (2, None)
    assert "weight: is written with 3 digits, the original needs 7, and it is not released" in capsys.readouterr().err


@pytest.mark.slow
def test_known_dates_keep_their_time_of_day_or_are_refused(
    people: pd.DataFrame, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    for written in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"):
        assert evaluate(sfumato, people.assign(born=people["born"].dt.strftime(written)), "born") == (1, 300)
    assert evaluate(sfumato, people.assign(born=people["born"].dt.strftime("%Y-%m-%d")), "born") == (2, None)
    assert "born: holds dates without their time of day, and it is not released" in capsys.readouterr().err
