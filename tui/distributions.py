"""What the screen of distributions shows: asked for as one value, computed in a thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from sfumato.engine.schema import Variable
from sfumato.workspace.plots.column import Column
from sfumato.workspace.plots.figure import CONFIDENTIAL
from sfumato.workspace.plots.joint import Joint, Scatter, Window, joint, scatter
from sfumato.workspace.plots.marginal import Draws, Marginal, marginal, pictures_of
from sfumato.workspace.plots.marginal import Picture as OneVariable
from sfumato.workspace.plots.shades import percent
from sfumato.workspace.views.runs import Run, find_run

if TYPE_CHECKING:
    from sfumato.workspace.store.workspace import Workspace

__all__ = [
    "Picture", "Shelf", "Shown", "Subject", "Wanted", "answer", "can_log", "same_axes", "subject_of", "with_draws",
    "with_second", "with_variable",
]  # fmt: skip

Picture = OneVariable | Literal["heat map", "scatter"]
TWO = ("heat map", "scatter")
SHELVED = 6


@dataclass(frozen=True)
class Subject:
    """Which data: a dataset, what a run released of it (``run`` None where there is none), and how many datasets."""

    dataset_id: int
    variables: tuple[Variable, ...]
    run: Run | None
    draws: int

    @property
    def origin(self) -> str:
        """What the released data are called."""
        return "anonymised" if self.run is not None and self.run.recipe.anonymisation else "synthetic"

    @property
    def seed(self) -> int:
        """The seed by which points are chosen."""
        return 1 if self.run is None else self.run.seed


def subject_of(workspace: Workspace, project_id: int, run_id: int | None) -> Subject | None:
    """The data of a run, or without one of the project's plan; None where there are none."""
    from sfumato.workspace.plan.drafts import draft_of
    from sfumato.workspace.views.columns_beside import released_draws

    run = None if run_id is None else find_run(workspace, run_id)
    draft = None if run is not None else draft_of(workspace, project_id)
    dataset_id = run.dataset_id if run is not None else draft.dataset_id if draft is not None else None
    if dataset_id is None:
        return None
    draws = 0 if run is None else len(released_draws(workspace, run.id))
    return Subject(dataset_id, tuple(workspace.dataset(dataset_id).schema), run if draws else None, draws)


@dataclass
class Shelf:
    """The variables that were read last, so that another picture of them needs no reading."""

    columns: dict[str, Column] = field(default_factory=dict)

    def read(self, workspace: Workspace, subject: Subject, names: Sequence[str]) -> list[Column]:
        """The variables of these names."""
        from sfumato.workspace.views.columns_beside import columns_beside

        known = dict(self.columns)
        wanted = [name for name in dict.fromkeys(names) if name not in known]
        if wanted:
            known |= columns_beside(workspace, subject.dataset_id, subject.run, wanted)
        kept = [name for name in known if name not in names][-SHELVED:]
        self.columns = {name: known[name] for name in (*kept, *dict.fromkeys(names))}
        return [known[name] for name in names]


@dataclass(frozen=True)
class Wanted:
    """A picture of one variable or of two; ``log`` of the first by its logarithm, ``log_up`` of the other, or of the values.

    ``across`` and ``up`` say how a heat map is binned.
    """

    x: str
    y: str | None
    picture: Picture
    draws: Draws = "band"
    log: bool = False
    log_up: bool = False
    across: Window = field(default_factory=lambda: Window(20))
    up: Window = field(default_factory=lambda: Window(12))


@dataclass(frozen=True, eq=False)
class Shown:
    """What was ``wanted`` (changed where there is no such picture), and one of three pictures with its variables."""

    wanted: Wanted
    pictures: tuple[Picture, ...]
    columns: tuple[Column, ...]
    found: Marginal | Joint | Scatter
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """``price by reviews, heat map``."""
        return f"{' by '.join(column.name for column in self.columns)}, {self.wanted.picture}"


def answer(workspace: Workspace, subject: Subject, shelf: Shelf, wanted: Wanted) -> Shown:
    """Compute a picture. Raises DamagedTable and NotFound."""
    names = [wanted.x] if wanted.y is None else [wanted.x, wanted.y]
    columns = shelf.read(workspace, subject, names)
    pictures = _pictures(columns)
    wanted = _possible(wanted, columns, pictures)
    notes = [f"{column.name}: {column.withheld}" for column in columns if column.withheld and subject.run is not None]
    if wanted.picture == "heat map":
        both = joint(columns[0], columns[1], wanted.across, wanted.up, wanted.draws, subject.origin)
        return Shown(wanted, pictures, tuple(columns), both, (*notes, *_outside(both)))
    if wanted.picture == "scatter":
        points = scatter(
            columns[0], columns[1], wanted.draws, subject.seed, subject.origin, log_x=wanted.log, log_y=wanted.log_up
        )
        return Shown(wanted, pictures, tuple(columns), points, (*notes, points.note))
    one = marginal(columns[0], wanted.picture, wanted.draws, subject.origin, log=wanted.log)
    return Shown(wanted, pictures, (columns[0],), one, (*notes, *one.notes))


def _pictures(columns: Sequence[Column]) -> tuple[Picture, ...]:
    if len(columns) == 1:
        return pictures_of(columns[0])
    numbers = not any(column.levels for column in columns)
    return (*pictures_of(columns[0]), "heat map", *(("scatter",) if numbers else ()))


def _possible(wanted: Wanted, columns: Sequence[Column], pictures: Sequence[Picture]) -> Wanted:
    """The same where it can be drawn, else the nearest that can: logarithms only of numbers some of which are above 0."""
    picture = wanted.picture if wanted.picture in pictures else pictures[0]
    logs = [can_log(column) for column in columns]
    log = wanted.log and logs[0]
    two = picture in TWO
    log_up = wanted.log_up and (logs[1] if two else picture in ("histogram", "density", "shares"))
    across = replace(wanted.across, log=log)
    return replace(wanted, picture=picture, log=log, log_up=log_up, across=across, up=replace(wanted.up, log=log_up))


def can_log(column: Column) -> bool:
    """Whether a variable has values that a logarithmic axis can show."""
    return not column.levels and column.unit == "number" and bool((column.confidential > 0).any())


def _outside(both: Joint) -> list[str]:
    """Which share of the records no bin holds."""
    if max(both.outside) < 1e-9:
        return []
    released = f", {both.name.partition(',')[0]} {percent(both.outside[1])}" if both.released is not None else ""
    return [f"not in the picture: {CONFIDENTIAL} {percent(both.outside[0])}{released}"]


def with_variable(wanted: Wanted, name: str) -> Wanted:
    """The same picture of another variable."""
    return replace(wanted, x=name, y=None if wanted.y == name else wanted.y)


def with_second(wanted: Wanted, name: str | None) -> Wanted:
    """A picture of the variable with another beside it, a heat map at first; of the variable alone where that is None."""
    if name is None:
        one = "histogram" if wanted.picture in TWO else wanted.picture
        return replace(wanted, y=None, picture=one, log_up=False)
    return replace(wanted, y=name, picture=wanted.picture if wanted.picture in TWO else "heat map", log_up=False)


def with_draws(wanted: Wanted, draws: int, step: int) -> Wanted:
    """All datasets as mean and band, each of them, then every single one of so many."""
    ways: list[Draws] = ["band", "each", *range(draws)]
    return replace(wanted, draws=ways[(ways.index(wanted.draws) + step) % len(ways)])


def same_axes(one: Shown, other: Shown) -> bool:
    """Whether the place of a cursor and the range in view mean the same in two pictures."""
    return _axes(one.wanted) == _axes(other.wanted)


def _axes(wanted: Wanted) -> tuple[object, ...]:
    two = wanted.picture in TWO
    return (wanted.x, wanted.log, wanted.picture if two else "one", *((wanted.y, wanted.log_up) if two else ()))
