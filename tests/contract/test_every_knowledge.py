"""The contract's test that no risk falls as the intruder learns more, at length, and what shows that it notices one that does."""

from __future__ import annotations

import own_methods
import pytest

from sfumato.engine.contract.knowledge import *  # noqa: F403
from sfumato.engine.contract.knowledge import find_falling_risks, knowledge_parameter, monotone_outputs, try_cases
from sfumato.engine.methods.registry import registry

DRAWN = 2_000
DECLARED = [
    p.values[0]
    for p in own_methods.MEASURES
    if monotone_outputs(p.values[0]) and not p.values[0].measures_whole_release
]


def test_what_is_declared_never_to_fall_is_of_measures_that_say_what_the_intruder_knows() -> None:
    assert {method.key for method in DECLARED} >= {"risk.identification", "risk.attribute", "risk.uniqueness"}
    assert all(knowledge_parameter(method) for method in DECLARED)


@pytest.mark.slow
def test_matching_on_all_that_is_known_falls_in_some_of_the_same_cases() -> None:
    """The control: who also matches on replaced values finds fewer, so the test would notice a risk that falls."""
    method = registry()["risk.identification"]
    cases = list(try_cases(method, 60, 1))
    papers = [any(find_falling_risks(method, *case, ["expected_match_risk"])) for case in cases]
    best = [any(find_falling_risks(method, *case, monotone_outputs(method))) for case in cases]
    assert sum(papers) >= 3
    assert not any(best)


@pytest.mark.study
def test_no_declared_risk_falls_in_two_thousand_cases() -> None:
    each = -(-DRAWN // len(DECLARED))
    tried, found, control = 0, [], 0
    for seed, method in enumerate(DECLARED, start=10):
        own = 0
        for less, more in try_cases(method, each, seed):
            own += 1
            found += [(method.key, *fall) for fall in find_falling_risks(method, less, more, monotone_outputs(method))]
            if method.key == "risk.identification":
                control += any(find_falling_risks(method, less, more, ["expected_match_risk"]))
        tried += own
        print(f"{method.key}: {own:,} cases of {', '.join(monotone_outputs(method))}")
    print(f"{tried:,} cases, {len(found)} falls; of matching on all that is known {control:,}")
    assert tried >= DRAWN
    assert found == []
    assert control > 0
