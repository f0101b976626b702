import pytest

from sfumato.tui.keymap import RENAMED, BadKeymap, Bound, bindings, default_keys, is_key, meet, read_keymap

SAID = [
    ('app.help = "f2"\nproject.swep = "f4"', 2, 'did you mean "project.sweep"?'),
    ('[project]\n\nswep = "f4"', 3, 'nothing called "project.swep"'),
    ('app.help = "f99"', 1, 'no key "f99"'),
    ('app.help = "ctrl+strange+x"', 1, "no key"),
    ("app.help = 4", 1, 'must be a key such as "f4"'),
    ("app.help = []", 1, "must be a key"),
    ('app.help = "ctrl+m"', 1, 'cannot tell "ctrl+m" from enter'),
    ('# mine\nruns.again = "x"', 2, '"x" is runs.interrupt already (Interrupt)'),
    ('runs.again = "j"', 1, "grid.down"),
    ('"runs.again" = "4"', 1, "project.sweep"),
    ('audit.verify = "e"', 1, "exhibit.export"),
    ('sweep.log = "y, H"', 1, "plot.far_left"),
    ('runs.again = "u"\nruns.resume = "u"', 1, "runs.resume"),
]


@pytest.fixture
def keys_toml(tmp_path):
    def written(text):
        (tmp_path / "keys.toml").write_text(text, "utf-8")
        return tmp_path / "keys.toml"

    return written


def test_names_of_before_are_read(keys_toml):
    text = 'sweep.log = "f4"\ncalibrate.part = "f5"\nproject.minimise = "f6"\n'
    assert read_keymap(keys_toml(text)) == {"study.log": "f4", "study.part": "f5", "project.limits": "f6"}
    assert set(RENAMED.values()) <= {bound.id for bound in bindings()}
    assert not set(RENAMED) & {bound.id for bound in bindings()}


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
    text = 'app.help = "?, f2"\n"runs.again" = ["ctrl+s", "S"]\n[project]\nsweep = "f4"\n'
    assert read_keymap(keys_toml(text)) == {
        "app.help": "question_mark,f2",
        "runs.again": "ctrl+s,S",
        "project.sweep": "f4",
    }
    assert read_keymap(tmp_path / "absent.toml") == {}


def test_keys_can_be_exchanged(keys_toml):
    assert read_keymap(keys_toml('runs.again = "x"\nruns.interrupt = "s"'))


def test_keys_of_screens_that_never_meet_can_be_the_same(keys_toml):
    """The negative control of the clashes: H is a key of plots, o of the results, t of a comparison."""
    assert read_keymap(keys_toml('runs.again = "H, o, t"'))


def test_the_default_keys_are_a_file_that_changes_nothing(keys_toml):
    text = default_keys(keys_toml(""))
    assert read_keymap(keys_toml(text)) == {bound.id: ",".join(bound.keys) for bound in bindings()}


def test_every_default_key_is_a_key():
    assert [key for bound in bindings() for key in bound.keys if not is_key(key)] == []


def test_no_two_keys_of_one_widget_are_the_same():
    """Keys that a screen shadows are meant; within one class nothing would be."""
    found: list[Bound] = list(bindings())
    same = [
        (one.id, other.id)
        for place, one in enumerate(found)
        for other in found[place + 1 :]
        if one.owner is other.owner and set(one.keys) & set(other.keys)
    ]
    assert same == []
    assert meet(found[0], found[-1])


def test_the_command_prints_the_keys(home, sfumato, capsys):
    assert sfumato("keys") == 0
    printed = capsys.readouterr().out
    assert f"to be kept in {home / 'config' / 'sfumato' / 'keys.toml'}" in printed
    assert 'app.help = "question_mark"  # Help' in printed
    assert 'app.manual = "f1"  # Manual' in printed


@pytest.mark.parametrize(
    ("text", "said"),
    [('app.help = "f2"', "1 of your own, from "), ("help = 1", 'keys.toml:1: there is nothing called "help"')],
)
def test_doctor_says_whether_the_file_is_good(home, sfumato, capsys, text, said):
    (home / "config" / "sfumato").mkdir(parents=True)
    (home / "config" / "sfumato" / "keys.toml").write_text(text)
    sfumato("doctor")
    assert said in capsys.readouterr().out
