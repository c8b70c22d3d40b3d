"""Tokens in the pods' volumes, issued by a real API server to the node that asks for them."""

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from podfit.api.core.v1.pods.types import Pod
from podfit.apiserver.handlers.answers import error_response
from podfit.client.rest import Client
from podfit.client.transport import Local
from podfit.core.errors import ApiError
from podfit.core.quantity import Quantity
from podfit.kubelet.disk.mounter import DirectoryMounter
from podfit.kubelet.disk.writer import DiskWriter
from podfit.kubelet.sources.lookup import Lookup
from podfit.kubelet.volumes.claimed import ClaimedVolumes
from podfit.kubelet.volumes.manager import MountError, Volumes
from podfit.kubelet.volumes.payloads import Payloads
from podfit.kubelet.volumes.tokens import TokenSource
from podfit.net.wire import Request, Response
from support.access import NODE, pod
from support.clock import FakeClock
from support.server import Server, document, running_server

LIFE = 3607
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class Owning(DirectoryMounter):
    def __init__(self) -> None:
        self.owners: dict[str, tuple[int, int]] = {}

    def own(self, descriptor: int, user: int, group: int) -> None:
        self.owners[Path(os.readlink(f"/proc/self/fd/{descriptor}")).name] = (user, group)


@dataclass
class Stage:
    """A server, and the volumes of its node; `away` cuts the node off. `asked` are the requests of the node."""

    server: Server
    root: Path
    clock: FakeClock
    away: bool = False
    asked: list[str] = field(default_factory=list)
    mounter: Owning = field(default_factory=Owning)

    def __post_init__(self) -> None:
        client = Client(Local(self._handler, NODE))
        self.tokens = TokenSource(client, self.clock)
        payloads = Payloads(Lookup(client, self.clock), {"cpu": Quantity.of(4)}, self.tokens)
        self.volumes = Volumes(
            self.root, payloads, self.mounter, DiskWriter(self.clock), self.clock.now, ClaimedVolumes(client)
        )

    async def _handler(self, request: Request) -> Response:
        self.asked.append(f"{request.method} {request.path.rpartition('/')[2]}")
        if self.away:
            return error_response(ApiError(503, "ServiceUnavailable", "away"))
        return await self.server.api.handler(request)

    async def pod(self, name: str = "p", **spec: Any) -> Pod:
        await pod(self.server, name, "n1", **spec)
        return await self.server.client.get(Pod, name, "default")

    async def token(self, of: Pod) -> Path:
        (path,) = (await self.volumes.mount(of)).values()
        return path / "token"

    async def who(self, token: str) -> dict[str, Any]:
        answer = await self.server.ask("POST", WHO, b"{}", identity=None, authorization=f"Bearer {token}")
        assert answer.status == 201, answer
        found: dict[str, Any] = document(await answer.read())["status"]["userInfo"]
        return found


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    clock = FakeClock()
    async with running_server(tmp_path, clock=clock, certificate=True) as server:
        yield Stage(server, tmp_path / "root", clock)


async def test_the_token_speaks_for_the_account_of_the_pod(stage: Stage) -> None:
    path = await stage.token(await stage.pod())
    who = await stage.who(path.read_text())
    assert who["username"] == "system:serviceaccount:default:default"
    assert who["extra"]["authentication.kubernetes.io/pod-name"] == ["p"]
    assert (path.parent / "namespace").read_text() == "default"
    assert (path.parent / "ca.crt").read_text() == "CA"
    assert (path.stat().st_mode & 0o777, stage.mounter.owners) == (0o644, {})


async def test_mounting_again_asks_for_no_token_until_four_fifths_are_over(stage: Stage) -> None:
    of = await stage.pod()
    first = (await stage.token(of)).read_text()
    await stage.clock.advance(LIFE * 0.8 - 1)
    assert (await stage.token(of)).read_text() == first
    assert stage.asked.count("POST token") == 1
    await stage.clock.advance(2)
    renewed = (await stage.token(of)).read_text()
    assert renewed != first
    assert (await stage.who(renewed))["username"] == "system:serviceaccount:default:default"


@pytest.mark.parametrize("seconds", [3600.0, -3600.0, 86400.0, -86400.0, 10 * 365.25 * 86400, -10 * 365.25 * 86400])
async def test_the_token_is_good_again_when_it_is_mounted_after_the_time_of_day_was_set(
    stage: Stage, seconds: float
) -> None:
    of = await stage.pod()
    await stage.token(of)
    for jump in (seconds, -seconds):
        stage.clock.jump(jump)
        assert (await stage.who((await stage.token(of)).read_text()))["extra"]


async def test_a_long_token_is_renewed_after_a_day(stage: Stage) -> None:
    sources = [{"serviceAccountToken": {"path": "token", "expirationSeconds": 10 * 86400, "audience": "vault"}}]
    volumes = [{"name": "v", "projected": {"sources": sources}}]
    of = await stage.pod(automountServiceAccountToken=False, volumes=volumes)
    first = (await stage.token(of)).read_text()
    await stage.clock.advance(86400 - 1)
    assert (await stage.token(of)).read_text() == first
    await stage.clock.advance(2)
    assert (await stage.token(of)).read_text() != first


async def test_a_token_that_cannot_be_renewed_stays_while_it_is_good(stage: Stage) -> None:
    """A pod's only source is its token here: without the server nothing else could be read anew either."""
    sources = [{"serviceAccountToken": {"path": "token", "expirationSeconds": LIFE}}]
    volumes = [{"name": "v", "projected": {"sources": sources}}]
    of = await stage.pod(automountServiceAccountToken=False, volumes=volumes)
    first = (await stage.token(of)).read_text()
    await stage.clock.advance(LIFE * 0.9)
    stage.away = True
    assert (await stage.token(of)).read_text() == first
    await stage.clock.advance(LIFE * 0.1)
    with pytest.raises(MountError, match="away"):
        await stage.token(of)


async def test_the_next_pod_of_a_name_gets_a_token_of_its_own(stage: Stage) -> None:
    of = await stage.pod()
    first = (await stage.token(of)).read_text()
    await stage.volumes.remove(of.metadata.uid)
    await stage.server.client.delete(Pod, "p", "default", grace=0)
    answer = await stage.server.ask("GET", "/api", identity=None, authorization=f"Bearer {first}")
    assert answer.status == 401
    assert (await stage.token(await stage.pod())).read_text() != first


@pytest.mark.parametrize(
    ("of_pod", "of_container", "mode", "owner"),
    [
        ({"runAsUser": 1000}, None, 0o600, (1000, -1)),
        ({"fsGroup": 2000}, None, 0o640, (-1, 2000)),
        ({"runAsUser": 1000, "fsGroup": 2000}, {"runAsUser": 7}, 0o640, (7, 2000)),
        (None, {"runAsUser": 7}, 0o600, (7, -1)),
        ({"runAsNonRoot": True}, None, 0o644, None),
    ],
)
async def test_whose_the_token_is(
    stage: Stage, of_pod: Any, of_container: Any, mode: int, owner: tuple[int, int] | None
) -> None:
    container = {"name": "c", "image": "i"} | ({"securityContext": of_container} if of_container else {})
    spec = {"containers": [container]} | ({"securityContext": of_pod} if of_pod else {})
    path = await stage.token(await stage.pod(**spec))
    assert path.stat().st_mode & 0o777 == mode
    assert stage.mounter.owners.get("token") == owner


async def test_users_that_differ_share_the_token_with_everyone(stage: Stage) -> None:
    containers = [{"name": f"c{user}", "image": "i", "securityContext": {"runAsUser": user}} for user in (1, 2)]
    path = await stage.token(await stage.pod(containers=containers))
    assert (path.stat().st_mode & 0o777, stage.mounter.owners) == (0o644, {})
