"""The formats of files: each is one module of ``formats/`` that defines ``FORMAT``, found by listing that folder.

The module's name is the format's, ``sas_xpt`` that of ``sas-xpt``. A module is imported when it is first needed, and imports what reads
and writes files within its functions: a list of formats must cost a command no time.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.engine.errors import BadInput

from . import formats as folder

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.engine.data.schema import Schema, Variable
    from sfumato.engine.recipe.text_format import TextFormat

    from .raw_tables import RawTable
    from .sources import Source

HEAD_BYTES = 600
"""A format is recognised by no more than these."""
LAST = 1_000


@dataclass(frozen=True, slots=True)
class Asked:
    """How a file is to be read: the ``place`` of a fault, and what recipe and user say of it."""

    place: str = "data.file"
    schema: Schema | None = None
    form: TextFormat | None = None
    sheet: str = ""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A released dataset, as a format writes it.

    ``frame`` (n, k) has levels by their labels; where the format keeps codes, by their codes. ``levels`` are those that occur in some
    of the datasets that leave together. ``kinds`` (n, j) are those of missing values, None where there is none, of which ``named`` may
    be declared. ``note`` says what the table is.
    """

    frame: pd.DataFrame
    variables: Mapping[str, Variable]
    levels: Mapping[str, Sequence[str]]
    kinds: pd.DataFrame
    named: Mapping[str, Sequence[str]]
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """A file format.

    ``kind`` stands before "file" in a sentence: "an Excel". ``suffixes`` are the endings of its names, first that of released files.
    ``recognised`` looks at the first ``HEAD_BYTES`` of a file; None marks text, which is what no other format recognises. ``refused``
    are beginnings of files of older versions, with what to do. ``read`` gives the table of a file of any size, whose columns it may read when they
    are asked for; it raises BadInput. A format that is read in a ``subprocess`` is parsed in a process of its own: in its messages ``{plain}`` and
    ``{kind}`` stand for the file, which is called ``{name}``, and it is given no more than the sheet. ``write`` raises NotReleased where the format has no room for what there is.
    ``released_as`` is the format in which data of a format without ``write`` leave. ``keeps_codes``: released levels are codes, with
    labels and kinds of missing value. ``spreadsheet_safe``: in released texts an apostrophe keeps a spreadsheet program from seeing a
    formula. ``croissant_type`` is the media type by which Croissant's tools know it, where it is another. ``needs`` are modules without
    which it is neither read nor written. ``listed`` is its name in lists of what can be read; ``manual`` is a sentence for the manual.
    """

    kind: str
    suffixes: tuple[str, ...]
    read: Callable[[Source, Asked], RawTable]
    recognised: Callable[[bytes], bool] | None = None
    refused: Mapping[bytes, str] = field(default_factory=dict)
    subprocess: bool = False
    sheets: bool = False
    write: Callable[[Outgoing], bytes] | None = None
    released_as: str = ""
    keeps_codes: bool = False
    spreadsheet_safe: bool = False
    media_type: str = "application/octet-stream"
    croissant_type: str = ""
    charset: str = ""
    needs: tuple[str, ...] = ()
    listed: str = ""
    manual: str = ""
    order: int = LAST
    """Its place in lists; those that declare none follow by name."""
    name: str = ""
    """That of its module, whatever is declared."""

    @property
    def title(self) -> str:
        return self.kind.partition(" ")[2]

    @property
    def suffix(self) -> str:
        """The ending of released files, without the dot."""
        return self.suffixes[0].removeprefix(".")

    @property
    def describes_itself(self) -> bool:
        """Whether a file says itself how it is read, as all but files of text do."""
        return self.recognised is not None

    def require(self, place: str) -> None:
        """BadInput at ``place`` where a module that it needs is not installed."""
        lacking = [module for module in self.needs if importlib.util.find_spec(module) is None]
        if lacking:
            raise BadInput(place, f"{self.kind} file needs {', '.join(lacking)}, which is not installed")


def _modules(directories: tuple[str, ...]) -> list[str]:
    return sorted(one.name for one in pkgutil.iter_modules(directories) if not one.name.startswith("_"))


def _directories() -> tuple[str, ...]:
    return tuple(folder.__path__)


@functools.cache
def _loaded(module: str) -> Format:
    found = importlib.import_module(f"{folder.__name__}.{module}").FORMAT
    assert isinstance(found, Format)
    return replace(found, name=module.replace("_", "-"))


@functools.cache
def _all(directories: tuple[str, ...]) -> tuple[Format, ...]:
    return tuple(sorted(map(_loaded, _modules(directories)), key=lambda one: (one.order, one.name)))


def formats() -> tuple[Format, ...]:
    """Every format, in the order of lists."""
    return _all(_directories())


def format_called(name: str) -> Format:
    """The format of this name, loaded without the others. KeyError where there is none."""
    module = name.replace("-", "_")
    if module not in _modules(_directories()):
        raise KeyError(name)
    return _loaded(module)


def format_of_name(file: str) -> Format:
    """The format that a file's ending stands for; that of text where it stands for none."""
    suffix = Path(file).suffix.lower()
    return next((one for one in formats() if suffix in one.suffixes), text())


def format_of(content: bytes) -> Format:
    """The format of a file that begins with these bytes; that of text where none is recognised."""
    head = content[:HEAD_BYTES]
    return next((one for one in formats() if one.recognised is not None and one.recognised(head)), text())


def text() -> Format:
    """The format of files of text."""
    return next(one for one in formats() if not one.describes_itself)


def refusal_of(content: bytes) -> str:
    """Why a file that begins with these bytes cannot be read, as far as a format knows it; else empty."""
    known = (one.refused.items() for one in formats())
    return next((why for refused in known for magic, why in refused if content.startswith(magic)), "")


def readable() -> str:
    """``CSV, TSV, ... and SAS``: what can be read."""
    *most, last = dict.fromkeys(one.listed or one.title for one in formats())
    return f"{', '.join(most)} and {last}"


def with_sheets() -> str:
    """The formats whose files have sheets: ``Excel``."""
    return " or ".join(one.title for one in formats() if one.sheets)
