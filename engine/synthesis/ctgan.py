"""Conditional tabular GAN: a generator and a discriminator trained against each other, by the library ctgan.

Xu, Skoularidou, Cuesta-Infante & Veeramachaneni (2019). The generators of the calibration of data quality measures are
such (Lighthouse data quality §4.1); there the GAN learns all variables at once and makes whole tables
(``table_sampler``).

In a recipe a step has one target and predictors. The GAN learns them together and generates as many records for each
dataset as there are; each released record takes the target's value of one of the generated records that are nearest to
it in the predictors by Gower's distance (1971), those synthesised earlier with their synthetic values. A step trains a
GAN of its own, minutes on tens of thousands of records: name few predictors. Nothing about a GAN's losses says that it
has converged: check the utility measures.

The library ctgan and its rdt are under the Business Source License 1.1, which limits what they may be used for: hence
the extra [gan].
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
from ..data.microdata import SECONDS_OF_DAY, Microdata, to_column
from ..data.provenance import FitUncertainty
from ..data.rows import distinct_rows
from ..data.schema import Kind, Schema
from ..errors import GAN
from ..methods.registry import BulkFittingDeclaration, synthesis_method
from ..methods.results import Diagnostic, Fit
from ..methods.run import Progress, Run
from ..methods.spec import Param, Spec
from ..statistics.gower import variable_distances

CELLS = 1 << 22
LARGEST_SEED = 2**31


@dataclass(frozen=True, slots=True)
class _ColumnCode:
    """Code of a variable in the matrix.

    levels: number of levels, 0 for numbers
    missing: whether some values are missing
    low, high: range of a number
    middle: its median
    unit: unit to which generated numbers are rounded, 0 for none
    scale: factor of the numbers in the matrix
    """

    levels: int
    missing: bool
    low: float = 0.0
    high: float = 0.0
    middle: float = 0.0
    unit: float = 0.0
    scale: float = 1.0
    """What the variable's numbers are multiplied by in the matrix."""

    @property
    def has_mark(self) -> bool:
        """Return whether a column that marks missing values follows the numbers."""
        return self.missing and not self.levels


@dataclass(frozen=True, eq=False)
class TableCodes:
    """Codes of the variables of a table as columns of a matrix.

    A variable with levels is one discrete column; a missing value is a level of its own, the last. A number or a date
    (in seconds since 1970) is one column; where some are missing, they stand at the median and a discrete column marks
    them.

    names: the variables
    columns: code of each variable
    """

    names: tuple[str, ...]
    columns: tuple[_ColumnCode, ...]

    @classmethod
    def from_microdata(cls, data: Microdata, names: Sequence[str]) -> TableCodes:
        """Return the code of these variables, the same for every table of one origin."""
        return cls(tuple(names), tuple(_column_code(data, name) for name in names))

    @property
    def is_discrete(self) -> NDArray[np.bool_]:
        """Return which columns of the matrix hold codes, (columns,)."""
        marks = [[bool(one.levels), True][: 1 + one.has_mark] for one in self.columns]
        return np.array([mark for each in marks for mark in each], dtype=np.bool_)

    def encode_table(self, data: Microdata) -> Floats:
        """Return the table as a matrix without missing values, (n, columns)."""
        parts = []
        for name, one in zip(self.names, self.columns, strict=True):
            values = _numbers_in_seconds(data, name)
            missing = np.isnan(values)
            parts.append(np.where(missing, one.levels or one.middle, values))
            if one.has_mark:
                parts.append(missing.astype(np.float64))
        return np.column_stack(parts)

    def tidy_matrix(self, matrix: Floats) -> Floats:
        """Return a generated matrix (n, columns) whose numbers are ones that the variables can have.

        Numbers keep to their bounds, or where none are declared to the range of the data, as dates do. Counts are
        whole, dates whole days where all are. A number marked as missing stands at the median.
        """
        found = matrix.copy()
        for one, place in self._column_places():
            if not one.levels:
                column = found[:, place]
                # Adding 0 turns -0.0 into 0.0, which would be another value where records are compared.
                whole = np.clip(np.rint(column / one.unit) * one.unit if one.unit else column, one.low, one.high) + 0.0
                found[:, place] = np.where(found[:, place + 1] == 1, one.middle, whole) if one.has_mark else whole
        return found

    def decode_matrix(self, matrix: Floats) -> dict[str, Floats]:
        """Return the variables of a tidy matrix by name, (n,) each, as ``Microdata.numbers`` has them."""
        found = {}
        for name, (one, place) in zip(self.names, self._column_places(), strict=True):
            column = matrix[:, place]
            missing = column == one.levels if one.levels else matrix[:, place + one.has_mark] == one.has_mark
            found[name] = np.where(missing & one.missing, np.nan, column / one.scale)
        return found

    def _column_places(self) -> Iterator[tuple[_ColumnCode, int]]:
        """Yield the code of every variable and the position of its first column."""
        place = 0
        for one in self.columns:
            yield one, place
            place += 1 + one.has_mark


def _numbers_in_seconds(data: Microdata, name: str) -> Floats:
    """Return the numbers of a variable, (n,), dates as whole seconds since 1970."""
    numbers = data.numbers(name)
    return np.rint(numbers * SECONDS_OF_DAY) if data.schema[name].kind is Kind.DATE else numbers


def _column_code(data: Microdata, name: str) -> _ColumnCode:
    """Return the code of one variable."""
    variable, missing = data.schema[name], bool(data.missing_mask(name).any())
    if variable.kind.has_levels:
        return _ColumnCode(len(data.column(name).cat.categories), missing)
    values = _numbers_in_seconds(data, name)
    values = values[~np.isnan(values)]
    scale = float(SECONDS_OF_DAY) if variable.kind is Kind.DATE else 1.0
    low = values.min() if variable.lower is None else variable.lower * scale
    high = values.max() if variable.upper is None else variable.upper * scale
    days = variable.kind is Kind.DATE and bool((values % SECONDS_OF_DAY == 0).all())
    unit = {Kind.COUNT: 1.0, Kind.DATE: float(SECONDS_OF_DAY if days else 1)}.get(variable.kind, 0.0)
    return _ColumnCode(0, missing, float(low), float(high), float(np.median(values)), unit, scale)


def draw_nearest_donors(
    records: Floats, donors: Floats, discrete: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw one of the nearest ``donors`` (k, P) for each of ``records`` (n, P), and return its row, (n,).

    ``discrete`` (P,) marks codes; P >= 0. The distance is the number of codes that differ plus the differences of
    numbers as shares of their range over both tables. Of donors that are equally near each is as likely.
    """
    # Equal rows are compared once; the donor is then drawn among all rows that are equal to the nearest.
    wanted, offered = (distinct_rows(table.T, len(table)) for table in (records, donors))
    nearest = _first_nearest_rows(records[wanted.first], donors[offered.first], discrete)[wanted.combination_of]
    sizes = offered.counts
    start = np.cumsum(sizes) - sizes
    donor: NDArray[np.intp] = offered.order[start[nearest] + rng.integers(sizes[nearest])]
    return donor


def _first_nearest_rows(wanted: Floats, offered: Floats, discrete: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return for each of ``wanted`` (u, P) the first nearest row of ``offered`` (v, P), (u,)."""
    # The search of ``adversary.nearest_records`` needs ranks. Generated numbers are compared as they are, because many
    # have one rank where the generator has drawn few different ones.
    both = np.concatenate([wanted, offered])
    scale = np.ptp(both, axis=0) if both.shape[1] else np.empty(0)
    scale = np.where(discrete | (scale == 0), 1, scale)
    step = max(1, CELLS // len(offered))
    found = []
    for start in range(0, len(wanted), step):
        block = wanted[start : start + step]
        distance, gap = np.zeros((2, len(block), len(offered)))
        for column in range(both.shape[1]):
            sides = block[:, column, None], offered[None, :, column]
            variable_distances(*sides, gap, has_levels=bool(discrete[column]), most=1.0, may_be_missing=False)
            distance += gap / scale[column]
        found.append(distance.argmin(axis=1))
    return np.concatenate(found)


LIBRARY_LOCK = threading.Lock()


@dataclass(frozen=True, eq=False)
class TrainedGan:
    """A trained generator, with the last losses of generator and discriminator.

    model: the library's model
    generator_loss, discriminator_loss: their last losses
    """

    model: Any
    generator_loss: float
    discriminator_loss: float

    def generate_records(self, n: int, seed: int) -> Floats:
        """Generate records, (n, columns): codes are among those of the data, numbers may be any."""
        with _exclusive_library():
            self.model.set_random_state(seed)
            return np.asarray(self.model.sample(n), dtype=np.float64)


def train_gan(values: Floats, discrete: NDArray[np.bool_], epochs: int, seed: int) -> TrainedGan:
    """Train a GAN on ``values`` (n, columns), n >= 2; ``discrete`` (columns,) marks codes of levels.

    ``epochs`` passes over the records in batches of 500. Raises ModuleNotFoundError without the extra.
    """
    with _exclusive_library():
        from ctgan import CTGAN

        model = CTGAN(epochs=epochs, enable_gpu=False)
        model.set_random_state(seed)
        model.fit(values, [int(column) for column in np.flatnonzero(discrete)])
        losses = model.loss_values.iloc[-1]
    return TrainedGan(model, float(losses["Generator Loss"]), float(losses["Discriminator Loss"]))


@contextmanager
def _exclusive_library() -> Iterator[None]:
    """Hold the library for one caller, on one thread, without its warnings about its own dependencies."""
    # The library draws from the global generators of NumPy and torch and spreads over all cores: two callers at a time
    # would change each other's draws, and threads the order of sums.
    with LIBRARY_LOCK, warnings.catch_warnings():
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


def check_data(data: Microdata, target: str, spec: CtganSpec, place: str) -> None:
    """Raise NotInstalled if the extra is not installed."""
    GAN.require_installed(place)


def table_sampler(data: Microdata, spec: CtganSpec, run: Run) -> Callable[[int, np.random.Generator], Microdata]:
    """Train a GAN on all variables, and return a function of size and generator that draws tables like ``data``."""
    codes, gan = _train_on_variables(data, data.schema.names, spec, run)

    def make(size: int, rng: np.random.Generator) -> Microdata:
        """Draw a table of ``size`` records."""
        values = codes.decode_matrix(codes.tidy_matrix(gan.generate_records(size, _draw_library_seed(rng))))
        columns = {name: to_column(values[name], data, data.schema[name], "synthesis.ctgan") for name in values}
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
    """Draw synthetic values, (n,): for each record that of one of its nearest generated records.

    Levels are codes, dates are days since 1970; missing is NaN.
    """
    generated = fit.arrays["generated"][index]
    values = TableCodes.from_microdata(confidential, (*spec.predictors, target)).decode_matrix(generated)[target]
    if not spec.predictors:
        return rng.permutation(values)
    before = TableCodes.from_microdata(confidential, spec.predictors)
    wanted = before.encode_table(released)
    return values[draw_nearest_donors(wanted, generated[:, : wanted.shape[1]], before.is_discrete, rng)]


def _train_on_variables(
    data: Microdata, names: tuple[str, ...], spec: CtganSpec, run: Run
) -> tuple[TableCodes, TrainedGan]:
    """Train a GAN on these variables, and return their codes and the GAN."""
    GAN.require_installed("synthesis.ctgan")
    run.report(Progress(0, 1, f"GAN, {spec.epochs} epochs"))
    codes = TableCodes.from_microdata(data, names)
    gan = train_gan(codes.encode_table(data), codes.is_discrete, spec.epochs, _draw_library_seed(run.rng.spawn(1)[0]))
    run.report(Progress(1, 1, f"GAN, {spec.epochs} epochs"))
    return codes, gan


def _draw_library_seed(rng: np.random.Generator) -> int:
    """Draw a seed for the library, which has 31 bits."""
    # Few enough to try them all, but each try trains a GAN on the confidential data. None of the generated records is a
    # confidential one, in whatever order they are.
    return int(rng.integers(LARGEST_SEED))


@dataclass(frozen=True, kw_only=True, slots=True)
class CtganSpec(Spec):
    """Settings of the GAN: its predictors, and how long it is trained."""

    predictors: Annotated[
        tuple[str, ...],
        Param("variables learned with the target, by which released records are matched", names="variables"),
    ] = ()
    epochs: Annotated[int, Param("passes over the records in training", ge=1)] = 300


def fit_uncertainty(spec: CtganSpec, targets: tuple[str, ...], schema: Schema) -> FitUncertainty:
    """Return that one generator makes all datasets, at an unknown distance from the data."""
    return FitUncertainty("estimated", "one generator makes all datasets, and how far it is from the data is unknown")


@synthesis_method(
    "Conditional tabular GAN",
    spec=CtganSpec,
    source="Xu, Skoularidou, Cuesta-Infante & Veeramachaneni (2019); Measuring Data Quality for Project Lighthouse §4.1",
    draw=draw,
    targets=tuple(Kind),
    check=check_data,
    bulk_fitting=BulkFittingDeclaration(learn_whole_table=table_sampler),
    fit_uncertainty=fit_uncertainty,
    extra=GAN,
)
def ctgan(data: Microdata, target: str, spec: CtganSpec, run: Run, draws: int) -> Fit:
    """Generate records for each draw. Arrays: ``generated`` (draws, n, columns), in the code of ``TableCodes``."""
    codes, gan = _train_on_variables(data, (*spec.predictors, target), spec, run)
    generated = np.stack(
        [codes.tidy_matrix(gan.generate_records(len(data), _draw_library_seed(rng))) for rng in run.rng.spawn(draws)]
    )
    losses = {"generator_loss": gan.generator_loss, "discriminator_loss": gan.discriminator_loss}
    return Fit({"generated": generated}, tuple(Diagnostic(name, target, value) for name, value in losses.items()))
