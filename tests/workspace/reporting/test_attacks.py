"""Attacks beside control records: one table for results and report, few words for the app, a table each in JSON."""

from __future__ import annotations

import pytest

from sfumato.engine.methods.rows import Row
from sfumato.engine.risk._attack import AddedSuccess, AttackResult, SuccessRate
from sfumato.workspace.reporting.attacks import attack_objects, attack_table, group_attack_rows
from sfumato.workspace.reporting.measured import result_tables
from sfumato.workspace.reporting.tables import format_table


def rows(
    attack: int,
    control: int,
    dataset: str = "synthetic",
    target: str = "",
    draw: int | None = None,
    gain: AddedSuccess | None = None,
    **params: object,
) -> list[Row]:
    rates = SuccessRate(attack, 100), SuccessRate(10, 100), SuccessRate(control, 100)
    found = AttackResult(*rates, added_success=gain).estimates(target, **params)
    return [
        Row("risk", "some_attack", one.measure, target, dataset, draw, None, one.value, one.lower, one.upper, one.baseline,
            status="computed" if one.value is not None else "not computed", reason=one.reason, params=params)
        for one in found
    ]  # fmt: skip


PLAIN = Row("risk", "uniqueness", "sample_uniques", "", "synthetic", None, None, 3.0)


def test_an_attack_is_one_line_and_leaves_the_table_of_its_family() -> None:
    found = [PLAIN, *rows(60, 20), *rows(100, 20, "confidential")]
    (plain, own), (attacks, theirs) = result_tables(found)
    assert own == [PLAIN]
    assert theirs == found[1:]
    assert [str(row[0]) for row in plain.rows] == ["Unique records in the table"]
    shown = format_table(attacks).splitlines()
    assert shown[0] == "Attacks beside control records"
    assert shown[3].split()[:7] == ["some", "attack", "synthetic", "0.6", "0.2", "0.1", "0.5"]
    assert shown[4].split()[:7] == ["some", "attack", "confidential", "1", "0.2", "0.1", "1"]
    assert max(map(len, format_table(attacks, 80).splitlines())) <= 80


def test_attacks_of_other_targets_params_and_datasets_stay_apart() -> None:
    found = [
        *rows(60, 20),
        *rows(60, 20, target="age"),
        *rows(60, 20, kind="other"),
        *rows(60, 20, draw=1),
        *rows(60, 20, "confidential"),
    ]
    assert [len(parts) for parts in group_attack_rows(found)] == [10] * 5
    assert attack_table([PLAIN]) is None


def test_an_excess_that_is_not_computed_says_so_and_why() -> None:
    (parts,) = group_attack_rows(rows(50, 100))
    assert parts["excess"].value is None
    table = attack_table(rows(50, 100))
    assert table is not None
    assert "not computed" in format_table(table)
    assert "nothing left" in format_table(table)


def test_what_the_release_adds_stands_beside_the_excess() -> None:
    found = rows(60, 20, gain=AddedSuccess(0.5, 0.1, 0.05))
    table = attack_table(found)
    assert table is not None
    titles = [column.name for column in table.columns]
    line = [getattr(cell, "text", cell) for cell in table.rows[0]]
    cells = [line[titles.index(name)] for name in ("excess value", "added value", "added interval", "detectable added")]
    assert cells == ["0.5", "0.5", "0.3775 .. 0.6225", "0.1751"]
    assert attack_objects(found)[0]["added"]["value"] == pytest.approx(0.5)


def test_json_has_a_table_an_attack() -> None:
    (one,) = attack_objects([PLAIN, *rows(60, 20, kind="several"), *rows(60, 20, draw=1, kind="several")])
    assert (one["method"], one["dataset"], one["params"], one["guesses"]) == (
        "risk.some_attack",
        "synthetic",
        {"kind": "several"},
        100.0,
    )
    assert one["excess"]["value"] == pytest.approx(0.5)
    assert set(one) == {
        "method",
        "target",
        "dataset",
        "params",
        "attack",
        "baseline",
        "control_without",
        "control",
        "excess",
        "detectable",
        "added",
        "detectable_added",
        "guesses",
        "p",
    }
