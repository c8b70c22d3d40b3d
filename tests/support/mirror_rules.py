"""The mirror pods that the node n1 may make, and those that it may not (support.node_rules)."""

from typing import Any

from support.node_world import PODS, Rule, mirror


def _mirror(id_: str, referred: str, **spec: Any) -> Rule:
    return Rule(f"mirror-{id_}", "POST", PODS, 403, referred, mirror(**spec))


def _references(what: str) -> str:
    return f'node "n1" can not create pods that reference {what}'


MIRRORS = (
    Rule("mirror-own", "POST", PODS, 201, "", mirror()),
    Rule("pod-create-plain", "POST", PODS, 403, 'node "n1" can only create mirror pods', mirror(annotations={})),
    _mirror("other-node", 'node "n1" can only create pods with spec.nodeName set to itself', nodeName="n2"),
    _mirror("no-node", 'node "n1" can only create pods with spec.nodeName set to itself', nodeName=""),
    _mirror("no-owner", 'node "n1" can only create pods with an owner reference set to itself', owners=[]),
    _mirror("two-owners", "with a single owner reference set to itself", owners=[{}, {"uid": "another"}]),
    _mirror("owner-other-node", "with an owner reference set to itself", owners=[{"name": "n2"}]),
    _mirror("owner-no-node", "with an owner reference set to itself", owners=[{"kind": "Pod"}]),
    _mirror("owner-no-controller", "with a controller owner reference set to itself", owners=[{"controller": False}]),
    _mirror(
        "owner-blocks", "must not set blockOwnerDeletion on an owner reference", owners=[{"blockOwnerDeletion": True}]
    ),
    _mirror("owner-uid", "node n1 UID mismatch: expected another got", owners=[{"uid": "another"}]),
    _mirror("account", "a mirror pod may not reference service accounts", serviceAccountName="default"),
    _mirror("secret-volume", "a mirror pod may not reference secrets", volume={"secret": {"secretName": "s3"}}),
    _mirror(
        "secret-projected",
        "a mirror pod may not reference secrets",
        volume={"projected": {"sources": [{"secret": {"name": "s3"}}]}},
    ),
    _mirror(
        "secret-env",
        "a mirror pod may not reference secrets",
        container={"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s3", "key": "k"}}}]},
    ),
    _mirror(
        "secret-env-from",
        "a mirror pod may not reference secrets",
        container={"envFrom": [{"secretRef": {"name": "s3"}}]},
    ),
    _mirror(
        "secret-of-init",
        "a mirror pod may not reference secrets",
        initContainers=[{"name": "i", "image": "i", "envFrom": [{"secretRef": {"name": "s3"}}]}],
    ),
    _mirror("secret-image-pull", "a mirror pod may not reference secrets", imagePullSecrets=[{"name": "s3"}]),
    _mirror(
        "secret-of-driver",
        "a mirror pod may not reference secrets",
        volume={"csi": {"driver": "d.example.com", "nodePublishSecretRef": {"name": "s3"}}},
    ),
    _mirror(
        "secret-azure-file",
        "a mirror pod may not reference secrets",
        volume={"azureFile": {"secretName": "s3", "shareName": "x"}},
    ),
    _mirror(
        "secret-flex",
        "a mirror pod may not reference secrets",
        volume={"flexVolume": {"driver": "d.example.com/x", "secretRef": {"name": "s3"}}},
    ),
    _mirror(
        "token",
        "a mirror pod may not use ServiceAccountToken volume projections",
        volume={"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
    ),
    _mirror("configmap-volume", _references("configmaps"), volume={"configMap": {"name": "c3"}}),
    _mirror(
        "configmap-env",
        _references("configmaps"),
        container={"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c3", "key": "k"}}}]},
    ),
    _mirror(
        "configmap-projected",
        _references("configmaps"),
        volume={"projected": {"sources": [{"configMap": {"name": "c3"}}]}},
    ),
    _mirror("claim", _references("persistentvolumeclaims"), volume={"persistentVolumeClaim": {"claimName": "claim2"}}),
    _mirror(
        "ephemeral",
        _references("persistentvolumeclaims (via ephemeral volumes)"),
        volume={
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                }
            }
        },
    ),
    _mirror("driver", _references("csidrivers (via CSI volumes)"), volume={"csi": {"driver": "d.example.com"}}),
    _mirror(
        "endpoints",
        _references("endpoints (via glusterFS volumes)"),
        volume={"glusterfs": {"endpoints": "e", "path": "p"}},
    ),
    _mirror(
        "trust-bundle",
        _references("clustertrustbundles"),
        volume={"projected": {"sources": [{"clusterTrustBundle": {"name": "b", "path": "p"}}]}},
    ),
    _mirror("resource-claim", _references("resourceclaims"), resourceClaims=[{"name": "r", "resourceClaimName": "x"}]),
    Rule("mirror-host-path", "POST", PODS, 201, "", mirror(volume={"hostPath": {"path": "/etc"}})),
)
