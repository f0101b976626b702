"""What a private fit says of the population and of itself: intervals that hold the truth as often as they say, and cost what the account shows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.execution.tasks import account_rows, execute_run
from sfumato.engine.margins.domain import Domain
from sfumato.engine.margins.private import noisy_distance
from sfumato.engine.methods.run import Run
from sfumato.engine.recipe.provenance import release_provenance
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.synthesis import margins

KEY = bytes(range(32))
EDGES = np.array([0.0, 10.0, 20.0, 40.0, 60.0])
SHARES = np.array([0.45, 0.3, 0.2, 0.05])
RUNS, RECORDS = 1_300, 800


def recipe(**step: Any) -> Recipe:
    return Recipe.from_table(
        {
            "variables": {
                "area": {"kind": "categorical", "levels": ["city", "town", "village"], "may_be_missing": True},
                "pay": {"kind": "continuous", "bounds": [0, 60], "may_be_missing": True},
            },
            "data": {"missing": "keep"},
            "synthesis": [{"method": "margins", "target": ["area", "pay"], "bins": {"pay": "at 10, 20, 40"}, **step}],
            "release": {"m": 1, "seed": 1, "records": 500},
        }
    )


def people(rng: np.random.Generator) -> pd.DataFrame:
    """Numbers that are uniform in their bins, so that the middles have the population's mean."""
    cell = rng.choice(4, RECORDS, p=SHARES)
    pay = rng.uniform(EDGES[cell], EDGES[cell + 1])
    area = np.where(cell > 1, "city", rng.choice(["town", "village"], RECORDS, p=[0.8, 0.2]))
    return pd.DataFrame({"area": area, "pay": np.where(rng.random(RECORDS) < 0.1, np.nan, pay)})


@pytest.mark.slow
def test_means_and_shares_in_the_result_rows_cover_the_population_as_often_as_they_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(margins, "SOFT_STEPS", 0)
    plan = recipe(epsilon=1.0, selection="pairs")
    step = plan.synthesis[0]
    assert isinstance(step.spec, margins.MarginsSpec)
    truth = {"pay": float(((EDGES[:-1] + EDGES[1:]) / 2 * SHARES).sum()), "city": float(SHARES[2:].sum())}
    covered, forgetful = dict.fromkeys(truth, 0), 0
    for seed in range(RUNS):
        data = conform_to_schema(people(np.random.default_rng(seed)), plan.schema, plan.data.missing)
        fit = margins.margins(data, step.targets, step.spec, Run(np.random.default_rng([5, seed])), 1)
        for one in margins.noisy_estimates(fit, step.spec, step.targets, data, release_provenance(plan, RECORDS)):
            name = one.params.get("level", one.target)
            if name in truth:
                assert one.lower is not None
                assert one.upper is not None
                covered[name] += one.lower <= truth[name] <= one.upper
            if name == "pay":
                assert one.value is not None
                assert one.reason == margins.OF_BINS
                spread = math.sqrt(float(data.present_numbers("pay").var()) / len(data.present_numbers("pay")))
                forgetful += abs(one.value - truth["pay"]) <= 1.96 * spread
    assert all(0.93 <= count / RUNS <= 0.97 for count in covered.values()), covered
    assert forgetful / RUNS < 0.9, "the control: an interval that forgets the noise"


@pytest.mark.slow
def test_the_distance_of_pairs_is_covered_and_its_noise_is_what_was_paid() -> None:
    rng, domain = np.random.default_rng(1), Domain((3, 4, 2))
    codes = np.column_stack([rng.integers(size, size=400) for size in domain.sizes])
    probabilities = np.column_stack([rng.dirichlet(np.ones(size), 5) for size in domain.sizes]).astype(np.float32)
    starts = [0, 3, 7, 9]
    exact = float(
        np.mean(
            [
                np.abs(
                    domain.count_records(codes, (a, b)) / 400
                    - probabilities[:, starts[a] : starts[a + 1]].T @ probabilities[:, starts[b] : starts[b + 1]] / 5
                ).sum()
                / 2
                for a, b in domain.variable_pairs
            ]
        )
    )
    rho, found = 0.002, []
    for seed in range(2_000):
        value, sigma = noisy_distance(
            domain, lambda c: domain.count_records(codes, c), probabilities, 400.0, rho, np.random.default_rng(seed)
        )
        found.append((value - exact) / sigma)
    assert sigma == pytest.approx(1 / (2 * 400) / math.sqrt(2 * rho))
    assert 0.93 <= np.mean(np.abs(found) <= 1.96) <= 0.97
    assert np.mean(np.abs(found) <= 1.0) < 0.75, "the control: an interval of one standard error"


def test_one_record_moves_the_distance_by_no_more_than_was_paid_for() -> None:
    rng, domain = np.random.default_rng(2), Domain((2, 3, 2))
    probabilities = np.column_stack([rng.dirichlet(np.ones(size), 4) for size in domain.sizes]).astype(np.float32)
    codes = np.column_stack([rng.integers(size, size=30) for size in domain.sizes])
    base = noisy_distance(domain, lambda c: domain.count_records(codes, c), probabilities, 30.0, math.inf, rng)[0]
    moved = 0.0
    for cell in np.ndindex(*domain.sizes):
        more = np.vstack([codes, cell])
        other = noisy_distance(
            domain, lambda c, more=more: domain.count_records(more, c), probabilities, 30.0, math.inf, rng
        )[0]  # type: ignore[misc]
        moved = max(moved, abs(other - base))
    assert 0 < moved <= 1 / 60 + 1e-12


def test_the_account_shows_what_the_public_figure_costs_and_the_rest_gets_less() -> None:
    data = conform_to_schema(
        people(np.random.default_rng(1)), recipe(epsilon=1.0).schema, recipe(epsilon=1.0).data.missing
    )
    parts: dict[float, dict[str, float | None]] = {}
    for share in (0.0, 0.1):
        rows = account_rows(recipe(epsilon=1.0, figures=share), 0, data, key=KEY)
        parts[share] = {row.params["part"]: row.value for row in rows if row.measure == "rho_part"}
        (whole,) = (row.value for row in rows if row.measure == "rho")
        assert sum(value or 0.0 for value in parts[share].values()) == pytest.approx(whole)
    assert "public figures" not in parts[0.0]
    assert (parts[0.1]["public figures"] or 0) / sum(v or 0 for v in parts[0.1].values()) == pytest.approx(0.1)
    assert (parts[0.1]["single variables"] or 0) == pytest.approx(0.9 * (parts[0.0]["single variables"] or 0))


def test_the_rows_of_a_run_have_them_and_rounded_tables_have_none() -> None:
    plan = recipe(epsilon=1.0, figures=0.1)
    data: Microdata = conform_to_schema(people(np.random.default_rng(1)), plan.schema, plan.data.missing)
    rows = [row for row in execute_run(plan, data, key=KEY).rows if row.measure.startswith("noisy_")]
    assert {(row.measure, row.target, row.params.get("level")) for row in rows} == {
        ("noisy_share", "area", "city"),
        ("noisy_share", "area", "town"),
        ("noisy_share", "area", "village"),
        ("noisy_mean", "pay", None),
        ("noisy_pair_distance", "", None),
    }
    assert all(row.lower is not None and row.upper is not None and row.lower < row.upper for row in rows)
    rounded = execute_run(recipe(), data, key=KEY).rows
    assert not [row for row in rounded if row.measure.startswith("noisy_")]
