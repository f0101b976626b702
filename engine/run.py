"""What a computation is given to work with: randomness, a map, and somewhere to report to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Progress:
    """``done`` of ``total`` pieces of ``what``."""

    done: int
    total: int
    what: str


def silent(progress: Progress) -> None:
    """Report to nobody."""


def generator(seed: int, *path: str | int) -> np.random.Generator:
    """The generator of one task: ``SeedSequence(seed, spawn_key=path)``.

    A word in the path enters by the first four bytes of its SHA-256, a number as itself,
    so the stream depends on the seed and the task's path alone.
    """
    key = tuple(part if isinstance(part, int) else _word_key(part) for part in path)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def _word_key(word: str) -> int:
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")


def legacy_state(rng: np.random.Generator) -> Any:
    """A ``RandomState`` state drawn from ``rng``: what emcee needs to be reproducible."""
    return np.random.RandomState(np.random.MT19937(rng.integers(2**63))).get_state()


@dataclass(frozen=True)
class Run:
    """Randomness, parallelism and progress of one computation.

    ``map`` is any function with the signature of the built-in; ``report`` is called in the caller's
    thread and may raise ``Cancelled``.
    """

    rng: np.random.Generator
    map: Callable[..., Iterable[Any]] = field(default=map)
    report: Callable[[Progress], None] = field(default=silent)

    def over(
        self, func: Callable[[Item, np.random.Generator], Answer], items: Sequence[Item], what: str
    ) -> Iterator[Answer]:
        """``func(item, rng)`` for every item, each with a generator spawned before anything runs."""
        children = self.rng.spawn(len(items))
        for done, answer in enumerate(self.map(func, items, children), start=1):
            self.report(Progress(done, len(items), what))
            yield answer
