"""Which changes restart a container: its resizePolicy, read once. One resource with that policy is enough (R-126)."""

from collections.abc import Collection

from podfit.api.core.v1.pods.containers import Container
from podfit.decide.cgroup.container_resources import RESOURCES


def restarting(container: Container, resources: Collection[str] = RESOURCES) -> tuple[str, ...]:
    """Those of the resources of which a change restarts the container, in the order of its policies."""
    return tuple(
        policy.resource_name
        for policy in container.resize_policy
        if policy.restart_policy == "RestartContainer" and policy.resource_name in resources
    )
