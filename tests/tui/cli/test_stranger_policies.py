"""A workspace from a stranger names places: whoever looks at it writes nothing outside it, and reads no key."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from keyed_workspace import KEY
from prepared_workspaces import enter_recipe

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.cli.main import main
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.policy.strictness import STRICTNESS
from sfumato.workspace.store.keys import generate_key, write_key
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.slow
PLACES = [key for key, strictness in STRICTNESS.items() if strictness == "place"]
LOOKING = (
    ("runs",),
    ("runs", "1"),
    ("results", "1"),
    ("examine", "1"),
    ("records", "1"),
    ("policy",),
    ("doctor",),
    ("audit", "list"),
    ("audit", "verify"),
    ("key", "fingerprint"),
)
ADOPTING = ("adopt", "{workspace}", "{workspace}-adopted")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory, small: tuple[Recipe, Microdata]) -> Path:
    directory = tmp_path_factory.mktemp("good") / "workspace"
    with Workspace.create(directory, KEY) as workspace:
        enter_recipe(workspace, *small)
        run_worker(directory, idle=0)
        workspace.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return directory


@pytest.fixture
def received(good: Path, tmp_path: Path) -> Path:
    """A workspace that somebody sent, unpacked."""
    directory = tmp_path / "received" / "workspace"
    shutil.copytree(good, directory)
    return directory


@pytest.fixture
def home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What must stay as it is: a home with a profile, and another workspace's key."""
    home = tmp_path / "home"
    (home / "other").mkdir(parents=True)
    (home / ".profile").write_text("export PATH\n", "utf-8")
    write_key(home / "other" / "key", generate_key())
    monkeypatch.setenv("HOME", str(home))
    return home


def content_of(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every path below a folder, with its mode, its time and its bytes."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(folder.rglob("*"))
    }


def policy_with(key: str, path: Path) -> str:
    table, _, name = key.partition(".")
    return f'[{table}]\n{name} = "{path}"\n'


def run_command(command: tuple[str, ...], directory: Path) -> int:
    words = [word.format(workspace=directory) for word in command]
    place = () if command is ADOPTING else ("--workspace", str(directory))
    try:
        main([*words, *place])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest.mark.parametrize("key", PLACES)
@pytest.mark.parametrize("name", [".profile", "other/key", "new-file", "new-folder/new-file", ""])
def test_looking_at_a_workspace_that_names_a_place_changes_nothing_outside_it(
    key: str, name: str, received: Path, home_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (received / "policy.toml").write_text(policy_with(key, home_folder / name), "utf-8")
    before, policy = content_of(home_folder), (received / "policy.toml").read_bytes()
    for command in (*LOOKING, ADOPTING):
        status, told = run_command(command, received), capsys.readouterr()
        assert "Traceback" not in told.err, command
        assert "internal error" not in told.err, command
        if command[0] in ("runs", "results", "examine", "policy"):
            assert status == 2, command
            assert f"{key} names a path, which a workspace may not" in told.err, command
            assert str(Path(os.environ["XDG_CONFIG_HOME"]) / "sfumato" / "policy.toml") in told.err.replace("\n", ""), (
                command
            )
    assert content_of(home_folder) == before
    assert (received / "policy.toml").read_bytes() == policy


def test_the_same_line_in_the_policy_of_the_user_is_used(
    received: Path, home_folder: Path, write_own_policy: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The control: what the workspace may not name, its user may, and then acts write there but looking does not."""
    heads = home_folder / "heads.log"
    write_own_policy(policy_with("audit.heads", heads))
    for command in LOOKING:
        run_command(command, received)
    assert not heads.exists()
    assert run_command(("resume", "1"), received) in (0, 2)
    with Workspace.open(received) as workspace, workspace.write_transaction():
        workspace.ensure_project("another project")
    assert len(heads.read_text("utf-8").splitlines()) == 1


LOOSER = {
    "smallest_cell": "smallest_cell = 9",
    "rounding": "rounding = 1",
    "digits": "digits = 9",
    "audiences.public.smallest_class": "[audiences.public]\nsmallest_class = 1",
    "audiences.contract.average_risk": "[audiences.contract]\naverage_risk = 1",
    "findings.worst_records.block": "[findings.worst_records]\nblock = 1e9",
    "findings.worst_records.warn": "[findings.worst_records]\nwarn = 1e9",
}


@pytest.mark.parametrize("key", LOOSER)
def test_a_workspace_that_loosens_a_limit_is_refused_by_the_gate(
    key: str, received: Path, capsys: pytest.CaptureFixture[str], write_own_policy: Callable[[str], Path]
) -> None:
    (received / "policy.toml").write_text(LOOSER[key], "utf-8")
    assert run_command(("examine", "1"), received) == 2
    assert f"policy.toml: {key}: " in (told := capsys.readouterr().err)
    assert "is looser than" in told
    # Whoever opens it decides: in the user's own policy the same value is used.
    (received / "policy.toml").unlink()
    write_own_policy(LOOSER[key])
    run_command(("examine", "1"), received)
    assert "looser" not in capsys.readouterr().err


def test_a_copy_with_more_rows_does_not_make_the_true_workspace_refused(good: Path, received: Path) -> None:
    """Somebody sends a copy of your workspace with an act more: looking at it forgets nothing of the true one."""
    Workspace.open(good).close()
    state = os.environ["XDG_STATE_HOME"]
    os.environ["XDG_STATE_HOME"] = f"{state}-of-another-account"
    try:
        with Workspace.open(received) as workspace, workspace.write_transaction():
            workspace.ensure_project("forged")
    finally:
        os.environ["XDG_STATE_HOME"] = state
    Workspace.open(received).close()
    Workspace.open(good).close()


@pytest.mark.parametrize("name", ["workspace.db", "tables", "logs", "audit.head", "key", "policy.toml"])
def test_a_link_inside_a_workspace_is_followed_by_nobody(
    name: str, received: Path, home_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = home_folder / "linked"
    if (received / name).exists():
        shutil.move(received / name, target)
    elif name == "logs":
        target.mkdir()
    else:
        target.write_text("smallest_cell = 20\n", "utf-8")
    (received / name).symlink_to(target)
    before = content_of(home_folder)
    for command in (*LOOKING, ADOPTING):
        run_command(command, received)
        assert "internal error" not in capsys.readouterr().err, command
    assert content_of(home_folder) == before
