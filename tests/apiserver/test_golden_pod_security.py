"""PodSecurity: every recorded case sent to our server; answers and warnings compared with a real Kubernetes 1.36's."""

import json
import re

from apiserver.test_golden_api import compare
from support.golden import Case, parametrize
from support.replay import Replay, served
from support.server import Server

OWN_WARNINGS = re.compile(r"""299 - "no controller for \w+ runs in this cluster: [^"]*"(, )?""")
"""What upstream has no reason to say: it runs controllers."""

DEVIATIONS: dict[str, str] = {}
"""By case id, with the reason; also in docs/compatibility.md."""


def _wanted(case: Case) -> bool:
    return served(case) and case["id"] not in DEVIATIONS


@parametrize("api/podsecurity.json*", _wanted)
async def test_pod_security(server: Server, case: Case) -> None:
    replay = Replay(server)
    await replay.prepare(case)
    answer = await replay.send(case["request"])
    expect, body = replay.expected(case), (await answer.read()).decode()
    assert answer.status == expect["code"], body
    compare(expect["body"], json.loads(body))
    warnings = expect["headers"].get("warning", [])
    told = OWN_WARNINGS.sub("", answer.headers.get("warning", ""))
    assert told == ", ".join([warnings] if isinstance(warnings, str) else warnings)
