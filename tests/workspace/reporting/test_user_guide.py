"""The page for users of released data: its worked examples are right, and it says what the data are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from array_places import CountingPlace
from prepared_tables import variables_of
from scipy import stats

from sfumato.engine.data.long_arrays import placing_long_arrays
from sfumato.engine.data.provenance import ReleaseProvenance
from sfumato.engine.data.schema import Kind
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.policy.disclosure import DisclosureRules
from sfumato.workspace.reporting.user_guide import PublicRelease, coverage_sentence, user_guide_document
from sfumato.workspace.reporting.worked_example import bounded_mean, combined_mean

VARIABLES: dict[str, Any] = variables_of(
    "region: categorical quasi_identifier", "age: count quasi_identifier", "income: continuous sensitive"
)
STEP = {"target": "income", "method": "linear_regression", "predictors": ["region"]}
REGION = {"target": "region", "method": "cart"}
AGE = {"target": "age", "method": "cart", "predictors": ["region"]}
COLUMNS = [np.array([1.0, 2.0, 4.0, np.nan]), np.array([2.0, 2.0, 5.0, 5.0]), np.array([0.0, 1.0, 6.0, 3.0])]


def release_of(m: int) -> ReleaseProvenance:
    """A release of m datasets with the age kept."""
    return ReleaseProvenance("synthetic", 4, (4,) * m, (), ("age",))


def test_the_example_of_partial_synthesis_is_reiters_rule() -> None:
    """q, u, b and T = u + b/m by hand; t with (m - 1)(1 + m u / b)^2 degrees of freedom."""
    found = combined_mean("income", COLUMNS, release_of(3))
    assert found is not None
    assert found.combined is not None
    q = [7 / 3, 3.5, 2.5]
    u = [(7 / 3) / 3, 3.0 / 4, 7.0 / 4]
    b, mean_u = float(np.var(q, ddof=1)), sum(u) / 3
    total, degrees = mean_u + b / 3, 2 * (1 + 3 * mean_u / b) ** 2
    assert found.means == pytest.approx(q)
    assert found.variances == pytest.approx(u)
    assert (found.between_variance, found.combined.estimate) == (pytest.approx(b), pytest.approx(sum(q) / 3))
    half = stats.t.ppf(0.975, degrees) * total**0.5
    assert found.combined.interval() == pytest.approx((sum(q) / 3 - half, sum(q) / 3 + half))


def test_one_dataset_and_too_few_values_have_no_combination() -> None:
    alone = combined_mean("income", COLUMNS[:1], release_of(1))
    assert alone is not None
    assert alone.combined is None
    assert combined_mean("income", [np.array([1.0, np.nan])], release_of(1)) is None


def test_the_example_of_a_long_dataset_is_that_in_memory() -> None:
    long = [np.tile(values, 50) for values in COLUMNS]
    expected, place = combined_mean("income", long, release_of(3)), CountingPlace()
    with placing_long_arrays(place, 16):
        found = combined_mean("income", long, release_of(3))
    assert place.arrays
    assert expected is not None
    assert found is not None
    assert found.means == expected.means
    assert found.variances == pytest.approx(expected.variances, rel=1e-12)


def test_the_example_of_intervals_gives_both_ends_of_the_mean() -> None:
    labels = ["[20, 30)", "[30, 40)", "*", None, ">=65", "20-29"]
    found = bounded_mean("age", labels, Kind.COUNT)
    assert found is not None
    assert (found.lower_mean, found.upper_mean, found.n_intervals, found.n_records) == (
        pytest.approx(70 / 3),
        pytest.approx(100 / 3),
        3,
        6,
    )
    assert bounded_mean("age", ["*", "old"], Kind.COUNT) is None


def public_release(
    recipe: dict[str, Any], kept: tuple[str, ...], replaced: tuple[str, ...], **more: Any
) -> PublicRelease:
    made = Recipe.from_table({"variables": VARIABLES, **recipe})
    return PublicRelease(made, made.m, 80, kept, replaced, (), DisclosureRules(), **more)


def test_the_page_says_which_values_are_real_and_how_datasets_are_combined() -> None:
    recipe = {"title": "Inside", "release": {"m": 3, "title": "Incomes <b>2020</b>"}, "synthesis": [STEP]}
    example = combined_mean("income", COLUMNS, release_of(3))
    page = user_guide_document(public_release(recipe, ("region", "age"), ("income",), example=example)).to_html()
    for words in (
        "SYNTHETIC DATA. PUBLIC: every number is computed from the released files alone", "The values of income are drawn from statistical models",
        "The values of region and age are those of the confidential records, each row one person&#x27;s", "may be one that somebody has",
        "T = k u + b/m", "Here k = 1", "Reiter 2003", "combined estimate q",
        "Incomes &lt;b&gt;2020&lt;/b&gt;", "Expect differences, and ask the data&#x27;s keeper",
    ):  # fmt: skip
        assert words in page, words
    assert "Inside" not in page
    assert "INTERNAL" not in page


def test_rows_of_units_are_records_and_not_people() -> None:
    home = {"home": {"kind": "count", "role": "unit"}}
    recipe = {"variables": VARIABLES | home, "data": {"missing": "drop"}, "release": {"m": 1}, "synthesis": [STEP]}
    release = public_release(recipe, ("region", "age"), ("income",), coverage=(60, 20), has_units=True)
    page = user_guide_document(release).to_html()
    assert "each row one record&#x27;s" in page
    assert coverage_sentence(release).startswith("They describe at least 75 % of the records of")
    assert "Records without some value are left out" in coverage_sentence(release)


def test_full_synthesis_has_its_own_rule_and_one_dataset_in_part_none() -> None:
    release = {"release": {"m": 3}, "synthesis": [REGION, AGE, {**STEP, "method": "cart"}]}
    full = user_guide_document(public_release(release, (), ("region", "age", "income"))).to_markdown()
    assert "T = k u + u/m" in full
    assert "with the same parameters in every dataset" in full
    assert "No variable was kept from the confidential records" in full
    one = user_guide_document(
        public_release({**release, "release": {"m": 1}}, (), ("region", "age", "income"))
    ).to_markdown()
    assert "T = k u + u/m" in one
    assert "Do not stack" not in one
    alone = user_guide_document(
        public_release({"release": {"m": 1}, "synthesis": [STEP]}, ("region", "age"), ("income",))
    ).to_markdown()
    assert "There is no 95 % interval that covers: one dataset alone" in alone


def test_noisy_tables_have_no_rule_and_requested_rows_a_factor_to_ask_for() -> None:
    names = ("region", "age", "income")
    step = {"target": [*names], "method": "margins", "bins": {"age": "width 10", "income": "width 10"}}
    noisy = {"release": {"m": 5}, "synthesis": [{**step, "epsilon": 1.0}]}
    said = user_guide_document(public_release(noisy, (), names)).to_markdown()
    assert "no 95 % interval that covers: noise was added to the tables once, so all datasets share this error" in said
    assert "T = " not in said
    assert "Where protected tables are in the package, compute shares from these" in said
    assert "Do not take extremes of region, age and income for those of the population" in said
    exact = {"release": {"m": 5, "records": 400}, "synthesis": [{**step, "protection": "exact"}]}
    assert (
        "k is the number of rows for each confidential record"
        in user_guide_document(public_release(exact, (), names)).to_markdown()
    )


def test_the_page_of_files_made_elsewhere_claims_what_their_keeper_declared_and_no_more() -> None:
    """Neither that models drew the values, nor that none was kept, nor who was left out is known."""
    evaluation = {"release": {"m": 3, "released": ["region", "age", "income"]}, "data": {"missing": "drop"}}
    page = user_guide_document(public_release(evaluation, (), ("region", "age", "income"))).to_markdown()
    for words in (
        "Data made by another program: 3 datasets of 80 records",
        "DATA MADE BY ANOTHER PROGRAM",
        "How it made the values of region, age and income is not known here, nor whether some of them are values of real people",
        "Whether a variable was kept from the confidential records is not known",
        "Methods: not known",
        "Whether that is so is not known here",
    ):
        assert words in page, words
    for claim in (
        "statistical model",
        "No variable was kept",
        "SYNTHETIC",
        "left out are",
        "are left out",
        "It holds where the models hold",
    ):
        assert claim not in page, claim
    part = {"release": {"m": 3, "released": ["income"], "order": "original"}}
    kept = user_guide_document(public_release(part, ("region", "age"), ("income",))).to_markdown()
    assert "Their keeper describes the values of region and age as those of the confidential records" in kept
    assert "as it was, says the keeper" in kept
    assert "the order of the files that were scored" in kept
    coarse = {"release": {"m": 1, "released": ["age"], "generalised": ["age"]}}
    anonymised = user_guide_document(public_release(coarse, ("region", "income"), ("age",))).to_markdown()
    assert "their keeper describes them as confidential records whose values were made coarser" in anonymised


def test_an_anonymised_table_says_how_its_values_are_read() -> None:
    recipe = {"anonymisation": [{"method": "mondrian", "k": 3, "quasi_identifiers": ["age"]}]}
    found = bounded_mean("age", ["[20, 30)", "[30, 40)"], Kind.COUNT)
    page = user_guide_document(public_release(recipe, ("region", "income"), ("age",), example=found)).to_html()
    for words in ("ANONYMISED DATA", "confidential records whose values of age were made coarser", "as they were"):
        assert words in page, words
