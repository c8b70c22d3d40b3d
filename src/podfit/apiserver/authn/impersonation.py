"""Impersonation: a request that is to be judged as someone else's (`kubectl --as`).

Since 1.36 there are several ways to be allowed to, each a mode that is tried in turn:

    associated-node   a service account becomes the node that its pod runs on
    arbitrary-node    any node, by its name alone
    serviceaccount    a service account, by its name alone
    user-info         everyone else, with groups, uid and extra values
    (none)            whoever it is, by the verb `impersonate`, as ever

A mode asks whether `impersonate-on:MODE:VERB` is held for what is wanted of the server, then `impersonate:MODE` for
every part of who they want to be. Ignoring the headers would run a request with more rights than it asked for.
"""

from collections.abc import Iterator
from urllib.parse import unquote

from msgspec.structs import replace

from podfit.api.meta.validation.names import dns_subdomain
from podfit.apiserver.authn.authenticate import ANONYMOUS, AUTHENTICATED
from podfit.apiserver.authz.authorize import Authorizer, refusal
from podfit.apiserver.authz.nodes import GROUP as NODES
from podfit.apiserver.authz.nodes import PREFIX as NODE
from podfit.apiserver.authz.question import Question
from podfit.apiserver.authz.rbac import MASTERS
from podfit.core.errors import ApiError, bad_request
from podfit.net.wire import Identity, Request

_USER, _GROUP, _UID, _EXTRA = "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-"
_API = "authentication.k8s.io"
_ACCOUNT = "system:serviceaccount:"
_NODE_OF_POD = "authentication.kubernetes.io/node-name"
ASSOCIATED, ARBITRARY, SERVICE_ACCOUNT, USER_INFO, LEGACY = (
    "associated-node",
    "arbitrary-node",
    "serviceaccount",
    "user-info",
    "",
)
_MANY = 4  # from so many groups or extra values on, the right to all of them is asked for first


async def impersonated(identity: Identity, request: Request, question: Question, authorizer: Authorizer) -> Identity:
    """The identity that the request is to be judged by, which `asks_for_another`. Raises 400 without a user to be, 403
    when no mode allows it, with what the first had against it."""
    wanted = _wanted(request)
    if wanted is None:
        return identity
    first: ApiError | None = None
    for mode in _modes(wanted, identity):
        try:
            await _check(mode, wanted, identity, question, authorizer)
        except ApiError as error:
            first = first or error
        else:
            return _completed(wanted, mode)
    assert first is not None, "the last mode is always there"
    raise first


def asks_for_another(request: Request) -> bool:
    """Whether it is to be judged by another identity than that of its sender."""
    for name in request.headers:  # noqa: SIM110  (each request is asked; a generator costs as much again)
        if name.startswith("impersonate-"):
            return True
    return False


def _wanted(request: Request) -> Identity | None:
    headers = request.headers
    groups = tuple(group for group in request.values_of(_GROUP) if group)
    extra = {
        unquote(name.removeprefix(_EXTRA)).lower(): request.values_of(name)
        for name in headers
        if name.startswith(_EXTRA)
    }
    user, uid = (next(iter(request.values_of(name)), "") for name in (_USER, _UID))
    if user:
        return Identity(user, groups, uid, extra)
    if groups or uid or extra:
        shown = _as_go(Identity(user, groups, uid, extra))
        raise bad_request(f"requested {shown} without impersonating a user name")
    return None


def _as_go(who: Identity) -> str:
    """The identity as upstream's message prints it."""
    groups = "{" + ", ".join(f'"{group}"' for group in who.groups) + "}" if who.groups else "(nil)"
    pairs = (
        f'"{key}":[]string{{' + ", ".join(f'"{value}"' for value in values) + "}"
        for key, values in sorted(who.extra.items())
    )
    extra = "{" + ", ".join(pairs) + "}" if who.extra else "(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:"{who.uid}", Groups:[]string{groups}, Extra:map[string][]string{extra}}}'


def _modes(wanted: Identity, requestor: Identity) -> Iterator[str]:
    node, account = _node(wanted.user), _account(wanted.user)
    alone = not (wanted.groups or wanted.uid or wanted.extra)
    if node and alone:
        if _account(requestor.user) and requestor.extra.get(_NODE_OF_POD) == (node,):
            yield ASSOCIATED
        yield ARBITRARY
    if account and alone:
        yield SERVICE_ACCOUNT
    if not node and not account:
        yield USER_INFO
    yield LEGACY


def _node(user: str) -> str:
    """The node that a user name stands for; empty when it is none."""
    name = user.removeprefix(NODE)
    if not user.startswith(NODE) or not name:
        return ""
    return "" if dns_subdomain(name) else name


def _account(user: str) -> tuple[str, str] | None:
    """Namespace and name of the service account that a user name stands for."""
    namespace, _, name = user.removeprefix(_ACCOUNT).partition(":")
    return (namespace, name) if user.startswith(_ACCOUNT) and namespace and name and ":" not in name else None


async def _check(mode: str, wanted: Identity, identity: Identity, question: Question, authorizer: Authorizer) -> None:
    """Raises 403 for the first part that the mode does not allow."""
    if mode:
        await authorizer.require(identity, replace(question, verb=f"impersonate-on:{mode}:{question.verb}"))
    verb = f"impersonate:{mode}" if mode else "impersonate"
    await authorizer.require(identity, _whom(mode, verb, wanted))
    if wanted.uid:
        await authorizer.require(identity, Question(verb, _API, "uids", name=wanted.uid))
    if mode:
        _forbid_masters(verb, wanted, identity)
    of_core = _API if mode else ""
    groups = [Question(verb, of_core, "groups", name=group) for group in wanted.groups]
    extras = [
        Question(verb, _API, "userextras", key, name=value) for key, values in wanted.extra.items() for value in values
    ]
    for all_of_them, questions in (
        (Question(verb, _API, "groups", name="*"), groups),
        (Question(verb, _API, "userextras", "*", name="*"), extras),
    ):
        if mode and len(questions) >= _MANY and (await authorizer.judge(identity, all_of_them)).allowed:
            continue
        for part in questions:
            await authorizer.require(identity, part)


def _whom(mode: str, verb: str, wanted: Identity) -> Question:
    group = _API if mode else ""
    if mode in (ASSOCIATED, ARBITRARY):  # the node of one's own pod is whichever it is
        return Question(verb, group, "nodes", name="*" if mode == ASSOCIATED else _node(wanted.user))
    if account := _account(wanted.user):
        return Question(verb, group, "serviceaccounts", namespace=account[0], name=account[1])
    return Question(verb, group, "users", name=wanted.user)


def _forbid_masters(verb: str, wanted: Identity, identity: Identity) -> None:
    if MASTERS in wanted.groups and MASTERS not in identity.groups:
        asked = Question(verb, _API, "groups", name=MASTERS)
        raise refusal(identity, asked, f"impersonating the {MASTERS} group is not allowed")


def _completed(wanted: Identity, mode: str) -> Identity:
    """The identity with the groups that come with being that user."""
    groups = wanted.groups
    if mode in (ASSOCIATED, ARBITRARY):
        groups = (NODES,)
    elif (account := _account(wanted.user)) and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
    everyone = ANONYMOUS.groups[0]
    if wanted.user == ANONYMOUS.user:
        groups = groups if everyone in groups else (*groups, everyone)
    elif AUTHENTICATED not in groups and everyone not in groups:
        groups = (*groups, AUTHENTICATED)
    return Identity(wanted.user, groups, wanted.uid, wanted.extra)
