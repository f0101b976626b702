"""The recipe of the American Community Survey: the lecture's figures on the original, and a release beside it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.execution.tasks import draw_dataset, fit_model, measure_dataset
from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import PreparedRun, prepare_run

KEPT = ["SEX", "RACE", "MAR", "MIG", "SCH"]


@pytest.fixture
def persons(public_data: Callable[[str], Path]) -> PreparedRun:
    return prepare_run(find_recipe("acs"), str(public_data("acs.csv")), None, [], key=PUBLIC)


def shares(frame: pd.DataFrame, names: tuple[str, ...]) -> pd.Series[float]:
    return frame.astype(str).groupby(list(names)).size() / len(frame)


def identification(persons: PreparedRun) -> int:
    keys = [step.method.key for step in persons.recipe.measures]
    return keys.index("risk.identification")


def test_the_original_has_the_lecture_s_risks(persons: PreparedRun) -> None:
    item = identification(persons)
    _, rows = measure_dataset(persons.recipe, item, persons.data, persons.data, None, key=PUBLIC)
    found = {row.measure: row.value for row in rows}
    assert found["expected_match_risk"] == pytest.approx(173)
    assert found["true_match_rate"] == pytest.approx(0.003)
    assert (found["false_match_rate"], found["unique_matches"]) == (0, 30)


@pytest.mark.study
def test_the_release_is_near_the_original_and_finds_few_of_its_persons(persons: PreparedRun) -> None:
    """The lecture's own release, by another program, has 64.8 expected matches."""
    own = persons.data.frame
    fit = fit_model(persons.recipe, 0, persons.data, key=PUBLIC)
    releases = [draw_dataset(persons.recipe, draw, persons.data, [fit], key=PUBLIC) for draw in range(1, 6)]
    item = identification(persons)
    for draw, release in enumerate(releases, start=1):
        assert release.frame[KEPT].equals(own[KEPT])
        _, rows = measure_dataset(persons.recipe, item, persons.data, release, draw, key=PUBLIC)
        assert 35 < next(row.value or 0.0 for row in rows if row.measure == "expected_match_risk") < 60
    for many, most in ((1, 0.01), (2, 0.02)):
        for names in itertools.combinations(own.columns, many):
            means = (
                sum((shares(release.frame, names) for release in releases[1:]), shares(releases[0].frame, names)) / 5
            )
            assert shares(own, names).sub(means, fill_value=0).abs().max() < most, names
    broken = releases[0].frame.assign(DIS=np.random.default_rng(1).permutation(own["DIS"]))
    pairs = [("MAR", "DIS"), ("SCH", "DIS")]
    assert max(shares(own, names).sub(shares(broken, names), fill_value=0).abs().max() for names in pairs) > 0.02, (
        "the control"
    )
