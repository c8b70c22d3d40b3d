"""docs/answers.md shows what the commands print: its examples of plan, why and export are run on a simulated node."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.up import PODFIT, Up, run

PAGE = Path(__file__).parents[2] / "docs/answers.md"
RUN = re.compile(r"(?<=deferred for )\S+|(?<=deferred)   \S+ +|(?<=v1\.36\.2)\+podfit[^, ]*")


def example(command: str) -> str:
    """What the page prints below a command."""
    _, found, rest = PAGE.read_text().partition(f"$ {command}\n")
    assert found, f"docs/answers.md does not show {command}"
    return re.split(r"^(?:\$ |```)", rest, maxsplit=1, flags=re.MULTILINE)[0]


def pod(name: str, cpu: str, *, limited: bool = False, **labels: str) -> dict[str, Any]:
    requests = {"cpu": cpu, **({"memory": "64Mi"} if limited else {})}
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    resources = {"requests": requests, "limits": requests} if limited else {"requests": requests}
    container = {"name": "app", "image": "web:1", "resources": resources, "resizePolicy": policy}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [container]},
    }


@pytest.fixture
def page(tmp_path: Path) -> Iterator["Page"]:
    up = Up(tmp_path / "cluster")
    up.start(node="simulated")
    try:
        yield Page(up)
    finally:
        up.down()


class Page:
    def __init__(self, up: Up) -> None:
        self.up = up

    def has(self, *objects: dict[str, Any]) -> None:
        self.up.apply(*objects)
        names = [f"pod/{each['metadata']['name']}" for each in objects if each["kind"] == "Pod"]
        self.up.ok("wait", "--for=condition=Ready", *names)

    def resized(self, name: str, cpu: str) -> None:
        resources = {"requests": {"cpu": cpu}}
        patch = {"spec": {"containers": [{"name": "app", "resources": resources}]}}
        self.up.ok("patch", "pod", name, "--subresource", "resize", "-p", json.dumps(patch))

    def prints(self, command: str, *, code: int = 0, stdin: str | None = None, typed: str = "") -> None:
        words = (typed or command).split()[1:]
        environment = {"KUBECONFIG": str(self.up.kubeconfig), "COLUMNS": "200"}
        answer = run(PODFIT, *words, stdin=stdin, env=environment)
        assert answer.code == code, answer.err + answer.out
        shown = answer.out if ">" not in command else answer.err
        assert _plain(shown) == _plain(example(command)), f"{command} prints\n{shown}"
        self.out = answer.out


def _allocated(pod: dict[str, Any]) -> str:
    return str(pod["status"]["containerStatuses"][0]["allocatedResources"]["cpu"])


def _plain(text: str) -> str:
    """Without ages, podfit's own version, and the line `next:`."""
    lines = [line.rstrip() for line in RUN.sub("", text).strip().splitlines() if not line.startswith("next:")]
    return "\n".join(lines).strip()


@pytest.mark.kubectl
def test_plan(page: Page) -> None:
    page.has(pod("web", "500m", limited=True))
    page.prints("podfit plan pod/web --cpu 700m --memory 128Mi")


@pytest.mark.kubectl
def test_why(page: Page) -> None:
    page.has(pod("web", "500m"), pod("big", "3"))
    page.resized("web", "2")
    page.up.pod_when(
        "web",
        lambda each: any(c["type"] == "PodResizePending" for c in each["status"]["conditions"]),
        "the resize waits",
    )
    page.prints("podfit why pod/web", code=1)
    page.prints("podfit why -A", code=1)


@pytest.mark.kubectl
def test_export(page: Page) -> None:
    web = pod("web", "500m", app="web")
    template = {"metadata": {"labels": {"app": "web"}}, "spec": web["spec"]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "replicas": 0, "template": template},
    }
    page.has(deployment, pod("web-1", "500m", app="web"), pod("web-2", "500m", app="web"))
    page.resized("web-2", "700m")
    page.up.pod_when("web-2", lambda each: _allocated(each) == "700m", "the resize is granted")
    page.prints("podfit export deployment/web > overlays/prod/sizes.yaml", typed="podfit export deployment/web")
    assert _plain(page.out) == _plain(example("cat overlays/prod/sizes.yaml"))
    page.prints(
        "kustomize build overlays/prod | podfit export deployment/web --drift -f -",
        code=1,
        typed="podfit export deployment/web --drift -f -",
        stdin=json.dumps(deployment),
    )
