"""Who holds a data directory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from podfit.process.data.data_dir import DataDir
from podfit.process.data.running_process import Process, UpState, exclusive, read_state, running, write_state
from podfit.process.errors import MachineError


def state_of(process: Process) -> UpState:
    return UpState(pid=process.pid, start_ticks=process.start_ticks, version="1", started="2026-11-21T04:00:00Z")


def test_a_directory_is_held_by_one(tmp_path: Path) -> None:
    data = DataDir.at(tmp_path / "data")
    with exclusive(data):
        write_state(data, state_of(Process.current()))
        assert running(data) is not None
        with pytest.raises(MachineError) as busy, exclusive(data):
            pass
        assert f"pid {os.getpid()}" in busy.value.message
        assert f"podfit down --data {data.root}" in busy.value.fix[0]
    assert running(data) is None
    with exclusive(data):
        assert read_state(data) is not None


def test_a_killed_holder_lets_go(tmp_path: Path) -> None:
    data = DataDir.at(tmp_path / "data")
    code = (
        "import sys, time; from pathlib import Path; from podfit.process.data.data_dir import DataDir;"
        "from podfit.process.data.running_process import exclusive\n"
        "with exclusive(DataDir.at(Path(sys.argv[1]))): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(data.root)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(MachineError), exclusive(data):
            pass
        holder.kill()
        holder.wait()
        with exclusive(data):
            pass


def test_a_process_id_that_was_given_again_is_someone_else() -> None:
    me = Process.current()
    assert me.alive()
    assert not Process(me.pid, me.start_ticks + 1).alive()


def test_a_damaged_state_file_says_what_to_do(tmp_path: Path) -> None:
    data = DataDir.at(tmp_path)
    data.state.write_text("{")
    with pytest.raises(MachineError) as damaged:
        read_state(data)
    assert str(data.state) in damaged.value.message
