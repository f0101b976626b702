"""Guesses from the nearest records, records that are alike looked at together, against every record by itself."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.adversary.nearest_records import NearestRecords
from sfumato.engine.data.arrays import Floats, Integers
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Variable
from sfumato.engine.matching.radius import Radius
from sfumato.engine.risk import attribute_inference
from sfumato.engine.risk.attribute_inference import (
    GuessAccuracy,
    TargetLevels,
    TargetNumbers,
    TargetVariable,
    guess_values,
    target_variable,
)
from sfumato.engine.statistics.gower import GowerDistance

SCHEMA = schema_of(
    Variable("zip", Kind.CATEGORICAL, levels=tuple("abcd")),
    "age: count",
    Variable("ill", Kind.CATEGORICAL, levels=tuple("xyz")),
    "pay: continuous",
)


def table(records: int, ages: int, rng: np.random.Generator) -> Microdata:
    """Records of which some lack a value, with as many ages."""
    frame = pd.DataFrame(
        {
            "zip": rng.choice(list("abcd"), records),
            "age": rng.integers(0, ages, records).astype(float),
            "ill": rng.choice(list("xyz"), records),
            "pay": np.round(rng.normal(10, 3, records), 1),
        }
    )
    for name in ("zip", "age"):
        frame.loc[(rng.random(records) < 0.1) & (frame.index > 0), name] = None
    return conform_to_schema(frame, SCHEMA, MissingPolicy.KEEP)


def guess(what: TargetVariable, nearest: Integers, attacked: int) -> tuple[float, int]:
    """The chance that one record is guessed right from those that are nearest, and how many of these agree with the guess."""
    if isinstance(what, TargetLevels):
        support = Counter(what.offered[nearest].tolist())
        own = {what.own[attacked]}
    else:
        assert isinstance(what, TargetNumbers)
        values, (lower, upper) = set(what.offered[nearest].tolist()), (ends[nearest] for ends in what.around)
        support = Counter({value: int(np.sum((lower <= value) & (value <= upper))) for value in values})
        first, last = (ends[attacked] for ends in what.window)
        own = {value for value in values if first <= value <= last}
    most = max(support.values())
    guesses = {value for value, count in support.items() if count == most}
    return len(own & guesses) / len(guesses), most


def one_by_one(
    gower: GowerDistance, offered: Floats, own: Floats, what: TargetVariable, neighbours: int
) -> GuessAccuracy:
    """The same with a distance for every pair of records, and the k-th smallest of them."""
    kth = min(neighbours, len(offered)) - 1
    found = []
    for q, line in enumerate(gower.pairwise_distances(own, offered)):
        low = np.sort(line)[kth]
        nearest = np.flatnonzero(line <= low)
        chance, most = guess(what, nearest, q)
        found.append((chance, low, len(nearest), most, np.count_nonzero(line == 0)))
    right, distance, asked, agreeing, same = (np.array(one) for one in zip(*found, strict=True))
    return GuessAccuracy(right, distance, asked, agreeing, same)


@pytest.mark.parametrize("at_once", [1, pytest.param(9, marks=pytest.mark.slow), 1_000_000])
@pytest.mark.parametrize("neighbours", [1, pytest.param(2, marks=pytest.mark.slow), 5, 50])
@pytest.mark.parametrize("ages", [2, 6, 10_000])
@pytest.mark.parametrize("name", ["ill", "pay"])
def test_records_that_are_alike_are_asked_as_if_each_stood_alone(
    monkeypatch: pytest.MonkeyPatch, neighbours: int, ages: int, name: str, at_once: int
) -> None:
    monkeypatch.setattr(attribute_inference, "MOST_ASKED", at_once)
    rng = np.random.default_rng([neighbours, ages])
    for records in (1, 7, 40):
        learned, attacked = table(records + 1, ages, rng), table(30, ages, rng)
        what, rows, asked = target_variable(learned, attacked, name, Radius.parse("5%") if name == "pay" else None)
        gower = GowerDistance.from_tables([learned], ["age", "zip"])
        places = gower.record_places(learned)[rows], gower.record_places(attacked)[asked]
        found, expected = (
            guess_values(NearestRecords.from_places(gower, places[1], places[0], neighbours), what),
            one_by_one(gower, *places, what, neighbours),
        )
        for of in ("right", "distance", "asked", "agreeing", "candidates"):
            assert np.array_equal(getattr(found, of), getattr(expected, of)), of


def test_another_number_of_neighbours_gives_other_guesses() -> None:
    """A negative control: the comparison above can fail."""
    rng = np.random.default_rng(3)
    learned, attacked = table(40, 6, rng), table(30, 6, rng)
    what, rows, asked = target_variable(learned, attacked, "ill", None)
    gower = GowerDistance.from_tables([learned], ["age", "zip"])
    places = gower.record_places(learned)[rows], gower.record_places(attacked)[asked]
    assert not np.array_equal(
        guess_values(NearestRecords.from_places(gower, places[1], places[0], 5), what).distance,
        one_by_one(gower, *places, what, 4).distance,
    )
