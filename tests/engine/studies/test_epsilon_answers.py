"""Which epsilon keeps to a limit: from points with intervals, honest about chance and about measures that turn back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sfumato.engine.methods.results import Goal
from sfumato.engine.methods.rows import Row
from sfumato.engine.statistics.combining import monte_carlo_mean
from sfumato.engine.studies import risk_utility as answering
from sfumato.engine.studies.risk_utility import Answer, State

LEAST: Answer = "least_epsilon"
LARGEST: Answer = "largest_epsilon"


def answered(
    values: list[float | None], asked: Answer, limit: float, half: float | None = 0.0, goal: Goal = "low"
) -> Row:
    """The answer from means at 1, 10, 100, each with an interval of this half width, or none."""
    like = Row("studies", "x", "m", "", "confidential", None, 0.0, 0.0, params={"synthesiser": "x", "limit": limit})
    rows = [
        replace(like, level=float(10**i), value=value, reason="" if value is not None else "no model")
        if value is None or half is None
        else replace(like, level=float(10**i), value=value, lower=value - half, upper=value + half)
        for i, value in enumerate(values)
    ]
    (answer,) = answering.find_epsilons(rows, {"m": asked}, {"m": goal})
    assert (answer.measure, answer.params["of"]) == (asked, "m")
    assert answer.level is None
    assert (answer.status == "computed") == (answer.value is not None)
    return answer


@pytest.mark.parametrize(
    ("values", "asked", "limit", "goal", "value"),
    [
        ([0.9, 0.4, 0.1], LEAST, 0.5, "low", 10.0),
        ([0.4, 0.9, 0.1], LEAST, 0.5, "low", 100.0),
        ([0.9, 0.9, 0.9], LEAST, 0.5, "low", None),
        ([0.1, 0.1, 0.1], LEAST, 0.5, "low", 1.0),
        ([0.1, 0.4, 0.9], LARGEST, 0.5, "low", 10.0),
        ([0.1, 0.9, 0.4], LARGEST, 0.5, "low", 1.0),
        ([0.9, 0.1, 0.1], LARGEST, 0.5, "low", None),
        ([None, 0.1], LARGEST, 0.5, "low", None),
        ([0.9, 0.6, 0.2], LARGEST, 0.5, "high", 10.0),
        ([0.2, 0.9, 0.9], LARGEST, 0.5, "high", None),
    ],
)
def test_the_answer_holds_from_there_on(
    values: list[float | None], asked: Answer, limit: float, goal: Goal, value: float | None
) -> None:
    assert answered(values, asked, limit, goal=goal).value == value


def test_a_measure_that_turns_back_is_told() -> None:
    """A larger epsilon that breaks the limit again is never passed over in silence."""
    assert answered([0.4, 0.9, 0.1], LEAST, 0.5).reason == "at 1 it is within too, but not at 10"
    broken = answered([0.9, 0.4, 0.9], LEAST, 0.5)
    assert broken.value is None
    assert broken.reason == "at 10 it is within, but not at 100"
    assert answered([0.9, 0.9, 0.9], LEAST, 0.5).reason == answering.NO_EPSILON
    assert answered([0.9, 0.9, 0.5], LEAST, 0.5, half=0.1).reason == "at 100 it cannot be distinguished from the limit"
    assert answered([0.1, 0.9, 0.4], LARGEST, 0.5).reason == "at 100 it is within too, but not at 10"
    assert answered([0.9, 0.4, 0.1], LEAST, 0.5).reason == ""


def test_an_interval_that_holds_the_limit_answers_nothing() -> None:
    assert answered([0.9, 0.45, 0.1], LEAST, 0.5, half=0.01).value == 10.0
    unclear = answered([0.9, 0.45, 0.1], LEAST, 0.5, half=0.1)
    assert unclear.value == 100.0
    assert unclear.reason == "at 10 it cannot be distinguished from the limit"
    assert answered([0.1, 0.45, 0.9], LARGEST, 0.5, half=0.1).value == 1.0
    assert answered([0.9, 0.55, 0.2], LARGEST, 0.5, half=0.1, goal="high").value == 1.0


def test_without_intervals_there_is_no_answer() -> None:
    alone = answered([0.9, 0.4, 0.1], LEAST, 0.5, half=None)
    assert (alone.value, alone.reason) == (None, answering.ONE_DATASET)


def test_what_was_not_computed_keeps_to_no_limit() -> None:
    assert answered([None, None], LEAST, 0.5).reason == "no model"
    assert answered([0.1, None, 0.1], LEAST, 0.5).value == 100.0
    assert answered([0.1, 0.1, 0.1], LARGEST, 0.5, goal="none").reason == answering.NO_DIRECTION


@pytest.mark.slow
def test_a_later_point_is_sold_as_the_answer_one_time_in_forty_at_most() -> None:
    """Simulated studies of seven epsilons with five datasets each, whose third is just beyond the limit.

    The negative control answers from the means alone, as with one dataset: it sells the wrong epsilon half the time.
    """
    rng = np.random.default_rng(3)
    true, limit, rounds = np.array([2.0, 1.6, 1.0 + 1e-9, 0.6, 0.4, 0.3, 0.3]), 1.0, 3000
    wrong, naive = 0, 0
    for _ in range(rounds):
        points: list[tuple[float, State]] = []
        means: list[tuple[float, State]] = []
        for level, centre in enumerate(true, start=1):
            mean, lower, upper = monte_carlo_mean((centre + 0.2 * rng.standard_normal(5)).tolist())
            row = Row("f", "x", "m", "", "confidential", None, float(level), mean, lower, upper)
            points.append((float(level), answering.state_of_point(row, limit, "low")))
            means.append((float(level), "within" if mean <= limit else "beyond"))
        wrong += (answering.epsilon_within_limit(points, LEAST)[0] or 9) < 4
        naive += (answering.epsilon_within_limit(means, LEAST)[0] or 9) < 4
    assert wrong / rounds < 0.025 + 3 * np.sqrt(0.025 * 0.975 / rounds)
    assert wrong / rounds > 0.01, "not so careful that it says nothing"
    assert naive / rounds > 0.4
