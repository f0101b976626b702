"""Which points of a study a task computes."""

from __future__ import annotations

import pytest

from sfumato.engine.execution.tasks import TaskKind, plan_tasks, points_of_task
from sfumato.engine.recipe.recipe import Recipe


def recipe(*levels: float) -> Recipe:
    return Recipe.from_table(
        {
            "variables": {"visits": {"kind": "count", "role": "quasi_identifier"}, "pay": {"kind": "continuous"}},
            "synthesis": [{"target": "pay", "method": "cart", "predictors": ["visits"]}],
            "study": [
                {
                    "method": "studies.intruder_uncertainty",
                    "variable": "visits",
                    "levels": list(levels),
                    "radius": {"pay": "5%"},
                }
            ],
        }
    )


@pytest.mark.parametrize(
    ("levels", "names"),
    [
        ((0.0,), ["study/0/0"]),
        ((0.0, 0.1), ["study/0/0", "study/0/1"]),
        ((0.0, 0.1, 0.2), ["study/0/0-1", "study/0/2"]),
        ((0.0, 0.01, 0.05, 0.1, 0.2), ["study/0/0-2", "study/0/3-4"]),
    ],
)
def test_two_tasks_share_the_levels_and_every_level_is_of_one(levels: tuple[float, ...], names: list[str]) -> None:
    of = recipe(*levels)
    tasks = [task for task in plan_tasks(of) if task.kind is TaskKind.STUDY]
    assert [task.key for task in tasks] == names
    assert sum((points_of_task(of, 0, task.key) for task in tasks), ()) == levels
    assert [task.point for task in tasks] == [points_of_task(of, 0, task.key)[0] for task in tasks]


def test_a_task_of_an_earlier_version_computes_its_one_point() -> None:
    assert points_of_task(recipe(0.0, 0.01, 0.05), 0, "study/0/1") == (0.01,)
