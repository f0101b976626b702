"""What datasets released in one stratum, and the multinomial logit that they were drawn from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve

from ..arrays import Floats, Integers
from ..data.microdata import Microdata
from ..design.categories import categories_of
from ..design.completed_design import CompletedDesign
from ..design.distinct_records import distinct_records
from ..design.stratified_logit import StratumRecords, strata_of
from ..statistics.multinomial_logit import MultinomialLogit, log_probabilities, places_of
from ._changed_multinomial import Change, changed_coefficients, information_of, log_sums, sums_of
from ._drawn_multinomial import DrawnMode, drawn_mode


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """Rows of the design of released records, ``x`` (r, p), of how many ``records`` (r,) each is, and the ``sums`` (K, p) of the records of each class."""

    x: Floats
    records: Floats
    sums: Floats

    @classmethod
    def of(
        cls,
        data: Microdata,
        target: str,
        design: CompletedDesign,
        variable: str | None,
        groups: Mapping[str, tuple[str, ...]],
        stratum: StratumRecords,
        release: Microdata,
    ) -> ReleasedRows:
        """Those of a stratum; records that are alike are one row where they are of the confidential data, ``stratum.weights``."""
        size = len(stratum.classes)
        inside = np.flatnonzero(strata_of(release, variable, groups) == stratum.number)
        places = places_of(categories_of(data, target, None).codes(release)[inside], stratum.classes)
        if stratum.weights is None:
            x = design.matrix(release)[np.ix_(inside, stratum.kept)]
            return cls(x, np.ones(len(x)), sums_of(x, places, size))
        own = Microdata(release.schema, release.frame.iloc[inside], release.origin)
        distinct = distinct_records(own, design.columns)
        x = design.matrix(distinct.table(own))[:, stratum.kept]
        cells = np.bincount(places * len(x) + distinct.of, minlength=size * len(x)).reshape(size, len(x))
        return cls(x, distinct.sums(), cells @ x)

    def alike(self, other: ReleasedRows) -> bool:
        """Whether both are of the same records but for their classes."""
        return np.array_equal(self.x, other.x) and np.array_equal(self.records, other.records)


@dataclass(frozen=True, eq=False)
class StratumRelease:
    """The model of one stratum, fitted by the rows' ``weights``, and what each of m datasets ``released`` in it. ``drawn``: each dataset has coefficients
    of its own, drawn around the maximum.
    """

    records: StratumRecords
    weights: Floats
    model: MultinomialLogit
    released: tuple[ReleasedRows, ...]
    drawn: bool = False

    @cached_property
    def designs(self) -> tuple[tuple[ReleasedRows, Integers], ...]:
        """The rows of released records, and which datasets have them: all the same where predictors are not made anew."""
        found: list[tuple[ReleasedRows, list[int]]] = []
        for draw, one in enumerate(self.released):
            known = next((draws for other, draws in found if one.alike(other)), None)
            if known is None:
                found.append((one, [draw]))
            else:
                known.append(draw)
        return tuple((one, np.array(draws)) for one, draws in found)

    @cached_property
    def sums(self) -> Floats:
        """The sums (m, K, p) of the columns of each class's released records."""
        return np.array([one.sums for one in self.released]).reshape(-1, *self.model.coefficients.shape)

    def changed(self, changes: Sequence[Change]) -> Iterator[Floats]:
        """The maximum (K, p) with each change of a record alone."""
        places = self.model.places(self.records.y)
        return changed_coefficients(self.model, self.records.x, places, self.weights, changes)

    def likelihood_at(self, coefficients: Floats) -> Floats:
        """The log-likelihood of each dataset, (m,), by coefficients (K, p)."""
        found = (self.sums * coefficients).sum(axis=(1, 2))
        for one, draws in self.designs:
            found[draws] -= (log_sums(one.x, coefficients) * one.records).sum()
        return np.asarray(found)

    @cached_property
    def likelihood(self) -> Floats:
        """That at the fit; of drawn coefficients that of all they may be."""
        if self.drawn:
            return np.array([mode.likelihood for mode in self.modes])
        return self.likelihood_at(self.model.coefficients)

    @cached_property
    def modes(self) -> tuple[DrawnMode, ...]:
        """Of each dataset, the coefficients it was most probably drawn with."""
        fitted = self.model, self.records.x, self.weights, self.inverse
        return tuple(drawn_mode(*fitted, one.x, one.records, one.sums) for one in self.released)

    @cached_property
    def inverse(self) -> Floats:
        """The inverse (K, p, K, p) of minus the Hessian."""
        k, p = self.model.coefficients.shape
        return np.asarray(cho_solve((self.model.factor, True), np.eye(k * p)).reshape(k, p, k, p))

    @cached_property
    def pulled(self) -> Floats:
        """H^-1 g_Z, (m, K, p), with the gradient of each dataset's log-likelihood at the fit; of drawn coefficients e + c."""
        if self.drawn:
            return np.array([mode.offset + mode.moved for mode in self.modes]).reshape(self.sums.shape)
        gradients = self.sums.copy()
        for one, draws in self.designs:
            chance = np.exp(log_probabilities(one.x, self.model.coefficients))
            gradients[draws] -= (chance * one.records[:, None]).T @ one.x
        return self.model.step(gradients)

    @cached_property
    def bent(self) -> tuple[tuple[Floats, Integers], ...]:
        """H^-1 H_Z H^-1 (K, p, K, p), with the information of a dataset, and the datasets of which it is that; of drawn coefficients
        H^-1 - A^-1.
        """
        if self.drawn:
            return tuple((self.inverse - mode.inverse, np.array([draw])) for draw, mode in enumerate(self.modes))
        shape = self.inverse.shape
        whole = self.inverse.reshape(self.model.coefficients.size, -1)
        found = []
        for one, draws in self.designs:
            information = information_of(one.x, self.model.coefficients, one.records)
            found.append(((whole @ information @ whole).reshape(shape), draws))
        return tuple(found)
