"""What one task takes by its method: measured of ours, declared of others, and cautious where nobody knows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.methods import measured_rates
from sfumato.engine.methods.drafting import Case, drafts
from sfumato.engine.methods.registry import OWN, Method, registry
from sfumato.engine.methods.task_rates import PROCESS, RELEASES, UNKNOWN_CELL, TaskRate, draw_rate_of, task_rate_of

OURS = [method for method in registry().values() if method.package == OWN and method.extra is None]
sizes = st.integers(0, 10**9)


def test_every_method_of_ours_was_measured() -> None:
    assert {method.key for method in OURS} - measured_rates.RATES.keys() == set()
    assert {m.key for m in OURS if m.family == "synthesis"} - measured_rates.DRAWS.keys() == set()
    assert (measured_rates.RATES.keys() | measured_rates.DRAWS.keys()) - registry().keys() == set(), (
        "a method that is gone"
    )


def test_measured_rates_are_of_a_process_and_of_its_tables() -> None:
    for rates in (measured_rates.RATES, measured_rates.DRAWS):
        for key, (seconds, fixed, record, cell, *_) in rates.items():
            assert seconds > 0, key
            assert 1.5e8 <= fixed <= 6e8, key
            assert record >= 0, key
            assert cell >= 0, key
            assert record + 9 * cell >= 8, f"{key} takes less than a column"


@given(sizes, sizes, st.integers(1, 200))
def test_more_records_and_variables_never_take_less(some: int, others: int, variables: int) -> None:
    few, many = sorted((some, others))
    for method in OURS[::7]:
        rate = task_rate_of(method)
        assert rate.estimate_bytes(few, variables) <= rate.estimate_bytes(many, variables)
        assert rate.estimate_bytes(few, variables) <= rate.estimate_bytes(few, variables + 1)
        assert (rate.estimate_seconds(few, variables) or 0) <= (rate.estimate_seconds(many, variables + 1) or 0)


def test_a_rate_is_a_sum_for_the_process_the_records_and_the_values() -> None:
    rate = TaskRate(2.0, 100.0, 3.0, 0.5)
    assert rate.estimate_bytes(1000, 10) == 100 + 3000 + 5000
    assert rate.estimate_bytes(1000, 10, RELEASES) == rate.estimate_bytes(1000, 10)
    assert rate.estimate_bytes(1000, 10, RELEASES + 2) == rate.estimate_bytes(1000, 10) + 2 * 8 * 1000 * 10
    assert rate.estimate_seconds(10_000, 10) == 2.0
    assert rate.estimate_seconds(20_000, 5) == 4.0
    assert rate.estimate_seconds(10_000, 30) == 6.0
    assert rate.estimate_seconds(10_000, 10, RELEASES) == 2.0
    assert rate.estimate_seconds(10_000, 10, 2 * RELEASES + 1) == 4.0, (
        "it reads twice as many tables, the confidential one among them"
    )


def test_a_time_that_grows_with_the_square_of_the_records_is_said_so() -> None:
    rate = TaskRate(2.0, 0.0, 1.0, 1.0, growth=2.0)
    assert rate.estimate_seconds(10_000, 10) == 2.0
    assert rate.estimate_seconds(100_000, 10) == 200.0
    own = task_rate_of(registry()["anonymisation.microaggregation"])
    assert own.estimate_seconds(100_000, 10) == pytest.approx(100 * (own.estimate_seconds(10_000, 10) or 0.0))


def test_what_looks_at_a_sample_grows_with_its_tables_alone_from_there_on() -> None:
    rate = TaskRate(2.0, 0.0, 1000.0, 8.0, 10_000)
    assert rate.estimate_seconds(10**7, 10) == rate.estimate_seconds(10_000, 10) == 2.0
    assert rate.estimate_bytes(10**7, 2) == 10_000 * 1000 + 10**7 * 8 * 2


def nothing(case: Case) -> None:
    """Offers nothing."""


def of_others(func: Any) -> Method:
    return replace(OURS[0], name="of_others", func=func)


def test_a_method_of_another_package_says_its_own_and_otherwise_much_is_expected() -> None:
    @drafts(nothing, seconds=3.0, memory=20.0)
    def measured(confidential: object, released: object, spec: object, run: object) -> None:
        """One that somebody measured."""

    def unknown(confidential: object, released: object, spec: object, run: object) -> None:
        """One that nobody did."""

    assert task_rate_of(of_others(measured)) == TaskRate(3.0, PROCESS, 0.0, 20.0)
    for found in (task_rate_of(of_others(unknown)), draw_rate_of(of_others(unknown))):
        assert found.estimate_seconds(10_000, 10) is None
        assert found.estimate_bytes(10**6, 10) == PROCESS + 10**7 * UNKNOWN_CELL


@pytest.mark.parametrize("key", sorted(measured_rates.UNTIMED & registry().keys()))
def test_seconds_of_what_was_made_quick_for_the_measurement_are_not_told(key: str) -> None:
    assert task_rate_of(registry()[key]).estimate_seconds(10_000, 10) is None
