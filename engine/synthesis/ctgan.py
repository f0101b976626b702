"""Conditional tabular GAN: a generator and a discriminator trained against each other on the whole table (Xu et al. 2019).

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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd

from ..arrays import Floats
from ..errors import GAN
from ..methods import method
from ..microdata import Microdata, as_column
from ..results import Diagnostic, Fit
from ..run import Progress, Run
from ..schema import Kind
from ..spec import Param, Spec
from ..statistics.gan import Gan, TableCodes, nearest_donors, train

LARGEST_SEED = 2**31


@dataclass(frozen=True, kw_only=True, slots=True)
class CtganSpec(Spec):
    """Predictors, and how long the GAN is trained."""

    predictors: Annotated[
        tuple[str, ...],
        Param("variables learned with the target, by which released records are matched", names="variables"),
    ] = ()
    epochs: Annotated[int, Param("passes over the records in training", ge=1)] = 300

    def predictor_terms(self, place: str) -> Iterator[tuple[str, str]]:
        """The predictors: a column is a term, and what holds for terms holds for them."""
        yield from ((f"{place}.predictors[{i}]", name) for i, name in enumerate(self.predictors))


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


@method(
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


def _trained(data: Microdata, names: tuple[str, ...], spec: CtganSpec, run: Run) -> tuple[TableCodes, Gan]:
    GAN.require("synthesis.ctgan")
    run.report(Progress(0, 1, f"GAN, {spec.epochs} epochs"))
    codes = TableCodes.of(data, names)
    gan = train(codes.matrix(data), codes.discrete, spec.epochs, _seed(run.rng.spawn(1)[0]))
    run.report(Progress(1, 1, f"GAN, {spec.epochs} epochs"))
    return codes, gan


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(LARGEST_SEED))
