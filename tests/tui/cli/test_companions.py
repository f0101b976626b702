"""A recipe carried out with its companions: the same data, one worker, both summaries, published figures side by side."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prepared_workspaces import reseal

from sfumato.engine.errors import EngineError
from sfumato.tui.cli.run import run_to_end
from sfumato.workspace.store.runs import companion_ids, find_run, list_runs
from sfumato.workspace.store.workspace import Workspace

Command = Callable[..., int]

HEAD = """
label = "Linear"
companions = ["plain"]
"""
FIGURES = """
[[published]]
source = "A paper, Table 4"
figures = [
  { value = "risk.identification.true_match_rate", dataset = "confidential", figure = 1.0 },
  { value = "risk.identification.true_match_rate", dataset = "synthetic", figure = 0.02 },
  { value = "risk.identification.unique_matches", dataset = "synthetic", figure = 0.0 },
]

[[published]]
source = "A paper, Table 6"
value = "studies.intruder_uncertainty.true_match_rate"
level = 0.1
dataset = "confidential"
figure = 0.5
"""
OF_PLAIN = """
[[published]]
source = "A paper, Table 9"
value = "risk.identification.true_match_rate"
dataset = "synthetic"
figure = 0.04
"""


@pytest.fixture
def pair(study: Path, visits_recipe: str) -> Path:
    """A recipe with figures and a companion: shorter, of another title, another seed, with a threshold that fails."""
    visits_recipe = visits_recipe.replace("[[study]]", '[[measure]]\nmethod = "utility.ecdf"\n\n[[study]]')
    study.write_text(f"{HEAD}{visits_recipe}{FIGURES}", "utf-8")
    beside = visits_recipe.replace('title = "Visits"', 'title = "Visits, plain"').replace("seed = 3", "seed = 99")
    beside = beside.replace('file = "visits.csv"', 'file = "elsewhere.csv"').replace("max = 0.5", "max = -1")
    beside = beside.replace('transform = "log"\n', "")
    study.with_name("plain.toml").write_text(f'companions = ["recipe"]\n{beside}{OF_PLAIN}', "utf-8")
    return study


def run_and_read_output(sfumato: Command, recipe: Path, *more: str) -> tuple[int, Any]:
    status = sfumato("run", str(recipe), "--workspace", "w", "--key", "public", "--json", "out.json", *more)
    return status, json.loads(Path("out.json").read_text())


@pytest.mark.usefixtures("in_process")
@pytest.mark.slow
def test_both_are_carried_out_on_the_same_data_and_the_main_one_decides(
    pair: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found = run_and_read_output(sfumato, pair)

    out = capsys.readouterr().out
    assert status == 0
    (beside,) = found["companions"]
    assert "companions" not in beside
    assert (beside["seed"], beside["data_sha256"]) == (3, found["data_sha256"])
    own = [[r for r in one["rows"] if r["dataset"] == "confidential"] for one in (found, beside)]
    assert own[0] == own[1]
    assert found["rows"] != beside["rows"]
    assert "Beside it: Visits, plain: run 2" in out
    assert "x not met" in out
    assert "The thresholds of run 1 decide the exit status" in out
    workspace = Workspace.open(Path("w"))
    assert companion_ids(workspace, 1) == [2]
    assert [one.project_id for one in list_runs(workspace)] == [1, 1]
    assert find_run(workspace, "last").id == 1
    workspace.close()


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_every_source_has_a_table_of_ours_beside_the_published(
    pair: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    _, found = run_and_read_output(sfumato, pair)

    out = capsys.readouterr().out
    tables = {part.partition("\n")[0]: part for part in out.split("\n\n")}
    heads = tables["A paper, Table 4"].splitlines()[1].split()
    assert heads == [
        "measure",
        "confidential",
        "published",
        "ratio",
        "Linear",
        "published",
        "ratio",
        "Visits,",
        "plain",
        "with",
    ]
    rate = next(
        r
        for r in found["rows"]
        if r["measure"] == "true_match_rate"
        and r["dataset"] == "synthetic"
        and r["draw"] is None
        and r["level"] is None
    )
    line = next(one for one in tables["A paper, Table 4"].splitlines() if "People found for certain" in one)
    assert f"{rate['value']:.4g}  " in line
    assert f"{rate['value'] / 0.02:.4g}  " in line
    zero = next(one for one in tables["A paper, Table 4"].splitlines() if "People with an only match" in one)
    assert "0      -" in zero
    assert "0.04" in tables["A paper, Table 9"]
    assert "0.1" in tables["A paper, Table 6"]
    assert "Beside the published figures" in out
    assert sfumato("results", "last", "--workspace", "w") == 0
    assert capsys.readouterr().out == out


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_a_companion_alone_or_left_out_is_no_companion(pair: Path, sfumato: Command) -> None:
    status, found = run_and_read_output(sfumato, pair, "--alone")
    assert status == 0
    assert "companions" not in found
    workspace = Workspace.open(Path("w"))
    assert len(list_runs(workspace)) == 1
    workspace.close()


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_the_main_recipe_s_own_threshold_still_fails(pair: Path, sfumato: Command) -> None:
    pair.write_text(pair.read_text().replace("max = 0.5", "max = -1"))
    assert run_and_read_output(sfumato, pair, "--quiet")[0] == 1


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_seed_and_settings_of_data_and_release_are_passed_on(pair: Path, sfumato: Command) -> None:
    _, found = run_and_read_output(
        sfumato, pair, "--quiet", "--seed", "11", "--set", "release.m=3", "--set", "data.sample=40", "--set", "threshold[0].max=0.9"
    )  # fmt: skip
    (beside,) = found["companions"]
    assert (found["seed"], beside["seed"]) == (11, 11)
    assert {row["draw"] for row in beside["rows"]} == {None, 1, 2, 3}
    own = [[r for r in one["rows"] if r["dataset"] == "confidential"] for one in (found, beside)]
    assert own[0] == own[1]
    assert beside["verdicts"][0]["limit"] == -1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("", "", 'companions[0]: no such file or shipped recipe "plane"'),
        ('"plain"', '"recipe"', 'companions[0]: "recipe" is this recipe itself'),
        ("plain.toml", ("[0, 30]", "[0, 31]"), 'companions[0] "plain": variables: must be those of the recipe'),
        ("plain.toml", ('"log1p(age)"', '"log1p(agge)"'), 'companions[0] "plain": synthesis[0].predictors[1]'),
        ("plain.toml", ("[[synthesis]]", "[[synthesiss]]"), 'companions[0] "plain": synthesiss: unknown key'),
    ],
)
def test_a_companion_that_cannot_be_is_refused_before_anything_is_stored(
    pair: Path, sfumato: Command, capsys: pytest.CaptureFixture[str], old: str, new: str | tuple[str, str], says: str
) -> None:
    if isinstance(new, tuple):
        file = pair.with_name(old)
        file.write_text(file.read_text().replace(*new))
    else:
        pair.write_text(pair.read_text().replace(old or '"plain"', new or '"plane"'))
    assert sfumato("run", str(pair), "--workspace", "w") == 2
    assert says in capsys.readouterr().err
    assert not Path("w").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_a_companion_that_failed_is_told_after_what_the_main_run_found(
    pair: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("run", str(pair), "--workspace", "w", "--quiet") == 0
    workspace = Workspace.open(Path("w"))
    with workspace.write_transaction() as connection:
        connection.execute("UPDATE run SET state = 'failed', error = 'not converged' WHERE id = 2")
    reseal(workspace)
    with pytest.raises(EngineError, match="run 2, beside run 1, failed: not converged"):
        run_to_end(workspace, [1, 2], 1, None, quiet=False)
    assert "Visits: run 1" in capsys.readouterr().out
    with pytest.raises(EngineError, match="run 2 failed: not converged"):
        run_to_end(workspace, [2, 1], 1, None, quiet=False)
    assert capsys.readouterr().out == ""
    workspace.close()


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_runs_that_were_stopped_can_be_resumed(
    pair: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("run", str(pair), "--workspace", "w", "--quiet") == 0
    workspace = Workspace.open(Path("w"))
    with workspace.write_transaction() as connection:
        connection.execute("UPDATE run SET state = 'interrupted'")
    assert run_to_end(workspace, [1, 2], 1, None, quiet=True) == 3
    workspace.close()
    err = capsys.readouterr().err
    assert "sfumato resume 1" in err
    assert "sfumato resume 2" in err
