"""Units drawn in two stages from noisy tables: what one unit can change is compared with what is claimed, and what comes back with the data.

All files of a tiny domain are enumerated; neighbours differ in one unit. Without the cut, or without ``place`` in the tables, the
claim does not hold.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import draw_dataset, fit_model, fit_rows
from sfumato.engine.margins.domain import Clique, Domain
from sfumato.engine.margins.zcdp import epsilon_of_choice, epsilon_of_rho, largest_rho
from sfumato.engine.methods.privacy import PrivacyAccount, sum_accounts
from sfumato.engine.methods.results import Fit
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.budget import privacy_accounts, privacy_cost_text
from sfumato.engine.recipe.checks import check_steps
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.synthesis import margins
from sfumato.engine.synthesis.margins import TargetTable, draw_codes_given

KEY = bytes(range(32))
YES_NO = ["0", "1"]
MOST = 2
"""The bound of the tiny domain; its units have up to one record more."""

Unit = tuple[str, tuple[str, ...]]
"""The variable of a unit, and that of each of its records."""
UNITS: list[Unit] = [
    (of, records) for of in YES_NO for size in range(1, MOST + 2) for records in itertools.product(YES_NO, repeat=size)
]
Counts = dict[tuple[int, Clique], np.ndarray]
"""Exact counts by the number of the table, from 0, and its variables."""


def tiny_plan(
    predictors: tuple[str, ...] = ("u", "size", "previous(a)", 'count(a = "1")', "size - place"), **release: Any
) -> Recipe:
    noisy = {"method": "margins", "epsilon": 1.0, "selection": "pairs"}
    return Recipe.from_table(
        {
            "data": {"largest_unit": MOST, "order": "line"},
            "variables": {
                "home": {"kind": "count", "role": "unit"},
                "u": {"kind": "binary", "levels": YES_NO, "level": "unit"},
                "a": {"kind": "binary", "levels": YES_NO},
                "line": {"kind": "count", "bounds": [1, 9]},
            },
            "synthesis": [
                {**noisy, "target": ["u", "size"]},
                {
                    **noisy,
                    "target": ["a", "line"],
                    "predictors": list(predictors),
                    "bins": {"line": "at 5"},
                },
            ],
            "release": {"m": 1, "seed": 1, "units": "drawn", "number_of_units": 9, **release},
        }
    )


def tiny_file(recipe: Recipe, units: tuple[Unit, ...]) -> Microdata:
    rows = [
        (float(home), of, record, float(at))
        for home, (of, records) in enumerate(units)
        for at, record in enumerate(records, 1)
    ]
    return conform_to_schema(pd.DataFrame(rows, columns=["home", "u", "a", "line"]), recipe.schema)


def counts_of(recipe: Recipe, item: int, data: Microdata, monkeypatch: pytest.MonkeyPatch) -> Counts:
    """The exact counts that step ``item`` measures of a file: what it adds its noise to."""
    found: Counts = {}
    tables = itertools.count()

    def capture(table: TargetTable, codes: np.ndarray, *_: Any) -> tuple[dict[str, Any], list[Any]]:
        number = next(tables)
        for size in (1, 2):
            for clique in itertools.combinations(range(len(table.domain)), size):
                found[number, clique] = table.domain.count_records(codes, clique)
        return {}, []

    with monkeypatch.context() as patched:
        patched.setattr(margins, "_measure_table", capture)
        fit_model(recipe, item, data, key=KEY)
    return found


def neighbours() -> Iterator[tuple[tuple[Unit, ...], tuple[Unit, ...]]]:
    """Every unit with another one, and that one alone."""
    for other in UNITS[:: len(UNITS) // 4]:
        for unit in UNITS:
            yield (other, unit), (other,)


def differences(recipe: Recipe, item: int, monkeypatch: pytest.MonkeyPatch) -> list[Counts]:
    """What one unit more changes in each table, over all files."""
    known: dict[tuple[Unit, ...], Counts] = {}

    def counts(units: tuple[Unit, ...]) -> Counts:
        if units not in known:
            known[units] = counts_of(recipe, item, tiny_file(recipe, units), monkeypatch)
        return known[units]

    return [{of: own - counts(less)[of] for of, own in counts(more).items()} for more, less in neighbours()]


def sigmas_of(recipe: Recipe, item: int, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[int, Clique], float]:
    """The standard deviations of the noise in each table, by what a fit says."""
    with monkeypatch.context() as patched:
        patched.setattr(margins, "SOFT_STEPS", 1)
        arrays = fit_model(recipe, item, tiny_file(recipe, tuple(UNITS) * 20), key=KEY).arrays
    found = {}
    for name, own in arrays.items():
        place, _, clique = name.rpartition("sigma/")
        if "sigma/" in name:
            number = int(place.strip("/") or 1) - 1
            found[number, tuple(map(int, clique.split(".")))] = float(own[0])
    return found


def worst_cost(changes: list[Counts], sigmas: dict[tuple[int, Clique], float]) -> float:
    """The largest cost in rho: Gaussian noise costs |difference|^2 / (2 sigma^2) at every order."""
    return max(sum(float((own**2).sum()) / (2 * sigmas[of] ** 2) for of, own in one.items()) for one in changes)


def accounts_of(recipe: Recipe, data: Microdata) -> list[PrivacyAccount]:
    found = [one for _, one in privacy_accounts(recipe, data, secret=True)]
    assert all(isinstance(one, PrivacyAccount) for one in found)
    return [one for one in found if isinstance(one, PrivacyAccount)]


def rho_of(recipe: Recipe, item: int) -> float:
    cost = accounts_of(recipe, tiny_file(recipe, (UNITS[0],)))[item].concentrated
    assert cost is not None
    return cost.rho


def without_places(recipe: Recipe) -> Recipe:
    """The recipe whose second step counts the records of all places in one table."""
    first, second = recipe.synthesis
    assert second.table is not None
    table = replace(second.table, schema=replace(second.table.schema, place=""))
    spec = replace(second.spec, predictors=())
    return replace(
        recipe, synthesis=(first, replace(second, table=table, spec=spec, targets=("u", "size", *second.targets)))
    )


@pytest.mark.slow
@pytest.mark.parametrize("item", [0, 1])
def test_no_unit_costs_more_than_is_claimed_of_noisy_tables(item: int, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = tiny_plan()
    claimed, sigmas = rho_of(recipe, item), sigmas_of(recipe, item, monkeypatch)
    assert claimed == pytest.approx(largest_rho(1.0, 1e-9))
    assert {number for number, _ in sigmas} == set(range(MOST if item else 1))
    found = worst_cost(differences(recipe, item, monkeypatch), sigmas)
    print(f"stage {item + 1}: claimed rho {claimed:.6f}, worst of all files {found:.6f}")
    assert found == pytest.approx(claimed), "a unit as large as the bound has the whole cost"


@pytest.mark.slow
def test_without_the_cut_or_without_the_place_the_claim_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = tiny_plan(("u", "size"))
    claimed, sigmas = rho_of(recipe, 1), sigmas_of(recipe, 1, monkeypatch)
    with monkeypatch.context() as patched:
        patched.setattr(Microdata, "limit_units", lambda data, rng: data)
        uncut = worst_cost(differences(recipe, 1, monkeypatch), sigmas)
    pooled = worst_cost(differences(without_places(recipe), 1, monkeypatch), sigmas)
    print(f"claimed {claimed:.6f}, without the cut {uncut:.6f}, without places {pooled:.6f}")
    assert uncut > 1.5 * claimed
    assert pooled == pytest.approx(MOST * claimed)


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    return float(np.log((p**order * q ** (1 - order)).sum()) / (order - 1))


@pytest.mark.slow
def test_no_unit_costs_more_than_is_claimed_of_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one choice a place among its tables, by their distance from even ones: the divergence at every order over all files."""
    recipe, part = tiny_plan(("u", "size")), 0.02
    epsilon = epsilon_of_choice(part / MOST)

    def chances(counts: Counts) -> list[np.ndarray]:
        """The chances of each table, for each choice."""
        found = []
        for number in sorted({number for number, _ in counts}):
            own = [table for (at, _), table in counts.items() if at == number]
            weights = np.exp(epsilon * np.array([np.abs(one - 3.0 / one.size).sum() for one in own]) / 2)
            found.append(weights / weights.sum())
        return found

    def worst(plan: Recipe) -> float:
        known: dict[tuple[Unit, ...], list[np.ndarray]] = {}
        largest = 0.0
        for files in neighbours():
            for units in files:
                if units not in known:
                    known[units] = chances(counts_of(plan, 1, tiny_file(plan, units), monkeypatch))
            more, less = (known[units] for units in files)
            for order in (1.001, 1.5, 2, 4, 16):
                for one, other in ((more, less), (less, more)):
                    # Choices are independent: their divergences add up.
                    total = sum(renyi(p, q, order) for p, q in zip(one, other, strict=True))
                    largest = max(largest, total / order)
        return largest

    kept, pooled = worst(recipe), worst(without_places(recipe))
    print(f"choices at rho {part}: worst {kept:.5f}, without places {pooled:.5f}")
    assert 0 < kept <= part
    assert pooled > kept


def test_costs_of_both_stages_are_added_and_said_of_units() -> None:
    recipe = tiny_plan()
    data = tiny_file(recipe, tuple(UNITS))
    accounts = accounts_of(recipe, data)
    assert [(one.unit_records, one.is_bounded, one.uncovered) for one in accounts] == [(MOST, True, ())] * 2
    whole = sum_accounts(accounts)
    rho = 2 * largest_rho(1.0, 1e-9)
    assert whole.concentrated is not None
    assert whole.concentrated.rho == pytest.approx(rho)
    assert whole.release == pytest.approx(min(2.0, epsilon_of_rho(rho, 1e-9)))
    said = privacy_cost_text(recipe, data, secret=True)
    assert said.endswith("It protects each home as a whole; no more than 2 records are counted of one.")
    assert f"epsilon of {whole.release:g}." in said


def test_as_many_units_as_there_are_leave_no_epsilon() -> None:
    recipe = tiny_plan()
    data = tiny_file(recipe, tuple(UNITS))
    silent = replace(recipe, form=replace(recipe.form, number_of_units=None))
    assert {one.release for one in accounts_of(silent, data)} == {None}
    assert "as many units are released as there are" in privacy_cost_text(silent, data, secret=True)


def fit_and_draw(recipe: Recipe, data: Microdata) -> tuple[list[Fit], pd.DataFrame]:
    check_steps(recipe, data)
    fits = [fit_model(recipe, item, data, key=KEY) for item in range(len(recipe.synthesis))]
    return fits, draw_dataset(recipe, 1, data, fits, key=KEY).frame


@pytest.mark.parametrize("sizes", [(1,), (2,), (1, 3)])
def test_sizes_and_numbers_of_units_follow_from_the_recipe_alone(
    sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files with other sizes have the same tables, and sizes that none of them has are drawn as noise leaves them."""
    monkeypatch.setattr(margins, "SOFT_STEPS", 20)
    recipe = tiny_plan(number_of_units=400)
    units = tuple(unit for unit in UNITS if len(unit[1]) in sizes)
    fits, frame = fit_and_draw(recipe, tiny_file(recipe, units))
    assert fits[0].arrays["margin/1"].shape == (MOST,)
    assert {name for name in fits[1].arrays if name.endswith("/soft")} == {"1/soft", "2/soft"}
    drawn = frame["home"].value_counts()
    assert sorted(drawn.index) == list(range(1, 401)), "numbers of new units"
    assert set(drawn) == {1, 2}, "few units, much noise: both sizes, and none beyond the bound"
    (lost,) = (one for one in fits[1].diagnostics if one.name == "records_beyond_those_of_a_unit")
    assert lost.value == sum(len(unit[1]) - MOST for unit in units if len(unit[1]) > MOST)


@pytest.mark.parametrize("predictors", [(), ("u",), ("u", "size", "previous(a)", "size - place")])
def test_a_draw_reads_nothing_of_the_data_but_the_fits(
    predictors: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same fits and random numbers make the same release beside any file: all but the fits is free of cost."""
    monkeypatch.setattr(margins, "SOFT_STEPS", 20)
    recipe = tiny_plan(predictors, number_of_units=60)
    files = [
        tiny_file(recipe, tuple(units))
        for units in (UNITS, UNITS[:1], [one for one in UNITS if len(one[1]) == 3][::-1])
    ]
    fits = [fit_model(recipe, item, files[0], key=PUBLIC) for item in (0, 1)]
    drawn = [draw_dataset(recipe, 1, data, fits, key=PUBLIC).frame for data in files]
    for other in drawn[1:]:
        pd.testing.assert_frame_equal(drawn[0], other)
    claims = [accounts_of(recipe, data) for data in files]
    assert claims[1:] == claims[:-1]


def test_estimates_of_records_are_not_told_of_units() -> None:
    recipe = tiny_plan()
    data = tiny_file(recipe, tuple(UNITS))
    assert all(fit_rows(recipe, item, Fit({}), data) == [] for item in (0, 1))


def test_a_record_is_drawn_given_its_predictors() -> None:
    """The distribution of a mixture given two of its variables, by brute force over all its cells."""
    rng = np.random.default_rng(1)
    sizes = (2, 3, 4)
    parts = [rng.dirichlet(np.full(size, 0.4), 5) for size in sizes]
    joint = np.einsum("ca,cb,cd->abd", *parts) / 5
    table = TargetTable({}, Domain(sizes), ())
    records = 20_000
    given = np.column_stack([rng.integers(0, 2, records), rng.integers(0, 3, records)])
    codes = draw_codes_given(np.concatenate(parts, axis=1), table, given, rng, records)
    assert (codes[:, :2] == given).all()
    for a, b in itertools.product(range(2), range(3)):
        own = codes[(given == (a, b)).all(axis=1), 2]
        share = np.bincount(own, minlength=4) / len(own)
        np.testing.assert_allclose(share, joint[a, b] / joint[a, b].sum(), atol=0.03)


# What comes back.

HOMES = 3000


def census(rng: np.random.Generator) -> pd.DataFrame:
    """Homes of a head, a spouse and children, more of them in towns, with an illness that depends on the area."""
    area = rng.choice(["city", "town"], HOMES)
    chances = {"city": [0.5, 0.3, 0.1, 0.1], "town": [0.1, 0.3, 0.3, 0.3]}
    size = np.array([rng.choice([1, 2, 3, 4], p=chances[own]) for own in area])
    home = np.repeat(np.arange(HOMES), size)
    line = np.concatenate([np.arange(1, own + 1) for own in size])
    alone = rng.random(HOMES) < 0.2
    relation = np.where(line == 1, "head", np.where((line == 2) & ~alone[home], "spouse", "child"))
    ill = np.where(rng.random(len(home)) < np.where(area[home] == "city", 0.8, 0.2), "1", "0")
    age = np.where(relation == "child", rng.integers(0, 18, len(home)), rng.integers(20, 80, len(home)))
    columns = {"home": home.astype(float), "area": area[home], "line": line.astype(float), "relation": relation}
    return pd.DataFrame({**columns, "ill": ill, "age": age.astype(float)})


def census_plan(epsilon: float, predictors: tuple[str, ...] = ("area", "size"), **more: Any) -> Recipe:
    noisy = {"method": "margins", "epsilon": epsilon}
    bins = {"line": "width 1", "age": "at 18, 40, 60"}
    return Recipe.from_table(
        {
            "data": {"largest_unit": 4, "order": "line"},
            "variables": {
                "home": {"kind": "count", "role": "unit"},
                "area": {"kind": "categorical", "level": "unit", "levels": ["city", "town"]},
                "line": {"kind": "count", "bounds": [1, 4]},
                "relation": {"kind": "categorical", "levels": ["head", "spouse", "child"]},
                "ill": {"kind": "binary", "levels": YES_NO},
                "age": {"kind": "count", "bounds": [0, 99]},
            },
            "synthesis": [
                {**noisy, "target": ["area", "size"]},
                {**noisy, "target": ["line", "relation", "ill", "age"], "predictors": list(predictors), "bins": bins},
            ],
            "release": {"m": 1, "seed": 1, "units": "drawn", "number_of_units": HOMES},
            **more,
        }
    )


def compositions(frame: pd.DataFrame) -> pd.Series:
    """The share of homes of each area with each multiset of relations."""
    groups = frame.astype({"relation": str, "area": str}).groupby("home")
    texts = groups["area"].first() + ": " + groups["relation"].agg(lambda own: ", ".join(sorted(own)))
    return texts.value_counts(normalize=True)


def distance(one: pd.Series, other: pd.Series) -> float:
    return float(one.subtract(other, fill_value=0).abs().sum() / 2)


@pytest.mark.slow
def test_an_earlier_record_says_what_a_place_alone_does_not() -> None:
    """A home without a spouse has a child at place 2 and one at place 3; whose illness is like that of the record before."""
    rng = np.random.default_rng(3)
    frame = census(rng)
    first = frame.groupby("home")["ill"].transform("first")
    frame["ill"] = np.where(rng.random(len(frame)) < 0.9, first, frame["ill"])
    found = {}
    for known in ((), ("previous(ill)",)):
        recipe = census_plan(1000.0, ("area", "size", *known))
        assert Recipe.from_table(recipe.to_table()) == recipe
        _, drawn = fit_and_draw(recipe, conform_to_schema(frame, recipe.schema))
        alike = drawn.groupby("home")["ill"].agg(lambda own: (own == own.iloc[0]).all())[
            drawn["home"].value_counts() > 1
        ]
        found[known] = float(alike.mean())
    wanted = float(
        frame.groupby("home")["ill"]
        .agg(lambda own: (own == own.iloc[0]).all())[frame["home"].value_counts() > 1]
        .mean()
    )
    print(f"homes whose members are alike: {wanted:.3f}, drawn {found}")
    assert abs(found["previous(ill)",] - wanted) < 0.06
    assert wanted - found[()] > 0.1


@pytest.mark.slow
def test_levels_of_an_earlier_record_follow_from_the_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody before another is ill: the tables are those of a file where some are."""
    monkeypatch.setattr(margins, "SOFT_STEPS", 1)
    recipe = census_plan(1.0, ("previous(ill)", "first(relation)", 'count(ill = "1")'))
    frame = census(np.random.default_rng(1))
    shapes = []
    for ill in (frame["ill"], pd.Series(np.where(frame["line"] == 4, "1", "0"))):
        fits, drawn = fit_and_draw(recipe, conform_to_schema(frame.assign(ill=ill), recipe.schema))
        shapes.append({name: own.shape for name, own in fits[1].arrays.items() if re.search(r"margin/\d$", name)})
        assert set(drawn["ill"]) == {"0", "1"}
    assert shapes[0] == shapes[1]
    assert [shapes[0][f"1/margin/{at}"] for at in range(3)] == [(3,), (4,), (4,)], "levels, none; 0 to 3 records"


@pytest.mark.slow
def test_sizes_and_compositions_come_back_at_a_large_epsilon() -> None:
    recipe = census_plan(1000.0)
    frame = census(np.random.default_rng(1))
    _, drawn = fit_and_draw(recipe, conform_to_schema(frame, recipe.schema))
    sizes = [one["home"].value_counts().value_counts(normalize=True) for one in (frame, drawn)]
    again = census(np.random.default_rng(2))
    found, chance = (distance(compositions(frame), compositions(one)) for one in (drawn, again))
    print(f"sizes {distance(*sizes):.4f}; compositions {found:.4f}, another sample {chance:.4f}")
    assert distance(*sizes) < 0.02
    assert found < 0.04
    assert (drawn.groupby("home")["line"].apply(sorted).map(lambda own: own == list(range(1, len(own) + 1)))).all()
    shares = [pd.crosstab(one["area"].astype(str), one["ill"].astype(str), normalize="index") for one in (frame, drawn)]
    assert (shares[0] - shares[1]).abs().to_numpy().max() < 0.03


@pytest.mark.parametrize(
    ("change", "place", "text"),
    [
        ({"data": {"order": "line"}}, "data.largest_unit", "set it from public knowledge"),
        ({"data": {"order": "line", "largest_unit": 60}}, "data.largest_unit", "at most 50"),
        ({"release": {"units": "drawn", "records": 50}}, "release.records", "set number_of_units"),
        ({"release": {"units": "kept"}}, "synthesis[0].target", "keeps the sizes"),
        ({"release": {"number_of_units": 5}}, "synthesis[0].target[1]", 'no column "size"'),
        ({"release": {"units": "drawn", "until": "gone"}}, "synthesis[0].target[1]", "follows from its records"),
        ({"constraints": {"one": 'count(relation = "head") = 1'}}, "constraints.one", "units drawn once"),
        ({"first": {"target": ["area"]}}, "synthesis[0].target", 'add "size"'),
        ({"first": {"method": "cart", "target": "size", "epsilon": None}}, "synthesis[0].method", "cart has none"),
        ({"first": {"epsilon": None}}, "synthesis[0].method", "add epsilon"),
        ({"first": {"method": "perturbed_gibbs"}}, "synthesis[0].method", "covers tables of records alone"),
        ({"first": {"figures": 0.1}}, "synthesis[0].figures", "leave it out"),
        ({"first": {"predictors": ["area"]}}, "synthesis[0].predictors[0]", "own confidential value"),
        ({"second": {"predictors": ["place"]}}, "synthesis[1].predictors[0]", "in every table"),
        (
            {"second": {"predictors": ["previous(age)"]}},
            "synthesis[1]",
            "previous(age): a step with an epsilon takes first and previous",
        ),
        ({"second": {"predictors": ["mean(age)"]}}, "synthesis[1]", "takes first and previous"),
        ({"second": {"predictors": ["relation"]}}, "synthesis[1].predictors[0]", "own confidential value"),
    ],
)
def test_a_plan_that_no_account_covers_is_refused(change: dict[str, Any], place: str, text: str) -> None:
    table = census_plan(1.0).to_table()
    steps = [
        {**step, **change.get(name, {})} for step, name in zip(table["synthesis"], ("first", "second"), strict=True)
    ]
    own = {name: part for name, part in change.items() if name not in ("first", "second")}
    plan = {**table, **own, "synthesis": [{k: v for k, v in step.items() if v is not None} for step in steps]}
    data = conform_to_schema(census(np.random.default_rng(1)), census_plan(1.0).schema)
    with pytest.raises(BadInput, match=re.escape(text)) as refused:
        check_steps(Recipe.from_table(plan), data)
    assert refused.value.place == place
