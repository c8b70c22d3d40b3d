"""Two nodes with a pod each, and what these refer to: the cluster that the rules of a node are tried on.

mine   on n1: secret s1, config map c1, claim1 on pv1 (mounted with secret other/mount), ephemeral claim, drivers
theirs on n2: secret s2, config map c2, claim2 on pv2;     nobody refers to s3 and c3, unbound is on no node
"""

import json
from typing import Any, NamedTuple

from support.access import send
from support.server import Server

PODS = "/api/v1/namespaces/default/pods"
MINE, THEIRS, UNBOUND = (f"{PODS}/{name}" for name in ("mine", "theirs", "unbound"))
SECRETS, CONFIG_MAPS = "/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/configmaps"
CLAIMS, VOLUMES = "/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/persistentvolumes"
NODES, CSI_NODES = "/api/v1/nodes", "/apis/storage.k8s.io/v1/csinodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
SIZE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


class Rule(NamedTuple):
    """`text` is a part of the message that refuses; empty where the request is allowed, or RBAC has nothing to add."""

    id: str
    method: str
    path: str
    code: int
    text: str = ""
    body: Any = None
    kind: str = ""


def named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def mirror(
    *,
    annotations: dict[str, str] | None = None,
    owners: list[dict[str, Any]] | None = None,
    volume: dict[str, Any] | None = None,
    container: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A mirror pod of n1 that is allowed, but for what is given."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "{n1}", "controller": True}
    noted = {"kubernetes.io/config.mirror": "x"} if annotations is None else annotations
    meta: dict[str, Any] = {
        "name": "static-n1",
        "annotations": noted,
        "ownerReferences": [owner | changed for changed in ([{}] if owners is None else owners)],
    }
    full = {"nodeName": "n1", "containers": [{"name": "c", "image": "i", **(container or {})}], **spec}
    return {"metadata": meta, "spec": full | ({"volumes": [{"name": "v", **volume}]} if volume else {})}


def eviction(pod: str) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", **named(pod)}


def token(
    *, audiences: list[str] | None = None, kind: str = "Pod", name: str = "mine", uid: str = "{mine}"
) -> dict[str, Any]:
    ref = {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}
    return {"spec": {"boundObjectRef": ref, "audiences": ["vault"] if audiences is None else audiences}}


async def node_world(server: Server) -> dict[str, str]:
    """Makes it; the uids of nodes and pods by name."""
    await server.namespace("other")
    uids = {}
    for name in ("n1", "n2"):
        uids[name] = await _made(
            server,
            NODES,
            {
                "metadata": {"name": name, "labels": {"node-restriction.kubernetes.io/team": "a"}},
                "spec": {"taints": [{"key": "dedicated", "effect": "NoExecute"}]},
            },
        )
    for index in "123":
        await _made(server, SECRETS, named(f"s{index}"))
        await _made(server, CONFIG_MAPS, named(f"c{index}"))
    for name in ("mount", "attach"):
        await _made(server, "/api/v1/namespaces/other/secrets", named(name))
    await _made(server, LEASES, named("n2"))
    await _made(server, CSI_NODES, named("n2") | {"spec": {"drivers": []}})
    await _made(server, "/api/v1/namespaces/default/serviceaccounts", named("extra"))
    for driver, audience in (("d.example.com", "for-driver"), ("claims.example.com", "for-claims")):
        await _made(server, DRIVERS, named(driver) | {"spec": {"tokenRequests": [{"audience": audience}]}})
    for index in "12":
        await _made(server, VOLUMES, _volume(index))
        await _made(
            server,
            CLAIMS,
            named(f"claim{index}") | {"spec": SIZE | {"volumeName": f"pv{index}", "storageClassName": ""}},
        )
    await _made(server, CLAIMS, named("mine-scratch") | {"spec": SIZE})
    uids["mine"] = await _made(server, PODS, _pod("mine", "n1", "1"))
    uids["theirs"] = await _made(server, PODS, _pod("theirs", "n2", "2"))
    uids["unbound"] = await _made(server, PODS, _pod("unbound", "", "3", claim=False))
    return uids


def filled(body: Any, uids: dict[str, str]) -> Any:
    text = json.dumps(body)
    for name, uid in uids.items():
        text = text.replace(f'"{{{name}}}"', json.dumps(uid))
    return json.loads(text)


def _volume(index: str) -> dict[str, Any]:
    csi = {
        "driver": "claims.example.com",
        "volumeHandle": "h",
        "nodeStageSecretRef": {"namespace": "other", "name": "mount"},
        "controllerPublishSecretRef": {"namespace": "other", "name": "attach"},
    }
    return named(f"pv{index}") | {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "csi": csi,
            "claimRef": {"namespace": "default", "name": f"claim{index}"},
        }
    }


def _pod(name: str, node: str, index: str, *, claim: bool = True) -> dict[str, Any]:
    volumes: list[dict[str, Any]] = [{"name": "map", "configMap": {"name": f"c{index}"}}]
    if claim:
        volumes += [
            {"name": "data", "persistentVolumeClaim": {"claimName": f"claim{index}"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": SIZE}}},
            {"name": "inline", "csi": {"driver": "d.example.com"}},
            {"name": "tokens", "projected": {"sources": [{"serviceAccountToken": {"path": "t", "audience": "vault"}}]}},
        ]
    secret = {"secretKeyRef": {"name": f"s{index}", "key": "k"}}
    spec: dict[str, Any] = {
        "containers": [{"name": "c", "image": "i", "env": [{"name": "A", "valueFrom": secret}]}],
        "volumes": volumes,
        "automountServiceAccountToken": False,
        "tolerations": [{"operator": "Exists"}],
    }
    return named(name) | {"spec": spec | ({"nodeName": node} if node else {})}


async def _made(server: Server, path: str, body: dict[str, Any]) -> str:
    status, made = await send(server, "POST", path, body)
    assert status == 201, made
    uid: str = made["metadata"]["uid"]
    return uid
