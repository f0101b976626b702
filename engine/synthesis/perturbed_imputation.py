"""Perturbed multiple imputation: categories drawn in turn from perturbed multinomial logits (Park & Ghosh §3.5).

Each feature is regressed on indicators of all others with an elastic-net penalty, whose strength is the one with the
least deviance in cross-validation (scikit-learn's saga in place of the paper's glmnet). A synthetic record starts as a
seed and takes a new value for each feature in turn, with the probability (g + alpha) / (1 + C alpha); alpha = 1 /
(exp(epsilon / M) - 1). Without ``epsilon`` nothing is perturbed: multiple imputation.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.microdata import Microdata
from ..data.provenance import FitUncertainty
from ..data.schema import Kind, Schema
from ..design.categories import (
    BinsByVariable,
    InsideBin,
    VariableCategories,
    categories_of_variable,
    check_bins,
    learned_from_data,
)
from ..design.seed_pools import UNIFORM, SeedPoolParam, check_seeds, draw_seeds, uncovered_seeds
from ..methods.privacy import ACCOUNT, NoAccount, PrivacyAccount, virtual_records
from ..methods.registry import PrivacyDeclaration, synthesis_method
from ..methods.results import Diagnostic, Fit, NoTrace
from ..methods.run import Run
from ..methods.spec import Param, Spec

MAXIMISED = "a penalised likelihood is maximised, not sampled"
MOST_STEPS = 500
INTERCEPT_STEPS = 25
STRONGEST, WEAKEST = 1e-3, 1.0


def check_data(data: Microdata, targets: tuple[str, ...], spec: PerturbedImputationSpec, place: str) -> None:
    """Raise BadInput where a number has no bins, or seeds cannot be records of the data."""
    check_bins(data, (*targets, *spec.predictors), spec.bins, place)
    check_seeds(data, targets, spec.seeds, f"{place}.seeds")


def account(
    data: Microdata, targets: tuple[str, ...], spec: PerturbedImputationSpec, records: int, datasets: int
) -> PrivacyAccount | NoAccount:
    """Return the privacy cost: one epsilon for each record (Park & Ghosh §3.5), and what the proof leaves out."""
    if spec.epsilon is None:
        return NoAccount("nothing is perturbed: no epsilon was asked for")
    learned = learned_from_data(data, (*targets, *spec.predictors), spec.bins, inside=spec.inside)
    # A drawn record costs epsilon whatever the models have learned: g lies between 0 and 1, so that two probabilities
    # are never more than 1 + 1/alpha apart, and so are those of tables that differ in a unit, of however many records.
    # That is also why it needs so much noise.
    return PrivacyAccount(spec.epsilon, records, datasets, (*uncovered_seeds(spec.seeds), *learned))


def uniform_share(epsilon: float | None, features: int, size: int) -> float:
    """Return the probability that a draw is uniform over ``size`` categories: C alpha / (1 + C alpha)."""
    if epsilon is None:
        return 0.0
    alpha = virtual_records(epsilon, features)
    return size * alpha / (1 + size * alpha)


def _categories_by_name(
    data: Microdata, names: Sequence[str], spec: PerturbedImputationSpec
) -> dict[str, VariableCategories]:
    return {name: categories_of_variable(data, name, spec.bins.get(name)) for name in names}


def joint_draw(
    fit: Fit,
    spec: PerturbedImputationSpec,
    targets: tuple[str, ...],
    confidential: Microdata,
    released: Microdata,
    index: int,
    records: int,
    rng: np.random.Generator,
) -> Mapping[str, NDArray[np.generic]]:
    """Draw a dataset of ``records`` records, each from a seed of its own."""
    categories = _categories_by_name(confidential, (*targets, *spec.predictors), spec)
    state = draw_seeds(categories, targets, spec.seeds, confidential, records, rng, own=bool(spec.predictors))
    state |= {name: categories[name].category_codes(released) for name in spec.predictors}
    for name in targets:
        size = categories[name].size
        chance = category_probabilities(fit.arrays, name, state, categories)
        drawn = (chance.cumsum(axis=1) < rng.random((records, 1))).sum(axis=1)
        free = rng.random(records) < uniform_share(spec.epsilon, len(targets), size)
        state[name] = np.where(free, rng.integers(size, size=records), np.minimum(drawn, size - 1))
    return {name: categories[name].draw_values(state[name], confidential, spec.inside, rng) for name in targets}


def category_probabilities(
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    state: Mapping[str, Integers],
    categories: Mapping[str, VariableCategories],
) -> Floats:
    """Return the probability of each category of a feature given the codes of the others, (records, size)."""
    classes, coefficients = arrays[f"{name}.classes"], arrays[f"{name}.coefficients"]
    scores = np.tile(coefficients[0], (len(state[name]), 1))
    start = 1
    for other in (feature for feature in categories if feature != name):
        # The rows of the indicators are looked up; a matrix of indicators would be mostly zeros.
        scores += coefficients[start + state[other]]
        start += categories[other].size
    found = np.zeros((len(scores), categories[name].size))
    found[:, classes] = softmax_rows(scores)
    return found


def _fit_feature(
    codes: Mapping[str, Integers],
    categories: Mapping[str, VariableCategories],
    spec: PerturbedImputationSpec,
    name: str,
    rng: np.random.Generator,
) -> tuple[Integers, Floats, float, int]:
    """Fit the model of a feature; return its classes, coefficients, the penalty's strength, and the steps."""
    others = [feature for feature in categories if feature != name]
    records = len(codes[name])
    classes = np.unique(codes[name])
    width = sum(categories[other].size for other in others)
    if len(classes) < 2 or not width:
        share = np.log(np.bincount(codes[name], minlength=classes.max() + 1)[classes] / records)
        return classes, np.vstack([share, np.zeros((width, len(classes)))]), 0.0, 0
    # Not a ``Design`` of predictor terms: the columns are categories of bins, all of them, under one penalty.
    design = np.hstack([np.eye(categories[other].size)[codes[other]] for other in others])
    seed = int(rng.integers(2**31))
    strengths = np.geomspace(STRONGEST, WEAKEST, spec.strengths)
    fold = rng.permutation(records) % spec.folds
    deviances = [
        sum(
            _holdout_deviance(design, codes[name], fold == part, strength, spec.mixing, seed)
            for part in range(spec.folds)
        )
        for strength in strengths
    ]
    best = float(strengths[int(np.argmin(deviances))])
    coefficients, steps = _fit_elastic_net(design, codes[name], best, spec.mixing, seed)
    return classes, coefficients, 1 / best, steps


def _fit_elastic_net(design: Floats, codes: Integers, strength: float, mixing: float, seed: int) -> tuple[Floats, int]:
    """Fit a penalised multinomial logit; return coefficients (1 + indicators, classes) and the number of steps.

    The first row of coefficients are the intercepts.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        solver="saga", l1_ratio=mixing, C=strength, tol=1e-3, max_iter=MOST_STEPS, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said by the diagnostic of its steps
        model.fit(design, codes)
    slopes, intercepts = model.coef_, model.intercept_
    if len(model.classes_) == 2:
        slopes, intercepts = np.vstack([np.zeros_like(slopes), slopes]), np.append(0.0, intercepts)
    shares = np.unique(codes, return_counts=True)[1] / len(codes)
    scores = design @ slopes.T
    # saga stops before intercepts that nothing penalises are settled: they are set so that each class has its share of
    # the records.
    for _ in range(INTERCEPT_STEPS):
        intercepts = intercepts + np.log(shares / np.maximum(softmax_rows(scores + intercepts).mean(axis=0), 1e-300))
    return np.vstack([intercepts, slopes.T]), int(np.max(model.n_iter_))


def softmax_rows(scores: Floats) -> Floats:
    """Return the probabilities of classes, (n, classes), by their scores."""
    found = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Floats = found / found.sum(axis=1, keepdims=True)
    return shares


def _holdout_deviance(
    design: Floats, codes: Integers, held: NDArray[np.bool_], strength: float, mixing: float, seed: int
) -> float:
    """Return the deviance of the records that are held out."""
    kept = codes[~held]
    classes = np.unique(kept)
    if len(classes) < 2:
        return 0.0
    coefficients, _ = _fit_elastic_net(design[~held], kept, strength, mixing, seed)
    chance = softmax_rows(coefficients[0] + design[held] @ coefficients[1:])
    places = np.minimum(np.searchsorted(classes, codes[held]), len(classes) - 1)
    own = np.where(classes[places] == codes[held], chance[np.arange(len(chance)), places], 0.0)
    # A class that the other records do not have has probability 0, which must not decide between strengths alone.
    return float(-2 * np.log(np.maximum(own, 1e-6)).sum())


@dataclass(frozen=True, kw_only=True, slots=True)
class PerturbedImputationSpec(Spec):
    """Settings of privacy, of the penalty of the models, and of how numbers become categories."""

    epsilon: Annotated[
        float | None,
        Param("differential privacy of one drawn record; left out, nothing is perturbed", gt=0, le=10_000),
    ] = None
    mixing: Annotated[float, Param("share of the penalty on absolute values; the rest is on squares", ge=0, le=1)] = 0.5
    strengths: Annotated[int, Param("strengths of the penalty that are tried", ge=1, le=50)] = 5
    folds: Annotated[int, Param("parts of cross-validation", ge=2, le=20)] = 3
    fit_records: Annotated[int, Param("records, chosen by chance, that the models are fitted to at most", ge=10)] = (
        5_000
    )
    predictors: Annotated[
        tuple[str, ...],
        Param("variables that are kept, or were made before, to be regressed on too", names="variables"),
    ] = ()
    seeds: SeedPoolParam = UNIFORM
    bins: BinsByVariable = field(default_factory=dict)
    inside: InsideBin = "uniform"

    @property
    def uses_own_record(self) -> bool:
        """Return whether each record starts at its own."""
        return bool(self.predictors) and self.seeds.kind == "confidential"


def fit_uncertainty(spec: PerturbedImputationSpec, targets: tuple[str, ...], schema: Schema) -> FitUncertainty:
    """Return that a penalty, and virtual records where there is an epsilon, move all datasets alike."""
    return FitUncertainty("estimated", "a penalty moves the coefficients towards 0")


@synthesis_method(
    "Perturbed multiple imputation",
    spec=PerturbedImputationSpec,
    source="Park & Ghosh §3.5; Friedman, Hastie & Tibshirani (2010)",
    joint_draw=joint_draw,
    targets=tuple(Kind),
    check=check_data,
    privacy=PrivacyDeclaration(account, counts_units=True),
    outputs=ACCOUNT,
    fit_uncertainty=fit_uncertainty,
)
def perturbed_imputation(
    data: Microdata, targets: tuple[str, ...], spec: PerturbedImputationSpec, run: Run, draws: int
) -> Fit:
    """Fit the models of all targets.

    Arrays: of each target the ``classes`` (k,) that occur, and ``coefficients`` (1 + indicators, k).
    """
    categories = _categories_by_name(data, (*targets, *spec.predictors), spec)
    rows = np.sort(run.rng.permutation(len(data))[: spec.fit_records])
    codes = {name: one.category_codes(data)[rows] for name, one in categories.items()}
    fitted = run.over(partial(_fit_feature, codes, categories, spec), list(targets), "models")
    arrays: dict[str, NDArray[np.generic]] = {}
    said: list[Diagnostic] = []
    for name, (classes, coefficients, strength, steps) in zip(targets, fitted, strict=True):
        arrays |= {f"{name}.classes": classes, f"{name}.coefficients": coefficients}
        said.append(Diagnostic("penalty", name, strength))
        said.append(Diagnostic("steps", name, float(steps), f"below {MOST_STEPS}", steps < MOST_STEPS))
    return Fit(arrays, tuple(said), NoTrace(MAXIMISED))
