"""The strongest intruder against brute force, known answers and simulated releases (Reiter, Wang & Zhang §2-3)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run, gather_blocks, measure_block
from sfumato.engine.methods.results import WholeReleaseMeasure
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.risk.bayesian_posterior import (
    LogKernels,
    MeanUncertainty,
    _belief_estimates,
    _effective_draws,
    _StrongestIntruder,
)

Row = tuple[str, ...]


def recipe(
    names: Sequence[str] = ("a", "b"),
    levels: Sequence[str] = ("0", "1"),
    *,
    kept: Sequence[str] = (),
    m: int = 2,
    model: dict[str, Any] | None = None,
    **measure: Any,
) -> Recipe:
    step = {"method": "dirichlet_multinomial", "target": list(names), "concentration": 1.0, "predictors": list(kept)}
    return Recipe.from_table(
        {
            "title": "a table",
            "variables": {name: {"kind": "categorical", "levels": list(levels)} for name in (*kept, *names)},
            "release": {"m": m},
            "synthesis": [{**step, **(model or {})}],
            "measure": [{"method": "risk.bayesian_posterior", "guesses": "all", "blocks": 2, **measure}],
        }
    )


def table(of: Recipe, rows: Sequence[Row], origin: str = "confidential") -> Microdata:
    frame = pd.DataFrame(list(rows), columns=list(of.schema.names))
    return Microdata(of.schema, conform_to_schema(frame, of.schema).frame, origin)  # type: ignore[arg-type]


def weighed(of: Recipe, data: Microdata, releases: Sequence[Microdata]) -> WholeReleaseMeasure:
    parts = [measure_block(of, 0, block, data, releases, key=PUBLIC) for block in of.measures[0].spec.grid()]
    return gather_blocks(of, 0, data, releases, parts)[0]


def value(found: WholeReleaseMeasure, name: str, **params: Any) -> float:
    (only,) = [e.value for e in found.whole.estimates if e.measure == name and e.params == params]
    assert only is not None
    return only


def urn(release: Sequence[Row], data: Sequence[Row], kept: int, cells: int, a: Fraction) -> Fraction:
    """P(release | data): each record is drawn from the data's counts and those drawn before it, within what is kept."""
    probability, counts, totals = Fraction(1), Counter(data), Counter(row[:kept] for row in data)
    for row in release:
        probability *= (counts[row] + a) / (totals[row[:kept]] + a * cells)
        counts[row] += 1
        totals[row[:kept]] += 1
    return probability


def brute_force(
    data: Sequence[Row], releases: Sequence[Sequence[Row]], kept: int, levels: Sequence[str], a: Fraction, prior: str
) -> list[tuple[Fraction, Fraction]]:
    """The posterior of each record's truth and the share of it that is the most likely guess."""
    found = []
    for i, own in enumerate(data):
        others = [row for j, row in enumerate(data) if j != i]
        weights = {}
        for guess in product(levels, repeat=len(own) - kept):
            row = (*own[:kept], *guess)
            changed = [*data[:i], row, *data[i + 1 :]]
            cells = len(levels) ** (len(own) - kept)
            weight = math.prod((urn(z, changed, kept, cells, a) for z in releases), start=Fraction(1))
            if prior == "model":
                weight *= urn([row], others, kept, cells, a)
            elif prior == "marginal":
                weight *= sum(other[kept:] == guess for other in others) + Fraction(1, cells)
            weights[row] = weight
        most = max(weights.values())
        ties = sum(weight == most for weight in weights.values())
        right = Fraction(int(weights[own] == most), ties)
        found.append((weights[own] / sum(weights.values()), right))
    return found


rows_of = lambda wide, size: st.lists(st.tuples(*[st.sampled_from(["0", "1"])] * wide), min_size=size, max_size=size)  # noqa: E731


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    rows_of(3, 5),
    st.lists(rows_of(2, 5), min_size=1, max_size=2),
    st.sampled_from([Fraction(1), Fraction(1, 3), Fraction(1, 10_000)]),
    st.sampled_from(["uniform", "marginal", "model"]),
    st.sampled_from([0, 1]),
)
def test_every_posterior_is_the_sum_over_all_guesses(
    rows: list[Row], drawn: list[list[Row]], a: Fraction, prior: str, kept: int
) -> None:
    names = ("k", "a", "b")
    data = [row if kept else row[1:] for row in rows]
    releases = [
        [(*row[:kept], *own) for row, own in zip(rows, release, strict=True)] if kept else release for release in drawn
    ]
    of = recipe(names[1:], kept=names[:kept], m=len(releases), model={"concentration": float(a)}, prior=prior)
    found = weighed(of, table(of, data), [table(of, release, "synthetic") for release in releases])
    expected = brute_force(data, releases, kept, ("0", "1"), a, prior)
    assert found.whole.per_record["probability"] == pytest.approx([float(p) for p, _ in expected], rel=1e-9)
    assert value(found, "posterior_risk") == pytest.approx(float(sum(r for _, r in expected) / len(rows)), rel=1e-9)
    for release, alone in zip(releases, found.datasets, strict=True):
        single = brute_force(data, [release], kept, ("0", "1"), a, prior)
        assert alone.per_record["probability"] == pytest.approx([float(p) for p, _ in single], rel=1e-9)
        assert alone.estimates[0].value == pytest.approx(float(sum(r for _, r in single) / len(rows)), rel=1e-9)


def test_the_oracle_tells_a_wrong_model_apart() -> None:
    data, release = [("0", "0"), ("0", "1"), ("1", "1")], [("0", "0"), ("0", "0"), ("1", "1")]
    of = recipe(m=1, prior="uniform")
    found = weighed(of, table(of, data), [table(of, release, "synthetic")])
    wrong = brute_force(data, [release], 0, ("0", "1"), Fraction(1, 2), "uniform")
    assert found.whole.per_record["probability"] != pytest.approx([float(p) for p, _ in wrong], rel=1e-3)


def sixteen(rng: np.random.Generator, n: int = 200) -> list[Row]:
    cells = list(product("01", repeat=4))
    return [cells[k] for k in rng.choice(16, n, p=rng.dirichlet(np.ones(16)))]


def test_a_release_that_copies_the_data_gives_every_record_away() -> None:
    """Cells of a prior without weight: only what is in the data can be drawn, and its share is the share in the data."""
    data = [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")]
    of = recipe(m=40, prior="uniform", model={"concentration": 1e-4})
    found = weighed(of, table(of, data), [table(of, data, "synthetic")] * 40)
    assert value(found, "posterior_risk") == 1
    assert value(found, "nearly_certain") == 1


@pytest.mark.parametrize("prior", ["model", "marginal", "uniform"])
def test_a_release_that_knows_nothing_of_the_data_gives_nothing_away(prior: str) -> None:
    """With a prior as heavy as this the released records are drawn without the data."""
    rng = np.random.default_rng(3)
    of = recipe(("a", "b", "c", "d"), m=3, prior=prior, model={"concentration": 1e9})
    data = table(of, sixteen(rng))
    draws = execute_run(of, data, key=PUBLIC)
    risk, before = (next(r for r in draws.rows if r.measure == name) for name in ("posterior_risk", "prior_risk"))
    assert risk.baseline == before.value
    if prior != "uniform":
        assert risk.value == before.value
    mean = next(r for r in draws.rows if r.measure == "posterior_of_truth")
    assert mean.value == pytest.approx(mean.baseline, abs=1e-6)


def calibration(a: float, assumed: float, simulations: int = 40, n: int = 40) -> tuple[float, float]:
    """Over simulated data and releases: how often guesses are right, and how often they say that they are."""
    rng = np.random.default_rng(5)
    of = recipe(("a", "b", "c", "d"), m=2, model={"concentration": assumed})
    made = recipe(("a", "b", "c", "d"), m=2, model={"concentration": a})
    cells = list(product("01", repeat=4))
    right, said = [], []
    for _ in range(simulations):
        p = rng.dirichlet(np.full(16, a))
        data = table(of, [cells[k] for k in rng.choice(16, n, p=p)])
        counts = np.bincount(
            [int("".join(map(str, row)), 2) for row in data.frame.astype(str).to_numpy()], minlength=16
        )
        releases = [
            table(made, [cells[k] for k in rng.choice(16, n, p=rng.dirichlet(counts + a))], "synthetic")
            for _ in range(2)
        ]
        found = weighed(of, data, releases)
        top = found.guesses["top_probability"][:, 0]
        said.append(float(top.mean()))
        right.append(value(found, "posterior_risk"))
    return float(np.mean(right)), float(np.mean(said))


@pytest.mark.study
def test_of_guesses_given_probability_p_a_share_p_is_right() -> None:
    right, said = calibration(0.5, 0.5)
    assert right == pytest.approx(said, abs=0.02)


@pytest.mark.study
def test_an_intruder_with_a_wrong_model_is_not_calibrated() -> None:
    right, said = calibration(0.5, 0.02)
    assert abs(right - said) > 0.02


def test_records_in_any_order_and_blocks_of_any_number_say_the_same() -> None:
    rng = np.random.default_rng(7)
    of, other = (recipe(("a", "b", "c", "d"), m=2, blocks=blocks) for blocks in (1, 7))
    data = table(of, sixteen(rng))
    releases = [table(of, sixteen(rng), "synthetic") for _ in range(2)]
    places = rng.permutation(len(data))
    shuffled = Microdata(data.schema, data.frame.iloc[places].reset_index(drop=True))
    first, second = weighed(of, data, releases), weighed(other, shuffled, releases)
    assert second.whole.per_record["probability"] == pytest.approx(first.whole.per_record["probability"][places])
    assert [e.value for e in second.whole.estimates] == pytest.approx([e.value for e in first.whole.estimates])


@pytest.mark.slow
def test_stopping_early_changes_no_share_and_bounds_what_it_did_not_finish() -> None:
    rng = np.random.default_rng(8)
    names = ("a", "b", "c", "d", "e", "f", "g")
    of, screened = (recipe(names, m=3, **more) for more in ({}, {"stop_after": 2}))
    rows = [tuple("01"[bit] for bit in rng.integers(0, 2, 7)) for _ in range(150)]
    data = table(of, rows)
    releases = execute_run(of, data, key=PUBLIC).releases
    whole, early = weighed(of, data, releases), weighed(screened, data, releases)
    for name in ("posterior_risk", "prior_risk", "gained", "lost"):
        assert value(early, name) == pytest.approx(value(whole, name))
    assert (early.whole.per_record["probability"] >= whole.whole.per_record["probability"] - 1e-12).all()
    assert any("upper bound" in e.reason for e in early.whole.estimates)
    assert not any("upper bound" in e.reason for e in whole.whole.estimates)


@pytest.mark.slow
def test_an_intruder_who_lacks_more_learns_less() -> None:
    strongest, average = (
        recipe(("a", "b"), m=5, model={"concentration": 0.01}, prior="uniform", **more)
        for more in ({}, {"lacks": 20, "draws": 40, "blocks": 4})
    )
    rows = [("0", "0")] * 30 + [("1", "1")] * 29 + [("0", "1")]
    data = table(strongest, rows)
    releases = execute_run(strongest, data, key=PUBLIC).releases
    assert any((release.frame.to_numpy() == ["0", "1"]).all(axis=1).any() for release in releases)
    strong, weak = weighed(strongest, data, releases), weighed(average, data, releases)
    assert strong.whole.per_record["probability"][-1] > 0.95
    assert weak.whole.per_record["probability"][-1] < strong.whole.per_record["probability"][-1]
    assert value(weak, "effective_draws") > 1


def test_lacking_records_are_summed_over_as_brute_force_does() -> None:
    """Two unknown records; the other one can only be what the one known record is."""
    data: list[Row] = [("0", "0"), ("0", "1"), ("1", "1"), ("1", "1")]
    release: list[Row] = [("0", "0"), ("0", "1"), ("1", "1"), ("0", "1")]
    of = recipe(m=1, prior="uniform", lacks=2, draws=2, blocks=2, model={"concentration": 0.5})
    found = weighed(of, table(of, data), [table(of, release, "synthetic")])
    for block in ((0, 1), (2, 3)):
        outside = [i for i in range(4) if i not in block]
        fits = []
        for lacking in outside:
            known = [data[i] for i in outside if i != lacking]
            posteriors = []
            for target in block:
                weights = {
                    guess: sum(
                        urn(
                            release,
                            [guess if i == target else row if i == lacking else data[i] for i in range(4)],
                            0,
                            4,
                            Fraction(1, 2),
                        )
                        for row in known
                    )
                    for guess in product("01", repeat=2)
                }
                posteriors.append(float(weights[data[target]] / sum(weights.values())))
            fits.append(posteriors)
        own = found.whole.per_record["probability"][list(block)]
        assert min(np.abs(own - fit).max() for fit in fits) < 1e-9


def test_strata_bound_what_is_guessed() -> None:
    of = recipe(
        ("a", "b"), kept=("k",), m=1, guesses="observed", strata=["k"], prior="uniform", model={"predictors": []}
    )
    rows = [("0", "0", "0"), ("0", "0", "1"), ("1", "1", "1"), ("1", "1", "1")]
    data = table(of, rows)
    found = weighed(of, data, [table(of, rows, "synthetic")])
    assert found.whole.per_record["probability"][2:] == pytest.approx([1, 1])
    assert found.whole.per_record["probability"][0] < 1


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ({"strata": ["a"]}, r"measure\[0\].strata\[0\]: \"a\" is synthesised"),
        ({"groups": {"one": ["0"]}}, r"measure\[0\].groups: are groups of the values of by"),
        ({"guesses": "neighbours", "prior": "marginal"}, r"measure\[0\].prior: neighbours"),
    ],
)
def test_what_contradicts_is_refused(measure: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        recipe(**measure)


def test_too_many_guesses_are_said_and_not_computed() -> None:
    of = recipe(("a", "b", "c", "d"), m=1, largest=10)
    data = table(of, sixteen(np.random.default_rng(1)))
    found = weighed(of, data, [data])
    assert all(e.value is None and "16 guesses" in e.reason for e in found.whole.estimates)


@pytest.mark.parametrize(
    ("measure", "found"),
    [({"largest": 15}, 16), ({"largest": 15, "guesses": "all"}, 16), ({"largest": 4, "guesses": "neighbours"}, 5)],
)
def test_too_many_guesses_are_refused_before_the_run_with_the_place_and_what_to_do(
    measure: dict[str, Any], found: int
) -> None:
    of = recipe(("a", "b", "c", "d"), m=1, **measure)
    data = table(of, sixteen(np.random.default_rng(1)))
    with pytest.raises(BadInput) as refused:
        check_steps(of, data)
    assert refused.value.place == "measure[0].guesses"
    said = refused.value.message
    assert f"{found} guesses, more than {measure['largest']}" in said
    for name in ("guesses", "points", "strata", "largest"):  # what it says to change are settings that there are
        assert name in said
        assert name in {info.name for info in of.measures[0].spec.params()}
    check_steps(recipe(("a", "b", "c", "d"), m=1, **{**measure, "largest": found}), data)


def test_shares_by_groups_make_those_of_all() -> None:
    of = recipe(("a", "b"), ("0", "1", "2"), m=2, by="a", groups={"low": ["0", "1"]})
    rng = np.random.default_rng(3)
    data = table(of, [tuple("012"[k] for k in rng.integers(0, 3, 2)) for _ in range(60)])
    found = weighed(of, data, execute_run(of, data, key=PUBLIC).releases)
    low = float(np.mean(data.frame["a"].astype(str) != "2"))
    parts = [value(found, "posterior_risk", a=group) for group in ("low", "others")]
    assert low * parts[0] + (1 - low) * parts[1] == pytest.approx(value(found, "posterior_risk"))
    firsts = [value(found, "posterior_risk_of_first", a=group, datasets=2) for group in ("low", "others")]
    assert firsts == pytest.approx(parts)
    alone = {str(e.params): e.value for e in found.datasets[0].estimates if e.measure == "posterior_risk"}
    assert set(alone) == {"{}", "{'a': 'low'}", "{'a': 'others'}"}


def test_every_record_is_guessed_right_before_or_after_or_both_or_never() -> None:
    of = recipe(m=2)
    rng = np.random.default_rng(6)
    cells = list(product("01", repeat=2))
    data = table(of, [cells[k] for k in rng.choice(4, 50, p=[0.5, 0.3, 0.15, 0.05])])
    found = weighed(of, data, execute_run(of, data, key=PUBLIC).releases)
    both, gained, lost, neither = (value(found, name) for name in ("right_both", "gained", "lost", "wrong_both"))
    assert min(both, gained, lost, neither) >= 0
    assert both + gained + lost + neither == pytest.approx(50)
    assert both + gained == pytest.approx(50 * value(found, "posterior_risk"))
    assert both + lost == pytest.approx(50 * value(found, "prior_risk"))


@pytest.mark.parametrize("leaders", [1, 2, 5])
def test_the_likeliest_guesses_beside_the_truth_are_weighed_exactly_where_a_model_only_steps(leaders: int) -> None:
    """Two records with four guesses each, of two datasets; a guess that is far less likely than the best stays as it is."""
    steps = np.log([[[2.0, 3], [8, 5], [4, 4], [1e-9, 1]], [[5, 5], [1, 2], [3, 2], [2, 1]]])
    prior, truth = np.log([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]), np.array([0, 1])
    by_dataset, together = prior[..., None] + steps, prior[..., None] + steps.cumsum(axis=2)
    exact = steps + np.log(1.1)
    model: Any = SimpleNamespace(
        approximate=True, refined_log_likelihoods=lambda asked: exact[asked[0][:, None], asked[1]]
    )
    opened: Any = SimpleNamespace(truth=truth, select=lambda rows, columns: SimpleNamespace(guesses=(rows, columns)))
    kernels = LogKernels(prior, by_dataset, together, np.ones(2), np.zeros(2, dtype=np.bool_))

    def refined(*models: tuple[Any, ...]) -> LogKernels:
        intruder: Any = SimpleNamespace(models=models, spec=SimpleNamespace(leaders=leaders))
        return _StrongestIntruder.refine_leading_guesses(intruder, opened, kernels)

    likeliest = [[1, 2], [0, 2, 3]]  # by the product of prior and both likelihoods, without the truth
    found = refined((model,))
    for record, order in enumerate(likeliest):
        for guess in range(4):
            own = exact if guess in order[:leaders] else steps
            assert found.by_dataset[record, guess] == pytest.approx(prior[record, guess] + own[record, guess])
            assert found.by_first_datasets[record, guess] == pytest.approx(
                prior[record, guess] + own[record, guess].cumsum()
            )
    assert refined((model,), (model,)) is kernels, "of many draws of the other records none is weighed anew"
    assert refined((SimpleNamespace(approximate=False),)) is kernels


@pytest.mark.parametrize(
    ("prior", "outranked"), [("model", [True, False, False, False]), ("uniform", [True, False, True, False])]
)
def test_a_truth_is_outranked_if_two_guesses_are_likelier_by_each_dataset_and_before_it(
    prior: str, outranked: list[bool]
) -> None:
    """Four records with three guesses, the truth first: by all, by the first dataset alone, not by the prior, by none."""
    above, below = [0.0, 1.0, 2.0], [3.0, 1.0, 2.0]
    first, second = np.array([above, above, above, below]), np.array([above, below, above, below])
    before = np.array([above, above, below, above])
    datasets = np.stack([first, second], axis=2)
    kernels = LogKernels(before, datasets, datasets, np.ones(4), np.zeros(4, dtype=np.bool_))
    for least, expected in ((2, outranked), (3, [False] * 4), (None, [False] * 4)):
        intruder: Any = SimpleNamespace(spec=SimpleNamespace(prior=prior, stop_after=least))
        assert _StrongestIntruder._is_truth_outranked(intruder, kernels).tolist() == expected


def test_the_ratio_of_risks_is_the_geometric_mean_over_those_who_are_guessed_and_the_largest_that_of_all() -> None:
    found: Any = SimpleNamespace(
        chance_right=np.array([1.0, 0.0, 0.5]),
        prior_chance_right=np.array([0.0, 0.0, 1.0]),
        probability=np.array([0.8, 0.5, 0.9]),
        prior=np.array([0.2, 0.05, 0.3]),
    )
    estimates = {one.measure: one for one in _belief_estimates(found, MeanUncertainty(False, None), "", {})}
    values = {name: one.value for name, one in estimates.items()}
    assert values["risk_ratio"] == pytest.approx(math.sqrt((0.8 / 0.2) * (0.9 / 0.3)))
    assert values["largest_risk_ratio"] == pytest.approx(0.5 / 0.05)
    assert (values["right_both"], values["gained"], values["lost"], values["wrong_both"]) == (0.5, 1, 0.5, 1)
    assert all(one.lower == one.value == one.upper for one in estimates.values()), "of all records nothing is uncertain"
    found.chance_right = np.zeros(3)
    (none,) = (
        one for one in _belief_estimates(found, MeanUncertainty(False, None), "", {}) if one.measure == "risk_ratio"
    )
    assert none.value is None


def test_numbers_are_guessed_on_a_grid() -> None:
    rng = np.random.default_rng(4)
    of = Recipe.from_table(
        {
            "title": "numbers",
            "variables": {
                "age": {"kind": "count", "bounds": [0, 99]},
                "pay": {"kind": "continuous", "bounds": [0, 100]},
            },
            "release": {"m": 5},
            "synthesis": [
                {
                    "method": "dirichlet_multinomial",
                    "target": ["age", "pay"],
                    "concentration": 0.001,
                    "bins": {"age": "width 5", "pay": "width 10"},
                }
            ],
            "measure": [{"method": "risk.bayesian_posterior", "prior": "uniform", "points": 40, "blocks": 2}],
        }
    )
    age = rng.integers(0, 100, 300)
    data = conform_to_schema(pd.DataFrame({"age": age, "pay": np.clip(age + rng.normal(0, 5, 300), 0, 100)}), of.schema)
    rows = execute_run(of, data, key=PUBLIC).rows
    found = {(r.measure, r.target): r for r in rows if r.draw is None and r.method == "bayesian_posterior"}
    for name in ("age", "pay"):
        row = found["expected_difference", name]
        assert row.value is not None
        assert row.baseline is not None
        assert row.value < row.baseline


def test_each_dataset_alone_has_its_own_candidates() -> None:
    """Two datasets of which each points elsewhere: what is as likely by one is not what is as likely by both."""
    data = [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")] * 3
    drawn = [[("0", "0")] * 12, [("1", "1")] * 12]
    of = recipe(m=2, prior="uniform")
    found = weighed(of, table(of, data), [table(of, release, "synthetic") for release in drawn])
    levels = ("0", "1")
    for release, alone in zip(drawn, found.datasets, strict=True):
        for i, own in enumerate(data):
            weights = {}
            for guess in product(levels, repeat=2):
                weights[guess] = urn(release, [*data[:i], guess, *data[i + 1 :]], 0, 4, Fraction(1))
            assert alone.per_record["candidates"][i] == sum(weight >= weights[own] for weight in weights.values())
    both = found.whole.per_record["candidates"]
    assert not np.array_equal(both, found.datasets[0].per_record["candidates"])
    risk = next(e.value for e in found.datasets[0].estimates if e.measure == "posterior_risk")
    assert value(found, "posterior_risk_of_first", datasets=1) == pytest.approx(risk)
    assert value(found, "posterior_risk_of_first", datasets=2) == value(found, "posterior_risk")


@pytest.mark.parametrize(("heavy", "said"), [(0.4, True), (0.5, True), (0.6, False)])
def test_nothing_is_said_where_draws_bear_too_little(heavy: float, said: bool) -> None:
    of = recipe(m=1)
    data = table(of, [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")] * 5)
    parts = [dict(measure_block(of, 0, block, data, [data], key=PUBLIC)) for block in (0, 1)]
    for part in parts:
        part["heavy"] = np.arange(10) < heavy * 10
    rows = gather_blocks(of, 0, data, [data], parts)[1]
    assert any(row.value is not None for row in rows) == said
    assert all(
        str(round(heavy * 20)) in row.reason for row in rows if row.measure == "posterior_risk" and row.draw is None
    )


def test_draws_of_lacking_records_count_by_the_evenness_of_their_weights() -> None:
    """Kish's number at the truth under the last dataset: all of equal ones, one where one bears everything."""
    rng = np.random.default_rng(3)
    draws = [rng.normal(size=(5, 4, 3)) for _ in range(6)]
    truth = np.array([0, 3, 1, 2, 0])
    found = _effective_draws(draws, truth)
    for record, own in enumerate(truth.tolist()):
        weights = [math.exp(one[record, own, -1]) for one in draws]
        assert found[record] == pytest.approx(sum(weights) ** 2 / sum(w * w for w in weights))
    assert _effective_draws([draws[0]] * 6, truth) == pytest.approx(6)
    assert _effective_draws([draws[0], draws[0] - 100], truth) == pytest.approx(1)
    assert _effective_draws(draws[:1], truth).tolist() == [1] * 5
