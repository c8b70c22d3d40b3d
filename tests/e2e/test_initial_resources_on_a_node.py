"""Initial resources on a real node: containers that burn CPU teach, and the next Job of their image is given for it."""

import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from podfit.core.quantity import Quantity
from support.eventually import eventually
from support.up import IMAGE, PODFIT, Up, run

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.node,
    pytest.mark.kubectl,
    pytest.mark.xdist_group("node"),
    pytest.mark.timeout(600),
]
PODS, ENOUGH = 7, 20
BURNS = "trap 'exit 0' TERM; while :; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.2; done"
HEAP = "-Xmx64m"


def job() -> dict[str, Any]:
    """Seven pods that ask for nothing; each says that it is a JVM with a heap of 64 MiB."""
    env = [{"name": "JAVA_TOOL_OPTIONS", "value": HEAP}]
    container = {"name": "app", "image": IMAGE, "command": ["sh", "-c", BURNS], "env": env}
    spec = {"terminationGracePeriodSeconds": 1, "restartPolicy": "Never", "containers": [container]}
    whole = {"parallelism": PODS, "completions": PODS, "template": {"spec": spec}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "report"}, "spec": whole}


def pods(up: Up) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(up.ok("get", "pods", "-o", "json"))["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def podfit(up: Up, *arguments: str, stdin: str | None = None) -> str:
    answer = run(PODFIT, *arguments, "--kubeconfig", str(up.kubeconfig), stdin=stdin)
    return answer.out + answer.err


def foretold(up: Up) -> list[dict[str, str]]:
    """What `podfit plan -f` says the pods of the Job get."""
    answer = run(PODFIT, "plan", "-f", "-", "-o", "json", "--kubeconfig", str(up.kubeconfig), stdin=json.dumps(job()))
    plans = json.loads(answer.out).get("initial", []) if answer.out.startswith("{") else []
    return [plan["requests"] for plan in plans]


def kept(up: Up) -> int:
    """Samples of CPU that would be known after a restart."""
    saved = json.loads((up.root / "history" / "initial-usage.json").read_text())
    return max((sum(cpu.values()) for _, cpu, *_ in saved["places"]), default=0)


def started(up: Up) -> list[dict[str, Any]]:
    return eventually(
        lambda: pods(up),
        lambda there: len(there) == PODS and all(pod["status"]["phase"] == "Running" for pod in there),
        within=90,
        what="the pods run",
        told=up.log,
    )


def test_vpa_next_job_of_a_known_image_has_requests_from_its_start(
    cluster_dir: Up, figure: Callable[[str, object], None]
) -> None:
    """Seven pods of a Job use a CPU's share for some minutes; `podfit plan -f` foretells what the Job of that name gets
    when it is made again, also after `up` was killed, and its pods have it. A heap that follows no resize is named.
    """
    up = cluster_dir
    up.start()
    up.ok("label", "namespace", "default", "podfit.dev/initial-resources=enabled")
    up.apply(job())
    started(up)
    eventually(lambda: foretold(up), bool, within=330, what="enough is known", told=up.log)
    up.ok("delete", "job", "report", "--wait=true")
    eventually(lambda: pods(up), lambda left: not left, within=60, what="the first pods are gone", told=up.log)
    before = foretold(up)
    eventually(lambda: kept(up), lambda samples: samples >= ENOUGH, within=90, what="it is kept", told=up.log)
    os.kill(up.state()["pid"], signal.SIGKILL)
    up.start()
    (requests,) = eventually(lambda: foretold(up), bool, within=90, what="it is known again", told=up.log)
    assert requests.keys() == {"cpu", "memory"}, before
    up.apply(job())
    for pod in started(up):
        assert pod["spec"]["containers"][0]["resources"] == {"requests": requests}
        assert pod["status"]["qosClass"] == "Burstable"
        assert pod["status"]["containerStatuses"][0]["resources"]["requests"] == requests
    first = pods(up)[0]["metadata"]
    said = json.loads(first["annotations"]["podfit.dev/initial-resources"])["app"]
    assert said["source"].endswith("of job/report")
    for verb in (("plan",), ("resize", "--dry-run")):
        told = podfit(up, verb[0], f"pod/{first['name']}", "--memory", "96Mi", *verb[1:])
        assert f"does not follow its memory: {HEAP} in JAVA_TOOL_OPTIONS" in told
    assert Quantity.parse(requests["cpu"]) >= Quantity.parse("5m")
    figure("given", f"cpu {requests['cpu']}, memory {requests['memory']}")
    figure("from", said["source"])
