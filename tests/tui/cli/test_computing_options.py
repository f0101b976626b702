"""Where a command's runs are computed, and in how much memory: checked before anything is stored, forgotten when the command ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.engine.methods import measured_rates
from sfumato.workspace.jobs.settings import DASK_VARIABLE, MEMORY_VARIABLE
from sfumato.workspace.store.runs import list_runs
from sfumato.workspace.store.workspace import Workspace

RECIPE = """
[data]
file = "data.csv"
[variables]
region = { kind = "categorical" }
income = { kind = "continuous" }
[release]
m = 1
[[synthesis]]
target = "income"
method = "linear_regression"
predictors = ["region"]
"""


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe and its data; a fit is expected to need 7 GB."""
    monkeypatch.setenv(MEMORY_VARIABLE, "")
    monkeypatch.setenv(DASK_VARIABLE, "")
    monkeypatch.setitem(measured_rates.RATES, "synthesis.linear_regression", (1.0, 7e9, 0.0, 0.0))
    (tmp_path / "data.csv").write_text("region,income\n" + "".join(f"{'ab'[n % 2]},{n % 9}\n" for n in range(60)))
    (tmp_path / "recipe.toml").write_text(RECIPE)
    return tmp_path / "recipe.toml"


def test_a_run_that_has_no_room_exits_with_2_and_stores_nothing(
    recipe: Path, tmp_path: Path, sfumato: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("run", str(recipe), "--workspace", str(tmp_path / "w"))
    assert sfumato(*asked, "--memory", "5 GB") == 2
    said = capsys.readouterr().err
    assert "fit/0 (synthesis.linear_regression) needs about 7.0 GB of memory, and there is about 5.0 GB" in said
    assert "--memory" in said
    with Workspace.open(tmp_path / "w") as workspace:
        assert list_runs(workspace) == []
        assert not list((tmp_path / "w").rglob("*.parquet"))
    assert os.environ[MEMORY_VARIABLE] == ""


@pytest.mark.slow
def test_who_knows_better_has_it_run(recipe: Path, tmp_path: Path, sfumato: Callable[..., int]) -> None:
    assert (
        sfumato("run", str(recipe), "--workspace", str(tmp_path / "w"), "--jobs", "1", "--memory", "none", "--quiet")
        == 0
    )


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("--memory", "plenty", '"plenty" is no size'), ("--dask", "http://host:1", "is no address of a Dask scheduler")],
)
def test_what_cannot_be_read_is_refused_where_it_stands(
    recipe: Path,
    tmp_path: Path,
    sfumato: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    option: str,
    value: str,
    said: str,
) -> None:
    assert sfumato("run", str(recipe), "--workspace", str(tmp_path / "w"), option, value) == 2
    message = capsys.readouterr().err
    assert said in message
    assert option in message
    assert not (tmp_path / "w").exists()


def test_a_cluster_that_does_not_answer_is_said_before_anything_is_stored(
    recipe: Path,
    tmp_path: Path,
    sfumato: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sfumato.workspace.errors import NoCluster
    from sfumato.workspace.jobs import computing

    def silent(*_: object, **__: object) -> None:
        raise NoCluster("no Dask scheduler answers at tls://host:8786")

    monkeypatch.setattr(computing, "call_in_process", silent)
    assert sfumato("run", str(recipe), "--workspace", str(tmp_path / "w"), "--dask", "tls://host:8786") == 2
    assert "no Dask scheduler answers" in capsys.readouterr().err
    assert os.environ[DASK_VARIABLE] == ""
    with Workspace.open(tmp_path / "w") as workspace:
        assert list_runs(workspace) == []
