"""Two API servers on one etcd: whatever a server keeps in its process follows what the other writes."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podfit.net.wire import Identity
from support.etcd import fresh_prefix, open_etcd
from support.eventually import eventually_async
from support.server import Server, document, running_server

pytestmark = pytest.mark.etcd

DEFAULT = "/api/v1/namespaces/default"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BOB = Identity("bob", ("system:authenticated",))


@pytest.fixture
async def pair(etcd_url: str, tmp_path: Path) -> AsyncIterator[tuple[Server, Server]]:
    prefix = fresh_prefix()
    stores = [await open_etcd(etcd_url, prefix=prefix) for _ in range(2)]
    async with running_server(tmp_path, store=stores[0]) as one, running_server(tmp_path, store=stores[1]) as other:
        await one.account("default")
        yield one, other


async def send(server: Server, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
    answer = await server.ask(method, path, b"" if body is None else json.dumps(body).encode(), **more)
    text = await answer.read()
    return answer.status, document(text) if text.startswith(b"{") else text


def pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "app", "image": "busybox"}]},
    }


async def test_a_namespace_of_one_is_at_once_a_namespace_of_the_other(pair: tuple[Server, Server]) -> None:
    one, other = pair
    version = ""
    for number in range(5):
        name = f"ns-{number}"
        await send(one, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        code, made = await send(other, "POST", f"/api/v1/namespaces/{name}/configmaps", {"metadata": {"name": "a"}})
        assert code == 201, made
        version = made["metadata"]["resourceVersion"]
        code, listed = await send(one, "GET", f"/api/v1/namespaces/{name}/configmaps?resourceVersion={version}")
        assert (code, len(listed["items"])) == (200, 1), "a version that the other gave is none of the future"
        one, other = other, one
    code, refused = await send(one, "GET", f"{DEFAULT}/configmaps?resourceVersion={int(version) + 1000}")
    assert (code, refused["reason"]) == (504, "Timeout")


async def test_rights_given_and_taken_by_one_count_at_once_for_the_other(pair: tuple[Server, Server]) -> None:
    one, other = pair
    role = {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}]}
    who = {"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {
        "metadata": {"name": "r"},
        "subjects": [who],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
    }
    await send(one, "POST", f"{ROLES}/roles", role)
    for _ in range(3):
        assert (await send(other, "GET", f"{DEFAULT}/secrets", identity=BOB))[0] == 403
        assert (await send(one, "POST", f"{ROLES}/rolebindings", binding))[0] == 201
        assert (await send(other, "GET", f"{DEFAULT}/secrets", identity=BOB))[0] == 200
        assert (await send(one, "DELETE", f"{ROLES}/rolebindings/r"))[0] == 200


async def test_a_quota_is_one_for_both(pair: tuple[Server, Server]) -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "3"}}}
    assert (await send(pair[0], "POST", f"{DEFAULT}/resourcequotas", quota))[0] == 201
    answers = await asyncio.gather(*(send(pair[n % 2], "POST", f"{DEFAULT}/pods", pod(f"p{n}")) for n in range(8)))
    assert sorted(code for code, _ in answers)[:3] == [201, 201, 201]
    assert {code for code, _ in answers} <= {201, 403, 409}
    for server in pair:
        assert len((await send(server, "GET", f"{DEFAULT}/pods"))[1]["items"]) == 3
        _, found = await send(server, "GET", f"{DEFAULT}/resourcequotas/q")
        assert found["status"]["used"] == {"pods": "3"}


async def test_no_address_is_given_twice(pair: tuple[Server, Server]) -> None:
    ports = [{"port": 80}]
    made = await asyncio.gather(
        *(
            send(pair[n % 2], "POST", f"{DEFAULT}/services", {"metadata": {"name": f"s{n}"}, "spec": {"ports": ports}})
            for n in range(12)
        )
    )
    assert {code for code, _ in made} == {201}
    assert len({body["spec"]["clusterIP"] for _, body in made}) == 12


async def test_a_token_ends_with_its_account_wherever_that_ends(pair: tuple[Server, Server]) -> None:
    one, other = pair
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    _, given = await send(one, "POST", f"{DEFAULT}/serviceaccounts/default/token", asked)
    bearer = {"authorization": f"Bearer {given['status']['token']}", "identity": None}
    assert (await send(other, "GET", "/api/v1/nodes", **bearer))[0] == 403
    await send(one, "DELETE", f"{DEFAULT}/serviceaccounts/default")
    assert (await send(other, "GET", "/api/v1/nodes", **bearer))[0] == 401


async def test_declared_kinds_come_and_go_on_both(pair: tuple[Server, Server]) -> None:
    one, other = pair
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}
    definition = {
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    foos = "/apis/example.com/v1/namespaces/default/foos"
    for _ in range(2):
        assert (await send(one, "POST", CRDS, definition))[0] == 201
        await until(other, foos, 200)
        foo = {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}}
        assert (await send(other, "POST", foos, foo))[0] == 201
        assert (await send(one, "GET", f"{foos}/a"))[0] == 200
        assert (await send(other, "DELETE", f"{CRDS}/foos.example.com"))[0] == 200
        for server in pair:
            await until(server, foos, 404)
            await until(server, f"{CRDS}/foos.example.com", 404)
        one, other = other, one


async def until(server: Server, path: str, status: int) -> None:
    """A server learns of another's definition by its watch."""
    await eventually_async(
        lambda: send(server, "GET", path), lambda answer: answer[0] == status, within=10, what=f"{path} is {status}"
    )


async def test_a_request_asks_etcd_for_nothing_but_how_new_it_is(
    pair: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it reads, as bindings, quotas and its own object, the watch cache has."""
    from podfit.store.etcd.members import EtcdMember

    one, _ = pair
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "9"}}}
    assert (await send(one, "POST", f"{DEFAULT}/resourcequotas", quota))[0] == 201
    assert (await send(one, "GET", f"{DEFAULT}/pods", identity=BOB))[0] == 403
    asked, call = list[tuple[str, Any]](), EtcdMember.call

    def noted(member: EtcdMember, method: str, request: Any, answer: Any, **more: Any) -> Any:
        asked.append((method, request))
        return call(member, method, request, answer, **more)

    monkeypatch.setattr(EtcdMember, "call", noted)
    for method, path, body, code in (
        ("POST", f"{DEFAULT}/pods", pod("p"), 201),
        ("GET", f"{DEFAULT}/pods/p", None, 200),
        ("GET", f"{DEFAULT}/pods", None, 200),
        ("DELETE", f"{DEFAULT}/pods/p?gracePeriodSeconds=0", None, 200),
    ):
        asked.clear()
        assert (await send(one, method, path, body))[0] == code
        reads = [request for kind, request in asked if kind == "KV/Range"]
        assert [request for request in reads if not request.keys_only] == []
        assert 0 < len(reads) <= 8
        assert len([kind for kind, _ in asked if kind == "KV/Txn"]) <= 2
    asked.clear()
    assert (await send(one, "GET", f"{DEFAULT}/pods", identity=BOB))[0] == 403
    assert len(asked) == 1, "rights are known by how new etcd is"
