"""What a check of the gate is: declared once, with its limits and why they are so; it looks at a case and says what it sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from sfumato.engine.disclosure.cells import Cells, cells_of
from sfumato.engine.microdata import Microdata
from sfumato.engine.recipe import Recipe

from ..errors import NotReady
from ..store.artefacts import released_dataset
from ..store.workspace import Dataset, Workspace
from .contents import ReleasePlan
from .policy import Policy

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
    """All that checks look at; tables are read when the first asks for them, and once."""

    def __init__(self, workspace: Workspace, plan: ReleasePlan, policy: Policy) -> None:
        self.workspace, self.plan, self.policy = workspace, plan, policy

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
    def releases(self) -> tuple[Microdata, ...]:
        """Every released dataset as the workspace has it. Raises NotReady."""
        found = []
        for draw in range(1, self.plan.datasets + 1):
            dataset = released_dataset(self.workspace, self.plan.run.id, self.recipe, draw)
            if dataset is None:
                raise NotReady(f"run {self.plan.run.id} has no dataset {draw}")
            found.append(dataset)
        return tuple(found)

    @cached_property
    def own(self) -> Cells:
        """The cells of the confidential data, of the variables that go out."""
        return cells_of(self.confidential, (*self.plan.kept, *self.plan.replaced))

    @cached_property
    def cells(self) -> tuple[Cells, ...]:
        """The cells of every released dataset."""
        names = (*self.plan.kept, *self.plan.replaced)
        return tuple(cells_of(one, names, self.confidential) for one in self.releases)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The replaced variables that are numbers or dates, in the confidential data and in the release."""
        generalised = self.releases[0].generalised
        schema = self.confidential.schema
        return tuple(n for n in self.plan.replaced if n not in generalised and not schema[n].kind.has_levels)

    @cached_property
    def size(self) -> str:
        """How much was looked at, in words."""
        return f"{self.plan.datasets} of {self.plan.records:,} records against {len(self.confidential):,}"


def numbered(records: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> tuple[int, ...]:
    """Record numbers as a finding has them."""
    return tuple(int(record) for record in records)
