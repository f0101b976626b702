"""The widgets are tested the same whatever the terminal of the tester."""

import pytest


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("NO_COLOR", "SFUMATO_GLYPHS"):
        monkeypatch.delenv(name, raising=False)
