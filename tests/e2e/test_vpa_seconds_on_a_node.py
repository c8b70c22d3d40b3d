"""How soon the VPA of `podfit up` acts on what happens on a real node: an OOM, a pod that becomes Ready."""

import json
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from podfit.core.quantity import Quantity
from support.eventually import eventually
from support.up import Up
from support.vpa_processes import deployment, vpa

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.node,
    pytest.mark.kubectl,
    pytest.mark.xdist_group("node"),
    pytest.mark.timeout(600),
]
Pod = dict[str, Any]
IN_PLACE = {"updateMode": "InPlaceOrRecreate", "minReplicas": 1}
GROWS = "while [ ! -e /tmp/go ]; do sleep 0.05; done; rm /tmp/go; head -c 600000000 /dev/zero | tail -c 600000000"
READY = "trap 'exit 0' TERM; sleep 4; touch /tmp/ready; while :; do sleep 1; done"


@contextmanager
def seen(up: Up, name: str) -> Iterator[Iterator[tuple[float, Pod]]]:
    """Every version of the pods of that name, and when it came, on the monotonic clock."""
    command = up.kubectl_command("get", "pods", "-l", f"app={name}", "-w", "-o", "json", "--output-watch-events")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield _versions(process.stdout)
        finally:
            process.kill()


def _versions(lines: Iterable[str]) -> Iterator[tuple[float, Pod]]:
    """An event a line."""
    for line in lines:
        yield time.monotonic(), json.loads(line)["object"]


def first(versions: Iterator[tuple[float, Pod]], holds: Callable[[Pod], bool]) -> tuple[float, Pod]:
    return next((at, pod) for at, pod in versions if holds(pod))


def asked(pod: Pod, name: str) -> int:
    """Of the request in the spec: millicores or bytes."""
    amount = Quantity.parse(pod["spec"]["containers"][0]["resources"]["requests"][name])
    return amount.milli() if name == "cpu" else amount.value()


def status(pod: Pod) -> dict[str, Any]:
    return next(iter(pod["status"].get("containerStatuses", ())), {})


def was_killed(pod: Pod) -> bool:
    states = (status(pod).get("state", {}), status(pod).get("lastState", {}))
    return any(state.get("terminated", {}).get("reason") == "OOMKilled" for state in states)


def is_ready(pod: Pod) -> bool:
    return bool(status(pod).get("ready"))


def begin_oom(up: Up, name: str) -> None:
    sizes = {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}
    up.apply(deployment(name, GROWS, sizes), vpa(name, updatePolicy=IN_PLACE))


def oom(up: Up, name: str) -> float:
    """Seconds from the first status that tells the kill to the spec that has more memory."""
    recommended(up, name)
    with seen(up, name) as versions:
        _, pod = first(versions, lambda now: asked(now, "memory") > 64 << 20)  # the least that is recommended is more
        begun = pod["metadata"]["uid"]
        up.ok("exec", pod["metadata"]["name"], "--", "touch", "/tmp/go")
        killed, pod = first(versions, was_killed)
        before = asked(pod, "memory")
        raised, pod = first(versions, lambda now: asked(now, "memory") > before)
    assert pod["metadata"]["uid"] == begun, "in place"
    up.ok("delete", f"deployment/{name}", f"vpa/{name}", "--wait")
    return raised - killed


def recommended(up: Up, name: str) -> None:
    """The VPA has looked at its pods, as of any workload that has run for a while."""
    eventually(
        lambda: up.get("vpa", name).get("status", {}).get("recommendation"),
        bool,
        within=150,
        what=f"{name} has a recommendation",
        told=up.log,
        every=0.5,
    )


def boost(up: Up, name: str) -> float:
    """Seconds from the first status that is Ready to the spec without the boost."""
    sizes = {"requests": {"cpu": "20m", "memory": "16Mi"}, "limits": {"cpu": "100m", "memory": "32Mi"}}
    made = deployment(name, READY, sizes)
    (container,) = made["spec"]["template"]["spec"]["containers"]
    container["readinessProbe"] = {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1}
    factor = {"cpu": {"type": "Factor", "factor": 5}}
    up.apply(vpa(name, updatePolicy={"updateMode": "Off"}, startupBoost=factor))
    with seen(up, name) as versions:
        up.apply(made)
        _, pod = next(versions)
        begun, boosted = pod["metadata"]["uid"], asked(pod, "cpu")
        assert boosted >= 100
        ready, _ = first(versions, is_ready)
        ended, pod = first(versions, lambda now: asked(now, "cpu") < boosted)
    assert pod["metadata"]["uid"] == begun, "in place"
    assert status(pod)["restartCount"] == 0
    up.ok("delete", f"deployment/{name}", f"vpa/{name}", "--wait")
    return ended - ready


def test_an_oom_is_answered_and_a_boost_ends_in_seconds(cluster_dir: Up, figure: Callable[[str, object], None]) -> None:
    """`podfit up` on the real node, as it is without an option. Five containers that run out of memory: from the status
    that tells it to the larger spec, in place. Five that become Ready: from that status to the spec without its boost.
    """
    cluster_dir.start()
    for number in range(5):
        begin_oom(cluster_dir, f"oom-{number}")
    ends = sorted(boost(cluster_dir, f"boost-{number}") for number in range(5))
    raises = sorted(oom(cluster_dir, f"oom-{number}") for number in range(5))
    figure("OOM to spec, median s", round(raises[2], 2))
    figure("largest s", round(raises[-1], 2))
    figure("Ready to boost ended, median s", round(ends[2], 2))
    figure("largest s of these", round(ends[-1], 2))
    assert raises[-1] < 5
    assert ends[-1] < 5
