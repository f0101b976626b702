from itertools import pairwise
from typing import ClassVar

from textual.app import App
from textual.binding import Binding

from sfumato.tui.widgets.lines import FooterKey, KeyLine, keys_that_fit


class Keyed(App):
    BINDINGS: ClassVar = [
        Binding("o", "open", "Open"),
        Binding("s", "stop", "Stop"),
        Binding("f1,question_mark", "say", "Help", key_display="?"),
        Binding("z", "hidden", "Hidden", show=False),
    ]

    def __init__(self):
        super().__init__()
        self.done, self.can_stop = [], True

    def compose(self):
        yield KeyLine()

    def check_action(self, action, parameters):
        return (self.can_stop or None) if action == "stop" else True

    def action_open(self):
        self.done.append("open")

    def action_stop(self):
        self.done.append("stop")

    def action_say(self):
        self.done.append("say")


def line(app):
    return app.query_one(KeyLine).render_line(0)


async def test_the_line_names_every_shown_key_once_in_order():
    async with Keyed().run_test(size=(40, 3)) as pilot:
        shown = line(pilot.app)
        assert shown.text.split() == ["o", "Open", "s", "Stop", "?", "Help"]
        assert shown.cell_length == 40


async def test_a_click_presses_the_key_it_is_on():
    async with Keyed().run_test(size=(40, 3)) as pilot:
        text = line(pilot.app).text
        for word in ("Stop", "Open", "Help"):
            await pilot.click(KeyLine, offset=(text.index(word) + 1, 0))
        await pilot.pause()
        assert pilot.app.done == ["stop", "open", "say"]


async def test_a_key_that_cannot_be_used_is_dim_and_deaf_to_clicks():
    async with Keyed().run_test(size=(40, 3)) as pilot:
        app = pilot.app
        assert not any(segment.style.dim for segment in line(app) if "Stop" in segment.text)
        app.can_stop = False
        app.screen.refresh_bindings()
        await pilot.pause()
        assert all(segment.style.dim for segment in line(app) if "Stop" in segment.text)
        await pilot.click(KeyLine, offset=(line(app).text.index("Stop"), 0))
        assert app.done == []


async def test_the_line_is_cut_where_the_terminal_ends():
    async with Keyed().run_test(size=(10, 3)) as pilot:
        assert line(pilot.app).text == "o Open s S"


def test_where_there_is_no_room_what_matters_least_goes_first():
    keys = [
        FooterKey("enter", "enter", "Open", True, 0), FooterKey("s", "s", "Run again", True, 0), FooterKey("x", "x", "Interrupt", False, 0),
        FooterKey("D", "D", "Distributions", True, 1), FooterKey("w", "w", "Release", True, 1), FooterKey("question_mark", "?", "Help", True, 2),
    ]  # fmt: skip
    kept = {width: [one.key for one in keys_that_fit(keys, width)] for width in range(4, 90)}
    assert kept[80] == [one.key for one in keys]
    orders = [kept[width] for width in sorted(kept, reverse=True)]
    gone = [key for one, other in pairwise(orders) for key in one if key not in other]
    assert gone == ["x", "s", "w", "D"]
    assert kept[4] == ["enter", "question_mark"]
    for width in range(20, 90):
        shown = keys_that_fit(keys, width)
        assert sum(one.width + 1 for one in shown) - 1 <= width
    assert next(one for one in keys_that_fit(keys, 55) if one.key == "D").description == "Plots"
