"""A detached cluster gets the same options: what the flags say is said again, on a command line that works anywhere."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from cyclopts import App

from podfit.cli.flags import Given, takes
from podfit.cli.logs import LogOptions
from podfit.process.options import UpOptions


def parsed(words: Sequence[str]) -> Given:
    """What `up` is given by a command line."""
    found: list[Given] = []

    @takes(UpOptions, LogOptions)
    def up(given: Given) -> int:
        found.append(given)
        return 0

    app = App(result_action="return_value")
    app.default(up)
    app(list(words), exit_on_error=False, print_error=False)
    return found[0]


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
        (
            "--etcd-servers",
            "https://a:2379,https://b:2379",
            "--etcd-cafile",
            "/ca.pem",
            "--controllers",
            "*,-job-controller",
        ),
        ("--feature-gates", "MemoryQoS=true", "--container-runtime-endpoint", "unix:///run/x.sock", "--no-vpa"),
    ],
)
def test_the_same_is_said_again(words: tuple[str, ...]) -> None:
    given = parsed(words)
    again = parsed(given.arguments())
    assert again.options(UpOptions) == given.options(UpOptions)
    assert again.options(LogOptions) == given.options(LogOptions)


def test_what_is_as_usual_is_not_said() -> None:
    assert parsed(()).arguments() == []


def test_a_path_means_the_same_from_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = parsed(("--kubeconfig", "here", "--pod-manifest-path", "pods"))
    assert given.arguments() == [f"--write-kubeconfig={tmp_path}/here", f"--pod-manifest-path={tmp_path}/pods"]
