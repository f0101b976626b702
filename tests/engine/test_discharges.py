"""The made-up discharges that synthesis is tried on: their shape, and that what Park & Ghosh measure can be measured on them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from discharges import BINS, CATEGORIES, MEASURES, NUMBERS, ORDER, SCHEMA, VARIABLES, discharges

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import MissingPolicy
from sfumato.engine.design.binning import BinningRule
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sample() -> Microdata:
    return discharges(100_000)


def test_every_category_of_the_papers_table_occurs(sample: Microdata) -> None:
    assert {name: sample.frame[name].nunique(dropna=False) for name in ORDER} == CATEGORIES
    assert math.prod(CATEGORIES.values()) == 1_018_967_040_000, "the product that Table 2 gives, not the text's 2.6e12"
    assert len(sample.frame.drop_duplicates()) > 90_000, "hardly two records are alike, as in so large a table"


def test_a_seed_makes_one_sample_of_one_population(sample: Microdata) -> None:
    first, again, other = discharges(500), discharges(500), discharges(500, seed=2)
    pd.testing.assert_frame_equal(first.frame, again.frame)
    assert not first.frame.equals(other.frame)
    whole = discharges(100_000, seed=2)
    for name in ORDER:
        shares = [found.frame[name].value_counts(normalize=True) for found in (sample, whole)]
        assert shares[0].sub(shares[1], fill_value=0).abs().max() < 0.01, name


def test_variables_depend_on_each_other(sample: Microdata) -> None:
    """Squared contingency (Cramer's V) beside that of the same column dealt to other records."""
    dealt = sample.frame.sample(frac=1, random_state=1, ignore_index=True)
    for first, second in (
        ("patzip", "race"), ("age", "mdc"), ("sex", "mdc"), ("mdc", "sev"), ("sev", "los"), ("los", "charge"),
        ("sev", "charge"), ("cat", "charge"), ("age", "pay"), ("typ", "disp"),
    ):  # fmt: skip
        own, other = (contingency(sample.frame[first], table[second]) for table in (sample.frame, dealt))
        assert own > 10 * other, (first, second)


def contingency(first: pd.Series, second: pd.Series) -> float:
    counts = pd.crosstab(first, second, dropna=False).to_numpy().astype(float)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    there = expected > 0
    return float((((counts - expected) ** 2)[there] / expected[there]).sum() / counts.sum())


def test_the_rules_group_exact_numbers_as_the_paper_did() -> None:
    exact, grouped = (discharges(5000, exact=which) for which in (True, False))
    for name, ends in NUMBERS.items():
        values = exact.numbers(name)
        codes = BinningRule.parse(BINS[name]).fit_bins(values).bin_codes(values)
        found = np.where(codes < 0, np.nan, ends[codes])
        np.testing.assert_array_equal(found, grouped.numbers(name))
        assert len(np.unique(values[~np.isnan(values)])) > len(ends)


def test_a_file_of_them_is_read_back_by_a_recipe() -> None:
    made = discharges(300)
    recipe = Recipe.from_table({"data": {"missing": "keep"}, "variables": VARIABLES, "release": {"released": ["mdc"]}})
    assert recipe.schema == SCHEMA
    again = conform_to_schema(made.frame.astype("object"), recipe.schema, MissingPolicy.KEEP)
    pd.testing.assert_frame_equal(again.frame, made.frame, check_dtype=False)


def blurred(data: Microdata, share: float, seed: int) -> Microdata:
    """A release that has a value drawn at random from its domain in the place of each value, with this probability."""
    rng, columns = np.random.default_rng(seed), dict[str, Any]()
    for name in ORDER:
        domain = data.frame[name].drop_duplicates()
        drawn = domain.sample(len(data), replace=True, random_state=seed, ignore_index=True)
        columns[name] = data.frame[name].where(rng.random(len(data)) >= share, drawn)
    return replace(data.with_columns(columns, "synthetic"), linked=False)


def rows_by_term(measures: list[dict[str, Any]], data: Microdata, released: Microdata) -> dict[tuple[Any, ...], Row]:
    """The rows of a release by measure, variable, term, condition and the first word of the model."""
    tables = {"data": {"missing": "keep"}, "variables": VARIABLES}
    form = {"released": list(ORDER), "order": "shuffled"}
    recipe = Recipe.from_table({**tables, "release": form, "measure": measures})
    return {
        (r.measure, r.target, r.params.get("term"), r.params.get("condition"), str(r.params.get("model"))[:5]): r
        for r in execute_run(recipe, data, [released], key=b"").rows
        if r.dataset == "synthetic" and r.draw is None
    }


def test_the_papers_findings_show_where_a_release_is_blurred() -> None:
    """Distances fall as less is blurred, the intercept overshoots, slopes fall short, errors rise (Figures 5 to 9)."""
    data = discharges(4000)
    attacks = [
        {"method": "risk.inference_attack", **MEASURES["risk.inference_attack"]},
        {"method": "risk.inference_attack", "sensitive": "charge", "known": ["age", "los", "patzip"]},
    ]
    utility = [{"method": key, **table} for key, table in MEASURES.items() if key.startswith("utility.")]
    high, middle, low = (rows_by_term([*attacks, *utility], data, blurred(data, share, 3)) for share in (0.8, 0.4, 0.1))
    falling = [key for key in low if key[0] in ("marginal", "conditional", "distance", "mean_absolute_error")]
    assert len(falling) > 13 + 2 * 12
    for key in falling:
        assert high[key].value > middle[key].value > low[key].value, key
    wrong = ("misclassification", "mdc", None, None, "None")
    assert high[wrong].value > low[wrong].value > low[wrong].baseline
    deviation = {key[2]: row.value for key, row in high.items() if key[0] == "relative_deviation" and key[4] == "charg"}
    assert deviation.pop("intercept") > 0.1
    assert max(deviation.values()) < -0.3


def test_a_blurred_release_has_more_uniques_by_chance_alone() -> None:
    """Figure 9: releases of 1,000 records, as the paper's; noise spreads them over keys that few have in the confidential data too."""
    data, drawn = discharges(5000), discharges(1000, seed=2)
    key = [{"method": "risk.uniqueness", **MEASURES["risk.uniqueness"]}]
    noise, sample = (rows_by_term(key, data, blurred(drawn, share, 3)) for share in (1.0, 0.0))
    uniques, single = ((name, "", None, None, "None") for name in ("sample_uniques", "population_uniques"))
    assert noise[uniques].value > sample[uniques].value + 4 * sample[uniques].value ** 0.5
    assert noise[single].value > 2 * sample[single].value
