import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.tui.terminal.glyphs import BRAILLE
from sfumato.tui.widgets.frame import AxisView, PlotLabels, lay_out_frame, nearest_stop, next_stop
from sfumato.workspace.plots.series import Series

WHOLE = (0.0, 100.0)
moves = st.lists(st.tuples(st.sampled_from([0.5, 2.0, 0.3]), st.floats(0, 100)), max_size=12)


@pytest.mark.slow
@settings(derandomize=True, deadline=None)
@given(moves)
def test_views_stay_inside_the_whole(steps):
    view = AxisView(WHOLE, WHOLE)
    for factor, centre in steps:
        view = view.bring_into_view(centre).zoom(factor, centre)
        assert WHOLE[0] <= view.visible[0] < view.visible[1] <= WHOLE[1] + 1e-9
        assert view.visible[0] - 1e-9 <= centre <= view.visible[1] + 1e-9


def test_zooming_in_and_out_comes_back_and_stops_at_both_ends():
    view = AxisView(WHOLE, WHOLE)
    assert view.zoom(0.5, 50).visible == (25, 75)
    assert view.zoom(0.5, 50).zoom(2, 50).visible == WHOLE
    assert view.zoom(2, 50).visible == WHOLE
    for _ in range(100):
        view = view.zoom(0.5, 30)
    assert view.width > 0
    assert view.zoom(0.5, 30) is view


def test_a_value_out_of_view_is_brought_into_it():
    view = AxisView(WHOLE, (0, 10))
    assert view.bring_into_view(5) is view
    assert view.bring_into_view(50).visible == (45, 55)
    assert view.bring_into_view(100).visible == (90, 100)


@pytest.mark.slow
@settings(derandomize=True, deadline=None)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=40), st.integers(1, 9), st.data())
def test_the_next_stop_is_the_first_far_enough(values, cells, data):
    stops = np.unique(values)
    frame = lay_out_frame([Series("a", [0, 100], [0, 1])], PlotLabels(), (40, 12), BRAILLE, WHOLE, (0, 1))
    start = data.draw(st.sampled_from(stops.tolist()))

    def column(x):
        return int(np.floor(frame.x_scale.to_dots(np.array(x)) + 0.5)) // BRAILLE.dots_across

    right = [x for x in stops.tolist() if x > start and column(x) >= column(start) + cells]
    left = [x for x in stops.tolist() if x < start and column(x) <= column(start) - cells]
    assert next_stop(stops, frame, start, cells) == (min(right) if right else stops[-1])
    assert next_stop(stops, frame, start, -cells) == (max(left) if left else stops[0])


def test_the_nearest_stop_is_the_nearest():
    assert nearest_stop(np.array([1.0, 4.0, 9.0]), 6) == 4
