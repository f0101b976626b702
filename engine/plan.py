"""The tasks of a run: what is computed, in which order, and what each needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from .recipe import Recipe

__all__ = ["Task", "TaskKind", "plan"]


class TaskKind(StrEnum):
    """Anonymise the table, fit a model, draw a dataset, measure one, a point of a study, combine everything into verdicts."""

    ANONYMISE = "anonymise"
    FIT = "fit"
    DRAW = "draw"
    MEASURE = "measure"
    STUDY = "study"
    COMBINE = "combine"


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of a run. ``item`` counts the recipe's steps of the kind from 0, ``draw`` the datasets from 1."""

    key: str
    kind: TaskKind
    item: int = 0
    draw: int | None = None
    point: float | None = None
    needs: tuple[str, ...] = ()


def plan(recipe: Recipe) -> tuple[Task, ...]:
    """Every task of a run of this recipe; each comes after all that it needs.

    Anonymisation steps are one task, which makes dataset 1. A recipe without any steps scores datasets that are given: it
    has no fits and no draws.
    """
    tasks = tuple(_tasks(recipe))
    return (*tasks, Task("combine", TaskKind.COMBINE, needs=tuple(task.key for task in tasks)))


def _tasks(recipe: Recipe) -> Iterator[Task]:
    fits = tuple(f"fit/{k}" for k in range(len(recipe.synthesis)))
    for k, key in enumerate(fits):
        yield Task(key, TaskKind.FIT, k)
    draws = tuple(f"draw/{draw}" for draw in range(1, recipe.m + 1)) if fits else ()
    for draw, key in enumerate(draws, start=1):
        yield Task(key, TaskKind.DRAW, draw=draw, needs=fits)
    if recipe.anonymisation:
        draws = ("draw/1",)
        yield Task(draws[0], TaskKind.ANONYMISE, draw=1)
    for j, step in enumerate(recipe.measures):
        if step.method.confidential:
            yield Task(f"measure/{j}/confidential", TaskKind.MEASURE, j)
    for draw in range(1, recipe.m + 1):
        for j in range(len(recipe.measures)):
            needs = draws[draw - 1 : draw]
            yield Task(f"measure/{j}/{draw}", TaskKind.MEASURE, j, draw, needs=needs)
    for s, step in enumerate(recipe.studies):
        for p, point in enumerate(step.spec.grid()):
            yield Task(f"study/{s}/{p}", TaskKind.STUDY, s, point=point, needs=draws)
