"""Risk and utility of differentially private synthesis along epsilon (Park & Ghosh §4.3-4.4, Figures 5 to 9).

Each synthesiser makes all variables anew at each epsilon, which is that of one drawn record: a block of ten with reset has ten times
as much to spend (§3.4), so that all datasets at an epsilon cost the same. What is kept is measured by distances of distributions and of regression coefficients; what is given away by an inference attack, by
records that equal a confidential one, and by records that nobody shares the known values with. The distances are means over the
variables (or pairs, or models), and over ``replicates`` datasets.

A synthesiser is written as in a step, its method and what differs from the defaults: ``perturbed_gibbs reset=true block=10``. What it learns of the
confidential data is learned once; epsilon decides the noise.

``limits`` ask which epsilon will do: of what is kept the least epsilon at which it is within its limit, of what is given away the largest.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, Self

import numpy as np

from ..arrays import Floats
from ..errors import BadInput, NotComputable
from ..methods import Method, find, method
from ..microdata import Microdata, as_column
from ..outputs import Axis, Output, Plane
from ..partition.equivalence_classes import joint_classes
from ..privacy import POSITIVE, PrivacyAccount
from ..results import Estimate, Fit, StudyPoint
from ..rows import Row
from ..run import Progress, Run
from ..schema import Role, Schema
from ..spec import Param, Spec, StudySpec
from ..statistics.binning import Binning
from ..statistics.bounded_interval import NON_NEGATIVE, SHARE
from ..statistics.categories import BinsByVariable, categories_of
from ..statistics.estimation import Model
from ._anonymising import own_tables

_WRITTEN = re.compile(r"\s*([A-Za-z_][\w.]*)((?:\s+\w+=\S+)*)\s*")
UTILITY = ("marginal", "conditional", "regression")
RISK = ("misclassification", "mean_absolute_error", "exact_copies", "unique_records")
MEASURES = (*UTILITY, *RISK)
NO_EPSILON = "no epsilon of the study keeps it within the limit"


@dataclass(frozen=True, slots=True)
class Synthesiser:
    """A synthesis method by its key and the settings that differ from its defaults."""

    key: str
    settings: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def parse(cls, value: object) -> Self:
        """From ``perturbed_gibbs reset=true block=10``. Raises ValueError."""
        found = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise ValueError(
                f'{value!r} is no synthesiser: write "perturbed_gibbs" or "perturbed_gibbs reset=true block=10"'
            )
        settings = [part.partition("=") for part in found[2].split()]
        try:
            read = tuple((name, tomllib.loads(f"value = {text}")["value"]) for name, _, text in settings)
        except tomllib.TOMLDecodeError:
            raise ValueError(
                f'{value!r}: a setting is written as in a recipe, such as block=10 or order="recipe"'
            ) from None
        key = found[1] if "." in found[1] else f"synthesis.{found[1]}"
        return cls(key, read)

    @property
    def written(self) -> str:
        """As a recipe writes it."""
        return " ".join(
            [self.key.removeprefix("synthesis."), *(f"{name}={_toml(value)}" for name, value in self.settings)]
        )

    def method(self, place: str) -> Method:
        """The method, which must make several variables at once and account for an epsilon. Raises BadInput."""
        found = find(self.key, place, ("synthesis",))
        if not found.joint or found.account is None:
            raise BadInput(place, f"{self.key} keeps no privacy account")
        return found


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


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
        known = tuple(n for n in self.known or schema.of_role(Role.KNOWN) if n in names and n != sensitive)
        return replace(self, variables=names, sensitive=sensitive, known=known)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """BadInput where there is nothing to compare, a synthesiser cannot be used, or a limit is for no measure."""
        if not self.epsilons or len(set(self.epsilons)) < len(self.epsilons):
            raise BadInput(f"{place}.epsilons", "name some epsilons, each once")
        full = self.for_release(schema, released)
        for i, one in enumerate(self.synthesisers):
            at = f"{place}.synthesisers[{i}]"
            if one in self.synthesisers[:i]:
                raise BadInput(at, "is listed twice")
            _spec(one, self.epsilons[0], full, at)
        for name in self.limits:
            if name not in MEASURES:
                raise BadInput(f"{place}.limits.{name}", f"is no measure of the study; there are {', '.join(MEASURES)}")
        used = [name for model in self.models for name in model.columns(schema)]
        for name in (*used, *self.given, *self.known, *([self.sensitive] if self.sensitive else [])):
            if name not in full.variables:
                raise BadInput(f"{place}.variables", f'"{name}" is not among them')


def _spec(one: Synthesiser, epsilon: float, spec: RiskUtilitySpec, place: str) -> Spec:
    """The settings of a synthesiser at an epsilon. Raises BadInput."""
    bins = {name: rule.written for name, rule in spec.bins.items() if name in spec.variables}
    table = {**({"bins": bins} if bins else {}), **dict(one.settings), "epsilon": epsilon}
    return one.method(place).spec.from_table(table, place)


def check(data: Microdata, target: str, spec: RiskUtilitySpec, place: str) -> None:
    """BadInput where a synthesiser cannot make the variables."""
    full = spec.for_release(data.schema, ())
    own = _narrowed(data, full.variables)
    for i, one in enumerate(spec.synthesisers):
        at = f"{place}.synthesisers[{i}]"
        one.method(at).check_on(own, full.variables, _spec(one, 1.0, full, at), at)
        _priced(own, one, max(spec.epsilons), full, at)


def _priced(data: Microdata, one: Synthesiser, epsilon: float, spec: RiskUtilitySpec, place: str) -> Spec:
    """The settings with which a record costs ``epsilon``: what a dataset costs is in proportion to the setting. Raises BadInput."""
    account = one.method(place).account
    assert account is not None
    unit = account(data, spec.variables, _spec(one, 1.0, spec, place), spec.records, 1)
    assert isinstance(unit, PrivacyAccount)
    return _spec(one, epsilon * spec.records / unit.noise, spec, place)


def _narrowed(data: Microdata, names: tuple[str, ...]) -> Microdata:
    schema = Schema(tuple(data.schema[name] for name in names))
    return Microdata(schema, data.frame[list(names)])


def within_limits(rows: Sequence[Row]) -> list[Row]:
    """Of each synthesiser and measure with a limit, the epsilon that keeps to it: the least, or the largest for a risk."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        limit = row.params.get("limit")
        if limit is not None:
            found.setdefault((row.measure, str(sorted(row.params.items(), key=str))), []).append(row)
    return [_answer(measure, series) for (measure, _), series in found.items()]


def _answer(measure: str, rows: Sequence[Row]) -> Row:
    answer = "least_epsilon" if measure in UTILITY else "largest_epsilon"
    goal = next(output.goal for output in OUTPUTS if output.name == measure)
    limit = float(rows[0].params["limit"])
    like = replace(
        rows[0],
        measure=answer,
        level=None,
        lower=None,
        upper=None,
        baseline=None,
        unit="",
        params={**rows[0].params, "of": measure},
    )
    ascending = sorted((row for row in rows if row.level is not None), key=lambda row: row.level or 0.0)
    kept = [
        row.value is not None and (row.value <= limit if goal == "low" else row.value >= limit) for row in ascending
    ]
    # all from the answer to the end of the grid must keep to the limit: one that happens to do so between others is no answer
    order = list(zip(ascending, kept, strict=True))
    enough = None
    for row, keeps in reversed(order) if answer == "least_epsilon" else order:
        if not keeps:
            break
        enough = row.level
    if enough is None:
        return replace(like, value=None, status="not computed", reason=NO_EPSILON)
    return replace(like, value=enough, status="computed", reason="")


OUTPUTS = (
    Output("marginal", "mean over the variables of the squared distance of their distributions", "low", range=NON_NEGATIVE, short="marginal distance"),
    Output("conditional", "mean over the pairs of the squared distance of the distributions given each level of another variable", "low", range=NON_NEGATIVE, short="conditional distance"),
    Output("regression", "mean over the models of the sum of the relative deviations of their coefficients", "low", range=NON_NEGATIVE, short="regression distance"),
    Output("misclassification", "share of the confidential records whose value an intruder infers wrongly", "high", "share", range=SHARE),
    Output("mean_absolute_error", "mean error of the number that an intruder infers", "high", range=NON_NEGATIVE, short="mean error"),
    Output("exact_copies", "share of the drawn records whose categories are all those of a confidential record", "low", "share", range=SHARE, short="exact copies"),
    Output("unique_records", "share of the drawn records that are alone with their known values", "none", "share", range=SHARE, short="unique records"),
    Output("epsilon_release", "what such a dataset costs in all", "low", range=POSITIVE, short="eps of the release"),
    Output(
        "least_epsilon", "least epsilon from which on a measure of utility is within its limit", "low", range=POSITIVE, answer=True, on_axis=True,
        sentence="From epsilon {value:g} on it is within the limit", without="No epsilon is large enough",
    ),
    Output(
        "largest_epsilon", "largest epsilon up to which a measure of risk is within its limit", "high", range=POSITIVE, answer=True, on_axis=True,
        sentence="Up to epsilon {value:g} it is within the limit", without="No epsilon is small enough",
    ),
)  # fmt: skip


@method(
    "Risk and utility by epsilon",
    spec=RiskUtilitySpec,
    source="Park & Ghosh §4.3-4.4, Figures 5 to 9",
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
    ),
    planes=(
        Plane("Marginal distance", "", "marginal", label="epsilon"),
        Plane("Copies against marginal distance", "exact_copies", "marginal", label="exact copies"),
    ),
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
    of = one.method("")
    learning, measuring = run.rng.spawn(2)
    data, fit = _learned(confidential, one, spec.variables, _bins_key(spec), int(learning.integers(2**63)))
    settings = _priced(data, one, epsilon, spec, one.key)
    values: dict[str, list[Estimate]] = {}
    for index, rng in enumerate(measuring.spawn(spec.replicates)):
        drawn = of.drawn(fit, settings, spec.variables, data, data, index, rng, spec.records)
        columns = {n: as_column(drawn[n], data, data.schema[n], one.key) for n in spec.variables}
        made = replace(data.with_columns(columns, "synthetic"), linked=False)
        for name, estimate in _scores(data, made, spec, replace(run, rng=rng.spawn(1)[0])):
            values.setdefault(name, []).append(estimate)
    for name, estimates in values.items():
        limit = {"limit": spec.limits[name]} if name in spec.limits else {}
        yield _mean(name, estimates, {"synthesiser": one.written, **limit})
    assert of.account is not None
    account = of.account(data, spec.variables, settings, spec.records, 1)
    assert isinstance(account, PrivacyAccount)
    yield Estimate("epsilon_release", account.noise, params={"synthesiser": one.written})


def _bins_key(spec: RiskUtilitySpec) -> tuple[tuple[str, Binning], ...]:
    return tuple((name, rule) for name, rule in spec.bins.items() if name in spec.variables)


@lru_cache(maxsize=4)
def _learned(
    confidential: Microdata,
    one: Synthesiser,
    variables: tuple[str, ...],
    bins: tuple[tuple[str, Binning], ...],
    seed: int,
) -> tuple[Microdata, Fit]:
    """What a synthesiser learns of the variables, whatever the epsilon. The last are kept: an epsilon later it is the same."""
    data = _narrowed(confidential, variables)
    spec = RiskUtilitySpec(variables=variables, bins=dict(bins))
    fit = one.method("").fit(data, variables, _spec(one, 1.0, spec, one.key), Run(np.random.default_rng(seed)), 1)
    return data, fit


def _scores(data: Microdata, made: Microdata, spec: RiskUtilitySpec, run: Run) -> Iterator[tuple[str, Estimate]]:
    """Each measure of one dataset."""
    cut = {name: rule.written for name, rule in spec.bins.items() if name in spec.variables}
    distances = _of("utility.distribution_distance", {"given": list(spec.given), "bins": cut}, data, made, run)
    for name in ("marginal", "conditional"):
        own = [one for one in distances if one.measure == name]
        if own:
            yield name, _mean(name, own, {})
    if spec.models:
        models = [model.written for model in spec.models]
        own = [
            one
            for one in _of("utility.regression_distance", {"models": models}, data, made, run)
            if one.measure == "distance"
        ]
        yield "regression", _mean("regression", own, {})
    if spec.sensitive and spec.known:
        known = {name: cut[name] for name in spec.known if name in cut}
        table = {"sensitive": spec.sensitive, "known": list(spec.known), "bins": known}
        for one in _of("risk.inference_attack", table, data, made, run):
            if one.measure in ("misclassification", "mean_absolute_error") and not one.params:
                yield one.measure, one
    codes = {name: categories_of(data, name, spec.bins.get(name)) for name in spec.variables}
    ours, theirs = ([codes[name].codes(table) for name in spec.variables] for table in (data, made))
    classes, drawn = joint_classes(ours, theirs)
    yield "exact_copies", Estimate("exact_copies", float(np.isin(drawn, classes).mean()))
    if spec.known:
        of_known = [codes[name].codes(made) for name in spec.known]
        _, shared = joint_classes(of_known, of_known)
        yield "unique_records", Estimate("unique_records", float((np.bincount(shared)[shared] == 1).mean()))


def _of(key: str, table: Mapping[str, Any], data: Microdata, made: Microdata, run: Run) -> Sequence[Estimate]:
    """What a measure says of a dataset, or why it says nothing."""
    found = find(key, "")
    spec = found.spec.from_table({name: value for name, value in table.items() if value}, key)
    try:
        return found.measure(data, made, spec.for_release(data.schema, data.schema.names), run).estimates
    except NotComputable as error:
        return tuple(Estimate.not_computed(output.name, error.reason) for output in found.outputs)


def _mean(name: str, estimates: Sequence[Estimate], params: Mapping[str, Any]) -> Estimate:
    """The mean of the estimates and of their baselines; not computed where one of them is not, for its reason."""
    values: Floats = np.array([one.value for one in estimates if one.value is not None], dtype=np.float64)
    if not len(values) or len(values) < len(estimates):
        reason = next((one.reason for one in estimates if one.value is None), "there is nothing to measure")
        return Estimate.not_computed(name, reason, **params)
    baselines = [one.baseline for one in estimates if one.baseline is not None]
    baseline = float(np.mean(baselines)) if len(baselines) == len(estimates) else None
    return Estimate(name, float(values.mean()), baseline=baseline, params=params)
