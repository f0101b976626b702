"""A sweep in the summary and in the report: its values, and what the variance behind its intervals is made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from households import SCHEMA, as_microdata, draw_households
from prepared_workspaces import run_recipe

from sfumato.engine.methods.registry import registry
from sfumato.engine.methods.rows import Row
from sfumato.engine.recipe.recipe import Recipe
from sfumato.tui.cli.summary import result_tables_text, study_text, sweeps_text
from sfumato.tui.findings.study_views import CurveView, group_by_study
from sfumato.workspace.plots.curves import RunRows, sweep_figures
from sfumato.workspace.reporting.results import TableContext, sweep_table
from sfumato.workspace.reporting.tables import table_html
from sfumato.workspace.store.workspace import Workspace
from sfumato.workspace.views.results import read_result_rows
from sfumato.workspace.views.studies import read_study_curves

SHARES = {"dataset_share": 0.304, "noise_share": 0.606, "interaction_share": 0.09}


def swept(measure: str, value: float, dataset: str = "synthetic", **params: object) -> Row:
    ends = (None, None) if dataset == "confidential" else (value - 1, value + 1)
    given = {"variable": "age", "model": "log_normal", **params}
    return Row(
        "studies", "intruder_uncertainty", measure, "", dataset, None, 0.1, value, *ends, unit="records", params=given
    )


def rows(**params: object) -> list[Row]:
    shares = [swept(name, share, of="expected_match_risk", **params) for name, share in SHARES.items()]
    own = [
        swept("expected_match_risk", value, data, **params)
        for data, value in (("confidential", 9.0), ("synthetic", 4.0))
    ]
    return [*own, *shares]


def test_the_summary_says_the_shares_below_the_values_and_not_as_measures() -> None:
    text = sweeps_text(rows(), {})
    values, shares = text.split("\nVariance of the release's intervals: datasets / noise / both, in %\n")
    assert "EMR" in values
    assert "noise_share" not in text
    assert shares.splitlines()[-1].split() == ["0.1", "30/61/9"]


def test_without_shares_the_summary_has_none() -> None:
    assert "Variance" not in sweeps_text(rows()[:2], {})


def test_sweeps_of_other_settings_are_tables_of_their_own() -> None:
    text = sweeps_text([*rows(), *rows(replicates=20)], {})
    assert text.count("age, log_normal:") == 2
    assert text.count("30/61/9") == 2


def test_a_sweep_of_units_is_a_table_of_its_own_that_names_them() -> None:
    text = sweeps_text([*rows(), *rows(by="unit")], {}, "households")
    assert text.count("age, log_normal:") == 1
    assert text.count("age, log_normal, by household:") == 1
    assert text.count("30/61/9") == 2
    assert "age, log_normal, by unit:" in sweeps_text(rows(by="unit"), {})
    assert "by household" in str(table_html(sweep_table(rows(by="unit"), unit_noun="households")))


@pytest.mark.slow
def test_a_stored_sweep_of_households_is_drawn_and_summarised_beside_that_of_people(workspace: Workspace) -> None:
    variables = {one.name: {"kind": str(one.kind), "role": str(one.role)} for one in SCHEMA}
    study = {"variable": "age", "model": "relative", "known": ["sex", "age"], "synthesised": ["income"], "radius": {"income": "20%"}}  # fmt: skip
    recipe = Recipe.from_table(
        {
            "variables": variables,
            "release": {"m": 2, "seed": 3},
            "synthesis": [{"target": "income", "method": "linear_regression", "predictors": ["age"]}],
            "study": [{"method": "studies.intruder_uncertainty", "levels": [0.0, 0.1], "replicates": 2, **study}],
        }
    )
    data = as_microdata(draw_households(np.random.default_rng(4), 60), recipe.schema)
    run_id = run_recipe(workspace, recipe, data, "people.csv", b"people")
    views = [CurveView(one, {}, "households") for one in group_by_study(read_study_curves(workspace, run_id))]
    # Households, whom an intruder finds, come before their records.
    assert [view.title for view in views] == ["age, relative, by household, income ±20%", "age, relative, income ±20%"]
    households, people = views
    assert "attribute_risk" in people.pictures
    assert list(households.pictures) == [
        "expected_match_risk", "true_match_rate", "false_match_rate", "unique_matches",
        "largest_expected_match_risk", "largest_true_match_rate",
    ]  # fmt: skip
    largest = next(one for one in households.measures if one[0].measure == "largest_expected_match_risk")
    assert [curve.dataset for curve in largest] == ["confidential", "synthetic"]
    assert all(curve.variance_shares or curve.dataset == "confidential" for curve in largest)
    rows = [row for row in read_result_rows(workspace, run_id) if row.draw is None]
    text = "\n".join(result_tables_text(rows, recipe, TableContext()))
    assert "age, relative, by household: the confidential data" in text
    titles = [figure.title for figure in sweep_figures([RunRows("r", rows)])]
    assert titles == ["Risk by uncertainty: relative of age", "Risk by uncertainty: relative of age, by unit"]


def point(measure: str, level: float | None, value: float | None, dataset: str = "confidential") -> Row:
    size = {} if level is None else {"size": round(100 * level)}
    return Row("studies", "minimisation", measure, "", dataset, None, level, value, unit="records" if level is None else "",
               status="not computed" if value is None else "computed", reason="" if value is not None else "none is enough",
               params={"k": 5, **size})  # fmt: skip


def test_a_study_that_sums_up_gives_its_answer_first_and_then_a_line_a_point() -> None:
    points = [
        *(point("rho", level, value) for level, value in ((1.0, 0.91), (1.5, 0.93), (2.0, 0.97))),
        *(point("passing", level, value) for level, value in ((1.0, 0.5), (1.5, 1.0), (2.0, 1.0))),
        *(point("rho", level, None, "synthetic") for level in (1.0, 1.5, 2.0)),
    ]
    method = registry()["studies.minimisation"]
    text = study_text(method, [*points, point("smallest_size", None, 150.0)])
    assert method.title == "Smallest sufficient sample"
    answer, blank, heads, _, *lines = text.splitlines()
    assert (
        answer == "A sample of 150 records is enough: every sub-sample of this size meets the limits of data quality."
    )
    assert (blank, heads.split()) == ("", ["level", "size", "rho", "meet", "all", "limits"])
    assert [line.split() for line in lines] == [
        ["1", "100", "0.91", "0.5"], ["1.5", "150", "0.93", "1"], ["2", "200", "0.97", "1"]
    ]  # fmt: skip
    without = study_text(method, [*points, point("smallest_size", None, None)])
    assert without.startswith("Smallest sufficient sample (k 5) was not computed: none is enough.\n")


def test_the_report_has_the_shares_beside_the_interval_and_not_as_measures() -> None:
    text = str(table_html(sweep_table(rows())))
    assert text.count("<table") == 1
    table = text[text.index("<table") : text.index("</table")]
    assert "30/61/9" in table
    assert "datasets/noise/both %" in table
    assert "noise_share" not in table


def test_the_report_has_the_interval_of_the_confidential_data_too() -> None:
    own = [replace(row, lower=8.5, upper=9.5) if row.dataset == "confidential" else row for row in rows()]
    assert "8.5 .. 9.5" in table_html(sweep_table(own))
