"""Which node a cluster gets, and what is refused before anything starts."""

from pathlib import Path
from typing import Any

import pytest

from decide.test_machine import WHOLE, programs, without
from podfit.decide.machine import Facts
from podfit.decide.node.options import KubeletOptions, PodNetworkKind
from podfit.net.system import SystemClock
from podfit.process.config_file import read
from podfit.process.controllers_options import ControllersOptions
from podfit.process.data.data_dir import DataDir
from podfit.process.errors import MachineError, UsageError
from podfit.process.node.choice import NodeChoice, choose_node, network_note, node_names
from podfit.process.node.machine import look
from podfit.process.options import ApiServerOptions, NodeKind, UpOptions, check_plugins

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
    assert several == NodeChoice(
        NodeKind.SIMULATED, "3 nodes were asked for and this machine is one", PodNetworkKind.POD
    )


NO_NFT = without(programs=programs("nft"))
NO_NAT = without(filter_lacks=("CONFIG_NFT_NAT",))


def on(network: PodNetworkKind, **options: Any) -> UpOptions:
    return UpOptions(api=API, kubelet=KubeletOptions(pod_network=network), **options)


@pytest.mark.parametrize(
    ("facts", "options", "chosen", "note"),
    [
        (WHOLE, UpOptions(api=API), PodNetworkKind.POD, ""),
        (WHOLE, on(PodNetworkKind.HOST), PodNetworkKind.HOST, ""),
        (
            NO_NFT,
            UpOptions(api=API),
            PodNetworkKind.HOST,
            (
                "pods are on the host's network, and no Service leads to them: nft is not installed "
                "(mend it: apt-get install --no-install-recommends nftables)"
            ),
        ),
        (
            NO_NAT,
            UpOptions(api=API),
            PodNetworkKind.HOST,
            "pods are on the host's network, and no Service leads to them: the kernel lacks CONFIG_NFT_NAT",
        ),
        (
            NO_NAT,
            on(PodNetworkKind.POD),
            PodNetworkKind.POD,
            (
                "the kernel lacks CONFIG_NFT_NAT: no Service leads to pods, and nothing keeps a pod from sending with "
                "another's address"
            ),
        ),
        (NO_NFT, on(PodNetworkKind.HOST), PodNetworkKind.HOST, ""),
        (NO_NFT, UpOptions(api=API, runtime_endpoint="/x"), PodNetworkKind.HOST, ""),
        (NO_NFT, on(PodNetworkKind.POD, runtime_endpoint="/x"), PodNetworkKind.POD, ""),
        (NO_NFT, UpOptions(api=API, kubelet=KubeletOptions(cni_conf_dir="/x")), PodNetworkKind.POD, ""),
    ],
)
def test_pods_have_addresses_by_default_where_the_machine_can(
    facts: Facts, options: UpOptions, chosen: PodNetworkKind, note: str
) -> None:
    choice = choose_node(options, facts)
    assert (choice.kind, choice.pod_network, network_note(choice)) == (NodeKind.REAL, chosen, note)


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        ("", {"runtime_endpoint": "/x"}, "the runtime of --container-runtime-endpoint has a directory of its own"),
        ("", {"node": NodeKind.SIMULATED}, "simulated pods have no network"),
        ("", {"nodes": 3}, "simulated pods have no network"),
        ("missing", {}, "there is no such directory"),
        ("", {}, ""),
    ],
)
def test_plugins_are_for_a_containerd_of_podfits_own(
    tmp_path: Path, given: str, options: dict[str, Any], said: str
) -> None:
    named = KubeletOptions(cni_conf_dir=str(tmp_path / given))
    made = UpOptions(api=ApiServerOptions(data=DataDir(tmp_path / "data")), kubelet=named, **options)
    if not said:
        check_plugins(made, real=True)
        return
    with pytest.raises(UsageError, match=said):
        made.check()


def test_plugins_and_the_hosts_network_contradict_each_other() -> None:
    both = KubeletOptions(cni_conf_dir="/x", pod_network=PodNetworkKind.HOST)
    assert both.problem == "--cni-conf-dir gives pods addresses of their own, and --pod-network host none"
    assert KubeletOptions(cni_bin_dir="/x").problem == "--cni-bin-dir is for the plugins of a --cni-conf-dir"
    assert KubeletOptions(cni_conf_dir="/x", cni_bin_dir="/y").problem == ""


@pytest.mark.parametrize("facts", [NO_NFT, without(plugins=""), without(switches=False)])
def test_addresses_that_were_demanded_are_not_left_out(facts: Facts) -> None:
    with pytest.raises(MachineError, match="cannot have addresses of their own") as refused:
        choose_node(on(PodNetworkKind.POD), facts)
    assert refused.value.fix[-1] == "or run:  podfit up --pod-network host --data /nowhere"


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
