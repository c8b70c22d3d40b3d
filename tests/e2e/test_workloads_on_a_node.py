"""Ordinary manifests on the real node, unedited (`examples/workloads`): rolled out and back, scaled, drained."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.up import Up

pytestmark = [pytest.mark.node, pytest.mark.kubectl, pytest.mark.xdist_group("node"), pytest.mark.timeout(240)]

MANIFESTS = Path(__file__).parents[2] / "examples/workloads"


class Shop:
    """Their namespace."""

    def __init__(self, up: Up) -> None:
        self.up = up

    def ok(self, *arguments: str) -> str:
        return self.up.ok("-n", "shop", *arguments, timeout=90)

    def get(self, what: str, *more: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ok("get", what, *more, "-o", "json"))
        return found

    def rolled_out(self, *names: str) -> None:
        for name in names:
            self.ok("rollout", "status", name, "--timeout=60s")

    def running(self, app: str) -> dict[str, dict[str, Any]]:
        pods = self.get("pods", "-l", f"app={app}")["items"]
        return {pod["metadata"]["name"]: pod for pod in pods if "deletionTimestamp" not in pod["metadata"]}

    def journal(self, pod: str) -> list[str]:
        return self.ok("exec", pod, "--", "cat", "/data/journal").splitlines()


def test_ordinary_manifests(cluster_dir: Up) -> None:
    up = cluster_dir
    up.start()
    up.ok("apply", "-f", str(MANIFESTS), timeout=60)
    shop = Shop(up)
    shop.rolled_out("deployment/web", "deployment/worker", "statefulset/database", "daemonset/agent")
    _it_is_what_was_written(shop)
    _workers_are_rolled_out_and_back(shop)
    _a_drain_respects_the_budget_and_data_stay(shop)
    _a_report_is_written(shop)


@pytest.mark.campaign
def test_a_report_every_minute(cluster_dir: Up) -> None:
    """The CronJob of the example on a real node: two of its jobs, each at its minute."""
    up = cluster_dir
    up.start()
    up.ok("apply", "-f", str(MANIFESTS), timeout=60)
    shop = Shop(up)
    shop.ok("wait", "--for=jsonpath={.status.lastSuccessfulTime}", "cronjob/report", "--timeout=80s")
    first = shop.get("cronjob", "report")["status"]["lastSuccessfulTime"]
    shop.ok("wait", "--for=condition=complete", "jobs", "--all", "--timeout=80s")
    follow = ("get", "cronjob", "report", "-w", "-o", "jsonpath={.status.lastSuccessfulTime}{'\\n'}")
    with subprocess.Popen(up.kubectl_command("-n", "shop", *follow), stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        next(line for line in watch.stdout if line.strip() not in ("", first))
        watch.kill()
    names = sorted(job["metadata"]["name"] for job in shop.get("jobs")["items"])
    minutes = [int(name.removeprefix("report-")) for name in names]
    assert minutes == [minutes[0], minutes[0] + 1]


def _it_is_what_was_written(shop: Shop) -> None:
    assert shop.ok("exec", "deploy/web", "--", "wget", "-qO-", "localhost:8080") == "the shop is open\n"
    assert shop.ok("exec", "deploy/web", "--", "sh", "-c", "echo $PASSWORD") == "correct horse\n"
    of_web = ("endpointslices", "-l", "kubernetes.io/service-name=web")
    shop.ok("wait", "--for=jsonpath={.endpoints[0].conditions.ready}=true", *of_web, "--timeout=30s")
    shop.ok("wait", "--for=jsonpath={.status.disruptionsAllowed}=1", "pdb/worker", "--timeout=30s")
    used = shop.get("quota", "shop")["status"]["used"]
    assert (used["persistentvolumeclaims"], int(used["pods"]) >= 5) == ("2", True)
    assert {name: shop.journal(name) for name in shop.running("database")} == {
        name: [f"{name} began"] for name in ("database-0", "database-1")
    }


def _workers_are_rolled_out_and_back(shop: Shop) -> None:
    before = set(shop.running("worker"))
    shop.ok("set", "env", "deployment/worker", "COLOUR=green")
    shop.rolled_out("deployment/worker")
    assert shop.ok("exec", "deploy/worker", "--", "sh", "-c", "echo $COLOUR") == "green\n"
    shop.ok("rollout", "undo", "deployment/worker")
    shop.rolled_out("deployment/worker")
    shop.ok("rollout", "pause", "deployment/worker")
    shop.ok("set", "env", "deployment/worker", "COLOUR=blue")
    shop.ok("scale", "deployment/worker", "--replicas=3")
    shop.ok("wait", "--for=jsonpath={.status.readyReplicas}=3", "deployment/worker", "--timeout=60s")
    colours = [pod["spec"]["containers"][0].get("env", []) for pod in shop.running("worker").values()]
    assert colours == [[], [], []], "a paused deployment scales as it is"
    shop.ok("rollout", "resume", "deployment/worker")
    shop.rolled_out("deployment/worker")
    shop.ok("rollout", "restart", "deployment/worker", "deployment/web", "statefulset/database", "daemonset/agent")
    shop.rolled_out("deployment/worker", "deployment/web", "statefulset/database", "daemonset/agent")
    assert not before & set(shop.running("worker"))
    shop.ok("scale", "deployment/worker", "--replicas=1")
    shop.ok("wait", "--for=jsonpath={.status.replicas}=1", "deployment/worker", "--timeout=60s")


def _a_drain_respects_the_budget_and_data_stay(shop: Shop) -> None:
    """There is one node: what is evicted waits, and the budget keeps the last of the database."""
    node = shop.up.ok("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
    drained = shop.up.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=8s")
    assert drained.code == 1
    assert "would violate the pod's disruption budget" in drained.err + drained.out
    left = [name for name, pod in shop.running("database").items() if pod["status"]["phase"] == "Running"]
    assert len(left) == 1
    assert len(shop.running("agent")) == 1
    shop.up.ok("uncordon", node)
    shop.rolled_out("deployment/web", "deployment/worker", "statefulset/database")
    for name in ("database-0", "database-1"):
        told = shop.journal(name)
        assert told == [f"{name} began"] * (2 + (name not in left)), "one claim through restart and drain"


def _a_report_is_written(shop: Shop) -> None:
    shop.ok("create", "job", "--from=cronjob/report", "now")
    shop.ok("wait", "--for=condition=complete", "job/now", "--timeout=60s")
    assert shop.ok("logs", "job/now") == "17 /www/index.html\n"
