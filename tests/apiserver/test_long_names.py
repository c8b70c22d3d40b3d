"""A name of hundreds of kilobytes is wrong in many ways, and is looked at once for each of them."""

import json
from pathlib import Path

from support.server import running_server
from support.turns import TURN_MS, worst_ms

JOBS = "/apis/batch/v1/namespaces/default/jobs"


async def test_a_long_name_of_a_job(tmp_path: Path) -> None:
    """Its pods have it in labels. 300 ms of CPU in one turn once."""
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}}
    body = json.dumps({"metadata": {"name": "a-" * 300_000}, "spec": spec}).encode()
    async with running_server(tmp_path) as server:

        async def refused() -> None:
            assert (await server.ask("POST", JOBS, body)).status == 422

        assert await worst_ms(refused) < TURN_MS
