"""Which node a cluster gets, and what is refused before anything starts."""

from itertools import pairwise
from pathlib import Path

import pytest

from podfit.process.detach import arguments_of
from podfit.process.errors import MachineError, UsageError
from podfit.process.layout import DataDir
from podfit.process.options import MakeRoom, NodeChoice, NodeKind, UpOptions, choose_node, legacy_of, node_names

DATA = DataDir(Path("/nowhere"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (UpOptions(data=DATA, port=70000), "is not a port"),
        (UpOptions(data=DATA, nodes=0), "at least one node"),
        (UpOptions(data=DATA, nodes=2, node=NodeKind.REAL), "needs --node simulated"),
        (UpOptions(data=DATA, node=NodeKind.NONE, runtime_endpoint="/x"), "means a real node"),
    ],
)
def test_contradictions_are_usage_errors(wrong: UpOptions, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        wrong.check()


def test_without_root_the_node_is_simulated_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    choice = choose_node(UpOptions(data=DATA))
    assert choice.kind is NodeKind.SIMULATED
    assert "not root (uid 1000)" in choice.why
    assert node_names(choice, 2) == ("simulated-1", "simulated-2")


def test_a_real_node_that_cannot_be_is_an_error_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(MachineError) as refused:
        choose_node(UpOptions(data=DATA, node=NodeKind.REAL))
    assert "containerd is not installed" in refused.value.evidence
    assert any("apt-get install" in each for each in refused.value.fix)
    assert any("--node simulated" in each for each in refused.value.fix)


def test_root_with_containerd_gets_a_real_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert choose_node(UpOptions(data=DATA)).kind is NodeKind.REAL
    several = choose_node(UpOptions(data=DATA, nodes=3))
    assert several == NodeChoice(NodeKind.SIMULATED, "3 nodes were asked for and this machine is one")


@pytest.mark.parametrize(("switches", "clients"), [("", ""), ("pod-updates,resize-status", "a,b")])
def test_a_detached_cluster_has_the_same_legacy_mode(switches: str, clients: str) -> None:
    options = UpOptions(data=DATA, legacy=legacy_of(switches, clients))
    arguments = arguments_of(options, "text", 0)
    given = dict(pairwise(arguments))
    assert legacy_of(given.get("--legacy", ""), given.get("--legacy-clients", "")) == options.legacy


@pytest.mark.parametrize(
    ("asked", "passed"),
    [(MakeRoom.NO, []), (MakeRoom.SHRINK, ["--make-room"]), (MakeRoom.PREEMPT, ["--make-room=preempt"])],
)
def test_a_detached_cluster_is_asked_the_same(asked: MakeRoom, passed: list[str]) -> None:
    arguments = arguments_of(UpOptions(data=DATA, make_room=asked), "text", 0)
    assert [each for each in arguments if "room" in each] == passed
