"""Parts that are installed on request: ``pip install 'sfumato[gan]'``."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from .errors import NotInstalled

__all__ = ["GAN", "Extra"]


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra of the package: its name, and the modules that it brings."""

    name: str
    modules: tuple[str, ...]

    @property
    def installed(self) -> bool:
        """Whether its modules are there; none is imported."""
        return all(importlib.util.find_spec(module) is not None for module in self.modules)

    @property
    def command(self) -> str:
        """How it is installed."""
        return f"pip install 'sfumato[{self.name}]'"

    def require(self, place: str) -> None:
        """NotInstalled at ``place`` where it is not installed."""
        if not self.installed:
            raise NotInstalled(
                place, f"this method needs the extra [{self.name}], which is not installed: {self.command}"
            )


GAN = Extra("gan", ("ctgan", "torch"))
