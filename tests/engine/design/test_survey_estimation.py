"""Figures of R's survey package for a table of closed formulas, robust covariances of statsmodels, and what holds of any weights.

apt-get install r-cran-survey    # survey 4.1-1, R 4.2.2
Rscript survey.R                 # the lines of SCRIPT
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from estimated_columns import mean_estimate
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sfumato.engine.data.provenance import ReleaseProvenance
from sfumato.engine.design.estimation import linear_coefficients, logistic_coefficients
from sfumato.engine.design.survey_estimation import (
    SurveySample,
    design_effect,
    effective_sample_size,
    survey_linear_coefficients,
    survey_logistic_coefficients,
    survey_mean,
    survey_quantile,
    weighted_mean,
    weighted_quantiles,
    weighted_sd,
)
from sfumato.engine.errors import NotComputable
from sfumato.engine.statistics.combining import combine_datasets
from sfumato.engine.statistics.interval_estimate import IntervalEstimate

SCRIPT = r"""
suppressMessages(library(survey)); options(digits=13)
i <- 1:60; h <- i %% 3; c <- (i %/% 3) %% 4; w <- 1 + (i * i) %% 7 + 2 * h
y <- (i * 37) %% 41 + h / 2 + w; x <- (i * 11) %% 13; b <- as.integer((i * i * 7 + 5 * h + w) %% 9 < 4)
N <- c(10, 8, 12)[h + 1]; m <- ifelse(i %% 10 == 0, NA, y)
d <- data.frame(i, h, c, w, y, x, b, N, m)
designs <- list(weights = svydesign(~1, weights = ~w, data = d), strata = svydesign(~1, strata = ~h, weights = ~w, data = d),
  clusters = svydesign(~c, strata = ~h, weights = ~w, data = d, nest = TRUE), population = svydesign(~c, strata = ~h, weights = ~w, fpc = ~N, data = d, nest = TRUE))
show <- function(n, v) cat('    "', n, '": [', paste(sprintf("%.13g", v), collapse = ", "), '],\n', sep = "")
for (n in names(designs)) { s <- designs[[n]]; cat('"', n, '"\n', sep="")
  one <- function(name, f, s) { e <- svymean(f, s); show(name, c(coef(e)[1], SE(e)[1], confint(e, df = degf(s))[1, ])) }
  one("mean", ~y, s); one("share", ~b, s); one("mean_of_present", ~m, subset(s, !is.na(m)))
  show("sd", sqrt(coef(svyvar(~y, s))))
  for (p in c(.25, .5, .75)) { q <- svyquantile(~y, s, p)$y; show(paste("quantile", p), c(q[1], q[4], q[2], q[3])) }
  for (f in c("linear", "logit")) { g <- if (f == "linear") svyglm(y ~ x + factor(h), s) else svyglm(b ~ x + y, s, family = quasibinomial(), control=glm.control(epsilon=1e-14))
    ci <- confint(g); for (k in 1:length(coef(g))) show(paste(f, k-1), c(coef(g)[k], SE(g)[k], ci[k, ])) }
  g <- svyglm(m ~ x, s); ci <- confint(g); for (k in 1:2) show(paste("linear_of_present", k-1), c(coef(g)[k], SE(g)[k], ci[k, ]))
}
"""

# fmt: off
FIGURES = {
    "weights": {
        "mean": [26.43189368771, 1.688394815175, 23.05342346615, 29.81036390926],
        "share": [0.4418604651163, 0.06974303739892, 0.3023049696272, 0.5814159606054],
        "mean_of_present": [28.43866171004, 1.638497744631, 25.15225142041, 31.72507199967],
        "sd": [12.05544287317],
        "quantile 0.25": [16, 2.623694216133, 11.5, 22],
        "quantile 0.5": [28, 2.498756396318, 22, 32],
        "quantile 0.75": [37.5, 2.748632035949, 31, 42],
        "linear 0": [24.23195344684, 4.021558920122, 16.1758028648, 32.28810402887],
        "linear 1": [-0.4088857924687, 0.4181915485181, -1.246624130738, 0.4288525458008],
        "linear 2": [4.279412300462, 4.145304940331, -4.024631348051, 12.58345594898],
        "linear 3": [6.962100950696, 4.192247751797, -1.435980449202, 15.36018235059],
        "logit 0": [0.1254506453361, 0.8483183162961, -1.573277481531, 1.824178772203],
        "logit 1": [-0.03423008398932, 0.07622946451391, -0.1868769536587, 0.11841678568],
        "logit 2": [-0.005853782462813, 0.02402788452494, -0.05396879128384, 0.04226122635821],
        "linear_of_present 0": [28.98359189972, 2.955773184666, 23.05239908222, 34.91478471722],
        "linear_of_present 1": [-0.09463280892509, 0.4175883243847, -0.9325850858826, 0.7433194680324],
    },
    "strata": {
        "mean": [26.43189368771, 1.688159711044, 23.05141217658, 29.81237519884],
        "share": [0.4418604651163, 0.07075188380933, 0.3001822616083, 0.5835386686242],
        "mean_of_present": [28.43866171004, 1.641204449517, 25.14380629342, 31.73351712666],
        "sd": [12.05544287317],
        "quantile 0.25": [16, 2.621768068778, 11.5, 22],
        "quantile 0.5": [28, 2.496921970265, 22, 32],
        "quantile 0.75": [37.5, 2.746614167291, 31, 42],
        "linear 0": [24.23195344684, 4.07116800079, 16.06975304332, 32.39415385035],
        "linear 1": [-0.4088857924687, 0.4195732218781, -1.25007945489, 0.4323078699532],
        "linear 2": [4.279412300462, 4.217392423548, -4.175950419669, 12.73477502059],
        "linear 3": [6.962100950696, 4.264965246369, -1.58863953659, 15.51284143798],
        "logit 0": [0.1254506453361, 0.8569600893445, -1.591935751202, 1.842837041874],
        "logit 1": [-0.03423008398932, 0.07613676281171, -0.1868115663186, 0.11835139834],
        "logit 2": [-0.005853782462813, 0.02442618594692, -0.05480495298539, 0.04309738805977],
        "linear_of_present 0": [28.98359189972, 2.914835559871, 23.12897237567, 34.83821142378],
        "linear_of_present 1": [-0.09463280892509, 0.4177850756947, -0.9337788296114, 0.7445132117612],
    },
    "clusters": {
        "mean": [26.43189368771, 0.9973987630788, 24.17562093164, 28.68816644377],
        "share": [0.4418604651163, 0.08252259011497, 0.255181396795, 0.6285395334375],
        "mean_of_present": [28.43866171004, 1.214833914269, 25.69051646926, 31.18680695081],
        "sd": [12.05544287317],
        "quantile 0.25": [16, 2.210279675624, 12, 22],
        "quantile 0.5": [28, 0.7735978864684, 26.5, 30],
        "quantile 0.75": [37.5, 1.989251708062, 32, 41],
        "linear 0": [24.23195344684, 4.906677456577, 12.22574622859, 36.23816066508],
        "linear 1": [-0.4088857924687, 0.6683860973218, -2.044367655146, 1.226596070209],
        "linear 2": [4.279412300462, 2.489835890747, -1.812996648011, 10.37182124894],
        "linear 3": [6.962100950696, 3.038117166796, -0.471903949903, 14.3961058513],
        "logit 0": [0.1254506453361, 0.7125062025723, -1.559358800677, 1.810260091349],
        "logit 1": [-0.03423008398932, 0.07658381283665, -0.2153220251023, 0.1468618571237],
        "logit 2": [-0.005853782462813, 0.02238030086441, -0.05877478464475, 0.04706721971912],
        "linear_of_present 0": [28.98359189972, 3.56736589893, 20.757231385, 37.20995241444],
        "linear_of_present 1": [-0.09463280892509, 0.500845363263, -1.249584287707, 1.060318669857],
    },
    "population": {
        "mean": [26.43189368771, 0.7943047376845, 24.63505153591, 28.22873583951],
        "share": [0.4418604651163, 0.06484421988449, 0.2951726486385, 0.588548281594],
        "mean_of_present": [28.43866171004, 0.9763891798581, 26.22991593314, 30.64740748693],
        "sd": [12.05544287317],
        "quantile 0.25": [16, 1.87873772428, 13, 21.5],
        "quantile 0.5": [28, 0.6630839026872, 27, 30],
        "quantile 0.75": [37.5, 1.657709756718, 32.5, 40],
        "linear 0": [24.23195344684, 3.843188309683, 14.82801042569, 33.63589646798],
        "linear 1": [-0.4088857924687, 0.5270539242596, -1.698540285932, 0.8807687009946],
        "linear 2": [4.279412300462, 1.91277072254, -0.4009690490427, 8.959793649968],
        "linear 3": [6.962100950696, 2.409331623158, 1.066678848653, 12.85752305274],
        "logit 0": [0.1254506453361, 0.5135972488016, -1.089013864732, 1.339915155404],
        "logit 1": [-0.03423008398932, 0.06007732142419, -0.1762903751997, 0.107830207221],
        "logit 2": [-0.005853782462813, 0.01677242846746, -0.04551427357507, 0.03380670864944],
        "linear_of_present 0": [28.98359189972, 2.828638086924, 22.46074077428, 35.50644302516],
        "linear_of_present 1": [-0.09463280892509, 0.396261701332, -1.00841393082, 0.8191483129696],
    },
}
# fmt: on

RECORD = np.arange(1, 61)
H, C = RECORD % 3, (RECORD // 3) % 4
W = (1 + (RECORD * RECORD) % 7 + 2 * H).astype(float)
Y, X = (RECORD * 37) % 41 + H / 2 + W, ((RECORD * 11) % 13).astype(float)
B = ((RECORD * RECORD * 7 + 5 * H + W) % 9 < 4).astype(float)
N = np.array([10.0, 8.0, 12.0])[H]
M = np.where(RECORD % 10 == 0, np.nan, Y)
ALL = np.ones(60, dtype=bool)

SAMPLES = {
    "weights": SurveySample.from_codes(W),
    "strata": SurveySample.from_codes(W, H),
    "clusters": SurveySample.from_codes(W, H, C),
    "population": SurveySample.from_codes(W, H, C, N),
}


def four(found: IntervalEstimate) -> list[float]:
    return [found.value, found.standard_error, found.lower, found.upper]


def design(*columns: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(columns[0])), *columns])


@pytest.mark.parametrize("name", FIGURES)
def test_estimates_are_those_of_r(name: str) -> None:
    sample, figures, present = SAMPLES[name], FIGURES[name], ~np.isnan(M)
    found = {
        "mean": four(survey_mean(Y, sample)),
        "share": four(survey_mean(B, sample)),
        "mean_of_present": four(survey_mean(M, sample)),
        "sd": [weighted_sd(Y, W)],
    }
    found |= {f"quantile {p:g}": four(survey_quantile(Y, sample, p)) for p in (0.25, 0.5, 0.75)}
    fits = {
        "linear": survey_linear_coefficients(design(X, H == 1, H == 2), Y, sample, ALL),
        "logit": survey_logistic_coefficients(design(X, Y), B, sample, ALL),
        "linear_of_present": survey_linear_coefficients(design(X[present]), Y[present], sample, present),
    }
    found |= {f"{fit} {k}": four(one) for fit, all_of_it in fits.items() for k, one in enumerate(all_of_it)}
    assert found.keys() == figures.keys()
    for key, figure in figures.items():
        assert found[key] == pytest.approx(figure, rel=1e-8, abs=1e-10), key


ROBUST = {
    "HC0": lambda n, k, g: n / (n - 1),
    "HC1": lambda n, k, g: (n - k) / (n - 1),
    "cluster": lambda n, k, g: (n - k) / (n - 1),
    "cluster, uncorrected": lambda n, k, g: g / (g - 1),
}
"""What our variance is of that of statsmodels, for n records, k coefficients and g clusters: it has the factor g / (g - 1) of clusters
that are drawn (g = n without clusters), and none for the coefficients."""


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ROBUST)
def test_robust_standard_errors_are_those_of_statsmodels(kind: str, weighted: bool) -> None:
    n, g, rng = 400, 30, np.random.default_rng(8)
    cluster = np.arange(n) % g
    x = design(rng.normal(size=n), rng.random(n) < 0.4)
    eta = x @ [0.2, 0.7, -0.5] + rng.normal(0, 0.8, g)[cluster]
    y = eta + rng.normal(size=n) * (1 + np.abs(x[:, 1]))
    b = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)
    w = rng.uniform(0.5, 3, n) if weighted else np.ones(n)
    w /= w.mean()
    by_cluster = kind.startswith("cluster")
    sample = SurveySample.from_codes(w, clusters=cluster if by_cluster else None)
    how = (
        {"cov_type": "cluster", "cov_kwds": {"groups": cluster, "use_correction": kind == "cluster"}}
        if by_cluster
        else {"cov_type": kind}
    )
    everyone = np.ones(n, dtype=bool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of var_weights beside a sandwich; R's svyglm has the same figures
        linear, logistic = sm.WLS(y, x, w), sm.GLM(b, x, family=sm.families.Binomial(), var_weights=w)
        fits = (
            (survey_linear_coefficients(x, y, sample, everyone), linear.fit(**how), linear.fit(), kind),
            # the HC1 of a GLM has no factor for the coefficients in statsmodels: it is HC0
            (
                survey_logistic_coefficients(x, b, sample, everyone),
                logistic.fit(tol=1e-14, **how),
                logistic.fit(tol=1e-14),
                kind.replace("HC1", "HC0"),
            ),
        )
    for ours, theirs, plain, ratio in fits:
        errors = [one.standard_error for one in ours]
        assert [one.value for one in ours] == pytest.approx(theirs.params, rel=1e-8)
        assert errors == pytest.approx(theirs.bse * np.sqrt(ROBUST[ratio](n, 3, g)), rel=1e-8)
        assert errors != pytest.approx(plain.bse, rel=1e-2), (
            "the control: not the errors of independent, equal residuals"
        )


def test_the_error_of_a_mean_is_the_robust_one_of_an_intercept() -> None:
    for sample, how in (
        (SurveySample.from_codes(W), {"cov_type": "HC1"}),
        (SurveySample.from_codes(W, clusters=C), {"cov_type": "cluster", "cov_kwds": {"groups": C}}),
    ):
        ours, theirs = survey_mean(Y, sample), sm.WLS(Y, np.ones(60), W).fit(**how)
        assert [ours.value, ours.standard_error] == pytest.approx([theirs.params[0], theirs.bse[0]], rel=1e-10)


def test_figures_without_the_weights_or_the_design_are_others() -> None:
    """The control: what R gives rests on each part of the design."""
    plain = survey_mean(Y, SurveySample.from_codes(np.ones(60)))
    assert plain.value != pytest.approx(FIGURES["weights"]["mean"][0], rel=1e-3)
    errors = {name: figures["mean"][1] for name, figures in FIGURES.items()}
    assert len({round(error, 4) for error in errors.values()}) == 4


values = arrays.arrays(float, st.integers(4, 30), elements=st.integers(-50, 50).map(float))
weights_of = st.floats(0.1, 1e4)


@pytest.mark.slow
@given(values, weights_of)
def test_equal_weights_are_none(y: np.ndarray, weight: float) -> None:
    sample = SurveySample.from_codes(np.full(len(y), weight))
    ours, theirs = survey_mean(y, sample), mean_estimate(y)
    assert four(ours) == pytest.approx(four(theirs), rel=1e-12, abs=1e-12)
    assert weighted_sd(y, sample.weights) == pytest.approx(np.std(y, ddof=1), rel=1e-12, abs=1e-12)
    assert effective_sample_size(sample.weights) == pytest.approx(len(y), rel=1e-12)
    assert design_effect(sample.weights) == pytest.approx(1, rel=1e-12)


@pytest.mark.slow
@given(values, st.floats(0, 1), weights_of)
def test_a_quantile_of_equal_weights_is_one_of_the_two_values_between_which_the_plain_one_lies(
    y: np.ndarray, p: float, weight: float
) -> None:
    rank = (len(y) - 1) * p
    nearest = np.sort(y)[[int(np.floor(rank)), min(int(np.floor(rank)) + 1, len(y) - 1)]]
    assert weighted_quantiles(y, np.full(len(y), weight), [p])[0] in nearest


def test_coefficients_of_equal_weights_are_the_plain_ones_and_their_errors_are_robust_ones() -> None:
    sample, x = SurveySample.from_codes(np.full(60, 3.0)), design(X, Y)
    for ours, theirs in (
        (survey_linear_coefficients(design(X), Y, sample, ALL), linear_coefficients(design(X), Y)),
        (survey_logistic_coefficients(x, B, sample, ALL), logistic_coefficients(x, B)),
    ):
        assert [one.value for one in ours] == pytest.approx([one.value for one in theirs], rel=1e-10)
        assert ours[0].standard_error != pytest.approx(theirs[0].standard_error, rel=1e-3)


whole = arrays.arrays(int, st.integers(4, 20), elements=st.integers(1, 4))


@pytest.mark.slow
@given(whole, st.data())
def test_a_record_of_weight_2_is_a_record_twice_in_estimates_but_not_in_their_errors(
    w: np.ndarray, data: st.DataObject
) -> None:
    y = data.draw(arrays.arrays(float, len(w), elements=st.integers(-20, 20).map(float)))
    p = data.draw(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]))
    repeated, once = np.repeat(y, w), np.ones(int(w.sum()))
    weights = w.astype(float)
    assert weighted_mean(y, weights) == pytest.approx(weighted_mean(repeated, once), abs=1e-12)
    assert weighted_quantiles(y, weights, [p]) == weighted_quantiles(repeated, once, [p])
    if np.ptp(y) > 0 and (w > 1).all():
        of_twice = survey_mean(repeated, SurveySample.from_codes(once)).standard_error
        assert of_twice < survey_mean(y, SurveySample.from_codes(weights)).standard_error


@pytest.mark.slow
@given(values, st.data())
def test_the_unit_of_the_weights_and_the_order_of_the_records_change_nothing(
    y: np.ndarray, data: st.DataObject
) -> None:
    n = len(y)
    w = data.draw(arrays.arrays(float, n, elements=st.floats(0.5, 20)))
    h, c = (data.draw(arrays.arrays(int, n, elements=st.integers(0, 3))) for _ in range(2))
    order = np.array(data.draw(st.permutations(range(n))))
    unit = data.draw(st.floats(1e-3, 1e3))

    def estimates(rows: np.ndarray, factor: float) -> list[float] | str:
        try:
            sample = SurveySample.from_codes(w[rows] * factor, h[rows], c[rows])
            return [*four(survey_mean(y[rows], sample)), *four(survey_quantile(y[rows], sample, 0.4))]
        except NotComputable as error:
            return error.reason

    first, other = estimates(np.arange(n), 1.0), estimates(order, unit)
    assert first == other if isinstance(first, str) else other == pytest.approx(first, rel=1e-9, abs=1e-9)


def test_clusters_are_numbered_within_their_stratum() -> None:
    unique = SurveySample.from_codes(W, H, C + 10 * H)
    assert four(survey_mean(Y, unique)) == four(survey_mean(Y, SAMPLES["clusters"]))


def test_one_cluster_in_a_stratum_is_said_unless_it_is_all_of_it() -> None:
    lonely = np.where(H == 0, 0, C)
    with pytest.raises(NotComputable, match="1 stratum has a single cluster"):
        survey_mean(Y, SurveySample.from_codes(W, H, lonely))
    census = SurveySample.from_codes(W, H, lonely, np.where(H == 0, 1.0, N))
    assert survey_mean(Y, census).standard_error > 0


def test_a_census_has_no_sampling_error() -> None:
    found = survey_mean(Y, SurveySample.from_codes(W, H, C, np.full(60, 4.0)))
    assert found.standard_error == 0
    assert found.interval == (found.value, found.value)


def test_a_population_that_cannot_be_is_said() -> None:
    with pytest.raises(NotComputable, match="3 strata have more clusters in the sample than in the population"):
        SurveySample.from_codes(W, H, C, np.full(60, 3.0))
    with pytest.raises(NotComputable, match="in 3 strata records disagree"):
        SurveySample.from_codes(W, H, C, RECORD.astype(float) + 10)


def test_too_few_clusters_are_said() -> None:
    with pytest.raises(NotComputable, match="no more clusters than strata"):
        survey_mean(Y[:3], SurveySample.from_codes(W[:3], H[:3]))
    with pytest.raises(NotComputable, match="too few for 12 coefficients"):
        survey_linear_coefficients(np.vander(X / 13, 12), Y, SAMPLES["clusters"], ALL)
    with pytest.raises(NotComputable, match="too few records lie beyond"):
        survey_quantile(Y, SAMPLES["weights"], 0.999)


def test_values_and_weights_of_any_size_have_estimates() -> None:
    plain = four(survey_mean(Y, SAMPLES["clusters"]))
    for unit in (1e-200, 1e200):
        assert four(survey_mean(Y * unit, SurveySample.from_codes(W * 1e100, H, C))) == pytest.approx(
            [v * unit for v in plain]
        )


def draw_weighted_sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Values and weights of a sample of a population of mean 1 in which larger values are drawn more often."""
    y = rng.gamma(1.0, size=4000)
    chance = np.minimum(0.02 + 0.04 * y, 0.9)
    drawn = rng.random(4000) < chance
    return y[drawn], 1 / chance[drawn]


@pytest.mark.study
def test_weighted_intervals_cover_where_the_weights_tell_and_plain_ones_do_not() -> None:
    rng = np.random.default_rng(20)
    found = {"weighted": 0, "plain": 0, "quantile": 0}
    rounds = 2000
    for _ in range(rounds):
        y, w = draw_weighted_sample(rng)
        for name, interval, truth in (
            ("weighted", survey_mean(y, SurveySample.from_codes(w)).interval, 1.0),
            ("plain", mean_estimate(y).interval, 1.0),
            ("quantile", survey_quantile(y, SurveySample.from_codes(w), 0.5).interval, np.log(2.0)),
        ):
            found[name] += interval[0] <= truth <= interval[1]
    assert 0.935 < found["weighted"] / rounds < 0.965
    assert 0.935 < found["quantile"] / rounds < 0.975
    assert found["plain"] / rounds < 0.05


@pytest.mark.study
def test_intervals_that_know_the_clusters_cover_and_those_that_do_not_fall_short() -> None:
    rng = np.random.default_rng(21)
    rounds, found = 2000, {"clusters": 0, "records": 0}
    for _ in range(rounds):
        cluster = np.repeat(np.arange(12), 20)
        stratum = cluster // 6
        y = stratum + rng.normal(size=12)[cluster] + rng.normal(size=240)
        w = 1.0 + stratum
        for name, sample in (
            ("clusters", SurveySample.from_codes(w, stratum, cluster)),
            ("records", SurveySample.from_codes(w, stratum)),
        ):
            lower, upper = survey_mean(y, sample).interval
            found[name] += lower <= 2 / 3 <= upper
    assert 0.93 < found["clusters"] / rounds < 0.97
    assert found["records"] / rounds < 0.6


@pytest.mark.study
def test_combined_intervals_of_few_clusters_cover_and_those_of_many_degrees_fall_short() -> None:
    """Five releases draw the records of each cluster anew from a model of its mean (Reiter 2003, with 10 degrees of freedom)."""
    rng = np.random.default_rng(22)
    rounds, size, m, found = 2000, 20, 5, {"few": 0, "many": 0}
    cluster = np.repeat(np.arange(12), size)
    stratum = cluster // 6
    sample = SurveySample.from_codes(1.0 + stratum, stratum, cluster)
    release = ReleaseProvenance("synthetic", 12 * size, (12 * size,) * m, (), ("cluster",), has_survey_design=True)
    for _ in range(rounds):
        y = stratum + rng.normal(size=12)[cluster] + rng.normal(size=12 * size)
        own = np.bincount(cluster, y) / size
        estimates = []
        for _ in range(m):
            means = own + rng.normal(size=12) / np.sqrt(size)
            estimates.append(survey_mean(means[cluster] + rng.normal(size=12 * size), sample))
        values, variances = [one.value for one in estimates], [one.standard_error**2 for one in estimates]
        for name, degrees in (("few", estimates[0].degrees_of_freedom), ("many", np.inf)):
            lower, upper = combine_datasets(values, variances, release, degrees).interval()
            found[name] += lower <= 2 / 3 <= upper
    assert 0.94 < found["few"] / rounds < 0.975
    assert found["many"] / rounds < found["few"] / rounds - 0.015
