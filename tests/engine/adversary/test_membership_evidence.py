"""The permutation test of all looks: exact by enumeration, at its level with ties and units, silent for honest releases, and what it says it would see."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, kstest

from sfumato.engine.adversary.independent_rows import OTHER_WEIGHT
from sfumato.engine.adversary.membership_evidence import (
    ENOUGH_EXCEEDANCES,
    MOST_DRAWS,
    MembershipProbe,
    ProbeCounts,
    ProbeMatrix,
    SequentialPermutationTest,
    _weight_moments,
    combine_probe_scores,
    weigh_evidence,
)

MEMBERS, RECORDS = 160, 200


def random_looks(rng: np.random.Generator, records: int = RECORDS, looks: int = 30) -> list[MembershipProbe]:
    """Looks that find people of whom half are the same in all of them."""
    often = rng.permutation(records)[: records // 2]
    found = []
    for at in range(looks):
        some = np.concatenate([often[rng.random(len(often)) < 0.2], rng.permutation(records)[:5]])
        eligible = np.unique(np.concatenate([some, rng.permutation(records)[: 40 + at]])) if at % 2 else None
        found.append(MembershipProbe("all people", f"look {at}", np.unique(some), eligible))
    return found


@pytest.mark.slow
@given(st.lists(st.sets(st.integers(0, 7), min_size=1, max_size=6), min_size=1, max_size=4), st.integers(3, 6))
def test_p_is_that_of_all_assignments_of_labels(hits: list[set[int]], members: int) -> None:
    """Of eight people every assignment is counted; the sequential p agrees with it within its error."""
    looks = [MembershipProbe("all", str(at), np.array(sorted(one), dtype=np.int64)) for at, one in enumerate(hits)]
    matrix = ProbeMatrix(looks, members, 8)
    if not matrix.looks:
        return
    observed = combine_probe_scores(matrix.observed[None, :])[0]
    statistics = []
    for chosen in combinations(range(8), members):
        turned = np.array([*chosen, *(i for i in range(8) if i not in chosen)])
        place = np.empty(8, dtype=np.int64)
        place[turned] = np.arange(8)
        relabelled = [MembershipProbe(one.who, one.what, np.sort(place[one.hits])) for one in matrix.looks]
        statistics.append(combine_probe_scores(ProbeMatrix(relabelled, members, 8).observed[None, :])[0])
    exact = np.mean(np.array(statistics) >= observed - 1e-9)
    evidence = weigh_evidence(looks, members, 8, 0.01)
    # The relative error of p from k exceedances is about 1 / sqrt(k).
    assert exact * 0.3 - 0.01 <= evidence.p <= exact * 3 + 0.01


def test_as_many_members_are_expected_as_the_rate_of_the_hold_out_people_says() -> None:
    found = ProbeCounts("all people", "", 12, 400, 2, 100, 0.0, np.arange(12))
    assert (found.expected_members, found.excess_members) == (pytest.approx(8.0), pytest.approx(4.0))
    few = ProbeCounts("all people", "", 3, 400, 2, 100, 0.0, np.arange(3))
    assert (few.expected_members, few.excess_members) == (pytest.approx(8.0), 0.0)
    assert ProbeCounts("all people", "", 3, 400, 0, 0, 0.0, np.arange(3)).expected_members == 0


def test_scores_are_hypergeometric_deviations() -> None:
    hits, eligible = np.arange(10), np.arange(30)
    matrix = ProbeMatrix(
        [MembershipProbe("all", "", hits), MembershipProbe("all", "", hits, eligible)], MEMBERS, RECORDS
    )
    n, k = MEMBERS, len(hits)
    mean, variance = k * n / RECORDS, k * n / RECORDS * (1 - n / RECORDS) * (RECORDS - k) / (RECORDS - 1)
    plain = next(at for at, one in enumerate(matrix.looks) if one.eligible is None)
    assert matrix.observed[plain] == pytest.approx((k - mean) / np.sqrt(variance))
    drawn = matrix.draw_permuted_scores(4000)
    assert np.abs(drawn.mean(axis=0)).max() < 0.08
    assert np.abs(drawn.std(axis=0) - 1).max() < 0.08


def test_the_order_of_rows_and_of_looks_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    looks = random_looks(rng)
    place = np.concatenate([rng.permutation(MEMBERS), MEMBERS + rng.permutation(RECORDS - MEMBERS)])
    turned = [
        MembershipProbe(one.who, one.what, place[one.hits], None if one.eligible is None else place[one.eligible])
        for one in looks
    ]
    first, second = (
        weigh_evidence(some, MEMBERS, RECORDS, 0.01)
        for some in (looks, [turned[i] for i in rng.permutation(len(looks))])
    )
    assert (first.p, first.n_permutations, first.n_objecting) == (second.p, second.n_permutations, second.n_objecting)
    assert first.fewest_detectable == second.fewest_detectable


def test_looks_that_find_nobody_or_everybody_say_nothing() -> None:
    nobody, everybody = np.zeros(0, dtype=np.int64), np.arange(RECORDS)
    evidence = weigh_evidence(
        [MembershipProbe("", "", nobody), MembershipProbe("", "", everybody)], MEMBERS, RECORDS, 0.01
    )
    assert (evidence.p, evidence.n_probes, evidence.strongest_counts) == (1.0, 0, None)


def test_an_end_by_exceedances_gives_their_number_over_the_draws() -> None:
    test = SequentialPermutationTest(1.0)
    test.add_statistics(np.array([0.0, 1.0] * 10))
    assert not test.is_decided
    test.add_statistics(np.array([0.0, 1.0] * 20))
    assert test.is_decided
    assert test.p == ENOUGH_EXCEEDANCES / 40, "ties count, and draws after the last exceedance do not"
    silent = SequentialPermutationTest(1.0)
    silent.add_statistics(np.zeros(MOST_DRAWS))
    assert (silent.is_decided, silent.p) == (True, 1 / (MOST_DRAWS + 1))


def test_people_who_are_found_for_being_members_are_a_finding_and_as_many_controls_are_not() -> None:
    rng = np.random.default_rng(5)
    looks = random_looks(rng)
    copied = np.arange(40)
    leaky = [MembershipProbe(one.who, one.what, np.union1d(one.hits, copied[rng.random(40) < 0.7])) for one in looks]
    found = weigh_evidence(leaky, MEMBERS, RECORDS, 0.01)
    assert found.p <= 0.001
    assert found.n_objecting > 5
    assert found.strongest_counts is not None
    assert found.combined_counts is not None
    assert found.combined_counts.n_members >= found.strongest_counts.n_members
    swapped = [MembershipProbe(one.who, one.what, np.sort((one.hits + RECORDS - 40) % RECORDS)) for one in leaky]
    assert weigh_evidence(swapped, MEMBERS, RECORDS, 0.01).p > 0.05


def test_two_looks_of_two_warnings_are_a_finding() -> None:
    """13 of 583 members and no control, 42 of 1,193 and 2 of 423: each among fifty looks that had to convince alone."""
    members, records = 1193, 1616
    first = MembershipProbe("all", "first", np.arange(13), np.concatenate([np.arange(583), members + np.arange(227)]))
    second = MembershipProbe("all", "second", np.concatenate([100 + np.arange(42), members + np.arange(2)]))
    assert weigh_evidence([first], members, records, 0.01).p > 0.005
    assert weigh_evidence([first, second], members, records, 0.01).p <= 0.005


def test_a_small_stratum_that_is_found_whole_is_a_finding() -> None:
    """Giants: 12 of 12 members and none of 6 hold-out people."""
    eligible = np.concatenate([np.arange(12), MEMBERS + np.arange(6)])
    evidence = weigh_evidence([MembershipProbe("all", "giants", np.arange(12), eligible)], MEMBERS, RECORDS, 0.01)
    assert evidence.p <= 0.001


def p_values(repeats: int, *, households: bool, by_unit: bool) -> np.ndarray:
    """P-values of releases that find whole households of equal rows at random, with labels of whole households."""
    found = []
    for seed in range(repeats):
        rng = np.random.default_rng([seed, households])
        size = 4 if households else 1
        units = np.repeat(np.arange(RECORDS // size), size)
        looks = []
        for at in range(20):
            chosen = rng.permutation(RECORDS // size)[: 40 // size]
            looks.append(MembershipProbe("all", str(at), np.flatnonzero(np.isin(units, chosen))))
        found.append(weigh_evidence(looks, MEMBERS, RECORDS, 0.01, units if by_unit else None).p)
    return np.array(found)


@pytest.mark.slow
def test_p_is_uniform_for_people_and_for_households_whose_labels_are_permuted_whole() -> None:
    for households in (False, True):
        p = p_values(300, households=households, by_unit=True)
        # Without what rows say alone p is one that is uniform over this weight, and 1 where that is more.
        below = p[p < 1] * OTHER_WEIGHT
        assert kstest(below, "uniform", (0, OTHER_WEIGHT)).pvalue > 0.001
        assert binomtest(len(below), 300, OTHER_WEIGHT).pvalue > 0.001
        assert binomtest(int((p <= 0.05).sum()), 300, 0.05 * OTHER_WEIGHT, alternative="greater").pvalue > 0.001


@pytest.mark.slow
def test_rows_of_households_that_are_permuted_one_by_one_raise_alarms() -> None:
    """The negative control: labels permuted by row where people come in households of equal rows."""
    p = p_values(100, households=True, by_unit=False)
    assert np.mean(p <= 0.01) > 0.05


def test_units_with_members_and_hold_out_people_were_held_out_by_rows() -> None:
    looks = random_looks(np.random.default_rng(8))
    mixed = np.tile(np.arange(RECORDS // 2), 2)
    assert weigh_evidence(looks, MEMBERS, RECORDS, 0.01, mixed).p == weigh_evidence(looks, MEMBERS, RECORDS, 0.01).p


@pytest.mark.slow
def test_as_many_people_as_it_says_are_found_with_the_power_that_it_says() -> None:
    members, records, level = 800, 1000, 0.01
    found, fewest = [], []
    for seed in range(60):
        rng = np.random.default_rng([seed, 9])
        noise = [rng.permutation(records)[: 20 + at] for at in range(12)]

        def looks(copied: np.ndarray, noise: list[np.ndarray] = noise) -> list[MembershipProbe]:
            return [
                MembershipProbe("all", str(at), np.union1d(one, copied), shows_copies=at < 6)
                for at, one in enumerate(noise)
            ]

        honest = weigh_evidence(looks(np.zeros(0, dtype=np.int64)), members, records, level)
        assert honest.fewest_detectable is not None
        fewest.append(honest.fewest_detectable)
        copied = rng.permutation(members)[: honest.fewest_detectable]
        # Copies are seen by the looks that show copies, and by no other.
        leaky = [
            MembershipProbe("all", str(at), np.union1d(one, copied) if at < 6 else one) for at, one in enumerate(noise)
        ]
        found.append(weigh_evidence(leaky, members, records, level).p <= level)
    assert 15 <= np.median(fewest) <= 60
    assert binomtest(sum(found), len(found), 0.8).pvalue > 0.001


def test_the_weights_of_people_are_those_of_units_of_one_person() -> None:
    rng = np.random.default_rng(20)
    for eligible in (None, rng.permutation(50)[:20]):
        hits = (np.arange(50) if eligible is None else eligible)[:7]
        look = MembershipProbe("", "", hits, eligible)
        assert _weight_moments(look, None) == pytest.approx(_weight_moments(look, np.arange(50)))
    weights = np.zeros(50)
    weights[eligible] = -7 / 20
    weights[hits] += 1
    expected = weights.sum(), (weights**2).sum(), weights[weights > 0].sum()
    assert _weight_moments(look, None) == pytest.approx(expected)


@pytest.mark.parametrize("groups", ["few", "many"])
def test_permuted_scores_have_mean_0_variance_1_and_the_correlation_of_whom_they_find(groups: str) -> None:
    """Whole groups are drawn at once where they are few, people one by one where they are many."""
    rng = np.random.default_rng(21)
    records, members = 60, 40
    if groups == "few":
        sets = [(np.arange(20), None), (np.arange(10, 30), None), (np.arange(15), np.arange(45))]
    else:
        sets = [(rng.permutation(records)[:size], None) for size in (12, 20, 25, 30, 14)]
        sets += [(np.arange(12), np.arange(30)), (np.arange(20, 29), np.arange(15, 45))]
    matrix = ProbeMatrix([MembershipProbe("", "", *one) for one in sets], members, records)
    assert (4 * (len(matrix.sizes) - 1) < matrix.sizes[1:].sum()) == (groups == "few")
    drawn = matrix.draw_permuted_scores(4000)
    assert drawn.mean(axis=0) == pytest.approx(0, abs=0.07)
    assert drawn.std(axis=0) == pytest.approx(1, abs=0.05)
    free = [at for at, one in enumerate(matrix.looks) if one.eligible is None]
    found = np.array([np.isin(np.arange(records), matrix.looks[at].hits) for at in free])
    assert np.corrcoef(drawn[:, free].T) == pytest.approx(np.corrcoef(found), abs=0.07)
