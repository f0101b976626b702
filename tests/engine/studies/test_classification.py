"""ROC, precision and recall against scikit-learn's, and the suggested threshold by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from sfumato.engine.errors import NotComputable
from sfumato.engine.studies.calibration import score_curve, suggest_threshold

cases = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=20)


@pytest.mark.slow
@given(cases)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_areas_are_scikit_learns(found: list[tuple[int, int, int]]) -> None:
    scores, good, bad = np.array(found, dtype=float).T
    if not (good.sum() and bad.sum()):
        with pytest.raises(NotComputable):
            _ = score_curve(scores, good, bad).auc
        return
    labels = np.repeat([1, 0], len(scores))
    both, weights = np.concatenate([scores, scores]), np.concatenate([good, bad])
    kept = weights > 0
    ours = score_curve(scores, good, bad)
    assert ours.auc == pytest.approx(roc_auc_score(labels[kept], both[kept], sample_weight=weights[kept]))
    theirs = average_precision_score(labels[kept], both[kept], sample_weight=weights[kept])
    assert ours.average_precision == pytest.approx(theirs)


def test_a_useless_score_has_half_the_area() -> None:
    rng = np.random.default_rng(2)
    assert score_curve(rng.random(5000), *rng.integers(3, size=(2, 5000)).astype(float)).auc == pytest.approx(
        0.5, abs=0.02
    )
    assert score_curve(np.array([0.1, 0.9]), np.array([0.0, 5]), np.array([5.0, 0])).auc == 1


def test_the_suggested_threshold_is_the_smallest_that_keeps_the_errors_few() -> None:
    scores, tests = np.array([0.2, 0.5, 0.8, -np.inf]), np.full(4, 100.0)
    errors = np.array([50.0, 8, 1, 100])
    assert suggest_threshold(scores, tests, errors, 0.05) == 0.21
    assert suggest_threshold(scores, tests, errors, 0.02) == 0.51
    assert suggest_threshold(scores, tests, errors, 0.5) == 0.0
    with pytest.raises(NotComputable, match="no threshold"):
        suggest_threshold(scores, tests, errors, 0.001)


def test_a_score_of_exactly_the_threshold_passes() -> None:
    assert suggest_threshold(np.array([0.29, 0.28]), np.ones(2), np.array([0.0, 1]), 0.05) == 0.29
