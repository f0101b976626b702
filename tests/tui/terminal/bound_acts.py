"""Every binding that the app, its screens and their widgets declare."""

import importlib
import pkgutil

from textual.binding import Binding
from textual.dom import DOMNode

import sfumato.tui.screens
import sfumato.tui.terminal
import sfumato.tui.widgets
from sfumato.tui.app.app import SfumatoApp


def classes():
    for package in (sfumato.tui.screens, sfumato.tui.widgets, sfumato.tui.terminal):
        for info in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            for value in vars(module).values():
                if isinstance(value, type) and issubclass(value, DOMNode) and value.__module__ == module.__name__:
                    yield value
    yield SfumatoApp


def declared():
    """Pairs of an owner and one of its bindings."""
    return [(kind, one) for kind in classes() for one in vars(kind).get("BINDINGS", ()) if isinstance(one, Binding)]
