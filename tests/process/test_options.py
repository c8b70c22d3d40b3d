"""Which node a cluster gets, and what is refused before anything starts."""

from pathlib import Path
from typing import Any

import pytest

from podfit.net.system import SystemClock
from podfit.process.config_file import read
from podfit.process.data.data_dir import DataDir
from podfit.process.errors import MachineError, UsageError
from podfit.process.node.choice import NodeChoice, choose_node, node_names
from podfit.process.node.machine import look
from podfit.process.options import ApiServerOptions, ControllersOptions, NodeKind, UpOptions

DATA = DataDir(Path("/nowhere"))
API = ApiServerOptions(data=DATA)
CLOCK = SystemClock()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (UpOptions(api=API, nodes=0), "at least one node"),
        (UpOptions(api=API, nodes=2, node=NodeKind.REAL), "needs --node simulated"),
        (UpOptions(api=API, node=NodeKind.NONE, runtime_endpoint="/x"), "means a real node"),
    ],
)
def test_contradictions_are_usage_errors(wrong: UpOptions, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        wrong.check()


def test_without_root_the_node_is_simulated_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    choice = choose_node(UpOptions(api=API), look(DATA, CLOCK.now(), versions=False))
    assert choice.kind is NodeKind.SIMULATED
    assert "not root (uid 1000)" in choice.why
    assert node_names(choice, 2) == ("simulated-1", "simulated-2")


def test_a_real_node_that_cannot_be_is_an_error_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(MachineError) as refused:
        choose_node(UpOptions(api=API, node=NodeKind.REAL), look(DATA, CLOCK.now(), versions=False))
    assert "containerd is not installed" in refused.value.evidence
    assert any("apt-get install" in line for line in refused.value.fix)
    assert any("--node simulated" in line for line in refused.value.fix)


def test_root_with_containerd_gets_a_real_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert choose_node(UpOptions(api=API), look(DATA, CLOCK.now(), versions=False)).kind is NodeKind.REAL
    several = choose_node(UpOptions(api=API, nodes=3), look(DATA, CLOCK.now(), versions=False))
    assert several == NodeChoice(NodeKind.SIMULATED, "3 nodes were asked for and this machine is one")


@pytest.mark.parametrize(
    ("said", "runs"),
    [
        (("*",), {"b", "c"}),
        (("*", "-b"), {"c"}),
        (("b",), {"b"}),
        (("b", "-b", "*"), {"b", "c"}),
        (("-b", "b", "*"), {"c"}),
        ((), set()),
    ],
)
def test_of_what_is_said_about_a_controller_the_first_counts(said: tuple[str, ...], runs: set[str]) -> None:
    options = ControllersOptions(controllers=said)
    assert {name for name in ("b", "c") if options.runs(name)} == runs


def test_a_controller_that_there_is_not() -> None:
    known = r"--controllers: there is no controller 'nobody' \(known: namespace-controller"
    with pytest.raises(UsageError, match=known):
        read(ControllersOptions, {"controllers": ("*,-nobody",)})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"concurrent-horizontal-pod-autoscaler-syncs": 0},
            "--concurrent-horizontal-pod-autoscaler-syncs 0: it has to be at least 1",
        ),
        ({"horizontal-pod-autoscaler-sync-period": "soon"}, "--horizontal-pod-autoscaler-sync-period: 'soon'"),
        ({"horizontal-pod-autoscaler-sync-period": "0s"}, "it has to be more than 0"),
        ({"horizontal-pod-autoscaler-tolerance": -0.1}, "it has to be at least 0"),
        ({"port": 70000}, "--port 70000: it has to be a port"),
        ({"etcd-cafile": Path("/ca.pem")}, "--etcd-cafile and --etcd-servers belong together"),
        ({"tls-cert-file": Path("/a")}, "--tls-cert-file and --tls-private-key-file belong together"),
        ({"legacy": "pod-update"}, "--legacy: unknown legacy switch: pod-update"),
        ({"feature-gates": "Fast=true"}, "--feature-gates: unrecognized feature gate: Fast"),
    ],
)
def test_flags_that_say_nothing_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read(UpOptions, given)


def test_hpa_flags_are_upstreams() -> None:
    settings = read(ControllersOptions, {"horizontal-pod-autoscaler-sync-period": "1m30s"}).horizontal
    assert (settings.sync_period, settings.downscale_stabilization, settings.tolerance) == (90, 300, 0.1)
    assert (settings.cpu_initialization, settings.initial_readiness, settings.workers) == (300, 30, 5)
    assert not settings.upstream_compatible
