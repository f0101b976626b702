"""What a check of the gate is: declared once, with its limits and why they are so; it looks at a case and says what it sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np

from sfumato.engine.arrays import Integers
from sfumato.engine.disclosure.cells import Cells, Keys, cells_of, rows_of
from sfumato.engine.disclosure.neighbours import Pairs, nearest_pairs
from sfumato.engine.microdata import Microdata
from sfumato.engine.recipe import Recipe

from ..errors import NotReady
from ..store.artefacts import released_dataset
from ..store.workspace import Dataset, Workspace
from .contents import ReleasePlan
from .policy import Policy
from .read_on_demand import MOST_CELLS, CellsOnDemand, Held, OnDemand

Status = Literal["pass", "warn", "block"]


@dataclass(frozen=True)
class Sighting:
    """What a check sees: ``value`` beside its ``baseline``, in words too, and the confidential records it is about, from 0.

    ``judged`` is what the limits are held against, the value itself where it is None. ``limit`` is the value at which the release
    would be blocked where that depends on the data, ``at_most`` how bad it may be found.
    """

    said: str
    value: float | None = None
    baseline: float | None = None
    judged: float | None = None
    records: Sequence[int] = ()
    at_most: Status = "block"
    limit: float | None = None

    @property
    def held(self) -> float:
        """What the limits are held against; 0 where nothing could be measured."""
        return (self.value or 0.0) if self.judged is None else self.judged


@dataclass(frozen=True)
class Check:
    """A check: it warns and blocks above its limits, below them where it is of a ``least``; None never does.

    ``warn`` and ``block`` are in ``unit``, and hold "because" of ``reason``, from ``source`` where the field has one. ``cell`` says that a
    limit left out is the policy's smallest cell. A ``note`` has no limits: it passes, and says what a reader has to know.
    """

    key: str
    title: str
    unit: str
    warn: float | None
    block: float | None
    reason: str
    advice: str
    look: Callable[[Case], Sighting]
    source: str = ""
    waivable: bool = True
    least: bool = False
    cell: Literal["", "warn", "block"] = ""
    note: bool = False

    def limits(self, policy: Policy) -> tuple[float | None, float | None]:
        """From where on it warns and blocks under a policy."""
        given = policy.findings.get(self.key)
        own = {"warn": self.warn, "block": self.block}
        if self.cell:
            own[self.cell] = float(policy.smallest_cell)
        if given is None:
            return own["warn"], own["block"]
        return (own["warn"] if given.warn is None else given.warn, own["block"] if given.block is None else given.block)

    def beyond(self, held: float, limit: float | None) -> bool:
        """Whether a number is on the wrong side of a limit."""
        return limit is not None and (held < limit if self.least else held > limit)


class Case:
    """All that checks look at; tables are read when the first asks for them, and again where there is no room for all of them."""

    def __init__(self, workspace: Workspace, plan: ReleasePlan, policy: Policy, most_cells: int = MOST_CELLS) -> None:
        self.workspace, self.plan, self.policy, self.most_cells = workspace, plan, policy, most_cells
        self._cells = Held(most_cells)
        self._pairs = Held(most_cells)

    @property
    def recipe(self) -> Recipe:
        """The run's recipe."""
        return self.plan.run.recipe

    @property
    def synthetic(self) -> bool:
        """Whether values were drawn; else records were changed, and protected by standing in classes."""
        return self.recipe.origin == "synthetic"

    @cached_property
    def original(self) -> Dataset:
        """The confidential dataset."""
        return self.workspace.dataset(self.plan.run.dataset_id)

    @cached_property
    def confidential(self) -> Microdata:
        """The confidential data."""
        return self.workspace.read(self.original)

    @cached_property
    def releases(self) -> Sequence[Microdata]:
        """Every released dataset as the workspace has it, read when it is asked for. Asking raises NotReady."""
        count, all_together = self.plan.datasets, self.plan.datasets * self.plan.records * len(self.recipe.schema.names)
        held = Held(count if all_together <= self.most_cells else 0)
        return OnDemand(count, lambda place: held.get(place, 1, partial(self._read, place)))

    def variable(self, name: str) -> Sequence[Microdata]:
        """Every released dataset with this variable alone, read when it is asked for. Asking raises NotReady."""
        together = self.plan.datasets * self.plan.records * len(self.recipe.schema.names) <= self.most_cells
        return self.releases if together else OnDemand(self.plan.datasets, lambda place: self._read(place, (name,)))

    def _read(self, place: int, names: Sequence[str] | None = None) -> Microdata:
        dataset = released_dataset(self.workspace, self.plan.run.id, self.recipe, place + 1, names)
        if dataset is None:
            raise NotReady(f"run {self.plan.run.id} has no dataset {place + 1}")
        return dataset

    @cached_property
    def own(self) -> Cells:
        """The cells of the confidential data, of the variables that go out."""

        def of(name: str) -> Keys:
            data = self.confidential
            return self._cells.get(name, len(data), lambda: cells_of(data, (name,))[name])

        return CellsOnDemand((*self.plan.kept, *self.plan.replaced), of)

    @cached_property
    def cells(self) -> tuple[Cells, ...]:
        """The cells of every released dataset."""
        names = (*self.plan.kept, *self.plan.replaced)
        return tuple(CellsOnDemand(names, partial(self._released_cells, place)) for place in range(self.plan.datasets))

    def _released_cells(self, place: int, name: str) -> Keys:
        def compute() -> Keys:
            return cells_of(self.variable(name)[place], (name,), self.confidential)[name]

        return self._cells.get((place, name), self.plan.records, compute)

    def nearest(self, kept: tuple[str, ...], drawn: tuple[str, ...], among: Integers | None = None) -> Pairs:
        """The records that are nearest to each other in what is ``kept``, chosen by the rows of ``kept`` and ``drawn``."""

        def compute() -> Pairs:
            return nearest_pairs(self.confidential, kept, rows_of(self.own, (*kept, *drawn)), among)

        return compute() if among is not None else self._pairs.get((kept, drawn), 1, compute)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The replaced variables that are numbers or dates, in the confidential data and in the release."""
        generalised, schema = self.recipe.generalised, self.confidential.schema
        return tuple(n for n in self.plan.replaced if n not in generalised and not schema[n].kind.has_levels)

    @cached_property
    def size(self) -> str:
        """How much was looked at, in words."""
        return f"{self.plan.datasets} of {self.plan.records:,} records against {len(self.confidential):,}"


def numbered(records: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> tuple[int, ...]:
    """Record numbers as a finding has them."""
    return tuple(int(record) for record in records)
