from __future__ import annotations

import numpy as np
import pytest

from sfumato.engine.posterior.mass_table import MassSurface, log_masses, mass_derivatives, shared_counts
from sfumato.engine.posterior.poisson_lognormal import rate_quadrature

CASES = [(0, 365), (0, None), (0, 1_000_000), (1, 1), (8, 8), (3, 40)]


def exact(y: float, eta: np.ndarray, tau: float, bound: int | None) -> np.ndarray:
    return rate_quadrature(np.full(eta.size, float(y)), eta, tau, bound).log_mass


@pytest.mark.slow
@pytest.mark.parametrize(("y", "bound"), CASES)
@pytest.mark.parametrize("log_taus", [(-4.0, -3.0), (-0.3, 1.2)])
def test_a_surface_is_the_integral_between_its_nodes(y: int, bound: int | None, log_taus: tuple[float, float]) -> None:
    rng = np.random.default_rng(y)
    surface = MassSurface(float(y), (-6.0, 7.0), log_taus, bound)
    for log_tau in rng.uniform(*log_taus, 4):
        eta = rng.uniform(-6, 7, 200)
        truth = exact(y, eta, float(np.exp(log_tau)), bound)
        found = surface.log_mass(eta, float(log_tau))
        likely = truth > -40
        assert found[likely] == pytest.approx(truth[likely], rel=2e-8, abs=2e-8)
        if y == 0:
            assert found[~likely] == pytest.approx(truth[~likely], rel=2e-3)
    moved = surface.log_mass(eta + 1e-4, float(log_tau))
    assert moved[likely] != pytest.approx(truth[likely], rel=2e-8, abs=2e-8)


def test_outside_its_ranges_a_surface_integrates() -> None:
    surface = MassSurface(0.0, (-1.0, 1.0), (-0.5, 0.5), 20)
    eta = np.array([-9.0, 0.0, 4.0])
    assert np.array_equal(surface.log_mass(eta, 0.1), exact(0, eta, float(np.exp(0.1)), 20))
    assert np.array_equal(surface.log_mass(eta[1:2], 2.0), exact(0, eta[1:2], float(np.exp(2.0)), 20))
    assert not surface.blocks


@pytest.mark.slow
@pytest.mark.parametrize("log_tau", [-2.0, 0.4])
def test_a_table_for_one_tau_gives_the_integrals_and_their_derivatives(log_tau: float) -> None:
    rng = np.random.default_rng(3)
    y = np.concatenate([np.zeros(4500), rng.integers(1, 30, 60)])
    eta, tau = rng.normal(1.0, 1.5, y.size), float(np.exp(log_tau))
    truth = rate_quadrature(y, eta, tau, 30)
    likely = truth.log_mass > -40
    assert log_masses(y, eta, tau, 30)[likely] == pytest.approx(truth.log_mass[likely], rel=1e-8, abs=1e-8)
    found, derivatives = mass_derivatives(y, eta, tau, 30), truth.log_mass_derivatives()
    for part in ("value", "e", "s", "ee", "es", "ss"):
        assert getattr(found, part)[likely] == pytest.approx(getattr(derivatives, part)[likely], rel=1e-6, abs=1e-6)


def test_few_pairs_are_integrated_one_by_one() -> None:
    rng = np.random.default_rng(4)
    y, eta = np.zeros(300), rng.normal(size=300)
    assert np.array_equal(log_masses(y, eta, 0.7, 9), rate_quadrature(y, eta, 0.7, 9).log_mass)


def test_shared_counts_are_those_of_many() -> None:
    y = np.array([0.0, 5.0, 0.0, 7.0, 5.0, 0.0])
    assert [list(found) for found in shared_counts(y, 2)] == [[0, 2, 5], [1, 4]]
    assert shared_counts(y, 4) == ()
