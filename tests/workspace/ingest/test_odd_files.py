"""Odd files end in one clear message or are read: no other error, no hang, nothing left behind, no value quoted."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import pytest
from odd_files import Odd, odd_files

from sfumato.engine.errors import BadInput
from sfumato.workspace.service.importing import import_file
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.upkeep.maintenance import find_orphans

SECONDS = 30.0


def test_there_are_at_least_250() -> None:
    names = [name for name, _ in odd_files()]
    assert len(names) >= 250
    assert len(set(names)) == len(names)


@pytest.mark.slow
@pytest.mark.parametrize("odd", odd_files(), ids=lambda odd: ascii(odd[0])[:60])
def test_an_odd_file_is_read_or_refused_in_one_line(odd: Odd, tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    file = odd[1](tmp_path / "given")
    started = time.process_time()
    found, refused = None, None
    try:
        found = import_file(tmp_path / "w", str(file), "odd")
    except BadInput as error:
        refused = error
    if refused is not None:
        assert refused.place
        assert "\n" not in refused.message
        assert len(refused.message) < 500
        assert not (tmp_path / "w").exists()
    if found is not None:
        assert found.records > 0
        assert tomllib.loads(found.recipe)["data"]["file"] == str(file)
        with Workspace.open(tmp_path / "w") as workspace:
            assert not find_orphans(workspace, age=-1)
    assert time.process_time() - started < SECONDS
