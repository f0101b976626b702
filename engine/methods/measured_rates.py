"""Measured rates of tasks by method: seconds, fixed bytes, bytes a record, bytes a value, and the sample size of a
method that uses a sample (the fields of ``task_rates.TaskRate``).

Written by ``tests/benchmarks/task_rates.py --write``; measure again when a method's computation changes.
"""

from __future__ import annotations

UNTIMED = frozenset(
    {
        "synthesis.ctgan",
        "synthesis.dpmpm",
        "synthesis.perturbed_imputation",
        "studies.calibration",
        "studies.risk_utility",
    }
)
"""Methods that are measured with fewer sweeps, generators or points than anybody would ask for: their seconds say nothing."""

GROWTH = {"anonymisation.microaggregation": 2.0}
"""Methods whose seconds do not grow in proportion to the records, and the power of the records that they grow with."""

RATES: dict[str, tuple[float, ...]] = {
    "anonymisation.generalisation": (0.0041, 225000000.0, 0.0, 13.9),
    "anonymisation.local_suppression": (0.08, 230000000.0, 139.0, 26.7),
    "anonymisation.microaggregation": (0.5, 218000000.0, 87.1, 32.0),
    "anonymisation.mondrian": (0.0093, 224000000.0, 135.0, 6.16),
    "anonymisation.optimal_recoding": (0.013, 222000000.0, 31.3, 33.5),
    "anonymisation.p_sensitive": (0.015, 226000000.0, 0.0, 23.9),
    "anonymisation.suppression": (0.0037, 225000000.0, 0.0, 16.3),
    "quality.ilm": (0.0043, 220000000.0, 118.0, 11.5),
    "quality.nmi_v1": (0.1, 244000000.0, 229.0, 12.0),
    "quality.nmi_v2": (0.092, 244000000.0, 229.0, 12.0),
    "quality.non_suppressed": (0.0017, 227000000.0, 0.0, 12.8),
    "quality.pearson": (0.0032, 219000000.0, 92.2, 10.7),
    "quality.rilm": (0.0035, 226000000.0, 88.4, 11.3),
    "risk.anonymity": (0.0061, 232000000.0, 128.0, 11.8),
    "risk.attribute": (0.019, 333000000.0, 89.4, 11.2),
    "risk.attribute_inference": (0.66, 233000000.0, 127.0, 73.7),
    "risk.bayesian_posterior": (0.5, 227000000.0, 582.0, 19.2),
    "risk.correct_attribution": (0.013, 221000000.0, 210.0, 10.8),
    "risk.exact_copies": (0.0082, 219000000.0, 211.0, 15.2),
    "risk.identification": (0.021, 333000000.0, 79.9, 11.3),
    "risk.inference_attack": (0.034, 223000000.0, 417.0, 12.9),
    "risk.linkability": (0.95, 240000000.0, 1280.0, 38.2),
    "risk.membership_inference": (1.7, 241000000.0, 0.0, 118.0),
    "risk.population_uniqueness": (0.0073, 227000000.0, 134.0, 11.6),
    "risk.record_audit": (1.0, 229000000.0, 0.4, 87.2),
    "risk.record_linkage": (0.098, 285000000.0, 244.0, 11.3),
    "risk.singling_out": (0.56, 230000000.0, 201.0, 84.0),
    "risk.special_uniques": (0.0093, 225000000.0, 128.0, 10.7),
    "risk.uniqueness": (0.0032, 233000000.0, 48.4, 12.0),
    "studies.calibration": (0.77, 251000000.0, 311.0, 43.6),
    "studies.intruder_knowledge": (0.44, 213000000.0, 502.0, 37.1),
    "studies.intruder_uncertainty": (0.2, 385000000.0, 199.0, 23.1),
    "studies.minimisation": (0.59, 249000000.0, 0.0, 43.5),
    "studies.risk_utility": (0.052, 222000000.0, 481.0, 0.0),
    "synthesis.cart": (0.0096, 258000000.0, 103.0, 5.97),
    "synthesis.dirichlet_multinomial": (0.014, 221000000.0, 102.0, 6.22),
    "synthesis.dpmpm": (0.0041, 230000000.0, 113.0, 6.31),
    "synthesis.linear_regression": (0.0033, 254000000.0, 29.5, 4.98),
    "synthesis.marginal_bootstrap": (0.0016, 220000000.0, 9.88, 8.9),
    "synthesis.margins": (0.0037, 220000000.0, 268.0, 5.44),
    "synthesis.multinomial_logistic": (0.029, 222000000.0, 226.0, 6.26),
    "synthesis.perturbed_gibbs": (0.0029, 221000000.0, 65.9, 6.29),
    "synthesis.perturbed_imputation": (0.0053, 249000000.0, 30.4, 6.52),
    "synthesis.sequential_logistic": (0.0055, 228000000.0, 98.2, 6.23),
    "synthesis.zero_inflated_truncated_poisson": (0.0043, 225000000.0, 118.0, 5.45),
    "utility.cluster": (7.2, 205000000.0, 195000.0, 16.0, 10000),
    "utility.constraint_violations": (0.0041, 219000000.0, 87.9, 12.3),
    "utility.distribution_distance": (0.0074, 222000000.0, 167.0, 10.9),
    "utility.ecdf": (0.0052, 227000000.0, 130.0, 11.9),
    "utility.interval_overlap": (0.02, 255000000.0, 149.0, 10.7),
    "utility.margin_distance": (0.0072, 221000000.0, 228.0, 11.5),
    "utility.propensity": (0.023, 269000000.0, 37.5, 29.1),
    "utility.regression_distance": (0.017, 251000000.0, 152.0, 10.7),
    "utility.summary": (0.0027, 220000000.0, 29.7, 13.5),
    "utility.units": (0.02, 225000000.0, 120.0, 12.7),
}
"""Of a fit, an anonymisation, one dataset measured, a block, or a point of a study."""

DRAWS: dict[str, tuple[float, ...]] = {
    "synthesis.cart": (0.0065, 251000000.0, 106.0, 4.1),
    "synthesis.dirichlet_multinomial": (0.0055, 228000000.0, 136.0, 14.3),
    "synthesis.dpmpm": (0.0054, 231000000.0, 80.5, 17.4),
    "synthesis.linear_regression": (0.0048, 249000000.0, 92.9, 4.32),
    "synthesis.marginal_bootstrap": (0.0087, 227000000.0, 192.0, 6.21),
    "synthesis.margins": (0.0091, 225000000.0, 351.0, 10.1),
    "synthesis.multinomial_logistic": (0.013, 229000000.0, 88.2, 16.2),
    "synthesis.perturbed_gibbs": (0.0036, 228000000.0, 100.0, 16.6),
    "synthesis.perturbed_imputation": (0.0055, 225000000.0, 172.0, 11.5),
    "synthesis.sequential_logistic": (0.0053, 228000000.0, 86.1, 15.6),
    "synthesis.zero_inflated_truncated_poisson": (0.0053, 252000000.0, 113.0, 4.44),
}
"""Of a dataset that is drawn."""
