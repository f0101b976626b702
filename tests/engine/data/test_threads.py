"""Work on threads gives what it gives without them, in the same order."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from sfumato.engine.data.arrays import iterate_ahead, map_ahead, map_on_threads

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("number", [0, 1, 2, 3, 20])
def test_results_come_in_the_order_of_the_parts(number: int) -> None:
    expected = [part * part for part in range(number)]
    assert map_on_threads(lambda part: part * part, range(number)) == expected
    for threads in (1, 2, 4):
        assert list(map_ahead(lambda part: part * part, range(number), threads)) == expected
    assert list(iterate_ahead(iter(expected))) == expected


def test_the_next_thing_is_computed_while_one_is_used() -> None:
    begun = [threading.Event() for _ in range(3)]

    def things() -> Iterator[int]:
        for number, event in enumerate(begun):
            event.set()
            yield number

    ahead = iterate_ahead(things())
    assert next(ahead) == 0
    assert begun[1].wait(10)
    assert not begun[2].is_set()
    assert list(ahead) == [1, 2]


def test_no_more_parts_are_held_than_there_are_threads() -> None:
    begun: list[int] = []
    ahead = map_ahead(begun.append, range(100), 2)
    next(ahead)
    assert len(begun) <= 2
    ahead.close()
    assert len(begun) <= 3


def test_an_error_ends_the_work_and_reaches_the_caller() -> None:
    def things() -> Iterator[int]:
        yield 1
        raise ValueError("the second")

    ahead = iterate_ahead(things())
    assert next(ahead) == 1
    with pytest.raises(ValueError, match="the second"):
        next(ahead)
    with pytest.raises(ZeroDivisionError):
        list(map_ahead(lambda part: 1 // part, [1, 0, 1], 2))


def test_threads_know_the_settings_of_the_caller() -> None:
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        map_on_threads(lambda part: np.ones(1) / part, [np.zeros(1)], threads=1)
    with np.errstate(divide="ignore"):
        assert np.isinf(map_on_threads(lambda part: np.ones(1) / part, [np.zeros(1)], threads=1)[0]).all()
