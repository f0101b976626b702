"""Risk and utility of differentially private synthesis along epsilon (Park & Ghosh §4.3-4.4, Figures 5 to 9).

Each synthesiser makes all variables anew at each epsilon, which is that of one drawn record: a block of ten with reset has ten times
as much to spend (§3.4), so that all datasets at an epsilon cost the same. What is kept is measured by distances of distributions and of regression coefficients; what is given away by an inference attack, by
records that equal a confidential one, and by records that nobody shares the known values with. The distances are means over the
variables (or pairs, or models), and over ``replicates`` datasets; of two or more of these every number has its 95 % interval.
What a synthesiser learns of the confidential data is learned once; epsilon decides the noise, and the replicates do not speak of what was learned by chance.

Beside the synthesisers with an epsilon may stand those without, which make the same at each: the product of the marginal
distributions and the contingency table, between which the others lie (Table 1).

``limits`` ask which epsilon will do: of what is kept the least epsilon from which on it is within its limit, of what is given away
the largest up to which it is.

The baseline of a distance is what two samples of the same population would be apart, of the attack what it gets from data without
protection, of the copies the share of the confidential records that equal another one: what an independent sample would repeat.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

import numpy as np
from scipy.special import betaincinv

from ..data.intervals import NON_NEGATIVE, SHARE, Range
from ..data.microdata import Microdata
from ..data.schema import Role, Schema
from ..design.categories import BinsByVariable, categories_of
from ..design.estimation import Model
from ..errors import BadInput, NotComputable
from ..methods.outputs import Axis, Output, Plane
from ..methods.privacy import POSITIVE, PrivacyAccount
from ..methods.registry import find, method
from ..methods.results import Estimate, StudyPoint
from ..methods.rows import Row
from ..methods.run import Progress, Run
from ..methods.spec import Made, Param, StudySpec
from ..partition.equivalence_classes import joint_classes
from ..statistics.combining import monte_carlo_mean
from ._anonymising import own_tables
from ._epsilon_answers import Answer, answers
from ._synthesisers import Synthesiser, bins_key, learned, narrowed

UTILITY = ("marginal", "conditional", "regression")
RISK = ("misclassification", "mean_absolute_error", "exact_copies", "unique_records")
ASKED: Mapping[str, Answer] = {
    **dict.fromkeys(UTILITY, "least_epsilon"),
    **dict.fromkeys(RISK, "largest_epsilon"),
}
"""What a limit of each measure asks for."""
RESAMPLES = 5
"""Bootstrap samples of the attack's baseline, over all replicates or more."""

DEFAULT = tuple(
    map(Synthesiser.parse, ("perturbed_gibbs", "perturbed_gibbs reset=true block=10", "perturbed_imputation"))
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RiskUtilitySpec(StudySpec):
    """Synthesisers, epsilons, and what is measured."""

    synthesisers: Annotated[
        tuple[Synthesiser, ...], Param('methods with their settings, such as "perturbed_gibbs reset=true block=10"')
    ] = DEFAULT
    epsilons: Annotated[tuple[float, ...], Param("what one drawn record costs", gt=0, le=10_000)] = (
        0.1,
        0.5,
        1,
        5,
        10,
        50,
        100,
    )
    variables: Annotated[
        tuple[str, ...], Param("variables that are made; left out, all but identifiers", names="variables")
    ] = ()
    records: Annotated[int, Param("records of each dataset", ge=2, le=10_000_000, told=True)] = 1000
    replicates: Annotated[int, Param("datasets of each synthesiser at each epsilon", ge=1)] = 1
    bins: BinsByVariable = field(default_factory=dict)
    given: Annotated[
        tuple[str, ...], Param("variables that the conditional distances are given", names="variables")
    ] = ()
    models: Annotated[tuple[Model, ...], Param('regressions to compare, such as "log(price) ~ room_type + days"')] = ()
    sensitive: Annotated[
        str | None, Param("variable that an intruder infers; left out, the first of role sensitive", names="variables")
    ] = None
    known: Annotated[
        tuple[str, ...], Param("variables that the intruder knows; left out, those of role known", names="variables")
    ] = ()
    limits: Annotated[
        Mapping[str, float],
        Param("limits by measure, such as { marginal = 0.01, exact_copies = 0.05 }: which epsilon keeps to them?"),
    ] = field(default_factory=dict)

    def grid(self) -> tuple[float, ...]:
        """The epsilons."""
        return self.epsilons

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Variables, what is known and what is inferred filled in."""
        names = self.variables or tuple(v.name for v in schema if v.role is not Role.IDENTIFIER)
        sensitive = self.sensitive or next((n for n in names if schema[n].role is Role.SENSITIVE), None)
        known = tuple(n for n in self.known or schema.of_role(Role.QUASI_IDENTIFIER) if n in names and n != sensitive)
        return replace(self, variables=names, sensitive=sensitive, known=known)

    def of_recipe(self, steps: Sequence[Made]) -> Self:
        """With the recipe's own step where a synthesiser is that."""
        return replace(self, synthesisers=tuple(one.resolved(steps) for one in self.synthesisers))

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """BadInput where there is nothing to compare, a synthesiser cannot be used, or a limit is for no measure."""
        if not self.epsilons or len(set(self.epsilons)) < len(self.epsilons):
            raise BadInput(f"{place}.epsilons", "name some epsilons, each once")
        full = self.for_release(schema, released)
        own = Schema(tuple(schema[name] for name in full.variables))
        for i, one in enumerate(self.synthesisers):
            at = f"{place}.synthesisers[{i}]"
            if one in self.synthesisers[:i]:
                raise BadInput(at, "is listed twice")
            one.check(own, full.variables, bins_key(full.bins, full.variables), at)
        for name in self.limits:
            if name not in ASKED:
                raise BadInput(f"{place}.limits.{name}", f"is no measure of the study; there are {', '.join(ASKED)}")
        used = [name for model in self.models for name in model.columns(schema)]
        for name in (*used, *self.given, *self.known, *([self.sensitive] if self.sensitive else [])):
            if name not in full.variables:
                raise BadInput(f"{place}.variables", f'"{name}" is not among them')


def check(data: Microdata, target: str, spec: RiskUtilitySpec, place: str) -> None:
    """BadInput where a synthesiser cannot make the variables."""
    full = spec.for_release(data.schema, ())
    own, bins = narrowed(data, full.variables), bins_key(full.bins, full.variables)
    for i, one in enumerate(spec.synthesisers):
        at = f"{place}.synthesisers[{i}]"
        names = one.targets or full.variables
        one.method(at).check_on(own, names, one.spec(1.0, names, bins, at), at)
        one.priced(own, max(spec.epsilons), full.records, bins, at)


def within_limits(rows: Sequence[Row]) -> list[Row]:
    """Of each synthesiser and measure with a limit, the epsilon that keeps to it: the least, or the largest for a risk."""
    return answers(rows, ASKED, {output.name: output.goal for output in OUTPUTS})


OUTPUTS = (
    Output("marginal", "mean over the variables of the squared distance of their distributions", "low", range=NON_NEGATIVE, short="marginal distance"),
    Output("conditional", "mean over the pairs of the squared distance of the distributions given each level of another variable", "low", range=NON_NEGATIVE, short="conditional distance"),
    Output("regression", "mean over the models of the sum of the relative deviations of their coefficients", "low", range=NON_NEGATIVE, short="regression distance"),
    Output("conditional_given", "the same given the levels of one variable, which the row names", "low", range=NON_NEGATIVE, short="conditional distance"),
    Output("coefficient_deviation", "what a coefficient exceeds the confidential one by, as a share of it; below 0 where it falls short", "none", short="deviation of the coefficient"),
    Output("misclassification", "share of the confidential records whose value an intruder infers wrongly", "high", "share", range=SHARE),
    Output("mean_absolute_error", "mean error of the number that an intruder infers", "high", range=NON_NEGATIVE, short="mean error"),
    Output("exact_copies", "share of the drawn records whose categories are all those of a confidential record", "low", "share", range=SHARE, short="exact copies"),
    Output("unique_records", "share of the drawn records that are alone with their known values", "none", "share", range=SHARE, short="unique records"),
    Output("epsilon_release", "what the noise of such a dataset accounts for in all, where its key is secret", "low", range=POSITIVE, short="eps of the release"),
    Output(
        "least_epsilon", "least epsilon from which on a measure of utility is within its limit", "low", range=POSITIVE, answer=True, on_axis=True,
        sentence="From epsilon {value:g} on it is within the limit", without="No epsilon is shown to be large enough",
    ),
    Output(
        "largest_epsilon", "largest epsilon up to which a measure of risk is within its limit", "high", range=POSITIVE, answer=True, on_axis=True,
        sentence="Up to epsilon {value:g} it is within the limit", without="No epsilon is shown to be small enough",
    ),
)  # fmt: skip


PLANES = (
    *(Plane(title, "", up, label="epsilon", heading="Distances by epsilon") for title, up in (("Marginal distance", "marginal"), ("Conditional distance", "conditional"))),
    Plane("Conditional distance given {condition}", "", "conditional_given", label="epsilon", each=("condition",), heading="Distances by epsilon"),
    Plane("Regression distance", "", "regression", label="epsilon", heading="Distances by epsilon"),
    Plane("Misclassification by the attack", "", "misclassification", label="epsilon", heading="Risk by epsilon"),
    Plane("Mean error of the attack", "", "mean_absolute_error", label="epsilon", heading="Risk by epsilon"),
    Plane("Exact copies", "", "exact_copies", label="epsilon", heading="Risk by epsilon"),
    Plane("Unique records", "", "unique_records", label="epsilon", heading="Risk by epsilon"),
    *(
        Plane(f"{kept.capitalize()} distance against {words}", risk, kept, label=words, heading=f"Distances against {words}")
        for risk, words in (("misclassification", "misclassification"), ("mean_absolute_error", "mean error"), ("exact_copies", "exact copies"), ("unique_records", "unique records"))
        for kept in UTILITY
    ),
    Plane("{term} in {model}", "", "coefficient_deviation", label="epsilon", each=("model", "term"), heading="Coefficients by epsilon"),
)  # fmt: skip
"""Figures 5 and 6, 7, 9, the maps of these against each other, and 8."""


@method(
    "Risk and utility by epsilon",
    spec=RiskUtilitySpec,
    source="Park & Ghosh §4.3-4.4, Table 1, Figures 5 to 9",
    outputs=OUTPUTS,
    check=check,
    summarise=within_limits,
    axis=Axis(
        "epsilon",
        "what one drawn record costs in differential privacy",
        heading="Risk and utility by epsilon",
        values="over the datasets of a synthesiser",
        discrete=True,
        uses=("records",),
        curve="synthesiser",
        log=True,
        together=True,
        limit="limit",
    ),
    planes=PLANES,
)
def risk_utility(
    confidential: Microdata, releases: Sequence[Microdata], point: float, spec: RiskUtilitySpec, run: Run
) -> StudyPoint:
    """All synthesisers at one epsilon. The recipe's own releases play no part."""
    full = spec.for_release(confidential.schema, ())
    children = run.rng.spawn(len(full.synthesisers))
    found: list[Estimate] = []
    for done, (one, rng) in enumerate(zip(full.synthesisers, children, strict=True), start=1):
        found += _measured(confidential, one, point, full, replace(run, rng=rng))
        run.report(Progress(done, len(full.synthesisers), "synthesisers"))
    return own_tables(found, releases)


def _measured(
    confidential: Microdata, one: Synthesiser, epsilon: float, spec: RiskUtilitySpec, run: Run
) -> Iterator[Estimate]:
    """Every measure of one synthesiser at one epsilon, the mean over its datasets."""
    learning, measuring = run.rng.spawn(2)
    bins = bins_key(spec.bins, spec.variables)
    data, fit = learned(confidential, one, spec.variables, bins, int(learning.integers(2**63)))
    settings = one.priced(data, epsilon, spec.records, bins, one.key)
    series: dict[str, list[Estimate]] = {}
    for index, rng in enumerate(measuring.spawn(spec.replicates)):
        made = one.drawn(data, fit, settings, index, rng, spec.records)
        for estimate in _scores(data, made, spec, replace(run, rng=rng.spawn(1)[0])):
            series.setdefault(json.dumps([estimate.measure, dict(estimate.params)]), []).append(estimate)
    limited = one.has_epsilon(one.key)
    for estimates in series.values():
        name = estimates[0].measure
        limit = {"limit": spec.limits[name]} if limited and name in spec.limits else {}
        trials = spec.records if name == "exact_copies" else 0
        yield over_datasets(estimates, {"synthesiser": one.name, **estimates[0].params, **limit}, trials)
    cost = one.cost(data, settings, spec.records)
    own = {"synthesiser": one.name}
    if isinstance(cost, PrivacyAccount):
        yield Estimate("epsilon_release", cost.noise, params=own)
    else:
        yield Estimate.not_computed("epsilon_release", cost.reason, **own)


def _scores(data: Microdata, made: Microdata, spec: RiskUtilitySpec, run: Run) -> Iterator[Estimate]:
    """Each measure of one dataset."""
    cut = {name: rule.written for name, rule in spec.bins.items() if name in spec.variables}
    distances = _of("utility.distribution_distance", {"given": list(spec.given), "bins": cut}, data, made, run)
    for name in ("marginal", "conditional"):
        own = [one for one in distances if one.measure == name]
        if own:
            yield _mean(name, own)
    for condition in spec.given:
        own = [one for one in distances if one.params.get("condition") == condition]
        if own:
            yield _mean("conditional_given", own, {"condition": condition})
    yield from _regressions(data, made, spec, run)
    if spec.sensitive and spec.known:
        known = {name: cut[name] for name in spec.known if name in cut}
        resamples = -(-RESAMPLES // spec.replicates)
        table = {"sensitive": spec.sensitive, "known": list(spec.known), "bins": known, "resamples": resamples}
        for one in _of("risk.inference_attack", table, data, made, run):
            if one.measure in ("misclassification", "mean_absolute_error") and not one.params:
                yield replace(one, target="")
    codes = {name: categories_of(data, name, spec.bins.get(name)) for name in spec.variables}
    ours, theirs = ([codes[name].codes(table) for name in spec.variables] for table in (data, made))
    classes, drawn = joint_classes(ours, theirs)
    repeated = float((np.bincount(classes)[classes] > 1).mean())
    yield Estimate("exact_copies", float(np.isin(drawn, classes).mean()), baseline=repeated)
    if spec.known:
        of_known = [codes[name].codes(made) for name in spec.known]
        _, shared = joint_classes(of_known, of_known)
        yield Estimate("unique_records", float((np.bincount(shared)[shared] == 1).mean()))


def _regressions(data: Microdata, made: Microdata, spec: RiskUtilitySpec, run: Run) -> Iterator[Estimate]:
    """The mean distance of the models, and each coefficient of each."""
    if not spec.models:
        return
    found = _of("utility.regression_distance", {"models": [model.written for model in spec.models]}, data, made, run)
    yield _mean("regression", [one for one in found if one.measure == "distance"])
    for one in found:
        if one.measure == "relative_deviation" and "term" in one.params:
            named = {"model": one.params["model"], "term": one.params["term"]}
            yield Estimate("coefficient_deviation", one.value, baseline=one.baseline, reason=one.reason, params=named)


def _of(key: str, table: Mapping[str, Any], data: Microdata, made: Microdata, run: Run) -> Sequence[Estimate]:
    """What a measure says of a dataset, or why it says nothing."""
    found = find(key, "")
    spec = found.spec.from_table({name: value for name, value in table.items() if value}, key)
    try:
        return found.measure(data, made, spec.for_release(data.schema, data.schema.names), run).estimates
    except NotComputable as error:
        return tuple(Estimate.not_computed(output.name, error.reason) for output in found.outputs)


def _mean(name: str, estimates: Sequence[Estimate], params: Mapping[str, Any] | None = None) -> Estimate:
    """The mean of the estimates and of their baselines; not computed where one of them is not, for its reason."""
    own = params or {}
    values = [one.value for one in estimates if one.value is not None]
    if not values or len(values) < len(estimates):
        reason = next((one.reason for one in estimates if one.value is None), "there is nothing to measure")
        return Estimate.not_computed(name, reason, **own)
    baselines = [one.baseline for one in estimates if one.baseline is not None]
    baseline = float(np.mean(baselines)) if len(baselines) == len(estimates) else None
    return Estimate(name, float(np.mean(values)), baseline=baseline, params=own)


def over_datasets(estimates: Sequence[Estimate], params: Mapping[str, Any], trials: int = 0) -> Estimate:
    """The mean of a measure over datasets, and of two or more of them its 95 % interval.

    Of shares of ``trials`` records each, the interval is no narrower than that of a count (Clopper & Pearson 1934): datasets without
    a single copy do not say that there is never one.
    """
    mean = _mean(estimates[0].measure, estimates, params)
    values = [one.value for one in estimates if one.value is not None]
    if mean.value is None or len(values) < 2:
        return mean
    _, lower, upper = monte_carlo_mean(values, within=RANGES[mean.measure])
    assert lower is not None
    assert upper is not None
    if trials:
        low, high = count_interval(round(sum(values) * trials), trials * len(values))
        lower, upper = min(lower, low), max(upper, high)
    return replace(mean, lower=lower, upper=upper)


def count_interval(hits: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of the probability of a hit (Clopper & Pearson 1934)."""
    tail = (1 - confidence) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return low, high


RANGES: Mapping[str, Range] = {output.name: output.range for output in OUTPUTS}
