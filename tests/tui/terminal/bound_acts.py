"""Every binding that the app, its screens and their widgets declare."""

import importlib
import pkgutil

from textual.binding import Binding
from textual.dom import DOMNode

import sfumato.tui


def classes():
    for info in pkgutil.walk_packages(sfumato.tui.__path__, "sfumato.tui."):
        module = importlib.import_module(info.name)
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, DOMNode) and value.__module__ == module.__name__:
                yield value


def declared():
    """Pairs of an owner and one of its bindings."""
    return [(kind, one) for kind in classes() for one in vars(kind).get("BINDINGS", ()) if isinstance(one, Binding)]
