"""Candidates without one variable, against matching again without it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matched_records import match_records

from sfumato.engine.execution.record_risk import count_candidates_without
from sfumato.engine.matching.matching import ExactKey, WindowKey

Keys = list[ExactKey | WindowKey]


@st.composite
def knowledge(draw: st.DrawFn) -> Keys:
    n, released = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    keys: Keys = []
    for _ in range(draw(st.integers(1, 2))):
        levels = pd.CategoricalDtype(list("abc"))
        pair = (pd.Series(rng.choice(list("abc"), size), dtype=levels) for size in (n, released))
        keys.append(ExactKey(*pair))
    for _ in range(draw(st.integers(0, 2))):
        centre = rng.integers(0, 6, n).astype(float)
        values = rng.integers(0, 6, released).astype(float)
        values[rng.random(released) < 0.1] = np.nan
        keys.append(WindowKey(centre - 1, centre + 1, values))
    return keys


def matched_again(keys: Keys) -> np.ndarray:
    """Candidates of every record by the matching join itself; with no variable left every released record matches."""
    if not keys:
        return np.array([])
    return match_records(
        [k for k in keys if isinstance(k, ExactKey)], [k for k in keys if isinstance(k, WindowKey)]
    ).candidates


@pytest.mark.slow
@given(knowledge())
@settings(max_examples=200, deadline=None)
def test_it_is_the_match_without_the_variable(keys: Keys) -> None:
    n, released = keys[0].shape
    counts = count_candidates_without(keys, range(n))
    assert counts.shape == (n, len(keys) + 1)
    assert (counts[:, 0] == matched_again(keys)).all()
    for v in range(len(keys)):
        rest = keys[:v] + keys[v + 1 :]
        expected = matched_again(rest) if rest else np.full(n, released)
        assert (counts[:, v + 1] == expected).all()


def test_the_records_asked_for_come_in_their_order() -> None:
    region = ExactKey(pd.Series(list("aab")), pd.Series(list("abb")))
    age = WindowKey(np.array([0.0, 5.0, 5.0]), np.array([1.0, 6.0, 6.0]), np.array([0.0, 5.0, 7.0]))
    assert count_candidates_without([region, age], [2, 0]).tolist() == [[1, 1, 2], [1, 1, 1]]


def test_the_wrong_count_is_noticed() -> None:
    """The negative control: counting whoever differs in that variable, whatever the others say, is too many."""
    region = ExactKey(pd.Series(list("aab")), pd.Series(list("abb")))
    age = WindowKey(np.array([0.0, 5.0, 5.0]), np.array([1.0, 6.0, 6.0]), np.array([0.0, 5.0, 7.0]))
    counts = count_candidates_without([region, age], [0])
    wrong = counts[0, 0] + np.count_nonzero(np.array([False, True, True]))
    with pytest.raises(AssertionError):
        assert counts[0, 1] == wrong
