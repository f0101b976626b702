"""The command line, from an empty home to results: what it prints, writes and exits with."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.files import find_source, read_file_microdata
from sfumato.workspace.service.importing import import_file
from sfumato.workspace.store.database import DATABASE
from sfumato.workspace.store.tables import TableStore
from sfumato.workspace.store.workspace import Workspace

Command = Callable[..., int]
ROW = {
    "family", "method", "measure", "target", "dataset", "draw", "level", "value", "lower", "upper", "baseline", "unit",
    "status", "reason", "params", "label",
}  # fmt: skip


@pytest.mark.slow
def test_a_run_prints_risk_and_verdicts_and_writes_the_contract_s_json(
    study: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    status = sfumato("run", str(study), "--workspace", "w", "--jobs", "1", "--json", "out.json")

    out = capsys.readouterr().out
    assert status == 0
    assert "Can people be found?" in out
    assert "+ met" in out
    found = json.loads(Path("out.json").read_text())
    assert set(found) == {"run", "recipe_sha256", "data_sha256", "seed", "versions", "seconds", "rows", "verdicts",
                          "published", "disclosure", "file_coverage", "may_leave"}  # fmt: skip
    answer, printed = found["may_leave"], " ".join(out.split())
    assert all(answer[part] in printed for part in ("found", "how", "decision"))
    assert all(set(row) == ROW for row in found["rows"])
    assert {(row["dataset"], row["draw"]) for row in found["rows"]} == {
        ("confidential", None), ("synthetic", None), ("synthetic", 1), ("synthetic", 2),
    }  # fmt: skip
    assert {row["level"] for row in found["rows"]} == {None, 0.0, 0.1}


@pytest.mark.usefixtures("in_process")
@pytest.mark.slow
def test_a_threshold_that_fails_exits_1(study: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]) -> None:
    study.write_text(study.read_text().replace("max = 0.5", "max = -1"))
    assert sfumato("run", str(study), "--workspace", "w", "--jobs", "1") == 1
    said = capsys.readouterr()
    assert "x not met" in said.out
    assert "warning: threshold[0].max: a share is between 0 and 1, not -1" in said.err


@pytest.mark.slow
def test_one_job_and_two_give_the_same_rows(study: Path, sfumato: Command) -> None:
    for jobs in ("1", "2"):
        assert sfumato("run", str(study), "--workspace", "w", "--jobs", jobs, "--json", f"{jobs}.json", "--quiet") == 0
    one, two = (json.loads(Path(f"{jobs}.json").read_text()) for jobs in ("1", "2"))
    assert json.dumps(one["rows"]) == json.dumps(two["rows"])
    assert one["verdicts"] == two["verdicts"]
    with closing(sqlite3.connect(f"w/{DATABASE}")) as connection:
        named = connection.execute("SELECT name, sha256 FROM artefact WHERE name LIKE 'draw/%'").fetchall()
    assert len(named) == 4
    assert len(set(named)) == 2, "the same bytes"


@pytest.mark.usefixtures("in_process")
@pytest.mark.slow
def test_another_seed_gives_other_rows(study: Path, sfumato: Command) -> None:
    """The negative control of the test above."""
    for seed in ("1", "2"):
        assert sfumato("run", str(study), "--workspace", "w", "--seed", seed, "--json", f"{seed}.json", "--quiet") == 0
    one, two = (json.loads(Path(f"{seed}.json").read_text()) for seed in ("1", "2"))
    assert one["rows"] != two["rows"]


@pytest.mark.usefixtures("in_process")
@pytest.mark.slow
def test_settings_change_the_recipe(study: Path, sfumato: Command) -> None:
    sfumato("run", str(study), "--workspace", "w", "--set", "release.m=3", "--json", "out.json", "--quiet")
    assert {row["draw"] for row in json.loads(Path("out.json").read_text())["rows"]} == {None, 1, 2, 3}


@pytest.mark.usefixtures("in_process")
@pytest.mark.slow
def test_runs_and_results_show_what_was_done(study: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert sfumato("init", "w") == 0
    assert sfumato("runs") == 0
    assert "no runs yet" in capsys.readouterr().out
    assert sfumato("run", str(study), "--quiet") == 0
    assert capsys.readouterr().out == ""
    assert sfumato("runs") == 0
    assert "+ 1 met" in capsys.readouterr().out
    assert sfumato("results", "1", "--draws") == 0
    out = capsys.readouterr().out
    assert "Every dataset" in out
    assert "People found on average" in out
    assert "expected_match_risk" not in out
    assert sfumato("results", "1", "--draws", "--keys") == 0
    assert "risk.identification.expected_match_risk" in capsys.readouterr().out
    assert sfumato("cancel", "1") == 0
    assert "ended already" in capsys.readouterr().out


@pytest.mark.usefixtures("in_process")
@pytest.mark.slow
def test_evaluate_scores_a_release_as_the_run_that_made_it_did(study: Path, sfumato: Command) -> None:
    assert sfumato("run", str(study), "--workspace", "w", "--json", "run.json", "--quiet") == 0
    workspace = Workspace.open(Path("w"))
    dataset = workspace.find_dataset(1)
    names = []
    for draw in (1, 2):
        sha256 = workspace.connection.execute(
            "SELECT sha256 FROM artefact WHERE name = ?", (f"draw/{draw}",)
        ).fetchone()[0]
        released = workspace.tables.read_microdata(sha256, dataset.schema, "synthetic")
        names.append(f"released{draw}.csv")
        released.frame.to_csv(names[-1], index=False)
    workspace.close()

    status = sfumato(
        "evaluate", str(study), "--original", "visits.csv", "--released", names[0], "--released", names[1],
        "--workspace", "v", "--json", "evaluated.json", "--quiet",
    )  # fmt: skip

    assert status == 0
    run, evaluated = (json.loads(Path(f).read_text())["rows"] for f in ("run.json", "evaluated.json"))
    assert [r["value"] for r in run if r["level"] is None] == [r["value"] for r in evaluated if r["level"] is None]


def test_evaluate_refuses_a_release_of_other_records(
    study: Path, visits_table: pd.DataFrame, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    visits_table.head(50).to_csv("fewer.csv", index=False)
    assert (
        sfumato("evaluate", str(study), "--original", "visits.csv", "--released", "fewer.csv", "--workspace", "v") == 2
    )
    assert "fewer.csv: 50 records, the original has 60" in capsys.readouterr().err
    assert not Path("v").exists()


def test_evaluate_refuses_a_release_in_another_order(
    study: Path, visits_table: pd.DataFrame, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """A shuffled release would look safer than it is."""
    visits_table.sort_values("age").to_csv("sorted.csv", index=False)
    assert (
        sfumato("evaluate", str(study), "--original", "visits.csv", "--released", "sorted.csv", "--workspace", "v") == 2
    )
    assert "differ from the original, and it is not released" in capsys.readouterr().err


@pytest.mark.usefixtures("in_process")
@pytest.mark.slow
def test_evaluate_pairs_a_release_with_the_records_that_have_no_missing_value(
    study: Path, visits_table: pd.DataFrame, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """Leaving different records out of both files would pair strangers; equal numbers must not hide it."""
    study.write_text(study.read_text().replace("[data]", '[data]\nmissing = "drop"'))
    original, released = visits_table.astype({"age": object}), visits_table.astype({"age": object})
    original.loc[3, "age"], released.loc[9, "age"] = None, None
    original.to_csv("visits.csv", index=False)
    arguments = ("evaluate", str(study), "--original", "visits.csv", "--workspace", "v", "--quiet", "--released")
    released.to_csv("other.csv", index=False)
    assert sfumato(*arguments, "other.csv") == 2
    assert "no value" in capsys.readouterr().err
    visits_table.drop(index=3).to_csv("same.csv", index=False)
    assert sfumato(*arguments, "same.csv") == 1  # the confidential values themselves were released
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_import_describes_a_file_and_drafts_a_recipe_that_is_valid(
    study: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sfumato("import", "visits.csv", "--workspace", "w", "--recipe", "draft.toml") == 0
    out = capsys.readouterr().out
    assert '60 records in project "visits"' in out
    assert sfumato("import", "visits.csv", "--workspace", "v", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["stored"], found["project"], found["records"], found["dropped"]) == (True, "visits", 60, 0)
    columns = {one["name"]: one for one in found["columns"]}
    assert (columns["visits"]["kind"], columns["visits"]["included"]) == ("count", True)
    assert found["recipe"]["variables"].keys() == columns.keys()
    assert sfumato("import", "visits.csv", "--preview", "--json") == 0
    assert json.loads(capsys.readouterr().out)["stored"] is False
    assert Recipe.from_toml(Path("draft.toml").read_text()).schema["visits"].kind == "count"
    workspace = Workspace.open(Path("w"))
    assert [dataset.records for dataset in workspace.list_datasets(1)] == [60]
    workspace.close()
    assert sfumato("import", "visits.csv", "--workspace", "w", "--recipe", "draft.toml") == 2


@pytest.mark.usefixtures("read_here", "study")
@pytest.mark.slow
@pytest.mark.parametrize("preview", [["--preview"], []])
def test_import_shows_the_first_rows_below_their_reading_only_where_they_are_wanted(
    visits_table: pd.DataFrame, sfumato: Command, capsys: pytest.CaptureFixture[str], preview: list[str]
) -> None:
    cost = f"{visits_table['cost'][9]}"
    if not preview:
        assert sfumato("import", "visits.csv", "--workspace", "w") == 0
        assert cost not in capsys.readouterr().out
    assert sfumato("import", "visits.csv", "--workspace", "w", "--rows", *preview) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("First rows, confidential:")
    shown = [line.strip() for line in lines[at + 1 :] if line.strip()]
    heads = [line.partition("  ")[0] for line in shown]
    assert heads[heads.index("read as") :][:3] == ["read as", "role", "missing"]
    assert [f"row {number}" in heads for number in range(1, 12)] == [True] * 10 + [False]
    assert any(cost in line for line in shown)
    assert sfumato("import", "visits.csv", "--workspace", "w", "--rows", "--json", *preview) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["first_rows"]["visits"] == [str(value) for value in visits_table["visits"][:10]]


@pytest.mark.usefixtures("read_here")
@pytest.mark.slow
def test_import_finds_how_a_file_is_written_and_the_recipe_reads_it_so(
    study: Path, visits_table: pd.DataFrame, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"Zoé {i};{i % 7};1.{i:03},50;{'?' if i == 4 else 'b'}" for i in range(60)]
    Path("odd.csv").write_bytes("\r\n".join(["name;visits;income;group", *lines]).encode("windows-1252"))
    assert sfumato("import", "odd.csv", "--preview", "--workspace", "w") == 0
    out = capsys.readouterr().out
    assert not Path("w").exists()
    for words in (
        "windows-1252",
        "semicolon",
        "1.000,50",
        '"?" stands in 1 of the cells',
        "--encoding NAME says which",
    ):
        assert words in out
    options = ("--encoding", "windows-1252", "--delimiter", ";")
    assert sfumato("import", "odd.csv", *options, "--workspace", "w", "--recipe", "odd.toml") == 0
    assert "says which" not in capsys.readouterr().out
    recipe = Recipe.from_toml(Path("odd.toml").read_text())
    assert recipe.data.format is not None
    source = find_source("odd.csv")
    found = read_file_microdata(source, recipe.data, recipe.schema, 1, key=PUBLIC)
    assert len(found) == 60, "the record with a missing value stays"
    assert found.numbers("income").tolist() == [1000.5 + i for i in range(60)]
    assert sfumato("import", "odd.csv", "--delimiter", "xx", "--workspace", "v") == 2
    assert "data.format.delimiter" in capsys.readouterr().err
    assert not Path("v").exists()


@pytest.mark.usefixtures("read_here")
@pytest.mark.slow
def test_import_of_fixed_widths_says_and_takes_them(
    study: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("fixed.dat").write_text("".join(f"{20 + i % 50}{'MF'[i % 2]} {100 + i}\n" for i in range(80)))
    assert sfumato("import", "fixed.dat", "--workspace", "w") == 2
    assert "--widths 2,2,3;" in capsys.readouterr().err
    given = ("--widths", "2,1", "--widths", "4", "--names", "age,sex, visits")
    assert sfumato("import", "fixed.dat", *given, "--workspace", "w", "--recipe", "fixed.toml") == 0
    recipe = Recipe.from_toml(Path("fixed.toml").read_text())
    found = read_file_microdata(find_source("fixed.dat"), recipe.data, recipe.schema, 1, key=PUBLIC)
    assert found.numbers("age").tolist() == [20 + i % 50 for i in range(80)]
    assert sfumato("import", "fixed.dat", "--widths", "2,x", "--workspace", "v") == 2
    assert '"x" is no number of characters' in capsys.readouterr().err


def test_others_can_write_while_an_import_writes_its_table(
    study: Path, sfumato: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In SQLite a second writer waits until the first one's transaction ends."""
    assert sfumato("init", "w") == 0
    written, write = [], TableStore.write_microdata

    def beside_a_writer(tables: TableStore, data: Microdata) -> str:
        with closing(sqlite3.connect(tables.directory.parent / DATABASE, timeout=0)) as other:
            other.execute("BEGIN IMMEDIATE")
        written.append(len(data))
        return write(tables, data)

    monkeypatch.setattr(TableStore, "write_microdata", beside_a_writer)
    assert import_file(study.parent / "w", "visits.csv", "").records == 60
    assert written == [60]


@pytest.mark.usefixtures("in_process")
@pytest.mark.slow
def test_the_answer_of_a_minimisation_is_printed_under_its_own_heading(
    study: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = study.read_text().partition("[[measure]]")[0]
    minimisation = '[[study]]\nmethod = "studies.minimisation"\nk = 2\nn = 20\nstep = 1.0\nsubsamples = 1\n'
    limits = "rho = 0.0\nnmi = 0.0\nrilm_categorical = 0.0\nnon_suppressed = 0.0\n"
    study.write_text(f"{recipe}{minimisation}{limits}")
    assert sfumato("run", str(study), "--workspace", "w", "--jobs", "1") == 0
    out = capsys.readouterr().out
    heading = "Smallest sufficient sample\nA sample of 20 records is enough: every sub-sample of this size meets the limits of data quality"
    assert heading in out
    assert "Intruder knowledge" not in out


def test_methods_and_recipes_are_listed(sfumato: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert sfumato("methods") == 0
    assert "risk.identification" in capsys.readouterr().out
    assert sfumato("methods", "identification") == 0
    assert "Reiter & Mitra" in capsys.readouterr().out
    assert sfumato("recipes") == 0
    out = capsys.readouterr().out
    assert "airbnb" in out
    assert "randhie" in out


def test_every_shipped_recipe_is_valid_and_is_printed_as_it_is(
    sfumato: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("airbnb", "randhie"):
        assert sfumato("recipes", name) == 0
        recipe = Recipe.from_toml(capsys.readouterr().out)
        assert Recipe.from_toml(recipe.to_toml()) == recipe


@pytest.mark.usefixtures("in_process")
@pytest.mark.slow
def test_doctor_finds_a_damaged_table(study: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert sfumato("run", str(study), "--workspace", "w", "--quiet") == 0
    assert sfumato("doctor", "--workspace", "w", "--json") == 0
    assert all(finding["state"] != "problem" for finding in json.loads(capsys.readouterr().out)["findings"])
    table = next(Path("w/tables").iterdir())
    content = bytearray(table.read_bytes())
    content[len(content) // 2] ^= 1
    table.chmod(0o600)
    table.write_bytes(bytes(content))
    assert sfumato("doctor", "--workspace", "w") == 2
    assert table.name in capsys.readouterr().out


def test_the_app_needs_a_terminal(home: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert sfumato() == 2
    assert "needs a terminal" in capsys.readouterr().err


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom sfumato.tui.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'textual', 'numpy', 'pandas', 'scipy', 'duckdb', 'pyarrow'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
