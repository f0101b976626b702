"""Study of risk and utility of differentially private synthesis along epsilon (Park & Ghosh §4.3-4.4, Figures 5 to 9).

Each synthesiser makes all variables at each epsilon, the cost of one drawn record. Utility is measured by distances of
distributions and of regression coefficients; risk by an inference attack, exact copies of confidential records, and
records with unique known values. Numbers are means over ``replicates`` datasets, with 95 % intervals for two or more.
Synthesisers without an epsilon make the same at each: the product of the marginal distributions and the contingency
table, between which the others lie (Table 1).

The baseline of a distance is that between two samples of the same population; of the attack, its success on the
confidential data; of the copies, the share of confidential records that equal another one.

``limits`` ask which epsilon suffices: for utility the smallest from which on all points keep to a limit, for risk the
largest up to which all do.

A synthesiser is written as a method with the settings that differ from its defaults, ``perturbed_gibbs reset=true
block=10``. ``step`` is the recipe's own step, with changed settings after it: ``step reset=false``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

import numpy as np
from scipy.special import betaincinv

from ..data.intervals import NON_NEGATIVE, SHARE, Range
from ..data.microdata import Microdata, to_column
from ..data.schema import Role, Schema
from ..data.toml import read_toml
from ..design.binning import BinningRule
from ..design.categories import BinsByVariable, categories_of_variable
from ..design.estimation import RegressionModel
from ..errors import BadInput, NotComputable
from ..methods.intruder import QuasiIdentifiers
from ..methods.levers import LESS_EPSILON, PRIVATE_FIDELITY
from ..methods.outputs import Axis, Label, Output, Plane, StudyOutput
from ..methods.privacy import POSITIVE, NoAccount, PrivacyAccount
from ..methods.registry import Method, find_method, study_method
from ..methods.results import Estimate, Fit, Goal, StudyPoint
from ..methods.rows import Row
from ..methods.run import Progress, Run
from ..methods.spec import Param, Spec, StudySpec, SynthesisStepSettings
from ..partition.equivalence_classes import joint_classes
from ..statistics.combining import monte_carlo_mean
from ..statistics.comparing import is_above
from ._anonymising import point_of_own_tables

_WRITTEN = re.compile(r"\s*([A-Za-z_][\w.]*)((?:\s+\w+=\S+)*)\s*")
STEP = "step"
"""How a recipe writes its own synthesis step."""
Bins = tuple[tuple[str, BinningRule], ...]
"""How a study cuts numbers, by variable."""
Answer = Literal["least_epsilon", "largest_epsilon"]
State = Literal["within", "unclear", "beyond"]
NO_EPSILON = "no epsilon of the study keeps it within the limit"
ONE_DATASET = "one dataset at each epsilon cannot tell chance from epsilon: give the study replicates, 5 or more"
NO_DIRECTION = "more of them is neither better nor worse, noise makes more too: it has no limit to keep"
UTILITY = ("marginal", "conditional", "regression")
RISK = ("misclassification", "mean_absolute_error", "exact_copies", "unique_records")
RESAMPLES = 5
"""Bootstrap samples of the attack's baseline, over all replicates or more."""


@dataclass(frozen=True, slots=True)
class Synthesiser:
    """Synthesis method of the study, by its key and the settings that differ from its defaults.

    key: of the method
    settings: those that differ from the defaults, or from the recipe's own step
    step: the recipe's own step as JSON with these settings; empty for another
    targets: variables that this step makes, in its order; empty for another
    """

    key: str
    settings: tuple[tuple[str, Any], ...] = ()
    step: str = ""
    targets: tuple[str, ...] = ()

    @classmethod
    def parse(cls, value: object) -> Self:
        """Parse a synthesiser such as ``perturbed_gibbs reset=true block=10``, or ``step``. Raises ValueError."""
        found = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise ValueError(
                f'{value!r} is no synthesiser: write "perturbed_gibbs", "perturbed_gibbs reset=true block=10" or "{STEP}"'
            )
        settings = [part.partition("=") for part in found[2].split()]
        try:
            read = tuple((name, read_toml(f"value = {text}")["value"]) for name, _, text in settings)
        except BadInput:
            raise ValueError(
                f'{value!r}: a setting is written as in a recipe, such as block=10 or order="recipe"'
            ) from None
        key = found[1] if "." in found[1] or found[1] == STEP else f"synthesis.{found[1]}"
        return cls(key, read)

    @property
    def is_recipe_step(self) -> bool:
        """Return whether it is the recipe's own step."""
        return self.key == STEP or bool(self.step)

    @property
    def written(self) -> str:
        """Return the text of the synthesiser in a recipe."""
        head = STEP if self.is_recipe_step else self.key.removeprefix("synthesis.")
        return " ".join([head, *(f"{name}={_toml_value(value)}" for name, value in self.settings)])

    @property
    def name(self) -> str:
        """Return its name in rows and plots: ``step: perturbed_gibbs`` for the recipe's own."""
        return f"{self.written}: {self.key.removeprefix('synthesis.')}" if self.step else self.written

    @property
    def step_table(self) -> dict[str, Any]:
        """Return its settings as a step's table."""
        return dict(json.loads(self.step)) if self.step else dict(self.settings)

    def resolve_step(self, steps: Sequence[SynthesisStepSettings]) -> Synthesiser:
        """Return the recipe's own step in place of ``step`` where there is exactly one.

        Otherwise the synthesiser itself.
        """
        if not self.is_recipe_step:
            return self
        if len(steps) != 1:
            # Reported by joint_method, where the place in the recipe is known.
            return Synthesiser(STEP, self.settings)
        ((key, targets, spec),) = steps
        return Synthesiser(key, self.settings, json.dumps({**spec.to_table(), **dict(self.settings)}), targets)

    def joint_method(self, place: str) -> Method:
        """Return its method, which must make several variables at once. Raises BadInput."""
        if self.key == STEP:
            raise BadInput(
                place, f'"{STEP}" is the recipe\'s own synthesis step, and the recipe does not have exactly one'
            )
        found = find_method(self.key, place, ("synthesis",))
        if not found.joint:
            raise BadInput(place, f"{self.key} makes one variable at a time; name a method that makes whole records")
        return found

    def has_epsilon(self, place: str) -> bool:
        """Return whether its method keeps a privacy account. Raises BadInput."""
        return self.joint_method(place).synthesis.privacy.account is not None

    def spec_at(self, epsilon: float, variables: Sequence[str], bins: Bins, place: str) -> Spec:
        """Return its settings at an epsilon, with the study's bins where it has none of its own. Raises BadInput."""
        kind = self.joint_method(place).spec
        known = {info.name for info in kind.params()}
        cut = {name: rule.written for name, rule in bins if name in variables}
        table: dict[str, Any] = {"bins": cut} if cut and "bins" in known else {}
        table |= self.step_table
        if self.has_epsilon(place):
            table["epsilon"] = epsilon
        return kind.from_table(table, place)

    def spec_for_cost(self, data: Microdata, epsilon: float, records: int, bins: Bins, place: str) -> Spec:
        """Return the settings with which a drawn record costs ``epsilon``. Raises BadInput."""
        names = self.targets or data.schema.names
        account = self.joint_method(place).synthesis.privacy.account
        # The cost of a dataset is proportional to the setting, so its cost at 1 gives the setting for any. A block of
        # ten with reset has ten times as much to spend (§3.4): thus all datasets at an epsilon cost the same.
        unit = self.spec_at(1.0, names, bins, place)
        if account is None:
            return unit
        cost = account(data, names, unit, records, 1)
        if isinstance(cost, NoAccount):
            raise BadInput(place, cost.reason)
        return self.spec_at(epsilon * records / cost.noise, names, bins, place)

    def check_settings(self, schema: Schema, variables: Sequence[str], bins: Bins, place: str) -> None:
        """Raise BadInput where its settings are wrong, or where it is a step that makes other variables."""
        spec = self.spec_at(1.0, variables, bins, place)
        spec.check(schema, place)
        if self.is_recipe_step and set(self.targets) != set(variables):
            raise BadInput(
                place, f"the recipe's step makes {', '.join(self.targets)}: name the same under variables of the study"
            )
        for _, column, any_order in spec.referenced_columns(schema, place):
            if any_order:
                continue
            raise BadInput(place, f'it keeps "{column}"; the study compares methods that synthesise every variable')

    def draw_records(
        self, data: Microdata, fit: Fit, spec: Spec, index: int, rng: np.random.Generator, records: int
    ) -> Microdata:
        """Draw a dataset of ``records`` records, which correspond to no confidential record."""
        names = self.targets or data.schema.names
        values = self.joint_method("").draw_targets(fit, spec, names, data, data, index, rng, records)
        columns = {n: to_column(values[n], data, data.schema[n], self.key) for n in data.schema.names}
        return replace(data.with_columns(columns, "synthetic"), linked=False)

    def privacy_cost(self, data: Microdata, spec: Spec, records: int) -> PrivacyAccount | NoAccount:
        """Return the privacy account of a dataset of ``records`` records with these settings."""
        account = self.joint_method("").synthesis.privacy.account
        if account is None:
            return NoAccount("the method has no epsilon: it is the same at each")
        return account(data, self.targets or data.schema.names, spec, records, 1)


def _toml_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def select_variables(data: Microdata, names: tuple[str, ...]) -> Microdata:
    """Return the data with these variables alone, in this order."""
    schema = Schema(tuple(data.schema[name] for name in names))
    return Microdata(schema, data.frame[list(names)])


@lru_cache(maxsize=8)
def fit_synthesiser(
    confidential: Microdata, one: Synthesiser, variables: tuple[str, ...], bins: Bins, seed: int
) -> tuple[Microdata, Fit]:
    """Return the data of the variables, and the synthesiser's fit to them, which does not depend on epsilon."""
    # Cached, because every epsilon uses the same fit: epsilon decides the noise alone. The replicates therefore do not
    # show what was learned by chance.
    data = select_variables(confidential, variables)
    names = one.targets or variables
    fit = one.joint_method("").fit(
        data, names, one.spec_at(1.0, names, bins, one.key), Run(np.random.default_rng(seed)), 1
    )
    return data, fit


def hashable_bins(bins: Mapping[str, BinningRule], variables: Sequence[str]) -> Bins:
    """Return the rules of these variables as a hashable value."""
    return tuple((name, rule) for name, rule in bins.items() if name in variables)


def find_epsilons(rows: Sequence[Row], asked: Mapping[str, Answer], goals: Mapping[str, Goal]) -> list[Row]:
    """Return a row with the epsilon that keeps to the limit, for each curve and measure with one.

    ``asked`` is the kind of answer by measure.
    """
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.params.get("limit") is not None:
            found.setdefault((row.measure, str(sorted(row.params.items(), key=str))), []).append(row)
    return [_epsilon_row(series, asked[measure], goals[measure]) for (measure, _), series in found.items()]


def _epsilon_row(rows: Sequence[Row], asked: Answer, goal: Goal) -> Row:
    """Return the row that answers one curve, or the reason why there is no answer."""
    like = replace(
        rows[0],
        measure=asked,
        level=None,
        value=None,
        lower=None,
        upper=None,
        baseline=None,
        unit="",
        status="not computed",
        params={**rows[0].params, "of": rows[0].measure},
    )
    if goal == "none":
        return replace(like, reason=NO_DIRECTION)
    computed = [row for row in rows if row.value is not None]
    if not computed:
        return replace(like, reason=rows[0].reason)
    if any(row.lower is None or row.upper is None for row in computed):
        return replace(like, reason=ONE_DATASET)
    limit = float(rows[0].params["limit"])
    points = sorted((row.level or 0.0, state_of_point(row, limit, goal)) for row in rows)
    value, remark = epsilon_within_limit(points, asked)
    if value is None:
        return replace(like, reason=remark or NO_EPSILON)
    return replace(like, value=value, status="computed", reason=remark)


def state_of_point(row: Row, limit: float, goal: Goal) -> State:
    """Return whether a point keeps to the limit with its whole interval ("within"), with none ("beyond"), or neither
    can be shown.
    """
    if row.value is None or row.lower is None or row.upper is None:
        return "beyond"
    best, worst = (row.lower, row.upper) if goal == "low" else (-row.upper, -row.lower)
    limit = limit if goal == "low" else -limit
    return "within" if not is_above(worst, limit) else "beyond" if is_above(best, limit) else "unclear"


def epsilon_within_limit(points: Sequence[tuple[float, State]], asked: Answer) -> tuple[float | None, str]:
    """Return the epsilon that answers ascending points, and a remark on points beyond it that keep to the limit all the
    same.
    """
    # Fixed-sequence testing (Maurer, Hothorn & Lehmacher 1995): points are tested from the safe end, and the first that
    # cannot be shown to keep the limit ends it. An answer reaches past the first point whose true mean is beyond the
    # limit in at most one of forty cases.
    onward = points[::-1] if asked == "least_epsilon" else points
    kept = 0
    while kept < len(onward) and onward[kept][1] == "within":
        kept += 1
    value = onward[kept - 1][0] if kept else None
    if kept == len(onward):
        return value, ""
    said = [f"at {onward[kept][0]:g} it cannot be distinguished from the limit"] if onward[kept][1] == "unclear" else []
    again = sorted(level for level, state in onward[kept:] if state == "within")
    if again:
        listed = ", ".join(f"{level:g}" for level in again)
        # of what is kept a larger epsilon breaks the limit again; of what is given away a larger one is within it again
        said.append(f"at {listed} it is within{' too' if kept else ''}, but not at {onward[kept][0]:g}")
    return value, "; ".join(said)


ASKED: Mapping[str, Answer] = {
    **dict.fromkeys(UTILITY, "least_epsilon"),
    **dict.fromkeys(RISK, "largest_epsilon"),
}
"""What a limit of each measure asks for."""

DEFAULT = tuple(
    map(Synthesiser.parse, ("perturbed_gibbs", "perturbed_gibbs reset=true block=10", "perturbed_imputation"))
)


def check_data(data: Microdata, target: str, spec: RiskUtilitySpec, place: str) -> None:
    """Raise BadInput where a synthesiser cannot make the variables."""
    full = spec.for_release(data.schema, ())
    own, bins = select_variables(data, full.variables), hashable_bins(full.bins, full.variables)
    for i, one in enumerate(spec.synthesisers):
        at = f"{place}.synthesisers[{i}]"
        names = one.targets or full.variables
        one.joint_method(at).check_data(own, names, one.spec_at(1.0, names, bins, at), at)
        one.spec_for_cost(own, max(spec.epsilons), full.records, bins, at)


def summarise_limits(rows: Sequence[Row]) -> list[Row]:
    """Return, for each synthesiser and measure with a limit, the epsilon that keeps to it: the least for utility, the
    largest for risk.
    """
    return find_epsilons(rows, ASKED, {output.name: output.goal for output in OUTPUTS})


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


def _measure_synthesiser(
    confidential: Microdata, one: Synthesiser, epsilon: float, spec: RiskUtilitySpec, run: Run
) -> Iterator[Estimate]:
    """Yield every measure of one synthesiser at one epsilon, averaged over its datasets."""
    # Every point of the study has the same streams, so the seed of the fit is the same at each epsilon and the cache is
    # hit.
    learning, measuring = run.rng.spawn(2)
    bins = hashable_bins(spec.bins, spec.variables)
    data, fit = fit_synthesiser(confidential, one, spec.variables, bins, int(learning.integers(2**63)))
    settings = one.spec_for_cost(data, epsilon, spec.records, bins, one.key)
    series: dict[str, list[Estimate]] = {}
    for index, rng in enumerate(measuring.spawn(spec.replicates)):
        made = one.draw_records(data, fit, settings, index, rng, spec.records)
        for estimate in _score_dataset(data, made, spec, replace(run, rng=rng.spawn(1)[0])):
            series.setdefault(json.dumps([estimate.measure, dict(estimate.params)]), []).append(estimate)
    limited = one.has_epsilon(one.key)
    for estimates in series.values():
        name = estimates[0].measure
        limit = {"limit": spec.limits[name]} if limited and name in spec.limits else {}
        # Only the copies are a share of independent draws.
        trials = spec.records if name == "exact_copies" else 0
        yield average_over_datasets(estimates, {"synthesiser": one.name, **estimates[0].params, **limit}, trials)
    cost = one.privacy_cost(data, settings, spec.records)
    own = {"synthesiser": one.name}
    if isinstance(cost, PrivacyAccount):
        yield Estimate("epsilon_release", cost.noise, params=own)
    else:
        yield Estimate.not_computed("epsilon_release", cost.reason, **own)


def _score_dataset(data: Microdata, made: Microdata, spec: RiskUtilitySpec, run: Run) -> Iterator[Estimate]:
    """Yield the distances, the attack's errors, and the shares of copies and unique records of one dataset."""
    cut = {name: rule.written for name, rule in spec.bins.items() if name in spec.variables}
    distances = _estimates_of(
        "utility.distribution_distance", {"given": list(spec.given), "bins": cut}, data, made, run
    )
    for name in ("marginal", "conditional"):
        own = [one for one in distances if one.measure == name]
        if own:
            yield _mean_estimate(name, own)
    for condition in spec.given:
        own = [one for one in distances if one.params.get("condition") == condition]
        if own:
            yield _mean_estimate("conditional_given", own, {"condition": condition})
    yield from _regression_estimates(data, made, spec, run)
    if spec.sensitive and spec.known:
        known = {name: cut[name] for name in spec.known if name in cut}
        # The baseline is averaged over the replicates, which share its bootstrap samples out.
        resamples = -(-RESAMPLES // spec.replicates)
        table = {"sensitive": spec.sensitive, "known": list(spec.known), "bins": known, "resamples": resamples}
        for one in _estimates_of("risk.inference_attack", table, data, made, run):
            if one.measure in ("misclassification", "mean_absolute_error") and not one.params:
                yield replace(one, target="")
    codes = {name: categories_of_variable(data, name, spec.bins.get(name)) for name in spec.variables}
    ours, theirs = ([codes[name].category_codes(table) for name in spec.variables] for table in (data, made))
    classes, drawn = joint_classes(ours, theirs)
    # The baseline: an independent sample would repeat such records.
    repeated = float((np.bincount(classes)[classes] > 1).mean())
    yield Estimate("exact_copies", float(np.isin(drawn, classes).mean()), baseline=repeated)
    if spec.known:
        of_known = [codes[name].category_codes(made) for name in spec.known]
        _, shared = joint_classes(of_known, of_known)
        yield Estimate("unique_records", float((np.bincount(shared)[shared] == 1).mean()))


def _regression_estimates(data: Microdata, made: Microdata, spec: RiskUtilitySpec, run: Run) -> Iterator[Estimate]:
    """Yield the mean distance of the models, and the relative deviation of each coefficient."""
    if not spec.models:
        return
    found = _estimates_of(
        "utility.regression_distance", {"models": [model.written for model in spec.models]}, data, made, run
    )
    yield _mean_estimate("regression", [one for one in found if one.measure == "distance"])
    for one in found:
        if one.measure == "relative_deviation" and "term" in one.params:
            named = {"model": one.params["model"], "term": one.params["term"]}
            yield Estimate("coefficient_deviation", one.value, baseline=one.baseline, reason=one.reason, params=named)


def _estimates_of(key: str, table: Mapping[str, Any], data: Microdata, made: Microdata, run: Run) -> Sequence[Estimate]:
    """Return the estimates of a measure on a dataset, or estimates that say why it is not computed."""
    found = find_method(key, "")
    spec = found.spec.from_table({name: value for name, value in table.items() if value}, key)
    try:
        return found.measure(data, made, spec.for_release(data.schema, data.schema.names), run).estimates
    except NotComputable as error:
        return tuple(Estimate.not_computed(output.name, error.reason) for output in found.outputs)


def _mean_estimate(name: str, estimates: Sequence[Estimate], params: Mapping[str, Any] | None = None) -> Estimate:
    """Return the mean of the estimates and of their baselines; not computed where one of them is not, with its reason."""
    own = params or {}
    values = [one.value for one in estimates if one.value is not None]
    if not values or len(values) < len(estimates):
        reason = next((one.reason for one in estimates if one.value is None), "there is nothing to measure")
        return Estimate.not_computed(name, reason, **own)
    baselines = [one.baseline for one in estimates if one.baseline is not None]
    baseline = float(np.mean(baselines)) if len(baselines) == len(estimates) else None
    return Estimate(name, float(np.mean(values)), baseline=baseline, params=own)


def average_over_datasets(estimates: Sequence[Estimate], params: Mapping[str, Any], trials: int = 0) -> Estimate:
    """Return the mean of a measure over datasets, with the 95 % interval of two or more.

    ``trials`` is the number of records behind each value, where it is a share of independent draws.
    """
    mean = _mean_estimate(estimates[0].measure, estimates, params)
    values = [one.value for one in estimates if one.value is not None]
    if mean.value is None or len(values) < 2:
        return mean
    _, lower, upper = monte_carlo_mean(values, within=RANGES[mean.measure])
    assert lower is not None
    assert upper is not None
    if trials:
        # No narrower than the interval of a count (Clopper & Pearson 1934): datasets without a single copy do not show
        # that there is never one.
        low, high = clopper_pearson_interval(round(sum(values) * trials), trials * len(values))
        lower, upper = min(lower, low), max(upper, high)
    return replace(mean, lower=lower, upper=upper)


def clopper_pearson_interval(hits: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact confidence interval of a probability, given hits among trials (Clopper & Pearson 1934)."""
    tail = (1 - confidence) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return low, high


@dataclass(frozen=True, kw_only=True, slots=True)
class RiskUtilitySpec(StudySpec):
    """Synthesisers, epsilons, variables and measures of the study."""

    synthesisers: Annotated[
        tuple[Synthesiser, ...],
        Param('methods with their settings, such as "perturbed_gibbs reset=true block=10"', unique=True),
    ] = DEFAULT
    epsilons: Annotated[tuple[float, ...], Param("what one drawn record costs", gt=0, le=10_000, unique=True)] = (
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
    records: Annotated[int, Param("records of each dataset", ge=2, le=10_000_000, reported=True)] = 1000
    replicates: Annotated[int, Param("datasets of each synthesiser at each epsilon", ge=1)] = 1
    bins: BinsByVariable = field(default_factory=dict)
    given: Annotated[
        tuple[str, ...], Param("variables that the conditional distances are given", names="variables")
    ] = ()
    models: Annotated[
        tuple[RegressionModel, ...], Param('regressions to compare, such as "log(price) ~ room_type + days"')
    ] = ()
    sensitive: Annotated[
        str | None, Param("variable that an intruder infers; left out, the first of role sensitive", names="variables")
    ] = None
    known: QuasiIdentifiers = ()
    limits: Annotated[
        Mapping[str, float],
        Param("limits by measure, such as { marginal = 0.01, exact_copies = 0.05 }: which epsilon keeps to them?"),
    ] = field(default_factory=dict)

    def grid(self) -> tuple[float, ...]:
        return self.epsilons

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return the parameters with default variables, known variables and the sensitive variable filled in."""
        names = self.variables or schema.non_identifiers
        sensitive = self.sensitive or next((n for n in names if schema[n].role is Role.SENSITIVE), None)
        known = tuple(
            n for n in self.known or schema.names_by_role(Role.QUASI_IDENTIFIER) if n in names and n != sensitive
        )
        return replace(self, variables=names, sensitive=sensitive, known=known)

    def of_recipe(self, steps: Sequence[SynthesisStepSettings]) -> Self:
        """Return the parameters with ``step`` replaced by the recipe's own step."""
        return replace(self, synthesisers=tuple(one.resolve_step(steps) for one in self.synthesisers))

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput where there is nothing to compare, a synthesiser cannot be used, or a limit is for no measure
        of the study.
        """
        if not self.epsilons:
            raise BadInput(f"{place}.epsilons", "name at least one epsilon")
        full = self.for_release(schema, released)
        own = Schema(tuple(schema[name] for name in full.variables))
        for i, one in enumerate(self.synthesisers):
            at = f"{place}.synthesisers[{i}]"
            one.check_settings(own, full.variables, hashable_bins(full.bins, full.variables), at)
        for name in self.limits:
            if name not in ASKED:
                raise BadInput(f"{place}.limits.{name}", f"is no measure of the study; there are {', '.join(ASKED)}")
        used = [name for model in self.models for name in model.columns(schema)]
        for name in (*used, *self.given, *self.known, *([self.sensitive] if self.sensitive else [])):
            if name not in full.variables:
                raise BadInput(f"{place}.variables", f'"{name}" is not among them')


OUTPUTS = (
    Output("marginal", "mean over the variables of the squared distance of their distributions", "low", range=NON_NEGATIVE, short="marginal distance", estimated=True, statbarn="StatisticalHypothesisTests", label=Label("Mean distance of distributions, by epsilon", "The distributions of single variables are {value} away from the confidential ones on average.", "Lower is better; 0 is the same distribution.", "The distributions of single variables differ too much.", PRIVATE_FIDELITY),),
    Output("conditional", "mean over the pairs of the squared distance of the distributions given each level of another variable", "low", range=NON_NEGATIVE, short="conditional distance", estimated=True, statbarn="StatisticalHypothesisTests", label=Label("Mean conditional distance, by epsilon", "The distributions given other variables are {value} away from the confidential ones on average.", "Lower is better; 0 is the same distribution.", "Relations between variables differ too much.", PRIVATE_FIDELITY),),
    Output("regression", "mean over the models of the sum of the relative deviations of their coefficients", "low", range=NON_NEGATIVE, short="regression distance", estimated=True, statbarn="CorrelationCoefficients", label=Label("Mean regression distance, by epsilon", "The coefficients of regressions deviate by {value} in all, as shares of the confidential ones.", "Lower is better; 0 is the same regression.", "Regressions of the release differ too much.", PRIVATE_FIDELITY),),
    Output("conditional_given", "the same given the levels of one variable, which the row names", "low", range=NON_NEGATIVE, short="conditional distance", estimated=True, statbarn="StatisticalHypothesisTests", label=Label("Distance given one variable, by epsilon", "Given the levels of one variable, distributions are {value} away from the confidential ones.", "Lower is better; 0 is the same distribution.", "Relations with this variable differ too much.", PRIVATE_FIDELITY),),
    Output("coefficient_deviation", "what a coefficient exceeds the confidential one by, as a share of it; below 0 where it falls short", "none", short="deviation of the coefficient", estimated=True, statbarn="CorrelationCoefficients", label=Label("Deviation of a coefficient, by epsilon", "The coefficient exceeds the confidential one by {value}, as a share of it."),),
    Output("misclassification", "share of the confidential records whose value an intruder infers wrongly", "high", "share", range=SHARE, estimated=True, label=Label("Wrong inferences, by epsilon", "An intruder infers the values of {value} of the confidential records wrongly.", "Higher is better: inferences are as wrong as without the release.", "An intruder infers too many values rightly.", LESS_EPSILON, counts="share"),),
    Output("mean_absolute_error", "mean error of the number that an intruder infers", "high", range=NON_NEGATIVE, short="mean error", estimated=True, label=Label("Mean error of inferred numbers, by epsilon", "An intruder errs by {value} on average.", "Higher is better: inferred numbers are far from the truth.", "An intruder infers numbers too near the true ones.", LESS_EPSILON),),
    Output("exact_copies", "share of the drawn records whose categories are all those of a confidential record", "low", "share", range=SHARE, short="exact copies", estimated=True, label=Label("Released records equal to one, by epsilon", "Among the drawn records, {value} equal a confidential record in all categories.", "Lower is better; 0 means no copies.", "Too many drawn records equal those of people in the data.", LESS_EPSILON),),
    Output("unique_records", "share of the drawn records that are alone with their known values", "none", "share", range=SHARE, short="unique records", estimated=True, label=Label("Drawn records that are unique, by epsilon", "Among the drawn records, {value} are alone with their known values."),),
    Output("epsilon_release", "what the noise of such a dataset accounts for in all, where its key is secret", "low", range=POSITIVE, short="eps of the release", statbarn="none", label=Label("Privacy loss of the release, by epsilon", "The noise of such a release accounts for an epsilon of {value}, while its key is secret.", "Lower is better: one person changes the release less.", "One person may change the release more than the limit allows.", LESS_EPSILON),),
    Output(
        "least_epsilon", "least epsilon from which on a measure of utility is within its limit", "low", range=POSITIVE, estimated=True, study=StudyOutput(answer=True, on_axis=True, sentence="From epsilon {value:g} on it is within the limit", no_answer_text="No epsilon is shown to be large enough"), statbarn="none", label=Label("Least epsilon with enough utility", "From an epsilon of {value} on, the measure of utility is within its limit.", "Lower is better: utility needs less privacy loss.", "Enough utility costs more privacy than the limit allows.", PRIVATE_FIDELITY),),
    Output(
        "largest_epsilon", "largest epsilon up to which a measure of risk is within its limit", "high", range=POSITIVE, estimated=True, study=StudyOutput(answer=True, on_axis=True, sentence="Up to epsilon {value:g} it is within the limit", no_answer_text="No epsilon is shown to be small enough"), statbarn="none", label=Label("Largest epsilon with acceptable risk", "Up to an epsilon of {value}, the measure of risk is within its limit.", "Higher is better: the risk leaves room for utility.", "The risk leaves too little room for utility.", LESS_EPSILON),),
)  # fmt: skip


@study_method(
    "Risk and utility by epsilon",
    spec=RiskUtilitySpec,
    source="Park & Ghosh §4.3-4.4, Table 1, Figures 5 to 9",
    outputs=OUTPUTS,
    check=check_data,
    summarise=summarise_limits,
    axis=Axis(
        "epsilon",
        "what one drawn record costs in differential privacy",
        heading="Risk and utility by epsilon",
        question="What do risk and utility become at each epsilon?",
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
    """Measure all synthesisers at one epsilon; the recipe's own releases are not used."""
    full = spec.for_release(confidential.schema, ())
    children = run.rng.spawn(len(full.synthesisers))
    found: list[Estimate] = []
    for done, (one, rng) in enumerate(zip(full.synthesisers, children, strict=True), start=1):
        found += _measure_synthesiser(confidential, one, point, full, replace(run, rng=rng))
        run.report(Progress(done, len(full.synthesisers), "synthesisers"))
    return point_of_own_tables(found, releases)


RANGES: Mapping[str, Range] = {output.name: output.range for output in OUTPUTS}
