"""What the simulations of ``studies.calibration`` say together: how well each measure tells good tables from bad ones.

Scores are classifiers of good cases: ROC, precision and recall, and a threshold that keeps the errors few. Cases may stand
for several labels: ``good`` and ``bad`` (n,) count them. A score of -inf passes no threshold.
The areas are those of scikit-learn (a test holds that), from counts rather than a label each, and with the reason where
there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..arrays import Floats
from ..errors import NotComputable
from ..methods.results import Goal
from ..methods.rows import Row
from ..quality import nmi_v1, non_suppressed, pearson, rilm
from ._group_tests import Agreement


@dataclass(frozen=True, eq=False)
class Curve:
    """What passes when the threshold is each distinct score, from the highest: all (c,).

    ``good`` and ``bad`` labels that pass; the last of each are the totals when every score is finite.
    """

    thresholds: Floats
    good: Floats
    bad: Floats
    all_good: float
    all_bad: float

    @property
    def auc(self) -> float:
        """Area under the ROC curve: the chance that a good label scores above a bad one, ties by half."""
        if not (self.all_good and self.all_bad):
            raise NotComputable(f"there are no {'good' if not self.all_good else 'bad'} labels to tell apart")
        true = np.concatenate([[0], self.good]) / self.all_good
        false = np.concatenate([[0], self.bad]) / self.all_bad
        return float(np.trapezoid(true, false))

    @property
    def average_precision(self) -> float:
        """Sum over thresholds of (R_j - R_{j-1}) P_j, without interpolation."""
        if not self.all_good:
            raise NotComputable("there are no good labels to find")
        steps = np.diff(self.good, prepend=0)
        return float(np.sum(steps * self.good / np.maximum(self.good + self.bad, 1)) / self.all_good)


def curve(scores: Floats, good: Floats, bad: Floats) -> Curve:
    """The curve of scores with their counts of labels, all (n,)."""
    thresholds, place = np.unique(-scores, return_inverse=True)
    passing = [np.cumsum(np.bincount(place, counts, len(thresholds))).astype(np.float64) for counts in (good, bad)]
    return Curve(-thresholds, passing[0], passing[1], float(np.sum(good)), float(np.sum(bad)))


def suggested_threshold(scores: Floats, tests: Floats, errors: Floats, limit: float, step: float = 0.01) -> float:
    """The smallest t in [0, 1), a multiple of ``step``, such that of the tests scored at least t at most ``limit`` err.

    Raises NotComputable where no such t lets any test pass.
    """
    for t in np.arange(0, round(1 / step)) * step:
        passing = scores >= t - 1e-12
        total = float(tests[passing].sum())
        if total and float(errors[passing].sum()) <= limit * total:
            return round(float(t), 6)
    raise NotComputable(f"above no threshold below 1 are at most {limit:.0%} of the tests in error")


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

SCORES = {name: f"{key}.{output} of a quasi-identifier of a simulated table" for name, (key, output) in SOURCES.items()}
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
LEVELS = np.round(np.arange(0, 1.005, 0.05), 2)


@dataclass(frozen=True, eq=False)
class _Labels:
    """Scores of one measure, -inf where it has none, and the tests each speaks of: all (n,)."""

    scores: Floats
    tests: Floats
    errors: Floats

    @classmethod
    def of(cls, rows: Sequence[Row]) -> _Labels:
        counts = [_agreement(row) for row in rows]
        return cls(
            np.array([-np.inf if row.value is None else row.value for row in rows], dtype=np.float64),
            np.array([count.tests for count in counts], dtype=np.float64),
            np.array([count.errors for count in counts], dtype=np.float64),
        )

    @property
    def curve(self) -> Curve:
        return curve(self.scores, self.tests - self.errors, self.errors)


def calibrated(rows: Sequence[Row]) -> list[Row]:
    """Areas, suggested thresholds, curves and rates of error from the rows of all simulations.

    Rows of areas have ``score`` (of which measure) and ``generators``: "all", or the "best" or "worst" one by itself.
    Error rows have ``passed``: whether the anonymised table meets all of Lighthouse's thresholds.
    """
    scored = [row for row in rows if row.measure in SCORES and "tests" in row.params]
    if not scored:
        return []
    like = replace(scored[0], target="", draw=None, level=None, lower=None, upper=None, baseline=None, reason="")
    found = list(_counts(like, scored))
    for score in SCORES:
        own = [row for row in scored if row.measure == score]
        if own:
            found += [*_areas(like, score, own), *_curves(like, score, _Labels.of(own))]
    return [*found, *_error_table(like, scored)]


def _row(like: Row, name: str, value: float | Callable[[], float], *, level: float | None = None, **params: Any) -> Row:
    row = replace(like, measure=name, params=params, level=level)
    try:
        return replace(row, value=float(value() if callable(value) else value), status="computed")
    except NotComputable as error:
        return replace(row, value=None, status="not computed", reason=error.reason)


def _counts(like: Row, rows: Sequence[Row]) -> Iterator[Row]:
    yield _row(like, "generators", len({row.params["generator"] for row in rows}))
    yield _row(like, "originals", len({row.level for row in rows}))
    yield _row(like, "anonymisations", len({(row.level, row.params["subset"], row.params["k"]) for row in rows}))


def _areas(like: Row, score: str, rows: Sequence[Row]) -> Iterator[Row]:
    labels = _Labels.of(rows)
    threshold = partial(suggested_threshold, labels.scores, labels.tests, labels.errors, ERRORS_ALLOWED)
    yield _row(
        like,
        "good",
        partial(_share, float(np.sum(labels.tests - labels.errors)), float(labels.tests.sum())),
        score=score,
    )
    yield _row(like, "suggested_threshold", threshold, score=score)
    generators = sorted({row.params["generator"] for row in rows})
    each = [_Labels.of([row for row in rows if row.params["generator"] == one]).curve for one in generators]
    for name, area in (("auc", _auc), ("average_precision", _average_precision)):
        yield _row(like, name, partial(area, labels.curve), score=score, generators="all")
        values = [value for value in map(_or_none(area), each) if value is not None]
        if len(values) > 1:
            yield _row(like, name, max(values), score=score, generators="best")
            yield _row(like, name, min(values), score=score, generators="worst")


def _auc(one: Curve) -> float:
    return one.auc


def _average_precision(one: Curve) -> float:
    return one.average_precision


def _or_none(area: Callable[[Curve], float]) -> Callable[[Curve], float | None]:
    def value(one: Curve) -> float | None:
        try:
            return area(one)
        except NotComputable:
            return None

    return value


def _curves(like: Row, score: str, labels: _Labels) -> Iterator[Row]:
    """Points of the ROC and PR curves and the rate of error, at thresholds 0, 0.05, ..., 1."""
    all_bad = float(labels.errors.sum())
    all_good = float(labels.tests.sum()) - all_bad
    for level in LEVELS:
        passing = labels.scores >= level - 1e-12
        bad = float(labels.errors[passing].sum())
        good = float(labels.tests[passing].sum()) - bad
        shares = {
            "true_positive_rate": (good, all_good),
            "false_positive_rate": (bad, all_bad),
            "precision": (good, good + bad),
            "error_rate": (bad, good + bad),
        }
        for name, (part, whole) in shares.items():
            yield _row(like, name, partial(_share, part, whole), score=score, level=float(level))


def _share(part: float, whole: float) -> float:
    if not whole:
        raise NotComputable("there is no such label at this threshold")
    return part / whole


def _error_table(like: Row, rows: Sequence[Row]) -> Iterator[Row]:
    """Rates of each error among the tests on tables that meet all thresholds, and among those on the others (§4.2)."""
    meets: dict[tuple[Any, ...], bool] = {}
    counts: dict[tuple[Any, ...], Agreement] = {}
    for row in rows:
        table = (row.level, *(row.params[name] for name in ("subset", "k")))
        counts[(*table, row.target)] = _agreement(row)
        limit = THRESHOLDS.get(row.measure, -np.inf)
        meets[table] = meets.get(table, True) and (row.value if row.value is not None else -np.inf) >= limit
    for passed in (True, False):
        total = sum((count for key, count in counts.items() if meets[key[:-1]] is passed), Agreement())
        kinds = {"lost": total.lost, "spurious": total.spurious, "sign_flip": total.sign_flip, "errors": total.errors}
        for name, count in kinds.items():
            yield _row(like, name, partial(_share, count, total.tests), passed=passed, tests=total.tests)


def _agreement(row: Row) -> Agreement:
    return Agreement(*(int(row.params[name]) for name in ("tests", "lost", "spurious", "sign_flip")))
