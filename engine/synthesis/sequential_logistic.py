"""Binary variables one after another, each by a logistic regression on those before it (Reiter, Wang & Zhang §3.1, eq. 5).

The first target is a share with a Beta posterior (step 1: Dirichlet-binomial, a virtual records of each level). Each other target
has a logistic regression on those before it, in the order of the recipe, fitted to all confidential records. ``order`` says which of its
terms there are:

    order = 1   main effects alone: no two-way interactions (N2WI, steps 2, 3' and 4')
    order = 2   and all products of two: no three-way interactions (N3WI, steps 2 to 4)

Coefficients are drawn from N(beta-hat, V-hat) for each dataset, beta-hat the maximum and V-hat the inverse of the information there; or are beta-hat in all of
them, ``parameters = "mle"``, which partial synthesis may do (Reiter & Kinney 2012) and full synthesis may not: variances would be
too small. With ``predictors``, terms of variables that are kept (§4), the first target is regressed too, and with order 2
their products with one another and with the targets count.

A combination of levels without a record of one of the two outcomes can separate them: the maximum is then infinite and V-hat says nothing. That is refused, unless
``prior = "jeffreys"``, Firth's penalised likelihood (``sfumato.engine.design.logistic``), which always has a maximum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from ..arrays import Floats
from ..data.microdata import Microdata, as_column
from ..data.schema import Kind, Schema
from ..data.terms import Design, parse_term
from ..design.distinct_records import distinct_records
from ..design.logistic import LogisticFit, LogisticPrior
from ..design.sequential_regressions import SequentialModel, sequential_models, sequential_terms, share_of
from ..errors import BadInput
from ..methods.registry import method
from ..methods.results import Diagnostic, Fit, NoTrace
from ..methods.run import Progress, Run
from ..methods.spec import Param, Spec
from ..recipe.checks import require_complete, require_full_rank
from ._sequential_release import SequentialRelease, standard_normals

DIRECT = "coefficients are drawn from a normal distribution, or are the maximum itself"


@dataclass(frozen=True, kw_only=True, slots=True)
class SequentialLogisticSpec(Spec):
    """Which terms the regressions have, and how their coefficients are found."""

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


def check(data: Microdata, targets: tuple[str, ...], spec: SequentialLogisticSpec, place: str) -> None:
    """BadInput where values are missing, a target has one level, terms are aliased, or levels are separated."""
    for i, target in enumerate(targets):
        at = f"{place}.target[{i}]" if len(targets) > 1 else f"{place}.target"
        try:
            require_complete(data, target, spec.predictors, place)
        except BadInput as error:
            raise BadInput(at if error.place.endswith(".target") else error.place, error.message) from None
        if len(np.unique(data.counted.numbers(target))) < 2:
            raise BadInput(at, f'every value of "{target}" is the same; leave it out')
    require_full_rank(data.counted, spec.predictors, f"{place}.predictors")
    for model in sequential_models(data, targets, spec.predictors, spec.order, data.weights):
        i = targets.index(model.target)
        at = f"{place}.target[{i}]" if len(targets) > 1 else f"{place}.target"
        if plain := [name for name in model.left_out if ":" not in name]:
            raise BadInput(
                at,
                f'"{plain[0]}", which "{model.target}" is regressed on, is determined by the terms before it; leave one of them out',
            )
        if model.fit(spec.prior).separated:
            raise BadInput(
                at,
                f'what stands before "{model.target}" separates its two levels for some records, so that its regression has no finite '
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
    """The levels of each target, 0 or 1, given the drawn ones before it, with the coefficients of dataset ``index``."""
    kept = {c for text in spec.predictors for c in parse_term(text, confidential.schema, "predictors").columns}
    schema = Schema(tuple(v for v in confidential.schema if v.name in kept or v.name in targets))
    frame = pd.DataFrame({name: released.frame[name] for name in schema.names if name in kept}, index=range(records))
    found: dict[str, NDArray[np.generic]] = {}
    for target in targets:
        if terms := sequential_terms(target, targets, spec.predictors, spec.order, confidential.schema):
            design = Design.of(terms, confidential)
            made = Microdata(schema, frame)
            distinct = distinct_records(made, design.columns)
            x = design.matrix(distinct.table(made))[:, fit.arrays[f"{target}.kept"]]
            coefficients = _of_dataset(fit.arrays[f"{target}.coefficients"], index)
            probability = np.asarray(expit(x @ coefficients))[distinct.of]
        else:
            probability = np.full(records, float(_of_dataset(fit.arrays[f"{target}.share"], index)))
        values = (rng.random(records) < probability).astype(np.float64)
        found[target] = values
        frame[target] = as_column(values, confidential, confidential.schema[target], target)
    return found


def _of_dataset(array: NDArray[np.generic], index: int) -> Floats:
    """What the dataset uses of an array that has one entry a dataset, or one for all of them."""
    return np.asarray(array[index if len(array) > 1 else 0], dtype=np.float64)


def release_model(
    data: Microdata, targets: tuple[str, ...], spec: SequentialLogisticSpec, releases: Sequence[Microdata], run: Run
) -> SequentialRelease:
    """The releases as an intruder weighs them."""
    models = sequential_models(data, targets, spec.predictors, spec.order)  # at full weight: the widest there can be
    widest = max((model.x.shape[1] for model in models), default=1)
    return SequentialRelease(
        data,
        targets,
        spec.predictors,
        spec.order,
        spec.parameters == "drawn",
        spec.concentration,
        spec.prior,
        releases,
        standard_normals(run.rng, widest),
    )


@method(
    "Sequential logistic regressions",
    spec=SequentialLogisticSpec,
    source="Reiter, Wang & Zhang §3.1; Reiter & Kinney 2012; Firth 1993",
    joint_draw=joint_draw,
    targets=(Kind.BINARY,),
    check=check,
    release_model=release_model,
    weighted=True,
    weighted_release_model=True,
)
def sequential_logistic(
    data: Microdata, targets: tuple[str, ...], spec: SequentialLogisticSpec, run: Run, draws: int
) -> Fit:
    """The regressions of all targets. Arrays of each: ``kept`` (C,) says which columns of its design have ``coefficients``
    (draws, K); of a first target without predictors ``share`` (draws,) of its second level.

    With ``parameters = "mle"`` they have one entry for all datasets. Diagnostics are the maximum and its standard errors.

    Raises:
        BadInput: what ``check`` refuses.
    """
    check(data, targets, spec, targets[0])
    regressions = sequential_models(data, targets, spec.predictors, spec.order, data.weights)
    models = {model.target: model for model in regressions}
    arrays: dict[str, NDArray[np.generic]] = {}
    said: list[Diagnostic] = []
    for done, target in enumerate(targets, start=1):
        if target not in models:
            zeros, ones = share_of(data, target, data.weights)
            a = spec.concentration
            drawn = run.rng.beta(ones + a, zeros + a, draws)
            arrays[f"{target}.share"] = drawn if spec.parameters == "drawn" else np.array([ones / (zeros + ones)])
            said.append(Diagnostic("share", target, ones / (zeros + ones)))
        else:
            model = models[target]
            found = model.fit(spec.prior)
            arrays |= {
                f"{target}.kept": model.kept,
                f"{target}.coefficients": coefficients_of(found, spec, run.rng, draws),
            }
            said += _diagnostics(model, found)
        run.report(Progress(done, len(targets), "regressions"))
    return Fit(arrays, tuple(said), NoTrace(DIRECT))


def coefficients_of(found: LogisticFit, spec: SequentialLogisticSpec, rng: np.random.Generator, draws: int) -> Floats:
    """Coefficients of each dataset, (draws, K), from N(beta-hat, V-hat); with ``"mle"`` beta-hat, (1, K)."""
    if spec.parameters == "mle":
        return found.coefficients[None, :]
    root = np.linalg.cholesky(found.covariance / np.outer(found.errors, found.errors)) * found.errors[:, None]
    return np.asarray(found.coefficients + rng.standard_normal((draws, len(found.coefficients))) @ root.T)


def _diagnostics(model: SequentialModel, found: LogisticFit) -> list[Diagnostic]:
    """The maximum and its standard errors, by the target and the column of its regression."""
    said = [Diagnostic("columns_left_out", model.target, float(len(model.left_out)))]
    names = [name for name, kept in zip(model.names, model.kept, strict=True) if kept]
    for name, estimate, error in zip(names, found.coefficients, found.errors, strict=True):
        said.append(Diagnostic("estimate", f"{model.target}: {name}", float(estimate)))
        said.append(Diagnostic("standard_error", f"{model.target}: {name}", float(error)))
    return said
