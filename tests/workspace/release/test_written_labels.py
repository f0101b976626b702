"""Labels of a released file are codes again, where it is certain which; otherwise the file is refused."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.data.schema import Kind, Schema, Variable
from sfumato.engine.errors import BadInput
from sfumato.workspace.release.external import replace_labels_by_codes
from sfumato.workspace.release.tables import names_of_levels
from sfumato.workspace.visible_text import plain_cell

TEXTS = st.sampled_from(["1", "2", "3", "a", "b", "=b", "'=b", "b (1)", "-", "North"])


def read(cells: list[str | None], variable: Variable) -> list[str | None]:
    """The codes of a released column."""
    found = replace_labels_by_codes(pd.DataFrame({variable.name: cells}), Schema((variable,)))[variable.name]
    return [None if pd.isna(cell) else cell for cell in found]


@pytest.mark.slow
@given(st.lists(TEXTS, min_size=1, max_size=4, unique=True), st.dictionaries(TEXTS, TEXTS, max_size=4), st.data())
def test_what_is_written_is_read_as_it_was_or_refused(
    levels: list[str], labels: dict[str, str], data: st.DataObject
) -> None:
    variable = Variable("x", Kind.CATEGORICAL, levels=tuple(levels), labels=labels)
    codes = data.draw(st.lists(st.sampled_from(levels), min_size=1, max_size=6))
    names = names_of_levels(variable, [level for level in levels if level in codes])
    for sign in (str, plain_cell):
        written = [sign(names.get(code, code)) for code in codes]
        try:
            assert read([*written, None], variable) == [*codes, None]
        except BadInput:
            assert set(written) & set(levels) or len(set(labels.values())) < len(labels) or set(labels.values()) & {*labels, *levels} or "'=b" in {*levels, *labels.values()} or "b (1)" in {*levels, *labels.values()}  # fmt: skip


def test_labels_codes_and_formulas() -> None:
    sex = Variable("sex", Kind.BINARY, levels=("1", "2"), labels={"1": "woman", "2": "=man"})
    assert read(["woman", "'=man"], sex) == ["1", "2"]
    assert read(["woman", "=man"], sex) == ["1", "2"]
    assert read(["1", "2"], sex) == ["1", "2"]
    turned = Variable("sex", Kind.BINARY, levels=("1", "2"), labels={"1": "2", "2": "1"})
    with pytest.raises(BadInput, match="may be codes, or labels"):
        read(["1", "2"], turned)
    several = Variable("cause", Kind.CATEGORICAL, levels=("a", "b", "c"), labels={"a": "other", "b": "other"})
    assert read(["other (a)", "other (b)", "c"], several) == ["a", "b", "c"]
    with pytest.raises(BadInput, match="may be codes, or labels"):
        read(["other", "c"], several)
    assert (
        replace_labels_by_codes(pd.DataFrame({"'=n": ["1"]}), Schema((Variable("=n", Kind.COUNT),))).columns[0] == "=n"
    )
