from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sfumato.engine.errors import Cancelled
from sfumato.engine.methods.run import PUBLIC, Progress, Randomness, Run, legacy_state


def first(rng: np.random.Generator) -> float:
    return float(rng.random())


def test_a_path_always_gives_the_same_stream() -> None:
    assert first(Randomness(2020, PUBLIC).generator("fit", 0)) == first(Randomness(2020, PUBLIC).generator("fit", 0))
    assert first(Randomness(2020, PUBLIC).generator()) == first(np.random.default_rng(2020))


def test_every_seed_and_path_has_its_own_stream() -> None:
    paths = [("fit", 0), ("fit", 1), ("draw", 0), ("draw", 1, 0), ("draw", 0, 1), (0, "fit"), (), ("fit",)]
    found = [first(Randomness(seed, PUBLIC).generator(*path)) for seed in (1, 2) for path in paths]
    assert len(set(found)) == len(found)


def test_streams_are_those_of_earlier_versions() -> None:
    """A change here changes every answer that anyone has reproduced."""
    assert Randomness(2020, PUBLIC).generator("fit", 0).integers(10**6, size=3).tolist() == [369960, 367915, 796466]
    assert Randomness(2020, PUBLIC).generator("draw", 3, 1).integers(10**6, size=3).tolist() == [141262, 310800, 404583]


def test_work_over_items_does_not_depend_on_the_pool() -> None:
    def work(item: int, rng: np.random.Generator) -> tuple[int, float]:
        return item, first(rng)

    def answers(run: Run) -> list[tuple[int, float]]:
        return list(run.over(work, range(8), "items"))

    alone = answers(Run(np.random.default_rng(1)))
    with ThreadPoolExecutor(4) as pool:
        assert answers(Run(np.random.default_rng(1), pool.map)) == alone
    assert [item for item, _ in alone] == list(range(8))
    assert len({value for _, value in alone}) == 8
    assert answers(Run(np.random.default_rng(2))) != alone


def test_progress_is_reported_after_each_item() -> None:
    seen: list[Progress] = []
    run = Run(np.random.default_rng(1), report=seen.append)
    assert list(run.over(lambda item, rng: item, "ab", "letters")) == ["a", "b"]
    assert seen == [Progress(1, 2, "letters"), Progress(2, 2, "letters")]


def test_a_report_may_cancel() -> None:
    done: list[int] = []

    def report(progress: Progress) -> None:
        if progress.done == 2:
            raise Cancelled

    run = Run(np.random.default_rng(1), report=report)
    with pytest.raises(Cancelled):
        list(run.over(lambda item, rng: done.append(item), range(5), "items"))
    assert done == [0, 1]


def test_a_legacy_state_follows_the_generator_and_leaves_the_global_one_alone() -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    rng = np.random.default_rng(3)
    one, two = legacy_state(rng), legacy_state(rng)
    again = legacy_state(np.random.default_rng(3))
    assert np.array_equal(one[1], again[1])
    assert not np.array_equal(one[1], two[1])
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002
