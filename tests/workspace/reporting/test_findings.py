"""What a finding is held against, and its limit, in the app's list."""

from __future__ import annotations

import pytest

from sfumato.tui.screens.release import SHOWN
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.release.checks import Check, Sighting
from sfumato.workspace.release.gate import CHECKS, finding_of
from sfumato.workspace.reporting.findings import judged_cells

BY_KEY = {check.key: check for check in CHECKS}
WIDTHS = {name: SHOWN[name].width for name in ("held", "limit")}


def cells(check: Check, held: float | None) -> dict[str, str]:
    return judged_cells(finding_of(check, Policy(), lambda: Sighting("seen", held)))


@pytest.mark.parametrize(
    ("key", "held", "shown", "limit"),
    [
        ("kept_keys", 0.06667, "6.67 %", "0 %"),
        ("standing_people", 2.0, "2", "0 people"),
        ("standing_people", 12.0, "12", "4 people"),
        ("questions_open", 1.0, "1", "0 questions"),
        ("thresholds_set", 3.0, "3", "1 threshold"),
        ("privacy_budget", 1.2, "120 %", "100 %"),
        ("worst_records", 0.95, "95 %", "90 %"),
        ("risk_above_confidential", 0.07591, "0.07591", "1"),
        ("repeated_people", 1.0, "1", "0 rows"),
        ("memorised", 0.4, "0.4", "0.5"),
        ("weighted_records", 3.0, "3", ""),
    ],
)
def test_a_number_has_its_unit_and_a_limit_what_it_counts(key: str, held: float, shown: str, limit: str) -> None:
    assert cells(BY_KEY[key], held) == {"held": shown, "limit": limit}


def test_a_share_that_is_nearly_the_limit_does_not_read_as_the_limit() -> None:
    found = cells(BY_KEY["kept_weight"], 0.500001)
    assert found["limit"] == "50 %"
    assert found["held"] != found["limit"]


def test_every_limit_has_room() -> None:
    for check in CHECKS:
        for held in (None, 0.0, 1.0, 0.123456):
            found = cells(check, held)
            assert all(len(found[name]) <= WIDTHS[name] for name in found), (check.key, found)
            assert "share" not in found["limit"]
            assert not found["limit"].startswith("1 ") or not found["limit"].endswith("s"), check.key
