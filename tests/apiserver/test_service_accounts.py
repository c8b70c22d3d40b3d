"""What a pod gets from its service account."""

from typing import Any

import pytest

from support.access import PODS, send
from support.server import Server

PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


async def created(server: Server, **spec: Any) -> dict[str, Any]:
    full = {"containers": [{"name": "c", "image": "i"}], **spec}
    status, made = await send(server, "POST", PODS, {"metadata": {"name": "p"}, "spec": full})
    assert status == 201, made
    found: dict[str, Any] = made["spec"]
    return found


def mounts(container: dict[str, Any]) -> list[str]:
    return [mount["name"] for mount in container.get("volumeMounts", [])]


async def test_every_container_finds_a_token_in_its_place(server: Server) -> None:
    spec = await created(server, initContainers=[{"name": "i", "image": "i"}], volumes=[{"name": "v", "emptyDir": {}}])
    name = spec["volumes"][-1]["name"]
    assert name.startswith("kube-api-access-")
    assert [mounts(container) for container in (*spec["containers"], *spec["initContainers"])] == [[name], [name]]
    assert spec["containers"][0]["volumeMounts"] == [{"name": name, "readOnly": True, "mountPath": PLACE}]
    assert spec["volumes"][-1]["projected"] == {
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                    ]
                }
            },
        ],
    }


@pytest.mark.parametrize(
    ("of_pod", "of_account", "mounted"),
    [(None, None, True), (None, False, False), (None, True, True), (True, False, True), (False, True, False)],
)
async def test_who_decides_about_the_token(
    server: Server, of_pod: bool | None, of_account: bool | None, mounted: bool
) -> None:
    body = {"metadata": {"name": "a"}} | ({} if of_account is None else {"automountServiceAccountToken": of_account})
    assert (await send(server, "POST", ACCOUNTS, body))[0] == 201
    said = {} if of_pod is None else {"automountServiceAccountToken": of_pod}
    spec = await created(server, serviceAccountName="a", **said)
    assert bool(spec.get("volumes")) is mounted


async def test_what_is_mounted_there_already_stays_and_a_volume_of_that_name_is_used(server: Server) -> None:
    own = {"name": "c", "image": "i", "volumeMounts": [{"name": "mine", "mountPath": PLACE}]}
    spec = await created(server, containers=[own], volumes=[{"name": "mine", "emptyDir": {}}])
    assert [volume["name"] for volume in spec["volumes"]] == ["mine"]
    await send(server, "DELETE", f"{PODS}/p")
    spec = await created(server, volumes=[{"name": "kube-api-access-me", "emptyDir": {}}])
    assert [volume["name"] for volume in spec["volumes"]] == ["kube-api-access-me"]
    assert mounts(spec["containers"][0]) == ["kube-api-access-me"]


async def test_an_account_lends_its_pull_secrets_to_pods_without_any(server: Server) -> None:
    body = {"metadata": {"name": "a"}, "imagePullSecrets": [{"name": "s"}]}
    assert (await send(server, "POST", ACCOUNTS, body))[0] == 201
    assert (await created(server, serviceAccountName="a"))["imagePullSecrets"] == [{"name": "s"}]
    await send(server, "DELETE", f"{PODS}/p")
    spec = await created(server, serviceAccountName="a", imagePullSecrets=[{"name": "own"}])
    assert spec["imagePullSecrets"] == [{"name": "own"}]


async def test_a_missing_account_and_a_mirror_pod(server: Server) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "none"}
    status, refused = await send(server, "POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
    assert (status, refused["message"]) == (
        403,
        'pods "p" is forbidden: error looking up service account default/none: serviceaccount "none" not found',
    )
    mirror = {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}
    status, refused = await send(server, "POST", PODS, {"metadata": mirror, "spec": {**spec, "nodeName": "n1"}})
    assert (status, refused["message"]) == (
        403,
        'pods "p" is forbidden: a mirror pod may not reference service accounts',
    )
