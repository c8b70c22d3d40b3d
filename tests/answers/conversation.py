"""A server of another age, as far as a question sees it: canned answers in the shapes of its release.

It is no second copy of podfit's own server, of which there is one (`support.server`), and against which every verb that
foretells is held: here are releases, vendors, rights and refusals that ours does not have, each as one document.
"""

import copy
from typing import Any

import msgspec

from podfit.client.election import TELLER_ANNOTATION
from podfit.client.rest import Client
from podfit.decide.autoscaling.published import LEASE as UPDATER
from podfit.decide.autoscaling.published import AdmissionLease, Published
from podfit.net.wire import Request, Response

PODS = "/api/v1/namespaces/shop/pods"
NODE = "/api/v1/nodes/n1"
CONFIGZ = f"{NODE}/proxy/configz"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"
DENIED = 'pods is forbidden: User "jo" cannot list resource "pods" in API group "" in the namespace "shop"'
FEATURES = ["InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"]


class Conversation:
    """A transport. `forbidden` are paths for which the user lacks rights; what is not there is a 404. A document may be
    plain text, the code of a refusal, or a list of what is said one time after the other.
    """

    near = False

    def __init__(self, minor: int, *pods: dict[str, Any], forbidden: tuple[str, ...] = ()) -> None:
        self.asked: list[tuple[str, str]] = []
        self.forbidden = forbidden
        self.denied: set[str] = set()  # the same in a real server's words
        size = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        status = {"allocatable": size, "capacity": size, "declaredFeatures": FEATURES}
        node = {"metadata": {"name": "n1"}, "status": status}
        self.documents: dict[str, Any] = {
            "/version": {"major": "1", "minor": f"{minor}+", "gitVersion": f"v1.{minor}.4-vendor"},
            NODE: node,
            "/api/v1/nodes": {"items": [node]},
            "/api/v1/namespaces": {"items": []},
            "/api/v1/pods": {"items": pods},
            "/api/v1/namespaces/shop/limitranges": {"items": []},
            "/api/v1/namespaces/shop": {"metadata": {"name": "shop"}},
            "/api/v1/namespaces/shop/resourcequotas": {"items": []},
            CONFIGZ: configz(),
            f"{LEASES}/{UPDATER}": lease("podfit-up", {**Published().annotation(), TELLER_ANNOTATION: "podfit-up"}),
            f"{LEASES}/{AdmissionLease().name}": lease("webhook"),
        } | {f"{PODS}/{pod['metadata']['name']}": pod for pod in pods}

    @property
    def client(self) -> Client:
        return Client(self)

    async def send(self, request: Request) -> Response:
        self.asked.append((request.method, request.path))
        if request.path in self.forbidden:
            return _status(403, f'pods is forbidden: User "jo" cannot list {request.path}')
        if request.path in self.denied:
            return _status(403, DENIED)
        if request.method == "PATCH" and request.path.endswith("/resize"):
            return self._resized(request)
        document = self.documents.get(request.path)
        if isinstance(document, list):  # what is said one time after the other
            document = document.pop(0) if len(document) > 1 else document[0]
        if document is None:
            return _missing(request.path)
        if isinstance(document, int):
            return _status(document, "the server is currently unable to handle the request")
        if isinstance(document, str):
            return Response(200, {"content-type": "text/plain"}, document.encode())
        return Response(200, {}, msgspec.json.encode(document))

    def _resized(self, request: Request) -> Response:
        """The API takes it and the node grants it at once."""
        name = request.path.removesuffix("/resize")
        if not isinstance(self.documents.get(name), dict):
            return _missing(request.path)
        made = copy.deepcopy(self.documents[name])
        merge(made, msgspec.json.decode(request.body))
        sizes = {container["name"]: container["resources"] for container in made["spec"]["containers"]}
        for status in made["status"].get("containerStatuses", ()):
            status |= {"resources": sizes[status["name"]], "allocatedResources": sizes[status["name"]]["requests"]}
        if request.param("dryRun") != "All":
            self.documents[name].clear()
            self.documents[name].update(made)
        return Response(200, {}, msgspec.json.encode(made))

    async def close(self) -> None: ...


def lease(holder: str, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    """That is still held, whenever a test runs."""
    spec = {"holderIdentity": holder, "renewTime": "2099-01-01T00:00:00.000000Z", "leaseDurationSeconds": 180}
    return {"metadata": {"annotations": annotations or {}}, "spec": spec}


def merge(document: dict[str, Any], patch: dict[str, Any]) -> None:
    """A strategic merge, as far as it is used: null removes, lists of named things merge by name."""
    if patch.pop("$patch", "") == "replace":
        document.clear()
    for key, value in patch.items():
        if value is None:
            document.pop(key, None)
        elif isinstance(value, dict):
            merge(document.setdefault(key, {}), value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            named = {container["name"]: container for container in document.setdefault(key, [])}
            for container in value:
                merge(named[container["name"]], container)
        else:
            document[key] = value


def configz(**fields: Any) -> dict[str, Any]:
    """What a kubelet tells of its configuration, some of it."""
    usual = {"cpuManagerPolicy": "none", "memoryManagerPolicy": "None", "memorySwap": {}, "maxPods": 110}
    return {"kubeletconfig": {"kind": "KubeletConfiguration", **usual, **fields}}


def _missing(path: str) -> Response:
    """A namespace that there is not is named; all else is as if its kind were not served."""
    _, mark, name = path.partition("/api/v1/namespaces/")
    if mark and "/" not in name:
        details = {"name": name, "kind": "namespaces"}
        status = {"kind": "Status", "code": 404, "message": f'namespaces "{name}" not found', "details": details}
        return Response(404, {}, msgspec.json.encode(status))
    return _status(404, "the server could not find the requested resource")


def _status(code: int, message: str) -> Response:
    return Response(code, {}, msgspec.json.encode({"kind": "Status", "code": code, "message": message}))


def pod(
    name: str = "web", *, cpu: str = "500m", memory: str = "256Mi", allocated: str = "", policy: str = "", **more: Any
) -> dict[str, Any]:
    """A Guaranteed pod that runs on n1; `allocated` is the CPU that the node holds when it is not the desired one."""
    resources = {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": cpu, "memory": memory}}
    held = {"cpu": allocated or cpu, "memory": memory}
    container: dict[str, Any] = {"name": "app", "image": "i", "resources": resources}
    if policy:
        container["resizePolicy"] = [{"resourceName": "memory", "restartPolicy": policy}]
    status = {
        "name": "app",
        "state": {"running": {}},
        "allocatedResources": held,
        "resources": {"requests": held, "limits": held},
    }
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": name, "generation": 1},
        "spec": {"nodeName": "n1", "restartPolicy": "Always", "containers": [container], **more.pop("spec", {})},
        "status": {"phase": "Running", "qosClass": "Guaranteed", "containerStatuses": [status], **more},
    }
