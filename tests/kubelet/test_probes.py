"""Probes of a node's containers: readiness, restarts, events, and what a restart of the kubelet leaves of them."""

from typing import Any

import pytest

from kubelet.harness import Node, container
from podfit.kubelet.runtime.errors import CRIError, TimedOut
from podfit.kubelet.runtime.types import Executed

OFTEN = {"periodSeconds": 1, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 2}
EXEC = {"exec": {"command": ["check", "it"]}, **OFTEN}
WEB = [{"name": "web", "containerPort": 80}]
HTTP = {"httpGet": {"path": "/up", "port": "web", "scheme": "HTTP"}, **OFTEN}


class Answers:
    """What `check it` comes to in each container: an exit code, or an error."""

    def __init__(self, node: Node, **codes: int | CRIError) -> None:
        self.of = dict(codes)
        node.runtime.exec = self

    def __call__(self, name: str, command: str) -> Executed | CRIError:
        answer = self.of.get(name, 0)
        return (
            answer if isinstance(answer, CRIError) else Executed(exit_code=answer, stdout=b"bad\n" if answer else b"")
        )


def ready(node: Node) -> tuple[bool, str]:
    """Of the container, and of the pod."""
    condition = node.condition("Ready") or {}
    return node.state()["ready"], condition["status"]


def told(node: Node, reason: str) -> list[str]:
    return [event for event in node.api.events() if event.startswith(f"{reason} ")]


async def test_a_container_is_ready_while_its_probe_passes(node: Node) -> None:
    answers = Answers(node, c1=1)
    node.add(containers=[container("c1", readinessProbe=EXEC)])
    await node.runs()
    await node.advance(3)
    assert ready(node) == (False, "False")
    assert node.state()["started"]
    assert (node.condition("ContainersReady") or {})["message"] == "containers with unready status: [c1]"
    assert told(node, "Unhealthy") == ["Unhealthy Readiness probe failed: bad\n"]
    answers.of["c1"] = 0
    await node.advance(1)
    assert ready(node) == (True, "True")
    answers.of["c1"] = 1
    await node.advance(1)
    assert ready(node) == (True, "True"), "two failures in a row are needed"
    await node.advance(1)
    assert ready(node) == (False, "False")
    assert node.state()["restartCount"] == 0


async def test_a_pod_at_rest_is_probed_without_a_write(node: Node) -> None:
    node.add(containers=[container("c1", readinessProbe=EXEC, livenessProbe=EXEC)])
    await node.runs()
    await node.advance(2)
    before = len(node.api.patches)
    await node.advance(30)
    assert len([call for call in node.runtime.calls if call == "exec c1 check it"]) >= 60
    assert [patch for patch in node.api.patches[before:] if "status" in patch] == []


async def test_a_container_that_does_not_live_is_restarted(node: Node) -> None:
    answers = Answers(node, c1=1)
    probe = {**EXEC, "terminationGracePeriodSeconds": 7}
    node.add(containers=[container("c1", livenessProbe=probe)])
    await node.runs()
    assert ready(node) == (True, "True")
    await node.advance(2.5)
    answers.of["c1"] = 0
    await node.until(lambda: node.state()["restartCount"] == 1)
    assert "stop c1 7s" in node.runtime.calls
    assert told(node, "Unhealthy") == ["Unhealthy Liveness probe failed: bad\n"]
    assert told(node, "Killing") == ["Killing Container c1 failed liveness probe, will be restarted"]
    await node.advance(10)
    assert node.state()["restartCount"] == 1


async def test_a_container_that_keeps_failing_waits_longer(node: Node) -> None:
    Answers(node, c1=1)
    node.add(containers=[container("c1", livenessProbe=EXEC)])
    await node.runs()
    await node.advance(9)
    assert node.state()["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert node.state()["restartCount"] == 2


async def test_without_a_restart_the_pod_comes_to_its_end(node: Node) -> None:
    Answers(node, c1=1)
    node.add(restartPolicy="Never", containers=[container("c1", livenessProbe=EXEC)])
    await node.runs()
    await node.advance(3)
    await node.until(lambda: node.phase() == "Succeeded")  # the fake container ends well when it is told to
    assert told(node, "Killing") == ["Killing Stopping container c1"]


async def test_other_probes_wait_for_the_startup_probe(node: Node) -> None:
    answers = Answers(node, c1=1)
    startup = {**EXEC, "failureThreshold": 5}
    node.add(containers=[container("c1", startupProbe=startup, livenessProbe=HTTP, ports=WEB)])
    await node.runs()
    await node.advance(3)
    assert (node.state()["started"], node.state()["ready"], node.reach.asked) == (False, False, [])
    answers.of["c1"] = 0
    await node.advance(2)
    assert (node.state()["started"], node.state()["ready"]) == (True, True)
    assert node.reach.asked[0] == "http://10.0.0.1:80/up"


async def test_a_container_that_does_not_start_is_restarted(node: Node) -> None:
    Answers(node, c1=1)
    node.add(containers=[container("c1", startupProbe=EXEC)])
    await node.runs()
    await node.advance(2.5)
    await node.until(lambda: node.state()["restartCount"] == 1)
    assert told(node, "Killing") == ["Killing Container c1 failed startup probe, will be restarted"]


async def test_the_next_container_waits_for_a_sidecar_that_has_not_started(node: Node) -> None:
    answers = Answers(node, s1=1)
    startup = {**EXEC, "failureThreshold": 9}
    node.add(initContainers=[container("s1", restartPolicy="Always", startupProbe=startup)])
    await node.until(lambda: "start s1" in node.runtime.calls)
    await node.advance(3)
    assert "start c1" not in node.runtime.calls
    answers.of["s1"] = 0
    await node.advance(2)
    await node.runs()
    assert "start c1" in node.runtime.calls


@pytest.mark.parametrize(
    ("probe", "answer", "text"),
    [
        (HTTP, 503, "HTTP probe failed with statuscode: 503"),
        (HTTP, 'Get "http://10.0.0.1:80/up": EOF', 'Get "http://10.0.0.1:80/up": EOF'),
        ({"tcpSocket": {"port": 81}, **OFTEN}, "dial tcp", "dial tcp"),
        ({"grpc": {"port": 81}, **OFTEN}, "not serving", "not serving"),
    ],
)
async def test_probes_over_the_network(node: Node, probe: dict[str, Any], answer: int | str, text: str) -> None:
    place = "http://10.0.0.1:80/up" if "httpGet" in probe else "10.0.0.1:81"
    node.reach.answers[place] = answer
    node.add(containers=[container("c1", readinessProbe=probe, ports=WEB)])
    await node.runs()
    await node.advance(2)
    assert told(node, "Unhealthy") == [f"Unhealthy Readiness probe failed: {text}"]
    del node.reach.answers[place]
    await node.advance(1)
    assert ready(node) == (True, "True")


async def test_headers_of_an_http_probe(node: Node) -> None:
    headers = [{"name": "X", "value": "y"}, {"name": "Accept", "value": "a/b"}]
    probe = {"httpGet": {"path": "/", "port": 80, "scheme": "HTTPS", "host": "h", "httpHeaders": headers}, **OFTEN}
    node.add(containers=[container("c1", readinessProbe=probe)])
    await node.runs()
    assert node.reach.asked[0] == "https://h:80/"
    assert node.reach.headers[0] == (("User-Agent", "kube-probe/1.36"), ("X", "y"), ("Accept", "a/b"))


async def test_what_cannot_be_run_counts_for_nothing(node: Node) -> None:
    Answers(node, c1=CRIError("exec: no such file"))
    node.add(containers=[container("c1", livenessProbe=EXEC)])
    await node.runs()
    await node.advance(10)
    assert node.state()["restartCount"] == 0
    text = "Unhealthy Liveness probe errored and resulted in unknown state: exec: no such file"
    assert told(node, "Unhealthy") == [text]


async def test_a_command_that_hangs_is_a_failure(node: Node) -> None:
    Answers(node, c1=TimedOut("too long"))
    node.add(containers=[container("c1", readinessProbe=EXEC)])
    await node.runs()
    await node.advance(3)
    assert told(node, "Unhealthy") == [
        'Unhealthy Readiness probe failed: command timed out: "check it" timed out after 1s'
    ]


async def test_a_restarted_kubelet_goes_on_where_the_last_one_was(node: Node) -> None:
    answers = Answers(node)
    node.add(containers=[container("c1", readinessProbe=EXEC, startupProbe=EXEC)])
    await node.runs()
    await node.advance(3)
    assert ready(node) == (True, "True")
    before = len(node.api.patches)
    await node.crash()
    await node.start()
    await node.advance(5)
    assert [patch for patch in node.api.patches[before:] if "Ready" in str(patch)] == [], "it was ready all the time"
    answers.of["c1"] = 1
    await node.advance(3)
    assert ready(node) == (False, "False")


async def test_a_pod_that_ends_is_probed_for_readiness_only(node: Node) -> None:
    node.add(containers=[container("c1", readinessProbe=EXEC, livenessProbe=HTTP, ports=WEB)])
    node.runtime.stubborn.add("c1")
    await node.runs()
    await node.advance(2)
    node.api.delete("web", 10)
    await node.rest()
    asked, ran = len(node.reach.asked), len(node.runtime.calls)
    await node.advance(5)
    assert len(node.reach.asked) == asked
    assert "exec c1 check it" in node.runtime.calls[ran:]
    await node.advance(10)
    await node.until(lambda: node.api.get("pods", "web") is None)
    ran = len(node.runtime.calls)
    await node.advance(10)
    assert node.runtime.calls[ran:] == []
