"""Restart policies of ended containers: the container's rules, its policy, then the pod's."""

from podfit.api.core.v1.pods.containers import Container, ContainerRestartRule
from podfit.api.core.v1.pods.types import PodSpec


def comes_again(spec: PodSpec, container: Container, exit_code: int) -> bool:
    """The first rule that names the exit code restarts it; no rule does the opposite."""
    if any(_names(rule, exit_code) for rule in container.restart_policy_rules):
        return True
    policy = container.restart_policy or spec.restart_policy or "Always"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _names(rule: ContainerRestartRule, exit_code: int) -> bool:
    if rule.action != "Restart" or rule.exit_codes is None:
        return False
    return (exit_code in rule.exit_codes.values) == (rule.exit_codes.operator == "In")
