"""Joint tables by proportional fitting compared with statsmodels, junction trees with joint tables, soft records with exact gradients."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.margins.domain import Clique, Domain, margin_of, total_variation
from sfumato.engine.margins.joint_table import fit_joint_table
from sfumato.engine.margins.junction_tree import JunctionTree
from sfumato.engine.margins.soft_records import SoftRecords, TargetMargin, _MarginLoss, draw_from_components

ALL = (0, 1, 2, 3)
DOMAIN = Domain((3, 2, 4, 3))
PAIRS = list(itertools.combinations(range(4), 2))


def joint(seed: int) -> np.ndarray:
    table = np.random.default_rng(seed).gamma(0.7, size=DOMAIN.sizes)
    return np.asarray(table / table.sum())


def test_a_joint_table_is_that_of_the_log_linear_model() -> None:
    """Poisson regression with the margins' interactions has the same fitted means (Birch 1963)."""
    from statsmodels.formula.api import glm
    from statsmodels.genmod.families import Poisson

    counts = np.random.default_rng(3).integers(1, 40, DOMAIN.sizes)
    frame = pd.DataFrame(np.indices(DOMAIN.sizes).reshape(4, -1).T, columns=list("abcd")).astype("category")
    fit = glm("n ~ a:b + b:c + c:d + a + b + c + d", frame.assign(n=counts.ravel()), family=Poisson()).fit(tol=1e-12)
    margins = {c: margin_of(counts / counts.sum(), ALL, c) for c in [(0, 1), (1, 2), (2, 3)]}
    found = fit_joint_table(DOMAIN, margins, near=1e-12)
    assert np.allclose(found.table.ravel() * counts.sum(), fit.fittedvalues, rtol=1e-6)
    assert not np.allclose(found.table, counts / counts.sum(), rtol=1e-2), "the control: not the table itself"


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sampled_from([*PAIRS, (0, 1, 2), (1, 2, 3)]), min_size=1, max_size=4, unique=True), st.integers(0, 999)
)
def test_a_junction_tree_has_the_tables_of_the_joint_one(cliques: list[Clique], seed: int) -> None:
    table = joint(seed)
    margins = {c: margin_of(table, ALL, c) for c in cliques}
    whole = fit_joint_table(DOMAIN, margins, near=1e-10, sweeps=2_000)
    tree = JunctionTree.from_margins(DOMAIN, cliques)
    fitted = tree.fit_margins(margins, near=1e-10, sweeps=2_000)
    for clique, own in zip(tree.cliques, fitted.tables, strict=True):
        assert np.allclose(own, margin_of(whole.table, ALL, clique), atol=1e-6)
    for at, separator in enumerate(tree.separators):
        earlier = {v for clique in tree.cliques[:at] for v in clique}
        assert set(separator) == set(tree.cliques[at]) & earlier, (
            "variables of a clique that came before are its separator"
        )


def test_impossible_cells_stay_empty() -> None:
    table = joint(5)
    impossible = np.zeros(DOMAIN.sizes, dtype=bool)
    impossible[0, 1] = True
    table[impossible] = 0
    table /= table.sum()
    found = fit_joint_table(DOMAIN, {c: margin_of(table, ALL, c) for c in [(0, 2), (1, 2), (1, 3)]}, impossible)
    assert (found.table[impossible] == 0).all()
    assert found.distance < 1e-4


def test_what_no_margin_lists_is_not_kept() -> None:
    table = joint(6)
    found = fit_joint_table(DOMAIN, {(at,): margin_of(table, ALL, (at,)) for at in range(4)})
    product = np.einsum("a,b,c,d->abcd", *[margin_of(table, ALL, (at,)) for at in range(4)])
    assert np.allclose(found.table, product)


def test_the_gradient_of_soft_records_is_the_slope_of_their_loss() -> None:
    table, rng = joint(7), np.random.default_rng(8)
    groups = [np.array([0, 1, 1]), np.arange(2), np.array([0, 0, 1, 2]), np.arange(3)]
    model = SoftRecords.initialise(DOMAIN, 5, rng, groups=groups)
    grouped = np.zeros((2, 3))
    np.add.at(grouped, (groups[0][:, None], groups[2][None, :]), margin_of(table, ALL, (0, 2)))
    targets = [
        TargetMargin((1,), margin_of(table, ALL, (1,)), 2.0),
        TargetMargin((0, 2), grouped, 1.0, is_grouped=True),
        TargetMargin((1, 3), margin_of(table, ALL, (1, 3)), 3.0, is_grouped=True),
        TargetMargin((0, 1, 2), margin_of(table, ALL, (0, 1, 2)), 1.5),
    ]

    def loss(logits: np.ndarray) -> float:
        shifted = SoftRecords(DOMAIN, groups, logits.astype(np.float32))
        shifted.logits = logits
        total = 0.0
        for target in targets:
            own = shifted.margin_shares(target.clique)
            if target.clique == (0, 2):
                summed = np.zeros((2, 3))
                np.add.at(summed, (groups[0][:, None], groups[2][None, :]), own)
                own = summed
            total += target.precision / 3.0 * float(((own - target.table) ** 2).sum()) / 2
        return total

    slope, left = _MarginLoss.from_targets(model, targets).loss_gradient(model.component_shares())
    assert left == pytest.approx(6.0 * loss(model.logits.astype(np.float64)), rel=1e-4)
    slope = slope / model.logits.shape[0]
    start = model.logits.astype(np.float64)
    for row, column in [(0, 0), (1, 4), (2, 5), (3, 8), (4, 11), (0, 2)]:
        step = np.zeros_like(start)
        step[row, column] = 1e-4
        assert slope[row, column] == pytest.approx((loss(start + step) - loss(start - step)) / 2e-4, abs=2e-6)


@pytest.mark.slow
def test_soft_records_keep_all_pairs_of_a_table_and_draw_them() -> None:
    table = joint(9)
    model = SoftRecords.initialise(DOMAIN, 200, np.random.default_rng(1), [margin_of(table, ALL, (at,)) for at in ALL])
    model.fit_targets([TargetMargin(c, margin_of(table, ALL, c), 1.0) for c in PAIRS], 400)
    for pair in PAIRS:
        assert total_variation(model.margin_shares(pair), margin_of(table, ALL, pair)) < 0.01
    codes = draw_from_components(DOMAIN, model.component_shares(), 40_000, np.random.default_rng(2))
    for pair in PAIRS:
        drawn = DOMAIN.count_records(codes, pair) / len(codes)
        assert total_variation(drawn, margin_of(table, ALL, pair)) < 0.015
    independent = np.einsum("a,b->ab", margin_of(table, ALL, (0,)), margin_of(table, ALL, (1,)))
    assert total_variation(independent, margin_of(table, ALL, (0, 1))) > 0.03, "the control: a model without pairs"
