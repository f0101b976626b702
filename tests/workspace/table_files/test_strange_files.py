"""Files of others: whatever they hold, they are read or refused with a message, and nothing else happens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engine.errors import BadInput
from sfumato.workspace.table_files.apriori_csv import read_apriori_csv
from sfumato.workspace.table_files.argus_apriori import AprioriLine, read_apriori, write_apriori
from sfumato.workspace.table_files.argus_hierarchies import read_hierarchy
from sfumato.workspace.table_files.argus_metadata import ArgusMetadata, ArgusVariable, read_metadata
from sfumato.workspace.table_files.argus_tables import read_table

METADATA = ArgusMetadata((ArgusVariable("a", use="explanatory"), ArgusVariable("n", use="response")), True, ";")
READERS: dict[str, Callable[[str], object]] = {
    "hierarchy": lambda text: read_hierarchy(text, "file"),
    "metadata of microdata": lambda text: read_metadata(text, "file", is_table=False),
    "metadata of a table": lambda text: read_metadata(text, "file", is_table=True),
    "table": lambda text: read_table(text, METADATA, "file"),
    "a priori": lambda text: read_apriori(text, 1, "file"),
    "a priori in CSV": lambda text: read_apriori_csv(text, {"t": ("a",)}, "file"),
}
SIGNS = st.text('@;,|"<>\t\n\r /a1.-eE\x00\x85\u2028', max_size=40)
WORDS = st.lists(
    st.sampled_from(["<RECODEABLE>", "<HIERLEVELS>", "<NUMERIC>", "<SEPARATOR>", '"', "a 1 2", "a", "1", "\n", " ", ";", "@", "a;u", "status"]),
    max_size=12,
).map("".join)  # fmt: skip


@pytest.mark.parametrize("name", list(READERS))
@given(text=st.one_of(SIGNS, WORDS, st.text(max_size=30)))
def test_any_text_is_read_or_refused(name: str, text: str) -> None:
    with contextlib.suppress(BadInput):
        READERS[name](text)


@pytest.mark.parametrize("label", ["a\nb", " a", "a\t"])
def test_a_label_that_would_not_come_back_cannot_be_written(label: str) -> None:
    with pytest.raises(ValueError, match="cannot be a c"):
        write_apriori([AprioriLine((label,), "safe")])


def test_signs_that_look_like_line_ends_are_part_of_a_label() -> None:
    lines = (AprioriLine(("a\u2028b",), "safe"),)
    assert read_apriori(write_apriori(lines), 1, "file") == lines
