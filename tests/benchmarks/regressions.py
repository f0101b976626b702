"""Regressions by our own code and by statsmodels: milliseconds (median of 5) and how far apart the answers are.

    python tests/benchmarks/regressions.py [--records 10000]

Then the errors of both on designs with columns of other units and with nearly collinear ones, and what importing each costs.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy.special import expit
from statsmodels.formula.api import glm

from sfumato.engine.data.arrays import Floats, Integers
from sfumato.engine.design.estimation import linear_coefficients, logistic_coefficients
from sfumato.engine.design.survey_estimation import (
    SurveySample,
    survey_linear_coefficients,
    survey_logistic_coefficients,
)
from sfumato.engine.margins.log_linear import LogLinearModel
from sfumato.engine.statistics.interval_estimate import IntervalEstimate

REPEATS, PREDICTORS, CLUSTERS, CLASSES = 5, 10, 200, 4
IMPORTS = {
    "ours": "import sfumato.engine.design.estimation",
    "statsmodels": "import statsmodels.regression.linear_model, statsmodels.genmod.generalized_linear_model",
}


def median_ms(work: Callable[[], object]) -> float:
    """Return milliseconds, the median of REPEATS."""
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return 1000 * statistics.median(seconds)


def estimates_and_errors(found: list[IntervalEstimate]) -> Floats:
    return np.array([[one.value, one.standard_error] for one in found])


def params_and_errors(result: Any, factor: float = 1.0) -> Floats:
    """Return coefficients and standard errors of statsmodels, whose variances are multiplied by ``factor``."""
    result.conf_int()
    return np.column_stack([result.params, result.bse * np.sqrt(factor)])


def print_comparison(what: str, ours: Callable[[], Floats], theirs: Callable[[], Floats]) -> None:
    """Print the times of both and the largest relative difference."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # statsmodels warns of a sandwich beside var_weights, which is the one that R has
        one, other = ours(), theirs()
        times = median_ms(ours), median_ms(theirs)
    apart = float(np.max(np.abs(one - other) / np.where(one == 0, 1.0, np.abs(one))))
    print(f"{what:<58}{times[0]:>9.1f}{times[1]:>13.1f}{times[0] / times[1]:>8.2f}{apart:>11.1e}", flush=True)


def simulate(records: int) -> tuple[Floats, Floats, Floats, Floats, Integers]:
    """Return a design (n, K), a response, a response of 0 and 1, weights and clusters, (n,) each."""
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(records), rng.normal(size=(records, PREDICTORS - 1))])
    eta = x @ rng.normal(0, 0.4, PREDICTORS)
    y, holds = eta + rng.normal(size=records), (rng.random(records) < expit(eta)).astype(np.float64)
    return x, y, holds, rng.uniform(0.5, 3, records), rng.integers(CLUSTERS, size=records)


def compare_regressions(records: int) -> None:
    x, y, holds, weights, clusters = simulate(records)
    everyone = np.ones(records, dtype=np.bool_)
    independent, clustered = SurveySample.from_codes(weights), SurveySample.from_codes(weights, clusters=clusters)
    scaled = weights / weights.mean()
    # statsmodels counts what the coefficients take of the degrees of freedom into its sandwich; svyglm of R and we do not
    single, grouped = records / (records - 1), (records - PREDICTORS) / (records - 1)
    groups = {"groups": clusters}
    print_comparison(
        "least squares",
        lambda: estimates_and_errors(linear_coefficients(x, y)),
        lambda: params_and_errors(sm.OLS(y, x).fit()),
    )
    print_comparison(
        "logistic regression",
        lambda: estimates_and_errors(logistic_coefficients(x, holds)),
        lambda: params_and_errors(sm.GLM(holds, x, family=sm.families.Binomial()).fit(tol=1e-12)),
    )
    print_comparison(
        "the same by Newton's method (Logit)",
        lambda: estimates_and_errors(logistic_coefficients(x, holds)),
        lambda: params_and_errors(sm.Logit(holds, x).fit(disp=0, tol=1e-12)),
    )
    print_comparison(
        "weighted least squares, sandwich (HC0)",
        lambda: estimates_and_errors(survey_linear_coefficients(x, y, independent, everyone)),
        lambda: params_and_errors(sm.WLS(y, x, scaled).fit(cov_type="HC0"), single),
    )
    print_comparison(
        f"weighted least squares, sandwich of {CLUSTERS} clusters",
        lambda: estimates_and_errors(survey_linear_coefficients(x, y, clustered, everyone)),
        lambda: params_and_errors(sm.WLS(y, x, scaled).fit(cov_type="cluster", cov_kwds=groups), grouped),
    )
    print_comparison(
        f"logistic regression, sandwich of {CLUSTERS} clusters",
        lambda: estimates_and_errors(survey_logistic_coefficients(x, holds, clustered, everyone)),
        lambda: params_and_errors(
            sm.GLM(holds, x, family=sm.families.Binomial(), var_weights=scaled).fit(
                tol=1e-12, cov_type="cluster", cov_kwds=groups
            ),
            grouped,
        ),
    )


def compare_log_linear_models(records: int) -> None:
    """Compare all two-way interactions of four variables; statsmodels needs the design of every cell."""
    for levels in (3, 5):
        shape = (levels,) * 4
        shares = np.random.default_rng(1).dirichlet(np.full(levels**4, 5.0))
        counts = np.random.default_rng(2).multinomial(records, shares).reshape(shape).astype(np.float64) + 1
        cells = np.indices(shape).reshape(4, -1).T
        frame = pd.DataFrame(cells, columns=list("abcd")).astype("category").assign(n=counts.ravel())
        print_comparison(
            f"Poisson means of {levels**4} cells, two-way interactions",
            lambda counts=counts: LogLinearModel.from_table(counts, 2).fitted_means.ravel(),
            lambda frame=frame: (
                glm("n ~ (a + b + c + d)**2", frame, family=sm.families.Poisson())
                .fit(tol=1e-12)
                .fittedvalues.to_numpy()
            ),
        )


def print_errors_on_hard_designs(records: int) -> None:
    """Print the error of a coefficient on designs for which the right one is known: columns of other units, and nearly collinear ones.

    Such as an income squared beside a share, and gross beside net pay, in cents.
    """
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(records), rng.normal(size=(records, 2))])
    y = x @ [1.0, 0.5, -0.5] + rng.normal(size=records)
    print(f"\n{'relative error of a coefficient, of its standard error':<58}{'ours':>18}{'statsmodels':>18}")
    for factor in (1e4, 1e6, 1e8):
        _print_errors(
            f"columns {factor**2:.0e} times apart in size", x, x * [1.0, factor, 1 / factor], y, np.eye(3)[2] * factor
        )
    for apart in (1e-5, 1e-7, 1e-9):
        collinear = np.column_stack([x[:, 0], 5 + x[:, 1], 5 + x[:, 1] + apart * x[:, 2]])
        _print_errors(f"two columns {apart:.0e} apart", x, collinear, y, np.eye(3)[2] / apart)


def _print_errors(what: str, plain: Floats, hard: Floats, y: Floats, to_hard: Floats) -> None:
    """Print errors on a ``hard`` design (n, K), whose last coefficient is ``to_hard`` (K,) times those of the ``plain`` one."""
    holds = (y > 0).astype(np.float64)
    fits: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Any]]] = {
        "OLS": (lambda x: estimates_and_errors(linear_coefficients(x, y)), lambda x: sm.OLS(y, x).fit()),
        "GLM": (
            lambda x: estimates_and_errors(logistic_coefficients(x, holds)),
            lambda x: sm.GLM(holds, x, family=sm.families.Binomial()).fit(tol=1e-12),
        ),
        "Logit": (
            lambda x: estimates_and_errors(logistic_coefficients(x, holds)),
            lambda x: sm.Logit(holds, x).fit(disp=0, tol=1e-12, maxiter=100),
        ),
    }
    for name, (ours, theirs) in fits.items():
        right = ours(plain)[-1] * to_hard[-1]
        words = [_error_text(lambda ours=ours: ours(hard)[-1], right)]
        words.append(_error_text(lambda theirs=theirs: params_and_errors(theirs(hard))[-1], right))
        print(f"{f'{what}: {name}':<58}{words[0]:>18}{words[1]:>18}")


def _error_text(fit: Callable[[], Floats], right: Floats) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            apart = np.abs(fit() / right - 1)
        except np.linalg.LinAlgError:
            return "no answer"
    return f"{apart[0]:.0e}  {apart[1]:.0e}"


def print_import_costs() -> None:
    """Print seconds and memory of imports, beyond those of the libraries that both need, each in a process of its own."""
    print(f"\n{'importing':<58}{'s':>9}{'MiB':>13}")
    for name, line in IMPORTS.items():
        code = (
            "import numpy, scipy.special, pandas, time, pathlib\n"
            "peak = lambda: int(pathlib.Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0]) / 1024\n"
            f"start, before = time.perf_counter(), peak()\n{line}\nprint(time.perf_counter() - start, peak() - before)"
        )
        ran = [
            subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
            for _ in range(REPEATS)
        ]
        seconds, grown = (statistics.median(float(one[i]) for one in ran) for i in range(2))
        print(f"{name:<58}{seconds:>9.2f}{grown:>13.0f}")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--records", type=int, default=10_000)
    records = arguments.parse_args().records
    print(
        f"{f'{records:,} records, {PREDICTORS} coefficients':<58}{'ours ms':>9}{'statsmodels':>13}{'ratio':>8}{'apart':>11}"
    )
    compare_regressions(records)
    compare_log_linear_models(records)
    print_errors_on_hard_designs(records)
    print_import_costs()


if __name__ == "__main__":
    main()
