"""Coverage of 95 % intervals from released datasets, by how the datasets were made, beside the rules of earlier versions.

    python tests/benchmarks/interval_coverage.py [--repetitions 400] [--lines TEXT] [--seed 1] [--csv FILE]

Each line draws a sample of a population whose values are known, makes 20 datasets by a recipe of the product, and counts how often
the product's interval from the first 1, 2, 5 and 20 of them covers: 400 times, so that a coverage has a standard error of 1.1
points. Estimates and variances of single datasets are computed here, in closed form. Columns: n_syn / n, the number of
datasets, the estimand, the coverage, the share of repetitions without an interval, and as controls that must fail somewhere the
rules before: T_p = u + b/m (Reiter 2003), T_f = (1 + 1/m) b - u with the adjusted variance where it is negative (Raghunathan,
Reiter & Rubin 2003), and the mean of the u alone where there is one dataset. Of noisy margins they are those of the m datasets,
and of noisy_share and noisy_mean the normal interval.

A coverage more than three standard errors (3.3 points) outside .93 to .97 is marked, and the program then ends with status 1.

``--noisy-shares`` counts instead how often ``noisy_share`` covers, for 50, 200 and 2,000 records, rho .015, 3 and 20.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logit
from scipy.stats import norm, t
from threadpoolctl import threadpool_limits

from sfumato.engine.data.arrays import Floats
from sfumato.engine.data.intervals import Range
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.provenance import ReleaseProvenance
from sfumato.engine.errors import NotComputable
from sfumato.engine.execution.combining import OTHER_THAN_CONFIDENTIAL
from sfumato.engine.execution.tasks import fit_model, fit_rows
from sfumato.engine.margins.consistency import MeasuredMargin
from sfumato.engine.margins.domain import Domain
from sfumato.engine.margins.intervals import estimate_noisy_mean
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.provenance import release_provenance
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.statistics.combining import combine_datasets

LOWEST, HIGHEST, LEVEL = 0.93, 0.97, 0.95
Z = float(norm.isf((1 - LEVEL) / 2))
RECORDS, BINARY_RECORDS = 200, 400
FEW_RECORDS, NOISES, SHARES = (50, 200, 2000), (0.015, 3.0, 20.0), (0.02, 0.1, 0.3, 0.5)

NUMBERS = {"x": {"kind": "continuous"}, "y": {"kind": "continuous"}}
TRUTH_OF_NUMBERS = {"mean": 2.0, "intercept": 1.5, "x": 0.5}
ANSWERS = {name: {"kind": "binary", "levels": ["0", "1"]} for name in ("a", "b")}
TRUTH_OF_ANSWERS = {"mean": 0.45, "intercept": float(logit(0.3)), "a=1": float(logit(0.6) - logit(0.3))}
X_TREE, Y_TREE = {"target": "x", "method": "cart"}, {"target": "y", "method": "cart", "predictors": ["x"]}
X_LINE = {"target": "x", "method": "linear_regression", "prior_sd": 100.0}
Y_LINE = {"target": "y", "method": "linear_regression", "predictors": ["x"], "prior_sd": 100.0}

Interval = tuple[float, float] | None
Columns = dict[str, Floats]
"""Values of each variable of a table, (n,): numbers, or 0 and 1 of an answer."""


def numbers_sample(rng: np.random.Generator) -> pd.DataFrame:
    """x ~ N(1, 1) and y ~ N(1.5 + x / 2, 1)."""
    x = rng.normal(1, 1, RECORDS)
    return pd.DataFrame({"x": x, "y": 1.5 + x / 2 + rng.normal(size=RECORDS)})


def answers_sample(rng: np.random.Generator) -> pd.DataFrame:
    """a is 1 for half of the population, b for 30 % without and 60 % with it; c is 0 to 19, each as often."""
    a = rng.integers(0, 2, BINARY_RECORDS)
    b = rng.random(BINARY_RECORDS) < np.where(a, 0.6, 0.3)
    return pd.DataFrame({"a": a.astype(str), "b": b.astype(int).astype(str), "c": rng.integers(0, 20, BINARY_RECORDS)})


def given_datasets(data: Microdata, m: int, ratio: float, rng: np.random.Generator) -> list[Columns]:
    """Datasets of another program: x kept, as often as the ratio says or of some records, and y by a line fitted once."""
    x, y = data.numbers("x"), data.numbers("y")
    slope, intercept = np.polyfit(x, y, 1)
    sigma = float(np.sqrt(np.sum((y - intercept - slope * x) ** 2) / (len(x) - 2)))
    found = []
    for _ in range(m):
        kept = np.tile(x, int(ratio)) if ratio >= 1 else rng.choice(x, int(ratio * len(x)), replace=False)
        found.append({"x": kept, "y": intercept + slope * kept + sigma * rng.normal(size=len(kept))})
    return found


def drawn_datasets(recipe: Recipe, data: Microdata, fits: Sequence[Fit], rng: np.random.Generator) -> list[Columns]:
    """Datasets by the draw functions of the recipe's methods, without what else a run does with them."""
    own = {name: data.numbers(name) for name in data.schema.names}
    found = []
    for draw in range(recipe.m):
        columns, released = dict(own), data
        for step, fit in zip(recipe.synthesis, fits, strict=True):
            if step is not recipe.synthesis[0]:
                before = {name: pd.Series(columns[name]) for name in recipe.synthesis[0].targets}
                released = data.with_columns(before, "synthetic")
            values = step.method.draw_targets(
                fit, step.spec, step.targets, data, released, draw, rng, recipe.form.records
            )
            columns |= {name: np.asarray(one, dtype=np.float64) for name, one in values.items()}
        found.append(columns)
    return found


@dataclass(frozen=True)
class Line:
    """One way to make a release.

    name: what it is called
    steps: tables of its synthesis steps; none where another program makes the datasets
    ratio: n_syn / n
    datasets: numbers of datasets
    """

    name: str
    steps: tuple[Mapping[str, Any], ...] = ()
    ratio: float = 1.0
    datasets: tuple[int, ...] = (1, 2, 5, 20)

    def to_recipe(self, m: int) -> Recipe:
        release: dict[str, Any] = {"m": m}
        if not self.steps:
            release["released"] = ["y"]
        elif self.ratio != 1:
            release["records"] = int(BINARY_RECORDS * self.ratio)
        variables: dict[str, Any] = dict(ANSWERS if self.has_answers else NUMBERS)
        if any("c" in step["target"] for step in self.steps):
            variables["c"] = {"kind": "count", "bounds": [0, 19]}
        measure = [] if self.steps else [{"method": "utility.ecdf"}]
        return Recipe.from_table(
            {"variables": variables, "release": release, "synthesis": [*self.steps], "measure": measure}
        )

    @property
    def has_answers(self) -> bool:
        """Whether the population is that of the answers, not of the numbers."""
        return any("a" in step["target"] for step in self.steps)

    @property
    def truths(self) -> dict[str, float]:
        return TRUTH_OF_ANSWERS if self.has_answers else TRUTH_OF_NUMBERS


def lines() -> Iterator[Line]:
    """Every line of the table."""
    for epsilon in (0.5, 2.0, 10.0):
        step = {"target": ["a", "b", "c"], "method": "margins", "epsilon": epsilon, "margins": ["a : b"]}
        yield Line(f"margins, epsilon {epsilon:g}", ({**step, "bins": {"c": "width 5"}},), datasets=(5,))
    step = {"target": ["a", "b"], "method": "margins", "limit": 10, "margins": ["a : b"]}
    yield Line("margins, rounded", (step,), datasets=(5,))
    yield Line("full, relations lost", ({"target": ["x", "y"], "method": "marginal_bootstrap"},), datasets=(5,))
    for ratio, size in ((4.0, "larger"), (0.25, "smaller")):
        yield Line(f"partial, {size}, of another program", ratio=ratio)
    yield Line("partial, regression", (Y_LINE,))
    yield Line("partial, tree", (Y_TREE,))
    yield Line("full, regressions", (X_LINE, Y_LINE))
    yield Line("full, trees", (X_TREE, Y_TREE))
    yield Line("full, trees of bootstrap samples", ({**X_TREE, "proper": True}, {**Y_TREE, "proper": True}))
    yield Line("full, tree and regression", (X_TREE, Y_LINE))
    for ratio, size in ((4.0, "larger"), (0.25, "smaller")):
        for parameters in ("drawn", "mle"):
            step = {"target": ["a", "b"], "method": "sequential_logistic", "parameters": parameters}
            yield Line(f"full, {size}, logits {parameters}", (step,), ratio)


def estimates_of_table(columns: Columns) -> tuple[Floats, Floats]:
    """Estimates and variances (3,) of the mean of the response and of the coefficients, in the order of the truths."""
    if "a" in columns:
        a, b = columns["a"], columns["b"]
        counts = np.array([[np.sum((a == i) & (b == j)) for j in (0, 1)] for i in (0, 1)], dtype=np.float64)
        share, odds, noise = b.mean(), np.log(counts[:, 1] / counts[:, 0]), (1 / counts).sum(axis=1)
        return np.array([share, odds[0], odds[1] - odds[0]]), np.array(
            [share * (1 - share) / (len(b) - 1), noise[0], noise.sum()]
        )
    x, y = columns["x"], columns["y"]
    n, centred = len(x), x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    intercept = float(y.mean() - slope * x.mean())
    sigma2 = float(np.sum((y - intercept - slope * x) ** 2) / (n - 2))
    of_slope = sigma2 / float(centred @ centred)
    return np.array([y.mean(), intercept, slope]), np.array(
        [y.var(ddof=1) / n, sigma2 / n + of_slope * x.mean() ** 2, of_slope]
    )


def partial_rule(q: Floats, u: Floats, ratio: float) -> Interval:
    """Reiter's T_p = u + b/m."""
    m, b = len(q), float(np.var(q, ddof=1))
    total = u.mean() + b / m
    degrees = (m - 1) * (total / (b / m)) ** 2 if b else np.inf
    return _interval(q, total, degrees)


def full_rule(q: Floats, u: Floats, ratio: float) -> Interval:
    """T_f = (1 + 1/m) b - u; where it is negative or has less than one degree of freedom, n_syn / n times u."""
    m, b = len(q), float(np.var(q, ddof=1))
    total = (1 + 1 / m) * b - u.mean()
    degrees = (m - 1) * (1 - u.mean() / ((1 + 1 / m) * b)) ** 2 if total > 0 else 0.0
    return _interval(q, total, degrees) if degrees >= 1 else _interval(q, ratio * u.mean(), np.inf)


def naive_rule(q: Floats, u: Floats, ratio: float) -> Interval:
    """The datasets as if they had been collected."""
    return _interval(q, u.mean(), np.inf)


def _interval(q: Floats, total: float, degrees: float) -> Interval:
    half = t.isf((1 - LEVEL) / 2, degrees) * np.sqrt(total)
    return float(q.mean() - half), float(q.mean() + half)


OLD_RULES: dict[str, Callable[[Floats, Floats, float], Interval]] = {
    "T_p": partial_rule,
    "T_f": full_rule,
    "u": naive_rule,
}


@dataclass
class Count:
    """Intervals of one estimand.

    covering, intervals, repetitions: how many cover, of how many, of how many repetitions
    old: how many cover by each earlier rule
    reason: why the last repetition without an interval has none
    """

    covering: int = 0
    intervals: int = 0
    repetitions: int = 0
    old: dict[str, int] = field(default_factory=dict)
    reason: str = ""

    def add(self, interval: Interval, reason: str, truth: float) -> None:
        self.repetitions += 1
        if interval is None:
            self.reason = reason
            return
        self.intervals += 1
        self.covering += interval[0] <= truth <= interval[1]

    def add_old(self, name: str, interval: Interval, truth: float) -> None:
        self.old[name] = self.old.get(name, 0) + int(interval is not None and interval[0] <= truth <= interval[1])

    @property
    def coverage(self) -> float:
        return self.covering / self.intervals if self.intervals else float("nan")

    @property
    def error(self) -> float:
        """Three binomial standard errors of a coverage of 95 %."""
        return 3 * float(np.sqrt(LEVEL * (1 - LEVEL) / self.intervals)) if self.intervals else 0.0

    @property
    def is_right(self) -> bool:
        """Whether the coverage is that of a 95 % interval within chance, or nearly no repetition has an interval."""
        if self.intervals < self.repetitions / 20:
            return True
        # There are some 170 rows: two standard errors would reject one of them in most runs.
        return LOWEST - self.error < self.coverage < HIGHEST + self.error


def coverage_of_line(line: Line, repetitions: int, seed: int) -> dict[tuple[int, str], Count]:
    """The counts of a line by number of datasets and estimand."""
    most, found = max(line.datasets), dict[tuple[int, str], Count]()
    response = "b" if line.has_answers else "y"
    plan = line.to_recipe(most)
    for repetition in range(repetitions):
        rng = np.random.default_rng([seed, repetition])
        recipe = replace(plan, seed=repetition)
        sample = (answers_sample if line.has_answers else numbers_sample)(rng)
        data = conform_to_schema(sample[list(recipe.schema.names)], recipe.schema)
        fits = [fit_model(recipe, item, data, key=PUBLIC) for item in range(len(recipe.synthesis))]
        datasets = drawn_datasets(recipe, data, fits, rng) if fits else given_datasets(data, most, line.ratio, rng)
        confidential = estimates_of_table({name: data.numbers(name) for name in data.schema.names})[0]
        q, u = (np.array(part) for part in zip(*(estimates_of_table(one) for one in datasets), strict=True))
        for m in line.datasets:
            provenance = release_provenance(replace(plan, m=m), len(data), [len(one[response]) for one in datasets[:m]])
            for at, (name, truth) in enumerate(line.truths.items()):
                count = found.setdefault((m, name), Count())
                within = (0.0, 1.0) if line.has_answers and name == "mean" else (None, None)
                count.add(*interval_of_datasets(q[:m, at], u[:m, at], provenance, confidential[at], within), truth)
                for said in ("u",) if m == 1 else ("T_p", "T_f"):
                    count.add_old(said, OLD_RULES[said](q[:m, at], u[:m, at], line.ratio), truth)
        for item, fit in enumerate(fits):
            _add_noisy_rows(fit_rows(recipe, item, fit, data), fit, most, found)
    return found


def interval_of_datasets(
    q: Floats, u: Floats, provenance: ReleaseProvenance, confidential: float, within: Range
) -> tuple[Interval, str]:
    """The product's interval, or why there is none."""
    try:
        found = combine_datasets(q, u, provenance)  # type: ignore[arg-type]
    except NotComputable as error:
        return None, error.reason
    if found.differs_from(confidential):
        return None, OTHER_THAN_CONFIDENTIAL
    return found.interval(LEVEL, within), ""


def _row_interval(row: Row) -> Interval:
    return None if row.lower is None or row.upper is None else (row.lower, row.upper)


def _add_noisy_rows(rows: Sequence[Row], fit: Fit, m: int, found: dict[tuple[int, str], Count]) -> None:
    """Count the intervals by the noisy counts themselves, of the share of b and the mean of c."""
    for row in rows:
        if row.measure == "noisy_share" and (row.target, row.params.get("level")) == ("b", "1"):
            name, truth, at, values = "noisy_share of b", 0.45, 1, np.array([0.0, 1.0])
        elif row.measure == "noisy_mean":
            # [0, 5), [5, 10), [10, 15) and [15, 19] of whole numbers
            name, truth, at, values = "noisy_mean of c", 9.5, 2, np.array([2.0, 7.0, 12.0, 17.0])
        else:
            continue
        count = found.setdefault((m, name), Count())
        count.add(_row_interval(row), row.reason, truth)
        counts, sigma = np.asarray(fit.arrays[f"margin/{at}"]), float(fit.arrays[f"sigma/{at}"][0])
        total = counts.sum()
        mean = float(values @ counts / total)
        noise = sigma**2 * float(((values - mean) ** 2).sum()) / total**2
        spread = float(np.maximum(counts, 0) @ (values - mean) ** 2) / total**2
        half = Z * np.sqrt(noise + spread)
        count.add_old("normal", (mean - half, mean + half), truth)


def coverage_of_noisy_share(share: float, records: int, rho: float, releases: int, seed: int) -> tuple[float, float]:
    """Coverage of the score interval of a share of three levels by noisy counts, and of the normal one before.

    A release in which the product gives no interval counts for neither.
    """
    rng, sigma = np.random.default_rng([seed, records, int(rho * 1000)]), 1 / np.sqrt(2 * rho)
    chances = np.array([share, (1 - share) / 2, (1 - share) / 2])
    hits, intervals = np.zeros(2), 0
    for _ in range(releases):
        table = rng.multinomial(records, chances) + np.rint(rng.normal(0, sigma, 3))
        margin = MeasuredMargin((0,), table.astype(np.float64), float(sigma))
        try:
            found = estimate_noisy_mean(Domain((3,)), [margin], (0,), np.array([1.0, 0.0, 0.0]))
        except ZeroDivisionError:
            continue
        intervals += 1
        half = Z * np.hypot(found.noise_error, found.sampling_error)
        hits += (found.lower <= share <= found.upper, abs(found.value - share) <= half)
    return float(hits[0] / intervals), float(hits[1] / intervals)


def print_noisy_shares(releases: int, seed: int) -> bool:
    """Print the coverage of ``noisy_share``; return whether all are at least .93 within chance."""
    print(f"{'share':>6}{'records':>9}{'rho':>7}{'coverage':>10}{'normal':>9}")
    lowest = 1.0
    for share in SHARES:
        for records in FEW_RECORDS:
            for rho in NOISES:
                new, old = coverage_of_noisy_share(share, records, rho, releases, seed)
                lowest = min(lowest, new)
                print(f"{share:6g}{records:9d}{rho:7g}{new:10.3f}{old:9.3f}", flush=True)
    print(f"lowest coverage: {lowest:.3f}")
    return lowest >= LOWEST


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--lines", default="", help="only lines whose name has this text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--noisy-shares", action="store_true")
    given = parser.parse_args()
    if given.noisy_shares:
        return 0 if print_noisy_shares(1500, given.seed) else 1
    table, is_right = [], True
    print(f"{'line':<36}{'k':>5}{'m':>4} {'estimand':<18}{'coverage':>9}{'none':>6}  earlier rules")
    with threadpool_limits(limits=1):
        for line in lines():
            if given.lines not in line.name:
                continue
            begun = time.perf_counter()
            found = coverage_of_line(line, given.repetitions, given.seed)
            for (m, name), count in sorted(found.items(), key=lambda one: one[0][0]):
                none = 1 - count.intervals / count.repetitions
                old = "  ".join(f"{said} {hits / count.repetitions:.3f}" for said, hits in count.old.items())
                is_right &= count.is_right
                remark = "" if count.is_right else "  OUTSIDE"
                shown = f"{count.coverage:9.3f}" if count.intervals else f"{'-':>9}"
                print(f"{line.name:<36}{line.ratio:5g}{m:4d} {name:<18}{shown}{none:6.2f}  {old}{remark}", flush=True)
                table.append([line.name, line.ratio, m, name, count.coverage, none, old, count.reason])
            reasons = {count.reason for count in found.values() if count.intervals < count.repetitions / 20}
            for reason in sorted(reasons):
                print(f"    no interval: {reason}")
            print(f"    {time.perf_counter() - begun:.0f} s", flush=True)
    if given.csv:
        with given.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["line", "k", "m", "estimand", "coverage", "without_interval", "earlier_rules", "reason"])
            writer.writerows(table)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
