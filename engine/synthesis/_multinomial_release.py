"""A release of multinomial logits as an intruder weighs it, without a fit for any guess.

Reiter, Wang & Zhang §4, eq. 12 to 15. The release was drawn at the maximum: log p(Z | D_y) = l_Z(beta-hat_y). To change
record i from (x, y) to (x', y') the maximum moves by one Newton step,

    delta = (H + dH)^-1 d,   d = x' (e_y' - p') - x (e_y - p),   dH = x' x'' W' - x x' W

with p, W = diag(p) - p p' the prediction at x and H minus the Hessian; where x stays dH is 0. Where each dataset has
drawn coefficients, ``_drawn_multinomial`` replaces l_Z. Where records have weights, H is that of the weighted
likelihood, and d and dH of a record of weight w are w times as large. The intruder knows the weights; the belief before
the release comes from all other records at full weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.linalg import cho_solve

from ..data.arrays import Floats, Integers
from ..data.distinct_records import distinct_records, representative_records
from ..data.microdata import Microdata
from ..data.terms import parse_term
from ..design import stratified_logit
from ..design.categories import categories_of_variable
from ..design.completed_design import CompletedDesign
from ..design.stratified_logit import StratumRecords, find_places, strata_of_records, stratified_records
from ..errors import NotComputable
from ..methods.release_models import IntruderGuesses, Plausibility
from ..recipe.weights import WEIGHTS_KNOWN
from ..statistics.multinomial_logit import (
    MultinomialLogit,
    fit_multinomial_logit,
    logit_log_probabilities,
    positions_in_classes,
)
from ._changed_multinomial import (
    MultinomialChange,
    changed_coefficients,
    class_column_sums,
    log_denominators,
    multinomial_information,
)
from ._drawn_multinomial import DrawnCoefficientsMode, find_drawn_mode, likelihood_change_by_columns

MOST_STEPS = 60
LONGEST = 4.0
"""Of a step in a score."""
NEAR = 1e-9
CELLS = 4_000_000
"""Numbers that are held at a time."""


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """Rows of the design of the released records of one stratum.

    x: distinct rows, (r, p)
    records: records of each, (r,)
    sums: column sums of the records of each class, (K, p)
    """

    x: Floats
    records: Floats
    sums: Floats

    @classmethod
    def from_release(
        cls,
        data: Microdata,
        target: str,
        design: CompletedDesign,
        variable: str | None,
        groups: Mapping[str, tuple[str, ...]],
        stratum: StratumRecords,
        release: Microdata,
    ) -> ReleasedRows:
        """Build the rows of the released records of a stratum.

        Equal records are one row if those of the confidential data are too, that is, if ``stratum.weights`` is not
        None.
        """
        size = len(stratum.class_keys)
        inside = np.flatnonzero(strata_of_records(release, variable, groups) == stratum.number)
        places = positions_in_classes(
            categories_of_variable(data, target, None).category_codes(release)[inside], stratum.class_keys
        )
        if stratum.weights is None:
            x = design.build_matrix(release)[np.ix_(inside, stratum.kept)]
            return cls(x, np.ones(len(x)), class_column_sums(x, places, size))
        own = Microdata(release.schema, release.frame.iloc[inside], release.origin)
        distinct = distinct_records(own, design.columns)
        x = design.build_matrix(representative_records(distinct, own))[:, stratum.kept]
        cells = np.bincount(places * len(x) + distinct.combination_of, minlength=size * len(x)).reshape(size, len(x))
        return cls(x, distinct.sum_by_combination(), cells @ x)

    def has_same_design(self, other: ReleasedRows) -> bool:
        """Return whether both have the same rows; classes may differ."""
        return np.array_equal(self.x, other.x) and np.array_equal(self.records, other.records)


@dataclass(frozen=True, eq=False)
class StratumRelease:
    """The model of one stratum, and the records of m datasets released in it.

    records: confidential records of the stratum
    weights: their weights
    model: the fitted multinomial logit
    released: rows of each dataset
    drawn: whether each dataset has coefficients of its own, drawn around the maximum
    """

    records: StratumRecords
    weights: Floats
    model: MultinomialLogit
    released: tuple[ReleasedRows, ...]
    drawn: bool = False

    @cached_property
    def distinct_designs(self) -> tuple[tuple[ReleasedRows, Integers], ...]:
        """Return the distinct designs of the released records, each with the positions of the datasets that have it."""
        # Where predictors are not synthesised all datasets share one design, and its information is computed once.
        found: list[tuple[ReleasedRows, list[int]]] = []
        for draw, one in enumerate(self.released):
            known = next((draws for other, draws in found if one.has_same_design(other)), None)
            if known is None:
                found.append((one, [draw]))
            else:
                known.append(draw)
        return tuple((one, np.array(draws)) for one, draws in found)

    @cached_property
    def released_sums(self) -> Floats:
        """Return the sums (m, K, p) of the columns of each class's released records."""
        return np.array([one.sums for one in self.released]).reshape(-1, *self.model.coefficients.shape)

    def changed_maxima(self, changes: Sequence[MultinomialChange]) -> Iterator[Floats]:
        """Yield the maximum (K, p) after each change of a record alone."""
        places = self.model.class_positions(self.records.y)
        return changed_coefficients(self.model, self.records.x, places, self.weights, changes)

    def likelihood_at(self, coefficients: Floats) -> Floats:
        """Return the log-likelihood of each dataset, (m,), at the coefficients (K, p)."""
        found = (self.released_sums * coefficients).sum(axis=(1, 2))
        for one, draws in self.distinct_designs:
            found[draws] -= (log_denominators(one.x, coefficients) * one.records).sum()
        return np.asarray(found)

    @cached_property
    def fitted_likelihood(self) -> Floats:
        """Return the log-likelihood of each dataset at the fit, (m,); drawn coefficients are integrated out."""
        if self.drawn:
            return np.array([mode.likelihood for mode in self.drawn_modes])
        return self.likelihood_at(self.model.coefficients)

    @cached_property
    def drawn_modes(self) -> tuple[DrawnCoefficientsMode, ...]:
        """Return for each dataset the mode of the coefficients that it was drawn with."""
        fitted = self.model, self.records.x, self.weights, self.inverse_hessian
        return tuple(find_drawn_mode(*fitted, one.x, one.records, one.sums) for one in self.released)

    @cached_property
    def inverse_hessian(self) -> Floats:
        """Return the inverse of minus the Hessian, (K, p, K, p)."""
        k, p = self.model.coefficients.shape
        return np.asarray(cho_solve((self.model.factor, True), np.eye(k * p)).reshape(k, p, k, p))

    @cached_property
    def newton_gradients(self) -> Floats:
        """Return H^-1 g_Z, (m, K, p), with g_Z the gradient of each dataset's log-likelihood at the fit.

        With drawn coefficients it is e + c of ``_drawn_multinomial``.
        """
        if self.drawn:
            return np.array([mode.offset + mode.moved for mode in self.drawn_modes]).reshape(self.released_sums.shape)
        gradients = self.released_sums.copy()
        for one, draws in self.distinct_designs:
            chance = np.exp(logit_log_probabilities(one.x, self.model.coefficients))
            gradients[draws] -= (chance * one.records[:, None]).T @ one.x
        return self.model.newton_step(gradients)

    @cached_property
    def projected_information(self) -> tuple[tuple[Floats, Integers], ...]:
        """Return H^-1 H_Z H^-1, (K, p, K, p), with the positions of the datasets with that information.

        With drawn coefficients it is H^-1 - A^-1 of ``_drawn_multinomial``, for each dataset.
        """
        if self.drawn:
            return tuple(
                (self.inverse_hessian - mode.inverse, np.array([draw])) for draw, mode in enumerate(self.drawn_modes)
            )
        shape = self.inverse_hessian.shape
        whole = self.inverse_hessian.reshape(self.model.coefficients.size, -1)
        found = []
        for one, draws in self.distinct_designs:
            information = multinomial_information(one.x, self.model.coefficients, one.records)
            found.append(((whole @ information @ whole).reshape(shape), draws))
        return tuple(found)


@dataclass(frozen=True, eq=False)
class StratumRecordModel:
    """The model of one record of a stratum with K classes, and its released values in m datasets.

    coefficients: of the fit, (K, p)
    inverse: H^-1, (K, p, K, p)
    x: columns of the record, (p,)
    place: place of its class
    weight: its weight
    released: its columns in each dataset, (m, p)
    places: places of its class in each dataset, (m,)
    """

    coefficients: Floats
    inverse: Floats
    x: Floats
    place: int
    weight: float
    released: Floats
    places: Integers

    def fitted_log_probabilities(self) -> Floats:
        """Return log p(z^(l)), (m,), at the fit."""
        logs = logit_log_probabilities(self.released, self.coefficients)
        return np.asarray(logs[np.arange(len(self.places)), self.places])

    def guess_log_probabilities(self, to: Floats) -> Floats:
        """Return log p(z^(l) | D_y), (d, K, m), of guesses with columns ``to`` (d, p) and any class."""
        k, d, m = len(self.coefficients), len(to), len(self.places)
        points = np.vstack([self.x[None], to, self.released])
        half = np.tensordot(points, self.inverse, axes=(1, 3))  # (1 + d + m, K, p, K)
        gram = np.einsum("bkpl,ap->abkl", half, points, optimize=True)
        chance = np.exp(logit_log_probabilities(self.x[None], self.coefficients))[0]
        spread = self.weight * (np.diag(chance) - np.outer(chance, chance))
        # The record leaves the fit by a Newton step: H without it, by Woodbury.
        left = spread @ np.linalg.inv(np.eye(k) - gram[0, 0] @ spread)
        without = gram + np.einsum("akl,lj,bjn->abkn", gram[:, 0], left, gram[0], optimize=True)
        gone = self.weight * (chance - np.eye(k)[self.place])
        scores = points @ self.coefficients.T + without[:, 0] @ gone
        here, there = slice(1, 1 + d), slice(1 + d, None)
        leverage = self.weight * without[here, here][np.arange(d), np.arange(d)]
        # With a guess in its place, and the other records' likelihood as a parabola, K equations give the scores there.
        # They hold where a step from the fit would not: at guesses that are improbable.
        back = self.weight * guess_residuals(scores[here], leverage)  # (d, K, K): of each guess
        moved = np.einsum("mdkl,dcl->dcmk", without[there, here], back, optimize=True) + scores[there]
        most = moved.max(axis=3, keepdims=True)
        logs = moved - most - np.log(np.exp(moved - most).sum(axis=3, keepdims=True))
        return np.asarray(logs[:, :, np.arange(m), self.places])


def guess_residuals(scores: Floats, leverage: Floats) -> Floats:
    """Solve u = s + L (e_y - p(u)) for every class y, and return e_y - p(u), (d, K, K).

    ``scores`` s (d, K) are those without the record, ``leverage`` L (d, K, K) is (x I)' H^-1 (x I) times the weight.
    """
    d, k = scores.shape
    every, eye = np.broadcast_to(np.eye(k), (d, k, k)), np.eye(k)
    u = np.repeat(scores[:, None, :], k, axis=1)
    for _ in range(MOST_STEPS):
        p = _softmax_last_axis(u)
        error = u - scores[:, None, :] - (every - p) @ np.swapaxes(leverage, 1, 2)
        spread = p[..., :, None] * (eye - p[..., None, :])
        step = -np.linalg.solve(eye + leverage[:, None] @ spread, error[..., None])[..., 0]
        longest = float(np.abs(step).max())
        # From far away the softmax is flat, and a full Newton step would overshoot.
        u = u + step * np.minimum(1.0, LONGEST / np.maximum(np.abs(step).max(axis=2, keepdims=True), NEAR))
        if longest < NEAR:
            break
    return np.asarray(every - _softmax_last_axis(u))


def _softmax_last_axis(u: Floats) -> Floats:
    found = np.exp(u - u.max(axis=-1, keepdims=True))
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


@dataclass(frozen=True, eq=False)
class MultinomialRelease:
    """A release of multinomial logits, one for each stratum, as an intruder weighs it.

    data: confidential data
    targets: the one target
    predictors: terms of the regressions
    variable, groups: variable and groups of its levels that define the strata
    penalty: ridge of the coefficients
    releases: released datasets
    strata: models of the strata
    filled: whether records without a value are left out of the fit
    drawn: whether each dataset has coefficients of its own
    absolute, approximate: whether likelihoods have no unknown constant, and whether they are approximate
    """

    data: Microdata
    targets: tuple[str, ...]
    predictors: tuple[str, ...]
    variable: str | None
    groups: Mapping[str, tuple[str, ...]]
    penalty: float
    releases: Sequence[Microdata]
    strata: tuple[StratumRelease, ...]
    filled: bool = False
    drawn: bool = False
    absolute: bool = True
    approximate: bool = True

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return the remark that the weights give an intruder no information, where there are weights."""
        return () if self.data.weights is None else (WEIGHTS_KNOWN,)

    @classmethod
    def from_data(
        cls,
        data: Microdata,
        target: str,
        predictors: tuple[str, ...],
        variable: str | None,
        groups: Mapping[str, tuple[str, ...]],
        penalty: float,
        releases: Sequence[Microdata],
        start: Sequence[StratumRelease] = (),
        *,
        filled: bool = False,
        drawn: bool = False,
    ) -> MultinomialRelease:
        """Fit the models of all strata.

        ``start`` are fits to nearly the same data, from which the search begins. With ``filled``, records without a
        value are in no fit.
        """
        design, begin = (
            CompletedDesign.from_terms(predictors, data.with_positive_weight),
            {one.records.number: one for one in start},
        )
        found = []
        together = len(data) > stratified_logit.MOST_ALONE
        for records in stratified_records(data, target, predictors, variable, groups, filled=filled, together=together):
            near = begin.get(records.number)
            alike = near is not None and np.array_equal(near.records.class_keys, records.class_keys)
            alike = alike and near is not None and np.array_equal(near.records.kept, records.kept)
            weights = data.effective_weights[records.rows] if records.weights is None else records.weights
            same = alike and near is not None and np.array_equal(near.weights, weights)
            if same and near is not None and _same_records(near.records, records):
                found.append(near if records.combination_of is None else replace(near, records=records))
                continue
            at = near.model.coefficients if near is not None and alike else None
            model = fit_multinomial_logit(records.x, records.y, records.class_keys, penalty, weights, start=at)
            of = partial(ReleasedRows.from_release, data, target, design, variable, groups, records)
            found.append(StratumRelease(records, weights, model, tuple(map(of, releases)), drawn))
        return cls(data, (target,), predictors, variable, groups, penalty, releases, tuple(found), filled, drawn)

    @cached_property
    def _design(self) -> CompletedDesign:
        return CompletedDesign.from_terms(self.predictors, self.data.with_positive_weight)

    @cached_property
    def _full_weight_model(self) -> MultinomialRelease:
        """Return the model of all records at full weight: it gives the beliefs before the release."""
        own = (self.targets[0], self.predictors, self.variable, self.groups, self.penalty, ())
        return MultinomialRelease.from_data(replace(self.data, weights=None), *own, filled=self.filled)

    def refit(self, data: Microdata) -> MultinomialRelease:
        """Return the same model fitted to other confidential data."""
        own = (self.targets[0], self.predictors, self.variable, self.groups, self.penalty, self.releases)
        return MultinomialRelease.from_data(data, *own, self.strata, filled=self.filled, drawn=self.drawn)

    def plausibility_of(self, guesses: IntruderGuesses) -> Plausibility:
        """Weigh guesses stratum by stratum. A value that no record of the stratum has is impossible."""
        (target,) = self.targets
        t, g = guesses.shape
        categories = categories_of_variable(self.data, target, None)
        table, truth = guesses.guessed_table(self.data), guesses.true_records(self.data)
        codes, was = categories.category_codes(table).reshape(t, g), categories.category_codes(truth)
        strata = strata_of_records(truth, self.variable, self.groups)
        moved = strata_of_records(table, self.variable, self.groups).reshape(t, g) != strata[:, None]
        likelihood, prior = np.full((t, g, len(self.releases)), -np.inf), np.full((t, g), -np.inf)
        weight = self.data.effective_weights[guesses.records]
        x_was = self._design.build_matrix(truth)
        distinct = self._distinct_predictors(guesses)
        for stratum in self.strata:
            inside = np.flatnonzero(strata == stratum.records.number)
            kept = stratum.records.kept
            for rows in _record_chunks(inside, stratum, g):
                places, possible = find_places(codes[rows], stratum.records.class_keys)
                # A record of weight 0 is in no fit: the release excludes no guess of its value, but the prior does.
                prior_possible = possible & ~moved[rows]
                possible = (possible | (weight[rows] == 0)[:, None]) & ~moved[rows]
                old, known = find_places(was[rows], stratum.records.class_keys)
                if distinct is None:
                    found = _weigh_class_changes(stratum, x_was[rows][:, kept], weight[rows], old, places)
                else:
                    to, of = distinct[0][rows][..., kept], distinct[1][rows]
                    found = _weigh_predictor_changes(stratum, x_was[rows][:, kept], weight[rows], old, to, of, places)
                # a record without a value, or of weight 0, is in no fit: the release says nothing of it
                known &= weight[rows] > 0
                own = np.where(known[:, None, None], found.likelihood, stratum.fitted_likelihood)
                likelihood[rows] = np.where(possible[..., None], own, -np.inf)
                prior[rows] = np.where(prior_possible, found.prior, -np.inf)
        if self.data.weights is not None:
            prior = self._full_weight_model.plausibility_of(guesses).prior
        return Plausibility(likelihood + self._likelihood_of_other_strata(strata)[:, None, :], prior)

    def _distinct_predictors(self, guesses: IntruderGuesses) -> tuple[Floats, Integers] | None:
        """Return the distinct predictors of guesses, (t, d, p), and which of them each guess has, (t, g).

        None if guesses change no predictor.
        """
        changing = {
            name for term in self.predictors for name in _term_columns(term, self.data) if name in guesses.values
        }
        if not changing:
            return None
        few, which = guesses.distinct_guesses(changing)
        return self._design.build_matrix(few.guessed_table(self.data)).reshape(*few.shape, -1), which

    def own_record_log_likelihoods(self, guesses: IntruderGuesses) -> Floats:
        """Return log p(z_i^(l) | D_y), (t, g, m), of the record's own released values alone.

        Raises NotComputable for drawn coefficients, and where released records are not linked.
        """
        if self.drawn:
            raise NotComputable('coefficients are drawn for each dataset; own_record needs parameters = "mle"')
        (target,) = self.targets
        t, g = guesses.shape
        categories, records = categories_of_variable(self.data, target, None), guesses.records
        truth = guesses.true_records(self.data)
        codes, was = (
            categories.category_codes(guesses.guessed_table(self.data)).reshape(t, g),
            categories.category_codes(truth),
        )
        strata, x_was = strata_of_records(truth, self.variable, self.groups), self._design.build_matrix(truth)
        to, which = self._distinct_predictors(guesses) or (x_was[:, None, :], np.zeros((t, g), dtype=np.intp))
        for one in self.releases:
            one.require_linked()
        theirs = [Microdata(one.schema, one.frame.iloc[records].reset_index(drop=True)) for one in self.releases]
        x, z = (
            np.stack([of(one) for one in theirs], axis=1)
            for of in (self._design.build_matrix, categories.category_codes)
        )
        found, weight = np.full((t, g, len(theirs)), -np.inf), self.data.effective_weights[records]
        for stratum in self.strata:
            kept, classes, model = stratum.records.kept, stratum.records.class_keys, stratum.model
            for i in np.flatnonzero(strata == stratum.records.number):
                (places, possible), (place, known) = (
                    find_places(codes[i], classes),
                    find_places(was[i : i + 1], classes),
                )
                released = x[i][:, kept], positions_in_classes(z[i], classes)
                own = StratumRecordModel(
                    model.coefficients, stratum.inverse_hessian, x_was[i, kept], int(place[0]), weight[i], *released
                )
                if known[0] and weight[i] > 0:
                    found[i, possible] = own.guess_log_probabilities(to[i][:, kept])[
                        which[i, possible], places[possible]
                    ]
                else:
                    found[i] = own.fitted_log_probabilities()
        return found

    def refined_log_likelihoods(self, guesses: IntruderGuesses) -> Floats:
        """Return the log-likelihood of the release at the exact maximum after each guess, (t, g, m)."""
        if self.drawn:
            return self.plausibility_of(guesses).likelihood
        (target,) = self.targets
        t, g = guesses.shape
        categories = categories_of_variable(self.data, target, None)
        table, truth = guesses.guessed_table(self.data), guesses.true_records(self.data)
        x, codes = self._design.build_matrix(table).reshape(t, g, -1), categories.category_codes(table).reshape(t, g)
        strata = strata_of_records(truth, self.variable, self.groups)
        moved = strata_of_records(table, self.variable, self.groups).reshape(t, g) != strata[:, None]
        found, weight = np.full((t, g, len(self.releases)), -np.inf), self.data.effective_weights[guesses.records]
        for stratum in self.strata:
            inside = np.flatnonzero(strata == stratum.records.number)
            places, possible = find_places(codes[inside], stratum.records.class_keys)
            possible |= (weight[inside] == 0)[:, None]
            r, c = np.nonzero(possible & ~moved[inside])
            found[inside[r], c] = stratum.fitted_likelihood  # of a record in no fit the release says nothing
            rows, fitted = stratum.records.rows_of_records(guesses.records[inside[r]])
            fitted &= weight[inside[r]] > 0
            r, c, rows = r[fitted], c[fitted], rows[fitted]
            # A row then stands for several equal records, of which one changes.
            several = stratum.records.weights is not None
            changes = [
                MultinomialChange(int(row), x[i, j][stratum.records.kept], int(place), weight[i] if several else None)
                for row, i, j, place in zip(rows, inside[r], c, places[r, c], strict=True)
            ]
            for i, j, b in zip(inside[r], c, stratum.changed_maxima(changes), strict=True):
                found[i, j] = stratum.likelihood_at(b)
        return found + self._likelihood_of_other_strata(strata)[:, None, :]

    def _likelihood_of_other_strata(self, strata: Integers) -> Floats:
        """Return the log-likelihoods (t, m) of the released records in all strata but that of each of t records."""
        of = {one.records.number: one.fitted_likelihood for one in self.strata}
        total = sum(of.values(), start=np.zeros(len(self.releases)))
        return np.array([total - of[int(number)] for number in strata]).reshape(len(strata), len(self.releases))


def _same_records(one: StratumRecords, other: StratumRecords) -> bool:
    """Return whether two strata have the same records, so that one's fit is the other's."""
    return all(np.array_equal(a, b) for a, b in ((one.rows, other.rows), (one.y, other.y), (one.x, other.x)))


def _term_columns(term: str, data: Microdata) -> tuple[str, ...]:
    return tuple(parse_term(term, data.schema, term).columns)


def _record_chunks(rows: Integers, stratum: StratumRelease, g: int) -> Iterator[Integers]:
    """Yield the records in chunks whose matrices fit into memory together."""
    k, p = stratum.model.coefficients.shape
    size = max(1, CELLS // (k * max(p * k, p * g, k * g)))
    for first in range(0, len(rows), size):
        yield rows[first : first + size]


def _kronecker_forms(matrix: Floats, x: Floats, other: Floats) -> Floats:
    """Return the products (x I)' M (other I), (r, K, K), with M (K, p, K, p).

    x (r, p) and other (r, p) have a row for each product, or one row for all.
    """
    half = np.tensordot(other, matrix, axes=(1, 3))  # (r, K, p, K)
    return np.asarray(np.einsum("rp,rkpl->rkl", x, np.broadcast_to(half, (len(x), *half.shape[1:]))))


def _forms_before_and_after(matrix: Floats, to: Floats, x: Floats) -> Floats:
    """Return C' M C, (d, 2K, 2K), with C = [to I, x I] for rows ``to`` (d, p) and one row x (p,); M is symmetric."""
    # All of a change lies in the 2K columns of H^-1 C (Woodbury), so no matrix of K p rows is solved for a guess.
    here, cross = _kronecker_forms(matrix, x[None], x[None]), _kronecker_forms(matrix, to, x[None])
    upper = np.concatenate([_kronecker_forms(matrix, to, to), cross], axis=2)
    lower = np.concatenate([np.swapaxes(cross, 1, 2), np.broadcast_to(here, cross.shape)], axis=2)
    return np.concatenate([upper, lower], axis=1)


def _weigh_class_changes(
    stratum: StratumRelease, x: Floats, weight: Floats, old: Integers, places: Integers
) -> Plausibility:
    """Weigh guesses that change only the class, for r records: from class ``old`` (r,) to ``places`` (r, g).

    ``weight`` (r,) is the weight of each record, ``x`` (r, p) its predictors.
    """
    r, g = places.shape
    rows = np.arange(r)
    pulled = np.einsum("mkp,rp->rmk", stratum.newton_gradients, x)
    first = np.take_along_axis(pulled, np.broadcast_to(places[:, None, :], (r, pulled.shape[1], g)), 2)
    first = (first - pulled[rows, :, old][:, :, None]) * weight[:, None, None]
    likelihood = np.empty((r, g, len(stratum.fitted_likelihood)))
    for matrix, draws in stratum.projected_information:
        bent = _kronecker_forms(matrix, x, x)
        own = np.einsum("rkk->rk", bent)
        square = np.take_along_axis(own, places, 1) + own[rows, old][:, None]
        square -= 2 * np.take_along_axis(bent[rows, :, old], places, 1)
        square *= weight[:, None] ** 2
        # l_Z + g_Z' delta - delta' H_Z delta / 2; where x stays, delta = H^-1 d.
        likelihood[..., draws] = (
            stratum.fitted_likelihood[draws] + np.swapaxes(first[:, draws], 1, 2) - square[..., None] / 2
        )
    leverage = _kronecker_forms(stratum.inverse_hessian, x, x)
    moved = _score_shifts_without_record(stratum, x, old, leverage, leverage)
    logs = logit_log_probabilities(x, stratum.model.coefficients)
    return Plausibility(likelihood, np.take_along_axis(_normalise_log_probabilities(logs + moved), places, 1))


def _weigh_predictor_changes(
    stratum: StratumRelease, x: Floats, influence: Floats, old: Integers, to: Floats, which: Integers, places: Integers
) -> Plausibility:
    """Weigh guesses that change predictors and class, for r records.

    The predictors x (r, p) become one of ``to`` (r, d, p), as ``which`` (r, g) says; the class changes from ``old``
    (r,) to ``places`` (r, g). ``influence`` (r,) is the weight of each record.
    """
    model, k, (r, g) = stratum.model, len(stratum.records.class_keys), places.shape
    likelihood, prior = np.empty((r, g, len(stratum.fitted_likelihood))), np.empty((r, g))
    for i in range(r):
        distinct, of = to[i], which[i]
        # Guesses of a record that have the same predictors share these matrices.
        gram = _forms_before_and_after(stratum.inverse_hessian, distinct, x[i])
        logs = logit_log_probabilities(distinct, model.coefficients)
        chance = np.exp(logs)
        own = np.exp(logit_log_probabilities(x[i : i + 1], model.coefficients))[0]
        weight = np.zeros_like(gram)
        weight[:, :k, :k] = chance[:, :, None] * (np.eye(k) - chance[:, None, :])
        weight[:, k:, k:] = -(np.diag(own) - np.outer(own, own))
        gone = np.broadcast_to(own - (np.arange(k) == old[i]), (g, k))
        pull = influence[i] * np.concatenate([np.eye(k)[places[i]] - chance[of], gone], axis=1)  # d = C pull, (g, 2K)
        mixed = influence[i] * weight @ gram
        solved = np.linalg.solve(np.eye(2 * k) + mixed, mixed)
        v = pull - np.einsum("gab,gb->ga", solved[of], pull)
        for draw, mode in enumerate(stratum.drawn_modes if stratum.drawn else ()):
            settled = _forms_before_and_after(mode.inverse, distinct, x[i])
            moves = likelihood_change_by_columns(mode, gram, settled, influence[i] * weight, pull, (distinct, x[i]), of)
            likelihood[i, :, draw] = stratum.fitted_likelihood[draw] + moves
        for matrix, draws in () if stratum.drawn else stratum.projected_information:
            bent = _forms_before_and_after(matrix, distinct, x[i])
            square = np.einsum("ga,gab,gb->g", v, bent[of], v)
            for draw in draws:
                u = stratum.newton_gradients[draw]
                first = np.einsum("gk,gk->g", v[:, :k], (distinct @ u.T)[of]) + v[:, k:] @ (u @ x[i])
                likelihood[i, :, draw] = stratum.fitted_likelihood[draw] + first - square / 2
        moved = _score_shifts_without_record(stratum, x[i : i + 1], old[i : i + 1], gram[:1, k:, k:], gram[:, :k, k:])
        prior[i] = _normalise_log_probabilities(logs + moved)[of, places[i]]
    return Plausibility(likelihood, prior)


def _score_shifts_without_record(
    stratum: StratumRelease, x: Floats, old: Integers, leverage: Floats, cross: Floats
) -> Floats:
    """Return the change of the scores when the record leaves the fit, (d, K).

    ``cross`` (d, K, K) is (x' I)' H^-1 (x I), ``leverage`` (r, K, K) that at x itself.
    """
    k = leverage.shape[1]
    chance = np.exp(logit_log_probabilities(x, stratum.model.coefficients))
    gone = chance - np.eye(k)[old]
    weight = -(chance[:, :, None] * (np.eye(k) - chance[:, None, :]))
    mixed = weight @ leverage
    v = gone - np.linalg.solve(np.eye(k) + mixed, mixed @ gone[..., None])[..., 0]
    return np.asarray((cross @ v[..., None])[..., 0])


def _normalise_log_probabilities(logs: Floats) -> Floats:
    """Return log probabilities normalised over classes, (n, K)."""
    most = logs.max(axis=1, keepdims=True)
    return np.asarray(logs - most - np.log(np.exp(logs - most).sum(axis=1, keepdims=True)))
