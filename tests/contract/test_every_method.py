"""The contract's tests of every method of Sfumato, and what shows that they notice."""

from __future__ import annotations

import own_methods
import pytest

from sfumato.engine.contract.every_method import *  # noqa: F403
from sfumato.engine.contract.examples import assert_sound, refuses_missing, with_missing, without_identifiers
from sfumato.engine.data.microdata import Microdata
from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.results import Estimate


def test_there_are_methods() -> None:
    assert own_methods.SYNTHESIS
    assert own_methods.MEASURES


@pytest.mark.parametrize(
    "unsound",
    [
        Estimate("pmse", float("nan")),
        Estimate("pmse", 0.1, lower=0.2, upper=0.3),
        Estimate("pmse", 0.1, baseline=float("inf")),
        Estimate("pmse", None),
        Estimate("undeclared", 0.1),
    ],
)
def test_what_is_unsound_is_noticed(unsound: Estimate) -> None:
    with pytest.raises((AssertionError, KeyError)):
        assert_sound(registry()["utility.propensity"], [unsound])


def test_only_what_needs_every_value_refuses_missing_ones(confidential: Microdata) -> None:
    data = with_missing(without_identifiers(confidential), 1)
    refusing = {method.key for (method,) in (p.values for p in own_methods.METHODS) if refuses_missing(method, data)}
    assert {"synthesis.linear_regression", "synthesis.zero_inflated_truncated_poisson"} <= refusing
    allowed = {"synthesis", "anonymisation", "studies"}
    assert {key for key in refusing if key.partition(".")[0] not in allowed} == set()
    assert not refusing & {"synthesis.cart", "studies.intruder_uncertainty"}
