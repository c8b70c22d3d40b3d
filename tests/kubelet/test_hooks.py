"""Lifecycle hooks: after a container has started, before it is stopped, and when they fail or take too long."""

from typing import Any

from kubelet.harness import Node, container
from kubelet.test_probes import told
from podfit.kubelet.runtime.errors import TimedOut
from podfit.kubelet.runtime.types import Executed


def hooks(**handlers: Any) -> dict[str, Any]:
    return container("c1", lifecycle=handlers)


EXEC = {"exec": {"command": ["do", "it"]}}


async def test_a_hook_runs_before_the_container_counts_as_running(node: Node) -> None:
    node.add(containers=[hooks(postStart={"sleep": {"seconds": 5}})])
    await node.until(lambda: "start c1" in node.runtime.calls)
    assert node.phase() == "Pending"
    await node.advance(5)
    await node.runs()


async def test_a_container_whose_hook_fails_is_ended_and_comes_again(node: Node) -> None:
    node.runtime.exec = lambda _name, _command: Executed(exit_code=3, stdout=b"oops\n", stderr=b"why")
    node.add(containers=[hooks(postStart=EXEC)])
    await node.until(lambda: told(node, "Killing"))
    assert told(node, "FailedPostStartHook") == ["FailedPostStartHook PostStartHook failed"]
    assert told(node, "Killing") == ["Killing FailedPostStartHook"]
    waiting = node.state()["state"]["waiting"]
    assert waiting["reason"] == "PostStartHookError"
    assert waiting["message"] == (
        'Exec lifecycle hook ([do it]) for Container "c1" in Pod "web_default(web)" failed - '
        "error: command 'do it' exited with 3: why, message: \"oops\\nwhy\""
    )
    node.runtime.exec = lambda _name, _command: Executed(exit_code=0)
    await node.advance(12)
    await node.runs()
    assert node.state()["state"]["running"]


async def test_without_a_restart_the_pod_is_over(node: Node) -> None:
    node.reach.answers["http://10.0.0.1:80/"] = "refused"
    node.add(restartPolicy="Never", containers=[hooks(postStart={"httpGet": {"port": 80, "path": "/"}})])
    await node.until(lambda: node.phase() == "Succeeded")  # the fake container ends well when it is told to
    assert node.state()["state"]["terminated"]["exitCode"] == 0
    assert node.reach.headers == [(("User-Agent", "kube-lifecycle/1.36"), ("Accept", "*/*"))]


async def test_any_answer_to_a_request_is_good(node: Node) -> None:
    node.reach.answers["http://10.0.0.1:80/"] = 500
    node.add(containers=[hooks(postStart={"httpGet": {"port": 80, "path": "/"}})])
    await node.runs()
    assert told(node, "FailedPostStartHook") == []


async def test_the_hook_before_the_end_runs_first_and_takes_of_the_grace_period(node: Node) -> None:
    node.add(containers=[hooks(preStop=EXEC)])
    await node.runs()
    node.api.delete("web", 10)
    await node.until(lambda: node.api.get("pods", "web") is None)
    calls = [call for call in node.runtime.calls if call.startswith(("exec", "stop c1"))]
    assert calls == ["exec c1 do it", "stop c1 10s"]
    assert told(node, "FailedPreStopHook") == []


async def test_a_hook_that_fails_does_not_keep_the_container(node: Node) -> None:
    node.runtime.exec = lambda _name, _command: Executed(exit_code=1)
    node.add(containers=[hooks(preStop=EXEC)])
    await node.runs()
    node.api.delete("web", 10)
    await node.until(lambda: node.api.get("pods", "web") is None)
    assert told(node, "FailedPreStopHook") == ["FailedPreStopHook PreStopHook failed"]


async def test_a_hook_that_takes_longer_than_the_grace_period_ends_with_the_container(node: Node) -> None:
    node.runtime.exec = lambda _name, _command: TimedOut("never")
    node.runtime.hangs = 100.0
    node.add(containers=[hooks(preStop=EXEC)])
    await node.runs()
    node.api.delete("web", 3)
    await node.rest()
    assert [call for call in node.runtime.calls if call.startswith("stop c1")] == []
    await node.advance(3)
    await node.until(lambda: node.api.get("pods", "web") is None)
    assert "stop c1 2s" in node.runtime.calls
    assert told(node, "FailedPreStopHook") == ["FailedPreStopHook PreStopHook failed"]


async def test_a_hook_runs_before_a_restart_too(node: Node) -> None:
    checks = {"exec": {"command": ["alive"]}, "periodSeconds": 1, "timeoutSeconds": 1, "failureThreshold": 1}
    node.runtime.exec = lambda _name, command: Executed(exit_code=1 if command == "alive" else 0)
    node.add(containers=[{**hooks(preStop=EXEC), "livenessProbe": checks}])
    await node.runs()
    await node.advance(1.5)
    calls = [call for call in node.runtime.calls if call.startswith(("exec c1 do", "stop c1"))]
    assert calls[:2] == ["exec c1 do it", "stop c1 30s"]


async def test_a_stop_signal_is_the_runtimes_to_send(node: Node) -> None:
    node.add(containers=[hooks(stopSignal="SIGUSR1")])
    await node.runs()
    assert node.runtime.config("c1").stop_signal == "SIGUSR1"
    assert told(node, "StopSignalIgnored") == []
    node.runtime.knows_signals = False
    node.add("other", containers=[hooks(stopSignal="SIGUSR1")])
    await node.runs("other")
    assert len(told(node, "StopSignalIgnored")) == 1
