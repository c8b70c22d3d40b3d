"""Identities of the control plane's components, so that RBAC limits them.

As upstream: what all controllers read is read by the manager, which may list and watch everything; what a controller
writes it writes as a service account of its own, and its default role says what that is. In one process an identity is
a name that the transport carries: no certificate and no token. The accounts are there as objects all the same.
"""

from podfit import __version__
from podfit.net.wire import Identity

MANAGER, SCHEDULER = "system:kube-controller-manager", "system:kube-scheduler"
PROXY = "system:kube-proxy"
DNS = "system:podfit:dns"
ADMIN = Identity("kubernetes-admin", ("system:masters",))
COMPONENTS = {"controllers": MANAGER, "scheduler": SCHEDULER, "proxy": PROXY, "dns": DNS}
"""Who `podfit controllers`, `scheduler`, `proxy` and `dns` are; the API server alone writes a kubeconfig for each."""
_ACCOUNTS = "system:serviceaccounts"
_NAMESPACE = "kube-system"
_PREFIX = f"system:serviceaccount:{_NAMESPACE}:"


def controller(name: str) -> Identity:
    """The service account of the controller `name`, such as `namespace-controller`."""
    return Identity(_PREFIX + name, (_ACCOUNTS, f"{_ACCOUNTS}:{_NAMESPACE}"))


def account_of(identity: Identity) -> str:
    """The name of the controller whose service account this is; empty for somebody else."""
    return identity.user.removeprefix(_PREFIX) if identity.user.startswith(_PREFIX) else ""


def agent(identity: Identity) -> str:
    """What it calls itself in requests; the part before the slash is who manages the fields that it writes."""
    if account_of(identity):
        return f"{MANAGER.removeprefix('system:')}/{__version__} {identity.user}"
    return identity.user.removeprefix("system:")
