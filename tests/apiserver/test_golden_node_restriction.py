"""What a real Kubernetes 1.36 answered to nodes (by impersonation), compared with our answers.

Every recorded case about a kind that is served is sent to our server. A case stands in DEVIATIONS with its reason and
in docs/compatibility.md, or it agrees; those in the table are allowed or refused with the same code, too.
"""

import json
import re
from typing import Any

from msgspec.structs import replace

from podfit.api.core.v1.nodes.types import Node
from podfit.decide.workload.nodes.health import wanted_taints
from support.golden import Case, cases, parametrize, replaying
from support.replay import Replay, comparable, differences, projected, served
from support.server import Server

_BOUND = "no controller binds claims and volumes"
FILES = "api/noderestriction.json*"
DEVIATIONS = {
    "nr-configmap-get-root-ca": "the recorded certificate is that cluster's",
    "nr-pvc-get-referenced": _BOUND,
    "nr-pv-get-referenced": _BOUND,
    "nr-pvc-status-conditions": _BOUND,
}
_UID = re.compile(r'k:\{"uid":"[0-9a-f-]{36}"\}')


def _agrees(case: Case) -> bool:
    return served(case) and case["id"] not in DEVIATIONS


@parametrize(FILES, _agrees)
async def test_node_restriction(server: Server, case: Case) -> None:
    expect, code, text = await _answered(server, case)
    assert code == expect["code"], text
    if "body" in expect:
        got = _anonymous(projected(expect["body"], json.loads(text)))
        assert not list(differences(comparable(_anonymous(expect["body"])), comparable(got)))


@replaying(FILES, lambda: (case for case in cases(FILES) if case["id"] in DEVIATIONS))
async def test_what_deviates_is_allowed_alike(server: Server, case: Case) -> None:
    expect, code, text = await _answered(server, case)
    assert code == expect["code"], text


async def _answered(server: Server, case: Case) -> tuple[dict[str, Any], int, str]:
    replay = Replay(server)
    await replay.prepare(case, certificate="kube-root-ca.crt" in str(case["request"]))
    await _conditions_to_taints(server)
    answer = await replay.send(case["request"])
    return replay.expected(case), answer.status, (await answer.read()).decode()


async def _conditions_to_taints(server: Server) -> None:
    """What the recorded cluster's node lifecycle controller did within the second that was waited."""
    for node in (await server.client.list(Node)).items:
        taints = wanted_taints(node, evict=False, stamp="")
        await server.client.update(replace(node, spec=replace(node.spec, taints=taints)))


def _anonymous(value: Any) -> Any:
    """Without the uids in keys of managed fields, which differ between runs."""
    if isinstance(value, dict):
        return {_UID.sub("k:{uid}", name): _anonymous(inner) for name, inner in value.items()}
    return [_anonymous(inner) for inner in value] if isinstance(value, list) else value
