"""What the app has done in processes of its own."""

import pytest

from sfumato.tui.session import jobs

pytestmark = pytest.mark.slow


def test_a_file_is_imported_beside_modules_named_like_ours(tmp_path, monkeypatch):
    for name in ("engine", "sfumato", "tui", "pandas"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not this one')")
    (tmp_path / "people.csv").write_text("age,cost\n" + "\n".join(f"{20 + i},{i / 2}" for i in range(30)))
    monkeypatch.chdir(tmp_path)
    jobs.open_workspace(tmp_path / "workspace")
    assert jobs.import_file(tmp_path / "workspace", "people.csv", "").project_id == 1
