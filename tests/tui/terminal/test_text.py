import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from sfumato.tui.terminal.text import cut_text, fit_text, is_narrow, text_window

texts = st.text(alphabet="abc é中▌⠿…–x文", max_size=12)


@pytest.mark.slow
@given(st.characters())
@settings(max_examples=300)
def test_what_is_narrow_takes_one_cell_a_character(character):
    if is_narrow(character) and character >= " ":
        assert cell_len(character) == 1


@given(texts, st.integers(0, 14), st.integers(1, 14))
def test_a_window_is_what_a_strip_shows(text, left, width):
    expected = Strip([Segment(text)]).adjust_cell_length(40).crop(left, left + width)
    seen = text_window(text, left, width)
    assert cell_len(seen) == width
    assert seen == expected.text


@given(texts, st.integers(1, 14))
def test_a_fitted_text_fills_its_cells_and_a_cut_one_ends_in_an_ellipsis(text, width):
    assert cell_len(fit_text(text, width)) == width
    if cell_len(text) > width:
        assert cut_text(text, width).endswith("…")
        assert cell_len(cut_text(text, width)) == width
    else:
        assert cut_text(text, width) == text
