"""`matchConditions` of webhooks: CEL over the request decides whether a webhook is asked at all."""

from typing import Any

import pytest

from support.resizing import PODS, asking, container, resize, send, spec, stored
from support.server import Server
from support.webhooks import REGISTRATION, Hooks, register

TRUE, FALSE, ERROR = "true", "object.metadata.name == 'other'", "object.spec.missing == 1"
CPU = "spec.containers[0].resources.requests.cpu"
GROWS = f"quantity(object.{CPU}).isGreaterThan(quantity(oldObject.{CPU}))"


def conditions(*expressions: str, **more: Any) -> dict[str, Any]:
    return {
        "matchConditions": [
            {"name": f"c{number}", "expression": expression} for number, expression in enumerate(expressions)
        ],
        **more,
    }


@pytest.mark.parametrize("kind", ["mutating", "validating"])
@pytest.mark.parametrize(
    ("expressions", "calls"),
    [
        ((TRUE, TRUE), 1),
        ((TRUE, FALSE), 0),
        ((ERROR, FALSE), 0),
        ((GROWS,), 1),
        ((f"!({GROWS})",), 0),
        (("request.subResource == 'resize' && request.operation == 'UPDATE'",), 1),
        (("request.userInfo.groups.exists(g, g == 'system:masters')", "request.resource.resource == 'pods'"), 1),
        (("has(request.dryRun) && request.dryRun",), 0),
        (("request.namespace.startsWith('kube-')",), 0),
    ],
)
async def test_all_conditions_have_to_hold(
    server: Server, hooks: Hooks, kind: str, expressions: tuple[str, ...], calls: int
) -> None:
    await stored(server)
    await register(server, kind, hooks.webhook("/w", "pods/resize", **conditions(*expressions)))
    code, found = await resize(server, asking(c="1500m"))
    assert code == 200, found
    assert len(hooks.requests("/w")) == calls


@pytest.mark.parametrize("expressions", [(ERROR,), (TRUE, ERROR), ("object.metadata.nothere == 'x'",)])
async def test_without_a_verdict_the_failure_policy_decides(
    server: Server, hooks: Hooks, expressions: tuple[str, ...]
) -> None:
    await stored(server)
    await register(server, "validating", hooks.webhook("/w", "pods/resize", **conditions(*expressions)))
    code, refused = await resize(server, asking(c="1500m"))
    assert (code, refused["reason"]) == (403, "Forbidden")
    assert refused["message"].startswith(f"pods \"p\" is forbidden: expression '{expressions[-1]}' resulted in error: ")
    assert (await send(server, "DELETE", f"{REGISTRATION}/validatingwebhookconfigurations/hooks"))[0] == 200
    ignoring = conditions(*expressions, failurePolicy="Ignore")
    await register(server, "validating", hooks.webhook("/w", "pods/resize", **ignoring))
    assert (await resize(server, asking(c="1500m")))[0] == 200
    assert hooks.requests("/w") == []


async def test_what_is_not_there_is_null(server: Server, hooks: Hooks) -> None:
    made = {"metadata": {"name": "q"}, "spec": spec(container("c"))}
    only = conditions("oldObject == null && object.metadata.name == 'q' || object == null")
    await register(server, "validating", hooks.webhook("/w", "pods", operations=["CREATE", "DELETE"], **only))
    assert (await send(server, "POST", PODS, made))[0] == 201
    assert (await send(server, "DELETE", f"{PODS}/q"))[0] == 200
    assert [request["operation"] for request in hooks.requests("/w")] == ["CREATE", "DELETE"]
