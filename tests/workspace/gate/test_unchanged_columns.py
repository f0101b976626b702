"""What a tool left as it was stays known: however its file writes it, risk is that of the confidential values."""

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
from sfumato.workspace.recipes import find_recipe
from sfumato.workspace.service.prepare import prepare_evaluation

N = 300
VARIABLES: dict[str, Any] = variables_of(
    "weight: continuous quasi_identifier",
    "seen: date quasi_identifier",
    "zone: categorical quasi_identifier",
    "visits: count quasi_identifier",
    "pay: continuous sensitive",
)
MEASURES: list[dict[str, Any]] = [
    {"method": "risk.identification", "known": ["weight"], "radius": {"pay": "5%"}},
    {"method": "risk.identification", "known": ["seen"], "radius": {"pay": "5%"}},
    {"method": "risk.identification", "known": ["zone", "visits"], "radius": {"pay": "5%"}},
    {"method": "risk.attribute", "known": ["weight"], "radius": {"pay": "5%"}},
    {"method": "risk.uniqueness", "keys": ["weight"]},
    {"method": "risk.uniqueness", "keys": ["seen", "zone"]},
    {"method": "risk.anonymity", "quasi_identifiers": ["weight"]},
    {"method": "utility.ecdf"},
]
STUDIES = [{"method": "studies.intruder_uncertainty", "variable": "weight", "model": "unknown", "levels": [0.0, 0.5],
            "known": ["weight"], "radius": {"pay": "5%"}}]  # fmt: skip
Evaluate = Callable[..., list[Row]]


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """300 people, each alone with their weight, of full precision, and with the second they were seen at."""
    rng = np.random.default_rng(11)
    seen = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.choice(10**7, N, replace=False), unit="s")
    return pd.DataFrame(
        {"weight": rng.lognormal(4, 0.2, N), "seen": seen, "zone": rng.integers(1, 9, N), "visits": rng.poisson(4, N),
         "pay": np.round(rng.lognormal(7, 0.5, N), 2)}
    )  # fmt: skip


def evaluating(people: pd.DataFrame, directory: Path) -> Evaluate:
    """The rows of a released table, made from the original's texts by ``column = how`` for each column that is rewritten."""

    def score(order: str = "original", shuffle: bool = False, separator: str = ",", **columns: Any) -> list[Row]:
        original = people.assign(**columns.pop("original", {}))
        spelt = columns.pop("spelt", {})
        original.assign(**{name: original[name].map(how) for name, how in spelt.items()}).to_csv(
            directory / "original.csv", index=False
        )
        written = {name: original[name].map(how) if callable(how) else how for name, how in columns.items()}
        released = original.assign(**written)
        released = released.sample(frac=1, random_state=2) if shuffle else released
        released.to_csv(directory / "released.csv", index=False, sep=separator)
        recipe = {"variables": VARIABLES, "release": {"released": ["pay"], "order": order}, "measure": MEASURES,
                  "study": STUDIES}  # fmt: skip
        (directory / "recipe.toml").write_text(tomli_w.dumps(recipe))
        files = str(directory / "original.csv"), [str(directory / "released.csv")]
        prepared = prepare_evaluation(find_recipe(str(directory / "recipe.toml")), *files, key=PUBLIC)
        return list(
            execute_run(
                prepared.recipe, prepared.data, [table for _, table in prepared.external_datasets], key=PUBLIC
            ).rows
        )

    return score


@pytest.fixture
def evaluate(people: pd.DataFrame, tmp_path: Path) -> Evaluate:
    return evaluating(people, tmp_path)


@pytest.fixture(scope="module")
def plain(people: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    """By order, the rows of a released table in which nothing is rewritten."""
    evaluate = evaluating(people, tmp_path_factory.mktemp("plain"))
    return {order: evaluate(order=order, shuffle=order == "shuffled") for order in ("original", "shuffled")}


def digits(count: int) -> Callable[[float], str]:
    return lambda number: f"{number:.{count}g}"


def value(rows: list[Row], key: str, known: list[str], target: str = "") -> float | None:
    (row,) = [
        row for row in rows
        if row.key == key and row.draw is None and row.dataset != "confidential" and row.target == target
        and known in row.params.values() and "size" not in row.params
    ]  # fmt: skip
    return row.value


RISKS = {
    ("risk.identification.expected_match_risk", "weight"): 300,
    ("risk.identification.true_match_rate", "weight"): 1,
    ("risk.attribute.risk", "weight"): 300,
    ("risk.uniqueness.replicated_uniques", "weight"): 1,
    ("risk.uniqueness.sample_uniques", "weight"): 300,
    ("risk.anonymity.k", "weight"): 1,
}


@pytest.mark.slow
@pytest.mark.parametrize("count", [17, 16, 15, 12, 9, 7])
def test_fewer_digits_of_a_known_column_do_not_lower_its_risk(evaluate: Evaluate, count: int) -> None:
    """With 15 digits 16 of 300 were found, with 12 none."""
    rows = evaluate(weight=digits(count))
    assert {found: value(rows, found[0], [found[1]]) for found in RISKS} == RISKS


@pytest.mark.slow
@pytest.mark.parametrize("count", [17, 15, 12, 9])
def test_fewer_digits_do_not_lower_the_risk_of_a_shuffled_release(evaluate: Evaluate, count: int) -> None:
    rows = evaluate(weight=digits(count), order="shuffled", shuffle=True)
    assert value(rows, "risk.uniqueness.replicated_uniques", ["weight"]) == 1
    matched = [
        row.value for row in rows if row.key.startswith(("risk.ident", "risk.attr")) and row.dataset == "synthetic"
    ]
    assert set(matched) == {None}, "what compares record with record is not computed"


SPELLINGS: dict[str, dict[str, Any]] = {
    "17 digits": {"weight": digits(17)},
    "15 digits": {"weight": digits(15)},
    "exponents": {"weight": lambda x: f"{x:.16e}", "visits": lambda x: f"{x}e0", "pay": lambda x: f"{x!r}e0"},
    "decimal commas": {"weight": lambda x: repr(x).replace(".", ","), "pay": lambda x: f"{x:.2f}".replace(".", ","),
                       "separator": ";"},
    "quoted decimal commas": {"weight": lambda x: repr(x).replace(".", ","), "visits": lambda x: f"{x},0"},
    "whole numbers as floats": {"zone": lambda x: f"{x}.0", "visits": lambda x: f"{x}.0"},
    "whole levels with exponents": {"zone": lambda x: f"{x}e0"},
    "dates with T": {"seen": lambda t: t.isoformat()},
    "dates in UTC": {"seen": lambda t: f"{t.isoformat()}Z"},
    "dates in another zone": {"seen": lambda t: t.tz_localize("UTC").tz_convert("Asia/Tokyo").isoformat()},
    "single precision": {"weight": lambda x: repr(float(np.float32(x)))},
    "pay with more decimals": {"pay": lambda x: f"{x:.20f}"},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("order", ["original", "shuffled"])
def test_the_spelling_of_values_changes_no_row(
    evaluate: Evaluate, plain: dict[str, list[Row]], spelling: str, order: str
) -> None:
    assert evaluate(**SPELLINGS[spelling], order=order, shuffle=order == "shuffled") == plain[order]


@pytest.mark.slow
@pytest.mark.parametrize("spelling", [name for name in SPELLINGS if name not in ("15 digits", "single precision")])
def test_the_spelling_of_the_original_changes_no_row(
    evaluate: Evaluate, plain: dict[str, list[Row]], spelling: str
) -> None:
    spelt = {name: how for name, how in SPELLINGS[spelling].items() if name != "separator"}
    assert evaluate(spelt=spelt) == plain["original"]


def test_another_value_does_change_rows(evaluate: Evaluate, plain: dict[str, list[Row]]) -> None:
    """The negative control of the test above."""
    assert evaluate(pay=lambda x: f"{1.2 * x:.2f}") != plain["original"]


@pytest.mark.parametrize("seen", [lambda t: f"{t:%Y-%m-%d}", lambda t: f"{t:%Y-%m-%d} 00:00:00"])
@pytest.mark.parametrize("order", ["original", "shuffled"])
def test_dates_without_their_time_of_day_are_refused_as_such(evaluate: Evaluate, seen: Any, order: str) -> None:
    with pytest.raises(BadInput, match=r"seen: holds dates without their time of day, and it is not released"):
        evaluate(seen=seen, order=order)


@pytest.mark.slow
@pytest.mark.parametrize("written", ["%Y-%m-%d", "%Y-%m-%d 00:00:00", "%Y-%m-%dT00:00:00Z", "%Y%m%d"])
@pytest.mark.parametrize("order", ["original", "shuffled"])
def test_dates_at_midnight_are_the_same_with_and_without_it(
    evaluate: Evaluate, people: pd.DataFrame, written: str, order: str
) -> None:
    days = pd.Series(pd.date_range("1950-01-01", periods=N)).sample(frac=1, random_state=1, ignore_index=True)
    rows = evaluate(
        original={"seen": days}, seen=lambda t: t.strftime(written), order=order, shuffle=order == "shuffled"
    )
    assert value(rows, "risk.uniqueness.replicated_uniques", ["seen", "zone"]) == 1
    if order == "original":
        assert value(rows, "risk.identification.expected_match_risk", ["seen"]) == N


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"weight": digits(3)}, "weight: is written with 3 digits, the original needs 7, and it is not released"),
        ({"weight": lambda x: f"{x / 1e4:.2f}"}, "weight: 300 of 300 records differ from the original by up to 100 % of it"),
        ({"weight": lambda x: f"{1.04 * x:.17g}"}, "weight: 300 of 300 records differ from the original by up to 4 % of it"),
        ({"weight": lambda x: f"{x * (1 + 1e-7):.17g}"}, "weight: 300 of 300 records differ from the original by up to 1e-05 %"),
        ({"seen": lambda t: f"{t:%Y-%m-%d %H:%M}"}, "seen: holds times without their seconds"),
        ({"seen": lambda t: t + pd.Timedelta("2h")}, "seen: 300 of 300 records differ from the original, all by 2 hours"),
        ({"visits": lambda x: x + (x > 6)}, r"visits: \d+ of 300 records differ from the original by up to 14 % of it"),
        ({"zone": lambda x: f"{x % 8 + 1}"}, "zone: 300 of 300 records differ from the original, and it is not released"),
        ({"zone": lambda x: f"0{x}"}, "zone.levels: 300 records have a level.*but for zeros before them"),
    ],
)  # fmt: skip
def test_a_column_that_is_not_the_originals_says_how_it_differs(
    evaluate: Evaluate, columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        evaluate(**columns)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"weight": digits(3)}, "weight: is written with 3 digits, the original needs 7"),
        ({"weight": lambda x: f"{1.04 * x:.17g}"}, "weight: 300 of 300 records have a value that no original record has"),
        ({"seen": lambda t: t + pd.Timedelta("40000D")}, "seen: 300 of 300 records have a value that no original record has"),
    ],
)  # fmt: skip
def test_a_shuffled_column_that_is_not_the_originals_says_how_it_differs(
    evaluate: Evaluate, columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        evaluate(order="shuffled", shuffle=True, **columns)


@pytest.mark.slow
def test_shuffled_values_that_may_be_two_originals_are_refused_and_paired_ones_are_not(
    evaluate: Evaluate, people: pd.DataFrame
) -> None:
    twins = people["weight"].where(people.index % 2 == 0, people["weight"].shift() * (1 + 1e-9))
    made = {"original": {"weight": twins}, "weight": digits(8)}
    with pytest.raises(BadInput, match=r"\d+ of 300 records could each be one of several original values"):
        evaluate(**made, order="shuffled", shuffle=True)
    rows = evaluate(**made)
    assert value(rows, "risk.identification.expected_match_risk", ["weight"]) == 300


def test_messages_on_columns_quote_no_value(evaluate: Evaluate, people: pd.DataFrame) -> None:
    for columns in ({"weight": digits(3)}, {"seen": lambda t: f"{t:%Y-%m-%d}"}, {"weight": lambda x: 1.04 * x}):
        with pytest.raises(BadInput) as caught:
            evaluate(**columns)
        for name in ("weight", "seen"):
            assert not any(str(one)[:7] in str(caught.value) for one in people[name])


def test_released_values_that_are_the_originals_with_fewer_digits_are_known_again(
    people: pd.DataFrame, tmp_path: Path
) -> None:
    """A tool that releases a column it left as it was gives it away, with 17 digits and with 12."""
    variables = {"weight": VARIABLES["weight"], "pay": VARIABLES["pay"]}
    measures = [{"method": "risk.uniqueness", "keys": ["weight"]}]
    found = []
    for order in ("original", "shuffled"):
        recipe = {
            "variables": variables,
            "release": {"released": ["weight", "pay"], "order": order},
            "measure": measures,
        }
        (tmp_path / "recipe.toml").write_text(tomli_w.dumps(recipe))
        people.to_csv(tmp_path / "original.csv", index=False)
        for count in (17, 15, 12):
            people.assign(weight=people["weight"].map(digits(count))).to_csv(tmp_path / "released.csv", index=False)
            files = str(tmp_path / "original.csv"), [str(tmp_path / "released.csv")]
            prepared = prepare_evaluation(find_recipe(str(tmp_path / "recipe.toml")), *files, key=PUBLIC)
            rows = list(
                execute_run(
                    prepared.recipe, prepared.data, [table for _, table in prepared.external_datasets], key=PUBLIC
                ).rows
            )
            found.append(value(rows, "risk.uniqueness.replicated_uniques", ["weight"]))
    assert found == [1] * 6
