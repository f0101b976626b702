import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.tui.terminal.glyphs import ASCII, BLOCK, BRAILLE, GLYPHS, find_glyphs
from sfumato.tui.widgets.canvas import (
    covered_cells,
    hatch_pattern,
    rasterise_band,
    rasterise_bars,
    rasterise_line,
    rasterise_points,
)

SHAPE = (12, 20)
coordinate = st.floats(-60, 60, allow_nan=False)


def chebyshev(dots, x0, y0, x1, y1):
    """Distance of each dot from a finely sampled segment, in the larger of the two directions."""
    t = np.linspace(0, 1, 4001)
    x, y = x0 + t * (x1 - x0), y0 + t * (y1 - y0)
    return np.array([np.maximum(np.abs(x - c), np.abs(y - r)).min() for r, c in dots])


def draws_segment(mask, x0, y0, x1, y1):
    """Whether every dot touches the segment and every part of the segment in view has a dot within one step."""
    dots = np.argwhere(mask)
    slack = max(abs(x1 - x0), abs(y1 - y0)) / 4000 + 1e-9
    if dots.size and chebyshev(dots, x0, y0, x1, y1).max() > 0.5 + slack:
        return False
    for t in np.linspace(0, 1, 301):
        x, y = x0 + t * (x1 - x0), y0 + t * (y1 - y0)
        if 0 <= x <= mask.shape[1] - 1 and 0 <= y <= mask.shape[0] - 1:
            gaps = np.maximum(np.abs(dots[:, 1] - x), np.abs(dots[:, 0] - y))
            if dots.size == 0 or gaps.min() > 1 + 1e-9:
                return False
    return True


@settings(derandomize=True, max_examples=60, deadline=None)
@given(coordinate, coordinate, coordinate, coordinate)
def test_a_segment_sets_the_dots_it_passes_and_no_others(x0, y0, x1, y1):
    mask = rasterise_line(np.array([x0, x1]), np.array([y0, y1]), SHAPE)
    assert draws_segment(mask, x0, y0, x1, y1)


@pytest.mark.parametrize("damage", ["moved", "missing", "extra"])
def test_a_wrong_line_is_recognised_as_wrong(damage):
    ends = (1.0, 2.0, 18.0, 9.0)
    mask = rasterise_line(np.array(ends[::2]), np.array(ends[1::2]), SHAPE)
    assert draws_segment(mask, *ends)
    if damage == "moved":
        mask = np.roll(mask, 2, axis=0)
    elif damage == "missing":
        mask[:, 9:12] = False
    else:
        mask[11, 0] = True
    assert not draws_segment(mask, *ends)


@pytest.mark.slow
@settings(derandomize=True, max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_many_points_draw_the_same_dots_as_the_same_points_in_small_pieces(seed):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-10, 50, 3000))
    y = rng.normal(6, 5, 3000).cumsum() / 20 % 15
    y[rng.random(3000) < 0.01] = np.nan
    pieces = [rasterise_line(x[i : i + 100], y[i : i + 100], SHAPE) for i in range(0, 2999, 99)]
    alone = np.isfinite(y) & ~np.isfinite(np.append(y[1:], np.nan)) & ~np.isfinite(np.append(np.nan, y[:-1]))
    whole = rasterise_line(x, y, SHAPE)
    joined = np.logical_or.reduce(pieces)
    assert np.array_equal(whole, joined)
    assert np.array_equal(
        whole & rasterise_points(x[alone], y[alone], SHAPE), rasterise_points(x[alone], y[alone], SHAPE)
    )


def test_gaps_break_a_line_and_a_point_between_gaps_is_a_dot():
    x = np.array([0, 4, 5, 6, 7, 10, 14.0])
    y = np.array([3, 3, np.nan, 3, np.inf, 3, 3])
    drawn = np.flatnonzero(rasterise_line(x, y, SHAPE)[3]).tolist()
    assert drawn == [0, 1, 2, 3, 4, 6, 10, 11, 12, 13, 14]
    assert rasterise_line(x, y, SHAPE).sum() == len(drawn)


def test_an_unsorted_line_visits_its_points_in_order():
    x, y = np.array([2, 10, 10, 2, 2.0]), np.array([2, 2, 8, 8, 2.0])
    mask = rasterise_line(x, y, SHAPE)
    square = np.zeros(SHAPE, dtype=bool)
    square[2:9, [2, 10]] = square[[2, 8], 2:11] = True
    assert np.array_equal(mask, square)


def test_a_dash_repeats_along_the_line_and_over_corners():
    pattern = (True, True, False)
    x, y = np.array([0, 6, 6.0]), np.array([0, 0, 6.0])
    mask = rasterise_line(x, y, SHAPE, pattern)
    along = [bool(mask[0, c]) for c in range(6)] + [bool(mask[r, 6]) for r in range(6)]
    assert along == [pattern[i % 3] for i in range(12)]


def test_far_away_ends_leave_a_line_in_its_place():
    mask = rasterise_line(np.array([-1e9, 1e9]), np.array([5.0, 5.0]), SHAPE)
    assert mask[5].all()
    assert mask.sum() == SHAPE[1]
    assert not rasterise_line(np.array([-1e200, 1e200]), np.array([1e200, 2e200]), SHAPE).any()


@pytest.mark.slow
@settings(derandomize=True, deadline=None)
@given(st.lists(st.tuples(coordinate, coordinate), max_size=30))
def test_points_fall_on_the_nearest_dot(points):
    expected = np.zeros(SHAPE, dtype=bool)
    for x, y in points:
        row, column = int(np.floor(y + 0.5)), int(np.floor(x + 0.5))
        if 0 <= row < SHAPE[0] and 0 <= column < SHAPE[1]:
            expected[row, column] = True
    x, y = np.array(points, dtype=float).reshape(-1, 2).T
    assert np.array_equal(rasterise_points(x, y, SHAPE), expected)


bar = st.tuples(st.floats(-5, 25), st.floats(0, 6), st.floats(-3, 15))


@pytest.mark.slow
@settings(derandomize=True, deadline=None)
@given(st.lists(bar, max_size=6), st.floats(-3, 15))
def test_bars_fill_what_any_of_them_covers(bars, base):
    left, width, top = np.array(bars, dtype=float).reshape(-1, 3).T
    expected = np.zeros(SHAPE, dtype=bool)
    spans = [[np.inf, -np.inf] for _ in range(SHAPE[1])]
    for start, wide, end in zip(left, width, top, strict=True):
        first = int(np.floor(start + 0.5))
        last = max(first, int(np.ceil(start + wide - 0.5)) - 1)
        if start + wide < -0.5 or start > SHAPE[1] - 0.5:
            continue
        for column in {min(max(c, 0), SHAPE[1] - 1) for c in range(max(first, 0), max(last, 0) + 1)}:
            low, high = sorted((end, base))
            spans[column] = [min(spans[column][0], low), max(spans[column][1], high)]
    for column, (low, high) in enumerate(spans):
        for row in range(SHAPE[0]):
            expected[row, column] = np.floor(low + 0.5) <= row <= np.floor(high + 0.5)
    assert np.array_equal(rasterise_bars(left, left + width, np.full(left.size, base), top, SHAPE), expected)


def test_a_fill_leaves_columns_without_bounds_empty():
    upper, lower = np.array([1.0, np.nan, 2.4, 9.0]), np.array([3.0, 5.0, 2.6, 4.0])
    mask = rasterise_band(upper, lower, (6, 4))
    assert [np.flatnonzero(mask[:, c]).tolist() for c in range(4)] == [[1, 2, 3], [], [2, 3], []]


def braille_by_unicode(cell):
    """The Unicode standard numbers the dots 1 to 8: 1, 2, 3, 7 on the left, 4, 5, 6, 8 on the right."""
    numbers = {(0, 0): 1, (1, 0): 2, (2, 0): 3, (3, 0): 7, (0, 1): 4, (1, 1): 5, (2, 1): 6, (3, 1): 8}
    return sum(1 << (number - 1) for place, number in numbers.items() if cell[place])


@pytest.mark.slow
@settings(derandomize=True, deadline=None)
@given(st.lists(st.booleans(), min_size=64, max_size=64))
def test_braille_cells_are_encoded_as_the_standard_numbers_them(bits):
    mask = np.array(bits).reshape(8, 8)
    characters = BRAILLE.encode_mask(mask)
    for row, column in np.ndindex(2, 4):
        number = braille_by_unicode(mask[4 * row : 4 * row + 4, 2 * column : 2 * column + 2])
        assert characters[row, column] == (chr(0x2800 + number) if number else " ")


def test_quadrants_are_the_ones_their_unicode_names_say():
    corners = {"UPPER LEFT": 1, "UPPER RIGHT": 2, "LOWER LEFT": 4, "LOWER RIGHT": 8}
    halves = {"UPPER HALF BLOCK": 3, "LEFT HALF BLOCK": 5, "RIGHT HALF BLOCK": 10, "LOWER HALF BLOCK": 12}
    for bits, character in enumerate(BLOCK.table[1:], start=1):
        name = unicodedata.name(character)
        named = halves.get(name, 15 if name == "FULL BLOCK" else 0)
        assert bits == (named or sum(bit for corner, bit in corners.items() if corner in name))
        cell = np.array([[bits & 1, bits & 2], [bits & 4, bits & 8]], dtype=bool)
        assert BLOCK.encode_mask(cell)[0, 0] == character


def test_every_set_of_glyphs_has_a_character_for_every_cell():
    for glyphs in GLYPHS.values():
        assert len(glyphs.table) == 2 ** (glyphs.dots_down * glyphs.dots_across)
        assert glyphs.table[0] == " "


def test_hatches_leave_every_second_cell_blank_and_differ():
    for glyphs in (BRAILLE, BLOCK, ASCII):
        shape = (8 * glyphs.dots_down, 8 * glyphs.dots_across)
        cells = glyphs.cell_bits(hatch_pattern(shape, glyphs, 0))
        assert (cells > 0).sum() == 32
        assert not np.array_equal(hatch_pattern(shape, glyphs, 0), hatch_pattern(shape, glyphs, 1))


def test_a_cell_is_covered_from_half_its_dots_on():
    mask = np.zeros((4, 6), dtype=bool)
    mask[:2, :2] = True
    mask[0, 2:4] = mask[1, 2] = True
    assert covered_cells(mask, BRAILLE).tolist() == [[True, False, False]]


def test_glyphs_are_chosen_by_name_or_environment(monkeypatch):
    monkeypatch.delenv("SFUMATO_GLYPHS", raising=False)
    assert find_glyphs() is BRAILLE
    monkeypatch.setenv("SFUMATO_GLYPHS", "ascii")
    assert find_glyphs() is ASCII
    assert find_glyphs("block") is BLOCK
    with pytest.raises(ValueError, match="braille, block, ascii, not 'dots'"):
        find_glyphs("dots")
