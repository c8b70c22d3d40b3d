"""Restart policies of ended containers: the container's rules, its policy, then the pod's."""

from podfit.api.core.v1.pods.containers import Container, ContainerRestartRule
from podfit.api.core.v1.pods.types import PodSpec


def starts_again(spec: PodSpec, container: Container, exit_code: int) -> bool:
    """Whether the container starts again after it ended with this code.

    Rules are tried in order and the first that names the code counts, as the API documents it. One that restarts the
    container does so whatever the policies say; another action, or no rule, leaves it to the policies.
    """
    rule = next((rule for rule in container.restart_policy_rules if _names(rule, exit_code)), None)
    if rule is not None and rule.action == "Restart":
        return True
    policy = container.restart_policy or spec.restart_policy or "Always"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _names(rule: ContainerRestartRule, exit_code: int) -> bool:
    codes = rule.exit_codes
    return codes is not None and (exit_code in codes.values) == (codes.operator == "In")
