"""What a computation is given to work with: randomness, a map, and somewhere to report to."""

from __future__ import annotations

import hashlib
import hmac
import json
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


PUBLIC = b""
"""No key: streams that anybody who has the seed can repeat."""


@dataclass(frozen=True, slots=True)
class Randomness:
    """Where every random number of a run comes from: the recipe's ``seed``, and beside it the ``key`` of the workspace.

    Whoever has the seed and no key can repeat no stream. With ``PUBLIC`` for a key the seed alone decides; nothing takes that
    for granted: who computes names a key, as the functions of ``sfumato.engine.execution`` ask for one.
    """

    seed: int
    key: bytes = field(repr=False)

    def generator(self, *path: str | int) -> np.random.Generator:
        """The generator of one task: ``SeedSequence([seed, words of the key], spawn_key=path)``.

        A word in the path enters by the first four bytes of its SHA-256, a number as itself, so the stream depends on seed,
        key and the task's path alone. The eight words are an HMAC-SHA-256 of seed and path by the key: NumPy's mixing can be
        undone, so that one stream laid bare would give away the key and with it all others (RFC 2104; NIST SP 800-108 §4.1).
        Without a key it is ``SeedSequence(seed, spawn_key=path)``.
        """
        spawn_key = tuple(part if isinstance(part, int) else _word_key(part) for part in path)
        entropy = [self.seed, *self._words(path)] if self.key else self.seed
        return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=spawn_key))

    def _words(self, path: Sequence[str | int]) -> list[int]:
        bound = hmac.digest(self.key, json.dumps([STREAM, self.seed, *path]).encode(), "sha256")
        return [int.from_bytes(bound[at : at + 4], "big") for at in range(0, len(bound), 4)]


STREAM = "sfumato stream"
"""Keeps what is derived for streams apart from all else that is derived from a key."""


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
