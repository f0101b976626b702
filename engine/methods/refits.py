"""Shadow releases for an audit: the steps of a run's recipe, carried out again on other confidential data.

A measure that declares ``refits`` is given their maker in place of the models. A shadow release is made by the run's
own methods, in its order of synthesis, with its constraints, limits and weights, and with random numbers of its own. No
run, task or table is stored for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ..data.arrays import Floats
from ..data.microdata import Microdata
from ..partition.hierarchies import Hierarchy
from .privacy import NoiseGuarantee
from .release_models import ReleaseModel


class PublishedCounts(NamedTuple):
    """Counts of a protected table in the cells of T people.

    counts: count in the cell of each person, (T,)
    noise: standard deviation of the noise, 0 without any
    """

    counts: Floats
    noise: float


@dataclass(frozen=True, eq=False)
class ShadowRelease:
    """Release made again from other data.

    datasets: its datasets
    published: counts of published tables in the cells of T people
    from_tables_alone: whether all else follows from these tables
    """

    datasets: tuple[Microdata, ...]
    published: tuple[PublishedCounts, ...] = ()
    from_tables_alone: bool = False

    def summed_counts(self, people: int) -> Floats:
        """Return the sum of the published counts in the cells of each person, (T,), weighted by precision."""
        found = np.zeros(people)
        for one in self.published:
            # For Gaussian noise this is, up to a constant, the log likelihood ratio of one more record in these cells.
            found += one.counts / (one.noise**2 if one.noise else 1.0)
        return found

    @property
    def has_only_noisy_tables(self) -> bool:
        """Return whether the release consists of noisy tables and what follows from them alone."""
        # By the lemma of Neyman and Pearson, summed_counts is then the most powerful statistic for one more record.
        return self.from_tables_alone and bool(self.published) and all(one.noise > 0 for one in self.published)


class ShadowReleases(Protocol):
    """Maker of shadow releases of a run.

    changed_variables: variables that the release does not show unchanged
    kept_variables: variables that it shows unchanged, by which a record's released row can be found
    dataset_count: number of datasets of the release
    removable: whether a release has as many records after one is removed from the data
    publishes_tables: whether tables may be published beside the datasets
    hierarchies: trees whose nodes are labels of the release
    has_models: whether ``fit_models`` can be used
    noise_guarantee: guarantee of the noise where one record is ``removed``, or else replaced; None where nothing is
        claimed
    """

    @property
    def changed_variables(self) -> tuple[str, ...]: ...
    @property
    def kept_variables(self) -> tuple[str, ...]: ...
    @property
    def dataset_count(self) -> int: ...
    @property
    def removable(self) -> bool: ...
    @property
    def publishes_tables(self) -> bool: ...
    @property
    def hierarchies(self) -> Mapping[str, Hierarchy]: ...
    @property
    def has_models(self) -> bool: ...

    def noise_guarantee(self, removed: bool, /) -> NoiseGuarantee | None: ...

    def make_releases(
        self, shadows: Sequence[int], tables: Sequence[Microdata], datasets: int, people: Microdata, /
    ) -> Sequence[ShadowRelease]:
        """Make ``dataset_count`` datasets of each of several tables, and the published counts of these ``people``.

        ``shadows`` number their streams of random numbers, so that the result does not depend on which are made
        together. Raises NotComputable where the steps fail.
        """

    def fit_models(self, data: Microdata, releases: Sequence[Microdata], /) -> tuple[ReleaseModel, ...]:
        """Return the models of all steps fitted to ``data``, which give the probability of these releases."""
