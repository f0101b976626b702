"""Texts are repainted when they look otherwise, and only then."""

import pytest
from textual.app import App
from textual.content import Content

from sfumato.tui.widgets.lines import END, Line, Scroll, is_same_text

PLAIN, BOLD = Content("ab"), Content("ab").stylize("bold", 0, 1)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("ab", "ab", True), ("ab", "abc", False), (PLAIN, Content("ab"), True), (PLAIN, BOLD, False),
     (BOLD, Content("ab").stylize("bold", 0, 1), True), (BOLD, Content("ab").stylize("bold", 1, 2), False),
     ("ab", PLAIN, False)],
)  # fmt: skip
def test_alike_is_what_looks_the_same(one, other, same):
    assert is_same_text(one, other) is same


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: Line(name="line"), Scroll], ids=["line", "scroll"])
async def test_a_text_of_other_colours_is_painted_anew(make):
    class AppProtocol(App):
        def compose(self):
            yield make()

    def bold():
        strips = app.screen._compositor.render_strips()
        return "".join(part.text for strip in strips for part in strip if part.style is not None and part.style.bold)

    app = AppProtocol()
    async with app.run_test(size=(20, 4)) as pilot:
        shown = app.query_one("Line, Scroll")
        show = shown.set_text if isinstance(shown, Line) else shown.show_text
        seen = []
        for text in (PLAIN, BOLD, PLAIN):
            show(text)
            await pilot.pause(0.1)
            seen.append(bold())
        assert seen == ["", "a", ""]


@pytest.mark.slow
async def test_a_long_text_is_shown_from_a_line_that_was_asked_for_before_it_is_laid_out(monkeypatch):
    class Reader(App):
        def compose(self):
            yield Scroll()

    app = Reader()
    async with app.run_test(size=(20, 4)) as pilot:
        pane = app.query_one(Scroll)
        with monkeypatch.context() as hurried:  # nothing waits until the screen is drawn
            hurried.setattr(pane, "call_after_refresh", lambda call, *arguments, **options: call(*arguments, **options))
            pane.show_text("\n".join(map(str, range(100))))
            pane.go_to_line(50)
        assert pane.scroll_y == 0
        await pilot.pause(0.1)
        assert pane.scroll_y == 50
        pane.go_to_line(END)
        await pilot.pause(0.1)
        assert pane.scroll_y == 96
        pane.action_ends(0)
        await pilot.pause(0.1)
        assert pane.scroll_y == 0
