"""How closely the best row reproduces a person: scores, groups and depths by loops over people and rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.engine.adversary import agreement
from sfumato.engine.adversary.agreement import best_row_scores, choose_scored_people, find_reproduced_people
from sfumato.engine.adversary.coded import CodedColumn, JointColumn, code_by_value

PEOPLE = 90


def draw_jobs_and_pay(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.geometric(0.4, rows).astype(np.uint64), np.round(rng.normal(0, 2, rows), 1)


def code_columns(own: tuple[np.ndarray, np.ndarray], *made: tuple[np.ndarray, np.ndarray]) -> list[CodedColumn]:
    return [
        code_by_value(JointColumn("job", own[0], [one[0] for one in made])),
        code_by_value(
            JointColumn("pay", own[1].view(np.uint64), [one[1].view(np.uint64) for one in made], own[1], [one[1] for one in made])
        ),
    ]  # fmt: skip


def score(own: tuple[np.ndarray, np.ndarray], i: int, job: int, pay: float, more: int) -> float:
    """Minus the log share of records that agree with record i at least as well, by column."""
    jobs, pays = own

    def rank(value: float) -> float:
        return float(((pays < value).sum() + (pays == value).sum() / 2) / len(pays))

    total = -math.log(((jobs == jobs[i]).sum() + more) / PEOPLE) if job == jobs[i] else 0.0
    same = ((pays == pays[i]).sum() + more) / PEOPLE
    return total - math.log(min(1.0, max(2 * abs(rank(pay) - rank(pays[i])) + more / PEOPLE, same)))


@pytest.mark.parametrize("block", [1, 500, 1 << 22])
def test_the_best_row_is_the_one_that_loops_over_people_and_rows_find(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agreement, "BLOCK", block)
    if block == 500:
        monkeypatch.setattr(agreement, "PIECE", 64)
        monkeypatch.setattr(agreement, "FEWEST_ROWS", 7)
    rng = np.random.default_rng(1)
    own, made = draw_jobs_and_pay(rng, PEOPLE), [draw_jobs_and_pay(rng, 40), draw_jobs_and_pay(rng, 55)]
    columns = code_columns(own, *made)
    people, others = rng.permutation(PEOPLE)[:30], rng.permutation(PEOPLE)[:50]
    for at, (jobs, pays) in enumerate(made):
        by_release, by_others = best_row_scores(columns, at, people, others)
        expected = [max(score(own, i, *row, 1) for row in zip(jobs, pays, strict=True)) for i in people]
        assert by_release == pytest.approx(expected, abs=1e-4)
        expected = [max(score(own, i, own[0][j], own[1][j], 0) for j in others if j != i) for i in people]
        assert by_others == pytest.approx(expected, abs=1e-4)


def test_everybody_is_scored_or_the_rarest_half_of_so_many_as_can_be() -> None:
    rng = np.random.default_rng(2)
    n = 5_000
    order, rows = rng.permutation(n), rng.integers(0, 2**60, n).astype(np.uint64)
    everybody = choose_scored_people(order, rows, 1_000, 4)
    assert [(who, len(some)) for who, some in everybody] == [
        ("all 5,000 people", n), ("the 2,500 rarest people", 2_500), ("the 250 rarest people", 250),
    ]  # fmt: skip
    assert everybody[1][1].tolist() == order[:2_500].tolist()
    few = choose_scored_people(order[:100], rows[:100], 1_000, 4)
    assert [len(some) for _, some in few] == [100, 50], "a twentieth is too few"
    assert [len(some) for _, some in choose_scored_people(order[:99], rows[:99], 1_000, 4)] == [99]
    most = 400_000_000 // ((200_000 + n) * 4)
    large = choose_scored_people(order, rows, 200_000, 4)
    assert [(who, len(some)) for who, some in large] == [
        (f"the {most // 2:,} rarest people", most // 2),
        (f"{most - most // 2:,} people chosen by their values", most - most // 2),
    ]
    assert large[0][1].tolist() == order[: most // 2].tolist()
    rest = sorted(order[most // 2 :].tolist(), key=lambda i: rows[i])
    assert large[1][1].tolist() == rest[: most - most // 2]
    least = choose_scored_people(order, rows, 10**9, 4)
    assert [len(some) for _, some in least] == [30, 30]
    fits = choose_scored_people(order[:60], rows[:60], 10**9, 4)
    assert [(who, len(some)) for who, some in fits] == [("all 60 people", 60)], "just as many as can be"


def test_people_who_stand_out_are_probed_at_fixed_depths_as_far_as_they_do() -> None:
    rng = np.random.default_rng(3)
    own = (rng.integers(0, 3, 400).astype(np.uint64), rng.permutation(400).astype(float))
    made = (own[0][:60].copy(), own[1][:60].copy())
    columns, order = code_columns(own, made), np.arange(400)
    rows = rng.permutation(400).astype(np.uint64)
    looks = find_reproduced_people(columns, order, rows, "by value")
    others = np.argsort(rows)[np.linspace(0, 399, 61).astype(int)]
    by_release, by_others = best_row_scores(columns, 0, order, others)
    above = by_release - by_others
    expected = []
    for who, some in choose_scored_people(order, rows, 60, 2):
        values = sorted(above[some].tolist(), reverse=True)
        for depth in (8, 13, 25, 60, 200, 700, 2500):
            if depth > len(values) or values[depth - 1] <= 0:
                break
            expected.append((who, sorted(i for i in some.tolist() if above[i] >= values[depth - 1]), some.tolist()))
    shown = [
        (one.who, sorted(one.hits.tolist()), [] if one.eligible is None else one.eligible.tolist()) for one in looks
    ]
    assert shown == expected
    assert len({len(hits) for _, hits, _ in expected}) >= 4
    empty = (made[0][:0], made[1][:0])
    assert find_reproduced_people(code_columns(own, empty), order, rows, "by value") == []


def test_a_larger_release_than_the_data_is_corrected_by_the_log_of_the_ratio() -> None:
    rng = np.random.default_rng(4)
    own, made = draw_jobs_and_pay(rng, PEOPLE), draw_jobs_and_pay(rng, 400)
    columns, order, rows = code_columns(own, made), np.arange(PEOPLE), rng.permutation(PEOPLE).astype(np.uint64)
    by_release, by_others = best_row_scores(columns, 0, order, order)
    above = by_release - by_others - math.log(400 / PEOPLE)
    looks = [one for one in find_reproduced_people(columns, order, rows, "by value") if one.who == "all 90 people"]
    values = np.sort(above)[::-1]
    depths = [k for k in (8, 13, 25, 60) if values[k - 1] > 0]
    assert [len(one.hits) for one in looks] == [int((above >= values[k - 1]).sum()) for k in depths]
    assert 0 < len(depths) < 4
