"""The steps of a run's recipe, carried out again on other confidential data: what an audit asks of whoever runs it.

A measure that declares ``refits`` is given them in place of the models. A shadow is a release made by the run's own methods, in its order of
synthesis, with its constraints, limits and weights, with random numbers of its own. No run, task or table is made for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..data.microdata import Microdata
from ..partition.hierarchies import Hierarchy
from .release_models import ReleaseModel


class Refits(Protocol):
    """What can be made again, and of what.

    ``changed`` are the variables that the release does not show as they are, ``kept`` those that it does; a record's released row can then be
    found by these. ``removable`` says that a release has as many records whether or not one is removed from the data. ``epsilon`` is
    what the noise of the steps claims to cost by the addition or removal of one record; None where nothing is claimed. ``trees`` are the
    hierarchies whose nodes are labels of the release. ``exact`` says whether ``models`` can be asked.
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
    def epsilon(self) -> float | None: ...
    @property
    def trees(self) -> Mapping[str, Hierarchy]: ...
    @property
    def exact(self) -> bool: ...

    def releases(
        self, shadows: Sequence[int], tables: Sequence[Microdata], datasets: int, /
    ) -> Sequence[tuple[Microdata, ...]]:
        """``datasets`` datasets made of each of several tables; ``shadows`` number their streams of random numbers, so that it makes no difference
        which are made together. Raises NotComputable where the steps fail.
        """

    def models(self, data: Microdata, releases: Sequence[Microdata], /) -> tuple[ReleaseModel, ...]:
        """The models of all steps, fitted to ``data``, which say how probable these releases are."""
