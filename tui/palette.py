"""What the palette of commands offers: screens and acts by name, and every key of the screen below, each with its key beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from textual.app import App, SystemCommand
from textual.screen import Screen
from textual.widget import Widget

from .own_keys import key_for
from .screens.help import OUR_WORDS, SECTIONS, section_of

BESIDE = "   "
"""Between a command and its key."""


@dataclass(frozen=True)
class Command:
    """``binding`` is the name of the key that does the same, empty where there is none; ``key`` what it comes with."""

    title: str
    help: str
    action: Callable[[], Any]
    binding: str = ""
    key: str = ""


def commands(app: App[Any], screen: Screen[Any]) -> Iterator[SystemCommand]:
    """Commands by name, then whatever other keys the screen has."""
    named = [*_of_a_project(screen), *_of_the_app(app)]
    for one in named:
        key = key_for(app, one.binding, one.key) if one.binding else ""
        yield SystemCommand(_beside(one.title, key), one.help, one.action)
    known = {one.binding for one in named} | {"app.palette", "app.palette_colon"}
    titles = {one.title.lower() for one in named}
    in_footer = getattr(screen, "in_footer", lambda _: True)
    for node, binding, enabled, _ in screen.active_bindings.values():
        words = OUR_WORDS.get(binding.description, binding.description)
        if (
            not in_footer(binding.action)
            or not words
            or not enabled
            or not binding.id
            or binding.id in known
            or words.lower() in titles
            or _moves(node)
        ):
            continue
        titles.add(words.lower())
        section = section_of(node)
        where = "Everywhere" if node is app else section or "On this screen"
        yield SystemCommand(
            _beside(words, app.get_key_display(binding)), where, partial(app.run_action, binding.action, node)
        )


def _moves(node: object) -> bool:
    """Whether the keys of a widget move about in it or type into it: they do nothing to be looked for."""
    return isinstance(node, Widget) and section_of(node) in (*(set(SECTIONS.values()) - {"Plot"}),) and not _own(node)


def _own(node: object) -> bool:
    """Whether a table or text is one of a screen's own, whose keys open or change what is in it."""
    return type(node).__name__ not in SECTIONS


def _beside(title: str, key: str) -> str:
    return f"{title}{BESIDE}{key}" if key else title


def _of_a_project(screen: Screen[Any]) -> Iterator[Command]:
    """The tabs, views and acts of a project that is shown."""
    from .screens.project import TABS, VIEWS, Project

    if not isinstance(screen, Project):
        return
    for place, (name, title) in enumerate(TABS.items(), start=1):
        yield Command(
            title, f"Show the tab {title}", partial(screen.action_show_tab, name), f"project.{name}", str(place)
        )
    for name in (name for name in VIEWS if name in screen.views):
        key, title, text = VIEWS[name]
        yield Command(title, text, partial(screen.action_view, name), f"project.{name}", key)
    yield Command(
        "Distributions", "Confidential values beside the released ones", screen.action_distributions,
        "project.distributions", "D",
    )  # fmt: skip
    yield Command(
        "Smallest sample", "Find how many records are enough, step by step", screen.action_guide, "project.guide", "F"
    )
    if screen.in_footer("release"):
        yield Command(
            "Release", "Ask the gate, and write out what a run has made", screen.action_release, "project.release", "w"
        )
        yield Command(
            "Report", "Write the report of a run to a file, without a release", screen.action_report, "project.report", "P"
        )  # fmt: skip


def _of_the_app(app: App[Any]) -> Iterator[Command]:
    def act(name: str) -> Callable[[], Any]:
        return partial(app.run_action, f"app.{name}")

    yield Command("New run", "Run a recipe", act("new_run"), "projects.new", "n")
    yield Command("Import", "Bring a file of data into a project", act("import"), "projects.import", "i")
    yield Command("Evaluate", "Score files that another tool made", act("evaluate"), "app.evaluate", "V")
    yield Command("Doctor", "Check installation, terminal and workspace", act("doctor"), "app.doctor", "!")
    yield Command(
        "Commands", "The command lines that equal what is shown and what was done", act("commands"), "app.commands", "@"
    )
    yield Command("Audit", "Every act that changed the workspace, verified", act("audit"), "app.audit", "A")
    yield Command("Help", "The keys that work here, searched by word or by key", act("keys"), "app.help", "?")
    yield Command("Manual", "The page that fits what the cursor is on", act("manual"), "app.manual", "F1")
    yield Command("Own keys", "Where the file is that changes keys", act("keys_file"))
    yield Command("Messages", "What was said in this session", act("notices"))
    yield Command("When a run ends", "Nothing, the bell, or a message of the desktop", act("when_run_ends"))
    yield Command("Where runs are computed", "In how much memory, or on which Dask cluster", act("computing"))
    yield Command("Redraw", "Paint the whole screen again", act("redraw"), "app.redraw", "ctrl+l")
    yield Command("Theme", "Dark, light, high contrast or the terminal's colours", act("change_theme"))
    yield Command("Save picture", "Write this screen to an SVG file", app.deliver_screenshot)
    yield Command("Quit", "Leave the app; runs go on", act("quit"))
