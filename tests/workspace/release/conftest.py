"""Releases go out of a workspace with a key of its own: one with a public key would need a reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.workspace.store.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """An empty workspace with a key of its own."""
    made = Workspace.create(tmp_path / "workspace")
    yield made
    made.close()
