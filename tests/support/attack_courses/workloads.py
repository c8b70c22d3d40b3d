"""A namespace's user who would have the controllers and the scheduler spin."""

from typing import Any

from support.attack_courses.course import Course, Scene

EXPRESSIONS = 2000
LARGEST = 2**31 - 1
SECONDS = 5.0


def template(labels: dict[str, str], variables: int = 0, **spec: Any) -> dict[str, Any]:
    env = [{"name": f"V{number}", "value": "x"} for number in range(variables)]
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i", "env": env}], **spec}}


class Owned:
    """A namespace of the attack's own, which goes with it."""

    def __init__(self, scene: Scene) -> None:
        self._scene, self.name = scene, scene.name()
        scene.send("POST", "/api/v1/namespaces", {"metadata": {"name": self.name}}, {201})
        self.labels = {"app": self.name}

    def make(self, path: str, spec: dict[str, Any], expected: int = 201) -> None:
        """`path` is that of the API and the resource."""
        group, _, resource = path.rpartition("/")
        body = {"metadata": {"name": self._scene.name()}, "spec": spec}
        self._scene.send("POST", f"/{group}/namespaces/{self.name}/{resource}", body, {expected})

    def end(self) -> None:
        path = f"/api/v1/namespaces/{self.name}"
        self._scene.send("DELETE", path, None, {200})
        self._scene.until(lambda: self._scene.victim.ask("GET", path).status == 404, f"{self.name} is gone")


def sets(scene: Scene) -> None:
    """Two billion replicas, a node that rejects its pods, pods of many variables; a schedule and indexes."""
    user = Owned(scene)
    selector = {"matchLabels": user.labels}
    base = {"selector": selector, "template": template(user.labels)}
    user.make("apis/apps/v1/statefulsets", {**base, "replicas": LARGEST, "serviceName": "s"})
    (node, *_) = scene.victim.ask("GET", "/api/v1/nodes").json()["items"]
    rejected = template(user.labels, nodeName=node["metadata"]["name"], nodeSelector={"no": "such"})
    user.make("apis/apps/v1/replicasets", {"replicas": 1, "selector": selector, "template": rejected})
    large = template(user.labels, variables=scene.chance.randint(300, 600))
    user.make("apis/apps/v1/replicasets", {"replicas": scene.count(40), "selector": selector, "template": large})
    once = template(user.labels, restartPolicy="Never")
    policy = {"rules": [{"succeededIndexes": f"0-{LARGEST - 1}", "succeededCount": 1000}]}
    indexed = {"completions": LARGEST, "parallelism": 3, "completionMode": "Indexed", "successPolicy": policy}
    user.make("apis/batch/v1/jobs", {**indexed, "template": once})
    schedule = "0-59," * scene.count(400_000) + "1 * * * *"
    user.make("apis/batch/v1/cronjobs", {"schedule": schedule, "jobTemplate": {"spec": {"template": once}}}, 422)
    user.end()


def selectors(scene: Scene) -> None:
    """Budgets, sets and services that would be compared with every pod, and pods of many rules."""
    user = Owned(scene)
    expressions = [{"key": f"k{number}", "operator": "DoesNotExist"} for number in range(EXPRESSIONS)]
    for _ in range(scene.count(50)):
        user.make("apis/policy/v1/poddisruptionbudgets", {"selector": {"matchExpressions": expressions}})
        chosen = {"matchLabels": user.labels, "matchExpressions": expressions}
        made = {"replicas": 0, "selector": chosen, "template": template(user.labels)}
        user.make("apis/apps/v1/replicasets", made)
    for _ in range(scene.count(300)):
        user.make("api/v1/services", {"clusterIP": "None", "selector": user.labels, "ports": [{"port": 80}]})
    term = {"labelSelector": {"matchLabels": {"not": "there"}}}
    terms = [{**term, "topologyKey": f"k{number}"} for number in range(300)]
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    for _ in range(scene.count(30)):
        user.make("api/v1/pods", template(user.labels, affinity=apart)["spec"])
        user.make("api/v1/pods", template(user.labels)["spec"])
    user.end()


COURSES = (
    Course(
        "replicas and schedules",
        (
            "pods of a StatefulSet",
            "pods of a ReplicaSet",
            "requests that a controller",
            "indexes that a Job's",
            "a CronJob's schedule",
        ),
        sets,
        settle=SECONDS,
        stored_mib=32,  # what controllers load with their first pods
    ),
    Course(
        "selectors and rules",
        ("selectors of workloads", "rules of a pod about nodes", "work of a controller", "what a controller decides"),
        selectors,
        settle=SECONDS,
    ),
)
