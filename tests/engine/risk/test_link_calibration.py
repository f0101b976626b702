"""Are links as often right as their probabilities claim, whatever share of the values is another person's?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import pytest
from linkage_tables import NEAR, alike, flipped, people, prepared

from sfumato.engine.data.arrays import Floats
from sfumato.engine.matching.blocks import order_by_values
from sfumato.engine.matching.linkage import RecordLinks, find_best_links
from sfumato.engine.matching.match_weights import PatternCounts, learn_weights
from sfumato.engine.risk._link_calibration import CALIBRATION_PARTS, calibrate_links

Table = Callable[[np.random.Generator], pd.DataFrame]
TABLES: dict[str, Table] = {
    "independent variables": lambda rng: people(rng, 400, 1).drop(columns="zip"),
    "twenty blocks": lambda rng: people(rng, 400, 20),
    "variables that depend on each other": lambda rng: alike(rng, 400),
}
JUDGED = 20
"""Links of .5 or more that a share is judged by."""
FLIPS = (0.0, 0.2, 0.4, 0.6, 0.8)
BINS = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0 + 1e-9])


def links_of(rows: pd.DataFrame, released: pd.DataFrame) -> RecordLinks:
    comparisons, blocks = prepared(rows, released, {name: near for name, near in NEAR.items() if name in rows})
    ordered = order_by_values(blocks, comparisons)
    weights = learn_weights(comparisons, blocks, PatternCounts.from_records(comparisons, blocks, ordered))
    (links,) = find_best_links(comparisons, blocks, ordered, [weights])
    return links


def fits(probability: list[Floats], right: list[Floats]) -> bool:
    """Whether links of .5 or more are right 45 % of the time, where there are some, and all as often as they claim within .05."""
    claimed, found = np.concatenate(probability), np.concatenate(right)
    sure = claimed >= 0.5
    return (np.count_nonzero(sure) < JUDGED or bool(found[sure].mean() >= 0.45)) and abs(
        float(claimed.mean() - found.mean())
    ) <= 0.05


def sure_links(probability: list[Floats], right: list[Floats]) -> tuple[int, float, float]:
    """Links of .5 or more: how many, their mean probability and the share that is right."""
    claimed, found = np.concatenate(probability), np.concatenate(right)
    sure = claimed >= 0.5
    n = int(np.count_nonzero(sure))
    return n, float(claimed[sure].mean()) if n else math.nan, float(found[sure].mean()) if n else math.nan


def in_bins(probability: list[Floats], right: list[Floats]) -> str:
    claimed, found = np.concatenate(probability), np.concatenate(right)
    which = np.digitize(claimed, BINS) - 1
    shown = [
        f"{claimed[which == one].mean():.2f}: {found[which == one].mean():.2f} of {np.count_nonzero(which == one):,}"
        for one in np.unique(which)
    ]
    return ", ".join(shown)


def releases(name: str, share: float, seeds: int) -> Iterator[RecordLinks]:
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        rows = TABLES[name](rng)
        yield links_of(rows, flipped(rng, rows, share))


@pytest.mark.study
@pytest.mark.parametrize("name", TABLES)
def test_links_are_as_often_right_as_they_claim_whatever_share_of_the_values_is_flipped(name: str) -> None:
    """20 tables of 400 records at each share, together and each by itself. The model's own probabilities fail."""
    model_fits = []
    for share in FLIPS:
        found = list(releases(name, share, 20))
        ours, model, right = (
            [calibrate_links(one) for one in found],
            [one.probability for one in found],
            [one.link_chance for one in found],
        )
        print(f"{name}, {share:.0%} flipped, {np.concatenate(right).mean():.3f} right")
        print(f"  model:      {in_bins(model, right)}")
        print(f"  calibrated: {in_bins(ours, right)}")
        assert fits(ours, right)
        assert all(abs(float(np.mean(one) - np.mean(own))) <= 0.05 for one, own in zip(ours, right, strict=True))
        n, claim, correct = sure_links(ours, right)
        print(f"  links of .5 or more: {n:,}, {claim:.3f} claimed, {correct:.3f} right")
        assert n < JUDGED or claim - correct <= 0.03 + 2 * math.sqrt(0.25 / n)
        model_fits.append(fits(model, right))
    assert not all(model_fits)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.6, 0.8])
def test_sure_links_are_right_as_often_as_they_claim_where_most_values_are_flipped(share: float) -> None:
    """The model's own probabilities are the negative control: its sure links are right far less often than they claim."""
    found = list(releases("twenty blocks", share, 3))
    right = [one.link_chance for one in found]
    n, claim, correct = sure_links([calibrate_links(one) for one in found], right)
    assert n >= JUDGED
    assert abs(claim - correct) <= 0.03 + 2 * math.sqrt(0.25 / n)
    alone = list(releases("variables that depend on each other", share, 3))
    _, claim, correct = sure_links([one.probability for one in alone], [one.link_chance for one in alone])
    assert claim - correct > 0.3


@pytest.mark.slow
def test_links_of_a_release_without_anybody_of_the_data_are_not_sure() -> None:
    """Another sample of the same people: by the model 2 in 10 links have a probability of .5 or more, and hardly one is right."""
    rng = np.random.default_rng(1)
    links = links_of(alike(rng, 300), alike(rng, 300))
    assert np.mean(links.probability >= 0.5) > 0.1
    assert calibrate_links(links).max() < 0.5
    assert not fits([links.probability], [links.link_chance])
    assert fits([calibrate_links(links)], [links.link_chance])


def given(probability: list[float], hit: list[bool], ties: int = 1, candidates: int = 10) -> RecordLinks:
    n = len(hit)
    return RecordLinks(
        np.full(n, candidates), np.full(n, ties), np.array(probability), np.array(hit, dtype=np.bool_), variance=0.0
    )


def test_no_record_s_own_answer_enters_its_probability() -> None:
    rng = np.random.default_rng(2)
    claimed = rng.uniform(0.1, 0.9, 50)
    hit = rng.random(50) < claimed
    first = calibrate_links(given(claimed.tolist(), hit.tolist()))
    hit[7] = not hit[7]
    again = calibrate_links(given(claimed.tolist(), hit.tolist()))
    same = np.arange(50) % CALIBRATION_PARTS == 7 % CALIBRATION_PARTS
    assert np.array_equal(first[same], again[same])
    assert (first[~same] != again[~same]).all()


def test_tied_links_share_a_probability_and_a_record_without_candidates_has_none() -> None:
    sure = calibrate_links(given([0.25] * 40, [True] * 40, ties=4))
    assert sure == pytest.approx(0.25, abs=0.01)
    assert (4 * sure <= 1).all()
    assert (calibrate_links(given([1.0] * 4, [False] * 4, ties=0, candidates=0)) == 0).all()


def test_few_records_keep_about_what_the_model_claims() -> None:
    assert calibrate_links(given([0.9], [False])) == pytest.approx(0.9)
    assert calibrate_links(given([0.9, 0.9], [True, True])).min() > 0.9
