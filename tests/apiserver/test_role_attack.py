"""No role reaches more than it is meant to: all combinations at the authorizer, a seeded part of them by requests."""

import random
from collections.abc import Callable

import pytest

from podfit.apiserver.authn.authenticate import ANONYMOUS
from podfit.apiserver.authz.authorize import Authorizer
from podfit.apiserver.authz.question import Question
from podfit.net.wire import Identity
from support.access import send
from support.golden import needs
from support.role_attack import (
    EVERYWHERE,
    MINE,
    ROLES,
    SECRET,
    SPECIAL,
    TARGET,
    THEIRS,
    Attempt,
    attempts,
    permitted,
    tenants,
    tried,
)
from support.server import Server

pytestmark = [needs("api/rbac.json*")]
SEED, TRIED = 11, 3000


def _known(who: Identity | None) -> Identity:
    if who is None:
        return ANONYMOUS
    return Identity(who.user, (*who.groups, "system:authenticated"))


async def test_the_authorizer_allows_what_the_roles_say_and_nothing_else(server: Server) -> None:
    await tenants(server)
    authorizer = Authorizer(server.context)
    wrong, count = [], 0
    for attempt in attempts():
        verdict = await authorizer.judge(_known(ROLES[attempt.role]), attempt.question)
        count += 1
        if verdict.allowed is not permitted(attempt.role, attempt.question):
            wrong.append((attempt.role, attempt.verb, attempt.full, attempt.place, verdict))
    assert not wrong, wrong[:20]
    assert count > 5000


@pytest.mark.parametrize("role", ROLES)
async def test_verbs_without_a_request(server: Server, role: str) -> None:
    """To act as somebody else, to give what one does not hold, to sign."""
    await tenants(server)
    authorizer = Authorizer(server.context)
    for verb, group, resource in SPECIAL:
        for place in (MINE, THEIRS, EVERYWHERE):
            asked = Question(verb, group, resource, namespace=place, name=TARGET)
            own_accounts = (verb, resource, place) == ("impersonate", "serviceaccounts", MINE)
            expected = own_accounts and role in ("edit", "admin")
            assert (await authorizer.judge(_known(ROLES[role]), asked)).allowed is expected, (verb, resource, place)


MUST_NOT: dict[str, Callable[[Attempt], bool]] = {
    "secrets of others": lambda tried: tried.info.resource == "secrets" and tried.place != MINE,
    "any secret, but who edits": lambda tried: tried.info.resource == "secrets" and tried.role not in ("edit", "admin"),
    "cluster roles and their bindings, but the limited administrator": lambda tried: (
        tried.info.resource in ("clusterroles", "clusterrolebindings") and tried.role != "limited"
    ),
    "roles of others": lambda tried: (
        tried.info.resource in ("roles", "rolebindings")
        and tried.role != "limited"
        and (tried.place != MINE or tried.role != "admin")
    ),
    "nodes, but the node": lambda tried: tried.info.resource == "nodes" and tried.role != "node",
    "the kubelet through the server": lambda tried: tried.full == "nodes/proxy",
    "tokens": lambda tried: (
        tried.full == "serviceaccounts/token" and (tried.role not in ("edit", "admin") or tried.place != MINE)
    ),
    "connections into pods": lambda tried: (
        tried.full in ("pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "services/proxy")
        and (tried.role not in ("edit", "admin") or tried.place != MINE)
    ),
    "admission": lambda tried: tried.info.group in ("admissionregistration.k8s.io", "apiregistration.k8s.io"),
    "definitions": lambda tried: tried.info.resource == "customresourcedefinitions",
    "what is in other namespaces": lambda tried: (
        tried.place == THEIRS and tried.role in ("anonymous", "authenticated", "view", "edit", "admin")
    ),
}
"""Said once more by what it is about, whatever was recorded. Reviews of oneself are nobody's secret."""


@pytest.mark.parametrize("what", MUST_NOT)
def test_the_table_itself_gives_nobody_too_much(what: str) -> None:
    concerned = [attempt for attempt in attempts() if MUST_NOT[what](attempt)]
    assert concerned
    assert not [attempt for attempt in concerned if permitted(attempt.role, attempt.question)]


async def test_refused_requests_change_and_tell_nothing(server: Server) -> None:
    await tenants(server)
    everything = [attempt for attempt in attempts() if not permitted(attempt.role, attempt.question)]
    before = server.context.store.revision
    for attempt in random.Random(SEED).sample(everything, TRIED):
        status, answer = await tried(server, attempt)
        assert status == 403, (attempt, status, answer)
        assert SECRET not in answer
    assert server.context.store.revision == before


async def test_what_a_role_may_read_it_reaches(server: Server) -> None:
    """Else the refusals would prove nothing."""
    await tenants(server)
    reads = [
        attempt
        for attempt in attempts()
        if attempt.verb in ("get", "list") and permitted(attempt.role, attempt.question)
    ]
    for attempt in random.Random(SEED).sample(reads, 100):
        status, answer = await tried(server, attempt)
        assert status != 403, (attempt, answer)


@pytest.mark.parametrize("role", [role for role in ROLES if role != "anonymous"])
@pytest.mark.parametrize(
    "headers",
    [
        {"impersonate_user": "admin"},
        {"impersonate_user": "x", "impersonate_group": "system:masters"},
        {"impersonate_user": "system:node:n2", "impersonate_group": "system:nodes"},
        {"impersonate_user": f"system:serviceaccount:{THEIRS}:default"},
    ],
    ids=["user", "masters", "node", "account"],
)
async def test_nobody_acts_as_somebody_else(server: Server, role: str, headers: dict[str, str]) -> None:
    await tenants(server)
    path = f"/api/v1/namespaces/{THEIRS}/secrets/{TARGET}"
    answer = await server.ask("GET", path, identity=ROLES[role], **headers)  # type: ignore[arg-type]  # keywords of several types
    assert answer.status == 403
    assert SECRET.encode() not in await answer.read()


async def test_the_limited_administrator_gains_nothing(server: Server) -> None:
    """May write every role and binding, and holds no right to read a secret afterwards."""
    await tenants(server)
    who, group = ROLES["limited"], "rbac.authorization.k8s.io"
    base = f"/apis/{group}/v1/clusterroles"
    reading = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    every = {"matchExpressions": [{"key": "kubernetes.io/bootstrapping", "operator": "Exists"}]}
    gathering = {"clusterRoleSelectors": [every]}
    tries = [
        ("POST", base, {"metadata": {"name": "a"}, "rules": reading}),
        ("POST", base, {"metadata": {"name": "b"}, "aggregationRule": gathering}),
        ("PATCH", f"{base}/limited", {"rules": reading}),
        ("PATCH", f"{base}/limited", {"aggregationRule": gathering}),
        ("PATCH", f"{base}/cluster-admin", {"metadata": {"labels": {"a": "b"}}}),
        (
            "POST",
            f"/apis/{group}/v1/clusterrolebindings",
            {
                "metadata": {"name": "c"},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": [{"apiGroup": group, "kind": "User", "name": "limited"}],
            },
        ),
        (
            "PATCH",
            f"/apis/{group}/v1/clusterrolebindings/cluster-admin",
            {"subjects": [{"apiGroup": group, "kind": "User", "name": "limited"}]},
        ),
        (
            "POST",
            f"/apis/{group}/v1/namespaces/{THEIRS}/rolebindings",
            {
                "metadata": {"name": "d"},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "edit"},
                "subjects": [{"apiGroup": group, "kind": "User", "name": "limited"}],
            },
        ),
    ]
    for method, path, body in tries:
        kind = "application/merge-patch+json" if method == "PATCH" else ""
        status, answer = await send(server, method, path, body, who=who, kind=kind)
        assert status == 403, (method, path, answer)
    assert (await send(server, "GET", f"/api/v1/namespaces/{THEIRS}/secrets/{TARGET}", who=who))[0] == 403
