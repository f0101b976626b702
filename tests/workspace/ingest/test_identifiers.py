"""Columns that may say who a record is are told with reasons, which hold no value; measurements and codes are not suspected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.schema import Role
from sfumato.engine.errors import BadInput
from sfumato.workspace.ingest.columns import NO_VALUE
from sfumato.workspace.ingest.identifiers import suspected_identifiers
from sfumato.workspace.service.importing import ImportSelection, import_file

N = 200
RNG = np.random.default_rng(1)
SYLLABLES = ("an", "bel", "cor", "dan", "el", "fi", "gor", "ha", "ir", "jo")


def words(i: int) -> str:
    """A made-up word of three syllables, another for each number below 1,000."""
    return "".join(SYLLABLES[int(digit)] for digit in f"{i:03d}")


IDENTIFIERS = {
    "mail": [f"{words(i)}@example.org" for i in range(N)],
    "contact": [f"+49 30 {1_000_000 + 37 * (i // 2)}" for i in range(N)],
    "host_name": [words(i % 90).title() for i in range(N)],
    "hostId": [70_000 + i // 3 for i in range(N)],
    "record": [f"R{i:05d}" for i in range(N)],
    "remarks": [f"the {words(i)} and the {words(i + 1)} were there {i % 120}" for i in range(N)],
    "site": [f"https://example.org/{i % 60}" for i in range(N)],
    "key": [f"{i % 150:08x}-0000-4000-8000-{i % 150:012x}" for i in range(N)],
}
OTHERS = {
    "income": np.round(np.exp(RNG.normal(10, 1, N)), 2),
    "age": RNG.integers(18, 90, N),
    "region_name": RNG.choice(["North", "South", "East"], N),
    "postcode": RNG.integers(10_000, 10_040, N),
    "visited": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N), unit="h"),
    "holiday_id": RNG.integers(1, 15, N),
    "version": RNG.choice(["1.2.3", "1.2.4"], N),
    "wage": RNG.choice([f"{i}.50" for i in range(60)], N).astype(float),
}


def test_what_may_say_who_a_record_is_is_suspected_and_nothing_else() -> None:
    found = suspected_identifiers(pd.DataFrame({**IDENTIFIERS, **OTHERS}))
    assert set(found) == set(IDENTIFIERS)
    text = " ".join(why for reasons in found.values() for why in reasons)
    assert not [value for column in IDENTIFIERS.values() for value in column if str(value) in text]


def test_order_of_records_and_missing_values_change_no_suspicion() -> None:
    frame = pd.DataFrame({**IDENTIFIERS, **OTHERS})
    turned = pd.concat([frame, frame.iloc[:0].reindex(range(5))]).sample(frac=1, random_state=3)
    assert suspected_identifiers(turned) == suspected_identifiers(frame)


@pytest.mark.slow
def test_an_import_leaves_them_out_unless_its_owner_says_otherwise(tmp_path: Path) -> None:
    frame = pd.DataFrame({**IDENTIFIERS, **OTHERS, "empty": [None] * N})
    frame.to_csv(tmp_path / "people.csv", index=False)
    found = import_file(
        tmp_path / "ws", str(tmp_path / "people.csv"), "", None, ImportSelection(keep=("hostId",), leave_out=("age",))
    )
    out = {one.variable.name: one.exclusion_reasons for one in found.columns if not one.is_included}
    assert set(out) == {*IDENTIFIERS, "empty", "age"} - {"hostId"}
    assert out["empty"] == (NO_VALUE,), "a column without any value is named, and refuses no file"
    assert "# empty = " in found.recipe
    assert f"left out: {NO_VALUE}" in found.recipe
    assert "\nhostId = " in found.recipe
    assert [one.variable.role for one in found.columns if one.variable.name == "hostId"] == [Role.OTHER]
    with pytest.raises(BadInput, match='no column "ages"; did you mean "age"'):
        import_file(tmp_path / "ws", str(tmp_path / "people.csv"), "", None, ImportSelection(only=("ages",)))


def test_records_are_chosen_as_a_run_of_the_recipe_chooses_them(tmp_path: Path) -> None:
    pd.DataFrame({"x": range(500), "g": ["a", "b"] * 250}).to_csv(tmp_path / "t.csv", index=False)
    asked = ImportSelection(where="g = 'a'", sample=40, only=("g",))
    found = import_file(tmp_path / "ws", str(tmp_path / "t.csv"), "", None, asked)
    assert found.records == 40
    assert "where = \"g = 'a'\"" in found.recipe
    assert "sample = 40" in found.recipe
