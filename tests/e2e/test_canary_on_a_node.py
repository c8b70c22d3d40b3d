"""`podfit resize --canary` on a real node: counters of throttling are read where `nodes/proxy` may be."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.up import PODFIT, Answer, Up, run
from support.vpa_processes import deployment

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.node,
    pytest.mark.kubectl,
    pytest.mark.xdist_group("node"),
    pytest.mark.timeout(300),
]
BUSY = "while :; do :; done"
NAME = "throttled"


@pytest.fixture
def busy(cluster: Up) -> Iterator[Up]:
    """Two pods, each of which would use a whole core, and has 300m."""
    sizes = {"requests": {"cpu": "20m", "memory": "8Mi"}, "limits": {"cpu": "300m", "memory": "32Mi"}}
    cluster.apply(deployment(NAME, BUSY, sizes, replicas=2))
    cluster.ok("rollout", "status", f"deployment/{NAME}", "--timeout=60s", timeout=70)
    yield cluster
    cluster.ok("delete", f"deployment/{NAME}", "--wait")


def limits(up: Up) -> list[str]:
    pods = json.loads(up.ok("get", "pods", "-l", f"app={NAME}", "-o", "json"))["items"]
    return sorted(pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] for pod in pods)


def resize(kubeconfig: Path, cpu: str, on: str, watch: str = "40s") -> Answer:
    canary = ("--canary", "1", "--watch", watch, "--rollback-on", on)
    return run(
        PODFIT,
        "resize",
        f"deployment/{NAME}",
        "--cpu",
        f":{cpu}",
        *canary,
        "--kubeconfig",
        str(kubeconfig),
        "-o",
        "json",
        timeout=150,
    )


def test_a_canary_that_is_throttled_goes_back_and_the_others_are_not_touched(busy: Up) -> None:
    """Of two pods that would use a core and have 300m one gets 100m: it is throttled, and goes back; exit code 1. The
    other keeps its size.
    """
    answer = resize(busy.kubeconfig, "100m", "throttled>10%")
    assert answer.code == 1, answer.out + answer.err
    told: dict[str, Any] = json.loads(answer.out)["canary"]
    assert told["rolledBack"]
    assert "app was throttled in " in told["seen"]
    assert limits(busy) == ["300m", "300m"]


def test_one_that_is_throttled_less_goes_on(busy: Up) -> None:
    """With all the CPU that there is nobody is throttled in all periods."""
    answer = resize(busy.kubeconfig, "2", "oom,throttled>99%", "20s")
    assert answer.code == 0, answer.out + answer.err
    assert limits(busy) == ["2", "2"]


def test_who_may_not_read_the_counters_is_refused_before_anything_is_resized(busy: Up, tmp_path: Path) -> None:
    """A service account that may resize and may not read `nodes/proxy`: refused, and nothing is resized."""
    busy.ok("create", "serviceaccount", "resizer")
    busy.ok("create", "clusterrolebinding", "resizer", "--clusterrole=edit", "--serviceaccount=default:resizer")
    token, path = busy.ok("create", "token", "resizer").strip(), tmp_path / "resizer"
    path.write_text(busy.kubeconfig.read_text())
    path.chmod(0o600)
    set_to = ("config", "--kubeconfig", str(path))
    assert run("kubectl", *set_to, "set-credentials", "resizer", f"--token={token}").code == 0
    assert run("kubectl", *set_to, "set-context", "--current", "--user=resizer").code == 0
    answer = resize(path, "100m", "throttled>10%")
    busy.ok("delete", "clusterrolebinding/resizer", "serviceaccount/resizer")
    assert answer.code != 0
    assert "may not be read" in answer.err + answer.out
    assert limits(busy) == ["300m", "300m"]
