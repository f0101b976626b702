"""A categorical variable by a multinomial logit, with a model for each stratum.

Reiter, Wang & Zhang §4; Mitra & Reiter (2006). Several steps make several variables: each is drawn given the synthetic
values of those before it. Every dataset is drawn at the maximum, unless ``parameters = "drawn"``: then each has
coefficients from the normal distribution there, with the inverse of the Hessian as covariance.

``strata`` names a variable, ``groups`` join levels: records stay in their stratum, and only levels that it has are
drawn. ``groups`` without ``strata`` are of the target itself: a record keeps its group of levels, which is then
released unchanged, and has a new level in it. ``penalty`` q is a ridge, as independent Normal(0, 1/q) priors of every
coefficient but the intercepts, numbers on their standardised scale.

A missing value of a predictor is a level of its own. A missing value of the target is drawn as one level more, or with
``missing = "filled"`` such records are left out of the fit and get a level like all others (Reiter 2004).

``unit_effect`` makes members of a unit alike in a binary or ordinal variable: their levels lie at like places of the
distributions that the model gives them, in the order of the levels, and each record's distribution stays what it was.
Whether a value is missing is drawn for each record alone. Levels without an order have no places and are refused. Drawn
coefficients then have the variance that whole units leave them (Liang & Zeger 1986).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..data.arrays import Floats, Integers
from ..data.block_sums import SummedTable
from ..data.microdata import Microdata, units_of
from ..data.provenance import FitUncertainty
from ..data.schema import Kind, Schema
from ..design import stratified_logit
from ..design.categories import categories_of_variable
from ..design.completed_design import CompletedDesign, require_independent_columns, require_independent_terms
from ..design.design_matrix import Design
from ..design.stratified_logit import (
    StratumRecords,
    check_level_groups,
    strata_of_records,
    stratified_records,
    stratum_name,
)
from ..errors import BadInput, NotComputable
from ..methods.asked_passes import SummedPasses
from ..methods.drafting import ALTERNATIVE, Case, Offer, drafts
from ..methods.passes import NextPass
from ..methods.registry import ReleaseModelDeclaration, synthesis_method
from ..methods.results import Diagnostic, Fit, NoTrace
from ..methods.run import Run
from ..methods.spec import Param, Spec
from ..methods.table_profile import VariableProfile
from ..statistics.multinomial_logit import MultinomialLogit, NoMaximumError, logit_log_probabilities
from ..statistics.unit_effects import choose_cuts, draw_places, share_of_places
from ._multinomial_release import MultinomialRelease
from ._stratified_sums import StrataOfTable

DIRECT = "coefficients are the maximum, or drawn from a normal distribution there"
MOST_COEFFICIENTS = 5_000
LARGEST_SHIFT = 0.5  # standard errors; a 95 % interval that is moved so far covers in 92 %
LEVELS = (Kind.CATEGORICAL, Kind.ORDINAL, Kind.BINARY)
LEARNED = "design."
"""Before the names of a fit's arrays that say how the terms of a table of several blocks are standardised."""
SEPARATED = "{}: levels are separated; give a penalty, such as 0.1"
_ROWS = 20_000


def _strata_variable(target: str, spec: MultinomialLogisticSpec) -> str | None:
    """Return the variable whose levels are the strata; None without strata."""
    return target if spec.strata is None and spec.groups else spec.strata


def records_by_stratum(data: Microdata, target: str, spec: MultinomialLogisticSpec) -> tuple[StratumRecords, ...]:
    """Return the records of each stratum, as the step fits them."""
    return stratified_records(
        data,
        target,
        spec.predictors,
        _strata_variable(target, spec),
        spec.groups,
        filled=spec.missing == "filled",
        # Equal records of a large table are one row, which makes the fit quicker.
        together=len(data) > stratified_logit.MOST_ALONE,
    )


def check_data(data: Microdata, target: str, spec: MultinomialLogisticSpec, place: str) -> None:
    """Raise BadInput where terms are aliased, strata do not suit, or, without a penalty, there is no maximum."""
    variable = _strata_variable(target, spec)
    if data.weights is not None and variable == target:
        raise BadInput(
            f"{place}.groups",
            "each record stays in the group of its own value whatever its weight; give strata that are not the target, or leave the weights out",
        )
    if variable is not None:
        check_level_groups(data, variable, spec.groups, f"{place}.groups")
    require_independent_terms(data.with_positive_weight, spec.predictors, f"{place}.predictors")
    strata = records_by_stratum(data, target, spec)
    _check_strata(strata, target, spec, place)
    if not spec.penalty:
        for stratum in strata:
            _fit_stratum(spec, f"{place}.penalty", data.weights, stratum)


def _check_strata(strata: Sequence[StratumRecords], target: str, spec: MultinomialLogisticSpec, place: str) -> None:
    """Raise BadInput where a stratum has one class, or too many coefficients."""
    at = f"{place}.groups" if spec.groups else f"{place}.strata" if spec.strata else f"{place}.target"
    # Such a stratum's only level would be drawn again for everybody.
    if alike := [stratum for stratum in strata if len(stratum.class_keys) < 2]:
        raise BadInput(
            at,
            f'in {len(alike):,} of {len(strata):,} strata no two values of "{target}" differ, so they would be released unchanged; '
            "join strata by groups, or use fewer",
        )
    most = max(stratum.coefficient_count for stratum in strata)
    if most > MOST_COEFFICIENTS:
        raise BadInput(
            f"{place}.predictors",
            f'levels of "{target}" times columns of the predictors are {most:,} coefficients, above {MOST_COEFFICIENTS:,}; use '
            "fewer predictors, or strata",
        )


def _fit_stratum(
    spec: MultinomialLogisticSpec,
    place: str,
    weights: Floats | None,
    stratum: StratumRecords,
    _: np.random.Generator | None = None,
) -> MultinomialLogit:
    """Fit the model of one stratum. Raises BadInput if there is no maximum."""
    try:
        return stratum.fit(spec.penalty, weights)
    except NoMaximumError as error:
        raise BadInput(place, SEPARATED.format(error)) from None


def draw(
    fit: Fit,
    spec: MultinomialLogisticSpec,
    target: str,
    confidential: Microdata,
    released: Microdata,
    index: int,
    rng: np.random.Generator,
) -> Floats:
    """Draw a level code for each record, (n,), given its released predictors, by the model of its stratum.

    A missing value is NaN.

    Raises BadInput where the stratum, synthesised before, is one that no confidential record is in.
    """
    present = categories_of_variable(confidential, target, None).value_count
    codes = np.empty(len(released))
    share = float(fit.arrays["unit_share"][0]) if spec.unit_effect else 0.0
    uniform = draw_places(released, share, rng) if share else rng.random(len(released))
    # A missing value has no place among the levels, so that members do not share it.
    is_present = rng.random(len(released)) if share else np.zeros(len(released))
    for rows, classes, chance in _cumulated_chances(fit.arrays, spec, target, confidential, released, index):
        level = uniform[rows] * chance[:, -1]
        if share and classes[-1] >= present:
            values = chance[:, -2]
            level = np.where(is_present[rows] * chance[:, -1] < values, uniform[rows] * values, chance[:, -1])
        codes[rows] = classes[(chance < level[:, None]).sum(axis=1)]
    return np.where(codes < present, codes, np.nan)


def _cumulated_chances(
    arrays: Mapping[str, NDArray[Any]],
    spec: MultinomialLogisticSpec,
    target: str,
    confidential: Microdata,
    table: Microdata,
    index: int,
) -> Iterator[tuple[Integers, NDArray[Any], Floats]]:
    """Yield rows (k,) of a table, the classes (K,) of their stratum, and their cumulated probabilities (k, K)."""
    variable = _strata_variable(target, spec)
    strata = strata_of_records(confidential if variable == target else table, variable, spec.groups)
    learned = {name.removeprefix(LEARNED): values for name, values in arrays.items() if name.startswith(LEARNED)}
    design = (
        CompletedDesign.from_arrays(spec.predictors, confidential, learned)
        if learned
        else CompletedDesign.from_terms(spec.predictors, confidential.with_positive_weight)
    )
    for number in np.unique(strata):
        if f"{number}.classes" not in arrays:
            name = stratum_name(int(number), confidential, variable, spec.groups)
            raise BadInput(
                "synthesis.strata", f'no confidential record is in the stratum "{name}"; join it to others by groups'
            )
        inside = np.flatnonzero(strata == number)
        for first in range(0, len(inside), _ROWS):
            rows = inside[first : first + _ROWS]
            x = design.build_matrix(Microdata(table.schema, table.frame.iloc[rows], table.origin))
            coefficients = arrays[f"{number}.coefficients"]
            own = coefficients[index if len(coefficients) > 1 else 0]
            chance = np.exp(logit_log_probabilities(x[:, arrays[f"{number}.kept"]], own)).cumsum(axis=1)
            yield rows, arrays[f"{number}.classes"], chance


def _draw_by_units(stratum: StratumRecords, model: MultinomialLogit, data: Microdata, noise: Floats) -> Floats:
    """Draw coefficients (draws, K, p) around the maximum with the variance that whole units leave them.

    ``noise`` (draws, U) are standard normal numbers of the units.
    """
    row, there = stratum.rows_of_records(np.arange(len(data)))
    records = np.flatnonzero(there & (data.effective_weights > 0))
    x, y = stratum.x[row[records]], stratum.y[row[records]]
    residuals = -np.exp(model.class_log_probabilities(x))
    residuals[np.arange(len(y)), model.class_positions(y)] += 1
    residuals *= data.effective_weights[records, None]
    unit = units_of(data).unit_of[records]
    moved = model.newton_step(np.stack([(residuals * own[unit, None]).T @ x for own in noise]))
    return np.asarray(model.coefficients + moved - moved.mean(axis=1, keepdims=True))


def _unit_share(
    arrays: Mapping[str, NDArray[Any]], spec: MultinomialLogisticSpec, target: str, data: Microdata
) -> float:
    """Return the share by which records of a unit are alike in the places of their levels."""
    values = data.numbers(target)
    cuts = choose_cuts(values)
    below = np.empty((len(data), len(cuts)))
    present = categories_of_variable(data, target, None).value_count
    for rows, classes, chance in _cumulated_chances(arrays, spec, target, data, data, 0):
        levels = classes[classes < present]
        upto = np.hstack([np.zeros((len(rows), 1)), chance])
        below[rows] = upto[:, np.searchsorted(levels, cuts, side="right")] / chance[:, [len(levels) - 1]]
    return share_of_places(values, cuts, below, data)


def release_model(
    data: Microdata, targets: tuple[str, ...], spec: MultinomialLogisticSpec, releases: Sequence[Microdata], run: Run
) -> MultinomialRelease:
    """Return the model by which an intruder's guesses are weighed by the releases.

    Raises NotComputable for synthesised strata.
    """
    (target,) = targets
    variable = _strata_variable(target, spec)
    shares = [np.bincount(strata_of_records(one, variable, spec.groups)).tolist() for one in (data, *releases)]
    if any(share != shares[0] for share in shares):
        raise NotComputable(f'"{target}" has strata that are synthesised themselves')
    filled = spec.missing == "filled"
    return MultinomialRelease.from_data(
        data,
        target,
        spec.predictors,
        variable,
        spec.groups,
        spec.penalty,
        releases,
        filled=filled,
        drawn=spec.parameters == "drawn",
    )


MOST_TERMS, MOST_LEVELS, MOST_CLASSES = 8, 10, 20
"""Of an offered regression: terms, levels of one that is a category, and levels of the variable that it makes."""


def _is_offered_term(seen: VariableProfile) -> bool:
    kind = seen.variable.kind
    return kind is not Kind.DATE and (seen.distinct <= MOST_LEVELS if kind.has_levels else not seen.missing)


def _stratum_diagnostics(
    name: str, stratum: StratumRecords, model: MultinomialLogit, spec: MultinomialLogisticSpec
) -> Iterator[Diagnostic]:
    """Report how Newton's method ended, and with drawn coefficients how far the penalty moves them.

    ``prior_shift`` is the largest shift, in standard errors and to first order.
    """
    yield Diagnostic("records", name, float(stratum.records))
    yield Diagnostic("coefficients", name, float(stratum.coefficient_count))
    yield Diagnostic("columns_left_out", name, float((~stratum.kept).sum()))
    yield Diagnostic("steps", name, float(model.step_count))
    yield Diagnostic("newton_decrement", name, max(model.decrement, 0.0), "below 1e-12", model.is_converged)
    yield Diagnostic("log_likelihood", name, model.log_likelihood)
    yield Diagnostic("largest_coefficient", name, float(np.abs(model.coefficients).max()))
    if spec.parameters == "drawn" and spec.penalty:
        # Where levels are separated it fails: there the normal distribution is that of the penalty.
        shift = float((model.penalties * np.abs(model.coefficients) * np.sqrt(model.coefficient_variances())).max())
        yield Diagnostic("prior_shift", name, shift, f"at most {LARGEST_SHIFT}", shift <= LARGEST_SHIFT)


@dataclass(frozen=True, kw_only=True, slots=True)
class MultinomialLogisticSpec(Spec):
    """Settings of the logit: predictors, strata, and how coefficients are found."""

    predictors: Annotated[tuple[str, ...], Param("terms of the regression", names="terms")] = ()
    strata: Annotated[
        str | None,
        Param("variable inside whose levels, or groups of levels, records stay", names="variables", kinds=LEVELS),
    ] = None
    groups: Annotated[
        Mapping[str, tuple[str, ...]],
        Param("levels of the strata that are joined, by a name each; without strata, of the target itself"),
    ] = field(default_factory=dict)
    # Partial synthesis needs no draws of parameters (Reiter & Kinney 2012).
    parameters: Annotated[
        Literal["mle", "drawn"],
        Param("coefficients at the maximum in all datasets, or drawn around it for each"),
    ] = "mle"
    # A prior standard deviation of 3.2: with some fifty records a level it moves probabilities by less than their
    # standard errors, and keeps the coefficients of an indicator finite that separates levels; odds are then about e^6
    # at most.
    penalty: Annotated[float, Param("ridge on the coefficients: 1 / variance of a normal prior; 0 for none", ge=0)] = (
        0.1
    )
    missing: Annotated[
        Literal["level", "filled"],
        Param("a missing value of the target is drawn as a level of its own, or such records get one of the others"),
    ] = "level"
    unit_effect: Annotated[
        bool,
        Param("of binary and ordinal variables, with [release] units: records of a unit have levels at like places"),
    ] = False
    effect_on_levels: ClassVar[bool] = True

    @property
    def uses_own_record(self) -> bool:
        """Return whether groups are of the target's own levels: a record then stays in the group of its own level."""
        return self.strata is None and bool(self.groups)


def _draft_offer(case: Case) -> Offer | None:
    """Offer a variable of few levels, given predictors of few levels or of complete numbers."""
    seen = case.target
    if case.want != "synthesis" or seen is None or not seen.variable.kind.has_levels or seen.distinct > MOST_CLASSES:
        return None
    terms = [name for name in case.predictors if _is_offered_term(case.table[name])][:MOST_TERMS]
    if not terms:
        return None
    why = (
        "a multinomial logit draws levels by their estimated probabilities and gives no level because one similar person has it; without interactions "
        "it loses what trees find"
    )
    return Offer(why, {"predictors": terms}, ALTERNATIVE)


class LogitPasses(SummedPasses):
    """Moments of the terms, the strata, and then a pass for each Newton step."""

    checks_data: ClassVar[bool] = True

    def suits(self, spec: MultinomialLogisticSpec, schema: Schema) -> bool:
        return not spec.unit_effect

    def start(self, head: Microdata, target: str, spec: MultinomialLogisticSpec, n_blocks: int) -> NextPass:
        names = Design.from_texts(spec.predictors, head).columns
        read = dict.fromkeys((*names, target, *filter(None, (_strata_variable(target, spec),))))
        compute = partial(_strata_of_sums, target, spec)
        return self.first_pass(compute, head, n_blocks, tuple(read), f"models of {target}")

    def fit(
        self, answer: _Strata, head: Microdata, target: str, spec: MultinomialLogisticSpec, run: Run, draws: int
    ) -> Fit:
        if answer.data is not None:
            return multinomial_logistic(answer.data, target, spec, run, draws)
        found = _fit_of_strata(
            head, target, spec, run, draws, answer.strata, lambda stratum, _: answer.models[stratum.number]
        )
        return replace(
            found, arrays={**found.arrays, **{f"{LEARNED}{name}": one for name, one in answer.learned.items()}}
        )


@dataclass(frozen=True)
class _Strata:
    """Answer of the passes: the models of all strata, and what the design learned; or the table where it is one block."""

    strata: tuple[StratumRecords, ...] = ()
    models: Mapping[int, MultinomialLogit] = field(default_factory=dict)
    learned: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    data: Microdata | None = None


def _strata_of_sums(target: str, spec: MultinomialLogisticSpec, table: SummedTable) -> _Strata:
    """Return the models of a table that is asked for sums. Raises BadInput as ``check_data`` does."""
    if table.n_blocks == 1:
        (data,) = table.ask_sums(lambda data: (data,))
        check_data(data, target, spec, target)
        return _Strata(data=data)
    variable = _strata_variable(target, spec)
    if variable is not None:
        check_level_groups(table.head, variable, spec.groups, f"{target}.groups")
    found = StrataOfTable.from_sums(
        table, target, spec.predictors, variable, spec.groups, filled=spec.missing == "filled"
    )
    require_independent_columns(found.table.design, found.triangle, spec.predictors, f"{target}.predictors")
    _check_strata(found.strata, target, spec, target)
    try:
        models = dict(zip((one.number for one in found.strata), found.fit_models(table, spec.penalty), strict=True))
    except NoMaximumError as error:
        raise BadInput(f"{target}.penalty", SEPARATED.format(error)) from None
    return _Strata(found.strata, models, found.table.design.as_arrays)


def fit_uncertainty(spec: MultinomialLogisticSpec, targets: tuple[str, ...], schema: Schema) -> FitUncertainty:
    """Return whether each dataset has coefficients of its own."""
    return FitUncertainty("drawn" if spec.parameters == "drawn" else "estimated")


@synthesis_method(
    "Multinomial logit",
    spec=MultinomialLogisticSpec,
    source="Reiter, Wang & Zhang §4; Reiter & Kinney 2012",
    draw=draw,
    targets=LEVELS,
    check=check_data,
    weighted=True,
    release_model=ReleaseModelDeclaration(release_model, is_weighted=True),
    fit_uncertainty=fit_uncertainty,
    fit_passes=LogitPasses(),
    draws_by_block=True,
)
@drafts(_draft_offer)
def multinomial_logistic(data: Microdata, target: str, spec: MultinomialLogisticSpec, run: Run, draws: int) -> Fit:
    """Fit the models of all strata.

    Arrays of stratum s: ``s.classes`` (K,), ``s.kept`` (C,) of the design's columns, ``s.coefficients`` (draws, K, p),
    which sum to 0 over the classes. At the maximum there is one entry of ``coefficients`` for all datasets.
    ``unit_share`` (1,) is there with ``unit_effect``.

    Raises:
        BadInput: what ``check_data`` refuses.
    """
    check_data(data, target, spec, target)
    strata = records_by_stratum(data, target, spec)
    work = partial(_fit_stratum, spec, f"{target}.penalty", data.weights)
    return _fit_of_strata(data, target, spec, run, draws, strata, work)


def _fit_of_strata(
    data: Microdata,
    target: str,
    spec: MultinomialLogisticSpec,
    run: Run,
    draws: int,
    strata: Sequence[StratumRecords],
    work: Callable[[StratumRecords, np.random.Generator], MultinomialLogit],
) -> Fit:
    """Return the fit of the models that ``work`` gives of the strata."""
    arrays: dict[str, NDArray[np.generic]] = {}
    maxima: dict[str, NDArray[np.generic]] = {}
    said: list[Diagnostic] = []
    models = run.over(work, strata, f"models of {target}")
    generators = run.rng.spawn(len(strata))
    by_units = spec.unit_effect and data.units is not None and spec.parameters == "drawn"
    # One number a unit for all strata, in which it may have records.
    noise = run.rng.standard_normal((draws, data.n_units)) if by_units else None
    for stratum, model, rng in zip(strata, models, generators, strict=True):
        maximum = model.coefficients[None]
        drawn = model.draw_coefficients(draws, rng) if spec.parameters == "drawn" else maximum
        arrays |= {
            f"{stratum.number}.classes": stratum.class_keys,
            f"{stratum.number}.kept": stratum.kept,
            f"{stratum.number}.coefficients": drawn if noise is None else _draw_by_units(stratum, model, data, noise),
        }
        maxima[f"{stratum.number}.coefficients"] = maximum
        said += _stratum_diagnostics(stratum.name or target, stratum, model, spec)
    if spec.unit_effect:
        share = _unit_share({**arrays, **maxima}, spec, target, data.with_positive_weight)
        arrays["unit_share"] = np.array([share])
        said.append(Diagnostic("unit_share", target, share))
    return Fit(arrays, tuple(said), NoTrace(DIRECT))
