"""Figures of utility leave not at all, from rounded counts, or with noise: what an intruder who knows all other people is left with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ecdf_of_arrays import ecdf_difference
from prepared_tables import variables_of
from prepared_workspaces import run_recipe
from public_figures import agreement, drawn_tables, exact_figure

import sfumato.workspace.gate.public_figures as checks
import sfumato.workspace.gate.public_figures as module
from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.methods.outputs import FigureOfCounts
from sfumato.engine.methods.privacy import PrivacyAccount, sum_accounts
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.budget import check_budget, privacy_accounts
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.utility.ecdf import largest_gap
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Finding, examine_release
from sfumato.workspace.gate.public_figures import (
    _paid_figures,
    count_cells_of_both,
    draw_discrete_laplace,
    has_paid_noise,
)
from sfumato.workspace.policy.disclosure import DisclosureRules, PublicFigure
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

AGES = 72
PLAIN: dict[str, Any] = {
    "variables": variables_of("region: categorical quasi_identifier", "age: count sensitive"),
    "synthesis": [{"target": "age", "method": "linear_regression", "predictors": ["region"]}],
    "measure": [{"method": "utility.ecdf"}],
    "release": {"m": 2, "seed": 3},
}
PRIVATE: dict[str, Any] = {
    "variables": {
        "region": {"kind": "categorical", "levels": ["north", "south"]},
        "age": {"kind": "count", "bounds": [18, 89]},
    },
    "synthesis": [
        {"method": "perturbed_gibbs", "target": ["region", "age"], "epsilon": 0.01, "bins": {"age": "width 12"}}
    ],
    "measure": [{"method": "utility.ecdf"}],
    "release": {"m": 1, "seed": 3, "records": 10},
}
PAID = {"public_figures": "paid", "public_figures_epsilon": 0.5}


def recipe_of(table: dict[str, Any], **form: Any) -> Recipe:
    return Recipe.from_table({**table, "release": {**table["release"], **form}})


def people(count: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(8)
    return pd.DataFrame({"region": rng.choice(["north", "south"], count), "age": rng.integers(18, 18 + AGES, count)})


def run_of(workspace: Workspace, recipe: Recipe) -> int:
    return run_recipe(workspace, recipe, people(), "people.csv", b"people")


def finding_of(workspace: Workspace, run_id: int) -> Finding:
    found = examine_release(workspace, plan_release(workspace, run_id), Policy()).findings
    return next(one for one in found if one.check == "public_figures")


def rounded_or_paid(workspace: Workspace, kind: str) -> int:
    return run_of(
        workspace, recipe_of(PLAIN, public_figures="rounded") if kind == "rounded" else recipe_of(PRIVATE, **PAID)
    )


def written_figures(folder: Path) -> pd.DataFrame | None:
    path = folder / "public" / "utility.csv"
    return pd.read_csv(path) if path.exists() else None


@pytest.mark.parametrize(
    ("table", "form", "words"),
    [
        (PRIVATE, {"public_figures": "rounded"}, "rounding is no noise"),
        (PLAIN, PAID, "no step keeps a privacy account"),
        (PRIVATE, {"public_figures": "paid"}, "need an epsilon"),
        (PLAIN, {"public_figures": "rounded", "public_figures_epsilon": 1.0}, "only paid figures"),
        (PLAIN, {"public_figures": "exact"}, "internal"),
    ],
)
def test_figures_that_nothing_protects_are_refused(table: dict[str, Any], form: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words) as error:
        recipe_of(table, **form)
    assert error.value.place.startswith("release.public_figures")


def test_the_default_is_written_nowhere_and_the_others_are_read_again() -> None:
    assert "public_figures" not in recipe_of(PLAIN).to_table()["release"]
    for table, form in ((PLAIN, {"public_figures": "rounded"}), (PRIVATE, PAID)):
        recipe = recipe_of(table, **form)
        assert Recipe.from_table(recipe.to_table()) == recipe


def test_the_account_and_the_budget_have_the_paid_figures() -> None:
    bare, paid = (recipe_of(PRIVATE, **form) for form in ({}, PAID))
    data = conform_to_schema(people(), bare.schema)
    costs = []
    for recipe in (bare, paid):
        accounts = [own for _, own in privacy_accounts(recipe, data, secret=True)]
        assert all(isinstance(own, PrivacyAccount) for own in accounts)
        whole = sum_accounts([own for own in accounts if isinstance(own, PrivacyAccount)])
        costs.append((whole.release, whole.substitution, whole.noise))
    (release_bare, change_bare, noise_bare), (release_paid, change_paid, noise_paid) = costs
    assert release_bare is not None
    assert change_bare is not None
    assert release_paid == pytest.approx(release_bare + 0.5)
    assert change_paid == pytest.approx(change_bare + 1.0)
    assert noise_paid == noise_bare, "the noise of the datasets is as it was"
    check_budget(recipe_of(PRIVATE, **PAID, epsilon=release_bare + 0.5), data)
    with pytest.raises(BadInput, match="would cost"):
        check_budget(recipe_of(PRIVATE, **PAID, epsilon=release_bare + 0.4), data)


@pytest.mark.slow
def test_no_figure_leaves_unless_the_recipe_asks_for_it(workspace: Workspace, tmp_path: Path) -> None:
    for at, table in enumerate((PLAIN, PRIVATE)):
        run_id = run_of(workspace, recipe_of(table))
        out = tmp_path / str(at)
        write_run_release(workspace, run_id, out, reason="a release of people who do not exist")
        assert written_figures(out) is None
        exact = [
            row.value
            for row in read_result_rows(workspace, run_id)
            if row.family == "utility" and row.value is not None
        ]
        assert exact
        page = (out / "public" / "using-these-data.html").read_text("utf-8")
        assert "figures do not leave" in page
        assert not [one for one in exact if f"{one:.3g}" in page]
        assert "max_abs_difference" in (out / "internal" / "results.json").read_text("utf-8")
        assert finding_of(workspace, run_id).status == "pass"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rounded", "paid"])
def test_protected_figures_leave_and_measured_ones_do_not(workspace: Workspace, tmp_path: Path, kind: str) -> None:
    run_id = rounded_or_paid(workspace, kind)
    found = finding_of(workspace, run_id)
    assert (found.status, found.value) == ("pass", 0)
    write_run_release(workspace, run_id, tmp_path / "out", reason="a release of people who do not exist")
    written = written_figures(tmp_path / "out")
    assert written is not None
    assert written["measure"].tolist() == ["utility.ecdf.max_abs_difference"]
    assert written[["lower", "upper", "baseline"]].isna().all().all()
    (measured,) = (
        row for row in read_result_rows(workspace, run_id) if row.draw is None and row.measure == "max_abs_difference"
    )
    assert written["value"][0] != float(f"{measured.value:.2e}")
    assert abs(written["value"][0] - (measured.value or 0.0)) < (0.02 if kind == "rounded" else 0.2)
    page = (tmp_path / "out/public/using-these-data.html").read_text("utf-8")
    assert ("random noise" if kind == "paid" else "rounded counts") in page


def exact_too(
    figures: Callable[..., tuple[PublicFigure, ...]], checked: bool
) -> Callable[..., tuple[PublicFigure, ...]]:
    """The list of public figures with a measured one again, as earlier versions had it; ``checked``: with the protected numbers of another."""

    def add_bare_figure(plan: Any, rules: Any, rows: Any, *more: Any) -> tuple[PublicFigure, ...]:
        protected = figures(plan, rules, rows, *more)
        row = next(one for one in rows if one.measure == "max_abs_difference" and one.draw is None)
        bare = replace(row, value=rules.round_number(row.value), lower=None, upper=None, baseline=None, reason="")
        return (*protected, replace(protected[0], row=bare) if checked else PublicFigure(bare))

    return add_bare_figure


@pytest.mark.slow
@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("kind", ["rounded", "paid"])
def test_the_gate_blocks_a_measured_figure_that_somebody_adds_again(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, kind: str, checked: bool
) -> None:
    run_id = rounded_or_paid(workspace, kind)
    monkeypatch.setattr(checks, "public_figures", exact_too(checks.public_figures, checked))
    found = finding_of(workspace, run_id)
    assert found.status == "block"
    assert not found.waivable
    assert "utility.ecdf.max_abs_difference age" in found.message


@pytest.mark.slow
def test_the_gate_blocks_rounded_figures_beside_a_privacy_account(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = run_of(workspace, recipe_of(PRIVATE, **PAID))

    def rounded(plan: Any, rules: Any, rows: Any, confidential: Any, released: Any, *more: Any) -> Any:
        candidates = module._publishable_outputs(plan, rows)
        return tuple(module._rounded_figure(*one, plan, rules, confidential, released) for one in candidates)

    monkeypatch.setattr(checks, "public_figures", rounded)
    assert finding_of(workspace, run_id).status == "block"


@pytest.mark.slow
@pytest.mark.parametrize("levels", [2, 4])
def test_several_tables_on_both_sides_agree_with_every_rounded_figure(levels: int) -> None:
    """By enumeration, the number of records known; ``tests/benchmarks/public_figures.py`` tries 500 tables of each kind."""
    found = [agreement(*one) for one in drawn_tables(levels, 12, seed=40 + levels)]
    assert None not in found
    for one in found:
        assert one is not None
        assert one.tables >= 3
        assert one.counts >= 3
        assert one.sides
        assert one.other_totals is None or one.other_totals >= 3


@pytest.mark.slow
def test_an_exact_figure_leaves_a_single_table() -> None:
    """The negative control: three digits of the exact gap give the count of one of two levels away."""
    own, released = np.array([131.0, 69.0]), np.array([140.0, 60.0])
    shown = exact_figure(own, released)
    agreeing = [one for one in range(201) if exact_figure(np.array([one, 200.0 - one]), released) == shown]
    assert agreeing == [131, 149]


def test_the_gap_of_counts_is_that_of_values() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        ours, theirs = rng.integers(0, 9, 40).astype(float), rng.integers(0, 9, 30).astype(float)
        counts = [np.bincount(one.astype(int), minlength=9).astype(float) for one in (ours, theirs)]
        assert largest_gap(counts[0], counts[1]) == pytest.approx(ecdf_difference(ours, theirs).max_abs)


def test_records_without_a_value_are_a_cell_of_their_own() -> None:
    schema = Schema((Variable("age", Kind.CONTINUOUS, may_be_missing=True),))
    ours, theirs = (
        conform_to_schema(pd.DataFrame({"age": values}), schema, MissingPolicy.KEEP)
        for values in ([1.0, 2.0, 2.5, 9.0, np.nan, np.nan], [2.0, 2.0, 5.0, np.nan])
    )
    here, there = count_cells_of_both(ours, theirs, "age", may_lack=True)
    assert here.tolist() == [1, 1, 1, 0, 1, 2], "below 2, at 2, between, at 5, above, missing"
    assert there.tolist() == [0, 2, 0, 1, 0, 1]


@pytest.mark.parametrize("later", [(1, 4), (1, 3), (1, 2), (2, 5)])
def test_a_paid_figure_without_noise_is_the_mean_gap_in_whole_records_and_a_half_goes_up(
    later: tuple[int, int],
) -> None:
    """Of an epsilon this large no noise is left. The gaps of two datasets are counted, so that their mean is exact."""
    recipe = recipe_of(PRIVATE, **PAID)
    data = conform_to_schema(people(), recipe.schema)
    older = people()["age"].to_numpy()[:, None] + later
    released = [conform_to_schema(people().assign(age=ages.clip(max=89)), recipe.schema) for ages in older.T]
    plan = SimpleNamespace(run=SimpleNamespace(recipe=recipe), tables=("one", "two"), datasets=2)
    row = Row("utility", "utility.ecdf", "max_abs", "age", "synthetic", None, None, 0.1)
    payable = [(row, FigureOfCounts(largest_gap, sensitivity=1))]
    (found,) = _paid_figures(payable, plan, DisclosureRules(), data, lambda place, _: released[place], b"key", 1e6)  # type: ignore[arg-type]
    ours, theirs = data.numbers("age"), [one.numbers("age") for one in released]
    gaps = [max(abs(int(np.sum(ours <= age)) - int(np.sum(one <= age))) for age in range(18, 90)) for one in theirs]
    assert found.noisy == ((sum(gaps) + 1) // 2, 600)
    assert found.row.value == pytest.approx(found.noisy[0] / 600, abs=5e-4)


def test_one_record_changes_a_gap_in_records_by_at_most_one() -> None:
    """The declared sensitivity, by every record that can be added to tables of five cells."""
    rng = np.random.default_rng(4)
    largest = 0.0
    for _ in range(400):
        own, released = rng.multinomial(rng.integers(1, 40), rng.dirichlet(np.ones(5)), 2).astype(float)
        before = own.sum() * largest_gap(own, released)
        for cell in range(5):
            more = own + np.eye(5)[cell]
            largest = max(largest, abs(more.sum() * largest_gap(more, released) - before))
    assert 0.9 < largest <= 1 + 1e-9


def test_an_intruder_who_knows_the_other_people_is_left_with_every_age_where_figures_are_paid() -> None:
    """The likelihood ratio of any two ages, of every gap that may be printed, by the exact distribution of the noise.

    599 people are known and the age of one is not. The gap of each age is rounded to whole records; a changed record changes it by two at most.
    Of the exact figure to three digits few ages are left: the negative control.
    """
    rng = np.random.default_rng(11)
    known = rng.integers(0, AGES, 599)
    released = np.bincount(rng.integers(0, AGES, 600), minlength=AGES).astype(float)
    tables = [np.bincount([*known, age], minlength=AGES).astype(float) for age in range(AGES)]
    exact = [largest_gap(one, released) for one in tables]
    gaps = np.array([math.floor(600 * one + 0.5) for one in exact])
    each = 0.5 / 2
    outcomes = np.arange(-200, 400)
    probabilities = np.tanh(each / 2) * np.exp(-each * np.abs(outcomes[:, None] - gaps))
    assert (probabilities > 0).all()
    assert (probabilities.max(axis=1) / probabilities.min(axis=1)).max() <= math.exp(2 * each) * (1 + 1e-9)
    mean_squares = [float(f"{_mean_square(one, released):.2e}") for one in tables]
    left = [sum(one == other for other in mean_squares) for one in mean_squares]
    assert np.mean(left) < AGES / 2, "what the exact figure of earlier versions leaves on average"


def _mean_square(own: np.ndarray, released: np.ndarray) -> float:
    values = [np.repeat(np.arange(AGES), counts.astype(int)).astype(float) for counts in (own, released)]
    return ecdf_difference(values[0], values[1]).mean_squared


def test_the_noise_has_the_distribution_that_pays() -> None:
    """Neighbouring values differ in probability by exp(1 / scale), and a share tanh(1 / (2 scale)) is 0."""
    rng, scale = np.random.default_rng(5), 3.0
    drawn = np.array([draw_discrete_laplace(scale, rng) for _ in range(40_000)])
    expected = math.tanh(0.5 / scale) * np.exp(-np.abs(np.arange(-6, 7)) / scale)
    shares = np.array([np.mean(drawn == one) for one in range(-6, 7)])
    assert np.abs(shares - expected).max() < 5 * math.sqrt(0.17 * 0.83 / 40_000)


def test_a_figure_without_an_epsilon_or_with_more_than_its_value_is_not_paid_for() -> None:
    row, rules = Row("utility", "utility.ecdf", "gap", "age", "synthetic", None, None, 0.123), DisclosureRules()
    figure = PublicFigure(row, noisy=(37, 300), epsilon=1e-9)
    assert has_paid_noise(figure, rules), "37 of 300 to three digits"
    for other in (
        replace(figure, epsilon=0.0),
        replace(figure, noisy=None),
        replace(figure, noisy=(38, 300)),
        *(replace(figure, row=replace(row, **{name: 0.1})) for name in ("lower", "upper", "baseline")),
        replace(figure, row=replace(row, reason="of 300 records")),
    ):
        assert not has_paid_noise(other, rules)
