"""A sweep in the summary and in the report: its values, and what the variance behind its intervals is made of."""

from __future__ import annotations

from dataclasses import replace

from engine.rows import Row
from tui.summary import sweep_table
from workspace.report.findings import sweep_section

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
    text = sweep_table(rows())
    values, shares = text.split("\nVariance of the release's intervals: datasets / noise / both, in %\n")
    assert "EMR" in values
    assert "noise_share" not in text
    assert shares.splitlines()[-1].split() == ["0.1", "30/61/9"]


def test_without_shares_the_summary_has_none() -> None:
    assert "Variance" not in sweep_table(rows()[:2])


def test_sweeps_of_other_settings_are_tables_of_their_own() -> None:
    text = sweep_table([*rows(), *rows(replicates=20)])
    assert text.count("age, log_normal:") == 2
    assert text.count("30/61/9") == 2


def test_the_report_has_the_shares_beside_the_interval_and_not_as_measures() -> None:
    section = sweep_section(rows())
    assert section is not None
    text = str(section.markup)
    assert text.count("<table") == 1
    table = text[text.index("<table") : text.index("</table")]
    assert "30/61/9" in table
    assert "datasets/noise/both %" in table
    assert "noise_share" not in table


def test_the_report_has_the_interval_of_the_confidential_data_too() -> None:
    own = [replace(row, lower=8.5, upper=9.5) if row.dataset == "confidential" else row for row in rows()]
    section = sweep_section(own)
    assert section is not None
    assert "8.5 to 9.5" in str(section.markup)
