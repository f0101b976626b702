"""Calibration of link probabilities with records whose released record is known (Belin & Rubin 1995).

The linkage model's own probability trusts its weights. Weights learned from pairs alone are too large if variables are
dependent or few true pairs agree, and no likelihood of the pairs shows that. So the intruder is given what one gets who
can check some links. A logistic regression predicts whether a record's own is among its best links, from

    log odds of the model's probability of that,  and  log odds of the same for a random released record of the block.

Predictions are cross-fitted in five folds, so that no record's answer enters its own probability.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from ..data.arrays import Floats
from ..design.logistic import logistic_regression
from ..matching.linkage import RecordLinks
from ..statistics.columns import independent_columns

LEAST_PROBABILITY = 1e-6
"""Probabilities are cut to [LEAST_PROBABILITY, 1 - LEAST_PROBABILITY] before their log odds are taken."""
CALIBRATION_PARTS = 5
"""Number of folds for cross-fitting."""
CLAIM_WEIGHT = 1.0
"""Weight of the model's own probabilities, in records: a fit exists with few checked records or no errors."""


def calibrate_links(links: RecordLinks) -> Floats:
    """Return the calibrated probability that each best link is right, (t,); 0 for a record without candidates.

    The targets must be in the order of their values. Tied links share the probability, so those of one record sum to at
    most 1.
    """
    some = links.candidates > 0
    ties, candidates = np.maximum(links.ties, 1), np.maximum(links.candidates, 1)
    claimed = np.clip(links.probability * ties, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    chance = np.clip(ties / candidates, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    columns = np.column_stack([np.ones(len(some)), logit(claimed), logit(chance)])
    found = np.zeros(len(some))
    linked = np.flatnonzero(some)
    for part in range(min(CALIBRATION_PARTS, len(linked))):
        asked, checked = linked[part::CALIBRATION_PARTS], np.delete(linked, slice(part, None, CALIBRATION_PARTS))
        if len(checked):
            found[asked] = _predict_hits(columns[checked], links.hit[checked], claimed[checked], columns[asked])
        else:
            found[asked] = claimed[asked]
    return np.asarray(found / ties)


def _predict_hits(columns: Floats, hit: NDArray[np.bool_], claimed: Floats, predicted_columns: Floats) -> Floats:
    """Fit the logistic regression to the checked records, (c, 3), and predict the probabilities of others, (a,)."""
    # With blocks of one size and no ties the last column is constant.
    kept = independent_columns(columns)
    right = (len(hit) * hit + CLAIM_WEIGHT * claimed) / (len(hit) + CLAIM_WEIGHT)
    fit = logistic_regression(columns[:, kept], right)
    return np.asarray(expit(predicted_columns[:, kept] @ fit.coefficients))
