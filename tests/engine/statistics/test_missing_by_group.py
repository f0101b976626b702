"""The group that lacks values most: by Fisher's exact test of SciPy, and none where only chance is at work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.statistics.missing_by_group import LEVEL, find_affected_group


def people(regions: Sequence[str | None], sexes: Sequence[str]) -> Microdata:
    labels = {"i": "islands"}
    schema = Schema((Variable("region", Kind.CATEGORICAL, labels=labels), Variable("sex", Kind.BINARY)))
    return conform_to_schema(pd.DataFrame({"region": regions, "sex": sexes}), schema, MissingPolicy.KEEP)


def test_the_group_that_lacks_more_is_counted_beside_all_others() -> None:
    data = people(["i"] * 20 + ["n"] * 50 + ["s"] * 50 + [None] * 5, ["m", "f"] * 62 + ["m"])
    lacking = np.zeros(125, dtype=np.bool_)
    lacking[:12] = lacking[30:33] = lacking[121] = True
    found = find_affected_group(data, lacking)
    assert found is not None
    # The five without a region are in no group.
    assert (found.variable, found.level, found.records, found.lacking) == ("region", "islands", 20, 12)
    assert (found.other_records, found.other_lacking) == (100, 3)
    assert found.p == pytest.approx(fisher_exact([[12, 8], [3, 97]], alternative="greater")[1])


def test_a_group_that_is_too_small_is_not_named() -> None:
    data = people(["i"] * 9 + ["n"] * 60, ["m", "f"] * 34 + ["m"])
    lacking = np.arange(69) < 9
    assert find_affected_group(data, lacking) is None


def test_nothing_lacks_more_where_nobody_or_everybody_lacks() -> None:
    data = people(["i"] * 30 + ["n"] * 30, ["m", "f"] * 30)
    assert find_affected_group(data, np.zeros(60, dtype=np.bool_)) is None
    assert find_affected_group(data, np.ones(60, dtype=np.bool_)) is None


@pytest.mark.slow
def test_chance_is_named_no_more_often_than_the_level_says() -> None:
    rng = np.random.default_rng(5)
    times, named = 1500, 0
    for _ in range(times):
        data = people(
            rng.choice(["i", "n", "s"], 150, p=[0.1, 0.5, 0.4]).tolist(), rng.choice(["m", "f"], 150).tolist()
        )
        named += find_affected_group(data, rng.random(150) < 0.2) is not None
    # Three standard errors above the level, which a discrete test does not reach.
    assert named / times < LEVEL + 3 * (LEVEL * (1 - LEVEL) / times) ** 0.5
