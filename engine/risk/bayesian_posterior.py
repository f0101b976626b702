"""Posterior of a confidential record's values for the strongest intruder, given the release and all other records.

Reiter, Wang & Zhang, eq. 1: p(Y_i | Z, X, D_-i) is proportional to p(Z | Y_i, X, D_-i) p(Y_i | X, D_-i). The intruder
knows every record but one, the values of this one that are released unchanged, and the models of the release with their
settings. Each guess at the other values is weighted by the likelihood of the release.

R (eq. 2) is the share of records whose most likely guess is the truth; a tie of q guesses counts 1/q. PR (eq. 13) is
the same with the prior alone. Models are not refitted for each guess: ``sfumato.engine.methods.release_models`` asks
each model for the likelihoods of all guesses at a record at once.

An intruder who lacks several records averages over draws of the other lacking records. ``own_record_risk`` belongs to a
weaker intruder, who uses the released counterpart of the record alone and not the rest of the release.

A low R may mislead: an intruder with another prior, or guesses that ``observed`` leaves out, are not covered, and R is
an average: single records are described by ``posterior_of_truth`` and the arrays by record.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ..data.arrays import Floats
from ..data.intervals import AT_LEAST_ONE, NON_NEGATIVE, SHARE, UNBOUNDED, Range
from ..data.microdata import Microdata
from ..data.schema import Schema
from ..errors import BadInput, NotComputable
from ..methods.levers import INFERENCE, MORE_DRAWS
from ..methods.outputs import Beliefs, Label, Output, RecordArray, RiskOutput
from ..methods.registry import measure_method
from ..methods.release_models import (
    IntruderGuesses,
    Models,
    OwnRecordModel,
    Plausibility,
    ReleaseModel,
    replace_values,
    total_plausibility,
    total_refined_log_likelihoods,
)
from ..methods.results import Estimate, Measure, WholeReleaseMeasure
from ..methods.run import Progress, Run
from ..methods.spec import Param, Spec
from ..statistics.combining import monte_carlo_mean
from ..statistics.score_interval import score_interval
from ..wording import agreeing_word, count_noun
from ._guess_space import CandidateGuesses, GuessSpace, Space, expected_values
from ._ties import LOG_TOLERANCE, chance_of_truth, count_guesses_as_likely

NEARLY_CERTAIN = 0.95
WITHOUT_RELEASE = "before the release"
SMALL_STEP_ERROR = 0.05
MAX_HEAVY_SHARE = 0.5
"""Share of records with too few supporting draws above which no result is reported."""


BELIEFS = Beliefs(
    after="posterior_risk",
    before="prior_risk",
    both="right_both",
    gained="gained",
    lost="lost",
    neither="wrong_both",
    of_first="posterior_risk_of_first",
    datasets="datasets",
    certain=NEARLY_CERTAIN,
    prior="prior",
    unknowing="uniform",
)
TOP_VALUES_KEY = "top."
"""Prefix of the keys of stored arrays with the values of the most likely guesses."""
CELLS = 200_000
"""Number of guesses times datasets that are evaluated together."""
KEPT_GUESSES = 5
"""Number of most likely guesses stored for each record."""
FIRST_GUESSES = 32
NEGLIGIBLE_LOG_DIFFERENCE = 5.0
"""Log difference below the most likely guess beyond which a posterior is less than a hundredth of it."""


@dataclass(frozen=True, eq=False)
class RecordPosteriors:
    """Posteriors of t records from m datasets; each array has one row per record.

    record: row of each record in the data, (t,)
    probability, prior: posterior and prior probability of the true values, (t,)
    chance_right, prior_chance_right: probability that the most likely guess is the truth, with and without the release,
        (t,)
    candidates: number of guesses that are at least as likely as the truth, (t,)
    chance_right_by_dataset, candidates_by_dataset, probability_by_dataset: the same from each dataset alone, (t, m)
    chance_right_by_first_datasets: the same from the first 1 to m datasets, (t, m)
    effective_draws: effective number of draws of the other lacking records behind the posterior, (t,)
    heavy: whether too few draws support the posterior, (t,)
    difference, prior_difference: posterior and prior mean of each of v variables less the true value, (t, v)
    is_upper_bound: whether the posterior is an upper bound because not all guesses were evaluated, (t,)
    top_probability, top_prior: posterior and prior probability of the most likely guesses, (t, KEPT_GUESSES)
    top_values: values of each variable in these guesses, (t, KEPT_GUESSES) each
    own_chance_right_by_first_datasets, own_chance_right_by_dataset: chance_right from the record's released counterpart
        alone, (t, m); None where it is not requested
    """

    record: NDArray[np.intp]
    probability: Floats
    prior: Floats
    chance_right: Floats
    prior_chance_right: Floats
    candidates: NDArray[Any]
    chance_right_by_dataset: Floats
    candidates_by_dataset: NDArray[Any]
    probability_by_dataset: Floats
    chance_right_by_first_datasets: Floats
    effective_draws: Floats
    heavy: NDArray[np.bool_]
    difference: Floats
    prior_difference: Floats
    is_upper_bound: NDArray[np.bool_]
    top_probability: Floats
    top_prior: Floats
    top_values: Mapping[str, Floats]
    own_chance_right_by_first_datasets: Floats | None = None
    own_chance_right_by_dataset: Floats | None = None

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays by the keys under which they are stored."""
        arrays = {
            "record": self.record,
            "probability": self.probability,
            "prior": self.prior,
            # Stored keys are older than the field names and must stay readable.
            "right": self.chance_right,
            "prior_right": self.prior_chance_right,
            "candidates": self.candidates,
            "alone_right": self.chance_right_by_dataset,
            "alone_candidates": self.candidates_by_dataset,
            "alone_probability": self.probability_by_dataset,
            "first_right": self.chance_right_by_first_datasets,
            "effective": self.effective_draws,
            "heavy": self.heavy,
            "difference": self.difference,
            "prior_difference": self.prior_difference,
            "bounded": self.is_upper_bound,
            "top_probability": self.top_probability,
            "top_prior": self.top_prior,
            **{f"{TOP_VALUES_KEY}{name}": values for name, values in self.top_values.items()},
        }
        if self.own_chance_right_by_first_datasets is not None and self.own_chance_right_by_dataset is not None:
            arrays["own_first_right"] = self.own_chance_right_by_first_datasets
            arrays["own_alone_right"] = self.own_chance_right_by_dataset
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Create the posteriors from stored arrays."""
        return cls(
            record=arrays["record"],
            probability=arrays["probability"],
            prior=arrays["prior"],
            chance_right=arrays["right"],
            prior_chance_right=arrays["prior_right"],
            candidates=arrays["candidates"],
            chance_right_by_dataset=arrays["alone_right"],
            candidates_by_dataset=arrays["alone_candidates"],
            probability_by_dataset=arrays["alone_probability"],
            chance_right_by_first_datasets=arrays["first_right"],
            effective_draws=arrays["effective"],
            heavy=arrays["heavy"],
            difference=arrays["difference"],
            prior_difference=arrays["prior_difference"],
            is_upper_bound=arrays["bounded"],
            top_probability=arrays["top_probability"],
            top_prior=arrays["top_prior"],
            top_values={
                key.removeprefix(TOP_VALUES_KEY): array
                for key, array in arrays.items()
                if key.startswith(TOP_VALUES_KEY)
            },
            own_chance_right_by_first_datasets=arrays.get("own_first_right"),
            own_chance_right_by_dataset=arrays.get("own_alone_right"),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[RecordPosteriors]) -> Self:
        """Concatenate the records of all parts."""
        arrays = [part.to_arrays() for part in parts]
        return cls.from_arrays({key: np.concatenate([one[key] for one in arrays]) for key in arrays[0]})

    def select(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Self:
        """Return the posteriors of the records that ``rows`` selects."""
        return self.from_arrays({key: array[rows] for key, array in self.to_arrays().items()})

    def most_likely_guesses(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the most likely guesses at each record that a run stores."""
        kept = ("record", "probability", "prior", "top_probability", "top_prior")
        return {key: array for key, array in self.to_arrays().items() if key in kept or key.startswith(TOP_VALUES_KEY)}

    def arrays_by_record(
        self, data: Microdata, probability: Floats, candidates: NDArray[Any]
    ) -> dict[str, NDArray[np.float64]]:
        """Return the arrays of a ``Measure``: one value per record of ``data``, NaN if it was not attacked."""
        arrays = {"probability": probability, "candidates": candidates.astype(np.float64), "prior": self.prior}
        spread = {name: np.full(len(data), np.nan) for name in arrays}
        for name, values in arrays.items():
            spread[name][self.record] = values
        return spread


@dataclass(frozen=True, eq=False)
class PosteriorBlock:
    """Posteriors of one block of records.

    posteriors: None if the block has no records
    step_errors: errors of the one-step approximation at the records for which models were refitted, (r,)
    remarks: remarks of the models
    """

    posteriors: RecordPosteriors | None
    step_errors: Floats
    remarks: tuple[str, ...]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays by the keys under which they are stored."""
        arrays = self.posteriors.to_arrays() if self.posteriors is not None else {}
        return {**arrays, "step_error": self.step_errors, "remarks": np.array(self.remarks, dtype=str)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Create the block from stored arrays."""
        posteriors = RecordPosteriors.from_arrays(arrays) if "record" in arrays else None
        return cls(posteriors, arrays["step_error"], tuple(map(str, arrays["remarks"])))


def summarise_posteriors(
    data: Microdata,
    blocks: Sequence[PosteriorBlock],
    groups: tuple[str, NDArray[Any]] | None,
    is_sample: bool,
    has_drawn_records: bool = False,
) -> WholeReleaseMeasure:
    """Summarise the posteriors of all records together and for each group.

    ``groups``: name of the grouping variable, and the group of each record, (n,). ``is_sample``: the targets are a
    random sample of all records. ``has_drawn_records``: the other records that the intruder lacks were drawn separately
    for each block.
    """
    whole = [block.posteriors for block in blocks if block.posteriors is not None]
    found = RecordPosteriors.concatenate(whole)
    block_of_record = np.repeat(np.arange(len(whole)), [len(part.record) for part in whole])

    def uncertainty(own: NDArray[np.bool_]) -> MeanUncertainty:
        return MeanUncertainty(is_sample, block_of_record[own] if has_drawn_records else None)

    remark = "; ".join(dict.fromkeys(text for block in blocks for text in block.remarks))
    if found.is_upper_bound.any():
        remark = "; ".join(
            filter(None, [remark, f"of {int(found.is_upper_bound.sum()):,} records the posterior is an upper bound"])
        )
    heavy = int(found.heavy.sum())
    if heavy > MAX_HEAVY_SHARE * len(found.heavy):
        raise NotComputable(
            f"of {heavy:,} of {len(found.heavy):,} records so few draws of the posterior bear what would be said that nothing is"
        )
    if heavy:
        remark = "; ".join(filter(None, [remark, f"of {heavy:,} records few draws of the posterior bear what is said"]))
    everyone = np.ones(len(found.record), dtype=np.bool_)
    uses = [({}, everyone), *_records_by_group(groups, found.record)]
    estimates: list[Estimate] = []
    for told, own in uses:
        estimates += _belief_estimates(found.select(own), uncertainty(own), remark, told)
    estimates += _distance_estimates(found, data.schema, uncertainty(everyone), remark)
    by_first = [("posterior_risk_of_first", found.chance_right_by_first_datasets)]
    by_dataset = [("posterior_risk", found.chance_right_by_dataset)]
    if found.own_chance_right_by_first_datasets is not None and found.own_chance_right_by_dataset is not None:
        by_first.append(("own_record_risk", found.own_chance_right_by_first_datasets))
        by_dataset.append(("own_record_risk", found.own_chance_right_by_dataset))
    for told, own in uses:
        for name, chances in by_first:
            for first, right in enumerate(chances[own].T, start=1):
                params, before = {**told, "datasets": first}, found.prior_chance_right[own]
                estimates.append(_share_estimate(name, right, uncertainty(own), remark, params, before))
    estimates += _computation_estimates(blocks, found)
    datasets = []
    for draw, probability in enumerate(found.probability_by_dataset.T):
        alone: list[Estimate] = []
        for name, chances in by_dataset:
            for told, own in uses:
                before = found.prior_chance_right[own]
                alone.append(_share_estimate(name, chances[own, draw], uncertainty(own), remark, told, before))
        alone.append(_share_estimate("posterior_of_truth", probability, uncertainty(everyone), remark, {}, found.prior))
        arrays = found.arrays_by_record(data, probability, found.candidates_by_dataset[:, draw])
        datasets.append(Measure(tuple(alone), arrays))
    return WholeReleaseMeasure(
        Measure(tuple(estimates), found.arrays_by_record(data, found.probability, found.candidates)),
        tuple(datasets),
        found.most_likely_guesses(),
    )


def _records_by_group(
    groups: tuple[str, NDArray[Any]] | None, records: NDArray[np.intp]
) -> Iterator[tuple[dict[str, str], NDArray[np.bool_]]]:
    """Yield for each group the parameters of its estimates and a mask of the records in it, (t,)."""
    if groups is not None:
        name, values = groups
        for value in sorted(set(values[records])):
            yield {name: str(value)}, values[records] == value


@dataclass(frozen=True, eq=False)
class MeanUncertainty:
    """Sources of uncertainty of a mean over the t targets.

    is_sample: whether the targets are a random sample of all records
    blocks: block of each target, (t,), where each block draws its own background records; None without such draws
    """

    is_sample: bool
    blocks: NDArray[np.intp] | None

    @property
    def is_exact(self) -> bool:
        """Return whether the mean involves no random draw."""
        return not self.is_sample and self.blocks is None

    def select(self, own: NDArray[np.bool_]) -> MeanUncertainty:
        """Return the uncertainty of a mean over the marked records, given a mask (t,)."""
        return self if self.blocks is None else replace(self, blocks=self.blocks[own])

    def mean_limits(self, values: Floats, within: Range = UNBOUNDED) -> Range:
        """Return the 95 % confidence limits of the mean of values (t,).

        The limits equal the mean if nothing was drawn, and are None if there is one block only. Shares of sampled
        records have Wilson limits, other means Student limits.
        """
        mean = float(values.mean())
        if self.blocks is not None:
            # Records of a block share their draws of the background, so only the block means are independent.
            values = np.array([values[self.blocks == one].mean() for one in np.unique(self.blocks)])
        elif not self.is_sample:
            return mean, mean
        elif within == SHARE:
            return score_interval(mean, len(values))
        _, low, high = monte_carlo_mean(values.tolist(), within=within)
        return (None, None) if low is None or high is None else (min(low, mean), max(high, mean))


def _share_estimate(
    name: str,
    right: Floats,
    limits: MeanUncertainty,
    remark: str,
    params: Mapping[str, Any],
    before: Floats | None = None,
) -> Estimate:
    """Return the mean of values in [0, 1] over the records as an estimate with limits."""
    value = float(right.mean())
    baseline = None if before is None else float(before.mean())
    return Estimate(name, value, "", *limits.mean_limits(right, SHARE), baseline=baseline, reason=remark, params=params)


def _belief_estimates(
    found: RecordPosteriors, limits: MeanUncertainty, remark: str, params: Mapping[str, Any]
) -> Iterator[Estimate]:
    """Yield the estimates of risk, prior risk and their cross-classification for all records or one group."""
    after, before = found.chance_right, found.prior_chance_right
    yield _share_estimate("posterior_risk", after, limits, remark, params, before)
    yield _share_estimate("prior_risk", before, limits, remark, params)
    own, prior = found.probability, found.prior
    yield _share_estimate("posterior_of_truth", own, limits, remark, params, prior)
    sure, sure_before = ((one >= NEARLY_CERTAIN).astype(np.float64) for one in (own, prior))
    yield _share_estimate("nearly_certain", sure, limits, remark, params, sure_before)
    for name, share in (
        ("right_both", before * after),
        ("gained", (1 - before) * after),
        ("lost", before * (1 - after)),
        ("wrong_both", (1 - before) * (1 - after)),
    ):
        value = float(share.sum())
        lower, upper = (None if end is None else len(share) * end for end in limits.mean_limits(share, SHARE))
        ends = (value, value) if limits.is_exact else (lower, upper)
        yield Estimate(name, value, "", *ends, reason=remark, params=params)
    # The prior of the truth can underflow to 0.
    ratio = own / np.maximum(prior, np.finfo(float).tiny)
    guessed = after > 0
    if guessed.any():
        weight = np.log(np.maximum(ratio[guessed], np.finfo(float).tiny))
        value = float(np.exp(weight.mean()))
        lower, upper = (None if end is None else math.exp(end) for end in limits.select(guessed).mean_limits(weight))
        ends = (value, value) if limits.is_exact else (lower, upper)
        yield Estimate("risk_ratio", value, "", *ends, baseline=1.0, reason=remark, params=params)
    else:
        yield Estimate.not_computed("risk_ratio", "no record is guessed right", **params)
    largest = float(ratio.max())
    known = largest if limits.is_exact else None
    yield Estimate("largest_risk_ratio", largest, "", known, known, baseline=1.0, reason=remark, params=params)


def _distance_estimates(
    found: RecordPosteriors, schema: Schema, limits: MeanUncertainty, remark: str
) -> Iterator[Estimate]:
    """Yield for each numeric variable the mean distance of the posterior mean from the true value."""
    for v, name in enumerate(found.top_values):
        if schema[name].kind.has_levels:
            continue
        after, before = (np.abs(difference[:, v]) for difference in (found.difference, found.prior_difference))
        known = ~np.isnan(after)
        value = float(np.nanmean(after))
        lower, upper = (
            (value, value) if limits.is_exact else limits.select(known).mean_limits(after[known], NON_NEGATIVE)
        )
        prior = float(np.nanmean(before))
        yield Estimate("expected_difference", value, name, lower, upper, baseline=prior, reason=remark)


def _computation_estimates(blocks: Sequence[PosteriorBlock], found: RecordPosteriors) -> Iterator[Estimate]:
    """Yield the error of the one-step approximation and the mean effective number of draws."""
    errors = np.concatenate([block.step_errors for block in blocks])
    if len(errors):
        near = int((errors < SMALL_STEP_ERROR).sum())
        yield Estimate(
            "step_error",
            float(errors.max()),
            reason=f"of {len(errors)} records; {near} below {SMALL_STEP_ERROR}, median {np.median(errors):.2g}",
        )
    if found.effective_draws.max() > 1:
        yield Estimate("effective_draws", float(found.effective_draws.mean()))


def own_record_log_likelihoods(models: Sequence[ReleaseModel], guesses: IntruderGuesses) -> Floats:
    """Return log p(released counterpart of the record | guess) for each dataset, (t, g, m).

    Raises NotComputable if a model cannot compute it.
    """
    found = []
    for model in models:
        if not isinstance(model, OwnRecordModel):
            told = ", ".join(model.targets)
            raise NotComputable(
                f"the model of {told} does not tell what it released of one record: leave own_record out"
            )
        found.append(model.own_record_log_likelihoods(guesses))
    return np.asarray(np.sum(found, axis=0))


def check_data(data: Microdata, targets: tuple[str, ...], spec: BayesianPosteriorSpec, place: str) -> None:
    """Raise BadInput if a record has more guesses at the ``targets`` than ``spec.largest``."""
    if not targets:
        return
    try:
        GuessSpace.from_variables(data, targets, spec.guesses, spec.points, spec.strata, spec.largest)
    except NotComputable as error:
        raise BadInput(f"{place}.guesses", error.reason) from None


@dataclass(frozen=True, eq=False)
class LogKernels:
    """Logarithms of unnormalised posteriors of t records with g guesses.

    prior: log prior of each guess, (t, g)
    by_dataset: log posterior kernel given each dataset alone, (t, g, m)
    by_first_datasets: log posterior kernel given the first 1 to m datasets, (t, g, m)
    effective_draws: effective number of draws of the other lacking records at the truth; 1 for an intruder who lacks
        one record, (t,)
    heavy: whether too few draws support the posterior, as ``Plausibility`` defines it, (t,)
    """

    prior: Floats
    by_dataset: Floats
    by_first_datasets: Floats
    effective_draws: Floats
    heavy: NDArray[np.bool_]

    def append_guesses(self, other: LogKernels) -> LogKernels:
        """Return the kernels of the same records with the guesses of ``other`` appended."""
        return LogKernels(
            np.concatenate([self.prior, other.prior], axis=1),
            np.concatenate([self.by_dataset, other.by_dataset], axis=1),
            np.concatenate([self.by_first_datasets, other.by_first_datasets], axis=1),
            self.effective_draws,
            self.heavy | other.heavy,
        )

    def select(self, rows: NDArray[np.bool_]) -> LogKernels:
        """Return the kernels of the records that ``rows`` marks."""
        return LogKernels(
            self.prior[rows],
            self.by_dataset[rows],
            self.by_first_datasets[rows],
            self.effective_draws[rows],
            self.heavy[rows],
        )


@dataclass(frozen=True, eq=False)
class _StrongestIntruder:
    """Intruder who knows the fitted models of the release.

    spec: settings
    models: models fitted to the data or, if several records are lacking, to each draw of the other lacking records
    """

    spec: BayesianPosteriorSpec
    models: tuple[tuple[ReleaseModel, ...], ...]

    def log_kernels(self, opened: CandidateGuesses) -> LogKernels:
        """Compute the log kernels of all guesses at some records, averaged over the draws of the background."""
        found = [total_plausibility(models, opened.guesses) for models in self.models]
        priors = [self._log_prior(one, opened) for one in found]
        alone = [prior[..., None] + one.likelihood for prior, one in zip(priors, found, strict=True)]
        first = [prior[..., None] + one.likelihood.cumsum(axis=2) for prior, one in zip(priors, found, strict=True)]
        told = [one.heavy for one in found if one.heavy is not None]
        heavy = np.logical_or.reduce(told) if told else np.zeros(len(opened.truth), dtype=np.bool_)
        return LogKernels(
            _log_mean(priors), _log_mean(alone), _log_mean(first), _effective_draws(first, opened.truth), heavy
        )

    def _log_prior(self, found: Plausibility, opened: CandidateGuesses) -> Floats:
        """Return the log prior of each guess according to the setting ``prior``, (t, g)."""
        if self.spec.prior == "model":
            return found.prior + opened.log_width
        flat = np.zeros(found.prior.shape) if self.spec.prior == "uniform" else np.log(opened.others + 1 / opened.size)
        # Structural zeros of the model stay impossible under any prior.
        return np.asarray(np.where(np.isneginf(found.prior), -np.inf, flat))

    def record_posteriors(self, opened: CandidateGuesses) -> RecordPosteriors:
        """Compute the posteriors of t records.

        With ``stop_after``, guesses are evaluated in growing batches, and a record is finished once enough guesses
        outrank the truth.
        """
        if self.spec.stop_after is None:
            kernels = self.refine_leading_guesses(opened, self.log_kernels(opened))
            found = _posteriors_from_kernels(opened, kernels)
            if not self.spec.own_record:
                return found
            likelihood, prior = own_record_log_likelihoods(self.models[0], opened.guesses), kernels.prior[..., None]
            return replace(
                found,
                own_chance_right_by_first_datasets=chance_of_truth(prior + likelihood.cumsum(axis=2), opened.truth),
                own_chance_right_by_dataset=chance_of_truth(prior + likelihood, opened.truth),
            )
        t, g = opened.others.shape
        order = np.argsort(np.arange(g)[None, :] != opened.truth[:, None], axis=1, kind="stable")  # the truth first
        rows, upto = np.arange(t), 1
        kernels = self.log_kernels(opened.select(rows, order[:, :1]))
        parts: list[tuple[NDArray[np.intp], RecordPosteriors]] = []
        while len(rows):
            # Batches double, so the number of passes is logarithmic in the number of guesses.
            more = order[rows, upto : 2 * upto + FIRST_GUESSES]
            kernels = kernels.append_guesses(self.log_kernels(opened.select(rows, more))) if more.shape[1] else kernels
            upto += more.shape[1]
            done = self._is_truth_outranked(kernels) if upto < g else np.ones(len(rows), dtype=np.bool_)
            if done.any():
                weighed = opened.select(rows[done], order[rows[done], :upto])
                parts.append((rows[done], _posteriors_from_kernels(weighed, kernels.select(done))))
            rows, kernels = rows[~done], kernels.select(~done)
        # Records finish in any order; this restores theirs.
        where = np.argsort(np.concatenate([rows for rows, _ in parts]))
        return RecordPosteriors.concatenate([part for _, part in parts]).select(where)

    def refine_leading_guesses(self, opened: CandidateGuesses, kernels: LogKernels) -> LogKernels:
        """Return kernels in which the most likely guesses other than the truth are evaluated more exactly.

        Only models that approximate a refit by one step from their fit are affected.
        """
        models = self.models[0]
        if len(self.models) > 1 or not any(model.approximate for model in models):
            return kernels
        alone, first = kernels.by_dataset.copy(), kernels.by_first_datasets.copy()
        every = np.arange(len(opened.truth))
        open_ = np.arange(first.shape[1])[None, :] != opened.truth[:, None]
        for _ in range(self.spec.leaders):
            last = np.where(open_, first[..., -1], -np.inf)
            # A guess far below the maximum cannot change who leads, whatever the error of the step.
            leader = last.argmax(axis=1)
            rows = every[last[every, leader] > first[..., -1].max(axis=1) - NEGLIGIBLE_LOG_DIFFERENCE]
            if not len(rows):
                break
            columns = leader[rows]
            found = total_refined_log_likelihoods(models, opened.select(rows, columns[:, None]).guesses)[:, 0]
            prior = kernels.prior[rows, columns][:, None]
            alone[rows, columns], first[rows, columns] = prior + found, prior + found.cumsum(axis=1)
            open_[rows, columns] = False
        return replace(kernels, by_dataset=alone, by_first_datasets=first)

    def _is_truth_outranked(self, kernels: LogKernels) -> NDArray[np.bool_]:
        """Mark the records with at least ``stop_after`` guesses above the truth, (t,).

        The truth is the first column. It must be outranked by the prior, by each dataset alone and by the first
        datasets alike.
        """
        asked = [
            kernels.by_dataset,
            kernels.by_first_datasets,
            # A uniform prior ranks no guess above another, so the condition could never hold.
            *([kernels.prior[..., None]] if self.spec.prior != "uniform" else []),
        ]
        above = [(one > one[:, :1] + LOG_TOLERANCE).sum(axis=1).min(axis=1) for one in asked]
        return np.asarray(np.min(above, axis=0) >= (self.spec.stop_after or np.inf))


def _effective_draws(first: Sequence[Floats], truth: NDArray[np.intp]) -> Floats:
    """Return the effective number of draws of the other lacking records at the truth, (t,)."""
    if len(first) == 1 or (truth < 0).any():
        return np.ones(len(truth))
    own = np.stack([np.take_along_axis(one[..., -1], truth[:, None], 1)[:, 0] for one in first])
    weight = np.exp(own - own.max(axis=0))
    # Kish's effective sample size of importance weights.
    return np.asarray(weight.sum(axis=0) ** 2 / (weight**2).sum(axis=0))


def _posteriors_from_kernels(opened: CandidateGuesses, kernels: LogKernels) -> RecordPosteriors:
    """Normalise the kernels and return the posteriors of the records with their most likely guesses."""
    truth = opened.truth
    last = kernels.by_first_datasets[..., -1]
    posterior, prior = _normalise_logs(last), _normalise_logs(kernels.prior)
    top = np.argsort(-posterior, axis=1, kind="stable")[:, :KEPT_GUESSES]
    numbers = list(opened.guesses.values)
    after, before = (expected_values(opened.guesses.values, weight, numbers) for weight in (posterior, prior))
    own = np.column_stack([np.take_along_axis(v, truth[:, None], 1)[:, 0] for v in opened.guesses.values.values()])
    # A stopped record has fewer columns than guesses, but its prior is spread over all of them.
    whole = opened.size
    uniform = np.ptp(kernels.prior, axis=1) < LOG_TOLERANCE  # also over guesses not evaluated
    right = np.where(uniform, 1 / whole, chance_of_truth(kernels.prior[..., None], truth)[:, 0])
    return RecordPosteriors(
        record=opened.guesses.records,
        probability=_value_of_truth(posterior, truth),
        prior=np.where(uniform, 1 / whole, _value_of_truth(prior, truth)),
        chance_right=chance_of_truth(last[..., None], truth)[:, 0],
        prior_chance_right=right,
        candidates=count_guesses_as_likely(last[..., None], truth)[:, 0],
        chance_right_by_dataset=chance_of_truth(kernels.by_dataset, truth),
        candidates_by_dataset=count_guesses_as_likely(kernels.by_dataset, truth),
        probability_by_dataset=np.stack(
            [_value_of_truth(_normalise_logs(one), truth) for one in np.moveaxis(kernels.by_dataset, 2, 0)], axis=1
        ),
        chance_right_by_first_datasets=chance_of_truth(kernels.by_first_datasets, truth),
        effective_draws=kernels.effective_draws,
        heavy=kernels.heavy,
        difference=after - own,
        prior_difference=before - own,
        is_upper_bound=np.full(len(truth), last.shape[1] < whole),
        top_probability=_pad_guesses(np.take_along_axis(posterior, top, 1)),
        top_prior=_pad_guesses(np.take_along_axis(prior, top, 1)),
        top_values={
            name: _pad_guesses(np.take_along_axis(values, top, 1)) for name, values in opened.guesses.values.items()
        },
    )


def _normalise_logs(logs: Floats) -> Floats:
    """Return probabilities that sum to 1 over the guesses of each record, given log kernels."""
    return np.asarray(np.exp(logs - logsumexp(logs, axis=1, keepdims=True)))


def _value_of_truth(values: Floats, truth: NDArray[np.intp]) -> Floats:
    """Return the value in the column of the truth of each record, (t,)."""
    return np.take_along_axis(values, truth[:, None], 1)[:, 0]


def _pad_guesses(values: Floats) -> Floats:
    """Pad the guesses of each record with NaN to ``KEPT_GUESSES`` columns."""
    return np.pad(values, ((0, 0), (0, KEPT_GUESSES - values.shape[1])), constant_values=np.nan)


def _log_mean(logs: Sequence[Floats]) -> Floats:
    """Return the logarithm of the mean of values that are given as logarithms."""
    return logs[0] if len(logs) == 1 else np.asarray(logsumexp(np.stack(logs), axis=0) - np.log(len(logs)))


def gather_blocks(
    confidential: Microdata,
    releases: Sequence[Microdata],
    spec: BayesianPosteriorSpec,
    blocks: Sequence[PosteriorBlock],
) -> WholeReleaseMeasure:
    """Join all blocks and compute R and PR, also by dataset and by the first datasets."""
    drawn = spec.records is not None and spec.records < len(confidential)
    groups = None
    if spec.by is not None:
        values = confidential.frame[spec.by].astype(str).to_numpy()
        of = {level: name for name, levels in spec.groups.items() for level in levels}
        groups = spec.by, np.array([of.get(value, "others") if of else value for value in values])
    return summarise_posteriors(confidential, blocks, groups, drawn, has_drawn_records=spec.lacks > 1)


def _fits_to_backgrounds(
    fitted: tuple[ReleaseModel, ...],
    space: GuessSpace,
    records: NDArray[np.intp],
    spec: BayesianPosteriorSpec,
    rng: np.random.Generator,
) -> Iterator[tuple[ReleaseModel, ...]]:
    """Yield the models fitted to the data or, if the intruder lacks several records, to each draw of the others.

    The other lacking records get the values of random known records of their stratum.
    """
    if spec.lacks == 1:
        yield fitted
        return
    if not all(model.absolute for model in fitted):
        raise NotComputable(
            "a model of the release cannot compare data that differ in several records; leave lacks at 1"
        )
    data = space.data
    outside = np.setdiff1d(np.arange(len(data)), records)
    if len(outside) < spec.lacks:
        raise NotComputable(
            f"{count_noun(len(outside), 'record')} {agreeing_word(len(outside), 'is', 'are')} in other blocks, not as many as are lacking; take more blocks"
        )
    lacking = rng.choice(outside, spec.lacks - 1, replace=False)
    known = np.setdiff1d(outside, lacking)  # none of those asked about, whose values would be given away
    for _ in range(spec.draws):
        donors = np.empty(len(lacking), dtype=np.intp)
        for s in np.unique(space.stratum[lacking]):
            here = space.stratum[lacking] == s
            of = known[space.stratum[known] == s]
            donors[here] = rng.choice(of if len(of) else known, int(here.sum()))
        values = {one.name: data.numbers(one.name)[donors] for one in space.variables}
        changed = replace_values(data, lacking, values)
        yield tuple(model.refit(changed) for model in fitted)


def _step_errors(
    intruder: _StrongestIntruder, space: GuessSpace, records: NDArray[np.intp], spec: BayesianPosteriorSpec
) -> Floats:
    """Return the errors of the one-step approximation at some records, (r,).

    The error is the absolute difference in the log posterior of the truth, among it and its two strongest rivals, from
    refitted models.
    """
    fitted, data = intruder.models[0], space.data
    if len(intruder.models) > 1 or not any(model.approximate for model in fitted):
        return np.empty(0)
    found = []
    for record in records[: -(-spec.refits // spec.blocks)]:
        opened = space.guesses_at(np.array([record]))
        kernels = intruder.refine_leading_guesses(opened, intruder.log_kernels(opened))
        last, truth = kernels.by_first_datasets[0, :, -1], int(opened.truth[0])
        others = [int(g) for g in np.argsort(-last) if g != truth and np.isfinite(last[g])][:2]
        if not others or not np.isfinite(last[truth]):
            continue
        asked = opened.select(np.array([0]), np.array([truth, *others]))
        steps = last[[truth, *others]]
        exact = kernels.prior[0, [truth, *others]] + _refitted_log_likelihoods(fitted, data, asked.guesses)
        found.append(abs(float((steps - logsumexp(steps))[0] - (exact - logsumexp(exact))[0])))
    return np.array(found)


def _refitted_log_likelihoods(fitted: tuple[ReleaseModel, ...], data: Microdata, guesses: IntruderGuesses) -> Floats:
    """Return log p(Z | D_y) of one record's guesses by refitted models, (g,); the first guess is the truth."""
    found = [float(total_plausibility(fitted, guesses).likelihood[0, 0].sum())]
    for g in range(1, guesses.shape[1]):
        values = {name: own[:, g] for name, own in guesses.values.items()}
        changed = replace_values(data, guesses.records, values)
        refitted = tuple(model.refit(changed) for model in fitted)
        if all(model.absolute for model in fitted):
            own = IntruderGuesses(guesses.records, {name: value[:, None] for name, value in values.items()})
            found.append(float(total_refined_log_likelihoods(refitted, own).sum()))
        else:
            # A relative model compares guesses only within one fit, so the refit is asked for the difference back to
            # the truth.
            pair = IntruderGuesses(guesses.records, {name: own[:, [0, g]] for name, own in guesses.values.items()})
            back = total_plausibility(refitted, pair).likelihood[0].sum(axis=1)
            found.append(found[0] + float(back[1] - back[0]))
    return np.array(found)


OUTPUTS = (
    Output(
        "posterior_risk",
        "share of the records whose truth is the most likely guess once the release is known (R)",
        "low",
        "share",
        range=SHARE,
        short="R",
        risk=RiskOutput(questions=("inference",), ratio_to=WITHOUT_RELEASE),
        estimated=True,
        label=Label(
            "Guessed right from the release",
            "With the release, the strongest intruder guesses the true values of {value}.",
            "Good is no more than without the release.",
            "The release lets the strongest intruder guess too many people's true values.",
            INFERENCE,
            counts="people",
            baseline="without the release",
        ),
    ),
    Output(
        "prior_risk",
        "share of the records whose truth is the most likely guess before (PR)",
        "none",
        "share",
        range=SHARE,
        short="PR",
        estimated=True,
        label=Label(
            "Guessed right without the release",
            "Without the release, the strongest intruder guesses the true values of {value}.",
            counts="people",
        ),
    ),
    Output(
        "posterior_of_truth",
        "probability of the truth once the release is known, mean of the records",
        "low",
        range=SHARE,
        risk=RiskOutput(questions=("inference",), ratio_to=WITHOUT_RELEASE),
        estimated=True,
        label=Label(
            "Mean probability of the true values",
            "With the release, the true values of a person have a probability of {value} on average.",
            "Good is no more than without the release.",
            "The release makes the true values too probable to the strongest intruder.",
            INFERENCE,
            counts="share",
            baseline="without the release",
        ),
    ),
    Output(
        "nearly_certain",
        f"share of the records whose truth has a posterior probability of {NEARLY_CERTAIN} or more",
        "low",
        "share",
        range=SHARE,
        risk=RiskOutput(questions=("inference",), ratio_to=WITHOUT_RELEASE),
        estimated=True,
        label=Label(
            "True values nearly certain",
            "The strongest intruder is nearly certain of the true values of {value}.",
            "Lower is better; at 0 the intruder is certain of no one's values.",
            "The strongest intruder is nearly certain of too many people's true values.",
            INFERENCE,
            counts="people",
            baseline="without the release",
        ),
    ),
    Output(
        "right_both",
        "records guessed right before and after the release",
        "none",
        "records",
        range=NON_NEGATIVE,
        estimated=True,
        label=Label(
            "Guessed right before and after the release",
            "The intruder guesses {value} rightly without the release and with it.",
            counts="people",
        ),
    ),
    Output(
        "gained",
        "records guessed wrong before the release and right after it",
        "low",
        "records",
        range=NON_NEGATIVE,
        estimated=True,
        label=Label(
            "Guessed right only because of the release",
            "The intruder guesses {value} rightly with the release, and wrongly without it.",
            "Fewer are better; at 0 the release adds no right guess.",
            "The release turns too many wrong guesses into right ones.",
            INFERENCE,
            counts="people",
        ),
    ),
    Output(
        "lost",
        "records guessed right before the release and wrong after it",
        "none",
        "records",
        range=NON_NEGATIVE,
        estimated=True,
        label=Label(
            "Guessed right only without the release",
            "The release misleads the intruder about {value}.",
            counts="people",
        ),
    ),
    Output(
        "wrong_both",
        "records guessed wrong before and after the release",
        "none",
        "records",
        range=NON_NEGATIVE,
        estimated=True,
        label=Label(
            "Guessed wrong before and after the release",
            "The intruder guesses {value} wrongly without the release and with it.",
            counts="people",
        ),
    ),
    Output(
        "risk_ratio",
        "posterior over prior probability of the truth, geometric mean of the records that are guessed right",
        "low",
        range=NON_NEGATIVE,
        statbarn="CalculatedRatios",
        estimated=True,
        label=Label(
            "Mean gain in probability of right guesses",
            "Where the intruder is right, the release makes the true values {value} times as probable (geometric mean).",
            "Good is 1: the release adds nothing.",
            "The release makes right guesses too much more probable.",
            INFERENCE,
        ),
    ),
    Output(
        "largest_risk_ratio",
        "posterior over prior probability of the truth, largest of a record",
        "low",
        range=NON_NEGATIVE,
        statbarn="Endpoints",
        estimated=True,
        label=Label(
            "Largest gain in probability for a person",
            "For one person, the release makes the true values {value} times as probable.",
            "Good is 1: the release adds nothing about anybody.",
            "For at least one person the release adds too much.",
            INFERENCE,
        ),
    ),
    Output(
        "expected_difference",
        "distance of a number's posterior mean from the truth, mean of the records",
        "high",
        range=NON_NEGATIVE,
        estimated=True,
        label=Label(
            "Mean distance of the best guess",
            "The intruder's expectation of {variable} is {value} away from the truth on average.",
            "Higher is better: guesses are far from the truth.",
            "The intruder's expectation is too near the true values.",
            INFERENCE,
        ),
    ),
    Output(
        "posterior_risk_of_first",
        "R by the first datasets of the release, for this many of them",
        "low",
        "share",
        range=SHARE,
        short="R of first",
        risk=RiskOutput(ratio_to=WITHOUT_RELEASE),
        estimated=True,
        label=Label(
            "Guessed right from the first datasets",
            "With the first datasets alone, the strongest intruder guesses the true values of {value}.",
            "Good is no more than without the release.",
            "The first datasets alone let an intruder guess too many true values.",
            INFERENCE,
            counts="people",
            baseline="without the release",
        ),
    ),
    Output(
        "own_record_risk",
        "R of an intruder who looks at what was released of the record itself alone; how safe a release is it does not say, since others look at all of it",
        "none",
        "share",
        range=SHARE,
        short="R own",
        estimated=True,
        label=Label(
            "Guessed right from the own record alone",
            "From the released record of a person alone, an intruder guesses the true values of {value}.",
            counts="people",
        ),
    ),
    Output(
        "step_error",
        "error of the log posterior of the truth by steps from the fit, largest of some records at which the models were fitted again",
        "none",
        range=NON_NEGATIVE,
        estimated=True,
        label=Label(
            "Error of the approximate posterior",
            "The log posterior of the truth, found by steps, differs by at most {value} from models that are fitted again.",
        ),
    ),
    Output(
        "effective_draws",
        "draws of the other lacking records that bear the posterior, mean of the records",
        "high",
        range=AT_LEAST_ONE,
        estimated=True,
        label=Label(
            "Draws that support the posterior",
            "On average, {value} draws of the unknown records support the posterior of a person.",
            "More are better: the posterior is computed precisely.",
            "The posterior rests on too few draws to be trusted.",
            MORE_DRAWS,
        ),
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class BayesianPosteriorSpec(Spec):
    """Settings: the intruder's prior and guesses, the targets, and the number of records that the intruder lacks."""

    prior: Annotated[
        Literal["model", "marginal", "uniform"],
        Param(
            "what the intruder believes before: what the models predict from all other records, how many other records have "
            "the guess (and one more, shared by all guesses), or nothing",
            reported=True,
        ),
    ] = "model"
    guesses: Annotated[
        Space,
        Param(
            "combinations that records have, within the strata; all combinations; or those that differ from the truth in one variable"
        ),
    ] = "observed"
    strata: Annotated[
        tuple[str, ...],
        Param("kept variables: a record is guessed among the combinations of its own stratum", names="variables"),
    ] = ()
    by: Annotated[
        str | None, Param("variable by whose true values, or groups of them, R and PR are also told", names="variables")
    ] = None
    groups: Annotated[Mapping[str, tuple[str, ...]], Param("levels of by that are joined, by a name each")] = field(
        default_factory=dict
    )
    points: Annotated[int, Param("guesses at a number", ge=2, le=1000)] = 25
    largest: Annotated[int, Param("most guesses at a record", ge=2, filters_rows=True)] = 5000
    records: Annotated[int | None, Param("number of targets, a random sample of the records; default: all", ge=1)] = (
        None
    )
    lacks: Annotated[int, Param("records that the intruder does not know, the one asked about among them", ge=1)] = 1
    draws: Annotated[int, Param("draws of the possible values of other missing records", ge=2, le=10_000)] = 50
    stop_after: Annotated[
        int | None,
        Param(
            "a record is finished once this many guesses are more likely than the truth, before and after: its posterior is then an upper bound",
            ge=1,
        ),
    ] = None
    leaders: Annotated[
        int, Param("most likely guesses of a record that are weighed nearer, where a model takes a step", ge=0)
    ] = 3
    own_record: Annotated[
        bool,
        Param("also report R of an intruder who uses the record's own released values only"),
    ] = False
    refits: Annotated[
        int,
        Param(
            "records at which models that take a step are fitted again, to report the error of the step",
            ge=0,
            filters_rows=True,
        ),
    ] = 16
    blocks: Annotated[int, Param("tasks that the records are divided among", ge=1, le=1000, filters_rows=True)] = 8

    def grid(self) -> tuple[float, ...]:
        return tuple(map(float, range(self.blocks)))

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput when strata are not kept, or settings contradict each other."""
        for i, name in enumerate(self.strata):
            if name in released:
                raise BadInput(f"{place}.strata[{i}]", f'"{name}" is synthesised; name kept variables')
        if self.groups and self.by is None:
            raise BadInput(f"{place}.groups", "are groups of the values of by: name a variable there")
        if self.own_record and (self.lacks > 1 or self.stop_after is not None):
            raise BadInput(f"{place}.own_record", "needs all guesses at a record and lacks = 1; leave stop_after out")
        if self.guesses == "neighbours" and self.prior == "marginal":
            raise BadInput(
                f"{place}.prior", 'neighbours have no marginal counts; use "model" or "uniform", or other guesses'
            )


@measure_method(
    "Strongest intruder",
    spec=BayesianPosteriorSpec,
    source="Reiter, Wang & Zhang, eq. 1-15",
    outputs=OUTPUTS,
    gather=gather_blocks,
    block_result=PosteriorBlock,
    check=check_data,
    per_record=(
        RecordArray("probability", "posterior probability of the truth", worse="high", part="probability"),
        RecordArray("candidates", "guesses that are at least as likely as the truth", "guesses", "low", "candidates"),
        RecordArray("prior", "probability of the truth before the release", part="prior"),
    ),
    beliefs=BELIEFS,
)
def bayesian_posterior(
    confidential: Microdata,
    releases: Sequence[Microdata],
    models: Models,
    spec: BayesianPosteriorSpec,
    block: int,
    run: Run,
) -> PosteriorBlock:
    """Compute the posteriors of one block of target records."""
    # All blocks must draw the same targets, yet have random numbers of their own.
    choosing, *own = run.rng.spawn(1 + spec.blocks)
    rng = own[block]
    n = len(confidential)
    chosen = np.arange(n)
    if spec.records is not None and spec.records < n:
        chosen = np.sort(choosing.choice(n, spec.records, replace=False))
    records = np.array_split(chosen, spec.blocks)[block]
    fitted = models(confidential)
    names = tuple(name for model in fitted for name in model.targets)
    space = GuessSpace.from_variables(confidential, names, spec.guesses, spec.points, spec.strata, spec.largest)
    intruder = _StrongestIntruder(spec, tuple(_fits_to_backgrounds(fitted, space, records, spec, rng)))
    cells = CELLS // (len(releases) * len(intruder.models))
    found, done = [], 0
    for group in space.blocks_of_stratum(records, cells):
        found.append(intruder.record_posteriors(space.guesses_at(group)))
        run.report(Progress(done := done + len(group), len(records), "records"))
    errors = _step_errors(intruder, space, records[rng.permutation(len(records))], spec)
    remarks = tuple(dict.fromkeys(remark for model in fitted for remark in model.remarks))
    return PosteriorBlock(RecordPosteriors.concatenate(found) if found else None, errors, remarks)
