"""What the node authorizer asks of pods is remembered, not decoded for each of a node's requests."""

import json

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.resource_info import ResourceInfo
from podfit.apiserver.authz.default_roles import rules_of_default
from podfit.apiserver.registry import stored
from podfit.net.wire import Identity
from podfit.store.protocol import Record
from support.server import Server

NODE = Identity("system:node:n1", ("system:nodes",))
PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/default/secrets"


async def test_large_pods_are_decoded_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("wanted", "other"):
        answer = await server.ask("POST", SECRETS, json.dumps({"metadata": {"name": name}}).encode())
        assert answer.status == 201
    for number in range(10):
        volumes = [{"name": f"v{index}", "emptyDir": {}} for index in range(600)]
        volumes[0] = {"name": "s", "secret": {"secretName": "wanted"}}
        spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "x"}], "volumes": volumes}
        body = json.dumps({"metadata": {"name": f"p{number}"}, "spec": spec}).encode()
        assert (await server.ask("POST", PODS, body)).status == 201
    answer = await server.ask("GET", f"{SECRETS}/wanted", identity=NODE)
    assert answer.status == 200

    decode, again = stored.decoded, []

    def decoded(info: ResourceInfo, record: Record) -> object:
        again.extend([record.key] if info.type is Pod else [])
        return decode(info, record)

    monkeypatch.setattr(stored, "decoded", decoded)
    for name, status in (("wanted", 200), ("other", 403)):
        assert (await server.ask("GET", f"{SECRETS}/{name}", identity=NODE)).status == status
    assert not again


def test_the_role_of_nodes_names_no_objects() -> None:
    """So what a node may by its role is remembered without the names of what it asks for."""
    assert not any(rule.resource_names for rule in rules_of_default("system:node"))
