"""Guesses of an intruder at records, and their plausibility by a model of the release (Reiter, Wang & Zhang §2).

The intruder knows all confidential records except one, and how the release was made. Every guess y at that record is a
possible truth: with y in its place the data would be D_y, and the release Z would have probability p(Z | D_y).
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
    """Guesses of an intruder at records: g guesses at each of t records, whose other variables are all known.

    records: rows of the confidential table, (t,)
    values: guessed values of every synthesised variable, as ``Microdata.numbers`` returns them, (t, g)
    """

    records: NDArray[np.intp]
    values: Mapping[str, Floats]

    @property
    def shape(self) -> tuple[int, int]:
        return next(iter(self.values.values())).shape

    def guessed_table(self, data: Microdata) -> Microdata:
        """Return the t * g records that the guesses stand for, those at one record together."""
        rows = data.frame.iloc[np.repeat(self.records, self.shape[1])].reset_index(drop=True)
        made = {name: to_column(values.ravel(), data, data.schema[name], name) for name, values in self.values.items()}
        return Microdata(data.schema, rows.assign(**made), data.origin)

    def true_records(self, data: Microdata) -> Microdata:
        """Return the t records themselves, unchanged."""
        return Microdata(data.schema, data.frame.iloc[self.records].reset_index(drop=True), data.origin)

    def involve_columns(self, columns: Iterable[str]) -> bool:
        """Return whether any of these columns is guessed."""
        return not self.values.keys().isdisjoint(columns)

    def distinct_guesses(self, names: Collection[str]) -> tuple[IntruderGuesses, NDArray[np.intp]]:
        """Return the distinct guesses at each record by these variables, and the place of each guess among them.

        The guesses are (t, d), where d is the largest number for any record; the places are (t, g).
        """
        stacked = np.stack([values for name, values in self.values.items() if name in names], axis=2)
        found = [np.unique(own, axis=0, return_index=True, return_inverse=True) for own in stacked]
        # Records with fewer distinct guesses repeat their first one, so that the arrays stay rectangular.
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
    """Plausibility of guesses by the models of a release, of one step's variables given those made before it.

    likelihood: log p(Z^(l) | D_y), of each of m datasets, (t, g, m)
    prior: log p(y | x, D_-i), the model's prediction from all other records: a probability of levels, a density of
        numbers, (t, g)
    heavy: records for which so few posterior draws dominate that neither is reliable, (t,)
    """

    likelihood: Floats
    prior: Floats
    heavy: NDArray[np.bool_] | None = None

    def expand_to(self, place: NDArray[np.intp]) -> Plausibility:
        """Return the plausibility of guesses (t, g), given the ``place`` of each among these."""
        likelihood = np.take_along_axis(self.likelihood, place[..., None], axis=1)
        return Plausibility(likelihood, np.take_along_axis(self.prior, place, axis=1), self.heavy)

    def __add__(self, other: Plausibility) -> Plausibility:
        """Return the plausibility of both steps' variables together, as logarithms of products."""
        told = [one.heavy for one in (self, other) if one.heavy is not None]
        heavy = np.logical_or.reduce(told) if told else None
        return Plausibility(self.likelihood + other.likelihood, self.prior + other.prior, heavy)


class ReleaseModel(Protocol):
    """Model of one synthesis step, fitted to the confidential data, with the m datasets that it made.

    targets: variables that the step makes
    absolute: whether likelihoods can be compared between data that differ in several records, so that an intruder may
        lack several; otherwise they are known up to a constant for each record
    approximate: whether a changed record is one step from the fit rather than a new fit
    remarks: caveats for the reader of the numbers
    """

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the variables that the step makes."""

    @property
    def absolute(self) -> bool:
        """Return whether likelihoods can be compared between data that differ in several records."""

    @property
    def approximate(self) -> bool:
        """Return whether a changed record is approximated by one step from the fit."""

    @property
    def remarks(self) -> tuple[str, ...]: ...

    def plausibility_of(self, guesses: IntruderGuesses, /) -> Plausibility:
        """Return the likelihood of the release under each guess, and the model's prediction without the release."""

    def refined_log_likelihoods(self, guesses: IntruderGuesses, /) -> Floats:
        """Return log p(Z^(l) | D_y), (t, g, m), by a slower and more exact method for few guesses.

        It equals that of ``plausibility_of`` where that is exact.
        """

    def refit(self, data: Microdata, /) -> ReleaseModel:
        """Return the model fitted to other confidential data, which differ in few records.

        Nothing of it is approximate.
        """


@runtime_checkable
class OwnRecordModel(ReleaseModel, Protocol):
    """Release model that also gives the probability of the released counterpart of one record alone."""

    def own_record_log_likelihoods(self, guesses: IntruderGuesses, /) -> Floats:
        """Return log p(z_i^(l) | D_y), (t, g, m), of the row of each dataset that belongs to the record.

        Raises NotComputable where there are no such rows.
        """


Models = Callable[[Microdata], tuple[ReleaseModel, ...]]
"""The models of all synthesis steps, fitted to confidential data."""


def total_plausibility(models: tuple[ReleaseModel, ...], guesses: IntruderGuesses) -> Plausibility:
    """Return the plausibility of guesses by all steps together."""
    found = [model.plausibility_of(guesses) for model in models]
    # Each dataset's variables are drawn step by step, so that probabilities multiply.
    return sum(found[1:], start=found[0])


def total_refined_log_likelihoods(models: tuple[ReleaseModel, ...], guesses: IntruderGuesses) -> Floats:
    """Return the sum of the refined log likelihoods of all steps, (t, g, m)."""
    return np.asarray(sum(model.refined_log_likelihoods(guesses) for model in models))
