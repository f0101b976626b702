"""What an intruder guesses of records, and how well a model of the release bears each guess out (Reiter, Wang & Zhang §2).

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
from ..data.microdata import Microdata, as_column


@dataclass(frozen=True, eq=False)
class Guesses:
    """g guesses at each of t records: ``records`` (t,) are rows of the confidential table, ``values`` (t, g) of every variable that
    is made anew, such as ``Microdata.numbers`` gives. All other variables of a record are known.
    """

    records: NDArray[np.intp]
    values: Mapping[str, Floats]

    @property
    def shape(self) -> tuple[int, int]:
        return next(iter(self.values.values())).shape

    def table(self, data: Microdata) -> Microdata:
        """The t * g records that the guesses would make, those of a record together, (t * g,)."""
        rows = data.frame.iloc[np.repeat(self.records, self.shape[1])].reset_index(drop=True)
        made = {name: as_column(values.ravel(), data, data.schema[name], name) for name, values in self.values.items()}
        return Microdata(data.schema, rows.assign(**made), data.origin)

    def own(self, data: Microdata) -> Microdata:
        """The records themselves, as they are, (t,)."""
        return Microdata(data.schema, data.frame.iloc[self.records].reset_index(drop=True), data.origin)

    def changes(self, columns: Iterable[str]) -> bool:
        """Whether any of these columns is guessed."""
        return not self.values.keys().isdisjoint(columns)

    def distinct(self, names: Collection[str]) -> tuple[Guesses, NDArray[np.intp]]:
        """One guess for each that differs in these variables, (t, d), d as many as a record has at most, and where each guess is
        among them, (t, g).
        """
        stacked = np.stack([values for name, values in self.values.items() if name in names], axis=2)
        found = [np.unique(own, axis=0, return_index=True, return_inverse=True) for own in stacked]
        first = np.zeros((len(found), max(len(index) for _, index, _ in found)), dtype=np.intp)
        for row, (_, index, _) in zip(first, found, strict=True):
            row[: len(index)] = index
        kept = {name: np.take_along_axis(values, first, axis=1) for name, values in self.values.items()}
        return Guesses(self.records, kept), np.stack([place.ravel() for _, _, place in found])

    def within(self, records: slice) -> Guesses:
        return Guesses(self.records[records], {name: values[records] for name, values in self.values.items()})


def with_records(data: Microdata, records: NDArray[np.intp], values: Mapping[str, Floats]) -> Microdata:
    """The confidential table with other values (r,) of these variables in r records, which keep their weights."""
    changed = {}
    for name, own in values.items():
        numbers = data.numbers(name).copy()
        numbers[records] = own
        changed[name] = as_column(numbers, data, data.schema[name], name)
    frame: pd.DataFrame = data.frame.assign(**changed)
    return replace(data, frame=frame)


@dataclass(frozen=True, eq=False)
class Plausibility:
    """``likelihood`` (t, g, m): log p(Z^(l) | D_y), of each of m datasets. ``prior`` (t, g): log p(y | x, D_-i), the
    model's prediction from all other records: a probability of levels, a density of numbers. Both of this step's variables alone, given
    those that were made before it. ``heavy`` (t,): which records so few draws of a posterior bear that neither is to be relied on.
    """

    likelihood: Floats
    prior: Floats
    heavy: NDArray[np.bool_] | None = None

    def spread(self, place: NDArray[np.intp]) -> Plausibility:
        """Of guesses (t, g) that are those at these places."""
        likelihood = np.take_along_axis(self.likelihood, place[..., None], axis=1)
        return Plausibility(likelihood, np.take_along_axis(self.prior, place, axis=1), self.heavy)

    def __add__(self, other: Plausibility) -> Plausibility:
        told = [one.heavy for one in (self, other) if one.heavy is not None]
        heavy = np.logical_or.reduce(told) if told else None
        return Plausibility(self.likelihood + other.likelihood, self.prior + other.prior, heavy)


class ReleaseModel(Protocol):
    """The model of one synthesis step, fitted to the confidential data, with the m datasets that it made.

    ``targets`` are the variables that it makes. ``absolute``: likelihoods can be compared between confidential data sets that differ in several records, so that an intruder may
    lack several; without it they are up to a constant for each record. ``approximate``: a changed record is one step from
    the fit, not a fit anew. ``remarks`` say what a reader has to know of the numbers.
    """

    @property
    def targets(self) -> tuple[str, ...]:
        """The variables that the step makes."""

    @property
    def absolute(self) -> bool:
        """Whether data that differ in several records can be compared."""

    @property
    def approximate(self) -> bool:
        """Whether a changed record is a step from the fit."""

    @property
    def remarks(self) -> tuple[str, ...]: ...

    def weigh(self, guesses: Guesses, /) -> Plausibility:
        """How well the release bears out each guess, and what the model predicts without it."""

    def nearer(self, guesses: Guesses, /) -> Floats:
        """Log p(Z^(l) | D_y), (t, g, m), of few guesses by a way that costs more and errs less; such as ``weigh`` gives it where that is exact."""

    def refitted(self, data: Microdata, /) -> ReleaseModel:
        """The same of other confidential data, which differ in few records: nothing of the fit is approximate then."""


@runtime_checkable
class OwnRecordModel(ReleaseModel, Protocol):
    """A model that can also say how probable the released values of one record are, by themselves."""

    def own_record(self, guesses: Guesses, /) -> Floats:
        """Log p(z_i^(l) | D_y), (t, g, m), of what each of m datasets says of the record itself. Raises NotComputable where none is of it."""


Models = Callable[[Microdata], tuple[ReleaseModel, ...]]
"""The models of all synthesis steps, fitted to confidential data."""


def weighed(models: tuple[ReleaseModel, ...], guesses: Guesses) -> Plausibility:
    """Of all steps together: each dataset's variables are drawn one step after another, so that their probabilities multiply."""
    found = [model.weigh(guesses) for model in models]
    return sum(found[1:], start=found[0])


def nearer(models: tuple[ReleaseModel, ...], guesses: Guesses) -> Floats:
    """Of all steps together, (t, g, m)."""
    return np.asarray(sum(model.nearer(guesses) for model in models))
