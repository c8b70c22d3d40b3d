"""Conformance specs of upstream that need a real node, step by step; each test has the name of its spec."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.eventually import eventually
from support.up import IMAGE, Up, manifest, running

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node"), pytest.mark.timeout(180)]

MARK = "/data/$JOB_COMPLETION_INDEX.mark"
FAIL_ONCE = "mkdir /data/failed && exit 1; exit 0"
NOT_TERMINATE_ONCE_PER_INDEX = f"test -e {MARK} && exit 0; touch {MARK}; trap 'exit 1' TERM; sleep 3600 & wait"


def job(up: Up, name: str, script: str, data: Path, **spec: Any) -> None:
    """As the specs make it: its pods are privileged and write to a directory of the node, on which they all run."""
    container = {
        "name": "c",
        "image": IMAGE,
        "command": ["sh", "-c", script],
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    template = {
        "hostNetwork": True,
        "restartPolicy": "Never",
        "nodeName": node(up),
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [{"name": "data", "hostPath": {"path": str(data)}}],
    }
    body = {"template": {"spec": template}, "backoffLimit": 6, **spec}
    up.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": body})


def node(up: Up) -> str:
    return up.ok("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")


def pods_of(up: Up, selector: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(up.ok("get", "pods", "-l", selector, "-o", "json"))["items"]
    return found


def conditions(what: dict[str, Any]) -> dict[str, str]:
    """Reasons by type, of those that are true."""
    return {
        one["type"]: one.get("reason", "") for one in what["status"].get("conditions", []) if one["status"] == "True"
    }


def test_should_allow_to_use_the_pod_failure_policy_on_exit_code_to_fail_the_job_early(
    cluster: Up, tmp_path: Path
) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}
    name = "pod-failure-failjob"
    job(cluster, name, FAIL_ONCE, tmp_path, parallelism=2, completions=4, podFailurePolicy={"rules": [rule]})
    cluster.ok("wait", "--for=condition=Failed", f"job/{name}", "--timeout=60s", timeout=90)
    assert conditions(cluster.get("job", name))["Failed"] == "PodFailurePolicy"
    cluster.ok("delete", "job", name)


@pytest.mark.campaign
def test_should_allow_to_use_a_pod_failure_policy_to_ignore_failure_matching_on_disruption_target_condition(
    cluster: Up, tmp_path: Path
) -> None:
    """The conformance spec: three privileged pods of an indexed Job are evicted, which its policy ignores; they are
    made again, after the Job's back-off of 40 s, and succeed.
    """
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    name, many = "evicted-pod-ignore", 3
    job(
        cluster,
        name,
        NOT_TERMINATE_ONCE_PER_INDEX,
        tmp_path,
        completionMode="Indexed",
        parallelism=many,
        completions=many,
        backoffLimit=many - 1,
        podFailurePolicy={"rules": [rule]},
    )
    cluster.ok("wait", f"--for=jsonpath={{.status.ready}}={many}", f"job/{name}", "--timeout=60s", timeout=90)
    eventually(lambda: len(list(tmp_path.glob("*.mark"))), lambda marks: marks == many, within=20, what="marks")
    names = [pod["metadata"]["name"] for pod in pods_of(cluster, f"job-name={name}")]
    assert len(names) == many
    for pod in names:
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "default"}}
        path = f"/api/v1/namespaces/default/pods/{pod}/eviction"
        cluster.ok("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))
    cluster.ok("wait", "--for=delete", *(f"pod/{pod}" for pod in names), "--timeout=60s", timeout=90)
    cluster.ok("wait", "--for=condition=Complete", f"job/{name}", "--timeout=60s", timeout=90)
    done = cluster.get("job", name)
    assert conditions(done)["Complete"] == "CompletionsReached"
    assert done["status"].get("failed", 0) == 0
    cluster.ok("delete", "job", name)


def test_should_recreate_evicted_statefulset(cluster: Up) -> None:
    """A pod that holds the port of a set's first pod on the same node: the set's pods are rejected and made again until
    the port is free.
    """
    ports = [{"name": "conflict", "containerPort": 21017, "hostPort": 21017}]
    cluster.apply(manifest("test-pod", {"name": "webserver", "ports": ports}, nodeName=node(cluster)))
    cluster.ok("wait", "--for=condition=Ready", "pod/test-pod", "--timeout=60s", timeout=90)
    template = manifest("ss", {"name": "webserver", "ports": ports}, nodeName=node(cluster))
    spec = {
        "replicas": 1,
        "serviceName": "test",
        "selector": {"matchLabels": {"app": "ss"}},
        "template": {"metadata": {"labels": {"app": "ss"}}, "spec": template["spec"]},
    }
    stateful = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "ss"}, "spec": spec}
    cluster.apply(stateful)
    text = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"

    def rejected() -> set[str]:
        """UIDs of the pods of the set that were."""
        which = "reason=NodePorts,involvedObject.name=ss-0"
        events = json.loads(cluster.ok("get", "events", "--field-selector", which, "-o", "json"))["items"]
        assert {event["message"] for event in events} <= {text}
        return {event["involvedObject"]["uid"] for event in events}

    eventually(rejected, lambda uids: len(uids) > 1, within=30, what="the pod was made again")
    cluster.ok("delete", "pod", "test-pod", "--now")
    assert cluster.pod_when("ss-0", running, "ran")["metadata"]["uid"] not in rejected()
    cluster.ok("delete", "statefulset", "ss")


def test_a_privileged_container_may_do_what_this_machine_lets_its_runtime_do(cluster: Up) -> None:
    """It has every capability that the runtime has, sees the devices of the machine and may mount."""
    script = "grep CapEff /proc/self/status; mount -t tmpfs none /tmp && echo mounted; ls /dev/fuse"
    privileged = {"name": "app", "securityContext": {"privileged": True}}
    cluster.apply(manifest("agent", privileged, {"name": "plain"}))
    cluster.ok("wait", "--for=condition=Ready", "pod/agent", "--timeout=60s", timeout=90)
    told = cluster.kubectl("exec", "agent", "-c", "app", "--", "sh", "-c", script).out.split()
    assert told[1] == capabilities()
    assert "mounted" in told
    plain = cluster.kubectl("exec", "agent", "-c", "plain", "--", "sh", "-c", script)
    assert capabilities() not in plain.out
    assert "mounted" not in plain.out
    cluster.ok("delete", "pod", "agent", "--now")


def capabilities() -> str:
    """Of this process, and so of the containerd that it starts: on some machines even root lacks one."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("CapEff"))


def test_a_guest_with_the_profile_sysadmin_is_privileged(cluster: Up) -> None:
    """In a pod without privileged containers, whose sandbox stays."""
    cluster.apply(manifest("host"))
    cluster.ok("wait", "--for=condition=Ready", "pod/host", "--timeout=60s", timeout=90)
    before = cluster.get("pod", "host")["status"]["containerStatuses"]
    options = ("--image", IMAGE, "--image-pull-policy=Never", "-c", "guest", "--profile=sysadmin")
    cluster.ok("debug", "host", *options, "--", "grep", "CapEff", "/proc/self/status")

    def ended(pod: dict[str, Any]) -> bool:
        return any("terminated" in guest["state"] for guest in pod["status"].get("ephemeralContainerStatuses", []))

    pod = cluster.pod_when("host", ended, "had its guest")
    assert cluster.ok("logs", "host", "-c", "guest").split()[1] == capabilities()
    assert pod["status"]["containerStatuses"] == before
    cluster.ok("delete", "pod", "host", "--now")
