"""Risks under an uncertain intruder: what they equal without uncertainty, and how they move with it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matched_records import match_records
from prepared_tables import schema_of
from public_data import PUBLIC_DATA

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, Role, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.matching.intruder import log_normal_noise
from sfumato.engine.matching.matching import ExactKey, WindowKey
from sfumato.engine.methods.registry import find_method
from sfumato.engine.methods.results import Measure, StudyPoint
from sfumato.engine.methods.run import PUBLIC, Randomness, Run
from sfumato.engine.recipe.recipe import Recipe
from sfumato.engine.risk.attribute import AttributeSpec, attribute
from sfumato.engine.risk.identification import IdentificationSpec, identification
from sfumato.engine.studies.intruder_uncertainty import REPLICATES, IntruderUncertaintySpec, intruder_uncertainty

SCHEMA = schema_of(
    "room_type: categorical quasi_identifier",
    "neighbourhood_group: categorical quasi_identifier",
    "number_of_reviews: count quasi_identifier",
    "availability_365: count sensitive",
    "price: continuous sensitive",
)
RELEASED = ("availability_365", "price")
RADIUS = {"availability_365": 5, "price": "5%"}
N = 400


def seeded_run(seed: int = 7) -> Run:
    return Run(Randomness(seed, PUBLIC).generator("study"))


@pytest.fixture(scope="module")
def confidential() -> Microdata:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "room_type": rng.choice(["Entire", "Private"], N),
            "neighbourhood_group": rng.choice(["Bronx", "Queens", "Brooklyn"], N),
            "number_of_reviews": rng.geometric(0.05, N) - 1,
            "availability_365": rng.integers(0, 60, N),
            "price": np.round(rng.lognormal(4, 0.4, N)),
        }
    )
    return conform_to_schema(frame, SCHEMA)


@pytest.fixture(scope="module")
def release(confidential: Microdata) -> Microdata:
    """A release that permutes the sensitive values within the room types."""
    order = confidential.frame.groupby("room_type", observed=True).sample(frac=1, random_state=2).index
    shuffled = {name: confidential.column(name).copy() for name in RELEASED}
    for name, column in shuffled.items():
        column.loc[order.sort_values()] = confidential.column(name).loc[order].to_numpy()
    return confidential.with_columns(shuffled, "synthetic")


def spec(**table) -> IntruderUncertaintySpec:
    full = {"variable": "number_of_reviews", "radius": RADIUS, **table}
    chosen = IntruderUncertaintySpec.from_table(full, "study[0]")
    chosen.check(SCHEMA, "study[0]")
    chosen.check_repeats("study[0]")
    chosen.check_release(SCHEMA, RELEASED, "study[0]")
    return chosen.for_release(SCHEMA, RELEASED)


def values(measure: Measure | None) -> dict[str, float | None]:
    assert measure is not None
    return {estimate.measure: estimate.value for estimate in measure.estimates if estimate.measure != REPLICATES}


def of_papers(found: dict[str, float | None]) -> dict[str, float | None]:
    """The papers' exact match, without the windows that an intruder may choose."""
    return {name: value for name, value in found.items() if not name.startswith("largest_")}


def risks_without_uncertainty(confidential: Microdata, released: Microdata, radius: dict) -> dict[str, float | None]:
    known = IdentificationSpec.from_table({"radius": radius}, "").for_release(SCHEMA, RELEASED)
    learnt = AttributeSpec.from_table({"radius": radius}, "").for_release(SCHEMA, RELEASED)
    found = of_papers(values(identification(confidential, released, known, seeded_run())))
    return {**found, "attribute_risk": attribute(confidential, released, learnt, seeded_run()).estimates[0].value}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "variable", "more"),
    [
        ("log_normal", "number_of_reviews", {}),
        ("log_normal_constant", "number_of_reviews", {}),
        ("relative", "number_of_reviews", {"number_of_reviews": 2}),
        ("log_relative", "number_of_reviews", {"number_of_reviews": "log 5%"}),
        ("misclassification", "neighbourhood_group", {}),
        ("unknown", "neighbourhood_group", {}),
        ("unknown", "number_of_reviews", {"number_of_reviews": 2}),
    ],
)
def test_level_zero_is_the_risk_itself_and_uncertainty_changes_it(confidential, release, model, variable, more) -> None:
    radius = {**RADIUS, **more}
    chosen = spec(model=model, variable=variable, radius=radius, levels=[0.0, 0.5])
    certain = intruder_uncertainty(confidential, [release], 0.0, chosen, seeded_run())
    assert of_papers(values(certain.confidential)) == risks_without_uncertainty(confidential, confidential, radius)
    assert of_papers(values(certain.releases[0])) == risks_without_uncertainty(confidential, release, radius)
    uncertain = intruder_uncertainty(confidential, [release], 0.5, chosen, seeded_run())
    expected, found = (values(p.confidential)["expected_match_risk"] for p in (certain, uncertain))
    assert expected is not None
    assert found is not None
    assert found < expected


def test_equals_matching_with_the_noise_drawn_by_hand(confidential, release) -> None:
    point = intruder_uncertainty(confidential, [release], 0.1, spec(replicates=1), seeded_run())
    reviews = confidential.numbers("number_of_reviews")
    believed = log_normal_noise(reviews, 0.1, seeded_run().rng.spawn(1)[0], whole=True)
    days, price = (confidential.numbers(name) for name in RELEASED)
    for released, measure in ((confidential, point.confidential), (release, point.releases[0])):
        exact = [ExactKey(confidential.column(n), released.column(n)) for n in ("room_type", "neighbourhood_group")]
        exact.append(ExactKey(believed, released.numbers("number_of_reviews")))
        within = [
            WindowKey(days - 5, days + 5, released.numbers("availability_365")),
            WindowKey(price - 5 * price / 100, price + 5 * price / 100, released.numbers("price")),
        ]
        matches = match_records(exact, within)
        found = values(measure)
        assert found["unique_matches"] == (matches.candidates == 1).sum()
        assert found["true_match_rate"] == ((matches.candidates == 1) & matches.hit).mean()


@pytest.mark.slow
def test_every_dataset_meets_the_same_beliefs(confidential) -> None:
    same = Microdata(confidential.schema, confidential.frame, "synthetic")
    point = intruder_uncertainty(confidential, [same, same], 0.1, spec(), seeded_run())
    first, second = (values(measure) for measure in point.releases)
    own = values(point.confidential)
    assert first == second
    assert own == first, "the confidential data are scored as if they were released as they are"


@pytest.mark.slow
def test_same_seed_same_answer_and_another_seed_another(confidential, release) -> None:
    def answer(seed: int) -> StudyPoint:
        return intruder_uncertainty(confidential, [release], 0.1, spec(), seeded_run(seed))

    assert answer(1) == answer(1)
    assert answer(1) != answer(2)


@pytest.mark.slow
def test_replicates_have_a_mean_and_a_band(confidential) -> None:
    one, many = (
        intruder_uncertainty(confidential, [], 0.1, spec(replicates=r), seeded_run()).confidential for r in (1, 20)
    )
    assert one is not None
    assert many is not None
    assert one.estimates[0].lower is None
    estimate = many.estimates[0]
    assert estimate.value is not None
    assert estimate.lower is not None
    assert estimate.upper is not None
    assert estimate.lower < estimate.value < estimate.upper


def test_a_wholly_unknown_variable_is_one_that_does_not_matter(confidential, release) -> None:
    chosen = spec(model="unknown", levels=[1.0])
    found = values(intruder_uncertainty(confidential, [release], 1.0, chosen, seeded_run()).releases[0])
    others = IdentificationSpec.from_table({"known": ["room_type", "neighbourhood_group"], "radius": RADIUS}, "")
    expected = of_papers(
        values(identification(confidential, release, others.for_release(SCHEMA, RELEASED), seeded_run()))
    )
    assert {name: found[name] for name in expected} == expected


PEOPLE = schema_of(
    "place: categorical quasi_identifier", "days_old: count quasi_identifier", "income: continuous sensitive"
)


def people_of_places(records: int, places: int) -> tuple[Microdata, Microdata]:
    """People known by their place and their age in days, and a release that keeps both and deals the incomes anew."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "place": rng.integers(0, places, records).astype(str),
            "days_old": rng.integers(6_500, 33_000, records),
            "income": rng.lognormal(10, 0.5, records),
        }
    )
    confidential = conform_to_schema(frame, PEOPLE)
    dealt = confidential.column("income").sample(frac=1, random_state=4).reset_index(drop=True)
    return confidential, confidential.with_columns({"income": dealt}, "synthetic")


def unsure_of_age(records: int, places: int, model: str, level: float) -> dict[str, float | None]:
    confidential, release = people_of_places(records, places)
    table = {"variable": "days_old", "model": model, "radius": {"income": "5%", **ROUND.get(model, {})}}
    chosen = IntruderUncertaintySpec.from_table({**table, "levels": [level], "replicates": 2}, "study[0]")
    full = chosen.for_release(PEOPLE, ("income",))
    return values(intruder_uncertainty(confidential, [release], level, full, seeded_run()).releases[0])


ROUND = {"log_relative": {"days_old": "log 0.001%"}}


@pytest.mark.parametrize("model", ["log_normal_constant", "relative", "log_relative"])
def test_an_intruder_one_per_cent_unsure_of_an_age_looks_in_a_window(model: str) -> None:
    """Exact matching finds nobody; in the best window nearly everybody is alone, since seven people have a place."""
    level = 0.001 if model == "log_relative" else 0.01  # log_relative takes a share of the logarithm, which is about 10
    found = unsure_of_age(600, 80, model, level)
    assert found["expected_match_risk"] < 6
    assert found["largest_expected_match_risk"] > 400
    assert found["largest_true_match_rate"] > 0.5


def test_who_knows_nothing_of_an_age_finds_no_more_in_a_window_than_by_ignoring_it() -> None:
    """The control: at S = 8 a belief is noise, and what is left is the place: about 80 of 600 people."""
    found = unsure_of_age(600, 80, "log_normal_constant", 8.0)
    confidential, release = people_of_places(600, 80)
    place = IdentificationSpec(known=("place",), kept_only=True).for_release(PEOPLE, ("income",))
    ignoring = values(identification(confidential, release, place, seeded_run()))
    assert found["largest_expected_match_risk"] == pytest.approx(ignoring["expected_match_risk"], rel=0.1)
    assert found["largest_expected_match_risk"] >= ignoring["expected_match_risk"]


@pytest.mark.parametrize(
    ("model", "variable"), [("misclassification", "neighbourhood_group"), ("unknown", "number_of_reviews")]
)
def test_who_is_often_wrong_about_a_variable_ignores_it(confidential, release, model: str, variable: str) -> None:
    chosen = spec(model=model, variable=variable, levels=[1.0])
    found = values(intruder_uncertainty(confidential, [release], 1.0, chosen, seeded_run()).releases[0])
    known = tuple(name for name in ("room_type", "neighbourhood_group", "number_of_reviews") if name != variable)
    others = IdentificationSpec(known=known, kept_only=True).for_release(SCHEMA, RELEASED)
    ignoring = values(identification(confidential, release, others, seeded_run()))["expected_match_risk"]
    assert ignoring is not None
    assert found["largest_expected_match_risk"] >= ignoring - 1e-9


def test_without_anything_to_learn_attribute_risk_is_not_computed(confidential) -> None:
    chosen = IntruderUncertaintySpec(variable="number_of_reviews").for_release(SCHEMA, ())
    measure = intruder_uncertainty(confidential, [], 0.0, chosen, seeded_run()).confidential
    assert measure is not None
    estimate = measure.estimates[-1]
    assert estimate.value is None
    assert "nothing to learn" in estimate.reason


def test_progress_counts_the_datasets(confidential, release) -> None:
    seen = []
    intruder_uncertainty(
        confidential, [release], 0.0, spec(), Run(Randomness(1, PUBLIC).generator(), report=seen.append)
    )
    assert [(p.done, p.total) for p in seen] == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("table", "place", "message"),
    [
        ({"variable": "price"}, "study[0].variable", "not among the known"),
        ({"variable": "reviews"}, "study[0].variable", "did you mean|no column"),
        ({"variable": "room_type"}, "study[0].model", "adds noise to numbers"),
        ({"model": "misclassification"}, "study[0].model", "changes levels"),
        ({"model": "log_relative"}, "study[0].radius", "never hits exactly"),
        ({"model": "unknown", "levels": [0, 2]}, "study[0].levels", "at most 1"),
        ({"levels": []}, "study[0].levels", "at least one"),
        ({"levels": [0.1, 0.1]}, "study[0].levels[1]", "0.1 is listed twice"),
        ({"levels": [-0.1]}, "study[0].levels[0]", "at least 0"),
        ({"radius": {}}, "study[0].radius", "continuous and synthesised"),
    ],
)
def test_refusals_name_the_place(table, place, message) -> None:
    with pytest.raises(BadInput, match=message) as refused:
        spec(**table)
    assert refused.value.place == place


def test_log_models_refuse_negative_values() -> None:
    schema = Schema((Variable("balance", Kind.CONTINUOUS, Role.QUASI_IDENTIFIER),))
    table = conform_to_schema(pd.DataFrame({"balance": [-1.0, 2.0]}), schema)
    check = find_method("studies.intruder_uncertainty", "").check
    assert check is not None
    with pytest.raises(BadInput, match="1 record is negative"):
        check(table, "", IntruderUncertaintySpec(variable="balance"), "study[0]")
    check(table, "", IntruderUncertaintySpec(variable="balance", model="relative"), "study[0]")


@pytest.fixture(scope="module")
def listings() -> Microdata:
    path = PUBLIC_DATA / "AB_NYC_2019.csv"
    if not path.exists():
        pytest.skip("needs AB_NYC_2019.csv from the folder of public data")
    return conform_to_schema(pd.read_csv(path).query("price > 0").sample(10_000, random_state=3), SCHEMA)


def sweep(listings: Microdata, model: str, radius: dict) -> dict[str, np.ndarray]:
    chosen = spec(model=model, radius=radius)
    points = [values(intruder_uncertainty(listings, [], s, chosen, seeded_run()).confidential) for s in chosen.grid()]
    return {name: np.array([point[name] for point in points]) for name in points[0]}


@pytest.mark.slow
def test_log_relative_has_the_shape_of_table_6(listings) -> None:
    """Published share of the expected match risk kept at S = .01, .05, .10, .15, and false match rates."""
    found = sweep(listings, "log_relative", {**RADIUS, "number_of_reviews": "log 5%"})
    kept = found["expected_match_risk"] / found["expected_match_risk"][0]
    np.testing.assert_allclose(kept[1:], [0.9995, 0.705, 0.415, 0.292], atol=0.09)
    np.testing.assert_allclose(found["false_match_rate"][1:], [0, 0.073, 0.216, 0.325], atol=0.11)
    assert (np.diff(found["true_match_rate"][1:]) < 0).all()


@pytest.mark.slow
def test_negative_control_eq_11_to_the_letter_has_not(listings) -> None:
    found = sweep(listings, "log_normal", RADIUS)
    kept = found["expected_match_risk"] / found["expected_match_risk"][0]
    assert kept[1] == pytest.approx(0.48, abs=0.02)
    assert (np.diff(kept) < 0).all()
    assert (np.diff(found["true_match_rate"]) < 0).all()
    assert (np.diff(found["false_match_rate"]) > 0).all()


def test_a_recipe_s_study_takes_its_knowledge_from_the_measures(confidential, release) -> None:
    recipe = Recipe.from_toml(
        """
        [data]
        file = "listings.csv"
        [variables]
        room_type = { kind = "categorical", role = "quasi_identifier" }
        neighbourhood_group = { kind = "categorical", role = "quasi_identifier" }
        number_of_reviews = { kind = "count", role = "quasi_identifier" }
        availability_365 = { kind = "count", role = "sensitive" }
        price = { kind = "continuous", role = "sensitive" }
        [release]
        released = ["availability_365", "price"]
        [[measure]]
        method = "risk.identification"
        radius = { availability_365 = 5, price = "5%" }
        [[measure]]
        method = "risk.attribute"
        radius = { availability_365 = 5, price = "5%" }
        [[study]]
        method = "studies.intruder_uncertainty"
        variable = "number_of_reviews"
        levels = [0.0, 0.1]
        [[threshold]]
        value = "risk.identification.true_match_rate"
        max = 0.02
        """
    )
    assert Recipe.from_table(recipe.to_table()) == recipe
    found = execute_run(recipe, confidential, [release], key=PUBLIC)
    rows = {(row.key, row.dataset, row.draw, row.level): row.value for row in found.rows}
    for dataset, draw in (("confidential", None), ("synthetic", None), ("synthetic", 1)):
        for name in ("expected_match_risk", "true_match_rate", "false_match_rate", "unique_matches"):
            at_zero = rows[f"studies.intruder_uncertainty.{name}", dataset, draw, 0.0]
            assert at_zero == rows[f"risk.identification.{name}", dataset, draw, None]
        at_zero = rows["studies.intruder_uncertainty.attribute_risk", dataset, draw, 0.0]
        assert at_zero == rows["risk.attribute.risk", dataset, draw, None]
    assert found.verdicts[0].outcome == "met"
