"""Profiles: counts against brute force, quantiles against pandas, and nothing of one or two records shown."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.data import blocks
from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.workspace.ingest.profiles import MIN_SHOWN_COUNT, QUANTILES, profile_distribution, round_bin_width

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


def table(kind: Kind, values: list[object]) -> Microdata:
    return conform_to_schema(pd.DataFrame({"x": values}), Schema((Variable("x", kind),)))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=60))
def test_every_value_is_in_its_bin_or_withheld_with_at_most_one_other(values: list[float]) -> None:
    found = profile_distribution(table(Kind.CONTINUOUS, list(values)), "x")
    inside = [sum(start <= v < start + found.width * (1 + 1e-12) for v in values) for start in found.starts]
    assert all(count == 0 or count >= MIN_SHOWN_COUNT for count in found.counts)
    assert sum(found.counts) <= len(values) <= sum(found.counts) + 2 * found.n_withheld
    assert all(shown <= count + 1e-9 for shown, count in zip(found.counts, inside, strict=True))
    assert found.distinct == len({v + 0.0 for v in values})


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-6, 1e9), st.integers(1, 50))
def test_the_width_is_the_least_round_one_that_suffices(span: float, bins: int) -> None:
    width = round_bin_width(span, bins, whole=False)
    lead = width / 10 ** math.floor(math.log10(width) + 1e-9)
    assert min(abs(lead - round_one) for round_one in (1, 2, 5, 10)) < 1e-6
    assert width * bins >= span * (1 - 1e-9)
    assert width / 2.5 * bins < span * (1 + 1e-9)


def test_whole_numbers_are_never_split() -> None:
    assert round_bin_width(3, 40, whole=True) == 1.0
    found = profile_distribution(table(Kind.COUNT, [0, 0, 0, 1, 1, 1, 1, 3]), "x")
    assert dict(zip(found.starts, found.counts, strict=True)) == {0.0: 3, 1.0: 4, 2.0: 0, 3.0: 0}
    assert found.n_withheld == 1


def test_quantiles_mean_and_deviation_are_those_of_pandas() -> None:
    values = pd.Series(np.random.default_rng(3).lognormal(size=500))
    found = profile_distribution(table(Kind.CONTINUOUS, list(values)), "x")
    assert dict(found.quantiles) == pytest.approx({q: values.quantile(q) for q in QUANTILES})
    assert (found.mean, found.sd) == pytest.approx((values.mean(), values.std()))


def test_rare_levels_are_withheld() -> None:
    found = profile_distribution(table(Kind.CATEGORICAL, ["a"] * 5 + ["b"] * 2 + ["c"] * 3 + ["d"]), "x")
    assert dict(zip(found.levels, found.counts, strict=True)) == {"a": 5, "b": 0, "c": 3, "d": 0}
    assert (found.n_withheld, found.distinct, found.quantiles) == (2, 4, ())


def test_dates_are_days() -> None:
    found = profile_distribution(table(Kind.DATE, ["1970-01-11"] * 3 + ["1970-01-21"] * 3), "x")
    assert found.mean == 15
    assert sum(found.counts) == 6


def test_one_value_is_one_bin() -> None:
    assert profile_distribution(table(Kind.CONTINUOUS, [2.5] * 4), "x").counts == (4,)


def test_weights_have_a_sum_and_kishs_design_effect() -> None:
    """n sum w^2 / (sum w)^2; numbers that are not above 0 are no weights."""
    weights = [1.0, 2.0, 3.0, 10.0]
    found = profile_distribution(table(Kind.CONTINUOUS, [*weights]), "x")
    assert (found.total, found.design_effect) == (16, pytest.approx(4 * 114 / 256))
    assert profile_distribution(table(Kind.COUNT, [5, 5, 5]), "x").design_effect == 1
    none = profile_distribution(table(Kind.CONTINUOUS, [0.0, *weights]), "x")
    assert (none.total, none.design_effect) == (None, None)


@pytest.mark.parametrize("kind", [Kind.CONTINUOUS, Kind.COUNT, Kind.CATEGORICAL, Kind.DATE])
@pytest.mark.parametrize("cells", [1, 7, 100])
def test_a_profile_does_not_depend_on_the_blocks_that_it_is_counted_in(
    kind: Kind, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.random.default_rng(4).integers(0, 40, 100)
    days = pd.Series(np.datetime64("2020-01-01") + numbers.astype("timedelta64[D]"))
    data = table(
        kind, days.to_list() if kind is Kind.DATE else (numbers / (3 if kind is Kind.CONTINUOUS else 1)).tolist()
    )
    expected = profile_distribution(data, "x")
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", cells)
    assert profile_distribution(data, "x") == expected
    assert sum(expected.counts) <= 100
