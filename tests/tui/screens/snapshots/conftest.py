"""A workspace that is the same on every machine and on every day, and pictures to hold the screens against."""

import difflib
import os
import re
import shutil
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from believed import believed_workspace
from prepared_tables import HOUSEHOLD_PLAN, household_survey
from prepared_workspaces import enter_recipe, reseal

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.session.gate_answers import ASKING
from sfumato.workspace.jobs.queue import claim_task, fail_task, stop_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.database import DATABASE
from sfumato.workspace.store.runs import RunState
from sfumato.workspace.store.workspace import Workspace

HERE = Path(__file__).parent
FIRST = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
UPDATE = "SFUMATO_UPDATE_PICTURES"
LOOKS = 20
"""A screen on a busy machine is looked at again before it is said to differ."""


class Clock(datetime):
    """A clock of the audit log that goes on by a minute at each look."""

    looks = 0

    @classmethod
    def now(cls, tz=None):
        cls.looks += 1
        return FIRST + timedelta(minutes=cls.looks)


def survey():
    recipe = Recipe.from_table(HOUSEHOLD_PLAN)
    return recipe, conform_to_schema(household_survey().round({"income": 2}), recipe.schema)


def pin(directory):
    """Runs that took as long, and tasks that needed as much, wherever they ran."""
    first = FIRST.timestamp()
    with closing(sqlite3.connect(directory / DATABASE)) as connection, connection:
        connection.execute("UPDATE run SET created = ? + id * 3600", (first,))
        connection.execute("UPDATE run SET key_public = 0")  # figures of the seed alone, shown as those of any run
        connection.execute("UPDATE run SET started = created + 2 WHERE started IS NOT NULL")
        connection.execute("UPDATE run SET finished = created + 14 WHERE finished IS NOT NULL")
        connection.execute("UPDATE task SET seconds = 0.5, peak_bytes = 90e6 WHERE seconds IS NOT NULL")
        connection.execute("UPDATE worker SET started = ?, heartbeat = ?, stopped = ?", (first, first, first))


@pytest.fixture(scope="session")
def warm(tmp_path_factory):
    """What is done once a process is done, so that it looks at no clock of ours."""
    directory = tmp_path_factory.mktemp("warm") / "workspace"
    Workspace.create(directory, PUBLIC).close()
    Workspace.open(directory).close()


@pytest.fixture(scope="session")
def fixed(tmp_path_factory, warm):
    """Runs that are done, failed and interrupted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.workspace.audit.datetime", Clock)
        patch.setattr(Clock, "looks", 0)
        patch.setattr("sfumato.workspace.audit.user", lambda: "analyst")
        workspace = Workspace.create(tmp_path_factory.mktemp("fixed") / "workspace", PUBLIC)
        recipe, data = survey()
        runs = [enter_recipe(workspace, recipe, data, "survey.csv")]
        run_worker(workspace.directory, idle=0)
        runs.append(enter_recipe(workspace, recipe, data, "survey.csv"))
        fail_task(workspace, claim_task(workspace, "w"), "the worst R-hat is 1.2, must be at most 1.01")
        runs.append(enter_recipe(workspace, recipe, data, "survey.csv"))
        stop_run(workspace, runs[-1], RunState.INTERRUPTED)
        workspace.close()
    pin(workspace.directory)
    with Workspace.open(workspace.directory) as opened:
        reseal(opened)
    return workspace.directory


@pytest.fixture(scope="session")
def workspace_with_beliefs(tmp_path_factory, warm):
    """A run of which an intruder was asked who knows all records but one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.workspace.audit.datetime", Clock)
        patch.setattr(Clock, "looks", 0)
        patch.setattr("sfumato.workspace.audit.user", lambda: "analyst")
        directory = believed_workspace(tmp_path_factory.mktemp("believed") / "workspace")
    pin(directory)
    with Workspace.open(directory) as opened:
        reseal(opened)
    return directory


@pytest.fixture
def desk(fixed, tmp_path, monkeypatch):
    """A copy of the workspace, named as everywhere, under a clock of UTC."""
    yield from at_desk(fixed, tmp_path, monkeypatch)


@pytest.fixture
def believed_desk(workspace_with_beliefs, tmp_path, monkeypatch):
    """The same of the run of beliefs."""
    yield from at_desk(workspace_with_beliefs, tmp_path, monkeypatch)


@pytest.fixture
def tabled_desk(tabled, tmp_path, monkeypatch, warm):
    """The same of the run of protected tables."""
    pin(tabled)
    with Workspace.open(tabled) as opened:
        reseal(opened)
    desk = tmp_path / "desk"
    desk.mkdir()
    yield from at_desk(tabled, desk, monkeypatch)


@pytest.fixture
def towns_desk(towns, tmp_path, monkeypatch):
    """The same of the run of subsets."""
    pin(towns)
    with Workspace.open(towns) as opened:
        reseal(opened)
    yield from at_desk(towns.rename(tmp_path / "made"), tmp_path, monkeypatch)


def at_desk(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    time.tzset()
    shutil.copytree(made, "workspace")
    yield Path("workspace")
    monkeypatch.undo()
    time.tzset()


def portable(svg):
    """A picture without fonts that would be fetched, names that are numbers, and hashes that depend on versions."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code", "DejaVu Sans Mono")
    svg = re.sub(r"<!--.*?-->\s*", "", svg)
    svg = re.sub(r"\n\s*\n", "\n", re.sub(r"terminal-\d+", "t", svg))
    return re.sub(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{12,}\b", lambda found: "0" * len(found[0]), svg)


def words(svg):
    """What stands in a picture, a line a text."""
    return [re.sub(r"&#160;", " ", text).rstrip() for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


@pytest.fixture
def hold(tmp_path_factory):
    """Hold what the app shows against a picture; the new one lies beside the tests' other files when they differ."""

    async def held(seat, name):
        file = HERE / f"{name}.svg"
        before = file.read_text("utf-8") if file.exists() else ""
        # On a busy machine the gate's answer comes later than everything else.
        await seat.until(lambda: ASKING not in seat.text)
        for _ in range(LOOKS):
            svg = portable(seat.app.export_screenshot(title="Sfumato"))
            if svg == before:
                return
            await seat.pilot.pause(0.05)
        if os.environ.get(UPDATE):
            file.write_text(svg, "utf-8")
        else:
            new = tmp_path_factory.mktemp("pictures") / file.name
            new.write_text(svg, "utf-8")
            changes = list(difflib.unified_diff(words(before), words(svg), "stored", "now", n=0, lineterm=""))
            said = "\n".join(changes[2:30]) or "the same words in other colours or places"
            pytest.fail(f"{name} looks otherwise: {new}\n{said}\nTo keep it: {UPDATE}=1 pytest {HERE}", pytrace=False)

    return held
