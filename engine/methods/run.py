"""Resources of a computation: randomness, a map, and a callback for progress."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence
from numpy.typing import DTypeLike, NDArray

from ..data.provenance import ReleaseProvenance

Item = TypeVar("Item")
Answer = TypeVar("Answer")
PUBLIC = b""
"""No key: streams that anybody who has the seed can repeat."""
STREAM = "sfumato stream"
"""Keeps what is derived for streams apart from all else that is derived from a key."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a computation: ``done`` of ``total`` pieces of ``what``."""

    done: int
    total: int
    what: str


def ignore_progress(progress: Progress) -> None: ...


@dataclass(frozen=True, slots=True)
class Randomness:
    """Source of every random number of a run: the recipe's ``seed`` and the ``key`` of the workspace.

    ``bound_to`` is what else a keyed stream depends on: what is computed, and from which data
    (``sfumato.engine.execution.tasks``). Properties of a keyed stream, and their basis:

    - Without the key no stream can be distinguished from random numbers, nor guessed by trying seeds: the start of every
      stream is an HMAC-SHA-256 by a key of 256 bits (RFC 2104; NIST SP 800-108 §4.1).
    - One disclosed stream reveals no other, nor the key: the streams of other paths, seeds, data and recipes have other
      HMACs, and those that a generator spawns are HMACs of its own start.
    - Two runs share random numbers only where all that makes their datasets agrees, so that the datasets do too: no
      difference of two releases cancels the noise in them.

    With ``PUBLIC`` as key, ``SeedSequence(seed, spawn_key=path)`` and PCG64 make a stream that keeps nothing secret. No
    function has that as a default, so callers always name a key.
    """

    seed: int
    key: bytes = field(repr=False)
    bound_to: tuple[str, ...] = ()
    path_prefix: tuple[str | int, ...] = ()
    path_suffix: tuple[str | int, ...] = ()

    def with_path_prefix(self, *path: str | int) -> Randomness:
        """Return the same source with this path in front of every path, for a computation that has tasks of its own."""
        return replace(self, path_prefix=(*self.path_prefix, *path))

    def with_path_suffix(self, *path: str | int) -> Randomness:
        """Return the same source with this path behind every path, such as the number of a block of a table."""
        return replace(self, path_suffix=(*self.path_suffix, *path))

    def generator(self, *path: str | int) -> np.random.Generator:
        """Return the generator of one task, which depends on seed, key, ``bound_to`` and the task's path alone.

        In the path of a public one a word enters by the first four bytes of its SHA-256, a number as itself.
        """
        path = (*self.path_prefix, *path, *self.path_suffix)
        if self.key:
            # Philox 4x64-10 (Salmon, Moraes, Dror & Shaw 2011) under a key of 128 bits is 10 keyed bijections of a
            # counter, without a state that outputs could be solved for. NumPy's default, PCG64, has such a state and
            # does not resist (Bouillaguet, Martinez & Sauvage 2020). Philox is no cipher: no published attack finds its
            # key, and no proof excludes one. Only a single stream depends on that, of which a release shows rounded and
            # mixed numbers: the donors of one dataset in a meaningless order, or the noise in one column.
            said = json.dumps([STREAM, self.seed, self.bound_to, path]).encode()
            return np.random.Generator(np.random.Philox(KeyedSeed(hmac.digest(self.key, said, "sha256"))))  # type: ignore[arg-type]
        spawn_key = tuple(part if isinstance(part, int) else _spawn_key_of_word(part) for part in path)
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=spawn_key))


class KeyedSeed(ISpawnableSeedSequence):
    """Seed of one stream, 32 bytes that seed nothing else: a pseudorandom function in counter mode.

    It crosses processes with its generator, and reveals that stream and its children alone.
    """

    def __init__(self, secret: bytes, spawned: int = 0) -> None:
        self._secret = secret
        self._spawned = spawned

    def generate_state(self, n_words: int, dtype: DTypeLike = np.uint32) -> NDArray[Any]:
        """Return words (n_words,) that seed a bit generator, equal on every machine."""
        word = np.dtype(dtype)
        blocks = -(-n_words * word.itemsize // hashlib.sha256().digest_size)
        # NumPy's own SeedSequence mixes by multiplications that can be undone, so words and children are HMACs.
        found = b"".join(self._derive_bytes("state", block) for block in range(blocks))
        # Little-endian whatever the machine, so that a run can be repeated on another.
        return np.frombuffer(found, word.newbyteorder("<"), n_words).astype(word)

    def spawn(self, n_children: int) -> list[KeyedSeed]:
        """Return seeds of child streams, different ones at every call."""
        first, self._spawned = self._spawned, self._spawned + n_children
        return [KeyedSeed(self._derive_bytes("child", number)) for number in range(first, self._spawned)]

    def _derive_bytes(self, what: str, number: int) -> bytes:
        return hmac.digest(self._secret, f"{what} {number}".encode(), "sha256")

    def __repr__(self) -> str:
        return "KeyedSeed()"


def _spawn_key_of_word(word: str) -> int:
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")


def legacy_state(rng: np.random.Generator) -> Any:
    """Draw the state of a legacy ``RandomState`` from ``rng``, which emcee needs to be reproducible."""
    # 63 bits of a keyed stream are too many to try, and the walk that they decide is published only as draws of
    # parameters.
    return np.random.RandomState(np.random.MT19937(rng.integers(2**63))).get_state()


@dataclass(frozen=True)
class Run:
    """Randomness, parallelism and progress of one computation.

    rng: generator of the computation
    map: any function with the signature of the built-in
    report: called in the caller's thread; may raise ``Cancelled``
    shared: generator with the same numbers for every dataset that a measure is computed on, including the confidential
        data; None for ``rng``
    provenance: how the release comes about that a fit is for; None where there is no release
    """

    rng: np.random.Generator
    map: Callable[..., Iterable[Any]] = field(default=map)
    report: Callable[[Progress], None] = field(default=ignore_progress)
    shared: np.random.Generator | None = None
    provenance: ReleaseProvenance | None = None

    @property
    def for_all(self) -> np.random.Generator:
        """Return the generator of the numbers that all datasets of a measure share."""
        return self.rng if self.shared is None else self.shared

    @property
    def secret(self) -> bool:
        """Return whether its random numbers are keyed, so that only holders of the key can repeat them."""
        return isinstance(self.rng.bit_generator.seed_seq, KeyedSeed)

    def over(
        self, func: Callable[[Item, np.random.Generator], Answer], items: Sequence[Item], what: str
    ) -> Iterator[Answer]:
        """Yield ``func(item, rng)`` for every item."""
        # Spawned before anything runs, so that results do not depend on the order of execution.
        children = self.rng.spawn(len(items))
        for done, answer in enumerate(self.map(func, items, children), start=1):
            self.report(Progress(done, len(items), what))
            yield answer
