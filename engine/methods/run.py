"""What a computation is given to work with: randomness, a map, and somewhere to report to."""

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

Item = TypeVar("Item")
Answer = TypeVar("Answer")
PUBLIC = b""
"""No key: streams that anybody who has the seed can repeat."""
STREAM = "sfumato stream"
"""Keeps what is derived for streams apart from all else that is derived from a key."""


@dataclass(frozen=True, slots=True)
class Progress:
    """``done`` of ``total`` pieces of ``what``."""

    done: int
    total: int
    what: str


def silent(progress: Progress) -> None: ...


@dataclass(frozen=True, slots=True)
class Randomness:
    """Where every random number of a run comes from: the recipe's ``seed``, and beside it the ``key`` of the workspace.

    With ``PUBLIC`` for a key the seed alone decides, as it did before there were keys; nothing takes that for granted: who
    computes names a key, as the functions of ``sfumato.engine.execution.tasks`` ask for one. ``bound_to`` is what else a keyed
    stream depends on: what is computed, and from which data (``sfumato.engine.execution.tasks``).

    What a key keeps, and on what that rests:

    - Without the key no stream can be told from random numbers, nor guessed by trying seeds: the start of every stream is
      an HMAC-SHA-256 by a key of 256 bits (RFC 2104; NIST SP 800-108 §4.1).
    - One stream laid bare gives away no other, nor the key: the streams of other paths, seeds, data and recipes have other
      HMACs, and those that a generator spawns are HMACs of its own start.
    - Two runs share random numbers only where all that makes their datasets agrees, so that the datasets do too: no difference
      of two releases cancels the noise in them.
    - Within a stream the numbers are those of Philox 4x64 with 10 rounds (Salmon, Moraes, Dror & Shaw 2011) under a
      key of 128 bits: 10 keyed bijections of a counter, without a state that outputs could be solved for. NumPy's default, PCG64, has
      such a state and does not resist (Bouillaguet, Martinez & Sauvage 2020). Philox is no cipher, and its authors claim nothing
      of that kind: nobody has published how to find its key, nobody has proved that there is no way. What hangs on that is one
      stream only, of which a release shows rounded and mixed numbers: the donors of one dataset, which lie in
      an order that says nothing, or the noise in one column of it.

    A public stream, ``SeedSequence(seed, spawn_key=path)`` and PCG64, keeps nothing.
    """

    seed: int
    key: bytes = field(repr=False)
    bound_to: tuple[str, ...] = ()
    within: tuple[str | int, ...] = ()

    def under(self, *path: str | int) -> Randomness:
        """The same with every path below this one: for a computation that has tasks of its own."""
        return replace(self, within=(*self.within, *path))

    def generator(self, *path: str | int) -> np.random.Generator:
        """The generator of one task: it depends on seed, key, what they are bound to and the task's path alone.

        Of a public one a word in the path enters by the first four bytes of its SHA-256, a number as itself.
        """
        path = (*self.within, *path)
        if self.key:
            said = json.dumps([STREAM, self.seed, self.bound_to, path]).encode()
            return np.random.Generator(np.random.Philox(KeyedSeed(hmac.digest(self.key, said, "sha256"))))  # type: ignore[arg-type]
        spawn_key = tuple(part if isinstance(part, int) else _word_key(part) for part in path)
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=spawn_key))


class KeyedSeed(ISpawnableSeedSequence):
    """The start of one stream, 32 bytes that nothing else is started with: a pseudorandom function in counter mode.

    NumPy's own ``SeedSequence`` mixes by multiplications that can be undone; here words and children are HMAC-SHA-256 by
    the ``secret``. It crosses processes with its generator, and gives away that stream and its children alone.
    """

    def __init__(self, secret: bytes, spawned: int = 0) -> None:
        self._secret = secret
        self._spawned = spawned

    def generate_state(self, n_words: int, dtype: DTypeLike = np.uint32) -> NDArray[Any]:
        """Words (n_words,) to start a bit generator with: the same on every machine."""
        word = np.dtype(dtype)
        blocks = -(-n_words * word.itemsize // hashlib.sha256().digest_size)
        found = b"".join(self._derived("state", block) for block in range(blocks))
        return np.frombuffer(found, word.newbyteorder("<"), n_words).astype(word)

    def spawn(self, n_children: int) -> list[KeyedSeed]:
        """Starts of streams of their own, others at every call."""
        first, self._spawned = self._spawned, self._spawned + n_children
        return [KeyedSeed(self._derived("child", number)) for number in range(first, self._spawned)]

    def _derived(self, what: str, number: int) -> bytes:
        return hmac.digest(self._secret, f"{what} {number}".encode(), "sha256")

    def __repr__(self) -> str:
        return "KeyedSeed()"


def _word_key(word: str) -> int:
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")


def legacy_state(rng: np.random.Generator) -> Any:
    """A ``RandomState`` state drawn from ``rng``: what emcee needs to be reproducible.

    Its 63 bits of a keyed stream are too many to try, and the walk that they decide leaves only as draws of parameters.
    """
    return np.random.RandomState(np.random.MT19937(rng.integers(2**63))).get_state()


@dataclass(frozen=True)
class Run:
    """Randomness, parallelism and progress of one computation.

    ``map`` is any function with the signature of the built-in; ``report`` is called in the caller's
    thread and may raise ``Cancelled``. ``shared`` has the same numbers for every dataset that a measure is computed on, the
    confidential data included, so that what it draws is the same for all of them; without one ``rng`` stands in. ``records`` is the number of
    rows of a released dataset, None for as many as the data have.
    """

    rng: np.random.Generator
    map: Callable[..., Iterable[Any]] = field(default=map)
    report: Callable[[Progress], None] = field(default=silent)
    shared: np.random.Generator | None = None
    records: int | None = None

    @property
    def for_all(self) -> np.random.Generator:
        """The generator of what every dataset of a measure has in common."""
        return self.rng if self.shared is None else self.shared

    @property
    def secret(self) -> bool:
        """Whether its random numbers are keyed, so that nobody without the key can repeat them."""
        return isinstance(self.rng.bit_generator.seed_seq, KeyedSeed)

    def over(
        self, func: Callable[[Item, np.random.Generator], Answer], items: Sequence[Item], what: str
    ) -> Iterator[Answer]:
        """``func(item, rng)`` for every item, each with a generator spawned before anything runs."""
        children = self.rng.spawn(len(items))
        for done, answer in enumerate(self.map(func, items, children), start=1):
            self.report(Progress(done, len(items), what))
            yield answer
