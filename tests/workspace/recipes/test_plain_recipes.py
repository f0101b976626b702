"""The plain recipes ``adult`` and ``anes96``: they run as they ship, every number is computed, and a release tells less than the original."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_run


@pytest.mark.slow
@pytest.mark.parametrize(("name", "file", "records"), [("adult", "adult.csv", 10_000), ("anes96", "", 944)])
def test_the_recipe_runs_as_shipped(name: str, file: str, records: int, public_data: Callable[[str], Path]) -> None:
    prepared = prepare_run(find_recipe(name), str(public_data(file)) if file else None, None, [], key=PUBLIC)
    assert len(prepared.data) == records
    rows = execute_run(prepared.recipe, prepared.data, key=PUBLIC).rows
    assert not [row for row in rows if row.status == "not computed" and row.measure != "conditional"]
    means = {(row.dataset, row.measure, row.target): row.value or 0.0 for row in rows if row.draw is None}
    for measure in ("expected_match_risk", "true_match_rate"):
        assert means["synthetic", measure, ""] < 0.6 * means["confidential", measure, ""]
    assert means["synthetic", "s_pmse", ""] < 2
    (sensitive,) = {row.target for row in rows if row.measure == "tcap"}
    assert means["synthetic", "tcap", sensitive] < means["confidential", "tcap", sensitive] == 1
    marginal = {target: value for (_, measure, target), value in means.items() if measure == "marginal"}
    assert len(marginal) == sum(len(step.targets) for step in prepared.recipe.synthesis)
    assert max(marginal.values()) < 0.005


@pytest.mark.slow
def test_the_election_study_may_come_as_a_file(tmp_path: Path) -> None:
    """As the manual says how it is written."""
    import statsmodels.api as sm

    shipped = prepare_run(find_recipe("anes96"), None, None, [], key=PUBLIC)
    sm.datasets.anes96.load_pandas().data.to_csv(tmp_path / "anes96.csv", index=False)
    given = prepare_run(find_recipe("anes96"), str(tmp_path / "anes96.csv"), None, [], key=PUBLIC)
    assert given.data.frame.equals(shipped.data.frame)
