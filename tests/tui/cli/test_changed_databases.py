"""Sixty changes of a workspace by other means: no command prints anything else for them without one that names the change.

Commands that give out what a run found must name it themselves, with an exit status; lists may leave that to ``audit verify``.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from keyed_workspace import KEY

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.ingest.files import SourceFile
from sfumato.workspace.jobs.queue import stop_run
from sfumato.workspace.jobs.runs import enter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.places import state_directory
from sfumato.workspace.store.runs import RunState
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow

Command = Callable[..., int]
Change = str | Callable[[Path], None]
SOURCE = SourceFile("simulated.csv", b"simulated")

STATEMENTS = (
    # verdicts
    "UPDATE verdict SET verdict = json_set(verdict, '$.outcome', 'pass', '$.margin', 0.1)",
    "UPDATE verdict SET verdict = json_set(verdict, '$.outcome', 'fail') WHERE run_id = 1",
    "UPDATE verdict SET verdict = json_set(verdict, '$.limit', 0.9) WHERE run_id = 1",
    "UPDATE verdict SET verdict = json_set(verdict, '$.observed', 0.0) WHERE run_id = 1",
    "UPDATE verdict SET position = position + 1 WHERE run_id = 1",
    "DELETE FROM verdict WHERE run_id = 1",
    "INSERT INTO verdict SELECT run_id, position + 1, verdict FROM verdict WHERE run_id = 1",
    # result rows
    "UPDATE result SET value = value / 2 WHERE run_id = 1 AND draw IS NULL AND measure = 'true_match_rate'",
    "UPDATE result SET value = 0 WHERE run_id = 1 AND draw = 2",
    "UPDATE result SET lower = value, upper = value WHERE run_id = 1",
    "UPDATE result SET baseline = 1 WHERE run_id = 1",
    "UPDATE result SET status = 'not computed', value = NULL, reason = 'too few' WHERE run_id = 1 AND id % 5 = 0",
    "UPDATE result SET target = 'visits' WHERE run_id = 1 AND target = 'income'",
    "UPDATE result SET draw = 4 - draw WHERE run_id = 1",
    "UPDATE result SET params = '{\"radius\": 9}' WHERE run_id = 1",
    "UPDATE result SET unit = 'share' WHERE run_id = 1",
    "UPDATE result SET measure = 'expected_match_risk' WHERE run_id = 1 AND measure = 'true_match_rate'",
    "DELETE FROM result WHERE run_id = 1 AND family = 'risk'",
    "DELETE FROM result WHERE run_id = 1 AND draw = 3",
    "INSERT INTO result SELECT NULL, run_id, task_id, family, method, measure, target, dataset, draw, level, 0, lower, upper, "
    "baseline, unit, status, reason, params FROM result WHERE run_id = 1 AND draw IS NULL",
    "UPDATE result SET run_id = 3 - run_id WHERE run_id IN (1, 2)",
    "UPDATE result SET task_id = (SELECT min(id) FROM task WHERE run_id = 1) WHERE run_id = 1 AND family = 'risk'",
    # recipe and columns of the run
    "UPDATE run SET recipe = replace(recipe, 'max = 0.5', 'max = 0.001') WHERE id = 1",
    "UPDATE run SET recipe = replace(recipe, 'Small study', 'Large study') WHERE id = 1",
    "UPDATE run SET recipe_sha256 = lower(hex(zeroblob(32))) WHERE id = 1",
    "UPDATE run SET title = 'Approved study' WHERE id = 1",
    "UPDATE run SET seed = 8 WHERE id = 1",
    "UPDATE run SET versions = json_set(versions, '$.numpy', '1.0') WHERE id = 1",
    "UPDATE run SET state = 'done' WHERE id = 3",
    "UPDATE run SET state = 'failed', error = 'it did not converge' WHERE id = 1",
    "UPDATE run SET error = 'nothing' WHERE id = 1",
    "UPDATE run SET finished = finished + 3600 WHERE id = 1",
    "UPDATE run SET created = 0 WHERE id = 1",
    "UPDATE run SET key_public = 1 WHERE id = 1",
    "UPDATE run SET dataset_id = 2 WHERE id = 1",
    "INSERT INTO run SELECT 7, project_id, dataset_id, 'Another', recipe, recipe_sha256, seed, versions, state, created, started, "
    "finished, error, key_public, key_fingerprint FROM run WHERE id = 1",
    "DELETE FROM run WHERE id = 2",
    "INSERT INTO companion VALUES (1, 0, 2)",
    # hashes, datasets, projects
    "UPDATE artefact SET sha256 = (SELECT table_sha256 FROM dataset WHERE id = 1) WHERE run_id = 1 AND name = 'draw/1'",
    "UPDATE artefact SET sha256 = (SELECT sha256 FROM artefact WHERE run_id = 1 AND name = 'draw/2') WHERE name = 'draw/1'",
    "DELETE FROM artefact WHERE run_id = 1 AND name = 'draw/3'",
    "INSERT INTO artefact SELECT 1, 'draw/4', sha256 FROM artefact WHERE run_id = 1 AND name = 'draw/1'",
    "UPDATE dataset SET source_sha256 = lower(hex(zeroblob(32))) WHERE id = 1",
    "UPDATE dataset SET records = 8000, dropped = 12 WHERE id = 1",
    "UPDATE dataset SET name = 'public.csv' WHERE id = 1",
    "UPDATE project SET name = 'Another'",
    # tasks
    "UPDATE task SET seconds = 900 WHERE run_id = 1",
    "UPDATE task SET error = 'odd', attempt = 5 WHERE run_id = 1 AND id % 2 = 0",
    "UPDATE task SET state = 'waiting' WHERE run_id = 1 AND kind = 'measure'",
    "DELETE FROM task WHERE run_id = 1 AND kind = 'draw'",
    "INSERT INTO task (run_id, key, kind, item, state, blockers) VALUES (1, 'measure/9/1', 'measure', 9, 'done', 0)",
    # the audit log and the seals
    "UPDATE audit SET details = json_set(details, '$.user', 'maria') WHERE number = 3",
    "UPDATE audit SET time = '2020-01-01T00:00:00+00:00' WHERE number = 2",
    "DELETE FROM audit WHERE act = 'run interrupted'",
    "UPDATE audit_head SET number = number - 1",
    "DELETE FROM audit_seal WHERE number = 4",
    "UPDATE seal SET seal = zeroblob(32)",
    "DELETE FROM seal WHERE part LIKE 'rows %'",
    # what acts by itself
    "CREATE TRIGGER late AFTER INSERT ON audit BEGIN UPDATE verdict SET verdict = json_set(verdict, '$.outcome', 'pass'); END",
    "CREATE TEMP VIEW unused AS SELECT 1",
)
FLIPS = 24


def flipped(seed: int) -> Callable[[Path], None]:
    """Eight bytes of the database changed, wherever they are."""

    def change(directory: Path) -> None:
        rng = random.Random(seed)
        path = directory / "workspace.db"
        content = bytearray(path.read_bytes())
        for _ in range(8):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)

    return change


def swapped(directory: Path) -> None:
    """The bytes of one stored table in the place of all others."""
    first, *others = sorted((directory / "tables").iterdir())
    for other in others:
        shutil.copy(first, other)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, small: tuple[Recipe, Microdata]) -> Path:
    """Two runs that are done, the first passes and the second fails; one that was interrupted; a dataset beside theirs."""
    directory = tmp_path_factory.mktemp("original") / "workspace"
    recipe, data = small
    strict = Recipe.from_table(
        {**recipe.to_table(), "threshold": [{"value": "risk.identification.true_match_rate", "max": 0.0}]}
    )
    with Workspace.create(directory, KEY) as workspace:
        enter_run(workspace, recipe, SOURCE, data)
        enter_run(workspace, strict, SOURCE, data)
        run_worker(directory, idle=0)
        stop_run(workspace, enter_run(workspace, recipe, SOURCE, data), RunState.INTERRUPTED)
        with workspace.write_transaction():
            workspace.add_dataset(1, "other.csv", "0" * 64, data)
        workspace.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return directory


GIVING = {
    "results": ("results", "1", "--draws"),
    "results of 2": ("results", "2"),
    "json": ("results", "1", "--json", "-"),
    "compare": ("compare", "1", "2"),
    "records": ("records", "1", "--json", "-"),
    "report": ("report", "1", "-o", "report.html"),
    "release": ("release", "1", "-o", "out", "--reason", "agreed with the board"),
    "runs 1": ("runs", "1"),
}
"""Commands that give out what a run found."""
LISTS = {"runs": ("runs",), "audit list": ("audit", "list"), "audit verify": ("audit", "verify")}


Outcome = tuple[int, str, str]


def outcomes(directory: Path, sfumato: Command, capsys: pytest.CaptureFixture[str]) -> dict[str, Outcome]:
    """The exit status of every command, all it prints or writes, and what it says on standard error."""
    found = {}
    for name, arguments in {**GIVING, **LISTS}.items():
        status = sfumato(*arguments, "--workspace", str(directory))
        said = capsys.readouterr()
        written = "".join(map(contents, ("report.html", "out"))) if name in ("report", "release") else ""
        found[name] = (status, said.out.replace(str(directory), "DIR") + written, said.err)
        Path("report.html").unlink(missing_ok=True)
        shutil.rmtree("out", ignore_errors=True)
        if name in ("report", "release"):
            for other in ("", "-wal", "-shm"):  # they added an act: back to what it was
                Path(f"{directory}/workspace.db{other}").unlink(missing_ok=True)
            for file in ("workspace.db", "audit.head"):
                shutil.copy(directory.with_name("kept") / file, directory / file)
            shutil.rmtree(state_directory() / "heads", ignore_errors=True)
    return found


def contents(name: str) -> str:
    """What was written, as text."""
    path = Path(name)
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return "".join(f"{file}\n{file.read_bytes()!r}\n" for file in files if file.is_file())


def alter(directory: Path, change: Change) -> None:
    """Make a change by other means than ours, the triggers that guard the log put back as they were."""
    if callable(change):
        change(directory)
        return
    with contextlib.closing(sqlite3.connect(directory / "workspace.db")) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(change)
        for _, sql in guards:
            connection.execute(sql)
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.fixture
def change_workspace(original: Path, tmp_path: Path) -> Iterator[Callable[[Change | None], Path]]:
    """A copy of the workspace with a change made, or none."""

    def make(change: Change | None) -> Path:
        directory, kept = tmp_path / "workspace", tmp_path / "kept"
        for path in (directory, kept):
            shutil.rmtree(path, ignore_errors=True)
        shutil.rmtree(
            state_directory() / "heads", ignore_errors=True
        )  # what the workspace itself shows is looked at here
        shutil.copytree(original, directory)
        if change is not None:
            alter(directory, change)
        kept.mkdir()
        for file in ("workspace.db", "audit.head"):
            shutil.copy(directory / file, kept / file)
        return directory

    return make


def judged(before: Mapping[str, Outcome], after: Mapping[str, Outcome]) -> str:
    """What became of a change; fails where something else is printed and no command names it."""
    silent = [name for name, (status, out, _) in after.items() if out != before[name][1] and status == before[name][0]]
    named = [name for name, (status, _, said) in after.items() if status not in (0, before[name][0]) and said.strip()]
    assert not [name for name in silent if name in GIVING], "given out as if nothing were"
    assert not silent or "audit verify" in named, f"{silent} print something else, and audit verify is content"
    assert not [(name, said) for name, (_, _, said) in after.items() if "internal error" in said]
    if not named:
        return "changes nothing printed"
    return "named by what gives out runs" if set(named) & set(GIVING) else "named by audit verify"


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.study)])
def test_what_alters_anything_printed_is_named(
    change_workspace: Callable[[Change | None], Path],
    home: Path,
    sfumato: Command,
    capsys: pytest.CaptureFixture[str],
    every: int,
) -> None:
    before = outcomes(change_workspace(None), sfumato, capsys)
    assert {name: status for name, (status, _, _) in before.items() if status} == {}
    assert outcomes(change_workspace(None), sfumato, capsys) == before, (
        "the control: what nobody changed prints the same"
    )
    counted: Counter[str] = Counter()
    changes: list[Change] = [*STATEMENTS, swapped, *map(flipped, range(FLIPS))]
    for change in changes[::every]:
        try:
            outcome = judged(before, outcomes(change_workspace(change), sfumato, capsys))
        except AssertionError as error:
            raise AssertionError(f"{change}: {error}") from None
        kind = "statements" if isinstance(change, str) else "tables swapped" if change is swapped else "bytes flipped"
        counted[f"{kind}: {outcome}"] += 1
    assert len(changes) >= 60
    print("\n".join(f"{number:4}  {what}" for what, number in sorted(counted.items())))
    assert counted["statements: changes nothing printed"] <= 2
