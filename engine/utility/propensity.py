"""Propensity score: how well a classifier tells released records from confidential ones.

Stack both tables, let a classifier predict "is released" from all variables, and take ``pmse`` = sum_i (p_i - c)^2 / N, c
the share of released records among all N (Woo et al. 2009; Guo & Hu §3.1). ``null_pmse`` is what it is expected to be for a
release drawn from the distribution of the confidential sample, and ``s_pmse`` = pmse / null_pmse (Snoke et al. 2018).

    logit               logistic regression on main effects; null (K - 1) c (1 - c)^2 / N with K coefficients (§3.1)
    logit_interactions  with the products of every two variables' main effects; null alike
    cart                classification tree; null by permutation of the labels, since a tree fits noise too (§3.2)

A partly synthetic release repeats its other columns, which cannot differ. Permutations take that into account where both
tables have as many records; the closed form of the logistic regressions does not and is then too large.

A missing level is a level of its own; a missing number stands at the pooled mean, beside an indicator of who is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import NotComputable
from ..methods import Output, method
from ..microdata import Microdata
from ..results import Estimate, Measure
from ..run import Run
from ..schema import Kind, Role
from ..spec import Param, Spec
from ..statistics.bounded_interval import NON_NEGATIVE, Range
from ..statistics.combining import monte_carlo_mean
from ..statistics.missing_values import filled_with_mean, with_own_level
from ..statistics.propensity_score import logit_pmse, permutation_null, tree_pmse

__all__ = ["PropensitySpec", "propensity"]

Floats = NDArray[np.float64]

MOST_COEFFICIENTS = 1000
PMSE: Range = (0.0, 0.25)
"""c (1 - c) is at most 1/4."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PropensitySpec(Spec):
    """Classifier and the variables it sees."""

    model: Annotated[
        Literal["logit", "logit_interactions", "cart"],
        Param("classifier: logistic regression on main effects, on these and their products, or a classification tree"),
    ] = "logit"
    variables: Annotated[
        tuple[str, ...], Param("variables of the classifier; all but identifiers if empty", names="variables")
    ] = ()
    minbucket: Annotated[int, Param("fewest records in a leaf of the tree", ge=1)] = 20
    cp: Annotated[
        float, Param("share of the root's impurity by which each split of the tree must lower it", ge=0, lt=1)
    ] = 1e-8
    permutations: Annotated[int, Param("permutations of the labels that give the tree's null", ge=2)] = 5


@method(
    "Propensity score",
    spec=PropensitySpec,
    source="Woo et al. (2009); Snoke et al. (2018) §3; Guo & Hu §3.1",
    outputs=(
        Output(
            "pmse",
            "mean squared distance of the propensity scores from the share c of released records; 0 when a classifier "
            "cannot tell the tables apart, at most c (1 - c), 1/4 for tables of equal size",
            "low",
            range=PMSE,
        ),
        Output(
            "null_pmse",
            "what pmse is expected to be when every released column is drawn from the confidential distribution; too "
            "large for a logistic regression when columns are not synthesised, not so for a tree",
            "none",
            range=PMSE,
        ),
        Output("s_pmse", "pmse as a multiple of null_pmse", "low", range=NON_NEGATIVE),
    ),
)
def propensity(confidential: Microdata, released: Microdata, spec: PropensitySpec, run: Run) -> Measure:
    """``pmse`` beside its null expectation, and their ratio.

    Raises:
        NotComputable: when no column varies over the two tables, or there are too many products.
    """
    schema = confidential.schema
    names = spec.variables or tuple(v.name for v in schema if v.role is not Role.IDENTIFIER)
    stacked = {name: _stacked(confidential, released, name) for name in names}
    varying = {name: values for name, values in stacked.items() if len(np.unique(values)) > 1}
    if not varying:
        raise NotComputable("no variable varies, so no classifier can tell the tables apart")
    y = np.repeat([0.0, 1.0], [len(confidential), len(released)])
    levels = [released.schema[name].kind.has_levels for name in varying]
    if spec.model == "cart":
        unordered = [released.schema[name].kind in (Kind.CATEGORICAL, Kind.BINARY) for name in varying]
        return _by_permutation(_tree_columns(list(varying.values()), unordered), y, spec, run)
    effects = [_main_effects(values, has) for values, has in zip(varying.values(), levels, strict=True)]
    pmse, null = logit_pmse(_design(effects, interactions=spec.model == "logit_interactions"), y)
    return _measure(pmse, Estimate("null_pmse", null))


def _stacked(confidential: Microdata, released: Microdata, name: str) -> Floats:
    """A variable of both tables, (N,): codes with a level for missing, or numbers that may be NaN."""
    values = np.concatenate([confidential.numbers(name), released.numbers(name)])
    return with_own_level(values) if released.schema[name].kind.has_levels else values


def _by_permutation(x: NDArray[np.float32], y: Floats, spec: PropensitySpec, run: Run) -> Measure:
    pmse = partial(tree_pmse, x, minbucket=spec.minbucket, cp=spec.cp)
    value = pmse(y, seed=int(run.rng.integers(2**31)))
    null, lower, upper = monte_carlo_mean(permutation_null(pmse, y, spec.permutations, run), within=PMSE)
    return _measure(value, Estimate("null_pmse", null, lower=lower, upper=upper))


def _measure(pmse: float, null: Estimate) -> Measure:
    if not null.value:
        ratio = Estimate.not_computed("s_pmse", "the tree does not split when labels are permuted, so its null is 0")
    else:
        ratio = Estimate("s_pmse", pmse / null.value, baseline=1.0)
    return Measure((Estimate("pmse", pmse, baseline=null.value), null, ratio))


def _main_effects(values: Floats, has_levels: bool) -> Floats:
    """Indicators of all but the first of the levels that occur, or the standardised numbers and who has none: (N, k)."""
    if has_levels:
        return np.equal(values[:, None], np.unique(values)[1:]).astype(np.float64)
    varying = [column for column in filled_with_mean(values) if np.ptp(column) > 0]
    return np.column_stack([(column - column.mean()) / column.std() for column in varying])


def _design(effects: Sequence[Floats], *, interactions: bool) -> Floats:
    """Intercept and main effects, and the products of every two variables' effects: (N, K)."""
    pairs = list(combinations(effects, 2)) if interactions else []
    count = 1 + sum(e.shape[1] for e in effects) + sum(a.shape[1] * b.shape[1] for a, b in pairs)
    if pairs and count > MOST_COEFFICIENTS:
        raise NotComputable(
            f"{count:,} main effects and products are more than {MOST_COEFFICIENTS:,}; name fewer variables"
        )
    return np.hstack([np.ones((len(effects[0]), 1)), *effects, *_products(pairs)])


def _products(pairs: Sequence[tuple[Floats, Floats]]) -> Iterator[Floats]:
    for a, b in pairs:
        yield (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)


def _tree_columns(columns: Sequence[Floats], unordered: Sequence[bool]) -> NDArray[np.float32]:
    """Indicators of unordered levels and ranks of ordered values, which single precision holds exactly: (N, P)."""
    blocks: list[NDArray[Any]] = []
    for values, plain in zip(columns, unordered, strict=True):
        if np.isnan(values).any():
            filled, missing = filled_with_mean(values)
            blocks.append(np.column_stack([np.unique(filled, return_inverse=True)[1], missing]))
            continue
        distinct, rank = np.unique(values, return_inverse=True)
        blocks.append(np.equal(values[:, None], distinct) if plain and len(distinct) > 2 else rank[:, None])
    return np.hstack(blocks).astype(np.float32)
