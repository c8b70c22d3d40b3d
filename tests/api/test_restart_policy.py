"""Whether a container starts again: one answer for the kubelet and for the check of a status."""

import msgspec
import pytest

from podfit.api.core.v1.pods.restart_policy import starts_again
from podfit.api.core.v1.pods.types import Pod
from podfit.api.core.v1.pods.validation.status import validate_status_update


def rule(action: str, operator: str, *values: int) -> dict[str, object]:
    return {"action": action, "exitCodes": {"operator": operator, "values": values}}


def pod(state: dict[str, object], policy: str, own: str, rules: list[dict[str, object]]) -> Pod:
    container = {"name": "c", "image": "i", "restartPolicy": own, "restartPolicyRules": rules}
    status = {"containerStatuses": [{"name": "c", "image": "i", "imageID": "", "state": state}]}
    return msgspec.convert({"spec": {"restartPolicy": policy, "containers": [container]}, "status": status}, Pod)


@pytest.mark.parametrize(
    ("policy", "own", "rules", "code", "again"),
    [
        ("", "", [], 0, True),  # Always, before defaults
        ("Always", "", [], 0, True),
        ("OnFailure", "", [], 0, False),
        ("OnFailure", "", [], 1, True),
        ("Never", "", [], 1, False),
        ("Never", "OnFailure", [], 1, True),
        ("Always", "Never", [], 1, False),
        ("Never", "Never", [rule("Restart", "In", 42)], 42, True),
        ("Never", "Never", [rule("Restart", "In", 42)], 1, False),
        ("Never", "Never", [rule("Restart", "NotIn", 42)], 1, True),
    ],
)
def test_a_status_may_tell_a_restart_where_the_kubelet_starts_again(
    policy: str, own: str, rules: list[dict[str, object]], code: int, again: bool
) -> None:
    old = pod({"terminated": {"exitCode": code}}, policy, own, rules)
    new = pod({"running": {}}, policy, own, rules)
    assert starts_again(old.spec, old.spec.containers[0], code) is again
    refused = [error for error in validate_status_update(new, old) if "non-terminated" in error.detail]
    assert bool(refused) is not again


def test_the_first_rule_that_names_the_code_counts() -> None:
    rules = [rule("RestartAllContainers", "In", 42), rule("Restart", "NotIn", 0)]
    spec = pod({}, "Never", "Never", rules).spec
    assert [starts_again(spec, spec.containers[0], code) for code in (42, 1, 0)] == [False, True, False]
