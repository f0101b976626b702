"""How vulnerable people are, by loops over records; whom an attack asks, in whatever order the records stand."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.adversary import targets
from sfumato.engine.adversary.targets import (
    VulnerabilityScores,
    distinguishing_variables,
    draw_rows,
    score_vulnerability,
    vulnerable_target_count,
)
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Role, Schema, Variable
from sfumato.engine.statistics.gower import GowerDistance

SCHEMA = Schema(
    (
        Variable("zip", Kind.CATEGORICAL, levels=tuple("abcd")),
        Variable("sex", Kind.BINARY, levels=("f", "m")),
        Variable("age", Kind.COUNT),
        Variable("pay", Kind.CONTINUOUS),
        Variable("id", Kind.COUNT, Role.IDENTIFIER),
    )
)


def table(n: int, seed: int) -> Microdata:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "zip": rng.choice(list("abcd"), n, p=[0.6, 0.25, 0.1, 0.05]),
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(20, 32, n),
            "pay": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(3, 1, n)),
            "id": np.arange(n),
        }
    )
    return conform_to_schema(frame, SCHEMA, MissingPolicy.KEEP)


def by_loops(people: Microdata, controls: Microdata) -> tuple[list[float], list[float]]:
    """The three scores and their ranks, one person and one control after another."""
    names = distinguishing_variables(SCHEMA)
    gower = GowerDistance.from_tables([people, controls], names)
    own, others = ([tuple(row) for row in gower.record_places(data)] for data in (people, controls))
    cuts = {}
    for k, name in enumerate(names):
        values = sorted(row[k] for row in own + others if row[k] >= 0)
        if not SCHEMA[name].kind.has_levels and len({row[k] for row in own + others}) > targets.BINS:
            cuts[k] = sorted({values[i * len(values) // targets.BINS] for i in range(1, targets.BINS)})

    def coarse(row: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(sum(c <= v for c in cuts[k]) if k in cuts and v >= 0 else v for k, v in enumerate(row))

    def rarity(row: tuple[float, ...], rest: list[tuple[float, ...]]) -> float:
        table = [coarse(other) for other in [row, *rest]]
        return -sum(math.log(Counter(o[k] for o in table)[v] / len(table)) for k, v in enumerate(coarse(row)))

    def distance(row: tuple[float, ...], rest: list[tuple[float, ...]]) -> float:
        apart = sorted(float(a) for a in gower.pairwise_distances(np.array([row]), np.array(rest))[0])
        return sum(apart[:5]) / 5

    def uniqueness(row: tuple[float, ...], rest: list[tuple[float, ...]]) -> float:
        mine, table = coarse(row), [coarse(other) for other in rest]
        d, score, minimal = len(mine), 0.0, list[tuple[int, ...]]()
        for size in (1, 2, 3):
            for some in combinations(range(d), size):
                if any(set(part) <= set(some) for part in minimal):
                    continue
                if not any(all(o[k] == mine[k] for k in some) for o in table):
                    minimal.append(some)
                    score += math.prod(d - i for i in range(size, min(3, d - 1) + 1))
        return score

    def rank(value: float, among: list[float]) -> float:
        near = [math.isclose(value, other, rel_tol=1e-6, abs_tol=1e-6) for other in among]
        below = sum(other < value and not same for other, same in zip(among, near, strict=True))
        return (below + sum(near) / 2) / len(among)

    scores = [[of(row, own[:i] + own[i + 1 :]) for i, row in enumerate(own)] for of in (rarity, distance, uniqueness)]
    mine = [max(rank(s[i], s[:i] + s[i + 1 :]) for s in scores) for i in range(len(own))]
    numbers = [k for k, name in enumerate(names) if not SCHEMA[name].kind.has_levels]
    order = sorted(range(len(own)), key=lambda i: (-round(scores[0][i], 6), sum(own[i][k] for k in numbers)))
    gone = order[len(order) // 2]
    rest = own[:gone] + own[gone + 1 :]
    theirs = []
    for row in others:
        each = [of(row, rest) for of in (rarity, distance, uniqueness)]
        theirs.append(max(rank(v, s[:gone] + s[gone + 1 :]) for v, s in zip(each, scores, strict=True)))
    return mine, theirs


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_scores_by_loops(seed: int) -> None:
    people, controls = table(45, seed), table(15, 100 + seed)
    found = score_vulnerability(people, controls)
    mine, theirs = by_loops(people, controls)
    assert found.people == pytest.approx(np.array(mine), abs=1e-9)
    assert found.controls == pytest.approx(np.array(theirs), abs=1e-9)


def test_quasi_identifiers_are_scored_by_themselves_too() -> None:
    """The score is the larger of that by all variables and that by the quasi-identifiers, of people and of controls."""
    plain = table(120, 1), table(60, 2)
    keyed = Schema(tuple(replace(v, role=Role.QUASI_IDENTIFIER) if v.name in ("zip", "age") else v for v in SCHEMA))
    both, whole = score_vulnerability(*(replace(one, schema=keyed) for one in plain)), score_vulnerability(*plain)
    keys = score_vulnerability(*plain, ("age", "zip"))
    for side in ("people", "controls"):
        larger = np.maximum(getattr(whole, side), getattr(keys, side))
        assert getattr(both, side).tolist() == larger.tolist()
        assert (larger > getattr(whole, side)).any()


def test_the_order_of_the_records_and_identifiers_change_nothing() -> None:
    people, controls = table(80, 1), table(40, 2)
    order = np.random.default_rng(3).permutation(80)
    frame = people.frame.iloc[order].reset_index(drop=True).assign(id=np.arange(80))
    mixed = Microdata(SCHEMA, frame)
    before, after = score_vulnerability(people, controls), score_vulnerability(mixed, controls)
    assert after.people.tolist() == before.people[order].tolist()
    assert after.controls.tolist() == before.controls.tolist()
    rows = [np.flatnonzero(one.people >= 0.9) for one in (before, after)]
    drawn = [
        draw_rows(some, data, 5, np.random.default_rng(4)) for some, data in zip(rows, (people, mixed), strict=True)
    ]
    assert order[drawn[1]].tolist() == drawn[0].tolist()


@pytest.mark.slow
def test_controls_are_selected_as_often_as_people() -> None:
    """Also where records are few; a rule that does not put the control into the table selects more of them."""
    counts = []
    for seed in range(60):
        people, controls = table(120, seed), table(120, 1000 + seed)
        own, others = score_vulnerability(people, controls).select_most_vulnerable(12)
        counts.append((len(own), len(others)))
    mean, theirs = np.mean(counts, axis=0)
    assert theirs == pytest.approx(mean, abs=3 * np.std([b for _, b in counts]) / math.sqrt(60))


def test_how_many_are_the_most_vulnerable() -> None:
    assert [vulnerable_target_count(None, n) for n in (20, 400, 4000, 40_000)] == [20, 50, 200, 500]
    assert (vulnerable_target_count(0.1, 1000), vulnerable_target_count(30, 1000), vulnerable_target_count(30, 10)) == (
        100,
        30,
        10,
    )


def test_the_most_vulnerable_are_as_many_as_asked_and_all_who_tie_with_the_last() -> None:
    scores = VulnerabilityScores(np.array([0.2, np.nan, 0.9, 0.5, 0.9, 0.5]), np.array([0.9, 0.4, 0.5]))
    chosen = [[rows.tolist() for rows in scores.select_most_vulnerable(k)] for k in (0, 1, 3, 5, 9)]
    assert chosen == [
        [[], []],
        [[2, 4], [0]],
        [[2, 3, 4, 5], [0, 2]],
        [[0, 2, 3, 4, 5], [0, 1, 2]],
        [[0, 2, 3, 4, 5], [0, 1, 2]],
    ]
    unknown = VulnerabilityScores(np.full(3, np.nan), np.array([0.5]))
    assert [rows.tolist() for rows in unknown.select_most_vulnerable(2)] == [[], []]


def test_of_many_records_some_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "MOST_SCORED", 100)
    people, controls = table(300, 7), table(50, 8)
    found = score_vulnerability(people, controls, ("age", "pay", "sex", "zip"))
    assert np.isnan(found.people).sum() == 200
    assert not np.isnan(found.controls).any()
    targets._VULNERABILITY_CACHE.clear()
