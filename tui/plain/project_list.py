"""Menu Projects: list, open, the demo, import of a file."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.engine.errors import BadInput, near_miss_hint
from sfumato.engine.wording import count_noun, split_names
from sfumato.workspace.store.runs import ProjectSummary, find_run, list_project_summaries

from .run_words import run_outcome_text
from .runs import follow_open_run
from .session import MenuEntry, NumberedMenu, PlainSession
from .talk import ActNotPossible

if TYPE_CHECKING:
    from sfumato.workspace.reporting.released_file import ReleasedFileView
    from sfumato.workspace.service.importing import FilePreview

DEMO = "randhie"
BLANKS, NUMBERED, FIRST_LINE, NOTHING = "blanks", "numbered", "first line", "none"
PEOPLE, SUMS = "people", "sums"
"""Answers that are words."""


def list_projects(session: PlainSession) -> None:
    """Print every project in a line, the one with the newest run first."""
    known = list_project_summaries(session.workspace)
    session.conversation.say(f"{count_noun(len(known), 'project')}." if known else "No project yet.")
    session.conversation.print_numbered([project_line(session, one) for one in known])


def project_line(session: PlainSession, project: ProjectSummary) -> str:
    """Return a project on one line: ``visits, 1 dataset, 2 runs; run 2 is done: all 3 thresholds are met``."""
    newest = (
        ""
        if project.last is None
        else f"; run {project.last.run.id} is {run_outcome_text(session.workspace, project.last)}"
    )
    here = ", open" if project.id == session.project_id else ""
    return f"{project.name}{here}, {count_noun(project.datasets, 'dataset')}, {count_noun(project.runs, 'run')}{newest}"


def open_project(session: PlainSession) -> None:
    """Open a project, which all other menus are about."""
    known = list_project_summaries(session.workspace)
    if not known:
        raise ActNotPossible("there is no project. Run the demo or import a file first.")
    session.conversation.print_numbered([project_line(session, one) for one in known])
    session.open_project(known[session.conversation.choose("Which project?", [one.name for one in known])])


def run_demo(session: PlainSession) -> None:
    """Run the shipped study, and follow it to its end."""
    from sfumato.workspace.recipes import find_recipe
    from sfumato.workspace.service.prepare import prepare_run

    if not session.conversation.confirm(
        "Run the demo, a study of 20,190 person-years? It takes about a minute.", default=True
    ):
        return
    prepared = prepare_run(find_recipe(DEMO), key=session.workspace.read_workspace_key())
    session.open_run(find_run(session.workspace, prepared.enter(session.workspace)))
    follow_open_run(session)


def import_a_file(session: PlainSession) -> None:
    """Import a file into a project, and describe its columns."""
    from sfumato.workspace.reporting.reading import undecided_lines
    from sfumato.workspace.reporting.words import records_and_dropped_text
    from sfumato.workspace.service.importing import FIRST_ROWS

    from ..session.importing import (
        check_answer,
        column_remarks,
        import_in_process,
        import_or_ask_in_process,
        plain_question,
        preview_in_process,
        proposed_answer,
        selection_from_answers,
    )

    talk = session.conversation
    file = talk.ask("Which file?", "a path", _check_path_exists)
    talk.say(f"File: {file}.")
    project = talk.ask("Into which project?", "the name of a project, new or not", str, Path(file).stem)
    talk.say(f"Project: {project}.")
    settings = _ask_fixed_widths(session, file)
    # An empty line takes the default, which must not show confidential values.
    with_rows = talk.confirm(
        f"Show its first {FIRST_ROWS} rows before it is imported? They are confidential.", default=False
    )
    talk.say("The file is read; this can take a minute.")
    preview: FilePreview | None
    if with_rows:
        found, preview = None, preview_in_process(str(Path(file).expanduser()), settings)
        talk.print_lines(_first_rows_lines(preview))
    else:
        answered = import_or_ask_in_process(session.workspace.directory, file, project, settings)
        found, preview = answered.result, answered.preview
    if found is None:
        assert preview is not None
        answers = {}
        for column in preview.asked_columns:
            name = column.variable.name
            talk.say(f"{name}: {plain_question(column)}.")
            answers[name] = talk.ask(
                f"What is {name}?",
                "a kind, a form such as date:dd.mm.yyyy, or leave out",
                partial(check_answer, preview, name),
                proposed_answer(column),
            )
        if with_rows and not talk.confirm(f"Import {preview.source} with these readings?", default=True):
            talk.say("Nothing is imported.")
            return
        selection = selection_from_answers(preview, answers)
        found = import_in_process(session.workspace.directory, file, project, settings, selection)
    talk.say(f"{found.source}: {records_and_dropped_text(found.records, found.dropped)} in project {found.project}.")
    talk.print_lines(list(found.notes))
    if found.detection is not None:
        talk.print_lines(undecided_lines(found.detection))
    for column in found.columns:
        # Columns that are left out are listed below with their reasons.
        if column.is_included:
            about = (
                f"{column.variable.kind}, {count_noun(column.missing, 'missing value')}, {column.distinct:,} different"
            )
            talk.say(f"{column.variable.name}: {about}.")
    talk.print_lines(column_remarks(found.columns))
    session.open_project(next(one for one in list_project_summaries(session.workspace) if one.id == found.project_id))
    talk.say("Kinds are guesses. Data corrects them and gives each variable a role; then Plan drafts the steps.")


def _first_rows_lines(preview: FilePreview) -> list[str]:
    """Return how each column of a file is read, a line each, then its first rows."""
    from sfumato.workspace.reporting.reading import column_reading, guessed_role

    by_name = {column.variable.name: column for column in preview.columns}
    shown = [by_name[name] for name in preview.first_rows]
    lines = [
        f"{one.variable.name}: read as {column_reading(one)}, {guessed_role(one)}, {count_noun(one.missing, 'missing value')}."
        for one in shown
    ]
    rows = zip(*preview.first_rows.values(), strict=True)
    for number, row in enumerate(rows, 1):
        said = (f"{name} {value or 'no value'}" for name, value in zip(preview.first_rows, row, strict=True))
        lines.append(f"Row {number}, confidential: {', '.join(said)}.")
    return lines


def _ask_fixed_widths(session: PlainSession, file: str) -> dict[str, Any]:
    """Return the keys of ``[data.format]`` for a file whose columns seem to have fixed widths; none for another."""
    from ..session.importing import find_fixed_widths

    talk = session.conversation
    doubt = find_fixed_widths(file)
    if doubt is None:
        return {}
    talk.say(f"{Path(file).name} looks like a table of fixed widths: {doubt.explanation}.")

    def check_widths(answer: str) -> dict[str, Any]:
        """Return the keys of the format for the widths, or for blanks. Raises BadInput."""
        if answer.lower() == BLANKS:
            return {"delimiter": " "}
        parts = [part.strip() for part in answer.split(",")]
        if wrong := [part for part in parts if not part.isdecimal()]:
            raise BadInput("", f'"{wrong[0]}" is no number of characters.')
        return _check_format({"widths": list(map(int, parts))})

    settings = talk.ask(
        "How many characters has each column?",
        f"numbers with commas between them, or {BLANKS} where these separate the cells",
        check_widths,
        doubt.alternatives[0],
    )
    if "widths" not in settings:
        talk.say("Blanks separate the cells.")
        return settings
    talk.say(f"Widths: {', '.join(map(str, settings['widths']))}.")

    def check_names(answer: str) -> dict[str, Any]:
        """Return the keys of the format with the names, or without for numbered columns. Raises BadInput."""
        if answer.lower() == FIRST_LINE:
            return _check_format({**settings, "header": True})
        if answer.lower() == NUMBERED:
            return _check_format({**settings, "header": False})
        return _check_format({**settings, "header": False, "names": list(split_names([answer]))})

    named = talk.ask(
        f"What are the names of the {count_noun(len(settings['widths']), 'column')}?",
        f"names with commas between them, {FIRST_LINE} where it has them, or {NUMBERED}",
        check_names,
        NUMBERED,
    )
    talk.say(f"Names: {', '.join(named.get('names', [])) or (FIRST_LINE if named['header'] else NUMBERED)}.")
    return named


def _check_format(settings: dict[str, Any]) -> dict[str, Any]:
    """Return keys of ``[data.format]`` that suit each other. Raises BadInput."""
    from sfumato.engine.recipe.text_format import TextFormat

    try:
        TextFormat.from_table(settings)
    except BadInput as error:
        raise BadInput("", f"{error.message.rstrip('.')}.") from None
    return settings


def check_a_file(session: PlainSession) -> None:
    """Say what one anonymised file shows by itself, and write a page about it where one is wanted."""
    from sfumato.workspace.reporting.released_file import (
        UNSEEN,
        AnonymityLimits,
        limits_sentence,
        released_file_lines,
        released_file_sentences,
    )

    from ..session.released_file import evaluate_in_process, released_columns_in_process

    talk = session.conversation
    file = talk.ask("Which anonymised file?", "a path", _check_path_exists)
    talk.say(f"File: {file}. Its columns are read.")
    columns = released_columns_in_process(file)
    for name, values in columns.items():
        talk.say(f"{name}: {', '.join(values)}." if values else f"{name}.")
    possible = "names with commas between them"
    known = _ask_columns(session, "Which columns may an intruder know?", possible, columns)
    others = [name for name in columns if name not in known]
    wanted = f"{possible}, or {NOTHING}"
    sensitive = _ask_columns(session, "Which columns are sensitive?", wanted, others, NOTHING)
    k = _ask_limit(session, "The fewest records in a class, k?", "a whole number from 2 on", _check_k)
    l = t = None  # noqa: E741
    if sensitive:
        l = _ask_limit(  # noqa: E741
            session, "The fewest different values in a class, l?", "a number above 1", lambda value: value > 1
        )
        t = _ask_limit(
            session, "The largest distance of a class, t?", "a number above 0, at most 1", lambda value: 0 < value <= 1
        )
    talk.say("The file is read; this can take a minute.")
    view = evaluate_in_process(file, known, sensitive, AnonymityLimits(None if k is None else int(k), l, t))
    talk.say(limits_sentence(view))
    talk.print_lines(released_file_sentences(view))
    talk.print_lines([f"{line}." for line in released_file_lines(view)])
    talk.say(UNSEEN)
    _offer_page(session, view)


def audit_table_file(session: PlainSession) -> None:
    """Say which hidden cells of tables that any tool made follow from what they print."""
    from sfumato.workspace.reporting.audited_tables import (
        MOST_LINES,
        NOT_COVERED,
        audited_tables_sentences,
        left_out_sentence,
    )
    from sfumato.workspace.service.table_file_audit import TableAuditSettings, audit_table_files
    from sfumato.workspace.table_files.printed_files import PrintedForm
    from sfumato.workspace.visible_text import replace_unprintable

    talk = session.conversation
    files = [talk.ask("Which table?", "the path of a CSV or .tab file", _check_path_exists)]
    talk.say(f"Table: {files[0]}.")
    while more := talk.ask(
        "Which other table of the same people?", f"a path, or {NOTHING}", _check_other_path, NOTHING
    ):
        files.append(more)
        talk.say(f"Table: {more}.")
    talk.say("No further table.")
    kind = talk.ask("What do they add up?", f"{PEOPLE} or {SUMS}", _check_kind, PEOPLE)
    talk.say("The tables are read; this can take a minute.")
    settings = TableAuditSettings(PrintedForm(kind="counts" if kind == PEOPLE else "sums"))
    found = audit_table_files(files, settings)
    talk.say(f"{found.headline}.")
    talk.print_lines(audited_tables_sentences(found))
    talk.print_lines(
        [
            replace_unprintable(f"Line {one.line} of {one.file}: {one.cell}; found out by {one.reason_words}.")
            for one in found.found[:MOST_LINES]
        ]
    )
    if left := left_out_sentence(len(found.found)):
        talk.say(f"{left}.")
    talk.say(NOT_COVERED)


def _check_other_path(answer: str) -> str:
    """Return a path that exists, empty for none. Raises BadInput."""
    return "" if answer == NOTHING else _check_path_exists(answer)


def _check_kind(answer: str) -> str:
    """Return what tables add up. Raises BadInput."""
    if answer not in (PEOPLE, SUMS):
        raise BadInput("", f"{answer} is neither {PEOPLE} nor {SUMS}.")
    return answer


def _check_k(value: float) -> bool:
    """Return whether a number can be a limit on k."""
    return value >= 2 and value.is_integer()


def _ask_columns(
    session: PlainSession, question: str, possible: str, columns: Collection[str], default: str = ""
) -> tuple[str, ...]:
    """Ask for some of the ``columns``, and confirm them; none where the answer is the default."""

    def check(answer: str) -> tuple[str, ...]:
        """Return the columns that were answered. Raises BadInput."""
        names = () if answer == default else split_names([answer], columns)
        if wrong := [name for name in names if name not in columns]:
            raise BadInput("", f'There is no column "{wrong[0]}" left{near_miss_hint(wrong[0], columns)}.')
        return names

    found = session.conversation.ask(question, possible, check, default)
    session.conversation.say(f"Columns: {', '.join(found) or NOTHING}.")
    return found


def _ask_limit(
    session: PlainSession, question: str, possible: str, can_be_limit: Callable[[float], bool]
) -> float | None:
    """Ask for a limit, and confirm it; None where there is none."""

    def check(answer: str) -> float | None:
        """Return the limit that was answered. Raises BadInput."""
        if answer == NOTHING:
            return None
        try:
            value = float(answer)
        except ValueError:
            raise BadInput("", f'"{answer}" is no number.') from None
        if not can_be_limit(value):
            raise BadInput("", f"{answer} is not {possible}.")
        return value

    limit = session.conversation.ask(question, f"{possible}, or {NOTHING}", check, NOTHING)
    session.conversation.say("No limit." if limit is None else f"Limit: {limit:g}.")
    return limit


def _offer_page(session: PlainSession, view: ReleasedFileView) -> None:
    """Write a page about a released file where one is wanted."""
    from sfumato.workspace.policy.disclosure import INTERNAL
    from sfumato.workspace.service.released_file import check_page_path, write_released_file_page

    def check(answer: str) -> Path | None:
        """Return a path at which a page can be written; None for no page. Raises BadInput."""
        if answer == NOTHING:
            return None
        path = Path(answer).expanduser()
        try:
            check_page_path(path)
        except BadInput:
            raise BadInput("", f'"{answer}" exists, or lies in no directory; name a new file.') from None
        return path

    possible = f"a new file such as page.html or page.md, or {NOTHING}"
    page = session.conversation.ask("Write a page about it?", possible, check, NOTHING)
    if page is None:
        session.conversation.say("No page is written.")
        return
    write_released_file_page(view, page)
    session.conversation.say(f"Page: {page}. {INTERNAL}.")


def _check_path_exists(answer: str) -> str:
    """Return a path that exists. Raises BadInput."""
    path = Path(answer).expanduser()
    # A sheet of a workbook or a member of an archive may follow a colon.
    if not path.exists() and ":" not in answer:
        raise BadInput("", f'There is no file "{answer}".')
    return str(path)


MENU = NumberedMenu(
    "Projects",
    "list, open and begin projects",
    (
        MenuEntry("List projects", "each with its newest run", list_projects),
        MenuEntry("Open a project", "all places then speak of it", open_project),
        MenuEntry("Run the demo", "a study that ships, of 20,190 person-years", run_demo),
        MenuEntry("Import a file", "text, Excel, SPSS, Stata, SAS or Parquet", import_a_file),
        MenuEntry("Check an anonymised file", "k, l and t of one file, without the confidential one", check_a_file),
        MenuEntry("Audit tables", "which hidden cells follow, in tables of any tool", audit_table_file),
    ),
)
