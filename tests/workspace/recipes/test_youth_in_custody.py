"""The recipe of the Survey of Youth in Custody: the paper's records, strata and combinations, and its models on the real data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sfumato.engine.design.stratified_logit import StratumRecords, stratified_records
from sfumato.engine.execution.tasks import draw_dataset, fit_model
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.synthesis.multinomial_logistic import MultinomialLogisticSpec
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import PreparedRun, prepare_run


@pytest.fixture
def youths(public_data: Callable[[str], Path]) -> PreparedRun:
    return prepare_run(
        find_recipe("youth-in-custody"), str(public_data("youth_in_custody.csv")), None, ["release.m=2"], key=PUBLIC
    )


def strata(youths: PreparedRun, step: int) -> tuple[StratumRecords, ...]:
    spec = youths.recipe.synthesis[step].spec
    assert isinstance(spec, MultinomialLogisticSpec)
    target = youths.recipe.synthesis[step].targets[0]
    return stratified_records(youths.data, target, spec.predictors, "psu", spec.groups, filled=spec.missing == "filled")


@pytest.mark.slow
def test_records_strata_and_combinations_are_the_paper_s(youths: PreparedRun) -> None:
    assert len(youths.data) == 2562
    alone, others = strata(youths, 0)
    assert (len(alone.rows), len(others.rows)) == (822, 1740)
    race = [len(stratum.class_keys) for stratum in strata(youths, 1)]
    assert [race[0] * len(alone.class_keys), race[1] * len(others.class_keys)] == [55, 175]
    assert [len(stratum.rows) for stratum in strata(youths, 1)] == [821, 1739], "two have no race"


@pytest.mark.study
def test_its_datasets_keep_each_youth_in_the_stratum_and_the_other_columns_bit_for_bit(youths: PreparedRun) -> None:
    fits = [fit_model(youths.recipe, item, youths.data, key=PUBLIC) for item in range(2)]
    said = [diagnostic for fit in fits for diagnostic in fit.diagnostics]
    assert all(diagnostic.passed is not False for diagnostic in said)
    left_out = [d.value for d in said if d.name == "columns_left_out"]
    assert left_out[:2] == [0.0, 0.0], "no predictor of facility is determined by the others in a stratum"
    released = draw_dataset(youths.recipe, 1, youths.data, fits, key=PUBLIC)
    others = [name for name in youths.data.schema.names if name not in ("psu", "race")]
    assert released.frame[others].equals(youths.data.frame[others])
    assert not released.frame["race"].isna().any()
    own, made = youths.data.frame["psu"].astype(str), released.frame["psu"].astype(str)
    alone = youths.recipe.synthesis[0].spec.groups["alone"]  # type: ignore[attr-defined]
    assert (own.isin(alone) == made.isin(alone)).all()
    assert (own == made).mean() < 0.3
    shares = own.value_counts(normalize=True), made.value_counts(normalize=True)
    assert (shares[0] - shares[1]).abs().max() < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("step", [0, 1])
def test_the_maximum_of_the_smaller_stratum_is_that_of_scikit_learn(youths: PreparedRun, step: int) -> None:
    records, penalty = strata(youths, step)[0], 0.1
    ours = records.fit(penalty)
    theirs = LogisticRegression(C=1 / penalty, solver="newton-cg", tol=1e-10, max_iter=5000)
    theirs.fit(records.x[:, 1:], records.y)
    assert ours.coefficients[:, 1:] == pytest.approx(theirs.coef_, abs=1e-6)
    assert np.exp(ours.class_log_probabilities(records.x)) == pytest.approx(
        theirs.predict_proba(records.x[:, 1:]), abs=1e-6
    )
