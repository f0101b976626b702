import threading

from sfumato.tui.session.state import AppState, StateWriter, load_state


def test_the_last_state_is_written(tmp_path):
    keeper = StateWriter()
    for run in range(50):
        keeper.write_later(tmp_path, AppState(run=run))
    keeper.close()
    assert load_state(tmp_path) == AppState(run=49)


def test_nobody_waits_for_a_slow_disk_and_states_between_are_left_out(tmp_path, monkeypatch):
    written, disk = [], threading.Event()

    def slow(_, state):
        disk.wait(10)
        written.append(state.run)

    monkeypatch.setattr("sfumato.tui.session.state.save_state", slow)
    keeper = StateWriter()
    for run in range(5):
        keeper.write_later(tmp_path, AppState(run=run))
    assert not written
    disk.set()
    keeper.close()
    assert written[-1] == 4
    assert len(written) <= 2
