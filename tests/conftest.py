"""What all tests share: a state of their own, public data where they are, and the small study in a workspace."""

from __future__ import annotations

import atexit
import gc
import itertools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

# Before the libraries are loaded: every worker of pytest has a core of its own, as a task has.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings
from prepared_tables import SMALL_RECIPE, small_records
from prepared_workspaces import enter_recipe, finished_workspace
from public_data import PUBLIC_DATA

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.store.places import state_directory
from sfumato.workspace.store.workspace import Workspace

pytest_plugins = ["sfumato.engine.contract.plugin", "quick_marks"]
# the same examples everywhere, however slow
settings.register_profile("study", deadline=None, derandomize=True, max_examples=300)
settings.register_profile("sfumato", settings.get_profile("study"), max_examples=50)
settings.load_profile("sfumato")

# What Python compiles, and pytest writes anew for its assertions, is kept for the next process: that is half of what finding
# the tests costs, and every program that a test starts would compile the house again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
gc.disable()  # until all tests are found (quick_marks), of which nothing goes away before the end

# Nothing of a test goes into the home of whoever runs it: what the account remembers lies in a directory of the tests.
STATE = Path(tempfile.mkdtemp(prefix="sfumato-state-"))
atexit.register(shutil.rmtree, STATE, ignore_errors=True)
os.environ["XDG_STATE_HOME"] = str(STATE / "session")
os.environ["XDG_DATA_HOME"] = str(STATE / "data")
NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is a machine of its own: it knows no head of a workspace that another test has copied."""
    monkeypatch.setenv("XDG_STATE_HOME", str(STATE / str(next(NUMBERS))))


@pytest.fixture
def public_data() -> Callable[[str], Path]:
    """Where a public file lies; the test is skipped where it is absent."""

    def find(name: str) -> Path:
        path = PUBLIC_DATA / name
        if not path.is_file():
            pytest.skip(f"{name} is not there; SFUMATO_DATA says where")
        return path

    return find


@pytest.fixture
def small_recipe() -> Callable[..., Recipe]:
    """A recipe with two regressions and two measures; sections given replace its own."""

    def make(**sections: object) -> Recipe:
        return Recipe.from_table({**SMALL_RECIPE, **sections})

    return make


@pytest.fixture
def small_data() -> Microdata:
    """Eighty simulated records that suit the small recipe."""
    return replace(small_records(), frame=small_records().frame.copy())


@pytest.fixture(scope="session")
def small() -> tuple[Recipe, Microdata]:
    """The small recipe and its data, for fixtures that many tests share."""
    return Recipe.from_table(SMALL_RECIPE), small_records()


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """An empty workspace with a public key, so that its runs find what the engine finds by the seed alone."""
    made = Workspace.create(tmp_path / "workspace", PUBLIC)
    yield made
    made.close()


@pytest.fixture
def enter(workspace: Workspace, small_recipe: Callable[..., Recipe], small_data: Microdata) -> Callable[..., int]:
    """Enter a run of the small recipe; returns its number."""

    def make(**sections: object) -> int:
        return enter_recipe(workspace, small_recipe(**sections), small_data)

    return make


@pytest.fixture(scope="session")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The directory of a workspace with one finished run of the small recipe, computed once for the same key and sections: to be copied."""
    found: dict[str, Path] = {}

    def make(*, key: bytes = PUBLIC, **sections: object) -> Path:
        asked = json.dumps([key.hex(), sections], sort_keys=True)
        if asked not in found:
            directory = tmp_path_factory.mktemp("computed") / "workspace"
            found[asked] = finished_workspace(directory, [{**SMALL_RECIPE, **sections}], small_records(), key=key)
        return found[asked]

    return make


@pytest.fixture
def finished(workspace: Workspace, computed: Callable[..., Path]) -> Callable[..., int]:
    """Put a copy of one with a finished run of the small recipe in place of the empty workspace; returns the run's number."""

    def put(**sections: object) -> int:
        found = computed(key=workspace.read_workspace_key(), **sections)
        workspace.close()
        for replaced in (workspace.directory, state_directory()):
            shutil.rmtree(replaced, ignore_errors=True)
        shutil.copytree(found, workspace.directory)
        Workspace.open(workspace.directory).close()
        return 1

    return put
