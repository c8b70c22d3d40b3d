"""The pod failure policy and the success policy of a job."""

from collections.abc import Set

import msgspec

from podfit.api.batch.v1.types import (
    Job,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyRule,
    SuccessPolicyRule,
)
from podfit.api.core.v1.pods.container_status import ContainerStatus
from podfit.api.core.v1.pods.types import Pod
from podfit.decide.workload.job.indexes import Spans

IGNORE, FAIL_JOB, FAIL_INDEX, COUNT = "Ignore", "FailJob", "FailIndex", "Count"


class Matched(msgspec.Struct, frozen=True):
    """The action of the first rule that matches; empty when none does. `message` is that of a job that fails by it."""

    action: str = ""
    message: str = ""

    @property
    def counts(self) -> bool:
        """Whether the failure counts towards the backoff limit."""
        return self.action != IGNORE


def match_failure(job: Job, pod: Pod) -> Matched:
    policy = job.spec.pod_failure_policy
    for index, rule in enumerate(policy.rules if policy is not None else ()):
        if why := _why(rule, pod):
            return Matched(rule.action, f"{why} matching {rule.action} rule at index {index}")
    return Matched()


def _why(rule: PodFailurePolicyRule, pod: Pod) -> str:
    """Empty when the rule does not match."""
    where = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.on_exit_codes is not None:
        statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
        found = next((status for status in statuses if _exits(status, rule.on_exit_codes)), None)
        if found is None or found.state.terminated is None:
            return ""
        return f"Container {found.name} for pod {where} failed with exit code {found.state.terminated.exit_code}"
    for pattern in rule.on_pod_conditions:
        for condition in pod.status.conditions:
            if (condition.type, condition.status) == (pattern.type, pattern.status):
                return f"Pod {where} has condition {condition.type}"
    return ""


def _exits(status: ContainerStatus, wanted: PodFailurePolicyOnExitCodesRequirement) -> bool:
    ended = status.state.terminated
    if ended is None or ended.exit_code == 0 or wanted.container_name not in (None, status.name):
        return False
    return (ended.exit_code in wanted.values) == (wanted.operator == "In")


def match_success(job: Job, succeeded: Set[int]) -> str:
    """Says which rule is met; empty when none is."""
    policy = job.spec.success_policy
    for index, rule in enumerate(policy.rules if policy is not None else ()):
        if _met(rule, succeeded, job.spec.completions or 0):
            return f"Matched rules at index {index}"
    return ""


def _met(rule: SuccessPolicyRule, succeeded: Set[int], completions: int) -> bool:
    if not rule.succeeded_indexes:
        return rule.succeeded_count is not None and len(succeeded) >= rule.succeeded_count
    wanted = Spans(rule.succeeded_indexes, completions)
    enough = len(wanted) if rule.succeeded_count is None else rule.succeeded_count
    return sum(index in wanted for index in succeeded) >= enough
