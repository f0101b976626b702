"""Calibration of data quality measures as classifiers of anonymised tables that are good enough (Lighthouse data
quality §4).

A generator, trained on a bootstrap sample of the data, makes original tables: a GAN in the paper (``synthesis.ctgan``),
trees by default. Each is anonymised with various quasi-identifiers and k. For every quasi-identifier and every group of
the sensitive variable against the others, a t-test (numbers) or a G-test (categories) is done on the original and on
the anonymised table; a label is good where significance and sign agree. The value of a measure for the quasi-identifier
is its score. ``summarise_calibration`` computes areas under ROC and precision-recall curves, thresholds and error rates
from the scores and labels of all simulations.

A case may stand for several labels: ``good`` and ``bad`` (n,) count them. A score of -inf passes no threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from typing import Annotated, Any, Self

import numpy as np

from ..data.arrays import Floats, Integers
from ..data.intervals import AT_LEAST_ONE, AT_MOST_ONE, SHARE, bounded_interval
from ..data.microdata import Microdata, to_column
from ..data.schema import Role, Schema
from ..errors import BadInput, NotComputable
from ..methods.intruder import QuasiIdentifiers
from ..methods.levers import COARSENING, OTHER_MEASURE
from ..methods.outputs import AnswerColumns, Axis, Label, Output, Plane, StudyOutput
from ..methods.registry import Method, find_method, study_method
from ..methods.results import Estimate, Fit, Goal, StudyPoint
from ..methods.rows import Row
from ..methods.run import Progress, Run, ignore_progress
from ..methods.spec import Param, Spec, StudySpec, Variant
from ..partition.pairs import NUMBERS
from ..quality import nmi_v1, non_suppressed, pearson, rilm
from ..statistics.combining import t_quantile
from ..statistics.comparing import is_above, is_below
from ..statistics.estimated import CONFIDENCE
from ._anonymising import (
    anonymise_sample,
    find_anonymiser,
    point_of_own_tables,
    quality_scores,
    require_present,
    select_schema,
)
from ._group_tests import AgreementCounts, OriginalTests

ERRORS_ALLOWED = 0.05
# Score: the data quality method and its output; §4.2 names the thresholds in use.
SOURCES = {
    "rho": ("quality.pearson", "rho"),
    "rilm_numerical": ("quality.rilm", "numerical"),
    "rilm_categorical": ("quality.rilm", "categorical"),
    "nmi_v1": ("quality.nmi_v1", "nmi"),
    "nmi_v2": ("quality.nmi_v2", "nmi"),
    "one_minus_ilm": ("quality.ilm", "one_minus_ilm"),
    "non_suppressed": ("quality.non_suppressed", "share"),
}
MEASURES_OF = {
    "numerical": ("rho", "rilm_numerical", "nmi_v1", "nmi_v2", "one_minus_ilm", "non_suppressed"),
    "categorical": ("rilm_categorical", "non_suppressed"),
}
THRESHOLDS = {
    "rho": pearson.LIMIT.least,
    "rilm_categorical": rilm.LIMIT.least,
    "nmi_v1": nmi_v1.LIMIT.least,
    "non_suppressed": non_suppressed.LIMIT.least,
}
SUMMARIES: Mapping[str, tuple[str, Goal]] = {
    "generators": ("generators that were trained", "none"),
    "originals": ("original tables that were generated", "none"),
    "anonymisations": ("anonymised tables that were scored and tested", "none"),
    "auc": ("chance that the measure scores a good label above a bad one: area under the ROC curve", "high"),
    "average_precision": ("precision averaged over the recall that each score adds: area under the PR curve", "high"),
    "good": ("labels that are good, as a share of all", "none"),
    "suggested_threshold": ("smallest threshold below 1 that at most 5 % of the tests above it err", "none"),
    "lost": ("tests significant on the original only (the paper's Type I)", "low"),
    "spurious": ("tests significant on the anonymised table only (the paper's Type II)", "low"),
    "sign_flip": ("tests significant on both, in opposite directions", "low"),
    "errors": ("tests whose significance or sign differs from the original's", "low"),
    "true_positive_rate": ("good labels that pass the threshold at this level: recall", "high"),
    "false_positive_rate": ("bad labels that pass the threshold at this level", "low"),
    "precision": ("good labels among those that pass the threshold at this level", "high"),
    "error_rate": ("tests in error among those that pass the threshold at this level", "low"),
}
SHORT = {
    "auc": "AUC",
    "average_precision": "AP",
    "suggested_threshold": "suggested",
    "lost": "lost (Type I)",
    "spurious": "spurious (Type II)",
    "sign_flip": "sign flipped",
    "errors": "any error",
    "true_positive_rate": "recall",
    "false_positive_rate": "false positives",
    "error_rate": "error rate",
}
CURVES = ("true_positive_rate", "false_positive_rate", "precision", "error_rate")
MakeTable = Callable[[int, np.random.Generator], Microdata]
Settings = Sequence[tuple[str, int]]
COUNTED = ("generators", "originals", "anonymisations")
AREAS = ("auc", "average_precision")


@dataclass(frozen=True, eq=False)
class ScoreCurve:
    """Numbers of labels that pass when the threshold is each distinct score, from the highest: all (c,).

    thresholds: distinct scores, descending
    good, bad: labels that pass; the last of each are the totals where every score is finite
    all_good, all_bad: totals
    """

    thresholds: Floats
    good: Floats
    bad: Floats
    all_good: float
    all_bad: float

    @property
    def auc(self) -> float:
        """Return the area under the ROC curve: the probability that a good label scores above a bad one, ties counted
        by half.
        """
        if not (self.all_good and self.all_bad):
            raise NotComputable(f"there are no {'good' if not self.all_good else 'bad'} labels to compare with")
        true = np.concatenate([[0], self.good]) / self.all_good
        false = np.concatenate([[0], self.bad]) / self.all_bad
        return float(np.trapezoid(true, false))

    @property
    def average_precision(self) -> float:
        """Return the average precision, the sum over thresholds of (R_j - R_{j-1}) P_j."""
        if not self.all_good:
            raise NotComputable("there are no good labels to find")
        # Not interpolated: as scikit-learn's average_precision_score, which a test compares.
        steps = np.diff(self.good, prepend=0)
        return float(np.sum(steps * self.good / np.maximum(self.good + self.bad, 1)) / self.all_good)


def score_curve(scores: Floats, good: Floats, bad: Floats) -> ScoreCurve:
    """Return the curve of scores with their counts of good and bad labels, all (n,)."""
    thresholds, place = np.unique(-scores, return_inverse=True)
    passing = [np.cumsum(np.bincount(place, counts, len(thresholds))).astype(np.float64) for counts in (good, bad)]
    return ScoreCurve(-thresholds, passing[0], passing[1], float(np.sum(good)), float(np.sum(bad)))


def suggest_threshold(scores: Floats, tests: Floats, errors: Floats, limit: float, step: float = 0.01) -> float:
    """Return the smallest multiple t of ``step`` in [0, 1) such that at most a share ``limit`` of the tests scored at
    least t are in error.

    Raises NotComputable where no such t lets any test pass.
    """
    for t in np.arange(0, round(1 / step)) * step:
        # Multiples of 0.01 are no doubles; a score equal to the threshold passes.
        passing = scores >= t - 1e-12
        total = float(tests[passing].sum())
        if total and not is_above(float(errors[passing].sum()), limit * total):
            return round(float(t), 6)
    raise NotComputable(f"above no threshold below 1 are at most {limit:.0%} of the tests in error")


SCORES = {name: f"{key}.{output} of a quasi-identifier of a simulated table" for name, (key, output) in SOURCES.items()}
LABELS = {
    "generators": Label("Generators trained", "The study trained {value} generators."),
    "originals": Label("Original tables generated", "The study generated {value} original tables."),
    "anonymisations": Label("Anonymised tables tested", "The study scored and tested {value} anonymised tables."),
    "auc": Label(
        "Good labels scored above bad ones (AUC)",
        "The measure scores a good label above a bad one in {value} of pairs; 50 % is chance.",
        "Higher is better; 100 % separates good from bad labels.",
        "The measure hardly separates good from bad labels.",
        OTHER_MEASURE,
        "share",
    ),
    "average_precision": Label(
        "Average precision of the measure",
        "Averaged over recall, {value} of the labels that pass are good.",
        "Higher is better; 100 % means that only good labels pass.",
        "Too many labels that pass are bad.",
        OTHER_MEASURE,
        "share",
    ),
    "good": Label("Good labels among all", "Of all labels, {value} are good.", counts="share"),
    "suggested_threshold": Label(
        "Suggested threshold of the measure", "From a score of {value} on, at most 5 % of the tests err."
    ),
    "lost": Label(
        "Findings lost by anonymisation",
        "Of the tests, {value} are significant on the original alone.",
        "Lower is better; at 0 % no finding is lost.",
        "Anonymisation loses too many findings.",
        COARSENING,
        "share",
    ),
    "spurious": Label(
        "Spurious findings by anonymisation",
        "Of the tests, {value} are significant on the anonymised table alone.",
        "Lower is better; at 0 % no finding is spurious.",
        "Anonymisation makes too many spurious findings.",
        COARSENING,
        "share",
    ),
    "sign_flip": Label(
        "Findings reversed by anonymisation",
        "Of the tests, {value} are significant on both tables, in opposite directions.",
        "Lower is better; at 0 % no finding is reversed.",
        "Anonymisation reverses too many findings.",
        COARSENING,
        "share",
    ),
    "errors": Label(
        "Findings changed by anonymisation",
        "Of the tests, {value} differ in significance or sign from the original.",
        "Lower is better; at 0 % no finding changes.",
        "Anonymisation changes too many findings.",
        COARSENING,
        "share",
    ),
    "true_positive_rate": Label(
        "Good labels that pass, by threshold",
        "Of the good labels, {value} pass the threshold.",
        "Higher is better: the threshold rejects few good labels.",
        "The threshold rejects too many good labels.",
        OTHER_MEASURE,
        "share",
    ),
    "false_positive_rate": Label(
        "Bad labels that pass, by threshold",
        "Of the bad labels, {value} pass the threshold.",
        "Lower is better: the threshold rejects bad labels.",
        "The threshold accepts too many bad labels.",
        OTHER_MEASURE,
        "share",
    ),
    "precision": Label(
        "Good labels among those that pass",
        "Of the labels that pass the threshold, {value} are good.",
        "Higher is better: a label that passes is good.",
        "Too many labels that pass are bad.",
        OTHER_MEASURE,
        "share",
    ),
    "error_rate": Label(
        "Tests in error among those that pass",
        "Of the tests whose label passes the threshold, {value} err.",
        "Lower is better: tests of labels that pass are right.",
        "Too many tests of labels that pass err.",
        OTHER_MEASURE,
        "share",
    ),
}
LEVELS = np.round(np.arange(0, 1.005, 0.05), 2)


@dataclass(frozen=True, eq=False)
class _ScoredTests:
    """Scores of one measure, -inf where it has none, with numbers of tests and of errors: all (n,)."""

    scores: Floats
    tests: Floats
    errors: Floats

    @classmethod
    def from_rows(cls, rows: Sequence[Row]) -> _ScoredTests:
        """Create the scores and counts from result rows."""
        counts = [_agreement_of_row(row) for row in rows]
        return cls(
            np.array([-np.inf if row.value is None else row.value for row in rows], dtype=np.float64),
            np.array([count.tests for count in counts], dtype=np.float64),
            np.array([count.errors for count in counts], dtype=np.float64),
        )

    def select_groups(self, places: Integers, some: Sequence[int]) -> _ScoredTests:
        """Return those of some groups, given the group ``places`` (n,) of each."""
        own = np.isin(places, some)
        return _ScoredTests(self.scores[own], self.tests[own], self.errors[own])

    @property
    def score_curve(self) -> ScoreCurve:
        return score_curve(self.scores, self.tests - self.errors, self.errors)


def summarise_calibration(rows: Sequence[Row]) -> list[Row]:
    """Return areas, suggested thresholds, curves and error rates, computed from the rows of all simulations.

    Rows of areas have ``score`` (the measure) and ``generators``: "all", or the "best" or "worst" single one. Error
    rows have ``passed``: whether the anonymised table meets all of Lighthouse's thresholds.
    """
    scored = [row for row in rows if row.measure in SCORES and "tests" in row.params]
    if not scored:
        return []
    like = replace(scored[0], target="", draw=None, level=None, lower=None, upper=None, baseline=None, reason="")
    found = list(_count_rows(like, scored))
    for score in SCORES:
        own = [row for row in scored if row.measure == score]
        if own:
            found += [*_area_rows(like, score, own), *_curve_rows(like, score, own)]
    return [*found, *_error_rows(like, scored)]


def _summary_row(
    like: Row, name: str, value: float | Callable[[], float], *, level: float | None = None, **params: Any
) -> Row:
    """Return a row with this value, or with the reason why it cannot be computed."""
    row = replace(like, measure=name, params=params, level=level)
    try:
        return replace(row, value=float(value() if callable(value) else value), status="computed")
    except NotComputable as error:
        return replace(row, value=None, status="not computed", reason=error.reason)


def _jackknife_row(
    like: Row,
    name: str,
    value: Callable[[Sequence[int]], float],
    groups: int,
    *,
    level: float | None = None,
    **params: Any,
) -> Row:
    """Return a row over all simulations, with a jackknife interval over the ``groups`` generators.

    ``value`` computes it for some generators, numbered from 0. There is no interval for one generator, or where the
    value of the others is missing without one of them.
    """
    row = _summary_row(like, name, partial(value, range(groups)), level=level, **params)
    if row.value is None or groups < 2:
        return row
    try:
        # Simulations of one generator depend on each other, so whole generators are left out: the delete-one jackknife
        # (Tukey 1958) with ``groups`` - 1 degrees of freedom.
        without = [value([one for one in range(groups) if one != gone]) for gone in range(groups)]
    except NotComputable:
        return row
    spread = float(np.var(without)) * (groups - 1)
    lower, upper = bounded_interval(row.value, t_quantile(groups - 1, CONFIDENCE) * math.sqrt(spread), SHARE)
    return replace(row, lower=lower, upper=upper)


def _count_rows(like: Row, rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the numbers of generators, original tables and anonymisations."""
    yield _summary_row(like, "generators", len({row.params["generator"] for row in rows}))
    yield _summary_row(like, "originals", len({row.level for row in rows}))
    yield _summary_row(
        like, "anonymisations", len({(row.level, row.params["subset"], row.params["k"]) for row in rows})
    )


def _area_rows(like: Row, score: str, rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the share of good labels, the suggested threshold and the areas of one score."""
    labels = _ScoredTests.from_rows(rows)
    threshold = partial(suggest_threshold, labels.scores, labels.tests, labels.errors, ERRORS_ALLOWED)
    generators = sorted({row.params["generator"] for row in rows})
    places = np.array([generators.index(row.params["generator"]) for row in rows])

    def good(some: Sequence[int]) -> float:
        """Return the share of good labels of some generators."""
        own = labels.select_groups(places, some)
        return _share_or_not_computable(float(np.sum(own.tests - own.errors)), float(own.tests.sum()))

    yield _jackknife_row(like, "good", good, len(generators), score=score)
    yield _summary_row(like, "suggested_threshold", threshold, score=score)
    each = [labels.select_groups(places, [one]).score_curve for one in range(len(generators))]
    for name, area in (("auc", _auc_of), ("average_precision", _average_precision_of)):

        def area_over_originals(some: Sequence[int], area: Callable[[ScoreCurve], float] = area) -> float:
            """Return the area of the labels of some generators together."""
            return area(labels.select_groups(places, some).score_curve)

        yield _jackknife_row(like, name, area_over_originals, len(generators), score=score, generators="all")
        values = [value for value in map(_none_if_not_computable(area), each) if value is not None]
        if len(values) > 1:
            yield _summary_row(like, name, max(values), score=score, generators="best")
            yield _summary_row(like, name, min(values), score=score, generators="worst")


def _auc_of(one: ScoreCurve) -> float:
    return one.auc


def _average_precision_of(one: ScoreCurve) -> float:
    return one.average_precision


def _none_if_not_computable(area: Callable[[ScoreCurve], float]) -> Callable[[ScoreCurve], float | None]:
    """Return the function with None in place of NotComputable."""

    def value(one: ScoreCurve) -> float | None:
        """Return the area of a curve, or None."""
        try:
            return area(one)
        except NotComputable:
            return None

    return value


def _curve_rows(like: Row, score: str, rows: Sequence[Row]) -> Iterator[Row]:
    """Yield points of the ROC and PR curves and the error rate, at thresholds 0, 0.05, ..., 1."""
    labels = _ScoredTests.from_rows(rows)
    generators = sorted({row.params["generator"] for row in rows})
    each = [labels.select_groups(np.array([generators.index(row.params["generator"]) for row in rows]), [one])
            for one in range(len(generators))]  # fmt: skip
    all_bad = np.array([one.errors.sum() for one in each])
    all_good = np.array([one.tests.sum() for one in each]) - all_bad
    for level in LEVELS:
        bad = np.array([one.errors[one.scores >= level - 1e-12].sum() for one in each])
        good = np.array([one.tests[one.scores >= level - 1e-12].sum() for one in each]) - bad
        shares = {
            "true_positive_rate": (good, all_good),
            "false_positive_rate": (bad, all_bad),
            "precision": (good, good + bad),
            "error_rate": (bad, good + bad),
        }
        for name, (part, whole) in shares.items():

            def rate(some: Sequence[int], part: Floats = part, whole: Floats = whole) -> float:
                """Return the share over some generators together."""
                return _share_or_not_computable(float(part[list(some)].sum()), float(whole[list(some)].sum()))

            yield _jackknife_row(like, name, rate, len(generators), score=score, level=float(level))


def _share_or_not_computable(part: float, whole: float) -> float:
    """Return the share. Raises NotComputable where the whole is 0."""
    if not whole:
        raise NotComputable("there is no such label at this threshold")
    return part / whole


def _error_rows(like: Row, rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rate of each kind of error among tests on tables that meet all thresholds, and among those on the
    others (§4.2).
    """
    meets: dict[tuple[Any, ...], bool] = {}
    counts: dict[tuple[Any, ...], tuple[int, AgreementCounts]] = {}
    generators = sorted({row.params["generator"] for row in rows})
    for row in rows:
        table = (row.level, *(row.params[name] for name in ("subset", "k")))
        counts[(*table, row.target)] = generators.index(row.params["generator"]), _agreement_of_row(row)
        limit = THRESHOLDS.get(row.measure, -np.inf)
        kept = row.value is not None and not is_below(row.value, limit)
        # A measure without a value fails its threshold, unless it has none.
        meets[table] = meets.get(table, True) and (kept or limit == -np.inf)
    for passed in (True, False):
        own = [found for key, found in counts.items() if meets[key[:-1]] is passed]
        by = [sum((one for at, one in own if at == place), AgreementCounts()) for place in range(len(generators))]
        tests = sum(one.tests for one in by)
        for name in ("lost", "spurious", "sign_flip", "errors"):

            def rate(some: Sequence[int], name: str = name, by: Sequence[AgreementCounts] = by) -> float:
                """Return the share of errors of this kind over some generators together."""
                return _share_or_not_computable(
                    sum(getattr(by[at], name) for at in some), sum(by[at].tests for at in some)
                )

            yield _jackknife_row(like, name, rate, len(generators), passed=passed, tests=tests)


def _agreement_of_row(row: Row) -> AgreementCounts:
    return AgreementCounts(*(int(row.params[name]) for name in ("tests", "lost", "spurious", "sign_flip")))


def check_generator(
    key: str, settings: Mapping[str, int], schema: Schema, variables: Sequence[str], place: str
) -> None:
    """Raise BadInput where the synthesis method does not exist, cannot make one of the variables, or lacks one of the
    settings.
    """
    method = find_method(key, f"{place}.generator", ("synthesis",))
    for name in variables:
        if method.synthesis.targets and schema[name].kind not in method.synthesis.targets:
            raise BadInput(f"{place}.generator", f'{key} cannot make "{name}", which is {schema[name].kind}')
    _generator_spec(method, variables[:-1], tuple(settings.items()), f"{place}.generator_settings")


def check_trainable(
    data: Microdata, key: str, settings: Mapping[str, int], variables: Sequence[str], place: str
) -> None:
    """Raise BadInput where the generator cannot learn one of these variables from the data, by the method's own check."""
    method = find_method(key, f"{place}.generator", ("synthesis",))
    for before, name in enumerate(variables):
        if method.check is not None:
            spec = _generator_spec(method, variables[:before], tuple(settings.items()), place)
            method.check_data(data, (name,), spec, f"{place}.generator")


@lru_cache(maxsize=1)
def train_generator(data: Microdata, key: str, settings: Settings, variables: tuple[str, ...], seed: int) -> MakeTable:
    """Return a function of size and generator that draws tables of the variables, from a method fitted to a bootstrap
    sample.

    What it learns depends on ``seed`` alone, which the study draws from its keyed stream. A size is at most that of the
    data.
    """
    # Cached with a size of one: originals that share a generator are computed one after another, and train it once.
    rng = np.random.default_rng(seed)
    schema = Schema(tuple(data.schema[name] for name in variables))
    chosen = data.frame[list(variables)].iloc[rng.integers(len(data), size=len(data))].reset_index(drop=True)
    sample, method = Microdata(schema, chosen), find_method(key, "", ("synthesis",))
    run = Run(rng.spawn(1)[0])
    if method.synthesis.bulk_fitting.learn_whole_table is not None:
        found: MakeTable = method.synthesis.bulk_fitting.learn_whole_table(
            sample, _generator_spec(method, (), settings, key), run
        )
        return found
    return _sequential_generator(sample, method, settings, run)


def _sequential_generator(sample: Microdata, method: Method, settings: Settings, run: Run) -> MakeTable:
    """Return a function that draws each variable given those before it."""
    names = sample.schema.names
    specs = [_generator_spec(method, names[:place], settings, method.key) for place in range(len(names))]
    fits: list[Fit] = [
        method.fit(sample, (name,), spec, Run(run.rng.spawn(1)[0]), 1) for name, spec in zip(names, specs, strict=True)
    ]

    def make(size: int, rng: np.random.Generator) -> Microdata:
        """Draw a table of ``size`` records."""
        made = Microdata(sample.schema, sample.frame, "synthetic")
        for name, spec, fit in zip(names, specs, fits, strict=True):
            values = method.draw_targets(fit, spec, (name,), sample, made, 0, rng.spawn(1)[0])[name]
            made = made.with_columns({name: to_column(values, sample, sample.schema[name], method.key)}, "synthetic")
        kept = np.sort(rng.choice(len(made), size, replace=False))
        return Microdata(sample.schema, made.frame.iloc[kept].reset_index(drop=True), "synthetic")

    return make


def _generator_spec(method: Method, before: Sequence[str], settings: Settings, place: str) -> Spec:
    """Return the method's settings, with the variables ``before`` as predictors where it has any."""
    table: dict[str, Any] = dict(settings)
    if any(info.name == "predictors" for info in method.spec.params()):
        table["predictors"] = list(before)
    return method.spec.from_table(table, place)


def check_data(data: Microdata, target: str, spec: CalibrationSpec, place: str) -> None:
    """Raise BadInput where a table would have more records than the data, or fewer than the largest k."""
    require_present(data, (*spec.quasi_identifiers, *([spec.sensitive] if spec.sensitive else [])), place)
    if max(spec.sizes, default=0) > len(data):
        raise BadInput(f"{place}.sizes", f"at most {len(data):,}, the records of the data")
    if max(spec.ks) > min(spec.sizes, default=len(data)):
        raise BadInput(f"{place}.ks", "a k is larger than a table")
    full = spec.for_release(data.schema, ())
    check_trainable(
        data, spec.generator, spec.generator_settings, (*full.quasi_identifiers, str(full.sensitive)), place
    )


def _simulate(
    original: Microdata, spec: CalibrationSpec, head: Mapping[str, Any], rng: np.random.Generator, run: Run
) -> Iterator[Estimate]:
    """Yield the scores and test outcomes of every anonymisation of one original table."""
    assert spec.sensitive is not None
    tests = OriginalTests.from_table(original, spec.sensitive, spec.quasi_identifiers, spec.smallest_group)
    for subset in range(spec.subsets):
        names, suppressed = _choose_variables(spec, rng)
        for k in spec.ks:
            params = {**head, "subset": subset, "k": k, "max_suppressed": suppressed}
            options = {"max_suppressed": suppressed} if suppressed else {}
            by = find_anonymiser(spec.anonymisation, original.schema, names, k, options, "study")
            child = replace(run, rng=rng.spawn(1)[0], report=ignore_progress)
            released = anonymise_sample(original, by, child)
            labels = {
                name: tests.compare_with_release(released, name, spec.alpha) for name in names if name in tests.columns
            }
            yield from _score_variables(original, released, names, labels, spec, params, child)
            done = subset * len(spec.ks) + spec.ks.index(k) + 1
            run.report(Progress(done, spec.subsets * len(spec.ks), "anonymisations"))


def _choose_variables(spec: CalibrationSpec, rng: np.random.Generator) -> tuple[tuple[str, ...], float]:
    """Draw a random subset of the quasi-identifiers, in their order, and the share of records that may be suppressed."""
    many = int(rng.integers(1, len(spec.quasi_identifiers) + 1))
    places = np.sort(rng.choice(len(spec.quasi_identifiers), many, replace=False))
    return tuple(spec.quasi_identifiers[place] for place in places), float(rng.choice(spec.max_suppressed))


def _score_variables(
    original: Microdata,
    released: Microdata,
    names: Sequence[str],
    labels: Mapping[str, AgreementCounts],
    spec: CalibrationSpec,
    params: Mapping[str, Any],
    run: Run,
) -> Iterator[Estimate]:
    """Yield every measure's score of each tested quasi-identifier, with the outcome of the tests."""
    numerical = [name for name in names if original.schema[name].kind in NUMBERS]
    found: dict[tuple[str, str], float | None] = {}
    for measure, (key, output) in SOURCES.items():
        if measure == "rilm_categorical" or numerical or measure == "non_suppressed":
            table = _measure_settings(key, names, numerical, spec)
            values = quality_scores(key, original, released, table, run)
            whole = values.get((output, ""))
            found |= {(measure, name): values.get((output, name), whole) for name in names}
    for name, outcome in labels.items():
        for measure in MEASURES_OF["numerical" if name in numerical else "categorical"]:
            value, counts = found[measure, name], {**params, **asdict(outcome)}
            reason = "" if value is not None else "the measure cannot be computed here"
            yield Estimate(measure, value, name, reason=reason, params=counts)


def _measure_settings(
    key: str, names: Sequence[str], numerical: Sequence[str], spec: CalibrationSpec
) -> dict[str, Any]:
    """Return the settings of a data quality method for these quasi-identifiers."""
    tables: dict[str, dict[str, Any]] = {
        "quality.rilm": {"variables": list(names), "quasi_identifiers": list(names)},
        "quality.ilm": {"quasi_identifiers": list(names)},
        "quality.non_suppressed": {},
    }
    table: dict[str, Any] = tables.get(key, {"variables": list(numerical)})
    return {**table, "samples": spec.samples} if "nmi" in key else table


@dataclass(frozen=True, kw_only=True, slots=True)
class CalibrationSpec(StudySpec):
    """Settings of the calibration: how originals are generated, how they are anonymised, and what is tested on them."""

    sensitive: Annotated[
        str | None,
        Param(
            "variable whose groups are compared; left out, the first of role sensitive that has levels",
            names="variables",
        ),
    ] = None
    quasi_identifiers: Annotated[
        QuasiIdentifiers, Variant("variables to choose quasi-identifiers from; default: all quasi-identifiers")
    ] = ()
    generator: Annotated[str, Param("synthesis method that makes the original tables")] = "synthesis.cart"
    generator_settings: Annotated[
        Mapping[str, int], Param("settings of that method that are whole numbers, such as { minbucket = 7 }")
    ] = field(default_factory=dict)
    generators: Annotated[int, Param("generators, each trained on a bootstrap sample (the paper: 20)", ge=1)] = 5
    originals: Annotated[int, Param("original tables from each generator", ge=1)] = 1
    sizes: Annotated[
        tuple[int, ...],
        Param("records of an original table, one chosen at random; left out, as many as the data", ge=2),
    ] = ()
    subsets: Annotated[int, Param("sets of quasi-identifiers chosen at random from each table", ge=1)] = 2
    ks: Annotated[tuple[int, ...], Param("smallest classes of the anonymisations", ge=2)] = (2, 5, 10, 25, 100)
    anonymisation: Annotated[str, Param("anonymisation method")] = "anonymisation.mondrian"
    max_suppressed: Annotated[
        tuple[float, ...], Param("shares of records that may be suppressed, one chosen at random", ge=0, lt=1)
    ] = (0.0,)
    alpha: Annotated[float, Param("level of the significance tests", gt=0, lt=1)] = 0.05
    smallest_group: Annotated[int, Param("fewest records of a group that is tested, and of those outside it", ge=2)] = (
        30
    )
    samples: Annotated[int, Param("samples of 10,000 records for the mutual information", ge=1)] = 1

    def grid(self) -> tuple[float, ...]:
        """Return the numbers of the simulations, one original table each."""
        return tuple(map(float, range(self.generators * self.originals)))

    def for_release(self, schema: Schema, released: tuple[str, ...]) -> Self:
        """Return the parameters with sensitive variable and quasi-identifiers filled in."""
        found = [v.name for v in schema if v.role is Role.SENSITIVE and v.kind.has_levels]
        sensitive = self.sensitive or next(iter(found), None)
        known = tuple(
            name for name in self.quasi_identifiers or schema.names_by_role(Role.QUASI_IDENTIFIER) if name != sensitive
        )
        return replace(self, sensitive=sensitive, quasi_identifiers=known)

    def check_release(self, schema: Schema, released: tuple[str, ...], place: str) -> None:
        """Raise BadInput where variables, generator and anonymisation do not fit each other."""
        full = self.for_release(schema, released)
        if full.sensitive is None or not schema[full.sensitive].kind.has_levels:
            raise BadInput(f"{place}.sensitive", "name a variable that has levels: its groups are compared")
        if not full.quasi_identifiers:
            raise BadInput(
                f"{place}.quasi_identifiers", 'name some variables, or give some the role "quasi_identifier"'
            )
        variables = (*full.quasi_identifiers, full.sensitive)
        check_generator(self.generator, self.generator_settings, schema, variables, place)
        find_anonymiser(
            self.anonymisation,
            select_schema(schema, variables),
            full.quasi_identifiers,
            max(self.ks, default=2),
            {},
            place,
        )


@study_method(
    "Calibration of data quality measures",
    spec=CalibrationSpec,
    source="Measuring Data Quality for Project Lighthouse §4",
    outputs=(
        *(
            Output(name, meaning, "high", intermediate=True, range=AT_MOST_ONE if name == "one_minus_ilm" else SHARE)
            for name, meaning in SCORES.items()
        ),
        *(
            Output(
                name,
                meaning,
                goal,
                range=AT_LEAST_ONE if name in COUNTED else SHARE,
                short=SHORT.get(name, ""),
                estimated=name not in COUNTED,
                label=LABELS[name],
                study=StudyOutput(
                    answer=name not in CURVES,
                    on_axis=name == "suggested_threshold",
                    spread="generators" if name in AREAS else "",
                ),
            )
            for name, (meaning, goal) in SUMMARIES.items()
        ),
    ),
    check=check_data,
    summarise=summarise_calibration,
    axis=Axis(
        "threshold",
        "the least score that passes",
        heading="How well measures of data quality tell",
        curve="score",
        question="Which score of data quality tells good tables from bad ones?",
    ),
    planes=(
        Plane("ROC", "false_positive_rate", "true_positive_rate", "diagonal"),
        Plane(
            "PR",
            "true_positive_rate",
            "precision",
            "good",
            label="good labels that pass (recall)",
        ),
        Plane("Error rate above the threshold", "", "error_rate"),
    ),
    split=AnswerColumns(
        "passed",
        "Errors of the tests, by whether tables meet all limits",
        "share of tests",
        ((True, "tables that pass"), (False, "the others")),
        count="tests",
    ),
)
def calibration(
    confidential: Microdata, releases: Sequence[Microdata], point: float, spec: CalibrationSpec, run: Run
) -> StudyPoint:
    """Carry out one simulation: an original table, anonymised in every way, scored and tested.

    The releases are not used. An estimate is the score by a measure of one quasi-identifier of one anonymised table;
    its params count the ``tests`` on it and those ``lost``, ``spurious`` and ``sign_flip``.
    """
    simulation = int(point)
    generator = simulation // spec.originals
    # All points have the same generator, so every simulation finds the same children: first one for each generator,
    # then one for each simulation.
    children = run.rng.spawn(spec.generators + len(spec.grid()))
    rng = children[spec.generators + simulation]
    variables = (*spec.quasi_identifiers, str(spec.sensitive))
    size = int(rng.choice(spec.sizes or [len(confidential)]))
    settings, seed = tuple(spec.generator_settings.items()), int(children[generator].integers(2**63))
    tables = train_generator(confidential, spec.generator, settings, variables, seed)
    original = replace(tables(size, rng), origin="confidential")
    found = list(_simulate(original, spec, {"generator": generator, "size": len(original)}, rng, run))
    return point_of_own_tables(found, releases)
