"""How a process of the command line ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.store.workspace import Workspace

pytestmark = pytest.mark.quick


def test_what_was_loaded_is_not_taken_apart_at_the_end() -> None:
    code = """if True:
        import atexit, gc
        atexit.register(lambda: print(gc.get_freeze_count() > 0))
        from sfumato.tui.cli.main import main
        main(["--version"])"""
    found = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert found.stdout.splitlines()[-1] == "True"


def test_no_log_of_the_database_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Workspace.create(tmp_path / "workspace", PUBLIC).close()
    code = f"from sfumato.tui.cli.main import main; main(['runs', '-w', {str(tmp_path / 'workspace')!r}])"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert (tmp_path / "workspace" / "workspace.db").is_file()
    assert not list((tmp_path / "workspace").glob("*-wal"))
