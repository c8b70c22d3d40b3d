"""Claims, volumes and classes through the API server: what admission adds, what may be changed, what stays."""

import json
from typing import Any

import pytest

from podfit.api.core.v1.persistentvolumes.claims import PersistentVolumeClaim
from podfit.api.core.v1.persistentvolumes.types import PersistentVolume
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.node.v1.types import RuntimeClass
from podfit.api.storage.v1.types import StorageClass
from podfit.core.errors import ApiError
from support.server import Server, document

DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


def claim(name: str, **spec: Any) -> PersistentVolumeClaim:
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}} | spec
    return convert({"metadata": {"name": name, "namespace": "default"}, "spec": body}, PersistentVolumeClaim)


def storage(name: str, **meta: Any) -> StorageClass:
    return convert({"metadata": {"name": name, **meta}, "provisioner": "x.y/z"}, StorageClass)


async def test_a_claim_gets_the_default_class(server: Server) -> None:
    assert (await server.client.create(claim("before"))).spec.storage_class_name is None
    await server.client.create(storage("plain"))
    await server.client.create(storage("usual", annotations=DEFAULT))
    assert (await server.client.create(claim("after"))).spec.storage_class_name == "usual"
    assert (await server.client.create(claim("none", storageClassName=""))).spec.storage_class_name == ""


async def _changed(server: Server, name: str, subresource: str = "", **change: Any) -> tuple[int, dict[str, Any]]:
    path = f"/api/v1/namespaces/default/persistentvolumeclaims/{name}{subresource}"
    body = json.dumps(change).encode()
    answer = await server.ask("PATCH", path, body, content_type="application/merge-patch+json")
    return answer.status, document(await answer.read())


async def test_a_bound_claim_grows_and_does_not_shrink(server: Server) -> None:
    growing = {"metadata": {"name": "growing"}, "provisioner": "x.y/z", "allowVolumeExpansion": True}
    await server.client.create(convert(growing, StorageClass))
    await server.client.create(claim("c", storageClassName="growing"))
    bigger = {"resources": {"requests": {"storage": "2Gi"}}}
    assert (await _changed(server, "c", spec=bigger))[0] == 422
    assert (await _changed(server, "c", spec={"volumeName": "v"}))[0] == 200
    bound = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    assert (await _changed(server, "c", "/status", status=bound))[0] == 200
    assert (await _changed(server, "c", spec=bigger))[0] == 200
    status, refused = await _changed(server, "c", spec={"resources": {"requests": {"storage": "1Gi"}}})
    assert status == 422
    assert "field can not be less than status.capacity" in refused["message"]


async def test_a_volume_keeps_its_source(server: Server) -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    made = await server.client.create(convert({"metadata": {"name": "v"}, "spec": spec}, PersistentVolume))
    assert made.metadata.finalizers == ("kubernetes.io/pv-protection",)
    with pytest.raises(ApiError) as refused:
        await server.client.patch(PersistentVolume, "v", "", {"spec": {"hostPath": {"path": "/y"}}})
    assert "spec.persistentvolumesource: Forbidden" in refused.value.message


async def test_a_pod_gets_what_its_runtime_class_says(server: Server) -> None:
    body = {"metadata": {"name": "r"}, "handler": "h", "overhead": {"podFixed": {"memory": "1Mi"}}}
    await server.client.create(convert(body, RuntimeClass))
    spec = {"runtimeClassName": "r", "containers": [{"name": "c", "image": "i"}]}
    made = await server.client.create(convert({"metadata": {"name": "p", "namespace": "default"}, "spec": spec}, Pod))
    assert str(made.spec.overhead["memory"]) == "1Mi"
    with pytest.raises(ApiError) as refused:
        await server.client.create(
            convert({"metadata": {"name": "q", "namespace": "default"}, "spec": spec | {"runtimeClassName": "z"}}, Pod)
        )
    assert refused.value.message == 'pods "q" is forbidden: pod rejected: RuntimeClass "z" not found'
