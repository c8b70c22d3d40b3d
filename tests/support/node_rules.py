"""The rules of upstream's node authorizer and NodeRestriction, a request of the node n1 for each, and the answer.

The same rows are the table of docs/security.md: `(cd tests && ../.venv/bin/python -m support.node_rules)` prints it.
In bodies `{n1}` and `{mine}` stand for the uid of that object of `support.node_world`.
"""

import sys
from typing import Any

from support import requests
from support.mirror_rules import MIRRORS
from support.node_world import (
    CLAIMS,
    CONFIG_MAPS,
    CSI_NODES,
    LEASES,
    MINE,
    NODES,
    PODS,
    SECRETS,
    THEIRS,
    UNBOUND,
    VOLUMES,
    Rule,
    eviction,
    named,
    token,
)

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
TOKEN = f"{ACCOUNTS}/default/token"
UNRELATED = "no relationship found between node 'n1' and this object"
ONLY_READ, ONLY_GET = "can only read resources of this type", "can only get individual resources of this type"
BY_SELECTOR = "can only list/watch pods with spec.nodeName field selector"
LABELS = "is not allowed to modify labels: "
ANOTHER_NODE = 'node "n1" is not allowed to modify node "n2"'


def labels(**values: str | None) -> dict[str, Any]:
    return {"metadata": {"labels": values}}


def _csr(id_: str, code: int, text: str, user: str, signer: str = requests.NODE_CLIENT) -> Rule:
    dns = ("n1",) if signer.endswith("serving") else ()
    body = requests.body(
        "c",
        requests.request(user, "system:nodes", dns=dns),
        signer,
        ("digital signature", "server auth" if dns else "client auth"),
    )
    return Rule(id_, "POST", requests.REQUESTS, code, text, body)


OF_PODS = (
    Rule("pod-delete-own", "DELETE", MINE, 200),
    Rule("pod-delete-other", "DELETE", THEIRS, 403, 'node "n1" can only delete pods with spec.nodeName set to itself'),
    Rule("pod-delete-unbound", "DELETE", UNBOUND, 403, "can only delete pods with spec.nodeName set to itself"),
    Rule("pod-delete-collection", "DELETE", PODS, 403, "cannot deletecollection resource"),
    Rule("pod-evict-own", "POST", f"{MINE}/eviction", 201, "", eviction("mine")),
    Rule(
        "pod-evict-other",
        "POST",
        f"{THEIRS}/eviction",
        403,
        "node n1 can only evict pods with spec.nodeName set to itself",
        eviction("theirs"),
    ),
    Rule(
        "pod-evict-other-by-own-name", "POST", f"{THEIRS}/eviction", 400, "name in URL does not match", eviction("mine")
    ),
    Rule("pod-evict-missing", "POST", f"{PODS}/none/eviction", 404, 'pod "none" not found', eviction("none")),
    Rule("pod-update-own", "PATCH", MINE, 403, "cannot patch resource", labels(a="b"), MERGE),
    Rule("pod-resize-own", "PATCH", f"{MINE}/resize", 403, 'cannot patch resource "pods/resize"', {}, STRATEGIC),
    Rule("pod-ephemeral-own", "PATCH", f"{MINE}/ephemeralcontainers", 403, "pods/ephemeralcontainers", {}, STRATEGIC),
    Rule("pod-binding", "POST", f"{UNBOUND}/binding", 403, "pods/binding", {"target": {"name": "n1"}}),
    Rule("pod-log-own", "GET", f"{MINE}/log", 403, 'cannot get resource "pods/log"'),
    Rule("pod-status-own", "PATCH", f"{MINE}/status", 200, "", {"status": {"message": "m"}}, STRATEGIC),
    Rule(
        "pod-status-other",
        "PATCH",
        f"{THEIRS}/status",
        403,
        "can only update pod status for pods with spec.nodeName set to itself",
        {"status": {"message": "m"}},
        STRATEGIC,
    ),
    Rule(
        "pod-status-labels",
        "PATCH",
        f"{MINE}/status",
        403,
        "cannot update labels through pod status",
        labels(a="b"),
        MERGE,
    ),
    Rule(
        "pod-status-claims",
        "PATCH",
        f"{MINE}/status",
        403,
        "cannot update resource claim statues",
        {"status": {"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "x"}]}},
        MERGE,
    ),
    Rule(
        "pod-status-extended-claims",
        "PATCH",
        f"{MINE}/status",
        403,
        "cannot update extended resource claim status",
        {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": []}}},
        MERGE,
    ),
    Rule("pod-status-read", "GET", f"{MINE}/status", 403, "pods/status"),
    Rule("pod-get-own", "GET", MINE, 200),
    Rule("pod-get-other", "GET", THEIRS, 403, UNRELATED),
    Rule("pod-get-unbound", "GET", UNBOUND, 403, UNRELATED),
    Rule("pod-list-all", "GET", PODS, 403, BY_SELECTOR),
    Rule("pod-list-own", "GET", "/api/v1/pods?fieldSelector=spec.nodeName=n1", 200),
    Rule("pod-list-other", "GET", "/api/v1/pods?fieldSelector=spec.nodeName=n2", 403, BY_SELECTOR),
    Rule("pod-list-not-other", "GET", "/api/v1/pods?fieldSelector=spec.nodeName!=n2", 403, BY_SELECTOR),
    Rule("pod-list-own-by-name", "GET", f"{PODS}?fieldSelector=metadata.name=mine", 200),
    Rule("pod-list-other-by-name", "GET", f"{PODS}?fieldSelector=metadata.name=theirs", 403, UNRELATED),
    Rule("pod-watch-all", "GET", "/api/v1/pods?watch=1", 403, BY_SELECTOR),
    Rule("pod-watch-own", "GET", "/api/v1/pods?watch=1&fieldSelector=spec.nodeName=n1", 200),
)
OF_NODES = (
    Rule("node-create-other", "POST", NODES, 403, 'node "n1" is not allowed to modify node "n3"', named("n3")),
    Rule(
        "node-create-generated",
        "POST",
        NODES,
        403,
        'node "n1" is not allowed to modify node ""',
        {"metadata": {"generateName": "n1"}},
    ),
    Rule("node-update-other", "PATCH", f"{NODES}/n2", 403, ANOTHER_NODE, labels(a="b"), MERGE),
    Rule("node-status-other", "PATCH", f"{NODES}/n2/status", 403, ANOTHER_NODE, {"status": {}}, MERGE),
    Rule("node-delete-own", "DELETE", f"{NODES}/n1", 403, "cannot delete resource"),
    Rule("node-label-plain", "PATCH", f"{NODES}/n1", 200, "", labels(**{"example.com/x": "1", "plain": "2"}), MERGE),
    Rule(
        "node-label-kubelet",
        "PATCH",
        f"{NODES}/n1",
        200,
        "",
        labels(
            **{
                "kubelet.kubernetes.io/x": "1",
                "a.node.kubernetes.io/y": "2",
                "topology.kubernetes.io/zone": "z",
                "beta.kubernetes.io/os": "linux",
            }
        ),
        MERGE,
    ),
    Rule(
        "node-label-restricted",
        "PATCH",
        f"{NODES}/n1",
        403,
        LABELS + "node-restriction.kubernetes.io/x",
        labels(**{"node-restriction.kubernetes.io/x": "1"}),
        MERGE,
    ),
    Rule(
        "node-label-removed",
        "PATCH",
        f"{NODES}/n1",
        403,
        LABELS + "node-restriction.kubernetes.io/team",
        labels(**{"node-restriction.kubernetes.io/team": None}),
        MERGE,
    ),
    Rule(
        "node-label-changed",
        "PATCH",
        f"{NODES}/n1",
        403,
        LABELS + "node-restriction.kubernetes.io/team",
        [{"op": "replace", "path": "/metadata/labels/node-restriction.kubernetes.io~1team", "value": "b"}],
        JSON,
    ),
    Rule(
        "node-label-role",
        "PATCH",
        f"{NODES}/n1",
        403,
        LABELS + "node-role.kubernetes.io/control-plane",
        labels(**{"node-role.kubernetes.io/control-plane": ""}),
        STRATEGIC,
    ),
    Rule(
        "node-label-k8s",
        "PATCH",
        f"{NODES}/n1",
        403,
        LABELS + "k8s.io/a, x.k8s.io/b",
        labels(**{"x.k8s.io/b": "1", "k8s.io/a": "1"}),
        MERGE,
    ),
    Rule(
        "node-label-by-status",
        "PATCH",
        f"{NODES}/n1/status",
        403,
        LABELS + "kubernetes.io/evil",
        labels(**{"kubernetes.io/evil": "1"}),
        MERGE,
    ),
    Rule(
        "node-taint",
        "PATCH",
        f"{NODES}/n1",
        403,
        'node "n1" is not allowed to modify taints',
        {"spec": {"taints": None}},
        MERGE,
    ),
    Rule(
        "node-taint-by-status",
        "PATCH",
        f"{NODES}/n1/status",
        403,
        'node "n1" is not allowed to modify taints',
        {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
        MERGE,
    ),
    Rule(
        "node-owner",
        "PATCH",
        f"{NODES}/n1",
        403,
        'node "n1" is not allowed to modify ownerReferences',
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}]}},
        MERGE,
    ),
    Rule(
        "node-owner-by-status",
        "PATCH",
        f"{NODES}/n1/status",
        403,
        "is not allowed to modify ownerReferences",
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}]}},
        MERGE,
    ),
    Rule(
        "node-config-source",
        "PATCH",
        f"{NODES}/n1",
        403,
        "is not allowed to update configSource to a new non-nil",
        {"spec": {"configSource": {"configMap": {"name": "c3", "namespace": "default", "kubeletConfigKey": "k"}}}},
        MERGE,
    ),
    Rule(
        "node-status-own",
        "PATCH",
        f"{NODES}/n1/status",
        200,
        "",
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        STRATEGIC,
    ),
    Rule("node-get-own", "GET", f"{NODES}/n1", 200),
    Rule("node-get-other", "GET", f"{NODES}/n2", 403, "node 'n1' cannot read 'n2', only its own Node object"),
    Rule("node-list", "GET", NODES, 403, "node 'n1' cannot read all nodes, only its own Node object"),
    Rule("node-watch", "GET", f"{NODES}?watch=1", 403, "cannot read all nodes, only its own Node object"),
    Rule("node-list-own", "GET", f"{NODES}?fieldSelector=metadata.name=n1", 200),
    Rule("node-watch-own", "GET", f"{NODES}?watch=1&fieldSelector=metadata.name=n1", 200),
    Rule("node-list-other", "GET", f"{NODES}?fieldSelector=metadata.name=n2", 403, "cannot read 'n2'"),
    Rule("node-list-by-label", "GET", f"{NODES}?labelSelector=a=b", 403, "cannot read all nodes"),
    Rule("node-proxy", "GET", f"{NODES}/n1/proxy/pods", 403, "nodes/proxy"),
)
READING = (
    Rule("secret-env", "GET", f"{SECRETS}/s1", 200),
    Rule("secret-of-other-pod", "GET", f"{SECRETS}/s2", 403, UNRELATED),
    Rule("secret-unreferenced", "GET", f"{SECRETS}/s3", 403, UNRELATED),
    Rule("secret-of-volume", "GET", "/api/v1/namespaces/other/secrets/mount", 200),
    Rule("secret-of-controller", "GET", "/api/v1/namespaces/other/secrets/attach", 403, UNRELATED),
    Rule("secret-list", "GET", SECRETS, 403, "No Object name found"),
    Rule("secret-list-everywhere", "GET", "/api/v1/secrets", 403, "can only read namespaced object of this type"),
    Rule("secret-list-one", "GET", f"{SECRETS}?fieldSelector=metadata.name=s1", 200),
    Rule("secret-list-other", "GET", f"{SECRETS}?fieldSelector=metadata.name=s2", 403, UNRELATED),
    Rule("secret-write", "PATCH", f"{SECRETS}/s1", 403, ONLY_READ, {}, MERGE),
    Rule("configmap-volume", "GET", f"{CONFIG_MAPS}/c1", 200),
    Rule("configmap-unreferenced", "GET", f"{CONFIG_MAPS}/c3", 403, UNRELATED),
    Rule("configmap-write", "DELETE", f"{CONFIG_MAPS}/c1", 403, ONLY_READ),
    Rule("claim-own", "GET", f"{CLAIMS}/claim1", 200),
    Rule("claim-ephemeral", "GET", f"{CLAIMS}/mine-scratch", 200),
    Rule("claim-other", "GET", f"{CLAIMS}/claim2", 403, UNRELATED),
    Rule("claim-list", "GET", CLAIMS, 403, ONLY_GET),
    Rule("claim-write", "PATCH", f"{CLAIMS}/claim1", 403, ONLY_GET, labels(a="b"), MERGE),
    Rule(
        "claim-status",
        "PATCH",
        f"{CLAIMS}/claim1/status",
        200,
        "",
        {"status": {"capacity": {"storage": "2Gi"}, "conditions": [{"type": "Resizing", "status": "True"}]}},
        MERGE,
    ),
    Rule(
        "claim-status-phase",
        "PATCH",
        f"{CLAIMS}/claim1/status",
        403,
        "is not allowed to update fields other than",
        {"status": {"phase": "Lost"}},
        MERGE,
    ),
    Rule(
        "claim-status-labels",
        "PATCH",
        f"{CLAIMS}/claim1/status",
        403,
        "is not allowed to update fields other than",
        labels(a="b"),
        MERGE,
    ),
    Rule("claim-status-other", "PATCH", f"{CLAIMS}/claim2/status", 403, UNRELATED, {"status": {}}, MERGE),
    Rule("claim-status-read", "GET", f"{CLAIMS}/claim1/status", 403, "can only get/update/patch this type"),
    Rule("volume-own", "GET", f"{VOLUMES}/pv1", 200),
    Rule("volume-other", "GET", f"{VOLUMES}/pv2", 403, UNRELATED),
    Rule("volume-list", "GET", VOLUMES, 403, ONLY_GET),
    Rule("attachment", "GET", "/apis/storage.k8s.io/v1/volumeattachments/a", 403, UNRELATED),
    Rule(
        "slices", "GET", "/apis/resource.k8s.io/v1/resourceslices", 403, "resourceslices with nodeName field selector"
    ),
    Rule("account-own", "GET", f"{ACCOUNTS}/default", 200),
    Rule("account-other", "GET", f"{ACCOUNTS}/extra", 403, UNRELATED),
    Rule("account-create", "POST", ACCOUNTS, 403, "can only create tokens for individual service accounts", named("x")),
    Rule("storage-classes", "GET", "/apis/storage.k8s.io/v1/storageclasses", 403, "cannot list resource"),
    Rule("driver", "GET", "/apis/storage.k8s.io/v1/csidrivers/d.example.com", 200),
    Rule("services", "GET", "/api/v1/services", 200),
    Rule("service-create", "POST", "/api/v1/namespaces/default/services", 403, "cannot create resource", named("x")),
    Rule(
        "event-create",
        "POST",
        "/api/v1/namespaces/default/events",
        201,
        "",
        named("e") | {"involvedObject": {"kind": "Pod", "name": "mine", "namespace": "default"}},
    ),
    Rule("event-list", "GET", "/api/v1/events", 403, "cannot list resource"),
    Rule("roles", "GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles", 403, "cannot list resource"),
)
OWN_THINGS = (
    Rule("lease-own", "POST", LEASES, 201, "", named("n1")),
    Rule("lease-create-other", "POST", LEASES, 403, "can only access node lease with the same name", named("n3")),
    Rule("lease-get-other", "GET", f"{LEASES}/n2", 403, "can only access node lease with the same name"),
    Rule(
        "lease-update-other", "PATCH", f"{LEASES}/n2", 403, "can only access node lease with the same name", {}, MERGE
    ),
    Rule("lease-list", "GET", LEASES, 403, "can only get, create, update, patch, or delete a node lease"),
    Rule(
        "lease-elsewhere",
        "POST",
        LEASES.replace("kube-node-lease", "default"),
        403,
        'can only access leases in the "kube-node-lease" system namespace',
        named("n1"),
    ),
    Rule("csinode-own", "POST", CSI_NODES, 201, "", named("n1") | {"spec": {"drivers": []}}),
    Rule(
        "csinode-create-other",
        "POST",
        CSI_NODES,
        403,
        "can only access CSINode with the same name as the requesting",
        named("n3") | {"spec": {"drivers": []}},
    ),
    Rule("csinode-get-own", "GET", f"{CSI_NODES}/n1", 404, 'csinodes.storage.k8s.io "n1" not found'),
    Rule("csinode-get-other", "GET", f"{CSI_NODES}/n2", 403, "can only access CSINode with the same name"),
    Rule("csinode-delete-other", "DELETE", f"{CSI_NODES}/n2", 403, "can only access CSINode with the same name"),
    Rule("csinode-list", "GET", CSI_NODES, 403, "can only get, create, update, patch, or delete a CSINode"),
    _csr("csr-own", 201, "", "system:node:n1"),
    _csr("csr-other", 403, "can only create a node CSR with CN=system:node:n1", "system:node:n2"),
    _csr(
        "csr-serving-other",
        403,
        "can only create a node CSR with CN=system:node:n1",
        "system:node:n2",
        "kubernetes.io/kubelet-serving",
    ),
    _csr("csr-other-signer", 201, "", "somebody", "kubernetes.io/kube-apiserver-client"),
    Rule(
        "csr-approve", "PATCH", f"{requests.REQUESTS}/x/approval", 403, "certificatesigningrequests/approval", {}, MERGE
    ),
)
TOKENS = (
    Rule("token-own", "POST", TOKEN, 201, "", token(audiences=["vault"])),
    Rule("token-of-driver", "POST", TOKEN, 201, "", token(audiences=["for-driver"])),
    Rule("token-of-claimed-driver", "POST", TOKEN, 201, "", token(audiences=["for-claims"])),
    Rule(
        "token-audience",
        "POST",
        TOKEN,
        403,
        'audience "bank" not found in pod spec volume, system:node:n1 is not '
        "authorized to request tokens for this audience",
        token(audiences=["bank"]),
    ),
    Rule("token-no-audience", "POST", TOKEN, 403, 'audience "" not found in pod spec volume', token(audiences=[])),
    Rule(
        "token-two-audiences",
        "POST",
        TOKEN,
        403,
        "node may only request 0 or 1 audiences",
        token(audiences=["vault", "bank"]),
    ),
    Rule(
        "token-unbound",
        "POST",
        TOKEN,
        403,
        "node requested token not bound to a pod",
        {"spec": {"audiences": ["vault"]}},
    ),
    Rule(
        "token-of-secret",
        "POST",
        TOKEN,
        403,
        "node requested token not bound to a pod",
        token(kind="Secret", name="s1"),
    ),
    Rule("token-no-uid", "POST", TOKEN, 403, "node requested token with a pod binding without a uid", token(uid="")),
    Rule(
        "token-uid",
        "POST",
        TOKEN,
        403,
        "the UID in the bound object reference (another) does not match",
        token(uid="another"),
    ),
    Rule(
        "token-other-pod",
        "POST",
        TOKEN,
        403,
        "node requested token bound to a pod scheduled on a different node",
        token(name="theirs", uid="{theirs}"),
    ),
    Rule("token-missing-pod", "POST", TOKEN, 404, 'pod "none" not found', token(name="none")),
    Rule("token-other-account", "POST", f"{ACCOUNTS}/extra/token", 403, UNRELATED, token(audiences=["vault"])),
)
RULES = (*MIRRORS, *OF_PODS, *OF_NODES, *READING, *OWN_THINGS, *TOKENS)


def table() -> str:
    lines = ["| rule and test | request of node n1 | answer |", "|---|---|---|"]
    for rule in RULES:
        said = f"{rule.code} `…{rule.text}…`" if rule.text else str(rule.code)
        lines.append(f"| `{rule.id}` | {rule.method} `{rule.path}` | {said} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
