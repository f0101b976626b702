"""Streams with and without a key."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from hashlib import sha256

import numpy as np
import pytest

from sfumato.engine import execution
from sfumato.engine.execution import execute
from sfumato.engine.microdata import Microdata
from sfumato.engine.recipe import Recipe
from sfumato.engine.run import PUBLIC, Randomness

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
    [Randomness, execution.fit_model, execution.draw_dataset, execution.anonymise, execution.measure_dataset,
     execution.study_point, execution.execute],
)  # fmt: skip
def test_whoever_forgets_the_key_is_told(function: Callable[..., object]) -> None:
    """A public key is named, never taken for granted."""
    assert inspect.signature(function).parameters["key"].default is inspect.Parameter.empty


def test_every_stream_depends_on_key_seed_and_path_and_on_nothing_else() -> None:
    found = [tuple(first(Randomness(s, k).generator(*p))) for s in (0, 1, 2**40) for k in (KEY, OTHER) for p in PATHS]
    assert len(set(found)) == len(found)
    assert first(Randomness(7, KEY).generator("fit", 0)) == first(Randomness(7, KEY).generator("fit", 0))


KNOWN = [24934, 86095, 592593]


def test_a_keyed_stream_is_the_same_on_every_machine() -> None:
    """``SeedSequence([7, *np.frombuffer(hmac.digest(KEY, b'["sfumato stream", 7, "fit", 0]', "sha256"), ">u4")], spawn_key=...)``."""
    assert first(Randomness(7, KEY).generator("fit", 0)) == KNOWN


def test_one_stream_laid_bare_does_not_lay_bare_the_others() -> None:
    """NumPy's mixing of a seed can be undone: what enters it must be another for every path, and never the key."""
    entropies = [Randomness(7, KEY).generator(*path).bit_generator.seed_seq.entropy for path in PATHS]  # type: ignore[attr-defined]
    words = [tuple(entropy[1:]) for entropy in entropies]
    assert len(set(words)) == len(PATHS)
    raw = tuple(int.from_bytes(KEY[at : at + 4], "big") for at in range(0, 32, 4))
    assert not {word for own in words for word in own} & set(raw)


def test_a_key_is_not_shown() -> None:
    assert "key" not in repr(Randomness(7, KEY))


def test_the_key_enters_what_a_run_fits_draws_and_measures(
    small_recipe: Callable[..., Recipe], small_data: Microdata
) -> None:
    recipe = small_recipe(measure=[{"method": "utility.interval_overlap"}, {"method": "utility.ecdf"}], threshold=[])
    outcomes = [execute(recipe, small_data, key=key) for key in (PUBLIC, KEY, OTHER, KEY)]
    tables = [[release.frame.to_csv() for release in outcome.releases] for outcome in outcomes]
    assert tables[1] == tables[3]
    assert len({own for found in tables[:3] for own in found}) == 3 * recipe.m
    assert outcomes[1].rows == outcomes[3].rows != outcomes[0].rows
