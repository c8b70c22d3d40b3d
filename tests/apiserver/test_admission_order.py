"""The order of the admission plugins is the one that the documentation gives; a resize goes by `RESIZE_CHECKS`."""

import re
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from podfit.api.core.v1.limits.types import LimitRange, LimitRangeItem
from podfit.api.core.v1.namespaces.types import Namespace
from podfit.api.core.v1.nodes.types import Node
from podfit.api.core.v1.pods.types import Pod
from podfit.api.meta.codec import convert
from podfit.api.meta.v1.types import ObjectMeta
from podfit.api.rbac.v1.types import ClusterRole
from podfit.api.registry import info_for
from podfit.apiserver.admission.chain import AdmissionChain, BasePlugin
from podfit.apiserver.admission.pod_resize import resize_turns
from podfit.apiserver.admission_chain import BUILT_IN
from podfit.apiserver.context import Attributes, Context
from podfit.apiserver.handlers.change import STORED_OBJECT
from podfit.apiserver.handlers.writing import in_order
from podfit.apiserver.registry.strategies.table import strategy_of
from podfit.core.errors import ApiError
from podfit.core.features import DEFAULT_GATES
from podfit.core.quantity import Quantity
from podfit.decide.resize.checks import (
    LIMITS,
    NODE_CHECKS,
    NODE_RESTRICTION,
    RESIZE_CHECKS,
    Check,
    ResizeToCheck,
    checks_of,
    judge,
    stages_of,
)
from podfit.decide.write_stages import Stage
from podfit.net.wire import Identity

DOCS = Path(__file__).parents[2] / "docs" / "apiserver.md"
OURS = {  # where a class is not called as upstream's plugin
    "CertificateAdmission": "CertificateApproval",
    "ServiceAccountAdmission": "ServiceAccount",
    "PriorityAdmission": "Priority",
    "DefaultTolerations": "DefaultTolerationSeconds",
    "StorageInUseProtection": "StorageObjectInUseProtection",
    "RuntimeClassAdmission": "RuntimeClass",
    "ClaimResize": "PersistentVolumeClaimResize",
}


def test_plugins_run_in_the_order_of_the_documentation() -> None:
    section = DOCS.read_text().partition("## Admission\n")[2].partition("\n## ")[0]
    told = re.findall(r"^\| `(\w+)`", section, re.MULTILINE)
    ours = [OURS.get(plugin.__name__, plugin.__name__) for plugin in BUILT_IN]
    assert told == [*ours[:-1], *(check.name for check in NODE_CHECKS)]


def test_the_checks_of_a_resize_are_those_of_the_documentation_in_their_order() -> None:
    section = DOCS.read_text().partition("### The checks of a resize\n")[2].partition("\n##")[0]
    told = re.findall(r"^\| \d+ \| `?([\w ]+?)`? \| (.+) \|$", section, re.MULTILINE)
    assert told == [(check.name, check.text) for check in RESIZE_CHECKS]


# ---------------------------------------------------------------- the server runs the list


def moved_to_the_end(name: str) -> tuple[Check, ...]:
    """The list with the check behind all others of its stage."""
    check = next(check for check in RESIZE_CHECKS if check.name == name)
    stage = [*(other for other in checks_of(check.stage) if other is not check), check]
    return tuple(stage.pop(0) if other.stage is check.stage else other for other in RESIZE_CHECKS)


def grown(cpu: str) -> tuple[Pod, Pod]:
    """A pod that is bound, and with as much CPU in its place."""
    pod = convert(
        {
            "metadata": {"name": "p", "namespace": "default", "generation": 1},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        },
        Pod,
    )
    document = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}}
    spec = convert({"nodeName": "n1", "containers": [document]}, type(pod.spec))
    return pod, replace(pod, spec=spec, metadata=replace(pod.metadata, generation=2))


RANGE = LimitRange(
    metadata=ObjectMeta(name="l", namespace="default"),
    spec=type(LimitRange().spec)(limits=(LimitRangeItem(type="Container", max={"cpu": Quantity.parse("2")}),)),
)
NODE = convert({"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "memory": "4Gi"}}}, Node)


class Facts:
    """What checks ask a cluster for."""

    gates = DEFAULT_GATES

    async def find(self, kind: type, name: str, namespace: str = "") -> Any:
        return NODE

    async def settings(self, kind: type, namespace: str = "") -> Any:
        return (RANGE,)


@pytest.mark.parametrize(
    ("checks", "refuses"),
    [(RESIZE_CHECKS, "maximum cpu usage per Container"), (moved_to_the_end(LIMITS), "enough allocatable resources")],
)
async def test_a_resize_that_two_checks_refuse_is_refused_by_the_first_in_the_list(
    checks: tuple[Check, ...], refuses: str
) -> None:
    old, new = grown("9")
    facts = cast(Context, Facts())
    plugins = {check.name: BasePlugin(facts) for check in checks if check.make is None}
    turns = resize_turns(facts, plugins, checks)
    chain = AdmissionChain((), cast(Any, None), {("UPDATE", Pod, "resize"): turns})
    attributes = Attributes(
        operation="UPDATE",
        info=info_for(Pod),
        subresource="resize",
        namespace="default",
        name="p",
        identity=Identity("u"),
        dry_run=False,
        old=old,
    )
    with pytest.raises(ApiError, match=refuses):
        await chain.validate(attributes, new)
    planned = judge(
        ResizeToCheck(new=new, old=old, node=NODE, limit_ranges=(RANGE,), gates=DEFAULT_GATES),
        checks_of(Stage.ADMIT, checks),
    )
    assert isinstance(planned, ApiError)
    assert refuses in planned.message


def test_a_resize_has_the_stages_of_the_list_in_their_order() -> None:
    order = strategy_of(Pod).for_update("resize").order
    assert order == stages_of(RESIZE_CHECKS)
    stages = [step.stage for step in in_order(STORED_OBJECT, order) if step.stage in order]
    assert stages == [stage for stage in order if stage is not Stage.CHARGE]  # it is in the transaction of `STORE`
    turned = (Stage.VALIDATE, Stage.MUTATE)
    assert [step.stage for step in in_order(STORED_OBJECT, turned) if step.stage in turned] == [*turned]


def test_checks_of_a_stage_have_to_stand_together() -> None:
    with pytest.raises(ValueError, match="stand together"):
        stages_of((*RESIZE_CHECKS, RESIZE_CHECKS[0]))


def test_a_kubelet_is_refused_before_webhooks_are_asked() -> None:
    names = [check.name for check in checks_of(Stage.MUTATE)]
    assert names.index(NODE_RESTRICTION) < names.index("MutatingAdmissionWebhook")


def test_of_a_pod_that_is_going_nobody_asks_what_its_namespace_allows() -> None:
    """As the server, so `plan`."""
    old, new = grown("3")
    leaving = replace(old, metadata=replace(old.metadata, deletion_timestamp="2026-01-02T03:04:05Z"))
    limits = tuple(check for check in RESIZE_CHECKS if check.name == LIMITS)
    assert isinstance(judge(ResizeToCheck(new=new, old=old, limit_ranges=(RANGE,)), limits), ApiError)
    assert isinstance(judge(ResizeToCheck(new=new, old=leaving, limit_ranges=(RANGE,)), limits), ResizeToCheck)


def test_a_plugin_is_asked_only_about_the_writes_that_it_names() -> None:
    asked = {
        (operation, kind, subresource): {
            plugin.__name__ for plugin in BUILT_IN if plugin.scope.covers(operation, kind, subresource)
        }
        for operation, kind, subresource in (
            ("CREATE", Pod, "binding"),
            ("UPDATE", Pod, "status"),
            ("UPDATE", ClusterRole, ""),
            ("DELETE", Namespace, ""),
        )
    }
    assert asked == {
        ("CREATE", Pod, "binding"): {"NamespaceLifecycle", "NodeRestriction", "PodTopologyLabels"},
        ("UPDATE", Pod, "status"): {"NodeRestriction"},
        ("UPDATE", ClusterRole, ""): {"NodeRestriction", "Escalation"},
        ("DELETE", Namespace, ""): {"NamespaceLifecycle", "NodeRestriction"},
    }
