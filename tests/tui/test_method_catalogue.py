"""What ``sfumato methods`` says of a method: extras, ranges, results."""

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


def test_a_method_s_page_says_in_which_range_its_measures_lie() -> None:
    lines = {line.split()[0]: line for line in method_page("propensity").splitlines() if line.startswith("utility.")}
    assert lines["utility.propensity.pmse"].endswith("0 to 0.25")
    assert lines["utility.propensity.s_pmse"].endswith("at least 0")
    overlap = method_page("interval_overlap")
    assert "at most 1" in overlap
    assert "Intervals stay inside the range" in overlap


def test_intermediate_outputs_are_on_no_page() -> None:
    assert "size_ratio" not in method_page("interval_overlap")
    assert "lower_bound" not in method_page("summary")
