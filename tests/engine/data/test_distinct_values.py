"""What is found once for each different value is what is found of each record."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.distinct_values import (
    NO_VALUE_CODE,
    count_codes,
    decode_text_categorical,
    factorize_column,
    is_text_categorical,
)
from sfumato.engine.data.microdata import conform_to_schema
from sfumato.engine.data.missing_codes import is_missing_code, mask_missing_codes
from sfumato.engine.data.schema import Kind, MissingPolicy, Schema, Variable
from sfumato.engine.errors import BadInput

TEXTS = st.lists(st.sampled_from(["a", "b", "1", "1.0", "01", "-9", "2,5", "", " b", "2024-01-02", None]), min_size=1)
NUMBERS = st.lists(st.sampled_from([0.0, -0.0, 1.0, -9.0, 2.5, np.nan]), min_size=1)


def texts_of(values: list[str | None], spare: list[str]) -> tuple[pd.Series, pd.Series]:
    """The same column as text and as a categorical, which may have texts that no record has."""
    plain = pd.Series(values, dtype="str")
    levels = pd.Index(list(dict.fromkeys([*(v for v in values if v is not None), *spare])), dtype="str")
    return plain, pd.Series(pd.Categorical(plain, categories=levels))


@given(st.one_of(TEXTS.map(lambda v: pd.Series(v, dtype="str")), NUMBERS.map(pd.Series)))
def test_codes_and_different_values_give_the_column_again(values: pd.Series) -> None:
    codes, some = factorize_column(values)
    again = [None if code == NO_VALUE_CODE else some[code] for code in codes]
    assert all((one is None and pd.isna(other)) or one == other for one, other in zip(again, values, strict=True))
    assert some.nunique() == len(some) == values.nunique()
    assert np.array_equal(count_codes(codes, len(some)), [(values == one).sum() for one in some])


def test_equal_objects_that_are_written_otherwise_stay_apart_and_zero_has_no_sign() -> None:
    assert list(factorize_column(pd.Series([True, 1, 1.0, None], dtype="object"))[1].map(str)) == ["True", "1", "1.0"]
    assert not np.signbit(factorize_column(pd.Series([-0.0, 0.0]))[1]).any()


@pytest.mark.slow
@given(
    TEXTS,
    st.lists(st.sampled_from(["z", "2,7", "-9"]), max_size=2, unique=True),
    st.sampled_from(list(Kind)),
    st.sampled_from([(), (-9,), ("b", "-10 thru -1"), ("1",)]),
)
def test_a_categorical_of_texts_is_read_as_the_texts(
    values: list[str | None], spare: list[str], kind: Kind, missing: tuple[str | float, ...]
) -> None:
    plain, held = texts_of(values, spare)
    assert is_text_categorical(held)
    assert not is_text_categorical(plain)
    pd.testing.assert_series_equal(decode_text_categorical(held), plain)
    variable = Variable("x", kind, missing=missing)
    assert is_missing_code(held, variable).tolist() == is_missing_code(plain, variable).tolist()
    assert mask_missing_codes(held, variable).isna().tolist() == mask_missing_codes(plain, variable).isna().tolist()
    outcomes = []
    for column in (plain, held):
        try:
            found = conform_to_schema(column.to_frame("x"), Schema((variable,)), MissingPolicy.KEEP)
            outcomes.append((found.sha256, None if found.kinds is None else found.kinds.astype("str").to_dict()))
        except BadInput as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    ("values", "variable", "said"),
    [
        (["a", "a", "b", "c"], Variable("x", Kind.CATEGORICAL, levels=("b",)), "3 records have a level"),
        (["2024-01-02", "x", "x"], Variable("x", Kind.DATE), "2 records are not a date"),
        (["2024-01-02 10:00:00.5"] * 3, Variable("x", Kind.DATE), "3 records have a time finer"),
    ],
)
def test_what_is_wrong_is_counted_in_records_not_in_values(values: list[str], variable: Variable, said: str) -> None:
    for column in texts_of(list(values), []):
        with pytest.raises(BadInput, match=said):
            conform_to_schema(column.to_frame("x"), Schema((variable,)))
