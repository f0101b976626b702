"""The command release, and its exit statuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import keyed_workspace
import pytest

from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow

Command = Callable[..., int]
workspace = keyed_workspace.workspace
blank_pictures = keyed_workspace.blank_pictures
UNMET = [{"value": "utility.ecdf.max_abs_difference", "max": 1e-9, "target": "income"}]


@pytest.fixture
def workspace_with_runs(home: Path, workspace: Workspace, enter: Callable[..., int]) -> str:
    """A workspace with a run that meets its threshold, 1, and one that does not, 2."""
    # An enclave's limits do not block the few people whom kept columns find: the threshold alone tells the runs apart.
    release = {"m": 3, "seed": 7, "audience": "enclave"}
    enter(release=release)
    enter(release=release, threshold=UNMET)
    run_worker(workspace.directory, idle=0)
    return str(workspace.directory)


def test_a_run_that_meets_its_thresholds_is_released(
    workspace_with_runs: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("release", "1", "--workspace", workspace_with_runs, "-o", "out", "--format", "parquet") == 0
    told = capsys.readouterr().out
    files = [path for path in Path("out").rglob("*") if path.is_file()]
    assert f"out: {len(files)} files, manifest sha256 " in told
    assert (
        "3 datasets of 80 records, rows shuffled\nreplaced: visits, income\nunchanged from the confidential data: region, age\n"
        in told
    )
    assert "not met" not in told
    assert Path("out/public/dataset-SYNTHETIC-03.parquet").read_bytes()[:4] == b"PAR1"
    assert json.loads(Path("out/internal/manifest.json").read_text("utf-8"))["run"] == 1


def test_a_release_as_json_says_what_it_holds_and_where_it_is(
    workspace_with_runs: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("release", "1", "--workspace", workspace_with_runs, "-o", "out", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    files = sorted(str(path.relative_to("out")) for path in Path("out").rglob("*") if path.is_file())
    assert sorted(found["files"]) == files
    assert (found["run"], found["datasets"], found["records"], found["format"]) == (1, 3, 80, "csv")
    assert (found["replaced"], found["unchanged"]) == (["visits", "income"], ["region", "age"])
    assert found["thresholds_not_met"] == 0
    assert found["directory"] == str(Path("out").resolve())


def test_one_that_does_not_needs_a_reason(
    workspace_with_runs: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("release", "last", "--workspace", workspace_with_runs, "-o", "out") == 2
    assert "add --reason" in capsys.readouterr().err
    assert not Path("out").exists()
    assert (
        sfumato(
            "release", "last", "--workspace", workspace_with_runs, "-o", "out", "--reason", "agreed with the data owner"
        )
        == 0
    )
    assert "not met, the reason is in the audit log" in capsys.readouterr().out
    assert sfumato("audit", "list", "--workspace", workspace_with_runs) == 0
    assert "run released" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["9", "-o", "out"], ["1", "-o", "visits.csv"], ["1"], ["1", "-o", "x", "--format", "sas"]]
)
def test_bad_input_is_status_2(workspace_with_runs: str, sfumato: Command, arguments: list[str]) -> None:
    Path("visits.csv").write_text("mine")
    assert sfumato("release", *arguments, "--workspace", workspace_with_runs) == 2
    assert Path("visits.csv").read_text() == "mine"


def test_what_the_gate_finds_can_be_seen_before_a_release(
    workspace_with_runs: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("examine", "1", "--workspace", workspace_with_runs) == 0
    told = capsys.readouterr().out
    assert told.startswith("May this leave into an enclave? TO BE JUDGED\n")
    assert "Run 1: " in told
    assert "differencing" not in told, "it passes, and is counted"
    assert sfumato("examine", "1", "--workspace", workspace_with_runs, "--all") == 0
    assert "differencing" in capsys.readouterr().out
    assert sfumato("examine", "2", "--workspace", workspace_with_runs, "--json", "found.json") == 1
    assert "run 2: the threshold is not met" in " ".join(capsys.readouterr().out.split())
    written = json.loads(Path("found.json").read_text("utf-8"))
    assert (written["run"], written["status"]) == (2, "block")
    assert [one["check"] for one in written["findings"] if one["status"] == "block"] == ["unmet_thresholds"]
    assert Path("found.json").stat().st_mode & 0o077 == 0


def test_the_policy_in_force_is_printed_and_can_be_saved(
    workspace_with_runs: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("policy", "--workspace", workspace_with_runs) == 0
    told = capsys.readouterr().out
    (Path(workspace_with_runs) / "policy.toml").write_text(told, "utf-8")
    assert sfumato("policy", "--workspace", workspace_with_runs) == 0
    assert capsys.readouterr().out == told
    (Path(workspace_with_runs) / "policy.toml").write_text("[findings.extreme]\nblock = 0.1\n", "utf-8")
    assert sfumato("examine", "1", "--workspace", workspace_with_runs) == 2
    assert 'did you mean "extremes"' in capsys.readouterr().err


def test_a_check_that_blocks_is_waived_by_name(
    workspace_with_runs: str, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    for waiver, said in (
        ("unmet_thresholds", "not CHECK=REASON"),
        ("unmet_threshold=x", "did you mean"),
        ("extremes=agreed with the board", "does not block"),
        ("unmet_thresholds= ", "needs a reason"),
        ("unmet_thresholds=\u200b", "needs a reason"),
    ):
        assert sfumato("release", "2", "--workspace", workspace_with_runs, "-o", "out", "--waive", waiver) == 2
        assert said in capsys.readouterr().err
        assert not Path("out").exists()
    assert sfumato("release", "2", "--workspace", workspace_with_runs, "-o", "out", "--reason", "\u200b") == 2
    assert "--reason: needs a reason in words" in capsys.readouterr().err
    assert not Path("out").exists()
    assert (
        sfumato(
            "release",
            "2",
            "--workspace",
            workspace_with_runs,
            "-o",
            "out",
            "--waive",
            "unmet_thresholds=agreed with the board",
        )
        == 0
    )
    assert sfumato("audit", "list", "--workspace", workspace_with_runs) == 0
    assert "unmet_thresholds: agreed" in " ".join(capsys.readouterr().out.split())
