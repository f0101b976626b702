"""What ``sfumato methods`` says of methods that need an extra."""

from __future__ import annotations

import importlib.util

import pytest

from tui.catalogue import method_list, method_page


@pytest.mark.parametrize("there", [True, False])
def test_a_method_says_which_extra_it_needs_and_whether_it_is_there(
    there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if there else None)
    state = "is installed" if there else "is not installed here: pip install 'sfumato[gan]'"
    assert f"needs the extra [gan], which {state}" in method_page("ctgan")
    assert "Conditional tabular GAN (extra [gan])" in method_list()
    assert "extra" not in method_page("cart")
