"""The examination of this machine: facts about it (`machine`), judged (`decide.machine`)."""

import msgspec
from msgspec.structs import replace

from podfit.core.clock import Clock
from podfit.decide.machine import Check, State, network_checks, node_checks, node_notes, server_checks, server_notes
from podfit.process.data.data_dir import DataDir
from podfit.process.data.release import described
from podfit.process.data.running_process import UpState, running
from podfit.process.errors import MachineError
from podfit.process.node.machine import look


class Report(msgspec.Struct, frozen=True):
    """`server` is what the API server and simulated nodes stand on, `node` what a real node needs besides."""

    version: str
    data: str
    server: tuple[Check, ...]
    node: tuple[Check, ...]


def examine(data: DataDir, clock: Clock, *, port: int) -> Report:
    """Look at everything. The port of a cluster that runs on the directory is its own."""
    own = _running(data)
    ports = {} if own is not None and own.server.endswith(f":{port}") else {"port": ("127.0.0.1", port)}
    facts = look(data, clock.now(), ports=ports)
    notes = (
        replace(check, state=State.NOTE) if check.state is State.LACKING else check for check in network_checks(facts)
    )
    node = (*node_checks(facts), *notes, *node_notes(facts))
    return Report(described(), str(data.root), (*server_checks(facts), *server_notes(facts)), node)


def _running(data: DataDir) -> UpState | None:
    try:
        return running(data)
    except MachineError:  # somebody else's directory, or a state file that is damaged: the port tells
        return None
