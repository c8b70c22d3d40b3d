"""ResourceQuota: every recorded case sent to our server; whole answers compared with a real Kubernetes 1.36's."""

import json
from typing import Any

from apiserver.test_golden_api import compare
from podfit.api.core.v1.limits.types import ResourceQuota
from podfit.client.informers import Informers
from podfit.controllers.quotas import QuotaController
from podfit.net.wire import Response
from support.golden import Case, parametrize
from support.replay import NAMESPACE, Replay, served
from support.server import Server

DEVIATIONS = {"quota-used-counts": "no Deployment controller runs beside the server here"}
"""By case id, with the reason; also in docs/compatibility.md."""


class Counted(Replay):
    """The quota controller has counted after every step; a watch of some seconds in a setup is a pause for that."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        clock, client = server.context.clock, server.client
        self._counter = QuotaController(
            client, informers=Informers(client, clock), clock=clock, gates=server.context.gates
        )

    async def send(self, step: dict[str, Any], *, anonymous: bool = False) -> Response:
        if "watch=1" in (step.get("query") or ""):
            return Response(200)
        answer = await super().send(step, anonymous=anonymous)
        for quota in (await self._server.client.list(ResourceQuota, NAMESPACE)).items:
            await self._counter.reconcile((NAMESPACE, quota.metadata.name))
        return answer


def _wanted(case: Case) -> bool:
    return served(case) and case["id"] not in DEVIATIONS


@parametrize("api/quota.json*", _wanted)
async def test_quota(server: Server, case: Case) -> None:
    replay = Counted(server)
    await replay.prepare(case, certificate=True)
    answer = await replay.send(case["request"])
    expect, body = replay.expected(case), (await answer.read()).decode()
    assert answer.status == expect["code"], body
    compare(_unmanaged(expect["body"]), _unmanaged(json.loads(body)))


def _unmanaged(body: Any) -> Any:
    """Who wrote which field of a quota depends on when the recorded controller came by; what was written does not."""
    if body.get("kind") != "ResourceQuota":
        return body
    return body | {"metadata": {name: value for name, value in body["metadata"].items() if name != "managedFields"}}
