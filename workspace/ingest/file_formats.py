"""Registry of file formats: each is one module of ``formats/`` that defines ``FORMAT``, found by listing that folder.

The module's name is the format's name, with ``_`` for ``-``: ``sas_xpt`` defines ``sas-xpt``.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.engine.errors import BadInput

from . import formats as folder

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.engine.data.schema import Schema, Variable
    from sfumato.engine.recipe.text_format import TextFormat

    from .raw_tables import RawTable
    from .sources import SourceFile
    from .spooled_columns import SpoolPlace

SIGNATURE_BYTES = 600
"""Number of bytes from which a format is recognised."""
DEFAULT_ORDER = 1_000


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """How a file is to be read, as the recipe and the user say.

    place: recipe key at which an error is reported
    schema: declared variables
    form: format of a text file, or place of the table in a sheet
    sheet: name of a sheet
    given_keys: keys of ``[data.format]`` that the owner has set, where the others of a sheet are to be detected; None to
        read it as ``form`` says
    needed: columns that are read at once, others when they are asked for; None for all
    spool: where the columns of a long file lie while it is read; None for memory
    """

    place: str = "data.file"
    schema: Schema | None = None
    form: TextFormat | None = None
    sheet: str = ""
    given_keys: Mapping[str, Any] | None = None
    needed: frozenset[str] | None = None
    spool: SpoolPlace | None = None


@dataclass(frozen=True, slots=True)
class OutputTable:
    """Released dataset as a format writes it.

    frame: records (n, k), levels by their labels; where the format keeps codes, by their codes
    variables: variables by name
    levels: levels that occur in some of the datasets that are released together
    kinds: kinds of missing values (n, j), None where no value is missing
    named_kinds: kinds that may be declared, by variable
    note: description of the table
    """

    frame: pd.DataFrame
    variables: Mapping[str, Variable]
    levels: Mapping[str, Sequence[str]]
    kinds: pd.DataFrame
    named_kinds: Mapping[str, Sequence[str]]
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FileFormat:
    """File format: how it is recognised, read and written.

    kind: name before "file" in a sentence, "an Excel"
    suffixes: endings of its names, first that of released files
    read: returns the table of a file of any size, whose columns may be read on demand; raises BadInput
    recognises: tests the first ``SIGNATURE_BYTES`` of a file; None for text, which is what no other format recognises
    refused_signatures: beginnings of files of older versions, with what to do
    uses_subprocess: parsed in a process of its own, given no more than the sheet and how it is read; in its messages ``{plain}`` and
        ``{kind}`` stand for the file, ``{name}`` for its quoted name
    has_sheets: files have sheets
    write: raises NotReleased where the format has no room for the dataset
    write_blocks: yields the bytes of a dataset that comes some rows at a time, with the same levels; None where all are
        needed at once; raises NotReleased
    released_as: format in which data of a format without ``write`` are released
    keeps_codes: released levels are codes, with labels and kinds of missing value
    name_columns: returns the name under which each column is written, another where the program refuses its own
    spreadsheet_safe: in released texts an apostrophe keeps a spreadsheet program from seeing a formula
    croissant_type: media type by which Croissant's tools know it, where it is another
    required_modules: modules without which it is neither read nor written
    list_title: name in lists of readable formats
    manual_sentence: sentence for the manual
    order: place in lists; formats that declare none follow by name
    name: name of its module, whatever is declared
    """

    kind: str
    suffixes: tuple[str, ...]
    read: Callable[[SourceFile, ReadRequest], RawTable]
    recognises: Callable[[bytes], bool] | None = None
    refused_signatures: Mapping[bytes, str] = field(default_factory=dict)
    uses_subprocess: bool = False
    has_sheets: bool = False
    write: Callable[[OutputTable], bytes] | None = None
    write_blocks: Callable[[Iterator[OutputTable]], Iterator[bytes]] | None = None
    released_as: str = ""
    keeps_codes: bool = False
    name_columns: Callable[[Iterable[str]], Mapping[str, str]] | None = None
    spreadsheet_safe: bool = False
    media_type: str = "application/octet-stream"
    croissant_type: str = ""
    charset: str = ""
    required_modules: tuple[str, ...] = ()
    list_title: str = ""
    manual_sentence: str = ""
    order: int = DEFAULT_ORDER
    """Its place in lists; those that declare none follow by name."""
    name: str = ""
    """That of its module, whatever is declared."""

    @property
    def title(self) -> str:
        """Return the name of the format without its article: ``Excel``."""
        return self.kind.partition(" ")[2]

    @property
    def suffix(self) -> str:
        """Return the ending of released files, without the dot."""
        return self.suffixes[0].removeprefix(".")

    @property
    def describes_itself(self) -> bool:
        """Return whether files of the format define how they are read, as all but text files do."""
        return self.recognises is not None

    def check_installed(self, place: str) -> None:
        """Raise BadInput at ``place`` where a module that the format needs is not installed."""
        lacking = [module for module in self.required_modules if importlib.util.find_spec(module) is None]
        if lacking:
            raise BadInput(place, f"{self.kind} file needs {', '.join(lacking)}, which is not installed")


def _module_names(directories: tuple[str, ...]) -> list[str]:
    """Return the names of the modules in the folders, without those that only share code (``_name``)."""
    return sorted(one.name for one in pkgutil.iter_modules(directories) if not one.name.startswith("_"))


def _format_directories() -> tuple[str, ...]:
    """Return the folders in which formats are looked up."""
    return tuple(folder.__path__)


@functools.cache
# formats import what reads and writes files inside their functions: listing formats must cost a command no time
def _load_format(module: str) -> FileFormat:
    """Import the module of a format and return its ``FORMAT`` under the module's name."""
    found = importlib.import_module(f"{folder.__name__}.{module}").FORMAT
    assert isinstance(found, FileFormat)
    return replace(found, name=module.replace("_", "-"))


@functools.cache
# the folders are the key of the cache, so that a test's own formats are seen
def _load_all_formats(directories: tuple[str, ...]) -> tuple[FileFormat, ...]:
    """Load the formats of these folders, in the order of lists."""
    return tuple(sorted(map(_load_format, _module_names(directories)), key=lambda one: (one.order, one.name)))


def all_formats() -> tuple[FileFormat, ...]:
    """Return every format, in the order of lists."""
    return _load_all_formats(_format_directories())


def format_by_name(name: str) -> FileFormat:
    """Return the format of this name, loaded without the others. Raises KeyError for an unknown name."""
    module = name.replace("-", "_")
    if module not in _module_names(_format_directories()):
        raise KeyError(name)
    return _load_format(module)


def format_of_suffix(file: str) -> FileFormat:
    """Return the format that the ending of a file name stands for; the text format for an unknown ending."""
    suffix = Path(file).suffix.lower()
    return next((one for one in all_formats() if suffix in one.suffixes), plain_text_format())


def recognise_format(content: bytes) -> FileFormat:
    """Return the format of a file that begins with these bytes; the text format where no other is recognised."""
    head = content[:SIGNATURE_BYTES]
    return next(
        (one for one in all_formats() if one.recognises is not None and one.recognises(head)), plain_text_format()
    )


def plain_text_format() -> FileFormat:
    """Return the format of text files."""
    return next(one for one in all_formats() if not one.describes_itself)


def refusal_reason(content: bytes) -> str:
    """Return why a file that begins with these bytes cannot be read; empty where no format knows a reason."""
    known = (one.refused_signatures.items() for one in all_formats())
    return next((why for refused in known for magic, why in refused if content.startswith(magic)), "")


def readable_formats_text() -> str:
    """Return the list of readable formats as text: ``CSV, TSV, ... and SAS``."""
    *most, last = dict.fromkeys(one.list_title or one.title for one in all_formats())
    return f"{', '.join(most)} and {last}"


def sheet_formats_text() -> str:
    """Return the formats whose files have sheets, as text: ``Excel``."""
    return " or ".join(one.title for one in all_formats() if one.has_sheets)
