"""docs/answers.md shows what the commands print: its examples are typed as they stand, in a pipe and in terminals.

What the API and the nodes have a part in happens on a simulated node. Usage and recommendations come from a server that
tells them, because no container runs on such a node.
"""

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from answers.conversation import METRICS, PODS, Conversation
from answers.conversation import pod as told_pod
from answers.test_allocation import ALL_METRICS
from answers.test_top import DEPLOYMENT, PROXY, VPAS, metrics, quota, with_vpa
from answers.test_why_vpa import cluster, recommended, vpa
from answers.workshop import OWNER
from cli.test_questions import kubeconfig
from support.page_examples import FORMS, Command, Form, Shell, amiss, fits, without_left_out
from support.up import Up

PAGE = (Path(__file__).parents[2] / "docs/answers.md").read_text()
AGE = re.compile(
    r"(?<=deferred for )\S+|(?<=deferred)   \S+ +|(?<=after )[0-9.]+(?= s)"
    r"|(?<=updated   )\S+(?= ago)|(?<=wished at )\S+(?=,)"
)
"""What differs from run to run."""
PLAN = "podfit plan pod/web --cpu 700m --memory 128Mi"
FIT, ALLOCATION = "podfit plan pod/web --fit", "podfit allocation"
WHY, WHY_ALL = "podfit why pod/web", "podfit why -A"
WHY_VPA, TOP = "podfit why vpa/web", "podfit top --sort memory%"
RESIZE = "podfit resize deployment/web --cpu 700m --wait --timeout 2"
TEMPLATE = "podfit resize deployment/web --cpu 700m --also-template"
EXPORT, EXPORTED = "podfit export deployment/web > overlays/prod/sizes.yaml", "cat overlays/prod/sizes.yaml"
REMOVABLE = "podfit why node/simulated-1 --removable"
WHY_HPA, AVERAGES = "podfit why hpa/web", "podfit plan hpa/web --to-average-value"
DRIFT = "kustomize build overlays/prod | podfit export deployment/web --drift -f -"
RECOMMENDED_AT = "2026-11-22T00:50:00Z"
NO_CPU = "Node didn't have enough resource: cpu, requested: 700, used: 3500, capacity: 4000"
WAITS = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": NO_CPU}


def example(command: str) -> Command:
    """A command of the page, and what it prints below it."""
    _, found, rest = PAGE.partition(f"$ {command}\n")
    assert found, f"docs/answers.md does not show {command}"
    return Command(command, re.split(r"^(?:\$ |```)", rest, maxsplit=1, flags=re.MULTILINE)[0])


def test_every_example_is_typed() -> None:
    typed = {
        PLAN,
        FIT,
        ALLOCATION,
        WHY,
        WHY_ALL,
        WHY_VPA,
        TOP,
        RESIZE,
        TEMPLATE,
        EXPORT,
        EXPORTED,
        DRIFT,
        REMOVABLE,
        WHY_HPA,
        AVERAGES,
    }
    assert set(re.findall(r"^\$ (.*)$", PAGE, re.MULTILINE)) == typed


def shows(shell: Shell, *commands: str, code: int = 0, forms: Sequence[Form] = FORMS) -> None:
    """In each form the commands print what the page says, and the last has this exit code."""
    examples = [example(command) for command in commands]
    for form in forms:
        *told, ended = shell.types([*examples, Command("echo $?", "")], form)
        assert ended.strip() == str(code), told
        for shown, said in zip(examples, told, strict=True):
            expected, said = AGE.sub(" ", shown.printed), AGE.sub(" ", said)
            if form.columns:
                kept = without_left_out(expected, said)
                assert amiss(form, kept, said) == [], f"{shown.text} prints, {form}\n{said}"
            else:
                assert fits(expected, said), f"{shown.text} prints\n{said}"


def pod(name: str, cpu: str, *, limited: bool = False, **labels: str) -> dict[str, Any]:
    requests = {"cpu": cpu, **({"memory": "64Mi"} if limited else {})}
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    resources = {"requests": requests, "limits": requests} if limited else {"requests": requests}
    container = {"name": "app", "image": "web:1", "resources": resources, "resizePolicy": policy}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def workload(kind: str, name: str, *, replicas: int = 0, cpu: str = "500m") -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod("web", cpu)["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "replicas": replicas, "template": template},
    }


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A reader with kustomize, which kubectl has in it."""
    home = tmp_path_factory.mktemp("answers")
    (home / "overlays/prod").mkdir(parents=True)
    (home / "overlays/prod/kustomization.yaml").write_text("resources: [web.yaml]\n")
    (home / "overlays/prod/web.yaml").write_text(json.dumps(workload("Deployment", "web")))
    (home / "kustomize").write_text('#!/bin/sh\nexec kubectl kustomize "$2"\n')
    (home / "kustomize").chmod(0o755)
    return Shell(home, search=(home,), KUBECONFIG=str(home / "kubeconfig"))


@pytest.fixture(scope="module")
def running(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = Up(tmp_path_factory.mktemp("cluster"))
    up.start(node="simulated")
    (shell.home / "kubeconfig").write_bytes(up.kubeconfig.read_bytes())
    try:
        yield up
    finally:
        up.down()


@pytest.fixture
def node(running: Up) -> Iterator["Node"]:
    node = Node(running)
    yield node
    node.clear()


class Node:
    """A cluster with one node, and what a test puts into it."""

    def __init__(self, up: Up) -> None:
        self.up = up

    def has(self, *objects: dict[str, Any]) -> None:
        self.up.apply(*objects)
        names = [f"pod/{document['metadata']['name']}" for document in objects if document["kind"] == "Pod"]
        if names:
            self.up.ok("wait", "--for=condition=Ready", *names)

    def clear(self) -> None:
        self.up.ok("delete", "pod,deployment,replicaset,hpa", "--all", "--grace-period=1")

    def resized(self, name: str, cpu: str) -> None:
        resources = {"requests": {"cpu": cpu}}
        patch = {"spec": {"containers": [{"name": "app", "resources": resources}]}}
        self.up.ok("patch", "pod", name, "--subresource", "resize", "-p", json.dumps(patch))

    def rolled_out(self) -> None:
        """The pods web-1 and web-2 are adopted by a ReplicaSet, and that by a Deployment with the same template."""
        self.up.apply(workload("ReplicaSet", "web-abc", replicas=2))
        self.up.ok("wait", "--for=jsonpath={.status.readyReplicas}=2", "replicaset/web-abc")
        self.up.apply(workload("Deployment", "web", replicas=2))
        self.up.ok("rollout", "status", "deployment/web")


def _granted(pod: dict[str, Any]) -> str:
    return str(pod["status"]["containerStatuses"][0]["allocatedResources"]["cpu"])


@pytest.mark.kubectl
def test_plan(node: Node, shell: Shell) -> None:
    node.has(pod("web", "500m", limited=True))
    shows(shell, PLAN)


@pytest.mark.kubectl
def test_the_largest_size_that_fits(node: Node, shell: Shell) -> None:
    node.has(pod("web", "500m", limited=True), pod("other", "700m", limited=True))
    shows(shell, FIT)


@pytest.mark.kubectl
def test_why_a_node_could_not_go(node: Node, shell: Shell) -> None:
    node.has(pod("web", "500m", limited=True))
    shows(shell, REMOVABLE, code=1)


@pytest.mark.kubectl
def test_what_an_hpa_does_next(node: Node, shell: Shell) -> None:
    node.has(workload("Deployment", "web", replicas=3, cpu="200m"))
    node.up.ok("rollout", "status", "deployment/web")
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
    }
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    node.up.apply(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web"},
            "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 6, "metrics": [metric]},
        }
    )
    node.up.ok("wait", "--for=condition=ScalingActive", "--timeout=90s", "hpa/web")
    shows(shell, WHY_HPA)
    shows(shell, AVERAGES)


@pytest.mark.kubectl
def test_why(node: Node, shell: Shell) -> None:
    node.has(pod("web", "500m"), pod("big", "3"))
    node.resized("web", "2")
    node.up.pod_when(
        "web", lambda pod: any(c["type"] == "PodResizePending" for c in pod["status"]["conditions"]), "the resize waits"
    )
    shows(shell, WHY, WHY_ALL, code=1)


@pytest.mark.kubectl
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_resize(form: Form, node: Node, shell: Shell) -> None:
    pods = [pod(name, "500m", app="web") for name in ("web-1", "web-2")]
    node.has(workload("Deployment", "web"), *pods, pod("big", "2800m"))
    shows(shell, RESIZE, code=1, forms=[form])


@pytest.mark.kubectl
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_resize_also_the_template(form: Form, node: Node, shell: Shell) -> None:
    node.has(*(pod(name, "500m", app="web") for name in ("web-1", "web-2")))
    node.rolled_out()
    shows(shell, TEMPLATE, forms=[form])


@pytest.mark.kubectl
def test_export(node: Node, shell: Shell) -> None:
    node.has(workload("Deployment", "web"), *(pod(name, "500m", app="web") for name in ("web-1", "web-2")))
    node.resized("web-2", "700m")
    node.up.pod_when("web-2", lambda pod: _granted(pod) == "700m", "the resize is granted")
    shows(shell, EXPORT, EXPORTED)
    shows(shell, DRIFT, code=1)


def shop() -> Conversation:
    """One pod has not got its resize yet, and a VPA recommends for it."""
    web, api = told_pod("web-1", allocated="250m", conditions=[WAITS]), told_pod("api-1")
    for pod in (web, api):
        pod["metadata"]["labels"] = {"app": pod["metadata"]["name"][:-2]}
    web["metadata"]["ownerReferences"] = [OWNER]
    conversation = Conversation(36, web, api)
    throttled = [quota(200, 50), quota(200, 0)]
    used = [metrics(memory="192Mi", name="web-1"), metrics("10m", name="api-1")]
    conversation.documents |= {
        PODS: {"items": [web, api]},
        METRICS: {"items": used},
        ALL_METRICS: {"items": used},
        f"{PROXY}/metrics/cadvisor": "".join(
            text.replace('pod="web"', f'pod="{name}"') for text, name in zip(throttled, ("web-1", "api-1"), strict=True)
        ),
        VPAS: {"items": [with_vpa()]},
        DEPLOYMENT: {
            "metadata": {"name": "web", "namespace": "shop", "uid": OWNER["uid"]},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
        },
    }
    return conversation


def advised() -> Conversation:
    """A VPA whose policy caps its number, and a pod that has not got it."""

    web = told_pod("web-1", cpu="700m", allocated="500m", conditions=[WAITS])
    web["metadata"]["labels"] = {"app": "web"}
    document = vpa("InPlaceOrRecreate", {"maxAllowed": {"cpu": "700m"}})
    uncapped = {"cpu": "900m", "memory": "256Mi"}
    document["status"] = {
        "recommendation": {"containerRecommendations": [recommended(uncappedTarget=uncapped)]},
        "conditions": [{"type": "RecommendationProvided", "status": "True"}],
    }
    document["metadata"]["managedFields"] = [
        {"manager": "recommender", "time": RECOMMENDED_AT, "subresource": "status"}
    ]
    conversation = cluster(document, web)
    conversation.documents[PODS] = {"items": [web]}
    return conversation


@pytest.mark.parametrize(
    ("command", "conversation", "code"),
    [(TOP, shop(), 0), (ALLOCATION, shop(), 0), (WHY_VPA, advised(), 1)],
    ids=("top", "allocation", "why vpa"),
)
async def test_figures(command: str, conversation: Conversation, code: int, tmp_path: Path) -> None:
    async with kubeconfig(tmp_path, conversation) as path:
        reader = Shell(tmp_path, KUBECONFIG=path)
        await asyncio.to_thread(shows, reader, command, code=code)
