"""Who the parts of the control plane are, so that RBAC is what limits them.

As upstream: what all controllers read is read by the manager, which may list and watch everything; what a controller
writes it writes as a service account of its own, and its default role says what that is. In one process an identity is
a name that the transport carries: no certificate, no token, and no object of the account either.
"""

from podfit import __version__
from podfit.net.wire import Identity

MANAGER, SCHEDULER = "system:kube-controller-manager", "system:kube-scheduler"
_ACCOUNTS = "system:serviceaccounts"
_NAMESPACE = "kube-system"
_PREFIX = f"system:serviceaccount:{_NAMESPACE}:"


def controller(name: str) -> Identity:
    """The service account of the controller `name`, such as `namespace-controller`."""
    return Identity(_PREFIX + name, (_ACCOUNTS, f"{_ACCOUNTS}:{_NAMESPACE}"))


def agent(identity: Identity) -> str:
    """What it calls itself in requests; the part before the slash is who manages the fields that it writes."""
    if identity.user.startswith(_PREFIX):
        return f"{MANAGER.removeprefix('system:')}/{__version__} {identity.user}"
    return identity.user.removeprefix("system:")
