"""Earlier releases count with a later one where they are of the same people, and nothing else makes them so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_earlier_releases import findings_by_check

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate import earlier, ledger
from sfumato.workspace.gate.gate import Finding
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.service.deletion import delete_project
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
ROLES = {
    "sex": ("categorical", "quasi_identifier"), "birth": ("count", "quasi_identifier"), "town": ("categorical", "quasi_identifier"),
    "year": ("count", "other"), "income": ("count", "sensitive"), "dose": ("count", "sensitive"), "person": ("categorical", "identifier"),
    "number": ("count", "identifier"), "household": ("count", "unit"),
}  # fmt: skip


def people(count: int, seed: int = 1) -> pd.DataFrame:
    """People who are alone with their day of birth and town, a sex of which 2 in 100 have a third one, and a code."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": rng.choice(["f", "m", "x"], count, p=[0.5, 0.48, 0.02]),
            "birth": rng.integers(0, 25_000, count),
            "town": [f"t{i}" for i in rng.integers(0, 30, count)],
            "income": rng.integers(10_000, 90_000, count),
            "person": [f"{i:010x}" for i in rng.integers(0, 2**40, count)],
        }
    )


def run_and_release(
    workspace: Workspace, frame: pd.DataFrame, where: Path | None, name: str, project: str = "", **sections: Any
) -> int:
    """A run that draws the last sensitive column of a table of its own file, released where that is asked for."""
    drawn = [one for one in frame if ROLES[one][1] == "sensitive"][-1:]
    known = [one for one in frame if ROLES[one][1] not in ("identifier", "unit") and one not in drawn]
    table: dict[str, Any] = {
        "title": name,
        "variables": {one: dict(zip(("kind", "role"), ROLES[one], strict=True)) for one in frame},
        "synthesis": [{"target": one, "method": "cart", "predictors": known} for one in drawn],
        "release": {"m": 1, "seed": 1, "audience": "enclave"},
        "measure": [{"method": "utility.ecdf"}],
        **sections,
    }
    recipe = Recipe.from_table(table)
    source = SourceFile(f"{name}.csv", name.encode())
    run_id = enter_run(
        workspace,
        recipe,
        source,
        conform_to_schema(frame.reset_index(drop=True), recipe.schema),
        project=project or name,
    )
    run_worker(workspace.directory, idle=0)
    if where is not None:
        write_run_release(workspace, run_id, where / name, reason="simulated people")
    return run_id


@pytest.fixture
def after(workspace: Workspace, tmp_path: Path) -> Callable[..., dict[str, Finding]]:
    """The findings on a second table after a first one was released."""

    def look(
        first: pd.DataFrame, second: pd.DataFrame, policy: Policy | None = None, **sections: Any
    ) -> dict[str, Finding]:
        run_and_release(workspace, first, tmp_path, "first")
        return findings_by_check(workspace, run_and_release(workspace, second, None, "second", **sections), policy)

    return look


def test_tables_that_share_a_coarse_column_are_not_of_the_same_people(after: Callable[..., dict[str, Finding]]) -> None:
    """Two columns of sex with 2 and 5 of a rare level were "the same people but for 5", and blocked."""
    first = people(800, 1)[["sex", "birth", "income"]]
    second = people(605, 2)[["sex", "town"]].assign(dose=np.arange(605) % 50)
    seen = after(first, second)
    assert {seen[one].status for one in ("differencing", "released_before", "deleted_releases")} == {"pass"}
    why = "it is unknown whether the people of run 1, released before, are the same: the columns in common (sex) identify too few people"
    assert why in seen["released_before"].message


def test_a_coarse_table_of_almost_as_many_records_is_to_be_judged(after: Callable[..., dict[str, Finding]]) -> None:
    """It may be the same people but for three; it neither blocks nor passes in silence."""
    first, second = people(300, 1)[["sex", "birth", "income"]], people(303, 2)[["sex", "town"]].assign(dose=1)
    seen = after(first, second.assign(dose=np.arange(303) % 50))["differencing"]
    assert (seen.status, seen.value) == ("warn", 3)
    assert "it is unknown whether run 1, released before, is of the same people" in seen.message


@pytest.mark.parametrize("later", [("income",), ("income", "year"), ()])
def test_the_same_people_a_year_later_are_known_again(
    after: Callable[..., dict[str, Finding]], later: tuple[str, ...]
) -> None:
    """Their income and the year are others; day of birth, town and sex are not."""
    frame = people(200)[["sex", "birth", "town", "income"]].assign(year=2023)
    moved = {"income": frame["income"] + 700, "year": 2024}
    second = frame.assign(**{name: moved[name] for name in later})[3:]
    seen = after(frame, second)
    assert (seen["differencing"].status, seen["differencing"].value) == ("block", 3)
    assert "are alone in both tables with the same" in seen["differencing"].message
    assert "98.5 % of 200 there" in seen["differencing"].message
    assert seen["released_before"].status == "warn"


def test_a_small_table_within_a_large_one_is_of_the_same_people(after: Callable[..., dict[str, Finding]]) -> None:
    frame = people(400)[["sex", "birth", "town", "income"]]
    seen = after(frame, frame[:60])["released_before"]
    assert (seen.status, seen.value) == ("warn", 1)


def test_other_people_of_the_same_columns_are_others(after: Callable[..., dict[str, Finding]]) -> None:
    columns = ["sex", "birth", "town", "income"]
    seen = after(people(200, 1)[columns], people(203, 2)[columns])
    assert {seen[one].status for one in ("differencing", "released_before")} == {"pass"}
    assert "is unknown" not in seen["released_before"].message


def households(seed: int) -> pd.DataFrame:
    """Households of two to four, numbered 1, 2, ..., of which a town and the years of birth are known."""
    rng = np.random.default_rng(seed)
    number = np.repeat(np.arange(1, 121), rng.integers(2, 5, 120))
    frame = pd.DataFrame({"household": number, "town": [f"t{i}" for i in rng.integers(0, 30, 121)[number]]})
    count = len(frame)
    return frame.assign(
        birth=rng.integers(0, 60, count), sex=rng.choice(["f", "m"], count), income=rng.integers(0, 90, count)
    )


def test_numbers_of_households_are_no_evidence_and_what_stands_beside_them_is(
    after: Callable[..., dict[str, Finding]], workspace: Workspace, tmp_path: Path
) -> None:
    """Two files of which the households are numbered from 1 were "the same people"; a year later their households are known again."""
    first = households(1)
    seen = after(first, households(2))
    assert {seen[one].status for one in ("differencing", "released_before")} == {"pass"}
    later = first.assign(income=(first["income"] + 7) % 90, birth=np.random.default_rng(3).permutation(first["birth"]))
    again = findings_by_check(workspace, run_and_release(workspace, later, None, "third"))
    assert again["released_before"].status == "warn"


def test_a_declared_identifier_shows_the_same_people_and_a_number_of_rows_does_not(
    after: Callable[..., dict[str, Finding]],
) -> None:
    frame = people(200)[["person", "sex", "income"]]
    seen = after(frame, frame.assign(income=frame["income"] % 977)[4:])
    assert (seen["differencing"].status, seen["differencing"].value) == ("block", 4)


def test_rows_that_are_numbered_alike_are_not_the_same_people(after: Callable[..., dict[str, Finding]]) -> None:
    first = people(200, 1)[["sex", "income"]].assign(number=np.arange(200))
    second = people(205, 2)[["sex"]].assign(dose=np.arange(205) % 40, number=np.arange(205))
    assert after(first, second)["released_before"].status == "pass"


def test_a_budget_is_shared_with_one_person_in_common_by_an_identifier(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what cannot be told is to be judged where it would exceed the budget."""
    for module in (earlier, ledger):
        monkeypatch.setattr(module, "privacy_cost_of_run", lambda *_: earlier.PrivacySpending(4.0, 1, covered=True))
    columns = ["person", "sex", "income"]
    first, second, third = (people(80, seed)[columns] for seed in (1, 2, 3))
    second.loc[5, "person"] = first.loc[7, "person"]
    run_and_release(workspace, first, tmp_path, "first")
    shared = findings_by_check(workspace, run_and_release(workspace, second, None, "second"), Policy(epsilon=5.0))[
        "privacy_budget"
    ]
    assert (shared.status, shared.value) == ("block", pytest.approx(8.0))
    assert "some of these people are in run 1 (1 person) too" in shared.message
    alone = findings_by_check(workspace, run_and_release(workspace, third, None, "third"), Policy(epsilon=5.0))[
        "privacy_budget"
    ]
    assert (alone.status, alone.value) == ("pass", pytest.approx(4.0))
    coarse = run_and_release(workspace, third[["sex"]].assign(dose=np.arange(80) % 9), None, "coarse")
    seen = findings_by_check(workspace, coarse, Policy(epsilon=5.0))["privacy_budget"]
    assert (seen.status, seen.value) == ("warn", pytest.approx(4.0))
    assert "with the same people epsilon would be 8" in seen.message
    assert findings_by_check(workspace, coarse, Policy(epsilon=9.0))["privacy_budget"].status == "pass"


def test_what_is_known_of_people_stays_when_their_data_are_deleted(workspace: Workspace, tmp_path: Path) -> None:
    frame = people(200)
    run_and_release(workspace, frame, tmp_path, "first")
    again = frame.assign(income=frame["income"] % 977)[3:]
    later = run_and_release(workspace, again, None, "second")
    coarse = people(150, 4)[["sex"]].assign(dose=np.arange(150) % 40)
    other = run_and_release(workspace, coarse, None, "third")
    before = [findings_by_check(workspace, one) for one in (later, other)]
    assert before[0]["differencing"].value == 3
    gone = workspace.connection.execute("SELECT id FROM project WHERE name = 'first'").fetchone()[0]
    delete_project(workspace, gone)
    assert findings_by_check(workspace, later)["differencing"].value == 3
    assert findings_by_check(workspace, other)["differencing"].status == before[1]["differencing"].status == "pass"
    assert findings_by_check(workspace, other)["deleted_releases"].status == "warn", "too little is left of them"
