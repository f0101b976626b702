"""Releases go out of a workspace with a key of its own: one with a public key would need a reason."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.workspace.store.workspace import Workspace

KEY = bytes(range(100, 132))
EMPTY_DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>'


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """An empty workspace with a secret key, the same each time: what a test finds is not left to chance."""
    made = Workspace.create(tmp_path / "workspace", KEY)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def blank_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the pictures of figures in documents empty, in modules and folders that name this fixture.

    For those that release often and look at no picture: every release draws many.
    """
    # By its name: the package has a function that is called as the module is.
    module = importlib.import_module("sfumato.workspace.documents.acro")
    draw = module.svg_to_png
    monkeypatch.setattr(module, "svg_to_png", lambda _, *, note: draw(EMPTY_DRAWING, note=note))
