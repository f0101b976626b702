"""A survey that keeps its quasi-identifiers: wrong drawn values hide people only from an intruder who insists on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from judged_releases.entering import KEY
from survey_of_kept_columns import (
    BEST,
    DRAWN,
    EXACT,
    KEPT,
    LIMIT,
    SMALLEST,
    SurveyRun,
    as_recode,
    run_survey,
    survey_levers,
)

from sfumato.workspace.store.workspace import Workspace

N = 1500


def small_survey() -> pd.DataFrame:
    """Return the survey of a generated table with the columns and the levels' numbers of Adult."""
    rng = np.random.default_rng(9)
    return pd.DataFrame(
        {
            "sex": rng.choice(["Female", "Male"], N),
            "age": 17 + rng.binomial(60, 0.35, N),
            "education": [f"e{i}" for i in np.minimum(rng.geometric(0.3, N), 12)],
            "marital_status": [f"m{i}" for i in np.minimum(rng.geometric(0.5, N), 6)],
            "occupation": [f"o{i}" for i in rng.integers(0, 12, N)],
            "hours_per_week": rng.choice([20, 35, 40, 45, 50, 60], N),
            "income": rng.choice(["<=50K", ">50K"], N, p=[0.75, 0.25]),
        }
    )


@pytest.fixture(scope="module")
def surveys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SurveyRun]:
    frame = small_survey()
    first = survey_levers(frame)[0]
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        directory: Path = tmp_path_factory.mktemp("survey")
        with Workspace.create(directory / "workspace", KEY) as workspace:
            return {
                "plain": run_survey(workspace, frame),
                "changed": run_survey(workspace, frame, as_recode(first)),
            }


@pytest.mark.slow
def test_an_exact_match_on_drawn_values_meets_a_limit_that_the_best_intruder_does_not(
    surveys: dict[str, SurveyRun],
) -> None:
    run, frame = surveys["plain"], small_survey()
    alone = frame.groupby(list(KEPT))[DRAWN[0]].transform("size") == 1
    assert (run.outcomes[EXACT], run.outcomes[BEST]) == ("met", "not met")
    # Whoever looks at the kept columns alone is certain of everybody who is alone in them.
    assert run.rates[BEST] == pytest.approx(alone.mean())
    assert run.rates[EXACT] < LIMIT < run.rates[BEST]
    assert run.answer.may_leave == "no"


@pytest.mark.slow
def test_the_first_change_of_the_finding_leaves_as_many_people_as_it_says(surveys: dict[str, SurveyRun]) -> None:
    frame = small_survey()
    first = survey_levers(frame)[0]
    plain, changed = surveys["plain"], surveys["changed"]
    small = int((frame.groupby(list(KEPT))[DRAWN[0]].transform("size") < SMALLEST).sum())
    assert plain.counted == plain.finding.people == small
    assert changed.counted == changed.finding.people == first.n_unprotected < small
    assert changed.rates[BEST] < plain.rates[BEST]
