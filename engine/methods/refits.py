"""The steps of a run's recipe, carried out again on other confidential data: what an audit asks of whoever runs it.

A measure that declares ``refits`` is given them in place of the models. A shadow is a release made by the run's own methods, in its order of
synthesis, with its constraints, limits and weights, with random numbers of its own. No run, task or table is made for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ..data.arrays import Floats
from ..data.microdata import Microdata
from ..partition.hierarchies import Hierarchy
from .privacy import Claim
from .release_models import ReleaseModel


class Published(NamedTuple):
    """The counts of a protected table in the cells of T people, ``counts`` (T,), and the standard deviation of their ``noise``, 0 without any."""

    counts: Floats
    noise: float


@dataclass(frozen=True, eq=False)
class Shown:
    """A shadow release: its ``datasets`` and what the tables ``published`` beside them say of T people. ``whole`` says that all else follows from these tables."""

    datasets: tuple[Microdata, ...]
    published: tuple[Published, ...] = ()
    whole: bool = False

    def counted(self, people: int) -> Floats:
        """What the published tables count in the cells of each, (T,), by precision: of noisy tables, up to a constant, the logarithm of the likelihood ratio of a record more in these cells."""
        found = np.zeros(people)
        for one in self.published:
            found += one.counts / (one.noise**2 if one.noise else 1.0)
        return found

    @property
    def noisy(self) -> bool:
        """Whether nothing is shown but noisy tables and what follows from them: then ``counted`` is the most powerful statistic of one record more."""
        return self.whole and bool(self.published) and all(one.noise > 0 for one in self.published)


class Refits(Protocol):
    """What can be made again, and of what.

    ``changed`` are the variables that the release does not show as they are, ``kept`` those that it does; a record's released row can then be
    found by these. ``removable`` says that a release has as many records whether or not one is removed from the data. ``claim`` is what the noise of
    the steps promises where one record is ``removed``, or else is another; None where nothing is claimed. ``trees`` are the hierarchies whose
    nodes are labels of the release. ``exact`` says whether ``models`` can be asked, ``publishes`` whether tables may leave beside the datasets.
    """

    @property
    def changed(self) -> tuple[str, ...]: ...
    @property
    def kept(self) -> tuple[str, ...]: ...
    @property
    def datasets(self) -> int: ...
    @property
    def removable(self) -> bool: ...
    @property
    def publishes(self) -> bool: ...
    @property
    def trees(self) -> Mapping[str, Hierarchy]: ...
    @property
    def exact(self) -> bool: ...

    def claim(self, removed: bool, /) -> Claim | None: ...

    def releases(
        self, shadows: Sequence[int], tables: Sequence[Microdata], datasets: int, people: Microdata, /
    ) -> Sequence[Shown]:
        """``datasets`` datasets made of each of several tables, and what is published of these ``people``; ``shadows`` number their streams of random
        numbers, so that it makes no difference which are made together. Raises NotComputable where the steps fail.
        """

    def models(self, data: Microdata, releases: Sequence[Microdata], /) -> tuple[ReleaseModel, ...]:
        """The models of all steps, fitted to ``data``, which say how probable these releases are."""
