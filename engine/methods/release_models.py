"""Guesses of an intruder at records, and how well a model of the release supports each (Reiter, Wang & Zhang §2).

The intruder knows all confidential records but one, and how the release was made. Of that record every guess y is a possible truth; with it
in its place the data would have been D_y, and the release Z would have come about with probability p(Z | D_y).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.arrays import Floats
from ..data.microdata import Microdata, to_column


@dataclass(frozen=True, eq=False)
class IntruderGuesses:
    """Guesses of an intruder at records: g guesses at each of t records. All other variables of a record are known.

    records: rows of the confidential table, (t,)
    values: guessed values of every variable that is synthesised, such as ``Microdata.numbers`` gives, (t, g)
    """

    records: NDArray[np.intp]
    values: Mapping[str, Floats]

    @property
    def shape(self) -> tuple[int, int]:
        return next(iter(self.values.values())).shape

    def guessed_table(self, data: Microdata) -> Microdata:
        """Return the t * g records that the guesses would make, those of a record together, (t * g,)."""
        rows = data.frame.iloc[np.repeat(self.records, self.shape[1])].reset_index(drop=True)
        made = {name: to_column(values.ravel(), data, data.schema[name], name) for name, values in self.values.items()}
        return Microdata(data.schema, rows.assign(**made), data.origin)

    def true_records(self, data: Microdata) -> Microdata:
        """Return the records themselves, unchanged, (t,)."""
        return Microdata(data.schema, data.frame.iloc[self.records].reset_index(drop=True), data.origin)

    def involve_columns(self, columns: Iterable[str]) -> bool:
        """Return whether any of these columns is guessed."""
        return not self.values.keys().isdisjoint(columns)

    def distinct_guesses(self, names: Collection[str]) -> tuple[IntruderGuesses, NDArray[np.intp]]:
        """Return one guess for each that differs in these variables, and where each guess is among them.

        The guesses are (t, d), d as many as a record has at most; the places are (t, g).
        """
        stacked = np.stack([values for name, values in self.values.items() if name in names], axis=2)
        found = [np.unique(own, axis=0, return_index=True, return_inverse=True) for own in stacked]
        first = np.zeros((len(found), max(len(index) for _, index, _ in found)), dtype=np.intp)
        for row, (_, index, _) in zip(first, found, strict=True):
            row[: len(index)] = index
        kept = {name: np.take_along_axis(values, first, axis=1) for name, values in self.values.items()}
        return IntruderGuesses(self.records, kept), np.stack([place.ravel() for _, _, place in found])

    def select_records(self, records: slice) -> IntruderGuesses:
        return IntruderGuesses(self.records[records], {name: values[records] for name, values in self.values.items()})


def replace_values(data: Microdata, records: NDArray[np.intp], values: Mapping[str, Floats]) -> Microdata:
    """Return the confidential table with other values (r,) of these variables in r records, which keep their weights."""
    changed = {}
    for name, own in values.items():
        numbers = data.numbers(name).copy()
        numbers[records] = own
        changed[name] = to_column(numbers, data, data.schema[name], name)
    frame: pd.DataFrame = data.frame.assign(**changed)
    return replace(data, frame=frame)


@dataclass(frozen=True, eq=False)
class Plausibility:
    """Plausibility of guesses by the models of a release.

    likelihood: log p(Z^(l) | D_y), of each of m datasets, (t, g, m)
    prior: log p(y | x, D_-i), the model's prediction from all other records: a probability of levels, a density of numbers, (t, g)
    heavy: records for which so few posterior draws dominate that neither is reliable, (t,)

    Both are of this step's variables alone, given those that were made before it.
    """

    likelihood: Floats
    prior: Floats
    heavy: NDArray[np.bool_] | None = None

    def expand_to(self, place: NDArray[np.intp]) -> Plausibility:
        """Expand to guesses (t, g), each that at its place among these."""
        likelihood = np.take_along_axis(self.likelihood, place[..., None], axis=1)
        return Plausibility(likelihood, np.take_along_axis(self.prior, place, axis=1), self.heavy)

    def __add__(self, other: Plausibility) -> Plausibility:
        told = [one.heavy for one in (self, other) if one.heavy is not None]
        heavy = np.logical_or.reduce(told) if told else None
        return Plausibility(self.likelihood + other.likelihood, self.prior + other.prior, heavy)


class ReleaseModel(Protocol):
    """Model of one synthesis step, fitted to the confidential data, with the m datasets that it made.

    targets: variables that the step makes
    absolute: likelihoods can be compared between confidential data sets that differ in several records, so that an intruder may lack
        several; without
        it they are up to a constant for each record
    approximate: a changed record is one step from the fit, not a new fit
    remarks: what a reader has to know of the numbers
    """

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the variables that the step makes."""

    @property
    def absolute(self) -> bool:
        """Return whether data that differ in several records can be compared."""

    @property
    def approximate(self) -> bool:
        """Return whether a changed record is a step from the fit."""

    @property
    def remarks(self) -> tuple[str, ...]: ...

    def plausibility_of(self, guesses: IntruderGuesses, /) -> Plausibility:
        """Return how well the release supports each guess, and what the model predicts without it."""

    def refined_log_likelihoods(self, guesses: IntruderGuesses, /) -> Floats:
        """Return log p(Z^(l) | D_y), (t, g, m), of few guesses by a slower and more exact way; as ``plausibility_of`` gives it where that
        is exact.
        """

    def refit(self, data: Microdata, /) -> ReleaseModel:
        """Fit the model to other confidential data, which differ in few records: then nothing of the fit is approximate."""


@runtime_checkable
class OwnRecordModel(ReleaseModel, Protocol):
    """Release model that also gives the probability of the released values of one record by themselves."""

    def own_record_log_likelihoods(self, guesses: IntruderGuesses, /) -> Floats:
        """Return log p(z_i^(l) | D_y), (t, g, m), of each dataset's own row of the record. Raises NotComputable without such rows."""


Models = Callable[[Microdata], tuple[ReleaseModel, ...]]
"""The models of all synthesis steps, fitted to confidential data."""


def total_plausibility(models: tuple[ReleaseModel, ...], guesses: IntruderGuesses) -> Plausibility:
    """Return the plausibility of guesses by all steps together: each dataset's variables are drawn step by step, so that probabilities
    multiply.
    """
    found = [model.plausibility_of(guesses) for model in models]
    return sum(found[1:], start=found[0])


def total_refined_log_likelihoods(models: tuple[ReleaseModel, ...], guesses: IntruderGuesses) -> Floats:
    """Return the refined log likelihoods of all steps together, (t, g, m)."""
    return np.asarray(sum(model.refined_log_likelihoods(guesses) for model in models))
