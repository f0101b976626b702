from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import BadInput


def one(values: Any, kind: Kind, policy: MissingPolicy = MissingPolicy.REFUSE, **variable: Any) -> Microdata:
    """Microdata of one column called a."""
    return conform_to_schema(pd.DataFrame({"a": values}), Schema((Variable("a", kind, **variable),)), policy)


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (["b", "a", "b"], ["a", "b"]),
        (["10", "9", "1"], ["1", "9", "10"]),
        ([10, 9, 1], ["1", "9", "10"]),
        ([10.0, 9.0, 1.0], ["1", "9", "10"]),
        ([0.5, 10.0, 1.5], ["0.5", "1.5", "10.0"]),
        ([True, False, True], ["False", "True"]),
        (pd.array([2, 1, 2], dtype="Int64"), ["1", "2"]),
        (pd.Categorical(["z", "b", "b"], ["z", "b"]), ["b", "z"]),
        (pd.Categorical([2, 1, 2]), ["1", "2"]),
        (["nan", "2", "1"], ["1", "2", "nan"]),
        (["01", "1", "0"], ["0", "01", "1"]),
    ],
)
def test_levels_are_text_in_natural_order(values: Any, levels: list[str]) -> None:
    column = one(values, Kind.CATEGORICAL).column("a")
    assert list(column.cat.categories) == levels
    assert not column.cat.ordered


def test_the_order_of_rows_does_not_decide_the_order_of_levels() -> None:
    assert list(one(["1", "01"], Kind.CATEGORICAL).column("a").cat.categories) == list(
        one(["01", "1"], Kind.CATEGORICAL).column("a").cat.categories
    )


def test_listed_levels_keep_their_order_and_may_be_unused() -> None:
    data = one(["low", "high"], Kind.ORDINAL, levels=("low", "middle", "high"))
    assert list(data.column("a").cat.categories) == ["low", "middle", "high"]
    assert data.column("a").cat.ordered
    assert data.numbers("a").tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    ("values", "kind", "dtype"),
    [
        ([1, 2], Kind.COUNT, "int64"),
        ([1.0, 2.0], Kind.COUNT, "int64"),
        (["1", "2"], Kind.COUNT, "int64"),
        (pd.Categorical(["1", "2"]), Kind.COUNT, "int64"),
        (pd.array([1, 2], dtype="Int64"), Kind.COUNT, "int64"),
        ([1, 2], Kind.CONTINUOUS, "float64"),
        (["1.5", "2"], Kind.CONTINUOUS, "float64"),
        (["2019-07-31", "2020-02-29"], Kind.DATE, "datetime64[s]"),
        ([20190731, 20200229], Kind.DATE, "datetime64[s]"),
        (pd.to_datetime(["2019-07-31", "2020-02-29"]), Kind.DATE, "datetime64[s]"),
        ([pd.Timestamp("2019-07-31").date(), pd.Timestamp("2020-02-29").date()], Kind.DATE, "datetime64[s]"),
        (["2019-07-31T10:00:00Z", "2020-02-29T10:00:00+01:00"], Kind.DATE, "datetime64[s]"),
        (["2019-07-31T10:00:00Z", "2020-02-29"], Kind.DATE, "datetime64[s]"),
    ],
)
def test_every_kind_has_one_dtype(values: Any, kind: Kind, dtype: str) -> None:
    data = one(values, kind)
    assert str(data.column("a").dtype) == dtype
    if kind is Kind.DATE:
        assert np.floor(data.numbers("a")).tolist() == [18108.0, 18321.0]


def test_numbers_of_dates_are_days_with_the_time_of_day() -> None:
    """date -u -d '1969-12-31 18:00' +%s gives -21600, which is a quarter of a day before 1970."""
    data = one(["2019-07-31T12:00:00Z", "1969-12-31T18:00:00", "1970-01-01", "2020-02-29T10:00:00+01:00"], Kind.DATE)
    assert data.numbers("a").tolist()[:3] == [18108.5, -0.25, 0.0]
    assert data.numbers("a")[3] == pytest.approx(18321.375)


def test_moments_whole_days_apart_are_so_exactly_and_every_second_is_told() -> None:
    times = pd.date_range("1969-12-31", periods=3 * 86_400, freq="s")
    numbers = one(times, Kind.DATE).numbers("a")
    assert (numbers[86_400:] - numbers[:-86_400] == 1.0).all()
    assert (np.diff(numbers) > 0).all()
    np.testing.assert_allclose(numbers * 86_400, np.arange(len(times)) - 86_400, rtol=0, atol=0.05)


@pytest.mark.parametrize(
    "values",
    [
        ["2020-01-01 10:00:00.123", "2020-01-01 10:00:00.456", "2020-01-01"],
        pd.to_datetime(["2020-01-01 10:00:00.123456789", "2020-01-01 10:00:00.000001", "2020-01-01"], format="ISO8601"),
    ],
)
def test_times_finer_than_a_second_are_refused_and_not_cut(values: Any) -> None:
    with pytest.raises(BadInput, match="2 records have a time finer than a second; round it to seconds"):
        one(values, Kind.DATE)
    assert one(["2020-01-01 10:00:00.000"], Kind.DATE).numbers("a").tolist() == pytest.approx([18262 + 10 / 24])


@pytest.mark.parametrize(
    ("values", "kind", "variable", "place", "message"),
    [
        (["1", "two"], Kind.COUNT, {}, "variables.a", '1 record is not a number, as a count must be; is it "categorical"?'),
        ([1.0, float("inf")], Kind.CONTINUOUS, {}, "variables.a", "1 record is not a number"),
        ([1.5, 2.0], Kind.COUNT, {}, "variables.a", 'is it "continuous"?'),
        ([1e300, 2.0], Kind.COUNT, {}, "variables.a", "too large to count exactly"),
        ([2**53 + 1, 2], Kind.COUNT, {}, "variables.a", "too large to count exactly"),
        (pd.to_datetime(["2019-07-31"]), Kind.COUNT, {}, "variables.a", 'is it "date"?'),
        ([-1, 2], Kind.COUNT, {}, "variables.a.bounds", "1 record is below 0"),
        ([1, 9], Kind.COUNT, {"bounds": (0, 5)}, "variables.a.bounds", "1 record is above 5"),
        ([1.0, 9.0], Kind.CONTINUOUS, {"bounds": (2, None)}, "variables.a.bounds", "1 record is below 2"),
        (["2019-13-01", "2019-01-01"], Kind.DATE, {}, "variables.a", "1 record is not a date"),
        (["a", "b", "c"], Kind.BINARY, {}, "variables.a.kind", "the column has 3 levels"),
        (["a", "b", "b"], Kind.ORDINAL, {"levels": ("a",)}, "variables.a.levels", "2 records have a level that is not listed (1 such"),
        (["a", None], Kind.CATEGORICAL, {}, "variables.a", '1 of 2 records have no value; say missing = "drop"'),
        ([], Kind.COUNT, {}, "data", "no record is left"),
    ],
)  # fmt: skip
def test_a_column_that_breaks_its_kind_is_refused(
    values: Any, kind: Kind, variable: dict[str, Any], place: str, message: str
) -> None:
    with pytest.raises(BadInput) as caught:
        one(values, kind, **variable)
    assert caught.value.place == place
    assert message in caught.value.message


def test_messages_never_show_a_confidential_value() -> None:
    secrets = [
        (["secret", "1"], Kind.COUNT, {}),
        ([1.0, 777.0], Kind.CONTINUOUS, {"bounds": (0, 5)}),
        (["secret"], Kind.DATE, {}),
        (["a", "secret"], Kind.ORDINAL, {"levels": ("a",)}),
        (["a", "b", "secret"], Kind.BINARY, {}),
    ]
    for values, kind, variable in secrets:
        with pytest.raises(BadInput) as caught:
            one(values, kind, **variable)
        assert "secret" not in str(caught.value)
        assert "777" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "kind", "codes"),
    [
        ([-9, 1, 2], Kind.COUNT, (-9,)),
        ([-9.0, 1.0, 2.0], Kind.COUNT, (-9,)),
        ([-9.0, 1.5, 2.0], Kind.CONTINUOUS, (-9,)),
        ([-9.0, 1.5, 2.0], Kind.CONTINUOUS, ("-9",)),
        ([-9, 1, 2], Kind.CONTINUOUS, (-9.0,)),
        (["-9.0", "1.5", "2"], Kind.CONTINUOUS, (-9,)),
        (["?", "1.5", "2"], Kind.CONTINUOUS, ("?",)),
        ([99.0, 1.0, 2.0], Kind.CATEGORICAL, (99,)),
        (["?", "a", "b"], Kind.CATEGORICAL, ("?",)),
        (pd.Categorical(["?", "a", "b"]), Kind.CATEGORICAL, ("?",)),
        (pd.Categorical([9, 1, 2]), Kind.CATEGORICAL, (9,)),
        (["n/a", "2019-07-31", "2019-08-01"], Kind.DATE, ("n/a",)),
        (["0000-00-00", "2019-07-31", "2019-08-01"], Kind.DATE, ("0000-00-00",)),
        (pd.array([-9, 1, 2], dtype="Int64"), Kind.COUNT, (-9,)),
        ([None, 1.0, 2.0], Kind.COUNT, ()),
        (pd.array([None, 1, 2], dtype="Int64"), Kind.COUNT, ()),
        (pd.Categorical([None, 1, 2]), Kind.CATEGORICAL, ()),
        ([-9.0, None, 1.0, 2.0], Kind.COUNT, (-9, 7)),
    ],
)
def test_missing_codes_are_missing_whatever_the_file_holds_them_as(
    values: Any, kind: Kind, codes: tuple[str | float, ...]
) -> None:
    data = one(values, kind, MissingPolicy.DROP, missing=codes)
    assert (len(data), data.dropped) == (2, len(values) - 2)
    if kind.has_levels:
        assert len(data.column("a").cat.categories) == 2
    with pytest.raises(BadInput, match="have no value"):
        one(values, kind, missing=codes)


def test_a_code_of_a_text_variable_is_that_text() -> None:
    assert len(one(["007", "7", "8"], Kind.CATEGORICAL, MissingPolicy.DROP, missing=(7,))) == 2


def test_records_with_a_missing_value_leave_as_a_whole() -> None:
    raw = pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "y"]}, index=[7, 8, 9])
    schema = Schema((Variable("a", Kind.COUNT), Variable("b", Kind.CATEGORICAL)))
    data = conform_to_schema(raw, schema, MissingPolicy.DROP)
    assert data.frame.index.tolist() == [0, 1]
    assert data.column("a").tolist() == [1, 3]
    assert data.dropped == 1
    with pytest.raises(BadInput, match="no record is left after dropping 3"):
        conform_to_schema(raw.assign(b=None), schema, MissingPolicy.DROP)


def test_columns_that_the_schema_does_not_name_stay_out() -> None:
    raw = pd.DataFrame({"a": [1], "host_name": ["secret"], 5: [3]})
    assert list(
        conform_to_schema(raw, Schema((Variable("5", Kind.COUNT), Variable("a", Kind.COUNT)))).frame.columns
    ) == [
        "5",
        "a",
    ]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["b"], 'no column "a"; columns: b'),
        (["price_"], 'no column "a"'),
        (["a", "a"], "the file has 2 columns of this name"),
    ],
)
def test_a_column_must_be_there_once(columns: list[str], message: str) -> None:
    raw = pd.DataFrame([[1] * len(columns)], columns=columns)
    with pytest.raises(BadInput) as caught:
        conform_to_schema(raw, Schema((Variable("a", Kind.COUNT),)))
    assert caught.value.place == "variables.a"
    assert message in caught.value.message


def test_conforming_leaves_the_frame_alone() -> None:
    raw = pd.DataFrame({1: [1.0, -9.0], "b": pd.Categorical(["x", "y"])})
    before = raw.copy(deep=True)
    conform_to_schema(
        raw, Schema((Variable("1", Kind.COUNT, missing=(-9,)), Variable("b", Kind.BINARY))), MissingPolicy.DROP
    )
    pd.testing.assert_frame_equal(raw, before)


def test_replaced_columns_leave_the_others_bit_for_bit() -> None:
    schema = Schema((Variable("a", Kind.COUNT), Variable("b", Kind.CONTINUOUS)))
    data = conform_to_schema(pd.DataFrame({"a": [1, 2], "b": [0.1, 0.2]}), schema)
    released = data.with_columns({"a": pd.Series([5, 6])}, "synthetic")
    assert (data.origin, released.origin) == ("confidential", "synthetic")
    assert data.column("a").tolist() == [1, 2]
    assert released.column("a").tolist() == [5, 6]
    assert np.array_equal(released.numbers("b"), data.numbers("b"))


@pytest.mark.parametrize("kind", [Kind.CATEGORICAL, Kind.BINARY, Kind.ORDINAL])
def test_a_column_with_codes_in_which_nothing_stands_is_refused_in_words(kind: Kind) -> None:
    with pytest.raises(BadInput, match=r"2 of 2 records have no value"):
        one([np.nan, np.nan], kind, missing=("none",))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Kind.CONTINUOUS, [1.5, None, 3.0]),
        (Kind.COUNT, [1, None, 3]),
        (Kind.CATEGORICAL, ["b", None, "a"]),
        (Kind.DATE, ["2020-01-31", None, "2021-01-01"]),
    ],
)
def test_values_beside_missing_ones_are_in_their_places(kind: Kind, values: list[object]) -> None:
    """As pandas aligns them by the numbers of the records, whatever these are."""
    frame = pd.DataFrame({"x": pd.Series(values, index=[7, 3, 5])})
    found = conform_to_schema(frame, Schema((Variable("x", kind),)), MissingPolicy.KEEP).frame["x"]
    alone = conform_to_schema(frame.dropna(), Schema((Variable("x", kind),)), MissingPolicy.KEEP).frame["x"]
    expected = alone.set_axis([0, 2]).reindex([0, 1, 2])
    pd.testing.assert_series_equal(found.reset_index(drop=True), expected, check_names=False)
