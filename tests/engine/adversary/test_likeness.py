"""Copies score as copies, independent samples as independent ones; the order of records and the spelling of numbers change nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from statsmodels.stats.proportion import confint_proportions_2indep

from sfumato.engine.adversary import nearest_records
from sfumato.engine.adversary.cells import cell_keys, count_occurrences, row_keys
from sfumato.engine.adversary.copies import _KeptValueClasses, _shares_of_matching_rows, measure_equal_records
from sfumato.engine.adversary.likeness import MemorisationShare, score_margin, share_standard_error
from sfumato.engine.adversary.nearest_records import LevelGroupSearch
from sfumato.engine.adversary.neighbours import nearest_neighbour_pairs
from sfumato.engine.adversary.pooled import measure_agreed_values
from sfumato.engine.adversary.tails import measure_released_tails
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.data.sorting import sort_with_order
from sfumato.engine.statistics.smoothing import common_step

SCHEMA = Schema(
    (
        Variable("region", Kind.CATEGORICAL, levels=("a", "b", "c")),
        Variable("visits", Kind.COUNT),
        Variable("income", Kind.CONTINUOUS),
        Variable("day", Kind.DATE),
    )
)
NAMES = SCHEMA.names
N = 600


def population(seed: int, n: int = N) -> Microdata:
    """An independent sample of one population."""
    rng = np.random.default_rng(seed)
    region = rng.integers(3, size=n)
    visits = rng.poisson(2 + 2 * region)
    frame = pd.DataFrame(
        {
            "region": np.array(["a", "b", "c"])[region],
            "visits": visits,
            "income": np.round(np.exp(rng.normal(7 + 0.1 * visits, 0.8)), 2),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(3000, size=n), unit="D"),
        }
    )
    return conform_to_schema(frame, SCHEMA)


def shuffled(data: Microdata, seed: int = 1) -> Microdata:
    order = np.random.default_rng(seed).permutation(len(data))
    return Microdata(data.schema, data.frame.iloc[order].reset_index(drop=True))


def with_drawn(data: Microdata, other: Microdata, kept: tuple[str, ...]) -> Microdata:
    """The kept variables of one table with the others of another."""
    return Microdata(data.schema, other.frame.assign(**{name: data.frame[name] for name in kept}))


def equal(data: Microdata, releases: list[Microdata], kept: tuple[str, ...] = ()) -> MemorisationShare:
    drawn = tuple(name for name in NAMES if name not in kept)
    return measure_equal_records(
        data, cell_keys(data, NAMES), [cell_keys(one, NAMES, data) for one in releases], kept, drawn
    )


@pytest.fixture
def data() -> Microdata:
    return population(1)


def samples(m: int = 4) -> list[Microdata]:
    return [population(100 + l) for l in range(m)]  # noqa: E741


@pytest.mark.slow
@pytest.mark.parametrize("kept", [(), ("region",), ("region", "visits")])
def test_a_copy_is_a_copy_and_a_sample_a_sample(data: Microdata, kept: tuple[str, ...]) -> None:
    copies = equal(data, [shuffled(data, seed) for seed in range(3)], kept)
    assert (copies.value, copies.excess, len(copies.records)) == (1.0, 1.0, N)
    found = equal(data, [with_drawn(data, one, kept) for one in samples()], kept)
    assert found.excess == 0.0


def test_one_row_in_ten_that_is_a_persons_own_is_found(data: Microdata) -> None:
    mixed = [Microdata(SCHEMA, pd.concat([one.frame[60:], data.frame[:60]], ignore_index=True)) for one in samples()]
    found = equal(data, mixed)
    assert found.value == pytest.approx(0.1, abs=0.002)
    assert found.excess == pytest.approx(0.1, abs=0.01)
    assert set(range(60)) <= set(found.records.tolist())


def test_coarse_records_that_everybody_shares_are_no_finding_but_their_copy_is() -> None:
    names = ("region", "visits")
    data, other = population(1), population(2)
    own, theirs = cell_keys(data, names), cell_keys(other, names)
    found = measure_equal_records(data, own, [theirs], (), names)
    assert found.value > 0.95 < found.baseline
    assert found.excess == 0.0
    assert measure_equal_records(data, own, [cell_keys(shuffled(data), names)], (), names).excess == 1.0


def test_the_baseline_is_the_share_of_records_that_equal_another_one(data: Microdata) -> None:
    names = ("region", "visits")
    found = measure_equal_records(data, cell_keys(data, names), [cell_keys(population(2), names)], (), names)
    rows = [tuple(row) for row in data.frame[list(names)].itertuples(index=False)]
    assert found.baseline == sum(rows.count(row) > 1 for row in rows) / N


@pytest.mark.slow
def test_the_baseline_of_kept_variables_agrees_with_fresh_people(data: Microdata) -> None:
    """Draws from the true model in each record's place: what the nearest others' values estimate."""
    rng, names, kept = np.random.default_rng(5), ("region", "visits"), ("region",)
    region = data.frame["region"].cat.codes.to_numpy()
    fresh = [Microdata(SCHEMA, data.frame.assign(visits=rng.poisson(2 + 2 * region))) for _ in range(10)]
    found = measure_equal_records(
        data, cell_keys(data, names), [cell_keys(one, names) for one in fresh], kept, ("visits",)
    )
    assert found.value == pytest.approx(found.baseline, abs=0.02)
    assert found.excess == 0.0


def test_shares_of_matching_rows_count_the_smallest_and_the_largest_key_too() -> None:
    values = np.array([10, 20, 30], dtype=np.uint64)
    releases = [np.array(one, dtype=np.uint64) for one in ([40, 10, 10], [20], [5, 30], [])]
    shares, taken = _shares_of_matching_rows(values, releases)
    assert shares == pytest.approx([2 / 3, 1, 1 / 2, 0])
    assert taken.tolist() == [10, 20, 30]
    assert _shares_of_matching_rows(values, releases[1:2])[1].tolist() == [20]


def test_the_share_that_loses_its_record_is_that_over_all_who_may_be_left_out() -> None:
    """Classes of two, three and one record: who is left out is one of the class of the row's record."""
    rows = np.array([10, 11, 20, 20, 21, 30], dtype=np.uint64)
    kept = np.array([0, 0, 1, 1, 1, 2], dtype=np.uint64)
    classes = _KeptValueClasses.from_rows(kept, *sort_with_order(rows))
    released = np.array([10, 21, 99, 20], dtype=np.uint64)
    lost = 0.0
    for row in released:
        inside = np.flatnonzero(kept == kept[rows == row][0]) if row in rows else []
        lost += float(np.mean([row not in np.delete(rows, one) for one in inside])) if len(inside) else 0.0
    assert (
        classes.share_lost_by_leaving_one_out(released) == pytest.approx(lost / 4) == pytest.approx((1 / 2 + 1 / 3) / 4)
    )
    assert classes.share_lost_by_leaving_one_out(np.array([30], dtype=np.uint64)) == 0, "nobody of a class of one"
    assert classes.share_lost_by_leaving_one_out(released[:0]) == 0


@pytest.mark.parametrize("size", [2, 5])
def test_the_baseline_of_small_classes_is_the_chance_that_a_fresh_member_equals_one_of_them(size: int) -> None:
    """Of s members with one of five equally likely values each, a fresh one equals some with probability 1 - (4/5)^s."""
    rng, n = np.random.default_rng(6), 400 * size
    schema = Schema((Variable("visits", Kind.COUNT), Variable("income", Kind.COUNT)))
    own, fresh = (
        conform_to_schema(
            pd.DataFrame({"visits": np.repeat(np.arange(400), size), "income": rng.integers(0, 5, n)}), schema
        )
        for _ in range(2)
    )
    cells = [cell_keys(one, ("visits", "income")) for one in (own, fresh)]
    found = measure_equal_records(own, cells[0], cells[1:], ("visits",), ("income",))
    assert found.baseline == pytest.approx(1 - 0.8**size, abs=0.05)
    assert found.value == pytest.approx(1 - 0.8**size, abs=0.05)


def test_tails_of_a_copy_leave_and_those_of_samples_do_not(data: Microdata) -> None:
    own = data.numbers("income")
    found = measure_released_tails(own, [own], 10, (None, None))
    assert (found.memorisation.excess, found.ends) == (1.0, ("smallest", "largest"))
    assert sorted(found.records) == sorted([int(own.argmin()), int(own.argmax())])
    fresh = measure_released_tails(own, [one.numbers("income") for one in samples(20)], 10, (None, None))
    assert (fresh.memorisation.excess, fresh.ends) == (0.0, ())


def test_counts_meet_tails_by_chance_and_donors_more_often(data: Microdata) -> None:
    own = np.random.default_rng(8).negative_binomial(0.5, 0.01, size=800).astype(np.float64)
    fresh = [
        np.random.default_rng(seed).negative_binomial(0.5, 0.01, size=800).astype(np.float64) for seed in range(9, 29)
    ]
    assert measure_released_tails(own, fresh, 10, (0, None)).memorisation.excess < 0.1
    donors = [np.random.default_rng(seed).choice(own, 800) for seed in range(20)]
    assert measure_released_tails(own, donors, 10, (0, None)).memorisation.excess > 0.9


def test_an_end_that_is_declared_or_that_many_share_does_not_count() -> None:
    own = np.array([0.0] * 20 + [1.5, 2.25, 99.0])
    assert measure_released_tails(own, [own], 10, (0, 99)).ends == ()
    assert measure_released_tails(own, [own], 10, (None, None)).ends == ("largest",)


@pytest.mark.parametrize(
    ("numbers", "step"), [([1, 2, 5], 1), ([100, 350], 50), ([0.25, 1.5], 0.25), ([np.pi, 2.0], 0), ([0.0], 1)]
)
def test_the_steps_of_a_column_are_read_off_it(numbers: list[float], step: float) -> None:
    assert common_step(np.array(numbers, dtype=np.float64)) == pytest.approx(step)


def agreed(data: Microdata, releases: list[Microdata], name: str) -> MemorisationShare:
    rows = row_keys(cell_keys(data, NAMES), NAMES, len(data))
    numbers = data.numbers(name)
    near = (numbers, numbers) if name == "region" else (0.99 * numbers, 1.01 * numbers)
    return measure_agreed_values(data, releases, name, nearest_neighbour_pairs(data, ("visits",), rows), near)


@pytest.mark.slow
def test_values_on_which_the_datasets_agree_give_a_record_away_unless_they_are_those_of_its_like(
    data: Microdata,
) -> None:
    rng = np.random.default_rng(2)
    noisy = [
        Microdata(SCHEMA, data.frame.assign(income=data.frame["income"] * np.exp(rng.normal(0, 0.02, N))))
        for _ in range(20)
    ]
    assert agreed(data, noisy, "income").excess > 0.5
    fresh = [with_drawn(data, one, ("visits",)) for one in samples(20)]
    assert agreed(data, fresh, "income").excess == 0.0
    assert agreed(data, [data, data], "region").excess == pytest.approx(1.0)
    assert agreed(data, fresh, "region").excess == 0.0


def test_a_record_whose_rows_cannot_be_told_is_not_given_away(data: Microdata) -> None:
    """Of a dataset in another order the rows are looked up; a record with fewer than two rows that can be told does not count."""
    numbers, n = data.numbers("income"), len(data)
    turned = data.select_rows(list(range(n))[::-1])
    pairs = nearest_neighbour_pairs(data, ("visits",), row_keys(cell_keys(data, NAMES), NAMES, n))
    near = (0.99 * numbers, 1.01 * numbers)
    back = np.arange(n)[::-1].copy()
    found = measure_agreed_values(data, [data, turned], "income", pairs, near, [np.arange(n), back])
    assert found.value == pytest.approx(1.0)
    assert measure_agreed_values(
        data, [data, turned], "region", pairs, near, [np.arange(n), back]
    ).value == pytest.approx(1.0)
    unknown = np.full(n, -1)
    for name in ("income", "region"):
        assert measure_agreed_values(data, [data, turned], name, pairs, near, [np.arange(n), unknown]).value == 0.0
    half = np.where(np.arange(n) % 2 == 0, back, -1)
    some = measure_agreed_values(data, [data, turned, turned], "region", pairs, near, [np.arange(n), half, half])
    assert set(some.records.tolist()) <= set(np.flatnonzero(half >= 0).tolist())


def everything(data: Microdata, releases: list[Microdata]) -> list[float]:
    found = [equal(data, releases), equal(data, releases, ("region",))]
    found += [
        measure_released_tails(
            data.numbers("income"), [one.numbers("income") for one in releases], 10, (None, None)
        ).memorisation
    ]
    return [number for one in found for number in (one.value, one.baseline, one.excess)]


@pytest.mark.slow
def test_the_order_of_records_changes_nothing(data: Microdata) -> None:
    releases = [
        Microdata(SCHEMA, pd.concat([one.frame[300:], data.frame[:300]], ignore_index=True)) for one in samples(3)
    ]
    turned = [shuffled(one, seed) for seed, one in enumerate(releases)]
    assert everything(data, releases) == everything(shuffled(data, 9), turned)


def test_the_margin_is_newcombes() -> None:
    level = 2 * float(norm.sf(2))
    for cases, right, alike in ((1, 1, 0), (4, 4, 1), (30, 12, 9), (500, 250, 3)):
        low, _ = confint_proportions_2indep(right, cases, alike, cases, method="newcomb", compare="diff", alpha=level)
        value, baseline = right / cases, alike / cases
        assert value - baseline - score_margin(value, baseline, cases) == pytest.approx(low, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("cases", [1, 2, 5, 20])
def test_few_cases_raise_no_alarm_where_nothing_leaks(cases: int) -> None:
    rng = np.random.default_rng(cases)
    shares = rng.binomial(cases, 0.15, (20_000, 2)) / cases
    found = [
        MemorisationShare(value, baseline, noise=score_margin(value, baseline, cases)) for value, baseline in shares
    ]
    assert np.mean([one.excess > 0 for one in found]) < 0.035


@pytest.mark.slow
def test_one_case_without_a_margin_raises_alarms() -> None:
    """The control: the standard error of a share of one case is 0, whatever is seen."""
    shares = np.random.default_rng(1).binomial(1, 0.15, (20_000, 2))
    noise = [
        2 * float(np.hypot(share_standard_error(value, 1), share_standard_error(baseline, 1)))
        for value, baseline in shares
    ]
    blind = [
        MemorisationShare(value, baseline, noise=one) for (value, baseline), one in zip(shares, noise, strict=True)
    ]
    assert np.mean([one.excess > 0 for one in blind]) > 0.1


def test_the_spelling_of_numbers_changes_nothing(data: Microdata) -> None:
    rng = np.random.default_rng(4)
    exact = Microdata(SCHEMA, data.frame.assign(income=np.exp(rng.normal(7, 1, N))))
    for written in (
        np.exp(np.log(exact.frame["income"])),
        exact.frame["income"].map(lambda value: float(f"{value:.12g}")),
        exact.frame["income"].map(lambda value: float(f"{value:.9g}")),
    ):
        release = Microdata(SCHEMA, exact.frame.assign(income=written))
        assert equal(exact, [release]).value == 1.0
    rounded = Microdata(SCHEMA, exact.frame.assign(income=exact.frame["income"].round(-2)))
    assert equal(exact, [rounded]).value == 0.0


def test_rows_are_equal_where_their_cells_are_and_add_up(data: Microdata) -> None:
    cells = cell_keys(data, NAMES)
    both = row_keys(cells, NAMES, N)
    assert (both == row_keys(cells, NAMES[:2], N) + row_keys(cells, NAMES[2:], N)).all()
    frame = data.frame
    expected = frame.groupby(list(NAMES), observed=True)["region"].transform("size").to_numpy()
    assert (count_occurrences(both, both) == expected).all()
    assert len(np.unique(row_keys(cells, NAMES[::-1], N) == both)) == 1


def test_missing_values_equal_missing_ones_alone() -> None:
    frame = pd.DataFrame(
        {
            "region": ["a", None],
            "visits": [1.0, np.nan],
            "income": [np.nan, 2.0],
            "day": pd.to_datetime([None, "2020-01-01"]),
        }
    )
    frame["region"] = pd.Categorical(frame["region"], ["a", "b", "c"])
    cells = cell_keys(Microdata(SCHEMA, frame), NAMES)
    assert cells["region"][1] == cells["visits"][1] == cells["income"][0] == cells["day"][0]
    assert cells["income"][1] != cells["income"][0]


def test_neighbours_are_the_nearest_others() -> None:
    frame = pd.DataFrame(
        {"region": list("aabbc"), "visits": [1, 5, 2, 2, 9], "income": [1.0, 2, 3, 4, 5], "day": ["2020-01-01"] * 5}
    )
    data = conform_to_schema(frame, SCHEMA)
    pairs = nearest_neighbour_pairs(data, ("region", "visits"), row_keys(cell_keys(data, NAMES), NAMES, 5))
    nearest: dict[int, set[int]] = {}
    for own, other in zip(pairs.own.tolist(), pairs.other.tolist(), strict=True):
        nearest.setdefault(own, set()).add(other)
    assert (nearest[0], nearest[1], nearest[2], nearest[3]) == ({1}, {0}, {3}, {2})
    assert pairs.cases == 5
    assert pairs.weighted_share(np.ones(len(pairs.own))) == pytest.approx(1.0)


def test_of_many_records_every_second_one_in_the_order_of_keys_is_paired_from_the_first_to_the_last() -> None:
    keys = np.random.default_rng(5).permutation(999).astype(np.uint64)
    pairs = nearest_neighbour_pairs(population(1, 999), ("region", "visits"), keys)
    assert np.unique(keys[pairs.own]).tolist() == list(range(0, 999, 2))
    assert pairs.cases == 500


def _everybody_compared(columns: list[tuple[np.ndarray, bool]], i: int) -> np.ndarray:
    """The records nearest to record ``i``, by the distance to each other one."""
    distance = np.zeros(len(columns[0][0]), dtype=np.float32)
    for values, levels in columns:
        apart = values[i] - values
        distance += (apart != 0) if levels else np.abs(apart)
    distance[i] = np.inf
    return np.flatnonzero(distance == distance.min())


def _columns(rng: np.random.Generator, n: int, digits: int) -> list[tuple[np.ndarray, bool]]:
    """Up to three columns of levels and of shares."""
    levels = [(rng.integers(-1, rng.integers(1, 6), n).astype(np.float64), True) for _ in range(rng.integers(0, 3))]
    shares = [(np.round(rng.random(n), digits), False) for _ in range(rng.integers(not levels, 3))]
    return [*shares, *levels] if rng.random() < 0.5 else [*levels, *shares]


@pytest.mark.slow
def test_who_is_nearest_is_found_as_if_everybody_were_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone with their levels, ties, and more records than are looked at first among them."""
    monkeypatch.setattr(nearest_records, "WINDOW", 2)
    rng, groups = np.random.default_rng(4), 0
    for _ in range(300):
        n = int(rng.integers(2, 40))
        columns = _columns(rng, n, int(rng.integers(1, 9)))
        search = LevelGroupSearch.from_columns(columns, n)
        for i in range(n):
            expected = _everybody_compared(columns, i)
            np.testing.assert_array_equal(search.nearest_records(i), expected)
            start, end = search.edges[search.group[i]], search.edges[search.group[i] + 1]
            groups += not np.isin(expected, search.members[start:end]).all()
    assert groups > 20, "nobody's nearest was of another group: the fall back is not tried"


def test_neighbours_without_any_kept_variable_are_all_others() -> None:
    pairs = nearest_neighbour_pairs(population(1, 3), (), np.arange(3, dtype=np.uint64))
    assert sorted(zip(pairs.own.tolist(), pairs.other.tolist(), strict=True)) == [
        (i, j) for i in range(3) for j in range(3) if i != j
    ]


def test_agreed_values_are_what_loops_over_pairs_and_datasets_count(data: Microdata) -> None:
    """The mean of a number's known rows, the first mode of a level's, of two rows or more."""
    rng = np.random.default_rng(7)
    releases = [population(seed) for seed in (31, 32, 33, 34)]
    rows = [np.where(rng.random(N) < 0.3, -1, rng.permutation(N)) for _ in releases]
    pairs = nearest_neighbour_pairs(data, ("visits",), row_keys(cell_keys(data, NAMES), NAMES, N))
    for name in ("region", "income"):
        own = data.numbers(name)
        windows = (0.6 * own, 1.4 * own)
        found = measure_agreed_values(data, releases, name, pairs, windows, rows)

        def predict_value(i: int, name: str = name) -> float | None:
            known = [one.numbers(name)[at[i]] for one, at in zip(releases, rows, strict=True) if at[i] >= 0]
            if len(known) < 2:
                return None
            return min(known, key=lambda v: (-known.count(v), v)) if name == "region" else float(np.mean(known))

        value, baseline, records = 0.0, 0.0, set()
        for i, j, weight in zip(pairs.own.tolist(), pairs.other.tolist(), pairs.weight, strict=True):
            if (said := predict_value(i)) is None:
                continue
            right, alike = (
                said == own[at] if name == "region" else windows[0][at] <= said <= windows[1][at] for at in (i, j)
            )
            value, baseline = value + weight * right, baseline + weight * alike
            records |= {i} if right else set()
        assert (found.value, found.baseline) == pytest.approx((value / pairs.cases, baseline / pairs.cases))
        assert 0.05 < found.baseline < 0.95
        assert set(found.records.tolist()) == records
        assert found.noise == pytest.approx(score_margin(found.value, found.baseline, pairs.cases))
        none = measure_agreed_values(data, releases[:1], name, pairs, windows, rows[:1])
        assert (none.value, none.baseline, none.copy_value) == (0, 0, 0), "one dataset has nothing to agree with"
        two = measure_agreed_values(data, [data, data], name, pairs, (own, own))
        assert two.value == pytest.approx(1.0), "two datasets agree"


def test_levels_that_are_missing_are_a_level_of_their_own() -> None:
    schema = Schema((Variable("region", Kind.CATEGORICAL, levels=("a", "b")), Variable("visits", Kind.COUNT)))

    def table(levels: list[str | None]) -> Microdata:
        return conform_to_schema(pd.DataFrame({"region": levels, "visits": range(4)}), schema, MissingPolicy.KEEP)

    own = table([None, "a", "b", None])
    releases = [table([None, "a", "a", "b"]), table([None, "b", "b", None]), table(["a", "a", "b", "b"])]
    pairs = nearest_neighbour_pairs(own, ("visits",), np.arange(4, dtype=np.uint64))
    found = measure_agreed_values(own, releases, "region", pairs, (own.numbers("region"), own.numbers("region")))
    assert found.records.tolist() == [0, 1, 2], "the last is b twice and missing once"
    assert found.value == pytest.approx(0.75)


@pytest.mark.parametrize("size", [1, 2, 5, 12])
@pytest.mark.parametrize("bounds", [(None, None), (0.0, None), (None, 40.0), (0.0, 40.0)])
def test_released_tails_are_what_sorting_and_counting_find(
    size: int, bounds: tuple[float | None, float | None]
) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        own = np.append(np.minimum(rng.geometric(0.12, 60) - 1.0, 40.0), np.nan)
        releases = [rng.geometric(0.12, 50) - 1.0 for _ in range(2)]
        if seed % 2:
            releases[0][:3] = np.nanmax(own)
        found = measure_released_tails(own, releases, size, bounds)
        present = sorted(own[~np.isnan(own)].tolist())
        shown = {v for one in releases for v in one.tolist()}
        tails, weighed, ends = [], 0.0, []
        for name, line in (("smallest", present), ("largest", present[::-1])):
            limit, extreme = line[size - 1], line[0]
            inside = {v for v in line if abs(v - extreme) <= abs(limit - extreme) and line.count(v) < size}
            start = max(inside, key=lambda v: abs(v - extreme), default=None)
            chance = 0.0
            if start is not None:
                between = [v for v in shown if min(start, extreme) <= v <= max(start, extreme)]
                chance = min(1.0, len(between) / (abs(start - extreme) + 1))
            values = [v for v in inside if v not in bounds]
            tails += values
            weighed += chance * len(values)
            if chance <= 0.05 and extreme in values and extreme in shown:
                ends.append((name, extreme))
        got = found.memorisation
        if not tails:
            assert (got.value, got.baseline, got.copy_value, found.ends) == (0, 0, 0, ())
            continue
        assert got.value == pytest.approx(sum(v in shown for v in tails) / len(tails))
        assert got.baseline == pytest.approx(weighed / len(tails))
        assert got.noise == pytest.approx(2 * share_standard_error(got.baseline, len(tails)))
        assert found.ends == tuple(name for name, _ in ends)
        assert own[found.records].tolist() == [v for v in own if v in [end for _, end in ends]]
        assert got.records.tolist() == [i for i, v in enumerate(own) if v in tails and v in shown]


def test_columns_without_values_have_no_tails() -> None:
    found = measure_released_tails(np.full(3, np.nan), [np.ones(3)], 2, (None, None))
    assert (found.memorisation.value, found.memorisation.baseline, found.memorisation.copy_value) == (0, 0, 0)
    assert found.ends == ()


def test_an_extreme_is_named_if_chance_would_release_it_once_in_twenty_times_and_not_more_often() -> None:
    """The tail from 1 to 20 has 20 possible values: one released value is one in twenty, of 19 it is more."""
    for end, is_named in ((20.0, True), (19.0, False)):
        own = np.array([0.0, 0.0, 0.0, 1.0, 1.0, end])
        assert measure_released_tails(own, [np.array([end])], 3, (None, None)).ends == (
            ("largest",) if is_named else ()
        )


@pytest.mark.parametrize(("share", "cases"), [(0.3, 50), (0.0, 10), (1.0, 7), (0.5, 4)])
def test_the_error_of_a_share_is_that_of_a_binomial_number(share: float, cases: int) -> None:
    from scipy.stats import binom

    assert share_standard_error(share, cases) == pytest.approx(binom.std(cases, share) / cases)
    assert share_standard_error(share, 0) == score_margin(share, share, 0) == 0.0
