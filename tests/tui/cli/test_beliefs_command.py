"""The command ``records`` of a measure that tells what an intruder believes: text, JSON, one record, values only on request."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from believed import believed_workspace

Command = Callable[..., int]
Printed = pytest.CaptureFixture[str]
SECRETS = ("zqxdivorced", "lodger", "tenant", "owner", "married", "widowed")
pytestmark = pytest.mark.slow


@pytest.fixture
def workspace_with_beliefs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return str(believed_workspace(tmp_path / "believed"))


def test_records_tells_beliefs_the_guesses_at_one_and_values_only_where_asked(
    workspace_with_beliefs: str, sfumato: Command, capsys: Printed
) -> None:
    assert (
        sfumato("records", "1", "--measure", "measure[1]", "--json", "out.json", "--workspace", workspace_with_beliefs)
        == 0
    )
    out = capsys.readouterr().out
    for words in (
        "all released datasets together",
        "guess before",
        "first datasets",
        "times as likely",
        "before: probability",
    ):
        assert words in out
    assert "driver" not in out
    assert not [secret for secret in SECRETS if secret in out]
    found = json.loads(Path("out.json").read_text())
    assert (found["total"], found["asked"], found["datasets"]) == (90, 90, 3)
    assert sum(found["beliefs"]["cross"].values()) == pytest.approx(90)
    assert "values" not in json.dumps(found)
    first = found["records"][0]
    assert first["probability"] >= found["records"][1]["probability"]
    assert "candidates_without" not in first

    record = (
        "records",
        "1",
        "--measure",
        "measure[1]",
        "--record",
        str(first["record"]),
        "--workspace",
        workspace_with_beliefs,
    )
    assert sfumato(*record, "--json", "one.json") == 0
    out = capsys.readouterr().out
    assert f"Record {first['record']}" in out
    assert "By each dataset alone" in out
    assert not [secret for secret in SECRETS if secret in out]
    (one,) = json.loads(Path("one.json").read_text())["records"]
    assert [guess["right"] for guess in one["guesses"]].count(True) <= 1
    assert one["guesses"][0]["posterior"] == max(guess["posterior"] for guess in one["guesses"])
    assert "values" not in json.dumps(one)

    assert sfumato(*record, "--values", "--json", "values.json") == 0
    out = capsys.readouterr().out
    assert "Values (confidential)" in out
    assert any(secret in out for secret in SECRETS)
    (one,) = json.loads(Path("values.json").read_text())["records"]
    assert set(one["guesses"][0]["values"]) == {"status", "tenure"}
    assert stat.S_IMODE(Path("values.json").stat().st_mode) & 0o077 == 0


def test_a_record_that_was_not_asked_about_is_refused_in_words(
    workspace_with_beliefs: str, sfumato: Command, capsys: Printed
) -> None:
    assert (
        sfumato(
            "records",
            "1",
            "--measure",
            "measure[0]",
            "--top",
            "90",
            "--json",
            "-",
            "--workspace",
            workspace_with_beliefs,
        )
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    asked = {one["record"] for one in found["records"]}
    assert (len(asked), found["asked"], found["total"]) == (40, 40, 90)
    left_out = str(min(set(range(1, 91)) - asked))
    assert (
        sfumato("records", "1", "--measure", "measure[0]", "--record", left_out, "--workspace", workspace_with_beliefs)
        == 2
    )
    assert "was not asked about: measure[0]" in capsys.readouterr().err
    assert (
        sfumato("records", "1", "--measure", "measure[0]", "--record", "91", "--workspace", workspace_with_beliefs) == 2
    )
    assert "records 1 to 90" in capsys.readouterr().err


def test_one_record_of_a_measure_that_matches_is_shown_with_what_drives_it(
    workspace_with_beliefs: str, sfumato: Command, capsys: Printed
) -> None:
    assert (
        sfumato(
            "records",
            "1",
            "--measure",
            "measure[2]",
            "--record",
            "7",
            "--json",
            "-",
            "--workspace",
            workspace_with_beliefs,
        )
        == 0
    )
    (one,) = json.loads(capsys.readouterr().out)["records"]
    assert one["record"] == 7
    assert set(one["candidates_without"]) == {"region", "status", "tenure"}
    assert "guesses" not in one


def test_verdicts_say_what_a_ratio_is_held_against(
    workspace_with_beliefs: str, sfumato: Command, capsys: Printed
) -> None:
    assert sfumato("results", "1", "--workspace", workspace_with_beliefs) in (0, 1)
    out = capsys.readouterr().out
    assert "at most 120 % of that before the release" in out
    assert sfumato("results", "1", "--all", "--workspace", workspace_with_beliefs) in (0, 1)
    assert "datasets 2" in capsys.readouterr().out
