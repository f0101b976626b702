"""A release of linear regressions as an intruder weighs it.

Likelihoods are closed but for sigma (``sfumato.engine.posterior.linear_deletion``) unless bounds or rounding matter for what was released; then posteriors are
drawn from. Designs are formed block by block where a table is more than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..arrays import Floats
from ..data.microdata import Microdata
from ..data.schema import Kind
from ..data.terms import Design
from ..design.regression_rows import RegressionRows, held_together, triangle_together, weights_together
from ..errors import NotComputable, NotConverged
from ..methods.release_models import Guesses, Plausibility
from ..methods.run import silent
from ..posterior.bayesian_linear_regression import Standard
from ..posterior.drawn_in_bounds import Drawn, WithDrawn
from ..posterior.laplace import find_mode, weighted_draws
from ..posterior.linear_deletion import DeletedRecords
from ..posterior.reweighting import LeftOut, together
from ..recipe.weights import WEIGHTS_KNOWN
from ._linear_model import LinearRegressionSpec, design_of, drawn_between, posterior_of, response_of, rows_of

WITHOUT, WITH = 2000, 4000
"""Posterior draws by which records are weighed where that is not closed: given the data alone, and given a dataset too."""
NEGLIGIBLE = 1e-3
"""Of a release: the logarithm of the probability that bounds cut away from all its records, and the share of sigma^2 that rounding adds."""


@dataclass(frozen=True, eq=False)
class RegressedRelease:
    """A release of this model as an intruder weighs it.

    Without bounds that matter log p(Z | D_y) is closed but for an integral over sigma, and exact; priors on standardised
    variables, which one record more moves a little, are held where the data put them. With bounds it is a mean over draws of the posterior, with a Monte Carlo error in the
    logarithm of about 0.01, up to 0.1 for single records of a few hundred.

    Where records have weights, their likelihood is to that power. The intruder knows the weights; what is believed before the release comes
    from all other records at full weight.
    """

    data: Microdata
    target: str
    spec: LinearRegressionSpec
    releases: Sequence[Microdata]
    seed: tuple[int, ...] = field(repr=False)

    @property
    def targets(self) -> tuple[str, ...]:
        """The one variable."""
        return (self.target,)

    @property
    def absolute(self) -> bool:
        """Whether all is closed."""
        return self.spec.prior == "published" and not self._bounded

    @property
    def approximate(self) -> bool:
        """Whether the priors should move with the data."""
        return self.spec.prior == "scaled"

    @property
    def remarks(self) -> tuple[str, ...]:
        """That bounds or whole numbers are weighed by draws, and that nobody draws conclusions from weights."""
        said = [f"{self.target}: {WITH:,} draws of the posterior weigh a release in bounds or of whole numbers"]
        return (*(said if self._bounded else ()), *(() if self.data.weights is None else (WEIGHTS_KNOWN,)))

    def refitted(self, data: Microdata) -> RegressedRelease:
        """The same of other confidential data."""
        return RegressedRelease(data, self.target, self.spec, self.releases, self.seed)

    @cached_property
    def _design(self) -> Design:
        return design_of(self.data, self.spec)

    @cached_property
    def _believed(self) -> RegressedRelease:
        """The same of all records at full weight: what it predicts is believed before."""
        return replace(self, data=replace(self.data, weights=None))

    @cached_property
    def _counted(self) -> RegressionRows:
        """The records that say something."""
        return rows_of(self.data.counted, self.target, self.spec, self._design)

    @cached_property
    def _tables(self) -> tuple[RegressionRows, ...]:
        return tuple(rows_of(one, self.target, self.spec, self._design) for one in self.releases)

    @cached_property
    def _triangle(self) -> Floats:
        return triangle_together([self._counted])

    @cached_property
    def _standard(self) -> Standard | None:
        """What the priors of all are put on."""
        if self.spec.prior == "published":
            return None
        weights, held = self._counted.data.weights, held_together([self._counted])
        try:
            if held is not None:
                return Standard.of(held[1], held[0], weights)
            return Standard.of_triangle(self._triangle, float(self._counted.data.influence.sum()))
        except ValueError as error:
            raise NotComputable(f"{self.target}: {error}") from None

    def _given(self, *tables: RegressionRows) -> DeletedRecords:
        """The posterior given the records of these tables, under the prior that the confidential data make."""
        alone = tables == (self._counted,)
        triangle = self._triangle if alone else triangle_together(tables)
        try:
            posterior = posterior_of(tables, self.spec, triangle, None if alone else self._standard)
        except ValueError as error:
            raise NotComputable(f"{self.target}: {error}") from None
        held = held_together(tables)
        if held is not None:
            return DeletedRecords.of(posterior, *held, weights_together(tables))
        blocks = ((x, y, one.data.influence[rows]) for one in tables for rows, x, y in one.blocks())
        return DeletedRecords.of_blocks(posterior, blocks, triangle)

    @cached_property
    def _without(self) -> DeletedRecords:
        return self._given(self._counted)

    @cached_property
    def _with(self) -> tuple[DeletedRecords, ...]:
        """Given the data and each dataset, drawn without bounds."""
        return tuple(self._given(self._counted, one) for one in self._tables)

    def _drawn(self, values: Floats) -> Drawn:
        """What is known of a normal that was released as these values."""
        half = 0.5 if self.data.schema[self.target].kind is Kind.COUNT else 0.0
        variable = self.data.schema[self.target]
        lower, upper = drawn_between(variable, self.spec)
        lower, upper = -np.inf if variable.lower is None else lower, np.inf if variable.upper is None else upper
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = (response_of(values + side * half, self.spec) for side in (-1, 1))
        return Drawn(np.where(np.isnan(low), -np.inf, low), high, lower, upper)

    @cached_property
    def _bounded(self) -> bool:
        """Whether bounds or rounding matter for what the release says."""
        of = self._without
        weight = np.exp(of.log_weight)
        sigma, delta = float(np.sqrt(weight @ of.variance)), weight @ of.mean
        for table in self._tables:
            drawn = self._drawn(table.data.numbers(self.target))
            mean = table.times(of.posterior.centre + of.posterior.back @ delta)
            if -drawn.log_inside(mean, np.asarray(1.2 * sigma)).sum() > NEGLIGIBLE:
                return True
            with np.errstate(over="ignore"):
                if np.mean(((drawn.high - drawn.low) / sigma) ** 2) / 12 > NEGLIGIBLE:
                    return True
        return False

    @cached_property
    def _draws(self) -> tuple[tuple[WithDrawn, Floats, Floats], ...]:
        """Weighted draws (S, K + 1) and (S,) given the data and each dataset."""
        found = []
        for index, table in enumerate(self._tables):
            target = WithDrawn(self._without.posterior, table, self._drawn(table.data.numbers(self.target)))
            try:
                mode = find_mode(target)
            except NotConverged as error:
                raise NotComputable(f"{self.target}, dataset {index + 1}: {error}") from None
            rng = np.random.default_rng([*self.seed, index])
            drawn = weighted_draws(target.near(mode.theta, mode.covariance), mode, WITH, rng, silent)
            found.append((target, drawn.thetas, drawn.weights))
        return tuple(found)

    def nearer(self, guesses: Guesses) -> Floats:
        """As ``weigh``."""
        return self.weigh(guesses).likelihood

    def weigh(self, guesses: Guesses) -> Plausibility:
        """All guesses at once."""
        columns = {column for term in self._design.terms for column in term.columns}
        few, place = guesses.distinct({self.target, *columns})
        return self._weighed(few, self._design.matrix(few.table(self.data)) if few.changes(columns) else None).spread(
            place
        )

    def _weighed(self, guesses: Guesses, design: Floats | None) -> Plausibility:
        """``design`` (t * g, K) of guesses that change it."""
        of = self._without
        own = guesses.own(self.data)
        x_own, y_own = self._design.matrix(own), response_of(own.numbers(self.target), self.spec)
        x = x_own[:, None, :] if design is None else design.reshape(*guesses.shape, -1)
        values = guesses.values[self.target]
        y = response_of(values, self.spec)
        influence = self.data.influence[guesses.records]
        weight = np.where(influence > 0, influence, 1.0)
        without, predicted = of.log_ratios(x_own, y_own, x, y, weight)
        if self._bounded:
            alone = predicted if self.data.weights is None else without
            found = self._weighed_by_draws(x_own, y_own, weight, x, values, alone)
        else:
            likelihood = np.empty((*guesses.shape, len(self.releases)))
            for index, both in enumerate(self._with):
                given = both.log_ratios(x_own, y_own, x, y, weight)[0]
                likelihood[..., index] = given - without + (both.log_evidence - of.log_evidence)
            found = Plausibility(likelihood, predicted - (y if self.spec.transform == "log" else 0.0))
        if self.data.weights is None:
            return found
        # of a record of weight 0 the release says nothing
        told = np.where((influence > 0)[:, None, None], found.likelihood, 0.0)
        return replace(found, likelihood=told, prior=self._believed._weighed(guesses, design).prior)

    def _weighed_by_draws(
        self, x_own: Floats, y_own: Floats, weight: Floats, x: Floats, values: Floats, without: Floats
    ) -> Plausibility:
        """``without`` (t, g) is the mean over the posterior without record and release of what the likelihood is the mean of with it, up to
        what a record's guesses have in common.
        """
        of, shape = self._without.posterior, values.shape
        rng = np.random.default_rng([*self.seed, len(self.releases)])
        coefficients, sigma = of.sample(WITHOUT, rng)
        likelihood, prior = np.empty((*shape, len(self.releases))), np.empty(shape)
        heavy = np.zeros(shape[0], dtype=np.bool_)
        size = together(shape[1], WITHOUT)
        for start in range(0, shape[0], size):
            rows = slice(start, start + size)
            own = weight[rows, None] * _log_normal(y_own[rows, None] - x_own[rows] @ coefficients.T, sigma)
            left = LeftOut.of(own, np.full(WITHOUT, 1 / WITHOUT))
            drawn = self._drawn(values[rows, :, None])
            prior[rows] = left.log_mean(drawn.log_density(x[rows] @ coefficients.T, sigma))
            heavy[rows] |= left.heavy
            for index, (target, thetas, weights) in enumerate(self._draws):
                design = x[rows].reshape(-1, x.shape[2])
                mean, sd = target.moments(thetas, design)
                centre = target.moments(thetas, x_own[rows])[0]
                log_own = weight[rows, None] * _log_normal(y_own[rows, None] - centre.T, sd[:, 0])
                left = LeftOut.of(log_own, weights)
                distance = response_of(values[rows], self.spec)[..., None] - mean.T.reshape(*x[rows].shape[:2], -1)
                log_guess = weight[rows, None, None] * _log_normal(distance, sd[:, 0])
                likelihood[rows, :, index] = left.log_mean(log_guess) - without[rows]
                heavy[rows] |= left.heavy
        if self.spec.transform == "log" and self.data.schema[self.target].kind is not Kind.COUNT:
            prior -= response_of(values, self.spec)
        return Plausibility(likelihood, prior, heavy)


def _log_normal(distance: Floats, sigma: Floats) -> Floats:
    return np.asarray(-0.5 * (distance / sigma) ** 2 - np.log(sigma))
