"""The user's own editor: private files that are gone afterwards, no shell, and a text that stays where anything goes wrong."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest
from terminals import APP, Pty, app_environment

from sfumato.tui.session.state import AppState, save_state
from sfumato.tui.terminal.external_editor import MOST_BYTES, NotEdited, edit_text, editor_command


def script(tmp_path: Path, body: str) -> list[str]:
    """An editor that does this to the file ``file``."""
    path = tmp_path / "editor.py"
    path.write_text(f"import os, sys, pathlib\nfile = pathlib.Path(sys.argv[-1])\n{body}\n", "utf-8")
    return [sys.executable, str(path)]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The session's own directory in memory."""
    found = tmp_path / "runtime"
    found.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(found))
    return found


def test_the_file_is_the_users_alone_and_gone_afterwards(tmp_path: Path, place: Path) -> None:
    editor = script(
        tmp_path,
        """modes = oct(file.stat().st_mode & 0o777), oct(file.parent.stat().st_mode & 0o777)
(file.parent / "plan.toml~").write_text("a copy of the editor's")
(file.parent / ".swap").mkdir()
file.write_text(f"{modes} {file.parent.parent} " + file.read_text())""",
    )
    assert edit_text("before", "plan.toml", editor) == f"{('0o600', '0o700')} {place} before"
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("mode", [0o755, None])
def test_a_session_directory_that_others_can_read_is_not_used(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch, mode: int | None
) -> None:
    place.chmod(mode) if mode else monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "nowhere"))
    editor = script(tmp_path, "file.write_text(str(file.parent) + oct(file.parent.stat().st_mode & 0o777))")
    found = edit_text("", "plan.toml", editor)
    assert not found.startswith(str(place))
    assert found.endswith("0o700")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sys.exit(1)", "ended with status 1"),
        ("file.write_bytes(b'\\xff')", "not UTF-8"),
        (f"file.write_bytes(b'x' * {MOST_BYTES + 1})", "larger than 1 MiB"),
        ("file.unlink()", "cannot be read"),
        ("file.unlink(); file.symlink_to('/etc/passwd')", "a link"),
        ("file.unlink(); os.mkfifo(file)", "named pipe"),
    ],
)
def test_what_is_not_a_text_changes_nothing(tmp_path: Path, place: Path, body: str, said: str) -> None:
    with pytest.raises(NotEdited, match=said):
        edit_text("before", "plan.toml", script(tmp_path, body))
    assert list(place.iterdir()) == []


def test_line_ends_of_other_systems_are_read(tmp_path: Path) -> None:
    assert (
        edit_text("a", "plan.toml", script(tmp_path, "file.write_bytes(b'\\xef\\xbb\\xbfa\\r\\nb\\rc\\n')"))
        == "a\nb\nc\n"
    )


def test_visual_comes_before_editor_and_no_shell_reads_either(tmp_path: Path) -> None:
    assert editor_command({"EDITOR": "ed", "VISUAL": "code --wait"}) == ["code", "--wait"]
    assert editor_command({"EDITOR": "ed", "VISUAL": " "}) == ["ed"]
    assert editor_command({"EDITOR": "ed; touch $HOME `id`"}) == ["ed;", "touch", "$HOME", "`id`"]
    with pytest.raises(NotEdited, match="set VISUAL or EDITOR"):
        editor_command({})
    with pytest.raises(NotEdited, match="EDITOR cannot be read as a command"):
        editor_command({"EDITOR": 'a "b'})
    for command in (["/no/such/editor"], [str(tmp_path)]):
        with pytest.raises(NotEdited, match="cannot be started"):
            edit_text("", "plan.toml", command)


@pytest.mark.slow
def test_the_app_makes_room_for_the_editor_and_comes_back(finished: Path, tmp_path: Path) -> None:
    save_state(finished, AppState(project=1, run=1, tab="plan"))
    editor = script(
        tmp_path,
        """print("EDITING", flush=True)
sys.stdin.readline()
file.write_text(file.read_text().replace("seed = 7", "seed = 8"))""",
    )
    environment = app_environment(tmp_path, VISUAL=" ".join(editor))
    with contextlib.closing(Pty([*APP, "--workspace", str(finished)], environment)) as terminal:
        terminal.see("run 1 is this plan; R runs it again").press("E").see("EDITING").press("x", "enter")
        terminal.see("3 datasets; seed 8", "R runs this plan").press("u").see("3 datasets; seed 7")
