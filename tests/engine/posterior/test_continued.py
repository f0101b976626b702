"""At which lengths chains are judged, and that they continue only as long as they have to."""

from __future__ import annotations

import pytest

from sfumato.engine.posterior.continued import doubling_lengths, geometric_lengths, run_until_converged


def test_chains_that_have_converged_do_not_continue() -> None:
    asked: list[int] = []
    left, reached = run_until_converged(lambda n: asked.append(n) or n, lambda _: True, doubling_lengths(100, 1000))  # type: ignore[func-returns-value]
    assert (left, reached, asked) == (100, 100, [100])


def test_chains_that_have_not_converged_double_their_length_up_to_the_limit() -> None:
    assert list(doubling_lengths(7000, 64_000)) == [7000, 14_000, 28_000, 56_000]
    assert list(doubling_lengths(100, 50)) == [100]
    assert run_until_converged(lambda n: n, lambda n: n >= 300, doubling_lengths(100, 1000)) == (400, 400)
    assert run_until_converged(lambda n: n, lambda _: False, doubling_lengths(100, 1000)) == (800, 800)


def test_an_ensemble_is_judged_ever_more_rarely_and_at_its_last_step() -> None:
    assert list(geometric_lengths(400, 1000, 1.4)) == [400, 560, 784, 1000]
    assert list(geometric_lengths(400, 40, 1.4)) == [40]


def test_without_a_length_there_is_nothing_to_judge() -> None:
    with pytest.raises(ValueError, match="no length"):
        run_until_converged(lambda n: n, lambda _: True, [])
