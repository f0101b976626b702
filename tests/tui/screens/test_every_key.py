"""Every key that a screen names does something on it; a key that no place here tries fails a test."""

import shutil
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from believed import believed_workspace
from bound_acts import declared
from prepared_tables import variables_of
from prepared_workspaces import finished_workspace
from textual.binding import Binding

from sfumato.engine.posterior.ensemble import chain_trace
from sfumato.tui.keys.acts import find_act
from sfumato.tui.session.state import AppState, save_state
from sfumato.workspace.plan.drafts import find_draft, save_draft
from sfumato.workspace.plan.edits import replace_sections
from sfumato.workspace.store.artefacts import write_trace
from sfumato.workspace.store.workspace import Workspace

CENSUS = {
    "title": "Census",
    "variables": variables_of(
        "age: count quasi_identifier",
        "hours: count quasi_identifier",
        "town: categorical quasi_identifier",
        "status: categorical sensitive",
    ),
    "release": {"seed": 7},
    "anonymisation": [{"method": "mondrian", "k": 2}],
    "measure": [{"method": "quality.nmi_v1", "variables": ["age"]}, {"method": "quality.non_suppressed"}],
    "study": [
        {"method": "studies.calibration", "generators": 2, "ks": [2, 60], "subsets": 2, "smallest_group": 10},
        {"method": "studies.minimisation", "k": 2, "step": 0.5, "subsamples": 2, "nmi": 0.3},
        {"method": "studies.minimisation", "k": 3, "step": 0.5, "subsamples": 2, "nmi": 0.3},
    ],
    "threshold": [{"value": "quality.nmi_v1.minimum_nmi", "min": 0.5}],
}


@dataclass(frozen=True)
class Place:
    """A screen: the tab and the keys that lead there, whose keys are tried, and what must be done before some of them.

    on_verdict: whether the cursor goes to a verdict before the keys; the board begins on a finding of the gate
    """

    owners: tuple[str, ...]
    tab: str | None = None
    keys: tuple[str, ...] = ()
    before: dict[str, tuple[str, ...]] = field(default_factory=dict)
    data: str = "built_data"
    on_verdict: bool = False


GRID = {f"Grid.{name}": ("G",) for name in ("up", "first", "page_up")} | {
    f"Grid.{name}": ("g",) for name in ("down", "last", "page_down")
}
CELLS = (
    {f"CellGrid.{name}": ("G",) for name in ("up", "first", "page_up")}
    | {f"CellGrid.{name}": ("g",) for name in ("down", "last", "page_down")}
    | {f"CellGrid.{name}": ("act:far_right",) for name in ("left", "far_left")}
    | {f"CellGrid.{name}": ("act:far_left",) for name in ("right", "far_right")}
)
PLOT = {f"Plot.{name}": ("0", "end") for name in ("left", "far_left", "first")} | {
    f"Plot.{name}": ("0", "home") for name in ("right", "far_right", "last")
}
PLOT |= {
    f"Plot.{name}": ("0", "home", "plus", "act:zoom_in_up") for name in ("zoom_out", "zoom_out_up", "down", "zoom_all")
}
PLOT["Plot.up"] = ("0", "home", "plus", "act:zoom_in_up", "down")
HEAT = {
    "HeatMap.zoom_out": ("0", "plus"), "HeatMap.zoom_out_up": ("0", "act:zoom_in_up"), "HeatMap.zoom_all": ("act:zoom_in_up",)
} | {
    f"HeatMap.{one}": (other, other)
    for way, other in (("left", "act:far_right"), ("right", "act:far_left"), ("up", "pagedown"), ("down", "pageup"))
    for one in (way, {"left": "far_left", "right": "far_right", "up": "page_up", "down": "page_down"}[way])
}  # fmt: skip
CHAINS = {
    "ParameterDialog.trace": ("act:density",),
    "ParameterDialog.next_other": ("act:trace",),
    "ParameterDialog.previous_other": ("act:trace",),
}
MAPS = {f"DistributionsDialog.{name}": ("right_curly_bracket",) for name in ("shades", "arrange")}
SCROLL = {f"Scroll.{name}": ("G",) for name in ("up", "page_up", "first")} | {
    f"Scroll.{name}": ("g",) for name in ("down", "page_down", "last")
}
DIAL = {f"DialPane.{name}": ("end",) for name in ("left", "first")} | {
    f"DialPane.{name}": ("home",) for name in ("right", "last")
}
STEPS = {"PlanTab.undo": ("j", "X"), "PlanTab.redo": ("j", "X", "u"), "PlanTab.delete": ("g", "j")} | {
    f"PlanTab.{name}": ("G", "k") for name in ("earlier", "later")
}
SHEET = {
    "DataTab.undo": ("x",), "DataTab.redo": ("x", "u"), "DataTab.other": ("act:sensitive",), "DataTab.sensitive": ("act:other",),
    "DataTab.quasi_identifier": ("act:other",),
} | GRID  # fmt: skip
RUNS = {
    "RunsTab.interrupt": ("G", "k", "k", "k"), "RunsTab.compare": ("G", "space", "k"),
    "RunsTab.delete": ("G",), "RunsTab.weigh": ("G",), "ProjectScreen.runs": ("1",),
}  # fmt: skip
PLACES = {
    "projects": Place(("ProjectsScreen", "ProjectGrid"), before=GRID),
    "runs": Place(("RunsTab", "RunGrid", "ProjectScreen", "OffersExport", "SfumatoApp"), "runs", before=RUNS),
    "quality": Place(("ProjectScreen",), "runs", data="census"),
    "board of quality": Place(("QualityGrid",), "runs", ("G", "act:quality"), data="census"),
    "results": Place(("ResultsPane", "ResultGrid", "Grid"), "results", before=GRID | {"Grid.left": ("l",)}),
    "filter": Place(("FilterField",), "results", ("slash",)),
    "verdicts": Place(("VerdictsPane", "VerdictBoard"), "verdicts"),
    "dial": Place(("DialPane",), "verdicts", ("space",), DIAL),
    "trial": Place(
        ("LimitTrial",),
        "verdicts",
        ("T",),
        {"LimitTrial.up": ("down",), "LimitTrial.reset_limits": ("1",), "LimitTrial.save": ("1",)},
    ),
    "curves": Place(("StudiesPane", "ExplainsPoint", "Plot"), "sweep", before=PLOT),
    "tabs": Place(("TabLine",), "sweep", ("shift+tab",)),
    "diagnostics": Place(
        ("DiagnosticsPane", "ParameterGrid"), "diagnostics", before={"DiagnosticsPane.picture": ("t",)}, data="chained"
    ),
    "parameter": Place(("ParameterDialog",), "diagnostics", ("enter",), CHAINS, data="chained"),
    "distributions": Place(("DistributionsDialog",), "runs", ("act:distributions",), MAPS),
    "records of a bar": Place(("RecordsBehindDialog",), "runs", ("G", "act:distributions", "home", "enter", "y")),
    "heat map": Place(("HeatMap",), "runs", ("act:distributions", "right_curly_bracket", "right_curly_bracket"), HEAT),
    "tables": Place(("TablesPane", "CellGrid"), "tables", before=CELLS, data="tabled"),
    "records": Place(("RecordsPane", "RecordGrid"), "records"),
    "record": Place(("RecordDialog",), "records", ("enter",)),
    "data": Place(("DataTab", "VariableGrid", "MarkedGrid", "FilteredList"), "data", before=SHEET),
    "rows": Place(("RowsPane",), "rows"),
    "kinds": Place(("LetterDialog",), "data", ("act:kind",), {"LetterDialog.up": ("j",)}),
    "form": Place(("Form", "ChoiceField"), "data", ("enter",), {"Form.up": ("down",)}),
    "plan": Place(("PlanTab", "StepGrid"), "plan", before=STEPS),
    "hierarchy": Place(
        ("HierarchyEditor",),
        "plan",
        ("G", "act:hierarchy", *"work", "enter"),
        {
            "HierarchyEditor.undo": ("act:propose",),
            "HierarchyEditor.add": ("k", "k", "space", "j", "j"),
            "HierarchyEditor.rename": ("g",),
        },
        data="anonymising",
    ),
    "rules": Place(("RulesDialog", "RuleGrid"), "plan", ("act:constraints",), data="ruled"),
    "toml": Place(("TomlText",), "plan", ("t",)),
    "step form": Place(("Form",), "plan", ("g", "j", "enter", "down", "end", "ctrl+u")),
    "pick list": Place(
        ("PickList",),
        "plan",
        ("g", "j", "enter", "down", "f4"),
        {f"PickList.{up}": ("down", "down") for up in ("up", "page_up")},
    ),
    "map": Place(("MapPane", "MapPlot"), "map"),
    "map numbers": Place(("MapNumbers",), "map", ("t",)),
    "choose": Place(("ChoiceDialog",), "map", ("f4",)),
    "task log": Place(("TaskLog",), "runs", ("G", "act:log")),
    "compare": Place(("ComparisonDialog", "CompareGrid"), "runs", ("G", "space", "k", "c"), data="census"),
    "command line": Place(("CommandLine",), "runs", ("colon", "f", "i")),
    "audit": Place(("AuditLogDialog",), "runs", ("act:audit",)),
    "commands": Place(("CommandGrid",), "runs", ("at",)),
    "doctor": Place(("DoctorDialog",), "runs", ("act:doctor",), data="built_data"),
    "release": Place(("ReleaseScreen",), "verdicts", ("w", "right_square_bracket"), data="second_person"),
    "levers": Place(("LeverDialog",), "verdicts", ("enter",), {"LeverDialog.up": ("j",)}, on_verdict=True),
    "plan change": Place(("PlanChange",), "verdicts", ("enter", "enter"), on_verdict=True),
    "findings": Place(("FindingGrid",), "verdicts", ("w",)),
    "export": Place(("ExportDialog",), "results", ("e",)),
    "manual": Place(
        ("ManualDialog",),
        "runs",
        ("f1",),
        {f"ManualDialog.{way}_other": ("slash", *"survey", "enter") for way in ("next", "previous")},
    ),
    "help": Place(("Dialog", "KeysDialog"), "runs", ("question_mark",)),
    "text": Place(("Scroll",), "runs", ("f1",), SCROLL),
    "new run": Place(("NewRun",), "runs", ("n",), {"NewRun.up": ("j",)}),
    "confirm": Place(("ConfirmDialog",), "runs", ("G", "k", "k", "k", "i")),
    "guided": Place(("GuidedMinimisation",), "runs", ("S",), {"GuidedMinimisation.up": ("j",)}),
    "planes": Place(("StudiesPane",), "runs", ("G", "act:planes"), {"StudiesPane.right": ("h", "h")}, data="census"),
    "limits": Place(("StudiesPane",), "runs", ("G", "act:limits"), data="census"),
    "lattice": Place(("StudiesPane",), "sweep", ("full_stop",), data="towns"),
    "intruder": Place(("ProjectScreen",), "runs", data="workspace_with_beliefs"),
    "guesses": Place(("GuessesDialog",), "records", ("enter",), data="workspace_with_beliefs"),
    "beliefs": Place(("BeliefsDialog",), "runs", ("act:beliefs",), data="workspace_with_beliefs"),
}
ELSEWHERE = {
    "ReleasedFileDialog.open": "needs a file of somebody's: test_released_file",
    "ReleasedFileDialog.report": "needs a file of somebody's: test_released_file",
    "Dialog.keys": "the place of dialogs is the help itself: test_beliefs",
    "SfumatoApp.redraw": "sends what is shown once more",
    "SfumatoApp.next_pane": "the toolkit moves the focus by it where there are several panes: test_split",
    "PeopleAtRisk.open": "people beside the list of a wide terminal: test_people_at_risk",
    "LeverList.open": "the levers of a run, which are found beside the app: test_lever_pane",
    "EntryField.open": "where text is typed: test_release_screen",
    "LeverList.down": "the levers of a run, which are found beside the app: test_lever_pane",
    "LeverList.up": "the levers of a run, which are found beside the app: test_lever_pane",
    "LeverDialog.page_down": "an explanation that is longer than the screen",
    "LeverDialog.page_up": "an explanation that is longer than the screen",
    **dict.fromkeys(
        (
            "ResultExplanation.open",
            "ResultExplanation.next",
            "AuditedTargetDialog.previous",
            "AuditedTargetDialog.next",
        ),
        "a number of an audit by shadow releases: test_audits",
    ),
    **dict.fromkeys(
        ("SearchFinalists.run", "SearchFinalists.search", "SearchFinalists.up", "SearchFinalists.down"),
        "a search that has found something: test_search",
    ),
    **dict.fromkeys(
        (
            "AuditedTargetDialog.next",
            "AuditedTargetDialog.previous",
            "ResultExplanation.next",
            "ResultExplanation.open",
        ),
        "a run in which people were audited: test_audits",
    ),
    "ReleaseScreen.next_pane": "a step that has a field: test_release_screen",
    "SfumatoApp.theme": "opens the toolkit's own list",
    "Grid.open": "every grid that can be chosen from names the key itself",
    "MapPane.confidential": "axes on which the confidential data have a place: test_map",
    "ComparisonDialog.any_data": "runs on different data: test_two_runs",
    "RecordsPane.picture": "a choice among several measures: test_compare_and_records",
    "LimitTrial.page_down": "a board that is longer than the screen",
    "LimitTrial.page_up": "a board that is longer than the screen",
    "ParameterDialog.weights": "a model fitted by weights: test_traces",
    "HierarchyEditor.widths": "intervals, which have no tree: test_hierarchy",
    "PickList.filter": "who opens a list searches it already",
    "GuidedMinimisation.down": "a project with several tables: test_minimise",
    "GuidedMinimisation.up": "a project with several tables: test_minimise",
    "ProjectScreen.beliefs": "workspace_with_beliefs",
    "ProjectScreen.pairs": "a run that was drawn from tables: test_kept_pairs",
    "ChoiceField.mark": "a Space is for the list of a form before: test_plan",
} | dict.fromkeys(("ProjectScreen.quality", "ProjectScreen.planes", "ProjectScreen.limits"), "census")
"""Acts that do nothing in the place of their owner, or nothing that can be seen, and why."""
WHERE_NARROW = {"Grid.left": 100, "Grid.right": 100, "StudiesPane.next_pane": 100}
"""Acts for what does not fit: the width from which on there is nothing for them to do in their place."""
LAST = (
    "StudiesPane.table",
    "MapNumbers.table",
    "DiagnosticsPane.table",
    "PlanTab.run",
    "PlanChange.run",
    "SfumatoApp.close",
    "SfumatoApp.back",
    "ProjectsScreen.close",
    "ComparisonDialog.open",
    "ProjectScreen.runs",
    "ProjectScreen.projects",
)
"""Acts that leave nothing to come back to."""


OF_PLANES = {"StudiesPane.right", "StudiesPane.left", "StudiesPane.suggested", "StudiesPane.next_pane"}
LISTING = {"Form.list", "Form.mark"}
NOT_OF = {
    "form": LISTING,
    "step form": {"Form.open", "Form.save", "Form.down", "Form.up", "Form.jump"},
    "curves": {"StudiesPane.mark", *OF_PLANES},
    "planes": {"StudiesPane.mark", "StudiesPane.log_scale", "StudiesPane.table"},
    "limits": {"StudiesPane.mark", "StudiesPane.log_scale", *OF_PLANES},
    "lattice": {"StudiesPane.log_scale", *OF_PLANES},
}
"""Acts of a study that are there for other kinds of study."""


@dataclass(frozen=True)
class Bound:
    """A binding of an ``owner``, and the keys of its act there."""

    owner: type
    binding: Binding

    @property
    def id(self):
        return f"{self.owner.__name__}.{find_act(self.binding).name}"

    @property
    def keys(self):
        return self.binding.key.split(",")


def bindings():
    found = {}
    for owner, binding in declared():
        found.setdefault((owner, binding.id), Bound(owner, binding))
    return list(found.values())


def owned(place):
    found = [bound for bound in bindings() if bound.owner.__name__ in place.owners]
    if place.data in ("census", "workspace_with_beliefs") and "ProjectScreen" in place.owners:
        return [bound for bound in found if ELSEWHERE.get(bound.id) == place.data]
    kind = next(name for name, one in PLACES.items() if one is place)
    return [bound for bound in found if bound.id not in ELSEWHERE and bound.id not in NOT_OF.get(kind, ())]


def applies(bound, width):
    return width < WHERE_NARROW.get(bound.id, width + 1)


@pytest.mark.slow
def test_every_act_of_a_screen_is_tried_in_some_place():
    tried = {bound.id for place in PLACES.values() for bound in owned(place)}
    assert {bound.id for bound in bindings()} - tried - set(ELSEWHERE) == set()


def test_every_owner_of_a_place_has_acts():
    owners = {bound.owner.__name__ for bound in bindings()}
    assert {owner for place in PLACES.values() for owner in place.owners} - owners == set()


@pytest.fixture(scope="module")
def census(tmp_path_factory):
    """A run of everything that the runs of the built workspace do not have."""
    rng = np.random.default_rng(4)
    age = rng.integers(18, 80, 240)
    frame = pd.DataFrame(
        {"age": age, "hours": rng.poisson(30, 240), "town": rng.choice(["x", "y"], 240),
         "status": np.where(rng.random(240) < age / 160, "a", rng.choice(["b", "c"], 240))}
    )  # fmt: skip
    coarse = {**CENSUS, "anonymisation": [{"method": "mondrian", "k": 20}], "study": []}
    return finished_workspace(tmp_path_factory.mktemp("census") / "workspace", (CENSUS, coarse), frame, "census.csv")


@pytest.fixture
def workspace_with_beliefs(built_beliefs, tmp_path):
    """A run with the risk that tells what an intruder believes."""
    return shutil.copytree(built_beliefs, tmp_path / "workspace")


@pytest.fixture(scope="module")
def built_beliefs(tmp_path_factory):
    return believed_workspace(tmp_path_factory.mktemp("believed") / "workspace")


@pytest.fixture
def chained(built_data):
    """The first run with chains of two parameters."""
    rng = np.random.default_rng(5)
    theta = rng.normal(size=(200, 4, 2))
    trace = chain_trace(theta, -0.5 * (theta**2).sum(axis=2), ("alpha", "beta"), 50)
    workspace = Workspace.open(built_data)
    with workspace.write_transaction() as connection:
        connection.execute("DELETE FROM artefact WHERE run_id = 1 AND name = 'trace/0'")
        connection.execute("INSERT INTO artefact VALUES (1, 'trace/0', ?)", (write_trace(workspace.tables, trace),))
        connection.executemany(
            """INSERT INTO diagnostic (run_id, target, name, parameter, value, rule, passed)
               VALUES (1, 'income', ?, ?, ?, ?, ?)""",
            [("r_hat", "alpha", 1.001, "at most 1.01", True), ("r_hat", "beta", 1.4, "at most 1.01", False),
             ("effective_sample_size", "alpha", 900.0, "at least 400", True),
             ("effective_sample_size", "beta", 20.0, "at least 400", False)],
        )  # fmt: skip
    workspace.close()
    return built_data


@pytest.fixture
def ruled(built_data):
    """A plan with a rule."""
    workspace = Workspace.open(built_data)
    draft = find_draft(workspace, 1)
    save_draft(workspace, draft.with_text(replace_sections(draft.toml, {"constraints": {"few": "visits <= 3"}})))
    workspace.close()
    return built_data


@pytest.fixture
def second_person(built_data, tmp_path, write_office_policy):
    """The workspace under a policy that asks for one."""
    write_office_policy(f'[approval]\nsecond_person = true\ndirectory = "{tmp_path}"\n')
    return built_data


def picture(seat):
    """All that a user can notice: what is shown in which colours, what has the focus, what was said."""
    app = seat.app
    strips = [[(part.text, str(part.style)) for part in strip] for strip in app.screen._compositor.render_strips()]
    return len(app.screen_stack), app.focused, app.notices[:], app._exit, strips


class Walker:
    """Goes to a place, again after each key that led away from it."""

    def __init__(self, seat, place):
        self.seat, self.place, self.app = seat, place, seat.app
        self.at = None

    async def go(self):
        base = 1 if self.place.tab is None else 2
        while len(self.app.screen_stack) > base:
            await self.app.pop_screen()
        if len(self.app.screen_stack) < base:
            await self.app.open_project(1, 1, self.place.tab)
        elif base == 2:
            await self.app.screen.action_show_tab(self.place.tab)
        await self.seat.press("shift")
        if self.place.on_verdict:
            await self.seat.to_verdict()
        await self.seat.press(*self.place.keys)
        self.at = self.app.screen, self.app.focused

    async def is_offered(self, bound, *keys):
        """Whether keys of this place can all be pressed now, and are of the same act."""
        if self.at != (self.app.screen, self.app.focused):
            await self.go()
        await self.seat.press(*self.place.before.get(bound.id, ()))
        active = [self.app.screen.active_bindings.get(key) for key in keys]
        return all(one is not None and one.binding.id == bound.binding.id and one.enabled for one in active)

    async def does_something(self, bound, key):
        """Whether a key of this place changes what a user can notice, and the others of its act can be pressed as well."""
        if not await self.is_offered(bound, *bound.keys):
            return False
        before = picture(self.seat)
        await self.seat.press_unseen(key)
        return picture(self.seat) != before


def cases():
    """Every place in every terminal; in the largest, those with acts that are offered where it is narrow show something new."""
    narrow = {owner for owner, _ in (act.split(".") for act in WHERE_NARROW)}
    for name, place in PLACES.items():
        yield pytest.param((80, 24), name, id=f"80x24-{name}")
        yield pytest.param((120, 40), name, id=f"120x40-{name}", marks=[pytest.mark.sizes, pytest.mark.again])
        shown = [] if narrow.intersection(place.owners) else [pytest.mark.again]
        yield pytest.param((200, 60), name, id=f"200x60-{name}", marks=[pytest.mark.sizes, *shown])


@pytest.mark.slow
@pytest.mark.parametrize(("size", "name"), [*cases()])
async def test_every_key_does_something(sit, request, no_worker, size, name, monkeypatch, tmp_path):
    place = PLACES[name]
    monkeypatch.chdir(tmp_path)
    directory = request.getfixturevalue(place.data)
    save_state(directory, AppState())
    async with sit(directory, size=size) as seat:
        walker = Walker(seat, place)
        await walker.go()
        wrong = []
        for bound in sorted(owned(place), key=lambda bound: bound.id in LAST):
            for key in bound.keys[:1] if size == (80, 24) else bound.keys:
                if not applies(bound, size[0]):
                    if await walker.is_offered(bound, key):
                        wrong.append(f"{bound.id} ({key}) is offered for nothing")
                elif not await walker.does_something(bound, key):
                    wrong.append(f"{bound.id} ({key}) does nothing")
        assert wrong == [], ", ".join(wrong)
