"""Partial answers of a task in passes, on the disk beside the tables, for whoever goes on with it or helps.

A task in passes asks for the same sums of each block of a table, pass after pass. Their answers are kept until the task has
ended: a run that was interrupted goes on with the block at which it was, and workers without a task of their own compute
blocks of a task that others have. An answer is the same whoever computed it, so that nobody claims a block: at worst two
compute it. Everybody merges the answers by himself, which is quick.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import random
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from sfumato.engine.methods.passes import Partial
from sfumato.engine.methods.registry import OWN

from ..errors import StrangeFile
from ..plain_files import read_plain
from .tables import ASIDE_PREFIX

KEPT_PREFIX = f"{ASIDE_PREFIX}run-"
"""Begins the names of all files here: unfinished ones, so that they are removed a day after their task was given up."""
MOST_BYTES = 1 << 30
"""Largest size of a partial answer: many times what a pass may gather."""
DIGEST_BYTES = 32


class HelpEnded(Exception):
    """There is nothing more to help with: the task has ended, or its next pass is for one alone."""


class KeptPartials:
    """Partial answers of a task's blocks (``sfumato.engine.methods.passes.PartialStore``).

    directory: where the tables are
    run_id, identity: number of the run, and hash of all that the answers depend on
    helper: 0 for the one who has the task, else the number of the helper
    """

    def __init__(self, directory: Path, run_id: int, identity: str, helper: int = 0) -> None:
        self._directory, self._helper, self._number = directory, helper, -1
        self._prefix = f"{KEPT_PREFIX}{run_id}-{identity}-"

    @property
    def _mark(self) -> Path:
        """Return the file that is there while somebody has the task."""
        return self._directory / f"{self._prefix}open"

    def open(self) -> None:
        """Say that somebody has the task, so that others may help."""
        self._mark.touch(mode=0o600)

    def close(self) -> None:
        """Say that nobody has the task any more, so that whoever still helps ends; the answers stay."""
        self._mark.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove all answers, so that whoever still helps ends."""
        for path in self._directory.glob(f"{self._prefix}*"):
            path.unlink(missing_ok=True)

    def begin_pass(self, *, shared: bool) -> None:
        """Begin the next pass. Raises HelpEnded for a helper of one that is not shared."""
        self._number += 1
        if not shared and self._helper:
            raise HelpEnded

    def block_order(self, n_blocks: int) -> Sequence[int]:
        """Return the numbers of the blocks: in their order for the one who has the task, backwards for the first helper, in
        any order for others, so that few meet.
        """
        numbers = list(range(n_blocks))
        if self._helper == 1:
            numbers.reverse()
        elif self._helper:
            random.Random(self._helper).shuffle(numbers)  # noqa: S311  (an order, of no effect on any answer)
        return numbers

    def find_partial(self, number: int) -> Partial | None:
        """Return the answer of a block of this pass; None where there is none. Raises HelpEnded once the task has ended."""
        if self._helper and not self._mark.exists():
            raise HelpEnded
        path = self._path_of(number)
        try:
            content = read_plain(path, MOST_BYTES)
        except (FileNotFoundError, StrangeFile):
            return None
        digest, arrays = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
        if hashlib.sha256(arrays).digest() != digest:
            # Half of it may be on the disk after a crash: it is computed again.
            return None
        with np.load(io.BytesIO(arrays), allow_pickle=False) as found:
            return dict(found)

    def put_partial(self, number: int, found: Partial) -> None:
        """Keep the answer of a block of this pass. Raises HelpEnded once the task has ended, and OSError."""
        if self._helper and not self._mark.exists():
            raise HelpEnded
        written = io.BytesIO()
        np.savez(written, allow_pickle=False, **found)
        arrays = written.getvalue()
        handle, aside = tempfile.mkstemp(dir=self._directory, prefix=ASIDE_PREFIX)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(arrays).digest())
                file.write(arrays)
            Path(aside).replace(self._path_of(number))
            if self._helper and not self._mark.exists():
                # The task ended meanwhile, and its answers were removed.
                self._path_of(number).unlink(missing_ok=True)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(aside).unlink()
            raise

    def _path_of(self, number: int) -> Path:
        """Return the path of the answer of a block of this pass."""
        return self._directory / f"{self._prefix}{self._number}-{number}"


def identity_of_partials(*parts: str) -> str:
    """Return the hash of what partial answers depend on, and of this version of the program."""
    return hashlib.sha256(repr((version(OWN), *parts)).encode()).hexdigest()[:32]


def remove_partials_of_run(directory: Path, run_id: int) -> None:
    """Remove all partial answers of a run's tasks."""
    for path in directory.glob(f"{KEPT_PREFIX}{run_id}-*"):
        path.unlink(missing_ok=True)
