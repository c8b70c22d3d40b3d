"""A detached cluster gets the same options: what the flags say is said again, on a command line that works anywhere."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cyclopts import App

from podfit.cli.flags import (
    ApiServer,
    ApiServerFlags,
    Controllers,
    ControllersFlags,
    Log,
    LogFlags,
    Nodes,
    NodesFlags,
    arguments,
)
from podfit.cli.node_flags import Node, NodeFlags

DEFAULTS = (ApiServerFlags(), NodesFlags(), ControllersFlags(), NodeFlags(), LogFlags())


def parsed(words: Sequence[str]) -> tuple[Any, ...]:
    """What `up` makes of a command line."""
    found: list[Any] = []

    def up(
        *,
        api: ApiServer = None,
        nodes: Nodes = None,
        controllers: Controllers = None,
        node: Node = None,
        log: Log = None,
    ) -> None:
        found.extend((api, nodes, controllers, node, log))

    app = App(result_action="return_value")
    app.default(up)
    app(list(words), exit_on_error=False, print_error=False)
    return tuple(given or usual for given, usual in zip(found, DEFAULTS, strict=True))


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--make-room",),
        ("--make-room=preempt", "-v", "-v", "--log-format", "json"),
        ("--legacy", "pod-updates,resize-status", "--legacy-clients", "a,b"),
        ("--bind-address", "10.0.0.5", "--bind-address", "fd00::5,127.0.0.2", "--advertise-address", "10.0.0.6"),
        ("--tls-san", "a.example,B.example", "--port", "0", "--service-node-port-range", "40000-40100"),
        ("--cpu-manager-policy", "static", "--reserved-cpus", "0", "--reserved-memory", "0:memory=1Gi"),
        (
            "--actuation",
            "runtime",
            "--eviction-hard",
            "",
            "--memory-shrink",
            "guarded",
            "--nodes",
            "3",
            "--node",
            "simulated",
        ),
        ("--etcd-servers", "https://a:2379,https://b:2379", "--etcd-cafile", "/ca.pem", "--controllers", "*,-x"),
        ("--feature-gates", "A=true,B=false", "--container-runtime-endpoint", "unix:///run/x.sock"),
    ],
)
def test_the_same_is_said_again(words: tuple[str, ...]) -> None:
    given = parsed(words)
    assert [meaning(flag) for flag in parsed(arguments(*given))] == [meaning(flag) for flag in given]


def meaning(flags: Any) -> dict[str, Any]:
    """Lists may be given in several flags or separated by commas."""
    return {name: ",".join(value) if isinstance(value, tuple) else value for name, value in vars(flags).items()}


def test_what_is_as_usual_is_not_said() -> None:
    assert arguments(*DEFAULTS) == []


def test_a_path_means_the_same_from_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags = parsed(("--kubeconfig", "here", "--pod-manifest-path", "pods"))
    assert arguments(*flags) == [f"--write-kubeconfig={tmp_path}/here", f"--pod-manifest-path={tmp_path}/pods"]
