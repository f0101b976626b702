"""Tables as any tool prints them: lines with labels, a value or a sign that it is hidden, and often a status.

    region,trade,count,status        region;month;freq;primary;suppressed
    total,total,25,published         Total;Total;7;FALSE;FALSE
    north,retail,x,hidden            a;5;1;TRUE;TRUE

Columns are found by their names: ``status``, or ``primary`` and ``suppressed`` with TRUE and FALSE; contributors; the
value; all others are labels, unless options say which they are. Files of tau-ARGUS (.tab) are read with their metadata
(.rda). What a file shows of a hidden cell is not printed, and is kept apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.engine.partition.hierarchies import ROOT, Hierarchy, parse_arx_rows
from sfumato.engine.tables.declared_table import COUNT, TOTAL
from sfumato.engine.wording import count_noun, join_names

from .argus_hierarchies import LEAD, read_hierarchy
from .argus_metadata import ArgusMetadata, read_metadata
from .argus_tables import read_table
from .delimited_lines import LINE_END, NUMBER, parse_number, split_lines

HIDDEN_MARKS = (
    "x",
    ":",
    "..",
    "...",
    ".",
    "*",
    "**",
    "c",
    "s",
    "(c)",
    "(x)",
    "#",
    "suppressed",
    "hidden",
    "na",
    "n.a.",
)
"""Signs of a hidden cell, whatever their case."""
UNCLEAR_MARKS = ("-", "\u2013", "")
"""Signs that some offices write for 0 and others for a hidden cell."""
TOTAL_LABELS = ("", "total", "totals", "total*", "_t", "i alt", "insgesamt", "gesamt", "ensemble", "totaal", "totalt")
SHORT_TOTAL_LABELS = ("tot", "t", "all", "alle", "sum", "*")
"""Labels that are a total where no other label is one."""
COUNT_NAMES = ("count", "counts", "n", "freq", "frequency", "number", "records", "people", "persons", "antall", "anzahl", "cases")  # fmt: skip
VALUE_NAMES = (*COUNT_NAMES, "value", "values", "obs_value", "sum", "turnover")
CONTRIBUTOR_NAMES = ("contributors", "units", "enterprises", "firms", "n_contributors")
HIDDEN_STATUSES = ("hidden", "primary", "secondary", "suppressed", "unsafe", "confidential", "c", "u", "m", "x", "s*")
PRIMARY_STATUSES = ("primary", "unsafe", "u")
PRINTED_STATUSES = ("published", "safe", "printed", "", "s", "p", "protected", "e", "empty", "z", "a", "v")
TRUE_WORDS, FALSE_WORDS = ("true", "t", "1", "yes"), ("false", "f", "0", "no", "")
OTHER_NAMES = ("rules", "level", "lowest", "highest", "safe", "rounded", "original", "weight", "singleton", "num")
GROUPING = " grouping"
MAX_FILE_BYTES = 500_000_000


@dataclass(frozen=True, slots=True)
class PrintedForm:
    """What is said of files whose form is not found, or found wrongly; empty where the file decides.

    by: names of the columns with labels
    value, contributors, status: names of the columns of values, of contributors and of statuses
    hidden, zeros: further signs of a hidden cell and of a cell of 0
    totals: further labels of a total
    no_totals: variables of which no row is the total
    kind: whether values are numbers of people, or sums
    separator: what stands between columns
    missing: what a cell in no line is: 0, or hidden
    """

    by: tuple[str, ...] = ()
    value: str = ""
    contributors: str = ""
    status: str = ""
    hidden: tuple[str, ...] = ()
    zeros: tuple[str, ...] = ()
    totals: tuple[str, ...] = ()
    no_totals: tuple[str, ...] = ()
    kind: Literal["", "counts", "sums"] = ""
    separator: str = ""
    missing: Literal["zero", "hidden"] = "zero"


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """A cell as a file prints it.

    number: line of the file, from 1
    labels: label of each variable, "" for the total
    low, high: bounds of its value that a reader sees: equal where it is printed
    is_hidden: whether it is hidden
    is_primary: whether it is hidden for its own sake, None where the file does not say
    shown: the value that stands in the file though the cell is hidden, None without one
    contributors: number of contributors, None where the file does not say
    """

    number: int
    labels: tuple[str, ...]
    low: float
    high: float
    is_hidden: bool = False
    is_primary: bool | None = None
    shown: float | None = None
    contributors: int | None = None


@dataclass(frozen=True, eq=False)
class PrintedFile:
    """A table of a file.

    file: its name, for messages
    variables: name of each variable
    measure: what it adds up
    is_whole: whether values are numbers of people
    lines: its cells
    totals: label of the total of each variable, None without one
    marks: signs that were taken for hidden, with how many cells have them
    remarks: what was found out about its form
    trees: hierarchies that the file itself names, by variable
    """

    file: str
    variables: tuple[str, ...]
    measure: str
    is_whole: bool
    lines: tuple[PrintedLine, ...]
    totals: tuple[str | None, ...]
    marks: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    trees: Mapping[str, Hierarchy] = field(default_factory=dict)

    def name_cell(self, line: PrintedLine) -> str:
        """Return a cell by its labels: ``region=north, trade=total``."""
        named = zip(self.variables, line.labels, strict=True)
        return ", ".join(f"{name}={label or 'total'}" for name, label in named) or "total"


def read_text(path: Path) -> str:
    """Return the text of a file. Raises BadInput."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BadInput(str(path), "is larger than 500 MB; audit the tables one by one")
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {error.strerror or error}") from None
    if content[:2] in (b"PK", b"\x1f\x8b") or b"\x00" in content[:1000]:
        raise BadInput(str(path), "is not a file of text; save the table as CSV")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def read_tree(path: Path) -> Hierarchy:
    """Read a hierarchy: a file of tau-ARGUS (.hrc), or a CSV with a value and its nodes in each line. Raises BadInput."""
    text = read_text(path)
    if path.suffix.lower() == ".hrc":
        return read_hierarchy(text, str(path))
    first = next((line for line in LINE_END.split(text) if line.strip()), "")
    if ";" not in first:
        text = text.replace(",", ";") if '"' not in text else text
    rows = [row for row in parse_arx_rows(text) if any(row)]
    if not rows or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
        raise BadInput(
            str(path), "needs a value and its groups in each line, such as n1;north, the same number in each"
        )
    if len({row[-1] for row in rows}) > 1 or len(rows[0]) == 2:
        rows = [(*row, ROOT) for row in rows]
    try:
        return Hierarchy(tuple(rows), {rows[0][-1]: 1.0} if len(rows) == 1 else {})
    except ValueError as error:
        raise BadInput(str(path), str(error)) from None


def read_printed_file(path: Path, form: PrintedForm, metadata: Path | None = None) -> PrintedFile:
    """Read a table. ``metadata`` is the .rda of a .tab. Raises BadInput with file and line."""
    if path.suffix.lower() == ".tab" or metadata is not None:
        return _read_argus_file(path, metadata)
    return _CsvReader(path, form).read()


class _CsvReader:
    """Reader of one file with a line of names."""

    def __init__(self, path: Path, form: PrintedForm) -> None:
        self.path, self.form, self.place = path, form, str(path)
        text = read_text(path)
        first = next((line for line in LINE_END.split(text) if line.strip()), "")
        if not first:
            raise BadInput(self.place, "is empty; it needs a line of names and a line for each cell")
        self.separator = form.separator or max(",;\t|", key=first.count)
        rows = list(split_lines(text, self.separator, self.place))
        self.heads, self.rows = [head.strip() for head in rows[0][1]], rows[1:]
        for head in self.heads:
            if self.heads.count(head) > 1:
                raise BadInput(f"{self.place}, line {rows[0][0]}", f'has two columns "{head}"; rename one')
        if not self.rows:
            raise BadInput(self.place, "has names and no cells; it needs a line for each cell")
        for number, cells in self.rows:
            if len(cells) != len(self.heads):
                raise BadInput(
                    f"{self.place}, line {number}",
                    f"has {count_noun(len(cells), 'cell')}; the first line has {len(self.heads)}",
                )
        self.marks = dict[str, int]()
        self.remarks = list[str]()

    def column(self, name: str, option: str) -> int:
        """Return the place of a column that an option names. Raises BadInput."""
        if name not in self.heads:
            raise BadInput(option, f'"{self.path}" has no column "{name}"{near_miss_hint(name, self.heads)}')
        return self.heads.index(name)

    def find_column(self, names: Iterable[str]) -> int | None:
        """Return the place of the first of some usual names, None without one."""
        lower = [head.lower() for head in self.heads]
        return next((lower.index(name) for name in names if name in lower), None)

    def read(self) -> PrintedFile:
        """Return the table. Raises BadInput."""
        form = self.form
        status = self.column(form.status, "--status") if form.status else self.find_column(("status", "status_code"))
        flags = {word: self.find_column((word,)) for word in ("primary", "suppressed", "secondary")}
        contributors = (
            self.column(form.contributors, "--contributors")
            if form.contributors
            else self.find_column(CONTRIBUTOR_NAMES)
        )
        taken = {at for at in (status, contributors, *flags.values()) if at is not None}
        labels = [self.column(name, "--by") for name in form.by]
        value = self._value_column(taken | set(labels))
        taken.add(value)
        if contributors == value:
            contributors = None
        if not form.by:
            # Further numbers of an internal file stand behind the value.
            others = {at for at, head in enumerate(self.heads) if at > value and head.lower() in OTHER_NAMES}
            labels = [at for at in range(len(self.heads)) if at not in taken | others]
        names = [self.heads[at] for at in labels]
        groupings = [
            at
            for at, name in zip(labels, names, strict=True)
            if name.endswith(GROUPING) and name[: -len(GROUPING)] in names
        ]
        labels = [at for at in labels if at not in groupings]
        variables = tuple(self.heads[at] for at in labels)
        read = [
            self._read_line(number, cells, labels, value, status, flags, contributors) for number, cells in self.rows
        ]
        self._check_once(read, variables)
        totals = tuple(self._find_total(at, name, read) for at, name in enumerate(variables))
        lines = tuple(
            PrintedLine(
                one.number,
                tuple(TOTAL if label == total else label for label, total in zip(one.labels, totals, strict=True)),
                one.low, one.high, one.is_hidden, one.is_primary, one.shown, one.contributors,
            )
            for one in read
        )  # fmt: skip
        measure, is_whole = self._measure(self.heads[value], lines)
        return PrintedFile(
            self.place, variables, measure, is_whole, lines, totals, dict(self.marks), tuple(self.remarks)
        )

    def _value_column(self, taken: set[int]) -> int:
        """Return the place of the values. Raises BadInput."""
        if self.form.value:
            return self.column(self.form.value, "--value")
        free = [at for at in range(len(self.heads)) if at not in taken and self.heads[at].lower() not in OTHER_NAMES]
        named = [at for at in free if self.heads[at].lower() in VALUE_NAMES]
        if len(named) == 1:
            return named[0]
        numeric = [at for at in named or free if self._is_numeric(at)]
        if not numeric:
            names = join_names([f'"{self.heads[at]}"' for at in free]) or "none is left"
            raise BadInput(self.place, f"has no column with numbers among {names}; name it by --value")
        if len(named) > 1 and len(numeric) > 1:
            names = join_names([f'"{self.heads[at]}"' for at in numeric])
            raise BadInput(self.place, f"has several columns that may be the value ({names}); name it by --value")
        return numeric[-1]

    def _is_numeric(self, at: int) -> bool:
        """Return whether at least one cell of a column is a number, and every other one is a sign that it is hidden."""
        marks = self._hidden_marks()
        texts = [cells[at] for _, cells in self.rows]
        return any(NUMBER.fullmatch(text) for text in texts) and all(
            NUMBER.fullmatch(text) or text.lower() in marks or text in UNCLEAR_MARKS or text[:1] in "<"
            for text in texts
        )

    def _hidden_marks(self) -> set[str]:
        return {*HIDDEN_MARKS, *(mark.lower() for mark in self.form.hidden)}

    def _read_line(
        self,
        number: int,
        cells: Sequence[str],
        labels: Sequence[int],
        value: int,
        status: int | None,
        flags: Mapping[str, int | None],
        contributors: int | None,
    ) -> PrintedLine:
        """Return the cell of a line. Raises BadInput."""
        place = f"{self.place}, line {number}"
        is_hidden, is_primary = self._read_status(cells, status, flags, place)
        low, high, shown, is_mark = self._read_value(cells[value], is_hidden, place)
        count = None
        if contributors is not None and cells[contributors] and NUMBER.fullmatch(cells[contributors]):
            found = parse_number(cells[contributors], self.separator, place)
            if found < 0 or not found.is_integer():
                raise BadInput(
                    place, f'"{cells[contributors]}" is no number of contributors; it is whole, and 0 or more'
                )
            count = int(found)
        own = tuple(cells[at] for at in labels)
        return PrintedLine(number, own, low, high, is_hidden or is_mark, is_primary, shown, count)

    def _read_status(
        self, cells: Sequence[str], status: int | None, flags: Mapping[str, int | None], place: str
    ) -> tuple[bool, bool | None]:
        """Return whether a cell is hidden, and whether for its own sake. Raises BadInput."""
        if status is not None:
            word = cells[status].lower()
            if word not in (*HIDDEN_STATUSES, *PRINTED_STATUSES):
                raise BadInput(
                    place,
                    f'"{cells[status]}" in the column {self.heads[status]} is no status; write hidden or published, or '
                    "primary or secondary where you know it",
                )
            # In files of tau-ARGUS S is safe; offices write s and c for secret.
            hidden = word in HIDDEN_STATUSES
            if hidden and word in (*PRIMARY_STATUSES, "secondary", "m"):
                return True, word in PRIMARY_STATUSES
            return hidden, None
        marks = dict[str, bool]()
        for word, at in flags.items():
            if at is None:
                continue
            text = cells[at].lower()
            if text not in (*TRUE_WORDS, *FALSE_WORDS):
                raise BadInput(place, f'"{cells[at]}" in the column {self.heads[at]} is neither TRUE nor FALSE')
            marks[word] = text in TRUE_WORDS
        if not marks:
            return False, None
        hidden = any(marks.values()) if "suppressed" not in marks else marks["suppressed"]
        return hidden, marks["primary"] if hidden and "primary" in marks else None

    def _read_value(self, text: str, is_hidden: bool, place: str) -> tuple[float, float, float | None, bool]:
        """Return bounds of a value, what the file shows of a hidden one, and whether it is a sign. Raises BadInput."""
        mark = text.lower()
        if text in self.form.zeros:
            return 0.0, 0.0, None, False
        if mark in self._hidden_marks() and text not in self.form.zeros:
            self.marks[text] = self.marks.get(text, 0) + 1
            return 0.0, math.inf, None, True
        if text[:1] == "<" and NUMBER.fullmatch(text[1:].strip().lstrip("=")):
            below = parse_number(text[1:].strip().lstrip("="), self.separator, place)
            self.marks[text] = self.marks.get(text, 0) + 1
            return 0.0, below if text[1:].strip().startswith("=") or not below.is_integer() else below - 1, None, True
        if text in UNCLEAR_MARKS:
            if is_hidden:
                return 0.0, math.inf, None, True
            said = f'"{text}"' if text else "an empty cell"
            word = text or '""'
            raise BadInput(place, f"{said} may be 0 or hidden; say which by --zero-mark {word} or --hidden-mark {word}")
        if not NUMBER.fullmatch(text):
            if is_hidden:
                return 0.0, math.inf, None, True
            raise BadInput(
                place,
                f'"{text}" is neither a number nor a known sign of a hidden cell; name it by --hidden-mark {text}',
            )
        number = parse_number(text, self.separator, place)
        if number < 0:
            raise BadInput(
                place, f'"{text}" is below 0; where it is a sign of a hidden cell, name it by --hidden-mark {text}'
            )
        return (0.0, math.inf, number, False) if is_hidden else (number, number, None, False)

    def _check_once(self, lines: Sequence[PrintedLine], variables: Sequence[str]) -> None:
        """Raise BadInput where a cell has two lines."""
        line_of = dict[tuple[str, ...], int]()
        for one in lines:
            if one.labels in line_of:
                raise BadInput(
                    f"{self.place}, line {one.number}",
                    f"has the labels of line {line_of[one.labels]} ({', '.join(one.labels)}); leave one out, or say which "
                    f"columns are labels by --by {','.join(variables)}",
                )
            line_of[one.labels] = one.number

    def _find_total(self, at: int, name: str, lines: Sequence[PrintedLine]) -> str | None:
        """Return the label of the total of a variable, by its name or by arithmetic, None without one. Raises BadInput."""
        labels = list(dict.fromkeys(one.labels[at] for one in lines))
        if name in self.form.no_totals or len(labels) == 1:
            known = (*TOTAL_LABELS, *SHORT_TOTAL_LABELS)
            return labels[0] if name not in self.form.no_totals and labels[0].lower() in known else None
        named = [label for label in labels if label in self.form.totals]
        for usual in (TOTAL_LABELS, SHORT_TOTAL_LABELS):
            named = named or [label for label in labels if label.lower() in usual]
        if len(named) > 1:
            words = join_names([f'"{label}"' for label in named])
            raise BadInput(self.place, f"has several totals of {name} ({words}); say which by --total")
        if named:
            return named[0]
        sums, maybe = _totals_by_arithmetic(at, labels, lines)
        if len(sums) == 1:
            self.remarks.append(f'"{sums[0]}" is taken for the total of {name}: it is the sum of the other rows.')
            return sums[0]
        if maybe and not sums:
            raise BadInput(
                self.place,
                f'"{maybe[0]}" may be the total of {name}; say so by --total "{maybe[0]}", or --no-total {name} where '
                "it is a row like the others",
            )
        self.remarks.append(f"No row is the total of {name}; if one is, name it by --total.")
        return None

    def _measure(self, head: str, lines: Sequence[PrintedLine]) -> tuple[str, bool]:
        """Return the name of what is added up, and whether it is a number of people. Raises BadInput."""
        numbers = [number for one in lines for number in (one.low, one.shown) if number is not None]
        whole = all(number.is_integer() for number in numbers)
        if self.form.kind == "counts" and not whole:
            raise BadInput(self.place, "has numbers that are not whole, so they are no numbers of people; use --sums")
        if not self.form.kind and whole and head.lower() not in COUNT_NAMES:
            # Readers know that a number of people is whole: sums would seem safer than counts are.
            raise BadInput(
                self.place, f'has whole numbers in "{head}"; say what they are: --counts of people, or --sums'
            )
        is_whole = self.form.kind != "sums" and whole
        return (COUNT if is_whole else head), is_whole


def _totals_by_arithmetic(at: int, labels: Sequence[str], lines: Sequence[PrintedLine]) -> tuple[list[str], list[str]]:
    """Return labels that are the sum of all others wherever these are printed, and those that may be."""
    if len(labels) < 3:
        return [], []
    groups = dict[tuple[str, ...], dict[str, PrintedLine]]()
    for one in lines:
        groups.setdefault(one.labels[:at] + one.labels[at + 1 :], {})[one.labels[at]] = one
    sums, maybe = list[str](), list[str]()
    for label in labels:
        shown = complete = 0
        fits = True
        for own in groups.values():
            total = own.get(label)
            if total is None or total.low != total.high:
                continue
            others = [one for other, one in own.items() if other != label]
            printed = math.fsum(one.low for one in others)
            shown += 1
            if all(one.low == one.high for one in others):
                complete += printed > 0 and len(others) > 1
                fits = fits and abs(total.low - printed) <= 1e-9 * max(1.0, printed)
            else:
                fits = fits and total.low >= printed - 1e-9 * max(1.0, printed)
            if not fits:
                break
        if fits and complete:
            sums.append(label)
        elif fits and shown:
            maybe.append(label)
    return sums, maybe


def _read_argus_file(path: Path, metadata: Path | None) -> PrintedFile:
    """Read a table of tau-ARGUS with its metadata and hierarchies. Raises BadInput."""
    beside = path.with_suffix(".rda") if metadata is None else metadata
    if not beside.exists():
        raise BadInput(str(path), f'needs its metadata; put "{beside.name}" beside it, or name the .rda too')
    found = read_metadata(read_text(beside), str(beside), is_table=True)
    cells = read_table(read_text(path), found, str(path))
    has_status = bool(found.columns_of("status"))
    has_value = any(one.value is not None and one.value != one.frequency for one in cells)
    lines = list[PrintedLine]()
    for number, one in enumerate(cells, start=1):
        value = one.value if has_value else (one.frequency if one.frequency is not None else one.value)
        value = 0.0 if value is None or one.status == "empty" else float(value)
        hidden = one.status in ("unsafe", "secondary")
        lines.append(
            PrintedLine(
                number, one.codes, 0.0 if hidden else value, math.inf if hidden else value, hidden,
                one.status == "unsafe" if hidden else None, value if hidden else None,
                one.frequency if has_value else None,
            )
        )  # fmt: skip
    if not has_status:
        raise BadInput(str(path), "does not say which cells are hidden; add a column with <STATUS> to its metadata")
    columns = [found.variables[at] for at in found.explanatory]
    totals = tuple((one.total or TOTAL) if any(cell.codes[at] == TOTAL for cell in cells) else None
                   for at, one in enumerate(columns))  # fmt: skip
    trees = _argus_trees(path, found, cells_codes={one.name: [cell.codes[at] for cell in cells] for at, one in enumerate(columns)})  # fmt: skip
    response = next((found.variables[at].name for at in found.columns_of("response")), COUNT)
    return PrintedFile(
        str(path), tuple(one.name for one in columns), response if has_value else COUNT, not has_value, tuple(lines), totals,
        {}, (), trees,
    )  # fmt: skip


def _argus_trees(path: Path, metadata: ArgusMetadata, cells_codes: Mapping[str, Sequence[str]]) -> dict[str, Hierarchy]:
    """Return the hierarchies that metadata name, by variable. Raises BadInput."""
    trees = dict[str, Hierarchy]()
    for at in metadata.explanatory:
        one = metadata.variables[at]
        if one.hierarchy_file:
            file = path.parent / one.hierarchy_file.replace("\\", "/").rpartition("/")[2]
            if not file.exists():
                raise BadInput(str(path), f'the hierarchy of {one.name}, "{file.name}", is not beside it; put it there')
            trees[one.name] = read_hierarchy(read_text(file), str(file), one.lead or LEAD)
        elif one.digits:
            ends = [sum(one.digits[: level + 1]) for level in range(len(one.digits))]
            codes = {code for code in cells_codes[one.name] if code != TOTAL}
            inner = [code for code in sorted(codes) if not any(o != code and o.startswith(code) for o in codes)]
            paths = [[code[:end] for end in ends if end <= len(code)] or [code] for code in inner]
            deepest = max(map(len, paths), default=1)
            rows = [(*([own[-1]] * (deepest - len(own))), *reversed(own), ROOT) for own in paths]
            if rows:
                trees[one.name] = Hierarchy(tuple(rows), {ROOT: 1.0} if len(rows) == 1 else {})
    return trees
