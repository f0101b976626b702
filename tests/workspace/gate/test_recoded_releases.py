"""The gate sees a recoded release, and earlier ones beside it, as if the data had been coarse before they came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_workspaces import reseal, run_recipe

from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.run import PUBLIC
from sfumato.engine.recipe.recipe import Recipe
from sfumato.workspace.gate import record_checks
from sfumato.workspace.gate.checks import ExaminedRelease
from sfumato.workspace.gate.contents import plan_release
from sfumato.workspace.gate.gate import Finding, examine_release
from sfumato.workspace.policy.policy import Policy
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.deletion import delete_run
from sfumato.workspace.service.prepare import prepare_companion_runs, prepare_evaluation, prepare_run
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.artefacts import read_released_dataset, read_weights, weights_hash
from sfumato.workspace.store.runs import find_run
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.beliefs import read_record_guesses
from sfumato.workspace.views.figures import draw_run_figures
from sfumato.workspace.views.records import (
    find_candidates,
    find_risk_drivers,
    rank_records,
    read_record_risks,
    record_measures,
    select_measure,
)

pytestmark = pytest.mark.slow

LEVELS = ["north", "south", "west", "isle", "zetavale"]
VARIABLES: dict[str, Any] = {
    "region": {"kind": "categorical", "role": "quasi_identifier", "levels": LEVELS},
    "age": {"kind": "count", "role": "quasi_identifier"},
    "visits": {"kind": "count", "role": "sensitive"},
    "income": {"kind": "continuous", "role": "sensitive"},
}
COARSE: dict[str, Any] = {**VARIABLES, "region": {**VARIABLES["region"], "levels": ["north", "south", "west", "other"]}}
RULES: dict[str, Any] = {"age": 10, "region": {"other": ["isle", "zetavale"]}}
KEPT = [{"target": name, "method": "cart", "predictors": ["region", "age"]} for name in ("visits", "income")]
WHOLE = [{"target": "region", "method": "cart"}, {"target": "age", "method": "cart", "predictors": ["region"]}, *KEPT]
MEASURES: list[dict[str, Any]] = [
    {"method": "utility.ecdf"},
    {"method": "risk.identification", "radius": {"income": "5%", "visits": 2}},
]


def people(count: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 98, count)
    return pd.DataFrame(
        {
            "region": rng.choice(LEVELS, count, p=[0.4, 0.3, 0.24, 0.04, 0.02]),
            "age": age,
            "visits": rng.poisson(age / 10),
            "income": np.exp(rng.normal(7 + age / 100, 0.4, count)).round(2),
        }
    )


PEOPLE, CONTROLS = people(160, 20), people(80, 21)


def coarse(frame: pd.DataFrame) -> pd.DataFrame:
    names = {"isle": "other", "zetavale": "other"}
    return frame.assign(age=[10 * (age // 10) for age in frame["age"].tolist()], region=frame["region"].replace(names))


def datasets(kind: str, count: int, seed: int) -> list[pd.DataFrame]:
    """Coarse datasets of a release: the people themselves, with what is sensitive in another order, or other people."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        frame = coarse(people(160, int(rng.integers(1000, 9999)))) if kind == "fresh" else coarse(PEOPLE)
        if kind == "noise":
            order = rng.permutation(len(frame))
            frame = frame.assign(visits=frame["visits"].to_numpy()[order], income=frame["income"].to_numpy()[order])
        if kind == "near":
            frame = frame.assign(income=frame["income"] * np.exp(rng.normal(0, 0.1, len(frame))))
        found.append(frame)
    return found


class Place:
    """A workspace whose runs have the datasets that a test gives them."""

    def __init__(self, directory: Path) -> None:
        self.workspace, self.directory = Workspace.create(directory, PUBLIC), directory

    def run_with_datasets(
        self, tables: Sequence[pd.DataFrame], rules: dict[str, Any], variables: dict[str, Any], frame: pd.DataFrame,
        controls: pd.DataFrame | None, synthesis: list[Any], seed: int = 7, order: str = "shuffled",
        measures: Sequence[Any] = MEASURES,
    ) -> int:  # fmt: skip
        form = {
            "m": len(tables),
            "seed": seed,
            "order": order,
            "public_figures": "rounded",
            **({"recode": rules} if rules else {}),
        }
        held = {} if controls is None else {"data": {"holdout": "held_out"}}
        recipe = Recipe.from_table(
            {
                "title": "People",
                **held,
                "variables": variables,
                "synthesis": synthesis,
                "measure": MEASURES,
                "release": form,
            }
        )
        data = conform_to_schema(frame, recipe.schema)
        if controls is not None:
            data = data.with_controls(conform_to_schema(controls, recipe.schema))
        run_id = run_recipe(self.workspace, recipe, data, "people.csv", b"people")
        made = [conform_to_schema(one, recipe.released_schema, origin="synthetic") for one in tables]
        hashes = [self.workspace.tables.write_microdata(one) for one in made]
        with self.workspace.write_transaction() as connection:
            connection.executemany(
                "UPDATE artefact SET sha256 = ? WHERE run_id = ? AND name = ?",
                [(sha256, run_id, f"draw/{draw}") for draw, sha256 in enumerate(hashes, start=1)],
            )
        reseal(self.workspace)
        return run_id

    def let_out(self, run_id: int) -> Path:
        out = self.directory.parent / f"{self.directory.name}-{run_id}"
        write_run_release(self.workspace, run_id, out, reason="simulated people, let out by a test")
        return out

    def findings_by_check(self, run_id: int) -> dict[str, Finding]:
        return {
            one.check: one
            for one in examine_release(self.workspace, plan_release(self.workspace, run_id), Policy()).findings
        }


@pytest.fixture
def places(tmp_path: Path) -> Iterator[tuple[Place, Place]]:
    found = Place(tmp_path / "by_rule"), Place(tmp_path / "before")
    yield found
    for one in found:
        one.workspace.close()


def comparable_findings(found: dict[str, Finding], but: Sequence[str] = ()) -> dict[str, Any]:
    return {
        check: (one.status, one.value, one.baseline, one.compared_value, one.records)
        for check, one in found.items()
        if check not in but
    }


def both(
    places: tuple[Place, Place],
    kind: str,
    synthesis: list[Any],
    *,
    controls: bool,
    earlier: str = "",
    order: str = "shuffled",
) -> tuple[dict[str, Finding], dict[str, Finding]]:
    """What the gate finds of a recoded release and of the same one of coarse data, after an ``earlier`` one: "same" rules, or "exact" values."""
    found = []
    for place, by_rule in zip(places, (True, False), strict=True):
        rules, variables = (RULES, VARIABLES) if by_rule else ({}, COARSE)
        frame, held = (PEOPLE, CONTROLS) if by_rule else (coarse(PEOPLE), coarse(CONTROLS))
        whose = frame, held if controls else None
        first, second = datasets("near", 2, 1), datasets(kind, 2, 5)
        before = 0
        if earlier == "exact" and by_rule:
            exact = [one.assign(age=PEOPLE["age"], region=PEOPLE["region"]) for one in first]
            before = place.run_with_datasets(exact, {}, VARIABLES, *whose, synthesis, 3, order)
        elif earlier:
            # a model of exact values is another one than a model of coarse values
            other = [{**step, "minbucket": 7} for step in synthesis] if earlier == "exact" else synthesis
            before = place.run_with_datasets(first, rules, variables, *whose, other, 3, order)
        run_id = place.run_with_datasets(second, rules, variables, *whose, synthesis, 7, order)
        if before:
            place.let_out(before)
        found.append(place.findings_by_check(run_id))
    return found[0], found[1]


@pytest.mark.parametrize(
    ("kind", "controls"),
    [
        pytest.param(
            kind,
            controls,
            id=f"{kind}-{'hold-out' if controls else 'none held out'}",
            # each kind once, with and without people who were held out: a study crosses them
            marks=[] if controls is (kind != "fresh") else [pytest.mark.study],
        )
        for kind in ("copy", "noise", "fresh")
        for controls in (True, False)
    ],
)
def test_the_gate_finds_what_it_finds_of_coarse_data(places: tuple[Place, Place], kind: str, controls: bool) -> None:
    ours, theirs = both(places, kind, KEPT, controls=controls)
    assert comparable_findings(ours) == comparable_findings(theirs)
    assert (ours["equal_records"].status == "block") == (kind == "copy")


@pytest.mark.parametrize("kind", ["copy", "noise", "fresh"])
def test_the_gate_finds_what_it_finds_of_coarse_data_where_levels_are_synthesised(
    places: tuple[Place, Place], kind: str
) -> None:
    ours, theirs = both(places, kind, [WHOLE[0], *KEPT], controls=True)
    assert comparable_findings(ours) == comparable_findings(theirs)


def test_a_gate_that_reads_the_exact_file_would_not_see_a_copy(
    places: tuple[Place, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: equal_records blocks a coarse copy, and not where 37 is held against 30."""
    place = places[0]
    run_id = place.run_with_datasets(datasets("copy", 2, 5), RULES, VARIABLES, PEOPLE, CONTROLS, KEPT)
    right = place.findings_by_check(run_id)["equal_records"]
    monkeypatch.setattr(Recipe, "recode_data", lambda self, data: data)
    wrong = place.findings_by_check(run_id)["equal_records"]
    assert right.status == "block"
    assert wrong.status != "block"
    assert (wrong.value or 0) < (right.value or 0) / 5


@pytest.mark.parametrize(
    ("earlier", "order"),
    [
        ("same", "original"),
        ("exact", "shuffled"),
        # what is crossed shows no other way through the checks
        pytest.param("same", "shuffled", marks=pytest.mark.study),
        pytest.param("exact", "original", marks=pytest.mark.study),
    ],
)
def test_earlier_releases_count_with_a_recoded_one(places: tuple[Place, Place], earlier: str, order: str) -> None:
    """Of the same rules as of coarse data; of exact values the pooled looks are the same, and rows are linked by the exact values, which says no less."""
    ours, theirs = both(places, "near", KEPT, controls=True, earlier=earlier, order=order)
    pooled = (
        "equal_records",
        "membership_evidence",
        "own_values",
        "released_before",
    )
    assert comparable_findings({one: ours[one] for one in pooled}) == comparable_findings(
        {one: theirs[one] for one in pooled}
    )
    assert (ours["agreed_values"].compared_value or 0) >= (theirs["agreed_values"].compared_value or 0)
    if earlier == "same":
        assert comparable_findings(ours) == comparable_findings(theirs)


def test_a_deleted_earlier_release_counts_as_it_did(places: tuple[Place, Place]) -> None:
    place = places[0]
    first = place.run_with_datasets(datasets("near", 2, 1), RULES, VARIABLES, PEOPLE, CONTROLS, KEPT, 3)
    second = place.run_with_datasets(datasets("near", 2, 5), RULES, VARIABLES, PEOPLE, CONTROLS, KEPT)
    place.let_out(first)
    before = place.findings_by_check(second)
    assert before["released_before"].value == 1
    delete_run(place.workspace, first)
    assert comparable_findings(place.findings_by_check(second)) == comparable_findings(before)


def test_an_earlier_release_that_tells_less_is_linked_by_what_it_tells(
    places: tuple[Place, Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coarse first, then exact: whoever has both sees the people through the rules of the first where she looks for its rows."""
    place = places[0]
    first = place.run_with_datasets(datasets("near", 1, 1), RULES, VARIABLES, PEOPLE, CONTROLS, KEPT, 3)
    exact = [one.assign(age=PEOPLE["age"], region=PEOPLE["region"]) for one in datasets("near", 1, 5)]
    second = place.run_with_datasets(exact, {}, VARIABLES, PEOPLE, CONTROLS, KEPT)
    place.let_out(first)
    case = ExaminedRelease(place.workspace, plan_release(place.workspace, second), Policy())
    (earlier,) = (one.earlier.release for one in case.same_people_releases)
    alone = coarse(PEOPLE).groupby(["region", "age"])["visits"].transform("size").to_numpy() == 1
    assert alone.any()
    assert record_checks._rows_of_records(case, earlier).tolist() == np.where(alone, np.arange(160), -1).tolist()
    monkeypatch.setattr(record_checks, "recode_data", lambda data, rules: data)
    assert (
        record_checks._rows_of_records(case, earlier) == -1
    ).all()  # the control: by exact values nobody is found there


def test_the_screen_of_records_sees_the_coarse_values(places: tuple[Place, Place]) -> None:
    place, other = places
    ours = place.run_with_datasets(datasets("copy", 1, 5), RULES, VARIABLES, PEOPLE, None, KEPT)
    theirs = other.run_with_datasets(datasets("copy", 1, 5), {}, COARSE, coarse(PEOPLE), None, KEPT)
    looked = []
    for one, run_id in ((place, ours), (other, theirs)):
        measure = select_measure(record_measures(one.workspace, run_id), "risk.identification", run_id)
        looked.append([find_candidates(one.workspace, run_id, measure, record, 1).matching for record in range(1, 30)])
        assert find_risk_drivers(one.workspace, rank_records(one.workspace, run_id, measure), [1, 2, 3]) is not None
    assert looked[0] == looked[1]
    assert all(looked[0])


@pytest.mark.parametrize("declared", [True, False])
def test_no_public_file_holds_an_exact_value(places: tuple[Place, Place], declared: bool) -> None:
    """But for the rule itself where the levels are declared; numbers of a recoded variable stay inside, since they rest on its exact values."""
    place = places[0]
    worth = [*MEASURES, {"method": "utility.summary", "variables": ["region", "age", "income"]}]
    learnt = {**VARIABLES, "region": {"kind": "categorical", "role": "quasi_identifier"}}
    variables = VARIABLES if declared else learnt
    run_id = place.run_with_datasets(datasets("noise", 2, 5), RULES, variables, PEOPLE, CONTROLS, KEPT, measures=worth)
    public = place.let_out(run_id) / "public"
    files = [path for path in public.rglob("*") if path.is_file()]
    assert len(files) > 3
    told = False
    for path in files:
        content = path.read_bytes()
        told |= (RULE if declared else b"some levels as other") in content
        assert b"zetavale" not in (content.replace(RULE, b"") if declared else content), path.name
    assert told
    for path in public.glob("dataset-*.csv"):
        frame = pd.read_csv(path)
        assert (frame["age"] % 10 == 0).all()
        assert set(frame["region"]) <= {"north", "south", "west", "other"}
    utility = pd.read_csv(public / "utility.csv")
    assert "income" in set(utility["of"])
    assert not {"age", "region"} & set(utility["of"])


RULE = b"isle, zetavale as other"


def test_files_that_were_released_so_are_evaluated_through_the_rules(
    places: tuple[Place, Place], tmp_path: Path
) -> None:
    """The recipe of a release scores its own files against the exact original as the run did."""
    place = places[0]
    whose = (RULES, VARIABLES, PEOPLE, None, KEPT, 7, "original")
    run_id = place.run_with_datasets(datasets("copy", 1, 5), *whose)
    run = find_run(place.workspace, run_id)
    released = place.let_out(run_id) / "public"
    original = tmp_path / "people.csv"
    PEOPLE.to_csv(original, index=False)
    (tmp_path / "plan.toml").write_text(run.recipe_toml, "utf-8")
    files = [str(path) for path in sorted(released.glob("dataset-*.csv"))]
    prepared = prepare_evaluation(find_recipe(str(tmp_path / "plan.toml")), str(original), files, key=PUBLIC)
    made = read_released_dataset(place.workspace, run_id, run.recipe, 1)
    assert made is not None
    given = prepared.external_datasets[0][1]
    assert given.frame["age"].tolist() == made.frame["age"].tolist()
    assert given.frame["region"].astype(str).tolist() == made.frame["region"].astype(str).tolist()
    assert prepared.data.frame["age"].tolist() == PEOPLE["age"].tolist()
    found = execute_run(prepared.recipe, prepared.data, [given], key=PUBLIC).rows
    copies = next(
        row for row in found if row.key == "risk.identification.expected_match_risk" and row.dataset != "confidential"
    )
    assert (copies.value or 0) > 0.8 * len(PEOPLE)


def test_exact_files_are_not_taken_for_recoded_ones(tmp_path: Path) -> None:
    original = tmp_path / "people.csv"
    PEOPLE.to_csv(original, index=False)
    form = {"m": 1, "seed": 7, "order": "original", "recode": RULES}
    table = {"title": "People", "variables": VARIABLES, "synthesis": KEPT, "measure": MEASURES, "release": form}
    (tmp_path / "plan.toml").write_text(Recipe.from_table(table).to_toml(), "utf-8")
    with pytest.raises(BadInput, match="11 records have a level that is not listed"):
        prepare_evaluation(find_recipe(str(tmp_path / "plan.toml")), str(original), [str(original)], key=PUBLIC)


def test_figures_show_levels_by_their_names(places: tuple[Place, Place]) -> None:
    place = places[0]
    run_id = place.run_with_datasets(datasets("copy", 1, 5), RULES, VARIABLES, PEOPLE, None, [WHOLE[0], *KEPT])
    figures = draw_run_figures(place.workspace, [find_run(place.workspace, run_id)])
    (figure,) = (one for one in figures if one.title == "Records by region")
    (panel,) = figure.panels
    own, drawn = (dict(zip(panel.x_names, series.y, strict=True)) for series in panel.series)
    for level in ("north", "south", "west"):
        assert own[level] == drawn[level] == pytest.approx((PEOPLE["region"] == level).mean())
    assert drawn["other"] == pytest.approx(PEOPLE["region"].isin(["isle", "zetavale"]).mean())
    assert not own["other"] > 0  # left out, as what fewer than a few have is


def test_weights_by_what_is_known_are_those_of_coarse_records(places: tuple[Place, Place]) -> None:
    found = []
    for place, rules, variables, frame in (
        (places[0], RULES, VARIABLES, PEOPLE), (places[1], {}, COARSE, coarse(PEOPLE)),
    ):  # fmt: skip
        form = {"m": 1, "seed": 7, **({"recode": rules} if rules else {})}
        weights = {"known": ["region", "age"], "strength": 0.5}
        table = {"title": "People", "variables": variables, "synthesis": KEPT, "measure": MEASURES, "release": form}
        recipe = Recipe.from_table({**table, "weights": weights})
        run_id = run_recipe(place.workspace, recipe, frame, "people.csv", b"people")
        found.append(read_weights(place.workspace.tables, weights_hash(place.workspace, run_id)).tolist())
    assert found[0] == found[1]
    assert len(set(found[0])) > 5


def test_a_companion_takes_over_the_public_rules(tmp_path: Path) -> None:
    """Else the datasets beside a recoded release would have the exact values."""
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    form = {"m": 1, "seed": 7}
    table = {
        "title": "People",
        "data": {"file": "people.csv"},
        "variables": VARIABLES,
        "measure": MEASURES,
        "synthesis": KEPT,
    }
    beside = Recipe.from_table({**table, "release": form}).to_toml()
    (tmp_path / "plain.toml").write_text(beside, "utf-8")
    main = Recipe.from_table({**table, "companions": ["plain"], "release": {**form, "recode": RULES}}).to_toml()
    (tmp_path / "plan.toml").write_text(main, "utf-8")
    file = find_recipe(str(tmp_path / "plan.toml"))
    (companion,) = prepare_companion_runs(prepare_run(file, key=PUBLIC), file)
    assert companion.recipe.form.recode == Recipe.from_toml(main).form.recode


def test_a_replay_has_the_same_bytes(places: tuple[Place, Place]) -> None:
    hashes = []
    for place in places:
        form = {"m": 2, "seed": 7, "recode": RULES}
        table = {"title": "People", "variables": VARIABLES, "synthesis": KEPT, "measure": MEASURES, "release": form}
        recipe = Recipe.from_table(table)
        run_id = run_recipe(place.workspace, recipe, PEOPLE, "people.csv", b"people")
        query = "SELECT name, sha256 FROM artefact WHERE run_id = ? AND name LIKE 'draw/%' ORDER BY name"
        hashes.append([tuple(row) for row in place.workspace.connection.execute(query, (run_id,))])
        made = read_released_dataset(place.workspace, run_id, recipe, 1)
        assert made is not None
        assert (made.frame["age"] % 10 == 0).all()
        assert set(made.frame["region"].cat.categories) == {"north", "south", "west", "other"}
    assert hashes[0] == hashes[1]


def test_guesses_at_a_joined_level_are_held_against_the_group(places: tuple[Place, Place]) -> None:
    """The strongest intruder guesses "other", and is right about whoever lives on the isle."""
    step = {"target": "region", "method": "multinomial_logistic", "predictors": ["age"]}
    measure = {"method": "risk.bayesian_posterior", "records": 12}
    found = []
    for place, rules, variables, frame in (
        (places[0], RULES, VARIABLES, PEOPLE), (places[1], {}, COARSE, coarse(PEOPLE)),
    ):  # fmt: skip
        form = {"m": 1, "seed": 7, **({"recode": rules} if rules else {})}
        table = {"title": "People", "variables": variables, "synthesis": [step], "measure": [measure], "release": form}
        recipe = Recipe.from_table(table)
        run_id = run_recipe(place.workspace, recipe, frame, "people.csv", b"people")
        (asked,) = record_measures(place.workspace, run_id)
        numbers = np.flatnonzero(read_record_risks(place.workspace, asked).is_examined) + 1
        guesses = [read_record_guesses(place.workspace, run_id, asked, int(one), with_values=True) for one in numbers]
        found.append([(one.record, [(g.posterior, g.is_right, g.values) for g in one.guesses]) for one in guesses])
    assert found[0] == found[1]
    assert all(any(right for _, right, _ in one) for _, one in found[0])
