"""The key from the command line: made, exported, put back, named, and public runs marked."""

from __future__ import annotations

import json
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

Command = Callable[..., int]


def artefacts(workspace: str, run_id: int = 1) -> dict[str, str]:
    with closing(sqlite3.connect(f"{workspace}/workspace.db")) as connection:
        query = "SELECT name, sha256 FROM artefact WHERE run_id = ? AND name LIKE 'draw/%'"
        return dict(connection.execute(query, (run_id,)).fetchall())


def sampled(workspace: str) -> str:
    with closing(sqlite3.connect(f"{workspace}/workspace.db")) as connection:
        return str(connection.execute("SELECT table_sha256 FROM dataset").fetchone()[0])


@pytest.mark.usefixtures("in_process")
@pytest.mark.slow
def test_the_same_recipe_and_seed_give_other_bytes_in_another_workspace_and_the_same_in_one(
    study: Path, sfumato: Command
) -> None:
    for workspace in "aab":
        assert sfumato("run", str(study), "--workspace", workspace, "--quiet") == 0
    assert sfumato("key", "export", "kept", "--workspace", "a") == 0
    assert sfumato("run", str(study), "--workspace", "c", "--key", "kept", "--quiet") == 0
    assert artefacts("a", 1) == artefacts("a", 2) == artefacts("c")
    assert not set(artefacts("a").values()) & set(artefacts("b").values())


@pytest.mark.usefixtures("in_process")
@pytest.mark.study
def test_which_records_a_sample_has_depends_on_the_key(study: Path, sfumato: Command) -> None:
    assert sfumato("key", "fingerprint", "--workspace", "a") == 2
    for workspace, key in (("a", ()), ("b", ()), ("p", ("--key", "public")), ("q", ("--key", "public"))):
        command = (
            "run",
            str(study),
            "--workspace",
            workspace,
            *key,
            "--set",
            "data.sample=40",
            "--jobs",
            "1",
            "--quiet",
        )
        assert sfumato(*command) in (0, 1)
    assert sampled("p") == sampled("q")
    assert len({sampled(workspace) for workspace in "abp"}) == 3


def test_a_key_is_exported_once_and_put_back(home: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert sfumato("init", "w") == 0
    assert sfumato("key", "fingerprint") == 0
    shown = capsys.readouterr().out.split("\n")[-2]
    assert len(shown) == 16
    assert sfumato("key", "export", "kept") == 0
    assert (home / "kept").read_bytes() == (home / "w/key").read_bytes()
    assert stat.S_IMODE((home / "kept").stat().st_mode) == 0o600
    assert sfumato("key", "export", "kept") == 2
    assert "name a new file" in capsys.readouterr().err
    sfumato("audit", "list")
    said = capsys.readouterr().out
    assert said.count("key exported") == 1, "a refused export leaves no row"
    assert (home / "kept").read_bytes().hex() not in said
    (home / "w/key").unlink()
    assert sfumato("run", "randhie") == 2
    assert "init w --key FILE" in capsys.readouterr().err.replace(str(home) + "/", "")
    assert not (home / "w/key").exists()
    assert sfumato("runs") == 0
    assert sfumato("init", "w", "--key", "kept") == 0
    capsys.readouterr()
    assert sfumato("key", "fingerprint") == 0
    assert capsys.readouterr().out.strip() == shown


def test_a_key_that_is_not_the_workspaces_is_refused(
    study: Path, home: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("init", "w") == sfumato("init", "other") == 0
    before = (home / "w/key").read_bytes()
    for command in (("init", "w"), ("run", str(study), "--workspace", "w")):
        for key in ("public", "other/key"):
            capsys.readouterr()
            assert sfumato(*command, "--key", key) == 2
            assert "has another key" in capsys.readouterr().err
    assert sfumato("run", str(study), "--workspace", "new", "--key", "nowhere") == 2
    assert not (home / "new").exists()
    assert (home / "w/key").read_bytes() == before


@pytest.mark.usefixtures("in_process")
@pytest.mark.slow
def test_a_run_with_a_public_key_is_marked_and_released_for_a_reason_only(
    study: Path, home: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("run", str(study), "--workspace", "w", "--key", "public", "--jobs", "1") == 0
    assert "public key" in capsys.readouterr().out
    for command in (("runs",), ("runs", "1"), ("results",)):
        assert sfumato(*command, "--workspace", "w") == 0
        assert "public key" in capsys.readouterr().out
    assert sfumato("key", "fingerprint", "--workspace", "w") == 0
    assert capsys.readouterr().out == "public\n"
    assert sfumato("release", "--workspace", "w", "-o", "out") == 2
    assert "public key" in capsys.readouterr().err
    assert not (home / "out").exists()
    assert sfumato("release", "--workspace", "w", "-o", "out", "--reason", "the data are public") == 0
    assert sfumato("report", "--workspace", "w", "-o", "r.html") == 0
    assert "ublic key" in (home / "r.html").read_text("utf-8")


@pytest.mark.usefixtures("in_process")
@pytest.mark.slow
def test_no_file_that_leaves_has_the_key(study: Path, home: Path, sfumato: Command) -> None:
    assert sfumato("run", str(study), "--workspace", "w", "--jobs", "1", "--json", "run.json", "--quiet") == 0
    assert sfumato("release", "--workspace", "w", "-o", "out", "--reason", "a test of files") == 0
    assert sfumato("report", "--workspace", "w", "-o", "r.html") == 0
    key = (home / "w/key").read_bytes()
    assert "key" not in json.loads((home / "run.json").read_text("utf-8"))
    for path in (home / "run.json", home / "r.html", *(home / "out").rglob("*.*"), *(home / "w/logs").rglob("*")):
        content = path.read_bytes()
        assert key not in content
        assert key.hex().encode() not in content.lower()
    assert "public key" not in (home / "r.html").read_text("utf-8")


def test_the_doctor_looks_at_the_key(home: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert sfumato("init", "w") == 0

    def key_finding() -> dict[str, str]:
        capsys.readouterr()
        sfumato("doctor", "--json")
        return next(one for one in json.loads(capsys.readouterr().out)["findings"] if one["what"] == "key")

    assert key_finding()["state"] == "ok"
    (home / "w/key").chmod(0o644)
    assert "chmod 600" in key_finding()["text"]
    (home / "w/key").write_bytes(b"y" * 32)
    assert "another key" in key_finding()["text"]
    (home / "w/key").unlink()
    assert key_finding()["state"] == "problem"
