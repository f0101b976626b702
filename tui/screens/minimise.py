"""How many records are enough: the measures of data quality against the size of the sample, and the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import ContentSwitcher

from sfumato.tui.console import number
from sfumato.tui.export import Exhibit, Lines
from sfumato.tui.messages import WorkspaceChanged
from sfumato.tui.widgets.columns import cells, fitted
from sfumato.tui.widgets.key_line import KeyLine
from sfumato.tui.widgets.line import Line
from sfumato.tui.widgets.live import LiveGrid
from sfumato.tui.widgets.pages import Column
from sfumato.tui.widgets.plot import Plot
from sfumato.tui.widgets.series import Series
from sfumato.tui.words import mark
from sfumato.workspace.views.quality import Minimisation, minimisations

from .exhibiting import Exhibits
from .page import Dialog, Reads

__all__ = ["Minimise"]

NAMES = {"rho": "rho", "rilm_categorical": "rilm", "nmi": "nmi", "non_suppressed": "non-suppressed"}
HINT = "left and right move the cursor, + and - zoom, 0 shows all"


class Minimise(Dialog[None], Exhibits, Reads):
    """One study at a time: all measures or one, drawn or in numbers."""

    DEFAULT_CSS = """
    Minimise > .whole { width: 100%; height: 100%; background: $background; }
    Minimise ContentSwitcher { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "measure(1)", "Measure", id="minimise.next_measure"),
        Binding("M", "measure(-1)", "Measure before", show=False, id="minimise.previous_measure"),
        Binding("right_square_bracket", "study", "Study", key_display="]", id="minimise.study"),
        Binding("t", "numbers", "Numbers", id="minimise.numbers"),
    ]
    AUTO_FOCUS = "Plot"

    @dataclass
    class Arrived(Message):
        """The studies were read."""

        found: Sequence[Minimisation]

    def __init__(self, run_id: int) -> None:
        super().__init__()
        self._run_id = run_id
        self._found: Sequence[Minimisation] = ()
        self._study = self._measure = 0

    def compose(self) -> ComposeResult:
        """The answer, what is drawn, the drawing or its numbers, what the cursor reads, and the keys."""
        with Vertical(classes="whole"):
            yield Line(name="minimise-head")
            yield Line(name="minimise-shown")
            with ContentSwitcher(initial="minimise-plot"):
                yield Plot(id="minimise-plot")
                yield LiveGrid(empty="…", id="minimise-numbers")
            yield Line(name="minimise-reading")
            yield KeyLine()

    def on_mount(self) -> None:
        """Have the studies read."""
        self._reload()

    @on(WorkspaceChanged)
    def _reload(self) -> None:
        run_id = self._run_id
        self.read(lambda workspace: minimisations(workspace, run_id), self.Arrived)

    @on(Arrived)
    def _take(self, event: Arrived) -> None:
        same = event.found == self._found
        self._found = event.found
        if not same:
            self._draw()

    @property
    def shown(self) -> Minimisation | None:
        """The study that is shown."""
        return self._found[self._study % len(self._found)] if self._found else None

    @property
    def measures(self) -> Sequence[str]:
        """The measures that are drawn: all, or one."""
        names = list(self.shown.values) if self.shown else []
        return names if not self._measure else names[self._measure - 1 : self._measure]

    def _draw(self, *, keep_view: bool = False) -> None:
        found = self.shown
        if found is None:
            return
        plot = self.query_one(Plot)
        plot.set_series(size_series(found, self.measures), x_label="records", y_label="least", keep_view=keep_view)
        where = f"study {self._study % len(self._found) + 1}/{len(self._found)}: " if len(self._found) > 1 else ""
        self.query_one("#minimise-head", Line).say(f"Run {self._run_id}  {answer_text(found)}")
        drawn = "all measures" if not self._measure else NAMES[self.measures[0]]
        self.query_one("#minimise-shown", Line).say(
            f"{where}k = {found.k}, {found.subsamples} sub-samples a size · {drawn}, the least of the sub-samples"
        )
        self._fill_numbers()
        self._say(plot.cursor)

    def _fill_numbers(self) -> None:
        found = self.shown
        if found is None:
            return
        heads = (
            Column("size", "records", 9, "right"),
            *(Column(name, NAMES[name], 14) for name in found.values),
            Column("passing", "meet all limits", 15, "right"),
        )
        columns = fitted(heads, self.query_one(ContentSwitcher).size.width - 1, (), ("passing",))
        rows = [cells(columns, row) for row in size_rows(found)]
        self.query_one(LiveGrid).show(columns, rows, found.sizes, found.answer)

    def on_resize(self) -> None:
        """Give the columns of the numbers their new widths."""
        self.call_after_refresh(self._fill_numbers)

    @on(Plot.CursorMoved)
    def _moved(self, event: Plot.CursorMoved) -> None:
        self._say(event.x)

    def _say(self, x: float | None) -> None:
        found = self.shown
        text = HINT if x is None or found is None or not found.sizes else reading(found, x)
        self.query_one("#minimise-reading", Line).say(text)

    def action_measure(self, step: int) -> None:
        """Draw all measures, or the next one by itself."""
        if self.shown is not None:
            self._measure = (self._measure + step) % (len(self.shown.values) + 1)
            self._draw(keep_view=True)

    def action_study(self) -> None:
        """Show the next study of the run."""
        if len(self._found) > 1:
            self._study, self._measure = (self._study + 1) % len(self._found), 0
            self._draw()

    def action_numbers(self) -> None:
        """Show the sizes in a table in place of the drawing, or the drawing again."""
        switcher = self.query_one(ContentSwitcher)
        switcher.current = "minimise-numbers" if switcher.current == "minimise-plot" else "minimise-plot"
        self.query_one(f"#{switcher.current}").focus()

    def exhibit(self) -> Exhibit | None:
        """The sizes with all digits."""
        found = self.shown
        return None if found is None else Exhibit(f"run-{self._run_id}-sample-sizes", lambda: size_lines(found))


def answer_text(found: Minimisation) -> Content:
    """``✓ 1,250 records are enough``, or that no size is; sizes above the answer that are not are told."""
    if found.answer is None:
        return Content.assemble((f"{mark('fail')} No size is enough: ", "$error bold"), found.reason)
    words = (f"{mark('pass')} {found.answer:,} records are enough", "$success bold")
    above = found.fail_above
    but = f", but {len(above)} larger sizes did not always pass (first {above[0]:,})" if above else ""
    return Content.assemble(words, f": every sub-sample meets minimum data quality{but}")


def size_series(found: Minimisation, measures: Sequence[str]) -> list[Series]:
    """A line a measure, a level line for every limit, and an upright one at the answer."""
    if not found.sizes:
        return []
    nowhere = float("nan")
    lines = [
        Series(NAMES[name], found.sizes, [nowhere if v is None else v for v in found.values[name]]) for name in measures
    ]
    limits: dict[float, list[str]] = {}
    for name in measures:
        limits.setdefault(found.limits[name], []).append(NAMES[name])
    ends = found.sizes[0], found.sizes[-1]
    level = [Series(f"limit {number(at)}: {', '.join(names)}", ends, [at, at]) for at, names in limits.items()]
    known = [v for name in measures for v in found.values[name] if v is not None] + list(limits)
    upright = [min(known), max(known)]
    answer = [] if found.answer is None else [Series(f"answer {found.answer:,}", [found.answer] * 2, upright)]
    return [*lines, *level, *answer]


def size_rows(found: Minimisation) -> list[Mapping[str, object]]:
    """A row a size: every measure with whether it holds its limit, and the share of sub-samples that hold them all."""
    rows: list[Mapping[str, object]] = []
    for place, size in enumerate(found.sizes):
        values = {name: _judged(found, name, place) for name in found.values}
        share = found.passing[place]
        mine = f"{mark('into')} {size:,}" if size == found.answer else f"{size:,}"
        rows.append({"size": mine, **values, "passing": "-" if share is None else f"{share:.0%}"})
    return rows


def _judged(found: Minimisation, name: str, place: int) -> str:
    value = found.values[name][place]
    if value is None:
        return f"{mark('not computed')} not computed"
    return f"{mark('pass' if value >= found.limits[name] else 'fail')} {number(value)}"


def reading(found: Minimisation, x: float) -> str:
    """``1,250 records (40% pass): rho ✓ 0.95  nmi ✗ 0.7``, of the size nearest to ``x``."""
    place = min(range(len(found.sizes)), key=lambda i: abs(found.sizes[i] - x))
    share = found.passing[place]
    parts = [f"{NAMES[name]} {_judged(found, name, place)}" for name in found.values]
    passing = "" if share is None else f" ({share:.0%} pass)"
    return f"{found.sizes[place]:,} records{passing}: " + "  ".join(parts)


def size_lines(found: Minimisation) -> Lines:
    """A row a size with all digits; the answer says so."""
    names = list(found.values)
    rows = [
        (size, *(found.values[name][i] for name in names), found.passing[i], "answer" if size == found.answer else "")
        for i, size in enumerate(found.sizes)
    ]
    return ("records", *names, "passing", "answer"), rows
