"""A new object's namespace is looked up once, however many plugins ask about it."""

import json
from unittest.mock import patch

from podfit.api.core.v1.namespaces.types import Namespace
from podfit.apiserver.context import Context
from support.server import Server

POD = {
    "metadata": {"name": "p"},
    "spec": {"automountServiceAccountToken": False, "containers": [{"name": "a", "image": "i"}]},
}


async def test_a_new_pods_namespace_is_looked_up_once(server: Server) -> None:
    asked: list[type] = []
    find = Context.find

    async def noted(context, kind, name, namespace=""):  # type: ignore[no-untyped-def]  # as what it stands for
        asked.append(kind)
        return await find(context, kind, name, namespace)

    with patch.object(Context, "find", noted):
        answer = await server.ask("POST", "/api/v1/namespaces/default/pods", json.dumps(POD).encode())
    assert answer.status == 201
    assert asked.count(Namespace) == 1
