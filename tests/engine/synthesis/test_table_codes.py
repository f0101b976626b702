"""Tables as matrices without missing values, and back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from prepared_tables import schema_of

from sfumato.engine.data.microdata import Microdata, conform_to_schema
from sfumato.engine.data.schema import Kind, MissingPolicy, Variable
from sfumato.engine.synthesis.ctgan import TableCodes

SCHEMA = schema_of(
    "region: categorical", "visits: count", Variable("income", Kind.CONTINUOUS, bounds=(0, 100)), "joined: date"
)
RAW = pd.DataFrame(
    {
        "region": ["b", "a", None, "b"],
        "visits": [2, None, 7, 4],
        "income": [1.5, 20.0, 99.0, 3.0],
        "joined": pd.to_datetime(["2020-01-05", "2021-02-03", "2020-06-01", "2019-12-31"]),
    }
)


@pytest.fixture
def data() -> Microdata:
    return conform_to_schema(RAW, SCHEMA, MissingPolicy.KEEP)


def test_a_table_comes_back_from_its_matrix(data: Microdata) -> None:
    codes = TableCodes.from_microdata(data, SCHEMA.names)
    matrix = codes.encode_table(data)
    assert codes.is_discrete.tolist() == [True, False, True, False, False]
    assert matrix[:, 0].tolist() == [1, 0, 2, 1], "missing is the last level"
    assert matrix[:, 1].tolist() == [2, 4, 7, 4], "a missing number stands at the median"
    assert matrix[:, 2].tolist() == [0, 1, 0, 0], "and is marked"
    back = codes.decode_matrix(matrix)
    for name in SCHEMA.names:
        np.testing.assert_array_equal(back[name], data.numbers(name))


def test_generated_numbers_are_made_such_as_the_variables_have(data: Microdata) -> None:
    codes = TableCodes.from_microdata(data, SCHEMA.names)
    day = 86_400.0
    start = pd.Timestamp("2020-01-05").timestamp()
    wild = np.array(
        [
            [0, -3.2, 0, 140.0, start + 0.4 * day],
            [1, 3.7, 0, -5.0, start + 0.6 * day],
            [2, 9.9, 1, 50.123, 1e12],
        ]
    )
    tidy = codes.tidy_matrix(wild)
    values = codes.decode_matrix(tidy)
    assert values["region"].tolist()[:2] == [0, 1]
    assert np.isnan(values["region"][2])
    assert values["visits"][:2].tolist() == [0, 4], "whole, and a count is never below 0"
    assert not np.signbit(values["visits"][0])
    assert np.isnan(values["visits"][2])
    assert values["income"].tolist() == [100, 0, 50.123]
    assert values["joined"].tolist() == [start / day, start / day + 1, pd.Timestamp("2021-02-03").timestamp() / day]
    assert wild[0, 1] == -3.2, "the input is left alone"


def test_a_number_without_declared_bounds_stays_in_the_range_of_the_data(data: Microdata) -> None:
    codes = TableCodes.from_microdata(data, ["visits"])
    assert codes.decode_matrix(codes.tidy_matrix(np.array([[55.0, 0.0]])))["visits"].tolist() == [7]
