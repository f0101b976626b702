"""What shells complete, asked as shells ask it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.engine.methods.protocols import method_keys
from sfumato.engine.methods.registry import registry
from sfumato.workspace.recipes import recipe_names, shipped_recipes
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.run_words import recipe_text_of_run, run_completions

SFUMATO = Path(sys.executable).with_name("sfumato")


def completed(line: str, where: Path, shell: str = "bash") -> list[str]:
    """The words that a shell is offered at the end of a line."""
    words = line.split(" ")
    environment = {
        **os.environ,
        "_SFUMATO_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        [SFUMATO], env=environment, cwd=where, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    return [offered.partition(",")[2] for offered in done.stdout.splitlines()]


@pytest.mark.slow
def test_recipes_that_ship_and_those_of_the_directory_are_offered(tmp_path: Path) -> None:
    (tmp_path / "survey.toml").touch()
    assert completed("sfumato run ", tmp_path) == [*recipe_names(), "survey.toml"]
    assert completed("sfumato evaluate sur", tmp_path) == ["survey.toml"]
    assert "airbnb" in completed("sfumato recipes air", tmp_path)


def test_the_names_of_recipes_and_methods_are_those_that_there_are() -> None:
    assert recipe_names() == [recipe.name for recipe in shipped_recipes()]
    assert set(method_keys()) == set(registry())


@pytest.mark.slow
def test_methods_are_offered_by_their_keys(tmp_path: Path) -> None:
    assert completed("sfumato methods risk.spe", tmp_path) == ["risk.special_uniques"]
    assert "risk.identification" in completed("sfumato records --measure risk.", tmp_path)


@pytest.mark.slow
def test_settings_are_those_of_the_recipe_on_the_line(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        '[variables]\nage = { kind = "count" }\n[release]\nm = 2\n[[synthesis]]\ntarget = "age"\nmethod = "x"\n'
    )
    assert completed("sfumato run own.toml --set ", tmp_path) == [
        "variables.age.kind=", "release.m=", "synthesis[0].target=", "synthesis[0].method=", "release.seed=",
    ]  # fmt: skip
    (tmp_path / "own.toml").write_text("[[[")
    assert completed("sfumato run own.toml --set rel", tmp_path) == ["release.m=", "release.seed="]


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A workspace whose runs have words that a shell would carry out, or that a terminal would."""
    directory = tmp_path / "workspace"
    Workspace.create(directory).close()
    with sqlite3.connect(directory / "workspace.db") as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("INSERT INTO project (id, name, created) VALUES (1, 'p', 0)")
        columns = [row[1] for row in connection.execute("PRAGMA table_info(run)")]
        for number, name in enumerate(("plain", "$(reboot)", "a;b", "`x`", "two words", "\x1b[31m", "*"), 1):
            row = dict.fromkeys(columns, 0) | {
                "id": number,
                "title": f"\x1b]0;evil\x07\n{name}",
                "recipe": f"[variables]\nage{number} = 1\n'$(x)' = 1",
            }
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO run ({', '.join(row)}) VALUES ({marks})", [*row.values()])
            connection.execute(
                "INSERT INTO run_name (run_id, name, folded, note) VALUES (?, ?, ?, '')", (number, name, name)
            )
    return directory


@pytest.mark.slow
def test_runs_are_offered_and_no_word_that_means_more_to_a_shell(hostile: Path, tmp_path: Path) -> None:
    before = (hostile / "workspace.db").read_bytes()
    line = f"sfumato results --workspace {hostile} "
    assert completed(line, tmp_path) == ["last", "7", "6", "5", "4", "3", "2", "1", "plain"]
    assert completed(f"sfumato figures --workspace {hostile} plain --bin-width ", tmp_path) == ["age1="]
    assert (hostile / "workspace.db").read_bytes() == before
    assert "$(reboot)" in dict(run_completions(hostile)), "the control: it was there to be offered"


@pytest.mark.slow
def test_a_workspace_that_cannot_be_read_offers_nothing_and_holds_nobody_up(hostile: Path, tmp_path: Path) -> None:
    with sqlite3.connect(hostile / "workspace.db") as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DROP TABLE run")
        connection.execute(
            """CREATE VIEW run AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
               SELECT i AS id, max(i) AS title, 'x' AS recipe FROM n"""
        )
    assert run_completions(hostile) == []
    assert recipe_text_of_run(hostile, "1") == ""
    (hostile / "workspace.db").write_bytes(b"no database")
    assert completed(f"sfumato results --workspace {hostile} ", tmp_path) == ["last"]
    assert run_completions(tmp_path / "absent") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_the_shell_takes(shell: str, tmp_path: Path) -> None:
    script = subprocess.run([SFUMATO, "completion", shell], capture_output=True, text=True, check=True).stdout
    assert "_SFUMATO_COMPLETE" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(script)
    check = subprocess.run([shell, "-n", "script"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (check.returncode, check.stderr) == (0, "")


@pytest.mark.slow
def test_bash_completes_a_line(tmp_path: Path) -> None:
    asked = """eval "$("$0" completion bash)"; PATH="$(dirname "$0"):$PATH"
    COMP_WORDS=(sfumato run airb); COMP_CWORD=2; compopt() { :; }; _sfumato_completion sfumato; echo "${COMPREPLY[@]}" """
    done = subprocess.run(["bash", "-c", asked, str(SFUMATO)], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [name for name in recipe_names() if name.startswith("airb")]


@pytest.mark.slow
def test_a_key_press_imports_no_numerical_library(tmp_path: Path) -> None:
    code = "import os, sys; from sfumato.tui.cli.main import main\ntry: main([])\nexcept SystemExit: pass\nprint([m for m in ('numpy', 'pandas', 'textual') if m in sys.modules])"
    for line in ("sfumato methods ri", "sfumato results ", "sfumato run ai", "sfumato run randhie --set "):
        environment = {
            **os.environ, "_SFUMATO_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1),
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.stdout.splitlines()[-1] == "[]", line
