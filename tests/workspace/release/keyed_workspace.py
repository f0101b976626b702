"""Releases go out of a workspace with a key of its own: one with a public key would need a reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.workspace.store.workspace import Workspace

KEY = bytes(range(100, 132))


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """An empty workspace with a secret key, the same each time: what a test finds is not left to chance."""
    made = Workspace.create(tmp_path / "workspace", KEY)
    yield made
    made.close()
