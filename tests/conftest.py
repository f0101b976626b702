"""Fixtures that all tests share: public data where they are, and small microdata, recipes and workspaces."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import gc
import hashlib
import importlib
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in a task: every worker of pytest has a core of its own
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from prepared_workspaces import enter_recipe
from public_data import PUBLIC_DATA

import sfumato.workspace.policy.policy as policy_files
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.methods.registry import discover_methods
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.audit import audit_rows, read_head, seal_rows_after, write_head_file
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.store.database import MIGRATIONS, immediate_transaction
from sfumato.workspace.store.heads import HeadsFolder, store_head_outside
from sfumato.workspace.store.places import state_directory
from sfumato.workspace.store.runs import list_runs
from sfumato.workspace.store.seals import result_part_seals, seal_run, store_part_seals
from sfumato.workspace.store.workspace import Workspace

pytest_plugins = ["sfumato.engine.contract.plugin"]
ROOT = Path(__file__).parents[1]
# the same examples everywhere, however slow
settings.register_profile("study", deadline=None, derandomize=True, max_examples=300)
settings.register_profile("sfumato", settings.get_profile("study"), max_examples=50)
settings.load_profile("sfumato")

# Nothing of a test goes into the home of whoever runs it: what the account remembers lies in a directory of the tests.
STATE = Path(tempfile.mkdtemp(prefix="sfumato-state-"))
atexit.register(shutil.rmtree, STATE, ignore_errors=True)
os.environ["XDG_STATE_HOME"] = str(STATE / "session")
os.environ["XDG_DATA_HOME"] = str(STATE / "data")
os.environ["XDG_CONFIG_HOME"] = str(STATE / "config")

PICTURES = importlib.import_module("sfumato.workspace.documents.acro")
DRAWN = functools.lru_cache(512)(vars(PICTURES)["svg_to_png"])
LOOKED_AT = ("tests/workspace/documents/", "tests/workspace/release/test_what_leaves.py")


def picture(drawing: str, *, note: str) -> bytes | None:
    """The picture of a drawing in tests that look at what documents show, drawn once; in others an empty one: every release has many."""
    looked = os.environ.get("PYTEST_CURRENT_TEST", "").startswith(LOOKED_AT)
    empty = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>'
    found: bytes | None = DRAWN(drawing if looked else empty, note=note)
    return found


vars(PICTURES)["svg_to_png"] = picture

TOO_LONG = 5.0
"""Seconds of processor time after which a test is no quick one: far above what developers_tests.md allows, so that no test fails on a slow day."""
FEW_MODULES = 20
LONGER = {"slow", "study", "sizes", "offline"}
WHOLLY_LONGER = re.compile(rf"^pytestmark = pytest\.mark\.({'|'.join(LONGER)})\b", re.MULTILINE)

# What Python compiles, and pytest writes anew for its assertions, is kept for the next process: that is half of what finding
# the tests costs, and every program that a test starts would compile the house again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
gc.disable()  # until all tests are found, of which nothing goes away before the end


def pytest_configure(config: pytest.Config) -> None:
    """Studies try more examples where a test does not say how many."""
    settings.load_profile("study" if config.option.markexpr == "study" else "sfumato")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files without a test that is asked for are not even loaded: for the quick suite those whose every test is marked as longer, for longer ones those
    that name none of their marks. The contract's tests get marks by the methods that they are of.
    """
    asked = set(re.findall(r"\w+", config.option.markexpr))
    if collection_path.suffix != ".py" or not asked & {"quick", *LONGER}:
        return None
    text = collection_path.read_text("utf-8")
    if asked == {"quick"}:
        return WHOLLY_LONGER.search(text) is not None or None
    named = "contract" in collection_path.parts or any(mark in text for mark in asked & LONGER)
    return None if "quick" in asked or named else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every test that nothing marks as longer is a quick one. A slow study is a study: it runs where studies are asked for.

    Tests of ``sizes`` are looked for in ``tests/tui`` alone.
    """
    asked, kept = set(re.findall(r"\w+", config.option.markexpr)), []
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if LONGER.isdisjoint(marks):
            item.add_marker("quick")
        if "sizes" in marks and ROOT / "tests" / "tui" not in item.path.parents:
            raise pytest.UsageError(
                f"{item.nodeid}: a test marked sizes stands in tests/tui, where .ci/run looks for it"
            )
        kept += [item] if not asked or (marks & LONGER) - {"slow"} <= asked else []
    items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A quick test that takes long fails, however it ends. One that loads modules is not judged: what it loads is loaded once."""
    if item.get_closest_marker("quick") is None:
        return (yield)
    before, loaded = sum(os.times()[:4]), len(sys.modules)
    result = yield
    spent = sum(os.times()[:4]) - before
    if spent > TOO_LONG and len(sys.modules) - loaded < FEW_MODULES:
        pytest.fail(f"it took {spent:.1f} s of processor time: mark it slow", pytrace=False)
    return result


def pytest_collection_finish() -> None:
    """From here on garbage is collected again, as seldom as in the app, and what was found is not searched for it each time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


def pytest_unconfigure() -> None:
    """Libraries look for what they left when Python ends: before that pytest collects five times what is not frozen."""
    atexit.register(gc.unfreeze)


NUMBERS = itertools.count()
SMALL: dict[str, Any] = {
    "title": "Small study",
    "variables": {
        "region": {"kind": "categorical", "role": "quasi_identifier", "levels": ["north", "south", "west"]},
        "age": {"kind": "count", "role": "quasi_identifier"},
        "visits": {"kind": "count", "role": "sensitive", "bounds": [0, 60]},
        "income": {"kind": "continuous", "role": "sensitive"},
    },
    # 80 people keep their quasi-identifiers: nobody but an enclave may have that, and tests of files and documents are not about it
    "release": {"m": 3, "seed": 7, "audience": "enclave"},
    "synthesis": [
        {"target": "visits", "method": "linear_regression", "predictors": ["region", "age"]},
        {"target": "income", "method": "linear_regression", "predictors": ["region", "age", "visits"]},
    ],
    "measure": [
        {"method": "utility.ecdf"},
        {"method": "risk.identification", "radius": {"income": "5%", "visits": 2}},
    ],
    "threshold": [{"value": "risk.identification.true_match_rate", "max": 0.5}],
}


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is a machine of its own: it knows no head of a workspace that another test has copied."""
    monkeypatch.setenv("XDG_STATE_HOME", str(STATE / str(next(NUMBERS))))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(STATE / f"config-{next(NUMBERS)}"))
    monkeypatch.setattr(policy_files, "OFFICE_POLICY", STATE / f"office-{next(NUMBERS)}" / "policy.toml")
    monkeypatch.setattr(policy_files, "OFFICE_OWNERS", (0, os.geteuid()))


@pytest.fixture
def write_own_policy() -> Callable[[str], Path]:
    """Write the policy of the user of this test."""

    def write(text: str) -> Path:
        return _write_policy_file(policy_files.own_policy_file(), text)

    return write


@pytest.fixture
def write_office_policy() -> Callable[[str], Path]:
    """Write the policy of the office of this test."""

    def write(text: str) -> Path:
        return _write_policy_file(policy_files.OFFICE_POLICY, text)

    return write


def _write_policy_file(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    file.chmod(0o600)
    return file


@pytest.fixture(autouse=True)
def own_keys(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys that workspaces make for themselves are the same each time that a test runs: the gate stops one in two hundred
    honest releases by chance, and what a test finds shall not depend on chance. Fixtures of a session name their keys.
    """
    numbers = itertools.count()

    def key() -> bytes:
        # Tests of the gate keep the keys that they had beside those of release: other keys would be other draws.
        name = request.node.nodeid.replace("tests/workspace/gate/", "tests/workspace/release/")
        return hashlib.sha256(f"{name} {next(numbers)}".encode()).digest()

    monkeypatch.setattr("sfumato.workspace.store.workspace.generate_key", key)


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
        return Recipe.from_table({**SMALL, **sections})

    return make


@pytest.fixture
def small_data() -> Microdata:
    """Eighty simulated records that suit the small recipe."""
    return dataclasses.replace(_small_data(), frame=_small_data().frame.copy())


@pytest.fixture(scope="session")
def small() -> tuple[Recipe, Microdata]:
    """The small recipe and its data, for fixtures that many tests share."""
    return Recipe.from_table(SMALL), _small_data()


@functools.cache
def _small_data() -> Microdata:
    rng = np.random.default_rng(20)
    age = rng.integers(18, 90, 80)
    frame = pd.DataFrame(
        {
            "region": rng.choice(["north", "south", "west"], 80),
            "age": age,
            "visits": rng.poisson(3 + age / 20),
            "income": np.exp(rng.normal(7, 0.4, 80)),
        }
    )
    return conform_to_schema(frame, Recipe.from_table(SMALL).schema)


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
def reseal() -> Callable[[Workspace], None]:
    """Seal runs again as they stand, as only whoever has the key can: for tests that write what no run would find.

    The audit log is made anew with the same acts, and the last of each run says how it stands.
    """
    acts = {"done": "run finished", "failed": "run failed", "interrupted": "run interrupted"}

    def seal(workspace: Workspace) -> None:
        connection, previous = workspace.connection, ""
        guards = connection.execute("SELECT name, sql FROM sqlite_schema WHERE name LIKE 'audit_keeps_%'").fetchall()
        with immediate_transaction(connection):
            connection.execute("DELETE FROM seal")
            for name, _ in guards:
                connection.execute(f"DROP TRIGGER {name}")
            for run in list_runs(workspace):
                store_part_seals(connection, run.id, result_part_seals(connection, workspace.sealer, run.id))
                seals = seal_run(connection, workspace.sealer, run.id)
                connection.execute(
                    """UPDATE audit SET act = ?1, details = json_set(details, '$.seal', ?2)
                       WHERE number = (SELECT max(number) FROM audit WHERE subject = ?3 AND act LIKE 'run %')""",
                    (acts.get(run.state.value, "run resumed"), seals, f"run {run.id}"),
                )
            for row in audit_rows(connection):
                hashed = replace(row, previous=previous).compute_hash()
                connection.execute(
                    "UPDATE audit SET previous = ?, hash = ? WHERE number = ?", (previous, hashed, row.number)
                )
                previous = hashed
            connection.execute("UPDATE audit_head SET hash = ?", (previous,))
            connection.execute("DELETE FROM audit_seal")
            seal_rows_after(connection, 0, workspace.sealer.key, workspace.sealer.name)
            for _, sql in guards:
                connection.execute(sql)
        write_head_file(workspace.directory, read_head(connection))
        store_head_outside(workspace.directory, connection, read_head(connection), [HeadsFolder()], replace=True)

    return seal


@pytest.fixture(scope="session")
def before_seals() -> Callable[[Workspace], None]:
    """Make a workspace one of the version before seals, as that version wrote it and as no other place knows it."""

    def set_back(workspace: Workspace) -> None:
        connection, previous = workspace.connection, ""
        at = [step.__name__ for step in MIGRATIONS].index("seals")
        guards = connection.execute("SELECT name, sql FROM sqlite_schema WHERE name LIKE 'audit_keeps_%'").fetchall()
        with immediate_transaction(connection):
            for name, _ in guards:
                connection.execute(f"DROP TRIGGER {name}")
            for row in audit_rows(connection):
                details = json.dumps(
                    {key: value for key, value in row.details_table.items() if key not in ("seal", "under_policy")}
                )
                bare = replace(row, details=details, previous=previous, hash="")
                connection.execute(
                    "UPDATE audit SET details = ?, previous = ?, hash = ? WHERE number = ?",
                    (details, previous, bare.compute_hash(), row.number),
                )
                previous = bare.compute_hash()
            connection.execute("UPDATE audit_head SET hash = ?", (previous,))
            for _, sql in guards:
                connection.execute(sql)
            for table in (
                "seal", "audit_seal", "releasing", "run_name", "tombstone_table", "tombstone", "look", "search",
            ):  # fmt: skip
                connection.execute(f"DROP TABLE {table}")
            connection.execute("DELETE FROM migration WHERE number > ?", (at,))
            connection.execute(f"PRAGMA user_version = {at}")
        write_head_file(workspace.directory, read_head(connection))
        shutil.rmtree(state_directory(), ignore_errors=True)

    return set_back


@pytest.fixture(scope="session")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The directory of a workspace with one finished run of the small recipe, computed once for the same key and sections: to be copied."""
    found: dict[str, Path] = {}

    def make(*, key: bytes = PUBLIC, **sections: object) -> Path:
        asked = json.dumps([key.hex(), sections], sort_keys=True)
        if asked not in found:
            found[asked] = tmp_path_factory.mktemp("computed") / "workspace"
            with Workspace.create(found[asked], key) as made:
                recipe = Recipe.from_table({**SMALL, **sections})
                enter_recipe(made, recipe, _small_data())
            run_worker(found[asked], idle=0)
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


def install(source: Path, site: Path) -> None:
    """Put a package where Python finds it, with the metadata that an installer would write."""
    project = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
    shutil.copytree(source, site, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", "utf-8"
    )
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines), "utf-8")


@pytest.fixture(name="install")
def _install() -> Callable[[Path, Path], None]:
    return install


@pytest.fixture
def find_methods_again() -> Iterator[Callable[[], None]]:
    """Forget the methods that were found, now and after the test."""

    def forget() -> None:
        discover_methods.cache_clear()
        for name in [name for name in sys.modules if name.startswith("sfumato_example")]:
            del sys.modules[name]

    yield forget
    forget()


@pytest.fixture
def example_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, find_methods_again: Callable[[], None]) -> Path:
    """The example of a package that brings methods, installed for this process and those that it starts."""
    site = tmp_path / "site"
    install(ROOT / "tests" / "outside" / "example", site)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", str(site))
    find_methods_again()
    return site
