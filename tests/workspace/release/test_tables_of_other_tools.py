"""``sfumato evaluate`` on tables that other tools anonymised: intervals, groups, stars, lost records, lost order.

The fixtures are small tables as ARX and sdcMicro write them; what is expected is counted here by pandas and by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tomli_w
from prepared_tables import variables_of

from sfumato.engine.errors import BadInput
from sfumato.engine.execution.tasks import execute_run
from sfumato.engine.methods.rows import Row
from sfumato.engine.methods.run import PUBLIC
from sfumato.workspace.jobs.runs import reenter_run
from sfumato.workspace.jobs.worker import run_worker
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import PreparedRun, prepare_evaluation, prepare_run
from sfumato.workspace.service.release import write_run_release
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows

VARIABLES: dict[str, Any] = variables_of(
    "age: count quasi_identifier",
    "zip: categorical quasi_identifier",
    "sex: binary quasi_identifier",
    "job: categorical quasi_identifier",
    "illness: categorical sensitive",
    "income: continuous sensitive",
)
MEASURES = ["risk.anonymity", "risk.uniqueness", "quality.non_suppressed", "quality.rilm", "quality.pearson",
            "quality.nmi_v1", "utility.ecdf", "risk.identification"]  # fmt: skip
FORM: dict[str, Any] = {"generalised": ["age", "zip", "sex", "job"]}


@pytest.fixture
def people() -> pd.DataFrame:
    """Sixty people of three jobs, and four whom nobody resembles."""
    rng = np.random.default_rng(5)
    n = 60
    plain = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "zip": rng.choice(["8101", "8102", "9001", "9002"], n),
            "sex": rng.choice(["f", "m"], n),
            "job": rng.choice(["clerk", "nurse", "baker"], n),
            "illness": rng.choice(["flu", "cold", "gout"], n),
            "income": np.round(np.exp(rng.normal(7, 0.3, n)), 2),
        }
    )
    rare = pd.DataFrame(
        {"age": [91, 93, 95, 97], "zip": ["8101"] * 4, "sex": list("fmfm"), "job": ["baker"] * 4,
         "illness": ["flu"] * 4, "income": [10.0, 20.0, 30.0, 40.0]}
    )  # fmt: skip
    return pd.concat([plain.iloc[:30], rare, plain.iloc[30:]], ignore_index=True)


def like_arx(people: pd.DataFrame) -> pd.DataFrame:
    """Ages in tens, half-open; zips masked; sexes as they are; a set of jobs; the four outliers all stars."""
    low = people["age"] // 10 * 10
    shown = people.assign(
        age="[" + low.astype(str) + ", " + (low + 10).astype(str) + "[",
        zip=people["zip"].str[:2] + "**",
        job=people["job"].map({"clerk": "{clerk, nurse}", "nurse": "{clerk, nurse}", "baker": "baker"}),
    )
    shown.loc[people["age"] > 90, ["age", "zip", "sex", "job"]] = "*"
    return shown


@pytest.fixture
def prepare(people: pd.DataFrame, tmp_path: Path) -> Callable[..., PreparedRun]:
    """Write the original and a released table, and prepare to score the one with the other."""

    def make(released: pd.DataFrame, form: dict[str, Any] = FORM, **sections: Any) -> PreparedRun:
        variables = sections.pop("variables", VARIABLES)
        original = sections.pop("original", people)
        original.to_csv(tmp_path / "original.csv", index=False)
        released.to_csv(tmp_path / "released.csv", index=False)
        measures = [{"method": method} for method in MEASURES]
        measures[-1]["radius"] = {"age": 5}
        recipe = {"variables": variables, "release": form, "measure": measures, **sections}
        (tmp_path / "recipe.toml").write_text(tomli_w.dumps(recipe))
        files = str(tmp_path / "original.csv"), [str(tmp_path / "released.csv")]
        return prepare_evaluation(find_recipe(str(tmp_path / "recipe.toml")), *files, key=PUBLIC)

    return make


def rows_of(prepared: PreparedRun) -> dict[tuple[str, str], Row]:
    outcome = execute_run(
        prepared.recipe, prepared.data, [released for _, released in prepared.external_datasets], key=PUBLIC
    )
    return {
        (row.key, row.target): row for row in outcome.rows if row.draw is None and row.dataset != "confidential"
        if "size" not in row.params
    }  # fmt: skip


def value(rows: dict[tuple[str, str], Row], key: str, target: str = "") -> float | None:
    return rows[key, target].value


def test_a_table_of_arx_is_measured(people: pd.DataFrame, prepare: Callable[..., PreparedRun]) -> None:
    shown = like_arx(people)
    prepared = prepare(shown)
    (_, released), rows = prepared.external_datasets[0], rows_of(prepared)
    kept = shown[people["age"] < 90]
    groups = kept.groupby(["age", "zip", "sex", "job"])
    assert (released.origin, len(released)) == ("anonymised", 60)
    assert released.classes is not None
    assert (released.classes < 0).tolist() == (people["age"] > 90).tolist()
    assert {row.dataset for row in rows.values()} == {"anonymised"}
    assert value(rows, "risk.anonymity.k") == groups.size().min()
    assert value(rows, "risk.anonymity.classes") == groups.ngroups
    assert value(rows, "risk.anonymity.p") == groups[["illness", "income"]].nunique().to_numpy().min()
    assert value(rows, "risk.anonymity.l_distinct", "illness") == groups["illness"].nunique().min()
    assert value(rows, "risk.uniqueness.sample_uniques") == (groups.size() == 1).sum()
    assert value(rows, "quality.non_suppressed.share") == 60 / 64


def test_data_quality_of_labels_is_the_papers_or_says_why_not(
    people: pd.DataFrame, prepare: Callable[..., PreparedRun]
) -> None:
    """RILM of numbers is the range of the *original* values in a class (§3.3.1); correlation needs numbers (§3.2)."""
    rows = rows_of(prepare(like_arx(people)))
    kept = people[people["age"] < 90]
    keys = [like_arx(people).loc[kept.index, name] for name in ("age", "zip", "sex", "job")]
    ranges = kept.groupby(keys)["age"].transform(np.ptp)
    expected = 1 - (ranges / np.ptp(people["age"])).mean()
    assert value(rows, "quality.rilm.numerical", "age") == pytest.approx(expected)
    assert value(rows, "quality.rilm.categorical", "zip") == 0, "every zip is masked, and the default tree is flat"
    for key in ("quality.pearson.rho", "quality.nmi_v1.nmi"):
        row = rows[key, "age"]
        assert (row.value, row.reason) == (None, "the release has intervals of this variable, not numbers")
        assert value(rows, key, "sex") is not None, "sexes are as they were"
    for key in ("utility.ecdf.max_abs_difference", "risk.identification.true_match_rate"):
        assert rows[key, ""].value is None
        assert rows[key, ""].reason


def test_a_group_is_as_large_as_the_lowest_node_over_it(
    people: pd.DataFrame, prepare: Callable[..., PreparedRun]
) -> None:
    """The g-tree example of §3.3.2: foo and bar as {foo, bar} lose 10 of 100."""
    tree = {
        "rows": [["clerk", "office", "*"], ["nurse", "office", "*"], ["baker", "baker", "*"]],
        "sizes": {"office": 10, "*": 100},
    }
    measure = [{"method": "quality.rilm", "variables": ["job"], "hierarchies": {"job": tree}}]
    ours = like_arx(people)[people["age"] < 90]
    rows = rows_of(prepare(ours, original=people[people["age"] < 90], measure=measure))
    share = (ours["job"] == "{clerk, nurse}").mean()
    assert value(rows, "quality.rilm.categorical", "job") == pytest.approx(1 - 0.1 * share)
    starred = ours.assign(job=ours["job"].where(ours["job"] == "baker", "*"))
    rows = rows_of(prepare(starred, original=people[people["age"] < 90], measure=measure))
    assert value(rows, "quality.rilm.categorical", "job") == pytest.approx(1 - share)


@pytest.mark.slow
def test_fewer_records_in_another_order_need_a_word(people: pd.DataFrame, prepare: Callable[..., PreparedRun]) -> None:
    shown = like_arx(people)[people["age"] < 90].sample(frac=1, random_state=3)
    with pytest.raises(BadInput, match=r'60 records, the original has 64; .* link = "id", or say order = "shuffled"'):
        prepare(shown)
    rows = rows_of(prepare(shown, {**FORM, "order": "shuffled"}))
    in_order = rows_of(prepare(like_arx(people)))
    for key in [key for key in rows if key[0].startswith(("risk.anonymity", "risk.uniqueness", "quality.non_"))]:
        assert rows[key].value == in_order[key].value, key
    for key, row in rows.items():
        if key[0].startswith(("quality.rilm", "quality.pearson", "risk.identification")):
            assert (row.value, row.reason) == (
                None, "the release is not in the original's order and does not say which record is whose"
            ), key  # fmt: skip


@pytest.mark.slow
def test_an_identifier_links_records_whatever_their_order(
    people: pd.DataFrame, prepare: Callable[..., PreparedRun]
) -> None:
    variables = {"person": {"kind": "categorical", "role": "identifier"}, **VARIABLES}
    named = people.assign(person=[f"p{i:03}" for i in np.random.default_rng(1).permutation(64)])
    shown = like_arx(people).assign(person=named["person"])
    linked = {**FORM, "link": "person"}
    lost = shown[people["age"] < 90].sample(frac=1, random_state=3)
    sections = {"original": named, "variables": variables}
    in_order = rows_of(prepare(shown, **sections))
    for table in (lost, shown.sample(frac=1, random_state=4)):
        rows = rows_of(prepare(table, linked, **sections))
        assert {key: row.value for key, row in rows.items()} == {key: row.value for key, row in in_order.items()}
    with pytest.raises(BadInput, match="1 record repeats an identifier"):
        prepare(pd.concat([lost, lost.head(1)]), linked, **sections)
    with pytest.raises(BadInput, match=r"person\.levels: 1 record has a level that is not listed"):
        prepare(lost.assign(person=["p999", *lost["person"][1:]]), linked, **sections)


@pytest.mark.slow
def test_intervals_and_groups_that_miss_the_original_show_that_the_order_is_lost(
    people: pd.DataFrame, prepare: Callable[..., PreparedRun]
) -> None:
    shown = like_arx(people)
    with pytest.raises(BadInput, match=r"age: \d+ of 64 records do not contain the original value; keep the records"):
        prepare(shown.assign(age=np.roll(shown["age"], 1), zip="81**"))
    with pytest.raises(BadInput, match=r"job: \d+ of 64 records do not contain"):
        prepare(shown.assign(job="{clerk, nurse}"))
    with pytest.raises(BadInput, match=r"illness: \d+ of 60 records differ from the original, and it is not released"):
        prepare(shown.assign(illness=np.roll(shown["illness"], 1)))


def test_values_that_are_not_declared_say_how_to_declare_them(
    people: pd.DataFrame, prepare: Callable[..., PreparedRun]
) -> None:
    with pytest.raises(BadInput, match=r'age: 64 records are not a number.*generalised = \["age"\]') as caught:
        prepare(like_arx(people), {"released": ["age", "zip", "sex", "job"]})
    assert "micro_aggregated" in caught.value.message
    with pytest.raises(BadInput, match=r'not whole numbers.*micro_aggregated = \["age"\]'):
        prepare(people.assign(age=people["age"] + 0.5), {"released": ["age"]})
    with pytest.raises(BadInput, match="every record is suppressed"):
        prepare(people.assign(**dict.fromkeys(FORM["generalised"], "*")))


def test_class_means_are_numbers(people: pd.DataFrame, prepare: Callable[..., PreparedRun]) -> None:
    classes = people["age"] // 10
    shown = people.assign(
        age=people.groupby(classes)["age"].transform("mean"),
        sex=(people["sex"] == "m").groupby(classes).transform("mean"),
    )
    form = {"micro_aggregated": ["age", "sex"]}
    rows = rows_of(prepare(shown, form, measure=[{"method": "quality.pearson"}, {"method": "quality.ilm"}]))
    assert value(rows, "quality.pearson.rho", "age") == pytest.approx(np.corrcoef(people["age"], shown["age"])[0, 1])
    own = (people["sex"] == "m").astype(float)
    assert value(rows, "quality.pearson.rho", "sex") == pytest.approx(max(0, np.corrcoef(own, shown["sex"])[0, 1]))
    assert {row.dataset for row in rows.values()} == {"anonymised"}


@pytest.mark.slow
def test_empty_cells_are_suppressed_values_as_in_sdcmicro(
    people: pd.DataFrame, prepare: Callable[..., PreparedRun]
) -> None:
    holes = people.assign(age=people["age"].astype("object"), zip=people["zip"].astype("object"))
    holes.loc[::7, "age"] = None
    holes.loc[::5, "zip"] = None
    rows = rows_of(prepare(holes, {"generalised": ["age", "zip"]}))
    shown = holes.fillna("*")
    groups = shown.groupby([shown["age"].astype(str), "zip", "sex", "job"])
    assert value(rows, "quality.non_suppressed.share") == 1, "sex and job of all records are shown"
    assert value(rows, "risk.anonymity.classes") == groups.ngroups
    gone = (shown["age"] == "*") & (shown["zip"] == "*")
    wholly = holes.assign(**{name: holes[name].mask(gone) for name in ("sex", "job")})
    groups = shown[~gone].groupby([shown["age"].astype(str), "zip", "sex", "job"])
    for generalised in (["age", "zip"], ["age", "zip", "sex", "job"]):
        rows = rows_of(prepare(wholly, {"generalised": generalised}))
        assert value(rows, "quality.non_suppressed.share") == 1 - gone.mean()
        assert value(rows, "risk.anonymity.classes") == groups.ngroups


def test_a_hidden_cell_is_no_suppressed_record(people: pd.DataFrame, prepare: Callable[..., PreparedRun]) -> None:
    """Three jobs in ten are hidden, and all else is shown: RILM .70, and no record is lost (Lighthouse §3.3.2, §3.5)."""
    people = people.iloc[:60]
    stars = people.assign(job=people["job"].where(people.index % 10 > 2, "*"))
    measure = [{"method": "quality.rilm", "variables": ["job"]}, {"method": "quality.non_suppressed"},
               {"method": "risk.anonymity"}]  # fmt: skip
    rows = rows_of(prepare(stars, {"generalised": ["job"]}, original=people, measure=measure))
    assert value(rows, "quality.rilm.categorical", "job") == pytest.approx(0.7)
    assert value(rows, "quality.non_suppressed.share") == 1
    classes = stars.groupby(["age", "zip", "sex", "job"])
    assert value(rows, "risk.anonymity.classes") == classes.ngroups


def test_a_hidden_number_is_generalised_to_the_root(people: pd.DataFrame, prepare: Callable[..., PreparedRun]) -> None:
    """Alone in its class a hidden age had no range to lose, and counted as kept."""
    people = people.iloc[:60].assign(zip=[f"{i:04}" for i in range(60)])
    stars = people.assign(age=people["age"].astype("object").where(people.index % 10 > 2, "*"))
    measure = [{"method": "quality.rilm", "variables": ["age"]}, {"method": "quality.ilm"}]
    rows = rows_of(prepare(stars, {"generalised": ["age"]}, original=people, measure=measure))
    assert value(rows, "quality.rilm.numerical", "age") == pytest.approx(0.7)
    assert value(rows, "quality.ilm.ilm") == pytest.approx(0.3)


@pytest.mark.slow
@pytest.mark.parametrize("hidden", ["*", "***", ""])
def test_a_record_is_suppressed_where_class_means_are_hidden_too(
    people: pd.DataFrame, prepare: Callable[..., PreparedRun], hidden: str
) -> None:
    means = people.groupby("sex")["age"].transform("mean").astype("object")
    rare = people["age"] > 90
    form = {"generalised": ["zip", "sex", "job"], "micro_aggregated": ["age"]}
    labels = like_arx(people).assign(age=means)
    rows = rows_of(prepare(labels, form))
    assert value(rows, "quality.non_suppressed.share") == 1, "their mean age is shown"
    rows = rows_of(prepare(labels.assign(age=means.mask(rare, hidden)), form))
    assert value(rows, "quality.non_suppressed.share") == 60 / 64


@pytest.mark.slow
@pytest.mark.parametrize("extra", [{}, {"order": "shuffled"}])
def test_a_worker_finds_what_the_engine_finds_also_when_done_again(
    people: pd.DataFrame, prepare: Callable[..., PreparedRun], workspace: Workspace, extra: dict[str, str]
) -> None:
    prepared = prepare(like_arx(people), {**FORM, **extra}, threshold=[{"value": "risk.anonymity.k", "min": 2}])
    run_id = prepared.enter(workspace)
    again = reenter_run(workspace, run_id)
    run_worker(workspace.directory, idle=0)
    alone = execute_run(
        prepared.recipe,
        prepared.data,
        [released for _, released in prepared.external_datasets],
        key=workspace.read_workspace_key(),
    )
    assert read_result_rows(workspace, run_id) == read_result_rows(workspace, again) == list(alone.rows)


@pytest.mark.slow
@pytest.mark.parametrize("output", ["generalised", "micro_aggregated"])
@pytest.mark.parametrize("order", ["original", "shuffled"])
def test_our_own_release_is_scored_as_the_run_scored_it(
    people: pd.DataFrame, workspace: Workspace, tmp_path: Path, output: str, order: str
) -> None:
    """The steps of the recipe say what the released values are; in the original's order every number is the run's own."""
    people.to_csv(tmp_path / "people.csv", index=False)
    recipe = {
        "data": {"file": "people.csv"},
        "variables": VARIABLES,
        "release": {"seed": 3, "order": order, "audience": "enclave"},
        "anonymisation": [{"method": "mondrian", "k": 4, "output": output}],
        "measure": [{"method": method} for method in MEASURES[:5]],
    }
    (tmp_path / "recipe.toml").write_text(tomli_w.dumps(recipe))
    found = find_recipe(str(tmp_path / "recipe.toml"))
    run_id = prepare_run(found, key=PUBLIC).enter(workspace)
    run_worker(workspace.directory, idle=0)
    write_run_release(workspace, run_id, tmp_path / "out")
    prepared = prepare_evaluation(
        found, str(tmp_path / "people.csv"), [str(tmp_path / "out/public/dataset-ANONYMISED-01.csv")], key=PUBLIC
    )
    ours = {
        (r.key, r.target, str(r.params)): r.value
        for r in read_result_rows(workspace, run_id)
        if r.dataset == "anonymised"
    }
    outcome = execute_run(
        prepared.recipe, prepared.data, [released for _, released in prepared.external_datasets], key=PUBLIC
    )
    theirs = {(r.key, r.target, str(r.params)): r for r in outcome.rows if r.dataset == "anonymised"}
    assert theirs.keys() == ours.keys() or order == "shuffled"
    needs_pairs = ("quality.rilm", "quality.pearson")
    for key, row in theirs.items():
        if order == "shuffled" and key[0].startswith(needs_pairs):
            assert row.value is None
        else:
            assert row.value == (None if ours[key] is None else pytest.approx(ours[key])), key
