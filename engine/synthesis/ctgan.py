"""Conditional tabular GAN: a generator and a discriminator trained against each other on the whole table (Xu, Skoularidou,
Cuesta-Infante & Veeramachaneni 2019), by the library ctgan.

The generators of the calibration of data quality measures are such (Lighthouse data quality §4.1); there the GAN learns all
variables at once and makes whole tables (``tables``).

In a recipe a step has one target and predictors. The GAN learns them together and generates as many records for each
dataset as there are; each released record takes the target's value of one of the generated records that are nearest to
it in the predictors, those synthesised earlier with their synthetic values. Without predictors a record takes any.
A step trains a GAN of its own, minutes on tens of thousands of records: name few predictors.

A missing level is a level; missing numbers stand at the median beside a mark, which the GAN learns. Counts are rounded,
numbers and dates kept within their bounds, or where none are declared within the range of the data. Everything comes from
the task's seed, on one thread. Nothing about a GAN's losses says that it has converged: look at the utility measures.

The library ctgan and its rdt are under the Business Source License 1.1, which limits what they may be used for: hence an extra.

The library draws from the global generators of NumPy and torch and spreads over all cores. Here it works from a seed, on one
thread, leaves both generators as it found them, and never runs twice at a time in a process. It belongs to the extra [gan].

A table becomes a matrix of numbers and level codes without missing values, and comes back. Values are given by likeness: to each
record those of one at random of the generated ones that are nearest to it by Gower's distance (1971).
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.microdata import DAY, Microdata, as_column
from ..data.schema import Kind
from ..errors import GAN
from ..methods.registry import synthesis_method
from ..methods.results import Diagnostic, Fit
from ..methods.run import Progress, Run
from ..methods.spec import Param, Spec

CELLS = 1 << 22
LARGEST_SEED = 2**31


@dataclass(frozen=True, slots=True)
class _Column:
    """How a variable is written: its levels (0 for numbers), a number's range, middle and unit, and if some are missing."""

    levels: int
    missing: bool
    low: float = 0.0
    high: float = 0.0
    middle: float = 0.0
    unit: float = 0.0
    scale: float = 1.0
    """What the variable's numbers are multiplied by in the matrix."""

    @property
    def marked(self) -> bool:
        """Whether a column of marks follows the numbers."""
        return self.missing and not self.levels


@dataclass(frozen=True, eq=False)
class TableCodes:
    """The variables of a table as columns of a matrix.

    A variable with levels is one discrete column; a missing value is a level of its own, the last. A number or a date (in
    seconds since 1970) is one column; where some are missing, they stand at the median and a discrete column marks them.
    """

    names: tuple[str, ...]
    columns: tuple[_Column, ...]

    @classmethod
    def of(cls, data: Microdata, names: Sequence[str]) -> TableCodes:
        """The code of these variables, which is that of every table of the same origin."""
        return cls(tuple(names), tuple(_column(data, name) for name in names))

    @property
    def discrete(self) -> NDArray[np.bool_]:
        """Which columns of the matrix hold codes, (columns,)."""
        marks = [[bool(one.levels), True][: 1 + one.marked] for one in self.columns]
        return np.array([mark for each in marks for mark in each], dtype=np.bool_)

    def matrix(self, data: Microdata) -> Floats:
        """The table (n, columns), without missing values."""
        parts = []
        for name, one in zip(self.names, self.columns, strict=True):
            values = _values(data, name)
            missing = np.isnan(values)
            parts.append(np.where(missing, one.levels or one.middle, values))
            if one.marked:
                parts.append(missing.astype(np.float64))
        return np.column_stack(parts)

    def tidied(self, matrix: Floats) -> Floats:
        """A generated matrix (n, columns) whose numbers are such as the variables have.

        Numbers keep to their bounds, or where none are declared to the range of the data, as dates do. Counts are whole,
        dates whole days where all are. What is marked as missing stands at the median.
        """
        found = matrix.copy()
        for one, place in self._places():
            if not one.levels:
                column = found[:, place]
                whole = np.clip(np.rint(column / one.unit) * one.unit if one.unit else column, one.low, one.high) + 0.0
                found[:, place] = np.where(found[:, place + 1] == 1, one.middle, whole) if one.marked else whole
        return found

    def values(self, matrix: Floats) -> dict[str, Floats]:
        """The variables (n,) of a tidy matrix: ``Microdata.numbers``."""
        found = {}
        for name, (one, place) in zip(self.names, self._places(), strict=True):
            column = matrix[:, place]
            missing = column == one.levels if one.levels else matrix[:, place + one.marked] == one.marked
            found[name] = np.where(missing & one.missing, np.nan, column / one.scale)
        return found

    def _places(self) -> Iterator[tuple[_Column, int]]:
        """Every variable's code and its first column."""
        place = 0
        for one in self.columns:
            yield one, place
            place += 1 + one.marked


def _values(data: Microdata, name: str) -> Floats:
    numbers = data.numbers(name)
    return np.rint(numbers * DAY) if data.schema[name].kind is Kind.DATE else numbers


def _column(data: Microdata, name: str) -> _Column:
    variable, missing = data.schema[name], bool(data.missing(name).any())
    if variable.kind.has_levels:
        return _Column(len(data.column(name).cat.categories), missing)
    values = _values(data, name)
    values = values[~np.isnan(values)]
    low = values.min() if variable.lower is None else variable.lower
    high = values.max() if variable.upper is None else variable.upper
    days = variable.kind is Kind.DATE and bool((values % DAY == 0).all())
    unit = {Kind.COUNT: 1.0, Kind.DATE: float(DAY if days else 1)}.get(variable.kind, 0.0)
    scale = float(DAY) if variable.kind is Kind.DATE else 1.0
    return _Column(0, missing, float(low), float(high), float(np.median(values)), unit, scale)


def nearest_donors(
    records: Floats, donors: Floats, discrete: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.intp]:
    """The row of ``donors`` (k, P) that each of ``records`` (n, P) gets, (n,); ``discrete`` (P,) marks codes; P >= 0.

    The distance is the number of codes that differ plus the differences of numbers as shares of their range over both
    tables. Of donors that are equally near each is as likely.
    """
    wanted, which = np.unique(records, axis=0, return_inverse=True)
    offered, member = np.unique(donors, axis=0, return_inverse=True)
    nearest = _nearest(wanted, offered, discrete)[which.ravel()]
    order = np.argsort(member.ravel(), kind="stable")
    sizes = np.bincount(member.ravel(), minlength=len(offered))
    start = np.cumsum(sizes) - sizes
    donor: NDArray[np.intp] = order[start[nearest] + rng.integers(sizes[nearest])]
    return donor


def _nearest(wanted: Floats, offered: Floats, discrete: NDArray[np.bool_]) -> NDArray[np.intp]:
    """For each of ``wanted`` (u, P) the first nearest row of ``offered`` (v, P)."""
    both = np.concatenate([wanted, offered])
    scale = np.ptp(both, axis=0) if both.shape[1] else np.empty(0)
    scale = np.where(discrete | (scale == 0), 1, scale)
    step = max(1, CELLS // len(offered))
    found = []
    for start in range(0, len(wanted), step):
        block = wanted[start : start + step]
        distance = np.zeros((len(block), len(offered)))
        for column in range(both.shape[1]):
            apart = block[:, column, None] - offered[None, :, column]
            distance += apart != 0 if discrete[column] else np.abs(apart) / scale[column]
        found.append(distance.argmin(axis=1))
    return np.concatenate(found)


ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True, eq=False)
class Gan:
    """A trained generator, and the losses that generator and discriminator ended with."""

    model: Any
    generator_loss: float
    discriminator_loss: float

    def sample(self, n: int, seed: int) -> Floats:
        """Generated records (n, columns): the codes of discrete columns are among those seen, others are any numbers."""
        with _alone():
            self.model.set_random_state(seed)
            return np.asarray(self.model.sample(n), dtype=np.float64)


def train(values: Floats, discrete: NDArray[np.bool_], epochs: int, seed: int) -> Gan:
    """A GAN trained on ``values`` (n, columns), n >= 2; ``discrete`` (columns,) marks codes of levels.

    ``epochs`` passes over the records in batches of 500. Raises ModuleNotFoundError without the extra.
    """
    with _alone():
        from ctgan import CTGAN

        model = CTGAN(epochs=epochs, enable_gpu=False)
        model.set_random_state(seed)
        model.fit(values, [int(column) for column in np.flatnonzero(discrete)])
        losses = model.loss_values.iloc[-1]
    return Gan(model, float(losses["Generator Loss"]), float(losses["Discriminator Loss"]))


@contextmanager
def _alone() -> Iterator[None]:
    """One thread, one caller, and none of the library's warnings about its own dependencies."""
    with ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import joblib
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with joblib.parallel_config(backend="sequential"):
                yield
        finally:
            torch.set_num_threads(threads)


def check(data: Microdata, target: str, spec: CtganSpec, place: str) -> None:
    """NotInstalled without the extra."""
    GAN.require(place)


def tables(data: Microdata, spec: CtganSpec, run: Run) -> Callable[[int, np.random.Generator], Microdata]:
    """A function of size and generator that draws tables like ``data`` from a GAN trained on all its variables."""
    codes, gan = _trained(data, data.schema.names, spec, run)

    def make(size: int, rng: np.random.Generator) -> Microdata:
        values = codes.values(codes.tidied(gan.sample(size, _seed(rng))))
        columns = {name: as_column(values[name], data, data.schema[name], "synthesis.ctgan") for name in values}
        return Microdata(data.schema, pd.DataFrame(columns), "synthetic")

    return make


def draw(
    fit: Fit,
    spec: CtganSpec,
    target: str,
    confidential: Microdata,
    released: Microdata,
    index: int,
    rng: np.random.Generator,
) -> Floats:
    """Synthetic values (n,): of each record one of its nearest generated records. Codes of levels, dates as days; NaN missing."""
    generated = fit.arrays["generated"][index]
    values = TableCodes.of(confidential, (*spec.predictors, target)).values(generated)[target]
    if not spec.predictors:
        return rng.permutation(values)
    before = TableCodes.of(confidential, spec.predictors)
    wanted = before.matrix(released)
    return values[nearest_donors(wanted, generated[:, : wanted.shape[1]], before.discrete, rng)]


def _trained(data: Microdata, names: tuple[str, ...], spec: CtganSpec, run: Run) -> tuple[TableCodes, Gan]:
    GAN.require("synthesis.ctgan")
    run.report(Progress(0, 1, f"GAN, {spec.epochs} epochs"))
    codes = TableCodes.of(data, names)
    gan = train(codes.matrix(data), codes.discrete, spec.epochs, _seed(run.rng.spawn(1)[0]))
    run.report(Progress(1, 1, f"GAN, {spec.epochs} epochs"))
    return codes, gan


def _seed(rng: np.random.Generator) -> int:
    """A seed for the library, which takes one of 31 bits: who would try them all trains as many GANs, on the confidential data.

    None of the generated records is a confidential one, in whatever order they are.
    """
    return int(rng.integers(LARGEST_SEED))


@dataclass(frozen=True, kw_only=True, slots=True)
class CtganSpec(Spec):
    """Predictors, and how long the GAN is trained."""

    predictors: Annotated[
        tuple[str, ...],
        Param("variables learned with the target, by which released records are matched", names="variables"),
    ] = ()
    epochs: Annotated[int, Param("passes over the records in training", ge=1)] = 300


@synthesis_method(
    "Conditional tabular GAN",
    spec=CtganSpec,
    source="Xu, Skoularidou, Cuesta-Infante & Veeramachaneni (2019); Measuring Data Quality for Project Lighthouse §4.1",
    draw=draw,
    targets=tuple(Kind),
    check=check,
    tables=tables,
    extra=GAN,
)
def ctgan(data: Microdata, target: str, spec: CtganSpec, run: Run, draws: int) -> Fit:
    """Generated records for each draw. Arrays: ``generated`` (draws, n, columns), as ``TableCodes`` writes them."""
    codes, gan = _trained(data, (*spec.predictors, target), spec, run)
    generated = np.stack([codes.tidied(gan.sample(len(data), _seed(rng))) for rng in run.rng.spawn(draws)])
    losses = {"generator_loss": gan.generator_loss, "discriminator_loss": gan.discriminator_loss}
    return Fit({"generated": generated}, tuple(Diagnostic(name, target, value) for name, value in losses.items()))
