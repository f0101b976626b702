"""Streams with and without a key."""

from __future__ import annotations

import hmac
import inspect
import json
import pickle
from collections.abc import Callable
from hashlib import sha256

import numpy as np
import pytest

from sfumato.engine.data.microdata import Microdata
from sfumato.engine.execution import tasks
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC, KeyedSeed, Randomness
from sfumato.engine.recipe.recipe import Recipe

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
PATHS: list[tuple[str | int, ...]] = [
    ("sample",),
    ("fit", 0),
    ("fit", 1),
    ("draw", 1, 0),
    ("draw", 2, 0),
    ("release", 1),
]


def first(rng: np.random.Generator) -> list[int]:
    return rng.integers(10**6, size=3).tolist()


@pytest.mark.parametrize("path", PATHS)
def test_with_a_public_key_the_stream_is_that_of_the_seed_alone(path: tuple[str | int, ...]) -> None:
    words = tuple(part if isinstance(part, int) else int(sha256(part.encode()).hexdigest()[:8], 16) for part in path)
    by_the_seed = np.random.default_rng(np.random.SeedSequence(7, spawn_key=words))
    alone = first(Randomness(7, PUBLIC).generator(*path))
    assert alone == first(by_the_seed)
    assert alone != first(Randomness(7, KEY).generator(*path))


@pytest.mark.parametrize(
    "function",
    [Randomness, tasks.fit_model, tasks.draw_dataset, tasks.anonymise_data, tasks.measure_dataset,
     tasks.compute_study_point, tasks.compute_study_points, tasks.execute_run],
)  # fmt: skip
def test_whoever_forgets_the_key_is_told(function: Callable[..., object]) -> None:
    """A public key is named, never taken for granted."""
    assert inspect.signature(function).parameters["key"].default is inspect.Parameter.empty


def test_every_stream_depends_on_key_seed_path_and_what_it_is_bound_to() -> None:
    bound: list[tuple[str, ...]] = [(), ("data",), ("data", "recipe"), ("datarecipe",)]
    found = [
        tuple(first(Randomness(s, k, b).generator(*p)))
        for s in (0, 1, 2**40) for k in (KEY, OTHER) for b in bound for p in PATHS
    ]  # fmt: skip
    assert len(set(found)) == len(found)
    assert first(Randomness(7, KEY).generator("fit", 0)) == first(Randomness(7, KEY).generator("fit", 0))


def hmac_of(secret: bytes, said: str) -> bytes:
    return hmac.digest(secret, said.encode(), "sha256")


def philox(start: bytes) -> list[int]:
    """The first numbers of Philox under the first 16 bytes that a start derives."""
    words = np.frombuffer(hmac_of(start, "state 0")[:16], "<u8")
    return first(np.random.Generator(np.random.Philox(key=words)))


KNOWN = [699910, 919459, 63694]


def test_a_keyed_stream_is_philox_under_a_key_of_its_own_on_every_machine() -> None:
    start = hmac_of(KEY, '["sfumato stream", 7, [], ["fit", 0]]')
    assert first(Randomness(7, KEY).generator("fit", 0)) == philox(start) == KNOWN
    bound = hmac_of(KEY, '["sfumato stream", 7, ["some data"], ["fit", 0]]')
    assert first(Randomness(7, KEY, ("some data",)).generator("fit", 0)) == philox(bound)
    children = Randomness(7, KEY).generator("fit", 0).spawn(2)
    assert [first(child) for child in children] == [philox(hmac_of(start, f"child {i}")) for i in (0, 1)]


def test_what_a_keyed_generator_spawns_is_new_at_every_call_and_crosses_processes() -> None:
    rng = Randomness(7, KEY).generator("fit", 0)
    children = [*rng.spawn(2), *rng.spawn(1), *rng.spawn(1)[0].spawn(2)]
    copies = [pickle.loads(pickle.dumps(child)) for child in children]
    found = [tuple(first(child)) for child in children]
    assert len({*found, tuple(first(rng))}) == 6
    assert [tuple(first(copy)) for copy in copies] == found
    assert [first(one) for one in copies[0].spawn(2)] == [first(one) for one in children[0].spawn(2)]


def test_as_many_words_as_a_bit_generator_asks_for_start_it() -> None:
    seed = KeyedSeed(KEY)
    words = seed.generate_state(23)
    assert words.dtype == np.uint32
    assert seed.generate_state(11, np.uint64).tolist() == words[:22].view("<u8").tolist()
    assert len(set(words.tolist())) == 23
    assert np.random.Generator(np.random.MT19937(seed)).random() != np.random.Generator(np.random.SFC64(seed)).random()  # type: ignore[arg-type]


def test_one_stream_laid_bare_does_not_lay_bare_the_key_or_another_stream() -> None:
    """All that a generator carries to another process derives its own numbers, and is the HMAC of another path for others."""
    carried = [pickle.dumps(Randomness(7, KEY).generator(*path)) for path in PATHS]
    starts = [hmac_of(KEY, json.dumps(["sfumato stream", 7, [], path])) for path in PATHS]
    for mine, sent in zip(starts, carried, strict=True):
        assert mine in sent
        assert KEY not in sent
        assert not any(other in sent for other in starts if other != mine)
    assert "KEY" not in repr(KeyedSeed(b"KEY"))


def test_a_public_stream_is_bound_to_nothing() -> None:
    assert first(Randomness(7, PUBLIC, ("some data",)).generator("fit", 0)) == first(
        Randomness(7, PUBLIC).generator("fit", 0)
    )


def test_a_key_is_not_shown() -> None:
    assert "key" not in repr(Randomness(7, KEY))


@pytest.mark.slow
def test_the_key_enters_what_a_run_fits_draws_and_measures(
    small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    recipe = small_recipe(measure=[{"method": "utility.interval_overlap"}, {"method": "utility.ecdf"}], threshold=[])
    outcomes = [execute_run(recipe, small_data, key=key) for key in (PUBLIC, KEY, OTHER, KEY)]
    tables = [[release.frame.to_csv() for release in outcome.releases] for outcome in outcomes]
    assert tables[1] == tables[3]
    assert len({own for found in tables[:3] for own in found}) == 3 * recipe.m
    assert outcomes[1].rows == outcomes[3].rows != outcomes[0].rows
