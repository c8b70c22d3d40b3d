"""Who may ask a node what."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podfit.client.delegated import LONGEST_TOKEN, MOST_AT_ONCE, MOST_REMEMBERED, TTL_SECONDS, DelegatedAccess
from podfit.core.errors import ApiError
from podfit.kubelet.server.access import NodeAccess, subresources, verb_of
from podfit.net.authority import Authority
from podfit.net.wire import Identity, Request, Response
from support.access import grant, rule, send
from support.clock import FakeClock
from support.server import ADMIN, Server, running_server

NODE = Identity("system:node:n1", ("system:nodes",))


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with running_server(tmp_path) as made:
        yield made


class Asked:
    """What is behind the check: notes who was let through."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(200, {}, b"ok")


def der(tmp_path: Path, user: str, *groups: str) -> bytes:
    import ssl

    authority = Authority.load(tmp_path / "pki", clock=FakeClock())
    pair = authority.client(user.replace(":", "-"), user=user, groups=groups)
    return ssl.PEM_cert_to_DER_cert(pair.certificate.decode())


def access(server: Server, behind: Asked, clock: FakeClock | None = None) -> NodeAccess:
    return NodeAccess(behind, DelegatedAccess(server.as_identity(NODE), clock or FakeClock()), node="n1")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/healthz", ("healthz", "proxy")),
        ("/healthz/ping", ("healthz", "proxy")),
        ("/healthzz", ("proxy",)),
        ("/configz", ("configz", "proxy")),
        ("/pods", ("pods", "proxy")),
        ("/pods/", ("pods", "proxy")),
        ("/runningpods/", ("pods", "proxy")),
        ("/metrics", ("metrics",)),
        ("/metrics/cadvisor", ("metrics",)),
        ("/metricsx", ("proxy",)),
        ("/stats/summary", ("stats",)),
        ("/logs/a", ("log",)),
        ("/checkpoint/a", ("checkpoint",)),
        ("/containerLogs/default/p/c", ("proxy",)),
        ("/exec/default/p/c", ("proxy",)),
        ("/", ("proxy",)),
        ("", ("proxy",)),
        ("//metrics", ("proxy",)),
        ("/x/../metrics", ("proxy",)),
    ],
)
def test_what_a_path_needs(path: str, expected: tuple[str, ...]) -> None:
    assert subresources(path) == expected


async def test_nobody_is_refused(server: Server, tmp_path: Path) -> None:
    behind = Asked()
    check = access(server, behind)
    for headers in (
        {},
        {"authorization": "Basic eA=="},
        {"authorization": "Bearer nonsense"},
        {"authorization": "x"},
        {"authorization": f"Bearer {'x' * (LONGEST_TOKEN + 1)}"},
    ):
        for path in ("/healthz", "/metrics", "/containerLogs/default/p/c"):
            answer = await check(Request("GET", path, headers=headers))
            assert (answer.status, answer.body) == (401, b"Unauthorized")
    forged = Request("GET", "/pods", identity=ADMIN)
    assert (await check(forged)).status == 401, "an identity that the request brings along counts for nothing"
    assert behind.requests == []


async def test_a_certificate_without_a_right_gets_403_and_the_reason(server: Server, tmp_path: Path) -> None:
    behind = Asked()
    jane = der(tmp_path, "jane")
    answer = await access(server, behind)(Request("GET", "/pods", peer_certificate=jane))
    assert (answer.status, answer.body) == (
        403,
        b"Forbidden (user=jane, verb=get, resource=nodes, subresource(s)=[pods proxy])\n",
    )
    assert behind.requests == []


async def test_a_right_to_one_node_and_one_subresource_is_that_and_no_more(server: Server, tmp_path: Path) -> None:
    await grant(
        server, rule("get", "nodes/pods", resourceNames=["n1"]), rule("get", "nodes/metrics"), kind="ClusterRole"
    )
    behind, jane = Asked(), der(tmp_path, "jane")
    check = access(server, behind)
    other = NodeAccess(behind, DelegatedAccess(server.as_identity(NODE), FakeClock()), node="n2")

    async def status(check: NodeAccess, path: str, method: str = "GET") -> int:
        return (await check(Request(method, path, peer_certificate=jane))).status

    assert [await status(check, path) for path in ("/pods", "/metrics", "/metrics/cadvisor")] == [200] * 3
    assert [await status(check, path) for path in ("/healthz", "/configz", "/containerLogs/a/b/c")] == [403] * 3
    assert [await status(other, path) for path in ("/pods", "/metrics")] == [403, 200]
    assert await status(check, "/pods", "POST") == await status(check, "/pods", "OPTIONS") == 403
    assert behind.requests[0].identity is not None
    assert behind.requests[0].identity.user == "jane"


async def test_the_api_servers_own_client_may_and_needs_no_masters(server: Server, tmp_path: Path) -> None:
    client = der(tmp_path, "kube-apiserver-kubelet-client")
    check = access(server, Asked())
    for path in ("/containerLogs/a/b/c", "/metrics", "/healthz", "/stats/summary", "/logs/x", "/exec/a/b/c"):
        assert (await check(Request("GET", path, peer_certificate=client))).status == 200
    asked = {"user": "kube-apiserver-kubelet-client", "resourceAttributes": {"verb": "get", "resource": "secrets"}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    code, review = await send(server, "POST", path, {"spec": asked})
    assert (code, review["status"]["allowed"]) == (201, False)


async def test_a_bearer_token_is_reviewed(server: Server) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    token = (await send(server, "POST", path, {"spec": {}}))[1]["status"]["token"]
    await grant(
        server,
        rule("get", "nodes/metrics"),
        kind="ClusterRole",
        subject={"kind": "ServiceAccount", "name": "default", "namespace": "default"},
    )
    behind = Asked()
    answer = await access(server, behind)(Request("GET", "/metrics", headers={"authorization": f"Bearer {token}"}))
    assert answer.status == 200
    who = behind.requests[0].identity
    assert who is not None
    assert who.user == "system:serviceaccount:default:default"


async def test_answers_are_remembered_for_a_while(server: Server, tmp_path: Path) -> None:
    clock, behind, jane = FakeClock(), Asked(), der(tmp_path, "jane")
    check = access(server, behind, clock)
    request = Request("GET", "/metrics", peer_certificate=jane)
    assert (await check(request)).status == 403
    await grant(server, rule("get", "nodes/metrics"), kind="ClusterRole")
    assert (await check(request)).status == 403
    await clock.advance(TTL_SECONDS + 1)
    assert (await check(request)).status == 200


class Reviews:
    """An API that counts how many reviews are under way, and answers when it is let."""

    def __init__(self) -> None:
        self.now = self.most = self.count = 0
        self.go, self.full = asyncio.Event(), asyncio.Event()
        self.fails = False

    async def create(self, obj: object) -> object:
        if self.fails:
            raise ApiError(503, "ServiceUnavailable", "away")
        self.now, self.count = self.now + 1, self.count + 1
        self.most = max(self.most, self.now)
        if self.now == MOST_AT_ONCE:
            self.full.set()
        await self.go.wait()
        self.now -= 1
        return obj


async def test_a_flood_of_tokens_is_bounded(tmp_path: Path) -> None:
    reviews = Reviews()
    access = DelegatedAccess(reviews, FakeClock())  # type: ignore[arg-type]  # as much of a client as it uses
    asked = [
        asyncio.ensure_future(access.identify(Request("GET", "/", headers={"authorization": f"Bearer t{number}"})))
        for number in range(MOST_REMEMBERED + 50)
    ]
    await reviews.full.wait()
    reviews.go.set()
    assert set(await asyncio.gather(*asked)) == {None}
    assert reviews.most == MOST_AT_ONCE
    assert len(access._tokens._answers) == MOST_REMEMBERED


async def test_without_the_api_server_nobody_is_let_through(tmp_path: Path) -> None:
    reviews, behind = Reviews(), Asked()
    reviews.fails = True
    check = NodeAccess(behind, DelegatedAccess(reviews, FakeClock()), node="n1")  # type: ignore[arg-type]  # a fake
    answer = await check(Request("GET", "/metrics", peer_certificate=der(tmp_path, "jane")))
    assert (answer.status, answer.body) == (
        500,
        b"Authorization error (user=jane, verb=get, resource=nodes, subresource=metrics)",
    )
    assert (await check(Request("GET", "/metrics", headers={"authorization": "Bearer x"}))).status == 401
    assert behind.requests == []


@pytest.mark.parametrize(
    ("method", "path", "verb"),
    [
        ("GET", "/exec/default/p/c", "create"),
        ("POST", "/exec/default/p/c", "create"),
        ("GET", "/attach/default/p/c", "create"),
        ("GET", "/portForward/default/p", "create"),
        ("GET", "/execute", "get"),
        ("GET", "/containerLogs/default/p/c", "get"),
        ("GET", "/pods", "get"),
    ],
)
def test_a_session_needs_the_right_to_create_whatever_its_method(method: str, path: str, verb: str) -> None:
    """A WebSocket begins with a GET."""
    assert verb_of(method, path) == verb
