"""Integrals over rates where a bound is large and the random effects are small: every node is inside the table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.errors import NotConverged
from sfumato.engine.execution.tasks import fit_model
from sfumato.engine.posterior.poisson_lognormal import rate_quadrature
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.synthesis import zero_inflated_truncated_poisson as method


@pytest.mark.parametrize("tau", [1e-4, 1e-3, 0.01, 0.03, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("bound", [30, 10_000, 1_000_000, 10_000_000])
def test_a_bound_that_no_count_comes_near_changes_no_probability(tau: float, bound: int) -> None:
    y = np.array([0.0, 1.0, 3.0, 7.0])
    eta = np.array([0.5, 0.5, 1.0, 1.2])
    with_bound, without = (rate_quadrature(y, eta, tau, one).log_mass for one in (bound, None))
    if tau <= 0.5:
        assert with_bound == pytest.approx(without, abs=2e-6)
    assert np.isfinite(with_bound).all()


@pytest.mark.slow
def test_a_failure_to_converge_names_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise NotConverged("alpha", "rhat", 1.2, "must be below 1.01")

    monkeypatch.setattr(method, "_sample_posterior", fail)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"days": np.where(rng.random(200) < 0.4, 0, rng.poisson(3, 200)).astype(float)})
    for sampler, lever in (("laplace", 'sampler = "emcee"'), ("emcee", "most_steps")):
        recipe = Recipe.from_table(
            {
                "variables": {"days": {"kind": "count", "bounds": [0, 365]}},
                "synthesis": [{"method": "zero_inflated_truncated_poisson", "target": "days", "sampler": sampler}],
                "release": {"m": 1, "seed": 1},
            }
        )
        with pytest.raises(NotConverged, match="recode") as failed:
            fit_model(recipe, 0, conform_to_schema(frame, recipe.schema), key=bytes(32))
        assert lever in str(failed.value)
        assert '"days"' in str(failed.value)
