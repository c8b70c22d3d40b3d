"""What a real Kubernetes 1.36 answered to nodes (by impersonation), compared with our answers.

Every recorded case about a kind that is served is sent to our server. A case stands in DEVIATIONS with its reason and
in docs/compatibility.md, or it agrees; those in the table are allowed or refused with the same code, too.
"""

import json
import re
from typing import Any

from support.golden import Case, cases, parametrize, replaying
from support.replay import Replay, comparable, differences, projected, served
from support.server import Server

_TAINTED = "TaintNodesByCondition is left out: taints are the node lifecycle controller's"
_BOUND = "no controller binds claims and volumes"
FILES = "api/noderestriction.json*"
DEVIATIONS = {
    "nr-node-create-kubelet-prefixes": _TAINTED,
    "nr-node-create-label-lookalike": _TAINTED,
    "nr-node-create-with-owner": _TAINTED,
    "nr-node-create-with-status": _TAINTED,
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
    answer = await replay.send(case["request"])
    return replay.expected(case), answer.status, (await answer.read()).decode()


def _anonymous(value: Any) -> Any:
    """Without the uids in keys of managed fields, which differ between runs."""
    if isinstance(value, dict):
        return {_UID.sub("k:{uid}", name): _anonymous(inner) for name, inner in value.items()}
    return [_anonymous(inner) for inner in value] if isinstance(value, list) else value
