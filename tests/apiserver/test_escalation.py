"""Nobody grants rights that they do not hold: aggregation rules, and the ways around the check of rules."""

from typing import Any

import pytest

from podfit.apiserver.handlers.patching import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from support.access import JANE, RBAC, grant, rule, send
from support.server import Server

GROUP = "rbac.authorization.k8s.io"
ROLES = f"{RBAC}/clusterroles"
NEEDS_ALL = "must have cluster-admin privileges to use the aggregationRule"
EVERY_DEFAULT = {"matchLabels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}
GATHERING: dict[str, Any] = {"clusterRoleSelectors": [EVERY_DEFAULT]}
WRITES_ROLES = rule("get list create update patch delete", "clusterroles clusterrolebindings", GROUP)


def role(name: str = "agg", **more: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": name}, **more}


@pytest.fixture
async def limited(server: Server) -> Server:
    """A server on which jane writes cluster roles and their bindings, and nothing else."""
    await grant(server, WRITES_ROLES, kind="ClusterRole")
    return server


async def test_an_aggregation_rule_is_refused_on_create(limited: Server) -> None:
    status, refused = await send(limited, "POST", ROLES, role(aggregationRule=GATHERING), who=JANE)
    assert (status, refused["reason"]) == (403, "Forbidden")
    assert refused["message"] == f'clusterroles.{GROUP} "agg" is forbidden: {NEEDS_ALL}'


CHANGES = {
    "merge patch": ("PATCH", MERGE_PATCH, {"aggregationRule": GATHERING}),
    "strategic patch": ("PATCH", STRATEGIC_PATCH, {"aggregationRule": GATHERING}),
    "json patch": ("PATCH", JSON_PATCH, [{"op": "add", "path": "/aggregationRule", "value": GATHERING}]),
    "apply": ("PATCH", APPLY_PATCH, role(aggregationRule=GATHERING)),
    "update": ("PUT", "", role(aggregationRule=GATHERING)),
}


@pytest.mark.parametrize("way", CHANGES)
async def test_a_role_that_was_bound_first_cannot_gather_afterwards(limited: Server, way: str) -> None:
    """Finding 1: an empty role and its binding are harmless, until the role gathers the rules of all others."""
    method, kind, body = CHANGES[way]
    assert (await send(limited, "POST", ROLES, role(), who=JANE))[0] == 201
    binding = {
        "metadata": {"name": "agg"},
        "subjects": [{"kind": "User", "apiGroup": GROUP, "name": "jane"}],
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "agg"},
    }
    assert (await send(limited, "POST", f"{RBAC}/clusterrolebindings", binding, who=JANE))[0] == 201
    status, refused = await send(
        limited, method, f"{ROLES}/agg" + ("?fieldManager=m" if way == "apply" else ""), body, who=JANE, kind=kind
    )
    assert (status, refused["message"].partition(": ")[2]) == (403, NEEDS_ALL)
    assert (await send(limited, "GET", f"{ROLES}/agg"))[1].get("aggregationRule") is None


async def test_a_role_made_by_apply_is_judged_as_one_that_is_created(limited: Server) -> None:
    body = role("new", aggregationRule=GATHERING)
    status, refused = await send(limited, "PATCH", f"{ROLES}/new?fieldManager=m", body, who=JANE, kind=APPLY_PATCH)
    assert (status, refused["message"].partition(": ")[2]) == (403, NEEDS_ALL)


@pytest.mark.parametrize(
    "change", [{"aggregationRule": None}, {"metadata": {"labels": {"a": "b"}}}], ids=["removed", "labelled"]
)
async def test_a_role_that_gathers_already_is_not_changed_either(limited: Server, change: dict[str, Any]) -> None:
    assert (await send(limited, "POST", ROLES, role(aggregationRule=GATHERING)))[0] == 201
    status, refused = await send(limited, "PATCH", f"{ROLES}/agg", change, who=JANE, kind=MERGE_PATCH)
    assert (status, refused["message"].partition(": ")[2]) == (403, NEEDS_ALL)


async def test_an_aggregated_role_gets_no_rules_beyond_those_held(limited: Server) -> None:
    assert (await send(limited, "POST", ROLES, role(aggregationRule=GATHERING)))[0] == 201
    change = {"rules": [rule("get", "secrets")]}
    status, refused = await send(limited, "PATCH", f"{ROLES}/agg", change, who=JANE, kind=MERGE_PATCH)
    assert status == 403
    assert "is attempting to grant RBAC permissions not currently held" in refused["message"]


@pytest.mark.parametrize(
    ("held", "status"),
    [
        ([rule("*", "*", "*"), {"verbs": ["*"], "nonResourceURLs": ["*"]}], 201),
        ([rule("*", "clusterroles", "*")], 201),
        ([rule("get list create update patch delete", "*", "*")], 403),
        ([{"verbs": ["*"], "nonResourceURLs": ["*"]}], 403),
        ([rule("escalate", "clusterroles", GROUP)], 201),
        ([rule("escalate", "clusterroles", GROUP, resourceNames=["agg"])], 403),
        ([rule("escalate", "roles", GROUP)], 403),
        ([rule("bind", "clusterroles", GROUP)], 403),
    ],
    ids=[
        "everything",
        "any verb of roles",
        "six verbs of all",
        "only paths",
        "escalate",
        "escalate by name",
        "escalate of roles",
        "bind",
    ],
)
async def test_who_may_aggregate(server: Server, held: list[dict[str, Any]], status: int) -> None:
    """A POST has no name in its URL, so a right that is limited to names does not cover it."""
    await grant(server, WRITES_ROLES, *held, kind="ClusterRole")
    assert (await send(server, "POST", ROLES, role(aggregationRule=GATHERING), who=JANE))[0] == status


@pytest.mark.parametrize(("name", "status"), [("agg", 200), ("other", 403)])
async def test_escalate_may_be_limited_to_a_role_that_is_changed(server: Server, name: str, status: int) -> None:
    await grant(server, WRITES_ROLES, rule("escalate", "clusterroles", GROUP, resourceNames=[name]), kind="ClusterRole")
    assert (await send(server, "POST", ROLES, role()))[0] == 201
    change = {"rules": [rule("get", "secrets")], "aggregationRule": GATHERING}
    assert (await send(server, "PATCH", f"{ROLES}/agg", change, who=JANE, kind=MERGE_PATCH))[0] == status


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"finalizers": ["example.com/x"]}, 200),
        ({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}, 200),
        ({"finalizers": ["example.com/x"], "labels": {f"{GROUP}/aggregate-to-view": "true"}}, 403),
        ({"annotations": {"a": "b"}}, 403),
    ],
)
async def test_the_garbage_collector_needs_no_rights_of_the_role(
    limited: Server, change: dict[str, Any], status: int
) -> None:
    assert (await send(limited, "POST", ROLES, role(rules=[rule("get", "secrets")])))[0] == 201
    assert (await send(limited, "PATCH", f"{ROLES}/agg", {"metadata": change}, who=JANE, kind=MERGE_PATCH))[0] == status


async def test_a_binding_to_a_role_that_does_not_exist_yet_is_refused(limited: Server) -> None:
    """Else it would give whatever that role is made to give later."""
    binding = {
        "metadata": {"name": "early"},
        "subjects": [{"kind": "User", "apiGroup": GROUP, "name": "jane"}],
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "later"},
    }
    assert (await send(limited, "POST", f"{RBAC}/clusterrolebindings", binding, who=JANE))[0] == 404
