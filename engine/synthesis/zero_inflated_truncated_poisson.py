"""Counts with too many zeros and an upper bound: a zero-inflated truncated Poisson regression with random effects.

Guo & Hu §2.1, eq. 1-5. The random effects are integrated out of the posterior
(``sfumato.engine.posterior.zero_inflated_poisson``), which leaves 2K + 1 smooth parameters for either sampler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from ..checks import require_complete, require_full_rank
from ..errors import BadInput, NotConverged
from ..methods import method
from ..microdata import Microdata
from ..posterior.laplace import Posterior
from ..posterior.poisson_lognormal import draw_counts
from ..posterior.zero_inflated_poisson import TauScale, ZeroInflatedPoisson
from ..results import Diagnostic, Fit
from ..run import Run
from ..schema import Kind, Variable
from ..spec import Param, Spec
from ..terms import Design, parse_term

LARGEST_COUNT = 1e9


@dataclass(frozen=True, kw_only=True, slots=True)
class ZeroInflatedSpec(Spec):
    """Predictors of both parts, whose random effect is drawn, the prior of tau, and the sampler."""

    predictors: Annotated[
        tuple[str, ...], Param("terms of the log rate and of the logit of a zero", names="terms")
    ] = ()
    random_effect: Annotated[
        Literal["new", "record"],
        Param("a new effect for every record, or the record's own, which carries its value into the release"),
    ] = "new"
    sampler: Annotated[Literal["laplace", "emcee"], Param("importance resampling around the mode, or an ensemble")] = (
        "laplace"
    )
    tau_prior: Annotated[TauScale, Param("what has the Gamma(0.001, 0.001) prior: 1 / tau^2, or tau")] = "precision"
    walkers: Annotated[int | None, Param("emcee: walkers; left out, twice the parameters plus 6", ge=4)] = None
    most_steps: Annotated[int, Param("emcee: steps after which it gives up", ge=100)] = 20_000
    accept_unconverged: Annotated[bool, Param("release draws of a sampler that has not converged")] = False


def check(data: Microdata, target: str, spec: ZeroInflatedSpec, place: str) -> None:
    """BadInput where values are missing, the design is aliased, no record is 0 or all are, a count is huge, or the bound is not a whole number."""
    require_complete(data, target, spec.predictors, place)
    if data.weights is not None and spec.random_effect == "record":
        raise BadInput(
            f"{place}.random_effect",
            '"record" carries the value of each record into the release whatever its weight; use "new"',
        )
    data = data.counted
    y = data.numbers(target)
    if not (y == 0).any():
        raise BadInput(f"{place}.target", f'no record has "{target}" = 0, so nothing tells how many zeros are inflated')
    if large := int((y >= LARGEST_COUNT).sum()):
        raise BadInput(
            f"{place}.target",
            f'{large:,} records have a "{target}" of a thousand millions or more, where a Poisson count has no spread of its '
            "own; use cart, or linear_regression of a continuous variable",
        )
    if spec.walkers is not None and spec.sampler == "emcee":
        fewest = 4 * len(_design(data, spec).names) + 4
        if spec.walkers < fewest or spec.walkers % 2:
            raise BadInput(f"{place}.walkers", f"{spec.walkers} must be an even number, at least {fewest}")
    _bound(data.schema[target], f"variables.{target}.bounds")
    require_full_rank(data, spec.predictors, f"{place}.predictors")


def draw(
    fit: Fit,
    spec: ZeroInflatedSpec,
    target: str,
    confidential: Microdata,
    released: Microdata,
    index: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Synthetic counts (n,) from posterior draw ``index``, in 0..bound (Guo & Hu §2.3)."""
    design = _design(confidential, spec)
    return draw_counts(
        fit.arrays["theta"][index],
        design.matrix(released),
        _bound(confidential.schema[target], target),
        spec.random_effect,
        rng,
        confidential.numbers(target),
        design.matrix(confidential),
    )


@method(
    "Zero-inflated truncated Poisson regression",
    spec=ZeroInflatedSpec,
    source="Guo & Hu §2.1, eq. 1-5",
    draw=draw,
    targets=(Kind.COUNT,),
    check=check,
    weighted=True,
)
def zero_inflated_truncated_poisson(data: Microdata, target: str, spec: ZeroInflatedSpec, run: Run, draws: int) -> Fit:
    """Posterior draws ``theta`` (draws, 2K + 1): alpha, beta, log tau; how the sampler fared as diagnostics and trace.

    Raises:
        BadInput: what ``check`` refuses.
        NotConverged: the sampler's draws must not be used, unless ``accept_unconverged``.
    """
    check(data, target, spec, target)
    data = data.counted
    design = _design(data, spec)
    bound = _bound(data.schema[target], target)
    model = ZeroInflatedPoisson.of(
        data.numbers(target),
        design.matrix(data),
        bound,
        spec.tau_prior,
        columns=design.names,
        weights=data.weights,
    )
    try:
        posterior = _sampled(model, spec, run, draws)
    except NotConverged as error:
        parameter = f"{target}: {error.parameter}"
        raise NotConverged(parameter, error.statistic, error.value, error.rule, error.left) from None
    return Fit({"theta": posterior.theta}, (*posterior.diagnostics, *_moments(posterior)), posterior.trace)


def _sampled(model: ZeroInflatedPoisson, spec: ZeroInflatedSpec, run: Run, draws: int) -> Posterior:
    if spec.sampler == "laplace":
        from ..posterior.laplace import sample_laplace

        return sample_laplace(model, draws, run.rng, run.report, accept_unconverged=spec.accept_unconverged)
    from ..posterior.ensemble import sample_emcee

    return sample_emcee(
        model,
        draws,
        run.rng,
        run.report,
        walkers=spec.walkers,
        most_steps=spec.most_steps,
        accept_unconverged=spec.accept_unconverged,
    )


def _moments(posterior: Posterior) -> list[Diagnostic]:
    if len(posterior.theta) < 2:
        return []
    means, sds = posterior.theta.mean(axis=0), posterior.theta.std(axis=0, ddof=1)
    return [
        Diagnostic(statistic, name, float(value))
        for name, mean, sd in zip(posterior.names, means, sds, strict=True)
        for statistic, value in (("mean_of_draws", mean), ("sd_of_draws", sd))
    ]


def _design(data: Microdata, spec: ZeroInflatedSpec) -> Design:
    return Design.of([parse_term(text, data.schema, text) for text in spec.predictors], data)


def _bound(variable: Variable, place: str) -> int | None:
    if variable.lower not in (None, 0.0):
        raise BadInput(place, f"{variable.lower:g} must be 0: the model is of counts from 0")
    if variable.upper is not None and not float(variable.upper).is_integer():
        raise BadInput(place, f"{variable.upper:g} must be a whole number")
    return None if variable.upper is None else int(variable.upper)
