"""Identities of kubelets: the user `system:node:NAME` in the group `system:nodes`."""

from podfit.net.wire import Identity

PREFIX, GROUP = "system:node:", "system:nodes"


def node_of(identity: Identity) -> str | None:
    """The node that a kubelet speaks for, None for who is no kubelet; empty when a kubelet does not say which."""
    is_node = identity.user.startswith(PREFIX) and GROUP in identity.groups
    return identity.user.removeprefix(PREFIX) if is_node else None


def node_name(identity: Identity) -> str:
    """The node that a kubelet speaks for; empty when it is no kubelet, or does not say which."""
    return node_of(identity) or ""
