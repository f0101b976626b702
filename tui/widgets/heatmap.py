"""Heat map widget: maps side by side, with a cursor on the same bin of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from sfumato.tui.keys.acts import bind_act
from sfumato.tui.widgets.canvas import BLANK, CURSOR, FAINT, STRONG, CharacterPicture

from ..terminal.glyphs import find_glyphs
from .heat import HeatPane, add_heat_cursor, draw_heat_map, frame_of_panes
from .inks import colour_system, heat_shades


class HeatMap(Widget, can_focus=True):
    """Widget that draws ``HeatPane``s on common bins; only the rows that change are sent to the terminal."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"heat--axis", "heat--strong", "heat--cursor"}
    DEFAULT_CSS = """
    HeatMap {
        height: 1fr;
        & > .heat--axis { color: $text-muted; }
        & > .heat--strong { text-style: bold; }
        & > .heat--cursor { text-style: bold reverse; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        bind_act("left", "step(-1, 0)", "Cursor left"),
        bind_act("right", "step(1, 0)", "Cursor right"),
        bind_act("up", "step(0, 1)", "Cursor up"),
        bind_act("down", "step(0, -1)", "Cursor down"),
        bind_act("far_left", "step(-5, 0)", "Cursor far left"),
        bind_act("far_right", "step(5, 0)", "Cursor far right"),
        bind_act("page_up", "step(0, 5)", "Cursor far up"),
        bind_act("page_down", "step(0, -5)", "Cursor far down"),
        bind_act("zoom_in", "zoom(0.5, 1)"),
        bind_act("zoom_out", "zoom(2, 1)"),
        bind_act("zoom_in_up", "zoom(1, 0.5)"),
        bind_act("zoom_out_up", "zoom(1, 2)"),
        bind_act("zoom_all", "reset"),
    ]

    @dataclass
    class HeatCursorMoved(Message):
        """Message that the cursor came to this bin, (across, up); None if it was removed."""

        bin_index: tuple[int, int] | None

    @dataclass
    class ZoomRequested(Message):
        """Message that the user wants ranges scaled by ``factors`` about the cursor; None for the whole ranges."""

        factors: tuple[float, float] | None

    def __init__(self, *, glyphs: str | None = None, id: str | None = None) -> None:  # noqa: A002  (Textual's name)
        """Create the widget.

        ``glyphs`` is braille, block or ascii, by default SFUMATO_GLYPHS. Raises ValueError for another.
        """
        super().__init__(id=id)
        self._glyphs = find_glyphs(glyphs)
        self._panes: Sequence[HeatPane] = ()
        self._labels = ("", "")
        self._at: tuple[int, int] | None = None
        self._plain: CharacterPicture | None = None
        self._picture: CharacterPicture | None = None
        self._styles: dict[tuple[int, int], Style] = {}
        self._empty = "…"

    @property
    def cursor_bin(self) -> tuple[int, int] | None:
        """Return the bin under the cursor, (across, up); None without a cursor."""
        return self._at

    @property
    def bin_counts(self) -> tuple[int, int]:
        """Return the number of bins, (across, up)."""
        if not self._panes:
            return 0, 0
        rows, columns = self._panes[0].cells.shares.shape
        return columns, rows

    def show_panes(self, panes: Sequence[HeatPane], labels: tuple[str, str], *, keep_cursor: bool = False) -> None:
        """Show other maps, all with the same bins. ``labels`` name the axes across and up."""
        self._panes, self._labels, self._empty = tuple(panes), labels, "nothing to draw"
        self._at = self._clamp_bin(self._at) if keep_cursor and self._at else None
        self._plain = None
        self._repaint_changes()

    def _clamp_bin(self, at: tuple[int, int]) -> tuple[int, int] | None:
        """Return the nearest bin that exists; None without bins."""
        columns, rows = self.bin_counts
        return (min(max(at[0], 0), columns - 1), min(max(at[1], 0), rows - 1)) if columns and rows else None

    def put_cursor(self, at: tuple[int, int]) -> None:
        """Put the cursor on a bin, or the nearest one, without a message."""
        self._at = self._clamp_bin(at)
        self._repaint_changes()

    def action_step(self, across: int, up: int) -> None:
        """Move the cursor by bins; the first step puts it into the middle."""
        columns, rows = self.bin_counts
        at = self._at
        self._move_cursor(self._clamp_bin((columns // 2, rows // 2) if at is None else (at[0] + across, at[1] + up)))

    def _move_cursor(self, at: tuple[int, int] | None) -> None:
        """Put the cursor on a bin, repaint, and post it."""
        self._at = at
        self._repaint_changes()
        self.post_message(self.HeatCursorMoved(at))

    def action_zoom(self, across: float, up: float) -> None:
        """Request a smaller or larger range."""
        self.post_message(self.ZoomRequested((across, up)))

    def action_reset(self) -> None:
        """Remove the cursor and request the whole ranges."""
        self._move_cursor(None)
        self.post_message(self.ZoomRequested(None))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the bin that was clicked."""
        at = event.get_content_offset(self)
        if at is not None and self._panes:
            found = frame_of_panes(self.size, self._panes).bin_at(at.x, at.y, self.bin_counts)
            if found is not None:
                self._move_cursor(found)

    def notify_style_update(self) -> None:
        """Discard what depends on colours when the theme changes."""
        self._styles, self._picture, self._plain = {}, None, None
        super().notify_style_update()

    @property
    def _shade_colours(self) -> Sequence[str]:
        """Return the colour of each fill from 1; empty if signs must stand for them."""
        system = colour_system(self.app.console.color_system)
        if self.app.no_color or self.app.native_ansi_color or system == ColorSystem.STANDARD:
            return ()
        return heat_shades(dark=self.app.current_theme.dark)

    def _repaint_changes(self) -> None:
        """Repaint the rows in which the new picture differs from the present one."""
        old = self._picture
        if old is None or (old.width, old.height) != self.size:
            self._picture = None
            self.refresh()
            return
        self._picture = self._compose_picture()
        rows = self._picture.changed_rows(old).tolist()
        if rows:
            self.refresh(*(Region(0, row, old.width, 1) for row in rows))

    def _compose_picture(self) -> CharacterPicture:
        """Return the picture with the cursor."""
        # The map without a cursor is kept: a step of the cursor changes two cells of it.
        if self._plain is None or (self._plain.width, self._plain.height) != self.size:
            size = (self.size.width, self.size.height)
            self._plain = draw_heat_map(
                self._panes,
                size,
                self._glyphs,
                colour=bool(self._shade_colours),
                labels=self._labels,
                empty=self._empty,
            )
        if self._at is None:
            return self._plain
        return add_heat_cursor(self._plain, self._panes, self._glyphs, self._at)

    def render_line(self, y: int) -> Strip:
        """Return row ``y`` of the picture as a strip with a segment for each run."""
        if self._picture is None or (self._picture.width, self._picture.height) != self.size:
            self._picture = self._compose_picture()
        if y >= self._picture.height:
            return Strip.blank(self.size.width, self.rich_style)
        runs = self._picture.ink_runs(y)
        segments = [Segment(text, self._ink_style(BLANK if text.isspace() else ink, fill)) for text, ink, fill in runs]
        return Strip(segments, self._picture.width)

    def _ink_style(self, ink: int, fill: int) -> Style:
        """Return the style of an ink on a fill."""
        if (ink, fill) not in self._styles:
            parts = {FAINT: "heat--axis", STRONG: "heat--strong", CURSOR: "heat--cursor"}
            own = self.get_component_rich_style(parts[ink]) if ink in parts else self.rich_style
            # A blank needs the background alone, which is fewer bytes.
            own = self.rich_style.background_style if ink == BLANK else own
            shade = Style.parse(f"on {self._shade_colours[fill - 1]}") if fill else Style()
            self._styles[ink, fill] = own + shade
        return self._styles[ink, fill]
