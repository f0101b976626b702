"""Entropy, mutual information and the scale of Lighthouse: closed forms and the paper's Figures 5 and 6."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import digamma

from sfumato.engine.quality._columns import (
    EntropyEstimate,
    estimate_entropy,
    nearest_neighbour_information,
    normalised_information,
    plug_in_entropy,
    scale_information_share,
)

# Figure 6 runs to 100,000 records, and Figure 5's entropies are those of as many.
FIGURE_RECORDS = 100_000


def model(n: int, decimals: int | None, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """X, rounded, and t = X + 0.4 X Y + 0.05 Z (§3.4)."""
    rng = np.random.default_rng(seed)
    x, y, z = 1000 * rng.random(n), rng.random(n), rng.random(n)
    x = x if decimals is None else np.round(x, decimals)
    return x, x + 0.4 * x * y + 0.05 * z


def information(
    x: np.ndarray, t: np.ndarray, samples: int = 3, seed: int = 2, entropy: EntropyEstimate = "plug_in"
) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    found = normalised_information(x, t, x, samples=samples, neighbours=3, rng=rng, entropy=entropy)
    assert found is not None
    return found.unscaled.value, found.scaled.value


def test_entropy_of_a_constant_of_equal_shares_and_of_unequal_ones() -> None:
    assert plug_in_entropy(np.ones(7)) == 0
    assert plug_in_entropy(np.arange(50)) == pytest.approx(math.log(50))
    assert plug_in_entropy(np.array([1, 1, 1, 2])) == pytest.approx(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))


@pytest.mark.parametrize(("share", "entropy"), [(0.27, 10.26), (0.8, 2.37), (0.0, 0.1), (1.0, 3.0)])
def test_the_scale_is_the_integral_of_equation_1(share: float, entropy: float) -> None:
    penalty = quad(lambda x: 2**-x * (1 - share), 0, entropy)[0]
    assert scale_information_share(share, entropy) == pytest.approx(1 - penalty / entropy)


@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.95])
def test_information_of_normals_is_that_of_the_closed_form(correlation: float) -> None:
    rng = np.random.default_rng(5)
    x, e = rng.normal(size=(2, 6000))
    y = correlation * x + math.sqrt(1 - correlation**2) * e
    found = nearest_neighbour_information(x, y, 3, rng)
    assert found == pytest.approx(-0.5 * math.log(1 - correlation**2), abs=0.05)


def test_information_of_few_values_with_themselves_is_their_entropy() -> None:
    x = np.random.default_rng(6).integers(5, size=4000).astype(float)
    found = nearest_neighbour_information(x, x, 3, np.random.default_rng(1))
    assert found == pytest.approx(plug_in_entropy(x), abs=0.02)
    other = np.random.default_rng(7).permutation(x)
    assert nearest_neighbour_information(x, other, 3, np.random.default_rng(1)) < 0.03, "the control: unrelated"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("decimals", "entropy", "share"), [(None, 10.26, 0.27), (0, 6.91, None), (-1, 4.61, None), (-2, 2.37, 0.80)]
)
def test_figure_5(decimals: int | None, entropy: float, share: float | None) -> None:
    """The paper prints these entropies and shares, and scaled values of 0.84 to 0.90."""
    x, t = model(FIGURE_RECORDS, decimals)
    assert estimate_entropy(x, "nearest_neighbour", 3, np.random.default_rng(3)) == pytest.approx(entropy, abs=0.01)
    unscaled, after = information(x, t, samples=1, entropy="nearest_neighbour")
    assert share is None or unscaled == pytest.approx(share, abs=0.005)
    assert 0.835 <= after <= 0.905


@pytest.mark.slow
def test_figure_6() -> None:
    """Without sampling the share falls to about 0.21 at 100,000 records; that of 10,000 is about 0.27."""
    x, t = model(FIGURE_RECORDS, None)
    rng = np.random.default_rng(3)
    known = nearest_neighbour_information(t, x, 3, rng)
    assert known / estimate_entropy(x, "nearest_neighbour", 3, rng) == pytest.approx(0.21, abs=0.005)
    assert information(x[:10_000], t[:10_000], entropy="nearest_neighbour")[0] == pytest.approx(0.27, abs=0.005)
    assert known / plug_in_entropy(x) == pytest.approx(0.19, abs=0.005), "the control: the entropy of shares"
    assert information(x[:10_000], t[:10_000])[0] == pytest.approx(0.23, abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize("decimals", [None, 0, -1, -2])
def test_both_entropies_scale_to_nearly_the_same(decimals: int | None) -> None:
    x, t = model(10_000, decimals)
    either = [information(x, t, samples=1, entropy=kind) for kind in ("plug_in", "nearest_neighbour")]
    assert either[0][1] == pytest.approx(either[1][1], abs=0.02)
    assert 0.835 <= either[0][1] <= 0.905
    assert decimals is None or either[0][0] == pytest.approx(either[1][0], abs=0.01)


def test_numbers_that_never_repeat_and_are_left_as_they_are_keep_all_information_by_one_entropy_alone() -> None:
    x = model(5000, None)[0]
    assert information(x, x, entropy="nearest_neighbour")[0] == pytest.approx(1, abs=1e-3)
    assert information(x, x)[0] == pytest.approx(1 - digamma(4) / math.log(5000), abs=0.001), "psi(4) nats are lost"


@pytest.mark.slow
def test_sampling_makes_files_of_different_sizes_comparable() -> None:
    """Figure 6: without sampling the share falls as the file grows."""
    small, large = model(10_000, None), model(40_000, None, seed=4)
    assert information(*large)[0] == pytest.approx(information(*small)[0], rel=0.02)
    x, t = large
    unsampled = nearest_neighbour_information(t, x, 3, np.random.default_rng(3)) / plug_in_entropy(x)
    assert unsampled < 0.9 * information(*small)[0], "the control: all 40,000 at once"


def test_the_share_stays_within_its_bounds() -> None:
    x = np.random.default_rng(6).integers(5, size=4000).astype(float)
    assert nearest_neighbour_information(x, x, 3, np.random.default_rng(1)) > plug_in_entropy(x), "else no cut"
    assert information(x, x, samples=1, seed=1) == (1, 1)
    assert information(np.arange(300.0), np.zeros(300))[0] < 0.05


def test_a_constant_has_no_information_to_share() -> None:
    x, t = np.ones(50), np.arange(50.0)
    rng = np.random.default_rng(1)
    assert normalised_information(x, t, x, samples=1, neighbours=3, rng=rng) is None
    assert normalised_information(t, x, x, samples=1, neighbours=3, rng=rng) is None
