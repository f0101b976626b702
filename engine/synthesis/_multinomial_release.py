"""A release of multinomial logits as an intruder weighs it, without a fit for any guess (Reiter, Wang & Zhang §4, eq. 12 to 15).

The release was drawn at the maximum: log p(Z | D_y) = l_Z(beta-hat_y), the log-likelihood of the released values. To change record i from (x, y) to
(x', y') the maximum moves by one Newton step from the fit to all records,

    delta = (H + dH)^-1 d,   d = x' (e_y' - p') - x (e_y - p),   dH = x' x'' W' - x x' W

with p, W = diag(p) - p p' the prediction at x and H minus the Hessian; where x stays, as for the first variable that is made, dH is 0: H does not
depend on y. With C = [x' I, x I] all of it lies in the 2K columns of H^-1 C (Woodbury): delta = H^-1 C v. The release says

    l_Z(beta + delta) = l_Z + g_Z' delta - delta' H_Z delta / 2

to second order, g_Z and H_Z its gradient and information at beta. Guesses cost products of matrices only; what is left out is of third order in delta.
Where each dataset has drawn coefficients, ``_drawn_multinomial`` says what takes the place of l_Z; guesses are not weighed more exactly then.

Where records have weights, H is that of the weighted likelihood, and d and dH of a record of weight w are w times as large. The intruder knows the weights; what
is believed before the release comes from all other records at full weight.

What was released of one record alone, by multinomial logits: log p(z_i | D_y), without a fit for any guess.

An intruder who looks at the released values of the record itself, and at nobody else's, weighs a guess by how it moves the record's own
probabilities. The record leaves the fit by a Newton step; with a guess y at x in its place, and the other records' likelihood as a parabola, the
scores u there solve

    u = s + w L (e_y - p(u)),    L = (x I)' H^-1 (x I) without the record, s the scores without it,

K equations by Newton's method, which hold where a step from the fit would not: at guesses that are improbable.

What datasets released in one stratum, and the multinomial logit that they were drawn from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.linalg import cho_solve

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.terms import parse_term
from ..design import stratified_logit
from ..design.categories import categories_of
from ..design.completed_design import CompletedDesign
from ..design.distinct_records import distinct_records
from ..design.stratified_logit import StratumRecords, places_among, strata_of, stratified_records
from ..errors import NotComputable
from ..methods.release_models import Guesses, Plausibility
from ..recipe.weights import WEIGHTS_KNOWN
from ..statistics.multinomial_logit import MultinomialLogit, fit, log_probabilities, places_of
from ._changed_multinomial import Change, changed_coefficients, information_of, log_sums, sums_of
from ._drawn_multinomial import DrawnMode, drawn_mode, other_columns

MOST_STEPS = 60
LONGEST = 4.0
"""Of a step in a score."""
NEAR = 1e-9
CELLS = 4_000_000
"""Numbers that are held at a time."""


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


@dataclass(frozen=True, eq=False)
class OwnRecord:
    """One record of a stratum: of K classes with ``coefficients`` (K, p) and H^-1 ``inverse`` (K, p, K, p), its columns ``x`` (p,), the place
    of its class and its ``weight``; in each of m datasets columns ``released`` (m, p) and places ``places`` (m,) of its class.
    """

    coefficients: Floats
    inverse: Floats
    x: Floats
    place: int
    weight: float
    released: Floats
    places: Integers

    def unmoved(self) -> Floats:
        """Log p(z^(l)), (m,), by the fit."""
        logs = log_probabilities(self.released, self.coefficients)
        return np.asarray(logs[np.arange(len(self.places)), self.places])

    def log_probabilities(self, to: Floats) -> Floats:
        """Log p(z^(l) | D_y), (d, K, m), of guesses that have columns ``to`` (d, p) and any class."""
        k, d, m = len(self.coefficients), len(to), len(self.places)
        points = np.vstack([self.x[None], to, self.released])
        half = np.tensordot(points, self.inverse, axes=(1, 3))  # (1 + d + m, K, p, K)
        gram = np.einsum("bkpl,ap->abkl", half, points, optimize=True)
        chance = np.exp(log_probabilities(self.x[None], self.coefficients))[0]
        spread = self.weight * (np.diag(chance) - np.outer(chance, chance))
        left = spread @ np.linalg.inv(np.eye(k) - gram[0, 0] @ spread)
        without = gram + np.einsum("akl,lj,bjn->abkn", gram[:, 0], left, gram[0], optimize=True)
        gone = self.weight * (chance - np.eye(k)[self.place])
        scores = points @ self.coefficients.T + without[:, 0] @ gone
        here, there = slice(1, 1 + d), slice(1 + d, None)
        leverage = self.weight * without[here, here][np.arange(d), np.arange(d)]
        back = self.weight * residuals(scores[here], leverage)  # (d, K, K): of each guess
        moved = np.einsum("mdkl,dcl->dcmk", without[there, here], back, optimize=True) + scores[there]
        most = moved.max(axis=3, keepdims=True)
        logs = moved - most - np.log(np.exp(moved - most).sum(axis=3, keepdims=True))
        return np.asarray(logs[:, :, np.arange(m), self.places])


def residuals(scores: Floats, leverage: Floats) -> Floats:
    """e_y - p(u) for every class y, (d, K, K), with u = s + L (e_y - p(u)) of ``scores`` s (d, K) and ``leverage`` L (d, K, K)."""
    d, k = scores.shape
    every, eye = np.broadcast_to(np.eye(k), (d, k, k)), np.eye(k)
    u = np.repeat(scores[:, None, :], k, axis=1)
    for _ in range(MOST_STEPS):
        p = _chances(u)
        error = u - scores[:, None, :] - (every - p) @ np.swapaxes(leverage, 1, 2)
        spread = p[..., :, None] * (eye - p[..., None, :])
        step = -np.linalg.solve(eye + leverage[:, None] @ spread, error[..., None])[..., 0]
        longest = float(np.abs(step).max())
        u = u + step * np.minimum(1.0, LONGEST / np.maximum(np.abs(step).max(axis=2, keepdims=True), NEAR))
        if longest < NEAR:
            break
    return np.asarray(every - _chances(u))


def _chances(u: Floats) -> Floats:
    found = np.exp(u - u.max(axis=-1, keepdims=True))
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


@dataclass(frozen=True, eq=False)
class MultinomialRelease:
    """The models of all strata, and the datasets. ``variable`` and ``groups`` say which stratum a record is in."""

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
        """That nobody draws conclusions from the weights, where there are some."""
        return () if self.data.weights is None else (WEIGHTS_KNOWN,)

    @classmethod
    def of(
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
        """Fitted; ``start`` are fits to nearly the same data, to begin at. ``filled``: records without a value are in no fit."""
        design, begin = CompletedDesign.of(predictors, data.counted), {one.records.number: one for one in start}
        found = []
        together = len(data) > stratified_logit.MOST_ALONE
        for records in stratified_records(data, target, predictors, variable, groups, filled=filled, together=together):
            near = begin.get(records.number)
            alike = near is not None and np.array_equal(near.records.classes, records.classes)
            alike = alike and near is not None and np.array_equal(near.records.kept, records.kept)
            weights = data.influence[records.rows] if records.weights is None else records.weights
            same = alike and near is not None and np.array_equal(near.weights, weights)
            if same and near is not None and _same_records(near.records, records):
                found.append(near if records.of is None else replace(near, records=records))
                continue
            at = near.model.coefficients if near is not None and alike else None
            model = fit(records.x, records.y, records.classes, penalty, weights, start=at)
            of = partial(ReleasedRows.of, data, target, design, variable, groups, records)
            found.append(StratumRelease(records, weights, model, tuple(map(of, releases)), drawn))
        return cls(data, (target,), predictors, variable, groups, penalty, releases, tuple(found), filled, drawn)

    @cached_property
    def _design(self) -> CompletedDesign:
        return CompletedDesign.of(self.predictors, self.data.counted)

    @cached_property
    def _believed(self) -> MultinomialRelease:
        """The same fitted to all records at full weight, without a dataset: what it predicts is believed before."""
        own = (self.targets[0], self.predictors, self.variable, self.groups, self.penalty, ())
        return MultinomialRelease.of(replace(self.data, weights=None), *own, filled=self.filled)

    def refitted(self, data: Microdata) -> MultinomialRelease:
        """The same of other confidential data, fitted anew."""
        own = (self.targets[0], self.predictors, self.variable, self.groups, self.penalty, self.releases)
        return MultinomialRelease.of(data, *own, self.strata, filled=self.filled, drawn=self.drawn)

    def weigh(self, guesses: Guesses) -> Plausibility:
        """Stratum by stratum. A value that no record of a record's stratum has is impossible."""
        (target,) = self.targets
        t, g = guesses.shape
        categories = categories_of(self.data, target, None)
        table, truth = guesses.table(self.data), guesses.own(self.data)
        codes, was = categories.codes(table).reshape(t, g), categories.codes(truth)
        strata = strata_of(truth, self.variable, self.groups)
        moved = strata_of(table, self.variable, self.groups).reshape(t, g) != strata[:, None]
        likelihood, prior = np.full((t, g, len(self.releases)), -np.inf), np.full((t, g), -np.inf)
        weight = self.data.influence[guesses.records]
        x_was = self._design.matrix(truth)
        distinct = self._distinct(guesses)
        for stratum in self.strata:
            inside = np.flatnonzero(strata == stratum.records.number)
            kept = stratum.records.kept
            for rows in _chunks(inside, stratum, g):
                places, possible = places_among(codes[rows], stratum.records.classes)
                prior_possible = possible & ~moved[rows]
                possible = (possible | (weight[rows] == 0)[:, None]) & ~moved[rows]
                old, known = places_among(was[rows], stratum.records.classes)
                if distinct is None:
                    found = _same_x(stratum, x_was[rows][:, kept], weight[rows], old, places)
                else:
                    to, of = distinct[0][rows][..., kept], distinct[1][rows]
                    found = _other_x(stratum, x_was[rows][:, kept], weight[rows], old, to, of, places)
                # a record without a value, or of weight 0, is in no fit: the release says nothing of it
                known &= weight[rows] > 0
                own = np.where(known[:, None, None], found.likelihood, stratum.likelihood)
                likelihood[rows] = np.where(possible[..., None], own, -np.inf)
                prior[rows] = np.where(prior_possible, found.prior, -np.inf)
        if self.data.weights is not None:
            prior = self._believed.weigh(guesses).prior
        return Plausibility(likelihood + self._elsewhere(strata)[:, None, :], prior)

    def _distinct(self, guesses: Guesses) -> tuple[Floats, Integers] | None:
        """The predictors (t, d, p) that guesses change, and which of them each guess has, (t, g); None where they stay."""
        changing = {name for term in self.predictors for name in _columns(term, self.data) if name in guesses.values}
        if not changing:
            return None
        few, which = guesses.distinct(changing)
        return self._design.matrix(few.table(self.data)).reshape(*few.shape, -1), which

    def own_record(self, guesses: Guesses) -> Floats:
        """Log p(z_i^(l) | D_y), (t, g, m), of what was released of the record itself alone. Raises NotComputable of drawn coefficients."""
        if self.drawn:
            raise NotComputable('coefficients are drawn for each dataset; own_record needs parameters = "mle"')
        (target,) = self.targets
        t, g = guesses.shape
        categories, records = categories_of(self.data, target, None), guesses.records
        truth = guesses.own(self.data)
        codes, was = categories.codes(guesses.table(self.data)).reshape(t, g), categories.codes(truth)
        strata, x_was = strata_of(truth, self.variable, self.groups), self._design.matrix(truth)
        to, which = self._distinct(guesses) or (x_was[:, None, :], np.zeros((t, g), dtype=np.intp))
        for one in self.releases:
            one.require_linked()
        theirs = [Microdata(one.schema, one.frame.iloc[records].reset_index(drop=True)) for one in self.releases]
        x, z = (np.stack([of(one) for one in theirs], axis=1) for of in (self._design.matrix, categories.codes))
        found, weight = np.full((t, g, len(theirs)), -np.inf), self.data.influence[records]
        for stratum in self.strata:
            kept, classes, model = stratum.records.kept, stratum.records.classes, stratum.model
            for i in np.flatnonzero(strata == stratum.records.number):
                (places, possible), (place, known) = (
                    places_among(codes[i], classes),
                    places_among(was[i : i + 1], classes),
                )
                released = x[i][:, kept], places_of(z[i], classes)
                own = OwnRecord(
                    model.coefficients, stratum.inverse, x_was[i, kept], int(place[0]), weight[i], *released
                )
                if known[0] and weight[i] > 0:
                    found[i, possible] = own.log_probabilities(to[i][:, kept])[which[i, possible], places[possible]]
                else:
                    found[i] = own.unmoved()
        return found

    def nearer(self, guesses: Guesses) -> Floats:
        """Guess by guess: after the step, Newton's method in the two classes that the record leaves and joins, and l_Z there."""
        if self.drawn:
            return self.weigh(guesses).likelihood
        (target,) = self.targets
        t, g = guesses.shape
        categories = categories_of(self.data, target, None)
        table, truth = guesses.table(self.data), guesses.own(self.data)
        x, codes = self._design.matrix(table).reshape(t, g, -1), categories.codes(table).reshape(t, g)
        strata = strata_of(truth, self.variable, self.groups)
        moved = strata_of(table, self.variable, self.groups).reshape(t, g) != strata[:, None]
        found, weight = np.full((t, g, len(self.releases)), -np.inf), self.data.influence[guesses.records]
        for stratum in self.strata:
            inside = np.flatnonzero(strata == stratum.records.number)
            places, possible = places_among(codes[inside], stratum.records.classes)
            possible |= (weight[inside] == 0)[:, None]
            r, c = np.nonzero(possible & ~moved[inside])
            found[inside[r], c] = stratum.likelihood  # of a record in no fit the release says nothing
            rows, fitted = stratum.records.places(guesses.records[inside[r]])
            fitted &= weight[inside[r]] > 0
            r, c, rows = r[fitted], c[fitted], rows[fitted]
            several = stratum.records.weights is not None
            changes = [
                Change(int(row), x[i, j][stratum.records.kept], int(place), weight[i] if several else None)
                for row, i, j, place in zip(rows, inside[r], c, places[r, c], strict=True)
            ]
            for i, j, b in zip(inside[r], c, stratum.changed(changes), strict=True):
                found[i, j] = stratum.likelihood_at(b)
        return found + self._elsewhere(strata)[:, None, :]

    def _elsewhere(self, strata: Integers) -> Floats:
        """Log-likelihoods (t, m) of the released records of all other strata."""
        of = {one.records.number: one.likelihood for one in self.strata}
        total = sum(of.values(), start=np.zeros(len(self.releases)))
        return np.array([total - of[int(number)] for number in strata]).reshape(len(strata), len(self.releases))


def _same_records(one: StratumRecords, other: StratumRecords) -> bool:
    return all(np.array_equal(a, b) for a, b in ((one.rows, other.rows), (one.y, other.y), (one.x, other.x)))


def _columns(term: str, data: Microdata) -> tuple[str, ...]:
    return tuple(parse_term(term, data.schema, term).columns)


def _chunks(rows: Integers, stratum: StratumRelease, g: int) -> Iterator[Integers]:
    """Records whose matrices can be held together."""
    k, p = stratum.model.coefficients.shape
    size = max(1, CELLS // (k * max(p * k, p * g, k * g)))
    for first in range(0, len(rows), size):
        yield rows[first : first + size]


def _between(matrix: Floats, x: Floats, other: Floats) -> Floats:
    """(x I)' M (other I) of rows x (r, p) and other (r, p), or one row for all, with M (K, p, K, p): (r, K, K)."""
    half = np.tensordot(other, matrix, axes=(1, 3))  # (r, K, p, K)
    return np.asarray(np.einsum("rp,rkpl->rkl", x, np.broadcast_to(half, (len(x), *half.shape[1:]))))


def _blocks(matrix: Floats, to: Floats, x: Floats) -> Floats:
    """C' M C with C = [to I, x I] for rows ``to`` (d, p) and one row x (p,), (d, 2K, 2K); M is symmetric."""
    here, cross = _between(matrix, x[None], x[None]), _between(matrix, to, x[None])
    upper = np.concatenate([_between(matrix, to, to), cross], axis=2)
    lower = np.concatenate([np.swapaxes(cross, 1, 2), np.broadcast_to(here, cross.shape)], axis=2)
    return np.concatenate([upper, lower], axis=1)


def _same_x(stratum: StratumRelease, x: Floats, weight: Floats, old: Integers, places: Integers) -> Plausibility:
    """Of r records of some ``weight`` (r,) whose predictors stay, from class ``old`` (r,) to ``places`` (r, g)."""
    r, g = places.shape
    rows = np.arange(r)
    pulled = np.einsum("mkp,rp->rmk", stratum.pulled, x)
    first = np.take_along_axis(pulled, np.broadcast_to(places[:, None, :], (r, pulled.shape[1], g)), 2)
    first = (first - pulled[rows, :, old][:, :, None]) * weight[:, None, None]
    likelihood = np.empty((r, g, len(stratum.likelihood)))
    for matrix, draws in stratum.bent:
        bent = _between(matrix, x, x)
        own = np.einsum("rkk->rk", bent)
        square = np.take_along_axis(own, places, 1) + own[rows, old][:, None]
        square -= 2 * np.take_along_axis(bent[rows, :, old], places, 1)
        square *= weight[:, None] ** 2
        likelihood[..., draws] = stratum.likelihood[draws] + np.swapaxes(first[:, draws], 1, 2) - square[..., None] / 2
    leverage = _between(stratum.inverse, x, x)
    moved = _scores_without(stratum, x, old, leverage, leverage)
    logs = log_probabilities(x, stratum.model.coefficients)
    return Plausibility(likelihood, np.take_along_axis(_renormalised(logs + moved), places, 1))


def _other_x(
    stratum: StratumRelease, x: Floats, influence: Floats, old: Integers, to: Floats, which: Integers, places: Integers
) -> Plausibility:
    """Of r records of some ``influence`` (r,) whose predictors x (r, p) become one of ``to`` (r, d, p), ``which`` (r, g) of them, from class ``old`` (r,) to
    ``places`` (r, g). Guesses of a record that have the same predictors share their matrices.
    """
    model, k, (r, g) = stratum.model, len(stratum.records.classes), places.shape
    likelihood, prior = np.empty((r, g, len(stratum.likelihood))), np.empty((r, g))
    for i in range(r):
        distinct, of = to[i], which[i]
        gram = _blocks(stratum.inverse, distinct, x[i])
        logs = log_probabilities(distinct, model.coefficients)
        chance = np.exp(logs)
        own = np.exp(log_probabilities(x[i : i + 1], model.coefficients))[0]
        weight = np.zeros_like(gram)
        weight[:, :k, :k] = chance[:, :, None] * (np.eye(k) - chance[:, None, :])
        weight[:, k:, k:] = -(np.diag(own) - np.outer(own, own))
        gone = np.broadcast_to(own - (np.arange(k) == old[i]), (g, k))
        pull = influence[i] * np.concatenate([np.eye(k)[places[i]] - chance[of], gone], axis=1)  # d = C pull, (g, 2K)
        mixed = influence[i] * weight @ gram
        solved = np.linalg.solve(np.eye(2 * k) + mixed, mixed)
        v = pull - np.einsum("gab,gb->ga", solved[of], pull)
        for draw, mode in enumerate(stratum.modes if stratum.drawn else ()):
            settled = _blocks(mode.inverse, distinct, x[i])
            moves = other_columns(mode, gram, settled, influence[i] * weight, pull, (distinct, x[i]), of)
            likelihood[i, :, draw] = stratum.likelihood[draw] + moves
        for matrix, draws in () if stratum.drawn else stratum.bent:
            bent = _blocks(matrix, distinct, x[i])
            square = np.einsum("ga,gab,gb->g", v, bent[of], v)
            for draw in draws:
                u = stratum.pulled[draw]
                first = np.einsum("gk,gk->g", v[:, :k], (distinct @ u.T)[of]) + v[:, k:] @ (u @ x[i])
                likelihood[i, :, draw] = stratum.likelihood[draw] + first - square / 2
        moved = _scores_without(stratum, x[i : i + 1], old[i : i + 1], gram[:1, k:, k:], gram[:, :k, k:])
        prior[i] = _renormalised(logs + moved)[of, places[i]]
    return Plausibility(likelihood, prior)


def _scores_without(stratum: StratumRelease, x: Floats, old: Integers, leverage: Floats, cross: Floats) -> Floats:
    """How the scores move when the record leaves the fit: ``cross`` (d, K, K) is (x' I)' H^-1 (x I), ``leverage`` (r, K, K) that at x itself."""
    k = leverage.shape[1]
    chance = np.exp(log_probabilities(x, stratum.model.coefficients))
    gone = chance - np.eye(k)[old]
    weight = -(chance[:, :, None] * (np.eye(k) - chance[:, None, :]))
    mixed = weight @ leverage
    v = gone - np.linalg.solve(np.eye(k) + mixed, mixed @ gone[..., None])[..., 0]
    return np.asarray((cross @ v[..., None])[..., 0])


def _renormalised(logs: Floats) -> Floats:
    most = logs.max(axis=1, keepdims=True)
    return np.asarray(logs - most - np.log(np.exp(logs - most).sum(axis=1, keepdims=True)))
