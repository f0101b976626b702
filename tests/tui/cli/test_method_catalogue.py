"""What ``sfumato methods`` says of a method: extras, ranges, results, and radii."""

from __future__ import annotations

import importlib.util

import pytest

from sfumato.engine.matching.radius import Radius
from sfumato.tui.cli.catalogue import method_list_text, method_page


@pytest.mark.parametrize("there", [True, False])
def test_a_method_says_which_extra_it_needs_and_whether_it_is_there(
    there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if there else None)
    state = "is installed" if there else "is not installed here: pip install 'sfumato[gan]'"
    assert f"needs the extra [gan], which {state}" in method_page("ctgan")
    assert "Conditional tabular GAN (extra [gan])" in method_list_text()
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


@pytest.mark.parametrize("key", ["identification", "attribute", "intruder_uncertainty"])
def test_a_method_with_radii_says_that_they_are_closed_and_what_a_share_of_0_is(key: str) -> None:
    said = " ".join(method_page(key).split())
    assert (
        "A radius is closed: a value at its edge matches, also where decimals are rounded (1e-9 of the radius)." in said
    )
    assert '"open 5", "open 5%" or "open log 5%" leaves the edge out.' in said
    assert "around a confidential 0 both match 0 only, and open ones nothing." in said
    assert "A radius" not in method_page("propensity")


def test_what_is_said_of_radii_is_what_they_do() -> None:
    def matched(radius: str | float, centre: float) -> list[float]:
        (low,), (high,) = Radius.parse(radius).window([centre])
        return [z for z in (-1.0, -1e-300, 0.0, 1e-300, 1.0, 95.0, 100.0, 105.0) if low <= z <= high]

    assert matched("5%", 100.0) == [95.0, 100.0, 105.0]
    assert matched("open 5%", 100.0) == [100.0]
    assert matched("5%", 0.0) == matched("log 5%", 0.0) == [0.0]
    assert matched("open 5%", 0.0) == matched("open log 5%", 0.0) == []
    assert matched(1, 0.0) == [-1.0, -1e-300, 0.0, 1e-300, 1.0]
    assert matched("open 1", 0.0) == [-1e-300, 0.0, 1e-300]
