"""Impersonation: a request that is to be judged as someone else's (`kubectl --as`).

Who asks has to hold the verb `impersonate` on every part of who they want to be: the user or service account, each
group, the uid and each extra value. Ignoring the headers would run a request with more rights than it asked for.
"""

from collections.abc import Iterator
from urllib.parse import unquote

from podfit.apiserver.authenticate import ANONYMOUS, AUTHENTICATED
from podfit.apiserver.authorize import Authorizer
from podfit.apiserver.question import Question
from podfit.core.errors import bad_request
from podfit.net.wire import Identity, Request

_USER, _GROUP, _UID, _EXTRA = "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-"
_GROUP_OF_API = "authentication.k8s.io"
_ACCOUNT = "system:serviceaccount:"


async def impersonated(identity: Identity, request: Request, authorizer: Authorizer) -> Identity:
    """The identity that the request is to be judged by. Raises 400 without a user to be, 403 for a part not allowed."""
    wanted = _wanted(request)
    if wanted is None:
        return identity
    for question in _questions(wanted):
        await authorizer.require(identity, question)
    return _completed(wanted)


def _wanted(request: Request) -> Identity | None:
    headers = request.headers
    if not any(name.startswith("impersonate-") for name in headers):
        return None
    groups = tuple(group.strip() for group in headers.get(_GROUP, "").split(",") if group.strip())
    extra = {
        unquote(name.removeprefix(_EXTRA)).lower(): tuple(value.strip() for value in values.split(","))
        for name, values in headers.items()
        if name.startswith(_EXTRA)
    }
    user, uid = headers.get(_USER, ""), headers.get(_UID, "")
    if user:
        return Identity(user, groups, uid, extra)
    if groups or uid or extra:
        raise bad_request("requested groups, uid or extra without impersonating a user name")
    return None


def _questions(wanted: Identity) -> Iterator[Question]:
    namespace, _, name = wanted.user.removeprefix(_ACCOUNT).partition(":")
    if wanted.user.startswith(_ACCOUNT) and name:
        yield Question("impersonate", "", "serviceaccounts", namespace=namespace, name=name)
    else:
        yield Question("impersonate", "", "users", name=wanted.user)
    for group in wanted.groups:
        yield Question("impersonate", "", "groups", name=group)
    if wanted.uid:
        yield Question("impersonate", _GROUP_OF_API, "uids", name=wanted.uid)
    for key, values in wanted.extra.items():
        for value in values:
            yield Question("impersonate", _GROUP_OF_API, "userextras", key, name=value)


def _completed(wanted: Identity) -> Identity:
    """With the groups that come with being that user."""
    groups = wanted.groups
    if wanted.user == ANONYMOUS.user:
        return Identity(wanted.user, groups or ANONYMOUS.groups, wanted.uid, wanted.extra)
    if wanted.user.startswith(_ACCOUNT) and not groups:
        namespace = wanted.user.removeprefix(_ACCOUNT).partition(":")[0]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    if AUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return Identity(wanted.user, groups, wanted.uid, wanted.extra)
