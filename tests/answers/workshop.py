"""A server that keeps what it is sent, with a Deployment's controller: how a change of a template is seen to end.

For what goes wrong between two writes, on servers of any age. That podfit's own server and controllers do what is told
is in `test_rollouts_hold` and `test_template_served`.
"""

import copy
from typing import Any

import msgspec

from answers.conversation import PODS, Conversation, merge, pod
from podfit.answers.plan.template import bare
from podfit.net.wire import Request, Response

APPS = "/apis/apps/v1/namespaces/shop"
LABELS = {"app": "web"}
OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
SIZES = {"requests": {"cpu": "500m", "memory": "256Mi"}, "limits": {"cpu": "500m", "memory": "256Mi"}}


def template(**spec: Any) -> dict[str, Any]:
    container = {"name": "app", "image": "i", "resources": copy.deepcopy(SIZES)}
    meta = {"labels": dict(LABELS), "creationTimestamp": None}
    return {"metadata": meta, "spec": {"containers": [container], **spec}}


class Workshop(Conversation):
    """`rollouts` counts what a controller began. `after` is called with each write that was done, and may spoil it."""

    def __init__(self, minor: int = 36, *pods: dict[str, Any], **more: Any) -> None:
        super().__init__(minor, *(pods or (pod("web-1"), pod("web-2"))), **more)
        self.rollouts = 0
        self.refuse: dict[str, str] = {}  # by the end of the path, what is said to a write that stores something
        self.writes: list[tuple[str, Any, bool]] = []
        names = [path for path in self.documents if path.startswith(f"{PODS}/")]
        self.documents[PODS] = {"items": [self.documents[name] for name in names]}

    def add(self, kind: str, document: dict[str, Any]) -> None:
        """By its plural, such as deployments."""
        self.documents[f"{APPS}/{kind}/{document['metadata']['name']}"] = document

    def add_deployment(self, **spec: Any) -> None:
        selector = {"matchLabels": LABELS}
        self.add(
            "deployments",
            {
                "metadata": {"name": "web", "uid": "d", "generation": 1, "resourceVersion": "7"},
                "spec": {"replicas": 2, "selector": selector, "template": template(), **spec},
                "status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2},
            },
        )
        hashed = template()
        hashed["metadata"]["labels"]["pod-template-hash"] = "abc"
        self.add(
            "replicasets",
            {
                "metadata": {"name": "web-abc", "namespace": "shop", "ownerReferences": [OWNER]},
                "spec": {"replicas": 2, "selector": selector, "template": hashed},
            },
        )

    def at(self, kind: str, name: str = "web") -> dict[str, Any]:
        found: dict[str, Any] = self.documents[f"{APPS}/{kind}/{name}"]
        return found

    def sizes(self, kind: str, name: str = "web") -> dict[str, Any]:
        found: dict[str, Any] = self.at(kind, name)["spec"]["template"]["spec"]["containers"][0]["resources"]
        return found

    async def send(self, request: Request) -> Response:
        self.documents[f"{APPS}/replicasets"] = {
            "items": [document for path, document in self.documents.items() if path.startswith(f"{APPS}/replicasets/")]
        }
        known = request.path in self.documents or request.path.endswith("/resize")
        if request.method != "PATCH" or request.path in self.forbidden or not known:
            return await super().send(request)
        patch = msgspec.json.decode(request.body)
        dry = request.param("dryRun") == "All"
        self.writes.append((request.path, patch, dry))
        if not dry and (text := self.refuse.pop(request.path.rpartition("/")[2], "")):
            code = 409 if "modified" in text else 403
            return Response(code, {}, msgspec.json.encode({"kind": "Status", "code": code, "message": text}))
        if not dry and not request.path.startswith(PODS):
            merge(self.documents[request.path], patch)
            self.control()
        return await super().send(request)

    def control(self) -> None:
        """What a Deployment's controller does when it looks: no ReplicaSet of this template, so a new one."""
        deployment = self.at("deployments") if f"{APPS}/deployments/web" in self.documents else None
        if deployment is None or deployment["spec"].get("paused"):
            return
        sets = [document for path, document in self.documents.items() if path.startswith(f"{APPS}/replicasets/")]
        if not any(
            bare(replica_set["spec"]["template"]) == bare(deployment["spec"]["template"]) for replica_set in sets
        ):
            self.rollouts += 1
