"""Binary variables one after another, each by a logistic regression on those before it.

Reiter, Wang & Zhang §3.1, eq. 5. The first target is a share with a Beta posterior (step 1: Dirichlet-binomial). Each
other target has a logistic regression on those before it: with ``order = 1`` main effects alone (N2WI, steps 2, 3' and
4'), with ``order = 2`` all products of two as well (N3WI, steps 2 to 4). With ``predictors``, terms of kept variables
(§4), the first target is regressed too. Coefficients are drawn from N(beta-hat, V-hat) for each dataset; or are the
maximum in all, ``parameters = "mle"``.

``unit_effect`` makes members of a unit alike in each target: with the number u of their unit and e of their own, a
record has the second level where Phi(sqrt(share) u + sqrt(1 - share) e) is above the probability of the first, so that
each record's probability stays that of the regression. Every target has a share of its own, found from the confidential
records (a tetrachoric correlation), and numbers u of its own. Coefficients are then drawn with the variance that whole
units leave them (Liang & Zeger 1986).

In the release as an intruder weighs it (§3.2, eq. 10 and 11) p(Z | D_y) is the product over targets of the integral of
p(Z_j | beta) N(beta; beta-hat_y, V-hat_y), or p(Z_j | beta-hat_y). A guess changes one record of each regression: few
changes are refitted; of many each is one Newton step from the fit. The intruder knows the weights; the belief before
the release comes from all other records at full weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Annotated, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import betaln, expit, logit, ndtri

from ..data.arrays import Floats
from ..data.block_sums import SummedTable
from ..data.distinct_records import distinct_records, representative_records
from ..data.microdata import Microdata, to_column
from ..data.provenance import FitUncertainty
from ..data.rows import distinct_rows
from ..data.schema import Kind, Schema
from ..data.terms import parse_term
from ..data.units import Units
from ..design.design_matrix import Design
from ..design.logistic import LogisticFit, LogisticPrior, logistic_regression
from ..design.sequential_regressions import (
    RegressionsOfTable,
    SequentialRegression,
    level_counts,
    sequential_regressions,
    sequential_terms,
)
from ..errors import BadInput
from ..methods.asked_passes import SummedPasses
from ..methods.passes import NextPass
from ..methods.registry import ReleaseModelDeclaration, synthesis_method
from ..methods.release_models import IntruderGuesses, Plausibility
from ..methods.results import Diagnostic, Fit, NoTrace
from ..methods.run import Progress, Run
from ..methods.spec import Param, Spec
from ..recipe.checks import require_complete, require_full_rank
from ..recipe.weights import WEIGHTS_KNOWN
from ..statistics.unit_effects import draw_places, share_of_places, unit_effect_columns

MOST_REFITS = 400
"""Number of changes of a regression that are refitted."""
DRAWS = 1024
"""Draws of the coefficients that the integral is taken by."""
WIDER = 1.2
"""By how much they are spread wider than the normal approximation at the mode."""
LEAST = 1e-8
"""Of the information in a direction, what is left at least."""
ROUNDED = 1e-9
"""Of the records of a combination that its last one has left, what rounding leaves of their weights."""
CONSTANT = 'every value of "{}" is the same; leave it out'
DIRECT = "coefficients are drawn from a normal distribution, or are the maximum itself"


@dataclass(frozen=True, eq=False)
class SequentialLogisticRelease:
    """A release of sequential logistic regressions as an intruder weighs it.

    ``noise`` (DRAWS, widest) are standard normal draws, ``drawn`` says whether coefficients were drawn, ``max_refits``
    is the largest number of changes that are refitted.
    """

    data: Microdata
    targets: tuple[str, ...]
    predictors: tuple[str, ...]
    order: int
    drawn: bool
    concentration: float
    prior: LogisticPrior
    releases: Sequence[Microdata]
    noise: Floats
    max_refits: int = MOST_REFITS
    absolute: bool = True
    approximate: bool = True

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return the remark that the weights give an intruder no information, where there are weights."""
        return () if self.data.weights is None else (WEIGHTS_KNOWN,)

    @cached_property
    def _fitted_regressions(self) -> dict[str, tuple[SequentialRegression, LogisticFit]]:
        """Return the regression of each target that has terms, with its fit."""
        models = sequential_regressions(self.data, self.targets, self.predictors, self.order, self.data.weights)
        return {model.target: (model, model.fit(self.prior)) for model in models}

    @cached_property
    def _full_weight_model(self) -> SequentialLogisticRelease:
        """Return the model of all records at full weight: it gives the beliefs before the release."""
        return replace(self, data=replace(self.data, weights=None), releases=())

    def refit(self, data: Microdata) -> SequentialLogisticRelease:
        """Return the same model of other confidential data."""
        return replace(self, data=data)

    def refined_log_likelihoods(self, guesses: IntruderGuesses) -> Floats:
        return self._weigh_with_refits(guesses, guesses.values[self.targets[0]].size).likelihood

    def plausibility_of(self, guesses: IntruderGuesses) -> Plausibility:
        return self._weigh_with_refits(guesses, self.max_refits)

    def _weigh_with_refits(self, guesses: IntruderGuesses, max_refits: int) -> Plausibility:
        """Weigh guesses; a regression is refitted for each change if there are at most ``max_refits`` of them."""
        guessed, own = guesses.guessed_table(self.data), guesses.true_records(self.data)
        weight, parts = self.data.effective_weights[guesses.records], []
        for target in self.targets:
            if target in self._fitted_regressions:
                parts.append(
                    self._weigh_regression(
                        *self._fitted_regressions[target], guessed, own, weight, guesses.shape, max_refits
                    )
                )
            else:
                parts.append(self._weigh_share(target, guessed, own, weight, guesses.shape))
        found = sum(parts[1:], start=parts[0])
        return (
            found
            if self.data.weights is None
            else replace(found, prior=self._full_weight_model.plausibility_of(guesses).prior)
        )

    def _weigh_share(
        self, target: str, guessed: Microdata, own: Microdata, weight: Floats, shape: tuple[int, int]
    ) -> Plausibility:
        """Weigh guesses of a first target without terms, which is a beta-binomial, or the share itself."""
        a = self.concentration if self.drawn else 0.0
        zeros, ones = (count + a for count in level_counts(self.data, target, self.data.weights))
        w = weight[:, None]
        was, will = own.numbers(target)[:, None], guessed.numbers(target).reshape(shape)
        ones_y, zeros_y = ones + w * (will - was), zeros - w * (will - was)
        likelihood = np.empty((*shape, len(self.releases)))
        for draw, release in enumerate(self.releases):
            z0, z1 = level_counts(release, target)
            if self.drawn:
                likelihood[..., draw] = betaln(ones_y + z1, zeros_y + z0) - betaln(ones_y, zeros_y)
            else:
                share = np.clip(ones_y / (ones_y + zeros_y), 1e-300, 1 - 1e-16)
                likelihood[..., draw] = z1 * np.log(share) + z0 * np.log1p(-share)
        rest = np.where(will == 1, ones - w * was, zeros - w * (1 - was)) / np.maximum(ones + zeros - w, LEAST)
        return Plausibility(likelihood, np.log(np.maximum(rest, 1e-300)))

    def _weigh_regression(
        self,
        model: SequentialRegression,
        fit: LogisticFit,
        guessed: Microdata,
        own: Microdata,
        weight: Floats,
        shape: tuple[int, int],
        max_refits: int,
    ) -> Plausibility:
        """Weigh guesses by the regression of one target."""
        design = Design.from_terms(model.terms, self.data)
        x = (
            design.build_matrix(guessed)[:, model.kept],
            np.repeat(design.build_matrix(own)[:, model.kept], shape[1], axis=0),
        )
        y = guessed.numbers(model.target), np.repeat(own.numbers(model.target), shape[1])
        every = np.column_stack([x[0], y[0], x[1], y[1], np.repeat(weight, shape[1])])
        # Many guesses change a regression in the same way, since it has few columns of few levels.
        different = distinct_rows(every.T, len(every))
        distinct, of = every[different.first], different.combination_of
        k = x[0].shape[1]
        changes = LogisticChanges(
            distinct[:, :k], distinct[:, k], distinct[:, k + 1 : -2], distinct[:, -2], distinct[:, -1]
        )
        coefficients, information = changes.changed_fits(model, fit, self.prior, max_refits)
        without = changes.fits_without_record(fit)
        likelihood = np.empty((len(distinct), len(self.releases)))
        for draw, release in enumerate(self.releases):
            likelihood[:, draw] = self._dataset_likelihood(model, design, fit, release, coefficients, information)
        sign = np.where(changes.y == 1, 1.0, -1.0)
        prior = -np.logaddexp(0.0, -sign * (changes.x * without).sum(axis=1))
        of = of.ravel()
        return Plausibility(likelihood[of].reshape(*shape, len(self.releases)), prior[of].reshape(shape))

    def _dataset_likelihood(
        self,
        model: SequentialRegression,
        design: Design,
        fit: LogisticFit,
        release: Microdata,
        coefficients: Floats,
        information: Floats,
    ) -> Floats:
        """Return log p(Z | D_y) of one dataset, (c,), for each change."""
        distinct = distinct_records(release, design.columns)
        x = design.build_matrix(representative_records(distinct, release))[:, model.kept]
        records, ones = distinct.sum_by_combination(), distinct.sum_by_combination(release.numbers(model.target))
        if not self.drawn:
            return _log_likelihood(x, records, ones, coefficients)
        base = np.asarray(np.linalg.inv(fit.covariance), dtype=np.float64)
        # Importance sampling around the integrand's own mode, with the same draws for all guesses: the paper's draws
        # from the posterior (eq. 9) rarely come near the release.
        mode, curvature = _find_coefficient_mode(x, records, ones, fit.coefficients, base)
        root = np.linalg.inv(np.linalg.cholesky(curvature)).T * WIDER
        noise = self.noise[:, : x.shape[1]]
        draws = mode + noise @ root.T
        log_density = -0.5 * (noise**2).sum(axis=1) - np.linalg.slogdet(root)[1]
        weight = _log_likelihood(x, records, ones, draws) - log_density
        return _log_mean_normal(weight, draws - fit.coefficients, coefficients - fit.coefficients, information)


@dataclass(frozen=True, eq=False)
class LogisticChanges:
    """Changes, c of them, of one record of a regression each.

    x, y: new row and outcome, (c, K) and (c,)
    was_x, was_y: old row and outcome, (c, K) and (c,)
    weight: weight of the record, which stays, (c,)
    """

    x: Floats
    y: Floats
    was_x: Floats
    was_y: Floats
    weight: Floats

    def changed_fits(
        self, model: SequentialRegression, fit: LogisticFit, prior: LogisticPrior, max_refits: int
    ) -> tuple[Floats, Floats]:
        """Return the maximum (c, K) and the information there (c, K, K) after each change."""
        coefficients, information = self._newton_fits(fit)
        if len(self.y) > max_refits:
            return coefficients, information
        # A record of weight 0 is in no fit: its change moves nothing.
        for c in map(int, np.flatnonzero(self.weight > 0)):
            x, records, ones = self._changed_rows(model, c)
            found = logistic_regression(x, ones / records, records, prior)
            if not found.separated:
                coefficients[c], information[c] = (
                    found.coefficients,
                    _logistic_information(x, records, found.coefficients),
                )
        return coefficients, information

    def _changed_rows(self, model: SequentialRegression, c: int) -> tuple[Floats, Floats, Floats]:
        """Return the distinct rows, their weights and those of outcome 1 after one change."""
        x = np.vstack([model.x, self.x[c]])
        w = self.weight[c]
        records, ones = np.append(model.records, w), np.append(model.ones, w * self.y[c])
        was = int(np.flatnonzero((model.x == self.was_x[c]).all(axis=1))[0])
        records[was], ones[was] = records[was] - w, ones[was] - w * self.was_y[c]
        # A row whose last record has left may keep a rounding error of weight, which would fit as a record.
        some = records > ROUNDED
        return x[some], records[some], np.clip(ones, 0, records)[some]

    def _newton_fits(self, fit: LogisticFit) -> tuple[Floats, Floats]:
        """Return the maximum (c, K), one Newton step from the fit, and the information there (c, K, K)."""
        p, was_p = (expit((x * fit.coefficients).sum(axis=1)) for x in (self.x, self.was_x))
        w = self.weight[:, None]
        moved = _information_of_rows(self.x, p) - _information_of_rows(self.was_x, was_p)
        # H_y = H - p (1 - p) x x' + p'(1 - p') x' x'', beta-hat_y = beta-hat + H_y^-1 (x'(y' - p') - x (y - p)).
        information = np.linalg.inv(fit.covariance) + w[..., None] * moved
        gradient = w * (self.x * (self.y - p)[:, None] - self.was_x * (self.was_y - was_p)[:, None])
        return fit.coefficients + _solve_newton_steps(information, gradient), information

    def fits_without_record(self, fit: LogisticFit) -> Floats:
        """Return the maximum (c, K) without the record, one Newton step from the fit."""
        was_p = expit((self.was_x * fit.coefficients).sum(axis=1))
        w = self.weight[:, None]
        information = np.linalg.inv(fit.covariance) - w[..., None] * _information_of_rows(self.was_x, was_p)
        gradient = -w * self.was_x * (self.was_y - was_p)[:, None]
        return fit.coefficients + _solve_newton_steps(information, gradient)


def _solve_newton_steps(information: Floats, gradient: Floats) -> Floats:
    """Return Newton steps, (c, K)."""
    k = gradient.shape[1]
    # Without the last record of a combination the information is singular; the step must stay finite.
    ridge = LEAST * np.einsum("cii->ci", information)[:, :, None] * np.eye(k)
    return np.asarray(np.linalg.solve(information + ridge, gradient[..., None])[..., 0])


def _information_of_rows(x: Floats, p: Floats) -> Floats:
    return np.asarray((p * (1 - p))[:, None, None] * x[:, :, None] * x[:, None, :])


def _logistic_information(x: Floats, records: Floats, coefficients: Floats) -> Floats:
    p = expit(x @ coefficients)
    return np.asarray((x * (records * p * (1 - p))[:, None]).T @ x)


def _log_likelihood(x: Floats, records: Floats, ones: Floats, coefficients: Floats) -> Floats:
    """Return the log likelihood of rows x (d, K) at each of (s, K) coefficients, (s,)."""
    eta = coefficients @ x.T
    return np.asarray(eta @ ones - np.logaddexp(0.0, eta) @ records)


def _find_coefficient_mode(
    x: Floats, records: Floats, ones: Floats, centre: Floats, base: Floats
) -> tuple[Floats, Floats]:
    """Return the mode (K,) of p(Z | beta) N(beta; centre, base^-1) and minus the Hessian there, (K, K)."""
    beta = centre.copy()
    for _ in range(50):
        gradient = x.T @ (ones - records * expit(x @ beta)) - base @ (beta - centre)
        curvature = base + _logistic_information(x, records, beta)
        step = np.linalg.solve(curvature, gradient)
        beta = beta + step
        if gradient @ step < 1e-10:
            break
    return beta, base + _logistic_information(x, records, beta)


def _log_mean_normal(weight: Floats, draws: Floats, means: Floats, information: Floats) -> Floats:
    """Return the log mean over draws (s, K) of exp(weight) N(draw; mean, information^-1) for each of c means, (c,)."""
    k = draws.shape[1]
    outer = (draws[:, :, None] * draws[:, None, :]).reshape(len(draws), k * k)
    pulled = np.einsum("cij,cj->ci", information, means)
    square = information.reshape(-1, k * k) @ outer.T - 2 * pulled @ draws.T + (pulled * means).sum(axis=1)[:, None]
    logs = weight - 0.5 * square
    most = logs.max(axis=1, keepdims=True)
    mean = np.log(np.exp(logs - most).mean(axis=1)) + most[:, 0]
    return np.asarray(mean + 0.5 * np.linalg.slogdet(information)[1])


def sobol_normals(rng: np.random.Generator, width: int) -> Floats:
    """Return scrambled Sobol points (DRAWS, width) as standard normal draws."""
    from scipy.stats import qmc

    return np.asarray(ndtri(qmc.Sobol(width, rng=rng).random(DRAWS)))


def check_data(data: Microdata, targets: tuple[str, ...], spec: SequentialLogisticSpec, place: str) -> None:
    """Raise BadInput where values are missing, a target has one level, terms are aliased, or levels are separated."""
    own = data.with_positive_weight
    for target in targets:
        _require_target_values(data, target, targets, spec, place)
        if len(np.unique(own.numbers(target))) < 2:
            raise BadInput(_place_of_target(target, targets, place), CONSTANT.format(target))
    require_full_rank(own, spec.predictors, f"{place}.predictors")
    for model in sequential_regressions(data, targets, spec.predictors, spec.order, data.weights):
        _check_columns(model, targets, place)
        _check_maximum(model.target, model.fit(spec.prior), targets, spec, place)


def _place_of_target(target: str, targets: Sequence[str], place: str) -> str:
    return f"{place}.target[{targets.index(target)}]" if len(targets) > 1 else f"{place}.target"


def _require_target_values(
    data: Microdata, target: str, targets: Sequence[str], spec: SequentialLogisticSpec, place: str
) -> None:
    """Raise BadInput where records lack the target or a predictor."""
    try:
        require_complete(data, target, spec.predictors, place)
    except BadInput as error:
        at = _place_of_target(target, targets, place)
        raise BadInput(at if error.place.endswith(".target") else error.place, error.message) from None


def _check_columns(model: SequentialRegression, targets: Sequence[str], place: str) -> None:
    """Raise BadInput where a column that is no product is determined by those before it."""
    if plain := [name for name in model.left_out if ":" not in name]:
        raise BadInput(
            _place_of_target(model.target, targets, place),
            f'"{plain[0]}", which "{model.target}" is regressed on, is determined by the terms before it; leave one of them out',
        )


def _check_maximum(
    target: str, found: LogisticFit, targets: Sequence[str], spec: SequentialLogisticSpec, place: str
) -> None:
    """Raise BadInput where levels are separated."""
    # Separated levels have no finite maximum, but Firth's penalised likelihood always has one.
    if found.separated:
        raise BadInput(
            _place_of_target(target, targets, place),
            f'what stands before "{target}" separates its two levels for some records, so that its regression has no finite '
            f'maximum; use prior = "jeffreys"{", order = 1" if spec.order == 2 else ""}, another order of the targets, or fewer',
        )


def joint_draw(
    fit: Fit,
    spec: SequentialLogisticSpec,
    targets: tuple[str, ...],
    confidential: Microdata,
    released: Microdata,
    index: int,
    records: int,
    rng: np.random.Generator,
) -> Mapping[str, NDArray[np.generic]]:
    """Draw the levels of each target, 0 or 1, given the drawn ones before it, with the coefficients of one dataset."""
    kept = {c for text in spec.predictors for c in parse_term(text, confidential.schema, "predictors").columns}
    schema = Schema(tuple(v for v in confidential.schema if v.name in kept or v.name in targets))
    # Without the index: records of a block have that of their table.
    columns = {name: released.frame[name].array for name in schema.names if name in kept}
    frame = pd.DataFrame(columns, index=range(records))
    found: dict[str, NDArray[np.generic]] = {}
    for target, column in zip(targets, unit_effect_columns(targets), strict=True):
        if terms := sequential_terms(target, targets, spec.predictors, spec.order, confidential.schema):
            coefficients = _entry_of_dataset(fit.arrays[f"{target}.coefficients"], index)
            design, made = Design.from_terms(terms, confidential), Microdata(schema, frame)
            probability = _probabilities(design, made, fit.arrays[f"{target}.kept"], coefficients)
        else:
            probability = np.full(records, float(_entry_of_dataset(fit.arrays[f"{target}.share"], index)))
        share = float(fit.arrays[f"{target}.unit_share"][0]) if spec.unit_effect else 0.0
        uniform = 1.0 - draw_places(released, share, rng, column) if share else rng.random(records)
        values = (uniform < probability).astype(np.float64)
        found[target] = values
        frame[target] = to_column(values, confidential, confidential.schema[target], target)
    return found


def _probabilities(design: Design, table: Microdata, kept: NDArray[np.generic], coefficients: Floats) -> Floats:
    """Return each record's probability of the second level, (n,), by the ``kept`` columns of the design."""
    distinct = distinct_records(table, design.columns)
    x = design.build_matrix(representative_records(distinct, table))[:, kept]
    return np.asarray(expit(x @ coefficients))[distinct.combination_of]


def _entry_of_dataset(array: NDArray[np.generic], index: int) -> Floats:
    """Return the dataset's entry of an array that has one entry a dataset, or one for all of them."""
    return np.asarray(array[index if len(array) > 1 else 0], dtype=np.float64)


def release_model(
    data: Microdata, targets: tuple[str, ...], spec: SequentialLogisticSpec, releases: Sequence[Microdata], run: Run
) -> SequentialLogisticRelease:
    """Return the model by which an intruder's guesses are weighed by the releases."""
    models = sequential_regressions(
        data, targets, spec.predictors, spec.order
    )  # at full weight: the widest there can be
    widest = max((model.x.shape[1] for model in models), default=1)
    return SequentialLogisticRelease(
        data,
        targets,
        spec.predictors,
        spec.order,
        spec.parameters == "drawn",
        spec.concentration,
        spec.prior,
        releases,
        sobol_normals(run.rng, widest),
    )


def draw_coefficients(found: LogisticFit, spec: SequentialLogisticSpec, rng: np.random.Generator, draws: int) -> Floats:
    """Draw coefficients of each dataset, (draws, K), from N(beta-hat, V-hat).

    With ``parameters = "mle"`` return beta-hat for all of them, (1, K).
    """
    # Partial synthesis may use the maximum in all datasets (Reiter & Kinney 2012); in full synthesis variances would be
    # too small.
    if spec.parameters == "mle":
        return found.coefficients[None, :]
    root = np.linalg.cholesky(found.covariance / np.outer(found.errors, found.errors)) * found.errors[:, None]
    return np.asarray(found.coefficients + rng.standard_normal((draws, len(found.coefficients))) @ root.T)


def _influences_of_units(x: Floats, residuals: Floats, covariance: Floats, units: Units) -> Floats:
    """Return by how much each unit's records move the maximum, to first order, (U, K).

    ``residuals`` (n,) are y - p times the weight, ``covariance`` (K, K) is the inverse of the information.
    """
    scores = [np.bincount(units.unit_of, column * residuals, len(units)) for column in x.T]
    return np.column_stack(scores) @ covariance


def _logistic_diagnostics(model: SequentialRegression, found: LogisticFit) -> list[Diagnostic]:
    """Report the maximum and its standard errors, by the target and the column of its regression."""
    said = [Diagnostic("columns_left_out", model.target, float(len(model.left_out)))]
    names = [name for name, kept in zip(model.names, model.kept, strict=True) if kept]
    for name, estimate, error in zip(names, found.coefficients, found.errors, strict=True):
        said.append(Diagnostic("estimate", f"{model.target}: {name}", float(estimate)))
        said.append(Diagnostic("standard_error", f"{model.target}: {name}", float(error)))
    return said


@dataclass(frozen=True, kw_only=True, slots=True)
class SequentialLogisticSpec(Spec):
    """Settings of the regressions: their terms, and how coefficients are found."""

    order: Annotated[
        int, Param("1: main effects (no two-way interactions); 2: products of two as well", ge=1, le=2)
    ] = 1
    parameters: Annotated[
        Literal["drawn", "mle"],
        Param("coefficients drawn around the maximum for each dataset, or the maximum in all of them"),
    ] = "drawn"
    concentration: Annotated[
        float, Param("virtual records a of each level of the first target, where there are no predictors", gt=0)
    ] = 1.0
    prior: Annotated[
        LogisticPrior,
        Param("none: the plain likelihood, refused where levels are separated; jeffreys: Firth's, which never is"),
    ] = "none"
    predictors: Annotated[tuple[str, ...], Param("terms of variables that are kept", names="terms")] = ()
    unit_effect: Annotated[
        bool, Param("with [release] units: records of a unit share what predictors do not tell of their levels")
    ] = False
    effect_on_levels: ClassVar[bool] = True


def fit_uncertainty(spec: SequentialLogisticSpec, targets: tuple[str, ...], schema: Schema) -> FitUncertainty:
    """Return whether each dataset has coefficients of its own."""
    return FitUncertainty("drawn" if spec.parameters == "drawn" else "estimated")


class SequentialLogisticPasses(SummedPasses):
    """Counts of the targets and R of their designs, and then a pass for each Newton step of all regressions."""

    checks_data: ClassVar[bool] = True
    needs: ClassVar[str] = 'prior = "none" and no effect of units'

    def suits(self, spec: SequentialLogisticSpec, schema: Schema) -> bool:
        """Return whether the likelihood alone is maximised: leverages of single records would take hundreds of passes."""
        return not spec.unit_effect and spec.prior == "none"

    def start(self, head: Microdata, targets: tuple[str, ...], spec: SequentialLogisticSpec, n_blocks: int) -> NextPass:
        read = dict.fromkeys((*Design.from_texts(spec.predictors, head).columns, *targets))
        compute = partial(_regressions_of_sums, targets, spec)
        return self.first_pass(compute, head, n_blocks, tuple(read), "regressions")

    def fit(
        self,
        answer: _Regressions,
        head: Microdata,
        targets: tuple[str, ...],
        spec: SequentialLogisticSpec,
        run: Run,
        draws: int,
    ) -> Fit:
        if answer.data is not None:
            return sequential_logistic(answer.data, targets, spec, run, draws)
        return _fit_of_regressions(head, targets, spec, run, draws, answer)


@dataclass(frozen=True, eq=False)
class _Regressions:
    """What the passes found, or the table where it is one block.

    counts: records with the first and with the second level of each target
    models: regressions of the targets that have terms
    fits: their maxima
    """

    counts: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    models: Mapping[str, SequentialRegression] = field(default_factory=dict)
    fits: Mapping[str, LogisticFit] = field(default_factory=dict)
    data: Microdata | None = None


def _regressions_of_sums(targets: tuple[str, ...], spec: SequentialLogisticSpec, table: SummedTable) -> _Regressions:
    """Return the regressions of a table that is asked for sums. Raises BadInput as ``check_data`` does."""
    place = targets[0]
    if table.n_blocks == 1:
        (data,) = table.ask_sums(lambda data: (data,))
        check_data(data, targets, spec, place)
        return _Regressions(data=data)
    complete = partial(_require_values, targets, spec)
    found = RegressionsOfTable.from_sums(table, targets, spec.predictors, spec.order, complete)
    for target in targets:
        if 0.0 in found.counts[target]:
            raise BadInput(_place_of_target(target, targets, place), CONSTANT.format(target))
    if found.models:
        first = found.models[0]
        # The terms of the predictors stand first in every design.
        width = len(Design.from_texts(spec.predictors, table.head).names)
        triangle = found.triangles[first.target][:width, :width]
        require_full_rank(table.head, spec.predictors, f"{place}.predictors", triangle)
    for model in found.models:
        _check_columns(model, targets, place)
    fits = found.fit_models(table)
    for target, one in fits.items():
        _check_maximum(target, one, targets, spec, place)
    return _Regressions(found.counts, {model.target: model for model in found.models}, fits)


def _require_values(targets: tuple[str, ...], spec: SequentialLogisticSpec, data: Microdata) -> None:
    """Raise BadInput where records lack a target or a predictor."""
    for target in targets:
        _require_target_values(data, target, targets, spec, targets[0])


@synthesis_method(
    "Sequential logistic regressions",
    spec=SequentialLogisticSpec,
    source="Reiter, Wang & Zhang §3.1; Reiter & Kinney 2012; Firth 1993",
    joint_draw=joint_draw,
    targets=(Kind.BINARY,),
    check=check_data,
    weighted=True,
    release_model=ReleaseModelDeclaration(release_model, is_weighted=True),
    fit_uncertainty=fit_uncertainty,
    fit_passes=SequentialLogisticPasses(),
    draws_by_block=True,
)
def sequential_logistic(
    data: Microdata, targets: tuple[str, ...], spec: SequentialLogisticSpec, run: Run, draws: int
) -> Fit:
    """Fit the regressions of all targets.

    Arrays of each: ``kept`` (C,) says which columns of its design have ``coefficients`` (draws, K); of a first target
    without predictors ``share`` (draws,) of its second level. With ``parameters = "mle"`` they have one entry for all
    datasets, as ``unit_share`` has with ``unit_effect``. Diagnostics are the maximum and its standard errors.

    Raises:
        BadInput: what ``check_data`` refuses.
    """
    check_data(data, targets, spec, targets[0])
    models = {
        model.target: model
        for model in sequential_regressions(data, targets, spec.predictors, spec.order, data.weights)
    }
    counts = {target: level_counts(data, target, data.weights) for target in targets if target not in models}
    fits = {target: model.fit(spec.prior) for target, model in models.items()}
    return _fit_of_regressions(data, targets, spec, run, draws, _Regressions(counts, models, fits))


def _fit_of_regressions(
    data: Microdata,
    targets: tuple[str, ...],
    spec: SequentialLogisticSpec,
    run: Run,
    draws: int,
    regressions: _Regressions,
) -> Fit:
    """Return the fit of regressions. ``data`` may be without records where no unit has an effect."""
    models, own = regressions.models, data.with_positive_weight
    units, weights = own.units if spec.unit_effect else None, own.effective_weights
    # One number a unit for all targets, so that draws of their coefficients go together as the units' records do.
    noise = run.rng.standard_normal((draws, len(units))) if units is not None and spec.parameters == "drawn" else None
    arrays: dict[str, NDArray[np.generic]] = {}
    said: list[Diagnostic] = []
    for done, target in enumerate(targets, start=1):
        if target not in models:
            zeros, ones = regressions.counts[target]
            a = spec.concentration
            drawn = run.rng.beta(ones + a, zeros + a, draws)
            arrays[f"{target}.share"] = drawn if spec.parameters == "drawn" else np.array([ones / (zeros + ones)])
            said.append(Diagnostic("share", target, ones / (zeros + ones)))
            probability = np.full(len(own), ones / (zeros + ones))
            if units is not None and noise is not None:
                residuals = weights * (own.numbers(target) - probability)
                spread = np.array([[1.0 / (weights @ (probability * (1.0 - probability)))]])
                moved = noise @ _influences_of_units(np.ones((len(own), 1)), residuals, spread, units)
                arrays[f"{target}.share"] = expit(logit((ones + a) / (zeros + ones + 2 * a)) + moved[:, 0])
        else:
            model = models[target]
            found = regressions.fits[target]
            coefficients = draw_coefficients(found, spec, run.rng, draws)
            if spec.unit_effect:
                design = Design.from_terms(model.terms, data)
                probability = _probabilities(design, own, model.kept, found.coefficients)
            if units is not None:
                residuals = weights * (own.numbers(target) - probability)
                x = design.build_matrix(own)[:, model.kept]
                influences = _influences_of_units(x, residuals, found.covariance, units)
                found = replace(found, errors=np.sqrt((influences**2).sum(axis=0)))
                if noise is not None:
                    coefficients = found.coefficients + noise @ influences
            arrays |= {f"{target}.kept": model.kept, f"{target}.coefficients": coefficients}
            said += _logistic_diagnostics(model, found)
        if spec.unit_effect:
            share = share_of_places(own.numbers(target), np.zeros(1), 1.0 - probability[:, None], own)
            arrays[f"{target}.unit_share"] = np.array([share])
            said.append(Diagnostic("unit_share", target, share))
        run.report(Progress(done, len(targets), "regressions"))
    return Fit(arrays, tuple(said), NoTrace(DIRECT))
