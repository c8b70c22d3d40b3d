"""Objects that name a workload as their controller and are none of its: of another namespace, kind, group, name or UID.

Two namespaces of one cluster go the same course, one of them under attack; what is seen of both must be equal.
"""

import asyncio
from random import Random
from typing import Any

from podfit.api.batch.v1.types import Job
from podfit.api.core.v1.pods.types import Pod
from podfit.client.resource import dynamic
from podfit.client.rest import MERGE_PATCH
from podfit.testing.cluster import Cluster

Document = dict[str, Any]
LABELS = {"app": "x"}
FORGED = {"forged": "yes"}
HELD = "example.org/held"
"""A finalizer: the collector asks a forged object to go, and it stays."""
APPS, BATCH, CORE = ("apps", "v1"), ("batch", "v1"), ("", "v1")
PLURALS = {
    "Deployment": (*APPS, "deployments"),
    "ReplicaSet": (*APPS, "replicasets"),
    "StatefulSet": (*APPS, "statefulsets"),
    "DaemonSet": (*APPS, "daemonsets"),
    "ControllerRevision": (*APPS, "controllerrevisions"),
    "ReplicationController": (*CORE, "replicationcontrollers"),
    "Job": (*BATCH, "jobs"),
    "CronJob": (*BATCH, "cronjobs"),
    "Pod": (*CORE, "pods"),
    "PersistentVolumeClaim": (*CORE, "persistentvolumeclaims"),
}
VERSIONS = ("example.org/v1", "v1", "batch/v1", "apps/v1")
CHILDREN = ("Pod", "ReplicaSet", "ControllerRevision", "Job")


def resource(kind: str) -> Any:
    return dynamic(*PLURALS[kind])


def api_version(kind: str) -> str:
    group, version, _ = PLURALS[kind]
    return f"{group}/{version}".removeprefix("/")


def pod_template(**labels: str) -> Document:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m"}}}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"metadata": {"labels": LABELS | labels}, "spec": spec}


def workload(kind: str, **spec: Any) -> Document:
    """Called `w`, of three pods, as far as its kind says how many."""
    whole: Document = {"selector": {"matchLabels": LABELS}, "template": pod_template(), "replicas": 3}
    if kind in ("DaemonSet", "Job", "CronJob"):
        del whole["replicas"]
    if kind == "ReplicationController":
        whole["selector"] = LABELS
    if kind in ("Job", "CronJob"):
        del whole["selector"]
        whole["template"]["spec"]["restartPolicy"] = "Never"
        whole |= {"completions": 3, "parallelism": 2}
    if kind == "CronJob":
        whole = {"schedule": "* * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": whole}}
    return {"apiVersion": api_version(kind), "kind": kind, "metadata": {"name": "w"}, "spec": whole | spec}


def reference(owner: Document, **changed: str) -> Document:
    meta = owner["metadata"]
    true = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    return true | changed | {"controller": True, "blockOwnerDeletion": True}


def child(kind: str, name: str, owner: Document, **labels: str) -> Document:
    """Of a kind that controllers own, which runs, counts or is the newest, wherever it is taken for one's own."""
    meta = {"name": name, "labels": LABELS | FORGED | labels, "ownerReferences": [owner], "finalizers": [HELD]}
    made: Document = {"apiVersion": api_version(kind), "kind": kind, "metadata": meta}
    match kind:
        case "Pod":
            made["spec"] = pod_template()["spec"] | {"nodeName": "simulated-1"}
        case "ReplicaSet":
            selector = {"matchLabels": LABELS | FORGED | labels}
            made["spec"] = {"replicas": 5, "selector": selector, "template": pod_template(**FORGED, **labels)}
        case "Job":
            template = pod_template(**FORGED)
            template["spec"]["restartPolicy"] = "Never"
            made["spec"] = {"template": template, "suspend": True}
        case "ControllerRevision":
            made |= {"data": {"spec": {"template": {"$patch": "replace"}}}, "revision": 1000}
    return made


class Twins:
    """A workload in each of two namespaces; `mallory` works against the first, from outside and from within."""

    def __init__(self, cluster: Cluster, number: int, kind: str, **spec: Any) -> None:
        self._cluster, self.kind = cluster, kind
        self.victim, self.other, self.mallory = f"victim-{number}", f"other-{number}", f"mallory-{number}"
        for name in (self.victim, self.other, self.mallory):
            cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.forged: list[tuple[str, Document]] = []
        for namespace in (self.victim, self.other):
            cluster.apply(workload(kind, **spec), namespace=namespace)

    @property
    def owner(self) -> Document:
        return self._cluster.get(api_version(self.kind), self.kind, "w", self.victim)

    def forge(
        self, kind: str, name: str, labels: dict[str, str] | None = None, changed: dict[str, str] | None = None
    ) -> None:
        """In the attacker's namespace; in the workload's own with `changed` members of the reference."""
        made = child(kind, name, reference(self.owner, **(changed or {})), **(labels or {}))
        namespace = self.victim if changed else self.mallory
        stored = self._cluster.run(self._cluster.client.create_in(resource(kind), made, namespace=namespace))
        self.forged.append((namespace, stored))
        self._cluster.settle()

    def forge_anything(self, random: Random, number: int) -> None:
        """A reference that is true but for the namespace, or false in one member in the workload's own."""
        kind = random.choice(CHILDREN)
        labels = random.choice(({}, {"pod-template-hash": "h"}, {"controller-revision-hash": "h"}))
        if random.random() < 0.6:
            self.forge(kind, f"w-{number}", labels)
            return
        group = random.choice([other for other in VERSIONS if other != api_version(self.kind)])
        false = {"uid": f"u{number}"}, {"name": "v"}, {"kind": "Rack"}, {"apiVersion": group}
        self.forge(kind, f"f{number}", labels, random.choice(false))

    def both(self, change: Document) -> None:
        """Change both workloads in the same way."""
        for namespace in (self.victim, self.other):
            self._cluster.run(
                self._cluster.client.patch(resource(self.kind), "w", namespace, change, content_type=MERGE_PATCH)
            )
        self._cluster.settle()

    def act(self, random: Random, number: int) -> None:
        """Something that its owner does, to both."""
        template = {"metadata": {"annotations": {"v": str(number)}}}
        match self.kind, random.choice(("scale", "roll", "lose")):
            case "CronJob" | "Job", _:
                self._end_pods()
            case "DaemonSet" | "StatefulSet" | "Deployment", "roll":
                self.both({"spec": {"template": template}})
            case "DaemonSet", _:
                self._lose(random.randrange(2))
            case _, "scale":
                self.both({"spec": {"replicas": random.randrange(5)}})
            case _:
                self._lose(random.randrange(4))
        self._cluster.clock.advance(random.choice((1, 10, 40)))

    def _end_pods(self) -> None:
        for namespace in (self.victim, self.other):
            for pod in self._own(Pod, namespace):
                if pod.status.phase == "Running":
                    self._cluster.end(pod.metadata.name, namespace=namespace)
        self._cluster.clock.advance(5)

    def _lose(self, number: int) -> None:
        for namespace in (self.victim, self.other):
            pods = sorted(self._own(Pod, namespace), key=lambda pod: pod.metadata.name)
            for pod in pods[number : number + 1]:
                self._cluster.delete(pod.metadata.name, namespace=namespace)

    def _own(self, kind: Any, namespace: str) -> list[Any]:
        """All of a kind that nobody forged."""
        found = self._cluster.run(self._cluster.client.list(kind, namespace)).items
        return [obj for obj in found if "forged" not in (_metadata(obj).get("labels") or {})]

    def seen(self, namespace: str) -> Document:
        """What can be told of the workload, without times and what is drawn."""
        status = self._cluster.get(api_version(self.kind), self.kind, "w", namespace).get("status", {})
        pods = sorted(
            (pod.status.phase, bool(pod.metadata.deletion_timestamp), pod.metadata.annotations.get("v", ""))
            for pod in self._own(Pod, namespace)
        )
        sets = [
            (replica_set["spec"]["replicas"], replica_set["status"].get("readyReplicas", 0))
            for replica_set in self._own(resource("ReplicaSet"), namespace)
        ]
        revisions = [revision["revision"] for revision in self._own(resource("ControllerRevision"), namespace)]
        jobs = [(job.status.succeeded, job.status.active) for job in self._own(Job, namespace)]
        return {
            "status": _timeless(status), "pods": pods, "sets": sorted(sets), "revisions": sorted(revisions),
            "jobs": sorted(jobs, key=str),
        }  # fmt: skip

    def untouched(self) -> None:
        """No controller gave a forged object another spec, owner or label; the collector may have asked it to go."""
        for namespace, made in self.forged:
            found = self._cluster.get(made["apiVersion"], made["kind"], made["metadata"]["name"], namespace)
            assert found.get("spec", {}).get("replicas") == made.get("spec", {}).get("replicas")
            assert found.get("revision") == made.get("revision")
            assert found["metadata"].get("labels") == made["metadata"]["labels"]
            assert found["metadata"].get("ownerReferences") == made["metadata"]["ownerReferences"]

    def close(self) -> None:
        async def free() -> None:
            await asyncio.gather(*(self._free(namespace, made) for namespace, made in self.forged))

        self._cluster.run(free())
        for name in (self.victim, self.other, self.mallory):
            self._cluster.delete(name, kind="Namespace")
        self._cluster.clock.advance(10)

    async def _free(self, namespace: str, made: Document) -> None:
        patch = {"metadata": {"finalizers": None}}
        kind, name = resource(made["kind"]), made["metadata"]["name"]
        await self._cluster.client.patch(kind, name, namespace, patch, content_type=MERGE_PATCH)


def _metadata(obj: Any) -> Document:
    found: Document = obj["metadata"] if isinstance(obj, dict) else {"labels": obj.metadata.labels}
    return found


def _timeless(status: Document) -> Document:
    kept = {key: value for key, value in status.items() if not key.endswith("Time") and key != "active"}
    conditions = status.get("conditions") or []
    kept["conditions"] = sorted((said["type"], said["status"], said.get("reason", "")) for said in conditions)
    kept["active"] = len(status["active"]) if isinstance(status.get("active"), list) else status.get("active")
    kept.pop("observedGeneration", None)
    return kept
