"""A workspace in every state that a screen can meet, and the app on a copy of it."""

import asyncio
import shutil
import time
from contextlib import asynccontextmanager

import pytest
from prepared_tables import HOUSEHOLD_PLAN, household_survey
from prepared_workspaces import enter_recipe
from protected_towns import run_of_tables
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.css.stylesheet import Stylesheet
from towns import towns_workspace

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.app.app import SfumatoApp
from sfumato.tui.parts.verdict_board import VerdictBoard
from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.jobs.queue import TaskResult, claim_task, fail_task, finish_task, record_progress, stop_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.database import DATABASE
from sfumato.workspace.store.keys import KEY_FILE
from sfumato.workspace.store.runs import RunState
from sfumato.workspace.store.workspace import Workspace

SIZES = [
    (80, 24),
    pytest.param((120, 40), marks=[pytest.mark.sizes, pytest.mark.again]),
    pytest.param((200, 60), marks=[pytest.mark.sizes, pytest.mark.again]),
]
DONE, FAILED, INTERRUPTED, RUNNING = 1, 2, 3, 4
RECIPE = {
    **HOUSEHOLD_PLAN,
    "study": [{**HOUSEHOLD_PLAN["study"][0], "model": model} for model in ("log_normal", "log_normal_constant")],
}


def survey():
    recipe = Recipe.from_table(RECIPE)
    return recipe, conform_to_schema(household_survey(), recipe.schema)


def enter(workspace):
    recipe, data = survey()
    return enter_recipe(workspace, recipe, data, "survey.csv")


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Runs 1 to 4: done, failed, interrupted, running; and a project without runs."""
    workspace = Workspace.create(tmp_path_factory.mktemp("built") / "workspace", PUBLIC)
    assert enter(workspace) == DONE
    run_worker(workspace.directory, idle=0)
    assert enter(workspace) == FAILED
    fail_task(workspace, claim_task(workspace, "w"), "the worst R-hat is 1.2, must be at most 1.01")
    stop_run(workspace, enter(workspace), RunState.INTERRUPTED)
    assert enter(workspace) == RUNNING
    finish_task(workspace, claim_task(workspace, "w"), TaskResult(seconds=1.0))
    record_progress(workspace, claim_task(workspace, "w"), 400, 2000, "emcee")
    with workspace.write_transaction() as connection:
        workspace.ensure_project("Second project")
        connection.execute("INSERT INTO worker VALUES ('w', 1, ?, ?, NULL)", (time.time(), time.time()))
    workspace.close()
    return workspace.directory


@pytest.fixture
def directory(built, tmp_path):
    """A copy of the built workspace whose worker has just given a sign of life."""
    copy = tmp_path / "workspace"
    copy.mkdir()
    for file in (*built.glob(f"{DATABASE}*"), built / KEY_FILE):
        shutil.copy(file, copy)
    workspace = Workspace.open(copy)
    with workspace.write_transaction() as connection:
        connection.execute("UPDATE worker SET stopped = ?", (time.time(),))
        connection.execute("UPDATE worker SET heartbeat = ?, stopped = NULL WHERE id = 'w'", (time.time(),))
    workspace.close()
    return copy


@pytest.fixture
def built_data(built, directory):
    """The copy with the stored tables beside it."""
    shutil.copytree(built / "tables", directory / "tables")
    return directory


@pytest.fixture
def private_data(tmp_path):
    """A workspace with a key of its own and the survey in it: with a public key no plan has an epsilon."""
    with Workspace.create(tmp_path / "private", bytes(range(32))) as workspace:
        stop_run(workspace, enter(workspace), RunState.INTERRUPTED)
    return tmp_path / "private"


@pytest.fixture
def empty_workspace(tmp_path, known_keys):
    """A workspace with nothing in it."""
    Workspace.create(tmp_path / "empty").close()
    return tmp_path / "empty"


WORK = {"Private": 60, "State-gov": 15, "Local-gov": 15, "Federal-gov": 9, "Never": 1}


@pytest.fixture
def anonymising(empty_workspace, tmp_path):
    """A project that was made by an import of 100 people, whose plan recodes ages and kinds of work."""
    from sfumato.workspace.plan.drafts import find_draft, save_draft
    from sfumato.workspace.service.importing import import_file

    work = [name for name, records in WORK.items() for _ in range(records)]
    rows = "\n".join(f"{17 + i % 73},{one},{'ab'[i % 2]}" for i, one in enumerate(work))
    (tmp_path / "people.csv").write_text(f"age,work,ill\n{rows}\n")
    import_file(empty_workspace, str(tmp_path / "people.csv"), "")
    with Workspace.open(empty_workspace) as workspace:
        draft = find_draft(workspace, 1)
        told = draft.toml.replace('role = "other"', 'role = "quasi_identifier"', 2).replace("m = 5\n", "")
        step = '[[anonymisation]]\nmethod = "generalisation"\nlevels = { age = 1, work = 1 } # one level up\n'
        save_draft(workspace, draft.with_text(f"{told}\n{step}"))
    save_state(empty_workspace, AppState(project=1, tab="plan"))
    return empty_workspace


TURNS = 20
"""Turns of the event loop in which messages are handed on: on a busy machine a pause may be over after one."""


def messages_wait(app):
    """Whether a message, or what a closed dialog has answered, is still on its way to the app, a screen or a widget of one."""
    pumps = (app, *app.screen_stack, *(widget for screen in app.screen_stack for widget in screen.walk_children()))
    return any(pump.message_queue_size or pump._next_callbacks for pump in pumps)


async def follow_parent(pilot):
    """Wait until no thread reads, no key is about to do something and no message waits.

    Once that is so, every widget is asked whether it has done what it was given, and then it must stay so: to ask them each time
    costs as much as what a key does.
    """
    quiet = waited = 0
    while quiet < 3:
        waited += 1
        assert waited < 3000 or not pilot.app.is_acting, "a key's follower was lost"
        busy = (
            pilot.app.is_acting
            or any(not worker.is_finished for worker in pilot.app.workers)
            or messages_wait(pilot.app)
        )
        quiet = 0 if busy else quiet + 1
        if quiet == 1:
            await pilot.pause(0.002)
        else:
            await asyncio.sleep(0.002)
            pilot.app.screen._on_timer_update()
        for _ in range(TURNS):
            await asyncio.sleep(0)


def text_of(app):
    """What the terminal shows."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


class Seat:
    """Somebody at the terminal: presses keys, waits, reads."""

    def __init__(self, pilot):
        self.pilot, self.app = pilot, pilot.app

    async def press(self, *keys):
        await self.press_unseen(*keys)
        return self.text

    async def press_unseen(self, *keys):
        """Press keys without looking at what they do."""
        for key in keys:
            await self.pilot.press(key)
            await follow_parent(self.pilot)

    async def until(self, done, seconds=60.0):
        """Wait for what comes from beside the app, however busy the machine is, then until nothing more happens."""
        end = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < end, f"nothing came\n{self.text}"
            await self.pilot.pause(0.01)
        await follow_parent(self.pilot)

    @property
    def text(self):
        """What the terminal shows, without the sides of frames."""
        return "\n".join(
            line.removeprefix("│").removesuffix("│").rstrip() if line.startswith("│") else line
            for line in text_of(self.app).splitlines()
        )

    async def to_verdict(self, place=0):
        """Go down to a verdict on the board, past the findings of the gate."""
        board = self.app.screen.query_one(VerdictBoard)
        for _ in range(MOST_ENTRIES):
            if board.chosen_verdict is not None:
                break
            await self.press("j")
        assert board.chosen_verdict is not None, f"no verdict among {MOST_ENTRIES} entries:\n{self.text}"
        await self.press(*["j"] * place)

    @property
    def footer(self):
        return self.text.splitlines()[-1]

    @property
    def reading(self):
        """What a screen says of the place of its cursor: in the lower edge of its frame, or above it where that says the next step."""
        above = self.text.splitlines()[:-1]
        said = "" if self.app.screen.query("#next-step") else above[-1].strip("╰╯─ ")
        return said or above[-2]


MOST_ENTRIES = 100
"""Entries of a board of verdicts, above which no test has one."""
DRAW = Compositor.render_update


def nothing_to_send(compositor, full=False, screen_stack=None, simplify=False):
    """Only pictures that are asked for: there is no terminal to send others to, and ``Seat.press`` draws the screen after every key."""
    if full:
        return DRAW(compositor, full, screen_stack, simplify)
    visible_screen_stack.set(screen_stack or [])
    compositor._dirty_regions.clear()
    return None


@pytest.fixture
def drawing():
    """For tests of what is sent to a terminal, and how soon: every picture is drawn."""


PARSE, PARSED = Stylesheet._parse_rules, {}


def parse_once(stylesheet, *source, **options):
    """Textual keeps the rules of a style sheet for one app and one theme: the next app of the tests has the same."""
    of = frozenset(stylesheet._variables.items()), source, frozenset(options.items())
    if of not in PARSED:
        PARSED[of] = PARSE(stylesheet, *source, **options)
    return PARSED[of]


@pytest.fixture
def sit(request, monkeypatch, tmp_path):
    """Run the app on a workspace and sit down at it."""
    monkeypatch.setattr(Stylesheet, "_parse_rules", parse_once)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(
        "textual.app.wait_for_idle", lambda _: asyncio.sleep(0.001)
    )  # Pilot waits after each key anyway
    # A test that looks at a page of findings needs no examination beside it, which takes seconds.
    monkeypatch.setattr("sfumato.tui.app.project.ASK_SECONDS", 3600)
    if "drawing" not in request.fixturenames:
        monkeypatch.setattr(Compositor, "render_update", nothing_to_send)

    @asynccontextmanager
    async def at(directory, *keys, size=(120, 40), run_id=None, tab=None):
        if tab is not None:
            save_state(directory, AppState(project=1, run=DONE, tab=tab))
        app = SfumatoApp(directory, run_id)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await follow_parent(pilot)
            seat = Seat(pilot)
            text_of(app)  # who presses a key has seen the screen: a plot makes its picture as it is drawn
            await follow_parent(pilot)
            await seat.press(*keys)
            yield seat

    return at


@pytest.fixture(params=SIZES, ids=lambda size: "x".join(map(str, size)))
def size(request):
    """The terminals that the app is made for."""
    return request.param


@pytest.fixture
def no_worker(monkeypatch):
    """Workers are asked for but not started; the list of who asked."""
    asked = []

    def start_worker(directory, jobs=1):
        asked.append((directory, jobs))

    monkeypatch.setattr("sfumato.workspace.jobs.worker.start_worker", start_worker)
    return asked


@pytest.fixture(scope="session")
def towns_once(tmp_path_factory):
    """A run of which every subset of what an intruder may know was asked about."""
    return towns_workspace(tmp_path_factory.mktemp("towns") / "workspace")


@pytest.fixture
def towns(towns_once, tmp_path):
    """A copy of it."""
    return shutil.copytree(towns_once, tmp_path / "workspace")


@pytest.fixture(scope="session")
def towns_of_tables(tmp_path_factory):
    """A run of protected tables."""
    directory = tmp_path_factory.mktemp("tabled") / "workspace"
    run_of_tables(directory)
    return directory


@pytest.fixture
def tabled(towns_of_tables, tmp_path):
    """A copy of it."""
    return shutil.copytree(towns_of_tables, tmp_path / "workspace")
