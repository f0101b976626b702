import ast
from itertools import pairwise
from pathlib import Path

import pytest
from bound_acts import declared

import sfumato.tui
from sfumato.tui.keys.acts import ACTS, BY_NAME, CHARACTERS, KEYLESS, bind_act, find_act, is_character_key
from sfumato.tui.keys.keymap import BadKeymap, default_keys, is_known_key, read_keymap

MOST_KEYS, MOST_OF_A_PLACE = 70, 20
SAID = [
    ('keys = "f2"\nfindngs = "f4"', 2, 'did you mean "findings"?'),
    ('swep = "f4"', 1, 'no act called "swep"'),
    ('keys = "f99"', 1, 'no key "f99"'),
    ('keys = "ctrl+strange+x"', 1, "no key"),
    ("keys = 4", 1, 'must be a key such as "f4"'),
    ("keys = []", 1, "must be a key"),
    ('keys = "ctrl+m"', 1, 'cannot tell "ctrl+m" from enter'),
    ('# mine\nrun = "x"', 2, '"x" is exclude already (Include or exclude)'),
    ('run = "j"', 1, '"j" is down already'),
    ('run = "u"', 1, '"u" is undo already'),
    ('run = "f5"\nresults = "f5"', 1, '"f5" is results already'),
    ('keys = "f2"\n\nruns.again = "f4"', 3, 'no "runs.again": sfumato keys lists the acts by name'),
    ('[runs]\nagain = "f4"', 2, "keys belong to acts that mean the same everywhere"),
]


@pytest.fixture
def keys_toml(tmp_path):
    def write_keys(text):
        (tmp_path / "keys.toml").write_text(text, "utf-8")
        return tmp_path / "keys.toml"

    return write_keys


def test_there_are_few_keys_each_with_one_meaning():
    keyed = [act for act in ACTS if act.keys]
    keys = [key for act in ACTS for key in act.keys]
    assert len(keyed) <= MOST_KEYS
    assert len(keys) == len(set(keys))
    assert len({act.description for act in ACTS}) == len({act.name for act in ACTS}) == len(ACTS)


def test_every_binding_is_that_of_an_act_with_its_keys_and_no_others():
    for owner, binding in declared():
        act = find_act(binding)
        assert act is not None, (owner, binding)
        keys = binding.key.split(",")
        assert set(keys) <= set(act.keys) or keys == [f"{KEYLESS}{act.name}"], (owner, binding)


def test_every_act_is_done_somewhere():
    assert {act.name for act in ACTS} - {find_act(binding).name for _, binding in declared()} == set()


@pytest.mark.slow
def test_nobody_but_the_table_makes_bindings():
    """The negative control of the tests above: a binding that is made apart would have a key of its own."""
    made = [
        file.name
        for file in Path(sfumato.tui.__path__[0]).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Binding"
    ]
    assert set(made) == {"acts.py", "keymap.py"}
    with pytest.raises(KeyError):
        bind_act("no_such_act", "say")


def test_acts_of_a_group_stand_together():
    groups = [act.group for act in ACTS]
    assert sum(one != other for one, other in pairwise(groups)) == len(set(groups)) - 1


def test_where_text_is_typed_no_character_is_a_key():
    typed = [binding for _, binding in declared() if binding.id and binding.id.endswith(".typed")]
    assert len(typed) > 8
    alone = [binding.id for binding in typed if all(map(is_character_key, binding.key.split(",")))]
    assert set(alone) <= {"mark.typed", "mark_all.typed", "filter.typed", "down.typed", "up.typed"}
    assert not [key for key in ("up", "f4", "ctrl+r", "escape", "enter", "pageup") if is_character_key(key)]
    assert all(map(is_character_key, ("j", "question_mark", "plus", *CHARACTERS)))


def test_no_key_that_terminals_swallow_is_one():
    keys = {key for act in ACTS for key in act.keys}
    assert not keys & {f"ctrl+{letter}" for letter in "abhijm"}
    assert not [key for key in keys if key.startswith("alt+")]
    assert [key for key in keys if not is_known_key(key)] == []


@pytest.mark.parametrize(("text", "line", "said"), SAID)
def test_what_cannot_be_used_is_said_with_file_and_line(keys_toml, text, line, said):
    file = keys_toml(text)
    with pytest.raises(BadKeymap) as refused:
        read_keymap(file)
    assert str(refused.value).startswith(f"{file}:{line}: ")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_is_no_toml_is_said_with_its_line(keys_toml):
    with pytest.raises(BadKeymap, match=r"keys\.toml: .*line 2"):
        read_keymap(keys_toml("a = 1\n= 2"))


def test_what_is_no_text_is_refused(tmp_path):
    (tmp_path / "keys.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadKeymap, match="cannot be read as text"):
        read_keymap(tmp_path / "keys.toml")


def test_keys_are_read_in_every_way_that_toml_writes_them(keys_toml, tmp_path):
    text = 'keys = "?, f2"\n"run" = ["ctrl+g", "Z"]\nresults = "f5"\n'
    assert read_keymap(keys_toml(text)) == {"keys": "question_mark,f2", "run": "ctrl+g,Z", "results": "f5"}
    assert read_keymap(tmp_path / "absent.toml") == {}


def test_keys_can_be_exchanged(keys_toml):
    assert read_keymap(keys_toml('run = "x"\nexclude = "R"'))


def test_the_default_keys_are_a_file_that_changes_nothing(keys_toml):
    text = default_keys(keys_toml(""))
    assert read_keymap(keys_toml(text)) == {act.name: ",".join(act.keys) for act in ACTS if act.keys}
    assert len([line for line in text.splitlines() if " = " in line and not line.startswith("#")]) <= MOST_KEYS


def test_the_command_prints_the_keys(home, sfumato, capsys):
    assert sfumato("keys") == 0
    printed = capsys.readouterr().out
    assert f"to be kept in {home / 'config' / 'sfumato' / 'keys.toml'}" in printed
    assert 'keys = "question_mark"  # Keys of this place' in printed
    assert 'manual = "f1"  # Manual' in printed
    assert all(name in printed for name in BY_NAME)


@pytest.mark.parametrize(
    ("text", "said"),
    [('keys = "f2"', "1 of your own, from "), ("help = 1", 'keys.toml:1: there is no act called "help"')],
)
def test_doctor_says_whether_the_file_is_good(home, sfumato, capsys, text, said):
    (home / "config" / "sfumato").mkdir(parents=True)
    (home / "config" / "sfumato" / "keys.toml").write_text(text)
    sfumato("doctor")
    assert said in capsys.readouterr().out
